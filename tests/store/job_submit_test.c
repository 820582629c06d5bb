/* Submitting jobs: what becomes of each type, what is refused and leaves nothing, what is asked for twice. */
#include "acutest.h"

#include "store/counter.h"
#include "store/ledger.h"
#include "store/outbox.h"
#include "tests/store/jobs.h"

static void refused(struct jobs *j, const struct job_submit *c, enum error expected)
{
    uint64_t sum = jobs_sum(j);
    enum error e = jobs_submit(j, c, NULL);
    TEST_CHECK_(e == expected, "%s, not %s", error_name(e), error_name(expected));
    TEST_CHECK_(jobs_sum(j) == sum, "something is written");
}

static struct job_definition definition_of(struct jobs *j, const struct uuid *id)
{
    struct view *view = view_open_outside(j->fresh.store, 0);
    struct job_definition definition = {.kind = 0};
    TEST_CHECK(job_read_definition(&view->txn, id, &definition) == OK);
    view_close(view);
    definition.kind_name = definition.callback = definition.trace = definition.request_id =
        definition.payload = span_of(NULL, 0);
    return definition;
}

/* ---- types ---- */

static void test_submit_makes_a_job_of_each_type_JOB_027_JOB_072_JOB_137_JOB_260(void)
{
    struct jobs j;
    struct job_submitted submitted;
    jobs_open(&j);
    for (uint8_t type = 0; type < JOB_TYPE_COUNT; type++) {
        struct job_submit c = jobs_wish(&j, WORK_KIND_SUCCESS_NORMAL);
        c.type = type;
        c.execution_us = type == JOB_DEFERRED ? j.at_us + 10 * JOBS_SECOND_US : 0;
        TEST_CHECK(jobs_submit(&j, &c, &submitted) == OK);
        uint8_t state = type == JOB_DEFERRED ? JOB_CREATED : JOB_QUEUED;
        TEST_CHECK(uuid_equal(&submitted.id, &c.id) && submitted.made && submitted.state == state);
        TEST_CHECK(submitted.created_us == j.at_us && submitted.kind == WORK_KIND_SUCCESS_NORMAL);
        struct job job = jobs_look(&j, &c.id);
        TEST_CHECK(job.type == type && job.state == state && job.attempt == 1 && job.seq == type + 1u);
        TEST_CHECK(job.created_us == j.at_us && job.execution_us == c.execution_us);
        TEST_CHECK(uuid_equal(&job.client, &j.client) && job.finished_us == 0 && job.started_us == 0);
        JOBS_STORY_IS(&j, &c.id, type == JOB_DEFERRED ? "created" : "created queued");
    }
    TEST_CHECK(jobs_rows(&j, TABLE_JOB_QUEUE) == 2 && jobs_rows(&j, TABLE_DUE) == 1);
    jobs_close(&j);
}

