/* Actors: state, a mailbox, and three functions; what they own goes with them.
 *
 * An actor lives on the scheduler where it was spawned and never moves. Its handler is straight-line C: it may block
 * (call, sleep, receive, wait for a descriptor) and keeps a coroutine stack only meanwhile. Everything here is called
 * from inside an actor (its init, handle, proceed or terminate) unless it says otherwise. Functions that wait take an
 * absolute deadline in ns as their last argument (actor_deadline_ms makes one; DEADLINE_NONE waits for ever); while
 * one of them waits, the actor can be killed, and then it doesn't return.
 *
 * Guarantees: order per (sender, receiver), signals included; delivery at most once; DOWN exactly once per monitor;
 * resources released in reverse order of acquisition, names included, before anybody learns of the death.
 * Limits: 2^24 - 2 actors a scheduler, 64 schedulers, payload 65,496 bytes, mailbox 1,024 messages unless declared.
 */
#ifndef COPPICE_RUNTIME_ACTOR_H
#define COPPICE_RUNTIME_ACTOR_H

#include "runtime/assert.h"
#include "runtime/env.h"
#include "runtime/error.h"
#include "runtime/message.h"
#include "runtime/reason.h"

/* What a callback returns. Anything else ends the actor with bad_return_value. */
enum actor_step {
    ACTOR_CONTINUE = 0,
    ACTOR_STOP = 1,    /* end with reason normal; terminate runs */
    ACTOR_IGNORE = 2,  /* init only: not needed here, leave no trace */
    ACTOR_PROCEED = 3, /* init only: run the class's proceed before any queued message */
};

/* What happens to a message for a full mailbox. What the runtime has to say is never dropped:
 * EXIT of links, DOWN, TIMER and READY are bounded by the records behind them (one message each), STOP by its callers,
 * who wait. Exit signals sent by hand to an actor that traps are bounded by the message memory alone. */
enum mailbox_policy {
    MAILBOX_REFUSE = 0,  /* the sender gets ERR_FULL */
    MAILBOX_DROP_OLDEST, /* the oldest message that isn't a timer's is dropped and counted */
    MAILBOX_WAIT,        /* actor_send_wait parks the sender; plain sends are refused */
};

struct actor_class {
    const char *name;
    size_t state_size; /* zeroed before init; at most ACTOR_STATE_MAX */
    enum actor_step (*init)(void *state, const void *args, size_t args_size); /* may be NULL */
    enum actor_step (*handle)(void *state, struct message *m);
    enum actor_step (*proceed)(void *state);                  /* with ACTOR_PROCEED */
    void (*terminate)(void *state, const struct reason *why); /* may be NULL; see docs/runtime.md for when */
    bool trap_exits;                                          /* exit signals arrive as MESSAGE_EXIT */
    enum mailbox_policy mailbox_policy;
    uint32_t mailbox_capacity; /* 0: ACTOR_MAILBOX_DEFAULT */
    uint32_t stack_size;       /* 0: 64 KiB; else rounded up to 256 KiB or 1 MiB */
    size_t arena_quota;        /* 0: ACTOR_ARENA_DEFAULT bytes */
    uint64_t slice_ns;         /* 0: the runtime's (1 ms); a handler computing longer is switched out */
    uint64_t
        runaway_ns; /* 0: the runtime's (1 s); computing longer ends it with overrun; DEADLINE_NONE: never */
};

#define ACTOR_MAILBOX_DEFAULT 1024u
#define ACTOR_STATE_INLINE    32u /* up to here the state costs nothing beyond the actor */
#define ACTOR_STATE_MAX       65536u
#define ACTOR_ARENA_DEFAULT   (1u << 20)
#define ACTOR_ARGS_MAX        65000u

/* ---- birth ---- */

#define SPAWN_HERE  0              /* on the spawner's scheduler */
#define SPAWN_ON(n) ((int)(n) + 1) /* on scheduler n */
#define SPAWN_DEDICATED(n) \
    (-1 - (int)(n)) /* on the nth dedicated one; without them on the last of the others */

