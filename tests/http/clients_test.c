/* Clients and their API keys, handler by handler: what each is answered, and what two at a time are. */
#define _GNU_SOURCE /* memmem */
#include "acutest.h"

#include "http/api_key_auth.h"
#include "http/clients.h"
#include "http/front.h"
#include "store/store.h"
#include "tests/support/exchange.h"
#include "tests/support/stage.h"

static struct front front;

static const struct route *route_of(enum method method, const char *path)
{
    return exchange_route(client_routes, client_routes_count, method, path);
}

/* Answers of the last exchange. */
static struct exchange *exchange(void)
{
    return actor_alloc(sizeof(struct exchange));
}

static bool is(const struct exchange *x, const char *names, const char *expected)
{
    return strcmp(exchange_member(x, names), expected) == 0;
}

static bool refused(const struct exchange *x, int status, const char *code)
{
    return x->r.status == status && is(x, "code", code) && strcmp(x->r.type, "application/problem+json") == 0;
}

struct given {
    const char *key, *idempotency, *body; /* NULL: none */
    struct span address;                  /* without bytes: the usual one */
};

/* As the front does it: who the key says, or what it is refused with. */
static struct exchange *ask(enum method method, const char *path, const char *param, struct given given)
{
    struct exchange *x = exchange();
    exchange_begin(x, route_of(method, path), param, given.body);
    x->q.front = &front;
    if (given.address.bytes)
        x->q.address = given.address;
    if (given.idempotency)
        x->q.known[HEADER_IDEMPOTENCY_KEY] = span_text(given.idempotency);
    enum error_code code =
        given.key ? api_key_verify(span_text(given.key), &x->q.identity)
                  : (x->q.route->auth == AUTH_KEY ? ERROR_RFA_AUTH_INVALID_CREDENTIALS : ERROR_NONE);
    if (code != ERROR_NONE) {
        x->r.status = catalogue_row(code)->status;
        x->r.error = code;
        return x;
    }
    exchange_serve(x);
    x->r.error = x->r.error ? x->r.error : ERROR_NONE;
    return x;
}

#define CREATE "/v1/clients"
#define KEYS   "/v1/clients/{client_id}/keys"
#define RENEW  "/v1/clients/{client_id}/keys/renew"
#define REVOKE "/v1/clients/{client_id}/keys/revoke"

static struct exchange *post(const char *path, const char *client, struct given given)
{
    return ask(METHOD_POST, path, client, given);
}

struct party {
    char client[UUID_TEXT_SIZE], key[API_KEY_TEXT_SIZE], key_id[UUID_TEXT_SIZE];
};

static void note_key(struct party *p, const struct exchange *x)
{
    snprintf(p->key, sizeof(p->key), "%s", exchange_member(x, "api_key"));
    snprintf(p->key_id, sizeof(p->key_id), "%s", exchange_member(x, "key_id"));
}

static struct party join(void)
{
    struct party p;
    struct exchange *x = post(CREATE, NULL, (struct given){0});
    EXPECT(x->r.status == 201);
    snprintf(p.client, sizeof(p.client), "%s", exchange_member(x, "client_id"));
    x = post(KEYS, p.client, (struct given){0});
    EXPECT(x->r.status == 201);
    note_key(&p, x);
    return p;
}

static void run(void (*body)(void))
{
    struct stage stage = {.real = false};
    struct limiter *limiter = limiter_create(&(struct limiter_options){.cells = 64});
    TEST_ASSERT(limiter != NULL && api_keys_start());
    front = (struct front){.name = "client", .limiter = limiter};
    TEST_CHECK(stage_run(&stage, body) == 0);
    api_keys_stop();
    limiter_destroy(limiter);
}

/* ---- create client ---- */

