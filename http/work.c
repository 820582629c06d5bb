#include "http/work.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "actors/job_figures.h"
#include "actors/jobs.h"
#include "http/api_key_auth.h"
#include "http/audits.h"
#include "http/commit.h"
#include "http/json_text.h"
#include "runtime/telemetry.h"
#include "store/job_lease.h"
#include "store/job_queue.h"
#include "store/view.h"

enum {
    NAME_ROOM = 256,
    TOKEN_SIZE = 24,
    WORK_LOOK_MS = 5000, /* a claim that waits looks by itself, whatever it is told */
};

/* ---- what the store said ---- */

static enum error_code code_of(enum error e)
{
    switch (e) {
    case ERR_NOT_FOUND:
        return ERROR_RFA_JOB_NOT_FOUND;
    case ERR_FENCED:
    case ERR_EXPIRED:
    case ERR_CONFLICT:
        return ERROR_RFA_JOB_CONFLICT;
    case ERR_NO_SPACE:
    case ERR_DAMAGED:
    case ERR_NEWER:
    case ERR_IO:
        return ERROR_RFA_STORAGE_DB_ERROR;
    case ERR_INVALID:
        return ERROR_RFA_JOB_VALIDATION_FAILED;
    case ERR_TIMEOUT:
        return ERROR_RFA_EXEC_TIMEOUT;
    default:
        return ERROR_RFA_STORAGE_UNAVAILABLE;
    }
}

static const char *what_of(enum error e)
{
    switch (e) {
    case ERR_NOT_FOUND:
        return "there is no such job of this client";
    case ERR_FENCED:
        return "the lease is somebody else's, or the job has come to another end";
    case ERR_EXPIRED:
        return "the lease is over";
    case ERR_CONFLICT:
        return "the job was canceled";
    default:
        return catalogue_sentence(e);
    }
}

static void refuse(struct response *r, enum error e)
{
    response_error(r, code_of(e), "%s", what_of(e));
}

static enum error submit(const struct request *q, const struct command_class *class, const void *command,
                         void *ret, size_t room, size_t *ret_size)
{
    return commit_submit(q, class, command, ret, room, ret_size, commit_deadline(q));
}

/* ---- what the body says; its schema has seen that it may be meant ---- */

static uint64_t number_or(const struct request *q, const char *name, uint64_t otherwise)
{
    const struct json_node *node = request_member(q, name);
    uint64_t value = otherwise;
    return node && json_uint64_of(q->json, node, &value) ? value : otherwise;
}

/* `otherwise` when it is absent; without its escapes it is never longer than `size`, by the schema's limit in characters, of up to four
 * bytes each. What is for people is cut to what a row holds: nobody's work should fail because of it. */
static struct span text_or(const struct request *q, const char *name, const char *otherwise, char *room,
                           size_t size)
{
    const struct json_node *node = request_member(q, name);
    struct span text;
    if (node && node->kind == JSON_STRING && json_string_of(q->json, node, room, size, &text))
        return text;
    return span_text(otherwise);
}

static bool take_lease(const struct request *q, struct response *r, struct uuid *ret_id, uint64_t *ret_fence)
{
    char id_room[64], token_room[TOKEN_SIZE + 8], token[TOKEN_SIZE + 1];
    struct span id = text_or(q, "job_id", "", id_room, sizeof(id_room));
    struct span text = text_or(q, "lease_token", "", token_room, sizeof(token_room));
    char *end = token;
    if (!uuid_parse(id.bytes, id.size, ret_id)) {
        response_error_field(r, ERROR_RFA_REQUEST_MALFORMED, "job_id", "must be a UUID");
        return false;
    }
    if (text.size > 0 && text.size <= TOKEN_SIZE) {
        memcpy(token, text.bytes, text.size);
        token[text.size] = 0;
        *ret_fence = strtoull(token, &end, 16);
    }
    if (end == token || *end) {
        response_error_field(r, ERROR_RFA_REQUEST_MALFORMED, "lease_token", "must be one that a claim gave");
        return false;
    }
    return true;
}

static void write_time(struct json *json, const char *name, uint64_t us)
{
    char text[TIME_TEXT_SIZE];
    job_time_format(us, text);
    JSON_MEMBER(json, name, string, us ? text : NULL);
}

static void write_id(struct json *json, const char *name, const struct uuid *id)
{
    char text[UUID_TEXT_SIZE];
    uuid_format(id, text);
    JSON_MEMBER(json, name, string, text);
}

/* ---- claim ---- */

