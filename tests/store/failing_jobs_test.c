/* Every call of LMDB fails once in each command and each question about jobs, in stores where it has much to read: whoever asked hears
 * of the failure, nothing is half done, and the store goes on. What jobs there are is chosen, so that each way through the code is
 * among them (failing_test.c has jobs at random, and the other kinds of failures). */
#include "acutest.h"

#include <stdlib.h>
#include <unistd.h>

#include "store/client.h"
#include "store/job_bulk.h"
#include "store/job_fairness.h"
#include "store/job_limit.h"
#include "store/job_pause.h"
#include "store/job_schedule.h"
#include "store/outbox.h"
#include "store/retention.h"
#include "tests/store/jobs.h"
#include "tests/support/failing.h"

enum { CALLS_MAX = 5000 };

static const struct uuid nobody = {{0}};
static struct uuid subject; /* a job, a schedule or a bulk action: what the deed is about */
static uint64_t fence;

struct deed {
    const char *name;
    void (*prepare)(struct jobs *j);
    enum error (*run)(struct jobs *j);
};

static bool excuse(enum error e)
{
    return e == ERR_IO || e == ERR_MEMORY || e == ERR_DAMAGED || e == ERR_UNAVAILABLE;
}

static void open_it(struct jobs *j, const struct deed *deed)
{
    jobs_open(j);
    deed->prepare(j);
}

/* One that was done all the same (what failed came behind its commit, or it could do without) was done whole: so the rest begins anew. */
static void go_on(struct jobs *j, const struct deed *deed, enum error e, uint64_t sum)
{
    if (!e) {
        jobs_close(j);
        open_it(j, deed);
        return;
    }
    TEST_CHECK_(excuse(e), "it says %s", error_name(e));
    if (store_state(j->fresh.store) == STORE_FAILED)
        fresh_reopen(&j->fresh);
    TEST_CHECK(jobs_sum(j) == sum);
}

static void fail_each(const struct deed *deed)
{
    struct jobs j;
    uint32_t refused = 0;
    open_it(&j, deed);
    for (uint64_t n = 1;; n++) {
        uint64_t sum = jobs_sum(&j);
        TEST_ASSERT_(n < CALLS_MAX, "%s makes more calls than one does", deed->name);
        failing_begin(FAILING_LMDB, n);
        enum error e = deed->run(&j);
        bool hit = failing_end();
        TEST_CASE_("%s, call %u, %s", deed->name, (unsigned)n, failing_name());
        if (!hit) {
            TEST_CHECK_(e == OK, "without a failure: %s", error_name(e));
            break;
        }
        refused += e != OK;
        go_on(&j, deed, e, sum);
    }
    TEST_CHECK_(refused > 2, "%s was refused %u times", deed->name, refused);
    jobs_close(&j);
}

static void fail_all(const struct deed *deeds, size_t count)
{
    if (access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 0); /* it isn't about the disk */
    for (size_t i = 0; i < count; i++)
        fail_each(&deeds[i]);
}
#define FAIL_ALL(deeds) fail_all((deeds), sizeof(deeds) / sizeof(*(deeds)))

static enum error command(struct jobs *j, const struct command_class *class, const void *c)
{
    return batch_one(j->fresh.store, class, j->at_us, c, NULL);
}

static struct uuid submit_as(struct jobs *j, const struct uuid *client, const char *kind_name)
{
    struct job_submit c = kind_name ? jobs_wish_user(j, kind_name) : jobs_wish(j, WORK_KIND_SUCCESS_FAST);
    c.client = *client;
    TEST_CHECK(jobs_submit(j, &c, NULL) == OK);
    return c.id;
}

static void join(struct jobs *j, const struct uuid *client)
{
    struct client_create c = {.id = *client, .from = span_text("192.0.2.1")};
    TEST_CHECK(command(j, &client_create_class, &c) == OK);
}

static void set_fair(struct jobs *j, uint8_t on, uint16_t most)
{
    struct job_fairness c = {.on = on, .most = most};
    TEST_CHECK(command(j, &job_fairness_class, &c) == OK);
}

/* ---- submit ---- */

static void prepare_nothing(struct jobs *j)
{
    (void)j;
}

