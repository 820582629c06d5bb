#include "http/operator_routes.h"

#include "http/actor_view.h"
#include "http/audits.h"
#include "http/chaos_reports.h"
#include "http/chaos_verbs.h"
#include "http/events.h"
#include "http/metrics.h"
#include "http/stats.h"

#define SEEN(path_, serve_)                                                                      \
    {                                                                                            \
        .method = METHOD_GET, .path = path_, .surface = SURFACE_OPERATOR, .auth = AUTH_OPERATOR, \
        .serve = serve_                                                                          \
    }

#define CHAOS(verb)                                                                                   \
    {                                                                                                 \
        .method = METHOD_POST, .path = "/chaos/actors/{target}:" #verb, .surface = SURFACE_OPERATOR,  \
        .auth = AUTH_OPERATOR, .body_max = OPERATOR_BODY_MAX, .body_optional = true, .changes = true, \
        .colons = true, .serve = chaos_serve_##verb                                                   \
    }

const struct route operator_routes[] = {
    {.method = METHOD_GET,
     .path = "/metrics",
     .surface = SURFACE_OPERATOR,
     .auth = AUTH_OPERATOR,
     .quiet = true,
     .serve = metrics_serve},
    SEEN("/stats", stats_serve),
    SEEN("/stats/tree", stats_serve_tree),
    SEEN("/stats/events", events_serve),
    SEEN("/stats/audits", audits_serve),
    SEEN("/stats/chaos", chaos_reports_serve_list),
    SEEN("/stats/chaos/{report}", chaos_reports_serve_one),
    {.method = METHOD_GET,
     .path = "/stats/actors/{pid}",
     .surface = SURFACE_OPERATOR,
     .auth = AUTH_OPERATOR,
     .colons = true,
     .serve = actor_view_serve},
    CHAOS(kill),
    CHAOS(crash),
    CHAOS(suspend),
    CHAOS(resume),
    CHAOS(flood),
    {.method = METHOD_POST,
     .path = "/chaos/reports",
     .surface = SURFACE_OPERATOR,
     .auth = AUTH_OPERATOR,
     .body_max = CHAOS_REPORTS_BODY_MAX,
     .changes = true,
     .serve = chaos_reports_serve_add},
};
const size_t operator_routes_count = sizeof(operator_routes) / sizeof(*operator_routes);
