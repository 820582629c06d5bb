#include "acutest.h"

#include <stdlib.h>

#include "http/json_text.h"
#include "http/metrics.h"
#include "tests/support/operated.h"

/* The value of a series, by all of its name and labels; -1: there is none. */
static double value(const char *series)
{
    char line[512];
    snprintf(line, sizeof(line), "\n%s ", series);
    const char *at = strstr(operated_body, line);
    return at ? strtod(at + strlen(line), NULL) : -1;
}

static bool openmetrics;
static void scrape(void)
{
    TEST_CHECK(operated_ask("GET", "/metrics", openmetrics ? "Accept: application/openmetrics-text\r\n" : "",
                            NULL) == 200);
}

/* Every line is a comment or a series of the family announced last; every family has HELP and TYPE, once. */
static void check_families(void)
{
    char family[128] = "", *line = operated_body;
    size_t length = 0, families = 0;
    for (char *end; (end = strchr(line, '\n')); line = end + 1) {
        *end = 0;
        if (strncmp(line, "# HELP ", 7) == 0) {
            length = strcspn(line + 7, " ");
            snprintf(family, sizeof(family), "%.*s", (int)length, line + 7);
            TEST_CHECK_(strlen(line + 7) > length + 3, "%s says nothing", line);
            families++;
        } else if (strncmp(line, "# TYPE ", 7) == 0) {
            TEST_CHECK_(strncmp(line + 7, family, length) == 0 && line[7 + length] == ' ', "%s behind %s",
                        line, family);
        } else if (strncmp(line, "# EOF", 5) != 0) {
            TEST_CHECK_(strncmp(line, family, length) == 0, "%s in %s", line, family);
            TEST_CHECK_(strrchr(line, ' ') != NULL, "%s has no value", line);
        }
    }
    TEST_CHECK(families > 60);
}

/* How many series there are of this name whose labels end so. */
static size_t series(const char *name, const char *suffix, const char *labels)
{
    char begin[160];
    size_t count = 0;
    int length = snprintf(begin, sizeof(begin), "\n%s%s", name, suffix);
    for (const char *at = operated_body; (at = strstr(at, begin)) != NULL; at += length) {
        const char *end = at + length, *space = strpbrk(end, " \n");
        count += (*end == '{' || *end == ' ') && space && (size_t)(space - end) >= strlen(labels) &&
                 memcmp(space - strlen(labels), labels, strlen(labels)) == 0;
    }
    return count;
}

/* Each histogram has all that the format asks for: as many counts, sums and buckets without a bound. */
static void check_histograms(void)
{
    char name[128];
    size_t found = 0;
    for (const char *at = operated_body; (at = strstr(at, "\n# TYPE ")) != NULL; at++) {
        const char *line_end = strchr(at + 1, '\n');
        if (!line_end || strncmp(line_end - 10, " histogram", 10) != 0)
            continue;
        TEST_ASSERT(sscanf(at, "\n# TYPE %127s", name) == 1);
        size_t counts = series(name, "_count", "");
        TEST_CHECK_(counts > 0 && series(name, "_sum", "") == counts, "%s", name);
        TEST_CHECK_(series(name, "_bucket", "le=\"+Inf\"}") == counts, "%s", name);
        found++;
    }
    TEST_CHECK_(found > 3, "%zu", found);
}

