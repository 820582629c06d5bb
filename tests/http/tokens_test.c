/* The operator's routes for keys and tokens, and the key set: what they do, what they refuse, and that every answer is what
 * the contract says. And the operator's own token. */
#include "acutest.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "http/contract.h"
#include "http/front.h"
#include "http/keyring.h"
#include "http/timestamp.h"
#include "http/operator_token.h"
#include "http/tokens.h"
#include "store/signing_key.h"
#include "tests/support/exchange.h"
#include "tests/support/stage.h"

static char master_file[64];
static struct keyring *ring;
static struct front front = {.name = "operator", .version = "1", .environment = "dev"};
static struct contracts *contracts;
static struct exchange x;

/* ---- a request, and its answer held against the contract ---- */

static void check_answer(const struct route *route)
{
    const struct contract_operation *operation =
        contracts_operation(contracts, "POST", route->alias_of ? route->alias_of : route->path);
    if (route->method == METHOD_GET)
        operation = contracts_operation(contracts, "GET", route->path);
    EXPECT(operation != NULL);
    const struct schema *schema = NULL;
    bool known = false;
    for (uint32_t i = 0; operation && i < operation->answers_count; i++) {
        if (operation->answers[i].status == x.r.status || (operation->answers[i].status == 0 && !known)) {
            known = true;
            schema = operation->answers[i].schema;
        }
    }
    EXPECT(known);
    static struct schema_result result;
    if (schema && x.r.status < 300 && !schema_check(schema, &x.answer, json_root(&x.answer), &result)) {
        printf("%s: %s %s\n", route->path, result.defects[0].pointer, result.defects[0].what);
        EXPECT(result.valid);
    }
}

static int ask_at(const struct route *routes, size_t count, enum method method, const char *path,
                  const char *param, const char *query, const char *body)
{
    const struct route *route = exchange_route(routes, count, method, path);
    exchange_begin(&x, route, param, body);
    x.q.front = &front;
    x.q.query = span_text(query);
    x.q.identity.kind = IDENTITY_OPERATOR;
    x.q.identity.subject = span_text("olga");
    struct arena_mark mark = actor_arena_mark();
    exchange_serve(&x);
    actor_arena_reset(mark);
    check_answer(route);
    return x.r.status;
}

static int ask(enum method method, const char *path, const char *param, const char *body)
{
    return ask_at(token_routes, token_routes_count, method, path, param, "", body);
}

static int post(const char *path, const char *body)
{
    return ask(METHOD_POST, path, "", body);
}

static int get(const char *path)
{
    return ask(METHOD_GET, path, "", NULL);
}

static void keep(char *room, size_t size, const char *names)
{
    snprintf(room, size, "%s", exchange_member(&x, names));
}

static bool body_has(const char *text)
{
    char body[RESPONSE_BODY_MAX + 1];
    memcpy(body, x.r.body, x.r.sink.length);
    body[x.r.sink.length] = 0;
    return strstr(body, text) != NULL;
}

/* Whole: the last one that was issued. */
static char token[KEYRING_TOKEN_MAX];
static void keep_token(void)
{
    const struct json_node *node = json_member(&x.answer, json_root(&x.answer), "token");
    struct span raw = json_raw_of(&x.answer, node);
    EXPECT(raw.size > 100 && raw.size < sizeof(token));
    snprintf(token, sizeof(token), "%.*s", (int)raw.size - 2, (const char *)raw.bytes + 1);
}

static struct identity who;
static enum jwt_stage verify(void)
{
    const char *why;
    return keyring_verify(ring, span_text(token), span_text("request-9"), &who, &why);
}

/* ---- the stage ---- */

static const char *environment;
static void (*body_run)(void);

