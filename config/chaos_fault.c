#define _GNU_SOURCE
#include "config/chaos_fault.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/ptrace.h>

#include "runtime/env.h"

enum {
    THREADS_MAX = 512,
    MOMENT_NS = 10000000, /* within which one who waits hears that it is enough */
    GUESTS_MAX = 64,      /* that a receiver keeps waiting at a time; the next one ends the oldest */
};

/* In the child: it ends with its parent. */
static void child_begins(pid_t parent)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
}

void chaos_fault_stop(pid_t child)
{
    if (child <= 0)
        return;
    (void)kill(child, SIGTERM);
    (void)waitpid(child, NULL, 0);
}

/* ---- a slow disk ---- */

static volatile sig_atomic_t enough;
static void on_term(int sig)
{
    (void)sig;
    enough = 1;
}

/* Whoever is seized goes on at once, and stops at its system calls. */
static bool seize(pid_t thread)
{
    return ptrace(PTRACE_SEIZE, thread, NULL, (void *)(uintptr_t)PTRACE_O_TRACESYSGOOD) == 0 &&
           ptrace(PTRACE_INTERRUPT, thread, NULL, NULL) == 0;
}

static int seize_all(pid_t process, pid_t threads[THREADS_MAX])
{
    char path[64];
    int count = 0;
    snprintf(path, sizeof(path), "/proc/%d/task", (int)process);
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && (e = readdir(dir)) && count < THREADS_MAX;)
        if (e->d_name[0] != '.') {
            threads[count] = (pid_t)strtol(e->d_name, NULL, 10);
            if (!seize(threads[count])) {
                closedir(dir);
                return -1;
            }
            count++;
        }
    if (dir)
        closedir(dir);
    return dir ? count : -1;
}

static bool begins_sync(pid_t thread)
{
    struct __ptrace_syscall_info info = {.op = 0};
    if (ptrace(PTRACE_GET_SYSCALL_INFO, thread, (void *)sizeof(info), &info) <= 0)
        return false;
    return info.op == PTRACE_SYSCALL_INFO_ENTRY &&
           (info.entry.nr == SYS_fdatasync || info.entry.nr == SYS_fsync);
}

/* Lets a thread go on that has stopped: with its signal, if that was what stopped it. */
static void go_on(enum __ptrace_request how, pid_t thread, int status)
{
    int sig = WSTOPSIG(status);
    bool call = sig == (SIGTRAP | 0x80), event = (unsigned)status >> 16 != 0;
    (void)ptrace(how, thread, NULL, (void *)(uintptr_t)(call || event ? 0 : sig));
}

/* All but this one run on as if nobody looked: a thread that stops while we wait for another would wait with it. */
static void release_others(pid_t writer, const pid_t *threads, int count)
{
    for (int i = 0; i < count; i++) {
        int status;
        if (threads[i] == writer)
            continue;
        (void)ptrace(PTRACE_INTERRUPT, threads[i], NULL, NULL);
        while (waitpid(threads[i], &status, __WALL) < 0 && errno == EINTR)
            ;
        go_on(PTRACE_DETACH, threads[i], status);
    }
}

/* Until it is told to end. The first thread that syncs is the one that does. */
static void slow_down(uint64_t ns, const pid_t *threads, int count)
{
    pid_t writer = 0;
    while (!enough) {
        int status;
        pid_t thread = waitpid(-1, &status, __WALL);
        if (thread < 0 && errno == EINTR)
            continue;
        if (thread < 0)
            return;
        if (!WIFSTOPPED(status))
            continue;
        bool syncs = WSTOPSIG(status) == (SIGTRAP | 0x80) && begins_sync(thread);
        if (syncs && !writer) {
            writer = thread;
            release_others(writer, threads, count);
        }
        for (uint64_t end = env_real()->now(env_real()) + ns, at = 0; syncs && !enough && at < end;) {
            env_thread_sleep(env_real()->now(env_real()) + (ns < MOMENT_NS ? ns : MOMENT_NS));
            at = env_real()->now(env_real());
        }
        go_on(PTRACE_SYSCALL, thread, status);
    }
}

/* A tracer that ends lets go of all of them, wherever they are. */
static _Noreturn void slow_child(pid_t process, uint64_t ns, int ready)
{
    static pid_t threads[THREADS_MAX];
    struct sigaction action = {.sa_handler = on_term};
    (void)sigaction(SIGTERM, &action, NULL);
    int count = seize_all(process, threads), code = count > 0 ? 0 : errno ? errno : ESRCH;
    (void)!write(ready, &code, sizeof(code));
    close(ready);
    if (!code)
        slow_down(ns, threads, count);
    _exit(code != 0);
}

