#define _GNU_SOURCE
#include "chaos/camp.h"

#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SWEEPS_MAX = 200, REST_NS = 10000000, FOLDERS_OPEN = 16 };

static const char keep = 'k', end = 'e';

/* ---- the keeper ---- */

static int remove_one(const char *path, const struct stat *s, int kind, struct FTW *ftw)
{
    (void)s, (void)kind, (void)ftw;
    return remove(path);
}

/* More than once: a server whose parent is killed lives for a moment longer, and may be making its store just then. */
static void sweep(const char *dir)
{
    for (int i = 0; i < SWEEPS_MAX; i++) {
        (void)nftw(dir, remove_one, FOLDERS_OPEN, FTW_DEPTH | FTW_PHYS);
        if (access(dir, F_OK) != 0)
            return;
        nanosleep(&(struct timespec){.tv_nsec = REST_NS}, NULL);
    }
}

/* Waits for the end; true: the folder is to be kept. */
static bool watch(int campaign)
{
    bool kept = false;
    char said = 0;
    while (said != end) {
        ssize_t n = read(campaign, &said, 1);
        if (n == 0 || (n < 0 && errno != EINTR))
            break;
        kept |= n == 1 && said == keep;
    }
    return kept;
}

static _Noreturn void be_keeper(const char *dir, int campaign)
{
    static const int deaf[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGALRM};
    for (size_t i = 0; i < sizeof(deaf) / sizeof(*deaf); i++)
        signal(deaf[i], SIG_IGN);
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        close(fd); /* who reads what the campaign prints doesn't wait for us */
    if (!watch(campaign))
        sweep(dir);
    _exit(0);
}

/* ---- the campaign ---- */

/* False: there is no process for it. */
static bool hire(const char *dir, int fds[2])
{
    int status = 1;
    fflush(NULL);
    pid_t between = fork();
    if (between == 0) {
        close(fds[0]);
        (void)setsid();
        pid_t keeper = fork();
        if (keeper == 0)
            be_keeper(dir, fds[1]);
        _exit(keeper < 0);
    }
    while (between > 0 && waitpid(between, &status, 0) < 0 && errno == EINTR)
        ;
    return between > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool camp_begin(struct camp *camp, const char *parent, const char *name)
{
    int fds[2];
    int size = snprintf(camp->dir, sizeof(camp->dir), "%s/%s.XXXXXX", parent, name);
    camp->keeper = -1;
    errno = ENAMETOOLONG;
    if (size < 0 || (size_t)size >= sizeof(camp->dir) || !mkdtemp(camp->dir))
        return false;
    bool hired = false;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0) {
        hired = hire(camp->dir, fds);
        close(fds[1]);
        camp->keeper = fds[0];
    }
    if (!hired) {
        int error = errno;
        close(camp->keeper);
        rmdir(camp->dir);
        errno = error;
    }
    return hired;
}

static void say(const struct camp *camp, char what)
{
    (void)!send(camp->keeper, &what, 1, MSG_NOSIGNAL);
}

void camp_keep(const struct camp *camp)
{
    say(camp, keep);
}

void camp_end(struct camp *camp)
{
    char nothing;
    say(camp, end);
    while (read(camp->keeper, &nothing, 1) < 0 && errno == EINTR)
        ; /* it says nothing; its end is the end */
    close(camp->keeper);
    camp->keeper = -1;
}
