#define _GNU_SOURCE
#include "config/sockets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/options.h"

#define EXIT_UNAVAILABLE 69
#define EXIT_SYSTEM      71
#define FIRST_ACTIVATED  3
#define RIGHT            "ADDRESS:PORT with a port from 0 to 65535, such as 127.0.0.1:8080 or [::]:8080, or unix:/PATH"

/* ---- addresses ---- */

static bool refuse(char *why, size_t size, const char *text, const char *right)
{
    snprintf(why, size, "'%.*s'; it must be %s", (int)ADDRESS_TEXT_MAX, text, right);
    return false;
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
    if (port > 65535)
        return false;
    *ret_port = htons((in_port_t)port);
    return true;
}

static bool parse_four(const char *host, in_port_t port, struct socket_address *a)
{
    struct sockaddr_in *v4 = (void *)&a->address.storage;
    *v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = port};
    a->address.size = sizeof(*v4);
    if (strcmp(host, "localhost") == 0)
        v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    else if (strcmp(host, "*") == 0)
        v4->sin_addr.s_addr = htonl(INADDR_ANY);
    else if (inet_pton(AF_INET, host, &v4->sin_addr) != 1)
        return false;
    return true;
}

static bool parse_six(const char *host, in_port_t port, struct socket_address *a)
{
    struct sockaddr_in6 *v6 = (void *)&a->address.storage;
    *v6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = port};
    a->address.size = sizeof(*v6);
    return inet_pton(AF_INET6, host, &v6->sin6_addr) == 1;
}

/* An address of a kind that isn't known here is one that others may reach. */
static bool reached_from_outside(const struct address *a)
{
    const struct sockaddr_in *v4 = (const void *)&a->storage;
    const struct sockaddr_in6 *v6 = (const void *)&a->storage;
    switch (a->base.sa_family) {
    case AF_UNIX:
        return false;
    case AF_INET:
        return ntohl(v4->sin_addr.s_addr) >> 24 != 127;
    case AF_INET6:
        return !IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
    default:
        return true;
    }
}

static bool parse_one(const char *text, struct socket_address *ret, char *why, size_t why_size)
{
    struct socket_address a = {0};
    const char *colon = strrchr(text, ':');
    char host[INET6_ADDRSTRLEN + 2];
    in_port_t port;
    if (strncmp(text, "unix:", 5) == 0) {
        if (!address_parse(text, &a.address, why, why_size))
            return false;
        *ret = a;
        return true;
    }
    if (!colon || (size_t)(colon - text) >= sizeof(host) || !parse_port(colon + 1, &port))
        return refuse(why, why_size, text, RIGHT);
    size_t length = (size_t)(colon - text);
    memcpy(host, text, length);
    host[length] = 0;
    bool six = length > 2 && host[0] == '[' && host[length - 1] == ']';
    if (six)
        host[length - 1] = 0;
    if (!(six ? parse_six(host + 1, port, &a) : parse_four(host, port, &a)))
        return refuse(why, why_size, text, RIGHT);
    a.exposed = reached_from_outside(&a.address);
    *ret = a;
    return true;
}

bool sockets_parse(const char *list, struct socket_address ret[SOCKETS_ADDRESSES_MAX], size_t *ret_count,
                   char *why, size_t why_size)
{
    size_t count = 0;
    for (;;) {
        char text[ADDRESS_TEXT_MAX];
        list += strspn(list, " ");
        size_t length = strcspn(list, ","), trimmed = length;
        while (trimmed > 0 && list[trimmed - 1] == ' ')
            trimmed--;
        if (count == SOCKETS_ADDRESSES_MAX) {
            snprintf(why, why_size, "a list of more than %u addresses", SOCKETS_ADDRESSES_MAX);
            return false;
        }
        snprintf(text, sizeof(text), "%.*s", (int)(trimmed < sizeof(text) ? trimmed : sizeof(text) - 1),
                 list);
        if (!parse_one(text, &ret[count], why, why_size))
            return false;
        count++;
        if (!list[length])
            break;
        list += length + 1;
    }
    *ret_count = count;
    return true;
}

