#define _GNU_SOURCE
#include "config/client.h"

#include <errno.h>
#include <fcntl.h>
#include <llhttp.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "http/json_text.h"

/* ---- where, and with which token ---- */

/* named: what says the URL. */
static bool parse_url(struct client *c, const char *url, const char *named, char *why, size_t why_size)
{
    static const char scheme[] = "http://";
    char host[256], port[8] = "80";
    const char *at = url + sizeof(scheme) - 1;
    if (strncmp(url, scheme, sizeof(scheme) - 1) != 0) {
        snprintf(why, why_size, "%s is '%.100s'; it must be http://HOST:PORT or unix:/PATH", named, url);
        return false;
    }
    size_t length = strcspn(at, "/?#");
    const char *path = at + length;
    const char *colon = memrchr(at, ':', length), *bracket = memrchr(at, ']', length);
    size_t name = colon && (!bracket || colon > bracket) ? (size_t)(colon - at) : length;
    if (name < length && length - name - 1 < sizeof(port))
        snprintf(port, sizeof(port), "%.*s", (int)(length - name - 1), colon + 1);
    bool six = name > 2 && at[0] == '[';
    snprintf(host, sizeof(host), "%.*s", (int)(six ? name - 2 : name), at + six);
    if (name == 0 || name >= sizeof(host) || path[strcspn(path, "?# \r\n")] ||
        strlen(path) >= sizeof(c->prefix)) {
        snprintf(why, why_size, "%s is '%.100s'; it must be http://HOST:PORT or unix:/PATH", named, url);
        return false;
    }
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    int e = getaddrinfo(host, port, &hints, &found);
    if (e != 0) {
        snprintf(why, why_size, "%s is '%.100s': %s", named, url, gai_strerror(e));
        return false;
    }
    memcpy(&c->address.storage, found->ai_addr, found->ai_addrlen);
    c->address.size = found->ai_addrlen;
    freeaddrinfo(found);
    snprintf(c->host, sizeof(c->host), "%.*s", (int)length, at);
    size_t prefix = strlen(path);
    while (prefix && path[prefix - 1] == '/')
        prefix--;
    snprintf(c->prefix, sizeof(c->prefix), "%.*s", (int)prefix, path);
    return true;
}

/* 0, or the exit status: it is there and can't be read, or it is named and not there. */
static int read_token(struct client *c, const char *path, bool named, char *why, size_t why_size)
{
    char text[sizeof(c->token)];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && !named && (errno == ENOENT || errno == ENOTDIR))
        return 0; /* the server says whether one is needed */
    ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    int error = errno;
    if (fd >= 0)
        close(fd);
    if (size < 0) {
        bool forbidden = error == EACCES || error == EPERM;
        snprintf(why, why_size, "the token's file %.200s: %s", path, strerror(error));
        if (forbidden && !named)
            snprintf(c->unread, sizeof(c->unread), "%s", why);
        return forbidden ? (named ? EXIT_NOPERM : 0) : EXIT_CONFIG;
    }
    text[size] = 0;
    size_t length = strcspn(text, " \t\r\n");
    for (size_t i = 0; i < length; i++)
        if (text[i] <= ' ' || text[i] == 0x7f) {
            snprintf(why, why_size, "the token's file %.200s holds no token", path);
            return EXIT_CONFIG;
        }
    memcpy(c->token, text, length);
    c->token[length] = 0;
    return 0;
}

int client_open(struct client *ret, const struct options *o, char *why, size_t why_size)
{
    char place[OPTION_PLACE_SIZE];
    option_place(*o->url ? OPTION_url : OPTION_operator_listen, o, place);
    return client_open_url(ret, o, place, why, why_size);
}

