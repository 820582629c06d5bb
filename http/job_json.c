#include "http/job_json.h"

void job_json_write_id(struct json *json, const char *name, const struct uuid *id)
{
    char text[UUID_TEXT_SIZE];
    uuid_format(id, text);
    JSON_MEMBER(json, name, string, text);
}

void job_json_write_time(struct json *json, const char *name, uint64_t us)
{
    char text[TIME_TEXT_SIZE];
    if (us)
        job_time_format(us, text);
    JSON_MEMBER(json, name, string, us ? text : NULL);
}

static void write_span(struct json *json, const char *name, struct span text)
{
    json_key(json, name);
    if (text.size > 0)
        json_string_n(json, text.bytes, text.size);
    else
        json_null(json);
}

static void write_definition(struct json *json, const struct job_definition *d)
{
    json_key(json, "definition");
    json_object_begin(json);
    write_span(json, "work_kind", job_kind_name(d->kind, d->kind_name));
    JSON_MEMBER(json, "duration_ms", uint, d->duration_ms);
    JSON_MEMBER(json, "should_fail", bool, d->should_fail);
    JSON_MEMBER(json, "payload_size", uint, d->payload_size);
    json_object_end(json);
}

void job_json_write_failure(struct json *json, uint8_t failure, bool retryable)
{
    const char *code = job_failure_code(failure);
    json_object_begin(json);
    JSON_MEMBER(json, "reason", string, job_failure_reason(failure));
    JSON_MEMBER(json, "reason_code", string, *code ? code : NULL);
    JSON_MEMBER(json, "retryable", bool, retryable);
    json_object_end(json);
}

void job_json_write_members(struct json *json, const struct job *job, const struct job_definition *definition)
{
    job_json_write_id(json, "job_id", &job->id);
    JSON_MEMBER(json, "type", string, job_type_name(job->type));
    JSON_MEMBER(json, "state", string, job_state_name(job->state));
    JSON_MEMBER(json, "outcome", string, job_outcome_name(job->state));
    job_json_write_time(json, "created_at", job->created_us);
    job_json_write_time(json, "execution_at", job->execution_us);
    job_json_write_time(json, "updated_at", job->updated_us);
    JSON_MEMBER(json, "attempt", uint, job->attempt);
    write_span(json, "callback", definition ? definition->callback : span_of(NULL, 0));
    if (definition)
        write_definition(json, definition);
    if (job->state == JOB_FAILED) {
        json_key(json, "failure");
        job_json_write_failure(json, job->failure, job->retryable);
    }
}

void job_json_write(struct json *json, const struct job *job, const struct job_definition *definition)
{
    json_object_begin(json);
    job_json_write_members(json, job, definition);
    json_object_end(json);
}
