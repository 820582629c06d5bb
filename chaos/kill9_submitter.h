/* Submitters: what each lane of an ordeal tries next, drawn from the lane's dice, and what it makes of the answer.
 *
 * In the process that is killed, and in its one thread that makes the attempts. A lane tries one thing at a time. It knows
 * what it owns by its model, which takes in each answer; so it can ask for what must be refused as well as for what must not.
 * The lane RELAY owns nothing: it claims a partition of the outbox, looks into it and marks what it finds there.
 */
#ifndef COPPICE_CHAOS_KILL9_SUBMITTER_H
#define COPPICE_CHAOS_KILL9_SUBMITTER_H

#include "chaos/kill9_ordeal.h"
#include "store/view.h"

/* The next attempt of a lane, in shared memory from now on; NULL: it has made enough. at_us, batch: 0 when nobody knows. */
struct attempt *submitter_try(uint32_t lane, uint64_t at_us, uint32_t batch);
/* The answer is in shared memory before anything follows from it. `bytes`: an answer that is OK. */
void submitter_answered(uint32_t lane, struct attempt *a, enum error e, const void *bytes, size_t size);
/* The relay has claimed a partition: what is in it. Without a view, nothing. */
void submitter_look(struct view *view);

#endif
