/* Webhooks: a secret that is read is what a plain decoder reads in it, and is read again when it is written; a signature is OpenSSL's
 * HMAC over the same bytes, and another one after any change. */
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include "actors/webhook_signature.h"
#include "runtime/assert.h"
#include "tests/fuzz/bytes.h"

enum { PREFIX = sizeof WEBHOOK_SECRET_PREFIX - 1, TEXT_MAX = 600 };

/* The plain second reading of what stands behind the prefix, by OpenSSL: padded to fours. Its size, or -1. */
static int plain_decode(const char *text, size_t length, uint8_t *bytes)
{
    unsigned char padded[TEXT_MAX + 4];
    memcpy(padded, text, length);
    size_t whole = length;
    while (whole % 4)
        padded[whole++] = '=';
    int size = EVP_DecodeBlock(bytes, padded, (int)whole);
    for (size_t at = whole; size > 0 && at > 0 && whole - at < 2 && padded[at - 1] == '='; at--)
        size--;
    return size;
}

static void check_secret(struct bytes *input)
{
    char text[TEXT_MAX], again[WEBHOOK_SECRET_TEXT_MAX];
    uint8_t bytes[WEBHOOK_SECRET_BYTES_MAX], twice[WEBHOOK_SECRET_BYTES_MAX], plain[TEXT_MAX];
    uint32_t size = 0, size_again = 0;
    take_text(input, sizeof text - 1, text, sizeof text);
    struct span span = span_text(text);
    if (!webhook_secret_read(span, bytes, &size))
        return;
    if (strncmp(text, WEBHOOK_SECRET_PREFIX, PREFIX) != 0) {
        ASSERT(span_equal(span_of(bytes, size), span));
        return;
    }
    ASSERT(size >= 24 && size <= 64);
    ASSERT(plain_decode(text + PREFIX, span.size - PREFIX, plain) == (int)size &&
           memcmp(plain, bytes, size) == 0);
    webhook_secret_write(span_of(bytes, size), again);
    ASSERT(webhook_secret_read(span_text(again), twice, &size_again));
    ASSERT(span_equal(span_of(bytes, size), span_of(twice, size_again)));
}

static void plain_sign(struct span secret, const struct webhook_message *m, char *text)
{
    char head[2048], signature[64];
    uint8_t digest[EVP_MAX_MD_SIZE], all[4096];
    unsigned digest_size = 0;
    int n = snprintf(head, sizeof head, ".%llu.", (unsigned long long)m->at_s);
    size_t size = 0;
    memcpy(all, m->id.bytes, m->id.size), size += m->id.size;
    memcpy(all + size, head, (size_t)n), size += (size_t)n;
    memcpy(all + size, m->body.bytes, m->body.size), size += m->body.size;
    ASSERT(HMAC(EVP_sha256(), secret.bytes, (int)secret.size, all, size, digest, &digest_size) &&
           digest_size == 32);
    EVP_EncodeBlock((unsigned char *)signature, digest, 32);
    snprintf(text, WEBHOOK_SIGNATURE_SIZE, "v1,%s", signature);
}

static struct span some(struct bytes *input, size_t most)
{
    const char *piece = "";
    size_t size = take_piece(input, take_n(input, 2) % most, &piece);
    return span_of(size ? piece : "", size);
}

static void check_signature(struct bytes *input)
{
    char ours[WEBHOOK_SIGNATURE_SIZE], plain[WEBHOOK_SIGNATURE_SIZE], other[WEBHOOK_SIGNATURE_SIZE];
    struct span secret = some(input, WEBHOOK_SECRET_BYTES_MAX);
    struct webhook_message m = {.at_s = take_n(input, 8)};
    m.id = some(input, 100);
    m.body = some(input, 2000);
    webhook_sign(secret, &m, ours);
    plain_sign(secret, &m, plain);
    ASSERT(strcmp(ours, plain) == 0);
    m.at_s++;
    webhook_sign(secret, &m, other);
    ASSERT(strcmp(ours, other) != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes input = {data, size};
    if (take(&input) & 1)
        check_signature(&input);
    else
        check_secret(&input);
    return 0;
}
