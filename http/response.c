#include "http/response.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "http/answer_check.h"
#include "http/connection.h"
#include "http/timestamp.h"

#define STATUSES(X)                           \
    X(200, "OK")                              \
    X(201, "Created")                         \
    X(202, "Accepted")                        \
    X(204, "No Content")                      \
    X(304, "Not Modified")                    \
    X(400, "Bad Request")                     \
    X(401, "Unauthorized")                    \
    X(403, "Forbidden")                       \
    X(404, "Not Found")                       \
    X(405, "Method Not Allowed")              \
    X(406, "Not Acceptable")                  \
    X(408, "Request Timeout")                 \
    X(409, "Conflict")                        \
    X(411, "Length Required")                 \
    X(413, "Content Too Large")               \
    X(414, "URI Too Long")                    \
    X(415, "Unsupported Media Type")          \
    X(417, "Expectation Failed")              \
    X(421, "Misdirected Request")             \
    X(422, "Unprocessable Content")           \
    X(423, "Locked")                          \
    X(428, "Precondition Required")           \
    X(429, "Too Many Requests")               \
    X(431, "Request Header Fields Too Large") \
    X(500, "Internal Server Error")           \
    X(503, "Service Unavailable")             \
    X(504, "Gateway Timeout")                 \
    X(507, "Insufficient Storage")

const char *response_title(int status)
{
    switch (status) {
#define X(number, text) \
    case number:        \
        return text;
        STATUSES(X)
#undef X
    default:
        return "Unknown";
    }
}

/* ---- the head ---- */

enum {
    HEAD_OURS = 1536 + LIMITER_TRIPLE_MAX, /* without the handler's headers and the policy */
    HEAD_MAX = RESPONSE_HEADERS_MAX + HEAD_OURS + FRONT_CSP_MAX
};

struct head {
    char *text; /* not cleared, which would cost more than to fill it */
    size_t room, length;
};

static void put(struct head *h, const char *bytes, size_t size)
{
    ASSERT(size <= h->room - h->length);
    memcpy(h->text + h->length, bytes, size);
    h->length += size;
}

static void put_text(struct head *h, const char *text)
{
    put(h, text, strlen(text));
}
#define PUT(h, literal) put((h), (literal), sizeof(literal) - 1)

static void put_number(struct head *h, uint64_t number)
{
    char digits[20];
    size_t at = sizeof(digits);
    do
        digits[--at] = (char)('0' + number % 10);
    while (number /= 10);
    put(h, digits + at, sizeof(digits) - at);
}

static void two(char *at, unsigned number)
{
    at[0] = (char)('0' + number / 10);
    at[1] = (char)('0' + number % 10);
}

/* "Sun, 06 Nov 1994 08:49:37 GMT"; days counted from 1 March of year 0, so that leap days come last. */
static void date_format(uint64_t seconds, char text[30])
{
    static const char days[] = "ThuFriSatSunMonTueWed", months[] = "MarAprMayJunJulAugSepOctNovDecJanFeb";
    uint64_t day = seconds / 86400, shifted = day + 719468, era = shifted / 146097, of_era = shifted % 146097;
    unsigned second = (unsigned)(seconds % 86400);
    uint64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    unsigned of_year = (unsigned)(of_era - (365 * year + year / 4 - year / 100)),
             month = (5 * of_year + 2) / 153;
    unsigned number = (unsigned)(year + era * 400 + (month >= 10));
    memcpy(text, "Thu, 00 Mar 0000 00:00:00 GMT", 30);
    memcpy(text, &days[day % 7 * 3], 3);
    two(text + 5, of_year - (153 * month + 2) / 5 + 1);
    memcpy(text + 8, &months[month * 3], 3);
    two(text + 12, number / 100);
    two(text + 14, number % 100);
    two(text + 17, second / 3600);
    two(text + 20, second / 60 % 60);
    two(text + 23, second % 60);
}

/* Written anew once a second on each thread. */
static void put_date(struct head *h)
{
    static _Thread_local uint64_t when;
    static _Thread_local char line[38];
    uint64_t now = timestamp_wall() / NS_PER_S;
    if (now != when) {
        memcpy(line, "Date: ", 6);
        date_format(now, line + 6);
        memcpy(line + 35, "\r\n", 3);
        when = now;
    }
    put(h, line, 37);
}

