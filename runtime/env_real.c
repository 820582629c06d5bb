/* The environment of this machine: its clocks, its randomness, epoll with an eventfd for waking. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "runtime/assert.h"
#include "runtime/env.h"

#define TOKEN_WAKE UINT64_MAX

/* What a thread asks of the kernel's scheduler at a time (from Linux 6.12 on; 0.1 ms is the least): who is woken for a moment's work
 * then needn't wait until a stranger on its CPU has had 3 ms (docs/decisions/0031-short-slices.md). */
#define SLICE_NS (UINT64_C(100) * 1000)

struct poller {
    int epoll, wake;
};

static uint64_t clock_read(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static uint64_t real_now(struct env *env)
{
    (void)env;
    return clock_read(CLOCK_MONOTONIC);
}

static uint64_t real_wall(struct env *env)
{
    (void)env;
    return clock_read(CLOCK_REALTIME);
}

static void random_read(void *bytes, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t n = getrandom((char *)bytes + done, size - done, 0);
        ASSERT(n > 0 || errno == EINTR);
        done += n > 0 ? (size_t)n : 0;
    }
}

/* A system call costs 400 ns; small requests share one by a block per thread. What was handed out is wiped. */
static void real_random(struct env *env, void *bytes, size_t size)
{
    static _Thread_local unsigned char block[512];
    static _Thread_local size_t left;
    (void)env;
    if (size > sizeof block / 8) {
        random_read(bytes, size);
        return;
    }
    if (left < size) {
        random_read(block, sizeof block);
        left = sizeof block;
    }
    unsigned char *from = block + sizeof block - left;
    memcpy(bytes, from, size);
    memset(from, 0, size);
    left -= size;
}

static uint32_t real_pick(struct env *env, uint32_t count)
{
    (void)env;
    (void)count;
    return 0;
}

static void real_poller_close(struct poller *p)
{
    if (p->epoll >= 0)
        close(p->epoll);
    if (p->wake >= 0)
        close(p->wake);
    munmap(p, sizeof *p);
}

