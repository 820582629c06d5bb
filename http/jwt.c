#include "http/jwt.h"

#include <stdio.h>
#include <stdlib.h>

#include <openssl/core_names.h>
#include <openssl/obj_mac.h>

#include "runtime/actor.h"
#include "runtime/json.h"
#include "store/crypto.h"

enum {
    PART_DEPTH_MAX = 8, /* of header and payload */
    RSA_BITS_MIN = 2048,
    COORDINATE_MAX = 66,                    /* bytes of P-521 */
    DER_MAX = 2 * (COORDINATE_MAX + 3) + 3, /* SEQUENCE of two INTEGERs, each perhaps with a 0 in front */
};

/* ---- algorithms ---- */

static const struct algorithm {
    const char *name, *digest;
    const char *curve;   /* NULL: RSA */
    const char *group;   /* what OpenSSL calls the curve */
    uint32_t coordinate; /* bytes of r, of s, of x and of y */
} algorithms[JWT_ALGORITHM_COUNT] = {
    [JWT_RS256] = {"RS256", "SHA256", NULL, NULL, 0},
    [JWT_RS384] = {"RS384", "SHA384", NULL, NULL, 0},
    [JWT_RS512] = {"RS512", "SHA512", NULL, NULL, 0},
    [JWT_ES256] = {"ES256", "SHA256", "P-256", "prime256v1", 32},
    [JWT_ES384] = {"ES384", "SHA384", "P-384", "secp384r1", 48},
    [JWT_ES512] = {"ES512", "SHA512", "P-521", "secp521r1", 66},
};

static enum jwt_algorithm algorithm_named(struct span name)
{
    for (int i = JWT_NONE + 1; i < JWT_ALGORITHM_COUNT; i++)
        if (span_equal(span_text(algorithms[i].name), name))
            return (enum jwt_algorithm)i;
    return JWT_NONE;
}

/* ---- base64url, strict: no padding, no other characters, and no bits left over that aren't 0 ---- */

static const int8_t values[256] = {
    ['A'] = 1,  ['B'] = 2,  ['C'] = 3,  ['D'] = 4,  ['E'] = 5,  ['F'] = 6,  ['G'] = 7,  ['H'] = 8,
    ['I'] = 9,  ['J'] = 10, ['K'] = 11, ['L'] = 12, ['M'] = 13, ['N'] = 14, ['O'] = 15, ['P'] = 16,
    ['Q'] = 17, ['R'] = 18, ['S'] = 19, ['T'] = 20, ['U'] = 21, ['V'] = 22, ['W'] = 23, ['X'] = 24,
    ['Y'] = 25, ['Z'] = 26, ['a'] = 27, ['b'] = 28, ['c'] = 29, ['d'] = 30, ['e'] = 31, ['f'] = 32,
    ['g'] = 33, ['h'] = 34, ['i'] = 35, ['j'] = 36, ['k'] = 37, ['l'] = 38, ['m'] = 39, ['n'] = 40,
    ['o'] = 41, ['p'] = 42, ['q'] = 43, ['r'] = 44, ['s'] = 45, ['t'] = 46, ['u'] = 47, ['v'] = 48,
    ['w'] = 49, ['x'] = 50, ['y'] = 51, ['z'] = 52, ['0'] = 53, ['1'] = 54, ['2'] = 55, ['3'] = 56,
    ['4'] = 57, ['5'] = 58, ['6'] = 59, ['7'] = 60, ['8'] = 61, ['9'] = 62, ['-'] = 63, ['_'] = 64,
}; /* value + 1; 0: none of ours */
static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static bool base64url_read(struct span text, void *ret_bytes, size_t room, uint32_t *ret_size)
{
    const uint8_t *from = text.bytes;
    uint8_t *to = ret_bytes;
    uint32_t bits = 0, held = 0, used = 0;
    if (text.size % 4 == 1)
        return false;
    for (uint32_t i = 0; i < text.size; i++) {
        int value = values[from[i]] - 1;
        if (value < 0)
            return false;
        bits = bits << 6 | (uint32_t)value;
        held += 6;
        if (held < 8)
            continue;
        held -= 8;
        if (used == room)
            return false;
        to[used++] = (uint8_t)(bits >> held);
    }
    if (bits & ((1u << held) - 1))
        return false;
    *ret_size = used;
    return true;
}

