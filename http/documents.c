#define _GNU_SOURCE /* memmem */
#include "http/documents.h"

#include <stdio.h>
#include <string.h>

#include "http/contract.h"
#include "http/front.h"
#include "http/json_text.h"
#include "http/schema.h"
#include "http/timestamp.h"
#include "runtime/actor.h"

static void serve_document(const struct request *q, struct response *r, enum contract contract, bool yaml)
{
    struct span text = yaml ? contract_yaml(contract) : contract_json(contract);
    struct span known = q->known[HEADER_IF_NONE_MATCH];
    char etag[64];
    const char *json = contract_etag(contract);
    /* The two forms have the same one but for a letter at its end. */
    snprintf(etag, sizeof(etag), "%.*s%s", (int)strlen(json) - 1, json, yaml ? "y\"" : "\"");
    response_header(r, "Cache-Control", "no-cache");
    response_header(r, "ETag", "%s", etag);
    if (known.bytes &&
        (span_equal(known, span_text("*")) || memmem(known.bytes, known.size, etag, strlen(etag)))) {
        response_begin(r, 304, NULL);
        return;
    }
    response_begin(r, 200, yaml ? "application/yaml" : RESPONSE_JSON);
    json_sink_bytes(&r->sink, text.bytes, text.size);
}

#define X(id, name, file, kind)                                                \
    static void serve_##id##_json(const struct request *q, struct response *r) \
    {                                                                          \
        serve_document(q, r, CONTRACT_##id, false);                            \
    }                                                                          \
    static void serve_##id##_yaml(const struct request *q, struct response *r) \
    {                                                                          \
        serve_document(q, r, CONTRACT_##id, true);                             \
    }
CONTRACTS(X)
#undef X

/* ---- all of them in one ---- */

enum { NAME_MAX = 256 };

/* A JSON pointer in the fragment of a URI (RFC 6901): '~' is ~0, '/' is ~1, braces are %7B and %7D. */
static void write_pointer(struct json_sink *sink, const char *name)
{
    for (; *name; name++) {
        const char *escaped = *name == '~'   ? "~0"
                              : *name == '/' ? "~1"
                              : *name == '{' ? "%7B"
                              : *name == '}' ? "%7D"
                                             : NULL;
        if (escaped)
            json_sink_text(sink, escaped);
        else
            json_sink_bytes(sink, name, 1);
    }
}

static bool text_at(const struct json_text *json, const struct json_node *node, char text[NAME_MAX])
{
    struct span value;
    if (!node || node->kind != JSON_STRING || !json_string_of(json, node, text, NAME_MAX - 1, &value) ||
        value.size >= NAME_MAX)
        return false;
    memmove(text, value.bytes, value.size);
    text[value.size] = 0;
    return true;
}

/* What stands before the contract's paths here: the path of its first server, when that is one of ours. */
static void prefix_of(const struct json_text *json, char prefix[NAME_MAX])
{
    const struct json_node *servers = json_member(json, json_root(json), "servers");
    const struct json_node *first = servers && servers->kind == JSON_ARRAY ? json_first(json, servers) : NULL;
    const struct json_node *url =
        first && first->kind == JSON_OBJECT ? json_member(json, first, "url") : NULL;
    if (!text_at(json, url, prefix) || prefix[0] != '/' || prefix[1] == 0)
        prefix[0] = 0;
}

/* A document's paths or webhooks, and what stands before them here. */
struct listed {
    enum contract contract;
    const struct json_text *json;
    const struct json_node *all; /* NULL: it has none */
    char prefix[NAME_MAX];
};

static struct listed listed_of(const struct front *front, enum contract contract, const char *member)
{
    struct listed l = {.contract = contract};
    if (contract_kind(contract) != CONTRACT_OPENAPI)
        return l;
    l.json = schemas_document(contracts_schemas(front->contracts, contract));
    l.all = json_member(l.json, json_root(l.json), member);
    if (l.all && l.all->kind != JSON_OBJECT)
        l.all = NULL;
    if (strcmp(member, "paths") == 0)
        prefix_of(l.json, l.prefix);
    return l;
}

/* Whether the document has what is called `whole` here. */
static bool has(const struct listed *l, const char *whole)
{
    size_t length = strlen(l->prefix);
    return l->all && strncmp(whole, l->prefix, length) == 0 && json_member(l->json, l->all, whole + length);
}

static void write_reference(struct json *j, const struct listed *l, const char *member, const char *whole)
{
    char reference[4 * NAME_MAX];
    struct json_sink to;
    json_sink_init(&to, reference, sizeof(reference), NULL, NULL);
    json_sink_text(&to, "openapi/");
    json_sink_text(&to, contract_name(l->contract));
    json_sink_text(&to, ".json#/");
    json_sink_text(&to, member);
    json_sink_text(&to, "/");
    write_pointer(&to, whole + strlen(l->prefix));
    JSON_MEMBER(j, "$ref", string_n, reference, to.length);
}

/* A path that two documents share, with other methods each, stands with the first; the others are named beside it. */
static void write_shared(struct json *j, const struct front *front, enum contract first, const char *member,
                         const char *whole)
{
    bool any = false;
    for (enum contract c = first + 1; c < CONTRACT_COUNT; c++) {
        struct listed l = listed_of(front, c, member);
        if (!has(&l, whole))
            continue;
        if (!any) {
            json_key(j, "x-also");
            json_array_begin(j);
            any = true;
        }
        json_object_begin(j);
        write_reference(j, &l, member, whole);
        json_object_end(j);
    }
    if (any)
        json_array_end(j);
}

static bool stands_before(const struct front *front, enum contract contract, const char *member,
                          const char *whole)
{
    for (enum contract c = 0; c < contract; c++) {
        struct listed l = listed_of(front, c, member);
        if (has(&l, whole))
            return true;
    }
    return false;
}

static void write_references(struct json *j, const struct front *front, const struct listed *l,
                             const char *member)
{
    char name[NAME_MAX], whole[2 * NAME_MAX];
    if (!l->all)
        return;
    for (const struct json_node *n = json_first(l->json, l->all); n; n = json_after(l->json, l->all, n)) {
        if (!text_at(l->json, n, name))
            continue;
        snprintf(whole, sizeof(whole), "%s%s", l->prefix, name);
        if (stands_before(front, l->contract, member, whole))
            continue;
        json_key(j, whole);
        json_object_begin(j);
        write_reference(j, l, member, whole);
        write_shared(j, front, l->contract, member, whole);
        json_object_end(j);
    }
}

static void write_all(struct json *j, const struct front *front, const char *member)
{
    json_key(j, member);
    json_object_begin(j);
    for (enum contract c = 0; c < CONTRACT_COUNT; c++) {
        struct listed l = listed_of(front, c, member);
        write_references(j, front, &l, member);
    }
    json_object_end(j);
}

/* One document whose paths refer to those of all OpenAPI ones. JSON is YAML as well. */
static void serve_all(const struct request *q, struct response *r, const char *type)
{
    struct json json;
    response_header(r, "Cache-Control", "no-cache");
    response_begin(r, 200, type);
    json_init(&json, &r->sink);
    json_object_begin(&json);
    JSON_MEMBER(&json, "openapi", string, "3.1.0");
    json_key(&json, "info");
    json_object_begin(&json);
    JSON_MEMBER(&json, "title", string, "Coppice");
    JSON_MEMBER(&json, "version", string, q->front->version);
    json_object_end(&json);
    write_all(&json, q->front, "paths");
    write_all(&json, q->front, "webhooks");
    json_object_end(&json);
    json_sink_text(&r->sink, "\n");
}

static void serve_all_json(const struct request *q, struct response *r)
{
    serve_all(q, r, RESPONSE_JSON);
}

static void serve_all_yaml(const struct request *q, struct response *r)
{
    serve_all(q, r, "application/yaml");
}

/* ---- whom to tell ---- */

/* RFC 9116. It expires a while after the day on which it was asked for, so that it is never out of date. */
static void serve_security(const struct request *q, struct response *r)
{
    const uint64_t day = UINT64_C(86400) * NS_PER_S;
    char until[TIMESTAMP_SIZE];
    if (!q->front->security_contact) {
        response_error(r, catalogue_code(SURFACE_PUBLIC, ERROR_KIND_NO_ROUTE), "security.contact isn't set");
        return;
    }
    timestamp_format((actor_wall_now() / day) * day + q->front->security_validity_ns, until);
    response_begin(r, 200, RESPONSE_TEXT);
    json_sink_text(&r->sink, "Contact: ");
    json_sink_text(&r->sink, q->front->security_contact);
    json_sink_text(&r->sink, "\nExpires: ");
    json_sink_text(&r->sink, until);
    json_sink_text(&r->sink, "\nPreferred-Languages: en\n");
}

#define PATH_OPENAPI(name)  "/openapi/" name
#define PATH_ASYNCAPI(name) "/asyncapi/" name
const struct route document_routes[] = {
#define X(id, name, file, kind)             \
    {.method = METHOD_GET,                  \
     .path = PATH_##kind(name) ".json",     \
     .surface = SURFACE_PUBLIC,             \
     .undocumented = true,                  \
     .serve = serve_##id##_json},           \
        {.method = METHOD_GET,              \
         .path = PATH_##kind(name) ".yaml", \
         .surface = SURFACE_PUBLIC,         \
         .undocumented = true,              \
         .serve = serve_##id##_yaml},
    CONTRACTS(X)
#undef X
#define ALSO(path_, serve_)                                                                   \
    {                                                                                         \
        .method = METHOD_GET, .path = path_, .surface = SURFACE_PUBLIC, .undocumented = true, \
        .serve = serve_                                                                       \
    }
        ALSO("/openapi.json", serve_all_json),
    ALSO("/openapi.yaml", serve_all_yaml),
    ALSO("/asyncapi.json", serve_EVENTS_json),
    ALSO("/asyncapi.yaml", serve_EVENTS_yaml),
    {.method = METHOD_GET,
     .path = "/.well-known/security.txt",
     .surface = SURFACE_PUBLIC,
     .undocumented = true,
     .serve = serve_security},
};
const size_t document_routes_count = sizeof(document_routes) / sizeof(*document_routes);
