#include "http/schedules.h"

#include <stdio.h>

#include "actors/queues.h"
#include "http/commit.h"
#include "http/idempotency.h"
#include "http/json_text.h"
#include "http/new_id.h"
#include "store/view.h"

enum { ID_TRIES = 3 };

/* ---- what the store said ---- */

static void refuse(struct response *r, enum error e)
{
    enum error_code code = ERROR_RFA_STORAGE_UNAVAILABLE;
    const char *what = catalogue_sentence(e);
    switch (e) {
    case ERR_NOT_FOUND:
        code = ERROR_RFA_JOB_NOT_FOUND;
        what = "there is no such schedule";
        break;
    case ERR_FORBIDDEN:
        code = ERROR_RFA_AUTH_FORBIDDEN;
        what = "this schedule is another client's";
        break;
    case ERR_KEY_REUSED:
        code = ERROR_RFA_EXEC_IDEMPOTENCY_CONFLICT;
        what = "this Idempotency-Key came with another body before";
        break;
    case ERR_LIMIT:
        code = ERROR_RFA_JOB_CONFLICT;
        what = "as many schedules are kept as may be, or nothing more can be told now";
        break;
    case ERR_QUEUE_FULL:
    case ERR_ACTIVE:
        code = ERROR_RFA_EXEC_QUEUE_FULL;
        what = "as many jobs wait or are active as may be";
        response_header(r, "Retry-After", "2");
        break;
    case ERR_INVALID:
        code = ERROR_RFA_JOB_VALIDATION_FAILED;
        what = "this can't be submitted within this server's limits";
        break;
    case ERR_TIMEOUT:
        code = ERROR_RFA_EXEC_TIMEOUT;
        break;
    case ERR_NO_SPACE:
    case ERR_DAMAGED:
    case ERR_NEWER:
    case ERR_IO:
        code = ERROR_RFA_STORAGE_DB_ERROR;
        break;
    default:
        break;
    }
    response_error(r, code, "%s", what);
}

static enum error submit(const struct request *q, const struct command_class *class, const void *command)
{
    return commit_submit(q, class, command, NULL, 0, NULL, commit_deadline(q));
}

/* ---- what was asked for ---- */

static uint64_t number_or(const struct request *q, const char *name, uint64_t otherwise)
{
    const struct json_node *node = request_member(q, name);
    uint64_t value = otherwise;
    return node && json_uint64_of(q->json, node, &value) ? value : otherwise;
}

/* Its number among the names; the first when nothing is said. */
static bool take_word(const struct request *q, const char *member_name, const char *(*name_of)(uint8_t),
                      uint8_t *ret)
{
    struct span given = request_text(q, member_name);
    *ret = 0;
    if (!given.bytes)
        return true;
    for (; name_of(*ret); ++*ret)
        if (span_equal(given, span_text(name_of(*ret))))
            return true;
    return false;
}

static bool invalid(struct response *r, const char *field, const char *what)
{
    response_error_field(r, ERROR_RFA_JOB_VALIDATION_FAILED, field, what);
    return false;
}

/* False: answered. Without a name one of the catalogue is drawn for each job. */
static bool take_kind(const struct request *q, struct response *r, struct schedule_put *c)
{
    struct span name = request_text(q, "work_kind");
    c->kind = name.bytes ? work_kind_of(name) : WORK_KIND_NONE;
    if (!name.bytes)
        return true;
    if (c->kind == WORK_KIND_NONE && work_kind_user(name)) {
        c->kind = WORK_KIND_USER;
        c->kind_name = name;
    }
    return (c->kind != WORK_KIND_NONE && c->kind != WORK_KIND_PAYLOAD_INVALID) ||
           invalid(
               r, "work_kind",
               "must be one of the catalogue whose payload is valid, or one of your own that begins with x.");
}

/* False: answered. */
static bool take_payload(const struct request *q, struct response *r, struct schedule_put *c)
{
    const struct json_node *payload = request_member(q, "payload");
    char what[64];
    if (!payload)
        return true;
    if (c->kind != WORK_KIND_USER)
        return invalid(r, "payload", "is for kinds that begin with x.");
    c->payload = json_raw_of(q->json, payload);
    if (c->payload.size <= SCHEDULE_PAYLOAD_MAX)
        return true;
    snprintf(what, sizeof(what), "has %u bytes; %u may be sent here", c->payload.size, SCHEDULE_PAYLOAD_MAX);
    return invalid(r, "payload", what);
}

