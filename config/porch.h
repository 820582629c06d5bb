/* The porch: who answers while the store is still being opened.
 *
 * An orchestrator tells a slow start from a crash loop by asking (spec/control.md CTL-535). So when opening takes longer
 * than PORCH_AFTER_NS, a small tree of its own takes the listening sockets: the probes answer (alive, not started, not
 * ready), everything else is 503 with Retry-After in the shape of its surface. Each answer closes its connection, and
 * who comes between the porch and the server waits in the backlog. Before the porch, all has been checked that can be
 * wrong without a store.
 *
 *     porch        one_for_one
 *     ├─ waiter        tells the service manager (config/notify.h)
 *     ├─ connections   one actor per connection
 *     └─ a listener per socket
 *
 * It isn't in the topology: it has gone before the server's tree begins.
 */
#ifndef COPPICE_CONFIG_PORCH_H
#define COPPICE_CONFIG_PORCH_H

#include "config/fronts.h"
#include "config/settings.h"
#include "config/sockets.h"

#define PORCH_AFTER_NS        (100 * NS_PER_MS)
#define PORCH_CONNECTIONS_MAX 1024u /* at a time */
#define PORCH_DRAIN_MS        1000  /* for a request that is arriving when the store is open */

/* Blocks until the store's opening (config/opening.h) has ended, well or not: true; false: SIGTERM or SIGINT came. Boot,
 * without another runtime. */
bool porch_serve(const struct settings *settings, const struct sockets *sockets, struct fronts *fronts);

#endif
