/* Jobs over HTTP while the store fails: what it can't write or read is answered so, nothing is half done, and nothing of it turns
 * up later. Damage is done by a command of the test's own, through the real writer; what only a writer can say is said by a false
 * one. */
#define _GNU_SOURCE /* memmem */
#include "acutest.h"

#include <stdio.h>

#include "actors/jobs.h"
#include "http/bulk.h"
#include "http/commit.h"
#include "http/front.h"
#include "http/job_request.h"
#include "http/jobs.h"
#include "http/pauses.h"
#include "http/schedules.h"
#include "http/work.h"
#include "runtime/runtime.h"
#include "runtime/telemetry.h"
#include "store/client.h"
#include "store/counter.h"
#include "store/job_change.h"
#include "tests/support/exchange.h"
#include "tests/support/spoil.h"
#include "tests/support/stage.h"

static const struct uuid client = {{0xc0, [15] = 1}};

static void run(void (*body)(void))
{
    struct stage stage = {.schema = spoil_schema()};
    jobs_configure(&jobs_defaults);
    job_request_configure(&(struct job_request_settings){.allow_private = false});
    TEST_CHECK(stage_run(&stage, body) == 0);
}

/* ---- asking ---- */

static struct front front = {.name = "client"};
static struct front_limits limits = {.request_ns = 10 * NS_PER_S, .store_ns = 2 * NS_PER_S};

#define JOBS      "/v1/jobs"
#define JOB       "/v1/jobs/{job_id}"
#define FAST      "{\"type\":\"EXECUTE\",\"work_kind\":\"SUCCESS_FAST\",\"idempotency_key\":\"once\"}"

#define SCHEDULES "/v1/schedules"
#define DAILY     "{\"cron\":\"0 0 * * *\",\"work_kind\":\"SUCCESS_FAST\"}"
#define BULK      "/v1/jobs:bulk"
#define PAUSE     "/jobs:pause"
#define CANCELS   "{\"action\":\"cancel\",\"filter\":{\"states\":[\"QUEUED\"]}}"

static const struct route *route_of(enum method method, const char *path)
{
    if (strncmp(path, SCHEDULES, strlen(SCHEDULES)) == 0)
        return exchange_route(schedule_routes, schedule_routes_count, method, path);
    if (strcmp(path, BULK) == 0)
        return exchange_route(bulk_routes, bulk_routes_count, method, path);
    if (strcmp(path, PAUSE) == 0)
        return exchange_route(pause_routes, pause_routes_count, method, path);
    return exchange_route(job_routes, job_routes_count, method, path);
}

static struct exchange *ask(enum method method, const char *path, const char *param, const char *body)
{
    static struct exchange exchanges[8];
    static size_t next;
    struct exchange *x = &exchanges[next++ % 8];
    struct arena_mark mark = actor_arena_mark();
    exchange_begin(x, route_of(method, path), param, body);
    x->q.identity.kind = IDENTITY_CLIENT;
    x->q.identity.client = client;
    x->q.front = &front;
    x->q.began_ns = actor_now();
    atomic_store(&front.limits, &limits);
    trace_begin(&x->q.trace, span_of(NULL, 0), span_of(NULL, 0), span_of(NULL, 0));
    exchange_serve(x);
    actor_arena_reset(mark);
    return x;
}

static struct exchange *submit(void)
{
    return ask(METHOD_POST, JOBS, NULL, FAST);
}

static bool is(const struct exchange *x, const char *name, const char *expected)
{
    return strcmp(exchange_member(x, name), expected) == 0;
}

/* A problem and nothing else: no word of a job. */
static bool refused(const struct exchange *x, int status, const char *code)
{
    return x->r.status == status && is(x, "code", code) &&
           strcmp(x->r.type, "application/problem+json") == 0 && !exchange_member(x, "job_id")[0] &&
           !exchange_member(x, "state")[0] && !exchange_member(x, "events")[0];
}

#define DB_ERROR    "RFA_STORAGE_DB_ERROR"
#define UNAVAILABLE "RFA_STORAGE_UNAVAILABLE"

