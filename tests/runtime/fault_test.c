#define _GNU_SOURCE
#include "acutest.h"
#include "tests/runtime/node.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "runtime/blob.h"
#include "runtime/scheduler.h"

/* The sanitizers' own checks would come before the trap, and their interceptors stand where the library's leaf functions
 * would be. So these functions aren't instrumented, and what goes through an interceptor is left out in such builds. */
#define PLAIN __attribute__((noinline, no_sanitize("address", "undefined", "thread")))

/* ---- ways to crash ---- */

extern char __executable_start[];
static int *volatile null;
static volatile int zero, sink;
static char crashes_text[200];

PLAIN static void write_null(void *arg)
{
    (void)arg;
    *null = 1;
}
PLAIN static void read_wild(void *arg)
{
    (void)arg;
    sink = *(volatile int *)(uintptr_t)0xdead0000dead0000ull; /* not even an address */
}
PLAIN static void write_code(void *arg)
{
    (void)arg;
    *(volatile char *)(uintptr_t)write_null = 1;
}
PLAIN static void divide(void *arg)
{
    (void)arg;
#if defined(__x86_64__)
    sink = 7777 / zero;
#else
    __builtin_trap(); /* a division by zero is 0 here */
#endif
}
PLAIN static void trap(void *arg)
{
    (void)arg;
#if defined(__x86_64__)
    __asm__ volatile("ud2");
#else
    __asm__ volatile("udf #0");
#endif
}
PLAIN static void breakpoint(void *arg)
{
    (void)arg;
#if defined(__x86_64__)
    __asm__ volatile("int3");
#else
    __asm__ volatile("brk #0");
#endif
}
static char *beyond; /* of a mapped file's end */
PLAIN static void bus(void *arg)
{
    (void)arg;
    sink = *(volatile char *)beyond;
}
PLAIN static void call_null(void *arg)
{
    void (*volatile nothing)(void) = NULL;
    (void)arg;
    nothing();
    sink = 2;
}
PLAIN static void jump_to_data(void *arg)
{
    void (*volatile somewhere)(void) = (void (*)(void))(uintptr_t)&sink;
    (void)arg;
    somewhere();
    sink = 2;
}
static void call_abort(void *arg)
{
    (void)arg;
    abort();
}
/* Cold as a whole, so that no compiler puts the failing half elsewhere: the backtrace must name this function. */
__attribute__((cold)) static void call_assert(void *arg)
{
    assert(arg == &sink);
}
__attribute__((cold)) static void our_assert(void *arg)
{
    ASSERT(arg == &sink);
}
PLAIN static void string_null(void *arg)
{
    const char *volatile text = NULL;
    (void)arg;
    sink = (int)strlen(text);
}
PLAIN static void copy_null(void *arg)
{
    volatile size_t n = 100;
    (void)arg;
    memcpy(null, crashes_text, n);
    sink = 3; /* not a tail call: the caller of a leaf is known by its return address */
}

/* Recursion that the compiler can't make a loop of. */
PLAIN static unsigned dive(unsigned depth)
{
    volatile unsigned char frame[200];
    frame[depth % 200] = (unsigned char)depth;
    return depth == UINT32_MAX ? 0 : dive(depth + 1) + frame[depth % 200];
}
PLAIN static void overflow(void *arg)
{
    (void)arg;
    sink = (int)dive(0);
}
PLAIN static unsigned dive_and_ask(unsigned depth, unsigned how)
{
    volatile unsigned char frame[80];
    frame[depth % 80] = (unsigned char)actor_now();
    switch (how) {
    case 0:
        message_free(message_new(1, 100));
        break;
    case 1:
        actor_cast(actor_self(), 9, "x", 1);
        break;
    case 2:
        sink = (int)actor_whereis("nobody") + (int)actor_random();
        break;
    case 3:
        actor_timer_cancel(actor_timer(actor_deadline_ms(100), 1, 1), NULL);
        break;
    case 4:
        actor_yield();
        break;
    case 5:
        actor_release(actor_own_fd(-1));
        actor_join("g");
        actor_leave("g");
        break;
    case 6: {
        actor_pid pid;
        if (actor_spawn(&(struct spawn_options){.class = &doll_class, .name = "deep", .link = true}, &pid) ==
            OK) {
            actor_unlink(pid);
            actor_kill(pid);
        }
        break;
    }
    default:
        actor_call(0, message_new(1, 0), NULL, 0);
        break;
    }
    return depth == UINT32_MAX ? 0 : dive_and_ask(depth + 1, how) + frame[depth % 80];
}
PLAIN static void overflow_asking(void *arg)
{
    sink = (int)dive_and_ask(0, (unsigned)(uintptr_t)arg);
}
static bool overflow_match(const struct message *m, void *arg)
{
    (void)m;
    overflow(arg);
    return true;
}
static void overflow_in_match(void *arg)
{
    note(actor_self(), 1);
    actor_receive(overflow_match, arg, DEADLINE_NONE);
}
static bool crash_match(const struct message *m, void *arg)
{
    (void)m;
    write_null(arg);
    return true;
}
static void crash_in_match(void *arg)
{
    note(actor_self(), 1);
    actor_receive(crash_match, arg, DEADLINE_NONE);
}

