#include "actors/jobs.h"

#include <stdatomic.h>

#include "actors/job_figures.h"
#include "actors/job_spans.h"
#include "runtime/actor.h"
#include "runtime/json.h"
#include "runtime/runtime.h"
#include "runtime/telemetry.h"
#include "store/job_change.h"
#include "store/store.h"
#include "store/view.h"

const struct jobs_settings jobs_defaults = {
    .workers = 64,
    .concurrency = 1,
    .poll_us = 1000000,
    .lease_us = 30000000,
    .heartbeat_us = 5000000,
    .speed_ppm = 1000000,
    .should_fail_ppm = 200000,
    .runtime_max_ms = 120000,
    .payload_max = 262144,
    .types = (1u << JOB_TYPE_COUNT) - 1,
    .queue_max = 10000,
    .active_max = 20000,
    .retry_max = 3,
    .backoff_base_us = 1000000,
    .backoff_most_us = 60000000,
    .kept_us = UINT64_C(30) * 86400 * 1000000,
};

/* Readers copy the newest; a writer fills the next of several places, so that nobody copies one that is being written unless
 * settings change that often within one copy. */
#define PLACES 16u
static struct jobs_settings places[PLACES];
static _Atomic uint32_t newest; /* 0: none yet, the defaults */

void jobs_configure(const struct jobs_settings *settings)
{
    uint32_t next = atomic_load(&newest) + 1;
    if (next % PLACES == 0)
        next++; /* 0 means the defaults */
    places[next % PLACES] = *settings;
    atomic_store_explicit(&newest, next, memory_order_release);
}

struct jobs_settings jobs_settings(void)
{
    uint32_t at = atomic_load_explicit(&newest, memory_order_acquire);
    return at % PLACES ? places[at % PLACES] : jobs_defaults;
}

uint64_t jobs_backoff_us(uint16_t attempt, const struct jobs_settings *settings)
{
    return job_backoff_us((uint16_t)(attempt + 1), settings->backoff_base_us, settings->backoff_most_us,
                          (uint32_t)actor_random());
}

uint64_t jobs_grace_us(void)
{
    return store_here()->opened_us + jobs_settings().lease_us;
}

STATIC_ASSERT(JOBS_WORKERS_MAX <= STORE_WATCHERS_MAX, "each worker is told");

/* Each member of a group; a full mailbox has something else to look at. */
static void cast_all(const char *group, uint32_t type, const void *bytes, size_t size)
{
    struct arena_mark mark = actor_arena_mark();
    actor_pid *pids = actor_alloc(STORE_WATCHERS_MAX * sizeof(*pids));
    size_t count = actor_members(group, pids, STORE_WATCHERS_MAX);
    for (size_t i = 0; i < count && i < STORE_WATCHERS_MAX; i++)
        (void)actor_cast(pids[i], type, bytes, size);
    actor_arena_reset(mark);
}

void jobs_clock_moved(void)
{
    cast_all(JOBS_CLOCK_GROUP, JOBS_CLOCK, NULL, 0);
}

void jobs_claim_anew(void)
{
    static const uint32_t topic = JOB_TOPIC_QUEUE;
    char group[STORE_GROUP_SIZE];
    store_group(topic, group);
    cast_all(group, STORE_WAKE, &topic, sizeof(topic));
}

/* ---- telling ---- */

/* Of a user's kind the job's definition has the name, when whoever tells doesn't have it at hand. */
static void write_users_kind(struct json *json, const struct job_told *told)
{
    struct span name = told->kind_name;
    struct job_definition d;
    struct view *view = name.size == 0 && store_here() ? view_open(store_here()) : NULL;
    if (view && job_read_definition(&view->txn, &told->id, &d) == OK)
        name = d.kind_name;
    json_string_n(json, name.bytes, name.size);
    if (view)
        view_close(view);
}

static void write_kind(struct json *json, const struct job_told *told)
{
    const struct work_kind_row *row = work_kind_row(told->kind);
    json_key(json, "scenario");
    if (!row) {
        write_users_kind(json, told);
        return;
    }
    json_string(json, row->name);
    JSON_MEMBER(json, "duration_ms", uint,
                row->duration_ms == WORK_OVER_RUNTIME ? jobs_settings().runtime_max_ms + WORK_OVER_RUNTIME_MS
                                                      : row->duration_ms);
    JSON_MEMBER(json, "expected_outcome", string, row->outcome);
}