pid_t chaos_fault_slow(pid_t process, uint64_t ns, char *why, size_t why_size)
{
    int ready[2], code = EIO;
    pid_t parent = getpid(), child = pipe2(ready, O_CLOEXEC) == 0 ? fork() : -1;
    if (child < 0) {
        snprintf(why, why_size, "no process for it: %s", strerror(errno));
        return 0;
    }
    if (child == 0) {
        child_begins(parent);
        close(ready[0]);
        slow_child(process, ns, ready[1]);
    }
    close(ready[1]);
    if (read(ready[0], &code, sizeof(code)) != sizeof(code))
        code = EIO;
    close(ready[0]);
    if (!code)
        return child;
    (void)waitpid(child, NULL, 0);
    snprintf(why, why_size, "the server can't be traced: %s", strerror(code));
    return 0;
}

/* ---- receivers ---- */

static const char *const receiver_names[] = {
#define X(id, name) name,
    CHAOS_RECEIVERS(X)
#undef X
};

const char *chaos_receiver_name(enum chaos_receiver which)
{
    return receiver_names[which];
}

static bool put(int fd, const char *text)
{
    return send(fd, text, strlen(text), MSG_NOSIGNAL) > 0;
}

/* What has come of the request so far; of a small one that is all of it. */
static void swallow(int fd, char *room, size_t size)
{
    ssize_t n = recv(fd, room, size - 1, 0);
    room[n > 0 ? n : 0] = 0;
}

/* Its first line. */
static void note_line(const char *file, const char *request)
{
    char line[256];
    int size = snprintf(line, sizeof(line), "%.*s\n", (int)strcspn(request, "\r\n") % 200, request),
        fd = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd >= 0) {
        (void)!write(fd, line, (size_t)size);
        close(fd);
    }
}

/* In a process of its own, which may stay for as long as it likes. */
static _Noreturn void receive_slowly(enum chaos_receiver which, int fd)
{
    char much[4096], room[4096];
    memset(much, 'x', sizeof(much) - 1);
    much[sizeof(much) - 1] = 0;
    if (which == RECEIVER_HANG)
        for (;;)
            pause();
    swallow(fd, room, sizeof(room));
    if (which == RECEIVER_ENDLESS && put(fd, "HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n"))
        while (put(fd, much))
            ;
    if (which == RECEIVER_DRIP)
        while (put(fd, "H"))
            env_thread_sleep(env_real()->now(env_real()) + NS_PER_S);
    _exit(0);
}

static void receive(enum chaos_receiver which, int fd, const char *file, uint16_t redirect_to)
{
    char answer[256], room[16384] = "";
    if (which != RECEIVER_SLAM)
        swallow(fd, room, sizeof(room));
    if (which == RECEIVER_GOOD) {
        note_line(file, room);
        (void)put(fd, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    } else if (which == RECEIVER_GARBAGE) {
        (void)put(fd, "\x16\x03\x01 this is no HTTP\r\n\r\n\r\n");
    } else if (which == RECEIVER_REDIRECT) {
        snprintf(answer, sizeof(answer),
                 "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:%u/redirected\r\nContent-Length: 0\r\n"
                 "Connection: close\r\n\r\n",
                 redirect_to);
        (void)put(fd, answer);
    }
}

static _Noreturn void receiver_run(enum chaos_receiver which, int listening, const char *file,
                                   uint16_t redirect_to)
{
    pid_t guests[GUESTS_MAX] = {0}, self = getpid();
    bool slow = which == RECEIVER_HANG || which == RECEIVER_DRIP || which == RECEIVER_ENDLESS;
    for (uint32_t i = 0;; i = (i + 1) % GUESTS_MAX) {
        int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0)
            continue;
        if (slow) {
            if (guests[i])
                chaos_fault_stop(guests[i]);
            guests[i] = fork();
            if (guests[i] == 0) {
                child_begins(self);
                (void)signal(SIGTERM, SIG_DFL);
                receive_slowly(which, fd);
            }
        } else {
            receive(which, fd, file, redirect_to);
        }
        close(fd);
    }
}

pid_t chaos_receiver_start(enum chaos_receiver which, const char *file, uint16_t redirect_to,
                           uint16_t *ret_port, char *why, size_t why_size)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    pid_t parent = getpid(), child = -1;
    if (fd >= 0 && bind(fd, (const struct sockaddr *)&at, size) == 0 && listen(fd, 64) == 0 &&
        getsockname(fd, (struct sockaddr *)&at, &size) == 0)
        child = fork();
    if (child == 0) {
        child_begins(parent);
        (void)signal(SIGTERM, SIG_DFL);
        receiver_run(which, fd, file, redirect_to);
    }
    if (child < 0)
        snprintf(why, why_size, "a receiver can't be started: %s", strerror(errno));
    if (fd >= 0)
        close(fd);
    *ret_port = ntohs(at.sin_port);
    return child > 0 ? child : 0;
}
