/* JSON Web Tokens: what is one, what a signature is worth, and every trick that is known to be played with them. */
#include "acutest.h"

#include <openssl/bn.h>
#include <openssl/ec.h>

#include "http/jwt.h"
#include "tests/support/token_maker.h"

#define NOW_S UINT64_C(1700000000)

#define CLAIMS_WITHOUT_TIMES                                                                               \
    "\"iss\":\"https://issuer\",\"aud\":\"coppice\",\"sub\":\"u1\",\"role\":\"owner\",\"project_scope\":[" \
    "\"p1\",\"p2\"],\"session_id\":\"s1\",\"jti\":\"j1\""
#define CLAIMS "{" CLAIMS_WITHOUT_TIMES ",\"iat\":1700000000,\"exp\":1700003600}"

static const char *const issuers[] = {"https://issuer", "https://other", NULL};
static const char *const audiences[] = {"coppice", "coppice-two", NULL};
static const struct jwt_policy policy = {.issuers = issuers,
                                         .audiences = audiences,
                                         .skew_s = 120,
                                         .lifetime_s = 28800,
                                         .agent_lifetime_s = 14400};

static const char *const all[] = {"RS256", "RS384", "RS512", "ES256", "ES384", "ES512"};
enum { ALL = sizeof(all) / sizeof(all[0]) };

static struct jwt jwt;
static char token[MAKER_TEXT_MAX];

/* ---- keys of each algorithm, made once ---- */

static struct maker_key makers[ALL];
static struct jwt_key *keys[ALL];

static struct jwt_key *key_of(const char *jwk, char *why, size_t size)
{
    static struct json_node nodes[64];
    struct json_text json = {.nodes = nodes, .nodes_max = 64};
    struct json_error error;
    TEST_ASSERT_(json_text_read(&json, span_text(jwk), NULL, &error), "%s: %s", jwk, error.what);
    return jwt_key_from_jwk(&json, json_root(&json), why, size);
}

static void make_keys(void)
{
    char why[200] = "";
    if (keys[0])
        return;
    for (size_t i = 0; i < ALL; i++) {
        maker_key_make(&makers[i], all[i], all[i]);
        keys[i] = key_of(makers[i].jwk, why, sizeof(why));
        TEST_ASSERT_(keys[i] != NULL, "%s: %s", all[i], why);
    }
}

static const char *header_of(size_t i)
{
    static char header[128];
    snprintf(header, sizeof(header), "{\"alg\":\"%s\",\"kid\":\"%s\"}", all[i], all[i]);
    return header;
}

enum { RS256, RS384, RS512, ES256, ES384, ES512 };

static const char *read_token(size_t size)
{
    return jwt_read(span_of(token, size), &jwt);
}

#define CHECK_READ(SIZE)                     \
    do {                                     \
        const char *why_ = read_token(SIZE); \
        TEST_ASSERT_(!why_, "%s", why_);     \
    } while (0)

/* ---- the six algorithms ---- */

static void test_CTL_086_each_algorithm_is_taken(void)
{
    make_keys();
    for (size_t i = 0; i < ALL; i++) {
        TEST_CASE(all[i]);
        CHECK_READ(maker_sign(&makers[i], header_of(i), CLAIMS, token));
        TEST_CHECK(strcmp(jwt.kid, all[i]) == 0 && strcmp(jwt_key_kid(keys[i]), all[i]) == 0);
        TEST_CHECK(jwt.algorithm == jwt_key_algorithm(keys[i]) && jwt.algorithm != JWT_NONE);
        TEST_CHECK(jwt_key_verify(keys[i], &jwt));
        TEST_CHECK(jwt_check_claims(&jwt, &policy, jwt_key_algorithm(keys[i]), NOW_S) == NULL);
    }
}

static void test_CTL_086_a_signature_is_good_with_its_own_key_alone(void)
{
    make_keys();
    for (size_t i = 0; i < ALL; i++) {
        CHECK_READ(maker_sign(&makers[i], header_of(i), CLAIMS, token));
        for (size_t j = 0; j < ALL; j++)
            TEST_CHECK_(jwt_key_verify(keys[j], &jwt) == (i == j), "%s with the key of %s", all[i], all[j]);
    }
}

static void test_CTL_090_any_changed_bit_breaks_the_signature(void)
{
    make_keys();
    for (size_t i = 0; i < ALL; i++) {
        TEST_CASE(all[i]);
        CHECK_READ(maker_sign(&makers[i], header_of(i), CLAIMS, token));
        for (uint32_t at = 0; at < jwt.signature_size; at += 7) {
            jwt.signature[at] ^= (uint8_t)(1u << at % 8);
            TEST_CHECK_(!jwt_key_verify(keys[i], &jwt), "byte %u", at);
            jwt.signature[at] ^= (uint8_t)(1u << at % 8);
        }
        TEST_CHECK(jwt_key_verify(keys[i], &jwt));
        token[40] ^= 1; /* somewhere in what is signed */
        TEST_CHECK(!jwt_key_verify(keys[i], &jwt));
    }
}

/* ---- what isn't a token ---- */

static void check_form(const char *name, const char *text, size_t size)
{
    TEST_CASE(name);
    TEST_CHECK(jwt_read(span_of(text, size), &jwt) != NULL);
}

static void test_CTL_090_dots_are_two(void)
{
    make_keys();
    size_t size = maker_sign(&makers[ES256], header_of(ES256), CLAIMS, token);
    static char other[MAKER_TEXT_MAX + 8];
    check_form("empty", "", 0);
    check_form("one dot", ".", 1);
    check_form("two dots", "..", 2);
    check_form("words", "Bearer nothing here", 19);
    memcpy(other, token, size);
    check_form("no signature, no dot", other, (size_t)(strrchr(token, '.') - token));
    other[size] = '.';
    check_form("a dot behind it", other, size + 1);
    memcpy(other + 1, token, size);
    other[0] = '.';
    check_form("a dot in front", other, size + 1);
    memcpy(other, token, size);
    memcpy(other + size, ".AAAA", 5);
    check_form("a fourth part", other, size + 5);
    memcpy(other + size, ".AA.AA", 6);
    check_form("five parts, as encrypted ones have", other, size + 6);
    check_form("a NUL in it", "e30.e3\0.e30", 11);
}

