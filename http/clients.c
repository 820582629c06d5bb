#include "http/clients.h"

#include <stdatomic.h>
#include <stdio.h>

#include "http/api_key_auth.h"
#include "http/audits.h"
#include "http/commit.h"
#include "http/front.h"
#include "http/idempotency.h"
#include "http/json_text.h"
#include "http/new_id.h"
#include "store/counter.h"
#include "store/view.h"

enum { ID_TRIES = 3, KEYS_BODY_MAX = 4096 };

#define DAY_S UINT64_C(86400)

/* ---- settings ---- */

static _Atomic uint64_t key_lifetime_s = 90 * DAY_S, bootstrap_s = 600, kept_s = 90 * DAY_S;

void clients_configure(const struct client_settings *settings)
{
    uint64_t window = settings->bootstrap_s;
    atomic_store(&key_lifetime_s, settings->key_lifetime_s);
    atomic_store(&bootstrap_s, window < CLIENT_BOOTSTRAP_MAX_S ? window : CLIENT_BOOTSTRAP_MAX_S);
    atomic_store(&kept_s, settings->kept_s);
}

/* ---- what the store said ---- */

/* not_found: whatever the command didn't find. */
static enum error_code code_of(enum error e, enum error_code not_found)
{
    switch (e) {
    case ERR_NOT_FOUND:
        return not_found;
    case ERR_CONFLICT:
        return ERROR_RFA_AUTH_API_KEY_CONFLICT;
    case ERR_EXPIRED:
        return ERROR_RFA_AUTH_TOKEN_EXPIRED;
    case ERR_TOKEN:
        return ERROR_RFA_AUTH_INVALID_CREDENTIALS;
    case ERR_KEY_REUSED:
        return ERROR_RFA_EXEC_IDEMPOTENCY_CONFLICT;
    case ERR_LIMIT:
        return ERROR_RFA_REQUEST_RATE_LIMITED;
    case ERR_NO_SPACE:
    case ERR_DAMAGED:
    case ERR_NEWER:
    case ERR_IO:
        return ERROR_RFA_STORAGE_DB_ERROR;
    case ERR_TIMEOUT:
        return ERROR_RFA_EXEC_TIMEOUT;
    case ERR_EXISTS:
    case ERR_INVALID:
        return ERROR_RFA_INTERNAL;
    default:
        return ERROR_RFA_STORAGE_UNAVAILABLE;
    }
}

/* The same for the operator's listener. */
static enum error_kind kind_of(enum error e)
{
    switch (e) {
    case ERR_NOT_FOUND:
        return ERROR_KIND_NOT_FOUND;
    case ERR_CONFLICT:
        return ERROR_KIND_CONFLICT;
    case ERR_LIMIT:
        return ERROR_KIND_THROTTLED;
    case ERR_EXISTS:
    case ERR_INVALID:
    case ERR_TOKEN:
    case ERR_EXPIRED:
    case ERR_KEY_REUSED: /* these three are a client's */
        return ERROR_KIND_INTERNAL;
    default:
        return catalogue_failure(e);
    }
}

static const char *what_of(enum error e)
{
    switch (e) {
    case ERR_CONFLICT:
        return "the key was changed by another request, or there is none to renew";
    case ERR_TOKEN:
        return "a valid key of this client is needed; an operator issues the first one, or one in place of "
               "those that are lost: coppice keys issue --client ID";
    case ERR_KEY_REUSED:
        return "this Idempotency-Key came with another body before";
    case ERR_LIMIT:
        return "as many keys of this client are kept as may be";
    default:
        return catalogue_sentence(e);
    }
}

static void refuse(struct response *r, enum error e, enum error_code not_found)
{
    enum error_code code =
        r->surface == SURFACE_JOBS ? code_of(e, not_found) : catalogue_code(r->surface, kind_of(e));
    if (e == ERR_LIMIT)
        response_header(r, "Retry-After", "3600");
    response_error_with(r, code, what_of(e), NULL, NULL);
}

static bool refuse_missing(struct response *r, enum error_code code, const char *what)
{
    response_error(r, r->surface == SURFACE_JOBS ? code : catalogue_code(r->surface, ERROR_KIND_NOT_FOUND),
                   "%s", what);
    return false;
}

static enum error submit(const struct request *q, const struct command_class *class, const void *command,
                         void *ret_bytes, size_t room, size_t *ret_size)
{
    return commit_submit(q, class, command, ret_bytes, room, ret_size, commit_deadline(q));
}

