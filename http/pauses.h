/* Pauses as operators see them (store/job_pause.h).
 *
 *     POST /jobs:pause          {scope: all|kind|client, kind|client, until, reason}: nothing of it is claimed from now on
 *     POST /jobs:resume         {scope, kind|client, reason}: it goes on, and what was set aside comes back to its place
 *     GET  /jobs/pauses         those in force, and those whose jobs are on their way back, page by page
 *     POST /jobs/{job_id}:run   this one now, whatever is paused
 *
 * What runs goes on. Each change leaves an audit entry. Handlers run in the connection's actor and wait for the store.
 */
#ifndef COPPICE_HTTP_PAUSES_H
#define COPPICE_HTTP_PAUSES_H

#include "http/route.h"

#define PAUSES_BODY_MAX 8192u

extern const struct route pause_routes[]; /* the operator's */
extern const size_t pause_routes_count;

#endif
