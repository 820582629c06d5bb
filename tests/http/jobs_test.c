/* Jobs over HTTP, handler by handler: what is taken, what is refused and how, and what of it is in the store afterwards. */
#define _GNU_SOURCE /* memmem */
#include "acutest.h"

#include <stdio.h>

#include "actors/jobs.h"
#include "http/contract.h"
#include "http/front.h"
#include "http/job_request.h"
#include "http/job_inspect.h"
#include "http/job_list.h"
#include "http/jobs.h"
#include "http/rendered.h"
#include "http/paging.h"
#include "runtime/pressure.h"
#include "runtime/telemetry.h"
#include "store/counter.h"
#include "store/job_change.h"
#include "store/job_lease.h"
#include "store/job_pause.h"
#include "store/job_queue.h"
#include "store/job_submit.h"
#include "store/token.h"
#include "tests/support/exchange.h"
#include "tests/support/stage.h"

#define HOUR_US UINT64_C(3600000000)

static struct jobs_settings settings;

static void configure(void)
{
    jobs_configure(&settings);
}

static void run(void (*body)(void))
{
    struct stage stage = {.real = false};
    settings = jobs_defaults;
    configure();
    job_request_configure(&(struct job_request_settings){.allow_private = false});
    TEST_CHECK(stage_run(&stage, body) == 0);
}

/* ---- asking ---- */

static struct uuid client_of(uint8_t number)
{
    struct uuid id = {{0}};
    id.bytes[0] = 0xc0;
    id.bytes[15] = number;
    return id;
}

struct given {
    const char *body, *query, *idempotency, *request_id; /* NULL: none */
    uint8_t client;                                      /* 0: the first */
};

static struct exchange *ask(enum method method, const char *path, const char *param, struct given given)
{
    static struct exchange exchanges[64]; /* the last ones: also of those who ask at the same time */
    static size_t next;
    struct exchange *x = &exchanges[next++ % 64];
    struct arena_mark mark = actor_arena_mark();
    exchange_begin(x, exchange_route(job_routes, job_routes_count, method, path), param, given.body);
    x->q.identity.kind = IDENTITY_CLIENT;
    x->q.identity.client = client_of(given.client ? given.client : 1);
    x->q.query = span_text(given.query ? given.query : "");
    if (given.idempotency)
        x->q.known[HEADER_IDEMPOTENCY_KEY] = span_text(given.idempotency);
    if (given.request_id)
        x->q.known[HEADER_REQUEST_ID] = span_text(given.request_id);
    trace_begin(&x->q.trace, span_of(NULL, 0), span_of(NULL, 0), x->q.known[HEADER_REQUEST_ID]);
    exchange_serve(x);
    actor_arena_reset(mark);
    return x;
}

#define JOBS "/v1/jobs"
#define JOB  "/v1/jobs/{job_id}"

static struct exchange *submit(const char *body)
{
    return ask(METHOD_POST, JOBS, NULL, (struct given){.body = body});
}

static struct exchange *get(const char *path, const char *id)
{
    return ask(METHOD_GET, path, id, (struct given){0});
}

static struct exchange *post(const char *path, const char *id)
{
    return ask(METHOD_POST, path, id, (struct given){0});
}

static bool is(const struct exchange *x, const char *names, const char *expected)
{
    return strcmp(exchange_member(x, names), expected) == 0;
}

static bool refused(const struct exchange *x, int status, const char *code)
{
    return x->r.status == status && is(x, "code", code) && strcmp(x->r.type, "application/problem+json") == 0;
}

/* The id of a submit that was taken. */
static char *id_of(const struct exchange *x)
{
    char *id = actor_alloc(UUID_TEXT_SIZE);
    EXPECT(x->r.status == 202);
    snprintf(id, UUID_TEXT_SIZE, "%s", exchange_member(x, "job_id"));
    return id;
}

static char *submitted(const char *body)
{
    return id_of(submit(body));
}

static char *text_of(const struct exchange *x)
{
    char *text = actor_alloc(x->r.sink.length + 1);
    memcpy(text, x->r.body, x->r.sink.length);
    text[x->r.sink.length] = 0;
    return text;
}

static uint64_t wall_us(void)
{
    return store_time_us();
}

static void pass(uint64_t us)
{
    (void)actor_sleep(actor_now() + us * NS_PER_US);
}

/* ---- what is in the store ---- */

static uint64_t rows(uint32_t table)
{
    struct view *view = view_open(stage_store);
    uint64_t count = txn_rows(&view->txn, table);
    view_close(view);
    return count;
}

struct counted {
    uint64_t jobs, events, queue, ledger, due, definitions;
};

static struct counted count(void)
{
    return (struct counted){.jobs = rows(TABLE_JOBS),
                            .events = rows(TABLE_EVENTS),
                            .queue = rows(TABLE_JOB_QUEUE),
                            .ledger = rows(TABLE_LEDGER),
                            .due = rows(TABLE_DUE),
                            .definitions = rows(TABLE_JOB_DEFINITIONS)};
}

static bool unchanged(struct counted before)
{
    struct counted now = count();
    return memcmp(&before, &now, sizeof(now)) == 0;
}

static struct job job_of(const char *id)
{
    struct uuid uuid;
    struct job job;
    EXPECT(uuid_parse(id, strlen(id), &uuid));
    struct view *view = view_open(stage_store);
    EXPECT(job_read(&view->txn, &uuid, &job) == OK);
    view_close(view);
    job.worker = job.stage = span_of("", 0);
    return job;
}

/* ---- a worker ---- */

static struct job_claimed claim(bool running)
{
    struct job_claimed c = {.fence = 0};
    size_t size = 0;
    struct job_claim command = {.lane = LANE_SERVER,
                                .most = 1,
                                .running = running,
                                .owner = stage_store->start,
                                .steady_us = store_steady_us(stage_store),
                                .lease_us = 24 * HOUR_US,
                                .worker = span_text("worker:0")};
    EXPECT(store_submit(&job_claim_class, &command, &c, sizeof(c), &size, DEADLINE_NONE) == OK);
    return c;
}

static void finish(const struct job_claimed *c, enum job_event event, enum job_failure failure)
{
    struct job_finished done;
    size_t size = 0;
    struct job_finish command = {.id = c->id,
                                 .fence = c->fence,
                                 .event = (uint8_t)event,
                                 .failure = (uint8_t)failure,
                                 .retryable = job_failure_retryable((uint8_t)failure),
                                 .outputs = 1,
                                 .outputs_bytes = 4096,
                                 .steady_us = store_steady_us(stage_store),
                                 .kept_us = settings.kept_us,
                                 .retry_max = settings.retry_max};
    EXPECT(store_submit(&job_finish_class, &command, &done, sizeof(done), &size, DEADLINE_NONE) == OK);
}

static char *ended(const char *body, enum job_event event, enum job_failure failure)
{
    char *id = submitted(body);
    struct job_claimed c = claim(true);
    finish(&c, event, failure);
    return id;
}

#define FAST "{\"type\":\"EXECUTE\",\"work_kind\":\"SUCCESS_FAST\"}"

/* ---- submit ---- */

static void submit_body(void)
{
    struct exchange *x;
    struct uuid id;
    char at[TIME_TEXT_SIZE];
    (void)stage_writer();
    x = submit(FAST);
    EXPECT(x->r.status == 202 && strcmp(x->r.type, RESPONSE_JSON) == 0);
    EXPECT(json_root(&x->answer)->count == 3); /* job_id, state, created_at: exactly */
    EXPECT(is(x, "state", "QUEUED"));
    EXPECT(uuid_parse(exchange_member(x, "job_id"), 36, &id) && uuid_version(&id) == 7);
    struct job job = job_of(exchange_member(x, "job_id"));
    job_time_format(job.created_us, at);
    EXPECT(is(x, "created_at", at));
    EXPECT(job.state == JOB_QUEUED && job.attempt == 1 && job.type == JOB_EXECUTE);
    struct uuid client = client_of(1);
    EXPECT(uuid_equal(&job.client, &client));
    char location[96];
    snprintf(location, sizeof(location), "Location: /v1/jobs/%s", exchange_member(x, "job_id"));
    EXPECT(exchange_has_header(x, location) && !exchange_has_header(x, "Idempotent-Replayed: true"));
    /* each type; optional members there and not, null where it is the same as absent */
    EXPECT(is(submit("{\"type\":\"EXECUTE\",\"execution_at\":null,\"callback\":null}"), "state", "QUEUED"));
    EXPECT(
        is(submit("{\"type\":\"EMIT_EVENT\",\"callback\":\"https://example.com/hook\"}"), "state", "QUEUED"));
    EXPECT(
        is(submit("{\"type\":\"DEFERRED\",\"execution_at\":\"2999-01-01T00:00:00Z\"}"), "state", "CREATED"));
    /* names with escapes are the same names, and unknown members are passed over (AMB-J-57) */
    EXPECT(is(submit("{\"\\u0074ype\":\"EXECUT\\u0045\",\"more\":[1,{\"type\":2}]}"), "state", "QUEUED"));
    EXPECT(rows(TABLE_JOBS) == 5 && rows(TABLE_JOB_QUEUE) == 4 && rows(TABLE_LEDGER) == 0);
    EXPECT(rows(TABLE_EVENTS) == 9);
}

static void test_submit_JOB_081_JOB_082_JOB_137_JOB_138(void)
{
    run(submit_body);
}

/* What is drawn can be drawn again from created_at. */
static void definition_body(void)
{
    static const char *const text[] = {"{\"type\":\"EXECUTE\"}",
                                       "{\"type\":\"DEFERRED\",\"execution_at\":\"2999-01-01T00:00:00Z\"}"};
    char number[16];
    (void)stage_writer();
    for (int i = 0; i < 40; i++) {
        const char *id = submitted(text[i % 2]);
        struct work_definition w;
        struct exchange *x = get(JOB, id);
        EXPECT(work_definition_draw(job_of(id).created_us / 1000, settings.should_fail_ppm,
                                    settings.payload_max, settings.runtime_max_ms, &w));
        EXPECT(is(x, "definition.work_kind", work_kind_row(w.kind)->name));
        snprintf(number, sizeof(number), "%u", w.duration_ms);
        EXPECT(is(x, "definition.duration_ms", number));
        snprintf(number, sizeof(number), "%u", w.payload_bytes);
        EXPECT(is(x, "definition.payload_size", number));
        EXPECT(is(x, "definition.should_fail", w.should_fail ? "true" : "false"));
        EXPECT(w.duration_ms >= 500 && w.duration_ms <= 120000);
        EXPECT(w.payload_bytes >= 1024 && w.payload_bytes <= 262144);
        pass(7000);
    }
}

static void test_definitions_JOB_026_JOB_068_JOB_070_JOB_075_AMB_J_03(void)
{
    run(definition_body);
}

