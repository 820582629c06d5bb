/* The clock of a server that is tried out: wall time that is ahead of this machine's, in dev only (spec AMB-78).
 *
 * What takes days is tried in seconds: retention, rotation of keys, lives of tokens and windows go by wall time and see
 * it at once. Monotonic time stays what it is: time-outs of connections and calls don't expire because of a jump. Time
 * only goes forward. What was skipped while it runs counts as elapsed, so that retention believes it (store/calendar.h);
 * what the clock is ahead at the start doesn't: there it stands for a clock that is wrong. The log's own times are this
 * machine's.
 */
#ifndef COPPICE_CONFIG_CLOCK_H
#define COPPICE_CONFIG_CLOCK_H

#include "runtime/env.h"

#define CLOCK_AHEAD_MAX_NS (36500ull * 86400 * NS_PER_S)

/* env_real(), with a wall clock that is ahead by so much. One for the process; boot. */
struct env *clock_env(uint64_t ahead_ns);
/* What clock_env gave, or env_real(). Any thread. */
struct env *clock_here(void);
/* By how much it is ahead now. Any thread. */
uint64_t clock_ahead(void);
/* Forward. False: more than CLOCK_AHEAD_MAX_NS in all, or there is no such clock here. Any thread. */
bool clock_advance(uint64_t by_ns);

#endif
