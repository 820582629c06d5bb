#include "runtime/coro.h"

#include "acutest.h"

#include <errno.h>
#include <execinfo.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/sanitized.h"

#if SANITIZED && __has_include(<sanitizer/asan_interface.h>)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, size) ((void)(at), (void)(size))
#endif

#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#else
#define RUNNING_ON_VALGRIND              0
#define VALGRIND_DISABLE_ERROR_REPORTING ((void)0)
#define VALGRIND_ENABLE_ERROR_REPORTING  ((void)0)
#endif

#define KIB ((size_t)1024)

/* valgrind looks through its list of stacks, TSan maps megabytes for each: fewer of them there. */
#define COUNT_MOST(native) (RUNNING_ON_VALGRIND || SANITIZED ? (size_t)1000 : (size_t)(native))

/* Sanitizers need more stack for the same frames. */
#define STACK_SIZE (SANITIZED ? 256 * KIB : CORO_STACK_SIZE_DEFAULT)

/* Order. */

static char trace[64];

static void trace_add(char c)
{
    size_t length = strlen(trace);
    TEST_ASSERT(length + 1 < sizeof trace);
    trace[length] = c;
    trace[length + 1] = '\0';
}

static void three_steps(void *arg)
{
    const char *name = arg;
    trace_add(name[0]);
    coro_park();
    trace_add(name[1]);
    coro_park();
    trace_add(name[2]);
}

static void coro_runs_from_park_to_park_in_the_callers_order(void)
{
    char abc[] = "abc";
    char xyz[] = "xyz";
    trace[0] = '\0';
    struct coro_pool *pool = coro_pool_create(STACK_SIZE, 2);
    TEST_ASSERT(pool != NULL);
    struct coro *a = coro_start(pool, three_steps, abc);
    trace_add('1');
    struct coro *x = coro_start(pool, three_steps, xyz);
    trace_add('2');
    TEST_CHECK(coro_resume(x));
    TEST_CHECK(coro_resume(a));
    TEST_CHECK(!coro_resume(a));
    trace_add('3');
    TEST_CHECK(!coro_resume(x));
    TEST_CHECK_(strcmp(trace, "a1x2ybc3z") == 0, "%s", trace);
    coro_pool_destroy(pool);
}

static void note_argument(void *arg)
{
    *(int *)arg += 1;
}

static void coro_that_never_parks_is_finished_at_once(void)
{
    struct coro_pool *pool = coro_pool_create(STACK_SIZE, 1);
    int runs = 0;
    for (int i = 0; i < 1000; i++)
        TEST_CHECK(coro_start(pool, note_argument, &runs) == CORO_FINISHED);
    TEST_CHECK(runs == 1000);
    struct coro_stats stats;
    coro_pool_stats(pool, &stats);
    TEST_CHECK(stats.stacks == 1 && stats.idle == 1 && stats.in_use == 0);
    coro_pool_destroy(pool);
}

static void note_self(void *arg)
{
    struct coro **ret_self = arg;
    *ret_self = coro_self();
    coro_park();
    TEST_CHECK(*ret_self == coro_self());
}

static void coro_self_is_the_running_one_and_null_outside(void)
{
    struct coro_pool *pool = coro_pool_create(STACK_SIZE, 2);
    struct coro *seen[2];
    TEST_CHECK(coro_self() == NULL);
    struct coro *a = coro_start(pool, note_self, &seen[0]);
    TEST_CHECK(coro_self() == NULL);
    struct coro *b = coro_start(pool, note_self, &seen[1]);
    TEST_CHECK(a == seen[0] && b == seen[1] && a != b);
    TEST_CHECK(!coro_resume(a));
    TEST_CHECK(!coro_resume(b));
    TEST_CHECK(coro_self() == NULL);
    coro_pool_destroy(pool);
}

/* Many. */

static void count_rounds(void *arg)
{
    size_t *rounds = arg;
    for (int i = 0; i < 5; i++) {
        *rounds += 1;
        coro_park();
    }
}

