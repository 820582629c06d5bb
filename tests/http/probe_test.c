#include "acutest.h"

#include "http/timestamp.h"
#include "tests/support/operated.h"

/* {"status":"ok","timestamp":"2026-01-31T23:59:59.123Z"} and nothing else. */
static bool plain(const char *status)
{
    char text[128];
    snprintf(text, sizeof(text), "{\"status\":\"%s\",\"timestamp\":\"%.24s\"}\n", status,
             operated_member("timestamp"));
    return strcmp(text, operated_body) == 0;
}

static void test_alive(void)
{
    operated_start(NULL);
    TEST_CHECK(operated_get("/healthz") == 200 && plain("ok"));
    TEST_CHECK(operated_get("/livez") == 200 && plain("ok"));
    TEST_CHECK(operated_ask("HEAD", "/healthz", "", NULL) == 200 && operated_body[0] == 0);
    TEST_CHECK(strstr(operated_head, "Content-Length: 55") != NULL);
    TEST_CHECK(operated_ask("GET", "/healthz", "Authorization: Bearer nonsense\r\n", NULL) == 200);
    TEST_CHECK(operated_post("/healthz", NULL) == 405);
    operated_stop();
}

#define THREE "{\"database\":\"%s\",\"redis\":\"%s\",\"event_bus\":\"%s\"}"
static bool checks(const char *status, const char *database, const char *redis, const char *bus)
{
    char text[256];
    snprintf(text, sizeof(text), "{\"status\":\"%s\",\"checks\":" THREE ",\"timestamp\":\"%.24s\"}\n", status,
             database, redis, bus, operated_member("timestamp"));
    if (strcmp(text, operated_body) == 0)
        return true;
    TEST_MSG("%s", operated_body);
    return false;
}

static void test_ready(void)
{
    operated_start(&(struct operated_options){.front = "client"});
    TEST_CHECK(operated_get("/startupz") == 503 && plain("starting"));
    TEST_CHECK(operated_get("/readyz") == 503 && checks("not_ready", "ok", "ok", "down"));
    TEST_CHECK(strstr(operated_head, "Retry-After: 1") != NULL);
    operated_grow();
    TEST_CHECK(operated_get("/readyz") == 200 && checks("ready", "ok", "ok", "ok"));
    TEST_CHECK(operated_get("/startupz") == 200 && plain("started"));
    TEST_CHECK(operated_get("/readyz?verbose") == 200 && checks("ready", "ok", "ok", "ok"));
    TEST_CHECK(operated_post("/test/stop/bus", NULL) == 204);
    TEST_CHECK(operated_get("/readyz") == 503 && checks("not_ready", "ok", "ok", "down"));
    TEST_CHECK(operated_get("/healthz") == 200 && plain("ok"));
    TEST_CHECK(operated_get("/startupz") == 200 && plain("started")); /* the start is over, whatever comes */
    TEST_CHECK(operated_post("/test/again/bus", NULL) == 204);
    TEST_CHECK(operated_get("/readyz") == 200);
    TEST_CHECK(operated_post("/test/stop/one", NULL) == 204); /* declared, and not there */
    TEST_CHECK(operated_get("/readyz") == 503 && checks("not_ready", "ok", "ok", "ok"));
    operated_stop();
}

/* The writer lives and handles nothing, as during a sync that hangs: no change would be answered in time. */
static void test_writer(void)
{
    operated_start(&(struct operated_options){.front = "client"});
    operated_grow();
    TEST_CHECK(operated_get("/readyz") == 200 && checks("ready", "ok", "ok", "ok"));
    TEST_CHECK(operated_post("/chaos/actors/store.writer:suspend", "{\"reason\":\"a disk that hangs\"}") ==
               200);
    TEST_CHECK(operated_get("/readyz") == 503 && checks("not_ready", "down", "down", "ok"));
    TEST_CHECK(operated_get("/healthz") == 200 && plain("ok"));
    TEST_CHECK(operated_post("/chaos/actors/store.writer:resume", "{\"reason\":\"it is over\"}") == 200);
    TEST_CHECK(operated_get("/readyz") == 200 && checks("ready", "ok", "ok", "ok"));
    operated_stop();
}

