/* Jobs: which state leads to which, by the table and by every command; their events; how they go when their time is over. */
#include "acutest.h"

#include <stdio.h>
#include <stdlib.h>

#include "runtime/telemetry.h"
#include "store/client.h"
#include "store/outbox.h"
#include "store/retention.h"
#include "store/webhook.h"
#include "tests/store/jobs.h"

/* ---- the 49 pairs ---- */

/* JOB-210..JOB-258, row by row: the event that leads from the row's state to the column's; a dot: nothing does, whatever is
 * tried. JOB-225, ASSIGNED to QUEUED, is one of those: the exception isn't in the table. */
static const char *const pairs[JOB_STATE_COUNT][JOB_STATE_COUNT] = {
    [JOB_CREATED] = {".", "enqueue", ".", ".", ".", ".", "cancel"},
    [JOB_QUEUED] = {".", ".", "assign", ".", ".", ".", "cancel"},
    [JOB_ASSIGNED] = {".", ".", ".", "start", ".", ".", "cancel"},
    [JOB_RUNNING] = {".", ".", ".", ".", "succeed", "fail time_out", "cancel"},
    [JOB_SUCCEEDED] = {".", ".", ".", ".", ".", ".", "."},
    [JOB_FAILED] = {".", "retry", ".", ".", ".", ".", "."},
    [JOB_CANCELED] = {".", ".", ".", ".", ".", ".", "."},
};

