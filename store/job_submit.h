/* Submitting a job: the command job.submit.
 *
 * The definition is made here, from the kind that was asked for or, when none was, from created_at (store/work_kind.h); so it is
 * the same whenever the command is applied. created_at never goes back: jobs are numbered in the order of their commits, and the
 * order of their times is the same one (AMB-J-37).
 *
 * A key (AMB-J-29) is kept as long as the job; the id of a request that the client chose itself, with an equal body, for a day
 * (AMB-J-30). A refused submit keeps neither.
 */
#ifndef COPPICE_STORE_JOB_SUBMIT_H
#define COPPICE_STORE_JOB_SUBMIT_H

#include "store/job.h"

#define JOB_LATE_US UINT64_C(1000000) /* so much behind now, execution_us is too late (AMB-J-44) */

#define JOB_SUBMIT_FIELDS(X)                                                              \
    X(id, UUID, 0, 1)                                                                     \
    X(client, UUID, 0, 1)                                                                 \
    X(type, U8, 0, 1)                                                                     \
    X(kind, U8, 0, 1)                         /* WORK_KIND_NONE: drawn */                 \
    X(kind_name, TEXT, WORK_KIND_NAME_MAX, 1) /* of WORK_KIND_USER */                     \
    X(priority, U8, 0, 1)                                                                 \
    X(execution_us, TIME, 0, 1) /* rounded up to a second; 0: at once */                  \
    X(callback, TEXT, JOB_CALLBACK_MAX, 1)                                                \
    X(payload, JSON, JOB_PAYLOAD_MAX, 1)                                                  \
    X(key, TEXT, 255, 1)    /* idempotency; empty: none */                                \
    X(digest, DIGEST, 0, 1) /* of the body */                                             \
    X(repeat, TEXT, 128, 1) /* the request's id, when the client chose it; empty: none */ \
    X(request_id, TEXT, 128, 1)                                                           \
    X(trace, TEXT, 55, 1)                                                                 \
    X(should_fail_ppm, U32, 0, 1)                                                         \
    X(runtime_max_ms, U32, 0, 1)                                                          \
    X(payload_max, U32, 0, 1)                                                             \
    X(queue_max, U32, 0, 1)                                                               \
    X(active_max, U32, 0, 1) /* 0: none */
RECORD_STRUCT(job_submit, JOB_SUBMIT_FIELDS);
/* Code 200; answer: a struct job_submitted, encoded.
 * ERR_EXISTS      the id is taken
 * ERR_KEY_REUSED  the key came with another body
 * ERR_INVALID     no such type or kind, a payload above payload_max; a DEFERRED one without execution_us or at least JOB_LATE_US
 *                 behind it; another one with it
 * ERR_QUEUE_FULL, ERR_ACTIVE
 * ERR_LIMIT       the ledger is full, or an outbox is */
extern const struct command_class job_submit_class;

/* made: 0: it was there before. */
#define JOB_SUBMITTED_FIELDS(X) \
    X(id, UUID, 0, 1) X(created_us, TIME, 0, 1) X(state, U8, 0, 1) X(made, U8, 0, 1) X(kind, U8, 0, 1)
RECORD_STRUCT(job_submitted, JOB_SUBMITTED_FIELDS);
#define JOB_SUBMITTED_SIZE (16 + 8 + 1 + 1 + 1)

/* QUEUED, ASSIGNED and RUNNING ones. */
enum error job_count_active(struct txn *txn, int64_t *ret_count);
enum error job_count(struct txn *txn, uint8_t state, int64_t *ret_count);

#endif
