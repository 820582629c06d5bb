#include "store/job.h"

#include <stdio.h>

#include "runtime/telemetry.h"
#include "store/check.h"
#include "store/checksum.h"
#include "store/counter.h"
#include "store/job_queue.h"
#include "store/ledger.h"
#include "store/named_id.h"
#include "store/outbox.h"
#include "store/retention.h"
#include "store/store.h"
#include "store/work_kind.h"

#define job_FIELD(name, TYPE, limit, since) RECORD_FIELD(job, name, TYPE, limit, since)
RECORD_CLASS(job, JOB_FIELDS, 1);
#define job_definition_FIELD(name, TYPE, limit, since) RECORD_FIELD(job_definition, name, TYPE, limit, since)
RECORD_CLASS(job_definition, JOB_DEFINITION_FIELDS, 1);
#define report_FIELD(name, TYPE, limit, since) RECORD_FIELD(report, name, TYPE, limit, since)
RECORD_CLASS(report, REPORT_FIELDS, 2);
#define client_job_FIELD(name, TYPE, limit, since) RECORD_FIELD(client_job, name, TYPE, limit, since)
RECORD_CLASS(client_job, CLIENT_JOB_FIELDS, 1);

#define MS_US                  UINT64_C(1000)
#define EVENTS_REMOVED_AT_ONCE 256u

static const struct span no_label = {NULL, 0};

/* ---- the lifecycle ---- */

/* FAILED isn't terminal: a retry leaves it (AMB-J-10). */
static const struct lifecycle_state states[] = {
#define X(id, name, final) [id] = {name, (final) && (id) != JOB_FAILED ? LIFECYCLE_TERMINAL : 0},
    JOB_STATES(X)
#undef X
};
static const char *const verbs[] = {
#define X(id, verb, name) [id] = (verb),
    JOB_EVENTS(X)
#undef X
};
static const struct lifecycle_edge edges[] = {
    {JOB_CREATED, JOB_ENQUEUE, JOB_QUEUED},    {JOB_CREATED, JOB_CANCEL, JOB_CANCELED},
    {JOB_QUEUED, JOB_ASSIGN, JOB_ASSIGNED},    {JOB_QUEUED, JOB_CANCEL, JOB_CANCELED},
    {JOB_ASSIGNED, JOB_START, JOB_RUNNING},    {JOB_ASSIGNED, JOB_CANCEL, JOB_CANCELED},
    {JOB_RUNNING, JOB_SUCCEED, JOB_SUCCEEDED}, {JOB_RUNNING, JOB_FAIL, JOB_FAILED},
    {JOB_RUNNING, JOB_TIME_OUT, JOB_FAILED},   {JOB_RUNNING, JOB_CANCEL, JOB_CANCELED},
    {JOB_FAILED, JOB_RETRY, JOB_QUEUED},
};
const struct lifecycle job_lifecycle = {
    .name = "job",
    .states = states,
    .events = verbs,
    .edges = edges,
    .states_count = JOB_STATE_COUNT,
    .events_count = JOB_EVENT_COUNT,
    .edges_count = sizeof(edges) / sizeof(*edges),
};

/* ---- names ---- */

const char *job_state_name(uint8_t state)
{
    return lifecycle_state_name(&job_lifecycle, state);
}

bool job_state_final(uint8_t state)
{
    static const bool final[] = {
#define X(id, name, is_final) [id] = is_final,
        JOB_STATES(X)
#undef X
    };
    return state < JOB_STATE_COUNT && final[state];
}

uint8_t job_state_after(uint8_t event)
{
    for (size_t i = 0; i < sizeof(edges) / sizeof(*edges); i++)
        if (edges[i].event == event)
            return edges[i].to;
    return event == JOB_REQUEUE ? JOB_QUEUED : JOB_CREATED;
}

const char *job_outcome_name(uint8_t state)
{
    switch (state) {
    case JOB_SUCCEEDED:
        return "SUCCESS";
    case JOB_FAILED:
        return "FAILED";
    case JOB_CANCELED:
        return "CANCELED";
    default:
        return NULL;
    }
}

const char *job_event_name(uint8_t event)
{
    static const char *const names[] = {
#define X(id, verb, name) [id] = (name),
        JOB_EVENTS(X)
#undef X
    };
    return event < JOB_EVENT_COUNT ? names[event] : NULL;
}

