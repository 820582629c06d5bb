/* The front: what a request costs the server, beside nginx and a bare epoll loop with llhttp (tests/bench/bare.h) in the
 * same run. Each server has one CPU, the clients (tests/bench/clients.h) have another; costs are the server's processor
 * time, by its own clock, so that they hold when the clients are the bottleneck.
 *
 * get_cpu: GET of 100 bytes of JSON from a handler, 64 connections; its peer is nginx's `return 200` of the same bytes.
 * get_pipe_cpu: the same with 16 requests at a time; its peer is the bare loop. read_cpu: GET of one record of 1 KiB out of
 * 10,000 for an API key; its peer is nginx's GET. post_cpu: POST of 1 KiB of JSON, checked against a schema, answered with
 * 100 bytes; its peer is nginx's POST to `return 200`, which reads the body and throws it away: the cheapest that it has.
 *
 * c10k: rate with 10,000 connections by rate with 64, all at full speed; that is the clients' rate as well as the server's,
 * since their sockets are as many and as cold. c10k_cpu: the same in requests by second of the server's processor time.
 * idle_bytes: resident bytes for each of 10,000 connections that have been answered once and now say nothing. p99_half: at
 * half of the rate of 64 connections, counted from when a request should have been sent.
 *
 * slowloris: the same p99, as the median of SIEGE_WINDOWS short runs, while 10,000 others send a letter of a head every five
 * seconds, by the one without them. A turn is without, with, and without them; ours and nginx's alternate, and the figure is the
 * median of SIEGE_TURNS ratios. A p99 on a machine that does something else says nothing of the server: a turn whose p99 before or
 * after the slow ones is over SIEGE_CALM_MS is thrown away and done again, up to SIEGE_TRIES in all, and slowloris_rejected says
 * how many were; with fewer than SIEGE_TURNS_LEAST good ones there is no figure, and that is said.
 *
 * h2o is beside them where it is installed: its GET is a file of the same bytes, which it keeps open.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include "tests/bench/bare.h"
#include "tests/bench/bench.h"
#include "tests/bench/clients.h"
#include "tests/bench/daemon.h"
#include "tests/bench/frontserver.h"
#include "tests/bench/limits.h"

#define CONNECTIONS 64u
#define MANY        10000u
#define DEPTH       16u
#define RUN_NS      (200 * NS_PER_MS)
#define MANY_NS \
    (700 * NS_PER_MS) /* some of it goes by until all of them are asking, and until all are answered */
#define LATENCY_NS      (500 * NS_PER_MS)
#define SIEGE_WINDOW_NS (200 * NS_PER_MS)
#define SETTLE_NS       (300 * NS_PER_MS)
#define FILES           (MANY + 1000u)
#define SIEGE_CALM_MS   2.0
#define CPU_CLIENTS     1u
#define CPU_SERVER      2u

enum { SIEGE_TURNS = 7, SIEGE_TURNS_LEAST = 3, SIEGE_TRIES = 15, SIEGE_WINDOWS = 5 };

static struct testserver front, nginx, bare, h2o; /* h2o: pid 0 where there is none */
static const char *folder;                        /* nginx's, and h2o's */

/* ---- the others ---- */

static int listen_anywhere(uint16_t *ret_port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, size) < 0 || listen(fd, 1024) < 0 ||
        getsockname(fd, (struct sockaddr *)&at, &size) < 0)
        bench_fail("listening: %s", strerror(errno));
    *ret_port = ntohs(at.sin_port);
    return fd;
}

static void pin(uint32_t cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu - 1, &set);
    if (sched_setaffinity(0, sizeof set, &set) < 0)
        bench_fail("this machine has no CPU %u: server and clients need one each", cpu);
}

/* In the parent 0. */
static int begin_child(struct testserver *server)
{
    server->pid = fork();
    if (server->pid < 0)
        bench_fail("no process");
    if (server->pid > 0)
        return 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(0);
    pin(CPU_SERVER);
    return 1;
}

static void bare_start(void)
{
    int listening = listen_anywhere(&bare.port);
    if (begin_child(&bare))
        bare_serve(listening);
    close(listening);
}

