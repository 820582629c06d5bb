#define _GNU_SOURCE
#include "tests/support/testserver.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "http/api_key_auth.h"
#include "http/body.h"
#include "http/listener.h"
#include "runtime/runtime.h"
#include "runtime/supervisor.h"
#include "store/keeper.h"
#include "store/writer.h"

#define CONNECTIONS "front.connections"
#define LEAP_SIGNAL SIGUSR1
#define DRAIN_MS    10000 /* what a connection has for its last answer when the server stops */

__attribute__((format(printf, 1, 2))) _Noreturn static void die(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    fprintf(stderr, "testserver: ");
    vfprintf(stderr, format, list);
    fprintf(stderr, "\n");
    va_end(list);
    _exit(99);
}

/* ---- in the child ---- */

static struct runtime *running;
static int log_fd;

static void on_term(int signal)
{
    (void)signal;
    runtime_stop(running);
}

static void log_line(const char *line, size_t size)
{
    struct {
        char text[4096];
    } copy;
    if (size > sizeof copy.text - 1)
        size = sizeof copy.text - 1;
    memcpy(copy.text, line, size);
    copy.text[size] = '\n';
    (void)!write(log_fd, copy.text, size + 1);
}

/* ---- its clock: the machine's, and ahead of it by what the test has said ---- */

struct testserver_clock { /* shared with the test */
    _Atomic uint64_t ahead;
};

static struct testserver_clock *ahead_clock;
static struct env ahead_env;
static struct poller *_Atomic pollers[TESTSERVER_SCHEDULERS_MAX + 2];

static uint64_t ahead(void)
{
    return atomic_load(&ahead_clock->ahead);
}

static uint64_t ahead_now(struct env *env)
{
    (void)env;
    return env_real()->now(env_real()) + ahead();
}

static struct poller *ahead_poller_open(struct env *env)
{
    (void)env;
    struct poller *p = env_real()->poller_open(env_real());
    size_t i = 0;
    for (struct poller *none = NULL; p && !atomic_compare_exchange_strong(&pollers[i], &none, p); none = NULL)
        if (++i == sizeof pollers / sizeof *pollers)
            die("more schedulers than places for their pollers");
    return p;
}

static void ahead_poller_close(struct poller *p)
{
    for (size_t i = 0; i < sizeof pollers / sizeof *pollers; i++) {
        struct poller *this = p;
        atomic_compare_exchange_strong(&pollers[i], &this, NULL);
    }
    env_real()->poller_close(p);
}

/* A leap in between wakes it. */
static size_t ahead_poller_wait(struct poller *p, struct env_event *events, size_t count, uint64_t deadline)
{
    uint64_t leapt = ahead();
    if (deadline != DEADLINE_NONE)
        deadline = deadline > leapt ? deadline - leapt : 0;
    return env_real()->poller_wait(p, events, count, deadline);
}

static void on_leap(int signal)
{
    (void)signal;
    for (size_t i = 0; i < sizeof pollers / sizeof *pollers; i++) {
        struct poller *p = atomic_load(&pollers[i]);
        if (p)
            env_real()->poller_wake(p);
    }
}

static struct env *make_env(void)
{
    ahead_env = *env_real();
    ahead_env.name = "ahead";
    ahead_env.now = ahead_env.elapsed = ahead_now;
    ahead_env.poller_open = ahead_poller_open;
    ahead_env.poller_close = ahead_poller_close;
    ahead_env.poller_wait = ahead_poller_wait;
    return &ahead_env;
}

static struct front front;
static struct front_limits limits;

static void set_limits(const struct front_limits *given)
{
#define OR_ELSE(name, value) limits.name = given->name ? given->name : (value)
    OR_ELSE(handshake_ns, TESTSERVER_LONG);
    OR_ELSE(head_ns, TESTSERVER_LONG);
    OR_ELSE(idle_ns, TESTSERVER_LONG);
    OR_ELSE(write_ns, TESTSERVER_LONG);
    OR_ELSE(request_ns, TESTSERVER_LONG);
    OR_ELSE(body_grace_ns, TESTSERVER_LONG);
    OR_ELSE(body_rate, 512);
    OR_ELSE(streams_max, 256);
#undef OR_ELSE
    limits.requests_max = given->requests_max;
    limits.peer_max = given->peer_max;
}

static struct store *make_front(const struct testserver_options *o)
{
    char text[512];
    set_limits(&o->limits);
    front.name = "client";
    front.version = "test";
    front.environment = "dev";
    front.routes = routes_create(&o->routes, &o->routes_count, 1, text, sizeof text);
    if (!front.routes)
        die("routes: %s", text);
    front.limiter = limiter_create(&(struct limiter_options){0});
    front.per_address = LIMIT_ADDRESS;
    front.refusals = LIMIT_FAILURES;
    atomic_store(&front.limits, &limits);
    if (!front.limiter || !bodies_open() || !api_keys_start())
        die("no memory");
    front_install(&front);
    return o->prepare ? o->prepare(front.routes) : NULL;
}

