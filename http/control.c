#include "http/control.h"

#include <stdio.h>

#include "http/commit.h"
#include "http/json_text.h"
#include "runtime/hash.h"
#include "store/audit.h"
#include "store/token.h"

enum { NO_QUEUE_RETRY_S = 60, DLQ_ITEMS_MAX = 100, DLQ_DEFAULT = 20, DETAILS_MAX = 8192 };
#define DLQ_TOKENS 1u /* of page tokens */

/* ---- refusing, with the field that is wrong ---- */

struct wrong {
    const char *fields[8];
    uint32_t count;
    const char *what; /* of all of them */
};

static void write_pointer(struct json *json, const char *field)
{
    char pointer[64];
    snprintf(pointer, sizeof(pointer), "/%s", field);
    for (char *at = pointer; *at; at++)
        *at = *at == '.' ? '/' : *at;
    JSON_MEMBER(json, "pointer", string, pointer);
}

/* As the front writes the defects that a schema finds. */
static void write_wrong(struct json *json, void *context)
{
    const struct wrong *w = context;
    JSON_MEMBER(json, "field", string, w->fields[0]);
    json_key(json, "errors");
    json_array_begin(json);
    for (uint32_t i = 0; i < w->count; i++) {
        json_object_begin(json);
        JSON_MEMBER(json, "field", string, w->fields[i]);
        JSON_MEMBER(json, "message", string, w->what);
        write_pointer(json, w->fields[i]);
        json_object_end(json);
    }
    json_array_end(json);
}

static enum error_code refuse_wrong(struct response *r, enum error_code code, struct wrong *w)
{
    char text[160];
    snprintf(text, sizeof(text), "%s %s", w->fields[0], w->what);
    response_error_with(r, code, text, write_wrong, w);
    return code;
}

enum error_code control_refuse(struct response *r, enum error_code code, const char *field, const char *what)
{
    struct wrong w = {.fields = {field}, .count = 1, .what = what};
    return refuse_wrong(r, code, &w);
}

/* ---- what stands before every command ---- */

static const struct json_node *meta_member(const struct request *q, const char *name)
{
    const struct json_node *meta = request_member(q, "meta");
    return meta && meta->kind == JSON_OBJECT ? json_member(q->json, meta, name) : NULL;
}

/* A string of the body, in the request's memory; without bytes when it is none. */
static struct span text_of(const struct request *q, const struct json_node *node)
{
    struct span text = {NULL, 0};
    if (node && node->kind == JSON_STRING)
        (void)json_string_of(q->json, node, actor_alloc(node->length), node->length, &text);
    return text;
}

struct span control_text(const struct request *q, const char *name)
{
    return text_of(q, request_member(q, name));
}

/* What the headers don't say: a client finds its own ids in the answer, whatever it is. */
static void adopt_ids(struct request *q)
{
    const struct span nothing = {NULL, 0};
    trace_adopt(&q->trace,
                q->known[HEADER_REQUEST_ID].bytes ? nothing : text_of(q, meta_member(q, "request_id")),
                q->known[HEADER_TRACEPARENT].bytes ? nothing : text_of(q, meta_member(q, "trace_id")));
}

enum error_code control_precheck(struct request *q, struct response *r)
{
    const struct json_node *version = meta_member(q, "schema_version");
    adopt_ids(q);
    if (!version || version->kind != JSON_STRING || span_equal(text_of(q, version), span_text("v1")))
        return ERROR_NONE;
    return control_refuse(r, ERROR_CONTRACT_409_VERSION_MISMATCH, "meta.schema_version", "must be v1");
}

