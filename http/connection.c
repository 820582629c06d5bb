#define _GNU_SOURCE /* accept4 */
#include "http/connection.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/telemetry.h"

#define HEADERS(X)             \
    X(HEADER_HOST, "host")     \
    X(HEADER_ORIGIN, "origin") \
    X(HEADER_FETCH_SITE, "sec-fetch-site")

enum header {
#define X(name, text) name,
    HEADERS(X)
#undef X
        HEADER_COUNT /* none of them: not kept */
};

enum { NAME_MAX_KEPT = 16, VALUE_MAX_KEPT = 128, READ_SIZE = 4096, DRAIN_READS = 16 };

struct connection {
    struct connection_args args;
    llhttp_t parser;
    int fd;
    uint64_t watch;
    struct arena_mark mark; /* everything of a request is above it */

    /* of the request that is arriving */
    uint64_t began; /* 0: none is */
    char *target;
    uint32_t target_length, head_bytes, body_bytes;
    int refusal; /* the status that a callback decided on */
    bool complete, keep_alive;
    enum header header;
    uint8_t name_length, seen[HEADER_COUNT];
    char name[NAME_MAX_KEPT];
    uint8_t value_length[HEADER_COUNT];
    char value[HEADER_COUNT][VALUE_MAX_KEPT];
};

/* ---- what llhttp tells ---- */

static int refuse(struct connection *c, int status)
{
    c->refusal = status;
    return -1;
}

static int head_grows(struct connection *c, size_t length)
{
    if (length > CONNECTION_HEAD_MAX - c->head_bytes)
        return refuse(c, 431);
    c->head_bytes += (uint32_t)length;
    return 0;
}

static int on_url(llhttp_t *parser, const char *at, size_t length)
{
    struct connection *c = parser->data;
    if (length > CONNECTION_TARGET_MAX - c->target_length)
        return refuse(c, 414);
    if (!c->target)
        c->target = actor_alloc(CONNECTION_TARGET_MAX + 1);
    memcpy(c->target + c->target_length, at, length);
    c->target_length += (uint32_t)length;
    return head_grows(c, length);
}

static int on_header_field(llhttp_t *parser, const char *at, size_t length)
{
    struct connection *c = parser->data;
    for (size_t i = 0; i < length && c->name_length < NAME_MAX_KEPT; i++)
        c->name[c->name_length++] = at[i];
    return head_grows(c, length);
}

static int on_header_field_complete(llhttp_t *parser)
{
    static const char *const names[] = {
#define X(name, text) [name] = text,
        HEADERS(X)
#undef X
    };
    struct connection *c = parser->data;
    c->header = HEADER_COUNT;
    for (int i = 0; i < HEADER_COUNT; i++)
        if (strlen(names[i]) == c->name_length && strncasecmp(names[i], c->name, c->name_length) == 0)
            c->header = (enum header)i;
    c->name_length = 0;
    if (c->header == HEADER_COUNT)
        return 0;
    return c->seen[c->header]++ ? refuse(c, 400) : 0; /* each of these three means something once only */
}

static int on_header_value(llhttp_t *parser, const char *at, size_t length)
{
    struct connection *c = parser->data;
    if (c->header != HEADER_COUNT) {
        uint8_t *kept = &c->value_length[c->header];
        if (length >= (size_t)(VALUE_MAX_KEPT - *kept))
            return refuse(c, 400);
        memcpy(&c->value[c->header][*kept], at, length);
        *kept = (uint8_t)(*kept + length);
        c->value[c->header][*kept] = 0;
    }
    return head_grows(c, length);
}

static int on_headers_complete(llhttp_t *parser)
{
    struct connection *c = parser->data;
    if (parser->upgrade || parser->http_major != 1 || parser->http_minor > 1)
        return refuse(c, 400);
    if (parser->content_length > CONNECTION_BODY_MAX)
        return refuse(c, 413);
    if (!c->seen[HEADER_HOST] && parser->http_minor == 1)
        return refuse(c, 400);
    return 0;
}

