#include "http/job_explain.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "actors/jobs.h"
#include "actors/worker.h"
#include "http/actor_view.h"
#include "http/job_json.h"
#include "http/job_refusal.h"
#include "runtime/pressure.h"
#include "runtime/telemetry.h"
#include "store/job_pause.h"
#include "store/job_submit.h"
#include "store/view.h"
#include "store/writer.h"

/* All of it is copied: the view has gone when it is told. */
struct explained {
    enum job_reason reason;
    struct job job; /* its texts lie below */
    struct job_texts texts;
    uint64_t until_us, lease_us; /* by wall time; 0: not known, none */
    uint32_t ahead;
    bool more; /* than `ahead`, which is where counting ends */
    bool paused;
    struct pause pause; /* its texts lie below */
    char label[PAUSE_LABEL], who[PAUSE_WHO], why[PAUSE_REASON];
    char kind_room[WORK_KIND_NAME_MAX];
    struct span kind;
    bool due;        /* CREATED: its time has come */
    int64_t taken;   /* ASSIGNED or RUNNING, whosever */
    int64_t counted; /* of its client, towards the client's limit */
    struct jobs_settings settings;
};

const char *job_reason_name(enum job_reason reason)
{
    static const char *const names[] = {
#define X(id, name) [JOB_REASON_##id] = (name),
        JOB_REASONS(X)
#undef X
    };
    return names[reason];
}

/* ---- what is so ---- */

static struct span copied(struct span text, char *room)
{
    if (text.size > 0)
        memcpy(room, text.bytes, text.size);
    return span_of(room, text.size);
}

static void keep_pause(struct explained *x)
{
    x->paused = true;
    x->pause.label = copied(x->pause.label, x->label);
    x->pause.who = copied(x->pause.who, x->who);
    x->pause.reason = copied(x->pause.reason, x->why);
    x->until_us = x->pause.until_us;
}

static bool shedding(void)
{
    return telemetry_gauge_get(TELEMETRY_GAUGE_PRESSURE_LEVEL, WRITER_NAME) >= PRESSURE_SHED;
}

/* Of a job in the lane of the server's workers. */
static enum job_reason why_in_lane(const struct explained *x)
{
    const struct jobs_settings *s = &x->settings;
    if (!worker_any(s))
        return JOB_REASON_NO_WORKERS;
    if (s->active_queues && s->active_max && x->taken >= (int64_t)s->active_max)
        return JOB_REASON_ACTIVE_LIMIT;
    return shedding() ? JOB_REASON_PRESSURE : JOB_REASON_QUEUED;
}

/* By the same rule as a claim (store/job_lease.c): one that no claim has met yet says nothing of it. */
static bool is_limited(const struct explained *x)
{
    uint32_t most = x->settings.client_running_max;
    return x->job.lane == LANE_LIMITED || (most && !x->job.pass && x->counted >= (int64_t)most);
}

static enum error count_taken(struct txn *txn, struct explained *x)
{
    int64_t assigned = 0, running = 0;
    enum error e = job_count(txn, JOB_ASSIGNED, &assigned);
    if (!e)
        e = job_count(txn, JOB_RUNNING, &running);
    x->taken = assigned + running;
    return e;
}

static enum error explain_queued(struct txn *txn, struct explained *x)
{
    enum error e = pause_find(txn, &x->job, &x->pause);
    if (!e) {
        keep_pause(x);
        x->reason = JOB_REASON_PAUSED;
        return OK;
    }
    if (e != ERR_NOT_FOUND)
        return e;
    if (x->job.lane == LANE_NONE) {
        x->reason = JOB_REASON_BACKOFF;
        x->until_us = store_wall_of(store_here(), x->job.due_us);
        return OK;
    }
    e = job_queue_ahead(txn, &x->job, JOB_AHEAD_MAX, &x->ahead);
    x->more = x->ahead == JOB_AHEAD_MAX;
    if (!e)
        e = count_taken(txn, x);
    if (!e)
        e = job_queue_counted(txn, &x->job.client, &x->counted);
    if (e)
        return e;
    x->reason = is_limited(x)                 ? JOB_REASON_CLIENT_LIMIT
                : x->job.lane == LANE_OUTSIDE ? JOB_REASON_OUTSIDE
                                              : why_in_lane(x);
    return OK;
}

