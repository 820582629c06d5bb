/* Leases: who gets which job, until when, and whose word counts. */
#include "acutest.h"

#include <stdio.h>

#include "store/counter.h"
#include "store/batch.h"
#include "tests/store/jobs.h"

static void refused(struct jobs *j, enum error got, enum error expected, uint64_t sum)
{
    TEST_CHECK_(got == expected, "%s, not %s", error_name(got), error_name(expected));
    TEST_CHECK_(jobs_sum(j) == sum, "something is written");
}

static void texts_of(struct jobs *j, const struct uuid *id, char worker[JOB_WORKER_MAX + 1],
                     char stage[JOB_STAGE_MAX + 1])
{
    struct view *view = view_open_outside(j->fresh.store, 0);
    struct job job;
    TEST_CHECK(job_read(&view->txn, id, &job) == OK);
    snprintf(worker, JOB_WORKER_MAX + 1, "%.*s", (int)job.worker.size, (const char *)job.worker.bytes);
    snprintf(stage, JOB_STAGE_MAX + 1, "%.*s", (int)job.stage.size, (const char *)job.stage.bytes);
    view_close(view);
}

/* ---- claims ---- */

static void test_claim_gives_a_lease_of_30_s_JOB_202_JOB_219_JOB_281_JOB_287(void)
{
    struct jobs j;
    struct job_claimed claimed;
    char worker[JOB_WORKER_MAX + 1], stage[JOB_STAGE_MAX + 1];
    jobs_open(&j);
    TEST_CHECK(jobs_claim_one(&j, NULL) == ERR_NOT_FOUND);
    struct uuid id = jobs_new(&j);
    jobs_pass(&j, 5 * JOBS_SECOND_US);
    TEST_CHECK(jobs_claim_one(&j, &claimed) == OK);
    TEST_CHECK(uuid_equal(&claimed.id, &id) && uuid_equal(&claimed.client, &j.client));
    TEST_CHECK(claimed.fence == 1 && claimed.attempt == 1 && claimed.kind == WORK_KIND_SUCCESS_FAST);
    TEST_CHECK(claimed.lease_us == j.steady_us + 30 * JOBS_SECOND_US && claimed.claimed_us == j.at_us);
    TEST_CHECK(claimed.queued_us == JOBS_AT_US + 1000);
    struct job job = jobs_look(&j, &id);
    TEST_CHECK(job.state == JOB_ASSIGNED && job.fence == 1 && job.owner == j.start);
    TEST_CHECK(job.lease_us == claimed.lease_us && job.due_us == claimed.lease_us);
    texts_of(&j, &id, worker, stage);
    TEST_CHECK(strcmp(worker, "worker-1") == 0 && stage[0] == '\0');
    TEST_CHECK(jobs_rows(&j, TABLE_JOB_QUEUE) == 0 && jobs_count(&j, JOB_ASSIGNED) == 1);
    JOBS_STORY_IS(&j, &id, "created queued assigned");
    TEST_CHECK(jobs_claim_one(&j, NULL) == ERR_NOT_FOUND);
    jobs_close(&j);
}

static void test_claim_takes_the_order_of_creation_over_all_clients_JOB_277_JOB_278_JOB_285(void)
{
    enum { JOBS = 24 };
    struct jobs j;
    struct uuid ids[JOBS];
    struct job_claimed claimed[JOB_CLAIM_MAX];
    uint32_t at = 0, count;
    jobs_open(&j);
    for (uint32_t i = 0; i < JOBS; i++) {
        struct job_submit c = jobs_wish(&j, (uint8_t)(1 + fresh_below(13)));
        c.client = fresh_below(2) ? j.client : fresh_below(2) ? j.other : fresh_uuid();
        j.at_us = JOBS_AT_US + fresh_below(3) * JOBS_SECOND_US;
        TEST_CHECK(jobs_submit(&j, &c, NULL) == OK);
        ids[i] = c.id;
    }
    fresh_reopen(&j.fresh);
    while (at < JOBS) {
        struct job_claim c = jobs_claim_of(&j, (uint16_t)(1 + fresh_below(5)));
        TEST_CHECK(jobs_claim(&j, &c, claimed, &count) == OK && count > 0 && count <= c.most);
        for (uint32_t i = 0; i < count; i++, at++) {
            TEST_CHECK(uuid_equal(&claimed[i].id, &ids[at]));
            TEST_CHECK(claimed[i].fence == at + 1);
        }
    }
    TEST_CHECK(jobs_claim_one(&j, NULL) == ERR_NOT_FOUND);
    jobs_close(&j);
}

/* Of the same priority as they came, a higher one before. */
static void test_claim_takes_priorities_first(void)
{
    static const uint8_t priorities[] = {0, 3, 0, 9, 3, 9}, order[] = {3, 5, 1, 4, 0, 2};
    struct jobs j;
    struct uuid ids[sizeof(priorities)];
    struct job_claimed claimed;
    jobs_open(&j);
    for (size_t i = 0; i < sizeof(priorities); i++) {
        struct job_submit c = jobs_wish(&j, 1);
        c.priority = priorities[i];
        ids[i] = c.id;
        TEST_CHECK(jobs_submit(&j, &c, NULL) == OK);
    }
    for (size_t i = 0; i < sizeof(order); i++)
        TEST_CHECK(jobs_claim_one(&j, &claimed) == OK && uuid_equal(&claimed.id, &ids[order[i]]));
    jobs_close(&j);
}

static void test_claim_may_start_them_at_once_JOB_203_JOB_227(void)
{
    struct jobs j;
    struct job_claimed claimed[JOB_CLAIM_MAX];
    uint32_t count;
    jobs_open(&j);
    struct uuid id = jobs_new(&j);
    struct job_claim c = jobs_claim_of(&j, 1);
    c.running = 1;
    TEST_CHECK(jobs_claim(&j, &c, claimed, &count) == OK && count == 1);
    struct job job = jobs_look(&j, &id);
    TEST_CHECK(job.state == JOB_RUNNING && job.started_us == job.updated_us && claimed[0].running == 1);
    TEST_CHECK(claimed[0].claimed_us == job.started_us - 1000);
    JOBS_STORY_IS(&j, &id, "created queued assigned running");
    jobs_close(&j);
}

static void test_claim_holds_back_when_enough_are_running_JOB_284_AMB_J_49(void)
{
    struct jobs j;
    struct job_claimed claimed[JOB_CLAIM_MAX];
    uint32_t count;
    jobs_open(&j);
    j.running_max = 3;
    for (uint32_t i = 0; i < 5; i++)
        jobs_new(&j);
    struct job_claim c = jobs_claim_of(&j, 5);
    TEST_CHECK(jobs_claim(&j, &c, claimed, &count) == OK && count == 3);
    TEST_CHECK(jobs_claim_one(&j, NULL) == ERR_NOT_FOUND);
    TEST_CHECK(jobs_begin(&j, &claimed[0].id, claimed[0].fence) == OK);
    TEST_CHECK(jobs_claim_one(&j, NULL) == ERR_NOT_FOUND); /* RUNNING counts as well */
    struct job_finish end = jobs_end_of(&j, &claimed[0].id, claimed[0].fence, JOB_SUCCEED);
    TEST_CHECK(jobs_finish(&j, &end, NULL) == OK);
    TEST_CHECK(jobs_claim_one(&j, NULL) == OK && jobs_claim_one(&j, NULL) == ERR_NOT_FOUND);
    jobs_close(&j);
}