/* What a commit that failed leaves the store in until the process has ended (tests/store/writer_test.c), a full disk, and a file
 * that has gone from its directory (tests/store/keeper_test.c). */
static void test_state_of_the_store(void)
{
    operated_start(&(struct operated_options){.front = "client"});
    operated_grow();
    TEST_CHECK(operated_post("/test/store/tight", NULL) == 204);
    TEST_CHECK(operated_get("/readyz") == 200 && checks("ready", "degraded", "ok", "ok"));
    TEST_CHECK(operated_post("/test/store/lost", NULL) == 204);
    TEST_CHECK(operated_get("/readyz") == 503 && checks("not_ready", "down", "down", "down"));
    TEST_CHECK(operated_post("/test/store/failed", NULL) == 204);
    TEST_CHECK(operated_get("/readyz") == 503 && checks("not_ready", "down", "down", "down"));
    TEST_CHECK(operated_get("/healthz") == 200 && plain("ok"));
    TEST_CHECK(operated_post("/test/store/open", NULL) == 204);
    TEST_CHECK(operated_get("/readyz") == 200 && checks("ready", "ok", "ok", "ok"));
    operated_stop();
}

/* One partition is enough, whichever it is; nobody is slowed down by it, so the server is ready. */
static void test_full_outbox(void)
{
    operated_start(&(struct operated_options){.front = "client"});
    operated_grow();
    TEST_CHECK(operated_get("/readyz") == 200 && checks("ready", "ok", "ok", "ok"));
    TEST_CHECK(operated_post("/test/store/outbox", NULL) == 204);
    TEST_CHECK(operated_get("/readyz") == 200 && checks("ready", "ok", "ok", "degraded"));
    operated_stop();
}

static void test_full_ledger(void)
{
    operated_start(&(struct operated_options){.front = "client"});
    operated_grow();
    TEST_CHECK(operated_get("/readyz") == 200 && checks("ready", "ok", "ok", "ok"));
    TEST_CHECK(operated_post("/test/store/full", NULL) == 204);
    TEST_CHECK(operated_get("/readyz") == 200 && checks("ready", "degraded", "ok", "ok"));
    operated_stop();
}

static bool audited(void)
{
    return operated_post("/chaos/actors/store.writer:resume", "{\"reason\":\"it runs\"}") == 200;
}

static void test_audit_log_that_fills(void)
{
    operated_start(&(struct operated_options){.front = "client"});
    operated_grow();
    TEST_CHECK(operated_post("/test/store/audited", NULL) == 204);
    for (int i = 0; i < 6; i++)
        TEST_CHECK(audited());
    TEST_CHECK(operated_get("/readyz") == 200 && checks("ready", "ok", "ok", "ok"));
    TEST_CHECK(audited());
    TEST_CHECK(operated_get("/readyz") == 200 && checks("ready", "degraded", "ok", "ok"));
    operated_stop();
}

static void test_verbose(void)
{
    operated_start(NULL);
    operated_grow();
    TEST_CHECK(operated_get("/readyz?verbose") == 200);
    TEST_CHECK(operated_has(
        "\"checks\":{\"database\":\"ok\",\"redis\":\"ok\",\"event_bus\":\"ok\",\"actors\":\"ok\","
        "\"adapters\":\"ok\",\"start\":\"ok\",\"workers\":\"ok\",\"drain\":\"ok\"}"));
    TEST_CHECK(operated_post("/test/stop/runtime", NULL) == 204);
    TEST_CHECK(operated_get("/readyz?verbose") == 503);
    TEST_CHECK(operated_has("\"adapters\":\"down\""));
    operated_stop();
}

