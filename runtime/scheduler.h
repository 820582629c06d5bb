/* Inside the runtime: the structures behind actor.h. Private to runtime/; nothing above includes it.
 *
 * A scheduler is one thread (or one virtual one, in simulation) with everything it needs of its own: actors, records,
 * run queues, wheel, pools, stacks. Others reach it only through its inbox. `scheduler_current` names the scheduler whose
 * code runs on this thread.
 *
 * How a stack is bound only while working: a worker is a coroutine whose loop takes runnable actors and calls their
 * handlers on its own stack. While handlers return without blocking, one worker serves everybody and no stack is
 * switched. When a handler blocks, its worker parks with it and the scheduler's main loop goes on with another worker.
 *
 *    thread stack: scheduler_loop -> coro_resume(worker) --.
 *    worker stack: worker_loop -> actor_turn -> handle() --'-> wait: coro_park, back to the thread stack
 *
 * How an actor ends: whatever ends it (return, actor_exit, a trap, a signal that dooms it) reaches worker_loop's mark by
 * return or by longjmp, terminate runs where the ending allows it, and actor_bury releases everything, tells everybody
 * and frees the slot. Nobody is buried in the middle of somebody else's handler.
 */
#ifndef COPPICE_RUNTIME_SCHEDULER_H
#define COPPICE_RUNTIME_SCHEDULER_H

#include <setjmp.h>
#include <stdatomic.h>
#include "runtime/actor.h"
#include "runtime/coro.h"
#include "runtime/pool.h"
#include "runtime/runtime.h"
#include "runtime/wheel.h"

#define CACHE_LINE 64

/* ---- pids and references ---- */

#define PID_SLOT_BITS 24
#define PID_SLOTS_MAX ((1u << PID_SLOT_BITS) - 1)

static inline actor_pid pid_make(uint32_t scheduler, uint32_t slot, uint32_t generation)
{
    return (uint64_t)scheduler << 56 | (uint64_t)slot << 32 | generation;
}
static inline uint32_t pid_scheduler(actor_pid p)
{
    return (uint32_t)(p >> 56);
}
static inline uint32_t pid_slot(actor_pid p)
{
    return (uint32_t)(p >> 32) & PID_SLOTS_MAX;
}

/* References of records look like pids (scheduler < 64, so bit 63 is clear); those of calls have bit 63 set. */
#define REF_CALL (1ull << 63)

/* ---- records: what an actor owns or is tied by ---- */

#define RECORD_KINDS(X)                                 \
    X(RECORD_FREE)                                      \
    X(RECORD_TIMER)                                     \
    X(RECORD_IDLE)    /* the idle timeout */            \
    X(RECORD_MONITOR) /* I watch peer */                \
    X(RECORD_WATCHER) /* peer watches me */             \
    X(RECORD_LINK)                                      \
    X(RECORD_NAME)                                      \
    X(RECORD_GROUP)                                     \
    X(RECORD_WATCH) /* a descriptor */                  \
    X(RECORD_OWN)                                       \
    X(RECORD_KEPT)    /* a message kept across turns */ \
    X(RECORD_PROMISE) /* a deferred call */             \
    X(RECORD_REQUEST) /* an open request of mine */

enum record_kind {
#define X(name) name,
    RECORD_KINDS(X)
#undef X
};

/* A timer in the wheel knows what it belongs to by `what`. */
enum alarm_kind { ALARM_RECORD, ALARM_WAIT };
struct alarm {
    struct wheel_timer wheel;
    uint64_t what;
};

struct record {
    uint32_t next, prev; /* in one of the owner's lists; 0: end (index 0 is never used) */
    uint32_t generation;
    uint32_t owner; /* the owner's slot */
    uint32_t kind : 8;
    uint32_t type : 24; /* timer: the message's type */
    uint32_t index;
    union {
        struct {
            struct alarm alarm;
            uint64_t value;
        } timer;
        struct {
            actor_pid peer;
            uint64_t peer_ref; /* the other side's record, 0 when not known */
            uint64_t tag;
            struct blob *name; /* monitors by name: what was asked for */
        } tie;
        struct {
            struct blob *blob;
        } name; /* and groups */
        struct {
            int fd;
            uint32_t events;
            bool waiting; /* actor_wait_fd: wake the worker instead of a message */
            struct message
                *queued; /* its MESSAGE_READY in the mailbox: one at a time, later events join it */
        } watch;
        struct {
            void (*release)(void *);
            void *arg;
        } own;
        struct {
            struct message *message;
        } kept;
        struct {
            actor_pid from;
            uint64_t ref;
        } promise;
        struct {
            struct message *reply; /* NULL while open */
            actor_pid to;
            uint64_t arrived; /* order of the answers */
        } request;
    };
};
_Static_assert(sizeof(struct record) == 64,
               "a record is one cache line: the price of a timer, a link, a name");