static uint64_t all_rows(void)
{
    uint64_t count = 0;
    struct view *view = view_open(stage_store);
    for (uint32_t table = 0; table < TABLE_COUNT; table++)
        count += txn_rows(&view->txn, table);
    view_close(view);
    return count;
}

static struct uuid the_job;

static char *submitted(void)
{
    static char id[UUID_TEXT_SIZE];
    struct exchange *x = submit();
    EXPECT(x->r.status == 202);
    snprintf(id, sizeof(id), "%s", exchange_member(x, "job_id"));
    EXPECT(uuid_parse(id, UUID_TEXT_SIZE - 1, &the_job));
    return id;
}

/* ---- a row that can't be read ---- */

static enum error spoil_job(struct txn *txn)
{
    struct key key = key_of_uuid(&the_job);
    spoil_value(txn, TABLE_JOBS, key_span(&key));
    return OK;
}

static enum error spoil_event(struct txn *txn)
{
    struct key key = event_key(&the_job, 1);
    spoil_value(txn, TABLE_EVENTS, key_span(&key));
    return OK;
}

static void unreadable_body(void)
{
    (void)stage_writer();
    char *id = submitted();
    struct commit_figures before = commit_figures();
    EXPECT(ask(METHOD_GET, JOB, id, NULL)->r.status == 200 && spoil(spoil_job) == OK);
    EXPECT(refused(ask(METHOD_GET, JOB, id, NULL), 503, DB_ERROR));
    EXPECT(refused(ask(METHOD_GET, JOB "/report", id, NULL), 503, DB_ERROR));
    EXPECT(refused(ask(METHOD_GET, JOB "/events", id, NULL), 503, DB_ERROR));
    EXPECT(refused(ask(METHOD_POST, JOB "/cancel", id, NULL), 503, DB_ERROR));
    EXPECT(refused(ask(METHOD_POST, JOB "/retry", id, NULL), 503, DB_ERROR));
    struct commit_figures now = commit_figures(); /* JOB-435 */
    EXPECT(now.reads == before.reads + 4 && now.reads_failed == before.reads_failed + 3);
    EXPECT(now.commits == before.commits + 2 && now.failed == before.failed + 2);
    EXPECT(spoil(spoil_job) == OK && is(ask(METHOD_GET, JOB, id, NULL), "state", "QUEUED"));
    EXPECT(spoil(spoil_event) == OK);
    EXPECT(refused(ask(METHOD_GET, JOB "/events", id, NULL), 503, DB_ERROR));
    EXPECT(spoil(spoil_event) == OK && ask(METHOD_GET, JOB "/events", id, NULL)->r.status == 200);
}

static void test_what_cannot_be_read_JOB_308_JOB_435(void)
{
    run(unreadable_body);
}

static struct uuid the_schedule;

static enum error spoil_schedule(struct txn *txn)
{
    enum { ROW_SCHEDULE = 0 }; /* as the store numbers them */
    struct key key = {.size = 0};
    key_add_u8(&key, ROW_SCHEDULE);
    key_add_uuid(&key, &the_schedule);
    spoil_value(txn, TABLE_SCHEDULES, key_span(&key));
    return OK;
}

/* The list is on its way when the row is come to: it must not end as if that were all. */
static void unreadable_list_body(void)
{
    char id[UUID_TEXT_SIZE];
    (void)stage_writer();
    const struct client_create c = {.id = client, .from = span_text("192.0.2.1")};
    EXPECT(store_submit(&client_create_class, &c, NULL, 0, NULL, actor_deadline_ms(1000)) == OK);
    for (int i = 0; i < 2; i++) {
        struct exchange *x = ask(METHOD_POST, SCHEDULES, NULL, DAILY);
        EXPECT(x->r.status == 201);
        snprintf(id, sizeof(id), "%s", exchange_member(x, "schedule_id"));
    }
    EXPECT(uuid_parse(id, UUID_TEXT_SIZE - 1, &the_schedule));
    EXPECT(!ask(METHOD_GET, SCHEDULES, NULL, NULL)->r.failed && spoil(spoil_schedule) == OK);
    EXPECT(ask(METHOD_GET, SCHEDULES, NULL, NULL)->r.failed && spoil(spoil_schedule) == OK);
    EXPECT(!ask(METHOD_GET, SCHEDULES, NULL, NULL)->r.failed);
}

