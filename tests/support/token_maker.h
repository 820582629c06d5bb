/* Tokens for tests, made with OpenSSL alone: nothing of http/jwt.c signs or encodes here. */
#ifndef COPPICE_TESTS_SUPPORT_TOKEN_MAKER_H
#define COPPICE_TESTS_SUPPORT_TOKEN_MAKER_H

#include <stddef.h>
#include <stdint.h>

#define MAKER_TEXT_MAX 16384u

struct evp_pkey_st;

/* A key of one algorithm, with its public half as JWK. */
struct maker_key {
    struct evp_pkey_st *pkey;
    const char *algorithm; /* "RS256", ... */
    char kid[64];
    char jwk[4096];
};
/* rsa_bits: 2048 unless a weak one is wanted; curve NULL: the algorithm's. */
void maker_key_make(struct maker_key *key, const char *algorithm, const char *kid);
void maker_key_make_rsa(struct maker_key *key, const char *algorithm, const char *kid, unsigned bits);
void maker_key_free(struct maker_key *key);

/* base64url without padding, with a 0 behind it. */
size_t maker_base64url(const void *bytes, size_t size, char *text);

/* header.payload.signature, signed with the key by its own algorithm whatever the header says. Returns the length. */
size_t maker_sign(const struct maker_key *key, const char *header, const char *payload,
                  char text[MAKER_TEXT_MAX]);
/* The same by another algorithm than the key's: "RS512" with an RS256 key, or "HS256" with these bytes as secret. */
size_t maker_sign_as(const struct maker_key *key, const char *algorithm, const char *header,
                     const char *payload, char text[MAKER_TEXT_MAX]);
size_t maker_sign_hmac(const void *secret, size_t secret_size, const char *header, const char *payload,
                       char text[MAKER_TEXT_MAX]);
/* These bytes as signature. */
size_t maker_join(const char *header, const char *payload, const void *signature, size_t size,
                  char text[MAKER_TEXT_MAX]);

/* The public half as PEM, for those who would take it for a secret. */
size_t maker_pem(const struct maker_key *key, char text[4096]);

#endif