static const char *write_configuration(uint16_t port)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/nginx.conf", folder);
    FILE *f = fopen(path, "w");
    if (!f)
        bench_fail("%s: %s", path, strerror(errno));
    fprintf(f,
            "daemon off;\nmaster_process off;\nworker_processes 1;\nworker_rlimit_nofile %u;\n"
            "error_log stderr crit;\npid %s/nginx.pid;\nevents { worker_connections %u; }\n"
            "http {\naccess_log off;\nkeepalive_requests 1000000000;\nkeepalive_timeout 600s;\n"
            "default_type application/json;\ntcp_nodelay on;\nclient_body_buffer_size 16k;\n",
            FILES, folder, FILES);
    static const char *const temporary[] = {"client_body", "proxy", "fastcgi", "uwsgi", "scgi"};
    for (size_t i = 0; i < sizeof temporary / sizeof *temporary; i++)
        fprintf(f, "%s_temp_path %s/%s;\n", temporary[i], folder, temporary[i]);
    fprintf(f, "server { listen 127.0.0.1:%u backlog=1024; location / { return 200 '%s'; } }\n}\n", port,
            bare_body);
    if (fclose(f))
        bench_fail("%s can't be written", path);
    return path;
}

static void wait_until_it_listens(struct testserver *server)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(server->port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    for (int tries = 0; tries < 5000; tries++) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        bool there = connect(fd, (struct sockaddr *)&to, sizeof to) == 0;
        close(fd);
        if (there)
            return;
        if (!testserver_runs(server))
            bench_fail("a peer has ended with status %d; is it installed? `make deps` brings nginx",
                       server->exit_status);
        usleep(1000);
    }
    bench_fail("nothing listens at port %u", server->port);
}

static void nginx_start(void)
{
    close(listen_anywhere(&nginx.port));
    const char *configuration = write_configuration(nginx.port);
    if (begin_child(&nginx)) {
        setenv("PATH", "/sbin:/bin", 1); /* Debian keeps it where users don't look */
        execlp("nginx", "nginx", "-c", configuration, "-p", folder, (char *)NULL);
        _exit(127);
    }
    wait_until_it_listens(&nginx);
}

static void write_file(const char *name, const char *text)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    if (!f || fputs(text, f) < 0 || fclose(f))
        bench_fail("%s can't be written", path);
}

/* It serves "hello" of its folder. Nothing happens where it isn't installed. */
static void h2o_start(void)
{
    char program[256], configuration[4096], path[4096];
    if (!daemon_finds("h2o", program, sizeof program))
        return;
    close(listen_anywhere(&h2o.port));
    snprintf(configuration, sizeof configuration,
             "listen:\n  host: 127.0.0.1\n  port: %u\nuser: %s\nnum-threads: 1\nmax-connections: %u\n"
             "http1-request-timeout: 600\nhosts:\n  default:\n    paths:\n      /:\n        file.dir: %s\n"
             "        file.mime.setdefaulttype: application/json\n",
             h2o.port, getuid() ? "\"\"" : "root", FILES, folder);
    write_file("h2o.conf", configuration);
    write_file("hello", bare_body);
    snprintf(path, sizeof path, "%s/h2o.conf", folder);
    if (begin_child(&h2o)) {
        (void)!freopen("/dev/null", "w", stderr); /* it says that it has started */
        execl(program, program, "-c", path, (char *)NULL);
        _exit(127);
    }
    wait_until_it_listens(&h2o);
}

/* ---- what a request costs ---- */

struct cost {
    struct testserver *server;
    struct clients *clients;
};

static struct cost cost_of(struct testserver *server, const char *request, uint32_t depth)
{
    const struct clients_options o = {.port = server->port,
                                      .connections = CONNECTIONS,
                                      .depth = depth,
                                      .request = request,
                                      .request_size = strlen(request)};
    return (struct cost){server, clients_open(&o)};
}

/* us of processor time per request, at full speed. */
static double cost_once(struct cost *c)
{
    struct clients_result result;
    uint64_t before = testserver_cpu_ns(c->server);
    clients_run(c->clients, 0, RUN_NS, NULL, NULL, &result);
    return (double)(testserver_cpu_ns(c->server) - before) / 1e3 / (double)result.requests;
}

struct pair {
    struct cost ours, peer, third, fourth; /* the last two may have none */
};

static void cost_turn(void *arg, double *ret)
{
    struct pair *p = arg;
    ret[0] = cost_once(&p->ours);
    ret[1] = cost_once(&p->peer);
    ret[2] = ret[0] / ret[1];
    if (p->third.clients)
        ret[3] = cost_once(&p->third);
    if (p->fourth.clients)
        ret[4] = cost_once(&p->fourth);
}

