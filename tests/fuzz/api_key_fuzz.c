/* API keys: any text is refused or is exactly what writing its secret gives; a written one comes back, and not after a
 * change. */
#include "http/api_key_auth.h"
#include "runtime/assert.h"
#include "tests/fuzz/bytes.h"

static void read_any(struct bytes *input)
{
    uint8_t secret[API_KEY_SECRET_SIZE];
    char again[API_KEY_TEXT_SIZE];
    const char *text;
    size_t length = take_piece(input, input->left, &text);
    if (!api_key_parse(span_of(text, length), secret))
        return;
    api_key_write(secret, again);
    ASSERT(length == API_KEY_TEXT_LENGTH && memcmp(again, text, length) == 0);
}

static void write_and_change(struct bytes *input)
{
    uint8_t secret[API_KEY_SECRET_SIZE], again[API_KEY_SECRET_SIZE];
    char text[API_KEY_TEXT_SIZE];
    size_t at = take(input) % API_KEY_TEXT_LENGTH;
    char other = (char)take(input);
    for (size_t i = 0; i < sizeof(secret); i++)
        secret[i] = take(input);
    api_key_write(secret, text);
    ASSERT(api_key_parse(span_text(text), again) && memcmp(again, secret, sizeof(again)) == 0);
    if (text[at] == other)
        return;
    text[at] = other;
    ASSERT(!api_key_parse(span_of(text, API_KEY_TEXT_LENGTH), again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes input = {data, size};
    if (take(&input) & 1)
        write_and_change(&input);
    else
        read_any(&input);
    return 0;
}
