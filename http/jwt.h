/* JSON Web Tokens, compact form, verified as spec/control.md groups 7 and 9 say. Pure: no clock, no store, no table;
 * the caller brings the key that the token's kid names.
 *
 * RS256, RS384, RS512, ES256, ES384, ES512; everything else is refused by name before any cryptography. jku, x5u, x5c
 * and jwk in a header are ignored, crit is refused, nested and compressed tokens are refused, base64url is strict.
 */
#ifndef COPPICE_HTTP_JWT_H
#define COPPICE_HTTP_JWT_H

#include "http/identity.h"
#include "http/json_text.h"

#define JWT_SIZE_MAX      8192u
#define JWT_KID_MAX       128u
#define JWT_NODES_MAX     256u
#define JWT_SIGNATURE_MAX 1024u /* RSA of 8192 bits */
#define JWT_AUDIENCES_MAX 8u
#define JWT_TEXT_MAX      256u /* bytes of iss and aud; of sub and the others IDENTITY_SUBJECT_MAX */

#define JWT_ALGORITHMS(X) X(RS256) X(RS384) X(RS512) X(ES256) X(ES384) X(ES512)
enum jwt_algorithm {
    JWT_NONE = 0, /* or one that is not ours */
#define X(name) JWT_##name,
    JWT_ALGORITHMS(X)
#undef X
        JWT_ALGORITHM_COUNT
};

/* What stopped a token; spec/control.md CTL-093. X(ID, "stage" for metrics and audits) */
#define JWT_STAGES(X)                        \
    X(FORM, "form") /* not a token at all */ \
    X(BLOCKLIST, "blocklist")                \
    X(SIGNATURE, "signature")                \
    X(CLAIMS, "claims")                      \
    X(REPLAY, "replay")                      \
    X(STORE, "store") /* nobody's fault: whether it is a replay could not be found out */
enum jwt_stage {
    JWT_STAGE_OK = 0,
#define X(id, name) JWT_STAGE_##id,
    JWT_STAGES(X)
#undef X
        JWT_STAGE_COUNT
};

/* Decoded, not yet believed. Spans point into `storage`. What is wrong with a claim is kept as `defect` until the claims'
 * turn comes, because a bad signature counts first. */
struct jwt {
    enum jwt_algorithm algorithm; /* the header's word for it */
    char kid[JWT_KID_MAX + 1];    /* empty: the header names none */
    struct span issuer, subject, session, jti, role, kid_claim;
    bool has_exp, has_iat, has_nbf, all_projects;
    uint64_t exp, iat, nbf; /* s */
    struct span audiences[JWT_AUDIENCES_MAX];
    uint32_t audiences_count;
    struct span projects[IDENTITY_PROJECTS_MAX];
    uint32_t projects_count;
    bool has_scope;
    const char *defect;      /* static; NULL: none */
    struct span signed_text; /* what the signature is over, in the token */
    uint32_t signature_size;
    uint8_t signature[JWT_SIGNATURE_MAX];
    uint32_t storage_used;
    char storage[JWT_SIZE_MAX];
    struct json_node nodes[JWT_NODES_MAX];
};

/* NULL: *ret is filled. Else what is wrong with its form, as a static text for logs. */
const char *jwt_read(struct span token, struct jwt *ret);

/* libcrypto is loaded by whoever makes the first key; nothing in here is done without a key, but for reading. */
struct jwt_key; /* a public key bound to one algorithm; immutable, any thread */
/* From a JWK (an object of a key set, which must name a kid, and an alg unless its curve leaves only one). NULL and a
 * sentence. Weak keys are refused: RSA below 2048 bits, curves other than the algorithm's, points that aren't on it; and
 * whatever is meant for something else (use, key_ops), or holds a private half. Allocates: not on the request's path. */
struct jwt_key *jwt_key_from_jwk(const struct json_text *json, const struct json_node *jwk, char *ret_text,
                                 size_t text_size);
void jwt_key_free(struct jwt_key *key); /* accepts NULL */
enum jwt_algorithm jwt_key_algorithm(const struct jwt_key *key);
const char *jwt_key_kid(const struct jwt_key *key);
/* Verifies with the key's own algorithm, whatever the header says. Guarded section; 22 to 110 us. */
bool jwt_key_verify(const struct jwt_key *key, const struct jwt *jwt);

/* ---- the other side, for the built-in issuer: ES256 ---- */

#define JWT_SECRET_SIZE 32u /* the private half: a number below the order of P-256 */
#define JWT_JWK_MAX     512u

struct jwt_signer; /* a private key; immutable, any thread */
/* A private half out of chance: draw is asked until a number fits, which nearly always is at once. Writes the
 * secret, which the caller seals and wipes. */
void jwt_secret_make(void (*draw)(void *context, void *bytes, size_t size), void *context,
                     uint8_t ret_secret[JWT_SECRET_SIZE]);
/* NULL: no private half of a key, or no memory. */
struct jwt_signer *jwt_signer_create(const char *kid, const uint8_t secret[JWT_SECRET_SIZE]);
void jwt_signer_free(struct jwt_signer *signer); /* accepts NULL; wipes */
const char *jwt_signer_kid(const struct jwt_signer *signer);
/* The public half as a JWK: {"kty":"EC","use":"sig","alg":"ES256","kid":...,"crv":"P-256","x":...,"y":...}. */
size_t jwt_signer_jwk(const struct jwt_signer *signer, char text[JWT_JWK_MAX]);
/* header.payload.signature of these claims (a JSON object); the length, or 0: it doesn't fit. Guarded section; 30 us. */
size_t jwt_sign(const struct jwt_signer *signer, struct span claims, char *text, size_t size);

struct jwt_policy {
    const char *const *issuers;   /* NULL-terminated */
    const char *const *audiences; /* NULL-terminated */
    uint64_t skew_s;              /* 120: of iat and nbf; exp has none */
    uint64_t lifetime_s;          /* 28800 */
    uint64_t agent_lifetime_s;    /* 14400 */
};
/* The claims of a token whose signature was good; NULL, or what is wrong. */
const char *jwt_check_claims(const struct jwt *jwt, const struct jwt_policy *policy,
                             enum jwt_algorithm key_algorithm, uint64_t now_s);

#endif