struct crash {
    const char *name;
    void (*run)(void *arg);
    int signal, crash;
    uintptr_t arg;
    bool plain_only;
};

#if defined(__x86_64__)
#define DIVIDED SIGFPE
#else
#define DIVIDED SIGTRAP
#endif

static const struct crash crashes[] = {
    {"write to NULL", write_null, SIGSEGV, CRASH_SIGNAL, 0, false},
    {"read where nothing can be", read_wild, SIGSEGV, CRASH_SIGNAL, 0, false},
    {"write to code", write_code, SIGSEGV, CRASH_SIGNAL, 0, false},
    {"division by zero", divide, DIVIDED, CRASH_SIGNAL, 0, false},
    {"no instruction", trap, SIGILL, CRASH_SIGNAL, 0, false},
    {"a breakpoint", breakpoint, SIGTRAP, CRASH_SIGNAL, 0, false},
    {"beyond a file's end", bus, SIGBUS, CRASH_SIGNAL, 0, false},
    {"a call of NULL", call_null, SIGSEGV, CRASH_SIGNAL, 0, false},
    {"a call of data", jump_to_data, SIGSEGV, CRASH_SIGNAL, 0, false},
    {"abort", call_abort, SIGABRT, CRASH_SIGNAL, 0, false},
    {"assert", call_assert, SIGABRT, CRASH_ASSERTION, 0, false},
    {"ASSERT", our_assert, SIGABRT, CRASH_ASSERTION, 0, false},
    {"strlen of NULL", string_null, SIGSEGV, CRASH_SIGNAL, 0, true},
    {"memcpy to NULL", copy_null, SIGSEGV, CRASH_SIGNAL, 0, true},
    {"recursion without end", overflow, SIGSEGV, CRASH_STACK_OVERFLOW, 0, false},
    {"recursion with messages", overflow_asking, SIGSEGV, CRASH_STACK_OVERFLOW, 0, false},
    {"recursion with sends", overflow_asking, SIGSEGV, CRASH_STACK_OVERFLOW, 1, false},
    {"recursion with lookups", overflow_asking, SIGSEGV, CRASH_STACK_OVERFLOW, 2, false},
    {"recursion with timers", overflow_asking, SIGSEGV, CRASH_STACK_OVERFLOW, 3, false},
    {"recursion with yields", overflow_asking, SIGSEGV, CRASH_STACK_OVERFLOW, 4, false},
    {"recursion with resources", overflow_asking, SIGSEGV, CRASH_STACK_OVERFLOW, 5, false},
    {"recursion with spawns", overflow_asking, SIGSEGV, CRASH_STACK_OVERFLOW, 6, false},
    {"recursion with calls", overflow_asking, SIGSEGV, CRASH_STACK_OVERFLOW, 7, false},
    {"recursion in a match", overflow_in_match, SIGSEGV, CRASH_STACK_OVERFLOW, 0, false},
    {"a crash in a match", crash_in_match, SIGSEGV, CRASH_SIGNAL, 0, false},
};
#define CRASHES (sizeof crashes / sizeof *crashes)

