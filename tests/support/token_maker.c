#include "tests/support/token_maker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>

#include "runtime/assert.h"

static const struct maker_algorithm {
    const char *name, *digest, *curve, *crv;
    int coordinate;
} algorithms[] = {
    {"RS256", "SHA256", NULL, NULL, 0},        {"RS384", "SHA384", NULL, NULL, 0},
    {"RS512", "SHA512", NULL, NULL, 0},        {"ES256", "SHA256", "P-256", "P-256", 32},
    {"ES384", "SHA384", "P-384", "P-384", 48}, {"ES512", "SHA512", "P-521", "P-521", 66},
};

static const struct maker_algorithm *algorithm_named(const char *name)
{
    for (size_t i = 0; i < sizeof(algorithms) / sizeof(algorithms[0]); i++)
        if (strcmp(algorithms[i].name, name) == 0)
            return &algorithms[i];
    abort(); /* not one of the six */
}

size_t maker_base64url(const void *bytes, size_t size, char *text)
{
    size_t length = (size_t)EVP_EncodeBlock((unsigned char *)text, bytes, (int)size);
    while (length > 0 && text[length - 1] == '=')
        length--;
    for (size_t i = 0; i < length; i++)
        text[i] = text[i] == '+' ? '-' : text[i] == '/' ? '_' : text[i];
    text[length] = 0;
    return length;
}

/* ---- keys ---- */

static void number(const struct maker_key *key, const char *param, int size, char *text)
{
    unsigned char bytes[1100];
    BIGNUM *value = NULL;
    ASSERT(EVP_PKEY_get_bn_param(key->pkey, param, &value) == 1);
    int length = size ? size : BN_num_bytes(value);
    ASSERT(BN_bn2binpad(value, bytes, length) == length);
    maker_base64url(bytes, (size_t)length, text);
    BN_free(value);
}

static void write_jwk(struct maker_key *key)
{
    const struct maker_algorithm *a = algorithm_named(key->algorithm);
    char first[1600], second[1600];
    number(key, a->curve ? OSSL_PKEY_PARAM_EC_PUB_X : OSSL_PKEY_PARAM_RSA_N, a->coordinate, first);
    number(key, a->curve ? OSSL_PKEY_PARAM_EC_PUB_Y : OSSL_PKEY_PARAM_RSA_E, a->coordinate, second);
    int length =
        a->curve
            ? snprintf(key->jwk, sizeof(key->jwk),
                       "{\"kty\":\"EC\",\"use\":\"sig\",\"alg\":\"%s\",\"kid\":\"%s\",\"crv\":\"%s\",\"x\":"
                       "\"%s\",\"y\":\"%s\"}",
                       a->name, key->kid, a->crv, first, second)
            : snprintf(
                  key->jwk, sizeof(key->jwk),
                  "{\"kty\":\"RSA\",\"use\":\"sig\",\"alg\":\"%s\",\"kid\":\"%s\",\"n\":\"%s\",\"e\":\"%s\"}",
                  a->name, key->kid, first, second);
    ASSERT(length > 0 && (size_t)length < sizeof(key->jwk));
}

static void name_key(struct maker_key *key, const char *algorithm, const char *kid)
{
    key->algorithm = algorithm;
    snprintf(key->kid, sizeof(key->kid), "%s", kid);
}

void maker_key_make_rsa(struct maker_key *key, const char *algorithm, const char *kid, unsigned bits)
{
    name_key(key, algorithm, kid);
    key->pkey = EVP_RSA_gen(bits);
    ASSERT(key->pkey);
    write_jwk(key);
}

void maker_key_make(struct maker_key *key, const char *algorithm, const char *kid)
{
    const struct maker_algorithm *a = algorithm_named(algorithm);
    if (!a->curve) {
        maker_key_make_rsa(key, algorithm, kid, 2048);
        return;
    }
    name_key(key, algorithm, kid);
    key->pkey = EVP_EC_gen(a->curve);
    ASSERT(key->pkey);
    write_jwk(key);
}

void maker_key_free(struct maker_key *key)
{
    EVP_PKEY_free(key->pkey);
    key->pkey = NULL;
}

size_t maker_pem(const struct maker_key *key, char text[4096])
{
    BIO *bio = BIO_new(BIO_s_mem());
    ASSERT(bio && PEM_write_bio_PUBKEY(bio, key->pkey) == 1);
    int size = BIO_read(bio, text, 4095);
    ASSERT(size > 0);
    text[size] = 0;
    BIO_free(bio);
    return (size_t)size;
}

/* ---- tokens ---- */

static size_t join(const char *header, const char *payload, char *text)
{
    size_t used = maker_base64url(header, strlen(header), text);
    text[used++] = '.';
    return used + maker_base64url(payload, strlen(payload), text + used);
}

static size_t add_signature(char *text, size_t used, const void *signature, size_t size)
{
    text[used++] = '.';
    return used + maker_base64url(signature, size, text + used);
}

size_t maker_join(const char *header, const char *payload, const void *signature, size_t size,
                  char text[MAKER_TEXT_MAX])
{
    return add_signature(text, join(header, payload, text), signature, size);
}

static size_t raw_of(const unsigned char *der, size_t size, int coordinate, unsigned char *raw)
{
    const unsigned char *at = der;
    ECDSA_SIG *signature = d2i_ECDSA_SIG(NULL, &at, (long)size);
    ASSERT(signature);
    ASSERT(BN_bn2binpad(ECDSA_SIG_get0_r(signature), raw, coordinate) == coordinate);
    ASSERT(BN_bn2binpad(ECDSA_SIG_get0_s(signature), raw + coordinate, coordinate) == coordinate);
    ECDSA_SIG_free(signature);
    return 2 * (size_t)coordinate;
}

size_t maker_sign_as(const struct maker_key *key, const char *algorithm, const char *header,
                     const char *payload, char text[MAKER_TEXT_MAX])
{
    const struct maker_algorithm *a = algorithm_named(algorithm), *own = algorithm_named(key->algorithm);
    unsigned char signature[2048], raw[2 * 66];
    size_t size = sizeof(signature), used = join(header, payload, text);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    ASSERT(context && EVP_DigestSignInit_ex(context, NULL, a->digest, NULL, NULL, key->pkey, NULL) == 1);
    ASSERT(EVP_DigestSign(context, signature, &size, (unsigned char *)text, used) == 1);
    EVP_MD_CTX_free(context);
    if (!own->curve)
        return add_signature(text, used, signature, size);
    return add_signature(text, used, raw, raw_of(signature, size, own->coordinate, raw));
}

size_t maker_sign(const struct maker_key *key, const char *header, const char *payload,
                  char text[MAKER_TEXT_MAX])
{
    return maker_sign_as(key, key->algorithm, header, payload, text);
}

size_t maker_sign_hmac(const void *secret, size_t secret_size, const char *header, const char *payload,
                       char text[MAKER_TEXT_MAX])
{
    unsigned char mac[EVP_MAX_MD_SIZE];
    unsigned int size = 0;
    size_t used = join(header, payload, text);
    ASSERT(HMAC(EVP_sha256(), secret, (int)secret_size, (unsigned char *)text, used, mac, &size));
    return add_signature(text, used, mac, size);
}