static void test_CTL_090_base64url_is_strict(void)
{
    static const char *const bad[] = {"=",   "==", "+", "/",    " ", "\n",   "\t",
                                      "%3D", "A=", "*", "\x80", "é", "\x01", "a b"};
    make_keys();
    size_t size = maker_sign(&makers[ES256], header_of(ES256), CLAIMS, token);
    static char other[MAKER_TEXT_MAX + 8];
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        size_t length = strlen(bad[i]);
        memcpy(other, token, size);
        memcpy(other + size, bad[i], length);
        check_form(bad[i], other, size + length);
        memcpy(other, bad[i], length);
        memcpy(other + length, token, size);
        check_form(bad[i], other, size + length);
        size_t dot =
            (size_t)(strchr(token, '.') - token); /* at the end of the header, and before the payload */
        memcpy(other, token, dot);
        memcpy(other + dot, bad[i], length);
        memcpy(other + dot + length, token + dot, size - dot);
        check_form(bad[i], other, size + length);
    }
    memcpy(other, token, size);
    memcpy(other + size, "AAA", 3);
    check_form("a single character left over", other, size + 3);
    /* 64 bytes end in a character of which only the two high bits count: any other one would be a second form. */
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    size_t last = (size_t)(strchr(digits, token[size - 1]) - digits), taken = 0;
    for (size_t i = 0; i < 64; i++) {
        memcpy(other, token, size);
        other[size - 1] = digits[i];
        bool form = jwt_read(span_of(other, size), &jwt) == NULL;
        TEST_CHECK(form == (i % 16 == 0));
        taken += form && jwt_key_verify(keys[ES256], &jwt);
    }
    TEST_CHECK(taken == 1 && last % 16 == 0);
}

static void test_CTL_090_too_long(void)
{
    static char payload[8192], text[MAKER_TEXT_MAX];
    memset(payload, ' ', sizeof(payload) - 1);
    payload[0] = '{';
    for (size_t size = JWT_SIZE_MAX - 40; size < JWT_SIZE_MAX + 40; size++) {
        payload[size * 3 / 4 - 100] = '}';
        payload[size * 3 / 4 - 99] = 0;
        size_t length = maker_join("{\"alg\":\"ES256\"}", payload, "xxx", 3, text);
        payload[size * 3 / 4 - 100] = ' ';
        payload[size * 3 / 4 - 99] = ' ';
        memset(text + length, 'A', sizeof(text) - length);
        size_t rest = size > length ? (size - length) / 4 * 4 : 0; /* of the signature */
        TEST_CHECK((jwt_read(span_of(text, length + rest), &jwt) == NULL) == (length + rest <= JWT_SIZE_MAX));
    }
}

static void test_CTL_090_parts_are_sound_json_objects(void)
{
    static const char *const bad[] = {"",
                                      "[]",
                                      "null",
                                      "\"x\"",
                                      "1",
                                      "{",
                                      "{}x",
                                      "{\"a\":1,\"a\":2}",
                                      "{\"kid\":\"a\",\"k\\u0069d\":\"b\"}",
                                      "{\"a\":\"\\u0000\"}",
                                      "{\"a\":\"\\ud800\"}",
                                      "{\"a\":\"\xff\"}",
                                      "\xef\xbb\xbf{}",
                                      "{\"a\":[[[[[[[[1]]]]]]]]}",
                                      "{'a':1}",
                                      "{\"a\":01}"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        TEST_CASE(bad[i]);
        TEST_CHECK(read_token(maker_join(bad[i], CLAIMS, "abc", 3, token)) != NULL);
        TEST_CHECK(read_token(maker_join("{\"alg\":\"ES256\"}", bad[i], "abc", 3, token)) != NULL);
    }
    CHECK_READ(maker_join("{\"alg\":\"ES256\"}", "{}", "abc", 3, token));
}

static void test_CTL_090_truncated_anywhere(void)
{
    make_keys();
    size_t size = maker_sign(&makers[ES384], header_of(ES384), CLAIMS, token);
    for (size_t cut = 0; cut < size; cut++)
        TEST_CHECK_(jwt_read(span_of(token, cut), &jwt) != NULL || !jwt_key_verify(keys[ES384], &jwt),
                    "cut off at %zu", cut);
}

/* ---- algorithms that aren't the key's ---- */

static void test_CTL_087_none_in_any_case(void)
{
    static const char *const names[] = {"none", "None", "NONE", "nOnE", "", "no\\u006ee", " none", "null"};
    make_keys();
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char header[128];
        TEST_CASE(names[i]);
        snprintf(header, sizeof(header), "{\"alg\":\"%s\",\"kid\":\"ES256\"}", names[i]);
        CHECK_READ(maker_join(header, CLAIMS, "", 0, token));
        TEST_CHECK(jwt.algorithm == JWT_NONE && jwt.signature_size == 0);
        for (size_t k = 0; k < ALL; k++)
            TEST_CHECK(!jwt_key_verify(keys[k], &jwt));
        /* and when it is signed all the same */
        CHECK_READ(maker_sign(&makers[ES256], header, CLAIMS, token));
        TEST_CHECK(jwt.algorithm == JWT_NONE && jwt_check_claims(&jwt, &policy, JWT_ES256, NOW_S) != NULL);
    }
    TEST_CHECK(read_token(maker_join("{\"alg\":null}", CLAIMS, "", 0, token)) != NULL);
    TEST_CHECK(read_token(maker_join("{\"alg\":[\"none\"]}", CLAIMS, "", 0, token)) != NULL);
    TEST_CHECK(read_token(maker_join("{}", CLAIMS, "", 0, token)) != NULL);
}

