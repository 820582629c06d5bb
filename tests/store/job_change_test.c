/* What clients change of their jobs: cancel and retry, in every state, once and again. */
#include "acutest.h"

#include <stdio.h>

#include "store/job_change.h"
#include "tests/store/jobs.h"

static const struct uuid anybody = {{0}};

/* ---- cancel ---- */

static void
test_cancel_in_every_state_JOB_083_JOB_084_JOB_095_JOB_206_JOB_321_AMB_J_18_AMB_J_32_AMB_J_33(void)
{
    struct jobs j;
    jobs_open(&j);
    for (uint8_t state = 0; state < JOB_STATE_COUNT; state++) {
        struct jobs_held held = jobs_in(&j, state);
        struct job_changed changed, again;
        struct report report;
        struct job before = jobs_look(&j, &held.id);
        uint64_t sum = jobs_sum(&j), due = jobs_rows(&j, TABLE_DUE);
        jobs_pass(&j, 3 * JOBS_SECOND_US);
        TEST_CHECK(jobs_cancel(&j, &j.client, &held.id, &changed) == OK);
        struct job job = jobs_look(&j, &held.id);
        TEST_CHECK(changed.from == state && changed.state == job.state && changed.attempt == 1);
        TEST_CHECK(changed.updated_us == job.updated_us && uuid_equal(&changed.job_client, &j.client));
        if (job_state_final(state)) {
            TEST_CHECK(!changed.made && jobs_sum(&j) == sum && job.updated_us == before.updated_us);
            continue;
        }
        TEST_CHECK(changed.made && job.state == JOB_CANCELED && job.updated_us == j.at_us);
        TEST_CHECK(job.lease_us == 0 && job.owner == 0 && job.due_us == 0 && job.lane == LANE_NONE);
        TEST_CHECK(jobs_rows(&j, TABLE_JOB_QUEUE) == 0);
        TEST_CHECK(jobs_rows(&j, TABLE_DUE) == due + (state == JOB_QUEUED)); /* its retention, for a timer */
        bool had = state == JOB_ASSIGNED || state == JOB_RUNNING;
        TEST_CHECK(strcmp(changed.worker, had ? "worker-1" : "") == 0);
        TEST_CHECK(changed.ran_us == (state == JOB_RUNNING ? j.at_us - before.started_us : 0)); /* JOB-421 */
        TEST_CHECK(jobs_report(&j, &held.id, &report) == OK && report.outcome == JOB_CANCELED);
        TEST_CHECK(report.finished_us == j.at_us);
        TEST_CHECK(report.started_us ==
                   (state == JOB_RUNNING ? before.started_us : 0)); /* null, duration 0 */
        sum = jobs_sum(&j);
        jobs_pass(&j, 3 * JOBS_SECOND_US);
        TEST_CHECK(jobs_cancel(&j, &j.client, &held.id, &again) == OK && !again.made);
        TEST_CHECK(again.state == JOB_CANCELED && again.updated_us == changed.updated_us);
        TEST_CHECK(jobs_sum(&j) == sum);
        (void)jobs_story(&j, &held.id);
    }
    jobs_close(&j);
}

/* One that was scheduled never comes, one that was queued is never claimed, one that ran is never finished by its timer. */
static void test_cancel_takes_it_out_of_everything_JOB_216_JOB_223_JOB_230_JOB_237_AMB_J_33(void)
{
    struct jobs j;
    jobs_open(&j);
    for (uint8_t state = 0; state <= JOB_RUNNING; state++) {
        struct jobs_held held = jobs_in(&j, state);
        TEST_CHECK(jobs_cancel(&j, &j.client, &held.id, NULL) == OK);
    }
    jobs_pass(&j, JOBS_DAY_US);
    TEST_CHECK(jobs_fire(&j, NULL, 0) == 0 && jobs_claim_one(&j, NULL) == ERR_NOT_FOUND);
    TEST_CHECK(jobs_count(&j, JOB_CANCELED) == 4);
    jobs_close(&j);
}