/* ---- actors ---- */

enum actor_status {
#define X(name) ACTOR_##name,
    ACTOR_STATUSES(X)
#undef X
};

enum {
    ACTOR_TRAPS = 1,        /* exit signals become messages */
    ACTOR_QUEUED = 2,       /* in a run queue */
    ACTOR_HOG = 4,          /* was switched out in the middle of computing */
    ACTOR_ROOT = 8,         /* its end is the runtime's */
    ACTOR_DYING = 16,       /* its ending has begun: terminate runs or it is being buried */
    ACTOR_PROCEEDS = 32,    /* init asked for proceed */
    ACTOR_HELD_BACK = 64,   /* suspended */
    ACTOR_BORN = 128,       /* init has succeeded */
    ACTOR_DOOMED = 256,     /* doom is set */
    ACTOR_IDLES = 512,      /* idle is set */
    ACTOR_AWAITED = 1024,   /* waiting is set */
    ACTOR_STACK_SHIFT = 11, /* two bits: its stack class */
    ACTOR_CHILD = 8192,     /* linked to its parent by birth: the parent's end is its own, trapped or not */
};

struct class_stats;
struct arena;
struct worker;

struct actor {
    /* What every message touches: two cache lines. */
    struct actor *run_next;
    _Atomic actor_pid pid; /* 0: free slot. Other threads may look. */
    const struct actor_class *class;
    struct message *mail_head, *mail_tail;
    _Atomic uint32_t mail_count; /* written here, read by remote senders */
    uint32_t mail_capacity;
    void *state;
    uint8_t status;
    uint8_t pressure; /* enum pressure_level of the mailbox */
    uint16_t flags;
    uint32_t generation;

    struct worker *worker; /* while it has a stack of its own */
    struct message *held;  /* messages it holds; see message.h */
    uint64_t handled;
    uint32_t pressure_low, pressure_span; /* the level holds for these depths, see pressure.h */
    _Alignas(8) unsigned char small_state[ACTOR_STATE_INLINE];

    /* The rest of its life. */
    uint32_t resources, watchers, links, idle; /* records, newest first */
    struct arena *arena;
    struct message *doom; /* the exit signal that ends it, first one wins */
    struct class_stats *stats;
    actor_pid parent;
    struct message *birth;   /* until init has run: its arguments and who waits for it */
    struct message *waiting; /* messages of parked senders (MAILBOX_WAIT), oldest first */
};
_Static_assert(sizeof(struct actor) == 192, "three cache lines: an idle actor costs this and nothing more");

/* One per class and scheduler: figures for operators. */
struct class_stats {
    const struct actor_class *class;
    uint64_t spawned, ended, crashed, handled, stack_high_water, preempted, overrun;
    uint32_t pressure_span; /* of an empty mailbox */
    uint32_t
        unknown_left_out; /* messages of no known type that the log wasn't told of, since it was told of one */
    uint64_t unknown_next; /* when it may be told of the next */
};
#define UNKNOWN_EVERY_NS NS_PER_S /* of one class on one scheduler: a flood of them is no flood of lines */
#define CLASSES_MAX      256u     /* classes a process has; the rest share the last entry */

/* ---- workers ---- */

#define WAITS(X)               \
    X(WAIT_NONE, "")           \
    X(WAIT_REPLY, "call")      \
    X(WAIT_RECEIVE, "receive") \
    X(WAIT_SLEEP, "sleep")     \
    X(WAIT_FD, "fd")           \
    X(WAIT_START, "start")     \
    X(WAIT_SEND, "send")       \
    X(WAIT_REQUEST, "request") \
    X(WAIT_DOWN, "down")       \
    X(WAIT_YIELD, "yield")     \
    X(WAIT_SLICE, "slice")

enum wait_kind {
#define X(name, text) name,
    WAITS(X)
#undef X
};

enum phase { PHASE_NONE, PHASE_INIT, PHASE_HANDLE, PHASE_TERMINATE };
enum landing { LAND_NONE, LAND_EXIT, LAND_REFUSE, LAND_DOOM, LAND_FAULT };

#define WORKER_CANARY 0x636f70706963652eull

