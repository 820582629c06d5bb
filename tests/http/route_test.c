#include "http/route.h"

#include "acutest.h"

static void serve(const struct request *q, struct response *r)
{
    (void)q, (void)r;
}

#define GET(text)                                                                     \
    {                                                                                 \
        .method = METHOD_GET, .path = (text), .surface = SURFACE_JOBS, .serve = serve \
    }
#define POST(text)                                                                        \
    {                                                                                     \
        .method = METHOD_POST, .path = (text), .surface = SURFACE_CONTROL, .serve = serve \
    }

static const struct route documents[] = {
    {.method = METHOD_GET, .path = "/healthz", .surface = SURFACE_PUBLIC, .serve = serve},
};
static const struct route twin = {
    .method = METHOD_GET, .path = "/v1/jobs/{job_id}", .surface = SURFACE_CONTROL, .serve = serve};
static const struct route table[] = {
    GET("/v1/jobs"),
    POST("/v1/jobs"),
    POST("/v1/jobs:submit"),
    GET("/v1/jobs/{job_id}"),
    GET("/v1/jobs/{job_id}/report"),
    GET("/v1/jobs/latest"),
    POST("/jobs:submit"),
    POST("/jobs/{job_id}:cancel"),
    GET("/jobs/{job_id}"),
    POST("/dlq/items:reprocess-bulk"),
    POST("/dlq/items/{event_id}:reprocess"),
    {.method = METHOD_POST,
     .path = "/chaos/actors/{target}:kill",
     .surface = SURFACE_OPERATOR,
     .colons = true,
     .serve = serve},
    {.method = METHOD_GET,
     .path = "/twins/{id}",
     .surface = SURFACE_JOBS,
     .token_twin = &twin,
     .serve = serve},
};

static struct routes *make(void)
{
    char text[256] = "";
    const struct route *const tables[] = {documents, table};
    const size_t counts[] = {sizeof(documents) / sizeof(*documents), sizeof(table) / sizeof(*table)};
    struct routes *routes = routes_create(tables, counts, 2, text, sizeof(text));
    TEST_ASSERT_(routes != NULL, "%s", text);
    return routes;
}

static struct route_match match(const struct routes *routes, enum method method, const char *path)
{
    struct route_match m;
    routes_match(routes, method, span_text(path), &m);
    return m;
}

static bool leads_to(const struct routes *routes, enum method method, const char *path, const char *template)
{
    struct route_match m = match(routes, method, path);
    if (!template)
        return m.route == NULL;
    return m.route && strcmp(m.route->path, template) == 0;
}

static void paths(void)
{
    struct routes *r = make();
    TEST_CHECK(leads_to(r, METHOD_GET, "/healthz", "/healthz"));
    TEST_CHECK(leads_to(r, METHOD_HEAD, "/healthz", "/healthz"));
    TEST_CHECK(leads_to(r, METHOD_GET, "/v1/jobs", "/v1/jobs"));
    TEST_CHECK(leads_to(r, METHOD_GET, "/v1/jobs/7", "/v1/jobs/{job_id}"));
    TEST_CHECK(leads_to(r, METHOD_GET, "/v1/jobs/7/report", "/v1/jobs/{job_id}/report"));
    TEST_CHECK(leads_to(r, METHOD_GET, "/v1/jobs/", NULL));
    TEST_CHECK(leads_to(r, METHOD_GET, "/v1/jobs/7/", NULL));
    TEST_CHECK(leads_to(r, METHOD_GET, "/v1", NULL));
    TEST_CHECK(leads_to(r, METHOD_GET, "/", NULL));
    TEST_CHECK(leads_to(r, METHOD_GET, "/a/b/c/d/e/f/g/h/i/j/k/l/m/n", NULL));
    TEST_CHECK(leads_to(r, METHOD_GET, "/v1/jobs/latest", "/v1/jobs/latest"));
    TEST_CHECK(leads_to(r, METHOD_GET, "/v1/jobs/latest/report", "/v1/jobs/{job_id}/report"));
    routes_destroy(r);
}

