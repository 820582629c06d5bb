/* The calendar: which time retention believes it is.
 *
 * What retention removed doesn't come back when the wall clock turns out to have been wrong: a revocation that went while
 * the clock was a day ahead would let the token in again. So the wall clock is believed as far as it has been ahead of
 * the elapsed time for CALENDAR_TRUST_S without a break. One that goes back is believed at once, one that leaps forward
 * after one to two times CALENDAR_TRUST_S, which is longer than a token lives: what was over by then is over by any clock.
 *
 * At a start the elapsed time is unknown; it counts from where retention was the last time (COUNTER_RETAINED, noted once
 * in CALENDAR_NOTE_US). So a leap while nobody looked is one, too, and after an honest pause things stay for that much
 * longer, until the clock is believed again. A store that has noted nothing believes the clock.
 *
 * Belongs to one thread: the keeper's.
 */
#ifndef COPPICE_STORE_CALENDAR_H
#define COPPICE_STORE_CALENDAR_H

#include <stdbool.h>
#include <stdint.h>

#define CALENDAR_TRUST_S \
    29100u /* 8 hours and 5 minutes; tokens live for 8 hours and twice the skew of 2 minutes */
#define CALENDAR_NOTE_US (UINT64_C(3600) * 1000000)

struct calendar {
    int64_t least[2]; /* of wall time minus elapsed time, us: in this stretch and in the one before */
    uint64_t began;   /* this stretch, elapsed us */
    bool open;
};

/* retained: where retention was, wall us; 0: nothing is noted. All times are in us. */
void calendar_open(struct calendar *calendar, uint64_t elapsed, uint64_t wall, uint64_t retained);
/* Never beyond `wall`. Called often. */
uint64_t calendar_time(struct calendar *calendar, uint64_t elapsed, uint64_t wall);

#endif
