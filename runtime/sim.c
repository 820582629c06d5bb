/* The simulated environment and the driver that makes every choice in a node from one seed. */
#define _GNU_SOURCE
#include "runtime/sim.h"
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include "runtime/scheduler.h"
#include "runtime/telemetry.h"

#define CHOICES_MAX 65536 /* recorded for enumeration; a longer run goes on unrecorded */

enum action_kind { ACT_DISPATCH, ACT_INBOX, ACT_TIMER, ACT_FLUSH, ACT_READY, ACT_KINDS };

#define ACTIONS_MAX (RUNTIME_SCHEDULERS_MAX * ACT_KINDS) /* each kind once a scheduler */
#define READY_MAX   64 /* what a scheduler's poller has said and nobody was told yet */
#define LOOK_STEPS  4  /* how often pollers are asked while there is something else to do */

struct rng {
    uint64_t state;
};

struct ready {
    uint32_t count;
    struct env_event events[READY_MAX];
};

/* splitmix64: small, and every 64-bit seed is a good one */
static uint64_t rng_next(struct rng *r)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

struct sim {
    struct env env; /* first: the environment's functions get back to us by it */
    struct sim_options options;
    struct runtime *rt;
    struct rng order, chance, tests;
    uint64_t now;
    int64_t wall_shift;
    uint64_t hash;
    uint64_t steps;
    uint32_t priority_changes; /* SIM_PRIORITY: how many changes are left */
    uint64_t priority[ACTIONS_MAX];
    size_t choices_taken;
    size_t choices_recorded;
    struct ready ready[RUNTIME_SCHEDULERS_MAX];
    struct sim_choice choices[CHOICES_MAX];
};

/* ---- the environment ---- */

static uint64_t sim_env_now(struct env *env)
{
    return ((struct sim *)(void *)env)->now;
}

static uint64_t sim_env_wall(struct env *env)
{
    struct sim *s = (struct sim *)(void *)env;
    return 1800000000ull * NS_PER_S + s->now + (uint64_t)s->wall_shift; /* some day in 2027 */
}

static void sim_env_random(struct env *env, void *bytes, size_t size)
{
    struct sim *s = (struct sim *)(void *)env;
    for (size_t i = 0; i < size; i++)
        ((unsigned char *)bytes)[i] = (unsigned char)(rng_next(&s->chance) >> 24);
}

static uint32_t choose(struct sim *s, uint32_t count)
{
    uint32_t taken = 0;
    if (count <= 1)
        return 0;
    switch (s->options.order) {
    case SIM_RANDOM:
    case SIM_PRIORITY:
        taken = (uint32_t)((rng_next(&s->order) >> 32) * count >> 32);
        break;
    case SIM_SCRIPT:
        if (s->choices_taken < s->options.choices_count)
            taken = s->options.choices[s->choices_taken];
        if (taken >= count)
            taken = count - 1;
        break;
    case SIM_FIFO:
        break;
    }
    s->choices_taken++;
    if (s->choices_recorded < CHOICES_MAX)
        s->choices[s->choices_recorded++] =
            (struct sim_choice){.taken = (uint8_t)taken, .of = (uint8_t)count};
    return taken;
}

static uint32_t sim_env_pick(struct env *env, uint32_t count)
{
    return choose((struct sim *)(void *)env, count < 250 ? count : 250);
}

/* Descriptors of this machine, by the pollers of another environment; what they say is told when the seed says so. */

static struct env *outside_of(struct env *env)
{
    return ((struct sim *)(void *)env)->options.descriptors;
}

static struct poller *sim_poller_open(struct env *env)
{
    return outside_of(env)->poller_open(outside_of(env));
}

static void give_pollers(struct env *env, const struct env *outside)
{
    env->poller_open = sim_poller_open;
    env->poller_close = outside->poller_close;
    env->poller_arm = outside->poller_arm;
    env->poller_wait = outside->poller_wait;
    env->poller_wake = outside->poller_wake;
}

void sim_trace_add(struct scheduler *s, uint32_t what, uint64_t a, uint64_t b)
{
    struct sim *sim = (struct sim *)(void *)s->env;
    uint64_t h = sim->hash ^ what;
    h = (h ^ a) * 0xff51afd7ed558ccdull;
    h ^= h >> 33;
    h = (h ^ b) * 0xc4ceb9fe1a85ec53ull;
    h ^= h >> 29;
    sim->hash = h + sim->now;
}

/* ---- making one ---- */

