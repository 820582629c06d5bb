/* Tokens for a secret, from the principal that an operator makes to the token that it gets: what each may ask for, what ends
 * it, and that the answers are what the contracts say. */
#define _GNU_SOURCE /* memmem */
#include "acutest.h"

#include <stdio.h>
#include <unistd.h>

#include "http/api_key_auth.h"
#include "http/contract.h"
#include "http/front.h"
#include "http/grants.h"
#include "http/keyring.h"
#include "http/principals.h"
#include "store/audit.h"
#include "store/principal.h"
#include "store/view.h"
#include "tests/support/exchange.h"
#include "tests/support/stage.h"

static char master_file[64];
static struct keyring *ring;
static struct front front = {.name = "client", .version = "1", .environment = "dev"};
static struct contracts *contracts;
static struct exchange x;

/* ---- a request, and both it and its answer held against the contract ---- */

static void check_by(const struct schema *schema, const struct json_text *json, const char *what)
{
    static struct schema_result result;
    if (schema && !schema_check(schema, json, json_root(json), &result)) {
        printf("%s: %s %s\n", what, result.defects[0].pointer, result.defects[0].what);
        EXPECT(result.valid);
    }
}

static void check_contract(const struct route *route, bool sent)
{
    const struct contract_operation *o =
        contracts_operation(contracts, method_name(route->method), route->path);
    EXPECT(o != NULL);
    if (x.r.status >= 300)
        return;
    if (sent)
        check_by(o->body, &x.sent, route->path);
    for (uint32_t i = 0; i < o->answers_count; i++)
        if (o->answers[i].status == x.r.status)
            check_by(o->answers[i].schema, &x.answer, route->path);
}

static int serve(const struct route *route, const char *param, const char *query, const char *body)
{
    struct arena_mark mark = actor_arena_mark();
    exchange_begin(&x, route, param, body);
    x.q.front = &front;
    x.q.query = span_text(query);
    if (route->auth == AUTH_OPERATOR) {
        x.q.identity.kind = IDENTITY_OPERATOR;
        x.q.identity.subject = span_text("olga");
    }
    exchange_serve(&x);
    check_contract(route, body != NULL);
    actor_arena_reset(mark);
    return x.r.status;
}

static int operate(const char *path, const char *param, const char *body)
{
    return serve(exchange_route(principal_routes, principal_routes_count, METHOD_POST, path), param, "",
                 body);
}

static int list(const char *query)
{
    return serve(exchange_route(principal_routes, principal_routes_count, METHOD_GET, "/principals"), "",
                 query, NULL);
}

static int grant(const char *body)
{
    return serve(exchange_route(grant_routes, grant_routes_count, METHOD_POST, "/v1/auth/token"), "", "",
                 body);
}

static bool refused(int status, const char *code, const char *field)
{
    bool right = x.r.status == status && strcmp(exchange_member(&x, "error.code"), code) == 0;
    if (right && field)
        right = strcmp(exchange_member(&x, "error.details.field"), field) == 0;
    if (!right)
        printf("%d %.*s\n", x.r.status, (int)x.r.sink.length, x.r.body);
    return right;
}

static bool body_has(const char *text)
{
    return memmem(x.r.body, x.r.sink.length, text, strlen(text)) != NULL;
}

/* ---- secrets and tokens ---- */

static char secret[API_KEY_TEXT_SIZE], token[KEYRING_TOKEN_MAX];

static void keep_secret(void)
{
    snprintf(secret, sizeof(secret), "%s", exchange_member(&x, "client_secret"));
    EXPECT(strlen(secret) == API_KEY_TEXT_LENGTH && strncmp(secret, API_KEY_PREFIX, 4) == 0);
}

/* more: further members, with a comma in front. */
static int ask(const char *name, const char *with, const char *more)
{
    static char body[16384];
    snprintf(body, sizeof(body),
             "{\"grant_type\":\"client_credentials\",\"client_id\":\"%s\",\"client_secret\":\"%s\"%s}", name,
             with, more);
    if (grant(body) == 200) {
        const struct json_node *node = json_member(&x.answer, json_root(&x.answer), "access_token");
        struct span raw = json_raw_of(&x.answer, node);
        EXPECT(raw.size > 100 && raw.size < sizeof(token));
        snprintf(token, sizeof(token), "%.*s", (int)raw.size - 2, (const char *)raw.bytes + 1);
    }
    return x.r.status;
}

