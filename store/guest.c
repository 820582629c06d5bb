#define _GNU_SOURCE /* SCHED_IDLE */
#include "store/guest.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    NICE = 10,
    LOOK_TRIES = 100, /* a living writer must commit twice between two lines of code to use one up */
};

/* ---- one state ---- */

/* A map that the server made larger is mapped again, which can happen more than once between two looks. */
static int begin(struct environment *e, MDB_txn **ret_txn)
{
    int code = MDB_MAP_RESIZED;
    for (unsigned i = 0; i < GUEST_TRIES && code == MDB_MAP_RESIZED; i++) {
        code = mdb_txn_begin(e->mdb, NULL, MDB_RDONLY, ret_txn);
        if (code == MDB_MAP_RESIZED && mdb_env_set_mapsize(e->mdb, 0) != 0)
            return MDB_MAP_RESIZED;
    }
    MDB_envinfo info;
    if (code == 0 && mdb_env_info(e->mdb, &info) == 0)
        e->map = info.me_mapsize;
    return code;
}

static enum error guest_begin(struct guest *guest)
{
    MDB_txn *mdb;
    int code = begin(&guest->store.environment, &mdb);
    if (code)
        return txn_error_of(code);
    txn_open(&guest->txn, &guest->store, mdb);
    return meta_read_format(mdb, guest->store.environment.tables[TABLE_META], &guest->format);
}

static void guest_end(struct guest *guest)
{
    MDB_txn *mdb = guest->txn.mdb;
    if (!mdb)
        return;
    txn_release(&guest->txn);
    mdb_txn_abort(mdb);
}

/* What another process that is just opening or closing the store can make of our opening it. */
static bool passing(enum error e)
{
    return e == ERR_IO || e == ERR_SYSTEM || e == ERR_IN_USE || e == ERR_DAMAGED || e == ERR_UNAVAILABLE;
}

static enum error guest_try(const struct environment_options *options, const struct schema *schema,
                            struct guest *guest, char *ret_text, size_t text_size)
{
    memset(guest, 0, sizeof(*guest));
    guest->store.schema = schema;
    enum error e = environment_open(options, schema, &guest->store.environment, ret_text, text_size);
    if (e)
        return e;
    e = guest_begin(guest);
    if (!e) {
        guest->store.identity = guest->format.identity;
        memcpy(guest->store.secret, guest->format.secret, sizeof(guest->store.secret));
        return OK;
    }
    guest_end(guest);
    environment_close(&guest->store.environment);
    if (e == ERR_MEMORY)
        snprintf(ret_text, text_size, "%s: as many views of the store are open as may be; try again later",
                 options->dir);
    else
        snprintf(ret_text, text_size, "%s: the store can't be read: %s", options->dir, error_name(e));
    return e;
}

enum error guest_open(const char *dir, const struct schema *schema, struct guest *ret_guest, char *ret_text,
                      size_t text_size)
{
    const struct environment_options options = {.dir = dir, .must_exist = true, .guest = true};
    struct env *env = env_real();
    enum error e = guest_try(&options, schema, ret_guest, ret_text, text_size);
    for (unsigned i = 1; i < GUEST_TRIES && passing(e); i++) {
        env_thread_sleep(env->now(env) + GUEST_PAUSE_NS);
        e = guest_try(&options, schema, ret_guest, ret_text, text_size);
    }
    return e;
}

enum error guest_renew(struct guest *guest)
{
    guest_end(guest);
    return guest_begin(guest);
}

enum error guest_look(struct guest *guest, struct image_report *ret_report, char *ret_text, size_t text_size)
{
    int fd = guest->store.environment.data_fd;
    for (unsigned i = 0; i < LOOK_TRIES; i++) {
        enum error e = image_check(fd, txn_number(&guest->txn), ret_report, ret_text, text_size);
        if (e != ERR_NOT_FOUND)
            return e;
        e = guest_renew(guest);
        if (e) {
            snprintf(ret_text, text_size, "the newest state can't be opened: %s", error_name(e));
            return e;
        }
    }
    snprintf(ret_text, text_size, "the server commits faster than one can look; try again later");
    return ERR_UNAVAILABLE;
}

void guest_close(struct guest *guest)
{
    guest_end(guest);
    environment_close(&guest->store.environment);
}

/* ---- apart ---- */

struct apart {
    enum error error;
    bool done;
    char text[512];
    _Alignas(16) char shared[];
};

