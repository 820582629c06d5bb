/* Queues: what the queue of jobs owes to the calendar, done when it is due.
 *
 *     queue of the due index   command       what it does
 *     DUE_JOB_PAUSE            job.unpark    ends pauses whose time is over, and brings back what was set aside (store/job_pause.h)
 *     DUE_JOB_BULK             job.bulk_step takes the first bulk action that is due a step further (store/job_bulk.h)
 *     DUE_SCHEDULE             schedule.fire deals with the first time that is due (store/job_schedule.h)
 *
 * And, whenever it looks, whether clients take turns as jobs.fairness says: job.fairness, step by step, until all that was queued
 * before has been given its turn (store/job_fairness.h). And whether jobs.client_concurrency is what it was: when it isn't, and after a
 * start, job.admit goes through the clients whose jobs are set aside for it (store/job_limit.h). And whether the clock has gone back: when it has,
 * and after a start, schedule.retime goes through the schedules (store/job_schedule.h).
 *
 * One actor: none of this is in the way of a job, and each command is short. It sleeps until something is due, is woken when
 * something new may be, and comes by every QUEUES_LOOK_MS in any case. What it keeps is what it has looked at, so one that dies is started
 * again and finds in the store where things are.
 */
#ifndef COPPICE_ACTORS_QUEUES_H
#define COPPICE_ACTORS_QUEUES_H

#include "actors/jobs.h"
#include "runtime/actor.h"
#include "store/job_schedule.h"

#define QUEUES_NAME          "queues"
#define QUEUES_LOOK_MS       5000u
#define QUEUES_ROUNDS_MAX    16u  /* commands of each kind in a row, before others get their turn */
#define QUEUES_AGAIN_MS      250u /* after a command that couldn't be done */
#define QUEUES_PATIENCE_MS   30000u
#define QUEUES_LIMIT_WALKS   2u                /* through the clients, when a limit is another one */
#define QUEUES_CLOCK_BACK_US UINT64_C(1000000) /* less than that is no clock that was set */

extern const struct actor_class queues_class; /* no args */

/* The command that makes a job of a schedule, with a new id and the limits as they are set; whose and which is the caller's. From an
 * actor. */
struct schedule_fire queues_fire(void);
void queues_tell_fired(const struct schedule_fired *fired); /* what came of it, as jobs_tell */

#endif