static void test_a_list_with_a_damaged_row(void)
{
    run(unreadable_list_body);
}

/* ---- a submit that can't be written ---- */

static enum error spoil_counter(struct txn *txn)
{
    static const uint8_t queued = JOB_QUEUED;
    struct key key = counter_key(COUNTER_JOBS, span_of(&queued, sizeof(queued)));
    spoil_value(txn, TABLE_COUNTERS, key_span(&key));
    return OK;
}

static void unwritable_body(void)
{
    (void)stage_writer();
    (void)submitted();
    uint64_t rows = all_rows();
    EXPECT(spoil(spoil_counter) == OK);
    struct exchange *x = ask(METHOD_POST, JOBS, NULL, "{\"type\":\"EXECUTE\",\"idempotency_key\":\"later\"}");
    EXPECT(refused(x, 503, DB_ERROR) && exchange_has_header(x, "Retry-After: 1") && all_rows() == rows);
    EXPECT(spoil(spoil_counter) == OK);
    x = ask(METHOD_POST, JOBS, NULL, "{\"type\":\"EXECUTE\",\"idempotency_key\":\"later\"}");
    EXPECT(x->r.status == 202 && !exchange_has_header(x, "Idempotent-Replayed: true"));
}

static void test_a_submit_that_cannot_be_written_JOB_307(void)
{
    run(unwritable_body);
}

/* ---- between two rows of one job ---- */

static const struct uuid half_id = {{0xf0, [15] = 9}};

static enum error begin_half(struct txn *txn)
{
    struct job job = {.id = half_id,
                      .client = client,
                      .seq = 1000,
                      .type = JOB_EXECUTE,
                      .kind = 1,
                      .attempt = 1,
                      .created_us = store_time_us()};
    enum error e = job_begin(txn, &job, job.created_us);
    if (e)
        return e;
    job_write(txn, &job); /* the job is there, and now its second event can't be */
    struct key taken = event_key(&half_id, 2);
    struct event foreign = {.domain = JOB_DOMAIN, .name = JOB_CANCEL, .at_us = 1};
    txn_add(txn, TABLE_EVENTS, key_span(&taken), &foreign);
    return job_move_on(txn, &job, JOB_ENQUEUE, job.created_us, span_of(NULL, 0));
}

static void half_body(void)
{
    (void)stage_writer();
    char id[UUID_TEXT_SIZE];
    uint64_t rows = all_rows();
    EXPECT(spoil(begin_half) == ERR_DAMAGED && all_rows() == rows);
    uuid_format(&half_id, id);
    EXPECT(refused(ask(METHOD_GET, JOB, id, NULL), 404, "RFA_JOB_NOT_FOUND"));
    EXPECT(submit()->r.status == 202); /* the batch with it is over, the writer isn't */
}

static void test_an_error_between_job_and_event_leaves_neither_JOB_309(void)
{
    run(half_body);
}

/* ---- what only a writer can say ---- */

static struct {
    enum error said;
    uint32_t times, asked; /* it says so often, then that it is done */
} lies;

static enum actor_step liar_handle(void *state, struct message *m)
{
    struct {
        struct writer_reply head;
        struct job_changed changed;
    } reply = {.head.error = OK, .changed = {.state = JOB_CANCELED, .from = JOB_QUEUED}};
    (void)state;
    if (m->type != WRITER_COMMAND)
        return ACTOR_CONTINUE;
    bool lie = lies.asked++ < lies.times;
    reply.head.error = lie ? (uint32_t)lies.said : (uint32_t)OK;
    actor_reply_bytes(m, WRITER_REPLY, &reply, lie ? sizeof(reply.head) : sizeof(reply));
    return ACTOR_CONTINUE;
}
static const struct actor_class liar_class = {.name = "liar", .handle = liar_handle};