/* Between its time and the moment in which its shard has looked it isn't the queue that it waits for. */
static enum error explain_created(struct txn *txn, struct explained *x)
{
    int64_t waiting = 0;
    x->due = x->job.execution_us <= store_time_us();
    x->until_us = x->due ? 0 : x->job.execution_us;
    x->reason = JOB_REASON_SCHEDULED;
    enum error e = x->due ? job_count(txn, JOB_QUEUED, &waiting) : OK;
    if (x->due && waiting >= (int64_t)x->settings.queue_max)
        x->reason = JOB_REASON_QUEUE_FULL;
    return e;
}

static enum error explain(struct txn *txn, struct explained *x)
{
    switch ((enum job_state)x->job.state) {
    case JOB_CREATED:
        return explain_created(txn, x);
    case JOB_QUEUED:
        return explain_queued(txn, x);
    case JOB_ASSIGNED:
    case JOB_RUNNING:
        x->reason = x->job.state == JOB_RUNNING ? JOB_REASON_RUNNING : JOB_REASON_ASSIGNED;
        x->lease_us = store_wall_of(store_here(), x->job.lease_us);
        return OK;
    default:
        x->reason = JOB_REASON_FINAL;
        return OK;
    }
}

static void keep_kind(struct txn *txn, struct explained *x)
{
    struct job_definition d;
    x->kind = job_kind_name(x->job.kind, span_of(NULL, 0));
    if (x->job.kind == WORK_KIND_USER && job_read_definition(txn, &x->job.id, &d) == OK)
        x->kind = copied(d.kind_name, x->kind_room);
}

static enum error look(struct txn *txn, const struct request *q, const struct uuid *id, struct explained *x)
{
    enum error e = job_open(txn, id, &x->job, &x->texts);
    if (!e && q->identity.kind != IDENTITY_OPERATOR && !uuid_equal(&x->job.client, &q->identity.client))
        e = ERR_FORBIDDEN;
    if (e)
        return e;
    keep_kind(txn, x);
    return explain(txn, x);
}

/* ---- in a sentence ---- */

struct sentence {
    char text[512 + PAUSE_REASON];
    size_t length;
};

__attribute__((format(printf, 2, 3))) static void say(struct sentence *s, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int length = vsnprintf(s->text + s->length, sizeof(s->text) - s->length, format, list);
    va_end(list);
    if (length > 0)
        s->length += (size_t)length;
    if (s->length >= sizeof(s->text))
        s->length = sizeof(s->text) - 1;
}

static void say_time(struct sentence *s, const char *before, uint64_t us)
{
    char at[TIME_TEXT_SIZE];
    job_time_format(us, at);
    say(s, "%s%s", before, at);
}

static void say_ahead(struct sentence *s, const struct explained *x)
{
    if (x->more)
        say(s, "more than %u jobs are before it", JOB_AHEAD_MAX);
    else if (x->ahead)
        say(s, "%u %s before it", x->ahead, x->ahead == 1 ? "job is" : "jobs are");
    else
        say(s, "it is the next one");
}

static void say_pause(struct sentence *s, const struct explained *x)
{
    static const char *const whose[] = {[PAUSE_ALL] = "All jobs are paused",
                                        [PAUSE_WORK] = "Jobs of its kind are paused",
                                        [PAUSE_CLIENT] = "Jobs of its client are paused"};
    say(s, "%s", whose[x->pause.scope]);
    say_time(s, " since ", x->pause.since_us);
    if (x->pause.until_us)
        say_time(s, " until ", x->pause.until_us);
    if (x->pause.reason.size > 0)
        say(s, ": %.*s", (int)x->pause.reason.size, (const char *)x->pause.reason.bytes);
}

/* A limit may have been lowered since, or taken away, which brings back one after the other. */
static void say_limit(struct sentence *s, const struct explained *x)
{
    uint32_t most = x->settings.client_running_max;
    say(s, "Its client has %" PRId64 " %s running", x->counted, x->counted == 1 ? "job" : "jobs");
    if (most && x->counted >= (int64_t)most)
        say(s, ", and may have %u", most);
    else
        say(s, ", and others of its jobs come back before it");
}

