/* What clients change of their jobs: the commands job.cancel and job.retry.
 *
 * Both may be repeated: a job that is final, or isn't FAILED, is answered as it is, and nothing is written. `client` all zero:
 * an operator, to whom every job is open.
 *
 *     ERR_NOT_FOUND   no such job
 *     ERR_FORBIDDEN   another client's
 *     ERR_CONFLICT    (retry) no retry is left
 *     ERR_QUEUE_FULL  (retry) it stays FAILED
 *     ERR_LIMIT       those who have to be told can't be told now
 */
#ifndef COPPICE_STORE_JOB_CHANGE_H
#define COPPICE_STORE_JOB_CHANGE_H

#include "store/job.h"

struct job_changed {
    uint64_t updated_us;
    uint64_t ran_us; /* since it started, when it was RUNNING */
    uint16_t attempt;
    uint8_t state, from;
    uint8_t made; /* 0: it is as it was */
    uint8_t kind, failure, unused;
    struct uuid job_client;
    char worker[JOB_WORKER_MAX + 8]; /* who had it, with a 0 behind; empty: nobody */
};

#define JOB_CANCEL_FIELDS(X) X(id, UUID, 0, 1) X(client, UUID, 0, 1) X(kept_us, U64, 0, 1)
RECORD_STRUCT(job_cancel, JOB_CANCEL_FIELDS);
extern const struct command_class job_cancel_class; /* code 205; answer: struct job_changed */

/* The job may be claimed again from steady_us + backoff_us on (AMB-J-35); who submits has drawn that. */
#define JOB_RETRY_FIELDS(X)  \
    X(id, UUID, 0, 1)        \
    X(client, UUID, 0, 1)    \
    X(retry_max, U16, 0, 1)  \
    X(queue_max, U32, 0, 1)  \
    X(steady_us, TIME, 0, 1) \
    X(base_us, U64, 0, 1)    \
    X(most_us, U64, 0, 1)    \
    X(chance, U32, 0, 1) /* of 2^32: where between half and all of the backoff */
RECORD_STRUCT(job_retry, JOB_RETRY_FIELDS);
extern const struct command_class job_retry_class; /* code 206; answer: struct job_changed */

/* What such a command answers. */
struct job_changed job_changed_of(const struct job *job, uint8_t from, bool made);
/* One that isn't final, within a command: CANCELED. job_write is the caller's. */
enum error job_cancel_now(struct txn *txn, struct job *job, uint64_t at_us, uint64_t kept_us);
/* Whether a FAILED one may be retried now: OK, or what job.retry would refuse it with. */
enum error job_retriable(struct txn *txn, const struct job *job, uint16_t retry_max, uint32_t queue_max);
/* random(0.5..1.0) x min(base x 2^(attempt - 2), most), for the attempt that it delays. */
uint64_t job_backoff_us(uint16_t attempt, uint64_t base_us, uint64_t most_us, uint32_t chance);
/* A FAILED job, within a command: QUEUED as the next attempt; an error means that nothing has changed. job_write is the
 * caller's. */
enum error job_retry_now(struct txn *txn, struct job *job, uint64_t at_us, uint64_t steady_us,
                         uint64_t backoff_us);

#endif
