#include "actors/webhook_signature.h"

#include <stdio.h>
#include <string.h>

#include "runtime/assert.h"
#include "store/sha256.h"

#define SECRET_MIN 24u /* bytes, as the standard wants them */
#define SECRET_MAX 64u

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* Padded, with its end. Returns the length. */
static size_t base64_write(const uint8_t *bytes, size_t size, char *text)
{
    size_t length = 0;
    for (size_t i = 0; i < size; i += 3) {
        uint32_t three = (uint32_t)bytes[i] << 16 | (i + 1 < size ? (uint32_t)bytes[i + 1] << 8 : 0) |
                         (i + 2 < size ? bytes[i + 2] : 0);
        text[length++] = digits[three >> 18];
        text[length++] = digits[three >> 12 & 63];
        text[length++] = digits[three >> 6 & 63];
        text[length++] = digits[three & 63];
        if (i + 1 >= size)
            text[length - 2] = '=';
        if (i + 2 >= size)
            text[length - 1] = '=';
    }
    text[length] = 0;
    return length;
}

/* The whole text, in one form only: no spare bits, nothing behind the padding. */
static bool base64_read(struct span text, uint8_t *bytes, uint32_t room, uint32_t *ret_size)
{
    const char *at = text.bytes;
    uint32_t bits = 0, held = 0, size = 0, length = text.size;
    while (length > 0 && text.size - length < 2 && at[length - 1] == '=')
        length--;
    if (length % 4 == 1 || (length != text.size && text.size % 4))
        return false;
    for (uint32_t i = 0; i < length; i++) {
        const char *digit = at[i] ? strchr(digits, at[i]) : NULL;
        if (!digit)
            return false;
        bits = bits << 6 | (uint32_t)(digit - digits);
        held += 6;
        if (held < 8)
            continue;
        if (size == room)
            return false;
        held -= 8;
        bytes[size++] = (uint8_t)(bits >> held);
    }
    *ret_size = size;
    return (bits & ((1u << held) - 1)) == 0;
}

void webhook_sign(struct span secret, const struct webhook_message *message,
                  char text[WEBHOOK_SIGNATURE_SIZE])
{
    uint8_t digest[SHA256_SIZE];
    char time[24];
    struct hmac hmac;
    int length = snprintf(time, sizeof(time), ".%llu.", (unsigned long long)message->at_s);
    hmac_start(&hmac, secret.bytes, secret.size);
    hmac_add(&hmac, message->id.bytes, message->id.size);
    hmac_add(&hmac, time, (size_t)length);
    hmac_add(&hmac, message->body.bytes, message->body.size);
    hmac_end(&hmac, digest);
    memcpy(text, "v1,", 3);
    base64_write(digest, sizeof(digest), text + 3);
}

void webhook_secret_write(struct span secret, char text[WEBHOOK_SECRET_TEXT_MAX])
{
    ASSERT(secret.size <= WEBHOOK_SECRET_BYTES_MAX);
    memcpy(text, WEBHOOK_SECRET_PREFIX, sizeof(WEBHOOK_SECRET_PREFIX) - 1);
    base64_write(secret.bytes, secret.size, text + sizeof(WEBHOOK_SECRET_PREFIX) - 1);
}

bool webhook_secret_read(struct span text, uint8_t bytes[WEBHOOK_SECRET_BYTES_MAX], uint32_t *ret_size)
{
    const uint32_t prefix = sizeof(WEBHOOK_SECRET_PREFIX) - 1;
    uint32_t size = text.size;
    if (text.size < prefix || memcmp(text.bytes, WEBHOOK_SECRET_PREFIX, prefix) != 0) {
        if (size == 0 || size > WEBHOOK_SECRET_BYTES_MAX)
            return false;
        memcpy(bytes, text.bytes, size);
    } else if (!base64_read(span_of((const char *)text.bytes + prefix, text.size - prefix), bytes,
                            WEBHOOK_SECRET_BYTES_MAX, &size) ||
               size < SECRET_MIN || size > SECRET_MAX) {
        return false;
    }
    *ret_size = size;
    return true;
}