static void write_line(const struct job_told *told, const char *id, const char *client, const char *level)
{
    char line[1024];
    struct json_sink sink;
    struct json json;
    json_sink_init(&sink, line, sizeof(line), NULL, NULL);
    json_init(&json, &sink);
    json_object_begin(&json);
    JSON_MEMBER(&json, "level", string, level);
    JSON_MEMBER(&json, "logger", string, "jobs");
    JSON_MEMBER(&json, "msg", string, "transition");
    JSON_MEMBER(&json, "event", string, job_event_name(told->event));
    JSON_MEMBER(&json, "job_id", string, id);
    JSON_MEMBER(&json, "client_id", string, client);
    JSON_MEMBER(&json, "current_state", string,
                told->event == JOB_CREATE ? NULL : job_state_name(told->from));
    JSON_MEMBER(&json, "next_state", string, job_state_name(told->to));
    JSON_MEMBER(&json, "attempt", uint, told->attempt);
    write_kind(&json, told);
    if (told->failure != JOB_NO_FAILURE) {
        JSON_MEMBER(&json, "reason", string, job_failure_reason(told->failure));
        JSON_MEMBER(&json, "error_code", string, job_failure_code(told->failure));
        JSON_MEMBER(&json, "error_message", string, job_failure_reason(told->failure));
    }
    json_object_end(&json);
    if (sink.status == JSON_OK)
        runtime_log(runtime_self(), line, sink.length);
}

void jobs_tell(const struct job_told *told)
{
    char id[UUID_TEXT_SIZE], client[UUID_TEXT_SIZE];
    const char *level = told->to == JOB_FAILED ? "warn" : "info";
    job_figures_note(told);
    job_spans_note(told);
    uuid_format(&told->id, id);
    uuid_format(&told->client, client);
    if (runtime_logs(runtime_self(), level))
        write_line(told, id, client, level);
    TELEMETRY(JOB_TRANSITION, 1, DIM(EVENT, job_event_name(told->event)), DIM(JOB_ID, id),
              DIM(CLIENT_ID, client),
              DIM(CURRENT_STATE, told->event == JOB_CREATE ? "none" : job_state_name(told->from)),
              DIM(NEXT_STATE, job_state_name(told->to)));
}

void jobs_tell_retried(const struct job_told *told)
{
    jobs_tell(&(struct job_told){.id = told->id,
                                 .client = told->client,
                                 .event = JOB_RETRY,
                                 .from = JOB_FAILED,
                                 .to = JOB_QUEUED,
                                 .kind = told->kind,
                                 .attempt = (uint16_t)(told->attempt + 1),
                                 .kind_name = told->kind_name});
}

void jobs_tell_queue_full(const struct uuid *id, const struct uuid *client)
{
    char text[UUID_TEXT_SIZE], of[UUID_TEXT_SIZE];
    uuid_format(id, text);
    uuid_format(client, of);
    TELEMETRY(JOB_QUEUE_FULL, 1, DIM(JOB_ID, text), DIM(CLIENT_ID, of));
}

void jobs_tell_incomplete(const struct uuid *id, const struct uuid *client)
{
    char text[UUID_TEXT_SIZE], of[UUID_TEXT_SIZE], line[512];
    struct json_sink sink;
    struct json json;
    uuid_format(id, text);
    uuid_format(client, of);
    json_sink_init(&sink, line, sizeof(line), NULL, NULL);
    json_init(&json, &sink);
    json_object_begin(&json);
    JSON_MEMBER(&json, "level", string, "error");
    JSON_MEMBER(&json, "logger", string, "jobs");
    JSON_MEMBER(&json, "msg", string, "a job is incomplete: an event of it is missing");
    JSON_MEMBER(&json, "job_id", string, text);
    JSON_MEMBER(&json, "client_id", string, of);
    JSON_MEMBER(&json, "reason", string, job_failure_reason(JOB_RECOVERY_INCOMPLETE));
    json_object_end(&json);
    if (sink.status == JSON_OK)
        runtime_log(runtime_self(), line, sink.length);
}
