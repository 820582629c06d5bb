/* Webhooks and deliveries, handler by handler: what each is answered, and what only its owner may. */
#define _GNU_SOURCE /* memmem */
#include "acutest.h"

#include <stdio.h>

#include "actors/webhooks.h"
#include "http/deliveries.h"
#include "http/front.h"
#include "http/webhooks.h"
#include "store/api_key.h"
#include "store/client.h"
#include "store/job.h"
#include "tests/support/exchange.h"
#include "tests/support/stage.h"

static struct uuid clients[2];

static void run(void (*body)(void))
{
    const struct stage stage = {.real = false};
    webhooks_configure(&webhooks_defaults);
    TEST_CHECK(stage_run(&stage, body) == 0);
}

/* Two clients, with a key each, so that they stay. */
static void begin(void)
{
    (void)stage_writer();
    for (uint8_t i = 0; i < 2; i++) {
        clients[i] = stage_id(1000 + i);
        const struct client_create c = {.id = clients[i], .from = span_text("192.0.2.1")};
        EXPECT(store_submit(&client_create_class, &c, NULL, 0, NULL, actor_deadline_ms(1000)) == OK);
        struct api_key_issue issue = {.client = clients[i],
                                      .id = stage_id(2000 + i),
                                      .window_us = UINT64_C(86400000000),
                                      .ttl_us = UINT64_C(864000000000),
                                      .kept_us = UINT64_C(86400000000)};
        issue.hash.bytes[0] = (uint8_t)(i + 1);
        EXPECT(store_submit(&api_key_issue_class, &issue, NULL, 0, NULL, actor_deadline_ms(1000)) == OK);
    }
}

struct given {
    const char *body, *query, *idempotency;
    uint8_t client; /* 0: the first, 1: the other */
};

static struct exchange *ask(enum method method, const char *path, const char *param, struct given given)
{
    static struct exchange exchanges[16];
    static size_t next;
    bool hook = strncmp(path, "/v1/webhooks", strlen("/v1/webhooks")) == 0;
    struct exchange *x = &exchanges[next++ % 16];
    struct arena_mark mark = actor_arena_mark();
    exchange_begin(x,
                   hook ? exchange_route(webhook_routes, webhook_routes_count, method, path)
                        : exchange_route(delivery_routes, delivery_routes_count, method, path),
                   param, given.body);
    x->q.identity.kind = IDENTITY_CLIENT;
    x->q.identity.client = clients[given.client];
    x->q.query = span_text(given.query ? given.query : "");
    if (given.idempotency)
        x->q.known[HEADER_IDEMPOTENCY_KEY] = span_text(given.idempotency);
    exchange_serve(x);
    actor_arena_reset(mark);
    return x;
}

#define HOOKS "/v1/webhooks"
#define HOOK  "/v1/webhooks/{webhook_id}"
#define LIST  "/v1/deliveries"
#define ONE   "/v1/deliveries/{delivery_id}"

static struct exchange *put(const char *body)
{
    return ask(METHOD_POST, HOOKS, NULL, (struct given){.body = body});
}

static struct exchange *get(const char *path, const char *id)
{
    return ask(METHOD_GET, path, id, (struct given){0});
}

static bool is(const struct exchange *x, const char *names, const char *expected)
{
    return strcmp(exchange_member(x, names), expected) == 0;
}

static bool refused(const struct exchange *x, int status, const char *code)
{
    return x->r.status == status && is(x, "code", code) && strcmp(x->r.type, "application/problem+json") == 0;
}

static bool says(const struct exchange *x, const char *part)
{
    return memmem(x->r.body, x->r.sink.length, part, strlen(part)) != NULL;
}

static char *id_in(const struct exchange *x, const char *name)
{
    char *id = actor_alloc(UUID_TEXT_SIZE);
    snprintf(id, UUID_TEXT_SIZE, "%s", exchange_member(x, name));
    return id;
}

#define GOOD "{\"url\":\"https://a.example/x\",\"events\":[\"job.failed\",\"job.succeeded\"]}"

/* ---- registering ---- */