static void whole(void)
{
    char text[256] = "";
    const struct keyring_options options = {.issuer = "coppice",
                                            .audience = "coppice",
                                            .environment = environment,
                                            .master_key_file = master_file,
                                            .revocation_ns = 45 * NS_PER_S,
                                            .env = stage_store->env};
    struct start_result result = {.pid = 0};
    stage_writer();
    ring = keyring_create(&options, text, sizeof(text));
    EXPECT(ring != NULL);
    const struct keyring_args args = {ring};
    const struct spawn_options o = {
        .class = &keyring_class, .name = KEYRING_NAME, .args = &args, .args_size = sizeof(args)};
    EXPECT(actor_start(&o, &result, DEADLINE_NONE) == OK);
    actor_sleep(actor_deadline_ms(100));
    front.keyring = ring;
    body_run();
    stage_kill(result.pid);
    keyring_destroy(ring);
}

static void run(const char *in, void (*body)(void))
{
    char text[512] = "";
    environment = in;
    body_run = body;
    snprintf(master_file, sizeof(master_file), "/dev/shm/coppice-tokens-%d", (int)getpid());
    if (!contracts)
        contracts = contracts_create(text, sizeof(text));
    TEST_ASSERT_(contracts != NULL, "%s", text);
    TEST_CHECK(stage_run(&(struct stage){.seed = 3}, whole) == 0);
    unlink(master_file);
}

#define STAGED(name, in)           \
    static void name##_body(void); \
    static void name(void)         \
    {                              \
        run(in, name##_body);      \
    }                              \
    static void name##_body(void)

/* ---- keys ---- */

STAGED(test_CTL_116_CTL_119_bootstrap_says_kid_and_public_half_alone, "prod")
{
    char kid[UUID_TEXT_SIZE];
    EXPECT(get("/keys") == 200 && strcmp(exchange_member(&x, "active_kid"), "null") == 0);
    EXPECT(strcmp(exchange_member(&x, "next_rotation_at"), "null") == 0);
    EXPECT(post("/keys:rotate", "{}") == 404);
    EXPECT(post("/tokens:issue", "{\"subject\":\"u\",\"role\":\"owner\",\"projects\":[\"*\"]}") == 503);
    EXPECT(post("/keys:bootstrap", "{\"reason\":\"the first day\"}") == 201);
    keep(kid, sizeof(kid), "kid");
    EXPECT(strcmp(exchange_member(&x, "jwk.kid"), kid) == 0 &&
           strcmp(exchange_member(&x, "state"), "active") == 0);
    EXPECT(strcmp(exchange_member(&x, "created_by"), "olga") == 0);
    static const char *const secrets[] = {"\"d\"", "\"p\"", "\"q\"", "sealed", "PRIVATE"};
    for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++)
        EXPECT(!body_has(secrets[i]));
    EXPECT(post("/keys:bootstrap", NULL) == 409);
    EXPECT(get("/keys") == 200 && strcmp(exchange_member(&x, "active_kid"), kid) == 0);
    char created[32], next[32];
    EXPECT(json_member(&x.answer, json_root(&x.answer), "keys")->count == 1);
    keep(next, sizeof(next), "next_rotation_at");
    EXPECT(get("/keys/history") == 200 && body_has(kid) && !body_has("sealed"));
    keep(created, sizeof(created), "next");
    EXPECT(strcmp(created, "null") == 0 && strlen(next) == TIMESTAMP_SIZE - 1);
}

STAGED(test_CTL_103_CTL_115_the_key_set_is_public_and_is_kept_as_long_as_a_revocation_may_take, "dev")
{
    char kid[UUID_TEXT_SIZE];
    EXPECT(get("/keys") == 200);
    keep(kid, sizeof(kid), "active_kid");
    EXPECT(ask_at(jwks_routes, jwks_routes_count, METHOD_GET, "/.well-known/jwks.json", "", "", NULL) == 200);
    EXPECT(body_has(kid) && body_has("\"alg\":\"ES256\"") && body_has("\"use\":\"sig\"") &&
           body_has("\"kty\":\"EC\""));
    EXPECT(!body_has("\"d\":") && exchange_has_header(&x, "Cache-Control: public, max-age=45"));
    EXPECT(jwks_routes[0].auth == AUTH_NONE && jwks_routes[0].surface == SURFACE_PUBLIC);
    for (size_t i = 0; i < token_routes_count; i++) /* and nothing else is */
        EXPECT(token_routes[i].auth == AUTH_OPERATOR && token_routes[i].surface == SURFACE_OPERATOR);
}

