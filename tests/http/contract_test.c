/* The contracts in the binary: as they were given, compiled whole, and enforced as their specification says. */
#include "acutest.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/contract.h"
#include "store/checksum.h"

static struct contracts *contracts;

static const struct contracts *all(void)
{
    char text[512] = "";
    if (!contracts)
        contracts = contracts_create(text, sizeof(text));
    TEST_ASSERT_(contracts != NULL, "%s", text);
    return contracts;
}

/* ---- the documents ---- */

static void digest(struct span bytes, char hex[65])
{
    unsigned char raw[EVP_MAX_MD_SIZE];
    unsigned size;
    TEST_ASSERT(EVP_Digest(bytes.bytes, bytes.size, raw, &size, EVP_sha256(), NULL) == 1 && size == 32);
    for (int i = 0; i < 32; i++)
        snprintf(hex + 2 * i, 3, "%02x", raw[i]);
}

/* What was given stays as it was given: an edit of these must be an edit here. */
static void verbatim(void)
{
    static const struct {
        enum contract contract;
        const char *sha256;
    } given[] = {
        {CONTRACT_CONTROL, "7e2dd9f421d79f1e8608bf72ab10f7e66e7dd966e3a1f1339e97708104adef55"},
        {CONTRACT_EVENTS, "9bee25f5ad55d1164317133a24399d798e76023834dd25aa1502e696f6d18ba3"},
        {CONTRACT_JOBS, "ab76efbad9a24f925bdbf818378d5b24d46e72f9441e3edba9fa25617ca01b4f"},
    };
    char hex[65];
    for (size_t i = 0; i < sizeof(given) / sizeof(*given); i++) {
        digest(contract_yaml(given[i].contract), hex);
        TEST_CHECK_(strcmp(hex, given[i].sha256) == 0, "%s is %s", contract_name(given[i].contract), hex);
    }
}

static void same_as_the_file(struct span embedded, const char *path)
{
    char *text = malloc(embedded.size + 1);
    FILE *file = fopen(path, "r");
    TEST_ASSERT_(file && text, "%s can be read", path);
    size_t size = fread(text, 1, embedded.size + 1, file);
    TEST_CHECK_(size == embedded.size && memcmp(text, embedded.bytes, size) == 0, "%s", path);
    fclose(file);
    free(text);
}

