#define _GNU_SOURCE
#include "tests/bench/asker.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>
#include "tests/bench/bench.h"
#include "tests/bench/clients.h"

#define REQUEST_MAX 16384

size_t asker_answer(const char *bytes, size_t size, int *ret_status, size_t *ret_head)
{
    static const char name[] = "\r\ncontent-length:";
    const char *end = memmem(bytes, size, "\r\n\r\n", 4);
    if (!end)
        return 0;
    size_t head = (size_t)(end - bytes) + 4;
    if (memcmp(bytes, "HTTP/1.1 ", 9) != 0)
        bench_fail("no answer of HTTP: %.*s", (int)head, bytes);
    for (const char *at = bytes; (at = memchr(at, '\r', (size_t)(end - at))); at++) {
        if (strncasecmp(at, name, sizeof name - 1) != 0)
            continue;
        size_t whole = head + strtoul(at + sizeof name - 1, NULL, 10);
        *ret_status = atoi(bytes + 9);
        *ret_head = head;
        return size < whole ? 0 : whole;
    }
    bench_fail("an answer without Content-Length: %.*s", (int)head, bytes);
}

/* Puts the chunks of a body together where they stand; false: they aren't whole. */
static bool join_chunks(char *body, size_t size, size_t *ret_size)
{
    size_t from = 0, to = 0, chunk;
    do {
        const char *line = memchr(body + from, '\n', size - from);
        if (!line)
            return false;
        chunk = strtoul(body + from, NULL, 16);
        from = (size_t)(line - body) + 1;
        if (size - from < chunk + 2)
            return false;
        from += chunk + 2;
    } while (chunk > 0);
    for (from = 0; (chunk = strtoul(body + from, NULL, 16)) > 0; from += chunk + 2, to += chunk) {
        from = (size_t)((const char *)memchr(body + from, '\n', size - from) - body) + 1;
        memmove(body + to, body + from, chunk);
    }
    *ret_size = to;
    return true;
}

/* The size of the answer that has come, or 0; a chunked one is put together. */
static size_t whole_answer(struct asker *a, size_t used, int *ret_status)
{
    static const char chunked[] = "\r\nTransfer-Encoding: chunked\r\n";
    const char *end = memmem(a->room, used, "\r\n\r\n", 4);
    if (!end)
        return 0;
    size_t head = (size_t)(end - a->room) + 4, body;
    if (!memmem(a->room, head, chunked, sizeof chunked - 1)) {
        size_t whole = asker_answer(a->room, used, ret_status, &head);
        a->body = a->room + head;
        return whole;
    }
    if (!join_chunks(a->room + head, used - head, &body))
        return 0;
    *ret_status = atoi(a->room + 9);
    a->body = a->room + head;
    return head + body;
}

void asker_open(struct asker *a, uint16_t port)
{
    *a = (struct asker){.fd = clients_connect(port), .room = malloc(ASKER_ROOM)};
    if (!a->room)
        bench_fail("no memory");
}

void asker_close(struct asker *a)
{
    close(a->fd);
    free(a->room);
}

int asker_ask(struct asker *a, const char *method, const char *path, const char *key, const char *body)
{
    char request[REQUEST_MAX];
    size_t used = 0, whole;
    int status;
    int size = snprintf(request, sizeof request, "%s %s HTTP/1.1\r\nHost: localhost\r\n%s%s%s", method, path,
                        key ? "Authorization: Bearer " : "", key ? key : "", key ? "\r\n" : "");
    if (body)
        size +=
            snprintf(request + size, sizeof request - (size_t)size,
                     "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s", strlen(body), body);
    else
        size += snprintf(request + size, sizeof request - (size_t)size, "\r\n");
    if ((size_t)size >= sizeof request)
        bench_fail("a request of %d bytes", size);
    if (send(a->fd, request, (size_t)size, MSG_NOSIGNAL) != size)
        bench_fail("%s %s: the server takes nothing: %s", method, path, strerror(errno));
    do {
        ssize_t n = recv(a->fd, a->room + used, ASKER_ROOM - 1 - used, 0);
        if (n <= 0)
            bench_fail("%s %s: the server says nothing", method, path);
        used += (size_t)n;
    } while (!(whole = whole_answer(a, used, &status)));
    a->room[whole] = 0;
    return status;
}

bool asker_member(const struct asker *a, const char *name, char *ret, size_t size)
{
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\":", name);
    const char *at = strstr(a->body, quoted);
    if (!at)
        return false;
    at += strlen(quoted);
    at += *at == '"';
    snprintf(ret, size, "%.*s", (int)strcspn(at, "\",}"), at);
    return true;
}
