#include "tests/support/compare.h"

#include <stdarg.h>
#include <stdio.h>
#include <strings.h>

struct comparing {
    const char *bytes;
    size_t size, at; /* the splitter's */
    bool same_bytes; /* so that places can be compared as well */
    struct compared result;
};

static _Thread_local struct split_request split;

__attribute__((format(printf, 2, 3))) static bool differ(struct comparing *c, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(c->result.differs, sizeof(c->result.differs), format, list);
    va_end(list);
    return false;
}

/* ---- one request ---- */

static bool is_known(struct span method)
{
#define X(name, bit)                                                     \
    if ((bit) != METHOD_UNKNOWN && span_equal(method, span_text(#name))) \
        return true;
    METHODS(X)
#undef X
    return false;
}

static bool same_line(struct comparing *c, const struct request *q)
{
    const char *method = method_name(q->method);
    if (q->method == METHOD_UNKNOWN ? is_known(split.method) : !span_equal(split.method, span_text(method)))
        return differ(c, "the method: %s and %.*s", method, (int)split.method.size,
                      (const char *)split.method.bytes);
    if (!span_equal(q->target, split.target))
        return differ(c, "the target: %.*s and %.*s", (int)q->target.size, (const char *)q->target.bytes,
                      (int)split.target.size, (const char *)split.target.bytes);
    if (q->minor != split.minor)
        return differ(c, "the version: 1.%u and 1.%u", q->minor, split.minor);
    return true;
}

static bool same_fields(struct comparing *c, const struct request *q)
{
    if (q->fields_count != split.fields_count)
        return differ(c, "the number of fields: %u and %u", q->fields_count, split.fields_count);
    for (uint32_t i = 0; i < q->fields_count; i++) {
        if (!span_equal(q->fields[i].name, split.fields[i].name))
            return differ(c, "the name of field %u", i);
        if (!span_equal(q->fields[i].value, split.fields[i].value))
            return differ(c, "the value of field %u: '%.*s' and '%.*s'", i, (int)q->fields[i].value.size,
                          (const char *)q->fields[i].value.bytes, (int)split.fields[i].value.size,
                          (const char *)split.fields[i].value.bytes);
    }
    return true;
}

static struct span first_of(const char *name)
{
    for (uint32_t i = 0; i < split.fields_count; i++)
        if (split.fields[i].name.size == strlen(name) &&
            strncasecmp(split.fields[i].name.bytes, name, split.fields[i].name.size) == 0)
            return split.fields[i].value;
    return (struct span){NULL, 0};
}

static bool same_known(struct comparing *c, const struct request *q)
{
    static const char *const names[HEADER_COUNT] = {
#define X(id, name, once) [HEADER_##id] = (name),
        HEADERS(X)
#undef X
    };
    for (int i = 0; i < HEADER_COUNT; i++) {
        struct span value = first_of(names[i]);
        if (!value.bytes != !q->known[i].bytes || !span_equal(value, q->known[i]))
            return differ(c, "what %s is", names[i]);
    }
    return true;
}

static bool same_wishes(struct comparing *c, const struct request *q)
{
    if (q->keep_alive != split.keep_alive)
        return differ(c, "whether it stays: %d and %d", q->keep_alive, split.keep_alive);
    if (q->expects_continue != split.expects_continue)
        return differ(c, "whether 100 is expected: %d and %d", q->expects_continue, split.expects_continue);
    if (q->has_length != split.has_length)
        return differ(c, "whether a body was announced: %d and %d", q->has_length, split.has_length);
    return true;
}

static bool same_body(struct comparing *c, const struct request *q, size_t end, size_t used)
{
    if (!span_equal(q->body, span_of(split.body, split.body_size)))
        return differ(c, "the body: %u and %zu bytes", q->body.size, split.body_size);
    if (c->same_bytes && end != c->at + used)
        return differ(c, "where it ends: %zu and %zu", end, c->at + used);
    return true;
}

static bool take(void *context, const struct request *q, size_t end)
{
    struct comparing *c = context;
    size_t used = 0;
    enum split s = split_request(c->bytes + c->at, c->size - c->at, &split, &used);
    if (s == SPLIT_MORE)
        return differ(c, "a request is taken that isn't whole");
    if (s == SPLIT_REFUSED)
        return differ(c, "a request is taken that has %s", split.why);
    if (!same_line(c, q) || !same_fields(c, q) || !same_known(c, q) || !same_wishes(c, q) ||
        !same_body(c, q, end, used))
        return false;
    c->at += used;
    c->result.requests++;
    return true;
}

/* ---- the end ---- */

/* The parser may wait for the end of a head before it looks at what is in it. */
static bool head_goes_on(const struct comparing *c)
{
    size_t i = c->at;
    if (i + 2 <= c->size && memcmp(c->bytes + i, "\r\n", 2) == 0)
        i += 2; /* the one that is forgiven */
    for (; i + 4 <= c->size; i++)
        if (memcmp(c->bytes + i, "\r\n\r\n", 4) == 0)
            return false;
    return c->size - c->at < SPLIT_LINE_MAX;
}

static void end(struct comparing *c, const struct feed *feed)
{
    size_t used = 0;
    bool rest = c->at < c->size;
    enum split s = rest ? split_request(c->bytes + c->at, c->size - c->at, &split, &used) : SPLIT_MORE;
    c->result.refused = feed->last == PARSED_REFUSED;
    if (s == SPLIT_DONE)
        differ(c,
               feed->last == PARSED_REFUSED ? "a good request is refused: %s" : "a good request isn't taken",
               feed->why);
    else if (feed->last == PARSED_REFUSED && s == SPLIT_MORE)
        differ(c, "what may become a request is refused: %s", feed->why);
    else if (feed->last == PARSED_MORE && s == SPLIT_REFUSED && !head_goes_on(c))
        differ(c, "more is waited for, and there is %s", split.why);
    else if (feed->last == PARSED_REFUSED && (feed->status < 400 || feed->status > 599 || !feed->why))
        differ(c, "a refusal with status %d", feed->status);
}

struct compared compare_readers(const char *bytes, size_t size, const char *seen, size_t seen_size,
                                const size_t *cuts, size_t cuts_count)
{
    struct comparing c = {.bytes = bytes, .size = size, .same_bytes = bytes == seen};
    struct feed feed = feed_bytes(seen, seen_size, cuts, cuts_count, take, &c);
    if (!feed.stopped)
        end(&c, &feed);
    c.result.at = c.at;
    return c.result;
}