/* False: answered. One that can be read and has no time at all would wait for ever, and nobody would hear of it. */
static bool take_cron(const struct request *q, struct response *r, struct span *ret)
{
    char why[256] = "";
    struct cron cron;
    *ret = request_text(q, "cron");
    if (!ret->bytes || ret->size > CRON_TEXT_MAX)
        return invalid(r, "cron", "must be an expression of five fields");
    bool good = cron_parse(*ret, &cron, why, sizeof(why));
    if (good && cron_next_us(&cron, store_time_us()) == 0)
        return invalid(r, "cron", "would never come: none of its months has such a day");
    if (!good)
        response_error_about(r, ERROR_RFA_JOB_VALIDATION_FAILED, "cron", "can't be read: %s", why);
    return good;
}

/* False: answered. */
static bool take_wish(const struct request *q, struct response *r, struct schedule_put *c)
{
    if (!take_cron(q, r, &c->cron))
        return false;
    c->name = request_text(q, "name");
    if (!take_kind(q, r, c) || !take_payload(q, r, c))
        return false;
    if (!take_word(q, "overlap", schedule_overlap_name, &c->overlap))
        return invalid(r, "overlap", "must be skip, allow or cancel_old");
    if (!take_word(q, "missed", schedule_missed_name, &c->missed))
        return invalid(r, "missed", "must be skip, run_once or run_all");
    c->grace_us = number_or(q, "grace_s", SCHEDULES_GRACE_US / 1000000) * 1000000;
    c->priority = 0;
    return true;
}

/* ---- what is told ---- */

static void write_id(struct json *json, const char *name, const struct uuid *id)
{
    static const struct uuid nobody = {{0}};
    char given[UUID_TEXT_SIZE];
    uuid_format(id, given);
    JSON_MEMBER(json, name, string, uuid_equal(id, &nobody) ? NULL : given);
}

static void write_time(struct json *json, const char *name, uint64_t us)
{
    char at[TIME_TEXT_SIZE];
    job_time_format(us, at);
    JSON_MEMBER(json, name, string, us ? at : NULL);
}

static void write_text(struct json *json, const char *name, struct span given)
{
    json_key(json, name);
    if (given.size > 0)
        json_string_n(json, given.bytes, given.size);
    else
        json_null(json);
}

static void write_next(struct json *json, const struct schedule *s)
{
    struct cron cron;
    char why[8];
    uint64_t at = s->next_us;
    bool good = cron_parse(s->cron, &cron, why, sizeof(why));
    json_key(json, "next_runs");
    json_array_begin(json);
    for (uint32_t i = 0; i < SCHEDULES_NEXT_SHOWN && at && good; i++, at = cron_next_us(&cron, at)) {
        char given[TIME_TEXT_SIZE];
        job_time_format(at, given);
        json_string(json, given);
    }
    json_array_end(json);
}

static void write_history(struct json *json, const struct schedule *s)
{
    struct schedule_entry entries[SCHEDULE_HISTORY_MAX];
    uint32_t count = schedule_history(s, entries);
    json_key(json, "history");
    json_array_begin(json);
    for (uint32_t i = 0; i < count; i++) {
        json_object_begin(json);
        write_time(json, "at", entries[i].at_us);
        JSON_MEMBER(json, "outcome", string, schedule_outcome_name(entries[i].outcome));
        write_id(json, "job_id", &entries[i].job);
        json_object_end(json);
    }
    json_array_end(json);
}

static void write_schedule(struct json *json, const struct schedule *s, bool whole)
{
    json_object_begin(json);
    write_id(json, "schedule_id", &s->id);
    write_text(json, "name", s->name);
    write_text(json, "cron", s->cron);
    write_text(json, "work_kind", job_kind_name(s->kind, s->kind_name));
    JSON_MEMBER(json, "state", string, s->paused ? "paused" : "active");
    JSON_MEMBER(json, "overlap", string, schedule_overlap_name(s->overlap));
    JSON_MEMBER(json, "missed", string, schedule_missed_name(s->missed));
    JSON_MEMBER(json, "grace_s", uint, s->grace_us / 1000000);
    write_time(json, "created_at", s->created_us);
    write_time(json, "last_run_at", s->last_us);
    write_id(json, "last_job_id", &s->last_job);
    JSON_MEMBER(json, "submitted", uint, s->submitted);
    JSON_MEMBER(json, "skipped", uint, s->skipped);
    write_next(json, s);
    if (whole)
        write_history(json, s);
    json_object_end(json);
}

enum { ONE_BYTES = 12288 }; /* one of the largest: its name and expression escaped, 16 entries of history */