struct wish {
    struct uuid works[JOB_CLAIM_KINDS_MAX];
    uint32_t works_count;
    uint16_t most;
    uint64_t lease_us, until, wait_ns; /* until: the deadline */
    char worker_room[NAME_ROOM];
    struct span worker;
    enum error_code refusal;
};

static bool wrong_kinds(struct response *r, const char *what)
{
    response_error_field(r, ERROR_RFA_JOB_VALIDATION_FAILED, "kinds", what);
    return false;
}

static bool take_kinds(const struct request *q, struct response *r, struct wish *w)
{
    const struct json_node *kinds = request_member(q, "kinds");
    char room[NAME_ROOM], what[64];
    struct span name;
    w->works_count = 0;
    if (!kinds)
        return true;
    for (const struct json_node *each = json_first(q->json, kinds); each;
         each = json_after(q->json, kinds, each)) {
        if (w->works_count == JOB_CLAIM_KINDS_MAX) {
            snprintf(what, sizeof(what), "has more than %u names", JOB_CLAIM_KINDS_MAX);
            return wrong_kinds(r, what);
        }
        if (!json_string_of(q->json, each, room, sizeof(room), &name) || !work_kind_user(name))
            return wrong_kinds(r, "must be names of kinds that begin with x., such as x.mail: the others are "
                                  "the server's to run");
        w->works[w->works_count++] = job_work_id(store_here(), WORK_KIND_USER, name);
    }
    return true;
}

static bool take_wish(const struct request *q, struct response *r, struct wish *w)
{
    w->refusal = ERROR_NONE;
    w->most = (uint16_t)number_or(q, "max", 1);
    w->lease_us = number_or(q, "lease_ms", jobs_settings().lease_us / 1000) * 1000;
    w->wait_ns = number_or(q, "wait_ms", 0) * NS_PER_MS;
    w->until = actor_now() + w->wait_ns;
    w->worker =
        audits_cut(text_or(q, "worker", "outside", w->worker_room, sizeof(w->worker_room)), JOB_WORKER_MAX);
    return take_kinds(q, r, w);
}

/* The time that the client wants to wait isn't taken from what its request may take: with nothing there it would be told that it
 * was too late, instead of nothing. */
static enum error claim(const struct request *q, const struct wish *w, struct job_claimed *claimed,
                        size_t *ret_count)
{
    struct jobs_settings settings = jobs_settings();
    struct job_claim c = {.lane = LANE_OUTSIDE,
                          .client = q->identity.client,
                          .works = span_of(w->works, w->works_count * sizeof(*w->works)),
                          .most = w->most < WORK_CLAIM_MOST ? w->most : WORK_CLAIM_MOST,
                          .running = 1,
                          .running_max = settings.active_queues ? settings.active_max : 0,
                          .client_max = settings.client_running_max,
                          .steady_us = store_steady_us(store_here()),
                          .lease_us = w->lease_us,
                          .worker = w->worker};
    size_t size = 0;
    enum error e;
    do /* no job: some were set aside, and there may be one behind them */
        e = commit_submit(q, &job_claim_class, &c, claimed, WORK_CLAIM_MOST * sizeof(*claimed), &size,
                          commit_deadline(q) + w->wait_ns);
    while (!e && size == 0);
    *ret_count = size / sizeof(*claimed);
    return e;
}

static bool is_wake(const struct message *m, void *arg)
{
    (void)arg;
    return m->type == STORE_WAKE;
}

/* In the groups of what it waits for: each job wakes one of those who do, and what concerns all of them wakes everybody. */
static bool listen(const struct request *q, const struct wish *w, bool on)
{
    char group[STORE_GROUP_SIZE];
    const struct uuid *client = &q->identity.client;
    uint32_t topic = job_topic_client(client), parts = w->works_count > 0 ? w->works_count : 1;
    bool good = true;
    for (uint32_t i = 0; i < parts; i++) {
        store_part_group(topic, job_topic_part(client, w->works_count > 0 ? &w->works[i] : NULL), group);
        good &= (on ? actor_join(group) : actor_leave(group)) == OK;
    }
    store_group(topic, group);
    return (on ? actor_join(group) : actor_leave(group)) == OK && good;
}

/* Whoever listens no more has what he was woken for meanwhile passed on. */
static void listen_no_more(const struct request *q, const struct wish *w)
{
    struct message *m;
    (void)listen(q, w, false);
    while ((m = actor_receive_now(is_wake, NULL)) != NULL) { /* ends: none is sent to him from here on */
        store_pass_on(m);
        message_free(m);
    }
}

/* Until one is queued, or the time is over. Who listens looks once more: it may have come before. And now and then in any case: a
 * wake-up is lost with a connection that dies of it. *ret_wake: the last one that was heard, if any. w->refusal: his key has been ended
 * meanwhile, and he gets nothing more. */