/* AMB-07: the schema lets an empty one pass. */
static enum error_code refuse_empty(const struct request *q, struct response *r)
{
    static const char *const of_meta[] = {"meta.request_id", "meta.trace_id", "meta.actor_id",
                                          "meta.project_id"};
    static const char *const of_body[] = {"idempotency_key", "intent"};
    struct wrong w = {.what = "must not be empty"};
    for (size_t i = 0; i < sizeof(of_meta) / sizeof(*of_meta); i++)
        if (text_of(q, meta_member(q, of_meta[i] + strlen("meta."))).size == 0)
            w.fields[w.count++] = of_meta[i];
    for (size_t i = 0; i < sizeof(of_body) / sizeof(*of_body); i++) {
        const struct json_node *node = request_member(q, of_body[i]);
        if (node && text_of(q, node).size == 0)
            w.fields[w.count++] = of_body[i];
    }
    return w.count ? refuse_wrong(r, ERROR_REQ_400_INVALID_SCHEMA, &w) : ERROR_NONE;
}

enum error_code control_admit(const struct request *q, struct response *r, bool any_project)
{
    struct span actor = text_of(q, meta_member(q, "actor_id")),
                project = text_of(q, meta_member(q, "project_id"));
    enum error_code code = refuse_empty(q, r);
    if (code != ERROR_NONE)
        return code;
    if (!span_equal(actor, q->identity.subject))
        return control_refuse(r, ERROR_AUTH_403_ROLE, "meta.actor_id", "must be the token's subject");
    if (!any_project && !identity_may(&q->identity, project))
        return control_refuse(r, ERROR_AUTH_403_SCOPE, "meta.project_id",
                              "is outside the token's project scope");
    return ERROR_NONE;
}

/* The id in the path; false: answered. Of either case (AMB-03). */
static bool take_id(const struct request *q, struct response *r, const char *name, struct uuid *ret_id)
{
    bool good = uuid_parse(q->params[0].bytes, q->params[0].size, ret_id);
    if (!good)
        (void)control_refuse(r, ERROR_REQ_400_INVALID_SCHEMA, name, "must be a UUID");
    return good;
}

/* ---- jobs, of which there are none ---- */

static void serve_submit(const struct request *q, struct response *r)
{
    if (control_admit(q, r, false) != ERROR_NONE)
        return;
    response_header(r, "Retry-After", "%d", NO_QUEUE_RETRY_S);
    response_error(r, ERROR_JOB_503_QUEUE_UNAVAILABLE, "this server takes no jobs; nothing was stored");
}

static void no_job(struct response *r)
{
    response_error(r, ERROR_JOB_404_NOT_FOUND, "there is no such job");
}

static void serve_job(const struct request *q, struct response *r)
{
    struct uuid id;
    if (take_id(q, r, "job_id", &id))
        no_job(r);
}

static void serve_cancel(const struct request *q, struct response *r)
{
    struct uuid id;
    if (take_id(q, r, "job_id", &id) && control_admit(q, r, false) == ERROR_NONE)
        no_job(r);
}

/* `only`: the decision that the path stands for (AMB-04); NULL: any. */
static void decide(const struct request *q, struct response *r, const char *only)
{
    struct uuid id;
    if (!take_id(q, r, "job_id", &id))
        return;
    if (only && !span_equal(text_of(q, request_member(q, "decision")), span_text(only))) {
        (void)control_refuse(r, ERROR_REQ_400_INVALID_SCHEMA, "decision", "must be what the path says");
        return;
    }
    if (control_admit(q, r, false) == ERROR_NONE)
        no_job(r);
}

static void serve_approve(const struct request *q, struct response *r)
{
    decide(q, r, "approve");
}

static void serve_reject(const struct request *q, struct response *r)
{
    decide(q, r, "reject");
}

static void serve_decision(const struct request *q, struct response *r)
{
    decide(q, r, NULL);
}

/* ---- dead letters, of which there are none ---- */

/* A whole number from 1 to most; `otherwise` when it is absent. False: answered. */
static bool take_number(const struct request *q, struct response *r, const char *name, uint64_t otherwise,
                        uint64_t most, uint64_t *ret_number)
{
    char room[24];
    bool bad = false;
    uint64_t number = 0;
    const char *text = request_query(q, name, room, sizeof(room), &bad);
    *ret_number = otherwise;
    if (!text && !bad)
        return true;
    for (const char *at = text ? text : "x"; *at && !bad; at++) {
        bad = *at < '0' || *at > '9' || number > most;
        number = number * 10 + (uint64_t)(*at - '0');
    }
    if (!bad && number >= 1 && number <= most) {
        *ret_number = number;
        return true;
    }
    (void)control_refuse(r, ERROR_REQ_400_INVALID_SCHEMA, name, "is not a whole number that is allowed here");
    return false;
}