static void test_submit_keeps_its_definition_JOB_011_JOB_033_JOB_073_JOB_082(void)
{
    struct jobs j;
    jobs_open(&j);
    struct job_submit c = jobs_wish(&j, WORK_KIND_FAIL_AFTER_PROGRESS);
    c.callback = span_text("https://a.example/hook");
    c.trace = span_text("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    c.request_id = span_text("request-1");
    TEST_CHECK(jobs_submit(&j, &c, NULL) == OK);
    fresh_reopen(&j.fresh);
    struct view *view = view_open_outside(j.fresh.store, 0);
    struct job_definition d;
    TEST_CHECK(job_read_definition(&view->txn, &c.id, &d) == OK);
    TEST_CHECK(d.kind == WORK_KIND_FAIL_AFTER_PROGRESS && d.should_fail == 1 && d.duration_ms == 20000 &&
               d.payload_size == 8192);
    TEST_CHECK(span_equal(d.callback, c.callback) && span_equal(d.trace, c.trace) &&
               span_equal(d.request_id, c.request_id));
    view_close(view);
    TEST_CHECK(jobs_look(&j, &c.id).told == 1);
    jobs_close(&j);
}

static void test_submit_draws_the_same_definition_at_the_same_time_JOB_026_AMB_J_03(void)
{
    struct jobs j;
    jobs_open(&j);
    for (uint32_t i = 0; i < 20; i++) {
        struct job_submit a = jobs_wish(&j, WORK_KIND_NONE), b = jobs_wish(&j, WORK_KIND_NONE);
        struct work_definition wanted;
        b.client = j.other;
        TEST_CHECK(jobs_submit(&j, &a, NULL) == OK && jobs_submit(&j, &b, NULL) == OK);
        struct job_definition x = definition_of(&j, &a.id), y = definition_of(&j, &b.id);
        TEST_CHECK(memcmp(&x, &y, sizeof(x)) == 0);
        TEST_CHECK(work_definition_draw(j.at_us / 1000, 200000, 262144, 120000, &wanted));
        TEST_CHECK(x.kind == wanted.kind && x.duration_ms == wanted.duration_ms &&
                   x.payload_size == wanted.payload_bytes && x.should_fail == wanted.should_fail);
        TEST_CHECK(jobs_look(&j, &a.id).kind == x.kind);
        j.at_us += 12345678;
    }
    jobs_close(&j);
}

static void
test_submit_refuses_what_is_no_job_JOB_078_JOB_301_JOB_302_JOB_444_AMB_J_09_AMB_J_13_AMB_J_45(void)
{
    struct jobs j;
    static const uint8_t no_kinds[] = {32, 100, 254, WORK_KIND_PAYLOAD_INVALID};
    jobs_open(&j);
    struct job_submit c = jobs_wish(&j, 1);
    c.id = (struct uuid){{0}};
    refused(&j, &c, ERR_INVALID);
    c = jobs_wish(&j, 1);
    c.type = JOB_TYPE_COUNT;
    refused(&j, &c, ERR_INVALID);
    for (uint8_t type = 0; type < JOB_TYPE_COUNT; type++) {
        c = jobs_wish(&j, 1);
        c.type = type;
        c.execution_us = type == JOB_DEFERRED ? 0 : j.at_us + JOBS_SECOND_US;
        refused(&j, &c, ERR_INVALID);
    }
    for (size_t i = 0; i < sizeof(no_kinds); i++) {
        c = jobs_wish(&j, no_kinds[i]);
        refused(&j, &c, ERR_INVALID);
    }
    c = jobs_wish(&j, 1);
    c.priority = JOB_PRIORITY_MAX + 1;
    refused(&j, &c, ERR_INVALID);
    c = jobs_wish(&j, WORK_KIND_LARGE_OUTPUT);
    c.payload_max = 65536;
    refused(&j, &c, ERR_INVALID);
    c = jobs_wish(&j, WORK_KIND_MEMORY_SPIKE);
    c.payload_max = 65536;
    TEST_CHECK(jobs_submit(&j, &c, NULL) == OK);
    c = jobs_wish_user(&j, "mail");
    refused(&j, &c, ERR_INVALID);
    c = jobs_wish_user(&j, "x.mail");
    c.payload = span_text("{\"a\":1}");
    c.payload_max = 6;
    refused(&j, &c, ERR_INVALID);
    c.payload_max = 7;
    TEST_CHECK(jobs_submit(&j, &c, NULL) == OK && jobs_look(&j, &c.id).kind == WORK_KIND_USER);
    jobs_close(&j);
}

/* ---- times ---- */

static void test_submit_takes_times_as_they_are_meant_JOB_074_JOB_263_JOB_266_JOB_267_JOB_303_AMB_J_44(void)
{
    static const struct {
        int64_t from_now;
        enum error expected;
        uint8_t state;
        int64_t stored; /* from now */
    } times[] = {
        {-5000000, ERR_INVALID, 0, 0},      {-2000000, ERR_INVALID, 0, 0},
        {-1000000, ERR_INVALID, 0, 0},      {-999999, OK, JOB_QUEUED, -999999},
        {-500000, OK, JOB_QUEUED, -500000}, {0, OK, JOB_QUEUED, 0},
        {1, OK, JOB_CREATED, 750000},       {750000, OK, JOB_CREATED, 750000},
        {750001, OK, JOB_CREATED, 1750000}, {3600000000, OK, JOB_CREATED, 3600750000},
    };
    struct jobs j;
    jobs_open(&j);
    j.at_us += 250000; /* a quarter behind the second */
    for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++) {
        uint64_t at = (uint64_t)((int64_t)j.at_us + times[i].from_now);
        struct job_submit c = jobs_wish_at(&j, at);
        if (times[i].expected) {
            refused(&j, &c, times[i].expected);
            continue;
        }
        TEST_CHECK(jobs_submit(&j, &c, NULL) == OK);
        struct job job = jobs_look(&j, &c.id);
        TEST_CHECK(job.state == times[i].state);
        TEST_CHECK((int64_t)job.execution_us - (int64_t)j.at_us == times[i].stored);
        TEST_CHECK(job.due_us == (job.state == JOB_CREATED ? job.execution_us : 0));
        TEST_CHECK(job.state == JOB_CREATED || job.queued_us >= job.execution_us);
    }
    jobs_close(&j);
}

