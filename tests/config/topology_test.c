#include "acutest.h"

#include <stdio.h>
#include <string.h>

#include "config/topology.h"
#include "runtime/telemetry.h"

/* ---- the table itself ---- */

static void test_the_table_passes(void)
{
    char text[512] = "";
    TEST_CHECK(topology_check(topology_rows, topology_count, text, sizeof(text)) == OK);
    TEST_MSG("%s", text);
}

static const struct topology_row *row(const char *name)
{
    const struct topology_row *r = topology_find(topology_rows, topology_count, name);
    TEST_ASSERT_(r != NULL, "there is a row %s", name);
    return r;
}

/* As the matrix of the contract has it, and AMB-T-03 and AMB-T-06 for the rest. */
static const struct {
    const char *name, *owner;
    uint32_t restarts, seconds;
} expected[] = {
    {"root", "root supervisor", 3, 10},
    {"registry.rooms", "root supervisor", 3, 10},
    {"registry.agents", "root supervisor", 3, 10},
    {"registry.instances", "root supervisor", 3, 10},
    {"bus", "root supervisor", 3, 10},
    {"deduper", "root supervisor", 3, 10},
    {"runtime", "root supervisor", 3, 10},
    {"rooms", "room supervisor", 20, 60},
    {"agents", "agent supervisor", 10, 60},
    {"instances", "instance supervisor", 6, 30},
    {"instance:<instance_id>", "instance subtree supervisor", 5, 30},
    {"outbound", "outbound gateway supervisor", 30, 60},
    {"sessions", "session manager supervisor", 15, 60},
    {"operations", "onboarding supervisor / replay supervisor", 10, 60},
    {"onboarding", "onboarding supervisor", 10, 60},
    {"replay", "replay supervisor", 10, 60},
    {"scheduler", "scheduler supervisor", 30, 60},
    {"workers", "worker supervisor", 30, 60},
    {"runs", "run supervisor", 20, 60},
    {"control", "control supervisor", 15, 60},
    {"ingest", "ingest supervisor", 30, 60},
    {"relay", "relay supervisor", 15, 60},
    {"front", "front supervisor", 30, 60},
};

static void test_owners_strategies_and_intensities(void)
{
    for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++) {
        const struct topology_row *r = row(expected[i].name);
        TEST_CASE(expected[i].name);
        TEST_CHECK(strcmp(r->owner, expected[i].owner) == 0);
        TEST_CHECK(r->max_restarts == expected[i].restarts && r->max_seconds == expected[i].seconds);
        TEST_CHECK(r->strategy == ONE_FOR_ONE);
    }
}

static void test_start_order(void)
{
    static const char *const order[] = {"store",   "registry.rooms", "registry.agents", "registry.instances",
                                        "bus",     "rooms",          "agents",          "instances",
                                        "deduper", "runtime"};
    for (size_t i = 0; i + 1 < sizeof(order) / sizeof(*order); i++)
        TEST_CHECK_(row(order[i]) < row(order[i + 1]), "%s stands before %s", order[i], order[i + 1]);
    for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++)
        TEST_CHECK_(strcmp(row(order[i])->parent, "root") == 0, "%s stands under the root", order[i]);
    TEST_CHECK(row("rooms")->kind == TOPOLOGY_DYNAMIC && row("agents")->kind == TOPOLOGY_DYNAMIC &&
               row("instances")->kind == TOPOLOGY_DYNAMIC);
    TEST_CHECK(strcmp(row("instance:<instance_id>")->parent, "instances") == 0);
    TEST_CHECK(topology_per_key(row("instance:<instance_id>")) && !topology_per_key(row("instances")));
    TEST_CHECK(strcmp(row("onboarding")->parent, "operations") == 0 &&
               strcmp(row("replay")->parent, "operations") == 0);
}

static void test_partition_keys(void)
{
    TEST_CHECK(strcmp(row("rooms")->partition_key, "room_id") == 0);
    TEST_CHECK(strcmp(row("instances")->partition_key, "instance_id") == 0);
    TEST_CHECK(strcmp(row("ingest")->partition_key, "hash(instance_id \":\" room_id)") == 0);
    TEST_CHECK(strcmp(row("outbound")->partition_key, "hash(instance_id \":\" external_room_id)") == 0);
    TEST_CHECK(strcmp(row("sessions")->partition_key, "hash(session_key)") == 0);
    TEST_CHECK(strcmp(row("onboarding")->partition_key, "onboarding_id") == 0);
    TEST_CHECK(strcmp(row("replay")->partition_key, "hash(dead_letter_id)") == 0);
}

