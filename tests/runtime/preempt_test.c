#define _GNU_SOURCE
#include "acutest.h"
#include "tests/runtime/node.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/ucontext.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "runtime/scheduler.h"
#include "runtime/telemetry.h"

/* The sanitizers know nothing of a stack that is left inside a signal handler: runtime.c starts no monitor in such builds,
 * and what computes without end would never be switched out. Only what needs no signal is tested there. */
#define SKIP_IF_SANITIZED()                              \
    do {                                                 \
        if (SANITIZED) {                                 \
            TEST_MSG("preemption is off in this build"); \
            return;                                      \
        }                                                \
    } while (0)

static uint64_t preemptions(void)
{
    struct runtime_stats stats;
    runtime_stats(node_runtime, &stats);
    return stats.preemptions;
}

/* ---- endless loops, and somebody who must be served all the same ---- */

static volatile uint64_t counters[4];
static void endless(void *arg)
{
    volatile uint64_t *mine = arg;
    for (;;)
        ++*mine;
}

static void kill_and_wait(actor_pid pid)
{
    uint64_t ref = actor_monitor(pid, 0);
    actor_kill(pid);
    TEST_CHECK(down(ref).kind == REASON_KILLED);
}

static void served(void)
{
    uint32_t n = runtime_schedulers();
    actor_pid hogs[4];
    for (uint32_t i = 0; i < 2 * n; i++) {
        counters[i] = 0;
        hogs[i] = doll(SPAWN_ON(i % n));
        tell(hogs[i], endless, (void *)(uintptr_t)&counters[i]);
    }
    actor_pid worker = doll(SPAWN_ON(n - 1));
    for (int i = 0; i < 200; i++)
        TEST_CHECK(actor_call(worker, message_new(ASK, 8), NULL, DEADLINE_NONE) == OK);
    TEST_CHECK(actor_timer(actor_deadline_ms(3), NOTE, 5) != 0); /* timers, too */
    TEST_CHECK(*(uint64_t *)expect(NOTE) == 5);
    for (uint32_t i = 0; i < 2 * n; i++) { /* both get on, and not only at the beginning */
        uint64_t seen = counters[i];
        while (counters[i] == seen)
            actor_yield();
    }
    TEST_CHECK(preemptions() > 0);
    for (uint32_t i = 0; i < 2 * n; i++)
        kill_and_wait(hogs[i]);
    kill_and_wait(worker);
}

static void test_served(void)
{
    SKIP_IF_SANITIZED();
    TEST_CHECK(node_real(1, served) == 0);
    TEST_CHECK(node_real(2, served) == 0);
}

/* The monitor rests while everybody sleeps: whoever wakes up to compute without end is seen each time. */
static void after_sleep(void)
{
    for (int i = 0; i < 200; i++) {
        actor_pid hog = doll(SPAWN_ON(runtime_schedulers() - 1));
        actor_sleep(actor_now() + 100 * NS_PER_US); /* all asleep, or about to be */
        tell(hog, endless, (void *)(uintptr_t)&counters[0]);
        kill_and_wait(hog);
    }
}

static void test_after_sleep(void)
{
    SKIP_IF_SANITIZED();
    TEST_CHECK(node_real(1, after_sleep) == 0);
    TEST_CHECK(node_real(2, after_sleep) == 0);
}

/* ---- overrun ---- */

static unsigned terminated;
static void terminate(void *state, const struct reason *why)
{
    (void)state;
    terminated++;
    if (why->kind == REASON_SHUTDOWN)
        endless((void *)(uintptr_t)&counters[0]);
}
static const struct actor_class runaway_class = {
    .name = "runaway", .handle = doll_handle, .terminate = terminate, .runaway_ns = 10 * NS_PER_MS};

static void yields_for_long(void *arg)
{
    for (int i = 0; i < 10; i++) { /* 70 ms in all, and each time for longer than a slice */
        uint64_t end = env_thread_computed() + 7 * NS_PER_MS;
        while (env_thread_computed() < end)
            for (int k = 0; k < 100000; k++) /* nearly all of it here: in the runtime nobody is preempted */
                ++*(volatile uint64_t *)arg;
        actor_yield();
    }
}