static bool leads(uint8_t from, uint8_t event, uint8_t to)
{
    char list[64], *rest = list;
    snprintf(list, sizeof(list), "%s", pairs[from][to]);
    for (char *word = strtok_r(list, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        if (strcmp(word, lifecycle_event_name(&job_lifecycle, event)) == 0)
            return true;
    return false;
}

static bool allowed(uint8_t from, uint8_t to)
{
    return strcmp(pairs[from][to], ".") != 0;
}

static uint8_t led_to(uint8_t from, uint8_t event)
{
    for (uint8_t to = 0; to < JOB_STATE_COUNT; to++)
        if (leads(from, event, to))
            return to;
    return JOB_STATE_COUNT;
}

static void test_job_table_has_these_10_of_49_pairs_JOB_210_JOB_258_JOB_456(void)
{
    char text[200];
    uint32_t count = 0;
    TEST_CHECK_(lifecycle_check(&job_lifecycle, text, sizeof(text)), "%s", text);
    for (uint8_t from = 0; from < JOB_STATE_COUNT; from++)
        for (uint8_t to = 0; to < JOB_STATE_COUNT; to++) {
            bool may = lifecycle_allows(&job_lifecycle, from, to);
            TEST_CHECK_(may == allowed(from, to), "JOB-%u %s -> %s", 210u + 7u * from + to,
                        job_state_name(from), job_state_name(to));
            count += may;
        }
    TEST_CHECK(count == 10);
    for (uint8_t from = 0; from < JOB_STATE_COUNT; from++)
        for (uint8_t event = 0; event < JOB_EVENT_COUNT; event++) {
            uint8_t to = JOB_STATE_COUNT;
            enum error e = lifecycle_next(&job_lifecycle, from, event, &to);
            TEST_CHECK(to == led_to(from, event) && e == (to == JOB_STATE_COUNT ? ERR_TRANSITION : OK));
        }
}

struct step {
    struct uuid id;
    uint8_t event;
    enum error expected;
};

/* What commands move jobs by. */
static enum error take_step(struct txn *txn, uint64_t at_us, void *context)
{
    const struct step *step = context;
    struct job_texts texts;
    struct job job;
    TEST_CHECK(job_open(txn, &step->id, &job, &texts) == OK);
    const struct job before = job;
    TEST_CHECK(job_move(txn, &job, step->event, at_us, span_of(NULL, 0)) == step->expected);
    if (step->expected) {
        TEST_CHECK(txn->writes == 0 && memcmp(&job, &before, sizeof(job)) == 0);
        return OK;
    }
    TEST_CHECK(job.events == before.events + 1 && job.due_us == 0 && job.lane == LANE_NONE);
    txn->error = ERR_MEMORY; /* taken back: it isn't all that a command does */
    return OK;
}

/* ---- whoever asks for what is not in the table is told of ---- */

struct heard {
    struct telemetry_record last;
    uint32_t count;
};

static void hear(void *context, const struct telemetry_record *record)
{
    struct heard *heard = context;
    heard->last = *record;
    heard->count++;
}

static uint64_t no_time(void *context)
{
    (void)context;
    return 1;
}

static bool says(const struct heard *heard, enum telemetry_dimension dimension, const char *text)
{
    const char *value = telemetry_record_value(&heard->last, dimension);
    return value && strcmp(value, text) == 0;
}

static void test_job_move_that_is_refused_is_told_of_with_both_states_JOB_324(void)
{
    const struct telemetry_options options = {.shards = 1, .now = no_time};
    struct telemetry_filter filter = {{0}};
    struct heard heard = {.count = 0};
    struct jobs j;
    char id[UUID_TEXT_SIZE];
    struct telemetry *telemetry = telemetry_create(&options);
    TEST_ASSERT(telemetry != NULL);
    telemetry_filter_add(&filter, TELEMETRY_JOB_REFUSED);
    TEST_ASSERT(telemetry_subscribe(telemetry, &filter, hear, &heard) >= 0);
    jobs_open(&j);
    struct step step = {jobs_new(&j), JOB_SUCCEED, ERR_TRANSITION};
    uuid_format(&step.id, id);
    telemetry_install(telemetry);
    TEST_CHECK(fresh_do(&j.fresh, j.at_us, take_step, &step) == OK && heard.count == 1);
    TEST_CHECK(says(&heard, DIM_EVENT, "job.succeeded") && says(&heard, DIM_JOB_ID, id));
    TEST_CHECK(says(&heard, DIM_CURRENT_STATE, "QUEUED") && says(&heard, DIM_NEXT_STATE, "SUCCEEDED"));
    step = (struct step){step.id, JOB_ASSIGN, OK};
    TEST_CHECK(fresh_do(&j.fresh, j.at_us, take_step, &step) == ERR_MEMORY && heard.count == 1);
    telemetry_install(NULL);
    jobs_close(&j);
    telemetry_destroy(telemetry);
}

static void test_job_move_refuses_what_is_not_in_the_table_and_writes_nothing_JOB_210_JOB_258(void)
{
    struct jobs j;
    jobs_open(&j);
    for (uint8_t from = 0; from < JOB_STATE_COUNT; from++) {
        struct jobs_held held = jobs_in(&j, from);
        uint64_t sum = jobs_sum(&j);
        for (uint8_t event = 0; event < JOB_EVENT_COUNT; event++) {
            bool may = led_to(from, event) < JOB_STATE_COUNT;
            struct step step = {held.id, event, may ? OK : ERR_TRANSITION};
            /* an extended lease keeps its timer when it starts */
            if (from == JOB_ASSIGNED && event == JOB_START)
                continue;
            TEST_CHECK(fresh_do(&j.fresh, j.at_us, take_step, &step) == (may ? ERR_MEMORY : OK));
            TEST_CHECK_(jobs_sum(&j) == sum, "%s of a job that is %s", job_event_name(event),
                        job_state_name(from));
        }
        if (!job_state_final(from)) /* out of the next one's way */
            TEST_CHECK(jobs_cancel(&j, &j.client, &held.id, NULL) == OK);
    }
    jobs_close(&j);
}

/* Every command that could lead to this state, with everything it needs. How many of them said that they did something. */
static void try_state(struct jobs *j, const struct jobs_held *held, uint8_t to)
{
    static const enum job_event failing[] = {JOB_FAIL, JOB_TIME_OUT};
    struct job_submit again = jobs_wish(j, WORK_KIND_SUCCESS_FAST);
    struct job_finish end = jobs_end_of(j, &held->id, held->fence, JOB_SUCCEED);
    struct job_fired fired;
    struct job job = jobs_look(j, &held->id);
    switch (to) {
    case JOB_CREATED:
        again.id = held->id;
        TEST_CHECK(jobs_submit(j, &again, NULL) == ERR_EXISTS);
        break;
    case JOB_QUEUED:
        TEST_CHECK(jobs_retry(j, &j->client, &held->id, NULL) == OK);
        if (job.state != JOB_FAILED) {
            jobs_fire(j, &fired, 1);
            (void)jobs_reap(j, &held->id, &fired); /* of this start: not its business */
        }
        break;
    case JOB_ASSIGNED:
        TEST_CHECK(jobs_claim_one(j, NULL) == (job.state == JOB_QUEUED ? OK : ERR_NOT_FOUND));
        break;
    case JOB_RUNNING:
        (void)jobs_begin(j, &held->id, held->fence);
        break;
    case JOB_SUCCEEDED:
        (void)jobs_finish(j, &end, NULL);
        break;
    case JOB_FAILED:
        for (size_t i = 0; i < 2; i++) {
            end = jobs_end_of(j, &held->id, held->fence, failing[i]);
            end.message = span_text("another word");
            (void)jobs_finish(j, &end, NULL);
        }
        break;
    default:
        TEST_CHECK(jobs_cancel(j, &j->client, &held->id, NULL) == OK);
    }
}

/* As they are written: a copy needn't have the same bytes between its fields. */
static bool same(const struct job *a, const struct job *b)
{
    uint8_t bytes[2][1024];
    size_t size = record_encode(&job_record, a, bytes[0], sizeof(bytes[0]));
    return size > 0 && size == record_encode(&job_record, b, bytes[1], sizeof(bytes[1])) &&
           memcmp(bytes[0], bytes[1], size) == 0;
}

static void test_job_commands_refuse_what_is_not_in_the_table_and_write_nothing_JOB_210_JOB_258(void)
{
    struct jobs j;
    jobs_open(&j);
    for (uint8_t from = 0; from < JOB_STATE_COUNT; from++)
        for (uint8_t to = 0; to < JOB_STATE_COUNT; to++) {
            struct jobs_held held = jobs_in(&j, from);
            struct job before = jobs_look(&j, &held.id);
            uint64_t sum = jobs_sum(&j);
            bool fired = from == JOB_CREATED && to == JOB_QUEUED;
            if (fired)
                jobs_pass(&j, 3600 * JOBS_SECOND_US);
            try_state(&j, &held, to);
            struct job after = jobs_look(&j, &held.id);
            if (allowed(from, to))
                TEST_CHECK_(after.state == to && after.events == before.events + 1, "JOB-%u: %s",
                            210u + 7u * from + to, jobs_story(&j, &held.id));
            else
                TEST_CHECK_(same(&after, &before) && jobs_sum(&j) == sum, "JOB-%u: %s", 210u + 7u * from + to,
                            jobs_story(&j, &held.id));
            (void)jobs_story(&j, &held.id);
            TEST_CHECK(jobs_cancel(&j, &j.client, &held.id, NULL) == OK);
        }
    jobs_close(&j);
}

/* ---- states, types and their names ---- */

/* Rows of an earlier version have them: those of the catalogue tell which kind it is, and no name has such a one. */
static void test_job_kinds_have_the_ids_that_they_always_had(void)
{
    struct jobs j;
    jobs_open(&j);
    struct uuid wanted = {.bytes = {[0] = 1, [15] = WORK_KIND_SUCCESS_FAST}};
    struct uuid work = job_work_id(j.fresh.store, WORK_KIND_SUCCESS_FAST, span_of(NULL, 0));
    TEST_CHECK(uuid_equal(&work, &wanted) && WORK_KIND_SUCCESS_FAST == 1);
    work = job_work_id(j.fresh.store, WORK_KIND_USER, span_text("x.mine"));
    TEST_CHECK(uuid_version(&work) == 8 && uuid_version(&wanted) != 8);
    jobs_close(&j);
}

static void test_job_states_are_these_seven_JOB_200_JOB_209(void)
{
    static const struct {
        const char *name, *outcome;
    } states[] = {
        {"CREATED", NULL},        {"QUEUED", NULL},     {"ASSIGNED", NULL},       {"RUNNING", NULL},
        {"SUCCEEDED", "SUCCESS"}, {"FAILED", "FAILED"}, {"CANCELED", "CANCELED"},
    };
    TEST_CHECK(JOB_STATE_COUNT == 7);
    for (uint8_t state = 0; state < JOB_STATE_COUNT; state++) {
        const char *outcome = job_outcome_name(state);
        TEST_CHECK(strcmp(job_state_name(state), states[state].name) == 0);
        TEST_CHECK(job_state_final(state) == (states[state].outcome != NULL));
        TEST_CHECK(outcome == states[state].outcome || strcmp(outcome, states[state].outcome) == 0);
    }
    TEST_CHECK(job_state_name(JOB_STATE_COUNT) == NULL && job_outcome_name(JOB_STATE_COUNT) == NULL);
    TEST_CHECK(!job_state_final(JOB_STATE_COUNT) && !job_state_final(UINT8_MAX));
    TEST_CHECK(strcmp(job_type_name(JOB_EXECUTE), "EXECUTE") == 0);
    TEST_CHECK(strcmp(job_type_name(JOB_DEFERRED), "DEFERRED") == 0);
    TEST_CHECK(strcmp(job_type_name(JOB_EMIT_EVENT), "EMIT_EVENT") == 0 && !job_type_name(JOB_TYPE_COUNT));
}

static void test_job_events_have_these_names_AMB_J_42(void)
{
    static const char *const names[] = {"job.created",   "job.queued",   "job.assigned",  "job.running",
                                        "job.succeeded", "job.failed",   "job.timed_out", "job.canceled",
                                        "job.retried",   "job.requeued", "job.emitted"};
    TEST_CHECK(JOB_EVENT_COUNT == sizeof(names) / sizeof(*names));
    for (uint8_t event = 0; event < JOB_EVENT_COUNT; event++)
        TEST_CHECK(strcmp(job_event_name(event), names[event]) == 0);
    TEST_CHECK(job_event_name(JOB_EVENT_COUNT) == NULL);
}

static void test_job_failures_say_whether_a_retry_may_help_AMB_J_66(void)
{
    TEST_CHECK(strcmp(job_failure_reason(JOB_TIMEOUT), "TIMEOUT") == 0);
    TEST_CHECK(strcmp(job_failure_code(JOB_TIMEOUT), "RFA_EXEC_TIMEOUT") == 0);
    for (uint8_t failure = 0; failure < JOB_FAILURE_COUNT; failure++)
        TEST_CHECK(job_failure_retryable(failure) == (failure == JOB_TIMEOUT || failure == JOB_RUNNER_LOST));
    TEST_CHECK(!job_failure_retryable(UINT8_MAX) && job_failure_reason(UINT8_MAX)[0] == '\0');
}

/* ---- events ---- */

static void test_job_events_tell_the_whole_of_it_JOB_014_JOB_015_JOB_390_JOB_393(void)
{
    static const char *const stories[JOB_STATE_COUNT] = {
        [JOB_CREATED] = "created",
        [JOB_QUEUED] = "created queued",
        [JOB_ASSIGNED] = "created queued assigned",
        [JOB_RUNNING] = "created queued assigned running",
        [JOB_SUCCEEDED] = "created queued assigned running succeeded",
        [JOB_FAILED] = "created queued assigned running failed",
        [JOB_CANCELED] = "created queued canceled",
    };
    struct jobs j;
    jobs_open(&j);
    for (uint8_t state = 0; state < JOB_STATE_COUNT; state++) {
        struct jobs_held held = jobs_in(&j, state);
        JOBS_STORY_IS(&j, &held.id, stories[state]);
        TEST_CHECK(jobs_count(&j, state) == 1);
        TEST_CHECK(jobs_cancel(&j, &j.client, &held.id, NULL) == OK);
        if (state != JOB_SUCCEEDED && state != JOB_FAILED)
            TEST_CHECK(jobs_look(&j, &held.id).state == JOB_CANCELED);
        j.kept_us = 1; /* the next one is alone */
        jobs_pass(&j, 31 * JOBS_DAY_US);
        jobs_sweep(&j);
        TEST_CHECK(jobs_rows(&j, TABLE_JOBS) == 0);
    }
    jobs_close(&j);
}

/* A wall clock that stands still, goes back, or leaps: the times of one job grow all the same. */
static void test_job_times_grow_whatever_the_clock_says_JOB_016_AMB_J_41(void)
{
    static const int64_t leaps[] = {0, -1000000000, 1, 999, 1000, -1, 5000000};
    struct jobs j;
    struct job_claimed claimed;
    jobs_open(&j);
    struct uuid id = jobs_new(&j);
    for (size_t i = 0; i < sizeof(leaps) / sizeof(*leaps); i++) {
        uint64_t before = jobs_look(&j, &id).updated_us;
        j.at_us = (uint64_t)((int64_t)j.at_us + leaps[i]);
        TEST_CHECK(jobs_claim_one(&j, &claimed) == OK);
        uint64_t assigned = jobs_look(&j, &id).updated_us;
        TEST_CHECK(assigned > before && claimed.claimed_us == assigned);
        j.start++; /* the worker is gone */
        struct job_fired fired;
        TEST_CHECK(jobs_reap(&j, &id, &fired) == OK && fired.event == JOB_REQUEUE);
    }
    TEST_CHECK(jobs_look(&j, &id).events == 2 + 2 * sizeof(leaps) / sizeof(*leaps));
    (void)jobs_story(&j, &id);
    j.at_us = UINT64_MAX;
    TEST_CHECK(jobs_cancel(&j, &j.client, &id, NULL) == OK);
    (void)jobs_story(&j, &id);
    struct uuid next = jobs_new(&j);
    (void)jobs_story(&j, &next);
    jobs_close(&j);
}

static void test_job_events_never_change_JOB_017_JOB_286(void)
{
    struct jobs j;
    char before[2048];
    jobs_open(&j);
    struct jobs_held held = jobs_in(&j, JOB_ASSIGNED);
    snprintf(before, sizeof(before), "%s", jobs_payload(&j, &held.id, 3));
    struct uuid id = job_event_id(j.fresh.store, &held.id, 3);
    TEST_CHECK(jobs_begin(&j, &held.id, held.fence) == OK);
    fresh_reopen(&j.fresh);
    TEST_ASSERT(store_load(j.fresh.store) == OK);
    struct uuid again = job_event_id(j.fresh.store, &held.id, 3);
    TEST_CHECK(uuid_equal(&id, &again));
    TEST_CHECK(strcmp(before, jobs_payload(&j, &held.id, 3)) == 0);
    jobs_close(&j);
}

static int by_bytes(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct uuid));
}