/* ---- the files of the contract, where they lie beside the repository ---- */

enum { COLUMNS_MAX = 12 };

/* Calls check for each line behind the head, cut at its tabs. False: the file isn't here. */
static bool each_line(const char *path, void (*check)(char *columns[COLUMNS_MAX]))
{
    char line[2048];
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    for (bool head = true; fgets(line, sizeof(line), file); head = false) {
        char *columns[COLUMNS_MAX] = {0}, *rest = line;
        line[strcspn(line, "\n")] = 0;
        for (int i = 0; i < COLUMNS_MAX && rest; i++)
            columns[i] = strsep(&rest, "\t");
        if (!head && columns[0] && columns[0][0])
            check(columns);
    }
    fclose(file);
    return true;
}

static unsigned checked;

/* subsystem owner supervisor strategy max_restarts max_seconds restart_intensity failure_domain_intent */
static void check_matrix_line(char *columns[COLUMNS_MAX])
{
    char intensity[32];
    const struct topology_row *r = NULL;
    for (size_t i = 0; i < topology_count && !r; i++)
        if (strcmp(topology_rows[i].subsystem, columns[0]) == 0)
            r = &topology_rows[i];
    TEST_CASE(columns[0]);
    checked++;
    if (!TEST_CHECK(r != NULL))
        return;
    TEST_CHECK(strcmp(r->owner, columns[1]) == 0);
    TEST_CHECK(strcmp(r->supervisor, columns[2]) == 0);
    TEST_CHECK(strcmp(strategy_name(r->strategy), columns[3]) == 0);
    snprintf(intensity, sizeof(intensity), "%u/%us", r->max_restarts, r->max_seconds);
    TEST_CHECK(strcmp(intensity, columns[6]) == 0);
    TEST_CHECK(strcmp(r->intent, columns[7]) == 0);
}

static const char *dimensions_of(const char *event, char text[256])
{
    text[0] = 0;
    for (int e = 0; e < TELEMETRY_EVENT_COUNT; e++)
        for (unsigned d = 0; d < TELEMETRY_DIMENSION_COUNT &&
                             strcmp(event, telemetry_event_name((enum telemetry_event)e)) == 0;
             d++)
            if (telemetry_required((enum telemetry_event)e) >> d & 1) {
                strcat(text, telemetry_dimension_name((enum telemetry_dimension)d));
                strcat(text, ",");
            }
    return text;
}

/* The same names, whatever their order. */
static bool same_dimensions(const char *event, const char *listed)
{
    char required[256], copy[256], *rest = copy, *word;
    size_t length = 0;
    snprintf(copy, sizeof(copy), "%s", listed);
    dimensions_of(event, required);
    while ((word = strsep(&rest, ",")) != NULL) {
        char wanted[64];
        snprintf(wanted, sizeof(wanted), "%s,", word);
        const char *at = strstr(required, wanted);
        if (!at || (at != required && at[-1] != ','))
            return false;
        length += strlen(wanted);
    }
    return length == strlen(required);
}

/* failure_mode class immediate_handling supervisor_action required_dimensions event_name_default */
static void check_crash_line(char *columns[COLUMNS_MAX])
{
    const struct topology_failure *f = NULL;
    for (size_t i = 0; i < topology_count; i++)
        for (size_t k = 0; k < TOPOLOGY_FAILURES_MAX && topology_rows[i].failures[k]; k++)
            if (strcmp(topology_rows[i].failures[k]->mode, columns[0]) == 0)
                f = topology_rows[i].failures[k];
    TEST_CASE(columns[0]);
    checked++;
    if (!TEST_CHECK(f != NULL))
        return;
    TEST_CHECK(strcmp(f->class, columns[1]) == 0);
    TEST_CHECK(strcmp(f->handling, columns[2]) == 0);
    TEST_CHECK(strcmp(f->action, columns[3]) == 0);
    TEST_CHECK(strcmp(f->event, columns[5]) == 0);
    TEST_CHECK(same_dimensions(f->event, columns[4]));
}

/* capability sli metric baseline_target pressure_thresholds event required_dimensions */
static void check_slo_line(char *columns[COLUMNS_MAX])
{
    const struct topology_slo *s = NULL;
    for (size_t i = 0; i < topology_count; i++)
        for (size_t k = 0; k < TOPOLOGY_SLOS_MAX && topology_rows[i].slos[k]; k++)
            if (strcmp(topology_rows[i].slos[k]->capability, columns[0]) == 0)
                s = topology_rows[i].slos[k];
    TEST_CASE(columns[0]);
    checked++;
    if (!TEST_CHECK(s != NULL))
        return;
    TEST_CHECK(strcmp(s->sli, columns[1]) == 0);
    TEST_CHECK(strcmp(s->metric, columns[2]) == 0);
    TEST_CHECK(strcmp(s->target, columns[3]) == 0);
    TEST_CHECK(strcmp(s->thresholds, columns[4]) == 0);
    TEST_CHECK(strcmp(s->event, columns[5]) == 0);
    TEST_CHECK(same_dimensions(s->event, columns[6]));
}

