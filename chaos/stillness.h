/* Stillness: for how long a machine stood still, as a campaign's witness saw it.
 *
 * A machine with others at work, or one that is itself a guest, does nothing at all for a while now and then: nobody runs, and afterwards the
 * clock says that whatever was just going on took that long. On each CPU sleeps a thread of the campaign, a millisecond at a time. One
 * that only sleeps gets its CPU within a few milliseconds, whatever a server computes beside it; when it wakes up more than
 * STILLNESS_LEAST_US late, what is beyond that was nobody's, and the clock here leaves it out. (Not all of it: what waits for a timer gets on
 * all the same, as far as that one timer.) What two CPUs lost at once counts once.
 */
#ifndef COPPICE_CHAOS_STILLNESS_H
#define COPPICE_CHAOS_STILLNESS_H

#include <stdint.h>

#define STILLNESS_LEAST_US UINT64_C(100000)

/* Once, before anything is measured; ends the program with a line and status 1 when there are no threads. */
void stillness_begin(void);
/* Microseconds of a clock that stands still while the machine does. To ask takes a millisecond or two. */
uint64_t stillness_now_us(void);
uint64_t stillness_since(uint64_t began_us);

#endif
