/* A client's limit: as many of its jobs run as may, what is beyond it is in nobody's way, and each comes to its turn. */
#include "acutest.h"

#include "store/client.h"
#include "store/counter.h"
#include "store/job_change.h"
#include "store/job_lease.h"
#include "store/job_pause.h"
#include "store/job_submit.h"
#include "tests/store/fresh.h"

#define AT_US     UINT64_C(1700000000000000)
#define SECOND_US UINT64_C(1000000)

static struct uuid join(struct fresh *fresh)
{
    struct client_create c = {.id = fresh_uuid(), .from = span_text("192.0.2.1")};
    TEST_ASSERT(batch_one(fresh->store, &client_create_class, AT_US, &c, NULL) == OK);
    return c.id;
}

static struct uuid submit_of(struct fresh *fresh, const struct uuid *client, uint8_t kind)
{
    struct job_submit c = {.id = fresh_uuid(),
                           .client = *client,
                           .type = JOB_EXECUTE,
                           .kind = kind,
                           .runtime_max_ms = 120000,
                           .payload_max = 262144,
                           .queue_max = 100000};
    TEST_ASSERT(batch_one(fresh->store, &job_submit_class, AT_US, &c, NULL) == OK);
    return c.id;
}

static struct uuid submit(struct fresh *fresh, const struct uuid *client)
{
    return submit_of(fresh, client, WORK_KIND_SUCCESS_FAST);
}

/* As a worker does: again while jobs are only set aside. */
static enum error claim(struct fresh *fresh, uint32_t client_max, struct job_claimed *ret)
{
    struct answer answer;
    struct job_claim c = {.lane = LANE_SERVER,
                          .most = 1,
                          .owner = 1,
                          .running = 1,
                          .client_max = client_max,
                          .steady_us = AT_US,
                          .lease_us = SECOND_US,
                          .worker = span_text("worker:0")};
    enum error e;
    do
        e = batch_one(fresh->store, &job_claim_class, AT_US, &c, &answer);
    while (!e && answer.size == 0);
    if (!e)
        memcpy(ret, answer.bytes, sizeof(*ret));
    return e;
}

static bool claims(struct fresh *fresh, uint32_t client_max, const struct uuid *id, struct job_claimed *ret)
{
    return claim(fresh, client_max, ret) == OK && uuid_equal(&ret->id, id);
}

static void finish(struct fresh *fresh, const struct job_claimed *claimed)
{
    struct job_finish f = {.id = claimed->id,
                           .fence = claimed->fence,
                           .event = JOB_SUCCEED,
                           .steady_us = AT_US,
                           .kept_us = SECOND_US,
                           .retry_max = 3};
    TEST_ASSERT(batch_one(fresh->store, &job_finish_class, AT_US, &f, NULL) == OK);
}

static void cancel(struct fresh *fresh, const struct uuid *id)
{
    struct job_cancel c = {.id = *id, .kept_us = SECOND_US};
    TEST_ASSERT(batch_one(fresh->store, &job_cancel_class, AT_US, &c, NULL) == OK);
}

static uint8_t lane_of(struct fresh *fresh, const struct uuid *id)
{
    struct job job = {.lane = LANE_COUNT};
    struct view *view = view_open_outside(fresh->store, 0);
    TEST_CHECK(job_read(&view->txn, id, &job) == OK);
    view_close(view);
    return job.lane;
}

static int64_t counted(struct fresh *fresh, const struct uuid *client)
{
    return fresh_counter(fresh, COUNTER_JOBS_COUNTED, span_of(client, sizeof(*client)));
}

static void test_limit_holds_one_client_and_lets_others_by(void)
{
    struct fresh fresh;
    struct job_claimed a, b, c;
    struct uuid greedy[5];
    fresh_open(&fresh);
    struct uuid one = join(&fresh), two = join(&fresh);
    for (int i = 0; i < 5; i++)
        greedy[i] = submit(&fresh, &one);
    struct uuid modest = submit(&fresh, &two);
    TEST_CHECK(claims(&fresh, 2, &greedy[0], &a) && claims(&fresh, 2, &greedy[1], &b));
    TEST_CHECK(claims(&fresh, 2, &modest, &c));
    TEST_CHECK(claim(&fresh, 2, &c) == ERR_NOT_FOUND && lane_of(&fresh, &greedy[4]) == LANE_LIMITED);
    TEST_CHECK(counted(&fresh, &one) == 2 && counted(&fresh, &two) == 1);
    fresh_reopen(&fresh);
    finish(&fresh, &b);
    TEST_CHECK(lane_of(&fresh, &greedy[2]) == LANE_SERVER && lane_of(&fresh, &greedy[3]) == LANE_LIMITED);
    TEST_CHECK(claims(&fresh, 2, &greedy[2], &b) && claim(&fresh, 2, &c) == ERR_NOT_FOUND);
    finish(&fresh, &a);
    finish(&fresh, &b);
    TEST_CHECK(claims(&fresh, 2, &greedy[3], &a) && claims(&fresh, 2, &greedy[4], &b));
    finish(&fresh, &a);
    finish(&fresh, &b);
    TEST_CHECK(counted(&fresh, &one) == 0);
    fresh_close(&fresh);
}

