/* coppice contract show and check, without the command line around them. */
#define _GNU_SOURCE /* memmem */
#include "acutest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/contract_command.h"
#include "config/options.h"
#include "http/contract.h"

static char printed[1 << 18];
static char why[1024];

static struct json_sink sink(void)
{
    struct json_sink s;
    json_sink_init(&s, printed, sizeof(printed), NULL, NULL);
    why[0] = 0;
    return s;
}

static int show(const char *what, bool json, bool strict, struct span *ret_text)
{
    struct json_sink s = sink();
    int status = contract_command_show(what, json, strict, &s, why, sizeof(why));
    TEST_CHECK(s.status == JSON_OK);
    *ret_text = span_of(printed, s.length);
    return status;
}

static bool holds(struct span text, const char *word)
{
    return memmem(text.bytes, text.size, word, strlen(word)) != NULL;
}

/* ---- show ---- */

static void documents(void)
{
    static const struct {
        const char *name;
        enum contract contract;
    } wanted[] = {{"openapi", CONTRACT_CONTROL},
                  {"asyncapi", CONTRACT_EVENTS},
                  {"jobs", CONTRACT_JOBS},
                  {"work", CONTRACT_WORK},
                  {"ops", CONTRACT_OPS}};
    struct span text = span_of(NULL, 0);
    for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
        TEST_CHECK(show(wanted[i].name, false, false, &text) == 0);
        TEST_CHECK_(span_equal(text, contract_yaml(wanted[i].contract)), "%s", wanted[i].name);
        TEST_CHECK(show(wanted[i].name, true, false, &text) == 0);
        TEST_CHECK_(span_equal(text, contract_json(wanted[i].contract)), "%s", wanted[i].name);
    }
    TEST_CHECK(show("events", false, false, &text) == 0 && span_equal(text, contract_events_text()));
}

static void strict(void)
{
    struct span text = span_of(NULL, 0);
    TEST_CHECK(show("asyncapi", false, true, &text) == 0);
    TEST_CHECK(text.size == contract_yaml(CONTRACT_EVENTS).size + 2);
    TEST_CHECK(holds(text, "\n    x-deprecated: true\n") && !holds(text, " deprecated"));
    TEST_CHECK(show("asyncapi", true, true, &text) == 0);
    TEST_CHECK(holds(text, "\"x-deprecated\": true") && !holds(text, "\"deprecated\""));
    TEST_CHECK(show("openapi", false, true, &text) == 64 && text.size == 0);
    TEST_CHECK(strstr(why, "--strict") != NULL);
}

static void errors(void)
{
    char line[256];
    struct span text = span_of(NULL, 0);
    TEST_CHECK(show("errors", false, false, &text) == 0);
    snprintf(line, sizeof(line),
             "\nJOB_409_LOCKED\t409\ttrue\tbounded\tResource lock conflict, retry later.\t\t%s\tfalse\n",
             "control");
    TEST_CHECK(holds(text, line));
    TEST_CHECK(holds(text, "\nREQ_404_ROUTE_NOT_FOUND\t404\tfalse\tnone\tNo such path in this contract.\t"));
    TEST_CHECK(holds(text,
                     "\nREQ_408_REQUEST_TIMEOUT\t408\tfalse\tnone\tThe request did not arrive in time.\t"
                     "Send it faster.\tcontrol\ttrue\n"));
    TEST_CHECK(holds(text, "\nRFA_REQUEST_TIMEOUT\t408\ttrue\t\tThe request did not arrive in time.\t"
                           "Retry; send it faster.\tjobs\ttrue\n"));
    size_t lines = 0;
    for (uint32_t i = 0; i < text.size; i++)
        lines += ((const char *)text.bytes)[i] == '\n';
    TEST_CHECK_(lines == ERROR_CODE_COUNT, "%zu", lines);
    TEST_CHECK(show("errors", true, false, &text) == 0);
    TEST_CHECK(holds(
        text, "{\"code\":\"JOB_409_LOCKED\",\"http\":409,\"retryable\":true,\"retry_class\":\"bounded\","));
}

static void unknown(void)
{
    struct span text = span_of(NULL, 0);
    TEST_CHECK(show("openap", false, false, &text) == 64 && text.size == 0);
    TEST_CHECK_(strstr(why, "'openap'") &&
                    strstr(why, "openapi, asyncapi, jobs, work, ops, errors or events"),
                "%s", why);
}