static struct identity who;
static const char *why;
static enum jwt_stage verify_text(const char *text)
{
    return keyring_verify(ring, span_text(text), span_text("request-9"), &who, &why);
}
static enum jwt_stage verify(void)
{
    return verify_text(token);
}

static uint64_t rows(uint32_t table)
{
    struct view *view = view_open(store_here());
    EXPECT(view != NULL);
    uint64_t count = txn_rows(&view->txn, table);
    view_close(view);
    return count;
}

static void make_builder(void)
{
    EXPECT(operate("/principals", "",
                   "{\"name\":\"agent:builder\",\"role\":\"agent\",\"projects\":[\"p1\",\"p2\"],"
                   "\"agent_template\":\"builder\",\"tier\":\"C\",\"reason\":\"a test\"}") == 201);
    keep_secret();
}

/* ---- the stage ---- */

static const struct agent_template templates[] = {{.id = "builder", .seconds = {0, 7200, 3600}}};
static const char *environment;
static void (*body_run)(void);

static struct start_result keyring;

static void start_keyring(void)
{
    const struct keyring_args args = {ring};
    const struct spawn_options o = {
        .class = &keyring_class, .name = KEYRING_NAME, .args = &args, .args_size = sizeof(args)};
    EXPECT(actor_start(&o, &keyring, DEADLINE_NONE) == OK);
    actor_sleep(actor_deadline_ms(100));
}

static void begin_ring(void)
{
    char text[256] = "";
    const struct keyring_options options = {.issuer = "coppice",
                                            .audience = "coppice",
                                            .environment = environment,
                                            .master_key_file = master_file,
                                            .templates = templates,
                                            .templates_count = 1,
                                            .env = stage_store->env};
    ring = keyring_create(&options, text, sizeof(text));
    EXPECT(ring != NULL);
    start_keyring();
    front.keyring = ring;
}

static void end_ring(void)
{
    stage_kill(keyring.pid);
    keyring_destroy(ring);
}

static void whole(void)
{
    stage_writer();
    begin_ring();
    body_run();
    end_ring();
}

static void run(const char *in, void (*body)(void))
{
    char text[512] = "";
    environment = in;
    body_run = body;
    snprintf(master_file, sizeof(master_file), "/dev/shm/coppice-grants-%d", (int)getpid());
    if (!contracts)
        contracts = contracts_create(text, sizeof(text));
    TEST_ASSERT_(contracts != NULL, "%s", text);
    TEST_ASSERT(api_keys_start());
    TEST_CHECK(stage_run(&(struct stage){.seed = 5}, whole) == 0);
    api_keys_stop();
    unlink(master_file);
}

