#define _GNU_SOURCE /* memmem */
#include "tests/support/talk.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

_Noreturn static void die(const char *what)
{
    fprintf(stderr, "talk: %s\n", what);
    _exit(99);
}

void talk_begin(struct talk *t, const struct testserver *server)
{
    struct timeval time = {.tv_sec = TALK_STUCK_MS / 1000};
    int on = 1;
    *t = (struct talk){.fd = testserver_connect(server), .bytes = malloc(TALK_MAX)};
    if (!t->bytes)
        die("no memory");
    setsockopt(t->fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
    setsockopt(t->fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
    setsockopt(t->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/* Whether it is to be tried again: the process was stopped meanwhile, which ends a wait that has a limit. */
static bool was_stopped(SSL *ssl, int result)
{
    int why = SSL_get_error(ssl, result);
    return (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) && errno == EINTR;
}

static bool shake_hands(SSL *ssl)
{
    int n;
    do
        n = SSL_connect(ssl);
    while (n != 1 && was_stopped(ssl, n));
    return n == 1;
}

void talk_shake_hands(struct talk *t)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL *ssl = context ? SSL_new(context) : NULL;
    SSL_CTX_free(context);
    if (!ssl || SSL_set_fd(ssl, t->fd) != 1 || !shake_hands(ssl))
        die("no TLS");
    t->tls = ssl;
}

void talk_begin_tls(struct talk *t, const struct testserver *server)
{
    talk_begin(t, server);
    talk_shake_hands(t);
}

void talk_end(struct talk *t)
{
    SSL_free(t->tls);
    close(t->fd);
    free(t->bytes);
}

bool talk_say(struct talk *t, const char *bytes, size_t size)
{
    while (size > 0) {
        int part = size > 1u << 20 ? 1 << 20 : (int)size;
        ssize_t n = t->tls ? SSL_write(t->tls, bytes, part) : send(t->fd, bytes, size, MSG_NOSIGNAL);
        if (n <= 0 && (t->tls ? was_stopped(t->tls, (int)n) : errno == EINTR))
            continue;
        if (n <= 0)
            return false;
        bytes += n;
        size -= (size_t)n;
    }
    return true;
}

bool talk_say_text(struct talk *t, const char *text)
{
    return talk_say(t, text, strlen(text));
}

/* More of it. 0: the end; -1: a reset, or TLS cut off. */
static ssize_t more(struct talk *t)
{
    ssize_t n;
    if (t->size == TALK_MAX - 1)
        die("an answer without end");
    size_t room = TALK_MAX - 1 - t->size;
    if (t->tls) {
        do
            n = SSL_read(t->tls, t->bytes + t->size, (int)room);
        while (n <= 0 && was_stopped(t->tls, (int)n));
        if (n <= 0)
            n = SSL_get_error(t->tls, (int)n) == SSL_ERROR_ZERO_RETURN ? 0 : -1;
    } else {
        do
            n = recv(t->fd, t->bytes + t->size, room, 0);
        while (n < 0 && errno == EINTR);
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            die("nothing comes");
    }
    if (n > 0)
        t->size += (size_t)n;
    t->bytes[t->size] = 0;
    return n;
}

/* At least so many bytes behind t->at. */
static bool reach(struct talk *t, size_t size)
{
    while (t->size - t->at < size)
        if (more(t) <= 0)
            return false;
    return true;
}

/* The offset behind the next `text` from `from` on; 0: the end came first. */
static size_t behind(struct talk *t, size_t from, const char *text)
{
    const char *found;
    size_t length = strlen(text);
    while (!(found = memmem(t->bytes + from, t->size - from, text, length)))
        if (more(t) <= 0)
            return 0;
    return (size_t)(found - t->bytes) + length;
}

/* Puts the chunks behind `begin` together there; the size, or -1. *ret_end: behind the last one. */
static ssize_t chunks(struct talk *t, size_t begin, size_t *ret_end)
{
    size_t at = begin, put = begin;
    for (;;) {
        size_t line = behind(t, at, "\r\n");
        if (!line)
            return -1;
        size_t size = strtoul(t->bytes + at, NULL, 16);
        at = line;
        while (t->size < at + size + 2)
            if (more(t) <= 0)
                return -1;
        memmove(t->bytes + put, t->bytes + at, size);
        put += size;
        at += size;
        if (memcmp(t->bytes + at, "\r\n", 2) != 0)
            return -1;
        at += 2;
        if (size == 0)
            break;
    }
    *ret_end = at;
    return (ssize_t)(put - begin);
}

static const char *line_of(const char *head, const char *name, const char **ret_end)
{
    size_t length = strlen(name);
    for (const char *at = strstr(head, "\r\n"); at; at = strstr(at, "\r\n")) {
        at += 2;
        if (strncasecmp(at, name, length) == 0 && at[length] == ':') {
            *ret_end = strstr(at, "\r\n");
            return at + length + 1 + (at[length + 1] == ' ');
        }
    }
    return NULL;
}

struct heard talk_hear(struct talk *t)
{
    static char head[16384], none[1];
    struct heard a = {.status = 0, .head = none, .body = none};
    if (t->at == t->size)
        t->at = t->size = 0;
    size_t body = behind(t, t->at, "\r\n\r\n");
    const char *end;
    if (!body || body - t->at >= sizeof head || memcmp(t->bytes + t->at, "HTTP/1.1 ", 9) != 0)
        return a;
    memcpy(head, t->bytes + t->at, body - t->at);
    head[body - t->at] = 0;
    a.head = head;
    a.status = atoi(head + 9);
    const char *length = line_of(head, "Content-Length", &end),
               *coding = line_of(head, "Transfer-Encoding", &end),
               *connection = line_of(head, "Connection", &end);
    a.chunked = coding != NULL;
    a.close = connection && strncasecmp(connection, "close", 5) == 0;
    t->at = body;
    if (!t->bodyless && a.chunked) {
        ssize_t size = chunks(t, body, &t->at);
        if (size < 0)
            return (struct heard){.head = none, .body = none};
        a.body_size = (size_t)size;
    } else if (!t->bodyless && length) {
        a.body_size = strtoul(length, NULL, 10);
        if (!reach(t, a.body_size))
            return (struct heard){.head = none, .body = none};
        t->at += a.body_size;
    } else if (!t->bodyless && a.close && a.status >= 200 && a.status != 204 && a.status != 304) {
        while (more(t) > 0)
            ;
        a.body_size = t->size - t->at;
        t->at = t->size;
    }
    a.body = t->bytes + body;
    return a;
}

struct heard talk_outwait(struct talk *t, struct testserver *server)
{
    testserver_outwait(server, t->fd);
    return talk_hear(t);
}

bool talk_ended(struct talk *t)
{
    return t->at == t->size && more(t) == 0;
}

struct heard talk_once(const struct testserver *server, const char *request)
{
    static struct talk t;
    if (t.bytes)
        talk_end(&t);
    talk_begin(&t, server);
    t.bodyless = strncmp(request, "HEAD ", 5) == 0;
    if (!talk_say_text(&t, request))
        die("it takes no request");
    struct heard a = talk_hear(&t);
    if (t.at < t.size)
        die("there is more than one answer");
    return a;
}

size_t heard_count(const struct heard *a, const char *name)
{
    size_t count = 0;
    const char *end, *head = a->head;
    while ((head = line_of(head, name, &end))) {
        count++;
        head = end;
    }
    return count;
}

const char *heard_field(const struct heard *a, const char *name)
{
    static char value[4096];
    const char *end, *at = line_of(a->head, name, &end);
    snprintf(value, sizeof value, "%.*s", at ? (int)(end - at) : 0, at ? at : "");
    return value;
}

bool heard_has(const struct heard *a, const char *text)
{
    return memmem(a->body, a->body_size, text, strlen(text)) != NULL;
}