static void by_name_body(void)
{
    char body[128], number[16];
    const struct work_kind_row *row;
    uint32_t taken = 0;
    (void)stage_writer();
    for (size_t i = 0; (row = work_kind_each(i)) != NULL; i++) {
        snprintf(body, sizeof(body), "{\"type\":\"EXECUTE\",\"work_kind\":\"%s\"}", row->name);
        struct exchange *x = submit(body);
        if (row->kind == WORK_KIND_PAYLOAD_INVALID) {
            EXPECT(refused(x, 400, "RFA_JOB_VALIDATION_FAILED") && is(x, "field", "work_kind"));
            continue;
        }
        x = get(JOB, id_of(x));
        EXPECT(is(x, "definition.work_kind", row->name));
        uint32_t duration = row->duration_ms == WORK_OVER_RUNTIME ? 121000 : row->duration_ms;
        snprintf(number, sizeof(number), "%u", duration);
        EXPECT(is(x, "definition.duration_ms", number));
        snprintf(number, sizeof(number), "%u", row->payload_bytes);
        EXPECT(is(x, "definition.payload_size", number));
        EXPECT(is(x, "definition.should_fail", row->failing_attempts ? "true" : "false"));
        taken++;
    }
    EXPECT(taken == 30 && rows(TABLE_JOBS) == 30);
}

static void test_each_kind_by_name_JOB_028_JOB_029_JOB_033_JOB_034_to_JOB_064(void)
{
    run(by_name_body);
}

/* ---- what is refused ---- */

#define MALFORMED "RFA_REQUEST_MALFORMED"
#define INVALID   "RFA_JOB_VALIDATION_FAILED"
#define HTTP(url) "{\"type\":\"EXECUTE\",\"callback\":\"" url "\"}"
#define AT(value) "{\"type\":\"DEFERRED\",\"execution_at\":" value "}"

static const struct {
    const char *body, *code, *field;
} bad[] = {
    /* JOB-301 */
    {"{}", MALFORMED, "type"},
    {"{\"work_kind\":\"SUCCESS_FAST\"}", MALFORMED, "type"},
    {"{\"type\":\"DEFERRED\"}", INVALID, "execution_at"},
    {AT("null"), INVALID, "execution_at"},
    /* JOB-302, JOB-078 */
    {"{\"type\":\"INSTANT\"}", INVALID, "type"},
    {"{\"type\":\"\"}", INVALID, "type"},
    {"{\"type\":\"execute\"}", INVALID, "type"},
    {"{\"type\":\"EXECUTE \"}", INVALID, "type"},
    /* JOB-303, JOB-074, JOB-263 */
    {AT("\"2001-01-01T00:00:00Z\""), INVALID, "execution_at"},
    {AT("\"1960-01-01T00:00:00Z\""), INVALID, "execution_at"},
    /* JOB-304, JOB-259 */
    {AT("\"tomorrow\""), INVALID, "execution_at"},
    {AT("\"2030-13-01T00:00:00Z\""), INVALID, "execution_at"},
    {AT("\"1700000000\""), INVALID, "execution_at"},
    {AT("1700000000"), INVALID, "execution_at"},
    {AT("\"\""), INVALID, "execution_at"},
    {AT("\"2999-01-01T00:00:00\""), INVALID, "execution_at"},
    {AT("\"2999-01-01T00:00:00+02:00\""), INVALID, "execution_at"},
    {AT("\"2999-01-01T00:00:00+00:00\""), INVALID, "execution_at"},
    /* JOB-305 */
    {HTTP("ftp://h/x"), INVALID, "callback"},
    {HTTP("http://"), INVALID, "callback"},
    {HTTP("http:///x"), INVALID, "callback"},
    {HTTP("https://a b/"), INVALID, "callback"},
    {HTTP(""), INVALID, "callback"},
    {HTTP("http://127.0.0.1/"), INVALID, "callback"}, /* AMB-J-61 */
    {HTTP("http://localhost:80/"), INVALID, "callback"},
    {HTTP("http://u:p@example.com/"), INVALID, "callback"},
    {HTTP("http://example.com/?a[]=1"), INVALID, "callback"}, /* a URI would have escaped it */
    /* AMB-J-45 */
    {"{\"type\":\"EXECUTE\",\"execution_at\":\"2999-01-01T00:00:00Z\"}", INVALID, "execution_at"},
    {"{\"type\":\"EMIT_EVENT\",\"execution_at\":\"2999-01-01T00:00:00Z\"}", INVALID, "execution_at"},
    /* AMB-J-02, JOB-033, JOB-064 */
    {"{\"type\":\"EXECUTE\",\"work_kind\":\"NO_SUCH_KIND\"}", INVALID, "work_kind"},
    {"{\"type\":\"EXECUTE\",\"work_kind\":\"success_fast\"}", INVALID, "work_kind"},
    {"{\"type\":\"EXECUTE\",\"work_kind\":\"x.mine\"}", INVALID, "work_kind"},
    {"{\"type\":\"EXECUTE\",\"work_kind\":\"PAYLOAD_INVALID\"}", INVALID, "work_kind"},
    /* AMB-J-57: wrong types, before any rule of the domain */
    {"{\"type\":5}", MALFORMED, "type"},
    {"{\"type\":null}", MALFORMED, "type"},
    {"{\"type\":[\"EXECUTE\"]}", MALFORMED, "type"},
    {AT("true"), MALFORMED, "execution_at"},
    {AT("{}"), MALFORMED, "execution_at"},
    {"{\"type\":\"EXECUTE\",\"callback\":7}", MALFORMED, "callback"},
    {"{\"type\":\"EXECUTE\",\"work_kind\":null}", MALFORMED, "work_kind"},
    {"{\"type\":\"EXECUTE\",\"work_kind\":1}", MALFORMED, "work_kind"},
    {"{\"type\":\"INSTANT\",\"callback\":[]}", MALFORMED, "callback"},
    /* AMB-J-29 */
    {"{\"type\":\"EXECUTE\",\"idempotency_key\":null}", MALFORMED, "idempotency_key"},
    {"{\"type\":\"EXECUTE\",\"idempotency_key\":17}", MALFORMED, "idempotency_key"},
    {"{\"type\":\"EXECUTE\",\"idempotency_key\":\"\"}", MALFORMED, "idempotency_key"},
    {"{\"type\":\"EXECUTE\",\"idempotency_key\":\"a b\"}", MALFORMED, "idempotency_key"},
    {"{\"type\":\"EXECUTE\",\"idempotency_key\":\"\\u00e9\"}", MALFORMED, "idempotency_key"},
};

static void bad_body(void)
{
    (void)stage_writer();
    EXPECT(submit(FAST)->r.status == 202);
    struct counted before = count();
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct arena_mark mark = actor_arena_mark();
        struct exchange *x = submit(bad[i].body);
        bool good = refused(x, 400, bad[i].code) && is(x, "field", bad[i].field) &&
                    strstr(exchange_member(x, "detail"), bad[i].field) && unchanged(before);
        if (!good)
            printf("%s: %d %s\n", bad[i].body, x->r.status, exchange_member(x, "detail"));
        EXPECT(good);
        actor_arena_reset(mark);
    }
    /* which kinds there are, and where those of one's own go */
    EXPECT(strstr(exchange_member(submit("{\"type\":\"EXECUTE\",\"work_kind\":\"NO_SUCH_KIND\"}"), "detail"),
                  "must be one of the catalogue, which GET /v1/work-kinds shows"));
    EXPECT(strstr(exchange_member(submit("{\"type\":\"EXECUTE\",\"work_kind\":\"x.mine\"}"), "detail"),
                  "is one of your own: such jobs go to POST /v1/work:submit"));
    /* with a key, too: nothing is remembered of what was refused */
    struct exchange *x =
        ask(METHOD_POST, JOBS, NULL, (struct given){.body = "{\"type\":\"INSTANT\"}", .idempotency = "k"});
    EXPECT(refused(x, 400, INVALID) && unchanged(before));
    x = ask(METHOD_POST, JOBS, NULL, (struct given){.body = FAST, .idempotency = "a b"});
    EXPECT(refused(x, 400, MALFORMED) && unchanged(before));
    x = ask(METHOD_POST, JOBS, NULL, (struct given){.body = FAST, .idempotency = "k"});
    EXPECT(x->r.status == 202 && !exchange_has_header(x, "Idempotent-Replayed: true"));
}

static void test_bad_input_stores_nothing_JOB_140_JOB_301_to_JOB_306(void)
{
    run(bad_body);
}

/* The contract's schema refuses nothing that the precheck has taken: it would have the wrong code. */
static void schema_body(void)
{
    static char why[512];
    static const char *const good[] = {
        FAST,
        AT("\"2999-01-01T00:00:00Z\""),
        AT("\"2999-01-01t00:00:00.123456789Z\""),
        AT("\"2998-12-31T23:59:60Z\""),
        HTTP("http://example.com"),
        HTTP("https://example.com:65535/a?b=c&d=%20~!$'()*+,;:@/?"),
        HTTP("http://[2606:4700::1111]/"),
        ("{\"type\":\"EXECUTE\",\"idempotency_key\":\"~!\\\"\\\\\",\"callback\":null,"
         "\"execution_at\":null,\"more\":null}")};
    struct contracts *contracts = contracts_create(why, sizeof(why));
    EXPECT(contracts != NULL);
    const struct contract_operation *o = contracts ? contracts_operation(contracts, "POST", JOBS) : NULL;
    EXPECT(o && o->body);
    (void)stage_writer();
    for (size_t i = 0; o && i < sizeof(good) / sizeof(*good); i++) {
        struct exchange *x = submit(good[i]);
        if (x->r.status != 202 || !schema_check(o->body, &x->sent, json_root(&x->sent), NULL))
            printf("%s: %d\n", good[i], x->r.status);
        EXPECT(x->r.status == 202 && schema_check(o->body, &x->sent, json_root(&x->sent), NULL));
    }
    contracts_destroy(contracts);
}

static void test_what_is_taken_is_valid_by_the_contract(void)
{
    run(schema_body);
}

/* ---- time ---- */

static char *at_body(uint64_t us, char room[128])
{
    char at[TIME_TEXT_SIZE];
    time_format(us, at);
    snprintf(room, 128, "{\"type\":\"DEFERRED\",\"execution_at\":\"%s\"}", at);
    return room;
}

