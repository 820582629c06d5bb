#define _GNU_SOURCE
#include "tests/bench/bare.h"
#include <errno.h>
#include <llhttp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "tests/bench/bench.h"

const char bare_body[] = "{\"message\":\"a hundred bytes, from a handler to its client, neither more "
                         "nor less of them than that\"}";
_Static_assert(sizeof bare_body - 1 == BARE_BODY_SIZE, "as it says");

#define HEAD                                                \
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" \
    "Content-Length: 100\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n\r\n"

enum { EVENTS = 256, IN_SIZE = 16384, ANSWERS_MAX = 64 };

struct bare {
    int fd;
    uint32_t complete; /* requests of this read */
    llhttp_t parser;
};

static char answers[ANSWERS_MAX][sizeof HEAD - 1 + BARE_BODY_SIZE];

static int on_complete(llhttp_t *parser)
{
    struct bare *b = parser->data;
    b->complete++;
    return 0;
}

static const llhttp_settings_t settings = {.on_message_complete = on_complete};

static bool answer(struct bare *b)
{
    while (b->complete > 0) {
        uint32_t n = b->complete < ANSWERS_MAX ? b->complete : ANSWERS_MAX;
        size_t size = n * sizeof answers[0];
        if (send(b->fd, answers, size, MSG_NOSIGNAL) != (ssize_t)size)
            return false;
        b->complete -= n;
    }
    return true;
}

static bool hear(struct bare *b)
{
    static char in[IN_SIZE];
    ssize_t n = recv(b->fd, in, sizeof in, 0);
    if (n < 0 && errno == EAGAIN)
        return true;
    return n > 0 && llhttp_execute(&b->parser, in, (size_t)n) == HPE_OK && answer(b);
}

static void accept_all(int epoll, int listening)
{
    int fd, on = 1;
    while ((fd = accept4(listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        struct bare *b = calloc(1, sizeof *b);
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = b};
        if (!b)
            bench_fail("no memory");
        b->fd = fd;
        llhttp_init(&b->parser, HTTP_REQUEST, &settings);
        b->parser.data = b;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e) < 0)
            bench_fail("epoll");
    }
}

void bare_serve(int listening)
{
    struct epoll_event events[EVENTS], e = {.events = EPOLLIN};
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    for (int i = 0; i < ANSWERS_MAX; i++) {
        memcpy(answers[i], HEAD, sizeof HEAD - 1);
        memcpy(answers[i] + sizeof HEAD - 1, bare_body, BARE_BODY_SIZE);
    }
    if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, listening, &e) < 0)
        bench_fail("epoll");
    for (;;) {
        int count = epoll_wait(epoll, events, EVENTS, -1);
        for (int i = 0; i < count; i++) {
            struct bare *b = events[i].data.ptr;
            if (!b) {
                accept_all(epoll, listening);
            } else if (!hear(b)) {
                close(b->fd);
                free(b);
            }
        }
    }
}