/* The view stays open for whoever takes from it; NULL: it has been closed. */
static enum error read_own(const struct request *q, const struct uuid *id, struct view **ret_view,
                           struct schedule *ret)
{
    struct view *view = store_here() ? view_open(store_here()) : NULL;
    *ret_view = NULL;
    if (!view)
        return ERR_UNAVAILABLE;
    enum error e = schedule_read(&view->txn, id, ret);
    if (!e && !uuid_equal(&ret->client, &q->identity.client))
        e = ERR_FORBIDDEN;
    if (e)
        view_close(view);
    else
        *ret_view = view;
    return e;
}

static enum error write_body(const struct schedule *s, bool whole, struct span *ret)
{
    char *room = actor_alloc(ONE_BYTES);
    struct json_sink sink;
    struct json json;
    json_sink_init(&sink, room, ONE_BYTES, NULL, NULL);
    json_init(&json, &sink);
    write_schedule(&json, s, whole);
    *ret = span_of(room, sink.length);
    return json_end(&json) == JSON_OK ? OK : ERR_UNANSWERED;
}

/* Written while the view is open, sent when it has been closed. */
static enum error render(const struct request *q, const struct uuid *id, bool whole, struct span *ret)
{
    struct schedule s;
    struct view *view;
    enum error e = read_own(q, id, &view, &s);
    if (e)
        return e;
    e = write_body(&s, whole, ret);
    view_close(view);
    return e;
}

static void send_body(struct response *r, int status, struct span body)
{
    struct json json;
    response_begin(r, status, RESPONSE_JSON);
    json_init(&json, &r->sink);
    json_raw(&json, body.bytes, body.size);
}

static void answer(const struct request *q, struct response *r, const struct uuid *id, int status)
{
    char given[UUID_TEXT_SIZE];
    struct span body;
    enum error e = render(q, id, true, &body);
    if (e) {
        refuse(r, e);
        return;
    }
    uuid_format(id, given);
    if (status == 201)
        response_header(r, "Location", "/v1/schedules/%s", given);
    send_body(r, status, body);
}

/* ---- handlers ---- */

/* *ret: which one it is now, of this request or of the one that it repeats. */
static enum error put_once(const struct request *q, struct schedule_put *c, struct uuid *ret)
{
    size_t size = 0;
    c->id = new_id();
    enum error e = commit_submit(q, &schedule_put_class, c, ret, sizeof(*ret), &size, commit_deadline(q));
    return e ? e : size == sizeof(*ret) ? OK : ERR_UNANSWERED;
}

static void serve_create(const struct request *q, struct response *r)
{
    struct schedule_put c = {.client = q->identity.client};
    struct uuid id;
    enum error e = ERR_EXISTS;
    if (!take_wish(q, r, &c) || !idempotency_take_key(q, r, &c.key))
        return;
    if (c.key.size > 0)
        c.digest = idempotency_digest(q, NULL);
    for (int i = 0; i < ID_TRIES && e == ERR_EXISTS; i++)
        e = put_once(q, &c, &id);
    if (e) {
        refuse(r, e);
        return;
    }
    if (!uuid_equal(&id, &c.id))
        response_header(r, "Idempotent-Replayed", "true");
    answer(q, r, &id, 201);
}

static void serve_list(const struct request *q, struct response *r)
{
    struct uuid ids[SCHEDULES_MAX];
    uint32_t count = 0;
    struct json json;
    struct view *view = store_here() ? view_open(store_here()) : NULL;
    enum error e = view ? schedule_list(&view->txn, &q->identity.client, NULL, ids, SCHEDULES_MAX, &count)
                        : ERR_UNAVAILABLE;
    if (view)
        view_close(view);
    if (e) {
        refuse(r, e);
        return;
    }
    response_begin(r, 200, RESPONSE_JSON);
    json_init(&json, &r->sink);
    json_object_begin(&json);
    json_key(&json, "items");
    json_array_begin(&json);
    for (uint32_t i = 0; i < count; i++) {
        struct arena_mark mark = actor_arena_mark();
        struct span body;
        e = render(q, &ids[i], false, &body);
        if (e == OK)
            json_raw(&json, body.bytes, body.size);
        else if (e != ERR_NOT_FOUND) /* one that has been removed meanwhile isn't listed */
            response_fail(r, e);
        actor_arena_reset(mark);
    }
    json_array_end(&json);
    json_object_end(&json);
}

static bool take_id(const struct request *q, struct response *r, struct uuid *ret_id)
{
    if (uuid_parse(q->params[0].bytes, q->params[0].size, ret_id))
        return true;
    refuse(r, ERR_NOT_FOUND);
    return false;
}