static bool to_be_tried(const struct crash *c)
{
    return !(SANITIZED && c->plain_only);
}

static void prepare(void)
{
    int fd = memfd_create("short", MFD_CLOEXEC);
    TEST_ASSERT(fd >= 0 && ftruncate(fd, 4096) == 0);
    char *p = mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, 0);
    TEST_ASSERT(p != MAP_FAILED);
    beyond = p + 4096;
    close(fd);
}

/* ---- each of them ends its actor, and nobody else ---- */

static const struct actor_class narrow = {.name = "narrow",
                                          .handle = doll_handle,
                                          .runaway_ns = DEADLINE_NONE},
                                wide = {.name = "wide",
                                        .handle = doll_handle,
                                        .stack_size = 256 << 10,
                                        .mailbox_capacity = 1 << 16,
                                        .runaway_ns = DEADLINE_NONE};

/* One of the innermost two frames is in the function that crashed, or in one that it called and that called no other. */
static bool names_caller(const char *detail, void (*run)(void *arg))
{
    const char *at = strstr(detail, "backtrace ");
    if (!at || run == overflow || run == overflow_asking || run == overflow_in_match || run == crash_in_match)
        return at != NULL;
    uintptr_t begin = (uintptr_t)run - (uintptr_t)__executable_start;
    at += strlen("backtrace ");
    for (int i = 0; i < 2 && at; i++, at = strchr(at, ' '), at = at ? at + 1 : NULL)
        if (*at == '+') {
            uintptr_t pc = strtoul(at + 1, NULL, 16);
            if (pc >= begin && pc < begin + 400)
                return true;
        }
    return false;
}

static void each_crash(void)
{
    actor_pid bystander = doll(SPAWN_HERE);
    for (size_t i = 0; i < CRASHES; i++) {
        const struct crash *c = &crashes[i];
        for (int round = 0; round < 3 && to_be_tried(c); round++) {
            actor_pid pid =
                spawn(round == 2 ? &wide : &narrow, SPAWN_ON((uint32_t)round % runtime_schedulers()));
            uint64_t ref = actor_monitor(pid, 0), asked;
            tell(pid, c->run, (void *)c->arg);
            TEST_CHECK(actor_request(pid, message_new(ASK, 0), &asked) == OK); /* a caller waits behind it */
            struct message_down *d = expect(MESSAGE_DOWN);
            size_t size;
            const char *detail = reason_detail(&d->reason, &size);
            TEST_CHECK_(d->ref == ref && d->reason.kind == REASON_CRASH, "%s: kind %d", c->name,
                        d->reason.kind);
            TEST_CHECK_(d->reason.signal == c->signal && d->reason.crash == c->crash,
                        "%s: signal %d, crash %d", c->name, d->reason.signal, d->reason.crash);
            TEST_CHECK_(detail && names_caller(detail, c->run), "%s: %s", c->name,
                        detail ? detail : "no detail");
            if (c->run == our_assert || c->run == call_assert)
                TEST_CHECK(detail && strstr(detail, "fault_test.c") && strstr(detail, "arg == &sink"));
            if (c->run == write_null)
                TEST_CHECK(d->reason.address == 0);
            size_t index;
            struct message *answer;
            enum error e = actor_request_wait(&asked, 1, &index, &answer, DEADLINE_NONE);
            if (e == ERR_DOWN)
                TEST_CHECK(((struct message_down *)(void *)answer->payload)->reason.signal == c->signal);
            else /* on another scheduler it may have ended before the request came */
                TEST_CHECK(e == ERR_NOPROC && pid_scheduler(pid) != pid_scheduler(actor_self()));
            TEST_CHECK(actor_call(bystander, message_new(ASK, 0), NULL, DEADLINE_NONE) == OK);
            mail();
        }
    }
    actor_kill(bystander);
    ended(bystander);
    while (actor_receive(NULL, NULL, actor_now() + NS_PER_MS))
        ; /* EXITs of "deep" */
}