static void skew_body(void)
{
    char body[128];
    (void)stage_writer();
    pass(1234567); /* off the second */
    uint64_t now = wall_us();
    struct counted before = count();
    EXPECT(refused(submit(at_body(now - 2000000, body)), 400, INVALID));
    EXPECT(refused(submit(at_body(now - 1000000, body)), 400, INVALID) &&
           unchanged(before)); /* at it is over it */
    struct exchange *x = submit(at_body(now - 999999, body));
    EXPECT(x->r.status == 202 && is(x, "state", "QUEUED"));
    x = submit(at_body(now - 500000, body));
    EXPECT(x->r.status == 202 && is(x, "state", "QUEUED"));
    x = submit(at_body(now, body));
    EXPECT(x->r.status == 202 && is(x, "state", "QUEUED"));
    /* a repeat of it may come later than its time */
    struct given given = {.body = at_body(wall_us() + 2000000, body), .idempotency = "k"};
    char *once = id_of(ask(METHOD_POST, JOBS, NULL, given));
    pass(10000000);
    EXPECT(is(ask(METHOD_POST, JOBS, NULL, given), "job_id", once));
    given.idempotency = "l";
    EXPECT(refused(ask(METHOD_POST, JOBS, NULL, given), 400, INVALID));
    now = wall_us();
    before = count();
    /* what lies ahead is rounded up, never early */
    uint64_t second = now / 1000000 * 1000000 + 5000000;
    x = submit(at_body(second + 1, body));
    EXPECT(is(x, "state", "CREATED") &&
           job_of(exchange_member(x, "job_id")).execution_us == second + 1000000);
    x = submit(at_body(second, body));
    EXPECT(is(x, "state", "CREATED") && job_of(exchange_member(x, "job_id")).execution_us == second);
    EXPECT(rows(TABLE_DUE) == before.due + 2);
}

static void test_a_second_of_skew_and_full_seconds_JOB_262_JOB_263_JOB_267_AMB_J_44(void)
{
    run(skew_body);
}

/* ---- settings ---- */

static void settings_body(void)
{
    (void)stage_writer();
    struct counted before = count();
    settings.types = 1u << JOB_EXECUTE;
    configure();
    EXPECT(refused(submit("{\"type\":\"EMIT_EVENT\"}"), 400, INVALID)); /* JOB-453 */
    EXPECT(refused(submit(AT("\"2999-01-01T00:00:00Z\"")), 400, INVALID));
    settings.payload_max = 65536; /* JOB-444, AMB-J-13 */
    configure();
    EXPECT(refused(submit("{\"type\":\"EXECUTE\",\"work_kind\":\"LARGE_OUTPUT\"}"), 400, INVALID));
    EXPECT(unchanged(before));
    EXPECT(submit("{\"type\":\"EXECUTE\",\"work_kind\":\"MEMORY_SPIKE\"}")->r.status == 202);
    settings.payload_max = 1024; /* of the kinds that may be drawn few are left */
    settings.should_fail_ppm = 0;
    configure();
    EXPECT(is(get(JOB, submitted("{\"type\":\"EXECUTE\"}")), "definition.work_kind", "PAYLOAD_SMALL"));
    settings.should_fail_ppm = 1000000;
    configure();
    EXPECT(is(get(JOB, submitted("{\"type\":\"EXECUTE\"}")), "definition.work_kind", "FAIL_IMMEDIATE"));
    job_request_configure(&(struct job_request_settings){.allow_private = true}); /* AMB-J-61 */
    EXPECT(submit(HTTP("http://127.0.0.1:9/"))->r.status == 202);
    settings.runtime_max_ms = 5000; /* JOB-041 */
    settings.payload_max = 262144;
    configure();
    EXPECT(is(get(JOB, submitted("{\"type\":\"EXECUTE\",\"work_kind\":\"RUNS_OVER_TIMEOUT\"}")),
              "definition.duration_ms", "6000"));
}

static void test_settings_count_from_the_next_submit_on_JOB_076_JOB_444_JOB_453(void)
{
    run(settings_body);
}

static void priority_body(void)
{
    static const char *const odd[] = {"-1", "10", "1e30"}, *const wrong[] = {"\"1\"", "1.5", "null", "true"};
    char body[96];
    (void)stage_writer();
    EXPECT(job_of(submitted("{\"type\":\"EXECUTE\",\"priority\":7}")).priority == 0); /* off: not known */
    settings.priorities = true;
    configure();
    EXPECT(job_of(submitted("{\"type\":\"EXECUTE\",\"priority\":7}")).priority == 7);
    EXPECT(job_of(submitted("{\"type\":\"EXECUTE\"}")).priority == 0);
    struct counted before = count();
    for (size_t i = 0; i < 3; i++) {
        snprintf(body, sizeof(body), "{\"type\":\"EXECUTE\",\"priority\":%s}", odd[i]);
        EXPECT(refused(submit(body), 400, INVALID) && unchanged(before));
    }
    for (size_t i = 0; i < 4; i++) {
        snprintf(body, sizeof(body), "{\"type\":\"EXECUTE\",\"priority\":%s}", wrong[i]);
        EXPECT(refused(submit(body), 400, MALFORMED) && unchanged(before));
    }
}

static void test_priorities_are_an_option(void)
{
    run(priority_body);
}

/* ---- limits ---- */

static void full_body(void)
{
    (void)stage_writer();
    settings.queue_max = 2;
    configure();
    char *first = submitted(FAST);
    (void)submitted(FAST);
    struct counted before = count();
    struct exchange *x = submit(FAST);
    EXPECT(refused(x, 503, "RFA_EXEC_QUEUE_FULL") && is(x, "limit", "max_queue_size"));
    EXPECT(exchange_has_header(x, "Retry-After: 2") && unchanged(before));
    /* one whose time has not come doesn't count (AMB-J-14) */
    EXPECT(submit(AT("\"2999-01-01T00:00:00Z\""))->r.status == 202);
    EXPECT(post(JOB "/cancel", first)->r.status == 200);
    EXPECT(submit(FAST)->r.status == 202);
    settings.queue_max = 10;
    settings.active_max = 3;
    configure();
    (void)submitted(FAST);
    before = count();
    x = submit(FAST);
    EXPECT(refused(x, 429, "RFA_REQUEST_RATE_LIMITED") && is(x, "limit", "max_active_jobs"));
    EXPECT(exchange_has_header(x, "Retry-After: 2") && unchanged(before));
    struct job_claimed c = claim(true); /* RUNNING is as active as QUEUED */
    EXPECT(refused(submit(FAST), 429, "RFA_REQUEST_RATE_LIMITED"));
    finish(&c, JOB_SUCCEED, JOB_NO_FAILURE);
    EXPECT(submit(FAST)->r.status == 202);
    settings.active_queues = true; /* then claims are held back instead (AMB-J-49) */
    configure();
    EXPECT(submit(FAST)->r.status == 202);
}

static void test_full_JOB_144_JOB_146_JOB_312_JOB_333_JOB_334_JOB_353(void)
{
    run(full_body);
}

/* ---- idempotency ---- */

static void repeat_body(void)
{
    struct exchange *x, *y;
    (void)stage_writer();
    struct given given = {.body = "{\"type\":\"EXECUTE\",\"more\":[1,2],\"idempotency_key\":\"k-1\"}"};
    x = ask(METHOD_POST, JOBS, NULL, given);
    char *first = id_of(x), at[64];
    snprintf(at, sizeof(at), "%s", exchange_member(x, "created_at"));
    EXPECT(!exchange_has_header(x, "Idempotent-Replayed: true"));
    struct counted before = count();
    EXPECT(before.ledger == 1);
    pass(2000000);
    /* members in another order, white space, escapes; the key in the body wins over the header, which is not looked at */
    given.body = "{ \"idempotency_key\" : \"k-\\u0031\", \"more\":[1, 2], \"type\":\"EXECUT\\u0045\" }";
    given.idempotency = "another";
    y = ask(METHOD_POST, JOBS, NULL, given);
    EXPECT(y->r.status == 202 && is(y, "job_id", first) && is(y, "created_at", at) &&
           is(y, "state", "QUEUED"));
    EXPECT(exchange_has_header(y, "Idempotent-Replayed: true") && unchanged(before));
    /* the same key in the header, bare and quoted: the body is the same without its member */
    given = (struct given){.body = "{\"type\":\"EXECUTE\",\"more\":[1,2]}", .idempotency = "k-1"};
    EXPECT(is(ask(METHOD_POST, JOBS, NULL, given), "job_id", first));
    given.idempotency = "\"k-1\"";
    EXPECT(is(ask(METHOD_POST, JOBS, NULL, given), "job_id", first) && unchanged(before));
    /* another body is a conflict, also where only an unknown member differs (AMB-J-57) */
    given.body = "{\"type\":\"EXECUTE\",\"more\":[2,1]}";
    EXPECT(refused(ask(METHOD_POST, JOBS, NULL, given), 409, "RFA_EXEC_IDEMPOTENCY_CONFLICT"));
    given.body = FAST;
    EXPECT(refused(ask(METHOD_POST, JOBS, NULL, given), 409, "RFA_EXEC_IDEMPOTENCY_CONFLICT") &&
           unchanged(before));
    /* another client's key is another key */
    given.client = 2;
    EXPECT(ask(METHOD_POST, JOBS, NULL, given)->r.status == 202);
    EXPECT(rows(TABLE_JOBS) == 2);
    /* and the answer says how the job stands now */
    EXPECT(post(JOB "/cancel", first)->r.status == 200);
    given = (struct given){.body = "{\"more\":[1,2],\"type\":\"EXECUTE\"}", .idempotency = "k-1"};
    EXPECT(is(ask(METHOD_POST, JOBS, NULL, given), "state", "CANCELED"));
}

static void test_idempotency_keys_JOB_093_JOB_094_JOB_143_JOB_323_AMB_J_29(void)
{
    run(repeat_body);
}

static void request_id_body(void)
{
    (void)stage_writer();
    struct given given = {.body = FAST, .request_id = "req-1"};
    char *first = id_of(ask(METHOD_POST, JOBS, NULL, given));
    struct counted before = count();
    pass(23 * HOUR_US);
    struct exchange *x = ask(METHOD_POST, JOBS, NULL, given);
    EXPECT(x->r.status == 202 && is(x, "job_id", first) &&
           exchange_has_header(x, "Idempotent-Replayed: true"));
    EXPECT(unchanged(before));
    /* another body, another client, or a day later: another job */
    given.body = "{\"type\":\"EXECUTE\"}";
    EXPECT(!is(ask(METHOD_POST, JOBS, NULL, given), "job_id", first));
    given.body = FAST;
    given.client = 2;
    EXPECT(!is(ask(METHOD_POST, JOBS, NULL, given), "job_id", first));
    given.client = 1;
    pass(HOUR_US);
    EXPECT(!is(ask(METHOD_POST, JOBS, NULL, given), "job_id", first));
    /* ids that we made are nobody's to repeat: two equal bodies are two jobs */
    EXPECT(strcmp(submitted(FAST), submitted(FAST)) != 0);
    /* one that can't be an id isn't taken, so it repeats nothing */
    given.request_id = "\"quoted\"";
    EXPECT(strcmp(id_of(ask(METHOD_POST, JOBS, NULL, given)), id_of(ask(METHOD_POST, JOBS, NULL, given))) !=
           0);
}

static void test_a_request_id_of_the_clients_own_AMB_J_30(void)
{
    run(request_id_body);
}

static struct uuid answered[50];
static void submit_twin(void *arg)
{
    struct exchange *x = ask(METHOD_POST, JOBS, NULL, (struct given){.body = FAST, .idempotency = "one"});
    EXPECT(x->r.status == 202 &&
           uuid_parse(exchange_member(x, "job_id"), 36, &answered[(size_t)(uintptr_t)arg]));
}