static void client_body(void)
{
    struct exchange *x;
    char first[UUID_TEXT_SIZE];
    struct uuid id;
    (void)stage_writer();
    x = post(CREATE, NULL, (struct given){0});
    EXPECT(x->r.status == 201 && strcmp(x->r.type, RESPONSE_JSON) == 0);
    EXPECT(json_root(&x->answer)->count == 1); /* exactly client_id */
    EXPECT(uuid_parse(exchange_member(x, "client_id"), 36, &id) && uuid_version(&id) == 4);
    x = post(CREATE, NULL, (struct given){.body = "{}", .idempotency = "k-1"});
    snprintf(first, sizeof(first), "%s", exchange_member(x, "client_id"));
    EXPECT(!exchange_has_header(x, "Idempotent-Replayed: true"));
    x = post(CREATE, NULL, (struct given){.idempotency = "\"k-1\""}); /* quoted is the same key */
    EXPECT(x->r.status == 201 && is(x, "client_id", first));
    EXPECT(exchange_has_header(x, "Idempotent-Replayed: true"));
    x = post(CREATE, NULL, (struct given){.idempotency = "k-2"});
    EXPECT(x->r.status == 201 && !is(x, "client_id", first));
}

static void test_create_client_JOB_101_JOB_103_AMB_J_56(void)
{
    run(client_body);
}

/* A key of somebody who has no name yet is one of his address: of all its bytes, and of nothing behind them. */
static void address_body(void)
{
    char all[9][UUID_TEXT_SIZE];
    (void)stage_writer();
    for (uint32_t i = 0; i < 9; i++) { /* each byte of a network of IPv6 */
        uint8_t address[8] = {0x20, 0x01, 0x0d, 0xb8};
        if (i < 8)
            address[i] ^= 1;
        struct given given = {.idempotency = "k", .address = span_of(address, sizeof(address))};
        snprintf(all[i], sizeof(all[i]), "%s", exchange_member(post(CREATE, NULL, given), "client_id"));
        EXPECT(is(post(CREATE, NULL, given), "client_id", all[i]));
        for (uint32_t k = 0; k < i; k++)
            EXPECT(strcmp(all[i], all[k]) != 0);
    }
    uint8_t four[8] = {192, 0, 2, 1}, other[8] = {192, 0, 2, 2};
    struct given given = {.idempotency = "k", .address = span_of(four, 4)};
    snprintf(all[0], sizeof(all[0]), "%s", exchange_member(post(CREATE, NULL, given), "client_id"));
    memset(four + 4, 0xff, 4);
    EXPECT(is(post(CREATE, NULL, given), "client_id", all[0]));
    given.address = span_of(other, 4);
    EXPECT(!is(post(CREATE, NULL, given), "client_id", all[0]));
}

static void test_a_key_of_somebody_without_a_name_is_one_of_his_address_AMB_J_56(void)
{
    run(address_body);
}

static void idempotency_body(void)
{
    static char long_key[300];
    static const char *const bad[] = {"", "\"\"", "a b", "tab\there", "\x7f", "\xc3\xa9", long_key};
    memset(long_key, 'k', 256);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        EXPECT(
            refused(post(CREATE, NULL, (struct given){.idempotency = bad[i]}), 400, "RFA_REQUEST_MALFORMED"));
    (void)stage_writer();
    long_key[255] = 0;
    EXPECT(post(CREATE, NULL, (struct given){.idempotency = long_key})->r.status == 201);
}

static void test_idempotency_keys_are_1_to_255_visible_characters_AMB_J_29(void)
{
    run(idempotency_body);
}

static void no_writer_body(void)
{
    EXPECT(refused(post(CREATE, NULL, (struct given){0}), 503, "RFA_STORAGE_UNAVAILABLE"));
    actor_pid writer = stage_writer();
    struct party p = join();
    stage_kill(writer);
    EXPECT(refused(post(RENEW, p.client, (struct given){.key = p.key}), 503, "RFA_STORAGE_UNAVAILABLE"));
    EXPECT(refused(post(KEYS, p.client, (struct given){.key = p.key}), 503, "RFA_STORAGE_UNAVAILABLE"));
    char body[96];
    snprintf(body, sizeof(body), "{\"key_id\":\"%s\"}", p.key_id); /* JOB-136, JOB-299 */
    EXPECT(refused(post(REVOKE, p.client, (struct given){.key = p.key, .body = body}), 503,
                   "RFA_STORAGE_UNAVAILABLE"));
    struct exchange *x = post(CREATE, NULL, (struct given){0});
    EXPECT(exchange_has_header(x, "Retry-After: 1"));
    (void)stage_writer();
    EXPECT(post(KEYS, p.client, (struct given){.key = p.key})->r.status == 201); /* the old key stays valid */
}

static void test_without_the_store_nothing_is_done_JOB_106_JOB_116_JOB_126_JOB_298(void)
{
    run(no_writer_body);
}

