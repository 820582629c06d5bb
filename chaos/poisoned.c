/* poisoned: the server itself, all of it, with actors that crash when they are told to; for chaos/contain.c, chaos/limp.c and
 * chaos/everycall.c, which start it.
 *
 *     poisoned serve [OPTION]...      as coppice; POISON_BOARD names the file of its board (chaos/board.h)
 *
 * It is linked from the product's own objects. A request with the field X-Poison: KIND crashes in its handler, on the stack of its
 * connection's actor; with X-Victims: N, too, it stays alive and N actors of a supervisor crash one after the other, each asked again until
 * the one in its place answers. The calls by which the store changes files are counted, and the process ends at one of them, if
 * the board says so.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "chaos/board.h"
#include "http/front.h"
#include "runtime/runtime.h"
#include "runtime/scheduler.h"
#include "runtime/supervisor.h"

enum {
    VICTIMS = 64,
    VICTIMS_MAX_EACH = 4096, /* of one request */
    LEAK_BYTES = 65536,
    PAGE = 4096,
    ASK = 1,
    FALL, /* and the kinds behind it */
};
#define BEAT_NS (250 * NS_PER_US)

static struct board *board;
static volatile char *beyond; /* a page of a file that is shorter than it */

static const char *const names[] = POISON_NAMES;

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv(BOARD_VARIABLE);
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    int empty = memfd_create("beyond", MFD_CLOEXEC);
    void *p = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    void *q = empty < 0 ? MAP_FAILED : mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, empty, 0);
    if (p == MAP_FAILED || q == MAP_FAILED) {
        fputs("poisoned: there is no board\n", stderr);
        _exit(64);
    }
    close(fd);
    close(empty);
    board = p;
    beyond = q;
}

/* ---- what an actor does that crashes ---- */

/* Kept from the sanitizers: their own check would come before the trap. */
#define UNCHECKED __attribute__((noinline, no_sanitize("address", "undefined", "thread")))

static int *volatile nowhere;
static volatile int zero, one = 1;

UNCHECKED static int deeper(volatile char *above)
{
    volatile char room[256];
    room[0] = above ? above[0] : 0;
    return zero ? 0 : deeper(room) + room[0];
}

UNCHECKED static void write_nowhere(void)
{
    *nowhere = 1;
}

UNCHECKED static void divide(void)
{
#if defined(__x86_64__)
    one = one / zero;
#else
    raise(SIGFPE); /* elsewhere a division by zero has a result */
#endif
}

/* The size of the next block, which the allocator looks at when this one is given back. */
UNCHECKED static void spoil_heap(void)
{
    static volatile uintptr_t spoilt = 0x4141414141414141u;
    for (uint32_t i = 0; i < 64; i++) { /* small ones are kept for the same thread, and not looked at */
        volatile uintptr_t *block = malloc(2000);
        volatile uintptr_t *next = malloc(2000);
        for (uint32_t word = 0; block && word < 260; word++)
            block[word] = spoilt;
        free((void *)(uintptr_t)next);
        free((void *)(uintptr_t)block);
    }
}

static void crashing_release(void *arg)
{
    (void)arg;
    write_nowhere();
}

UNCHECKED static void loop(void)
{
    while (!zero)
        one = 1;
}

static void leak(void)
{
    volatile char *bytes = malloc(LEAK_BYTES);
    for (uint32_t i = 0; bytes && i < LEAK_BYTES; i += PAGE)
        bytes[i] = 1;
    if (dup(STDERR_FILENO) < 0)
        abort();
    write_nowhere();
}

static void crash(enum poison how)
{
    atomic_fetch_add(&board->crashes[how], 1);
    switch (how) {
    case POISON_SIGSEGV:
        write_nowhere();
        break;
    case POISON_SIGBUS:
        *beyond = 1;
        break;
    case POISON_SIGFPE:
        divide();
        break;
    case POISON_SIGILL:
        __builtin_trap();
    case POISON_ABORT:
        abort();
    case POISON_STACK:
        zero = deeper(NULL) * 0;
        break;
    case POISON_GUARD:
        actor_guard_begin(), write_nowhere();
        break;
    case POISON_GUARD_ABORT:
        actor_guard_begin(), abort();
    case POISON_GUARD_STACK:
        actor_guard_begin(), zero = deeper(NULL) * 0;
        break;
    case POISON_RUNTIME:
        actor_join("poisoned");
        actor_members("poisoned", (actor_pid *)(uintptr_t)8, 1);
        break;
    case POISON_LIBRARY:
        actor_whereis((const char *)nowhere);
        break;
    case POISON_HEAP:
        spoil_heap();
        break;
    case POISON_HEAP_FAULT:
        free((void *)(uintptr_t)(one * 4096));
        break;
    case POISON_TWICE:
        actor_own(crashing_release, NULL), actor_fail(1, NULL);
    case POISON_STRAY_WORKER:
        scheduler_current->worker->canary = 0;
        break;
    case POISON_STRAY_END:
        scheduler_current->worker->canary_end = 0;
        break;
    case POISON_STRAY_SCHEDULER:
        scheduler_current->canary = 0;
        break;
    case POISON_OUTSIDE:
        kill(getpid(), SIGSEGV), loop();
        break;
    case POISON_LOOP:
        loop();
        break;
    case POISON_LEAK:
        leak();
        break;
    case POISON_COUNT:
    default:
        break;
    }
}