struct tree {
    struct supervisor_spec root, connections;
    struct child_spec children[3 + TESTSERVER_SCHEDULERS_MAX];
    struct listener_args listeners[TESTSERVER_SCHEDULERS_MAX];
    char ids[TESTSERVER_SCHEDULERS_MAX][24];
    unsigned char connections_args[SUPERVISOR_ARGS_MAX], root_args[SUPERVISOR_ARGS_MAX];
};

static void add_store(struct tree *t)
{
    t->children[t->root.children_count++] = (struct child_spec){
        .id = WRITER_NAME, .name = WRITER_NAME, .class = &writer_class, .scheduler = SPAWN_DEDICATED(0)};
    t->children[t->root.children_count++] =
        (struct child_spec){.id = KEEPER_NAME, .name = KEEPER_NAME, .class = &keeper_class};
}

static void add_listener(struct tree *t, uint32_t scheduler, int listening, bool tls)
{
    t->listeners[scheduler] = (struct listener_args){.listening = listening,
                                                     .tls = tls,
                                                     .front = &front,
                                                     .drain_ms = DRAIN_MS,
                                                     .connections = CONNECTIONS};
    snprintf(t->ids[scheduler], sizeof t->ids[0], "listener.%u", scheduler);
    t->children[t->root.children_count++] = (struct child_spec){.id = t->ids[scheduler],
                                                                .class = &listener_class,
                                                                .args = &t->listeners[scheduler],
                                                                .args_size = sizeof t->listeners[0],
                                                                .scheduler = SPAWN_ON(scheduler)};
}

static size_t make_tree(struct tree *t, const struct testserver_options *o, bool with_store,
                        const int *listening, uint32_t schedulers)
{
    t->root = (struct supervisor_spec){.name = "root",
                                       .strategy = ONE_FOR_ONE,
                                       .intensity = 100,
                                       .period_ms = 10000,
                                       .children = t->children,
                                       .root = true};
    t->connections = (struct supervisor_spec){
        .name = CONNECTIONS, .register_name = true, .strategy = DYNAMIC, .max_children = o->connections};
    if (with_store)
        add_store(t);
    t->children[t->root.children_count++] =
        (struct child_spec){.id = CONNECTIONS,
                            .class = &supervisor_class,
                            .type = CHILD_SUPERVISOR,
                            .args = t->connections_args,
                            .args_size = supervisor_args(&t->connections, t->connections_args)};
    for (uint32_t i = 0; i < schedulers; i++)
        add_listener(t, i, listening[i], o->tls);
    return supervisor_args(&t->root, t->root_args);
}

static void pin(uint32_t cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu - 1, &set);
    if (cpu && sched_setaffinity(0, sizeof set, &set) < 0)
        die("no such CPU: %u", cpu);
}

static int serve(const struct testserver_options *o, const int *listening, uint32_t schedulers)
{
    static struct tree tree;
    char text[512];
    struct rlimit files = {.rlim_cur = o->descriptors, .rlim_max = o->descriptors};
    if (o->cpu)
        pin(o->cpu);
    if (o->descriptors && setrlimit(RLIMIT_NOFILE, &files) < 0)
        die("RLIMIT_NOFILE: %s", strerror(errno));
    struct store *store = make_front(o);
    if (store)
        store_install(store);
    running = runtime_create(&(struct runtime_options){.schedulers = schedulers,
                                                       .dedicated = store ? 1 : 0,
                                                       .env = make_env(),
                                                       .runaway_ns = o->runaway_ns,
                                                       .log = log_line},
                             text, sizeof text);
    if (!running)
        die("%s", text);
    signal(SIGTERM, on_term);
    signal(SIGPIPE, SIG_IGN);
    size_t args_size = make_tree(&tree, o, store != NULL, listening, schedulers);
    if (runtime_spawn(running,
                      &(struct spawn_options){
                          .class = &supervisor_class, .args = tree.root_args, .args_size = args_size},
                      &(actor_pid){0}))
        die("no root");
    int status = runtime_run(running);
    signal(SIGTERM, SIG_IGN); /* a second one, or a leap: there is nobody left whom they could be for */
    signal(LEAP_SIGNAL, SIG_IGN);
    runtime_destroy(running);
    api_keys_stop();
    if (store)
        store_close(store);
    return status;
}

/* ---- in the parent ---- */