static void test_job_event_ids_are_all_different_AMB_J_41(void)
{
    enum { JOBS = 200, EVENTS = 50 };
    static struct uuid ids[JOBS * EVENTS * 2];
    struct jobs j;
    jobs_open(&j);
    for (uint32_t i = 0; i < JOBS; i++) {
        struct uuid job = fresh_uuid();
        for (uint32_t seq = 0; seq < EVENTS; seq++) {
            ids[2 * (i * EVENTS + seq)] = job_event_id(j.fresh.store, &job, seq);
            ids[2 * (i * EVENTS + seq) + 1] = job_event_id(j.fresh.store, &job, seq | UINT64_C(1) << 63);
        }
    }
    qsort(ids, sizeof(ids) / sizeof(*ids), sizeof(*ids), by_bytes);
    for (size_t i = 1; i < sizeof(ids) / sizeof(*ids); i++)
        TEST_CHECK(!uuid_equal(&ids[i - 1], &ids[i]));
    jobs_close(&j);
}

static void write_whole(struct jobs *j, const struct uuid *id, uint64_t seq, bool emitted, char text[2048])
{
    struct view *view = view_open_outside(j->fresh.store, 0);
    struct job_definition definition;
    struct event event;
    struct job job;
    struct json_sink sink;
    struct json json;
    TEST_ASSERT(job_read(&view->txn, id, &job) == OK && event_read(&view->txn, id, seq, &event) == OK);
    TEST_ASSERT(job_read_definition(&view->txn, id, &definition) == OK);
    struct span kind = job_kind_name(job.kind, definition.kind_name);
    json_sink_init(&sink, text, 2047, NULL, NULL);
    json_init(&json, &sink);
    json_object_begin(&json);
    if (emitted)
        job_emitted_write_json(&json, j->fresh.store, &job, kind, seq, &event);
    else
        job_event_write_json(&json, j->fresh.store, &job, kind, seq, &event);
    json_object_end(&json);
    TEST_CHECK(sink.status == JSON_OK);
    text[sink.length] = '\0';
    view_close(view);
}