static void put_body(void)
{
    struct uuid id;
    begin();
    struct exchange *x = put(GOOD);
    EXPECT(x->r.status == 201 && strcmp(x->r.type, RESPONSE_JSON) == 0 && json_root(&x->answer)->count == 2);
    char *text = id_in(x, "webhook_id"), location[80];
    EXPECT(uuid_parse(text, strlen(text), &id) && uuid_version(&id) == 7);
    snprintf(location, sizeof(location), "Location: /v1/webhooks/%s", text);
    EXPECT(exchange_has_header(x, location));
    x = get(HOOK, text);
    EXPECT(x->r.status == 200 && is(x, "webhook_id", text) && is(x, "url", "https://a.example/x"));
    EXPECT(is(x, "state", "active") && is(x, "reason", "null") &&
           says(x, "\"events\":[\"job.succeeded\",\"job.failed\"]"));
    EXPECT(refused(put(GOOD), 409, "RFA_WEBHOOK_CONFLICT")); /* JOB-189, JOB-368 */
    x = put("{\"events\":[\"job.succeeded\",\"job.failed\"],\"url\":\"https://a.example/x\",\"more\":1}");
    EXPECT(refused(
        x, 409, "RFA_WEBHOOK_CONFLICT")); /* in whatever order; members nobody knows are ignored (AMB-J-57) */
    x = put("{\"url\":\"https://a.example/x\",\"events\":[\"*\"]}");
    EXPECT(x->r.status == 201 && says(get(HOOK, id_in(x, "webhook_id")), "\"events\":[\"*\"]"));
    x = ask(METHOD_POST, HOOKS, NULL, (struct given){.body = GOOD, .client = 1});
    EXPECT(x->r.status == 201); /* another client's own */
}

static void test_register_JOB_183_JOB_184_JOB_189_JOB_368(void)
{
    run(put_body);
}

static void bad_body(void)
{
    static const struct {
        const char *body, *code, *field;
    } cases[] = {
        {"{}", "RFA_JOB_VALIDATION_FAILED", "url"},
        {"{\"events\":[\"*\"]}", "RFA_JOB_VALIDATION_FAILED", "url"},
        {"{\"url\":\"https://a.example/\"}", "RFA_JOB_VALIDATION_FAILED", "events"},
        {"{\"url\":\"\",\"events\":[\"*\"]}", "RFA_JOB_VALIDATION_FAILED", "url"},
        {"{\"url\":\"a.example\",\"events\":[\"*\"]}", "RFA_JOB_VALIDATION_FAILED", "url"},
        {"{\"url\":\"ftp://a.example/\",\"events\":[\"*\"]}", "RFA_JOB_VALIDATION_FAILED", "url"},
        {"{\"url\":\"https://me@a.example/\",\"events\":[\"*\"]}", "RFA_JOB_VALIDATION_FAILED", "url"},
        {"{\"url\":\"https://a b.example/\",\"events\":[\"*\"]}", "RFA_JOB_VALIDATION_FAILED", "url"},
        {"{\"url\":\"http://127.0.0.1/\",\"events\":[\"*\"]}", "RFA_JOB_VALIDATION_FAILED", "url"},
        {"{\"url\":\"http://169.254.169.254/\",\"events\":[\"*\"]}", "RFA_JOB_VALIDATION_FAILED", "url"},
        {"{\"url\":\"https://a.example/\",\"events\":[]}", "RFA_JOB_VALIDATION_FAILED", "events"},
        {"{\"url\":\"https://a.example/\",\"events\":[\"job.gone\"]}", "RFA_JOB_VALIDATION_FAILED", "events"},
        {"{\"url\":\"https://a.example/\",\"events\":[\"\"]}", "RFA_JOB_VALIDATION_FAILED", "events"},
        {"{\"url\":\"https://a.example/\",\"events\":[\"job.failed\",\"job.failed\"]}",
         "RFA_JOB_VALIDATION_FAILED", "events"},
        {"{\"url\":\"https://a.example/\",\"events\":[\"*\",\"*\"]}", "RFA_JOB_VALIDATION_FAILED", "events"},
        {"{\"url\":1,\"events\":[\"*\"]}", "RFA_REQUEST_MALFORMED", "url"},
        {"{\"url\":null,\"events\":[\"*\"]}", "RFA_REQUEST_MALFORMED", "url"},
        {"{\"url\":\"https://a.example/\",\"events\":\"*\"}", "RFA_REQUEST_MALFORMED", "events"},
        {"{\"url\":\"https://a.example/\",\"events\":{\"a\":1}}", "RFA_REQUEST_MALFORMED", "events"},
        {"{\"url\":\"https://a.example/\",\"events\":[1]}", "RFA_REQUEST_MALFORMED", "events"},
    };
    begin();
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct exchange *x = put(cases[i].body);
        EXPECT(refused(x, 400, cases[i].code) && is(x, "field", cases[i].field));
    }
    EXPECT(says(get(HOOKS, NULL), "{\"items\":[]}")); /* nothing of it is there */
    struct webhooks_settings settings = webhooks_defaults;
    settings.allow_private = true;
    webhooks_configure(&settings);
    EXPECT(put("{\"url\":\"http://127.0.0.1/\",\"events\":[\"*\"]}")->r.status == 201);
    webhooks_configure(&webhooks_defaults);
}

