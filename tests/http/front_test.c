/* The front over sockets: what every answer has, refusals before a handler in each surface's shape, CORS, limits. */
#define _GNU_SOURCE /* memmem */
#include "acutest.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/json_text.h"
#include "http/metrics.h"
#include "http/operator_token.h"
#include "http/trace.h"
#include "runtime/runtime.h"
#include "tests/support/talk.h"

#define JSON  "Content-Type: application/json\r\n"
#define UI    "https://ui.example"
#define TOKEN "cop_op_"

/* ---- routes ---- */

static void serve_hello(const struct request *q, struct response *r)
{
    struct json json;
    (void)q;
    response_begin(r, 200, RESPONSE_JSON);
    json_init(&json, &r->sink);
    json_object_begin(&json);
    JSON_MEMBER(&json, "hello", string, "world");
    json_object_end(&json);
}

static void serve_nothing(const struct request *q, struct response *r)
{
    (void)q;
    response_begin(r, 204, NULL);
}

/* Handlers that are wrong. */
static void serve_framed(const struct request *q, struct response *r)
{
    (void)q;
    response_header(r, "X-Frame-Options", "SAMEORIGIN");
    response_begin(r, 204, NULL);
}

static void serve_split(const struct request *q, struct response *r)
{
    (void)q;
    response_header(r, "Location", "%s", "/a\r\nSet-Cookie: b=c");
    response_begin(r, 204, NULL);
}

/* Half an answer may stand in the response already; of "long" the beginning has gone out. */
static void serve_crash(const struct request *q, struct response *r)
{
    static const char line[] = "these bytes are sent when there are enough of them\n";
    bool quits = request_field(q, "X-Quit").bytes, is_long = request_field(q, "X-Long").bytes;
    response_header(r, "Set-Cookie", "half=1");
    response_begin(r, 200, RESPONSE_TEXT);
    for (int i = 0; i < (is_long ? 10000 : 1); i++)
        json_sink_text(&r->sink, line);
    if (quits)
        actor_fail(ERR_INVALID, "on purpose");
    ASSERT(!q); /* on purpose */
}

static _Atomic uint32_t crashes_logged;

/* An access log that knows crashes: each with its path, its ids, and the status that it was answered with. */
static void log_crashes(const struct request *q, const struct response *r, uint64_t took)
{
    static const char end[] = "/crash";
    const char *path = q->path.bytes;
    size_t size = sizeof end - 1;
    bool is = q->path.size >= size && memcmp(path + q->path.size - size, end, size) == 0 && *path == '/';
    if (is && r->status == 500 && r->error != ERROR_NONE && q->trace.request_id_length && q->route && took)
        atomic_fetch_add(&crashes_logged, 1);
}

static void serve_crashes(const struct request *q, struct response *r)
{
    struct json json;
    (void)q;
    response_begin(r, 200, RESPONSE_JSON);
    json_init(&json, &r->sink);
    json_object_begin(&json);
    JSON_MEMBER(&json, "logged", uint, atomic_load(&crashes_logged));
    JSON_MEMBER(&json, "counted", uint,
                telemetry_counter_label(runtime_telemetry(runtime_self()), TELEMETRY_HTTP_REQUEST, "5xx"));
    JSON_MEMBER(&json, "of_version_1", uint, metrics_version_requests());
    json_object_end(&json);
}

static _Atomic uint32_t turned_away_logged;

static void log_turned_away(const struct request *q, const struct response *r, uint64_t took)
{
    if (r->error == ERROR_OPS_503_OVERLOADED && q->trace.request_id_length && q->address.size == 4 && !took)
        atomic_fetch_add(&turned_away_logged, 1);
}

static void serve_turned_away(const struct request *q, struct response *r)
{
    (void)q;
    response_begin(r, 200, RESPONSE_JSON);
    json_sink_text(&r->sink, atomic_load(&turned_away_logged) == 2 ? "{\"two\":1}" : "{}");
}

static void serve_failing(const struct request *q, struct response *r)
{
    (void)q;
    response_error(r, catalogue_code(r->surface, ERROR_KIND_UNAVAILABLE), "%s", "not now");
}

static void serve_worded(const struct request *q, struct response *r)
{
    (void)q;
    response_begin(r, 200, RESPONSE_TEXT);
    json_sink_text(&r->sink, "ok");
}

/* Far more than goes out in one piece; the last member alone is wrong, and only by its contract. */
static void serve_long(const struct request *q, struct response *r)
{
    (void)q;
    struct json json;
    response_begin(r, 200, RESPONSE_JSON);
    json_init(&json, &r->sink);
    json_object_begin(&json);
    json_key(&json, "keys");
    json_array_begin(&json);
    for (int i = 0; i < 900; i++)
        json_string(&json, "a key that is no object");
    json_array_end(&json);
    json_object_end(&json);
}

/* More elements than are read of any request. */
static void serve_many(const struct request *q, struct response *r)
{
    struct json json;
    (void)q;
    response_begin(r, 200, RESPONSE_JSON);
    json_init(&json, &r->sink);
    json_array_begin(&json);
    for (uint32_t i = 0; i <= JSON_TEXT_ELEMENTS_MAX; i++)
        json_uint(&json, i);
    json_array_end(&json);
}

static void serve_lying(const struct request *q, struct response *r)
{
    (void)q;
    response_error(r, ERROR_OPS_404_NOT_FOUND, "%s", "it isn't here");
    r->status = 409;
}

#define ROUTE(verb, at, whose, how, ...)                                                       \
    {                                                                                          \
        .method = METHOD_##verb, .path = at, .surface = SURFACE_##whose, .undocumented = true, \
        .serve = serve_##how, ##__VA_ARGS__                                                    \
    }
static const struct route routes[] = {
    ROUTE(GET, "/hello", PUBLIC, hello),
    ROUTE(GET, "/none", PUBLIC, nothing),
    ROUTE(GET, "/framed", PUBLIC, framed),
    ROUTE(GET, "/split", PUBLIC, split),
    ROUTE(GET, "/failing", PUBLIC, failing),
    ROUTE(GET, "/crash", PUBLIC, crash),
    ROUTE(GET, "/crashes", PUBLIC, crashes),
    ROUTE(GET, "/turned-away", PUBLIC, turned_away),
    ROUTE(GET, "/dlq/crash", CONTROL, crash),
    ROUTE(GET, "/v1/things/crash", JOBS, crash),
    ROUTE(POST, "/v1/things/crash", JOBS, crash, .body_max = FRONT_BODY_MAX),
    ROUTE(POST, "/plain", PUBLIC, hello, .body_max = 100),
    ROUTE(POST, "/optional", PUBLIC, hello, .body_max = 100, .body_optional = true),
    ROUTE(POST, "/change", PUBLIC, hello, .body_max = 100, .body_optional = true, .changes = true),
    ROUTE(POST, "/operated", OPERATOR, hello, .auth = AUTH_OPERATOR, .body_max = 100, .changes = true),
    ROUTE(GET, "/dlq/items", CONTROL, hello),
    ROUTE(GET, "/dlq/failing", CONTROL, failing),
    ROUTE(POST, "/dlq/submit", CONTROL, hello, .body_max = FRONT_BODY_MAX),
    ROUTE(GET, "/v1/dlq/items", CONTROL, hello),
    ROUTE(DELETE, "/hooks/{id}", PUBLIC, hello),
    ROUTE(GET, "/dlq/token", CONTROL, hello, .auth = AUTH_TOKEN),
    ROUTE(GET, "/v1/things", JOBS, hello),
    ROUTE(GET, "/v1/failing", JOBS, failing),
    ROUTE(POST, "/v1/things", JOBS, hello, .body_max = 100),
    ROUTE(POST, "/v1/register", JOBS, hello, .body_max = 100, .limit = LIMIT_REGISTER),
    ROUTE(POST, "/v1/all", JOBS, hello, .limit = LIMIT_REGISTER, .everybody = LIMIT_REGISTER_ALL),
    ROUTE(POST, "/v1/other", JOBS, hello, .limit = LIMIT_REGISTER, .everybody = LIMIT_REGISTER_ALL),
    ROUTE(POST, "/v1/maybe", JOBS, hello, .auth = AUTH_OPTIONAL, .limit = LIMIT_CLIENT,
          .anonymous = LIMIT_REGISTER),
    ROUTE(GET, "/v1/key", JOBS, hello, .auth = AUTH_KEY),
    ROUTE(GET, "/worded", PUBLIC, worded),
    ROUTE(GET, "/long", PUBLIC, long),
    ROUTE(GET, "/lying", PUBLIC, lying),
    ROUTE(GET, "/many", PUBLIC, many),
};

/* ---- a server ---- */

static struct testserver server;
static const struct testserver_options plain;
static char token[OPERATOR_TOKEN_TEXT], token_hash[OPERATOR_TOKEN_HASH];

static void start_as(struct testserver_options o, struct store *(*prepare)(struct routes *compiled))
{
    o.routes = routes;
    o.routes_count = sizeof routes / sizeof *routes;
    o.prepare = prepare;
    testserver_start(&o, &server);
}

static void start(void)
{
    start_as(plain, NULL);
}

static void stop_after(size_t crashes)
{
    TEST_CHECK_(testserver_runs(&server), "it ended by itself with %d", server.exit_status);
    testserver_stop(&server);
    TEST_CHECK_(server.exit_status == 0, "it ended with %d", server.exit_status);
    size_t logged =
        testserver_logged(&server, "\"actor.crash\"") + testserver_logged(&server, "actor crashed");
    TEST_CHECK_(logged == crashes, "%zu actors crashed", logged);
}

static void stop(void)
{
    stop_after(0);
}

static char text[16384];

/* One request; `fields` are whole lines. */
static struct heard ask(const char *method, const char *target, const char *fields, const char *body)
{
    char length[64] = "";
    if (body)
        snprintf(length, sizeof length, "Content-Length: %zu\r\n", strlen(body));
    snprintf(text, sizeof text, "%s %s HTTP/1.1\r\nHost: localhost\r\n%s%s\r\n%s", method, target, fields,
             length, body ? body : "");
    return talk_once(&server, text);
}

