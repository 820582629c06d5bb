/* A receiver of webhooks for tests/api/webhooks_test.sh, which compiles it: prints its port, then a line for each request: its path, when it
 * came in ms, its headers webhook-id, webhook-timestamp and webhook-signature ("-": none; "|" for each blank), and its
 * body. It answers as the first part of the path says:
 *
 *     /ok 200   /500   /404   /gone 410   /away 302 to /ok   /flaky 500 at the first attempt, then 200
 *     /later 503 with Retry-After: 1 at the first attempt, then 200
 *     /hang nothing at all   /drip a byte of a head every 100 ms   /big a body without end   /garbage no HTTP   /close nothing, at once
 *
 * A process for each connection. It listens on all of 127.0.0.0/8, which are as many hosts; with a port as its argument, there.
 */
#define _GNU_SOURCE /* F_SETPIPE_SZ */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static char bytes[1 << 17];

static bool is(const char *path, const char *word)
{
    return strncmp(path, word, strlen(word)) == 0;
}

static bool say(int fd, const char *text)
{
    return send(fd, text, strlen(text), MSG_NOSIGNAL) >= 0;
}

/* Reads one request; its body, or NULL when the client has closed. The head is then cut off behind its last line. */
static char *read_request(int fd, size_t *ret_size)
{
    size_t used = 0;
    for (;;) {
        bytes[used] = 0;
        char *end = strstr(bytes, "\r\n\r\n"), *length = strstr(bytes, "\r\nContent-Length: ");
        if (end && length) {
            *ret_size = strtoul(length + 18, NULL, 10);
            if (used >= (size_t)(end + 4 - bytes) + *ret_size) {
                *end = 0;
                return end + 4;
            }
        }
        ssize_t got = recv(fd, bytes + used, sizeof(bytes) - 1 - used, 0);
        if (got <= 0)
            return NULL;
        used += (size_t)got;
    }
}

static const char *header(const char *name, char *room, size_t size)
{
    const char *at = strstr(bytes, name);
    snprintf(room, size, "%.*s", at ? (int)strcspn(at + strlen(name), "\r") : 1,
             at ? at + strlen(name) : "-");
    return room;
}

static long long now_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return (long long)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static void print(const char *path, const char *body, size_t size)
{
    static char line[1 << 17];
    char id[64], at[32], signature[256];
    header("\r\nwebhook-signature: ", signature, sizeof(signature));
    for (char *blank; (blank = strchr(signature, ' ')) != NULL;)
        *blank = '|';
    int length = snprintf(line, sizeof(line), "%s %lld %s %s %s %.*s\n", path, now_ms(),
                          header("\r\nwebhook-id: ", id, sizeof(id)),
                          header("\r\nwebhook-timestamp: ", at, sizeof(at)), signature, (int)size, body);
    if (write(STDOUT_FILENO, line, (size_t)length) != length) /* in one piece: others write there, too */
        exit(1);
}

/* False: the connection is over. */
static bool answer(int fd, const char *path, const char *body)
{
    static char chunk[1 << 16];
    if (is(path, "/500") || (is(path, "/flaky") && strstr(body, "\"delivery_attempt\":1}")))
        return say(fd, "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n");
    if (is(path, "/later") && strstr(body, "\"delivery_attempt\":1}"))
        return say(fd, "HTTP/1.1 503 Later\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n");
    if (is(path, "/404"))
        return say(fd, "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n");
    if (is(path, "/gone"))
        return say(fd, "HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n");
    if (is(path, "/away"))
        return say(fd, "HTTP/1.1 302 Found\r\nLocation: /ok/elsewhere\r\nContent-Length: 0\r\n\r\n");
    if (is(path, "/garbage"))
        return say(fd, "this is no HTTP\r\n\r\n") && false;
    if (is(path, "/close"))
        return false;
    if (is(path, "/hang"))
        pause();
    if (is(path, "/drip"))
        for (const char *at = "HTTP/1.1 200 OK\r\nX-Slow: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"; *at;
             at++)
            if (send(fd, at, 1, MSG_NOSIGNAL) != 1 || usleep(100000))
                return false;
    if (is(path, "/big") && say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n"))
        while (send(fd, chunk, sizeof(chunk), MSG_NOSIGNAL) > 0)
            ;
    bool good = is(path, "/ok") || is(path, "/flaky") || is(path, "/later");
    return good && say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
}

static void serve(int fd)
{
    char path[256];
    size_t size;
    for (char *body; (body = read_request(fd, &size)) != NULL;) {
        if (sscanf(bytes, "POST %255s ", path) != 1)
            return;
        print(path, body, size);
        if (!answer(fd, path, body))
            return;
    }
}

int main(int count, char **args)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
    socklen_t size = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM, 0), fd, on = 1;
    address.sin_port = htons((unsigned short)(count > 1 ? atoi(args[1]) : 0));
    signal(SIGCHLD, SIG_IGN);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(listener, (struct sockaddr *)(void *)&address, size) || listen(listener, 64) ||
        getsockname(listener, (struct sockaddr *)(void *)&address, &size))
        return 1;
    (void)fcntl(STDOUT_FILENO, F_SETPIPE_SZ, 1 << 20); /* who reads may be slower than who sends */
    printf("%u\n", ntohs(address.sin_port));
    fflush(stdout);
    while ((fd = accept(listener, NULL, NULL)) >= 0) {
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL); /* connections end with the receiver */
            close(listener);
            serve(fd);
            _exit(0);
        }
        close(fd);
    }
    return 0;
}
