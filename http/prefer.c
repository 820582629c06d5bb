#include "http/prefer.h"

#include <string.h>
#include <strings.h>

#include "http/response.h"

/* Up to the next `mark` that stands in no quoted string, or to the end. */
static const char *unquoted(const char *at, const char *end, char mark)
{
    bool quoted = false;
    for (; at < end && (quoted || *at != mark); at++) {
        if (*at == '"')
            quoted = !quoted;
        else if (quoted && *at == '\\' && at + 1 < end)
            at++;
    }
    return at;
}

static struct span trimmed(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    while (end > at && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    return span_of(at, (size_t)(end - at));
}

static bool is(struct span s, const char *name)
{
    return s.size == strlen(name) && strncasecmp(s.bytes, name, s.size) == 0;
}

/* False: no number of seconds. A longer time than any is granted is cut to that. */
static bool take_seconds(struct span text, uint32_t *ret)
{
    const char *digits = text.bytes;
    if (text.size >= 2 && digits[0] == '"' && digits[text.size - 1] == '"')
        text = span_of(++digits, text.size - 2);
    uint32_t seconds = 0;
    for (uint32_t i = 0; i < text.size; i++) {
        if (digits[i] < '0' || digits[i] > '9')
            return false;
        seconds = seconds * 10 + (uint32_t)(digits[i] - '0');
        seconds = seconds < PREFER_WAIT_MAX_S ? seconds : PREFER_WAIT_MAX_S;
    }
    *ret = seconds;
    return text.size > 0;
}

/* NAME or NAME=VALUE, and parameters behind a ';', which none of ours has. */
static void take_one(const char *at, const char *end, struct prefer *ret)
{
    const char *stop = unquoted(at, end, ';'), *equals = unquoted(at, stop, '=');
    struct span name = trimmed(at, equals);
    if (is(name, "respond-async"))
        ret->respond_async = true;
    else if (is(name, "wait") && equals < stop && !ret->waits)
        ret->waits = take_seconds(trimmed(equals + 1, stop), &ret->wait_s);
}

struct prefer prefer_read(const struct request *q)
{
    struct prefer prefer = {0};
    if (!q->known[HEADER_PREFER].bytes)
        return prefer;
    for (uint32_t i = 0; i < q->fields_count; i++) {
        if (!is(q->fields[i].name, "prefer"))
            continue;
        const char *at = q->fields[i].value.bytes, *end = at + q->fields[i].value.size;
        while (at < end) {
            const char *comma = unquoted(at, end, ',');
            take_one(at, comma, &prefer);
            at = comma + 1;
        }
    }
    return prefer;
}

void prefer_applied(const struct prefer *prefer, struct response *r)
{
    if (prefer->waits)
        response_header(r, "Preference-Applied", "%swait=%u", prefer->respond_async ? "respond-async, " : "",
                        prefer->wait_s);
    else if (prefer->respond_async)
        response_header(r, "Preference-Applied", "respond-async");
}