struct worker {
    uint64_t canary;
    struct coro *coro;
    struct worker *idle_next;
    struct actor *actor;
    jmp_buf mark;          /* where endings land */
    uintptr_t landing_sp;  /* a place on this stack from which the landing may run */
    uintptr_t stack_limit; /* API calls below this are an overflow in the making */
    uint8_t stack_class, phase;
    uint8_t wait; /* enum wait_kind */
    bool fired;   /* what was waited for has come */
    uint64_t wait_ref;
    actor_pid wait_on; /* WAIT_SEND: whose mailbox */
    struct message *reply;
    struct message *scan; /* receive: last message looked at and left */
    struct alarm alarm;
    struct reason ending;      /* LAND_EXIT, LAND_REFUSE */
    struct start_result start; /* actor_start */
    bool start_awaited;        /* it is init's answer that is waited for, not the pid alone */
    uint64_t computed_ns;      /* of the running callback, in slices already cut off */
    uint64_t resumed_at;       /* env_thread_computed then; 0: in its first slice */
    uint64_t canary_end;
};

#define STACK_CLASSES 3 /* 64 KiB, 256 KiB, 1 MiB */
/* Below what a class declares: room for the runtime's own calls (4 KiB), and for the frame of the signal that switches a
 * computing actor out (3.6 KiB with AVX-512, 11 KiB with AMX). Address space, until somebody gets there. */
#define STACK_RESERVE (16u * 1024)

/* ---- schedulers ---- */

/* Many producers, one consumer. A producer puts a chain on top with one exchange, the consumer takes all there is with
 * another and turns it round: newest first becomes oldest first. Two cache lines travel for a message, this and its own. */
struct inbox {
    _Alignas(CACHE_LINE) _Atomic(struct message *) top;
    _Alignas(CACHE_LINE) struct message *arrived; /* taken, in order, not yet delivered */
};

#define FAULT_FRAMES 16
struct fault {
    int signal;
    int crash; /* CRASH_... */
    uintptr_t address, pc;
    uint32_t frames;
    uintptr_t frame[FAULT_FRAMES];
    char text[160]; /* a failed assertion's */
};

struct run_queue {
    struct actor *head, *tail;
    uint32_t count;
};

struct telemetry_shard;

#define TURN_DISPATCHES  128u /* actors served between two looks at inbox, clock and descriptors */
#define TURN_MESSAGES    64u  /* messages of one actor in a row */
#define OUTBOX_BATCH     64u  /* messages for another scheduler before they are handed over mid-turn */
#define POLL_INTERVAL_NS (50 * NS_PER_US) /* a busy scheduler looks at its descriptors this often */
#define SPIN_NS_MIN \
    (50 * NS_PER_US) /* looks at the inbox this long before it sleeps, while others write to it ... */
#define SPIN_NS_MAX      (400 * NS_PER_US) /* ... and longer when its sleeps turn out to be short */
#define SPIN_LOOKS       64                /* at the inbox, between two at the clock */
#define SPIN_POLL_NS     (10 * NS_PER_US)  /* between two at the descriptors */
#define SHARE_NS         NS_PER_S          /* how much of a scheduler's time is work is told of so much */
#define SHARE_UNKNOWN    UINT32_MAX
#define MEASURE_STACK_NS (10 * NS_PER_MS) /* how often one turn's use of its stack is measured */
#define WORKERS_KEPT     64u              /* idle ones a stack class keeps when the scheduler sleeps */
#define WORKERS_TRIMMED  64u /* given back before one sleep: 3 us each, so it takes a fifth of a millisecond */
#define HOG_SLICE_NS     (100 * NS_PER_US) /* of a hog while others want to run */

struct scheduler {
    /* hot */
    struct actor *current; /* whose callback runs now */
    struct worker *worker;
    uintptr_t stack_limit;
    uint32_t guard;    /* depth of guarded sections */
    uint32_t matching; /* a callback of the actor runs inside the runtime: no preemption */
    bool stop_told;
    bool measure_stack; /* of the next turn */
    bool simulated;
    uint32_t turn_messages; /* of one actor in a row */
    uint32_t index;
    uint32_t budget; /* dispatches left in this turn */
    struct run_queue ready, hogs;
    uint64_t now;         /* the clock at the start of the turn or later */
    struct actor *actors; /* base of the slots */
    struct record *records;
    uint64_t next_ref;
    struct worker *idle_workers[STACK_CLASSES];
    uint32_t idle_workers_count[STACK_CLASSES];
    _Atomic uint32_t workers, workers_idle; /* all classes together; others read them */
    struct actor *next_actor;               /* what the worker being resumed shall run */
    struct coro_pool *stacks[STACK_CLASSES];
    struct pool messages[MESSAGE_BLOCKS];
    struct pool chunks; /* arena chunks of 4 KiB */
    struct runtime *rt;
    struct env *env;