/* ---- create key ---- */

static void key_body(void)
{
    struct identity who;
    (void)stage_writer();
    struct party p = join();
    EXPECT(strncmp(p.key, "cop_", 4) == 0 && strlen(p.key) == API_KEY_TEXT_LENGTH);
    EXPECT(api_key_verify(span_text(p.key), &who) == ERROR_NONE);
    struct exchange *x = post(KEYS, p.client, (struct given){.key = p.key});
    EXPECT(x->r.status == 201 && is(x, "key_id", p.key_id) &&
           is(x, "api_key", "null")); /* JOB-097, AMB-J-24 */
    EXPECT(json_root(&x->answer)->count == 4);
    char created[32], expires[32];
    snprintf(created, sizeof(created), "%s", exchange_member(x, "created_at"));
    snprintf(expires, sizeof(expires), "%s", exchange_member(x, "expires_at"));
    EXPECT(strcmp(created, expires) < 0 && created[strlen(created) - 1] == 'Z'); /* JOB-108 */
    x = post(KEYS, p.client, (struct given){.key = p.key, .body = "{\"rotate\":false}"});
    EXPECT(x->r.status == 201 && is(x, "key_id", p.key_id) && is(x, "created_at", created));
    struct party q = p;
    x = post(KEYS, p.client, (struct given){.key = p.key, .body = "{\"rotate\":true}"});
    note_key(&q, x);
    EXPECT(x->r.status == 201 && strcmp(q.key, p.key) != 0 && strcmp(q.key_id, p.key_id) != 0);
    EXPECT(api_key_verify(span_text(q.key), &who) == ERROR_NONE);
    EXPECT(api_key_verify(span_text(p.key), &who) == ERROR_RFA_AUTH_API_KEY_DISABLED); /* at once: AMB-J-25 */
}

static void test_create_key_JOB_090_JOB_097_JOB_108(void)
{
    run(key_body);
}

static void key_refusals_body(void)
{
    char random[UUID_TEXT_SIZE];
    (void)stage_writer();
    struct party p = join(), other = join();
    uuid_format(&(struct uuid){{1, 2, 3, 4, 5, 6, 0x47, 8, 0x89}}, random);
    EXPECT(refused(post(KEYS, "nonsense", (struct given){.key = p.key}), 400, "RFA_REQUEST_MALFORMED"));
    EXPECT(refused(post(KEYS, p.client, (struct given){.key = p.key, .body = "{\"rotate\":\"yes\"}"}), 400,
                   "RFA_REQUEST_MALFORMED"));
    EXPECT(
        refused(post(KEYS, p.client, (struct given){0}), 401, "RFA_AUTH_INVALID_CREDENTIALS")); /* AMB-J-21 */
    EXPECT(refused(post(KEYS, p.client, (struct given){.key = other.key}), 403, "RFA_AUTH_FORBIDDEN"));
    EXPECT(refused(post(KEYS, random, (struct given){0}), 404, "RFA_CLIENT_NOT_FOUND"));
    EXPECT(refused(post(KEYS, random, (struct given){.key = p.key}), 404, "RFA_CLIENT_NOT_FOUND"));
    EXPECT(refused(post(RENEW, random, (struct given){.key = p.key}), 404, "RFA_CLIENT_NOT_FOUND"));
    EXPECT(refused(post(RENEW, p.client, (struct given){.key = other.key}), 403, "RFA_AUTH_FORBIDDEN"));
    EXPECT(refused(post(RENEW, "x", (struct given){.key = other.key}), 400, "RFA_REQUEST_MALFORMED"));
}

static void test_create_and_renew_refusals_JOB_110_to_JOB_113_JOB_120_to_JOB_123(void)
{
    run(key_refusals_body);
}