struct spawn_options {
    const struct actor_class *class;
    const void *args; /* copied; init sees the copy, which is gone when init returns */
    size_t args_size; /* at most ACTOR_ARGS_MAX */
    const char *name; /* registered before init runs; taken: the start fails with ERR_ALREADY_REGISTERED */
    bool link;        /* linked to the spawner from the first instant */
    bool monitor;     /* the spawner gets DOWN; see start_result.ref */
    uint64_t tag;     /* handed back in this link's EXIT and this monitor's DOWN */
    int scheduler;    /* SPAWN_HERE, SPAWN_ON(0..runtime_schedulers()-1), SPAWN_DEDICATED(n) */
};

/* Spawn without waiting for init. SPAWN_HERE doesn't block; another scheduler parks until the pid is known. */
enum error actor_spawn(const struct spawn_options *o, actor_pid *ret_pid);
/* Spawn and wait until init has answered. OK: result->pid lives (and result->info is what its init published).
 * ERR_IGNORED, ERR_INIT, ERR_ALREADY_REGISTERED (result->pid is the holder): no actor is left behind, no EXIT or DOWN of
 * it arrives; result->why says why and is the caller's to drop. ERR_TIMEOUT: the newcomer is killed. */
struct start_result {
    actor_pid pid;
    uint64_t ref;  /* of the monitor, when asked for */
    uint64_t info; /* actor_start_info of its init */
    struct reason why;
};
enum error actor_start(const struct spawn_options *o, struct start_result *ret, uint64_t deadline);
void actor_start_info(uint64_t info); /* in init: a number handed to whoever waits in actor_start */

actor_pid actor_self(void);
bool actor_inside(void);         /* any thread: is an actor running here? */
actor_pid actor_parent(void);    /* who spawned it; 0 when from outside */
bool actor_alive(actor_pid pid); /* any scheduler; false only when everything of it has been released */
int actor_scheduler_of(actor_pid pid);
int actor_scheduler(void); /* the one that runs this; in release functions as well */

/* ---- messages ---- */

/* Give m away. ERR_NOPROC doesn't exist here: a message to the dead is dropped. ERR_FULL: refused, m is freed. */
enum error actor_send(actor_pid to, struct message *m);
enum error actor_send_name(const char *name, struct message *m); /* unknown name: dropped silently */
/* For MAILBOX_WAIT mailboxes: waits until m was accepted. ERR_TIMEOUT, ERR_NOPROC. */
enum error actor_send_wait(actor_pid to, struct message *m, uint64_t deadline);
/* The commonest send: a few bytes to somebody. */
static inline enum error actor_cast(actor_pid to, uint32_t type, const void *bytes, size_t size)
{
    struct message *m = message_of(type, bytes, size);
    return m ? actor_send(to, m) : ERR_MEMORY;
}

/* Take the first queued message that matches (NULL matches all) out of the mailbox, waiting for it until the deadline.
 * NULL: timeout. The others stay in their order. match is called inside the runtime: it must only look. */
typedef bool message_match(const struct message *m, void *arg);
struct message *actor_receive(message_match *match, void *arg, uint64_t deadline);
/* The same without waiting: NULL when none is there. Also in a guarded section. */
struct message *actor_receive_now(message_match *match, void *arg);
/* For an actor with a scheduler to itself that expects something at once: what it has sent goes out, and what others have
 * sent comes in, so that actor_receive_now finds it. Until something comes, or the deadline, it spins. It runs nobody,
 * not even to end them (a signal waits for the turn's end, and what came behind it), so it may stand in a guarded
 * section. False: nothing came; at once in a simulation, where nobody could send meanwhile. */
bool actor_listen(uint64_t deadline);

/* How full the running actor's own mailbox is, as its enum pressure_level (runtime/pressure.h). */
uint32_t actor_pressure(void);

/* For a handler's default branch: a message of a type nobody knows is logged, counted and dropped. The log is told of one a second for
 * each class and scheduler, with how many it wasn't told of since. */
void actor_unknown(const struct message *m);

/* ---- calls ---- */

/* Ask and wait. OK: *ret_reply is the answer. ERR_DOWN: the callee ended; *ret_reply (if not NULL) is a message whose
 * payload is struct message_down with the reason. ERR_NOPROC at once when there is nobody, ERR_TIMEOUT, ERR_FULL,
 * ERR_UNANSWERED, ERR_CALLING_SELF. ret_reply may be NULL. */
enum error actor_call(actor_pid to, struct message *request, struct message **ret_reply, uint64_t deadline);
enum error actor_call_name(const char *name, struct message *request, struct message **ret_reply,
                           uint64_t deadline);
