/* What happens to jobs by themselves: deferred ones are queued, leases end, claims of an earlier start are given back; and what
 * is damaged is in nobody's way. */
#include "acutest.h"

#include <stdio.h>

#include "store/counter.h"
#include "store/outbox.h"
#include "tests/store/jobs.h"

enum { SHARD = 3 }; /* one of those that have leases, too */

static struct uuid in_shard(uint16_t shard)
{
    struct uuid id = fresh_uuid();
    id.bytes[15] = (uint8_t)shard;
    return id;
}

static struct uuid deferred(struct jobs *j, uint64_t at_us)
{
    struct job_submit c = jobs_wish_at(j, at_us);
    c.id = in_shard(SHARD);
    TEST_CHECK(jobs_submit(j, &c, NULL) == OK);
    return c.id;
}

/* One shard once: how many it answered of. */
static enum error fire(struct jobs *j, uint16_t shard, uint16_t most, struct job_fired ret[JOB_FIRE_MAX],
                       uint32_t *ret_count)
{
    struct answer answer;
    const struct job_fire c = {.shard = shard,
                               .wall_us = j->at_us,
                               .steady_us = j->steady_us,
                               .grace_us = j->grace_us,
                               .first_fence = j->fresh.store->first_fence,
                               .start = j->start,
                               .queue_max = j->queue_max,
                               .retry_max = j->retry_max,
                               .kept_us = j->kept_us,
                               .most = most};
    enum error e = batch_one(j->fresh.store, &job_fire_class, j->at_us, &c, &answer);
    *ret_count = 0;
    if (e)
        return e;
    memcpy(ret, answer.bytes, answer.size);
    *ret_count = (uint32_t)(answer.size / sizeof(*ret));
    return OK;
}

/* ---- whom a timer wakes ---- */

static bool is_woken(const struct txn *txn, uint32_t topic)
{
    return txn->wakes[topic / 64] >> topic % 64 & 1;
}

struct waking {
    struct jobs *j;
    struct job_submit submit;
    struct uuid failed;
};

static enum error submit_and_look(struct txn *txn, uint64_t at_us, void *context)
{
    const struct waking *w = context;
    const uint32_t topic = JOB_TOPIC_SHARD(job_shard(DUE_JOB_TIME, &w->submit.id));
    uint8_t bytes[256];
    struct answer answer = {.bytes = bytes};
    TEST_CHECK(job_submit_class.apply(txn, at_us, &w->submit, &answer) == OK);
    TEST_CHECK(is_woken(txn, topic) == (w->submit.execution_us > at_us));
    return OK;
}

static enum error retry_and_look(struct txn *txn, uint64_t at_us, void *context)
{
    const struct waking *w = context;
    const uint32_t topic = JOB_TOPIC_SHARD(job_shard(DUE_JOB_BACKOFF, &w->failed));
    struct job_texts texts;
    struct job job;
    TEST_CHECK(job_open(txn, &w->failed, &job, &texts) == OK);
    TEST_CHECK(job_retry_now(txn, &job, at_us, w->j->steady_us, JOBS_SECOND_US) == OK &&
               is_woken(txn, topic));
    job_write(txn, &job);
    return OK;
}

/* Whoever looks after its shard sleeps until the next one that it knows of, which may be far later. */
static void test_a_timer_wakes_its_shard_JOB_266(void)
{
    struct jobs j;
    jobs_open(&j);
    struct waking w = {
        .j = &j, .submit = jobs_wish_at(&j, j.at_us + JOBS_SECOND_US), .failed = jobs_in(&j, JOB_FAILED).id};
    TEST_CHECK(fresh_do(&j.fresh, j.at_us, submit_and_look, &w) == OK);
    w.submit = jobs_wish(&j, 1);
    TEST_CHECK(fresh_do(&j.fresh, j.at_us, submit_and_look, &w) == OK);
    TEST_CHECK(fresh_do(&j.fresh, j.at_us, retry_and_look, &w) == OK);
    jobs_close(&j);
}

/* ---- deferred jobs ---- */

static void test_deferred_is_never_early_and_never_forgotten_JOB_211_JOB_259_JOB_261_JOB_262_JOB_266(void)
{
    enum { JOBS = 150 };
    struct jobs j;
    struct uuid ids[JOBS];
    uint32_t queued = 0;
    jobs_open(&j);
    for (uint32_t i = 0; i < JOBS; i++) {
        struct job_submit c = jobs_wish_at(&j, j.at_us + (1 + fresh_below(20)) * JOBS_SECOND_US);
        TEST_CHECK(jobs_submit(&j, &c, NULL) == OK);
        ids[i] = c.id;
    }
    while (queued < JOBS) {
        jobs_pass(&j, fresh_below(3) ? fresh_below(900000) : 1);
        queued += jobs_fire(&j, NULL, 0);
        for (uint32_t i = 0; i < JOBS; i++) {
            struct job job = jobs_look(&j, &ids[i]);
            TEST_CHECK(job.state == (job.execution_us <= j.at_us ? JOB_QUEUED : JOB_CREATED));
            TEST_CHECK(job.state == JOB_CREATED || job.queued_us >= job.execution_us);
        }
    }
    for (uint32_t i = 0; i < JOBS; i++)
        JOBS_STORY_IS(&j, &ids[i], "created queued");
    jobs_close(&j);
}

/* The shard's clock may be a moment ahead of the command's: what is told isn't early either. */
static void test_deferred_event_is_not_before_its_time_JOB_261(void)
{
    struct jobs j;
    struct job_fired fired[JOB_FIRE_MAX];
    uint32_t count;
    jobs_open(&j);
    struct uuid id = deferred(&j, j.at_us + 10 * JOBS_SECOND_US);
    struct job_fire c = {.shard = SHARD,
                         .wall_us = j.at_us + 10 * JOBS_SECOND_US,
                         .steady_us = j.steady_us,
                         .queue_max = 10,
                         .kept_us = 1,
                         .most = 1};
    TEST_CHECK(batch_one(j.fresh.store, &job_fire_class, j.at_us + 9 * JOBS_SECOND_US, &c, NULL) == OK);
    struct job job = jobs_look(&j, &id);
    TEST_CHECK(job.state == JOB_QUEUED && job.queued_us >= job.execution_us);
    TEST_CHECK(fire(&j, SHARD, 1, fired, &count) == OK && count == 0);
    jobs_close(&j);
}

static void test_deferred_missed_times_come_at_once_JOB_264_JOB_265(void)
{
    struct jobs j;
    struct job_fired fired[8];
    jobs_open(&j);
    struct uuid missed = deferred(&j, j.at_us + 5 * JOBS_SECOND_US),
                later = deferred(&j, j.at_us + 30 * JOBS_SECOND_US);
    jobs_pass(&j, JOBS_SECOND_US);
    TEST_CHECK(jobs_fire(&j, NULL, 0) == 0);
    fresh_reopen(&j.fresh);
    j.start++;
    jobs_pass(&j, 19 * JOBS_SECOND_US);
    TEST_CHECK(jobs_fire(&j, fired, 8) == 1 && uuid_equal(&fired[0].id, &missed));
    TEST_CHECK(fired[0].event == JOB_ENQUEUE && fired[0].from == JOB_CREATED &&
               uuid_equal(&fired[0].client, &j.client));
    TEST_CHECK(jobs_look(&j, &missed).queued_us == j.at_us);
    TEST_CHECK(jobs_look(&j, &later).state == JOB_CREATED);
    jobs_close(&j);
}

static void test_deferred_takes_the_place_of_its_creation_AMB_J_37(void)
{
    struct jobs j;
    struct job_claimed claimed;
    jobs_open(&j);
    struct uuid first = deferred(&j, j.at_us + 5 * JOBS_SECOND_US), second = jobs_new(&j);
    jobs_pass(&j, 5 * JOBS_SECOND_US);
    struct uuid third = jobs_new(&j);
    TEST_CHECK(jobs_fire(&j, NULL, 0) == 1);
    TEST_CHECK(jobs_claim_one(&j, &claimed) == OK && uuid_equal(&claimed.id, &first));
    TEST_CHECK(jobs_claim_one(&j, &claimed) == OK && uuid_equal(&claimed.id, &second));
    TEST_CHECK(jobs_claim_one(&j, &claimed) == OK && uuid_equal(&claimed.id, &third));
    jobs_close(&j);
}

