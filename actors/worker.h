/* Workers: each slot runs one job of the catalogue at a time.
 *
 *     claim --> start --> simulated work, a heartbeat every few seconds --> finish
 *
 * Each step is a command of its own, answered after its commit. A claim stands in the writer until there is a job (store_stand), and has
 * it in the commit that brought it into the queue if somebody was free then. A worker that dies between claim and start leaves a job
 * that is ASSIGNED, which goes back into the queue when its lease is over (JOB-282, JOB-314). The claim of the next one is sent right
 * behind the end of this one, so that one commit has both; and where the work takes no time the end is sent right behind the start, in
 * the same commit. What the work is stands in the job's definition; doing it is waiting, by steady time, so that a clock that is tried out
 * moves it along. A cancelled job is learnt of at once when whoever cancelled it says so (worker_stop), with the next heartbeat in any
 * case; what was brought too late is refused by the store.
 *
 * An end that the store can't write, for damage, is said again a few times, and then as FAILED with REPORT_GENERATION_FAILED.
 *
 * A worker keeps nothing: one that dies leaves a lease, which its shard ends, or a claim that stands, which the writer drops. When it is
 * started again it looks for a job that bears its name and is RUNNING: nobody else has that name, so nobody is at work on it, and it is
 * FAILED with RUNNER_LOST at once instead of at the end of its lease. One that is ASSIGNED is left to its lease (AMB-J-11). Each says every
 * workers.poll_interval that his claim still stands, by the settings of then: where jobs are held back by a limit, nobody is told when
 * there is room. A new writer wakes all of them.
 */
#ifndef COPPICE_ACTORS_WORKER_H
#define COPPICE_ACTORS_WORKER_H

#include "actors/jobs.h"
#include "runtime/actor.h"

#define WORKER_NAME         "worker:" /* and its number: the name it is registered under, and that jobs bear */
#define WORKER_PATIENCE_MS  30000u    /* for a commit */
#define WORKER_AGAIN_MS     100u      /* after one that couldn't be done */
#define WORKER_REPORT_TRIES 3u        /* of an end that is refused for damage, before it is another one */
#define WORKER_LEFT_MAX     16384u    /* leases that one that was started again looks through */
#define WORKER_SHORT_US     1000u     /* work that is shorter isn't waited for */
#define WORKER_AHEAD_US \
    10000u /* by which a start may be told for later than it was: a job has a handful of events then */

extern const struct actor_class worker_class; /* args: its number, u32 */

/* From an actor: whether one of them lives. */
bool worker_any(const struct jobs_settings *settings);
/* From an actor: whoever runs this job may stop. `worker` is the job's; one that isn't one of these is passed over. */
void worker_stop(const char *worker, const struct uuid *job);

#endif