static struct exchange *told(enum error e, uint32_t times, enum method method, const char *path,
                             const char *id)
{
    lies.said = e;
    lies.times = times;
    lies.asked = 0;
    return ask(method, path, id, method == METHOD_POST && !id ? FAST : NULL);
}

static void liar_body(void)
{
    static const struct {
        enum error said;
        int status;
        const char *code;
    } cases[] = {{ERR_IO, 503, DB_ERROR},           {ERR_NO_SPACE, 503, DB_ERROR},
                 {ERR_DAMAGED, 503, DB_ERROR},      {ERR_FULL, 503, UNAVAILABLE},
                 {ERR_SHED, 503, UNAVAILABLE},      {ERR_UNAVAILABLE, 503, UNAVAILABLE},
                 {ERR_EXISTS, 500, "RFA_INTERNAL"}, {ERR_TRANSITION, 409, "RFA_JOB_CONFLICT"}};
    char id[UUID_TEXT_SIZE];
    uint64_t rows = all_rows();
    struct start_result started;
    EXPECT(actor_start(&(struct spawn_options){.class = &liar_class, .name = WRITER_NAME}, &started,
                       DEADLINE_NONE) == OK);
    uuid_format(&half_id, id);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        EXPECT(refused(told(cases[i].said, 9, METHOD_POST, JOBS, NULL), cases[i].status, cases[i].code));
        EXPECT(
            refused(told(cases[i].said, 9, METHOD_POST, JOB "/cancel", id), cases[i].status, cases[i].code));
        EXPECT(
            refused(told(cases[i].said, 9, METHOD_POST, JOB "/retry", id), cases[i].status, cases[i].code));
    }
    /* a cancel that lost is tried again three times, and only then a conflict */
    EXPECT(is(told(ERR_CONFLICT, 3, METHOD_POST, JOB "/cancel", id), "state", "CANCELED") && lies.asked == 4);
    EXPECT(refused(told(ERR_CONFLICT, 9, METHOD_POST, JOB "/cancel", id), 409, "RFA_JOB_CONFLICT") &&
           lies.asked == 4);
    EXPECT(refused(told(ERR_CONFLICT, 9, METHOD_POST, JOB "/retry", id), 409, "RFA_JOB_CONFLICT") &&
           lies.asked == 1);
    EXPECT(all_rows() == rows);
    stage_kill(started.pid);
}

static void test_what_the_store_says_JOB_154_JOB_307(void)
{
    run(liar_body);
}

/* ---- a store that is late ---- */

static void late_body(void)
{
    char id[UUID_TEXT_SIZE];
    actor_pid writer = stage_writer();
    snprintf(id, sizeof(id), "%s", submitted());
    uint64_t rows = all_rows();
    actor_suspend(writer);
    uint64_t began = actor_now();
    struct exchange *x = ask(METHOD_POST, JOBS, NULL, "{\"type\":\"EXECUTE\",\"idempotency_key\":\"late\"}");
    EXPECT(refused(x, 503, UNAVAILABLE) && actor_now() - began == limits.store_ns);
    EXPECT(refused(ask(METHOD_POST, JOB "/cancel", id, NULL), 503, UNAVAILABLE));
    limits.store_ns = 0; /* then the request's own time counts */
    EXPECT(refused(ask(METHOD_POST, JOB "/cancel", id, NULL), 504, "RFA_EXEC_TIMEOUT"));
    EXPECT(refused(ask(METHOD_POST, SCHEDULES, NULL, DAILY), 504, "RFA_EXEC_TIMEOUT"));
    EXPECT(refused(ask(METHOD_POST, BULK, NULL, CANCELS), 504, "RFA_EXEC_TIMEOUT"));
    limits.store_ns = 2 * NS_PER_S;
    (void)actor_sleep(actor_deadline_ms(1)); /* the writer's clock is as fine as that */
    actor_resume(writer);
    stage_settle();
    EXPECT(all_rows() == rows &&
           is(ask(METHOD_GET, JOB, id, NULL), "state", "QUEUED")); /* nothing came later */
    EXPECT(ask(METHOD_POST, JOB "/cancel", id, NULL)->r.status == 200);
}

