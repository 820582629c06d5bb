#define _GNU_SOURCE
#include "tests/bench/daemon.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "tests/bench/bench.h"

#define AWAIT_MS 30000

/* ---- finding it ---- */

static const char *search_path(void)
{
    static char path[8192];
    const char *given = getenv("PATH");
    snprintf(path, sizeof path, "%s:/sbin:/bin", given ? given : "");
    return path;
}

bool daemon_finds(const char *program, char *ret_path, size_t size)
{
    for (const char *at = search_path(), *end; *at; at = *end ? end + 1 : end) {
        end = strchrnul(at, ':');
        int n = snprintf(ret_path, size, "%.*s/%s", (int)(end - at), at, program);
        if (end > at && n > 0 && (size_t)n < size && access(ret_path, X_OK) == 0)
            return true;
    }
    return false;
}

uint16_t daemon_free_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, size) < 0 ||
        getsockname(fd, (struct sockaddr *)&at, &size) < 0)
        bench_fail("no port: %s", strerror(errno));
    close(fd);
    return ntohs(at.sin_port);
}

/* ---- starting it ---- */

static void become(const struct daemon *daemon, const char *const *argv, const char *const *env, int in,
                   int out)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(0);
    if (chdir(daemon->folder) < 0)
        _exit(126);
    int log = open("log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (log < 0 || dup2(in, STDIN_FILENO) < 0 || dup2(out >= 0 ? out : log, STDOUT_FILENO) < 0 ||
        dup2(log, STDERR_FILENO) < 0)
        _exit(126);
    for (; env && *env; env++)
        putenv((char *)(uintptr_t)*env);
    setenv("PATH", search_path(), 1);
    execvp(argv[0], (char *const *)(uintptr_t)argv);
    _exit(127);
}

void daemon_begin(struct daemon *daemon, const char *const *argv, const char *const *env, bool talks)
{
    int in[2], out[2] = {-1, -1};
    if (pipe2(in, O_CLOEXEC) < 0 || (talks && pipe2(out, O_CLOEXEC) < 0))
        bench_fail("no pipe: %s", strerror(errno));
    daemon->pid = fork();
    if (daemon->pid < 0)
        bench_fail("no process: %s", strerror(errno));
    if (daemon->pid == 0)
        become(daemon, argv, env, in[0], out[1]);
    close(in[0]);
    if (talks)
        close(out[1]);
    daemon->in = in[1];
    daemon->out = out[0];
}

static bool listens(const struct daemon *daemon)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(daemon->port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool there = fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0;
    if (fd >= 0)
        close(fd);
    return there;
}

void daemon_await(struct daemon *daemon)
{
    int status;
    for (int tries = 0; tries < AWAIT_MS; tries++) {
        if (listens(daemon))
            return;
        if (waitpid(daemon->pid, &status, WNOHANG) == daemon->pid)
            bench_fail("what should listen at port %u has ended; %s/log says why", daemon->port,
                       daemon->folder);
        usleep(1000);
    }
    bench_fail("nothing listens at port %u; %s/log may say why", daemon->port, daemon->folder);
}

/* ---- what it costs ---- */

uint64_t daemon_cpu_ns(const struct daemon *daemon)
{
    clockid_t clock;
    struct timespec t;
    if (clock_getcpuclockid(daemon->pid, &clock) || clock_gettime(clock, &t) < 0)
        bench_fail("no clock of process %d", daemon->pid);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

uint64_t daemon_anonymous(const struct daemon *daemon)
{
    char path[64], line[256];
    uint64_t kb = 0;
    snprintf(path, sizeof path, "/proc/%d/status", daemon->pid);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "RssAnon:", 8) == 0 || strncmp(line, "RssShmem:", 9) == 0)
            kb += strtoull(strchr(line, ':') + 1, NULL, 10);
    if (f)
        fclose(f);
    if (!kb)
        bench_fail("%s can't be read", path);
    return kb * 1024;
}

/* ---- ending it ---- */

static void end(struct daemon *daemon, int signal)
{
    if (daemon->pid <= 0)
        return;
    kill(daemon->pid, signal);
    while (waitpid(daemon->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    close(daemon->in);
    if (daemon->out >= 0)
        close(daemon->out);
    daemon->pid = 0;
}

void daemon_stop(struct daemon *daemon)
{
    end(daemon, SIGTERM);
}

void daemon_kill(struct daemon *daemon)
{
    end(daemon, SIGKILL);
}