static void test_CTL_087_HMAC_with_the_public_key_as_secret(void)
{
    static const char *const names[] = {"HS256", "HS384",  "HS512", "PS256",
                                        "EdDSA", "ES256K", "es256", "RS1"};
    char pem[4096];
    make_keys();
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        for (size_t k = 0; k < ALL; k++) {
            char header[128];
            snprintf(header, sizeof(header), "{\"alg\":\"%s\",\"kid\":\"%s\"}", names[i], all[k]);
            TEST_CASE(header);
            CHECK_READ(maker_sign_hmac(pem, maker_pem(&makers[k], pem), header, CLAIMS, token));
            TEST_CHECK(jwt.algorithm == JWT_NONE && !jwt_key_verify(keys[k], &jwt));
            CHECK_READ(maker_sign_hmac(makers[k].jwk, strlen(makers[k].jwk), header, CLAIMS, token));
            TEST_CHECK(jwt.algorithm == JWT_NONE && !jwt_key_verify(keys[k], &jwt));
            TEST_CHECK(jwt_check_claims(&jwt, &policy, jwt_key_algorithm(keys[k]), NOW_S) != NULL);
        }
    }
}

static void test_CTL_088_the_key_says_by_which_algorithm(void)
{
    make_keys();
    /* signed by the key, but with another hash, as the header says */
    CHECK_READ(
        maker_sign_as(&makers[RS256], "RS512", "{\"alg\":\"RS512\",\"kid\":\"RS256\"}", CLAIMS, token));
    TEST_CHECK(jwt.algorithm == JWT_RS512 && !jwt_key_verify(keys[RS256], &jwt));
    CHECK_READ(
        maker_sign_as(&makers[ES256], "ES512", "{\"alg\":\"ES512\",\"kid\":\"ES256\"}", CLAIMS, token));
    TEST_CHECK(!jwt_key_verify(keys[ES256], &jwt));
    /* signed as the key is meant, while the header says something else: found with the claims */
    CHECK_READ(maker_sign(&makers[RS256], "{\"alg\":\"RS512\",\"kid\":\"RS256\"}", CLAIMS, token));
    TEST_CHECK(jwt_key_verify(keys[RS256], &jwt));
    TEST_CHECK(jwt_check_claims(&jwt, &policy, JWT_RS256, NOW_S) != NULL);
    /* ES and RS changed for each other */
    CHECK_READ(maker_sign(&makers[RS256], "{\"alg\":\"ES256\",\"kid\":\"ES256\"}", CLAIMS, token));
    TEST_CHECK(!jwt_key_verify(keys[ES256], &jwt));
    CHECK_READ(maker_sign(&makers[ES256], "{\"alg\":\"RS256\",\"kid\":\"RS256\"}", CLAIMS, token));
    TEST_CHECK(!jwt_key_verify(keys[RS256], &jwt));
}

static void test_CTL_088_jku_x5u_x5c_and_jwk_are_ignored(void)
{
    static char header[8192];
    struct maker_key mallory;
    make_keys();
    maker_key_make(&mallory, "ES256", "ES256");
    snprintf(
        header, sizeof(header),
        "{\"alg\":\"ES256\",\"kid\":\"ES256\",\"jwk\":%s,\"jku\":\"https://mallory/keys\",\"x5u\":\"https://"
        "mallory/x\",\"x5c\":[\"AAAA\"],\"x5t\":\"AAAA\"}",
        mallory.jwk);
    CHECK_READ(maker_sign(&mallory, header, CLAIMS, token));
    TEST_CHECK(!jwt_key_verify(keys[ES256], &jwt));
    CHECK_READ(maker_sign(&makers[ES256], header, CLAIMS, token));
    TEST_CHECK(jwt_key_verify(keys[ES256], &jwt));
    maker_key_free(&mallory);
}

static void test_CTL_088_critical_nested_compressed_and_encrypted_are_refused(void)
{
    static const char *const headers[] = {
        "{\"alg\":\"ES256\",\"kid\":\"ES256\",\"crit\":[\"exp\"],\"exp\":1}",
        "{\"alg\":\"ES256\",\"kid\":\"ES256\",\"crit\":[\"b64\"],\"b64\":false}",
        "{\"alg\":\"ES256\",\"kid\":\"ES256\",\"crit\":[]}",
        "{\"alg\":\"ES256\",\"kid\":\"ES256\",\"\\u0063rit\":[\"x\"]}",
        "{\"alg\":\"ES256\",\"kid\":\"ES256\",\"zip\":\"DEF\"}",
        "{\"alg\":\"ES256\",\"kid\":\"ES256\",\"enc\":\"A256GCM\"}",
        "{\"alg\":\"ES256\",\"kid\":\"ES256\",\"cty\":\"JWT\"}",
        "{\"alg\":\"ES256\",\"kid\":\"ES256\",\"typ\":\"JWE\"}",
        "{\"alg\":\"ES256\",\"kid\":\"ES256\",\"typ\":1}",
        "{\"alg\":\"ES256\",\"kid\":\"ES256\",\"typ\":\"at\\u000bjwt\"}", /* as far from + as a letter from its other form */
        "{\"alg\":\"ES256\",\"kid\":\"ES256\",\"typ\":\"application\\u000fat+jwt\"}",
    };
    make_keys();
    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
        TEST_CASE(headers[i]);
        TEST_CHECK(read_token(maker_sign(&makers[ES256], headers[i], CLAIMS, token)) != NULL);
    }
    CHECK_READ(
        maker_sign(&makers[ES256], "{\"alg\":\"ES256\",\"kid\":\"ES256\",\"typ\":\"jwt\"}", CLAIMS, token));
    CHECK_READ(maker_sign(&makers[ES256], "{\"alg\":\"ES256\",\"kid\":\"ES256\",\"typ\":\"at+JWT\"}", CLAIMS,
                          token));
    CHECK_READ(maker_sign(&makers[ES256],
                          "{\"alg\":\"ES256\",\"kid\":\"ES256\",\"typ\":\"Application/at+jwt\"}", CLAIMS,
                          token));
    /* one token inside the other */
    static char inner[MAKER_TEXT_MAX];
    memcpy(inner, token, sizeof(inner));
    TEST_CHECK(read_token(maker_join("{\"alg\":\"ES256\"}", inner, "abc", 3, token)) != NULL);
}