#define STAGED(name, in)           \
    static void name##_body(void); \
    static void name(void)         \
    {                              \
        run(in, name##_body);      \
    }                              \
    static void name##_body(void)

/* ---- what it is for ---- */

STAGED(test_AMB_21_CTL_104_a_secret_becomes_a_token_with_all_claims, "dev")
{
    make_builder();
    uint64_t audits = rows(TABLE_AUDITS);
    EXPECT(ask("agent:builder", secret, "") == 200);
    EXPECT(strcmp(exchange_member(&x, "token_type"), "Bearer") == 0 &&
           strcmp(exchange_member(&x, "expires_in"), "3600") == 0 &&
           strcmp(exchange_member(&x, "scope"), "p1 p2") == 0);
    EXPECT(!body_has(secret) && rows(TABLE_AUDITS) == audits + 1);
    EXPECT(verify() == JWT_STAGE_OK && who.role == ROLE_AGENT && who.projects_count == 2 &&
           !who.all_projects && span_equal(who.subject, span_text("agent:builder")) && who.session.size &&
           who.jti.size);
    EXPECT(ask("agent:builder", secret, ",\"scope\":\"p2\",\"lifetime_seconds\":60") == 200);
    EXPECT(strcmp(exchange_member(&x, "expires_in"), "60") == 0 &&
           strcmp(exchange_member(&x, "scope"), "p2") == 0);
    EXPECT(verify() == JWT_STAGE_OK && who.projects_count == 1 &&
           span_equal(who.projects[0], span_text("p2")) && who.expires_s == actor_wall_now() / NS_PER_S + 60);
    EXPECT(operate("/principals", "", "{\"name\":\"gateway\",\"role\":\"service\",\"projects\":[\"*\"]}") ==
           201);
    keep_secret();
    EXPECT(ask("gateway", secret, ",\"scope\":\"any thing\"") == 200 && verify() == JWT_STAGE_OK &&
           who.role == ROLE_SERVICE && who.projects_count == 2);
    EXPECT(ask("gateway", secret, "") == 200 && verify() == JWT_STAGE_OK && who.all_projects);
}

STAGED(test_AMB_21_who_has_no_right_secret_gets_nothing, "dev")
{
    static const char *const wrong[] = {"", "x", "cop_0000000000000000000000000000000000000000000000000"};
    make_builder();
    uint64_t audits = rows(TABLE_AUDITS);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        EXPECT(ask("agent:builder", wrong[i], "") == 401 && refused(401, "AUTH_401_INVALID_TOKEN", NULL));
    }
    char first[200];
    snprintf(first, sizeof(first), "%.*s", (int)x.r.sink.length < 199 ? (int)x.r.sink.length : 199, x.r.body);
    EXPECT(ask("agent:nobody", secret, "") == 401 && refused(401, "AUTH_401_INVALID_TOKEN", NULL));
    /* nobody learns which names there are */
    EXPECT(strncmp(x.r.body, first, 60) == 0);
    EXPECT(operate("/principals", "", "{\"name\":\"other\",\"role\":\"service\",\"projects\":[\"p1\"]}") ==
           201);
    EXPECT(ask("other", secret, "") == 401 && rows(TABLE_AUDITS) == audits + 1);
}

STAGED(test_AMB_21_asking_has_a_limit_and_needs_no_token, "dev")
{
    const struct route *route =
        exchange_route(grant_routes, grant_routes_count, METHOD_POST, "/v1/auth/token");
    EXPECT(route->limit == LIMIT_TOKEN && route->auth == AUTH_NONE && route->surface == SURFACE_CONTROL &&
           route->changes);
    for (size_t i = 0; i < principal_routes_count; i++)
        EXPECT(principal_routes[i].auth == AUTH_OPERATOR);
}

STAGED(test_AMB_21_other_grants_are_refused_by_name, "dev")
{
    EXPECT(grant("{\"grant_type\":\"password\",\"username\":\"u\",\"password\":\"p\"}") == 400);
    EXPECT(refused(400, "REQ_400_INVALID_SCHEMA", "grant_type") && body_has("client_credentials") &&
           body_has("there are no users here"));
    EXPECT(grant("{\"grant_type\":\"refresh_token\"}") == 400 &&
           refused(400, "REQ_400_INVALID_SCHEMA", "grant_type") && body_has("must be client_credentials"));
}

STAGED(test_CTL_125_nobody_gets_more_projects_than_the_principal_has, "dev")
{
    make_builder();
    EXPECT(ask("agent:builder", secret, ",\"scope\":\"p1 p3\"") == 403 &&
           refused(403, "AUTH_403_SCOPE", "scope"));
    EXPECT(ask("agent:builder", secret, ",\"scope\":\"*\"") == 403 &&
           refused(403, "AUTH_403_SCOPE", "scope"));
    EXPECT(ask("agent:builder", secret, ",\"scope\":\"p\"") == 403);
    EXPECT(ask("agent:builder", secret, ",\"scope\":\" p2  p1 \"") == 200 && verify() == JWT_STAGE_OK &&
           who.projects_count == 2);
}

/* ---- how long ---- */