/* What the list depends on is part of its cursors. False: answered. */
static bool take_filters(const struct request *q, struct response *r, struct hash_sip *filter)
{
    static const char *const names[] = {"event_name", "project_id"};
    char room[1024];
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        bool bad = false;
        const char *text = request_query(q, names[i], room, sizeof(room), &bad);
        if (bad) {
            (void)control_refuse(r, ERROR_REQ_400_INVALID_SCHEMA, names[i],
                                 "can't be read, or is there twice");
            return false;
        }
        size_t length = text ? strlen(text) + 1 : 0;
        hash_sip_add(filter, &length, sizeof(length));
        hash_sip_add(filter, text ? text : "", length);
    }
    return true;
}

static bool take_cursor(const struct request *q, struct response *r, uint64_t filter)
{
    char room[TOKEN_TEXT_MAX];
    bool bad = false;
    struct key key;
    const char *text = request_query(q, "cursor", room, sizeof(room), &bad);
    if (!bad && (!text || token_open(store_here(), DLQ_TOKENS, filter, text, strlen(text), &key) == OK))
        return true;
    (void)control_refuse(r, ERROR_REQ_400_INVALID_SCHEMA, "cursor", "is not the next_cursor of this list");
    return false;
}

static void serve_dlq_items(const struct request *q, struct response *r)
{
    struct hash_key secret;
    struct hash_sip filter;
    struct json json;
    uint64_t limit, max_age_hours;
    memcpy(&secret, store_here()->secret, sizeof(secret));
    hash_sip_start(&filter, &secret);
    if (!take_number(q, r, "limit", DLQ_DEFAULT, DLQ_ITEMS_MAX, &limit) ||
        !take_number(q, r, "max_age_hours", 0, UINT32_MAX, &max_age_hours) || !take_filters(q, r, &filter))
        return;
    hash_sip_add(&filter, &max_age_hours, sizeof(max_age_hours));
    if (!take_cursor(q, r, hash_sip_end(&filter)))
        return;
    response_begin(r, 200, RESPONSE_JSON);
    json_init(&json, &r->sink);
    json_object_begin(&json);
    json_key(&json, "items");
    json_array_begin(&json);
    json_array_end(&json);
    JSON_MEMBER(&json, "total_count", uint, 0);
    json_key(&json, "next_cursor");
    json_null(&json);
    json_object_end(&json);
}

static void serve_reprocess(const struct request *q, struct response *r)
{
    struct uuid id;
    if (take_id(q, r, "event_id", &id) && control_admit(q, r, true) == ERROR_NONE)
        response_error(r, ERROR_DLQ_404_NOT_FOUND, "there is no such dead letter");
}

/* ---- bulk reprocess ---- */

struct bulk {
    const struct json_node *ids;
    char details[DETAILS_MAX]; /* of the audit entry */
    size_t details_size;
    char who[AUDIT_WHO_MAX], key[33];
    uint32_t who_size;
};

/* Who, for an audit entry: a subject that is too long is cut, between two characters, and told apart by a hash. */
static void name_actor(const struct request *q, struct bulk *bulk)
{
    const char *subject = q->identity.subject.bytes;
    uint32_t size = q->identity.subject.size;
    if (size <= AUDIT_WHO_MAX) {
        memcpy(bulk->who, subject, size);
        bulk->who_size = size;
        return;
    }
    struct hash_key key;
    uint32_t cut = AUDIT_WHO_MAX - 18;
    memcpy(&key, store_here()->secret, sizeof(key));
    while (cut > 0 && ((uint8_t)subject[cut] & 0xc0) == 0x80)
        cut--;
    memcpy(bulk->who, subject, cut);
    bulk->who_size = cut + (uint32_t)snprintf(bulk->who + cut, AUDIT_WHO_MAX - cut, "~%016llx",
                                              (unsigned long long)hash_sip24(&key, subject, size));
}