static void check_file(const char *path, void (*check)(char *columns[COLUMNS_MAX]), unsigned lines)
{
    checked = 0;
    if (each_line(path, check))
        TEST_CHECK_(checked == lines, "%s has %u lines, %u are expected", path, checked, lines);
}

static void test_the_files_of_the_contract(void)
{
    check_file("../shared/spec/topology.matrix.tsv", check_matrix_line, 8);
    check_file("../shared/spec/topology.crash_policy.tsv", check_crash_line, 7);
    check_file("../shared/spec/topology.slo.tsv", check_slo_line, 6);
}

/* The same without the files: these seven modes and six targets, in these words. */
static void test_crash_classes_and_targets(void)
{
    char crash[][6][80] = {
        {"Runtime boot config invalid", "fatal", "failure.boot_config"},
        {"Adapter initialization fails", "fatal", "failure.adapter_init"},
        {"Channel listener transient disconnect", "recoverable", "failure.listener_disconnect"},
        {"Outbound provider rate-limit", "recoverable", "failure.outbound_provider"},
        {"Poison message", "degraded", "failure.poison_message"},
        {"Policy/security module timeout", "degraded", "failure.policy_timeout"},
        {"Repeated startup failures", "fatal", "failure.restart_exhausted"},
    };
    static const char *const targets[] = {
        "<= 100ms", "<= 50ms", ">= 99.5%", "<= 60_000ms", "< 0.70 steady-state", "0 cross-domain cascades"};
    for (size_t c = 0; c < sizeof(crash) / sizeof(*crash); c++) {
        unsigned found = 0;
        for (size_t i = 0; i < topology_count; i++)
            for (size_t k = 0; k < TOPOLOGY_FAILURES_MAX && topology_rows[i].failures[k]; k++) {
                const struct topology_failure *f = topology_rows[i].failures[k];
                found += strncmp(f->mode, crash[c][0], strlen(crash[c][0])) == 0 &&
                         strcmp(f->class, crash[c][1]) == 0 && strcmp(f->event, crash[c][2]) == 0;
            }
        TEST_CHECK_(found > 0, "%s", crash[c][0]);
    }
    for (size_t t = 0; t < sizeof(targets) / sizeof(*targets); t++) {
        unsigned found = 0;
        for (size_t i = 0; i < topology_count; i++)
            for (size_t k = 0; k < TOPOLOGY_SLOS_MAX && topology_rows[i].slos[k]; k++)
                found += strcmp(topology_rows[i].slos[k]->target, targets[t]) == 0;
        TEST_CHECK_(found > 0, "%s", targets[t]);
    }
}

/* ---- the review gate: a good row, and one thing wrong with it at a time ---- */

static const struct actor_class some_class = {.name = "some"};
static const struct topology_failure some_failure = {.mode = "It breaks",
                                                     .class = "recoverable",
                                                     .handling = "Contain.",
                                                     .action = "Restart.",
                                                     .event = "actor.crash"};
static const struct topology_slo some_slo = {.capability = "Containment",
                                             .sli = "cascades",
                                             .metric = "cascade_count",
                                             .target = "0",
                                             .thresholds = "critical >= 1",
                                             .event = "supervisor.escalation"};

/* A root and one worker under it; what is broken is in these, so that a case may change any of it. */
static struct topology_row rows[2];
static struct topology_failure failure;
static struct topology_slo slo;
static char refusal[512];

static void good_rows(void)
{
    failure = some_failure;
    slo = some_slo;
    rows[0] = (struct topology_row){
        .name = "root",
        .parent = "",
        .kind = TOPOLOGY_SUPERVISOR,
        .subsystem = "Root",
        .intent = "Keep alive.",
        .owner = "root supervisor",
        .supervisor = "root supervisor",
        .max_restarts = 3,
        .max_seconds = 10,
        .partition_key = "none",
        .scaling_rule = "One.",
        .failures = {&some_failure},
        .slos = {&some_slo},
        .events = {"supervisor.restart"},
    };
    rows[1] = rows[0];
    rows[1].name = "thing";
    rows[1].parent = "root";
    rows[1].kind = TOPOLOGY_WORKER;
    rows[1].class = &some_class;
    rows[1].failures[0] = &failure;
    rows[1].slos[0] = &slo;
}