STAGED(test_CTL_079_CTL_080_CTL_081_no_longer_than_role_and_template_allow, "dev")
{
    make_builder();
    EXPECT(ask("agent:builder", secret, ",\"lifetime_seconds\":3600") == 200);
    EXPECT(ask("agent:builder", secret, ",\"lifetime_seconds\":3601") == 400 &&
           refused(400, "REQ_400_INVALID_SCHEMA", "lifetime_seconds"));
    EXPECT(operate("/principals", "",
                   "{\"name\":\"b\",\"role\":\"agent\",\"projects\":[\"*\"],\"agent_template\":\"builder\","
                   "\"tier\":\"B\"}") == 201);
    keep_secret();
    EXPECT(ask("b", secret, ",\"lifetime_seconds\":7200") == 200 &&
           ask("b", secret, ",\"lifetime_seconds\":7201") == 400);
    EXPECT(operate("/principals", "",
                   "{\"name\":\"any\",\"role\":\"agent\",\"projects\":[\"*\"],"
                   "\"agent_template\":\"builder\"}") == 201);
    keep_secret(); /* of no one tier: the strictest */
    EXPECT(ask("any", secret, ",\"lifetime_seconds\":3600") == 200 &&
           ask("any", secret, ",\"lifetime_seconds\":3601") == 400);
    EXPECT(operate("/principals", "", "{\"name\":\"free\",\"role\":\"agent\",\"projects\":[\"*\"]}") == 201);
    keep_secret();
    EXPECT(ask("free", secret, ",\"lifetime_seconds\":14400") == 200 &&
           ask("free", secret, ",\"lifetime_seconds\":14401") == 400);
    EXPECT(operate("/principals", "", "{\"name\":\"s\",\"role\":\"service\",\"projects\":[\"*\"]}") == 201);
    keep_secret();
    EXPECT(ask("s", secret, ",\"lifetime_seconds\":28800") == 200 && verify() == JWT_STAGE_OK);
    EXPECT(ask("s", secret, ",\"lifetime_seconds\":28801") == 400);
}

STAGED(test_CTL_084_rotation_is_a_new_token_and_the_end_of_the_old_one, "dev")
{
    static char old[KEYRING_TOKEN_MAX], more[KEYRING_TOKEN_MAX + 64];
    make_builder();
    EXPECT(ask("agent:builder", secret, "") == 200 && verify() == JWT_STAGE_OK);
    memcpy(old, token, sizeof(old));
    snprintf(more, sizeof(more), ",\"replaces\":\"%s\"", old);
    EXPECT(ask("agent:builder", secret, more) == 200 && verify() == JWT_STAGE_OK);
    EXPECT(verify_text(old) == JWT_STAGE_BLOCKLIST);
    EXPECT(ask("agent:builder", secret, more) == 400 && /* it has ended */
           refused(400, "REQ_400_INVALID_SCHEMA", "replaces"));
    /* somebody else's stays */
    memcpy(old, token, sizeof(old));
    snprintf(more, sizeof(more), ",\"replaces\":\"%s\"", old);
    EXPECT(operate("/principals", "", "{\"name\":\"s\",\"role\":\"service\",\"projects\":[\"*\"]}") == 201);
    keep_secret();
    EXPECT(ask("s", secret, more) == 400 && refused(400, "REQ_400_INVALID_SCHEMA", "replaces"));
    EXPECT(verify_text(old) == JWT_STAGE_OK);
}

static uint64_t revocation_ends_s(const char *jti)
{
    struct revocation row;
    struct view *view = view_open(stage_store);
    EXPECT(revocation_read(&view->txn, REVOCATION_TOKEN, span_text(keyring_issuer(ring)), span_text(jti),
                           &row) == OK);
    uint64_t ends_s = row.expires_us / 1000000;
    view_close(view);
    return ends_s;
}

STAGED(test_CTL_084_a_replaced_token_is_kept_in_mind_until_its_own_end, "dev")
{
    static char more[KEYRING_TOKEN_MAX + 128];
    char jti[UUID_TEXT_SIZE];
    make_builder();
    EXPECT(ask("agent:builder", secret, ",\"lifetime_seconds\":60") == 200 && verify() == JWT_STAGE_OK);
    uint64_t ends_s = who.expires_s;
    snprintf(jti, sizeof(jti), "%.*s", (int)who.jti.size, (const char *)who.jti.bytes);
    snprintf(more, sizeof(more), ",\"replaces\":\"%s\"", token);
    EXPECT(ask("agent:builder", secret, more) == 200 && verify() == JWT_STAGE_OK);
    uint64_t kept_s = revocation_ends_s(jti);
    EXPECT(kept_s > ends_s && kept_s <= ends_s + KEYRING_SKEW_S + 1);
}

/* ---- the end ---- */