static void test_claim_refuses_what_is_no_claim(void)
{
    struct jobs j;
    struct job_claimed claimed[JOB_CLAIM_MAX];
    uint32_t count;
    jobs_open(&j);
    jobs_new(&j);
    struct job_claim c = jobs_claim_of(&j, 0);
    TEST_CHECK(jobs_claim(&j, &c, claimed, &count) == ERR_INVALID);
    c = jobs_claim_of(&j, 1);
    c.lease_us = 0;
    TEST_CHECK(jobs_claim(&j, &c, claimed, &count) == ERR_INVALID);
    c = jobs_claim_of(&j, 1);
    c.lane = LANE_NONE;
    TEST_CHECK(jobs_claim(&j, &c, claimed, &count) == ERR_INVALID);
    c.lane = LANE_PAUSED_WORK;
    TEST_CHECK(jobs_claim(&j, &c, claimed, &count) == ERR_INVALID);
    for (uint32_t i = 0; i < 60; i++)
        jobs_new(&j);
    c = jobs_claim_of(&j, UINT16_MAX);
    TEST_CHECK(jobs_claim(&j, &c, claimed, &count) == OK && count == JOB_CLAIM_MAX);
    jobs_close(&j);
}

/* ---- fences ---- */

static void test_fence_only_grows_J4(void)
{
    struct jobs j;
    struct job_claimed claimed;
    struct job_fired fired;
    uint64_t last = 0;
    jobs_open(&j);
    struct uuid id = jobs_new(&j);
    for (uint32_t i = 0; i < 6; i++) {
        TEST_CHECK(jobs_claim_one(&j, &claimed) == OK && claimed.fence > last);
        uint64_t old = last;
        last = claimed.fence;
        uint64_t sum = jobs_sum(&j);
        for (uint64_t fence = 0; fence <= last + 1; fence++) {
            struct job_finish end = jobs_end_of(&j, &id, fence, JOB_SUCCEED);
            if (fence == last)
                continue;
            refused(&j, jobs_begin(&j, &id, fence), ERR_FENCED, sum);
            refused(&j, jobs_beat(&j, &id, fence), ERR_FENCED, sum);
            refused(&j, jobs_finish(&j, &end, NULL), ERR_FENCED, sum);
        }
        TEST_CHECK(old < last);
        fresh_reopen(&j.fresh);
        j.start++;
        TEST_CHECK(jobs_reap(&j, &id, &fired) == OK && fired.event == JOB_REQUEUE);
    }
    jobs_close(&j);
}

/* Both run; who came second counts, who came first learns it from every word it says. */
static void test_two_may_run_and_one_counts_J3_J4_JOB_282(void)
{
    struct jobs j;
    struct job_claimed first, second;
    jobs_open(&j);
    struct uuid id = jobs_new(&j);
    TEST_CHECK(jobs_claim_one(&j, &first) == OK);
    jobs_pass(&j, JOBS_LEASE_US);
    TEST_CHECK(jobs_fire(&j, NULL, 0) == 1);
    TEST_CHECK(jobs_claim_one(&j, &second) == OK && jobs_begin(&j, &id, second.fence) == OK);
    struct job_finish late = jobs_end_of(&j, &id, first.fence, JOB_FAIL),
                      good = jobs_end_of(&j, &id, second.fence, JOB_SUCCEED);
    uint64_t sum = jobs_sum(&j);
    refused(&j, jobs_begin(&j, &id, first.fence), ERR_FENCED, sum);
    refused(&j, jobs_finish(&j, &late, NULL), ERR_FENCED, sum);
    TEST_CHECK(jobs_finish(&j, &good, NULL) == OK);
    sum = jobs_sum(&j);
    refused(&j, jobs_finish(&j, &late, NULL), ERR_FENCED, sum);
    JOBS_STORY_IS(&j, &id, "created queued assigned requeued assigned running succeeded");
    jobs_close(&j);
}

/* ---- starting ---- */

static void test_start_once_and_say_so_twice_JOB_227(void)
{
    struct jobs j;
    jobs_open(&j);
    struct jobs_held held = jobs_in(&j, JOB_ASSIGNED);
    jobs_pass(&j, JOBS_SECOND_US);
    TEST_CHECK(jobs_begin(&j, &held.id, held.fence) == OK);
    struct job job = jobs_look(&j, &held.id);
    TEST_CHECK(job.state == JOB_RUNNING && job.started_us == j.at_us);
    TEST_CHECK(job.lease_us == j.steady_us + JOBS_LEASE_US);
    uint64_t sum = jobs_sum(&j);
    jobs_pass(&j, JOBS_SECOND_US);
    refused(&j, jobs_begin(&j, &held.id, held.fence), OK, sum);
    struct uuid nobody = fresh_uuid();
    refused(&j, jobs_begin(&j, &nobody, 1), ERR_NOT_FOUND, sum);
    jobs_close(&j);
}

/* ---- heartbeats ---- */

static void test_heartbeat_extends_the_lease_JOB_283_JOB_288_AMB_J_38(void)
{
    struct jobs j;
    jobs_open(&j);
    struct jobs_held held = jobs_in(&j, JOB_RUNNING);
    for (uint32_t i = 0; i < 20; i++) { /* 100 s: far beyond the first lease, every 5 s */
        jobs_pass(&j, 5 * JOBS_SECOND_US);
        TEST_CHECK(jobs_fire(&j, NULL, 0) <= 1);
        TEST_CHECK(jobs_beat(&j, &held.id, held.fence) == OK);
        TEST_CHECK(jobs_look(&j, &held.id).lease_us == j.steady_us + JOBS_LEASE_US);
    }
    j.lease_us = JOBS_SECOND_US; /* never shorter */
    uint64_t until = jobs_look(&j, &held.id).lease_us;
    TEST_CHECK(jobs_beat(&j, &held.id, held.fence) == OK && jobs_look(&j, &held.id).lease_us == until);
    JOBS_STORY_IS(&j, &held.id, "created queued assigned running");
    TEST_CHECK(jobs_look(&j, &held.id).updated_us < j.at_us); /* not a change of state */
    jobs_close(&j);
}

static void test_heartbeat_tells_progress_and_stage(void)
{
    struct jobs j;
    char worker[JOB_WORKER_MAX + 1], stage[JOB_STAGE_MAX + 1];
    jobs_open(&j);
    struct jobs_held held = jobs_in(&j, JOB_RUNNING);
    struct job_heartbeat c = {.id = held.id,
                              .client = j.client,
                              .fence = held.fence,
                              .steady_us = j.steady_us,
                              .lease_us = j.lease_us,
                              .progress = 250,
                              .stage = span_text("resizing")};
    TEST_CHECK(batch_one(j.fresh.store, &job_heartbeat_class, j.at_us, &c, NULL) == OK);
    TEST_CHECK(jobs_look(&j, &held.id).progress == 250);
    c.progress = 1001; /* as it was */
    c.stage = span_of(NULL, 0);
    TEST_CHECK(batch_one(j.fresh.store, &job_heartbeat_class, j.at_us, &c, NULL) == OK);
    TEST_CHECK(jobs_look(&j, &held.id).progress == 250);
    texts_of(&j, &held.id, worker, stage);
    TEST_CHECK(strcmp(worker, "worker-1") == 0 && strcmp(stage, "resizing") == 0);
    c.client = j.other;
    TEST_CHECK(batch_one(j.fresh.store, &job_heartbeat_class, j.at_us, &c, NULL) == ERR_NOT_FOUND);
    jobs_close(&j);
}

