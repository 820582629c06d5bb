/* Deliveries over HTTP: what is on its way to a client's callbacks and webhooks, and what became of it. All of it is ours.
 *
 *     GET  /v1/deliveries                       newest first; of ?webhook_id= ?job_id= ?state=, page by page. Those of a job stand
 *                                               by receiver, in the order of its events
 *     GET  /v1/deliveries/{delivery_id}         with its newest attempts
 *     POST /v1/deliveries/{delivery_id}:resend  once more: a dead or delivered one begins anew, one that waits for its time is due now
 *
 * A page looks at no more than DELIVERIES_SCAN_MAX of them: with a filter that few pass it may have fewer than its limit, or none,
 * and a cursor all the same. Handlers run in the connection's actor and may wait for the store.
 */
#ifndef COPPICE_HTTP_DELIVERIES_H
#define COPPICE_HTTP_DELIVERIES_H

#include "http/route.h"

#define DELIVERIES_PAGE_USUAL 20u
#define DELIVERIES_PAGE_MAX   100u
#define DELIVERIES_SCAN_MAX   1024u /* that one page looks at */
#define DELIVERIES_SCAN_CHUNK 256u  /* of them in one view */

extern const struct route delivery_routes[];
extern const size_t delivery_routes_count;

#endif