const char *job_type_name(uint8_t type)
{
    static const char *const names[] = {
#define X(id, name) [id] = (name),
        JOB_TYPES(X)
#undef X
    };
    return type < JOB_TYPE_COUNT ? names[type] : NULL;
}

struct failure {
    const char *reason, *code;
    bool retryable;
};
static const struct failure *failure_of(uint8_t failure)
{
    static const struct failure failures[] = {
#define X(id, name, code, retryable) [id] = {name, code, retryable},
        JOB_FAILURES(X)
#undef X
    };
    return &failures[failure < JOB_FAILURE_COUNT ? failure : JOB_NO_FAILURE];
}

const char *job_failure_reason(uint8_t failure)
{
    return failure_of(failure)->reason;
}

const char *job_failure_code(uint8_t failure)
{
    return failure_of(failure)->code;
}

bool job_failure_retryable(uint8_t failure)
{
    return failure_of(failure)->retryable;
}

struct span job_kind_name(uint8_t kind, struct span user_name)
{
    const struct work_kind_row *row = work_kind_row(kind);
    return row ? span_text(row->name) : user_name;
}

struct uuid job_work_id(const struct store *store, uint8_t kind, struct span user_name)
{
    struct uuid id = {{0}};
    if (kind == WORK_KIND_USER)
        return named_id(store, "job.work", &user_name, 1);
    id.bytes[0] = 1; /* the catalogue's have ids that no named one has: their version isn't 8 */
    id.bytes[15] = kind;
    return id;
}

uint64_t job_topic_part(const struct uuid *client, const struct uuid *work)
{
    uint64_t part = checksum(1, client, sizeof(*client));
    part = work ? checksum(part, work, sizeof(*work)) : part;
    return part | 1; /* none is 0 */
}

uint32_t job_topic_client(const struct uuid *client)
{
    return STORE_TOPIC(TOPIC_JOBS, 128u + client->bytes[15] % JOB_TOPIC_CLIENTS);
}

/* ---- keys and reading ---- */

struct key report_key(const struct uuid *id, uint16_t attempt)
{
    struct key key = key_of_uuid(id);
    key_add_u16(&key, attempt);
    return key;
}

struct key client_job_key(const struct uuid *client, uint64_t seq)
{
    struct key key = key_of_uuid(client);
    key_add_u64(&key, seq);
    return key;
}

enum error job_read(struct txn *txn, const struct uuid *id, struct job *ret_job)
{
    struct key key = key_of_uuid(id);
    return txn_read(txn, TABLE_JOBS, key_span(&key), ret_job);
}

/* Damaged or not. */
static bool there(struct txn *txn, uint32_t table, const struct key *key)
{
    struct span bytes;
    uint8_t version;
    return txn_get(txn, table, key_span(key), &version, &bytes) != ERR_NOT_FOUND;
}

bool job_lacks_event(struct txn *txn, const struct job *job)
{
    struct key newest = event_key(&job->id, job->events);
    if (job_state_final(job->state))
        return false;
    for (uint32_t i = 1; i <= job->events && i <= JOB_EVENTS_LOOKED; i++) {
        struct key key = event_key(&job->id, i);
        if (!there(txn, TABLE_EVENTS, &key))
            return true;
    }
    return !there(txn, TABLE_EVENTS, &newest);
}

static struct span copied(struct span text, char *room)
{
    if (text.size > 0)
        memcpy(room, text.bytes, text.size);
    return span_of(room, text.size);
}

/* Whether what the row says of itself can be true. */
static bool sound(const struct job *job)
{
    enum due_queue queue;
    bool waits = job->state == JOB_QUEUED && job->due_us == 0;
    bool timed = job_due_queue(job->state, &queue) && job->lane == LANE_NONE;
    return job->state < JOB_STATE_COUNT && job->type < JOB_TYPE_COUNT && job->lane < LANE_COUNT &&
           job->priority <= JOB_PRIORITY_MAX && job->events > 0 && (job->lane != LANE_NONE) == waits &&
           (job->due_us != 0) == timed && (job->retire_us != 0) == job_state_final(job->state);
}

