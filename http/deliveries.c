#include "http/deliveries.h"

#include "http/commit.h"
#include "http/job_json.h"
#include "http/paging.h"
#include "http/rendered.h"
#include "store/delivery.h"
#include "store/job.h"
#include "store/view.h"

enum { LIST_OF_DELIVERIES = 210, RESEND_BODY_MAX = 4096 };

static const struct uuid none = {{0}};

/* ---- refusals ---- */

static void refuse(struct response *r, enum error e)
{
    switch (e) {
    case ERR_NOT_FOUND:
        response_error(r, ERROR_RFA_WEBHOOK_DELIVERY_NOT_FOUND, "there is no such delivery");
        break;
    case ERR_FORBIDDEN:
        response_error(r, ERROR_RFA_AUTH_FORBIDDEN, "this delivery belongs to another client");
        break;
    case ERR_TRANSITION:
        response_error(r, ERROR_RFA_WEBHOOK_DELIVERY_CONFLICT,
                       "it was dropped: its webhook or its job is gone");
        break;
    case ERR_CONFLICT:
        response_error(r, ERROR_RFA_WEBHOOK_DELIVERY_CONFLICT, "its webhook is disabled or was removed");
        break;
    case ERR_LIMIT:
        response_header(r, "Retry-After", "60");
        response_error(r, ERROR_RFA_REQUEST_RATE_LIMITED,
                       "as many deliveries of this client are pending as may be");
        break;
    case ERR_TIMEOUT:
        response_error(r, ERROR_RFA_EXEC_TIMEOUT, "%s", catalogue_sentence(e));
        break;
    case ERR_NO_SPACE:
    case ERR_DAMAGED:
    case ERR_NEWER:
    case ERR_IO:
        response_error(r, ERROR_RFA_STORAGE_DB_ERROR, "%s", catalogue_sentence(e));
        break;
    default:
        response_error(r, ERROR_RFA_STORAGE_UNAVAILABLE, "%s", catalogue_sentence(e));
    }
}

/* ---- as one is shown ---- */

/* NULL: the event has gone. */
static const char *event_of(struct txn *txn, const struct delivery *d)
{
    struct event event;
    if (d->topic == OUTBOX_JOB_EMITTED)
        return job_event_name(JOB_EMIT);
    if (event_read(txn, &d->job, d->event, &event) != OK || event.name >= JOB_EVENT_COUNT)
        return NULL;
    return job_event_name((uint8_t)event.name);
}

static void write_error(struct json *json, uint8_t error)
{
    const char *name = delivery_error_name(error), *code = delivery_error_code(error);
    JSON_MEMBER(json, "error", string, *name ? name : NULL);
    JSON_MEMBER(json, "error_code", string, *code ? code : NULL);
}

static void write_members(struct json *json, const struct delivery *d, const char *event)
{
    bool pending = d->state == DELIVERY_PENDING;
    job_json_write_id(json, "delivery_id", &d->id);
    job_json_write_id(json, "job_id", &d->job);
    if (uuid_equal(&d->webhook, &none)) {
        json_key(json, "webhook_id");
        json_null(json);
    } else {
        job_json_write_id(json, "webhook_id", &d->webhook);
    }
    JSON_MEMBER(json, "event_name", string, event);
    JSON_MEMBER(json, "state", string, lifecycle_state_name(&delivery_lifecycle, d->state));
    json_key(json, "url_host");
    json_string_n(json, d->host.bytes, d->host.size);
    JSON_MEMBER(json, "attempts", uint, d->attempts);
    write_error(json, d->error);
    job_json_write_time(json, "created_at", d->at_us);
    job_json_write_time(json, "next_attempt_at", store_wall_of(store_here(), d->not_before_us));
    JSON_MEMBER(json, "waits_for_earlier", bool, pending && d->not_before_us == 0);
    job_json_write_time(json, "finished_at", d->finished_us);
    job_json_write_time(json, "expires_at", d->gone_us);
}

static void write_history(struct json *json, const struct delivery *d)
{
    uint32_t kept = delivery_attempts_kept(d);
    json_key(json, "history");
    json_array_begin(json);
    for (uint32_t i = 0; i < kept; i++) {
        struct delivery_attempt a = delivery_attempt_at(d, i);
        json_object_begin(json);
        JSON_MEMBER(json, "attempt", uint, d->attempts - kept + i + 1);
        job_json_write_time(json, "at", a.at_us);
        JSON_MEMBER(json, "took_ms", uint, a.took_ms);
        json_key(json, "http_status");
        if (a.status)
            json_uint(json, a.status);
        else
            json_null(json);
        write_error(json, a.error);
        json_object_end(json);
    }
    json_array_end(json);
}