/* What is read before a write lies in the map: the texts must be whole behind every command that keeps them. */
static void test_texts_stay_whole_through_every_command(void)
{
    static const char name[] = "worker-with-a-name-of-sixty-four-bytes-abcdefghijklmnopqrstuvwxy";
    struct jobs j;
    struct job_claimed claimed[JOB_CLAIM_MAX];
    char worker[JOB_WORKER_MAX + 1], stage[JOB_STAGE_MAX + 1], text[JOB_STAGE_MAX + 1];
    uint32_t count;
    jobs_open(&j);
    TEST_ASSERT(strlen(name) == JOB_WORKER_MAX);
    memset(text, 's', JOB_STAGE_MAX);
    text[JOB_STAGE_MAX] = '\0';
    for (uint32_t i = 0; i < 40; i++)
        jobs_new(&j);
    struct job_claim c = jobs_claim_of(&j, 40);
    c.worker = span_text(name);
    TEST_CHECK(jobs_claim(&j, &c, claimed, &count) == OK && count == 40);
    for (uint32_t i = 0; i < count; i++) {
        struct job_heartbeat beat = {.id = claimed[i].id,
                                     .fence = claimed[i].fence,
                                     .steady_us = j.steady_us,
                                     .lease_us = j.lease_us,
                                     .stage = span_text(text)};
        TEST_CHECK(batch_one(j.fresh.store, &job_heartbeat_class, j.at_us, &beat, NULL) == OK);
        TEST_CHECK(jobs_begin(&j, &claimed[i].id, claimed[i].fence) == OK);
        struct job_finish end = jobs_end_of(&j, &claimed[i].id, claimed[i].fence, JOB_SUCCEED);
        if (i % 2)
            TEST_CHECK(jobs_finish(&j, &end, NULL) == OK);
        else
            TEST_CHECK(jobs_cancel(&j, &j.client, &claimed[i].id, NULL) == OK);
        texts_of(&j, &claimed[i].id, worker, stage);
        TEST_CHECK(strcmp(worker, name) == 0 && strcmp(stage, text) == 0);
    }
    jobs_close(&j);
}

/* ---- when it is over ---- */

static void test_lease_is_over_at_its_end_and_not_before_J5_JOB_282_JOB_316(void)
{
    for (uint8_t state = JOB_ASSIGNED; state <= JOB_RUNNING; state++) {
        struct jobs j;
        jobs_open(&j);
        struct jobs_held held = jobs_in(&j, state);
        struct job_finish end = jobs_end_of(&j, &held.id, held.fence, JOB_SUCCEED);
        jobs_pass(&j, JOBS_LEASE_US - 1);
        TEST_CHECK(jobs_fire(&j, NULL, 0) == 0);
        TEST_CHECK(jobs_look(&j, &held.id).state == state);
        jobs_pass(&j, 1);
        end.steady_us = j.steady_us; /* nobody has come by yet, and still it is too late */
        uint64_t sum = jobs_sum(&j);
        refused(&j, jobs_begin(&j, &held.id, held.fence), ERR_EXPIRED, sum);
        refused(&j, jobs_beat(&j, &held.id, held.fence), ERR_EXPIRED, sum);
        refused(&j, jobs_finish(&j, &end, NULL), ERR_EXPIRED, sum);
        TEST_CHECK(jobs_fire(&j, NULL, 0) == 1);
        sum = jobs_sum(&j);
        refused(&j, jobs_begin(&j, &held.id, held.fence), ERR_FENCED, sum);
        refused(&j, jobs_beat(&j, &held.id, held.fence), ERR_FENCED, sum);
        refused(&j, jobs_finish(&j, &end, NULL), ERR_FENCED, sum);
        jobs_close(&j);
    }
}

/* ---- ends ---- */

static void
test_finish_writes_state_and_report_in_one_JOB_018_JOB_204_JOB_205_JOB_235_JOB_293_JOB_394_JOB_397(void)
{
    static const enum job_event events[] = {JOB_SUCCEED, JOB_FAIL, JOB_TIME_OUT};
    for (size_t i = 0; i < 3; i++) {
        struct jobs j;
        struct job_finished finished;
        struct report report;
        jobs_open(&j);
        struct jobs_held held = jobs_in(&j, JOB_RUNNING);
        uint64_t started = jobs_look(&j, &held.id).started_us;
        TEST_CHECK(jobs_report(&j, &held.id, &report) == ERR_NOT_FOUND);
        jobs_pass(&j, 7 * JOBS_SECOND_US);
        struct job_finish c = jobs_end_of(&j, &held.id, held.fence, events[i]);
        TEST_CHECK(jobs_finish(&j, &c, &finished) == OK && finished.made);
        struct job job = jobs_look(&j, &held.id);
        uint8_t state = events[i] == JOB_SUCCEED ? JOB_SUCCEEDED : JOB_FAILED;
        TEST_CHECK(job.state == state && finished.state == state && finished.attempt == 1);
        TEST_CHECK(job.finished_us == j.at_us && job.started_us == started && job.due_us == 0);
        TEST_CHECK(job.lease_us == 0 && job.owner == 0 && job.failure == c.failure);
        TEST_CHECK(job.progress == (state == JOB_SUCCEEDED ? 1000 : 0) && job.retryable == c.retryable);
        TEST_CHECK(jobs_report(&j, &held.id, &report) == OK);
        TEST_CHECK(report.outcome == state && report.failure == c.failure && report.events == 5);
        TEST_CHECK(report.started_us == started && report.finished_us == j.at_us &&
                   report.fence == held.fence);
        TEST_CHECK(finished.started_us == started && finished.finished_us == j.at_us);
        TEST_CHECK(jobs_count(&j, JOB_RUNNING) == 0 && jobs_count(&j, state) == 1);
        jobs_close(&j);
    }
}

static void test_finish_tells_why_JOB_037_JOB_038_JOB_276_JOB_335_JOB_445_AMB_J_36_AMB_J_66(void)
{
    struct jobs j;
    jobs_open(&j);
    struct jobs_held held = jobs_in(&j, JOB_RUNNING);
    struct job_finish c = jobs_end_of(&j, &held.id, held.fence, JOB_SUCCEED);
    c.outputs = 64;
    c.outputs_bytes = 16384;
    TEST_CHECK(jobs_finish(&j, &c, NULL) == OK);
    TEST_CHECK(strcmp(jobs_payload(&j, &held.id, 5),
                      "{\"scenario\":\"SUCCESS_FAST\",\"outputs\":{\"count\":64,\"bytes\":16384}}") == 0);
    held = jobs_in(&j, JOB_RUNNING);
    c = jobs_end_of(&j, &held.id, held.fence, JOB_FAIL);
    c.progress = 500;
    c.retryable = 0;
    TEST_CHECK(jobs_finish(&j, &c, NULL) == OK && jobs_look(&j, &held.id).progress == 500);
    TEST_CHECK(strcmp(jobs_payload(&j, &held.id, 5),
                      "{\"scenario\":\"SUCCESS_FAST\",\"reason\":\"SIMULATED_FAILURE\",\"reason_code\":"
                      "\"RFA_INTERNAL\",\"retryable\":false,\"progress\":0.5}") == 0);
    TEST_MSG("%s", jobs_payload(&j, &held.id, 5));
    j.retry_max = 0;
    held = jobs_in(&j, JOB_RUNNING);
    c = jobs_end_of(&j, &held.id, held.fence, JOB_TIME_OUT);
    TEST_CHECK(jobs_finish(&j, &c, NULL) == OK);
    TEST_CHECK(strcmp(jobs_payload(&j, &held.id, 5),
                      "{\"scenario\":\"SUCCESS_FAST\",\"reason\":\"TIMEOUT\",\"reason_code\":"
                      "\"RFA_EXEC_TIMEOUT\",\"retryable\":true,\"final\":true,\"retries_exhausted\":true}") ==
               0);
    JOBS_STORY_IS(&j, &held.id, "created queued assigned running timed_out");
    jobs_close(&j);
}

