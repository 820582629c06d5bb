/* SHA-256 against the examples of FIPS 180-4 and against libcrypto's, and the comparison of secrets. */
#include "acutest.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>

#include "store/sha256.h"

static void check_digest(const void *bytes, size_t size, const char *hex)
{
    uint8_t digest[SHA256_SIZE];
    char text[2 * SHA256_SIZE + 1];
    sha256_of(bytes, size, digest);
    for (size_t i = 0; i < sizeof(digest); i++)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
    TEST_CHECK_(strcmp(text, hex) == 0, "%zu bytes: %s", size, text);
}

static void test_the_examples(void)
{
    static const char two[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    char *million = malloc(1000000);
    TEST_ASSERT(million != NULL);
    memset(million, 'a', 1000000);
    check_digest(NULL, 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    check_digest("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    check_digest(two, sizeof(two) - 1, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    check_digest(million, 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    free(million);
}

static void test_every_length_around_a_block_as_libcrypto_does(void)
{
    uint8_t bytes[300], ours[SHA256_SIZE], theirs[EVP_MAX_MD_SIZE];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(i * 167 + 13);
    for (size_t size = 0; size <= sizeof(bytes); size++) {
        sha256_of(bytes, size, ours);
        TEST_ASSERT(EVP_Digest(bytes, size, theirs, NULL, EVP_sha256(), NULL) == 1);
        TEST_CHECK_(memcmp(ours, theirs, sizeof(ours)) == 0, "%zu bytes", size);
        sha256_plainly(bytes, size, ours);
        TEST_CHECK_(memcmp(ours, theirs, sizeof(ours)) == 0, "%zu bytes, plainly", size);
    }
}

static void test_pieces_make_the_same_digest(void)
{
    uint8_t bytes[300], whole[SHA256_SIZE], pieces[SHA256_SIZE];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(i * 59 + 7);
    sha256_of(bytes, sizeof(bytes), whole);
    for (size_t step = 1; step <= sizeof(bytes); step++) {
        struct sha256 sha;
        sha256_start(&sha);
        for (size_t at = 0; at < sizeof(bytes); at += step)
            sha256_add(&sha, bytes + at, step < sizeof(bytes) - at ? step : sizeof(bytes) - at);
        sha256_end(&sha, pieces);
        TEST_CHECK_(memcmp(whole, pieces, sizeof(whole)) == 0, "pieces of %zu", step);
    }
}

static void test_hmac_as_libcrypto_makes_it(void)
{
    uint8_t key[200], message[150], ours[SHA256_SIZE], theirs[EVP_MAX_MD_SIZE];
    memset(key, 0x0b, sizeof(key));
    memset(message, 'm', sizeof(message));
    for (size_t size = 0; size <= sizeof(key); size++) {
        struct hmac hmac;
        unsigned length = 0;
        hmac_start(&hmac, key, size);
        hmac_add(&hmac, message, size / 2);
        hmac_add(&hmac, message + size / 2, sizeof(message) - size / 2);
        hmac_end(&hmac, ours);
        TEST_ASSERT(HMAC(EVP_sha256(), key, (int)size, message, sizeof(message), theirs, &length) != NULL);
        TEST_CHECK_(length == sizeof(ours) && memcmp(ours, theirs, sizeof(ours)) == 0, "a key of %zu", size);
    }
}

static void test_secrets_are_equal_or_not(void)
{
    uint8_t a[40], b[40];
    memset(a, 0x5a, sizeof(a));
    memcpy(b, a, sizeof(b));
    TEST_CHECK(secret_equal(a, b, sizeof(a)) && secret_equal(a, b, 0));
    for (size_t bit = 0; bit < 8 * sizeof(b); bit++) {
        b[bit / 8] ^= (uint8_t)(1 << bit % 8);
        TEST_CHECK_(!secret_equal(a, b, sizeof(a)), "bit %zu", bit);
        b[bit / 8] = a[bit / 8];
    }
}

TEST_LIST
= {
    {"the examples", test_the_examples},
    {"every length around a block, as libcrypto does", test_every_length_around_a_block_as_libcrypto_does},
    {"pieces make the same digest", test_pieces_make_the_same_digest},
    {"HMAC as libcrypto makes it", test_hmac_as_libcrypto_makes_it},
    {"secrets are equal or not", test_secrets_are_equal_or_not},
    {NULL, NULL},
};
