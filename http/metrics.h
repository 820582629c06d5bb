/* Metrics: GET /metrics, in Prometheus' text format 0.0.4 or, when Accept asks for it, OpenMetrics 1.0.
 *
 * Everything the product counts: the events, histograms, gauges and objectives of runtime/telemetry.h; the runtime, the
 * process, the store, the fronts; and requests by route. Labels have few values: routes, classes of actors, supervisors
 * that were declared, tables. Series are there from the start, with 0.
 *
 * Requests are counted in cells by route and METRICS_LANES lanes: each scheduler has its own, so that it adds without a lock,
 * and those that are too many for that share the last one; each request costs three additions. Memory: METRICS_ROUTES * METRICS_LANES * 384 bytes = 3 MiB of
 * addresses, touched as far as routes are used.
 */
#ifndef COPPICE_HTTP_METRICS_H
#define COPPICE_HTTP_METRICS_H

#include "http/route.h"
#include "runtime/telemetry.h"

#define METRICS_ROUTES      512u /* different routes; further ones are counted as those that have none */
#define METRICS_LANES       16u
#define METRICS_PROMETHEUS  "text/plain; version=0.0.4; charset=utf-8"
#define METRICS_OPENMETRICS "application/openmetrics-text; version=1.0.0; charset=utf-8"

/* By the front, after each answer; route, as it is listed: two of one method and path would be the same series twice; NULL: there
 * was none. From an actor, or what is released
 * with one; doesn't block. */
void metrics_request(const struct route *route, int status, uint64_t took_ns);
/* How many requests of the routes of version 1 were answered: those below /v1, and the control contract's without it. */
uint64_t metrics_version_requests(void);

void metrics_serve(const struct request *q, struct response *r);

#endif
