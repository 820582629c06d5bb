/* What happens to jobs by themselves, when its time has come: the commands job.fire and job.reap of scheduler shards.
 *
 *     queue of the due index  what is due         what becomes of it
 *     DUE_JOB_TIME            a deferred job      CREATED -> QUEUED; with a full queue it stays, and is due again in a second
 *     DUE_JOB_BACKOFF         a retried one       its row comes into the queue; it is QUEUED already
 *     DUE_JOB_LEASE           a claimed one       extended meanwhile: due again when that is over
 *                                                 ASSIGNED: the exception, back to QUEUED
 *                                                 RUNNING: FAILED, RUNNER_LOST; with auto_retry QUEUED again right away
 *
 * An entry that is damaged is written again, when its job says the same; one that is no job's own goes.
 *
 * job.reap does the last two at once for claims of an earlier start of the server, whose workers are gone (AMB-J-38). A job that lacks
 * one of its events it marks as incomplete, with an audit entry as the record of it; whoever claims it brings it to FAILED (AMB-J-12).
 */
#ifndef COPPICE_STORE_JOB_FIRE_H
#define COPPICE_STORE_JOB_FIRE_H

#include "store/job.h"

#define JOB_FIRE_MAX      80u /* entries of one command: 48 bytes of answer each */
#define JOB_FIRE_AGAIN_US UINT64_C(1000000)
#define JOB_SET_BY_US \
    UINT64_C(3600000000) /* what is damaged is looked at again then, and is in nobody's way until then */

#define JOB_FIRE_FIELDS(X)                                                                      \
    X(shard, U16, 0, 1)                                                                         \
    X(wall_us, TIME, 0, 1)                                                                      \
    X(steady_us, TIME, 0, 1)                                                                    \
    X(grace_us, TIME, 0, 1) /* no claim of a worker outside ends before, by steady time (J5) */ \
    X(start, U64, 0, 1)                                                                         \
    X(queue_max, U32, 0, 1)                                                                     \
    X(retry_max, U16, 0, 1)                                                                     \
    X(kept_us, U64, 0, 1)                                                                       \
    X(most, U16, 0, 1)                                                                          \
    X(auto_retry, U8, 0, 2) /* 1: one that is lost is retried at once, if it may be */          \
    X(base_us, U64, 0, 2)   /* of that retry, as of job.retry */                                \
    X(most_us, U64, 0, 2)                                                                       \
    X(chance, U32, 0, 2) /* one for all jobs of the command, of which each makes its own */     \
    X(first_fence, U64, 0,                                                                      \
      3) /* claims from this one on are of this start: grace_us isn't for them; 0: for all */
RECORD_STRUCT(job_fire, JOB_FIRE_FIELDS);
extern const struct command_class
    job_fire_class; /* code 207; answer: struct job_fired, one behind the other */

#define JOB_REAP_FIELDS(X)              \
    X(ids, BYTES, JOB_FIRE_MAX * 16, 1) \
    X(steady_us, TIME, 0, 1)            \
    X(start, U64, 0, 1)                 \
    X(retry_max, U16, 0, 1)             \
    X(kept_us, U64, 0, 1)               \
    X(auto_retry, U8, 0, 2)             \
    X(queue_max, U32, 0, 2)             \
    X(base_us, U64, 0, 2)               \
    X(most_us, U64, 0, 2)               \
    X(chance, U32, 0, 2)
RECORD_STRUCT(job_reap, JOB_REAP_FIELDS);
extern const struct command_class job_reap_class; /* code 208; answer: the same */

struct job_fired {
    struct uuid id, client;
    uint64_t ran_us; /* JOB_FAIL, JOB_RETRY: since it started */
    uint8_t
        event; /* enum job_event; JOB_RETRY: JOB_FAIL, and JOB_RETRY right behind it; JOB_EVENT_COUNT: none, it only
                      * may be claimed now, or has more time */
    uint8_t from, kind;
    uint8_t
        postponed; /* for the first time: the queue was full, or those who have to be told can't be told now */
    uint16_t attempt;   /* the one that has failed */
    uint8_t damaged;    /* it can't be read or changed, and was set by */
    uint8_t incomplete; /* it lacks an event, and was marked */
};

#endif