static void overrun(void)
{
    actor_pid pid = spawn(&runaway_class, SPAWN_HERE);
    terminated = 0;
    uint64_t ref = actor_monitor(pid, 0);
    tell(pid, endless, (void *)(uintptr_t)&counters[0]);
    TEST_CHECK(down(ref).kind == REASON_OVERRUN && terminated == 0);
    pid = spawn(&runaway_class,
                SPAWN_HERE); /* in terminate, with a reason that has a detail: the books tell of a leak */
    struct reason why;
    struct reason stop = reason_with_detail(reason_of(REASON_SHUTDOWN), "detail", 6);
    TEST_CHECK(actor_stop(pid, stop, &why, DEADLINE_NONE) == OK && why.kind == REASON_OVERRUN &&
               terminated == 1);
    actor_pid hog = doll(SPAWN_HERE);
    tell(hog, endless, (void *)(uintptr_t)&counters[1]);
    /* Where a host takes a CPU away, a thread's clock may go on: then 7 ms were more than its budget. Not each time. */
    unsigned tries = 0;
    enum error e;
    do {
        pid = spawn(&runaway_class, SPAWN_HERE);
        tell(pid, yields_for_long, (void *)(uintptr_t)&counters[0]);
        e = actor_call(pid, message_new(ASK, 0), NULL, DEADLINE_NONE);
    } while (e && ++tries < 100);
    TEST_CHECK(e == OK);
    kill_and_wait(pid);
    kill_and_wait(hog);
    struct runtime_stats stats;
    runtime_stats(node_runtime, &stats);
    TEST_CHECK(stats.overruns == 2 + tries);
}

static void test_overrun(void)
{
    SKIP_IF_SANITIZED();
    TEST_CHECK(node_real(1, overrun) == 0);
}

/* ---- stopped, and continued ---- */

enum { STOPS = 2 };
static int stopper[2], stopped[2]; /* pipes: stop now; it was done */
static _Atomic bool enough;

/* A process of its own: who is stopped can't let itself go on. */
static pid_t stopper_start(void)
{
    const struct timespec for_long = {.tv_sec = 1, .tv_nsec = 50 * 1000 * 1000};
    pid_t test = getpid();
    TEST_ASSERT(pipe(stopper) == 0 && pipe2(stopped, O_NONBLOCK) == 0);
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    char byte;
    if (read(stopper[0], &byte, 1) == 1)
        for (int i = 0; i < STOPS; i++) {
            kill(test, SIGSTOP);
            nanosleep(&for_long, NULL);
            kill(test, SIGCONT);
        }
    (void)!write(stopped[1], "", 1);
    _exit(0);
}

static void until_enough(void *arg)
{
    while (!atomic_load_explicit(&enough, memory_order_relaxed))
        ++*(volatile uint64_t *)arg;
}

static const struct actor_class stopped_class = {
    .name = "stopped", .handle = doll_handle, .runaway_ns = NS_PER_S};

/* Twice for longer than its budget nobody ran: it has computed for no longer than it did. One that does ends, all the same. */
static void stops(void)
{
    actor_pid hog = spawn(&stopped_class, SPAWN_HERE);
    tell(hog, until_enough, (void *)(uintptr_t)&counters[0]);
    while (preemptions() < 3)
        actor_yield();
    TEST_CHECK(write(stopper[1], "", 1) == 1);
    TEST_CHECK(actor_wait_fd(stopped[0], WATCH_READ, DEADLINE_NONE) == OK);
    atomic_store(&enough, true);
    enum error answered = actor_call(hog, message_new(ASK, 8), NULL, DEADLINE_NONE);
    struct runtime_stats stats;
    runtime_stats(node_runtime, &stats);
    /* Where nobody lets the stopper run, the hog may have computed for so long indeed: it is on this thread. */
    if (env_thread_computed() < stopped_class.runaway_ns)
        TEST_CHECK(answered == OK && stats.overruns == 0);
    if (stats.overruns)
        return;
    uint64_t ref = actor_monitor(hog, 0);
    tell(hog, endless, (void *)(uintptr_t)&counters[0]);
    TEST_CHECK(down(ref).kind == REASON_OVERRUN);
}