static void measure_pair(const char *const names[5], struct pair p)
{
    const struct bench_row rows[] = {{names[0], "us", BENCH_LESS},
                                     {names[1], "us", BENCH_LESS},
                                     {names[2], "x", BENCH_LESS},
                                     {names[3], "us", BENCH_LESS},
                                     {names[4], "us", BENCH_LESS}};
    bench_repeat(rows, p.fourth.clients ? 5 : p.third.clients ? 4 : 3, cost_turn, &p);
    clients_close(p.ours.clients);
    clients_close(p.peer.clients);
    clients_close(p.third.clients);
    clients_close(p.fourth.clients);
}

static struct cost cost_of_h2o(const char *request, uint32_t depth)
{
    return h2o.pid ? cost_of(&h2o, request, depth) : (struct cost){0};
}

static void measure_costs(void)
{
    static const char *const get[] = {"get_cpu", "get_cpu.peer", "get_cpu.ratio", "get_cpu_bare.peer",
                                      "get_cpu_h2o.peer"};
    static const char *const pipe[] = {"get_pipe_cpu", "get_pipe_cpu.peer", "get_pipe_cpu.ratio",
                                       "get_pipe_cpu_nginx.peer", "get_pipe_cpu_h2o.peer"};
    static const char *const one[] = {"read_cpu", "read_cpu.peer", "read_cpu.ratio", "", ""};
    static const char *const post[] = {"post_cpu", "post_cpu.peer", "post_cpu.ratio", "post_cpu_bare.peer",
                                       ""};
    const char *hello = frontserver_get(), *read = frontserver_read(), *order = frontserver_post();
    if (bench_wanted(get[0]))
        measure_pair(get, (struct pair){cost_of(&front, hello, 1), cost_of(&nginx, hello, 1),
                                        cost_of(&bare, hello, 1), cost_of_h2o(hello, 1)});
    if (bench_wanted(pipe[0]))
        measure_pair(pipe, (struct pair){cost_of(&front, hello, DEPTH), cost_of(&bare, hello, DEPTH),
                                         cost_of(&nginx, hello, DEPTH), cost_of_h2o(hello, DEPTH)});
    if (bench_wanted(one[0]))
        measure_pair(one, (struct pair){cost_of(&front, read, 1), cost_of(&nginx, hello, 1), {0}, {0}});
    if (bench_wanted(post[0]))
        measure_pair(
            post, (struct pair){
                      cost_of(&front, order, 1), cost_of(&nginx, order, 1), cost_of(&bare, order, 1), {0}});
}

/* ---- many connections ---- */

static double rate_of(struct clients *clients, uint64_t ns)
{
    struct clients_result result;
    clients_run(clients, 0, ns, NULL, NULL, &result);
    return result.rate;
}

struct crowd {
    const struct testserver *server;
    struct clients *few, *many;
};

/* Requests by second of the server's processor time. */
static double rate_of_cpu(const struct testserver *server, struct clients *clients, uint64_t ns,
                          double *ret_rate)
{
    struct clients_result result;
    uint64_t before = testserver_cpu_ns(server);
    clients_run(clients, 0, ns, NULL, NULL, &result);
    *ret_rate = result.rate;
    return (double)result.requests * 1e9 / (double)(testserver_cpu_ns(server) - before);
}

static void crowd_turn(void *arg, double *ret)
{
    struct crowd *c = arg;
    double few, many, few_cpu = rate_of_cpu(c->server, c->few, RUN_NS, &few);
    double many_cpu = rate_of_cpu(c->server, c->many, MANY_NS, &many);
    ret[0] = many / few;
    ret[1] = many_cpu / few_cpu;
    ret[2] = few;
}

/* Opens as many as there can be; *ret_bytes: what each costs while it is idle. */
static struct crowd crowd_open(struct testserver *server, double *ret_bytes)
{
    const char *hello = frontserver_get();
    struct clients_options o = {
        .port = server->port, .connections = CONNECTIONS, .request = hello, .request_size = strlen(hello)};
    struct crowd c = {.server = server, .few = clients_open(&o)};
    struct clients_result result;
    clients_run(c.few, 0, RUN_NS, NULL, NULL, &result); /* what the server needs for work at all */
    uint64_t before = testserver_resident(server);
    o.connections = MANY;
    c.many = clients_open(&o);
    clients_run(c.many, 0, 1, NULL, NULL, &result); /* each is answered once */
    *ret_bytes = (double)((int64_t)testserver_resident(server) - (int64_t)before) / MANY;
    return c;
}