static void refused(const char *says, const char *says_too)
{
    refusal[0] = 0;
    TEST_CHECK(topology_check(rows, 2, refusal, sizeof(refusal)) == ERR_INVALID);
    TEST_CHECK_(strstr(refusal, "\"thing\"") != NULL, "'%s' names the row", refusal);
    TEST_CHECK_(strstr(refusal, says) != NULL, "'%s' says '%s'", refusal, says);
    TEST_CHECK_(strstr(refusal, says_too) != NULL, "'%s' says '%s'", refusal, says_too);
    good_rows();
    TEST_CHECK(topology_check(rows, 2, refusal, sizeof(refusal)) == OK);
}

static void test_gate_1_owner_and_supervisor(void)
{
    good_rows();
    rows[1].owner = "";
    refused("owner is empty", "TOP-160");
    rows[1].owner = NULL;
    refused("owner is empty", "TOP-160");
    rows[1].supervisor = "";
    refused("supervisor is empty", "TOP-160");
}

static void test_gate_2_strategy_and_intensity(void)
{
    good_rows();
    rows[1].max_restarts = 0;
    refused("intensity is 0/10s", "<n>/<m>s");
    rows[1].max_seconds = 0;
    refused("intensity is 3/0s", "<n>/<m>s");
    rows[0].max_restarts = rows[1].max_restarts = SUPERVISOR_INTENSITY_MAX;
    TEST_CHECK(topology_check(rows, 2, refusal, sizeof(refusal)) == OK);
    rows[1].max_restarts = 4;
    refused("intensity is 4/10s", "that of its supervisor \"root\"");
    rows[1].strategy = (enum strategy)17;
    refused("strategy is 17", "one_for_one");
    rows[1].strategy = DYNAMIC;
    refused("strategy is", "one_for_one");
    rows[1].strategy = ONE_FOR_ALL;
    refused("strategy is one_for_all", "TOP-070");
    rows[1].strategy = REST_FOR_ONE;
    rows[1].justification = "";
    refused("justification is empty", "TOP-070");
    rows[1].strategy = ONE_FOR_ALL;
    rows[1].justification = "They share one socket.";
    TEST_CHECK(topology_check(rows, 2, refusal, sizeof(refusal)) == OK);
}

/* A row that says nothing of its strategy is one_for_one. */
static void test_default_strategy(void)
{
    const struct topology_row silent = {.name = "silent"};
    TEST_CHECK(strcmp(strategy_name(silent.strategy), "one_for_one") == 0);
}

static void test_gate_3_crash_classes(void)
{
    good_rows();
    rows[1].failures[0] = NULL;
    refused("failures are empty", "TOP-162");
    failure.class = NULL;
    refused("class of failure \"It breaks\" is \"\"", "fatal, recoverable or degraded");
    failure.class = "bad";
    refused("is \"bad\"", "fatal, recoverable or degraded");
    failure.mode = "";
    refused("mode of failure 1 is empty", "TOP-162");
    failure.handling = NULL;
    refused("handling of a failure is empty", "TOP-162");
    failure.action = "";
    refused("supervisor action of a failure is empty", "TOP-162");
}

static void test_gate_4_partition_key_and_scaling_rule(void)
{
    good_rows();
    rows[1].partition_key = "";
    refused("partition_key is empty", "TOP-163");
    rows[1].scaling_rule = NULL;
    refused("scaling_rule is empty", "TOP-163");
}

static void test_gate_5_slo_target_and_thresholds(void)
{
    good_rows();
    rows[1].slos[0] = NULL;
    refused("SLOs are empty", "TOP-164");
    slo.target = "";
    refused("target of an SLO is empty", "TOP-164");
    slo.thresholds = NULL;
    refused("thresholds of an SLO is empty", "TOP-164");
    slo.metric = "";
    refused("metric of an SLO is empty", "TOP-164");
    slo.sli = "";
    refused("SLI of an SLO is empty", "TOP-164");
    slo.capability = "";
    refused("capability of an SLO is empty", "TOP-164");
}

static void test_gate_6_telemetry_events(void)
{
    good_rows();
    rows[1].events[0] = NULL;
    refused("telemetry events are empty", "TOP-165");
    rows[1].events[0] = "";
    refused("telemetry event of the row is empty", "TOP-165");
    rows[1].events[0] = "no.such_event";
    refused("\"no.such_event\"", "TOP-165");
    failure.event = NULL;
    refused("telemetry event of a failure is empty", "TOP-165");
    slo.event = "no.such_event";
    refused("telemetry event of an SLO is \"no.such_event\"", "TOP-165");
}

