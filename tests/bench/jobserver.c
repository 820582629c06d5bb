#define _GNU_SOURCE
#include "tests/bench/jobserver.h"
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tests/bench/bench.h"
#include "tests/bench/limits.h"

#define WORKERS   256u
#define POLL_NS   NS_PER_MS
#define READY_NS  (20 * NS_PER_S)
#define USER_KIND "x.bench"
#define DIGITS    16u
#define SUCCEEDED "coppice_job_transitions_total{event=\"job.succeeded\"}"
#define PATH_SIZE 4200u

/* ---- its process ---- */

static void program_path(char path[PATH_SIZE])
{
    snprintf(path, PATH_SIZE, "%s/coppice", bench_folder());
    if (access(path, X_OK) != 0)
        bench_fail("%s is not there: make build", path);
}

void jobserver_begin(struct jobserver *s, const char *folder, uint32_t workers)
{
    char path[PATH_SIZE], store[PATH_SIZE], client[32], operator[32], count[16];
    program_path(path);
    s->daemon = (struct daemon){.folder = folder, .port = daemon_free_port()};
    s->operator_port = daemon_free_port();
    snprintf(store, sizeof store, "%s/store", folder);
    snprintf(client, sizeof client, "127.0.0.1:%u", s->daemon.port);
    snprintf(operator, sizeof operator, "127.0.0.1:%u", s->operator_port);
    snprintf(count, sizeof count, "%u", workers);
    const char *const argv[] = {path,
                                "serve",
                                "--store-dir",
                                store,
                                "--http-listen",
                                client,
                                "--operator-listen",
                                operator,
                                "--operator-auth=false",
                                "--http-access-log=false",
                                "--log-level=warn",
                                "--limits-requests-per-minute=1000000",
                                "--limits-max-queue-size=1000000000",
                                "--limits-max-active-jobs=0",
                                "--outbound-allow-private=true",
                                "--jobs-simulation-speed=1000000",
                                "--workers-count",
                                count,
                                workers ? NULL : "--workers-outside",
                                NULL};
    daemon_begin(&s->daemon, argv, NULL, false);
}

/* Who answers before it is ready goes away when it is, with whatever was asked last: a connection for each question. */
static bool says_ready(uint16_t port)
{
    static const char question[] = "GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    static const char yes[] = "HTTP/1.1 200 ";
    char answer[sizeof yes] = "";
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool answered = fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0 &&
                    send(fd, question, sizeof question - 1, MSG_NOSIGNAL) > 0 &&
                    recv(fd, answer, sizeof yes - 1, MSG_WAITALL) == sizeof yes - 1;
    if (fd >= 0)
        close(fd);
    return answered && strcmp(answer, yes) == 0;
}

void jobserver_await(struct jobserver *s)
{
    uint64_t deadline = bench_now() + READY_NS;
    while (!says_ready(s->operator_port)) {
        if (bench_now() > deadline)
            bench_fail("it isn't ready; %s/log may say why", s->daemon.folder);
        usleep(200);
    }
    daemon_await(&s->daemon);
}

/* ---- clients ---- */

static void expect(const struct asker *a, int status, int wanted, const char *what)
{
    if (status != wanted)
        bench_fail("%s: status %d: %s", what, status, a->body);
}

static void enrol_one(struct asker *a, char id[JOBSERVER_ID_SIZE], char key[JOBSERVER_KEY_SIZE])
{
    char path[128];
    expect(a, asker_ask(a, "POST", "/v1/clients", NULL, NULL), 201, "a client");
    if (!asker_member(a, "client_id", id, JOBSERVER_ID_SIZE))
        bench_fail("a client without an id: %s", a->body);
    snprintf(path, sizeof path, "/v1/clients/%s/keys", id);
    expect(a, asker_ask(a, "POST", path, NULL, "{}"), 201, "a key");
    if (!asker_member(a, "api_key", key, JOBSERVER_KEY_SIZE))
        bench_fail("a key without a secret: %s", a->body);
}