static void test_finish_refuses_what_is_no_end(void)
{
    struct jobs j;
    jobs_open(&j);
    struct jobs_held held = jobs_in(&j, JOB_RUNNING);
    uint64_t sum = jobs_sum(&j);
    for (uint8_t event = 0; event <= JOB_EVENT_COUNT; event++)
        for (uint32_t failure = 0; failure <= JOB_FAILURE_COUNT; failure++) {
            struct job_finish c = jobs_end_of(&j, &held.id, held.fence, JOB_FAIL);
            bool good = event == JOB_SUCCEED, bad = event == JOB_FAIL || event == JOB_TIME_OUT;
            c.event = event;
            c.failure = (uint8_t)failure;
            if ((good && failure == JOB_NO_FAILURE) ||
                (bad && failure != JOB_NO_FAILURE && failure < JOB_FAILURE_COUNT))
                continue;
            refused(&j, jobs_finish(&j, &c, NULL), ERR_INVALID, sum);
        }
    struct job_finish c = jobs_end_of(&j, &held.id, held.fence, JOB_SUCCEED);
    c.client = j.other;
    refused(&j, jobs_finish(&j, &c, NULL), ERR_NOT_FOUND, sum);
    struct jobs_held assigned =
        jobs_in(&j, JOB_ASSIGNED); /* its worker hasn't started it (JOB-228, JOB-229) */
    sum = jobs_sum(&j);
    c = jobs_end_of(&j, &assigned.id, assigned.fence, JOB_SUCCEED);
    refused(&j, jobs_finish(&j, &c, NULL), ERR_FENCED, sum);
    c = jobs_end_of(&j, &assigned.id, assigned.fence, JOB_FAIL);
    refused(&j, jobs_finish(&j, &c, NULL), ERR_FENCED, sum);
    jobs_close(&j);
}

/* ---- the same word again ---- */

static void test_finish_said_twice_is_written_once_J3(void)
{
    struct jobs j;
    struct job_finished first, again;
    jobs_open(&j);
    struct jobs_held held = jobs_in(&j, JOB_RUNNING);
    j.retry_max = 1; /* there is one attempt more */
    struct job_finish c = jobs_end_of(&j, &held.id, held.fence, JOB_FAIL);
    TEST_CHECK(jobs_finish(&j, &c, &first) == OK && first.made && !first.attempt_last);
    fresh_reopen(&j.fresh);
    uint64_t sum = jobs_sum(&j);
    jobs_pass(&j, 40 * JOBS_SECOND_US);
    c.steady_us = j.steady_us;
    refused(&j, jobs_finish(&j, &c, &again), OK, sum);
    TEST_CHECK(again.made == 0);
    again.made = 1;
    TEST_CHECK(memcmp(&first, &again, sizeof(first)) == 0);
    struct job_finish others[6];
    for (size_t i = 0; i < 6; i++)
        others[i] = c;
    others[0].message = span_text("it broke otherwise");
    others[1].result = span_text("{}");
    others[2].retryable = 0;
    others[3].event = JOB_TIME_OUT;
    others[4].progress = 1;
    others[5].outputs = 1;
    for (size_t i = 0; i < 6; i++)
        refused(&j, jobs_finish(&j, &others[i], NULL), ERR_FENCED, sum);
    jobs_close(&j);
}

/* The answer was lost, and the job has gone on meanwhile: by its client, by itself, to another worker, to its end. */
static void test_finish_said_again_after_a_retry_J3(void)
{
    for (uint32_t automatic = 0; automatic < 2; automatic++) {
        struct jobs j;
        struct job_finished first, again;
        struct job_claimed claimed;
        jobs_open(&j);
        struct jobs_held held = jobs_in(&j, JOB_RUNNING);
        struct job_finish c = jobs_end_of(&j, &held.id, held.fence, JOB_FAIL);
        struct job_finish other = c;
        c.auto_retry = (uint8_t)automatic;
        other.message = span_text("another word");
        TEST_CHECK(jobs_finish(&j, &c, &first) == OK && first.made && first.state == JOB_FAILED);
        if (!automatic)
            TEST_CHECK(jobs_retry(&j, &j.client, &held.id, NULL) == OK);
        for (uint32_t step = 0; step < 5; step++) {
            struct job_finish end;
            uint64_t sum = jobs_sum(&j);
            refused(&j, jobs_finish(&j, &c, &again), OK, sum);
            again.made = 1;
            TEST_CHECK_(memcmp(&first, &again, sizeof(first)) == 0, "step %u", step);
            refused(&j, jobs_finish(&j, &other, NULL), ERR_FENCED, sum);
            switch (step) {
            case 0:
                jobs_pass(&j, 5 * JOBS_SECOND_US);
                jobs_fire(&j, NULL, 0);
                TEST_CHECK(jobs_claim_one(&j, &claimed) == OK);
                break;
            case 1:
                TEST_CHECK(jobs_begin(&j, &held.id, claimed.fence) == OK);
                break;
            case 2:
                end = jobs_end_of(&j, &held.id, claimed.fence, JOB_FAIL);
                TEST_CHECK(jobs_finish(&j, &end, NULL) == OK);
                break;
            case 3:
                TEST_CHECK(jobs_retry(&j, &j.client, &held.id, NULL) == OK);
                TEST_CHECK(jobs_cancel(&j, &j.client, &held.id, NULL) == OK);
                break;
            default:
                break;
            }
        }
        jobs_close(&j);
    }
}

static void test_finish_after_a_cancel_is_refused_JOB_325_AMB_J_33(void)
{
    struct jobs j;
    jobs_open(&j);
    for (uint8_t state = JOB_ASSIGNED; state <= JOB_RUNNING; state++) {
        struct jobs_held held = jobs_in(&j, state);
        TEST_CHECK(jobs_cancel(&j, &j.client, &held.id, NULL) == OK);
        struct job_finish c = jobs_end_of(&j, &held.id, held.fence, JOB_SUCCEED);
        uint64_t sum = jobs_sum(&j);
        refused(&j, jobs_beat(&j, &held.id, held.fence), ERR_CONFLICT, sum); /* that is how it learns of it */
        refused(&j, jobs_begin(&j, &held.id, held.fence), ERR_CONFLICT, sum);
        refused(&j, jobs_finish(&j, &c, NULL), ERR_CONFLICT, sum);
    }
    jobs_close(&j);
}

/* ---- retried by itself ---- */

static void test_finish_retries_by_itself_when_it_may_AMB_J_35(void)
{
    struct jobs j;
    struct job_finished finished;
    struct job_claimed claimed;
    struct report report;
    jobs_open(&j);
    j.retry_max = 2;
    struct uuid id = jobs_new(&j);
    for (uint32_t attempt = 1; attempt <= 3; attempt++) {
        TEST_CHECK(jobs_claim_one(&j, &claimed) == OK && jobs_begin(&j, &id, claimed.fence) == OK);
        struct job_finish c = jobs_end_of(&j, &id, claimed.fence, JOB_FAIL);
        c.auto_retry = 1;
        c.backoff_us = 2 * JOBS_SECOND_US;
        TEST_CHECK(jobs_finish(&j, &c, &finished) == OK && finished.attempt == attempt);
        TEST_CHECK(finished.attempt_last == (attempt == 3) && finished.retried == (attempt < 3));
        struct job job = jobs_look(&j, &id);
        TEST_CHECK(job.state == (attempt < 3 ? JOB_QUEUED : JOB_FAILED));
        TEST_CHECK(job.attempt == (attempt < 3 ? attempt + 1 : 3));
        TEST_CHECK(jobs_report(&j, &id, &report) == (attempt < 3 ? ERR_NOT_FOUND : OK));
        TEST_CHECK(jobs_claim_one(&j, NULL) == ERR_NOT_FOUND);
        jobs_pass(&j, 2 * JOBS_SECOND_US);
        TEST_CHECK(jobs_fire(&j, NULL, 0) == (attempt < 3));
    }
    TEST_CHECK(jobs_rows(&j, TABLE_REPORTS) == 3);
    JOBS_STORY_IS(&j, &id,
                  "created queued assigned running failed retried assigned running failed retried assigned "
                  "running failed");
    struct jobs_held held = jobs_in(&j, JOB_RUNNING);
    struct job_finish c = jobs_end_of(&j, &held.id, held.fence, JOB_FAIL);
    c.auto_retry = 1;
    c.retryable = 0; /* it wouldn't help */
    TEST_CHECK(jobs_finish(&j, &c, NULL) == OK && jobs_look(&j, &held.id).state == JOB_FAILED);
    jobs_close(&j);
}