static size_t base64url_write(const uint8_t *bytes, size_t size, char *text)
{
    uint32_t bits = 0, held = 0;
    size_t used = 0;
    for (size_t i = 0; i < size; i++) {
        bits = bits << 8 | bytes[i];
        for (held += 8; held >= 6;) {
            held -= 6;
            text[used++] = digits[bits >> held & 63];
        }
    }
    if (held)
        text[used++] = digits[bits << (6 - held) & 63];
    return used;
}

static size_t base64url_size(size_t size)
{
    return (size * 8 + 5) / 6;
}

/* ---- reading: the three parts ---- */

/* The part's JSON object, in jwt->nodes until the next part is read. */
static bool part_read(struct span part, struct jwt *jwt, struct json_text *ret_json)
{
    struct json_error error;
    uint32_t size;
    char *at = jwt->storage + jwt->storage_used;
    if (!base64url_read(part, at, sizeof(jwt->storage) - jwt->storage_used, &size))
        return false;
    jwt->storage_used += size;
    *ret_json = (struct json_text){.nodes = jwt->nodes, .nodes_max = JWT_NODES_MAX};
    return json_text_read(ret_json, span_of(at, size), &(struct json_limits){.depth = PART_DEPTH_MAX},
                          &error) &&
           json_root(ret_json)->kind == JSON_OBJECT;
}

/* A string; in place when it holds no escapes, else written behind what is in storage. */
static bool text_of(struct jwt *jwt, const struct json_text *json, const struct json_node *node,
                    struct span *ret_text)
{
    char *room = jwt->storage + jwt->storage_used;
    if (node->kind != JSON_STRING ||
        !json_string_of(json, node, room, sizeof(jwt->storage) - jwt->storage_used, ret_text))
        return false;
    if (ret_text->bytes == room)
        jwt->storage_used += ret_text->size;
    return true;
}

/* An ASCII letter has two forms, and nothing else does: what isn't a letter in the words below stands before 'A'. */
static bool same_word(struct span text, const char *word)
{
    const char *at = text.bytes;
    if (text.size != strlen(word))
        return false;
    for (uint32_t i = 0; i < text.size; i++)
        if (at[i] != word[i] && !((at[i] ^ word[i]) == 0x20 && word[i] >= 'A'))
            return false;
    return true;
}

static const char *header_read(struct jwt *jwt, const struct json_text *json)
{
    const struct json_node *root = json_root(json), *node;
    struct span text;
    if (json_member(json, root, "crit"))
        return "the header has crit";
    if (json_member(json, root, "zip") || json_member(json, root, "enc"))
        return "compressed or encrypted";
    if (json_member(json, root, "cty"))
        return "nested";
    node = json_member(json, root, "typ");
    if (node && (!text_of(jwt, json, node, &text) || !(same_word(text, "JWT") || same_word(text, "at+jwt") ||
                                                       same_word(text, "application/at+jwt"))))
        return "typ is not JWT";
    node = json_member(json, root, "alg");
    if (!node || !text_of(jwt, json, node, &text))
        return "no alg";
    jwt->algorithm = algorithm_named(text);
    node = json_member(json, root, "kid");
    if (!node)
        return NULL;
    if (!text_of(jwt, json, node, &text) || text.size > JWT_KID_MAX)
        return "kid is not a text, or too long";
    memcpy(jwt->kid, text.bytes, text.size); /* without NULs, as any text here */
    return NULL;
}

/* ---- reading: claims. The first thing that is wrong is kept. ---- */

static void defect(struct jwt *jwt, const char *what)
{
    if (!jwt->defect)
        jwt->defect = what;
}

static void claim_text(struct jwt *jwt, const struct json_text *json, const char *name, uint32_t most,
                       struct span *ret, const char *what)
{
    const struct json_node *node = json_member(json, json_root(json), name);
    struct span text;
    if (!node)
        return;
    if (text_of(jwt, json, node, &text) && text.size > 0 && text.size <= most)
        *ret = text;
    else
        defect(jwt, what);
}

static bool claim_time(struct jwt *jwt, const struct json_text *json, const char *name, uint64_t *ret,
                       const char *what)
{
    const struct json_node *node = json_member(json, json_root(json), name);
    if (!node)
        return false;
    if (node->kind == JSON_NUMBER && json_uint64_of(json, node, ret) && *ret < UINT64_MAX / 4)
        return true;
    defect(jwt, what);
    return false;
}