static void thousands_of_coroutines_take_turns(void)
{
    enum { COUNT = 5000 };
    size_t count = COUNT_MOST(COUNT);
    static struct coro *coros[COUNT];
    static size_t rounds[COUNT];
    struct coro_pool *pool = coro_pool_create(STACK_SIZE, count);
    for (size_t i = 0; i < count; i++) {
        coros[i] = coro_start(pool, count_rounds, &rounds[i]);
        TEST_ASSERT(coros[i] != NULL && coros[i] != CORO_FINISHED);
    }
    for (size_t round = 1; round < 5; round++)
        for (size_t i = 0; i < count; i++)
            TEST_ASSERT(rounds[i] == round && coro_resume(coros[i]));
    for (size_t i = count; i-- > 0;)
        TEST_ASSERT(!coro_resume(coros[i]));
    struct coro_stats stats;
    coro_pool_stats(pool, &stats);
    TEST_CHECK(stats.stacks == count && stats.idle == count && stats.in_use == 0);
    coro_pool_destroy(pool);
}

static void park_once(void *arg)
{
    (void)arg;
    coro_park();
}

/* Where the kernel's guards cost no mapping; elsewhere the process stops at its declared limit, and says so.
 */
static void a_hundred_thousand_stacks_at_once(void)
{
    size_t count = COUNT_MOST(100000);
    struct coro **coros = calloc(count, sizeof *coros);
    struct coro_pool *pool = coro_pool_create(CORO_STACK_SIZE_DEFAULT, count);
    struct coro_stats stats;
    coro_pool_stats(pool, &stats);
    size_t started = 0;
    for (; started < count; started++) {
        errno = 0;
        coros[started] = coro_start(pool, park_once, NULL);
        if (coros[started] == NULL)
            break;
    }
    if (strcmp(stats.guard_kind, "madvise") == 0)
        TEST_CHECK_(started == count, "%zu, errno %d", started, errno);
    else
        TEST_CHECK_(started == (count < 32000 ? count : 32000), "%zu, errno %d", started, errno);
    for (size_t i = 0; i < started; i++)
        TEST_ASSERT(!coro_resume(coros[i]));
    free(coros);
    coro_pool_destroy(pool);
}

static void coro_is_refused_beyond_count_max(void)
{
    struct coro_pool *pool = coro_pool_create(STACK_SIZE, 2);
    struct coro *a = coro_start(pool, park_once, NULL);
    struct coro *b = coro_start(pool, park_once, NULL);
    int runs = 0;
    errno = 0;
    TEST_CHECK(coro_start(pool, note_argument, &runs) == NULL);
    TEST_CHECK(errno == EAGAIN);
    TEST_CHECK(runs == 0);
    TEST_CHECK(coro_self() == NULL);
    TEST_CHECK(!coro_resume(a));
    TEST_CHECK(coro_start(pool, note_argument, &runs) == CORO_FINISHED);
    TEST_CHECK(runs == 1);
    TEST_CHECK(!coro_resume(b));
    coro_pool_destroy(pool);
}

static void coro_pool_refuses_absurd_sizes(void)
{
    errno = 0;
    TEST_CHECK(coro_pool_create(0, 1) == NULL && errno == EINVAL);
    errno = 0;
    TEST_CHECK(coro_pool_create(64 * KIB, 0) == NULL && errno == EINVAL);
    errno = 0;
    TEST_CHECK(coro_pool_create(SIZE_MAX, 1) == NULL && errno == EINVAL);
    errno = 0;
    TEST_CHECK(coro_pool_create(64 * KIB, SIZE_MAX) == NULL && errno == EINVAL);
    coro_pool_destroy(NULL);
}

static void note_frame(void *arg)
{
    *(uintptr_t *)arg = (uintptr_t)__builtin_frame_address(0);
    coro_park();
}

static void a_finished_coroutines_stack_is_the_next_one_taken(void)
{
    struct coro_pool *pool = coro_pool_create(STACK_SIZE, 3);
    uintptr_t first, second, third, other;
    struct coro *a = coro_start(pool, note_frame, &first);
    struct coro *b = coro_start(pool, note_frame, &other);
    TEST_CHECK(!coro_resume(a));
    struct coro *c = coro_start(pool, note_frame, &second);
    TEST_CHECK(second == first);
    TEST_CHECK(!coro_resume(b));
    TEST_CHECK(!coro_resume(c));
    struct coro *d = coro_start(pool, note_frame, &third);
    TEST_CHECK(third == first);
    TEST_CHECK(!coro_resume(d));
    struct coro_stats stats;
    coro_pool_stats(pool, &stats);
    TEST_CHECK(stats.stacks == 2);
    coro_pool_destroy(pool);
}

