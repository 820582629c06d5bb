/* The control surface without its domain: what stands before every command, and in which order. */
#define _GNU_SOURCE /* memmem */
#include "acutest.h"

#include "http/control.h"
#include "store/audit.h"
#include "store/store.h"
#include "store/token.h"
#include "tests/support/exchange.h"
#include "tests/support/stage.h"

#define ID "00000000-0000-4000-8000-000000000001"
#define META(version, actor, project)                                                                        \
    "\"meta\":{\"schema_version\":" version ",\"request_id\":\"r\",\"trace_id\":\"t\",\"actor_id\":\"" actor \
    "\",\"project_id\":\"" project "\"}"
#define GOOD META("\"v1\"", "alice", "p1")

static const struct route *route_of(const char *path)
{
    enum method method = strstr(path, "/dlq/items") && !strchr(path, ':') ? METHOD_GET : METHOD_POST;
    if (strcmp(path, "/jobs/{job_id}") == 0)
        method = METHOD_GET;
    return exchange_route(control_routes, control_routes_count, method, path);
}

static struct exchange *ask_as(const char *path, const char *param, const char *query, const char *body,
                               const struct identity *who)
{
    struct exchange *x = actor_alloc(sizeof(*x));
    exchange_begin(x, route_of(path), param, body);
    if (query)
        x->q.query = span_text(query);
    x->q.identity = *who;
    exchange_serve(x);
    return x;
}

static struct identity alice(void)
{
    struct identity who = {.kind = IDENTITY_TOKEN, .role = ROLE_OWNER, .projects_count = 1};
    who.subject = span_text("alice");
    who.projects[0] = span_text("p1");
    return who;
}

static struct exchange *ask(const char *path, const char *param, const char *body)
{
    struct identity who = alice();
    return ask_as(path, param, NULL, body, &who);
}

static bool is(const struct exchange *x, const char *names, const char *expected)
{
    return strcmp(exchange_member(x, names), expected) == 0;
}

static bool refused(const struct exchange *x, int status, const char *code)
{
    return x->r.status == status && is(x, "error.code", code) && strcmp(x->r.type, RESPONSE_JSON) == 0;
}

static void run(void (*body)(void))
{
    struct stage stage = {.real = false};
    TEST_CHECK(stage_run(&stage, body) == 0);
}

/* ---- routes ---- */

static void test_nine_operations_each_also_below_v1_CTL_023_AMB_01(void)
{
    uint32_t unprefixed = 0, prefixed = 0;
    for (size_t i = 0; i < control_routes_count; i++) {
        const struct route *r = &control_routes[i];
        bool below = strncmp(r->path, "/v1/", 4) == 0;
        TEST_CHECK(r->surface == SURFACE_CONTROL && r->auth == AUTH_TOKEN);
        TEST_CHECK(below ? r->alias_of && strcmp(r->path + 3, r->alias_of) == 0 : !r->alias_of);
        TEST_CHECK((r->method == METHOD_POST) == (r->body_max == 1048576 && r->changes && r->precheck));
        unprefixed += !below;
        prefixed += below;
        for (size_t k = 0; below && k < control_routes_count; k++)
            if (!control_routes[k].alias_of && strcmp(control_routes[k].path, r->alias_of) == 0)
                TEST_CHECK(control_routes[k].limit == r->limit && control_routes[k].roles == r->roles &&
                           control_routes[k].serve == r->serve);
    }
    TEST_CHECK(unprefixed == 9 && prefixed == 8); /* the ninth is the shared one */
    TEST_CHECK(strcmp(control_shared_job.path, "/v1/jobs/{job_id}") == 0 &&
               strcmp(control_shared_job.alias_of, "/jobs/{job_id}") == 0);
}

static uint32_t roles(const char *path)
{
    return route_of(path)->roles;
}

static void test_roles_AMB_22_AMB_23_CTL_121(void)
{
    const uint32_t keepers = ROLE_OWNER | ROLE_INFRA_APPROVER;
    TEST_CHECK(roles("/dlq/items") == keepers && roles("/dlq/items/{event_id}:reprocess") == keepers &&
               roles("/dlq/items:reprocess-bulk") == keepers);
    TEST_CHECK(roles("/jobs/{job_id}:decision") == (keepers | ROLE_APPROVER));
    TEST_CHECK(roles("/jobs:submit") == (ROLE_ANY & ~ROLE_VIEWER));
    TEST_CHECK(roles("/jobs/{job_id}:cancel") == (ROLE_ANY & ~ROLE_VIEWER));
    TEST_CHECK(roles("/jobs/{job_id}") == 0);
    TEST_CHECK(route_of("/jobs/{job_id}:approve")->limit == LIMIT_DECISION &&
               route_of("/jobs/{job_id}:reject")->limit == LIMIT_DECISION &&
               route_of("/jobs/{job_id}:decision")->limit == LIMIT_DECISION); /* CTL-158 */
}

