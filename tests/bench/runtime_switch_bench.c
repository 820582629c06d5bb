/* One stack switch, one way: the thread resumes a coroutine which parks at once, two switches a round. In
 * processor time of this thread, so that a neighbour on the machine does not count.
 *
 * Which switch is measured is decided when it is built. The native one's program goes on with the one built
 * with CORO=libdill, where there is one. */
#include "runtime/coro.h"
#include "tests/bench/bench.h"
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 1000000

static uint64_t cpu_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_nsec;
}

static bool enough;

static void park_on(void *arg)
{
    (void)arg;
    while (!enough)
        coro_park();
}

static void switch_often(void *arg, double *ret)
{
    struct coro *coro = arg;
    uint64_t start = cpu_ns();
    for (int i = 0; i < ROUNDS; i++)
        coro_resume(coro);
    *ret = (double)(cpu_ns() - start) / (2.0 * ROUNDS);
}

static void go_on_with_libdill(void)
{
    char path[4200];
    snprintf(path, sizeof path, "%s-libdill/tests/bench/runtime_switch_bench", bench_folder());
    if (access(path, X_OK) == 0)
        execl(path, path, (char *)NULL);
    fprintf(stderr, "runtime.switch_libdill: make CORO=libdill benches, and it is measured as well\n");
}

int main(void)
{
    bool native = strcmp(coro_kind, "native") == 0;
    bench_begin("runtime", 3);
    struct coro_pool *pool = coro_pool_create(CORO_STACK_SIZE_DEFAULT, 1);
    struct coro *coro = pool == NULL ? NULL : coro_start(pool, park_on, NULL);
    if (coro == NULL)
        bench_fail("no coroutine could be started");
    bench_repeat(&(struct bench_row){native ? "switch" : "switch_libdill", "ns", BENCH_LESS}, 1, switch_often,
                 coro);
    enough = true;
    coro_resume(coro);
    coro_pool_destroy(pool);
    if (native)
        go_on_with_libdill();
    return 0;
}
