#define TEST_NO_MAIN
#include "acutest.h"
#include "tests/runtime/node.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include "runtime/blob.h"
#include "runtime/scheduler.h"

uint64_t node_seed;

/* ---- the books ---- */

struct books {
    size_t actors, records, timers, messages, chunks, blobs, stacks, watches;
};

static size_t idle_stacks(const struct scheduler *s, int class)
{
    size_t n = 0;
    for (const struct worker *w = s->idle_workers[class]; w; w = w->idle_next)
        n++;
    return n;
}

static struct books books_of(struct runtime *rt)
{
    struct books b = {.blobs = blob_count()};
    struct pool_stats p;
    for (uint32_t i = 0; i < rt->schedulers_count; i++) {
        struct scheduler *s = rt->schedulers[i];
        b.actors += s->living;
        b.records += s->records_living;
        b.timers += wheel_count(&s->wheel);
        b.watches += s->watches;
        for (int c = 0; c < STACK_CLASSES; c++) {
            struct coro_stats stats;
            coro_pool_stats(s->stacks[c], &stats);
            b.stacks += stats.in_use - idle_stacks(s, c);
        }
    }
    for (uint32_t i = 0; i < MESSAGE_BLOCKS; i++) {
        pool_depot_stats(rt->message_depots[i], &p);
        b.messages += p.in_use;
    }
    pool_depot_stats(rt->chunk_depot, &p);
    b.chunks = p.in_use;
    return b;
}

static void books_check(struct books before, struct books after)
{
#define SAME(field)                                                                                         \
    TEST_CHECK_(before.field == after.field, "%s: %zu before, %zu after (seed %llu)", #field, before.field, \
                after.field, (unsigned long long)node_seed)
    SAME(actors);
    SAME(records);
    SAME(timers);
    SAME(messages);
    SAME(chunks);
    SAME(blobs);
    SAME(stacks);
    SAME(watches);
#undef SAME
}

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static char failures[2000];

void node_failed(const char *what, const char *file, int line)
{
    pthread_mutex_lock(&log_lock);
    size_t used = strlen(failures);
    snprintf(failures + used, sizeof failures - used, "%s:%d: %s\n", file, line, what);
    pthread_mutex_unlock(&log_lock);
}

static void failures_check(void)
{
    TEST_CHECK_(!failures[0], "%s(seed %llu)", failures, (unsigned long long)node_seed);
    failures[0] = 0;
}

/* ---- the root ---- */

struct sim *the_sim;
struct runtime *node_runtime;
static void (*the_body)(void);
static bool balanced, finished;

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
    struct books before = {0};
    if (balanced)
        before = books_of(runtime_self());
    the_body();
    if (balanced) {
        settle();
        mail(); /* what the body didn't want to see, and what it has looked at */
        message_release_held(scheduler_current, scheduler_current->current, 0, NULL);
        books_check(before, books_of(runtime_self()));
    }
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
    .name = "root",
    .init = root_init,
    .proceed = root_proceed,
    .handle = root_handle,
    .trap_exits = true,
    .stack_size = 1 << 20, /* printf of a failed check */
    .mailbox_capacity = 1 << 20,
    .runaway_ns = DEADLINE_NONE,
};

static void run_sim(const struct sim_options *o)
{
    struct sim_options options = *o;
    if (!options.runtime.log)
        options.runtime.log = node_log;
    node_seed = o->seed;
    the_sim = sim_create(&options);
    TEST_ASSERT(the_sim != NULL);
    finished = false;
    node_runtime = sim_runtime(the_sim);
    TEST_ASSERT(!runtime_spawn(node_runtime, &(struct spawn_options){.class = &root_class}, NULL));
    sim_run(the_sim, 50000000);
    TEST_CHECK_(finished, "the body came to its end (seed %llu)", (unsigned long long)node_seed);
    sim_destroy(the_sim);
    failures_check();
}

void node_sim(void (*body)(void))
{
    static const enum sim_order orders[] = {SIM_RANDOM, SIM_PRIORITY, SIM_RANDOM, SIM_FIFO};
    const char *seeds = getenv("NODE_SEEDS");
    uint64_t last = seeds ? strtoull(seeds, NULL, 10) : NODE_SEEDS;
    the_body = body;
    for (uint64_t seed = 1; seed <= last; seed++) {
        balanced = true;
        run_sim(&(struct sim_options){
            .seed = seed, .schedulers = 1 + (uint32_t)seed % 3, .order = orders[seed % 4]});
        balanced = false;
    }
}

void node_sim_with(void (*body)(void), const struct sim_options *o)
{
    the_body = body;
    run_sim(o);
}

void settle(void)
{
    actor_sleep(actor_now() + 1); /* the virtual clock moves when nobody can run */
}

uint32_t draw(uint32_t count)
{
    return (uint32_t)(sim_random(the_sim) >> 32) % count;
}

int anywhere(void)
{
    return SPAWN_ON(draw(runtime_schedulers()));
}

/* ---- real ---- */

static char log_text[1 << 20];
static size_t log_used;