/* The first line for what is answered most; others are put together. */
static void put_status(struct head *h, int status)
{
    if (status == 200) {
        PUT(h, "HTTP/1.1 200 OK\r\n");
        return;
    }
    PUT(h, "HTTP/1.1 ");
    put_number(h, (uint64_t)status);
    PUT(h, " ");
    put_text(h, response_title(status));
    PUT(h, "\r\n");
}

static void put_ids(struct head *h, const struct request *q)
{
    if (!q || q->trace.request_id_length == 0)
        return;
    PUT(h, "X-Request-Id: ");
    put(h, q->trace.request_id, q->trace.request_id_length);
    PUT(h, "\r\ntraceparent: ");
    ASSERT(TRACE_PARENT_TEXT < h->room - h->length);
    trace_write_parent(&q->trace, h->text + h->length);
    h->length += TRACE_PARENT_TEXT;
    PUT(h, "\r\n");
}

static void put_limit(struct head *h, const struct limiter_told *told)
{
    char text[LIMITER_TRIPLE_MAX];
    if (told->prefix)
        put(h, text, limiter_write_triple(told, text));
}

bool response_has_header(const struct response *r, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = r->headers, *end = at + r->headers_length; at < end;) {
        if ((at[0] | 32) == (name[0] | 32) && strncasecmp(at, name, length) == 0 && at[length] == ':')
            return true;
        const char *next = memchr(at, '\n', (size_t)(end - at));
        at = next ? next + 1 : end;
    }
    return false;
}

/* What a browser must not do with any answer of ours; no handler can say otherwise (CTL-150 to CTL-154). */
static void put_security(struct head *h, const struct front *front)
{
    PUT(h, "X-Content-Type-Options: nosniff\r\nReferrer-Policy: strict-origin-when-cross-origin\r\n"
           "X-Frame-Options: ");
    if (front->embeddable)
        PUT(h, "SAMEORIGIN\r\n");
    else
        PUT(h, "DENY\r\n");
    if (front->csp_length)
        put(h, front->csp, front->csp_length);
    else
        PUT(h, "Content-Security-Policy: default-src 'none'; script-src 'self'; frame-ancestors 'none'\r\n");
    if (front->secure)
        PUT(h, "Strict-Transport-Security: max-age=31536000; includeSubDomains\r\n");
}

/* length: of the body; or it isn't known: in chunks, or up to the end of the connection. */
static void head_write(const struct response *r, struct head *h, bool known, uint64_t length)
{
    h->length = 0;
    put_status(h, r->status);
    put_date(h);
    if (r->type) {
        PUT(h, "Content-Type: ");
        put_text(h, r->type);
        PUT(h, "\r\n");
    }
    if (known && r->status != 204 && r->status != 304) {
        PUT(h, "Content-Length: ");
        put_number(h, length);
        PUT(h, "\r\n");
    } else if (!known && r->chunked) {
        PUT(h, "Transfer-Encoding: chunked\r\n");
    }
    put_ids(h, r->request);
    put_limit(h, &r->limited);
    put(h, r->headers, r->headers_length);
    if (!r->headers_length || !response_has_header(r, "Cache-Control"))
        PUT(h, "Cache-Control: no-store\r\n");
    put_security(h, connection_front(r->connection));
    if (!r->keep_alive)
        PUT(h, "Connection: close\r\n\r\n");
    else if (r->http10)
        PUT(h, "Connection: keep-alive\r\n\r\n");
    else
        PUT(h, "\r\n");
}

static struct iovec piece(const char *bytes, size_t length)
{
    return (struct iovec){.iov_base = (void *)(uintptr_t)bytes, .iov_len = length};
}

/* ---- the body ---- */

/* The length won't be known. */
static void open_end(struct response *r, struct head *h)
{
    r->chunked = !r->http10;
    r->keep_alive = r->keep_alive && r->chunked && connection_stays(r->connection);
    head_write(r, h, false, 0);
    r->head_sent = true;
}

/* From now on, for the next bytes: a client that takes a buffer of them in that time may take as many as there are. */
static void allow_time(struct response *r)
{
    const struct front_limits *limits =
        atomic_load_explicit(&connection_front(r->connection)->limits, memory_order_acquire);
    r->deadline = actor_now() + limits->write_ns;
}