static struct heard get(const char *target)
{
    return ask("GET", target, "", NULL);
}

/* "code":"..." or whatever else of the body. */
static bool says(const struct heard *a, const char *member, const char *value)
{
    char pair[256];
    snprintf(pair, sizeof pair, "\"%s\":%s", member, value);
    return TEST_CHECK_(heard_has(a, pair), "%s: %.*s", pair, (int)a->body_size, a->body);
}

static bool field_is(const struct heard *a, const char *name, const char *value)
{
    return TEST_CHECK_(strcmp(heard_field(a, name), value) == 0 && heard_count(a, name) <= 1,
                       "%s: %s, not %s", name, heard_field(a, name), value);
}

static bool is_refused(const struct heard *a, int status, const char *code)
{
    char quoted[96];
    snprintf(quoted, sizeof quoted, "\"%s\"", code);
    bool is = TEST_CHECK_(a->status == status, "%d, not %d: %s", a->status, status, text);
    return is && says(a, "code", quoted);
}

/* ---- what every answer has ---- */

static void has_what_all_have(const struct heard *a, int status)
{
    TEST_CHECK_(a->status == status, "%d, not %d: %s", a->status, status, text);
    TEST_CHECK(heard_count(a, "Date") == 1 && strlen(heard_field(a, "Date")) == 29);
    TEST_CHECK(heard_count(a, "X-Request-Id") == 1 && heard_field(a, "X-Request-Id")[0]);
    TEST_CHECK(heard_count(a, "traceparent") == 1 && strlen(heard_field(a, "traceparent")) == 55);
    TEST_CHECK(heard_count(a, "Content-Length") == (status == 204 ? 0 : 1));
    TEST_CHECK(heard_count(a, "Transfer-Encoding") == 0);
    bool empty = status == 204 || strncmp(text, "OPTIONS ", 8) == 0;
    TEST_CHECK(heard_count(a, "Content-Type") == (empty ? 0 : 1));
    TEST_CHECK(heard_count(a, "X-Content-Type-Options") == 1 &&
               field_is(a, "X-Content-Type-Options", "nosniff"));
    TEST_CHECK(heard_count(a, "X-Frame-Options") == 1 && field_is(a, "X-Frame-Options", "DENY"));
    TEST_CHECK(heard_count(a, "Referrer-Policy") == 1 &&
               field_is(a, "Referrer-Policy", "strict-origin-when-cross-origin"));
    TEST_CHECK(heard_count(a, "Content-Security-Policy") == 1 &&
               strstr(heard_field(a, "Content-Security-Policy"), "script-src 'self';") &&
               !strstr(heard_field(a, "Content-Security-Policy"), "unsafe"));
    TEST_CHECK(heard_count(a, "Cache-Control") == 1 && field_is(a, "Cache-Control", "no-store"));
}

static const struct {
    const char *request;
    int status;
} answers[] = {
    {"GET /hello HTTP/1.1\r\nHost: a\r\n\r\n", 200},
    {"GET /hello HTTP/1.0\r\n\r\n", 200},
    {"HEAD /hello HTTP/1.1\r\nHost: a\r\n\r\n", 200},
    {"GET /none HTTP/1.1\r\nHost: a\r\n\r\n", 204},
    {"GET /failing HTTP/1.1\r\nHost: a\r\n\r\n", 503},
    {"GET /missing HTTP/1.1\r\nHost: a\r\n\r\n", 404},
    {"HEAD /missing HTTP/1.1\r\nHost: a\r\n\r\n", 404},
    {"PUT /hello HTTP/1.1\r\nHost: a\r\n\r\n", 405},
    {"OPTIONS /hello HTTP/1.1\r\nHost: a\r\n\r\n", 200},
    {"GET /dlq/token HTTP/1.1\r\nHost: a\r\n\r\n", 401},
    {"GET /v1/key HTTP/1.1\r\nHost: a\r\n\r\n", 401},
    {"GET /v1/things HTTP/1.1\r\nHost: a\r\nAccept: text/html\r\n\r\n", 406},
    {"POST /plain HTTP/1.1\r\nHost: a\r\n\r\n", 411},
    {"POST /plain HTTP/1.1\r\nHost: a\r\nContent-Length: 101\r\n\r\n", 413},
    {"POST /plain HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}", 415},
    {"GET /hello HTTP/1.1\r\nHost: a\r\nExpect: more\r\n\r\n", 417},
    {"GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"GET /hello HTTP/1.1\r\n\r\n", 400},
    {"nonsense\r\n\r\n", 400},
    {"GET /hello HTTP/3.1\r\nHost: a\r\n\r\n", 400},
};

static void test_CTL_150_to_CTL_154_every_answer_has_its_headers_once(void)
{
    start();
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        snprintf(text, sizeof text, "%s", answers[i].request);
        struct heard a = talk_once(&server, text);
        has_what_all_have(&a, answers[i].status);
        TEST_CHECK(heard_count(&a, "Strict-Transport-Security") == 0);
        if (strncmp(answers[i].request, "HEAD", 4) == 0)
            TEST_CHECK(a.body_size == 0 && strcmp(heard_field(&a, "Content-Length"), "0") != 0);
    }
    stop();
}

static struct store *prepare_secure(struct routes *compiled)
{
    (void)compiled;
    front_find("client")->secure = true;
    return NULL;
}

static void test_CTL_152_transport_security(void)
{
    start_as(plain, prepare_secure);
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        struct heard a = talk_once(&server, answers[i].request);
        TEST_CHECK(heard_count(&a, "Strict-Transport-Security") == 1);
        field_is(&a, "Strict-Transport-Security", "max-age=31536000; includeSubDomains");
    }
    stop();
}

static struct store *prepare_scripts(struct routes *compiled)
{
    char most[FRONT_SCRIPT_SRC_MAX + 1];
    (void)compiled;
    memset(most, 'a', FRONT_SCRIPT_SRC_MAX);
    most[FRONT_SCRIPT_SRC_MAX] = 0;
    front_find("client")->embeddable = true;
    front_allow_scripts(front_find("client"), most); /* the longest fits */
    TEST_CHECK(strstr(front_find("client")->csp, "frame-ancestors 'self'\r\n") != NULL);
    front_find("client")->embeddable = false;
    front_allow_scripts(front_find("client"), "'self',https://cdn.example.com");
    return NULL;
}

static void test_CTL_149_scripts_come_from_where_it_was_approved(void)
{
    start_as(plain, prepare_scripts);
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        struct heard a = talk_once(&server, answers[i].request);
        TEST_CHECK(
            heard_count(&a, "Content-Security-Policy") == 1 &&
            field_is(&a, "Content-Security-Policy",
                     "default-src 'self'; script-src 'self' https://cdn.example.com; object-src 'none'; "
                     "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"));
    }
    stop();
}

static void test_CTL_154_a_handler_can_not_weaken_them_nor_split_a_header(void)
{
    start();
    TEST_CHECK(get("/framed").status == 500);
    struct heard split = get("/split");
    TEST_CHECK(split.status == 500 && heard_field(&split, "Set-Cookie")[0] == 0);
    TEST_CHECK(get("/hello").status == 200);
    stop_after(2);
}

