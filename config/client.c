#include "config/client.h"

#include <errno.h>
#include <llhttp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

struct answer {
    struct json_sink *sink;
    bool complete;
};

static int on_body(llhttp_t *parser, const char *at, size_t length)
{
    struct answer *a = parser->data;
    json_sink_bytes(a->sink, at, length);
    return a->sink->status == JSON_OK ? 0 : -1;
}

static int on_message_complete(llhttp_t *parser)
{
    struct answer *a = parser->data;
    a->complete = true;
    return 0;
}

static const llhttp_settings_t settings = {.on_body = on_body, .on_message_complete = on_message_complete};

static bool send_all(int fd, const char *text, size_t length)
{
    while (length > 0) {
        ssize_t sent = send(fd, text, length, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return false;
        text += sent;
        length -= (size_t)sent;
    }
    return true;
}

static int receive(int fd, struct json_sink *sink, char *why, size_t why_size)
{
    char bytes[8192];
    struct answer answer = {.sink = sink};
    llhttp_t parser;
    llhttp_init(&parser, HTTP_RESPONSE, &settings);
    parser.data = &answer;
    while (!answer.complete) {
        ssize_t length = recv(fd, bytes, sizeof(bytes), 0);
        if (length < 0 && errno == EINTR)
            continue;
        if (length < 0) {
            snprintf(why, why_size, "the server did not answer: %s", strerror(errno));
            return 0;
        }
        llhttp_errno_t e = length ? llhttp_execute(&parser, bytes, (size_t)length) : llhttp_finish(&parser);
        if (e != HPE_OK || (length == 0 && !answer.complete)) {
            snprintf(why, why_size, "the server's answer was cut off");
            return 0;
        }
    }
    json_sink_flush(sink);
    return parser.status_code;
}

int client_get(const struct address *address, const char *target, struct json_sink *sink, char *ret_why,
               size_t why_size)
{
    char request[512];
    struct timeval limit = {.tv_sec = CLIENT_TIMEOUT_S};
    int fd = address_connect(address);
    if (fd < 0) {
        snprintf(ret_why, why_size, "nobody answers there: %s", strerror(errno));
        return 0;
    }
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    int length = snprintf(request, sizeof(request),
                          "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", target);
    int status = 0;
    if (send_all(fd, request, (size_t)length))
        status = receive(fd, sink, ret_why, why_size);
    else
        snprintf(ret_why, why_size, "the server did not listen: %s", strerror(errno));
    close(fd);
    return status;
}