/* Of a worker outside, who doesn't know the attempt when he says that it failed. */
static void test_finish_retries_later_with_each_attempt_JOB_272(void)
{
    struct jobs j;
    struct job_claimed claimed;
    jobs_open(&j);
    struct uuid id = jobs_new(&j);
    for (uint32_t attempt = 1; attempt <= 3; attempt++) {
        TEST_CHECK(jobs_claim_one(&j, &claimed) == OK && jobs_begin(&j, &id, claimed.fence) == OK);
        struct job_finish c = jobs_end_of(&j, &id, claimed.fence, JOB_FAIL);
        c.auto_retry = 1;
        c.base_us = 2 * JOBS_SECOND_US;
        c.most_us = 5 * JOBS_SECOND_US;
        TEST_CHECK(jobs_finish(&j, &c, NULL) == OK);
        static const uint64_t least[] = {0, 1000000, 2000000, 2500000}; /* half of 2, 4 and 5 s */
        TEST_CHECK(jobs_look(&j, &id).due_us == j.steady_us + least[attempt]);
        jobs_pass(&j, 10 * JOBS_SECOND_US);
        jobs_fire(&j, NULL, 0);
    }
    jobs_close(&j);
}

static void test_finish_retries_nothing_into_a_full_queue_AMB_J_14(void)
{
    struct jobs j;
    struct job_finished finished;
    jobs_open(&j);
    struct jobs_held held = jobs_in(&j, JOB_RUNNING), other = jobs_in(&j, JOB_RUNNING);
    struct job_finish c = jobs_end_of(&j, &held.id, held.fence, JOB_FAIL),
                      d = jobs_end_of(&j, &other.id, other.fence, JOB_FAIL);
    c.auto_retry = d.auto_retry = 1;
    c.queue_max = d.queue_max = 1;
    TEST_CHECK(jobs_finish(&j, &c, &finished) == OK && finished.retried);
    TEST_CHECK(jobs_finish(&j, &d, &finished) == OK && !finished.retried);
    TEST_CHECK(jobs_count(&j, JOB_QUEUED) == 1 && jobs_look(&j, &other.id).state == JOB_FAILED);
    TEST_CHECK(jobs_finish(&j, &c, &finished) == OK && !finished.made && finished.retried);
    TEST_CHECK(jobs_finish(&j, &d, &finished) == OK && !finished.made && !finished.retried);
    TEST_CHECK(jobs_retry(&j, &j.client, &other.id, NULL) == OK); /* its client may, when there is room */
    TEST_CHECK(jobs_finish(&j, &d, &finished) == OK && !finished.made && !finished.retried);
    jobs_close(&j);
}

/* A report as it was before it knew whether the job had gone on. */
#define OLD_REPORT_FIELDS(X)   \
    X(outcome, U8, 0, 1)       \
    X(failure, U8, 0, 1)       \
    X(retryable, U8, 0, 1)     \
    X(events, U32, 0, 1)       \
    X(started_us, TIME, 0, 1)  \
    X(finished_us, TIME, 0, 1) \
    X(fence, U64, 0, 1)        \
    X(digest, DIGEST, 0, 1)    \
    X(message, TEXT, 512, 1)   \
    X(result, JSON, JOB_RESULT_MAX, 1)
RECORD_STRUCT(old_report, OLD_REPORT_FIELDS);
#define old_report_FIELD(name, TYPE, limit, since) RECORD_FIELD(old_report, name, TYPE, limit, since)
RECORD_CLASS(old_report, OLD_REPORT_FIELDS, 1);

static enum error make_report_old(struct txn *txn, uint64_t at_us, void *context)
{
    struct key key = report_key(context, 1);
    struct report now;
    uint8_t bytes[1024];
    (void)at_us;
    TEST_ASSERT(txn_read(txn, TABLE_REPORTS, key_span(&key), &now) == OK);
#define X(name, TYPE, limit, since) .name = now.name,
    const struct old_report old = {OLD_REPORT_FIELDS(X)};
#undef X
    size_t size = value_write(txn->store->environment.seeds[TABLE_REPORTS], key_span(&key),
                              &old_report_record, &old, bytes, sizeof(bytes));
    MDB_val k = {key.size, key.bytes}, v = {size, bytes};
    TEST_ASSERT(size > 0 && mdb_put(txn->mdb, txn->store->environment.tables[TABLE_REPORTS], &k, &v, 0) == 0);
    txn->writes++;
    return OK;
}

/* A worker whose answer got lost over an upgrade says it again: the report doesn't know, and the job does. */
static void test_finish_said_again_of_a_report_of_version_1(void)
{
    struct jobs j;
    struct job_finished finished;
    jobs_open(&j);
    struct jobs_held held = jobs_in(&j, JOB_RUNNING), other = jobs_in(&j, JOB_RUNNING),
                     refused = jobs_in(&j, JOB_RUNNING), last = jobs_in(&j, JOB_RUNNING),
                     good = jobs_in(&j, JOB_RUNNING);
    struct job_finish c = jobs_end_of(&j, &held.id, held.fence, JOB_FAIL),
                      d = jobs_end_of(&j, &other.id, other.fence, JOB_FAIL),
                      by_hand = jobs_end_of(&j, &refused.id, refused.fence, JOB_FAIL),
                      for_good = jobs_end_of(&j, &last.id, last.fence, JOB_FAIL),
                      done = jobs_end_of(&j, &good.id, good.fence, JOB_SUCCEED);
    c.auto_retry = d.auto_retry = for_good.auto_retry = done.auto_retry = 1;
    c.queue_max = d.queue_max = by_hand.queue_max = 1;
    for_good.retryable = 0;
    done.retryable = 1;
    TEST_CHECK(jobs_finish(&j, &c, NULL) == OK && jobs_finish(&j, &d, NULL) == OK);
    TEST_CHECK(jobs_finish(&j, &by_hand, NULL) == OK && jobs_finish(&j, &for_good, NULL) == OK);
    TEST_CHECK(jobs_finish(&j, &done, NULL) == OK);
    TEST_CHECK(fresh_do(&j.fresh, j.at_us, make_report_old, &held.id) == OK);
    TEST_CHECK(fresh_do(&j.fresh, j.at_us, make_report_old, &other.id) == OK);
    TEST_CHECK(fresh_do(&j.fresh, j.at_us, make_report_old, &refused.id) == OK);
    TEST_CHECK(fresh_do(&j.fresh, j.at_us, make_report_old, &last.id) == OK);
    TEST_CHECK(fresh_do(&j.fresh, j.at_us, make_report_old, &good.id) == OK);
    TEST_CHECK(jobs_finish(&j, &c, &finished) == OK && !finished.made && finished.retried);
    TEST_CHECK(jobs_finish(&j, &d, &finished) == OK && !finished.made && !finished.retried);
    TEST_CHECK(jobs_retry(&j, &j.client, &refused.id, NULL) ==
               OK); /* nobody said that it goes on by itself */
    TEST_CHECK(jobs_finish(&j, &by_hand, &finished) == OK && !finished.made && !finished.retried);
    TEST_CHECK(jobs_retry(&j, &j.client, &last.id, NULL) == OK); /* it said that it never would by itself */
    TEST_CHECK(jobs_finish(&j, &for_good, &finished) == OK && !finished.made && !finished.retried);
    TEST_CHECK(jobs_finish(&j, &done, &finished) == OK && !finished.made && !finished.retried);
    jobs_close(&j);
}