STAGED(test_CTL_110_CTL_111_rotated_and_revoked_by_hand, "dev")
{
    char first[UUID_TEXT_SIZE], second[UUID_TEXT_SIZE], third[UUID_TEXT_SIZE], next[256], query[300];
    EXPECT(get("/keys") == 200);
    keep(first, sizeof(first), "active_kid");
    EXPECT(post("/keys:rotate", "{\"reason\":\"a drill\"}") == 201);
    keep(second, sizeof(second), "kid");
    EXPECT(strcmp(first, second) != 0);
    snprintf(query, sizeof(query), "Location: /keys/%s", second);
    EXPECT(exchange_has_header(&x, query));
    EXPECT(ask(METHOD_POST, "/keys/{kid}:revoke", second, "{\"reason\":\"it leaked\"}") == 200);
    keep(third, sizeof(third), "active_kid");
    EXPECT(strcmp(third, second) != 0 && strcmp(third, first) != 0 && third[0]);
    EXPECT(ask(METHOD_POST, "/keys/{kid}:revoke", second, NULL) == 409);
    EXPECT(ask(METHOD_POST, "/keys/{kid}:revoke", "nobody", NULL) == 404);
    EXPECT(get("/keys") == 200 && !body_has(second) && body_has(first) && body_has(third));
    /* page by page, newest first */
    EXPECT(ask_at(token_routes, token_routes_count, METHOD_GET, "/keys/history", "", "limit=2", NULL) == 200);
    EXPECT(body_has(third) && body_has(second) && !body_has(first) && body_has("it leaked"));
    keep(next, sizeof(next), "next");
    snprintf(query, sizeof(query), "limit=2&after=%s", next);
    EXPECT(ask_at(token_routes, token_routes_count, METHOD_GET, "/keys/history", "", query, NULL) == 200);
    EXPECT(body_has(first) && !body_has(second) && strcmp(exchange_member(&x, "next"), "null") == 0);
    EXPECT(ask_at(token_routes, token_routes_count, METHOD_GET, "/keys/history", "", "after=nonsense",
                  NULL) == 400);
    EXPECT(ask_at(token_routes, token_routes_count, METHOD_GET, "/keys/history", "", "limit=0", NULL) == 400);
}

/* ---- tokens ---- */

STAGED(test_CTL_104_a_token_is_issued_with_all_that_it_needs, "dev")
{
    char kid[UUID_TEXT_SIZE], jti[UUID_TEXT_SIZE], until[TIMESTAMP_SIZE], place[64];
    EXPECT(get("/keys") == 200);
    keep(kid, sizeof(kid), "active_kid");
    EXPECT(post("/tokens:issue",
                "{\"subject\":\"u\\\"1\",\"role\":\"agent\",\"projects\":[\"p1\",\"p2\"],"
                "\"session_id\":\"s-1\",\"lifetime_seconds\":60,\"reason\":\"a test\"}") == 201);
    EXPECT(strcmp(exchange_member(&x, "kid"), kid) == 0 &&
           strcmp(exchange_member(&x, "session_id"), "s-1") == 0);
    EXPECT(exchange_has_header(&x, "Cache-Control: no-store"));
    keep(jti, sizeof(jti), "jti");
    timestamp_format((actor_wall_now() / NS_PER_S + 60) * NS_PER_S, until);
    EXPECT(strcmp(exchange_member(&x, "expires_at"), until) == 0);
    snprintf(place, sizeof(place), "Location: /tokens/%s", jti);
    EXPECT(exchange_has_header(&x, place));
    keep_token();
    EXPECT(verify() == JWT_STAGE_OK && who.role == ROLE_AGENT && span_equal(who.subject, span_text("u\"1")) &&
           who.projects_count == 2 && !who.all_projects && span_equal(who.jti, span_text(jti)) &&
           who.expires_s == actor_wall_now() / NS_PER_S + 60);
    EXPECT(post("/tokens", "{\"subject\":\"u\",\"role\":\"owner\",\"projects\":[\"*\"]}") == 201);
    keep_token();
    EXPECT(verify() == JWT_STAGE_OK && who.all_projects &&
           who.expires_s == actor_wall_now() / NS_PER_S + 3600);
    EXPECT(post("/tokens", "{\"subject\":\"u\",\"role\":\"owner\",\"projects\":\"p1\"}") == 201);
    keep_token();
    EXPECT(verify() == JWT_STAGE_OK && who.projects_count == 1 &&
           span_equal(who.projects[0], span_text("p1")));
}

