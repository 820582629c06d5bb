#include "store/token.h"

#include "runtime/hash.h"

/* Before base64url: version:1, tag:16, the key. */
#define TOKEN_VERSION 1u
#define TAG_AT        1u
#define TAG_SIZE      16u
#define KEY_AT        (TAG_AT + TAG_SIZE)
#define BYTES_MAX     (KEY_AT + KEY_SIZE_MAX)

/* Four characters for three bytes, or for what is left of them two or three; and the end of the string. */
STATIC_ASSERT((BYTES_MAX * 8 + 5) / 6 + 1 <= TOKEN_TEXT_MAX, "any key fits");

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* ---- the seal ---- */

/* The secret makes partitions, too: keys of our own are derived from it, so that neither tells of the other. */
static struct hash_key key_derive(const struct store *store, uint8_t half)
{
    uint8_t name[] = "coppice token 0.0";
    struct hash_key secret, key;
    memcpy(&secret, store->secret, sizeof(secret));
    name[sizeof(name) - 4] = (uint8_t)('0' + half);
    key.k0 = hash_sip24(&secret, name, sizeof(name));
    name[sizeof(name) - 2] = '1';
    key.k1 = hash_sip24(&secret, name, sizeof(name));
    return key;
}

static void tag_make(const struct store *store, uint16_t list, uint64_t filter, struct span key,
                     uint8_t tag[TAG_SIZE])
{
    for (uint8_t half = 0; half < 2; half++) {
        struct hash_key hash_key = key_derive(store, half);
        struct hash_sip sip;
        hash_sip_start(&sip, &hash_key);
        hash_sip_add(&sip, &list, sizeof(list));
        hash_sip_add(&sip, &filter, sizeof(filter));
        hash_sip_add(&sip, key.bytes, key.size);
        uint64_t word = hash_sip_end(&sip);
        memcpy(tag + half * sizeof(word), &word, sizeof(word));
    }
}

/* Takes as long wherever they differ: a forger learns nothing from the time. */
static bool tag_equal(const uint8_t a[TAG_SIZE], const uint8_t b[TAG_SIZE])
{
    uint8_t difference = 0;
    for (size_t i = 0; i < TAG_SIZE; i++)
        difference |= a[i] ^ b[i];
    return difference == 0;
}

/* ---- base64url without padding ---- */

static size_t text_write(const uint8_t *bytes, size_t size, char *text)
{
    uint32_t bits = 0, held = 0;
    size_t length = 0;
    for (size_t i = 0; i < size; i++) {
        held = held << 8 | bytes[i];
        for (bits += 8; bits >= 6; bits -= 6)
            text[length++] = digits[held >> (bits - 6) & 63];
    }
    if (bits > 0)
        text[length++] = digits[held << (6 - bits) & 63];
    text[length] = '\0';
    return length;
}

/* 64: none of ours. */
static uint32_t digit_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return (uint32_t)(c - 'A');
    if (c >= 'a' && c <= 'z')
        return (uint32_t)(c - 'a') + 26;
    if (c >= '0' && c <= '9')
        return (uint32_t)(c - '0') + 52;
    return c == '-' ? 62 : c == '_' ? 63 : 64;
}

/* Exactly what text_write makes: no other text stands for the same bytes. False: it isn't. */
static bool text_read(const char *text, size_t length, uint8_t bytes[BYTES_MAX], size_t *ret_size)
{
    uint32_t bits = 0, held = 0;
    size_t size = 0;
    for (size_t i = 0; i < length; i++) {
        uint32_t value = digit_value(text[i]);
        if (value > 63)
            return false;
        held = held << 6 | value;
        bits += 6;
        if (bits >= 8) {
            if (size == BYTES_MAX)
                return false;
            bits -= 8;
            bytes[size++] = (uint8_t)(held >> bits);
        }
    }
    if (bits == 6 || (held & ((1u << bits) - 1)) != 0) /* a character too many, or bits that nobody wrote */
        return false;
    *ret_size = size;
    return true;
}

/* ---- tokens ---- */

size_t token_seal(const struct store *store, uint16_t list, uint64_t filter, struct span key,
                  char text[TOKEN_TEXT_MAX])
{
    uint8_t bytes[BYTES_MAX] = {TOKEN_VERSION};
    ASSERT(key.size <= KEY_SIZE_MAX);
    tag_make(store, list, filter, key, bytes + TAG_AT);
    if (key.size > 0)
        memcpy(bytes + KEY_AT, key.bytes, key.size);
    return text_write(bytes, KEY_AT + key.size, text);
}

enum error token_open(const struct store *store, uint16_t list, uint64_t filter, const char *text,
                      size_t length, struct key *ret_key)
{
    uint8_t bytes[BYTES_MAX], tag[TAG_SIZE];
    size_t size;
    if (length >= TOKEN_TEXT_MAX || !text_read(text, length, bytes, &size))
        return ERR_TOKEN;
    if (size < KEY_AT || bytes[0] != TOKEN_VERSION)
        return ERR_TOKEN;
    struct span key = span_of(bytes + KEY_AT, size - KEY_AT);
    tag_make(store, list, filter, key, tag);
    if (!tag_equal(tag, bytes + TAG_AT))
        return ERR_TOKEN;
    ret_key->size = 0;
    key_add(ret_key, key.bytes, key.size);
    return OK;
}
