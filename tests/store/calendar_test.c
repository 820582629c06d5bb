/* The calendar: leaps of the wall clock, and what retention believes of them. */
#include "acutest.h"

#include "store/calendar.h"

#define S        UINT64_C(1000000)
#define HOUR     (3600 * S)
#define DAY      (24 * HOUR)
#define WALL     (UINT64_C(1800000000) * S)
#define TRUST    (CALENDAR_TRUST_S * S)
#define ELAPSED  (5 * HOUR) /* of the machine, before */
#define OPEN(at) calendar_open(&calendar, ELAPSED, WALL, at)

static struct calendar calendar;

/* So long after the opening, with a clock that is so far ahead. */
static uint64_t after(uint64_t passed, int64_t ahead)
{
    return calendar_time(&calendar, ELAPSED + passed, WALL + passed + (uint64_t)ahead) - WALL;
}

/* A look each minute, in (from, to]. */
static uint64_t looks(uint64_t from, uint64_t to, int64_t ahead)
{
    uint64_t believed = 0;
    for (uint64_t at = from + 60 * S; at <= to; at += 60 * S)
        believed = after(at, ahead);
    return believed;
}

static void test_a_clock_that_is_right_is_believed(void)
{
    OPEN(0);
    TEST_CHECK(after(0, 0) == 0 && after(S, 0) == S);
    TEST_CHECK(looks(0, 3 * DAY, 0) == 3 * DAY);
    OPEN(0);
    TEST_CHECK(after(300 * DAY, 0) == 300 * DAY); /* nobody looked meanwhile */
}

static void test_a_leap_is_believed_when_every_token_is_over(void)
{
    for (uint64_t before = 0; before <= 9 * HOUR; before += 45 * 60 * S) {
        OPEN(0);
        (void)looks(0, before, 0);
        uint64_t held = before + TRUST - 60 * S, then = before + 2 * TRUST + 60 * S;
        TEST_CHECK(after(before + S, (int64_t)DAY) == before + S);
        TEST_CHECK(looks(before, held, (int64_t)DAY) == held);
        TEST_CHECK(looks(held, then, (int64_t)DAY) == then + DAY);
    }
}

static void test_a_leap_that_is_taken_back_leaves_nothing(void)
{
    OPEN(0);
    TEST_CHECK(looks(0, 6 * HOUR, (int64_t)DAY) > 0);
    TEST_CHECK(after(6 * HOUR + S, 0) == 6 * HOUR + S);
    TEST_CHECK(looks(6 * HOUR, 3 * DAY, 0) == 3 * DAY);
    TEST_CHECK(after(3 * DAY + S, (int64_t)DAY) == 3 * DAY + S);
}

static void test_a_clock_that_goes_back_is_believed_at_once(void)
{
    OPEN(0);
    TEST_CHECK(after(HOUR, 0) == HOUR);
    TEST_CHECK(after(HOUR + S, -(int64_t)DAY) + DAY == HOUR + S);
    TEST_CHECK(after(2 * HOUR, 0) + DAY == 2 * HOUR); /* and forward again is a leap */
}

static void test_at_a_start_it_goes_on_where_retention_was(void)
{
    OPEN(WALL - DAY);
    TEST_CHECK(after(0, 0) + DAY == 0 && after(HOUR, 0) + DAY == HOUR);
    TEST_CHECK(looks(HOUR, TRUST - 60 * S, 0) + DAY == TRUST - 60 * S);
    TEST_CHECK(looks(TRUST, 2 * TRUST + 60 * S, 0) == 2 * TRUST + 60 * S);
    OPEN(WALL + DAY); /* retention was there by a clock that was ahead */
    TEST_CHECK(after(0, 0) == 0 && after(HOUR, 0) == HOUR);
}

TEST_LIST
= {
    {"calendar: a clock that is right is believed", test_a_clock_that_is_right_is_believed},
    {"calendar: a leap is believed when every token is over",
     test_a_leap_is_believed_when_every_token_is_over},
    {"calendar: a leap that is taken back leaves nothing", test_a_leap_that_is_taken_back_leaves_nothing},
    {"calendar: a clock that goes back is believed at once", test_a_clock_that_goes_back_is_believed_at_once},
    {"calendar: at a start it goes on where retention was", test_at_a_start_it_goes_on_where_retention_was},
    {NULL, NULL},
};
