#include "runtime/wheel.h"

#include <stdlib.h>
#include <string.h>

#include "acutest.h"

#define MS UINT64_C(1000000)

/* The timers of these tests carry their number. */
struct numbered {
    struct wheel_timer timer;
    size_t number;
};

static size_t number_of(struct wheel_timer *t)
{
    return t == NULL ? SIZE_MAX : ((struct numbered *)t)->number;
}

static struct numbered *numbered_create(size_t count)
{
    struct numbered *all = calloc(count, sizeof(*all));
    if (all == NULL)
        abort();
    for (size_t i = 0; i < count; i++)
        all[i].number = i;
    return all;
}

static void test_empty(void)
{
    struct wheel w;
    memset(&w, 0xa5, sizeof(w));
    wheel_init(&w, 77);
    TEST_CHECK(wheel_count(&w) == 0);
    TEST_CHECK(wheel_next(&w) == UINT64_MAX);
    TEST_CHECK(wheel_bound(&w) == UINT64_MAX);
    TEST_CHECK(!wheel_due(&w, UINT64_MAX - 1));
    TEST_CHECK(wheel_expire(&w, 1000) == NULL);
    TEST_CHECK(wheel_expire(&w, UINT64_MAX) == NULL);
}

static void test_tmr_01_deadline_order(void)
{
    static const uint64_t ms[] = {500, 300, 400, 100, 200, 0};
    static const size_t order[] = {5, 3, 4, 1, 2, 0};
    struct numbered *t = numbered_create(6);
    struct wheel w;
    wheel_init(&w, 1000 * MS);
    for (size_t i = 0; i < 6; i++)
        wheel_add(&w, &t[i].timer, (1000 + ms[i]) * MS);
    for (size_t i = 0; i < 6; i++) {
        uint64_t deadline = (1000 + ms[order[i]]) * MS;
        TEST_CHECK(wheel_next(&w) == deadline);
        TEST_CHECK(i == 0 || wheel_expire(&w, deadline - 1) == NULL);
        TEST_CHECK(number_of(wheel_expire(&w, deadline)) == order[i]);
    }
    TEST_CHECK(wheel_count(&w) == 0);

    for (size_t i = 0; i < 6; i++)
        wheel_add(&w, &t[i].timer, (2000 + ms[i]) * MS);
    for (size_t i = 0; i < 6; i++)
        TEST_CHECK(number_of(wheel_expire(&w, 9000 * MS)) == order[i]);
    free(t);
}

static void test_tmr_02_cancelled_never_fires(void)
{
    struct numbered *t = numbered_create(3);
    struct wheel w;
    wheel_init(&w, 0);
    for (size_t i = 0; i < 3; i++)
        wheel_add(&w, &t[i].timer, 5 * MS);
    TEST_CHECK(wheel_pending(&t[1].timer));
    wheel_cancel(&w, &t[1].timer);
    TEST_CHECK(!wheel_pending(&t[1].timer));
    TEST_CHECK(t[1].timer.deadline == 5 * MS);
    TEST_CHECK(wheel_count(&w) == 2);
    TEST_CHECK(number_of(wheel_expire(&w, 5 * MS)) == 0);
    TEST_CHECK(number_of(wheel_expire(&w, 5 * MS)) == 2);
    TEST_CHECK(wheel_expire(&w, UINT64_MAX) == NULL);
    TEST_CHECK(!wheel_pending(&t[0].timer));
    free(t);
}

static void test_tmr_07_equal_deadlines(void)
{
    enum { COUNT = 5000 };
    static const uint64_t distances[] = {0, 1, 64, 200 * MS, UINT64_C(1) << 50};
    struct numbered *t = numbered_create(COUNT);
    for (size_t d = 0; d < sizeof(distances) / sizeof(distances[0]); d++) {
        struct wheel w;
        wheel_init(&w, 12345);
        uint64_t deadline = 12345 + distances[d];
        for (size_t i = 0; i < COUNT; i++)
            wheel_add(&w, &t[i].timer, deadline);
        if (distances[d] > 0)
            TEST_CHECK(wheel_expire(&w, deadline - 1) == NULL);
        size_t in_order = 0;
        while (in_order < COUNT && number_of(wheel_expire(&w, deadline)) == in_order)
            in_order++;
        TEST_CHECK_(in_order == COUNT, "distance %llu: %zu in order", (unsigned long long)distances[d],
                    in_order);
        TEST_CHECK(wheel_expire(&w, UINT64_MAX) == NULL);
    }
    free(t);
}

