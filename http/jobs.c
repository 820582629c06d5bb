#include "http/jobs.h"

#include "actors/job_figures.h"
#include "actors/jobs.h"
#include "actors/worker.h"
#include "http/commit.h"
#include "http/control.h"
#include "http/front.h"
#include "http/job_explain.h"
#include "http/job_json.h"
#include "http/job_list.h"
#include "http/job_refusal.h"
#include "http/job_request.h"
#include "http/job_wait.h"
#include "http/new_id.h"
#include "http/paging.h"
#include "http/prefer.h"
#include "http/rendered.h"
#include "http/work.h"
#include "runtime/telemetry.h"
#include "store/job_change.h"
#include "store/job_submit.h"
#include "store/view.h"

enum { ID_TRIES = 3, CANCEL_AGAIN = 3, LIST_OF_EVENTS = 201 };

/* ---- commands ---- */

static enum error submit(const struct request *q, const struct command_class *class, const void *command,
                         void *ret, size_t room, size_t *ret_size)
{
    return commit_submit(q, class, command, ret, room, ret_size, commit_deadline(q));
}

/* ---- ids ---- */

static void note_job(struct response *r, const struct uuid *id)
{
    STATIC_ASSERT(sizeof(r->job_id) >= UUID_TEXT_SIZE, "an id fits");
    uuid_format(id, r->job_id);
}

/* What can't be an id is one that isn't there (AMB-J-59); where the contract lists 400, the front has said so. */
static bool take_id(const struct request *q, struct response *r, struct uuid *ret_id)
{
    if (uuid_parse(q->params[0].bytes, q->params[0].size, ret_id)) {
        note_job(r, ret_id);
        return true;
    }
    job_refuse(r, ERR_NOT_FOUND);
    return false;
}

/* ---- the job itself ---- */

/* The job, if it is this client's; an operator may see all. */
static enum error read_own(struct txn *txn, const struct request *q, const struct uuid *id, struct job *ret)
{
    enum error e = job_read(txn, id, ret);
    bool own = q->identity.kind == IDENTITY_OPERATOR || uuid_equal(&ret->client, &q->identity.client);
    return e ? e : own ? OK : ERR_FORBIDDEN;
}

/* The contract has the catalogue's kinds alone; of the others docs/contract/work.openapi.yaml speaks. */
static void beyond_contract(struct response *r, const struct job *job)
{
    if (job->kind == WORK_KIND_USER)
        r->beyond = true;
}

static void answer_job(const struct request *q, struct response *r, const struct uuid *id)
{
    struct job_definition d;
    struct job job;
    struct json json;
    STATIC_ASSERT(JOB_JSON_MAX <= RESPONSE_BODY_MAX,
                  "it is written at once, so that nobody waits with a view");
    struct view *view = view_open(store_here());
    enum error e = view ? read_own(&view->txn, q, id, &job) : ERR_UNAVAILABLE, defined = OK;
    if (!e)
        defined = job_read_definition(&view->txn, id, &d);
    e = e ? e : defined == ERR_NOT_FOUND ? OK : defined;
    if (!e) {
        beyond_contract(r, &job);
        response_begin(r, 200, RESPONSE_JSON);
        json_init(&json, &r->sink);
        job_json_write(&json, &job, defined ? NULL : &d);
    }
    if (view)
        view_close(view);
    commit_note_read(e);
    if (e)
        job_refuse(r, e);
}

static void serve_job(const struct request *q, struct response *r)
{
    struct uuid id;
    if (take_id(q, r, &id))
        answer_job(q, r, &id);
}

/* ---- submit ---- */

/* A new id for each try: one that is taken belongs to another job, which stays as it is (JOB-310). */
static enum error submit_job(const struct request *q, struct job_submit *c, struct job_submitted *ret)
{
    uint8_t bytes[JOB_SUBMITTED_SIZE];
    enum error e = ERR_EXISTS;
    size_t size = 0;
    for (int i = 0; i < ID_TRIES && e == ERR_EXISTS; i++) {
        c->id = new_id();
        e = submit(q, &job_submit_class, c, bytes, sizeof(bytes), &size);
    }
    if (e)
        return e;
    return size == sizeof(bytes) ? record_decode(&job_submitted_record, 1, span_of(bytes, size), ret)
                                 : ERR_UNANSWERED;
}

