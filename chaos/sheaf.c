#define _GNU_SOURCE
#include "chaos/sheaf.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "chaos/mortal.h"
#include "runtime/assert.h"

bool sheaf_init(struct sheaf *s)
{
    bool good = true;
    *s = (struct sheaf){.lines_count = 1};
    for (uint32_t i = 0; i < SHEAF_LINES; i++) {
        s->lines[i] = (struct sheaf_line){
            .fd = -1, .last = true, .out = malloc(SHEAF_OUT_MAX), .in = malloc(SHEAF_IN_MAX + 1)};
        good = good && s->lines[i].out && s->lines[i].in;
    }
    return good;
}

/* ---- connections ---- */

static void line_close(struct sheaf_line *line)
{
    if (line->fd >= 0)
        close(line->fd);
    line->fd = -1;
    line->last = true;
}

void sheaf_fini(struct sheaf *s)
{
    for (uint32_t i = 0; i < SHEAF_LINES; i++) {
        line_close(&s->lines[i]);
        free(s->lines[i].out);
        free(s->lines[i].in);
    }
}

void sheaf_meet(struct sheaf *s, uint16_t port, uint32_t lines_count)
{
    ASSERT(lines_count >= 1 && lines_count <= SHEAF_LINES);
    for (uint32_t i = 0; i < SHEAF_LINES; i++)
        line_close(&s->lines[i]);
    s->port = port;
    s->lines_count = lines_count;
}

