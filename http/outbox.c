#include "http/outbox.h"

#include "http/audits.h"
#include "http/commit.h"
#include "http/new_id.h"
#include "http/sheet.h"
#include "store/job.h"
#include "store/outbox.h"
#include "store/store.h"
#include "store/view.h"

enum {
    DEAD_LIST = 12, /* the number of this list in its tokens */
};

/* X(topic, "name"): what a row can be about. */
#define OUTBOX_TOPICS(X)                                \
    X(AUDIT_TOPIC, "audit") /* of an earlier version */ \
    X(OUTBOX_JOB, "job")                                \
    X(OUTBOX_JOB_EMITTED, "job_emitted")

static const char *topic_name(uint16_t topic)
{
    switch (topic) {
#define X(id, name) \
    case id:        \
        return name;
        OUTBOX_TOPICS(X)
#undef X
    default:
        return NULL;
    }
}

static void refuse(struct response *r, enum error e)
{
    switch (e) {
    case ERR_NOT_FOUND:
        response_error(r, ERROR_OPS_404_NOT_FOUND, "there is no dead row of this id");
        break;
    case ERR_LIMIT:
        response_error(r, ERROR_OPS_503_OVERLOADED,
                       "its partition of the outbox is full; it stays where it is");
        break;
    default:
        response_error(r, catalogue_code(r->surface, catalogue_failure(e)), "%s", catalogue_sentence(e));
    }
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

static void write_text(struct json *json, const char *name, const char *text)
{
    json_key(json, name);
    if (text)
        json_string(json, text);
    else
        json_null(json);
}

static void write_place(struct json *json, const struct outbox_dead *found)
{
    char id[OUTBOX_ID_SIZE];
    outbox_id_format(found->partition, found->seq, id);
    write_text(json, "id", found->named ? id : NULL);
}

/* One that can't be read says nothing but where it is. */
static void write_unreadable(struct json *json, const struct outbox_dead *found)
{
    static const char *const members[] = {"topic", "stream",    "job_id", "event",
                                          "at",    "buried_at", "reason", "attempts"};
    for (size_t i = 0; i < sizeof(members) / sizeof(*members); i++)
        write_text(json, members[i], NULL);
    write_text(json, "unreadable", error_name(found->error));
}

static void write_readable(struct json *json, const struct dead *row)
{
    char stream[UUID_TEXT_SIZE];
    bool job = row->topic == OUTBOX_JOB || row->topic == OUTBOX_JOB_EMITTED;
    uuid_format(&row->stream, stream);
    write_text(json, "topic", topic_name(row->topic));
    write_text(json, "stream", stream);
    write_text(json, "job_id", job ? stream : NULL);
    JSON_MEMBER(json, "event", uint, row->event);
    write_time(json, "at", row->at_us);
    write_time(json, "buried_at", row->buried_us);
    JSON_MEMBER(json, "reason", string_n, row->reason.bytes, row->reason.size);
    JSON_MEMBER(json, "attempts", uint, row->attempts);
    write_text(json, "unreadable", NULL);
}

static void write_row(struct sheet *s, const struct outbox_dead *found)
{
    struct json *json = sheet_row(s);
    if (!json)
        return;
    json_object_begin(json);
    write_place(json, found);
    if (found->error)
        write_unreadable(json, found);
    else
        write_readable(json, &found->row);
    json_object_end(json);
    sheet_keep(s, found->key);
}

/* ---- the list ---- */

static enum error read_rows(struct sheet *s)
{
    struct outbox_dead_scan scan;
    struct outbox_dead found;
    enum error e = OK;
    struct view *view = view_open(store_here());
    if (!view)
        return ERR_UNAVAILABLE;
    outbox_dead_begin(&view->txn, &s->from, &scan);
    while (!s->more && (e = outbox_dead_next(&scan, &found)) == OK)
        write_row(s, &found);
    outbox_dead_end(&scan);
    view_close(view);
    return e == ERR_NOT_FOUND ? OK : e;
}

static void serve_list(const struct request *q, struct response *r)
{
    static const struct sheet_list list = {.name = "dead", .number = DEAD_LIST};
    sheet_serve(q, r, &list, read_rows, refuse);
}

/* ---- revival ---- */

static void serve_revive(const struct request *q, struct response *r)
{
    const struct audits_by by = audits_by(q);
    struct outbox_revive_command c = {
        .who = audits_cut(by.who, AUDIT_WHO_MAX), .reason = audits_reason(q), .request_id = by.request_id};
    struct json json;
    enum error e = ERR_NOT_FOUND;
    if (outbox_id_parse(q->params[0], &c.partition, &c.seq) && c.partition < OUTBOX_PARTITIONS) {
        c.audit = new_id();
        e = commit_submit(q, &outbox_revive_class, &c, NULL, 0, NULL, commit_deadline(q));
    }
    if (e) {
        refuse(r, e);
        return;
    }
    char id[OUTBOX_ID_SIZE];
    outbox_id_format(c.partition, c.seq, id);
    response_begin(r, 200, RESPONSE_JSON);
    json_init(&json, &r->sink);
    json_object_begin(&json);
    JSON_MEMBER(&json, "id", string, id);
    JSON_MEMBER(&json, "revived", bool, true);
    json_object_end(&json);
}

/* ---- the table ---- */

const struct route outbox_routes[] = {
    {.method = METHOD_GET,
     .path = "/outbox/dead",
     .surface = SURFACE_OPERATOR,
     .auth = AUTH_OPERATOR,
     .serve = serve_list},
    {.method = METHOD_POST,
     .path = "/outbox/dead/{id}:revive",
     .surface = SURFACE_OPERATOR,
     .auth = AUTH_OPERATOR,
     .body_max = OUTBOX_BODY_MAX,
     .body_optional = true,
     .changes = true,
     .serve = serve_revive},
};
const size_t outbox_routes_count = sizeof(outbox_routes) / sizeof(*outbox_routes);