static void write_below(void *arg)
{
    uintptr_t *at = arg;
    if (*at == 0) {
        *at = (uintptr_t)__builtin_frame_address(0) - 4 * KIB;
        ASAN_POISON_MEMORY_REGION((const void *)*at, 64);
    } else {
        memset((void *)*at, 1, 64);
    }
}

/* Under ASan: what one coroutine poisoned on its stack is not held against the next one there. */
static void a_recycled_stack_is_free_to_use(void)
{
    struct coro_pool *pool = coro_pool_create(STACK_SIZE, 1);
    uintptr_t at = 0;
    for (int i = 0; i < 2; i++)
        TEST_CHECK(coro_start(pool, write_below, &at) == CORO_FINISHED);
    coro_pool_destroy(pool);
}

static void a_thread_may_have_pools_of_several_sizes(void)
{
    struct coro_pool *small = coro_pool_create(STACK_SIZE, 2);
    struct coro_pool *large = coro_pool_create(4 * STACK_SIZE, 2);
    char abc[] = "abc";
    char xyz[] = "xyz";
    trace[0] = '\0';
    struct coro *a = coro_start(small, three_steps, abc);
    struct coro *x = coro_start(large, three_steps, xyz);
    uintptr_t low, high;
    coro_stack_bounds(a, &low, &high);
    TEST_CHECK(high - low >= STACK_SIZE && high - low < 2 * STACK_SIZE);
    coro_stack_bounds(x, &low, &high);
    TEST_CHECK(high - low >= 4 * STACK_SIZE && high - low < 5 * STACK_SIZE);
    while (coro_resume(a) && coro_resume(x))
        ;
    TEST_CHECK(!coro_resume(x));
    TEST_CHECK_(strcmp(trace, "axbycz") == 0, "%s", trace);
    coro_pool_destroy(small);
    coro_pool_destroy(large);
}

static void *thread_of_coroutines(void *arg)
{
    (void)arg;
    struct coro_pool *pool = coro_pool_create(STACK_SIZE, 16);
    size_t rounds[16] = {0};
    size_t total = 0;
    for (int repeat = 0; repeat < 50; repeat++) {
        struct coro *coros[16];
        for (size_t i = 0; i < 16; i++)
            coros[i] = coro_start(pool, count_rounds, &rounds[i]);
        for (size_t i = 0; i < 16; i++)
            while (coro_resume(coros[i]))
                ;
    }
    for (size_t i = 0; i < 16; i++)
        total += rounds[i];
    coro_pool_destroy(pool);
    return (void *)total;
}

static void threads_do_not_meet(void)
{
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++)
        TEST_ASSERT(pthread_create(&threads[i], NULL, thread_of_coroutines, NULL) == 0);
    for (size_t i = 0; i < 4; i++) {
        void *total;
        TEST_ASSERT(pthread_join(threads[i], &total) == 0);
        TEST_CHECK((size_t)total == 50 * 16 * 5);
    }
}

/* What survives a switch. */

#define EIGHT(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)

/* Eight integers and eight floating-point numbers live across each park: more than the registers that a
 * callee keeps, so all of those are in use. Each coroutine has its own values. */
static __attribute__((noinline)) bool values_survive(volatile unsigned *seed, int rounds)
{
#define DECLARE(n)                  \
    unsigned long i##n = *seed + n; \
    double d##n = (double)*seed + n / 8.0;
#define CHANGE(n)  \
    i##n += *seed; \
    d##n += (double)*seed;
#define COMPARE(n) \
    good =         \
        good && i##n == (unsigned long)*seed * times + n && d##n == (double)*seed * (double)times + n / 8.0;
    EIGHT(DECLARE)
    unsigned long times = 1;
    for (int round = 0; round < rounds; round++) {
        coro_park();
        times++;
        EIGHT(CHANGE)
    }
    bool good = true;
    EIGHT(COMPARE)
    return good;
}

