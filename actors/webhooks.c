#include "actors/webhooks.h"

#include "actors/job_spans.h"

#include <stdatomic.h>
#include <stdio.h>

#include "runtime/runtime.h"
#include "runtime/telemetry.h"

const struct webhooks_settings webhooks_defaults = {
    .timeout_ms = 5000,
    .retries_max = 5,
    .backoff_base_us = 1000000,
    .backoff_most_us = 60000000,
    .kept_us = UINT64_C(7) * 86400 * 1000000,
    .disable_after_us = UINT64_C(5) * 86400 * 1000000,
};

/* As those of jobs (actors/jobs.c): readers copy the newest place, a writer fills the next one. */
#define PLACES 16u
static struct webhooks_settings places[PLACES];
static _Atomic uint32_t newest; /* 0: none yet, the defaults */

void webhooks_configure(const struct webhooks_settings *settings)
{
    uint32_t next = atomic_load(&newest) + 1;
    if (next % PLACES == 0)
        next++; /* 0 means the defaults */
    places[next % PLACES] = *settings;
    atomic_store_explicit(&newest, next, memory_order_release);
}

struct webhooks_settings webhooks_settings(void)
{
    uint32_t at = atomic_load_explicit(&newest, memory_order_acquire);
    return at % PLACES ? places[at % PLACES] : webhooks_defaults;
}

/* ---- telling ---- */

static _Atomic uint64_t succeeded, failed, given_up, dropped, disabled;

struct webhook_figures webhooks_figures(void)
{
    return (struct webhook_figures){.succeeded = atomic_load(&succeeded),
                                    .failed = atomic_load(&failed),
                                    .given_up = atomic_load(&given_up),
                                    .dropped = atomic_load(&dropped),
                                    .disabled = atomic_load(&disabled)};
}

static void count(const struct webhook_told *told)
{
    uint8_t outcome = told->result->outcome;
    if (told->made)
        atomic_fetch_add(outcome == DELIVERY_SUCCEED ? &succeeded : &failed, 1);
    if (outcome == DELIVERY_GIVE_UP)
        atomic_fetch_add(&given_up, 1);
    if (outcome == DELIVERY_DROP)
        atomic_fetch_add(&dropped, 1);
    if (told->disabled)
        atomic_fetch_add(&disabled, 1);
}

static void write_what(struct json *json, const struct webhook_told *told)
{
    const struct delivery_result *r = told->result;
    if (r->status)
        JSON_MEMBER(json, "http_status", uint, r->status);
    if (r->error) {
        JSON_MEMBER(json, "error", string, delivery_error_name(r->error));
        if (*delivery_error_code(r->error))
            JSON_MEMBER(json, "error_code", string, delivery_error_code(r->error));
    }
    if (told->made)
        JSON_MEMBER(json, "took_ms", uint, r->took_ms);
    JSON_MEMBER(json, "outcome", string, lifecycle_event_name(&delivery_lifecycle, r->outcome));
}

static void write_line(const struct webhook_told *told, const char *level)
{
    static const struct uuid none = {{0}};
    char line[1024], delivery[UUID_TEXT_SIZE], job[UUID_TEXT_SIZE], webhook[UUID_TEXT_SIZE];
    struct json_sink sink;
    struct json json;
    uuid_format(&told->result->id, delivery);
    uuid_format(&told->job, job);
    uuid_format(&told->webhook, webhook);
    json_sink_init(&sink, line, sizeof(line), NULL, NULL);
    json_init(&json, &sink);
    json_object_begin(&json);
    JSON_MEMBER(&json, "level", string, level);
    JSON_MEMBER(&json, "logger", string, "webhooks");
    JSON_MEMBER(&json, "msg", string, told->made ? "webhook attempt" : "webhook skipped");
    JSON_MEMBER(&json, "job_id", string, job);
    JSON_MEMBER(&json, "delivery_id", string, delivery);
    JSON_MEMBER(&json, "webhook_id", string, uuid_equal(&told->webhook, &none) ? NULL : webhook);
    JSON_MEMBER(&json, "attempt", uint, told->result->attempt);
    JSON_MEMBER(&json, "url_host", string, told->host);
    write_what(&json, told);
    if (told->disabled)
        JSON_MEMBER(&json, "webhook_disabled", bool, true);
    json_object_end(&json);
    if (sink.status == JSON_OK)
        runtime_log(runtime_self(), line, sink.length);
}

/* What the contract of the topology wants to hear: attempts that failed, and final results. */
static void emit(const struct webhook_told *told)
{
    const struct delivery_result *r = told->result;
    bool good = r->outcome == DELIVERY_SUCCEED;
    char code[16];
    snprintf(code, sizeof(code), "%u", r->status);
    const char *provider = r->status ? code : good ? "200" : delivery_error_name(r->error);
    if (told->made && !good)
        TELEMETRY(FAILURE_OUTBOUND_PROVIDER, 1, DIM(COMPONENT, "webhooks"), DIM(FAILURE_CLASS, "recoverable"),
                  DIM(PARTITION, told->host), DIM_INT(ATTEMPT, r->attempt), DIM(PROVIDER_CODE, provider));
    if (r->outcome == DELIVERY_SUCCEED || r->outcome == DELIVERY_GIVE_UP)
        TELEMETRY(OUTBOUND_RESULT, good, DIM(CHANNEL, "webhook"), DIM(PROVIDER_CODE, provider),
                  DIM(CLASSIFICATION, good ? "delivered" : "failed"));
}

void webhooks_tell(const struct webhook_told *told)
{
    bool good = told->result->outcome == DELIVERY_SUCCEED;
    const char *level = good ? "info" : "warn";
    count(told);
    job_spans_attempt(told);
    if (runtime_logs(runtime_self(), level))
        write_line(told, level);
    emit(told);
}