static void test_each_crash(void)
{
    prepare();
    TEST_CHECK(node_real(1, each_crash) == 0);
    TEST_CHECK(node_real(2, each_crash) == 0);
    TEST_CHECK(node_logged("actor crashed") > 2 * CRASHES);
}

/* In init, proceed, terminate, and after it has been parked. */
static void (*crash_now)(void *arg);
static uint64_t crash_arg;
static enum actor_step crashing_init(void *state, const void *args, size_t args_size)
{
    (void)state;
    (void)args_size;
    if (*(const char *)args == 'i')
        crash_now((void *)(uintptr_t)crash_arg);
    return ACTOR_PROCEED;
}
static char where;
static enum actor_step crashing_proceed(void *state)
{
    (void)state;
    if (where == 'p')
        crash_now((void *)(uintptr_t)crash_arg);
    return ACTOR_CONTINUE;
}
static void crashing_terminate(void *state, const struct reason *why)
{
    (void)state;
    (void)why;
    if (where == 't')
        crash_now((void *)(uintptr_t)crash_arg);
}
static void parked_crash(void *arg)
{
    actor_sleep(actor_now() + 1);
    crash_now(arg);
}
static const struct actor_class crashing_class = {.name = "crashing",
                                                  .init = crashing_init,
                                                  .handle = doll_handle,
                                                  .proceed = crashing_proceed,
                                                  .terminate = crashing_terminate,
                                                  .mailbox_capacity = 1 << 16};

static void everywhere(void)
{
    for (size_t i = 0; i < CRASHES; i++) {
        crash_now = crashes[i].run;
        crash_arg = crashes[i].arg;
        for (const char *at = "iptw"; *at && to_be_tried(&crashes[i]); at++) {
            struct start_result r;
            where = *at;
            enum error e = actor_start(&(struct spawn_options){.class = &crashing_class,
                                                               .args = at,
                                                               .args_size = 1,
                                                               .monitor = true,
                                                               .scheduler = anywhere()},
                                       &r, DEADLINE_NONE);
            TEST_CHECK((e == ERR_INIT) == (where == 'i'));
            if (where == 'i') {
                TEST_CHECK(r.why.kind == REASON_CRASH && r.why.signal == crashes[i].signal);
                reason_drop(&r.why);
                continue;
            }
            struct reason why = {0};
            if (where == 'w')
                tell(r.pid, parked_crash, (void *)crash_arg);
            else if (where == 't')
                TEST_CHECK(actor_stop(r.pid, reason_with_detail(reason_of(REASON_SHUTDOWN), "x", 1), NULL,
                                      DEADLINE_NONE) == OK);
            why = down(r.ref);
            TEST_CHECK_(why.kind == REASON_CRASH && why.signal == crashes[i].signal, "%s at %c",
                        crashes[i].name, where);
        }
    }
}

static void test_everywhere(void)
{
    prepare();
    for (uint64_t seed = 1; seed <= 3; seed++)
        node_sim_with(everywhere, &(struct sim_options){.seed = seed, .schedulers = (uint32_t)seed});
}

/* ---- ten thousand of them ---- */

static size_t descriptors(void)
{
    size_t n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

static size_t resident(void)
{
    char text[100] = "";
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    return n > 0 ? (size_t)strtoul(strchr(text, ' '), NULL, 10) * 4096 : 0;
}

static void own_and_crash(void *arg)
{
    int fds[2];
    TEST_CHECK(pipe2(fds, O_CLOEXEC) == 0);
    actor_own_fd(fds[0]);
    actor_own_fd(fds[1]);
    memset(actor_alloc(10000), 1, 10000);
    actor_timer(actor_deadline_ms(1000), 1, 1);
    message_keep(message_new(1, 1000));
    write_null(arg);
}

static void crash_often(unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        actor_pid pid;
        struct start_result r;
        TEST_CHECK(
            actor_start(&(struct spawn_options){.class = &narrow, .monitor = true, .scheduler = anywhere()},
                        &r, DEADLINE_NONE) == OK);
        pid = r.pid;
        const struct crash *c = &crashes[i % 4 == 0 ? i / 4 % 12 : 0];
        tell(pid, i % 4 == 0 ? c->run : own_and_crash, (void *)c->arg);
        struct message *m = actor_receive(NULL, NULL, DEADLINE_NONE);
        TEST_CHECK(m->type == MESSAGE_DOWN &&
                   ((struct message_down *)(void *)m->payload)->reason.kind == REASON_CRASH);
        message_free(m);
    }
}