static enum error claim_listening(const struct request *q, struct response *r, struct wish *w,
                                  struct job_claimed *claimed, size_t *ret_count, struct message **ret_wake)
{
    enum error e, waited = OK;
    *ret_wake = NULL;
    for (;;) {
        w->refusal = api_key_still(&q->identity);
        if (w->refusal != ERROR_NONE)
            return ERR_FORBIDDEN;
        e = claim(q, w, claimed, ret_count);
        if (e != ERR_NOT_FOUND || waited == ERR_DOWN || actor_now() >= w->until)
            return e;
        uint64_t look = actor_now() + WORK_LOOK_MS * NS_PER_MS;
        if (*ret_wake)
            message_free(*ret_wake); /* somebody else was quicker */
        *ret_wake = NULL;
        waited = response_wait(r, is_wake, NULL, ret_wake, look < w->until ? look : w->until);
        if (waited == ERR_DOWN)
            return e; /* nobody is there to take it */
    }
}

static enum error claim_in_time(const struct request *q, struct response *r, struct wish *w,
                                struct job_claimed *claimed, size_t *ret_count)
{
    struct message *wake = NULL;
    enum error e = claim(q, w, claimed, ret_count);
    if (e != ERR_NOT_FOUND || actor_now() >= w->until)
        return e;
    if (listen(q, w, true))
        e = claim_listening(q, r, w, claimed, ret_count, &wake);
    listen_no_more(q, w);
    if (e && wake)
        store_pass_on(wake); /* what he was woken for is still there, or he isn't */
    if (wake)
        message_free(wake);
    return e;
}

static void tell(const struct job_claimed *c)
{
    struct job_told told = {.id = c->id,
                            .client = c->client,
                            .event = JOB_ASSIGN,
                            .from = JOB_QUEUED,
                            .to = JOB_ASSIGNED,
                            .kind = c->kind,
                            .attempt = c->attempt,
                            .waited_us = c->claimed_us > c->queued_us ? c->claimed_us - c->queued_us : 0};
    jobs_tell(&told);
    told.event = JOB_START;
    told.from = JOB_ASSIGNED;
    told.to = JOB_RUNNING;
    told.waited_us = 0;
    jobs_tell(&told);
}

/* What isn't there any more can't be given to anybody: nothing is written then. */
static enum error write_claimed(struct json *json, struct txn *txn, const struct job_claimed *c)
{
    char token[TOKEN_SIZE];
    struct job_definition d;
    struct job job = {.created_us = 0};
    enum error e = job_read_definition(txn, &c->id, &d);
    if (e)
        return e;
    (void)job_read(txn, &c->id, &job);
    snprintf(token, sizeof(token), "%" PRIx64, c->fence);
    json_object_begin(json);
    write_id(json, "job_id", &c->id);
    JSON_MEMBER(json, "lease_token", string, token);
    write_time(json, "lease_expires_at", store_wall_of(store_here(), c->lease_us));
    JSON_MEMBER(json, "attempt", uint, c->attempt);
    json_key(json, "work_kind");
    json_string_n(json, d.kind_name.bytes, d.kind_name.size);
    write_time(json, "created_at", job.created_us);
    json_key(json, "traceparent");
    if (d.trace.size > 0)
        json_string_n(json, d.trace.bytes, d.trace.size);
    else
        json_null(json);
    json_key(json, "payload");
    if (d.payload.size > 0)
        json_raw(json, d.payload.bytes, d.payload.size);
    else
        json_null(json);
    json_object_end(json);
    return OK;
}

/* As long as a claim may take: of a scheduler's views each is open for microseconds. NULL: none came free. */
static struct view *view_in_time(const struct request *q, const struct wish *w)
{
    struct view *view;
    while ((view = view_open(store_here())) == NULL && actor_now() < commit_deadline(q) + w->wait_ns)
        (void)actor_sleep(actor_deadline_ms(1));
    return view;
}

/* One view a job: a payload may be long, and a client that takes it slowly must not hold a view. ERR_UNAVAILABLE: it can't be told
 * now, and comes back when its lease is over; any other error: it has no definition. */
static enum error write_one(const struct request *q, const struct wish *w, struct json *json,
                            const struct job_claimed *c)
{
    char *text = actor_alloc(JOB_PAYLOAD_MAX + 1024);
    struct json_sink sink;
    struct json one;
    json_sink_init(&sink, text, JOB_PAYLOAD_MAX + 1024, NULL, NULL);
    json_init(&one, &sink);
    struct view *view = view_in_time(q, w);
    if (!view)
        return ERR_UNAVAILABLE;
    enum error e = write_claimed(&one, &view->txn, c);
    view_close(view);
    if (e)
        return e;
    if (sink.status != JSON_OK)
        return ERR_UNAVAILABLE;
    json_raw(json, text, sink.length);
    return OK;
}