/* Each of the equal timers is added from another distance, and so starts at another level. */
static void test_equal_deadlines_across_cascades(void)
{
    enum { COUNT = 60 };
    const uint64_t deadline = UINT64_C(0xedcba9876543210f);
    struct numbered *t = numbered_create(COUNT);
    struct wheel w;
    wheel_init(&w, 0);
    for (size_t i = 0; i < COUNT; i++) {
        TEST_CHECK(wheel_expire(&w, deadline - (UINT64_C(1) << (COUNT - 1 - i))) == NULL);
        wheel_add(&w, &t[i].timer, deadline);
    }
    for (size_t i = 0; i < COUNT; i++)
        TEST_CHECK(number_of(wheel_expire(&w, deadline)) == i);
    free(t);
}

static void test_change_while_expiring(void)
{
    struct numbered *t = numbered_create(8);
    struct wheel w;
    wheel_init(&w, 0);
    for (size_t i = 0; i < 4; i++)
        wheel_add(&w, &t[i].timer, 1000);
    wheel_add(&w, &t[4].timer, 2000);
    wheel_add(&w, &t[5].timer, 70 * MS);

    TEST_CHECK(number_of(wheel_expire(&w, 100 * MS)) == 0);
    wheel_cancel(&w, &t[1].timer);
    wheel_add(&w, &t[0].timer, 1000); /* the one that fired, again: behind its equals */
    wheel_add(&w, &t[6].timer, 0);    /* past: at once, behind those that are due at once already */
    wheel_add(&w, &t[7].timer, 1500); /* between the rest */
    TEST_CHECK(number_of(wheel_expire(&w, 100 * MS)) == 2);
    TEST_CHECK(number_of(wheel_expire(&w, 100 * MS)) == 3);
    TEST_CHECK(number_of(wheel_expire(&w, 100 * MS)) == 0);
    TEST_CHECK(number_of(wheel_expire(&w, 100 * MS)) == 6);
    TEST_CHECK(t[6].timer.deadline == 1000);
    TEST_CHECK(number_of(wheel_expire(&w, 100 * MS)) == 7);
    wheel_cancel(&w, &t[4].timer);
    TEST_CHECK(number_of(wheel_expire(&w, 100 * MS)) == 5);
    TEST_CHECK(wheel_expire(&w, 100 * MS) == NULL);
    TEST_CHECK(wheel_count(&w) == 0);
    free(t);
}

static void test_past_is_due_at_once(void)
{
    struct numbered *t = numbered_create(3);
    struct wheel w;
    wheel_init(&w, 1000);
    TEST_CHECK(wheel_expire(&w, 5000) == NULL);
    wheel_add(&w, &t[0].timer, 4000);
    TEST_CHECK(wheel_next(&w) == 5000);
    TEST_CHECK(wheel_due(&w, 5000));
    wheel_add(&w, &t[1].timer, 0);
    wheel_add(&w, &t[2].timer, 5000);
    for (size_t i = 0; i < 3; i++)
        TEST_CHECK(number_of(wheel_expire(&w, 5000)) == i);
    free(t);
}

static void test_time_does_not_go_back(void)
{
    struct numbered *t = numbered_create(1);
    struct wheel w;
    wheel_init(&w, 1000);
    TEST_CHECK(wheel_expire(&w, 5000) == NULL);
    TEST_CHECK(wheel_expire(&w, 10) == NULL);
    wheel_add(&w, &t[0].timer, 20);
    TEST_CHECK(wheel_expire(&w, 4999) == NULL);
    TEST_CHECK(number_of(wheel_expire(&w, 5000)) == 0);
    free(t);
}

