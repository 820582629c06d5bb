/* Surfaces: which routes each listener has, and the fronts made of them at boot. */
#ifndef COPPICE_HTTP_SURFACE_H
#define COPPICE_HTTP_SURFACE_H

#include "http/front.h"

/* The client port: public, jobs, control, probes. The operator's listener: its own, probes, and what is public. */
enum listening { LISTENING_CLIENT, LISTENING_OPERATOR, LISTENING_COUNT };

#define SURFACE_TABLES_MAX 16u
struct surface_tables {
    size_t count;
    const struct route *tables[SURFACE_TABLES_MAX];
    size_t counts[SURFACE_TABLES_MAX];
};
/* One more table, of a floor above, which this one doesn't know. Before anybody asks for tables; the routes are constant. */
void surface_add(enum listening listening, const struct route *routes, size_t count);
struct surface_tables surface_tables(enum listening listening);

/* Routes compiled and bound to their operations. NULL and a sentence: two routes are the same, or a documented one is in
 * no contract. Boot only. */
struct routes *surface_routes(enum listening listening, const struct contracts *contracts, char *ret_text,
                              size_t text_size);

#endif