/* Operators hear the same as clients. That it was refused is an audit entry, which comes later. */
static void late_pause_body(void)
{
    actor_pid writer = stage_writer();
    limits.store_ns = 0;
    actor_suspend(writer);
    EXPECT(refused(ask(METHOD_POST, PAUSE, NULL, "{\"scope\":\"all\"}"), 504, "OPS_504_TIMEOUT"));
    limits.store_ns = 2 * NS_PER_S;
    actor_resume(writer);
    stage_settle();
}

static void test_a_late_store_JOB_337(void)
{
    run(late_body);
    run(late_pause_body);
}

/* ---- a change that the lifecycle doesn't have ---- */

static enum error succeed_unstarted(struct txn *txn)
{
    struct job_texts texts;
    struct job job;
    enum error e = job_open(txn, &the_job, &job, &texts);
    return e ? e : job_move(txn, &job, JOB_SUCCEED, store_time_us(), span_of(NULL, 0));
}

static void refused_body(void)
{
    struct telemetry *telemetry = runtime_telemetry(runtime_self());
    (void)stage_writer();
    char *id = submitted();
    uint64_t before = telemetry_counter_sum(telemetry, TELEMETRY_JOB_REFUSED), rows = all_rows();
    EXPECT(spoil(succeed_unstarted) == ERR_TRANSITION && all_rows() == rows);
    EXPECT(telemetry_counter_sum(telemetry, TELEMETRY_JOB_REFUSED) == before + 1);
    EXPECT(is(ask(METHOD_GET, JOB, id, NULL), "state", "QUEUED"));
}

static void test_a_refused_change_is_told_of_JOB_324(void)
{
    run(refused_body);
}

/* ---- workers outside ---- */

static uint64_t asked_ago_ns; /* how long such a request has been there */

static const struct uuid *worker_of = &client;

static struct exchange *work(const char *path, const char *body)
{
    static struct exchange x;
    struct arena_mark mark = actor_arena_mark();
    exchange_begin(&x, exchange_route(work_routes, work_routes_count, METHOD_POST, path), NULL, body);
    x.q.identity.kind = IDENTITY_CLIENT;
    x.q.identity.client = *worker_of;
    x.q.front = &front;
    x.q.began_ns = actor_now() - asked_ago_ns;
    atomic_store(&front.limits, &limits);
    trace_begin(&x.q.trace, span_of(NULL, 0), span_of(NULL, 0), span_of(NULL, 0));
    exchange_serve(&x);
    actor_arena_reset(mark);
    return &x;
}

static void submit_outside(const char *kind)
{
    char body[128];
    snprintf(body, sizeof(body), "{\"work_kind\":\"%s\",\"payload\":{}}", kind);
    struct exchange *x = ask(METHOD_POST, "/v1/work:submit", NULL, body);
    EXPECT(x->r.status == 202 && uuid_parse(exchange_member(x, "job_id"), UUID_TEXT_SIZE - 1, &the_job));
}

static enum error mark_half(struct txn *txn)
{
    struct job_texts texts;
    struct job job;
    enum error e = job_open(txn, &the_job, &job, &texts);
    job.incomplete = 1;
    job_write(txn, &job);
    return e;
}

/* Also at the end of a claim that has waited for longer than other requests may take. */
static void half_job(uint64_t waited_ns)
{
    struct job job = {.state = JOB_STATE_COUNT};
    submit_outside("x.half");
    EXPECT(spoil(mark_half) == OK);
    uint64_t failed = commit_figures().failed;
    asked_ago_ns = waited_ns;
    struct exchange *x = work("/v1/work:claim", "{\"wait_ms\":30000}");
    asked_ago_ns = 0;
    EXPECT(x->r.status == 200 && strcmp(exchange_member(x, "jobs"), "[]") == 0);
    EXPECT(commit_figures().failed == failed);
    struct view *view = view_open(stage_store);
    EXPECT(job_read(&view->txn, &the_job, &job) == OK);
    EXPECT(job.state == JOB_FAILED && job.failure == JOB_RECOVERY_INCOMPLETE && !job.retryable);
    view_close(view);
}

