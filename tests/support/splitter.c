#define _GNU_SOURCE /* memmem */
#include "tests/support/splitter.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "runtime/assert.h"

/* ---- characters, as the grammar has them ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_alpha(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool is_one_of(char c, const char *set)
{
    return c != 0 && strchr(set, c) != NULL;
}

static bool is_tchar(char c)
{
    return is_digit(c) || is_alpha(c) || is_one_of(c, "!#$%&'*+-.^_`|~");
}

static bool is_visible(char c)
{
    return c > 0x20 && c < 0x7f;
}

/* field-vchar, SP or HTAB; obs-text is a negative char */
static bool is_value_char(char c)
{
    return is_visible(c) || c == ' ' || c == '\t' || c < 0;
}

static bool all(struct span s, bool (*is)(char c))
{
    const char *text = s.bytes;
    for (uint32_t i = 0; i < s.size; i++)
        if (!is(text[i]))
            return false;
    return true;
}

static char at(struct span s, uint32_t i)
{
    return ((const char *)s.bytes)[i];
}

static bool is_word(struct span s, const char *word)
{
    return s.size == strlen(word) && strncasecmp(s.bytes, word, s.size) == 0;
}

static struct span from(struct span s, uint32_t begin)
{
    return span_of((const char *)s.bytes + begin, s.size - begin);
}

static struct span up_to(struct span s, uint32_t end)
{
    return span_of(s.bytes, end);
}

/* The position of the first c, or s.size. */
static uint32_t find(struct span s, char c)
{
    uint32_t i = 0;
    while (i < s.size && at(s, i) != c)
        i++;
    return i;
}

static struct span trimmed(struct span s)
{
    while (s.size > 0 && is_one_of(at(s, 0), " \t"))
        s = from(s, 1);
    while (s.size > 0 && is_one_of(at(s, s.size - 1), " \t"))
        s = up_to(s, s.size - 1);
    return s;
}

/* ---- reading on ---- */

struct input {
    const char *bytes;
    size_t size, used;
    const char *why;
};

static enum split refuse(struct input *in, const char *why)
{
    in->why = why;
    return SPLIT_REFUSED;
}

/* The line at in->used, without its CRLF. The first CR or LF must be that of the CRLF. */
static enum split take_line(struct input *in, struct span *ret)
{
    for (size_t i = in->used; i < in->size; i++) {
        if (in->bytes[i] == '\n')
            return refuse(in, "a bare LF");
        if (in->bytes[i] != '\r')
            continue;
        if (i + 1 == in->size)
            return SPLIT_MORE;
        if (in->bytes[i + 1] != '\n')
            return refuse(in, "a bare CR");
        *ret = span_of(in->bytes + in->used, i - in->used);
        in->used = i + 2;
        return SPLIT_DONE;
    }
    return SPLIT_MORE;
}

/* What there is of a line that hasn't ended, without the CR that may be its end. */
static struct span unfinished(const struct input *in)
{
    struct span line = span_of(in->bytes + in->used, in->size - in->used);
    return up_to(line, find(line, '\r'));
}

/* ---- the request line ---- */

/* Without its leading zeros no longer than 5 digits, and not beyond 65535 as text. */
static bool is_port(struct span s)
{
    uint32_t zeros = 0;
    while (zeros < s.size && at(s, zeros) == '0')
        zeros++;
    struct span digits = from(s, zeros);
    return all(digits, is_digit) && digits.size <= 5 &&
           (digits.size < 5 || memcmp(digits.bytes, "65535", 5) <= 0);
}

/* host [":" port], without user information */
static bool is_authority(struct span s)
{
    uint32_t i = 0;
    if (s.size > 0 && at(s, 0) == '[') {
        char text[64], address[16];
        i = find(s, ']');
        if (i == s.size)
            return false;
        snprintf(text, sizeof text, "%.*s", (int)i - 1, (const char *)s.bytes + 1);
        if (strlen(text) != i - 1 || inet_pton(AF_INET6, text, address) != 1)
            return false;
        i++;
    } else {
        while (i < s.size && at(s, i) != ':') {
            if (!is_alpha(at(s, i)) && !is_digit(at(s, i)) && !is_one_of(at(s, i), "-._~%!$&'()*+,;="))
                return false;
            i++;
        }
        if (i == 0)
            return false;
    }
    return i == s.size || (at(s, i) == ':' && is_port(from(s, i + 1)));
}