/* The clock was far ahead once; since then jobs are created at that time, and still nothing is early. */
static void test_submit_is_not_early_when_the_clock_has_been_ahead_JOB_262_D9(void)
{
    struct jobs j;
    jobs_open(&j);
    j.at_us += 3650 * JOBS_DAY_US;
    struct uuid first = jobs_new(&j);
    j.at_us -= 3650 * JOBS_DAY_US;
    struct job_submit c = jobs_wish_at(&j, j.at_us + 10 * JOBS_SECOND_US);
    TEST_CHECK(jobs_submit(&j, &c, NULL) == OK);
    struct job job = jobs_look(&j, &c.id);
    TEST_CHECK(job.state == JOB_CREATED && job.created_us == jobs_look(&j, &first).created_us);
    j.at_us += 10 * JOBS_SECOND_US - 1;
    TEST_CHECK(jobs_fire(&j, NULL, 0) == 0);
    j.at_us++;
    TEST_CHECK(jobs_fire(&j, NULL, 0) == 1 && jobs_look(&j, &c.id).state == JOB_QUEUED);
    (void)jobs_story(&j, &c.id);
    jobs_close(&j);
}

static void test_submit_takes_any_time_that_is_a_number(void)
{
    static const uint64_t times[] = {JOB_TIME_MAX, INT64_MAX, UINT64_MAX - 999999, UINT64_MAX};
    struct jobs j;
    jobs_open(&j);
    for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++) {
        struct job_submit c = jobs_wish_at(&j, times[i]);
        TEST_CHECK(jobs_submit(&j, &c, NULL) == OK && jobs_look(&j, &c.id).state == JOB_CREATED);
    }
    j.at_us = UINT64_MAX;
    struct job_submit c = jobs_wish_at(&j, UINT64_MAX);
    TEST_CHECK(jobs_submit(&j, &c, NULL) == OK);
    struct uuid last = jobs_new(&j);
    TEST_CHECK(jobs_look(&j, &last).created_us == JOB_TIME_MAX);
    TEST_CHECK(jobs_fire(&j, NULL, 0) == 4);
    jobs_close(&j);
}

/* ---- order ---- */

static void test_submit_numbers_jobs_in_the_order_of_their_commits_AMB_J_37(void)
{
    struct jobs j;
    uint64_t newest = 0;
    jobs_open(&j);
    for (uint32_t i = 0; i < 30; i++) {
        j.at_us = JOBS_AT_US + fresh_below(10) * JOBS_SECOND_US + fresh_below(1000);
        struct uuid id = jobs_new(&j);
        struct job job = jobs_look(&j, &id);
        TEST_CHECK(job.seq == i + 1 && job.created_us >= newest && job.created_us % 1000 == 0);
        newest = job.created_us;
    }
    TEST_CHECK(newest <= JOBS_AT_US + 9 * JOBS_SECOND_US);
    jobs_close(&j);
}