static enum error run_submit(struct jobs *j)
{
    struct job_submit c = jobs_wish_user(j, "x.kind");
    c.key = span_text("key");
    c.callback = span_text("https://a.example/");
    return command(j, &job_submit_class, &c);
}

static enum error run_submit_noted(struct jobs *j)
{
    struct job_submit c = jobs_wish(j, WORK_KIND_NONE);
    c.repeat = span_text("request");
    return command(j, &job_submit_class, &c);
}

static void prepare_repeat(struct jobs *j)
{
    TEST_CHECK(run_submit(j) == OK);
    TEST_CHECK(run_submit_noted(j) == OK);
}

/* The answer to a repeat, and one thing that is written behind it. */
static enum error run_repeat(struct jobs *j)
{
    struct job_submit more = jobs_wish(j, WORK_KIND_SUCCESS_FAST);
    enum error e = run_submit(j);
    if (!e)
        e = run_submit_noted(j);
    return e ? e : command(j, &job_submit_class, &more);
}

/* ---- claims ---- */

static enum error claim(struct jobs *j, struct job_claim c)
{
    c.running = 1;
    return command(j, &job_claim_class, &c);
}

static enum error run_claim(struct jobs *j)
{
    struct job_claim c = jobs_claim_of(j, 4);
    c.running_max = 100;
    c.client_max = 2;
    return claim(j, c);
}

static void prepare_both_clients(struct jobs *j)
{
    for (int i = 0; i < 3; i++) {
        submit_as(j, &j->client, NULL);
        submit_as(j, &j->other, NULL);
    }
}

static void prepare_turns(struct jobs *j)
{
    prepare_both_clients(j);
    set_fair(j, 1, 4); /* the rest hasn't been given its turn yet */
}

static void prepare_turns_over(struct jobs *j)
{
    prepare_turns(j);
    set_fair(j, 0, 1);
}

static void prepare_outside(struct jobs *j)
{
    submit_as(j, &j->client, "x.a");
    submit_as(j, &j->client, "x.b");
    submit_as(j, &j->client, "x.a");
}

static enum error run_claim_outside(struct jobs *j)
{
    struct job_claim c = jobs_claim_of(j, 2);
    c.lane = LANE_OUTSIDE;
    c.client = j->client;
    c.owner = 0;
    return claim(j, c);
}

static enum error run_claim_named(struct jobs *j)
{
    struct job_claim c = jobs_claim_of(j, 2);
    struct uuid works[] = {job_work_id(j->fresh.store, WORK_KIND_USER, span_text("x.b")),
                           job_work_id(j->fresh.store, WORK_KIND_USER, span_text("x.a"))};
    c.lane = LANE_OUTSIDE;
    c.client = j->client;
    c.works = span_of(works, sizeof(works));
    return claim(j, c);
}

static void test_every_call_fails_in_a_submit_or_claim(void)
{
    static const struct deed deeds[] = {
        {"a submit with a key", prepare_nothing, run_submit},
        {"a submit that is noted", prepare_nothing, run_submit_noted},
        {"repeats", prepare_repeat, run_repeat},
        {"a claim", prepare_both_clients, run_claim},
        {"a claim in turn", prepare_turns, run_claim},
        {"a claim when turns are over", prepare_turns_over, run_claim},
        {"a claim outside", prepare_outside, run_claim_outside},
        {"a claim of kinds", prepare_outside, run_claim_named},
    };
    FAIL_ALL(deeds);
}

/* ---- ends ---- */

/* Of two that one client may have at a time; a third one waits for a place. */
static void prepare_limited(struct jobs *j)
{
    struct job_claimed claimed[JOB_CLAIM_MAX];
    uint32_t count;
    for (int i = 0; i < 4; i++)
        submit_as(j, &j->client, NULL);
    submit_as(j, &j->client, "x.a");
    struct job_claim c = jobs_claim_of(j, 3);
    c.client_max = 2;
    c.running = 1;
    TEST_CHECK(jobs_claim(j, &c, claimed, &count) == OK && count == 2);
    subject = claimed[0].id;
    fence = claimed[0].fence;
}