/* A token that isn't endless; of those that are registered CONNECT is for proxies. */
static bool is_method(struct span s)
{
    return s.size > 0 && s.size <= SPLIT_METHOD_MAX && all(s, is_tchar) &&
           !span_equal(s, span_text("CONNECT"));
}

static bool begins(struct span s, const char *word)
{
    return s.size > strlen(word) && is_word(up_to(s, (uint32_t)strlen(word)), word);
}

static bool is_authority_char(char c)
{
    return is_alpha(c) || is_digit(c) || is_one_of(c, "-._~%!$&'()*+,;=:@[]");
}

static bool may_have_authority(struct span rest)
{
    uint32_t slash = find(rest, '/'), question = find(rest, '?');
    uint32_t end = slash < question ? slash : question;
    struct span authority = up_to(rest, end);
    return rest.size > 0 && all(authority, is_authority_char) && !memmem(authority.bytes, end, "@@", 2);
}

/* What the target means in detail is for http/url.h. */
static bool is_target_for(struct span method, struct span target)
{
    if (target.size == 0 || !all(target, is_visible))
        return false;
    if (at(target, 0) == '/')
        return true;
    if (begins(target, "http://") || begins(target, "https://"))
        return may_have_authority(from(target, find(target, '/') + 2));
    return span_equal(target, span_text("*")) && span_equal(method, span_text("OPTIONS"));
}

/* Of an unfinished line: up to its first space, or its CR, there are only letters that a method may have. */
static bool may_begin(const struct input *in, bool forgiven)
{
    if (forgiven && in->used < in->size && in->bytes[in->used] == '\r')
        return false;
    struct span line = unfinished(in);
    struct span method = up_to(line, find(line, ' '));
    return (method.size > 0 || line.size == 0) && all(method, is_tchar);
}

static enum split take_request_line(struct input *in, struct split_request *r)
{
    struct span line;
    enum split s = take_line(in, &line);
    bool forgiven = s == SPLIT_DONE && line.size == 0;
    if (forgiven)
        s = take_line(in, &line); /* one empty line is */
    if (s == SPLIT_MORE && !may_begin(in, forgiven))
        return refuse(in, "a method that is no token");
    if (s != SPLIT_DONE)
        return s;
    uint32_t first = find(line, ' ');
    if (first == line.size)
        return refuse(in, "a request line without a space");
    r->method = up_to(line, first);
    struct span rest = from(line, first + 1);
    uint32_t second = find(rest, ' ');
    if (second == rest.size)
        return refuse(in, "a request line with one space");
    r->target = up_to(rest, second);
    struct span version = from(rest, second + 1);
    if (!is_method(r->method))
        return refuse(in, "a method that is none, or is a proxy's");
    if (r->target.size > SPLIT_LINE_MAX)
        return refuse(in, "a long target");
    if (!is_target_for(r->method, r->target))
        return refuse(in, "a target that isn't one of this method");
    if (!span_equal(version, span_text("HTTP/1.1")) && !span_equal(version, span_text("HTTP/1.0")))
        return refuse(in, "a version other than 1.0 and 1.1");
    r->minor = (uint32_t)(at(version, 7) - '0');
    return SPLIT_DONE;
}

/* ---- fields ---- */

static enum split take_field(struct input *in, struct span line, struct span *ret_name,
                             struct span *ret_value)
{
    uint32_t colon = find(line, ':');
    if (colon == line.size)
        return refuse(in, "a line without a colon");
    struct span name = up_to(line, colon), value = from(line, colon + 1);
    if (name.size == 0 || !all(name, is_tchar))
        return refuse(in, "a name that is no token");
    if (!all(value, is_value_char))
        return refuse(in, "a control character in a value");
    *ret_name = name;
    *ret_value = trimmed(value);
    return SPLIT_DONE;
}

static enum split take_fields(struct input *in, struct split_request *r)
{
    for (;;) {
        struct span line, name, value;
        enum split s = take_line(in, &line);
        if (s != SPLIT_DONE)
            return s;
        if (line.size == 0)
            return SPLIT_DONE;
        if (r->fields_count == SPLIT_FIELDS_MAX)
            return refuse(in, "too many fields");
        if (take_field(in, line, &name, &value) != SPLIT_DONE)
            return SPLIT_REFUSED;
        r->fields[r->fields_count].name = name;
        r->fields[r->fields_count++].value = value;
    }
}

/* How many fields of this name there are; *ret_value is the first one's. */
static uint32_t count(const struct split_request *r, const char *name, struct span *ret_value)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->fields_count; i++)
        if (is_word(r->fields[i].name, name) && n++ == 0)
            *ret_value = r->fields[i].value;
    return n;
}