static void tell_submitted(const struct job_submit *c, const struct job_submitted *s)
{
    struct job_told told = {.id = s->id,
                            .client = c->client,
                            .event = JOB_CREATE,
                            .to = JOB_CREATED,
                            .kind = s->kind,
                            .attempt = 1,
                            .kind_name = c->kind_name};
    jobs_tell(&told);
    if (s->state == JOB_CREATED)
        return;
    told.event = JOB_ENQUEUE;
    told.from = JOB_CREATED;
    told.to = JOB_QUEUED;
    jobs_tell(&told);
}

static void write_location(struct response *r, const char *header)
{
    static const char folder[] = "/v1/jobs/";
    char text[sizeof(folder) + sizeof(r->job_id)];
    size_t length = strlen(r->job_id);
    memcpy(text, folder, sizeof(folder) - 1);
    memcpy(text + sizeof(folder) - 1, r->job_id, length);
    response_header_text(r, header, text, sizeof(folder) - 1 + length);
}

static void write_accepted(struct response *r, const struct job_submitted *s)
{
    struct json json;
    write_location(r, "Location");
    response_begin(r, 202, RESPONSE_JSON);
    json_init(&json, &r->sink);
    json_object_begin(&json);
    JSON_MEMBER(&json, "job_id", string, r->job_id);
    JSON_MEMBER(&json, "state", string, job_state_name(s->state));
    job_json_write_time(&json, "created_at", s->created_us);
    json_object_end(&json);
}

/* Of a client that prefers to wait: the job, if it comes to its end in time. The job contract has the 202 alone. */
static bool answer_end(const struct request *q, struct response *r, const struct job_submit *c,
                       const struct uuid *id)
{
    struct prefer prefer = prefer_read(q);
    uint64_t began = q->began_ns ? q->began_ns : actor_now();
    prefer_applied(&prefer, r);
    if (!prefer.waits || !job_wait(r, id, began + prefer.wait_s * NS_PER_S))
        return false;
    write_location(r, "Location");
    write_location(r, "Content-Location");
    answer_job(q, r, id);
    r->beyond = c->kind != WORK_KIND_USER;
    return true;
}

/* All else that would be invalid has been looked at before. */
static void refuse_submit(struct response *r, const struct job_submit *c, enum error e)
{
    if (e == ERR_INVALID && c->type == JOB_DEFERRED && c->execution_us + JOB_LATE_US <= store_time_us())
        response_error_field(r, ERROR_RFA_JOB_VALIDATION_FAILED, "execution_at", job_request_past);
    else
        job_refuse(r, e);
}

static void serve_submit(const struct request *q, struct response *r)
{
    struct job_submit c = *(const struct job_submit *)q->prepared;
    struct job_submitted submitted;
    enum error e = submit_job(q, &c, &submitted);
    if (e) {
        refuse_submit(r, &c, e);
        return;
    }
    note_job(r, &submitted.id);
    if (submitted.made)
        tell_submitted(&c, &submitted);
    else
        response_header(r, "Idempotent-Replayed", "true");
    if (c.key.size > 0 || !submitted.made) {
        job_figures_add(submitted.made ? JOB_FIGURE_KEY_NEW : JOB_FIGURE_KEY_HIT);
        TELEMETRY(IDEMPOTENCY, 1, DIM(OUTCOME, submitted.made ? "new" : "hit"));
    }
    if (!answer_end(q, r, &c, &submitted.id))
        write_accepted(r, &submitted);
}

/* ---- cancel and retry ---- */

static void write_changed(struct response *r, const struct job_changed *changed, bool attempt)
{
    struct json json;
    response_begin(r, 200, RESPONSE_JSON);
    json_init(&json, &r->sink);
    json_object_begin(&json);
    JSON_MEMBER(&json, "job_id", string, r->job_id);
    JSON_MEMBER(&json, "state", string, job_state_name(changed->state));
    job_json_write_time(&json, "updated_at", changed->updated_us);
    if (attempt)
        JSON_MEMBER(&json, "attempt", uint, changed->attempt);
    json_object_end(&json);
}

