#include "http/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool refuse(char *why, size_t size, const char *text, const char *right)
{
    snprintf(why, size, "'%.*s'; it must be %s", ADDRESS_TEXT_MAX, text, right);
    return false;
}

#define RIGHT "127.0.0.1:PORT, [::1]:PORT, localhost:PORT or unix:/PATH"

static bool parse_path(const char *text, struct address *a, char *why, size_t why_size)
{
    const char *path = text + strlen("unix:");
    if (path[0] != '/')
        return refuse(why, why_size, text, "unix: and a path that begins with /");
    if (strlen(path) >= sizeof(a->local.sun_path))
        return refuse(why, why_size, text, "a path of at most 107 bytes behind unix:");
    a->local.sun_family = AF_UNIX;
    memcpy(a->local.sun_path, path, strlen(path) + 1);
    a->size = sizeof(a->local);
    a->local_file = true;
    return true;
}

static bool parse_port(const char *text, in_port_t *ret_port)
{
    unsigned port = 0;
    if (!*text || strlen(text) > 5)
        return false;
    for (; *text; text++) {
        if (*text < '0' || *text > '9')
            return false;
        port = port * 10 + (unsigned)(*text - '0');
    }
    *ret_port = htons((in_port_t)port);
    return port <= 65535;
}

bool address_parse(const char *text, struct address *ret_address, char *ret_why, size_t why_size)
{
    struct address a = {0};
    struct sockaddr_in *v4 = (void *)&a.storage;
    struct sockaddr_in6 *v6 = (void *)&a.storage;
    const char *colon = strrchr(text, ':');
    in_port_t port;
    if (strncmp(text, "unix:", 5) == 0) {
        if (!parse_path(text, &a, ret_why, why_size))
            return false;
    } else if (!colon || !parse_port(colon + 1, &port)) {
        return refuse(ret_why, why_size, text, RIGHT " with a port from 0 to 65535");
    } else if (strncmp(text, "[::1]:", 6) == 0 && colon == text + 5) {
        *v6 = (struct sockaddr_in6){
            .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT, .sin6_port = port};
        a.size = sizeof(*v6);
    } else {
        char host[INET_ADDRSTRLEN];
        snprintf(host, sizeof(host), "%.*s", (int)(colon - text), text);
        *v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = port};
        a.size = sizeof(*v4);
        if (strcmp(host, "localhost") == 0)
            v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        else if (inet_pton(AF_INET, host, &v4->sin_addr) != 1 || ntohl(v4->sin_addr.s_addr) >> 24 != 127)
            return refuse(ret_why, why_size, text,
                          RIGHT ": the operator's listener is for this machine only");
    }
    *ret_address = a;
    return true;
}

int address_connect(const struct address *address)
{
    int fd = socket(address->base.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, &address->base, address->size) != 0) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

/* True when the path is free to be bound. */
static bool clear_path(const struct address *a)
{
    struct stat s;
    if (lstat(a->local.sun_path, &s) != 0)
        return errno == ENOENT;
    if (!S_ISSOCK(s.st_mode)) {
        errno = EEXIST;
        return false;
    }
    int fd = address_connect(a);
    if (fd >= 0) {
        close(fd);
        errno = EADDRINUSE;
        return false;
    }
    return errno == ECONNREFUSED && unlink(a->local.sun_path) == 0;
}

static bool bind_to(int fd, const struct address *a)
{
    int on = 1;
    if (!a->local_file)
        return setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
               bind(fd, &a->base, a->size) == 0;
    if (!clear_path(a))
        return false;
    mode_t mask = umask(0177); /* from the first instant: nobody else connects between bind and a chmod */
    bool bound = bind(fd, &a->base, a->size) == 0;
    int error = errno;
    umask(mask);
    errno = error;
    return bound;
}

const char *address_advice(int error, bool local_file)
{
    switch (error) {
    case EADDRINUSE:
        return "; is another server running? choose another address";
    case EADDRNOTAVAIL:
        return "; no interface of this machine has that address";
    case ENOENT:
        return local_file ? "; the directory of the socket isn't there" : "";
    case EACCES:
        if (local_file)
            return "; this user may not make a socket in that directory";
        return "; this user may not listen there (a port below 1024 needs CAP_NET_BIND_SERVICE)";
    case EEXIST:
        return "; something that is no socket has that name";
    default:
        return "";
    }
}

/* Closes what there is of it, and says why it can't be listened at. */
static void complain(const struct address *a, int fd, char *why, size_t why_size)
{
    int error = errno;
    snprintf(why, why_size, "%s%s", strerror(error), address_advice(error, a->local_file));
    if (fd >= 0)
        close(fd);
    errno = error;
}

int address_listen(const struct address *address, char *ret_why, size_t why_size)
{
    int fd = socket(address->base.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && bind_to(fd, address) && listen(fd, ADDRESS_BACKLOG) == 0)
        return fd;
    complain(address, fd, ret_why, why_size);
    return -1;
}

/* Nobody is asked: whoever listens there would be started by it, where that is the service manager. */
static bool may_be_made(const char *path)
{
    struct stat s;
    char folder[sizeof(((struct sockaddr_un *)0)->sun_path)];
    const char *slash = strrchr(path, '/');
    if (lstat(path, &s) == 0) {
        errno = EEXIST;
        return S_ISSOCK(s.st_mode);
    }
    if (errno != ENOENT)
        return false;
    snprintf(folder, sizeof(folder), "%.*s",
             slash == path ? 1
             : slash       ? (int)(slash - path)
                           : 1,
             slash ? path : ".");
    return access(folder, W_OK | X_OK) == 0;
}

bool address_look(const struct address *address, char *ret_why, size_t why_size)
{
    int fd = -1;
    bool good = address->local_file
                    ? may_be_made(address->local.sun_path)
                    : (fd = socket(address->base.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0)) >= 0 &&
                          (bind_to(fd, address) || errno == EADDRINUSE);
    if (!good)
        complain(address, fd, ret_why, why_size);
    else if (fd >= 0)
        close(fd);
    return good;
}

void address_text(int listening, char text[ADDRESS_TEXT_MAX])
{
    struct address a = {.size = sizeof(a.storage)};
    char host[INET6_ADDRSTRLEN] = "";
    const struct sockaddr_in *v4 = (void *)&a.storage;
    const struct sockaddr_in6 *v6 = (void *)&a.storage;
    if (getsockname(listening, &a.base, &a.size) != 0)
        snprintf(text, ADDRESS_TEXT_MAX, "?");
    else if (a.base.sa_family == AF_UNIX)
        snprintf(text, ADDRESS_TEXT_MAX, "unix:%s", a.local.sun_path);
    else if (a.base.sa_family == AF_INET)
        snprintf(text, ADDRESS_TEXT_MAX, "%s:%u", inet_ntop(AF_INET, &v4->sin_addr, host, sizeof(host)),
                 ntohs(v4->sin_port));
    else
        snprintf(text, ADDRESS_TEXT_MAX, "[%s]:%u", inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof(host)),
                 ntohs(v6->sin6_port));
}

void address_remove(const struct address *address)
{
    if (address->local_file)
        unlink(address->local.sun_path);
}
