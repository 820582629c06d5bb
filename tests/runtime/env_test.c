#define _GNU_SOURCE
#include "acutest.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "runtime/env.h"

static void test_clock(void)
{
    struct env *env = env_real();
    uint64_t last = env->now(env);
    for (int i = 0; i < 100000; i++) {
        uint64_t now = env->now(env);
        TEST_CHECK(now >= last);
        last = now;
    }
    TEST_CHECK(env->wall(env) > 1600000000ull * NS_PER_S);
    uint64_t until = env->now(env) + 2 * NS_PER_MS;
    env_thread_sleep(until);
    TEST_CHECK(env->now(env) >= until);
    env_thread_sleep(0); /* long past */
    TEST_CHECK(env->pick(env, 7) == 0 && !env->simulated);
}

static void test_random(void)
{
    struct env *env = env_real();
    unsigned char counts[256] = {0}, bytes[4096];
    uint64_t seen[1000];
    for (size_t i = 0; i < 1000; i++) {
        env->random(env, &seen[i], sizeof seen[i]);
        for (size_t k = 0; k < i; k++)
            TEST_CHECK(seen[k] != seen[i]);
    }
    const size_t sizes[] = {0,   1,   63,  64,  65,
                            511, 512, 513, 4096}; /* on both sides of the block that is shared */
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        memset(bytes, 0, sizeof bytes);
        env->random(env, bytes, sizes[i]);
        for (size_t k = sizes[i]; k < sizeof bytes; k++)
            TEST_CHECK(bytes[k] == 0);
    }
    for (size_t i = 0; i < sizeof bytes; i++)
        counts[bytes[i]] = 1;
    unsigned values = 0;
    for (int i = 0; i < 256; i++)
        values += counts[i];
    TEST_CHECK(values > 200);
}

static void *random_thread(void *arg)
{
    struct env *env = env_real();
    for (int i = 0; i < 100; i++)
        env->random(env, (uint64_t *)arg + i, sizeof(uint64_t));
    return NULL;
}

static void test_random_of_threads(void)
{
    static uint64_t numbers[2][100];
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        TEST_ASSERT(pthread_create(&threads[i], NULL, random_thread, numbers[i]) == 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 100; i++)
        for (int k = 0; k < 100; k++)
            TEST_CHECK(numbers[0][i] != numbers[1][k]);
}

/* ---- the poller ---- */

static void test_poller(void)
{
    struct env *env = env_real();
    struct poller *p = env->poller_open(env);
    struct env_event events[4];
    int fds[2];
    char c;
    TEST_ASSERT(p != NULL && pipe2(fds, O_CLOEXEC | O_NONBLOCK) == 0);
    TEST_CHECK(env->poller_wait(p, events, 4, 0) == 0); /* doesn't block */
    TEST_CHECK(env->poller_wait(p, events, 4, 1) == 0); /* a deadline long past */
    TEST_CHECK(env->poller_arm(p, fds[0], WATCH_READ, false, 17) == 0);
    TEST_CHECK(env->poller_wait(p, events, 4, 0) == 0);
    TEST_CHECK(write(fds[1], "x", 1) == 1);
    TEST_CHECK(env->poller_wait(p, events, 4, DEADLINE_NONE) == 1 && events[0].token == 17);
    TEST_CHECK(events[0].events == WATCH_READ);
    TEST_CHECK(env->poller_wait(p, events, 4, 0) == 0); /* edge-triggered: once */
    TEST_CHECK(write(fds[1], "x", 1) == 1);
    TEST_CHECK(env->poller_wait(p, events, 4, 0) == 1);
    TEST_CHECK(env->poller_arm(p, fds[0], WATCH_READ, true, 18) == -1 && errno == EEXIST); /* one at a time */
    TEST_CHECK(env->poller_arm(p, fds[0], 0, false, 0) == 0);
    TEST_CHECK(env->poller_arm(p, fds[0], WATCH_READ, true, 18) == 0); /* anew: ready still */
    TEST_CHECK(env->poller_wait(p, events, 4, 0) == 1 && events[0].token == 18);
    TEST_CHECK(write(fds[1], "x", 1) == 1);
    TEST_CHECK(env->poller_wait(p, events, 4, 0) == 0); /* one shot: not armed any more */
    TEST_CHECK(env->poller_arm(p, fds[0], 0, false, 0) == 0);
    TEST_CHECK(env->poller_arm(p, fds[0], 0, false, 0) == -1 && errno == ENOENT);
    TEST_CHECK(env->poller_arm(p, -1, WATCH_READ, false, 0) == -1 && errno == EBADF);
    TEST_CHECK(env->poller_arm(p, fds[1], WATCH_WRITE, false, 19) == 0);
    TEST_CHECK(env->poller_wait(p, events, 4, 0) == 1 && events[0].events == WATCH_WRITE);
    TEST_CHECK(env->poller_arm(p, fds[0], WATCH_READ, false, 20) == 0);
    while (read(fds[0], &c, 1) == 1)
        ;
    env->poller_wait(p, events, 4, 0);
    close(fds[1]);
    TEST_CHECK(env->poller_wait(p, events, 4, 0) == 1 && events[0].token == 20 &&
               (events[0].events & WATCH_HANGUP));
    close(fds[0]);
    /* A deadline a little ahead isn't passed too early. */
    uint64_t until = env->now(env) + 300 * NS_PER_US;
    TEST_CHECK(env->poller_wait(p, events, 4, until) == 0 && env->now(env) >= until);
    env->poller_close(p);
}