static void test_CTL_078_kid_is_a_text_and_nothing_more(void)
{
    static const struct {
        const char *kid;
        bool form;
    } kids[] = {
        {"\"../../../../etc/passwd\"", true},
        {"\"/dev/null\"", true},
        {"\"x' OR '1'='1\"", true},
        {"\"ES256; DROP TABLE signing_keys\"", true},
        {"\"ES256\\u0000\"", false},
        {"\"$(id)\"", true},
        {"\"%00\"", true},
        {"\"\"", true},
        {"1", false},
        {"null", false},
        {"[\"ES256\"]", false},
        {"{\"a\":1}", false},
    };
    for (size_t i = 0; i < sizeof(kids) / sizeof(kids[0]); i++) {
        char header[256];
        TEST_CASE(kids[i].kid);
        snprintf(header, sizeof(header), "{\"alg\":\"ES256\",\"kid\":%s}", kids[i].kid);
        TEST_CHECK((read_token(maker_join(header, CLAIMS, "abc", 3, token)) == NULL) == kids[i].form);
        if (kids[i].form)
            TEST_CHECK(strlen(jwt.kid) + 2 == strlen(kids[i].kid));
    }
    CHECK_READ(maker_join("{\"alg\":\"ES256\"}", CLAIMS, "abc", 3, token));
    TEST_CHECK(jwt.kid[0] == 0); /* nobody's */
    static char header[512];
    for (size_t size = JWT_KID_MAX - 1; size < JWT_KID_MAX + 2; size++) {
        memset(header, 0, sizeof(header));
        strcpy(header, "{\"alg\":\"ES256\",\"kid\":\"");
        memset(header + strlen(header), 'k', size);
        strcat(header, "\"}");
        TEST_CHECK((read_token(maker_join(header, CLAIMS, "abc", 3, token)) == NULL) ==
                   (size <= JWT_KID_MAX));
    }
}

static void test_CTL_090_r_and_s_of_zero_and_others_beyond_the_order(void)
{
    make_keys();
    for (size_t i = ES256; i < ALL; i++) {
        size_t coordinate = i == ES256 ? 32 : i == ES384 ? 48 : 66;
        uint8_t signature[132];
        TEST_CASE(all[i]);
        for (unsigned shape = 0; shape < 8; shape++) {
            memset(signature, 0, sizeof(signature));
            if (shape & 1)
                signature[coordinate - 1] = 1;
            if (shape & 2)
                signature[2 * coordinate - 1] = 1;
            if (shape & 4)
                memset(signature, 0xff, 2 * coordinate);
            CHECK_READ(maker_join(header_of(i), CLAIMS, signature, 2 * coordinate, token));
            TEST_CHECK_(!jwt_key_verify(keys[i], &jwt), "shape %u", shape);
        }
        /* of another length: nothing, one less, one more, DER */
        CHECK_READ(maker_sign(&makers[i], header_of(i), CLAIMS, token));
        jwt.signature_size--;
        TEST_CHECK(!jwt_key_verify(keys[i], &jwt));
        jwt.signature_size += 2;
        TEST_CHECK(!jwt_key_verify(keys[i], &jwt));
        jwt.signature_size = 0;
        TEST_CHECK(!jwt_key_verify(keys[i], &jwt));
    }
    CHECK_READ(maker_sign(&makers[RS256], header_of(RS256), CLAIMS, token));
    jwt.signature_size--;
    TEST_CHECK(!jwt_key_verify(keys[RS256], &jwt));
}

/* ---- keys ---- */

static void check_no_key(const char *name, const char *jwk)
{
    char why[200] = "";
    struct jwt_key *key = key_of(jwk, why, sizeof(why));
    TEST_CASE(name);
    TEST_CHECK(key == NULL);
    TEST_CHECK(why[0] != 0);
    jwt_key_free(key);
}

/* The maker's JWK with one piece of text replaced; the empty text takes the piece out. */
static const char *with(const struct maker_key *key, const char *piece, const char *instead)
{
    static char text[8192];
    const char *at = strstr(key->jwk, piece);
    TEST_ASSERT_(at != NULL, "%s", piece);
    snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - key->jwk), key->jwk, instead, at + strlen(piece));
    return text;
}

static void test_CTL_112_keys_that_are_refused(void)
{
    make_keys();
    struct maker_key weak, off;
    maker_key_make_rsa(&weak, "RS256", "weak", 1024);
    check_no_key("RSA of 1024 bits", weak.jwk);
    maker_key_free(&weak);
    maker_key_make(&off, "ES256", "off");
    char *y = strstr(off.jwk, "\"y\":\"");
    y[5] = y[5] == 'A' ? 'B' : 'A';
    check_no_key("a point that isn't on the curve", off.jwk);
    maker_key_free(&off);
    check_no_key("no kid", with(&makers[ES256], "\"kid\":\"ES256\",", ""));
    check_no_key("empty kid", with(&makers[ES256], "\"kid\":\"ES256\"", "\"kid\":\"\""));
    check_no_key("kid 1", with(&makers[ES256], "\"kid\":\"ES256\"", "\"kid\":1"));
    check_no_key("RSA without alg could be three", with(&makers[RS256], "\"alg\":\"RS256\",", ""));
    check_no_key("alg of another curve", with(&makers[ES256], "\"alg\":\"ES256\"", "\"alg\":\"ES384\""));
    check_no_key("alg of RSA", with(&makers[ES256], "\"alg\":\"ES256\"", "\"alg\":\"RS256\""));
    check_no_key("alg of EC", with(&makers[RS256], "\"alg\":\"RS256\"", "\"alg\":\"ES256\""));
    check_no_key("alg HS256", with(&makers[RS256], "\"alg\":\"RS256\"", "\"alg\":\"HS256\""));
    check_no_key("alg null", with(&makers[ES256], "\"alg\":\"ES256\"", "\"alg\":null"));
    check_no_key("for encryption", with(&makers[ES256], "\"use\":\"sig\"", "\"use\":\"enc\""));
    check_no_key("for signing only", with(&makers[ES256], "\"use\":\"sig\"", "\"key_ops\":[\"sign\"]"));
    check_no_key("a private half", with(&makers[ES256], "\"use\":\"sig\"", "\"d\":\"AAAA\""));
    check_no_key("a symmetric one", "{\"kty\":\"oct\",\"kid\":\"k\",\"alg\":\"HS256\",\"k\":\"AAAA\"}");
    check_no_key("no coordinates", "{\"kty\":\"EC\",\"kid\":\"k\",\"crv\":\"P-256\"}");
    check_no_key("short coordinates",
                 "{\"kty\":\"EC\",\"kid\":\"k\",\"crv\":\"P-256\",\"x\":\"AAAA\",\"y\":\"AAAA\"}");
    check_no_key("a curve of Koblitz", with(&makers[ES256], "\"crv\":\"P-256\"", "\"crv\":\"secp256k1\""));
    check_no_key("exponent 1", with(&makers[RS256], "\"e\":\"AQAB\"", "\"e\":\"AQ\""));
    check_no_key("exponent even", with(&makers[RS256], "\"e\":\"AQAB\"", "\"e\":\"AQAA\""));
    check_no_key("padding", with(&makers[RS256], "\"e\":\"AQAB\"", "\"e\":\"AQAB=\""));
    check_no_key("an array", "[]");
}

