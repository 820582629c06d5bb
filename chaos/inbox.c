#define _GNU_SOURCE
#include "chaos/inbox.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "chaos/book.h"
#include "chaos/brief.h"
#include "chaos/signature.h"
#include "chaos/verdict.h"

#define MS       UINT64_C(1000000)
#define IDLE_NS  (600 * UINT64_C(1000000000)) /* the server decides how long it keeps a connection */
#define SLOW_MAX (2000 * MS)

enum {
    PORTS = 33, /* one for those that are good, the others in turn for those that aren't: other receivers */
    LISTENERS_MAX = 2048 /* those, and one for each round of plays */
};

static struct {
    struct inbox **all; /* by number - 1 */
    uint32_t count, room, listeners_count, bad_count;
    struct watch listeners[LISTENERS_MAX];
    uint16_t ports[PORTS];
    bool closed;
    struct wire *wires[4096];
} now;

/* An event may have been raised ahead of its time. */
static uint64_t since_ns(const struct event *event)
{
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    uint64_t wall_ms = (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
    return wall_ms > event->at_ms ? (wall_ms - event->at_ms) * MS : 0;
}

struct inbox *inbox_make(enum manner manner, uint32_t events)
{
    struct inbox *inbox = calloc(1, sizeof(*inbox));
    char address[INET_ADDRSTRLEN];
    if (now.count == now.room) {
        now.room = now.room ? now.room * 2 : 256;
        now.all = realloc(now.all, now.room * sizeof(struct inbox *));
    }
    if (!inbox || !now.all)
        exit(2);
    now.all[now.count++] = inbox;
    inbox->number = now.count;
    inbox->manner = manner;
    inbox->events = events;
    uint32_t port = manner == MANNER_GOOD ? 0 : 1 + now.bad_count++ % (PORTS - 1);
    inet_ntop(AF_INET, &brief.receiver.sin_addr, address, sizeof(address));
    snprintf(inbox->url, sizeof(inbox->url), "http://%s:%u/in/%u", address, now.ports[port], inbox->number);
    return inbox;
}

static struct inbox *inbox_of(const char *path)
{
    static const char prefix[] = "/in/";
    if (strncmp(path, prefix, sizeof(prefix) - 1) != 0)
        return NULL;
    unsigned long number = strtoul(path + sizeof(prefix) - 1, NULL, 10);
    return number && number <= now.count ? now.all[number - 1] : NULL;
}

/* ---- what has come ---- */

struct arrival {
    struct inbox *inbox;
    struct event event;
    struct uuid id;
    uint64_t attempt;
    bool first_of_job, settled;
};

static bool read_delivery(const struct letter *request, struct arrival *ret)
{
    const struct page *page = page_read(0, answer_body(request));
    const struct json_node *root = page ? page_root(page) : NULL;
    char media[64] = "", id[64] = "", own[UUID_TEXT_SIZE], time[32] = "";
    if (!page || !trail_event_read(page, root, true, &ret->event) ||
        !page_uuid(page, root, "delivery_id", &ret->id) ||
        !page_number(page, root, "delivery_attempt", &ret->attempt))
        return false;
    uuid_format(&ret->id, own);
    (void)letter_field(request, "content-type", media, sizeof(media));
    return strcmp(request->method, "POST") == 0 && strncmp(media, "application/json", 16) == 0 &&
           letter_field(request, "webhook-id", id, sizeof(id)) && strcmp(id, own) == 0 &&
           letter_field(request, "webhook-timestamp", time, sizeof(time)) && time[0] &&
           time[strspn(time, "0123456789")] == 0 &&
           (ret->event.name != EVENT_EMITTED ||
            (ret->event.prev == STATE_SUCCEEDED && ret->event.next == STATE_SUCCEEDED));
}

static void judge_signature(const struct letter *request)
{
    char id[64] = "", time[32] = "", signature[512] = "";
    (void)letter_field(request, "webhook-id", id, sizeof(id));
    (void)letter_field(request, "webhook-timestamp", time, sizeof(time));
    (void)letter_field(request, "webhook-signature", signature, sizeof(signature));
    VERDICT(HOOK_SIGNED, signature_good(brief.secret, id, time, answer_body(request), signature),
            "'%s' of %s at %s", signature, id, time);
}

/* False: nothing that can be answered as the inbox says. */
static bool take(const struct letter *request, struct arrival *ret)
{
    ret->inbox = inbox_of(request->path);
    tally(COUNT_DELIVERIES);
    if (!VERDICT(HOOK_ALL, ret->inbox != NULL, "%s: nobody asked for that", request->path) ||
        !VERDICT(HOOK_SHAPE, read_delivery(request, ret), "%s %s\n%.*s%.300s", request->method, request->path,
                 (int)(request->head_size < 200 ? request->head_size : 200), request->head, request->body))
        return false;
    if (brief.secret)
        judge_signature(request);
    const struct entry *entry = book_find(&ret->event.job);
    ret->settled = entry && entry->settled;
    ret->inbox->counter++;
    if (ret->settled) {
        tally(COUNT_DELIVERIES_AGAIN);
        return VERDICT(HOOK_ALL, brief.restarts || ret->inbox->late || entry->given_up,
                       "%s of a job comes when all of it had come", event_name(ret->event.name));
    }
    uint32_t before = lanes_left();
    struct lane *lane = lane_of(&ret->event.job, ret->inbox->number);
    ret->first_of_job =
        lane->count == 0 || (lane->count == 1 && uuid_equal(&lane->deliveries[0].event.id, &ret->event.id));
    VERDICT(HOOK_ALL, !ret->inbox->closed || lanes_left() == before, "%s after it was unregistered",
            request->path);
    VERDICT(HOOK_ALL, ret->inbox->events >> ret->event.name & 1, "%s was not asked for",
            event_name(ret->event.name));
    if (ret->attempt == 1 && ret->inbox->manner == MANNER_GOOD)
        tally_time(TIME_NOTICE, since_ns(&ret->event));
    lane_take(lane, &ret->event, &ret->id, ret->attempt,
              ret->inbox->late || ret->inbox->manner == MANNER_HANGING);
    return true;
}

/* ---- how it is answered ---- */

struct answering {
    int status; /* 0: not at all, the connection is closed */
    uint64_t delay;
};

static struct answering fail_first(const struct arrival *arrival)
{
    static const int ways[] = {500, 502, 404, 302, 0};
    if (arrival->attempt > 1)
        return (struct answering){.status = 200};
    return (struct answering){.status = ways[arrival->inbox->counter % 5]};
}

static struct answering answer_to(const struct arrival *arrival)
{
    if (arrival->settled)
        return (struct answering){.status = 200};
    static const int good[] = {200, 201, 202, 204};
    uint64_t timeout = brief.hook_timeout_ms * MS, slow = timeout / 3;
    switch (arrival->inbox->manner) {
    case MANNER_HANGING:
        if (arrival->first_of_job && arrival->attempt == 1)
            return (struct answering){.delay = timeout * 2};
        return (struct answering){.status = 200};
    case MANNER_FAILING:
        return fail_first(arrival);
    case MANNER_NEVER:
        return (struct answering){.status = 500};
    case MANNER_SLOW:
        return (struct answering){.status = 200, .delay = slow < SLOW_MAX ? slow : SLOW_MAX};
    case MANNER_GOOD:
    default:
        return (struct answering){.status = good[arrival->inbox->counter % 4]};
    }
}

static bool send_answer(struct wire *wire, int status)
{
    char text[256];
    int size = snprintf(text, sizeof(text), "HTTP/1.1 %d %s\r\n%s%s\r\n", status, status < 300 ? "OK" : "No",
                        /* Whoever follows it asks for what is no inbox. */
                        status == 302 ? "Location: /elsewhere\r\n" : "",
                        status == 204 ? "" : "Content-Length: 0\r\n");
    return wire_send(wire, span_of(text, (size_t)size), strand_now() + 10000 * MS);
}

/* One request; false: the connection has served. */
static bool serve(struct wire *wire)
{
    struct letter request;
    struct arrival arrival;
    if (!wire_receive(wire, false, &request, strand_now() + IDLE_NS))
        return false;
    bool good = take(&request, &arrival), keep = request.keep_alive;
    letter_free(&request);
    if (!good)
        return send_answer(wire, 404) && keep;
    struct answering answering = answer_to(&arrival);
    if (answering.delay)
        strand_sleep(answering.delay);
    bool done = answering.status >= 200 && answering.status < 300;
    if (!done)
        tally(COUNT_DELIVERIES_FAILED);
    lane_answer(&arrival.event.job, arrival.inbox->number, &arrival.event.id, answering.status);
    if (done && arrival.inbox->manner == MANNER_GOOD)
        tally_time(TIME_NOTIFIED, since_ns(&arrival.event));
    return answering.status && send_answer(wire, answering.status) && keep;
}

/* ---- the listener ---- */

enum { WIRES_MAX = sizeof(now.wires) / sizeof(now.wires[0]) };

static void connection(void *arg)
{
    struct wire **slot = arg;
    while (serve(*slot))
        ;
    wire_close(*slot);
    free(*slot);
    *slot = NULL;
}

static struct wire **free_slot(void)
{
    for (size_t i = 0; i < WIRES_MAX; i++)
        if (!now.wires[i])
            return &now.wires[i];
    return NULL;
}

static void accept_one(int fd)
{
    struct wire **slot = free_slot(), *wire = slot ? malloc(sizeof(*wire)) : NULL;
    if (!wire) {
        close(fd); /* a failed attempt: the server comes again */
        return;
    }
    wire_take(wire, fd);
    *slot = wire;
    if (!strand_start(connection, slot)) {
        wire_close(wire);
        free(wire);
        *slot = NULL;
    }
}

static void listener(void *arg)
{
    struct watch *watch = arg;
    while (!now.closed) {
        int fd = accept4(watch->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0)
            accept_one(fd);
        else
            (void)watch_wait(watch, UINT64_MAX);
    }
    watch_drop(watch);
    close(watch->fd);
}

_Noreturn static void give_up(void)
{
    perror("traffic: a receiver of webhooks");
    exit(2);
}

void inbox_listen_at(int fd)
{
    if (now.listeners_count == LISTENERS_MAX || listen(fd, 1024) != 0)
        give_up();
    struct watch *watch = &now.listeners[now.listeners_count++];
    watch_add(watch, fd);
    (void)strand_start(listener, watch);
}

static uint16_t listen_at(uint16_t port)
{
    struct sockaddr_in address = brief.receiver;
    socklen_t size = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), yes = 1;
    address.sin_port = htons(port);
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (fd < 0 || bind(fd, (struct sockaddr *)(void *)&address, size) != 0 ||
        getsockname(fd, (struct sockaddr *)(void *)&address, &size) != 0)
        give_up();
    inbox_listen_at(fd);
    return ntohs(address.sin_port);
}

void inbox_listen(void)
{
    uint16_t first = ntohs(brief.receiver.sin_port);
    for (uint32_t i = 0; i < PORTS; i++)
        now.ports[i] = listen_at(first ? (uint16_t)(first + i) : 0);
}

/* Their strands wait for bytes: a socket that is shut down has some to say. */
void inbox_close_all(void)
{
    now.closed = true;
    for (uint32_t i = 0; i < now.listeners_count; i++)
        (void)shutdown(now.listeners[i].fd, SHUT_RDWR);
    for (size_t i = 0; i < WIRES_MAX; i++)
        if (now.wires[i])
            (void)shutdown(now.wires[i]->watch.fd, SHUT_RDWR);
}
