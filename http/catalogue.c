#include "http/catalogue.h"

#include "runtime/assert.h"

static const struct catalogue_row rows[ERROR_CODE_COUNT] = {
#define X(id, number, again, class, words, what_to_do, owner, extra) \
    [ERROR_##id] = {.code = #id,                                     \
                    .status = (number),                              \
                    .retryable = (again),                            \
                    .retry_class = (class),                          \
                    .title = (words),                                \
                    .action = (what_to_do),                          \
                    .surface = SURFACE_##owner,                      \
                    .extension = (extra)},
    ERROR_CODES(X)
#undef X
};

static const struct {
    const char *name;
    enum error_shape shape;
} surfaces[SURFACE_COUNT] = {
#define X(id, text, form) [SURFACE_##id] = {.name = (text), .shape = SHAPE_##form},
    SURFACES(X)
#undef X
};

/* X(kind, operators' and public, control, jobs). What is wrong with a request's form is the control contract's 400, a body
 * that is too large and another media type among it (AMB-05, AMB-12), and the job contract's RFA_REQUEST_MALFORMED; a
 * limit of the front whose status neither contract has (408, 414, 417, 431) has an extension code on each surface. What
 * times out inside is INFRA_503_DEPENDENCY_DOWN (AMB-41). */
#define KINDS(X)                                                                                             \
    X(MALFORMED, OPS_400_MALFORMED, REQ_400_INVALID_SCHEMA, RFA_REQUEST_MALFORMED)                           \
    X(MISSING_FIELD, OPS_400_MISSING_FIELD, REQ_400_MISSING_FIELD, RFA_REQUEST_MALFORMED)                    \
    X(INVALID, OPS_400_INVALID, REQ_400_INVALID_SCHEMA, RFA_JOB_VALIDATION_FAILED)                           \
    X(UNSUPPORTED_TYPE, OPS_415_UNSUPPORTED_TYPE, REQ_400_INVALID_SCHEMA,                                    \
      RFA_REQUEST_UNSUPPORTED_MEDIA_TYPE)                                                                    \
    X(NOT_ACCEPTABLE, OPS_406_NOT_ACCEPTABLE, REQ_400_INVALID_SCHEMA, RFA_REQUEST_NOT_ACCEPTABLE)            \
    X(TOO_LARGE, OPS_413_TOO_LARGE, REQ_400_INVALID_SCHEMA, RFA_REQUEST_PAYLOAD_TOO_LARGE)                   \
    X(NO_ROUTE, OPS_404_NO_ROUTE, REQ_404_ROUTE_NOT_FOUND, RFA_REQUEST_ROUTE_NOT_FOUND)                      \
    X(METHOD, OPS_405_METHOD, REQ_405_METHOD_NOT_ALLOWED, RFA_REQUEST_METHOD_NOT_ALLOWED)                    \
    X(NO_CREDENTIALS, OPS_401_NO_CREDENTIALS, AUTH_401_MISSING_TOKEN, RFA_AUTH_INVALID_CREDENTIALS)          \
    X(BAD_CREDENTIALS, OPS_401_BAD_CREDENTIALS, AUTH_401_INVALID_TOKEN, RFA_AUTH_INVALID_CREDENTIALS)        \
    X(DISABLED_CREDENTIALS, OPS_403_DISABLED_CREDENTIALS, AUTH_401_INVALID_TOKEN, RFA_AUTH_API_KEY_DISABLED) \
    X(FORBIDDEN, OPS_403_FORBIDDEN, AUTH_403_ROLE, RFA_AUTH_FORBIDDEN)                                       \
    X(OUT_OF_SCOPE, OPS_403_FORBIDDEN, AUTH_403_SCOPE, RFA_AUTH_FORBIDDEN)                                   \
    X(CROSS_SITE, OPS_403_CROSS_SITE, AUTH_403_ROLE, RFA_AUTH_FORBIDDEN)                                     \
    X(THROTTLED, OPS_429_THROTTLED, RATE_429_THROTTLED, RFA_REQUEST_RATE_LIMITED)                            \
    X(NOT_FOUND, OPS_404_NOT_FOUND, JOB_404_NOT_FOUND, RFA_JOB_NOT_FOUND)                                    \
    X(CONFLICT, OPS_409_CONFLICT, JOB_409_LOCKED, RFA_JOB_CONFLICT)                                          \
    X(UNAVAILABLE, OPS_503_UNAVAILABLE, INFRA_503_DEPENDENCY_DOWN, RFA_STORAGE_UNAVAILABLE)                  \
    X(OVERLOADED, OPS_503_OVERLOADED, INFRA_503_DEPENDENCY_DOWN, RFA_STORAGE_UNAVAILABLE)                    \
    X(NO_SPACE, OPS_507_NO_SPACE, JOB_503_QUEUE_UNAVAILABLE, RFA_STORAGE_DB_ERROR)                           \
    X(STORE, OPS_503_STORE, INFRA_503_DEPENDENCY_DOWN, RFA_STORAGE_DB_ERROR)                                 \
    X(TIMEOUT, OPS_504_TIMEOUT, INFRA_503_DEPENDENCY_DOWN, RFA_EXEC_TIMEOUT)                                 \
    X(INTERNAL, OPS_500_INTERNAL, INTERNAL_500_UNEXPECTED, RFA_INTERNAL)                                     \
    X(TARGET_TOO_LONG, OPS_414_TARGET_TOO_LONG, REQ_414_TARGET_TOO_LONG, RFA_REQUEST_TARGET_TOO_LONG)        \
    X(HEADER_TOO_LARGE, OPS_431_HEADER_TOO_LARGE, REQ_431_HEADER_TOO_LARGE, RFA_REQUEST_HEADER_TOO_LARGE)    \
    X(REQUEST_TIMEOUT, OPS_408_REQUEST_TIMEOUT, REQ_408_REQUEST_TIMEOUT, RFA_REQUEST_TIMEOUT)                \
    X(MISDIRECTED, OPS_421_MISDIRECTED, REQ_400_INVALID_SCHEMA, RFA_REQUEST_MALFORMED)                       \
    X(LENGTH_REQUIRED, OPS_411_LENGTH_REQUIRED, REQ_400_INVALID_SCHEMA, RFA_REQUEST_MALFORMED)               \
    X(EXPECTATION, OPS_417_EXPECTATION, REQ_417_EXPECTATION_FAILED, RFA_REQUEST_EXPECTATION_FAILED)

