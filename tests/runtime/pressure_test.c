#include "acutest.h"

#include <pthread.h>
#include <string.h>

#include "runtime/pressure.h"
#include "runtime/telemetry.h"

static uint64_t clock_read(void *unused)
{
    (void)unused;
    return 0;
}

static struct telemetry *telemetry;

static void begin(void)
{
    telemetry = telemetry_create(&(struct telemetry_options){.shards = 1, .now = clock_read});
    TEST_ASSERT(telemetry != NULL);
    telemetry_install(telemetry);
}

static void end(void)
{
    telemetry_destroy(telemetry);
}

static uint64_t transitions(void)
{
    return telemetry_counter_sum(telemetry, TELEMETRY_PRESSURE_TRANSITION);
}

/* The level of a queue of 100 places after these depths, one after the other. */
static enum pressure_level level_after(const uint32_t *depths, size_t count)
{
    struct pressure pressure;
    struct pressure_transition transition;

    pressure_init(&pressure, 100);
    for (size_t i = 0; i < count; i++)
        pressure_update(&pressure, depths[i], 100, &transition);
    return pressure.level;
}

#define LEVEL_AFTER(...) \
    level_after((const uint32_t[]){__VA_ARGS__}, sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

static void test_levels_going_up(void)
{
    TEST_CHECK(LEVEL_AFTER(0) == PRESSURE_NORMAL);
    TEST_CHECK(LEVEL_AFTER(69) == PRESSURE_NORMAL);
    TEST_CHECK(LEVEL_AFTER(70) == PRESSURE_WARN);
    TEST_CHECK(LEVEL_AFTER(84) == PRESSURE_WARN);
    TEST_CHECK(LEVEL_AFTER(85) == PRESSURE_DEGRADED);
    TEST_CHECK(LEVEL_AFTER(94) == PRESSURE_DEGRADED);
    TEST_CHECK(LEVEL_AFTER(95) == PRESSURE_SHED);
    TEST_CHECK(LEVEL_AFTER(100) == PRESSURE_SHED);
    TEST_CHECK(LEVEL_AFTER(200) == PRESSURE_SHED);
}

/* AMB-T-19: 0.05 below the threshold, no earlier. */
static void test_levels_going_down(void)
{
    TEST_CHECK(LEVEL_AFTER(70, 69) == PRESSURE_WARN);
    TEST_CHECK(LEVEL_AFTER(70, 66) == PRESSURE_WARN);
    TEST_CHECK(LEVEL_AFTER(70, 65) == PRESSURE_NORMAL);
    TEST_CHECK(LEVEL_AFTER(85, 81) == PRESSURE_DEGRADED);
    TEST_CHECK(LEVEL_AFTER(85, 80) == PRESSURE_WARN);
    TEST_CHECK(LEVEL_AFTER(95, 91) == PRESSURE_SHED);
    TEST_CHECK(LEVEL_AFTER(95, 90) == PRESSURE_DEGRADED);
    TEST_CHECK(LEVEL_AFTER(95, 80) == PRESSURE_WARN);
    TEST_CHECK(LEVEL_AFTER(95, 66) == PRESSURE_WARN);
    TEST_CHECK(LEVEL_AFTER(95, 65) == PRESSURE_NORMAL);
    TEST_CHECK(LEVEL_AFTER(70, 65, 69) == PRESSURE_NORMAL);
}

/* Straight from the words of the contract, in another arithmetic than the module's. */
static enum pressure_level level_by_the_words(enum pressure_level level, uint32_t depth, uint32_t capacity)
{
    static const uint32_t twentieths[] = {0, 14, 17, 19}; /* 0.70, 0.85, 0.95 */
    uint64_t d = (uint64_t)depth * 20, c = capacity;
    enum pressure_level up = d >= 19 * c   ? PRESSURE_SHED
                             : d >= 17 * c ? PRESSURE_DEGRADED
                             : d >= 14 * c ? PRESSURE_WARN
                                           : PRESSURE_NORMAL;

    if (up >= level)
        return up;
    while (level > up && d <= (twentieths[level] - 1) * c)
        level--;
    return level;
}

/* TOP-119: all levels, all depths, all capacities up to 200: the level is right, and the fast check misses no
 * change. */
static void test_every_depth_of_every_small_queue(void)
{
    static const uint32_t reach[] = {0, 14, 17, 19};

    for (uint32_t capacity = 1; capacity <= 200; capacity++) {
        for (enum pressure_level aim = PRESSURE_NORMAL; aim < PRESSURE_LEVEL_COUNT; aim++) {
            for (uint32_t depth = 0; depth <= capacity + 2; depth++) {
                struct pressure pressure;
                struct pressure_transition transition;
                enum pressure_level from, expected;
                bool crossed, changed;

                /* In a very small queue the depth that reaches a level may reach a higher one. */
                pressure_init(&pressure, capacity);
                pressure_update(&pressure, (reach[aim] * capacity + 19) / 20, capacity, &transition);
                from = pressure.level;
                TEST_CHECK(from >= aim);
                expected = level_by_the_words(from, depth, capacity);
                crossed = pressure_crossed(&pressure, depth);
                changed = pressure_update(&pressure, depth, capacity, &transition);
                TEST_CHECK(pressure.level == expected);
                TEST_MSG("capacity %u, from %u, depth %u: %u, not %u", capacity, from, depth, pressure.level,
                         expected);
                TEST_CHECK(changed == (expected != from));
                TEST_CHECK(crossed == changed);
                TEST_CHECK(!changed || (transition.from == from && transition.to == expected &&
                                        transition.depth == depth && transition.capacity == capacity));
            }
        }
    }
}

static void test_the_largest_queue(void)
{
    struct pressure pressure;
    struct pressure_transition transition;

    pressure_init(&pressure, UINT32_MAX);
    TEST_CHECK(
        !pressure_update(&pressure, 3006477106u, UINT32_MAX, &transition)); /* 0.70 is at 3006477106.5 */
    TEST_CHECK(pressure_update(&pressure, 3006477107u, UINT32_MAX, &transition));
    TEST_CHECK(pressure_update(&pressure, UINT32_MAX - 1, UINT32_MAX, &transition));
    TEST_CHECK(pressure.level == PRESSURE_SHED);
    TEST_CHECK(!pressure_crossed(&pressure, UINT32_MAX - 1));
    TEST_CHECK(pressure_crossed(&pressure, 0));
}

static void test_a_changed_capacity_moves_the_bounds(void)
{
    struct pressure pressure;
    struct pressure_transition transition;

    pressure_init(&pressure, 100);
    TEST_CHECK(!pressure_crossed(&pressure, 69));
    TEST_CHECK(pressure_update(&pressure, 69, 80, &transition));
    TEST_CHECK(transition.to == PRESSURE_DEGRADED);
    TEST_CHECK(pressure_update(&pressure, 69, 1000, &transition));
    TEST_CHECK(transition.to == PRESSURE_NORMAL);
    TEST_CHECK(!pressure_crossed(&pressure, 699));
    TEST_CHECK(pressure_crossed(&pressure, 700));
}

struct seen {
    char levels[256];
    char component[64], partition[64];
    int64_t ratio;
};

static void see(void *context, const struct telemetry_record *record)
{
    struct seen *seen = context;

    TEST_CHECK(record->event == TELEMETRY_PRESSURE_TRANSITION);
    strcat(seen->levels, telemetry_record_value(record, DIM_PRESSURE_LEVEL));
    strcat(seen->levels, " ");
    strcpy(seen->component, telemetry_record_value(record, DIM_COMPONENT));
    strcpy(seen->partition, telemetry_record_value(record, DIM_PARTITION));
    seen->ratio = record->measurement;
}

static void test_a_queue_filled_and_drained_is_one_event_per_transition(void)
{
    struct seen seen = {.levels = ""};
    struct pressure pressure;

    begin();
    TEST_ASSERT(telemetry_subscribe(telemetry, NULL, see, &seen) >= 0);
    pressure_init(&pressure, 1024);
    for (uint32_t depth = 0; depth <= 1024; depth++)
        pressure_note(&pressure, depth, 1024, "outbound", "outbound/3");
    TEST_CHECK(strcmp(seen.levels, "warn degraded shed ") == 0);
    TEST_CHECK(seen.ratio == 973 * 1000000 / 1024);
    for (uint32_t depth = 1024; depth-- > 0;)
        pressure_note(&pressure, depth, 1024, "outbound", "outbound/3");
    TEST_CHECK(strcmp(seen.levels, "warn degraded shed degraded warn normal ") == 0);
    TEST_CHECK(strcmp(seen.component, "outbound") == 0);
    TEST_CHECK(strcmp(seen.partition, "outbound/3") == 0);
    TEST_CHECK(transitions() == 6);
    end();
}

static void test_no_flapping_around_a_threshold(void)
{
    struct pressure pressure;

    begin();
    pressure_init(&pressure, 100);
    for (int i = 0; i < 1000; i++) {
        pressure_note(&pressure, 70, 100, "a", "0");
        pressure_note(&pressure, 66, 100, "a", "0");
    }
    TEST_CHECK(transitions() == 1);
    end();
}

static void test_a_jump_is_one_event(void)
{
    struct pressure pressure;

    begin();
    pressure_init(&pressure, 100);
    pressure_note(&pressure, 100, 100, "a", "0");
    TEST_CHECK(transitions() == 1);
    TEST_CHECK(telemetry_counter_label(telemetry, TELEMETRY_PRESSURE_TRANSITION, "shed") == 1);
    pressure_note(&pressure, 0, 100, "a", "0");
    TEST_CHECK(transitions() == 2);
    TEST_CHECK(telemetry_counter_label(telemetry, TELEMETRY_PRESSURE_TRANSITION, "normal") == 1);
    end();
}

/* The level of a component is that of its worst queue, and comes back down with it. */
static void test_gauges_show_the_worst_queue(void)
{
    struct pressure one, two;

    begin();
    pressure_init(&one, 100);
    pressure_init(&two, 100);
    pressure_note(&one, 96, 100, "rooms", "0");
    pressure_note(&two, 72, 100, "rooms", "1");
    TEST_CHECK(telemetry_gauge_get(TELEMETRY_GAUGE_PRESSURE_LEVEL, "rooms") == PRESSURE_SHED);
    TEST_CHECK(telemetry_gauge_get(TELEMETRY_GAUGE_PRESSURE_SHED, "rooms") == 1);
    TEST_CHECK(telemetry_gauge_get(TELEMETRY_GAUGE_PRESSURE_WARN, "rooms") == 1);
    TEST_CHECK(telemetry_gauge_get(TELEMETRY_GAUGE_PRESSURE_LEVEL, "agents") == PRESSURE_NORMAL);
    pressure_note(&one, 0, 100, "rooms", "0");
    TEST_CHECK(telemetry_gauge_get(TELEMETRY_GAUGE_PRESSURE_LEVEL, "rooms") == PRESSURE_WARN);
    TEST_CHECK(telemetry_gauge_get(TELEMETRY_GAUGE_PRESSURE_SHED, "rooms") == 0);
    pressure_note(&two, 0, 100, "rooms", "1");
    TEST_CHECK(telemetry_gauge_get(TELEMETRY_GAUGE_PRESSURE_LEVEL, "rooms") == PRESSURE_NORMAL);
    TEST_CHECK(telemetry_gauge_get(TELEMETRY_GAUGE_PRESSURE_WARN, "rooms") == 0);
    end();
}

enum { MOVERS = 2, ROUNDS = 2000 };

static pthread_barrier_t round_begin, round_end;

static void *move_queue(void *unused)
{
    struct pressure pressure;

    (void)unused;
    pressure_init(&pressure, 100);
    for (int i = 0; i < ROUNDS; i++) {
        pthread_barrier_wait(&round_begin);
        pressure_note(&pressure, 96, 100, "rooms", "0");
        pressure_note(&pressure, 72, 100, "rooms", "0");
        pressure_note(&pressure, 10, 100, "rooms", "0");
        pthread_barrier_wait(&round_end);
    }
    return NULL;
}

/* Two queues of a component rise and fall at once; whichever is last, the component's level is down in the
 * end. */
static void test_gauges_are_right_after_every_race(void)
{
    pthread_t threads[MOVERS];
    int wrong = 0;

    begin();
    pthread_barrier_init(&round_begin, NULL, MOVERS + 1);
    pthread_barrier_init(&round_end, NULL, MOVERS + 1);
    for (int i = 0; i < MOVERS; i++)
        TEST_ASSERT(pthread_create(&threads[i], NULL, move_queue, NULL) == 0);
    for (int i = 0; i < ROUNDS; i++) {
        pthread_barrier_wait(&round_begin);
        pthread_barrier_wait(&round_end);
        wrong += telemetry_gauge_get(TELEMETRY_GAUGE_PRESSURE_LEVEL, "rooms") != PRESSURE_NORMAL;
    }
    for (int i = 0; i < MOVERS; i++)
        pthread_join(threads[i], NULL);
    TEST_CHECK(wrong == 0);
    TEST_MSG("%d of %d", wrong, ROUNDS);
    TEST_CHECK(transitions() == MOVERS * ROUNDS * 3);
    TEST_CHECK(telemetry_gauge_get(TELEMETRY_GAUGE_PRESSURE_SHED, "rooms") == 0);
    TEST_CHECK(telemetry_gauge_get(TELEMETRY_GAUGE_PRESSURE_WARN, "rooms") == 0);
    pthread_barrier_destroy(&round_begin);
    pthread_barrier_destroy(&round_end);
    end();
}

/* AMB-T-20 */
static void test_admission(void)
{
    static const enum pressure_verdict expected[PRESSURE_LEVEL_COUNT][PRIORITY_COUNT] = {
        [PRESSURE_NORMAL] = {PRESSURE_ADMIT, PRESSURE_ADMIT, PRESSURE_ADMIT},
        [PRESSURE_WARN] = {PRESSURE_ADMIT, PRESSURE_ADMIT, PRESSURE_ADMIT},
        [PRESSURE_DEGRADED] = {PRESSURE_DEFER, PRESSURE_ADMIT, PRESSURE_ADMIT},
        [PRESSURE_SHED] = {PRESSURE_REFUSE, PRESSURE_REFUSE, PRESSURE_ADMIT},
    };

    for (enum pressure_level level = PRESSURE_NORMAL; level < PRESSURE_LEVEL_COUNT; level++)
        for (enum pressure_priority priority = PRIORITY_LOW; priority < PRIORITY_COUNT; priority++)
            TEST_CHECK(pressure_admits(level, priority) == expected[level][priority]);
}

static void test_deadlines_get_stricter(void)
{
    TEST_CHECK(pressure_deadline_scale(PRESSURE_NORMAL) == 100);
    TEST_CHECK(pressure_deadline_scale(PRESSURE_WARN) == 100);
    TEST_CHECK(pressure_deadline_scale(PRESSURE_DEGRADED) == 50);
    TEST_CHECK(pressure_deadline_scale(PRESSURE_SHED) == 25);
}

static void test_without_telemetry_levels_still_change(void)
{
    struct pressure pressure;

    pressure_init(&pressure, 10);
    pressure_note(&pressure, 10, 10, "a", "0");
    TEST_CHECK(pressure.level == PRESSURE_SHED);
}

static void test_level_names(void)
{
    TEST_CHECK(strcmp(pressure_level_name(PRESSURE_NORMAL), "normal") == 0);
    TEST_CHECK(strcmp(pressure_level_name(PRESSURE_WARN), "warn") == 0);
    TEST_CHECK(strcmp(pressure_level_name(PRESSURE_DEGRADED), "degraded") == 0);
    TEST_CHECK(strcmp(pressure_level_name(PRESSURE_SHED), "shed") == 0);
    TEST_CHECK(PRESSURE_LEVEL_COUNT == 4);
}

TEST_LIST
= {
    {"TOP-119 TOP-124 levels going up", test_levels_going_up},
    {"TOP-119 levels going down leave at 0.05 below", test_levels_going_down},
    {"TOP-119 every depth of every small queue", test_every_depth_of_every_small_queue},
    {"TOP-119 the largest queue", test_the_largest_queue},
    {"a changed capacity moves the bounds", test_a_changed_capacity_moves_the_bounds},
    {"TOP-119 TOP-120 a queue filled and drained is one event per transition",
     test_a_queue_filled_and_drained_is_one_event_per_transition},
    {"TOP-119 no flapping around a threshold", test_no_flapping_around_a_threshold},
    {"TOP-119 TOP-120 a jump is one event", test_a_jump_is_one_event},
    {"TOP-125 gauges show the worst queue", test_gauges_show_the_worst_queue},
    {"TOP-125 gauges are right after every race", test_gauges_are_right_after_every_race},
    {"TOP-126 TOP-127 TOP-129 admission by level and priority", test_admission},
    {"TOP-128 deadlines get stricter", test_deadlines_get_stricter},
    {"without telemetry levels still change", test_without_telemetry_levels_still_change},
    {"level names", test_level_names},
    {NULL, NULL},
};