static void key_repeat_body(void)
{
    (void)stage_writer();
    struct exchange *x = post(CREATE, NULL, (struct given){0});
    struct party p;
    snprintf(p.client, sizeof(p.client), "%s", exchange_member(x, "client_id"));
    x = post(KEYS, p.client,
             (struct given){.idempotency = "k", .body = "{\"rotate\":false,\"x\":[1,{\"a\":1,\"b\":2}]}"});
    note_key(&p, x);
    EXPECT(x->r.status == 201 && strncmp(p.key, "cop_", 4) == 0);
    EXPECT(!exchange_has_header(x, "Idempotent-Replayed: true"));
    /* The first result again, without the secret; what is written differently is the same body. */
    x = post(KEYS, p.client,
             (struct given){.idempotency = "k",
                            .body = "{ \"x\" : [1, {\"b\":2,\"\\u0061\":1}], \"rotate\":false}"});
    EXPECT(x->r.status == 201 && is(x, "key_id", p.key_id) && is(x, "api_key", "null"));
    EXPECT(exchange_has_header(x, "Idempotent-Replayed: true"));
    x = post(KEYS, p.client, (struct given){.idempotency = "k", .body = "{\"rotate\":true}", .key = p.key});
    EXPECT(refused(x, 409, "RFA_EXEC_IDEMPOTENCY_CONFLICT")); /* JOB-114 */
    x = post(KEYS, p.client, (struct given){.idempotency = "k", .key = p.key});
    EXPECT(refused(x, 409, "RFA_EXEC_IDEMPOTENCY_CONFLICT"));
    x = post(KEYS, p.client, (struct given){.idempotency = "r", .body = "{\"rotate\":true}", .key = p.key});
    struct party q = p;
    note_key(&q, x);
    EXPECT(x->r.status == 201 && strcmp(q.key_id, p.key_id) != 0);
    x = post(KEYS, p.client, (struct given){.idempotency = "r", .body = "{\"rotate\":true}", .key = q.key});
    EXPECT(x->r.status == 201 && is(x, "key_id", q.key_id) && is(x, "api_key", "null")); /* not a third one */
}

static void test_create_key_again_with_its_idempotency_key_JOB_101_JOB_114(void)
{
    run(key_repeat_body);
}

/* The secret is in its answer, and nowhere in the store. */
static void secret_body(void)
{
    (void)stage_writer();
    struct party p = join();
    struct view *view = view_open(stage_store);
    uint8_t secret[API_KEY_SECRET_SIZE];
    EXPECT(api_key_parse(span_text(p.key), secret));
    for (uint32_t table = 0; table < TABLE_COUNT; table++) {
        struct scan scan = txn_scan(&view->txn, table, span_of("", 0), 0, SCAN_UP);
        while (scan_next(&scan)) {
            EXPECT(!memmem(scan.bytes.bytes, scan.bytes.size, p.key + 4, 43));
            EXPECT(!memmem(scan.bytes.bytes, scan.bytes.size, secret, sizeof(secret)));
            EXPECT(!memmem(scan.key.bytes, scan.key.size, secret, sizeof(secret)));
        }
        (void)scan_end(&scan);
    }
    view_close(view);
}

static void test_secret_is_not_stored_AMB_J_24(void)
{
    run(secret_body);
}

static void window_body(void)
{
    (void)stage_writer();
    struct exchange *x = post(CREATE, NULL, (struct given){0});
    char client[UUID_TEXT_SIZE];
    snprintf(client, sizeof(client), "%s", exchange_member(x, "client_id"));
    clients_configure(&(struct client_settings){.key_lifetime_s = 60, .bootstrap_s = 0, .kept_s = 100});
    EXPECT(refused(post(KEYS, client, (struct given){0}), 401, "RFA_AUTH_INVALID_CREDENTIALS"));
    clients_configure(&(struct client_settings){.key_lifetime_s = 60, .bootstrap_s = 600, .kept_s = 100});
    actor_sleep(actor_now() + 599 * NS_PER_S);
    struct party p;
    x = post(KEYS, client, (struct given){0});
    EXPECT(x->r.status == 201);
    note_key(&p, x);
    actor_sleep(actor_now() + 61 * NS_PER_S); /* a short life: JOB-111, JOB-121, JOB-131 */
    EXPECT(post(KEYS, client, (struct given){.key = p.key})->r.error == ERROR_RFA_AUTH_TOKEN_EXPIRED);
    clients_configure(
        &(struct client_settings){.key_lifetime_s = 90 * 86400, .bootstrap_s = 600, .kept_s = 90 * 86400});
}

static void test_bootstrap_window_and_expiry_AMB_J_21_JOB_111(void)
{
    run(window_body);
}