static const enum error_code kinds[SURFACE_COUNT][ERROR_KIND_COUNT] = {
#define OF(surface, kind, code) [SURFACE_##surface][ERROR_KIND_##kind] = ERROR_##code,
#define X(kind, ops, control, jobs) \
    OF(PUBLIC, kind, ops) OF(OPERATOR, kind, ops) OF(CONTROL, kind, control) OF(JOBS, kind, jobs)
    KINDS(X)
#undef X
#undef OF
};

/* Every kind has its line. */
#define X(...) +1
_Static_assert(0 KINDS(X) == ERROR_KIND_COUNT, "a kind of error has no code");
#undef X

const struct catalogue_row *catalogue_row(enum error_code code)
{
    ASSERT(code > ERROR_NONE && code < ERROR_CODE_COUNT);
    return &rows[code];
}

enum error_code catalogue_code(enum surface surface, enum error_kind kind)
{
    ASSERT(surface < SURFACE_COUNT && kind < ERROR_KIND_COUNT && kinds[surface][kind] != ERROR_NONE);
    return kinds[surface][kind];
}

enum error_kind catalogue_failure(enum error e)
{
    switch (e) {
    case ERR_TIMEOUT:
        return ERROR_KIND_TIMEOUT;
    case ERR_NO_SPACE:
        return ERROR_KIND_NO_SPACE;
    case ERR_DAMAGED:
    case ERR_NEWER:
    case ERR_IO:
        return ERROR_KIND_STORE;
    case ERR_SHED:
    case ERR_FULL:
        return ERROR_KIND_OVERLOADED;
    default:
        return ERROR_KIND_UNAVAILABLE;
    }
}

const char *catalogue_sentence(enum error e)
{
    switch (e) {
    case ERR_NO_SPACE:
        return "the disk is full, or the store has grown to store.map.max; nothing was stored";
    case ERR_UNAVAILABLE:
    case ERR_NOPROC:
        return "the store, or who else this needs, isn't there just now";
    case ERR_SHED:
    case ERR_FULL:
        return "too much waits already; nothing was stored";
    case ERR_LIMIT:
        return "as much of this is kept as may be";
    case ERR_MEMORY:
        return "no memory is left for this";
    case ERR_DAMAGED:
        return "what is stored about this is damaged";
    case ERR_NEWER:
        return "what is stored about this was written by a later release";
    case ERR_TIMEOUT:
        return "it has not ended in time; it may still be done";
    case ERR_DOWN:
    case ERR_UNANSWERED:
        return "who was to do this has ended before the answer; it may have been done";
    case ERR_IO:
        return "the disk failed; this may have been done";
    default:
        return "";
    }
}

enum error_shape surface_shape(enum surface surface)
{
    ASSERT(surface < SURFACE_COUNT);
    return surfaces[surface].shape;
}

const char *surface_name(enum surface surface)
{
    ASSERT(surface < SURFACE_COUNT);
    return surfaces[surface].name;
}