static void test_limit_off_counts_nothing(void)
{
    struct fresh fresh;
    struct job_claimed a;
    fresh_open(&fresh);
    struct uuid client = join(&fresh);
    for (int i = 0; i < 3; i++)
        (void)submit(&fresh, &client);
    for (int i = 0; i < 3; i++)
        TEST_CHECK(claim(&fresh, 0, &a) == OK);
    TEST_CHECK(counted(&fresh, &client) == 0);
    fresh_close(&fresh);
}

static void test_limit_switched_off_leaves_nobody_behind(void)
{
    struct fresh fresh;
    struct job_claimed a;
    struct uuid jobs[6];
    fresh_open(&fresh);
    struct uuid client = join(&fresh);
    for (int i = 0; i < 6; i++)
        jobs[i] = submit(&fresh, &client);
    TEST_CHECK(claims(&fresh, 1, &jobs[0], &a));
    struct job_claimed none;
    TEST_CHECK(claim(&fresh, 1, &none) == ERR_NOT_FOUND && lane_of(&fresh, &jobs[5]) == LANE_LIMITED);
    finish(&fresh, &a); /* from now on there is no limit */
    for (int i = 1; i < 6; i++)
        TEST_CHECK(claims(&fresh, 0, &jobs[i], &a));
    TEST_CHECK(claim(&fresh, 0, &a) == ERR_NOT_FOUND);
    fresh_close(&fresh);
}

static void test_limit_raised_counts_with_the_next_claim(void)
{
    struct fresh fresh;
    struct job_claimed a;
    struct uuid jobs[6];
    fresh_open(&fresh);
    struct uuid client = join(&fresh);
    for (int i = 0; i < 6; i++)
        jobs[i] = submit(&fresh, &client);
    TEST_CHECK(claims(&fresh, 1, &jobs[0], &a) && claim(&fresh, 1, &a) == ERR_NOT_FOUND);
    struct uuid newest = submit(&fresh, &client);
    TEST_CHECK(claims(&fresh, 3, &newest, &a)); /* the others are away; it brings one of them back */
    TEST_CHECK(claims(&fresh, 3, &jobs[1], &a));
    TEST_CHECK(claim(&fresh, 3, &a) == ERR_NOT_FOUND && counted(&fresh, &client) == 3);
    fresh_close(&fresh);
}

static void test_limit_a_promise_that_is_broken_is_the_next_ones(void)
{
    struct fresh fresh;
    struct job_claimed a;
    fresh_open(&fresh);
    struct uuid client = join(&fresh), first = submit(&fresh, &client), second = submit(&fresh, &client);
    struct uuid slow = submit_of(&fresh, &client, WORK_KIND_SUCCESS_SLOW), last = submit(&fresh, &client);
    TEST_CHECK(claims(&fresh, 1, &first, &a));
    struct job_claimed none;
    TEST_CHECK(claim(&fresh, 1, &none) == ERR_NOT_FOUND && lane_of(&fresh, &last) == LANE_LIMITED);
    finish(&fresh, &a);
    TEST_CHECK(lane_of(&fresh, &second) == LANE_SERVER);
    cancel(&fresh, &second); /* before it is claimed */
    TEST_CHECK(lane_of(&fresh, &slow) == LANE_SERVER);
    struct job_pause pause = {.scope = PAUSE_WORK,
                              .name = job_work_id(fresh.store, WORK_KIND_SUCCESS_SLOW, span_text(""))};
    TEST_CHECK(batch_one(fresh.store, &job_pause_class, AT_US, &pause, NULL) == OK);
    TEST_CHECK(claims(&fresh, 1, &last, &a)); /* the slow one is paused */
    TEST_CHECK(lane_of(&fresh, &slow) == LANE_PAUSED_WORK);
    cancel(&fresh, &last); /* while it runs */
    TEST_CHECK(counted(&fresh, &client) == 0);
    fresh_close(&fresh);
}