STAGED(test_CTL_099_what_was_issued_while_the_clock_was_ahead_ends_with_the_rest, "dev")
{
    static char ahead[KEYRING_TOKEN_MAX];
    const int64_t ahead_ns = (int64_t)(600 * NS_PER_S);
    make_builder();
    stage_clock_jump(ahead_ns);
    EXPECT(ask("agent:builder", secret, "") == 200 && verify() == JWT_STAGE_OK);
    memcpy(ahead, token, sizeof(ahead));
    end_ring(); /* a restart, which leaves the audit log alone to tell of it */
    stage_clock_jump(-ahead_ns);
    begin_ring();
    EXPECT(operate("/principals/{name}:rotate", "agent:builder", "{}") == 200);
    keep_secret();
    actor_sleep(actor_now() + 2 * NS_PER_S);
    EXPECT(ask("agent:builder", secret, "") == 200 && verify() == JWT_STAGE_OK);
    actor_sleep(actor_now() + 700 * NS_PER_S);
    EXPECT(verify_text(ahead) == JWT_STAGE_SIGNATURE && verify() == JWT_STAGE_OK);
}

STAGED(test_CTL_099_CTL_100_CTL_101_another_secret_or_none_ends_all_tokens, "dev")
{
    char first[API_KEY_TEXT_SIZE];
    make_builder();
    memcpy(first, secret, sizeof(first));
    EXPECT(ask("agent:builder", secret, "") == 200 && verify() == JWT_STAGE_OK && verify() == JWT_STAGE_OK);
    EXPECT(operate("/principals/{name}:rotate", "agent:builder", "{\"reason\":\"it leaked\"}") == 200);
    EXPECT(verify() == JWT_STAGE_BLOCKLIST); /* at once, although it was remembered */
    keep_secret();
    EXPECT(strcmp(first, secret) != 0 && ask("agent:builder", first, "") == 401);
    /* a token of the same second is as good as any */
    EXPECT(ask("agent:builder", secret, "") == 200 && verify() == JWT_STAGE_OK);
    EXPECT(operate("/principals/{name}:revoke", "agent:builder", NULL) == 200);
    EXPECT(verify() == JWT_STAGE_BLOCKLIST && ask("agent:builder", secret, "") == 401);
    EXPECT(operate("/principals/{name}:revoke", "agent:builder", NULL) == 404);
    EXPECT(operate("/principals/{name}:rotate", "agent:builder", NULL) == 404);
    make_builder(); /* the name may be given again */
    EXPECT(ask("agent:builder", secret, "") == 200 && verify() == JWT_STAGE_OK);
}

/* Each end of the same second would be one of a later one. */
STAGED(test_CTL_099_CTL_100_ends_in_quick_succession_end_no_later_token, "dev")
{
    make_builder();
    uint64_t second = actor_wall_now() / NS_PER_S;
    for (uint32_t i = 0; i < KEYRING_SKEW_S; i++)
        EXPECT(operate("/principals/{name}:rotate", "agent:builder", NULL) == 200);
    keep_secret();
    EXPECT(actor_wall_now() / NS_PER_S == second);
    EXPECT(ask("agent:builder", secret, "") == 200 && verify() == JWT_STAGE_OK);
    EXPECT(who.expires_s <= second + 3600 + 1);
}

/* The old secret's, issued while the command waited for the store: it is of the second behind the last end. */
STAGED(test_CTL_099_CTL_100_a_token_of_meanwhile_is_ended_too, "dev")
{
    static struct keyring_token meanwhile;
    const struct keyring_claims claims = {.subject = span_text("agent:builder"),
                                          .role = span_text("agent"),
                                          .projects = {span_text("p1")},
                                          .projects_count = 1};
    const struct keyring_order order = {.who = span_text("olga"), .reason = span_text("it leaked")};
    bool unavailable;
    make_builder();
    EXPECT(operate("/principals/{name}:rotate", "agent:builder", NULL) == 200);
    const struct keyring_end end = keyring_end_of(ring);
    const struct principal_put c = {.verb = PRINCIPAL_ROTATE,
                                    .name = claims.subject,
                                    .audit = stage_id(1),
                                    .who = order.who,
                                    .reason = order.reason,
                                    .tokens_us = end.tokens_us,
                                    .cut_off_us = end.cut_off_us};
    EXPECT(keyring_issue(ring, &claims, &meanwhile, &unavailable) == NULL);
    EXPECT(verify_text(meanwhile.text) == JWT_STAGE_OK);
    EXPECT(store_submit(&principal_put_class, &c, NULL, 0, NULL, DEADLINE_NONE) == OK);
    EXPECT(keyring_stop_subject(&order, claims.subject, true, false, DEADLINE_NONE) == OK);
    EXPECT(verify_text(meanwhile.text) == JWT_STAGE_BLOCKLIST);
    stage_kill(keyring.pid);
    start_keyring(); /* it is stored, too */
    EXPECT(verify_text(meanwhile.text) == JWT_STAGE_BLOCKLIST);
}

