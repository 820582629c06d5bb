/* The runtime: schedulers, the monitor thread, and what they share. One living runtime per process.
 *
 * Create, spawn the root, run, destroy. runtime_create refuses bad options with a sentence that names the field, the
 * value and what would be right; nothing is started then.
 */
#ifndef COPPICE_RUNTIME_RUNTIME_H
#define COPPICE_RUNTIME_RUNTIME_H

#include "runtime/actor.h"

struct runtime;

struct runtime_options {
    uint32_t schedulers; /* 0: the CPUs this process may use; at most RUNTIME_SCHEDULERS_MAX */
    uint32_t
        dedicated; /* further ones, each for an actor that may stand still (a disk): only what is spawned there by
                          * name (SPAWN_ON(runtime_dedicated(n))) runs on them; together at most the maximum */
    struct env *env;     /* NULL: env_real() */
    uint32_t actors_max; /* per scheduler; 0: 2^22; at most 2^24 - 2. Records (names, links, monitors,
                               * timers, open requests ...): four times as many, at most 2^24 - 2 */
    uint32_t names_max;  /* 0: 2^22 */
    size_t
        message_bytes_max; /* of each of the 11 block sizes, and of arena chunks; 0: 1 GiB; at least 16 MiB */
    uint64_t slice_ns;     /* 0: 1 ms; 100 us .. 1 s */
    uint64_t runaway_ns;   /* 0: 1 s of a processor; at least the slice */
    bool no_preemption;    /* for debuggers and sanitizers */
    bool no_containment;   /* a fault ends the process, with a core if enabled */
    void (*log)(const char *line,
                size_t size);        /* one JSON object without the newline; NULL: standard error */
    bool (*logs)(const char *level); /* whether a line of this level ("info") would be kept; NULL: each is */
};

#define RUNTIME_SCHEDULERS_MAX 64
#define RUNTIME_EXIT_EXHAUSTED 70

struct runtime *runtime_create(const struct runtime_options *o, char *error, size_t error_size);
/* Before runtime_run only; link and monitor make no sense here. The first one spawned is the root: when it ends, the
 * runtime stops. */
enum error runtime_spawn(struct runtime *rt, const struct spawn_options *o, actor_pid *ret_pid);
/* Runs the schedulers (this thread is the first) until the root ends or runtime_stop. Returns the exit status: 0 after
 * a stop or a root that ended normal/shutdown on request, 70 when the root ended by exhaustion or crash (last words were
 * written as one JSON line on standard error). */
int runtime_run(struct runtime *rt);
/* Any thread, async-signal-safe: the root gets exit signal shutdown; a second call ends at once. Not after runtime_destroy
 * has begun. */
void runtime_stop(struct runtime *rt);
void runtime_destroy(struct runtime *rt); /* after runtime_run; everything goes */
/* From an actor that has seen what can't be gone on with: one line with this reason, and runtime_run returns the status
 * as soon as each scheduler has finished its turn; nobody is asked to end. The first one counts. */
void runtime_abandon(int status, const char *why);

/* A line for the log, one JSON object without its newline: to runtime_options.log, or standard error. Any thread. */
void runtime_log(struct runtime *rt, const char *line, size_t size);
/* Whether it is worth writing a line of this level. Any thread. */
bool runtime_logs(struct runtime *rt, const char *level);

/* From foreign threads: copy the bytes into a message for `to`. ERR_MEMORY, ERR_INVALID. */
enum error runtime_post(struct runtime *rt, actor_pid to, uint32_t type, const void *bytes, size_t size);

struct runtime *runtime_self(void); /* of the running actor */
struct telemetry;
struct telemetry *runtime_telemetry(struct runtime *rt);
uint32_t runtime_schedulers(void); /* of the running actor's runtime, dedicated ones aside */
uint32_t runtime_dedicated(
    uint32_t n); /* the number of the nth dedicated one; the last of the others when it has none */

struct runtime_stats {
    uint32_t schedulers;
    uint64_t actors, spawned, ended, crashed;
    uint64_t messages_handled, messages_dropped, messages_remote;
    uint64_t preemptions, overruns, wakes, polls, turns;
    uint64_t stacks, stacks_in_use;
    uint64_t message_bytes, record_bytes, actor_bytes;
    uint64_t timers, records;
};
void runtime_stats(struct runtime *rt, struct runtime_stats *ret_stats); /* any thread; not one instant */

/* One of them: the first `schedulers` less the dedicated ones are for everybody. Actors never move from one to another. */
struct runtime_scheduler {
    bool dedicated;
    uint32_t
        busy_ppm; /* of its time, how much wasn't sleep: of the last second or two, or since it last changed */
    uint64_t lived_ns, idle_ns; /* since it was made, and asleep meanwhile; idle_ns never goes back */
    uint64_t run_queue;         /* actors that could run and wait for their turn */
    uint64_t actors;
    uint64_t
        parked; /* of these, in the middle of a handler, which waits or was switched out: each has a stack */
    uint64_t messages_handled, messages_remote, preemptions, overruns, turns, timers;
};
/* n: below runtime_stats' schedulers. Any thread; not one instant. */
void runtime_scheduler(struct runtime *rt, uint32_t n, struct runtime_scheduler *ret_figures);

/* What actors of one class have done, over all schedulers. */
struct runtime_class {
    const char *name;
    uint64_t living, spawned, ended, crashed, handled, preempted, overrun;
    uint64_t stack_high_water; /* bytes, where they parked */
};
size_t runtime_classes(struct runtime *rt, struct runtime_class *classes,
                       size_t count); /* any thread; near, not exact */

/* Walk the living actors of one scheduler from inside an actor on it: bounded batches by a cursor (start at 0).
 * Returns how many were stored; *cursor becomes 0 at the end. */
size_t runtime_actors(uint32_t scheduler, uint32_t *cursor, actor_pid *pids, size_t count);

#endif