static void test_bad_registrations_JOB_186_JOB_327_AMB_J_61(void)
{
    run(bad_body);
}

static void again_body(void)
{
    begin();
    struct given first = {.body = GOOD, .idempotency = "k-1"}, other = first;
    char *id = id_in(ask(METHOD_POST, HOOKS, NULL, first), "webhook_id");
    struct exchange *x = ask(METHOD_POST, HOOKS, NULL, first);
    EXPECT(x->r.status == 201 && is(x, "webhook_id", id) &&
           exchange_has_header(x, "Idempotent-Replayed: true"));
    other.body = "{\"events\":[\"job.failed\",\"job.succeeded\"],\"url\":\"https:\\/\\/a.example\\/x\"}";
    x = ask(METHOD_POST, HOOKS, NULL, other);
    EXPECT(x->r.status == 201 && is(x, "webhook_id", id)); /* it means the same */
    other.body = "{\"url\":\"https://b.example/\",\"events\":[\"*\"]}";
    EXPECT(refused(ask(METHOD_POST, HOOKS, NULL, other), 409, "RFA_EXEC_IDEMPOTENCY_CONFLICT"));
    other.idempotency = "a b";
    EXPECT(refused(ask(METHOD_POST, HOOKS, NULL, other), 400, "RFA_REQUEST_MALFORMED"));
    EXPECT(ask(METHOD_DELETE, HOOK, id, (struct given){0})->r.status == 200);
    x = ask(METHOD_POST, HOOKS, NULL, first);
    EXPECT(x->r.status == 201 && is(x, "webhook_id", id)); /* what was answered stays answered */
}

static void test_registering_again_JOB_101_JOB_189_AMB_J_29(void)
{
    run(again_body);
}

static void many_body(void)
{
    char body[2200], long_part[1900];
    begin();
    memset(long_part, 'x', sizeof(long_part) - 1);
    long_part[sizeof(long_part) - 1] = 0;
    for (unsigned i = 0; i < WEBHOOKS_MAX; i++) {
        snprintf(body, sizeof(body), "{\"url\":\"https://a.example/%u/%s\",\"events\":[\"*\"]}", i,
                 long_part);
        EXPECT(put(body)->r.status == 201);
    }
    struct exchange *x = put(GOOD);
    EXPECT(refused(x, 429, "RFA_REQUEST_RATE_LIMITED") && exchange_has_header(x, "Retry-After: 3600"));
}

static void test_there_are_32_at_most(void)
{
    run(many_body);
}

/* ---- unregistering ---- */