static void test_jump_over_all_levels(void)
{
    enum { COUNT = 65 };
    struct numbered *t = numbered_create(COUNT);
    struct wheel w;
    wheel_init(&w, 0);
    for (size_t i = COUNT; i-- > 0;)
        wheel_add(&w, &t[i].timer, i == 64 ? UINT64_MAX : UINT64_C(1) << i);
    TEST_CHECK(wheel_next(&w) == 1);
    for (size_t i = 0; i < COUNT; i++)
        TEST_CHECK(number_of(wheel_expire(&w, UINT64_MAX)) == i);
    TEST_CHECK(wheel_expire(&w, UINT64_MAX) == NULL);
    wheel_add(&w, &t[0].timer, 5);
    TEST_CHECK(number_of(wheel_expire(&w, UINT64_MAX)) == 0);
    free(t);
}

static void test_deadlines_beyond_48_bits(void)
{
    static const uint64_t deadlines[] = {UINT64_MAX,        UINT64_C(1) << 63,       (UINT64_C(1) << 48) + 1,
                                         UINT64_C(1) << 48, (UINT64_C(1) << 60) - 1, UINT64_C(1) << 60};
    static const size_t order[] = {3, 2, 4, 5, 1, 0};
    struct numbered *t = numbered_create(6);
    struct wheel w;
    wheel_init(&w, 999);
    for (size_t i = 0; i < 6; i++)
        wheel_add(&w, &t[i].timer, deadlines[i]);
    for (size_t i = 0; i < 6; i++) {
        uint64_t next = wheel_next(&w);
        TEST_CHECK(next == deadlines[order[i]]);
        TEST_CHECK(wheel_expire(&w, next - 1) == NULL);
        TEST_CHECK(number_of(wheel_expire(&w, next)) == order[i]);
    }
    free(t);
}

static void test_next_after_cancel(void)
{
    struct numbered *t = numbered_create(3);
    struct wheel w;
    wheel_init(&w, 0);
    wheel_add(&w, &t[0].timer, 300 * MS);
    wheel_add(&w, &t[1].timer, 301 * MS);
    wheel_add(&w, &t[2].timer, 900000 * MS);
    wheel_cancel(&w, &t[0].timer);
    TEST_CHECK(wheel_bound(&w) <= 301 * MS);
    TEST_CHECK(wheel_next(&w) == 301 * MS);
    wheel_cancel(&w, &t[1].timer);
    TEST_CHECK(wheel_next(&w) == 900000 * MS);
    wheel_cancel(&w, &t[2].timer);
    TEST_CHECK(wheel_bound(&w) == UINT64_MAX);
    TEST_CHECK(wheel_next(&w) == UINT64_MAX);
    free(t);
}

/* Looking in too early does not make a known answer vague: the scheduler may sleep all the way. */
static void test_bound_stays_exact(void)
{
    struct numbered *t = numbered_create(2);
    struct wheel w;
    wheel_init(&w, 0);
    wheel_add(&w, &t[0].timer, 301 * MS);
    wheel_add(&w, &t[1].timer, 300 * MS);
    TEST_CHECK(wheel_bound(&w) == 300 * MS);
    TEST_CHECK(wheel_expire(&w, 1 * MS) == NULL);
    TEST_CHECK(wheel_bound(&w) == 300 * MS);
    wheel_cancel(&w, &t[1].timer);
    TEST_CHECK(wheel_next(&w) == 301 * MS);
    TEST_CHECK(wheel_expire(&w, 2 * MS) == NULL);
    TEST_CHECK(wheel_bound(&w) == 301 * MS);
    free(t);
}

static uint64_t random_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* A thread that sleeps until wheel_bound and nothing else is on time. It wakes for the cancelled timer, for
 * the start of the slot that two share, and for their deadline, however many levels they are away. */
static void test_sleeping_until_the_bound(void)
{
    struct numbered *t = numbered_create(2);
    for (unsigned bit = 0; bit < 64; bit++) {
        struct wheel w;
        uint64_t deadline = (UINT64_C(1) << bit) | (UINT64_C(1) << bit) / 3;
        uint64_t now = 0;
        unsigned wakes = 0;
        wheel_init(&w, now);
        wheel_add(&w, &t[0].timer, deadline);
        wheel_add(&w, &t[1].timer, deadline / 3);
        wheel_cancel(&w, &t[1].timer);
        wheel_add(&w, &t[1].timer, deadline);
        while (wheel_expire(&w, now) == NULL) {
            TEST_ASSERT(wheel_bound(&w) > now);
            now = wheel_bound(&w);
            wakes++;
        }
        TEST_CHECK_(now == deadline, "bit %u", bit);
        TEST_CHECK_(wakes <= 3, "bit %u: %u wake-ups", bit, wakes);
        wheel_cancel(&w, &t[1].timer);
    }
    free(t);
}