static int listen_at(uint16_t *port)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(*port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof at;
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) < 0 ||
        bind(fd, (struct sockaddr *)&at, size) < 0 || listen(fd, 1024) < 0 ||
        getsockname(fd, (struct sockaddr *)&at, &size) < 0)
        die("listening: %s", strerror(errno));
    *port = ntohs(at.sin_port);
    return fd;
}

void testserver_start(const struct testserver_options *o, struct testserver *ret)
{
    int listening[TESTSERVER_SCHEDULERS_MAX];
    uint32_t schedulers = o->schedulers ? o->schedulers : 1;
    ASSERT(schedulers <= TESTSERVER_SCHEDULERS_MAX);
    *ret = (struct testserver){.log = memfd_create("log", MFD_CLOEXEC)};
    ret->clock = mmap(NULL, sizeof *ret->clock, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (ret->clock == MAP_FAILED)
        die("no memory");
    signal(LEAP_SIGNAL, on_leap); /* inherited: one that comes before the child has run is no end of it */
    for (uint32_t i = 0; i < schedulers; i++)
        listening[i] = listen_at(&ret->port);
    fflush(NULL);
    ret->pid = fork();
    if (ret->log < 0 || ret->pid < 0)
        die("no process: %s", strerror(errno));
    if (ret->pid == 0) {
        log_fd = ret->log;
        ahead_clock = ret->clock;
        alarm(0);
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* it doesn't outlive a test that fails */
        int status = serve(o, listening, schedulers);
        _exit(status);
    }
    for (uint32_t i = 0; i < schedulers; i++)
        close(listening[i]);
}

void testserver_advance(struct testserver *server, uint64_t ns)
{
    atomic_fetch_add(&server->clock->ahead, ns);
    if (server->pid)
        kill(server->pid, LEAP_SIGNAL);
}

int testserver_poll(struct pollfd *fds, nfds_t count, int ms)
{
    int n;
    do
        n = poll(fds, count, ms);
    while (n < 0 && errno == EINTR);
    return n;
}

void testserver_outwait(struct testserver *server, int fd)
{
    enum { STEP_MS = 5 };
    struct pollfd p = {.fd = fd, .events = POLLIN};
    for (int ms = 0; ms < TESTSERVER_STUCK_MS && testserver_poll(&p, 1, STEP_MS) == 0; ms += STEP_MS)
        testserver_advance(server, TESTSERVER_LONG / 8);
}

static void note_exit(struct testserver *server, int status)
{
    server->exit_status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    server->pid = 0;
}

/* For whoever looks for a fault: its log, to standard error. */
static void show(const struct testserver *server)
{
    char text[4096];
    ssize_t n;
    for (off_t at = 0; (n = pread(server->log, text, sizeof text, at)) > 0; at += n)
        (void)!write(STDERR_FILENO, text, (size_t)n);
}

void testserver_stop(struct testserver *server)
{
    int status;
    if (!server->pid)
        return;
    kill(server->pid, SIGTERM);
    while (waitpid(server->pid, &status, 0) < 0)
        if (errno != EINTR)
            die("waitpid: %s", strerror(errno));
    note_exit(server, status);
    if (getenv("COPPICE_TEST_LOG"))
        show(server);
}

bool testserver_runs(struct testserver *server)
{
    int status;
    if (server->pid && waitpid(server->pid, &status, WNOHANG) == server->pid)
        note_exit(server, status);
    return server->pid != 0;
}

size_t testserver_logged(const struct testserver *server, const char *text)
{
    struct stat stat;
    size_t count = 0, length = strlen(text), size = fstat(server->log, &stat) == 0 ? (size_t)stat.st_size : 0;
    char *all = size > 0 ? mmap(NULL, size, PROT_READ, MAP_SHARED, server->log, 0) : MAP_FAILED;
    if (all == MAP_FAILED)
        return 0;
    for (char *at = all; (at = memmem(at, (size_t)(all + size - at), text, length)); at += length)
        count++;
    munmap(all, size);
    return count;
}

uint64_t testserver_cpu_ns(const struct testserver *server)
{
    clockid_t clock;
    struct timespec t;
    if (clock_getcpuclockid(server->pid, &clock) || clock_gettime(clock, &t) < 0)
        die("no clock of process %d", server->pid);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

uint64_t testserver_resident(const struct testserver *server)
{
    char path[64], text[128] = "";
    snprintf(path, sizeof path, "/proc/%d/statm", server->pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    char *second = n > 0 ? strchr(text, ' ') : NULL;
    if (!second)
        die("%s can't be read", path);
    return strtoull(second, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}

int testserver_connect(const struct testserver *server)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(server->port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) < 0)
        die("connecting: %s", strerror(errno));
    return fd;
}
