#include "http/pauses.h"

#include <stdio.h>

#include "http/audits.h"
#include "http/commit.h"
#include "http/front.h"
#include "http/json_text.h"
#include "http/sheet.h"
#include "http/timestamp.h"
#include "store/job_pause.h"
#include "store/store.h"
#include "store/token.h"
#include "store/view.h"

enum {
    PAUSES_LIST = 11, /* the number of this list in its tokens */
};

/* ---- what was asked for ---- */

struct what {
    uint8_t scope;
    struct uuid name;
    struct span label;
};

/* Of the catalogue, or one of a user's own. */
static bool take_kind(struct span name, struct uuid *ret_work)
{
    uint8_t kind = work_kind_of(name);
    if (kind == WORK_KIND_NONE && !work_kind_user(name))
        return false;
    *ret_work = job_work_id(store_here(), kind == WORK_KIND_NONE ? (uint8_t)WORK_KIND_USER : kind, name);
    return true;
}

static bool wrong(struct response *r, const char *field, const char *what)
{
    response_error_field(r, ERROR_OPS_400_INVALID, field, what);
    return false;
}

/* False: answered. */
static bool take_what(const struct request *q, struct response *r, struct what *w)
{
    struct span scope = request_text(q, "scope"), kind = request_text(q, "kind"),
                client = request_text(q, "client");
    *w = (struct what){.scope = PAUSE_SCOPE_COUNT};
    for (w->scope = 0; w->scope < (uint8_t)PAUSE_SCOPE_COUNT; w->scope++)
        if (span_equal(scope, span_text(pause_scope_name(w->scope))))
            break;
    if (w->scope == PAUSE_SCOPE_COUNT)
        return wrong(r, "scope", "must be all, kind or client");
    if ((kind.bytes != NULL) != (w->scope == PAUSE_WORK))
        return wrong(r, "kind", "goes with the scope kind, and only with that");
    if ((client.bytes != NULL) != (w->scope == PAUSE_CLIENT))
        return wrong(r, "client", "goes with the scope client, and only with that");
    w->label = w->scope == PAUSE_WORK ? kind : client;
    if (w->scope == PAUSE_WORK && !take_kind(kind, &w->name))
        return wrong(r, "kind", "must be one of the catalogue, or one that begins with x.");
    if (w->scope == PAUSE_CLIENT && !uuid_parse(client.bytes, client.size, &w->name))
        return wrong(r, "client", "must be a UUID");
    return true;
}

/* False: answered. 0 when nothing is said. */
static bool take_until(const struct request *q, struct response *r, uint64_t *ret_us)
{
    struct span until = request_text(q, "until");
    return !until.bytes || timestamp_parse(until, ret_us) ||
           wrong(r, "until", "must be a time in UTC, such as 2026-11-18T13:00:00Z");
}

static void refuse(struct response *r, enum error e)
{
    switch (e) {
    case ERR_NOT_FOUND:
        response_error(r, ERROR_OPS_404_NOT_FOUND, "there is none of this id");
        break;
    case ERR_INVALID:
        (void)wrong(r, "until", "must be a time to come");
        break;
    case ERR_CONFLICT:
        response_error(r, ERROR_OPS_409_CONFLICT, "the job is not QUEUED");
        break;
    case ERR_LIMIT:
        response_error(r, ERROR_OPS_409_CONFLICT, "there are as many pauses as may be");
        break;
    default:
        response_error(r, catalogue_code(r->surface, catalogue_failure(e)), "%s", catalogue_sentence(e));
    }
}

static struct span who_of(const struct request *q)
{
    struct span who = q->identity.subject;
    return who.size && who.size <= PAUSE_WHO ? who : span_text("operator");
}

/* "kind SUCCESS_FAST" */
static void note(const struct request *q, const char *verb, const struct what *w, enum error e)
{
    char target[PAUSE_LABEL + 16];
    snprintf(target, sizeof(target), "%s%s%.*s", pause_scope_name(w->scope), w->label.size ? " " : "",
             (int)w->label.size, w->label.size ? (const char *)w->label.bytes : "");
    (void)audits_note(q, &(struct audits_entry){.verb = verb,
                                                .target = target,
                                                .reason = request_text(q, "reason"),
                                                .outcome = e ? "refused" : "done"});
}

static enum error submit(const struct request *q, const struct command_class *class, const void *command,
                         void *ret_bytes, size_t room)
{
    size_t size = 0;
    enum error e =
        commit_submit(q, class, command, ret_bytes, room, &size, actor_deadline_ms(ACTOR_CALL_DEFAULT_MS));
    return !e && size != room ? ERR_UNANSWERED : e;
}

/* ---- what is told ---- */

static void write_time(struct json *json, const char *name, uint64_t us)
{
    char text[TIME_TEXT_SIZE];
    json_key(json, name);
    if (us) {
        time_format(us, text);
        json_string(json, text);
    } else {
        json_null(json);
    }
}

static void write_text(struct json *json, const char *name, struct span text)
{
    json_key(json, name);
    if (text.size)
        json_string_n(json, text.bytes, text.size);
    else
        json_null(json);
}

static void write_what(struct json *json, uint8_t scope, struct span label)
{
    static const struct span none = {NULL, 0};
    JSON_MEMBER(json, "scope", string, pause_scope_name(scope));
    write_text(json, "kind", scope == PAUSE_WORK ? label : none);
    write_text(json, "client", scope == PAUSE_CLIENT ? label : none);
}

/* ---- pause, resume, run ---- */

