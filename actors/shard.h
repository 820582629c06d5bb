/* Shards: each looks after the jobs of one shard of the due index, and does what is due (store/job_fire.h).
 *
 * When it starts it first ends the claims of an earlier start of the server, whose workers are gone (AMB-J-38). Then it sleeps
 * until something of it is due, wakes when something new may be, and comes by every SHARD_LOOK_MS in any case. It keeps nothing:
 * a shard that dies is started again and finds in the store what there is to do. What was missed meanwhile is done at once,
 * never early: deferred jobs by wall time, leases and backoff by steady time.
 */
#ifndef COPPICE_ACTORS_SHARD_H
#define COPPICE_ACTORS_SHARD_H

#include "actors/jobs.h"
#include "runtime/actor.h"

#define SHARD_LOOK_MS      2000u
#define SHARD_ROUNDS_MAX   64u  /* commands in a row, before others get their turn */
#define SHARD_AGAIN_MS     250u /* after a command that couldn't be done */
#define SHARD_PATIENCE_MS  30000u
#define SHARD_RECOVER_ROWS 128u /* jobs of one view, of those that are looked at after a start: some 0.1 ms */
/* Between two of these, so that a start with many jobs serves its clients first: 100,000 of them take two seconds, and 5 % of a CPU. */
#define SHARD_REST_MS 2u

extern const struct actor_class shard_class; /* args: its number, u32 */

#endif