/* One text, or an array of them. */
static void claim_list(struct jwt *jwt, const struct json_text *json, const char *name, uint32_t text_max,
                       struct span *list, uint32_t most, uint32_t *ret_count, const char *what)
{
    const struct json_node *node = json_member(json, json_root(json), name), *child = node;
    uint32_t count = 0;
    if (!node)
        return;
    if (node->kind == JSON_ARRAY)
        child = json_first(json, node);
    for (; child; child = node->kind == JSON_ARRAY ? json_after(json, node, child) : NULL) {
        if (count == most || !text_of(jwt, json, child, &list[count]) || list[count].size == 0 ||
            list[count].size > text_max) {
            defect(jwt, what);
            return;
        }
        count++;
    }
    *ret_count = count;
}

static void claims_read(struct jwt *jwt, const struct json_text *json)
{
    claim_text(jwt, json, "iss", JWT_TEXT_MAX, &jwt->issuer, "iss is not a text");
    claim_text(jwt, json, "sub", IDENTITY_SUBJECT_MAX, &jwt->subject, "sub is not a text, or too long");
    claim_text(jwt, json, "session_id", IDENTITY_SUBJECT_MAX, &jwt->session, "session_id is not a text");
    claim_text(jwt, json, "jti", IDENTITY_SUBJECT_MAX, &jwt->jti, "jti is not a text, or too long");
    claim_text(jwt, json, "role", IDENTITY_SUBJECT_MAX, &jwt->role, "role is not a text");
    claim_text(jwt, json, "kid", JWT_KID_MAX, &jwt->kid_claim, "the claim kid is not a text");
    jwt->has_exp = claim_time(jwt, json, "exp", &jwt->exp, "exp is not a time");
    jwt->has_iat = claim_time(jwt, json, "iat", &jwt->iat, "iat is not a time");
    jwt->has_nbf = claim_time(jwt, json, "nbf", &jwt->nbf, "nbf is not a time");
    claim_list(jwt, json, "aud", JWT_TEXT_MAX, jwt->audiences, JWT_AUDIENCES_MAX, &jwt->audiences_count,
               "aud is not a text or a few of them");
    claim_list(jwt, json, "project_scope", IDENTITY_SUBJECT_MAX, jwt->projects, IDENTITY_PROJECTS_MAX,
               &jwt->projects_count, "project_scope is not a list of projects, or too long");
    jwt->has_scope = json_member(json, json_root(json), "project_scope") != NULL;
    for (uint32_t i = 0; i < jwt->projects_count; i++)
        jwt->all_projects |= span_equal(jwt->projects[i], span_text("*"));
}

/* The position of the next dot at or after `from`, or the size. */
static uint32_t dot_after(struct span token, uint32_t from)
{
    const char *at = token.bytes;
    const char *dot = from < token.size ? memchr(at + from, '.', token.size - from) : NULL;
    return dot ? (uint32_t)(dot - at) : token.size;
}

const char *jwt_read(struct span token, struct jwt *ret)
{
    struct json_text json;
    const char *at = token.bytes;
    if (token.size > JWT_SIZE_MAX)
        return "too long";
    uint32_t first = dot_after(token, 0), second = dot_after(token, first + 1);
    if (first >= token.size || second >= token.size || dot_after(token, second + 1) != token.size)
        return "not three parts";
    memset(ret, 0, offsetof(struct jwt, signature));
    ret->storage_used = 0;
    if (!base64url_read(span_of(at + second + 1, token.size - second - 1), ret->signature,
                        sizeof(ret->signature), &ret->signature_size))
        return "the signature is not base64url";
    ret->signed_text = span_of(at, second);
    if (!part_read(span_of(at, first), ret, &json))
        return "the header is not base64url of a JSON object";
    const char *why = header_read(ret, &json);
    if (why)
        return why;
    if (!part_read(span_of(at + first + 1, second - first - 1), ret, &json))
        return "the payload is not base64url of a JSON object";
    claims_read(ret, &json);
    return NULL;
}

/* ---- claims ---- */

static bool listed(const char *const *list, struct span text)
{
    for (; *list; list++)
        if (span_equal(span_text(*list), text))
            return true;
    return false;
}

static const char *check_presence(const struct jwt *jwt)
{
    if (jwt->subject.size == 0)
        return "no sub";
    if (jwt->role.size == 0)
        return "no role";
    if (!jwt->has_scope || jwt->projects_count == 0)
        return "no project_scope";
    if (jwt->session.size == 0)
        return "no session_id";
    if (jwt->issuer.size == 0)
        return "no iss";
    if (jwt->audiences_count == 0)
        return "no aud";
    if (!jwt->has_exp)
        return "no exp";
    if (!jwt->has_iat)
        return "no iat";
    return jwt->jti.size == 0 ? "no jti" : NULL;
}