static void ten_thousand(void)
{
    crash_often(1000); /* everything is warm */
    size_t fds = descriptors(), bytes = resident(), blobs = blob_slab_bytes(), living = blob_count();
    crash_often(9000);
    TEST_CHECK(descriptors() == fds);
    TEST_CHECK(blob_slab_bytes() == blobs && blob_count() == living);
    if (!SANITIZED)
        TEST_CHECK_(resident() <= bytes + (256 << 10), "%zu, then %zu bytes", bytes, resident());
}

static void quiet(const char *line, size_t size)
{
    (void)line;
    (void)size;
}

static void test_ten_thousand(void)
{
    prepare();
    node_sim_with(ten_thousand, &(struct sim_options){.seed = 1, .schedulers = 2, .runtime.log = quiet});
}

/* ---- what a crash leaves in the processor ---- */

PLAIN static void crash_strangely(void *arg)
{
    (void)arg;
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x6000); /* towards zero */
    /* the direction flag, too, and a long double that was being computed */
    __asm__ volatile("fld1\n\tstd\n\tmovl $1, 0" : : : "memory");
#else
    write_null(arg);
#endif
}

static bool odd;
PLAIN static void look(void *arg)
{
    (void)arg;
#if defined(__x86_64__)
    uint64_t flags;
    __asm__ volatile("pushfq\n\tpopq %0" : "=r"(flags));
    odd |= (flags & 0x400) || (__builtin_ia32_stmxcsr() & 0x6000);
#endif
    volatile double x = 1, y = 3;
    volatile long double z = 1;
    odd |= x / y * y != 1 || z + 2 != 3;
}

static void processor(void)
{
    for (int i = 0; i < 20; i++) {
        actor_pid pid = doll(SPAWN_HERE), next = doll(SPAWN_HERE);
        uint64_t ref = actor_monitor(pid, 0);
        tell(pid, crash_strangely, NULL);
        tell(next, look, NULL);
        TEST_CHECK(down(ref).kind == REASON_CRASH);
        look(NULL);
        actor_kill(next);
    }
    TEST_CHECK(!odd);
}

static void test_processor(void)
{
    TEST_CHECK(node_real(1, processor) == 0);
}

/* ---- what is nobody's own ends the process: one JSON line, and the signal ---- */

static void in_guard(void *arg)
{
    (void)arg;
    actor_guard_begin();
    write_null(NULL);
}
static void abort_in_guard(void *arg)
{
    (void)arg;
    actor_guard_begin();
    abort();
}
static void assert_in_guard(void *arg)
{
    actor_guard_begin();
    ASSERT(arg == &sink);
}
static void exit_in_guard(void *arg)
{
    (void)arg;
    actor_guard_begin();
    actor_fail(1, "the lock stays behind");
}
static void wait_in_guard(void *arg)
{
    (void)arg;
    actor_guard_begin();
    actor_sleep(DEADLINE_NONE);
}
static void overflow_in_guard(void *arg)
{
    actor_guard_begin();
    overflow_asking(arg);
}
static void guard_end_alone(void *arg)
{
    (void)arg;
    actor_guard_end();
}
static void bad_name(void *arg)
{
    (void)arg;
    actor_whereis((const char *)null); /* in a library that the runtime has called */
}
static void bad_out(void *arg)
{
    (void)arg;
    actor_join("g");
    actor_members("g", (actor_pid *)(uintptr_t)8, 1); /* in the runtime itself */
}
static void smash_canary(void *arg)
{
    (void)arg;
    scheduler_current->worker->canary = 0;
    write_null(NULL);
}
/* Nothing else happens: it goes on, returns, and waits for nobody. */
static void smash_quietly(void *arg)
{
    (void)arg;
    scheduler_current->worker->canary = 0;
}
static void smash_the_end_quietly(void *arg)
{
    (void)arg;
    scheduler_current->worker->canary_end = 0;
}
static void crashing_release(void *arg)
{
    write_null(arg);
}
static void release_crashes(void *arg)
{
    (void)arg;
    actor_own(crashing_release, NULL);
    actor_fail(1, NULL);
}
static void raise_signal(void *arg)
{
    (void)arg;
    raise(SIGSEGV);
}
static void from_outside(void *arg)
{
    (void)arg;
    kill(getpid(), SIGABRT);
    for (;;)
        sink++;
}