/* ---- what a request says ---- */

/* All chance: who knows it may fetch the first key. */
static struct uuid new_client_id(void)
{
    struct uuid_source source;
    uuid_source_init(&source, store_here()->env);
    return uuid_v4(&source);
}

/* The address as a name of somebody: hex digits, since it is only compared. */
static struct span address_text(const struct request *q, char text[2 * 8 + 1])
{
    const uint8_t *at = q->address.bytes;
    size_t length = 0;
    for (uint32_t i = 0; i < q->address.size && i < 8; i++)
        length += (size_t)snprintf(text + length, 2 * 8 + 1 - length, "%02x", at[i]);
    return length ? span_of(text, length) : span_text("local");
}

/* The client that the path names must be there, and be the one that asks, if one does. False: answered. */
static bool take_client(const struct request *q, struct response *r, struct uuid *ret_id)
{
    struct client client;
    if (!uuid_parse(q->params[0].bytes, q->params[0].size, ret_id)) {
        response_error(r, catalogue_code(r->surface, ERROR_KIND_MALFORMED), "client_id must be a UUID");
        return false;
    }
    struct view *view = view_open(store_here());
    enum error e = view ? client_read(&view->txn, ret_id, &client) : ERR_UNAVAILABLE;
    if (view)
        view_close(view);
    if (e == ERR_NOT_FOUND)
        return refuse_missing(r, ERROR_RFA_CLIENT_NOT_FOUND, "there is no such client");
    if (e)
        refuse(r, e, ERROR_RFA_CLIENT_NOT_FOUND);
    else if (q->identity.kind == IDENTITY_CLIENT && !uuid_equal(&q->identity.client, ret_id)) {
        response_error(r, ERROR_RFA_AUTH_FORBIDDEN, "this key belongs to another client");
        return false;
    }
    return e == OK;
}

/* Where a client and its key are told of. */
static void locate(struct response *r, const struct uuid *client)
{
    char text[UUID_TEXT_SIZE];
    uuid_format(client, text);
    response_header(r, "Location", "%s/clients/%s", r->surface == SURFACE_JOBS ? "/v1" : "", text);
}

/* ---- clients ---- */

static void write_client(struct response *r, const struct uuid *id)
{
    char text[UUID_TEXT_SIZE];
    struct json json;
    uuid_format(id, text);
    locate(r, id);
    response_begin(r, 201, RESPONSE_JSON);
    json_init(&json, &r->sink);
    json_object_begin(&json);
    JSON_MEMBER(&json, "client_id", string, text);
    json_object_end(&json);
}

static void serve_create_client(const struct request *q, struct response *r)
{
    char address[2 * 8 + 1];
    struct client_create c = {.from = address_text(q, address)};
    struct uuid id;
    size_t size = 0;
    enum error e = ERR_EXISTS;
    if (!idempotency_take_key(q, r, &c.key))
        return;
    for (int i = 0; i < ID_TRIES && e == ERR_EXISTS; i++) {
        c.id = new_client_id();
        e = submit(q, &client_create_class, &c, &id, sizeof(id), &size);
    }
    if (e || size != sizeof(id)) {
        refuse(r, e == OK ? ERR_UNANSWERED : e == ERR_LIMIT ? ERR_FULL : e, ERROR_RFA_CLIENT_NOT_FOUND);
        return;
    }
    if (!uuid_equal(&id, &c.id))
        response_header(r, "Idempotent-Replayed", "true");
    write_client(r, &id);
}

/* ---- keys ---- */

/* text: NULL when the key is told of again. */
static void write_issued(struct response *r, int status, const struct api_key_issued *issued,
                         const char *text)
{
    char id[UUID_TEXT_SIZE], created[TIME_TEXT_SIZE], expires[TIME_TEXT_SIZE];
    struct json json;
    uuid_format(&issued->id, id);
    time_format(issued->created_us, created);
    time_format(issued->expires_us, expires);
    response_begin(r, status, RESPONSE_JSON);
    json_init(&json, &r->sink);
    json_object_begin(&json);
    JSON_MEMBER(&json, "api_key", string, text);
    JSON_MEMBER(&json, "key_id", string, id);
    JSON_MEMBER(&json, "created_at", string, created);
    JSON_MEMBER(&json, "expires_at", string, expires);
    json_object_end(&json);
}

