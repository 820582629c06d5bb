/* Schedulers: the turn (inbox, clock, actors, outbox, descriptors) and the way from one to another. */
#include "runtime/scheduler.h"
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "runtime/telemetry.h"

/* ---- making one ---- */

static void *region(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static size_t records_for(size_t actors)
{
    size_t n = actors * 4; /* link, name, timer, monitor each: the rest of the room is shared */
    return n > PID_SLOTS_MAX ? PID_SLOTS_MAX : n;
}

/* mmap gives zeroed pages that cost nothing until they are touched: boot stays small. */
struct scheduler *scheduler_create(struct runtime *rt, uint32_t index)
{
    struct scheduler *s = region(sizeof *s);
    if (!s)
        return NULL;
    s->rt = rt;
    s->env = rt->env;
    s->index = index;
    s->canary = WORKER_CANARY;
    s->simulated = s->env->simulated;
    s->turn_messages = s->simulated ? 1 : TURN_MESSAGES;
    s->slots_max = rt->options.actors_max + 1; /* slot 0 is nobody */
    s->records_max = (uint32_t)records_for(s->slots_max);
    s->slots_used = s->records_used = 1;
    s->actors = region(s->slots_max * sizeof(struct actor));
    s->records = region(s->records_max * sizeof(struct record));
    s->now = s->env->now(s->env);
    s->born = s->now;
    s->spin_ns = SPIN_NS_MIN;
    atomic_init(&s->share_at, s->now);
    atomic_init(&s->share_ppm, SHARE_UNKNOWN);
    atomic_init(&s->alarm_at, UINT64_MAX);
    wheel_init(&s->wheel, s->now);
    for (uint32_t i = 0; i < MESSAGE_BLOCKS; i++)
        pool_init(&s->messages[i], rt->message_depots[i]);
    pool_init(&s->chunks, rt->chunk_depot);
    s->telemetry = telemetry_shard(rt->telemetry, index);
    if (s->env->poller_open)
        s->poller = s->env->poller_open(s->env);
    if (!s->actors || !s->records || worker_create_stacks(s) != 0 || (s->env->poller_open && !s->poller)) {
        scheduler_destroy(s);
        return NULL;
    }
    return s;
}

void scheduler_destroy(struct scheduler *s)
{
    if (!s)
        return;
    scheduler_current = s;
    worker_destroy_stacks(s);
    scheduler_current = NULL;
    for (uint32_t i = 0; i < MESSAGE_BLOCKS; i++)
        pool_fini(&s->messages[i]);
    pool_fini(&s->chunks);
    if (s->poller)
        s->env->poller_close(s->poller);
    if (s->actors)
        munmap(s->actors, s->slots_max * sizeof(struct actor));
    if (s->records)
        munmap(s->records, s->records_max * sizeof(struct record));
    munmap(s, sizeof *s);
}

/* ---- from one scheduler to another ---- */

/* Any thread. Order is kept per producer because its chains go in one by one. Pairs with the exchange in inbox_take. */
void inbox_push(struct scheduler *to, struct message *newest, struct message *oldest)
{
    struct message *top = atomic_load_explicit(&to->inbox.top, memory_order_relaxed);
    do
        oldest->next = top;
    while (!atomic_compare_exchange_weak_explicit(&to->inbox.top, &top, newest, memory_order_release,
                                                  memory_order_relaxed));
    atomic_thread_fence(memory_order_seq_cst); /* pairs with the fence between `sleeping` and the last look */
    if (atomic_load_explicit(&to->sleeping, memory_order_relaxed)) {
        atomic_store_explicit(&to->sleeping, false, memory_order_relaxed);
        to->env->poller_wake(to->poller);
    }
}

bool inbox_empty(struct scheduler *s)
{
    return !s->inbox.arrived && !atomic_load_explicit(&s->inbox.top, memory_order_relaxed);
}

static struct message *inbox_first(struct inbox *in)
{
    if (!in->arrived && atomic_load_explicit(&in->top, memory_order_relaxed)) {
        struct message *m = atomic_exchange_explicit(&in->top, NULL, memory_order_acquire), *next;
        for (; m; m = next) {
            next = m->next;
            m->next = in->arrived;
            in->arrived = m;
        }
    }
    return in->arrived;
}

static struct message *inbox_take(struct inbox *in)
{
    struct message *m = inbox_first(in);
    if (m)
        in->arrived = m->next;
    return m;
}

size_t inbox_drain(struct scheduler *s, size_t count_max)
{
    size_t n = 0;
    struct message *m;
    while (n < count_max && (m = inbox_take(&s->inbox))) {
        n++;
        scheduler_arrive(s, m);
    }
    return n;
}

/* Messages become visible to other schedulers in the order in which they were posted here, whoever they are for: what has
 * gone to one destination is handed over before anything goes to another. So an effect never arrives before its cause, by
 * whatever way it went (monitor a child, ask its supervisor to stop it: the monitor is there first). */
void scheduler_post(struct scheduler *s, actor_pid to, struct message *m)
{
    uint32_t d = pid_scheduler(to);
    if (d >= s->rt->schedulers_count) { /* not a pid of ours: answered here as for the dead */
        m->to = to;
        scheduler_arrive(s, m);
        return;
    }
    if (s->outbox_to != d || (s->outbox_count >= OUTBOX_BATCH && !s->simulated))
        scheduler_flush(s);
    s->outbox_to = d;
    m->to = to;
    m->next = s->outbox_newest;
    s->outbox_newest = m;
    if (!m->next)
        s->outbox_oldest = m;
    s->outbox_count++;
    if (!s->simulated && atomic_load_explicit(&s->rt->schedulers[d]->sleeping, memory_order_relaxed))
        s->wake_owed = true;
}

void scheduler_flush(struct scheduler *s)
{
    struct message *newest = s->outbox_newest;
    if (!newest)
        return;
    atomic_store_explicit(&s->remote,
                          atomic_load_explicit(&s->remote, memory_order_relaxed) + s->outbox_count,
                          memory_order_relaxed);
    s->outbox_newest = NULL;
    s->outbox_count = 0;
    s->wake_owed = false;
    inbox_push(s->rt->schedulers[s->outbox_to], newest, s->outbox_oldest);
}

/* A remote mailbox that looks full is refused here, so that the sender learns of it; what slips through in the meantime
 * meets the same bound on arrival (see docs/runtime.md, delivery). */
static bool remote_full(const struct scheduler *s, actor_pid to)
{
    if (!to || pid_scheduler(to) >= s->rt->schedulers_count) /* 0 is what a free slot holds */
        return false;
    const struct scheduler *there = s->rt->schedulers[pid_scheduler(to)];
    if (pid_slot(to) >= there->slots_max)
        return false;
    const struct actor *a = &there->actors[pid_slot(to)];
    if (atomic_load_explicit(&a->pid, memory_order_acquire) != to)
        return false;
    uint32_t capacity = __atomic_load_n(&a->mail_capacity, __ATOMIC_RELAXED);
    const struct actor_class *class = __atomic_load_n(&a->class, __ATOMIC_RELAXED);
    return class->mailbox_policy != MAILBOX_DROP_OLDEST &&
           atomic_load_explicit(&a->mail_count, memory_order_relaxed) >= capacity;
}

enum error scheduler_transmit(struct scheduler *s, actor_pid to, struct message *m)
{
    if (__builtin_expect(scheduler_local(s, to), 1)) {
        struct actor *a = actor_of(s, to);
        enum error e = OK;
        if (!a)
            e = ERR_NOPROC;
        else if (__builtin_expect(m->type > MESSAGE_USER_MAX, 0))
            mailbox_append(s, a, m);
        else
            e = mailbox_deliver(s, a, m);
        if (__builtin_expect(e, 0)) {
            mailbox_dropped(s, a, error_name(e));
            message_give(s, m);
        }
        return e;
    }
    if (m->type <= MESSAGE_USER_MAX && remote_full(s, to)) {
        mailbox_dropped(s, NULL, error_name(ERR_FULL));
        message_give(s, m);
        return ERR_FULL;
    }
    scheduler_post(s, to, m);
    return OK;
}

void scheduler_arrive(struct scheduler *s, struct message *m)
{
    m->next = NULL;
    if (m->kind == MESSAGE_SIGNAL) {
        signal_handle(s, m);
        return;
    }
    if (m->kind == MESSAGE_REPLY) {
        reply_deliver(s, m);
        return;
    }
    sim_trace(s, TRACE_DELIVER, m->to, m->type);
    struct actor *a = actor_of(s, m->to);
    enum error e = OK;
    if (!a)
        e = ERR_NOPROC;
    else if (m->type > MESSAGE_USER_MAX)
        mailbox_append(s, a, m);
    else
        e = mailbox_deliver(s, a, m);
    if (__builtin_expect(e, 0)) {
        mailbox_dropped(s, a, error_name(e));
        if (m->kind == MESSAGE_CALL)
            signal_reply_error(s, m->from, m->ref, e);
        message_give(s, m);
    }
}

/* ---- how much of its time is work ---- */

static void idle_begins(struct scheduler *s)
{
    uint64_t now = s->env->now(s->env), slept = scheduler_idle_ns(s, now);
    atomic_store_explicit(&s->idle, (slept - now) << 1 | 1, memory_order_relaxed);
}

static void idle_ends(struct scheduler *s)
{
    atomic_store_explicit(&s->idle, scheduler_idle_ns(s, s->now) << 1, memory_order_relaxed);
}

static uint32_t share_of(uint64_t idle_ns, uint64_t window_ns)
{
    if (idle_ns >= window_ns) /* two loads that another thread came between */
        return 0;
    return (uint32_t)((double)(window_ns - idle_ns) * 1e6 / (double)window_ns);
}

static uint32_t share_since(const struct scheduler *s, uint64_t now)
{
    return share_of(scheduler_idle_ns(s, now) - atomic_load_explicit(&s->share_idle, memory_order_relaxed),
                    now - atomic_load_explicit(&s->share_at, memory_order_relaxed));
}

static void share_roll(struct scheduler *s)
{
    atomic_store_explicit(&s->share_ppm, share_since(s, s->now), memory_order_relaxed);
    atomic_store_explicit(&s->share_idle, scheduler_idle_ns(s, s->now), memory_order_relaxed);
    atomic_store_explicit(&s->share_at, s->now, memory_order_relaxed);
}

uint32_t scheduler_busy_ppm(const struct scheduler *s, uint64_t now)
{
    uint32_t share = atomic_load_explicit(&s->share_ppm, memory_order_relaxed);
    uint64_t at = atomic_load_explicit(&s->share_at, memory_order_relaxed);
    /* It has slept, or run one handler, since then. */
    bool old = now > at && now - at >= 2 * SHARE_NS;
    return old || share == SHARE_UNKNOWN ? share_since(s, now) : share;
}

/* ---- the turn ---- */

static void poll_descriptors(struct scheduler *s, uint64_t deadline)
{
    struct env_event events[64];
    size_t n = s->env->poller_wait(s->poller, events, 64, deadline);
    COUNT(s, polls);
    s->now = s->env->now(s->env);
    s->last_poll = s->now;
    if (deadline)
        idle_ends(s);
    for (size_t i = 0; i < n; i++)
        resource_ready(s, events[i].token, events[i].events);
}

static void turn(struct scheduler *s)
{
    s->now = s->env->now(s->env);
    ASSERT(s->canary == WORKER_CANARY);
    if (!inbox_empty(s) && inbox_drain(s, 4096))
        s->last_remote = s->now;
    if (wheel_due(&s->wheel, s->now))
        timer_fire_due(s);
    if (__builtin_expect(atomic_load_explicit(&s->rt->stopping, memory_order_relaxed), 0))
        runtime_stop_asked(s);
    if (s->now >= s->measure_at) {
        s->measure_stack = true;
        s->measure_at = s->now + MEASURE_STACK_NS;
        if (s->now - s->share_at >= SHARE_NS)
            share_roll(s);
    }
    s->budget = TURN_DISPATCHES;
    atomic_store_explicit(&s->hurry, false, memory_order_relaxed);
    /* Also among those who have stacks of their own, and yield or are resumed: many short ones are a long turn as well. */
    while (s->budget && !atomic_load_explicit(&s->hurry, memory_order_relaxed) && worker_dispatch(s))
        ;
    scheduler_flush(s);
    COUNT(s, turns);
}

/* While it doesn't sleep, its descriptors get their turn all the same. */
static void poll_now_and_then(struct scheduler *s)
{
    if (s->watches && s->now - s->last_poll >= POLL_INTERVAL_NS)
        poll_descriptors(s, 0);
}

static bool idle(struct scheduler *s)
{
    return !s->ready.count && !s->hogs.count && inbox_empty(s);
}

static void spin_pause(void)
{
    __asm__ volatile("" ::: "memory");
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/* Looks at the inbox for a microsecond or so. Where schedulers share CPUs the one that is waited for may be waiting for this
 * very CPU: so it gets it. */
static bool glance(struct scheduler *s)
{
    if (s->rt->crowded) {
        sched_yield();
        return !inbox_empty(s);
    }
    for (int i = 0; i < SPIN_LOOKS; i++) {
        if (!inbox_empty(s))
            return true;
        spin_pause();
    }
    return false;
}

/* Of what has arrived, all before the first signal: a signal may run or end somebody. */
static bool take_mail(struct scheduler *s)
{
    struct message *m = inbox_first(&s->inbox);
    bool any = false;
    for (; m && m->kind != MESSAGE_SIGNAL; m = inbox_first(&s->inbox)) {
        scheduler_arrive(s, inbox_take(&s->inbox));
        any = true;
    }
    return any;
}

bool actor_listen(uint64_t deadline)
{
    struct scheduler *s = scheduler_enter();
    scheduler_flush(s);
    if (s->simulated)
        return false;
    do {
        if (take_mail(s)) {
            s->last_remote = s->now = s->env->now(s->env);
            return true;
        }
        if (s->now >= deadline)
            return false;
        (void)glance(s);
        s->now = s->env->now(s->env);
    } while (s->now < deadline && (inbox_empty(s) || inbox_first(&s->inbox)->kind != MESSAGE_SIGNAL));
    return false;
}

/* While others keep writing to us, looking at the inbox for a moment is cheaper than being woken by the kernel. How long a
 * moment is follows from what happened: a sleep that ended at once says it was too short, a long one that it was wasted.
 * Its descriptors are looked at meanwhile: who was just answered asks again before the moment is over. */
static bool spin(struct scheduler *s)
{
    if (s->rt->schedulers_count == 1 || s->now - s->last_remote > 4 * SPIN_NS_MAX)
        return false;
    if (s->rt->crowded && s->index >= s->rt->options.schedulers)
        return false;
    uint64_t end = s->now + s->spin_ns;
    do {
        if (glance(s))
            return true;
        s->now = s->env->now(s->env);
        if (wheel_due(&s->wheel, s->now))
            return true;
        if (s->watches && s->now - s->last_poll >= SPIN_POLL_NS)
            poll_descriptors(s, 0);
        if (!idle(s))
            return true;
    } while (s->now < end);
    return false;
}

static void spin_learn(struct scheduler *s, uint64_t slept_ns)
{
    if (slept_ns < SPIN_NS_MAX && !inbox_empty(s))
        s->spin_ns = s->spin_ns * 2 < SPIN_NS_MAX ? s->spin_ns * 2 : SPIN_NS_MAX;
    else if (slept_ns > 4 * SPIN_NS_MAX)
        s->spin_ns = s->spin_ns / 2 > SPIN_NS_MIN ? s->spin_ns / 2 : SPIN_NS_MIN;
}

/* Somebody asked for an end, and the wake that came with it may have been taken in by a look at the descriptors. */
static bool stop_unheard(const struct scheduler *s)
{
    return atomic_load(&s->rt->stopping) && !s->stop_told &&
           pid_scheduler(atomic_load(&s->rt->root)) == s->index;
}

static void sleep_until_needed(struct scheduler *s)
{
    if (spin(s)) {
        poll_now_and_then(s);
        return;
    }
    bool more = worker_trim(s, WORKERS_KEPT, WORKERS_TRIMMED);
    atomic_store_explicit(&s->sleeping, true, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    if (inbox_empty(s) && !atomic_load(&s->rt->ended) && !stop_unheard(s)) {
        COUNT(s, wakes);
        uint64_t began = s->now;
        uint64_t until = wheel_bound(&s->wheel);
        idle_begins(s);
        poll_descriptors(s, more && until > s->now + NS_PER_MS ? s->now + NS_PER_MS : until);
        spin_learn(s, s->now - began);
    }
    atomic_store_explicit(&s->sleeping, false, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst); /* the monitor says that it rests before it looks who sleeps */
    preempt_busy(s->rt);
}

static void drop_all(struct scheduler *s)
{
    struct message *m;
    while ((m = inbox_take(&s->inbox)))
        message_give(s, m);
    for (m = s->outbox_newest; m;) {
        struct message *next = m->next;
        message_give(s, m);
        m = next;
    }
    s->outbox_newest = NULL;
    s->outbox_count = 0;
}

/* Whoever still lives is killed here, on its own thread, so that everything it owns is released. Each pass buries at least
 * those that were alive when it began; what release functions can't do is spawn. */
void scheduler_wind_down(struct scheduler *s)
{
    struct reason killed = reason_of(REASON_KILLED);
    for (uint32_t i = 1; i < s->slots_used; i++) {
        actor_pid pid = actor_pid_of(&s->actors[i]);
        if (!pid)
            continue;
        s->actors[i].flags &= (uint16_t)~ACTOR_ROOT;
        signal_exit_send(s, pid, 0, &killed, false, 0);
    }
    do
        s->budget = TURN_DISPATCHES;
    while (worker_dispatch(s));
    drop_all(s);
}

void scheduler_loop(struct scheduler *s)
{
    scheduler_current = s;
    fault_thread_begin(s);
    telemetry_shard_enter(s->telemetry);
    while (!atomic_load_explicit(&s->rt->ended, memory_order_relaxed)) {
        turn(s);
        if (idle(s))
            sleep_until_needed(s);
        else
            poll_now_and_then(s);
    }
    scheduler_wind_down(s);
    worker_trim(s, 0, UINT32_MAX); /* here: a coroutine may keep the address of this thread's variables */
    env_alarm_close(&s->slice_alarm);
    telemetry_shard_enter(NULL);
    fault_thread_end(s);
    scheduler_current = NULL;
}
