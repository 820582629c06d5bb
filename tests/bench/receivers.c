#define _GNU_SOURCE
#include "tests/bench/receivers.h"
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "tests/bench/bench.h"
#include "tests/bench/daemon.h"

#define EVENTS 256
#define ROOM   16384u

struct caller {
    int fd;
    bool listens, silent;
    uint32_t used;
    struct caller *next; /* of all, for the end */
    char room[];
};

static struct {
    int epoll;
    uint16_t port;
    pthread_t thread;
    struct caller *all;
    _Atomic uint64_t answered, last_at;
    _Atomic bool ending;
} now;

static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

static struct caller *add(int fd, bool listens, bool silent)
{
    struct caller *c = calloc(1, sizeof *c + (listens ? 0 : ROOM));
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};
    if (!c || epoll_ctl(now.epoll, EPOLL_CTL_ADD, fd, &e) < 0)
        bench_fail("a receiver: %s", strerror(errno));
    *c = (struct caller){.fd = fd, .listens = listens, .silent = silent, .next = now.all};
    now.all = c;
    return c;
}

static in_addr_t address_of(uint32_t receiver)
{
    return htonl(0x7f000101u + receiver);
}

static void begin_one(uint32_t receiver, bool silent)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(now.port), .sin_addr = {address_of(receiver)}};
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0 ||
        bind(fd, (struct sockaddr *)&at, sizeof at) < 0 || listen(fd, 1024) < 0)
        bench_fail("receiver %u: %s", receiver, strerror(errno));
    add(fd, true, silent);
}

/* The size of the request that is whole at the beginning of these bytes, or 0. */
static size_t request_size(const char *bytes, size_t size)
{
    static const char name[] = "\r\ncontent-length:";
    const char *end = memmem(bytes, size, "\r\n\r\n", 4);
    size_t body = 0;
    if (!end)
        return 0;
    for (const char *at = bytes; (at = memchr(at, '\r', (size_t)(end - at))); at++)
        if (strncasecmp(at, name, sizeof name - 1) == 0)
            body = strtoul(at + sizeof name - 1, NULL, 10);
    size_t whole = (size_t)(end - bytes) + 4 + body;
    return size < whole ? 0 : whole;
}

static void answer_all(struct caller *c)
{
    size_t at = 0, whole;
    while ((whole = request_size(c->room + at, c->used - at)) > 0) {
        at += whole;
        if (c->silent)
            continue;
        if (send(c->fd, answer, sizeof answer - 1, MSG_NOSIGNAL) < 0)
            break;
        now.last_at = bench_now();
        now.answered++;
    }
    memmove(c->room, c->room + at, c->used - at);
    c->used -= (uint32_t)at;
}

/* Its record stays until the end: events of it may have been fetched already. */
static void hear(struct caller *c)
{
    if (c->listens) {
        int fd = accept4(c->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0)
            add(fd, false, c->silent);
        return;
    }
    ssize_t n = recv(c->fd, c->room + c->used, ROOM - c->used, 0);
    if (n > 0) {
        c->used += (uint32_t)n;
        answer_all(c);
    } else if (n == 0 || errno != EAGAIN) {
        close(c->fd);
        c->fd = -1;
    }
}

static void *receive(void *arg)
{
    struct epoll_event events[EVENTS];
    (void)arg;
    while (!now.ending) {
        int count = epoll_wait(now.epoll, events, EVENTS, 50);
        for (int i = 0; i < count; i++)
            hear(events[i].data.ptr);
    }
    return NULL;
}

void receivers_begin(uint32_t count, uint32_t silent)
{
    ASSERT(count <= RECEIVERS_MAX);
    memset(&now, 0, sizeof now);
    now.port = daemon_free_port();
    now.epoll = epoll_create1(EPOLL_CLOEXEC);
    for (uint32_t i = 0; i < count; i++)
        begin_one(i, i + silent >= count);
    if (pthread_create(&now.thread, NULL, receive, NULL))
        bench_fail("no thread");
}

void receivers_end(void)
{
    now.ending = true;
    pthread_join(now.thread, NULL);
    for (struct caller *c = now.all, *next; c; c = next) {
        next = c->next;
        if (c->fd >= 0)
            close(c->fd);
        free(c);
    }
    close(now.epoll);
}

void receivers_url(uint32_t receiver, char *ret, uint32_t size)
{
    struct in_addr address = {address_of(receiver)};
    snprintf(ret, size, "http://%s:%u/hook", inet_ntoa(address), now.port);
}

uint64_t receivers_count(uint64_t *ret_last_at)
{
    uint64_t count = now.answered;
    *ret_last_at = now.last_at;
    return count;
}