static const struct crash fatal[] = {
    {"in a guarded section", in_guard, SIGSEGV, 0, 0, false},
    {"abort in a guarded section", abort_in_guard, SIGABRT, 0, 0, false},
    {"ASSERT in a guarded section", assert_in_guard, 0, 0, 0, false},
    {"an exit in a guarded section", exit_in_guard, 0, 0, 0, false},
    {"waiting in a guarded section", wait_in_guard, 0, 0, 0, false},
    {"overflow in a guarded section", overflow_in_guard, 0, 0, 0, false},
    {"a guarded section that never began", guard_end_alone, 0, 0, 0, false},
    {"a name that isn't there", bad_name, SIGSEGV, 0, 0, true},
    {"a bad place for the answer", bad_out, SIGSEGV, 0, 0, true},
    {"a broken canary", smash_canary, SIGSEGV, 0, 0, false},
    {"a broken canary and nothing else", smash_quietly, 0, 0, 0, false},
    {"a broken canary at the other end", smash_the_end_quietly, 0, 0, 0, false},
    {"a release function", release_crashes, SIGSEGV, 0, 0, false},
    {"a signal raised by itself", raise_signal, SIGSEGV, 0, 0, true},
    {"a signal from outside", from_outside, SIGABRT, 0, 0, false},
};

static void (*fatal_run)(void *arg);
static void fatal_body(void)
{
    actor_pid pid = doll(SPAWN_HERE);
    tell(pid, fatal_run, NULL);
    ended(pid);
}
static void fatal_real(void)
{
    fatal_run = *(void (**)(void *))node_argument;
    node_real(1, fatal_body);
}
static void fatal_sim(void)
{
    fatal_run = *(void (**)(void *))node_argument;
    node_sim_with(fatal_body, &(struct sim_options){.seed = 1});
}

static void test_fatal(void)
{
    for (size_t i = 0; i < 2 * sizeof fatal / sizeof *fatal; i++) {
        const struct crash *c = &fatal[i / 2];
        void (*run)(void *) = c->run;
        if (!to_be_tried(c))
            continue;
        struct outcome o = node_child(i % 2 ? fatal_real : fatal_sim, &run);
        if (c->signal)
            TEST_CHECK_(o.signal == c->signal, "%s: exited %d, signal %d: %s", c->name, o.exited, o.signal,
                        o.text);
        else
            TEST_CHECK_(o.exited == 70, "%s: exited %d, signal %d: %s", c->name, o.exited, o.signal, o.text);
        TEST_CHECK_(o.lines == 1 && strncmp(o.text, "{\"level\":\"fatal\",\"msg\":\"", 24) == 0 &&
                        strcmp(o.text + strlen(o.text) - 2, "}\n") == 0,
                    "%s: %s", c->name, o.text);
    }
}

/* Nobody reads standard error, and it is full: crashes are reported to nobody, and the process can end all the same. */
static enum actor_step unread_init(void *state, const void *args, size_t args_size)
{
    (void)state;
    (void)args;
    (void)args_size;
    return ACTOR_PROCEED;
}
static enum actor_step crash_and_die(void *state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        actor_pid pid = doll(SPAWN_HERE);
        uint64_t ref = actor_monitor(pid, 0);
        tell(pid, write_null, NULL);
        down(ref);
    }
    in_guard(NULL);
    return ACTOR_STOP;
}
static const struct actor_class unread_class = {.name = "unread",
                                                .init = unread_init,
                                                .proceed = crash_and_die,
                                                .handle = doll_handle,
                                                .stack_size = 1 << 20};

