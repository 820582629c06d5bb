/* JSON (and plain text) written as a stream: no tree, no allocation.
 *
 * A json_sink takes bytes into a buffer of the caller. With a flush function the buffer is handed on each
 * time it is full and at the end, so a document of any length needs only a small buffer; without one a
 * document that does not fit ends in JSON_FULL. A json writes one document after the other into a sink and
 * keeps track of commas, colons and nesting.
 *
 * Errors stick: after the first one nothing more is written, every later call does nothing, and json_end
 * tells. So a sequence of calls needs one check.
 *
 * Always true of the output, whatever the strings contain: valid UTF-8, no line break, no control character.
 * A byte that is not part of valid UTF-8 becomes U+FFFD; control characters, DEL, U+0080 to U+009F, U+2028
 * and U+2029 are escaped.
 *
 * Nothing here blocks, allocates or touches global state; all functions but json_double may be called from a
 * signal handler if the flush function may.
 */
#ifndef COPPICE_RUNTIME_JSON_H
#define COPPICE_RUNTIME_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One bit per level in a 64-bit word. The API limits input to 10; nothing of ours nests deeper than the
 * supervision tree of /stats/tree, two levels for each supervisor. */
enum { JSON_DEPTH_MAX = 64 };

enum json_status {
    JSON_OK,
    JSON_FULL,   /* no flush function and no room left */
    JSON_FLUSH,  /* the flush function returned false */
    JSON_DEPTH,  /* more than JSON_DEPTH_MAX open objects and arrays */
    JSON_MISUSE, /* calls that do not make a document: a value without its key, an end without a begin, ... */
};

/* Takes all `length` bytes (at least 1) or returns false, which ends the document. */
typedef bool (*json_flush)(void *context, const char *bytes, size_t length);

struct json_sink {
    char *buffer; /* borrowed */
    size_t capacity;
    size_t length; /* bytes in the buffer that were not flushed */
    json_flush flush;
    void *context; /* borrowed */
    enum json_status status;
};

/* `buffer` (capacity >= 1) stays the caller's and must outlive the sink. `flush` may be NULL. */
void json_sink_init(struct json_sink *sink, char *buffer, size_t capacity, json_flush flush, void *context);
/* Bytes as they are. Without a flush function either all of them go in or none. */
void json_sink_bytes(struct json_sink *sink, const char *bytes, size_t length);
void json_sink_text(struct json_sink *sink, const char *text);
void json_sink_int(struct json_sink *sink, int64_t value);
void json_sink_uint(struct json_sink *sink, uint64_t value);
void json_sink_hex(struct json_sink *sink, uint64_t value); /* 0x7ffe10 */
/* value / 10^scale, exact, without trailing zeros: (75900000, 6) is 75.9, (-5, 1) is -0.5. scale <= 18. */
void json_sink_decimal(struct json_sink *sink, int64_t value, unsigned scale);
/* Hands on what is in the buffer, if there is a flush function. Returns the status. */
enum json_status json_sink_flush(struct json_sink *sink);

struct json {
    struct json_sink *sink; /* borrowed */
    uint64_t objects;       /* bit d: the container at depth d + 1 is an object */
    uint64_t filled;        /* bit d: it has a member already */
    uint8_t depth;
    bool keyed;  /* a key was written, its value was not */
    bool rooted; /* the document has its value */
};

void json_init(struct json *json, struct json_sink *sink);

void json_object_begin(struct json *json);
void json_object_end(struct json *json);
void json_array_begin(struct json *json);
void json_array_end(struct json *json);

/* Keys are escaped like strings. */
void json_key(struct json *json, const char *key);

void json_string(struct json *json, const char *text); /* NULL writes null */
void json_string_n(struct json *json, const char *bytes, size_t length);
void json_int(struct json *json, int64_t value);
void json_uint(struct json *json, uint64_t value);
/* In quotes, for values which can pass 2^53 and would be rounded by readers that keep numbers as doubles. */
void json_uint_string(struct json *json, uint64_t value);
void json_hex_string(struct json *json, uint64_t value);
void json_decimal(struct json *json, int64_t value, unsigned scale);
/* The shortest of 15 to 17 digits that reads back as the same number; null for infinities and NaN. Uses
 * snprintf. */
void json_double(struct json *json, double value);
void json_bool(struct json *json, bool value);
void json_null(struct json *json);
/* A complete JSON value, made elsewhere, as it is. */
void json_raw(struct json *json, const char *bytes, size_t length);
/* A sound JSON value that somebody else wrote, for a line or a terminal: with spaces for what breaks lines between its tokens, and
 * what a terminal obeys escaped. It means the same. */
void json_foreign(struct json *json, const char *bytes, size_t length);

/* Ends a document: JSON_MISUSE if it is not complete. Flushes. The next call may begin another document. */
enum json_status json_end(struct json *json);
/* The same with a line feed behind it: one document, one line. */
enum json_status json_end_line(struct json *json);

/* For a member of an object, which is most of them. */
#define JSON_MEMBER(json, key, kind, ...) (json_key((json), (key)), json_##kind((json), __VA_ARGS__))

const char *json_status_name(enum json_status status);

/* How many bytes (2 to 4) the well-formed UTF-8 sequence at `at` has; 0 if there is none, or only one byte of
 * ASCII. */
size_t json_utf8_sequence(const unsigned char *at, size_t left);

#endif
