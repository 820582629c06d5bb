#define _GNU_SOURCE
#include "tests/support/operated.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "actors/adapters.h"
#include "actors/bus.h"
#include "actors/jobs.h"
#include "http/entrance.h"
#include "http/operator_routes.h"
#include "http/probe.h"
#include "runtime/supervisor.h"
#include "runtime/telemetry.h"
#include "store/counter.h"
#include "store/outbox.h"
#include "store/store.h"
#include "tests/support/sanitized.h"
#include "tests/support/spoil.h"

int operated_status;
char operated_head[16384];
char operated_body[OPERATED_BODY_MAX];
char operated_seen[65536];

static struct testserver server;
static struct operated_options options;
static char dir[64];

/* Less than the default, because a verb waits 5 s for the end of an endless loop, and on a busy machine a second of a processor
 * may take longer. */
#define RUNAWAY_NS ((SANITIZED ? 1000 : 200) * NS_PER_MS)

_Noreturn static void die(const char *what)
{
    fprintf(stderr, "operated: %s\n", what);
    _exit(99);
}

/* Those programs are linked so that the server's own deadlines go through here (Makefile): within a second it gives up on actors that
 * don't answer, and says so, which is right, but not what is tried here when the machine has stood still for that long. */
uint64_t __real_actor_deadline_ms(uint64_t ms);
uint64_t __wrap_actor_deadline_ms(uint64_t ms);

uint64_t __wrap_actor_deadline_ms(uint64_t ms)
{
    bool answer = (ms >= 250 && ms <= 1000) ||
                  ms == 5000; /* 2000: a writer that is suspended, of which a test waits to hear */
    return __real_actor_deadline_ms(answer ? 12 * ms : ms);
}

/* ---- in the server: a tree, and routes that change it ---- */

static enum actor_step idle_handle(void *state, struct message *m)
{
    (void)state;
    (void)m;
    return ACTOR_CONTINUE;
}
static const struct actor_class idle_class = {.name = "idle", .handle = idle_handle};

/* Whoever starts the second time sees the visitor off first: by the name it stands under, in peace or not. */
static enum actor_step late_init(void *state, const void *late_args, size_t args_size)
{
    actor_pid leaves = actor_whereis("leaves"), fails = actor_whereis("fails");
    (void)state;
    (void)late_args;
    (void)args_size;
    if (leaves)
        actor_stop(leaves, reason_of(REASON_NORMAL), NULL, actor_deadline_ms(5000));
    if (fails)
        actor_stop(fails, reason_error(7), NULL, actor_deadline_ms(5000));
    return ACTOR_CONTINUE;
}
static const struct actor_class late_class = {.name = "late", .init = late_init, .handle = idle_handle};

static const struct adapters_args adapters_none = {.descriptors = 1};
static unsigned char args[5][SUPERVISOR_ARGS_MAX];

static struct child_spec idle(const char *name)
{
    return (struct child_spec){.id = name, .name = name, .class = &idle_class};
}

static struct child_spec supervisor(const struct supervisor_spec *spec, unsigned char *storage)
{
    return (struct child_spec){.id = spec->name,
                               .class = &supervisor_class,
                               .type = CHILD_SUPERVISOR,
                               .args = storage,
                               .args_size = supervisor_args(spec, storage)};
}

/* So many more below "dyn": a busy server's. */
static void serve_crowd(const struct request *q, struct response *r)
{
    struct child_result result;
    actor_pid dyn = actor_whereis("dyn");
    for (int i = atoi(q->params[0].bytes); i > 0; i--)
        ASSERT(supervisor_start_child(dyn, &(struct child_spec){.class = &idle_class}, &result,
                                      actor_deadline_ms(5000)) == OK);
    response_begin(r, 204, NULL);
}

static void grow_dyn(void)
{
    static const char *const names[] = {"d1", "d2"};
    for (size_t i = 0; i < 2; i++) {
        struct child_spec child = idle(names[i]);
        struct child_result result;
        ASSERT(supervisor_start_child(actor_whereis("dyn"), &child, &result, actor_deadline_ms(5000)) == OK);
    }
}