/* 1,000 timers within an hour: each on time to the nanosecond, and far fewer wake-ups than levels for each.
 */
static void test_sleeping_through_an_hour(void)
{
    enum { COUNT = 1000 };
    struct numbered *t = numbered_create(COUNT);
    struct wheel w;
    uint64_t random = 88172645463325252;
    uint64_t now = 1000 * MS;
    unsigned wakes = 0;
    wheel_init(&w, now);
    for (size_t i = 0; i < COUNT; i++)
        wheel_add(&w, &t[i].timer, now + random_next(&random) % (3600 * 1000 * MS));
    while (wheel_count(&w) > 0) {
        for (struct wheel_timer *due; (due = wheel_expire(&w, now)) != NULL;)
            TEST_CHECK(due->deadline == now);
        now = wheel_bound(&w);
        wakes++;
    }
    TEST_CHECK_(wakes < 2 * COUNT, "%u wake-ups", wakes);
    free(t);
}

/* The reference: a list kept sorted by (deadline, order of adding). */
enum { MODEL_MAX = 400 };

struct model_entry {
    uint64_t deadline;
    struct numbered *t;
};

struct model {
    uint64_t time;
    size_t count;
    struct model_entry sorted[MODEL_MAX];
};

static void model_add(struct model *m, struct numbered *t, uint64_t deadline)
{
    size_t at = m->count++;
    deadline = deadline > m->time ? deadline : m->time;
    while (at > 0 && m->sorted[at - 1].deadline > deadline) {
        m->sorted[at] = m->sorted[at - 1];
        at--;
    }
    m->sorted[at] = (struct model_entry){.deadline = deadline, .t = t};
}

static void model_remove(struct model *m, size_t at)
{
    m->count--;
    memmove(&m->sorted[at], &m->sorted[at + 1], (m->count - at) * sizeof(m->sorted[0]));
}

static uint64_t model_next(const struct model *m)
{
    return m->count > 0 ? m->sorted[0].deadline : UINT64_MAX;
}

static struct numbered *model_expire(struct model *m, uint64_t now)
{
    if (m->count == 0 || m->sorted[0].deadline > now) {
        m->time = now > m->time ? now : m->time;
        return NULL;
    }
    struct numbered *first = m->sorted[0].t;
    m->time = m->sorted[0].deadline;
    model_remove(m, 0);
    return first;
}

/* A distance whose length in bits is random, up to bits_max: all levels, and equal deadlines among the short
 * ones. */
static uint64_t random_distance(uint64_t *state, unsigned bits_max)
{
    uint64_t bits = random_next(state) % (bits_max + 1);
    return bits == 0 ? 0 : random_next(state) >> (64 - bits);
}

struct run {
    struct wheel wheel;
    struct model model;
    struct numbered *timers;
    size_t timer_count;
    uint64_t random;
    uint64_t now;
    unsigned bits_max;
};

static void run_add(struct run *r)
{
    struct numbered *t = &r->timers[random_next(&r->random) % r->timer_count];
    if (wheel_pending(&t->timer))
        return;
    uint64_t distance = random_distance(&r->random, r->bits_max);
    uint64_t deadline = r->now + distance >= r->now ? r->now + distance : UINT64_MAX;
    if (random_next(&r->random) % 16 == 0)
        deadline = r->now > distance ? r->now - distance : 0;
    else if (random_next(&r->random) % 4 == 0 && r->model.count > 0)
        deadline = r->model.sorted[random_next(&r->random) % r->model.count].deadline;
    model_add(&r->model, t, deadline);
    wheel_add(&r->wheel, &t->timer, deadline);
}

static void run_cancel(struct run *r)
{
    if (r->model.count == 0)
        return;
    size_t at = random_next(&r->random) % (random_next(&r->random) % 2 ? 1 : r->model.count);
    wheel_cancel(&r->wheel, &r->model.sorted[at].t->timer);
    model_remove(&r->model, at);
}