/* What was answered with an error is in the store: whoever comes back reads it, and whoever asks again is told the end of it. */
STAGED(test_CTL_099_CTL_100_an_end_that_could_not_be_told_is_one, "dev")
{
    make_builder();
    EXPECT(ask("agent:builder", secret, "") == 200 && verify() == JWT_STAGE_OK);
    actor_suspend(keyring.pid);
    EXPECT(operate("/principals/{name}:revoke", "agent:builder", NULL) == 504);
    EXPECT(operate("/principals/{name}:revoke", "agent:builder", NULL) == 504); /* it may still be taken */
    stage_kill(keyring.pid);
    start_keyring();
    EXPECT(verify() == JWT_STAGE_BLOCKLIST && ask("agent:builder", secret, "") == 401);
    EXPECT(operate("/principals/{name}:revoke", "agent:builder", NULL) == 404);
    make_builder();
    EXPECT(ask("agent:builder", secret, "") == 200 && verify() == JWT_STAGE_OK);
    actor_suspend(keyring.pid);
    EXPECT(operate("/principals/{name}:rotate", "agent:builder", NULL) == 504);
    stage_kill(keyring.pid);
    start_keyring();
    EXPECT(verify() == JWT_STAGE_BLOCKLIST && rows(TABLE_REVOCATIONS) == 1);
}

/* Nobody knew what the store would do, and nobody asked again. */
STAGED(test_CTL_099_an_end_that_comes_late_is_found, "dev")
{
    actor_pid writer = actor_whereis(WRITER_NAME);
    make_builder();
    EXPECT(ask("agent:builder", secret, "") == 200 && verify() == JWT_STAGE_OK);
    actor_suspend(writer);
    EXPECT(operate("/principals/{name}:revoke", "agent:builder", NULL) == 504);
    EXPECT(verify() == JWT_STAGE_OK);
    actor_resume(writer);
    const struct principal_remove late = {.name = span_text("agent:builder"),
                                          .tokens_us = NS_PER_S,
                                          .cut_off_us = actor_wall_now() / NS_PER_US};
    enum error e = store_submit(&principal_remove_class, &late, NULL, 0, NULL, DEADLINE_NONE);
    EXPECT(e == OK || e == ERR_NOT_FOUND); /* done by now, whoever did it */
    actor_sleep(actor_deadline_ms(2 * KEYRING_TICK_MS));
    EXPECT(verify() == JWT_STAGE_BLOCKLIST);
}

/* All views of the scheduler are open for a second. */
static void crowd(void *arg)
{
    struct view *views[VIEWS_PER_LANE];
    uint32_t count = 0;
    (void)arg;
    while (count < VIEWS_PER_LANE && (views[count] = view_open(stage_store)) != NULL)
        count++;
    (void)actor_sleep(actor_deadline_ms(1000));
    while (count > 0)
        view_close(views[--count]);
}

/* It is committed, and nothing can be read just then. */
STAGED(test_CTL_099_CTL_100_an_end_that_cannot_be_read_at_once_is_found, "dev")
{
    make_builder();
    EXPECT(ask("agent:builder", secret, "") == 200 && verify() == JWT_STAGE_OK);
    actor_pid dolls[] = {stage_doll(0, crowd, NULL), stage_doll(1, crowd, NULL)};
    actor_sleep(actor_deadline_ms(10));
    EXPECT(view_open(stage_store) == NULL);
    EXPECT(operate("/principals/{name}:revoke", "agent:builder", NULL) == 503);
    for (size_t i = 0; i < 2; i++)
        (void)stage_ended(dolls[i]);
    actor_sleep(actor_deadline_ms(2 * KEYRING_TICK_MS));
    EXPECT(verify() == JWT_STAGE_BLOCKLIST && ask("agent:builder", secret, "") == 401);
}

