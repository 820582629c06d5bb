/* Faults: who computes without end, who is killed and who crashes, and what the others notice of it.
 *
 * fair: calls that are due every quarter of a millisecond, while handlers on the same scheduler compute
 * without end. A call counts from when it is due, so what the caller itself waits for its turn is in it. The
 * peer is the same with nobody computing: what machine and kernel make of a sleep.
 *
 * isolation: calls back to back to random children of 10,000, in quiet and while 1,000 of the others are
 * killed within a second. isolation is how many calls failed, and one is enough to end with an error;
 * isolation_p99 their p99 while others die, .peer the quiet one.
 *
 * crash: from the message that makes a child dereference NULL to the answer of the new one.
 *
 * crash_storm: 10,000 crashes of each kind in a row, and between them calls to siblings that nobody touches.
 * It fails when one of these calls does or a sibling has been restarted, when a descriptor stays open, or
 * when the process grows by a mebibyte.
 */
#define _GNU_SOURCE
#include "tests/bench/family.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { GO = 1, ASK };

/* ---- fair ---- */

#define FAIR_CALLS   200u
#define FAIR_PACE_NS (250 * NS_PER_US)

static enum actor_step echo(void *state, struct message *m)
{
    (void)state;
    actor_reply(m, m);
    return ACTOR_CONTINUE;
}

static const struct actor_class echo_class = {.name = "echo", .handle = echo};

static enum actor_step compute(void *state, struct message *m)
{
    (void)state, (void)m;
    for (volatile uint64_t n = 1; n; n++)
        ;
    return ACTOR_CONTINUE;
}

static const struct actor_class hog_class = {.name = "hog", .handle = compute, .runaway_ns = DEADLINE_NONE};

static void call_when_due(void *arg, double *ret)
{
    static uint64_t took[FAIR_CALLS];
    actor_pid to = *(actor_pid *)arg;
    uint64_t due = bench_now();
    for (uint32_t i = 0; i < FAIR_CALLS; i++) {
        due += FAIR_PACE_NS / 2 + bench_random() % FAIR_PACE_NS;
        actor_sleep(due);
        enum error e =
            actor_call(to, message_of(ASK, NULL, 0), NULL, actor_deadline_ms(ACTOR_CALL_DEFAULT_MS));
        if (e)
            bench_fail("call %u: %s", i, error_name(e));
        took[i] = bench_now() - due;
    }
    *ret = (double)bench_quantile(took, FAIR_CALLS, 0.99) / 1e3;
}

static void measure_fair(const char *name, uint32_t hogs)
{
    actor_pid hog[100];
    if (!bench_wanted(name))
        return;
    actor_pid to = bench_spawn(&echo_class, NULL, 0, SPAWN_HERE);
    for (uint32_t i = 0; i < hogs; i++) {
        hog[i] = bench_spawn(&hog_class, NULL, 0, SPAWN_HERE);
        actor_cast(hog[i], GO, NULL, 0);
    }
    bench_repeat(&(struct bench_row){name, "us", BENCH_LESS}, 1, call_when_due, &to);
    for (uint32_t i = 0; i < hogs; i++)
        actor_kill(hog[i]);
    actor_kill(to);
}

/* ---- isolation ---- */

#define CHILDREN 10000u
#define KILLED   1000u             /* of them, the first ones, one a millisecond */
#define QUIET_NS (300 * NS_PER_MS) /* before, and again after */
#define BUCKETS  100000u           /* of a nanosecond; the last one takes what is longer */

static uint32_t bucket[BUCKETS];

static uint64_t bucket_quantile(uint64_t count, double share)
{
    uint64_t rank = (uint64_t)((double)count * share), seen = 0;
    for (uint32_t i = 0; i < BUCKETS; i++) {
        seen += bucket[i];
        if (seen > rank)
            return i;
    }
    return BUCKETS;
}

/* Calls those that nobody kills for so long: the p99 in ns; counts those that failed. */
static uint64_t call_survivors(uint64_t ns, uint64_t *failed)
{
    uint64_t started = bench_now(), before = started, count = 0;
    memset(bucket, 0, sizeof bucket);
    while (before - started < ns) {
        uint32_t index = KILLED + (uint32_t)(bench_random() % (CHILDREN - KILLED));
        before = bench_now();
        bool answered = family_ask(index) != 0;
        uint64_t took = bench_now() - before;
        bucket[took < BUCKETS ? took : BUCKETS - 1]++;
        *failed += !answered;
        count++;
    }
    return bucket_quantile(count, 0.99);
}