static bool flush_chunk(void *context, const char *bytes, size_t length)
{
    struct response *r = context;
    if (r->failed) /* nothing goes out any more; what hasn't begun may still be told otherwise */
        return false;
    if (r->checked)
        answer_check_keep(r, bytes, length);
    allow_time(r);
    char room[HEAD_MAX], size[24];
    struct head h = {.text = room, .room = sizeof(room)};
    struct iovec pieces[4];
    size_t count = 0;
    if (!r->head_sent) {
        open_end(r, &h);
        pieces[count++] = piece(h.text, h.length);
    }
    if (!r->bodyless) {
        r->sent_bytes += length;
        if (r->chunked)
            pieces[count++] = piece(size, (size_t)snprintf(size, sizeof(size), "%zx\r\n", length));
        pieces[count++] = piece(bytes, length);
        if (r->chunked)
            pieces[count++] = piece("\r\n", 2);
    }
    r->failed = !connection_write(r->connection, pieces, count, r->deadline);
    return !r->failed;
}

void response_begin(struct response *r, int status, const char *type)
{
    ASSERT(r->status == 0);
    r->status = status;
    r->type = type;
    json_sink_init(&r->sink, r->body, sizeof(r->body), flush_chunk, r);
}

static bool is_ours(const char *name, size_t length)
{
#define OURS(text)             \
    {                          \
        text, sizeof(text) - 1 \
    }
    static const struct {
        const char *name;
        size_t length;
    } ours[] = {OURS("X-Content-Type-Options"),
                OURS("X-Frame-Options"),
                OURS("Referrer-Policy"),
                OURS("Content-Length"),
                OURS("Content-Security-Policy"),
                OURS("Transfer-Encoding"),
                OURS("Connection"),
                OURS("Strict-Transport-Security"),
                OURS("Content-Type")};
#undef OURS
    for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++)
        if (length == ours[i].length && strncasecmp(name, ours[i].name, length) == 0)
            return true;
    return false;
}

/* "name: "; returns where its value goes. */
static char *line_begin(struct response *r, const char *name, size_t *ret_room)
{
    size_t length = strlen(name), room = sizeof(r->headers) - r->headers_length;
    char *at = r->headers + r->headers_length;
    ASSERT(!is_ours(name, length));
    ASSERT(length + 2 < room);
    memcpy(at, name, length);
    memcpy(at + length, ": ", 2);
    *ret_room = room - length - 2;
    return at + length + 2;
}

/* Eight bytes at a time, whether one is less than a space; then which. */
static bool has_control(const char *text, size_t size)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t less = 0, eight;
    size_t i = 0;
    for (; i + sizeof(eight) <= size; i += sizeof(eight)) {
        memcpy(&eight, text + i, sizeof(eight));
        less |= (eight - ones * ' ') & ~eight & ones << 7;
    }
    for (i = less ? 0 : i; i < size; i++)
        if ((unsigned char)text[i] < ' ' && text[i] != '\t')
            return true;
    return false;
}

static void line_end(struct response *r, char *value, size_t size, size_t room)
{
    ASSERT(size + 3 <= room);
    ASSERT(!has_control(value, size));
    memcpy(value + size, "\r\n", 3);
    r->headers_length = (uint32_t)(value + size + 2 - r->headers);
}

void response_header(struct response *r, const char *name, const char *format, ...)
{
    size_t room;
    char *value = line_begin(r, name, &room);
    va_list list;
    va_start(list, format);
    int size = vsnprintf(value, room, format, list);
    va_end(list);
    ASSERT(size >= 0);
    line_end(r, value, (size_t)size, room);
}

void response_header_text(struct response *r, const char *name, const char *value, size_t size)
{
    size_t room;
    char *at = line_begin(r, name, &room);
    ASSERT(size < room);
    memcpy(at, value, size);
    line_end(r, at, size, room);
}

