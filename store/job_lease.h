/* Leases: who has a job, until when, and what came of it. The commands of workers.
 *
 *     job.claim --> job.start --> job.heartbeat ... --> job.finish
 *
 * A claim gives a fence, a number that only grows. Whatever a worker says about a job carries it, and counts only while the job's
 * fence is the same, its lease isn't over (by steady time) and nobody has cancelled it: two may run at the same time, two can
 * never both count. What is said twice is answered twice and written once. Claims that workers outside have from
 * an earlier start aren't over before a usual length of a lease after this one, whether or not their timers have been looked at since
 * (grace_us, J5); those of this start (first_fence) end when their workers were told.
 *
 *     ERR_NOT_FOUND  no such job (or, of a claim: nothing to do)
 *     ERR_CONFLICT   it was canceled
 *     ERR_FENCED     somebody else has it, or it isn't in a state for this
 *     ERR_EXPIRED    the lease is over
 *     ERR_LIMIT      those who have to be told can't be told now: again later
 *
 * A claim that meets jobs which may not run now (store/job_pause.h) sets them aside and looks further, JOB_SET_ASIDE_MAX of them
 * at most. When it has done so and found nothing else it succeeds with no job: there may be one for the next claim.
 */
#ifndef COPPICE_STORE_JOB_LEASE_H
#define COPPICE_STORE_JOB_LEASE_H

#include "store/job.h"

#define JOB_CLAIM_MAX       56u /* jobs of one claim: 72 bytes each, in one answer */
#define JOB_CLAIM_KINDS_MAX 16u
/* Kinds outside that a claim of all kinds chooses from; of more, other ones with each job. They are looked for once in a claim, with one
 * look into the index each, 0.5 us or so: 0.5 ms of the writer's time at most, whatever the number of jobs. */
#define JOB_CLAIM_WORKS_MAX 1024u
#define JOB_SET_ASIDE_MAX   256u /* jobs of one claim that may not run now: three rows and a counter each */
#define JOB_PASSED_MAX \
    256u /* and that are damaged, or of which nobody can be told now: they stay where they are */

#define JOB_CLAIM_FIELDS(X)                                                                          \
    X(lane, U8, 0, 1)                            /* LANE_SERVER or LANE_OUTSIDE */                   \
    X(client, UUID, 0, 1)                        /* LANE_OUTSIDE: whose */                           \
    X(works, BYTES, JOB_CLAIM_KINDS_MAX * 16, 1) /* LANE_OUTSIDE: of these kinds; empty: of all */   \
    X(most, U16, 0, 1)                                                                               \
    X(running, U8, 0, 1)      /* 1: they start with the claim: ASSIGNED and RUNNING in one commit */ \
    X(owner, U64, 0, 1)       /* the start of the server; 0: a worker outside */                     \
    X(running_max, U32, 0, 1) /* of all that may be claimed at one time; 0: none */                  \
    X(client_max, U32, 0, 1)  /* the same of one client */                                           \
    X(steady_us, TIME, 0, 1)                                                                         \
    X(lease_us, U64, 0, 1) /* how long */                                                            \
    X(worker, TEXT, JOB_WORKER_MAX, 1)
RECORD_STRUCT(job_claim, JOB_CLAIM_FIELDS);
extern const struct command_class
    job_claim_class; /* code 201; answer: struct job_claimed, one behind the other; it may stand (store_stand) */
struct job_claimed {
    struct uuid id, client;
    uint64_t fence, queued_us, claimed_us, lease_us;
    uint16_t attempt;
    uint8_t kind;
    uint8_t running;    /* 1: it is RUNNING, as job_claim.running wanted it */
    uint8_t incomplete; /* it lacks an event: it is to be failed */
    uint8_t unused[3];
};

#define JOB_START_FIELDS(X) \
    X(id, UUID, 0, 1) X(fence, U64, 0, 1) X(steady_us, TIME, 0, 1) X(lease_us, U64, 0, 1)
