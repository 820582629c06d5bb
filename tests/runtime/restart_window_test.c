#include "runtime/restart_window.h"

#include <stdlib.h>
#include <string.h>

#include "acutest.h"

#define SECOND UINT64_C(1000000000)

enum { CRASHES_MAX = 40 };

/* One row of the conformance file: R means restart, T means terminate. */
struct vector {
    const char *id;
    uint32_t intensity;
    uint64_t period;
    const char *outcomes;
    uint64_t crashes[CRASHES_MAX];
};

static const struct vector vectors[] = {
    {.id = "V01", .intensity = 0, .period = 5, .crashes = {0}, .outcomes = "T"},
    {.id = "V02", .intensity = 1, .period = 5, .crashes = {0, 6}, .outcomes = "RR"},
    {.id = "V04", .intensity = 2, .period = 10, .crashes = {0, 5, 11}, .outcomes = "RRR"},
    {.id = "V06", .intensity = 2, .period = 10, .crashes = {0, 0, 11}, .outcomes = "RRR"},
    {.id = "V08", .intensity = 3, .period = 5, .crashes = {0, 1, 2, 6, 7, 8}, .outcomes = "RRRRRR"},
    {.id = "V11", .intensity = 1, .period = 1, .crashes = {0, 2, 4, 6}, .outcomes = "RRRR"},
    {.id = "V13", .intensity = 5, .period = 60, .crashes = {0, 10, 20, 30, 40, 61}, .outcomes = "RRRRRR"},
    {.id = "V15", .intensity = 3, .period = 5, .crashes = {0, 1, 2, 6}, .outcomes = "RRRR"},
    {.id = "INT-01", .intensity = 0, .period = 5, .crashes = {7}, .outcomes = "T"},
    {.id = "INT-02", .intensity = 2, .period = 3600, .crashes = {1, 2, 3}, .outcomes = "RRT"},
    {.id = "INT-04", .intensity = 2, .period = 10, .crashes = {0, 5, 11}, .outcomes = "RRR"},
    {.id = "INT-06", .intensity = 3, .period = 5, .crashes = {0, 1, 2, 6, 7, 8}, .outcomes = "RRRRRR"},
    /* The cases around those: the edge of the closed interval, and what the list leaves out. */
    {.id = "edge: one period old still counts",
     .intensity = 1,
     .period = 5,
     .crashes = {0, 5},
     .outcomes = "RT"},
    {.id = "edge: of several, the oldest",
     .intensity = 2,
     .period = 10,
     .crashes = {0, 5, 10},
     .outcomes = "RRT"},
    {.id = "burst at one time", .intensity = 3, .period = 5, .crashes = {4, 4, 4, 4}, .outcomes = "RRRT"},
    {.id = "slides, then ends", .intensity = 3, .period = 5, .crashes = {0, 1, 2, 6, 6}, .outcomes = "RRRRT"},
    {.id = "refused ones are not recorded",
     .intensity = 1,
     .period = 5,
     .crashes = {0, 1, 2, 3, 4, 5, 6, 7, 11, 12},
     .outcomes = "RTTTTTRTTR"},
    {.id = "default flags, FLAG-04", .intensity = 1, .period = 5, .crashes = {0, 4}, .outcomes = "RT"},
    {.id = "inline to the full",
     .intensity = 8,
     .period = 8,
     .crashes = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10},
     .outcomes = "RRRRRRRRTRRT"},
    {.id = "first ring size",
     .intensity = 9,
     .period = 8,
     .crashes = {0, 1, 2, 3, 4, 5, 6, 7, 8, 8, 9, 10, 10},
     .outcomes = "RRRRRRRRRTRRT"},
};

static struct restart_window window_make(uint32_t intensity, uint64_t period_ns, uint64_t *ring)
{
    struct restart_window w;
    memset(&w, 0xa5, sizeof(w));
    if (!restart_window_init(&w, intensity, period_ns, ring))
        abort();
    return w;
}

