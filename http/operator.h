/* The operator's view: a listener of its own, on loopback or a unix socket, without authentication.
 *
 *     GET  /healthz                  200 while the process can answer
 *     GET  /readyz                   200 when every declared actor lives and all adapters are ready, else 503
 *     GET  /stats                    figures of the runtime
 *     GET  /stats/tree               what was declared beside what lives; ?children=N of each supervisor;
 *                                    ?format=text for a drawing
 *     GET  /stats/events             recent telemetry, oldest first; ?limit=N, and ?since=S with the `next` of
 *                                    an earlier answer
 *     GET  /metrics                  Prometheus text
 *     POST /chaos/actors/{who}:kill  kill it, by pid or registered name; says who died, who holds its name now
 *                                    and how long that took
 *
 * Errors are problem+json (RFC 9457). HEAD works where GET does. Requests that a browser sends on behalf of a
 * page from elsewhere may not change anything (403), nor may they reach the listener under a foreign host
 * name (421).
 *
 * operator_class is the listener: it watches the listening socket, which the process keeps while listeners
 * come and go, so that clients wait in the backlog meanwhile; per connection it has the connection supervisor
 * start an actor. When that has operator.connections of them, or there are no descriptors left, newcomers get
 * 503 at once.
 */
#ifndef COPPICE_HTTP_OPERATOR_H
#define COPPICE_HTTP_OPERATOR_H

#include "http/living.h"
#include "runtime/actor.h"

/* Owned by whoever starts the listener; borrowed for the process's life, and constant. */
struct operator_options {
    int listening; /* a non-blocking listening socket */
    bool loopback_only;
    uint64_t idle_ns;
    const char *connections; /* the registered name of the supervisor of connections */
    const char *version;
    struct living_rows rows;
};

struct operator_args {
    const struct operator_options *options;
};
extern const struct actor_class operator_class;

#endif