/* As many projects as a token may be for, and one more. */
static const char *with_projects(uint32_t count)
{
    static char body[1024];
    size_t used =
        (size_t)snprintf(body, sizeof(body), "{\"subject\":\"u\",\"role\":\"owner\",\"projects\":[");
    for (uint32_t i = 0; i < count; i++)
        used += (size_t)snprintf(body + used, sizeof(body) - used, "%s\"p%u\"", i ? "," : "", i);
    snprintf(body + used, sizeof(body) - used, "]}");
    return body;
}

STAGED(test_CTL_071_how_many_projects_a_token_may_be_for, "dev")
{
    EXPECT(post("/tokens:issue", with_projects(IDENTITY_PROJECTS_MAX)) == 201);
    keep_token();
    EXPECT(verify() == JWT_STAGE_OK && who.projects_count == IDENTITY_PROJECTS_MAX);
    EXPECT(post("/tokens:issue", with_projects(IDENTITY_PROJECTS_MAX + 1)) == 400);
    EXPECT(post("/tokens:issue", with_projects(2 * IDENTITY_PROJECTS_MAX)) == 400 && !body_has("eyJ"));
}

STAGED(test_CTL_079_CTL_080_tokens_that_are_not_issued, "dev")
{
    static const char *const bodies[] = {
        "[]",
        "{}",
        "{\"role\":\"owner\",\"projects\":[\"*\"]}",
        "{\"subject\":\"u\",\"projects\":[\"*\"]}",
        "{\"subject\":\"u\",\"role\":\"king\",\"projects\":[\"*\"]}",
        "{\"subject\":\"u\",\"role\":\"owner\"}",
        "{\"subject\":\"u\",\"role\":\"owner\",\"projects\":[]}",
        "{\"subject\":\"u\",\"role\":\"owner\",\"projects\":[1]}",
        "{\"subject\":\"u\",\"role\":\"owner\",\"projects\":{}}",
        "{\"subject\":\"u\",\"role\":\"owner\",\"projects\":{\"a\":\"p1\"}}",
        "{\"subject\":\"u\",\"role\":\"owner\",\"projects\":7}",
        "{\"subject\":\"u\",\"role\":\"owner\",\"projects\":[[\"p1\"]]}",
        "{\"subject\":\"\",\"role\":\"owner\",\"projects\":[\"*\"]}",
        "{\"subject\":7,\"role\":\"owner\",\"projects\":[\"*\"]}",
        "{\"subject\":\"u\",\"role\":\"owner\",\"projects\":[\"*\"],\"lifetime_seconds\":28801}",
        "{\"subject\":\"u\",\"role\":\"owner\",\"projects\":[\"*\"],\"lifetime_seconds\":-1}",
        "{\"subject\":\"u\",\"role\":\"owner\",\"projects\":[\"*\"],\"lifetime_seconds\":1.5}",
        "{\"subject\":\"u\",\"role\":\"owner\",\"projects\":[\"*\"],\"lifetime_seconds\":\"60\"}",
        "{\"subject\":\"u\",\"role\":\"agent\",\"projects\":[\"*\"],\"lifetime_seconds\":14401}",
    };
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        int status = post("/tokens:issue", bodies[i]);
        if (status != 400)
            printf("%s: %d\n", bodies[i], status);
        EXPECT(status == 400 && !body_has("eyJ"));
    }
    EXPECT(post("/tokens:issue", NULL) == 400);
}