static void check_values(void *arg)
{
    unsigned *seed = arg;
    TEST_CHECK(values_survive(seed, 10));
    *seed = 0;
}

static void integers_and_floating_point_survive_switches(void)
{
    struct coro_pool *pool = coro_pool_create(STACK_SIZE, 8);
    struct coro *coros[8];
    unsigned seeds[8];
    for (unsigned i = 0; i < 8; i++) {
        seeds[i] = 1000 + 77 * i;
        coros[i] = coro_start(pool, check_values, &seeds[i]);
    }
    for (int round = 0; round < 10; round++)
        for (size_t i = 0; i < 8; i++)
            TEST_CHECK(coro_resume(coros[i]) == (round < 9));
    for (size_t i = 0; i < 8; i++)
        TEST_CHECK(seeds[i] == 0);
    coro_pool_destroy(pool);
}

/* The same for the side that resumes: a coroutine that clobbers everything must not be felt outside. */
static __attribute__((noinline)) bool values_survive_outside(struct coro *coro, volatile unsigned *seed)
{
    EIGHT(DECLARE)
    unsigned long times = 1;
    while (coro_resume(coro)) {
        times++;
        EIGHT(CHANGE)
    }
    bool good = true;
    EIGHT(COMPARE)
    return good && times == 10;
}

static void the_resumers_values_survive_too(void)
{
    struct coro_pool *pool = coro_pool_create(STACK_SIZE, 1);
    unsigned inside = 5;
    unsigned outside = 7;
    struct coro *coro = coro_start(pool, check_values, &inside);
    TEST_CHECK(values_survive_outside(coro, &outside));
    TEST_CHECK(inside == 0);
    coro_pool_destroy(pool);
}

/* Rounding upward, by hand: <fenv.h> would need the mathematics library. */
static void round_upward(void)
{
#if defined __x86_64__
    unsigned mxcsr = __builtin_ia32_stmxcsr() | 0x4000;
    unsigned short x87;
    __asm__ volatile("fnstcw %0" : "=m"(x87));
    x87 |= 0x800;
    __asm__ volatile("ldmxcsr %0\n\tfldcw %1" : : "m"(mxcsr), "m"(x87));
#elif defined __aarch64__
    uint64_t fpcr;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    fpcr |= UINT64_C(1) << 22;
    __asm__ volatile("msr fpcr, %0" : : "r"(fpcr));
#endif
}

static __attribute__((noinline)) double third(void)
{
    volatile double one = 1.0;
    volatile double three = 3.0;
    return one / three;
}

static __attribute__((noinline)) long double long_third(void)
{
    volatile long double one = 1.0L;
    volatile long double three = 3.0L;
    return one / three;
}

static void leave_rounding_changed(void *arg)
{
    double nearest = third();
    round_upward();
    *(bool *)arg = third() > nearest;
}

static void rounding_left_changed_by_a_coroutine_ends_with_it(void)
{
    struct coro_pool *pool = coro_pool_create(STACK_SIZE, 1);
    double nearest = third();
    long double long_nearest = long_third();
    bool changed = false;
    TEST_CHECK(coro_start(pool, leave_rounding_changed, &changed) == CORO_FINISHED);
    TEST_CHECK(changed || RUNNING_ON_VALGRIND);
    TEST_CHECK(third() == nearest);
    TEST_CHECK(long_third() == long_nearest);
    coro_pool_destroy(pool);
}

static void change_rounding_then_reset(void *arg)
{
    bool *ret_reset = arg;
    double nearest = third();
    long double long_nearest = long_third();
    round_upward();
    bool changed = third() > nearest || RUNNING_ON_VALGRIND;
    coro_controls_reset();
    *ret_reset = changed && third() == nearest && long_third() == long_nearest;
}

static void rounding_is_put_back_on_request(void)
{
    struct coro_pool *pool = coro_pool_create(STACK_SIZE, 1);
    bool reset = false;
    TEST_CHECK(coro_start(pool, change_rounding_then_reset, &reset) == CORO_FINISHED);
    TEST_CHECK(reset);
    coro_pool_destroy(pool);
}