static void remove_body(void)
{
    static const char unknown[] = "00000000-0000-7000-8000-000000000000";
    begin();
    char *id = id_in(put(GOOD), "webhook_id");
    EXPECT(refused(ask(METHOD_DELETE, HOOK, id, (struct given){.client = 1}), 403, "RFA_AUTH_FORBIDDEN"));
    EXPECT(refused(ask(METHOD_DELETE, HOOK, unknown, (struct given){0}), 404, "RFA_WEBHOOK_NOT_FOUND"));
    EXPECT(refused(ask(METHOD_DELETE, HOOK, "nonsense", (struct given){0}), 404, "RFA_WEBHOOK_NOT_FOUND"));
    struct exchange *x = ask(METHOD_DELETE, HOOK, id, (struct given){0});
    EXPECT(x->r.status == 200 && says(x, "{\"deleted\":true}"));
    EXPECT(refused(ask(METHOD_DELETE, HOOK, id, (struct given){0}), 404, "RFA_WEBHOOK_NOT_FOUND"));
    EXPECT(put(GOOD)->r.status == 201); /* it may come again */
}

static void test_unregister_JOB_192_JOB_193_JOB_196_JOB_197_JOB_367_AMB_J_59(void)
{
    run(remove_body);
}

/* ---- what is ours ---- */

static void list_body(void)
{
    begin();
    EXPECT(put(GOOD)->r.status == 201);
    EXPECT(put("{\"url\":\"https://b.example/\",\"events\":[\"job.emitted\"]}")->r.status == 201);
    struct exchange *x = get(HOOKS, NULL);
    EXPECT(x->r.status == 200 && says(x, "https://a.example/x") && says(x, "[\"job.emitted\"]"));
    EXPECT(!says(ask(METHOD_GET, HOOKS, NULL, (struct given){.client = 1}), "a.example"));
}

static void test_list_of_webhooks(void)
{
    run(list_body);
}

static void switch_body(void)
{
    begin();
    char *id = id_in(put(GOOD), "webhook_id");
    struct exchange *x = ask(METHOD_POST, HOOK ":disable", id, (struct given){0});
    EXPECT(x->r.status == 200 && is(x, "state", "disabled") && is(x, "reason", "client"));
    EXPECT(is(ask(METHOD_POST, HOOK ":disable", id, (struct given){0}), "state", "disabled"));
    x = ask(METHOD_POST, HOOK ":enable", id, (struct given){.body = "{}"});
    EXPECT(x->r.status == 200 && is(x, "state", "active") && is(x, "reason", "null"));
    EXPECT(refused(ask(METHOD_POST, HOOK ":enable", id, (struct given){.client = 1}), 403,
                   "RFA_AUTH_FORBIDDEN"));
    EXPECT(refused(ask(METHOD_GET, HOOK, id, (struct given){.client = 1}), 403, "RFA_AUTH_FORBIDDEN"));
    EXPECT(refused(ask(METHOD_POST, HOOK ":disable", "x", (struct given){0}), 404, "RFA_WEBHOOK_NOT_FOUND"));
}

static void test_switched_off_and_on(void)
{
    run(switch_body);
}

static void secret_body(void)
{
    uint8_t expected[WEBHOOK_SECRET_SIZE], bytes[WEBHOOK_SECRET_BYTES_MAX];
    uint32_t size = 0;
    struct uuid id;
    begin();
    char *text = id_in(put(GOOD), "webhook_id");
    EXPECT(is(get(HOOK, text), "secret_at", "null"));
    struct exchange *x = ask(METHOD_POST, HOOK ":rotate", text, (struct given){0});
    EXPECT(x->r.status == 200 && is(x, "overlap_seconds", "86400"));
    EXPECT(uuid_parse(text, strlen(text), &id));
    webhook_secret(stage_store, &id, 1, expected);
    EXPECT(webhook_secret_read(span_text(exchange_member(x, "secret")), bytes, &size) &&
           size == sizeof(expected) && memcmp(bytes, expected, size) == 0);
    EXPECT(!is(get(HOOK, text), "secret_at", "null") && !says(get(HOOK, text), "whsec_"));
    EXPECT(refused(ask(METHOD_POST, HOOK ":rotate", text, (struct given){.client = 1}), 403,
                   "RFA_AUTH_FORBIDDEN"));
}

