/* Section X: faults of C, contained. Real signals on a real runtime with two schedulers; the reasons once
 * more in simulation.
 */
#define _GNU_SOURCE
#include "acutest.h"
#include "harness.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* The faults are wanted: no sanitizer may find them first. */
#define RAW __attribute__((noinline, no_sanitize("undefined"), no_sanitize("address"), no_sanitize("thread")))

/* ---- ways to die ---- */

static int *volatile nowhere;
static volatile int zero, endless = 1;

RAW static void dereference(void)
{
    *nowhere = 1;
}

RAW static int recurse(volatile char *above)
{
    volatile char frame[256];
    frame[0] = above ? above[0] : 1;
    if (endless)
        frame[1] = (char)recurse(frame);
    return frame[0] + frame[1];
}

RAW static void divide(void)
{
    zero = 1000 / zero; /* 1 / x would need no division */
}

RAW static void bus(void)
{
    int fd = memfd_create("empty", MFD_CLOEXEC);
    volatile char *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    zero = page[0];
}

RAW static void compute(void)
{
    while (endless)
        ;
}

#define FAULTS(X)                                               \
    X(FAULT_NULL, REASON_CRASH, SIGSEGV, CRASH_SIGNAL)          \
    X(FAULT_STACK, REASON_CRASH, SIGSEGV, CRASH_STACK_OVERFLOW) \
    X(FAULT_ABORT, REASON_CRASH, SIGABRT, CRASH_SIGNAL)         \
    X(FAULT_ASSERT, REASON_CRASH, SIGABRT, CRASH_ASSERTION)     \
    X(FAULT_DIVIDE, REASON_CRASH, SIGFPE, CRASH_SIGNAL)         \
    X(FAULT_ILLEGAL, REASON_CRASH, SIGILL, CRASH_SIGNAL)        \
    X(FAULT_BUS, REASON_CRASH, SIGBUS, CRASH_SIGNAL)            \
    X(FAULT_QUOTA, REASON_QUOTA, 0, 0)                          \
    X(FAULT_OVERRUN, REASON_OVERRUN, 0, 0)

enum fault_kind {
#define X(name, kind, signal, crash) name,
    FAULTS(X)
#undef X
        FAULT_COUNT
};

/* Those that can be committed here: sanitizers do without preemption, and whoever computes without end then does. */
#define FAULTS_HERE (SANITIZED ? FAULT_OVERRUN : FAULT_COUNT)

static struct reason reason_of_fault(enum fault_kind fault)
{
    static const struct reason reasons[] = {
#define X(name, kind_, signal_, crash_) [name] = {.kind = (kind_), .signal = (signal_), .crash = (crash_)},
        FAULTS(X)
#undef X
    };
    return reasons[fault];
}

static void commit(enum fault_kind fault)
{
    switch (fault) {
    case FAULT_NULL:
        dereference();
        break;
    case FAULT_STACK:
        recurse(NULL);
        break;
    case FAULT_ABORT:
        abort();
    case FAULT_ASSERT:
        ASSERT(endless == 0);
        break;
    case FAULT_DIVIDE:
        divide();
        break;
    case FAULT_ILLEGAL:
        __builtin_trap();
    case FAULT_BUS:
        bus();
        break;
    case FAULT_OVERRUN:
        compute();
        break;
    case FAULT_QUOTA:
        for (;;)
            memset(actor_alloc(4096), 1, 4096);
    case FAULT_COUNT:
        break;
    }
}

/* ---- actors ---- */

#define ASK_ECHO (ORDER_FREE + 1)
#define ASK_GO   (ORDER_FREE + 2)
#define ASK_TOLD (ORDER_FREE + 3)

/* Commits what it is told: enum fault_kind. */
static enum actor_step victim_handle(void *state, struct message *m)
{
    (void)state;
    commit(*(enum fault_kind *)message_body(m, sizeof(enum fault_kind)));
    return ACTOR_CONTINUE;
}

static const struct actor_class victim_class = {
    .name = "victim", .handle = victim_handle, .runaway_ns = 20 * NS_PER_MS, .arena_quota = 64 * 1024};