static void serve_grow(const struct request *q, struct response *r)
{
    static struct child_spec all[3], rest[3], tight[1], top[9];
    static const char *const names[] = {"a1", "a2", "a3", "r1", "r2", "r3"};
    struct child_result result;
    (void)q;
    for (size_t i = 0; i < 3; i++) {
        all[i] = idle(names[i]);
        rest[i] = idle(names[3 + i]);
    }
    tight[0] = idle("t1");
#define SUPERVISOR(name_, strategy_, intensity_, children_) \
    &(struct supervisor_spec){.name = name_,                \
                              .register_name = true,        \
                              .strategy = strategy_,        \
                              .intensity = intensity_,      \
                              .period_ms = 10000,           \
                              .children = children_,        \
                              .children_count = sizeof(children_) / sizeof(*children_)}
    top[0] = (struct child_spec){.id = ADAPTERS_NAME,
                                 .name = ADAPTERS_NAME,
                                 .class = &adapters_class,
                                 .args = &adapters_none,
                                 .args_size = sizeof(adapters_none)};
    top[1] = (struct child_spec){.id = BUS_NAME, .name = BUS_NAME, .class = &bus_class};
    top[2] = idle("one");
    top[3] = idle("two");
    top[4] = supervisor(SUPERVISOR("all", ONE_FOR_ALL, 3, all), args[0]);
    top[5] = supervisor(SUPERVISOR("rest", REST_FOR_ONE, 3, rest), args[1]);
    top[6] = supervisor(SUPERVISOR("tight", ONE_FOR_ONE, 0, tight), args[2]);
    top[7] = supervisor(
        &(struct supervisor_spec){
            .name = "dyn", .register_name = true, .strategy = DYNAMIC, .intensity = 3, .period_ms = 10000},
        args[3]);
    top[8] = (struct child_spec){.id = "late", .name = "late", .class = &late_class};
    struct supervisor_spec spec = {.name = "top",
                                   .register_name = true,
                                   .intensity = 20,
                                   .period_ms = 60000,
                                   .children = top,
                                   .children_count = sizeof(top) / sizeof(*top)};
    struct child_spec child = supervisor(&spec, args[4]);
    ASSERT(supervisor_start_child(actor_whereis("front.connections"), &child, &result,
                                  actor_deadline_ms(5000)) == OK);
    grow_dyn();
    response_begin(r, 204, NULL);
}

/* A client sees the end of its connection before the connection's actor has ended: until those that went before have,
 * they would be counted with whoever ends next. */
static void await_alone(void)
{
    struct child_counts counts;
    do
        ASSERT(supervisor_count_children(actor_whereis("front.connections"), &counts,
                                         actor_deadline_ms(5000)) == OK);
    while (counts.workers > 1 && actor_sleep(actor_deadline_ms(1)) == OK);
}

/* This connection is called so from now on, and is the only one. */
static void serve_visit(const struct request *q, struct response *r)
{
    char name[64];
    await_alone();
    snprintf(name, sizeof(name), "%.*s", (int)q->params[0].size, (const char *)q->params[0].bytes);
    ASSERT(actor_register(name, actor_self(), NULL) == OK);
    response_begin(r, 204, NULL);
}

static void serve_stop(const struct request *q, struct response *r)
{
    char name[64];
    snprintf(name, sizeof(name), "%.*s", (int)q->params[0].size, (const char *)q->params[0].bytes);
    ASSERT(supervisor_terminate_child(actor_whereis("top"), name, actor_deadline_ms(5000)) == OK);
    response_begin(r, 204, NULL);
}

static void serve_again(const struct request *q, struct response *r)
{
    char name[64];
    struct child_result result;
    snprintf(name, sizeof(name), "%.*s", (int)q->params[0].size, (const char *)q->params[0].bytes);
    ASSERT(supervisor_restart_child(actor_whereis("top"), name, &result, actor_deadline_ms(5000)) == OK);
    response_begin(r, 204, NULL);
}