static enum error run_finish(struct jobs *j)
{
    struct job_finish c = jobs_end_of(j, &subject, fence, JOB_FAIL);
    c.auto_retry = 1;
    c.base_us = j->base_us;
    c.most_us = j->most_us;
    return command(j, &job_finish_class, &c);
}

static enum error run_cancel(struct jobs *j)
{
    const struct job_cancel c = {subject, j->client, j->kept_us};
    return command(j, &job_cancel_class, &c);
}

static void prepare_failed(struct jobs *j)
{
    subject = jobs_in(j, JOB_FAILED).id;
}

static enum error run_retry(struct jobs *j)
{
    return jobs_retry(j, &j->client, &subject, NULL);
}

static void prepare_lost(struct jobs *j)
{
    prepare_limited(j);
    j->start++;
}

static enum error run_reap(struct jobs *j)
{
    struct job_fired fired;
    j->auto_retry = true;
    return jobs_reap(j, &subject, &fired);
}

static enum error run_fire(struct jobs *j, uint8_t queue)
{
    const struct job_fire c = {.shard = job_shard(queue, &subject),
                               .wall_us = j->at_us,
                               .steady_us = j->steady_us,
                               .start = j->start,
                               .queue_max = j->queue_max,
                               .retry_max = j->retry_max,
                               .kept_us = j->kept_us,
                               .most = JOB_FIRE_MAX,
                               .auto_retry = 1,
                               .base_us = j->base_us,
                               .most_us = j->most_us};
    return command(j, &job_fire_class, &c);
}

static void prepare_over(struct jobs *j)
{
    prepare_limited(j);
    jobs_pass(j, 2 * JOBS_LEASE_US);
}

static enum error run_fire_lease(struct jobs *j)
{
    return run_fire(j, DUE_JOB_LEASE);
}

static void prepare_backoff(struct jobs *j)
{
    prepare_failed(j);
    TEST_CHECK(run_retry(j) == OK);
    jobs_pass(j, j->most_us);
}

static enum error run_fire_backoff(struct jobs *j)
{
    return run_fire(j, DUE_JOB_BACKOFF);
}

static void prepare_deferred(struct jobs *j)
{
    struct job_submit c = jobs_wish_at(j, j->at_us + JOBS_SECOND_US);
    c.callback = span_text("https://a.example/");
    TEST_CHECK(jobs_submit(j, &c, NULL) == OK);
    subject = c.id;
    jobs_pass(j, JOBS_SECOND_US);
}

static enum error run_fire_time(struct jobs *j)
{
    return run_fire(j, DUE_JOB_TIME);
}

static void test_every_call_fails_at_a_jobs_end(void)
{
    static const struct deed deeds[] = {
        {"a finish", prepare_limited, run_finish},
        {"a cancel", prepare_limited, run_cancel},
        {"a retry", prepare_failed, run_retry},
        {"a reap", prepare_lost, run_reap},
        {"a lease is over", prepare_over, run_fire_lease},
        {"a backoff is over", prepare_backoff, run_fire_backoff},
        {"a time has come", prepare_deferred, run_fire_time},
    };
    FAIL_ALL(deeds);
}

/* ---- pauses and turns ---- */

static struct job_pause pause_of(const struct jobs *j)
{
    return (struct job_pause){.scope = PAUSE_CLIENT,
                              .name = j->client,
                              .until_us = j->at_us + JOBS_SECOND_US,
                              .label = span_text("client"),
                              .who = span_text("operator")};
}

static void prepare_join(struct jobs *j)
{
    join(j, &j->client);
    prepare_both_clients(j);
}

static enum error run_pause(struct jobs *j)
{
    const struct job_pause c = pause_of(j);
    return command(j, &job_pause_class, &c);
}

static void prepare_paused(struct jobs *j)
{
    prepare_join(j);
    TEST_CHECK(run_pause(j) == OK);
}

static void prepare_aside(struct jobs *j)
{
    prepare_paused(j);
    TEST_CHECK(run_claim(j) == OK);
}

static enum error run_resume(struct jobs *j)
{
    const struct job_resume c = {.scope = PAUSE_CLIENT, .name = j->client};
    return command(j, &job_resume_class, &c);
}

static void prepare_ended(struct jobs *j)
{
    prepare_aside(j);
    jobs_pass(j, JOBS_SECOND_US);
}