/* The text, with the ids taken out. */
static void without_ids(char *text)
{
    char *at = text;
    while ((at = strstr(at, "_id\":\"")) != NULL) {
        at += strlen("_id\":\"");
        memmove(at, at + 36, strlen(at + 36) + 1);
    }
}

static void test_job_event_as_clients_see_it_JOB_032_JOB_393(void)
{
    struct jobs j;
    char text[2048];
    jobs_open(&j);
    j.at_us = UINT64_C(1763471091123456);
    struct jobs_held held = jobs_in(&j, JOB_FAILED);
    write_whole(&j, &held.id, 1, false, text);
    without_ids(text);
    TEST_CHECK_(
        strcmp(text, "{\"event_id\":\"\",\"job_id\":\"\",\"event_name\":\"job.created\",\"prev_state\":null,"
                     "\"next_state\":\"CREATED\",\"timestamp\":\"2025-11-18T13:04:51.123Z\","
                     "\"payload\":{\"scenario\":\"SUCCESS_FAST\"}}") == 0,
        "%s", text);
    write_whole(&j, &held.id, 5, false, text);
    without_ids(text);
    TEST_CHECK_(
        strcmp(text,
               "{\"event_id\":\"\",\"job_id\":\"\",\"event_name\":\"job.failed\",\"prev_state\":\"RUNNING\","
               "\"next_state\":\"FAILED\",\"timestamp\":\"2025-11-18T13:04:51.127Z\","
               "\"payload\":{\"scenario\":\"SUCCESS_FAST\",\"reason\":\"SIMULATED_FAILURE\","
               "\"reason_code\":\"RFA_INTERNAL\",\"retryable\":true}}") == 0,
        "%s", text);
    jobs_close(&j);
}

static uint32_t outbox_rows_of(struct jobs *j, const struct uuid *id, uint16_t topics[16])
{
    struct view *view = view_open_outside(j->fresh.store, 0);
    struct outbox_row rows[16];
    uint32_t count = 0, found = 0;
    uint16_t partition = outbox_partition(&view->txn, id);
    TEST_CHECK(outbox_scan(&view->txn, partition, 0, rows, 16, &count) == OK);
    for (uint32_t i = 0; i < count; i++)
        if (uuid_equal(&rows[i].row.stream, id))
            topics[found++] = rows[i].row.topic;
    view_close(view);
    return found;
}