/* ---- limits ---- */

static void test_submit_finds_the_queue_full_JOB_312_JOB_334_JOB_443_AMB_J_14(void)
{
    struct jobs j;
    jobs_open(&j);
    j.queue_max = 5;
    for (uint32_t i = 0; i < 5; i++)
        jobs_new(&j);
    struct job_submit c = jobs_wish(&j, 1), later = jobs_wish_at(&j, j.at_us + JOBS_SECOND_US);
    refused(&j, &c, ERR_QUEUE_FULL);
    c.active_max = 5; /* both: the queue is what is told */
    refused(&j, &c, ERR_QUEUE_FULL);
    TEST_CHECK(jobs_submit(&j, &later, NULL) == OK); /* doesn't count until it is due */
    struct job_submit now = jobs_wish_at(&j, j.at_us);
    refused(&j, &now, ERR_QUEUE_FULL);
    c = jobs_wish(&j, 32); /* what is wrong is wrong, queue or not */
    refused(&j, &c, ERR_INVALID);
    TEST_CHECK(jobs_claim_one(&j, NULL) == OK); /* ASSIGNED isn't QUEUED */
    c = jobs_wish(&j, 1);
    TEST_CHECK(jobs_submit(&j, &c, NULL) == OK);
    jobs_close(&j);
}

static void test_submit_finds_too_many_active_JOB_333_JOB_442_AMB_J_49(void)
{
    struct jobs j;
    struct job_claimed claimed;
    jobs_open(&j);
    j.active_max = 5;
    jobs_in(&j, JOB_RUNNING);
    jobs_in(&j, JOB_ASSIGNED);
    for (uint32_t i = 0; i < 3; i++)
        jobs_new(&j);
    struct job_submit c = jobs_wish(&j, 1);
    refused(&j, &c, ERR_ACTIVE);
    TEST_CHECK(jobs_claim_one(&j, &claimed) == OK && jobs_begin(&j, &claimed.id, claimed.fence) == OK);
    refused(&j, &c, ERR_ACTIVE);
    struct job_finish end = jobs_end_of(&j, &claimed.id, claimed.fence, JOB_SUCCEED);
    TEST_CHECK(jobs_finish(&j, &end, NULL) == OK);
    TEST_CHECK(jobs_submit(&j, &c, NULL) == OK);
    c = jobs_wish(&j, 1);
    c.active_max = 0; /* none */
    TEST_CHECK(jobs_submit(&j, &c, NULL) == OK);
    jobs_close(&j);
}

static enum error fill_outboxes(struct txn *txn, uint64_t at_us, void *context)
{
    (void)at_us;
    const int64_t *delta = context;
    for (uint16_t partition = 0; partition < OUTBOX_PARTITIONS; partition++) {
        const uint8_t label[] = {0, (uint8_t)partition};
        counter_add(txn, COUNTER_OUTBOX, span_of(label, sizeof(label)), *delta);
    }
    return OK;
}

static void test_submit_waits_when_nobody_can_be_told(void)
{
    struct jobs j;
    int64_t more = OUTBOX_HARD, less = -more;
    jobs_open(&j);
    struct job_submit c = jobs_wish(&j, 1);
    c.callback = span_text("https://a.example/");
    c.key = span_text("k");
    TEST_CHECK(fresh_do(&j.fresh, j.at_us, fill_outboxes, &more) == OK);
    refused(&j, &c, ERR_LIMIT);
    jobs_new(&j); /* of whom nobody is told */
    TEST_CHECK(fresh_do(&j.fresh, j.at_us, fill_outboxes, &less) == OK);
    TEST_CHECK(jobs_submit(&j, &c, NULL) == OK);
    jobs_close(&j);
}