static enum error run_unpark(struct jobs *j)
{
    const struct job_unpark c = {.wall_us = j->at_us, .most = 100};
    return command(j, &job_unpark_class, &c);
}

static enum error run_anyway(struct jobs *j)
{
    const struct job_run c = {.id = subject};
    return command(j, &job_run_class, &c);
}

static enum error run_turns(struct jobs *j)
{
    const struct job_fairness c = {.on = 1, .most = 100};
    return command(j, &job_fairness_class, &c);
}

static enum error run_no_turns(struct jobs *j)
{
    const struct job_fairness c = {.on = 0, .most = 100};
    return command(j, &job_fairness_class, &c);
}

/* Of each client one runs, and the others are set aside. */
static void prepare_lower_limit(struct jobs *j)
{
    struct job_claimed claimed[JOB_CLAIM_MAX];
    uint32_t count;
    prepare_both_clients(j);
    struct job_claim c = jobs_claim_of(j, 6);
    c.client_max = 1;
    TEST_CHECK(jobs_claim(j, &c, claimed, &count) == OK && count == 2);
}

static enum error run_admit(struct jobs *j)
{
    const struct job_admit c = {.client_max = 2};
    return command(j, &job_admit_class, &c);
}

static void test_every_call_fails_in_a_pause_or_turn(void)
{
    static const struct deed deeds[] = {
        {"a pause", prepare_join, run_pause},
        {"a claim of what is paused", prepare_paused, run_claim},
        {"a resume", prepare_aside, run_resume},
        {"an unpark", prepare_ended, run_unpark},
        {"one that runs anyway", prepare_backoff, run_anyway},
        {"turns begin", prepare_both_clients, run_turns},
        {"turns go on", prepare_turns, run_turns},
        {"turns end", prepare_turns, run_no_turns},
        {"a limit is another one", prepare_lower_limit, run_admit},
    };
    FAIL_ALL(deeds);
}

/* ---- bulk actions ---- */

static struct job_bulk bulk_of(const struct uuid *client, uint8_t action)
{
    return (struct job_bulk){.by_steady = 1,
                             .id = fresh_uuid(),
                             .owner = *client,
                             .client = *client,
                             .action = action,
                             .states = UINT8_MAX,
                             .type = BULK_ANY_TYPE,
                             .who = span_text("somebody")};
}

static void start_bulk(struct jobs *j, const struct uuid *client, uint8_t action)
{
    struct job_bulk c = bulk_of(client, action);
    TEST_CHECK(command(j, &job_bulk_class, &c) == OK);
    subject = c.id;
}

static enum error run_bulk(struct jobs *j)
{
    struct job_bulk c = bulk_of(&j->client, BULK_CANCEL);
    return command(j, &job_bulk_class, &c);
}

static void prepare_bulk_all(struct jobs *j)
{
    prepare_both_clients(j);
    start_bulk(j, &nobody, BULK_CANCEL);
}

static void prepare_bulk_own(struct jobs *j)
{
    prepare_failed(j);
    submit_as(j, &j->other, NULL);
    start_bulk(j, &j->client, BULK_RETRY);
    submit_as(j, &j->client, NULL);
}

static enum error run_step(struct jobs *j)
{
    const struct job_bulk_step c = {.by_steady = 1,
                                    .wall_us = j->at_us,
                                    .steady_us = j->steady_us,
                                    .kept_us = j->kept_us,
                                    .retry_max = j->retry_max,
                                    .queue_max = j->queue_max,
                                    .base_us = j->base_us,
                                    .most_us = j->most_us};
    return command(j, &job_bulk_step_class, &c);
}

static enum error run_abort(struct jobs *j)
{
    const struct job_bulk_abort c = {.id = subject, .owner = nobody};
    return command(j, &job_bulk_abort_class, &c);
}

static void prepare_aborted(struct jobs *j)
{
    start_bulk(j, &j->client, BULK_CANCEL);
    TEST_CHECK(run_abort(j) == OK);
    jobs_pass(j, BULK_KEPT_US);
}

static enum error run_sweep(struct jobs *j)
{
    const struct retention_sweep c = {.limit = 0};
    return command(j, &retention_sweep_class, &c);
}

