#define _GNU_SOURCE
#include "tests/bench/jobserver.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tests/bench/bench.h"
#include "tests/bench/limits.h"

#define WORKERS   64u
#define POLL_NS   NS_PER_MS
#define REQUEST   4096u
#define DIGITS    16u
#define PATH_SIZE 4200u

/* ---- its process ---- */

static void program_path(char path[PATH_SIZE])
{
    snprintf(path, PATH_SIZE, "%s/coppice", bench_folder());
    if (access(path, X_OK) != 0)
        bench_fail("%s is not there: make build", path);
}

bool jobserver_possible(void)
{
    char command[PATH_SIZE + 64], path[PATH_SIZE];
    program_path(path);
    snprintf(command, sizeof command, "'%s' serve --help | grep -q -e '--workers-count'", path);
    return system(command) == 0;
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
                                "--limits-max-queue-size=100000000",
                                "--limits-max-active-jobs=100000000",
                                "--outbound-allow-private=true",
                                "--jobs-simulation-speed=1000000000",
                                "--workers-count",
                                count,
                                NULL};
    daemon_begin(&s->daemon, argv, NULL, false);
}

/* It listens when it is ready. */
void jobserver_await(struct jobserver *s)
{
    daemon_await(&s->daemon);
}

/* ---- clients ---- */

static void expect(const struct asker *a, int status, int wanted, const char *what)
{
    if (status != wanted)
        bench_fail("%s: status %d: %s", what, status, a->body);
}

static void enrol_one(struct asker *a, char key[JOBSERVER_KEY_SIZE])
{
    char id[64], path[128];
    expect(a, asker_ask(a, "POST", "/v1/clients", NULL, NULL), 201, "a client");
    if (!asker_member(a, "client_id", id, sizeof id))
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
        enrol_one(&a, s->keys[i]);
    asker_close(&a);
}

double jobserver_metric(const struct jobserver *s, const char *name)
{
    struct asker a;
    double sum = 0;
    size_t n = strlen(name);
    asker_open(&a, s->operator_port);
    expect(&a, asker_ask(&a, "GET", "/metrics", NULL, NULL), 200, "/metrics");
    for (const char *line = a.body; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, n) == 0 && (line[n] == ' ' || line[n] == '{'))
            sum += strtod(line + strcspn(line, " "), NULL);
        if (!*line)
            break;
    }
    asker_close(&a);
    return sum;
}

/* ---- submitters ---- */

/* One whole request, in which only the digits of the payload change. */
static void write_request(struct jobserver_submits *m, uint32_t client)
{
    char body[REQUEST];
    char *room = malloc(REQUEST);
    if (!room)
        bench_fail("no memory");
    int body_size =
        snprintf(body, sizeof body, "{\"type\":\"EXECUTE\",\"work_kind\":\"%s\",\"payload\":\"%.*s\"}",
                 m->work_kind, (int)QUEUE_BODY, queue_body(0));
    int size = snprintf(room, REQUEST,
                        "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"
                        "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
                        m->server->keys[client], body_size, body);
    if (size <= 0 || (uint32_t)size >= REQUEST)
        bench_fail("a request of %d bytes", size);
    m->requests[client] = room;
    m->sizes[client] = (size_t)size;
    m->digits[client] = (size_t)size - 2 - QUEUE_BODY;
}

static size_t submit_job(void *arg, uint32_t who, char *room)
{
    struct jobserver_submits *m = arg;
    uint32_t client = who % JOBSERVER_CLIENTS;
    if (!queue_next(&m->counts))
        return 0;
    if (!m->requests[client])
        write_request(m, client);
    memcpy(room, m->requests[client], m->sizes[client]);
    memcpy(room + m->digits[client], queue_body(m->counts.submitted), DIGITS);
    return m->sizes[client];
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
    m->last_key = m->server->keys[who % JOBSERVER_CLIENTS];
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
    m->work_kind = works ? "SUCCESS_FAST" : "x.bench";
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
    while ((uint64_t)jobserver_metric(&c->server, "jobs_succeeded_total") != c->finished)
        if (bench_now() > deadline)
            bench_fail("jobs have been lost: %.0f succeeded instead of %llu",
                       jobserver_metric(&c->server, "jobs_succeeded_total"), (unsigned long long)c->finished);
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