enum error job_open(struct txn *txn, const struct uuid *id, struct job *ret_job, struct job_texts *ret_texts)
{
    struct job job;
    enum error e = job_read(txn, id, &job);
    if (!e && !sound(&job))
        e = ERR_DAMAGED;
    if (e)
        return e;
    job.worker = copied(job.worker, ret_texts->worker);
    job.stage = copied(job.stage, ret_texts->stage);
    *ret_job = job;
    return OK;
}

enum error job_read_definition(struct txn *txn, const struct uuid *id, struct job_definition *ret_definition)
{
    struct key key = key_of_uuid(id);
    return txn_read(txn, TABLE_JOB_DEFINITIONS, key_span(&key), ret_definition);
}

enum error job_read_report(struct txn *txn, const struct job *job, struct report *ret_report)
{
    if (!job_state_final(job->state))
        return ERR_NOT_FOUND;
    struct key key = report_key(&job->id, job->attempt);
    return txn_read(txn, TABLE_REPORTS, key_span(&key), ret_report);
}

/* ---- events as clients see them ---- */

struct uuid job_event_id(const struct store *store, const struct uuid *job, uint64_t seq)
{
    struct span parts[] = {span_of(job->bytes, sizeof(job->bytes)), span_of(&seq, sizeof(seq))};
    return named_id(store, "job.event", parts, 2);
}

static void write_id(struct json *json, const char *name, const struct uuid *id)
{
    char text[UUID_TEXT_SIZE];
    uuid_format(id, text);
    JSON_MEMBER(json, name, string, text);
}

static void write_state(struct json *json, const char *name, uint8_t state)
{
    JSON_MEMBER(json, name, string, state == EVENT_NO_STATE ? NULL : job_state_name(state));
}

/* {"scenario": ..., and what the event has beyond that} */
static void write_payload(struct json *json, struct span kind_name, struct span data)
{
    char text[1024];
    struct json_sink sink;
    struct json payload;
    if (data.size > sizeof(text) - 256) /* ours are far smaller: it isn't one of a job */
        data.size = 0;
    json_sink_init(&sink, text, sizeof(text), NULL, NULL);
    json_init(&payload, &sink);
    json_object_begin(&payload);
    json_key(&payload, "scenario");
    json_string_n(&payload, kind_name.bytes, kind_name.size);
    if (data.size > 0) {
        json_sink_bytes(&sink, ",", 1);
        json_sink_bytes(&sink, data.bytes, data.size);
    }
    json_object_end(&payload);
    ASSERT(sink.status == JSON_OK);
    json_raw(json, text, sink.length);
}

static void write_event(struct json *json, const struct store *store, const struct job *job,
                        struct span kind_name, uint64_t seq, uint8_t name, const struct event *event)
{
    char at[TIME_TEXT_SIZE];
    struct uuid id = job_event_id(store, &job->id, name == JOB_EMIT ? seq | UINT64_C(1) << 63 : seq);
    job_time_format(event->at_us, at);
    write_id(json, "event_id", &id);
    write_id(json, "job_id", &job->id);
    JSON_MEMBER(json, "event_name", string, job_event_name(name));
    write_state(json, "prev_state", name == JOB_EMIT ? event->to_state : event->from_state);
    write_state(json, "next_state", event->to_state);
    JSON_MEMBER(json, "timestamp", string, at);
    json_key(json, "payload");
    write_payload(json, kind_name, event->data);
}

void job_event_write_json(struct json *json, const struct store *store, const struct job *job,
                          struct span kind_name, uint64_t seq, const struct event *event)
{
    write_event(json, store, job, kind_name, seq, (uint8_t)event->name, event);
}

void job_emitted_write_json(struct json *json, const struct store *store, const struct job *job,
                            struct span kind_name, uint64_t seq, const struct event *event)
{
    write_event(json, store, job, kind_name, seq, JOB_EMIT, event);
}

void job_time_format(uint64_t us, char text[TIME_TEXT_SIZE])
{
    time_format(us, text);
    memcpy(text + 23, "Z",
           2); /* 2026-11-18T13:04:51.123456Z: milliseconds are what events are told apart by */
}

/* ---- timers ---- */

bool job_due_queue(uint8_t state, enum due_queue *ret_queue)
{
    switch (state) {
    case JOB_CREATED:
        *ret_queue = DUE_JOB_TIME;
        return true;
    case JOB_QUEUED:
        *ret_queue = DUE_JOB_BACKOFF;
        return true;
    case JOB_ASSIGNED:
    case JOB_RUNNING:
        *ret_queue = DUE_JOB_LEASE;
        return true;
    default:
        return false;
    }
}

