#include "http/bulk.h"

#include "actors/jobs.h"
#include "http/audits.h"
#include "http/commit.h"
#include "http/front.h"
#include "http/json_text.h"
#include "http/new_id.h"
#include "http/timestamp.h"
#include "store/job_bulk.h"
#include "store/view.h"

enum { ID_TRIES = 3, RETRY_S = 5 };

static const struct uuid nobody = {{0}};

/* ---- what the store said ---- */

static void refuse(struct response *r, enum error e)
{
    enum error_kind kind = ERROR_KIND_STORE;
    const char *what = catalogue_sentence(e);
    switch (e) {
    case ERR_NOT_FOUND:
        kind = ERROR_KIND_NOT_FOUND;
        what = "there is no such operation";
        break;
    case ERR_FORBIDDEN:
        kind = ERROR_KIND_FORBIDDEN;
        what = "this operation is another client's";
        break;
    case ERR_LIMIT:
        kind = ERROR_KIND_THROTTLED;
        what = "as many bulk actions run as may";
        response_header(r, "Retry-After", "%d", RETRY_S);
        break;
    case ERR_INVALID:
        kind = ERROR_KIND_INVALID;
        what = "this can't be meant";
        break;
    case ERR_TIMEOUT:
        kind = ERROR_KIND_TIMEOUT;
        break;
    case ERR_NO_SPACE:
        kind = ERROR_KIND_NO_SPACE;
        break;
    case ERR_DAMAGED:
    case ERR_NEWER:
    case ERR_IO:
        break;
    default:
        kind = ERROR_KIND_UNAVAILABLE;
    }
    response_error(r, catalogue_code(r->surface, kind), "%s", what);
}

/* ---- what was asked for ---- */

static const struct json_node *member(const struct request *q, const struct json_node *object,
                                      const char *name)
{
    return object && object->kind == JSON_OBJECT ? json_member(q->json, object, name) : NULL;
}

static struct span text_of(const struct request *q, const struct json_node *node)
{
    struct span text = {NULL, 0};
    if (!node || node->kind != JSON_STRING ||
        !json_string_of(q->json, node, actor_alloc(node->length), node->length, &text))
        return span_of(NULL, 0);
    return text;
}

static struct span text(const struct request *q, const struct json_node *object, const char *name)
{
    return text_of(q, member(q, object, name));
}

static bool take_states(const struct request *q, const struct json_node *filter, struct job_bulk *c)
{
    const struct json_node *list = member(q, filter, "states");
    c->states = (1u << JOB_STATE_COUNT) - 1;
    if (!list)
        return true;
    if (list->kind != JSON_ARRAY || list->count == 0)
        return false;
    c->states = 0;
    for (const struct json_node *n = json_first(q->json, list); n; n = json_after(q->json, list, n)) {
        struct span name = text_of(q, n);
        uint8_t state = 0;
        while (state < JOB_STATE_COUNT && !span_equal(name, span_text(job_state_name(state))))
            state++;
        if (state == JOB_STATE_COUNT)
            return false;
        c->states |= (uint8_t)(1u << state);
    }
    return true;
}

static bool take_type(const struct request *q, const struct json_node *filter, struct job_bulk *c)
{
    struct span name = text(q, filter, "type");
    c->type = BULK_ANY_TYPE;
    if (!name.bytes)
        return true;
    for (c->type = 0; c->type < JOB_TYPE_COUNT; c->type++)
        if (span_equal(name, span_text(job_type_name(c->type))))
            return true;
    return false;
}

static bool take_kind(const struct request *q, const struct json_node *filter, struct job_bulk *c)
{
    c->label = text(q, filter, "work_kind");
    if (!c->label.bytes)
        return true;
    uint8_t kind = work_kind_of(c->label);
    if (kind == WORK_KIND_NONE && !work_kind_user(c->label))
        return false;
    c->work = job_work_id(store_here(), kind == WORK_KIND_NONE ? (uint8_t)WORK_KIND_USER : kind, c->label);
    return true;
}

static bool take_time(const struct request *q, const struct json_node *filter, const char *name,
                      uint64_t *ret_us)
{
    struct span given = text(q, filter, name);
    return !given.bytes || timestamp_parse(given, ret_us);
}