static void revoke_and_die(void *arg)
{
    (void)arg;
    (void)operate("/principals/{name}:revoke", "agent:builder", NULL);
}

/* Whoever asked for it has gone when the store does it. */
STAGED(test_CTL_099_CTL_100_an_end_that_nobody_tells_is_found, "dev")
{
    actor_pid writer = actor_whereis(WRITER_NAME);
    make_builder();
    EXPECT(ask("agent:builder", secret, "") == 200 && verify() == JWT_STAGE_OK);
    actor_suspend(writer);
    actor_pid doll = stage_doll(0, revoke_and_die, NULL);
    actor_sleep(actor_deadline_ms(10));
    stage_kill(doll);
    actor_resume(writer);
    actor_sleep(actor_deadline_ms(2 * KEYRING_TICK_MS));
    EXPECT(rows(TABLE_PRINCIPALS) == 0 && rows(TABLE_REVOCATIONS) == 1);
    EXPECT(verify() == JWT_STAGE_BLOCKLIST);
}

/* ---- what operators see ---- */

STAGED(test_AMB_21_a_list_without_secrets, "dev")
{
    char body[128], next[300], query[340];
    make_builder();
    EXPECT(operate("/principals", "",
                   "{\"name\":\"agent:builder\",\"role\":\"agent\",\"projects\":[\"p\"]}") == 409);
    for (int i = 0; i < 4; i++) {
        snprintf(body, sizeof(body), "{\"name\":\"s%d\",\"role\":\"service\",\"projects\":[\"*\"]}", i);
        EXPECT(operate("/principals", "", body) == 201);
    }
    EXPECT(list("limit=3") == 200 && body_has("\"agent:builder\"") && body_has("\"s0\"") &&
           body_has("\"s1\"") && !body_has("\"s2\""));
    EXPECT(!body_has("cop_") && !body_has("secret\"") && !body_has("hash"));
    EXPECT(body_has("\"agent_template\":\"builder\"") && body_has("\"created_by\":\"olga\""));
    snprintf(next, sizeof(next), "%s", exchange_member(&x, "next"));
    snprintf(query, sizeof(query), "limit=3&after=%s", next);
    EXPECT(list(query) == 200 && body_has("\"s2\"") && body_has("\"s3\"") && !body_has("\"s1\""));
    EXPECT(strcmp(exchange_member(&x, "next"), "null") == 0);
    EXPECT(list("after=nonsense") == 400 && list("limit=0") == 400);
}

STAGED(test_AMB_21_principals_that_can_not_be_meant, "dev")
{
    static const char *const bodies[] = {
        "[]",
        "{}",
        "{\"name\":\"x\",\"role\":\"agent\"}",
        "{\"name\":\"x\",\"projects\":[\"p\"]}",
        "{\"name\":\"x\",\"role\":\"king\",\"projects\":[\"p\"]}",
        "{\"name\":\"x y\",\"role\":\"agent\",\"projects\":[\"p\"]}",
        "{\"name\":\"\",\"role\":\"agent\",\"projects\":[\"p\"]}",
        "{\"name\":\"x\",\"role\":\"agent\",\"projects\":[]}",
        "{\"name\":\"x\",\"role\":\"agent\",\"projects\":[\"p q\"]}",
        "{\"name\":\"x\",\"role\":\"agent\",\"projects\":[\"\"]}",
        "{\"name\":\"x\",\"role\":\"agent\",\"projects\":[\"p\",\"\"]}",
        "{\"name\":\"x\",\"role\":\"agent\",\"projects\":[\"p\",\"*\"]}",
        "{\"name\":\"x\",\"role\":\"agent\",\"projects\":[1]}",
        "{\"name\":\"x\",\"role\":\"agent\",\"projects\":\"p\"}",
        "{\"name\":\"x\",\"role\":\"service\",\"projects\":[\"p\"],\"tier\":\"A\"}",
        "{\"name\":\"x\",\"role\":\"agent\",\"projects\":[\"p\"],\"tier\":\"D\"}",
        "{\"name\":\"x\",\"role\":\"service\",\"projects\":[\"p\"],\"agent_template\":\"t\"}"};
    for (size_t i = 0; i < sizeof(bodies) / sizeof(*bodies); i++) {
        if (operate("/principals", "", bodies[i]) != 400)
            printf("%s: %d\n", bodies[i], x.r.status);
        EXPECT(x.r.status == 400);
    }
    EXPECT(rows(TABLE_PRINCIPALS) == 0);
}

