/* Spans of jobs: what happened to a job, and to what tells of it, as parts of the trace in which it was submitted.
 *
 *     job.submit                        below the span of the request
 *       job.enqueue  job.assign  job.run
 *         job.report                    below job.run, or below job.cancel
 *       job.cancel                      linked to the request that asked for it
 *       job.retry                       linked to the request that asked for it; the next attempt's spans are below
 *       webhook.notify                  below the span of the change that it tells of; ends with the delivery
 *         webhook.attempt               one for each
 *
 * The trace is that of the traceparent which is kept with the job, so it goes on over restarts. A span's id is a hash of what it is
 * the span of: whoever needs a parent can say its id without asking anybody. A job that goes back into the queue when its lease is
 * over has its enqueue and assign of that attempt twice.
 *
 * Called after the commit, by whoever tells of it (actors/jobs.h, actors/webhooks.h), from an actor; nothing waits or allocates. One
 * view is opened for each, while somebody wants spans; without one to be had the span is lost and counted. Who wants them is one
 * floor up (http/otlp.h), and is called there and then.
 */
#ifndef COPPICE_ACTORS_JOB_SPANS_H
#define COPPICE_ACTORS_JOB_SPANS_H

#include "actors/jobs.h"
#include "actors/webhooks.h"

#define JOB_SPAN_ATTRIBUTES 4u
#define JOB_SPAN_EVENTS_LOOK \
    256u /* so many events are looked at to find a delivery's attempt; beyond: the first */

struct job_span {
    uint8_t trace_id[16], span_id[8], parent_id[8];
    const struct job_link *link; /* or NULL */
    const char *name;            /* static */
    bool outward;                /* it is somebody else who is asked */
    bool failed;
    uint64_t began_ns, ended_ns; /* as actor_now */
    struct {
        const char *key;  /* static; NULL: no more */
        const char *text; /* good during the call; NULL: the number */
        int64_t number;
    } attributes[JOB_SPAN_ATTRIBUTES];
};

/* Gets only those of traces that are sampled. Must not wait. */
typedef void job_span_sink(const struct job_span *span);
void job_spans_to(job_span_sink *to); /* NULL: nobody. Any thread */
uint64_t job_spans_lost(void);        /* any thread */

void job_spans_note(const struct job_told *told);
void job_spans_attempt(const struct webhook_told *told);

#endif
