/* Timers and names: set and cancel, with nothing and with a million timers pending, what a pending timer
 * weighs, and how fast a name becomes a pid. */
#include "tests/bench/bench.h"
#include <stdio.h>
#include <string.h>

enum { TICK = 1, LOOK, DONE };

static actor_pid root;

/* ---- timers ---- */

#define SETS    100000u
#define PENDING 1000000u

/* Deadlines as programs have them, from 1 to 64 s ahead and in no order: another one each time. */
static uint64_t some_deadline(uint64_t now, uint64_t i)
{
    return now + NS_PER_S + i * 0x9e3779b97f4a7c15ull % (63 * NS_PER_S);
}

static void set_and_cancel(void *arg, double *ret)
{
    (void)arg;
    uint64_t started = bench_now(), now = actor_now();
    for (uint64_t i = 0; i < SETS; i++) {
        uint64_t ref = actor_timer(some_deadline(now, i), TICK, i);
        if (!ref || !actor_timer_cancel(ref, NULL))
            bench_fail("timer %llu could not be set and cancelled", (unsigned long long)i);
    }
    *ret = bench_per_second(SETS, started);
}

/* They share the wheel with those that are set and cancelled, and none is due while we measure. */
static void set_many(void)
{
    uint64_t now = actor_now() + 20 * NS_PER_S;
    for (uint64_t i = 0; i < PENDING; i++)
        if (!actor_timer(some_deadline(now, i), TICK, i))
            bench_fail("%llu timers and no more", (unsigned long long)i);
}

static double timer_bytes;

static void set_and_weigh(void)
{
    uint64_t before = bench_resident();
    set_many();
    timer_bytes = (double)(bench_resident() - before) / PENDING;
}

static void weigh(void *arg, double *ret)
{
    (void)arg;
    bench_node(1, set_and_weigh);
    *ret = timer_bytes;
}

/* ---- names ---- */

#define NAMES   1000u
#define LOOKUPS 200000u

static char names[NAMES][16];
static actor_pid holders[NAMES];
static uint16_t order[NAMES];

static enum actor_step ignore(void *state, struct message *m)
{
    (void)state, (void)m;
    return ACTOR_CONTINUE;
}

static const struct actor_class holder_class = {.name = "holder", .handle = ignore};

static void name_all(void)
{
    for (uint16_t i = 0; i < NAMES; i++) {
        snprintf(names[i], sizeof names[i], "room:%u", i);
        enum error e =
            actor_spawn(&(struct spawn_options){.class = &holder_class, .name = names[i]}, &holders[i]);
        if (e)
            bench_fail("holder %u: %s", i, error_name(e));
        order[i] = i;
    }
    actor_yield();
    for (uint16_t i = NAMES - 1; i > 0; i--) { /* looked up in no order */
        uint16_t other = (uint16_t)(bench_random() % (i + 1u)), mine = order[i];
        order[i] = order[other];
        order[other] = mine;
    }
}

static void look_up(void)
{
    for (uint32_t i = 0; i < LOOKUPS; i++) {
        uint16_t n = order[i % NAMES];
        if (actor_whereis(names[n]) != holders[n])
            bench_fail("%s is not who it was", names[n]);
    }
}

static enum actor_step looker_handle(void *state, struct message *m)
{
    (void)state, (void)m;
    look_up();
    actor_cast(root, DONE, NULL, 0);
    return ACTOR_CONTINUE;
}

static const struct actor_class looker_class = {.name = "looker", .handle = looker_handle};

static void look_up_here(void *arg, double *ret)
{
    (void)arg;
    uint64_t started = bench_now();
    look_up();
    *ret = bench_per_second(LOOKUPS, started);
}

static void look_up_both(void *arg, double *ret)
{
    const actor_pid *lookers = arg;
    uint64_t started = bench_now();
    for (int i = 1; i >= 0; i--)
        actor_cast(lookers[i], LOOK, NULL, 0);
    for (int i = 0; i < 2; i++)
        bench_await(DONE);
    *ret = bench_per_second(2 * LOOKUPS, started);
}

/* ---- the rows ---- */

static void on_one(void)
{
    root = actor_self();
    bench_repeat(&(struct bench_row){"timer", "timers/s", BENCH_MORE}, 1, set_and_cancel, NULL);
    set_many();
    bench_repeat(&(struct bench_row){"timer_1m", "timers/s", BENCH_MORE}, 1, set_and_cancel, NULL);
    name_all();
    bench_repeat(&(struct bench_row){"lookup", "lookups/s", BENCH_MORE}, 1, look_up_here, NULL);
}

static void on_two(void)
{
    root = actor_self();
    name_all();
    actor_pid lookers[2] = {bench_spawn(&looker_class, NULL, 0, SPAWN_ON(0)),
                            bench_spawn(&looker_class, NULL, 0, SPAWN_ON(1))};
    bench_repeat(&(struct bench_row){"lookup_2", "lookups/s", BENCH_MORE}, 1, look_up_both, lookers);
}

int main(void)
{
    bench_begin("runtime", 6);
    bench_node(1, on_one);
    bench_node(2, on_two);
    bench_repeat(&(struct bench_row){"timer_bytes", "bytes", BENCH_LESS}, 1, weigh, NULL);
    return 0;
}
