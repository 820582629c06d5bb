#include "http/parser.h"

#include <arpa/inet.h>
#include <string.h>

#include "runtime/assert.h"

/* Two readers look at every head: llhttp at the grammar, and the one below at the framing. It takes no line but one that
 * ends in CR LF, no name with a space, no length said twice. Where the two don't agree on what was said, nothing was. */

static enum parsed refuse(struct parser *p, int status, const char *why)
{
    p->status = status;
    p->why = why;
    return PARSED_REFUSED;
}

void parser_reset(struct parser *p)
{
    memset(p, 0, sizeof(*p));
}

/* ---- bytes ---- */

enum { TOKEN = 1, VALUE = 2, TARGET = 4, DIGIT = 8, HEX = 16, UPPER = 32, HOST = 64 };
STATIC_ASSERT(UPPER == ('A' ^ 'a'), "lower() adds it");

/* VALUE: what a field's value may hold: visible characters, space, tab, and the bytes of other alphabets. HOST: of a name or an
 * address without brackets. */
#define V VALUE
#define G (VALUE | TARGET)         /* visible, but no token character */
#define T (VALUE | TARGET | TOKEN) /* token character */
#define g (G | HOST)
#define t (T | HOST)
#define N (t | DIGIT | HEX)
#define A (t | HEX)
#define B (t | HEX | UPPER)
#define U (t | UPPER)
static const uint8_t kinds[256] = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, V, 0, 0, 0, 0, 0, 0, /* tab */
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, /* */
    V, t, G, T, t, t, t, t, g, g, t, t, g, t, t, G, /* space ! " # $ % & ' ( ) * + , - . / */
    N, N, N, N, N, N, N, N, N, N, G, g, G, g, G, G, /* 0-9 : ; < = > ? */
    G, B, B, B, B, B, B, U, U, U, U, U, U, U, U, U, /* @ A-O */
    U, U, U, U, U, U, U, U, U, U, U, G, G, G, T, t, /* P-Z [ \ ] ^ _ */
    T, A, A, A, A, A, A, t, t, t, t, t, t, t, t, t, /* ` a-o */
    t, t, t, t, t, t, t, t, t, t, t, G, T, G, t, 0, /* p-z { | } ~ DEL */
    V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V,
    V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V,
    V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V,
    V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V,
};
#undef V
#undef G
#undef T
#undef g
#undef t
#undef N
#undef A
#undef B
#undef U

static bool all(const char *at, size_t length, uint8_t kind)
{
    uint8_t seen = kind;
    for (size_t i = 0; i < length; i++)
        seen &= kinds[(unsigned char)at[i]];
    return seen & kind;
}

/* ---- eight bytes at a time ---- */