static void test_cancel_while_it_waits_for_its_backoff(void)
{
    struct jobs j;
    struct report report;
    jobs_open(&j);
    struct jobs_held held = jobs_in(&j, JOB_FAILED);
    TEST_CHECK(jobs_retry(&j, &j.client, &held.id, NULL) == OK);
    TEST_CHECK(jobs_cancel(&j, &j.client, &held.id, NULL) == OK);
    JOBS_STORY_IS(&j, &held.id, "created queued assigned running failed retried canceled");
    TEST_CHECK(jobs_report(&j, &held.id, &report) == OK && report.outcome == JOB_CANCELED);
    TEST_CHECK(report.started_us == 0 && jobs_rows(&j, TABLE_REPORTS) == 2);
    jobs_pass(&j, JOBS_DAY_US);
    TEST_CHECK(jobs_fire(&j, NULL, 0) == 0);
    jobs_close(&j);
}

/* ---- ownership ---- */

static void test_change_of_anothers_job_is_forbidden_JOB_292_JOB_300(void)
{
    struct jobs j;
    struct uuid nobody = fresh_uuid();
    jobs_open(&j);
    for (uint8_t state = 0; state < JOB_STATE_COUNT; state++) {
        struct jobs_held held = jobs_in(&j, state);
        uint64_t sum = jobs_sum(&j);
        TEST_CHECK(jobs_cancel(&j, &j.other, &held.id, NULL) == ERR_FORBIDDEN);
        TEST_CHECK(jobs_retry(&j, &j.other, &held.id, NULL) == ERR_FORBIDDEN);
        TEST_CHECK(jobs_cancel(&j, &j.client, &nobody, NULL) == ERR_NOT_FOUND);
        TEST_CHECK(jobs_retry(&j, &j.client, &nobody, NULL) == ERR_NOT_FOUND);
        TEST_CHECK(jobs_sum(&j) == sum);
        TEST_CHECK(jobs_cancel(&j, &anybody, &held.id, NULL) == OK); /* an operator may */
    }
    jobs_close(&j);
}

/* ---- retry ---- */

static void test_retry_only_of_failed_ones_JOB_096_JOB_268_JOB_322_AMB_J_31(void)
{
    struct jobs j;
    jobs_open(&j);
    for (uint8_t state = 0; state < JOB_STATE_COUNT; state++) {
        struct jobs_held held = jobs_in(&j, state);
        struct job_changed changed;
        struct job before = jobs_look(&j, &held.id);
        uint64_t sum = jobs_sum(&j);
        TEST_CHECK(jobs_retry(&j, &j.client, &held.id, &changed) == OK && changed.from == state);
        if (state == JOB_FAILED) {
            TEST_CHECK(changed.made && changed.state == JOB_QUEUED && changed.attempt == 2);
            sum = jobs_sum(&j);
            TEST_CHECK(jobs_retry(&j, &j.client, &held.id, &changed) == OK);
            TEST_CHECK(!changed.made && changed.state == JOB_QUEUED && changed.attempt == 2);
        } else {
            TEST_CHECK(!changed.made && changed.state == state && changed.attempt == 1);
            TEST_CHECK(changed.updated_us == before.updated_us);
        }
        TEST_CHECK(jobs_sum(&j) == sum);
        TEST_CHECK(jobs_cancel(&j, &j.client, &held.id, NULL) == OK);
    }
    jobs_close(&j);
}

/* Whether its row has texts of a worker. */
static bool says_who(struct jobs *j, const struct uuid *id)
{
    struct view *view = view_open_outside(j->fresh.store, 0);
    struct job job = {.state = JOB_STATE_COUNT};
    TEST_ASSERT(view != NULL);
    TEST_CHECK(job_read(&view->txn, id, &job) == OK);
    bool says = job.worker.size > 0 || job.stage.size > 0;
    view_close(view);
    return says;
}

