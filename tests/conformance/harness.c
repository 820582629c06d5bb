#define _GNU_SOURCE /* program_invocation_name */
#define TEST_NO_MAIN
#include "acutest.h"
#include "harness.h"
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define SHARED_SEEDS 50        /* as many are worth a second process */
#define STEPS_MAX    20000000u /* of one run; an ordinary row takes some hundreds */

struct row {
    const char *id;
    void (*run)(void);
    unsigned flags;
};

static struct world the_world;
struct world *world = &the_world;
static jmp_buf outside; /* the way out of a row that runs outside the simulation */
static bool driving;    /* inside the simulation now */

/* ---- failures ---- */

void world_fail(const char *file, int line, const char *format, ...)
{
    if (!world->failure[0]) {
        int n = snprintf(world->failure, sizeof world->failure, "%s:%d: ", file, line);
        va_list list;
        va_start(list, format);
        vsnprintf(world->failure + n, sizeof world->failure - (size_t)n, format, list);
        va_end(list);
    }
    if (!driving)
        longjmp(outside, 1);
    if (world->root && actor_self() != world->root)
        actor_kill(world->root);
    actor_exit(reason_error(1));
}

void world_expect_equal(const char *file, int line, const char *what, long long got, long long wanted)
{
    if (got != wanted)
        world_fail(file, line, "%s is %lld instead of %lld", what, got, wanted);
}

void world_expect_reason(const char *file, int line, const char *what, const struct reason *got,
                         const struct reason *wanted)
{
    struct reason g = *got, w = *wanted;
    g.address = w.address = 0;
    if (w.kind == REASON_CRASH && !w.detail)
        g.detail = NULL; /* the backtrace */
    if (reason_equal(&g, &w))
        return;
    char a[REASON_TEXT_MAX], b[REASON_TEXT_MAX];
    reason_format(got, a, sizeof a);
    reason_format(wanted, b, sizeof b);
    world_fail(file, line, "%s is %.400s instead of %.400s", what, a, b);
}

/* ---- the run ---- */

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER; /* real schedulers log at the same time */

static void log_line(const char *line, size_t size)
{
    pthread_mutex_lock(&log_lock);
    if (size + 2 <= WORLD_LOG - world->log_size) {
        memcpy(world->log + world->log_size, line, size);
        world->log_size += size;
        world->log[world->log_size++] = '\n';
        world->log[world->log_size] = 0;
    }
    pthread_mutex_unlock(&log_lock);
}

size_t logged(const char *text)
{
    size_t count = 0;
    pthread_mutex_lock(&log_lock);
    for (const char *line = world->log; line < world->log + world->log_size;) {
        const char *end = strchr(line, '\n');
        const char *found = strstr(line, text);
        count += found && found < end;
        line = end + 1;
    }
    pthread_mutex_unlock(&log_lock);
    return count;
}

void log_clear(void)
{
    world->log_size = 0;
    world->log[0] = 0;
}

uint64_t world_told(enum telemetry_event event)
{
    return telemetry_counter_sum(runtime_telemetry(runtime_self()), event);
}

void *keep(const void *bytes, size_t size)
{
    ASSERT(size <= sizeof world->memory - world->kept);
    void *at = world->memory + world->kept;
    world->kept += (size + 15) & ~(size_t)15;
    return size ? memcpy(at, bytes, size) : at;
}

uint32_t draw(uint32_t count)
{
    return (uint32_t)((world->sim ? sim_random(world->sim) : actor_random()) % count);
}

int anywhere(void)
{
    return SPAWN_ON(draw(world->schedulers));
}

static enum actor_step root_init(void *state, const void *args, size_t size)
{
    (void)state;
    (void)args;
    (void)size;
    world->root = actor_self();
    return ACTOR_PROCEED;
}

static enum actor_step root_proceed(void *state)
{
    (void)state;
    world->run();
    world->done = true;
    return ACTOR_STOP;
}

static enum actor_step root_handle(void *state, struct message *m)
{
    (void)state;
    (void)m;
    return ACTOR_CONTINUE;
}