static void run_vector(const struct vector *v, uint64_t unit)
{
    uint64_t ring[CRASHES_MAX];
    struct restart_window w = window_make(v->intensity, v->period * unit, ring);
    for (size_t i = 0; v->outcomes[i] != '\0'; i++) {
        bool restart = restart_window_grant(&w, v->crashes[i] * unit);
        TEST_CHECK_(restart == (v->outcomes[i] == 'R'), "crash %zu at %llu: %s", i,
                    (unsigned long long)v->crashes[i], restart ? "restarted" : "terminated");
    }
}

static void test_vectors(void)
{
    for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
        TEST_CASE(vectors[i].id);
        run_vector(&vectors[i], SECOND);
        run_vector(&vectors[i], 1);
    }
}

static void test_int_08_never_terminates(void)
{
    struct restart_window w = window_make(1, SECOND, NULL);
    for (uint64_t i = 0; i < 4; i++)
        TEST_CHECK(restart_window_grant(&w, i * (2 * SECOND + SECOND / 10)));
}

static void test_closed_interval_to_the_nanosecond(void)
{
    struct restart_window w = window_make(1, 5 * SECOND, NULL);
    TEST_CHECK(restart_window_grant(&w, 100));
    TEST_CHECK(!restart_window_grant(&w, 100 + 5 * SECOND));
    TEST_CHECK(restart_window_grant(&w, 101 + 5 * SECOND));
}

static void test_no_wrap_at_either_end_of_time(void)
{
    struct restart_window w = window_make(2, UINT64_MAX, NULL);
    TEST_CHECK(restart_window_grant(&w, 0));
    TEST_CHECK(restart_window_grant(&w, UINT64_MAX - 1));
    TEST_CHECK(!restart_window_grant(&w, UINT64_MAX));
    TEST_CHECK(restart_window_used(&w, UINT64_MAX) == 2);

    w = window_make(1, 5, NULL);
    TEST_CHECK(restart_window_grant(&w, UINT64_MAX - 6));
    TEST_CHECK(!restart_window_grant(&w, UINT64_MAX - 1));
    TEST_CHECK(restart_window_grant(&w, UINT64_MAX));
}

static void test_used_is_the_operators_view(void)
{
    struct restart_window w = window_make(3, 10, NULL);
    TEST_CHECK(restart_window_intensity(&w) == 3);
    TEST_CHECK(restart_window_used(&w, 0) == 0);
    TEST_CHECK(restart_window_grant(&w, 5));
    TEST_CHECK(restart_window_grant(&w, 9));
    TEST_CHECK(restart_window_used(&w, 9) == 2);
    TEST_CHECK(restart_window_used(&w, 15) == 2);
    TEST_CHECK(restart_window_used(&w, 16) == 1);
    TEST_CHECK(restart_window_used(&w, 20) == 0);
    TEST_CHECK(restart_window_grant(&w, 20));
    TEST_CHECK(restart_window_grant(&w, 21));
    TEST_CHECK(restart_window_used(&w, 21) == 2);
    /* A view taken with an older reading of the clock counts what was granted since. */
    TEST_CHECK(restart_window_used(&w, 20) == 2);
    w = window_make(3, 10, NULL);
    TEST_CHECK(restart_window_grant(&w, 21));
    TEST_CHECK(restart_window_used(&w, 20) == 1);
}

static void test_init_refuses(void)
{
    struct restart_window w;
    uint64_t ring[9];
    TEST_CHECK(!restart_window_init(&w, RESTART_WINDOW_INTENSITY_MAX + 1, SECOND, ring));
    TEST_CHECK(!restart_window_init(&w, UINT32_MAX, SECOND, ring));
    TEST_CHECK(!restart_window_init(&w, 1, 0, ring));
    TEST_CHECK(!restart_window_init(&w, RESTART_WINDOW_INLINE + 1, SECOND, NULL));
    TEST_CHECK(restart_window_init(&w, RESTART_WINDOW_INLINE + 1, SECOND, ring));
    TEST_CHECK(restart_window_init(&w, RESTART_WINDOW_INLINE, SECOND, NULL));
}