#define ONES  UINT64_C(0x0101010101010101)
#define HIGHS UINT64_C(0x8080808080808080)
STATIC_ASSERT(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the first byte of a word is its lowest");

/* In each of these the lowest bit that is set is the high bit of the first such byte; those above it may be anything. */
static uint64_t below(uint64_t word, uint8_t limit)
{
    return (word - ONES * limit) & ~word & HIGHS;
}

static uint64_t equal(uint64_t word, uint8_t byte)
{
    return below(word ^ ONES * byte, 1);
}

/* The first byte that no value may hold, or `end`. */
static const char *value_end(const char *at, const char *end)
{
    uint64_t word, found = 0;
    for (; (size_t)(end - at) >= sizeof(word); at += sizeof(word)) {
        memcpy(&word, at, sizeof(word));
        found = below(word, ' ') | equal(word, 0x7f);
        if (!found)
            continue;
        at += __builtin_ctzll(found) / 8;
        if (*at != '\t')
            return at;
        at -= sizeof(word) - 1; /* goes on behind the tab */
    }
    while (at < end && kinds[(unsigned char)*at] & VALUE)
        at++;
    return at;
}

static const char *token_end(const char *at, const char *end)
{
    while (at < end && kinds[(unsigned char)*at] & TOKEN)
        at++;
    return at;
}

static bool is_target(const char *at, size_t length)
{
    uint64_t word;
    for (; length >= sizeof(word); at += sizeof(word), length -= sizeof(word)) {
        memcpy(&word, at, sizeof(word));
        if (below(word, ' ' + 1) | ((word + ONES) & HIGHS) | (word & HIGHS))
            return false;
    }
    return all(at, length, TARGET);
}

static char lower(char c)
{
    return (char)(c | (kinds[(unsigned char)c] & UPPER));
}

static bool same(const char *at, size_t length, const char *name, size_t name_length)
{
    if (length != name_length)
        return false;
    for (size_t i = 0; i < length; i++)
        if (lower(at[i]) != name[i])
            return false;
    return true;
}

/* Whether a field's name, all of whose characters a token may have, is this one in any case: `name` has as many bytes, four or more,
 * letters in lower case and '-'. The bit that lower() adds makes either of no other character of a token. */
static inline bool is_name(const char *at, size_t length, const char *name)
{
    const uint64_t bits = ONES * UPPER;
    uint64_t first = 0, last = 0, name_first = 0, name_last = 0;
    if (length < 8) {
        memcpy(&first, at, 4);
        memcpy(&last, at + (length - 4), 4);
        memcpy(&name_first, name, 4);
        memcpy(&name_last, name + (length - 4), 4);
        return (((first | (bits >> 32)) ^ name_first) | ((last | (bits >> 32)) ^ name_last)) == 0;
    }
    memcpy(&first, at, 8);
    memcpy(&last, at + (length - 8), 8);
    memcpy(&name_first, name, 8);
    memcpy(&name_last, name + (length - 8), 8);
    return (((first | bits) ^ name_first) | ((last | bits) ^ name_last)) == 0 &&
           (length <= 16 || same(at, length, name, length));
}

/* ---- llhttp's opinion ---- */

static int stop_here(llhttp_t *llhttp)
{
    (void)llhttp;
    return HPE_PAUSED;
}

static const llhttp_settings_t settings = {.on_headers_complete = stop_here};

static enum method method_of(uint8_t method)
{
    switch (method) {
    case HTTP_GET:
        return METHOD_GET;
    case HTTP_HEAD:
        return METHOD_HEAD;
    case HTTP_POST:
        return METHOD_POST;
    case HTTP_PUT:
        return METHOD_PUT;
    case HTTP_DELETE:
        return METHOD_DELETE;
    case HTTP_PATCH:
        return METHOD_PATCH;
    case HTTP_OPTIONS:
        return METHOD_OPTIONS;
    case HTTP_CONNECT:
        return METHOD_CONNECT;
    case HTTP_TRACE:
        return METHOD_TRACE;
    default:
        return METHOD_UNKNOWN;
    }
}

/* ---- what a head says about its body and its connection ---- */

struct head {
    uint32_t lengths, codings; /* how often they were said */
    uint64_t length;
    bool upgrade;
};

static enum parsed length_of(struct parser *p, struct head *h, struct span value)
{
    const char *digits = value.bytes;
    if (h->lengths++)
        return refuse(p, 400, "Content-Length is there twice");
    if (value.size == 0 || value.size > 19 || !all(digits, value.size, DIGIT))
        return refuse(p, 400, "Content-Length must be a number of at most 19 digits");
    for (uint32_t i = 0; i < value.size; i++)
        h->length = h->length * 10 + (uint64_t)(digits[i] - '0');
    if (h->length > INT64_MAX)
        return refuse(p, 400, "Content-Length is too large a number");
    return PARSED_DONE;
}

static enum parsed coding_of(struct parser *p, struct head *h, struct span value)
{
    if (h->codings++)
        return refuse(p, 400, "Transfer-Encoding is there twice");
    if (!same(value.bytes, value.size, "chunked", 7))
        return refuse(p, 400, "Transfer-Encoding must be chunked and nothing else");
    return PARSED_DONE;
}

/* Tokens between commas. "close" wins over "keep-alive"; what else is said there is for proxies. */
static void connection_of(struct span value, bool *close, bool *keep)
{
    const char *at = value.bytes, *end = at + value.size;
    while (at < end) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        const char *stop = comma ? comma : end, *last = stop;
        while (at < last && (*at == ' ' || *at == '\t'))
            at++;
        while (last > at && (last[-1] == ' ' || last[-1] == '\t'))
            last--;
        *close |= same(at, (size_t)(last - at), "close", 5);
        *keep |= same(at, (size_t)(last - at), "keep-alive", 10);
        at = stop + 1;
    }
}

/* ---- lines ---- */

static const struct {
    const char *name;
    uint8_t length;
    bool once;
} known[HEADER_COUNT] = {
#define X(id, text, single) [HEADER_##id] = {.name = text, .length = sizeof(text) - 1, .once = single},
    HEADERS(X)
#undef X
};