static void test_a_secret_of_its_own_is_shown_once_W6(void)
{
    run(secret_body);
}

/* ---- without the store ---- */

static void no_store_body(void)
{
    begin();
    char *id = id_in(put(GOOD), "webhook_id");
    stage_kill(actor_whereis(WRITER_NAME));
    EXPECT(
        refused(put("{\"url\":\"https://b.example/\",\"events\":[\"*\"]}"), 503, "RFA_STORAGE_UNAVAILABLE"));
    EXPECT(refused(ask(METHOD_DELETE, HOOK, id, (struct given){0}), 503, "RFA_STORAGE_UNAVAILABLE"));
    EXPECT(get(HOOK, id)->r.status == 200); /* reading goes on */
    (void)stage_writer();
    struct exchange *x = get(HOOKS, NULL);
    EXPECT(says(x, "a.example") && !says(x, "b.example"));
}

static void test_without_a_writer_nothing_is_done_JOB_191_JOB_199(void)
{
    run(no_store_body);
}

/* ---- deliveries ---- */

static enum error spread_now(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct delivery_resend *c = command; /* client and job; steady_us: the number of the event */
    const struct delivery_times times = {.at_us = at_us, .steady_us = at_us, .kept_us = 1000000};
    const struct delivery_source source = {.client = c->client,
                                           .job = c->id,
                                           .event = c->steady_us,
                                           .topic = OUTBOX_JOB_EMITTED,
                                           .bit = JOB_EMIT,
                                           .event_us = at_us + c->steady_us * 1000,
                                           .callback = span_text("https://b.example:8080/callback")};
    (void)answer;
    return delivery_spread(txn, &times, &source, NULL);
}

static const struct command_class spread_class = {
    .name = "test.spread", .record = &delivery_resend_record, .apply = spread_now, .code = 9902};

/* As if so many events of the job had been told of; no writer may run meanwhile. */
static void spread(const struct uuid *client, const struct uuid *job, uint64_t first, uint64_t count)
{
    stage_kill(actor_whereis(WRITER_NAME));
    for (uint64_t i = 0; i < count; i++) {
        const struct delivery_resend c = {.client = *client, .id = *job, .steady_us = first + i};
        EXPECT(batch_one(stage_store, &spread_class, store_time_us(), &c, NULL) == OK);
    }
    (void)stage_writer();
}

static void settle_first(const struct uuid *job, enum delivery_outcome outcome)
{
    struct view *view = view_open(stage_store);
    struct delivery_scan scan;
    struct delivery d;
    struct key key;
    delivery_scan_begin(&view->txn, DELIVERY_LIST_JOB, job, NULL, &scan);
    EXPECT(delivery_scan_next(&scan, &d, &key) == OK);
    scan_end(&scan.scan);
    struct delivery_result r = {.id = d.id,
                                .attempt = d.attempts + 1,
                                .outcome = (uint8_t)outcome,
                                .error = outcome == DELIVERY_SUCCEED ? DELIVERY_NO_ERROR : DELIVERY_TIMEOUT,
                                .status = outcome == DELIVERY_SUCCEED ? 200 : 0,
                                .began_us = store_time_us(),
                                .not_before_us =
                                    outcome == DELIVERY_RETRY ? store_steady_us(stage_store) + 60000000 : 0,
                                .took_ms = 5000};
    view_close(view);
    uint8_t bytes[DELIVERY_RESULT_SIZE];
    EXPECT(record_encode(&delivery_result_record, &r, bytes, sizeof(bytes)) == sizeof(bytes));
    const struct delivery_settle c = {.steady_us = store_steady_us(stage_store),
                                      .kept_us = UINT64_C(86400000000),
                                      .results = span_of(bytes, sizeof(bytes))};
    EXPECT(store_submit(&delivery_settle_class, &c, NULL, 0, NULL, actor_deadline_ms(1000)) == OK);
}

static struct exchange *list(const char *query)
{
    return ask(METHOD_GET, LIST, NULL, (struct given){.query = query});
}