static void measure_crowd(struct testserver *server, const char *ratio, const char *cpu, const char *rate,
                          const char *bytes)
{
    double each;
    struct crowd c = crowd_open(server, &each);
    bench_report(&(struct bench_row){bytes, "bytes", BENCH_LESS}, &each, 1);
    const struct bench_row rows[] = {
        {ratio, "x", BENCH_MORE}, {cpu, "x", BENCH_MORE}, {rate, "requests/s", BENCH_MORE}};
    bench_repeat(rows, 3, crowd_turn, &c);
    clients_close(c.few);
    clients_close(c.many);
}

/* ---- latency, and slow ones beside ---- */

struct slow {
    int fds[MANY];
    uint16_t port;
    uint32_t next;
};
static struct slow slow;

static void slow_open(int *fd)
{
    static const char head[] = "GET /hello HTTP/1.1\r\nHost: localhost\r\nX-Slow: a";
    if (*fd >= 0)
        close(*fd);
    *fd = clients_connect(slow.port);
    if (fcntl(*fd, F_SETFL, O_NONBLOCK) < 0 || send(*fd, head, sizeof head - 1, MSG_NOSIGNAL) < 0)
        bench_fail("a slow one: %s", strerror(errno));
}

/* Each half millisecond the next of 10,000: a letter every five seconds. One that was cut off comes again. */
static void slow_one(void *arg)
{
    char byte;
    int *fd = &slow.fds[slow.next++ % MANY];
    (void)arg;
    if (recv(*fd, &byte, 1, MSG_DONTWAIT) >= 0 || send(*fd, "a", 1, MSG_NOSIGNAL) < 0)
        slow_open(fd);
}

struct half {
    const struct testserver *server;
    struct clients *clients;
    double rate;
    void (*beside)(void *arg);
};

static double p99_ms(struct half *h, uint64_t ns)
{
    struct clients_result result;
    clients_run(h->clients, h->rate, ns, h->beside, NULL, &result);
    return result.p99_us / 1e3;
}

static void half_turn(void *arg, double *ret)
{
    struct half *h = arg;
    *ret = p99_ms(h, LATENCY_NS);
}

/* The median of some short ones: what stops the whole machine for a moment spoils one of them. */
static double p99_of_windows(struct half *h)
{
    double values[SIEGE_WINDOWS];
    for (int i = 0; i < SIEGE_WINDOWS; i++) {
        double value = p99_ms(h, SIEGE_WINDOW_NS);
        int k = i;
        for (; k > 0 && value < values[k - 1]; k--)
            values[k] = values[k - 1];
        values[k] = value;
    }
    return values[SIEGE_WINDOWS / 2];
}

static void siege_begin(struct half *h)
{
    struct clients_result result;
    slow.port = h->server->port;
    for (uint32_t i = 0; i < MANY; i++) {
        slow.fds[i] = -1;
        slow_open(&slow.fds[i]);
        if (i % 64 == 63) /* until they have been accepted */
            clients_run(h->clients, 0, 1, NULL, NULL, &result);
    }
    h->beside = slow_one;
}

/* And until the server has seen that they went. */
static void siege_end(struct half *h)
{
    struct clients_result result;
    h->beside = NULL;
    for (uint32_t i = 0; i < MANY; i++)
        close(slow.fds[i]);
    clients_run(h->clients, h->rate, SETTLE_NS, NULL, NULL, &result);
}

struct siege {
    double without[SIEGE_TURNS], with[SIEGE_TURNS], ratio[SIEGE_TURNS];
    size_t count;
    double rejected, calmest; /* turns; ms of the best one, whether it counted or not */
};

static bool calm(struct siege *s, double without)
{
    s->calmest = s->calmest > 0 && s->calmest < without ? s->calmest : without;
    s->rejected += without > SIEGE_CALM_MS;
    return without <= SIEGE_CALM_MS;
}

/* One turn: without, with, without. Not counted when the machine wasn't calm before and after: else what disturbs it would be
 * taken for the slow ones' doing. */
static void siege_turn(struct half *h, struct siege *s)
{
    if (s->count == SIEGE_TURNS)
        return;
    double before = p99_of_windows(h);
    if (!calm(s, before))
        return;
    siege_begin(h);
    double with = p99_of_windows(h);
    siege_end(h);
    double after = p99_of_windows(h);
    if (!calm(s, after))
        return;
    s->without[s->count] = (before + after) / 2;
    s->with[s->count] = with;
    s->ratio[s->count] = with / s->without[s->count];
    s->count++;
}

