/* A service manager for tests/api/process_test.sh, which compiles it: starts a program with a socket for notifications, a
 * watchdog time in microseconds, and a listening socket named "client" as descriptor 3: of MANAGER_CLIENT, an IPv4 address, by
 * default 127.0.0.1. With MANAGER_OPERATOR, a path, also a unix socket of mode 0600 named "operator" as descriptor 4.
 * With MANAGER_STARTS, a number, the program is started so often, each time when it has ended, with the same sockets.
 *
 *     manager WATCHDOG_USEC PROGRAM ARGUMENT...
 *
 * Prints "port N"; then for each start "pid N", each notification on a line of its own, '|' between its lines, and
 * "ended STATUS". */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static int notifications(char name[64])
{
    struct sockaddr_un here = {.sun_family = AF_UNIX};
    int length = snprintf(name, 64, "@coppice-manager-%d", getpid());
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    memcpy(here.sun_path, name, (size_t)length);
    here.sun_path[0] = 0;
    if (bind(fd, (struct sockaddr *)&here,
             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)length)) != 0)
        abort();
    return fd;
}

static int listening(void)
{
    const char *address = getenv("MANAGER_CLIENT");
    struct sockaddr_in here = {.sin_family = AF_INET};
    socklen_t size = sizeof(here);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (inet_pton(AF_INET, address ? address : "127.0.0.1", &here.sin_addr) != 1)
        abort();
    if (bind(fd, (struct sockaddr *)&here, size) != 0 || listen(fd, 64) != 0 ||
        getsockname(fd, (struct sockaddr *)&here, &size) != 0)
        abort();
    printf("port %u\n", ntohs(here.sin_port));
    return fd;
}

static int operators(const char *path)
{
    struct sockaddr_un here = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(here.sun_path, sizeof(here.sun_path), "%s", path);
    if (bind(fd, (struct sockaddr *)&here, sizeof(here)) != 0 || chmod(path, 0600) != 0 ||
        listen(fd, 64) != 0)
        abort();
    return fd;
}

/* As `place`, to be inherited. */
static bool hand_over(int fd, int place)
{
    return fd == place ? fcntl(fd, F_SETFD, 0) == 0 : dup2(fd, place) == place;
}

struct sockets {
    int client, operators; /* -1: none */
};

static void start(char *argv[], const char *watchdog, const char *name, struct sockets s,
                  const sigset_t *before)
{
    bool both = s.operators >= 0;
    char pid[16];
    snprintf(pid, sizeof(pid), "%d", getpid());
    setenv("NOTIFY_SOCKET", name, 1);
    setenv("WATCHDOG_USEC", watchdog, 1);
    setenv("WATCHDOG_PID", pid, 1);
    setenv("LISTEN_PID", pid, 1);
    setenv("LISTEN_FDS", both ? "2" : "1", 1);
    setenv("LISTEN_FDNAMES", both ? "client:operator" : "client", 1);
    sigprocmask(SIG_SETMASK, before, NULL);
    if (hand_over(s.client, 3) && (!both || hand_over(s.operators, 4)))
        execv(argv[0], argv);
    _exit(127);
}

static bool tell(int notifications)
{
    char text[1024];
    ssize_t n = recv(notifications, text, sizeof(text) - 1, MSG_DONTWAIT);
    if (n <= 0)
        return false;
    text[n] = 0;
    for (char *c = text; *c; c++)
        *c = *c == '\n' ? '|' : *c;
    printf("%s\n", text);
    return true;
}

/* Until the program has ended, and all that it has said is told. */
static void watch(struct pollfd in[2], pid_t pid)
{
    int status;
    bool ended = false;
    while (!ended) {
        poll(in, 2, -1);
        ended = waitpid(pid, &status, WNOHANG) == pid;
        while (tell(in[0].fd))
            ;
    }
    printf("ended %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

int main(int argc, char *argv[])
{
    const char *path = getenv("MANAGER_OPERATOR"), *starts = getenv("MANAGER_STARTS");
    char name[64];
    sigset_t child, before;
    if (argc < 3)
        return 64;
    setvbuf(stdout, NULL, _IOLBF, 0);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, &before);
    struct sockets s = {.client = listening(), .operators = path ? operators(path) : -1};
    struct pollfd in[2] = {{.fd = notifications(name), .events = POLLIN},
                           {.fd = signalfd(-1, &child, SFD_CLOEXEC), .events = POLLIN}};
    for (int left = starts ? atoi(starts) : 1; left > 0; left--) {
        pid_t pid = fork();
        if (pid == 0)
            start(argv + 2, argv[1], name, s, &before);
        printf("pid %d\n", pid);
        watch(in, pid);
    }
    return 0;
}