static enum actor_step echo_handle(void *state, struct message *m)
{
    (void)state;
    actor_reply_bytes(m, ASK_ECHO, m->payload, m->size);
    return ACTOR_CONTINUE;
}

static const struct actor_class echo_class = {.name = "echo", .handle = echo_handle};

#define ECHOES 100

struct client {
    actor_pid echoes[ECHOES];
    uint64_t served, failed;
};

static enum actor_step client_init(void *state, const void *args, size_t size)
{
    struct client *c = state;
    ASSERT(size == sizeof c->echoes);
    memcpy(c->echoes, args, size);
    return ACTOR_CONTINUE;
}

/* Asks everybody, then itself to go on; told its numbers it stops. */
static enum actor_step client_handle(void *state, struct message *m)
{
    struct client *c = state;
    if (m->type == ASK_TOLD) {
        uint64_t told[2] = {c->served, c->failed};
        actor_reply_bytes(m, ASK_TOLD, told, sizeof told);
        return ACTOR_STOP;
    }
    for (uint64_t i = 0; i < ECHOES; i++) {
        struct message *reply = NULL;
        uint64_t number = c->served * ECHOES + i;
        enum error e =
            actor_call(c->echoes[i], message_of(ASK_ECHO, &number, sizeof number), &reply, PATIENCE);
        bool good =
            e == OK && reply->size == sizeof number && !memcmp(reply->payload, &number, sizeof number);
        c->served += good;
        c->failed += !good;
        if (reply)
            message_free(reply);
    }
    actor_cast(actor_self(), ASK_GO, NULL, 0);
    return ACTOR_CONTINUE;
}

static const struct actor_class client_class = {
    .name = "client", .state_size = sizeof(struct client), .init = client_init, .handle = client_handle};

#define CLIENTS 2

/* A hundred who serve and two who ask, over both schedulers; go on until told to stop. */
static void crowd_start(actor_pid clients[CLIENTS])
{
    actor_pid echoes[ECHOES];
    for (unsigned i = 0; i < ECHOES; i++)
        EXPECT_OK(actor_spawn(&(struct spawn_options){.class = &echo_class, .scheduler = SPAWN_ON(i % 2)},
                              &echoes[i]));
    for (unsigned i = 0; i < CLIENTS; i++) {
        EXPECT_OK(actor_spawn(&(struct spawn_options){.class = &client_class,
                                                      .args = echoes,
                                                      .args_size = sizeof echoes,
                                                      .scheduler = SPAWN_ON(i % 2)},
                              &clients[i]));
        actor_cast(clients[i], ASK_GO, NULL, 0);
    }
}

static void crowd_unharmed(const actor_pid clients[CLIENTS])
{
    for (unsigned i = 0; i < CLIENTS; i++) {
        struct message *reply = NULL;
        EXPECT_OK(actor_call(clients[i], message_new(ASK_TOLD, 0), &reply, PATIENCE));
        uint64_t *told = message_body(reply, 2 * sizeof *told);
        EXPECT(told && told[0] >= ECHOES);
        EXPECT_EQ(told[1], 0);
    }
}

static void order_fault(actor_pid victim, enum fault_kind fault)
{
    EXPECT_OK(actor_cast(victim, 1, &fault, sizeof fault));
}

static actor_pid spawn_victim(void)
{
    actor_pid victim;
    EXPECT_OK(actor_spawn(&(struct spawn_options){.class = &victim_class, .scheduler = anywhere()}, &victim));
    return victim;
}

/* The child with this id, once it is another than `old`. */
static actor_pid successor(actor_pid sup, const char *id, actor_pid old)
{
    uint64_t deadline = PATIENCE;
    for (;;) {
        actor_pid pid = pid_of(sup, id);
        if (pid && pid != old)
            return pid;
        EXPECT(actor_now() < deadline);
        actor_yield();
    }
}

