/* Boot: from exec of `coppice serve` to its line that says the tree is up and the operator's listener open,
 * and what the process then has in memory. The program measured is the one of this build, two folders above
 * this one. */
#define _GNU_SOURCE
#include "tests/bench/bench.h"
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define STARTED "\"msg\":\"started\""
#define BOOT_MS 5000

static char program[4096];

static void find_program(void)
{
    int n = snprintf(program, sizeof program, "%s/coppice", bench_folder());
    if (n < 0 || (size_t)n >= sizeof program)
        bench_fail("the path of the program is too long");
    if (access(program, X_OK) != 0)
        bench_fail("%s is not there: make build", program);
}

/* Its log goes into the pipe. */
static pid_t serve(int *ret_log)
{
    int ends[2];
    pid_t pid;
    static char store[sizeof(program) + 16]; /* made by the first start, which warms up */
    snprintf(store, sizeof(store), "%s.boot-store", program);
    char *argv[] = {program,       "serve",         "--operator-listen",
                    "127.0.0.1:0", "--http-listen", "127.0.0.1:0",
                    "--store-dir", store,           NULL};
    char *envp[] = {NULL};
    posix_spawn_file_actions_t actions;
    if (pipe2(ends, O_CLOEXEC) != 0 || posix_spawn_file_actions_init(&actions) != 0 ||
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO) != 0 ||
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO) != 0 ||
        posix_spawn(&pid, program, &actions, NULL, argv, envp) != 0)
        bench_fail("%s cannot be started", program);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    *ret_log = ends[0];
    return pid;
}

static void await_start(int log)
{
    char text[16384];
    size_t used = 0;
    uint64_t deadline = bench_now() + BOOT_MS * NS_PER_MS;
    text[0] = 0;
    while (!strstr(text, STARTED)) {
        struct pollfd ready = {.fd = log, .events = POLLIN};
        ssize_t n = -1;
        if (bench_now() < deadline && used < sizeof text - 1 && poll(&ready, 1, BOOT_MS) > 0)
            n = read(log, text + used, sizeof text - 1 - used);
        if (n <= 0)
            bench_fail("it did not start within %d ms; its log: %s", BOOT_MS, text);
        used += (size_t)n;
        text[used] = 0;
    }
}

static double resident_mb(pid_t pid)
{
    char path[64], text[128] = "";
    snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    char *second = n > 0 ? strchr(text, ' ') : NULL;
    if (!second)
        bench_fail("%s cannot be read", path);
    close(fd);
    return (double)strtoull(second, NULL, 10) * (double)sysconf(_SC_PAGESIZE) / 1e6;
}

static void boot(void *arg, double *ret)
{
    int log, status = -1;
    (void)arg;
    uint64_t started = bench_now();
    pid_t pid = serve(&log);
    await_start(log);
    ret[0] = (double)(bench_now() - started) / 1e6;
    ret[1] = resident_mb(pid);
    kill(pid, SIGTERM);
    if (waitpid(pid, &status, 0) != pid || status != 0)
        bench_fail("it ended with status %d after SIGTERM", status);
    close(log);
}

int main(void)
{
    const struct bench_row rows[] = {{"boot", "ms", BENCH_LESS}, {"boot_mb", "MB", BENCH_LESS}};
    bench_begin("runtime", 4);
    find_program();
    bench_repeat(rows, 2, boot, NULL);
    return 0;
}