/* exp has no leeway; whoever's clock is ahead of ours may be so by the skew. */
static const char *check_times(const struct jwt *jwt, const struct jwt_policy *policy, uint64_t now_s)
{
    bool agent = role_of(jwt->role) == ROLE_AGENT;
    uint64_t most = agent ? policy->agent_lifetime_s : policy->lifetime_s;
    if (jwt->exp <= now_s)
        return "expired";
    if (jwt->iat > now_s + policy->skew_s)
        return "iat is in the future";
    if (jwt->has_nbf && jwt->nbf > now_s + policy->skew_s)
        return "nbf is in the future";
    if (jwt->exp <= jwt->iat)
        return "exp is not after iat";
    if (jwt->exp - jwt->iat > most) /* nor is it older than that: exp lies ahead */
        return agent ? "lives longer than an agent's token may" : "lives longer than a token may";
    return NULL;
}

const char *jwt_check_claims(const struct jwt *jwt, const struct jwt_policy *policy,
                             enum jwt_algorithm key_algorithm, uint64_t now_s)
{
    bool meant = false;
    if (jwt->defect)
        return jwt->defect;
    const char *why = check_presence(jwt);
    if (why)
        return why;
    if (!listed(policy->issuers, jwt->issuer))
        return "iss is not trusted";
    for (uint32_t i = 0; i < jwt->audiences_count; i++)
        meant |= listed(policy->audiences, jwt->audiences[i]);
    if (!meant)
        return "aud is somebody else";
    if (jwt->algorithm != key_algorithm)
        return "alg is not the key's";
    if (jwt->kid_claim.size > 0 && !span_equal(jwt->kid_claim, span_text(jwt->kid)))
        return "the claim kid is not the header's";
    return check_times(jwt, policy, now_s);
}

/* ---- keys ---- */

struct jwt_key {
    enum jwt_algorithm algorithm;
    EVP_PKEY *pkey;
    EVP_MD *digest;
    char kid[JWT_KID_MAX + 1];
};

static bool refuse(char *ret_text, size_t text_size, const char *what)
{
    snprintf(ret_text, text_size, "%s", what);
    return false;
}

static bool jwk_text(const struct json_text *json, const struct json_node *jwk, const char *name, char *room,
                     size_t size, struct span *ret_text)
{
    const struct json_node *node = json_member(json, jwk, name);
    return node && node->kind == JSON_STRING && json_string_of(json, node, room, size, ret_text);
}

static bool jwk_bytes(const struct json_text *json, const struct json_node *jwk, const char *name,
                      uint8_t *bytes, size_t room, uint32_t *ret_size)
{
    char text[2 * JWT_SIGNATURE_MAX];
    struct span span;
    return jwk_text(json, jwk, name, text, sizeof(text), &span) &&
           base64url_read(span, bytes, room, ret_size) && *ret_size > 0;
}

/* use and key_ops, when they are there, must be for verifying. */
static bool jwk_for_signatures(const struct json_text *json, const struct json_node *jwk)
{
    const struct json_node *use = json_member(json, jwk, "use"), *ops = json_member(json, jwk, "key_ops");
    struct span text;
    char room[32];
    if (use &&
        (!jwk_text(json, jwk, "use", room, sizeof(room), &text) || !span_equal(text, span_text("sig"))))
        return false;
    if (!ops)
        return true;
    for (const struct json_node *op = ops->kind == JSON_ARRAY ? json_first(json, ops) : NULL; op;
         op = json_after(json, ops, op))
        if (op->kind == JSON_STRING && json_string_of(json, op, room, sizeof(room), &text) &&
            span_equal(text, span_text("verify")))
            return true;
    return false;
}