    /* slots and records */
    uint32_t slots_used, slot_free, slots_max, living;
    uint32_t records_used, record_free, records_max, records_living;
    struct class_stats classes[CLASSES_MAX];
    uint32_t classes_used;

    /* others */
    struct message *outbox_newest,
        *outbox_oldest; /* for one destination: a message for another sends these off first */
    uint32_t outbox_to, outbox_count;
    bool wake_owed; /* it is for a scheduler that sleeps: to be handed over before others get their turn */
    uint64_t measure_at;
    uint64_t last_remote, last_poll, spin_ns;
    uint64_t hog_slice_end; /* since then the others have been served */
    uint32_t watches;
    struct poller *poller;
    struct telemetry_shard *telemetry;
    struct wheel wheel;

    /* figures; written here, read by anybody without order */
    _Atomic uint64_t spawned, ended, crashed, handled, dropped, remote, preemptions, overruns, wakes, polls,
        turns;
    /* ns that it has slept, doubled. While it sleeps: less the time when that began, and one more. So one load tells all,
     * and it never goes back. */
    _Atomic uint64_t idle;
    /* Of the last SHARE_NS or so: how much of it was work. Before the first of them: SHARE_UNKNOWN. */
    _Atomic uint32_t share_ppm;
    _Atomic uint64_t share_at, share_idle; /* when it ended, and how long it had slept by then */
    uint64_t born;

    /* faults */
    struct fault fault;
    volatile int in_fault;
    volatile int parking; /* the first signal has found the moment right for the second one */
    uint64_t blocked;     /* signals, as the kernel counts them: its thread's mask outside of handlers */
    void *signal_stack;
    struct env_alarm slice_alarm;
    uint64_t thread; /* pthread_t */
    uint64_t canary;

    /* looked at by other threads */
    _Alignas(
        CACHE_LINE) _Atomic uint64_t turn_seq; /* changes with every callback: what the monitor compares */
    _Atomic bool running;                      /* a callback runs */
    _Atomic bool hurry;                        /* set by the monitor: this turn takes long, end it */
    _Atomic bool running_hog;
    _Atomic uint32_t waiting_others; /* normal actors wait while a hog runs */
    _Atomic uint64_t alarm_at;       /* wheel bound when the turn began */
    _Alignas(CACHE_LINE) _Atomic bool sleeping;
    struct inbox inbox;
};

struct names;
struct groups;
struct telemetry;

struct runtime {
    struct runtime_options options;
    struct env *env;
    uint32_t schedulers_count;
    struct scheduler *schedulers[RUNTIME_SCHEDULERS_MAX];
    struct pool_depot *message_depots[MESSAGE_BLOCKS];
    struct pool_depot *chunk_depot;
    struct names *names;
    struct groups *groups;
    struct telemetry *telemetry;
    _Atomic actor_pid root;
    _Atomic int stopping; /* 0 no, 1 asked, 2 at once */
    _Atomic int ended;    /* the schedulers shall return */
    _Atomic int exit_status;
    struct runtime_incident *incident;
    struct runtime_foreign *foreign;
    struct preempt *preempt;
    bool contained;
    bool crowded; /* more schedulers than CPUs: whoever waits gives its CPU away */
};

extern _Thread_local struct scheduler *scheduler_current __attribute__((tls_model("initial-exec")));

/* Every public function begins with this: who calls, and is there stack left for the runtime to work on? */
static inline struct scheduler *scheduler_enter(void)
{
    struct scheduler *s = scheduler_current;
    ASSERT(s && s->current);
    if (__builtin_expect((uintptr_t)__builtin_frame_address(0) < s->stack_limit, 0)) {
        extern _Noreturn void fault_stack_exhausted(struct scheduler *);
        fault_stack_exhausted(s);
    }
    return s;
}

/* How long it has slept. */
static inline uint64_t scheduler_idle_ns(const struct scheduler *s, uint64_t now)
{
    uint64_t idle = atomic_load_explicit(&s->idle, memory_order_relaxed);
    return ((idle >> 1) + (idle & 1 ? now : 0)) & (UINT64_MAX >> 1);
}

static inline bool scheduler_local(const struct scheduler *s, actor_pid pid)
{
    return pid_scheduler(pid) == s->index;
}

/* The living actor behind a local pid, or NULL. */
static inline struct actor *actor_of(const struct scheduler *s, actor_pid pid)
{
    if (__builtin_expect(pid_slot(pid) >= s->slots_max, 0)) /* a number from outside that was never a pid */
        return NULL;
    struct actor *a = &s->actors[pid_slot(pid)];
    return __builtin_expect(atomic_load_explicit(&a->pid, memory_order_relaxed) == pid, 1) && pid ? a : NULL;
}
static inline actor_pid actor_pid_of(const struct actor *a)
{
    return atomic_load_explicit(&a->pid, memory_order_relaxed);
}
static inline uint8_t actor_stack_class(const struct actor *a)
{
    return a->flags >> ACTOR_STACK_SHIFT & 3;
}
static inline uint32_t actor_slot(const struct scheduler *s, const struct actor *a)
{
    return (uint32_t)(a - s->actors);
}