static void simultaneous_body(void)
{
    actor_pid dolls[50];
    (void)stage_writer();
    for (size_t i = 0; i < 50; i++)
        dolls[i] = stage_doll(SPAWN_ON((int)(i % 2)), submit_twin, (void *)(uintptr_t)i);
    for (size_t i = 0; i < 50; i++)
        (void)stage_ended(dolls[i]);
    for (size_t i = 1; i < 50; i++)
        EXPECT(uuid_equal(&answered[0], &answered[i]));
    EXPECT(rows(TABLE_JOBS) == 1 && rows(TABLE_EVENTS) == 2);
}

static void test_50_at_once_with_one_key_are_one_job_JOB_323(void)
{
    run(simultaneous_body);
}

/* ---- ids ---- */

/* Time stands still and chance is all zeros, so that a generator begun again gives the same ids again. */
static uint64_t still_wall(struct env *env)
{
    (void)env;
    return UINT64_C(1800000000) * NS_PER_S;
}

static void no_chance(struct env *env, void *bytes, size_t size)
{
    (void)env;
    memset(bytes, 0, size);
}

static void collision_body(void)
{
    struct env *env = stage_store->env, still = *env;
    (void)stage_writer();
    still.wall = still_wall;
    still.random = no_chance;
    stage_store->env = &still;
    stage_store->start += 2;
    char *first = submitted(FAST);
    struct job before = job_of(first);
    stage_store->start += 2; /* the generator begins anew */
    char *second = submitted("{\"type\":\"EMIT_EVENT\"}");
    EXPECT(strcmp(first, second) != 0);
    struct job after = job_of(first);
    EXPECT(memcmp(&before, &after, sizeof(before)) == 0); /* the one that was there is untouched */
    (void)submitted(FAST);
    struct counted counted = count();
    stage_store->start += 2; /* three ids in a row that are taken */
    struct exchange *x = submit(FAST);
    EXPECT(refused(x, 500, "RFA_INTERNAL") && unchanged(counted));
    EXPECT(submit(FAST)->r.status == 202); /* the fourth is free */
    stage_store->env = env;
}

static void test_an_id_that_is_taken_is_drawn_again_JOB_289_JOB_310(void)
{
    run(collision_body);
}

/* ---- without a store ---- */

static void no_writer_body(void)
{
    struct counted before = count();
    char id[UUID_TEXT_SIZE];
    struct uuid uuid = client_of(9);
    uuid_format(&uuid, id);
    struct exchange *x = submit(FAST);
    EXPECT(refused(x, 503, "RFA_STORAGE_UNAVAILABLE") && exchange_has_header(x, "Retry-After: 1"));
    EXPECT(!strstr(text_of(x), "job_id"));
    EXPECT(refused(post(JOB "/cancel", id), 503, "RFA_STORAGE_UNAVAILABLE"));
    EXPECT(refused(post(JOB "/retry", id), 503, "RFA_STORAGE_UNAVAILABLE"));
    EXPECT(unchanged(before));
    struct view *views[VIEWS_PER_LANE];
    for (size_t i = 0; i < VIEWS_PER_LANE; i++)
        views[i] = view_open(stage_store);
    EXPECT(refused(get(JOB, id), 503, "RFA_STORAGE_UNAVAILABLE"));
    EXPECT(refused(get(JOB "/report", id), 503, "RFA_STORAGE_UNAVAILABLE"));
    EXPECT(refused(get(JOB "/events", id), 503, "RFA_STORAGE_UNAVAILABLE"));
    EXPECT(refused(get(JOBS, NULL), 503, "RFA_STORAGE_UNAVAILABLE"));
    for (size_t i = 0; i < VIEWS_PER_LANE; i++)
        view_close(views[i]);
}

static void test_without_the_store_JOB_146_JOB_156_JOB_166_JOB_174_JOB_182_JOB_311(void)
{
    run(no_writer_body);
}

/* ---- get ---- */

static void get_body(void)
{
    (void)stage_writer();
    char *id = submitted("{\"type\":\"EXECUTE\",\"work_kind\":\"FAIL_AFTER_RETRYABLE\","
                         "\"callback\":\"https://example.com/a?b=c\"}");
    struct exchange *x = get(JOB, id);
    static const char *const members[][2] = {{"type", "EXECUTE"},
                                             {"state", "QUEUED"},
                                             {"outcome", "null"},
                                             {"execution_at", "null"},
                                             {"attempt", "1"},
                                             {"callback", "https://example.com/a?b=c"},
                                             {"definition.duration_ms", "5000"}};
    EXPECT(x->r.status == 200 && is(x, "job_id", id));
    for (size_t i = 0; i < sizeof(members) / sizeof(*members); i++)
        EXPECT(is(x, members[i][0], members[i][1]));
    EXPECT(json_root(&x->answer)->count == 10); /* the nine and the definition (AMB-J-20) */
    EXPECT(is(x, "updated_at", exchange_member(x, "updated_at")) &&
           strlen(exchange_member(x, "created_at")) == 24);
    char *once = text_of(x);
    struct counted before = count();
    EXPECT(strcmp(once, text_of(get(JOB, id))) == 0 && unchanged(before)); /* JOB-087 */
    struct job_claimed c = claim(false);
    EXPECT(is(get(JOB, id), "state", "ASSIGNED"));
    struct job_start start = {
        .id = c.id, .fence = c.fence, .steady_us = store_steady_us(stage_store), .lease_us = HOUR_US};
    EXPECT(store_submit(&job_start_class, &start, NULL, 0, NULL, DEADLINE_NONE) == OK);
    EXPECT(is(get(JOB, id), "state", "RUNNING") && is(get(JOB, id), "outcome", "null"));
    finish(&c, JOB_FAIL, JOB_TIMEOUT);
    x = get(JOB, id);
    EXPECT(is(x, "state", "FAILED") && is(x, "outcome", "FAILED") && json_root(&x->answer)->count == 11);
    EXPECT(is(x, "failure.reason", "TIMEOUT") && is(x, "failure.reason_code", "RFA_EXEC_TIMEOUT") &&
           is(x, "failure.retryable", "true"));
    x = get(JOB, ended(FAST, JOB_SUCCEED, JOB_NO_FAILURE));
    EXPECT(is(x, "state", "SUCCEEDED") && is(x, "outcome", "SUCCESS") && json_root(&x->answer)->count == 10);
    char *deferred = submitted(AT("\"2999-01-01T00:00:00Z\""));
    x = get(JOB, deferred);
    EXPECT(is(x, "state", "CREATED") && is(x, "execution_at", "2999-01-01T00:00:00.000Z"));
    EXPECT(post(JOB "/cancel", deferred)->r.status == 200);
    EXPECT(is(get(JOB, deferred), "outcome", "CANCELED"));
}

static void test_get_JOB_168_JOB_389_AMB_J_16_AMB_J_20(void)
{
    run(get_body);
}

/* The longest answer that there is goes out in one piece. */
static void longest_body(void)
{
    char *body = actor_alloc(2 * JOB_CALLBACK_MAX), *url = actor_alloc(JOB_CALLBACK_MAX + 1);
    (void)stage_writer();
    memset(url, 'a', JOB_CALLBACK_MAX);
    memcpy(url, "https://example.com/", 20);
    url[JOB_CALLBACK_MAX] = 0;
    snprintf(body, 2 * JOB_CALLBACK_MAX, HTTP("%s"), url);
    char *id = submitted(body);
    struct exchange *x = get(JOB, id);
    EXPECT(x->r.status == 200 && !x->r.head_sent && strstr(text_of(x), url));
    snprintf(body, 2 * JOB_CALLBACK_MAX, HTTP("%sa"), url);
    EXPECT(refused(submit(body), 400, INVALID));
}

static void test_the_longest_job(void)
{
    run(longest_body);
}

static void nobody_body(void)
{
    static const char none[] = "00000000-0000-4000-8000-000000000000";
    static const char *const reads[] = {JOB, JOB "/report", JOB "/events"}, *const changes[] = {JOB "/cancel",
                                                                                                JOB "/retry"};
    (void)stage_writer();
    char *id = ended(FAST, JOB_FAIL, JOB_SIMULATED_FAILURE);
    struct counted before = count();
    struct job row = job_of(id);
    for (size_t i = 0; i < 3; i++) {
        EXPECT(refused(get(reads[i], none), 404, "RFA_JOB_NOT_FOUND"));
        EXPECT(refused(get(reads[i], "nonsense"), 404, "RFA_JOB_NOT_FOUND")); /* AMB-J-59 */
        struct exchange *x = ask(METHOD_GET, reads[i], id, (struct given){.client = 2});
        EXPECT(refused(x, 403, "RFA_AUTH_FORBIDDEN") && !strstr(text_of(x), "state"));
    }
    for (size_t i = 0; i < 2; i++) {
        EXPECT(refused(post(changes[i], none), 404, "RFA_JOB_NOT_FOUND"));
        EXPECT(refused(ask(METHOD_POST, changes[i], id, (struct given){.client = 2}), 403,
                       "RFA_AUTH_FORBIDDEN"));
    }
    struct job now = job_of(id);
    EXPECT(unchanged(before) && memcmp(&row, &now, sizeof(row)) == 0);
    EXPECT(is(ask(METHOD_GET, JOBS, NULL, (struct given){.client = 2}), "items", "[]"));
}

static void test_nobody_elses_job_JOB_171_JOB_172_JOB_179_JOB_180_JOB_292_JOB_300(void)
{
    run(nobody_body);
}

/* ---- cancel ---- */

static void cancel_body(void)
{
    (void)stage_writer();
    char *ids[4] = {submitted(AT("\"2999-01-01T00:00:00Z\"")), NULL, NULL, NULL};
    ids[3] = submitted(FAST);
    struct job_claimed running = claim(true);
    ids[2] = submitted(FAST);
    (void)claim(false);
    ids[1] = submitted(FAST);
    static const uint8_t states[] = {JOB_CREATED, JOB_QUEUED, JOB_ASSIGNED, JOB_RUNNING};
    for (size_t i = 0; i < 4; i++) {
        EXPECT(job_of(ids[i]).state == states[i]);
        pass(3000);
        struct exchange *x = post(JOB "/cancel", ids[i]);
        EXPECT(x->r.status == 200 && json_root(&x->answer)->count == 3);
        EXPECT(is(x, "job_id", ids[i]) && is(x, "state", "CANCELED"));
        char *once = text_of(x);
        struct counted before = count();
        pass(3000);
        EXPECT(strcmp(once, text_of(post(JOB "/cancel", ids[i]))) == 0 && unchanged(before)); /* JOB-095 */
        EXPECT(is(get(JOB, ids[i]), "outcome", "CANCELED"));
        EXPECT(get(JOB "/report", ids[i])->r.status == 200);
    }
    EXPECT(rows(TABLE_JOB_QUEUE) == 0);
    struct job_finish late = {.id = running.id,
                              .fence = running.fence,
                              .event = JOB_SUCCEED,
                              .steady_us = store_steady_us(stage_store)};
    EXPECT(store_submit(&job_finish_class, &late, NULL, 0, NULL, DEADLINE_NONE) == ERR_CONFLICT);
    /* a final job is left as it is: JOB-321 */
    char *done[] = {ended(FAST, JOB_SUCCEED, JOB_NO_FAILURE), ended(FAST, JOB_FAIL, JOB_SIMULATED_FAILURE)};
    for (size_t i = 0; i < 2; i++) {
        struct counted before = count();
        struct job row = job_of(done[i]);
        struct exchange *x = post(JOB "/cancel", done[i]);
        struct job now = job_of(done[i]);
        EXPECT(x->r.status == 200 && is(x, "state", i ? "FAILED" : "SUCCEEDED"));
        EXPECT(unchanged(before) && memcmp(&row, &now, sizeof(row)) == 0);
    }
    struct exchange *x = ask(METHOD_POST, JOB "/cancel", done[0], (struct given){.body = "{}"});
    EXPECT(x->r.status == 200);
}