static void tell_changed(const struct request *q, const struct uuid *id, const struct job_changed *changed,
                         enum job_event event)
{
    struct job_link link;
    struct job_told told = {.id = *id,
                            .client = q->identity.client,
                            .event = (uint8_t)event,
                            .from = changed->from,
                            .to = changed->state,
                            .kind = changed->kind,
                            .attempt = changed->attempt,
                            .ran_us = changed->ran_us,
                            .link = &link};
    memcpy(link.trace_id, q->trace.trace_id, sizeof(link.trace_id));
    memcpy(link.span_id, q->trace.span_id, sizeof(link.span_id));
    if (!changed->made)
        return;
    worker_stop(changed->worker, id); /* otherwise it would learn of it with its next heartbeat */
    jobs_tell(&told);
}

static void serve_cancel(const struct request *q, struct response *r)
{
    struct job_cancel c = {.client = q->identity.client, .kept_us = jobs_settings().kept_us};
    struct job_changed changed;
    size_t size = 0;
    if (!take_id(q, r, &c.id))
        return;
    enum error e = ERR_CONFLICT;
    for (int i = 0; i <= CANCEL_AGAIN && e == ERR_CONFLICT; i++) /* somebody else was quicker (AMB-J-32) */
        e = submit(q, &job_cancel_class, &c, &changed, sizeof(changed), &size);
    if (e || size != sizeof(changed)) {
        job_refuse(r, e ? e : ERR_UNANSWERED);
        return;
    }
    tell_changed(q, &c.id, &changed, JOB_CANCEL);
    write_changed(r, &changed, false);
}

static void serve_retry(const struct request *q, struct response *r)
{
    const struct jobs_settings s = jobs_settings();
    struct job_retry c = {.client = q->identity.client,
                          .retry_max = s.retry_max,
                          .queue_max = s.queue_max,
                          .steady_us = store_steady_us(store_here()),
                          .base_us = s.backoff_base_us,
                          .most_us = s.backoff_most_us,
                          .chance = (uint32_t)actor_random()};
    struct job_changed changed;
    size_t size = 0;
    if (!take_id(q, r, &c.id))
        return;
    enum error e = submit(q, &job_retry_class, &c, &changed, sizeof(changed), &size);
    if (e || size != sizeof(changed)) {
        job_refuse(r, e ? e : ERR_UNANSWERED);
        return;
    }
    tell_changed(q, &c.id, &changed, JOB_RETRY);
    write_changed(r, &changed, true);
}

/* ---- its events ---- */

/* Events from *from up to `to`, as many as fit; *from is behind the last one. One that is missing is passed over: the job still
 * works without it (JOB-392). */
static enum error render_events(struct txn *txn, const struct job *job, struct span kind_name, uint64_t *from,
                                uint64_t to, struct rendered *out)
{
    enum error e = OK;
    for (; !e && *from <= to; ++*from) {
        struct event event;
        e = event_read(txn, &job->id, *from, &event);
        if (e == ERR_NOT_FOUND) {
            TELEMETRY(STORE_DAMAGED, 1, DIM(COMPONENT, "job"), DIM(REASON, "events"));
            e = OK;
            continue;
        }
        if (e)
            break;
        struct json *json = rendered_begin(out);
        json_object_begin(json);
        job_event_write_json(json, txn->store, job, kind_name, *from, &event);
        json_object_end(json);
        if (!rendered_end(out))
            break;
    }
    return e;
}

/* What of a job its events are written with. */
struct eventful {
    struct job job; /* without its texts */
    uint64_t next, last;
    char kind_room[WORK_KIND_NAME_MAX];
    struct span kind_name;
    struct rendered *some;
};

static void note_kind(struct txn *txn, struct eventful *s)
{
    struct job_definition d;
    struct span name = job_kind_name(s->job.kind, span_of(NULL, 0));
    if (s->job.kind == WORK_KIND_USER && job_read_definition(txn, &s->job.id, &d) == OK &&
        d.kind_name.size > 0) {
        memcpy(s->kind_room, d.kind_name.bytes, d.kind_name.size);
        name = span_of(s->kind_room, d.kind_name.size);
    }
    s->kind_name = name;
}