/* What a supervisor says when it gives up; nobody does. */
static void serve_exhaust(const struct request *q, struct response *r)
{
    bool root = span_equal(q->params[0], span_text("root"));
    TELEMETRY(FAILURE_RESTART_EXHAUSTED, 1, DIM(COMPONENT, "supervisor"), DIM(FAILURE_CLASS, "fatal"),
              DIM_INT(RESTART_COUNT, 4), DIM_INT(WINDOW_S, 10), DIM(DOMAIN, root ? "root" : "front"));
    response_begin(r, 204, NULL);
}

/* So many messages to somebody, an event for each. */
static void serve_mail(const struct request *q, struct response *r)
{
    char name[64];
    int count = atoi(q->params[1].bytes);
    snprintf(name, sizeof(name), "%.*s", (int)q->params[0].size, (const char *)q->params[0].bytes);
    for (int i = 0; i < count; i++) {
        actor_cast(actor_whereis(name), 1, "", 0);
        TELEMETRY(ACTOR_START, 1, DIM(CLASS, name), DIM_INT(ATTEMPT, i));
    }
    response_begin(r, 204, NULL);
}

/* From now on no connection holds more than some bytes of an answer: they have what the listeners have. */
static void serve_narrow(const struct request *q, struct response *r)
{
    int size = 4096;
    (void)q;
    for (int fd = 3; fd < 64; fd++)
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    response_begin(r, 204, NULL);
}

static void serve_drain(const struct request *q, struct response *r)
{
    atomic_store(&front_find(q->front->name)->draining, true);
    response_begin(r, 204, NULL);
}

/* Its last partition has as many rows as it should have, by what is counted. */
static enum error fill_outbox(struct txn *txn)
{
    struct key label = {.size = 0};
    key_add_u16(&label, OUTBOX_PARTITIONS - 1);
    counter_add(txn, COUNTER_OUTBOX, key_span(&label), OUTBOX_SOFT);
    return OK;
}

/* As the store is after a commit that failed, with a full disk, without its file, or as usual; with a ledger for no key at all, room
 * for eight entries of the audit log, or an outbox that nobody empties. */
static void serve_store(const struct request *q, struct response *r)
{
    static const enum store_state states[] = {STORE_OPEN, STORE_TIGHT, STORE_LOST, STORE_FAILED};
    for (size_t i = 0; i < sizeof(states) / sizeof(*states); i++)
        if (span_equal(q->params[0], span_text(store_state_name(states[i]))))
            atomic_store(&store_here()->state, states[i]);
    if (span_equal(q->params[0], span_text("full")))
        store_here()->ledger_max = 0;
    if (span_equal(q->params[0], span_text("audited")))
        store_here()->audits_max = 8;
    if (span_equal(q->params[0], span_text("outbox")))
        ASSERT(spoil(fill_outbox) == OK);
    response_begin(r, 204, NULL);
}

static const struct living_row rows_all[] = {
    {.name = "front.connections",
     .owner = "tests",
     .supervises = true,
     .declared = "{\"name\":\"front.connections\"}"},
    {.name = "top", .owner = "tests", .supervises = true, .declared = "{\"name\":\"top\"}"},
    {.name = "all", .owner = "tests", .supervises = true, .declared = "{\"name\":\"all\"}"},
    {.name = "rest", .owner = "tests", .declared = "{\"name\":\"rest\"}"}, /* as a worker, which it isn't */
    {.name = "bus", .owner = "tests", .declared = "{\"name\":\"bus\"}"},
    {.name = "one", .owner = "tests", .declared = "{\"name\":\"one\"}"},
    {.name = "two", .owner = "tests", .declared = "{\"name\":\"two\"}", .needed = "the tests need it"},
};

static void declare(struct json *json, const void *declared)
{
    json_raw(json, declared, strlen(declared));
}

static const struct living_rows rows = {
    .contract = "C-1", .rows = rows_all, .count = sizeof(rows_all) / sizeof(*rows_all), .declare = declare};