static void half_job_body(void)
{
    (void)stage_writer();
    (void)actor_sleep(actor_deadline_ms(60000));
    half_job(0);
    half_job(11 * NS_PER_S);
}

static void test_half_a_job_is_given_to_no_worker_outside_AMB_J_12(void)
{
    run(half_job_body);
}

static enum error lose_definition(struct txn *txn)
{
    struct key key = key_of_uuid(&the_job);
    spoil_remove(txn, TABLE_JOB_DEFINITIONS, key_span(&key));
    return OK;
}

static struct job_definition lost_definition;
static uint8_t lost_texts[4096];

static enum error read_lost(struct txn *txn)
{
    struct job_definition d;
    enum error e = job_read_definition(txn, &the_job, &d);
    EXPECT(d.kind_name.size + d.payload.size <= sizeof(lost_texts));
    memcpy(lost_texts, d.kind_name.bytes, d.kind_name.size);
    memcpy(lost_texts + d.kind_name.size, d.payload.bytes, d.payload.size);
    lost_definition =
        (struct job_definition){.kind = d.kind,
                                .payload_size = d.payload_size,
                                .kind_name = span_of(lost_texts, d.kind_name.size),
                                .payload = span_of(lost_texts + d.kind_name.size, d.payload.size)};
    return e;
}

static enum error bring_definition(struct txn *txn)
{
    struct key key = key_of_uuid(&the_job);
    txn_write(txn, TABLE_JOB_DEFINITIONS, key_span(&key), &lost_definition);
    return OK;
}

static void undefined_body(void)
{
    struct job job = {.state = JOB_STATE_COUNT};
    (void)stage_writer();
    submit_outside("x.undefined");
    struct view *view = view_open(stage_store);
    EXPECT(read_lost(&view->txn) == OK);
    view_close(view);
    EXPECT(spoil(lose_definition) == OK);
    struct exchange *x = work("/v1/work:claim", "{}");
    EXPECT(x->r.status == 200 && strcmp(exchange_member(x, "jobs"), "[]") == 0);
    view = view_open(stage_store);
    EXPECT(job_read(&view->txn, &the_job, &job) == OK);
    EXPECT(job.state == JOB_FAILED && job.failure == JOB_DEFINITION_MISSING && !job.retryable);
    view_close(view);
    EXPECT(spoil(bring_definition) == OK);
}