static void
test_retry_queues_it_as_the_next_attempt_JOB_085_JOB_086_JOB_246_JOB_270_JOB_271_AMB_J_16_AMB_J_34(void)
{
    struct jobs j;
    struct job_changed changed;
    struct job_claimed claimed;
    struct report report;
    jobs_open(&j);
    struct jobs_held held = jobs_in(&j, JOB_FAILED);
    for (uint16_t attempt = 2; attempt <= 4; attempt++) {
        jobs_pass(&j, JOBS_SECOND_US);
        TEST_CHECK(jobs_retry(&j, &j.client, &held.id, &changed) == OK && changed.attempt == attempt);
        struct job job = jobs_look(&j, &held.id);
        TEST_CHECK(job.state == JOB_QUEUED && job.attempt == attempt && job.queued_us == j.at_us);
        TEST_CHECK(job.started_us == 0 && job.finished_us == 0 && job.failure == JOB_NO_FAILURE);
        TEST_CHECK(job.retryable == 0 && job.progress == 0 && job.retire_us == 0 && !says_who(&j, &held.id));
        TEST_CHECK(jobs_report(&j, &held.id, &report) == ERR_NOT_FOUND); /* AMB-J-17 */
        jobs_pass(&j, 60 * JOBS_SECOND_US);
        TEST_CHECK(jobs_fire(&j, NULL, 0) == 1 && jobs_claim_one(&j, &claimed) == OK);
        TEST_CHECK(claimed.attempt == attempt && jobs_begin(&j, &held.id, claimed.fence) == OK);
        struct job_finish c = jobs_end_of(&j, &held.id, claimed.fence, JOB_FAIL);
        c.progress = 500;
        TEST_CHECK(jobs_finish(&j, &c, NULL) == OK);
    }
    TEST_CHECK(strcmp(jobs_payload(&j, &held.id, 6), "{\"scenario\":\"SUCCESS_FAST\",\"attempt\":2}") == 0);
    jobs_close(&j);
}

/* Its event would otherwise say that the job was assigned before its backoff was over. */
static void test_a_claim_that_is_older_than_the_end_of_a_backoff_JOB_272(void)
{
    struct jobs j;
    struct job_changed changed;
    struct job_claimed claimed;
    jobs_open(&j);
    struct jobs_held held = jobs_in(&j, JOB_FAILED);
    jobs_pass(&j, JOBS_SECOND_US);
    TEST_CHECK(jobs_retry(&j, &j.client, &held.id, &changed) == OK);
    jobs_pass(&j, 60 * JOBS_SECOND_US);
    TEST_CHECK(jobs_fire(&j, NULL, 0) == 1);
    uint64_t over_us = j.at_us;
    TEST_CHECK(jobs_look(&j, &held.id).queued_us == over_us);
    j.at_us -= 59 * JOBS_SECOND_US; /* when the claim was made */
    TEST_CHECK(jobs_claim_one(&j, &claimed) == OK && claimed.claimed_us == over_us);
    j.at_us = over_us;
    jobs_close(&j);
}

