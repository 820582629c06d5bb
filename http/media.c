#include "http/media.h"

#include <string.h>
#include <strings.h>

static bool is(struct span s, const char *text)
{
    size_t length = strlen(text);
    return s.size == length && memcmp(s.bytes, text, length) == 0;
}

static bool is_any_case(struct span s, const char *text)
{
    size_t length = strlen(text);
    return s.size == length && strncasecmp(s.bytes, text, length) == 0;
}

/* Takes the piece in front of the next `mark` off the front, without the white space around it. */
static struct span take_piece(struct span *rest, char mark)
{
    const char *at = rest->bytes, *end = at + rest->size;
    const char *stop = memchr(at, mark, rest->size), *next = stop ? stop + 1 : end;
    stop = stop ? stop : end;
    while (at < stop && (*at == ' ' || *at == '\t'))
        at++;
    while (stop > at && (stop[-1] == ' ' || stop[-1] == '\t'))
        stop--;
    *rest = span_of(next, (size_t)(end - next));
    return span_of(at, (size_t)(stop - at));
}

/* The value of the parameter `name` among those at `rest`, without quotes; bytes NULL: it isn't there. */
static struct span parameter_of(struct span rest, const char *name)
{
    size_t length = strlen(name);
    while (rest.size) {
        struct span piece = take_piece(&rest, ';');
        const char *at = piece.bytes;
        if (piece.size <= length || strncasecmp(at, name, length) != 0 || at[length] != '=')
            continue;
        struct span value = span_of(at + length + 1, piece.size - length - 1);
        at = value.bytes;
        if (value.size >= 2 && at[0] == '"' && at[value.size - 1] == '"')
            value = span_of(at + 1, value.size - 2);
        return value;
    }
    return span_of(NULL, 0);
}

bool media_is_json(struct span type)
{
    if (is(type, "application/json"))
        return true;
    if (!type.bytes || !is_any_case(take_piece(&type, ';'), "application/json"))
        return false;
    struct span charset = parameter_of(type, "charset");
    return !charset.bytes || is_any_case(charset, "utf-8");
}

/* By the parameters of a range: q=0, to three digits, is no. */
static bool is_wanted(struct span parameters)
{
    struct span q = parameter_of(parameters, "q");
    const char *digits = q.bytes;
    bool yes = !q.size;
    for (uint32_t i = 0; i < q.size; i++)
        yes |= digits[i] >= '1' && digits[i] <= '9';
    return yes;
}

/* The best that is said of JSON so far: the more exact range decides. */
struct accepted {
    int exact; /* 0: nothing is */
    bool yes;
};

static void accept_field(struct span value, struct accepted *a)
{
    static const char *const ranges[] = {"*/*", "application/*", "application/problem+json",
                                         "application/json"};
    while (value.size) {
        struct span range = take_piece(&value, ','), type = take_piece(&range, ';');
        bool yes = is_wanted(range);
        for (int i = 0; i < (int)(sizeof(ranges) / sizeof(*ranges)); i++)
            if (is_any_case(type, ranges[i]) && i + 1 >= a->exact)
                *a = (struct accepted){i + 1, yes};
    }
}

bool media_accepts_json(const struct request *q)
{
    struct span first = q->known[HEADER_ACCEPT];
    struct accepted a = {0, false};
    if (!first.size || is(first, "*/*") || is(first, "application/json"))
        return true;
    for (uint32_t i = 0; i < q->fields_count; i++)
        if (is_any_case(q->fields[i].name, "accept"))
            accept_field(q->fields[i].value, &a);
    return a.yes;
}

bool media_accepts(const struct request *q, const char *type)
{
    bool yes = false;
    for (uint32_t i = 0; q->known[HEADER_ACCEPT].bytes && i < q->fields_count; i++) {
        struct span value = q->fields[i].value;
        while (is_any_case(q->fields[i].name, "accept") && value.size) {
            struct span range = take_piece(&value, ',');
            yes |= is_any_case(take_piece(&range, ';'), type) && is_wanted(range);
        }
    }
    return yes;
}
