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
    pid = spawn(&runaway_class, SPAWN_HERE);
    actor_pid hog = doll(SPAWN_HERE);
    tell(hog, endless, (void *)(uintptr_t)&counters[1]);
    tell(pid, yields_for_long, (void *)(uintptr_t)&counters[0]);
    TEST_CHECK(actor_call(pid, message_new(ASK, 0), NULL, DEADLINE_NONE) == OK);
    kill_and_wait(pid);
    kill_and_wait(hog);
    struct runtime_stats stats;
    runtime_stats(node_runtime, &stats);
    TEST_CHECK(stats.overruns == 2);
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
    TEST_CHECK(actor_call(hog, message_new(ASK, 8), NULL, DEADLINE_NONE) == OK);
    struct runtime_stats stats;
    runtime_stats(node_runtime, &stats);
    TEST_CHECK(stats.overruns == 0);
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
static void compute_sum(void *arg)
{
    double *sum = arg;
    errno = 4242;
    *sum = compute((double)(sum - sums), ROUNDS);
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
    for (unsigned i = 0; i < ROUNDS; i++)
        third = 1.0 / (third * 0 + 3.0);
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
    uint64_t before = preemptions();
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
    TEST_CHECK(preemptions() - before > 4);
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
    uint64_t before = preemptions();
    actor_guard_begin();
    actor_guard_begin();
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

static const struct actor_class patient_class = {
    .name = "patient", .handle = doll_handle, .slice_ns = NS_PER_S, .runaway_ns = DEADLINE_NONE};

static void for_30_ms(void *arg)
{
    struct env *env = env_real();
    for (uint64_t end = env->now(env) + 30 * NS_PER_MS; env->now(env) < end;)
        for (int i = 0; i < 10000; i++)
            ++*(volatile uint64_t *)arg;
}

static void slices(void)
{
    actor_pid patient = spawn(&patient_class, SPAWN_HERE), common = doll(SPAWN_HERE);
    tell(patient, for_30_ms, (void *)(uintptr_t)&counters[0]);
    TEST_CHECK(actor_call(patient, message_new(ASK, 0), NULL, DEADLINE_NONE) == OK);
    TEST_CHECK(preemptions() == 0);
    tell(common, for_30_ms, (void *)(uintptr_t)&counters[0]);
    TEST_CHECK(actor_call(common, message_new(ASK, 0), NULL, DEADLINE_NONE) == OK);
    TEST_CHECK(preemptions() > 0);
    kill_and_wait(patient);
    kill_and_wait(common);
}

static void test_slices(void)
{
    SKIP_IF_SANITIZED();
    TEST_CHECK(node_real(1, slices) == 0);
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
static void stray(void)
{
    for (int i = 0; i < 100; i++)
        raise(SIGRTMIN + 5);
    TEST_CHECK(preemptions() == 0);
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
    {"the class's own slice", test_slices},
    {"suspended, and left behind", test_suspended},
    {"stray signals", test_stray},
    {"linkage stubs are not actor code", test_linkage_stubs},
    {NULL, NULL},
};