static void test_a_job_without_its_definition_is_given_to_no_worker_outside_JOB_317(void)
{
    run(undefined_body);
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

/* The job is RUNNING by then: whoever has claimed it gets it, and not only the end of his lease. */
static void crowded_body(void)
{
    (void)stage_writer();
    submit_outside("x.crowded");
    actor_pid dolls[] = {stage_doll(0, crowd, NULL), stage_doll(1, crowd, NULL)};
    (void)actor_sleep(actor_deadline_ms(10));
    EXPECT(view_open(stage_store) == NULL);
    struct exchange *x = work("/v1/work:claim", "{}");
    EXPECT(x->r.status == 200 && memmem(x->r.body, x->r.sink.length, "\"x.crowded\"", 11) != NULL);
    for (size_t i = 0; i < 2; i++)
        (void)stage_ended(dolls[i]);
}

static void test_a_claimed_job_waits_for_a_view(void)
{
    run(crowded_body);
}

static struct job job_of_store(void)
{
    struct job job = {.created_us = 0};
    struct view *view = view_open(stage_store);
    EXPECT(job_read(&view->txn, &the_job, &job) == OK);
    view_close(view);
    return job;
}

/* Whose job it is he alone reports on, with the token that he was given: nothing longer, and nothing beside it. */
static void lease_body(void)
{
    static const char *const tokens[] = {
        "",
        "0x",
        "1x",
        "1 ",
        "g",
        "\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9",
        "1111111111111111111111111",
        "11111111111111111111111111111111",
        "111111111111111111111111111111111111111"};
    static const char *const words[] = {"/v1/work:heartbeat", "/v1/work:complete", "/v1/work:fail"};
    char body[256], id[UUID_TEXT_SIZE], created[TIME_TEXT_SIZE];
    static const struct uuid other = {{0xc0, [15] = 2}};
    (void)stage_writer();
    submit_outside("x.mine");
    EXPECT(stage_logged("\"next_state\":\"QUEUED\"") == 1);
    struct exchange *x = work("/v1/work:claim", "{\"lease_ms\":60000}");
    job_time_format(job_of_store().created_us, created);
    snprintf(body, sizeof(body), "\"created_at\":\"%s\"", created);
    EXPECT(x->r.status == 200 && memmem(x->r.body, x->r.sink.length, body, strlen(body)));
    EXPECT(stage_logged("\"next_state\":\"ASSIGNED\"") == 1 &&
           stage_logged("\"next_state\":\"RUNNING\"") == 1);
    uuid_format(&the_job, id);
    for (size_t w = 0; w < sizeof(words) / sizeof(*words); w++) {
        for (size_t i = 0; i < sizeof(tokens) / sizeof(*tokens); i++) {
            snprintf(body, sizeof(body), "{\"job_id\":\"%s\",\"lease_token\":\"%s\"}", id, tokens[i]);
            EXPECT(work(words[w], body)->r.status == 400);
        }
        snprintf(body, sizeof(body), "{\"job_id\":\"%s\",\"lease_token\":\"1\"}", id);
        worker_of = &other;
        EXPECT(work(words[w], body)->r.status == 404);
        worker_of = &client;
        snprintf(body, sizeof(body), "{\"job_id\":\"%s\",\"lease_token\":\"2\"}", id);
        EXPECT(work(words[w], body)->r.status == 409);
    }
    snprintf(body, sizeof(body), "{\"job_id\":\"%s\",\"lease_token\":\"1\"}", id);
    EXPECT(work(words[0], body)->r.status == 200 && stage_logged("\"next_state\":\"SUCCEEDED\"") == 0);
    EXPECT(work(words[1], body)->r.status == 200 && stage_logged("\"next_state\":\"SUCCEEDED\"") == 1);
    EXPECT(work(words[1], body)->r.status == 200 &&
           stage_logged("\"next_state\":\"SUCCEEDED\"") == 1); /* said again */
}

static void test_a_lease_is_its_clients_JOB_292(void)
{
    run(lease_body);
}

/* A lease goes by steady time, and is shown by the wall clock. */
static bool shows_lease(const struct exchange *x)
{
    char text[TIME_TEXT_SIZE], member[80];
    struct job job = {.lease_us = 0};
    struct view *view = view_open(stage_store);
    EXPECT(job_read(&view->txn, &the_job, &job) == OK);
    view_close(view);
    EXPECT(job.lease_us > store_steady_us(stage_store));
    job_time_format(store_time_us() + job.lease_us - store_steady_us(stage_store), text);
    snprintf(member, sizeof(member), "\"lease_expires_at\":\"%s\"", text);
    return x->r.status == 200 && memmem(x->r.body, x->r.sink.length, member, strlen(member)) != NULL;
}

/* A job for a worker outside, claimed for a second under this token; the body of whatever it says of it. */
static void claim_for_a_second(unsigned token, char body[256])
{
    char id[UUID_TEXT_SIZE];
    submit_outside("x.late");
    uuid_format(&the_job, id);
    EXPECT(work("/v1/work:claim", "{\"lease_ms\":1000}")->r.status == 200);
    snprintf(body, 256, "{\"job_id\":\"%s\",\"lease_token\":\"%u\",\"lease_ms\":1000}", id, token);
}

/* The store was opened a moment ago: whoever had a job before has it for a usual lease at least, and is told so. */
static void grace_body(void)
{
    char body[256], other[256];
    (void)stage_writer();
    claim_for_a_second(1, body);
    claim_for_a_second(2, other);
    stage_store->first_fence = 3; /* they claimed before it was opened */
    (void)actor_sleep(actor_deadline_ms(10000));
    EXPECT(shows_lease(work("/v1/work:heartbeat", other)));
    (void)actor_sleep(actor_deadline_ms(10000));
    EXPECT(shows_lease(work("/v1/work:heartbeat", other)));
    EXPECT(work("/v1/work:complete", body)->r.status == 200);
    (void)actor_sleep(actor_deadline_ms(10000));
    EXPECT(work("/v1/work:heartbeat", other)->r.status == 409);
}

static void test_a_worker_outside_has_a_lease_from_the_start_on_J5(void)
{
    run(grace_body);
}

/* Whoever claims after the start has what it was told, and not a moment more. */
static void as_told_body(void)
{
    char body[256], late[256];
    (void)stage_writer();
    claim_for_a_second(1, late);
    claim_for_a_second(2, body);
    (void)actor_sleep(actor_deadline_ms(999));
    EXPECT(shows_lease(work("/v1/work:heartbeat", body)));
    (void)actor_sleep(actor_deadline_ms(1));
    EXPECT(work("/v1/work:heartbeat", late)->r.status == 409);
    EXPECT(work("/v1/work:heartbeat", body)->r.status == 200);
}

static void test_a_claim_of_this_start_lasts_as_long_as_it_was_told_J5(void)
{
    run(as_told_body);
}

static void wall_body(void)
{
    char body[256], id[UUID_TEXT_SIZE];
    (void)stage_writer();
    (void)actor_sleep(actor_deadline_ms(120000));
    stage_clock_jump(-3600 * (int64_t)NS_PER_S);
    submit_outside("x.wall");
    EXPECT(shows_lease(work("/v1/work:claim", "{\"lease_ms\":60000}")));
    uuid_format(&the_job, id);
    snprintf(body, sizeof(body), "{\"job_id\":\"%s\",\"lease_token\":\"1\"}", id);
    (void)actor_sleep(actor_deadline_ms(10000));
    EXPECT(shows_lease(work("/v1/work:heartbeat", body)));
}

static void test_a_lease_is_shown_by_the_wall_clock(void)
{
    run(wall_body);
}

TEST_LIST
= {
    {"faults: what can't be read (JOB-308, JOB-435)", test_what_cannot_be_read_JOB_308_JOB_435},
    {"faults: a list with a damaged row", test_a_list_with_a_damaged_row},
    {"faults: a submit that can't be written (JOB-307)", test_a_submit_that_cannot_be_written_JOB_307},
    {"faults: an error between job and event leaves neither (JOB-309)",
     test_an_error_between_job_and_event_leaves_neither_JOB_309},
    {"faults: what the store says (JOB-154, JOB-307)", test_what_the_store_says_JOB_154_JOB_307},
    {"faults: a late store (JOB-337)", test_a_late_store_JOB_337},
    {"faults: half a job is given to no worker outside (AMB-J-12)",
     test_half_a_job_is_given_to_no_worker_outside_AMB_J_12},
    {"faults: a job without its definition is given to no worker outside (JOB-317)",
     test_a_job_without_its_definition_is_given_to_no_worker_outside_JOB_317},
    {"faults: a claimed job waits for a view", test_a_claimed_job_waits_for_a_view},
    {"faults: a worker outside has a lease from the start on (J5)",
     test_a_worker_outside_has_a_lease_from_the_start_on_J5},
    {"faults: a claim of this start lasts as long as it was told (J5)",
     test_a_claim_of_this_start_lasts_as_long_as_it_was_told_J5},
    {"faults: a lease is its client's (JOB-292)", test_a_lease_is_its_clients_JOB_292},
    {"faults: a lease is shown by the wall clock", test_a_lease_is_shown_by_the_wall_clock},
    {"faults: a refused change is told of (JOB-324)", test_a_refused_change_is_told_of_JOB_324},
    {NULL, NULL},
};
