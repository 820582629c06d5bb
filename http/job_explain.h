/* Why a job isn't running, or who runs it: GET /v1/jobs/{job_id}:explain, and the same for operators.
 *
 * One sentence for people, and what it says for programs: a reason of the list below, until when it holds if that is known, how many
 * jobs are before it, the pause that is in its way, the lease. Of a job that a worker of the server has, beside it the actor that
 * has it: its pid, what it waits for, its mailbox, how often it was started again.
 *
 * One view, and no more than JOB_AHEAD_MAX rows of the queue; then the actor is asked, which may take EXPLAIN_ANSWER_MS. What is told
 * was true one after the other, not at one instant.
 */
#ifndef COPPICE_HTTP_JOB_EXPLAIN_H
#define COPPICE_HTTP_JOB_EXPLAIN_H

#include "http/route.h"

#define JOB_AHEAD_MAX     1000u
#define EXPLAIN_ANSWER_MS 500u

/* X(ID, "reason"), in the order in which they are looked for among jobs that are QUEUED. */
#define JOB_REASONS(X)                                                                        \
    X(FINAL, "final")               /* it has come to its end */                              \
    X(RUNNING, "running")           /* a worker runs it */                                    \
    X(ASSIGNED, "assigned")         /* a worker has it and hasn't begun */                    \
    X(SCHEDULED, "scheduled")       /* its time hasn't come */                                \
    X(QUEUE_FULL, "queue_full")     /* its time has come, and there was no room for it */     \
    X(BACKOFF, "backoff")           /* it was retried, and waits */                           \
    X(PAUSED, "paused")             /* everything, its kind or its client is */               \
    X(CLIENT_LIMIT, "client_limit") /* its client has as many running as it may */            \
    X(OUTSIDE, "outside")           /* only the client's own workers run it, and none has */  \
    X(NO_WORKERS, "no_workers")     /* there are none, or none is alive */                    \
    X(ACTIVE_LIMIT, "active_limit") /* as many are active as may be: claims are held back */  \
    X(PRESSURE, "pressure")         /* the store has so much to do that claims are put off */ \
    X(QUEUED, "queued")             /* others are before it, or all workers have something to do */

enum job_reason {
#define X(id, name) JOB_REASON_##id,
    JOB_REASONS(X)
#undef X
        JOB_REASON_COUNT
};
const char *job_reason_name(enum job_reason reason);

void job_explain_serve(const struct request *q, struct response *r);

#endif