int client_open_url(struct client *ret, const struct options *o, const char *named, char *why,
                    size_t why_size)
{
    struct client c = {.host = "localhost", .command = o->command};
    char text[256], path[1100];
    bool local = strncmp(o->url, "unix:", 5) == 0;
    const char *where = *o->url ? o->url : o->operator_listen;
    snprintf(c.named, sizeof(c.named), "%s", where);
    if (*o->url && !local) {
        if (!parse_url(&c, o->url, named, why, why_size))
            return EXIT_CONFIG;
    } else if (!address_parse(where, &c.address, text, sizeof(text))) {
        snprintf(why, why_size, "%s is %s", named, text);
        return EXIT_CONFIG;
    }
    const char *token = *o->token_file ? o->token_file : o->operator_token;
    if (!*token)
        snprintf(path, sizeof(path), "%.1000s/operator.token", o->store_dir);
    int status =
        *token || !c.address.local_file ? read_token(&c, *token ? token : path, *token, why, why_size) : 0;
    if (status == 0)
        *ret = c;
    return status;
}

bool client_escape(const char *text, char *ret, size_t size)
{
    static const char hex[] = "0123456789ABCDEF";
    size_t used = 0;
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                     strchr("-._~:", c) /* a colon is what it is: http/url.h */ != NULL;
        if (used + (plain ? 1 : 3) >= size)
            return false;
        if (plain) {
            ret[used++] = (char)c;
            continue;
        }
        ret[used++] = '%';
        ret[used++] = hex[c >> 4];
        ret[used++] = hex[c & 15];
    }
    ret[used] = 0;
    return true;
}

/* ---- one request, one answer ---- */

struct answer {
    struct json_sink *sink;
    char problem[4096]; /* the body of what isn't 2xx */
    size_t problem_size;
    int status;
    bool complete;
};

static int on_headers_complete(llhttp_t *parser)
{
    struct answer *a = parser->data;
    a->status = parser->status_code;
    return 0;
}

static int on_body(llhttp_t *parser, const char *at, size_t length)
{
    struct answer *a = parser->data;
    if (a->status / 100 != 2) {
        size_t room = sizeof(a->problem) - a->problem_size;
        size_t size = length < room ? length : room;
        memcpy(a->problem + a->problem_size, at, size);
        a->problem_size += size;
        return 0;
    }
    json_sink_bytes(a->sink, at, length);
    return a->sink->status == JSON_OK ? 0 : -1;
}

static int on_message_complete(llhttp_t *parser)
{
    struct answer *a = parser->data;
    a->complete = true;
    return 0;
}

static const llhttp_settings_t settings = {.on_headers_complete = on_headers_complete,
                                           .on_body = on_body,
                                           .on_message_complete = on_message_complete};

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

static void limit_time(int fd, int receive_s, int send_s)
{
    struct timeval receive = {.tv_sec = receive_s}, limit = {.tv_sec = send_s};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &receive, sizeof(receive));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

/* Problem details: "CODE: what is wrong". Anything else: the status alone. */
static void explain(const struct answer *a, char *why, size_t why_size)
{
    static struct json_node nodes[512];
    struct json_text json = {.nodes = nodes, .nodes_max = sizeof(nodes) / sizeof(*nodes)};
    struct json_error error;
    snprintf(why, why_size, "the server answered with status %d", a->status);
    if (!json_text_read(&json, span_of(a->problem, a->problem_size), NULL, &error) ||
        json_root(&json)->kind != JSON_OBJECT)
        return;
    const struct json_node *code = json_member(&json, json_root(&json), "code"),
                           *detail = json_member(&json, json_root(&json), "detail");
    char code_room[64], detail_room[1024];
    struct span code_text = {0}, detail_text = {0};
    if (!detail || detail->kind != JSON_STRING ||
        !json_string_of(&json, detail, detail_room, sizeof(detail_room), &detail_text))
        return;
    if (code && code->kind == JSON_STRING)
        (void)json_string_of(&json, code, code_room, sizeof(code_room), &code_text);
    snprintf(why, why_size, code_text.size ? "%.*s (%.*s)" : "%.*s", (int)detail_text.size,
             (const char *)detail_text.bytes, (int)code_text.size, (const char *)code_text.bytes);
}

