#include "http/response.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define STATUSES(X)                           \
    X(200, "OK")                              \
    X(400, "Bad Request")                     \
    X(403, "Forbidden")                       \
    X(404, "Not Found")                       \
    X(405, "Method Not Allowed")              \
    X(408, "Request Timeout")                 \
    X(409, "Conflict")                        \
    X(413, "Content Too Large")               \
    X(414, "URI Too Long")                    \
    X(421, "Misdirected Request")             \
    X(431, "Request Header Fields Too Large") \
    X(500, "Internal Server Error")           \
    X(503, "Service Unavailable")             \
    X(504, "Gateway Timeout")

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

/* One descriptor can be armed once: the connection's own watch gives way to the writer's and comes back after
 * it. */
static bool wait_until_writable(struct response *r)
{
    actor_unwatch(*r->watch);
    *r->watch = 0;
    bool writable = actor_wait_fd(r->fd, WATCH_WRITE, r->deadline) == OK;
    *r->watch = actor_watch(r->fd, WATCH_READ);
    return writable && *r->watch;
}

static void send_all(struct response *r, struct iovec *pieces, size_t count)
{
    struct msghdr message = {.msg_iov = pieces, .msg_iovlen = count};
    while (!r->failed && message.msg_iovlen > 0) {
        ssize_t sent = sendmsg(r->fd, &message, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0) {
            r->failed = (errno != EAGAIN && errno != EWOULDBLOCK) || !wait_until_writable(r);
            continue;
        }
        size_t done = (size_t)sent;
        while (message.msg_iovlen > 0 && done >= message.msg_iov->iov_len) {
            done -= message.msg_iov->iov_len;
            message.msg_iov++;
            message.msg_iovlen--;
        }
        if (message.msg_iovlen > 0) {
            message.msg_iov->iov_base = (char *)message.msg_iov->iov_base + done;
            message.msg_iov->iov_len -= done;
        }
    }
}

static struct iovec piece(const char *bytes, size_t length)
{
    return (struct iovec){.iov_base = (void *)(uintptr_t)bytes, .iov_len = length};
}

static size_t head(struct response *r, char *text, size_t size, const char *framing)
{
    int length = snprintf(text, size,
                          "HTTP/1.1 %d %s\r\nContent-Type: %s\r\n%sCache-Control: no-store\r\n"
                          "X-Content-Type-Options: nosniff\r\n%s%s%s%s%s\r\n",
                          r->status, response_title(r->status), r->type, framing, r->header ? r->header : "",
                          r->header ? ": " : "", r->header ? r->header_value : "", r->header ? "\r\n" : "",
                          r->keep_alive ? "Connection: keep-alive\r\n" : "Connection: close\r\n");
    ASSERT(length > 0 && (size_t)length < size);
    return (size_t)length;
}

/* The buffer is full: the length won't be known. */
static bool flush_chunk(void *context, const char *bytes, size_t length)
{
    struct response *r = context;
    char text[512], size[24];
    struct iovec pieces[4];
    size_t count = 0;
    if (!r->head_sent) {
        r->chunked = !r->http10;
        r->keep_alive = r->keep_alive && r->chunked;
        size_t n = head(r, text, sizeof(text), r->chunked ? "Transfer-Encoding: chunked\r\n" : "");
        pieces[count++] = piece(text, n);
        r->head_sent = true;
    }
    if (!r->bodyless && r->chunked)
        pieces[count++] = piece(size, (size_t)snprintf(size, sizeof(size), "%zx\r\n", length));
    if (!r->bodyless)
        pieces[count++] = piece(bytes, length);
    if (!r->bodyless && r->chunked)
        pieces[count++] = piece("\r\n", 2);
    send_all(r, pieces, count);
    return !r->failed;
}

void response_begin(struct response *r, int status, const char *type)
{
    ASSERT(r->status == 0);
    r->status = status;
    r->type = type;
    json_sink_init(&r->sink, r->buffer, sizeof(r->buffer), flush_chunk, r);
}

bool response_end(struct response *r)
{
    char text[512], framing[48];
    ASSERT(r->status != 0);
    if (r->head_sent) {
        json_sink_flush(&r->sink);
        if (r->chunked && !r->bodyless)
            send_all(r, (struct iovec[]){piece("0\r\n\r\n", 5)}, 1);
    } else {
        snprintf(framing, sizeof(framing), "Content-Length: %zu\r\n", r->sink.length);
        size_t length = head(r, text, sizeof(text), framing);
        r->head_sent = true;
        send_all(r, (struct iovec[]){piece(text, length), piece(r->buffer, r->bodyless ? 0 : r->sink.length)},
                 2);
    }
    return !r->failed && r->sink.status == JSON_OK && r->keep_alive;
}

void response_problem(struct response *r, int status, const char *format, ...)
{
    char detail[512];
    struct json json;
    va_list list;
    va_start(list, format);
    vsnprintf(detail, sizeof(detail), format, list);
    va_end(list);
    response_begin(r, status, "application/problem+json");
    json_init(&json, &r->sink);
    json_object_begin(&json);
    JSON_MEMBER(&json, "type", string, "about:blank");
    JSON_MEMBER(&json, "title", string, response_title(status));
    JSON_MEMBER(&json, "status", int, status);
    JSON_MEMBER(&json, "detail", string, detail);
    json_object_end(&json);
    /* Not json_end: it would flush, and a short answer goes out in one piece with its length. */
}