/* The stack. */

static void coro_bounds_hold_its_frames_and_the_promised_size(void)
{
    for (size_t size = 16 * KIB; size <= 1024 * KIB; size *= 2) {
        struct coro_pool *pool = coro_pool_create(size, 40);
        struct coro *coros[40];
        uintptr_t frames[40], low[40], high[40];
        for (size_t i = 0; i < 40; i++) {
            coros[i] = coro_start(pool, note_frame, &frames[i]);
            coro_stack_bounds(coros[i], &low[i], &high[i]);
            TEST_CHECK(frames[i] > low[i] && frames[i] < high[i]);
            TEST_CHECK(high[i] - low[i] >= size);
            TEST_CHECK(!coro_guard_hit(coros[i], low[i]));
            TEST_CHECK(coro_guard_hit(coros[i], low[i] - 1));
            TEST_CHECK(coro_guard_hit(coros[i], low[i] - 4096));
            TEST_CHECK(!coro_guard_hit(coros[i], low[i] - (1u << 20)));
            TEST_CHECK(!coro_guard_hit(coros[i], high[i]));
            TEST_CHECK(!coro_guard_hit(coros[i], 0));
            for (size_t j = 0; j < i; j++)
                TEST_CHECK(high[j] <= low[i] || high[i] <= low[j]);
        }
        for (size_t i = 0; i < 40; i++)
            TEST_CHECK(!coro_resume(coros[i]));
        coro_pool_destroy(pool);
    }
}

/* Uses at least `size` bytes of stack. */
static __attribute__((noinline)) size_t dig(size_t size)
{
    unsigned char frame[512];
    memset(frame, 1, sizeof frame);
    __asm__ volatile(""
                     :
                     : "r"(frame)
                     : "memory"); /* so that nobody makes a loop of this, or a smaller frame */
    size_t below = size > sizeof frame ? dig(size - sizeof frame) : 0;
    __asm__ volatile("" : : "r"(frame) : "memory");
    return below + frame[511];
}

struct depths {
    size_t deep;
    size_t shallow;
};