void job_due_set(struct txn *txn, struct job *job, uint64_t due_us)
{
    enum due_queue queue = DUE_RETENTION;
    bool timed = job_due_queue(job->state, &queue);
    uint16_t shard = job_shard((uint8_t)queue, &job->id);
    ASSERT(timed && job->due_us == 0 && due_us > 0);
    job->due_us = due_us;
    due_set(txn, &(struct due_entry){.queue = (uint8_t)queue,
                                     .shard = shard,
                                     .due_us = due_us,
                                     .id = job->id,
                                     .row = {.kind = job->state, .value = job->owner}});
    if (queue != DUE_JOB_LEASE) /* those lie a whole lease ahead: the shard comes by before */
        txn_wake(txn, JOB_TOPIC_SHARD(shard));
}

/* A row that isn't there is no reason to keep the job: whatever became of it, it needn't be removed. */
void job_due_clear(struct txn *txn, struct job *job)
{
    enum due_queue queue = DUE_RETENTION;
    if (!job->due_us)
        return;
    bool timed = job_due_queue(job->state, &queue);
    ASSERT(timed); /* job_open has seen to it */
    (void)due_try_clear(txn, (uint8_t)queue, job_shard((uint8_t)queue, &job->id), job->due_us, &job->id);
    job->due_us = 0;
}

/* ---- changing ---- */

static void count_state(struct txn *txn, uint8_t state, int64_t delta)
{
    counter_add(txn, COUNTER_JOBS, span_of(&state, sizeof(state)), delta);
}

/* Whom events are told: the callback, and the client's webhooks. */
static enum error listeners(struct txn *txn, const struct job *job, bool *ret_any)
{
    int64_t hooks = 0;
    enum error e = OK;
    if (!job->told)
        e = counter_read(txn, COUNTER_WEBHOOKS, span_of(job->client.bytes, sizeof(job->client.bytes)),
                         &hooks);
    *ret_any = job->told || hooks > 0;
    return e;
}

enum error job_tellable(struct txn *txn, const struct job *job)
{
    enum outbox_level level = OUTBOX_OPEN;
    bool any = false;
    enum error e = listeners(txn, job, &any);
    if (!e && any)
        e = outbox_level(txn, outbox_partition(txn, &job->id), &level);
    return e ? e : level == OUTBOX_FULL ? ERR_LIMIT : OK;
}

static void failed(struct txn *txn, enum error e)
{
    if (!txn->error)
        txn->error = e;
}

static void tell(struct txn *txn, struct job *job, uint16_t topic, uint64_t at_us)
{
    bool any = false;
    failed(txn, listeners(txn, job, &any));
    if (!any || txn->error)
        return;
    outbox_put(txn, at_us, topic, &job->id, job->events, &job->outbox_last);
    if (!job->outbox_first)
        job->outbox_first = job->outbox_last;
}

/* Whole milliseconds, and later than the one before: (job, timestamp, name) is an event's identity (AMB-J-41). */
static uint64_t event_time(const struct job *job, uint64_t at_us)
{
    uint64_t ms = at_us < JOB_TIME_MAX ? at_us - at_us % MS_US : JOB_TIME_MAX;
    return job->events > 0 && ms <= job->updated_us ? job->updated_us + MS_US : ms;
}

static bool leased(uint8_t state)
{
    return state == JOB_ASSIGNED || state == JOB_RUNNING;
}

/* Which one it had, if it has none any more in this state. A promised one that is claimed is counted by the claim. */
static enum job_slot leave_slot(struct txn *txn, struct job *job, uint8_t to)
{
    enum job_slot slot = job->slot;
    if (slot == JOB_NO_SLOT || leased(to))
        return JOB_NO_SLOT;
    if (slot == JOB_SLOT_COUNTED)
        counter_add(txn, COUNTER_JOBS_COUNTED, span_of(&job->client, sizeof(job->client)), -1);
    job->slot = JOB_NO_SLOT;
    return slot;
}

