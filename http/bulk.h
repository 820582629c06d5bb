/* Bulk actions over HTTP (store/job_bulk.h).
 *
 *     POST /v1/jobs:bulk                          {action, filter, dry_run}: of a client's own jobs
 *     GET  /v1/operations/{operation_id}          how far it is, and what came of it
 *     POST /v1/operations/{operation_id}:abort
 *
 * and without /v1 on the operator's listener, where the filter may name a client, and an audit entry says who did it. A dry run
 * changes nothing: it says how many jobs would be changed now, and shows some of them. It looks at BULK_DRY_JOBS jobs at most, a
 * view of BULK_LOOK_MAX at a time, and says whether that were all.
 *
 * Handlers run in the connection's actor and wait for the store.
 */
#ifndef COPPICE_HTTP_BULK_H
#define COPPICE_HTTP_BULK_H

#include "http/route.h"

#define BULK_BODY_MAX 8192u
#define BULK_SAMPLE   10u
#define BULK_DRY_JOBS 102400u /* some tenths of a second of one scheduler, which others share */

extern const struct route bulk_routes[]; /* clients' */
extern const size_t bulk_routes_count;
extern const struct route bulk_operator_routes[];
extern const size_t bulk_operator_routes_count;

#endif