/* ---- workers outside ---- */

static struct uuid new_outside(struct jobs *j, const char *kind)
{
    struct job_submit c = jobs_wish_user(j, kind);
    TEST_CHECK(jobs_submit(j, &c, NULL) == OK);
    return c.id;
}

static struct job_claim claim_outside(struct jobs *j, uint16_t most)
{
    struct job_claim c = jobs_claim_of(j, most);
    c.lane = LANE_OUTSIDE;
    c.client = j->client;
    c.owner = 0;
    c.running = 1;
    return c;
}

static void test_outside_gets_its_own_kinds_in_order_JOB_278(void)
{
    static const char *const kinds[] = {"x.mail", "x.resize", "x.a", "x.zip"};
    enum { JOBS = 30 };
    struct jobs j;
    struct uuid ids[JOBS];
    struct job_claimed claimed[JOB_CLAIM_MAX];
    uint32_t count;
    jobs_open(&j);
    for (uint32_t i = 0; i < JOBS; i++)
        ids[i] = new_outside(&j, kinds[fresh_below(4)]);
    struct uuid of_server = jobs_new(&j);
    TEST_CHECK(jobs_claim_one(&j, &claimed[0]) == OK && uuid_equal(&claimed[0].id, &of_server));
    TEST_CHECK(jobs_claim_one(&j, NULL) == ERR_NOT_FOUND); /* not for the server's workers */
    struct job_claim c = claim_outside(&j, 7);
    c.client = j.other;
    TEST_CHECK(jobs_claim(&j, &c, claimed, &count) == ERR_NOT_FOUND); /* nor for other clients */
    for (uint32_t at = 0; at < JOBS; at += count) {
        c = claim_outside(&j, 7);
        TEST_CHECK(jobs_claim(&j, &c, claimed, &count) == OK && count > 0);
        for (uint32_t i = 0; i < count; i++) {
            struct job job = jobs_look(&j, &claimed[i].id);
            TEST_CHECK(uuid_equal(&claimed[i].id, &ids[at + i]) && claimed[i].kind == WORK_KIND_USER);
            TEST_CHECK(job.state == JOB_RUNNING && job.owner == 0);
        }
    }
    jobs_close(&j);
}

static void test_outside_gets_the_kinds_it_names(void)
{
    struct jobs j;
    struct job_claimed claimed[JOB_CLAIM_MAX];
    uint32_t count;
    jobs_open(&j);
    struct uuid a = new_outside(&j, "x.a"), b = new_outside(&j, "x.b"), d = new_outside(&j, "x.d");
    struct uuid works[] = {job_work_id(j.fresh.store, WORK_KIND_USER, span_text("x.d")),
                           job_work_id(j.fresh.store, WORK_KIND_USER, span_text("x.none")),
                           job_work_id(j.fresh.store, WORK_KIND_USER, span_text("x.a"))};
    struct job_claim c = claim_outside(&j, 5);
    c.works = span_of(works, sizeof(works));
    TEST_CHECK(jobs_claim(&j, &c, claimed, &count) == OK && count == 2);
    TEST_CHECK(uuid_equal(&claimed[0].id, &a) && uuid_equal(&claimed[1].id, &d));
    TEST_CHECK(jobs_claim(&j, &c, claimed, &count) == ERR_NOT_FOUND);
    c.works = span_of(NULL, 0);
    TEST_CHECK(jobs_claim(&j, &c, claimed, &count) == OK && count == 1 && uuid_equal(&claimed[0].id, &b));
    jobs_close(&j);
}

static void test_outside_priorities_go_across_kinds(void)
{
    struct jobs j;
    struct uuid ids[6];
    static const uint8_t order[] = {4, 5, 2, 3, 0, 1};
    struct job_claimed claimed[JOB_CLAIM_MAX];
    uint32_t count;
    jobs_open(&j);
    for (uint32_t i = 0; i < 6; i++) {
        struct job_submit c = jobs_wish_user(&j, i % 2 ? "x.a" : "x.b");
        c.priority = (uint8_t)(i / 2);
        ids[i] = c.id;
        TEST_CHECK(jobs_submit(&j, &c, NULL) == OK);
    }
    struct job_claim c = claim_outside(&j, 6);
    TEST_CHECK(jobs_claim(&j, &c, claimed, &count) == OK && count == 6);
    for (uint32_t i = 0; i < 6; i++)
        TEST_CHECK(uuid_equal(&claimed[i].id, &ids[order[i]]));
    jobs_close(&j);
}

/* Many commands in one commit each. */
static void in_one_commit(struct jobs *j, const struct command_class *class, struct span *bytes,
                          struct batch_item *items, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        items[i] = (struct batch_item){.class = class, .at_us = j->at_us, .bytes = bytes[i]};
    TEST_CHECK(batch_run(j->fresh.store, items, count) == OK);
}

enum { AT_ONCE = 100, COMMAND_ROOM = 1024 };

static struct batch_item at_once[AT_ONCE];
static uint8_t command_bytes[AT_ONCE][COMMAND_ROOM];
static struct span commands[AT_ONCE];

/* One job of each of these kinds, by their numbers. */
static void new_of_kinds(struct jobs *j, const uint32_t *numbers, struct uuid *ids, uint32_t count)
{
    char kind[16];
    for (uint32_t i = 0; i < count; i++) {
        snprintf(kind, sizeof(kind), "x.kind%u", numbers[i]);
        struct job_submit c = jobs_wish_user(j, kind);
        ids[numbers[i]] = c.id;
        commands[i] =
            span_of(command_bytes[i], record_encode(&job_submit_record, &c, command_bytes[i], COMMAND_ROOM));
        TEST_ASSERT(commands[i].size > 0);
    }
    in_one_commit(j, &job_submit_class, commands, at_once, count);
    for (uint32_t i = 0; i < count; i++)
        TEST_CHECK(at_once[i].answer.error == OK);
}

/* So many kinds with one job each, in the order of their numbers. */
static void new_kinds(struct jobs *j, struct uuid *ids, uint32_t count)
{
    uint32_t numbers[AT_ONCE];
    for (uint32_t from = 0; from < count; from += AT_ONCE) {
        uint32_t some = count - from < AT_ONCE ? count - from : AT_ONCE;
        for (uint32_t i = 0; i < some; i++)
            numbers[i] = from + i;
        new_of_kinds(j, numbers, ids, some);
    }
}

/* So many claims of one job each; the numbers of their kinds. */
static void claims_of_all(struct jobs *j, const struct uuid *ids, uint32_t kinds, uint32_t *ret_numbers,
                          uint32_t count)
{
    struct job_claim c = claim_outside(j, 1);
    struct job_claimed claimed;
    for (uint32_t i = 0; i < count; i++)
        commands[i] =
            span_of(command_bytes[0], record_encode(&job_claim_record, &c, command_bytes[0], COMMAND_ROOM));
    in_one_commit(j, &job_claim_class, commands, at_once, count);
    for (uint32_t i = 0; i < count; i++) {
        TEST_ASSERT(at_once[i].answer.error == OK && at_once[i].answer.size == sizeof(claimed));
        memcpy(&claimed, at_once[i].answer.bytes, sizeof(claimed));
        ret_numbers[i] = 0;
        while (ret_numbers[i] + 1 < kinds && !uuid_equal(&ids[ret_numbers[i]], &claimed.id))
            ret_numbers[i]++;
        TEST_CHECK(uuid_equal(&ids[ret_numbers[i]], &claimed.id));
    }
}