static uint32_t came_back;

static enum actor_step reaper_handle(void *state, struct message *m)
{
    (void)state;
    if (m->type == FAMILY_UP) { /* the watcher of those who come back; its own mailbox, not the caller's */
        uint32_t index = *(uint32_t *)(void *)m->payload;
        family_pid[index] = m->from;
        came_back++;
        return ACTOR_CONTINUE;
    }
    uint64_t due = actor_now();
    for (uint32_t i = 0; i < KILLED; i++) {
        actor_kill(family_pid[i]);
        due += NS_PER_S / KILLED;
        actor_sleep(due);
    }
    return ACTOR_CONTINUE;
}

static const struct actor_class reaper_class = {
    .name = "reaper", .handle = reaper_handle, .mailbox_capacity = 2 * CHILDREN};

static void kill_some(void *arg, double *ret)
{
    actor_pid reaper = *(actor_pid *)arg;
    uint64_t failed = 0;
    came_back = 0;
    uint64_t quiet = call_survivors(QUIET_NS, &failed);
    actor_cast(reaper, GO, NULL, 0);
    uint64_t busy = call_survivors(NS_PER_S, &failed);
    for (uint32_t i = 0; came_back < KILLED; i++) {
        if (i == 5000)
            bench_fail("%u of %u came back", came_back, KILLED);
        actor_sleep(actor_deadline_ms(1));
    }
    quiet = (quiet + call_survivors(QUIET_NS, &failed)) / 2;
    if (failed) /* a median would hide it */
        bench_fail("%llu calls to children that nobody touched have failed", (unsigned long long)failed);
    ret[0] = 0;
    ret[1] = (double)busy / 1e3;
    ret[2] = (double)quiet / 1e3;
    ret[3] = (double)busy / (double)quiet;
}

static void measure_isolation(void)
{
    const struct bench_row rows[] = {{"isolation", "failed", BENCH_LESS},
                                     {"isolation_p99", "us", BENCH_LESS},
                                     {"isolation_p99.peer", "us", BENCH_LESS},
                                     {"isolation.ratio", "x", BENCH_LESS}};
    if (!bench_wanted("isolation"))
        return;
    actor_pid reaper = bench_spawn(&reaper_class, NULL, 0, SPAWN_HERE);
    actor_pid sup = family_start(CHILDREN, reaper, SPAWN_HERE, NULL);
    while (came_back < CHILDREN)
        actor_yield();
    bench_repeat(rows, 4, kill_some, &reaper);
    family_stop(sup);
    actor_kill(reaper);
}

/* ---- ways to crash ---- */

#define CRASHES(X)              \
    X(SIGSEGV, sigsegv)         \
    X(SIGBUS, sigbus)           \
    X(SIGFPE, sigfpe)           \
    X(SIGILL, sigill)           \
    X(ABORT, abort)             \
    X(ASSERT, assert)           \
    X(OVERFLOW, stack_overflow) \
    X(QUOTA, quota)

enum crash {
#define X(name, text) CRASH_BY_##name,
    CRASHES(X)
#undef X
        CRASH_COUNT
};

static volatile char *beyond; /* a page of a file that is shorter than it */
static volatile int nothing, seven = 7;
static volatile uint64_t depth;

static void map_beyond(void)
{
    int fd = memfd_create("bench", MFD_CLOEXEC);
    void *p = fd < 0 ? MAP_FAILED : mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        bench_fail("a page beyond the end of a file cannot be mapped");
    close(fd);
    beyond = p;
}

__attribute__((noinline)) static uint64_t descend(uint64_t n)
{
    volatile char frame[512];
    frame[n % sizeof frame] = (char)n;
    depth = n;
    return n == UINT64_MAX ? 0 : descend(n + 1) + (uint64_t)frame[0];
}

static void divide(void)
{
#if defined(__x86_64__)
    nothing = seven / nothing;
#else
    raise(SIGFPE); /* an aarch64 processor divides by zero without complaint */
#endif
}

