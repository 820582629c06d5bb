/* Jobs as the contract shows them (docs/contract/jobs.openapi.yaml). Pure: what is shown may borrow from a view. */
#ifndef COPPICE_HTTP_JOB_JSON_H
#define COPPICE_HTTP_JOB_JSON_H

#include "runtime/json.h"
#include "store/job.h"

/* Bytes that one job, or one event, takes at most, so that it can be written while a view is open: a callback is ASCII without
 * quotes and backslashes, the payload of an event has its own limit. */
#define JOB_JSON_MAX 4096u

/* `definition` NULL: it is missing. */
void job_json_write(struct json *json, const struct job *job, const struct job_definition *definition);
/* The same without its braces, for who has more to say of it. */
void job_json_write_members(struct json *json, const struct job *job,
                            const struct job_definition *definition);
void job_json_write_id(struct json *json, const char *name, const struct uuid *id);
/* null when it is 0 */
void job_json_write_time(struct json *json, const char *name, uint64_t us);
/* The object of a failure: reason, reason_code, retryable. */
void job_json_write_failure(struct json *json, uint8_t failure, bool retryable);

#endif
