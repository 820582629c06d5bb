/* Workers: coroutines that serve runnable actors, and the run queues they serve them from. */
#include <stddef.h>
#include "runtime/scheduler.h"
#include "runtime/telemetry.h"

_Thread_local struct scheduler *scheduler_current __attribute__((tls_model("initial-exec")));

static const size_t stack_sizes[STACK_CLASSES] = {64 * 1024, 256 * 1024, 1024 * 1024};

const char *wait_name(enum wait_kind w)
{
    static const char *const names[] = {
#define X(name, text) [name] = text,
        WAITS(X)
#undef X
    };
    return names[w];
}

/* ---- run queues ---- */

/* In simulation the seed says who is next; the walk is as long as the queue, which is short there. */
static struct actor *queue_pick(struct scheduler *s, struct run_queue *q)
{
    uint32_t n = s->env->pick(s->env, q->count);
    struct actor *previous = NULL, *a = q->head;
    for (; n; n--)
        previous = a, a = a->run_next;
    if (previous)
        previous->run_next = a->run_next;
    else
        q->head = a->run_next;
    if (q->tail == a)
        q->tail = previous;
    q->count--;
    return a;
}

void run_ready_first(struct scheduler *s, struct actor *a)
{
    if (a->flags & ACTOR_QUEUED)
        return;
    a->flags |= ACTOR_QUEUED;
    if (a->status != ACTOR_STARTING)
        a->status = ACTOR_READY;
    a->run_next = s->ready.head;
    s->ready.head = a;
    if (!s->ready.tail)
        s->ready.tail = a;
    run_queue_count(&s->ready, 1);
}

void worker_wake(struct scheduler *s, struct actor *a)
{
    worker_of(s, a)->fired = true;
    if (a->status == ACTOR_WAITING)
        run_ready(s, a);
}

/* ---- endings ---- */

void worker_land(struct scheduler *s, enum landing how)
{
    struct worker *w = s->worker;
    ASSERT(w && w->canary == WORKER_CANARY && w->canary_end == WORKER_CANARY);
    ASSERT(s->guard == 0); /* whoever ends inside a guarded section leaves a lock behind */
    s->matching = 0;
    longjmp(w->mark, (int)how);
}

void worker_trap(struct scheduler *s)
{
    struct message *doom = s->current->doom;
    struct signal_exit *x = doom ? (struct signal_exit *)(void *)doom->payload : NULL;
    if (!x || !x->trap || x->trapping)
        return;
    x->trapping = true; /* one that computes for longer than a slice must not begin again with the next one */
    x->trap();
    x->trapping = false;
    x->trap = NULL;
}

/* In the middle of its trap an actor has an ending to come to. */
static bool trapping(const struct actor *a)
{
    return a->doom && ((const struct signal_exit *)(const void *)a->doom->payload)->trapping;
}

void worker_check_doom(struct scheduler *s)
{
    if (__builtin_expect(s->current->flags & ACTOR_DOOMED, 0) && s->worker && !trapping(s->current)) {
        worker_trap(s);
        worker_land(s, LAND_DOOM);
    }
}

static void leave(struct scheduler *s, struct worker *w)
{
    s->current = NULL;
    s->worker = NULL;
    w->actor = NULL;
    w->phase = PHASE_NONE;
}

static void end(struct scheduler *s, struct worker *w, struct actor *a, struct reason why)
{
    a->worker = NULL;
    leave(s, w);
    actor_bury(s, a, why);
}

/* The ending that lets the actor speak: terminate runs, and may itself end badly (then that is the reason). */
static void end_with_terminate(struct scheduler *s, struct worker *w, struct actor *a, struct reason why)
{
    w->ending = why;
    if ((a->flags & ACTOR_BORN) && a->class->terminate) {
        w->phase = PHASE_TERMINATE;
        w->computed_ns = w->resumed_at = 0;
        a->class->terminate(a->state, &w->ending);
    }
    why = w->ending;
    w->ending = reason_of(REASON_NORMAL);
    end(s, w, a, why);
}