/* The run queue and the mailbox as every message uses them; the rest is in worker.c and mailbox.c. */
/* Written by its own thread; others may read it. */
static inline void run_queue_count(struct run_queue *q, int change)
{
    __atomic_store_n(&q->count, q->count + (uint32_t)change, __ATOMIC_RELAXED);
}
static inline void run_queue_push(struct run_queue *q, struct actor *a)
{
    a->run_next = NULL;
    if (q->tail)
        q->tail->run_next = a;
    else
        q->head = a;
    q->tail = a;
    run_queue_count(q, 1);
}
static inline struct actor *run_queue_pop(struct run_queue *q)
{
    struct actor *a = q->head;
    q->head = a->run_next;
    if (!q->head)
        q->tail = NULL;
    run_queue_count(q, -1);
    return a;
}
/* Put it into the run queue unless it is there. */
static inline void run_ready(struct scheduler *s, struct actor *a)
{
    if (a->flags & ACTOR_QUEUED)
        return;
    a->flags |= ACTOR_QUEUED;
    if (a->status != ACTOR_STARTING)
        a->status = ACTOR_READY;
    __builtin_prefetch(&a->worker); /* its other hot line, by the time it is its turn */
    run_queue_push(&s->ready, a);
}
static inline uint32_t mailbox_depth(const struct actor *a)
{
    return atomic_load_explicit(&a->mail_count, memory_order_relaxed);
}
static inline void mailbox_count(struct actor *a, uint32_t count)
{
    atomic_store_explicit(&a->mail_count, count, memory_order_relaxed);
}
void worker_wake(struct scheduler *s, struct actor *a); /* what its worker waits for has come */
void mailbox_pressure(struct scheduler *s, struct actor *a);
static inline void mailbox_depth_set(struct scheduler *s, struct actor *a, uint32_t depth)
{
    mailbox_count(a, depth);
    if (__builtin_expect(depth - a->pressure_low >= a->pressure_span, 0))
        mailbox_pressure(s, a);
}
/* Without looking at the capacity. */
static inline void mailbox_append(struct scheduler *s, struct actor *a, struct message *m)
{
    m->next = NULL;
    if (a->mail_tail)
        a->mail_tail->next = m;
    else
        a->mail_head = m;
    a->mail_tail = m;
    mailbox_depth_set(s, a, mailbox_depth(a) + 1);
    if (a->status == ACTOR_IDLE)
        run_ready(s, a);
    else if (a->status == ACTOR_WAITING && a->worker->wait == WAIT_RECEIVE)
        worker_wake(s, a);
}
enum error mailbox_deliver_full(struct scheduler *s, struct actor *a, struct message *m);
/* Takes m unless it fails. */
static inline enum error mailbox_deliver(struct scheduler *s, struct actor *a, struct message *m)
{
    if (__builtin_expect(mailbox_depth(a) >= a->mail_capacity, 0))
        return mailbox_deliver_full(s, a, m);
    mailbox_append(s, a, m);
    return OK;
}
void mailbox_admit_waiting(struct scheduler *s, struct actor *a);
static inline struct message *mailbox_pop(struct scheduler *s, struct actor *a)
{
    struct message *m = a->mail_head;
    if (!m)
        return NULL;
    a->mail_head = m->next;
    if (!m->next)
        a->mail_tail = NULL;
    else
        __builtin_prefetch(m->next);
    m->next = NULL;
    mailbox_depth_set(s, a, mailbox_depth(a) - 1);
    if (__builtin_expect(a->flags & ACTOR_AWAITED, 0))
        mailbox_admit_waiting(s, a);
    return m;
}
#define COUNT(s, field)                                                                             \
    atomic_store_explicit(&(s)->field, atomic_load_explicit(&(s)->field, memory_order_relaxed) + 1, \
                          memory_order_relaxed)

/* Figures of a class are written by one thread and read by any. */
static inline void bump(uint64_t *figure, uint64_t by)
{
    __atomic_store_n(figure, *figure + by, __ATOMIC_RELAXED);
}