static const struct actor_class root_class = {
    .name = "conformance_row",
    .init = root_init,
    .handle = root_handle,
    .proceed = root_proceed,
    .trap_exits = true,
    .stack_size = 256 * 1024,
    .mailbox_capacity = 200000,
    .runaway_ns = DEADLINE_NONE,
};

void world_simulate(const struct spawn_options *root)
{
    world->sim = sim_create(&(struct sim_options){
        .seed = world->seed,
        .schedulers = world->schedulers,
        .order = world->order,
        .choices = world->choices,
        .choices_count = SCRIPT_MAX,
        .runtime = {.log = log_line},
    });
    ASSERT(world->sim);
    actor_pid pid;
    enum error e = runtime_spawn(sim_runtime(world->sim), root, &pid);
    ASSERT(e == OK);
}

int world_drive(void)
{
    driving = true;
    uint64_t steps = sim_run(world->sim, STEPS_MAX);
    driving = false;
    int status = sim_exit_status(world->sim);
    if (status < 0 && !world->failure[0])
        snprintf(world->failure, sizeof world->failure,
                 steps >= STEPS_MAX ? "still busy after %llu steps" : "nothing can go on after %llu steps",
                 (unsigned long long)steps);
    return status;
}

/* With threads and signals; the schedulers are two whatever the machine has. */
static void run_real(void)
{
    char error[256] = "";
    world->schedulers = 2;
    struct runtime *rt =
        runtime_create(&(struct runtime_options){.schedulers = 2, .log = log_line}, error, sizeof error);
    ASSERT(rt);
    actor_pid pid;
    enum error e = runtime_spawn(rt, &(struct spawn_options){.class = &root_class}, &pid);
    ASSERT(e == OK);
    driving = true;
    runtime_run(rt);
    driving = false;
    runtime_destroy(rt);
}

static void run_inside(bool real)
{
    if (real) {
        run_real();
    } else {
        world_simulate(&(struct spawn_options){.class = &root_class});
        world_drive();
    }
    if (!world->done && !world->failure[0])
        snprintf(world->failure, sizeof world->failure, "the row's actor ended before its end");
}

void script_begin(struct script *script)
{
    sim_choices(world->sim, &script->begun);
    memset(world->choices + script->begun, 0, SCRIPT_MAX - script->begun);
    memcpy(world->choices + script->begun, script->choices, script->count);
}

/* The last choice that has another answer gets the next one; what came after it is asked anew. */
void script_end(struct script *script)
{
    size_t count;
    const struct sim_choice *taken = sim_choices(world->sim, &count);
    taken += script->begun;
    count -= script->begun;
    ASSERT(count <= SCRIPT_PART_MAX);
    while (count && taken[count - 1].taken + 1 >= taken[count - 1].of)
        count--;
    for (size_t i = 0; i < count; i++)
        script->choices[i] = taken[i].taken;
    if (count)
        script->choices[count - 1]++;
    script->count = count;
    script->done = count == 0;
}

bool script_room(void)
{
    size_t count;
    sim_choices(world->sim, &count);
    return count + SCRIPT_PART_MAX <= SCRIPT_MAX;
}

void script_drive(void (*run)(void))
{
    memset(&the_world, 0, offsetof(struct world, events));
    memset(the_world.choices, 0, sizeof the_world.choices);
    the_world.log[0] = 0;
    world->run = run;
    world->schedulers = 1;
    world->order = SIM_SCRIPT;
    run_inside(false);
    sim_destroy(world->sim);
    world->sim = NULL;
}

static void run_once(const struct row *row, uint64_t seed)
{
    memset(&the_world, 0, offsetof(struct world, events));
    the_world.log[0] = 0;
    world->id = row->id;
    world->run = row->run;
    world->seed = seed;
    world->full = !(row->flags & ROW_ONCE) || seed == 1;
    world->schedulers = row->flags & ROW_ALONE ? 1 : 1 + (uint32_t)(seed % 3);
    world->order = seed / 3 % 2 ? SIM_PRIORITY : SIM_RANDOM;
    if (!(row->flags & ROW_OUTSIDE))
        run_inside(row->flags & ROW_REAL);
    else if (!setjmp(outside))
        row->run();
    if (world->sim)
        sim_destroy(world->sim);
    world->sim = NULL;
}