/* The starter hears of it from actor_bury: by then the newcomer's name and all else that it took is free again. */
static void end_in_init(struct scheduler *s, struct worker *w, struct actor *a, enum error e, uint64_t info,
                        struct reason why)
{
    if (a->birth) {
        struct spawn_birth *b = (struct spawn_birth *)(void *)a->birth->payload;
        b->error = (uint8_t)e;
        b->info = info;
    }
    end(s, w, a, why);
}

static void landed(struct scheduler *s, struct worker *w, enum landing how)
{
    struct actor *a = w->actor;
    struct reason why = w->ending;
    w->ending = reason_of(REASON_NORMAL);
    coro_controls_reset();
    s->current = a;
    s->worker = w;
    a->status = ACTOR_RUNNING;
    a->worker = NULL;
    if (wheel_pending(&w->alarm.wheel))
        wheel_cancel(&s->wheel, &w->alarm.wheel);
    if (w->reply) {
        message_give(s, w->reply);
        w->reply = NULL;
    }
    if (w->wait == WAIT_SEND)
        mailbox_give_up(s, w->wait_on, w->wait_ref);
    w->wait = WAIT_NONE;
    reason_drop(&w->start.why); /* of a start whose answer it did not live to see */
    w->start = (struct start_result){0};
    if (how == LAND_DOOM) {
        reason_drop(&why); /* terminate was interrupted: the signal that doomed it is the reason */
        why = reason_copy((struct reason *)(void *)a->doom->payload);
    }
    if (w->phase == PHASE_INIT)
        end_in_init(s, w, a, ERR_INIT, 0, why);
    else if (how == LAND_EXIT && w->phase == PHASE_HANDLE)
        end_with_terminate(s, w, a, why);
    else
        end(s, w, a, why);
}

/* ---- turns ---- */

