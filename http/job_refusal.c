#include "http/job_refusal.h"

static enum error_code code_of(enum error e)
{
    switch (e) {
    case ERR_NOT_FOUND:
        return ERROR_RFA_JOB_NOT_FOUND;
    case ERR_FORBIDDEN:
        return ERROR_RFA_AUTH_FORBIDDEN;
    case ERR_CONFLICT:
    case ERR_TRANSITION:
        return ERROR_RFA_JOB_CONFLICT;
    case ERR_KEY_REUSED:
        return ERROR_RFA_EXEC_IDEMPOTENCY_CONFLICT;
    case ERR_INVALID:
        return ERROR_RFA_JOB_VALIDATION_FAILED;
    case ERR_QUEUE_FULL:
        return ERROR_RFA_EXEC_QUEUE_FULL;
    case ERR_ACTIVE:
        return ERROR_RFA_REQUEST_RATE_LIMITED;
    case ERR_NO_SPACE:
    case ERR_DAMAGED:
    case ERR_NEWER:
    case ERR_IO:
        return ERROR_RFA_STORAGE_DB_ERROR;
    case ERR_TIMEOUT:
        return ERROR_RFA_EXEC_TIMEOUT;
    case ERR_EXISTS:
        return ERROR_RFA_INTERNAL;
    default:
        return ERROR_RFA_STORAGE_UNAVAILABLE;
    }
}

static const char *what_of(enum error e)
{
    switch (e) {
    case ERR_NOT_FOUND:
        return "there is no such job";
    case ERR_FORBIDDEN:
        return "this job belongs to another client";
    case ERR_CONFLICT:
        return "no retry is left";
    case ERR_KEY_REUSED:
        return "this idempotency key came with another body before";
    case ERR_INVALID:
        return "work_kind, or what is drawn without one, isn't within this server's limits";
    case ERR_QUEUE_FULL:
        return "as many jobs are queued as may be; nothing was changed";
    case ERR_ACTIVE:
        return "as many jobs are active as may be; nothing was stored";
    case ERR_LIMIT:
        return "as much is to be remembered or told as may be; nothing was changed";
    default:
        return catalogue_sentence(e);
    }
}

static void write_limit(struct json *json, void *context)
{
    if (context)
        JSON_MEMBER(json, "limit", string, (const char *)context);
}

/* The same on the operator's listener. */
static enum error_kind kind_of(enum error e)
{
    switch (code_of(e)) {
    case ERROR_RFA_JOB_NOT_FOUND:
        return ERROR_KIND_NOT_FOUND;
    case ERROR_RFA_JOB_CONFLICT:
        return ERROR_KIND_CONFLICT;
    case ERROR_RFA_STORAGE_DB_ERROR:
        return ERROR_KIND_STORE;
    case ERROR_RFA_EXEC_TIMEOUT:
        return ERROR_KIND_TIMEOUT;
    case ERROR_RFA_STORAGE_UNAVAILABLE:
    case ERROR_RFA_EXEC_QUEUE_FULL:
        return ERROR_KIND_UNAVAILABLE;
    default:
        return ERROR_KIND_INTERNAL;
    }
}

void job_refuse(struct response *r, enum error e)
{
    static char queue[] = "max_queue_size", active[] = "max_active_jobs";
    char *limit = e == ERR_QUEUE_FULL ? queue : e == ERR_ACTIVE ? active : NULL;
    if (limit)
        response_header(r, "Retry-After", "%u", JOB_RETRY_S);
    bool jobs = r->surface == SURFACE_JOBS;
    response_error_with(r, jobs ? code_of(e) : catalogue_code(r->surface, kind_of(e)), what_of(e),
                        write_limit, limit);
}