static struct api_key row_of(const char *key_id)
{
    struct api_key key = {.gone_us = 0};
    struct uuid id;
    struct view *view = view_open(stage_store);
    EXPECT(uuid_parse(key_id, strlen(key_id), &id) && api_key_read(&view->txn, &id, &key) == OK);
    view_close(view);
    return key;
}

/* As long as the settings say, in the unit that they say it in: behind its end, whichever comes first. */
static void kept_body(void)
{
    char body[96];
    (void)stage_writer();
    clients_configure(&(struct client_settings){.key_lifetime_s = 60, .bootstrap_s = 600, .kept_s = 100});
    struct party p = join();
    struct api_key key = row_of(p.key_id);
    EXPECT(key.expires_us == key.created_us + 60 * UINT64_C(1000000));
    EXPECT(key.gone_us == key.expires_us + 100 * UINT64_C(1000000));
    actor_sleep(actor_now() + 10 * NS_PER_S);
    snprintf(body, sizeof(body), "{\"key_id\":\"%s\"}", p.key_id);
    EXPECT(post(REVOKE, p.client, (struct given){.key = p.key, .body = body})->r.status == 200);
    key = row_of(p.key_id);
    EXPECT(key.ended_us > key.created_us && key.gone_us == key.ended_us + 100 * UINT64_C(1000000));
    clients_configure(
        &(struct client_settings){.key_lifetime_s = 90 * 86400, .bootstrap_s = 600, .kept_s = 90 * 86400});
}

static void test_how_long_a_key_is_kept_behind_its_end_JOB_452(void)
{
    run(kept_body);
}

/* ---- renew, revoke ---- */

static void renew_body(void)
{
    struct identity who;
    char before[32];
    (void)stage_writer();
    struct party p = join(), q;
    struct exchange *x = post(KEYS, p.client, (struct given){.key = p.key});
    snprintf(before, sizeof(before), "%s", exchange_member(x, "expires_at"));
    actor_sleep(actor_now() + NS_PER_S);
    q = p;
    x = post(RENEW, p.client, (struct given){.key = p.key, .body = "{}"});
    note_key(&q, x);
    EXPECT(x->r.status == 200 && json_root(&x->answer)->count == 4 && strcmp(q.key_id, p.key_id) != 0);
    EXPECT(strcmp(exchange_member(x, "expires_at"), before) > 0); /* JOB-091 */
    EXPECT(api_key_verify(span_text(q.key), &who) == ERROR_NONE);
    EXPECT(post(RENEW, p.client, (struct given){.key = p.key})->r.error == ERROR_RFA_AUTH_API_KEY_DISABLED);
    EXPECT(post(RENEW, p.client, (struct given){0})->r.error == ERROR_RFA_AUTH_INVALID_CREDENTIALS);
}

static void test_renew_JOB_118_JOB_121_JOB_122(void)
{
    run(renew_body);
}

static void revoke_body(void)
{
    char body[128];
    (void)stage_writer();
    struct party p = join(), other = join();
    EXPECT(refused(post(REVOKE, p.client, (struct given){.key = p.key, .body = "{}"}), 400,
                   "RFA_REQUEST_MALFORMED"));
    EXPECT(refused(post(REVOKE, p.client, (struct given){.key = p.key, .body = "{\"key_id\":7}"}), 400,
                   "RFA_REQUEST_MALFORMED"));
    EXPECT(refused(post(REVOKE, p.client, (struct given){.key = p.key, .body = "{\"key_id\":\"nonsense\"}"}),
                   404, "RFA_AUTH_API_KEY_NOT_FOUND"));
    snprintf(body, sizeof(body), "{\"key_id\":\"%s\"}", other.key_id);
    EXPECT(refused(post(REVOKE, p.client, (struct given){.key = p.key, .body = body}), 404,
                   "RFA_AUTH_API_KEY_NOT_FOUND"));
    EXPECT(refused(post(REVOKE, p.client, (struct given){.key = other.key, .body = body}), 403,
                   "RFA_AUTH_FORBIDDEN"));
    snprintf(body, sizeof(body), "{\"key_id\":\"%s\"}", p.key_id);
    struct exchange *x = post(REVOKE, p.client, (struct given){.key = p.key, .body = body});
    EXPECT(x->r.status == 200 && x->r.sink.length == strlen("{\"revoked\":true}") &&
           memcmp(x->r.body, "{\"revoked\":true}", x->r.sink.length) == 0); /* JOB-128 */
    EXPECT(post(REVOKE, p.client, (struct given){.key = p.key, .body = body})->r.error ==
           ERROR_RFA_AUTH_API_KEY_DISABLED); /* JOB-132, AMB-J-26 */
    EXPECT(refused(post(KEYS, p.client, (struct given){0}), 401, "RFA_AUTH_INVALID_CREDENTIALS"));
}