/* The lengths of the known names, side by side: most fields are none of them, and told so by these alone. */
static const uint8_t lengths[(HEADER_COUNT + 7) / 8 * 8] = {
#define X(id, text, single) [HEADER_##id] = sizeof(text) - 1,
    HEADERS(X)
#undef X
};

/* HEADER_COUNT: none of ours. */
static int find_known(struct span name)
{
    if (name.size == 0 || name.size > INT8_MAX) /* behind the last known one stand lengths of 0 */
        return HEADER_COUNT;
    for (int i = 0; i < HEADER_COUNT; i += 8) {
        uint64_t word;
        memcpy(&word, lengths + i, sizeof(word));
        word ^= ONES * name.size;
        /* exactly the bytes that are 0: no length has the high bit */
        for (uint64_t found = ~(word + (HIGHS - ONES)) & HIGHS; found; found &= found - 1) {
            int candidate = i + __builtin_ctzll(found) / 8;
            if (is_name(name.bytes, name.size, known[candidate].name)) /* as long, or it were no candidate */
                return candidate;
        }
    }
    return HEADER_COUNT;
}

static enum parsed keep_known(struct parser *p, struct request *q, const struct field *f)
{
    int i = find_known(f->name);
    if (i == HEADER_COUNT)
        return PARSED_DONE;
    if (q->known[i].bytes && known[i].once)
        return refuse(p, 400,
                      i == HEADER_HOST ? "Host is there twice"
                                       : "a field that can be there once only is there twice");
    if (!q->known[i].bytes)
        q->known[i] = f->value;
    return PARSED_DONE;
}

/* Fields that decide about framing; the others are looked up among the known ones. */
static enum parsed field_means(struct parser *p, struct head *h, struct request *q, const struct field *f,
                               bool *close, bool *keep)
{
    const char *name = f->name.bytes;
    switch (f->name.size) {
    case 14:
        if (is_name(name, 14, "content-length"))
            return length_of(p, h, f->value);
        break;
    case 17:
        if (is_name(name, 17, "transfer-encoding"))
            return coding_of(p, h, f->value);
        break;
    case 10:
        if (is_name(name, 10, "connection"))
            connection_of(f->value, close, keep);
        break;
    case 6:
        if (is_name(name, 6, "expect")) {
            if (!same(f->value.bytes, f->value.size, "100-continue", 12))
                return refuse(p, 417, "Expect must be 100-continue");
            q->expects_continue = true;
        }
        break;
    default:
        break;
    }
    return keep_known(p, q, f);
}

struct line {
    const char *at, *end; /* before its CR LF */
    bool clean;           /* nothing in it that a value may not hold */
};

/* *ret_next: behind it. PARSED_MORE: the bytes end first. */
static enum parsed line_of(struct parser *p, const char *at, const char *end, struct line *ret,
                           const char **ret_next)
{
    const char *stop = value_end(at, end);
    if (end - stop >= 2 && stop[0] == '\r' && stop[1] == '\n') {
        *ret = (struct line){at, stop, true};
        *ret_next = stop + 2;
        return PARSED_DONE;
    }
    const char *feed = memchr(stop, '\n', (size_t)(end - stop));
    if (!feed)
        return PARSED_MORE;
    if (feed == at || feed[-1] != '\r' || memchr(stop, '\r', (size_t)(feed - stop)) != feed - 1)
        return refuse(p, 400, "a line must end in CR LF and hold neither before");
    *ret = (struct line){at, feed - 1, false};
    *ret_next = feed + 1;
    return PARSED_DONE;
}

static enum parsed field_of(struct parser *p, const struct line *line, struct request *q,
                            struct field **ret_field)
{
    const char *at = line->at, *end = line->end;
    if (at[0] == ' ' || at[0] == '\t')
        return refuse(p, 400, "a header line begins with white space");
    const char *colon = token_end(at, end);
    if (colon == end || *colon != ':')
        return refuse(p, 400,
                      memchr(colon, ':', (size_t)(end - colon))
                          ? "a header's name holds a character that no name has"
                          : "a header line has no colon");
    if (colon == at)
        return refuse(p, 400, "a header line has no name");
    if (q->fields_count == REQUEST_FIELDS_MAX)
        return refuse(p, 431, "there are more than 100 header lines");
    const char *value = colon + 1;
    while (value < end && (*value == ' ' || *value == '\t'))
        value++;
    while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    if (!line->clean) /* and the name is */
        return refuse(p, 400, "a header's value holds a control character");
    struct field *f = &q->fields[q->fields_count++];
    f->name = span_of(at, (size_t)(colon - at));
    f->value = span_of(value, (size_t)(end - value));
    *ret_field = f;
    return PARSED_DONE;
}