/* Is this one of the elements of a comma-separated list, in any field of this name? */
static bool lists(const struct split_request *r, const char *name, const char *word)
{
    for (uint32_t i = 0; i < r->fields_count; i++) {
        struct span rest = r->fields[i].value;
        if (!is_word(r->fields[i].name, name))
            continue;
        for (;;) {
            uint32_t comma = find(rest, ',');
            if (is_word(trimmed(up_to(rest, comma)), word))
                return true;
            if (comma == rest.size)
                break;
            rest = from(rest, comma + 1);
        }
    }
    return false;
}

/* ---- what the fields say ---- */

static enum split judge_once(struct input *in, const struct split_request *r)
{
    static const char *const once[] = {
        "host",           "content-type",   "authorization",     "origin",
        "sec-fetch-site", "traceparent",    "x-request-id",      "idempotency-key",
        "last-event-id",  "content-length", "transfer-encoding", "access-control-request-method"};
    struct span value;
    for (size_t i = 0; i < sizeof(once) / sizeof(*once); i++)
        if (count(r, once[i], &value) > 1)
            return refuse(in, "a field twice that means something once");
    return SPLIT_DONE;
}

static enum split judge_host(struct input *in, const struct split_request *r)
{
    struct span host;
    if (count(r, "host", &host) == 0)
        return r->minor == 0 ? SPLIT_DONE : refuse(in, "no Host");
    return is_authority(host) ? SPLIT_DONE : refuse(in, "a Host that is none");
}

/* 1*DIGIT, at most 2^63 - 1. */
static bool length_of(struct span text, uint64_t *ret)
{
    uint64_t n = 0;
    if (text.size == 0 || text.size > 19 || !all(text, is_digit))
        return false;
    for (uint32_t i = 0; i < text.size; i++)
        n = n * 10 + (uint64_t)(at(text, i) - '0');
    *ret = n;
    return n <= INT64_MAX;
}

/* White space that some readers don't take for such. */
static bool followed_by_tab(struct span value)
{
    const char *end = (const char *)value.bytes + value.size;
    return end[strspn(end, " ")] == '\t';
}

static enum split judge_framing(struct input *in, struct split_request *r, uint64_t *ret_length)
{
    struct span length = span_of("0", 1), coding;
    r->has_length = count(r, "content-length", &length) > 0;
    r->chunked = count(r, "transfer-encoding", &coding) > 0;
    if (r->has_length && followed_by_tab(length))
        return refuse(in, "a tab behind a Content-Length");
    if (r->has_length && r->chunked)
        return refuse(in, "Content-Length and Transfer-Encoding");
    if (!length_of(length, ret_length))
        return refuse(in, "a Content-Length that is no number");
    if (r->chunked && (r->minor == 0 || !is_word(coding, "chunked") || followed_by_tab(coding)))
        return refuse(in, "a transfer coding that isn't one chunked");
    r->has_length |= r->chunked;
    return SPLIT_DONE;
}

static enum split judge_wishes(struct input *in, struct split_request *r, uint64_t length)
{
    bool close = lists(r, "connection", "close");
    r->keep_alive = !close && (r->minor == 1 || lists(r, "connection", "keep-alive"));
    r->expects_continue = false;
    for (uint32_t i = 0; i < r->fields_count; i++) {
        if (!is_word(r->fields[i].name, "expect"))
            continue;
        if (!is_word(r->fields[i].value, "100-continue"))
            return refuse(in, "an expectation that nobody meets");
        r->expects_continue = r->minor == 1 && (r->chunked || length > 0);
    }
    return SPLIT_DONE;
}

/* ---- bodies ---- */

static void keep(struct split_request *r, const char *bytes, size_t size)
{
    ASSERT(size <= SPLIT_BODY_MAX - r->body_size);
    memcpy(r->body + r->body_size, bytes, size);
    r->body_size += size;
}

static enum split take_plain(struct input *in, struct split_request *r, uint64_t length)
{
    if (in->size - in->used < length)
        return SPLIT_MORE;
    keep(r, in->bytes + in->used, (size_t)length);
    in->used += (size_t)length;
    return SPLIT_DONE;
}