/* Port 0 is another one each time. */
bool sockets_meet(const struct address *a, const struct address *b)
{
    const struct sockaddr_in *a4 = (const void *)&a->storage, *b4 = (const void *)&b->storage;
    const struct sockaddr_in6 *a6 = (const void *)&a->storage, *b6 = (const void *)&b->storage;
    if (a->base.sa_family != b->base.sa_family)
        return false;
    if (a->local_file)
        return strcmp(a->local.sun_path, b->local.sun_path) == 0;
    if (a->base.sa_family == AF_INET6)
        return a6->sin6_port && a6->sin6_port == b6->sin6_port &&
               (IN6_IS_ADDR_UNSPECIFIED(&a6->sin6_addr) || IN6_IS_ADDR_UNSPECIFIED(&b6->sin6_addr) ||
                IN6_ARE_ADDR_EQUAL(&a6->sin6_addr, &b6->sin6_addr));
    return a4->sin_port && a4->sin_port == b4->sin_port &&
           (a4->sin_addr.s_addr == htonl(INADDR_ANY) || b4->sin_addr.s_addr == htonl(INADDR_ANY) ||
            a4->sin_addr.s_addr == b4->sin_addr.s_addr);
}

/* ---- opening ---- */

static int status_of(int error)
{
    return error == EACCES                                 ? EXIT_NOPERM
           : error == EADDRINUSE || error == EADDRNOTAVAIL ? EXIT_UNAVAILABLE
                                                           : EXIT_SYSTEM;
}

static int fail(char *why, size_t why_size, const char *what, int error)
{
    snprintf(why, why_size, "%s: %s%s", what, strerror(error), address_advice(error, false));
    return status_of(error);
}

static int open_share(const struct address *a, bool shared)
{
    int on = 1, fd = socket(a->base.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    bool good = setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0;
    if (good && a->base.sa_family == AF_INET6) /* so that [::] and 0.0.0.0 may stand side by side */
        good = setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) == 0;
    if (good && shared)
        good = setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) == 0;
    if (good && bind(fd, &a->base, a->size) == 0)
        return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

/* Two servers of one user could share an address without noticing, because both allow it. A socket that doesn't allow it
 * tells. */
static bool is_free(const struct address *a)
{
    int fd = open_share(a, false);
    if (fd < 0)
        return false;
    close(fd);
    return true;
}

/* The first share has found the port; the others take the same. */
static bool same_place(int fd, struct address *a)
{
    memset(&a->storage, 0, sizeof(a->storage));
    a->size = sizeof(a->storage);
    bool good = getsockname(fd, &a->base, &a->size) == 0;
    a->local_file = a->base.sa_family == AF_UNIX;
    return good;
}

static bool open_shares(struct socket_set *set, uint32_t shares)
{
    if (!is_free(&set->address))
        return false;
    /* All are bound before one listens: connections go to those that listen, and none may be missing then. */
    for (uint32_t i = 0; i < shares; i++) {
        int fd = open_share(&set->address, true);
        if (fd < 0)
            return false;
        set->fds[set->fds_count++] = fd;
        if (i == 0 && !same_place(fd, &set->address))
            return false;
    }
    for (uint32_t i = 0; i < shares; i++)
        if (listen(set->fds[i], SOCKETS_BACKLOG) != 0)
            return false;
    return true;
}

static bool copy_shares(struct socket_set *set, uint32_t shares)
{
    while (set->fds_count < shares) {
        int fd = fcntl(set->fds[0], F_DUPFD_CLOEXEC, 0);
        if (fd < 0)
            return false;
        set->fds[set->fds_count++] = fd;
    }
    return true;
}