/* ---- the same id ---- */

static void test_submit_never_overwrites_JOB_289_JOB_310(void)
{
    struct jobs j;
    jobs_open(&j);
    for (uint8_t state = 0; state < JOB_STATE_COUNT; state++) {
        struct jobs_held held = jobs_in(&j, state);
        struct job_submit c = jobs_wish(&j, 2);
        c.id = held.id;
        refused(&j, &c, ERR_EXISTS);
        c.client = j.other;
        c.key = span_text("k");
        refused(&j, &c, ERR_EXISTS);
        TEST_CHECK(jobs_cancel(&j, &j.client, &held.id, NULL) == OK);
    }
    jobs_close(&j);
}

/* ---- keys ---- */

static struct job_submit keyed(struct jobs *j, const char *key, uint8_t body)
{
    struct job_submit c = jobs_wish(j, 1);
    c.key = span_text(key);
    c.digest.bytes[0] = body;
    return c;
}

static void test_submit_with_a_key_is_one_job_JOB_093_JOB_094_JOB_323_AMB_J_29_I2_I4(void)
{
    struct jobs j;
    struct job_submitted first, again;
    struct job_claimed claimed;
    jobs_open(&j);
    struct job_submit c = keyed(&j, "k", 1);
    TEST_CHECK(jobs_submit(&j, &c, &first) == OK && first.made);
    uint64_t sum = jobs_sum(&j);
    jobs_pass(&j, 1234567);
    struct job_submit repeat = keyed(&j, "k", 1);
    TEST_CHECK(jobs_submit(&j, &repeat, &again) == OK && !again.made);
    TEST_CHECK(uuid_equal(&again.id, &first.id) && again.created_us == first.created_us &&
               again.state == JOB_QUEUED && jobs_sum(&j) == sum);
    struct job_submit other_body = keyed(&j, "k", 2);
    refused(&j, &other_body, ERR_KEY_REUSED);
    TEST_CHECK(jobs_claim_one(&j, &claimed) == OK);
    TEST_CHECK(jobs_submit(&j, &repeat, &again) == OK && again.state == JOB_ASSIGNED); /* as it is now */
    struct job_submit other_client = keyed(&j, "k", 2);
    other_client.client = j.other;
    TEST_CHECK(jobs_submit(&j, &other_client, &again) == OK && again.made);
    other_client.id = fresh_uuid();
    other_client.client = j.client; /* and the one with the id beside it */
    other_client.client.bytes[15] ^= 1;
    TEST_CHECK(jobs_submit(&j, &other_client, &again) == OK && again.made);
    TEST_CHECK(jobs_rows(&j, TABLE_JOBS) == 3);
    jobs_close(&j);
}

static void test_submit_key_is_not_used_up_by_a_refusal_AMB_J_29(void)
{
    struct jobs j;
    struct job_submitted made;
    jobs_open(&j);
    struct job_submit c = keyed(&j, "k", 1);
    c.queue_max = 0;
    refused(&j, &c, ERR_QUEUE_FULL);
    c = keyed(&j, "k", 2);
    c.kind = 32;
    refused(&j, &c, ERR_INVALID);
    c = keyed(&j, "k", 3);
    TEST_CHECK(jobs_submit(&j, &c, &made) == OK && made.made);
    c.digest.bytes[0] = 1; /* and a conflict takes precedence over what else is wrong */
    c.kind = 32;
    refused(&j, &c, ERR_KEY_REUSED);
    jobs_close(&j);
}