static void test_rows_stand_where_they_belong(void)
{
    good_rows();
    rows[1].parent = "nowhere";
    refused("parent is \"nowhere\"", "an earlier row");
    rows[1].parent = "";
    refused("parent is \"\"", "an earlier row");
    rows[1].parent = "thing";
    refused("parent is \"thing\"", "an earlier row");
    rows[1].class = NULL;
    refused("class is missing", "only workers");
    rows[1].kind = TOPOLOGY_SUPERVISOR;
    refused("class is some", "only workers");
    rows[1].subsystem = "";
    refused("subsystem is empty", "");
    rows[1].intent = "";
    refused("intent is empty", "");
    rows[0].kind = TOPOLOGY_DYNAMIC;
    TEST_CHECK(topology_check(rows, 2, refusal, sizeof(refusal)) == ERR_INVALID &&
               strstr(refusal, "the root must"));
    good_rows();
    rows[1].name = "root";
    TEST_CHECK(topology_check(rows, 2, refusal, sizeof(refusal)) == ERR_INVALID &&
               strstr(refusal, "an earlier row has"));
    good_rows();
    rows[1].name = "a name that is longer than names of subsystems may be";
    TEST_CHECK(topology_check(rows, 2, refusal, sizeof(refusal)) == ERR_INVALID &&
               strstr(refusal, "1 to 47 bytes"));
    good_rows();
    rows[0].parent = "thing";
    TEST_CHECK(topology_check(rows, 2, refusal, sizeof(refusal)) == ERR_INVALID &&
               strstr(refusal, "is the root"));
    TEST_CHECK(topology_check(rows, 0, refusal, sizeof(refusal)) == ERR_INVALID && strstr(refusal, "0 rows"));
}

/* ---- for readers ---- */

static void test_json_has_every_row_and_its_contract(void)
{
    static char page[256 * 1024];
    char member[128];
    struct json_sink sink;
    struct json json;
    json_sink_init(&sink, page, sizeof(page) - 1, NULL, NULL);
    json_init(&json, &sink);
    topology_write_json(&json, topology_rows, topology_count);
    TEST_CHECK(json_end(&json) == JSON_OK);
    page[sink.length] = 0;
    TEST_CHECK(strstr(page, "\"contract\":\"ST-OCM-000\"") != NULL);
    for (size_t i = 0; i < topology_count; i++) {
        snprintf(member, sizeof(member), "{\"name\":\"%s\",\"parent\":", topology_rows[i].name);
        TEST_CHECK_(strstr(page, member) != NULL, "%s", member);
    }
    TEST_CHECK(strstr(page, "\"intensity\":\"20/60s\"") != NULL);
}

TEST_LIST
= {
    {"TOP-001 TOP-024..TOP-026 the table passes its own gate", test_the_table_passes},
    {"TOP-027 TOP-032 TOP-037 TOP-042 TOP-047 TOP-052 TOP-057 TOP-062 owners, strategies, intensities",
     test_owners_strategies_and_intensities},
    {"TOP-023 start order and places", test_start_order},
    {"partition keys", test_partition_keys},
    {"TOP-028 TOP-033 TOP-038 TOP-043 TOP-048 TOP-053 TOP-058 TOP-063 the files of the contract",
     test_the_files_of_the_contract},
    {"TOP-071 TOP-072 TOP-076 TOP-080 TOP-084 TOP-088 TOP-092 TOP-096 crash classes and targets",
     test_crash_classes_and_targets},
    {"TOP-160 no row without owner and supervisor", test_gate_1_owner_and_supervisor},
    {"TOP-161 TOP-070 no row without strategy and intensity", test_gate_2_strategy_and_intensity},
    {"TOP-069 one_for_one is the default", test_default_strategy},
    {"TOP-162 no row without crash classes", test_gate_3_crash_classes},
    {"TOP-163 no row without partition key and scaling rule", test_gate_4_partition_key_and_scaling_rule},
    {"TOP-164 no row without SLO target and thresholds", test_gate_5_slo_target_and_thresholds},
    {"TOP-165 no row without telemetry events", test_gate_6_telemetry_events},
    {"TOP-166 rows stand where they belong", test_rows_stand_where_they_belong},
    {"TOP-005 the JSON has every row and its contract", test_json_has_every_row_and_its_contract},
    {NULL, NULL},
};
