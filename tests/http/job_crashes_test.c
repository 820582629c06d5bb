/* A handler of jobs or webhooks that crashes: its client is answered 500 in the contract's words, and what it was about is done
 * wholly or not at all. The product's own routes, with a trap before or behind each handler; a process of its own. */
#define _GNU_SOURCE
#include "acutest.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "actors/jobs.h"
#include "actors/webhooks.h"
#include "http/clients.h"
#include "http/job_request.h"
#include "http/jobs.h"
#include "http/webhooks.h"
#include "store/check.h"
#include "store/keeper.h"
#include "store/writer.h"
#include "tests/support/talk.h"

/* ---- in the server ---- */

#define TRAPPED_MAX 64u
static struct route routes[TRAPPED_MAX];
static void (*handlers[TRAPPED_MAX])(const struct request *q, struct response *r);
static size_t trapped_count;
static char dir[] = "/tmp/coppice-crashes-XXXXXX";

static void trap_if(const struct request *q, const char *when)
{
    struct span asked = request_field(q, "X-Crash");
    if (asked.bytes && span_equal(asked, span_text(when)))
        __builtin_trap();
}

static void serve_trapped(const struct request *q, struct response *r)
{
    size_t i = 0;
    while (i < trapped_count &&
           (routes[i].method != q->route->method || strcmp(routes[i].path, q->route->path) != 0))
        i++;
    trap_if(q, "before");
    handlers[i](q, r);
    trap_if(q, "behind");
}

static void take_routes(const struct route *from, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        TEST_ASSERT(trapped_count < TRAPPED_MAX);
        handlers[trapped_count] = from[i].serve;
        routes[trapped_count] = from[i];
        routes[trapped_count].token_twin = NULL;
        routes[trapped_count++].serve = serve_trapped;
    }
}

static struct store *prepare(struct routes *compiled)
{
    char text[256];
    struct store *store = NULL;
    (void)compiled;
    jobs_configure(&jobs_defaults);
    webhooks_configure(&webhooks_defaults);
    if (store_open(&(struct store_options){.environment = {.dir = dir, .map = 64 << 20, .step = 1 << 20}},
                   &store, text, sizeof(text)) != OK)
        abort();
    return store;
}

/* ---- asking ---- */

static struct testserver server;
static char key[128], job[40], webhook[40];

static struct heard ask(const char *method, const char *path, const char *crash, const char *body)
{
    static char text[2048];
    int head =
        snprintf(text, sizeof(text), "%s %s HTTP/1.1\r\nHost: a\r\nConnection: close\r\n", method, path);
    if (key[0])
        head += snprintf(text + head, sizeof(text) - (size_t)head, "Authorization: Bearer %s\r\n", key);
    if (crash)
        head += snprintf(text + head, sizeof(text) - (size_t)head, "X-Crash: %s\r\n", crash);
    if (body)
        head += snprintf(text + head, sizeof(text) - (size_t)head,
                         "Content-Type: application/json\r\nContent-Length: %zu\r\n", strlen(body));
    snprintf(text + head, sizeof(text) - (size_t)head, "\r\n%s", body ? body : "");
    return talk_once(&server, text);
}

static void member(const struct heard *a, const char *name, char *ret, size_t size)
{
    char quoted[40];
    snprintf(quoted, sizeof(quoted), "\"%s\":\"", name);
    const char *at = memmem(a->body, a->body_size, quoted, strlen(quoted));
    TEST_ASSERT_(at != NULL, "%d: %.*s", a->status, (int)a->body_size, a->body);
    at += strlen(quoted);
    snprintf(ret, size, "%.*s", (int)strcspn(at, "\""), at);
}

#define FAST "{\"type\":\"EXECUTE\",\"work_kind\":\"SUCCESS_FAST\"}"

static void submit(char *ret)
{
    struct heard a = ask("POST", "/v1/jobs", NULL, FAST);
    TEST_ASSERT_(a.status == 202, "%d %.*s", a.status, (int)a.body_size, a.body);
    member(&a, "job_id", ret, 40);
}

static void start(void)
{
    char id[40], path[80];
    trapped_count = 0;
    take_routes(client_routes, client_routes_count);
    take_routes(job_routes, job_routes_count);
    take_routes(webhook_routes, webhook_routes_count);
    TEST_ASSERT(mkdtemp(dir) != NULL);
    testserver_start(
        &(struct testserver_options){.routes = routes, .routes_count = trapped_count, .prepare = prepare},
        &server);
    struct heard a;
    do /* the writer may be on its way yet */
        a = ask("POST", "/v1/clients", NULL, NULL);
    while (a.status == 503);
    member(&a, "client_id", id, sizeof(id));
    snprintf(path, sizeof(path), "/v1/clients/%s/keys", id);
    a = ask("POST", path, NULL, NULL);
    member(&a, "api_key", key, sizeof(key));
    submit(job);
    a = ask("POST", "/v1/webhooks", NULL, "{\"url\":\"https://example.com/a\",\"events\":[\"*\"]}");
    member(&a, "webhook_id", webhook, sizeof(webhook));
}

