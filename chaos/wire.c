#define _GNU_SOURCE
#include "chaos/wire.h"

#include <errno.h>
#include <llhttp.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- the socket ---- */

void wire_take(struct wire *wire, int fd)
{
    int yes = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    wire->from = wire->to = 0;
    watch_add(&wire->watch, fd);
}

void wire_close(struct wire *wire)
{
    watch_drop(&wire->watch);
    close(wire->watch.fd);
}

static int begin_connecting(struct in_addr source, const struct sockaddr_in *to)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), yes = 1;
    if (fd < 0)
        return -1;
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr = source};
    if (source.s_addr) {
        /* The port is chosen when both ends are known, so that many connections may share one. */
        (void)setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &yes, sizeof(yes));
        if (bind(fd, (struct sockaddr *)(void *)&from, sizeof(from)) != 0) {
            close(fd);
            return -1;
        }
    }
    if (connect(fd, (const struct sockaddr *)(const void *)to, sizeof(*to)) != 0 && errno != EINPROGRESS) {
        close(fd);
        return -1;
    }
    return fd;
}

bool wire_connect(struct wire *wire, struct in_addr source, const struct sockaddr_in *to, uint64_t until)
{
    int fd = begin_connecting(source, to), error = 0;
    socklen_t size = sizeof(error);
    if (fd < 0)
        return false;
    wire_take(wire, fd);
    if (watch_wait(&wire->watch, until) && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && !error)
        return true;
    wire_close(wire);
    return false;
}

bool wire_send(struct wire *wire, struct span bytes, uint64_t until)
{
    const char *at = bytes.bytes;
    for (size_t left = bytes.size; left;) {
        ssize_t sent = send(wire->watch.fd, at, left, MSG_NOSIGNAL);
        if (sent > 0)
            at += sent, left -= (size_t)sent;
        else if ((errno != EAGAIN && errno != EINTR) || !watch_wait(&wire->watch, until))
            return false;
    }
    return true;
}

bool wire_stale(struct wire *wire)
{
    char byte;
    ssize_t got = recv(wire->watch.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got >= 0 || (errno != EAGAIN && errno != EINTR) || wire->from != wire->to;
}

/* ---- a message in the making ---- */

struct text {
    char *bytes;
    size_t size, room;
};

struct making {
    struct text path, head, body;
    struct letter *letter;
    bool answers, whole, in_value;
};

static int add(struct text *text, const char *bytes, size_t size)
{
    if (text->size + size + 1 > text->room) {
        size_t room = (text->size + size + 1) * 2;
        char *more = room > WIRE_MAX ? NULL : realloc(text->bytes, room);
        if (!more)
            return -1;
        text->bytes = more, text->room = room;
    }
    memcpy(text->bytes + text->size, bytes, size);
    text->size += size;
    text->bytes[text->size] = 0;
    return 0;
}

static int on_url(llhttp_t *parser, const char *at, size_t size)
{
    struct making *m = parser->data;
    return add(&m->path, at, size);
}

static int on_field(llhttp_t *parser, const char *at, size_t size)
{
    struct making *m = parser->data;
    if (m->in_value && add(&m->head, "\n", 1) != 0)
        return -1;
    m->in_value = false;
    size_t from = m->head.size;
    if (add(&m->head, at, size) != 0)
        return -1;
    for (size_t i = from; i < m->head.size; i++)
        if (m->head.bytes[i] >= 'A' && m->head.bytes[i] <= 'Z')
            m->head.bytes[i] = (char)(m->head.bytes[i] | 0x20);
    return 0;
}

static int on_field_end(llhttp_t *parser)
{
    struct making *m = parser->data;
    m->in_value = true;
    return add(&m->head, ": ", 2);
}

static int on_value(llhttp_t *parser, const char *at, size_t size)
{
    struct making *m = parser->data;
    return add(&m->head, at, size);
}

static int on_body(llhttp_t *parser, const char *at, size_t size)
{
    struct making *m = parser->data;
    return add(&m->body, at, size);
}

static int on_end(llhttp_t *parser)
{
    struct making *m = parser->data;
    if (m->answers && parser->status_code < 200) {
        m->letter->interim++;
        m->head.size = 0, m->in_value = false;
        return 0;
    }
    m->whole = true;
    m->letter->status = parser->status_code;
    m->letter->keep_alive = llhttp_should_keep_alive(parser) != 0;
    if (!m->answers)
        snprintf(m->letter->method, sizeof(m->letter->method), "%s", llhttp_method_name(parser->method));
    return HPE_PAUSED;
}

static const llhttp_settings_t settings = {.on_url = on_url,
                                           .on_header_field = on_field,
                                           .on_header_field_complete = on_field_end,
                                           .on_header_value = on_value,
                                           .on_body = on_body,
                                           .on_message_complete = on_end};

/* Parses what is there; false: it is no HTTP. */
static bool parse(struct wire *wire, llhttp_t *parser)
{
    const char *from = wire->buffer + wire->from;
    llhttp_errno_t e = llhttp_execute(parser, from, wire->to - wire->from);
    if (e == HPE_PAUSED) {
        wire->from = (uint32_t)(llhttp_get_error_pos(parser) - wire->buffer);
        return true;
    }
    wire->from = wire->to = 0;
    return e == HPE_OK;
}

/* More bytes; false: there are none, or not in time. */
static bool fill(struct wire *wire, uint64_t until)
{
    for (;;) {
        ssize_t got = recv(wire->watch.fd, wire->buffer, sizeof(wire->buffer), 0);
        if (got > 0) {
            wire->from = 0, wire->to = (uint32_t)got;
            return true;
        }
        if (got == 0 || (errno != EAGAIN && errno != EINTR) || !watch_wait(&wire->watch, until))
            return false;
    }
}

bool wire_receive(struct wire *wire, bool answers, struct letter *ret_letter, uint64_t until)
{
    llhttp_t parser;
    struct making making = {.letter = ret_letter, .answers = answers};
    *ret_letter = (struct letter){0};
    llhttp_init(&parser, answers ? HTTP_RESPONSE : HTTP_REQUEST, &settings);
    parser.data = &making;
    bool sound = add(&making.head, "", 0) == 0 && add(&making.body, "", 0) == 0;
    while (sound && !making.whole) {
        if (wire->from == wire->to && !fill(wire, until)) {
            (void)llhttp_finish(&parser); /* an answer may end with its connection */
            break;
        }
        sound = parse(wire, &parser);
    }
    if (making.in_value)
        sound = add(&making.head, "\n", 1) == 0 && sound;
    ret_letter->path = making.path.bytes;
    ret_letter->head = making.head.bytes, ret_letter->head_size = making.head.size;
    ret_letter->body = making.body.bytes, ret_letter->body_size = making.body.size;
    if (sound && making.whole)
        return true;
    letter_free(ret_letter);
    return false;
}

void letter_free(struct letter *letter)
{
    free(letter->path);
    free(letter->head);
    free(letter->body);
    *letter = (struct letter){0};
}

bool letter_field(const struct letter *letter, const char *name, char *room, size_t size)
{
    size_t length = strlen(name);
    for (const char *line = letter->head; line && *line; line = strchr(line, '\n') + 1)
        if (strncmp(line, name, length) == 0 && line[length] == ':') {
            const char *value = line + length + 2;
            snprintf(room, size, "%.*s", (int)strcspn(value, "\n"), value);
            return true;
        }
    return false;
}