static void test_retry_is_refused_when_none_is_left_JOB_269_JOB_275_JOB_276_AMB_J_34_AMB_J_36_J7(void)
{
    struct jobs j;
    struct job_claimed claimed;
    jobs_open(&j);
    struct jobs_held held = jobs_in(&j, JOB_FAILED);
    for (uint16_t attempt = 2; attempt <= 4; attempt++) {
        TEST_CHECK(jobs_retry(&j, &j.client, &held.id, NULL) == OK);
        jobs_pass(&j, 60 * JOBS_SECOND_US);
        jobs_fire(&j, NULL, 0);
        TEST_CHECK(jobs_claim_one(&j, &claimed) == OK && jobs_begin(&j, &held.id, claimed.fence) == OK);
        struct job_finish c = jobs_end_of(&j, &held.id, claimed.fence, JOB_FAIL);
        TEST_CHECK(jobs_finish(&j, &c, NULL) == OK);
    }
    uint64_t sum = jobs_sum(&j);
    TEST_CHECK(jobs_retry(&j, &j.client, &held.id, NULL) == ERR_CONFLICT);
    TEST_CHECK(jobs_sum(&j) == sum && jobs_look(&j, &held.id).state == JOB_FAILED);
    uint32_t finals = 0;
    for (uint64_t seq = 1; seq <= jobs_look(&j, &held.id).events; seq++)
        finals +=
            strstr(jobs_payload(&j, &held.id, seq), "\"final\":true,\"retries_exhausted\":true") != NULL;
    TEST_CHECK(finals == 1 && strstr(jobs_payload(&j, &held.id, 17), "\"final\":true") != NULL);
    j.retry_max = 4; /* the limit is of today */
    TEST_CHECK(jobs_retry(&j, &j.client, &held.id, NULL) == OK);
    j.retry_max = 0;
    held = (TEST_CHECK(jobs_cancel(&j, &j.client, &held.id, NULL) == OK), jobs_in(&j, JOB_FAILED));
    TEST_CHECK(jobs_retry(&j, &j.client, &held.id, NULL) == ERR_CONFLICT);
    jobs_close(&j);
}

static void test_retry_stays_failed_when_the_queue_is_full_JOB_166_JOB_312_AMB_J_14(void)
{
    struct jobs j;
    jobs_open(&j);
    struct jobs_held held = jobs_in(&j, JOB_FAILED);
    jobs_new(&j);
    j.queue_max = 1;
    uint64_t sum = jobs_sum(&j);
    TEST_CHECK(jobs_retry(&j, &j.client, &held.id, NULL) == ERR_QUEUE_FULL && jobs_sum(&j) == sum);
    j.retry_max = 0; /* that none is left says more than that the queue is full */
    TEST_CHECK(jobs_retry(&j, &j.client, &held.id, NULL) == ERR_CONFLICT);
    j.queue_max = 2;
    j.retry_max = 3;
    TEST_CHECK(jobs_retry(&j, &j.client, &held.id, NULL) == OK);
    jobs_close(&j);
}

/* ---- reports of attempts ---- */

static void test_report_of_an_attempt_never_changes_JOB_021_AMB_J_17_AMB_J_64(void)
{
    struct jobs j;
    struct job_claimed claimed;
    struct report first, now, kept;
    jobs_open(&j);
    struct jobs_held held = jobs_in(&j, JOB_FAILED);
    TEST_CHECK(jobs_report(&j, &held.id, &first) == OK);
    jobs_pass(&j, 10 * JOBS_SECOND_US);
    TEST_CHECK(jobs_retry(&j, &j.client, &held.id, NULL) == OK);
    jobs_pass(&j, 10 * JOBS_SECOND_US);
    jobs_fire(&j, NULL, 0);
    TEST_CHECK(jobs_claim_one(&j, &claimed) == OK && jobs_begin(&j, &held.id, claimed.fence) == OK);
    uint64_t started = j.at_us + 1000;
    jobs_pass(&j, 3 * JOBS_SECOND_US);
    struct job_finish c = jobs_end_of(&j, &held.id, claimed.fence, JOB_SUCCEED);
    TEST_CHECK(jobs_finish(&j, &c, NULL) == OK);
    fresh_reopen(&j.fresh);
    TEST_CHECK(jobs_report(&j, &held.id, &now) == OK && now.outcome == JOB_SUCCEEDED);
    TEST_CHECK(now.started_us == started && now.finished_us == j.at_us); /* of the latest attempt */
    TEST_CHECK(now.events == jobs_look(&j, &held.id).events && now.events > first.events);
    struct view *view = view_open_outside(j.fresh.store, 0);
    struct key key = report_key(&held.id, 1);
    TEST_CHECK(txn_read(&view->txn, TABLE_REPORTS, key_span(&key), &kept) == OK);
    view_close(view);
    kept.message = kept.result = span_of(NULL, 0);
    TEST_CHECK(memcmp(&kept, &first, sizeof(kept)) == 0);
    jobs_close(&j);
}