/* Nothing has been written when it fails. */
static enum error append(struct txn *txn, struct job *job, uint8_t name, uint8_t from, uint8_t to,
                         uint64_t at_us, struct span data)
{
    struct event event = {.at_us = event_time(job, at_us),
                          .domain = JOB_DOMAIN,
                          .name = name,
                          .from_state = from,
                          .to_state = to,
                          .data = data};
    enum error e = event_add(txn, &job->id, (uint64_t)job->events + 1, &event);
    if (e)
        return e;
    job->events++;
    job->updated_us = event.at_us;
    job_queue_take(txn, job);
    if (!leased(from) || !leased(to))
        job_due_clear(txn, job);
    enum job_slot slot = leave_slot(txn, job, to);
    if (from != EVENT_NO_STATE)
        count_state(txn, from, -1);
    count_state(txn, to, 1);
    job->state = to;
    job->pass = 0;
    if (slot != JOB_NO_SLOT)
        job_queue_admit(txn, &job->client);
    tell(txn, job, OUTBOX_JOB, at_us);
    if (name == JOB_SUCCEED && job->type == JOB_EMIT_EVENT)
        tell(txn, job, OUTBOX_JOB_EMITTED, at_us);
    return OK;
}

/* A change that its table doesn't have is a defect of whoever asked for it: somebody must hear of it (JOB-324). */
static void tell_refused(const struct job *job, enum job_event event)
{
    char id[UUID_TEXT_SIZE];
    uuid_format(&job->id, id);
    TELEMETRY(JOB_REFUSED, 1, DIM(EVENT, job_event_name((uint8_t)event)), DIM(JOB_ID, id),
              DIM(CURRENT_STATE, job_state_name(job->state)),
              DIM(NEXT_STATE, job_state_name(job_state_after((uint8_t)event))));
}

enum error job_move(struct txn *txn, struct job *job, enum job_event event, uint64_t at_us, struct span data)
{
    uint8_t from = job->state, to;
    enum error e = lifecycle_next(&job_lifecycle, from, (uint8_t)event, &to);
    if (e)
        tell_refused(job, event);
    return e ? e : append(txn, job, (uint8_t)event, from, to, at_us, data);
}

enum error job_move_on(struct txn *txn, struct job *job, enum job_event event, uint64_t at_us,
                       struct span data)
{
    enum error e = job_move(txn, job, event, at_us, data);
    failed(txn, e); /* half of a change must not be kept */
    return e;
}

enum error job_begin(struct txn *txn, struct job *job, uint64_t at_us)
{
    ASSERT(job->events == 0);
    return append(txn, job, JOB_CREATE, EVENT_NO_STATE, JOB_CREATED, at_us, no_label);
}

enum error job_requeue(struct txn *txn, struct job *job, uint64_t at_us, uint64_t steady_us, uint64_t start)
{
    static const char cause[] = "\"cause\":\"lease_expired\"";
    bool over = steady_us >= job->lease_us || (job->owner && job->owner != start);
    if (job->state != JOB_ASSIGNED || !over)
        return ERR_TRANSITION;
    return append(txn, job, JOB_REQUEUE, JOB_ASSIGNED, JOB_QUEUED, at_us, span_of(cause, sizeof(cause) - 1));
}

void job_write(struct txn *txn, const struct job *job)
{
    struct key key = key_of_uuid(&job->id);
    txn_write(txn, TABLE_JOBS, key_span(&key), job);
}

/* From when on a job is kept that ends now. A clock that is behind for a moment, such as one that hasn't been set yet after a start,
 * doesn't say that it has been kept for long: time that retention believes has been. */
static uint64_t kept_from(struct txn *txn, uint64_t at_us)
{
    int64_t retained = 0;
    (void)counter_read(txn, COUNTER_RETAINED, no_label, &retained); /* one that can't be read says nothing */
    return retained > 0 && (uint64_t)retained > at_us ? (uint64_t)retained : at_us;
}

void job_end(struct txn *txn, struct job *job, uint64_t at_us, const struct job_end *end)
{
    struct key key = report_key(&job->id, job->attempt);
    ASSERT(job_state_final(job->state));
    job->finished_us = job->updated_us;
    struct report report = {.outcome = job->state,
                            .failure = job->failure,
                            .retryable = job->retryable,
                            .events = job->events,
                            .started_us = job->started_us,
                            .finished_us = job->finished_us,
                            .fence = job->fence,
                            .digest = end->digest,
                            .message = end->message,
                            .result = end->result,
                            .retried = end->retried};
    txn_write(txn, TABLE_REPORTS, key_span(&key), &report);
    job->retire_us = job_later(kept_from(txn, at_us), end->kept_us);
    retention_set(txn, RETENTION_JOB, job->retire_us, &job->id, 0);
}