static void unread(void)
{
    int fds[2];
    char much[4096] = {0};
    TEST_ASSERT(pipe2(fds, O_CLOEXEC | O_NONBLOCK) == 0);
    while (write(fds[1], much, sizeof much) > 0)
        ;
    fcntl(fds[1], F_SETFL, 0); /* as a shell hands it on */
    if (*(bool *)node_argument)
        close(fds[0]); /* the reader has gone altogether */
    dup2(fds[1], 2);
    struct sim *s = sim_create(&(struct sim_options){.seed = 1});
    runtime_spawn(sim_runtime(s), &(struct spawn_options){.class = &unread_class}, NULL);
    sim_run(s, 100000);
    _exit(1); /* it should have ended */
}

static void test_unread(void)
{
    for (int i = 0; i < 2; i++) {
        bool closed = i;
        struct outcome o = node_child(unread, &closed);
        TEST_CHECK_(o.signal == SIGSEGV && o.lines == 0, "exited %d, signal %d: %s", o.exited, o.signal,
                    o.text);
    }
}

/* With containment off every crash is the process's. */
static void uncontained(void)
{
    node_real_with(&(struct runtime_options){.schedulers = 1, .actors_max = 1000, .no_containment = true},
                   fatal_body);
}
static void uncontained_child(void)
{
    fatal_run = write_null;
    uncontained();
}
static void test_uncontained(void)
{
    if (SANITIZED) /* the handlers of the sanitizers are off, so the signal alone says it, as without them */
        TEST_MSG("the same");
    struct outcome o = node_child(uncontained_child, NULL);
    TEST_CHECK_(o.signal == SIGSEGV, "exited %d, signal %d: %s", o.exited, o.signal, o.text);
}

/* ---- told to crash: actor_crash ---- */

PLAIN static void told_trap(void)
{
    *null = 1;
}
static bool of_nobody(const struct message *m, void *arg)
{
    (void)m;
    (void)arg;
    return false;
}
static void waits_for_ever(void *arg)
{
    (void)arg;
    actor_receive(of_nobody, NULL, DEADLINE_NONE);
}
static void sleeps_for_ever(void *arg)
{
    (void)arg;
    actor_sleep(DEADLINE_NONE);
}
static void yields_for_ever(void *arg)
{
    (void)arg;
    for (;;)
        actor_yield();
}
static void tells_itself(void *arg)
{
    (void)arg;
    actor_crash(actor_self(), told_trap);
}
static void (*const busy[])(void *arg) = {NULL, waits_for_ever, sleeps_for_ever, tells_itself};

static enum actor_step slow_init(void *state, const void *args, size_t args_size)
{
    (void)state;
    (void)args;
    (void)args_size;
    actor_sleep(DEADLINE_NONE);
    return ACTOR_CONTINUE;
}
static const struct actor_class slow_class = {.name = "slow", .init = slow_init, .handle = doll_handle};

static bool crashed(struct reason why)
{
    return why.kind == REASON_CRASH && why.signal == SIGSEGV && why.crash == CRASH_SIGNAL && why.address == 0;
}

static void told(void)
{
    for (size_t i = 0; i < sizeof busy / sizeof *busy; i++) {
        actor_pid pid = spawn(i % 2 ? &trapper_class : &doll_class, anywhere());
        uint64_t ref = actor_monitor(pid, 0);
        if (busy[i])
            tell(pid, busy[i], NULL);
        for (uint32_t turns = draw(4); turns; turns--)
            actor_yield();
        if (draw(3) == 0)
            actor_suspend(pid);
        TEST_CHECK(actor_crash(pid, told_trap) == OK);
        if (draw(3) == 0)
            actor_crash(pid, told_trap); /* the first ending counts, and one is enough */
        if (draw(3) == 0)
            actor_kill(pid);
        TEST_CHECK_(crashed(down(ref)), "busy %zu, seed %llu", i, (unsigned long long)node_seed);
        TEST_CHECK(actor_crash(pid, told_trap) == OK); /* nobody is there any more */
    }
    actor_pid pid;
    TEST_CHECK(actor_spawn(&(struct spawn_options){.class = &slow_class, .scheduler = anywhere()}, &pid) ==
               OK);
    uint64_t ref = actor_monitor(pid, 0);
    if (draw(2))
        settle();
    TEST_CHECK(actor_crash(pid, told_trap) == OK);
    TEST_CHECK(crashed(down(ref)));
    settle();
}