static void test_job_emit_event_tells_of_one_more_and_stores_none_AMB_J_01(void)
{
    struct jobs j;
    struct job_claimed claimed;
    uint16_t topics[16];
    char text[2048], emitted[2048];
    jobs_open(&j);
    struct job_submit c = jobs_wish(&j, WORK_KIND_SUCCESS_FAST);
    c.type = JOB_EMIT_EVENT;
    c.callback = span_text("http://192.0.2.1/");
    TEST_CHECK(jobs_submit(&j, &c, NULL) == OK && jobs_claim_one(&j, &claimed) == OK);
    TEST_CHECK(jobs_begin(&j, &c.id, claimed.fence) == OK);
    struct job_finish end = jobs_end_of(&j, &c.id, claimed.fence, JOB_SUCCEED);
    TEST_CHECK(jobs_finish(&j, &end, NULL) == OK);
    JOBS_STORY_IS(&j, &c.id, "created queued assigned running succeeded");
    TEST_CHECK(outbox_rows_of(&j, &c.id, topics) == 6);
    for (uint32_t i = 0; i < 6; i++)
        TEST_CHECK(topics[i] == (i == 5 ? OUTBOX_JOB_EMITTED : OUTBOX_JOB));
    write_whole(&j, &c.id, 5, false, text);
    write_whole(&j, &c.id, 5, true, emitted);
    TEST_CHECK(strstr(emitted, "\"event_name\":\"job.emitted\",\"prev_state\":\"SUCCEEDED\",\"next_state\":"
                               "\"SUCCEEDED\"") != NULL);
    TEST_CHECK(strncmp(text, emitted, strlen("{\"event_id\":\"") + 36) != 0); /* an id of its own */
    jobs_close(&j);
}

/* Nobody asked for it: nothing is put into the outbox. A webhook of the client's asks for all of them, JOB-080 for one. */
static void test_job_tells_those_who_asked_JOB_080_O1(void)
{
    struct jobs j;
    uint16_t topics[16];
    jobs_open(&j);
    struct uuid quiet = jobs_new(&j);
    struct client_create client = {.id = j.client, .from = span_text("192.0.2.1")};
    struct webhook_put hook = {
        .client = j.client, .id = fresh_uuid(), .events = 1, .url = span_text("https://a.example/")};
    TEST_CHECK(outbox_rows_of(&j, &quiet, topics) == 0 && jobs_rows(&j, TABLE_OUTBOX) == 0);
    TEST_CHECK(batch_one(j.fresh.store, &client_create_class, j.at_us, &client, NULL) == OK);
    TEST_CHECK(batch_one(j.fresh.store, &webhook_put_class, j.at_us, &hook, NULL) == OK);
    struct uuid told = jobs_new(&j);
    TEST_CHECK(outbox_rows_of(&j, &told, topics) == 2);
    TEST_CHECK(jobs_cancel(&j, &j.client, &quiet, NULL) == OK);
    TEST_CHECK(outbox_rows_of(&j, &quiet, topics) == 1); /* from then on */
    struct job_submit c = jobs_wish(&j, WORK_KIND_SUCCESS_FAST);
    c.client = j.other;
    TEST_CHECK(jobs_submit(&j, &c, NULL) == OK && outbox_rows_of(&j, &c.id, topics) == 0);
    jobs_close(&j);
}

/* ---- retention ---- */

static void finished(struct jobs *j, uint32_t which, struct uuid *ret_id)
{
    struct job_submit c = jobs_wish(j, WORK_KIND_SUCCESS_FAST);
    char key[16];
    snprintf(key, sizeof(key), "key-%u", which);
    struct job_claimed claimed;
    c.key = span_text(key);
    TEST_CHECK(jobs_submit(j, &c, NULL) == OK);
    for (uint32_t attempt = 1; attempt <= 2; attempt++) {
        TEST_CHECK(jobs_claim_one(j, &claimed) == OK && jobs_begin(j, &c.id, claimed.fence) == OK);
        struct job_finish end = jobs_end_of(j, &c.id, claimed.fence, JOB_FAIL);
        TEST_CHECK(jobs_finish(j, &end, NULL) == OK);
        if (attempt == 1)
            TEST_CHECK(jobs_retry(j, &j->client, &c.id, NULL) == OK);
        jobs_pass(j, 10 * JOBS_SECOND_US);
        jobs_fire(j, NULL, 0);
    }
    *ret_id = c.id;
}

static void test_job_goes_with_all_of_it_after_30_days_JOB_387_JOB_391_JOB_395_JOB_398_JOB_400(void)
{
    struct jobs j;
    struct uuid id;
    struct job job;
    jobs_open(&j);
    finished(&j, 1, &id);
    struct jobs_held going = jobs_in(&j, JOB_CREATED);
    uint64_t end_us = j.at_us - 10 * JOBS_SECOND_US + 30 * JOBS_DAY_US; /* by the clock as it was then */
    TEST_CHECK(jobs_look(&j, &id).retire_us == end_us);
    TEST_CHECK(jobs_rows(&j, TABLE_REPORTS) == 2 && jobs_rows(&j, TABLE_LEDGER) == 1);
    j.at_us = end_us - JOBS_SECOND_US;
    jobs_sweep(&j);
    TEST_CHECK(jobs_find(&j, &id, &job) == OK && jobs_rows(&j, TABLE_REPORTS) == 2);
    j.at_us = end_us;
    jobs_sweep(&j);
    TEST_CHECK(jobs_find(&j, &id, &job) == ERR_NOT_FOUND);
    TEST_CHECK(jobs_rows(&j, TABLE_REPORTS) == 0 && jobs_rows(&j, TABLE_LEDGER) == 0);
    TEST_CHECK(jobs_rows(&j, TABLE_JOBS) == 1 && jobs_rows(&j, TABLE_JOB_DEFINITIONS) == 1);
    TEST_CHECK(jobs_rows(&j, TABLE_CLIENT_JOBS) == 1 && jobs_rows(&j, TABLE_EVENTS) == 1);
    TEST_CHECK(jobs_count(&j, JOB_FAILED) == 0);
    j.at_us += 1000 * JOBS_DAY_US; /* what isn't final never goes */
    jobs_sweep(&j);
    TEST_CHECK(jobs_look(&j, &going.id).state == JOB_CREATED);
    jobs_close(&j);
}

