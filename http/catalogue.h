/* The error catalogue: every answer of the product that isn't 2xx or 3xx is a row of this table.
 *
 * A row's code is stable and machine-readable; the surface that owns the path decides the shape in which it is sent
 * (http/response.h). The 30 rows of spec/control.errors.tsv and the rows of spec/jobs.errors.tsv are here word by word;
 * `coppice contract show errors` prints them, and a test compares.
 *
 * What every surface may need (a refused route, a limit, a broken body) is asked for by ERROR_KIND; catalogue_code gives
 * the surface's own code for it.
 */
#ifndef COPPICE_HTTP_CATALOGUE_H
#define COPPICE_HTTP_CATALOGUE_H

#include <stdbool.h>
#include <stddef.h>

#include "http/catalogue_rows.h"
#include "runtime/error.h"

enum error_code {
    ERROR_NONE = 0,
#define X(code, ...) ERROR_##code,
    ERROR_CODES(X)
#undef X
        ERROR_CODE_COUNT
};

#define SURFACES(X)                                                \
    X(PUBLIC, "public", PROBLEM)     /* probes, documents, JWKS */ \
    X(OPERATOR, "operator", PROBLEM) /* the operator's listener */ \
    X(CONTROL, "control", ENVELOPE)                                \
    X(JOBS, "jobs", PROBLEM)

enum surface {
#define X(id, name, shape) SURFACE_##id,
    SURFACES(X)
#undef X
        SURFACE_COUNT
};
enum error_shape { SHAPE_PROBLEM, SHAPE_ENVELOPE };

/* What can go wrong before a handler runs, or in any handler. */
#define ERROR_KINDS(X)      \
    X(MALFORMED)            \
    X(MISSING_FIELD)        \
    X(INVALID)              \
    X(UNSUPPORTED_TYPE)     \
    X(NOT_ACCEPTABLE)       \
    X(TOO_LARGE)            \
    X(NO_ROUTE)             \
    X(METHOD)               \
    X(NO_CREDENTIALS)       \
    X(BAD_CREDENTIALS)      \
    X(DISABLED_CREDENTIALS) \
    X(FORBIDDEN)            \
    X(OUT_OF_SCOPE)         \
    X(CROSS_SITE)           \
    X(THROTTLED)            \
    X(NOT_FOUND)            \
    X(CONFLICT)             \
    X(UNAVAILABLE)          \
    X(OVERLOADED)           \
    X(NO_SPACE)             \
    X(STORE)                \
    X(TIMEOUT)              \
    X(INTERNAL)             \
    X(TARGET_TOO_LONG)      \
    X(HEADER_TOO_LARGE)     \
    X(REQUEST_TIMEOUT)      \
    X(MISDIRECTED)          \
    X(LENGTH_REQUIRED)      \
    X(EXPECTATION)

enum error_kind {
#define X(id) ERROR_KIND_##id,
    ERROR_KINDS(X)
#undef X
        ERROR_KIND_COUNT
};

struct catalogue_row {
    const char *code; /* "RFA_REQUEST_MALFORMED" */
    int status;
    bool retryable;
    const char *retry_class; /* "none", "bounded", "operator"; "" where the contract has none */
    const char *title;       /* what went wrong, for anybody */
    const char *action;      /* what to do about it; may be "" */
    enum surface surface;
    bool extension; /* not one of the contract's own rows */
};

const struct catalogue_row *catalogue_row(enum error_code code);
enum error_code catalogue_code(enum surface surface, enum error_kind kind); /* never ERROR_NONE */
/* What the store, or whoever is asked by a message, couldn't do at all: the kind that every handler says of it alike. Refusals of a
 * command's own rules are for the handler that knows what they mean. */
enum error_kind catalogue_failure(enum error e);
/* The same for people, as an answer's detail: what it was, and of what only a command can meet, that nothing was stored; the rest
 * may be met by reading as well, behind a change that is done. "" where the code's title says as much. */
const char *catalogue_sentence(enum error e);
enum error_shape surface_shape(enum surface surface);
const char *surface_name(enum surface surface);

#endif