static void test_many_events(void)
{
    struct env *env = env_real();
    struct poller *p = env->poller_open(env);
    struct env_event events[4];
    int fds[10][2];
    unsigned seen = 0;
    for (unsigned i = 0; i < 10; i++) {
        TEST_ASSERT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds[i]) == 0);
        TEST_CHECK(env->poller_arm(p, fds[i][0], WATCH_READ, false, i) == 0);
        TEST_CHECK(write(fds[i][1], "x", 1) == 1);
    }
    env->poller_wake(p);
    for (size_t n; (n = env->poller_wait(p, events, 4, 0));)
        for (size_t i = 0; i < n; i++)
            seen |= 1u << events[i].token;
    TEST_CHECK_(seen == 0x3ff, "%x", seen); /* more than fit at once, and a wake in between */
    for (unsigned i = 0; i < 10; i++) {
        close(fds[i][0]);
        close(fds[i][1]);
    }
    env->poller_close(p);
}

/* ---- a filter of system calls that doesn't know the newest ones ---- */

static bool refuse_fine_waits(void)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_epoll_pwait2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof rules / sizeof *rules, .filter = rules};
    return prctl(PR_SET_NO_NEW_PRIVS, 1UL, 0UL, 0UL, 0UL) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

enum { WAITED, TOO_EARLY, DEAF, NO_FILTER };

/* It waits until its deadline, not at all in vain, and hears of descriptors. */
static int wait_filtered(void)
{
    struct env *env = env_real();
    struct poller *p = env->poller_open(env);
    struct env_event events[4];
    int fds[2];
    if (!p || pipe2(fds, O_CLOEXEC) != 0 || env->poller_arm(p, fds[0], WATCH_READ, false, 17) != 0)
        return DEAF;
    if (!refuse_fine_waits())
        return NO_FILTER;
    uint64_t until = env->now(env) + 2 * NS_PER_MS;
    if (env->poller_wait(p, events, 4, until) != 0 || env->now(env) < until)
        return TOO_EARLY;
    if (write(fds[1], "x", 1) != 1)
        return DEAF;
    return env->poller_wait(p, events, 4, env->now(env) + NS_PER_S) == 1 ? WAITED : DEAF;
}

static void test_filtered(void)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0)
        _exit(wait_filtered());
    TEST_CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    if (WEXITSTATUS(status) == NO_FILTER)
        TEST_MSG("no filter can be had here");
    else
        TEST_CHECK_(WEXITSTATUS(status) == WAITED, "%d", WEXITSTATUS(status));
}

/* A wake that comes before, while or after it goes to sleep ends the wait: ten thousand times, without a sleep between. */
struct wakes {
    struct poller *poller;
    _Atomic unsigned asked, done;
};
#define WAKES 10000u

static void *waker(void *arg)
{
    struct wakes *w = arg;
    struct env *env = env_real();
    for (unsigned i = 1; i <= WAKES; i++) {
        while (w->asked != i)
            sched_yield();
        w->done = i;
        env->poller_wake(w->poller);
    }
    return NULL;
}

static void test_wakes(void)
{
    struct env *env = env_real();
    struct wakes w = {.poller = env->poller_open(env)};
    struct env_event events[4];
    pthread_t thread;
    TEST_ASSERT(w.poller && pthread_create(&thread, NULL, waker, &w) == 0);
    for (unsigned i = 1; i <= WAKES; i++) {
        w.asked = i;
        while (w.done != i)
            TEST_CHECK(env->poller_wait(w.poller, events, 4, DEADLINE_NONE) == 0);
    }
    pthread_join(thread, NULL);
    env->poller_close(w.poller);
}

TEST_LIST
= {
    {"clocks and thread sleep", test_clock},
    {"chance", test_random},
    {"chance of several threads", test_random_of_threads},
    {"the poller: edges, one shots, hang-ups, deadlines", test_poller},
    {"more events than fit", test_many_events},
    {"a filter that refuses to wait finely", test_filtered},
    {"no wake is lost", test_wakes},
    {NULL, NULL},
};