/* ---- seeds ---- */

/* Shared between the two processes that share the seeds of a row. */
struct verdict {
    uint64_t seed; /* the one that runs, or has failed */
    char failure[sizeof the_world.failure];
};

static void run_seeds(const struct row *row, uint64_t first, uint64_t end, uint64_t step, struct verdict *v)
{
    for (uint64_t seed = first; seed < end; seed += step) {
        v->seed = seed;
        run_once(row, seed);
        if (world->failure[0]) {
            memcpy(v->failure, world->failure, sizeof v->failure);
            return;
        }
    }
}

/* Every second seed goes to a process of its own: machines have at least two cores. */
static void run_shared(const struct row *row, uint64_t first, uint64_t end, struct verdict v[2])
{
    fflush(stdout);
    pid_t other = fork();
    ASSERT(other >= 0);
    if (other == 0) {
        run_seeds(row, first + 1, end, 2, &v[1]);
        _exit(0);
    }
    run_seeds(row, first, end, 2, &v[0]);
    int status = 0;
    while (waitpid(other, &status, 0) < 0 && errno == EINTR)
        ;
    if (status && !v[1].failure[0])
        snprintf(v[1].failure, sizeof v[1].failure, "its process ended with status 0x%x", (unsigned)status);
}

static uint64_t from_environment(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

void row_run(const char *id, void (*run)(void), unsigned flags)
{
    const struct row row = {.id = id, .run = run, .flags = flags};
    uint64_t first = from_environment("CONFORMANCE_SEED", 0);
    uint64_t count = first || flags & ROW_REAL ? 1 : from_environment("CONFORMANCE_SEEDS", 25);
    first = first ? first : 1;
    struct verdict *v = mmap(NULL, 2 * sizeof *v, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT(v != MAP_FAILED);
    if (count >= SHARED_SEEDS)
        run_shared(&row, first, first + count, v);
    else
        run_seeds(&row, first, first + count, 1, v);
    for (unsigned i = 0; i < 2; i++) {
        if (TEST_CHECK_(!v[i].failure[0], "%s under %llu seeds", id, (unsigned long long)count))
            continue;
        TEST_MSG("%s", v[i].failure);
        TEST_MSG("seed %llu: %u schedulers, %s order; again: CONFORMANCE_SEED=%llu %s %s",
                 (unsigned long long)v[i].seed, 1 + (unsigned)(v[i].seed % 3),
                 v[i].seed / 3 % 2 ? "priority" : "random", (unsigned long long)v[i].seed,
                 program_invocation_name, id);
    }
    munmap(v, 2 * sizeof *v);
}

/* ---- time ---- */

void settle(void)
{
    actor_sleep(actor_now() + NS_PER_US);
}

void pass_ms(uint64_t ms)
{
    actor_sleep(actor_deadline_ms(ms));
}

uint64_t now_ms(void)
{
    return actor_now() / NS_PER_MS;
}

/* ---- workers ---- */

struct reason abnormal(void)
{
    const struct reason reasons[] = {
        reason_error(5),
        {.kind = REASON_CRASH, .signal = SIGSEGV},
        {.kind = REASON_CRASH, .signal = SIGSEGV, .crash = CRASH_STACK_OVERFLOW},
        {.kind = REASON_CRASH, .signal = SIGABRT, .crash = CRASH_ASSERTION},
        reason_of(REASON_OVERRUN),
        reason_of(REASON_QUOTA),
        reason_of(REASON_BAD_RETURN),
    };
    return reasons[draw(sizeof reasons / sizeof reasons[0])];
}

const char *id_of(uint32_t number)
{
    static const char names[MEMBERS][4] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m"};
    ASSERT(number < 13);
    return names[number];
}

struct worker {
    struct plan plan;
    uint64_t sum;
    uint32_t life;
};

void event_add(enum event_kind kind, uint32_t number, actor_pid pid)
{
    if (world->events_count < WORLD_EVENTS)
        world->events[world->events_count++] = (struct event){
            .kind = kind, .number = number, .pid = pid, .at = sim_now(world->sim), .normal = false};
}

/* The first that a worker owns, so the last that is released. arg: number of the life | number of the worker.
 */
static void worker_gone(void *arg)
{
    const struct life *life = &world->lives[(uintptr_t)arg / MEMBERS];
    uint32_t number = (uintptr_t)arg % MEMBERS;
    size_t place = world->events_count;
    world->members[number].gone++;
    event_add(GONE, number, life->pid);
    if (place < WORLD_EVENTS)
        world->events[place].normal = life->normal;
}

static enum actor_step worker_fail(enum failure how)
{
    switch (how) {
    case FAIL_REFUSE:
        actor_refuse(reason_error(FAIL_CODE));
    case FAIL_EXIT:
        actor_exit(reason_error(FAIL_CODE));
    case FAIL_CRASH:
        actor_exit((struct reason){.kind = REASON_CRASH, .signal = SIGSEGV});
    case FAIL_JUNK:
        return (enum actor_step)77;
    case FAIL_IGNORE:
        return ACTOR_IGNORE;
    case FAIL_STOP:
        return ACTOR_STOP;
    }
    return ACTOR_CONTINUE;
}

static enum actor_step worker_init(void *state, const void *args, size_t size)
{
    struct worker *w = state;
    ASSERT(size == sizeof w->plan);
    memcpy(&w->plan, args, size);
    uint32_t number = w->plan.number;
    struct member *m = &world->members[number];
    m->pid = actor_self();
    m->begun++;
    event_add(BEGAN, number, actor_self());
    size_t life = world->lives_count < WORLD_EVENTS ? world->lives_count++ : WORLD_EVENTS - 1;
    world->lives[life] = (struct life){.pid = actor_self()};
    w->life = (uint32_t)life;
    actor_own(worker_gone, (void *)(uintptr_t)(life * MEMBERS + number));
    if (w->plan.init_ms)
        pass_ms(w->plan.init_ms);
    if (m->fail) {
        m->fail -= m->fail != UINT32_MAX;
        return worker_fail(m->failure);
    }
    if (w->plan.info)
        actor_start_info(w->plan.info);
    m->ready++;
    event_add(READY, number, actor_self());
    return w->plan.deaf || w->plan.last_words || w->plan.crash_ms ? ACTOR_PROCEED : ACTOR_CONTINUE;
}

static bool is_exit(const struct message *m, void *arg)
{
    (void)arg;
    return m->type == MESSAGE_EXIT;
}

static enum actor_step worker_proceed(void *state)
{
    struct worker *w = state;
    if (w->plan.deaf)
        actor_sleep(DEADLINE_NONE);
    if (w->plan.crash_ms) {
        pass_ms(w->plan.crash_ms);
        actor_exit((struct reason){.kind = REASON_CRASH, .signal = SIGSEGV});
    }
    actor_receive(is_exit, NULL, DEADLINE_NONE);
    actor_exit(w->plan.words);
}

static enum actor_step worker_handle(void *state, struct message *m)
{
    struct worker *w = state;
    struct member *self = &world->members[w->plan.number];
    struct reason *why;
    struct message_exit *ended;
    struct signal *signal;
    uint64_t *number;
    switch (m->type) {
    case ORDER_EXIT:
        why = message_body(m, sizeof *why);
        ASSERT(why);
        world->lives[w->life].normal = !reason_abnormal(why);
        actor_exit(*why);
    case ORDER_HANG:
        actor_sleep(DEADLINE_NONE);
        break;
    case ORDER_ADD:
        number = message_body(m, sizeof *number);
        ASSERT(number);
        w->sum += *number;
        break;
    case ORDER_SUM:
        actor_reply_bytes(m, ORDER_SUM, &w->sum, sizeof w->sum);
        break;
    case ORDER_JUNK:
        return (enum actor_step)77;
    case ORDER_LINK:
    case ORDER_UNLINK:
        number = message_body(m, sizeof *number);
        ASSERT(number);
        if (m->type == ORDER_LINK)
            actor_link(*number);
        else
            actor_unlink(*number);
        break;
    case ORDER_SIGNAL:
        signal = message_body(m, sizeof *signal);
        ASSERT(signal);
        actor_exit_signal(signal->to, signal->why);
        break;
    case MESSAGE_EXIT:
        ended = message_body(m, sizeof *ended);
        ASSERT(ended);
        self->exits++;
        self->exit_of = ended->pid;
        self->exit_why = ended->reason;
        self->exit_why.detail = NULL;
        break;
    default:
        break;
    }
    return ACTOR_CONTINUE;
}

static void worker_terminate(void *state, const struct reason *why)
{
    struct worker *w = state;
    struct member *m = &world->members[w->plan.number];
    m->terminated++;
    m->why = *why;
    m->why.detail = NULL;
    event_add(ASKED, w->plan.number, actor_self());
    if (w->plan.end_ms)
        pass_ms(w->plan.end_ms);
    if (w->plan.dying.kind)
        actor_exit(w->plan.dying);
}

#define WORKER_CLASS(name_, trap)                                                                         \
    {                                                                                                     \
        .name = name_, .state_size = sizeof(struct worker), .init = worker_init, .handle = worker_handle, \
        .proceed = worker_proceed, .terminate = worker_terminate, .trap_exits = trap                      \
    }
const struct actor_class worker_class = WORKER_CLASS("conformance_worker", false);
const struct actor_class trapper_class = WORKER_CLASS("conformance_trapper", true);

void order_exit(actor_pid worker, struct reason why)
{
    why.detail = NULL;
    actor_cast(worker, ORDER_EXIT, &why, sizeof why);
}

void order_hang(actor_pid worker)
{
    actor_cast(worker, ORDER_HANG, NULL, 0);
}

void order_add(actor_pid worker, uint64_t number)
{
    actor_cast(worker, ORDER_ADD, &number, sizeof number);
}

uint64_t ask_sum(actor_pid worker)
{
    struct message *reply = NULL;
    EXPECT_OK(actor_call(worker, message_new(ORDER_SUM, 0), &reply, PATIENCE));
    uint64_t *sum = message_body(reply, sizeof *sum);
    EXPECT(sum);
    return *sum;
}

void order_pid(actor_pid worker, uint32_t type, actor_pid pid)
{
    actor_cast(worker, type, &pid, sizeof pid);
}

void order_signal(actor_pid worker, actor_pid to, struct reason why)
{
    const struct signal signal = {.to = to, .why = why};
    actor_cast(worker, ORDER_SIGNAL, &signal, sizeof signal);
}

actor_pid spawn_worker(uint32_t number, const struct actor_class *class)
{
    const struct plan plan = {.number = number};
    actor_pid pid;
    EXPECT_OK(actor_spawn(
        &(struct spawn_options){
            .class = class, .args = &plan, .args_size = sizeof plan, .scheduler = anywhere()},
        &pid));
    return pid;
}

void hit(actor_pid worker)
{
    switch (draw(3)) {
    case 0:
        actor_kill(worker);
        break;
    case 1:
        actor_cast(worker, ORDER_JUNK, NULL, 0);
        break;
    default:
        order_exit(worker, abnormal());
    }
}

/* ---- supervisors ---- */

const struct supervisor_spec *keep_spec(const struct supervisor_spec *spec)
{
    struct supervisor_spec *kept = keep(spec, sizeof *spec);
    if (spec->children)
        kept->children = keep(spec->children, spec->children_count * sizeof *spec->children);
    if (spec->template)
        kept->template = keep(spec->template, sizeof *spec->template);
    return kept;
}

actor_pid start_supervisor(const struct supervisor_spec *spec)
{
    struct start_result result;
    EXPECT_OK(supervisor_start(keep_spec(spec), anywhere(), &result, PATIENCE));
    EXPECT(actor_alive(result.pid));
    return result.pid;
}

actor_pid start_empty(enum strategy strategy)
{
    return start_supervisor(
        &(struct supervisor_spec){.strategy = strategy, .intensity = 1000, .period_ms = 3600 * 1000});
}

actor_pid start_dynamic(const struct supervisor_spec *flags, const struct child_spec *child)
{
    struct supervisor_spec spec = *flags;
    spec.strategy = DYNAMIC;
    spec.template = child;
    return start_supervisor(&spec);
}

struct child_spec subtree(const struct supervisor_spec *spec, const struct child_spec *more)
{
    _Alignas(16) unsigned char storage[SUPERVISOR_ARGS_MAX];
    struct child_spec child = *more;
    child.class = &supervisor_class;
    child.args_size = supervisor_args(keep_spec(spec), storage);
    child.args = keep(storage, child.args_size);
    child.scheduler = anywhere();
    return child;
}

struct child_info info_of(actor_pid sup, const char *id)
{
    struct child_info info;
    EXPECT_OK(supervisor_which_child(sup, id, &info, PATIENCE));
    return info;
}

actor_pid pid_of(actor_pid sup, const char *id)
{
    return info_of(sup, id).pid;
}

size_t children_of(actor_pid sup, struct child_info *infos, size_t count)
{
    size_t stored, total;
    EXPECT_OK(supervisor_which_children(sup, 0, infos, count, &stored, &total, PATIENCE));
    EXPECT(stored == (total < count ? total : count));
    return total;
}

const char *counts_of(actor_pid sup)
{
    static char text[96];
    struct child_counts c;
    EXPECT_OK(supervisor_count_children(sup, &c, PATIENCE));
    snprintf(text, sizeof text, "%llu,%llu,%llu,%llu", (unsigned long long)c.specs,
             (unsigned long long)c.active, (unsigned long long)c.supervisors, (unsigned long long)c.workers);
    return text;
}

actor_pid add_child(actor_pid sup, const struct child_spec *spec)
{
    struct child_result result;
    EXPECT_OK(supervisor_start_child(sup, spec, &result, PATIENCE));
    EXPECT(actor_alive(result.pid));
    return result.pid;
}

/* ---- the row's mailbox ---- */

static bool is_down_of(const struct message *m, void *arg)
{
    return m->type == MESSAGE_DOWN &&
           ((const struct message_down *)(const void *)m->payload)->ref == *(uint64_t *)arg;
}

static bool is_exit_of(const struct message *m, void *arg)
{
    return m->type == MESSAGE_EXIT &&
           ((const struct message_exit *)(const void *)m->payload)->pid == *(actor_pid *)arg;
}

/* The messages are held, not freed: what a row has received lives as long as its actor. */
struct reason wait_down(uint64_t ref)
{
    struct message *m = actor_receive(is_down_of, &ref, PATIENCE);
    EXPECT(m);
    return ((struct message_down *)(void *)m->payload)->reason;
}

struct reason wait_exit(actor_pid pid)
{
    struct message *m = actor_receive(is_exit_of, &pid, PATIENCE);
    EXPECT(m);
    return ((struct message_exit *)(void *)m->payload)->reason;
}

bool mail(void)
{
    settle();
    bool any = false;
    for (struct message *m; (m = actor_receive(NULL, NULL, actor_now())); message_free(m))
        any = true;
    return any;
}

uint64_t watch(actor_pid pid)
{
    uint64_t ref = actor_monitor(pid, 0);
    EXPECT(ref);
    struct actor_info info;
    actor_inspect(pid, &info, PATIENCE); /* goes the same way, so the monitor is there when it comes back */
    return ref;
}

struct reason end_of(actor_pid pid, struct reason why)
{
    uint64_t ref = watch(pid);
    actor_exit_signal(pid, why);
    return wait_down(ref);
}

/* ---- events ---- */

size_t event_find(size_t from, enum event_kind kind, uint32_t number)
{
    for (size_t i = from; i < world->events_count; i++)
        if (world->events[i].kind == kind && world->events[i].number == number)
            return i;
    return WORLD_EVENTS;
}

size_t event_count(enum event_kind kind, uint32_t number)
{
    size_t count = 0;
    for (size_t i = 0; i < world->events_count; i++)
        count += world->events[i].kind == kind && world->events[i].number == number;
    return count;
}

const char *event_order(enum event_kind kind)
{
    static char text[WORLD_EVENTS + 1];
    size_t count = 0;
    for (size_t i = 0; i < world->events_count; i++)
        if (world->events[i].kind == kind)
            text[count++] = (char)('a' + world->events[i].number);
    text[count] = 0;
    return text;
}

void events_clear(void)
{
    world->events_count = 0;
}
