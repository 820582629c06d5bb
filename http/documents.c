#define _GNU_SOURCE /* memmem */
#include "http/documents.h"

#include <stdio.h>
#include <string.h>

#include "http/contract.h"

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

static void serve_security(const struct request *q, struct response *r)
{
    (void)q;
    response_begin(r, 200, RESPONSE_TEXT);
    json_sink_text(&r->sink, "Contact: mailto:security@localhost\nExpires: 2027-11-18T00:00:00Z\n"
                             "Preferred-Languages: en\n");
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
        {.method = METHOD_GET,
         .path = "/.well-known/security.txt",
         .surface = SURFACE_PUBLIC,
         .undocumented = true,
         .serve = serve_security},
};
const size_t document_routes_count = sizeof(document_routes) / sizeof(*document_routes);