/* ---- backoff ---- */

static void test_backoff_doubles_up_to_its_most_JOB_272_JOB_273_JOB_274_AMB_J_35(void)
{
    static const uint64_t whole[] = {1, 2, 4, 8, 16, 32, 60, 60, 60};
    for (uint16_t i = 0; i < sizeof(whole) / sizeof(*whole); i++) {
        uint16_t attempt = (uint16_t)(i + 2);
        uint64_t w = whole[i] * JOBS_SECOND_US;
        uint64_t least = job_backoff_us(attempt, JOBS_SECOND_US, 60 * JOBS_SECOND_US, 0);
        uint64_t most = job_backoff_us(attempt, JOBS_SECOND_US, 60 * JOBS_SECOND_US, UINT32_MAX);
        uint64_t half = job_backoff_us(attempt, JOBS_SECOND_US, 60 * JOBS_SECOND_US, 1u << 31);
        TEST_CHECK(least == w / 2 && most < w && most >= w - 1 - w / 1000000 && half == w / 4 * 3);
    }
    TEST_CHECK(job_backoff_us(5, 250, 1000000, 0) == 1000); /* the base scales it, the most caps it */
    TEST_CHECK(job_backoff_us(3, 7, 13, 0) == 6 && job_backoff_us(3, 7, 14, 0) == 7);
    TEST_CHECK(job_backoff_us(2, 100, 10, 0) == 5);
    TEST_CHECK(job_backoff_us(2, 0, 60, UINT32_MAX) == 0 && job_backoff_us(9, 60, 0, UINT32_MAX) == 0);
    TEST_CHECK(job_backoff_us(UINT16_MAX, UINT64_MAX, UINT64_MAX, UINT32_MAX) >= UINT64_MAX / 2);
    TEST_CHECK(job_backoff_us(UINT16_MAX, 1, UINT64_MAX, 0) == UINT64_MAX / 2);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < 10000; i++) { /* spread over the window, and not the same for two */
        uint64_t us = job_backoff_us(4, JOBS_SECOND_US, 60 * JOBS_SECOND_US, (uint32_t)fresh_random());
        TEST_CHECK(us >= 2 * JOBS_SECOND_US && us < 4 * JOBS_SECOND_US);
        sum += us / 10000;
    }
    TEST_CHECK(sum > 2950000 && sum < 3050000);
}

/* It is QUEUED at once, may be claimed from its time on and not before, and keeps its place meanwhile. */
static void test_backoff_delays_the_claim_and_not_the_place_JOB_272_AMB_J_35_AMB_J_37(void)
{
    struct jobs j;
    struct job_claimed claimed;
    jobs_open(&j);
    struct jobs_held first = jobs_in(&j, JOB_FAILED);
    struct uuid second = jobs_new(&j), third = jobs_new(&j), fourth = jobs_new(&j);
    TEST_CHECK(jobs_retry(&j, &j.client, &first.id, NULL) == OK);
    uint64_t wait = job_backoff_us(2, j.base_us, j.most_us, 1u << 31);
    TEST_CHECK(jobs_look(&j, &first.id).due_us == j.steady_us + wait && wait == 750000);
    TEST_CHECK(jobs_count(&j, JOB_QUEUED) == 4);
    TEST_CHECK(jobs_claim_one(&j, &claimed) == OK && uuid_equal(&claimed.id, &second));
    jobs_pass(&j, wait - 1);
    TEST_CHECK(jobs_fire(&j, NULL, 0) == 0);
    TEST_CHECK(jobs_claim_one(&j, &claimed) == OK && uuid_equal(&claimed.id, &third));
    jobs_pass(&j, 1);
    struct job_fired fired;
    TEST_CHECK(jobs_fire(&j, &fired, 1) == 1 && fired.event == JOB_EVENT_COUNT && fired.from == JOB_QUEUED);
    TEST_CHECK(jobs_claim_one(&j, &claimed) == OK &&
               uuid_equal(&claimed.id, &first.id)); /* before the fourth */
    TEST_CHECK(jobs_claim_one(&j, &claimed) == OK && uuid_equal(&claimed.id, &fourth));
    jobs_close(&j);
}

