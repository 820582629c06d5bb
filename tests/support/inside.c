#include "tests/support/inside.h"

#include <string.h>

#include "runtime/sim.h"

static bool finished;

static enum actor_step body_init(void *state, const void *args, size_t args_size)
{
    memcpy(state, args, args_size);
    return ACTOR_PROCEED;
}

static enum actor_step body_proceed(void *state)
{
    void (**body)(void) = state;
    (*body)();
    finished = true;
    return ACTOR_STOP;
}

static enum actor_step body_handle(void *state, struct message *m)
{
    (void)state;
    (void)m;
    return ACTOR_CONTINUE;
}

static const struct actor_class body_class = {
    .name = "body",
    .state_size = sizeof(void (*)(void)),
    .init = body_init,
    .proceed = body_proceed,
    .handle = body_handle,
    .trap_exits = true,
    .stack_size = 1 << 20, /* printf of a failed check */
};

static void quiet(const char *line, size_t size)
{
    (void)line;
    (void)size;
}

static bool inside_once(void (*body)(void), uint64_t seed)
{
    struct sim *s = sim_create(&(struct sim_options){.seed = seed, .schedulers = 2, .runtime.log = quiet});
    finished = false;
    enum error e = runtime_spawn(
        sim_runtime(s),
        &(struct spawn_options){.class = &body_class, .args = &body, .args_size = sizeof(body)}, NULL);
    if (e == OK)
        sim_run(s, 100000000);
    sim_destroy(s);
    return finished;
}

bool inside(void (*body)(void))
{
    for (uint64_t seed = 1; seed <= INSIDE_SEEDS; seed++)
        if (!inside_once(body, seed))
            return false;
    return true;
}

void inside_settle(void)
{
    actor_sleep(actor_deadline_ms(1));
}
