/* The census: what waits in mailboxes, by class of actor.
 *
 * Nobody keeps such sums while messages run: one short-lived actor on each scheduler walks those that live there, asks
 * nobody but the scheduler it is on, and lets others run after each CENSUS_BATCH of them. So it costs nothing until
 * somebody wants to know, then about a microsecond for four actors; it isn't one instant. Of more than CENSUS_VISITS actors
 * on one scheduler, and of one that doesn't answer by the deadline (it may stand before a disk), the rest is left out, and
 * `complete` is false. CENSUS_CLASSES classes are told apart, the others are one.
 */
#ifndef COPPICE_HTTP_CENSUS_H
#define COPPICE_HTTP_CENSUS_H

#include "runtime/actor.h"

#define CENSUS_CLASSES   64u
#define CENSUS_BATCH     128u
#define CENSUS_VISITS    65536u
#define CENSUS_ANSWER_MS 250

struct census_row {
    const char *class_name; /* NULL ends the list when there are fewer */
    uint64_t actors, messages;
    uint32_t fullest_depth, fullest_capacity; /* of the mailbox with the most messages */
    actor_pid fullest;                        /* 0: all are empty */
    uint64_t arena_bytes;
};

struct census {
    struct census_row rows[CENSUS_CLASSES + 1];
    bool complete;
};

/* From an actor; waits, CENSUS_ANSWER_MS at most for each scheduler. */
void census_take(struct census *ret_census);
/* Into telemetry's gauges of actors and mailboxes. A class has a level of pressure from then on, normal unless one of its
 * mailboxes has said more. */
void census_note(const struct census *census);

#endif