static void siege_report(const char *const names[4], const struct siege *s)
{
    bench_report(&(struct bench_row){names[3], "turns", BENCH_LESS}, &s->rejected, 1);
    if (s->count < SIEGE_TURNS_LEAST) {
        fprintf(stderr,
                "%s: only %zu of %d turns had a p99 of at most %.0f ms without slow ones (the calmest %.2f "
                "ms): this "
                "machine is busy, and there is no figure\n",
                names[0], s->count, SIEGE_TRIES, SIEGE_CALM_MS, s->calmest);
        return;
    }
    bench_report(&(struct bench_row){names[0], "x", BENCH_LESS}, s->ratio, s->count);
    bench_report(&(struct bench_row){names[1], "ms", BENCH_LESS}, s->without, s->count);
    bench_report(&(struct bench_row){names[2], "ms", BENCH_LESS}, s->with, s->count);
}

static void measure_slowloris(struct half *ours, struct half *nginxs)
{
    static const char *const names[] = {"slowloris", "slowloris_before", "slowloris_p99",
                                        "slowloris_rejected"};
    static const char *const peers[] = {"slowloris.peer", "slowloris_before.peer", "slowloris_p99.peer",
                                        "slowloris_rejected.peer"};
    struct siege our = {.count = 0}, its = {.count = 0};
    for (int i = 0; i < SIEGE_TRIES && (our.count < SIEGE_TURNS || its.count < SIEGE_TURNS); i++) {
        siege_turn(ours, &our);
        siege_turn(nginxs, &its);
    }
    siege_report(names, &our);
    siege_report(peers, &its);
}

/* Half of the median of three rates. */
static struct half half_of(const struct testserver *server)
{
    const char *hello = frontserver_get();
    const struct clients_options o = {
        .port = server->port, .connections = CONNECTIONS, .request = hello, .request_size = strlen(hello)};
    struct half h = {.server = server, .clients = clients_open(&o)};
    rate_of(h.clients, RUN_NS);
    double a = rate_of(h.clients, RUN_NS), b = rate_of(h.clients, RUN_NS), c = rate_of(h.clients, RUN_NS);
    double low = a < b ? a : b, high = a < b ? b : a;
    h.rate = (c < low ? low : c > high ? high : c) / 2;
    return h;
}

static void measure_latency(void)
{
    struct half h = half_of(&front), n = half_of(&nginx);
    bench_repeat(&(struct bench_row){"p99_half", "ms", BENCH_LESS}, 1, half_turn, &h);
    bench_repeat(&(struct bench_row){"p99_half_nginx.peer", "ms", BENCH_LESS}, 1, half_turn, &n);
    bench_report(&(struct bench_row){"p99_half_rate", "requests/s", BENCH_MORE}, &h.rate, 1);
    if (bench_wanted("slowloris"))
        measure_slowloris(&h, &n);
    clients_close(h.clients);
    clients_close(n.clients);
}

int main(void)
{
    struct rlimit files = {.rlim_cur = 2 * FILES, .rlim_max = 2 * FILES};
    bench_begin("front", 75);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < 2 * FILES) {
        files.rlim_cur = 2 * FILES < files.rlim_max ? 2 * FILES : files.rlim_max;
        if (files.rlim_cur < FILES || setrlimit(RLIMIT_NOFILE, &files) < 0)
            bench_fail("%u descriptors are needed, %lu allowed", FILES, (unsigned long)files.rlim_max);
    }
    const char *store = limits_folder("front");
    folder = limits_folder("nginx");
    frontserver_start(store, CPU_SERVER, &front);
    bare_start();
    nginx_start();
    h2o_start();
    pin(CPU_CLIENTS);
    measure_costs();
    if (bench_wanted("c10k c10k_cpu idle_bytes")) {
        measure_crowd(&front, "c10k", "c10k_cpu", "c10k_64", "idle_bytes");
        measure_crowd(&nginx, "c10k.peer", "c10k_cpu.peer", "c10k_64.peer", "idle_bytes.peer");
    }
    if (bench_wanted("p99_half p99_half_nginx slowloris"))
        measure_latency();
    testserver_stop(&front);
    if (front.exit_status != 0)
        bench_fail("the server ended with %d", front.exit_status);
    kill(nginx.pid, SIGKILL);
    kill(bare.pid, SIGKILL);
    if (h2o.pid)
        kill(h2o.pid, SIGKILL);
    limits_remove(store);
    limits_remove(folder);
    return 0;
}