/* Who it was, for the key's row. */
static struct span by_of(const struct request *q, char text[API_KEY_BY_MAX])
{
    char id[UUID_TEXT_SIZE];
    if (q->identity.kind == IDENTITY_OPERATOR)
        return span_text("operator");
    if (q->identity.kind != IDENTITY_CLIENT)
        return span_text("bootstrap");
    uuid_format(&q->identity.key, id);
    return span_of(text, (size_t)snprintf(text, API_KEY_BY_MAX, "key %s", id));
}

/* What was done to a key, below its request's span (JOB-440). */
static void record_key_span(const struct request *q, const char *name, const struct uuid *client,
                            const struct uuid *key, uint64_t began_ns)
{
    char client_id[UUID_TEXT_SIZE], key_id[UUID_TEXT_SIZE];
    struct trace trace;
    if (!trace_exporting())
        return;
    uuid_format(client, client_id);
    uuid_format(key, key_id);
    trace_child(&trace, &q->trace);
    trace_record(&(struct trace_span){
        .trace = &trace,
        .kind = TRACE_INTERNAL,
        .name = name,
        .began_ns = began_ns,
        .ended_ns = actor_now(),
        .attributes = {{.key = "client_id", .text = client_id}, {.key = "key_id", .text = key_id}}});
}

static enum error issue_once(const struct request *q, struct api_key_issue *c, char text[API_KEY_TEXT_SIZE],
                             struct api_key_issued *ret_issued)
{
    uint8_t secret[API_KEY_SECRET_SIZE], bytes[API_KEY_ISSUED_SIZE];
    size_t size = 0;
    actor_random_bytes(secret, sizeof(secret));
    c->id = new_id();
    c->hash = api_key_hash(secret);
    api_key_write(secret, text);
    explicit_bzero(secret, sizeof(secret));
    enum error e = submit(q, &api_key_issue_class, c, bytes, sizeof(bytes), &size);
    if (e)
        return e;
    return size == sizeof(bytes) ? record_decode(&api_key_issued_record, 1, span_of(bytes, size), ret_issued)
                                 : ERR_UNANSWERED;
}

/* An operator's; a client says nothing to the audit. */
static struct span noted_reason(const struct request *q)
{
    return q->identity.kind == IDENTITY_OPERATOR ? audits_reason(q) : span_of(NULL, 0);
}

static void issue(const struct request *q, struct response *r, const struct uuid *client,
                  enum api_key_verb verb, struct span key)
{
    static const struct digest none = {{0}};
    char by[API_KEY_BY_MAX], text[API_KEY_TEXT_SIZE];
    struct api_key_issued issued = {.made = 0};
    struct api_key_issue c = {.client = *client,
                              .verb = (uint8_t)verb,
                              .caller = q->identity.key,
                              .window_us = atomic_load(&bootstrap_s) * 1000000,
                              .ttl_us = atomic_load(&key_lifetime_s) * 1000000,
                              .kept_us = atomic_load(&kept_s) * 1000000,
                              .by = by_of(q, by),
                              .key = key,
                              .request_id = span_of(q->trace.request_id, q->trace.request_id_length),
                              .reason = noted_reason(q)};
    enum error e = ERR_EXISTS;
    uint64_t began = actor_now();
    if (key.size > 0)
        c.digest = idempotency_digest(q, NULL);
    if (verb == API_KEY_FORCE)
        c.audit = new_id();
    for (int i = 0; i < ID_TRIES && e == ERR_EXISTS; i++)
        e = issue_once(q, &c, text, &issued);
    if (e) {
        explicit_bzero(text, sizeof(text));
        refuse(r, e, ERROR_RFA_CLIENT_NOT_FOUND);
        return;
    }
    if (memcmp(&issued.ended, &none, sizeof(none)) != 0)
        api_key_forget(&issued.ended);
    if (issued.made)
        record_key_span(q, verb == API_KEY_RENEW ? "api_key.renew" : "api_key.create", client, &issued.id,
                        began);
    else
        response_header(r, "Idempotent-Replayed", "true");
    if (verb != API_KEY_RENEW)
        locate(r, client);
    write_issued(r, verb == API_KEY_RENEW ? 200 : 201, &issued, issued.made ? text : NULL);
    explicit_bzero(text, sizeof(text));
}