/* ---- retention ---- */

#define UNTOLD_MAX \
    256u /* rows of the outbox, or given up by it, that are looked at for one job at one time */

/* One that retention has put off, because something of it is damaged, is later than the row says. */
static bool may_go(const struct job *job, uint64_t due_us)
{
    return job_state_final(job->state) && job->retire_us <= due_us;
}

/* 0: it isn't a row's key, and stands in front of all that are. */
static uint64_t outbox_key_seq(struct span key)
{
    struct key wanted = outbox_key(0, 0);
    return key.size == wanted.size ? key_u64((const uint8_t *)key.bytes + key.size - 8) : 0;
}

/* Looks through a table's rows from the first to the newest that may tell of the job. `found`: seq is one; else everything up to
 * seq is of others, and nothing is left when `all`. */
struct told {
    uint64_t seq;
    bool found, all;
};

static enum error told_by(struct txn *txn, uint32_t table, const struct job *job, struct told *told)
{
    uint16_t partition = outbox_partition(txn, &job->id);
    struct key from = outbox_key(partition, job->outbox_first);
    struct scan scan = txn_scan(txn, table, key_span(&from), sizeof(partition), SCAN_UP);
    enum error e = OK;
    *told = (struct told){.seq = job->outbox_first};
    for (uint32_t looked = 0; !e && !told->found && looked < UNTOLD_MAX; looked++) {
        struct outbox row;
        struct dead dead;
        told->all = !scan_next(&scan) || outbox_key_seq(scan.key) > job->outbox_last;
        told->seq = told->all ? job->outbox_last : outbox_key_seq(scan.key);
        if (told->all)
            break;
        e = table == TABLE_DEAD ? scan_read(&scan, &dead) : scan_read(&scan, &row);
        told->found = !e && uuid_equal(table == TABLE_DEAD ? &dead.stream : &row.stream, &job->id);
    }
    enum error end = scan_end(&scan);
    return e ? e : end;
}

/* Nobody may be about to tell of it any more: ERR_UNAVAILABLE as long as somebody is. What was given up is forgotten with it. ERR_LIMIT:
 * that goes on. Rows of others may stay for far longer than a job does, and be any number: up to outbox_first they aren't looked at again.
 * Nothing of the job is before that in either table, because one that was given up may be revived, in its place, at any time. */
static enum error untell(struct txn *txn, struct job *job)
{
    struct told waiting, given_up;
    if (!job->outbox_last)
        return OK;
    enum error e = told_by(txn, TABLE_OUTBOX, job, &waiting);
    if (!e && waiting.found)
        e = ERR_UNAVAILABLE;
    if (!e)
        e = told_by(txn, TABLE_DEAD, job, &given_up);
    if (e || (waiting.all && given_up.all))
        return e;
    uint64_t seen = waiting.seq < given_up.seq ? waiting.seq : given_up.seq;
    if (given_up.found && given_up.seq == seen)
        e = outbox_forget(txn, outbox_partition(txn, &job->id), seen);
    if (!e) { /* up to there nothing is left of it; next time it goes on behind */
        job->outbox_first = seen + 1;
        job_write(txn, job);
    }
    return e ? e : ERR_LIMIT;
}

static void remove_all(struct txn *txn, const struct job *job)
{
    struct key key = key_of_uuid(&job->id), by_client = client_job_key(&job->client, job->seq);
    for (uint32_t attempt = 1; attempt <= job->attempt; attempt++) {
        struct key report = report_key(&job->id, (uint16_t)attempt);
        (void)txn_try_remove(txn, TABLE_REPORTS, key_span(&report)); /* not every attempt has come to one */
    }
    (void)txn_try_remove(txn, TABLE_JOB_DEFINITIONS, key_span(&key));
    (void)txn_try_remove(txn, TABLE_CLIENT_JOBS, key_span(&by_client));
    if (job->ledger)
        ledger_forget(txn, LEDGER_KEPT, job->ledger - 1);
    txn_remove(txn, TABLE_JOBS, key_span(&key));
    count_state(txn, job->state, -1);
}

