#include "chaos/signature.h"

#include <stdio.h>
#include <stdlib.h>

#include "store/sha256.h"

enum { BLOCK = 64, KEY_MAX = 256 };

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static size_t decode(const char *text, uint8_t *room, size_t most)
{
    uint32_t bits = 0, count = 0;
    size_t size = 0;
    for (; *text && *text != '=' && size < most; text++) {
        const char *digit = strchr(digits, *text);
        if (!digit)
            break;
        bits = bits << 6 | (uint32_t)(digit - digits);
        count += 6;
        if (count >= 8) {
            count -= 8;
            room[size++] = (uint8_t)(bits >> count);
        }
    }
    return size;
}

static void encode(const uint8_t *bytes, size_t size, char *room)
{
    for (size_t i = 0; i < size; i += 3) {
        uint32_t three = (uint32_t)bytes[i] << 16 | (i + 1 < size ? (uint32_t)bytes[i + 1] << 8 : 0) |
                         (i + 2 < size ? bytes[i + 2] : 0);
        *room++ = digits[three >> 18 & 63];
        *room++ = digits[three >> 12 & 63];
        *room++ = i + 1 < size ? digits[three >> 6 & 63] : '=';
        *room++ = i + 2 < size ? digits[three & 63] : '=';
    }
    *room = 0;
}

/* `text` has BLOCK bytes free in front of it, which the padded key goes into. */
static void keyed(const uint8_t *key, size_t key_size, uint8_t pad, uint8_t *text, size_t size,
                  uint8_t *digest)
{
    memset(text, pad, BLOCK);
    for (size_t i = 0; i < key_size; i++)
        text[i] ^= key[i];
    sha256_of(text, BLOCK + size, digest);
}

static void hmac(const uint8_t *key, size_t key_size, uint8_t *text, size_t size, uint8_t digest[SHA256_SIZE])
{
    uint8_t outer[BLOCK + SHA256_SIZE], short_key[SHA256_SIZE];
    if (key_size > BLOCK) {
        sha256_of(key, key_size, short_key);
        key = short_key, key_size = sizeof(short_key);
    }
    keyed(key, key_size, 0x36, text, size, digest);
    memcpy(outer + BLOCK, digest, SHA256_SIZE);
    keyed(key, key_size, 0x5c, outer, SHA256_SIZE, digest);
}

bool signature_good(const char *secret, const char *id, const char *timestamp, struct span body,
                    const char *header)
{
    static const char prefix[] = "whsec_";
    uint8_t key[KEY_MAX], digest[SHA256_SIZE], *text;
    char wanted[64] = "v1,";
    size_t key_size, size = strlen(id) + strlen(timestamp) + 2 + body.size, at = BLOCK;
    if (strncmp(secret, prefix, sizeof(prefix) - 1) == 0) {
        key_size = decode(secret + sizeof(prefix) - 1, key, sizeof(key));
    } else {
        key_size = strlen(secret) < sizeof(key) ? strlen(secret) : sizeof(key);
        memcpy(key, secret, key_size);
    }
    if (!(text = malloc(BLOCK + size + 1)))
        exit(2);
    at += (size_t)snprintf((char *)text + at, size + 1, "%s.%s.", id, timestamp);
    memcpy(text + at, body.bytes, body.size);
    hmac(key, key_size, text, size, digest);
    free(text);
    encode(digest, sizeof(digest), wanted + 3);
    for (const char *word = header; word; word = strchr(word, ' ') ? strchr(word, ' ') + 1 : NULL)
        if (strncmp(word, wanted, strlen(wanted)) == 0)
            return true;
    return false;
}
