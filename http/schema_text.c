#include "http/schema_text.h"

#include <arpa/inet.h>

#include "store/uuid.h"

static const struct {
    const char *name, *what;
} formats[] = {[TEXT_FORMAT_ANY] = {"", ""},
#define X(name, word, what) [TEXT_FORMAT_##name] = {word, what},
               TEXT_FORMATS(X)
#undef X
},
  patterns[] = {[TEXT_PATTERN_ANY] = {"", ""},
#define X(name, pattern, what) [TEXT_PATTERN_##name] = {pattern, what},
                TEXT_PATTERNS(X)
#undef X
};

enum { FORMATS = sizeof formats / sizeof *formats, PATTERNS = sizeof patterns / sizeof *patterns };

enum text_format text_format_named(struct span name)
{
    for (unsigned i = 1; i < FORMATS; i++)
        if (span_equal(name, span_text(formats[i].name)))
            return (enum text_format)i;
    return TEXT_FORMAT_ANY;
}

enum text_pattern text_pattern_named(struct span pattern)
{
    for (unsigned i = 1; i < PATTERNS; i++)
        if (span_equal(pattern, span_text(patterns[i].name)))
            return (enum text_pattern)i;
    return TEXT_PATTERN_ANY;
}

const char *text_format_what(enum text_format format)
{
    return formats[format].what;
}

const char *text_pattern_what(enum text_pattern pattern)
{
    return patterns[pattern].what;
}

/* Without a locale. */
static inline bool is_digit(char c)
{
    return (unsigned char)(c - '0') < 10;
}

static inline bool is_hex(char c)
{
    return is_digit(c) || (unsigned char)((c | 0x20) - 'a') < 6;
}

static inline bool is_letter(char c)
{
    return (unsigned char)((c | 0x20) - 'a') < 26;
}

bool text_is_uuid(struct span text)
{
    struct uuid id;
    return uuid_parse(text.bytes, text.size, &id);
}

/* ---- date-time ---- */

/* So many digits as a number, or -1. */
static int digits(const char *p, unsigned count)
{
    int value = 0;
    for (; count; count--, p++) {
        if (!is_digit(*p))
            return -1;
        value = value * 10 + (*p - '0');
    }
    return value;
}

static int days_of(int year, int month)
{
    static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return days[month - 1] + (month == 2 && leap);
}

/* Z or +hh:mm to the end; the minutes that this is ahead of UTC. */
static bool offset_of(const char *p, const char *end, int *ret_minutes)
{
    int hours, minutes;
    *ret_minutes = 0;
    if (end - p == 1)
        return (*p | 0x20) == 'z';
    if (end - p != 6 || (*p != '+' && *p != '-') || p[3] != ':')
        return false;
    hours = digits(p + 1, 2);
    minutes = digits(p + 4, 2);
    if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59)
        return false;
    *ret_minutes = (hours * 60 + minutes) * (*p == '-' ? -1 : 1);
    return true;
}

bool text_is_date_time(struct span text)
{
    enum { DAY = 24 * 60 };
    const char *p = text.bytes, *end = p + text.size;
    int year, month, day, hour, minute, second, ahead;
    if (text.size < 20 || p[4] != '-' || p[7] != '-' || (p[10] | 0x20) != 't' || p[13] != ':' || p[16] != ':')
        return false;
    year = digits(p, 4);
    month = digits(p + 5, 2);
    day = digits(p + 8, 2);
    hour = digits(p + 11, 2);
    minute = digits(p + 14, 2);
    second = digits(p + 17, 2);
    if (year < 0 || month < 1 || month > 12 || day < 1 || day > days_of(year, month))
        return false;
    if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60)
        return false;
    p += 19;
    if (*p == '.') {
        const char *first = ++p;
        while (p < end && is_digit(*p))
            p++;
        if (p == first)
            return false;
    }
    if (!offset_of(p, end, &ahead))
        return false;
    return second < 60 || (hour * 60 + minute - ahead + 2 * DAY) % DAY == DAY - 1;
}

/* ---- uri ---- */

#define UNRESERVED 1u
#define SUB_DELIM  2u

static unsigned class_of(char c)
{
    if (is_letter(c) || is_digit(c) || c == '-' || c == '.' || c == '_' || c == '~')
        return UNRESERVED;
    return c && memchr("!$&'()*+,;=", c, 11) ? SUB_DELIM : 0;
}

/* From p on while the bytes are unreserved, sub-delims, percent-encoded or one of `more`. */
static const char *run_end(const char *p, const char *end, const char *more)
{
    size_t more_size = strlen(more);
    while (p < end)
        if (class_of(*p) || memchr(more, *p, more_size))
            p++;
        else if (*p == '%' && end - p >= 3 && is_hex(p[1]) && is_hex(p[2]))
            p += 3;
        else
            break;
    return p;
}