/* Targets that can't be routed. */
static void owners(void)
{
    static const struct {
        const char *target;
        enum surface owner;
    } rows[] = {
        {"/jobs/../x", SURFACE_CONTROL},
        {"/jobs", SURFACE_CONTROL},
        {"/jobs?a=%2", SURFACE_CONTROL},
        {"/jobs%3Asubmit", SURFACE_CONTROL},
        {"/j%6Fbs/%zz/\x80", SURFACE_CONTROL},
        {"http://a/jobs/a%2Fb:cancel", SURFACE_CONTROL},
        {"/v1/jobs/a%2Fb", SURFACE_JOBS},
        {"/v1/jobs:submit", SURFACE_CONTROL},
        {"/v1//x", SURFACE_JOBS},
        {"/dlq/items/%00:reprocess", SURFACE_CONTROL},
        {"/healthz/%", SURFACE_PUBLIC},
        {"/chaos/actors/a:b%2Fc:kill", SURFACE_OPERATOR},
        {"/elsewhere%2Fjobs", SURFACE_PUBLIC},
        {"/", SURFACE_PUBLIC},
        {"http://a", SURFACE_PUBLIC},
        {"http://a?/jobs", SURFACE_PUBLIC},
        {"", SURFACE_PUBLIC},
        {"*", SURFACE_PUBLIC},
    };
    struct routes *r = make();
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        TEST_CHECK_(routes_owner(r, span_text(rows[i].target)) == rows[i].owner, "%s", rows[i].target);
    routes_destroy(r);
}

static void verbs(void)
{
    struct routes *r = make();
    struct route_match m;
    TEST_CHECK(leads_to(r, METHOD_POST, "/jobs:submit", "/jobs:submit"));
    TEST_CHECK(leads_to(r, METHOD_POST, "/jobs/7:cancel", "/jobs/{job_id}:cancel"));
    TEST_CHECK(leads_to(r, METHOD_POST, "/dlq/items:reprocess-bulk", "/dlq/items:reprocess-bulk"));
    TEST_CHECK(leads_to(r, METHOD_POST, "/dlq/items/7:reprocess", "/dlq/items/{event_id}:reprocess"));
    TEST_CHECK(leads_to(r, METHOD_POST, "/jobs/7:unknown", NULL));
    TEST_CHECK(leads_to(r, METHOD_GET, "/jobs/7:unknown", NULL));
    TEST_CHECK(leads_to(r, METHOD_POST, "/jobs/7:x:cancel", NULL));
    static const char *const empty[] = {
        "/v1/jobs:",       "/v1/jobs/7:", "/v1/jobs/7/report:", "/healthz:", "/jobs:submit:",
        "/jobs/7:cancel:", "/v1/jobs::",  "/v1/jobs/latest:",   ":"};
    for (size_t i = 0; i < sizeof(empty) / sizeof(*empty); i++) {
        m = match(r, METHOD_GET, empty[i]);
        TEST_CHECK_(!m.route && !m.allowed, "%s", empty[i]);
    }
    TEST_CHECK(match(r, METHOD_POST, "/jobs:").surface == SURFACE_CONTROL); /* whose it would be (CTL-016) */
    TEST_CHECK(match(r, METHOD_GET, "/v1/jobs/7:").surface == SURFACE_JOBS);
    TEST_CHECK(leads_to(r, METHOD_POST, "/jobs/:cancel", NULL));
    TEST_CHECK(leads_to(r, METHOD_POST, "/jobs:submit/7", NULL));
    m = match(r, METHOD_POST, "/jobs/7:cancel");
    TEST_CHECK(span_equal(m.params[0], span_text("7")));
    m = match(r, METHOD_POST, "/chaos/actors/instance:9:kill");
    TEST_CHECK(m.route && span_equal(m.params[0], span_text("instance:9")));
    m = match(r, METHOD_POST, "/jobs/7:unknown");
    TEST_CHECK(m.surface == SURFACE_CONTROL && m.allowed == 0);
    routes_destroy(r);
}

static void methods(void)
{
    struct routes *r = make();
    struct route_match m = match(r, METHOD_DELETE, "/v1/jobs");
    TEST_CHECK(!m.route && m.allowed == (METHOD_GET | METHOD_HEAD | METHOD_POST) &&
               m.surface == SURFACE_JOBS);
    m = match(r, METHOD_PUT, "/jobs/7");
    TEST_CHECK(!m.route && m.allowed == (METHOD_GET | METHOD_HEAD));
    m = match(r, METHOD_UNKNOWN, "/jobs/7");
    TEST_CHECK(!m.route && m.allowed);
    m = match(r, METHOD_GET, "/nothing");
    TEST_CHECK(!m.route && !m.allowed && m.surface == SURFACE_PUBLIC);
    m = match(r, METHOD_PUT, "/v1/jobs:submit"); /* two surfaces below one folder: CTL-022, AMB-J-54 */
    TEST_CHECK(!m.route && m.allowed == METHOD_POST && m.surface == SURFACE_CONTROL);
    m = match(r, METHOD_PUT, "/v1/jobs");
    TEST_CHECK(!m.route && m.allowed && m.surface == SURFACE_JOBS);
    m = match(r, METHOD_GET, "/v1/unknown");
    TEST_CHECK(!m.route && !m.allowed && m.surface == SURFACE_JOBS);
    routes_destroy(r);
}