/* Under a supervisor, with a crowd at work: DOWN with the right reason, restart, nobody else notices. */
static void contained(enum fault_kind fault, unsigned times)
{
    actor_pid clients[CLIENTS];
    crowd_start(clients);
    actor_pid sup =
        ROOMY({.id = "v", .class = &victim_class, .scheduler = anywhere()},
              {.id = "t", .class = &victim_class, .scheduler = anywhere(), .restart = RESTART_TRANSIENT},
              {.id = "o", .class = &victim_class, .scheduler = anywhere(), .restart = RESTART_TEMPORARY});
    for (unsigned i = 0; i < times; i++) {
        const char *id = i % 2 ? "v" : "t";
        actor_pid victim = pid_of(sup, id);
        uint64_t ref = watch(victim);
        order_fault(victim, fault);
        EXPECT_REASON(wait_down(ref), reason_of_fault(fault));
        EXPECT(!actor_alive(victim));
        EXPECT(actor_alive(successor(sup, id, victim)));
    }
    actor_pid victim = pid_of(sup, "o");
    uint64_t ref = watch(victim), deadline = PATIENCE;
    order_fault(victim, fault);
    EXPECT_REASON(wait_down(ref), reason_of_fault(fault));
    while (strcmp(counts_of(sup), "2,2,0,2"))
        EXPECT(actor_now() < deadline);
    crowd_unharmed(clients);
}

static void crash_01(void)
{
    contained(FAULT_NULL, 50);
}

static void crash_02(void)
{
    contained(FAULT_STACK, 20);
}

static void crash_03(void)
{
    contained(FAULT_ABORT, 20);
    contained(FAULT_ASSERT, 20);
}

/* ---- the ledger ---- */

struct ledger {
    int fds[3];
    actor_pid watched;
};

static enum actor_step rich_init(void *state, const void *args, size_t size)
{
    (void)state;
    struct ledger l;
    ASSERT(size == sizeof l);
    memcpy(&l, args, size);
    actor_pid holder;
    for (unsigned i = 0; i < 3; i++)
        ASSERT(actor_own_fd(l.fds[i]));
    ASSERT(actor_watch(l.fds[0], WATCH_READ));
    for (unsigned i = 0; i < 5; i++)
        ASSERT(actor_timer(actor_deadline_ms(3600 * 1000), 1, i));
    ASSERT(actor_register("rich:1", actor_self(), &holder) == OK);
    ASSERT(actor_register("rich:2", actor_self(), &holder) == OK);
    for (unsigned i = 0; i < 4; i++)
        ASSERT(actor_monitor(l.watched, i));
    memset(actor_alloc(30000), 7, 30000);
    return ACTOR_CONTINUE;
}

static const struct actor_class rich_class = {.name = "rich",
                                              .init = rich_init,
                                              .handle = victim_handle,
                                              .runaway_ns = 20 * NS_PER_MS,
                                              .arena_quota = 64 * 1024};

static void crash_09(void)
{
    struct runtime_stats before, after;
    actor_pid echo;
    EXPECT_OK(actor_spawn(&(struct spawn_options){.class = &echo_class, .scheduler = anywhere()}, &echo));
    for (int fault = 0; fault < FAULTS_HERE; fault++) {
        struct ledger l = {.watched = echo};
        int pipe_ends[2];
        EXPECT(pipe(pipe_ends) == 0);
        l.fds[0] = pipe_ends[0];
        l.fds[1] = pipe_ends[1];
        l.fds[2] = dup(pipe_ends[0]);
        EXPECT(l.fds[2] >= 0);
        runtime_stats(runtime_self(), &before);
        struct start_result born;
        EXPECT_OK(actor_start(&(struct spawn_options){.class = &rich_class,
                                                      .args = &l,
                                                      .args_size = sizeof l,
                                                      .scheduler = anywhere(),
                                                      .monitor = true},
                              &born, PATIENCE));
        struct actor_info info;
        EXPECT_OK(actor_inspect(born.pid, &info, PATIENCE));
        EXPECT_EQ(info.resources, 3 + 1 + 5 + 2 + 4);
        EXPECT(actor_whereis("rich:2") == born.pid);
        order_fault(born.pid, (enum fault_kind)fault);
        EXPECT_REASON(wait_down(born.ref), reason_of_fault((enum fault_kind)fault));
        for (unsigned i = 0; i < 3; i++) {
            EXPECT(fcntl(l.fds[i], F_GETFD) == -1);
            EXPECT_EQ(errno, EBADF);
        }
        EXPECT(!actor_whereis("rich:1") && !actor_whereis("rich:2"));
        EXPECT(!actor_alive(born.pid));
        EXPECT_OK(actor_inspect(echo, &info, PATIENCE));
        uint64_t deadline = PATIENCE;
        while (info.watchers) { /* told on its own way: it isn't the one that got the DOWN */
            EXPECT(actor_now() < deadline);
            EXPECT_OK(actor_inspect(echo, &info, PATIENCE));
        }
        runtime_stats(runtime_self(), &after);
        EXPECT_EQ(after.records, before.records);
        EXPECT_EQ(after.actors, before.actors);
    }
}