/* On both ports, and by its code; everything else goes on. */
static void test_nobody_works(void)
{
    static const char *const fronts[] = {"client", "operator"};
    for (size_t i = 0; i < 2; i++) {
        operated_start(&(struct operated_options){.front = fronts[i], .workers_missed = true});
        operated_grow();
        TEST_CHECK(operated_get("/readyz") == 503);
        TEST_CHECK(
            operated_has("{\"status\":\"not_ready\",\"checks\":{\"database\":\"ok\",\"redis\":\"ok\","
                         "\"event_bus\":\"ok\",\"RFA_EXEC_WORKER_UNAVAILABLE\":\"down\"},\"timestamp\":"));
        TEST_CHECK(operated_get("/healthz") == 200 && operated_get("/startupz") == 200);
        operated_stop();
    }
}

static void test_draining(void)
{
    operated_start(NULL);
    operated_grow();
    TEST_CHECK(operated_get("/readyz") == 200);
    TEST_CHECK(operated_post("/test/drain", NULL) == 204);
    TEST_CHECK(operated_get("/readyz?verbose") == 503);
    TEST_CHECK(operated_has("\"drain\":\"down\""));
    TEST_CHECK(operated_get("/healthz") == 200);
    operated_stop();
}

static void test_no_store(void)
{
    operated_start(&(struct operated_options){.no_store = true});
    operated_grow();
    TEST_CHECK(operated_get("/readyz") == 503 && checks("not_ready", "down", "down", "down"));
    TEST_CHECK(operated_get("/healthz") == 200);
    TEST_CHECK(operated_get("/startupz") == 503);
    operated_stop();
}

/* What the root supervisor says as the last thing before the process ends. */
static void test_fatal(void)
{
    operated_start(NULL);
    operated_grow();
    TEST_CHECK(operated_get("/healthz") == 200);
    TEST_CHECK(operated_post("/test/exhaust/front", NULL) ==
               204); /* another domain's end is not the process's */
    TEST_CHECK(operated_get("/healthz") == 200 && plain("ok"));
    TEST_CHECK(operated_post("/test/exhaust/root", NULL) == 204);
    TEST_CHECK(operated_get("/healthz") == 503 && plain("error"));
    TEST_CHECK(operated_get("/livez") == 503 && plain("error"));
    operated_stop();
}

static void test_timestamps(void)
{
    static const struct {
        uint64_t ms;
        const char *text;
    } cases[] = {
        {0, "1970-01-01T00:00:00.000Z"},
        {951782399999, "2000-02-28T23:59:59.999Z"},
        {951782400000, "2000-02-29T00:00:00.000Z"},
        {951868800000, "2000-03-01T00:00:00.000Z"},
        {1735689599123, "2024-12-31T23:59:59.123Z"},
        {1735689600000, "2025-01-01T00:00:00.000Z"},
        {4107542400000, "2100-03-01T00:00:00.000Z"},
        {253402300799999, "9999-12-31T23:59:59.999Z"},
        {18446744073709, "2554-07-21T23:34:33.709Z"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char text[TIMESTAMP_SIZE];
        if (cases[i].ms > UINT64_MAX / 1000000)
            continue;
        timestamp_format(cases[i].ms * 1000000, text);
        TEST_CHECK_(strcmp(text, cases[i].text) == 0, "%s is %s", text, cases[i].text);
    }
}

TEST_LIST
= {
    {"CTL-525 CTL-528 CTL-537 alive", test_alive},
    {"CTL-529 CTL-530 CTL-531 CTL-532 CTL-533 CTL-534 CTL-538 ready: exact bodies, each check down",
     test_ready},
    {"CTL-530 CTL-531 CTL-536 a writer that takes nothing is not ready", test_writer},
    {"CTL-530 L5 a store that has failed is not ready, a full one is", test_state_of_the_store},
    {"CTL-530 a full ledger is degraded", test_full_ledger},
    {"CTL-530 an audit log is degraded while an eighth is left", test_audit_log_that_fills},
    {"CTL-530 an outbox that nobody empties is degraded", test_full_outbox},
    {"our own checks, for operators", test_verbose},
    {"JOB-313, JOB-356, AMB-J-39: nobody works", test_nobody_works},
    {"CTL-539 draining is not ready", test_draining},
    {"CTL-527 CTL-531 without a store", test_no_store},
    {"CTL-526 a fatal state", test_fatal},
    {"timestamps", test_timestamps},
    {NULL, NULL},
};
