#define _GNU_SOURCE /* memmem */
#include "tests/bench/clients.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "tests/bench/bench.h"
#include "tests/bench/latencies.h"

#define ROOM      32768u /* of answers that come together */
#define EVENTS    512
#define STUCK_NS  (10 * NS_PER_S)
#define BESIDE_NS (NS_PER_MS / 2)

struct client {
    int fd;
    uint32_t waiting;    /* answers */
    uint64_t asked, due; /* when; when it asks next */
    uint32_t kept;       /* bytes of an answer that isn't whole */
    char *rest;          /* where they are: only while there are some */
};

struct clients {
    struct clients_options o;
    int epoll;
    char *batch; /* depth requests */
    size_t batch_size;
    uint32_t answer_size;
    struct client *all;
    struct epoll_event events[EVENTS];
    char room[ROOM];
    uint64_t answered;
    struct latencies latencies;
    uint32_t waiting; /* connections */
};

int clients_connect(uint16_t port)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct linger none = {.l_onoff = 1};
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) < 0)
        bench_fail("connecting to port %u: %s", port, strerror(errno));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    return fd;
}

/* ---- answers ---- */

static uint32_t length_of(const char *answer, size_t head)
{
    static const char name[] = "\r\ncontent-length:";
    for (const char *at = answer; at + sizeof name < answer + head; at++)
        if (strncasecmp(at, name, sizeof name - 1) == 0)
            return (uint32_t)strtoul(at + sizeof name - 1, NULL, 10);
    bench_fail("an answer without Content-Length: %.*s", (int)head, answer);
}

/* The size of the answer at `bytes`, 0 when it isn't whole. All of them are of one length. */
static size_t take_answer(struct clients *c, const char *bytes, size_t size)
{
    if (c->answer_size) {
        const char *status = bytes + 9;
        if (size < c->answer_size)
            return 0;
        if (memcmp(bytes, "HTTP/1.1 ", 9) != 0 || strtol(status, NULL, 10) != c->o.status)
            bench_fail("an answer that isn't as the first: %.*s", (int)(size < 400 ? size : 400), bytes);
        return c->answer_size;
    }
    const char *end = memmem(bytes, size, "\r\n\r\n", 4);
    if (!end)
        return 0;
    size_t head = (size_t)(end - bytes) + 4, whole = head + length_of(bytes, head);
    if (size < whole)
        return 0;
    c->answer_size = (uint32_t)whole;
    return take_answer(c, bytes, size);
}

/* ---- one connection ---- */

static void ask(struct clients *c, struct client *one, uint64_t asked)
{
    size_t done = 0;
    one->asked = asked;
    one->waiting = c->o.depth;
    c->waiting++;
    while (done < c->batch_size) {
        ssize_t n = send(one->fd, c->batch + done, c->batch_size - done, MSG_NOSIGNAL);
        if (n < 0 && errno != EINTR)
            bench_fail("sending: %s", strerror(errno));
        done += n > 0 ? (size_t)n : 0;
    }
}

static void hear(struct clients *c, struct client *one)
{
    if (one->kept)
        memcpy(c->room, one->rest, one->kept);
    ssize_t n = recv(one->fd, c->room + one->kept, ROOM - one->kept, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0)
        bench_fail("the server closed: %s", n ? strerror(errno) : "in order");
    size_t size = one->kept + (size_t)n, at = 0, used;
    while (one->waiting > 0 && (used = take_answer(c, c->room + at, size - at)) > 0) {
        at += used;
        one->waiting--;
        c->answered++;
    }
    one->kept = (uint32_t)(size - at);
    if (one->kept && one->waiting == 0)
        bench_fail("more answers than requests");
    if (one->kept && !one->rest && !(one->rest = malloc(ROOM)))
        bench_fail("no memory");
    if (one->kept)
        memcpy(one->rest, c->room + at, one->kept);
}

/* ---- all of them ---- */