static enum error bury_all(struct txn *txn, uint64_t at_us, void *context)
{
    struct outbox_row rows[8];
    uint16_t partition = outbox_partition(txn, context);
    uint64_t holder = 0;
    uint32_t count = 0;
    TEST_CHECK(outbox_claim(txn, partition, 1, at_us, &holder) == OK);
    TEST_CHECK(outbox_scan(txn, partition, 0, rows, 8, &count) == OK && count == 3);
    for (uint32_t i = 0; i < count; i++)
        TEST_CHECK(outbox_bury(txn, partition, rows[i].seq, holder, at_us, span_text("410")) == OK);
    return OK;
}

static void prepare_old(struct jobs *j)
{
    struct job_submit c = jobs_wish(j, WORK_KIND_SUCCESS_FAST);
    c.callback = span_text("https://a.example/");
    c.key = span_text("key");
    TEST_CHECK(jobs_submit(j, &c, NULL) == OK);
    TEST_CHECK(jobs_cancel(j, &j->client, &c.id, NULL) == OK);
    TEST_CHECK(fresh_do(&j->fresh, j->at_us, bury_all, &c.id) == OK);
    jobs_pass(j, 31 * JOBS_DAY_US);
}

static void test_every_call_fails_in_a_bulk_action_or_a_sweep(void)
{
    static const struct deed deeds[] = {
        {"a bulk action begins", prepare_both_clients, run_bulk},
        {"a step through all", prepare_bulk_all, run_step},
        {"a step through one's own", prepare_bulk_own, run_step},
        {"an abort", prepare_bulk_own, run_abort},
        {"a bulk action goes", prepare_aborted, run_sweep},
        {"a job goes", prepare_old, run_sweep},
    };
    FAIL_ALL(deeds);
}

/* ---- schedules ---- */

static enum error put(struct jobs *j, struct schedule_put *ret)
{
    *ret = (struct schedule_put){.id = fresh_uuid(),
                                 .client = j->client,
                                 .kind = WORK_KIND_SUCCESS_FAST,
                                 .overlap = OVERLAP_CANCEL,
                                 .grace_us = 3600 * JOBS_SECOND_US,
                                 .name = span_text("each minute"),
                                 .cron = span_text("* * * * *"),
                                 .key = span_text("key")};
    return command(j, &schedule_put_class, ret);
}

static void prepare_client(struct jobs *j)
{
    join(j, &j->client);
}

static enum error run_put(struct jobs *j)
{
    struct schedule_put c;
    return put(j, &c);
}

static void prepare_schedule(struct jobs *j)
{
    struct schedule_put c;
    join(j, &j->client);
    TEST_CHECK(put(j, &c) == OK);
    subject = c.id;
}

static enum error run_schedule(struct jobs *j)
{
    const struct schedule_fire c = {.job = fresh_uuid(),
                                    .wall_us = j->at_us,
                                    .kept_us = j->kept_us,
                                    .runtime_max_ms = 120000,
                                    .payload_max = 262144,
                                    .queue_max = j->queue_max};
    return command(j, &schedule_fire_class, &c);
}

/* The job of the minute before is still there. */
static void prepare_overlap(struct jobs *j)
{
    prepare_schedule(j);
    jobs_pass(j, 60 * JOBS_SECOND_US);
    TEST_CHECK(run_schedule(j) == OK && jobs_count(j, JOB_QUEUED) == 1);
    jobs_pass(j, 60 * JOBS_SECOND_US);
}

static enum error run_switch(struct jobs *j)
{
    const struct schedule_switch c = {.id = subject, .client = j->client, .paused = 1};
    return command(j, &schedule_switch_class, &c);
}

static enum error run_remove(struct jobs *j)
{
    const struct schedule_remove c = {.id = subject, .client = j->client};
    return command(j, &schedule_remove_class, &c);
}

static enum error run_retime(struct jobs *j)
{
    const struct schedule_retime c = {.wall_us = j->at_us - JOBS_DAY_US};
    return command(j, &schedule_retime_class, &c);
}

