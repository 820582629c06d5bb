#include "http/webhooks.h"

#include "actors/callback_url.h"
#include "actors/webhooks.h"
#include "http/commit.h"
#include "http/front.h"
#include "http/idempotency.h"
#include "http/job_json.h"
#include "http/json_text.h"
#include "http/new_id.h"
#include "http/rendered.h"
#include "store/job.h"
#include "store/view.h"

enum { ID_TRIES = 3, EVENT_NAME_MAX = 64 };

/* ---- refusals ---- */

static enum error_code code_of(enum error e)
{
    switch (e) {
    case ERR_NOT_FOUND:
        return ERROR_RFA_WEBHOOK_NOT_FOUND;
    case ERR_FORBIDDEN:
        return ERROR_RFA_AUTH_FORBIDDEN;
    case ERR_CONFLICT:
        return ERROR_RFA_WEBHOOK_CONFLICT;
    case ERR_LIMIT:
        return ERROR_RFA_REQUEST_RATE_LIMITED;
    case ERR_KEY_REUSED:
        return ERROR_RFA_EXEC_IDEMPOTENCY_CONFLICT;
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

static const char *what_of(enum error e)
{
    switch (e) {
    case ERR_NOT_FOUND:
        return "there is no such webhook";
    case ERR_FORBIDDEN:
        return "this webhook belongs to another client";
    case ERR_LIMIT:
        return "as many webhooks of this client are there as may be, or as many idempotency keys are "
               "remembered";
    case ERR_KEY_REUSED:
        return "this Idempotency-Key came with another body before";
    default:
        return catalogue_sentence(e);
    }
}

static void refuse(struct response *r, enum error e)
{
    if (e == ERR_LIMIT)
        response_header(r, "Retry-After", "3600");
    response_error_with(r, code_of(e), what_of(e), NULL, NULL);
}

static bool malformed(struct response *r, const char *field, const char *what)
{
    response_error_field(r, ERROR_RFA_REQUEST_MALFORMED, field, what);
    return false;
}

static bool invalid(struct response *r, const char *field, const char *what)
{
    response_error_field(r, ERROR_RFA_JOB_VALIDATION_FAILED, field, what);
    return false;
}

/* ---- a new one: what the body says ---- */

static bool take_url(const struct request *q, struct response *r, struct webhook_put *c)
{
    const struct json_node *node = request_member(q, "url");
    const char *why = "";
    if (!node)
        return invalid(r, "url", "is needed");
    if (node->kind != JSON_STRING)
        return malformed(r, "url", "must be a string");
    char *room = node->flags & JSON_ESCAPED ? actor_alloc(node->length) : NULL;
    if (!json_string_of(q->json, node, room, node->length, &c->url))
        return invalid(r, "url", "can't be read");
    return callback_url_check(c->url, webhooks_settings().allow_private, &why) ? true
                                                                               : invalid(r, "url", why);
}

static bool take_event(const struct request *q, struct response *r, const struct json_node *node,
                       struct webhook_put *c)
{
    char room[EVENT_NAME_MAX];
    struct span name;
    uint8_t bit = 0;
    if (node->kind != JSON_STRING)
        return malformed(r, "events", "must be an array of strings");
    if (!json_string_of(q->json, node, room, sizeof(room), &name))
        return invalid(r, "events", "names an event that there isn't");
    bool all = span_equal(name, span_text("*"));
    if (!all && !webhook_event_named(name, &bit))
        return invalid(r, "events", "names an event that there isn't");
    c->events |= all ? WEBHOOK_ALL : UINT32_C(1) << bit;
    return true;
}

/* Every name at most once: so they are as many as there are different ones. */
static bool take_events(const struct request *q, struct response *r, struct webhook_put *c)
{
    const struct json_node *list = request_member(q, "events");
    uint32_t count = 0, names = 0;
    bool all = false;
    if (!list)
        return invalid(r, "events", "is needed");
    if (list->kind != JSON_ARRAY)
        return malformed(r, "events", "must be an array of strings");
    for (const struct json_node *n = json_first(q->json, list); n; n = json_after(q->json, list, n)) {
        struct webhook_put one = {.events = 0};
        if (!take_event(q, r, n, &one))
            return false;
        if (one.events == WEBHOOK_ALL ? all : (names & one.events) != 0)
            return invalid(r, "events", "names an event twice");
        all |= one.events == WEBHOOK_ALL;
        names |= one.events == WEBHOOK_ALL ? 0 : one.events;
        count++;
    }
    if (count == 0)
        return invalid(r, "events", "must name an event, or be [\"*\"]");
    c->events = all ? WEBHOOK_ALL : names;
    return true;
}

/* q->prepared is a struct webhook_put with URL and events. A body that is no object is left to the schema. */
static enum error_code precheck(struct request *q, struct response *r)
{
    struct webhook_put *c = actor_alloc(sizeof(*c));
    *c = (struct webhook_put){.events = 0};
    if (json_root(q->json)->kind != JSON_OBJECT)
        return ERROR_NONE;
    if (!take_url(q, r, c) || !take_events(q, r, c))
        return r->error;
    q->prepared = c;
    return ERROR_NONE;
}

/* ---- commands ---- */

static enum error submit(const struct request *q, const struct command_class *class, const void *command,
                         void *ret, size_t room, size_t *ret_size)
{
    return commit_submit(q, class, command, ret, room, ret_size, commit_deadline(q));
}

static enum error put_once(const struct request *q, struct webhook_put *c, struct webhook_made *ret)
{
    uint8_t bytes[WEBHOOK_MADE_SIZE];
    size_t size = 0;
    c->id = new_id();
    enum error e = submit(q, &webhook_put_class, c, bytes, sizeof(bytes), &size);
    if (e)
        return e;
    return size == sizeof(bytes) ? record_decode(&webhook_made_record, 1, span_of(bytes, size), ret)
                                 : ERR_UNANSWERED;
}

static void serve_put(const struct request *q, struct response *r)
{
    char id[UUID_TEXT_SIZE];
    struct webhook_made made = {.created_us = 0};
    struct json json;
    enum error e = ERR_EXISTS;
    ASSERT(q->prepared);
    struct webhook_put c = *(const struct webhook_put *)q->prepared;
    c.client = q->identity.client;
    if (!idempotency_take_key(q, r, &c.key))
        return;
    if (c.key.size > 0)
        c.digest = idempotency_digest(q, NULL);
    for (int i = 0; i < ID_TRIES && e == ERR_EXISTS; i++)
        e = put_once(q, &c, &made);
    if (e) {
        refuse(r, e == ERR_NOT_FOUND ? ERR_UNAVAILABLE : e); /* a client with a key is there */
        return;
    }
    if (!uuid_equal(&made.id, &c.id))
        response_header(r, "Idempotent-Replayed", "true");
    uuid_format(&made.id, id);
    response_header(r, "Location", "/v1/webhooks/%s", id);
    response_begin(r, 201, RESPONSE_JSON);
    json_init(&json, &r->sink);
    json_object_begin(&json);
    JSON_MEMBER(&json, "webhook_id", string, id);
    job_json_write_time(&json, "created_at", made.created_us);
    json_object_end(&json);
}

/* One that can't be an id is one that isn't there (AMB-J-59). */
static bool take_id(const struct request *q, struct response *r, struct uuid *ret_id)
{
    if (uuid_parse(q->params[0].bytes, q->params[0].size, ret_id))
        return true;
    refuse(r, ERR_NOT_FOUND);
    return false;
}

static void serve_remove(const struct request *q, struct response *r)
{
    struct webhook_remove c = {.client = q->identity.client};
    struct json json;
    if (!take_id(q, r, &c.id))
        return;
    enum error e = submit(q, &webhook_remove_class, &c, NULL, 0, NULL);
    if (e) {
        refuse(r, e);
        return;
    }
    response_begin(r, 200, RESPONSE_JSON);
    json_init(&json, &r->sink);
    json_object_begin(&json);
    JSON_MEMBER(&json, "deleted", bool, true);
    json_object_end(&json);
}

/* ---- as it is shown ---- */

struct picture {
    struct webhook webhook; /* its URL is the text below */
    char url[WEBHOOK_URL_MAX];
};

static void keep(struct picture *p)
{
    memcpy(p->url, p->webhook.url.bytes, p->webhook.url.size);
    p->webhook.url.bytes = p->url;
}

static void write_events(struct json *json, uint32_t events)
{
    json_key(json, "events");
    json_array_begin(json);
    if (events == WEBHOOK_ALL)
        json_string(json, "*");
    for (uint8_t bit = 0; bit < JOB_EVENT_COUNT && events != WEBHOOK_ALL; bit++)
        if (events >> bit & 1)
            json_string(json, job_event_name(bit));
    json_array_end(json);
}

static void write_members(struct json *json, const struct webhook *w)
{
    const char *reason = webhook_reason_name(w->reason);
    job_json_write_id(json, "webhook_id", &w->id);
    json_key(json, "url");
    json_string_n(json, w->url.bytes, w->url.size);
    write_events(json, w->events);
    JSON_MEMBER(json, "state", string, lifecycle_state_name(&webhook_lifecycle, w->state));
    JSON_MEMBER(json, "reason", string, *reason ? reason : NULL);
    job_json_write_time(json, "created_at", w->created_us);
    job_json_write_time(json, "changed_at", w->changed_us);
    job_json_write_time(json, "failing_since", w->failing_us);
    job_json_write_time(json, "secret_at", w->secret_us);
}

static void write_one(struct response *r, const struct webhook *w)
{
    struct json json;
    response_begin(r, 200, RESPONSE_JSON);
    json_init(&json, &r->sink);
    json_object_begin(&json);
    write_members(&json, w);
    json_object_end(&json);
}

static enum error read_own(struct txn *txn, const struct uuid *client, const struct uuid *id,
                           struct picture *ret)
{
    struct uuid owner;
    enum error e = webhook_owner(txn, id, &owner);
    if (!e && !uuid_equal(&owner, client))
        e = ERR_FORBIDDEN;
    if (!e)
        e = webhook_read(txn, client, id, &ret->webhook);
    if (!e)
        keep(ret);
    return e;
}

static enum error look_at(const struct uuid *client, const struct uuid *id, struct picture *ret)
{
    struct view *view = view_open(store_here());
    if (!view)
        return ERR_UNAVAILABLE;
    enum error e = read_own(&view->txn, client, id, ret);
    view_close(view);
    return e;
}

static void show(const struct request *q, struct response *r, const struct uuid *id)
{
    struct picture *p = actor_alloc(sizeof(*p));
    enum error e = look_at(&q->identity.client, id, p);
    if (e)
        refuse(r, e);
    else
        write_one(r, &p->webhook);
}

static void serve_one(const struct request *q, struct response *r)
{
    struct uuid id;
    if (take_id(q, r, &id))
        show(q, r, &id);
}

/* All of a client's, as many in one view as the room holds. */
struct listing {
    struct uuid client, after; /* the one that was shown last */
    struct rendered *some;
    bool more;
};

static enum error list_some(struct txn *txn, struct listing *l)
{
    struct webhook webhooks[WEBHOOKS_MAX];
    uint32_t count = 0;
    enum error e = webhook_list(txn, &l->client, webhooks, &count);
    l->more = false;
    for (uint32_t i = 0; !e && i < count && !l->more; i++) {
        if (memcmp(&webhooks[i].id, &l->after, sizeof(l->after)) <= 0)
            continue;
        struct json *json = rendered_begin(l->some);
        json_object_begin(json);
        write_members(json, &webhooks[i]);
        json_object_end(json);
        l->more = !rendered_end(l->some);
        if (!l->more)
            l->after = webhooks[i].id;
    }
    return e;
}

static enum error list_in_view(struct listing *l)
{
    rendered_clear(l->some);
    struct view *view = view_open(store_here());
    enum error e = view ? list_some(&view->txn, l) : ERR_UNAVAILABLE;
    if (view)
        view_close(view);
    return e;
}

static void serve_list(const struct request *q, struct response *r)
{
    struct listing l = {.client = q->identity.client, .some = rendered_new()};
    struct json json;
    enum error e = list_in_view(&l);
    if (e) {
        refuse(r, e);
        return;
    }
    response_begin(r, 200, RESPONSE_JSON);
    json_init(&json, &r->sink);
    json_object_begin(&json);
    json_key(&json, "items");
    json_array_begin(&json);
    rendered_write(l.some, &json);
    while (l.more && !r->failed) {
        e = list_in_view(&l);
        if (e)
            response_fail(r, e);
        rendered_write(l.some, &json);
    }
    json_array_end(&json);
    json_object_end(&json);
}

/* ---- what is done with one ---- */

static void turn(const struct request *q, struct response *r, bool on)
{
    struct webhook_switch c = {.client = q->identity.client, .on = on};
    if (!take_id(q, r, &c.id))
        return;
    enum error e = submit(q, &webhook_switch_class, &c, NULL, 0, NULL);
    if (e)
        refuse(r, e);
    else
        show(q, r, &c.id);
}

static void serve_enable(const struct request *q, struct response *r)
{
    turn(q, r, true);
}

static void serve_disable(const struct request *q, struct response *r)
{
    turn(q, r, false);
}

static void write_secret(struct response *r, const struct uuid *id, uint32_t number)
{
    uint8_t secret[WEBHOOK_SECRET_SIZE];
    char text[WEBHOOK_SECRET_TEXT_MAX];
    struct json json;
    webhook_secret(store_here(), id, number, secret);
    webhook_secret_write(span_of(secret, sizeof(secret)), text);
    response_begin(r, 200, RESPONSE_JSON);
    json_init(&json, &r->sink);
    json_object_begin(&json);
    job_json_write_id(&json, "webhook_id", id);
    JSON_MEMBER(&json, "secret", string, text);
    JSON_MEMBER(&json, "overlap_seconds", uint, WEBHOOK_OVERLAP_US / 1000000);
    json_object_end(&json);
    explicit_bzero(secret, sizeof(secret));
    explicit_bzero(text, sizeof(text));
}

static void serve_rotate(const struct request *q, struct response *r)
{
    struct webhook_rotate c = {.client = q->identity.client};
    uint32_t number = 0;
    size_t size = 0;
    if (!take_id(q, r, &c.id))
        return;
    enum error e = submit(q, &webhook_rotate_class, &c, &number, sizeof(number), &size);
    if (e || size != sizeof(number))
        refuse(r, e ? e : ERR_UNANSWERED);
    else
        write_secret(r, &c.id, number);
}

/* ---- routes ---- */

#define WEBHOOK_ROUTE(verb, text, size, handler, ...)                                       \
    {                                                                                       \
        .method = METHOD_##verb, .path = (text), .surface = SURFACE_JOBS, .auth = AUTH_KEY, \
        .limit = LIMIT_CLIENT, .body_max = (size), .changes = METHOD_##verb != METHOD_GET,  \
        .serve = (handler), __VA_ARGS__                                                     \
    }

const struct route webhook_routes[] = {
    WEBHOOK_ROUTE(POST, "/v1/webhooks", FRONT_BODY_MAX, serve_put, .precheck = precheck),
    WEBHOOK_ROUTE(GET, "/v1/webhooks", 0, serve_list, .body_optional = true),
    WEBHOOK_ROUTE(GET, "/v1/webhooks/{webhook_id}", 0, serve_one, .body_optional = true),
    WEBHOOK_ROUTE(DELETE, "/v1/webhooks/{webhook_id}", 0, serve_remove, .body_optional = true),
    WEBHOOK_ROUTE(POST, "/v1/webhooks/{webhook_id}:enable", WEBHOOKS_BODY_MAX, serve_enable,
                  .body_optional = true),
    WEBHOOK_ROUTE(POST, "/v1/webhooks/{webhook_id}:disable", WEBHOOKS_BODY_MAX, serve_disable,
                  .body_optional = true),
    WEBHOOK_ROUTE(POST, "/v1/webhooks/{webhook_id}:rotate", WEBHOOKS_BODY_MAX, serve_rotate,
                  .body_optional = true),
};
const size_t webhook_routes_count = sizeof(webhook_routes) / sizeof(*webhook_routes);