static void test_backoff_outlives_a_restart_JOB_285(void)
{
    struct jobs j;
    jobs_open(&j);
    struct jobs_held held = jobs_in(&j, JOB_FAILED);
    TEST_CHECK(jobs_retry(&j, &j.client, &held.id, NULL) == OK);
    fresh_reopen(&j.fresh);
    TEST_CHECK(jobs_fire(&j, NULL, 0) == 0);
    jobs_pass(&j, JOBS_SECOND_US);
    TEST_CHECK(jobs_fire(&j, NULL, 0) == 1 && jobs_claim_one(&j, NULL) == OK);
    jobs_close(&j);
}

TEST_LIST
= {
    {"cancel: in every state (JOB-083, JOB-084, JOB-095, JOB-206, JOB-321, AMB-J-18, AMB-J-32, AMB-J-33)",
     test_cancel_in_every_state_JOB_083_JOB_084_JOB_095_JOB_206_JOB_321_AMB_J_18_AMB_J_32_AMB_J_33},
    {"cancel: takes it out of everything (JOB-216, JOB-223, JOB-230, JOB-237, AMB-J-33)",
     test_cancel_takes_it_out_of_everything_JOB_216_JOB_223_JOB_230_JOB_237_AMB_J_33},
    {"cancel: while it waits for its backoff", test_cancel_while_it_waits_for_its_backoff},
    {"change: of another's job is forbidden (JOB-292, JOB-300)",
     test_change_of_anothers_job_is_forbidden_JOB_292_JOB_300},
    {"retry: only of failed ones (JOB-096, JOB-268, JOB-322, AMB-J-31)",
     test_retry_only_of_failed_ones_JOB_096_JOB_268_JOB_322_AMB_J_31},
    {"retry: the next attempt (JOB-085, JOB-086, JOB-246, JOB-270, JOB-271, AMB-J-16, AMB-J-17, AMB-J-34)",
     test_retry_queues_it_as_the_next_attempt_JOB_085_JOB_086_JOB_246_JOB_270_JOB_271_AMB_J_16_AMB_J_34},
    {"a claim that is older than the end of a backoff (JOB-272)",
     test_a_claim_that_is_older_than_the_end_of_a_backoff_JOB_272},
    {"retry: refused when none is left (JOB-269, JOB-275, JOB-276, AMB-J-34, AMB-J-36, J7)",
     test_retry_is_refused_when_none_is_left_JOB_269_JOB_275_JOB_276_AMB_J_34_AMB_J_36_J7},
    {"retry: a full queue leaves it FAILED (JOB-312, AMB-J-14)",
     test_retry_stays_failed_when_the_queue_is_full_JOB_166_JOB_312_AMB_J_14},
    {"report: of an attempt never changes (JOB-021, AMB-J-17, AMB-J-64)",
     test_report_of_an_attempt_never_changes_JOB_021_AMB_J_17_AMB_J_64},
    {"backoff: doubles up to its most (JOB-272..JOB-274, AMB-J-35)",
     test_backoff_doubles_up_to_its_most_JOB_272_JOB_273_JOB_274_AMB_J_35},
    {"backoff: delays the claim and not the place (JOB-272, AMB-J-35, AMB-J-37)",
     test_backoff_delays_the_claim_and_not_the_place_JOB_272_AMB_J_35_AMB_J_37},
    {"backoff: outlives a restart (JOB-285)", test_backoff_outlives_a_restart_JOB_285},
    {NULL, NULL},
};
