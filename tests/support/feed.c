#include "tests/support/feed.h"

#include <string.h>

#include "runtime/assert.h"

struct feeder {
    struct parser parser;
    struct parser_before before;
    struct request request;
    char *bytes;
    size_t have;              /* bytes that are there */
    size_t begin;             /* of the request */
    size_t read, body, wrote; /* of a body: what was read, where it begins, its bytes */
    bool in_body;
};

static void begin_at(struct feeder *f, size_t begin)
{
    parser_reset(&f->parser);
    f->begin = begin;
    f->in_body = false;
}

/* What is read of a request that says the same as the one before is what is read of it alone. */
static void compare_alone(const struct feeder *f, const struct parser *alone, const struct request *q)
{
    const struct request *r = &f->request;
    ASSERT(alone->length == f->parser.length && alone->chunked == f->parser.chunked);
    ASSERT(q->method == r->method && q->minor == r->minor && q->keep_alive == r->keep_alive);
    ASSERT(q->expects_continue == r->expects_continue && q->has_length == r->has_length);
    ASSERT(span_equal(q->target, r->target) && r->body.size == 0);
    ASSERT(q->fields_count == r->fields_count);
    for (uint32_t i = 0; i < q->fields_count; i++)
        ASSERT(span_equal(q->fields[i].name, r->fields[i].name) &&
               span_equal(q->fields[i].value, r->fields[i].value));
    for (int i = 0; i < HEADER_COUNT; i++)
        ASSERT(!q->known[i].bytes == !r->known[i].bytes && span_equal(q->known[i], r->known[i]));
}

static enum parsed take_head(struct feeder *f)
{
    static _Thread_local struct request request;
    size_t used = 0, used_alone = 0;
    const char *bytes = f->bytes + f->begin;
    size_t size = f->have - f->begin;
    struct parser alone = f->parser;
    /* Nothing of the last one is good any more, or all of it. */
    if (f->have & 1) {
        memset(&f->request, 0xa5, sizeof(f->request));
        f->before.fields = NULL;
    }
    enum parsed p = parser_head_after(&f->parser, &f->before, bytes, size, &f->request, &used);
    memset(&request, 0, sizeof(request));
    ASSERT(parser_head(&alone, bytes, size, &request, &used_alone) == p && used == used_alone);
    if (p == PARSED_DONE)
        compare_alone(f, &alone, &request);
    else if (p == PARSED_REFUSED)
        ASSERT(alone.status == f->parser.status && strcmp(alone.why, f->parser.why) == 0);
    if (p == PARSED_MORE && parser_empty_line(&f->parser, bytes, size)) {
        uint8_t taken = f->parser.empty_lines;
        begin_at(f, f->have);
        f->parser.empty_lines = (uint8_t)(taken + 1);
        return PARSED_MORE;
    }
    if (p != PARSED_DONE)
        return p;
    ASSERT(used > 0 && used <= f->have - f->begin);
    f->in_body = true;
    f->read = f->body = f->begin + used;
    f->wrote = 0;
    return PARSED_DONE;
}

static enum parsed take_plain(struct feeder *f)
{
    if (f->have - f->body < f->parser.length)
        return PARSED_MORE;
    f->wrote = (size_t)f->parser.length;
    f->read = f->body + f->wrote;
    return PARSED_DONE;
}

static enum parsed take_chunks(struct feeder *f)
{
    size_t used = 0, written = 0;
    enum parsed p = parser_chunks(&f->parser, f->bytes + f->read, f->have - f->read,
                                  f->bytes + f->body + f->wrote, &used, &written);
    if (p == PARSED_REFUSED)
        return p;
    ASSERT(used <= f->have - f->read && written <= used);
    f->read += used;
    f->wrote += written;
    return p;
}

static enum parsed take_one(struct feeder *f)
{
    if (!f->in_body) {
        enum parsed p = take_head(f);
        if (p != PARSED_DONE)
            return p;
    }
    return f->parser.chunked ? take_chunks(f) : take_plain(f);
}

static void take_all(struct feeder *f, struct feed *ret, feed_request *on_request, void *context)
{
    while (f->begin < f->have) {
        ret->last = take_one(f);
        if (ret->last != PARSED_DONE)
            return;
        f->request.body = span_of(f->bytes + f->body, f->wrote);
        ret->requests++;
        if (!on_request(context, &f->request, f->read)) {
            ret->stopped = true;
            return;
        }
        ret->last = PARSED_MORE;
        begin_at(f, f->read);
    }
}

struct feed feed_bytes(const char *bytes, size_t size, const size_t *cuts, size_t cuts_count,
                       feed_request *on_request, void *context)
{
    static _Thread_local char room[FEED_MAX];
    static _Thread_local struct feeder f;
    struct feed ret = {.last = PARSED_MORE};
    ASSERT(size <= FEED_MAX);
    memset(room, '?', size);
    f.bytes = room;
    f.have = 0;
    f.before.fields = NULL;
    memset(&f.request, 0, sizeof(f.request));
    begin_at(&f, 0);
    for (size_t i = 0; i <= cuts_count && ret.last == PARSED_MORE && !ret.stopped; i++) {
        size_t end = i < cuts_count ? cuts[i] : size;
        ASSERT(end >= f.have && end <= size);
        memcpy(room + f.have, bytes + f.have, end - f.have);
        f.have = end;
        take_all(&f, &ret, on_request, context);
    }
    ret.begin = f.begin;
    ret.in_body = f.in_body;
    ret.whole = ret.last == PARSED_MORE && f.begin == f.have;
    if (ret.last == PARSED_REFUSED) {
        ret.status = f.parser.status;
        ret.why = f.parser.why;
    }
    return ret;
}