/* A unix socket, with errno and what is said of it. */
static int fail_local(const struct address *a, const char *what, char *why, size_t why_size)
{
    int status = errno == EACCES ? EXIT_NOPERM : EXIT_UNAVAILABLE;
    snprintf(why, why_size, "unix:%s: %s", a->local.sun_path, what);
    return status;
}

static void port_text(const struct address *a, char text[ADDRESS_TEXT_MAX])
{
    char host[INET6_ADDRSTRLEN] = "?";
    bool six = a->base.sa_family == AF_INET6;
    const struct sockaddr_in *v4 = (const void *)&a->storage;
    const struct sockaddr_in6 *v6 = (const void *)&a->storage;
    inet_ntop(a->base.sa_family, six ? (const void *)&v6->sin6_addr : (const void *)&v4->sin_addr, host,
              sizeof(host));
    snprintf(text, ADDRESS_TEXT_MAX, six ? "[%s]:%u" : "%s:%u", host,
             ntohs(six ? v6->sin6_port : v4->sin_port));
}

/* A port, with errno. */
static int fail_port(const struct address *a, char *why, size_t why_size)
{
    int error = errno;
    char what[ADDRESS_TEXT_MAX];
    port_text(a, what);
    return fail(why, why_size, what, error);
}

static int open_set(struct socket_set *set, const struct socket_address *a, uint32_t shares, char *why,
                    size_t why_size)
{
    char what[192];
    set->address = a->address;
    set->exposed = a->exposed;
    if (a->address.local_file) {
        int fd = address_listen(&a->address, what, sizeof(what));
        if (fd < 0)
            return fail_local(&a->address, what, why, why_size);
        set->fds[set->fds_count++] = fd;
        if (!copy_shares(set, shares))
            return fail_local(&a->address, strerror(errno), why, why_size);
    } else if (!open_shares(set, shares)) {
        return fail_port(&a->address, why, why_size);
    }
    address_text(set->fds[0], set->text);
    return 0;
}

/* ---- socket activation ---- */

static bool number_of(const char *text, long *ret_number)
{
    char *end;
    if (!text || *text < '0' || *text > '9')
        return false;
    errno = 0;
    *ret_number = strtol(text, &end, 10);
    return errno == 0 && *end == 0;
}

/* The service manager's descriptor takes the place of an address. */
static int adopt(struct socket_set *set, int fd, uint32_t shares, char *why, size_t why_size)
{
    struct stat s;
    int listening = 0;
    socklen_t size = sizeof(listening);
    if (fstat(fd, &s) != 0 || !S_ISSOCK(s.st_mode) ||
        getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) != 0 || !listening) {
        snprintf(why, why_size,
                 "descriptor %d of LISTEN_FDS is not a listening socket; it must come from a .socket unit "
                 "with ListenStream=",
                 fd);
        return EXIT_CONFIG;
    }
    *set = (struct socket_set){.fds = {fd}, .fds_count = 1, .activated = true};
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) != 0 ||
        !same_place(fd, &set->address) || !copy_shares(set, shares))
        return fail(why, why_size, "a descriptor of LISTEN_FDS", errno);
    set->exposed = reached_from_outside(&set->address);
    address_text(fd, set->text);
    return 0;
}

/* Where an address of the settings wouldn't do, a descriptor doesn't either. */
static int check_operator(const struct socket_set *set, char *why, size_t why_size)
{
    bool nameless = set->address.local_file && !set->address.local.sun_path[0];
    if (!set->exposed && !nameless)
        return 0;
    snprintf(why, why_size,
             "LISTEN_FDNAMES names operator %s; the operator's listener is for this machine only: it must be "
             "a loopback address, or a unix socket with a path, whose mode decides",
             nameless ? "a unix socket without a path" : set->text);
    return EXIT_CONFIG;
}