static void test_revoke_JOB_128_to_JOB_133(void)
{
    run(revoke_body);
}

/* ---- two at a time ---- */

enum { RIVALS = 4 };
static struct party contested;
static int statuses[RIVALS];
static char winner_key[API_KEY_TEXT_SIZE];

static void rotate_once(void *arg)
{
    int rival = (int)(intptr_t)arg;
    static const char *const paths[RIVALS] = {KEYS, RENEW, KEYS, REVOKE};
    char body[128];
    snprintf(body, sizeof(body), rival == 3 ? "{\"key_id\":\"%s\"}" : "{\"rotate\":true}", contested.key_id);
    struct exchange *x =
        post(paths[rival], contested.client, (struct given){.key = contested.key, .body = body});
    statuses[rival] = x->r.status;
    if (x->r.status < 300 && rival != 3)
        snprintf(winner_key, sizeof(winner_key), "%s", exchange_member(x, "api_key"));
    if (x->r.status == 409)
        EXPECT(x->r.error == ERROR_RFA_AUTH_API_KEY_CONFLICT);
    else if (x->r.status == 403)
        EXPECT(x->r.error == ERROR_RFA_AUTH_API_KEY_DISABLED);
}

/* All of them come with the same key: whoever is first wins, the others lose with 409 (or 403, when they came late). */
static void rivals_body(void)
{
    actor_pid dolls[RIVALS];
    struct identity who;
    (void)stage_writer();
    contested = join();
    winner_key[0] = 0;
    for (int i = 0; i < RIVALS; i++)
        dolls[i] = stage_doll(i % 2, rotate_once, (void *)(intptr_t)i);
    for (int i = 0; i < RIVALS; i++)
        (void)stage_ended(dolls[i]);
    int won = 0;
    for (int i = 0; i < RIVALS; i++) {
        won += statuses[i] < 300;
        EXPECT(statuses[i] < 300 || statuses[i] == 409 || statuses[i] == 403);
    }
    EXPECT(won == 1);
    EXPECT(api_key_verify(span_text(contested.key), &who) == ERROR_RFA_AUTH_API_KEY_DISABLED);
    EXPECT(!winner_key[0] || api_key_verify(span_text(winner_key), &who) == ERROR_NONE);
}

static void test_of_simultaneous_changes_one_wins_JOB_114_JOB_124_JOB_134(void)
{
    uint32_t lost = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct stage stage = {.seed = seed};
        TEST_ASSERT(api_keys_start());
        front = (struct front){.name = "client"};
        TEST_CHECK(stage_run(&stage, rivals_body) == 0);
        api_keys_stop();
        for (int i = 0; i < RIVALS; i++)
            lost += statuses[i] == 409;
    }
    TEST_CHECK(lost > 0); /* else nobody ever was second */
}

/* ---- limits ---- */

/* The front counts; tests/api/problems_test.sh uses them up. */
static void test_anonymous_requests_are_limited_by_address_AMB_J_22(void)
{
    const struct route *clients = route_of(METHOD_POST, CREATE), *keys = route_of(METHOD_POST, KEYS);
    TEST_CHECK(clients->limit == LIMIT_REGISTER && clients->everybody == LIMIT_REGISTER_ALL);
    TEST_CHECK(keys->auth == AUTH_OPTIONAL && keys->anonymous == LIMIT_REGISTER &&
               keys->limit == LIMIT_CLIENT && keys->everybody == LIMIT_REGISTER_ALL);
}

/* ---- operators ---- */

static struct exchange *operate(enum method method, const char *path, const char *client, const char *body)
{
    struct exchange *x = exchange();
    exchange_begin(x, exchange_route(client_operator_routes, client_operator_routes_count, method, path),
                   client, body);
    x->q.identity.kind = IDENTITY_OPERATOR;
    exchange_serve(x);
    return x;
}