static const char *take_filter(const struct request *q, const struct json_node *filter, struct job_bulk *c)
{
    struct span client = text(q, filter, "client");
    if (!filter || filter->kind != JSON_OBJECT || filter->count == 0)
        return "filter must name something: what is meant by nothing would be everything";
    if (!take_states(q, filter, c))
        return "filter.states must be a list of states of jobs";
    if (!take_type(q, filter, c))
        return "filter.type must be EXECUTE, DEFERRED or EMIT_EVENT";
    if (!take_kind(q, filter, c))
        return "filter.work_kind must be one of the catalogue, or one that begins with x.";
    if (!take_time(q, filter, "created_after", &c->from_us) ||
        !take_time(q, filter, "created_before", &c->until_us))
        return "created_after and created_before must be times in UTC, such as 2026-11-18T13:00:00Z";
    if (q->identity.kind == IDENTITY_CLIENT)
        return client.bytes ? "filter.client is for operators" : NULL;
    if (client.bytes && !uuid_parse(client.bytes, client.size, &c->client))
        return "filter.client must be a UUID";
    return NULL;
}

static const char *take(const struct request *q, struct job_bulk *c, bool *ret_dry)
{
    const struct json_node *root = q->json ? json_root(q->json) : NULL, *dry = member(q, root, "dry_run");
    struct span action = text(q, root, "action"), reason = text(q, root, "reason"), who = q->identity.subject;
    *c = (struct job_bulk){.who = who.size <= BULK_WHO ? who : span_of(NULL, 0), .by_steady = 1};
    if (q->identity.kind == IDENTITY_CLIENT)
        c->owner = c->client = q->identity.client;
    for (c->action = 0; c->action < BULK_ACTION_COUNT; c->action++)
        if (span_equal(action, span_text(bulk_action_name(c->action))))
            break;
    *ret_dry = dry && dry->kind == JSON_TRUE;
    c->reason = audits_cut(reason, BULK_REASON);
    return c->action == BULK_ACTION_COUNT ? "action must be cancel or retry"
                                          : take_filter(q, member(q, root, "filter"), c);
}

/* ---- what is told ---- */

static void write_time(struct json *json, const char *name, uint64_t us)
{
    char at[TIME_TEXT_SIZE];
    job_time_format(us, at);
    JSON_MEMBER(json, name, string, us ? at : NULL);
}

static void write_id(struct json *json, const char *name, const struct uuid *id)
{
    char given[UUID_TEXT_SIZE];
    uuid_format(id, given);
    JSON_MEMBER(json, name, string, uuid_equal(id, &nobody) ? NULL : given);
}

static void write_filter(struct json *json, const struct bulk *b)
{
    json_key(json, "filter");
    json_object_begin(json);
    write_id(json, "client", &b->client);
    json_key(json, "states");
    json_array_begin(json);
    for (uint8_t i = 0; i < (uint8_t)JOB_STATE_COUNT; i++)
        if (b->states & 1u << i)
            json_string(json, job_state_name(i));
    json_array_end(json);
    JSON_MEMBER(json, "type", string, b->type == BULK_ANY_TYPE ? NULL : job_type_name(b->type));
    json_key(json, "work_kind");
    if (b->label.size > 0)
        json_string_n(json, b->label.bytes, b->label.size);
    else
        json_null(json);
    write_time(json, "created_after", b->from_us);
    write_time(json, "created_before", b->until_us);
    json_object_end(json);
}

/* In thousandths. */
static uint64_t progress_of(const struct bulk *b)
{
    if (b->state == BULK_DONE || b->last_seq == 0)
        return 1000;
    uint64_t at = b->after_seq < b->last_seq ? b->after_seq : b->last_seq;
    return (uint64_t)((unsigned __int128)at * 1000 / b->last_seq);
}

static void write_operation(struct json *json, const struct bulk *b)
{
    json_object_begin(json);
    write_id(json, "operation_id", &b->id);
    JSON_MEMBER(json, "action", string, bulk_action_name(b->action));
    JSON_MEMBER(json, "state", string, lifecycle_state_name(&bulk_lifecycle, b->state));
    write_filter(json, b);
    write_time(json, "created_at", b->created_us);
    write_time(json, "finished_at", b->finished_us);
    json_key(json, "progress");
    json_decimal(json, (int64_t)progress_of(b), 3);
    JSON_MEMBER(json, "matched", uint, b->matched);
    JSON_MEMBER(json, "changed", uint, b->changed);
    JSON_MEMBER(json, "unchanged", uint, b->left);
    json_object_end(json);
}