/* ---- afterwards ---- */

static char told[1024];

static void tell(void *context, const char *finding)
{
    (void)context;
    snprintf(told + strlen(told), sizeof(told) - strlen(told), "%s; ", finding);
}

static void stop(unsigned crashes)
{
    struct check_report report = {0};
    char text[256];
    testserver_stop(&server);
    TEST_CHECK(server.exit_status == 0 && testserver_logged(&server, "actor crashed") == crashes);
    /* every row agrees with every other: no half of anything */
    TEST_CHECK_(check_directory(dir, &store_schema, tell, NULL, &report, text, sizeof(text)) == OK &&
                    report.findings == 0 && report.rows > 0,
                "%s", told);
    static const char *const files[] = {"data.mdb", "lock.mdb", "coppice.lock"};
    char path[128];
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, files[i]);
        (void)unlink(path);
    }
    TEST_CHECK(rmdir(dir) == 0);
}

/* ---- the endpoints ---- */

static void crashes(const char *method, const char *path, const char *when, const char *body)
{
    struct heard a = ask(method, path, when, body);
    TEST_CHECK_(a.status == 500 && heard_has(&a, "\"code\":\"RFA_INTERNAL\"") && !heard_has(&a, "job_id") &&
                    strcmp(heard_field(&a, "Content-Type"), "application/problem+json") == 0,
                "%s %s %s: %d %.*s", method, path, when, a.status, (int)a.body_size, a.body);
}

static bool shows(const char *path, const char *text)
{
    struct heard a = ask("GET", path, NULL, NULL);
    return a.status == 200 && heard_has(&a, text);
}

static unsigned count_jobs(void)
{
    struct heard a = ask("GET", "/v1/jobs?limit=100", NULL, NULL);
    unsigned count = 0;
    const char *at = a.body, *end = a.body + a.body_size;
    while ((at = memmem(at, (size_t)(end - at), "\"job_id\"", 8)) != NULL) {
        count++;
        at += 8;
    }
    return count;
}

static const char *path_of(const char *id, const char *verb)
{
    static char path[96];
    snprintf(path, sizeof(path), "/v1/jobs/%s%s", id, verb);
    return path;
}

/* Before: nothing has happened. Behind: it is done, as a whole, and its client doesn't know. */
static void test_a_handler_that_crashes_JOB_145_JOB_155_JOB_165_JOB_173_JOB_181_JOB_190_JOB_198(void)
{
    char path[96], other[40];
    start();
    /* JOB-145 */
    crashes("POST", "/v1/jobs", "before", FAST);
    TEST_CHECK(count_jobs() == 1);
    crashes("POST", "/v1/jobs", "behind", FAST);
    TEST_CHECK(count_jobs() == 2);
    /* JOB-173, JOB-181: of what was written already nothing comes */
    crashes("GET", path_of(job, ""), "before", NULL);
    crashes("GET", path_of(job, ""), "behind", NULL);
    crashes("GET", path_of(job, "/report"), "before", NULL);
    crashes("GET", path_of(job, "/report"), "behind", NULL);
    /* JOB-165 */
    crashes("POST", path_of(job, "/retry"), "before", NULL);
    crashes("POST", path_of(job, "/retry"), "behind", NULL);
    TEST_CHECK(shows(path_of(job, ""), "\"state\":\"QUEUED\"") && shows(path_of(job, ""), "\"attempt\":1"));
    /* JOB-155 */
    crashes("POST", path_of(job, "/cancel"), "before", NULL);
    TEST_CHECK(shows(path_of(job, ""), "\"state\":\"QUEUED\""));
    crashes("POST", path_of(job, "/cancel"), "behind", NULL);
    TEST_CHECK(shows(path_of(job, ""), "\"state\":\"CANCELED\"") &&
               shows(path_of(job, "/report"), "\"job.canceled\""));
    /* JOB-190 */
    static const char hook[] = "{\"url\":\"https://example.com/b\",\"events\":[\"job.failed\"]}";
    crashes("POST", "/v1/webhooks", "before", hook);
    TEST_CHECK(!shows("/v1/webhooks", "example.com/b"));
    crashes("POST", "/v1/webhooks", "behind", hook);
    TEST_CHECK(shows("/v1/webhooks", "example.com/b"));
    /* JOB-198 */
    snprintf(path, sizeof(path), "/v1/webhooks/%s", webhook);
    crashes("DELETE", path, "before", NULL);
    TEST_CHECK(shows("/v1/webhooks", "example.com/a"));
    crashes("DELETE", path, "behind", NULL);
    TEST_CHECK(!shows("/v1/webhooks", "example.com/a"));
    submit(other); /* nobody else has noticed */
    stop(14);
}

TEST_LIST
= {
    {"crashes: answered 500, and nothing half done (JOB-145, JOB-155, JOB-165, JOB-173, JOB-181, JOB-190, "
     "JOB-198)",
     test_a_handler_that_crashes_JOB_145_JOB_155_JOB_165_JOB_173_JOB_181_JOB_190_JOB_198},
    {NULL, NULL},
};