/* [IPv6] or [vX.whatever]; behind it, or NULL. */
static const char *literal_end(const char *p, const char *end)
{
    const char *close = memchr(p, ']', (size_t)(end - p));
    char address[INET6_ADDRSTRLEN];
    struct in6_addr ignored;
    size_t size;
    if (!close)
        return NULL;
    size = (size_t)(close - ++p);
    if (size && (*p | 0x20) == 'v') {
        const char *dot = p + 1;
        while (dot < close && is_hex(*dot))
            dot++;
        if (dot == p + 1 || dot == close || *dot != '.' || dot + 1 == close)
            return NULL;
        while (++dot < close)
            if (!class_of(*dot) && *dot != ':')
                return NULL;
        return close + 1;
    }
    if (size >= sizeof address)
        return NULL;
    memcpy(address, p, size);
    address[size] = 0;
    return strlen(address) == size && inet_pton(AF_INET6, address, &ignored) == 1 ? close + 1 : NULL;
}

/* user@host:port; where it ends, or NULL. */
static const char *authority_end(const char *p, const char *end, bool *ret_host)
{
    const char *user = run_end(p, end, ":"), *host, *at;
    if (user < end && *user == '@')
        p = user + 1;
    host = p;
    at = p < end && *p == '[' ? literal_end(p, end) : run_end(p, end, "");
    if (!at)
        return NULL;
    *ret_host = at > host;
    if (at < end && *at == ':')
        for (at++; at < end && is_digit(*at);)
            at++;
    return at == end || *at == '/' || *at == '?' || *at == '#' ? at : NULL;
}

static bool is_http(const char *p, const char *scheme_end)
{
    static const char https[] = "https";
    size_t size = (size_t)(scheme_end - p);
    if (size != 4 && size != 5)
        return false;
    for (size_t i = 0; i < size; i++)
        if ((p[i] | 0x20) != https[i])
            return false;
    return true;
}

bool text_is_uri(struct span text)
{
    const char *const begin = text.bytes, *const end = begin + text.size;
    const char *p = begin;
    bool host = false, http;
    if (p == end || !is_letter(*p))
        return false;
    while (p < end && (is_letter(*p) || is_digit(*p) || *p == '+' || *p == '-' || *p == '.'))
        p++;
    if (p == end || *p != ':')
        return false;
    http = is_http(begin, p++);
    if (end - p >= 2 && p[0] == '/' && p[1] == '/') {
        p = authority_end(p + 2, end, &host);
        if (!p)
            return false;
    }
    if (http && !host)
        return false;
    p = run_end(p, end, ":@/");
    if (p < end && *p == '?')
        p = run_end(p + 1, end, ":@/?");
    if (p < end && *p == '#')
        p = run_end(p + 1, end, ":@/?");
    return p == end;
}

bool text_has_format(struct span text, enum text_format format)
{
    switch (format) {
    case TEXT_FORMAT_UUID:
        return text_is_uuid(text);
    case TEXT_FORMAT_DATE_TIME:
        return text_is_date_time(text);
    case TEXT_FORMAT_URI:
        return text_is_uri(text);
    case TEXT_FORMAT_ANY:
        break;
    }
    return true;
}

/* ---- patterns ---- */

static bool matches_visible(const char *p, const char *end)
{
    if (p == end)
        return false;
    while (p < end && *p >= 0x21 && *p <= 0x7e)
        p++;
    return p == end;
}

/* What \s is: ASCII's white space, and in UTF-8 U+00A0, U+1680, U+2000 to U+200A, U+2028, U+2029, U+202F, U+205F, U+3000 and
 * U+FEFF. */
static bool begins_with_space(const char *p, const char *end)
{
    static const char *const wide[] = {"\xc2\xa0",     "\xe1\x9a\x80", "\xe2\x80\xa8", "\xe2\x80\xa9",
                                       "\xe2\x80\xaf", "\xe2\x81\x9f", "\xe3\x80\x80", "\xef\xbb\xbf"};
    size_t left = (size_t)(end - p);
    if (*p == ' ' || (*p >= '\t' && *p <= '\r'))
        return true;
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
        if (left >= strlen(wide[i]) && memcmp(p, wide[i], strlen(wide[i])) == 0)
            return true;
    return left >= 3 && memcmp(p, "\xe2\x80", 2) == 0 && (unsigned char)p[2] <= 0x8a;
}

static bool matches_http_url(const char *p, const char *end)
{
    if (end - p < 4 || memcmp(p, "http", 4) != 0)
        return false;
    p += 4;
    p += p < end && *p == 's';
    if (end - p < 4 || memcmp(p, "://", 3) != 0)
        return false;
    p += 3;
    return *p != '/' && *p != '?' && *p != '#' && !begins_with_space(p, end);
}

bool text_matches(struct span text, enum text_pattern pattern)
{
    const char *p = text.bytes, *end = p + text.size;
    switch (pattern) {
    case TEXT_PATTERN_VISIBLE:
        return matches_visible(p, end);
    case TEXT_PATTERN_ENDS_IN_Z:
        return p < end && end[-1] == 'Z';
    case TEXT_PATTERN_HTTP_URL:
        return matches_http_url(p, end);
    case TEXT_PATTERN_ANY:
        break;
    }
    return true;
}