static enum error read_operation(const struct request *q, const struct uuid *id, struct bulk *ret)
{
    struct view *view = store_here() ? view_open(store_here()) : NULL;
    if (!view)
        return ERR_UNAVAILABLE;
    enum error e = bulk_read(&view->txn, id, ret);
    if (!e && q->identity.kind == IDENTITY_CLIENT && !uuid_equal(&ret->owner, &q->identity.client))
        e = ERR_FORBIDDEN;
    if (!e && ret->label.size > 0) { /* the only text of it that is told */
        char *copy = actor_alloc(ret->label.size);
        memcpy(copy, ret->label.bytes, ret->label.size);
        ret->label = span_of(copy, ret->label.size);
    }
    view_close(view);
    return e;
}

static void answer_operation(const struct request *q, struct response *r, const struct uuid *id, int status)
{
    char given[UUID_TEXT_SIZE];
    struct bulk bulk;
    struct json json;
    enum error e = read_operation(q, id, &bulk);
    if (e) {
        refuse(r, e);
        return;
    }
    uuid_format(id, given);
    response_begin(r, status, RESPONSE_JSON);
    if (status == 202)
        response_header(r, "Location", "%s/operations/%s", r->surface == SURFACE_JOBS ? "/v1" : "", given);
    json_init(&json, &r->sink);
    write_operation(&json, &bulk);
}

/* ---- a dry run ---- */

struct dry {
    struct bulk bulk; /* as the task would be */
    struct uuid sample[BULK_SAMPLE];
    uint32_t shown;
    uint64_t count;
    bool end;
};

static enum error look_once(struct dry *d, uint16_t retry_max)
{
    struct uuid ids[BULK_CHANGE_MAX];
    uint32_t count = 0, looks = 0;
    struct view *view = store_here() ? view_open(store_here()) : NULL;
    enum error e = view ? OK : ERR_UNAVAILABLE;
    while (!e && !d->end && looks++ < BULK_LOOK_MAX / BULK_CHANGE_MAX) {
        e = bulk_look(&view->txn, &d->bulk, retry_max, ids, BULK_CHANGE_MAX, &count, &d->end);
        for (uint32_t i = 0; i < count && d->shown < BULK_SAMPLE; i++)
            d->sample[d->shown++] = ids[i];
        d->count += count;
        if (count < BULK_CHANGE_MAX)
            break; /* it has looked at as many as may be in one view */
    }
    if (view)
        view_close(view);
    return e;
}

static void serve_dry(struct response *r, const struct job_bulk *c)
{
    struct dry d = {.bulk = {.action = c->action,
                             .client = c->client,
                             .states = c->states,
                             .type = c->type,
                             .work = c->work,
                             .from_us = c->from_us,
                             .until_us = c->until_us,
                             .last_seq = UINT64_MAX}};
    const uint16_t retry_max = jobs_settings().retry_max;
    struct json json;
    enum error e = OK;
    for (uint32_t i = 0; !e && !d.end && i < BULK_DRY_JOBS / BULK_LOOK_MAX; i++) {
        e = look_once(&d, retry_max);
        actor_yield();
    }
    if (e) {
        refuse(r, e);
        return;
    }
    response_begin(r, 200, RESPONSE_JSON);
    json_init(&json, &r->sink);
    json_object_begin(&json);
    JSON_MEMBER(&json, "action", string, bulk_action_name(c->action));
    JSON_MEMBER(&json, "dry_run", bool, true);
    JSON_MEMBER(&json, "count", uint, d.count);
    JSON_MEMBER(&json, "unchanged", uint, d.bulk.left);
    JSON_MEMBER(&json, "complete", bool, d.end);
    json_key(&json, "sample");
    json_array_begin(&json);
    for (uint32_t i = 0; i < d.shown; i++) {
        char id[UUID_TEXT_SIZE];
        uuid_format(&d.sample[i], id);
        json_string(&json, id);
    }
    json_array_end(&json);
    json_object_end(&json);
}