static void deliveries_body(void)
{
    char query[128], id[UUID_TEXT_SIZE], hook_text[UUID_TEXT_SIZE];
    begin();
    struct uuid job = stage_id(77), other_job = stage_id(78);
    EXPECT(says(list(""), "{\"items\":[],\"next_cursor\":null}"));
    snprintf(
        hook_text, sizeof(hook_text), "%s",
        exchange_member(put("{\"url\":\"https://a.example/\",\"events\":[\"job.emitted\"]}"), "webhook_id"));
    spread(&clients[0], &job, 1, 2);
    spread(&clients[1], &other_job, 1, 1);
    struct exchange *x = list("");
    EXPECT(json_member(&x->answer, json_root(&x->answer), "items")->count == 4);
    EXPECT(says(x, "\"event_name\":\"job.emitted\"") && says(x, "\"url_host\":\"b.example:8080\"") &&
           says(x, "\"state\":\"pending\"") && says(x, "\"waits_for_earlier\":true"));
    snprintf(query, sizeof(query), "webhook_id=%s", hook_text);
    x = list(query);
    EXPECT(json_member(&x->answer, json_root(&x->answer), "items")->count == 2 && !says(x, "b.example"));
    uuid_format(&other_job, id);
    snprintf(query, sizeof(query), "job_id=%s", id);
    EXPECT(says(list(query), "\"items\":[]")); /* another client's */
    settle_first(&job, DELIVERY_RETRY);
    settle_first(&job, DELIVERY_GIVE_UP);
    x = list("state=failed");
    EXPECT(json_member(&x->answer, json_root(&x->answer), "items")->count == 1 &&
           says(x, "\"error\":\"timeout\",\"error_code\":\"RFA_DEPENDENCY_TIMEOUT\""));
    EXPECT(refused(list("state=lost"), 400, "RFA_REQUEST_MALFORMED"));
    EXPECT(refused(list("limit=0"), 400, "RFA_REQUEST_MALFORMED"));
    EXPECT(refused(list("cursor=x"), 400, "RFA_REQUEST_MALFORMED"));
    EXPECT(refused(list("job_id=x"), 400, "RFA_REQUEST_MALFORMED"));
}

static void test_deliveries_are_listed_JOB_359(void)
{
    run(deliveries_body);
}

static void wall_body(void)
{
    char text[TIME_TEXT_SIZE], member[80];
    begin();
    struct uuid job = stage_id(77);
    (void)put("{\"url\":\"https://a.example/\",\"events\":[\"job.emitted\"]}");
    spread(&clients[0], &job, 1, 1);
    settle_first(&job, DELIVERY_RETRY);
    stage_clock_jump(-3600 * (int64_t)NS_PER_S);
    job_time_format(store_time_us() + 60000000, text);
    snprintf(member, sizeof(member), "\"next_attempt_at\":\"%s\"", text);
    EXPECT(says(list(""), member));
}

static void test_the_next_attempt_is_shown_by_the_wall_clock(void)
{
    run(wall_body);
}

static void paged_body(void)
{
    char query[400], cursor[256] = "";
    uint32_t pages = 0, items = 0;
    begin();
    struct uuid job = stage_id(77);
    spread(&clients[0], &job, 1, 25);
    for (;;) {
        snprintf(query, sizeof(query), "limit=6%s%s", *cursor ? "&cursor=" : "", cursor);
        struct exchange *x = list(query);
        EXPECT(x->r.status == 200);
        items += json_member(&x->answer, json_root(&x->answer), "items")->count;
        pages++;
        snprintf(cursor, sizeof(cursor), "%s", exchange_member(x, "next_cursor"));
        EXPECT(response_has_header(&x->r, "Link") == (strcmp(cursor, "null") != 0));
        if (strcmp(cursor, "null") == 0 || pages > 9)
            break;
    }
    EXPECT(pages == 5 && items == 25);
    struct exchange *x = list("limit=6");
    snprintf(query, sizeof(query), "limit=6&state=failed&cursor=%s", exchange_member(x, "next_cursor"));
    EXPECT(refused(list(query), 400, "RFA_REQUEST_MALFORMED")); /* of another list */
}

