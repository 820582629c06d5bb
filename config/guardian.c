#include "config/guardian.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "config/log.h"
#include "config/output.h"
#include "runtime/restart_window.h"
#include "runtime/runtime.h"

struct guardian {
    sigset_t inherited; /* the mask that children get */
    sigset_t watched;   /* SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGCHLD */
    pid_t child;
    bool stopping;
    uint64_t servers; /* that were started */
    int (*serve)(void *arg, bool again);
    void *arg;
};

static bool start(struct guardian *g)
{
    pid_t guardian = getpid();
    g->child = fork();
    if (g->child < 0)
        LOG(LOG_ERROR, "guardian", "the server could not be started", {"err", strerror(errno), 0});
    if (g->child != 0) {
        g->servers += g->child > 0;
        return g->child > 0;
    }
    setpgid(
        0,
        0); /* a terminal's interrupt comes through the guardian, once: the second one would end it at once */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    sigprocmask(SIG_SETMASK, &g->inherited, NULL);
    if (getppid() != guardian)
        exit(EXIT_SUCCESS); /* it went before we asked to be told */
    exit(g->serve(g->arg, g->servers > 0));
}

/* Until the child has ended: its wait status. */
static int watch(struct guardian *g)
{
    int status;
    for (;;) {
        siginfo_t info;
        int signal = sigwaitinfo(&g->watched, &info);
        if (signal == SIGTERM || signal == SIGINT) {
            g->stopping = true;
            kill(g->child, signal);
        } else if (signal == SIGHUP || signal == SIGUSR1) {
            kill(g->child, signal);
        } else if (signal == SIGCHLD && waitpid(g->child, &status, WNOHANG) == g->child) {
            return status;
        }
    }
}

static int exit_status(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static bool ended_by(int status, int signal)
{
    return WIFSIGNALED(status) && WTERMSIG(status) == signal;
}

/* What a start says of a data directory that will say the same next time: damaged, missing, not ours, not writable. */
static bool store_refused(int code)
{
    return code == 65 || code == 66 || code == 73 || code == 77;
}

/* What a first start says of settings that are wrong, or of limits that are too low for them. Later ones have worked before, or are of a
 * file that may be mended: each start reads it again. */
static bool settings_refused(const struct guardian *g, int code)
{
    return (code == EXIT_CONFIG || code == EXIT_SYSTEM) && g->servers == 1;
}

/* True: it is final, with *ret_status. */
static bool final(const struct guardian *g, int status, int *ret_status)
{
    int code = exit_status(status);
    /* A stop that came before the server could listen for it is a stop all the same. */
    if (g->stopping && (ended_by(status, SIGTERM) || ended_by(status, SIGINT)))
        code = 0;
    *ret_status = code;
    return g->stopping || code == 0 || code == EXIT_USAGE || settings_refused(g, code) || store_refused(code);
}

static void report(const struct guardian *g, int status, bool again)
{
    const char *what = again ? "the server ended and is started again" : "the server ended";
    if (WIFSIGNALED(status))
        LOG(LOG_WARN, "guardian", what, {"server", NULL, g->child},
            {"signal", strsignal(WTERMSIG(status)), 0});
    else
        LOG(LOG_WARN, "guardian", what, {"server", NULL, g->child}, {"status", NULL, WEXITSTATUS(status)});
}

/* Between two tries to start one, while there is no room for a process. True: it is told to stop. */
static bool rest(void)
{
    const struct timespec second = {.tv_sec = 1};
    sigset_t stops;
    sigemptyset(&stops);
    sigaddset(&stops, SIGTERM);
    sigaddset(&stops, SIGINT);
    return sigtimedwait(&stops, NULL, &second) > 0;
}

static void watch_signals(struct guardian *g)
{
    sigemptyset(&g->watched);
    sigaddset(&g->watched, SIGTERM);
    sigaddset(&g->watched, SIGINT);
    sigaddset(&g->watched, SIGHUP);
    sigaddset(&g->watched, SIGUSR1);
    sigaddset(&g->watched, SIGCHLD);
    sigprocmask(SIG_BLOCK, &g->watched, &g->inherited);
    /* What came while there was no server is passed on as soon as there is one: it waits until signals_open, and ends nobody. */
    sigaddset(&g->inherited, SIGHUP);
    sigaddset(&g->inherited, SIGUSR1);
}

int guardian_run(struct intensity intensity, struct env *env, int (*serve)(void *arg, bool again), void *arg)
{
    static uint64_t ring[1000]; /* as many restarts as an intensity may have */
    struct guardian g = {.serve = serve, .arg = arg};
    struct restart_window window;
    int status, code;
    if (!restart_window_init(&window, intensity.restarts, intensity.period_ns, ring))
        return EXIT_CONFIG;
    watch_signals(&g);
    if (!start(&g))
        return EXIT_FAILURE;
    for (;;) {
        status = watch(&g);
        if (final(&g, status, &code))
            return code;
        bool granted = restart_window_grant(&window, env->now(env));
        report(&g, status, granted);
        while (granted && !start(&g)) { /* which counts as one that has ended */
            granted = restart_window_grant(&window, env->now(env));
            if (granted && rest())
                return EXIT_SUCCESS;
        }
        if (!granted)
            break;
    }
    LOG(LOG_ERROR, "guardian", "restart budget spent", {"restarts", NULL, intensity.restarts},
        {"window_s", NULL, (int64_t)(intensity.period_ns / NS_PER_S)}, {"last_status", NULL, code});
    return RUNTIME_EXIT_EXHAUSTED;
}