static void say_final(struct sentence *s, const struct explained *x)
{
    const struct job *job = &x->job;
    uint32_t used = job->attempt - 1u, most = x->settings.retry_max;
    say(s, "It has been %s", job_state_name(job->state));
    say_time(s, " since ", job->finished_us);
    if (job->state == JOB_FAILED)
        say(s, " (%s); of %u retries %u are left", job_failure_reason(job->failure), most,
            most > used ? most - used : 0u);
}

static void say_worker(struct sentence *s, const struct explained *x)
{
    const struct job *job = &x->job;
    say(s, "%.*s ", (int)job->worker.size, (const char *)job->worker.bytes);
    if (job->state == JOB_RUNNING)
        say_time(s, "runs it since ", job->started_us);
    else
        say(s, "has claimed it and hasn't begun");
    say_time(s, "; its lease is good until ", x->lease_us);
}

static void say_why(struct sentence *s, const struct explained *x)
{
    const struct jobs_settings *set = &x->settings;
    switch (x->reason) {
    case JOB_REASON_FINAL:
        say_final(s, x);
        break;
    case JOB_REASON_RUNNING:
    case JOB_REASON_ASSIGNED:
        say_worker(s, x);
        break;
    case JOB_REASON_SCHEDULED:
        say_time(s, x->due ? "It was scheduled for " : "It is scheduled for ", x->job.execution_us);
        say(s, "%s", x->due ? ", and is about to be queued" : "");
        break;
    case JOB_REASON_QUEUE_FULL:
        say(s,
            "Its time has come, and %u jobs are queued, which is as many as may be; it is tried again every "
            "second",
            set->queue_max);
        break;
    case JOB_REASON_BACKOFF:
        say_time(s, "It was retried, and may be claimed from ", x->until_us);
        say(s, " on");
        break;
    case JOB_REASON_PAUSED:
        say_pause(s, x);
        break;
    case JOB_REASON_CLIENT_LIMIT:
        say_limit(s, x);
        break;
    case JOB_REASON_OUTSIDE:
        say(s,
            "Only workers of its client run jobs of kind %.*s, and none has claimed it: ", (int)x->kind.size,
            (const char *)x->kind.bytes);
        say_ahead(s, x);
        break;
    case JOB_REASON_NO_WORKERS:
        say(s,
            set->workers ? "None of the %u workers is alive; "
                         : "This server has no workers (workers.count is 0); ",
            set->workers);
        say_ahead(s, x);
        break;
    case JOB_REASON_ACTIVE_LIMIT:
        say(s, "%" PRId64 " %s being worked on, and %u may be: claims are held back; ", x->taken,
            x->taken == 1 ? "job is" : "jobs are", set->active_max);
        say_ahead(s, x);
        break;
    case JOB_REASON_PRESSURE:
        say(s, "The store has as much to do as it takes on, so claims are put off; ");
        say_ahead(s, x);
        break;
    default:
        say(s, "It is queued: ");
        say_ahead(s, x);
    }
    say(s, ".");
}

/* ---- who runs it ---- */

struct runner {
    struct actor_info actor;
    struct child_info child;
    bool there, counted;
};

/* A worker of this start of the server bears its actor's name; one outside may call itself what it likes. */
static bool ours(const struct job *job)
{
    return (job->state == JOB_ASSIGNED || job->state == JOB_RUNNING) && job->owner == store_here()->start;
}

static void find_runner(const struct explained *x, struct runner *ret)
{
    char name[JOB_WORKER_MAX + 1];
    uint64_t deadline = actor_deadline_ms(EXPLAIN_ANSWER_MS);
    memset(ret, 0, sizeof(*ret));
    if (!ours(&x->job))
        return;
    snprintf(name, sizeof(name), "%.*s", (int)x->job.worker.size, (const char *)x->job.worker.bytes);
    actor_pid pid = actor_whereis(name);
    ret->there = pid && actor_inspect(pid, &ret->actor, deadline) == OK;
    ret->counted = ret->there && actor_view_child(&ret->actor, &ret->child, deadline);
}

