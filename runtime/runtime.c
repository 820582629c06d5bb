#define _GNU_SOURCE
#include "runtime/runtime.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "runtime/groups.h"
#include "runtime/json.h"
#include "runtime/names.h"
#include "runtime/scheduler.h"
#include "runtime/telemetry.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* What has ended since the first supervisor of this incident gave up. */
struct runtime_incident {
    pthread_mutex_t lock;
    uint64_t began;
    uint32_t count;
    char domains[INCIDENT_DOMAINS][64];
};

/* Messages from threads that are no scheduler: pools of their own behind a lock. */
struct runtime_foreign {
    pthread_mutex_t lock;
    struct pool messages[MESSAGE_BLOCKS];
};

/* ---- options ---- */

static bool refuse(char *error, size_t size, const char *field, uint64_t value, const char *right)
{
    if (error && size)
        snprintf(error, size, "%s is %llu; it must be %s", field, (unsigned long long)value, right);
    return false;
}

static uint32_t cpus(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    int n = CPU_COUNT(&set);
    return n < 1 ? 1 : n > RUNTIME_SCHEDULERS_MAX ? RUNTIME_SCHEDULERS_MAX : (uint32_t)n;
}

static bool options_fill(struct runtime_options *o, char *error, size_t size)
{
    if (o->schedulers > RUNTIME_SCHEDULERS_MAX)
        return refuse(error, size, "schedulers", o->schedulers, "0 (the CPUs) to 64");
    if (o->actors_max > PID_SLOTS_MAX - 1)
        return refuse(error, size, "actors_max", o->actors_max, "0 (4194304) to 16777214");
    if (o->names_max > NAMES_COUNT_MAX)
        return refuse(error, size, "names_max", o->names_max, "0 (4194304) to 16777216");
    if (o->slice_ns && (o->slice_ns < 100 * NS_PER_US || o->slice_ns > NS_PER_S))
        return refuse(error, size, "slice_ns", o->slice_ns, "0 (1 ms) or 100000 to 1000000000");
    if (!o->slice_ns)
        o->slice_ns = NS_PER_MS;
    if (o->runaway_ns && o->runaway_ns < o->slice_ns)
        return refuse(error, size, "runaway_ns", o->runaway_ns, "0 (1 s) or at least the slice");
    if (o->message_bytes_max && o->message_bytes_max < (16u << 20))
        return refuse(error, size, "message_bytes_max", o->message_bytes_max, "0 (1 GiB) or at least 16 MiB");
    if (!o->schedulers)
        o->schedulers = cpus();
    if (o->dedicated > RUNTIME_SCHEDULERS_MAX - 1)
        return refuse(error, size, "dedicated", o->dedicated, "0 to 63");
    if (o->schedulers + o->dedicated > RUNTIME_SCHEDULERS_MAX)
        o->schedulers = RUNTIME_SCHEDULERS_MAX - o->dedicated;
    if (!o->env)
        o->env = env_real();
    if (!o->actors_max)
        o->actors_max = 1u << 22;
    if (!o->names_max)
        o->names_max = 1u << 22;
    if (!o->message_bytes_max)
        o->message_bytes_max = 1ull << 30;
    if (!o->runaway_ns)
        o->runaway_ns = NS_PER_S;
    return true;
}

/* ---- life ---- */

static uint64_t telemetry_clock(void *context)
{
    struct env *env = context;
    struct scheduler *s = scheduler_current;
    return s ? s->now : env->now(env);
}

static uint64_t telemetry_wall(void *context)
{
    struct env *env = context;
    return env->wall(env);
}