/* The kernel's struct sched_attr in its first form, of 48 bytes. Its header can't be included beside <sched.h> everywhere. */
struct scheduling {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

/* Threads begun by this one have it, too. What can't be had is done without: an older kernel, or one told not to allow it. */
static void ask_for_short_slices(void)
{
    struct scheduling attr = {.size = 0};
    if (syscall(SYS_sched_getattr, 0, &attr, sizeof attr, 0) != 0 ||
        (attr.policy != SCHED_OTHER && attr.policy != SCHED_BATCH))
        return;
    attr.runtime = SLICE_NS;
    (void)syscall(SYS_sched_setattr, 0, &attr, 0);
}

static struct poller *real_poller_open(struct env *env)
{
    (void)env;
    struct poller *p = mmap(NULL, sizeof *p, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    p->epoll = epoll_create1(EPOLL_CLOEXEC);
    p->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event e = {.events = EPOLLIN | EPOLLET, .data.u64 = TOKEN_WAKE};
    if (p->epoll < 0 || p->wake < 0 || epoll_ctl(p->epoll, EPOLL_CTL_ADD, p->wake, &e) != 0) {
        int saved = errno;
        real_poller_close(p);
        errno = saved;
        return NULL;
    }
    prctl(PR_SET_TIMERSLACK, 1UL, 0, 0, 0); /* the default rounds every sleep up by 50 us */
    ask_for_short_slices();
    return p;
}

static int real_poller_arm(struct poller *p, int fd, uint32_t events, bool once, uint64_t token)
{
    if (!events)
        return epoll_ctl(p->epoll, EPOLL_CTL_DEL, fd, NULL);
    struct epoll_event e = {.events = once ? (uint32_t)EPOLLONESHOT : (uint32_t)EPOLLET, .data.u64 = token};
    /* Who waits to write isn't woken because the other side has said all that it has to say: it would be woken at once, for ever. */
    if (events & WATCH_READ || !once)
        e.events |= EPOLLRDHUP;
    if (events & WATCH_READ)
        e.events |= EPOLLIN;
    if (events & WATCH_WRITE)
        e.events |= EPOLLOUT;
    return epoll_ctl(p->epoll, EPOLL_CTL_ADD, fd, &e);
}

/* ThreadSanitizer keeps a signal back until the thread calls something it knows, and it doesn't know epoll_pwait2: a
 * server that sleeps in that would never hear of its SIGTERM. */
#ifdef __SANITIZE_THREAD__
static int wait_fine(struct poller *p, struct epoll_event *events, int count, const struct timespec *t)
{
    (void)p, (void)events, (void)count, (void)t;
    errno = ENOSYS;
    return -1;
}
#else
static int wait_fine(struct poller *p, struct epoll_event *events, int count, const struct timespec *t)
{
    return epoll_pwait2(p->epoll, events, count, t, NULL);
}
#endif

static int wait_for_events(struct poller *p, struct epoll_event *events, int count, uint64_t deadline)
{
    if (deadline == DEADLINE_NONE)
        return epoll_wait(p->epoll, events, count, -1);
    uint64_t now = deadline ? clock_read(CLOCK_MONOTONIC) : 0;
    uint64_t wait = deadline > now ? deadline - now : 0;
    if (wait == 0)
        return epoll_wait(p->epoll, events, count, 0);
    struct timespec t = {.tv_sec = (time_t)(wait / NS_PER_S), .tv_nsec = (long)(wait % NS_PER_S)};
    int n = wait_fine(p, events, count, &t);
    /* Before Linux 5.11, or under a filter that doesn't know the call (EPERM: systemd's up to 247, containers'), whole milliseconds. */
    if (n < 0 && (errno == ENOSYS || errno == EPERM))
        n = epoll_wait(p->epoll, events, count,
                       (int)(wait / NS_PER_MS < 60000 ? (wait + NS_PER_MS - 1) / NS_PER_MS : 60000));
    return n;
}

static size_t real_poller_wait(struct poller *p, struct env_event *events, size_t count, uint64_t deadline)
{
    struct epoll_event ready[64];
    int n = wait_for_events(p, ready, count < 64 ? (int)count : 64, deadline);
    size_t stored = 0;
    for (int i = 0; i < n; i++) {
        uint32_t e = ready[i].events, told = 0;
        if (ready[i].data.u64 == TOKEN_WAKE)
            continue; /* edge-triggered: nothing has to be read back */
        if (e & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
            told |= WATCH_READ;
        if (e & (EPOLLOUT | EPOLLHUP | EPOLLERR))
            told |= WATCH_WRITE;
        if (e & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
            told |= WATCH_HANGUP;
        events[stored++] = (struct env_event){.token = ready[i].data.u64, .events = told};
    }
    return stored;
}

static void real_poller_wake(struct poller *p)
{
    int saved = errno;
    uint64_t one = 1;
    ssize_t n = write(p->wake, &one, sizeof one);
    (void)n; /* full means it is awake already */
    errno = saved;
}

struct env *env_real(void)
{
    static struct env env = {
        .name = "real",
        .now = real_now,
        .wall = real_wall,
        .elapsed = real_now,
        .random = real_random,
        .pick = real_pick,
        .poller_open = real_poller_open,
        .poller_close = real_poller_close,
        .poller_arm = real_poller_arm,
        .poller_wait = real_poller_wait,
        .poller_wake = real_poller_wake,
    };
    return &env;
}

uint64_t env_thread_computed(void)
{
    return clock_read(CLOCK_THREAD_CPUTIME_ID);
}

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

bool env_alarm_open(struct env_alarm *alarm, int signal)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = signal};
    timer_t timer;
    event.sigev_notify_thread_id = gettid();
    alarm->open = timer_create(CLOCK_MONOTONIC, &event, &timer) == 0;
    alarm->timer = alarm->open ? timer : NULL;
    return alarm->open;
}

void env_alarm_set(struct env_alarm *alarm, uint64_t deadline)
{
    struct itimerspec t = {
        .it_value = {.tv_sec = (time_t)(deadline / NS_PER_S), .tv_nsec = (long)(deadline % NS_PER_S)}};
    if (alarm->open)
        timer_settime(alarm->timer, TIMER_ABSTIME, &t, NULL);
}

void env_alarm_close(struct env_alarm *alarm)
{
    if (alarm->open)
        timer_delete(alarm->timer);
    alarm->open = false;
}

bool env_error_write(const char *bytes, size_t size)
{
    struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};
    ssize_t n;
    if (poll(&out, 1, 0) != 1 || out.revents != POLLOUT) /* nobody at the other end: no SIGPIPE either */
        return false;
    do
        n = write(STDERR_FILENO, bytes, size);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)size;
}

void env_thread_sleep(uint64_t deadline)
{
    struct timespec t = {.tv_sec = (time_t)(deadline / NS_PER_S), .tv_nsec = (long)(deadline % NS_PER_S)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}