static void test_CTL_251_request_ids_and_trace_context(void)
{
    static const char parent[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    static const char *const unsound[] = {"a b", "a\"b", "a\\b", "a\tb", "\xc3\xa4"};
    char fields[512];
    start();
    snprintf(fields, sizeof fields, "X-Request-Id: order-7\r\ntraceparent: %s\r\n", parent);
    for (int i = 0; i < 4; i++) {
        static const char *const targets[] = {"/hello", "/missing", "/dlq/token", "/dlq/failing"};
        struct heard a = ask("GET", targets[i], fields, NULL);
        field_is(&a, "X-Request-Id", "order-7");
        TEST_CHECK(strncmp(heard_field(&a, "traceparent"), parent, 36) == 0);
        TEST_CHECK(strncmp(heard_field(&a, "traceparent") + 36, parent + 36, 16) != 0); /* a span of ours */
        if (a.status >= 400) {
            says(&a, "request_id", "\"order-7\"");
            says(&a, "trace_id", "\"0af7651916cd43dd8448eb211c80319c\"");
        }
    }
    for (size_t i = 0; i < sizeof unsound / sizeof *unsound; i++) {
        snprintf(fields, sizeof fields, "X-Request-Id: %s\r\ntraceparent: 00-%032d-%016d-01\r\n", unsound[i],
                 0, 1);
        struct heard a = ask("GET", "/missing", fields, NULL);
        TEST_CHECK_(strlen(heard_field(&a, "X-Request-Id")) == 36, "%s", unsound[i]);
        TEST_CHECK(strncmp(heard_field(&a, "traceparent"), "00-0000000000000000", 19) != 0);
    }
    snprintf(fields, sizeof fields, "X-Request-Id: %0129d\r\n", 0);
    struct heard a = ask("GET", "/hello", fields, NULL);
    TEST_CHECK(strlen(heard_field(&a, "X-Request-Id")) == 36);
    stop();
}

static struct store *prepare_turned_away(struct routes *compiled)
{
    (void)compiled;
    front_find("client")->log = log_turned_away;
    return NULL;
}

/* All the connections that there may be, or all that one address may have: the next one is told so as anybody is told anything. */
static void test_CTL_150_CTL_246_CTL_251_who_is_turned_away_is_told_as_everybody(void)
{
    static const struct testserver_options full[] = {{.connections = 2}, {.limits = {.peer_max = 2}}};
    for (size_t i = 0; i < sizeof full / sizeof *full; i++) {
        struct talk in[2], out;
        struct heard a;
        start_as(full[i], prepare_turned_away);
        for (int k = 0; k < 2; k++) {
            talk_begin(&in[k], &server);
            /* Who is in the midst of a request isn't idle, however long the machine stands still, and makes no room. */
            TEST_CHECK(talk_say_text(&in[k], "GET /hello HTTP/1.1\r\nHost: a\r\n\r\nGET /turned-away HT"));
            TEST_CHECK(talk_hear(&in[k]).status == 200);
        }
        char ids[2][64];
        for (int k = 0; k < 2; k++) {
            talk_begin(&out, &server);
            snprintf(text, sizeof text, "a connection of too many");
            a = talk_hear(&out);
            has_what_all_have(&a, 503);
            is_refused(&a, 503, "OPS_503_OVERLOADED");
            field_is(&a, "Content-Type", "application/problem+json");
            field_is(&a, "Retry-After", "1");
            TEST_CHECK(heard_has(&a, full[i].connections ? "there is no room for this connection"
                                                         : "this address has as many connections"));
            TEST_CHECK(a.close && talk_ended(&out));
            snprintf(ids[k], sizeof ids[k], "%s", heard_field(&a, "X-Request-Id"));
            TEST_CHECK(heard_has(&a, ids[k]));
            talk_end(&out);
        }
        TEST_CHECK(strcmp(ids[0], ids[1]) != 0);
        TEST_CHECK(talk_say_text(&in[0], "TP/1.1\r\nHost: a\r\n\r\n"));
        a = talk_hear(&in[0]);
        TEST_CHECK_(heard_has(&a, "{\"two\":1}"), "the log has both");
        for (int k = 0; k < 2; k++)
            talk_end(&in[k]);
        stop();
    }
}

/* What he has asked meanwhile is taken in: what nobody reads would take back what he was told. */
static void test_who_has_asked_before_he_is_turned_away_is_told(void)
{
    struct talk in, out;
    char byte;
    start_as((struct testserver_options){.limits = {.peer_max = 1}}, NULL);
    talk_begin(&in, &server);
    TEST_CHECK(talk_say_text(&in, "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"));
    TEST_CHECK(talk_hear(&in).status == 200);
    kill(server.pid, SIGSTOP); /* so that his request is there before him */
    talk_begin(&out, &server);
    TEST_CHECK(talk_say_text(&out, "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"));
    kill(server.pid, SIGCONT);
    TEST_CHECK(talk_hear(&out).status == 503);
    TEST_CHECK(recv(out.fd, &byte, 1, 0) == 0);
    talk_end(&out);
    talk_end(&in);
    stop();
}

/* Nobody who was turned away keeps the listener busy by going on: 64 times what is taken in of one can't all be said. */
static void test_who_is_turned_away_is_heard_for_a_while(void)
{
    static char mebibyte[1 << 20];
    struct talk in, out;
    start_as((struct testserver_options){.connections = 1}, NULL);
    talk_begin(&in, &server);
    TEST_CHECK(talk_say_text(&in, "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"));
    TEST_CHECK(talk_hear(&in).status == 200);
    talk_begin(&out, &server);
    TEST_CHECK(talk_hear(&out).status == 503);
    int said = 0;
    while (said < 64 && talk_say(&out, mebibyte, sizeof mebibyte))
        said++;
    TEST_CHECK(said < 64);
    talk_end(&out);
    talk_end(&in);
    stop();
}

/* ---- errors ---- */

/* The catalogue's row of this code, as text of the body's members. */
static void fits_catalogue(const struct heard *a, const char *code, const char *status_name)
{
    char number[16];
    for (enum error_code c = (enum error_code)1; c < ERROR_CODE_COUNT; c++) {
        const struct catalogue_row *row = catalogue_row(c);
        if (strcmp(row->code, code) != 0)
            continue;
        snprintf(number, sizeof number, "%d", a->status);
        TEST_CHECK(row->status == a->status);
        says(a, status_name, number);
        if (strcmp(status_name, "http_status") == 0)
            says(a, "retryable", row->retryable ? "true" : "false");
        return;
    }
    TEST_CHECK_(false, "%s is in the catalogue", code);
}

static void test_CTL_246_to_CTL_253_envelopes(void)
{
    static const struct {
        const char *method, *target, *fields, *body;
        int status;
        const char *code;
    } rows[] = {
        {"GET", "/dlq/failing", "", NULL, 503, "INFRA_503_DEPENDENCY_DOWN"},
        {"GET", "/dlq/nothing", "", NULL, 404, "REQ_404_ROUTE_NOT_FOUND"},
        {"PUT", "/dlq/items", "", NULL, 405, "REQ_405_METHOD_NOT_ALLOWED"},
        {"GET", "/dlq/token", "", NULL, 401, "AUTH_401_MISSING_TOKEN"},
        {"GET", "/dlq/token", "Authorization: Basic c2VjcmV0\r\n", NULL, 401, "AUTH_401_MISSING_TOKEN"},
        {"GET", "/dlq/token", "Authorization: Bearer canary.canary.canary\r\n", NULL, 401,
         "AUTH_401_INVALID_TOKEN"},
        {"POST", "/dlq/submit", JSON, "{\"canary\":", 400, "REQ_400_INVALID_SCHEMA"},
        {"POST", "/dlq/submit", JSON, "", 400, "REQ_400_INVALID_SCHEMA"},
        {"POST", "/dlq/submit", "Content-Type: text/canary\r\n", "{}", 400, "REQ_400_INVALID_SCHEMA"},
        {"GET", "/dlq/items", "", "{}", 400, "REQ_400_INVALID_SCHEMA"},
    };
    start();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct heard a = ask(rows[i].method, rows[i].target, rows[i].fields, rows[i].body);
        is_refused(&a, rows[i].status, rows[i].code);
        field_is(&a, "Content-Type", "application/json");
        TEST_CHECK(a.body_size > 11 && memcmp(a.body, "{\"error\":{\"", 11) == 0);
        fits_catalogue(&a, rows[i].code, "http_status");
        char id[80];
        snprintf(id, sizeof id, "\"%s\"", heard_field(&a, "X-Request-Id"));
        says(&a, "request_id", id);
        TEST_CHECK(heard_has(&a, "\"trace_id\":\"") && heard_has(&a, "\"message\":\""));
        TEST_CHECK(heard_has(&a, "\"details\":{"));
        TEST_CHECK_(!heard_has(&a, "canary"), "%.*s", (int)a.body_size, a.body); /* CTL-248 */
    }
    stop();
}

static void is_internal(const struct heard *a, const char *code, const char *type, const char *status_name)
{
    has_what_all_have(a, 500);
    is_refused(a, 500, code);
    fits_catalogue(a, code, status_name);
    field_is(a, "Content-Type", type);
    field_is(a, "Connection", "close");
    TEST_CHECK(heard_field(a, "Set-Cookie")[0] == 0);
    TEST_CHECK_(!heard_has(a, "purpose") && !heard_has(a, "these bytes"), "%.*s", (int)a->body_size, a->body);
}

static struct store *prepare_crashes(struct routes *compiled)
{
    (void)compiled;
    front_find("client")->log = log_crashes;
    front_find("client")->cors_origin = UI;
    return NULL;
}

/* What the log, the counters and the metrics say. */
static void are_observed(unsigned crashes, unsigned of_version_1)
{
    char line[160];
    struct heard a = get("/crashes");
    snprintf(line, sizeof line, "{\"logged\":%u,\"counted\":%u,\"of_version_1\":%u}", crashes, crashes,
             of_version_1);
    TEST_CHECK_(heard_has(&a, line), "%s: %.*s", line, (int)a.body_size, a.body);
}

/* Whatever ends the handler: its client hears of it in the shape of the path, it is counted and logged, and nobody else
 * notices. */
static void test_CTL_283_JOB_361_a_crash_is_answered(void)
{
    static const char *const how[] = {"", "X-Quit: 1\r\n"};
    struct heard a;
    char body[16000];
    start_as(plain, prepare_crashes);
    for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
        a = ask("GET", "/crash", how[i], NULL);
        is_internal(&a, "OPS_500_INTERNAL", "application/problem+json", "status");
        a = ask("GET", "/dlq/crash", how[i], NULL);
        is_internal(&a, "INTERNAL_500_UNEXPECTED", "application/json", "http_status");
        a = ask("GET", "/v1/things/crash", how[i], NULL);
        is_internal(&a, "RFA_INTERNAL", "application/problem+json", "status");
        a = ask("HEAD", "/v1/things/crash", how[i], NULL);
        TEST_CHECK(a.status == 500 && a.body_size == 0);
        struct talk t; /* of this answer the beginning has gone out */
        talk_begin(&t, &server);
        snprintf(text, sizeof text, "GET /crash HTTP/1.1\r\nHost: a\r\nX-Long: 1\r\n%s\r\n", how[i]);
        TEST_CHECK(talk_say_text(&t, text) && talk_hear(&t).status != 500);
        TEST_CHECK(t.size > 0 && !memmem(t.bytes, t.size, "INTERNAL", 8));
        talk_end(&t);
    }
    a = ask("GET", "/dlq/crash", "X-Request-Id: order-7\r\n", NULL);
    says(&a, "request_id", "\"order-7\"");
    a = ask("GET", "/crash", "Origin: " UI "\r\n", NULL); /* a page may read what went wrong */
    field_is(&a, "Access-Control-Allow-Origin", UI);
    memset(body, ' ', sizeof body - 1);
    memcpy(body, "{}", 2);
    body[15000] = 0;
    a = ask("POST", "/v1/things/crash", JSON, body);
    is_internal(&a, "RFA_INTERNAL", "application/problem+json", "status");
    struct talk t; /* what came is in a room that is given back before the crash is told of */
    static char large[80000];
    talk_begin(&t, &server);
    int head =
        snprintf(large, sizeof large,
                 "POST /v1/things/crash HTTP/1.1\r\nHost: a\r\n" JSON "Content-Length: 70000\r\n\r\n{}");
    memset(large + head, ' ', 69998);
    TEST_CHECK(talk_say(&t, large, (size_t)head + 69998) && talk_hear(&t).status == 500);
    talk_end(&t);
    are_observed(14, 9);
    TEST_CHECK(get("/hello").status == 200);
    stop_after(14);
}