_Noreturn static void child(guest_work *work, struct apart *apart, int parent)
{
    const struct rlimit none = {0, 0};
    (void)setrlimit(RLIMIT_CORE, &none);      /* its death is an answer, not a mystery */
    (void)setpriority(PRIO_PROCESS, 0, NICE); /* the server goes first */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
        _exit(1);
    apart->error = work(apart->shared, apart->text, sizeof(apart->text));
    apart->done = true;
    _exit(0);
}

static bool from_outside(int status)
{
    int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    return signal == SIGKILL || signal == SIGTERM || signal == SIGINT || signal == SIGHUP ||
           signal == SIGPIPE || signal == SIGQUIT || signal == SIGXCPU;
}

static enum error judge(const struct apart *apart, int status, const char *what, char *ret_text,
                        size_t text_size)
{
    if (apart->done) {
        if (apart->error)
            snprintf(ret_text, text_size, "%s", apart->text);
        return apart->error;
    }
    if (from_outside(status)) {
        snprintf(ret_text, text_size, "%s was ended by signal %d", what, WTERMSIG(status));
        return ERR_SYSTEM;
    }
    snprintf(ret_text, text_size, "%s died of what it read (%s %d): the data file is damaged", what,
             WIFSIGNALED(status) ? "signal" : "status",
             WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    return ERR_DAMAGED;
}

enum error guest_start(guest_work *work, const char *what, void *shared, size_t size,
                       struct guest_child *ret_child, char *ret_text, size_t text_size)
{
    size_t total = sizeof(struct apart) + size;
    int parent = getpid();
    struct apart *apart = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (apart == MAP_FAILED) {
        snprintf(ret_text, text_size, "%s: there is no memory for a child process: %s", what,
                 strerror(errno));
        return ERR_SYSTEM;
    }
    memcpy(apart->shared, shared, size);
    pid_t pid = fork();
    if (pid == 0)
        child(work, apart, parent);
    if (pid < 0) {
        snprintf(ret_text, text_size, "%s: no child process can be had: %s", what, strerror(errno));
        munmap(apart, total);
        return ERR_SYSTEM;
    }
    *ret_child =
        (struct guest_child){.pid = pid, .apart = apart, .what = what, .shared = shared, .size = size};
    return OK;
}

enum error guest_await(struct guest_child *child, char *ret_text, size_t text_size)
{
    struct apart *apart = child->apart;
    enum error e;
    int status;
    pid_t ended;
    do
        ended = waitpid(child->pid, &status, 0);
    while (ended < 0 && errno == EINTR);
    if (ended > 0) {
        e = judge(apart, status, child->what, ret_text, text_size);
        if (apart->done)
            memcpy(child->shared, apart->shared, child->size);
    } else {
        snprintf(ret_text, text_size, "%s: its end can't be seen: %s", child->what, strerror(errno));
        e = ERR_SYSTEM;
    }
    munmap(apart, sizeof(*apart) + child->size);
    return e;
}

static bool any_running(const struct guest_child *children, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        siginfo_t info = {.si_pid = 0};
        if (waitid(P_PID, (id_t)children[i].pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0)
            return true;
    }
    return false;
}

static void tell_all(const struct guest_child *children, size_t count, int signal)
{
    for (size_t i = 0; i < count; i++)
        (void)kill(children[i].pid, signal); /* nobody has waited for it: it is still the one */
}

void guest_pace(const struct guest_child *children, size_t count, guest_busy *busy, void *arg)
{
    struct env *env = env_real();
    (void)busy(arg);
    while (any_running(children, count)) {
        env_thread_sleep(env->now(env) + GUEST_TURN_NS);
        if (!busy(arg))
            continue;
        tell_all(children, count, SIGSTOP);
        env_thread_sleep(env->now(env) + GUEST_REST_NS);
        tell_all(children, count, SIGCONT);
        (void)busy(arg); /* only what happens in a turn counts: who is seldom busy is seldom disturbed */
    }
}

enum error guest_apart(guest_work *work, const char *what, void *shared, size_t size, char *ret_text,
                       size_t text_size)
{
    struct guest_child child;
    enum error e = guest_start(work, what, shared, size, &child, ret_text, text_size);
    return e ? e : guest_await(&child, ret_text, text_size);
}

void guest_last(void)
{
    const struct sched_param none = {.sched_priority = 0};
    (void)sched_setscheduler(0, SCHED_IDLE, &none); /* the disk's scheduler follows */
}