/* More kinds than a claim of all looks at: those that are named come all the same. */
static void test_outside_with_very_many_kinds(void)
{
    static struct uuid ids[JOB_CLAIM_WORKS_MAX + 10];
    struct jobs j;
    struct job_claimed claimed[JOB_CLAIM_MAX];
    uint32_t count, all = 0;
    jobs_open(&j);
    new_kinds(&j, ids, JOB_CLAIM_WORKS_MAX + 10);
    struct uuid work = job_work_id(j.fresh.store, WORK_KIND_USER, span_text("x.kind73"));
    struct job_claim c = claim_outside(&j, 1);
    c.works = span_of(&work, sizeof(work));
    TEST_CHECK(jobs_claim(&j, &c, claimed, &count) == OK && count == 1);
    c = claim_outside(&j, JOB_CLAIM_MAX);
    while (jobs_claim(&j, &c, claimed, &count) == OK)
        all += count;
    TEST_CHECK(all == JOB_CLAIM_WORKS_MAX + 9);
    jobs_close(&j);
}

/* Each job that is claimed is followed by another one of its kind: the oldest comes first, of all kinds. */
static void test_outside_none_of_many_kinds_starves_JOB_278(void)
{
    enum { KINDS = AT_ONCE, CLAIMS = 1000 };
    struct jobs j;
    struct uuid ids[KINDS];
    uint32_t numbers[KINDS];
    jobs_open(&j);
    new_kinds(&j, ids, KINDS);
    for (uint32_t claims = 0; claims < CLAIMS; claims += KINDS) {
        claims_of_all(&j, ids, KINDS, numbers, KINDS);
        for (uint32_t i = 0; i < KINDS; i++)
            TEST_CHECK_(numbers[i] == i, "kind %u, not %u", numbers[i], i);
        new_of_kinds(&j, numbers, ids, KINDS);
    }
    jobs_close(&j);
}

/* Of more than a claim chooses from each is served, although those that were always come again. */
static void test_outside_none_of_too_many_kinds_starves(void)
{
    enum { KINDS = JOB_CLAIM_WORKS_MAX + 200 };
    static struct uuid ids[KINDS];
    static bool seen[KINDS];
    struct jobs j;
    uint32_t numbers[AT_ONCE], served = 0;
    jobs_open(&j);
    new_kinds(&j, ids, KINDS);
    for (uint32_t claims = 0; served < KINDS && claims < 2 * KINDS; claims += AT_ONCE) {
        claims_of_all(&j, ids, KINDS, numbers, AT_ONCE);
        for (uint32_t i = 0; i < AT_ONCE; i++) {
            served += !seen[numbers[i]];
            seen[numbers[i]] = true;
        }
        new_of_kinds(&j, numbers, ids, AT_ONCE);
    }
    TEST_CHECK_(served == KINDS, "%u of %u kinds", served, (unsigned)KINDS);
    jobs_close(&j);
}

/* ---- numbers at their ends ---- */

static void test_lease_beyond_all_time_never_ends(void)
{
    struct jobs j;
    struct job_claimed claimed;
    jobs_open(&j);
    j.lease_us = UINT64_MAX;
    jobs_new(&j);
    TEST_CHECK(jobs_claim_one(&j, &claimed) == OK && claimed.lease_us == UINT64_MAX);
    TEST_CHECK(jobs_begin(&j, &claimed.id, claimed.fence) == OK);
    j.steady_us = UINT64_MAX - 1;
    TEST_CHECK(jobs_beat(&j, &claimed.id, claimed.fence) == OK);
    TEST_CHECK(jobs_fire(&j, NULL, 0) == 0);
    struct job_finish c = jobs_end_of(&j, &claimed.id, claimed.fence, JOB_FAIL);
    c.kept_us = UINT64_MAX;
    c.auto_retry = 1;
    c.backoff_us = UINT64_MAX;
    TEST_CHECK(jobs_finish(&j, &c, NULL) == OK && jobs_look(&j, &claimed.id).due_us == UINT64_MAX);
    struct jobs_held held = jobs_in(&j, JOB_RUNNING);
    c = jobs_end_of(&j, &held.id, held.fence, JOB_SUCCEED);
    c.kept_us = UINT64_MAX;
    TEST_CHECK(jobs_finish(&j, &c, NULL) == OK && jobs_look(&j, &held.id).retire_us == UINT64_MAX);
    jobs_close(&j);
}

/* ---- stores of format 1 ---- */

enum { OLD_LEASES = 40 };

struct old_leases {
    struct jobs_held
        held[OLD_LEASES]; /* the last one has ended meanwhile, and its timer was left where it was */
    struct job jobs[OLD_LEASES];
};

static struct due_entry old_lease(const struct job *job)
{
    return (struct due_entry){.queue = DUE_JOB_LEASE,
                              .shard = job->id.bytes[sizeof(job->id.bytes) - 1] % JOB_SHARDS,
                              .due_us = job->due_us,
                              .id = job->id,
                              .row = {.kind = job->state, .value = job->owner}};
}

static enum error as_format_1(struct txn *txn, uint64_t at_us, void *context)
{
    struct old_leases *old = context;
    (void)at_us;
    for (uint32_t i = 0; i < OLD_LEASES; i++) {
        struct due_entry entry = old_lease(&old->jobs[i]);
        if (i + 1 < OLD_LEASES)
            due_clear(txn, DUE_JOB_LEASE, job_shard(DUE_JOB_LEASE, &entry.id), entry.due_us, &entry.id);
        due_set(txn, &entry);
    }
    struct due_entry nobodys = old_lease(&old->jobs[0]);
    nobodys.id = fresh_uuid();
    nobodys.shard = JOB_SHARDS - 1;
    due_set(txn, &nobodys);
    return OK;
}

static void make_old_leases(struct jobs *j, struct old_leases *old)
{
    for (uint32_t i = 0; i < OLD_LEASES; i++) {
        old->held[i] = jobs_in(j, i % 2 ? JOB_RUNNING : JOB_ASSIGNED);
        old->jobs[i] = jobs_look(j, &old->held[i].id);
    }
    struct jobs_held *last = &old->held[OLD_LEASES - 1];
    struct job_finish end = jobs_end_of(j, &last->id, last->fence, JOB_SUCCEED);
    TEST_CHECK(jobs_finish(j, &end, NULL) == OK);
    TEST_CHECK(fresh_do(&j->fresh, j->at_us, as_format_1, old) == OK);
}

/* Where it stood, and where it is looked for. */
static uint32_t timers_of(struct jobs *j, const struct job *job)
{
    const uint16_t shards[] = {JOB_SHARDS - 1, job_shard(DUE_JOB_LEASE, &job->id)};
    uint32_t there = 0;
    struct view *view = view_open_outside(j->fresh.store, 0);
    TEST_ASSERT(view != NULL);
    for (uint32_t i = 0; i < 2; i++) {
        struct key key = due_key(DUE_JOB_LEASE, shards[i], job->due_us, &job->id);
        struct due row;
        there |= txn_read(&view->txn, TABLE_DUE, key_span(&key), &row) == OK ? 1u << i : 0;
    }
    view_close(view);
    return there;
}

static enum error to_last_shard(struct txn *txn, uint64_t at_us, void *context)
{
    struct job *const *jobs = context; /* of the second one it stays where it is, too */
    for (uint32_t i = 0; i < 2; i++) {
        struct due_entry entry = old_lease(jobs[i]);
        entry.shard = JOB_SHARDS - 1;
        due_set(txn, &entry);
    }
    (void)at_us;
    due_clear(txn, DUE_JOB_LEASE, job_shard(DUE_JOB_LEASE, &jobs[0]->id), jobs[0]->due_us, &jobs[0]->id);
    return OK;
}

static enum error gather(struct txn *txn, uint64_t at_us, void *context)
{
    (void)at_us;
    (void)context;
    return job_lease_gather(txn);
}