static void test_JOB_342_to_JOB_345_problems(void)
{
    start();
    struct heard a = ask("PUT", "/v1/things", "", NULL);
    is_refused(&a, 405, "RFA_REQUEST_METHOD_NOT_ALLOWED");
    field_is(&a, "Allow", "GET, HEAD, POST, OPTIONS");
    field_is(&a, "Content-Type", "application/problem+json");
    fits_catalogue(&a, "RFA_REQUEST_METHOD_NOT_ALLOWED", "status");
    says(&a, "type", "\"urn:problem:rfa-request-method-not-allowed\"");
    says(&a, "action", "\"Use the documented method.\"");
    a = ask("GET", "/v1/things", "Accept: text/html\r\n", NULL);
    is_refused(&a, 406, "RFA_REQUEST_NOT_ACCEPTABLE");
    for (int i = 0; i < 4; i++) {
        static const char *const fine[] = {"Accept: */*\r\n", "Accept: text/html, application/json;q=0.1\r\n",
                                           "Accept: application/*\r\n",
                                           "Accept: text/html\r\nAccept: application/json\r\n"};
        TEST_CHECK_(ask("GET", "/v1/things", fine[i], NULL).status == 200, "%s", fine[i]);
    }
    for (int i = 0; i < 7; i++) {
        static const char *const none[] = {"application/json;q=0",
                                           "application/json ; Q=0.000, */*",
                                           "*/*, application/json;q=0.0",
                                           "application/*;q=0, */*;q=1",
                                           "*/*;q=0",
                                           "text/html;q=1, application/jsonp",
                                           "text/html, x/application/json"};
        char line[128];
        snprintf(line, sizeof line, "Accept: %s\r\n", none[i]);
        a = ask("GET", "/v1/things", line, NULL);
        TEST_CHECK_(a.status == 406, "%s: %d", none[i], a.status);
    }
    for (int i = 0; i < 5; i++) {
        static const char *const fine[] = {"application/json;q=0.001", "*/*;q=0, application/json",
                                           "application/problem+json", "text/html, */*;q=0.01", ""};
        char line[128];
        snprintf(line, sizeof line, "Accept: %s\r\n", fine[i]);
        TEST_CHECK_(ask("GET", "/v1/things", line, NULL).status == 200, "%s", fine[i]);
    }
    static const struct {
        const char *fields;
        int status;
    } types[] = {{"Content-Type: application/json;charset=latin1\r\n", 415},
                 {"Content-Type: application/json; a=b; charset=\"iso-8859-1\"\r\n", 415},
                 {"Content-Type: application/json;charset=\"UTF-8\"\r\n", 200},
                 {"Content-Type: application/json;version=1\r\n", 200},
                 {"Content-Type: application/jsonp\r\n", 415},
                 {JSON "Content-Encoding: gzip\r\n", 415},
                 {JSON "Content-Encoding: \r\n", 415},
                 {JSON "Content-Encoding: identity\r\nContent-Encoding: gzip\r\n", 415},
                 {JSON "Content-Encoding: Identity\r\n", 200}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        a = ask("POST", "/v1/things", types[i].fields, "{}");
        TEST_CHECK_(a.status == types[i].status, "%s: %d", types[i].fields, a.status);
    }
    char body[102];
    snprintf(body, sizeof body, "{}%99s", "");
    a = ask("POST", "/v1/things", JSON, body);
    is_refused(&a, 413, "RFA_REQUEST_PAYLOAD_TOO_LARGE");
    a = ask("POST", "/v1/things", "Content-Type: text/plain\r\n", "{}");
    is_refused(&a, 415, "RFA_REQUEST_UNSUPPORTED_MEDIA_TYPE");
    TEST_CHECK(ask("POST", "/v1/things", "Content-Type: Application/JSON ; charset=utf-8\r\n", "{}").status ==
               200);
    a = ask("POST", "/v1/things", JSON, "{");
    is_refused(&a, 400, "RFA_REQUEST_MALFORMED");
    stop();
}

/* In whichever pieces it comes, the same request has the same answer. */
static void test_what_is_refused_before_a_body_is_refused_alike_behind_it(void)
{
    static const struct {
        const char *target, *fields;
        int status;
    } rows[] = {
        {"/missing", "", 404},          {"/hello", "", 405},
        {"/dlq/token", "", 405},        {"/change", "Sec-Fetch-Site: cross-site\r\n", 403},
        {"/plain", "Host: b\r\n", 400},
    };
    start();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int later = 0; later < 2; later++) {
            struct talk t;
            char request[512];
            snprintf(request, sizeof request,
                     "POST %s HTTP/1.1\r\nHost: a\r\n" JSON "%sContent-Length: 2\r\n\r\n%s", rows[i].target,
                     rows[i].fields, later ? "" : "{}");
            talk_begin(&t, &server);
            TEST_CHECK(talk_say_text(&t, request));
            struct heard a = talk_hear(&t);
            TEST_CHECK_(a.status == rows[i].status, "%s: %d", request, a.status);
            TEST_CHECK(!later || (a.close && talk_ended(&t)));
            talk_end(&t);
        }
    struct talk t;
    talk_begin(&t,
               &server); /* a body where none is taken: not waited for, and answered as when it is there */
    TEST_CHECK(talk_say_text(&t, "GET /hello HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n"));
    struct heard a = talk_hear(&t);
    TEST_CHECK(a.status == 400 && a.close);
    talk_end(&t);
    TEST_CHECK(ask("GET", "/hello", "", "{}").status == 400);
    stop();
}

static void test_bodies_and_lengths(void)
{
    start();
    struct heard a = ask("POST", "/plain", JSON, NULL);
    is_refused(&a, 411, "OPS_411_LENGTH_REQUIRED");
    a = ask("POST", "/plain", JSON, "");
    is_refused(&a, 400, "OPS_400_MALFORMED");
    TEST_CHECK(ask("POST", "/optional", "", NULL).status == 200);
    TEST_CHECK(ask("POST", "/optional", "", "").status == 200);
    TEST_CHECK(ask("POST", "/optional", JSON, "{}").status == 200);
    a = ask("POST", "/optional", "", "{}");
    is_refused(&a, 415, "OPS_415_UNSUPPORTED_TYPE");
    field_is(&a, "Accept-Post", "application/json");
    a = ask("GET", "/hello", "Expect: the-unexpected\r\n", NULL);
    is_refused(&a, 417, "OPS_417_EXPECTATION");
    TEST_CHECK(a.close);
    stop();
}

/* ---- the control contract's limits ---- */

static int submit(const char *body, size_t size, bool chunked)
{
    static char all[(1u << 20) + 8192];
    struct talk t;
    size_t n = (size_t)snprintf(all, sizeof all, "POST /dlq/submit HTTP/1.1\r\nHost: a\r\n" JSON);
    if (chunked)
        n += (size_t)snprintf(all + n, sizeof all - n, "Transfer-Encoding: chunked\r\n\r\n%zx\r\n", size);
    else
        n += (size_t)snprintf(all + n, sizeof all - n, "Content-Length: %zu\r\n\r\n", size);
    memcpy(all + n, body, size);
    n += size;
    if (chunked) {
        memcpy(all + n, "\r\n0\r\n\r\n", 7);
        n += 7;
    }
    talk_begin(&t, &server);
    (void)talk_say(&t, all, n);
    struct heard a = talk_hear(&t);
    if (a.status == 400)
        says(&a, "code", "\"REQ_400_INVALID_SCHEMA\"");
    talk_end(&t);
    return a.status;
}

static void test_CTL_056_size_of_a_body(void)
{
    static char body[FRONT_BODY_MAX + 1];
    memset(body, ' ', sizeof body);
    memcpy(body, "{}", 2);
    start();
    for (int chunked = 0; chunked < 2; chunked++) {
        TEST_CHECK(submit(body, FRONT_BODY_MAX, chunked) == 200);
        TEST_CHECK(submit(body, FRONT_BODY_MAX + 1, chunked) == 400);
    }
    stop();
}

static size_t nested(char *at, size_t depth)
{
    memset(at, '[', depth);
    memset(at + depth, ']', depth);
    return 2 * depth;
}

static void test_CTL_057_depth_of_a_body(void)
{
    static char body[200000];
    start();
    TEST_CHECK(submit(body, nested(body, 10), false) == 200);
    TEST_CHECK(submit(body, nested(body, 11), false) == 400);
    TEST_CHECK(submit(body, nested(body, 100000), false) == 400);
    stop();
}

static size_t array(char *at, size_t count)
{
    size_t size = (size_t)sprintf(at, "{\"payload\":{\"a\":[");
    for (size_t i = 0; i < count; i++)
        size += (size_t)sprintf(at + size, i ? ",1" : "1");
    return size + (size_t)sprintf(at + size, "]}}");
}

static void test_CTL_058_elements_of_an_array(void)
{
    static char body[8192];
    start();
    TEST_CHECK(submit(body, array(body, 1000), false) == 200);
    TEST_CHECK(submit(body, array(body, 1001), false) == 400);
    stop();
}

static void test_CTL_023_to_CTL_025_versions(void)
{
    static const char *const others[] = {"/v2/dlq/items", "/v2", "/v0/dlq/items", "/v10/dlq/items",
                                         "/v01/dlq/items"};
    start();
    TEST_CHECK(get("/dlq/items").status == 200);
    TEST_CHECK(get("/v1/dlq/items").status == 200);
    TEST_CHECK(ask("GET", "/v1/dlq/items", "Accept: application/vnd.rias.v2+json\r\n", NULL).status == 200);
    TEST_CHECK(ask("GET", "/dlq/items", "Accept: application/vnd.rias.v2+json\r\n", NULL).status == 200);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct heard a = get(others[i]);
        is_refused(&a, 404, "REQ_404_ROUTE_NOT_FOUND");
    }
    stop();
}

