/* Each allocation and each call of OpenSSL fails once, while keys of tokens are made, tokens are verified and signed, and contracts
 * are compiled: what can't be done is said, nothing is taken for good that wasn't looked at, and nothing is left behind. */
#include "acutest.h"

#include "http/jwt.h"
#include "http/schema.h"
#include "store/crypto.h"
#include "tests/support/failing.h"
#include "tests/support/token_maker.h"

enum { CALLS_MAX = 200 };

#define CLAIMS "{\"sub\":\"u1\"}"

/* ---- OpenSSL: the n-th of these calls fails; what they make and what is freed is counted ---- */

static struct crypto real;
static struct {
    bool armed, hit;
    unsigned left;
    const char *name;
} fault;
static int made; /* and not freed */

static bool fails(const char *name)
{
    if (!fault.armed || --fault.left > 0)
        return false;
    fault.armed = false;
    fault.hit = true;
    fault.name = name;
    return true;
}

static void *counted(void *thing)
{
    made += thing != NULL;
    return thing;
}

#define MAKES(type, name, parameters, arguments)                   \
    static type *failing_##name parameters                         \
    {                                                              \
        return fails(#name) ? NULL : counted(real.name arguments); \
    }
#define SAYS(name, failure, parameters, arguments)             \
    static int failing_##name parameters                       \
    {                                                          \
        return fails(#name) ? (failure) : real.name arguments; \
    }
#define FREES(name, type)                   \
    static void counted_##name(type *thing) \
    {                                       \
        made -= thing != NULL;              \
        real.name(thing);                   \
    }
MAKES(BIGNUM, BN_secure_new, (void), ())
MAKES(EC_GROUP, EC_GROUP_new_by_curve_name, (int nid), (nid))
MAKES(EC_POINT, EC_POINT_new, (const EC_GROUP *group), (group))
MAKES(ECDSA_SIG, d2i_ECDSA_SIG, (ECDSA_SIG * *to, const unsigned char **at, long size), (to, at, size))
MAKES(EVP_MD, EVP_MD_fetch, (OSSL_LIB_CTX * library, const char *name, const char *properties),
      (library, name, properties))
MAKES(EVP_MD_CTX, EVP_MD_CTX_new, (void), ())
MAKES(EVP_PKEY_CTX, EVP_PKEY_CTX_new_from_name,
      (OSSL_LIB_CTX * library, const char *name, const char *properties), (library, name, properties))
MAKES(EVP_PKEY_CTX, EVP_PKEY_CTX_new_from_pkey,
      (OSSL_LIB_CTX * library, EVP_PKEY *pkey, const char *properties), (library, pkey, properties))
MAKES(OSSL_PARAM_BLD, OSSL_PARAM_BLD_new, (void), ())
MAKES(OSSL_PARAM, OSSL_PARAM_BLD_to_param, (OSSL_PARAM_BLD * build), (build))
SAYS(BN_bn2binpad, -1, (const BIGNUM *number, unsigned char *to, int size), (number, to, size))
SAYS(EC_POINT_mul, 0,
     (const EC_GROUP *group, EC_POINT *to, const BIGNUM *n, const EC_POINT *q, const BIGNUM *m,
      BN_CTX *context),
     (group, to, n, q, m, context))
SAYS(EVP_DigestSign, 0,
     (EVP_MD_CTX * context, unsigned char *to, size_t *to_size, const unsigned char *bytes, size_t size),
     (context, to, to_size, bytes, size))
SAYS(EVP_DigestSignInit_ex, 0,
     (EVP_MD_CTX * context, EVP_PKEY_CTX **to, const char *digest, OSSL_LIB_CTX *library,
      const char *properties, EVP_PKEY *pkey, const OSSL_PARAM params[]),
     (context, to, digest, library, properties, pkey, params))
SAYS(EVP_DigestVerify, -1,
     (EVP_MD_CTX * context, const unsigned char *signature, size_t signature_size, const unsigned char *bytes,
      size_t size),
     (context, signature, signature_size, bytes, size))
SAYS(EVP_DigestVerifyInit, 0,
     (EVP_MD_CTX * context, EVP_PKEY_CTX **to, const EVP_MD *digest, ENGINE *engine, EVP_PKEY *pkey),
     (context, to, digest, engine, pkey))
SAYS(EVP_PKEY_fromdata_init, -2, (EVP_PKEY_CTX * context), (context))
SAYS(EVP_PKEY_public_check, -2, (EVP_PKEY_CTX * context), (context))
SAYS(OSSL_PARAM_BLD_push_BN, 0, (OSSL_PARAM_BLD * build, const char *name, const BIGNUM *number),
     (build, name, number))
SAYS(OSSL_PARAM_BLD_push_octet_string, 0,
     (OSSL_PARAM_BLD * build, const char *name, const void *bytes, size_t size), (build, name, bytes, size))
SAYS(OSSL_PARAM_BLD_push_utf8_string, 0,
     (OSSL_PARAM_BLD * build, const char *name, const char *text, size_t size), (build, name, text, size))
FREES(BN_clear_free, BIGNUM)
FREES(BN_free, BIGNUM)
FREES(ECDSA_SIG_free, ECDSA_SIG)
FREES(EC_GROUP_free, EC_GROUP)
FREES(EC_POINT_free, EC_POINT)
FREES(EVP_MD_CTX_free, EVP_MD_CTX)
FREES(EVP_MD_free, EVP_MD)
FREES(EVP_PKEY_CTX_free, EVP_PKEY_CTX)
FREES(EVP_PKEY_free, EVP_PKEY)
FREES(OSSL_PARAM_BLD_free, OSSL_PARAM_BLD)
FREES(OSSL_PARAM_free, OSSL_PARAM)

/* Into a number that is there, or a new one. */
static BIGNUM *failing_BN_bin2bn(const unsigned char *bytes, int size, BIGNUM *to)
{
    if (fails("BN_bin2bn"))
        return NULL;
    BIGNUM *number = real.BN_bin2bn(bytes, size, to);
    return to ? number : counted(number);
}

static size_t failing_EC_POINT_point2oct(const EC_GROUP *group, const EC_POINT *point,
                                         point_conversion_form_t form, unsigned char *to, size_t size,
                                         BN_CTX *context)
{
    return fails("EC_POINT_point2oct") ? 0 : real.EC_POINT_point2oct(group, point, form, to, size, context);
}

static int failing_EVP_PKEY_fromdata(EVP_PKEY_CTX *context, EVP_PKEY **to, int selection, OSSL_PARAM params[])
{
    if (fails("EVP_PKEY_fromdata"))
        return 0;
    int said = real.EVP_PKEY_fromdata(context, to, selection, params);
    counted(*to);
    return said;
}

#define THOSE_THAT_FAIL(X)              \
    X(BN_bin2bn)                        \
    X(BN_secure_new)                    \
    X(EC_GROUP_new_by_curve_name)       \
    X(EC_POINT_new)                     \
    X(d2i_ECDSA_SIG)                    \
    X(EVP_MD_fetch)                     \
    X(EVP_MD_CTX_new)                   \
    X(EVP_PKEY_CTX_new_from_name)       \
    X(EVP_PKEY_CTX_new_from_pkey)       \
    X(OSSL_PARAM_BLD_new)               \
    X(OSSL_PARAM_BLD_to_param)          \
    X(BN_bn2binpad)                     \
    X(EC_POINT_mul)                     \
    X(EVP_DigestSign)                   \
    X(EVP_DigestSignInit_ex)            \
    X(EVP_DigestVerify)                 \
    X(EVP_DigestVerifyInit)             \
    X(EVP_PKEY_fromdata_init)           \
    X(EVP_PKEY_public_check)            \
    X(OSSL_PARAM_BLD_push_BN)           \
    X(OSSL_PARAM_BLD_push_octet_string) \
    X(OSSL_PARAM_BLD_push_utf8_string)  \
    X(EC_POINT_point2oct)               \
    X(EVP_PKEY_fromdata)
#define THOSE_THAT_FREE(X) \
    X(BN_clear_free)       \
    X(BN_free)             \
    X(ECDSA_SIG_free)      \
    X(EC_GROUP_free)       \
    X(EC_POINT_free)       \
    X(EVP_MD_CTX_free)     \
    X(EVP_MD_free)         \
    X(EVP_PKEY_CTX_free)   \
    X(EVP_PKEY_free)       \
    X(OSSL_PARAM_BLD_free) \
    X(OSSL_PARAM_free)

static void stand_between(void)
{
    char why[200] = "";
    TEST_ASSERT_(crypto_load(CRYPTO_FILE, why, sizeof(why)), "%s", why);
    real = crypto;
#define X(name) crypto.name = failing_##name;
    THOSE_THAT_FAIL(X)
#undef X
#define X(name) crypto.name = counted_##name;
    THOSE_THAT_FREE(X)
#undef X
    made = 0;
}

static void stand_aside(void)
{
    crypto = real;
}

/* ---- each call ---- */

struct deed {
    const char *name;
    bool (*run)(void); /* whether it was done; what it says of a failure it judges itself */
};

static void fail_each_crypto(const struct deed *deed)
{
    int before = made;
    for (unsigned n = 1; n < CALLS_MAX; n++) {
        fault.armed = true;
        fault.hit = false;
        fault.left = n;
        bool done = deed->run();
        fault.armed = false;
        TEST_CASE_("%s, call %u, %s", deed->name, n, fault.hit ? fault.name : "none");
        TEST_CHECK(done == !fault.hit);
        TEST_CHECK_(made == before, "%d things are left", made - before);
        if (!fault.hit)
            return;
    }
    TEST_CHECK_(false, "%s makes more calls than it does", deed->name);
}

static void fail_each_of(enum failing_kind kind, const struct deed *deed)
{
    int64_t before = failing_live();
    for (unsigned n = 1; n < CALLS_MAX; n++) {
        failing_begin(kind, n);
        bool done = deed->run();
        bool hit = failing_end();
        TEST_CASE_("%s, call %u, %s", deed->name, n, failing_name());
        TEST_CHECK(done == !hit);
        TEST_CHECK(failing_live() == before);
        if (!hit)
            return;
    }
    TEST_CHECK_(false, "%s makes more calls than it does", deed->name);
}

/* ---- tokens ---- */

static struct maker_key maker;
static struct jwt_key *verifier;
static struct jwt_signer *signer;
static struct jwt jwt;
static char token[MAKER_TEXT_MAX];

static struct jwt_key *key_of_maker(char *why, size_t size)
{
    static struct json_node nodes[64];
    struct json_text json = {.nodes = nodes, .nodes_max = 64};
    struct json_error error;
    TEST_ASSERT(json_text_read(&json, span_text(maker.jwk), NULL, &error));
    return jwt_key_from_jwk(&json, json_root(&json), why, size);
}

static bool run_key(void)
{
    char why[200] = "";
    struct jwt_key *key = key_of_maker(why, sizeof(why));
    TEST_CHECK((key == NULL) == (why[0] != 0));
    jwt_key_free(key);
    return key != NULL;
}

static bool run_verify(void)
{
    return jwt_key_verify(verifier, &jwt);
}

static const uint8_t secret[JWT_SECRET_SIZE] = {[JWT_SECRET_SIZE - 1] = 7};

static bool run_signer(void)
{
    struct jwt_signer *one = jwt_signer_create("kid", secret);
    jwt_signer_free(one);
    return one != NULL;
}

static bool run_sign(void)
{
    return jwt_sign(signer, span_text(CLAIMS), token, sizeof(token)) > 0;
}

static void make_maker(const char *algorithm)
{
    char why[200] = "", header[64];
    maker_key_make(&maker, algorithm, "kid");
    verifier = key_of_maker(why, sizeof(why));
    TEST_ASSERT_(verifier != NULL, "%s", why);
    snprintf(header, sizeof(header), "{\"alg\":\"%s\",\"kid\":\"kid\"}", algorithm);
    const char *wrong = jwt_read(span_of(token, maker_sign(&maker, header, CLAIMS, token)), &jwt);
    TEST_ASSERT_(!wrong, "%s", wrong);
}

static void free_maker(void)
{
    jwt_key_free(verifier);
    maker_key_free(&maker);
}

static void test_every_call_of_openssl_fails_for_a_key_and_a_signature(void)
{
    static const struct deed key = {"a key", run_key}, verify = {"a signature", run_verify};
    static const char *const algorithms[] = {"RS256", "ES256", "ES512"};
    for (size_t i = 0; i < sizeof(algorithms) / sizeof(*algorithms); i++) {
        make_maker(algorithms[i]);
        stand_between();
        fail_each_crypto(&key);
        fail_each_crypto(&verify);
        stand_aside();
        free_maker();
    }
}

static void test_every_call_of_openssl_fails_for_a_signer_and_what_it_signs(void)
{
    static const struct deed create = {"a signer", run_signer}, sign = {"a token", run_sign};
    stand_between();
    fail_each_crypto(&create);
    signer = jwt_signer_create("kid", secret);
    TEST_ASSERT(signer != NULL);
    fail_each_crypto(&sign);
    jwt_signer_free(signer);
    TEST_CHECK(made == 0);
    stand_aside();
}

static void test_every_allocation_fails_for_a_key_and_a_signer(void)
{
    static const struct deed key = {"a key", run_key}, create = {"a signer", run_signer};
    make_maker("ES256");
    fail_each_of(FAILING_HEAP, &key);
    fail_each_of(FAILING_HEAP, &create);
    free_maker();
}

/* The first that needs it finds no libcrypto; the next one does. */
static bool run_first_signer(void)
{
    bool before = crypto_loaded(), done = run_signer();
    TEST_CHECK(before || done == crypto_loaded());
    return done;
}

static bool run_first_key(void)
{
    static const char jwk[] =
        "{\"kty\":\"EC\",\"kid\":\"k\",\"crv\":\"P-256\",\"x\":\"AAAA\",\"y\":\"AAAA\"}";
    struct json_node nodes[16];
    struct json_text json = {.nodes = nodes, .nodes_max = 16};
    struct json_error error;
    char why[200] = "";
    TEST_ASSERT(json_text_read(&json, span_text(jwk), NULL, &error));
    TEST_CHECK(jwt_key_from_jwk(&json, json_root(&json), why, sizeof(why)) == NULL);
    return strstr(why, "libcrypto can't be loaded") == NULL;
}

static void test_nothing_is_signed_or_verified_while_libcrypto_cannot_be_loaded(void)
{
    static const struct deed key = {"a key", run_first_key}, create = {"a signer", run_first_signer};
    failing_begin(FAILING_SYSTEM, 1);
    TEST_CHECK(!run_first_signer() && failing_end() && !crypto_loaded());
    fail_each_of(FAILING_SYSTEM, &key);
    TEST_CHECK(crypto_loaded());
    fail_each_of(FAILING_SYSTEM, &create);
}

/* ---- contracts ---- */

static bool run_schemas(void)
{
    static const char contract[] = "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"}}}";
    char why[200] = "";
    struct schemas *schemas = schemas_create(span_text(contract), why, sizeof(why));
    TEST_CHECK(schemas ? schemas_at(schemas, "", why, sizeof(why)) != NULL : strcmp(why, "no memory") == 0);
    schemas_destroy(schemas);
    return schemas != NULL;
}

static void test_every_mapping_fails_while_a_contract_is_compiled(void)
{
    static const struct deed deed = {"a contract", run_schemas};
    fail_each_of(FAILING_SYSTEM, &deed);
}

TEST_LIST
= {
    {"nothing is signed or verified while libcrypto can't be loaded",
     test_nothing_is_signed_or_verified_while_libcrypto_cannot_be_loaded},
    {"every call of OpenSSL fails for a key and a signature",
     test_every_call_of_openssl_fails_for_a_key_and_a_signature},
    {"every call of OpenSSL fails for a signer and what it signs",
     test_every_call_of_openssl_fails_for_a_signer_and_what_it_signs},
    {"every allocation fails for a key and a signer", test_every_allocation_fails_for_a_key_and_a_signer},
    {"every mapping fails while a contract is compiled",
     test_every_mapping_fails_while_a_contract_is_compiled},
    {NULL, NULL},
};
