/* What the outbox has given up, as operators see it (store/outbox.h).
 *
 *     GET  /outbox/dead               the dead rows, by partition and in each as they stood in the outbox, page by page
 *     POST /outbox/dead/{id}:revive   {reason}: this one back to where it stood; relays try it anew, with no attempts
 *
 * A row that can't be read is listed as such, and those behind it are. A revival leaves its audit entry in the same commit. One whose
 * job is damaged still is buried again. Handlers run in the connection's actor and wait for the store.
 */
#ifndef COPPICE_HTTP_OUTBOX_H
#define COPPICE_HTTP_OUTBOX_H

#include "http/route.h"

#define OUTBOX_BODY_MAX 8192u

extern const struct route outbox_routes[]; /* the operator's */
extern const size_t outbox_routes_count;

#endif
