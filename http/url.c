#define _GNU_SOURCE /* memrchr */
#include "http/url.h"

#include <strings.h>

#include "http/parser.h"
#include "runtime/assert.h"
#include "runtime/json.h"

/* What a byte may be, as it is, in a path and in a query. RFC 3986 allows less in queries than browsers send: they leave
 * []{}|^`\ alone, and nothing of ours gives those a meaning there. */
enum { IN_PATH = 1, IN_QUERY = 2, IN_HOST = 4, IS_HEX = 8 };

#define BOTH (IN_PATH | IN_QUERY)
#define ALL  (IN_PATH | IN_QUERY | IN_HOST)
static const uint8_t kinds[256] = {
    ['!'] = ALL,         ['$'] = ALL,
    ['&' ... '.'] = ALL, /* & ' ( ) * + , - . */
    ['/'] = BOTH,        ['0' ... '9'] = ALL | IS_HEX,
    [':'] = ALL,         [';'] = ALL,
    ['='] = ALL,         ['?'] = IN_QUERY,
    ['@'] = BOTH,        ['A' ... 'F'] = ALL | IS_HEX,
    ['G' ... 'Z'] = ALL, ['['] = IN_QUERY | IN_HOST,
    ['\\'] = IN_QUERY,   [']'] = IN_QUERY | IN_HOST,
    ['^'] = IN_QUERY,    ['_'] = ALL,
    ['`'] = IN_QUERY,    ['a' ... 'f'] = ALL | IS_HEX,
    ['g' ... 'z'] = ALL, ['{' ... '}'] = IN_QUERY,
    ['~'] = ALL,
};

const char *url_result_text(enum url_result result)
{
    static const char *const texts[] = {
#define X(id, text) [URL_##id] = text,
        URL_RESULTS(X)
#undef X
    };
    ASSERT((size_t)result < sizeof(texts) / sizeof(*texts));
    return texts[result];
}

static unsigned hex_value(unsigned char digit)
{
    return digit <= '9' ? digit - 0x30u : (digit | 0x20u) - 'a' + 10;
}

/* Whether two digits follow the '%' at `at`. */
static bool escape_at(const unsigned char *at, const unsigned char *end)
{
    return end - at > 2 && kinds[at[1]] & IS_HEX && kinds[at[2]] & IS_HEX;
}

static unsigned char unescape(const unsigned char *at)
{
    return (unsigned char)(hex_value(at[1]) << 4 | hex_value(at[2]));
}

/* Control characters: those of ASCII, DEL, and U+0080 to U+009F. */
static bool utf8_without_controls(const unsigned char *at, size_t left, bool *ret_control)
{
    while (left) {
        size_t length = 1;
        if (*at >= 0x80)
            length = json_utf8_sequence(at, left);
        if (!length)
            return false;
        if (*at < 0x20 || *at == 0x7f || (*at == 0xc2 && at[1] < 0xa0))
            *ret_control = true;
        at += length;
        left -= length;
    }
    return true;
}

/* ---- paths ---- */

/* No empty segment but the last, and none of dots. */
static enum url_result check_segments(struct span path)
{
    const char *at = path.bytes, *end = at + path.size;
    ASSERT(at < end && *at == '/');
    while (at < end) {
        const char *segment = at + 1;
        const char *slash = memchr(segment, '/', (size_t)(end - segment));
        at = slash ? slash : end;
        size_t length = (size_t)(at - segment);
        if (length == 0 && slash)
            return URL_EMPTY;
        if (length > 0 && length <= 2 && segment[0] == '.' && segment[length - 1] == '.')
            return URL_DOTS;
    }
    return URL_OK;
}

/* What an escape may not stand for. */
static enum url_result check_escaped(unsigned char byte, bool last_segment)
{
    if (byte == '/' || byte == '\\')
        return URL_SLASH;
    if (byte == ':' && last_segment)
        return URL_COLON;
    return byte < 0x20 || byte == 0x7f ? URL_CONTROL : URL_OK;
}

static enum url_result check_decoded(struct span path)
{
    const unsigned char *at = path.bytes, *end = at + path.size;
    bool control = false;
    if (!utf8_without_controls(at, path.size, &control))
        return URL_UTF8;
    if (control)
        return URL_CONTROL;
    while ((at = memchr(at, '%', (size_t)(end - at)))) {
        if (escape_at(at, end))
            return URL_TWICE;
        at++;
    }
    return URL_OK;
}

/* `raw` has sound escapes. */
static enum url_result decode_path(struct span raw, char *room, size_t size, struct span *ret)
{
    const unsigned char *at = raw.bytes, *end = at + raw.size;
    const unsigned char *last = memrchr(raw.bytes, '/', raw.size);
    char *out = room;
    if (raw.size > size)
        return URL_LONG;
    while (at < end) {
        if (*at != '%') {
            *out++ = (char)*at++;
            continue;
        }
        unsigned char byte = unescape(at);
        enum url_result result = check_escaped(byte, at > last);
        if (result)
            return result;
        *out++ = (char)byte;
        at += 3;
    }
    *ret = span_of(room, (size_t)(out - room));
    return check_decoded(*ret);
}

/* The end of what may stand in a path; *ret_escaped: it holds escapes. */
static enum url_result scan(const unsigned char **at, const unsigned char *end, uint8_t kind,
                            bool *ret_escaped)
{
    const unsigned char *p = *at;
    for (; p < end; p++) {
        if (kinds[*p] & kind)
            continue;
        if (*p != '%')
            break;
        if (!escape_at(p, end))
            return URL_ESCAPE;
        *ret_escaped = true;
    }
    *at = p;
    return URL_OK;
}