static int on_body(llhttp_t *parser, const char *at, size_t length)
{
    struct connection *c = parser->data;
    (void)at;
    if (length > CONNECTION_BODY_MAX - c->body_bytes)
        return refuse(c, 413);
    c->body_bytes += (uint32_t)length;
    return 0;
}

/* Pausing here gives the request to the handler before anything of the next one is looked at. */
static int on_message_complete(llhttp_t *parser)
{
    struct connection *c = parser->data;
    c->complete = true;
    c->keep_alive = llhttp_should_keep_alive(parser);
    return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
    .on_url = on_url,
    .on_header_field = on_header_field,
    .on_header_field_complete = on_header_field_complete,
    .on_header_value = on_header_value,
    .on_headers_complete = on_headers_complete,
    .on_body = on_body,
    .on_message_complete = on_message_complete,
};

/* ---- one request ---- */

static void forget_request(struct connection *c)
{
    actor_arena_reset(c->mark);
    c->began = 0;
    c->target = NULL;
    c->target_length = c->head_bytes = c->body_bytes = 0;
    c->refusal = 0;
    c->complete = c->keep_alive = false;
    c->header = HEADER_COUNT;
    c->name_length = 0;
    memset(c->seen, 0, sizeof(c->seen));
    memset(c->value_length, 0, sizeof(c->value_length));
    memset(c->value, 0, sizeof(c->value));
}

/* The struct without its buffer, which needn't be zero. */
static void response_for(struct connection *c, struct response *r)
{
    memset(r, 0, offsetof(struct response, buffer));
    r->fd = c->fd;
    r->watch = &c->watch;
    r->deadline = actor_now() + c->args.idle_ns;
    r->http10 = c->complete && c->parser.http_minor == 0;
    r->bodyless = c->complete && c->parser.method == HTTP_HEAD;
    r->keep_alive = c->keep_alive;
}

/* Host, without its port, is one of this machine's loopback names. */
static bool host_is_loopback(const char *host)
{
    if (strncmp(host, "[::1]", 5) == 0)
        return host[5] == 0 || host[5] == ':';
    size_t length = strcspn(host, ":");
    if (length == 9 && strncasecmp(host, "localhost", 9) == 0)
        return true;
    return strncmp(host, "127.", 4) == 0 && strspn(host, "0123456789.") == length;
}

/* A browser says where the page is from; our own pages come from http://HOST. */
static bool from_elsewhere(const struct connection *c)
{
    const char *origin = c->value[HEADER_ORIGIN], *site = c->value[HEADER_FETCH_SITE];
    if (c->seen[HEADER_FETCH_SITE] && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0)
        return true;
    return c->seen[HEADER_ORIGIN] &&
           (strncmp(origin, "http://", 7) != 0 || strcmp(origin + 7, c->value[HEADER_HOST]) != 0);
}

/* False: the connection is to be closed. */
static bool serve(struct connection *c)
{
    struct response r;
    response_for(c, &r);
    if (!c->target)
        c->target = actor_alloc(1);
    c->target[c->target_length] = 0;
    char *question = strchr(c->target, '?');
    if (question)
        *question = 0;
    struct request request = {
        .method = (llhttp_method_t)c->parser.method,
        .path = c->target,
        .query = question ? question + 1 : "",
        .cross_site = from_elsewhere(c),
    };
    if (c->args.loopback_only && c->seen[HEADER_HOST] && !host_is_loopback(c->value[HEADER_HOST]))
        response_problem(&r, 421, "Host is '%s'; it must be localhost or a loopback address",
                         c->value[HEADER_HOST]);
    else
        c->args.handler(c->args.context, &request, &r);
    bool keep = response_end(&r);
    forget_request(c);
    return keep;
}

/* The last answer. What the client is still sending is taken in, so that closing doesn't reset the connection
 * before the answer was read; a client that sends more than that finds out the hard way. */
static enum actor_step refuse_and_stop(struct connection *c, int status, const char *why)
{
    struct response r;
    char dropped[READ_SIZE];
    response_for(c, &r);
    r.keep_alive = false;
    response_problem(&r, status, "%s", why);
    response_end(&r);
    shutdown(c->fd, SHUT_WR);
    for (int i = 0; i < DRAIN_READS && read(c->fd, dropped, sizeof(dropped)) > 0; i++)
        ;
    return ACTOR_STOP;
}

