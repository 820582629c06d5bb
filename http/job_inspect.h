/* Jobs as operators see them: everybody's.
 *
 *     GET /jobs                     all of them, newest first (http/job_list.h): state, outcome, type, client, limit, after
 *     GET /jobs/{job_id}/record     one, with its lease and its row as it is stored
 *     GET /jobs/{job_id}/report     what its attempts came to: the one that counts, and those before it
 *     GET /jobs/{job_id}/events     what happened to it, as its client sees it
 *     GET /jobs/{job_id}:explain    why it isn't running, or who runs it (http/job_explain.h)
 *
 * Payloads and results of users' kinds aren't shown here but in reports. Handlers run in the connection's actor.
 */
#ifndef COPPICE_HTTP_JOB_INSPECT_H
#define COPPICE_HTTP_JOB_INSPECT_H

#include "http/route.h"

#define JOB_REPORTS_SHOWN 100u /* of earlier attempts, the newest */

extern const struct route job_operator_routes[];
extern const size_t job_operator_routes_count;

#endif
