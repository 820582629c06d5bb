#include "runtime/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/assert.h"

enum { JSON_DIGITS_MAX = 20, JSON_SCALE_MAX = 18 }; /* 2^64 - 1 has 20 digits */

static const char json_hex_digits[] = "0123456789abcdef";

void json_sink_init(struct json_sink *sink, char *buffer, size_t capacity, json_flush flush, void *context)
{
    ASSERT(capacity > 0);
    *sink = (struct json_sink){.buffer = buffer, .capacity = capacity, .flush = flush, .context = context};
}

static void sink_fail(struct json_sink *sink, enum json_status status)
{
    if (sink->status == JSON_OK)
        sink->status = status;
}

enum json_status json_sink_flush(struct json_sink *sink)
{
    if (sink->status == JSON_OK && sink->flush != NULL && sink->length > 0) {
        if (!sink->flush(sink->context, sink->buffer, sink->length))
            sink_fail(sink, JSON_FLUSH);
        sink->length = 0;
    }
    return sink->status;
}

void json_sink_bytes(struct json_sink *sink, const char *bytes, size_t length)
{
    if (sink->status == JSON_OK && length > 0 && length <= sink->capacity - sink->length) {
        memcpy(sink->buffer + sink->length, bytes, length);
        sink->length += length;
        return;
    }
    if (sink->flush == NULL && length > sink->capacity - sink->length)
        sink_fail(sink, JSON_FULL);
    while (sink->status == JSON_OK && length > 0) {
        size_t room = sink->capacity - sink->length;
        size_t part = length < room ? length : room;

        memcpy(sink->buffer + sink->length, bytes, part);
        sink->length += part;
        bytes += part;
        length -= part;
        if (length > 0)
            json_sink_flush(sink);
    }
}

/* Most of what stands between values. */
static void byte_write(struct json_sink *sink, char byte)
{
    if (sink->status == JSON_OK && sink->length < sink->capacity)
        sink->buffer[sink->length++] = byte;
    else
        json_sink_bytes(sink, &byte, 1);
}

void json_sink_text(struct json_sink *sink, const char *text)
{
    json_sink_bytes(sink, text, strlen(text));
}