static struct store *prepare(struct routes *routes)
{
    (void)routes;
    struct front *front = front_find("client");
    struct jobs_settings jobs = jobs_defaults;
    char text[256] = "";
    struct store *store;
    jobs.workers = 0;
    jobs.outside = !options.workers_missed;
    jobs_configure(&jobs);
    front->rows = &rows;
    front->name = options.front ? options.front : "operator";
    if (options.no_store)
        return NULL;
    if (store_open(&(struct store_options){.environment = {.dir = dir, .map = 64 << 20, .step = 1 << 20},
                                           .schema = spoil_schema()},
                   &store, text, sizeof(text)) != OK)
        die(text);
    return store;
}

/* ---- in the test ---- */

static const struct route own[] = {
#define OWN(path_, serve_)                                                                       \
    {                                                                                            \
        .method = METHOD_POST, .path = path_, .surface = SURFACE_OPERATOR, .undocumented = true, \
        .serve = serve_                                                                          \
    }
    OWN("/test/grow", serve_grow),           OWN("/test/stop/{name}", serve_stop),
    OWN("/test/again/{name}", serve_again),  OWN("/test/mail/{name}/{count}", serve_mail),
    OWN("/test/visit/{name}", serve_visit),  OWN("/test/drain", serve_drain),
    OWN("/test/store/{state}", serve_store), OWN("/test/exhaust/{name}", serve_exhaust),
    OWN("/test/narrow", serve_narrow),       OWN("/test/crowd/{count}", serve_crowd),
};

void operated_start(const struct operated_options *o)
{
    static struct route routes[64];
    size_t count = 0;
    options = o ? *o : (struct operated_options){0};
    memcpy(routes, operator_routes, operator_routes_count * sizeof(*routes));
    count += operator_routes_count;
    memcpy(routes + count, probe_routes, probe_routes_count * sizeof(*routes));
    count += probe_routes_count;
    memcpy(routes + count, entrance_routes, entrance_routes_count * sizeof(*routes));
    count += entrance_routes_count;
    memcpy(routes + count, own, sizeof(own));
    count += sizeof(own) / sizeof(*own);
    snprintf(dir, sizeof(dir), "%s/coppice-operated-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (!mkdtemp(dir))
        die("no directory");
    testserver_start(&(struct testserver_options){.routes = routes,
                                                  .routes_count = count,
                                                  .prepare = prepare,
                                                  .schedulers = 2,
                                                  .runaway_ns = RUNAWAY_NS,
                                                  .limits.streams_max = options.streams_max},
                     &server);
}

void operated_stop(void)
{
    static const char *const files[] = {"data.mdb", "lock.mdb", "coppice.lock"};
    char path[128];
    testserver_stop(&server);
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, files[i]);
        unlink(path);
    }
    rmdir(dir);
    if (server.exit_status != 0)
        die("the server ended badly");
}

/* What the server doesn't take is missed where its answer is read: it may have ended the connection. */
static void send_all(int fd, const char *bytes, size_t size)
{
    while (size) {
        ssize_t n = send(fd, bytes, size, MSG_NOSIGNAL);
        if (n <= 0)
            return;
        bytes += n;
        size -= (size_t)n;
    }
}

static void send_request(int fd, const char *method, const char *path, const char *header, const char *body)
{
    char text[8192];
    int n = snprintf(text, sizeof(text), "%s %s HTTP/1.1\r\nHost: localhost\r\n%s", method, path, header);
    if (body)
        n += snprintf(text + n, sizeof(text) - (size_t)n,
                      "Content-Type: application/json\r\nContent-Length: %zu\r\n", strlen(body));
    n += snprintf(text + n, sizeof(text) - (size_t)n, "\r\n%s", body ? body : "");
    send_all(fd, text, (size_t)n);
}

/* Chunks become what they hold. */
static size_t unchunk(char *bytes, size_t size)
{
    size_t to = 0;
    for (char *at = bytes; at < bytes + size;) {
        char *end;
        size_t length = strtoul(at, &end, 16);
        if (length == 0 || end + 2 + length > bytes + size)
            break;
        memmove(bytes + to, end + 2, length);
        to += length;
        at = end + 2 + length + 2;
    }
    return to;
}