/* On loopback it is connected or refused at once. */
static bool line_dial(struct sheaf_line *line, uint16_t port)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval limit = {.tv_sec = MORTAL_WAIT_MS / 1000};
    struct linger none = {.l_onoff =
                              1}; /* a campaign would leave more of them waiting than there are ports */
    int one = 1, failed;
    if (mortal_struck()) /* whoever has the port now may be another lane's */
        return false;
    line->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (line->fd < 0)
        mortal_give_up("no socket");
    setsockopt(line->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    setsockopt(line->fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
    setsockopt(line->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    do
        failed = connect(line->fd, (struct sockaddr *)&to, sizeof(to));
    while (failed && errno == EINTR);
    if (failed && errno != EISCONN) { /* the second time it is connected already */
        line_close(line);
        return false;
    }
    line->last = false;
    return true;
}

/* ---- requests ---- */

bool sheaf_full(const struct sheaf *s)
{
    return s->count == SHEAF_MAX;
}

void sheaf_add(struct sheaf *s, uint32_t what, uint32_t number, const char *method, const char *path,
               const char *body)
{
    ASSERT(s->count < SHEAF_MAX);
    uint32_t at = s->count % s->lines_count;
    struct sheaf_line *line = &s->lines[at];
    size_t room = SHEAF_OUT_MAX - line->out_size;
    s->asks[s->count++] =
        (struct sheaf_ask){.what = what, .number = number, .line = at, .from = line->out_size};
    int size =
        snprintf(line->out + line->out_size, room,
                 "%s %s HTTP/1.1\r\nHost: h\r\n%s%s%s%sContent-Length: %zu\r\n\r\n%s", method, path,
                 *s->key ? "Authorization: Bearer " : "", s->key, *s->key ? "\r\n" : "",
                 body ? "Content-Type: application/json\r\n" : "", body ? strlen(body) : 0, body ? body : "");
    ASSERT(size > 0 && (size_t)size < room);
    line->out_size += (size_t)size;
}

static void line_send(struct sheaf_line *line, uint16_t port)
{
    line->sent = line->in_used = line->in_at = 0;
    if (line->last)
        line_close(line);
    if (line->out_size == 0 || (line->fd < 0 && !line_dial(line, port)))
        return;
    while (line->sent < line->out_size) {
        ssize_t n = send(line->fd, line->out + line->sent, line->out_size - line->sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return; /* what it has answered before may still be read */
        line->sent += (size_t)n;
    }
}

/* ---- answers ---- */

/* An answer among the bytes that have come so far. */
struct extent {
    size_t head, body, all; /* bytes: with the empty line; of the body, decoded; until the next answer */
};

/* A body in chunks from `at` on, which ends before `end`, is put together in its place; false: its last chunk isn't there yet, and
 * nothing has changed. */
static bool chunks_join(char *at, const char *end, struct extent *ret)
{
    char *into = at, *next = at;
    for (int joined = 0; joined < 2; joined++) { /* once to see that all of it is there */
        size_t size = 1;
        for (next = at; size > 0; next += size + 2) {
            const char *line = memmem(next, (size_t)(end - next), "\r\n", 2);
            size = line ? strtoul(next, &next, 16) : 0;
            if (!line || (size_t)(end - line) < size + 4)
                return false;
            next = (char *)(uintptr_t)line + 2;
            if (joined)
                memmove(into, next, size);
            into += joined ? size : 0;
        }
    }
    ret->body = (size_t)(into - at);
    ret->all = ret->head + (size_t)(next - at);
    return true;
}

/* False: it isn't whole yet. */
static bool answer_whole(char *bytes, size_t size, struct extent *ret)
{
    static const char length[] = "\r\nContent-Length:", chunked[] = "\r\nTransfer-Encoding: chunked";
    char *end = strstr(bytes, "\r\n\r\n");
    if (!end)
        return false;
    ret->head = (size_t)(end - bytes) + 4;
    const char *at = strcasestr(bytes, length);
    if (at && at < end) {
        ret->body = strtoul(at + sizeof(length) - 1, NULL, 10);
        ret->all = ret->head + ret->body;
        return size >= ret->all;
    }
    at = strcasestr(bytes, chunked);
    if (at && at < end)
        return chunks_join(bytes + ret->head, bytes + size, ret);
    ret->body = 0;
    ret->all = ret->head;
    return true;
}

/* More bytes behind those of the answer that is read; false: there are none. */
static bool line_recv(struct sheaf_line *line)
{
    ssize_t n;
    if (line->in_at) {
        memmove(line->in, line->in + line->in_at, line->in_used - line->in_at);
        line->in_used -= line->in_at;
        line->in_at = 0;
    }
    if (line->in_used == SHEAF_IN_MAX)
        return false;
    do
        n = recv(line->fd, line->in + line->in_used, SHEAF_IN_MAX - line->in_used, 0);
    while (n < 0 && errno == EINTR);
    if (n > 0)
        line->in_used += (size_t)n;
    return n > 0;
}

/* The next answer, whole; it ends at *ret_end, where another one may begin. */
static bool line_answer(struct sheaf_line *line, struct sheaf_ask *ask, char **ret_end)
{
    struct extent extent = {0};
    do {
        char *bytes = line->in + line->in_at;
        line->in[line->in_used] = 0;
        if (answer_whole(bytes, line->in_used - line->in_at, &extent)) {
            bytes[extent.head - 2] = 0; /* before its empty line */
            ask->status = atoi(bytes + strlen("HTTP/1.1 "));
            ask->head = bytes;
            ask->body = bytes + extent.head;
            *ret_end = bytes + extent.head + extent.body;
            line->in_at += extent.all;
            return true;
        }
    } while (line_recv(line));
    return false;
}

static void ask_one(struct sheaf_line *line, struct sheaf_ask *ask,
                    void (*tell)(void *context, const struct sheaf_ask *ask), void *context)
{
    char *end = NULL, behind = 0;
    ask->head = ask->body = "";
    ask->status = ask->from < line->sent ? SHEAF_LOST : SHEAF_UNSENT;
    if (ask->status == SHEAF_LOST && !line->last && line_answer(line, ask, &end)) {
        behind = *end;
        *end = 0;
        line->last = strcasestr(ask->head, "\r\nConnection: close") != NULL;
    } else {
        line->last = true;
    }
    tell(context, ask);
    if (end)
        *end = behind;
}

uint32_t sheaf_ask_all(struct sheaf *s, void (*tell)(void *context, const struct sheaf_ask *ask),
                       void *context)
{
    uint32_t unanswered = 0;
    for (uint32_t i = 0; i < s->lines_count; i++)
        line_send(&s->lines[i], s->port);
    for (uint32_t l = 0; l < s->lines_count; l++)
        for (uint32_t i = l; i < s->count; i += s->lines_count) {
            ask_one(&s->lines[l], &s->asks[i], tell, context);
            unanswered += s->asks[i].status <= 0;
        }
    for (uint32_t i = 0; i < s->lines_count; i++)
        s->lines[i].out_size = 0;
    s->count = 0;
    return unanswered;
}

bool sheaf_field(const char *body, const char *name, char *value, size_t size)
{
    char wanted[64];
    snprintf(wanted, sizeof(wanted), "\"%s\":\"", name);
    const char *at = strstr(body, wanted);
    at = at ? at + strlen(wanted) : "";
    snprintf(value, size, "%.*s", (int)strcspn(at, "\""), at);
    return *at != 0;
}