/* In simulation, by the reason alone: all classes of crash, overrun and quota are abnormal. */
static void crash_12(void)
{
    for (int fault = 0; fault < FAULT_COUNT; fault++) {
        memset(world->members, 0, sizeof world->members);
        struct reason why = reason_of_fault((enum fault_kind)fault);
        EXPECT(reason_abnormal(&why));
        actor_pid sup = ROOMY(WORKER(A), WORKER(B, .restart = RESTART_TRANSIENT),
                              WORKER(C, .restart = RESTART_TEMPORARY));
        for (uint32_t i = A; i <= C; i++)
            order_exit(world->members[i].pid, why);
        settle();
        EXPECT_EQ(world->members[A].begun, 2);
        EXPECT_EQ(world->members[B].begun, 2);
        EXPECT_EQ(world->members[C].begun, 1);
        EXPECT_COUNTS(sup, "2,2,0,2");
    }
}

/* ---- beyond the table ---- */

static void crash_04(void)
{
    contained(FAULT_DIVIDE, 10);
    contained(FAULT_ILLEGAL, 10);
    contained(FAULT_BUS, 10);
}

/* A handler that computes past its budget; meanwhile the others on its scheduler are served. */
static void crash_05(void)
{
    if (!SANITIZED)
        contained(FAULT_OVERRUN, 6);
}

static void crash_06(void)
{
    contained(FAULT_QUOTA, 20);
}

/* A fault in init is a start that failed. */
static enum actor_step faulty_init(void *state, const void *args, size_t size)
{
    (void)state;
    enum fault_kind fault;
    ASSERT(size == sizeof fault);
    memcpy(&fault, args, size);
    commit(fault);
    return ACTOR_CONTINUE;
}

static const struct actor_class stillborn_class = {.name = "stillborn",
                                                   .init = faulty_init,
                                                   .handle = victim_handle,
                                                   .runaway_ns = 20 * NS_PER_MS,
                                                   .arena_quota = 64 * 1024};

static void crash_07(void)
{
    for (int fault = 0; fault < FAULTS_HERE; fault++) {
        enum fault_kind args = (enum fault_kind)fault;
        struct start_result result = {0};
        EXPECT_ERROR(actor_start(&(struct spawn_options){.class = &stillborn_class,
                                                         .args = &args,
                                                         .args_size = sizeof args,
                                                         .link = true,
                                                         .name = "stillborn",
                                                         .scheduler = anywhere()},
                                 &result, PATIENCE),
                     ERR_INIT);
        EXPECT_REASON(result.why, reason_of_fault(args));
        reason_drop(&result.why);
        EXPECT(!actor_whereis("stillborn"));
    }
    EXPECT(!actor_receive(NULL, NULL, actor_now()));
}

/* A fault in terminate is the reason of the end. */
static void dying_terminate(void *state, const struct reason *why)
{
    (void)why;
    commit(*(enum fault_kind *)state);
}

static enum actor_step remembering_init(void *state, const void *args, size_t size)
{
    memcpy(state, args, size);
    return ACTOR_CONTINUE;
}

static const struct actor_class dying_class = {.name = "dying",
                                               .state_size = sizeof(enum fault_kind),
                                               .init = remembering_init,
                                               .handle = echo_handle,
                                               .terminate = dying_terminate,
                                               .runaway_ns = 20 * NS_PER_MS,
                                               .arena_quota = 64 * 1024};