static bool jwk_is_private(const struct json_text *json, const struct json_node *jwk)
{
    static const char *const names[] = {"d", "p", "q", "dp", "dq", "qi", "oth", "k"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (json_member(json, jwk, names[i]))
            return true;
    return false;
}

static enum jwt_algorithm algorithm_of_curve(struct span curve)
{
    for (int i = JWT_NONE + 1; i < JWT_ALGORITHM_COUNT; i++)
        if (algorithms[i].curve && span_equal(span_text(algorithms[i].curve), curve))
            return (enum jwt_algorithm)i;
    return JWT_NONE;
}

/* What the key is bound to: its alg, or what its curve leaves. JWT_NONE: nothing that fits. */
static enum jwt_algorithm jwk_algorithm(const struct json_text *json, const struct json_node *jwk)
{
    char kty_room[16], crv_room[16], alg_room[16];
    struct span kty, crv, alg;
    enum jwt_algorithm by_curve = JWT_NONE;
    if (!jwk_text(json, jwk, "kty", kty_room, sizeof(kty_room), &kty))
        return JWT_NONE;
    bool ec = span_equal(kty, span_text("EC"));
    if (!ec && !span_equal(kty, span_text("RSA")))
        return JWT_NONE;
    if (ec && jwk_text(json, jwk, "crv", crv_room, sizeof(crv_room), &crv))
        by_curve = algorithm_of_curve(crv);
    if (!json_member(json, jwk, "alg"))
        return by_curve;
    if (!jwk_text(json, jwk, "alg", alg_room, sizeof(alg_room), &alg))
        return JWT_NONE;
    enum jwt_algorithm named = algorithm_named(alg);
    return ec == (algorithms[named].curve != NULL) && (!ec || named == by_curve) ? named : JWT_NONE;
}

static EVP_PKEY *pkey_from(const char *type, OSSL_PARAM_BLD *build, int selection)
{
    EVP_PKEY_CTX *context = crypto.EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
    OSSL_PARAM *params = crypto.OSSL_PARAM_BLD_to_param(build);
    EVP_PKEY *pkey = NULL;
    if (!context || !params || crypto.EVP_PKEY_fromdata_init(context) != 1 ||
        crypto.EVP_PKEY_fromdata(context, &pkey, selection, params) != 1)
        pkey = NULL;
    crypto.OSSL_PARAM_free(params);
    crypto.EVP_PKEY_CTX_free(context);
    return pkey;
}

static bool pkey_sound(EVP_PKEY *pkey)
{
    EVP_PKEY_CTX *context = crypto.EVP_PKEY_CTX_new_from_pkey(NULL, pkey, NULL);
    bool sound = context && crypto.EVP_PKEY_public_check(context) == 1;
    crypto.EVP_PKEY_CTX_free(context);
    return sound;
}

static EVP_PKEY *rsa_of(const struct json_text *json, const struct json_node *jwk)
{
    uint8_t n[JWT_SIGNATURE_MAX], e[8]; /* no modulus is longer than a signature may be */
    uint32_t n_size, e_size;
    EVP_PKEY *pkey = NULL;
    if (!jwk_bytes(json, jwk, "n", n, sizeof(n), &n_size) ||
        !jwk_bytes(json, jwk, "e", e, sizeof(e), &e_size))
        return NULL;
    BIGNUM *modulus = crypto.BN_bin2bn(n, (int)n_size, NULL),
           *exponent = crypto.BN_bin2bn(e, (int)e_size, NULL);
    OSSL_PARAM_BLD *build = crypto.OSSL_PARAM_BLD_new();
    if (modulus && exponent && build && crypto.BN_num_bits(modulus) >= RSA_BITS_MIN &&
        crypto.BN_is_odd(modulus) && crypto.BN_is_odd(exponent) && crypto.BN_num_bits(exponent) >= 2 &&
        crypto.OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_N, modulus) == 1 &&
        crypto.OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_E, exponent) == 1)
        pkey = pkey_from("RSA", build, EVP_PKEY_PUBLIC_KEY);
    crypto.OSSL_PARAM_BLD_free(build);
    crypto.BN_free(modulus);
    crypto.BN_free(exponent);
    return pkey;
}

static EVP_PKEY *ec_of(const struct json_text *json, const struct json_node *jwk, const struct algorithm *a)
{
    uint8_t point[1 + 2 * COORDINATE_MAX] = {POINT_CONVERSION_UNCOMPRESSED};
    uint32_t x_size, y_size;
    EVP_PKEY *pkey = NULL;
    if (!jwk_bytes(json, jwk, "x", point + 1, a->coordinate, &x_size) || x_size != a->coordinate ||
        !jwk_bytes(json, jwk, "y", point + 1 + a->coordinate, a->coordinate, &y_size) ||
        y_size != a->coordinate)
        return NULL;
    OSSL_PARAM_BLD *build = crypto.OSSL_PARAM_BLD_new();
    if (build &&
        crypto.OSSL_PARAM_BLD_push_utf8_string(build, OSSL_PKEY_PARAM_GROUP_NAME, a->group, 0) == 1 &&
        crypto.OSSL_PARAM_BLD_push_octet_string(build, OSSL_PKEY_PARAM_PUB_KEY, point,
                                                1 + 2 * a->coordinate) == 1)
        pkey = pkey_from("EC", build, EVP_PKEY_PUBLIC_KEY);
    crypto.OSSL_PARAM_BLD_free(build);
    if (pkey && !pkey_sound(pkey)) {
        crypto.EVP_PKEY_free(pkey);
        pkey = NULL;
    }
    return pkey;
}