static void callback_begins(struct scheduler *s, struct worker *w, enum phase phase)
{
    w->phase = (uint8_t)phase;
    w->computed_ns = 0;
    w->resumed_at = 0;
    atomic_store_explicit(&s->turn_seq, atomic_load_explicit(&s->turn_seq, memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

/* What the runtime itself understands of a mailbox; true: the message was an ending. */
__attribute__((noinline)) static bool system_message(struct scheduler *s, struct worker *w, struct actor *a,
                                                     struct message *m)
{
    if (m->type == MESSAGE_READY)
        resource_ready_taken(s, m);
    if (m->type == MESSAGE_STOP) {
        struct reason why = reason_copy((struct reason *)(void *)m->payload);
        message_give(s, m);
        end_with_terminate(s, w, a, why);
        return true;
    }
    if (m->type == MESSAGE_EXIT && (a->flags & ACTOR_CHILD) &&
        ((struct message_exit *)(void *)m->payload)->pid == a->parent) {
        struct reason why = reason_copy((struct reason *)(void *)m->payload);
        message_give(s, m);
        w->phase = PHASE_HANDLE;
        end_with_terminate(s, w, a, why);
        return true;
    }
    return false;
}

__attribute__((noinline)) static bool ended_by_callback(struct scheduler *s, struct worker *w,
                                                        struct actor *a, enum actor_step step)
{
    worker_trap(s);
    if (a->doom)
        end(s, w, a, reason_copy((struct reason *)(void *)a->doom->payload));
    else
        end_with_terminate(s, w, a, reason_of(step == ACTOR_STOP ? REASON_NORMAL : REASON_BAD_RETURN));
    return false;
}

/* False: the actor has ended. */
static inline bool after_callback(struct scheduler *s, struct worker *w, struct actor *a,
                                  enum actor_step step)
{
    if (__builtin_expect((a->flags & ACTOR_DOOMED) || step != ACTOR_CONTINUE, 0))
        return ended_by_callback(s, w, a, step);
    if (a->held)
        message_release_held(s, a, 0, NULL);
    return true;
}

static inline bool turn_message(struct scheduler *s, struct worker *w, struct actor *a, struct message *m)
{
    callback_begins(s, w, PHASE_HANDLE);
    if (__builtin_expect(m->type > MESSAGE_USER_MAX, 0) && system_message(s, w, a, m))
        return false;
    if (__builtin_expect(a->flags & ACTOR_IDLES, 0))
        timer_idle_cancel(s, a);
    m->to = 0;
    message_hold(a, m);
    if (!after_callback(s, w, a, a->class->handle(a->state, m)))
        return false;
    a->handled++;
    return true;
}

/* False: the start was refused and answered. */
static bool take_name(struct scheduler *s, struct worker *w, struct actor *a, const char *name)
{
    actor_pid holder = 0;
    enum error e = resource_name(s, a, name, &holder);
    if (!e)
        return true;
    end_in_init(s, w, a, e, holder, reason_error((int)e));
    return false;
}

static bool init_refused(struct scheduler *s, struct worker *w, struct actor *a, enum actor_step step)
{
    worker_trap(s);
    if (a->doom) {
        end_in_init(s, w, a, ERR_INIT, 0, reason_copy((struct reason *)(void *)a->doom->payload));
        return true;
    }
    if (step == ACTOR_CONTINUE || step == ACTOR_PROCEED)
        return false;
    if (step == ACTOR_IGNORE)
        end_in_init(s, w, a, ERR_IGNORED, 0, reason_of(REASON_NORMAL));
    else
        end_in_init(s, w, a, ERR_INIT, 0, reason_of(step == ACTOR_STOP ? REASON_NORMAL : REASON_BAD_RETURN));
    return true;
}

__attribute__((noinline)) static bool turn_init(struct scheduler *s, struct worker *w, struct actor *a)
{
    callback_begins(s, w, PHASE_INIT);
    struct spawn_birth *b = a->birth ? (struct spawn_birth *)(void *)a->birth->payload : NULL;
    if (b && b->name_size && !take_name(s, w, a, (char *)b->bytes))
        return false;
    enum actor_step step = ACTOR_CONTINUE;
    if (a->class->init)
        step = a->class->init(a->state, b && b->args_size ? b->bytes + b->name_size : NULL,
                              b ? b->args_size : 0);
    if (init_refused(s, w, a, step))
        return false;
    a->flags |= ACTOR_BORN;
    actor_born(s, a, OK, NULL, b ? b->info : 0);
    if (a->held)
        message_release_held(s, a, 0, NULL);
    if (step == ACTOR_PROCEED && a->class->proceed) {
        callback_begins(s, w, PHASE_HANDLE);
        return after_callback(s, w, a, a->class->proceed(a->state));
    }
    return true;
}

static void count_handled(struct scheduler *s, uint32_t by)
{
    atomic_store_explicit(&s->handled, atomic_load_explicit(&s->handled, memory_order_relaxed) + by,
                          memory_order_relaxed);
}

/* In the loop it is part of the loop: a call more for each message is a tenth of its cost. */
__attribute__((always_inline)) static inline void turn(struct scheduler *s, struct worker *w, struct actor *a)
{
    bool starting = a->status == ACTOR_STARTING;
    s->current = a;
    s->worker = w;
    s->stack_limit = w->stack_limit;
    w->actor = a;
    a->status = ACTOR_RUNNING;
    if (__builtin_expect(a->flags & ACTOR_DOOMED, 0)) { /* it was served a turn in order to trap */
        callback_begins(s, w, starting ? PHASE_INIT : PHASE_HANDLE);
        worker_check_doom(s);
    }
    if (__builtin_expect(starting, 0) && !turn_init(s, w, a))
        return;
    uint32_t handled = 0;
    bool lives = true;
    while (lives && handled < s->turn_messages) {
        struct message *m = mailbox_pop(s, a);
        if (!m)
            break;
        handled++;
        lives = turn_message(s, w, a, m);
        scheduler_wake_owed(s); /* whom it has written to needn't wait for what it does next */
        if (lives && __builtin_expect(a->flags & ACTOR_HELD_BACK, 0)) /* it has suspended itself */
            break;
        if (__builtin_expect(atomic_load_explicit(&s->hurry, memory_order_relaxed), 0))
            break; /* each within its slice, but together they keep the others waiting */
    }
    count_handled(s, handled);
    if (!lives)
        return;
    a->status = ACTOR_IDLE;
    if (a->mail_head)
        run_ready(s, a);
}

static void note_stack(struct class_stats *stats, uint64_t depth)
{
    if (depth > stats->stack_high_water)
        __atomic_store_n(&stats->stack_high_water, depth, __ATOMIC_RELAXED);
}

/* One turn in a hundredth of a second is measured by what it leaves on a stack that was blank before. A turn that ends in
 * a trap says nothing here; what actors use when they park is noted each time. */
__attribute__((noinline)) static void turn_measured(struct scheduler *s, struct worker *w, struct actor *a)
{
    struct class_stats *stats = a->stats;
    s->measure_stack = false;
    coro_stack_paint(w->coro);
    turn(s, w, a);
    note_stack(stats, coro_stack_high_water(w->coro));
}

/* ---- the worker's loop ---- */

static void workers_note(_Atomic uint32_t *figure, int by)
{
    atomic_store_explicit(figure, atomic_load_explicit(figure, memory_order_relaxed) + (uint32_t)by,
                          memory_order_relaxed);
}

/* Who this worker may serve next without going back to the main loop: an actor without a stack of its own. */
static struct actor *take_next(struct scheduler *s, struct worker *w)
{
    struct actor *a = s->next_actor;
    if (a) {
        s->next_actor = NULL;
        return a;
    }
    a = s->ready.head;
    if (__builtin_expect(atomic_load_explicit(&s->hurry, memory_order_relaxed), 0))
        s->budget = 0;
    if (!a || !s->budget || a->worker || (a->flags & (ACTOR_DOOMED | ACTOR_HELD_BACK)) ||
        actor_stack_class(a) != w->stack_class || s->hogs.count)
        return NULL;
    s->budget--;
    a->flags &= (uint16_t)~ACTOR_QUEUED;
    return run_queue_pop(&s->ready);
}

/* Not inlined: its frame address marks where the frames of actors begin, below worker_entry's own. */
__attribute__((noinline)) static void worker_loop(struct scheduler *s, struct worker *w)
{
    w->landing_sp = (uintptr_t)__builtin_frame_address(0);
    for (;;) {
        struct actor *a = take_next(s, w);
        if (a) {
            sim_trace(s, TRACE_DISPATCH, actor_pid_of(a), a->handled);
            if (__builtin_expect(s->measure_stack, 0))
                turn_measured(s, w, a);
            else
                turn(s, w, a);
            scheduler_wake_owed(s);
            continue;
        }
        ASSERT(w->canary == WORKER_CANARY && w->canary_end == WORKER_CANARY); /* who hasn't waited, too */
        leave(s, w);
        w->idle_next = s->idle_workers[w->stack_class];
        s->idle_workers[w->stack_class] = w;
        s->idle_workers_count[w->stack_class]++;
        workers_note(&s->workers_idle, 1);
        coro_park();
        if (!s->next_actor)
            return;
    }
}

static void worker_entry(void *arg)
{
    struct scheduler *s = arg;
    uintptr_t low, high;
    struct worker w = {.canary = WORKER_CANARY, .canary_end = WORKER_CANARY, .coro = coro_self()};
    w.alarm.what = ALARM_WAIT;
    w.stack_class = actor_stack_class(s->next_actor);
    coro_stack_bounds(w.coro, &low, &high);
    w.stack_limit = low + STACK_RESERVE;
    workers_note(&s->workers, 1);
    int how = setjmp(w.mark);
    if (how)
        landed(scheduler_current, &w, (enum landing)how);
    worker_loop(scheduler_current, &w);
    workers_note(&scheduler_current->workers, -1);
    __asm__ volatile("" ::: "memory"); /* not a tail call: the mark's frame must outlive the loop's */
}

/* ---- waiting ---- */

static void park(struct scheduler *s, struct worker *w, struct actor *a)
{
    a->worker = w;
    s->current = NULL;
    s->worker = NULL;
    note_stack(a->stats, w->landing_sp - (uintptr_t)__builtin_frame_address(0));
    coro_park();
    ASSERT(w->canary == WORKER_CANARY && w->canary_end == WORKER_CANARY);
    a->worker = NULL;
    a->status = ACTOR_RUNNING;
    s->current = a;
    s->worker = w;
    s->stack_limit = w->stack_limit;
    atomic_store_explicit(&s->turn_seq, atomic_load_explicit(&s->turn_seq, memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

bool worker_wait(struct scheduler *s, uint64_t deadline)
{
    struct actor *a = s->current;
    struct worker *w = s->worker;
    ASSERT(s->guard == 0); /* waiting inside a guarded section would hold its lock */
    ASSERT(w->phase != PHASE_NONE);
    worker_check_doom(s);
    if (!w->fired && deadline > s->now) {
        if (deadline != DEADLINE_NONE)
            wheel_add(&s->wheel, &w->alarm.wheel, deadline);
        a->status = ACTOR_WAITING;
        w->computed_ns = 0;
        w->resumed_at = 0;
        park(s, w, a);
        if (wheel_pending(&w->alarm.wheel))
            wheel_cancel(&s->wheel, &w->alarm.wheel);
        worker_check_doom(s);
    }
    w->wait = WAIT_NONE;
    w->wait_ref = 0;
    return w->fired;
}

void actor_yield(void)
{
    struct scheduler *s = scheduler_enter();
    struct actor *a = s->current;
    ASSERT(s->guard == 0);
    worker_check_doom(s);
    s->worker->wait = WAIT_YIELD;
    s->worker->computed_ns = s->worker->resumed_at = 0; /* it let the others go: that is no runaway */
    a->status = ACTOR_READY;
    run_ready(s, a);
    park(s, s->worker, a);
    s->worker->wait = WAIT_NONE;
    worker_check_doom(s);
}

/* From the preemption signal, on the actor's own stack, in the middle of its code. What counts against its budget is what this
 * thread has computed, not what a clock says: a process that was stopped, or a machine that stood still, is no runaway. */
void worker_preempted(struct scheduler *s)
{
    struct actor *a = s->current;
    struct worker *w = s->worker;
    uint8_t wait = w->wait;
    uint64_t now = s->env->now(s->env);
    uint64_t slice = a->class->slice_ns ? a->class->slice_ns : s->rt->options.slice_ns;
    uint64_t runaway = a->class->runaway_ns ? a->class->runaway_ns : s->rt->options.runaway_ns;
    w->computed_ns += w->resumed_at ? env_thread_computed() - w->resumed_at : slice;
    COUNT(s, preemptions);
    bump(&a->stats->preempted, 1);
    TELEMETRY(SCHEDULER_PREEMPT, (int64_t)w->computed_ns, DIM(CLASS, a->class->name));
    if (runaway != DEADLINE_NONE && w->computed_ns >= runaway) {
        COUNT(s, overruns);
        TELEMETRY(SCHEDULER_OVERRUN, (int64_t)w->computed_ns, DIM(CLASS, a->class->name));
        bump(&a->stats->overrun, 1);
        reason_drop(&w->ending); /* in terminate there is one already */
        w->ending = reason_of(REASON_OVERRUN);
        worker_land(s, LAND_FAULT);
    }
    w->wait = WAIT_SLICE;
    a->flags |= ACTOR_HOG | ACTOR_QUEUED;
    a->status = ACTOR_READY;
    run_queue_push(&s->hogs, a);
    s->budget = 0; /* a slice is a turn: clock and inbox first */
    s->hog_slice_end = now;
    park(s, w, a);
    w->wait = wait;
    w->resumed_at = env_thread_computed();
    worker_check_doom(s);
}

/* ---- dispatch ---- */

/* Those who compute without end get a slice when nobody else wants to run, and one now and then when others do. */
static struct actor *next_runnable(struct scheduler *s)
{
    if (s->hogs.count && (!s->ready.count || s->now - s->hog_slice_end >= HOG_SLICE_NS)) {
        return run_queue_pop(&s->hogs);
    }
    if (!s->ready.count)
        return NULL;
    return s->simulated ? queue_pick(s, &s->ready) : run_queue_pop(&s->ready);
}

static bool run_on_worker(struct scheduler *s, struct actor *a)
{
    struct worker *w = s->idle_workers[actor_stack_class(a)];
    s->next_actor = a;
    if (w) {
        s->idle_workers[actor_stack_class(a)] = w->idle_next;
        s->idle_workers_count[actor_stack_class(a)]--;
        workers_note(&s->workers_idle, -1);
        coro_resume(w->coro);
        return true;
    }
    if (coro_start(s->stacks[actor_stack_class(a)], worker_entry, s))
        return true;
    s->next_actor = NULL; /* no stack to be had: it waits its turn until somebody gives one back */
    run_ready(s, a);
    return false;
}

bool worker_dispatch(struct scheduler *s)
{
    struct actor *a = next_runnable(s);
    if (!a)
        return false;
    bool hog = a->flags & ACTOR_HOG;
    a->flags &= (uint16_t) ~(ACTOR_QUEUED | ACTOR_HOG);
    if (s->budget)
        s->budget--;
    if (a->doom && !a->worker && !((struct signal_exit *)(void *)a->doom->payload)->trap) {
        struct reason why = reason_copy((struct reason *)(void *)a->doom->payload);
        actor_bury(s, a, why);
        return true;
    }
    if ((a->flags & ACTOR_HELD_BACK) && !a->doom) {
        if (a->status != ACTOR_STARTING)
            a->status = ACTOR_SUSPENDED;
        return true;
    }
    if (hog) {
        atomic_store_explicit(&s->waiting_others, s->ready.count, memory_order_relaxed);
        atomic_store_explicit(&s->alarm_at, wheel_bound(&s->wheel), memory_order_relaxed);
        atomic_store_explicit(&s->running_hog, true, memory_order_relaxed);
        s->budget = 0; /* its worker serves nobody else in this slice */
        preempt_slice_begins(s, a);
    }
    atomic_store_explicit(&s->running, true, memory_order_relaxed);
    bool served = true;
    if (a->worker) {
        sim_trace(s, TRACE_DISPATCH, actor_pid_of(a), a->handled);
        coro_resume(a->worker->coro);
    } else {
        served = run_on_worker(s, a);
    }
    scheduler_wake_owed(s);
    atomic_store_explicit(&s->running, false, memory_order_relaxed);
    if (hog) {
        preempt_slice_ends(s);
        atomic_store_explicit(&s->running_hog, false, memory_order_relaxed);
    }
    return served;
}

bool worker_trim(struct scheduler *s, uint32_t keep, uint32_t most)
{
    bool more = false;
    for (int c = 0; c < STACK_CLASSES; c++) {
        if (s->idle_workers_count[c] <= keep)
            continue;
        for (uint32_t n = 0; n < most && s->idle_workers_count[c] > keep; n++) {
            struct worker *w = s->idle_workers[c];
            s->idle_workers[c] = w->idle_next;
            s->idle_workers_count[c]--;
            workers_note(&s->workers_idle, -1);
            s->next_actor = NULL; /* nothing to do: it returns, and its stack goes back to the pool */
            coro_resume(w->coro);
        }
        more |= s->idle_workers_count[c] > keep;
        coro_pool_trim(s->stacks[c], keep);
    }
    return more;
}

int worker_create_stacks(struct scheduler *s)
{
    static const size_t counts[STACK_CLASSES] = {1 << 20, 1 << 16, 1 << 14};
    for (int c = 0; c < STACK_CLASSES; c++) {
        s->stacks[c] = coro_pool_create(stack_sizes[c] + STACK_RESERVE, counts[c]);
        if (!s->stacks[c])
            return -1;
    }
    return 0;
}

uint8_t worker_stack_class(size_t size)
{
    for (uint8_t c = 0; c < STACK_CLASSES; c++)
        if (size <= stack_sizes[c])
            return c;
    return STACK_CLASSES - 1;
}

void worker_destroy_stacks(struct scheduler *s)
{
    worker_trim(s, 0, UINT32_MAX);
    for (int c = 0; c < STACK_CLASSES; c++)
        coro_pool_destroy(s->stacks[c]);
}
