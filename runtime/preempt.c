/* Preemption: a thread that looks at the schedulers' turns, and a signal for one that doesn't turn.
 *
 * The monitor compares each scheduler's turn number with the one it saw before. A callback that is still the same after
 * its slice gets SIGURG. Its handler, on the alternate stack, looks whether it interrupted actor code with no guard open,
 * and whether the actor's stack has room; if so it sends a second signal to its own thread. That one waits until the
 * first handler returns and then interrupts the same instruction, with its frame on the actor's own stack, and its handler
 * parks the worker right there. Resuming it returns from the handler, and the kernel restores every register. Where the
 * moment is wrong (in the runtime, in a library, in a guarded section) nothing happens and the monitor tries again at its
 * next look. An actor found below its declared stack, in the reserve, has overflowed it and ends.
 *
 * The monitor sleeps without limit while all schedulers do.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <ucontext.h>
#include "runtime/scheduler.h"

#define PREEMPT_SIGNAL SIGURG /* ignored by default, and used by nobody for out-of-band data any more */
#define PARK_SIGNAL    (SIGRTMIN + 5) /* the second of the two, see above */
#define HOG_TICK_NS \
    (100 * NS_PER_US) /* at least this often it looks while somebody computes without end ... */
#define HOG_LOOK_NS \
    (20 * NS_PER_US) /* ... and at most this often, when a slice or a timer is about to be due */

struct preempt {
    pthread_t thread;
    struct runtime *rt;
    _Atomic bool ending;
    _Atomic bool resting;
    pthread_mutex_t lock;
    pthread_cond_t busy;
};

struct seen {
    uint64_t seq, since;
    uint64_t turns;
};

/* Has the signal interrupted the handler of another one? Whoever was parked in there would keep that signal waiting, and blocked,
 * until his next slice; and for ever if he were ended before it, so that nobody could stop the server with it any more. The
 * mask tells: a handler has its own signal blocked. The kernel's is 64 bits. */
static bool in_a_handler(const struct scheduler *s, const void *context)
{
    const ucontext_t *u = context;
    uint64_t blocked;
    memcpy(&blocked, &u->uc_sigmask, sizeof blocked);
    return blocked != s->blocked;
}

/* First signal, on the alternate stack: is this the moment? */
static void on_preempt(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    struct scheduler *s = scheduler_current;
    if (!s || !s->current || !s->worker || s->guard || s->in_fault || s->matching)
        return;
    if (info->si_code == SI_TIMER && !atomic_load_explicit(&s->running_hog, memory_order_relaxed))
        return; /* the slice it was set for is over */
    if (!fault_in_actor_code(context) || in_a_handler(s, context))
        return;
    int saved = errno;
    if (!fault_stack_spent(s, context)) {
        s->parking = 1;
        pthread_kill(pthread_self(), PARK_SIGNAL);
    }
    errno = saved;
}

/* Second signal, on the actor's own stack: nothing has run in between; but the process's own signal may have come just then, and
 * its handler is about to. */
static void on_park(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)info;
    struct scheduler *s = scheduler_current;
    if (!s || !s->parking) /* somebody else's */
        return;
    s->parking = 0;
    if (in_a_handler(s, context))
        return;
    int saved = errno;
    worker_preempted(s);
    errno = saved;
}

/* Around a hog's slice, by its scheduler: the thread's own timer ends the slice to the microsecond, which a monitor that
 * has to be woken first could not. The monitor stays for what the timer misses: a moment that was wrong, and messages
 * from elsewhere. */
void preempt_slice_begins(struct scheduler *s, const struct actor *a)
{
    if (!s->rt->preempt)
        return;
    if (!s->slice_alarm.open && !env_alarm_open(&s->slice_alarm, PREEMPT_SIGNAL))
        return;
    uint64_t slice = a->class->slice_ns ? a->class->slice_ns : s->rt->options.slice_ns;
    uint64_t least = s->now + (slice < HOG_SLICE_NS ? slice : HOG_SLICE_NS), bound = wheel_bound(&s->wheel);
    uint64_t end = s->ready.count ? least : bound < s->now + slice ? bound : s->now + slice;
    env_alarm_set(&s->slice_alarm, end > least ? end : least);
}

void preempt_slice_ends(struct scheduler *s)
{
    env_alarm_set(&s->slice_alarm, 0);
}