static void test_told(void)
{
    node_sim(told);
}

/* One that computes is told in its slice; one that yields all the time, when it does. */
static _Atomic bool computing;
static void computes(void *arg)
{
    (void)arg;
    atomic_store(&computing, true);
    for (;;)
        sink++;
}
static void told_hog(void)
{
    actor_pid yields = spawn(&narrow, SPAWN_ON(1)), pid = spawn(&narrow, SPAWN_ON(1));
    tell(yields, yields_for_ever, NULL);
    tell(pid, computes, NULL);
    while (!atomic_load(&computing))
        actor_yield();
    TEST_CHECK(actor_crash(yields, told_trap) == OK);
    TEST_CHECK(crashed(ended(yields)));
    TEST_CHECK(actor_crash(pid, told_trap) == OK);
    TEST_CHECK(crashed(ended(pid)));
}

/* A trap that takes its time is run once, however many slices it has: it ends by its runaway budget, or when it returns. */
static _Atomic uint32_t begun, returned;
static void told_computes(void)
{
    atomic_fetch_add(&begun, 1);
    for (;;)
        sink++;
}
static void told_computes_a_while(void)
{
    atomic_fetch_add(&begun, 1);
    for (uint64_t end = actor_clock() + 100 * NS_PER_MS; actor_clock() < end;)
        sink++;
    atomic_fetch_add(&returned, 1);
}
static void told_for_long(void)
{
    static const struct actor_class brief = {
        .name = "brief", .handle = doll_handle, .runaway_ns = 100 * NS_PER_MS};
    actor_pid pid = spawn(&brief, SPAWN_ON(1));
    TEST_CHECK(actor_crash(pid, told_computes) == OK);
    TEST_CHECK(ended(pid).kind == REASON_OVERRUN);
    TEST_CHECK(atomic_load(&begun) == 1);
    pid = spawn(&narrow, SPAWN_ON(1));
    TEST_CHECK(actor_crash(pid, told_computes_a_while) == OK);
    TEST_CHECK(ended(pid).kind == REASON_KILLED);
    TEST_CHECK(atomic_load(&begun) == 2 && atomic_load(&returned) == 1);
}
static void test_told_for_long(void)
{
    if (!SANITIZED)
        TEST_CHECK(node_real(2, told_for_long) == 0);
}
static void test_told_hog(void)
{
    if (!SANITIZED) /* nobody is switched out in such builds */
        TEST_CHECK(node_real(2, told_hog) == 0);
}

static void told_uncontained(void)
{
    actor_pid pid = doll(SPAWN_HERE);
    TEST_CHECK(actor_crash(pid, told_trap) == ERR_INVALID);
    TEST_CHECK(actor_call(pid, message_new(ASK, 0), NULL, DEADLINE_NONE) == OK);
    actor_kill(pid);
    ended(pid);
}
static void test_told_uncontained(void)
{
    TEST_CHECK(
        node_real_with(&(struct runtime_options){.schedulers = 1, .actors_max = 1000, .no_containment = true},
                       told_uncontained) == 0);
}

TEST_LIST
= {
    {"each crash ends its actor alone", test_each_crash},
    {"in init, proceed, terminate, after a wait", test_everywhere},
    {"ten thousand crashes", test_ten_thousand},
    {"the processor's state is clean again", test_processor},
    {"what ends the process, with one line", test_fatal},
    {"nobody reads what is said", test_unread},
    {"without containment", test_uncontained},
    {"told to crash: idle, waiting, suspended, starting", test_told},
    {"told to crash in the middle of its code", test_told_hog},
    {"told to crash for longer than a slice", test_told_for_long},
    {"nobody is told to where it would end the process", test_told_uncontained},
    {NULL, NULL},
};