/* Times of later jobs aren't before those of earlier ones; what is kept, and until when, goes by the clock as it is now. */
static void test_job_goes_after_30_days_though_the_clock_was_ahead_once_JOB_398_AMB_J_37(void)
{
    struct jobs j;
    struct job job;
    jobs_open(&j);
    uint64_t now_us = j.at_us;
    j.at_us = now_us + 3650 * JOBS_DAY_US;
    struct uuid early = jobs_new(&j);
    j.at_us = now_us;
    TEST_CHECK(jobs_cancel(&j, &j.client, &early, NULL) == OK);
    struct uuid canceled = jobs_new(&j);
    TEST_CHECK(jobs_look(&j, &canceled).created_us >= now_us + 3650 * JOBS_DAY_US);
    TEST_CHECK(jobs_cancel(&j, &j.client, &canceled, NULL) == OK);
    struct jobs_held succeeded = jobs_in(&j, JOB_SUCCEEDED), failed = jobs_in(&j, JOB_FAILED);
    struct jobs_held running = jobs_in(&j, JOB_RUNNING);
    j.at_us = now_us + 29 * JOBS_DAY_US;
    jobs_sweep(&j);
    TEST_CHECK(jobs_rows(&j, TABLE_JOBS) == 5);
    j.at_us = now_us + 31 * JOBS_DAY_US;
    jobs_sweep(&j);
    TEST_CHECK(jobs_find(&j, &canceled, &job) == ERR_NOT_FOUND &&
               jobs_find(&j, &early, &job) == ERR_NOT_FOUND);
    TEST_CHECK(jobs_find(&j, &succeeded.id, &job) == ERR_NOT_FOUND);
    TEST_CHECK(jobs_find(&j, &failed.id, &job) == ERR_NOT_FOUND);
    TEST_CHECK(jobs_find(&j, &running.id, &job) == OK && jobs_rows(&j, TABLE_JOBS) == 1);
    jobs_close(&j);
}

/* As the keeper does each minute: how far it is, is noted. */
static void keep(struct jobs *j)
{
    struct answer answer;
    const struct retention_sweep c = {.until_us = j->at_us};
    TEST_ASSERT(batch_one(j->fresh.store, &retention_sweep_class, j->at_us, &c, &answer) == OK);
}

/* One that hasn't been set yet after a start, say. */
static void test_job_stays_for_30_days_though_the_clock_was_behind_once_JOB_398(void)
{
    struct jobs j;
    struct job job;
    jobs_open(&j);
    uint64_t now_us = j.at_us;
    struct uuid id = jobs_new(&j);
    keep(&j);
    j.at_us = JOBS_DAY_US;
    TEST_CHECK(jobs_cancel(&j, &j.client, &id, NULL) == OK);
    j.at_us = now_us + 29 * JOBS_DAY_US;
    jobs_sweep(&j);
    TEST_CHECK(jobs_look(&j, &id).state == JOB_CANCELED);
    j.at_us = now_us + 31 * JOBS_DAY_US;
    jobs_sweep(&j);
    TEST_CHECK(jobs_find(&j, &id, &job) == ERR_NOT_FOUND);
    jobs_close(&j);
}

/* Where retention was before its end says nothing: the 30 days begin there. */
static void test_job_stays_for_30_days_from_its_end_on_JOB_398(void)
{
    struct jobs j;
    struct job job;
    jobs_open(&j);
    struct uuid id = jobs_new(&j);
    keep(&j);
    jobs_pass(&j, 3 * JOBS_DAY_US);
    TEST_CHECK(jobs_cancel(&j, &j.client, &id, NULL) == OK);
    TEST_CHECK(jobs_look(&j, &id).retire_us == j.at_us + 30 * JOBS_DAY_US);
    jobs_pass(&j, 29 * JOBS_DAY_US);
    jobs_sweep(&j);
    TEST_CHECK(jobs_look(&j, &id).state == JOB_CANCELED);
    jobs_pass(&j, JOBS_DAY_US);
    jobs_sweep(&j);
    TEST_CHECK(jobs_find(&j, &id, &job) == ERR_NOT_FOUND);
    jobs_close(&j);
}

static void test_job_key_is_free_when_the_job_has_gone_AMB_J_29(void)
{
    struct jobs j;
    struct uuid id;
    struct job_submitted submitted;
    jobs_open(&j);
    finished(&j, 1, &id);
    struct job_submit c = jobs_wish(&j, WORK_KIND_SUCCESS_FAST);
    c.key = span_text("key-1");
    j.at_us += 30 * JOBS_DAY_US - 11 * JOBS_SECOND_US;
    jobs_sweep(&j);
    TEST_CHECK(jobs_submit(&j, &c, &submitted) == OK && uuid_equal(&submitted.id, &id) && !submitted.made);
    j.at_us += 11 * JOBS_SECOND_US;
    jobs_sweep(&j);
    TEST_CHECK(jobs_submit(&j, &c, &submitted) == OK && uuid_equal(&submitted.id, &c.id) && submitted.made);
    jobs_close(&j);
}

static void test_job_retry_starts_the_30_days_again_AMB_J_10(void)
{
    struct jobs j;
    struct job_claimed claimed;
    jobs_open(&j);
    struct jobs_held held = jobs_in(&j, JOB_FAILED);
    uint64_t due = jobs_rows(&j, TABLE_DUE);
    jobs_pass(&j, 29 * JOBS_DAY_US);
    TEST_CHECK(jobs_retry(&j, &j.client, &held.id, NULL) == OK);
    TEST_CHECK(jobs_rows(&j, TABLE_DUE) == due); /* instead of the one for retention that of its backoff */
    jobs_pass(&j, 2 * JOBS_DAY_US);
    jobs_sweep(&j);
    TEST_CHECK(jobs_fire(&j, NULL, 0) == 1 && jobs_claim_one(&j, &claimed) == OK);
    TEST_CHECK(jobs_begin(&j, &held.id, claimed.fence) == OK);
    struct job_finish end = jobs_end_of(&j, &held.id, claimed.fence, JOB_SUCCEED);
    TEST_CHECK(jobs_finish(&j, &end, NULL) == OK);
    jobs_pass(&j, 30 * JOBS_DAY_US - JOBS_SECOND_US);
    jobs_sweep(&j);
    TEST_CHECK(jobs_look(&j, &held.id).state == JOB_SUCCEEDED);
    jobs_pass(&j, 2 * JOBS_SECOND_US);
    jobs_sweep(&j);
    TEST_CHECK(jobs_rows(&j, TABLE_JOBS) == 0 && jobs_rows(&j, TABLE_DUE) == 0);
    jobs_close(&j);
}