static void measure_depths(void *arg)
{
    struct depths *ret_depths = arg;
    volatile uintptr_t keep[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    coro_stack_paint(coro_self());
    dig(20 * KIB);
    ret_depths->deep = coro_stack_high_water(coro_self());
    coro_stack_paint(coro_self());
    ret_depths->shallow = coro_stack_high_water(coro_self());
    coro_park();
    for (uintptr_t i = 0; i < 8; i++)
        TEST_CHECK(keep[i] == i + 1);
    dig(10 * KIB);
    coro_park();
    for (uintptr_t i = 0; i < 8; i++)
        TEST_CHECK(keep[i] == i + 1);
}

static void high_water_is_the_deepest_use_since_the_paint(void)
{
    struct coro_pool *pool = coro_pool_create(STACK_SIZE, 1);
    struct depths depths;
    struct coro *coro = coro_start(pool, measure_depths, &depths);
    TEST_CHECK_(depths.deep >= 20 * KIB, "%zu", depths.deep);
    TEST_CHECK_(SANITIZED || depths.deep < 28 * KIB, "%zu", depths.deep);
    TEST_CHECK_(depths.shallow > 64 && depths.shallow < 10 * KIB, "%zu", depths.shallow);

    coro_stack_paint(coro);
    size_t parked = coro_stack_high_water(coro);
    TEST_CHECK_(parked > 64 && parked < 10 * KIB, "%zu", parked);
    TEST_CHECK(coro_resume(coro));
    size_t dug = coro_stack_high_water(coro);
    TEST_CHECK_(dug >= 10 * KIB && dug < depths.deep, "%zu", dug);
    TEST_CHECK(!coro_resume(coro));

    struct coro_stats stats;
    coro_pool_stats(pool, &stats);
    TEST_CHECK(stats.high_water == depths.deep);
    coro_pool_destroy(pool);
}

static void dig_once(void *arg)
{
    dig(*(const size_t *)arg);
}

static void stats_see_the_depth_of_idle_stacks_and_trim_does_not_forget_it(void)
{
    struct coro_pool *pool = coro_pool_create(STACK_SIZE, 1);
    size_t depth = 12 * KIB;
    TEST_CHECK(coro_start(pool, dig_once, &depth) == CORO_FINISHED);
    struct coro_stats stats;
    coro_pool_stats(pool, &stats);
    TEST_CHECK_(stats.high_water >= 12 * KIB, "%zu", stats.high_water);
    size_t before = stats.high_water;
    depth = 16 * KIB;
    TEST_CHECK(coro_start(pool, dig_once, &depth) == CORO_FINISHED);
    coro_pool_trim(pool, 0);
    coro_pool_stats(pool, &stats);
    TEST_CHECK_(stats.high_water > before, "%zu", stats.high_water);
    TEST_CHECK(stats.idle == 1 && stats.in_use == 0);
    TEST_CHECK(coro_start(pool, dig_once, &depth) == CORO_FINISHED);
    coro_pool_destroy(pool);
}

/* Faults. */

struct crash {
    sigjmp_buf entry;
    uintptr_t address;
    bool guard_hit;
    int signal;
};

static struct crash *crash_current;
static _Alignas(16) unsigned char alternate[256 * 1024];

/* As the runtime does it: on the alternate stack, ask where the fault was, jump to the bottom of the
 * coroutine. */
static void on_crash(int signal, siginfo_t *info, void *context)
{
    (void)context;
    struct crash *crash = crash_current;
    crash->signal = signal;
    crash->address = (uintptr_t)info->si_addr;
    crash->guard_hit = coro_guard_hit(coro_self(), crash->address);
    siglongjmp(crash->entry, 1);
}

static void crashes_catch(void)
{
    stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
    TEST_ASSERT(sigaltstack(&stack, NULL) == 0);
    struct sigaction action = {.sa_sigaction = on_crash, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    TEST_ASSERT(sigaction(SIGSEGV, &action, NULL) == 0);
    TEST_ASSERT(sigaction(SIGBUS, &action, NULL) == 0);
}

static volatile size_t endless = SIZE_MAX;

static void overflow_then_park(void *arg)
{
    struct crash *crash = arg;
    crash_current = crash;
    if (sigsetjmp(crash->entry, 1) == 0) {
        VALGRIND_DISABLE_ERROR_REPORTING;
        dig(endless);
    }
    VALGRIND_ENABLE_ERROR_REPORTING;
    coro_park();
}

static void stack_overflow_hits_the_guard_and_is_survived(void)
{
    crashes_catch();
    struct coro_pool *pool = coro_pool_create(STACK_SIZE, 3);
    unsigned bystander = 9;
    struct coro *neighbour = coro_start(pool, check_values, &bystander);
    for (int i = 0; i < 20; i++) {
        struct crash crash = {.signal = 0};
        struct coro *coro = coro_start(pool, overflow_then_park, &crash);
        TEST_ASSERT(coro != NULL && coro != CORO_FINISHED);
        TEST_CHECK(crash.signal == SIGSEGV);
        TEST_CHECK(crash.guard_hit);
        TEST_CHECK(coro_guard_hit(coro, crash.address));
        TEST_CHECK(!coro_guard_hit(neighbour, crash.address));
        TEST_CHECK(!coro_resume(coro));
    }
    while (coro_resume(neighbour))
        ;
    TEST_CHECK(bystander == 0);
    struct coro_stats stats;
    coro_pool_stats(pool, &stats);
    TEST_CHECK(stats.high_water >= STACK_SIZE / 2);
    coro_pool_destroy(pool);
}

static volatile int *volatile nowhere = (volatile int *)8;

static void trap_between_parks(void *arg)
{
    struct crash *crash = arg;
    coro_park();
    if (sigsetjmp(crash->entry, 1) == 0) {
        VALGRIND_DISABLE_ERROR_REPORTING;
        crash_current = crash;
        *nowhere = 1;
    }
    VALGRIND_ENABLE_ERROR_REPORTING;
    coro_park();
    crash->address++;
}

static void a_wild_write_is_survived_by_a_jump_out_of_the_handler(void)
{
    crashes_catch();
    struct coro_pool *pool = coro_pool_create(STACK_SIZE, 3);
    unsigned bystander = 9;
    struct coro *neighbour = coro_start(pool, check_values, &bystander);
    for (int i = 0; i < 1000; i++) {
        struct crash crash = {.signal = 0};
        struct coro *coro = coro_start(pool, trap_between_parks, &crash);
        TEST_CHECK(crash.signal == 0);
        TEST_CHECK(coro_resume(coro));
        TEST_CHECK(crash.signal == SIGSEGV && !crash.guard_hit && crash.address == 8);
        TEST_CHECK(!coro_resume(coro));
        TEST_CHECK(crash.address == 9);
    }
    while (coro_resume(neighbour))
        ;
    TEST_CHECK(bystander == 0);
    coro_pool_destroy(pool);
}

static __attribute__((noinline)) int leap(jmp_buf entry, int depth)
{
    coro_park();
    if (depth == 0)
        longjmp(entry, 1);
    if (endless == 0)
        return 0;
    return leap(entry, depth - 1) + 1;
}

static void leap_to_the_bottom(void *arg)
{
    volatile int *leaps = arg;
    for (volatile int i = 0; i < 100; i++) {
        jmp_buf entry;
        if (setjmp(entry) == 0)
            leap(entry, 10);
        *leaps += 1;
    }
}

static void longjmp_within_a_coroutine_works_across_parks(void)
{
    struct coro_pool *pool = coro_pool_create(STACK_SIZE, 2);
    int leaps[2] = {0, 0};
    struct coro *a = coro_start(pool, leap_to_the_bottom, &leaps[0]);
    struct coro *b = coro_start(pool, leap_to_the_bottom, &leaps[1]);
    while (coro_resume(a))
        TEST_ASSERT(coro_resume(b));
    TEST_CHECK(!coro_resume(b));
    TEST_CHECK(leaps[0] == 100 && leaps[1] == 100);
    coro_pool_destroy(pool);
}

/* Unwinding. */

static __attribute__((noinline)) int unwind_depth(void)
{
    void *frames[64];
    int depth = backtrace(frames, 64);
    __asm__ volatile("" : : "r"(frames) : "memory");
    return depth;
}

static void note_unwind_depth(void *arg)
{
    int *ret_depths = arg;
    ret_depths[0] = unwind_depth();
    coro_park();
    ret_depths[1] = unwind_depth();
}

static __attribute__((noinline)) bool resume_from_deep(struct coro *coro, int depth)
{
    bool parked = depth > 0 ? resume_from_deep(coro, depth - 1) : coro_resume(coro);
    __asm__ volatile("");
    return parked;
}

/* The unwinder sees the coroutine's own frames and stops at its bottom, whoever resumed it. (libdill's bottom
 * says nothing to an unwinder: there it need only come back.) */
static void backtrace_stops_at_the_bottom_of_the_coroutine(void)
{
    struct coro_pool *pool = coro_pool_create(256 * KIB, 1);
    int depths[2] = {0, 0};
    struct coro *coro = coro_start(pool, note_unwind_depth, depths);
    TEST_CHECK(!resume_from_deep(coro, 20));
    TEST_CHECK_(depths[0] >= 1 && depths[0] <= 64, "%d", depths[0]);
    if (strcmp(coro_kind, "native") == 0) {
        TEST_CHECK_(depths[0] >= 3 && depths[0] <= 6, "%d", depths[0]);
        TEST_CHECK_(depths[1] == depths[0], "%d and %d", depths[0], depths[1]);
    }
    coro_pool_destroy(pool);
}

/* Misuse. */

static struct coro_pool *misused;
static struct coro *misused_coro;

static void start_inside(void *arg)
{
    coro_start(misused, park_once, arg);
}

static void resume_inside(void *arg)
{
    (void)arg;
    coro_resume(misused_coro);
}

static void misuse_start_inside(void)
{
    coro_start(misused, start_inside, NULL);
}

static void misuse_resume_inside(void)
{
    misused_coro = coro_start(misused, park_once, NULL);
    coro_start(misused, resume_inside, NULL);
}

static void misuse_resume_finished(void)
{
    struct coro *coro = coro_start(misused, park_once, NULL);
    if (!coro_resume(coro))
        coro_resume(coro);
}

static void misuse_resume_the_constant(void)
{
    coro_resume(CORO_FINISHED);
}

static void misuse_park_outside(void)
{
    coro_park();
}

static void misuse_destroy_in_use(void)
{
    coro_start(misused, park_once, NULL);
    coro_pool_destroy(misused);
}

static void wrong_use_is_asserted(void)
{
    void (*const misuses[])(void) = {
        misuse_start_inside,        misuse_resume_inside, misuse_resume_finished,
        misuse_resume_the_constant, misuse_park_outside,  misuse_destroy_in_use,
    };
    for (size_t i = 0; i < sizeof misuses / sizeof *misuses; i++) {
        misused = coro_pool_create(STACK_SIZE, 3);
        fflush(NULL);
        pid_t child = fork();
        TEST_ASSERT(child >= 0);
        if (child == 0) {
            if (freopen("/dev/null", "w", stderr) != NULL)
                misuses[i]();
            _exit(0);
        }
        int status;
        TEST_ASSERT(waitpid(child, &status, 0) == child);
        TEST_CHECK_(!WIFEXITED(status) || WEXITSTATUS(status) != 0, "misuse %zu was let through", i);
        coro_pool_destroy(misused);
    }
}

TEST_LIST
= {
    {"coro_runs_from_park_to_park_in_the_callers_order", coro_runs_from_park_to_park_in_the_callers_order},
    {"coro_that_never_parks_is_finished_at_once", coro_that_never_parks_is_finished_at_once},
    {"coro_self_is_the_running_one_and_null_outside", coro_self_is_the_running_one_and_null_outside},
    {"thousands_of_coroutines_take_turns", thousands_of_coroutines_take_turns},
    {"a_hundred_thousand_stacks_at_once", a_hundred_thousand_stacks_at_once},
    {"coro_is_refused_beyond_count_max", coro_is_refused_beyond_count_max},
    {"coro_pool_refuses_absurd_sizes", coro_pool_refuses_absurd_sizes},
    {"a_finished_coroutines_stack_is_the_next_one_taken", a_finished_coroutines_stack_is_the_next_one_taken},
    {"a_recycled_stack_is_free_to_use", a_recycled_stack_is_free_to_use},
    {"a_thread_may_have_pools_of_several_sizes", a_thread_may_have_pools_of_several_sizes},
    {"threads_do_not_meet", threads_do_not_meet},
    {"integers_and_floating_point_survive_switches", integers_and_floating_point_survive_switches},
    {"the_resumers_values_survive_too", the_resumers_values_survive_too},
    {"rounding_left_changed_by_a_coroutine_ends_with_it", rounding_left_changed_by_a_coroutine_ends_with_it},
    {"rounding_is_put_back_on_request", rounding_is_put_back_on_request},
    {"coro_bounds_hold_its_frames_and_the_promised_size", coro_bounds_hold_its_frames_and_the_promised_size},
    {"high_water_is_the_deepest_use_since_the_paint", high_water_is_the_deepest_use_since_the_paint},
    {"stats_see_the_depth_of_idle_stacks_and_trim_does_not_forget_it",
     stats_see_the_depth_of_idle_stacks_and_trim_does_not_forget_it},
    {"CRASH-02 stack_overflow_hits_the_guard_and_is_survived", stack_overflow_hits_the_guard_and_is_survived},
    {"CRASH-01 a_wild_write_is_survived_by_a_jump_out_of_the_handler",
     a_wild_write_is_survived_by_a_jump_out_of_the_handler},
    {"longjmp_within_a_coroutine_works_across_parks", longjmp_within_a_coroutine_works_across_parks},
    {"backtrace_stops_at_the_bottom_of_the_coroutine", backtrace_stops_at_the_bottom_of_the_coroutine},
    {"wrong_use_is_asserted", wrong_use_is_asserted},
    {NULL, NULL},
};