static void test_deferred_waits_when_the_queue_is_full_JOB_312_JOB_315_AMB_J_14(void)
{
    struct jobs j;
    struct job_fired fired[8];
    jobs_open(&j);
    j.queue_max = 1;
    struct uuid id = deferred(&j, j.at_us + JOBS_SECOND_US), first = jobs_new(&j);
    jobs_pass(&j, JOBS_SECOND_US);
    for (uint32_t i = 0; i < 3; i++) {
        TEST_CHECK(jobs_fire(&j, fired, 8) == 1 && fired[0].event == JOB_EVENT_COUNT);
        TEST_CHECK(fired[0].postponed == (i == 0)); /* one job is told of once */
        TEST_CHECK(jobs_look(&j, &id).state == JOB_CREATED);
        JOBS_STORY_IS(&j, &id, "created");
        TEST_CHECK(jobs_fire(&j, NULL, 0) == 0); /* again in a second */
        jobs_pass(&j, JOB_FIRE_AGAIN_US);
    }
    TEST_CHECK(jobs_cancel(&j, &j.client, &first, NULL) == OK);
    TEST_CHECK(jobs_fire(&j, fired, 8) == 1 && fired[0].event == JOB_ENQUEUE && !fired[0].postponed);
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

/* Nobody can be told now: timers wait, and a claim takes the next one of whom nobody has to be told. */
static void test_all_wait_when_nobody_can_be_told(void)
{
    struct jobs j;
    struct job_claimed claimed;
    int64_t more = OUTBOX_HARD, less = -more;
    jobs_open(&j);
    struct job_submit leased = jobs_wish(&j, 1), timed = jobs_wish_at(&j, j.at_us + JOBS_SECOND_US),
                      queued = jobs_wish(&j, 1);
    leased.callback = timed.callback = queued.callback = span_text("https://a.example/");
    TEST_CHECK(jobs_submit(&j, &leased, NULL) == OK && jobs_submit(&j, &timed, NULL) == OK);
    TEST_CHECK(jobs_claim_one(&j, &claimed) == OK && jobs_submit(&j, &queued, NULL) == OK);
    struct uuid quiet = jobs_new(&j);
    TEST_CHECK(fresh_do(&j.fresh, j.at_us, fill_outboxes, &more) == OK);
    uint64_t sum = jobs_sum(&j);
    TEST_CHECK(jobs_cancel(&j, &j.client, &leased.id, NULL) == ERR_LIMIT && jobs_sum(&j) == sum);
    TEST_CHECK(jobs_begin(&j, &leased.id, claimed.fence) == ERR_LIMIT && jobs_sum(&j) == sum);
    TEST_CHECK(jobs_claim_one(&j, &claimed) == OK && uuid_equal(&claimed.id, &quiet));
    TEST_CHECK(jobs_claim_one(&j, &claimed) == ERR_LIMIT);
    jobs_pass(&j, JOBS_LEASE_US);
    TEST_CHECK(jobs_fire(&j, NULL, 0) == 3); /* and the one that is quiet is lost */
    TEST_CHECK(jobs_look(&j, &leased.id).state == JOB_ASSIGNED);
    TEST_CHECK(jobs_look(&j, &timed.id).state == JOB_CREATED);
    TEST_CHECK(fresh_do(&j.fresh, j.at_us, fill_outboxes, &less) == OK);
    jobs_pass(&j, JOB_FIRE_AGAIN_US);
    TEST_CHECK(jobs_fire(&j, NULL, 0) == 2);
    TEST_CHECK(jobs_look(&j, &leased.id).state == JOB_QUEUED && jobs_look(&j, &timed.id).state == JOB_QUEUED);
    jobs_close(&j);
}

/* A worker's end of it waits as well: the job stays RUNNING, and its word counts when it is said again. */
static void test_an_end_waits_when_nobody_can_be_told_O1(void)
{
    struct jobs j;
    struct job_claimed claimed;
    struct job_finished finished;
    int64_t more = OUTBOX_HARD, less = -more;
    jobs_open(&j);
    struct job_submit c = jobs_wish(&j, 1);
    c.callback = span_text("https://a.example/");
    TEST_CHECK(jobs_submit(&j, &c, NULL) == OK && jobs_claim_one(&j, &claimed) == OK &&
               jobs_begin(&j, &c.id, claimed.fence) == OK);
    TEST_CHECK(fresh_do(&j.fresh, j.at_us, fill_outboxes, &more) == OK);
    uint64_t sum = jobs_sum(&j);
    struct job_finish end = jobs_end_of(&j, &c.id, claimed.fence, JOB_SUCCEED);
    TEST_CHECK(jobs_finish(&j, &end, NULL) == ERR_LIMIT && jobs_sum(&j) == sum);
    TEST_CHECK(fresh_do(&j.fresh, j.at_us, fill_outboxes, &less) == OK);
    TEST_CHECK(jobs_finish(&j, &end, &finished) == OK && finished.made &&
               jobs_look(&j, &c.id).state == JOB_SUCCEEDED);
    jobs_close(&j);
}

/* ---- leases ---- */

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

static void test_lease_of_an_assigned_job_ends_in_the_queue_JOB_225_JOB_282_JOB_287_JOB_314_AMB_J_11(void)
{
    struct jobs j;
    struct job_fired fired[8];
    struct job_claimed claimed;
    jobs_open(&j);
    struct jobs_held held = jobs_in(&j, JOB_ASSIGNED);
    struct uuid behind = jobs_new(&j);
    const struct job_heartbeat beat = {.id = held.id,
                                       .fence = held.fence,
                                       .steady_us = j.steady_us,
                                       .lease_us = JOBS_LEASE_US,
                                       .progress = 500,
                                       .stage = span_text("halfway")};
    TEST_CHECK(batch_one(j.fresh.store, &job_heartbeat_class, j.at_us, &beat, NULL) == OK);
    jobs_pass(&j, JOBS_LEASE_US - 1);
    TEST_CHECK(jobs_fire(&j, fired, 8) == 0);
    jobs_pass(&j, 1);
    TEST_CHECK(jobs_fire(&j, fired, 8) == 1 && fired[0].event == JOB_REQUEUE &&
               fired[0].from == JOB_ASSIGNED);
    TEST_CHECK(uuid_equal(&fired[0].id, &held.id) && uuid_equal(&fired[0].client, &j.client) &&
               fired[0].kind == WORK_KIND_SUCCESS_FAST && fired[0].attempt == 1);
    struct job job = jobs_look(&j, &held.id);
    TEST_CHECK(job.state == JOB_QUEUED && job.attempt == 1 && job.owner == 0 && job.lease_us == 0);
    TEST_CHECK(job.progress == 0 && !says_who(&j, &held.id)); /* that was of the one that is gone */
    TEST_CHECK(strstr(jobs_payload(&j, &held.id, 4), "\"cause\":\"lease_expired\"") != NULL);
    JOBS_STORY_IS(&j, &held.id, "created queued assigned requeued");
    TEST_CHECK(jobs_claim_one(&j, &claimed) == OK && uuid_equal(&claimed.id, &held.id)); /* its place */
    TEST_CHECK(claimed.attempt == 1 && jobs_claim_one(&j, &claimed) == OK &&
               uuid_equal(&claimed.id, &behind));
    jobs_close(&j);
}

/* A server that starts while the wall clock is set back goes on where this was: nobody waits for the clock to come there. */
static void test_leases_and_backoffs_note_the_time_that_they_wait_by_D9(void)
{
    struct jobs j;
    const struct span none = {NULL, 0};
    jobs_open(&j);
    j.at_us -= 100 * JOBS_DAY_US; /* it is set back already */
    struct jobs_held held = jobs_in(&j, JOB_ASSIGNED);
    TEST_CHECK(fresh_counter(&j.fresh, COUNTER_STEADY, none) == (int64_t)j.steady_us);
    jobs_pass(&j, 5 * JOBS_SECOND_US);
    TEST_CHECK(jobs_begin(&j, &held.id, held.fence) == OK);
    TEST_CHECK(fresh_counter(&j.fresh, COUNTER_STEADY, none) == (int64_t)j.steady_us);
    jobs_pass(&j, JOBS_LEASE_US);
    TEST_CHECK(jobs_fire(&j, NULL, 0) == 1 && jobs_look(&j, &held.id).state == JOB_FAILED);
    TEST_CHECK(fresh_counter(&j.fresh, COUNTER_STEADY, none) == (int64_t)j.steady_us);
    jobs_pass(&j, 5 * JOBS_SECOND_US);
    TEST_CHECK(jobs_retry(&j, &j.client, &held.id, NULL) == OK);
    TEST_CHECK(fresh_counter(&j.fresh, COUNTER_STEADY, none) == (int64_t)j.steady_us);
    jobs_close(&j);
}

static void test_lease_of_a_running_job_ends_in_failure_JOB_236_JOB_316_AMB_J_38(void)
{
    struct jobs j;
    struct job_fired fired[8];
    struct report report;
    jobs_open(&j);
    for (uint16_t retries = 0; retries < 2; retries++) {
        j.retry_max = retries;
        struct jobs_held held = jobs_in(&j, JOB_RUNNING);
        jobs_pass(&j, JOBS_LEASE_US);
        TEST_CHECK(jobs_fire(&j, fired, 8) == 1 && fired[0].event == JOB_FAIL);
        TEST_CHECK(fired[0].ran_us > 0); /* JOB-421 */
        struct job job = jobs_look(&j, &held.id);
        TEST_CHECK(job.state == JOB_FAILED && job.failure == JOB_RUNNER_LOST && job.retryable);
        TEST_CHECK(jobs_report(&j, &held.id, &report) == OK && report.failure == JOB_RUNNER_LOST);
        TEST_CHECK(strcmp(jobs_payload(&j, &held.id, 5),
                          retries
                              ? "{\"scenario\":\"SUCCESS_FAST\",\"reason\":\"RUNNER_LOST\",\"reason_code\":"
                                "\"RFA_EXEC_WORKER_UNAVAILABLE\",\"retryable\":true}"
                              : "{\"scenario\":\"SUCCESS_FAST\",\"reason\":\"RUNNER_LOST\",\"reason_code\":"
                                "\"RFA_EXEC_WORKER_UNAVAILABLE\",\"retryable\":true,\"final\":true,"
                                "\"retries_exhausted\":true}") == 0);
        TEST_CHECK(jobs_retry(&j, &j.client, &held.id, NULL) == (retries ? OK : ERR_CONFLICT));
        (void)jobs_story(&j, &held.id);
    }
    jobs_close(&j);
}

/* By the same transaction, and only as far as somebody may retry it. */
static void test_lost_job_is_retried_by_itself_AMB_J_35_AMB_J_38_JOB_316(void)
{
    struct jobs j;
    struct job_fired fired[8];
    jobs_open(&j);
    j.auto_retry = true;
    j.retry_max = 1;
    struct jobs_held held = jobs_in(&j, JOB_RUNNING);
    jobs_pass(&j, JOBS_LEASE_US);
    TEST_CHECK(jobs_fire(&j, fired, 8) == 1 && fired[0].event == JOB_RETRY && fired[0].attempt == 1 &&
               fired[0].ran_us > 0);
    struct job job = jobs_look(&j, &held.id);
    TEST_CHECK(job.state == JOB_QUEUED && job.attempt == 2 && job.failure == JOB_NO_FAILURE);
    TEST_CHECK(job.due_us >= j.steady_us + j.base_us / 2 && job.due_us <= j.steady_us + j.base_us);
    TEST_CHECK(jobs_beat(&j, &held.id, held.fence) == ERR_FENCED);
    JOBS_STORY_IS(&j, &held.id, "created queued assigned running failed retried");
    jobs_pass(&j, j.base_us);
    TEST_CHECK(jobs_fire(&j, fired, 8) == 1 && fired[0].event == JOB_EVENT_COUNT);
    struct job_claimed claimed;
    TEST_CHECK(jobs_claim_one(&j, &claimed) == OK && claimed.attempt == 2);
    TEST_CHECK(jobs_begin(&j, &held.id, claimed.fence) == OK);
    j.start++;
    TEST_CHECK(jobs_reap(&j, &held.id, fired) == OK && fired[0].event == JOB_FAIL);
    TEST_CHECK(jobs_look(&j, &held.id).state == JOB_FAILED); /* that was the last one */
    jobs_close(&j);
}

static void test_reaped_job_is_retried_by_itself_AMB_J_35_AMB_J_38(void)
{
    struct jobs j;
    struct job_fired fired;
    jobs_open(&j);
    j.auto_retry = true;
    struct jobs_held held = jobs_in(&j, JOB_RUNNING), other = jobs_in(&j, JOB_RUNNING);
    j.start++;
    TEST_CHECK(jobs_reap(&j, &held.id, &fired) == OK && fired.event == JOB_RETRY);
    TEST_CHECK(jobs_look(&j, &held.id).state == JOB_QUEUED && jobs_look(&j, &held.id).attempt == 2);
    j.queue_max = 1; /* and that one is in it */
    TEST_CHECK(jobs_reap(&j, &other.id, &fired) == OK && fired.event == JOB_FAIL);
    TEST_CHECK(jobs_look(&j, &other.id).state == JOB_FAILED);
    jobs_close(&j);
}

/* The wall clock goes wherever it wants to. */
static void test_lease_goes_by_steady_time_alone_J5_D9(void)
{
    static const int64_t leaps[] = {3600, -3600, 315360000, -315360000, 86400};
    struct jobs j;
    jobs_open(&j);
    struct jobs_held held = jobs_in(&j, JOB_ASSIGNED);
    for (size_t i = 0; i < sizeof(leaps) / sizeof(*leaps); i++) {
        j.at_us = (uint64_t)((int64_t)j.at_us + leaps[i] * (int64_t)JOBS_SECOND_US);
        TEST_CHECK(jobs_fire(&j, NULL, 0) == 0);
        TEST_CHECK(jobs_beat(&j, &held.id, held.fence) == OK);
    }
    j.steady_us += JOBS_LEASE_US;
    TEST_CHECK(jobs_beat(&j, &held.id, held.fence) == ERR_EXPIRED && jobs_fire(&j, NULL, 0) == 1);
    (void)jobs_story(&j, &held.id);
    jobs_close(&j);
}

static void test_lease_that_was_extended_is_looked_at_again(void)
{
    struct jobs j;
    struct job_fired fired[8];
    jobs_open(&j);
    struct jobs_held held = jobs_in(&j, JOB_RUNNING);
    jobs_pass(&j, JOBS_LEASE_US - 1);
    TEST_CHECK(jobs_beat(&j, &held.id, held.fence) == OK);
    jobs_pass(&j, 1);
    TEST_CHECK(jobs_fire(&j, fired, 8) == 1 && fired[0].event == JOB_EVENT_COUNT && !fired[0].postponed);
    TEST_CHECK(jobs_look(&j, &held.id).due_us == jobs_look(&j, &held.id).lease_us);
    jobs_pass(&j, JOBS_LEASE_US - 2);
    TEST_CHECK(jobs_fire(&j, fired, 8) == 0);
    jobs_pass(&j, 1);
    TEST_CHECK(jobs_fire(&j, fired, 8) == 1 && fired[0].event == JOB_FAIL);
    jobs_close(&j);
}

/* ---- another start ---- */

static struct jobs_held outside(struct jobs *j, bool running)
{
    struct job_claimed claimed[JOB_CLAIM_MAX];
    struct job_submit s = jobs_wish_user(j, "x.mail");
    struct job_claim c = jobs_claim_of(j, 1);
    uint32_t count;
    TEST_CHECK(jobs_submit(j, &s, NULL) == OK);
    c.lane = LANE_OUTSIDE;
    c.client = j->client;
    c.owner = 0;
    c.running = running;
    TEST_CHECK(jobs_claim(j, &c, claimed, &count) == OK && count == 1);
    return (struct jobs_held){claimed[0].id, claimed[0].fence};
}

/* Workers outside live on while the server doesn't: they get a whole lease from its start on. */
static void test_lease_of_a_worker_outside_outlives_a_restart_by_a_lease_J5(void)
{
    struct jobs j;
    struct job_fired fired;
    jobs_open(&j);
    struct jobs_held held = outside(&j, true), silent = outside(&j, false);
    jobs_pass(&j, 3600 * JOBS_SECOND_US); /* down for an hour */
    fresh_reopen(&j.fresh);
    j.start++;
    j.grace_us = j.steady_us + JOBS_LEASE_US;
    uint64_t sum = jobs_sum(&j);
    TEST_CHECK(jobs_reap(&j, &held.id, &fired) == ERR_NOT_FOUND || fired.event == JOB_EVENT_COUNT);
    TEST_CHECK(jobs_sum(&j) == sum);
    TEST_CHECK(jobs_fire(&j, NULL, 0) == 2);
    TEST_CHECK(jobs_look(&j, &held.id).state == JOB_RUNNING);
    TEST_CHECK(jobs_look(&j, &silent.id).state == JOB_ASSIGNED &&
               jobs_look(&j, &silent.id).lease_us == j.grace_us);
    TEST_CHECK(jobs_beat(&j, &held.id, held.fence) == OK);
    jobs_pass(&j, JOBS_LEASE_US - 1);
    TEST_CHECK(jobs_beat(&j, &held.id, held.fence) == OK && jobs_fire(&j, NULL, 0) == 0);
    jobs_pass(&j, 1);
    TEST_CHECK(jobs_fire(&j, NULL, 0) == 2);
    TEST_CHECK(jobs_look(&j, &held.id).state == JOB_RUNNING);
    TEST_CHECK(jobs_look(&j, &silent.id).state == JOB_QUEUED);
    struct job_finish c = jobs_end_of(&j, &held.id, held.fence, JOB_SUCCEED);
    TEST_CHECK(jobs_finish(&j, &c, NULL) == OK);
    jobs_close(&j);
}

/* Nobody has looked at its timer yet: what it says counts all the same. */
static void test_lease_of_a_worker_outside_counts_before_its_timer_is_looked_at_J5(void)
{
    struct jobs j;
    jobs_open(&j);
    struct jobs_held beating = outside(&j, true), done = outside(&j, true);
    jobs_pass(&j, 3600 * JOBS_SECOND_US);
    fresh_reopen(&j.fresh);
    struct job_finish c = jobs_end_of(&j, &done.id, done.fence, JOB_SUCCEED);
    TEST_CHECK(jobs_beat(&j, &beating.id, beating.fence) == ERR_EXPIRED &&
               jobs_finish(&j, &c, NULL) == ERR_EXPIRED);
    j.start++;
    j.grace_us = j.steady_us + 1;
    TEST_CHECK(jobs_beat(&j, &beating.id, beating.fence) == OK);
    c.grace_us = j.grace_us;
    TEST_CHECK(jobs_finish(&j, &c, NULL) == OK && jobs_look(&j, &done.id).state == JOB_SUCCEEDED);
    jobs_fire(&j, NULL, 0);
    TEST_CHECK(jobs_look(&j, &beating.id).state == JOB_RUNNING); /* and it was made longer */
    jobs_close(&j);
}

/* Only what was claimed before has it: whoever claims soon after the start is given up on when it was told. */
static void test_lease_of_this_start_has_no_grace_J5(void)
{
    struct jobs j;
    jobs_open(&j);
    struct jobs_held before = outside(&j, true);
    fresh_reopen(&j.fresh);
    j.start++;
    j.grace_us = j.steady_us + JOBS_LEASE_US;
    j.lease_us = JOBS_SECOND_US;
    TEST_CHECK(jobs_beat(&j, &before.id, before.fence) == OK);
    struct jobs_held held = outside(&j, true), silent = outside(&j, false);
    jobs_pass(&j, JOBS_SECOND_US - 1);
    TEST_CHECK(jobs_beat(&j, &held.id, held.fence) == OK && jobs_fire(&j, NULL, 0) == 0);
    jobs_pass(&j, 1);
    TEST_CHECK(jobs_beat(&j, &silent.id, silent.fence) == ERR_EXPIRED);
    TEST_CHECK(jobs_fire(&j, NULL, 0) == 2);
    TEST_CHECK(jobs_look(&j, &silent.id).state == JOB_QUEUED);
    jobs_pass(&j, JOBS_SECOND_US);
    struct job_finish c = jobs_end_of(&j, &held.id, held.fence, JOB_SUCCEED);
    TEST_CHECK(jobs_finish(&j, &c, NULL) == ERR_EXPIRED && jobs_fire(&j, NULL, 0) == 1);
    TEST_CHECK(jobs_look(&j, &held.id).state == JOB_FAILED && jobs_look(&j, &before.id).state == JOB_RUNNING);
    TEST_CHECK(jobs_look(&j, &before.id).lease_us == j.grace_us); /* and it was told so */
    jobs_close(&j);
}

/* One of the server's own has gone with the start that it belonged to. */
static void test_lease_of_an_own_worker_has_no_grace_J5(void)
{
    struct jobs j;
    jobs_open(&j);
    struct jobs_held held = jobs_in(&j, JOB_RUNNING);
    jobs_pass(&j, JOBS_LEASE_US);
    j.grace_us = j.steady_us + 1;
    TEST_CHECK(jobs_beat(&j, &held.id, held.fence) == ERR_EXPIRED);
    jobs_close(&j);
}

static void test_reap_takes_what_an_earlier_start_had_JOB_225_JOB_316_AMB_J_11_AMB_J_38(void)
{
    struct jobs j;
    struct job_fired fired;
    jobs_open(&j);
    struct jobs_held running = jobs_in(&j, JOB_RUNNING), assigned = jobs_in(&j, JOB_ASSIGNED);
    struct uuid queued = jobs_new(&j), nobody = fresh_uuid();
    uint64_t sum = jobs_sum(&j);
    TEST_CHECK(jobs_reap(&j, &running.id, &fired) == OK &&
               fired.event == JOB_EVENT_COUNT); /* of this start */
    TEST_CHECK(jobs_reap(&j, &assigned.id, &fired) == OK && fired.event == JOB_EVENT_COUNT);
    TEST_CHECK(jobs_reap(&j, &nobody, &fired) == OK && fired.event == JOB_EVENT_COUNT);
    TEST_CHECK(jobs_sum(&j) == sum);
    j.start++;
    TEST_CHECK(jobs_reap(&j, &queued, &fired) == OK && fired.event == JOB_EVENT_COUNT);
    TEST_CHECK(jobs_sum(&j) == sum);
    TEST_CHECK(jobs_reap(&j, &running.id, &fired) == OK && fired.event == JOB_FAIL &&
               fired.from == JOB_RUNNING);
    TEST_CHECK(uuid_equal(&fired.id, &running.id) && uuid_equal(&fired.client, &j.client) &&
               fired.kind == WORK_KIND_SUCCESS_FAST && fired.attempt == 1 && fired.ran_us > 0);
    TEST_CHECK(jobs_reap(&j, &assigned.id, &fired) == OK && fired.event == JOB_REQUEUE);
    TEST_CHECK(jobs_look(&j, &running.id).failure == JOB_RUNNER_LOST);
    JOBS_STORY_IS(&j, &assigned.id, "created queued assigned requeued");
    sum = jobs_sum(&j);
    TEST_CHECK(jobs_reap(&j, &running.id, &fired) == OK && jobs_reap(&j, &assigned.id, &fired) == OK);
    TEST_CHECK(jobs_sum(&j) == sum);
    TEST_CHECK(jobs_beat(&j, &running.id, running.fence) == ERR_FENCED);
    jobs_close(&j);
}

struct requeue {
    struct uuid id;
    uint64_t steady_us, start;
    enum error expected;
};

static enum error try_requeue(struct txn *txn, uint64_t at_us, void *context)
{
    const struct requeue *r = context;
    struct job_texts texts;
    struct job job;
    TEST_CHECK(job_open(txn, &r->id, &job, &texts) == OK);
    TEST_CHECK(job_requeue(txn, &job, at_us, r->steady_us, r->start) == r->expected);
    TEST_CHECK(r->expected == OK || txn->writes == 0);
    if (!r->expected)
        txn->error = ERR_MEMORY; /* taken back */
    return OK;
}

/* The one exception to the table: ASSIGNED, and over by its time or its owner's. */
static void test_requeue_only_when_it_is_over_JOB_225_AMB_J_11(void)
{
    struct jobs j;
    jobs_open(&j);
    for (uint8_t state = 0; state < JOB_STATE_COUNT; state++) {
        struct jobs_held held = jobs_in(&j, state);
        uint64_t end = jobs_look(&j, &held.id).lease_us;
        bool may = state == JOB_ASSIGNED;
        const struct requeue tries[] = {
            {held.id, end - 1, j.start, ERR_TRANSITION},
            {held.id, end, j.start, may ? OK : ERR_TRANSITION},
            {held.id, end - 1, j.start + 1, may ? OK : ERR_TRANSITION},
        };
        for (size_t i = end ? 0 : 1; i < 3; i++) {
            struct requeue r = tries[i];
            TEST_CHECK(fresh_do(&j.fresh, j.at_us, try_requeue, &r) == (r.expected ? OK : ERR_MEMORY));
        }
        TEST_CHECK(jobs_look(&j, &held.id).state == state);
        TEST_CHECK(jobs_cancel(&j, &j.client, &held.id, NULL) == OK);
    }
    struct jobs_held held = outside(&j, false); /* nobody's start: by its time alone */
    struct requeue r = {held.id, jobs_look(&j, &held.id).lease_us - 1, j.start + 1, ERR_TRANSITION};
    TEST_CHECK(fresh_do(&j.fresh, j.at_us, try_requeue, &r) == OK);
    jobs_close(&j);
}

/* ---- many at once ---- */

static void test_fire_does_so_many_and_no_more(void)
{
    enum { JOBS = 100 };
    struct jobs j;
    struct job_fired fired[JOB_FIRE_MAX];
    uint32_t count, all = 0;
    uint64_t last = 0;
    jobs_open(&j);
    for (uint32_t i = 0; i < JOBS; i++)
        deferred(&j, j.at_us + (1 + fresh_below(50)) * JOBS_SECOND_US);
    jobs_pass(&j, 60 * JOBS_SECOND_US);
    static const uint16_t most[] = {1, 33, 80, 65535};
    static const uint32_t expected[] = {1, 33, 66, 0};
    for (size_t i = 0; i < 4; i++) {
        TEST_CHECK(fire(&j, SHARD, most[i], fired, &count) == OK);
        TEST_CHECK_(count == expected[i], "%u", count);
        all += count;
        for (uint32_t k = 0; k < count; k++) { /* whoever has waited longest comes first */
            uint64_t at = jobs_look(&j, &fired[k].id).execution_us;
            TEST_CHECK(at >= last);
            last = at;
        }
    }
    TEST_CHECK(all == JOBS);
    TEST_CHECK(fire(&j, JOB_SHARDS, 1, fired, &count) == ERR_INVALID);
    TEST_CHECK(fire(&j, SHARD, 0, fired, &count) == ERR_INVALID);
    TEST_CHECK(fire(&j, SHARD + 1, 1, fired, &count) == OK && count == 0);
    jobs_close(&j);
}

/* ---- what is damaged ---- */

struct row {
    uint32_t table;
    struct key key;
};

/* Its last byte; the same again, and it is whole. */
static enum error flip(struct txn *txn, uint64_t at_us, void *context)
{
    (void)at_us;
    uint8_t bytes[4096];
    const struct row *row = context;
    MDB_dbi dbi = txn->store->environment.tables[row->table];
    MDB_val k = {row->key.size, (void *)(uintptr_t)row->key.bytes}, v;
    TEST_ASSERT(mdb_get(txn->mdb, dbi, &k, &v) == 0 && v.mv_size <= sizeof(bytes));
    memcpy(bytes, v.mv_data, v.mv_size);
    bytes[v.mv_size - 1] ^= 1;
    v.mv_data = bytes;
    TEST_ASSERT(mdb_put(txn->mdb, dbi, &k, &v, 0) == 0);
    txn->writes++;
    return OK;
}

static void flip_job(struct jobs *j, const struct uuid *id)
{
    struct row row = {TABLE_JOBS, key_of_uuid(id)};
    TEST_CHECK(fresh_do(&j->fresh, j->at_us, flip, &row) == OK);
}

static void flip_place(struct jobs *j, const struct job *job)
{
    struct row row = {TABLE_JOB_QUEUE, job_queue_key(job)};
    TEST_CHECK(fresh_do(&j->fresh, j->at_us, flip, &row) == OK);
}

static void flip_timer(struct jobs *j, const struct job *job, uint8_t queue)
{
    struct row row = {TABLE_DUE, due_key(queue, job_shard(queue, &job->id), job->due_us, &job->id)};
    TEST_CHECK(fresh_do(&j->fresh, j->at_us, flip, &row) == OK);
}

static void test_damaged_job_is_in_no_ones_way_when_its_time_comes(void)
{
    struct jobs j;
    struct job_fired fired[JOB_FIRE_MAX];
    uint32_t count;
    jobs_open(&j);
    struct uuid bad = deferred(&j, j.at_us + JOBS_SECOND_US),
                good = deferred(&j, j.at_us + 2 * JOBS_SECOND_US);
    flip_job(&j, &bad);
    jobs_pass(&j, 10 * JOBS_SECOND_US);
    TEST_CHECK(fire(&j, SHARD, 80, fired, &count) == OK && count == 2);
    TEST_CHECK(fired[0].damaged && uuid_equal(&fired[0].id, &bad) && fired[0].event == JOB_EVENT_COUNT);
    TEST_CHECK(!fired[1].damaged && fired[1].event == JOB_ENQUEUE);
    TEST_CHECK(jobs_look(&j, &good).state == JOB_QUEUED);
    TEST_CHECK(fire(&j, SHARD, 80, fired, &count) == OK && count == 0);
    jobs_pass(&j, JOB_SET_BY_US - 1);
    TEST_CHECK(fire(&j, SHARD, 80, fired, &count) == OK && count == 0);
    jobs_pass(&j, 1);
    TEST_CHECK(fire(&j, SHARD, 80, fired, &count) == OK && count == 1 && fired[0].damaged);
    TEST_CHECK(jobs_cancel(&j, &j.client, &bad, NULL) == ERR_DAMAGED);
    TEST_CHECK(jobs_retry(&j, &j.client, &bad, NULL) == ERR_DAMAGED);
    TEST_CHECK(jobs_cancel(&j, &j.client, &good, NULL) == OK);
    flip_job(&j, &bad);
    jobs_pass(
        &j, 10 * JOBS_DAY_US); /* it can be read again: its timer isn't the one that it knows of, and goes */
    TEST_CHECK(fire(&j, SHARD, 80, fired, &count) == OK && count == 0);
    TEST_CHECK(jobs_cancel(&j, &j.client, &bad, NULL) == OK);
    jobs_close(&j);
}

static uint64_t next_due(struct jobs *j, uint8_t queue, const struct uuid *id)
{
    struct view *view = view_open_outside(j->fresh.store, 0);
    uint64_t next_us = 0;
    TEST_ASSERT(view != NULL);
    TEST_CHECK(due_next(&view->txn, queue, job_shard(queue, id), &next_us) == OK);
    view_close(view);
    return next_us;
}

/* What is set by waits on the clock that it is due by, however far the two are apart. */
static void test_damaged_job_is_looked_at_again_by_its_own_clock(void)
{
    struct jobs j;
    struct job_fired fired[JOB_FIRE_MAX];
    uint32_t count;
    jobs_open(&j);
    j.at_us += 100 * JOBS_DAY_US; /* somebody has set it ahead */
    struct uuid timed = deferred(&j, j.at_us + JOBS_SECOND_US);
    struct jobs_held leased = jobs_in(&j, JOB_ASSIGNED);
    flip_job(&j, &timed);
    flip_job(&j, &leased.id);
    jobs_pass(&j, JOBS_LEASE_US);
    const uint16_t shards[] = {SHARD, job_shard(DUE_JOB_LEASE, &leased.id)};
    for (size_t i = 0; i < 2; i++)
        TEST_CHECK(fire(&j, shards[i], 1, fired, &count) == OK && count == 1 && fired[0].damaged);
    TEST_CHECK(next_due(&j, DUE_JOB_TIME, &timed) == j.at_us + JOB_SET_BY_US);
    TEST_CHECK(next_due(&j, DUE_JOB_LEASE, &leased.id) == j.steady_us + JOB_SET_BY_US);
    flip_job(&j, &timed);
    flip_job(&j, &leased.id);
    jobs_pass(&j, JOBS_DAY_US);
    TEST_CHECK(jobs_fire(&j, fired, 8) == 0); /* those timers aren't theirs, and go */
    TEST_CHECK(jobs_cancel(&j, &j.client, &timed, NULL) == OK &&
               jobs_cancel(&j, &j.client, &leased.id, NULL) == OK);
    jobs_close(&j);
}

static void test_damaged_timer_is_read_by_its_key(void)
{
    for (uint8_t state = JOB_CREATED; state <= JOB_RUNNING; state++) {
        struct jobs j;
        struct job_fired fired[8];
        uint64_t next = 0;
        jobs_open(&j);
        struct jobs_held held;
        if (state == JOB_QUEUED) {
            held = jobs_in(&j, JOB_FAILED);
            TEST_CHECK(jobs_retry(&j, &j.client, &held.id, NULL) == OK);
        } else {
            held = jobs_in(&j, state);
        }
        struct job job = jobs_look(&j, &held.id);
        enum due_queue queue;
        TEST_CHECK(job_due_queue(job.state, &queue));
        flip_timer(&j, &job, (uint8_t)queue);
        jobs_pass(&j, 3600 * JOBS_SECOND_US);
        struct view *view = view_open_outside(j.fresh.store, 0);
        TEST_CHECK(due_next(&view->txn, (uint8_t)queue, job_shard((uint8_t)queue, &job.id), &next) == OK &&
                   next == job.due_us);
        view_close(view);
        TEST_CHECK(jobs_fire(&j, fired, 8) == 1 && !fired[0].damaged);
        TEST_CHECK(jobs_look(&j, &held.id).state == (state == JOB_RUNNING ? JOB_FAILED : JOB_QUEUED));
        jobs_close(&j);
    }
}

/* One that is still to come is in the way of none that is due; and a job is cancelled whose timer can't be read. */
static void test_damaged_timer_of_later_is_in_no_ones_way(void)
{
    struct jobs j;
    struct job_fired fired[JOB_FIRE_MAX];
    uint32_t count;
    jobs_open(&j);
    struct uuid first = deferred(&j, j.at_us + JOBS_SECOND_US),
                second = deferred(&j, j.at_us + 2 * JOBS_SECOND_US),
                later = deferred(&j, j.at_us + 100 * JOBS_SECOND_US);
    struct job job = jobs_look(&j, &first);
    flip_timer(&j, &job, DUE_JOB_TIME);
    job = jobs_look(&j, &later);
    flip_timer(&j, &job, DUE_JOB_TIME);
    jobs_pass(&j, 10 * JOBS_SECOND_US);
    TEST_CHECK(fire(&j, SHARD, 80, fired, &count) == OK && count == 2);
    TEST_CHECK(uuid_equal(&fired[0].id, &first) && uuid_equal(&fired[1].id, &second));
    TEST_CHECK(jobs_cancel(&j, &j.client, &later, NULL) == OK);
    jobs_close(&j);
}

static enum error add_timers(struct txn *txn, uint64_t at_us, void *context)
{
    const struct uuid *id = context;
    struct uuid nobody = in_shard(SHARD);
    static const uint8_t queues[] = {DUE_JOB_TIME, DUE_JOB_LEASE, DUE_JOB_BACKOFF};
    for (size_t i = 0; i < 3; i++) {
        due_set(txn, &(struct due_entry){.queue = queues[i], .shard = SHARD, .due_us = at_us, .id = nobody});
        due_set(txn, &(struct due_entry){.queue = queues[i], .shard = SHARD, .due_us = at_us, .id = *id});
    }
    return OK;
}

/* Entries that are no job's, or not this one's: they go, and nothing else happens. */
static void test_stray_timers_go(void)
{
    struct jobs j;
    struct job_fired fired[JOB_FIRE_MAX];
    uint32_t count;
    jobs_open(&j);
    struct uuid id = deferred(&j, j.at_us + 20 * JOBS_SECOND_US);
    TEST_CHECK(fresh_do(&j.fresh, j.at_us, add_timers, &id) == OK);
    jobs_pass(&j, JOBS_SECOND_US);
    TEST_CHECK(fire(&j, SHARD, 80, fired, &count) == OK && count == 0);
    TEST_CHECK(jobs_look(&j, &id).state == JOB_CREATED && jobs_rows(&j, TABLE_DUE) == 1);
    jobs_pass(&j, 19 * JOBS_SECOND_US);
    TEST_CHECK(fire(&j, SHARD, 80, fired, &count) == OK && count == 1);
    jobs_close(&j);
}

static void test_damaged_rows_at_the_front_are_passed_by(void)
{
    struct jobs j;
    struct job_claimed claimed[JOB_CLAIM_MAX];
    struct job jobs[4];
    uint32_t count;
    jobs_open(&j);
    struct uuid ids[6];
    for (uint32_t i = 0; i < 6; i++)
        ids[i] = jobs_new(&j);
    for (uint32_t i = 0; i < 4; i++)
        jobs[i] = jobs_look(&j, &ids[i]);
    flip_place(&j, &jobs[0]);
    flip_job(&j, &ids[1]);
    flip_place(&j, &jobs[3]);
    struct job_claim c = jobs_claim_of(&j, 2);
    TEST_CHECK(jobs_claim(&j, &c, claimed, &count) == OK && count == 2);
    TEST_CHECK(uuid_equal(&claimed[0].id, &ids[2]) && uuid_equal(&claimed[1].id, &ids[4]));
    TEST_CHECK(jobs_claim(&j, &c, claimed, &count) == OK && count == 1);
    TEST_CHECK(uuid_equal(&claimed[0].id, &ids[5]));
    uint64_t sum_before = jobs_rows(&j, TABLE_JOB_QUEUE);
    TEST_CHECK(jobs_claim(&j, &c, claimed, &count) == ERR_DAMAGED); /* not: nothing is there */
    TEST_CHECK(jobs_rows(&j, TABLE_JOB_QUEUE) == sum_before && sum_before == 3);
    TEST_CHECK(jobs_cancel(&j, &j.client, &ids[0], NULL) == OK); /* whose place can't be read */
    flip_job(&j, &ids[1]);
    flip_place(&j, &jobs[3]);
    TEST_CHECK(jobs_claim(&j, &c, claimed, &count) == OK && count == 2);
    TEST_CHECK(uuid_equal(&claimed[0].id, &ids[1]) && uuid_equal(&claimed[1].id, &ids[3]));
    jobs_close(&j);
}

static void test_damaged_rows_of_kinds_outside_are_passed_by(void)
{
    struct jobs j;
    struct job_claimed claimed[JOB_CLAIM_MAX];
    uint32_t count;
    struct uuid ids[6];
    struct job jobs[6];
    jobs_open(&j);
    for (uint32_t i = 0; i < 6; i++) {
        struct job_submit s = jobs_wish_user(&j, i % 2 ? "x.a" : "x.b");
        TEST_CHECK(jobs_submit(&j, &s, NULL) == OK);
        ids[i] = s.id;
        jobs[i] = jobs_look(&j, &ids[i]);
    }
    flip_place(&j, &jobs[0]);
    flip_job(&j, &ids[1]);
    flip_job(&j, &ids[3]);
    struct job_claim c = jobs_claim_of(&j, 10);
    c.lane = LANE_OUTSIDE;
    c.client = j.client;
    TEST_CHECK(jobs_claim(&j, &c, claimed, &count) == OK && count == 3);
    TEST_CHECK(uuid_equal(&claimed[0].id, &ids[2]) && uuid_equal(&claimed[1].id, &ids[4]) &&
               uuid_equal(&claimed[2].id, &ids[5]));
    TEST_CHECK(jobs_claim(&j, &c, claimed, &count) == ERR_DAMAGED);
    flip_place(&j, &jobs[0]);
    flip_job(&j, &ids[1]);
    flip_job(&j, &ids[3]);
    TEST_CHECK(jobs_claim(&j, &c, claimed, &count) == OK && count == 3);
    TEST_CHECK(uuid_equal(&claimed[0].id, &ids[0]) && uuid_equal(&claimed[1].id, &ids[1]));
    jobs_close(&j);
}

static enum error event_beyond(struct txn *txn, uint64_t at_us, void *context)
{
    const struct job *job = context;
    struct event event = {.at_us = at_us, .domain = JOB_DOMAIN, .name = JOB_CANCEL};
    return event_add(txn, &job->id, (uint64_t)job->events + 1, &event);
}

static enum error event_gone(struct txn *txn, uint64_t at_us, void *context)
{
    (void)at_us;
    const struct job *job = context;
    struct key key = event_key(&job->id, (uint64_t)job->events + 1);
    txn_remove(txn, TABLE_EVENTS, key_span(&key));
    return OK;
}

/* What would have come of it is nobody's to count: it is told of as damaged, and as nothing else. */
static void test_damaged_job_whose_lease_is_over_is_told_of_as_that(void)
{
    struct jobs j;
    struct job_fired fired[8];
    jobs_open(&j);
    struct jobs_held held = jobs_in(&j, JOB_RUNNING);
    struct job job = jobs_look(&j, &held.id);
    TEST_CHECK(fresh_do(&j.fresh, j.at_us, event_beyond, &job) == OK);
    jobs_pass(&j, JOBS_LEASE_US);
    TEST_CHECK(jobs_fire(&j, fired, 8) == 1 && fired[0].damaged && fired[0].event == JOB_EVENT_COUNT);
    TEST_CHECK(jobs_look(&j, &held.id).state == JOB_RUNNING);
    TEST_CHECK(fresh_do(&j.fresh, j.at_us, event_gone, &job) == OK);
    jobs_close(&j);
}

/* A log that says more than the job's row: that job can't be changed, and others in the same command, or the same commit, can. */
static void test_log_that_knows_more_stops_its_own_job_only(void)
{
    struct jobs j;
    struct job_claimed claimed[JOB_CLAIM_MAX];
    struct job_fired fired[8];
    uint32_t count;
    jobs_open(&j);
    struct jobs_held running = jobs_in(&j, JOB_RUNNING);
    struct uuid first = jobs_new(&j), second = jobs_new(&j);
    struct uuid timed = deferred(&j, j.at_us + JOBS_SECOND_US),
                other = deferred(&j, j.at_us + JOBS_SECOND_US);
    struct job jobs[] = {jobs_look(&j, &running.id), jobs_look(&j, &first), jobs_look(&j, &timed)};
    for (size_t i = 0; i < 3; i++)
        TEST_CHECK(fresh_do(&j.fresh, j.at_us, event_beyond, &jobs[i]) == OK);
    uint64_t sum = jobs_sum(&j);
    struct job_finish end = jobs_end_of(&j, &running.id, running.fence, JOB_SUCCEED);
    TEST_CHECK(jobs_finish(&j, &end, NULL) == ERR_DAMAGED);
    TEST_CHECK(jobs_cancel(&j, &j.client, &running.id, NULL) == ERR_DAMAGED && jobs_sum(&j) == sum);
    struct job_claim c = jobs_claim_of(&j, 2);
    TEST_CHECK(jobs_claim(&j, &c, claimed, &count) == OK && count == 1 &&
               uuid_equal(&claimed[0].id, &second));
    jobs_pass(&j, JOBS_SECOND_US);
    TEST_CHECK(jobs_fire(&j, fired, 8) == 2 && fired[0].damaged + fired[1].damaged == 1);
    TEST_CHECK(jobs_look(&j, &timed).state == JOB_CREATED && jobs_look(&j, &other).state == JOB_QUEUED);
    j.start++;
    TEST_CHECK(jobs_reap(&j, &running.id, &fired[0]) == OK && fired[0].damaged &&
               fired[0].event == JOB_EVENT_COUNT);
    TEST_CHECK(jobs_look(&j, &running.id).state == JOB_RUNNING &&
               jobs_look(&j, &running.id).owner == 0); /* so it isn't found among these again */
    for (size_t i = 0; i < 3; i++)
        TEST_CHECK(fresh_do(&j.fresh, j.at_us, event_gone, &jobs[i]) == OK);
    fresh_sound(&j.fresh);
    jobs_pass(&j, JOB_SET_BY_US);
    TEST_CHECK(jobs_fire(&j, fired, 8) == 3); /* the damaged two, and the lease of the second */
    TEST_CHECK(jobs_look(&j, &running.id).state == JOB_FAILED && jobs_look(&j, &timed).state == JOB_QUEUED);
    jobs_close(&j);
}

static enum error lose_events(struct txn *txn, uint64_t at_us, void *context)
{
    (void)at_us;
    const struct uuid *id = context;
    for (uint64_t seq = 1; seq <= 3; seq++) {
        struct key key = event_key(id, seq);
        txn_remove(txn, TABLE_EVENTS, key_span(&key));
    }
    return OK;
}

/* Its history is incomplete from then on, and that is all. */
static void test_job_goes_on_without_its_events_JOB_392(void)
{
    struct jobs j;
    struct report report;
    char text[FRESH_TEXT];
    jobs_open(&j);
    struct jobs_held held = jobs_in(&j, JOB_ASSIGNED);
    TEST_CHECK(fresh_do(&j.fresh, j.at_us, lose_events, &held.id) == OK);
    TEST_CHECK(fresh_findings(&j.fresh, text) > 0);
    TEST_CHECK(jobs_begin(&j, &held.id, held.fence) == OK);
    struct job_finish c = jobs_end_of(&j, &held.id, held.fence, JOB_SUCCEED);
    TEST_CHECK(jobs_finish(&j, &c, NULL) == OK && jobs_report(&j, &held.id, &report) == OK);
    TEST_CHECK(jobs_rows(&j, TABLE_EVENTS) == 2 && jobs_look(&j, &held.id).events == 5);
    jobs_pass(&j, 31 * JOBS_DAY_US);
    jobs_sweep(&j);
    TEST_CHECK(jobs_rows(&j, TABLE_JOBS) == 0);
    jobs_close(&j);
}

static enum error lose_timer(struct txn *txn, uint64_t at_us, void *context)
{
    (void)at_us;
    const struct job *job = context;
    enum due_queue queue = DUE_RETENTION;
    TEST_CHECK(job_due_queue(job->state, &queue));
    due_clear(txn, (uint8_t)queue, job_shard((uint8_t)queue, &job->id), job->due_us, &job->id);
    return OK;
}

static enum error lose_place(struct txn *txn, uint64_t at_us, void *context)
{
    (void)at_us;
    struct key key = job_queue_key(context);
    txn_remove(txn, TABLE_JOB_QUEUE, key_span(&key));
    return OK;
}

/* What follows from a job's row and isn't there any more doesn't keep the job from going on. */
static void test_job_goes_on_without_its_timer_or_place(void)
{
    struct jobs j;
    char text[FRESH_TEXT];
    jobs_open(&j);
    for (uint8_t state = 0; state <= JOB_RUNNING; state++) {
        struct jobs_held held = jobs_in(&j, state);
        struct job job = jobs_look(&j, &held.id);
        TEST_CHECK(fresh_do(&j.fresh, j.at_us, state == JOB_QUEUED ? lose_place : lose_timer, &job) == OK);
        TEST_CHECK(fresh_findings(&j.fresh, text) == 1);
        TEST_CHECK(jobs_cancel(&j, &j.client, &held.id, NULL) == OK);
        fresh_sound(&j.fresh);
    }
    jobs_close(&j);
}

static enum error contradict(struct txn *txn, uint64_t at_us, void *context)
{
    (void)at_us;
    job_write(txn, context);
    return OK;
}

/* Rows that are whole and can't be true: refused, whatever is asked. */
static void test_job_that_contradicts_itself_is_damaged(void)
{
    struct jobs j;
    jobs_open(&j);
    for (uint32_t which = 0; which < 10; which++) {
        struct jobs_held held = jobs_in(&j, which < 4 ? JOB_QUEUED : which < 6 ? JOB_RUNNING : JOB_FAILED);
        struct job job = jobs_look(&j, &held.id), before = job;
        switch (which) {
        case 0:
            job.state = JOB_STATE_COUNT;
            break;
        case 1:
            job.lane = LANE_NONE;
            break;
        case 2:
            job.lane = LANE_COUNT;
            break;
        case 3:
            job.priority = JOB_PRIORITY_MAX + 1;
            break;
        case 4:
            job.due_us = 0;
            break;
        case 5:
            job.lane = LANE_SERVER;
            break;
        case 6:
            job.due_us = 1;
            break;
        case 7:
            job.type = JOB_TYPE_COUNT;
            break;
        case 8:
            job.events = 0;
            break;
        default:
            job.retire_us = 0;
        }
        TEST_CHECK(fresh_do(&j.fresh, j.at_us, contradict, &job) == OK);
        TEST_CHECK(jobs_cancel(&j, &j.client, &held.id, NULL) == ERR_DAMAGED);
        TEST_CHECK(jobs_retry(&j, &j.client, &held.id, NULL) == ERR_DAMAGED);
        if (which < 4)
            TEST_CHECK(jobs_claim_one(&j, NULL) == ERR_DAMAGED);
        TEST_CHECK(fresh_do(&j.fresh, j.at_us, contradict, &before) == OK);
        TEST_CHECK(jobs_cancel(&j, &j.client, &held.id, NULL) == OK);
    }
    jobs_close(&j);
}

TEST_LIST
= {
    {"a timer wakes its shard (JOB-266)", test_a_timer_wakes_its_shard_JOB_266},
    {"deferred: never early, never forgotten (JOB-072, JOB-211, JOB-259, JOB-261, JOB-262, JOB-266)",
     test_deferred_is_never_early_and_never_forgotten_JOB_211_JOB_259_JOB_261_JOB_262_JOB_266},
    {"deferred: its event isn't before its time (JOB-261)",
     test_deferred_event_is_not_before_its_time_JOB_261},
    {"deferred: missed times come at once (JOB-264, JOB-265)",
     test_deferred_missed_times_come_at_once_JOB_264_JOB_265},
    {"deferred: takes the place of its creation (AMB-J-37)",
     test_deferred_takes_the_place_of_its_creation_AMB_J_37},
    {"deferred: waits when the queue is full (JOB-312, JOB-315, AMB-J-14)",
     test_deferred_waits_when_the_queue_is_full_JOB_312_JOB_315_AMB_J_14},
    {"fire: all wait when nobody can be told", test_all_wait_when_nobody_can_be_told},
    {"fire: an end waits when nobody can be told (O1)", test_an_end_waits_when_nobody_can_be_told_O1},
    {"lease: of an assigned job, ends in the queue (JOB-225, JOB-282, JOB-287, JOB-314, AMB-J-11)",
     test_lease_of_an_assigned_job_ends_in_the_queue_JOB_225_JOB_282_JOB_287_JOB_314_AMB_J_11},
    {"lease: the time that it waits by is noted, and that of a backoff (D9)",
     test_leases_and_backoffs_note_the_time_that_they_wait_by_D9},
    {"lease: of a running job, ends in failure (JOB-236, JOB-316, AMB-J-38)",
     test_lease_of_a_running_job_ends_in_failure_JOB_236_JOB_316_AMB_J_38},
    {"lease: of a lost job, which is retried by itself (AMB-J-35, AMB-J-38, JOB-316)",
     test_lost_job_is_retried_by_itself_AMB_J_35_AMB_J_38_JOB_316},
    {"reap: and it is retried by itself (AMB-J-35, AMB-J-38)",
     test_reaped_job_is_retried_by_itself_AMB_J_35_AMB_J_38},
    {"lease: goes by steady time alone (J5, D9)", test_lease_goes_by_steady_time_alone_J5_D9},
    {"lease: one that was extended is looked at again", test_lease_that_was_extended_is_looked_at_again},
    {"lease: of a worker outside, outlives a restart by a lease (J5)",
     test_lease_of_a_worker_outside_outlives_a_restart_by_a_lease_J5},
    {"lease: of a worker outside counts before its timer is looked at (J5)",
     test_lease_of_a_worker_outside_counts_before_its_timer_is_looked_at_J5},
    {"lease: of an own worker has no grace (J5)", test_lease_of_an_own_worker_has_no_grace_J5},
    {"lease: of this start has no grace (J5)", test_lease_of_this_start_has_no_grace_J5},
    {"reap: what an earlier start had (JOB-225, JOB-316, AMB-J-11, AMB-J-38)",
     test_reap_takes_what_an_earlier_start_had_JOB_225_JOB_316_AMB_J_11_AMB_J_38},
    {"requeue: only when it is over (JOB-225, AMB-J-11)", test_requeue_only_when_it_is_over_JOB_225_AMB_J_11},
    {"fire: so many and no more", test_fire_does_so_many_and_no_more},
    {"damaged: a job is in no one's way when its time comes",
     test_damaged_job_is_in_no_ones_way_when_its_time_comes},
    {"damaged: a job whose lease is over is told of as that",
     test_damaged_job_whose_lease_is_over_is_told_of_as_that},
    {"damaged: a job is looked at again by its own clock",
     test_damaged_job_is_looked_at_again_by_its_own_clock},
    {"damaged: a timer is read by its key", test_damaged_timer_is_read_by_its_key},
    {"damaged: a timer of later is in no one's way", test_damaged_timer_of_later_is_in_no_ones_way},
    {"damaged: stray timers go", test_stray_timers_go},
    {"damaged: rows at the queue's front are passed by", test_damaged_rows_at_the_front_are_passed_by},
    {"damaged: rows of kinds outside are passed by", test_damaged_rows_of_kinds_outside_are_passed_by},
    {"damaged: a log that knows more stops its own job only",
     test_log_that_knows_more_stops_its_own_job_only},
    {"damaged: a job goes on without its events (JOB-392)", test_job_goes_on_without_its_events_JOB_392},
    {"damaged: a job goes on without its timer or place", test_job_goes_on_without_its_timer_or_place},
    {"damaged: a job that contradicts itself", test_job_that_contradicts_itself_is_damaged},
    {NULL, NULL},
};
