/* One stack switch, one way: the thread resumes a coroutine which parks at once, two switches a round. In
 * processor time of this thread, so that a neighbour on the machine does not count. */
#include "runtime/coro.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS      2000000
#define REPETITIONS 5

static uint64_t cpu_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static bool enough;

static void park_on(void *arg)
{
    (void)arg;
    while (!enough)
        coro_park();
}

static double switch_ns(struct coro *coro)
{
    uint64_t start = cpu_ns();
    for (int i = 0; i < ROUNDS; i++)
        coro_resume(coro);
    return (double)(cpu_ns() - start) / (2.0 * ROUNDS);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(void)
{
    const char *name = strcmp(coro_kind, "native") == 0 ? "runtime.switch" : "runtime.switch_libdill";
    struct coro_pool *pool = coro_pool_create(CORO_STACK_SIZE_DEFAULT, 1);
    struct coro *coro = pool == NULL ? NULL : coro_start(pool, park_on, NULL);
    if (coro == NULL) {
        perror("switch_bench");
        return 1;
    }
    double ns[REPETITIONS];
    switch_ns(coro);
    for (int i = 0; i < REPETITIONS; i++)
        ns[i] = switch_ns(coro);
    qsort(ns, REPETITIONS, sizeof *ns, by_value);
    printf("%s %.2f ns\n%s.best %.2f ns\n", name, ns[REPETITIONS / 2], name, ns[0]);

    enough = true;
    coro_resume(coro);
    coro_pool_destroy(pool);
    return 0;
}