static uint64_t value_of_hex(struct span digits)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < digits.size; i++) {
        char c = at(digits, i);
        n = n * 16 + (uint64_t)(is_digit(c) ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return n;
}

/* 1*HEXDIG [";" anything that a field's value may hold] */
static enum split judge_chunk_line(struct input *in, struct span line, bool whole, uint64_t *ret_size)
{
    uint32_t semicolon = find(line, ';');
    struct span digits = up_to(line, semicolon);
    bool none = digits.size == 0 && (whole || line.size > 0 || in->used < in->size);
    if (line.size > SPLIT_CHUNK_LINE + !whole)
        return refuse(in, "a long chunk line");
    if (none || digits.size > 16 || !all(digits, is_hex))
        return refuse(in, "a chunk size that is no number");
    if (!all(from(line, semicolon), is_value_char))
        return refuse(in, "a control character in a chunk's extension");
    *ret_size = value_of_hex(digits);
    if (*ret_size > INT64_MAX)
        return refuse(in, "a chunk of 2^63 bytes");
    return whole ? SPLIT_DONE : SPLIT_MORE;
}

static enum split take_chunk_line(struct input *in, uint64_t *ret_size)
{
    struct span line;
    enum split s = take_line(in, &line);
    if (s == SPLIT_MORE)
        return judge_chunk_line(in, unfinished(in), false, ret_size);
    if (s != SPLIT_DONE)
        return s;
    return judge_chunk_line(in, line, true, ret_size);
}

static enum split judge_trailer(struct input *in, struct span line, bool whole)
{
    struct span name, value;
    bool ended = in->used + line.size < in->size; /* its CR is there */
    if (!whole && find(line, ':') == line.size && (!ended || line.size == 0))
        return all(line, is_tchar) ? SPLIT_MORE : refuse(in, "a name that is no token");
    if (take_field(in, line, &name, &value) != SPLIT_DONE)
        return SPLIT_REFUSED;
    if (is_word(name, "content-length") || is_word(name, "transfer-encoding") || is_word(name, "host") ||
        is_word(name, "connection") || is_word(name, "trailer"))
        return refuse(in, "a trailer that is part of the head");
    return whole ? SPLIT_DONE : SPLIT_MORE;
}

static enum split take_trailers(struct input *in)
{
    size_t began = in->used;
    for (;;) {
        struct span line;
        enum split s = take_line(in, &line);
        if (s == SPLIT_REFUSED)
            return s;
        if ((s == SPLIT_DONE ? in->used : in->size) - began > SPLIT_TRAILERS_MAX)
            return refuse(in, "long trailers");
        if (s == SPLIT_DONE && line.size == 0)
            return SPLIT_DONE;
        bool whole = s == SPLIT_DONE;
        s = judge_trailer(in, whole ? line : unfinished(in), whole);
        if (s != SPLIT_DONE)
            return s;
    }
}

static enum split take_chunks(struct input *in, struct split_request *r)
{
    for (;;) {
        uint64_t size;
        enum split s = take_chunk_line(in, &size);
        if (s != SPLIT_DONE)
            return s;
        if (size == 0)
            return take_trailers(in);
        s = take_plain(in, r, size);
        if (s != SPLIT_DONE)
            return s;
        size_t left = in->size - in->used;
        if ((left > 0 && in->bytes[in->used] != '\r') || (left > 1 && in->bytes[in->used + 1] != '\n'))
            return refuse(in, "something behind a chunk's data");
        if (left < 2)
            return SPLIT_MORE;
        in->used += 2;
    }
}

/* ---- the whole ---- */

static enum split take_all(struct input *in, struct split_request *r)
{
    uint64_t length = 0;
    enum split s = take_request_line(in, r);
    if (s == SPLIT_DONE)
        s = take_fields(in, r);
    if (s != SPLIT_REFUSED && in->used > SPLIT_HEAD_MAX)
        return refuse(in, "a long head");
    r->head_size = in->used;
    if (s == SPLIT_DONE)
        s = judge_once(in, r);
    if (s == SPLIT_DONE)
        s = judge_host(in, r);
    if (s == SPLIT_DONE)
        s = judge_framing(in, r, &length);
    if (s == SPLIT_DONE)
        s = judge_wishes(in, r, length);
    if (s != SPLIT_DONE)
        return s;
    return r->chunked ? take_chunks(in, r) : take_plain(in, r, length);
}

enum split split_request(const char *bytes, size_t size, struct split_request *ret, size_t *ret_used)
{
    struct input in = {.bytes = bytes, .size = size};
    ret->fields_count = 0;
    ret->body_size = 0;
    ret->why = NULL;
    enum split s = take_all(&in, ret);
    ret->why = in.why;
    *ret_used = in.used;
    return s;
}