/* Somebody is still to be told of it: it stays for another while. */
static void stay(struct txn *txn, struct job *job, uint64_t due_us)
{
    retention_clear(txn, due_us, &job->id);
    job->retire_us = job_later(due_us, RETENTION_AGAIN_US);
    retention_set(txn, RETENTION_JOB, job->retire_us, &job->id, 0);
    job_write(txn, job);
}

enum error job_expire(struct txn *txn, const struct due_entry *entry)
{
    struct job_texts texts;
    struct job job;
    bool left = false;
    enum error e = job_open(txn, &entry->id, &job, &texts);
    if (!e)
        e = may_go(&job, entry->due_us) ? untell(txn, &job) : ERR_NOT_FOUND;
    if (e == ERR_UNAVAILABLE) {
        stay(txn, &job, entry->due_us);
        e = ERR_NOT_FOUND;
    }
    if (!e)
        e = event_remove_stream(txn, &job.id, EVENTS_REMOVED_AT_ONCE, &left);
    if (e || left)
        return e ? e : ERR_LIMIT;
    remove_all(txn, &job);
    return OK;
}

enum error job_find_due(struct txn *txn, const struct due_entry *entry)
{
    struct job job;
    enum error e = job_read(txn, &entry->id, &job);
    if (e)
        return e;
    return may_go(&job, entry->due_us) ? OK : ERR_CONFLICT;
}

/* ---- what must be true ---- */

void job_check_due(struct check *check, struct txn *txn, const struct due_entry *entry)
{
    char id[UUID_TEXT_SIZE];
    struct job job;
    enum due_queue queue;
    uuid_format(&entry->id, id);
    enum error e = job_read(txn, &entry->id, &job);
    if (e == ERR_NOT_FOUND)
        check_complain(check, "due: job %s isn't there", id);
    else if (!e && (!job_due_queue(job.state, &queue) || (uint8_t)queue != entry->queue ||
                    job.due_us != entry->due_us || job_shard(entry->queue, &job.id) != entry->shard))
        check_complain(check, "due: job %s, which is %s, has a timer that isn't its own", id,
                       job_state_name(job.state) ? job_state_name(job.state) : "in no state");
}

static void check_relations(struct check *check, struct txn *txn, const struct job *job, const char *id)
{
    struct key by_client = client_job_key(&job->client, job->seq), definition = key_of_uuid(&job->id);
    struct key last = event_key(&job->id, job->events),
               beyond = event_key(&job->id, (uint64_t)job->events + 1);
    struct key report = report_key(&job->id, job->attempt);
    if (!there(txn, TABLE_CLIENT_JOBS, &by_client))
        check_complain(check, "jobs: %s isn't among its client's jobs", id);
    if (!there(txn, TABLE_JOB_DEFINITIONS, &definition))
        check_complain(check, "jobs: %s has no definition", id);
    if (job->events == 0 || !there(txn, TABLE_EVENTS, &last) || there(txn, TABLE_EVENTS, &beyond))
        check_complain(check, "jobs: %s has other events than the %u that it knows of", id, job->events);
    if (job_state_final(job->state) != there(txn, TABLE_REPORTS, &report))
        check_complain(check, "jobs: %s is %s, and there is %s report", id, job_state_name(job->state),
                       job_state_final(job->state) ? "no" : "a");
}

static void check_timers(struct check *check, struct txn *txn, const struct job *job, const char *id)
{
    struct key retired = due_key(DUE_RETENTION, RETENTION_SHARD, job->retire_us, &job->id);
    enum due_queue queue = DUE_RETENTION;
    bool timed = job_due_queue(job->state, &queue) && (job->state != JOB_QUEUED || job->lane == LANE_NONE);
    if (timed != (job->due_us != 0))
        check_complain(check, "jobs: %s is %s and has %s timer", id, job_state_name(job->state),
                       timed ? "no" : "a");
    struct key timer = due_key((uint8_t)queue, job_shard((uint8_t)queue, &job->id), job->due_us, &job->id);
    if (timed && job->due_us && !there(txn, TABLE_DUE, &timer))
        check_complain(check, "jobs: %s will never be looked at", id);
    if (job_state_final(job->state) != (job->retire_us != 0))
        check_complain(check, "jobs: %s is %s and has a wrong time to go", id, job_state_name(job->state));
    else if (job->retire_us && !there(txn, TABLE_DUE, &retired))
        check_complain(check, "jobs: %s will never be removed", id);
}

