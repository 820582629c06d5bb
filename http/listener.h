/* Listeners: one actor per listening socket and scheduler; accepts, counts and hands over to connections.
 *
 * Each scheduler has its own socket on the same address (SO_REUSEPORT), so that a connection is accepted, served
 * and closed on one core. Per connection the listener has its connection supervisor start an actor
 * (http/connection.h) on its own scheduler. At front.connections, at the cap of one address, or without
 * descriptors, newcomers are told 503 and closed; a reserve of descriptors makes that possible, and nothing spins:
 * after EMFILE the listener tries again when a connection has ended or LISTENER_RETRY_MS have passed. That newcomers are
 * turned away is an event (http.crowded) at the first of them, and again each LISTENER_CROWDED_MS with their count. When the
 * server stops (front->draining), who waits at the socket is still taken in, and then it listens no longer:
 * newcomers are refused instead of being left to wait and reset.
 */
#ifndef COPPICE_HTTP_LISTENER_H
#define COPPICE_HTTP_LISTENER_H

#include "http/front.h"
#include "runtime/actor.h"

#define LISTENER_RETRY_MS   50
#define LISTENER_CROWDED_MS 10000
#define LISTENER_LEAVE_FREE 64 /* for clients: operators, receivers of webhooks and files have these */

struct listener_args {
    int listening; /* a non-blocking listening socket, the process's */
    bool tls;      /* connections speak TLS (tls_context_here) */
    struct front *front;
    uint32_t leave_free;     /* descriptors for others than those who come here (http/connection.h) */
    bool keep;               /* the socket outlives a stop: who waits there is for the next server */
    uint32_t drain_ms;       /* what a connection has to finish its request in when the server stops */
    const char *connections; /* the registered name of the supervisor of connections; static */
};
extern const struct actor_class listener_class;

#endif