/* ---- before the command ---- */

static void precheck_body(void)
{
    struct exchange *x = ask("/jobs:submit", NULL, "{\"meta\":{\"schema_version\":\"v2\"}}");
    EXPECT(refused(x, 409, "CONTRACT_409_VERSION_MISMATCH")); /* before all that is missing: AMB-06, AMB-07 */
    EXPECT(is(x, "error.details.field", "meta.schema_version"));
    EXPECT(refused(ask("/jobs:submit", NULL, "{\"meta\":{\"schema_version\":\"\\u0076\\u0032\"}}"), 409,
                   "CONTRACT_409_VERSION_MISMATCH"));
    static const char *const passed[] = {"[]",
                                         "7",
                                         "{}",
                                         "{\"meta\":[]}",
                                         "{\"meta\":{\"schema_version\":1}}",
                                         "{\"meta\":{\"schema_version\":\"\\u0076\\u0031\"}}"};
    for (size_t i = 0; i < sizeof(passed) / sizeof(*passed); i++) { /* the schema's business: CTL-030 */
        struct exchange *y = actor_alloc(sizeof(*y));
        exchange_begin(y, route_of("/jobs:submit"), NULL, passed[i]);
        EXPECT(control_precheck(&y->q, &y->r) == ERROR_NONE && y->r.status == 0);
    }
}

static void test_version_comes_before_the_schema_CTL_030_AMB_06(void)
{
    run(precheck_body);
}

static void admit_body(void)
{
    struct exchange *x = ask("/jobs/{job_id}:cancel", ID, "{" META("\"v1\"", "bob", "p1") "}");
    EXPECT(refused(x, 403, "AUTH_403_ROLE") && is(x, "error.details.field", "meta.actor_id")); /* CTL-127 */
    x = ask("/jobs/{job_id}:cancel", ID, "{" META("\"v1\"", "alice", "p2") "}");
    EXPECT(refused(x, 403, "AUTH_403_SCOPE")); /* CTL-125, also for owners: AMB-10 */
    x = ask("/jobs/{job_id}:cancel", ID, "{" META("\"v1\"", "alice", "") "}");
    EXPECT(refused(x, 400, "REQ_400_INVALID_SCHEMA") && is(x, "error.details.field", "meta.project_id"));
    x = ask("/jobs/{job_id}:cancel", ID, "{" GOOD ",\"idempotency_key\":\"\"}");
    EXPECT(refused(x, 400, "REQ_400_INVALID_SCHEMA") && is(x, "error.details.field", "idempotency_key"));
    x = ask("/jobs/{job_id}:cancel", "nonsense", "{" META("\"v1\"", "bob", "p2") "}");
    EXPECT(refused(x, 400, "REQ_400_INVALID_SCHEMA")); /* CTL-015, before the scope: AMB-08 */
    struct identity who = alice();
    who.all_projects = true;
    EXPECT(refused(ask_as("/jobs/{job_id}:cancel", ID, NULL, "{" META("\"v1\"", "alice", "p9") "}", &who),
                   404, "JOB_404_NOT_FOUND"));
}

static void test_whose_request_it_is_and_for_which_project_CTL_125_CTL_127(void)
{
    run(admit_body);
}

/* ---- jobs ---- */

static void jobs_body(void)
{
    EXPECT(refused(ask("/jobs/{job_id}", ID, NULL), 404, "JOB_404_NOT_FOUND"));
    EXPECT(refused(ask("/jobs/{job_id}", "ABCDEF00-0000-4000-8000-000000000001", NULL), 404,
                   "JOB_404_NOT_FOUND"));
    EXPECT(refused(ask("/jobs/{job_id}", "nonsense", NULL), 400, "REQ_400_INVALID_SCHEMA"));
    EXPECT(refused(ask("/jobs/{job_id}:cancel", ID, "{" GOOD "}"), 404, "JOB_404_NOT_FOUND"));
    EXPECT(refused(ask("/jobs/{job_id}:decision", ID, "{" GOOD ",\"decision\":\"defer\"}"), 404,
                   "JOB_404_NOT_FOUND"));
    EXPECT(refused(ask("/jobs/{job_id}:approve", ID, "{" GOOD ",\"decision\":\"approve\"}"), 404,
                   "JOB_404_NOT_FOUND"));
    struct exchange *x = ask("/jobs/{job_id}:approve", ID, "{" GOOD ",\"decision\":\"reject\"}");
    EXPECT(refused(x, 400, "REQ_400_INVALID_SCHEMA") &&
           is(x, "error.details.field", "decision")); /* CTL-021 */
    x = ask("/jobs/{job_id}:reject", ID, "{" GOOD ",\"decision\":\"approve\"}");
    EXPECT(refused(x, 400, "REQ_400_INVALID_SCHEMA"));
    x = ask("/jobs:submit", NULL, "{" GOOD ",\"idempotency_key\":\"k\",\"intent\":\"i\"}");
    EXPECT(refused(x, 503, "JOB_503_QUEUE_UNAVAILABLE") && exchange_has_header(x, "Retry-After: 60"));
    EXPECT(is(x, "error.retryable", "true"));
    x = ask("/jobs:submit", NULL, "{" GOOD ",\"idempotency_key\":\"k\",\"intent\":\"\"}");
    EXPECT(refused(x, 400, "REQ_400_INVALID_SCHEMA") && is(x, "error.details.field", "intent"));
    struct view *view = view_open(stage_store);
    EXPECT(txn_rows(&view->txn, TABLE_LEDGER) == 0 && txn_rows(&view->txn, TABLE_AUDITS) == 0); /* CTL-098 */
    view_close(view);
}