static struct jwt_key *key_make(const struct json_text *json, const struct json_node *jwk,
                                enum jwt_algorithm algorithm, struct span kid)
{
    const struct algorithm *a = &algorithms[algorithm];
    struct jwt_key *key = calloc(1, sizeof(*key));
    EVP_PKEY *pkey = a->curve ? ec_of(json, jwk, a) : rsa_of(json, jwk);
    EVP_MD *digest = crypto.EVP_MD_fetch(NULL, a->digest, NULL);
    if (!key || !pkey || !digest) {
        crypto.EVP_PKEY_free(pkey);
        crypto.EVP_MD_free(digest);
        free(key);
        crypto.ERR_clear_error();
        return NULL;
    }
    *key = (struct jwt_key){.algorithm = algorithm, .pkey = pkey, .digest = digest};
    memcpy(key->kid, kid.bytes, kid.size);
    return key;
}

struct jwt_key *jwt_key_from_jwk(const struct json_text *json, const struct json_node *jwk, char *ret_text,
                                 size_t text_size)
{
    char room[JWT_KID_MAX];
    struct span kid;
    enum jwt_algorithm algorithm;
    struct jwt_key *key = NULL;
    if (jwk->kind != JSON_OBJECT || !jwk_text(json, jwk, "kid", room, sizeof(room), &kid) || kid.size == 0 ||
        kid.size > JWT_KID_MAX)
        refuse(ret_text, text_size, "a key without a kid, or one longer than 128 bytes");
    else if (jwk_is_private(json, jwk))
        refuse(ret_text, text_size, "a key with a private half, which doesn't belong into a key set");
    else if (!jwk_for_signatures(json, jwk))
        refuse(ret_text, text_size, "a key that isn't for verifying signatures");
    else if ((algorithm = jwk_algorithm(json, jwk)) == JWT_NONE)
        refuse(ret_text, text_size,
               "a key whose kty, crv and alg don't make RS256, RS384, RS512, ES256, ES384 or ES512");
    else {
        actor_guard_begin();
        bool loaded = crypto_load(CRYPTO_FILE, ret_text, text_size);
        key = loaded ? key_make(json, jwk, algorithm, kid) : NULL;
        actor_guard_end();
        if (loaded && !key)
            refuse(ret_text, text_size,
                   "a key that is none: RSA from 2048 to 8192 bits, or a point on its curve");
    }
    return key;
}

void jwt_key_free(struct jwt_key *key)
{
    if (!key)
        return;
    actor_guard_begin();
    crypto.EVP_PKEY_free(key->pkey);
    crypto.EVP_MD_free(key->digest);
    actor_guard_end();
    free(key);
}

enum jwt_algorithm jwt_key_algorithm(const struct jwt_key *key)
{
    return key->algorithm;
}

const char *jwt_key_kid(const struct jwt_key *key)
{
    return key->kid;
}

/* ---- signatures ---- */

/* A positive number of DER; returns how many bytes, 0: it is zero. */
static size_t der_number(const uint8_t *bytes, size_t size, uint8_t *der)
{
    while (size > 0 && *bytes == 0) {
        bytes++;
        size--;
    }
    if (size == 0)
        return 0;
    size_t sign = *bytes >> 7;
    der[0] = 0x02;
    der[1] = (uint8_t)(size + sign);
    der[2] = 0;
    memcpy(der + 2 + sign, bytes, size);
    return 2 + sign + size;
}

/* r and s side by side as JWS has them -> SEQUENCE of two INTEGERs. 0: one of them is zero. */
static size_t der_signature(const uint8_t *raw, size_t coordinate, uint8_t der[DER_MAX])
{
    uint8_t body[DER_MAX];
    size_t r = der_number(raw, coordinate, body);
    size_t s = r ? der_number(raw + coordinate, coordinate, body + r) : 0, head = 2;
    if (r == 0 || s == 0)
        return 0;
    der[0] = 0x30;
    if (r + s > 127) {
        der[1] = 0x81;
        head = 3;
    }
    der[head - 1] = (uint8_t)(r + s);
    memcpy(der + head, body, r + s);
    return head + r + s;
}