static void write_runner(struct json *json, const struct runner *w)
{
    json_key(json, "worker");
    if (!w->there) {
        json_null(json);
        return;
    }
    json_object_begin(json);
    JSON_MEMBER(json, "pid", hex_string, w->actor.pid);
    JSON_MEMBER(json, "name", string, w->actor.name);
    JSON_MEMBER(json, "status", string, w->actor.status);
    JSON_MEMBER(json, "waiting_for", string, w->actor.waiting_for[0] ? w->actor.waiting_for : NULL);
    json_key(json, "mailbox");
    json_object_begin(json);
    JSON_MEMBER(json, "depth", uint, w->actor.mailbox_depth);
    JSON_MEMBER(json, "capacity", uint, w->actor.mailbox_capacity);
    json_object_end(json);
    json_key(json, "restarts");
    if (w->counted)
        json_uint(json, w->child.restarts);
    else
        json_null(json);
    json_object_end(json);
}

/* ---- the answer ---- */

static void write_text(struct json *json, const char *name, struct span text)
{
    json_key(json, name);
    if (text.size > 0)
        json_string_n(json, text.bytes, text.size);
    else
        json_null(json);
}

static void write_pause(struct json *json, const struct explained *x, bool who)
{
    json_key(json, "pause");
    if (!x->paused) {
        json_null(json);
        return;
    }
    json_object_begin(json);
    JSON_MEMBER(json, "scope", string, pause_scope_name(x->pause.scope));
    job_json_write_time(json, "since", x->pause.since_us);
    job_json_write_time(json, "until", x->pause.until_us);
    write_text(json, "reason", x->pause.reason);
    if (who)
        write_text(json, "who", x->pause.who);
    json_object_end(json);
}

static void write_lease(struct json *json, const struct explained *x)
{
    json_key(json, "lease");
    if (!x->lease_us) {
        json_null(json);
        return;
    }
    json_object_begin(json);
    write_text(json, "owner", x->job.worker);
    job_json_write_time(json, "expires_at", x->lease_us);
    json_key(json, "progress");
    json_decimal(json, x->job.progress, 3);
    write_text(json, "stage", x->job.stage);
    json_object_end(json);
}

static void write_ahead(struct json *json, const struct explained *x)
{
    bool counted =
        x->job.state == JOB_QUEUED && x->reason != JOB_REASON_PAUSED && x->reason != JOB_REASON_BACKOFF;
    json_key(json, "ahead");
    if (counted)
        json_uint(json, x->ahead);
    else
        json_null(json);
    JSON_MEMBER(json, "ahead_more", bool, counted && x->more);
}

static void write_answer(const struct request *q, struct response *r, const struct explained *x,
                         const struct runner *w)
{
    struct sentence *s = actor_alloc(sizeof(*s));
    struct json json;
    s->length = 0;
    say_why(s, x);
    response_begin(r, 200, RESPONSE_JSON);
    json_init(&json, &r->sink);
    json_object_begin(&json);
    job_json_write_id(&json, "job_id", &x->job.id);
    JSON_MEMBER(&json, "state", string, job_state_name(x->job.state));
    JSON_MEMBER(&json, "reason", string, job_reason_name(x->reason));
    json_key(&json, "sentence");
    json_string_n(&json, s->text, s->length);
    job_json_write_time(&json, "until", x->until_us);
    write_ahead(&json, x);
    write_pause(&json, x, q->identity.kind == IDENTITY_OPERATOR);
    write_lease(&json, x);
    write_runner(&json, w);
    json_object_end(&json);
}

void job_explain_serve(const struct request *q, struct response *r)
{
    struct explained *x = actor_alloc(sizeof(*x));
    struct runner *w = actor_alloc(sizeof(*w));
    struct uuid id;
    memset(x, 0, sizeof(*x));
    x->settings = jobs_settings();
    if (!uuid_parse(q->params[0].bytes, q->params[0].size, &id)) {
        job_refuse(r, ERR_NOT_FOUND);
        return;
    }
    uuid_format(&id, r->job_id);
    struct view *view = view_open(store_here());
    enum error e = view ? look(&view->txn, q, &id, x) : ERR_UNAVAILABLE;
    if (view)
        view_close(view);
    if (e) {
        job_refuse(r, e);
        return;
    }
    find_runner(x, w);
    write_answer(q, r, x, w);
}