static void test_CTL_086_a_curve_leaves_one_algorithm(void)
{
    char why[200];
    make_keys();
    for (size_t i = ES256; i < ALL; i++) {
        char alg[32];
        snprintf(alg, sizeof(alg), "\"alg\":\"%s\",", all[i]);
        struct jwt_key *key = key_of(with(&makers[i], alg, ""), why, sizeof(why));
        TEST_ASSERT(key != NULL);
        TEST_CHECK(jwt_key_algorithm(key) == jwt_key_algorithm(keys[i]));
        jwt_key_free(key);
    }
    struct jwt_key *key = key_of(with(&makers[ES256], "\"use\":\"sig\"", "\"key_ops\":[\"sign\",\"verify\"]"),
                                 why, sizeof(why));
    TEST_CHECK(key != NULL);
    jwt_key_free(key);
    jwt_key_free(NULL);
}

/* What is missing, of another kind, or out of bounds in a key, one thing at a time. */
static void test_CTL_112_further_keys_that_are_refused(void)
{
    static char member[2048];
    make_keys();
    check_no_key("no kty", with(&makers[ES256], "\"kty\":\"EC\",", ""));
    check_no_key("kty with escapes, too long",
                 with(&makers[ES256], "\"kty\":\"EC\"", "\"kty\":\"\\u0045C                    \""));
    check_no_key("kty oct", with(&makers[ES256], "\"kty\":\"EC\"", "\"kty\":\"oct\""));
    check_no_key("no crv", with(&makers[ES256], "\"crv\":\"P-256\",", ""));
    check_no_key("use 1", with(&makers[ES256], "\"use\":\"sig\"", "\"use\":1"));
    check_no_key("key_ops verify", with(&makers[ES256], "\"use\":\"sig\"", "\"key_ops\":\"verify\""));
    check_no_key("key_ops {}", with(&makers[ES256], "\"use\":\"sig\"", "\"key_ops\":{}"));
    check_no_key("key_ops []", with(&makers[ES256], "\"use\":\"sig\"", "\"key_ops\":[]"));
    check_no_key("key_ops of no texts",
                 with(&makers[ES256], "\"use\":\"sig\"", "\"key_ops\":[1,[\"verify\"]]"));
    check_no_key("key_ops too long",
                 with(&makers[ES256], "\"use\":\"sig\"",
                      "\"key_ops\":[\"\\u0076erify                                    \"]"));
    check_no_key("x alone", with(&makers[ES256], "\"y\":", "\"z\":"));
    check_no_key("y too short", with(&makers[ES256], "\"y\":", "\"y\":\"AAAA\",\"z\":"));
    check_no_key("no n", with(&makers[RS256], "\"n\":", "\"m\":"));
    check_no_key("n empty", with(&makers[RS256], "\"n\":", "\"n\":\"\",\"m\":"));
    check_no_key("no e", with(&makers[RS256], "\"e\":", "\"f\":"));
    check_no_key("e of 9 bytes", with(&makers[RS256], "\"e\":\"AQAB\"", "\"e\":\"AQAAAAAAAAAB\""));
    snprintf(member, sizeof(member), "\"n\":\"%0*d\",\"m\":", 1367, 0); /* 0 is 52: 1025 bytes of d3 4d 34 */
    check_no_key("RSA of 8200 bits", with(&makers[RS256], "\"n\":", member));
    snprintf(member, sizeof(member), "\"n\":\"_%0*d\",\"m\":", 343, 0); /* 258 bytes, the last one 34 */
    check_no_key("an even modulus", with(&makers[RS256], "\"n\":", member));
}

static void test_CTL_112_a_kid_has_128_bytes(void)
{
    char why[200], member[400];
    make_keys();
    snprintf(member, sizeof(member), "\"kid\":\"%0*d\"", (int)JWT_KID_MAX, 0);
    struct jwt_key *key = key_of(with(&makers[ES256], "\"kid\":\"ES256\"", member), why, sizeof(why));
    TEST_ASSERT_(key != NULL, "%s", why);
    TEST_CHECK(strlen(jwt_key_kid(key)) == JWT_KID_MAX);
    jwt_key_free(key);
    snprintf(member, sizeof(member), "\"kid\":\"%0*d\"", (int)JWT_KID_MAX + 1, 0);
    check_no_key("a kid of 129 bytes", with(&makers[ES256], "\"kid\":\"ES256\"", member));
}

/* ---- claims ---- */