static void operator_body(void)
{
    struct identity who;
    char body[128];
    (void)stage_writer();
    struct party p = join(), q = p;
    snprintf(body, sizeof(body), "{\"key_id\":\"%s\"}", p.key_id);
    EXPECT(operate(METHOD_POST, "/clients/{client_id}/keys:revoke", p.client, body)->r.status == 200);
    EXPECT(operate(METHOD_POST, "/clients/{client_id}/keys:revoke", p.client, body)->r.status ==
           200); /* AMB-J-26 */
    EXPECT(api_key_verify(span_text(p.key), &who) == ERROR_RFA_AUTH_API_KEY_DISABLED);
    struct exchange *x = operate(METHOD_GET, "/clients/{client_id}", p.client, NULL);
    EXPECT(x->r.status == 200 && is(x, "client.client_id", p.client) && is(x, "key", "null"));
    x = operate(METHOD_POST, "/clients/{client_id}/keys:issue", p.client, NULL);
    note_key(&q, x);
    EXPECT(x->r.status == 201 && api_key_verify(span_text(q.key), &who) == ERROR_NONE);
    x = operate(METHOD_GET, "/clients/{client_id}", p.client, NULL);
    EXPECT(is(x, "key.key_id", q.key_id) && is(x, "keys_issued", "2") && is(x, "keys_kept", "2") &&
           is(x, "key.created_by", "operator"));
    x = operate(METHOD_GET, "/clients/{client_id}", "00000000-0000-4000-8000-000000000000", NULL);
    EXPECT(x->r.status == 404);
    struct view *view =
        view_open(stage_store); /* both changes are audited, the one that changed nothing isn't */
    EXPECT(txn_rows(&view->txn, TABLE_AUDITS) == 2);
    view_close(view);
}

static void test_operators_help_who_lost_the_only_key_AMB_J_26(void)
{
    run(operator_body);
}

TEST_LIST
= {
    {"clients: create (JOB-101, JOB-103, AMB-J-56)", test_create_client_JOB_101_JOB_103_AMB_J_56},
    {"clients: idempotency keys (AMB-J-29)", test_idempotency_keys_are_1_to_255_visible_characters_AMB_J_29},
    {"clients: without the store (JOB-106, JOB-116, JOB-126, JOB-136, JOB-298, JOB-299)",
     test_without_the_store_nothing_is_done_JOB_106_JOB_116_JOB_126_JOB_298},
    {"clients: create key (JOB-090, JOB-097, JOB-108)", test_create_key_JOB_090_JOB_097_JOB_108},
    {"clients: create and renew refusals (JOB-110 to JOB-113, JOB-120 to JOB-123)",
     test_create_and_renew_refusals_JOB_110_to_JOB_113_JOB_120_to_JOB_123},
    {"clients: create key again with its idempotency key (JOB-101, JOB-114)",
     test_create_key_again_with_its_idempotency_key_JOB_101_JOB_114},
    {"clients: the secret is not stored (AMB-J-24)", test_secret_is_not_stored_AMB_J_24},
    {"clients: bootstrap window and expiry (AMB-J-21, JOB-111)",
     test_bootstrap_window_and_expiry_AMB_J_21_JOB_111},
    {"clients: renew (JOB-118, JOB-121, JOB-122)", test_renew_JOB_118_JOB_121_JOB_122},
    {"clients: revoke (JOB-128 to JOB-133)", test_revoke_JOB_128_to_JOB_133},
    {"clients: of simultaneous changes one wins (JOB-114, JOB-124, JOB-134)",
     test_of_simultaneous_changes_one_wins_JOB_114_JOB_124_JOB_134},
    {"clients: how long a key is kept behind its end (JOB-452)",
     test_how_long_a_key_is_kept_behind_its_end_JOB_452},
    {"clients: a key of somebody without a name is one of his address (AMB-J-56)",
     test_a_key_of_somebody_without_a_name_is_one_of_his_address_AMB_J_56},
    {"clients: anonymous requests are limited by address (AMB-J-22)",
     test_anonymous_requests_are_limited_by_address_AMB_J_22},
    {"clients: operators help who lost the only key (AMB-J-26)",
     test_operators_help_who_lost_the_only_key_AMB_J_26},
    {NULL, NULL},
};