/* ---- OPTIONS and CORS ---- */

static void test_AMB_05_JOB_373_OPTIONS(void)
{
    start();
    struct heard a = ask("OPTIONS", "/plain", "", NULL);
    TEST_CHECK(a.status == 200 && a.body_size == 0);
    field_is(&a, "Allow", "POST, OPTIONS");
    a = ask("OPTIONS", "*", "", NULL);
    TEST_CHECK(a.status == 200);
    field_is(&a, "Allow", "GET, HEAD, POST, DELETE, OPTIONS");
    TEST_CHECK(ask("OPTIONS", "http://localhost", "", NULL).status == 200); /* RFC 9112, 3.2.4 */
    TEST_CHECK(ask("OPTIONS", "/", "", NULL).status == 404);
    TEST_CHECK(ask("OPTIONS", "/missing", "", NULL).status == 404);
    a = ask("OPTIONS", "/dlq/items", "Origin: " UI "\r\nAccess-Control-Request-Method: GET\r\n", NULL);
    is_refused(&a, 405, "REQ_405_METHOD_NOT_ALLOWED");
    field_is(&a, "Allow", "GET, HEAD"); /* what is refused isn't allowed */
    a = ask("PUT", "/dlq/items", "", NULL);
    field_is(&a, "Allow", "GET, HEAD");
    stop();
}

/* A token is a method, whoever has heard of it: one that no path takes, in the shape of the path's owner, and the connection stays. */
static void test_CTL_022_405_methods_that_nobody_knows(void)
{
    static const char *const methods[] = {"FOO", "QUERY", "BREW", "PROPFIND",
                                          "PRI", "PLAY",  "get",  "G!#$%&'*+-.^_`|~T"};
    static const struct {
        const char *target, *code, *allow;
    } rows[] = {{"/hello", "OPS_405_METHOD", "GET, HEAD, OPTIONS"},
                {"/v1/things", "RFA_REQUEST_METHOD_NOT_ALLOWED", "GET, HEAD, POST, OPTIONS"},
                {"/dlq/items?x=1", "REQ_405_METHOD_NOT_ALLOWED", "GET, HEAD"},
                {"/v1/dlq/items", "REQ_405_METHOD_NOT_ALLOWED", "GET, HEAD"}};
    start();
    for (size_t m = 0; m < sizeof methods / sizeof *methods; m++) {
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            struct heard a = ask(methods[m], rows[i].target, "X-Request-Id: mine\r\n", NULL);
            is_refused(&a, 405, rows[i].code);
            field_is(&a, "Allow", rows[i].allow);
            field_is(&a, "X-Request-Id", "mine");
            TEST_CHECK(!a.close);
        }
        struct heard a = ask(methods[m], "/missing", "", NULL);
        is_refused(&a, 404, "OPS_404_NO_ROUTE");
        a = ask(methods[m], "/v1/things", JSON, "{}"); /* its body is read to its end */
        TEST_CHECK(a.status == 405 && !a.close);
    }
    stop();
}

static size_t cors_headers(const struct heard *a)
{
    size_t count = 0;
    for (const char *at = a->head; (at = strstr(at, "\r\nAccess-Control-")); at += 2)
        count++;
    return count;
}

static void test_CTL_059_without_CORS(void)
{
    start();
    for (int i = 0; i < 2; i++) {
        struct heard a = ask(i ? "OPTIONS" : "GET", "/dlq/items",
                             "Origin: " UI "\r\nAccess-Control-Request-Method: POST\r\n", NULL);
        TEST_CHECK(cors_headers(&a) == 0);
    }
    stop();
}

static struct store *prepare_cors(struct routes *compiled)
{
    (void)compiled;
    front_find("client")->cors_origin = UI;
    return NULL;
}

static void test_CTL_060_to_CTL_063_with_CORS(void)
{
    static const char *const others[] = {"https://evil.example",
                                         UI ".evil.example",
                                         "http://ui.example",
                                         "null",
                                         "HTTPS://UI.EXAMPLE",
                                         UI ":8443",
                                         "*"};
    static const char *const targets[] = {"/dlq/items", "/hello", "/v1/things", "/missing", "/dlq/token"};
    char fields[256];
    start_as(plain, prepare_cors);
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        struct heard a = ask("GET", targets[i], "Origin: " UI "\r\n", NULL);
        field_is(&a, "Access-Control-Allow-Origin", UI);
        field_is(&a, "Access-Control-Allow-Credentials", "true");
        field_is(&a, "Access-Control-Expose-Headers",
                 "X-Request-Id, traceparent, RateLimit, RateLimit-Policy, Retry-After, Location, Link, ETag, "
                 "Idempotent-Replayed, Preference-Applied");
        field_is(&a, "Vary", "Origin");
        a = get(targets[i]); /* a cache must not give this to a page */
        TEST_CHECK(cors_headers(&a) == 0);
        field_is(&a, "Vary", "Origin");
        for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
            snprintf(fields, sizeof fields, "Origin: %s\r\n", others[k]);
            a = ask("GET", targets[i], fields, NULL);
            TEST_CHECK_(cors_headers(&a) == 0, "%s", others[k]);
        }
    }
    struct heard a =
        ask("OPTIONS", "/dlq/submit", "Origin: " UI "\r\nAccess-Control-Request-Method: POST\r\n", NULL);
    TEST_CHECK(a.status == 200);
    field_is(&a, "Access-Control-Allow-Methods", "GET, POST");
    /* without this a page can't show its token, nor send JSON */
    field_is(&a, "Access-Control-Allow-Headers",
             "Authorization, Content-Type, Idempotency-Key, Prefer, X-Request-Id, traceparent");
    field_is(&a, "Access-Control-Max-Age", "3600");
    field_is(&a, "Access-Control-Allow-Origin", UI);
    a = ask("OPTIONS", "/dlq/submit",
            "Origin: https://evil.example\r\nAccess-Control-Request-Method: POST\r\n", NULL);
    TEST_CHECK(a.status == 405 && cors_headers(&a) == 0);
    TEST_CHECK(ask("POST", "/change", "Origin: " UI "\r\nSec-Fetch-Site: same-site\r\n", NULL).status == 200);
    a = ask("OPTIONS", "/hooks/7", "Origin: " UI "\r\nAccess-Control-Request-Method: DELETE\r\n", NULL);
    TEST_CHECK(a.status == 200);
    field_is(&a, "Access-Control-Allow-Methods", "GET, POST, DELETE"); /* where there is one */
    stop();
}

static struct store *prepare_older_limits(struct routes *compiled)
{
    prepare_cors(compiled);
    limiter_configure(front_find("client")->limiter,
                      &(struct limiter_options){.style = LIMITER_STYLE_X_TRIPLE});
    return NULL;
}

/* A page may read the fields that there are. */
static void test_CTL_060_older_limits_are_exposed_where_they_are_said(void)
{
    start_as(plain, prepare_older_limits);
    struct heard a = ask("GET", "/hello", "Origin: " UI "\r\n", NULL);
    field_is(
        &a, "Access-Control-Expose-Headers",
        "X-Request-Id, traceparent, RateLimit, RateLimit-Policy, X-RateLimit-Limit, X-RateLimit-Remaining, "
        "X-RateLimit-Reset, Retry-After, Location, Link, ETag, Idempotent-Replayed, Preference-Applied");
    stop();
}

/* ---- who is asked ---- */

static void test_a_page_from_elsewhere_changes_nothing(void)
{
    static const struct {
        const char *fields;
        int status;
    } rows[] = {
        {"", 200},
        {"Origin: http://localhost\r\n", 200},
        {"Sec-Fetch-Site: same-origin\r\n", 200},
        {"Sec-Fetch-Site: none\r\n", 200},
        {"Origin: http://localhost\r\nSec-Fetch-Site: cross-site\r\n", 403},
        {"Sec-Fetch-Site: same-site\r\n", 403},
        {"Origin: http://evil.example\r\n", 403},
        {"Origin: http://localhost.evil.example\r\n", 403},
        {"Origin: http://localhost:81\r\n", 403},
        {"Origin: null\r\n", 403},
        {"Origin: \r\n", 403},
    };
    start();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int status = ask("POST", "/change", rows[i].fields, NULL).status;
        TEST_CHECK_(status == rows[i].status, "%s: %d", rows[i].fields, status);
        TEST_CHECK(ask("GET", "/hello", rows[i].fields, NULL).status == 200);
    }
    stop();
}

static struct store *prepare_operated(struct routes *compiled)
{
    struct front *front = front_find("client");
    (void)compiled;
    front->loopback_only = true;
    front->operator_token_hash = token_hash;
    return NULL;
}

static void make_token(void)
{
    char path[] = "/tmp/coppice-front-XXXXXX", why[256];
    int fd = mkstemp(path);
    TEST_ASSERT(fd >= 0);
    close(fd);
    unlink(path);
    TEST_ASSERT_(operator_token_open(path, env_real(), token, token_hash, why, sizeof why) == OK, "%s", why);
    unlink(path);
}

static void test_421_a_listener_of_this_machine_answers_for_no_other_name(void)
{
    static const char *const ours[] = {"localhost",   "LocalHost:8080", "127.0.0.1",
                                       "127.1.2.3:1", "[::1]",          "[::1]:80"};
    static const char *const others[] = {
        "evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "128.0.0.1", "[::2]", "[::1]a",
        "127.evil"};
    char request[256];
    make_token();
    start_as(plain, prepare_operated);
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
        snprintf(request, sizeof request, "GET /hello HTTP/1.1\r\nHost: %s\r\n\r\n", ours[i]);
        TEST_CHECK_(talk_once(&server, request).status == 200, "%s", ours[i]);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        snprintf(request, sizeof request, "GET /hello HTTP/1.1\r\nHost: %s\r\n\r\n", others[i]);
        int status = talk_once(&server, request).status;
        TEST_CHECK_(status == 421 || (i == 5 && status == 400), "%s: %d", others[i], status);
    }
    stop();
}