static void test_a_server_without_jobs_says_so_CTL_015_CTL_021(void)
{
    run(jobs_body);
}

/* ---- dead letters ---- */

static struct exchange *list(const char *query)
{
    struct identity who = alice();
    return ask_as("/dlq/items", NULL, query, NULL, &who);
}

static void list_body(void)
{
    static const char *const good[] = {"",          "limit=1",
                                       "limit=100", "max_age_hours=1",
                                       "limit=020", "event_name=job.done&project_id=p1&max_age_hours=48"};
    static const char *const bad[] = {"limit=0",
                                      "limit=101",
                                      "limit=-1",
                                      "limit=x",
                                      "limit=",
                                      "limit=1.5",
                                      "max_age_hours=0",
                                      "max_age_hours=-1",
                                      "cursor=",
                                      "cursor=abc",
                                      "limit=1&limit=2",
                                      "max_age_hours=1e1",
                                      "limit=99999999999999999999999999",
                                      "event_name=%ff",
                                      "cursor=a&cursor=b"};
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
        struct exchange *x = list(good[i]);
        EXPECT(x->r.status == 200 && is(x, "items", "[]") && is(x, "total_count", "0") &&
               is(x, "next_cursor", "null")); /* CTL-052 */
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        EXPECT(refused(list(bad[i]), 400, "REQ_400_INVALID_SCHEMA")); /* CTL-010 to CTL-012 */
    char query[TOKEN_TEXT_MAX + 16] = "cursor=";
    struct key key = key_of_uuid(&(struct uuid){{1}});
    (void)token_seal(stage_store, 2, 0, key_span(&key), query + 7); /* of another list */
    EXPECT(refused(list(query), 400, "REQ_400_INVALID_SCHEMA"));
}

static void test_dead_letters_are_an_empty_list_CTL_010_to_CTL_012_CTL_052(void)
{
    run(list_body);
}

static void reprocess_body(void)
{
    struct exchange *x = ask("/dlq/items/{event_id}:reprocess", ID, "{" GOOD ",\"idempotency_key\":\"k\"}");
    EXPECT(refused(x, 404, "DLQ_404_NOT_FOUND"));
    x = ask("/dlq/items/{event_id}:reprocess", "7", "{" GOOD ",\"idempotency_key\":\"k\"}");
    EXPECT(refused(x, 400, "REQ_400_INVALID_SCHEMA"));
    x = ask("/dlq/items/{event_id}:reprocess", ID,
            "{" META("\"v1\"", "alice", "p9") ",\"idempotency_key\":\"k\"}");
    EXPECT(refused(x, 404, "DLQ_404_NOT_FOUND")); /* owners are not bound here: AMB-10 */
}

static void test_reprocess_of_what_is_not_there(void)
{
    run(reprocess_body);
}

#define BULK(key, ids) "{" GOOD ",\"idempotency_key\":\"" key "\",\"event_ids\":[" ids "]}"
#define OTHER          "00000000-0000-4000-8000-000000000002"

static uint64_t audits(void)
{
    struct view *view = view_open(stage_store);
    uint64_t count = txn_rows(&view->txn, TABLE_AUDITS);
    view_close(view);
    return count;
}