/* ---- one of them ---- */

static bool take_id(const struct request *q, struct response *r, struct uuid *ret_id)
{
    if (uuid_parse(q->params[0].bytes, q->params[0].size, ret_id))
        return true;
    refuse(r, ERR_NOT_FOUND);
    return false;
}

static enum error render_one(struct txn *txn, const struct uuid *client, const struct uuid *id,
                             struct rendered *some)
{
    struct delivery d;
    enum error e = delivery_read(txn, id, &d);
    if (!e && !uuid_equal(&d.client, client))
        e = ERR_FORBIDDEN;
    if (e)
        return e;
    struct json *json = rendered_begin(some);
    json_object_begin(json);
    write_members(json, &d, event_of(txn, &d));
    write_history(json, &d);
    json_object_end(json);
    bool fits = rendered_end(some);
    ASSERT(fits); /* a kilobyte or two */
    return OK;
}

static void show(const struct request *q, struct response *r, const struct uuid *id)
{
    struct rendered *some = rendered_new();
    struct json json;
    struct view *view = view_open(store_here());
    enum error e = view ? render_one(&view->txn, &q->identity.client, id, some) : ERR_UNAVAILABLE;
    if (view)
        view_close(view);
    if (e) {
        refuse(r, e);
        return;
    }
    response_begin(r, 200, RESPONSE_JSON);
    json_init(&json, &r->sink);
    rendered_write(some, &json);
}

static void serve_one(const struct request *q, struct response *r)
{
    struct uuid id;
    if (take_id(q, r, &id))
        show(q, r, &id);
}

static void serve_resend(const struct request *q, struct response *r)
{
    struct delivery_resend c = {.client = q->identity.client, .steady_us = store_steady_us(store_here())};
    if (!take_id(q, r, &c.id))
        return;
    enum error e = commit_submit(q, &delivery_resend_class, &c, NULL, 0, NULL, commit_deadline(q));
    if (e)
        refuse(r, e);
    else
        show(q, r, &c.id);
}

/* ---- lists ---- */

struct listing {
    struct uuid client, webhook, job;
    bool by_webhook, by_job;
    uint8_t state; /* from 1 on; 0: any */
    enum delivery_list list;
    struct key at;         /* of the row that was looked at last; size 0: none yet */
    uint32_t looked, left; /* rows looked at; items that still fit */
    bool more;
    struct uuid *chosen; /* as many as `left` was: what is on the page, as in http/job_list.h */
    uint32_t count, shown;
    bool complete; /* all of them are chosen */
    struct rendered *some;
};

static bool passes(const struct listing *l, const struct delivery *d)
{
    return uuid_equal(&d->client, &l->client) && (!l->by_webhook || uuid_equal(&d->webhook, &l->webhook)) &&
           (!l->state || d->state == l->state - 1);
}

/* False: the room is full; it is for the next view. */
static bool render(struct txn *txn, const struct delivery *d, struct listing *l)
{
    struct json *json = rendered_begin(l->some);
    json_object_begin(json);
    write_members(json, d, event_of(txn, d));
    json_object_end(json);
    return rendered_end(l->some);
}

static void choose(const struct delivery *d, struct listing *l)
{
    if (!passes(l, d))
        return;
    l->chosen[l->count++] = d->id;
    l->left--;
}

static enum error choose_some(struct txn *txn, struct listing *l)
{
    struct delivery_scan scan;
    struct delivery d;
    struct key key;
    uint32_t chunk = l->looked + DELIVERIES_SCAN_CHUNK;
    enum error e = OK;
    delivery_scan_begin(txn, l->list, l->by_job ? &l->job : &l->client, l->at.size ? &l->at : NULL, &scan);
    l->more = false;
    while (!l->more && (e = delivery_scan_next(&scan, &d, &key)) == OK) {
        if (l->left == 0 || l->looked == chunk || l->looked == DELIVERIES_SCAN_MAX) {
            l->more = true;
            break;
        }
        choose(&d, l);
        l->at = key;
        l->looked++;
    }
    enum error end = scan_end(&scan.scan);
    l->complete = !l->more || l->left == 0 || l->looked == DELIVERIES_SCAN_MAX;
    return e && e != ERR_NOT_FOUND ? e : end;
}

