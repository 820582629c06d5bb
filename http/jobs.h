/* Jobs over HTTP: what a client does with its own (spec/jobs.md, 9.5 to 9.9, and the extensions that its contract lists).
 *
 *     POST /v1/jobs                    submit: http/job_request.h says what may stand in it
 *     GET  /v1/jobs                    its jobs, newest first (http/job_list.h)
 *     GET  /v1/jobs/{job_id}           one of them
 *     GET  /v1/jobs/{job_id}/report    what it came to, with all its events; once it is final
 *     GET  /v1/jobs/{job_id}/events    those so far
 *     POST /v1/jobs/{job_id}/cancel, /retry
 *     GET  /v1/jobs/{job_id}:explain   why it isn't running, or who runs it (http/job_explain.h)
 *     POST /v1/work:submit             a job of a kind of the client's own, for its own workers (http/work.h)
 *
 * A submit, a cancel and a retry are one command each, and looked up nowhere before. A read is one view; one that has more to show
 * than fits takes several, one after the other, and none is open while the client takes the bytes (http/rendered.h).
 *
 * Handlers run in the connection's actor and may wait for the store.
 */
#ifndef COPPICE_HTTP_JOBS_H
#define COPPICE_HTTP_JOBS_H

#include "http/route.h"

/* Of any job when an operator asks. */
void jobs_serve_events(const struct request *q, struct response *r);

extern const struct route job_routes[];
extern const size_t job_routes_count;

#endif