/* A path that several templates have takes the methods of all; one that has a method is found behind another that has it not. */
static void several_templates(void)
{
    static const struct route rows[] = {GET("/a/{x}"),    POST("/a/b"),     GET("/a/{x}/c"),
                                        POST("/a/b/{y}"), POST("/n/{x}/c"), GET("/n/b/{y}"),
                                        GET("/n/{x}/c"),  GET("/n/b/c"),    GET("/{w}/b/c")};
    const struct route *const tables[] = {rows};
    const size_t counts[] = {sizeof(rows) / sizeof(*rows)};
    char text[256] = "";
    struct routes *r = routes_create(tables, counts, 1, text, sizeof(text));
    TEST_ASSERT_(r != NULL, "%s", text);
    struct route_match m = match(r, METHOD_PUT, "/a/b");
    TEST_CHECK(!m.route && m.allowed == (METHOD_GET | METHOD_HEAD | METHOD_POST));
    TEST_CHECK(leads_to(r, METHOD_GET, "/a/b", "/a/{x}") && leads_to(r, METHOD_POST, "/a/b", "/a/b"));
    TEST_CHECK(leads_to(r, METHOD_POST, "/a/c", NULL) &&
               match(r, METHOD_POST, "/a/c").allowed == (METHOD_GET | METHOD_HEAD));
    TEST_CHECK(leads_to(r, METHOD_GET, "/a/b/c", "/a/{x}/c") &&
               leads_to(r, METHOD_POST, "/a/b/c", "/a/b/{y}"));
    m = match(r, METHOD_PUT, "/a/b/c");
    TEST_CHECK(!m.route && m.allowed == (METHOD_GET | METHOD_HEAD | METHOD_POST));
    /* the one with more of the path in its own words comes first, from the left */
    TEST_CHECK(leads_to(r, METHOD_GET, "/n/b/c", "/n/b/c") && leads_to(r, METHOD_GET, "/n/b/d", "/n/b/{y}"));
    TEST_CHECK(leads_to(r, METHOD_GET, "/n/d/c", "/n/{x}/c") &&
               leads_to(r, METHOD_POST, "/n/b/c", "/n/{x}/c"));
    TEST_CHECK(leads_to(r, METHOD_GET, "/x/b/c", "/{w}/b/c") && leads_to(r, METHOD_PUT, "/x/b/c", NULL));
    m = match(r, METHOD_GET, "/n/b/d");
    TEST_CHECK(span_equal(m.params[0], span_text("d")));
    m = match(r, METHOD_GET, "/n/d/c");
    TEST_CHECK(span_equal(m.params[0], span_text("d")));
    routes_destroy(r);
}

static void bindings(void)
{
    static const struct contract_operation *const one = (const void *)"one", *const two = (const void *)"two";
    struct routes *r = make();
    routes_bind(r, &table[3], one);
    routes_bind(r, &twin, two);
    TEST_CHECK(match(r, METHOD_GET, "/v1/jobs/7").operation == one);
    TEST_CHECK(match(r, METHOD_HEAD, "/v1/jobs/7").operation == one);
    TEST_CHECK(match(r, METHOD_GET, "/twins/7").twin_operation == two);
    TEST_CHECK(match(r, METHOD_GET, "/v1/jobs").operation == NULL);
    TEST_CHECK(routes_count(r) == sizeof(documents) / sizeof(*documents) + sizeof(table) / sizeof(*table));
    TEST_CHECK(routes_at(r, 0) == &documents[0] && routes_at(r, routes_count(r)) == NULL);
    routes_destroy(r);
}

static void refusals(void)
{
    static const struct route twice[] = {GET("/a/{b}"), GET("/a/{c}")}, relative[] = {GET("a")},
                              empty[] = {GET("/a//b")}, many[] = {GET("/{a}/{b}/{c}/{d}/{e}")};
    static const struct {
        const struct route *rows;
        size_t count;
        const char *says;
    } wrong[] = {{twice, 2, "two routes GET /a/{c}"},
                 {relative, 1, "begin with '/'"},
                 {empty, 1, "empty segment"},
                 {many, 1, "too many"}};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        char text[256] = "";
        TEST_CHECK(!routes_create(&wrong[i].rows, &wrong[i].count, 1, text, sizeof(text)));
        TEST_CHECK_(strstr(text, wrong[i].says) != NULL, "'%s' says '%s'", text, wrong[i].says);
    }
}

TEST_LIST
= {
    {"a path leads to one route, the literal one first", paths},
    {"CTL-016 verbs stand behind the last colon of the last segment", verbs},
    {"CTL-022 another method says which ones there are", methods},
    {"a path that several templates have", several_templates},
    {"operations are bound to routes and their twins", bindings},
    {"CTL-246 a target that can't be routed has an owner", owners},
    {"tables that can't be meant are refused", refusals},
    {0},
};