/* As many of the chosen as fit. */
static enum error render_some(struct txn *txn, struct listing *l)
{
    enum error e = OK;
    for (bool fits = true; !e && fits && l->shown < l->count; l->shown += fits) {
        struct delivery d;
        e = delivery_read(txn, &l->chosen[l->shown], &d);
        if (!e && passes(l, &d))
            fits = render(txn, &d, l);
        else if (e == ERR_NOT_FOUND)
            e = OK;
    }
    return e;
}

static enum error list_in_view(struct listing *l)
{
    rendered_clear(l->some);
    struct view *view = view_open(store_here());
    enum error e = view ? OK : ERR_UNAVAILABLE;
    if (!e && !l->complete)
        e = choose_some(&view->txn, l);
    if (!e && l->complete)
        e = render_some(&view->txn, l);
    if (view)
        view_close(view);
    return e;
}

static void write_page(const struct request *q, struct response *r, struct listing *l, uint64_t filter)
{
    const struct key no_key = {.size = 0};
    struct paging_next next;
    struct json json;
    paging_go_on(q, r, "cursor", LIST_OF_DELIVERIES, filter, l->more ? &l->at : &no_key, &next);
    response_begin(r, 200, RESPONSE_JSON);
    json_init(&json, &r->sink);
    json_object_begin(&json);
    json_key(&json, "items");
    json_array_begin(&json);
    rendered_write(l->some, &json);
    while (l->shown < l->count && !r->failed) {
        enum error e = list_in_view(l);
        if (e)
            response_fail(r, e);
        rendered_write(l->some, &json);
    }
    json_array_end(&json);
    paging_write_next(&json, "next_cursor", &next);
    json_object_end(&json);
}

static const char *state_of(uint8_t number)
{
    return lifecycle_state_name(&delivery_lifecycle, number);
}

/* Everything that a cursor depends on. */
static uint64_t filter_of(const struct listing *l)
{
    struct {
        struct uuid client, webhook, job;
        uint64_t state;
    } all = {l->client, l->webhook, l->job, l->state};
    return paging_filter(&all, sizeof(all));
}

static void serve_list(const struct request *q, struct response *r)
{
    struct listing l = {.client = q->identity.client};
    if (!paging_take_id(q, r, "webhook_id", &l.webhook, &l.by_webhook) ||
        !paging_take_id(q, r, "job_id", &l.job, &l.by_job) ||
        !paging_take_word(q, r, "state", state_of, DELIVERY_STATE_COUNT, &l.state) ||
        !paging_take_limit(q, r, DELIVERIES_PAGE_USUAL, DELIVERIES_PAGE_MAX, &l.left))
        return;
    l.list = l.by_job                         ? DELIVERY_LIST_JOB
             : l.state == DELIVERY_FAILED + 1 ? DELIVERY_LIST_FAILED
                                              : DELIVERY_LIST_ALL;
    uint64_t filter = filter_of(&l);
    uint8_t size = l.by_job ? DELIVERY_KEY_OF_JOB : DELIVERY_KEY_OF_CLIENT;
    if (!paging_take_cursor(q, r, "cursor", LIST_OF_DELIVERIES, filter, size, &l.at))
        return;
    l.some = rendered_new();
    l.chosen = actor_alloc(l.left * sizeof(*l.chosen));
    enum error e = OK;
    while (!e && !l.complete)
        e = list_in_view(&l);
    if (e)
        refuse(r, e);
    else
        write_page(q, r, &l, filter);
}

/* ---- routes ---- */

const struct route delivery_routes[] = {
    {.method = METHOD_GET,
     .path = "/v1/deliveries",
     .surface = SURFACE_JOBS,
     .auth = AUTH_KEY,
     .limit = LIMIT_CLIENT,
     .serve = serve_list},
    {.method = METHOD_GET,
     .path = "/v1/deliveries/{delivery_id}",
     .surface = SURFACE_JOBS,
     .auth = AUTH_KEY,
     .limit = LIMIT_CLIENT,
     .serve = serve_one},
    {.method = METHOD_POST,
     .path = "/v1/deliveries/{delivery_id}:resend",
     .surface = SURFACE_JOBS,
     .auth = AUTH_KEY,
     .limit = LIMIT_CLIENT,
     .body_max = RESEND_BODY_MAX,
     .body_optional = true,
     .changes = true,
     .serve = serve_resend},
};
const size_t delivery_routes_count = sizeof(delivery_routes) / sizeof(*delivery_routes);