/* Whether it was done nobody knows, and the server isn't gone. */
STAGED(test_a_late_store_is_no_missing_one, "dev")
{
    actor_pid late = actor_whereis(WRITER_NAME);
    actor_suspend(late);
    EXPECT(operate("/principals", "", "{\"name\":\"x\",\"role\":\"agent\",\"projects\":[\"p\"]}") == 504);
    actor_resume(late);
}

STAGED(test_CTL_116_no_key_no_token, "prod")
{
    make_builder();
    EXPECT(ask("agent:builder", secret, "") == 503 && refused(503, "INFRA_503_DEPENDENCY_DOWN", NULL));
    front.keyring = NULL;
    EXPECT(ask("agent:builder", secret, "") == 503);
    EXPECT(operate("/principals", "", "{\"name\":\"x\",\"role\":\"agent\",\"projects\":[\"p\"]}") == 503);
    front.keyring = ring;
}

TEST_LIST
= {
    {"AMB-21 CTL-104 a secret becomes a token with all claims",
     test_AMB_21_CTL_104_a_secret_becomes_a_token_with_all_claims},
    {"AMB-21 who has no right secret gets nothing", test_AMB_21_who_has_no_right_secret_gets_nothing},
    {"AMB-21 asking has a limit and needs no token", test_AMB_21_asking_has_a_limit_and_needs_no_token},
    {"AMB-21 other grants are refused by name", test_AMB_21_other_grants_are_refused_by_name},
    {"CTL-125 nobody gets more projects than the principal has",
     test_CTL_125_nobody_gets_more_projects_than_the_principal_has},
    {"CTL-079 CTL-080 CTL-081 no longer than role and template allow",
     test_CTL_079_CTL_080_CTL_081_no_longer_than_role_and_template_allow},
    {"CTL-084 rotation is a new token and the end of the old one",
     test_CTL_084_rotation_is_a_new_token_and_the_end_of_the_old_one},
    {"CTL-099 what was issued while the clock was ahead ends with the rest",
     test_CTL_099_what_was_issued_while_the_clock_was_ahead_ends_with_the_rest},
    {"CTL-084 a replaced token is kept in mind until its own end",
     test_CTL_084_a_replaced_token_is_kept_in_mind_until_its_own_end},
    {"CTL-099 CTL-100 CTL-101 another secret, or none, ends all tokens",
     test_CTL_099_CTL_100_CTL_101_another_secret_or_none_ends_all_tokens},
    {"CTL-099 CTL-100 ends in quick succession end no later token",
     test_CTL_099_CTL_100_ends_in_quick_succession_end_no_later_token},
    {"CTL-099 CTL-100 a token of meanwhile is ended, too",
     test_CTL_099_CTL_100_a_token_of_meanwhile_is_ended_too},
    {"CTL-099 CTL-100 an end that could not be told is one",
     test_CTL_099_CTL_100_an_end_that_could_not_be_told_is_one},
    {"CTL-099 an end that comes late is found", test_CTL_099_an_end_that_comes_late_is_found},
    {"CTL-099 CTL-100 an end that can't be read at once is found",
     test_CTL_099_CTL_100_an_end_that_cannot_be_read_at_once_is_found},
    {"CTL-099 CTL-100 an end that nobody tells is found",
     test_CTL_099_CTL_100_an_end_that_nobody_tells_is_found},
    {"AMB-21 a list without secrets", test_AMB_21_a_list_without_secrets},
    {"AMB-21 principals that can't be meant", test_AMB_21_principals_that_can_not_be_meant},
    {"principals: a late store is no missing one", test_a_late_store_is_no_missing_one},
    {"CTL-116 no key, no token", test_CTL_116_no_key_no_token},
    {NULL, NULL},
};
