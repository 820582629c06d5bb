/* Tokens, header and payload by themselves, and keys: nothing that is read is taken for what it isn't, every span lies in the
 * token's own memory, and no signature is good but the one that was made. */
#include <stdlib.h>

#include "http/jwt.h"
#include "runtime/assert.h"
#include "tests/fuzz/bytes.h"
#include "tests/support/token_maker.h"

static struct jwt jwt;
static char token[MAKER_TEXT_MAX], good[MAKER_TEXT_MAX];
static size_t good_size;
static struct jwt_key *key;

static const char header[] = "{\"alg\":\"ES256\",\"kid\":\"k\"}";
static const char claims[] =
    "{\"iss\":\"i\",\"aud\":[\"a\"],\"sub\":\"s\",\"role\":\"agent\",\"project_scope\":[\"p\",\"*\"],"
    "\"session_id\":\"x\",\"jti\":\"j\",\"iat\":1700000000,\"exp\":1700000900}";

static void prepare(void)
{
    static struct json_node nodes[32];
    struct json_text json = {.nodes = nodes, .nodes_max = 32};
    struct json_error error;
    struct maker_key maker;
    char why[200];
    maker_key_make(&maker, "ES256", "k");
    good_size = maker_sign(&maker, header, claims, good);
    ASSERT(json_text_read(&json, span_text(maker.jwk), NULL, &error));
    key = jwt_key_from_jwk(&json, json_root(&json), why, sizeof(why));
    ASSERT(key);
    maker_key_free(&maker);
}

static void check_span(struct span span)
{
    const char *at = span.bytes;
    ASSERT(span.size == 0 || (at >= jwt.storage && at + span.size <= jwt.storage + sizeof(jwt.storage)));
    ASSERT(span.size <= JWT_TEXT_MAX);
}

static void check_read(size_t size)
{
    static const char *const issuers[] = {"i", NULL};
    static const char *const audiences[] = {"a", NULL};
    const struct jwt_policy policy = {issuers, audiences, 120, 28800, 14400};
    ASSERT(strlen(jwt.kid) <= JWT_KID_MAX && jwt.algorithm < JWT_ALGORITHM_COUNT);
    ASSERT(jwt.signature_size <= JWT_SIGNATURE_MAX && jwt.projects_count <= IDENTITY_PROJECTS_MAX);
    const struct span spans[] = {jwt.issuer, jwt.subject, jwt.session, jwt.jti, jwt.role, jwt.kid_claim};
    for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++)
        check_span(spans[i]);
    for (uint32_t i = 0; i < jwt.projects_count; i++)
        check_span(jwt.projects[i]);
    for (uint32_t i = 0; i < jwt.audiences_count; i++)
        check_span(jwt.audiences[i]);
    bool same = size == good_size && memcmp(token, good, size) == 0;
    ASSERT(jwt_key_verify(key, &jwt) == same);
    if (jwt_check_claims(&jwt, &policy, JWT_ES256, 1700000000))
        return;
    ASSERT(jwt.has_exp && jwt.has_iat && jwt.exp > 1700000000 && jwt.exp - jwt.iat <= 28800);
    ASSERT(jwt.subject.size && jwt.session.size && jwt.jti.size && jwt.role.size && jwt.projects_count);
}

static void read_token(size_t size)
{
    if (!jwt_read(span_of(token, size), &jwt))
        check_read(size);
}

static void read_key(const char *text, size_t size)
{
    static struct json_node nodes[256];
    struct json_text json = {.nodes = nodes, .nodes_max = 256};
    struct json_error error;
    char why[200] = "";
    if (!json_text_read(&json, span_of(text, size), NULL, &error))
        return;
    struct jwt_key *other = jwt_key_from_jwk(&json, json_root(&json), why, sizeof(why));
    ASSERT((other == NULL) == (why[0] != 0));
    ASSERT(!other || (jwt_key_algorithm(other) != JWT_NONE && jwt_key_kid(other)[0]));
    jwt_key_free(other);
}

/* The good token with a few bytes changed. */
static void change(struct bytes *input)
{
    size_t size = good_size;
    memcpy(token, good, size);
    while (input->left) {
        size_t at = (size_t)take_n(input, 2) % (size + 1);
        uint8_t byte = take(input);
        if (byte == 0)
            size = at;
        else if (at == size && size < JWT_SIZE_MAX)
            token[size++] = (char)byte;
        else if (at < size)
            token[at] = (char)byte;
    }
    read_token(size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes input = {data, size};
    char text[5000];
    if (!key)
        prepare();
    switch (take(&input) % 5) {
    case 0:
        if (input.left > sizeof(token))
            return 0;
        memcpy(token, input.at, input.left);
        read_token(input.left);
        break;
    case 1:
        take_text(&input, sizeof(text) - 1, text, sizeof(text));
        read_token(maker_join(header, text, "abc", 3, token));
        break;
    case 2:
        take_text(&input, sizeof(text) - 1, text, sizeof(text));
        read_token(maker_join(text, claims, "abc", 3, token));
        break;
    case 3:
        read_key((const char *)input.at, input.left);
        break;
    default:
        change(&input);
    }
    return 0;
}