static const char *claims_why(const char *payload, uint64_t now_s)
{
    CHECK_READ(maker_join("{\"alg\":\"ES256\",\"kid\":\"ES256\"}", payload, "abc", 3, token));
    return jwt_check_claims(&jwt, &policy, JWT_ES256, now_s);
}

static const char *replaced(const char *piece, const char *instead)
{
    static char text[4096];
    const char *at = strstr(CLAIMS, piece);
    TEST_ASSERT_(at != NULL, "%s", piece);
    snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - CLAIMS), CLAIMS, instead, at + strlen(piece));
    return text;
}

static void check_refused(const char *payload)
{
    TEST_CASE(payload);
    TEST_CHECK(claims_why(payload, NOW_S) != NULL);
}

static void check_taken(const char *payload)
{
    const char *why = claims_why(payload, NOW_S);
    TEST_CASE(payload);
    TEST_CHECK_(why == NULL, "%s", why);
}

static void test_CTL_069_to_CTL_077_each_claim_is_required_and_a_text(void)
{
    static const char *const pieces[] = {
        "\"iss\":\"https://issuer\"",        "\"aud\":\"coppice\"",   "\"sub\":\"u1\"", "\"role\":\"owner\"",
        "\"project_scope\":[\"p1\",\"p2\"]", "\"session_id\":\"s1\"", "\"jti\":\"j1\"",
    };
    check_taken(CLAIMS);
    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        char other[600];
        const char *colon = strchr(pieces[i], ':');
        check_refused(replaced(pieces[i], "\"nothing\":0"));
        static const char *const wrong[] = {"\"\"",   "null", "1",    "{}",        "[]",
                                            "[\"\"]", "[1]",  "true", "[[\"p1\"]]"};
        for (size_t j = 0; j < sizeof(wrong) / sizeof(wrong[0]); j++) {
            snprintf(other, sizeof(other), "%.*s:%s", (int)(colon - pieces[i]), pieces[i], wrong[j]);
            check_refused(replaced(pieces[i], other));
        }
    }
}

static void test_CTL_071_project_scope(void)
{
    check_taken(replaced("[\"p1\",\"p2\"]", "\"*\""));
    TEST_CHECK(jwt.all_projects);
    check_taken(replaced("[\"p1\",\"p2\"]", "[\"p1\",\"*\"]"));
    TEST_CHECK(jwt.all_projects);
    check_taken(replaced("[\"p1\",\"p2\"]", "[\"p1\"]"));
    TEST_CHECK(!jwt.all_projects && jwt.projects_count == 1 && span_equal(jwt.projects[0], span_text("p1")));
    check_taken(replaced("[\"p1\",\"p2\"]", "[\"p\\u0031\"]"));
    TEST_CHECK(span_equal(jwt.projects[0], span_text("p1")));
    char many[1024] = "[\"p\"";
    for (size_t i = 1; i < IDENTITY_PROJECTS_MAX; i++)
        strcat(many, ",\"p\"");
    strcat(many, "]");
    check_taken(replaced("[\"p1\",\"p2\"]", many));
    strcpy(strrchr(many, ']'), ",\"p\"]");
    check_refused(replaced("[\"p1\",\"p2\"]", many));
}

static void test_CTL_073_CTL_074_issuer_and_audience_are_listed_ones(void)
{
    check_refused(replaced("https://issuer", "https://issuer/"));
    check_refused(replaced("https://issuer", "https://mallory"));
    check_taken(replaced("https://issuer", "https://other"));
    check_refused(replaced("\"aud\":\"coppice\"", "\"aud\":\"somebody\""));
    check_refused(replaced("\"aud\":\"coppice\"", "\"aud\":[\"somebody\",\"else\"]"));
    check_taken(replaced("\"aud\":\"coppice\"", "\"aud\":[\"somebody\",\"coppice-two\"]"));
    check_refused(replaced("\"aud\":\"coppice\"",
                           "\"aud\":[\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\",\"8\",\"coppice\"]"));
}

static const char *times(const char *role, long long iat, long long exp)
{
    static char text[1024];
    snprintf(
        text, sizeof(text),
        "{\"iss\":\"https://issuer\",\"aud\":\"coppice\",\"sub\":\"u1\",\"role\":\"%s\",\"project_scope\":"
        "\"*\",\"session_id\":\"s\",\"jti\":\"j\",\"iat\":%lld,\"exp\":%lld}",
        role, (long long)NOW_S + iat, (long long)NOW_S + exp);
    return text;
}

static void test_CTL_075_exp_has_no_leeway(void)
{
    check_refused(times("owner", -10, -1));
    check_refused(times("owner", -10, 0));
    check_taken(times("owner", -10, 1));
    check_refused(times("owner", 10, 10));
    check_refused(times("owner", 10, 5));
    check_refused("{" CLAIMS_WITHOUT_TIMES ",\"iat\":1700000000}");
}

static void test_CTL_076_iat_may_be_ahead_by_the_skew(void)
{
    check_taken(times("owner", 119, 1000));
    check_taken(times("owner", 120, 1000));
    check_refused(times("owner", 121, 1000));
    check_refused("{" CLAIMS_WITHOUT_TIMES ",\"exp\":1700000100}");
}

static void test_AMB_17_nbf_is_honoured_with_the_skew(void)
{
    check_taken("{" CLAIMS_WITHOUT_TIMES ",\"iat\":1700000000,\"exp\":1700000100,\"nbf\":1700000120}");
    check_refused("{" CLAIMS_WITHOUT_TIMES ",\"iat\":1700000000,\"exp\":1700000100,\"nbf\":1700000121}");
    check_refused("{" CLAIMS_WITHOUT_TIMES ",\"iat\":1700000000,\"exp\":1700000100,\"nbf\":\"1700000000\"}");
}