/* Up to the end of the connection. 0: that came without an answer. */
static int hear(int fd)
{
    static char all[OPERATED_BODY_MAX];
    size_t size = 0;
    for (ssize_t n; (n = recv(fd, all + size, sizeof(all) - 1 - size, 0)) > 0;)
        size += (size_t)n;
    close(fd);
    all[size] = 0;
    char *end = memmem(all, size, "\r\n\r\n", 4);
    if (!end || (size_t)(end - all) >= sizeof(operated_head))
        return operated_status = 0;
    memcpy(operated_head, all, (size_t)(end - all));
    operated_head[end - all] = 0;
    size -= (size_t)(end + 4 - all);
    memcpy(operated_body, end + 4, size);
    if (strcasestr(operated_head, "Transfer-Encoding: chunked"))
        size = unchunk(operated_body, size);
    operated_body[size] = 0;
    operated_status = atoi(operated_head + 9);
    return operated_status;
}

static int ask(const char *method, const char *path, const char *header, const char *body)
{
    char more[1024];
    int fd = testserver_connect(&server);
    snprintf(more, sizeof(more), "Connection: close\r\n%s", header);
    send_request(fd, method, path, more, body);
    return hear(fd);
}

int operated_ask(const char *method, const char *path, const char *header, const char *body)
{
    int status = ask(method, path, header, body);
    if (status == 0) {
        setenv("COPPICE_TEST_LOG", "1", 1);
        testserver_stop(&server);
        die("that is no answer");
    }
    return status;
}

int operated_try(const char *path)
{
    return ask("GET", path, "", NULL);
}

int operated_get(const char *path)
{
    return operated_ask("GET", path, "", NULL);
}

int operated_post(const char *path, const char *body)
{
    return operated_ask("POST", path, "", body);
}

int operated_begin(const char *path)
{
    char one;
    int size = 4096; /* this side's is as narrow: else it grows with the time that the answer takes */
    if (operated_post("/test/narrow", NULL) != 204)
        die("the sockets stay wide");
    int fd = testserver_connect(&server);
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)))
        die("a socket stays wide");
    send_request(fd, "GET", path, "Connection: close\r\n", NULL);
    if (recv(fd, &one, 1, MSG_PEEK) != 1)
        die("nothing comes");
    return fd;
}

int operated_end(int fd)
{
    return hear(fd);
}

void operated_grow(void)
{
    if (operated_post("/test/grow", NULL) != 204)
        die("the tree doesn't grow");
}

bool operated_has(const char *needle)
{
    if (strstr(operated_body, needle))
        return true;
    fprintf(stderr, "no '%s' in %d: %.3000s\n", needle, operated_status, operated_body);
    return false;
}

const char *operated_member(const char *name)
{
    static char value[256];
    char key[80];
    snprintf(key, sizeof(key), "\"%s\":", name);
    const char *at = strstr(operated_body, key);
    at = at ? at + strlen(key) : "";
    at += *at == '"';
    snprintf(value, sizeof(value), "%.*s", (int)strcspn(at, "\",}]"), at);
    return value;
}

static int open_with(const char *method, const char *path, const char *header)
{
    int fd = testserver_connect(&server);
    operated_seen[0] = 0;
    send_request(fd, method, path, header, NULL);
    return fd;
}

int operated_open(const char *path, const char *header)
{
    return open_with("GET", path, header);
}

int operated_visit(const char *name)
{
    char path[80];
    snprintf(path, sizeof(path), "/test/visit/%s", name);
    int fd = open_with("POST", path, "");
    if (!operated_await(fd, "204 No Content"))
        die("nobody visits");
    return fd;
}

bool operated_await(int fd, const char *text)
{
    size_t size = strlen(operated_seen);
    while (!strstr(operated_seen, text)) {
        ssize_t n = recv(fd, operated_seen + size, sizeof(operated_seen) - 1 - size, 0);
        if (n <= 0)
            return false;
        size += (size_t)n;
        operated_seen[size] = 0;
    }
    return true;
}
