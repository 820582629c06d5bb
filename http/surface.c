#include "http/surface.h"

#include <stdio.h>

#include "http/bulk.h"
#include "http/clients.h"
#include "http/control.h"
#include "http/deliveries.h"
#include "http/documents.h"
#include "http/entrance.h"
#include "http/grants.h"
#include "http/job_inspect.h"
#include "http/jobs.h"
#include "http/operator_routes.h"
#include "http/outbox.h"
#include "http/pauses.h"
#include "http/principals.h"
#include "http/probe.h"
#include "http/schedules.h"
#include "http/tokens.h"
#include "http/work.h"
#include "http/work_kinds.h"
#include "http/webhooks.h"

static void add(struct surface_tables *t, const struct route *routes, size_t count)
{
    ASSERT(t->count < SURFACE_TABLES_MAX);
    t->tables[t->count] = routes;
    t->counts[t->count++] = count;
}

static struct surface_tables above[LISTENING_COUNT];

void surface_add(enum listening listening, const struct route *routes, size_t count)
{
    add(&above[listening], routes, count);
}

struct surface_tables surface_tables(enum listening listening)
{
    struct surface_tables t = {0};
    /* The first table's surface answers for paths that nobody owns, and within a prefix the first that came. */
    if (listening == LISTENING_OPERATOR) {
        add(&t, operator_routes, operator_routes_count);
        add(&t, client_operator_routes, client_operator_routes_count);
        add(&t, job_operator_routes, job_operator_routes_count);
        add(&t, token_routes, token_routes_count);
        add(&t, principal_routes, principal_routes_count);
        add(&t, pause_routes, pause_routes_count);
        add(&t, outbox_routes, outbox_routes_count);
        add(&t, bulk_operator_routes, bulk_operator_routes_count);
    } else {
        add(&t, document_routes, document_routes_count);
        add(&t, client_routes, client_routes_count);
        add(&t, job_routes, job_routes_count);
        add(&t, work_kind_routes, work_kind_routes_count);
        add(&t, bulk_routes, bulk_routes_count);
        add(&t, schedule_routes, schedule_routes_count);
        add(&t, work_routes, work_routes_count);
        add(&t, webhook_routes, webhook_routes_count);
        add(&t, delivery_routes, delivery_routes_count);
        add(&t, control_routes, control_routes_count);
        add(&t, grant_routes, grant_routes_count);
    }
    add(&t, entrance_routes, entrance_routes_count);
    add(&t, probe_routes, probe_routes_count);
    add(&t, jwks_routes, jwks_routes_count);
    if (listening == LISTENING_OPERATOR)
        add(&t, document_routes, document_routes_count);
    for (size_t i = 0; i < above[listening].count; i++)
        add(&t, above[listening].tables[i], above[listening].counts[i]);
    return t;
}

static const struct contract_operation *operation_of(const struct contracts *contracts,
                                                     const struct route *route)
{
    return contracts_operation(contracts, method_name(route->method),
                               route->alias_of ? route->alias_of : route->path);
}

struct routes *surface_routes(enum listening listening, const struct contracts *contracts, char *ret_text,
                              size_t text_size)
{
    const struct surface_tables t = surface_tables(listening);
    struct routes *routes = routes_create(t.tables, t.counts, t.count, ret_text, text_size);
    for (size_t i = 0; routes && i < routes_count(routes); i++) {
        const struct route *route = routes_at(routes, i);
        const struct contract_operation *operation =
            route->undocumented ? NULL : operation_of(contracts, route);
        if (!route->undocumented && !operation) {
            snprintf(ret_text, text_size, "the route %s %s is in no contract", method_name(route->method),
                     route->path);
            routes_destroy(routes);
            return NULL;
        }
        routes_bind(routes, route, operation);
        if (route->token_twin)
            routes_bind(routes, route->token_twin, operation_of(contracts, route->token_twin));
    }
    return routes;
}
