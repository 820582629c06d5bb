/* A collector for tests/api/trace_test.sh, which compiles it: prints its port, then the body of each request on a line of
 * its own, and answers 200. One connection after the other; it ends when nobody reads what it prints. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static char bytes[1 << 17];

/* Reads one request; the size of its body, or -1 when the client has closed. */
static long read_request(int fd, const char **ret_body)
{
    size_t used = 0;
    for (;;) {
        bytes[used] = 0;
        const char *end = strstr(bytes, "\r\n\r\n"), *length = strstr(bytes, "\r\nContent-Length: ");
        if (end && length) {
            size_t size = strtoul(length + 18, NULL, 10);
            *ret_body = end + 4;
            if (used >= (size_t)(end + 4 - bytes) + size)
                return (long)size;
        }
        ssize_t got = recv(fd, bytes + used, sizeof(bytes) - 1 - used, 0);
        if (got <= 0)
            return -1;
        used += (size_t)got;
    }
}

int main(void)
{
    static const char answer[] =
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    const char *body;
    int listener = socket(AF_INET, SOCK_STREAM, 0), fd;
    if (bind(listener, (struct sockaddr *)(void *)&address, size) || listen(listener, 8) ||
        getsockname(listener, (struct sockaddr *)(void *)&address, &size))
        return 1;
    printf("%u\n", ntohs(address.sin_port));
    fflush(stdout);
    while ((fd = accept(listener, NULL, NULL)) >= 0) {
        for (long length; (length = read_request(fd, &body)) >= 0;) {
            printf("%.*s\n", (int)length, body);
            if (fflush(stdout) || send(fd, answer, sizeof(answer) - 1, MSG_NOSIGNAL) < 0)
                break;
        }
        close(fd);
    }
    return 0;
}