static void test_cancel_JOB_083_JOB_095_JOB_148_JOB_321_AMB_J_32_AMB_J_33(void)
{
    run(cancel_body);
}

/* ---- retry ---- */

static void retry_body(void)
{
    char number[8];
    (void)stage_writer();
    char *id = ended("{\"type\":\"EXECUTE\",\"work_kind\":\"RETRY_LIMIT_REACHED\"}", JOB_FAIL,
                     JOB_SIMULATED_FAILURE);
    settings.backoff_base_us = 0;
    configure();
    for (unsigned attempt = 2; attempt <= 4; attempt++) {
        pass(3000);
        struct exchange *x = post(JOB "/retry", id);
        snprintf(number, sizeof(number), "%u", attempt);
        EXPECT(x->r.status == 200 && json_root(&x->answer)->count == 4);
        EXPECT(is(x, "state", "QUEUED") && is(x, "attempt", number) && is(x, "job_id", id));
        EXPECT(is(get(JOB, id), "outcome", "null") && is(get(JOB, id), "attempt", number));
        EXPECT(refused(get(JOB "/report", id), 404, "RFA_JOB_REPORT_NOT_FOUND")); /* AMB-J-17 */
        char *once = text_of(x);
        struct counted before = count();
        EXPECT(strcmp(once, text_of(post(JOB "/retry", id))) == 0 && unchanged(before)); /* JOB-096 */
        struct job_claimed c = claim(false);
        EXPECT(is(post(JOB "/retry", id), "state", "ASSIGNED"));
        struct job_start start = {
            .id = c.id, .fence = c.fence, .steady_us = store_steady_us(stage_store), .lease_us = HOUR_US};
        EXPECT(store_submit(&job_start_class, &start, NULL, 0, NULL, DEADLINE_NONE) == OK);
        EXPECT(is(post(JOB "/retry", id), "state", "RUNNING") &&
               is(post(JOB "/retry", id), "attempt", number));
        finish(&c, JOB_FAIL, JOB_SIMULATED_FAILURE);
    }
    struct counted before = count();
    struct exchange *x = post(JOB "/retry", id);
    EXPECT(refused(x, 409, "RFA_JOB_CONFLICT") && unchanged(before));
    EXPECT(is(get(JOB, id), "state", "FAILED") && is(get(JOB, id), "attempt", "4"));
    /* in the other states nothing happens */
    char *others[] = {submitted(AT("\"2999-01-01T00:00:00Z\"")), ended(FAST, JOB_SUCCEED, JOB_NO_FAILURE),
                      submitted(FAST)};
    EXPECT(post(JOB "/cancel", others[2])->r.status == 200);
    static const char *const states[] = {"CREATED", "SUCCEEDED", "CANCELED"};
    before = count();
    for (size_t i = 0; i < 3; i++) {
        x = post(JOB "/retry", others[i]);
        EXPECT(x->r.status == 200 && is(x, "state", states[i]) && is(x, "attempt", "1") && unchanged(before));
    }
}

static void test_retry_JOB_085_JOB_096_JOB_158_JOB_164_JOB_268_to_JOB_271_JOB_275_JOB_322(void)
{
    run(retry_body);
}

static void retry_full_body(void)
{
    (void)stage_writer();
    char *id = ended(FAST, JOB_FAIL, JOB_SIMULATED_FAILURE);
    settings.queue_max = 1;
    settings.retry_max = 1;
    configure();
    (void)submitted(FAST);
    struct counted before = count();
    struct exchange *x = post(JOB "/retry", id);
    EXPECT(refused(x, 503, "RFA_EXEC_QUEUE_FULL") && exchange_has_header(x, "Retry-After: 2"));
    EXPECT(unchanged(before) && job_of(id).state == JOB_FAILED);
    settings.queue_max = 10;
    configure();
    x = post(JOB "/retry", id);
    EXPECT(x->r.status == 200);
    /* at first it may not be claimed: between half and all of a second (JOB-272, AMB-J-35) */
    struct job job = job_of(id);
    uint64_t now = store_steady_us(stage_store);
    EXPECT(job.state == JOB_QUEUED && job.lane == LANE_NONE);
    EXPECT(job.due_us >= now + 499000 && job.due_us <= now + 1000000);
}

static void test_retry_with_a_full_queue_and_backoff_JOB_166_JOB_269_JOB_272_AMB_J_14(void)
{
    run(retry_full_body);
}

/* ---- report and events ---- */

static uint32_t items_of(const struct exchange *x, const char *name)
{
    const struct json_node *items = json_member(&x->answer, json_root(&x->answer), name);
    return items ? items->count : UINT32_MAX;
}

static void report_body(void)
{
    (void)stage_writer();
    char *id = submitted(FAST);
    EXPECT(refused(get(JOB "/report", id), 404, "RFA_JOB_REPORT_NOT_FOUND"));
    struct job_claimed c = claim(true);
    EXPECT(refused(get(JOB "/report", id), 404, "RFA_JOB_REPORT_NOT_FOUND"));
    pass(1500000);
    finish(&c, JOB_SUCCEED, JOB_NO_FAILURE);
    struct exchange *x = get(JOB "/report", id);
    EXPECT(x->r.status == 200 && json_root(&x->answer)->count == 6);
    EXPECT(is(x, "job_id", id) && is(x, "outcome", "SUCCESS") && items_of(x, "events") == 5);
    struct job job = job_of(id);
    char number[24];
    snprintf(number, sizeof(number), "%llu", (unsigned long long)(job.finished_us - job.started_us) / 1000);
    EXPECT(is(x, "duration_ms", number) && job.finished_us - job.started_us > 1490000);
    char *once = text_of(x);
    struct counted before = count();
    pass(5000000);
    EXPECT(strcmp(once, text_of(get(JOB "/report", id))) == 0 && unchanged(before)); /* JOB-021, JOB-088 */
    /* canceled before it started: AMB-J-18 */
    id = submitted(FAST);
    EXPECT(post(JOB "/cancel", id)->r.status == 200);
    x = get(JOB "/report", id);
    EXPECT(is(x, "started_at", "null") && is(x, "duration_ms", "0") && is(x, "outcome", "CANCELED"));
    EXPECT(items_of(x, "events") == 3);
}

static void test_report_JOB_176_JOB_180_JOB_397_AMB_J_18(void)
{
    run(report_body);
}

/* ---- pages ---- */

/* A page; *ret_cursor is "" when it was the last. Short enough for the buffer of a response that nobody takes. */
static struct exchange *page(const char *path, const char *id, const char *query, char cursor[TOKEN_TEXT_MAX])
{
    char *whole = actor_alloc(TOKEN_TEXT_MAX + 128);
    snprintf(whole, TOKEN_TEXT_MAX + 128, "%s%s%s", query, cursor[0] ? "&cursor=" : "", cursor);
    struct exchange *x = ask(METHOD_GET, path, id, (struct given){.query = whole});
    EXPECT(x->r.status == 200);
    snprintf(cursor, TOKEN_TEXT_MAX, "%s",
             is(x, "next_cursor", "null") ? "" : exchange_member(x, "next_cursor"));
    char *link = actor_alloc(2 * TOKEN_TEXT_MAX);
    snprintf(link, 2 * TOKEN_TEXT_MAX, "Link: <?%s%scursor=%s>; rel=\"next\"", query, *query ? "&" : "",
             cursor);
    EXPECT(cursor[0] ? exchange_has_header(x, link) : !response_has_header(&x->r, "Link"));
    return x;
}

#define ATTEMPTS 20u

/* Each begins where the one before has ended; *last goes on from page to page. */
static uint32_t in_sequence(const char *text, char last[32])
{
    char from[32], to[32];
    uint32_t found = 0;
    for (const char *at = text; (at = strstr(at, "\"prev_state\":")) != NULL; found++, at++) {
        EXPECT(sscanf(at, "\"prev_state\":%31[^,],\"next_state\":%31[^,]", from, to) == 2);
        EXPECT(strcmp(from, last) == 0);
        memcpy(last, to, sizeof(to));
    }
    return found;
}

static void events_body(void)
{
    char cursor[TOKEN_TEXT_MAX] = "";
    (void)stage_writer();
    settings.retry_max = ATTEMPTS;
    settings.backoff_base_us = 0;
    configure();
    char *id = ended(FAST, JOB_FAIL, JOB_SIMULATED_FAILURE), *other = submitted(FAST);
    struct job_claimed spare = claim(true);
    for (unsigned i = 1; i < ATTEMPTS; i++) {
        EXPECT(post(JOB "/retry", id)->r.status == 200);
        struct job_claimed c = claim(true);
        finish(&c, JOB_FAIL, JOB_SIMULATED_FAILURE);
    }
    uint32_t events = job_of(id).events;
    EXPECT(events == 1 + 4 * ATTEMPTS);
    /* the last page is full, or has one event alone, or some */
    static const uint32_t sizes[] = {9, 8, 7};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        char query[32], last[32] = "null";
        uint32_t found = 0, pages = 0, most = sizes[i];
        snprintf(query, sizeof(query), "limit=%u", most);
        cursor[0] = 0;
        do {
            struct exchange *x = page(JOB "/events", id, query, cursor);
            uint32_t count = in_sequence(text_of(x), last);
            EXPECT(count == (events - found < most ? events - found : most));
            found += count;
            pages++;
        } while (cursor[0] && pages < 100);
        EXPECT(found == events && pages == (events + most - 1) / most && strcmp(last, "\"FAILED\"") == 0);
    }
    /* a cursor is of one job, and nobody else's words are one */
    EXPECT(items_of(page(JOB "/events", id, "limit=8", cursor), "items") == 8);
    static const char *const limits[] = {"limit=0",  "limit=101", "limit=x",
                                         "limit=1x", "limit=",    "limit=1&limit=2"};
    for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++)
        EXPECT(
            refused(ask(METHOD_GET, JOB "/events", id, (struct given){.query = limits[i]}), 400, MALFORMED));
    char *query = actor_alloc(TOKEN_TEXT_MAX + 16);
    snprintf(query, TOKEN_TEXT_MAX + 16, "cursor=%s", cursor);
    EXPECT(refused(ask(METHOD_GET, JOB "/events", other, (struct given){.query = query}), 400, MALFORMED));
    EXPECT(refused(ask(METHOD_GET, JOBS, NULL, (struct given){.query = query}), 400, MALFORMED));
    query[12] ^= 1;
    EXPECT(refused(ask(METHOD_GET, JOB "/events", id, (struct given){.query = query}), 400, MALFORMED));
    EXPECT(refused(ask(METHOD_GET, JOB "/events", id, (struct given){.query = "cursor="}), 400, MALFORMED));
    finish(&spare, JOB_SUCCEED, JOB_NO_FAILURE);
}