static int adopt_all(struct sockets *s, uint32_t shares, char *why, size_t why_size)
{
    long pid, count;
    const char *names = getenv("LISTEN_FDNAMES");
    if (!number_of(getenv("LISTEN_PID"), &pid) || pid != getpid() || !number_of(getenv("LISTEN_FDS"), &count))
        return 0;
    if (count > (long)SOCKETS_ADDRESSES_MAX + 1) {
        snprintf(why, why_size, "LISTEN_FDS is '%ld'; it must be at most %u", count,
                 SOCKETS_ADDRESSES_MAX + 1);
        return EXIT_CONFIG;
    }
    for (int i = 0; i < (int)count; i++) {
        size_t length = names ? strcspn(names, ":") : 0;
        bool to_operator = length == 8 && memcmp(names, "operator", 8) == 0;
        bool to_clients = length == 0 || (length == 6 && memcmp(names, "client", 6) == 0) ||
                          (length == 7 && memcmp(names, "unknown", 7) == 0);
        if (!to_operator && !to_clients) {
            snprintf(
                why, why_size,
                "LISTEN_FDNAMES names '%.*s'; each name must be client or operator (FileDescriptorName=)",
                (int)length, names);
            return EXIT_CONFIG;
        }
        if (to_operator ? s->operator_set.fds_count > 0 : s->clients_count == SOCKETS_ADDRESSES_MAX) {
            snprintf(why, why_size, "LISTEN_FDNAMES names %s too often", to_operator ? "operator" : "client");
            return EXIT_CONFIG;
        }
        struct socket_set *set = to_operator ? &s->operator_set : &s->clients[s->clients_count++];
        int status = adopt(set, FIRST_ACTIVATED + i, to_operator ? 1 : shares, why, why_size);
        if (!status && to_operator)
            status = check_operator(set, why, why_size);
        if (status)
            return status;
        if (names)
            names += length + (names[length] == ':');
    }
    return 0;
}

/* ---- all of them ---- */

static uint32_t shares_of(uint32_t schedulers)
{
    cpu_set_t set;
    if (schedulers == 0)
        schedulers = sched_getaffinity(0, sizeof(set), &set) == 0 ? (uint32_t)CPU_COUNT(&set) : 1;
    return schedulers < 1 ? 1 : schedulers > SOCKETS_SHARES_MAX ? SOCKETS_SHARES_MAX : schedulers;
}

static int open_clients(struct sockets *s, const char *list, uint32_t shares, char *why, size_t why_size)
{
    struct socket_address addresses[SOCKETS_ADDRESSES_MAX];
    char text[512];
    size_t count;
    if (!sockets_parse(list, addresses, &count, text, sizeof(text))) {
        snprintf(why, why_size, "--http-listen is %s", text);
        return EXIT_CONFIG;
    }
    for (size_t i = 0; i < count; i++) {
        int status = open_set(&s->clients[s->clients_count++], &addresses[i], shares, text, sizeof(text));
        if (status) {
            snprintf(why, why_size, "--http-listen: %s", text);
            return status;
        }
    }
    return 0;
}

/* With errno and what is said of it. */
static int fail_operator(const char *listen, const char *what, char *why, size_t why_size)
{
    int status = errno == EACCES ? EXIT_NOPERM : EXIT_UNAVAILABLE;
    snprintf(why, why_size, "--operator-listen is '%s': %s", listen, what);
    return status;
}

static int open_operator(struct sockets *s, const char *listen, char *why, size_t why_size)
{
    struct address address;
    char text[256];
    if (!address_parse(listen, &address, text, sizeof(text))) {
        snprintf(why, why_size, "--operator-listen is %s", text);
        return EXIT_CONFIG;
    }
    int fd = address_listen(&address, text, sizeof(text));
    if (fd < 0)
        return fail_operator(listen, text, why, why_size);
    s->operator_set = (struct socket_set){.address = address, .fds = {fd}, .fds_count = 1};
    address_text(fd, s->operator_set.text);
    return 0;
}