/* RFC 6750: what is missing and what was refused are told apart. */
static void test_401_says_whether_there_was_a_credential(void)
{
    static const char plain_text[] = "Bearer realm=\"coppice\"",
                      refused[] = "Bearer realm=\"coppice\", error=\"invalid_token\"";
    static const char *const targets[] = {"/dlq/token", "/v1/key"};
    start();
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        struct heard a = ask("GET", targets[i], "", NULL);
        field_is(&a, "WWW-Authenticate", plain_text);
        a = ask("GET", targets[i], "Authorization: Basic c2VjcmV0\r\n", NULL);
        field_is(&a, "WWW-Authenticate", plain_text);
        a = ask("GET", targets[i], "Authorization: Bearer a.b.c\r\n", NULL);
        field_is(&a, "WWW-Authenticate", refused);
    }
    stop();
}

static struct heard operate(const char *credential)
{
    char fields[256];
    snprintf(fields, sizeof fields, JSON "%s%s%s", credential ? "Authorization: " : "",
             credential ? credential : "", credential ? "\r\n" : "");
    return ask("POST", "/operated", fields, "{}");
}

static void test_the_operators_token(void)
{
    char credential[128];
    make_token();
    start_as(plain, prepare_operated);
    struct heard a = operate(NULL);
    is_refused(&a, 401, "OPS_401_NO_CREDENTIALS");
    TEST_CHECK(heard_count(&a, "WWW-Authenticate") == 1);
    a = operate("Bearer wrong");
    is_refused(&a, 401, "OPS_401_BAD_CREDENTIALS");
    snprintf(credential, sizeof credential, "Bearer %s", token);
    TEST_CHECK(operate(credential).status == 200);
    snprintf(credential, sizeof credential, "Bearer %sx", token);
    TEST_CHECK(operate(credential).status == 401);
    snprintf(credential, sizeof credential, "Bearer %.*s", (int)strlen(token) - 1, token);
    TEST_CHECK(operate(credential).status == 401);
    snprintf(credential, sizeof credential, "Basic %s", token);
    TEST_CHECK(operate(credential).status == 401);
    stop();
}

/* ---- limits ---- */

static struct store *with_limits(const struct limiter_options *options)
{
    struct front *front = front_find("client");
    front->limiter = limiter_create(options);
    front->operator_token_hash = token_hash;
    ASSERT(front->limiter);
    return NULL;
}

static struct store *prepare_register(struct routes *compiled)
{
    (void)compiled;
    return with_limits(
        &(struct limiter_options){.quota = {[LIMIT_REGISTER] = 3}, .style = LIMITER_STYLE_TRIPLE});
}

static void test_JOB_345_too_many_requests(void)
{
    start_as(plain, prepare_register);
    for (int i = 0; i < 3; i++) {
        struct heard a = ask("POST", "/v1/register", JSON, "{}");
        char left[64];
        snprintf(left, sizeof left, "\"register\";r=%d;t=", 2 - i);
        TEST_CHECK(a.status == 200);
        field_is(&a, "RateLimit-Policy", "\"register\";q=3;w=60");
        TEST_CHECK(strncmp(heard_field(&a, "RateLimit"), left, strlen(left)) == 0);
        TEST_CHECK(heard_count(&a, "Retry-After") == 0);
        field_is(&a, "RateLimit-Limit", "3");
        TEST_CHECK(atoi(heard_field(&a, "RateLimit-Remaining")) == 2 - i);
        TEST_CHECK(heard_count(&a, "RateLimit-Reset") == 1);
    }
    struct heard a = ask("POST", "/v1/register", JSON, "{}");
    is_refused(&a, 429, "RFA_REQUEST_RATE_LIMITED");
    says(&a, "limit", "\"anonymous\"");
    TEST_CHECK(heard_count(&a, "Retry-After") == 1 && atoi(heard_field(&a, "Retry-After")) >= 1 &&
               atoi(heard_field(&a, "Retry-After")) <= 20);
    TEST_CHECK(strncmp(heard_field(&a, "RateLimit"), "\"register\";r=0;t=", 17) == 0);
    field_is(&a, "RateLimit-Remaining", "0");
    TEST_CHECK(strcmp(heard_field(&a, "RateLimit-Reset"), heard_field(&a, "Retry-After")) == 0);
    TEST_CHECK(get("/v1/things").status == 200); /* it isn't the address that is limited */
    stop();
}

static struct store *prepare_failures(struct routes *compiled)
{
    (void)compiled;
    return with_limits(&(struct limiter_options){.quota = {[LIMIT_FAILURES] = 4}});
}

/* Whether the body came with the head or not: who is refused again and again waits. */
static void test_refused_credentials_are_counted(void)
{
    make_token();
    start_as(plain, prepare_failures);
    for (int i = 0; i < 6; i++) {
        struct talk t;
        talk_begin(&t, &server);
        TEST_CHECK(talk_say_text(
            &t, "POST /operated HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer wrong\r\n" JSON
                "Content-Length: 2\r\n\r\n"));
        if (i % 2)
            (void)talk_say_text(&t, "{}");
        struct heard a = talk_hear(&t);
        TEST_CHECK_(a.status == (i < 4 ? 401 : 429), "refusal %d: %d", i, a.status);
        TEST_CHECK(i < 4 || heard_count(&a, "Retry-After") == 1);
        TEST_CHECK(i < 4 || strstr(a.body, "more than 4 refused credentials in 60 s"));
        talk_end(&t);
    }
    TEST_CHECK(get("/hello").status == 200);
    stop();
}

/* As the operators' listener is made: what the clients' one counts has no room for anything, and isn't asked. */
static struct store *prepare_operators(struct routes *compiled)
{
    (void)compiled;
    struct front *front = front_find("client");
    (void)with_limits(&(struct limiter_options){
        .quota = {[LIMIT_ADDRESS] = 1, [LIMIT_FAILURES] = 1, [LIMIT_OPERATOR_FAILURES] = 4}});
    front->per_address = LIMIT_NONE;
    front->refusals = LIMIT_OPERATOR_FAILURES;
    return NULL;
}

static void test_refused_operators_are_counted(void)
{
    char credential[128];
    make_token();
    snprintf(credential, sizeof credential, "Bearer %s", token);
    start_as(plain, prepare_operators);
    for (int i = 0; i < 4; i++) {
        struct heard a = operate("Bearer wrong");
        TEST_CHECK_(a.status == 401, "refusal %d: %d", i, a.status);
        field_is(&a, "RateLimit-Policy", "\"operator_failures\";q=4;w=60");
    }
    struct heard a = operate("Bearer wrong");
    is_refused(&a, 429, "OPS_429_THROTTLED");
    TEST_CHECK(heard_count(&a, "Retry-After") == 1 &&
               strstr(a.body, "more than 4 refused credentials in 60 s"));
    TEST_CHECK(operate(NULL).status == 429);
    for (int i = 0; i < 3; i++)
        TEST_CHECK(operate(credential).status == 200 && get("/hello").status == 200);
    TEST_CHECK(operate("Bearer wrong").status == 429);
    stop();
}

static struct store *prepare_address(struct routes *compiled)
{
    (void)compiled;
    return with_limits(&(struct limiter_options){.quota = {[LIMIT_ADDRESS] = 4}});
}

/* Any request counts, and is counted before anything is done for it. */
static void test_requests_of_an_address_are_counted_first(void)
{
    make_token();
    start_as(plain, prepare_address);
    TEST_CHECK(get("/hello").status == 200);
    TEST_CHECK(get("/missing").status == 404);
    TEST_CHECK(ask("PUT", "/hello", "", NULL).status == 405);
    struct heard a = operate("Bearer wrong");
    TEST_CHECK(a.status == 401 && heard_count(&a, "RateLimit") == 2); /* its own, and that of failures */
    TEST_CHECK(get("/missing").status == 429);
    TEST_CHECK(operate("Bearer wrong").status == 429);
    a = get("/v1/things");
    is_refused(&a, 429, "RFA_REQUEST_RATE_LIMITED");
    says(&a, "limit", "\"anonymous\"");
    a = get("/dlq/items");
    is_refused(&a, 429, "RATE_429_THROTTLED");
    TEST_CHECK(!heard_has(&a, "\"limit\":"));
    stop();
}

static struct store *prepare_everybody(struct routes *compiled)
{
    (void)compiled;
    return with_limits(&(struct limiter_options){.quota = {[LIMIT_REGISTER] = 4, [LIMIT_REGISTER_ALL] = 2}});
}

/* A bucket of a route is one of all who ask for it, and of this route alone; what is left in it is nobody's business. */
static void test_buckets_of_routes(void)
{
    start_as(plain, prepare_everybody);
    for (int i = 0; i < 2; i++) {
        struct heard a = ask("POST", "/v1/all", "", NULL);
        TEST_CHECK(a.status == 200 && heard_count(&a, "RateLimit") == 1);
        TEST_CHECK(strstr(heard_field(&a, "RateLimit"), "\"register\";r=") != NULL);
    }
    struct heard a = ask("POST", "/v1/all", "", NULL);
    is_refused(&a, 429, "RFA_REQUEST_RATE_LIMITED");
    TEST_CHECK(heard_count(&a, "RateLimit") == 2 && heard_has(&a, "more than 2 requests in 60 s"));
    TEST_CHECK(ask("POST", "/v1/other", "", NULL).status == 200); /* the last one of this address */
    a = ask("POST", "/v1/maybe", "", NULL);                       /* without a key it counts as one */
    is_refused(&a, 429, "RFA_REQUEST_RATE_LIMITED");
    TEST_CHECK(strstr(heard_field(&a, "RateLimit"), "\"register\";r=0") != NULL);
    stop();
}

/* ---- answers and their contract ---- */