static int receive(int fd, const struct client_request *q, struct json_sink *sink, char *why, size_t why_size)
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
            snprintf(why, why_size, CLIENT_UNHEARD ": %s",
                     errno == EAGAIN
                         ? "it has taken the connection, and its time is up; is it stopped, or busy?"
                         : strerror(errno));
            return 0;
        }
        llhttp_errno_t e = length ? llhttp_execute(&parser, bytes, (size_t)length) : llhttp_finish(&parser);
        if (sink->status != JSON_OK)
            return answer.status;
        if (e != HPE_OK || (length == 0 && !answer.complete)) {
            snprintf(why, why_size, "the server's answer was cut off");
            return 0;
        }
        if (q->endless && answer.status == 200)
            limit_time(fd, 0, CLIENT_TIMEOUT_S);
        json_sink_flush(sink);
    }
    json_sink_flush(sink);
    if (answer.status / 100 != 2)
        explain(&answer, why, why_size);
    return answer.status;
}

static bool write_request(struct json_sink *s, const struct client *c, const struct client_request *q)
{
    const char *const head[] = {q->method,
                                " ",
                                c->prefix,
                                q->target,
                                " HTTP/1.1\r\nHost: ",
                                c->host,
                                "\r\nConnection: close\r\nUser-Agent: coppice/",
                                COPPICE_VERSION,
                                "\r\n"};
    for (size_t i = 0; i < sizeof(head) / sizeof(*head); i++)
        json_sink_text(s, head[i]);
    if (q->accept) {
        json_sink_text(s, "Accept: ");
        json_sink_text(s, q->accept);
        json_sink_text(s, "\r\n");
    }
    if (c->token[0]) {
        json_sink_text(s, "Authorization: Bearer ");
        json_sink_text(s, c->token);
        json_sink_text(s, "\r\n");
    }
    if (q->body) {
        json_sink_text(s, "Content-Type: application/json\r\nContent-Length: ");
        json_sink_uint(s, strlen(q->body));
        json_sink_text(s, "\r\n");
    }
    json_sink_text(s, "\r\n");
    if (q->body)
        json_sink_text(s, q->body);
    return s->status == JSON_OK;
}

/* "/until must be ..." is said of a body that nobody who uses the command line has seen: there it was --until. */
static void name_option(enum command command, char *why, size_t why_size)
{
    char flag[OPTION_NAME_SIZE], rest[1024];
    size_t length = strcspn(why, " ");
    for (size_t i = 0; why[0] == '/' && i < OPTION_COUNT; i++) {
        const struct option *o = &option_table[i];
        if (!(o->commands >> command & 1) || strlen(o->key) != length - 1 ||
            memcmp(o->key, why + 1, length - 1) != 0)
            continue;
        option_flag(o, flag);
        snprintf(rest, sizeof(rest), "%s", why + length);
        snprintf(why, why_size, "%s%s", flag, rest);
        return;
    }
}

int client_call(const struct client *c, const struct client_request *q, struct json_sink *sink, char *why,
                size_t why_size)
{
    static char request[16384];
    struct json_sink text;
    json_sink_init(&text, request, sizeof(request), NULL, NULL);
    if (!write_request(&text, c, q)) {
        snprintf(why, why_size, "the request is too long");
        return 0;
    }
    int fd = address_connect(&c->address);
    if (fd < 0) {
        bool forbidden = errno == EACCES || errno == EPERM;
        snprintf(why, why_size, "%s: %s",
                 forbidden ? "this user may not connect there" : "nobody answers there", strerror(errno));
        return forbidden ? CLIENT_FORBIDDEN : 0;
    }
    int timeout_s = c->timeout_s ? c->timeout_s : CLIENT_TIMEOUT_S;
    limit_time(fd, timeout_s, timeout_s);
    int status = 0;
    if (send_all(fd, request, text.length))
        status = receive(fd, q, sink, why, why_size);
    else
        snprintf(why, why_size, "the server did not listen: %s", strerror(errno));
    close(fd);
    if (status == 400)
        name_option(c->command, why, why_size);
    if (status != 401 || !c->unread[0])
        return status;
    snprintf(why, why_size, "the server asks for a token, and %s", c->unread);
    return CLIENT_FORBIDDEN;
}