/* ---- record.c ---- */
struct record *record_new(struct scheduler *s, struct actor *owner, uint32_t *list, enum record_kind kind);
void record_free(struct scheduler *s, struct actor *owner, uint32_t *list, struct record *r);
void record_move(struct scheduler *s, uint32_t *from, uint32_t *to, struct record *r);
struct record *record_of(struct scheduler *s, uint64_t ref); /* NULL when gone */
static inline uint64_t record_ref(const struct scheduler *s, const struct record *r)
{
    return pid_make(s->index, r->index, r->generation);
}
static inline struct record *record_at(const struct scheduler *s, uint32_t index)
{
    return index ? &s->records[index] : NULL;
}

/* ---- message.c ---- */
struct message *message_take(struct scheduler *s, uint32_t type, size_t size); /* held by nobody */
void message_give(struct scheduler *s, struct message *m);                     /* drops its reason, too */
static inline void message_hold(struct actor *a, struct message *m)
{
    m->next = a->held;
    a->held = m;
}
void message_unhold_deep(struct actor *a, struct message *m);
static inline void message_unhold(struct actor *a, struct message *m) /* it must be held */
{
    if (__builtin_expect(a->held != m, 0)) {
        message_unhold_deep(a, m);
        return;
    }
    a->held = m->next;
    m->next = NULL;
}
/* The block is going to be something else: if it was a call that nobody has answered, its caller is told so. */
static inline void message_unanswered(struct scheduler *s, const struct message *m)
{
    void signal_reply_error(struct scheduler * s, actor_pid to, uint64_t ref, enum error e);
    if (__builtin_expect(m->kind == MESSAGE_CALL && m->ref, 0))
        signal_reply_error(s, m->from, m->ref, ERR_UNANSWERED);
}
bool message_is_held(const struct actor *a, const struct message *m);
void message_let_go(struct scheduler *s, actor_pid who, struct message *m, const struct reason *why);
/* An unanswered call among them is answered: unanswered, or with the reason of the holder's end. */
void message_release_held(struct scheduler *s, struct actor *a, actor_pid who, const struct reason *why);

/* ---- mailbox.c ---- */
struct message *mailbox_unlink(struct scheduler *s, struct actor *a,
                               struct message *previous);                    /* the one after it */
void mailbox_admit(struct scheduler *s, struct actor *a, struct message *m); /* of a parked sender */
void mailbox_withdraw(struct scheduler *s, struct actor *a, uint64_t ref);
void mailbox_give_up(struct scheduler *s, actor_pid to,
                     uint64_t ref); /* by the sender: withdraws it wherever it waits */
void mailbox_dropped(struct scheduler *s, const struct actor *a, const char *why);
void mailbox_bury(struct scheduler *s, struct actor *a, actor_pid who, const struct reason *why);

/* ---- signal.c: what schedulers tell each other about actors ---- */
enum signal_type {
    SIGNAL_EXIT = 0x00f10001,
    SIGNAL_LINK,
    SIGNAL_UNLINK,
    SIGNAL_MONITOR,
    SIGNAL_TIED, /* the answer to a link or monitor from elsewhere: its record here */
    SIGNAL_DEMONITOR,
    SIGNAL_DOWN,
    SIGNAL_SPAWN,
    SIGNAL_SPAWNED,
    SIGNAL_SUSPEND,
    SIGNAL_RESUME,
    SIGNAL_INSPECT,
    SIGNAL_REGISTER, /* payload: the name; answered with REPLY_ERROR */
    SIGNAL_WITHDRAW, /* a sender waits no more: its message with this reference goes unless it was accepted */
    MESSAGE_STOP = 0x00f20001, /* in mailbox order: end with this reason */
    REPLY_ERROR = 0x00f30001,  /* payload: uint32_t enum error */
    REPLY_STARTED,             /* payload: struct reply_started */
    REPLY_INFO,                /* payload: struct actor_info */
};
struct signal_exit {
    struct reason reason;
    uint64_t link; /* the receiver's record when it comes over a link; 0: sent by hand */
    bool linked;
    bool at_start;      /* see struct message_exit */
    bool trapping;      /* the trap has begun, and goes on when it is given another slice */
    void (*trap)(void); /* see actor_crash; else NULL */
};
struct reply_started {
    struct reason why;
    actor_pid pid;
    uint64_t info;
    uint32_t error;
};
struct signal_spawned {
    actor_pid pid;                    /* 0: no slot */
    uint64_t link_ref, peer_link_ref; /* the starter's record, the newcomer's */
    uint64_t monitor_ref, peer_watcher_ref;
};
struct signal_tie {
    uint64_t ref;      /* the sender's record */
    uint64_t peer_ref; /* the receiver's record, if known */
};
void signal_send(struct scheduler *s, actor_pid to, struct message *m);
void signal_handle(struct scheduler *s, struct message *m); /* takes m */
void actor_doom(struct scheduler *s, struct actor *a, struct message *exit);
void signal_exit_send(struct scheduler *s, actor_pid to, actor_pid from, const struct reason *why,
                      bool linked, uint64_t link);