static void tell_finished(const struct job_finish *c, const struct job_finished *done)
{
    const struct job_told told = {
        .id = c->id,
        .client = done->client,
        .event = c->event,
        .from = JOB_RUNNING,
        .to = done->state,
        .kind = done->kind,
        .failure = c->failure,
        .attempt = done->attempt,
        .ran_us = done->finished_us > done->started_us ? done->finished_us - done->started_us : 0};
    jobs_tell(&told);
    if (done->retried)
        jobs_tell_retried(&told);
}

/* Half of a job isn't for anybody: it was claimed, and fails (AMB-J-12); as one does whose definition isn't there (JOB-317). What doesn't
 * succeed now the end of its lease does. There is as much time for it as for the claim, which may have waited for longer than other requests
 * take. */
static void fail_claimed(const struct request *q, const struct wish *w, const struct job_claimed *claimed,
                         enum job_failure failure)
{
    const struct jobs_settings settings = jobs_settings();
    const struct job_finish c = {.id = claimed->id,
                                 .client = claimed->client,
                                 .fence = claimed->fence,
                                 .event = JOB_FAIL,
                                 .failure = (uint8_t)failure,
                                 .retryable = job_failure_retryable((uint8_t)failure),
                                 .steady_us = store_steady_us(store_here()),
                                 .kept_us = settings.kept_us,
                                 .retry_max = settings.retry_max};
    struct job_finished done;
    size_t size = 0;
    enum error e =
        commit_submit(q, &job_finish_class, &c, &done, sizeof(done), &size, commit_deadline(q) + w->wait_ns);
    if (!e && size == sizeof(done))
        tell_finished(&c, &done);
}

static void give(const struct request *q, const struct wish *w, struct json *json,
                 const struct job_claimed *claimed)
{
    tell(claimed);
    enum error e = claimed->incomplete ? OK : write_one(q, w, json, claimed);
    if (claimed->incomplete)
        fail_claimed(q, w, claimed, JOB_RECOVERY_INCOMPLETE);
    else if (e && e != ERR_UNAVAILABLE)
        fail_claimed(q, w, claimed, JOB_DEFINITION_MISSING);
}

static void serve_claim(const struct request *q, struct response *r)
{
    struct wish *w = actor_alloc(sizeof(*w));
    struct job_claimed *claimed = actor_alloc(WORK_CLAIM_MOST * sizeof(*claimed));
    size_t count = 0;
    struct json json;
    if (!take_wish(q, r, w))
        return;
    enum error e = claim_in_time(q, r, w, claimed, &count);
    if (w->refusal != ERROR_NONE) {
        bool ended = catalogue_row(w->refusal)->status < 500;
        response_error(r, w->refusal,
                       ended ? "the key was ended while its claim waited"
                             : "whether the key is still good can't be seen now");
        return;
    }
    if (e && e != ERR_NOT_FOUND) {
        refuse(r, e);
        return;
    }
    response_begin(r, 200, RESPONSE_JSON);
    json_init(&json, &r->sink);
    json_object_begin(&json);
    json_key(&json, "jobs");
    json_array_begin(&json);
    for (size_t i = 0; !e && i < count; i++) {
        struct arena_mark mark = actor_arena_mark();
        give(q, w, &json, &claimed[i]);
        actor_arena_reset(mark);
    }
    json_array_end(&json);
    json_object_end(&json);
}

/* ---- heartbeat ---- */

static void write_beat(struct response *r, uint64_t until_us, bool cancelled)
{
    struct json json;
    response_begin(r, 200, RESPONSE_JSON);
    json_init(&json, &r->sink);
    json_object_begin(&json);
    write_time(&json, "lease_expires_at", store_wall_of(store_here(), until_us));
    JSON_MEMBER(&json, "cancel_requested", bool, cancelled);
    json_object_end(&json);
}