struct clients *clients_open(const struct clients_options *o)
{
    struct clients *c = calloc(1, sizeof *c);
    if (!c || !(c->all = calloc(o->connections, sizeof *c->all)))
        bench_fail("no memory");
    c->o = *o;
    c->o.depth = o->depth ? o->depth : 1;
    c->o.status = o->status ? o->status : 200;
    c->batch_size = c->o.depth * o->request_size;
    c->batch = malloc(c->batch_size);
    c->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (!c->batch || c->epoll < 0)
        bench_fail("no memory");
    for (uint32_t i = 0; i < c->o.depth; i++)
        memcpy(c->batch + i * o->request_size, o->request, o->request_size);
    for (uint32_t i = 0; i < o->connections; i++) {
        struct client *one = &c->all[i];
        one->fd = clients_connect(o->port);
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = one};
        if (epoll_ctl(c->epoll, EPOLL_CTL_ADD, one->fd, &e) < 0)
            bench_fail("epoll: %s", strerror(errno));
        if (i % 64 == 63 ||
            i + 1 == o->connections) { /* its answer says that the server has accepted all of them */
            ask(c, one, bench_now());
            while (one->waiting > 0) {
                if (epoll_wait(c->epoll, c->events, EVENTS, 5000) <= 0)
                    bench_fail("the server doesn't answer connection %u", i);
                hear(c, one);
            }
            c->waiting--;
        }
    }
    return c;
}

/* Asks whose time has come; returns when the next one's does. */
static uint64_t ask_due(struct clients *c, uint64_t now, uint64_t interval, uint64_t stop, uint32_t *next)
{
    for (;;) {
        struct client *one = &c->all[*next];
        if (one->due > now || one->due >= stop)
            return one->due;
        if (one->waiting > 0)
            return now; /* late: it asks as soon as it can, and those behind it wait */
        ask(c, one, one->due);
        one->due += interval;
        *next = (*next + 1) % c->o.connections;
    }
}

void clients_run(struct clients *c, double rate, uint64_t ns, void (*beside)(void *arg), void *arg,
                 struct clients_result *ret)
{
    uint64_t started = bench_now(), stop = started + ns, now = started, heard = started, looked = 0;
    uint64_t interval = rate > 0 ? (uint64_t)(1e9 * c->o.connections * c->o.depth / rate) : 0;
    uint32_t next = 0;
    c->answered = 0;
    memset(&c->latencies, 0, sizeof c->latencies);
    for (uint32_t i = 0; i < c->o.connections; i++)
        if (interval)
            c->all[i].due = started + interval * i / c->o.connections;
        else
            ask(c, &c->all[i], now);
    while (now < stop || c->waiting > 0) {
        if (interval && now < stop)
            ask_due(c, now, interval, stop, &next);
        int count = epoll_wait(c->epoll, c->events, EVENTS, interval ? 0 : 1);
        now = bench_now();
        for (int i = 0; i < count; i++) {
            struct client *one = c->events[i].data.ptr;
            hear(c, one);
            if (one->waiting > 0)
                continue;
            latencies_note(&c->latencies, now > one->asked ? now - one->asked : 0);
            c->waiting--;
            if (!interval && now < stop)
                ask(c, one, now);
        }
        heard = count > 0 || c->waiting == 0 ? now : heard;
        if (now - heard > STUCK_NS)
            bench_fail("the server has stopped answering: %u connections wait", c->waiting);
        if (beside && now - looked > BESIDE_NS) {
            beside(arg);
            looked = now;
        }
    }
    *ret = (struct clients_result){.requests = c->answered,
                                   .rate = (double)c->answered * 1e9 / (double)(bench_now() - started),
                                   .p50_us = latencies_us(&c->latencies, 0.5),
                                   .p99_us = latencies_us(&c->latencies, 0.99)};
}

void clients_close(struct clients *c)
{
    if (!c)
        return;
    for (uint32_t i = 0; i < c->o.connections; i++) {
        close(c->all[i].fd);
        free(c->all[i].rest);
    }
    close(c->epoll);
    free(c->all);
    free(c->batch);
    free(c);
}