/* A batch with fifty of the same: one is made, all are answered alike. */
static void test_submit_many_at_once_with_one_key_JOB_323_I1(void)
{
    enum { MANY = 50 };
    static uint8_t bytes[MANY][1024];
    struct batch_item items[MANY];
    struct job_submitted first, other;
    struct jobs j;
    uint32_t made = 0;
    jobs_open(&j);
    for (uint32_t i = 0; i < MANY; i++) {
        struct job_submit c = keyed(&j, "k", 1);
        size_t size = record_encode(&job_submit_record, &c, bytes[i], sizeof(bytes[i]));
        items[i] = (struct batch_item){
            .class = &job_submit_class, .at_us = j.at_us + i, .bytes = span_of(bytes[i], size)};
    }
    TEST_CHECK(batch_run(j.fresh.store, items, MANY) == OK);
    for (uint32_t i = 0; i < MANY; i++) {
        struct answer *a = &items[i].answer;
        TEST_CHECK(a->error == OK);
        TEST_CHECK(record_decode(&job_submitted_record, 1, span_of(a->bytes, a->size), &other) == OK);
        if (i == 0)
            first = other;
        TEST_CHECK(uuid_equal(&other.id, &first.id) && other.created_us == first.created_us);
        made += other.made;
    }
    TEST_CHECK(made == 1 && jobs_rows(&j, TABLE_JOBS) == 1 && jobs_rows(&j, TABLE_LEDGER) == 1);
    jobs_close(&j);
}

static void test_submit_key_outlives_a_restart_I3(void)
{
    struct jobs j;
    struct job_submitted first, again;
    jobs_open(&j);
    struct job_submit c = keyed(&j, "k", 1);
    TEST_CHECK(jobs_submit(&j, &c, &first) == OK);
    fresh_reopen(&j.fresh);
    TEST_ASSERT(store_load(j.fresh.store) == OK);
    jobs_pass(&j, 29 * JOBS_DAY_US); /* kept as long as the job, which isn't final at all */
    jobs_sweep(&j);
    c = keyed(&j, "k", 1);
    TEST_CHECK(jobs_submit(&j, &c, &again) == OK && uuid_equal(&first.id, &again.id) && !again.made);
    jobs_pass(&j, 1000 * JOBS_DAY_US);
    jobs_sweep(&j);
    TEST_CHECK(jobs_submit(&j, &c, &again) == OK && uuid_equal(&first.id, &again.id) && !again.made);
    jobs_close(&j);
}

/* The answer was lost, and the repeat comes when its time has gone by. */
static void test_submit_again_after_its_time_is_the_same_job_JOB_093_AMB_J_44(void)
{
    struct jobs j;
    struct job_submitted first, again;
    jobs_open(&j);
    struct job_submit c = jobs_wish_at(&j, j.at_us + 2 * JOBS_SECOND_US);
    c.key = span_text("k");
    TEST_CHECK(jobs_submit(&j, &c, &first) == OK);
    jobs_pass(&j, 10 * JOBS_SECOND_US);
    TEST_CHECK(jobs_submit(&j, &c, &again) == OK && !again.made && uuid_equal(&first.id, &again.id));
    c.key = span_text("another");
    c.id = fresh_uuid();
    refused(&j, &c, ERR_INVALID);
    jobs_close(&j);
}

/* ---- without a key ---- */

static struct job_submit numbered(struct jobs *j, const char *request, uint8_t body)
{
    struct job_submit c = jobs_wish(j, 1);
    c.repeat = span_text(request);
    c.digest.bytes[0] = body;
    return c;
}