bool response_end(struct response *r)
{
    ASSERT(r->status != 0);
    if (r->failed) /* it isn't whole, and must not look as if it were: its last chunk, or all of it, is missing */
        return false;
    allow_time(r); /* the handler may have waited for long */
    r->keep_alive = r->keep_alive && connection_stays(r->connection);
    if (r->head_sent) {
        if (json_sink_flush(&r->sink) == JSON_OK && r->chunked && !r->bodyless)
            r->failed |= !connection_write(
                r->connection, &(struct iovec){.iov_base = (void *)(uintptr_t) "0\r\n\r\n", .iov_len = 5}, 1,
                r->deadline);
    } else {
        size_t room = HEAD_OURS + r->headers_length + connection_front(r->connection)->csp_length;
        struct head h = {.text = connection_room(r->connection, room, r->deadline), .room = room};
        bool empty = r->bodyless || r->status == 204 || r->status == 304;
        r->sent_bytes = empty ? 0 : r->sink.length;
        struct iovec body = piece(r->body, r->sent_bytes);
        if (h.text) {
            head_write(r, &h, true, r->sink.length);
            connection_wrote(r->connection, h.length);
        }
        r->head_sent = true;
        r->failed |= !h.text || !connection_write(r->connection, &body, 1, r->deadline);
    }
    return !r->failed && r->sink.status == JSON_OK && r->keep_alive;
}

/* ---- streams ---- */

void response_stream(struct response *r, int status, const char *type)
{
    response_begin(r, status, type);
    r->streaming = true;
    allow_time(r);
    if (!response_has_header(r, "X-Accel-Buffering"))
        response_header(r, "X-Accel-Buffering", "no");
    char room[HEAD_MAX];
    struct head h = {.text = room, .room = sizeof(room)};
    open_end(r, &h);
    struct iovec head = piece(h.text, h.length);
    r->failed = !connection_write(r->connection, &head, 1, r->deadline) ||
                !connection_flush(r->connection, r->deadline);
}

bool response_flush(struct response *r)
{
    allow_time(r);
    if (json_sink_flush(&r->sink) != JSON_OK)
        r->failed = true;
    r->failed = r->failed || !connection_flush(r->connection, r->deadline);
    return !r->failed;
}

enum error response_wait(struct response *r, message_match *match, void *arg, struct message **ret_message,
                         uint64_t deadline)
{
    allow_time(r);
    if (r->failed || !connection_flush(r->connection, r->deadline))
        return ERR_DOWN;
    return connection_wait(r->connection, match, arg, ret_message, deadline);
}

/* ---- errors ---- */

struct detail {
    const struct catalogue_row *row;
    const char *text;
    void (*write)(struct json *json, void *context);
    void *context;
};

static void write_ids(struct json *json, const struct request *q)
{
    char trace[TRACE_ID_TEXT + 1] = "";
    if (q)
        trace_write_id(&q->trace, trace);
    json_key(json, "request_id");
    json_string_n(json, q ? q->trace.request_id : "", q ? q->trace.request_id_length : 0);
    json_key(json, "trace_id");
    if (q && q->trace.trace_text_length) /* as the client wrote it (CTL-251) */
        json_string_n(json, q->trace.trace_text, q->trace.trace_text_length);
    else
        json_string(json, trace);
}

/* {"error": {...}} of the control contract (CTL-246). */
static void write_envelope(struct json *json, const struct response *r, const struct detail *d)
{
    json_object_begin(json);
    json_key(json, "error");
    json_object_begin(json);
    JSON_MEMBER(json, "code", string, d->row->code);
    JSON_MEMBER(json, "message", string, d->text);
    JSON_MEMBER(json, "http_status", int, d->row->status);
    JSON_MEMBER(json, "retryable", bool, d->row->retryable);
    write_ids(json, r->request);
    if (r->job_id[0])
        JSON_MEMBER(json, "job_id", string, r->job_id);
    json_key(json, "details");
    json_object_begin(json);
    if (d->write)
        d->write(json, d->context);
    json_object_end(json);
    json_object_end(json);
    json_object_end(json);
}

/* The code as a URN has it: RFA_JOB_NOT_FOUND is urn:problem:rfa-job-not-found (AMB-J-62). */
static void write_type(char *text, size_t size, const char *code)
{
    size_t length = (size_t)snprintf(text, size, "urn:problem:");
    for (; *code && length + 1 < size; code++)
        text[length++] = (char)(*code == '_' ? '-' : *code >= 'A' && *code <= 'Z' ? *code + 32 : *code);
    text[length] = 0;
}