static void serve_create_key(const struct request *q, struct response *r)
{
    struct uuid client;
    struct span key;
    const struct json_node *rotate = request_member(q, "rotate");
    if (!idempotency_take_key(q, r, &key))
        return;
    if (rotate && rotate->kind != JSON_TRUE && rotate->kind != JSON_FALSE) {
        response_error(r, ERROR_RFA_REQUEST_MALFORMED, "rotate must be true or false");
        return;
    }
    if (take_client(q, r, &client))
        issue(q, r, &client, rotate && rotate->kind == JSON_TRUE ? API_KEY_ROTATE : API_KEY_CREATE, key);
}

static void serve_renew_key(const struct request *q, struct response *r)
{
    struct uuid client;
    if (take_client(q, r, &client))
        issue(q, r, &client, API_KEY_RENEW, span_of("", 0));
}

/* The id that the body names; false: answered. One that can't be an id is one that isn't there. */
static bool take_key_id(const struct request *q, struct response *r, struct uuid *ret_id)
{
    const struct json_node *node = request_member(q, "key_id");
    struct span text;
    char room[64];
    if (!node || node->kind != JSON_STRING) {
        response_error(r, catalogue_code(r->surface, node ? ERROR_KIND_MALFORMED : ERROR_KIND_MISSING_FIELD),
                       "key_id must be there, as a string");
        return false;
    }
    if (json_string_of(q->json, node, room, sizeof(room), &text) && uuid_parse(text.bytes, text.size, ret_id))
        return true;
    return refuse_missing(r, ERROR_RFA_AUTH_API_KEY_NOT_FOUND, "this client has no such key");
}

static void serve_revoke_key(const struct request *q, struct response *r)
{
    char by[API_KEY_BY_MAX];
    struct api_key_revoke c = {.caller = q->identity.key,
                               .by = by_of(q, by),
                               .kept_us = atomic_load(&kept_s) * 1000000,
                               .request_id = span_of(q->trace.request_id, q->trace.request_id_length),
                               .reason = noted_reason(q)};
    struct digest hash;
    struct json json;
    size_t size = 0;
    if (!take_client(q, r, &c.client) || !take_key_id(q, r, &c.id))
        return;
    c.audit = new_id();
    uint64_t began = actor_now();
    enum error e = submit(q, &api_key_revoke_class, &c, &hash, sizeof(hash), &size);
    if (e || size != sizeof(hash)) {
        refuse(r, e ? e : ERR_UNANSWERED, ERROR_RFA_AUTH_API_KEY_NOT_FOUND);
        return;
    }
    api_key_forget(&hash);
    record_key_span(q, "api_key.revoke", &c.client, &c.id, began);
    response_begin(r, 200, RESPONSE_JSON);
    json_init(&json, &r->sink);
    json_object_begin(&json);
    JSON_MEMBER(&json, "revoked", bool, true);
    json_object_end(&json);
}

/* ---- for operators ---- */

static void serve_force_key(const struct request *q, struct response *r)
{
    struct uuid client;
    if (take_client(q, r, &client))
        issue(q, r, &client, API_KEY_FORCE, span_of("", 0));
}

struct client_picture {
    struct client client;
    struct client_keys keys;
    struct api_key active; /* its texts point into the two below */
    char created_by[API_KEY_BY_MAX];
    int64_t kept;
};

static enum error look_at(const struct uuid *id, struct client_picture *p)
{
    static const struct uuid none = {{0}};
    struct view *view = view_open(store_here());
    if (!view)
        return ERR_UNAVAILABLE;
    enum error e = client_read(&view->txn, id, &p->client);
    if (!e)
        e = client_read_keys(&view->txn, id, &p->keys);
    if (!e)
        e = counter_read(&view->txn, COUNTER_API_KEYS, span_of(id->bytes, sizeof(id->bytes)), &p->kept);
    if (!e && !uuid_equal(&p->keys.active, &none)) {
        e = api_key_read(&view->txn, &p->keys.active, &p->active);
        if (!e && p->active.created_by.size > 0)
            memcpy(p->created_by, p->active.created_by.bytes, p->active.created_by.size);
        p->active.created_by.bytes = p->created_by;
    }
    view_close(view);
    return e;
}

static void write_time(struct json *json, const char *name, uint64_t us)
{
    char text[TIME_TEXT_SIZE];
    time_format(us, text);
    JSON_MEMBER(json, name, string, us ? text : NULL);
}