void jobserver_enrol(struct jobserver *s)
{
    struct asker a;
    asker_open(&a, s->daemon.port);
    for (uint32_t i = 0; i < JOBSERVER_CLIENTS; i++)
        enrol_one(&a, s->ids[i], s->keys[i]);
    asker_close(&a);
}

bool jobserver_possible(void)
{
    const char *folder = limits_folder("possible");
    struct jobserver s;
    struct asker a;
    jobserver_begin(&s, folder, 0);
    jobserver_await(&s);
    jobserver_enrol(&s);
    asker_open(&a, s.daemon.port);
    bool possible = asker_ask(&a, "POST", "/v1/jobs", s.keys[0], "{\"type\":\"EXECUTE\"}") == 202;
    asker_close(&a);
    daemon_kill(&s.daemon);
    limits_remove(folder);
    return possible;
}

double jobserver_metric(const struct jobserver *s, const char *series)
{
    struct asker a;
    double sum = 0;
    size_t n = strlen(series);
    asker_open(&a, s->operator_port);
    expect(&a, asker_ask(&a, "GET", "/metrics", NULL, NULL), 200, "/metrics");
    for (const char *line = a.body; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, series, n) == 0)
            sum += strtod(line + strcspn(line, " "), NULL);
        if (!*line)
            break;
    }
    asker_close(&a);
    return sum;
}