/* ---- check: routes ---- */

static void serve(const struct request *q, struct response *r)
{
    (void)q;
    (void)r;
}

enum { TABLE_MAX = CONTRACT_OPERATIONS_MAX + 8 }; /* and some that a test adds */

struct rows {
    struct route rows[TABLE_MAX];
    size_t count;
};

static enum method method_of(const char *name)
{
#define X(id, bit)              \
    if (strcmp(name, #id) == 0) \
        return METHOD_##id;
    METHODS(X)
#undef X
    return METHOD_UNKNOWN;
}

/* A route for each operation of these contracts. The one path that two of them share has one row here. */
static void all_of(struct rows *t, const struct contracts *contracts, uint32_t which)
{
    const struct contract_operation *o;
    for (size_t i = 0; (o = contracts_each(contracts, i)); i++)
        if (which >> o->contract & 1) {
            TEST_ASSERT(t->count < TABLE_MAX);
            t->rows[t->count++] = (struct route){
                .method = method_of(o->method), .path = o->path, .surface = SURFACE_PUBLIC, .serve = serve};
        }
}

static int check_table(const struct rows *t, const char *base, bool json, struct span *ret_text)
{
    /* Two listeners that share a table, as ours share the probes. */
    const struct surface_tables listenings[2] = {{.count = 1, .tables = {t->rows}, .counts = {t->count}},
                                                 {.count = 1, .tables = {t->rows}, .counts = {t->count}}};
    struct json_sink s = sink();
    int status = contract_command_check(listenings, 2, base, json, &s, why, sizeof(why));
    TEST_ASSERT(s.length < sizeof(printed));
    printed[s.length] = 0;
    *ret_text = span_of(printed, s.length);
    return status;
}

#define ALL ((1u << CONTRACT_OPS) | (1u << CONTRACT_CONTROL) | (1u << CONTRACT_JOBS) | (1u << CONTRACT_WORK))

static struct contracts *contracts_here(void)
{
    char text[512] = "";
    struct contracts *contracts = contracts_create(text, sizeof(text));
    TEST_ASSERT_(contracts != NULL, "%s", text);
    return contracts;
}

static void routes_all(void)
{
    struct contracts *contracts = contracts_here();
    struct rows t = {.count = 0};
    struct span text = span_of(NULL, 0);
    all_of(&t, contracts, ALL);
    TEST_CHECK_(check_table(&t, NULL, false, &text) == 0, "%s", printed);
    TEST_CHECK(!holds(text, "finding:") && !holds(text, "note:") && holds(text, "75 events"));
    TEST_CHECK(check_table(&t, NULL, true, &text) == 0);
    TEST_CHECK(holds(text, "{\"lines\":[],") && holds(text, "\"findings\":0}"));
    contracts_destroy(contracts);
}

static void route_missing(void)
{
    struct contracts *contracts = contracts_here();
    struct rows t = {.count = 0};
    struct span text = span_of(NULL, 0);
    all_of(&t, contracts, 1u << CONTRACT_CONTROL);
    t.count--;
    TEST_CHECK(check_table(&t, NULL, false, &text) == 1);
    TEST_CHECK(holds(text,
                     "finding: the operation bulkReprocessDlqItems (POST /dlq/items:reprocess-bulk) of the "
                     "contract 'control' has no route\n"));
    TEST_CHECK(holds(text, "note: no route serves any of the 13 operations of the contract 'jobs'\n"));
    contracts_destroy(contracts);
}

static void route_undocumented(void)
{
    struct contracts *contracts = contracts_here();
    struct rows t = {.count = 0};
    struct span text = span_of(NULL, 0);
    all_of(&t, contracts, ALL);
    struct route *alias = &t.rows[t.count++], *hidden = &t.rows[t.count++], *extra = &t.rows[t.count++];
    *alias = (struct route){.method = METHOD_GET,
                            .path = "/v1/dlq/items",
                            .alias_of = "/dlq/items",
                            .surface = SURFACE_CONTROL,
                            .serve = serve};
    *hidden = (struct route){
        .method = METHOD_GET, .path = "/ui", .undocumented = true, .surface = SURFACE_PUBLIC, .serve = serve};
    *extra =
        (struct route){.method = METHOD_POST, .path = "/healthz", .surface = SURFACE_PUBLIC, .serve = serve};
    TEST_CHECK(check_table(&t, NULL, false, &text) == 1);
    TEST_CHECK(holds(text, "finding: the route POST /healthz is in no contract\n"));
    TEST_CHECK(!holds(text, "/ui") && !holds(text, "/v1/dlq"));
    t.count--;
    TEST_CHECK(check_table(&t, NULL, false, &text) == 0);
    contracts_destroy(contracts);
}

/* ---- check: events ---- */

static struct {
    char text[4096];
    size_t used;
    int count;
} found;

static void take(void *context, const char *text)
{
    (void)context;
    found.count++;
    found.used += (size_t)snprintf(found.text + found.used, sizeof(found.text) - found.used, "%s\n", text);
    TEST_ASSERT(found.used < sizeof(found.text));
}

/* The table as it is, and rows behind it. */
static void events_with(const char *rows)
{
    struct span table = contract_events_text();
    char *text = malloc(table.size + strlen(rows) + 1);
    TEST_ASSERT(text != NULL);
    memcpy(text, table.bytes, table.size);
    strcpy(text + table.size, rows);
    found.used = 0;
    found.count = 0;
    found.text[0] = 0;
    contract_command_check_events(span_text(text), take, NULL);
    free(text);
}

static void events(void)
{
    static const struct {
        const char *rows, *says;
    } wanted[] = {
        {"budget.limit.raised\toperations.events\t\t\t\n",
         "the event budget.limit.raised has no details schema"},
        {"budget.limit.raised\toperations.events\tBudgetDetails\t\t\n",
         "details 'BudgetDetails', which the event"},
        {"budget.limit.raised\tbudget.events\tGenericSystemEventDetails\t\tevent_class=operations\n",
         "on the channel 'budget.events', which the event"},
        {"budget.limit.raised\toperations.events\tGenericSystemEventDetails\t\t\n",
         "registered for its name is 'event_class=operations'"},
        {"improvement.plan.shelved\timprovement.events\tGenericSystemEventDetails\t\tevent_class="
         "operations\n",
         "registered for its name is 'event_class=improvement'"},
        {"documentation.snapshot.lost\tdocumentation.events\tGenericSystemEventDetails\t\tevent_class=foo\n",
         "registered for its name is 'event_class=documentation'"},
        {"scheduler.leader.asleep\toperations.events\tGenericSystemEventDetails\t\tevent_class=operations\n",
         "registered for its name is 'event_class=scheduler'"},
        {"weather.forecast.read\toperations.events\tGenericSystemEventDetails\t\tevent_class=operations\n",
         "no class is registered for its name"},
        {"hitl.reminder.sent\toperations.events\tGenericSystemEventDetails\t\tevent_class=operations\n",
         "the event hitl.reminder.sent is there twice"},
        {"hitl.reminder\n", "the table of events has no row at byte"},
    };
    events_with("");
    TEST_CHECK_(found.count == 0, "%s", found.text);
    events_with(
        "budget.limit.raised\toperations.events\tGenericSystemEventDetails\t\tevent_class=operations\n");
    TEST_CHECK_(found.count == 0, "%s", found.text);
    for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
        events_with(wanted[i].rows);
        TEST_CHECK_(found.count == 1 && strstr(found.text, wanted[i].says), "%s%s", wanted[i].rows,
                    found.text);
    }
}

static void events_of_every_channel(void)
{
    found.count = 0;
    found.used = 0;
    contract_command_check_events(span_text("event_name\tchannel\tdetails\trequires\tfixed\n"), take, NULL);
    TEST_CHECK_(found.count == 19, "%d: %s", found.count,
                found.text); /* 20, and one is another name of one */
    TEST_CHECK(strstr(found.text, "no event is on the channel operations.events\n") != NULL);
    TEST_CHECK(!strstr(found.text, "job.waiting_human\n"));
}

/* ---- check: the base ---- */

static char folder[64];

static const char *in_folder(const char *name)
{
    static char path[128];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

/* A file in the folder: this text with one place replaced (or "", which replaces nothing). */
static void put(const char *name, struct span text, const char *place, const char *by)
{
    FILE *file = fopen(in_folder(name), "w");
    const char *bytes = text.bytes;
    const char *at = *place ? memmem(bytes, text.size, place, strlen(place)) : bytes + text.size;
    TEST_ASSERT_(file && at, "%s", place);
    size_t head = (size_t)(at - bytes), skip = strlen(place);
    TEST_ASSERT(fwrite(bytes, 1, head, file) == head && fputs(by, file) >= 0 &&
                fwrite(at + skip, 1, text.size - head - skip, file) == text.size - head - skip);
    TEST_ASSERT(fclose(file) == 0);
}

static void folder_make(void)
{
    strcpy(folder, "/tmp/coppice-contract-XXXXXX");
    TEST_ASSERT(mkdtemp(folder) != NULL);
}

static void folder_remove(void)
{
    static const char *const names[] = {"control.openapi.json", "jobs.openapi.json", "control.events.tsv",
                                        "old.yaml"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        unlink(in_folder(names[i]));
    TEST_CHECK(rmdir(folder) == 0);
}

static void base(void)
{
    struct contracts *contracts = contracts_here();
    struct span control = contract_json(CONTRACT_CONTROL), table = contract_events_text(),
                text = span_of(NULL, 0);
    struct rows t = {.count = 0};
    all_of(&t, contracts, ALL);
    folder_make();

    TEST_CASE("nothing there");
    TEST_CHECK(check_table(&t, folder, false, &text) == 64 && strstr(why, "control.openapi.json") == NULL);
    TEST_CHECK_(strstr(why, "has neither ops.openapi.json nor generated/ops.openapi.json") != NULL, "%s",
                why);
    TEST_CHECK(check_table(&t, in_folder("no.json"), false, &text) == 64 && strstr(why, "no such file"));

    TEST_CASE("the same");
    put("control.openapi.json", control, "", "");
    TEST_CHECK_(check_table(&t, folder, false, &text) == 0, "%s%s", why, printed);
    TEST_CHECK(holds(text, "since the base 0 breaking and 0 compatible differences; 0 findings\n"));

    TEST_CASE("something was added since");
    put("control.openapi.json", control,
        ",\n              \"prefer_local\": {\n                \"type\": \"boolean\"\n              }", "");
    TEST_CHECK(check_table(&t, folder, false, &text) == 0);
    TEST_CHECK(holds(
        text, "compatible: /components/schemas/JobSubmitRequest/properties/constraints has a new optional "
              "member 'prefer_local'\n"));

    TEST_CASE("something was taken away since");
    put("control.openapi.json", control, "\"prefer_local\": {",
        "\"prefer_cheap\": {\"type\": \"boolean\"}, \"prefer_local\": {");
    TEST_CHECK(check_table(&t, in_folder("control.openapi.json"), false, &text) == 1);
    TEST_CHECK(holds(text,
                     "breaking: /components/schemas/JobSubmitRequest/properties/constraints has no member "
                     "'prefer_cheap' any more\n"));
    TEST_CHECK(holds(
        text, "finding: the contract 'control' has 1 breaking difference from its base; that needs a higher "
              "major version (it has not) and info.x-migration-guide-ref (it has not)\n"));

    TEST_CASE("events");
    put("control.openapi.json", control, "", "");
    put("control.events.tsv", table, "hitl.reminder.sent\t", "hitl.reminder.gone\t");
    TEST_CHECK(check_table(&t, folder, false, &text) == 1);
    TEST_CHECK(holds(text, "breaking: the event hitl.reminder.gone is gone\n"));
    TEST_CHECK(holds(text, "compatible: the event hitl.reminder.sent is new\n"));

    TEST_CASE("what is none");
    put("control.events.tsv", span_text("x"), "", "");
    TEST_CHECK(check_table(&t, folder, false, &text) == 64 && strstr(why, "no table of events"));
    put("old.yaml", contract_yaml(CONTRACT_CONTROL), "", "");
    TEST_CHECK(check_table(&t, in_folder("old.yaml"), false, &text) == 64);
    TEST_CHECK_(strstr(why, "its JSON form is meant") != NULL, "%s", why);
    put("old.yaml", span_text("{\"openapi\":\"3.1.0\",\"info\":{\"title\":\"Weather\"}}"), "", "");
    TEST_CHECK(check_table(&t, in_folder("old.yaml"), false, &text) == 64 && strstr(why, "title of none"));
    folder_remove();
    contracts_destroy(contracts); /* the table has their paths */
}

/* ---- versions of paths ---- */

static int versions(const char *release, const char *rows, const char *base, const char *const *paths)
{
    char now[512], old[512] = "";
    size_t count = 0;
    while (paths[count])
        count++;
    found.used = 0;
    found.count = 0;
    found.text[0] = 0;
    snprintf(now, sizeof(now), "{\"info\":{\"x-release\":%s,\"x-path-versions\":{%s}}}", release, rows);
    if (base)
        snprintf(old, sizeof(old), "{\"info\":{\"x-release\":1,\"x-path-versions\":{%s}}}", base);
    contract_command_check_versions(span_text(now), span_text(old), paths, count, take, NULL);
    return found.count;
}

#define ACTIVE       "{\"activated_in_release\":1}"
#define DEPRECATED_2 "{\"activated_in_release\":1,\"deprecated_in_release\":2}"
#define PATHS(...)   ((const char *const[]){__VA_ARGS__, NULL})

static void path_versions(void)
{
    const char *const *both = PATHS("/healthz", "/v1/jobs", "/v2/jobs"), *const *second = PATHS("/v2/jobs");
    TEST_CHECK(versions("1", "\"v1\":" ACTIVE, NULL, PATHS("/v1/jobs")) == 0);
    TEST_CHECK(versions("2", "\"v1\":" DEPRECATED_2 ",\"v2\":" ACTIVE, NULL, both) == 0);
    TEST_CHECK(versions("2", "\"v1\":" ACTIVE, NULL, both) == 1 && strstr(found.text, "v2 is served"));
    /* gone: deprecated in release 2, so in 4 at the earliest */
    TEST_CHECK(versions("2", "\"v1\":" DEPRECATED_2 ",\"v2\":" ACTIVE, NULL, second) == 1);
    TEST_CHECK(versions("3", "\"v1\":" DEPRECATED_2 ",\"v2\":" ACTIVE, NULL, second) == 1 &&
               strstr(found.text, "stays until release 4 (CTL-026)"));
    TEST_CHECK(versions("4", "\"v1\":" DEPRECATED_2 ",\"v2\":" ACTIVE, NULL, second) == 0);
    TEST_CHECK(versions("9", "\"v1\":" ACTIVE ",\"v2\":" ACTIVE, NULL, second) == 1 &&
               strstr(found.text, "was never deprecated"));
    /* a row that was left out counts as the base has it */
    TEST_CHECK(versions("3", "\"v2\":" ACTIVE, "\"v1\":" DEPRECATED_2, second) == 1);
    TEST_CHECK(versions("4", "\"v2\":" ACTIVE, "\"v1\":" DEPRECATED_2, second) == 0);
    TEST_CHECK(versions("4", "\"v2\":" ACTIVE, "\"v1\":" ACTIVE, second) == 1);
    TEST_CHECK(versions("\"x\"", "\"v1\":" ACTIVE, NULL, PATHS("/v1/jobs")) == 1 &&
               strstr(found.text, "x-release"));
}

/* What may stand in api.versions are the versions that the contract declares, and nobody else's. */
static void active_versions(void)
{
    struct contracts *contracts = contracts_here();
    const struct json_text *json = schemas_document(contracts_schemas(contracts, CONTRACT_OPS));
    const struct json_node *info = json_member(json, json_root(json), "info"),
                           *list = json_member(json, info, "x-path-versions");
    const char *words = option_table[OPTION_api_versions].unit;
    uint32_t count = 0;
    TEST_ASSERT(list != NULL);
    for (; *words; count++) {
        char name[16];
        size_t size = strcspn(words, "|");
        snprintf(name, sizeof(name), "%.*s", (int)size, words);
        TEST_CHECK_(json_member(json, list, name) != NULL, "%s", name);
        words += size + (words[size] == '|');
    }
    TEST_CHECK(count == list->count);
    contracts_destroy(contracts);
}

TEST_LIST
= {
    {"CTL-019 CTL-301 the documents byte for byte", documents},
    {"AMB-53 the event contract for strict parsers", strict},
    {"CTL-284 the catalogue", errors},
    {"what there is nothing of", unknown},
    {"every operation has a route", routes_all},
    {"an operation without a route is a finding", route_missing},
    {"a route without an operation is a finding", route_undocumented},
    {"CTL-416 CTL-418..CTL-423 events, their schemas and classes", events},
    {"no channel without events", events_of_every_channel},
    {"CTL-026 versions of paths, and when one may go", path_versions},
    {"CTL-027 the versions that may be active are those of the contract", active_versions},
    {"CTL-064 CTL-065 CTL-066 CTL-434 beside an older version", base},
    {NULL, NULL},
};
