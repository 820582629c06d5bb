#define _GNU_SOURCE
#include "chaos/volley.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SECOND_US UINT64_C(1000000)

struct barrel {
    int fd; /* -1: it is to be connected */
    bool waits;
    uint64_t number, sent_us;
    size_t used;
    char bytes[VOLLEY_ANSWER_MAX + 1];
};

struct firing {
    const struct volley *volley;
    uint64_t began_us, fired, seconds;
    uint32_t waiting;
    struct barrel barrels[VOLLEY_CONNECTIONS];
};

uint64_t volley_now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * SECOND_US + (uint64_t)t.tv_nsec / 1000;
}

static void answered(struct firing *f, struct barrel *b, int status, const char *body)
{
    struct volley_answer answer = {.number = b->number,
                                   .status = status,
                                   .took_us = volley_now_us() - b->sent_us,
                                   .head = b->bytes,
                                   .body = body};
    f->volley->answer(f->volley->context, &answer);
    b->waits = false;
    f->waiting--;
}

static void lost(struct firing *f, struct barrel *b)
{
    b->bytes[b->used] = 0;
    if (b->fd >= 0)
        close(b->fd);
    b->fd = -1;
    answered(f, b, 0, "");
}

/* On loopback: it is connected or refused at once. */
static bool connected(struct barrel *b, uint16_t port)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int one = 1;
    if (b->fd >= 0)
        return true;
    b->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (b->fd < 0)
        return false;
    setsockopt(b->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    if (connect(b->fd, (struct sockaddr *)&to, sizeof(to)) == 0)
        return true;
    close(b->fd);
    b->fd = -1;
    return false;
}

/* A request is smaller than any socket's buffer, so that it goes in one piece. */
static void fire(struct firing *f, struct barrel *b)
{
    b->number = f->fired++;
    b->sent_us = volley_now_us();
    b->used = 0;
    b->waits = true;
    f->waiting++;
    const char *request = f->volley->request(f->volley->context, b->number);
    size_t size = strlen(request);
    if (!connected(b, f->volley->port) || send(b->fd, request, size, MSG_NOSIGNAL) != (ssize_t)size)
        lost(f, b);
}

/* The whole answer, as far as it is there. */
static void hear(struct firing *f, struct barrel *b)
{
    static const char length_field[] = "\r\nContent-Length:";
    ssize_t n = recv(b->fd, b->bytes + b->used, VOLLEY_ANSWER_MAX - b->used, MSG_DONTWAIT);
    if (n <= 0) {
        lost(f, b);
        return;
    }
    b->used += (size_t)n;
    b->bytes[b->used] = 0;
    char *body = strstr(b->bytes, "\r\n\r\n");
    if (!body) {
        if (b->used == VOLLEY_ANSWER_MAX)
            lost(f, b);
        return;
    }
    const char *at = strcasestr(b->bytes, length_field);
    size_t length = at && at < body ? strtoul(at + sizeof(length_field) - 1, NULL, 10) : 0;
    body += 4;
    if ((size_t)(body - b->bytes) + length > VOLLEY_ANSWER_MAX) {
        lost(f, b);
        return;
    }
    if (b->used < (size_t)(body - b->bytes) + length)
        return;
    bool last = strcasestr(b->bytes, "\r\nConnection: close") != NULL;
    body[-2] = 0; /* the head ends before its empty line */
    answered(f, b, atoi(b->bytes + strlen("HTTP/1.1 ")), body);
    if (last) {
        close(b->fd);
        b->fd = -1;
    }
}

static void listen_for(struct firing *f, int timeout_ms)
{
    struct pollfd fds[VOLLEY_CONNECTIONS];
    uint32_t of[VOLLEY_CONNECTIONS] = {0}, count = 0;
    uint64_t now_us = volley_now_us();
    for (uint32_t i = 0; i < VOLLEY_CONNECTIONS; i++)
        if (f->barrels[i].waits) {
            of[count] = i;
            fds[count++] = (struct pollfd){.fd = f->barrels[i].fd, .events = POLLIN};
        }
    (void)poll(fds, count, timeout_ms);
    for (uint32_t i = 0; i < count; i++) {
        struct barrel *b = &f->barrels[of[i]];
        if (fds[i].revents)
            hear(f, b);
        else if (now_us - b->sent_us > VOLLEY_PATIENCE_US)
            lost(f, b);
    }
}

/* As many as are due by now and have a connection. */
static void fire_due(struct firing *f, uint64_t since_us)
{
    uint64_t due = since_us * f->volley->rate / SECOND_US;
    for (uint32_t i = 0; i < VOLLEY_CONNECTIONS && f->fired < due; i++)
        if (!f->barrels[i].waits)
            fire(f, &f->barrels[i]);
}

uint64_t volley_fire(const struct volley *volley)
{
    struct firing *f = calloc(1, sizeof(*f));
    if (!f)
        return UINT64_MAX;
    f->volley = volley;
    f->began_us = volley_now_us();
    for (uint32_t i = 0; i < VOLLEY_CONNECTIONS; i++)
        f->barrels[i].fd = -1;
    for (uint64_t since_us = 0; since_us < volley->duration_us; since_us = volley_now_us() - f->began_us) {
        fire_due(f, since_us);
        if (since_us / SECOND_US > f->seconds && volley->second) {
            f->seconds++;
            volley->second(volley->context);
        }
        listen_for(f, 1);
    }
    while (f->waiting > 0)
        listen_for(f, 10);
    for (uint32_t i = 0; i < VOLLEY_CONNECTIONS; i++)
        if (f->barrels[i].fd >= 0)
            close(f->barrels[i].fd);
    uint64_t fired = f->fired;
    free(f);
    return fired;
}