static void serve_heartbeat(const struct request *q, struct response *r)
{
    char stage[4 * JOB_STAGE_MAX];
    const struct json_node *progress = request_member(q, "progress");
    struct job_heartbeat c = {.client = q->identity.client,
                              .steady_us = store_steady_us(store_here()),
                              .lease_us = number_or(q, "lease_ms", jobs_settings().lease_us / 1000) * 1000,
                              .progress = UINT16_MAX,
                              .grace_us = jobs_grace_us(),
                              .first_fence = store_here()->first_fence,
                              .stage =
                                  audits_cut(text_or(q, "stage", "", stage, sizeof(stage)), JOB_STAGE_MAX)};
    uint64_t until_us = 0;
    size_t size = 0;
    if (!take_lease(q, r, &c.id, &c.fence))
        return;
    if (progress)
        c.progress = (uint16_t)(json_double_of(q->json, progress) * 1000.0);
    enum error e = submit(q, &job_heartbeat_class, &c, &until_us, sizeof(until_us), &size);
    if (e == ERR_CONFLICT) {
        write_beat(r, 0, true);
        return;
    }
    if (e) {
        refuse(r, e);
        return;
    }
    job_figures_add(JOB_FIGURE_HEARTBEAT);
    TELEMETRY(WORKER_HEARTBEAT, 1, DIM(CLASS, "outside"));
    write_beat(r, until_us, false);
}

/* ---- complete, fail ---- */

static void finish(const struct request *q, struct response *r, struct job_finish *c)
{
    struct jobs_settings settings = jobs_settings();
    struct job_finished done;
    struct json json;
    size_t size = 0;
    c->client = q->identity.client;
    c->steady_us = store_steady_us(store_here());
    c->kept_us = settings.kept_us;
    c->retry_max = settings.retry_max;
    c->queue_max = settings.queue_max;
    c->grace_us = jobs_grace_us();
    c->first_fence = store_here()->first_fence;
    if (!take_lease(q, r, &c->id, &c->fence))
        return;
    enum error e = submit(q, &job_finish_class, c, &done, sizeof(done), &size);
    if (e || size != sizeof(done)) {
        refuse(r, e ? e : ERR_UNANSWERED);
        return;
    }
    if (done.made)
        tell_finished(c, &done);
    else
        response_header(r, "Idempotent-Replayed", "true");
    response_begin(r, 200, RESPONSE_JSON);
    json_init(&json, &r->sink);
    json_object_begin(&json);
    write_id(&json, "job_id", &c->id);
    JSON_MEMBER(&json, "state", string, job_state_name(done.state));
    JSON_MEMBER(&json, "attempt", uint, done.attempt);
    JSON_MEMBER(&json, "will_retry", bool, done.retried);
    json_object_end(&json);
}

static void serve_complete(const struct request *q, struct response *r)
{
    const struct json_node *result = request_member(q, "result");
    struct job_finish c = {.event = JOB_SUCCEED, .outputs = result ? 1 : 0};
    if (result)
        c.result = json_raw_of(q->json, result);
    c.outputs_bytes = c.result.size;
    if (c.result.size > JOB_RESULT_MAX) {
        response_error(r, ERROR_RFA_REQUEST_PAYLOAD_TOO_LARGE, "result has more than %u bytes",
                       JOB_RESULT_MAX);
        return;
    }
    finish(q, r, &c);
}

static void serve_fail(const struct request *q, struct response *r)
{
    struct jobs_settings settings = jobs_settings();
    const struct json_node *retryable = request_member(q, "retryable"),
                           *after = request_member(q, "retry_after_ms");
    char room[4 * JOB_MESSAGE_MAX];
    struct job_finish c = {.event = JOB_FAIL,
                           .failure = JOB_WORKER_FAILURE,
                           .retryable = retryable && retryable->kind == JSON_TRUE,
                           .message =
                               audits_cut(text_or(q, "message", "", room, sizeof(room)), JOB_MESSAGE_MAX)};
    c.auto_retry = c.retryable && (after || settings.retry_auto);
    if (after) {
        c.backoff_us = number_or(q, "retry_after_ms", 0) * 1000;
    } else { /* which attempt it is, the command knows */
        c.base_us = settings.backoff_base_us;
        c.most_us = settings.backoff_most_us;
        c.chance = (uint32_t)actor_random();
    }
    finish(q, r, &c);
}

/* ---- routes ---- */

#define WORK_ROUTE(verb, handler)                                                                   \
    {                                                                                               \
        .method = METHOD_POST, .path = "/v1/work:" verb, .surface = SURFACE_JOBS, .auth = AUTH_KEY, \
        .limit = LIMIT_WORK, .body_max = WORK_BODY_MAX, .body_optional = false, .changes = true,    \
        .serve = (handler)                                                                          \
    }

const struct route work_routes[] = {
    WORK_ROUTE("claim", serve_claim),
    WORK_ROUTE("heartbeat", serve_heartbeat),
    WORK_ROUTE("complete", serve_complete),
    WORK_ROUTE("fail", serve_fail),
};
const size_t work_routes_count = sizeof(work_routes) / sizeof(*work_routes);