size_t jobserver_request(const char *key, const char *method, const char *path, const char *body, char *room)
{
    int size = snprintf(room, CROWD_SAY_MAX,
                        "%s %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"
                        "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                        method, path, key, strlen(body), body);
    if (size <= 0 || (uint32_t)size >= CROWD_SAY_MAX)
        bench_fail("a request of %d bytes", size);
    return (size_t)size;
}

/* ---- submitters ---- */

static uint32_t clients_of(const struct jobserver_submits *m)
{
    return m->clients ? m->clients : JOBSERVER_CLIENTS;
}

/* Of a user's own kind with its payload; of the catalogue's, with the same payload in a member that nobody knows. */
static void make_template(struct jobserver_submits *m, uint32_t number, struct jobserver_template *t)
{
    char body[CROWD_SAY_MAX], callback[256] = "";
    bool own = strncmp(m->work_kind, "x.", 2) == 0;
    if (m->callbacks)
        snprintf(callback, sizeof callback, "\"callback\":\"%s\",", m->callback(number));
    snprintf(body, sizeof body, "{%s\"work_kind\":\"%s\",%s\"payload\":\"%.*s\"}",
             own ? "" : "\"type\":\"EXECUTE\",", m->work_kind, callback, (int)QUEUE_BODY, queue_body(0));
    t->bytes = malloc(CROWD_SAY_MAX);
    if (!t->bytes)
        bench_fail("no memory");
    t->size = jobserver_request(m->server->keys[number % clients_of(m)], "POST",
                                own ? "/v1/work:submit" : "/v1/jobs", body, t->bytes);
    t->digits = t->size - 2 - QUEUE_BODY;
}

/* A template for each client, or for each receiver when there are callbacks. */
static size_t submit_job(void *arg, uint32_t who, char *room)
{
    struct jobserver_submits *m = arg;
    if (!queue_next(&m->counts))
        return 0;
    uint32_t number = m->callbacks ? (uint32_t)(m->counts.submitted % m->callbacks) : who % clients_of(m);
    struct jobserver_template *t = &m->templates[number];
    if (!t->bytes)
        make_template(m, number, t);
    memcpy(room, t->bytes, t->size);
    memcpy(room + t->digits, queue_body(m->counts.submitted), DIGITS);
    return t->size;
}

static size_t hear_accepted(void *arg, uint32_t who, const char *bytes, size_t size, uint32_t *ret_done)
{
    static const char member[] = "\"job_id\":\"";
    struct jobserver_submits *m = arg;
    int status;
    size_t head, whole = asker_answer(bytes, size, &status, &head);
    if (!whole)
        return 0;
    const char *id = memmem(bytes + head, whole - head, member, sizeof member - 1);
    if (status != 202 || !id)
        bench_fail("a submit: %.*s", (int)whole, bytes);
    m->answered++;
    memcpy(m->last_id, id + sizeof member - 1, 36);
    m->last_key = m->server->keys[who % clients_of(m)];
    *ret_done = 1;
    return whole;
}

const struct crowd_talk jobserver_submit_talk = {"coppice", NULL, submit_job, hear_accepted};

/* ---- as a queue ---- */

struct awaiting {
    struct jobserver_submits submits;
    struct asker asker;
    uint64_t asked;
};

struct coppice {
    struct jobserver server;
    struct jobserver_submits submits;
    struct awaiting through;
    bool works; /* it has workers, and a store of its own */
    uint64_t finished;
};

static bool begin(struct queue *q, const char *folder)
{
    struct coppice *c = calloc(1, sizeof *c);
    if (!c)
        bench_fail("no memory");
    q->own = c;
    jobserver_begin(&c->server, folder, 0);
    return true;
}

static void await(struct queue *q)
{
    struct coppice *c = q->own;
    jobserver_await(&c->server);
    jobserver_enrol(&c->server);
    q->daemon = c->server.daemon;
}

static struct crowd *open_crowd(struct queue *q, uint32_t clients, bool works,
                                struct queue_counts **ret_counts)
{
    struct coppice *c = q->own;
    struct jobserver_submits *m = works ? &c->through.submits : &c->submits;
    m->server = &c->server;
    m->work_kind = works ? "SUCCESS_FAST" : USER_KIND;
    *ret_counts = &m->counts;
    return crowd_open(
        &(struct crowd_part){
            .port = q->daemon.port, .connections = clients, .talk = &jobserver_submit_talk, .arg = m},
        1);
}

static void end(struct queue *q)
{
    struct coppice *c = q->own;
    queue_close(q);
    daemon_stop(&c->server.daemon);
    free(c);
}

/* The first time: with workers, and an empty store. */
static void begin_work(struct queue *q)
{
    struct coppice *c = q->own;
    const char *folder = c->server.daemon.folder;
    char store[PATH_SIZE];
    if (c->works)
        return;
    queue_close(q);
    daemon_stop(&c->server.daemon);
    snprintf(store, sizeof store, "%s/store", folder);
    limits_remove(store);
    jobserver_begin(&c->server, folder, WORKERS);
    await(q);
    c->works = true;
}

/* Jobs are worked off in the order in which they came, so the last one to be answered says when all but a few are done. */
static bool last_is_open(void *arg)
{
    struct awaiting *w = arg;
    char path[64], state[32];
    uint64_t now = bench_now();
    if (w->submits.answered < w->submits.counts.jobs || now - w->asked < POLL_NS)
        return true;
    w->asked = now;
    snprintf(path, sizeof path, "/v1/jobs/%.36s", w->submits.last_id);
    expect(&w->asker, asker_ask(&w->asker, "GET", path, w->submits.last_key, NULL), 200, path);
    return !asker_member(&w->asker, "state", state, sizeof state) || strcmp(state, "SUCCEEDED") != 0;
}

static void await_others(struct coppice *c)
{
    uint64_t deadline = bench_now() + 10 * NS_PER_S;
    while ((uint64_t)jobserver_metric(&c->server, SUCCEEDED) != c->finished)
        if (bench_now() > deadline)
            bench_fail("jobs have been lost: %.0f succeeded instead of %llu",
                       jobserver_metric(&c->server, SUCCEEDED), (unsigned long long)c->finished);
}

static void through(struct queue *q, uint32_t clients, uint32_t jobs, struct queue_figures *ret)
{
    struct coppice *c = q->own;
    struct awaiting *w = &c->through;
    begin_work(q);
    const struct queue_crowd *crowd = queue_crowd(q, clients, true);
    asker_open(&w->asker, q->daemon.port);
    w->submits.counts.jobs += jobs;
    c->finished += jobs;
    uint64_t cpu = daemon_cpu_ns(&q->daemon), began = bench_now();
    crowd_run(crowd->crowd, 0, last_is_open, w, NULL);
    await_others(c);
    *ret = (struct queue_figures){.rate = bench_per_second(jobs, began),
                                  .cpu_us = (double)(daemon_cpu_ns(&q->daemon) - cpu) / 1e3 / jobs};
    asker_close(&w->asker);
}

const struct queue_class queue_coppice = {.name = "coppice",
                                          .begin = begin,
                                          .await = await,
                                          .submit = queue_submit,
                                          .through = through,
                                          .end = end,
                                          .open = open_crowd};

/* ---- workers outside: they claim a few jobs over HTTP, and say of each that it is done ---- */

#define OUTSIDE    128u
#define TOKEN_SIZE 32u
#define CLAIM_BODY "{\"kinds\":[\"" USER_KIND "\"],\"wait_ms\":5000}"

struct outside {
    struct coppice coppice;
    struct worker {
        bool completing;
        char id[40], token[TOKEN_SIZE]; /* of the job that it has; no id: none */
    } workers[OUTSIDE];
};

/* Each is of one of the clients: a client has a limit of requests about work. */
static size_t say_work(void *arg, uint32_t who, char *room)
{
    struct outside *o = arg;
    struct worker *w = &o->workers[who];
    const char *key = o->coppice.server.keys[who % JOBSERVER_CLIENTS];
    char body[128];
    w->completing = w->id[0];
    if (!w->completing)
        return jobserver_request(key, "POST", "/v1/work:claim", CLAIM_BODY, room);
    snprintf(body, sizeof body, "{\"job_id\":\"%s\",\"lease_token\":\"%s\"}", w->id, w->token);
    w->id[0] = 0;
    return jobserver_request(key, "POST", "/v1/work:complete", body, room);
}

/* The text of a member, if there is one. */
static bool take_text(const char *body, size_t size, const char *member, char *ret, size_t ret_size)
{
    const char *at = memmem(body, size, member, strlen(member));
    if (!at)
        return false;
    at += strlen(member);
    const char *end = memchr(at, '"', (size_t)(body + size - at));
    if (!end || (size_t)(end - at) >= ret_size)
        bench_fail("a lease that isn't one: %.*s", (int)size, body);
    memcpy(ret, at, (size_t)(end - at));
    ret[end - at] = 0;
    return true;
}

static size_t hear_work(void *arg, uint32_t who, const char *bytes, size_t size, uint32_t *ret_done)
{
    struct outside *o = arg;
    struct worker *w = &o->workers[who];
    int status;
    size_t head, whole = asker_answer(bytes, size, &status, &head);
    if (!whole)
        return 0;
    if (status != 200)
        bench_fail("a worker: %.*s", (int)whole, bytes);
    if (w->completing)
        o->coppice.through.submits.counts.finished++;
    else if (take_text(bytes + head, whole - head, "\"job_id\":\"", w->id, sizeof w->id) &&
             !take_text(bytes + head, whole - head, "\"lease_token\":\"", w->token, sizeof w->token))
        bench_fail("a job without a lease: %.*s", (int)whole, bytes);
    *ret_done = 1;
    return whole;
}

static const struct crowd_talk work_talk = {"a worker outside", NULL, say_work, hear_work};

static bool begin_outside(struct queue *q, const char *folder)
{
    struct outside *o = calloc(1, sizeof *o);
    if (!o)
        bench_fail("no memory");
    q->own = o; /* begins with a struct coppice */
    jobserver_begin(&o->coppice.server, folder, 0);
    return true;
}

static struct crowd *open_outside(struct queue *q, uint32_t clients, bool works,
                                  struct queue_counts **ret_counts)
{
    struct outside *o = q->own;
    struct jobserver_submits *m = &o->coppice.through.submits;
    const struct crowd_part parts[] = {
        {.port = q->daemon.port, .connections = clients, .talk = &jobserver_submit_talk, .arg = m},
        {.port = q->daemon.port, .connections = OUTSIDE, .talk = &work_talk, .arg = o, .patient = true}};
    m->server = &o->coppice.server;
    m->work_kind = USER_KIND;
    *ret_counts = &m->counts;
    return crowd_open(parts, works ? 2 : 1);
}

const struct queue_class queue_outside = {.name = "outside",
                                          .begin = begin_outside,
                                          .await = await,
                                          .submit = queue_submit,
                                          .through = queue_through,
                                          .end = end,
                                          .open = open_outside};