static void test_stops(void)
{
    SKIP_IF_SANITIZED();
    pid_t pid = stopper_start();
    int status;
    TEST_CHECK(node_real(1, stops) == 0);
    TEST_CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

/* ---- registers ---- */

typedef double vector __attribute__((vector_size(32)));
static double sums[3];
static unsigned spoiled;

__attribute__((noinline)) static double compute(double seed, unsigned rounds)
{
    vector a = {seed, seed + 1, seed + 2, seed + 3}, b = a * 1.0000001, c = {1e-3, 2e-3, 3e-3, 4e-3};
    double x = seed;
    long double y = (long double)seed;
    for (unsigned i = 0; i < rounds; i++) {
        a = a * 0.999999 + b * c;
        b = b * 0.999998 + a * 1e-6;
        x = x * 0.9999 + 1 / (x + 2);
        y = y * 0.9999L + 1 / (y + 3);
    }
    return a[0] + a[1] + a[2] + a[3] + b[0] + b[1] + b[2] + b[3] + x + (double)y;
}

#define ROUNDS 3000000u
static uint64_t preempted_before;
static bool often_enough(void)
{
    return preemptions() - preempted_before > 4;
}

static void compute_sum(void *arg)
{
    double *sum = arg;
    errno = 4242;
    do {
        double again = compute((double)(sum - sums), ROUNDS);
        spoiled += *sum != 0 && again != *sum;
        *sum = again;
    } while (!often_enough());
    spoiled += errno != 4242;
}

/* The library's functions for this want -lm. */
static bool rounds_upward(void)
{
#if defined(__x86_64__)
    return (__builtin_ia32_stmxcsr() & 0x6000) == 0x4000;
#else
    uint64_t fpcr;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    return (fpcr >> 22 & 3) == 1;
#endif
}

static void round_upward(bool on)
{
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr((__builtin_ia32_stmxcsr() & ~0x6000u) | (on ? 0x4000u : 0));
#else
    uint64_t fpcr;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    fpcr = (fpcr & ~(3ull << 22)) | (on ? 1ull << 22 : 0);
    __asm__ volatile("msr fpcr, %0" : : "r"(fpcr));
#endif
}

static void compute_upward(void *arg)
{
    (void)arg;
    volatile double third = 0;
    round_upward(true);
    do
        for (unsigned i = 0; i < ROUNDS; i++)
            third = 1.0 / (third * 0 + 3.0);
    while (!often_enough());
    spoiled += !rounds_upward() || third * 3 < 1.0;
    round_upward(false);
}

static void look_at_rounding(void *arg)
{
    (void)arg;
    spoiled += rounds_upward();
}

static void registers(void)
{
    actor_pid pids[4];
    preempted_before = preemptions();
    spoiled = 0;
    for (int i = 0; i < 3; i++) {
        pids[i] = doll(SPAWN_HERE);
        tell(pids[i], compute_sum, &sums[i]);
    }
    pids[3] = doll(SPAWN_HERE);
    tell(pids[3], compute_upward, NULL);
    actor_pid looker = doll(SPAWN_HERE);
    for (int i = 0; i < 100; i++) {
        tell(looker, look_at_rounding, NULL);
        TEST_CHECK(actor_call(looker, message_new(ASK, 0), NULL, DEADLINE_NONE) == OK);
    }
    for (int i = 0; i < 4; i++)
        TEST_CHECK(actor_call(pids[i], message_new(ASK, 0), NULL, DEADLINE_NONE) == OK);
    TEST_CHECK(often_enough());
}

static void test_registers(void)
{
    SKIP_IF_SANITIZED();
    TEST_CHECK(node_real(1, registers) == 0);
    for (int i = 0; i < 3; i++)
        TEST_CHECK(sums[i] == compute(i, ROUNDS));
    TEST_CHECK_(spoiled == 0, "%u", spoiled);
}

/* ---- not inside a guarded section, not inside a match ---- */

static volatile unsigned others_ran;
static void run_other(void *arg)
{
    (void)arg;
    others_ran++;
}

static void guarded(void *arg)
{
    struct env *env = env_real();
    actor_guard_begin();
    actor_guard_begin();
    uint64_t before = preemptions();
    unsigned ran = others_ran;
    for (uint64_t end = env->now(env) + 20 * NS_PER_MS; env->now(env) < end;)
        for (int i = 0; i < 10000; i++)
            ++*(volatile uint64_t *)arg;
    actor_guard_end();
    for (uint64_t end = env->now(env) + 5 * NS_PER_MS; env->now(env) < end;)
        for (int i = 0; i < 10000; i++)
            ++*(volatile uint64_t *)arg;
    TEST_CHECK(preemptions() == before && others_ran == ran);
    actor_guard_end();
    while (preemptions() == before) /* and afterwards again */
        for (int i = 0; i < 10000; i++)
            ++*(volatile uint64_t *)arg;
}

static bool slow_match(const struct message *m, void *arg)
{
    struct env *env = env_real();
    uint64_t before = preemptions();
    for (uint64_t end = env->now(env) + 5 * NS_PER_MS; env->now(env) < end;)
        for (int i = 0; i < 10000; i++)
            ++*(volatile uint64_t *)arg;
    TEST_CHECK(preemptions() == before);
    return m->type == NOTE;
}

/* ---- not inside what the runtime calls in the middle of its own work ---- */

static uint64_t cut_off; /* how often somebody was switched out there */
static unsigned told;

static void for_20_ms(void)
{
    uint64_t before = preemptions();
    for (uint64_t end = env_thread_computed() + 20 * NS_PER_MS; env_thread_computed() < end;)
        for (int i = 0; i < 10000; i++)
            ++*(volatile uint64_t *)&counters[0];
    cut_off += preemptions() - before;
}

static void slow_subscriber(void *context, const struct telemetry_record *record)
{
    (void)context;
    (void)record;
    told++;
    for_20_ms();
}

static void emit(void *arg)
{
    (void)arg;
    TELEMETRY(MESSAGE_UNKNOWN, 1, DIM(CLASS, "doll"));
}

static void slow_release(void *arg)
{
    ++*(unsigned *)arg;
    for_20_ms();
    ++*(unsigned *)arg;
}

static void release_slowly(void *arg)
{
    actor_release(actor_own(slow_release, arg));
}

/* Told to do it, and killed in the middle of it, if there is one. */
static void do_and_die(void (*run)(void *arg), void *arg)
{
    actor_pid pid = doll(SPAWN_HERE);
    tell(pid, run, arg);
    actor_yield();
    kill_and_wait(pid);
}

/* The process's own signals are handled wherever they find the thread. */
static void slow_handler(int signal)
{
    (void)signal;
    for_20_ms(); /* the first of the runtime's two signals comes here ... */
    uint64_t before = preemptions();
    node_runtime->schedulers[0]->parking = 1; /* ... or has just been here, and the second one comes */
    raise(SIGRTMIN + 5);
    cut_off += preemptions() - before;
}

static void signal_yourself(void *arg)
{
    (void)arg;
    raise(SIGUSR1);
}

static void handles(void)
{
    struct sigaction action = {.sa_handler = slow_handler}, was;
    sigset_t blocked;
    cut_off = 0;
    sigaction(SIGUSR1, &action, &was);
    do_and_die(signal_yourself, NULL);
    sigaction(SIGUSR1, &was, NULL);
    TEST_CHECK(cut_off == 0);
    TEST_CHECK(pthread_sigmask(SIG_BLOCK, NULL, &blocked) == 0 && !sigismember(&blocked, SIGUSR1));
}

static void test_handles(void)
{
    SKIP_IF_SANITIZED();
    TEST_CHECK(node_real(1, handles) == 0);
}

static void called_back(void)
{
    struct telemetry_filter filter = {{0}};
    unsigned released = 0;
    telemetry_filter_add(&filter, TELEMETRY_MESSAGE_UNKNOWN);
    int handle = telemetry_subscribe(runtime_telemetry(node_runtime), &filter, slow_subscriber, NULL);
    cut_off = told = 0;
    do_and_die(emit, NULL);
    emit(NULL); /* nobody was left in it */
    TEST_CHECK(told == 2 && cut_off == 0);
    telemetry_unsubscribe(runtime_telemetry(node_runtime), handle);
    do_and_die(release_slowly, &released);
    TEST_CHECK(released == 2 && cut_off == 0);
}

static void test_called_back(void)
{
    SKIP_IF_SANITIZED();
    TEST_CHECK(node_real(1, called_back) == 0);
}

static void guards(void)
{
    actor_pid hog = doll(SPAWN_HERE), other = doll(SPAWN_HERE);
    tell(hog, guarded, (void *)(uintptr_t)&counters[0]);
    for (int i = 0; i < 10; i++)
        tell(other, run_other, NULL);
    TEST_CHECK(actor_call(hog, message_new(ASK, 0), NULL, DEADLINE_NONE) == OK);
    TEST_CHECK(actor_call(other, message_new(ASK, 0), NULL, DEADLINE_NONE) == OK);
    TEST_CHECK(others_ran == 10);
    kill_and_wait(hog);
    kill_and_wait(other);
    note(actor_self(), 1);
    TEST_CHECK(actor_receive(slow_match, (void *)(uintptr_t)&counters[0], DEADLINE_NONE) != NULL);
}

static void test_guards(void)
{
    SKIP_IF_SANITIZED();
    TEST_CHECK(node_real(1, guards) == 0);
}

/* ---- the class's own slice ---- */

/* A slice is of the clock: for as long as this one no machine stands still. */
static const struct actor_class patient_class = {
    .name = "patient", .handle = doll_handle, .slice_ns = 3600 * NS_PER_S, .runaway_ns = DEADLINE_NONE};

static void for_30_ms(void *arg)
{
    uint64_t before = preemptions(); /* the root may have been, too */
    for (uint64_t end = env_thread_computed() + 30 * NS_PER_MS; env_thread_computed() < end;)
        for (int i = 0; i < 10000; i++)
            ++*(volatile uint64_t *)arg;
    TEST_CHECK(preemptions() == before);
}

static void until_preempted(void *arg)
{
    uint64_t before = preemptions();
    while (preemptions() == before)
        for (int i = 0; i < 10000; i++) /* nearly all of it here: in the runtime nobody is preempted */
            ++*(volatile uint64_t *)arg;
}

static void slices(void)
{
    actor_pid patient = spawn(&patient_class, SPAWN_HERE), common = doll(SPAWN_HERE);
    tell(patient, for_30_ms, (void *)(uintptr_t)&counters[0]);
    TEST_CHECK(actor_call(patient, message_new(ASK, 0), NULL, DEADLINE_NONE) == OK);
    tell(common, until_preempted, (void *)(uintptr_t)&counters[0]);
    TEST_CHECK(actor_call(common, message_new(ASK, 0), NULL, DEADLINE_NONE) == OK);
    kill_and_wait(patient);
    kill_and_wait(common);
}

static void test_slices(void)
{
    SKIP_IF_SANITIZED();
    TEST_CHECK(node_real(1, slices) == 0);
}

/* ---- many yields, or messages, are a long turn ---- */

enum { YIELDS = 8 * TURN_DISPATCHES };

static uint64_t yields_of_a_turn; /* on average */

/* Half a millisecond between two: a turn that took as many of them as it may would keep the inbox waiting for 64 ms. */
static void yields_and_yields(void *arg)
{
    const struct scheduler *s = node_runtime->schedulers[0];
    uint64_t turns = s->turns;
    for (int i = 0; i < YIELDS; i++) {
        uint64_t end = env_thread_computed() + NS_PER_MS / 2;
        while (env_thread_computed() < end)
            for (int k = 0; k < 1000; k++)
                ++*(volatile uint64_t *)arg;
        actor_yield();
    }
    yields_of_a_turn = YIELDS / (s->turns - turns);
}

enum { PILE = TURN_MESSAGES };
static uint64_t pile_began; /* in turns */

/* Half a millisecond each, so nobody is switched out: one turn for all of them would keep the others waiting for 32 ms. */
static void piece(void *arg)
{
    uint64_t end = env_thread_computed() + NS_PER_MS / 2;
    if (!pile_began)
        pile_began = node_runtime->schedulers[0]->turns;
    while (env_thread_computed() < end)
        for (int k = 0; k < 1000; k++)
            ++*(volatile uint64_t *)arg;
}

static uint64_t turns_of_pile(actor_pid pid)
{
    pile_began = 0;
    for (int i = 0; i < PILE; i++)
        tell(pid, piece, (void *)(uintptr_t)&counters[0]);
    TEST_CHECK(actor_call(pid, message_new(ASK, 0), NULL, DEADLINE_NONE) == OK);
    return node_runtime->schedulers[0]->turns - pile_began;
}

static void pile(void)
{
    actor_pid pid = doll(SPAWN_HERE);
    uint64_t turns = 0;
    for (unsigned tries = 20; tries > 0 && turns < 4; tries--) /* the monitor has to be let run, too */
        turns = turns_of_pile(pid);
    TEST_CHECK_(turns >= 4, "%llu turns", (unsigned long long)turns);
    kill_and_wait(pid);
}

static void hurries(void)
{
    actor_pid pid = doll(SPAWN_HERE);
    unsigned tries = 20; /* the monitor has to be let run, too */
    do {
        tell(pid, yields_and_yields, (void *)(uintptr_t)&counters[0]);
        TEST_CHECK(actor_call(pid, message_new(ASK, 0), NULL, DEADLINE_NONE) == OK);
    } while (yields_of_a_turn > TURN_DISPATCHES / 4 && --tries);
    TEST_CHECK(yields_of_a_turn <= TURN_DISPATCHES / 4);
    TEST_MSG("%llu yields a turn", (unsigned long long)yields_of_a_turn);
    kill_and_wait(pid);
}

static void test_hurries(void)
{
    SKIP_IF_SANITIZED();
    TEST_CHECK(node_real(1, hurries) == 0);
}

static void test_pile(void)
{
    SKIP_IF_SANITIZED();
    TEST_CHECK(node_real(1, pile) == 0);
}

/* ---- suspended, stopped ---- */

static void suspended(void)
{
    actor_pid hog = doll(SPAWN_HERE);
    counters[0] = 0;
    tell(hog, endless, (void *)(uintptr_t)&counters[0]);
    while (!counters[0])
        actor_yield();
    actor_suspend(hog);
    struct actor_info info;
    do
        actor_yield();
    while (actor_inspect(hog, &info, DEADLINE_NONE) == OK && strcmp(info.status, "SUSPENDED") != 0);
    uint64_t there = counters[0];
    actor_sleep(actor_deadline_ms(5));
    TEST_CHECK(counters[0] == there);
    actor_resume(hog);
    while (counters[0] == there)
        actor_yield();
    kill_and_wait(hog);
    /* The root ends with hogs left behind on every scheduler: they are ended, too. */
    for (uint32_t i = 0; i < runtime_schedulers(); i++)
        tell(doll(SPAWN_ON(i)), endless, (void *)(uintptr_t)&counters[i]);
}

static void test_suspended(void)
{
    SKIP_IF_SANITIZED();
    TEST_CHECK(node_real(1, suspended) == 0);
    TEST_CHECK(node_real(2, suspended) == 0);
}

/* A stray signal of the second kind, from anywhere, parks nobody. */
static void raise_a_hundred(void *arg)
{
    (void)arg;
    uint64_t before = preemptions();
    for (int i = 0; i < 100; i++)
        raise(SIGRTMIN + 5);
    TEST_CHECK(preemptions() == before);
}

static void stray(void)
{
    actor_pid patient = spawn(&patient_class, SPAWN_HERE);
    tell(patient, raise_a_hundred, NULL);
    TEST_CHECK(actor_call(patient, message_new(ASK, 0), NULL, DEADLINE_NONE) == OK);
    kill_and_wait(patient);
    kill(getpid(), SIGRTMIN + 5);
    raise(SIGURG);
}

static void test_stray(void)
{
    SKIP_IF_SANITIZED();
    TEST_CHECK(
        node_real_with(&(struct runtime_options){.schedulers = 1, .slice_ns = NS_PER_S, .actors_max = 1000},
                       stray) == 0);
}

/* ---- whose code is it ---- */

extern char __executable_start[];

/* The runtime's own calls into libraries go through the program's linkage stubs: who is in one isn't in actor code. */
static void test_linkage_stubs(void)
{
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    struct stat stat;
    TEST_ASSERT(fd >= 0 && fstat(fd, &stat) == 0);
    const char *file = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    TEST_ASSERT(file != MAP_FAILED);
    const Elf64_Ehdr *head = (const void *)file;
    const Elf64_Shdr *sections = (const void *)(file + head->e_shoff);
    const char *names = file + sections[head->e_shstrndx].sh_offset;
    unsigned stubs = 0;
    for (unsigned i = 0; i < head->e_shnum; i++) {
        const char *name = names + sections[i].sh_name;
        if (strncmp(name, ".plt", 4) != 0)
            continue;
        /* The first stub of .plt is for late binding, which is off (-z now). */
        bool first_is_lazy = strcmp(name, ".plt") == 0;
        size_t size = sections[i].sh_entsize >= 8 ? sections[i].sh_entsize : 16;
        for (size_t at = first_is_lazy ? size : 0; at + size <= sections[i].sh_size; at += size) {
            ucontext_t u = {0};
            uintptr_t pc = (uintptr_t)__executable_start + sections[i].sh_addr + at;
#if defined(__x86_64__)
            u.uc_mcontext.gregs[REG_RIP] = (greg_t)pc;
#else
            u.uc_mcontext.pc = pc;
#endif
            stubs++;
            TEST_CHECK_(!fault_in_actor_code(&u), "%s+%zx", name, at);
        }
    }
    TEST_CHECK(stubs > 10);
    ucontext_t u = {0};
#if defined(__x86_64__)
    u.uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)endless;
#else
    u.uc_mcontext.pc = (uintptr_t)endless;
#endif
    TEST_CHECK(fault_in_actor_code(&u));
    munmap((void *)(uintptr_t)file, (size_t)stat.st_size);
    close(fd);
}

TEST_LIST
= {
    {"endless loops don't keep others waiting", test_served},
    {"whoever wakes up to compute is seen", test_after_sleep},
    {"overrun: alone, in terminate, not by yielding", test_overrun},
    {"stopped and continued, nobody has computed for too long", test_stops},
    {"registers, errno and rounding survive", test_registers},
    {"not in guarded sections, not while matching", test_guards},
    {"not in subscribers, not while releasing", test_called_back},
    {"not in the handler of another signal", test_handles},
    {"the class's own slice", test_slices},
    {"who yields again and again keeps no inbox waiting", test_hurries},
    {"who has many messages keeps nobody waiting", test_pile},
    {"suspended, and left behind", test_suspended},
    {"stray signals", test_stray},
    {"linkage stubs are not actor code", test_linkage_stubs},
    {NULL, NULL},
};