/* That of a job which can't be read comes along, and so the job ends when it can be; one that has another there already goes. */
static void test_leases_of_format_1_whose_job_cannot_be_read_are_gathered(void)
{
    enum { OLD = 1, NOW = 2 };
    struct job_fired fired[4];
    struct jobs j;
    jobs_open(&j);
    struct jobs_held torn = jobs_in(&j, JOB_RUNNING), twice = jobs_in(&j, JOB_RUNNING);
    struct job first = jobs_look(&j, &torn.id), second = jobs_look(&j, &twice.id);
    struct job *both[] = {&first, &second};
    TEST_CHECK(fresh_do(&j.fresh, j.at_us, to_last_shard, both) == OK);
    fresh_flip(&j.fresh, TABLE_JOBS, key_of_uuid(&torn.id));
    TEST_CHECK(timers_of(&j, &first) == OLD && timers_of(&j, &second) == (OLD | NOW));
    TEST_CHECK(fresh_do(&j.fresh, j.at_us, gather, NULL) == OK);
    TEST_CHECK(timers_of(&j, &first) == NOW && timers_of(&j, &second) == NOW);
    fresh_flip(&j.fresh, TABLE_JOBS, key_of_uuid(&torn.id));
    jobs_pass(&j, JOBS_LEASE_US + JOBS_SECOND_US);
    TEST_CHECK(jobs_fire(&j, fired, 4) == 2);
    TEST_CHECK(jobs_look(&j, &torn.id).state == JOB_FAILED && jobs_look(&j, &twice.id).state == JOB_FAILED);
    jobs_close(&j);
}

/* They stood in all shards; `check` told of each that wasn't where it is looked for now, until it was due. */
static void test_leases_of_format_1_are_gathered_when_it_is_opened_J6(void)
{
    struct schema newer = parcel_store_schema;
    static struct old_leases old;
    struct job_fired fired[OLD_LEASES];
    char text[FRESH_TEXT];
    struct jobs j;
    newer.format = store_schema.format;
    newer.migrations = store_schema.migrations;
    newer.migrations_count = store_schema.migrations_count;
    jobs_open(&j);
    make_old_leases(&j, &old);
    TEST_CHECK(fresh_findings(&j.fresh, text) > OLD_LEASES / 2);
    j.fresh.schema = &newer;
    fresh_reopen(&j.fresh);
    TEST_CHECK(j.fresh.store->environment.format.format == 1 && fresh_findings(&j.fresh, text) == 0);
    for (uint32_t i = 0; i < OLD_LEASES - 1; i++) {
        struct due_entry entry = old_lease(&old.jobs[i]);
        entry.shard = job_shard(DUE_JOB_LEASE, &entry.id);
        struct key key = due_key(entry.queue, entry.shard, entry.due_us, &entry.id);
        struct view *view = view_open_outside(j.fresh.store, 0);
        struct due row;
        TEST_CHECK(txn_read(&view->txn, TABLE_DUE, key_span(&key), &row) == OK &&
                   row.kind == entry.row.kind && row.value == entry.row.value);
        view_close(view);
    }
    jobs_pass(&j, JOBS_LEASE_US + JOBS_SECOND_US);
    TEST_CHECK(jobs_fire(&j, fired, OLD_LEASES) == OLD_LEASES - 1);
    fresh_reopen(&j.fresh); /* of format 2 from now on */
    TEST_CHECK(j.fresh.store->environment.format.format == store_schema.format);
    jobs_close(&j);
}

TEST_LIST
= {
    {"claim: a lease of 30 s (JOB-202, JOB-219, JOB-281, JOB-287)",
     test_claim_gives_a_lease_of_30_s_JOB_202_JOB_219_JOB_281_JOB_287},
    {"claim: in the order of creation over all clients (JOB-277, JOB-278, JOB-285, AMB-J-37)",
     test_claim_takes_the_order_of_creation_over_all_clients_JOB_277_JOB_278_JOB_285},
    {"claim: priorities first", test_claim_takes_priorities_first},
    {"claim: may start them at once (JOB-203, JOB-227)", test_claim_may_start_them_at_once_JOB_203_JOB_227},
    {"claim: holds back when enough are running (JOB-284, AMB-J-49)",
     test_claim_holds_back_when_enough_are_running_JOB_284_AMB_J_49},
    {"claim: refuses what is none", test_claim_refuses_what_is_no_claim},
    {"lease: fences only grow (J4)", test_fence_only_grows_J4},
    {"lease: two may run and one counts (J3, J4, JOB-282)", test_two_may_run_and_one_counts_J3_J4_JOB_282},
    {"start: once, and told twice (JOB-227)", test_start_once_and_say_so_twice_JOB_227},
    {"heartbeat: extends the lease (JOB-283, JOB-288, AMB-J-38)",
     test_heartbeat_extends_the_lease_JOB_283_JOB_288_AMB_J_38},
    {"heartbeat: progress and stage", test_heartbeat_tells_progress_and_stage},
    {"lease: texts stay whole", test_texts_stay_whole_through_every_command},
    {"lease: over at its end and not before (J5, JOB-282, JOB-287, JOB-316)",
     test_lease_is_over_at_its_end_and_not_before_J5_JOB_282_JOB_316},
    {"finish: state and report in one (JOB-018..JOB-020, JOB-204, JOB-205, JOB-235, JOB-236, JOB-293, "
     "JOB-319, "
     "JOB-394, JOB-397)",
     test_finish_writes_state_and_report_in_one_JOB_018_JOB_204_JOB_205_JOB_235_JOB_293_JOB_394_JOB_397},
    {"finish: tells why (JOB-037, JOB-038, JOB-276, JOB-318, JOB-335, JOB-445, AMB-J-36, AMB-J-66)",
     test_finish_tells_why_JOB_037_JOB_038_JOB_276_JOB_335_JOB_445_AMB_J_36_AMB_J_66},
    {"finish: refuses what is no end", test_finish_refuses_what_is_no_end},
    {"finish: said twice, written once (J3)", test_finish_said_twice_is_written_once_J3},
    {"finish: said again after a retry (J3)", test_finish_said_again_after_a_retry_J3},
    {"finish: refused after a cancel (JOB-325, AMB-J-33)",
     test_finish_after_a_cancel_is_refused_JOB_325_AMB_J_33},
    {"finish: retried by itself (AMB-J-35)", test_finish_retries_by_itself_when_it_may_AMB_J_35},
    {"finish: retries later with each attempt (JOB-272)",
     test_finish_retries_later_with_each_attempt_JOB_272},
    {"finish: retries nothing into a full queue (AMB-J-14)",
     test_finish_retries_nothing_into_a_full_queue_AMB_J_14},
    {"finish: said again of a report of version 1", test_finish_said_again_of_a_report_of_version_1},
    {"outside: its own kinds in order (JOB-278)", test_outside_gets_its_own_kinds_in_order_JOB_278},
    {"outside: the kinds it names", test_outside_gets_the_kinds_it_names},
    {"outside: priorities go across kinds", test_outside_priorities_go_across_kinds},
    {"outside: very many kinds", test_outside_with_very_many_kinds},
    {"outside: none of many kinds starves (JOB-278)", test_outside_none_of_many_kinds_starves_JOB_278},
    {"outside: none of too many kinds starves", test_outside_none_of_too_many_kinds_starves},
    {"lease: numbers at their ends", test_lease_beyond_all_time_never_ends},
    {"leases of format 1 are gathered when it is opened",
     test_leases_of_format_1_are_gathered_when_it_is_opened_J6},
    {"leases of format 1 whose job can't be read are gathered",
     test_leases_of_format_1_whose_job_cannot_be_read_are_gathered},
    {NULL, NULL},
};