/* The next chunk, by a view of its own. False: there is no more, or it can't be read. */
static bool more_events(struct response *r, struct eventful *s)
{
    rendered_clear(s->some);
    if (s->next > s->last)
        return false;
    struct view *view = view_open(store_here());
    enum error e =
        view ? render_events(&view->txn, &s->job, s->kind_name, &s->next, s->last, s->some) : ERR_UNAVAILABLE;
    if (view)
        view_close(view);
    if (e)
        response_fail(r, e);
    return e == OK;
}

static void write_events(struct response *r, struct json *json, struct eventful *s)
{
    do
        rendered_write(s->some, json);
    while (more_events(r, s) && !r->failed);
}

/* ---- report ---- */

struct told_report {
    struct report report; /* its texts lie in the room */
    struct eventful events;
    char room[512 + JOB_RESULT_MAX];
};

static void keep_texts(struct told_report *t)
{
    struct report *p = &t->report;
    char *at = t->room;
    memcpy(at, p->message.size ? p->message.bytes : "", p->message.size);
    p->message.bytes = at;
    at += p->message.size;
    memcpy(at, p->result.size ? p->result.bytes : "", p->result.size);
    p->result.bytes = at;
}

/* *ret_job: the job is there, whatever becomes of the report. */
static enum error read_report(struct txn *txn, const struct request *q, const struct uuid *id,
                              struct told_report *t, bool *ret_job)
{
    struct eventful *s = &t->events;
    enum error e = read_own(txn, q, id, &s->job);
    *ret_job = e == OK;
    if (!e)
        e = job_read_report(txn, &s->job, &t->report);
    if (e)
        return e;
    keep_texts(t);
    note_kind(txn, s);
    s->next = 1;
    s->last = t->report.events;
    return render_events(txn, &s->job, s->kind_name, &s->next, s->last, s->some);
}

static void write_report(struct response *r, struct told_report *t)
{
    const struct report *p = &t->report;
    struct json json;
    beyond_contract(r, &t->events.job);
    response_begin(r, 200, RESPONSE_JSON);
    json_init(&json, &r->sink);
    json_object_begin(&json);
    job_json_write_id(&json, "job_id", &t->events.job.id);
    JSON_MEMBER(&json, "outcome", string, job_outcome_name(p->outcome));
    json_key(&json, "events");
    json_array_begin(&json);
    write_events(r, &json, &t->events);
    json_array_end(&json);
    job_json_write_time(&json, "started_at", p->started_us);
    job_json_write_time(&json, "finished_at", p->finished_us);
    JSON_MEMBER(&json, "duration_ms", uint,
                p->started_us && p->finished_us > p->started_us ? (p->finished_us - p->started_us) / 1000
                                                                : 0);
    if (p->message.size > 0) {
        json_key(&json, "message");
        json_string_n(&json, p->message.bytes, p->message.size);
    }
    if (p->result.size > 0) {
        json_key(&json, "result");
        json_raw(&json, p->result.bytes, p->result.size);
    }
    json_object_end(&json);
}

static void serve_report(const struct request *q, struct response *r)
{
    struct told_report *t = actor_alloc(sizeof(*t));
    struct uuid id;
    bool job = false;
    if (!take_id(q, r, &id))
        return;
    t->events.some = rendered_new();
    struct view *view = view_open(store_here());
    enum error e = view ? read_report(&view->txn, q, &id, t, &job) : ERR_UNAVAILABLE;
    if (view)
        view_close(view);
    commit_note_read(e);
    if (e == ERR_NOT_FOUND && job)
        response_error(r, ERROR_RFA_JOB_REPORT_NOT_FOUND, "the job is %s and has no report",
                       job_state_name(t->events.job.state));
    else if (e)
        job_refuse(r, e);
    else
        write_report(r, t);
}

/* ---- events ---- */

