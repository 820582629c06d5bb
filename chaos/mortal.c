#define _GNU_SOURCE
#include "chaos/mortal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PIPE_SIZE = 1 << 20, WORDS_KEPT = MORTAL_WORDS_MAX / 4, EXIT_NO_PROGRAM = 127 };

static volatile sig_atomic_t victim, struck, doomed;

uint64_t mortal_now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

_Noreturn void mortal_give_up(const char *what)
{
    printf("%s: %s\n", what, strerror(errno));
    exit(1); /* the server dies with us */
}

/* ---- the instant ---- */

/* One that has ended by itself meanwhile is still waited for, so its number is nobody else's; how it ended, its status says. */
static void strike(int sig)
{
    int error = errno;
    (void)sig;
    if (victim > 0 && kill(victim, SIGKILL) == 0)
        struck = 1;
    errno = error;
}

static void set_timer(uint64_t us)
{
    struct itimerval t = {
        .it_value = {.tv_sec = (time_t)(us / 1000000), .tv_usec = (suseconds_t)(us % 1000000)}};
    if (setitimer(ITIMER_REAL, &t, NULL) != 0)
        mortal_give_up("no timer");
}

void mortal_doom(struct mortal *m, uint64_t us)
{
    static bool installed;
    struct sigaction action = {.sa_handler = strike};
    if (!installed && sigaction(SIGALRM, &action, NULL) != 0)
        mortal_give_up("no handler");
    installed = true;
    victim = m->pid;
    doomed = 1;
    set_timer(us ? us : 1);
}

bool mortal_struck(void)
{
    return struck;
}

void mortal_signal(const struct mortal *m, int sig)
{
    kill(m->pid, sig);
}

/* ---- from its start to its end ---- */

void mortal_start(struct mortal *m, char *const *argv)
{
    int fds[2];
    pid_t parent = getpid();
    if (pipe2(fds, O_CLOEXEC) != 0)
        mortal_give_up("no pipe");
    (void)fcntl(fds[1], F_SETPIPE_SZ, PIPE_SIZE); /* it logs for a while before anybody reads */
    *m = (struct mortal){.log = fds[0], .began_us = mortal_now_us()};
    struck = doomed = 0;
    fflush(NULL);
    m->pid = fork();
    if (m->pid < 0)
        mortal_give_up("no process");
    if (m->pid == 0) {
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
            _exit(EXIT_NO_PROGRAM);
        dup2(fds[1], STDERR_FILENO);
        execv(argv[0], argv);
        _exit(EXIT_NO_PROGRAM);
    }
    close(fds[1]);
}

/* False: there is nothing more, now or for ever. Of many words the last ones are kept. */
static bool read_words(struct mortal *m, int wait_ms)
{
    struct pollfd p = {.fd = m->log, .events = POLLIN};
    if (m->used > MORTAL_WORDS_MAX - WORDS_KEPT) {
        memmove(m->words, m->words + m->used - WORDS_KEPT, WORDS_KEPT);
        m->used = WORDS_KEPT;
    }
    int ready;
    do
        ready = poll(&p, 1, wait_ms);
    while (ready < 0 && errno == EINTR);
    ssize_t n = ready == 1 ? read(m->log, m->words + m->used, MORTAL_WORDS_MAX - 1 - m->used) : 0;
    if (n > 0)
        m->used += (uint32_t)n;
    m->words[m->used] = 0;
    return n > 0;
}

bool mortal_await(struct mortal *m)
{
    static const char client[] = "\"client\":\"127.0.0.1:";
    uint64_t until_us = m->began_us + UINT64_C(1000) * MORTAL_WAIT_MS;
    while (mortal_now_us() < until_us && read_words(m, MORTAL_WAIT_MS)) {
        const char *at = strstr(m->words, "\"msg\":\"started\""), *port = at ? strstr(at, client) : NULL;
        if (port && strchr(port, '\n')) {
            m->port = (uint16_t)atoi(port + sizeof(client) - 1);
            return true;
        }
    }
    return false;
}

void mortal_hear(struct mortal *m)
{
    while (read_words(m, 0))
        ;
}

enum mortal_end mortal_end(struct mortal *m)
{
    siginfo_t info;
    if (!doomed)
        mortal_doom(m, UINT64_C(1000) * MORTAL_WAIT_MS);
    while (waitid(P_PID, (id_t)m->pid, &info, WEXITED | WNOWAIT) != 0)
        if (errno != EINTR)
            mortal_give_up("the server can't be waited for");
    set_timer(0); /* before its number is anybody's again */
    victim = 0;
    if (waitpid(m->pid, &m->status, 0) != m->pid)
        mortal_give_up("the server can't be waited for");
    mortal_hear(m);
    close(m->log);
    m->pid = 0;
    if (WIFSIGNALED(m->status) && WTERMSIG(m->status) == SIGKILL && struck)
        return MORTAL_KILLED;
    return WIFEXITED(m->status) && WEXITSTATUS(m->status) == 0 ? MORTAL_LEFT : MORTAL_BROKEN;
}
