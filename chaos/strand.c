#define _GNU_SOURCE
#include "chaos/strand.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "runtime/assert.h"
#include "runtime/coro.h"

enum {
    STACK =
        128 << 10, /* answers are read on it, and printed; sanitizers take twice as much as without them */
    EVENTS = 256,  /* of one look at the sockets */
    UNPLACED = 0,  /* in the heap of timers, whose places begin at 1 */
};

struct strand {
    void (*run)(void *arg);
    void *arg;
    struct coro *coro;
    uint64_t until;
    uint32_t place;          /* in the heap */
    struct waiting *waiting; /* in whose list it stands */
    struct strand *next;     /* of that list, or of those that may run */
    bool woken;
};

static struct {
    struct coro_pool *stacks;
    int epoll;
    uint32_t alive, timers;
    struct strand *running;
    struct waiting runnable;
    struct strand *heap[STRANDS_MAX + 1]; /* earliest first */
} now;

_Noreturn static void give_up(const char *what)
{
    perror(what);
    exit(2);
}

uint64_t strand_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

uint32_t strands_alive(void)
{
    return now.alive;
}

void strands_open(void)
{
    now.stacks = coro_pool_create(STACK, STRANDS_MAX);
    now.epoll = epoll_create1(EPOLL_CLOEXEC);
    if (!now.stacks || now.epoll < 0)
        give_up("strands");
}

/* ---- lists ---- */

static void append(struct waiting *list, struct strand *strand)
{
    strand->next = NULL;
    if (list->last)
        list->last->next = strand;
    else
        list->first = strand;
    list->last = strand;
}

static struct strand *take(struct waiting *list)
{
    struct strand *strand = list->first;
    if (strand && !(list->first = strand->next))
        list->last = NULL;
    return strand;
}

/* From the middle: linear, for waits that end by time. */
static void unlink_from(struct waiting *list, const struct strand *strand)
{
    struct strand *before = NULL;
    for (struct strand *s = list->first; s; before = s, s = s->next)
        if (s == strand) {
            if (before)
                before->next = s->next;
            else
                list->first = s->next;
            if (list->last == s)
                list->last = before;
            return;
        }
}

/* ---- timers: a binary heap ---- */

static void put(uint32_t place, struct strand *strand)
{
    now.heap[place] = strand;
    strand->place = place;
}

static void sift(uint32_t place, struct strand *strand)
{
    for (; place > 1 && now.heap[place / 2]->until > strand->until; place /= 2)
        put(place, now.heap[place / 2]);
    for (uint32_t child; (child = place * 2) <= now.timers; place = child) {
        if (child < now.timers && now.heap[child + 1]->until < now.heap[child]->until)
            child++;
        if (now.heap[child]->until >= strand->until)
            break;
        put(place, now.heap[child]);
    }
    put(place, strand);
}

static void timer_set(struct strand *strand, uint64_t until)
{
    strand->until = until;
    sift(++now.timers, strand);
}

static void timer_drop(struct strand *strand)
{
    uint32_t place = strand->place;
    if (place == UNPLACED)
        return;
    strand->place = UNPLACED;
    struct strand *last = now.heap[now.timers--];
    if (last != strand)
        sift(place, last);
}

/* ---- waking and parking ---- */

static void wake(struct strand *strand, bool woken)
{
    timer_drop(strand);
    strand->woken = woken;
    strand->waiting = NULL;
    append(&now.runnable, strand);
}

static bool park_until(uint64_t until)
{
    struct strand *self = now.running;
    ASSERT(self);
    if (until != UINT64_MAX)
        timer_set(self, until);
    coro_park();
    return self->woken;
}

void strand_sleep_until(uint64_t at)
{
    (void)park_until(at);
}

bool strand_wait(struct waiting *waiting, uint64_t until)
{
    now.running->waiting = waiting;
    append(waiting, now.running);
    return park_until(until);
}

void strand_wake_one(struct waiting *waiting)
{
    struct strand *strand = take(waiting);
    if (strand)
        wake(strand, true);
}

void strand_wake_all(struct waiting *waiting)
{
    while (waiting->first)
        strand_wake_one(waiting);
}

/* ---- sockets ---- */

void watch_add(struct watch *watch, int fd)
{
    *watch = (struct watch){.fd = fd};
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = watch};
    if (epoll_ctl(now.epoll, EPOLL_CTL_ADD, fd, &event) != 0)
        give_up("epoll_ctl");
}

void watch_drop(struct watch *watch)
{
    (void)epoll_ctl(now.epoll, EPOLL_CTL_DEL, watch->fd, NULL);
}

bool watch_wait(struct watch *watch, uint64_t until)
{
    bool ready = watch->ready;
    if (!ready) {
        watch->strand = now.running;
        ready = park_until(until);
        watch->strand = NULL;
    }
    watch->ready = false;
    return ready;
}

/* A watch that was dropped while its event was on the way is not looked at: events are taken one look at a time, before
 * any strand runs. */
static void look(int timeout_ms)
{
    struct epoll_event events[EVENTS];
    int count = epoll_wait(now.epoll, events, EVENTS, timeout_ms);
    for (int i = 0; i < count; i++) {
        struct watch *watch = events[i].data.ptr;
        watch->ready = true;
        struct strand *strand = watch->strand;
        watch->strand = NULL;
        if (strand)
            wake(strand, true);
    }
}

/* ---- the loop ---- */

static void body(void *arg)
{
    struct strand *strand = arg;
    strand->run(strand->arg);
}

bool strand_start(void (*run)(void *arg), void *arg)
{
    if (now.alive == STRANDS_MAX)
        return false;
    struct strand *strand = calloc(1, sizeof(*strand));
    if (!strand)
        give_up("strand");
    strand->run = run, strand->arg = arg;
    now.alive++;
    append(&now.runnable, strand);
    return true;
}

static void run_on(struct strand *strand)
{
    bool parked;
    now.running = strand;
    if (strand->coro) {
        parked = coro_resume(strand->coro);
    } else {
        strand->coro = coro_start(now.stacks, body, strand);
        if (!strand->coro)
            give_up("a strand's stack");
        parked = strand->coro != CORO_FINISHED;
    }
    now.running = NULL;
    if (!parked) {
        free(strand);
        now.alive--;
    }
}

static void run_runnable(void)
{
    struct waiting turn = now.runnable; /* those that are woken meanwhile get the next one */
    now.runnable = (struct waiting){0};
    for (struct strand *strand; (strand = take(&turn));)
        run_on(strand);
}

static void expire(void)
{
    uint64_t time = strand_now();
    while (now.timers && now.heap[1]->until <= time) {
        struct strand *strand = now.heap[1];
        if (strand->waiting)
            unlink_from(strand->waiting, strand);
        wake(strand, false);
    }
}

static int timeout_ms(void)
{
    if (now.runnable.first)
        return 0;
    if (!now.timers)
        return -1;
    uint64_t time = strand_now(), until = now.heap[1]->until;
    uint64_t ms = until <= time ? 0 : (until - time + 999999) / 1000000;
    return ms > 60000 ? 60000 : (int)ms;
}

void strands_run(void)
{
    while (now.alive) {
        look(timeout_ms());
        expire();
        run_runnable();
    }
}