static void test_what_there_is(void)
{
    operated_start(NULL);
    operated_grow();
    scrape();
    TEST_CHECK(strstr(operated_head, METRICS_PROMETHEUS) != NULL);
    TEST_CHECK(operated_has("coppice_build_info{version=\"test\",compiler=\""));
    TEST_CHECK(value("process_cpu_seconds_total") > 0);
    TEST_CHECK(value("process_resident_memory_bytes") > 1e6);
    TEST_CHECK(value("process_open_fds") > 5 && value("process_max_fds") >= value("process_open_fds"));
    TEST_CHECK(value("process_start_time_seconds") > 1.7e9);
    TEST_CHECK(value("coppice_actors{kind=\"idle\"}") == 11);
    TEST_CHECK(value("coppice_mailbox_messages{kind=\"idle\"}") == 0);
    TEST_CHECK(value("coppice_supervisor_restart_budget_used_ratio{supervisor=\"top\"}") == 0);
    TEST_CHECK(value("coppice_lmdb_map_size_bytes") == 64 << 20);
    TEST_CHECK(value("coppice_lmdb_used_bytes") > 0);
    TEST_CHECK(value("coppice_lmdb_readers") >= 1);
    TEST_CHECK(value("coppice_lmdb_oldest_reader_age_txns") == 0);
    TEST_CHECK(value("coppice_store_up") == 1);
    TEST_CHECK(value("routing_decision_count{version=\"v1\"}") == 0);
    TEST_CHECK(value("coppice_actor_restarts_total{supervisor=\"other\"}") == 0); /* from the start */
    /* What alerts wait for has its series before its first time: increase() doesn't see the one that a series is born by. */
    TEST_CHECK(value("coppice_supervisor_escalations_total{domain=\"top\"}") == 0);
    TEST_CHECK(value("coppice_failures_restart_exhausted_total{domain=\"all\"}") == 0);
    TEST_CHECK(value("coppice_supervisor_escalations_total{domain=\"one\"}") == -1); /* no supervisor */
    /* Who is declared as a worker isn't asked whether it supervises: its scheduler may wait for the disk. */
    TEST_CHECK(value("coppice_supervisor_escalations_total{domain=\"rest\"}") == -1);
    TEST_CHECK(value("coppice_supervisor_restart_budget_used_ratio{supervisor=\"rest\"}") == -1);
    TEST_CHECK(value("coppice_actor_crashes_total{class=\"idle\"}") == 0);
    TEST_CHECK(value("coppice_store_damaged_total{reason=\"jobs\"}") == 0);
    check_histograms();
    check_families();
    openmetrics = true;
    scrape();
    TEST_CHECK(strstr(operated_head, METRICS_OPENMETRICS) != NULL);
    TEST_CHECK(strcmp(operated_body + strlen(operated_body) - 6, "# EOF\n") == 0);
    TEST_CHECK(operated_has("# TYPE process_cpu_seconds counter\n"));
    TEST_CHECK(operated_has("# TYPE coppice_build info\n"));
    TEST_CHECK(operated_has("# TYPE routing_decision_count unknown\n"));
    check_families();
    openmetrics = false;
    operated_stop();
}

#define OF_HEALTHZ "{method=\"GET\",route=\"/healthz\"}"

static void test_requests(void)
{
    operated_start(&(struct operated_options){.front = "operator"});
    scrape();
    TEST_CHECK(value("http_request_duration_seconds_count" OF_HEALTHZ) == 0); /* before the first one */
    for (int i = 0; i < 5; i++)
        operated_get("/healthz");
    TEST_CHECK(operated_get("/stats/actors/nobody") == 404);
    TEST_CHECK(operated_get("/nowhere") == 404);
    scrape();
    TEST_CHECK(value("http_request_duration_seconds_count" OF_HEALTHZ) == 5);
    TEST_CHECK(
        operated_has("# HELP http_request_duration_seconds From when the request had come to the end "));
    TEST_CHECK(value("http_request_duration_seconds_bucket{method=\"GET\",route=\"/healthz\",le=\"+Inf\"}") ==
               5);
    TEST_CHECK(value("http_request_duration_seconds_bucket{method=\"GET\",route=\"/healthz\",le=\"10\"}") ==
               5);
    TEST_CHECK(value("http_request_duration_seconds_sum" OF_HEALTHZ) > 0);
    TEST_CHECK(value("coppice_http_answers_total{method=\"GET\",route=\"/healthz\",code=\"2xx\"}") == 5);
    TEST_CHECK(value("coppice_http_answers_total{method=\"GET\",route=\"/healthz\",code=\"5xx\"}") == 0);
    TEST_CHECK(
        value("coppice_http_answers_total{method=\"GET\",route=\"/stats/actors/{pid}\",code=\"4xx\"}") == 1);
    TEST_CHECK(value("coppice_http_answers_total{method=\"\",route=\"\",code=\"4xx\"}") == 1);
    TEST_CHECK(strstr(operated_body, "nobody") == NULL && strstr(operated_body, "nowhere") == NULL);
    operated_stop();
}