/* METHOD SP target SP HTTP/1.x, with single spaces. */
static enum parsed request_line(struct parser *p, const struct line *line, struct request *q)
{
    const char *at = line->at, *end = line->end, *space = token_end(at, end);
    if (space == at || space == end || *space != ' ')
        return refuse(p, 400, "the request line has no method");
    const char *target = space + 1;
    const char *version = memchr(target, ' ', (size_t)(end - target));
    if (!version || version == target)
        return refuse(p, 400, "the request line has no target or no version");
    if ((size_t)(version - target) > PARSER_TARGET_MAX)
        return refuse(p, 414, "the request target is longer than 8192 bytes");
    if (!is_target(target, (size_t)(version - target)))
        return refuse(p, 400, "the request target holds a character that must be escaped");
    if (end - version != 9 || memcmp(version, " HTTP/1.", 8) != 0 || (version[8] != '0' && version[8] != '1'))
        return refuse(p, 400, "the version must be HTTP/1.0 or HTTP/1.1");
    q->target = span_of(target, (size_t)(version - target));
    q->minor = (uint8_t)(version[8] - '0');
    return PARSED_DONE;
}

/* The form of a target goes with its method; url_path takes it apart. */
static enum parsed target_form(struct parser *p, const struct request *q)
{
    const char *target = q->target.bytes;
    if (q->method == METHOD_CONNECT)
        return refuse(p, 400, "CONNECT is for proxies");
    if (target[0] == '/' || (q->target.size > 7 && same(target, 7, "http://", 7)) ||
        (q->target.size > 8 && same(target, 8, "https://", 8)))
        return PARSED_DONE;
    if (target[0] == '*' && q->target.size == 1 && q->method == METHOD_OPTIONS)
        return PARSED_DONE;
    return refuse(p, 400, "the request target must begin with '/'");
}

/* Digits up to 65535, or none: RFC 3986 lets a port be empty. */
static bool is_port(const char *at, size_t length)
{
    uint32_t number = 0;
    for (size_t i = 0; i < length; i++) {
        if (!(kinds[(unsigned char)at[i]] & DIGIT))
            return false;
        number = number * 10 + (uint32_t)(at[i] - '0');
        if (number > UINT16_MAX)
            return false;
    }
    return true;
}

/* Up to its ']'; 0: it is no address. */
static size_t address_six(const char *at, size_t length)
{
    char text[INET6_ADDRSTRLEN];
    struct in6_addr address;
    const char *close = memchr(at, ']', length);
    size_t size = close ? (size_t)(close - at) - 1 : 0;
    if (size == 0 || size >= sizeof(text) || memchr(at, 0, length))
        return 0;
    memcpy(text, at + 1, size);
    text[size] = 0;
    return inet_pton(AF_INET6, text, &address) == 1 ? size + 2 : 0;
}

bool parser_is_host(const char *at, size_t length)
{
    size_t i = 0;
    if (length > 0 && at[0] == '[') {
        i = address_six(at, length);
        if (i == 0)
            return false;
    } else {
        while (i < length && kinds[(unsigned char)at[i]] & HOST)
            i++;
        if (i == 0)
            return false;
    }
    return i == length || (at[i] == ':' && is_port(at + i + 1, length - i - 1));
}

static enum parsed host_means(struct parser *p, const struct request *q)
{
    struct span host = q->known[HEADER_HOST];
    if (!host.bytes)
        return q->minor == 0 ? PARSED_DONE : refuse(p, 400, "there is no Host");
    return parser_is_host(host.bytes, host.size)
               ? PARSED_DONE
               : refuse(p, 400, "Host must be a name or an address, and perhaps a port");
}