static void test_submit_knows_a_request_for_a_day_by_its_id_and_body_JOB_093_JOB_323_AMB_J_30(void)
{
    struct jobs j;
    struct job_submitted first, second, again;
    jobs_open(&j);
    struct job_submit c = numbered(&j, "r", 1), twin;
    TEST_CHECK(jobs_submit(&j, &c, &first) == OK && first.made);
    twin = numbered(&j, "r", 1);
    jobs_pass(&j, JOBS_DAY_US - 1);
    TEST_CHECK(jobs_submit(&j, &twin, &again) == OK && !again.made && uuid_equal(&again.id, &first.id));
    twin = numbered(&j, "r", 2); /* another body is another job, and known by itself */
    TEST_CHECK(jobs_submit(&j, &twin, &second) == OK && second.made);
    twin = numbered(&j, "r", 2);
    TEST_CHECK(jobs_submit(&j, &twin, &again) == OK && !again.made && uuid_equal(&again.id, &second.id));
    twin = numbered(&j, "r", 1);
    TEST_CHECK(jobs_submit(&j, &twin, &again) == OK && !again.made && uuid_equal(&again.id, &first.id));
    twin.client = j.other;
    TEST_CHECK(jobs_submit(&j, &twin, &again) == OK && again.made);
    jobs_pass(&j, 1);
    twin = numbered(&j, "r", 1);
    TEST_CHECK(jobs_submit(&j, &twin, &again) == OK && again.made);
    twin = jobs_wish(&j, 1); /* neither: two equal ones are two */
    TEST_CHECK(jobs_submit(&j, &twin, &again) == OK && again.made);
    twin.id = fresh_uuid();
    TEST_CHECK(jobs_submit(&j, &twin, &again) == OK && again.made);
    jobs_close(&j);
}

static void test_submit_with_a_key_goes_by_the_key_alone_AMB_J_30(void)
{
    struct jobs j;
    struct job_submitted first, again;
    jobs_open(&j);
    struct job_submit c = keyed(&j, "k1", 1);
    c.repeat = span_text("r");
    TEST_CHECK(jobs_submit(&j, &c, &first) == OK && first.made);
    c = keyed(&j, "k2", 1);
    c.repeat = span_text("r");
    TEST_CHECK(jobs_submit(&j, &c, &again) == OK && again.made);
    c = numbered(&j, "r", 1);
    TEST_CHECK(jobs_submit(&j, &c, &again) == OK && again.made);
    TEST_CHECK(jobs_rows(&j, TABLE_JOBS) == 3);
    jobs_close(&j);
}

/* Nobody asked for the notes of requests' ids; a key that came is kept, or the job is refused. */
static void test_submit_keeps_room_for_keys_beside_requests_ids_JOB_093_AMB_J_30(void)
{
    enum { ROOM = 1024, REQUESTS = 1100 };
    struct jobs j;
    char request[16];
    jobs_open(&j);
    j.fresh.ledger_max = ROOM;
    fresh_reopen(&j.fresh);
    for (uint32_t i = 0; i < REQUESTS; i++) {
        snprintf(request, sizeof(request), "r%u", i);
        struct job_submit c = numbered(&j, request, 1);
        TEST_CHECK(jobs_submit(&j, &c, NULL) == OK);
    }
    TEST_CHECK(jobs_rows(&j, TABLE_LEDGER) == ROOM / 4 * 3 && jobs_rows(&j, TABLE_JOBS) == REQUESTS);
    for (uint32_t i = 0; i < ROOM / 4; i++) {
        snprintf(request, sizeof(request), "k%u", i);
        struct job_submit c = keyed(&j, request, 1);
        TEST_CHECK(jobs_submit(&j, &c, NULL) == OK);
    }
    struct job_submit c = keyed(&j, "one more", 1);
    refused(&j, &c, ERR_LIMIT);
    jobs_close(&j);
}

static void test_submit_of_a_request_whose_job_has_gone_is_a_new_one_AMB_J_30(void)
{
    struct jobs j;
    struct job_submitted first, again;
    jobs_open(&j);
    j.kept_us = JOBS_SECOND_US;
    struct job_submit c = numbered(&j, "r", 1);
    TEST_CHECK(jobs_submit(&j, &c, &first) == OK && jobs_cancel(&j, &j.client, &c.id, NULL) == OK);
    jobs_pass(&j, 10 * JOBS_SECOND_US);
    jobs_sweep(&j);
    c = numbered(&j, "r", 1);
    TEST_CHECK(jobs_submit(&j, &c, &again) == OK && again.made && !uuid_equal(&again.id, &first.id));
    jobs_close(&j);
}

