#include "config/opening.h"

#include <pthread.h>
#include <time.h>

#include "config/clock.h"
#include "config/log.h"
#include "config/output.h"

#define LEAVE_NS (100 * NS_PER_MS)

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    bool threaded, done;
    void (*then)(void *arg);
    void *then_arg;
    const struct options *options;
    struct store *store;
    enum error error;
    char why[512];
} opening = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void open_store(void)
{
    const struct options *o = opening.options;
    const struct store_options options = {
        .environment = {.dir = o->store_dir,
                        .map = o->store_map,
                        .map_max = o->store_map_max,
                        .step = o->store_step,
                        .reserve = o->store_reserve},
        .env = clock_here(),
        .record = o->store_record,
        .ledger_max = (uint32_t)o->store_ledger,
        .audits_max = (uint32_t)o->store_audits,
        .view_age_ns = o->store_view_age,
    };
    opening.error = store_open(&options, &opening.store, opening.why, sizeof(opening.why));
}

static void *run(void *arg)
{
    (void)arg;
    open_store();
    pthread_mutex_lock(&opening.lock);
    opening.done = true;
    if (opening.then)
        opening.then(opening.then_arg);
    opening.then = NULL;
    pthread_cond_broadcast(&opening.changed);
    pthread_mutex_unlock(&opening.lock);
    return NULL;
}

void opening_begin(const struct options *o)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC); /* env_real's */
    pthread_cond_init(&opening.changed, &attributes);
    pthread_condattr_destroy(&attributes);
    opening.options = o;
    opening.store = NULL;
    opening.error = OK;
    opening.done = false;
    opening.threaded = pthread_create(&opening.thread, NULL, run, NULL) == 0;
    if (!opening.threaded)
        (void)run(NULL);
}

bool opening_wait(uint64_t ns)
{
    struct env *env = env_real();
    uint64_t until = env->now(env) + ns;
    const struct timespec at = {.tv_sec = (time_t)(until / NS_PER_S), .tv_nsec = (long)(until % NS_PER_S)};
    pthread_mutex_lock(&opening.lock);
    while (!opening.done && pthread_cond_timedwait(&opening.changed, &opening.lock, &at) == 0)
        ;
    bool done = opening.done;
    pthread_mutex_unlock(&opening.lock);
    return done;
}

void opening_then(void (*call)(void *arg), void *arg)
{
    pthread_mutex_lock(&opening.lock);
    if (call && opening.done)
        call(arg);
    else
        opening.then = call;
    opening.then_arg = arg;
    pthread_mutex_unlock(&opening.lock);
}

static void join(void)
{
    if (opening.threaded)
        pthread_join(opening.thread, NULL);
    pthread_cond_destroy(&opening.changed);
}

void opening_leave(void)
{
    if (!opening_wait(LEAVE_NS)) {
        pthread_detach(opening.thread);
        return;
    }
    join();
    store_close(opening.store);
}

struct store *opening_end(int *ret_status)
{
    join();
    if (!opening.error)
        return opening.store;
    LOG(LOG_ERROR, "boot", "the store could not be opened", {"reason", opening.why, 0},
        {"err", error_name(opening.error), 0});
    *ret_status = opening.error == ERR_INVALID
                      ? output_refuse_settings(opening.why)
                      : output_complain(environment_exit_status(opening.error), "", opening.why);
    return NULL;
}
