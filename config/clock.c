#include "config/clock.h"

#include <stdatomic.h>

static _Atomic uint64_t ahead, ahead_at_start;
static _Atomic bool here;

static uint64_t wall(struct env *ours)
{
    struct env *real = env_real();
    (void)ours;
    return real->wall(real) + atomic_load_explicit(&ahead, memory_order_relaxed);
}

static uint64_t elapsed(struct env *ours)
{
    struct env *real = env_real();
    (void)ours;
    return real->now(real) + atomic_load_explicit(&ahead, memory_order_relaxed) -
           atomic_load(&ahead_at_start);
}

static struct env env;

struct env *clock_here(void)
{
    return atomic_load(&here) ? &env : env_real();
}

struct env *clock_env(uint64_t ahead_ns)
{
    env = *env_real();
    env.name = "ahead";
    env.wall = wall;
    env.elapsed = elapsed;
    atomic_store(&ahead, ahead_ns < CLOCK_AHEAD_MAX_NS ? ahead_ns : CLOCK_AHEAD_MAX_NS);
    atomic_store(&ahead_at_start, atomic_load(&ahead));
    atomic_store(&here, true);
    return &env;
}

uint64_t clock_ahead(void)
{
    return atomic_load(&ahead);
}

bool clock_advance(uint64_t by_ns)
{
    uint64_t now = atomic_load(&ahead);
    do {
        if (!atomic_load(&here) || by_ns > CLOCK_AHEAD_MAX_NS - now)
            return false;
    } while (!atomic_compare_exchange_weak(&ahead, &now, now + by_ns));
    return true;
}
