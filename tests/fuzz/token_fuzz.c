/* Page tokens: any text is refused or is what sealing its key gives; a sealed key comes back, and not after a change. */
#include "runtime/assert.h"
#include "store/token.h"
#include "tests/fuzz/bytes.h"

static const struct store store = {.secret = "sixteen letters"};

static void open_any(struct bytes *input)
{
    struct key key = {.size = 0};
    char again[TOKEN_TEXT_MAX];
    const char *text;
    uint16_t list = (uint16_t)take_n(input, 2);
    uint64_t filter = take_n(input, 8);
    size_t length = take_piece(input, input->left, &text);
    enum error e = token_open(&store, list, filter, text, length, &key);
    ASSERT(e == OK || (e == ERR_TOKEN && key.size == 0));
    if (e == OK)
        ASSERT(token_seal(&store, list, filter, key_span(&key), again) == length &&
               memcmp(again, text, length) == 0);
}

static void seal_and_change(struct bytes *input)
{
    struct key key = {.size = 0}, opened = {.size = 0};
    char text[TOKEN_TEXT_MAX];
    const char *piece;
    uint16_t list = (uint16_t)take_n(input, 2);
    uint64_t filter = take_n(input, 8);
    size_t at = take(input);
    char other = (char)take(input);
    size_t size = take_piece(input, KEY_SIZE_MAX, &piece);
    key_add(&key, piece, (uint32_t)size);
    size_t length = token_seal(&store, list, filter, key_span(&key), text);
    ASSERT(length < sizeof(text) && text[length] == 0);
    ASSERT(token_open(&store, list, filter, text, length, &opened) == OK);
    ASSERT(span_equal(key_span(&opened), key_span(&key)));
    at %= length;
    if (text[at] == other)
        return;
    text[at] = other;
    ASSERT(token_open(&store, list, filter, text, length, &opened) == ERR_TOKEN);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes input = {data, size};
    if (take(&input) & 1)
        seal_and_change(&input);
    else
        open_any(&input);
    return 0;
}