static struct json_node stats_nodes[8192];
static struct json_text stats;

/* The member that this path of names leads to, or NULL. */
static const struct json_node *figure(const char *path)
{
    const struct json_node *node = json_root(&stats);
    char name[64];
    while (node && *path) {
        size_t length = strcspn(path, "/");
        snprintf(name, sizeof(name), "%.*s", (int)length, path);
        node = node->kind == JSON_OBJECT ? json_member(&stats, node, name) : NULL;
        path += length + (path[length] == '/');
    }
    return node;
}

/* All of it is JSON, each part where it belongs, and of the kind that it says. */
static void check_stats(void)
{
    static const char *const numbers[] = {"process/max_fds",          "process/threads",
                                          "fronts/operator/requests", "fronts/operator/connections",
                                          "domains/bus/published",    "domains/bus/missed"};
    struct json_error error = {.what = ""};
    stats = (struct json_text){.nodes = stats_nodes, .nodes_max = sizeof(stats_nodes) / sizeof(*stats_nodes)};
    TEST_ASSERT_(json_text_read(&stats, span_text(operated_body), NULL, &error), "%s at %u", error.what,
                 error.at);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
        TEST_CHECK_(figure(numbers[i]) && figure(numbers[i])->kind == JSON_NUMBER, "%s", numbers[i]);
    TEST_CHECK(figure("domains/deduper") &&
               figure("domains/deduper")->kind == JSON_NULL); /* there is none here */
    TEST_CHECK(figure("fronts/client") == NULL && figure("fronts")->count == 1);
    TEST_CHECK(figure("pressure/other") == NULL && figure("pressure/idle")->kind == JSON_STRING);
    TEST_CHECK(figure("queues/complete")->kind == JSON_TRUE);
    TEST_CHECK(strstr(operated_body, ":184467440") == NULL); /* nothing has gone below zero */
    for (const struct json_node *slo = json_first(&stats, figure("slos")); slo;
         slo = json_after(&stats, figure("slos"), slo)) {
        struct span name = json_raw_of(&stats, json_member(&stats, slo, "name")),
                    critical = json_raw_of(&stats, json_member(&stats, slo, "critical"));
        const char *text = name.bytes;
        bool ratio = name.size > 8 && memcmp(text + name.size - 7, "_ratio\"", 7) == 0;
        TEST_CHECK_(!ratio || memcmp(critical.bytes, "0.", 2) == 0 || memcmp(critical.bytes, "1", 1) == 0,
                    "%.*s", (int)name.size, text);
    }
}

/* What waits, counted where it waits; and what restarts cost. */
static void test_mailboxes_and_budgets(void)
{
    operated_start(NULL);
    operated_grow();
    TEST_CHECK(operated_post("/chaos/actors/one:suspend", "{\"reason\":\"x\"}") == 200);
    TEST_CHECK(operated_post("/test/mail/one/9", NULL) == 204);
    TEST_CHECK(operated_post("/chaos/actors/two:kill", "{\"reason\":\"x\"}") == 200);
    scrape();
    TEST_CHECK(value("coppice_mailbox_messages{kind=\"idle\"}") == 9);
    TEST_CHECK(value("coppice_mailbox_max_messages{kind=\"idle\"}") == 9);
    TEST_CHECK(value("coppice_supervisor_restart_budget_used_ratio{supervisor=\"top\"}") == 0.05);
    TEST_CHECK(value("coppice_actor_restarts_total{supervisor=\"top\"}") == 1);
    TEST_CHECK(value("coppice_pressure_level{component=\"idle\"}") == 0);
    TEST_CHECK(value("coppice_runtime_scheduler_actors{scheduler=\"0\"}") > 11);
    TEST_CHECK(value("coppice_runtime_scheduler_busy_seconds_total{scheduler=\"0\"}") > 0);
    TEST_CHECK(operated_get("/stats") == 200);
    TEST_CHECK(operated_has("\"schedulers\":[{\"scheduler\":0,\"dedicated\":false,\"busy_ratio\":"));
    TEST_CHECK(operated_has("\"pressure\":{") && operated_has("\"idle\":\"normal\""));
    TEST_CHECK(operated_has("\"queues\":{\"mailboxes\":[{\"class\":\"idle\",\"actors\":11,\"messages\":9,"));
    TEST_CHECK(operated_has("\"depth\":9,\"capacity\":1024}"));
    TEST_CHECK(
        operated_has("{\"name\":\"cascade_count\",\"value\":0,\"target\":0,\"warn\":1,\"critical\":1,"));
    TEST_CHECK(operated_has(
        "{\"name\":\"ingest_latency_ms\",\"value\":0,\"target\":100,\"warn\":75,\"critical\":100,"));
    TEST_CHECK(operated_has("\"store\":{\"identity\":\"") && operated_has("\"rows\":{\"meta\":3,"));
    TEST_CHECK(operated_has("\"domains\":{\"rooms\":null,")); /* nobody to ask here */
    TEST_CHECK(operated_has("\"bus\":{\"published\":0,"));
    check_stats();
    operated_stop();
}

