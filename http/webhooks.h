/* Webhooks over HTTP: where a client has its jobs' events sent to (spec/jobs.md, 9.10 and 9.11; the rest is ours).
 *
 *     POST   /v1/webhooks                     {url, events}: a new one; the same URL and events again are 409
 *     DELETE /v1/webhooks/{webhook_id}        nothing more goes there
 *     GET    /v1/webhooks                     the client's own, oldest first: at most WEBHOOKS_MAX
 *     GET    /v1/webhooks/{webhook_id}
 *     POST   /v1/webhooks/{webhook_id}:enable, :disable
 *     POST   /v1/webhooks/{webhook_id}:rotate a secret of its own, shown in this answer alone
 *
 * What is on its way to them is http/deliveries.h. The body of a new one is read before the contract's schema, as that of a submit is
 * (http/job_request.h), and in other words where JOB-186 has others: a member that is missing is RFA_JOB_VALIDATION_FAILED.
 *
 * Handlers run in the connection's actor and may wait for the store.
 */
#ifndef COPPICE_HTTP_WEBHOOKS_H
#define COPPICE_HTTP_WEBHOOKS_H

#include "http/route.h"

#define WEBHOOKS_BODY_MAX 65536u

extern const struct route webhook_routes[];
extern const size_t webhook_routes_count;

#endif