static void test_CTL_075_CTL_076_times_are_numbers_that_can_be_meant(void)
{
    static const char *const bad[] = {"\"1700003600\"",
                                      "1e30",
                                      "1e400",
                                      "-1",
                                      "1700003600.5",
                                      "null",
                                      "[1]",
                                      "true",
                                      "\"\"",
                                      "99999999999999999999",
                                      "9223372036854775807",
                                      "{}"};
    char text[1024];
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        snprintf(text, sizeof(text), "{" CLAIMS_WITHOUT_TIMES ",\"iat\":1700000000,\"exp\":%s}", bad[i]);
        check_refused(text);
        snprintf(text, sizeof(text), "{" CLAIMS_WITHOUT_TIMES ",\"exp\":1700003600,\"iat\":%s}", bad[i]);
        check_refused(text);
    }
}

static void test_CTL_079_CTL_082_no_token_lives_longer_than_8_hours(void)
{
    check_taken(times("owner", 0, 28800));
    check_refused(times("owner", 0, 28801));
    check_refused(times("service", 0, 86400));
    check_refused(times("viewer", -86400, 3600)); /* long ago, though its own exp says not yet */
    check_taken(times("owner", -28799, 1));
}

static void test_CTL_080_no_agents_token_lives_longer_than_4(void)
{
    check_taken(times("agent", 0, 14400));
    check_refused(times("agent", 0, 14401));
    check_refused(times("agent", -14401, 10));
}

static void test_AMB_14_a_kid_among_the_claims_is_the_headers(void)
{
    check_taken("{" CLAIMS_WITHOUT_TIMES ",\"iat\":1700000000,\"exp\":1700000100,\"kid\":\"ES256\"}");
    check_refused("{" CLAIMS_WITHOUT_TIMES ",\"iat\":1700000000,\"exp\":1700000100,\"kid\":\"ES257\"}");
    check_refused("{" CLAIMS_WITHOUT_TIMES ",\"iat\":1700000000,\"exp\":1700000100,\"kid\":7}");
}

static void test_CTL_069_texts_of_the_greatest_length(void)
{
    char sub[300], text[400];
    for (size_t size = IDENTITY_SUBJECT_MAX - 1; size < IDENTITY_SUBJECT_MAX + 2; size++) {
        memset(sub, 's', size);
        sub[size] = 0;
        snprintf(text, sizeof(text), "\"sub\":\"%s\"", sub);
        if (size <= IDENTITY_SUBJECT_MAX)
            check_taken(replaced("\"sub\":\"u1\"", text));
        else
            check_refused(replaced("\"sub\":\"u1\"", text));
    }
}

static void test_CTL_074_each_audience_has_a_greatest_length(void)
{
    char name[JWT_TEXT_MAX + 2], text[JWT_TEXT_MAX + 64];
    for (size_t size = JWT_TEXT_MAX; size <= JWT_TEXT_MAX + 1; size++) {
        memset(name, 'a', size);
        name[size] = 0;
        snprintf(text, sizeof(text), "\"aud\":[\"coppice\",\"%s\"]", name);
        if (size <= JWT_TEXT_MAX)
            check_taken(replaced("\"aud\":\"coppice\"", text));
        else
            check_refused(replaced("\"aud\":\"coppice\"", text));
    }
}

static void test_CTL_069_the_first_claim_that_is_wrong_is_told(void)
{
    const char *why = claims_why("{\"iss\":1,\"sub\":2,\"exp\":\"soon\"}", NOW_S);
    TEST_CHECK_(why && strcmp(why, "iss is not a text") == 0, "%s", why);
    /* a list that can't be used is not told as one that is missing */
    why = claims_why(replaced("\"aud\":\"coppice\"", "\"aud\":[\"coppice\",1]"), NOW_S);
    TEST_CHECK_(why && strcmp(why, "aud is not a text or a few of them") == 0, "%s", why);
    why = claims_why(replaced("[\"p1\",\"p2\"]", "[\"p1\",{}]"), NOW_S);
    TEST_CHECK_(why && strcmp(why, "project_scope is not a list of projects, or too long") == 0, "%s", why);
}

/* Read with its escapes, it has no place beside the payload itself. */
static void test_CTL_069_a_text_with_escapes_that_does_not_fit(void)
{
    static char payload[JWT_SIZE_MAX];
    static char sub[5900];
    memset(sub, 's', sizeof(sub) - 1);
    memcpy(sub, "\\u0073", 6);
    snprintf(payload, sizeof(payload), "{\"sub\":\"%s\"}", sub);
    const char *why = claims_why(payload, NOW_S);
    TEST_CHECK_(why && strcmp(why, "sub is not a text, or too long") == 0, "%s", why);
    TEST_CHECK(jwt.subject.size == 0);
}

/* ---- the built-in issuer's side ---- */

static void counted_random(void *context, void *bytes, size_t size)
{
    unsigned *calls = context;
    memset(bytes, *calls == 0 ? 0xff : *calls == 1 ? 0 : (int)*calls, size);
    ++*calls;
}

static void test_CTL_104_what_the_signer_signs_its_public_half_verifies(void)
{
    uint8_t secret[JWT_SECRET_SIZE];
    char jwk[JWT_JWK_MAX + 1], why[200] = "";
    unsigned calls = 0;
    jwt_secret_make(counted_random, &calls, secret);
    TEST_CHECK(calls == 3); /* all ones is beyond the order, and 0 is no key */
    struct jwt_signer *signer = jwt_signer_create("kid-1", secret);
    TEST_ASSERT(signer != NULL);
    jwk[jwt_signer_jwk(signer, jwk)] = 0;
    TEST_CHECK(strstr(jwk, "\"d\"") == NULL);
    struct jwt_key *key = key_of(jwk, why, sizeof(why));
    TEST_ASSERT_(key != NULL, "%s", why);
    size_t size = jwt_sign(signer, span_text(CLAIMS), token, sizeof(token));
    CHECK_READ(size);
    TEST_CHECK(strcmp(jwt.kid, "kid-1") == 0 && jwt.algorithm == JWT_ES256);
    TEST_CHECK(jwt_key_verify(key, &jwt));
    TEST_CHECK(jwt_check_claims(&jwt, &policy, JWT_ES256, NOW_S) == NULL);
    TEST_CHECK(jwt_sign(signer, span_text(CLAIMS), token, size - 1) == 0);
    TEST_CHECK(jwt_sign(signer, span_text(CLAIMS), token, size) == size);
    jwt_key_free(key);
    jwt_signer_free(signer);
    jwt_signer_free(NULL);
    memset(secret, 0xff, sizeof(secret));
    TEST_CHECK(jwt_signer_create("kid-2", secret) == NULL);
    memset(secret, 0, sizeof(secret));
    TEST_CHECK(jwt_signer_create("kid-2", secret) == NULL);
}

