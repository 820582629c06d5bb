/* What a submit asks for: the body of POST /v1/jobs, or of POST /v1/work:submit, read into the command job.submit.
 *
 * Read before the schema of the contract is asked, because the two say what is wrong in different words: a member that is missing or
 * of the wrong JSON type is RFA_REQUEST_MALFORMED, whatever breaks a rule of the domain is RFA_JOB_VALIDATION_FAILED, and the schema
 * knows of the first alone. What passes here passes the schema. Members that aren't known count for the digest and nothing else
 * (AMB-J-57).
 *
 *     type          EXECUTE, DEFERRED or EMIT_EVENT, as far as jobs.allowed_types has it
 *     execution_at  of DEFERRED, and of no other; whether it is over, the command says
 *     callback      a URL that may be told (actors/callback_url.h)
 *     work_kind     of the catalogue, and not PAYLOAD_INVALID; in work:submit one of "x.", which must be there
 *     payload       work:submit: any JSON up to JOB_PAYLOAD_MAX
 *     priority      0 to 9, where jobs.priorities is on
 *     idempotency_key, or else the header Idempotency-Key; and X-Request-Id when the client chose it (AMB-J-30)
 *
 * From the connection's actor: reads the clock, never blocks; memory is its arena's.
 */
#ifndef COPPICE_HTTP_JOB_REQUEST_H
#define COPPICE_HTTP_JOB_REQUEST_H

#include "http/catalogue.h"
#include "http/request.h"
#include "http/response.h"
#include "store/job_submit.h"

struct job_request_settings {
    bool allow_private; /* outbound.allow_private: callbacks may go to private addresses */
};
/* Boot and reload; any thread. */
void job_request_configure(const struct job_request_settings *settings);

/* Prechecks of routes: q->prepared is a struct job_submit with everything but its id, in the arena; spans borrow from the request.
 * A body that is no object is left to the schema. */
enum error_code job_request_precheck(struct request *q, struct response *r);
enum error_code job_request_work_precheck(struct request *q, struct response *r);

/* What is wrong with an execution_at that is over. */
extern const char job_request_past[];

#endif