static void crash(uint32_t how)
{
    switch (how) {
    case CRASH_BY_SIGSEGV:
        *(volatile int *)NULL = 1;
        break;
    case CRASH_BY_SIGBUS:
        *beyond = 1;
        break;
    case CRASH_BY_SIGFPE:
        divide();
        break;
    case CRASH_BY_SIGILL:
#if defined(__x86_64__)
        __asm__ volatile("ud2");
#else
        __asm__ volatile(".inst 0");
#endif
        break;
    case CRASH_BY_ABORT:
        abort();
    case CRASH_BY_ASSERT:
        ASSERT(nothing != 0);
        break;
    case CRASH_BY_OVERFLOW:
        descend(0);
        break;
    case CRASH_BY_QUOTA:
        while (actor_alloc(1024))
            ;
        break;
    default:
        break;
    }
}

static void told(uint32_t type)
{
    crash(type - FAMILY_USER);
}

/* ---- one crash ---- */

#define CRASH_CALLS 500u

static void make_it_crash(actor_pid pid)
{
    actor_cast(pid, FAMILY_USER + CRASH_BY_SIGSEGV, NULL, 0);
}

static void crash_many(void *arg, double *ret)
{
    static uint64_t took[CRASH_CALLS];
    (void)arg;
    for (uint32_t i = 0; i < CRASH_CALLS; i++)
        took[i] = family_revive((uint32_t)(bench_random() % 1000), make_it_crash);
    ret[0] = (double)bench_quantile(took, CRASH_CALLS, 0.50) / 1e3;
    ret[1] = (double)bench_quantile(took, CRASH_CALLS, 0.99) / 1e3;
}

static void measure_crash(void)
{
    const struct bench_row rows[] = {{"crash_p50", "us", BENCH_LESS}, {"crash_p99", "us", BENCH_LESS}};
    if (!bench_wanted("crash_p"))
        return;
    actor_pid sup = family_start(1000, actor_self(), SPAWN_HERE, told);
    for (uint32_t i = 0; i < 1000; i++)
        family_up();
    bench_repeat(rows, 2, crash_many, NULL);
    family_stop(sup);
}

/* ---- 10,000 of each kind ---- */

#define STORM      10000u
#define STORM_WARM 500u
#define SIBLINGS   63u
#define GROWTH_MAX ((int64_t)1 << 20)

/* Child 0 crashes and comes back; who is asked after it must have been asked once more, in the same life. */
static void storm(enum crash how, uint32_t count, uint64_t asked[SIBLINGS + 1])
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t sibling = 1 + i % SIBLINGS;
        actor_cast(family_pid[0], FAMILY_USER + (uint32_t)how, NULL, 0);
        uint32_t up = family_up();
        uint64_t answer = family_ask(sibling);
        if (up != 0 || answer != ++asked[sibling])
            bench_fail("crash %u of kind %d: child %u came up, sibling %u answered %llu instead of %llu", i,
                       (int)how, up, sibling, (unsigned long long)answer, (unsigned long long)asked[sibling]);
    }
}

static void measure_storm(enum crash how, const char *kind)
{
    char name[64];
    uint64_t asked[SIBLINGS + 1] = {0};
    snprintf(name, sizeof name, "crash_storm.%s", kind);
    if (!bench_wanted(name))
        return;
    actor_pid sup = family_start(SIBLINGS + 1, actor_self(), SPAWN_HERE, told);
    for (uint32_t i = 0; i <= SIBLINGS; i++)
        family_up();
    storm(how, STORM_WARM, asked);
    int64_t resident = (int64_t)bench_resident();
    size_t descriptors = bench_descriptors();
    uint64_t started = bench_now();
    storm(how, STORM, asked);
    double rate = bench_per_second(STORM, started);
    int64_t growth = (int64_t)bench_resident() - resident;
    size_t now = bench_descriptors();
    printf("runtime.%s %.0f crashes/s\nruntime.%s.growth %lld bytes\n", name, rate, name, (long long)growth);
    if (now != descriptors)
        bench_fail("%s: %zu descriptors were open before, %zu are now", name, descriptors, now);
    if (growth >= GROWTH_MAX)
        bench_fail("%s: the process has grown by %lld bytes", name, (long long)growth);
    family_stop(sup);
}

/* ---- the rows ---- */

static void body(void)
{
    measure_fair("fair_p99.peer", 0);
    measure_fair("fair_p99", 1);
    measure_fair("fair_p99_100", 100);
    measure_crash();
    measure_isolation();
#define X(name, text) measure_storm(CRASH_BY_##name, #text);
    CRASHES(X)
#undef X
}

int main(void)
{
    bench_begin("runtime", 22);
    map_beyond();
    bench_node(1, body);
    return 0;
}