void signal_reply_error(struct scheduler *s, actor_pid to, uint64_t ref, enum error e);
void signal_reply_down(struct scheduler *s, actor_pid to, uint64_t ref, actor_pid who,
                       const struct reason *why);
void signal_demonitor(struct scheduler *s, actor_pid to, actor_pid from, uint64_t ref, uint64_t peer_ref);
void monitor_bury(struct scheduler *s, struct actor *a, struct record *r);
void link_bury(struct scheduler *s, struct actor *a, actor_pid pid, const struct reason *why);
struct record *link_add(struct scheduler *s, struct actor *a, actor_pid peer, uint64_t peer_ref,
                        uint64_t tag);

/* ---- call.c ---- */
void reply_deliver(struct scheduler *s, struct message *m); /* takes m */
void promise_bury(struct scheduler *s, actor_pid who, struct record *r, const struct reason *why);
void request_bury(struct scheduler *s, struct record *r);
static inline uint64_t call_ref(struct scheduler *s)
{
    return REF_CALL | (uint64_t)s->index << 56 | (s->next_ref++ & 0x00ffffffffffffffull);
}

/* The DOWN with this reference, straight from the signal; NULL at the deadline. Held by nobody. */
struct message *actor_receive_down(struct scheduler *s, uint64_t ref, uint64_t deadline);

/* ---- timer.c ---- */
void timer_fire_due(struct scheduler *s);
bool timer_fire_one(struct scheduler *s);
void timer_bury(struct scheduler *s, struct record *r);
void timer_idle_cancel(struct scheduler *s, struct actor *a);

/* ---- resource.c ---- */
enum error resource_name(struct scheduler *s, struct actor *a, const char *name, actor_pid *ret_holder);
void resource_bury(struct scheduler *s, struct actor *a); /* all of them, newest first */
void resource_ready(struct scheduler *s, uint64_t token, uint32_t events);
void resource_ready_taken(struct scheduler *s,
                          const struct message *m); /* a MESSAGE_READY leaves the mailbox */

/* ---- arena.c ---- */
void arena_drop(struct scheduler *s, struct actor *a);
size_t arena_bytes(const struct actor *a);

/* ---- worker.c ---- */
void run_ready_first(struct scheduler *s, struct actor *a); /* ahead of the others */
/* Who serves it now: its own worker while it is parked, the running one if it runs. */
static inline struct worker *worker_of(const struct scheduler *s, const struct actor *a)
{
    return a->worker ? a->worker : a == s->current ? s->worker : NULL;
}
/* Say what is going to be waited for before asking for it: the answer may come before the wait begins. */
static inline struct worker *worker_expect(struct scheduler *s, enum wait_kind kind, uint64_t ref)
{
    struct worker *w = s->worker;
    w->wait = (uint8_t)kind;
    w->wait_ref = ref;
    w->fired = false;
    w->reply = NULL;
    return w;
}
/* Park the running actor (after worker_expect) until woken or past the deadline. False: the deadline passed. Doomed actors don't return. */
bool worker_wait(struct scheduler *s, uint64_t deadline);
void worker_trap(struct scheduler *s);       /* a running actor that is doomed to trap does */
void worker_check_doom(struct scheduler *s); /* after something that may have doomed the running actor */
_Noreturn void worker_land(struct scheduler *s, enum landing how);
bool worker_dispatch(
    struct scheduler *s); /* serve one runnable actor (a worker may go on with more); false: none */
bool worker_trim(struct scheduler *s, uint32_t keep, uint32_t most); /* true: there is more to give back */
const char *wait_name(enum wait_kind w);

void worker_preempted(struct scheduler *s); /* in the signal handler */
int worker_create_stacks(struct scheduler *s);
void worker_destroy_stacks(struct scheduler *s);
uint8_t worker_stack_class(size_t size);

/* ---- actor.c ---- */

/* The payload of a birth message: what init gets and who waits for it (message.from with reference message.ref). */
struct spawn_birth {
    const struct actor_class *class;
    uint64_t info;
    uint64_t link_ref, monitor_ref; /* the starter's records, for remote spawns */
    uint32_t args_size;
    uint16_t name_size;    /* with its NUL, rounded up to 8; 0: no name */
    bool awaited : 1;      /* the starter waits in actor_start */
    bool placed : 1;       /* came from another scheduler, which is told the pid */
    uint8_t error;         /* with which the start fails; told when nothing of the newcomer is left */
    unsigned char bytes[]; /* name, then args */
};
struct actor *actor_birth(struct scheduler *s, const struct actor_class *class, actor_pid parent,
                          struct message *birth);