static void test_every_call_fails_in_what_is_done_with_a_schedule(void)
{
    static const struct deed deeds[] = {
        {"a schedule is put", prepare_client, run_put},
        {"a schedule fires", prepare_overlap, run_schedule},
        {"a schedule is paused", prepare_schedule, run_switch},
        {"a schedule goes", prepare_schedule, run_remove},
        {"the clock has gone back", prepare_schedule, run_retime},
    };
    FAIL_ALL(deeds);
}

/* ---- questions ---- */

/* Within a transaction that would write: what an error leaves is nothing, and the last time all are answered. */
static enum error ask_queue(struct txn *txn, uint64_t at_us, void *context)
{
    struct job_texts texts;
    struct job job;
    uint32_t count = 0;
    bool any;
    (void)at_us;
    (void)context;
    enum error e = job_open(txn, &subject, &job, &texts);
    if (!e)
        e = job_queue_ahead(txn, &job, 100, &count);
    if (!e)
        e = fairness_pending(txn, true, &any);
    return e ? e : fairness_pending(txn, false, &any);
}

static enum error run_ask_queue(struct jobs *j)
{
    return fresh_do(&j->fresh, j->at_us, ask_queue, j);
}

static void prepare_asked(struct jobs *j)
{
    prepare_turns(j);
    subject = submit_as(j, &j->client, NULL);
}

static void prepare_asked_later(struct jobs *j)
{
    prepare_asked(j);
    set_fair(j, 0, 1);
}

static void prepare_asked_without_turns(struct jobs *j)
{
    prepare_both_clients(j);
    subject = submit_as(j, &j->client, NULL);
}

static enum error ask_others(struct txn *txn, uint64_t at_us, void *context)
{
    const struct jobs *j = context;
    struct bulk bulk = {.states = UINT8_MAX, .type = BULK_ANY_TYPE, .last_seq = UINT64_MAX};
    struct uuid ids[BULK_CHANGE_MAX];
    uint32_t count;
    bool end;
    (void)at_us;
    enum error e = bulk_look(txn, &bulk, 3, ids, BULK_CHANGE_MAX, &count, &end);
    bulk.client = j->client;
    bulk.after_seq = 0;
    if (!e)
        e = bulk_look(txn, &bulk, 3, ids, BULK_CHANGE_MAX, &count, &end);
    if (!e)
        e = schedule_list(txn, &j->client, NULL, ids, BULK_CHANGE_MAX, &count);
    return e ? e : job_lease_gather(txn);
}

static enum error run_ask_others(struct jobs *j)
{
    return fresh_do(&j->fresh, j->at_us, ask_others, j);
}

static enum error scatter(struct txn *txn, uint64_t at_us, void *context)
{
    struct due_entry entry = {
        .queue = DUE_JOB_LEASE, .shard = JOB_LEASE_SHARDS, .due_us = at_us, .id = subject};
    (void)context;
    due_set(txn, &entry);
    entry.due_us++;
    due_set(txn, &entry);
    return OK;
}

static void prepare_scattered(struct jobs *j)
{
    prepare_limited(j);
    TEST_CHECK(fresh_do(&j->fresh, j->at_us, scatter, NULL) == OK);
}

static void test_every_call_fails_while_somebody_asks(void)
{
    static const struct deed deeds[] = {
        {"questions about turns", prepare_asked, run_ask_queue},
        {"questions when turns are over", prepare_asked_later, run_ask_queue},
        {"questions without turns", prepare_asked_without_turns, run_ask_queue},
        {"other questions", prepare_scattered, run_ask_others},
    };
    FAIL_ALL(deeds);
}

TEST_LIST
= {
    {"S1_every_call_fails_in_a_submit_or_claim", test_every_call_fails_in_a_submit_or_claim},
    {"S1_every_call_fails_at_a_jobs_end", test_every_call_fails_at_a_jobs_end},
    {"S1_every_call_fails_in_a_pause_or_turn", test_every_call_fails_in_a_pause_or_turn},
    {"S1_every_call_fails_in_a_bulk_action_or_a_sweep", test_every_call_fails_in_a_bulk_action_or_a_sweep},
    {"S1_every_call_fails_in_what_is_done_with_a_schedule",
     test_every_call_fails_in_what_is_done_with_a_schedule},
    {"S1_every_call_fails_while_somebody_asks", test_every_call_fails_while_somebody_asks},
    {NULL, NULL},
};