static void test_events_page_by_page_JOB_015_JOB_291(void)
{
    run(events_body);
}

/* ---- list ---- */

static bool listed(const struct exchange *x, const char *const *ids, uint32_t count)
{
    const char *at = text_of(x);
    for (uint32_t i = 0; at && i < count; i++) {
        at = strstr(at, ids[i]);
        at = at ? at + 1 : NULL;
    }
    return at && items_of(x, "items") == count;
}

static void list_body(void)
{
    char cursor[TOKEN_TEXT_MAX] = "";
    (void)stage_writer();
    const char *ids[8];
    ids[0] = ended(FAST, JOB_SUCCEED, JOB_NO_FAILURE);
    ids[1] = ended(FAST, JOB_FAIL, JOB_SIMULATED_FAILURE);
    ids[2] = submitted("{\"type\":\"EMIT_EVENT\"}");
    ids[3] = submitted(AT("\"2999-01-01T00:00:00Z\""));
    ids[4] = submitted(FAST);
    EXPECT(post(JOB "/cancel", ids[4])->r.status == 200);
    (void)id_of(ask(METHOD_POST, JOBS, NULL, (struct given){.body = FAST, .client = 2}));
    /* newest first, and of this client alone */
    EXPECT(listed(page(JOBS, NULL, "", cursor), (const char *[]){ids[4], ids[3], ids[2], ids[1], ids[0]}, 5));
    EXPECT(!cursor[0]);
    EXPECT(listed(page(JOBS, NULL, "limit=2", cursor), (const char *[]){ids[4], ids[3]}, 2) && cursor[0]);
    EXPECT(listed(page(JOBS, NULL, "limit=2", cursor), (const char *[]){ids[2], ids[1]}, 2) && cursor[0]);
    char *newer = submitted(FAST); /* what comes meanwhile isn't on the pages behind */
    EXPECT(listed(page(JOBS, NULL, "limit=2", cursor), (const char *[]){ids[0]}, 1) && !cursor[0]);
    /* filters, alone and together */
    EXPECT(listed(page(JOBS, NULL, "state=QUEUED", cursor), (const char *[]){newer, ids[2]}, 2));
    EXPECT(listed(page(JOBS, NULL, "outcome=FAILED", cursor), (const char *[]){ids[1]}, 1));
    EXPECT(listed(page(JOBS, NULL, "outcome=SUCCESS", cursor), (const char *[]){ids[0]}, 1));
    EXPECT(listed(page(JOBS, NULL, "type=EMIT_EVENT", cursor), (const char *[]){ids[2]}, 1));
    EXPECT(listed(page(JOBS, NULL, "type=EXECUTE&state=CANCELED", cursor), (const char *[]){ids[4]}, 1));
    EXPECT(listed(page(JOBS, NULL, "type=DEFERRED&outcome=CANCELED", cursor), NULL, 0));
    EXPECT(is(page(JOBS, NULL, "state=SUCCEEDED", cursor), "next_cursor", "null"));
    static const char *const odd[] = {"state=queued", "state=",     "outcome=RUNNING",
                                      "outcome=",     "type=x",     "limit=101",
                                      "cursor=",      "cursor=abc", "state=QUEUED&state=QUEUED"};
    for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++)
        EXPECT(refused(ask(METHOD_GET, JOBS, NULL, (struct given){.query = odd[i]}), 400, MALFORMED));
    /* a link is one, whatever the query has beside its cursor; one that is too long is left out */
    struct exchange *x =
        ask(METHOD_GET, JOBS, NULL, (struct given){.query = "&cursor=&a=<\"b>\x7f c&limit=1&d&e=%3e"});
    EXPECT(x->r.status == 400); /* that cursor */
    x = ask(METHOD_GET, JOBS, NULL, (struct given){.query = "&a=<\"b> c&limit=1&d&e=%3e"});
    char *link = actor_alloc(2 * TOKEN_TEXT_MAX);
    snprintf(link, 2 * TOKEN_TEXT_MAX,
             "Link: <?a=%%3C%%22b%%3E%%20c&limit=1&d=&e=%%3e&cursor=%s>; rel=\"next\"",
             exchange_member(x, "next_cursor"));
    EXPECT(exchange_has_header(x, link));
    char *again =
        actor_alloc(2 * TOKEN_TEXT_MAX); /* the cursor of before isn't in it, however it was written */
    snprintf(again, 2 * TOKEN_TEXT_MAX, "limit=1&curs%%6Fr=%s", exchange_member(x, "next_cursor"));
    x = ask(METHOD_GET, JOBS, NULL, (struct given){.query = again});
    snprintf(link, 2 * TOKEN_TEXT_MAX, "Link: <?limit=1&cursor=%s>; rel=\"next\"",
             exchange_member(x, "next_cursor"));
    EXPECT(x->r.status == 200 && exchange_has_header(x, link));
    char *longer = actor_alloc(PAGING_LINK_MAX + 64);
    snprintf(longer, PAGING_LINK_MAX + 64, "limit=1&a=%0*d", (int)PAGING_LINK_MAX, 0);
    x = ask(METHOD_GET, JOBS, NULL, (struct given){.query = longer});
    EXPECT(x->r.status == 200 && !is(x, "next_cursor", "null") && !response_has_header(&x->r, "Link"));
    /* a cursor is of one client and one filter */
    (void)page(JOBS, NULL, "limit=1", cursor);
    char *query = actor_alloc(TOKEN_TEXT_MAX + 64);
    snprintf(query, TOKEN_TEXT_MAX + 64, "cursor=%s", cursor);
    EXPECT(ask(METHOD_GET, JOBS, NULL, (struct given){.query = query})->r.status == 200);
    EXPECT(refused(ask(METHOD_GET, JOBS, NULL, (struct given){.query = query, .client = 2}), 400, MALFORMED));
    snprintf(query, TOKEN_TEXT_MAX + 64, "state=QUEUED&cursor=%s", cursor);
    EXPECT(refused(ask(METHOD_GET, JOBS, NULL, (struct given){.query = query}), 400, MALFORMED));
}

static void test_list_JOB_003_JOB_292_AMB_J_19(void)
{
    run(list_body);
}

/* However few pass the filter, a page looks at so many jobs and no more; the pages together find all. */
static void bounded_body(void)
{
    enum { MANY = 2 * JOBS_SCAN_MAX + 300 };
    char cursor[TOKEN_TEXT_MAX] = "";
    uint32_t pages = 0, found = 0;
    (void)stage_writer();
    settings.queue_max = settings.active_max = 10000;
    configure();
    char *first = submitted("{\"type\":\"EMIT_EVENT\"}"), *middle = NULL;
    for (uint32_t i = 0; i < MANY; i++) {
        struct arena_mark mark = actor_arena_mark();
        (void)submitted(FAST);
        actor_arena_reset(mark);
        if (i == MANY / 2)
            middle = submitted("{\"type\":\"EMIT_EVENT\"}");
    }
    do {
        struct exchange *x = page(JOBS, NULL, "type=EMIT_EVENT", cursor);
        found += items_of(x, "items");
        pages++;
        EXPECT(pages != 2 || strstr(text_of(x), middle));
        EXPECT(cursor[0] || strstr(text_of(x), first));
    } while (cursor[0] && pages < 10);
    EXPECT(pages == 3 && found == 2);
}

static void test_a_page_looks_at_so_many_jobs_and_no_more(void)
{
    run(bounded_body);
}

/* ---- explain ---- */

static const struct schema *explained; /* what the contract says that an answer is */

static bool why(const char *id, const char *reason, const char *sentence)
{
    struct exchange *x = get(JOB ":explain", id);
    bool good = x->r.status == 200 && is(x, "reason", reason) &&
                strstr(exchange_member(x, "sentence"), sentence) &&
                schema_check(explained, &x->answer, json_root(&x->answer), NULL);
    if (!good)
        printf("%s is %s: %s\n", reason, exchange_member(x, "reason"), exchange_member(x, "sentence"));
    return good;
}

static bool nobody_is_before(const char *id)
{
    struct exchange *x = get(JOB ":explain", id);
    return is(x, "ahead", "null") && is(x, "ahead_more", "false");
}

static void pause_jobs(uint8_t scope, const char *kind)
{
    struct job_pause c = {.scope = scope, .who = span_text("operator"), .reason = span_text("a drill")};
    uint64_t since = 0;
    size_t size = 0;
    if (kind) {
        c.name = job_work_id(stage_store, work_kind_of(span_text(kind)), span_text(kind));
        c.label = span_text(kind);
    }
    EXPECT(store_submit(&job_pause_class, &c, &since, sizeof(since), &size, DEADLINE_NONE) == OK);
}

