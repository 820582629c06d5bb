#define _GNU_SOURCE /* strcasestr */
#include "tests/support/origin.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECTIONS_MAX 256u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_t acceptor, threads[CONNECTIONS_MAX];
static int listener = -1, sockets[CONNECTIONS_MAX];
static struct origin_counts counts;
static uint32_t at_gate, inside,
    gates_passed; /* who waits at the gate; who hasn't left it; how often it opened */
static bool stopping;
static origin_serve *serve_now;

static void must(bool good, const char *what)
{
    if (good)
        return;
    perror(what);
    abort();
}

/* ---- one connection ---- */

static size_t announced(const char *head)
{
    const char *at = strcasestr(head, "\r\ncontent-length:");
    return at ? strtoul(at + 17, NULL, 10) : 0;
}

/* Reads on until the request is whole; its size, or 0 when the client has closed. */
static size_t read_request(int fd, char *bytes, size_t *used, struct origin_request *ret)
{
    for (;;) {
        bytes[*used] = 0;
        char *end = strstr(bytes, "\r\n\r\n");
        if (end) {
            size_t head = (size_t)(end - bytes) + 4, body = announced(bytes);
            if (*used >= head + body) {
                char *path = strchr(bytes, ' ');
                *ret = (struct origin_request){.fd = fd,
                                               .head = bytes,
                                               .path = path ? path + 1 : "",
                                               .body = bytes + head,
                                               .body_size = body};
                return head + body;
            }
        }
        must(*used < ORIGIN_REQUEST_MAX, "origin: a request that is too long");
        ssize_t got = recv(fd, bytes + *used, ORIGIN_REQUEST_MAX - *used, 0);
        if (got <= 0)
            return 0;
        *used += (size_t)got;
    }
}

static void count_request(void)
{
    pthread_mutex_lock(&lock);
    counts.requests++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void *converse(void *arg)
{
    int *socket = arg;
    struct origin_request request;
    char *bytes = malloc(ORIGIN_REQUEST_MAX + 1);
    size_t used = 0, size;
    must(bytes != NULL, "origin: malloc");
    while ((size = read_request(*socket, bytes, &used, &request)) > 0) {
        count_request();
        if (!serve_now(&request))
            break;
        memmove(bytes, bytes + size, used - size);
        used -= size;
    }
    free(bytes);
    pthread_mutex_lock(&lock);
    close(*socket);
    *socket = -1;
    counts.open--;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void *accept_all(void *arg)
{
    int fd;
    (void)arg;
    while ((fd = accept(listener, NULL, NULL)) >= 0) {
        pthread_mutex_lock(&lock);
        uint32_t number = counts.connections++;
        must(number < CONNECTIONS_MAX, "origin: too many connections");
        counts.open++;
        sockets[number] = fd;
        if (stopping)
            shutdown(fd, SHUT_RDWR);
        must(pthread_create(&threads[number], NULL, converse, &sockets[number]) == 0,
             "origin: pthread_create");
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

/* ---- life ---- */

uint16_t origin_start(origin_serve *serve)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
    socklen_t size = sizeof(address);
    counts = (struct origin_counts){0};
    at_gate = inside = gates_passed = 0;
    stopping = false;
    serve_now = serve;
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(listener >= 0, "origin: socket");
    must(bind(listener, (struct sockaddr *)(void *)&address, size) == 0, "origin: bind");
    must(listen(listener, 128) == 0, "origin: listen");
    must(getsockname(listener, (struct sockaddr *)(void *)&address, &size) == 0, "origin: getsockname");
    must(pthread_create(&acceptor, NULL, accept_all, NULL) == 0, "origin: pthread_create");
    return ntohs(address.sin_port);
}

void origin_stop(void)
{
    pthread_mutex_lock(&lock);
    stopping = true;
    for (uint32_t i = 0; i < counts.connections; i++)
        if (sockets[i] >= 0)
            shutdown(sockets[i], SHUT_RDWR);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    shutdown(listener, SHUT_RDWR); /* accept returns */
    pthread_join(acceptor, NULL);
    close(listener);
    for (uint32_t i = 0; i < counts.connections; i++)
        pthread_join(threads[i], NULL);
}

/* ---- serving ---- */

bool origin_path(const struct origin_request *request, const char *path)
{
    size_t length = strlen(path);
    return strncmp(request->path, path, length) == 0 && request->path[length] == ' ';
}

bool origin_write(const struct origin_request *request, const void *bytes, size_t size)
{
    const char *at = bytes;
    while (size > 0) {
        ssize_t sent = send(request->fd, at, size, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        at += sent;
        size -= (size_t)sent;
    }
    return true;
}

bool origin_text(const struct origin_request *request, const char *text)
{
    return origin_write(request, text, strlen(text));
}

void origin_until_closed(const struct origin_request *request)
{
    char bytes[256];
    while (recv(request->fd, bytes, sizeof(bytes), 0) > 0)
        continue;
}

void origin_gate(uint32_t count)
{
    pthread_mutex_lock(&lock);
    uint32_t mine = gates_passed;
    if (++inside > counts.at_gate_max)
        counts.at_gate_max = inside;
    if (++at_gate == count) {
        at_gate = 0;
        gates_passed++;
        pthread_cond_broadcast(&changed);
    }
    while (mine == gates_passed && !stopping)
        pthread_cond_wait(&changed, &lock);
    inside--;
    pthread_mutex_unlock(&lock);
}

/* ---- watching ---- */

struct origin_counts origin_counts(void)
{
    pthread_mutex_lock(&lock);
    struct origin_counts now = counts;
    pthread_mutex_unlock(&lock);
    return now;
}
