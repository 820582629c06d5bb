#include "config/acl.h"

#include <stdio.h>
#include <string.h>

#include "config/output.h"
#include "http/surface.h"

static const char *auth_name(enum authentication auth)
{
    switch (auth) {
    case AUTH_NONE:
        return "none";
    case AUTH_KEY:
        return "key";
    case AUTH_TOKEN:
        return "token";
    case AUTH_OPERATOR:
        return "operator";
    case AUTH_OPTIONAL:
        return "optional key";
    }
    return "";
}

/* Of a route that takes tokens: the roles that may; none named means any. */
static bool may(const struct route *route, enum role role)
{
    return route->auth == AUTH_TOKEN && (route->roles == 0 || (route->roles & role) != 0);
}

static void write_roles_text(struct json_sink *sink, const struct route *route)
{
    const char *between = "";
    if (route->auth != AUTH_TOKEN) {
        json_sink_text(sink, "-");
        return;
    }
    if (route->roles == 0 || route->roles == ROLE_ANY) {
        json_sink_text(sink, "any");
        return;
    }
    for (int i = 0; i < ROLE_COUNT; i++)
        if (may(route, (enum role)(1 << i))) {
            json_sink_text(sink, between);
            json_sink_text(sink, role_name((enum role)(1 << i)));
            between = ",";
        }
}

void acl_limits(const struct route *route, char ret_text[ACL_LIMITS_SIZE])
{
    snprintf(ret_text, ACL_LIMITS_SIZE, "%s%s%s%s%s", limit_name(route->limit), route->anonymous ? "/" : "",
             route->anonymous ? limit_name(route->anonymous) : "", route->everybody ? "+" : "",
             route->everybody ? limit_name(route->everybody) : "");
}

static void write_text(struct json_sink *sink, const char *listener, const struct route *route)
{
    char line[320], limits[ACL_LIMITS_SIZE];
    acl_limits(route, limits);
    snprintf(line, sizeof(line), "%-8s  %-7s %-42s %-9s %-12s %-28s ", listener, method_name(route->method),
             route->path, surface_name(route->surface), auth_name(route->auth), limits);
    json_sink_text(sink, line);
    write_roles_text(sink, route);
    json_sink_text(sink, "\n");
}

static void write_json(struct json *json, const char *listener, const struct route *route)
{
    json_object_begin(json);
    JSON_MEMBER(json, "listener", string, listener);
    JSON_MEMBER(json, "method", string, method_name(route->method));
    JSON_MEMBER(json, "path", string, route->path);
    JSON_MEMBER(json, "surface", string, surface_name(route->surface));
    JSON_MEMBER(json, "auth", string, auth_name(route->auth));
    JSON_MEMBER(json, "limit", string, limit_name(route->limit));
    JSON_MEMBER(json, "limit_anonymous", string, route->anonymous ? limit_name(route->anonymous) : NULL);
    JSON_MEMBER(json, "limit_everybody", string, route->everybody ? limit_name(route->everybody) : NULL);
    json_key(json, "roles");
    json_array_begin(json);
    for (int i = 0; i < ROLE_COUNT; i++)
        if (may(route, (enum role)(1 << i)))
            json_string(json, role_name((enum role)(1 << i)));
    json_array_end(json);
    json_object_end(json);
}

int command_acl(const struct options *o)
{
    static const char *const listeners[] = {[LISTENING_CLIENT] = "client", [LISTENING_OPERATOR] = "operator"};
    struct json_sink sink = output_sink();
    struct json json;
    char line[160];
    json_init(&json, &sink);
    if (o->json) {
        json_array_begin(&json);
    } else {
        snprintf(line, sizeof(line), "%-8s  %-7s %-42s %-9s %-12s %-28s %s\n", "LISTENER", "METHOD", "PATH",
                 "SURFACE", "CREDENTIALS", "LIMIT", "ROLES");
        json_sink_text(&sink, line);
    }
    for (int l = 0; l < LISTENING_COUNT; l++) {
        struct surface_tables tables = surface_tables((enum listening)l);
        for (size_t t = 0; t < tables.count; t++)
            for (size_t i = 0; i < tables.counts[t]; i++)
                if (o->json)
                    write_json(&json, listeners[l], &tables.tables[t][i]);
                else
                    write_text(&sink, listeners[l], &tables.tables[t][i]);
    }
    if (o->json) {
        json_array_end(&json);
        json_end_line(&json);
    }
    return output_done(&sink);
}