struct sim *sim_create(const struct sim_options *o)
{
    struct sim *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (s == MAP_FAILED)
        return NULL;
    char error[200];
    s->options = *o;
    s->env = (struct env){
        .name = "simulated",
        .simulated = true,
        .now = sim_env_now,
        .wall = sim_env_wall,
        .elapsed = sim_env_now,
        .random = sim_env_random,
        .pick = sim_env_pick,
    };
    if (o->descriptors)
        give_pollers(&s->env, o->descriptors);
    s->order.state = o->seed;
    s->chance.state = o->seed ^ 0x5851f42d4c957f2dull;
    s->tests.state = o->seed ^ 0x14057b7ef767814full;
    s->now = o->start_ns ? o->start_ns : 3600 * NS_PER_S;
    s->priority_changes = 3;
    for (size_t i = 0; i < sizeof s->priority / sizeof *s->priority; i++)
        s->priority[i] = o->order == SIM_PRIORITY ? rng_next(&s->order) : 0;
    struct runtime_options options = o->runtime;
    options.env = &s->env;
    options.schedulers = o->schedulers ? o->schedulers : 1;
    options.no_preemption = true;
    if (!options.actors_max)
        options.actors_max = 1u << 20;
    if (!options.names_max)
        options.names_max = 1u << 16;
    s->rt = runtime_create(&options, error, sizeof error);
    if (!s->rt) {
        fprintf(stderr, "simulation: %s\n", error);
        munmap(s, sizeof *s);
        return NULL;
    }
    fault_thread_begin(s->rt->schedulers[0]);
    return s;
}

void sim_destroy(struct sim *s)
{
    if (!s)
        return;
    for (uint32_t i = 0; i < s->rt->schedulers_count; i++) {
        scheduler_current = s->rt->schedulers[i];
        telemetry_shard_enter(scheduler_current->telemetry);
        scheduler_wind_down(scheduler_current);
    }
    telemetry_shard_enter(NULL);
    scheduler_current = NULL;
    fault_thread_end(s->rt->schedulers[0]);
    runtime_destroy(s->rt);
    munmap(s, sizeof *s);
}

struct runtime *sim_runtime(struct sim *s)
{
    return s->rt;
}

struct env *sim_runtime_env(struct sim *s)
{
    return &s->env;
}

/* ---- one step ---- */

struct action {
    uint8_t kind, scheduler;
};

/* Asks the pollers, which takes a system call each. */
static void look(struct sim *s)
{
    for (uint32_t i = 0; i < s->rt->schedulers_count; i++) {
        struct ready *r = &s->ready[i];
        struct scheduler *sch = s->rt->schedulers[i];
        if (sch->watches && r->count < READY_MAX)
            r->count +=
                (uint32_t)s->env.poller_wait(sch->poller, r->events + r->count, READY_MAX - r->count, 0);
    }
}

static size_t actions_list(struct sim *s, struct action *actions)
{
    size_t n = 0;
    for (uint32_t i = 0; i < s->rt->schedulers_count; i++) {
        struct scheduler *sch = s->rt->schedulers[i];
        if (sch->ready.count)
            actions[n++] = (struct action){.kind = ACT_DISPATCH, .scheduler = (uint8_t)i};
        if (!inbox_empty(sch))
            actions[n++] = (struct action){.kind = ACT_INBOX, .scheduler = (uint8_t)i};
        if (wheel_due(&sch->wheel, s->now) && wheel_next(&sch->wheel) <= s->now)
            actions[n++] = (struct action){.kind = ACT_TIMER, .scheduler = (uint8_t)i};
        if (sch->outbox_newest)
            actions[n++] = (struct action){.kind = ACT_FLUSH, .scheduler = (uint8_t)i};
        if (s->ready[i].count)
            actions[n++] = (struct action){.kind = ACT_READY, .scheduler = (uint8_t)i};
    }
    return n;
}

static uint64_t *priority_of(struct sim *s, struct action a)
{
    return &s->priority[a.scheduler * (uint32_t)ACT_KINDS + a.kind];
}

static size_t choose_action(struct sim *s, const struct action *actions, size_t count)
{
    if (s->options.order != SIM_PRIORITY)
        return choose(s, (uint32_t)count);
    size_t best = 0;
    for (size_t i = 1; i < count; i++)
        if (*priority_of(s, actions[i]) > *priority_of(s, actions[best]))
            best = i;
    /* The favourite falls behind now and then: otherwise whoever is busiest starves the rest for ever. */
    if (rng_next(&s->order) % 8 == 0)
        *priority_of(s, actions[best]) = rng_next(&s->order) >> 8;
    return best;
}