static bool verify(const struct jwt_key *key, const struct jwt *jwt, const uint8_t *signature, size_t size)
{
    EVP_MD_CTX *context = crypto.EVP_MD_CTX_new();
    bool good =
        context && crypto.EVP_DigestVerifyInit(context, NULL, key->digest, NULL, key->pkey) == 1 &&
        crypto.EVP_DigestVerify(context, signature, size, jwt->signed_text.bytes, jwt->signed_text.size) == 1;
    crypto.EVP_MD_CTX_free(context);
    crypto.ERR_clear_error();
    return good;
}

bool jwt_key_verify(const struct jwt_key *key, const struct jwt *jwt)
{
    const struct algorithm *a = &algorithms[key->algorithm];
    const uint8_t *signature = jwt->signature;
    size_t size = jwt->signature_size;
    uint8_t der[DER_MAX];
    if (a->curve) {
        if (size != 2 * (size_t)a->coordinate)
            return false;
        size = der_signature(jwt->signature, a->coordinate, der);
        signature = der;
    } else if (size != (size_t)crypto.EVP_PKEY_get_size(key->pkey)) {
        return false;
    }
    if (size == 0)
        return false;
    actor_guard_begin();
    bool good = verify(key, jwt, signature, size);
    actor_guard_end();
    return good;
}

/* ---- the other side ---- */

struct jwt_signer {
    EVP_PKEY *pkey;
    uint8_t point[1 + 2 * 32];
    char kid[JWT_KID_MAX + 1];
};

/* The order of P-256: a private half is a number from 1 to the one below it. */
static const uint8_t order[JWT_SECRET_SIZE] = {
    0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0xbc, 0xe6, 0xfa, 0xad, 0xa7, 0x17, 0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63, 0x25, 0x51};

static bool secret_sound(const uint8_t secret[JWT_SECRET_SIZE])
{
    static const uint8_t zero[JWT_SECRET_SIZE];
    return memcmp(secret, order, sizeof(order)) < 0 && memcmp(secret, zero, sizeof(zero)) != 0;
}

void jwt_secret_make(void (*draw)(void *context, void *bytes, size_t size), void *context,
                     uint8_t ret_secret[JWT_SECRET_SIZE])
{
    do /* all but one of 2^32 draws are good */
        draw(context, ret_secret, JWT_SECRET_SIZE);
    while (!secret_sound(ret_secret));
}

/* The public point of the private number. */
static bool point_of(const EC_GROUP *group, const BIGNUM *secret, uint8_t ret_point[65])
{
    EC_POINT *point = crypto.EC_POINT_new(group);
    bool good =
        point && crypto.EC_POINT_mul(group, point, secret, NULL, NULL, NULL) == 1 &&
        crypto.EC_POINT_point2oct(group, point, POINT_CONVERSION_UNCOMPRESSED, ret_point, 65, NULL) == 65;
    crypto.EC_POINT_free(point);
    return good;
}

static EVP_PKEY *signing_pkey(const BIGNUM *secret, const uint8_t point[65])
{
    OSSL_PARAM_BLD *build = crypto.OSSL_PARAM_BLD_new();
    EVP_PKEY *pkey = NULL;
    if (build &&
        crypto.OSSL_PARAM_BLD_push_utf8_string(build, OSSL_PKEY_PARAM_GROUP_NAME, algorithms[JWT_ES256].group,
                                               0) == 1 &&
        crypto.OSSL_PARAM_BLD_push_octet_string(build, OSSL_PKEY_PARAM_PUB_KEY, point, 65) == 1 &&
        crypto.OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_PRIV_KEY, secret) == 1)
        pkey = pkey_from("EC", build, EVP_PKEY_KEYPAIR);
    crypto.OSSL_PARAM_BLD_free(build);
    return pkey;
}

static bool signer_fill(struct jwt_signer *signer, const uint8_t secret[JWT_SECRET_SIZE])
{
    EC_GROUP *group = crypto.EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1);
    BIGNUM *number = crypto.BN_secure_new();
    if (group && number && crypto.BN_bin2bn(secret, JWT_SECRET_SIZE, number) && secret_sound(secret) &&
        point_of(group, number, signer->point))
        signer->pkey = signing_pkey(number, signer->point);
    crypto.BN_clear_free(number);
    crypto.EC_GROUP_free(group);
    crypto.ERR_clear_error();
    return signer->pkey != NULL;
}