static void test_deliveries_page_by_page(void)
{
    run(paged_body);
}

static void resend_body(void)
{
    char id[UUID_TEXT_SIZE];
    begin();
    struct uuid job = stage_id(77);
    spread(&clients[0], &job, 1, 1);
    struct exchange *x = list("");
    const struct json_node *items = json_member(&x->answer, json_root(&x->answer), "items");
    struct span text;
    char room[64];
    EXPECT(json_string_of(&x->answer, json_member(&x->answer, json_first(&x->answer, items), "delivery_id"),
                          room, sizeof(room), &text));
    snprintf(id, sizeof(id), "%.*s", (int)text.size, (const char *)text.bytes);
    settle_first(&job, DELIVERY_RETRY);
    x = get(ONE, id);
    EXPECT(x->r.status == 200 && is(x, "attempts", "1") && says(x, "\"history\":[{\"attempt\":1,\"at\":\"") &&
           says(x, "\"took_ms\":5000,\"http_status\":null,\"error\":\"timeout\""));
    settle_first(&job, DELIVERY_GIVE_UP);
    EXPECT(is(get(ONE, id), "state", "failed") && !is(get(ONE, id), "expires_at", "null"));
    x = ask(METHOD_POST, ONE ":resend", id, (struct given){0});
    EXPECT(x->r.status == 200 && is(x, "state", "pending") && is(x, "attempts", "2") &&
           is(x, "delivery_id", id));
    EXPECT(
        refused(ask(METHOD_POST, ONE ":resend", id, (struct given){.client = 1}), 403, "RFA_AUTH_FORBIDDEN"));
    EXPECT(refused(ask(METHOD_GET, ONE, id, (struct given){.client = 1}), 403, "RFA_AUTH_FORBIDDEN"));
    EXPECT(refused(get(ONE, "x"), 404, "RFA_WEBHOOK_DELIVERY_NOT_FOUND"));
    EXPECT(refused(ask(METHOD_POST, ONE ":resend", "00000000-0000-7000-8000-000000000000", (struct given){0}),
                   404, "RFA_WEBHOOK_DELIVERY_NOT_FOUND"));
    settle_first(&job, DELIVERY_DROP);
    EXPECT(refused(ask(METHOD_POST, ONE ":resend", id, (struct given){0}), 409,
                   "RFA_WEBHOOK_DELIVERY_CONFLICT"));
}

static void test_deliveries_are_shown_and_sent_again(void)
{
    run(resend_body);
}

TEST_LIST
= {
    {"webhooks: register (JOB-183, JOB-184, JOB-189, JOB-368)",
     test_register_JOB_183_JOB_184_JOB_189_JOB_368},
    {"webhooks: bad registrations (JOB-186, JOB-327, AMB-J-61)",
     test_bad_registrations_JOB_186_JOB_327_AMB_J_61},
    {"webhooks: registering again (JOB-101, JOB-189, AMB-J-29)",
     test_registering_again_JOB_101_JOB_189_AMB_J_29},
    {"webhooks: there are 32 at most", test_there_are_32_at_most},
    {"webhooks: unregister (JOB-192, JOB-193, JOB-196, JOB-197, JOB-367, AMB-J-59)",
     test_unregister_JOB_192_JOB_193_JOB_196_JOB_197_JOB_367_AMB_J_59},
    {"webhooks: list", test_list_of_webhooks},
    {"webhooks: switched off and on", test_switched_off_and_on},
    {"webhooks: a secret of its own is shown once (W6)", test_a_secret_of_its_own_is_shown_once_W6},
    {"webhooks: without a writer nothing is done (JOB-191, JOB-199)",
     test_without_a_writer_nothing_is_done_JOB_191_JOB_199},
    {"deliveries: are listed (JOB-359)", test_deliveries_are_listed_JOB_359},
    {"deliveries: page by page", test_deliveries_page_by_page},
    {"the next attempt is shown by the wall clock", test_the_next_attempt_is_shown_by_the_wall_clock},
    {"deliveries: are shown, and sent again", test_deliveries_are_shown_and_sent_again},
    {NULL, NULL},
};