static void serve_one(const struct request *q, struct response *r)
{
    struct uuid id;
    if (take_id(q, r, &id))
        answer(q, r, &id, 200);
}

static void serve_remove(const struct request *q, struct response *r)
{
    struct schedule_remove c = {.client = q->identity.client};
    struct json json;
    if (!take_id(q, r, &c.id))
        return;
    enum error e = submit(q, &schedule_remove_class, &c);
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

static void turn(const struct request *q, struct response *r, uint8_t paused)
{
    struct schedule_switch c = {.client = q->identity.client, .paused = paused};
    if (!take_id(q, r, &c.id))
        return;
    enum error e = submit(q, &schedule_switch_class, &c);
    if (e)
        refuse(r, e);
    else
        answer(q, r, &c.id, 200);
}

static void serve_pause(const struct request *q, struct response *r)
{
    turn(q, r, 1);
}

static void serve_resume(const struct request *q, struct response *r)
{
    turn(q, r, 0);
}

/* ---- run ---- */

static struct span copy(struct span text)
{
    char *room = text.size > 0 ? actor_alloc(text.size) : NULL;
    if (room)
        memcpy(room, text.bytes, text.size);
    return span_of(room, text.size);
}

/* In the request's memory, without history and payload. */
static enum error remember(const struct request *q, const struct uuid *id, struct schedule *ret)
{
    struct view *view;
    enum error e = read_own(q, id, &view, ret);
    if (e)
        return e;
    ret->name = copy(ret->name);
    ret->cron = copy(ret->cron);
    ret->kind_name = copy(ret->kind_name);
    ret->history = ret->payload = span_of(NULL, 0);
    view_close(view);
    return OK;
}

/* The schedule as it is now; but the job is this request's: another one may have been submitted since. One that has been removed
 * since, or can't be read, is told as it was: its job is there, and nobody should submit it again. */
static enum error render_run(const struct request *q, const struct schedule *before,
                             const struct schedule_fired *fired, struct span *ret)
{
    struct schedule s;
    struct view *view;
    if (read_own(q, &before->id, &view, &s)) {
        s = *before;
        s.submitted++;
    }
    s.last_us = fired->at_us;
    s.last_job = fired->job;
    enum error e = write_body(&s, view != NULL, ret);
    if (view)
        view_close(view);
    return e;
}

static void serve_run(const struct request *q, struct response *r)
{
    struct schedule_fire c = queues_fire();
    struct schedule_fired fired;
    struct schedule before;
    struct span body;
    size_t size = 0;
    c.client = q->identity.client;
    if (!take_id(q, r, &c.id))
        return;
    enum error e = remember(q, &c.id, &before);
    if (!e)
        e = commit_submit(q, &schedule_fire_class, &c, &fired, sizeof(fired), &size, commit_deadline(q));
    if (!e && size != sizeof(fired))
        e = ERR_UNANSWERED;
    if (!e) {
        queues_tell_fired(&fired);
        e = render_run(q, &before, &fired, &body);
    }
    if (e)
        refuse(r, e);
    else
        send_body(r, 200, body);
}

/* ---- the table ---- */

#define OWN(verb, text_, size, handler, ...)                                                 \
    {                                                                                        \
        .method = METHOD_##verb, .path = (text_), .surface = SURFACE_JOBS, .auth = AUTH_KEY, \
        .limit = LIMIT_CLIENT, .body_max = (size), .changes = METHOD_##verb != METHOD_GET,   \
        .serve = (handler), __VA_ARGS__                                                      \
    }
#define ONE "/v1/schedules/{schedule_id}"
const struct route schedule_routes[] = {
    OWN(POST, "/v1/schedules", SCHEDULES_BODY_MAX, serve_create, .action = "schedule"),
    OWN(GET, "/v1/schedules", 0, serve_list, .action = "schedules"),
    OWN(GET, ONE, 0, serve_one, .action = "schedule"),
    OWN(DELETE, ONE, 0, serve_remove, .action = "unschedule"),
    OWN(POST, ONE ":run", SCHEDULES_BODY_MAX, serve_run, .body_optional = true, .action = "schedule_run"),
    OWN(POST, ONE ":pause", SCHEDULES_BODY_MAX, serve_pause, .body_optional = true,
        .action = "schedule_pause"),
    OWN(POST, ONE ":resume", SCHEDULES_BODY_MAX, serve_resume, .body_optional = true,
        .action = "schedule_resume"),
};
const size_t schedule_routes_count = sizeof(schedule_routes) / sizeof(*schedule_routes);