static void explain_body(void)
{
    (void)stage_writer();
    /* nobody works here */
    char *first = submitted(FAST), *second = submitted("{\"type\":\"EXECUTE\",\"work_kind\":\"IO_HEAVY\"}");
    EXPECT(why(first, "no_workers", "None of the 64 workers is alive; it is the next one."));
    EXPECT(why(second, "no_workers", "1 job is before it."));
    settings.workers = 0;
    configure();
    EXPECT(why(first, "no_workers", "This server has no workers (workers.count is 0)"));
    settings.workers = 1;
    settings.concurrency = 2;
    configure();
    EXPECT(actor_register("worker:1", actor_self(), NULL) == OK); /* the second slot */
    EXPECT(why(first, "queued", "It is queued: it is the next one.") &&
           is(get(JOB ":explain", second), "ahead", "1"));
    /* the store has too much to do */
    telemetry_gauge_set(TELEMETRY_GAUGE_PRESSURE_LEVEL, WRITER_NAME, PRESSURE_SHED);
    EXPECT(why(second, "pressure", "claims are put off"));
    telemetry_gauge_set(TELEMETRY_GAUGE_PRESSURE_LEVEL, WRITER_NAME, PRESSURE_DEGRADED);
    EXPECT(why(second, "queued", "1 job is before it"));
    telemetry_gauge_set(TELEMETRY_GAUGE_PRESSURE_LEVEL, WRITER_NAME, PRESSURE_NORMAL);
    settings.active_queues = true;
    settings.active_max = 1;
    configure();
    EXPECT(why(second, "queued", "1 job is before it")); /* nobody runs */
    settings.active_queues = false;
    settings.active_max = 100;
    configure();
    /* time */
    char body[128];
    uint64_t at = wall_us() / 1000000 * 1000000 + 10000000;
    char *later = submitted(at_body(at, body)), text[TIME_TEXT_SIZE];
    job_time_format(at, text);
    EXPECT(why(later, "scheduled", text) && is(get(JOB ":explain", later), "until", text));
    pass(11000000);
    EXPECT(why(later, "scheduled", "It was scheduled for ") &&
           why(later, "scheduled", "is about to be queued") &&
           is(get(JOB ":explain", later), "until", "null")); /* there is room */
    settings.queue_max = 2;
    configure();
    EXPECT(why(later, "queue_full", "is tried again every second") &&
           is(get(JOB ":explain", later), "until", "null"));
    settings.queue_max = 100;
    configure();
    /* pauses: of the kind, and of everything */
    pause_jobs(PAUSE_WORK, "IO_HEAVY");
    EXPECT(why(second, "paused", "Jobs of its kind are paused since") && why(second, "paused", ": a drill."));
    EXPECT(is(get(JOB ":explain", second), "pause.scope", "kind") &&
           is(get(JOB ":explain", second), "pause.reason", "a drill") &&
           is(get(JOB ":explain", second), "pause.who", ""));
    EXPECT(nobody_is_before(second)); /* who is paused has no place in the queue */
    EXPECT(why(first, "queued", "next one"));
    pause_jobs(PAUSE_ALL, NULL);
    EXPECT(why(first, "paused", "All jobs are paused"));
    struct job_resume resume = {.scope = PAUSE_ALL};
    EXPECT(store_submit(&job_resume_class, &resume, NULL, 0, NULL, DEADLINE_NONE) == OK);
    /* who has it; the actor of that name is this one, and no other start's worker is */
    struct job_claim command = {.lane = LANE_SERVER,
                                .most = 1,
                                .owner = stage_store->start,
                                .client_max = 1, /* so it is counted */
                                .steady_us = store_steady_us(stage_store),
                                .lease_us = 30000000,
                                .worker = span_text("worker:1")};
    struct job_claimed c;
    size_t size = 0;
    EXPECT(store_submit(&job_claim_class, &command, &c, sizeof(c), &size, DEADLINE_NONE) == OK);
    EXPECT(why(first, "assigned", "worker:1 has claimed it and hasn't begun; its lease is good until "));
    EXPECT(nobody_is_before(first));
    char *third = submitted(FAST);
    EXPECT(why(third, "queued", "1 job is before it") &&
           is(get(JOB ":explain", third), "ahead_more", "false"));
    settings.active_queues = true;
    settings.active_max = 1;
    configure();
    EXPECT(
        why(third, "active_limit", "1 job is being worked on, and 1 may be: claims are held back; 1 job is"));
    settings.active_queues = false;
    settings.active_max = 100;
    configure();
    settings.client_running_max = 1;
    configure();
    EXPECT(why(third, "client_limit",
               "Its client has 1 job running, and may have 1.")); /* no claim has met it */
    settings.client_running_max = 0;
    configure();
    struct exchange *x = get(JOB ":explain", first);
    EXPECT(is(x, "lease.owner", "worker:1") && is(x, "worker.name", "worker:1") &&
           is(x, "worker.status", "RUNNING") && is(x, "worker.restarts", "null")); /* no supervisor has it */
    struct job_start start = {
        .id = c.id, .fence = c.fence, .steady_us = store_steady_us(stage_store), .lease_us = 30000000};
    EXPECT(store_submit(&job_start_class, &start, NULL, 0, NULL, DEADLINE_NONE) == OK);
    EXPECT(why(first, "running", "worker:1 runs it since "));
    stage_store->start += 2;
    EXPECT(is(get(JOB ":explain", first), "worker", "null"));
    stage_store->start -= 2;
    finish(&c, JOB_FAIL, JOB_SIMULATED_FAILURE);
    EXPECT(why(first, "final", "It has been FAILED since ") &&
           why(first, "final", "(SIMULATED_FAILURE); of 3 retries 3 are left."));
    EXPECT(post(JOB "/retry", first)->r.status == 200);
    EXPECT(why(first, "backoff", "It was retried, and may be claimed from "));
    EXPECT(!is(get(JOB ":explain", first), "until", "null") && nobody_is_before(first));
    /* not somebody else's, nor one that isn't there */
    EXPECT(refused(ask(METHOD_GET, JOB ":explain", first, (struct given){.client = 2}), 403,
                   "RFA_AUTH_FORBIDDEN"));
    EXPECT(refused(get(JOB ":explain", "nonsense"), 404, "RFA_JOB_NOT_FOUND"));
}

static void test_each_reason_is_explained(void)
{
    static char text[512];
    struct contracts *contracts = contracts_create(text, sizeof(text));
    TEST_ASSERT_(contracts != NULL, "%s", text);
    const struct contract_operation *o = contracts_operation(contracts, "GET", "/v1/jobs/{job_id}:explain");
    TEST_ASSERT(o != NULL && o->answers_count > 0 && o->answers[0].status == 200);
    explained = o->answers[0].schema;
    run(explain_body);
    contracts_destroy(contracts);
}

/* ---- for operators ---- */

static struct exchange *operate(const char *path, const char *id, const char *query)
{
    static struct exchange x;
    struct arena_mark mark = actor_arena_mark();
    exchange_begin(&x, exchange_route(job_operator_routes, job_operator_routes_count, METHOD_GET, path), id,
                   NULL);
    x.q.identity.kind = IDENTITY_OPERATOR;
    x.q.query = span_text(query);
    exchange_serve(&x);
    actor_arena_reset(mark);
    return &x;
}

static bool shown(const char *query, const char *const *ids, uint32_t count)
{
    struct exchange *x = operate("/jobs", NULL, query);
    const char *at = text_of(x);
    for (uint32_t i = 0; at && i < count; i++) {
        at = strstr(at, ids[i]);
        at = at ? at + 1 : NULL;
    }
    return x->r.status == 200 && at && items_of(x, "jobs") == count;
}

static void operator_body(void)
{
    char client[UUID_TEXT_SIZE], query[512];
    struct uuid second = client_of(2);
    (void)stage_writer();
    const char *ids[3];
    ids[0] = ended(FAST, JOB_FAIL, JOB_SIMULATED_FAILURE);
    ids[1] = id_of(ask(METHOD_POST, JOBS, NULL, (struct given){.body = FAST, .client = 2}));
    ids[2] = submitted(AT("\"2999-01-01T00:00:00Z\""));
    EXPECT(shown("", (const char *[]){ids[2], ids[1], ids[0]}, 3));
    EXPECT(shown("state=FAILED", (const char *[]){ids[0]}, 1) && shown("outcome=SUCCESS", NULL, 0));
    EXPECT(shown("type=DEFERRED", (const char *[]){ids[2]}, 1));
    uuid_format(&second, client);
    snprintf(query, sizeof(query), "client=%s", client);
    EXPECT(shown(query, (const char *[]){ids[1]}, 1) &&
           strstr(text_of(operate("/jobs", NULL, query)), client));
    /* page by page */
    struct exchange *x = operate("/jobs", NULL, "limit=2");
    EXPECT(items_of(x, "jobs") == 2 && !is(x, "next", "null"));
    snprintf(query, sizeof(query), "limit=2&after=%s", exchange_member(x, "next"));
    EXPECT(shown(query, (const char *[]){ids[0]}, 1) && is(operate("/jobs", NULL, query), "next", "null"));
    snprintf(query, sizeof(query), "state=FAILED&after=%s",
             exchange_member(operate("/jobs", NULL, "limit=2"), "next"));
    EXPECT(refused(operate("/jobs", NULL, query), 400, "OPS_400_INVALID"));
    static const char *const odd[] = {"state=x", "limit=1001", "limit=0", "client=x", "after=x"};
    for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++)
        EXPECT(refused(operate("/jobs", NULL, odd[i]), 400, "OPS_400_INVALID"));
    /* one of them: the nine members, the definition, the lease (JOB-011, JOB-281, JOB-389) */
    struct job_claim command = {.lane = LANE_SERVER,
                                .most = 1,
                                .running = 1,
                                .owner = stage_store->start,
                                .steady_us = store_steady_us(stage_store),
                                .lease_us = 30000000,
                                .worker = span_text("worker:7")};
    struct job_claimed c;
    size_t size = 0;
    uint64_t claimed = wall_us();
    EXPECT(is(operate("/jobs/{job_id}/record", ids[1], ""), "lease", "null"));
    EXPECT(store_submit(&job_claim_class, &command, &c, sizeof(c), &size, DEADLINE_NONE) == OK);
    x = operate("/jobs/{job_id}/record", ids[1], "");
    char until[TIME_TEXT_SIZE];
    job_time_format(claimed + 30000000, until);
    EXPECT(is(x, "job.job_id", ids[1]) && is(x, "job.client_id", client) && is(x, "job.state", "RUNNING"));
    EXPECT(is(x, "job.type", "EXECUTE") && is(x, "job.outcome", "null") && is(x, "job.attempt", "1"));
    EXPECT(is(x, "job.callback", "null") && is(x, "job.execution_at", "null") &&
           is(x, "job.definition.duration_ms", "1000"));
    EXPECT(is(x, "lease.owner", "worker:7") &&
           strncmp(exchange_member(x, "lease.expires_at"), until, 19) == 0);
    EXPECT(is(x, "record.state", "3") && is(x, "record.worker", "worker:7"));
    EXPECT(strlen(exchange_member(x, "request_id")) == 36 && strlen(exchange_member(x, "traceparent")) == 55);
    /* its report: one that counts (JOB-020), and what was before */
    EXPECT(is(operate("/jobs/{job_id}/report", ids[1], ""), "current", "null"));
    settings.backoff_base_us = 0;
    configure();
    EXPECT(post(JOB "/retry", ids[0])->r.status == 200);
    x = operate("/jobs/{job_id}/report", ids[0], "");
    EXPECT(is(x, "current", "null") && items_of(x, "earlier") == 1 && is(x, "state", "QUEUED"));
    c = claim(true);
    finish(&c, JOB_SUCCEED, JOB_NO_FAILURE);
    x = operate("/jobs/{job_id}/report", ids[0], "");
    EXPECT(is(x, "current.attempt", "2") && is(x, "current.outcome", "SUCCESS") &&
           is(x, "current.failure", "null"));
    EXPECT(items_of(x, "earlier") == 1 && strstr(text_of(x), "\"reason\":\"SIMULATED_FAILURE\""));
    EXPECT(in_sequence(text_of(operate("/jobs/{job_id}/events", ids[0], "limit=9")), (char[32]){"null"}) ==
           9);
    EXPECT(is(operate("/jobs/{job_id}:explain", ids[0], ""), "reason", "final"));
    pause_jobs(PAUSE_ALL, NULL);
    ids[2] = submitted(FAST);
    EXPECT(is(operate("/jobs/{job_id}:explain", ids[2], ""), "pause.who",
              "operator")); /* which clients aren't told */
    static const char *const paths[] = {"/jobs/{job_id}/record", "/jobs/{job_id}/report",
                                        "/jobs/{job_id}/events", "/jobs/{job_id}:explain"};
    for (size_t i = 0; i < 4; i++)
        for (size_t k = 0; k < 2; k++)
            EXPECT(refused(operate(paths[i], k ? "nonsense" : "00000000-0000-4000-8000-000000000000", ""),
                           404, "OPS_404_NOT_FOUND"));
}