static uint64_t slice_of(const struct scheduler *s, uint64_t now)
{
    uint64_t slice = s->rt->options.slice_ns;
    const struct actor *a = __atomic_load_n(&s->current, __ATOMIC_RELAXED);
    const struct actor_class *class = a ? __atomic_load_n(&a->class, __ATOMIC_RELAXED) : NULL;
    if (class && class->slice_ns)
        slice = class->slice_ns;
    if (!atomic_load_explicit(&s->running_hog, memory_order_relaxed))
        return slice;
    bool others = atomic_load_explicit(&s->waiting_others, memory_order_relaxed) ||
                  atomic_load_explicit(&s->inbox.top, memory_order_relaxed) ||
                  atomic_load_explicit(&s->alarm_at, memory_order_relaxed) <= now;
    return others && slice > HOG_SLICE_NS ? HOG_SLICE_NS : slice;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* When the slice of a hog that runs since `since` wants to be looked at again. */
static uint64_t hog_look_at(const struct scheduler *s, uint64_t since, uint64_t now)
{
    uint64_t end = since + HOG_SLICE_NS, alarm = atomic_load_explicit(&s->alarm_at, memory_order_relaxed);
    uint64_t at = earlier(end > alarm ? end : alarm, now + HOG_TICK_NS);
    return at > now + HOG_LOOK_NS ? at : now + HOG_LOOK_NS;
}

/* Returns whether anybody is awake; *look_at when to look again. */
static bool look(struct preempt *p, struct seen *seen, uint64_t now, uint64_t *look_at)
{
    bool awake = false;
    *look_at = now + p->rt->options.slice_ns;
    for (uint32_t i = 0; i < p->rt->schedulers_count; i++) {
        struct scheduler *s = p->rt->schedulers[i];
        uint64_t seq = atomic_load_explicit(&s->turn_seq, memory_order_relaxed);
        awake |= !atomic_load_explicit(&s->sleeping, memory_order_relaxed);
        uint64_t turns = atomic_load_explicit(&s->turns, memory_order_relaxed);
        if (turns ==
            seen[i].turns) /* many callbacks, none too long, but together they keep inbox and clock waiting */
            atomic_store_explicit(&s->hurry, true, memory_order_relaxed);
        seen[i].turns = turns;
        if (seq != seen[i].seq || !atomic_load_explicit(&s->running, memory_order_relaxed)) {
            seen[i].seq = seq;
            seen[i].since = now;
            if (atomic_load_explicit(&s->running_hog, memory_order_relaxed))
                *look_at = earlier(*look_at, hog_look_at(s, now, now));
            continue;
        }
        if (atomic_load_explicit(&s->running_hog, memory_order_relaxed))
            *look_at = earlier(*look_at, hog_look_at(s, seen[i].since, now));
        if (now - seen[i].since < slice_of(s, now))
            continue;
        if (__atomic_load_n(&s->guard, __ATOMIC_RELAXED)) /* the handler would do nothing: the next look */
            continue;
        pthread_mutex_lock(&p->lock); /* its thread doesn't end meanwhile: see preempt_leave */
        uint64_t thread = __atomic_load_n(&s->thread, __ATOMIC_RELAXED);
        if (thread)
            pthread_kill((pthread_t)thread, PREEMPT_SIGNAL);
        pthread_mutex_unlock(&p->lock);
    }
    return awake;
}

static void rest(struct preempt *p)
{
    pthread_mutex_lock(&p->lock);
    atomic_store(&p->resting, true);
    bool all_asleep = true;
    for (uint32_t i = 0; i < p->rt->schedulers_count; i++)
        all_asleep &= atomic_load(&p->rt->schedulers[i]->sleeping);
    while (all_asleep && atomic_load(&p->resting) && !atomic_load(&p->ending))
        pthread_cond_wait(&p->busy, &p->lock);
    atomic_store(&p->resting, false);
    pthread_mutex_unlock(&p->lock);
}

/* Until then, or until the end is asked for. */
static void sleep_until(struct preempt *p, uint64_t deadline)
{
    struct timespec t = {.tv_sec = (time_t)(deadline / NS_PER_S), .tv_nsec = (long)(deadline % NS_PER_S)};
    pthread_mutex_lock(&p->lock);
    if (!atomic_load(&p->ending))
        pthread_cond_timedwait(&p->busy, &p->lock, &t);
    pthread_mutex_unlock(&p->lock);
}

static void *monitor(void *arg)
{
    struct preempt *p = arg;
    struct env *env = p->rt->env;
    struct seen seen[RUNTIME_SCHEDULERS_MAX] = {0};
    prctl(PR_SET_TIMERSLACK, 1UL, 0, 0, 0);
    while (!atomic_load_explicit(&p->ending, memory_order_relaxed)) {
        uint64_t now = env->now(env);
        uint64_t look_at;
        if (!look(p, seen, now, &look_at))
            rest(p);
        else
            sleep_until(p, look_at);
    }
    return NULL;
}

void preempt_busy(struct runtime *rt)
{
    struct preempt *p = rt->preempt;
    if (p && atomic_load_explicit(&p->resting, memory_order_relaxed)) {
        pthread_mutex_lock(&p->lock);
        atomic_store(&p->resting, false);
        pthread_cond_signal(&p->busy);
        pthread_mutex_unlock(&p->lock);
    }
}

void preempt_leave(struct scheduler *s)
{
    struct preempt *p = s->rt->preempt;
    if (p)
        pthread_mutex_lock(&p->lock);
    __atomic_store_n(&s->thread, 0, __ATOMIC_RELAXED);
    if (p)
        pthread_mutex_unlock(&p->lock);
}

struct preempt *preempt_start(struct runtime *rt)
{
    struct preempt *p = mmap(NULL, sizeof *p, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    struct sigaction action = {.sa_sigaction = on_park, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(PARK_SIGNAL, &action, NULL);
    action.sa_sigaction = on_preempt;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    sigaddset(&action.sa_mask, PARK_SIGNAL); /* it waits until the first handler is done */
    sigaction(PREEMPT_SIGNAL, &action, NULL);
    p->rt = rt;
    pthread_mutex_init(&p->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&p->busy, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (pthread_create(&p->thread, NULL, monitor, p) != 0) {
        munmap(p, sizeof *p);
        return NULL;
    }
    return p;
}

void preempt_end(struct preempt *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    atomic_store(&p->ending, true);
    pthread_cond_signal(&p->busy);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
    munmap(p, sizeof *p);
}