static enum error begin_events(const struct request *q, const struct uuid *id, uint32_t limit,
                               struct eventful *s)
{
    struct view *view = view_open(store_here());
    if (!view)
        return ERR_UNAVAILABLE;
    enum error e = read_own(&view->txn, q, id, &s->job);
    if (!e) {
        note_kind(&view->txn, s);
        s->last = s->job.events - s->next >= limit ? s->next + limit - 1 : s->job.events;
        if (s->next <= s->job.events)
            e = render_events(&view->txn, &s->job, s->kind_name, &s->next, s->last, s->some);
        else
            s->last = s->job.events;
    }
    view_close(view);
    return e;
}

/* The number that the page before ended with is the cursor's key. */
static void write_events_page(const struct request *q, struct response *r, struct eventful *s,
                              uint64_t filter)
{
    struct paging_next next;
    struct json json;
    struct key key = {.size = 0};
    if (s->last < s->job.events)
        key_add_u64(&key, s->last);
    beyond_contract(r, &s->job);
    paging_go_on(q, r, "cursor", LIST_OF_EVENTS, filter, &key, &next);
    response_begin(r, 200, RESPONSE_JSON);
    json_init(&json, &r->sink);
    json_object_begin(&json);
    json_key(&json, "items");
    json_array_begin(&json);
    write_events(r, &json, s);
    json_array_end(&json);
    paging_write_next(&json, "next_cursor", &next);
    json_object_end(&json);
}

void jobs_serve_events(const struct request *q, struct response *r)
{
    struct eventful *s = actor_alloc(sizeof(*s));
    uint32_t limit;
    struct uuid id;
    struct key after;
    if (!paging_take_limit(q, r, JOBS_PAGE_USUAL, JOBS_PAGE_MAX, &limit) || !take_id(q, r, &id))
        return;
    uint64_t filter = paging_filter(&id, sizeof(id));
    if (!paging_take_cursor(q, r, "cursor", LIST_OF_EVENTS, filter, sizeof(uint64_t), &after))
        return;
    s->some = rendered_new();
    s->next = (after.size ? key_u64(after.bytes) : 0) + 1;
    enum error e = begin_events(q, &id, limit, s);
    commit_note_read(e);
    if (e)
        job_refuse(r, e);
    else
        write_events_page(q, r, s, filter);
}

/* ---- routes ---- */

#define JOB_ROUTE(verb, text, size, handler, ...)                                           \
    {                                                                                       \
        .method = METHOD_##verb, .path = (text), .surface = SURFACE_JOBS, .auth = AUTH_KEY, \
        .limit = LIMIT_CLIENT, .body_max = (size), .changes = METHOD_##verb != METHOD_GET,  \
        .serve = (handler), __VA_ARGS__                                                     \
    }

const struct route job_routes[] = {
    JOB_ROUTE(POST, "/v1/jobs", FRONT_BODY_MAX, serve_submit, .precheck = job_request_precheck,
              .action = "submit"),
    JOB_ROUTE(GET, "/v1/jobs", 0, job_list_serve, .action = "list"),
    JOB_ROUTE(GET, "/v1/jobs/{job_id}", 0, serve_job, .token_twin = &control_shared_job, .action = "get"),
    JOB_ROUTE(POST, "/v1/jobs/{job_id}/cancel", FRONT_BODY_MAX, serve_cancel, .body_optional = true,
              .action = "cancel"),
    JOB_ROUTE(POST, "/v1/jobs/{job_id}/retry", FRONT_BODY_MAX, serve_retry, .body_optional = true,
              .action = "retry"),
    JOB_ROUTE(GET, "/v1/jobs/{job_id}/report", 0, serve_report, .action = "report"),
    JOB_ROUTE(GET, "/v1/jobs/{job_id}/events", 0, jobs_serve_events, .action = "events"),
    JOB_ROUTE(GET, "/v1/jobs/{job_id}:explain", 0, job_explain_serve, .action = "explain"),
    JOB_ROUTE(POST, "/v1/work:submit", WORK_BODY_MAX, serve_submit, .precheck = job_request_work_precheck,
              .action = "submit"),
};
const size_t job_routes_count = sizeof(job_routes) / sizeof(*job_routes);