static void check_queue(struct check *check, struct txn *txn, const struct job *job, const char *id)
{
    bool queued = job->state == JOB_QUEUED && job->due_us == 0;
    if (queued != (job->lane != LANE_NONE) || job->lane >= LANE_COUNT) {
        check_complain(check, "jobs: %s is %s and stands in lane %u of the queue", id,
                       job_state_name(job->state), job->lane);
        return;
    }
    struct key row = job_queue_key(job), second = job_queue_order_key(job);
    if (queued && !there(txn, TABLE_JOB_QUEUE, &row))
        check_complain(check, "jobs: %s has no row in the queue", id);
    if (queued && job->lane == LANE_FAIR && !there(txn, TABLE_JOB_QUEUE, &second))
        check_complain(check, "jobs: %s has no row in the order of creation", id);
}

void job_check(struct check *check, struct txn *txn, struct span key, const void *value)
{
    const struct job *job = value;
    char id[UUID_TEXT_SIZE];
    uuid_format(&job->id, id);
    if (!span_equal(key, span_of(&job->id, sizeof(job->id))))
        check_complain(check, "jobs: %s stands under another id", id);
    if (job->state >= JOB_STATE_COUNT) {
        check_complain(check, "jobs: %s is in the unknown state %u", id, job->state);
        return;
    }
    check_relations(check, txn, job, id);
    check_timers(check, txn, job, id);
    check_queue(check, txn, job, id);
    if (job->slot == JOB_SLOT_COUNTED)
        check_count(check, COUNTER_JOBS_COUNTED, span_of(&job->client, sizeof(job->client)), 1);
    if ((job->slot == JOB_SLOT_COUNTED && !leased(job->state)) ||
        (job->slot == JOB_SLOT_PROMISED && job->state != JOB_QUEUED))
        check_complain(check, "jobs: %s is %s and holds a place of its client's limit", id,
                       job_state_name(job->state));
    check_count(check, COUNTER_JOBS, span_of(&job->state, sizeof(job->state)), 1);
    check_count_least(check, COUNTER_JOB_SEQ, no_label, (int64_t)job->seq);
    check_count_least(check, COUNTER_JOB_FENCE, no_label, (int64_t)job->fence);
    check_count_least(check, COUNTER_JOB_NEWEST, no_label, (int64_t)job->created_us);
}

/* Rows that belong to a job: it must be there. */
static void check_owner(struct check *check, struct txn *txn, const char *table, struct span key)
{
    char text[UUID_TEXT_SIZE];
    struct uuid id;
    struct job job;
    if (key.size < sizeof(id)) {
        check_complain(check, "%s: a key of %u bytes", table, key.size);
        return;
    }
    memcpy(&id, key.bytes, sizeof(id));
    uuid_format(&id, text);
    if (job_read(txn, &id, &job) == ERR_NOT_FOUND)
        check_complain(check, "%s: job %s isn't there", table, text);
}

void job_definition_check(struct check *check, struct txn *txn, struct span key, const void *value)
{
    (void)value;
    check_owner(check, txn, "job_definitions", key);
}

void report_check(struct check *check, struct txn *txn, struct span key, const void *value)
{
    const struct report *report = value;
    check_owner(check, txn, "reports", key);
    if (!job_state_final(report->outcome))
        check_complain(check, "reports: one of a job that was %s",
                       job_state_name(report->outcome) ? job_state_name(report->outcome) : "in no state");
}

void client_job_check(struct check *check, struct txn *txn, struct span key, const void *value)
{
    const struct client_job *row = value;
    char id[UUID_TEXT_SIZE];
    struct job job = {.seq = 0};
    uuid_format(&row->id, id);
    enum error e = job_read(txn, &row->id, &job);
    struct key wanted = client_job_key(&job.client, job.seq);
    if (e == ERR_NOT_FOUND || (!e && !span_equal(key, key_span(&wanted))))
        check_complain(check, "client_jobs: job %s isn't there, or another client's", id);
}
