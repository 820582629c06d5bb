#include "http/job_inspect.h"

#include "http/job_explain.h"
#include "http/job_json.h"
#include "http/job_list.h"
#include "http/job_refusal.h"
#include "http/jobs.h"
#include "http/rendered.h"
#include "store/store.h"
#include "store/view.h"

static bool take_id(const struct request *q, struct response *r, struct uuid *ret_id)
{
    if (uuid_parse(q->params[0].bytes, q->params[0].size, ret_id))
        return true;
    job_refuse(r, ERR_NOT_FOUND);
    return false;
}

static void write_text(struct json *json, const char *name, struct span text)
{
    json_key(json, name);
    if (text.size > 0)
        json_string_n(json, text.bytes, text.size);
    else
        json_null(json);
}

/* ---- one job ---- */

static void write_lease(struct json *json, const struct job *job)
{
    json_key(json, "lease");
    if (job->state != JOB_ASSIGNED && job->state != JOB_RUNNING) {
        json_null(json);
        return;
    }
    json_object_begin(json);
    write_text(json, "owner", job->worker);
    job_json_write_time(json, "expires_at", store_wall_of(store_here(), job->lease_us));
    JSON_MEMBER(json, "fence", uint, job->fence);
    json_key(json, "progress");
    json_decimal(json, job->progress, 3);
    write_text(json, "stage", job->stage);
    json_object_end(json);
}

static void write_job(struct json *json, const struct job *job, const struct job_definition *d)
{
    json_object_begin(json);
    json_key(json, "job");
    json_object_begin(json);
    job_json_write_id(json, "client_id", &job->client);
    job_json_write_members(json, job, d);
    json_object_end(json);
    write_lease(json, job);
    write_text(json, "request_id", d ? d->request_id : span_of(NULL, 0));
    write_text(json, "traceparent", d ? d->trace : span_of(NULL, 0));
    json_key(json, "record");
    json_object_begin(json);
    record_write_json(&job_record, job, json);
    json_object_end(json);
    json_object_end(json);
}

static enum error render_job(struct txn *txn, const struct uuid *id, struct rendered *out)
{
    struct job_definition d;
    struct job job;
    enum error e = job_read(txn, id, &job), defined = OK;
    if (!e)
        defined = job_read_definition(txn, id, &d);
    e = e ? e : defined == ERR_NOT_FOUND ? OK : defined;
    if (e)
        return e;
    write_job(rendered_begin(out), &job, defined ? NULL : &d);
    return rendered_end(out) ? OK : ERR_FULL;
}

/* Of one value that has been rendered. There may be a result in it, as a client's program wrote it. */
static void answer(struct response *r, const struct rendered *some, enum error e)
{
    struct json json;
    if (e) {
        job_refuse(r, e);
        return;
    }
    response_begin(r, 200, RESPONSE_JSON);
    json_init(&json, &r->sink);
    json_foreign(&json, some->room, some->ends[0]);
}

static void serve_job(const struct request *q, struct response *r)
{
    struct rendered *some = rendered_new();
    struct uuid id;
    if (!take_id(q, r, &id))
        return;
    struct view *view = view_open(store_here());
    enum error e = view ? render_job(&view->txn, &id, some) : ERR_UNAVAILABLE;
    if (view)
        view_close(view);
    answer(r, some, e);
}

/* ---- reports ---- */

static void write_report(struct json *json, uint16_t attempt, const struct report *p, bool whole)
{
    uint64_t took = p->started_us && p->finished_us > p->started_us ? p->finished_us - p->started_us : 0;
    json_object_begin(json);
    JSON_MEMBER(json, "attempt", uint, attempt);
    JSON_MEMBER(json, "outcome", string, job_outcome_name(p->outcome));
    job_json_write_time(json, "started_at", p->started_us);
    job_json_write_time(json, "finished_at", p->finished_us);
    JSON_MEMBER(json, "duration_ms", uint, took / 1000);
    JSON_MEMBER(json, "events", uint, p->events);
    json_key(json, "failure");
    if (p->outcome == JOB_FAILED)
        job_json_write_failure(json, p->failure, p->retryable);
    else
        json_null(json);
    if (whole && p->message.size > 0)
        write_text(json, "message", p->message);
    if (whole && p->result.size > 0) {
        json_key(json, "result");
        json_raw(json, p->result.bytes, p->result.size);
    }
    json_object_end(json);
}

static void write_current(struct txn *txn, const struct job *job, struct json *json)
{
    struct report report;
    json_key(json, "current");
    if (job_read_report(txn, job, &report) == OK)
        write_report(json, job->attempt, &report, true);
    else
        json_null(json);
}

/* Newest first. One that is missing is left out. */
static void write_earlier(struct txn *txn, const struct job *job, struct json *json)
{
    uint32_t left = JOB_REPORTS_SHOWN;
    json_key(json, "earlier");
    json_array_begin(json);
    for (uint16_t attempt = (uint16_t)(job->attempt - 1); attempt > 0 && left > 0; attempt--, left--) {
        struct key key = report_key(&job->id, attempt);
        struct report report;
        if (txn_read(txn, TABLE_REPORTS, key_span(&key), &report) == OK)
            write_report(json, attempt, &report, false);
    }
    json_array_end(json);
}

static enum error render_reports(struct txn *txn, const struct uuid *id, struct rendered *out)
{
    struct job job;
    enum error e = job_read(txn, id, &job);
    if (e)
        return e;
    struct json *json = rendered_begin(out);
    json_object_begin(json);
    job_json_write_id(json, "job_id", &job.id);
    JSON_MEMBER(json, "state", string, job_state_name(job.state));
    write_current(txn, &job, json);
    write_earlier(txn, &job, json);
    json_object_end(json);
    return rendered_end(out) ? OK : ERR_FULL;
}

static void serve_reports(const struct request *q, struct response *r)
{
    struct rendered *some = rendered_new();
    struct uuid id;
    if (!take_id(q, r, &id))
        return;
    struct view *view = view_open(store_here());
    enum error e = view ? render_reports(&view->txn, &id, some) : ERR_UNAVAILABLE;
    if (view)
        view_close(view);
    answer(r, some, e);
}

/* ---- the table ---- */

#define SHOWN(path_, serve_)                                                                     \
    {                                                                                            \
        .method = METHOD_GET, .path = path_, .surface = SURFACE_OPERATOR, .auth = AUTH_OPERATOR, \
        .serve = serve_                                                                          \
    }

const struct route job_operator_routes[] = {
    SHOWN("/jobs", job_list_serve_all),
    SHOWN("/jobs/{job_id}/record", serve_job),
    SHOWN("/jobs/{job_id}/report", serve_reports),
    SHOWN("/jobs/{job_id}/events", jobs_serve_events),
    SHOWN("/jobs/{job_id}:explain", job_explain_serve),
};
const size_t job_operator_routes_count = sizeof(job_operator_routes) / sizeof(*job_operator_routes);
