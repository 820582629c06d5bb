#define _GNU_SOURCE
#include "tests/bench/frontserver.h"
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include "http/api_key_auth.h"
#include "store/batch.h"
#include "store/client.h"
#include "store/view.h"
#include "tests/bench/bare.h"
#include "tests/bench/bench.h"
#include "tests/bench/load.h"
#include "tests/support/parcel.h"

#define POST_SIZE 1024

static const uint8_t key_secret[API_KEY_SECRET_SIZE] = "thirty-two letters that are none";
static const char *store_folder;

/* ---- handlers ---- */

static void serve_hello(const struct request *q, struct response *r)
{
    static const char text[] =
        "a hundred bytes, from a handler to its client, neither more nor less of them than that";
    struct json json;
    (void)q;
    response_begin(r, 200, RESPONSE_JSON);
    json_init(&json, &r->sink);
    json_object_begin(&json);
    json_key(&json, "message");
    json_string_n(&json, text, sizeof text - 1);
    json_object_end(&json);
}

static bool read_parcel(const struct uuid *id, uint8_t *ret_state, uint64_t *ret_at_us, uint32_t *ret_bytes)
{
    struct view *view = view_open(store_here());
    struct key key = key_of_uuid(id);
    struct parcel parcel;
    bool there = view && txn_read(&view->txn, TABLE_PARCELS, key_span(&key), &parcel) == OK;
    if (there) {
        *ret_state = parcel.state;
        *ret_at_us = parcel.at_us;
        *ret_bytes = parcel.body.size;
    }
    if (view)
        view_close(view);
    return there;
}

static void serve_parcel(const struct request *q, struct response *r)
{
    struct uuid id;
    struct json json;
    char text[UUID_TEXT_SIZE];
    uint8_t state;
    uint64_t at_us;
    uint32_t bytes;
    if (!uuid_parse(q->params[0].bytes, q->params[0].size, &id) ||
        !read_parcel(&id, &state, &at_us, &bytes)) {
        response_error(r, catalogue_code(r->surface, ERROR_KIND_NOT_FOUND), "there is no such parcel");
        return;
    }
    uuid_format(&id, text);
    response_begin(r, 200, RESPONSE_JSON);
    json_init(&json, &r->sink);
    json_object_begin(&json);
    JSON_MEMBER(&json, "id", string, text);
    JSON_MEMBER(&json, "state", uint, state);
    JSON_MEMBER(&json, "at_us", uint, at_us);
    JSON_MEMBER(&json, "bytes", uint, bytes);
    json_object_end(&json);
}

static void serve_order(const struct request *q, struct response *r)
{
    serve_hello(q, r);
}

static const struct route routes[] = {
    {.method = METHOD_GET,
     .path = "/hello",
     .surface = SURFACE_PUBLIC,
     .undocumented = true,
     .serve = serve_hello},
    {.method = METHOD_GET,
     .path = "/parcels/{id}",
     .surface = SURFACE_PUBLIC,
     .auth = AUTH_KEY,
     .undocumented = true,
     .serve = serve_parcel},
    {.method = METHOD_POST,
     .path = "/orders",
     .surface = SURFACE_PUBLIC,
     .body_max = 65536,
     .undocumented = true,
     .serve = serve_order},
};

/* ---- what they need ---- */

static const char document[] =
    "{\"components\":{\"schemas\":{\"Order\":{\"type\":\"object\",\"additionalProperties\":false,"
    "\"required\":[\"id\",\"customer\",\"placed_at\",\"items\"],\"properties\":{"
    "\"id\":{\"type\":\"string\",\"format\":\"uuid\"},"
    "\"customer\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":128},"
    "\"placed_at\":{\"type\":\"string\",\"format\":\"date-time\"},"
    "\"priority\":{\"type\":\"string\",\"enum\":[\"low\",\"normal\",\"high\"]},"
    "\"note\":{\"type\":\"string\",\"maxLength\":1024},"
    "\"items\":{\"type\":\"array\",\"minItems\":1,\"maxItems\":100,\"items\":{\"$ref\":\"#/components/"
    "schemas/Item\"}}}},"
    "\"Item\":{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"sku\",\"count\"],"
    "\"properties\":{"
    "\"sku\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":64},"
    "\"count\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":10000},"
    "\"price\":{\"type\":\"number\",\"minimum\":0}}}}}}";

