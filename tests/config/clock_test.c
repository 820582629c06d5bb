#include "acutest.h"

#include "config/clock.h"

#define DAY_NS (86400 * NS_PER_S)

static void test_nobody_moves_a_clock_that_is_not_there(void)
{
    TEST_CHECK(!clock_advance(1) && clock_ahead() == 0);
}

static void test_amb_78_wall_time_is_ahead_and_monotonic_time_is_not(void)
{
    struct env *real = env_real(), *env = clock_env(89 * DAY_NS);
    uint64_t before = real->wall(real), wall = env->wall(env), after = real->wall(real);
    TEST_CHECK(wall >= before + 89 * DAY_NS && wall <= after + 89 * DAY_NS);
    before = real->now(real);
    uint64_t now = env->now(env);
    after = real->now(real);
    TEST_CHECK(now >= before && now <= after);
    TEST_CHECK(!env->simulated);
    TEST_CHECK(clock_advance(2 * DAY_NS) && clock_ahead() == 91 * DAY_NS);
    TEST_CHECK(env->wall(env) >= wall + 2 * DAY_NS);
    TEST_CHECK(real->wall(real) < wall);
    before = real->now(real);
    uint64_t elapsed = env->elapsed(env);
    after = real->now(real);
    TEST_CHECK(elapsed >= before + 2 * DAY_NS && elapsed <= after + 2 * DAY_NS); /* of the 89 nobody knows */
}

static void test_time_has_an_end(void)
{
    clock_env(0);
    TEST_CHECK(clock_advance(CLOCK_AHEAD_MAX_NS) && clock_ahead() == CLOCK_AHEAD_MAX_NS);
    TEST_CHECK(!clock_advance(1) && clock_ahead() == CLOCK_AHEAD_MAX_NS);
    TEST_CHECK(!clock_advance(UINT64_MAX));
    clock_env(UINT64_MAX);
    TEST_CHECK(clock_ahead() == CLOCK_AHEAD_MAX_NS);
}

TEST_LIST
= {
    {"nobody moves a clock that is not there", test_nobody_moves_a_clock_that_is_not_there},
    {"AMB-78 wall time is ahead and monotonic time is not",
     test_amb_78_wall_time_is_ahead_and_monotonic_time_is_not},
    {"time has an end", test_time_has_an_end},
    {NULL, NULL},
};