static void test_ring_bytes(void)
{
    TEST_CHECK(restart_window_ring_bytes(0) == 0);
    TEST_CHECK(restart_window_ring_bytes(RESTART_WINDOW_INLINE) == 0);
    TEST_CHECK(restart_window_ring_bytes(RESTART_WINDOW_INLINE + 1) == 9 * sizeof(uint64_t));
    TEST_CHECK(restart_window_ring_bytes(RESTART_WINDOW_INTENSITY_MAX) == 8000000);
}

static void test_largest_intensity(void)
{
    uint32_t intensity = RESTART_WINDOW_INTENSITY_MAX;
    uint64_t *ring = malloc(restart_window_ring_bytes(intensity));
    TEST_ASSERT(ring != NULL);
    struct restart_window w = window_make(intensity, intensity, ring);
    uint32_t granted = 0;
    for (uint64_t now = 0; now < intensity; now++)
        granted += restart_window_grant(&w, now);
    TEST_CHECK(granted == intensity);
    TEST_CHECK(restart_window_used(&w, intensity) == intensity);
    TEST_CHECK(!restart_window_grant(&w, intensity));
    TEST_CHECK(restart_window_grant(&w, intensity + 1));
    TEST_CHECK(restart_window_used(&w, intensity + 1) == intensity);
    free(ring);
}

/* The rule as it is written, with every granted time kept. */
struct naive {
    uint32_t intensity;
    uint64_t period;
    size_t count;
    uint64_t granted[CRASHES_MAX];
};

static uint32_t naive_used(const struct naive *n, uint64_t now)
{
    uint64_t from = now > n->period ? now - n->period : 0;
    uint32_t used = 0;
    for (size_t i = 0; i < n->count; i++)
        used += n->granted[i] >= from && n->granted[i] <= now;
    return used;
}

static bool naive_grant(struct naive *n, uint64_t now)
{
    if (naive_used(n, now) + 1 > n->intensity)
        return false;
    n->granted[n->count++] = now;
    return true;
}

static uint64_t random_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static bool agrees(uint64_t seed)
{
    uint64_t ring[16];
    uint64_t random = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
    uint32_t intensity = (uint32_t)(random_next(&random) % 13);
    uint64_t unit = random_next(&random) % 2 ? SECOND : 1;
    uint64_t period = 1 + random_next(&random) % 20;
    uint64_t gap = 1 + random_next(&random) % (2 * period);
    uint64_t now = random_next(&random) % 3 * unit;
    struct naive n = {.intensity = intensity, .period = period * unit};
    struct restart_window w = window_make(intensity, period * unit, ring);

    for (size_t i = 0; i < CRASHES_MAX; i++) {
        if (restart_window_grant(&w, now) != naive_grant(&n, now))
            return false;
        if (restart_window_used(&w, now) != naive_used(&n, now))
            return false;
        now += random_next(&random) % gap * unit;
    }
    return true;
}

static void test_300000_random_sequences(void)
{
    for (uint64_t seed = 1; seed <= 300000; seed++)
        if (!TEST_CHECK_(agrees(seed), "seed %llu", (unsigned long long)seed))
            return;
}

TEST_LIST
= {
    {"restart_window: V01 V02 V04 V06 V08 V11 V13 V15 INT-01 INT-02 INT-04 INT-06 and edges", test_vectors},
    {"restart_window: INT-08 a crash every 2.1 s", test_int_08_never_terminates},
    {"restart_window: closed interval to the nanosecond", test_closed_interval_to_the_nanosecond},
    {"restart_window: no wrap at either end of time", test_no_wrap_at_either_end_of_time},
    {"restart_window: used is the operator's view", test_used_is_the_operators_view},
    {"restart_window: init refuses", test_init_refuses},
    {"restart_window: ring bytes", test_ring_bytes},
    {"restart_window: largest intensity", test_largest_intensity},
    {"restart_window: 300,000 random sequences against the rule as written", test_300000_random_sequences},
    {NULL, NULL},
};