static void bind_schema(struct routes *compiled)
{
    static struct contract_operation operation = {
        .id = "order", .method = "POST", .path = "/orders", .body_required = true};
    char text[512];
    struct schemas *schemas = schemas_create(span_text(document), text, sizeof text);
    operation.body = schemas ? schemas_at(schemas, "/components/schemas/Order", text, sizeof text) : NULL;
    if (!operation.body)
        bench_fail("%s", text);
    routes_bind(compiled, &routes[2], &operation);
}

static void run_command(struct store *store, const struct command_class *class, const void *command)
{
    struct answer answer;
    enum error e = batch_one(store, class, env_real()->wall(env_real()) / NS_PER_US, command, &answer);
    if (e || answer.error)
        bench_fail("a command: %s, %s", error_name(e), error_name(answer.error));
}

static void issue_key(struct store *store)
{
    struct uuid client = load_id(1u << 20), key = load_id((1u << 20) + 1);
    struct api_key_issue issue = {.client = client,
                                  .id = key,
                                  .window_us = 60u * 1000000u,
                                  .ttl_us = UINT64_C(3600) * 1000000,
                                  .kept_us = 1000000,
                                  .by = span_text("bench")};
    uint8_t salted[sizeof store->secret + API_KEY_SECRET_SIZE];
    unsigned size = sizeof issue.hash.bytes;
    memcpy(salted, store->secret, sizeof store->secret);
    memcpy(salted + sizeof store->secret, key_secret, sizeof key_secret);
    if (!EVP_Digest(salted, sizeof salted, issue.hash.bytes, &size, EVP_sha256(), NULL))
        bench_fail("no SHA-256");
    run_command(store, &client_create_class, &(struct client_create){.id = client});
    run_command(store, &api_key_issue_class, &issue);
}

static struct store *prepare(struct routes *compiled)
{
    struct store *store = load_open(store_folder);
    load_write(store, 0, FRONTSERVER_PARCELS, 1000);
    issue_key(store);
    bind_schema(compiled);
    return store;
}

void frontserver_start(const char *folder, uint32_t cpu, struct testserver *ret)
{
    store_folder = folder;
    testserver_start(
        &(struct testserver_options){.routes = routes,
                                     .routes_count = sizeof routes / sizeof *routes,
                                     .prepare = prepare,
                                     .limits = {.idle_ns = 600 * NS_PER_S, .head_ns = 10 * NS_PER_S},
                                     .cpu = cpu},
        ret);
}

/* ---- requests ---- */

const char *frontserver_get(void)
{
    return "GET /hello HTTP/1.1\r\nHost: localhost\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n";
}

const char *frontserver_read(void)
{
    static char request[512];
    char id[UUID_TEXT_SIZE], key[API_KEY_TEXT_SIZE];
    struct uuid uuid = load_id(4711);
    uuid_format(&uuid, id);
    api_key_write(key_secret, key);
    snprintf(request, sizeof request,
             "GET /parcels/%s HTTP/1.1\r\nHost: localhost\r\nUser-Agent: bench\r\nAccept: */*\r\n"
             "Authorization: Bearer %s\r\n\r\n",
             id, key);
    return request;
}

static size_t add(char *text, size_t at, size_t size, const char *more)
{
    size_t n = strlen(more);
    if (n >= size - at)
        bench_fail("no room");
    memcpy(text + at, more, n + 1);
    return at + n;
}

const char *frontserver_post(void)
{
    static char request[POST_SIZE + 512];
    char body[POST_SIZE + 1], item[128];
    size_t at =
        add(body, 0, sizeof body,
            "{\"id\":\"0190d1f0-0000-7000-8000-000000000001\",\"customer\":\"Mary \\\"Ann\\\" Shelley\","
            "\"placed_at\":\"2026-11-18T12:00:00.000Z\",\"priority\":\"normal\",\"items\":[");
    for (int i = 0; i < 12; i++) {
        snprintf(item, sizeof item, "%s{\"sku\":\"part-%04d\",\"count\":%d,\"price\":%d.95}", i ? "," : "", i,
                 i + 1, i * 7);
        at = add(body, at, sizeof body, item);
    }
    at = add(body, at, sizeof body, "],\"note\":\"");
    memset(body + at, 'n', POST_SIZE - 2 - at);
    memcpy(body + POST_SIZE - 2, "\"}", 3);
    snprintf(request, sizeof request,
             "POST /orders HTTP/1.1\r\nHost: localhost\r\nUser-Agent: bench\r\nAccept: */*\r\n"
             "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
             POST_SIZE, body);
    return request;
}
