/* The exporter against a collector in this process, over real sockets; what it sends is read with another JSON parser. */
#include "acutest.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define json_string parson_json_string /* ours has the name, too */
#include <parson.h>
#undef json_string

#include "actors/fetch.h"
#include "http/otlp.h"
#include "http/trace.h"
#include "runtime/telemetry.h"
#include "tests/support/origin.h"
#include "tests/support/real.h"

#define PARENT "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

/* ---- the environment ---- */

static struct otlp_options options;
static char why[256];

static bool parse(const char *const *variables)
{
    char *environment[8] = {NULL};
    for (size_t i = 0; variables[i]; i++)
        environment[i] = (char *)(uintptr_t)variables[i];
    memset(&options, 0xee, sizeof(options));
    why[0] = 0;
    return otlp_options_parse(&options, environment, why, sizeof(why));
}

#define PARSE(...) parse((const char *const[]){__VA_ARGS__, NULL})
#define BASE       "OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318"

static void test_off_unless_an_endpoint_is_named(void)
{
    TEST_CHECK(PARSE("A=b") && !options.endpoint[0]);
    TEST_CHECK(PARSE("OTEL_EXPORTER_OTLP_ENDPOINT=") && !options.endpoint[0]);
    TEST_CHECK(PARSE("OTEL_EXPORTER_OTLP_PROTOCOL=grpc") && !options.endpoint[0]); /* nobody looks */
    TEST_CHECK(PARSE(BASE, "OTEL_SDK_DISABLED=TRUE") && !options.endpoint[0]);
    TEST_CHECK(PARSE(BASE, "OTEL_SDK_DISABLED=false") && options.endpoint[0]);
    TEST_CHECK(PARSE(BASE, "OTEL_TRACES_EXPORTER=none") && !options.endpoint[0]);
    TEST_CHECK(PARSE(BASE, "OTEL_TRACES_EXPORTER=otlp") && options.endpoint[0] && !options.lines);
    TEST_CHECK(PARSE("OTEL_TRACES_EXPORTER=console", "OTEL_TRACES_SAMPLER=traceidratio",
                     "OTEL_TRACES_SAMPLER_ARG=0.5") &&
               options.lines && !options.endpoint[0] && options.sample == 0.5);
    TEST_CHECK(PARSE(BASE, "OTEL_TRACES_EXPORTER=console", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc") &&
               options.lines && !options.endpoint[0]); /* no collector: nobody looks */
    TEST_CHECK(PARSE("OTEL_TRACES_EXPORTER=console", "OTEL_SDK_DISABLED=true") && !options.lines);
    TEST_CHECK(PARSE("XOTEL_EXPORTER_OTLP_ENDPOINT=http://c", "OTEL_EXPORTER_OTLP_ENDPOINTS=http://c"));
    TEST_CHECK(!options.endpoint[0]);
}

static void test_endpoints(void)
{
    TEST_CHECK(PARSE(BASE) && strcmp(options.endpoint, "http://c:4318/v1/traces") == 0);
    TEST_CHECK(PARSE("OTEL_EXPORTER_OTLP_ENDPOINT=https://c/") &&
               strcmp(options.endpoint, "https://c/v1/traces") == 0);
    TEST_CHECK(PARSE("OTEL_EXPORTER_OTLP_ENDPOINT=http://c/a") &&
               strcmp(options.endpoint, "http://c/a/v1/traces") == 0);
    TEST_CHECK(PARSE(BASE, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://d/x") &&
               strcmp(options.endpoint, "http://d/x") == 0);
}

static void test_defaults(void)
{
    TEST_CHECK(PARSE(BASE));
    TEST_CHECK(options.timeout_ns == 10 * NS_PER_S && !options.headers[0] && !options.attributes[0]);
    TEST_CHECK(strcmp(options.service, "coppice") == 0 && options.sample >= 1 && options.parent_based);
}

static void test_headers_timeout_and_resource(void)
{
    TEST_CHECK(PARSE(BASE, "OTEL_EXPORTER_OTLP_HEADERS=a=1, X-Key = Basic%20YWI+Yw==,"));
    TEST_CHECK_(strcmp(options.headers, "a: 1\nX-Key: Basic YWI+Yw==\n") == 0, "%s", options.headers);
    TEST_CHECK(PARSE(BASE, "OTEL_EXPORTER_OTLP_HEADERS=a=1", "OTEL_EXPORTER_OTLP_TRACES_HEADERS=b=2"));
    TEST_CHECK(strcmp(options.headers, "b: 2\n") == 0);
    TEST_CHECK(PARSE(BASE, "OTEL_EXPORTER_OTLP_TIMEOUT=250") && options.timeout_ns == 250 * NS_PER_MS);
    TEST_CHECK(PARSE(BASE, "OTEL_EXPORTER_OTLP_TIMEOUT=250", "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT=1"));
    TEST_CHECK(options.timeout_ns == NS_PER_MS);
    TEST_CHECK(PARSE(BASE, "OTEL_SERVICE_NAME=mine", "OTEL_RESOURCE_ATTRIBUTES=service.name=other,a=b"));
    TEST_CHECK(strcmp(options.service, "mine") == 0);
    TEST_CHECK(PARSE(BASE, "OTEL_RESOURCE_ATTRIBUTES=service.name=o%74her,a=b"));
    TEST_CHECK(strcmp(options.service, "other") == 0 &&
               strcmp(options.attributes, "service.name=o%74her,a=b") == 0);
}

static void test_samplers(void)
{
    static const struct {
        const char *name, *arg;
        double sample;
        bool parent_based;
    } rows[] = {
        {"always_on", "0.1", 1, false},
        {"always_off", "1", 0, false},
        {"traceidratio", "0.25", 0.25, false},
        {"traceidratio", "", 1, false},
        {"parentbased_always_on", "0.1", 1, true},
        {"parentbased_always_off", "", 0, true},
        {"parentbased_traceidratio", "0.5", 0.5, true},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char name[80], arg[80];
        snprintf(name, sizeof(name), "OTEL_TRACES_SAMPLER=%s", rows[i].name);
        snprintf(arg, sizeof(arg), "OTEL_TRACES_SAMPLER_ARG=%s", rows[i].arg);
        TEST_CHECK_(PARSE(BASE, name, arg), "%s: %s", name, why);
        TEST_CHECK(options.parent_based == rows[i].parent_based);
        TEST_CHECK(options.sample >= rows[i].sample && options.sample <= rows[i].sample);
    }
}

static void test_variables_that_cannot_be_meant(void)
{
    static char long_url[600] = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://";
    static char long_headers[1100] = "OTEL_EXPORTER_OTLP_HEADERS=a=";
    static char long_service[200] = "OTEL_SERVICE_NAME=";
    memset(long_url + strlen(long_url), 'a', 520);
    memset(long_headers + strlen(long_headers), 'a', 1020);
    memset(long_service + strlen(long_service), 'a', 128);
    static const char *const rows[] = {
        "OTEL_SDK_DISABLED=yes",
        "OTEL_TRACES_EXPORTER=zipkin",
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=c:4318",
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://c/a b",
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://u:p@c/",
        long_url,
        "OTEL_EXPORTER_OTLP_HEADERS=a",
        "OTEL_EXPORTER_OTLP_HEADERS==b",
        "OTEL_EXPORTER_OTLP_HEADERS=a b=c",
        "OTEL_EXPORTER_OTLP_HEADERS=a=%0d%0aX: y",
        "OTEL_EXPORTER_OTLP_HEADERS=a=b%0Ac",
        "OTEL_EXPORTER_OTLP_HEADERS=a=b\nc",
        "OTEL_EXPORTER_OTLP_HEADERS=a=b%7F",
        "OTEL_EXPORTER_OTLP_HEADERS=a=b%00",
        "OTEL_EXPORTER_OTLP_HEADERS=a=%4",
        long_headers,
        "OTEL_EXPORTER_OTLP_TIMEOUT=10s",
        "OTEL_EXPORTER_OTLP_TIMEOUT=0",
        "OTEL_EXPORTER_OTLP_TIMEOUT=-1",
        "OTEL_EXPORTER_OTLP_TIMEOUT=99999999999999999999",
        "OTEL_EXPORTER_OTLP_PROTOCOL=grpc",
        "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf",
        "OTEL_EXPORTER_OTLP_COMPRESSION=gzip",
        "OTEL_EXPORTER_OTLP_CERTIFICATE=/ca.pem",
        "OTEL_RESOURCE_ATTRIBUTES=a",
        "OTEL_RESOURCE_ATTRIBUTES=a=%zz",
        long_service,
        "OTEL_TRACES_SAMPLER=jaeger_remote",
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        size_t name = strcspn(rows[i], "=");
        TEST_CHECK_(!PARSE(BASE, rows[i]), "%s", rows[i]);
        TEST_CHECK_(strncmp(why, rows[i], name) == 0 && why[name] == ':', "%s: %s", rows[i], why);
        TEST_CHECK(((unsigned char *)&options)[0] == 0xee); /* written on success only */
    }
    static const char *const args[] = {"1.1", "-0.1", "nan", "x", "0.5x"};
    for (size_t i = 0; i < sizeof(args) / sizeof(*args); i++) {
        char arg[80];
        snprintf(arg, sizeof(arg), "OTEL_TRACES_SAMPLER_ARG=%s", args[i]);
        TEST_CHECK_(!PARSE(BASE, "OTEL_TRACES_SAMPLER=traceidratio", arg), "%s", arg);
    }
    TEST_CHECK(!PARSE(BASE, "OTEL_EXPORTER_OTLP_HEADERS=key=secret%") && !strstr(why, "secret"));
}

/* ---- the collector ---- */

#define POSTS_MAX 32u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *posts[POSTS_MAX], *heads[POSTS_MAX];
static uint32_t posts_count;
static const char *const *answers; /* the first for the first post; from the NULL on 200 */

static char *copy(const char *bytes, size_t size)
{
    char *text = calloc(1, size + 1);
    memcpy(text, bytes, size);
    return text;
}

static bool collect(const struct origin_request *q)
{
    static const char good[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
    pthread_mutex_lock(&lock);
    const char *status = answers ? *answers : NULL;
    if (status)
        answers++;
    if (posts_count < POSTS_MAX) {
        posts[posts_count] = copy(q->body, q->body_size);
        heads[posts_count++] = copy(q->head, (size_t)(q->body - q->head));
    }
    pthread_mutex_unlock(&lock);
    if (!status)
        return origin_text(q, good);
    char text[256];
    snprintf(text, sizeof(text), "HTTP/1.1 %s\r\nContent-Length: 0\r\n\r\n", status);
    return origin_text(q, text);
}

static uint32_t posted(void)
{
    pthread_mutex_lock(&lock);
    uint32_t count = posts_count;
    pthread_mutex_unlock(&lock);
    return count;
}

static void until_posted(uint32_t count)
{
    while (posted() < count)
        actor_yield();
}

static JSON_Value *parsed[POSTS_MAX];

/* The spans of a post; NULL when it isn't what it must be. */
static JSON_Array *spans_of(uint32_t post)
{
    parsed[post] = json_parse_string(posts[post]);
    JSON_Object *o =
        json_array_get_object(json_object_get_array(json_object(parsed[post]), "resourceSpans"), 0);
    JSON_Object *scope = json_array_get_object(json_object_get_array(o, "scopeSpans"), 0);
    EXPECT(strcmp(json_object_dotget_string(scope, "scope.name"), "coppice") == 0);
    return json_object_get_array(scope, "spans");
}

static void forget(void)
{
    for (uint32_t i = 0; i < posts_count; i++) {
        free(posts[i]);
        free(heads[i]);
        json_value_free(parsed[i]);
        parsed[i] = NULL;
    }
    posts_count = 0;
    answers = NULL;
}

/* ---- in the body ---- */

static struct otlp_options live;

static void start(const struct otlp_options *o)
{
    struct start_result result;
    struct otlp_args args = {o};
    EXPECT(actor_start(
               &(struct spawn_options){
                   .class = &fetch_class, .name = FETCH_NAME, .link = true, .scheduler = SPAWN_ON(1)},
               &result, DEADLINE_NONE) == OK);
    EXPECT(actor_start(&(struct spawn_options){.class = &otlp_class,
                                               .name = "otlp",
                                               .args = &args,
                                               .args_size = sizeof(args),
                                               .link = true,
                                               .scheduler = SPAWN_ON(1)},
                       &result, DEADLINE_NONE) == OK);
}

static void end(const char *name)
{
    struct reason ended;
    if (actor_whereis(name) &&
        actor_stop(actor_whereis(name), reason_of(REASON_SHUTDOWN), &ended, DEADLINE_NONE) == OK)
        reason_drop(&ended);
}

static void with_collector(void (*test)(void), const char *const *statuses)
{
    uint16_t port = origin_start(collect);
    live = (struct otlp_options){.headers = "X-Key: secret\n",
                                 .service = "mine",
                                 .attributes = "service.name=not this,deployment.environment.name=a%20test",
                                 .timeout_ns = 10 * NS_PER_S,
                                 .sample = 1,
                                 .parent_based = true};
    snprintf(live.endpoint, sizeof(live.endpoint), "http://127.0.0.1:%u/v1/traces", port);
    answers = statuses;
    trace_forget();
    test();
    origin_stop();
    forget();
}

static void record(const struct trace *trace)
{
    uint64_t now = actor_now();
    trace_record(&(struct trace_span){.trace = trace,
                                      .kind = TRACE_SERVER,
                                      .name = "GET /v1/jobs/{job_id}",
                                      .began_ns = now - 5,
                                      .ended_ns = now,
                                      .attributes = {{.key = "url.path", .text = "/v1/\"\\\n\x01\xff"},
                                                     {.key = "http.response.status_code", .number = -404}}});
}

static struct trace begun(const char *parent)
{
    struct trace trace;
    trace_begin(&trace, parent ? span_text(parent) : (struct span){NULL, 0}, (struct span){NULL, 0},
                (struct span){NULL, 0});
    return trace;
}

static const char *member(const JSON_Object *o, const char *name)
{
    const char *text = json_object_dotget_string(o, name);
    return text ? text : "";
}

static void check_span(const JSON_Object *span, const struct trace *trace)
{
    char id[TRACE_ID_TEXT + 1], own[TRACE_SPAN_TEXT + 1];
    trace_write_id(trace, id);
    trace_write_span(trace, own);
    EXPECT(strcmp(member(span, "traceId"), id) == 0 && strcmp(member(span, "spanId"), own) == 0);
    EXPECT(strcmp(member(span, "parentSpanId"), "b7ad6b7169203331") == 0);
    EXPECT(strcmp(member(span, "name"), "GET /v1/jobs/{job_id}") == 0);
    EXPECT(json_object_get_number(span, "kind") == 2 &&
           json_object_get_number(span, "flags") == 1); /* numbers */
    uint64_t began = strtoull(member(span, "startTimeUnixNano"), NULL, 10);
    uint64_t ended = strtoull(member(span, "endTimeUnixNano"), NULL, 10);
    EXPECT(ended - began == 5 && ended <= actor_wall_now() && ended > UINT64_C(1600000000000000000));
    EXPECT(!json_object_has_value(span, "status"));
    JSON_Array *attributes = json_object_get_array(span, "attributes");
    EXPECT(json_array_get_count(attributes) == 2);
    EXPECT(strcmp(member(json_array_get_object(attributes, 0), "key"), "url.path") == 0);
    EXPECT(strcmp(member(json_array_get_object(attributes, 0), "value.stringValue"),
                  "/v1/\"\\\n\x01\xef\xbf\xbd") == 0);
    EXPECT(strcmp(member(json_array_get_object(attributes, 1), "value.intValue"), "-404") ==
           0); /* a string */
}

static void check_resource(uint32_t post)
{
    static const char *const want[][2] = {{"service.name", "mine"},
                                          {"deployment.environment.name", "a test"},
                                          {"service.version", COPPICE_VERSION}};
    JSON_Object *o =
        json_array_get_object(json_object_get_array(json_object(parsed[post]), "resourceSpans"), 0);
    JSON_Array *attributes = json_object_dotget_array(o, "resource.attributes");
    EXPECT(json_array_get_count(attributes) == 3);
    for (size_t i = 0; i < 3; i++) {
        EXPECT(strcmp(member(json_array_get_object(attributes, i), "key"), want[i][0]) == 0);
        EXPECT(strcmp(member(json_array_get_object(attributes, i), "value.stringValue"), want[i][1]) == 0);
    }
}

REAL(spans_arrive)
{
    start(&live);
    EXPECT(trace_exporting());
    struct trace trace, alone = begun(NULL);
    trace_begin(&trace, span_text(PARENT), span_text("k=v,\tx=\"y\""), span_of(NULL, 0));
    record(&trace);
    trace_record(&(struct trace_span){
        .trace = &alone, .kind = TRACE_INTERNAL, .status = TRACE_ERROR, .name = "alone"});
    until_posted(1);
    JSON_Array *spans = spans_of(0);
    EXPECT(json_array_get_count(spans) == 2);
    EXPECT(strcmp(member(json_array_get_object(spans, 0), "traceState"), "k=v,\tx=\"y\"") == 0);
    EXPECT(!json_object_has_value(json_array_get_object(spans, 1), "traceState"));
    check_span(json_array_get_object(spans, 0), &trace);
    JSON_Object *second = json_array_get_object(spans, 1);
    EXPECT(!json_object_has_value(second, "parentSpanId") && json_object_get_number(second, "kind") == 1);
    EXPECT(json_object_dotget_number(second, "status.code") == 2);
    check_resource(0);
    EXPECT(strncmp(heads[0], "POST /v1/traces HTTP/1.1\r\n", 26) == 0);
    EXPECT(strstr(heads[0], "\r\nContent-Type: application/json\r\n") &&
           strstr(heads[0], "\r\nX-Key: secret\r\n"));
    end("otlp");
    EXPECT(!trace_exporting());
    end(FETCH_NAME);
}

static void test_spans_arrive_as_OTLP_wants_them(void)
{
    with_collector(spans_arrive, NULL);
}

REAL(many_go)
{
    start(&live);
    struct trace trace = begun(PARENT);
    for (uint32_t i = 0; i < TRACE_RING; i++)
        record(&trace);
    size_t spans = 0;
    for (uint32_t i = 0; spans < TRACE_RING; i++) {
        until_posted(i + 1);
        size_t count = json_array_get_count(spans_of(i));
        EXPECT(count > 0 && count <= OTLP_BATCH_MAX && strlen(posts[i]) <= OTLP_BODY_MAX);
        spans += count;
    }
    EXPECT(spans == TRACE_RING);
    while (telemetry_gauge_get(TELEMETRY_GAUGE_TRACE_SPANS, "exported") < TRACE_RING)
        actor_yield();
    end("otlp");
    end(FETCH_NAME);
}

static void test_many_go_in_batches_without_a_pause(void)
{
    with_collector(many_go, NULL);
}

REAL(tried_again)
{
    start(&live);
    struct trace trace = begun(PARENT);
    uint64_t began = actor_now();
    record(&trace);
    until_posted(OTLP_TRIES);
    EXPECT(actor_now() - began >= (OTLP_TRIES - 1) * NS_PER_S); /* as Retry-After said */
    for (uint32_t i = 1; i < OTLP_TRIES; i++)
        EXPECT(strcmp(posts[i], posts[0]) == 0);
    while (telemetry_gauge_get(TELEMETRY_GAUGE_TRACE_SPANS, "given_up") != 1)
        actor_yield();
    EXPECT(telemetry_gauge_get(TELEMETRY_GAUGE_TRACE_SPANS, "exported") == 0);
    record(&trace);
    record(&trace);
    until_posted(OTLP_TRIES + 1);
    EXPECT(json_array_get_count(spans_of(OTLP_TRIES)) == 2);
    while (telemetry_gauge_get(TELEMETRY_GAUGE_TRACE_SPANS, "exported") != 2)
        actor_yield();
    EXPECT(real_logged("does not take the spans") == 1 && real_logged("takes spans again") == 1);
    EXPECT(real_logged("secret") == 0);
    end("otlp");
    end(FETCH_NAME);
}

static void test_a_busy_collector_is_tried_again_and_then_no_more(void)
{
    static const char *const busy[] = {"503 Busy\r\nRetry-After: 1",   "429 Slowly\r\nRetry-After: 1",
                                       "502 Broken\r\nRetry-After: 1", "504 Late\r\nRetry-After: 1",
                                       "503 Busy\r\nRetry-After: 1",   NULL};
    with_collector(tried_again, busy);
}

REAL(refused)
{
    start(&live);
    struct trace trace = begun(PARENT);
    for (uint32_t i = 1; i <= 3; i++) {
        record(&trace);
        while (telemetry_gauge_get(TELEMETRY_GAUGE_TRACE_SPANS, "given_up") != i)
            actor_yield();
        EXPECT(posted() == i);
    }
    end("otlp");
    end(FETCH_NAME);
}

static void test_a_refusal_gives_up_at_once(void)
{
    static const char *const refusals[] = {"400 Bad", "307 There\r\nLocation: /", "500 Broken", NULL};
    with_collector(refused, refusals);
}

REAL(no_collector)
{
    struct otlp_options dead = live;
    snprintf(dead.endpoint, sizeof(dead.endpoint), "http://127.0.0.1:1/v1/traces");
    start(&dead);
    struct trace trace = begun(PARENT);
    record(&trace);
    while (real_logged("does not take the spans") == 0)
        actor_yield();
    struct trace_counts before, counts;
    trace_counts(&before);
    for (uint32_t i = 0; i < TRACE_RING + 3; i++) /* there is room for these, and no more */
        record(&trace);
    trace_counts(&counts);
    EXPECT(counts.dropped - before.dropped == 3);
    EXPECT(actor_whereis("otlp") != 0 && posted() == 0);
    actor_kill(actor_whereis("otlp"));
    while (trace_exporting())
        actor_yield();
    end(FETCH_NAME);
}

static void test_a_dead_collector_costs_nothing_but_spans(void)
{
    with_collector(no_collector, NULL);
}

REAL(off)
{
    struct otlp_options nowhere = live;
    nowhere.endpoint[0] = 0;
    start(&nowhere);
    EXPECT(!trace_exporting() && actor_whereis("otlp") != 0);
    end("otlp");
    end(FETCH_NAME);
}

static void test_without_an_endpoint_it_does_nothing(void)
{
    with_collector(off, NULL);
}

TEST_LIST
= {
    {"off unless an endpoint is named", test_off_unless_an_endpoint_is_named},
    {"endpoints", test_endpoints},
    {"defaults", test_defaults},
    {"headers, timeout and resource", test_headers_timeout_and_resource},
    {"samplers", test_samplers},
    {"variables that cannot be meant", test_variables_that_cannot_be_meant},
    {"spans arrive as OTLP wants them", test_spans_arrive_as_OTLP_wants_them},
    {"many go in batches, without a pause", test_many_go_in_batches_without_a_pause},
    {"a busy collector is tried again, and then no more",
     test_a_busy_collector_is_tried_again_and_then_no_more},
    {"a refusal gives up at once", test_a_refusal_gives_up_at_once},
    {"a dead collector costs nothing but spans", test_a_dead_collector_costs_nothing_but_spans},
    {"without an endpoint it does nothing", test_without_an_endpoint_it_does_nothing},
    {NULL, NULL},
};