#define ACTOR_CALL_DEFAULT_MS 5000

/* Answer the call that arrived as `call`. A second answer, or one to a cast, is dropped. */
void actor_reply(struct message *call, struct message *reply);
static inline void actor_reply_bytes(struct message *call, uint32_t type, const void *bytes, size_t size)
{
    struct message *m = message_of(type, bytes, size);
    if (m)
        actor_reply(call, m);
}
/* Answer later, from another callback: the token stays good until used or until this actor ends. */
struct actor_from {
    uint64_t ref; /* of the promise in this actor; 0: none */
};
struct actor_from actor_defer(struct message *call);
void actor_reply_to(struct actor_from from, struct message *reply);

/* Ask without waiting; collect later. Each open request is a record (see runtime.h); ERR_MEMORY when there are none. */
enum error actor_request(actor_pid to, struct message *request, uint64_t *ret_ref);
/* Wait for the first answer among refs[0..count-1]: its index in *ret_index, the result as for actor_call.
 * ERR_TIMEOUT leaves all of them open; actor_request_drop abandons one, its answer never arrives. */
enum error actor_request_wait(const uint64_t *refs, size_t count, size_t *ret_index,
                              struct message **ret_reply, uint64_t deadline);
void actor_request_drop(uint64_t ref);

/* ---- endings ---- */

_Noreturn void
actor_exit(struct reason why); /* end now; terminate runs; the detail's reference is given up */
_Noreturn void actor_fail(int code, const char *text); /* actor_exit with error(code): text */
_Noreturn void
actor_refuse(struct reason why); /* in init: the start fails with this reason, without a crash report */
/* An exit signal, as from a link: killed can't be trapped; normal is ignored unless sent to oneself or trapped. */
void actor_exit_signal(actor_pid to, struct reason why);
void actor_kill(actor_pid to);
/* Ask it to end with this reason (in mailbox order, terminate runs), wait until it has. ERR_NOPROC, ERR_TIMEOUT.
 * *ret_why (may be NULL): the reason it really ended with. */
enum error actor_stop(actor_pid to, struct reason why, struct reason *ret_why, uint64_t deadline);

/* ---- links and monitors ---- */

enum error actor_link(
    actor_pid to); /* twice is once; oneself: no-op; dead: EXIT noproc if trapping, else this actor ends */
void actor_unlink(actor_pid to); /* afterwards no EXIT of it arrives */
void actor_trap_exits(bool on);
/* Exactly one MESSAGE_DOWN with this ref when `to` ends (noproc at once if it has). 0 when records are used up. */
uint64_t actor_monitor(actor_pid to, uint64_t tag);
uint64_t actor_monitor_name(const char *name, uint64_t tag);
void actor_demonitor(uint64_t ref); /* afterwards no DOWN with this ref arrives, not even a queued one */

/* ---- names and groups ---- */

/* ERR_ALREADY_REGISTERED (*ret_holder, may be NULL), ERR_NOPROC, ERR_INVALID, ERR_LIMIT. Waits when pid lives elsewhere. */
enum error actor_register(const char *name, actor_pid pid, actor_pid *ret_holder);
enum error actor_unregister(const char *name); /* only one's own; a free name is fine */
actor_pid actor_whereis(const char *name);     /* 0: nobody. Lock-free, any thread of the runtime */
/* Calls visit for each name with this prefix ("": all) until it returns false; visit may call anything. A name held all
 * the while is seen once, one that comes or goes meanwhile perhaps. The name is good during the call only. */
void actor_each_name(const char *prefix,
                     bool (*visit)(void *context, const char *name, size_t length, actor_pid pid),
                     void *context);
enum error actor_join(const char *group);
enum error actor_leave(const char *group);
size_t actor_members(const char *group, actor_pid *pids,
                     size_t count); /* how many there are; up to count stored */

/* ---- time ---- */