RECORD_STRUCT(job_start, JOB_START_FIELDS);
extern const struct command_class job_start_class; /* code 202; answer: started_us, u64 */

#define JOB_HEARTBEAT_FIELDS(X)                        \
    X(id, UUID, 0, 1)                                  \
    X(client, UUID, 0, 1) /* all zero: whosever */     \
    X(fence, U64, 0, 1)                                \
    X(steady_us, TIME, 0, 1)                           \
    X(lease_us, U64, 0, 1)                             \
    X(progress, U16, 0, 1) /* above 1000: as it was */ \
    X(stage, TEXT, JOB_STAGE_MAX, 1)                   \
    X(grace_us, TIME, 0, 2)   /* as of job.fire */     \
    X(first_fence, U64, 0, 3) /* the same */
RECORD_STRUCT(job_heartbeat, JOB_HEARTBEAT_FIELDS);
extern const struct command_class job_heartbeat_class; /* code 203; answer: lease_us until when, u64 */

#define JOB_FINISH_FIELDS(X)                                                                       \
    X(id, UUID, 0, 1)                                                                              \
    X(client, UUID, 0, 1) /* all zero: whosever */                                                 \
    X(fence, U64, 0, 1)                                                                            \
    X(event, U8, 0, 1) /* JOB_SUCCEED, JOB_FAIL or JOB_TIME_OUT */                                 \
    X(failure, U8, 0, 1)                                                                           \
    X(retryable, U8, 0, 1)                                                                         \
    X(progress, U16, 0, 1) /* in thousandths; 0: not said */                                       \
    X(outputs, U32, 0, 1)                                                                          \
    X(outputs_bytes, U64, 0, 1)                                                                    \
    X(steady_us, TIME, 0, 1)                                                                       \
    X(kept_us, U64, 0, 1)                                                                          \
    X(retry_max, U16, 0, 1)                                                                        \
    X(auto_retry, U8, 0, 1)  /* 1: a failure that is retryable is retried at once, if it may be */ \
    X(backoff_us, U64, 0, 1) /* of that retry */                                                   \
    X(message, TEXT, JOB_MESSAGE_MAX, 1)                                                           \
    X(result, JSON, JOB_RESULT_MAX, 1)                                                             \
    X(grace_us, TIME, 0, 2) /* as of job.fire */                                                   \
    X(queue_max, U32, 0, 2) /* with so many QUEUED it stays FAILED (AMB-J-14) */                   \
    X(base_us, U64, 0, 2)   /* not 0: instead of backoff_us, by the attempt, as of job.retry */    \
    X(most_us, U64, 0, 2)                                                                          \
    X(chance, U32, 0, 2)                                                                           \
    X(first_fence, U64, 0, 3) /* as of job.fire */
RECORD_STRUCT(job_finish, JOB_FINISH_FIELDS);
extern const struct command_class job_finish_class; /* code 204; answer: struct job_finished */
struct job_finished {
    struct uuid client;
    uint64_t started_us, finished_us;
    uint8_t state, made;        /* made 0: it was finished so before */
    uint8_t kind, attempt_last; /* no retry is left */
    uint16_t attempt;
    uint8_t retried; /* it was retried by itself right away: QUEUED again, as the next attempt */
    uint8_t unused;
};

/* Until when it is claimed, by steady time; grace_us and first_fence as of job.fire. */
uint64_t job_lease_end(const struct job *job, uint64_t grace_us, uint64_t first_fence);
/* A RUNNING job ends without its worker: RUNNER_LOST. Within a command. */
enum error job_lose(struct txn *txn, struct job *job, uint64_t at_us, uint64_t kept_us, uint16_t retry_max);

/* Format 1 had leases in all shards of the due index: those of the rest go to where they are now, or away when they are no
 * job's timer. Once, when such a store is opened. */
enum error job_lease_gather(struct txn *txn);

#endif