/* What the document of an operation says of an answer with this status, which may be its default. */
static const struct schema *problem_of(const struct contracts *contracts, const char *method,
                                       const char *path, int status)
{
    const struct contract_operation *operation = contracts_operation(contracts, method, path);
    const struct schema *schema = NULL;
    TEST_ASSERT(operation != NULL);
    for (uint32_t i = 0; i < operation->answers_count; i++)
        if (operation->answers[i].type &&
            strcmp(operation->answers[i].type, "application/problem+json") == 0 &&
            (operation->answers[i].status == status || (!operation->answers[i].status && !schema)))
            schema = operation->answers[i].schema;
    TEST_ASSERT_(schema != NULL, "%s %s says nothing of %d", method, path, status);
    return schema;
}

/* The job contract's list of codes is its specification's, without the extensions for these statuses: of such a problem all
 * but the code is as published. */
static bool only_the_code_is_ours(const struct heard *a, const char *code, const struct schema_result *result)
{
    bool ours = a->status == 408 || a->status == 414 || a->status == 417 || a->status == 431;
    return ours && strncmp(code, "RFA_REQUEST_", 12) == 0 && result->count == 1 &&
           strcmp(result->defects[0].pointer, "/code") == 0;
}

static void is_as_published(const struct heard *a, const struct schema *schema, const char *code)
{
    static struct json_node nodes[256];
    struct json_text json = {.nodes = nodes, .nodes_max = 256, .seed = 1};
    struct json_error error;
    struct schema_result result;
    TEST_ASSERT_(json_text_read(&json, span_of(a->body, (uint32_t)a->body_size), NULL, &error), "%s: no JSON",
                 code);
    bool valid = schema_check(schema, &json, json_root(&json), &result);
    TEST_CHECK_(valid || only_the_code_is_ours(a, code, &result), "%s: %s %s: %.*s", code,
                result.defects[0].pointer, result.defects[0].what, (int)a->body_size, a->body);
}

#define JOBS(verb, target, fields) verb " " target " HTTP/1.1\r\nHost: a\r\n" fields "\r\n"
#define MANY                                                                                           \
    "A: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\n" \
    "A: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\n" \
    "A: b\r\n"

/* Refusals of the front itself, of a path of the jobs surface: in its codes, and in extensions where its contract has no status.
 * Of a path that is nobody's it is the listener that speaks, and its contract is that of operators. */
static const struct {
    const char *request;
    int status;
    const char *code;
    bool of_the_listener;
} refusals[] = {
    {"GET /v1/things HTTP/1.1\r\n\r\n", 400, "RFA_REQUEST_MALFORMED", false},
    {"GET /hello HTTP/1.1\r\n\r\n", 400, "OPS_400_MALFORMED", true},
    {JOBS("GET", "/v1/th%2fings", ""), 400, "RFA_REQUEST_MALFORMED", false},
    {JOBS("POST", "/v1/things", JSON "Content-Length: 1\r\n") "{", 400, "RFA_REQUEST_MALFORMED", false},
    {JOBS("POST", "/v1/things", JSON), 400, "RFA_REQUEST_MALFORMED", false}, /* 411 elsewhere */
    {JOBS("POST", "/v1/things", JSON "Transfer-Encoding: chunked\r\n") "x\r\n", 400, "RFA_REQUEST_MALFORMED",
     false},
    {JOBS("GET", "/v1/things", "Content-Length: 2\r\n") "{}", 400, "RFA_REQUEST_MALFORMED", false},
    {JOBS("GET", "/v1/key", ""), 401, "RFA_AUTH_INVALID_CREDENTIALS", false},
    {JOBS("GET", "/v1/things/none", ""), 404, "RFA_REQUEST_ROUTE_NOT_FOUND", false},
    {JOBS("PUT", "/v1/things", ""), 405, "RFA_REQUEST_METHOD_NOT_ALLOWED", false},
    {JOBS("GET", "/v1/things", "Accept: text/html\r\n"), 406, "RFA_REQUEST_NOT_ACCEPTABLE", false},
    {"GET /v1/things HTTP/1.1\r\nHost:", 408, "RFA_REQUEST_TIMEOUT", false},
    {"GET /hello HTTP/1.1\r\nHost:", 408, "OPS_408_REQUEST_TIMEOUT", true},
    {JOBS("POST", "/v1/things", JSON "Content-Length: 2\r\n"), 408, "RFA_REQUEST_TIMEOUT", false},
    {JOBS("POST", "/plain", JSON "Content-Length: 2\r\n"), 408, "OPS_408_REQUEST_TIMEOUT", true},
    {JOBS("POST", "/v1/things", JSON "Content-Length: 101\r\n"), 413, "RFA_REQUEST_PAYLOAD_TOO_LARGE", false},
    {JOBS("POST", "/v1/things", "Content-Length: 2\r\n") "{}", 415, "RFA_REQUEST_UNSUPPORTED_MEDIA_TYPE",
     false},
    {JOBS("POST", "/v1/things", "Expect: x\r\n"), 417, "RFA_REQUEST_EXPECTATION_FAILED", false},
    {JOBS("POST", "/plain", "Expect: x\r\n"), 417, "OPS_417_EXPECTATION", true},
    {JOBS("POST", "/v1/register", JSON "Content-Length: 2\r\n") "{}", 200, NULL, false},
    {JOBS("POST", "/v1/register", JSON "Content-Length: 2\r\n") "{}", 429, "RFA_REQUEST_RATE_LIMITED", false},
    {JOBS("GET", "/v1/things", MANY MANY MANY MANY "A: b\r\n"), 431, "RFA_REQUEST_HEADER_TOO_LARGE", false},
    {JOBS("GET", "/hello", MANY MANY MANY MANY "A: b\r\n"), 431, "OPS_431_HEADER_TOO_LARGE", true},
    {JOBS("GET", "/v1/things/crash", ""), 500, "RFA_INTERNAL", false},
    {JOBS("GET", "/v1/failing", ""), 503, "RFA_STORAGE_UNAVAILABLE", false},
};

static struct store *prepare_refusals(struct routes *compiled)
{
    (void)compiled;
    return with_limits(&(struct limiter_options){.quota = {[LIMIT_REGISTER] = 1}});
}

static void test_JOB_376_refusals_of_the_front_are_as_the_contracts_say(void)
{
    char why[512];
    struct contracts *contracts = contracts_create(why, sizeof why);
    TEST_ASSERT_(contracts != NULL, "%s", why);
    start_as((struct testserver_options){.limits = {.head_ns = NS_PER_S, .body_grace_ns = NS_PER_S}},
             prepare_refusals);
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        bool listener = refusals[i].of_the_listener;
        int status = refusals[i].status;
        struct heard a = talk_once(&server, refusals[i].request);
        if (!refusals[i].code) {
            TEST_CHECK_(a.status == status, "%d, not %d: %s", a.status, status, refusals[i].request);
            continue;
        }
        snprintf(text, sizeof text, "%s", refusals[i].request);
        is_refused(&a, status, refusals[i].code);
        field_is(&a, "Content-Type", "application/problem+json");
        is_as_published(&a,
                        listener ? problem_of(contracts, "GET", "/stats", status)
                                 : problem_of(contracts, "POST", "/v1/jobs", status),
                        refusals[i].code);
    }
    /* A target longer than any. */
    memset(text, 'a', 9000);
    memcpy(text, "GET /things/", 12);
    strcpy(text + 9000, " HTTP/1.1\r\nHost: a\r\n\r\n");
    struct heard a = talk_once(&server, text);
    is_refused(&a, 414, "OPS_414_TARGET_TOO_LONG");
    is_as_published(&a, problem_of(contracts, "GET", "/stats", 414), "OPS_414_TARGET_TOO_LONG");
    contracts_destroy(contracts);
    stop_after(1);
}

#define IN_CONTROL  "application/json"
#define IN_JOBS     "application/problem+json"
#define OF_CONTROL  400, "REQ_400_INVALID_SCHEMA", IN_CONTROL
#define OF_JOBS     400, "RFA_REQUEST_MALFORMED", IN_JOBS
#define OF_NOBODY   "application/problem+json"
#define PARENT      "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
#define IDS         "X-Request-Id: mine-7\r\ntraceparent: " PARENT "\r\n"
#define SAID(start) start " HTTP/1.1\r\nHost: a\r\n" IDS