static void run_advance(struct run *r)
{
    uint64_t to = r->now;
    switch (random_next(&r->random) % 4) {
    case 0:
        to = wheel_bound(&r->wheel);
        break;
    case 1:
        to = wheel_next(&r->wheel) - random_next(&r->random) % 2;
        break;
    case 2:
        to = r->now + random_distance(&r->random, r->bits_max);
        break;
    default: /* stays: another expire at the same time */
        break;
    }
    if (to > r->now && to < UINT64_MAX)
        r->now = to;
}

/* Takes out what is due, or some of it: a scheduler may stop in the middle. */
static bool run_expire(struct run *r)
{
    size_t limit = random_next(&r->random) % 2 ? SIZE_MAX : random_next(&r->random) % 4;
    while (limit-- > 0) {
        bool due = wheel_due(&r->wheel, r->now);
        struct numbered *expected = model_expire(&r->model, r->now);
        struct wheel_timer *t = wheel_expire(&r->wheel, r->now);
        if (number_of(t) != (expected == NULL ? SIZE_MAX : expected->number))
            return false;
        if (t == NULL)
            return r->now == UINT64_MAX || !wheel_due(&r->wheel, r->now);
        if (!due || wheel_pending(t))
            return false;
    }
    return true;
}

static bool run_agrees(struct run *r)
{
    uint64_t earliest = model_next(&r->model);
    if (wheel_count(&r->wheel) != r->model.count || wheel_bound(&r->wheel) > earliest)
        return false;
    return random_next(&r->random) % 4 != 0 || wheel_next(&r->wheel) == earliest;
}

static bool run_random(uint64_t seed, size_t operations)
{
    struct run *r = calloc(1, sizeof(*r));
    if (r == NULL)
        abort();
    r->random = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
    r->bits_max = (unsigned)(random_next(&r->random) % 60) + 1;
    r->timer_count = 1 + random_next(&r->random) % MODEL_MAX;
    r->now = random_next(&r->random) >> (4 + random_next(&r->random) % 60);
    r->timers = numbered_create(r->timer_count);
    r->model.time = r->now;
    wheel_init(&r->wheel, r->now);

    bool good = true;
    for (size_t i = 0; i < operations && good; i++) {
        switch (random_next(&r->random) % 8) {
        case 0:
        case 1:
        case 2:
        case 3:
            run_add(r);
            break;
        case 4:
            run_cancel(r);
            break;
        case 5:
            run_advance(r);
            break;
        default:
            good = run_expire(r);
            break;
        }
        good = good && run_agrees(r);
    }
    r->now = UINT64_MAX;
    while (good && r->model.count > 0)
        good = run_expire(r);
    good = good && wheel_count(&r->wheel) == 0;
    free(r->timers);
    free(r);
    return good;
}

static void test_random_against_sorted_list(void)
{
    for (uint64_t seed = 1; seed <= 1000; seed++)
        if (!TEST_CHECK_(run_random(seed, 2000), "seed %llu", (unsigned long long)seed))
            return;
}

TEST_LIST
= {
    {"wheel: empty", test_empty},
    {"wheel: TMR-01 deadline order", test_tmr_01_deadline_order},
    {"wheel: TMR-02 a cancelled timer never fires", test_tmr_02_cancelled_never_fires},
    {"wheel: TMR-07 5,000 equal deadlines, each once, in order", test_tmr_07_equal_deadlines},
    {"wheel: equal deadlines across cascades", test_equal_deadlines_across_cascades},
    {"wheel: add and cancel while expiring", test_change_while_expiring},
    {"wheel: the past is due at once", test_past_is_due_at_once},
    {"wheel: time does not go back", test_time_does_not_go_back},
    {"wheel: jump over all levels", test_jump_over_all_levels},
    {"wheel: deadlines beyond 48 bits", test_deadlines_beyond_48_bits},
    {"wheel: next after cancel", test_next_after_cancel},
    {"wheel: a bound that is exact stays so", test_bound_stays_exact},
    {"wheel: sleeping until the bound", test_sleeping_until_the_bound},
    {"wheel: sleeping through an hour", test_sleeping_through_an_hour},
    {"wheel: 2,000,000 random operations against a sorted list", test_random_against_sorted_list},
    {NULL, NULL},
};
