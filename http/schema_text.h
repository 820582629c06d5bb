/* What schemas ask of texts: formats and patterns, each a function over bytes that are valid UTF-8 without escapes.
 *
 * There is no engine for regular expressions: one that runs on clients' texts would have to be proved linear. The patterns of
 * the contracts are few, so each has its function here, and a contract with another one doesn't compile.
 */
#ifndef COPPICE_HTTP_SCHEMA_TEXT_H
#define COPPICE_HTTP_SCHEMA_TEXT_H

#include "store/span.h"

/* X(NAME, "format", "what a text must be") */
#define TEXT_FORMATS(X)                                            \
    X(UUID, "uuid", "must be a UUID")                              \
    X(DATE_TIME, "date-time", "must be an RFC 3339 date and time") \
    X(URI, "uri", "must be an absolute URI")

/* X(NAME, "pattern", "what a text must be") */
#define TEXT_PATTERNS(X)                                                   \
    X(VISIBLE, "^[\\x21-\\x7e]+$", "must be visible ASCII without spaces") \
    X(ENDS_IN_Z, "Z$", "must end in Z")                                    \
    X(HTTP_URL, "^https?://[^/?#\\s]+", "must begin with http:// or https:// and a host")

enum text_format {
    TEXT_FORMAT_ANY,
#define X(name, word, what) TEXT_FORMAT_##name,
    TEXT_FORMATS(X)
#undef X
};

enum text_pattern {
    TEXT_PATTERN_ANY,
#define X(name, pattern, what) TEXT_PATTERN_##name,
    TEXT_PATTERNS(X)
#undef X
};

/* ..._ANY when there is none of this name. */
enum text_format text_format_named(struct span name);
enum text_pattern text_pattern_named(struct span pattern);
const char *text_format_what(enum text_format format); /* "must be a UUID" */
const char *text_pattern_what(enum text_pattern pattern);

/* 8-4-4-4-12 hexadecimal digits, of either case. */
bool text_is_uuid(struct span text);
/* RFC 3339 date-time: real days, T and Z of either case, a second 60 only at the end of a day in UTC. */
bool text_is_date_time(struct span text);
/* RFC 3986 URI with a scheme; of http and https with a host. */
bool text_is_uri(struct span text);
bool text_has_format(struct span text, enum text_format format);
bool text_matches(struct span text, enum text_pattern pattern);

#endif