/* One of them, any. Who watched may have gone meanwhile. */
static void tell_ready(struct sim *s, struct scheduler *sch, struct ready *r)
{
    uint32_t at = choose(s, r->count);
    struct env_event event = r->events[at];
    r->events[at] = r->events[--r->count];
    COUNT(sch, polls);
    resource_ready(sch, event.token, event.events);
}

static void act(struct sim *s, struct action a)
{
    struct scheduler *sch = s->rt->schedulers[a.scheduler];
    scheduler_current = sch;
    telemetry_shard_enter(sch->telemetry);
    sch->signal_stack = s->rt->schedulers[0]->signal_stack;
    sch->now = s->now;
    sch->budget = 0; /* a worker serves one actor and comes back for the next choice */
    switch ((enum action_kind)a.kind) {
    case ACT_DISPATCH:
        worker_dispatch(sch);
        break;
    case ACT_INBOX:
        inbox_drain(sch, 1 + choose(s, 4));
        break;
    case ACT_TIMER:
        timer_fire_one(sch);
        break;
    case ACT_FLUSH:
        scheduler_flush(sch);
        break;
    case ACT_READY:
        tell_ready(s, sch, &s->ready[a.scheduler]);
        break;
    case ACT_KINDS:
        break;
    }
    scheduler_current = NULL;
}

static uint64_t next_timer(struct sim *s)
{
    uint64_t next = UINT64_MAX;
    for (uint32_t i = 0; i < s->rt->schedulers_count; i++) {
        uint64_t t = wheel_next(&s->rt->schedulers[i]->wheel);
        next = t < next ? t : next;
    }
    return next;
}

/* As a scheduler that is woken by runtime_stop does, also when nobody else has anything to do. */
static void heed_stop(struct sim *s)
{
    for (uint32_t i = 0; i < s->rt->schedulers_count; i++) {
        scheduler_current = s->rt->schedulers[i];
        scheduler_current->now = s->now;
        runtime_stop_asked(scheduler_current);
    }
    scheduler_current = NULL;
}

static bool step_now(struct sim *s)
{
    struct action actions[ACTIONS_MAX];
    if (atomic_load(&s->rt->ended))
        return false;
    if (atomic_load_explicit(&s->rt->stopping, memory_order_relaxed))
        heed_stop(s);
    if (s->options.descriptors && s->steps % LOOK_STEPS == 0)
        look(s);
    size_t n = actions_list(s, actions);
    if (!n && s->options.descriptors) {
        look(s);
        n = actions_list(s, actions);
    }
    if (!n)
        return false;
    s->steps++;
    act(s, actions[choose_action(s, actions, n)]);
    return true;
}

static bool jump(struct sim *s, uint64_t limit)
{
    uint64_t next = next_timer(s);
    if (atomic_load(&s->rt->ended) || next == UINT64_MAX || next > limit)
        return false;
    if (next > s->now)
        s->now = next;
    for (uint32_t i = 0; i < s->rt->schedulers_count; i++)
        s->rt->schedulers[i]->now = s->now;
    return true;
}

bool sim_step(struct sim *s)
{
    return step_now(s) || (jump(s, UINT64_MAX - 1) && step_now(s));
}

uint64_t sim_settle(struct sim *s, uint64_t steps_max)
{
    uint64_t n = 0;
    while (n < steps_max && step_now(s))
        n++;
    return n;
}

uint64_t sim_run_until(struct sim *s, uint64_t until, uint64_t steps_max)
{
    uint64_t n = 0;
    while (n < steps_max && (step_now(s) || jump(s, until)))
        n++;
    if (s->now < until && n < steps_max)
        s->now = until;
    return n;
}

uint64_t sim_run(struct sim *s, uint64_t steps_max)
{
    uint64_t n = 0;
    while (n < steps_max && sim_step(s))
        n++;
    return n;
}

uint64_t sim_now(const struct sim *s)
{
    return s->now;
}

void sim_clock_advance(struct sim *s, uint64_t ns)
{
    s->now += ns;
    for (uint32_t i = 0; i < s->rt->schedulers_count; i++)
        s->rt->schedulers[i]->now = s->now;
}

void sim_clock_jump(struct sim *s, int64_t wall_ns)
{
    s->wall_shift += wall_ns;
}

uint64_t sim_trace_hash(const struct sim *s)
{
    return s->hash;
}

uint64_t sim_random(struct sim *s)
{
    return rng_next(&s->tests);
}

int sim_exit_status(const struct sim *s)
{
    return atomic_load(&s->rt->ended) ? atomic_load(&s->rt->exit_status) : -1;
}

const struct sim_choice *sim_choices(const struct sim *s, size_t *ret_count)
{
    *ret_count = s->choices_recorded;
    return s->choices;
}