static void test_operators_see_everybodys_JOB_003_JOB_011_JOB_020_JOB_281_JOB_389(void)
{
    run(operator_body);
}

/* ---- jobs of a client's own kinds ---- */

static struct exchange *submit_work(const char *body)
{
    return ask(METHOD_POST, "/v1/work:submit", NULL, (struct given){.body = body});
}

static void work_body(void)
{
    static const struct {
        const char *body, *code, *field;
    } odd[] = {{"{}", MALFORMED, "work_kind"},
               {"{\"work_kind\":7}", MALFORMED, "work_kind"},
               {"{\"work_kind\":\"mail\"}", INVALID, "work_kind"},
               {"{\"work_kind\":\"x.\"}", INVALID, "work_kind"},
               {"{\"work_kind\":\"x.Mail\"}", INVALID, "work_kind"},
               {"{\"work_kind\":\"SUCCESS_FAST\"}", INVALID, "work_kind"},
               {"{\"work_kind\":\"x.a\",\"execution_at\":\"tomorrow\"}", INVALID, "execution_at"},
               {"{\"work_kind\":\"x.a\",\"execution_at\":\"2001-01-01T00:00:00Z\"}", INVALID, "execution_at"},
               {"{\"work_kind\":\"x.a\",\"callback\":\"ftp://h/\"}", INVALID, "callback"},
               {"{\"work_kind\":\"x.a\",\"priority\":1}", INVALID, "priority"},
               {"{\"work_kind\":\"x.a\",\"idempotency_key\":\"\"}", MALFORMED, "idempotency_key"}};
    (void)stage_writer();
    struct counted before = count();
    for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++) {
        struct exchange *x = submit_work(odd[i].body);
        EXPECT(refused(x, 400, odd[i].code) && is(x, "field", odd[i].field) && unchanged(before));
    }
    static const char head[] = "{\"work_kind\":\"x.a\",\"payload\":\"";
    char *large = actor_alloc(JOB_PAYLOAD_MAX + 64), *end = large + sizeof(head) - 2 + JOB_PAYLOAD_MAX - 1;
    memset(large, 'a', JOB_PAYLOAD_MAX + 64);
    memcpy(large, head, sizeof(head) - 1);
    memcpy(end + 1, "\"}", 3); /* one byte more than may be, with its quotes */
    EXPECT(refused(submit_work(large), 400, INVALID) && unchanged(before));
    memcpy(end, "\"}", 3);
    EXPECT(submit_work(large)->r.status == 202);
    char *id = id_of(
        submit_work("{\"work_kind\":\"x.mail\",\"payload\":{\"to\":[1, 2]},\"idempotency_key\":\"k\"}"));
    struct exchange *x = get(JOB, id);
    EXPECT(x->r.beyond && is(x, "type", "EXECUTE") && is(x, "definition.work_kind", "x.mail"));
    EXPECT(is(x, "definition.payload_size", "13") && is(x, "definition.duration_ms", "0"));
    EXPECT(job_of(id).lane == LANE_OUTSIDE &&
           strstr(text_of(get(JOB "/events", id)), "\"scenario\":\"x.mail\""));
    EXPECT(is(submit_work("{\"payload\":{\"to\":[1,2]},\"work_kind\":\"x.mail\",\"idempotency_key\":\"k\"}"),
              "job_id", id));
    EXPECT(
        refused(submit_work("{\"work_kind\":\"x.mail\",\"payload\":{\"to\":[2]},\"idempotency_key\":\"k\"}"),
                409, "RFA_EXEC_IDEMPOTENCY_CONFLICT"));
    x = submit_work("{\"work_kind\":\"x.a\",\"execution_at\":\"2999-01-01T00:00:00Z\"}");
    EXPECT(is(x, "state", "CREATED") && is(get(JOB, id_of(x)), "type", "DEFERRED"));
    settings.priorities = true;
    configure();
    EXPECT(job_of(id_of(submit_work("{\"work_kind\":\"x.a\",\"priority\":9}"))).priority == 9);
    settings.types = 1u << JOB_EXECUTE;
    configure();
    EXPECT(refused(submit_work("{\"work_kind\":\"x.a\",\"execution_at\":\"2999-01-01T00:00:00Z\"}"), 400,
                   INVALID));
}

static void test_jobs_of_a_clients_own_kinds(void)
{
    run(work_body);
}

/* ---- rendered values ---- */

static void rendered_body(void)
{
    static char out[2 * RENDERED_ROOM];
    struct json_sink sink;
    struct json json;
    struct rendered *r = rendered_new();
    char *text = actor_alloc(12001);
    memset(text, 'x', 12000);
    text[12000] = 0;
    for (int i = 0; i < 2; i++) {
        json_string(rendered_begin(r), text);
        EXPECT(rendered_end(r));
    }
    json_string(rendered_begin(r), text); /* the third has no room, and leaves what was there */
    EXPECT(!rendered_end(r) && r->count == 2);
    json_int(rendered_begin(r), 7);
    EXPECT(rendered_end(r) && r->count == 3);
    json_sink_init(&sink, out, sizeof(out), NULL, NULL);
    json_init(&json, &sink);
    json_array_begin(&json);
    rendered_write(r, &json);
    json_array_end(&json);
    EXPECT(json_end(&json) == JSON_OK && sink.length == 2 * 12002 + 1 + 4);
    EXPECT(memcmp(out + sink.length - 4, "\",7]", 4) == 0);
    rendered_clear(r);
    for (uint32_t i = 0; i < RENDERED_MAX; i++) {
        json_uint(rendered_begin(r), i);
        EXPECT(rendered_end(r));
    }
    json_uint(rendered_begin(r), 1);
    EXPECT(!rendered_end(r) && r->count == RENDERED_MAX);
}

static void test_rendered_values_fit_or_are_left_out(void)
{
    run(rendered_body);
}

TEST_LIST
= {
    {"jobs: submit (JOB-081, JOB-082, JOB-137, JOB-138)", test_submit_JOB_081_JOB_082_JOB_137_JOB_138},
    {"jobs: definitions (JOB-026, JOB-068, JOB-070, JOB-075, AMB-J-03)",
     test_definitions_JOB_026_JOB_068_JOB_070_JOB_075_AMB_J_03},
    {"jobs: each kind by name (JOB-028, JOB-029, JOB-033, JOB-034..JOB-064)",
     test_each_kind_by_name_JOB_028_JOB_029_JOB_033_JOB_034_to_JOB_064},
    {"jobs: bad input stores nothing (JOB-140, JOB-301..JOB-306)",
     test_bad_input_stores_nothing_JOB_140_JOB_301_to_JOB_306},
    {"jobs: what is taken is valid by the contract", test_what_is_taken_is_valid_by_the_contract},
    {"jobs: a second of skew, and full seconds (JOB-262, JOB-263, JOB-267, AMB-J-44)",
     test_a_second_of_skew_and_full_seconds_JOB_262_JOB_263_JOB_267_AMB_J_44},
    {"jobs: settings count from the next submit on (JOB-076, JOB-444, JOB-453)",
     test_settings_count_from_the_next_submit_on_JOB_076_JOB_444_JOB_453},
    {"jobs: priorities are an option", test_priorities_are_an_option},
    {"jobs: full (JOB-144, JOB-146, JOB-312, JOB-333, JOB-334, JOB-353)",
     test_full_JOB_144_JOB_146_JOB_312_JOB_333_JOB_334_JOB_353},
    {"jobs: idempotency keys (JOB-093, JOB-094, JOB-143, JOB-323, AMB-J-29)",
     test_idempotency_keys_JOB_093_JOB_094_JOB_143_JOB_323_AMB_J_29},
    {"jobs: a request id of the client's own (AMB-J-30)", test_a_request_id_of_the_clients_own_AMB_J_30},
    {"jobs: 50 at once with one key are one job (JOB-323)", test_50_at_once_with_one_key_are_one_job_JOB_323},
    {"jobs: an id that is taken is drawn again (JOB-289, JOB-310)",
     test_an_id_that_is_taken_is_drawn_again_JOB_289_JOB_310},
    {"jobs: without the store (JOB-146, JOB-156, JOB-166, JOB-174, JOB-182, JOB-311)",
     test_without_the_store_JOB_146_JOB_156_JOB_166_JOB_174_JOB_182_JOB_311},
    {"jobs: get (JOB-168, JOB-389, AMB-J-16, AMB-J-20)", test_get_JOB_168_JOB_389_AMB_J_16_AMB_J_20},
    {"jobs: the longest one", test_the_longest_job},
    {"jobs: nobody else's (JOB-171, JOB-172, JOB-179, JOB-180, JOB-292, JOB-300)",
     test_nobody_elses_job_JOB_171_JOB_172_JOB_179_JOB_180_JOB_292_JOB_300},
    {"jobs: cancel (JOB-083, JOB-095, JOB-148, JOB-321, AMB-J-32, AMB-J-33)",
     test_cancel_JOB_083_JOB_095_JOB_148_JOB_321_AMB_J_32_AMB_J_33},
    {"jobs: retry (JOB-085, JOB-096, JOB-158, JOB-164, JOB-268..JOB-271, JOB-275, JOB-322)",
     test_retry_JOB_085_JOB_096_JOB_158_JOB_164_JOB_268_to_JOB_271_JOB_275_JOB_322},
    {"jobs: retry with a full queue, and backoff (JOB-166, JOB-269, JOB-272, AMB-J-14)",
     test_retry_with_a_full_queue_and_backoff_JOB_166_JOB_269_JOB_272_AMB_J_14},
    {"jobs: report (JOB-176, JOB-180, JOB-397, AMB-J-18)", test_report_JOB_176_JOB_180_JOB_397_AMB_J_18},
    {"jobs: events page by page (JOB-015, JOB-291)", test_events_page_by_page_JOB_015_JOB_291},
    {"jobs: list (JOB-003, JOB-292, AMB-J-19)", test_list_JOB_003_JOB_292_AMB_J_19},
    {"jobs: a page looks at so many jobs and no more", test_a_page_looks_at_so_many_jobs_and_no_more},
    {"jobs: each reason is explained", test_each_reason_is_explained},
    {"jobs: operators see everybody's (JOB-003, JOB-011, JOB-020, JOB-281, JOB-389)",
     test_operators_see_everybodys_JOB_003_JOB_011_JOB_020_JOB_281_JOB_389},
    {"jobs: those of a client's own kinds", test_jobs_of_a_clients_own_kinds},
    {"jobs: rendered values fit or are left out", test_rendered_values_fit_or_are_left_out},
    {NULL, NULL},
};