static bool make_shared(struct runtime *rt)
{
    for (uint32_t i = 0; i < MESSAGE_BLOCKS; i++)
        if (!(rt->message_depots[i] =
                  pool_depot_create((size_t)MESSAGE_BLOCK_MIN << i, rt->options.message_bytes_max)))
            return false;
    rt->chunk_depot = pool_depot_create(4096, rt->options.message_bytes_max);
    struct hash_key key; /* names come from strangers: which ones share a bucket is nobody's business */
    rt->env->random(rt->env, &key, sizeof key);
    rt->names = names_create_keyed(rt->options.names_max, &key);
    rt->groups = groups_create(65536, rt->options.names_max);
    rt->telemetry = telemetry_create(&(struct telemetry_options){
        .shards = rt->schedulers_count, .now = telemetry_clock, .wall = telemetry_wall, .context = rt->env});
    if (!rt->chunk_depot || !rt->names || !rt->groups || !rt->telemetry)
        return false;
    telemetry_install(rt->telemetry);
    rt->foreign = mmap(NULL, sizeof *rt->foreign, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (rt->foreign == MAP_FAILED) {
        rt->foreign = NULL;
        return false;
    }
    rt->incident =
        mmap(NULL, sizeof *rt->incident, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (rt->incident == MAP_FAILED) {
        rt->incident = NULL;
        return false;
    }
    pthread_mutex_init(&rt->incident->lock, NULL);
    pthread_mutex_init(&rt->foreign->lock, NULL);
    for (uint32_t i = 0; i < MESSAGE_BLOCKS; i++)
        pool_init(&rt->foreign->messages[i], rt->message_depots[i]);
    return true;
}

struct runtime *runtime_create(const struct runtime_options *options, char *error, size_t error_size)
{
    struct runtime_options o = *options;
    if (!options_fill(&o, error, error_size))
        return NULL;
    struct runtime *rt = mmap(NULL, sizeof *rt, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (rt == MAP_FAILED) {
        snprintf(error, error_size, "no memory for the runtime");
        return NULL;
    }
    rt->options = o;
    rt->env = o.env;
    rt->schedulers_count = o.schedulers + o.dedicated;
    rt->crowded = rt->schedulers_count > cpus();
    rt->contained = !o.no_containment;
    bool ok = make_shared(rt);
    for (uint32_t i = 0; ok && i < rt->schedulers_count; i++)
        ok = (rt->schedulers[i] = scheduler_create(rt, i)) != NULL;
    if (!ok) {
        if (error && error_size)
            snprintf(error, error_size,
                     "memory or descriptors for the runtime can't be had: %u schedulers of %u actors",
                     (unsigned)rt->schedulers_count, (unsigned)o.actors_max);
        runtime_destroy(rt);
        return NULL;
    }
    if (rt->contained)
        fault_install();
    return rt;
}

void runtime_destroy(struct runtime *rt)
{
    if (!rt)
        return;
    for (uint32_t i = 0; i < rt->schedulers_count; i++)
        scheduler_destroy(rt->schedulers[i]);
    if (rt->foreign) {
        for (uint32_t i = 0; i < MESSAGE_BLOCKS; i++)
            pool_fini(&rt->foreign->messages[i]);
        munmap(rt->foreign, sizeof *rt->foreign);
    }
    if (rt->incident)
        munmap(rt->incident, sizeof *rt->incident);
    telemetry_destroy(rt->telemetry);
    groups_destroy(rt->groups);
    names_destroy(rt->names);
    for (uint32_t i = 0; i < MESSAGE_BLOCKS; i++)
        pool_depot_destroy(rt->message_depots[i]);
    pool_depot_destroy(rt->chunk_depot);
    munmap(rt, sizeof *rt);
}

enum error runtime_spawn(struct runtime *rt, const struct spawn_options *o, actor_pid *ret_pid)
{
    enum error e = actor_options_check(o);
    if (e)
        return e;
    if (o->scheduler < 0 || (uint32_t)o->scheduler > rt->schedulers_count || o->link || o->monitor)
        return ERR_INVALID;
    struct scheduler *s = rt->schedulers[o->scheduler == SPAWN_HERE ? 0 : o->scheduler - 1];
    struct message *birth = actor_birth_message(s, o);
    if (!birth)
        return ERR_MEMORY;
    struct actor *a = actor_birth(s, o->class, 0, birth);
    if (!a) {
        message_give(s, birth);
        return ERR_LIMIT;
    }
    a->flags |= ACTOR_CHILD; /* of the world outside: pid 0 */
    if (!atomic_load(&rt->root)) {
        a->flags |= ACTOR_ROOT;
        atomic_store(&rt->root, actor_pid_of(a));
    }
    if (ret_pid)
        *ret_pid = actor_pid_of(a);
    return OK;
}

static void *scheduler_thread(void *arg)
{
    struct scheduler *s = arg;
    __atomic_store_n(&s->thread, (uint64_t)pthread_self(), __ATOMIC_RELAXED);
    scheduler_loop(s);
    preempt_leave(s);
    return NULL;
}

static void wake_all(struct runtime *rt)
{
    for (uint32_t i = 0; i < rt->schedulers_count; i++)
        if (rt->schedulers[i]->poller)
            rt->env->poller_wake(rt->schedulers[i]->poller);
}

/* Threads of ours leave the process's signals to the one that called us. Those of faults and of slices are each thread's own; whoever
 * started the process may have blocked them, since a mask is inherited, and then each fault would be the process's end. */
static void mask_signals(sigset_t *ret_before)
{
    const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGURG, SIGRTMIN + 5};
    sigset_t ours, others;
    sigemptyset(&ours);
    sigfillset(&others);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        sigaddset(&ours, own[i]);
        sigdelset(&others, own[i]);
    }
    pthread_sigmask(SIG_UNBLOCK, &ours, NULL);
    pthread_sigmask(SIG_BLOCK, &others, ret_before);
}

int runtime_run(struct runtime *rt)
{
    pthread_t threads[RUNTIME_SCHEDULERS_MAX];
    uint32_t started = 1;
    sigset_t before;
    ASSERT(!rt->env->simulated);
    mask_signals(&before);
    if (!rt->options.no_preemption && !SANITIZED)
        rt->preempt = preempt_start(rt); /* before the threads, which read this */
    for (; started < rt->schedulers_count; started++)
        if (pthread_create(&threads[started], NULL, scheduler_thread, rt->schedulers[started]) != 0)
            fault_fatal("no threads", "a scheduler's thread could not be started");
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    __atomic_store_n(&rt->schedulers[0]->thread, (uint64_t)pthread_self(), __ATOMIC_RELAXED);
    scheduler_loop(rt->schedulers[0]);
    wake_all(rt);
    for (uint32_t i = 1; i < started; i++)
        pthread_join(threads[i], NULL);
    preempt_end(rt->preempt);
    rt->preempt = NULL;
    for (uint32_t i = 0; i < rt->schedulers_count; i++)
        scheduler_wind_down(rt->schedulers[i]); /* what the others had to say when it had ended already */
    return atomic_load(&rt->exit_status);
}

void runtime_stop(struct runtime *rt)
{
    int before = atomic_fetch_add(&rt->stopping, 1);
    if (before >= 1)
        atomic_store(&rt->ended, 1);
    wake_all(rt);
}

/* The root's scheduler looks at this each turn; asking is a flag because the asker may be a signal handler. */
void runtime_stop_asked(struct scheduler *s)
{
    struct runtime *rt = s->rt;
    actor_pid root = atomic_load(&rt->root);
    if (s->stop_told || pid_scheduler(root) != s->index)
        return;
    s->stop_told = true;
    struct reason why = reason_of(REASON_SHUTDOWN);
    if (root)
        signal_exit_send(s, root, 0, &why, false, 0);
    else
        runtime_root_ended(rt, s, &why); /* there never was one */
}

static void last_words(struct runtime *rt, const char *msg, const char *domain, uint32_t count,
                       uint64_t window_ms, const char *why, int status)
{
    char line[1024];
    struct json_sink sink;
    struct json json;
    json_sink_init(&sink, line, sizeof line, NULL, NULL);
    json_init(&json, &sink);
    json_object_begin(&json);
    JSON_MEMBER(&json, "level", string, "fatal");
    JSON_MEMBER(&json, "msg", string, msg);
    JSON_MEMBER(&json, "domain", string, domain);
    JSON_MEMBER(&json, "restarts", uint, count);
    JSON_MEMBER(&json, "window_ms", uint, window_ms);
    JSON_MEMBER(&json, "reason", string, why);
    JSON_MEMBER(&json, "exit_status", int, status);
    json_object_end(&json);
    json_end(&json);
    runtime_log(rt, line, sink.length);
    atomic_store(&rt->exit_status, status);
}

static void last_words_of(struct runtime *rt, const char *msg, const char *domain, uint32_t count,
                          uint64_t window_ms, const struct reason *why)
{
    char text[REASON_TEXT_MAX];
    reason_format(why, text, sizeof text);
    last_words(rt, msg, domain, count, window_ms, text, RUNTIME_EXIT_EXHAUSTED);
}

void runtime_abandon(int status, const char *why)
{
    struct runtime *rt = scheduler_enter()->rt;
    ASSERT(status);
    if (!atomic_load(&rt->exit_status))
        last_words(rt, "abandoned", scheduler_current->current->class->name, 0, 0, why, status);
    atomic_store(&rt->ended, 1);
    if (!rt->env->simulated)
        wake_all(rt);
}

int64_t runtime_cascade(const char *domain)
{
    struct scheduler *s = scheduler_current;
    struct runtime_incident *in = s->rt->incident;
    pthread_mutex_lock(&in->lock);
    if (!in->count || s->now - in->began > INCIDENT_NS) {
        in->began = s->now;
        in->count = 0;
    }
    uint32_t i = 0;
    while (i < in->count && strncmp(in->domains[i], domain, sizeof in->domains[i] - 1) != 0)
        i++;
    if (i == in->count && in->count < INCIDENT_DOMAINS)
        snprintf(in->domains[in->count++], sizeof in->domains[0], "%s", domain);
    int64_t others = (int64_t)in->count - 1;
    pthread_mutex_unlock(&in->lock);
    return others;
}

void runtime_exhausted(const char *domain, uint32_t count, uint64_t window_ms, const struct reason *last)
{
    struct runtime *rt = scheduler_current->rt;
    if (!atomic_load(&rt->exit_status))
        last_words_of(rt, "restart budget of the root is exhausted", domain, count, window_ms, last);
}

void runtime_root_ended(struct runtime *rt, struct scheduler *s, const struct reason *why)
{
    (void)s;
    if (reason_abnormal(why) && !atomic_load(&rt->exit_status))
        last_words_of(rt, "the root ended", "root", 0, 0, why);
    atomic_store(&rt->ended, 1);
    if (!rt->env->simulated)
        wake_all(rt);
}

/* ---- from outside ---- */

enum error runtime_post(struct runtime *rt, actor_pid to, uint32_t type, const void *bytes, size_t size)
{
    if (!to || pid_scheduler(to) >= rt->schedulers_count || type > MESSAGE_USER_MAX ||
        size > MESSAGE_PAYLOAD_MAX)
        return ERR_INVALID;
    size_t whole = size + MESSAGE_HEAD;
    uint32_t block = whole <= MESSAGE_BLOCK_MIN ? 0 : (uint32_t)(64 - __builtin_clzll(whole - 1)) - 6;
    pthread_mutex_lock(&rt->foreign->lock);
    struct message *m = pool_take(&rt->foreign->messages[block]);
    pthread_mutex_unlock(&rt->foreign->lock);
    if (!m)
        return ERR_MEMORY;
    *m = (struct message){.to = to, .type = type, .size = (uint32_t)size & 0xffffff, .block = block & 0xf};
    if (size)
        memcpy(m->payload, bytes, size);
    inbox_push(rt->schedulers[pid_scheduler(to)], m, m);
    return OK;
}

struct runtime *runtime_self(void)
{
    return scheduler_enter()->rt;
}

struct telemetry *runtime_telemetry(struct runtime *rt)
{
    return rt->telemetry;
}

uint32_t runtime_schedulers(void)
{
    return scheduler_enter()->rt->options.schedulers;
}

uint32_t runtime_dedicated(uint32_t n)
{
    const struct runtime *rt = scheduler_enter()->rt;
    ASSERT(n == 0 || n < rt->options.dedicated);
    return rt->options.dedicated ? rt->options.schedulers + n : rt->options.schedulers - 1;
}

/* ---- words ---- */

bool runtime_logs(struct runtime *rt, const char *level)
{
    return !rt->options.logs || rt->options.logs(level);
}

void runtime_log(struct runtime *rt, const char *line, size_t size)
{
    if (rt->options.log) {
        rt->options.log(line, size);
        return;
    }
    char out[2048];
    size = size < sizeof out - 1 ? size : sizeof out - 1;
    memcpy(out, line, size);
    out[size] = '\n';
    env_error_write(out, size + 1); /* a log that nobody reads doesn't stop the server */
}

void runtime_crash_report(struct scheduler *s, const struct actor *a, const char *why)
{
    char line[1024];
    struct json_sink sink;
    struct json json;
    json_sink_init(&sink, line, sizeof line, NULL, NULL);
    json_init(&json, &sink);
    json_object_begin(&json);
    JSON_MEMBER(&json, "level", string, "error");
    JSON_MEMBER(&json, "msg", string, "actor crashed");
    JSON_MEMBER(&json, "actor", hex_string, actor_pid_of(a));
    JSON_MEMBER(&json, "class", string, a->class->name);
    JSON_MEMBER(&json, "err", string, why);
    JSON_MEMBER(&json, "last_message_type", uint, a->held ? a->held->type : 0);
    JSON_MEMBER(&json, "messages_handled", uint, a->handled);
    JSON_MEMBER(&json, "mailbox", uint, atomic_load_explicit(&a->mail_count, memory_order_relaxed));
    json_key(&json, "state");
    char hex[65];
    size_t n = a->class->state_size < 32 ? a->class->state_size : 32;
    for (size_t i = 0; i < n; i++)
        snprintf(hex + 2 * i, 3, "%02x", ((const unsigned char *)a->state)[i]);
    json_string_n(&json, hex, 2 * n);
    json_object_end(&json);
    json_end(&json);
    runtime_log(s->rt, line, sink.length);
}

void runtime_stats(struct runtime *rt, struct runtime_stats *ret)
{
    *ret = (struct runtime_stats){.schedulers = rt->schedulers_count};
    for (uint32_t i = 0; i < rt->schedulers_count; i++) {
        struct scheduler *s = rt->schedulers[i];
#define GET(field) atomic_load_explicit(&s->field, memory_order_relaxed)
        ret->spawned += GET(spawned);
        ret->ended += GET(ended);
        ret->crashed += GET(crashed);
        ret->messages_handled += GET(handled);
        ret->messages_dropped += GET(dropped);
        ret->messages_remote += GET(remote);
        ret->preemptions += GET(preemptions);
        ret->overruns += GET(overruns);
        ret->wakes += GET(wakes);
        ret->polls += GET(polls);
        ret->turns += GET(turns);
        ret->stacks += GET(workers);
        ret->stacks_in_use += GET(workers) - GET(workers_idle);
#undef GET
        ret->records += __atomic_load_n(&s->records_living, __ATOMIC_RELAXED);
        ret->record_bytes +=
            (uint64_t)__atomic_load_n(&s->records_used, __ATOMIC_RELAXED) * sizeof(struct record);
        ret->actor_bytes +=
            (uint64_t)__atomic_load_n(&s->slots_used, __ATOMIC_RELAXED) * sizeof(struct actor);
        ret->timers += __atomic_load_n(&s->wheel.count, __ATOMIC_RELAXED);
    }
    ret->actors = ret->spawned - ret->ended;
    for (uint32_t i = 0; i < MESSAGE_BLOCKS; i++) {
        struct pool_stats p;
        pool_depot_stats(rt->message_depots[i], &p);
        ret->message_bytes += p.bytes;
    }
}

void runtime_scheduler(struct runtime *rt, uint32_t n, struct runtime_scheduler *ret)
{
    ASSERT(n < rt->schedulers_count);
    const struct scheduler *s = rt->schedulers[n];
    uint64_t now = rt->env->now(rt->env);
#define GET(field) atomic_load_explicit(&s->field, memory_order_relaxed)
    uint64_t in_use = GET(workers) - GET(workers_idle), running = GET(running);
    *ret = (struct runtime_scheduler){
        .dedicated = n >= rt->options.schedulers,
        .busy_ppm = scheduler_busy_ppm(s, now),
        .lived_ns = now - s->born,
        .idle_ns = scheduler_idle_ns(s, now),
        .run_queue = __atomic_load_n(&s->ready.count, __ATOMIC_RELAXED) +
                     (uint64_t)__atomic_load_n(&s->hogs.count, __ATOMIC_RELAXED),
        .actors = GET(spawned) - GET(ended),
        .parked = in_use > running ? in_use - running : 0,
        .messages_handled = GET(handled),
        .messages_remote = GET(remote),
        .preemptions = GET(preemptions),
        .overruns = GET(overruns),
        .turns = GET(turns),
        .timers = __atomic_load_n(&s->wheel.count, __ATOMIC_RELAXED),
    };
#undef GET
}

static struct runtime_class *class_slot(struct runtime_class *classes, size_t *used, size_t count,
                                        const char *name)
{
    for (size_t i = 0; i < *used; i++)
        if (classes[i].name == name || strcmp(classes[i].name, name) == 0)
            return &classes[i];
    if (*used == count)
        return NULL;
    classes[*used] = (struct runtime_class){.name = name};
    return &classes[(*used)++];
}

size_t runtime_classes(struct runtime *rt, struct runtime_class *classes, size_t count)
{
    size_t used = 0;
    for (uint32_t i = 0; i < rt->schedulers_count; i++) {
        struct scheduler *s = rt->schedulers[i];
        uint32_t n = __atomic_load_n(&s->classes_used, __ATOMIC_ACQUIRE);
        for (uint32_t k = 0; k < n; k++) {
            const struct class_stats *from = &s->classes[k];
            struct runtime_class *to = class_slot(classes, &used, count, from->class->name);
            if (!to)
                continue;
#define ADD(field) to->field += __atomic_load_n(&from->field, __ATOMIC_RELAXED)
            ADD(spawned);
            ADD(ended);
            ADD(crashed);
            ADD(handled);
            ADD(preempted);
            ADD(overrun);
#undef ADD
            uint64_t deep = __atomic_load_n(&from->stack_high_water, __ATOMIC_RELAXED);
            to->stack_high_water = deep > to->stack_high_water ? deep : to->stack_high_water;
            to->living = to->spawned - to->ended;
        }
    }
    return used;
}

/* Whether the log is told of it: of one in UNKNOWN_EVERY_NS, and then how many it wasn't told of. */
static bool unknown_is_due(struct scheduler *s, struct class_stats *class)
{
    if (s->now < class->unknown_next) {
        class->unknown_left_out += class->unknown_left_out < UINT32_MAX;
        return false;
    }
    class->unknown_next = s->now + UNKNOWN_EVERY_NS;
    return true;
}

void runtime_unknown_message(struct scheduler *s, const struct message *m)
{
    struct class_stats *class = s->current->stats;
    if (!unknown_is_due(s, class))
        return;
    char line[256];
    struct json_sink sink;
    struct json json;
    json_sink_init(&sink, line, sizeof line, NULL, NULL);
    json_init(&json, &sink);
    json_object_begin(&json);
    JSON_MEMBER(&json, "level", string, "warn");
    JSON_MEMBER(&json, "msg", string, "unknown message dropped");
    JSON_MEMBER(&json, "actor", hex_string, actor_pid_of(s->current));
    JSON_MEMBER(&json, "class", string, s->current->class->name);
    JSON_MEMBER(&json, "type", uint, m->type);
    JSON_MEMBER(&json, "from", hex_string, m->from);
    if (class->unknown_left_out)
        JSON_MEMBER(&json, "left_out", uint, class->unknown_left_out);
    json_object_end(&json);
    json_end(&json);
    class->unknown_left_out = 0;
    runtime_log(s->rt, line, sink.length);
}