/* ---- bytes ---- */

static const char *why_refused(const struct connection *c)
{
    switch (c->refusal) {
    case 413:
        return "the body is longer than 65536 bytes";
    case 414:
        return "the request target is longer than 2048 bytes";
    case 431:
        return "the header is longer than 16384 bytes";
    default:
        return c->refusal ? "one Host header is needed, HTTP/1.0 or 1.1, and no upgrade"
                          : llhttp_get_error_reason(&c->parser);
    }
}

static enum actor_step feed(struct connection *c, const char *bytes, size_t length)
{
    while (length > 0) {
        if (!c->began)
            c->began = actor_now();
        llhttp_errno_t e = llhttp_execute(&c->parser, bytes, length);
        if (e == HPE_OK)
            return ACTOR_CONTINUE;
        if (e != HPE_PAUSED || !c->complete)
            return refuse_and_stop(c, c->refusal ? c->refusal : 400, why_refused(c));
        size_t used = (size_t)(llhttp_get_error_pos(&c->parser) - bytes);
        bytes += used;
        length -= used;
        if (!serve(c))
            return ACTOR_STOP;
        llhttp_resume(&c->parser);
    }
    return ACTOR_CONTINUE;
}

static enum actor_step read_all(struct connection *c)
{
    char bytes[READ_SIZE];
    for (;;) {
        ssize_t length = read(c->fd, bytes, sizeof(bytes));
        if (length < 0 && errno == EINTR)
            continue;
        if (length < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            break;
        if (length <= 0 || feed(c, bytes, (size_t)length) != ACTOR_CONTINUE)
            return ACTOR_STOP;
        /* Bytes that trickle in don't buy time: a request has from its first byte on. */
        if (c->began && actor_now() - c->began > c->args.idle_ns)
            return refuse_and_stop(c, 408, "the request did not arrive in time");
    }
    actor_idle_timeout((c->began ? c->began : actor_now()) + c->args.idle_ns);
    return ACTOR_CONTINUE;
}

/* ---- the actor ---- */

static enum actor_step connection_init(void *state, const void *args, size_t args_size)
{
    struct connection *c = state;
    int on = 1;
    ASSERT(args_size == sizeof(c->args));
    memcpy(&c->args, args, sizeof(c->args));
    do
        c->fd = accept4(c->args.listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    while (c->fd < 0 && (errno == EINTR || errno == ECONNABORTED));
    if (c->fd < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return ACTOR_IGNORE;
    if (c->fd < 0)
        actor_refuse(reason_error(errno));
    if (!actor_own_fd(c->fd)) {
        close(c->fd);
        actor_refuse(reason_error(ENOMEM));
    }
    (void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on,
                     sizeof(on)); /* unix sockets have none, and need none */
    c->watch = actor_watch(c->fd, WATCH_READ);
    if (!c->watch)
        actor_refuse(reason_error(errno));
    c->mark = actor_arena_mark();
    forget_request(c);
    llhttp_init(&c->parser, HTTP_REQUEST, &settings);
    c->parser.data = c;
    actor_idle_timeout(actor_now() + c->args.idle_ns);
    return ACTOR_CONTINUE;
}

static enum actor_step connection_handle(void *state, struct message *m)
{
    struct connection *c = state;
    switch (m->type) {
    case MESSAGE_READY:
        return read_all(c);
    case MESSAGE_TIMEOUT:
        return c->began ? refuse_and_stop(c, 408, "the request did not arrive in time") : ACTOR_STOP;
    default:
        TELEMETRY(MESSAGE_UNKNOWN, 1, DIM(CLASS, connection_class.name));
        return ACTOR_CONTINUE;
    }
}

const struct actor_class connection_class = {
    .name = "connection",
    .state_size = sizeof(struct connection),
    .init = connection_init,
    .handle = connection_handle,
    .stack_size = 256 * 1024, /* the answer's buffer, a read's, and the tree's recursion */
    .arena_quota =
        2u << 20, /* 64 KiB for each level of the tree that is being shown, LIVING_DEPTH_MAX of them */
};
