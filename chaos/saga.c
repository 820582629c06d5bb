#include "chaos/saga.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "runtime/runtime.h"

struct saga *saga;

const char *fault_name(enum fault_kind kind)
{
    static const char *const names[] = {
#define X(id, name, steps, prose) name,
        FAULTS(X)
#undef X
    };
    return names[kind];
}

const char *scenario_name(enum scenario scenario)
{
    static const char *const names[] = {
#define X(id, name, faults, prose) name,
        SCENARIOS(X)
#undef X
    };
    return names[scenario];
}

static const uint32_t scenario_faults[] = {
#define X(id, name, faults, prose) faults,
    SCENARIOS(X)
#undef X
};

static const uint32_t fault_steps[] = {
#define X(id, name, steps, prose) steps,
    FAULTS(X)
#undef X
};

/* ---- what is drawn ---- */

static uint32_t one_of(struct dice *d, const uint32_t *values, uint32_t count)
{
    return values[dice_below(d, count)];
}
#define ONE_OF(d, ...) \
    one_of((d), (const uint32_t[]){__VA_ARGS__}, sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

static void draw_store(struct dice *d, struct world_store *s)
{
    s->map = (uint64_t)ONE_OF(d, 128, 192, 256, 512) << 10;
    s->map_max = dice_chance(d, 80) ? s->map * 2 : 16u << 20;
    s->step = (uint64_t)ONE_OF(d, 64, 64, 128) << 10;
    s->reserve = (uint64_t)ONE_OF(d, 32, 64, 128) << 10;
    s->ledger_max = 4096;
    s->view_age_ns = ONE_OF(d, 100, 1000, 5000) * NS_PER_MS;
}

static void draw_times(struct dice *d, struct knobs *k)
{
    k->lease_ms = ONE_OF(d, 200, 1000, 5000, 30000);
    k->heartbeat_ms = k->lease_ms / ONE_OF(d, 2, 3, 6);
    k->poll_ms = ONE_OF(d, 50, 500, 1000, 10000);
    k->backoff_ms = ONE_OF(d, 0, 50, 1000);
    k->backoff_max_ms = k->backoff_ms * ONE_OF(d, 1, 4, 60);
    k->request_ms = ONE_OF(d, 300, 2000, 10000, 10000);
    k->webhook_timeout_ms = ONE_OF(d, 100, 1000, 5000);
}

static void draw_knobs(struct dice *d, struct knobs *k)
{
    static const enum sim_order orders[] = {SIM_RANDOM, SIM_RANDOM, SIM_PRIORITY, SIM_FIFO};
    k->schedulers = 1 + dice_below(d, 3);
    k->workers = ONE_OF(d, 1, 1, 2, 3, 5);
    k->patrons = 1 + dice_below(d, SAGA_PATRONS_MAX);
    k->orders = 8 + dice_below(d, 40);
    k->safety_steps = 2000 + dice_below(d, 6000);
    k->order = orders[dice_below(d, 4)];
    draw_store(d, &k->store);
    draw_times(d, k);
    k->retry_max = ONE_OF(d, 0, 1, 3, 5);
    k->retry_auto = dice_below(d, 2);
    k->speed = ONE_OF(d, 1, 4, 100, 1000);
    k->queue_max = ONE_OF(d, 3, 20, 10000, 10000);
    k->client_max = ONE_OF(d, 0, 0, 1, 3);
    k->active_queues = dice_below(d, 2);
    k->webhook_retries = ONE_OF(d, 0, 2, 5);
}

/* On at all with one half (the swarm), and then as often as is drawn. */
static void draw_faults(struct saga *s)
{
    struct dice *d = &s->knob_dice;
    uint32_t allowed = scenario_faults[s->options.scenario] & s->options.faults;
    bool calm = s->options.scenario == SCENARIO_MIXED && dice_chance(d, 60);
    for (uint32_t kind = 0; kind < FAULT_COUNT; kind++) {
        bool on = dice_below(d, 2);
        uint32_t rate =
            fault_steps[kind] ? fault_steps[kind] / (1 + dice_below(d, 4)) : 1 + dice_below(d, 150);
        s->knobs.strikes[kind] = rate;
        if (on && !calm && allowed >> kind & 1)
            s->faults |= 1u << kind;
    }
}

void saga_begin(struct saga *s, const struct saga_options *options)
{
    memset(s, 0, sizeof(*s));
    s->options = *options;
    s->dice = dice_of(options->seed);
    s->knob_dice = dice_of(options->seed ^ 0x6b6e6f62);
    s->crash_dice = dice_of(options->seed ^ 0x637261);
    s->now = 3600 * NS_PER_S;
    draw_knobs(&s->knob_dice, &s->knobs);
    draw_faults(s);
    if (options->steps_max && options->steps_max < s->knobs.safety_steps)
        s->knobs.safety_steps = options->steps_max;
    if (options->control == CONTROL_STUCK)
        s->knobs.workers = 0;
    s->patrons_count = s->knobs.patrons;
    for (uint32_t i = 0; i < s->patrons_count; i++)
        patron_begin(&s->patrons[i], (uint8_t)i, options->seed);
    receiver_begin(&s->receiver, options->seed);
}

/* ---- faults ---- */

bool saga_on(enum fault_kind kind)
{
    return saga->phase == PHASE_SAFETY && (saga->faults >> kind & 1);
}

bool saga_strikes(enum fault_kind kind, struct dice *dice)
{
    return saga_on(kind) && dice_chance(dice, saga->knobs.strikes[kind]);
}

bool saga_explains(int status)
{
    uint32_t disk = 1u << FAULT_SYNCS | 1u << FAULT_THROUGHS | 1u << FAULT_FULL | 1u << FAULT_MIDWAY;
    if (status == RUNTIME_EXIT_EXHAUSTED)
        return saga->faults & (1u << FAULT_KILLS | 1u << FAULT_ALLOCS);
    return status == 74 && (saga->faults & disk);
}

/* ---- what is found ---- */

void saga_violate(const char *format, ...)
{
    va_list list;
    if (saga_violated())
        return;
    va_start(list, format);
    vsnprintf(saga->violation, sizeof(saga->violation), format, list);
    va_end(list);
    snprintf(saga->where, sizeof(saga->where), "life %u, step %llu, at %llu.%03llu s", saga->life,
             (unsigned long long)saga->steps, (unsigned long long)(saga->now / NS_PER_S),
             (unsigned long long)(saga->now / NS_PER_MS % 1000));
}

void saga_mix(const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    uint64_t h = saga->hash;
    for (size_t i = 0; i < size; i++)
        h = (h ^ at[i]) * 0x100000001b3ull;
    saga->hash = h ^ h >> 29;
}
