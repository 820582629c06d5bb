/* Lane: what one receiver got of one job's events, and whether it came as it must.
 *
 * Of each event: in the order in which they happened, the next one not before the last one was answered 2xx or tried as
 * often as it may be; every attempt with the same ids and content, numbered from 1. A lane begins with its first delivery,
 * which may come before the answer that names its job.
 */
#ifndef COPPICE_CHAOS_LANE_H
#define COPPICE_CHAOS_LANE_H

#include "chaos/strand.h"
#include "chaos/trail.h"

struct delivery {
    struct event event;
    struct uuid id;
    uint32_t attempts;
    bool done;   /* answered 2xx */
    bool silent; /* the last attempt's connection was closed instead of an answer */
};

struct lane {
    struct lane *next; /* of the same bucket */
    struct uuid job;
    uint32_t inbox;
    uint32_t count, room;
    struct delivery *deliveries; /* in the order of their first attempts */
    struct waiting changed;
};

/* Makes it when it isn't there. */
struct lane *lane_of(const struct uuid *job, uint32_t inbox);
void lane_drop(const struct uuid *job, uint32_t inbox);
/* How many there are, of whatever job nobody asked after. */
uint32_t lanes_left(void);

/* Judges an attempt that has come. `late`: its receiver doesn't listen at times, so that attempts and events may be missing. */
void lane_take(struct lane *lane, const struct event *event, const struct uuid *id, uint64_t attempt,
               bool late);
/* What it is answered; 0: nothing. The lane may have been dropped meanwhile. */
void lane_answer(const struct uuid *job, uint32_t inbox, const struct uuid *event, int status);
/* Waits until anything is done; false: nothing is, for long. */
bool lane_await(struct lane *lane);
/* Waits until each event of the trail whose bit is in `events` is done, or was tried as often as it may be; the same of
 * job.emitted when `emitted`. Then judges that these have come, as they were stored, and nothing else. */
void lane_judge(struct lane *lane, const struct trail *trail, uint32_t events, bool emitted);

#endif