#define OTHER_TOPIC 999u /* somebody else's */

/* A relay that has told everybody of jobs, or gives everything up; what is somebody else's is left to him. */
static enum error relay_all(struct txn *txn, uint64_t at_us, void *context)
{
    const bool *bury = context;
    for (uint16_t partition = 0; partition < OUTBOX_PARTITIONS; partition++) {
        struct outbox_row rows[64];
        uint64_t fence, after = 0;
        uint32_t count;
        TEST_CHECK(outbox_claim(txn, partition, 1, at_us, &fence) == OK);
        do {
            TEST_CHECK(outbox_scan(txn, partition, after, rows, 64, &count) == OK);
            for (uint32_t i = 0; i < count; i++) {
                after = rows[i].seq;
                if (rows[i].row.topic == OTHER_TOPIC)
                    continue;
                TEST_CHECK((*bury ? outbox_bury(txn, partition, after, fence, at_us, span_text("410"))
                                  : outbox_mark(txn, partition, after, fence)) == OK);
            }
        } while (count > 0);
    }
    return OK;
}

static struct uuid told(struct jobs *j)
{
    struct job_submit c = jobs_wish(j, WORK_KIND_SUCCESS_FAST);
    struct view *view = view_open_outside(j->fresh.store, 0);
    while (outbox_partition(&view->txn, &c.id) != 0) /* all rows among each other */
        c.id = fresh_uuid();
    view_close(view);
    c.callback = span_text("http://192.0.2.1/");
    TEST_CHECK(jobs_submit(j, &c, NULL) == OK);
    return c.id;
}

static void test_job_stays_while_somebody_is_to_be_told_O2(void)
{
    struct jobs j;
    bool bury = false;
    struct job job;
    jobs_open(&j);
    struct uuid id = told(&j);
    TEST_CHECK(jobs_cancel(&j, &j.client, &id, NULL) == OK);
    jobs_pass(&j, 40 * JOBS_DAY_US); /* so that the first days of staying are over, too */
    jobs_sweep(&j);
    TEST_CHECK(jobs_find(&j, &id, &job) == OK && job.retire_us > j.at_us);
    TEST_CHECK(jobs_rows(&j, TABLE_OUTBOX) == 3);
    JOBS_STORY_IS(&j, &id, "created queued canceled");
    fresh_sound(&j.fresh);
    TEST_CHECK(fresh_do(&j.fresh, j.at_us, relay_all, &bury) == OK);
    jobs_pass(&j, JOBS_DAY_US);
    jobs_sweep(&j);
    TEST_CHECK(jobs_find(&j, &id, &job) == ERR_NOT_FOUND && jobs_rows(&j, TABLE_EVENTS) == 0);
    jobs_close(&j);
}

/* Between the first and the last row of each there are more of others than are looked at at one time. */
static void test_job_takes_along_what_was_given_up_however_much_of_others_lies_between(void)
{
    enum { JOBS = 150 };
    struct jobs j;
    struct uuid ids[JOBS];
    bool bury = true;
    jobs_open(&j);
    for (uint32_t i = 0; i < JOBS; i++)
        ids[i] = told(&j);
    for (uint32_t i = 0; i < JOBS; i++)
        TEST_CHECK(jobs_cancel(&j, &j.client, &ids[i], NULL) == OK);
    TEST_CHECK(fresh_do(&j.fresh, j.at_us, relay_all, &bury) == OK);
    TEST_CHECK(jobs_rows(&j, TABLE_DEAD) == 3 * JOBS && jobs_rows(&j, TABLE_OUTBOX) == 0);
    jobs_pass(&j, 31 * JOBS_DAY_US);
    jobs_sweep(&j);
    TEST_CHECK(jobs_rows(&j, TABLE_DEAD) == 0 && jobs_rows(&j, TABLE_JOBS) == 0);
    TEST_CHECK(jobs_rows(&j, TABLE_EVENTS) == 0 && jobs_rows(&j, TABLE_DUE) == 0);
    jobs_close(&j);
}

/* Its event is that of a job which stays. */
static enum error put_other(struct txn *txn, uint64_t at_us, void *context)
{
    uint64_t seq;
    outbox_put(txn, at_us, OTHER_TOPIC, context, 1, &seq);
    return OK;
}

static enum error forget_others(struct txn *txn, uint64_t at_us, void *context)
{
    (void)at_us;
    uint16_t partition = outbox_partition(txn, context);
    struct outbox_row rows[64];
    uint64_t after = 0;
    uint32_t count = 0;
    do {
        TEST_CHECK(outbox_scan(txn, partition, after, rows, 64, &count) == OK);
        for (uint32_t i = 0; i < count; i++) {
            after = rows[i].seq;
            if (rows[i].row.topic == OTHER_TOPIC)
                TEST_CHECK(outbox_forget(txn, partition, after) == OK);
        }
    } while (count > 0);
    return OK;
}