struct jwt_signer *jwt_signer_create(const char *kid, const uint8_t secret[JWT_SECRET_SIZE])
{
    struct jwt_signer *signer = calloc(1, sizeof(*signer));
    char why[200];
    if (!signer || strlen(kid) > JWT_KID_MAX) {
        free(signer);
        return NULL;
    }
    memcpy(signer->kid, kid, strlen(kid));
    actor_guard_begin();
    bool good = crypto_load(CRYPTO_FILE, why, sizeof(why)) && signer_fill(signer, secret);
    actor_guard_end();
    if (good)
        return signer;
    free(signer);
    return NULL;
}

void jwt_signer_free(struct jwt_signer *signer)
{
    if (!signer)
        return;
    actor_guard_begin();
    crypto.EVP_PKEY_free(signer->pkey);
    actor_guard_end();
    free(signer);
}

const char *jwt_signer_kid(const struct jwt_signer *signer)
{
    return signer->kid;
}

size_t jwt_signer_jwk(const struct jwt_signer *signer, char text[JWT_JWK_MAX])
{
    struct json_sink sink;
    struct json json;
    char coordinate[64];
    json_sink_init(&sink, text, JWT_JWK_MAX, NULL, NULL);
    json_init(&json, &sink);
    json_object_begin(&json);
    JSON_MEMBER(&json, "kty", string, "EC");
    JSON_MEMBER(&json, "use", string, "sig");
    JSON_MEMBER(&json, "alg", string, algorithms[JWT_ES256].name);
    JSON_MEMBER(&json, "kid", string, signer->kid);
    JSON_MEMBER(&json, "crv", string, algorithms[JWT_ES256].curve);
    json_key(&json, "x");
    json_string_n(&json, coordinate, base64url_write(signer->point + 1, 32, coordinate));
    json_key(&json, "y");
    json_string_n(&json, coordinate, base64url_write(signer->point + 33, 32, coordinate));
    json_object_end(&json);
    ASSERT(json_end(&json) == JSON_OK);
    return sink.length;
}

/* r and s out of DER, each in its 32 bytes. */
static bool raw_signature(const uint8_t *der, size_t size, uint8_t raw[64])
{
    const uint8_t *at = der;
    ECDSA_SIG *signature = crypto.d2i_ECDSA_SIG(NULL, &at, (long)size);
    bool good = signature && crypto.BN_bn2binpad(crypto.ECDSA_SIG_get0_r(signature), raw, 32) == 32 &&
                crypto.BN_bn2binpad(crypto.ECDSA_SIG_get0_s(signature), raw + 32, 32) == 32;
    crypto.ECDSA_SIG_free(signature);
    return good;
}

static bool sign(const struct jwt_signer *signer, const char *text, size_t size, uint8_t raw[64])
{
    uint8_t der[DER_MAX];
    size_t der_size = sizeof(der);
    EVP_MD_CTX *context = crypto.EVP_MD_CTX_new();
    bool good = context &&
                crypto.EVP_DigestSignInit_ex(context, NULL, algorithms[JWT_ES256].digest, NULL, NULL,
                                             signer->pkey, NULL) == 1 &&
                crypto.EVP_DigestSign(context, der, &der_size, (const uint8_t *)text, size) == 1 &&
                raw_signature(der, der_size, raw);
    crypto.EVP_MD_CTX_free(context);
    crypto.ERR_clear_error();
    return good;
}

size_t jwt_sign(const struct jwt_signer *signer, struct span claims, char *text, size_t size)
{
    struct json_sink sink;
    struct json json;
    char header[256];
    uint8_t raw[64];
    json_sink_init(&sink, header, sizeof(header), NULL, NULL);
    json_init(&json, &sink);
    json_object_begin(&json);
    JSON_MEMBER(&json, "alg", string, algorithms[JWT_ES256].name);
    JSON_MEMBER(&json, "kid", string, signer->kid);
    JSON_MEMBER(&json, "typ", string, "JWT");
    json_object_end(&json);
    if (json_end(&json) != JSON_OK ||
        base64url_size(sink.length) + base64url_size(claims.size) + base64url_size(sizeof(raw)) + 2 > size)
        return 0;
    size_t used = base64url_write((const uint8_t *)header, sink.length, text);
    text[used++] = '.';
    used += base64url_write(claims.bytes, claims.size, text + used);
    actor_guard_begin();
    bool good = sign(signer, text, used, raw);
    actor_guard_end();
    if (!good)
        return 0;
    text[used++] = '.';
    return used + base64url_write(raw, sizeof(raw), text + used);
}