static void test_CTL_104_a_signers_kid_has_128_bytes(void)
{
    static const uint8_t secret[JWT_SECRET_SIZE] = {[JWT_SECRET_SIZE - 1] = 1};
    char kid[JWT_KID_MAX + 2] = "";
    memset(kid, 'k', JWT_KID_MAX);
    struct jwt_signer *signer = jwt_signer_create(kid, secret);
    TEST_ASSERT(signer != NULL);
    CHECK_READ(jwt_sign(signer, span_text(CLAIMS), token, sizeof(token)));
    TEST_CHECK(strcmp(jwt.kid, kid) == 0);
    jwt_signer_free(signer);
    kid[JWT_KID_MAX] = 'k';
    TEST_CHECK(jwt_signer_create(kid, secret) == NULL);
    memset(kid, '\x01', JWT_KID_MAX); /* six bytes each in JSON: no header has so much room */
    kid[JWT_KID_MAX] = 0;
    signer = jwt_signer_create(kid, secret);
    TEST_ASSERT(signer != NULL);
    TEST_CHECK(jwt_sign(signer, span_text(CLAIMS), token, sizeof(token)) == 0);
    jwt_signer_free(signer);
}

TEST_LIST
= {
    {"jwt: CTL-086 each algorithm is taken", test_CTL_086_each_algorithm_is_taken},
    {"jwt: CTL-086 a signature is good with its own key alone",
     test_CTL_086_a_signature_is_good_with_its_own_key_alone},
    {"jwt: CTL-090 any changed bit breaks the signature", test_CTL_090_any_changed_bit_breaks_the_signature},
    {"jwt: CTL-090 dots are two", test_CTL_090_dots_are_two},
    {"jwt: CTL-090 base64url is strict", test_CTL_090_base64url_is_strict},
    {"jwt: CTL-090 too long", test_CTL_090_too_long},
    {"jwt: CTL-090 parts are sound JSON objects", test_CTL_090_parts_are_sound_json_objects},
    {"jwt: CTL-090 truncated anywhere", test_CTL_090_truncated_anywhere},
    {"jwt: CTL-087 none in any case", test_CTL_087_none_in_any_case},
    {"jwt: CTL-087 HMAC with the public key as secret", test_CTL_087_HMAC_with_the_public_key_as_secret},
    {"jwt: CTL-088 the key says by which algorithm", test_CTL_088_the_key_says_by_which_algorithm},
    {"jwt: CTL-088 jku, x5u, x5c and jwk are ignored", test_CTL_088_jku_x5u_x5c_and_jwk_are_ignored},
    {"jwt: CTL-088 critical, nested, compressed and encrypted are refused",
     test_CTL_088_critical_nested_compressed_and_encrypted_are_refused},
    {"jwt: CTL-078 kid is a text and nothing more", test_CTL_078_kid_is_a_text_and_nothing_more},
    {"jwt: CTL-090 r and s of zero, and beyond the order",
     test_CTL_090_r_and_s_of_zero_and_others_beyond_the_order},
    {"jwt: CTL-112 keys that are refused", test_CTL_112_keys_that_are_refused},
    {"jwt: CTL-086 a curve leaves one algorithm", test_CTL_086_a_curve_leaves_one_algorithm},
    {"jwt: CTL-069..CTL-074, CTL-077 each claim is required and a text",
     test_CTL_069_to_CTL_077_each_claim_is_required_and_a_text},
    {"jwt: CTL-071 project_scope", test_CTL_071_project_scope},
    {"jwt: CTL-073 CTL-074 issuer and audience are listed ones",
     test_CTL_073_CTL_074_issuer_and_audience_are_listed_ones},
    {"jwt: CTL-075 exp has no leeway", test_CTL_075_exp_has_no_leeway},
    {"jwt: CTL-076 iat may be ahead by the skew", test_CTL_076_iat_may_be_ahead_by_the_skew},
    {"jwt: AMB-17 nbf is honoured with the skew", test_AMB_17_nbf_is_honoured_with_the_skew},
    {"jwt: CTL-075 CTL-076 times are numbers that can be meant",
     test_CTL_075_CTL_076_times_are_numbers_that_can_be_meant},
    {"jwt: CTL-079 CTL-082 no token lives longer than 8 hours",
     test_CTL_079_CTL_082_no_token_lives_longer_than_8_hours},
    {"jwt: CTL-080 no agent's token lives longer than 4", test_CTL_080_no_agents_token_lives_longer_than_4},
    {"jwt: AMB-14 a kid among the claims is the header's", test_AMB_14_a_kid_among_the_claims_is_the_headers},
    {"jwt: CTL-069 texts of the greatest length", test_CTL_069_texts_of_the_greatest_length},
    {"jwt: CTL-104 what the signer signs its public half verifies",
     test_CTL_104_what_the_signer_signs_its_public_half_verifies},
    {"jwt: CTL-074 each audience has a greatest length", test_CTL_074_each_audience_has_a_greatest_length},
    {"jwt: CTL-069 the first claim that is wrong is told",
     test_CTL_069_the_first_claim_that_is_wrong_is_told},
    {"jwt: CTL-069 a text with escapes that doesn't fit", test_CTL_069_a_text_with_escapes_that_does_not_fit},
    {"jwt: CTL-104 a signer's kid has 128 bytes", test_CTL_104_a_signers_kid_has_128_bytes},
    {"CTL-112 further keys that are refused", test_CTL_112_further_keys_that_are_refused},
    {"CTL-112 a kid has 128 bytes", test_CTL_112_a_kid_has_128_bytes},
    {NULL, NULL},
};