static void test_job_goes_however_much_of_others_waits_for_longer_JOB_398_JOB_400(void)
{
    enum { OTHERS = 4000 };
    struct jobs j;
    bool bury = false;
    struct job job;
    jobs_open(&j);
    struct uuid id = told(&j), stays = told(&j);
    for (uint32_t i = 0; i < OTHERS; i++)
        TEST_CHECK(fresh_do(&j.fresh, j.at_us, put_other, &stays) == OK);
    TEST_CHECK(jobs_cancel(&j, &j.client, &id, NULL) == OK);
    jobs_pass(&j, 31 * JOBS_DAY_US);
    jobs_sweep(&j);
    TEST_CHECK(jobs_find(&j, &id, &job) == OK); /* somebody is to be told of it */
    TEST_CHECK(fresh_do(&j.fresh, j.at_us, relay_all, &bury) == OK);
    TEST_CHECK(jobs_rows(&j, TABLE_OUTBOX) == OTHERS);
    jobs_pass(&j, 2 * JOBS_DAY_US);
    jobs_sweep(&j);
    TEST_CHECK(jobs_find(&j, &id, &job) == ERR_NOT_FOUND && jobs_rows(&j, TABLE_OUTBOX) == OTHERS);
    TEST_CHECK(fresh_do(&j.fresh, j.at_us, forget_others, &stays) == OK);
    jobs_close(&j);
}

static void test_job_with_very_many_attempts_goes_as_well(void)
{
    struct jobs j;
    struct job_claimed claimed;
    jobs_open(&j);
    j.retry_max = JOB_ATTEMPTS_MAX;
    j.base_us = j.most_us = 0;
    struct jobs_held held = jobs_in(&j, JOB_FAILED);
    for (uint32_t attempt = 2; attempt <= 100; attempt++) { /* 400 events: more than go at one time */
        TEST_CHECK(jobs_retry(&j, &j.client, &held.id, NULL) == OK && jobs_claim_one(&j, &claimed) == OK);
        TEST_CHECK(claimed.attempt == attempt && jobs_begin(&j, &held.id, claimed.fence) == OK);
        struct job_finish end = jobs_end_of(&j, &held.id, claimed.fence, JOB_FAIL);
        TEST_CHECK(jobs_finish(&j, &end, NULL) == OK);
    }
    TEST_CHECK(jobs_rows(&j, TABLE_REPORTS) == 100 && jobs_rows(&j, TABLE_EVENTS) == 401);
    jobs_pass(&j, 31 * JOBS_DAY_US);
    jobs_sweep(&j);
    TEST_CHECK(jobs_rows(&j, TABLE_REPORTS) == 0 && jobs_rows(&j, TABLE_EVENTS) == 0);
    TEST_CHECK(jobs_rows(&j, TABLE_JOBS) == 0);
    jobs_close(&j);
}

TEST_LIST
= {
    {"job: the table has 10 of the 49 pairs (JOB-210..JOB-258, JOB-456)",
     test_job_table_has_these_10_of_49_pairs_JOB_210_JOB_258_JOB_456},
    {"job: a move that isn't in the table writes nothing (JOB-210..JOB-258)",
     test_job_move_refuses_what_is_not_in_the_table_and_writes_nothing_JOB_210_JOB_258},
    {"job: a move that is refused is told of with both states (JOB-324)",
     test_job_move_that_is_refused_is_told_of_with_both_states_JOB_324},
    {"job: no command makes a move that isn't in the table (JOB-210..JOB-258, JOB-268, JOB-456)",
     test_job_commands_refuse_what_is_not_in_the_table_and_write_nothing_JOB_210_JOB_258},
    {"job: seven states (JOB-200..JOB-209, JOB-016)", test_job_states_are_these_seven_JOB_200_JOB_209},
    {"job: kinds have the ids that they always had", test_job_kinds_have_the_ids_that_they_always_had},
    {"job: names of events (AMB-J-42)", test_job_events_have_these_names_AMB_J_42},
    {"job: which failures are retryable (AMB-J-66)", test_job_failures_say_whether_a_retry_may_help_AMB_J_66},
    {"job: events tell the whole of it (JOB-014, JOB-015, JOB-208, JOB-291, JOB-390, JOB-393)",
     test_job_events_tell_the_whole_of_it_JOB_014_JOB_015_JOB_390_JOB_393},
    {"job: times grow whatever the clock says (JOB-016, AMB-J-41)",
     test_job_times_grow_whatever_the_clock_says_JOB_016_AMB_J_41},
    {"job: events never change (JOB-017)", test_job_events_never_change_JOB_017_JOB_286},
    {"job: event ids are all different (AMB-J-41)", test_job_event_ids_are_all_different_AMB_J_41},
    {"job: an event as clients see it (JOB-032, JOB-393)", test_job_event_as_clients_see_it_JOB_032_JOB_393},
    {"job: EMIT_EVENT tells of one more (AMB-J-01)",
     test_job_emit_event_tells_of_one_more_and_stores_none_AMB_J_01},
    {"job: those who asked are told (JOB-080)", test_job_tells_those_who_asked_JOB_080_O1},
    {"job: goes with all of it after 30 days (JOB-387, JOB-391, JOB-395, JOB-398..JOB-400)",
     test_job_goes_with_all_of_it_after_30_days_JOB_387_JOB_391_JOB_395_JOB_398_JOB_400},
    {"job: goes after 30 days though the clock was ahead once (JOB-398, AMB-J-37)",
     test_job_goes_after_30_days_though_the_clock_was_ahead_once_JOB_398_AMB_J_37},
    {"job: stays for 30 days though the clock was behind once (JOB-398)",
     test_job_stays_for_30_days_though_the_clock_was_behind_once_JOB_398},
    {"job: stays for 30 days from its end on (JOB-398)", test_job_stays_for_30_days_from_its_end_on_JOB_398},
    {"job: its key goes with it (AMB-J-29)", test_job_key_is_free_when_the_job_has_gone_AMB_J_29},
    {"job: a retry starts the 30 days again (AMB-J-10)", test_job_retry_starts_the_30_days_again_AMB_J_10},
    {"job: stays while somebody is to be told (O2)", test_job_stays_while_somebody_is_to_be_told_O2},
    {"job: what was given up goes along",
     test_job_takes_along_what_was_given_up_however_much_of_others_lies_between},
    {"job: goes however much of others waits for longer (JOB-398..JOB-400)",
     test_job_goes_however_much_of_others_waits_for_longer_JOB_398_JOB_400},
    {"job: with very many attempts goes as well", test_job_with_very_many_attempts_goes_as_well},
    {NULL, NULL},
};