static void crash_08(void)
{
    for (int fault = 0; fault < FAULTS_HERE; fault++) {
        enum fault_kind args = (enum fault_kind)fault;
        struct start_result born;
        EXPECT_OK(actor_start(
            &(struct spawn_options){
                .class = &dying_class, .args = &args, .args_size = sizeof args, .scheduler = anywhere()},
            &born, PATIENCE));
        struct reason why = NORMAL;
        EXPECT_OK(actor_stop(born.pid, NORMAL, &why, PATIENCE));
        EXPECT_REASON(why, reason_of_fault(args));
    }
}

/* A thousand in a row: no descriptor, no record, no actor is left behind. Those before them are not counted: libdill opens
 * a descriptor a thread when it starts the first coroutine there. */
static void crash_10(void)
{
    int before = -1;
    struct runtime_stats first, last;
    for (unsigned i = 0; i < 1020; i++) {
        if (i == 20) {
            before = dup(0);
            EXPECT(before >= 0);
            close(before);
            runtime_stats(runtime_self(), &first);
        }
        enum fault_kind fault = (enum fault_kind)(i % FAULT_QUOTA);
        actor_pid victim = spawn_victim();
        uint64_t ref = watch(victim);
        order_fault(victim, fault);
        EXPECT_REASON(wait_down(ref), reason_of_fault(fault));
    }
    int after = dup(0);
    EXPECT_EQ(after, before);
    close(after);
    runtime_stats(runtime_self(), &last);
    EXPECT_EQ(last.actors, first.actors);
    EXPECT_EQ(last.records, first.records);
    EXPECT_EQ(last.crashed - first.crashed, 1000);
}

/* Who waits for an answer of the crashed one gets the reason at once. */
static void crash_11(void)
{
    for (int fault = 0; fault < FAULTS_HERE; fault++) {
        actor_pid victim = spawn_victim();
        enum fault_kind args = (enum fault_kind)fault;
        struct message *reply = NULL;
        EXPECT_ERROR(actor_call(victim, message_of(1, &args, sizeof args), &reply, PATIENCE), ERR_DOWN);
        struct message_down *d = message_body(reply, sizeof *d);
        EXPECT(d && d->pid == victim);
        EXPECT_REASON(d->reason, reason_of_fault(args));
    }
}

/* A crash loop spends the budget, and the supervisor ends as it should. */
static void crash_13(void)
{
    actor_pid sup = START(ONE_FOR_ONE, 3, 60, {.id = "v", .class = &victim_class, .scheduler = anywhere()});
    uint64_t ref = watch(sup);
    actor_pid victim = pid_of(sup, "v");
    for (unsigned i = 0; i < 4; i++) {
        order_fault(victim, (enum fault_kind)(i % 3));
        if (i < 3)
            victim = successor(sup, "v", victim);
    }
    EXPECT_REASON(wait_down(ref), SHUTDOWN);
}

/* Each crash leaves one report, with class, signal and the last message. */
static void crash_14(void)
{
    actor_pid victim = spawn_victim();
    uint64_t ref = watch(victim);
    order_fault(victim, FAULT_NULL);
    struct reason why = wait_down(ref);
    EXPECT_EQ(why.address, 0);
    EXPECT_EQ(logged("\"class\":\"victim\""), 1);
    EXPECT_EQ(logged("SIGSEGV"), 1);
    EXPECT_EQ(logged("\"last_message_type\":1"), 1);
    size_t size;
    EXPECT(reason_detail(&why, &size) && size > 0); /* the backtrace */
}

#define ROWS(X)                       \
    X("CRASH-01", crash_01, ROW_REAL) \
    X("CRASH-02", crash_02, ROW_REAL) \
    X("CRASH-03", crash_03, ROW_REAL) \
    X("CRASH-09", crash_09, ROW_REAL) \
    X("CRASH-12", crash_12, 0)        \
    X("CRASH-04", crash_04, ROW_REAL) \
    X("CRASH-05", crash_05, ROW_REAL) \
    X("CRASH-06", crash_06, ROW_REAL) \
    X("CRASH-07", crash_07, ROW_REAL) \
    X("CRASH-08", crash_08, ROW_REAL) \
    X("CRASH-10", crash_10, ROW_REAL) \
    X("CRASH-11", crash_11, ROW_REAL) \
    X("CRASH-13", crash_13, ROW_REAL) \
    X("CRASH-14", crash_14, ROW_REAL)

ROWS_TEST_LIST;