/* {FILL} is 9,000 bytes. `slow`: the rest never comes. */
static const struct {
    const char *request;
    int status;
    const char *code, *type;
    bool anonymous; /* its ids can't be read, or are in doubt */
} owned[] = {
    {SAID("POST /dlq/submit") JSON "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}", OF_CONTROL,
     false},
    {SAID("POST /v1/things") JSON "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}", OF_JOBS,
     false},
    {SAID("POST /v1/dlq/items") "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", OF_CONTROL, false},
    {SAID("GET http://a/dlq/items?x") "Expect: foo\r\n\r\n", 417, "REQ_417_EXPECTATION_FAILED", IN_CONTROL,
     false},
    {SAID("GET /v1/things") "Expect: foo\r\n\r\n", 417, "RFA_REQUEST_EXPECTATION_FAILED", IN_JOBS, false},
    {SAID("GET /dlq/items") "A: {FILL}{FILL}{FILL}{FILL}{FILL}\r\n\r\n", 431, "REQ_431_HEADER_TOO_LARGE",
     IN_CONTROL, false},
    {SAID("GET /v1/things") "A: {FILL}{FILL}{FILL}{FILL}{FILL}\r\n\r\n", 431, "RFA_REQUEST_HEADER_TOO_LARGE",
     IN_JOBS, false},
    {SAID("GET /dlq/{FILL}") "\r\n", 414, "REQ_414_TARGET_TOO_LONG", IN_CONTROL, false},
    {SAID("GET /v1/things/{FILL}") "\r\n", 414, "RFA_REQUEST_TARGET_TOO_LONG", IN_JOBS, false},
    {SAID("GET /dlq/../x") "\r\n", OF_CONTROL, false},
    {SAID("GET /%64lq/a%2Fb") "\r\n", OF_CONTROL, false},
    {SAID("GET /v1/things/a%2Fb") "\r\n", OF_JOBS, false},
    {SAID("GET /dlq/items?project_id=a%2") "\r\n", OF_CONTROL, false},
    {SAID("GET /dlq%3Asubmit") "\r\n", OF_CONTROL, false},
    {SAID("GET /v2/things/a%2Fb") "\r\n", OF_CONTROL, false},
    {SAID("GET /hello/a%2Fb") "\r\n", 400, "OPS_400_MALFORMED", OF_NOBODY, false},
    {SAID("GET /nobody") "Expect: foo\r\n\r\n", 417, "OPS_417_EXPECTATION", OF_NOBODY, false},
    {SAID("POST /dlq/submit") JSON "Content-Length: 2\r\n\r\n{", 408, "REQ_408_REQUEST_TIMEOUT", IN_CONTROL,
     false}, /* slow */
    {SAID("POST /v1/things") JSON "Content-Length: 2\r\n\r\n{", 408, "RFA_REQUEST_TIMEOUT", IN_JOBS,
     false},                                                                          /* slow */
    {SAID("GET /v1/things") "A:", 408, "RFA_REQUEST_TIMEOUT", IN_JOBS, false},        /* slow */
    {SAID("GET /dlq/items") "A:", 408, "REQ_408_REQUEST_TIMEOUT", IN_CONTROL, false}, /* slow */
    {"GET /dlq/ite", 408, "OPS_408_REQUEST_TIMEOUT", OF_NOBODY, true}, /* slow: who knows how it goes on */
    {"GET /dlq/items HTTP/1.1\r\nHost: a\nA: b\r\n" IDS "\r\n", OF_CONTROL, true},
    {SAID("GET /dlq/items") IDS "\r\n", OF_CONTROL, true}, /* twice */
    {"GET  /dlq/items HTTP/1.1\r\nHost: a\r\n" IDS "\r\n", 400, "OPS_400_MALFORMED", OF_NOBODY, false},
};

static void write_filled(const char *request, char *out, size_t size)
{
    static const char mark[] = "{FILL}";
    size_t n = 0;
    for (const char *at = request; *at;) {
        bool fill = strncmp(at, mark, sizeof mark - 1) == 0;
        size_t count = fill ? 9000 : 1;
        TEST_ASSERT(n + count < size);
        memset(out + n, fill ? 'a' : *at, count);
        n += count;
        at += fill ? sizeof mark - 1 : 1;
    }
    out[n] = 0;
}

/* Whoever owns the path: what is wrong before anybody has routed it is said in his shape, with the ids that the client sent. */
static void test_CTL_246_CTL_251_refusals_before_a_route_have_the_shape_of_the_paths_owner(void)
{
    static char request[60000];
    start_as((struct testserver_options){.limits = {.head_ns = NS_PER_S, .body_grace_ns = NS_PER_S}}, NULL);
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) {
        write_filled(owned[i].request, request, sizeof request);
        snprintf(text, sizeof text, "%.200s", owned[i].request);
        struct heard a = talk_once(&server, request);
        is_refused(&a, owned[i].status, owned[i].code);
        field_is(&a, "Content-Type", owned[i].type);
        bool same = strcmp(heard_field(&a, "X-Request-Id"), "mine-7") == 0;
        TEST_CHECK_(same != owned[i].anonymous, "%s: %s", text, heard_field(&a, "X-Request-Id"));
        TEST_CHECK((strncmp(heard_field(&a, "traceparent"), PARENT, 36) == 0) != owned[i].anonymous);
        if (!owned[i].anonymous) {
            says(&a, "request_id", "\"mine-7\"");
            says(&a, "trace_id", "\"0af7651916cd43dd8448eb211c80319c\"");
        }
    }
    stop();
}

/* What an answer isn't, by the contract of another operation that its route is bound to. */
static const struct {
    const char *path, *method, *operation;
    int heard; /* 0: an answer that had begun and is cut off */
    const char *why;
} unlike[] = {
    {"/hello", "GET", "/healthz", 500, "/hello is not what its contract says"},
    {"/none", "GET", "/healthz", 500, "answer 204 of /none is one that its contract doesn't have"},
    {"/worded", "GET", "/healthz", 500, "/worded has a type that its contract doesn't have: text/plain"},
    {"/long", "GET", "/.well-known/jwks.json", 0, "/long is not what its contract says: /keys/0"},
    {"/lying", NULL, NULL, 500, "answer 409 of /lying is a refusal that says another status"},
    /* said before any handler */
    {"/v1/key", "POST", "/v1/auth/token", 500,
     "answer 401 of /v1/key has a type that its contract doesn't have"},
};

static struct store *prepare_checked(struct routes *compiled)
{
    char why[512];
    struct front *front = front_find("client");
    struct contracts *contracts = contracts_create(why, sizeof why);
    ASSERT(contracts);
    front->check_answers = true;
    front->contracts = contracts;
    for (size_t i = 0; i < routes_count(compiled); i++)
        for (size_t j = 0; j < sizeof unlike / sizeof *unlike; j++)
            if (unlike[j].method && strcmp(routes_at(compiled, i)->path, unlike[j].path) == 0)
                routes_bind(compiled, routes_at(compiled, i),
                            contracts_operation(contracts, unlike[j].method, unlike[j].operation));
    return NULL;
}

static void test_an_answer_that_is_not_its_contracts_is_not_given(void)
{
    size_t wrong = sizeof unlike / sizeof *unlike;
    start_as(plain, prepare_checked);
    for (size_t i = 0; i < wrong; i++) {
        struct talk t;
        talk_begin(&t, &server);
        snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", unlike[i].path);
        TEST_CHECK(talk_say_text(&t, text));
        int status = talk_hear(&t).status;
        talk_end(&t);
        TEST_CHECK_(status == unlike[i].heard, "%s is %d", unlike[i].path, status);
    }
    TEST_CHECK(get("/failing").status == 503); /* what is as it should be, in no contract and in one */
    TEST_CHECK(get("/dlq/failing").status == 503);
    TEST_CHECK(get("/many").status == 200); /* whatever can't be looked at */
    TEST_CHECK(get("/nowhere").status == 404);
    TEST_CHECK(get("/dlq/token").status == 401);
    stop_after(wrong);
    for (size_t i = 0; i < wrong; i++)
        TEST_CHECK_(testserver_logged(&server, unlike[i].why) >= 1, "%s", unlike[i].why);
}

TEST_LIST
= {
    {"CTL-150 to CTL-154 every answer has its headers once",
     test_CTL_150_to_CTL_154_every_answer_has_its_headers_once},
    {"CTL-149 scripts come from where it was approved", test_CTL_149_scripts_come_from_where_it_was_approved},
    {"CTL-152 transport security", test_CTL_152_transport_security},
    {"CTL-154 a handler can't weaken them, nor split a header",
     test_CTL_154_a_handler_can_not_weaken_them_nor_split_a_header},
    {"CTL-251 request ids and trace context", test_CTL_251_request_ids_and_trace_context},
    {"CTL-283 JOB-361 JOB-105 JOB-115 JOB-125 JOB-135 a crash is answered 500",
     test_CTL_283_JOB_361_a_crash_is_answered},
    {"CTL-150 CTL-246 CTL-251 who is turned away is told as everybody",
     test_CTL_150_CTL_246_CTL_251_who_is_turned_away_is_told_as_everybody},
    {"who has asked before he is turned away is told", test_who_has_asked_before_he_is_turned_away_is_told},
    {"who is turned away is heard for a while", test_who_is_turned_away_is_heard_for_a_while},
    {"CTL-246 to CTL-253 envelopes", test_CTL_246_to_CTL_253_envelopes},
    {"JOB-342 to JOB-345 problems", test_JOB_342_to_JOB_345_problems},
    {"what is refused before a body is refused alike behind it",
     test_what_is_refused_before_a_body_is_refused_alike_behind_it},
    {"411 415 417 bodies and lengths", test_bodies_and_lengths},
    {"CTL-056 size of a body", test_CTL_056_size_of_a_body},
    {"CTL-057 depth of a body", test_CTL_057_depth_of_a_body},
    {"CTL-058 elements of an array", test_CTL_058_elements_of_an_array},
    {"CTL-023 to CTL-025 versions", test_CTL_023_to_CTL_025_versions},
    {"AMB-05 OPTIONS", test_AMB_05_JOB_373_OPTIONS},
    {"CTL-022 405 methods that nobody knows", test_CTL_022_405_methods_that_nobody_knows},
    {"CTL-059 without CORS", test_CTL_059_without_CORS},
    {"CTL-060 to CTL-063 with CORS", test_CTL_060_to_CTL_063_with_CORS},
    {"CTL-060 older limits are exposed where they are said",
     test_CTL_060_older_limits_are_exposed_where_they_are_said},
    {"a page from elsewhere changes nothing", test_a_page_from_elsewhere_changes_nothing},
    {"421 a listener of this machine answers for no other name",
     test_421_a_listener_of_this_machine_answers_for_no_other_name},
    {"401 says whether there was a credential", test_401_says_whether_there_was_a_credential},
    {"the operator's token", test_the_operators_token},
    {"JOB-345 too many requests", test_JOB_345_too_many_requests},
    {"refused credentials are counted", test_refused_credentials_are_counted},
    {"refused credentials are counted on the operators' listener", test_refused_operators_are_counted},
    {"buckets of a route, and of who shows no key", test_buckets_of_routes},
    {"requests of an address are counted first", test_requests_of_an_address_are_counted_first},
    {"JOB-376 refusals of the front are as the contracts say",
     test_JOB_376_refusals_of_the_front_are_as_the_contracts_say},
    {"CTL-246 CTL-251 refusals before a route have the shape of the path's owner",
     test_CTL_246_CTL_251_refusals_before_a_route_have_the_shape_of_the_paths_owner},
    {"an answer that isn't its contract's is not given",
     test_an_answer_that_is_not_its_contracts_is_not_given},
    {NULL, NULL},
};
