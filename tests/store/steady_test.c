/* Steady time over a restart: it goes on where the wall clock is, and never goes back. */
#include "acutest.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "store/counter.h"
#include "store/steady.h"
#include "tests/store/jobs.h"

static struct env clock_env;
static uint64_t clock_us;

static uint64_t clock_wall(struct env *env)
{
    (void)env;
    return clock_us * NS_PER_US;
}

static uint64_t clock_elapsed(struct env *env)
{
    (void)env;
    return 7 * NS_PER_S;
}

/* Opened again when the wall clock says so. */
static void open_at(struct fresh *fresh, uint64_t wall_us)
{
    char text[256];
    struct store_options options = {
        .environment = {.dir = fresh->dir, .map = 64u << 20}, .schema = fresh->schema, .env = &clock_env};
    clock_us = wall_us;
    clock_env = *env_real();
    clock_env.wall = clock_wall;
    clock_env.elapsed = clock_elapsed;
    store_close(fresh->store);
    TEST_ASSERT(store_open(&options, &fresh->store, text, sizeof(text)) == OK);
    TEST_ASSERT(store_load(fresh->store) == OK);
}

static enum error note(struct txn *txn, uint64_t at_us, void *context)
{
    const uint64_t *steady_us = context;
    (void)at_us;
    txn->writes++;
    steady_note(txn, *steady_us);
    return OK;
}

static int64_t noted(struct fresh *fresh)
{
    return fresh_counter(fresh, COUNTER_STEADY, span_of(NULL, 0));
}

static void test_steady_is_noted_once_a_second_and_never_back(void)
{
    struct fresh fresh;
    static const uint64_t times[][2] = {/* said, noted then */
                                        {5000000, 5000000},     {5999999, 5000000},     {6000000, 6000000},
                                        {1, 6000000},           {7500000, 7500000},     {8499999, 7500000},
                                        {INT64_MAX, INT64_MAX}, {UINT64_MAX, INT64_MAX}};
    fresh_open(&fresh);
    TEST_CHECK(noted(&fresh) == 0);
    for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++) {
        uint64_t said = times[i][0];
        TEST_CHECK(fresh_do(&fresh, 1, note, &said) == OK);
        TEST_CHECK_(noted(&fresh) == (int64_t)times[i][1], "%zu", i);
    }
    fresh_close(&fresh);
}

static void test_steady_begins_at_the_wall_clock_and_not_before_what_is_noted_D9(void)
{
    struct fresh fresh;
    uint64_t said = JOBS_AT_US;
    fresh_open(&fresh);
    TEST_CHECK(fresh_do(&fresh, 1, note, &said) == OK);
    open_at(&fresh, JOBS_AT_US + 5000000);
    TEST_CHECK(store_steady_us(fresh.store) == JOBS_AT_US + 5000000);
    open_at(&fresh, JOBS_AT_US - 3650 * JOBS_DAY_US);
    TEST_CHECK(store_steady_us(fresh.store) == JOBS_AT_US);
    open_at(&fresh, JOBS_AT_US);
    TEST_CHECK(store_steady_us(fresh.store) == JOBS_AT_US);
    fresh_close(&fresh);
}

/* The clock was ten years ahead when the server ran, and is right when it starts again: what waits for a lease or a backoff
 * doesn't wait for ten years. */
static void test_nothing_waits_for_years_after_a_clock_was_put_right_J6_D9(void)
{
    struct jobs j;
    struct job_claimed claimed[JOB_CLAIM_MAX];
    uint32_t count;
    jobs_open(&j);
    struct job_submit user = jobs_wish_user(&j, "x.mail");
    TEST_CHECK(jobs_submit(&j, &user, NULL) == OK);
    j.steady_us += 3650 * JOBS_DAY_US;
    struct jobs_held failed = jobs_in(&j, JOB_FAILED);
    TEST_CHECK(jobs_retry(&j, &j.client, &failed.id, NULL) == OK);
    struct job_claim c = jobs_claim_of(&j, 1);
    c.lane = LANE_OUTSIDE;
    c.client = j.client;
    c.owner = 0;
    TEST_CHECK(jobs_claim(&j, &c, claimed, &count) == OK && count == 1);
    open_at(&j.fresh, JOBS_AT_US);
    j.start++;
    j.steady_us = store_steady_us(j.fresh.store);
    TEST_CHECK(j.steady_us >= JOBS_AT_US + 3650 * JOBS_DAY_US);
    j.grace_us = j.steady_us + JOBS_LEASE_US;
    jobs_pass(&j, JOBS_LEASE_US + STEADY_NOTE_US);
    TEST_CHECK(jobs_fire(&j, NULL, 0) == 2);
    TEST_CHECK(jobs_look(&j, &failed.id).lane == LANE_SERVER && jobs_look(&j, &user.id).lane == LANE_OUTSIDE);
    jobs_close(&j);
}

TEST_LIST
= {
    {"steady: noted once a second, never back", test_steady_is_noted_once_a_second_and_never_back},
    {"steady: begins at the wall clock, not before what is noted (D9)",
     test_steady_begins_at_the_wall_clock_and_not_before_what_is_noted_D9},
    {"steady: nothing waits for years after a clock was put right (J6, D9)",
     test_nothing_waits_for_years_after_a_clock_was_put_right_J6_D9},
    {NULL, NULL},
};