/* RFC 9457. */
static void write_problem(struct json *json, const struct response *r, const struct detail *d)
{
    char type[96], instance[TRACE_REQUEST_MAX + 16];
    const struct request *q = r->request;
    write_type(type, sizeof(type), d->row->code);
    bool known = q && q->trace.request_id_length;
    snprintf(instance, sizeof(instance), "urn:request:%.*s", known ? q->trace.request_id_length : 6,
             known ? q->trace.request_id : "unread");
    json_object_begin(json);
    JSON_MEMBER(json, "type", string, type);
    JSON_MEMBER(json, "title", string, d->row->title);
    JSON_MEMBER(json, "status", int, d->row->status);
    JSON_MEMBER(json, "detail", string, d->text);
    JSON_MEMBER(json, "instance", string, instance);
    JSON_MEMBER(json, "code", string, d->row->code);
    write_ids(json, q);
    if (d->row->action[0])
        JSON_MEMBER(json, "action", string, d->row->action);
    if (d->write)
        d->write(json, d->context);
    json_object_end(json);
}

/* RFC 6750, 3: a credential was shown. */
static bool shows_bearer(const struct request *q)
{
    struct span value = q ? q->known[HEADER_AUTHORIZATION] : span_of(NULL, 0);
    return value.size > 7 && strncasecmp(value.bytes, "bearer ", 7) == 0;
}

/* The roles of the route, or nothing when any will do. */
static void write_scope(const struct route *route, char *text, size_t size)
{
    size_t length = 0;
    text[0] = 0;
    for (unsigned i = 0; route && i < ROLE_COUNT; i++)
        if (route->roles & 1u << i)
            length += (size_t)snprintf(text + length, size - length, "%s%s", length ? " " : ", scope=\"",
                                       role_name((enum role)(1u << i)));
    if (length)
        snprintf(text + length, size - length, "\"");
}

static bool is_about_scope(enum error_code code)
{
    return code == ERROR_AUTH_403_ROLE || code == ERROR_AUTH_403_SCOPE || code == ERROR_OPS_403_FORBIDDEN ||
           code == ERROR_RFA_AUTH_FORBIDDEN;
}

static void challenge(struct response *r, enum error_code code)
{
    const struct request *q = r->request;
    char scope[160]; /* all the roles and their frame are 90 bytes */
    if (response_has_header(r, "WWW-Authenticate"))
        return;
    if (catalogue_row(code)->status == 401) {
        response_header(r, "WWW-Authenticate", "Bearer realm=\"coppice\"%s",
                        shows_bearer(q) ? ", error=\"invalid_token\"" : "");
    } else if (is_about_scope(code) && shows_bearer(q) && !q->cross_site) {
        write_scope(code == ERROR_AUTH_403_ROLE ? q->route : NULL, scope, sizeof(scope));
        response_header(r, "WWW-Authenticate", "Bearer realm=\"coppice\", error=\"insufficient_scope\"%s",
                        scope);
    }
}

void response_error_with(struct response *r, enum error_code code, const char *detail,
                         void (*write)(struct json *json, void *context), void *context)
{
    const struct catalogue_row *row = catalogue_row(code);
    const struct detail d = {
        .row = row, .text = detail && detail[0] ? detail : row->title, .write = write, .context = context};
    bool envelope = surface_shape(r->surface) == SHAPE_ENVELOPE;
    struct json json;
    r->error = code;
    if ((row->status == 503 || row->status == 429) && !response_has_header(r, "Retry-After"))
        response_header(r, "Retry-After", "1");
    if (row->status == 401 || row->status == 403)
        challenge(r, code);
    response_begin(r, row->status, envelope ? RESPONSE_JSON : "application/problem+json");
    json_init(&json, &r->sink);
    if (envelope)
        write_envelope(&json, r, &d);
    else
        write_problem(&json, r, &d);
    /* Not json_end: it would flush, and a short answer goes out in one piece with its length. */
}

void response_error(struct response *r, enum error_code code, const char *format, ...)
{
    char detail[512];
    va_list list;
    va_start(list, format);
    vsnprintf(detail, sizeof(detail), format, list);
    va_end(list);
    response_error_with(r, code, detail, NULL, NULL);
}

