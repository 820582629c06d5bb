#include "tests/bench/crowd.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "tests/bench/bench.h"
#include "tests/bench/clients.h"
#include "tests/bench/latencies.h"

#define ROOM     262144u /* of what comes at one time */
#define EVENTS   512
#define STUCK_NS (20 * NS_PER_S)

struct link {
    int fd;
    uint32_t part, who;
    uint32_t waiting; /* for so many answers */
    uint32_t kept;    /* bytes of something that isn't whole */
    uint64_t asked;
    char *rest; /* where they are: only while there are some */
};

struct part {
    struct crowd_part o;
    uint64_t done, last_at;
    struct latencies latencies;
};

struct crowd {
    int epoll;
    uint32_t parts_count, links_count;
    uint32_t waiting; /* links of those that aren't patient */
    bool stopping;
    struct part parts[CROWD_PARTS_MAX];
    struct link *links;
    struct epoll_event events[EVENTS];
    char said[CROWD_DEPTH_MAX * CROWD_SAY_MAX], room[ROOM];
};

/* ---- one of them ---- */

static void send_all(int fd, const char *bytes, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t n = send(fd, bytes + done, size - done, MSG_NOSIGNAL);
        if (n < 0 && errno != EINTR)
            bench_fail("sending: %s", strerror(errno));
        done += n > 0 ? (size_t)n : 0;
    }
}

static void say(struct crowd *c, struct link *l)
{
    struct part *p = &c->parts[l->part];
    size_t size = 0;
    for (uint32_t i = 0; i < p->o.depth; i++) {
        size_t more = p->o.talk->say(p->o.arg, l->who, c->said + size);
        size += more;
        l->waiting += more > 0;
    }
    if (!size)
        return;
    l->asked = bench_now();
    c->waiting += !p->o.patient;
    send_all(l->fd, c->said, size);
}

static void answered(struct crowd *c, struct link *l, uint32_t count)
{
    struct part *p = &c->parts[l->part];
    p->done += count;
    p->last_at = bench_now();
    if (count > l->waiting && !p->o.patient)
        bench_fail("%s: more answers than questions", p->o.talk->name);
    if (l->waiting > count) {
        l->waiting -= count;
        return;
    }
    if (l->waiting > 0) {
        latencies_note(&p->latencies, p->last_at - l->asked);
        c->waiting -= !p->o.patient;
        l->waiting = 0;
    }
    if (!c->stopping || p->o.patient)
        say(c, l);
}

static void keep(struct link *l, const char *bytes, size_t size)
{
    l->kept = (uint32_t)size;
    if (size && !l->rest && !(l->rest = malloc(ROOM)))
        bench_fail("no memory");
    if (size)
        memcpy(l->rest, bytes, size);
}

static void hear(struct crowd *c, struct link *l)
{
    struct part *p = &c->parts[l->part];
    uint32_t count = 0;
    if (l->kept)
        memcpy(c->room, l->rest, l->kept);
    ssize_t n = recv(l->fd, c->room + l->kept, ROOM - l->kept, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0)
        bench_fail("%s: the server closed: %s", p->o.talk->name, n ? strerror(errno) : "in order");
    size_t size = l->kept + (size_t)n, at = 0, used;
    do {
        uint32_t done = 0;
        used = at < size ? p->o.talk->hear(p->o.arg, l->who, c->room + at, size - at, &done) : 0;
        at += used;
        count += done;
    } while (used > 0);
    if (size - at == ROOM)
        bench_fail("%s: an answer without end", p->o.talk->name);
    keep(l, c->room + at, size - at);
    if (count)
        answered(c, l, count);
}

/* ---- all of them ---- */

static void open_link(struct crowd *c, struct link *l, uint32_t part, uint32_t who)
{
    const struct crowd_part *o = &c->parts[part].o;
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = l};
    *l = (struct link){.fd = clients_connect(o->port), .part = part, .who = who};
    if (o->talk->greet)
        o->talk->greet(o->arg, who, l->fd);
    if (epoll_ctl(c->epoll, EPOLL_CTL_ADD, l->fd, &e) < 0)
        bench_fail("epoll: %s", strerror(errno));
}

struct crowd *crowd_open(const struct crowd_part *parts, size_t parts_count)
{
    struct crowd *c = calloc(1, sizeof *c);
    ASSERT(parts_count <= CROWD_PARTS_MAX);
    for (size_t i = 0; c && i < parts_count; i++) {
        c->parts[i].o = parts[i];
        c->parts[i].o.depth = parts[i].depth ? parts[i].depth : 1;
        ASSERT(c->parts[i].o.depth <= CROWD_DEPTH_MAX);
        c->links_count += parts[i].connections;
    }
    if (!c || !(c->links = calloc(c->links_count, sizeof *c->links)))
        bench_fail("no memory");
    c->parts_count = (uint32_t)parts_count;
    c->epoll = epoll_create1(EPOLL_CLOEXEC);
    struct link *l = c->links;
    for (uint32_t i = 0; i < c->parts_count; i++)
        for (uint32_t who = 0; who < parts[i].connections; who++)
            open_link(c, l++, i, who);
    return c;
}

static void begin(struct crowd *c)
{
    c->stopping = false;
    for (uint32_t i = 0; i < c->parts_count; i++) {
        c->parts[i].done = 0;
        c->parts[i].last_at = 0;
        memset(&c->parts[i].latencies, 0, sizeof c->parts[i].latencies);
    }
    for (uint32_t i = 0; i < c->links_count; i++)
        if (c->links[i].waiting == 0)
            say(c, &c->links[i]);
}

static void finish(const struct crowd *c, uint64_t began, struct crowd_result *ret)
{
    for (uint32_t i = 0; i < c->parts_count; i++) {
        const struct part *p = &c->parts[i];
        ret[i] = (struct crowd_result){.done = p->done};
        if (!p->done)
            continue;
        ret[i].ns = p->last_at - began;
        ret[i].rate = (double)p->done * 1e9 / (double)ret[i].ns;
        if (p->o.patient)
            continue; /* they may have waited since the run before */
        ret[i].p50_us = latencies_us(&p->latencies, 0.5);
        ret[i].p99_us = latencies_us(&p->latencies, 0.99);
    }
}

void crowd_run(struct crowd *c, uint64_t ns, bool (*going)(void *arg), void *arg, struct crowd_result *ret)
{
    uint64_t began = bench_now(), now = began, heard = began;
    begin(c);
    while (!c->stopping || c->waiting > 0) {
        int count = epoll_wait(c->epoll, c->events, EVENTS, 1);
        for (int i = 0; i < count; i++)
            hear(c, c->events[i].data.ptr);
        now = bench_now();
        if ((ns && now - began >= ns) || (going && !going(arg)))
            c->stopping = true;
        heard = count > 0 ? now : heard;
        if (now - heard > STUCK_NS)
            bench_fail("%s: nothing is answered any more, %u connections wait", c->parts[0].o.talk->name,
                       c->waiting);
    }
    if (ret)
        finish(c, began, ret);
}

void crowd_close(struct crowd *c)
{
    if (!c)
        return;
    for (uint32_t i = 0; i < c->links_count; i++) {
        close(c->links[i].fd);
        free(c->links[i].rest);
    }
    close(c->epoll);
    free(c->links);
    free(c);
}
