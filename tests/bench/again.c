#define _GNU_SOURCE
#include "tests/bench/again.h"
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/bench/bench.h"

struct again again_start(const char *verb, const char *first, const char *second)
{
    static char self[] = "/proc/self/exe";
    char *argv[] = {self, (char *)(uintptr_t)verb, (char *)(uintptr_t)first, (char *)(uintptr_t)second, NULL};
    struct again again;
    int ends[2];
    posix_spawn_file_actions_t actions;
    if (pipe2(ends, O_CLOEXEC) < 0 || posix_spawn_file_actions_init(&actions) ||
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO) ||
        posix_spawn(&again.pid, self, &actions, NULL, argv, environ))
        bench_fail("this program can't be started again");
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    again.said = ends[0];
    return again;
}

void again_await(struct again *again)
{
    char byte;
    ssize_t n;
    do
        n = read(again->said, &byte, 1);
    while (n < 0 && errno == EINTR);
    if (n != 1)
        bench_fail("a child said nothing");
}

bool again_running(struct again *again)
{
    siginfo_t info = {.si_pid = 0};
    if (waitid(P_PID, (id_t)again->pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0)
        bench_fail("a child can't be waited for");
    return info.si_pid == 0;
}

void again_end(struct again *again)
{
    int status = -1;
    while (waitpid(again->pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (status != 0)
        bench_fail("a child ended with status %d", status);
    close(again->said);
}