int sockets_open(struct sockets *ret, const char *http_listen, const char *operator_listen,
                 uint32_t schedulers, char *ret_why, size_t why_size)
{
    *ret = (struct sockets){0};
    uint32_t shares = shares_of(schedulers);
    int status = adopt_all(ret, shares, ret_why, why_size);
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    if (!status && ret->operator_set.fds_count == 0)
        status = open_operator(ret, operator_listen, ret_why, why_size);
    if (!status && ret->clients_count == 0)
        status = open_clients(ret, http_listen, shares, ret_why, why_size);
    if (status)
        sockets_close(ret);
    return status;
}

/* ---- looking ---- */

/* A port that this user may not have is no error: a service manager asks before it passes its descriptors, one of which may be for it.
 * True: that is it, and it is warned of. */
static bool may_be_brought(const struct address *a, const char *option,
                           void (*warn)(void *context, const char *sentence), void *context)
{
    char what[ADDRESS_TEXT_MAX], sentence[ADDRESS_TEXT_MAX + 128];
    if (a->local_file || errno != EACCES)
        return false;
    port_text(a, what);
    snprintf(sentence, sizeof(sentence),
             "%s: this user can't listen at %s itself; a socket unit may bring it", option, what);
    warn(context, sentence);
    return true;
}

static int look_at_operator(const char *listen, void (*warn)(void *context, const char *sentence),
                            void *context, char *why, size_t why_size)
{
    struct address address;
    char text[256];
    if (!address_parse(listen, &address, text, sizeof(text)))
        return 0; /* which options say */
    if (address_look(&address, text, sizeof(text)) ||
        may_be_brought(&address, "--operator-listen", warn, context))
        return 0;
    return fail_operator(listen, text, why, why_size);
}

static int look_at_client(const struct address *a, void (*warn)(void *context, const char *sentence),
                          void *context, char *why, size_t why_size)
{
    char what[192];
    if (a->local_file)
        return address_look(a, what, sizeof(what)) ? 0 : fail_local(a, what, why, why_size);
    if (is_free(a) || errno == EADDRINUSE || may_be_brought(a, "--http-listen", warn, context))
        return 0;
    return fail_port(a, why, why_size);
}

static int look_at_clients(const char *list, void (*warn)(void *context, const char *sentence), void *context,
                           char *why, size_t why_size)
{
    struct socket_address addresses[SOCKETS_ADDRESSES_MAX];
    char text[512];
    size_t count;
    if (!sockets_parse(list, addresses, &count, text, sizeof(text)))
        return 0; /* which options say */
    for (size_t i = 0; i < count; i++) {
        int status = look_at_client(&addresses[i].address, warn, context, text, sizeof(text));
        if (status) {
            snprintf(why, why_size, "--http-listen: %s", text);
            return status;
        }
    }
    return 0;
}

int sockets_look(const char *http_listen, const char *operator_listen,
                 void (*warn)(void *context, const char *sentence), void *context, char *ret_why,
                 size_t why_size)
{
    struct sockets brought = {0};
    int status = adopt_all(&brought, 1, ret_why, why_size);
    if (!status && brought.operator_set.fds_count == 0)
        status = look_at_operator(operator_listen, warn, context, ret_why, why_size);
    if (!status && brought.clients_count == 0)
        status = look_at_clients(http_listen, warn, context, ret_why, why_size);
    sockets_close(&brought);
    return status;
}

static void close_set(struct socket_set *set)
{
    if (set->fds_count && !set->activated)
        address_remove(&set->address);
    while (set->fds_count)
        close(set->fds[--set->fds_count]);
}

const char *sockets_clients(const struct sockets *sockets, char text[SOCKETS_CLIENTS_TEXT_MAX])
{
    char *at = text;
    for (size_t i = 0; i < sockets->clients_count; i++) {
        if (i > 0)
            *at++ = ',';
        at = stpcpy(at, sockets->clients[i].text);
    }
    *at = 0;
    return text;
}

void sockets_close(struct sockets *sockets)
{
    close_set(&sockets->operator_set);
    while (sockets->clients_count)
        close_set(&sockets->clients[--sockets->clients_count]);
}