static void embedded(void)
{
#define X(id, name, file, kind)                                                              \
    same_as_the_file(contract_yaml(CONTRACT_##id), "docs/contract/" file ".yaml");           \
    same_as_the_file(contract_json(CONTRACT_##id), "docs/contract/generated/" file ".json"); \
    TEST_CHECK(strcmp(contract_name(CONTRACT_##id), name) == 0);                             \
    TEST_CHECK(contract_kind(CONTRACT_##id) == CONTRACT_##kind);
    CONTRACTS(X)
#undef X
    same_as_the_file(contract_events_text(), "docs/contract/control.events.tsv");
}

static void etags(void)
{
    all();
    for (enum contract c = 0; c < CONTRACT_COUNT; c++) {
        char expected[32];
        struct span text = contract_json(c);
        snprintf(expected, sizeof(expected), "\"%016llx\"",
                 (unsigned long long)checksum(0, text.bytes, text.size));
        TEST_CHECK_(strcmp(contract_etag(c), expected) == 0, "%s", contract_etag(c));
        for (enum contract other = 0; other < c; other++)
            TEST_CHECK(strcmp(contract_etag(c), contract_etag(other)) != 0);
    }
}

static bool text_is(const struct json_text *json, const struct json_node *node, const char *text)
{
    char room[256];
    struct span value;
    return node && json_string_of(json, node, room, sizeof(room), &value) &&
           span_equal(value, span_text(text));
}

static const struct json_node *at(const struct json_text *json, const char *a, const char *b)
{
    const struct json_node *node = json_member(json, json_root(json), a);
    return node && b ? json_member(json, node, b) : node;
}

static void control_document(void)
{
    const struct json_text *json = schemas_document(contracts_schemas(all(), CONTRACT_CONTROL));
    TEST_CHECK(text_is(json, at(json, "openapi", NULL), "3.1.0"));
    TEST_CHECK(text_is(json, at(json, "info", "title"), "RIAS Control API"));
    TEST_CHECK(text_is(json, at(json, "info", "version"), "1.0.0"));
    const struct json_node *servers = at(json, "servers", NULL);
    TEST_CHECK(servers->count == 1);
    TEST_CHECK(
        text_is(json, json_member(json, json_first(json, servers), "url"), "https://rias-control.internal"));
    TEST_CHECK(at(json, "paths", NULL)->count == 9);
}

static void event_document(void)
{
    const struct json_text *json = schemas_document(contracts_schemas(all(), CONTRACT_EVENTS));
    TEST_CHECK(text_is(json, at(json, "asyncapi", NULL), "3.0.0"));
    TEST_CHECK(text_is(json, at(json, "info", "title"), "RIAS Job Events"));
    TEST_CHECK(text_is(json, at(json, "info", "version"), "1.0.0"));
    TEST_CHECK(at(json, "channels", NULL)->count == 20);
    TEST_CHECK(at(json, "components", "messages")->count == 2);
}

/* ---- operations ---- */

static const struct contract_operation *operation(const char *method, const char *path)
{
    const struct contract_operation *o = contracts_operation(all(), method, path);
    TEST_ASSERT_(o != NULL, "%s %s", method, path);
    return o;
}

static void nine_operations(void)
{
    static const struct {
        const char *id, *method, *path;
        int answer;
        bool body;
        uint32_t parameters;
    } wanted[] = {
        {"submitJob", "POST", "/jobs:submit", 202, true, 0},
        {"getJob", "GET", "/jobs/{job_id}", 200, false, 1},
        {"cancelJob", "POST", "/jobs/{job_id}:cancel", 202, true, 1},
        {"approveJob", "POST", "/jobs/{job_id}:approve", 200, true, 1},
        {"rejectJob", "POST", "/jobs/{job_id}:reject", 200, true, 1},
        {"decideJob", "POST", "/jobs/{job_id}:decision", 200, true, 1},
        {"listDlqItems", "GET", "/dlq/items", 200, false, 5},
        {"reprocessDlqItem", "POST", "/dlq/items/{event_id}:reprocess", 202, true, 1},
        {"bulkReprocessDlqItems", "POST", "/dlq/items:reprocess-bulk", 202, true, 0},
    };
    for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
        const struct contract_operation *o = operation(wanted[i].method, wanted[i].path);
        TEST_CHECK_(strcmp(o->id, wanted[i].id) == 0, "%s", o->id);
        TEST_CHECK(o->contract == CONTRACT_CONTROL);
        TEST_CHECK((o->body != NULL) == wanted[i].body && o->body_required == wanted[i].body);
        TEST_CHECK_(o->parameters_count == wanted[i].parameters, "%u", o->parameters_count);
        TEST_CHECK(o->answers_count == 1 && o->answers[0].status == wanted[i].answer);
    }
    size_t control = 0, jobs = 0;
    const struct contract_operation *o;
    for (size_t i = 0; (o = contracts_each(all(), i)); i++) {
        control += o->contract == CONTRACT_CONTROL;
        jobs += o->contract == CONTRACT_JOBS;
    }
    TEST_CHECK_(control == 9, "%zu", control);
    TEST_CHECK_(jobs == 13, "%zu", jobs);
    TEST_CHECK(!contracts_operation(all(), "PUT", "/jobs:submit"));
    TEST_CHECK(
        !contracts_operation(all(), "GET", "/v1/dlq/items")); /* an alias, which only the routes know */
}

static void job_operations(void)
{
    const struct contract_operation *o = operation("POST", "/v1/clients/{client_id}/keys");
    TEST_CHECK(strcmp(o->id, "createApiKey") == 0 && o->contract == CONTRACT_JOBS);
    TEST_CHECK(o->body && !o->body_required);
    TEST_CHECK(o->parameters_count == 2);
    TEST_CHECK(strcmp(o->parameters[0].name, "client_id") == 0 && o->parameters[0].in == PARAMETER_PATH &&
               o->parameters[0].required && o->parameters[0].schema);
    TEST_CHECK(strcmp(o->parameters[1].name, "Idempotency-Key") == 0 &&
               o->parameters[1].in == PARAMETER_HEADER && !o->parameters[1].required);
    o = operation("GET", "/v1/jobs");
    TEST_CHECK(o->parameters_count == 5 && !o->body);
    TEST_CHECK(o->answers[0].status == 200 && strcmp(o->answers[0].type, "application/json") == 0);
    bool common = false;
    for (uint32_t i = 0; i < o->answers_count; i++)
        common |= o->answers[i].status == 0 && strcmp(o->answers[i].type, "application/problem+json") == 0 &&
                  o->answers[i].schema;
    TEST_CHECK(common);
    const struct contract_operation *bare = contracts_operation(all(), "GET", "/jobs");
    TEST_CHECK(!bare || bare->contract == CONTRACT_OPS); /* on the operator's listener alone */
}

/* ---- what is enforced ---- */

enum { NODES = 512 };

static bool fits(const struct schema *schema, const char *text)
{
    struct json_node nodes[NODES];
    struct json_text json = {.nodes = nodes, .nodes_max = NODES};
    struct json_limits limits = {0};
    struct json_error error;
    struct schema_result result;
    TEST_ASSERT_(json_text_read(&json, span_text(text), &limits, &error), "%s: %s", text, error.what);
    return schema_check(schema, &json, json_root(&json), &result);
}

#define META                                                                                          \
    "\"meta\":{\"schema_version\":\"v1\",\"request_id\":\"r\",\"trace_id\":\"t\",\"actor_id\":\"a\"," \
    "\"project_id\":\"p\"}"
#define SUBMIT(more) \
    "{" META ",\"idempotency_key\":\"k\",\"intent\":\"i\",\"risk_tier\":\"A\",\"payload\":{}" more "}"
#define UUID "\"0190f5e2-6b1c-7a53-9f6e-2d1f0a7c4b11\""

static void bodies(void)
{
    static const struct {
        const char *path, *text;
        bool valid;
    } wanted[] = {
        {"/jobs:submit",
         "{" META ",\"idempotency_key\":\"k\",\"intent\":\"i\",\"risk_tier\":\"A\",\"payload\":{}}", true},
        {"/jobs:submit",
         "{" META ",\"idempotency_key\":\"k\",\"intent\":\"i\",\"risk_tier\":\"a\",\"payload\":{}}", false},
        {"/jobs:submit", "{" META ",\"idempotency_key\":\"k\",\"intent\":\"i\",\"risk_tier\":\"A\"}", false},
        {"/jobs:submit", SUBMIT(",\"parent_job_id\":null,\"more\":1"), true},
        {"/jobs/{job_id}:cancel", "{" META ",\"idempotency_key\":\"k\",\"reason\":\"r\"}", true},
        {"/jobs/{job_id}:cancel", "{" META ",\"idempotency_key\":\"k\",\"reason\":\"\"}", false},
        {"/jobs/{job_id}:decision",
         "{" META ",\"idempotency_key\":\"k\",\"reason\":\"r\",\"decision\":\"defer\"}", true},
        {"/jobs/{job_id}:decision",
         "{" META ",\"idempotency_key\":\"k\",\"reason\":\"r\",\"decision\":\"maybe\"}", false},
        {"/dlq/items:reprocess-bulk", "{" META ",\"idempotency_key\":\"k\",\"event_ids\":[" UUID "]}", true},
        {"/dlq/items:reprocess-bulk", "{" META ",\"idempotency_key\":\"k\",\"event_ids\":[]}", false},
        {"/dlq/items:reprocess-bulk", "{" META ",\"idempotency_key\":\"k\",\"event_ids\":[\"x\"]}", false},
        {"/v1/jobs", "{\"type\":\"EXECUTE\"}", true},
        {"/v1/jobs", "{\"type\":\"INSTANT\"}", false},
        {"/v1/jobs", "{}", false},
        {"/v1/jobs", "{\"type\":\"DEFERRED\",\"execution_at\":\"2030-01-01T00:00:00Z\"}", true},
        {"/v1/jobs", "{\"type\":\"DEFERRED\",\"execution_at\":\"2030-01-01T00:00:00+01:00\"}", false},
        {"/v1/jobs", "{\"type\":\"EXECUTE\",\"callback\":\"ftp://h/x\"}", false},
        {"/v1/webhooks", "{\"url\":\"https://h/x\",\"events\":[\"*\"]}", true},
        {"/v1/webhooks", "{\"url\":\"https://h/x\",\"events\":[\"job.done\"]}", false},
        {"/v1/clients", "{}", true},
        {"/v1/clients", "{\"a\":1}", false},
    };
    for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++)
        TEST_CHECK_(fits(operation("POST", wanted[i].path)->body, wanted[i].text) == wanted[i].valid, "%s %s",
                    wanted[i].path, wanted[i].text);
}

/* ---- events ---- */

static void event_names(void)
{
    struct contract_event row;
    size_t position = 0, jobs = 0, others = 0;
    while (contract_event_next(contract_events_text(), &position, &row)) {
        char name[128];
        snprintf(name, sizeof(name), "%.*s", (int)row.name.size, (const char *)row.name.bytes);
        strncmp(name, "job.", 4) == 0 ? jobs++ : others++;
        TEST_CHECK_(contracts_event(all(), name) != NULL, "%s", name);
    }
    TEST_CHECK(position == contract_events_text().size);
    TEST_CHECK_(jobs == 13, "%zu", jobs);
    TEST_CHECK_(others == 62, "%zu", others);
    TEST_CHECK(!contracts_event(all(), "budget.anomaly"));
    TEST_CHECK(!contracts_event(all(), ""));
    TEST_CHECK(!contracts_event(all(), "job.waiting_human")); /* another name of a channel, not of an event */
}

#define PROVISION                                                                                       \
    "\"agent_template_id\":\"t\",\"agent_instance_id\":\"i\",\"capability_set\":[\"c\"],\"change_risk_" \
    "score\":100,\"hitl_required\":false"
#define MEMORY(mutation, result)                                                                         \
    "\"agent_instance_id\":\"i\",\"memory_scope\":\"job\",\"memory_record_id\":\"r\",\"mutation_type\":" \
    "\"" mutation "\",\"classification\":\"public\",\"result\":\"" result "\""
#define INGRESS(mode)                                                                                     \
    "{\"source_channel\":\"human_chat\",\"source_system\":\"s\",\"source_message_id\":\"m\",\"connector_" \
    "id\":\"c\","                                                                                         \
    "\"normalization_version\":\"1\",\"auth_context\":{\"auth_mode\":\"" mode                             \
    "\",\"verification_result\":\"passed\",\"replay_check\":\"passed\"}}"

static void event_details(void)
{
    static const struct {
        const char *name, *text;
        bool valid;
    } wanted[] = {
        {"ingress.message.received", INGRESS("hmac"), true},
        {"ingress.message.received", INGRESS("none"), false},
        {"agent.provision.started", "{" PROVISION "}", true},
        {"agent.provision.requested", "{" PROVISION "}", false},
        {"agent.provision.requested", "{" PROVISION ",\"deduplication_key\":\"k\"}", true},
        {"agent.provision.failed", "{" PROVISION ",\"failure_reason\":\"f\"}", false},
        {"agent.provision.failed", "{" PROVISION ",\"failure_reason\":\"f\",\"rollback_steps\":[]}", true},
        {"agent.provision.rolled_back", "{" PROVISION "}", false},
        {"agent.deprovision.failed", "{\"agent_instance_id\":\"i\",\"reason\":\"r\",\"result\":\"failed\"}",
         true},
        {"agent.deprovision.failed",
         "{\"agent_instance_id\":\"i\",\"reason\":\"r\",\"result\":\"completed\"}", false},
        {"agent.memory.write.applied", "{" MEMORY("write", "applied") "}", true},
        {"agent.memory.write.applied", "{" MEMORY("delete", "applied") "}", false},
        {"agent.memory.write.rejected", "{" MEMORY("write", "rejected") "}", false},
        {"agent.memory.write.rejected", "{" MEMORY("write", "rejected") ",\"rejection_reason\":\"r\"}", true},
        {"improvement.scheduler.failed", "{\"failure_class\":\"internal_error\"}", true},
        {"improvement.scheduler.failed", "{\"failure_class\":\"misfire_bounds_exceeded\"}", false},
        {"improvement.scheduler.failed",
         "{\"failure_class\":\"misfire_bounds_exceeded\",\"misfire_window\":{\"start_at\":\"2030-01-01T00:00:"
         "00Z\","
         "\"end_at\":\"2030-01-01T00:00:00Z\"}}",
         true},
        {"hitl.reminder.sent", "{\"event_class\":\"operations\"}", true},
        {"hitl.reminder.sent", "{\"event_class\":\"improvement\"}", false},
        {"hitl.reminder.sent", "{\"event_class\":\"\"}", false},
        {"hitl.reminder.sent", "{}", false},
        {"scheduler.leader.elected", "{\"event_class\":\"scheduler\",\"term\":3}", true},
        {"job.done", "{\"anything\":1}", true},
        {"job.done", "[]", false},
    };
    for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++)
        TEST_CHECK_(fits(contracts_event(all(), wanted[i].name), wanted[i].text) == wanted[i].valid, "%s %s",
                    wanted[i].name, wanted[i].text);
}

TEST_LIST
= {
    {"CTL-019 CTL-301 the documents are those that were given", verbatim},
    {"the binary has the files as they are", embedded},
    {"an ETag is the checksum, and each has its own", etags},
    {"CTL-019 the control contract", control_document},
    {"CTL-301 the event contract", event_document},
    {"CTL-001..CTL-014 nine operations of the control contract", nine_operations},
    {"JOB-098 JOB-101 operations of the job contract stand below /v1", job_operations},
    {"CTL-029..CTL-047 JOB-301..JOB-305 bodies by their schemas", bodies},
    {"CTL-342..CTL-406 62 events and 13 of jobs, each with details", event_names},
    {"CTL-322..CTL-341 CTL-407..CTL-417 details by the event's name", event_details},
    {NULL, NULL},
};