STAGED(test_CTL_084_a_rotated_token_ends_the_one_before, "dev")
{
    char jti[UUID_TEXT_SIZE], body[256], old[KEYRING_TOKEN_MAX];
    EXPECT(post("/tokens:issue", "{\"subject\":\"bot\",\"role\":\"agent\",\"projects\":[\"*\"]}") == 201);
    keep(jti, sizeof(jti), "jti");
    keep_token();
    EXPECT(verify() == JWT_STAGE_OK);
    memcpy(old, token, sizeof(old));
    snprintf(body, sizeof(body),
             "{\"subject\":\"bot\",\"role\":\"agent\",\"projects\":[\"*\"],\"replaces\":\"%s\"}", jti);
    EXPECT(post("/tokens:issue", body) == 201);
    keep_token();
    EXPECT(strcmp(exchange_member(&x, "jti"), jti) != 0 && verify() == JWT_STAGE_OK);
    memcpy(token, old, sizeof(old));
    EXPECT(verify() == JWT_STAGE_BLOCKLIST);
}

static void issue(const char *subject, const char *session)
{
    char body[256];
    snprintf(body, sizeof(body),
             "{\"subject\":\"%s\",\"role\":\"viewer\",\"projects\":[\"*\"],\"session_id\":\"%s\"}", subject,
             session);
    EXPECT(post("/tokens:issue", body) == 201);
    keep_token();
    EXPECT(verify() == JWT_STAGE_OK);
}