void node_log(const char *line, size_t size)
{
    pthread_mutex_lock(&log_lock);
    if (log_used + size + 2 < sizeof log_text) {
        memcpy(log_text + log_used, line, size);
        log_used += size;
        log_text[log_used++] = '\n';
    }
    pthread_mutex_unlock(&log_lock);
}

size_t node_logged(const char *text)
{
    size_t n = 0;
    pthread_mutex_lock(&log_lock);
    log_text[log_used] = 0;
    for (const char *at = log_text; (at = strstr(at, text)); at++)
        n++;
    pthread_mutex_unlock(&log_lock);
    return n;
}

int node_real_with(const struct runtime_options *o, void (*body)(void))
{
    char error[256] = "";
    struct runtime_options options = *o;
    if (!options.log)
        options.log = node_log;
    the_body = body;
    finished = false;
    size_t blobs = blob_count();
    node_runtime = runtime_create(&options, error, sizeof error);
    TEST_ASSERT_(node_runtime != NULL, "%s", error);
    TEST_ASSERT(!runtime_spawn(node_runtime, &(struct spawn_options){.class = &root_class}, NULL));
    int status = runtime_run(node_runtime);
    failures_check();
    books_check((struct books){.blobs = blobs}, books_of(node_runtime));
    runtime_destroy(node_runtime);
    node_runtime = NULL;
    return status;
}

int node_real(uint32_t schedulers, void (*body)(void))
{
    int status =
        node_real_with(&(struct runtime_options){.schedulers = schedulers, .actors_max = 1 << 18}, body);
    TEST_CHECK(finished);
    return status;
}

/* ---- dolls ---- */

enum actor_step doll_handle(void *state, struct message *m)
{
    (void)state;
    struct order *o;
    if (m->type == RUN && (o = message_body(m, sizeof *o)))
        o->run(o->arg);
    else if (m->type == ASK)
        actor_reply(m, m);
    return ACTOR_CONTINUE;
}

const struct actor_class doll_class = {.name = "doll", .handle = doll_handle, .runaway_ns = DEADLINE_NONE};
const struct actor_class trapper_class = {
    .name = "trapper", .handle = doll_handle, .trap_exits = true, .runaway_ns = DEADLINE_NONE};

actor_pid spawn(const struct actor_class *class, int scheduler)
{
    actor_pid pid = 0;
    enum error e = actor_spawn(&(struct spawn_options){.class = class, .scheduler = scheduler}, &pid);
    EXPECT(!e);
    return pid;
}

actor_pid doll(int scheduler)
{
    return spawn(&doll_class, scheduler);
}

void tell(actor_pid to, void (*run)(void *arg), void *arg)
{
    struct order o = {run, arg};
    EXPECT(actor_cast(to, RUN, &o, sizeof o) == OK);
}

void note(actor_pid to, uint64_t value)
{
    EXPECT(actor_cast(to, NOTE, &value, sizeof value) == OK);
}

static bool of_type(const struct message *m, void *arg)
{
    return m->type == *(uint32_t *)arg;
}

void *expect(uint32_t type)
{
    struct message *m = actor_receive(of_type, &type, DEADLINE_NONE);
    return m->payload;
}

bool mail(void)
{
    struct message *m;
    bool any = false;
    while ((m = actor_receive(NULL, NULL, 0))) {
        any = true;
        message_free(m);
    }
    return any;
}

static bool of_ref(const struct message *m, void *arg)
{
    return m->type == MESSAGE_DOWN &&
           ((const struct message_down *)(const void *)m->payload)->ref == *(uint64_t *)arg;
}

struct reason ended(actor_pid pid)
{
    return down(actor_monitor(pid, 0));
}

struct reason down(uint64_t ref)
{
    struct message *m = actor_receive(of_ref, &ref, DEADLINE_NONE);
    struct reason why = ((struct message_down *)(void *)m->payload)->reason;
    why.detail = NULL;
    message_free(m);
    return why;
}

/* ---- children ---- */

void *node_argument;

struct outcome node_child(void (*body)(void), void *argument)
{
    struct outcome o = {.exited = -1};
    int pipe_fds[2], status;
    TEST_ASSERT(pipe(pipe_fds) == 0);
    fflush(NULL);
    pid_t pid = fork();
    TEST_ASSERT(pid >= 0);
    if (pid == 0) {
        close(pipe_fds[0]);
        dup2(pipe_fds[1], 2);
        node_argument = argument;
        body();
        _exit(0);
    }
    close(pipe_fds[1]);
    size_t used = 0;
    char more[1024];
    for (ssize_t n; (n = read(pipe_fds[0], more, sizeof more)) > 0;)
        for (ssize_t i = 0; i < n; i++) {
            o.lines += more[i] == '\n';
            if (used + 1 < sizeof o.text)
                o.text[used++] = more[i];
        }
    close(pipe_fds[0]);
    waitpid(pid, &status, 0);
    if (WIFEXITED(status))
        o.exited = WEXITSTATUS(status);
    else
        o.signal = WTERMSIG(status);
    return o;
}