/* ---- handlers ---- */

static void note(const struct request *q, const char *verb, const struct uuid *id, struct span reason,
                 enum error e)
{
    char target[UUID_TEXT_SIZE];
    if (q->identity.kind == IDENTITY_CLIENT)
        return;
    uuid_format(id, target);
    (void)audits_note(
        q, &(struct audits_entry){
               .verb = verb, .target = target, .reason = reason, .outcome = e ? "refused" : "done"});
}

static void serve_bulk(const struct request *q, struct response *r)
{
    struct job_bulk c;
    bool dry = false;
    enum error e = ERR_EXISTS;
    const char *why = take(q, &c, &dry);
    if (why) {
        response_error(r, catalogue_code(r->surface, ERROR_KIND_INVALID), "%s", why);
        return;
    }
    if (dry) {
        serve_dry(r, &c);
        return;
    }
    for (int i = 0; i < ID_TRIES && e == ERR_EXISTS; i++) {
        c.id = new_id();
        e = commit_submit(q, &job_bulk_class, &c, NULL, 0, NULL, commit_deadline(q));
    }
    note(q, c.action == BULK_CANCEL ? "jobs.bulk_cancel" : "jobs.bulk_retry", &c.id, c.reason, e);
    if (e)
        refuse(r, e);
    else
        answer_operation(q, r, &c.id, 202);
}

static bool take_id(const struct request *q, struct response *r, struct uuid *ret_id)
{
    if (uuid_parse(q->params[0].bytes, q->params[0].size, ret_id))
        return true;
    refuse(r, ERR_NOT_FOUND);
    return false;
}

static void serve_operation(const struct request *q, struct response *r)
{
    struct uuid id;
    if (take_id(q, r, &id))
        answer_operation(q, r, &id, 200);
}

static void serve_abort(const struct request *q, struct response *r)
{
    struct job_bulk_abort c = {.owner = nobody};
    if (!take_id(q, r, &c.id))
        return;
    if (q->identity.kind == IDENTITY_CLIENT)
        c.owner = q->identity.client;
    enum error e = commit_submit(q, &job_bulk_abort_class, &c, NULL, 0, NULL, commit_deadline(q));
    note(q, "jobs.bulk_abort", &c.id, text(q, q->json ? json_root(q->json) : NULL, "reason"), e);
    if (e)
        refuse(r, e);
    else
        answer_operation(q, r, &c.id, 200);
}

/* ---- the tables ---- */

#define OWN(verb, text_, size, handler, ...)                                                 \
    {                                                                                        \
        .method = METHOD_##verb, .path = (text_), .surface = SURFACE_JOBS, .auth = AUTH_KEY, \
        .limit = LIMIT_CLIENT, .body_max = (size), .changes = METHOD_##verb != METHOD_GET,   \
        .serve = (handler), __VA_ARGS__                                                      \
    }
const struct route bulk_routes[] = {
    OWN(POST, "/v1/jobs:bulk", BULK_BODY_MAX, serve_bulk, .action = "bulk"),
    OWN(GET, "/v1/operations/{operation_id}", 0, serve_operation, .action = "operation"),
    OWN(POST, "/v1/operations/{operation_id}:abort", BULK_BODY_MAX, serve_abort, .body_optional = true,
        .action = "abort"),
};
const size_t bulk_routes_count = sizeof(bulk_routes) / sizeof(*bulk_routes);

#define OPERATED(verb, text_, size, handler, ...)                                                     \
    {                                                                                                 \
        .method = METHOD_##verb, .path = (text_), .surface = SURFACE_OPERATOR, .auth = AUTH_OPERATOR, \
        .body_max = (size), .changes = METHOD_##verb != METHOD_GET, .serve = (handler), __VA_ARGS__   \
    }
const struct route bulk_operator_routes[] = {
    OPERATED(POST, "/jobs:bulk", BULK_BODY_MAX, serve_bulk, .body_optional = false),
    OPERATED(GET, "/operations/{operation_id}", 0, serve_operation, .body_optional = false),
    OPERATED(POST, "/operations/{operation_id}:abort", BULK_BODY_MAX, serve_abort, .body_optional = true),
};
const size_t bulk_operator_routes_count = sizeof(bulk_operator_routes) / sizeof(*bulk_operator_routes);