STAGED(test_CTL_099_CTL_100_revoked_by_token_jti_session_and_subject, "dev")
{
    char body[KEYRING_TOKEN_MAX + 64], jti[UUID_TEXT_SIZE];
    issue("u1", "s1");
    snprintf(body, sizeof(body), "{\"token\":\"%s\",\"reason\":\"it leaked\"}", token);
    EXPECT(post("/tokens:revoke", body) == 200 && verify() == JWT_STAGE_BLOCKLIST);
    EXPECT(strcmp(exchange_member(&x, "revoked"), "token") == 0);
    EXPECT(strcmp(exchange_member(&x, "seen"), "true") ==
           0); /* it was used; one that nobody has used was not */
    EXPECT(post("/tokens:revoke", "{\"jti\":\"nobody's\"}") == 200);
    EXPECT(strcmp(exchange_member(&x, "seen"), "false") == 0);
    issue("u1", "s1");
    keep(jti, sizeof(jti), "jti");
    snprintf(body, sizeof(body), "{\"jti\":\"%s\"}", jti);
    EXPECT(post("/tokens:revoke", body) == 200 && verify() == JWT_STAGE_BLOCKLIST);
    issue("u1", "s1");
    keep(jti, sizeof(jti), "jti");
    EXPECT(ask(METHOD_POST, "/tokens/{jti}:revoke", jti, NULL) == 200 && verify() == JWT_STAGE_BLOCKLIST);
    issue("u1", "s2");
    EXPECT(post("/tokens:revoke", "{\"session_id\":\"s2\"}") == 200 && verify() == JWT_STAGE_BLOCKLIST);
    EXPECT(strcmp(exchange_member(&x, "seen"), "") == 0); /* that is of tokens alone */
    issue("u1", "s1");
    EXPECT(post("/tokens:revoke", "{\"subject\":\"u1\"}") == 200 && verify() == JWT_STAGE_BLOCKLIST);
    issue("u2", "s1");
    EXPECT(post("/tokens:revoke", "{\"jti\":\"somebody else's\",\"issuer\":\"https://other\"}") == 200);
    EXPECT(verify() == JWT_STAGE_OK);
    static const char *const bad[] = {"{}", "{\"reason\":\"none\"}", "{\"jti\":\"a\",\"subject\":\"b\"}",
                                      "{\"token\":\"nonsense\"}", "{\"token\":\"e30.e30.AAAA\"}"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        EXPECT(post("/tokens:revoke", bad[i]) == 400);
    EXPECT(verify() == JWT_STAGE_OK);
}

/* Whether it was done nobody knows, and the server isn't gone. */
STAGED(test_a_keyring_that_is_late, "dev")
{
    actor_pid late = actor_whereis(WRITER_NAME);
    issue("u1", "s1");
    actor_suspend(late);
    EXPECT(post("/keys:rotate", NULL) == 504 && body_has("OPS_504_TIMEOUT"));
    actor_resume(late);
}

STAGED(test_CTL_110_without_a_writer_it_is_said_and_holds_all_the_same, "dev")
{
    issue("u1", "s1");
    stage_kill(actor_whereis(WRITER_NAME));
    EXPECT(post("/keys:rotate", NULL) == 503);
    EXPECT(post("/tokens:revoke", "{\"subject\":\"u1\"}") == 503);
    EXPECT(verify() == JWT_STAGE_BLOCKLIST);
    EXPECT(post("/tokens:issue", "{\"subject\":\"u2\",\"role\":\"owner\",\"projects\":[\"*\"]}") == 503);
    EXPECT(!body_has("eyJ"));
    stage_writer();
    EXPECT(post("/keys:rotate", NULL) == 201);
}

static void test_tokens_of_a_server_without_keys(void)
{
    struct route route = jwks_routes[0];
    front.keyring = NULL;
    exchange_begin(&x, &route, "", NULL);
    x.q.front = &front;
    exchange_serve(&x);
    TEST_CHECK(x.r.status == 503);
}

/* ---- the operator's token ---- */

static void open_refused(const char *path, const char *part)
{
    char shown[OPERATOR_TOKEN_TEXT] = "untouched", hash[OPERATOR_TOKEN_HASH] = "untouched", why[256] = "";
    TEST_CHECK(operator_token_open(path, env_real(), shown, hash, why, sizeof(why)) != OK);
    TEST_CHECK_(strstr(why, part) != NULL, "'%s' has no '%s'", why, part);
    TEST_CHECK(strcmp(shown, "untouched") == 0 && strcmp(hash, "untouched") == 0);
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    TEST_ASSERT(file != NULL);
    fputs(text, file);
    fclose(file);
    chmod(path, 0600);
}

static void test_operator_token_is_made_once_and_shown_once(void)
{
    char path[64], shown[OPERATOR_TOKEN_TEXT], hash[OPERATOR_TOKEN_HASH], again[OPERATOR_TOKEN_TEXT],
        same[OPERATOR_TOKEN_HASH], why[256] = "", header[128];
    struct stat is;
    snprintf(path, sizeof(path), "/dev/shm/coppice-operator-%d", (int)getpid());
    TEST_CHECK_(operator_token_open(path, env_real(), shown, hash, why, sizeof(why)) == OK, "%s", why);
    TEST_CHECK(strlen(shown) == OPERATOR_TOKEN_LENGTH && strncmp(shown, "cop_op_", 7) == 0);
    TEST_CHECK(stat(path, &is) == 0 && (is.st_mode & 07777) == 0600);
    TEST_CHECK(strlen(hash) == 64 && !strstr(hash, shown + 7));
    TEST_CHECK(operator_token_open(path, env_real(), again, same, why, sizeof(why)) == OK);
    TEST_CHECK(again[0] == 0 && strcmp(hash, same) == 0);

    struct front f = {.operator_token_hash = hash};
    snprintf(header, sizeof(header), "Bearer %s", shown);
    TEST_CHECK(operator_token_check(&f, span_text(header)));
    memcpy(header, "bEARER", 6);
    TEST_CHECK(operator_token_check(&f, span_text(header)));
    for (size_t i = 0; header[i]; i++) { /* any other character anywhere */
        header[i] ^= 1;
        TEST_CHECK(!operator_token_check(&f, span_text(header)));
        header[i] ^= 1;
    }
    TEST_CHECK(operator_token_check(&f, span_text(header)));
    for (size_t size = 0; header[size]; size++)
        TEST_CHECK(!operator_token_check(&f, span_of(header, size)));
    strcat(header, "A");
    TEST_CHECK(!operator_token_check(&f, span_text(header)));
    TEST_CHECK(!operator_token_check(&f, span_of(NULL, 0)) && !operator_token_check(&f, span_text(shown)));
    TEST_CHECK(!operator_token_check(&f, span_text(hash)));
    header[strlen(header) - 1] = 0;
    f.operator_token_hash = NULL;
    TEST_CHECK(!operator_token_check(&f, span_text(header)));
    unlink(path);
    TEST_CHECK(operator_token_open(path, env_real(), again, same, why, sizeof(why)) == OK);
    TEST_CHECK(strcmp(again, shown) != 0 && strcmp(hash, same) != 0);
    unlink(path);
}

static void test_operator_token_files_that_are_refused(void)
{
    char path[64];
    snprintf(path, sizeof(path), "/dev/shm/coppice-operator-%d", (int)getpid());
    write_text(path, "");
    open_refused(path, "holds no operator's token");
    write_text(path, "cop_op_short\n");
    open_refused(path, "holds no operator's token");
    /* of the right length, and with a character that none has: first, in the middle, last */
    for (const char *odd = "!+/= .\n\t\x80"; *odd; odd++)
        for (size_t at = 7; at < OPERATOR_TOKEN_LENGTH; at += (OPERATOR_TOKEN_LENGTH - 8) / 2) {
            char text[OPERATOR_TOKEN_TEXT + 1] = "cop_op_";
            memset(text + 7, 'A', OPERATOR_TOKEN_LENGTH - 7);
            text[at] = *odd;
            text[OPERATOR_TOKEN_LENGTH] = '\n';
            write_text(path, text);
            open_refused(path, "holds no operator's token");
        }
    write_text(path, "cop_OP_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n");
    open_refused(path, "holds no operator's token");
    write_text(path, "cop_op_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n");
    open_refused(path, "longer");
    write_text(path, "cop_op_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n");
    chmod(path, 0604);
    open_refused(path, "0600");
    unlink(path);
    TEST_CHECK(symlink("/dev/null", path) == 0);
    open_refused(path, "can't be opened");
    unlink(path);
    TEST_CHECK(mkdir(path, 0700) == 0);
    open_refused(path, "is not a file");
    rmdir(path);
    open_refused("/nowhere/at/all", "can't be written");
}

TEST_LIST
= {
    {"tokens: a keyring that is late", test_a_keyring_that_is_late},
    {"tokens: CTL-116 CTL-119 bootstrap says kid and public half alone",
     test_CTL_116_CTL_119_bootstrap_says_kid_and_public_half_alone},
    {"tokens: CTL-103 CTL-112 the key set is public and says no more",
     test_CTL_103_CTL_115_the_key_set_is_public_and_is_kept_as_long_as_a_revocation_may_take},
    {"tokens: CTL-110 CTL-111 rotated and revoked by hand", test_CTL_110_CTL_111_rotated_and_revoked_by_hand},
    {"tokens: CTL-104 a token is issued with all that it needs",
     test_CTL_104_a_token_is_issued_with_all_that_it_needs},
    {"tokens: CTL-071 how many projects a token may be for",
     test_CTL_071_how_many_projects_a_token_may_be_for},
    {"tokens: CTL-079 CTL-080 tokens that are not issued", test_CTL_079_CTL_080_tokens_that_are_not_issued},
    {"tokens: CTL-084 a rotated token ends the one before", test_CTL_084_a_rotated_token_ends_the_one_before},
    {"tokens: CTL-099 CTL-100 revoked by token, jti, session and subject",
     test_CTL_099_CTL_100_revoked_by_token_jti_session_and_subject},
    {"tokens: CTL-110 without a writer it is said and holds all the same",
     test_CTL_110_without_a_writer_it_is_said_and_holds_all_the_same},
    {"tokens: of a server without keys", test_tokens_of_a_server_without_keys},
    {"operator token: made once and shown once", test_operator_token_is_made_once_and_shown_once},
    {"operator token: files that are refused", test_operator_token_files_that_are_refused},
    {NULL, NULL},
};
