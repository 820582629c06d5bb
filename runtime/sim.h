/* Simulation: a whole node in one thread, on a virtual clock, under a seed.
 *
 * The same runtime code runs on as many virtual schedulers as asked for; the seed chooses which of them goes next,
 * which runnable actor it takes, how many messages cross over at a time and when. Time jumps to the next timer when
 * nobody can run. The trace hash covers every dispatch, delivery, timer, birth and death: the same seed gives the same
 * hash, with gcc and clang, -O0 and -O2. No signals, no threads.
 *
 * Descriptors, when asked for, are this machine's: what depends on this thread alone, such as both ends of a local socket in it, is
 * the same in each run of a seed. The seed chooses when a descriptor that is ready is told of, and which one first. Without that
 * actor_watch fails.
 */
#ifndef COPPICE_RUNTIME_SIM_H
#define COPPICE_RUNTIME_SIM_H

#include "runtime/runtime.h"

struct sim;

enum sim_order {
    SIM_RANDOM = 0, /* uniform choice among what can go next */
    SIM_FIFO,       /* as a quiet machine would */
    SIM_PRIORITY,   /* random priorities with a few random changes: finds rare orders */
    SIM_SCRIPT, /* choices come from sim_options.choices; beyond its end 0; see sim_choices for enumeration */
};

struct sim_options {
    uint64_t seed;
    uint32_t schedulers; /* virtual ones; 0: 1 */
    enum sim_order order;
    uint64_t start_ns;      /* virtual clock at the start; 0: one hour, so that no time is 0 by accident */
    const uint8_t *choices; /* SIM_SCRIPT */
    size_t choices_count;
    struct env *descriptors;        /* whose pollers are used; NULL: there are no descriptors */
    struct runtime_options runtime; /* env and schedulers are ignored */
};

struct sim *sim_create(const struct sim_options *o);
struct runtime *sim_runtime(struct sim *s);
struct env *sim_runtime_env(struct sim *s); /* for what is simulated beside the runtime, such as a store */
/* One choice and its consequence. False: nothing can run and no timer is pending, or the root has ended. */
bool sim_step(struct sim *s);
/* Until nothing can run without the clock moving. Returns the steps taken; at most steps_max. */
uint64_t sim_settle(struct sim *s, uint64_t steps_max);
/* Until the virtual clock would pass `until` (timers due by then fire). */
uint64_t sim_run_until(struct sim *s, uint64_t until, uint64_t steps_max);
/* Until the root ends or nothing is left to do. */
uint64_t sim_run(struct sim *s, uint64_t steps_max);
uint64_t sim_now(const struct sim *s);
void sim_clock_jump(struct sim *s, int64_t wall_ns); /* the wall clock only */
/* All clocks: a time in which nobody ran, such as of a disk that is slow or a process that was stopped. */
void sim_clock_advance(struct sim *s, uint64_t ns);
uint64_t sim_trace_hash(const struct sim *s);
uint64_t sim_random(struct sim *s);       /* the test's own draws, from a stream of its own */
int sim_exit_status(const struct sim *s); /* as runtime_run's; -1 while it lives */
/* What was asked and chosen so far: enough to enumerate all interleavings by SIM_SCRIPT (next script = increment the
 * last choice that has a sibling). */
struct sim_choice {
    uint8_t taken, of;
};
const struct sim_choice *sim_choices(const struct sim *s, size_t *ret_count);
void sim_destroy(struct sim *s);

#endif