/* The client's key within this operation, as the ledger can hold it, however long it is. */
static void name_key(const struct request *q, struct bulk *bulk)
{
    struct span text = text_of(q, request_member(q, "idempotency_key"));
    struct hash_key key;
    unsigned long long words[2];
    memcpy(&key, store_here()->secret, sizeof(key));
    for (size_t i = 0; i < 2; i++) {
        struct hash_sip sip;
        hash_sip_start(&sip, &(struct hash_key){key.k0 ^ (i + 1), key.k1});
        hash_sip_add(&sip, "bulkReprocessDlqItems", sizeof("bulkReprocessDlqItems"));
        hash_sip_add(&sip, text.bytes, text.size);
        words[i] = hash_sip_end(&sip);
    }
    snprintf(bulk->key, sizeof(bulk->key), "%016llx%016llx", words[0], words[1]);
}

static uint32_t write_details(const struct request *q, struct bulk *bulk)
{
    struct json_sink sink;
    struct json json;
    struct span project = text_of(q, meta_member(q, "project_id"));
    json_sink_init(&sink, bulk->details, sizeof(bulk->details), NULL, NULL);
    json_init(&json, &sink);
    json_object_begin(&json);
    json_key(&json, "project_id");
    json_string_n(&json, project.bytes, project.size < 256 ? project.size : 256);
    json_key(&json, "event_ids");
    json_array_begin(&json);
    uint32_t count = 0;
    for (const struct json_node *id = json_first(q->json, bulk->ids); id;
         id = json_after(q->json, bulk->ids, id), count++) {
        struct span text = text_of(q, id);
        json_string_n(&json, text.bytes, text.size);
    }
    json_array_end(&json);
    JSON_MEMBER(&json, "accepted_count", uint, 0);
    JSON_MEMBER(&json, "rejected_count", uint, count);
    json_object_end(&json);
    ASSERT(json_end(&json) == JSON_OK);
    bulk->details_size = sink.length;
    return count;
}

static void refuse_bulk(struct response *r, enum error e)
{
    if (e == ERR_KEY_REUSED)
        response_error(r, ERROR_JOB_409_IDEMPOTENCY_CONFLICT,
                       "this idempotency_key came with another body before");
    else
        response_error(r, ERROR_INFRA_503_DEPENDENCY_DOWN,
                       "the audit entry could not be written; nothing was done");
}

static void write_batch(struct response *r, const struct uuid *batch, uint32_t rejected)
{
    char text[UUID_TEXT_SIZE];
    struct json json;
    uuid_format(batch, text);
    response_begin(r, 202, RESPONSE_JSON);
    json_init(&json, &r->sink);
    json_object_begin(&json);
    JSON_MEMBER(&json, "accepted_count", uint, 0);
    JSON_MEMBER(&json, "rejected_count", uint, rejected);
    JSON_MEMBER(&json, "batch_id", string, text);
    json_object_end(&json);
}

