#include "tests/support/real.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char failures[4000], logged[1 << 16];
static size_t logged_size;
static bool finished;

void real_failed(const char *what, const char *file, int line)
{
    pthread_mutex_lock(&lock);
    size_t used = strlen(failures);
    snprintf(failures + used, sizeof(failures) - used, "%s:%d: %s\n", file, line, what);
    pthread_mutex_unlock(&lock);
}

static void take_log(const char *line, size_t size)
{
    pthread_mutex_lock(&lock);
    if (logged_size + size + 2 < sizeof(logged)) {
        memcpy(logged + logged_size, line, size);
        logged_size += size;
        logged[logged_size++] = '\n';
        logged[logged_size] = 0;
    }
    pthread_mutex_unlock(&lock);
}

size_t real_logged(const char *text)
{
    size_t count = 0;
    pthread_mutex_lock(&lock);
    for (const char *at = logged; (at = strstr(at, text)) != NULL; at++)
        count++;
    pthread_mutex_unlock(&lock);
    return count;
}

static enum actor_step root_init(void *state, const void *args, size_t args_size)
{
    memcpy(state, args, args_size);
    return ACTOR_PROCEED;
}

static enum actor_step root_proceed(void *state)
{
    void (**body)(void) = state;
    (*body)();
    finished = true;
    return ACTOR_STOP;
}

static enum actor_step root_handle(void *state, struct message *m)
{
    (void)state;
    (void)m;
    return ACTOR_CONTINUE;
}

static const struct actor_class root_class = {
    .name = "body",
    .state_size = sizeof(void (*)(void)),
    .init = root_init,
    .proceed = root_proceed,
    .handle = root_handle,
    .trap_exits = true,
    .mailbox_capacity = 4096,
    .stack_size = 1 << 20,
    .runaway_ns = DEADLINE_NONE,
};

const char *real_run(uint32_t schedulers, void (*body)(void))
{
    static char error[256];
    const struct runtime_options options = {.schedulers = schedulers, .actors_max = 1 << 12, .log = take_log};
    const struct spawn_options root = {.class = &root_class, .args = &body, .args_size = sizeof(body)};
    failures[0] = logged[0] = error[0] = 0;
    logged_size = 0;
    finished = false;
    struct runtime *runtime = runtime_create(&options, error, sizeof(error));
    if (!runtime)
        return error;
    if (runtime_spawn(runtime, &root, NULL) != OK)
        real_failed("the root was spawned", __FILE__, __LINE__);
    else if (runtime_run(runtime) != 0 || !finished)
        real_failed("the body came to its end", __FILE__, __LINE__);
    runtime_destroy(runtime);
    return failures;
}