/* Writes the digits so that they end at `end`; returns where they begin. */
static char *digits_before(char *end, uint64_t value)
{
    do {
        *--end = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    return end;
}

static uint64_t magnitude(int64_t value)
{
    return value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
}

void json_sink_uint(struct json_sink *sink, uint64_t value)
{
    char text[JSON_DIGITS_MAX];
    char *end = text + sizeof(text);
    char *begin = digits_before(end, value);

    json_sink_bytes(sink, begin, (size_t)(end - begin));
}

void json_sink_int(struct json_sink *sink, int64_t value)
{
    char text[JSON_DIGITS_MAX + 1];
    char *end = text + sizeof(text);
    char *begin = digits_before(end, magnitude(value));

    if (value < 0)
        *--begin = '-';
    json_sink_bytes(sink, begin, (size_t)(end - begin));
}

void json_sink_hex(struct json_sink *sink, uint64_t value)
{
    char text[2 + 16];
    char *end = text + sizeof(text);
    char *begin = end;

    do {
        *--begin = json_hex_digits[value & 15];
        value >>= 4;
    } while (value > 0);
    *--begin = 'x';
    *--begin = '0';
    json_sink_bytes(sink, begin, (size_t)(end - begin));
}

void json_sink_decimal(struct json_sink *sink, int64_t value, unsigned scale)
{
    char text[1 + 1 + JSON_DIGITS_MAX + 1]; /* sign, leading 0, digits, point */
    char *end = text + sizeof(text);
    char *begin = end;
    uint64_t rest = magnitude(value);

    ASSERT(scale <= JSON_SCALE_MAX);
    while (scale > 0 && rest % 10 == 0) {
        rest /= 10;
        scale--;
    }
    if (scale > 0) {
        for (; scale > 0; scale--) {
            *--begin = (char)('0' + rest % 10);
            rest /= 10;
        }
        *--begin = '.';
    }
    begin = digits_before(begin, rest);
    if (value < 0)
        *--begin = '-';
    json_sink_bytes(sink, begin, (size_t)(end - begin));
}

void json_init(struct json *json, struct json_sink *sink)
{
    *json = (struct json){.sink = sink};
}

static uint64_t level_bit(const struct json *json)
{
    return UINT64_C(1) << (json->depth - 1);
}

static bool in_object(const struct json *json)
{
    return json->depth > 0 && (json->objects & level_bit(json)) != 0;
}

/* A comma, unless this is the first member of its container. */
static void member_begin(struct json *json)
{
    if (json->filled & level_bit(json))
        byte_write(json->sink, ',');
    json->filled |= level_bit(json);
}

/* Whether a value may stand here; writes what separates it from the one before. */
static bool value_begin(struct json *json)
{
    if (json->depth == 0 ? json->rooted : in_object(json) != json->keyed)
        sink_fail(json->sink, JSON_MISUSE);
    if (json->sink->status != JSON_OK)
        return false;
    if (json->depth == 0)
        json->rooted = true;
    else if (!json->keyed)
        member_begin(json);
    json->keyed = false;
    return true;
}

static void container_begin(struct json *json, char bracket, bool object)
{
    if (!value_begin(json))
        return;
    if (json->depth == JSON_DEPTH_MAX) {
        sink_fail(json->sink, JSON_DEPTH);
        return;
    }
    json->depth++;
    json->filled &= ~level_bit(json);
    json->objects = object ? json->objects | level_bit(json) : json->objects & ~level_bit(json);
    byte_write(json->sink, bracket);
}

static void container_end(struct json *json, char bracket, bool object)
{
    if (json->depth == 0 || in_object(json) != object || json->keyed) {
        sink_fail(json->sink, JSON_MISUSE);
        return;
    }
    json->depth--;
    byte_write(json->sink, bracket);
}

void json_object_begin(struct json *json)
{
    container_begin(json, '{', true);
}

void json_object_end(struct json *json)
{
    container_end(json, '}', true);
}

void json_array_begin(struct json *json)
{
    container_begin(json, '[', false);
}

void json_array_end(struct json *json)
{
    container_end(json, ']', false);
}

/* Unicode 15, table 3-7. */
size_t json_utf8_sequence(const unsigned char *at, size_t left)
{
    unsigned char lead = at[0];
    size_t length = lead >= 0xc2 && lead <= 0xdf   ? 2
                    : lead >= 0xe0 && lead <= 0xef ? 3
                    : lead >= 0xf0 && lead <= 0xf4 ? 4
                                                   : 0;
    unsigned char low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80; /* no overlong forms */
    unsigned char high = lead == 0xed   ? 0x9f
                         : lead == 0xf4 ? 0x8f
                                        : 0xbf; /* no surrogates, nothing above U+10FFFF */

    if (length == 0 || length > left || at[1] < low || at[1] > high)
        return 0;
    for (size_t i = 2; i < length; i++)
        if (at[i] < 0x80 || at[i] > 0xbf)
            return 0;
    return length;
}

static void escape_write(struct json_sink *sink, unsigned code)
{
    static const char names[] = "btn.fr"; /* U+0008 to U+000D; U+000B has no short name */
    char text[6] = {'\\', 'u'};

    if (code >= 8 && code <= 13 && code != 11) {
        text[1] = names[code - 8];
        json_sink_bytes(sink, text, 2);
        return;
    }
    for (unsigned i = 0; i < 4; i++)
        text[2 + i] = json_hex_digits[(code >> (12 - 4 * i)) & 15];
    json_sink_bytes(sink, text, sizeof(text));
}

/* Writes the one character at `at` which is not plain ASCII text; returns how many bytes it took. */
static size_t special_write(struct json_sink *sink, const unsigned char *at, size_t left)
{
    size_t length;

    if (at[0] == '"' || at[0] == '\\') {
        json_sink_bytes(sink, at[0] == '"' ? "\\\"" : "\\\\", 2);
        return 1;
    }
    if (at[0] < 0x80) {
        escape_write(sink, at[0]);
        return 1;
    }
    length = json_utf8_sequence(at, left);
    if (length == 0)
        json_sink_text(sink, "\xef\xbf\xbd");
    else if (length == 2 && at[0] == 0xc2 && at[1] < 0xa0)
        escape_write(sink, at[1]);
    else if (length == 3 && at[0] == 0xe2 && at[1] == 0x80 && (at[2] == 0xa8 || at[2] == 0xa9))
        escape_write(sink, 0x2000u + (at[2] & 0x3fu));
    else
        json_sink_bytes(sink, (const char *)at, length);
    return length == 0 ? 1 : length;
}

/* What stands in a string as it is. */
static const bool plain[256] = {
    [0x20 ... '"' - 1] = true, ['"' + 1 ... '\\' - 1] = true, ['\\' + 1 ... 0x7e] = true};

typedef signed char sixteen __attribute__((vector_size(16)));
typedef uint64_t two_words __attribute__((vector_size(16)));

/* Whether any of sixteen bytes is not plain. What is no ASCII is below a space, since the bytes have a sign. */
static bool any_special(sixteen bytes)
{
    two_words found = (two_words)((bytes < 0x20) | (bytes == 0x7f) | (bytes == '"') | (bytes == '\\'));

    return (found[0] | found[1]) != 0;
}

static size_t plain_run(const unsigned char *at, size_t length)
{
    size_t run = 0;
    sixteen bytes;

    while (length - run >= sizeof(bytes)) {
        memcpy(&bytes, at + run, sizeof(bytes));
        if (any_special(bytes))
            break;
        run += sizeof(bytes);
    }
    if (run > 0 && length - run < sizeof(bytes)) { /* the last sixteen: those in front of `run` are plain */
        memcpy(&bytes, at + length - sizeof(bytes), sizeof(bytes));
        if (!any_special(bytes))
            return length;
    }
    while (run < length && plain[at[run]])
        run++;
    return run;
}

static void quoted_write(struct json_sink *sink, const char *bytes, size_t length)
{
    const unsigned char *at = (const unsigned char *)bytes;
    size_t i = 0;

    byte_write(sink, '"');
    while (i < length) {
        size_t run = i + plain_run(at + i, length - i);

        json_sink_bytes(sink, bytes + i, run - i);
        i = run < length ? run + special_write(sink, at + run, length - run) : run;
    }
    byte_write(sink, '"');
}

void json_key(struct json *json, const char *key)
{
    if (!in_object(json) || json->keyed)
        sink_fail(json->sink, JSON_MISUSE);
    if (json->sink->status != JSON_OK)
        return;
    member_begin(json);
    quoted_write(json->sink, key, strlen(key));
    byte_write(json->sink, ':');
    json->keyed = true;
}

void json_string_n(struct json *json, const char *bytes, size_t length)
{
    if (value_begin(json))
        quoted_write(json->sink, bytes, length);
}

void json_string(struct json *json, const char *text)
{
    if (text == NULL)
        json_null(json);
    else
        json_string_n(json, text, strlen(text));
}

void json_int(struct json *json, int64_t value)
{
    if (value_begin(json))
        json_sink_int(json->sink, value);
}

void json_uint(struct json *json, uint64_t value)
{
    if (value_begin(json))
        json_sink_uint(json->sink, value);
}

void json_uint_string(struct json *json, uint64_t value)
{
    if (!value_begin(json))
        return;
    byte_write(json->sink, '"');
    json_sink_uint(json->sink, value);
    byte_write(json->sink, '"');
}

void json_hex_string(struct json *json, uint64_t value)
{
    if (!value_begin(json))
        return;
    byte_write(json->sink, '"');
    json_sink_hex(json->sink, value);
    byte_write(json->sink, '"');
}

void json_decimal(struct json *json, int64_t value, unsigned scale)
{
    if (value_begin(json))
        json_sink_decimal(json->sink, value, scale);
}

void json_double(struct json *json, double value)
{
    char text[32];

    if (!__builtin_isfinite(value)) {
        json_null(json);
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    json_raw(json, text, strlen(text));
}

void json_bool(struct json *json, bool value)
{
    json_raw(json, value ? "true" : "false", value ? 4 : 5);
}

void json_null(struct json *json)
{
    json_raw(json, "null", 4);
}

void json_raw(struct json *json, const char *bytes, size_t length)
{
    if (value_begin(json))
        json_sink_bytes(json->sink, bytes, length);
}

void json_foreign(struct json *json, const char *bytes, size_t length)
{
    const unsigned char *at = (const unsigned char *)bytes;
    size_t i = 0;

    if (!value_begin(json))
        return;
    while (i < length) {
        size_t run = i;

        while (run < length && at[run] >= ' ' && at[run] < 0x7f)
            run++;
        json_sink_bytes(json->sink, bytes + i, run - i);
        if (run < length && at[run] < ' ')
            byte_write(json->sink, ' ');
        i = run < length && at[run] >= ' ' ? run + special_write(json->sink, at + run, length - run)
                                           : run + 1;
    }
}

enum json_status json_end(struct json *json)
{
    if (json->depth > 0 || !json->rooted)
        sink_fail(json->sink, JSON_MISUSE);
    json->rooted = false;
    return json_sink_flush(json->sink);
}

enum json_status json_end_line(struct json *json)
{
    if (json->depth > 0 || !json->rooted)
        sink_fail(json->sink, JSON_MISUSE);
    json_sink_bytes(json->sink, "\n", 1);
    return json_end(json);
}

const char *json_status_name(enum json_status status)
{
    static const char *const names[] = {
        [JSON_OK] = "ok",       [JSON_FULL] = "full",     [JSON_FLUSH] = "flush",
        [JSON_DEPTH] = "depth", [JSON_MISUSE] = "misuse",
    };

    return status <= JSON_MISUSE ? names[status] : "unknown";
}