/* ---- victims: permanent children of a supervisor with a budget that isn't what is measured ---- */

static struct victim {
    _Atomic actor_pid pid;
    _Atomic uint64_t fell_ns;
} victims[VICTIMS];
static _Atomic int victims_state; /* 0: nobody, 1: being started, 2: there */

struct victim_state {
    uint32_t index, asked;
};

static enum actor_step victim_init(void *state, const void *args, size_t size)
{
    struct victim_state *v = state;
    (void)size;
    memcpy(&v->index, args, sizeof(v->index));
    atomic_store(&victims[v->index].pid, actor_self());
    return ACTOR_CONTINUE;
}

static enum actor_step victim_handle(void *state, struct message *m)
{
    struct victim_state *v = state;
    if (m->type == ASK) {
        v->asked++;
        actor_reply_bytes(m, ASK, &v->asked, sizeof(v->asked));
    } else {
        atomic_store(&victims[v->index].fell_ns, now_ns());
        crash((enum poison)(m->type - FALL));
    }
    return ACTOR_CONTINUE;
}

static const struct actor_class victim_class = {.name = "victim",
                                                .state_size = sizeof(struct victim_state),
                                                .init = victim_init,
                                                .handle = victim_handle};

/* Starts the supervisor, which is linked to it, and stays. */
static enum actor_step keeper_init(void *state, const void *args, size_t size)
{
    static struct child_spec specs[VICTIMS];
    static uint32_t indexes[VICTIMS];
    static char ids[VICTIMS][12];
    struct start_result result;
    (void)state, (void)args, (void)size;
    for (uint32_t i = 0; i < VICTIMS; i++) {
        indexes[i] = i;
        snprintf(ids[i], sizeof(ids[i]), "victim%u", i);
        specs[i] = (struct child_spec){
            .id = ids[i], .class = &victim_class, .args = &indexes[i], .args_size = sizeof(indexes[i])};
    }
    const struct supervisor_spec spec = {.name = "victims",
                                         .intensity = SUPERVISOR_INTENSITY_MAX,
                                         .period_ms = 1,
                                         .children = specs,
                                         .children_count = VICTIMS};
    if (supervisor_start(&spec, SPAWN_HERE, &result, DEADLINE_NONE) != OK)
        abort();
    atomic_store(&victims_state, 2);
    return ACTOR_CONTINUE;
}

static enum actor_step keeper_handle(void *state, struct message *m)
{
    (void)state, (void)m;
    return ACTOR_CONTINUE;
}

static const struct actor_class keeper_class = {
    .name = "victims.keeper", .init = keeper_init, .handle = keeper_handle};

/* Each wakes up every quarter of a millisecond and notes how late it was: what others on this scheduler wait for their turn. */
static enum actor_step beat(void *state, struct message *m)
{
    uint64_t due = now_ns();
    (void)state, (void)m;
    while (!zero) {
        due += BEAT_NS;
        actor_sleep(due);
        uint64_t now = now_ns(), late = now > due ? now - due : 0;
        int where = actor_scheduler();
        if (where < 2 && late > atomic_load(&board->late[where]))
            atomic_store(&board->late[where], late);
        atomic_fetch_add(&board->turns, 1);
        if (late > BEAT_NS)
            due = now;
    }
    return ACTOR_CONTINUE;
}

static const struct actor_class metronome_class = {.name = "metronome", .handle = beat};