static void serve_pause(const struct request *q, struct response *r)
{
    struct what w;
    struct json json;
    uint64_t since_us = 0, until_us = 0;
    struct span reason = request_text(q, "reason");
    if (!take_what(q, r, &w) || !take_until(q, r, &until_us))
        return;
    if (reason.size > PAUSE_REASON) {
        (void)wrong(r, "reason", "must have at most 512 bytes");
        return;
    }
    struct job_pause c = {.scope = w.scope,
                          .name = w.name,
                          .until_us = until_us,
                          .label = w.label,
                          .who = who_of(q),
                          .reason = reason};
    enum error e = submit(q, &job_pause_class, &c, &since_us, sizeof(since_us));
    note(q, "jobs.pause", &w, e);
    if (e) {
        refuse(r, e);
        return;
    }
    response_begin(r, 200, RESPONSE_JSON);
    json_init(&json, &r->sink);
    json_object_begin(&json);
    write_what(&json, w.scope, w.label);
    JSON_MEMBER(&json, "state", string, "paused");
    write_time(&json, "since", since_us);
    write_time(&json, "until", until_us);
    json_object_end(&json);
}

static void serve_resume(const struct request *q, struct response *r)
{
    struct what w;
    struct json json;
    int64_t aside = 0;
    if (!take_what(q, r, &w))
        return;
    struct job_resume c = {.scope = w.scope, .name = w.name};
    enum error e = submit(q, &job_resume_class, &c, &aside, sizeof(aside));
    note(q, "jobs.resume", &w, e);
    if (e == ERR_NOT_FOUND) {
        response_error(r, ERROR_OPS_404_NOT_FOUND, "this isn't paused");
        return;
    }
    if (e) {
        refuse(r, e);
        return;
    }
    response_begin(r, 200, RESPONSE_JSON);
    json_init(&json, &r->sink);
    json_object_begin(&json);
    write_what(&json, w.scope, w.label);
    JSON_MEMBER(&json, "state", string, aside > 0 ? "resuming" : "running");
    JSON_MEMBER(&json, "set_aside", int, aside);
    json_object_end(&json);
}

static void serve_run(const struct request *q, struct response *r)
{
    struct job_run c;
    struct json json;
    char id[UUID_TEXT_SIZE];
    if (!uuid_parse(q->params[0].bytes, q->params[0].size, &c.id)) {
        response_error(r, ERROR_OPS_404_NOT_FOUND, "there is no such job");
        return;
    }
    uuid_format(&c.id, id);
    enum error e = submit(q, &job_run_class, &c, NULL, 0);
    (void)audits_note(q, &(struct audits_entry){.verb = "job.run",
                                                .target = id,
                                                .reason = request_text(q, "reason"),
                                                .outcome = e ? "refused" : "done"});
    if (e) {
        refuse(r, e);
        return;
    }
    response_begin(r, 200, RESPONSE_JSON);
    json_init(&json, &r->sink);
    json_object_begin(&json);
    JSON_MEMBER(&json, "job_id", string, id);
    JSON_MEMBER(&json, "next", bool, true);
    json_object_end(&json);
}

/* ---- the list ---- */

static enum error write_row(struct sheet *s, struct scan *scan)
{
    struct pause row;
    int64_t aside = 0;
    enum error e = scan_read(scan, &row);
    struct json *json = e ? NULL : sheet_row(s);
    if (!json)
        return e;
    e = pause_aside(scan->txn, &row, &aside);
    json_object_begin(json);
    write_what(json, row.scope, row.label);
    JSON_MEMBER(json, "state", string, row.ending ? "resuming" : "paused");
    write_time(json, "since", row.since_us);
    write_time(json, "until", row.until_us);
    JSON_MEMBER(json, "set_aside", int, aside);
    write_text(json, "by", row.who);
    write_text(json, "reason", row.reason);
    json_object_end(json);
    sheet_keep(s, scan->key);
    return e;
}

static enum error read_rows(struct sheet *s)
{
    struct key first = s->from;
    if (first.size == 0)
        key_add_u8(&first, 0); /* before any scope's */
    struct view *view = view_open(store_here());
    enum error e = OK;
    if (!view)
        return ERR_UNAVAILABLE;
    struct scan scan = txn_scan(&view->txn, TABLE_PAUSES, key_span(&first), 0, SCAN_UP);
    while (!e && !s->more && scan_next(&scan))
        if (!sheet_passed(s, scan.key))
            e = write_row(s, &scan);
    enum error end = scan_end(&scan);
    view_close(view);
    return e ? e : end;
}

static void serve_list(const struct request *q, struct response *r)
{
    static const struct sheet_list list = {.name = "pauses", .number = PAUSES_LIST};
    sheet_serve(q, r, &list, read_rows, refuse);
}

/* ---- the table ---- */

#define CHANGE(path_, optional, serve_)                                                           \
    {                                                                                             \
        .method = METHOD_POST, .path = path_, .surface = SURFACE_OPERATOR, .auth = AUTH_OPERATOR, \
        .body_max = PAUSES_BODY_MAX, .body_optional = optional, .changes = true, .serve = serve_  \
    }

const struct route pause_routes[] = {
    {.method = METHOD_GET,
     .path = "/jobs/pauses",
     .surface = SURFACE_OPERATOR,
     .auth = AUTH_OPERATOR,
     .serve = serve_list},
    CHANGE("/jobs:pause", false, serve_pause),
    CHANGE("/jobs:resume", false, serve_resume),
    CHANGE("/jobs/{job_id}:run", true, serve_run),
};
const size_t pause_routes_count = sizeof(pause_routes) / sizeof(*pause_routes);