static enum method method_named(struct span token)
{
#define X(name, bit)                         \
    if (span_equal(token, span_text(#name))) \
        return METHOD_##name;
    METHODS(X)
#undef X
    return METHOD_UNKNOWN;
}

/* llhttp takes the methods that it knows, and no other word. A token that is none of ours is a method all the same, which no path
 * takes: the rest of its head is read as that of another method. */
static llhttp_errno_t execute_unknown(llhttp_t *llhttp, const char *bytes, size_t size)
{
    size_t length = (size_t)(token_end(bytes, bytes + size) - bytes);
    if (length > PARSER_METHOD_MAX || method_named(span_of(bytes, length)) != METHOD_UNKNOWN)
        return HPE_INVALID_METHOD;
    llhttp_init(llhttp, HTTP_REQUEST, &settings);
    llhttp_errno_t e = llhttp_execute(llhttp, "GET", 3);
    ASSERT(e == HPE_OK);
    return llhttp_execute(llhttp, bytes + length, size - length);
}

/* Where llhttp and the lines above must have understood the same. */
static enum parsed second_opinion(struct parser *p, const char *bytes, size_t size, struct request *q,
                                  const struct head *h, bool close, bool keep)
{
    llhttp_t llhttp;
    llhttp_init(&llhttp, HTTP_REQUEST, &settings);
    llhttp_errno_t e = llhttp_execute(&llhttp, bytes, size);
    q->method = method_of(llhttp.method);
    if (e != HPE_PAUSED) {
        q->method = METHOD_UNKNOWN;
        e = execute_unknown(&llhttp, bytes, size);
    }
    if (e != HPE_PAUSED)
        return refuse(p, 400, "the head is not HTTP/1.1");
    bool chunked = llhttp.flags & F_CHUNKED;
    if (llhttp.http_major != 1 || llhttp.http_minor != q->minor || chunked != (h->codings == 1) ||
        (h->lengths && llhttp.content_length != h->length))
        return refuse(p, 400, "the head can be understood in more than one way");
    q->keep_alive = !close && (q->minor == 1 || keep);
    return PARSED_DONE;
}

static enum parsed body_follows(struct parser *p, struct request *q, const struct head *h)
{
    if (h->codings && h->lengths)
        return refuse(p, 400, "Content-Length and Transfer-Encoding are both there");
    if (h->codings && q->minor == 0)
        return refuse(p, 400, "HTTP/1.0 has no Transfer-Encoding");
    p->chunked = h->codings;
    p->length = h->length;
    q->has_length = h->codings || h->lengths;
    q->expects_continue = q->expects_continue && q->minor == 1 && (p->chunked || p->length);
    return PARSED_DONE;
}

struct extent {
    size_t line, head; /* sizes: of the request line with its end, of all */
};

/* PARSED_MORE: the bytes end before the head does. */
static enum parsed head_of(struct parser *p, const char *bytes, size_t size, struct request *q,
                           struct extent *ret)
{
    struct head h = {0};
    struct line line;
    struct field *f = NULL;
    bool close = false, keep = false;
    const char *at = bytes, *end = bytes + size;
    q->fields_count = 0;
    q->expects_continue = q->has_length = false;
    q->body = span_of(NULL, 0);
    memset(q->known, 0, sizeof(q->known));
    for (bool first = true;; first = false) {
        enum parsed step = line_of(p, at, end, &line, &at);
        if (step == PARSED_DONE && line.at == line.end)
            break;
        if (step == PARSED_DONE)
            step = first ? request_line(p, &line, q) : field_of(p, &line, q, &f);
        if (first)
            ret->line = (size_t)(at - bytes);
        if (step == PARSED_DONE && !first)
            step = field_means(p, &h, q, f, &close, &keep);
        if (step != PARSED_DONE)
            return step;
    }
    if (line.at == bytes)
        return refuse(p, 400, "there is no request line");
    ret->head = (size_t)(at - bytes);
    enum parsed step = body_follows(p, q, &h);
    if (step == PARSED_DONE)
        step = second_opinion(p, bytes, ret->head, q, &h, close, keep);
    if (step == PARSED_DONE)
        step = target_form(p, q);
    return step == PARSED_DONE ? host_means(p, q) : step;
}

/* Behind the first empty line, or 0. Looks from where it stopped the last time. */
static size_t end_of_head(struct parser *p, const char *bytes, size_t size)
{
    const char *at = bytes + (p->searched > 3 ? p->searched - 3 : 0), *end = bytes + size;
    while ((at = memchr(at, '\n', (size_t)(end - at)))) {
        at++;
        if (end - at >= 2 && at[0] == '\r' && at[1] == '\n')
            return (size_t)(at + 2 - bytes);
    }
    p->searched = (uint32_t)size;
    return 0;
}

/* A line end that is none among the bytes from `at` on, the first of all of which is none; of the last byte nobody knows yet. */
static bool loose_end(const char *at, const char *end)
{
    for (; at < end; at++) {
        if (*at == '\n' && at[-1] != '\r')
            return true;
        if (*at == '\r' && at + 1 < end && at[1] != '\n')
            return true;
    }
    return false;
}

/* A head that isn't whole, but can't become one any more: told at once, not when the peer has given up. Up to `from` it
 * was looked at before. */
static enum parsed hopeless(struct parser *p, const char *bytes, size_t size, size_t from)
{
    const char *line_end = memchr(bytes, '\n', size);
    size_t line = line_end ? (size_t)(line_end - bytes) : size;
    if (line > PARSER_TARGET_MAX + 64)
        return refuse(p, 414, "the request line is longer than 8192 bytes");
    if (!(kinds[(unsigned char)bytes[0]] & TOKEN))
        return refuse(p, 400, "the request line has no method");
    if (loose_end(bytes + (from ? from - 1 : 0), bytes + size))
        return refuse(p, 400, "a line must end in CR LF and hold neither before");
    if (size > PARSER_HEAD_MAX)
        return refuse(p, 431, "the head is longer than 32768 bytes");
    return PARSED_MORE;
}

/* Only the request line is to be read: all behind it was said before. What llhttp makes of that depends on the line's method and
 * version, and on nothing else in it. False: it is not so, or something is wrong. */
static bool line_differs(struct parser *p, const struct parser_before *before, const char *bytes, size_t size,
                         struct request *q, struct extent *ret)
{
    struct line line;
    llhttp_t llhttp;
    const char *fields;
    uint8_t minor = q->minor;
    if (line_of(p, bytes, bytes + size, &line, &fields) != PARSED_DONE)
        return false;
    ret->line = (size_t)(fields - bytes);
    ret->head = ret->line + before->size;
    if (ret->head > size || ret->head > PARSER_HEAD_MAX || memcmp(fields, before->fields, before->size) != 0)
        return false;
    if (request_line(p, &line, q) != PARSED_DONE || q->minor != minor || q->method == METHOD_UNKNOWN)
        return false;
    llhttp_init(&llhttp, HTTP_REQUEST, &settings);
    return llhttp_execute(&llhttp, bytes, ret->line) == HPE_OK && method_of(llhttp.method) == q->method &&
           llhttp.http_major == 1 && llhttp.http_minor == minor && target_form(p, q) == PARSED_DONE;
}

/* The same bytes mean the same. */
static bool said_before(struct parser *p, const struct parser_before *before, const char *bytes, size_t size,
                        struct request *q, struct extent *ret)
{
    if (!before->fields)
        return false;
    *ret = (struct extent){.line = before->line, .head = before->line + before->size};
    if ((size < ret->head || memcmp(bytes, before->fields - before->line, ret->head) != 0) &&
        !line_differs(p, before, bytes, size, q, ret))
        return false;
    q->body = span_of(NULL, 0);
    p->chunked = before->chunked;
    p->length = before->length;
    return true;
}

enum parsed parser_head(struct parser *p, const char *bytes, size_t size, struct request *ret_request,
                        size_t *ret_used)
{
    struct parser_before nothing = {.fields = NULL};
    return parser_head_after(p, &nothing, bytes, size, ret_request, ret_used);
}

enum parsed parser_head_after(struct parser *p, struct parser_before *before, const char *bytes, size_t size,
                              struct request *ret_request, size_t *ret_used)
{
    size_t skipped = 0;
    bool may_skip = p->empty_lines < PARSER_EMPTY_LINES;
    if (size >= 2 && bytes[0] == '\r' && bytes[1] == '\n' && may_skip)
        skipped = 2;
    else if (size == 0 || (size == 1 && bytes[0] == '\r' && may_skip))
        return PARSED_MORE;
    bytes += skipped;
    size -= skipped;
    size_t from = p->searched, head;
    struct extent extent;
    /* Most heads come in one piece, and are sound: these are read in one go. Of the others it is asked first whether they are
     * whole; what is wrong with the bytes so far is said only then. */
    if (from > 0 ||
        !(said_before(p, before, bytes, size, ret_request, &extent) ||
          (head_of(p, bytes, size, ret_request, &extent) == PARSED_DONE && extent.head <= PARSER_HEAD_MAX))) {
        before->fields = NULL;
        head = end_of_head(p, bytes, size);
        if (head > PARSER_HEAD_MAX)
            return refuse(p, 431, "the head is longer than 32768 bytes");
        if (head == 0)
            return size == 0 ? PARSED_MORE : hopeless(p, bytes, size, from);
        enum parsed parsed = head_of(p, bytes, head, ret_request, &extent);
        if (parsed != PARSED_DONE)
            return parsed;
    }
    *before = (struct parser_before){.fields = bytes + extent.line,
                                     .line = extent.line,
                                     .size = extent.head - extent.line,
                                     .length = p->length,
                                     .chunked = p->chunked};
    *ret_used = skipped + extent.head;
    return PARSED_DONE;
}

/* ---- a head that isn't read ---- */

static void glimpse_field(const struct line *line, struct request *q, bool seen[HEADER_COUNT])
{
    const char *colon = token_end(line->at, line->end), *value = colon + 1, *end = line->end;
    if (colon == end || *colon != ':' || !line->clean)
        return;
    int i = find_known(span_of(line->at, (size_t)(colon - line->at)));
    if (i != HEADER_REQUEST_ID && i != HEADER_TRACEPARENT && i != HEADER_TRACESTATE)
        return;
    while (value < end && (*value == ' ' || *value == '\t'))
        value++;
    while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    q->known[i] = seen[i] ? span_of(NULL, 0) : span_of(value, (size_t)(end - value));
    seen[i] = true;
}

/* What follows is read as long as its lines end as they must: nobody knows where another one would have begun. */
void parser_glimpse(const char *bytes, size_t size, struct request *ret_request)
{
    struct parser unused = {0};
    struct line line;
    bool seen[HEADER_COUNT] = {false};
    const char *at = bytes, *end = bytes + size;
    if (end - at >= 2 && at[0] == '\r' && at[1] == '\n')
        at += 2; /* the one that is forgiven */
    const char *space = token_end(at, end), *target = space + 1, *stop = target;
    if (space == at || space == end || *space != ' ')
        return;
    while (stop < end && kinds[(unsigned char)*stop] & TARGET)
        stop++;
    if (stop == end && stop - target <= (ptrdiff_t)PARSER_TARGET_MAX)
        return; /* who knows how it goes on */
    ret_request->method = method_named(span_of(at, (size_t)(space - at)));
    ret_request->target = span_of(target, (size_t)(stop - target));
    for (bool first = true; line_of(&unused, at, end, &line, &at) == PARSED_DONE && line.at < line.end;
         first = false)
        if (!first)
            glimpse_field(&line, ret_request, seen);
}

bool parser_empty_line(const struct parser *p, const char *bytes, size_t size)
{
    STATIC_ASSERT(PARSER_EMPTY_LINES == 1, "parser_head skips one");
    return size == 2 && bytes[0] == '\r' && bytes[1] == '\n' && p->empty_lines < PARSER_EMPTY_LINES;
}

/* ---- chunks ---- */

enum chunk_state {
    CHUNK_SIZE = 0,  /* in the digits */
    CHUNK_EXTENSION, /* behind a ';' */
    CHUNK_SIZE_LF,
    CHUNK_DATA,
    CHUNK_DATA_CR,
    CHUNK_DATA_LF,
    CHUNK_TRAILER_START, /* at the beginning of a line behind the last chunk */
    CHUNK_TRAILER_NAME,
    CHUNK_TRAILER_VALUE,
    CHUNK_TRAILER_LF,
    CHUNK_END_LF,
};

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* A byte of the line that says how long the next chunk is. */
static enum parsed size_byte(struct parser *p, char c)
{
    int digit = p->state == CHUNK_SIZE ? hex_digit(c) : -1;
    if (++p->line_used > PARSER_CHUNK_LINE_MAX)
        return refuse(p, 400, "a chunk's size line is longer than 256 bytes");
    if (digit >= 0) {
        if (++p->chunk_digits > 16 || p->chunk_size >> 59)
            return refuse(p, 400, "a chunk's size is too large a number");
        p->chunk_size = p->chunk_size << 4 | (uint64_t)digit;
        return PARSED_DONE;
    }
    if (p->chunk_digits == 0)
        return refuse(p, 400, "a chunk's size must be hexadecimal digits");
    if (c == '\r')
        p->state = CHUNK_SIZE_LF;
    else if (p->state == CHUNK_SIZE && c == ';')
        p->state = CHUNK_EXTENSION;
    else if (p->state == CHUNK_SIZE || !(kinds[(unsigned char)c] & VALUE))
        return refuse(p, 400, "a chunk's size line holds what it may not");
    return PARSED_DONE;
}

/* The name of a trailer, as far as it has come, is kept nowhere: what must not be there is recognised as it passes.
 * Trailers are read and dropped; one that would change the framing is an attempt at it. */
static const char *const forbidden_trailers[] = {"content-length", "transfer-encoding", "host", "trailer",
                                                 "connection"};

static enum parsed trailer_byte(struct parser *p, char c)
{
    if (++p->trailers_used > PARSER_TRAILERS_MAX)
        return refuse(p, 431, "the trailers are longer than 8192 bytes");
    switch (p->state) {
    case CHUNK_TRAILER_START:
        if (c == '\r') {
            p->state = CHUNK_END_LF;
            return PARSED_DONE;
        }
        p->chunk_left = 0;             /* characters of the name */
        p->chunk_size = (1u << 5) - 1; /* which of the forbidden names it can still be */
        p->state = CHUNK_TRAILER_NAME;
        /* fall through */
    case CHUNK_TRAILER_NAME:
        if (c != ':') {
            if (!(kinds[(unsigned char)c] & TOKEN))
                return refuse(p, 400, "a trailer's name holds a character that no name has");
            for (unsigned i = 0; i < 5; i++)
                if (p->chunk_left >= strlen(forbidden_trailers[i]) ||
                    forbidden_trailers[i][p->chunk_left] != lower(c))
                    p->chunk_size &= ~(UINT64_C(1) << i);
            p->chunk_left++;
            return PARSED_DONE;
        }
        for (unsigned i = 0; i < 5; i++)
            if (p->chunk_size >> i & 1 && p->chunk_left == strlen(forbidden_trailers[i]))
                return refuse(p, 400, "a trailer must not say how the message is framed");
        if (p->chunk_left == 0)
            return refuse(p, 400, "a trailer has no name");
        p->state = CHUNK_TRAILER_VALUE;
        return PARSED_DONE;
    case CHUNK_TRAILER_VALUE:
        if (c == '\r')
            p->state = CHUNK_TRAILER_LF;
        else if (!(kinds[(unsigned char)c] & VALUE))
            return refuse(p, 400, "a trailer holds a control character");
        return PARSED_DONE;
    default:
        if (c != '\n')
            return refuse(p, 400, "a line must end in CR LF and hold neither before");
        p->state = CHUNK_TRAILER_START;
        return PARSED_DONE;
    }
}

/* A byte that isn't data. */
static enum parsed frame_byte(struct parser *p, char c)
{
    switch (p->state) {
    case CHUNK_SIZE:
    case CHUNK_EXTENSION:
        return size_byte(p, c);
    case CHUNK_SIZE_LF:
        if (c != '\n')
            return refuse(p, 400, "a chunk's size must end in CR LF");
        p->state = p->chunk_size ? CHUNK_DATA : CHUNK_TRAILER_START;
        p->chunk_left = p->chunk_size;
        return PARSED_DONE;
    case CHUNK_DATA_CR:
        if (c != '\r')
            return refuse(p, 400, "a chunk is longer than it says");
        p->state = CHUNK_DATA_LF;
        return PARSED_DONE;
    case CHUNK_DATA_LF:
        if (c != '\n')
            return refuse(p, 400, "a chunk must end in CR LF");
        p->state = CHUNK_SIZE;
        p->chunk_size = 0;
        p->chunk_digits = 0;
        p->line_used = 0;
        return PARSED_DONE;
    default:
        return trailer_byte(p, c);
    }
}

enum parsed parser_chunks(struct parser *p, const char *bytes, size_t size, char *out, size_t *ret_used,
                          size_t *ret_written)
{
    size_t at = 0, written = 0;
    while (at < size) {
        if (p->state == CHUNK_DATA) {
            size_t n = size - at < p->chunk_left ? size - at : (size_t)p->chunk_left;
            memmove(out + written, bytes + at, n);
            at += n;
            written += n;
            p->chunk_left -= n;
            if (p->chunk_left == 0)
                p->state = CHUNK_DATA_CR;
            continue;
        }
        if (p->state == CHUNK_END_LF) {
            if (bytes[at] != '\n')
                return refuse(p, 400, "a line must end in CR LF and hold neither before");
            *ret_used = at + 1;
            *ret_written = written;
            return PARSED_DONE;
        }
        if (frame_byte(p, bytes[at]) == PARSED_REFUSED)
            return PARSED_REFUSED;
        at++;
    }
    *ret_used = at;
    *ret_written = written;
    return PARSED_MORE;
}