TEST_LIST
= {
    {"submit: a job of each type (JOB-027, JOB-072, JOB-137, JOB-138, JOB-260)",
     test_submit_makes_a_job_of_each_type_JOB_027_JOB_072_JOB_137_JOB_260},
    {"submit: keeps its definition (JOB-011, JOB-033, JOB-073, JOB-082, JOB-389)",
     test_submit_keeps_its_definition_JOB_011_JOB_033_JOB_073_JOB_082},
    {"submit: draws the same definition at the same time (JOB-026, AMB-J-03)",
     test_submit_draws_the_same_definition_at_the_same_time_JOB_026_AMB_J_03},
    {"submit: refuses what is no job (JOB-078, JOB-301, JOB-302, JOB-306, JOB-444, AMB-J-09, AMB-J-13, "
     "AMB-J-45)",
     test_submit_refuses_what_is_no_job_JOB_078_JOB_301_JOB_302_JOB_444_AMB_J_09_AMB_J_13_AMB_J_45},
    {"submit: takes times as they are meant (JOB-074, JOB-263, JOB-266, JOB-267, JOB-303, AMB-J-44)",
     test_submit_takes_times_as_they_are_meant_JOB_074_JOB_263_JOB_266_JOB_267_JOB_303_AMB_J_44},
    {"submit: isn't early when the clock has been ahead (JOB-262)",
     test_submit_is_not_early_when_the_clock_has_been_ahead_JOB_262_D9},
    {"submit: takes any time", test_submit_takes_any_time_that_is_a_number},
    {"submit: numbers jobs in the order of commits (AMB-J-37)",
     test_submit_numbers_jobs_in_the_order_of_their_commits_AMB_J_37},
    {"submit: finds the queue full (JOB-312, JOB-334, JOB-443, AMB-J-14)",
     test_submit_finds_the_queue_full_JOB_312_JOB_334_JOB_443_AMB_J_14},
    {"submit: finds too many active (JOB-333, JOB-442, AMB-J-49)",
     test_submit_finds_too_many_active_JOB_333_JOB_442_AMB_J_49},
    {"submit: waits when nobody can be told", test_submit_waits_when_nobody_can_be_told},
    {"submit: never overwrites (JOB-012, JOB-289, JOB-310)", test_submit_never_overwrites_JOB_289_JOB_310},
    {"submit: with a key it is one job (JOB-093, JOB-094, JOB-323, AMB-J-29, I2, I4)",
     test_submit_with_a_key_is_one_job_JOB_093_JOB_094_JOB_323_AMB_J_29_I2_I4},
    {"submit: a refusal uses no key up (AMB-J-29)", test_submit_key_is_not_used_up_by_a_refusal_AMB_J_29},
    {"submit: many at once with one key (JOB-323, I1)", test_submit_many_at_once_with_one_key_JOB_323_I1},
    {"submit: a key outlives a restart (I3, AMB-J-29)", test_submit_key_outlives_a_restart_I3},
    {"submit: again after its time it is the same job (JOB-093, AMB-J-44)",
     test_submit_again_after_its_time_is_the_same_job_JOB_093_AMB_J_44},
    {"submit: a request is known for a day (JOB-093, JOB-323, AMB-J-30)",
     test_submit_knows_a_request_for_a_day_by_its_id_and_body_JOB_093_JOB_323_AMB_J_30},
    {"submit: with a key it goes by that alone (AMB-J-30)",
     test_submit_with_a_key_goes_by_the_key_alone_AMB_J_30},
    {"submit: keeps room for keys beside requests' ids (JOB-093, AMB-J-30)",
     test_submit_keeps_room_for_keys_beside_requests_ids_JOB_093_AMB_J_30},
    {"submit: a request whose job has gone (AMB-J-30)",
     test_submit_of_a_request_whose_job_has_gone_is_a_new_one_AMB_J_30},
    {NULL, NULL},
};