static void write_picture(struct json *json, const struct client_picture *p)
{
    char id[UUID_TEXT_SIZE];
    uuid_format(&p->client.id, id);
    json_object_begin(json);
    json_key(json, "client");
    json_object_begin(json);
    JSON_MEMBER(json, "client_id", string, id);
    write_time(json, "created_at", p->client.created_us);
    json_object_end(json);
    json_key(json, "key");
    if (p->active.created_us) {
        uuid_format(&p->active.id, id);
        json_object_begin(json);
        JSON_MEMBER(json, "key_id", string, id);
        write_time(json, "created_at", p->active.created_us);
        write_time(json, "expires_at", p->active.expires_us);
        write_time(json, "last_used_at", p->active.used_us);
        json_key(json, "created_by");
        json_string_n(json, p->active.created_by.bytes, p->active.created_by.size);
        json_object_end(json);
    } else {
        json_null(json);
    }
    JSON_MEMBER(json, "keys_issued", uint, p->keys.issued);
    JSON_MEMBER(json, "keys_kept", int, p->kept);
    json_object_end(json);
}

/* For operators, and for the client itself. */
static void serve_client(const struct request *q, struct response *r)
{
    struct client_picture *p = actor_alloc(sizeof(*p));
    struct uuid id;
    struct json json;
    memset(p, 0, sizeof(*p));
    if (!take_client(q, r, &id))
        return;
    enum error e = look_at(&id, p);
    if (e) {
        refuse(r, e, ERROR_RFA_CLIENT_NOT_FOUND);
        return;
    }
    response_begin(r, 200, RESPONSE_JSON);
    json_init(&json, &r->sink);
    write_picture(&json, p);
}

/* ---- routes ---- */

#define JOBS_ROUTE(verb, text, who, bucket, size, optional, modifies, handler)                           \
    {                                                                                                    \
        .method = METHOD_##verb, .path = (text), .surface = SURFACE_JOBS, .auth = AUTH_##who,            \
        .limit = LIMIT_##bucket, .body_max = (size), .body_optional = (optional), .changes = (modifies), \
        .serve = (handler)                                                                               \
    }

const struct route client_routes[] = {
    {.method = METHOD_POST,
     .path = "/v1/clients",
     .surface = SURFACE_JOBS,
     .auth = AUTH_NONE,
     .limit = LIMIT_REGISTER,
     .everybody = LIMIT_REGISTER_ALL,
     .body_max = KEYS_BODY_MAX,
     .body_optional = true,
     .changes = true,
     .serve = serve_create_client},
    {.method = METHOD_POST,
     .path = "/v1/clients/{client_id}/keys",
     .surface = SURFACE_JOBS,
     .auth = AUTH_OPTIONAL,
     .limit = LIMIT_CLIENT,
     .anonymous = LIMIT_REGISTER,
     .everybody = LIMIT_REGISTER_ALL,
     .body_max = KEYS_BODY_MAX,
     .body_optional = true,
     .changes = true,
     .serve = serve_create_key},
    JOBS_ROUTE(POST, "/v1/clients/{client_id}/keys/renew", KEY, CLIENT, KEYS_BODY_MAX, true, true,
               serve_renew_key),
    JOBS_ROUTE(POST, "/v1/clients/{client_id}/keys/revoke", KEY, CLIENT, KEYS_BODY_MAX, false, true,
               serve_revoke_key),
    JOBS_ROUTE(GET, "/v1/clients/{client_id}", KEY, CLIENT, 0, false, false, serve_client),
};
const size_t client_routes_count = sizeof(client_routes) / sizeof(*client_routes);

const struct route client_operator_routes[] = {
    {.method = METHOD_GET,
     .path = "/clients/{client_id}",
     .surface = SURFACE_OPERATOR,
     .auth = AUTH_OPERATOR,
     .serve = serve_client},
    {.method = METHOD_POST,
     .path = "/clients/{client_id}/keys:issue",
     .surface = SURFACE_OPERATOR,
     .auth = AUTH_OPERATOR,
     .body_max = KEYS_BODY_MAX,
     .body_optional = true,
     .changes = true,
     .serve = serve_force_key},
    {.method = METHOD_POST,
     .path = "/clients/{client_id}/keys:revoke",
     .surface = SURFACE_OPERATOR,
     .auth = AUTH_OPERATOR,
     .body_max = KEYS_BODY_MAX,
     .changes = true,
     .serve = serve_revoke_key},
};
const size_t client_operator_routes_count = sizeof(client_operator_routes) / sizeof(*client_operator_routes);