struct message *actor_birth_message(struct scheduler *s, const struct spawn_options *o);
enum error actor_options_check(const struct spawn_options *o);
void actor_bury(struct scheduler *s, struct actor *a, struct reason why); /* takes the reason */
void actor_born(struct scheduler *s, struct actor *a, enum error e, const struct reason *why, uint64_t info);
void actor_spawn_remote(struct scheduler *s, struct message *m); /* SIGNAL_SPAWN */
void actor_spawned(struct scheduler *s, struct message *m);      /* SIGNAL_SPAWNED */
void actor_inspected(struct scheduler *s, struct actor *a, struct message *m);
struct class_stats *class_stats_of(struct scheduler *s, const struct actor_class *class);

/* ---- scheduler.c ---- */
struct scheduler *scheduler_create(struct runtime *rt, uint32_t index);
void scheduler_destroy(struct scheduler *s);
void scheduler_loop(struct scheduler *s);
void scheduler_wind_down(struct scheduler *s);                             /* kill and bury all its actors */
void scheduler_post(struct scheduler *s, actor_pid to, struct message *m); /* to another scheduler; takes m */
void scheduler_flush(struct scheduler *s);
/* When an actor has handled a message, or had its turn: what it sent to a scheduler that sleeps is handed over now, because being woken takes long; not
 * before, so that what was sent in a row arrives together. */
static inline void scheduler_wake_owed(struct scheduler *s)
{
    if (__builtin_expect(s->wake_owed, 0))
        scheduler_flush(s);
}
uint32_t scheduler_busy_ppm(const struct scheduler *s, uint64_t now); /* any thread: see runtime_scheduler */
bool inbox_empty(struct scheduler *s);
size_t inbox_drain(struct scheduler *s, size_t count_max);
void inbox_push(struct scheduler *to, struct message *newest, struct message *oldest); /* any thread */
/* Hand a message to whoever it is for: local delivery or outbox. */
enum error scheduler_transmit(struct scheduler *s, actor_pid to, struct message *m);
void scheduler_arrive(struct scheduler *s, struct message *m); /* from the inbox; takes m */

/* ---- fault.c, preempt.c ---- */
void fault_install(void);
void fault_thread_begin(struct scheduler *s);
void fault_thread_end(struct scheduler *s);
struct reason fault_reason(const struct fault *f);
_Noreturn void fault_stack_exhausted(struct scheduler *s);
_Noreturn void fault_fatal(const char *what, const char *detail); /* one JSON line, exit */
bool fault_in_actor_text(uintptr_t pc);
bool fault_in_actor_code(const void *context); /* of a signal: was actor code interrupted? */
/* Of a signal: has the actor used up its declared stack? Then returning from the signal ends it: true. */
bool fault_stack_spent(struct scheduler *s, void *context);
struct preempt *preempt_start(struct runtime *rt);
void preempt_end(struct preempt *p);
void preempt_slice_begins(struct scheduler *s, const struct actor *a); /* a hog's */
void preempt_slice_ends(struct scheduler *s);
void preempt_busy(struct runtime *rt);   /* a scheduler leaves its sleep */
void preempt_leave(struct scheduler *s); /* its thread is about to end: no signal finds it from now on */

/* ---- runtime.c ---- */
void runtime_stop_asked(struct scheduler *s);
void runtime_root_ended(struct runtime *rt, struct scheduler *s, const struct reason *why);
void runtime_unknown_message(struct scheduler *s, const struct message *m);
void runtime_crash_report(struct scheduler *s, const struct actor *a, const char *why);
/* A domain's supervisor has given up: how many other domains have done so in the same incident, that is within
 * INCIDENT_NS of its first. */
#define INCIDENT_NS      (10 * NS_PER_S)
#define INCIDENT_DOMAINS 32u /* told apart; more count as the last one */
int64_t runtime_cascade(const char *domain);
void runtime_exhausted(const char *domain, uint32_t count, uint64_t window_ms, const struct reason *last);
void sim_trace_add(struct scheduler *s, uint32_t what, uint64_t a, uint64_t b);
static inline void sim_trace(struct scheduler *s, uint32_t what, uint64_t a, uint64_t b)
{
    if (__builtin_expect(s->simulated, 0))
        sim_trace_add(s, what, a, b);
}
enum { TRACE_DISPATCH = 1, TRACE_DELIVER, TRACE_TIMER, TRACE_BIRTH, TRACE_DEATH, TRACE_SIGNAL, TRACE_CLOCK };

#endif
