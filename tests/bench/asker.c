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

/* The size of a body in chunks, with their sizes and the last one; 0: it isn't whole. */
static size_t chunked_size(const char *body, size_t size)
{
    size_t at = 0, chunk;
    do {
        const char *line = memchr(body + at, '\n', size - at);
        if (!line)
            return 0;
        chunk = strtoul(body + at, NULL, 16);
        at = (size_t)(line - body) + 1;
        if (size - at < chunk + 2)
            return 0;
        at += chunk + 2;
    } while (chunk > 0);
    return at;
}

static bool is_chunked(const char *answer, size_t head)
{
    static const char line[] = "\r\nTransfer-Encoding: chunked\r\n";
    return memmem(answer, head, line, sizeof line - 1) != NULL;
}

size_t asker_answer(const char *bytes, size_t size, int *ret_status, size_t *ret_head)
{
    static const char name[] = "\r\ncontent-length:";
    const char *end = memmem(bytes, size, "\r\n\r\n", 4);
    if (!end)
        return 0;
    size_t head = (size_t)(end - bytes) + 4;
    if (memcmp(bytes, "HTTP/1.1 ", 9) != 0)
        bench_fail("no answer of HTTP: %.*s", (int)head, bytes);
    *ret_status = atoi(bytes + 9);
    *ret_head = head;
    for (const char *at = bytes; (at = memchr(at, '\r', (size_t)(end - at))); at++) {
        if (strncasecmp(at, name, sizeof name - 1) != 0)
            continue;
        size_t whole = head + strtoul(at + sizeof name - 1, NULL, 10);
        return size < whole ? 0 : whole;
    }
    if (!is_chunked(bytes, head))
        bench_fail("an answer without a length: %.*s", (int)head, bytes);
    size_t body = chunked_size(bytes + head, size - head);
    return body ? head + body : 0;
}

size_t asker_body(const char *answer, size_t whole, size_t head, char *room)
{
    const char *body = answer + head;
    size_t size = 0, chunk;
    if (!is_chunked(answer, head)) {
        memmove(room, body, whole - head);
        return whole - head;
    }
    while ((chunk = strtoul(body, NULL, 16)) > 0) {
        body = (const char *)memchr(body, '\n', (size_t)(answer + whole - body)) + 1;
        memmove(room + size, body, chunk);
        size += chunk;
        body += chunk + 2;
    }
    return size;
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
    size_t used = 0, whole, head;
    int status;
    int size = snprintf(request, sizeof request, "%s %s HTTP/1.1\r\nHost: localhost\r\n%s%s%s%s", method,
                        path, a->more ? a->more : "", key ? "Authorization: Bearer " : "", key ? key : "",
                        key ? "\r\n" : "");
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
    } while (!(whole = asker_answer(a->room, used, &status, &head)));
    a->body = a->room + head;
    a->room[head + asker_body(a->room, whole, head, a->room + head)] = 0;
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
