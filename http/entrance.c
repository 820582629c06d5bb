#include "http/entrance.h"

#include <string.h>

#include "http/front.h"
#include "http/media.h"

#define ENTRANCE_PAGE "text/html; charset=utf-8"
#define SUMMARY       "A self-healing server for durable work."

/* The relations are those of RFC 8631, and "related". */
struct link {
    const char *rel, *href, *what;
    const char *
        command; /* what shows it to operators, since no browser has their token; NULL: it is for everybody */
};

static const struct link links[] = {
    {"service-desc", "openapi/jobs.json", "the job API, for clients with API keys", NULL},
    {"service-desc", "openapi/work.json", "what the same clients are offered beside it", NULL},
    {"service-desc", "openapi/control.json", "the control API, for people and agents with tokens", NULL},
    {"service-desc", "asyncapi/events.json", "its events", NULL},
    {"service-desc", "openapi/ops.json", "probes, documents, tokens, and what operators ask", NULL},
    {"service-desc", "openapi.json", "all of these APIs in one document", NULL},
    {"status", "healthz", "whether the process responds", NULL},
    {"status", "readyz", "whether requests can be served", NULL},
    {"related", "stats", "the state of the product in figures; needs the operator's token", "coppice stats"},
    {"related", "stats/tree", "the tree of actors; needs the operator's token", "coppice tree"},
    {"related", "metrics", "every metric, for Prometheus; needs the operator's token",
     "curl -H \"Authorization: Bearer $TOKEN\" ADDRESS/metrics"},
};

static const struct {
    const char *who, *first;
} listeners[] = {
    {"client",
     "A client begins with POST v1/clients and POST v1/clients/{client_id}/keys; then POST v1/jobs."},
    {"operator",
     "This is the operator's listener. The program itself is the nearest way to it: coppice help."},
};

static bool is_operators(const struct request *q)
{
    return strcmp(q->front->name, listeners[1].who) == 0;
}

static bool wants_page(const struct request *q)
{
    return media_accepts(q, "text/html") && !media_accepts(q, RESPONSE_JSON);
}

static void write_json(const struct request *q, struct response *r)
{
    struct json json;
    json_init(&json, &r->sink);
    json_object_begin(&json);
    JSON_MEMBER(&json, "name", string, "Coppice");
    JSON_MEMBER(&json, "version", string, q->front->version);
    JSON_MEMBER(&json, "summary", string, SUMMARY);
    JSON_MEMBER(&json, "listener", string, listeners[is_operators(q)].who);
    JSON_MEMBER(&json, "first", string, listeners[is_operators(q)].first);
    json_key(&json, "links");
    json_array_begin(&json);
    for (size_t i = 0; i < sizeof(links) / sizeof(*links); i++) {
        if (links[i].command && !is_operators(q))
            continue;
        json_object_begin(&json);
        JSON_MEMBER(&json, "rel", string, links[i].rel);
        JSON_MEMBER(&json, "href", string, links[i].href);
        JSON_MEMBER(&json, "title", string, links[i].what);
        json_object_end(&json);
    }
    json_array_end(&json);
    json_object_end(&json);
    json_sink_text(&r->sink, "\n");
}

static void write_texts(struct json_sink *sink, const char *const *texts)
{
    while (*texts)
        json_sink_text(sink, *texts++);
}
#define TEXTS(...)        \
    (const char *const[]) \
    {                     \
        __VA_ARGS__, NULL \
    }

/* Nothing in it comes from outside, so nothing needs to be escaped. */
static void write_page(const struct request *q, struct response *r)
{
    struct json_sink *sink = &r->sink;
    const char *version = q->front->version;
    write_texts(sink,
                TEXTS("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                      "<meta name=\"viewport\" content=\"width=device-width\">\n<title>Coppice ",
                      version, "</title>\n</head>\n<body>\n<h1>Coppice ", version,
                      "</h1>\n<p>" SUMMARY "</p>\n<p>", listeners[is_operators(q)].first, "</p>\n<ul>\n"));
    for (size_t i = 0; i < sizeof(links) / sizeof(*links); i++)
        if (!links[i].command)
            write_texts(sink, TEXTS("<li><a href=\"", links[i].href, "\">", links[i].href,
                                    "</a>: ", links[i].what, "</li>\n"));
        else if (is_operators(q))
            write_texts(sink, TEXTS("<li><code>", links[i].href, "</code>: ", links[i].what, "; <code>",
                                    links[i].command, "</code></li>\n"));
    json_sink_text(sink, "</ul>\n</body>\n</html>\n");
}

static void serve_entrance(const struct request *q, struct response *r)
{
    bool page = wants_page(q);
    response_header(r, "Vary", "Accept");
    response_begin(r, 200, page ? ENTRANCE_PAGE : RESPONSE_JSON);
    if (page)
        write_page(q, r);
    else
        write_json(q, r);
}

const struct route entrance_routes[] = {
    {.method = METHOD_GET, .path = "/", .surface = SURFACE_PUBLIC, .early = true, .serve = serve_entrance},
};
const size_t entrance_routes_count = sizeof(entrance_routes) / sizeof(*entrance_routes);