static void people(void)
{
    int nobody = 0;
    if (atomic_compare_exchange_strong(&victims_state, &nobody, 1)) {
        struct start_result result;
        actor_pid pid;
        if (actor_start(&(struct spawn_options){.class = &keeper_class}, &result, DEADLINE_NONE) != OK)
            abort();
        for (int i = 0; i < 2 && i < (int)runtime_schedulers(); i++)
            if (actor_spawn(&(struct spawn_options){.class = &metronome_class, .scheduler = SPAWN_ON(i)},
                            &pid) == OK)
                actor_cast(pid, ASK, NULL, 0);
    }
    while (atomic_load(&victims_state) != 2)
        actor_yield();
}

static uint32_t ask(actor_pid pid)
{
    struct message *reply = NULL;
    uint32_t asked = 0;
    if (actor_call(pid, message_of(ASK, NULL, 0), &reply, actor_deadline_ms(ACTOR_CALL_DEFAULT_MS)) == OK)
        memcpy(&asked, reply->payload, sizeof(asked));
    if (reply)
        message_free(reply);
    return asked;
}

/* One falls; the next one in its place must be another, asked for the first time. */
static void fell(uint32_t index, enum poison how)
{
    struct victim *v = &victims[index];
    actor_pid before = atomic_load(&v->pid);
    uint64_t limit = now_ns() + 10 * NS_PER_S;
    actor_cast(before, FALL + (uint32_t)how, NULL, 0);
    while (atomic_load(&v->pid) == before && now_ns() < limit)
        actor_yield();
    uint32_t asked = ask(atomic_load(&v->pid));
    uint64_t at = atomic_fetch_add(&board->times_count, 1), took = now_ns() - atomic_load(&v->fell_ns);
    board->times[at % BOARD_TIMES] = took < UINT32_MAX ? (uint32_t)took : UINT32_MAX;
    if (asked != 1)
        atomic_fetch_add(&board->wrong, 1);
}

/* ---- requests ---- */

static bool number_of(struct span field, uint32_t *ret_number)
{
    char text[16];
    if (!field.bytes || field.size >= sizeof(text))
        return false;
    memcpy(text, field.bytes, field.size);
    text[field.size] = 0;
    *ret_number = (uint32_t)strtoul(text, NULL, 10);
    return *ret_number <= VICTIMS_MAX_EACH;
}

bool __real_front_serve(struct front *front, struct request *q, struct front_plan *plan, struct response *r);
bool __wrap_front_serve(struct front *front, struct request *q, struct front_plan *plan, struct response *r);

bool __wrap_front_serve(struct front *front, struct request *q, struct front_plan *plan, struct response *r)
{
    struct span wanted = request_field(q, "X-Poison");
    uint32_t count = 0;
    for (uint32_t how = 0; wanted.bytes && how < POISON_COUNT; how++) {
        if (!span_equal(wanted, span_text(names[how])))
            continue;
        if (number_of(request_field(q, "X-Victims"), &count)) {
            people();
            for (uint32_t i = 0; i < count; i++)
                fell(i % VICTIMS, (enum poison)how);
        } else {
            crash((enum poison)how);
        }
    }
    return __real_front_serve(front, q, plan, r);
}

/* ---- calls of the store ---- */

/* X(result, name, parameters, arguments) */
#define CALLS(X)                                                                                          \
    X(ssize_t, pwrite, (int fd, const void *bytes, size_t size, off_t at), (fd, bytes, size, at))         \
    X(ssize_t, pwritev, (int fd, const struct iovec *parts, int count, off_t at), (fd, parts, count, at)) \
    X(int, fdatasync, (int fd), (fd))                                                                     \
    X(int, fsync, (int fd), (fd))                                                                         \
    X(int, ftruncate, (int fd, off_t size), (fd, size))                                                   \
    X(int, fallocate, (int fd, int mode, off_t at, off_t size), (fd, mode, at, size))                     \
    X(int, posix_fallocate, (int fd, off_t at, off_t size), (fd, at, size))

/* Who takes the number away ends: the campaign that takes it back meanwhile knows by that which of the two it was. */
static void end_if(uint64_t call, uint64_t behind)
{
    if (behind == atomic_load(&board->end_behind) &&
        atomic_compare_exchange_strong(&board->end_at, &call, BOARD_ENDS))
        kill(getpid(), SIGKILL);
}

#define X(result, name, parameters, arguments)                  \
    result __real_##name parameters;                            \
    result __wrap_##name parameters;                            \
    result __wrap_##name parameters                             \
    {                                                           \
        uint64_t call = atomic_fetch_add(&board->calls, 1) + 1; \
        end_if(call, 0);                                        \
        result value = __real_##name arguments;                 \
        end_if(call, 1);                                        \
        return value;                                           \
    }
CALLS(X)
#undef X