static void test_limit_does_not_hold_the_one_that_an_operator_wants(void)
{
    struct fresh fresh;
    struct job_claimed a, b;
    fresh_open(&fresh);
    struct uuid client = join(&fresh), first = submit(&fresh, &client), second = submit(&fresh, &client);
    TEST_CHECK(claims(&fresh, 1, &first, &a) && claim(&fresh, 1, &b) == ERR_NOT_FOUND);
    struct job_run run = {.id = second};
    TEST_CHECK(batch_one(fresh.store, &job_run_class, AT_US, &run, NULL) == OK);
    TEST_CHECK(claims(&fresh, 1, &second, &b) && counted(&fresh, &client) == 2);
    fresh_close(&fresh);
}

/* Of a kind of the client's own. */
static struct uuid submit_outside(struct fresh *fresh, const struct uuid *client)
{
    struct job_submit c = {.id = fresh_uuid(),
                           .client = *client,
                           .type = JOB_EXECUTE,
                           .kind = WORK_KIND_USER,
                           .kind_name = span_text("x.mine"),
                           .payload = span_text("{}"),
                           .runtime_max_ms = 120000,
                           .payload_max = 262144,
                           .queue_max = 100000};
    TEST_ASSERT(batch_one(fresh->store, &job_submit_class, AT_US, &c, NULL) == OK);
    return c.id;
}

/* As a program outside does: one job, if one may run. */
static enum error claim_outside(struct fresh *fresh, const struct uuid *client, struct job_claimed *ret)
{
    struct answer answer;
    struct job_claim c = {.lane = LANE_OUTSIDE,
                          .client = *client,
                          .most = 1,
                          .running = 1,
                          .client_max = 1,
                          .steady_us = AT_US,
                          .lease_us = SECOND_US,
                          .worker = span_text("mine")};
    enum error e = batch_one(fresh->store, &job_claim_class, AT_US, &c, &answer);
    if (!e && answer.size == sizeof(*ret))
        memcpy(ret, answer.bytes, sizeof(*ret));
    return !e && answer.size == 0 ? ERR_NOT_FOUND : e;
}

/* Seed 1193 of the simulator: the one for which nobody came had the promise, and the client's others waited for ever. */
static void test_limit_promises_to_each_work(void)
{
    struct fresh fresh;
    struct job_claimed a, none;
    fresh_open(&fresh);
    struct uuid client = join(&fresh), first = submit_outside(&fresh, &client);
    struct uuid outside = submit_outside(&fresh, &client), ours = submit(&fresh, &client);
    TEST_CHECK(claim_outside(&fresh, &client, &a) == OK && uuid_equal(&a.id, &first));
    TEST_CHECK(claim_outside(&fresh, &client, &none) == ERR_NOT_FOUND &&
               claim(&fresh, 1, &none) == ERR_NOT_FOUND);
    TEST_CHECK(lane_of(&fresh, &outside) == LANE_LIMITED && lane_of(&fresh, &ours) == LANE_LIMITED);
    finish(&fresh, &a);
    TEST_CHECK(lane_of(&fresh, &outside) == LANE_OUTSIDE && lane_of(&fresh, &ours) == LANE_SERVER);
    TEST_CHECK(claims(&fresh, 1, &ours, &a)); /* and nobody asks for the other one */
    TEST_CHECK(claim_outside(&fresh, &client, &none) == ERR_NOT_FOUND && counted(&fresh, &client) == 1);
    finish(&fresh, &a);
    TEST_CHECK(claim_outside(&fresh, &client, &a) == OK && uuid_equal(&a.id, &outside));
    fresh_close(&fresh);
}

TEST_LIST
= {
    {"limit holds one client, and lets others by", test_limit_holds_one_client_and_lets_others_by},
    {"limit: off it counts nothing", test_limit_off_counts_nothing},
    {"limit switched off leaves nobody behind", test_limit_switched_off_leaves_nobody_behind},
    {"limit raised counts with the next claim", test_limit_raised_counts_with_the_next_claim},
    {"limit: a promise that is broken is the next one's",
     test_limit_a_promise_that_is_broken_is_the_next_ones},
    {"limit doesn't hold the one that an operator wants",
     test_limit_does_not_hold_the_one_that_an_operator_wants},
    {"limit: a slot is promised to the first one of each work", test_limit_promises_to_each_work},
    {NULL, NULL},
};