/* From the '?' on: all of it. */
static enum url_result take_query(const unsigned char *at, const unsigned char *end, struct url *url)
{
    const unsigned char *query = ++at;
    bool escaped = false;
    enum url_result result = scan(&at, end, IN_QUERY, &escaped);
    if (result)
        return result;
    url->query = span_of(query, (size_t)(at - query));
    return at < end ? URL_BYTE : URL_OK;
}

/* path [ "?" query ], from a '/' on. */
static enum url_result take_path(struct span text, char *room, size_t size, struct url *url)
{
    const unsigned char *begin = text.bytes, *at = begin, *end = begin + text.size;
    bool escaped = false;
    enum url_result result = scan(&at, end, IN_PATH, &escaped);
    if (result)
        return result;
    url->path = span_of(begin, (size_t)(at - begin));
    if (at < end)
        result = *at == '?' ? take_query(at, end, url) : URL_BYTE;
    if (!result && escaped)
        result = decode_path(url->path, room, size, &url->path);
    return result ? result : check_segments(url->path);
}

/* ---- absolute URLs ---- */

/* Behind "http://" or "https://"; 0: it isn't one. */
static uint32_t scheme_length(struct span target)
{
    static const char *const schemes[] = {"http://", "https://"};
    for (size_t i = 0; i < 2; i++) {
        size_t length = strlen(schemes[i]);
        if (target.size > length && strncasecmp(target.bytes, schemes[i], length) == 0)
            return (uint32_t)length;
    }
    return 0;
}

/* host [ ":" port ]: no user, no escapes. Whether it is this server is the Host field's business. */
static enum url_result take_host(struct span *rest, struct url *url)
{
    const unsigned char *begin = rest->bytes, *at = begin, *end = begin + rest->size;
    while (at < end && kinds[*at] & IN_HOST)
        at++;
    if (at == begin || (at < end && *at != '/' && *at != '?'))
        return URL_AUTHORITY;
    url->host = span_of(begin, (size_t)(at - begin));
    if (!parser_is_host(url->host.bytes, url->host.size))
        return URL_AUTHORITY;
    *rest = span_of(at, (size_t)(end - at));
    return URL_OK;
}

static enum url_result take_absolute(struct span target, uint32_t scheme, bool options, char *room,
                                     size_t size, struct url *url)
{
    struct span rest = span_of((const char *)target.bytes + scheme, target.size - scheme);
    enum url_result result = take_host(&rest, url);
    if (result)
        return result;
    const unsigned char *at = rest.bytes;
    if (rest.size > 0 && *at == '/')
        return take_path(rest, room, size, url);
    url->path = span_text("/");
    url->asterisk = options && rest.size == 0; /* RFC 9112, 3.2.4: such a URL stands for "*" */
    return rest.size > 0 ? take_query(at, at + rest.size, url) : URL_OK;
}

enum url_result url_path(struct span target, bool options, char *room, size_t size, struct url *ret)
{
    struct url url = {.path = {NULL, 0}};
    enum url_result result = URL_OK;
    uint32_t scheme;
    if (target.size == 0)
        return URL_FORM;
    if (*(const char *)target.bytes == '/') {
        result = take_path(target, room, size, &url);
    } else if (options && span_equal(target, span_text("*"))) {
        url.path = span_text("/");
        url.asterisk = true;
    } else if ((scheme = scheme_length(target)) > 0) {
        result = take_absolute(target, scheme, options, room, size, &url);
    } else {
        result = URL_FORM;
    }
    if (!result)
        *ret = url;
    return result;
}

/* ---- queries ---- */

static struct span take_piece(struct span *query)
{
    const char *begin = query->bytes;
    const char *end = memchr(begin, '&', query->size);
    size_t length = end ? (size_t)(end - begin) : query->size;
    size_t used = length + (end ? 1 : 0);
    *query = span_of(begin + used, query->size - used);
    return span_of(begin, length);
}

bool url_query_next(struct span *query, struct span *ret_name, struct span *ret_value)
{
    while (query->size > 0) {
        struct span piece = take_piece(query);
        if (piece.size == 0)
            continue;
        const char *begin = piece.bytes;
        const char *equals = memchr(begin, '=', piece.size);
        size_t name = equals ? (size_t)(equals - begin) : piece.size;
        size_t value = equals ? name + 1 : name;
        *ret_name = span_of(begin, name);
        *ret_value = span_of(begin + value, piece.size - value);
        return true;
    }
    return false;
}

static bool decode(struct span text, bool plus, char *room, size_t size, size_t *ret_size)
{
    const unsigned char *at = text.bytes, *end = at + text.size;
    size_t used = 0;
    bool control = false;
    while (at < end) {
        unsigned char byte = *at;
        if (used == size || (byte == '%' && !escape_at(at, end)))
            return false;
        if (byte == '%')
            room[used++] = (char)unescape(at);
        else
            room[used++] = plus && byte == '+' ? ' ' : (char)byte;
        at += byte == '%' ? 3 : 1;
    }
    if (!utf8_without_controls((const unsigned char *)room, used, &control) || control)
        return false;
    *ret_size = used;
    return true;
}

bool url_decode(struct span text, char *room, size_t size, size_t *ret_size)
{
    return decode(text, true, room, size, ret_size);
}

bool url_unescape(struct span text, char *room, size_t size, size_t *ret_size)
{
    return decode(text, false, room, size, ret_size);
}
