#include "http/work_kinds.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>

#include "store/work_kind.h"

static _Atomic uint32_t runtime_ms = 120000;

void work_kinds_configure(uint32_t max_runtime_ms)
{
    atomic_store(&runtime_ms, max_runtime_ms);
}

static const char *fails_on(const struct work_kind_row *row)
{
    return row->failing_attempts == 0 ? "none" : row->failing_attempts == 1 ? "first" : "every";
}

static void write_kind(struct json *json, const struct work_kind_row *row, uint32_t max_runtime_ms)
{
    uint32_t duration =
        row->duration_ms == WORK_OVER_RUNTIME ? max_runtime_ms + WORK_OVER_RUNTIME_MS : row->duration_ms;
    json_object_begin(json);
    JSON_MEMBER(json, "work_kind", string, row->name);
    JSON_MEMBER(json, "duration_ms", uint, duration);
    JSON_MEMBER(json, "should_fail", bool, row->failing_attempts > 0);
    JSON_MEMBER(json, "payload_size", uint, row->payload_bytes);
    JSON_MEMBER(json, "expected_outcome", string, row->outcome);
    JSON_MEMBER(json, "note", string, row->note);
    JSON_MEMBER(json, "group", string, work_group_name(row->group));
    JSON_MEMBER(json, "fails_on", string, fails_on(row));
    JSON_MEMBER(json, "retryable", bool, row->retryable);
    json_key(json, "progress");
    if (row->progress_percent)
        json_decimal(json, row->progress_percent, 2);
    else
        json_null(json);
    JSON_MEMBER(json, "outputs", uint, row->outputs);
    json_object_end(json);
}

void work_kinds_write_json(struct json *json)
{
    const struct work_kind_row *row;
    uint32_t max_runtime_ms = atomic_load(&runtime_ms);
    json_array_begin(json);
    for (size_t i = 0; (row = work_kind_each(i)) != NULL; i++)
        write_kind(json, row, max_runtime_ms);
    json_array_end(json);
}

static void write_line(struct json_sink *sink, const struct work_kind_row *row)
{
    char duration[WORK_DURATION_TEXT_SIZE], line[256];
    work_kind_duration_text(row, duration);
    int length = snprintf(line, sizeof(line), "%s\t%s\t%s\t%" PRIu32 "\t%s\t%s\n", row->name, duration,
                          row->failing_attempts ? "true" : "false", row->payload_bytes / 1024, row->outcome,
                          row->note);
    json_sink_bytes(sink, line, (size_t)length);
}

void work_kinds_write_table(struct json_sink *sink)
{
    const struct work_kind_row *row;
    json_sink_text(sink, "work_kind\tduration_ms\tshould_fail\tpayload_size_kb\texpected_outcome\tnote\n");
    for (size_t i = 0; (row = work_kind_each(i)) != NULL; i++)
        write_line(sink, row);
}

static void serve_work_kinds(const struct request *q, struct response *r)
{
    struct json json;
    (void)q;
    response_begin(r, 200, RESPONSE_JSON);
    json_init(&json, &r->sink);
    json_object_begin(&json);
    json_key(&json, "items");
    work_kinds_write_json(&json);
    json_object_end(&json);
}

const struct route work_kind_routes[] = {
    {.method = METHOD_GET,
     .path = "/v1/work-kinds",
     .surface = SURFACE_JOBS,
     .auth = AUTH_KEY,
     .limit = LIMIT_CLIENT,
     .serve = serve_work_kinds},
};
const size_t work_kind_routes_count = sizeof(work_kind_routes) / sizeof(*work_kind_routes);