static void test_tree(void)
{
    operated_start(NULL);
    operated_grow();
    TEST_CHECK(operated_get("/stats/tree") == 200 &&
               operated_has("\"tree\":{\"name\":\"front.connections\""));
    TEST_CHECK(operated_get("/stats/tree?format=text") == 200 && operated_has("NAME "));
    TEST_CHECK(operated_get("/stats/tree?format=dot") == 200 && operated_has("digraph coppice {"));
    TEST_CHECK(operated_has("[label=\"top\\nrunning, mailbox 0, restarts 0\", shape=box]"));
    TEST_CHECK(strstr(operated_head, "text/vnd.graphviz") != NULL);
    TEST_CHECK(operated_get("/stats/tree?without=idle") == 200 && operated_has("\"name\":\"top\""));
    TEST_CHECK(strstr(operated_body, "\"name\":\"r1\"") == NULL);
    TEST_CHECK(operated_get("/stats/tree?class=idle") == 200 && operated_has("\"matched\":11,"));
    TEST_CHECK(operated_get("/stats/tree?class=idle&limit=2") == 200 && operated_has("\"matched\":11,"));
    TEST_CHECK(operated_get("/stats/tree?name=r2&format=text") == 200 && operated_has("\nr2 "));
    TEST_CHECK(strstr(operated_body, "\nr1 ") == NULL);
    TEST_CHECK(operated_get("/stats/actors/r2") == 200);
    TEST_CHECK(operated_has("\"child\":{\"supervisor\":\"0x") &&
               operated_has("\"id\":\"r2\",\"state\":\"running\""));
    TEST_CHECK(operated_get("/stats/actors/d1") == 200 && operated_has("\"id\":\"d1\""));
    TEST_CHECK(operated_get("/stats/actors/top") == 200 &&
               operated_has("\"strategy\":\"one_for_one\",\"children\":9,"));
    static const char *const refused[] = {
        "children=0", "children=201", "format=dance", "top=weight", "n=0", "limit=1001",
        "format=dot&top=memory", "name=%zz", "children=1&children=2",
        /* what would be passed over (nothing is silently ignored) */
        "n=3&limit=7", "top=memory&n=3&limit=3", "children=5&top=memory", "children=5&name=r2",
        "children=5&class=idle", "children=5&state=running", "children=5&limit=2", "children=5&n=2",
        "without=idle&class=idle", "without=idle&n=2"};
    for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
        char path[128];
        snprintf(path, sizeof(path), "/stats/tree?%s", refused[i]);
        TEST_CHECK_(operated_get(path) == 400, "%s", refused[i]);
    }
    operated_stop();
}

TEST_LIST
= {
    {"what there is of metrics, in both formats", test_what_there_is},
    {"requests by route", test_requests},
    {"mailboxes, budgets, and /stats", test_mailboxes_and_budgets},
    {"the tree, and some of it", test_tree},
    {NULL, NULL},
};