uint64_t actor_now(void);      /* the scheduler's clock, ns; at most a slice old inside a computing handler */
uint64_t actor_clock(void);    /* the same clock, asked anew: for measuring within a turn */
uint64_t actor_wall_now(void); /* ns since 1970 */
void actor_random_bytes(void *bytes, size_t size);
uint64_t actor_random(void);             /* from the environment's generator: the same under the same seed */
uint64_t actor_deadline_ms(uint64_t ms); /* now + ms, saturating */
enum error actor_sleep(uint64_t deadline); /* ERR_TIMEOUT never: OK when the time has come */
void actor_yield(void);                    /* let the others go first */
/* A message of this type with `value` as payload (u64; for type 0: struct message_timer) at the deadline.
 * Gone when the actor ends. 0 when records are used up. */
uint64_t actor_timer(uint64_t deadline, uint32_t type, uint64_t value);
bool actor_timer_cancel(uint64_t ref,
                        uint64_t *ret_remaining_ns); /* false: it fired, or was cancelled before */
/* MESSAGE_TIMEOUT if no ordinary message arrives before then; any ordinary message cancels it, inspection doesn't. */
void actor_idle_timeout(uint64_t deadline);

/* ---- descriptors and other resources ---- */

/* Messages when fd gets ready (edge-triggered, MESSAGE_READY), without holding a stack. 0 when refused (errno): one watch
 * or wait a descriptor and scheduler (EEXIST). Unwatch before closing: the number may be somebody else's next. */
uint64_t actor_watch(int fd, uint32_t events);
void actor_unwatch(uint64_t ref);
enum error actor_wait_fd(int fd, uint32_t events,
                         uint64_t deadline); /* blocks; OK, ERR_TIMEOUT or ERR_SYSTEM */
/* Own something: release(arg) runs once when the actor ends (or at actor_release), in reverse order of owning.
 * release runs inside the runtime: it must not block, nor call the runtime but for the time (actor_now, actor_clock,
 * actor_wall_now) and actor_scheduler. 0 when records are used up. */
uint64_t actor_own(void (*release)(void *arg), void *arg);
uint64_t actor_own_fd(int fd); /* closed at the end */
void actor_release(uint64_t ref);
void actor_disown(uint64_t ref); /* forget it without releasing */

/* ---- memory ---- */

/* From the actor's arena: aligned to 16, not cleared, freed whole when the actor ends. Over the quota the actor ends
 * with reason quota; actor_try_alloc gives NULL instead. */
void *actor_alloc(size_t size);
void *actor_try_alloc(size_t size);
struct arena_mark {
    void *chunk;
    size_t used;
    size_t total;
};
struct arena_mark actor_arena_mark(void);
void actor_arena_reset(struct arena_mark mark); /* everything allocated since is gone */

/* ---- guarded sections ---- */

/* Around calls into libraries that hold locks or heap state (LMDB, libcurl, stdio). No preemption inside, a fault
 * inside ends the process; blocking inside is a bug. They nest. */
void actor_guard_begin(void);
void actor_guard_end(void);

/* ---- for operators ---- */

#define ACTOR_STATUSES(X) X(STARTING) X(IDLE) X(READY) X(RUNNING) X(WAITING) X(SUSPENDED)
struct actor_info {
    actor_pid pid, parent;
    const char *class_name;
    char name[96]; /* the first registered name, or empty */
    const char *status;
    const char *waiting_for; /* while WAITING: "call", "receive", "sleep", "fd", "start", ...; else "" */
    uint32_t mailbox_depth, mailbox_capacity;
    uint64_t handled; /* messages so far */
    uint32_t links, monitors, watchers, resources;
    size_t arena_bytes;
    uint64_t stack_high_water; /* of its class */
};
/* Asks the actor's scheduler (the actor itself needn't be responsive). ERR_NOPROC, ERR_TIMEOUT. */
enum error actor_inspect(actor_pid pid, struct actor_info *ret_info, uint64_t deadline);
/* Suspend: it handles nothing more until resumed, or until its parent asks it to end; its mailbox goes on filling. System
 * messages pass. */
void actor_suspend(actor_pid pid);
void actor_resume(actor_pid pid);
/* Crash: instead of its next step (or of what it waits for, or of going on after its slice) the actor runs `trap` on its
 * own stack, in its own name; what comes of that is contained as any fault is. `trap` is code of the program outside the
 * runtime, and must trap; should it return, the actor ends as killed. ERR_INVALID where containment is off, because then
 * the trap would be the process's. Like actor_kill it doesn't wait, and the first ending counts. */
enum error actor_crash(actor_pid to, void (*trap)(void));

#endif
