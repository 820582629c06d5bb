#include "tests/runtime/sim_program.h"

#include <stddef.h>
#include <string.h>

enum { WORK = 1, QUESTION, TICK, PLEASE_CRASH };

#define CROWD 12
static actor_pid crowd[CROWD];

/* The sanitizers would complain before the trap comes. */
__attribute__((noinline, no_sanitize("address", "undefined", "thread"))) static void crash(uint64_t where)
{
    *(volatile int *)(uintptr_t)where = 1;
}

static enum actor_step worker_handle(void *state, struct message *m)
{
    uint64_t *count = state;
    switch (m->type) {
    case WORK:
        if (++*count % 3 == 0)
            actor_timer(actor_deadline_ms(*count % 7), TICK, *count);
        if (*count < 40)
            actor_cast(crowd[(*count * 5 + (actor_self() >> 32)) % CROWD], WORK, count, sizeof *count);
        if (*count % 4 == 0)
            actor_call(crowd[actor_random() % CROWD], message_new(QUESTION, 8), NULL,
                       actor_deadline_ms(*count % 3));
        break;
    case QUESTION:
        actor_reply(m, m);
        break;
    case TICK:
        actor_yield();
        break;
    case PLEASE_CRASH:
        crash(*count - *count);
        break;
    default:
        break;
    }
    return ACTOR_CONTINUE;
}

static const struct actor_class worker_class = {.name = "worker",
                                                .state_size = sizeof(uint64_t),
                                                .handle = worker_handle,
                                                .mailbox_policy = MAILBOX_DROP_OLDEST};

static enum actor_step root_init(void *state, const void *args, size_t args_size)
{
    (void)state;
    (void)args;
    (void)args_size;
    return ACTOR_PROCEED;
}

static enum actor_step root_proceed(void *state)
{
    (void)state;
    for (uint32_t i = 0; i < CROWD; i++) {
        struct start_result r = {0};
        actor_start(&(struct spawn_options){.class = &worker_class,
                                            .monitor = i % 2,
                                            .scheduler = SPAWN_ON(i % runtime_schedulers())},
                    &r, DEADLINE_NONE);
        crowd[i] = r.pid;
    }
    for (uint32_t i = 0; i < CROWD; i++)
        actor_cast(crowd[i], WORK, "12345678", 8);
    actor_sleep(actor_deadline_ms(5));
    actor_cast(crowd[3], PLEASE_CRASH, "", 0);
    actor_kill(crowd[4]);
    actor_link(crowd[5]);
    actor_sleep(actor_deadline_ms(50));
    actor_stop(crowd[6], reason_of(REASON_SHUTDOWN), NULL, actor_deadline_ms(5));
    return ACTOR_STOP;
}

static enum actor_step root_handle(void *state, struct message *m)
{
    (void)state;
    (void)m;
    return ACTOR_CONTINUE;
}

static const struct actor_class root_class = {
    .name = "root", .init = root_init, .proceed = root_proceed, .handle = root_handle, .trap_exits = true};

static void quiet(const char *line, size_t size)
{
    (void)line;
    (void)size;
}

uint64_t sim_program_hash(uint64_t seed, enum sim_order order, uint32_t schedulers)
{
    struct sim *s = sim_create(&(struct sim_options){.seed = seed,
                                                     .order = order,
                                                     .schedulers = schedulers,
                                                     .runtime.log = quiet,
                                                     .runtime.actors_max = 1000});
    if (!s)
        return 0;
    runtime_spawn(sim_runtime(s), &(struct spawn_options){.class = &root_class}, NULL);
    sim_run(s, 1000000);
    uint64_t hash = sim_exit_status(s) == 0 ? sim_trace_hash(s) : 0;
    sim_destroy(s);
    return hash;
}
