/* Workers outside: a client's own programs that run its jobs of kinds x.* (docs/jobs.md).
 *
 *     POST /v1/work:claim      some jobs that wait, now or within wait_ms; each with a lease and its token
 *     POST /v1/work:heartbeat  another lease; whether the job was cancelled
 *     POST /v1/work:complete   SUCCEEDED, with a result
 *     POST /v1/work:fail       FAILED, or again after a while
 *
 * A worker sees the jobs of its own client and no others. The lease token is the claim's fence: whoever has lost the lease is
 * refused with 409, and what is said twice is answered twice and done once. A claim may wait: the connection's actor does, without
 * polling, and ends when the client has gone.
 *
 * Handlers run in the connection's actor and wait for the store.
 */
#ifndef COPPICE_HTTP_WORK_H
#define COPPICE_HTTP_WORK_H

#include "http/route.h"

#define WORK_CLAIM_MOST     32u /* jobs of one claim */
#define WORK_WAIT_MAX_MS    30000u
#define WORK_LEASE_MIN_MS   1000u
#define WORK_LEASE_MAX_MS   3600000u
#define WORK_BODY_MAX       65536u
#define WORK_BACKOFF_MAX_MS 86400000u

extern const struct route work_routes[];
extern const size_t work_routes_count;

#endif