void response_fail(struct response *r, enum error e)
{
    if (!r->failed)
        r->failure = e;
    r->failed = true;
}

void response_instead(struct response *r)
{
    if (!r->failed || r->head_sent)
        return;
    r->failed = r->beyond = false;
    r->status = 0;
    r->headers_length = r->headers_ours;
    response_error(r, catalogue_code(r->surface, catalogue_failure(r->failure)),
                   "what was asked for couldn't be read to its end");
}

struct of_field {
    const char *field, *what;
};

static void write_field(struct json *json, void *context)
{
    const struct of_field *f = context;
    JSON_MEMBER(json, "field", string, f->field);
    json_key(json, "errors");
    json_array_begin(json);
    json_object_begin(json);
    JSON_MEMBER(json, "field", string, f->field);
    JSON_MEMBER(json, "message", string, f->what);
    json_object_end(json);
    json_array_end(json);
}

void response_error_field(struct response *r, enum error_code code, const char *field, const char *what)
{
    char detail[320];
    struct of_field of = {field, what};
    snprintf(detail, sizeof(detail), "%s %s", field, what);
    response_error_with(r, code, detail, write_field, &of);
}

void response_error_about(struct response *r, enum error_code code, const char *field, const char *format,
                          ...)
{
    char what[300];
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof(what), format, list);
    va_end(list);
    response_error_field(r, code, field, what);
}

/* ---- the last words ---- */

/* 600 bytes of a head with ids, 1024 of a body, RESPONSE_LAST_OURS, and the policy for scripts. `ours`: lines of the front. */
static size_t write_last(struct response *r, const struct front *front, const struct detail *d,
                         struct span ours, char text[RESPONSE_LAST_MAX])
{
    STATIC_ASSERT(HEAD_MAX >= RESPONSE_LAST_MAX &&
                      RESPONSE_LAST_MAX >= 600 + 1024 + RESPONSE_LAST_OURS + FRONT_CSP_MAX,
                  "last words fit");
    bool envelope = surface_shape(r->surface) == SHAPE_ENVELOPE;
    char body[1024], room[HEAD_MAX];
    struct head h = {.text = room, .room = sizeof(room)};
    struct json_sink sink;
    struct json json;
    json_sink_init(&sink, body, sizeof(body), NULL, NULL);
    json_init(&json, &sink);
    if (envelope)
        write_envelope(&json, r, d);
    else
        write_problem(&json, r, d);
    put_status(&h, d->row->status);
    put_date(&h);
    PUT(&h, "Content-Type: ");
    put_text(&h, envelope ? RESPONSE_JSON : "application/problem+json");
    PUT(&h, "\r\nContent-Length: ");
    put_number(&h, sink.length);
    PUT(&h, "\r\n");
    put_ids(&h, r->request);
    put(&h, ours.bytes, ours.size);
    PUT(&h, "Cache-Control: no-store\r\n");
    put_security(&h, front);
    PUT(&h, "Connection: close\r\n\r\n");
    r->sent_bytes = r->bodyless ? 0 : sink.length;
    put(&h, body, r->sent_bytes);
    ASSERT(h.length <= RESPONSE_LAST_MAX);
    memcpy(text, h.text, h.length);
    return h.length;
}

size_t response_last_words(struct response *r, char text[RESPONSE_LAST_MAX])
{
    const struct catalogue_row *row = catalogue_row(catalogue_code(r->surface, ERROR_KIND_INTERNAL));
    const struct detail d = {.row = row, .text = "a fault of the server ended this request"};
    struct span ours = span_of(r->headers, r->headers_ours <= RESPONSE_LAST_OURS ? r->headers_ours : 0);
    return write_last(r, connection_front(r->connection), &d, ours, text);
}

size_t response_turn_away(struct response *r, const struct front *front, bool own,
                          char text[RESPONSE_LAST_MAX])
{
    const struct catalogue_row *row = catalogue_row(r->error);
    const struct detail d = {
        .row = row,
        .text = own ? "this address has as many connections as one address may; nothing of this one was read"
                    : "there is no room for this connection; nothing of it was read"};
    r->status = row->status;
    return write_last(r, front, &d, span_text("Retry-After: 1\r\n"), text);
}