/* The batch is its audit entry: so it has the same id when the request comes again with the same key. */
static void serve_bulk(const struct request *q, struct response *r)
{
    struct uuid_source source;
    struct uuid batch;
    size_t size = 0;
    struct bulk *bulk = actor_alloc(sizeof(*bulk));
    bulk->ids = request_member(q, "event_ids");
    if (!bulk->ids || bulk->ids->kind != JSON_ARRAY || bulk->ids->count < 1 ||
        bulk->ids->count > DLQ_ITEMS_MAX) {
        (void)control_refuse(r, ERROR_REQ_400_INVALID_SCHEMA, "event_ids", "must have 1 to 100 elements");
        return;
    }
    if (control_admit(q, r, true) != ERROR_NONE)
        return;
    uuid_source_init(&source, store_here()->env);
    name_actor(q, bulk);
    name_key(q, bulk);
    uint32_t rejected = write_details(q, bulk);
    struct audit_append c = {.id = uuid_v4(&source),
                             .key = span_text(bulk->key),
                             .who = span_of(bulk->who, bulk->who_size),
                             .verb = span_text("dlq.reprocess_bulk"),
                             .target = span_text("dlq"),
                             .outcome = span_text("rejected"),
                             .request_id = span_of(q->trace.request_id, q->trace.request_id_length),
                             .details = span_of(bulk->details, bulk->details_size)};
    enum error e =
        commit_submit(q, &audit_append_class, &c, &batch, sizeof(batch), &size, commit_deadline(q));
    if (e || size != sizeof(batch))
        refuse_bulk(r, e);
    else
        write_batch(r, &batch, rejected);
}

/* ---- routes ---- */

#define SUBMITTERS                                                                                      \
    (ROLE_OWNER | ROLE_INFRA_APPROVER | ROLE_APPROVER | ROLE_OPERATOR | ROLE_SUBMITTER | ROLE_SERVICE | \
     ROLE_AGENT)
#define DECIDERS (ROLE_OWNER | ROLE_INFRA_APPROVER | ROLE_APPROVER)
#define KEEPERS  (ROLE_OWNER | ROLE_INFRA_APPROVER)

#define GET_ROUTE(text, contract_path, who, bucket, handler)                                     \
    {                                                                                            \
        .method = METHOD_GET, .path = (text), .surface = SURFACE_CONTROL, .auth = AUTH_TOKEN,    \
        .roles = (who), .limit = LIMIT_##bucket, .serve = (handler), .alias_of = (contract_path) \
    }
#define POST_ROUTE(text, contract_path, who, bucket, handler)                                   \
    {                                                                                           \
        .method = METHOD_POST, .path = (text), .surface = SURFACE_CONTROL, .auth = AUTH_TOKEN,  \
        .roles = (who), .limit = LIMIT_##bucket, .body_max = CONTROL_BODY_MAX, .changes = true, \
        .precheck = control_precheck, .serve = (handler), .alias_of = (contract_path)           \
    }
/* As the contract has it, and the same below /v1. */
#define GET_BOTH(text, who, bucket, handler) \
    GET_ROUTE(text, NULL, who, bucket, handler), GET_ROUTE("/v1" text, text, who, bucket, handler)
#define POST_BOTH(text, who, bucket, handler) \
    POST_ROUTE(text, NULL, who, bucket, handler), POST_ROUTE("/v1" text, text, who, bucket, handler)

/* Who may cancel depends on the job, too: whoever submitted it, and keepers and operators. */
const struct route control_routes[] = {
    POST_BOTH("/jobs:submit", SUBMITTERS, SUBMIT, serve_submit),
    GET_ROUTE("/jobs/{job_id}", NULL, 0, SUBJECT, serve_job),
    POST_BOTH("/jobs/{job_id}:cancel", SUBMITTERS, SUBJECT, serve_cancel),
    POST_BOTH("/jobs/{job_id}:approve", DECIDERS, DECISION, serve_approve),
    POST_BOTH("/jobs/{job_id}:reject", DECIDERS, DECISION, serve_reject),
    POST_BOTH("/jobs/{job_id}:decision", DECIDERS, DECISION, serve_decision),
    GET_BOTH("/dlq/items", KEEPERS, DLQ_LIST, serve_dlq_items),
    POST_BOTH("/dlq/items/{event_id}:reprocess", KEEPERS, DLQ_REPROCESS, serve_reprocess),
    POST_BOTH("/dlq/items:reprocess-bulk", KEEPERS, DLQ_BULK, serve_bulk),
};
const size_t control_routes_count = sizeof(control_routes) / sizeof(*control_routes);

const struct route control_shared_job =
    GET_ROUTE("/v1/jobs/{job_id}", "/jobs/{job_id}", 0, SUBJECT, serve_job);