static void bulk_body(void)
{
    char batch[UUID_TEXT_SIZE];
    struct uuid id;
    struct audit audit;
    EXPECT(refused(ask("/dlq/items:reprocess-bulk", NULL, BULK("k", "\"" ID "\"")), 503,
                   "INFRA_503_DEPENDENCY_DOWN"));
    (void)stage_writer();
    struct exchange *x =
        ask("/dlq/items:reprocess-bulk", NULL, BULK("k", "\"" ID "\",\"" OTHER "\",\"" ID "\""));
    EXPECT(x->r.status == 202 && is(x, "accepted_count", "0") && is(x, "rejected_count", "3")); /* CTL-055 */
    snprintf(batch, sizeof(batch), "%s", exchange_member(x, "batch_id"));
    EXPECT(uuid_parse(batch, 36, &id) && audits() == 1);
    struct view *view = view_open(stage_store); /* CTL-123: actor, ids, time */
    struct key key = key_of_uuid(&id);
    EXPECT(txn_read(&view->txn, TABLE_AUDITS, key_span(&key), &audit) == OK);
    EXPECT(span_equal(audit.who, span_text("alice")) && audit.at_us > 0 &&
           span_equal(audit.verb, span_text("dlq.reprocess_bulk")) &&
           memmem(audit.details.bytes, audit.details.size, OTHER, strlen(OTHER)));
    view_close(view);
    x = ask("/dlq/items:reprocess-bulk", NULL, BULK("k", "\"" ID "\",\"" OTHER "\",\"" ID "\""));
    EXPECT(x->r.status == 202 && is(x, "batch_id", batch) &&
           audits() == 1); /* once, however often it is asked for */
    x = ask("/dlq/items:reprocess-bulk", NULL, BULK("k", "\"" ID "\""));
    EXPECT(refused(x, 409, "JOB_409_IDEMPOTENCY_CONFLICT"));
    x = ask("/dlq/items:reprocess-bulk", NULL, BULK("l", "\"" ID "\""));
    EXPECT(x->r.status == 202 && !is(x, "batch_id", batch) && audits() == 2);
    EXPECT(refused(ask("/dlq/items:reprocess-bulk", NULL, BULK("m", "")), 400, "REQ_400_INVALID_SCHEMA"));
}

static void test_bulk_rejects_all_and_is_audited_CTL_055_CTL_123(void)
{
    run(bulk_body);
}

/* A hundred ids, an actor and a key of the greatest length. */
static void large_body(void)
{
    static char body[16384], subject[129], key[2000];
    memset(subject, 'a', 128);
    memcpy(subject + 92, "\xc3\xa9\xc3\xa9\xc3\xa9", 6); /* where it is cut */
    memset(key, 'k', sizeof(key) - 1);
    size_t length = (size_t)snprintf(
        body, sizeof(body),
        "{\"meta\":{\"schema_version\":\"v1\",\"request_id\":\"r\",\"trace_id\":\"t\","
        "\"actor_id\":\"%s\",\"project_id\":\"p1\"},\"idempotency_key\":\"%s\",\"event_ids\":[",
        subject, key);
    for (int i = 0; i < 100; i++)
        length += (size_t)snprintf(body + length, sizeof(body) - length,
                                   "%s\"00000000-0000-4000-8000-%012d\"", i ? "," : "", i);
    snprintf(body + length, sizeof(body) - length, "]}");
    struct identity who = alice();
    who.subject = span_text(subject);
    (void)stage_writer();
    struct exchange *x = ask_as("/dlq/items:reprocess-bulk", NULL, NULL, body, &who);
    EXPECT(x->r.status == 202 && is(x, "rejected_count", "100") && audits() == 1);
}

static void test_bulk_of_the_greatest_size_CTL_046(void)
{
    run(large_body);
}

TEST_LIST
= {
    {"control: nine operations, each also below /v1 (CTL-023, AMB-01)",
     test_nine_operations_each_also_below_v1_CTL_023_AMB_01},
    {"control: roles (AMB-22, AMB-23, CTL-121)", test_roles_AMB_22_AMB_23_CTL_121},
    {"control: the version comes before the schema (CTL-030, AMB-06)",
     test_version_comes_before_the_schema_CTL_030_AMB_06},
    {"control: whose request, for which project (CTL-125, CTL-127)",
     test_whose_request_it_is_and_for_which_project_CTL_125_CTL_127},
    {"control: a server without jobs says so (CTL-015, CTL-021)",
     test_a_server_without_jobs_says_so_CTL_015_CTL_021},
    {"control: dead letters are an empty list (CTL-010 to CTL-012, CTL-052)",
     test_dead_letters_are_an_empty_list_CTL_010_to_CTL_012_CTL_052},
    {"control: reprocess of what isn't there", test_reprocess_of_what_is_not_there},
    {"control: bulk rejects all and is audited (CTL-055, CTL-123)",
     test_bulk_rejects_all_and_is_audited_CTL_055_CTL_123},
    {"control: bulk of the greatest size (CTL-046)", test_bulk_of_the_greatest_size_CTL_046},
    {NULL, NULL},
};
