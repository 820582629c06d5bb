/* Connections over sockets: what stays in memory between requests, what comes in pieces, refusals behind the head, TLS. */
#define _GNU_SOURCE /* POLLRDHUP */
#include "acutest.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/body.h"
#include "http/connection.h"
#include "http/tls.h"
#include "runtime/env.h"
#include "runtime/runtime.h"
#include "runtime/telemetry.h"
#include "tests/support/sanitized.h"
#include "tests/support/talk.h"

#define HELLO "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"
#define LARGE 15000000u /* of the answer of /large */

/* ---- routes ---- */

static void answer_number(struct response *r, const char *name, uint64_t number)
{
    struct json json;
    response_begin(r, 200, RESPONSE_JSON);
    json_init(&json, &r->sink);
    json_object_begin(&json);
    json_key(&json, name);
    json_uint(&json, number);
    json_object_end(&json);
}

static _Atomic uint64_t pages; /* given so far */

static void serve_hello(const struct request *q, struct response *r)
{
    (void)q;
    answer_number(r, "hello", 1);
}

/* As large as one can be of which head and body go into the buffer at once. */
static void serve_page(const struct request *q, struct response *r)
{
    (void)q;
    atomic_fetch_add(&pages, 1);
    response_begin(r, 200, RESPONSE_TEXT);
    for (int i = 0; i < 100; i++)
        json_sink_text(&r->sink, "123456789\n");
}

/* As long as an honest handler may take. */
static void serve_work(const struct request *q, struct response *r)
{
    volatile uint32_t sum = 0;
    (void)q;
    for (uint32_t i = 0; i < 300000; i++)
        sum = sum + i;
    answer_number(r, "hello", sum != 0);
}

static void serve_echo(const struct request *q, struct response *r)
{
    answer_number(r, "bytes", q->body.size);
}

/* How many rooms for large bodies are taken. */
static void serve_rooms(const struct request *q, struct response *r)
{
    (void)q;
    answer_number(r, "rooms", bodies_used());
}

/* How many handshakes took too long. */
static void serve_handshakes(const struct request *q, struct response *r)
{
    (void)q;
    answer_number(
        r, "handshakes",
        telemetry_counter_label(runtime_telemetry(runtime_self()), TELEMETRY_HTTP_REFUSED, "handshake"));
}

/* How many connections were too slow. */
static void serve_cut_off(const struct request *q, struct response *r)
{
    (void)q;
    answer_number(
        r, "cut_off",
        telemetry_counter_label(runtime_telemetry(runtime_self()), TELEMETRY_HTTP_CONNECTION, "cut_off"));
}

static void serve_large(const struct request *q, struct response *r)
{
    (void)q;
    response_begin(r, 200, RESPONSE_TEXT);
    for (uint32_t i = 0; i < LARGE / 10; i++)
        json_sink_text(&r->sink, "123456789\n");
}

/* Something goes wrong in the middle of an answer, behind `before` bytes of it. */
static void break_off(struct response *r, size_t before)
{
    response_begin(r, 200, RESPONSE_TEXT);
    for (size_t i = 0; i < before / 10; i++)
        json_sink_text(&r->sink, "123456789\n");
    response_header(r, "Link", "</pages?cursor=1>; rel=\"next\"");
    response_fail(r, ERR_IO);
    for (size_t i = 0; i < 1000; i++)
        json_sink_text(&r->sink, "not the end\n");
}

static void serve_broken(const struct request *q, struct response *r)
{
    (void)q;
    break_off(r, 100000);
}

static void serve_broken_early(const struct request *q, struct response *r)
{
    (void)q;
    break_off(r, 100);
}

static void serve_nothing(const struct request *q, struct response *r)
{
    (void)q;
    response_begin(r, 204, NULL);
}

static _Atomic int waiting, go_on;
static actor_pid noted;

/* This connection is the one that /kill ends; no socket keeps more than some answers. */
static void serve_note(const struct request *q, struct response *r)
{
    int size = 65536;
    (void)q;
    for (int fd = 3; fd < 64; fd++)
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    noted = actor_self();
    answer_number(r, "noted", 1);
}

static void serve_kill(const struct request *q, struct response *r)
{
    (void)q;
    actor_kill(noted);
    answer_number(r, "killed", 1);
}

static void serve_pages(const struct request *q, struct response *r)
{
    (void)q;
    answer_number(r, "pages", atomic_load(&pages));
}

/* Waits, as an event stream does, until somebody asks for /go. */
static void serve_wait(const struct request *q, struct response *r)
{
    struct message *nothing;
    (void)q;
    while (!atomic_load(&go_on)) {
        atomic_store(&waiting, 1);
        (void)response_wait(r, NULL, NULL, &nothing, actor_deadline_ms(5));
    }
    answer_number(r, "waited", 1);
}

/* Waits for its client to go, or for the server's end, and says whether one of them came before its own time. */
static void serve_poll(const struct request *q, struct response *r)
{
    struct message *nothing;
    (void)q;
    atomic_store(&waiting, 1);
    enum error e = response_wait(r, NULL, NULL, &nothing, actor_deadline_ms(TALK_STUCK_MS / 2));
    answer_number(r, "down", e == ERR_DOWN);
}

static void serve_waiting(const struct request *q, struct response *r)
{
    (void)q;
    answer_number(r, "waiting", (uint64_t)atomic_load(&waiting));
}

static void serve_go(const struct request *q, struct response *r)
{
    (void)q;
    atomic_store(&go_on, 1);
    answer_number(r, "go", 1);
}

/* A handler that is wrong, on purpose. */
static void serve_crash(const struct request *q, struct response *r)
{
    (void)r;
    ASSERT(!q); /* on purpose */
}

#define GET(at, how)                                                                                    \
    {                                                                                                   \
        .method = METHOD_GET, .path = at, .surface = SURFACE_PUBLIC, .undocumented = true, .serve = how \
    }
#define POST(at, whose, most)                                                                \
    {                                                                                        \
        .method = METHOD_POST, .path = at, .surface = SURFACE_##whose, .undocumented = true, \
        .body_max = most, .serve = serve_echo                                                \
    }
static const struct route routes[] = {
    GET("/hello", serve_hello),      GET("/rooms", serve_rooms),
    GET("/work", serve_work),        GET("/handshakes", serve_handshakes),
    GET("/cut_off", serve_cut_off),  GET("/large", serve_large),
    GET("/wait", serve_wait),        GET("/poll", serve_poll),
    GET("/waiting", serve_waiting),  GET("/go", serve_go),
    GET("/note", serve_note),        GET("/kill", serve_kill),
    GET("/page", serve_page),        GET("/pages", serve_pages),
    GET("/broken", serve_broken),    GET("/broken/early", serve_broken_early),
    GET("/none", serve_nothing),     GET("/crash", serve_crash),
    POST("/echo", PUBLIC, 1u << 20), POST("/control", CONTROL, 5000),
    POST("/jobs", JOBS, 5000),
};

/* What is said of a request that was never read must be nothing, not what was left there by another one. */
static void check_log(const struct request *q, const struct response *r, uint64_t took)
{
    (void)took;
    ASSERT(q->trace.request_id_length > 0 && r->status >= 200);
    if (q->method == METHOD_UNKNOWN)
        ASSERT(!q->route && q->identity.subject.size == 0 && !q->cross_site);
    else
        ASSERT(!q->route || (q->path.size > 0 && *(const char *)q->path.bytes == '/'));
}

static struct store *prepare(struct routes *compiled)
{
    (void)compiled;
    front_find("client")->log = check_log;
    return NULL;
}

static struct testserver server;

static void start(struct testserver_options o)
{
    o.routes = routes;
    o.routes_count = sizeof routes / sizeof *routes;
    o.prepare = o.prepare ? o.prepare : prepare;
    testserver_start(&o, &server);
}

static void stop_after(size_t crashes)
{
    TEST_CHECK_(testserver_runs(&server), "it ended by itself with %d", server.exit_status);
    testserver_stop(&server);
    TEST_CHECK_(server.exit_status == 0, "it ended with %d", server.exit_status);
    TEST_CHECK(testserver_logged(&server, "\"actor.crash\"") + testserver_logged(&server, "actor crashed") ==
               crashes);
}

static void stop(void)
{
    stop_after(0);
}

static const struct testserver_options plain;

static char sent[4u << 20];

/* A head that asks to go on, and the server's word that its body is waited for. */
static bool goes_on(struct talk *t, const char *path, const char *fields)
{
    char head[9000];
    snprintf(head, sizeof head,
             "POST %s HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n"
             "X-Request-Id: mine\r\n%s\r\n",
             path, fields);
    if (!talk_say_text(t, head))
        return false;
    return talk_hear(t).status == 100;
}

/* ---- what stays ---- */

static void test_H4_escapes_in_paths_leave_nothing_behind(void)
{
    struct talk t;
    struct heard a;
    start(plain);
    talk_begin(&t, &server);
    memset(sent, 'a', 6000);
    memcpy(sent, "GET /h%65llo?", 13);
    strcpy(sent + 6000, " HTTP/1.1\r\nHost: a\r\n\r\n");
    for (int i = 0; i < 1500; i++) { /* 9 MB of paths; an actor has 4 */
        TEST_CHECK(talk_say_text(&t, sent));
        a = talk_hear(&t);
        TEST_ASSERT_(a.status == 200 && !a.close, "request %d: %d", i, a.status);
    }
    talk_end(&t);
    stop();
}

static void test_H4_bodies_that_come_later_leave_nothing_behind(void)
{
    struct talk t;
    struct heard a;
    char path[6100];
    start(plain);
    talk_begin(&t, &server);
    snprintf(path, sizeof path, "/ech%%6f?%05990d", 0);
    for (int i = 0; i < 1000; i++) {
        TEST_ASSERT(goes_on(&t, path, "Content-Length: 2\r\n"));
        TEST_CHECK(talk_say_text(&t, "{}"));
        a = talk_hear(&t);
        TEST_ASSERT_(a.status == 200 && heard_has(&a, "{\"bytes\":2}"), "request %d: %d", i, a.status);
    }
    talk_end(&t);
    stop();
}

/* A room for a large body, or for the nodes of its JSON, is its request's, not its connection's. */
static void test_H4_large_bodies_give_their_rooms_back(void)
{
    static const size_t sizes[] = {10000, 100000};
    struct talk t;
    start(plain);
    talk_begin(&t, &server);
    for (int i = 0; i < 600; i++) {
        size_t size = sizes[i % 2];
        int head = snprintf(sent, sizeof sent,
                            "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
                            "Content-Length: %zu\r\n\r\n{}",
                            size);
        memset(sent + head, ' ', size - 2);
        TEST_CHECK(talk_say(&t, sent, (size_t)head + size - 2));
        TEST_ASSERT_(talk_hear(&t).status == 200, "request %d", i);
    }
    TEST_CHECK(talk_say_text(&t, "GET /rooms HTTP/1.1\r\nHost: a\r\n\r\n"));
    struct heard a = talk_hear(&t);
    TEST_CHECK_(heard_has(&a, "{\"rooms\":0}"), "%.*s", (int)a.body_size, a.body);
    talk_end(&t);
    stop();
}

/* Nor does it stay because the next request has begun to come. */
static void test_H4_a_client_that_never_stops_keeps_no_room(void)
{
    struct talk t, other;
    struct heard a;
    start(plain);
    talk_begin(&t, &server);
    talk_begin(&other, &server);
    int head = snprintf(sent, sizeof sent,
                        "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
                        "Content-Length: 100000\r\n\r\n{}");
    memset(sent + head, ' ', 99998);
    strcpy(sent + head + 99998, "GET /hel");
    TEST_CHECK(talk_say(&t, sent, (size_t)head + 99998 + 8));
    TEST_CHECK(talk_hear(&t).status == 200);
    TEST_CHECK(talk_say_text(&other, "GET /rooms HTTP/1.1\r\nHost: a\r\n\r\n"));
    a = talk_hear(&other);
    TEST_CHECK_(heard_has(&a, "{\"rooms\":0}"), "%.*s", (int)a.body_size, a.body);
    TEST_CHECK(talk_say_text(&t, "lo HTTP/1.1\r\nHost: a\r\n\r\n"));
    TEST_CHECK(talk_hear(&t).status == 200);
    talk_end(&t);
    talk_end(&other);
    stop();
}

/* ---- in which pieces ---- */

/* Many requests behind a body, with Content-Length and in chunks, in writes of every kind of size. */
static void test_H1_pipelines_behind_bodies(void)
{
    static const size_t pieces[] = {1u << 20, 16384, 7777, 500};
    enum { BEHIND = 3000 };
    start(plain);
    for (size_t p = 0; p < sizeof pieces / sizeof *pieces; p++) {
        struct talk t;
        size_t size = 0, at = 0;
        talk_begin(&t, &server);
        for (int chunked = 0; chunked < 2; chunked++) {
            size += (size_t)snprintf(
                sent + size, sizeof sent - size,
                "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n%s\r\n\r\n",
                chunked ? "Transfer-Encoding: chunked" : "Content-Length: 65536");
            if (chunked)
                size += (size_t)snprintf(sent + size, sizeof sent - size, "10000;a=b\r\n");
            memset(sent + size, ' ', 65536);
            memcpy(sent + size, "{}", 2);
            size += 65536;
            if (chunked)
                size += (size_t)snprintf(sent + size, sizeof sent - size, "\r\n0\r\nA: b\r\n\r\n");
            for (int i = 0; i < BEHIND; i++, size += sizeof HELLO - 1)
                memcpy(sent + size, HELLO, sizeof HELLO);
        }
        for (; at < size; at += pieces[p])
            TEST_ASSERT(talk_say(&t, sent + at, size - at < pieces[p] ? size - at : pieces[p]));
        for (int i = 0; i < 2 * (1 + BEHIND); i++) {
            struct heard a = talk_hear(&t);
            TEST_ASSERT_(a.status == 200 && heard_has(&a, i % (1 + BEHIND) ? "hello" : "{\"bytes\":65536}"),
                         "pieces of %zu, answer %d: %d", pieces[p], i, a.status);
        }
        talk_end(&t);
    }
    stop();
}

/* What was sent at once is served at once, and isn't taken for an endless loop. */
static void test_H1_a_long_pipeline_lets_the_others_go(void)
{
    struct testserver_options o = {.runaway_ns = (SANITIZED ? 4000 : 400) * NS_PER_MS};
    static const char work[] = "GET /work HTTP/1.1\r\nHost: a\r\n\r\n";
    enum { COUNT = 4000 }; /* what the buffers in between hold, with nobody reading yet */
    struct talk t;
    start(o);
    talk_begin(&t, &server);
    for (size_t i = 0; i < COUNT; i++)
        memcpy(sent + i * (sizeof work - 1), work, sizeof work);
    kill(server.pid, SIGSTOP); /* so that it finds all of them */
    TEST_CHECK(talk_say(&t, sent, COUNT * (sizeof work - 1)));
    kill(server.pid, SIGCONT);
    for (int i = 0; i < COUNT; i++)
        if (!TEST_CHECK_(talk_hear(&t).status == 200, "answer %d", i))
            break;
    talk_end(&t);
    stop();
}

/* The wake-up that came while an answer waited for something else was the only one. */
static void test_H1_what_came_while_an_answer_waited_is_read(void)
{
    struct talk t, other;
    start(plain);
    talk_begin(&t, &server);
    talk_begin(&other, &server);
    TEST_CHECK(talk_say_text(&t, "GET /wait HTTP/1.1\r\nHost: a\r\n\r\n"));
    for (struct heard a = {.body = ""}; a.body_size == 0 || !heard_has(&a, "\"waiting\":1");
         a = talk_hear(&other))
        TEST_ASSERT(talk_say_text(&other, "GET /waiting HTTP/1.1\r\nHost: a\r\n\r\n"));
    TEST_CHECK(talk_say_text(&t, HELLO));
    TEST_CHECK(talk_say_text(&other, "GET /go HTTP/1.1\r\nHost: a\r\n\r\n"));
    TEST_CHECK(talk_hear(&other).status == 200);
    struct heard a = talk_hear(&t);
    TEST_CHECK(a.status == 200 && !a.close && heard_has(&a, "waited"));
    a = talk_hear(&t);
    TEST_CHECK(a.status == 200 && heard_has(&a, "hello"));
    talk_end(&t);
    talk_end(&other);
    stop();
}

/* A client that hung up with the last bytes of its request is gone before the answer begins to wait: nobody says so again. */
static void test_H1_who_hung_up_with_his_request_is_not_waited_for(void)
{
    struct talk t;
    start(plain);
    talk_begin(&t, &server);
    TEST_CHECK(talk_say_text(&t, HELLO) && talk_hear(&t).status == 200);
    kill(server.pid, SIGSTOP); /* so that it finds both at once */
    TEST_CHECK(talk_say_text(&t, "GET /poll HTTP/1.1\r\nHost: a\r\n\r\n"));
    shutdown(t.fd, SHUT_WR);
    kill(server.pid, SIGCONT);
    struct heard a = talk_hear(&t);
    TEST_CHECK_(a.status == 200 && heard_has(&a, "{\"down\":1}"), "%d %.*s", a.status, (int)a.body_size,
                a.body);
    talk_end(&t);
    stop();
}

/* The server ends while an answer waits for something else: the answer says that it is the last one, and isn't lost because
 * the next request was there already. */
static void test_H3_an_answer_that_waited_for_the_servers_end_is_the_last_one(void)
{
    struct talk t, other;
    start(plain);
    talk_begin(&t, &server);
    talk_begin(&other, &server);
    TEST_CHECK(talk_say_text(&t, "GET /poll HTTP/1.1\r\nHost: a\r\n\r\n"));
    for (struct heard a = {.body = ""}; a.body_size == 0 || !heard_has(&a, "\"waiting\":1");
         a = talk_hear(&other))
        TEST_ASSERT(talk_say_text(&other, "GET /waiting HTTP/1.1\r\nHost: a\r\n\r\n"));
    TEST_CHECK(talk_say_text(&t, HELLO));
    kill(server.pid, SIGTERM);
    struct heard a = talk_hear(&t);
    TEST_CHECK_(a.status == 200 && a.close && heard_has(&a, "{\"down\":1}"), "%d", a.status);
    TEST_CHECK(talk_ended(&t));
    talk_end(&t);
    talk_end(&other);
    testserver_stop(&server);
}

/* An answer doesn't wait for the one behind it to be ready. */
static void test_H1_an_answer_goes_out_while_the_next_one_waits(void)
{
    struct talk t, other;
    start(plain);
    talk_begin(&t, &server);
    talk_begin(&other, &server);
    TEST_CHECK(talk_say_text(&t, HELLO "GET /wait HTTP/1.1\r\nHost: a\r\n\r\n"));
    struct heard a = talk_hear(&t);
    TEST_CHECK(a.status == 200 && heard_has(&a, "hello"));
    TEST_CHECK(talk_say_text(&other, "GET /go HTTP/1.1\r\nHost: a\r\n\r\n"));
    TEST_CHECK(talk_hear(&other).status == 200);
    a = talk_hear(&t);
    TEST_CHECK(a.status == 200 && heard_has(&a, "waited"));
    talk_end(&t);
    talk_end(&other);
    stop();
}

/* ---- refusals behind the head ---- */

static void expect_refusal(const char *path, const char *fields, const char *body, size_t size, int status,
                           const char *code)
{
    struct talk t;
    char id[64];
    talk_begin(&t, &server);
    TEST_CHECK_(goes_on(&t, path, fields), "%s %s", path, fields);
    (void)talk_say(&t, body, size);
    struct heard a = talk_hear(&t);
    TEST_CHECK_(a.status == status && a.close, "%s %s: %d, not %d", path, fields, a.status, status);
    TEST_CHECK_(heard_has(&a, code), "%s: %.*s", code, (int)a.body_size, a.body);
    TEST_CHECK(strcmp(heard_field(&a, "X-Request-Id"), "mine") == 0);
    snprintf(id, sizeof id, "\"request_id\":\"mine\"");
    TEST_CHECK_(heard_has(&a, id), "%.*s", (int)a.body_size, a.body);
    TEST_CHECK(talk_ended(&t));
    talk_end(&t);
}

/* The head of these was read and answered with 100: what is said of the body has the shape and the ids of the request. */
static void test_CTL_056_CTL_251_what_is_wrong_with_a_body_is_said_in_the_shape_of_its_path(void)
{
    static const char chunked[] = "Transfer-Encoding: chunked\r\n";
    int size = snprintf(sent, sizeof sent, "1389\r\n%05001d\r\n0\r\n\r\n", 0);
    start(plain);
    for (int i = 0; i < 3; i++) { /* what an earlier one left on the stack is nobody's */
        expect_refusal("/control", chunked, sent, (size_t)size, 400, "REQ_400_INVALID_SCHEMA");
        expect_refusal("/jobs", chunked, sent, (size_t)size, 413, "RFA_REQUEST_PAYLOAD_TOO_LARGE");
        expect_refusal("/control", chunked, "zz\r\n", 4, 400, "REQ_400_INVALID_SCHEMA");
        expect_refusal("/jobs", chunked, "0x1\r\n", 5, 400, "RFA_REQUEST_MALFORMED");
    }
    stop();
}

/* Head and chunks in one piece, and no end of them: what is too long already is told at once, and not when the rest has come. */
static void test_CTL_251_chunks_behind_their_head_that_are_too_long(void)
{
    static const struct {
        const char *path, *code;
        int status;
    } rows[] = {{"/control", "REQ_400_INVALID_SCHEMA", 400}, {"/jobs", "RFA_REQUEST_PAYLOAD_TOO_LARGE", 413}};
    start(plain);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct talk t;
        talk_begin(&t, &server);
        int head =
            snprintf(sent, sizeof sent,
                     "POST %s HTTP/1.1\r\nHost: a\r\nX-Request-Id: mine\r\nContent-Type: application/json\r\n"
                     "Transfer-Encoding: chunked\r\n\r\n1770\r\n",
                     rows[i].path);
        memset(sent + head, ' ', 6000);
        TEST_CHECK(talk_say(&t, sent, (size_t)head + 6000));
        struct heard a = talk_hear(&t);
        TEST_CHECK_(a.status == rows[i].status && a.close && heard_has(&a, rows[i].code), "%s: %d",
                    rows[i].path, a.status);
        TEST_CHECK(strcmp(heard_field(&a, "X-Request-Id"), "mine") == 0 && talk_ended(&t));
        talk_end(&t);
    }
    stop();
}

static void test_CTL_251_a_slow_body_is_told_with_its_ids(void)
{
    struct testserver_options o = {.limits = {.body_grace_ns = 20 * NS_PER_MS, .body_rate = 1u << 30}};
    start(o);
    expect_refusal("/echo", "Content-Length: 10\r\n", "{", 1, 408, "OPS_408_REQUEST_TIMEOUT");
    expect_refusal("/control", "Content-Length: 10\r\n", "{", 1, 408, "REQ_408_REQUEST_TIMEOUT");
    expect_refusal("/jobs", "Transfer-Encoding: chunked\r\n", "5\r\n{", 4, 408, "RFA_REQUEST_TIMEOUT");
    stop();
}

static uint64_t cut_off_so_far(void)
{
    struct heard a = talk_once(&server, "GET /cut_off HTTP/1.1\r\nHost: a\r\n\r\n");
    const char *colon = memchr(a.body, ':', a.body_size);
    TEST_ASSERT(a.status == 200 && colon);
    return strtoull(colon + 1, NULL, 10);
}

static void pause_ms(int ms)
{
    struct pollfd nothing = {.fd = -1};
    (void)testserver_poll(&nothing, 1, ms);
}

/* Its answer, when it says so much and no more. */
static int status_of_slow(const char *said)
{
    struct talk t;
    talk_begin(&t, &server);
    TEST_CHECK(talk_say_text(&t, said));
    int status = talk_outwait(&t, &server).status;
    talk_end(&t);
    return status;
}

/* A head, a body, an answer that isn't taken; not who was idle, nor who is refused for something else. */
static void test_who_is_too_slow_is_counted_as_cut_off(void)
{
    struct talk t;
    start(plain);
    TEST_CHECK(status_of_slow("") == 0); /* idle */
    TEST_CHECK(talk_once(&server, "nonsense\r\n\r\n").status == 400);
    TEST_CHECK(cut_off_so_far() == 0);
    TEST_CHECK(status_of_slow("GET /hel") == 408);
    TEST_CHECK(cut_off_so_far() == 1);
    TEST_CHECK(status_of_slow("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
                              "Content-Length: 5\r\n\r\n{") == 408);
    TEST_CHECK(cut_off_so_far() == 2);
    talk_begin(&t, &server);
    TEST_CHECK(talk_say_text(&t, "GET /large HTTP/1.1\r\nHost: a\r\n\r\n"));
    for (int ms = 0; ms < TALK_STUCK_MS && cut_off_so_far() == 2; ms += 10) {
        pause_ms(10);
        testserver_advance(&server, TESTSERVER_LONG / 8);
    }
    TEST_CHECK(cut_off_so_far() == 3);
    talk_end(&t);
    stop();
}

/* The server has looked at what was said, and says nothing to it: it has one thread, and has answered somebody else since. */
static void is_heard(const struct talk *t)
{
    struct pollfd p = {.fd = t->fd, .events = POLLIN};
    TEST_CHECK(talk_once(&server, HELLO).status == 200);
    TEST_CHECK_(testserver_poll(&p, 1, 0) == 0, "something was said");
}

/* RFC 9112 2.2: behind a body there may be an empty line. It is part of no request, so it isn't slow. */
static void test_H1_an_empty_line_between_requests_is_passed_over(void)
{
    struct testserver_options o = {.limits = {.head_ns = TESTSERVER_LONG, .idle_ns = 4 * TESTSERVER_LONG}};
    static const char *const rows[][3] = {
        {"\r\n", "", ""}, {HELLO "\r\n", "", ""}, {HELLO, "\r\n", ""}, {HELLO, "\r", "\n"}};
    struct talk t;
    start(o);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        talk_begin(&t, &server);
        for (int k = 0; k < 3; k++) {
            TEST_CHECK(talk_say_text(&t, rows[i][k]));
            if (strncmp(rows[i][k], "GET", 3) == 0)
                TEST_CHECK(talk_hear(&t).status == 200);
            is_heard(&t);
        }
        testserver_advance(&server, 2 * TESTSERVER_LONG); /* as no head may take */
        is_heard(&t);
        TEST_CHECK(talk_say_text(&t, HELLO) && talk_hear(&t).status == 200);
        talk_end(&t);
    }
    /* It buys no time: the connection was as long idle as it was. */
    talk_begin(&t, &server);
    TEST_CHECK(talk_say_text(&t, "\r\n"));
    testserver_outwait(&server, t.fd);
    TEST_CHECK(talk_ended(&t));
    talk_end(&t);
    /* One, and not one each time something comes. */
    talk_begin(&t, &server);
    TEST_CHECK(talk_say_text(&t, HELLO "\r\n") && talk_hear(&t).status == 200);
    TEST_CHECK(talk_say_text(&t, "\r\n") && talk_hear(&t).status == 400 && talk_ended(&t));
    talk_end(&t);
    stop();
}

/* A process that stood still for longer than a connection may be idle: what came meanwhile is served. */
static void test_H1_what_came_while_the_process_was_stopped_is_served(void)
{
    static const char *const before[] = {HELLO, HELLO "GET /hello HTTP/1.1\r\nHo"};
    static const char *const meanwhile[] = {HELLO, "st: a\r\n\r\n"};
    start(plain);
    for (int i = 0; i < 2; i++) {
        struct talk t;
        talk_begin(&t, &server);
        TEST_CHECK(talk_say_text(&t, before[i]) && talk_hear(&t).status == 200);
        kill(server.pid, SIGSTOP);
        TEST_CHECK(talk_say_text(&t, meanwhile[i]));
        testserver_advance(&server, 2 * TESTSERVER_LONG);
        kill(server.pid, SIGCONT);
        struct heard a = talk_hear(&t);
        TEST_CHECK_(a.status == 200, "case %d: %d", i, a.status);
        talk_end(&t);
    }
    stop();
}

/* However often it is asked meanwhile: idle is who has said nothing since. */
static void test_H3_a_connection_is_idle_from_its_last_request_on(void)
{
    struct talk t;
    start(plain);
    talk_begin(&t, &server);
    for (int i = 0; i < 8; i++) {
        TEST_CHECK_(talk_say_text(&t, HELLO) && talk_hear(&t).status == 200, "request %d", i);
        testserver_advance(&server, TESTSERVER_LONG / 4);
    }
    TEST_CHECK(talk_say_text(&t, HELLO "GET /hel") && talk_hear(&t).status == 200);
    TEST_CHECK(talk_say_text(&t, "lo HTTP/1.1\r\nHost: a\r\n\r\n") && talk_hear(&t).status == 200);
    testserver_outwait(&server, t.fd);
    TEST_CHECK(talk_ended(&t));
    talk_end(&t);
    stop();
}

/* The end of a head has less time than the next request would have had. */
static void test_H3_a_head_that_has_begun_has_its_own_time(void)
{
    struct testserver_options o = {.limits = {.idle_ns = 600 * NS_PER_S, .head_ns = 20 * NS_PER_MS}};
    struct talk t;
    start(o);
    talk_begin(&t, &server);
    TEST_CHECK(talk_say_text(&t, HELLO) && talk_hear(&t).status == 200);
    TEST_CHECK(talk_say_text(&t, "GET /hel"));
    TEST_CHECK(talk_hear(&t).status == 408 && talk_ended(&t));
    talk_end(&t);
    stop();
}

static bool is_answer(struct talk *t, const char *text)
{
    struct heard a = talk_hear(t);
    return a.status == 200 && heard_has(&a, text);
}

static void told_there_is_no_room(void)
{
    struct talk t;
    talk_begin(&t, &server);
    TEST_CHECK(talk_hear(&t).status == 503 && talk_ended(&t));
    talk_end(&t);
}

static void say_hello(struct talk *t)
{
    TEST_CHECK(talk_say_text(t, HELLO) && talk_hear(t).status == 200);
}

/* Of four that may be there one goes for each that comes: who has been idle for longest, not who came first, nor who waits for
 * an answer. */
static void test_H3_who_has_been_idle_for_longest_makes_room(void)
{
    struct talk busy, early, late, last;
    start((struct testserver_options){.connections = 4});
    talk_begin(&busy, &server);
    say_hello(&busy);
    TEST_CHECK(talk_say_text(&busy, "GET /wait HTTP/1.1\r\nHost: a\r\n\r\n"));
    talk_begin(&early, &server);
    say_hello(&early);
    talk_begin(&late, &server);
    say_hello(&late);
    talk_begin(&last, &server);
    do
        TEST_ASSERT(talk_say_text(&last, "GET /waiting HTTP/1.1\r\nHost: a\r\n\r\n"));
    while (!is_answer(&last, "\"waiting\":1"));
    testserver_advance(&server, 2 * CONNECTION_ORDER_MS * NS_PER_MS);
    say_hello(&early);
    testserver_advance(&server, 2 * CONNECTION_SHED_MS * NS_PER_MS);
    told_there_is_no_room();
    TEST_CHECK(talk_ended(&late));
    TEST_CHECK(talk_say_text(&last, "GET /go HTTP/1.1\r\nHost: a\r\n\r\n") && is_answer(&last, "go"));
    TEST_CHECK(is_answer(&busy, "\"waited\":1"));
    say_hello(&early);
    talk_end(&busy);
    talk_end(&early);
    talk_end(&late);
    talk_end(&last);
    stop();
}

/* Who came and has never said anything makes room as well. */
static void test_H3_who_has_never_asked_makes_room(void)
{
    struct talk mute, known;
    start((struct testserver_options){.connections = 2});
    talk_begin(&mute, &server);
    talk_begin(&known, &server);
    say_hello(&known); /* both are in */
    testserver_advance(&server, 2 * CONNECTION_SHED_MS * NS_PER_MS);
    say_hello(&known); /* and the server has seen how late it is */
    told_there_is_no_room();
    TEST_CHECK(talk_ended(&mute));
    say_hello(&known);
    talk_end(&mute);
    talk_end(&known);
    stop();
}

static void test_CTL_251_bytes_that_are_no_request_are_answered_with_ids(void)
{
    struct testserver_options o = {.limits = {.head_ns = 20 * NS_PER_MS}};
    static const char *const wrong[] = {"GET /hello HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", "nonsense\r\n\r\n",
                                        "GET /hello HTTP/1.1\r\nExpect: more\r\nHost: a\r\n\r\n",
                                        "GET /hello HTTP/1.1\r\nHo" /* and no more */};
    static const int statuses[] = {400, 400, 417, 408};
    start(o);
    for (int round = 0; round < 3; round++)
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
            struct talk t;
            talk_begin(&t, &server);
            TEST_CHECK(talk_say_text(&t, HELLO)); /* what it leaves on the stack isn't the next one's */
            TEST_CHECK(talk_hear(&t).status == 200);
            TEST_CHECK(talk_say_text(&t, wrong[i]));
            struct heard a = talk_hear(&t);
            TEST_CHECK_(a.status == statuses[i] && a.close, "%s: %d", wrong[i], a.status);
            TEST_CHECK(heard_count(&a, "X-Request-Id") == 1 && heard_count(&a, "traceparent") == 1);
            TEST_CHECK(strlen(heard_field(&a, "X-Request-Id")) == 36);
            TEST_CHECK(heard_has(&a, heard_field(&a, "X-Request-Id")));
            TEST_CHECK(talk_ended(&t));
            talk_end(&t);
        }
    stop();
}

/* It closed its side at once, with more sent than we read: the answer isn't lost to a reset. */
static void test_H3_who_has_closed_his_side_gets_the_last_answer_whole(void)
{
    struct talk t;
    start(plain);
    for (int round = 0; round < 5; round++) {
        talk_begin(&t, &server);
        TEST_CHECK(talk_say_text(&t, HELLO));
        TEST_CHECK(talk_hear(&t).status == 200);
        kill(server.pid, SIGSTOP); /* so that it finds all of it, and the end */
        memset(sent, 'a', 40000);
        memcpy(sent, "nonsense \r\n\r\n", 13);
        TEST_CHECK(talk_say(&t, sent, 40000));
        shutdown(t.fd, SHUT_WR);
        kill(server.pid, SIGCONT);
        TEST_CHECK_(talk_hear(&t).status == 400, "round %d", round);
        TEST_CHECK(talk_ended(&t));
        talk_end(&t);
    }
    stop();
}

/* ---- answers ---- */

static void test_answers_without_a_body(void)
{
    struct heard a;
    start(plain);
    a = talk_once(&server, "HEAD /hello HTTP/1.1\r\nHost: a\r\n\r\n");
    TEST_CHECK(a.status == 200 && strcmp(heard_field(&a, "Content-Length"), "11") == 0);
    a = talk_once(&server, "GET /none HTTP/1.1\r\nHost: a\r\n\r\n");
    TEST_CHECK(a.status == 204 && !heard_count(&a, "Content-Length") && !heard_count(&a, "Content-Type"));
    struct talk t;
    talk_begin(&t, &server);
    TEST_CHECK(talk_say_text(
        &t, "HEAD /large HTTP/1.1\r\nHost: a\r\n\r\nHEAD /missing HTTP/1.1\r\nHost: a\r\n\r\n"));
    t.bodyless = true;
    TEST_CHECK(talk_hear(&t).status == 200);
    TEST_CHECK(talk_hear(&t).status == 404);
    t.bodyless = false;
    TEST_CHECK(talk_say_text(&t, "GET /none HTTP/1.1\r\nHost: a\r\n\r\n" HELLO));
    TEST_CHECK(talk_hear(&t).status == 204);
    a = talk_hear(&t);
    TEST_CHECK(a.status == 200 && heard_has(&a, "{\"hello\":1}"));
    TEST_CHECK(t.at == t.size);
    talk_end(&t);
    stop();
}

/* What a request on another connection is answered with, after "name": */
static uint64_t number_of(struct talk *t, const char *path)
{
    char text[100];
    snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", path);
    TEST_ASSERT(talk_say_text(t, text));
    struct heard a = talk_hear(t);
    const char *colon = memchr(a.body, ':', a.body_size);
    TEST_ASSERT_(a.status == 200 && colon, "%s: %d", path, a.status);
    return strtoull(colon + 1, NULL, 10);
}

/* Bytes that the server's socket still has for this client: not sent, or not known to have come. */
static uint64_t kept_for(const struct talk *t)
{
    struct sockaddr_in mine;
    socklen_t size = sizeof mine;
    char line[512];
    unsigned from, to;
    uint64_t kept = 0;
    FILE *table = fopen("/proc/net/tcp", "r");
    TEST_ASSERT(table && getsockname(t->fd, (struct sockaddr *)&mine, &size) == 0);
    while (fgets(line, sizeof line, table)) {
        unsigned long long queued;
        if (sscanf(line, " %*u: %*x:%x %*x:%x %*x %llx:", &from, &to, &queued) == 3 && from == server.port &&
            to == ntohs(mine.sin_port))
            kept = queued;
    }
    fclose(table);
    return kept;
}

/* Whoever is ended while his answers wait for a client that takes none: part of them has gone out, so nothing more is said. */
static void test_CTL_283_no_apology_stands_in_another_answer(void)
{
    enum {
        COUNT = 450,
        STILL = 5
    }; /* requests that are read at once: what is unread would reset its answers away */
    static const char page[] = "GET /page HTTP/1.1\r\nHost: a\r\n\r\n";
    static char heard[COUNT * 2000];
    struct talk t, other;
    int small = 4096;
    start(plain);
    talk_begin(&t, &server);
    talk_begin(&other, &server);
    setsockopt(t.fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    (void)number_of(&t, "/note");
    kill(server.pid, SIGSTOP); /* so that it finds all of them */
    for (size_t i = 0; i < COUNT; i++)
        memcpy(sent + i * (sizeof page - 1), page, sizeof page - 1);
    TEST_CHECK(talk_say(&t, sent, COUNT * (sizeof page - 1)));
    kill(server.pid, SIGCONT);
    uint64_t so_far = 0;
    for (int still = 0; still < STILL;) { /* until it waits for us */
        uint64_t now = number_of(&other, "/pages");
        still = now > 0 && now == so_far ? still + 1 : 0;
        so_far = now;
    }
    TEST_CHECK_(so_far < COUNT, "it was never kept waiting");
    kill(server.pid, SIGSTOP); /* so that it finds the order first, and then that there is room */
    TEST_CHECK(talk_say_text(&other, "GET /kill HTTP/1.1\r\nHost: a\r\n\r\n"));
    ssize_t size = 0;
    while (kept_for(&t) > 0) {
        ssize_t n = recv(t.fd, heard + size, sizeof heard - (size_t)size, MSG_DONTWAIT);
        size += n > 0 ? n : 0;
    }
    kill(server.pid, SIGCONT);
    TEST_CHECK(talk_hear(&other).status == 200);
    for (ssize_t n; (n = recv(t.fd, heard + size, sizeof heard - (size_t)size, 0)) > 0;)
        size += n;
    TEST_CHECK(!memmem(heard, (size_t)size, "HTTP/1.1 500", 12));
    talk_end(&t);
    talk_end(&other);
    TEST_CHECK(testserver_runs(&server));
    testserver_stop(&server);
}

/* What couldn't be told to its end must not look as if it were all. */
static void test_an_answer_that_broke_off_does_not_end_as_a_whole_one(void)
{
    struct talk t;
    start(plain);
    talk_begin(&t, &server);
    TEST_CHECK(talk_say_text(&t, "GET /broken HTTP/1.1\r\nHost: a\r\n\r\n"));
    TEST_CHECK(talk_hear(&t).status == 0);
    talk_end(&t);
    stop();
}

/* As long as none of it is on its way it is refused as anything is, and nothing else ends. */
static void test_an_answer_that_broke_off_early_is_a_refusal(void)
{
    struct talk t;
    struct heard a;
    start(plain);
    talk_begin(&t, &server);
    TEST_CHECK(talk_say_text(&t, "GET /broken/early HTTP/1.1\r\nHost: a\r\nX-Request-Id: mine\r\n\r\n"));
    a = talk_hear(&t);
    TEST_CHECK_(a.status == 503 && !a.close && !a.chunked, "%d", a.status);
    TEST_CHECK(heard_has(&a, "\"code\":\"OPS_503_STORE\"") && heard_has(&a, "\"request_id\":\"mine\""));
    TEST_CHECK(!heard_has(&a, "123456789") && !heard_has(&a, "the end"));
    TEST_CHECK(strcmp(heard_field(&a, "Link"), "") == 0 && strcmp(heard_field(&a, "Retry-After"), "1") == 0);
    TEST_CHECK(talk_say_text(&t, HELLO));
    TEST_CHECK(talk_hear(&t).status == 200);
    talk_end(&t);
    stop();
}

static void test_HTTP_1_0(void)
{
    struct talk t;
    struct heard a;
    start(plain);
    talk_begin(&t, &server);
    TEST_CHECK(talk_say_text(&t, "GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
    a = talk_hear(&t);
    TEST_CHECK(a.status == 200 && strcmp(heard_field(&a, "Connection"), "keep-alive") == 0);
    TEST_CHECK(talk_say_text(&t, "GET /large HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
    a = talk_hear(&t);
    TEST_CHECK(a.status == 200 && a.close && !a.chunked && a.body_size == LARGE);
    talk_end(&t);
    talk_begin(&t, &server);
    TEST_CHECK(talk_say_text(&t, "GET /hello HTTP/1.0\r\n\r\n"));
    TEST_CHECK(talk_hear(&t).close && talk_ended(&t));
    talk_end(&t);
    stop();
}

/* How much of an answer a client gets that reads slowly; *ret_gap is the longest that it was away, by its own or because
 * the machine had other things to do. */
static size_t slowly(struct talk *t, uint64_t *ret_gap)
{
    struct env *env = env_real();
    size_t size = 0;
    uint64_t last = env->now(env);
    *ret_gap = 0;
    for (ssize_t n = 1; n > 0; size += (size_t)(n > 0 ? n : 0)) {
        pause_ms(30); /* what is measured */
        n = recv(t->fd, sent, 200000, MSG_WAITALL);
        uint64_t now = env->now(env);
        *ret_gap = now - last > *ret_gap ? now - last : *ret_gap;
        last = now;
    }
    return size;
}

/* Longer than http.write.timeout in all, but never for the next bytes. A client that was itself away for that long says
 * nothing about the server: it tries again. */
static void test_a_slow_client_that_goes_on_gets_all_of_an_answer(void)
{
    struct testserver_options o = {.limits = {.write_ns = NS_PER_S}};
    struct talk t;
    size_t size = 0;
    uint64_t gap = 0;
    int buffer = 65536;
    start(o);
    for (int i = 0; i < 20 && size <= LARGE && (i == 0 || gap > NS_PER_S / 2); i++) {
        talk_begin(&t, &server);
        setsockopt(t.fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
        TEST_CHECK(talk_say_text(&t, "GET /large HTTP/1.0\r\n\r\n"));
        size = slowly(&t, &gap);
        talk_end(&t);
    }
    TEST_CHECK_(size > LARGE && size < LARGE + 1000, "%zu bytes", size);
    stop();
}

/* ---- TLS ---- */

static char certificate[] = "/tmp/coppice-connection-XXXXXX", key_file[] = "/tmp/coppice-connection-XXXXXX";

static void make_identity(void)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *x = X509_new();
    strcpy(certificate + sizeof certificate - 7, "XXXXXX");
    strcpy(key_file + sizeof key_file - 7, "XXXXXX");
    FILE *c = fdopen(mkstemp(certificate), "w"), *k = fdopen(mkstemp(key_file), "w");
    X509_set_version(x, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
    X509_gmtime_adj(X509_getm_notBefore(x), -3600);
    X509_gmtime_adj(X509_getm_notAfter(x), 3600);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC,
                               (const unsigned char *)"localhost", -1, -1, 0);
    X509_set_issuer_name(x, X509_get_subject_name(x));
    X509_set_pubkey(x, key);
    TEST_ASSERT(X509_sign(x, key, EVP_sha256()) > 0 && c && k && PEM_write_X509(c, x) &&
                PEM_write_PrivateKey(k, key, NULL, NULL, 0, NULL, NULL));
    fclose(c);
    fclose(k);
    X509_free(x);
    EVP_PKEY_free(key);
}

static struct store *prepare_tls(struct routes *compiled)
{
    char text[256];
    struct tls_context *context = tls_context_create(certificate, key_file, NULL, text, sizeof text);
    ASSERT(context);
    tls_context_install(context);
    return prepare(compiled);
}

static void start_tls(struct testserver_options o)
{
    make_identity();
    o.tls = true;
    o.prepare = prepare_tls;
    start(o);
}

static void stop_tls(void)
{
    stop();
    unlink(certificate);
    unlink(key_file);
}

static void test_TLS_requests_in_all_sizes(void)
{
    struct talk t;
    struct heard a;
    start_tls(plain);
    talk_begin_tls(&t, &server);
    for (int i = 0; i < 3; i++) {
        TEST_CHECK(talk_say_text(&t, HELLO HELLO HELLO));
        for (int k = 0; k < 3; k++)
            TEST_CHECK(talk_hear(&t).status == 200);
        TEST_CHECK(talk_say_text(&t, "GET /large HTTP/1.1\r\nHost: a\r\n\r\n"));
        a = talk_hear(&t);
        TEST_CHECK(a.status == 200 && a.body_size == LARGE);
        int head = snprintf(sent, sizeof sent,
                            "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
                            "Content-Length: 500000\r\n\r\n{}");
        memset(sent + head, ' ', 499998);
        strcpy(sent + head + 499998, HELLO);
        TEST_CHECK(talk_say_text(&t, sent));
        a = talk_hear(&t);
        TEST_CHECK(a.status == 200 && heard_has(&a, "500000"));
        TEST_CHECK(talk_hear(&t).status == 200);
    }
    TEST_CHECK(goes_on(&t, "/echo", "Content-Length: 2\r\n"));
    TEST_CHECK(talk_say_text(&t, "{}"));
    TEST_CHECK(talk_hear(&t).status == 200);
    talk_end(&t);
    stop_tls();
}

static void test_TLS_CTL_283_a_crash_is_answered(void)
{
    struct talk t;
    start_tls(plain);
    for (int i = 0; i < 3; i++) {
        talk_begin_tls(&t, &server);
        TEST_CHECK(talk_say_text(&t, HELLO) && talk_hear(&t).status == 200);
        TEST_CHECK(talk_say_text(&t, "GET /crash HTTP/1.1\r\nHost: a\r\n\r\n"));
        struct heard a = talk_hear(&t);
        TEST_CHECK_(a.status == 500 && heard_has(&a, "OPS_500_INTERNAL"), "%d", a.status);
        talk_end(&t);
    }
    stop_after(3);
    unlink(certificate);
    unlink(key_file);
}

/* A client whose kernel gathers small pieces has its first request held back until the last word of the handshake is
 * acknowledged. Left to itself our kernel takes its 40 ms for that, each time: it is tried until
 * one is faster, which a slow machine comes to as well. */
static void test_TLS_a_first_request_is_not_held_back(void)
{
    struct talk t;
    uint64_t fastest = UINT64_MAX;
    int off = 0;
    start_tls(plain);
    for (int i = 0; i < 1000 && fastest >= 30 * NS_PER_MS; i++) {
        talk_begin(&t, &server);
        setsockopt(t.fd, IPPROTO_TCP, TCP_NODELAY, &off, sizeof(off));
        talk_shake_hands(&t);
        uint64_t began = env_real()->now(env_real());
        TEST_CHECK(talk_say_text(&t, HELLO) && talk_hear(&t).status == 200);
        uint64_t took = env_real()->now(env_real()) - began;
        fastest = took < fastest ? took : fastest;
        talk_end(&t);
    }
    TEST_CHECK_(fastest < 30 * NS_PER_MS, "%llu ns", (unsigned long long)fastest);
    stop_tls();
}

static void test_TLS_refusals_end_properly(void)
{
    struct talk t;
    start_tls(plain);
    talk_begin_tls(&t, &server);
    TEST_CHECK(talk_say_text(&t, HELLO "nonsense \r\n\r\n" HELLO));
    TEST_CHECK(talk_hear(&t).status == 200);
    TEST_CHECK(talk_hear(&t).status == 400);
    TEST_CHECK(talk_ended(&t)); /* with close_notify: not cut off */
    talk_end(&t);
    talk_begin_tls(&t, &server);
    TEST_CHECK(talk_say_text(&t, "GET /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
    TEST_CHECK(talk_hear(&t).status == 200 && talk_ended(&t));
    talk_end(&t);
    stop_tls();
}

/* Idle for too long, the server's end, the client's own end: each is told as an end, and not as if something had been cut off. */
static void test_TLS_a_connection_that_rests_ends_properly(void)
{
    struct talk t;
    start_tls(plain);
    talk_begin_tls(&t, &server);
    TEST_CHECK(talk_say_text(&t, HELLO) && talk_hear(&t).status == 200);
    testserver_outwait(&server, t.fd);
    TEST_CHECK_(talk_ended(&t), "idle");
    talk_end(&t);
    talk_begin_tls(&t, &server);
    TEST_CHECK(talk_say_text(&t, HELLO) && talk_hear(&t).status == 200);
    TEST_CHECK(SSL_shutdown(t.tls) == 0 && SSL_shutdown(t.tls) == 1);
    talk_end(&t);
    talk_begin_tls(&t, &server);
    TEST_CHECK(talk_say_text(&t, HELLO) && talk_hear(&t).status == 200);
    kill(server.pid, SIGTERM);
    TEST_CHECK_(talk_ended(&t), "the server's end");
    talk_end(&t);
    testserver_stop(&server);
    unlink(certificate);
    unlink(key_file);
}

/* Bytes that never become a session: each is news to the server, and none buys time. It is the handshake's own time, not that
 * of a connection that is idle. */
static void test_TLS_a_handshake_that_trickles_is_cut_off(void)
{
    struct testserver_options o = {.limits = {.idle_ns = 4 * TESTSERVER_LONG}};
    static const char hello[] = {0x16, 3, 1, 0x20, 0, 1, 0, 0x1f, (char)0xfc, 3, 3};
    struct talk t;
    bool open = true;
    start_tls(o);
    talk_begin(&t, &server);
    for (size_t i = 0; i < TALK_STUCK_MS / 10 && open; i++) {
        struct pollfd p = {.fd = t.fd, .events = POLLIN | POLLRDHUP};
        open = talk_say(&t, i < sizeof hello ? hello + i : "", 1) && testserver_poll(&p, 1, 10) == 0;
        testserver_advance(&server, TESTSERVER_LONG / 8);
    }
    TEST_CHECK(!open);
    talk_end(&t);
    talk_begin(&t, &server); /* nor may it stand still */
    TEST_CHECK(talk_say(&t, hello, sizeof hello));
    testserver_outwait(&server, t.fd);
    TEST_CHECK(talk_ended(&t));
    talk_end(&t);
    talk_begin_tls(&t, &server); /* what is behind a handshake has its own times */
    TEST_CHECK(talk_say_text(&t, HELLO) && talk_hear(&t).status == 200); /* it is there */
    testserver_advance(&server, 2 * TESTSERVER_LONG);
    TEST_CHECK(talk_say_text(&t, HELLO) && talk_hear(&t).status == 200);
    TEST_CHECK(talk_say_text(&t, "GET /handshakes HTTP/1.1\r\nHost: a\r\n\r\n"));
    struct heard a = talk_hear(&t);
    TEST_CHECK_(heard_has(&a, "{\"handshakes\":2}"), "%.*s", (int)a.body_size, a.body);
    talk_end(&t);
    stop_tls();
}

/* Shakes hands up to the last word, which waits in *ret_out: nothing of it has been sent. */
static SSL *nearly_shaken(struct talk *t, BIO **ret_out)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL *tls = SSL_new(context);
    BIO *in = BIO_new(BIO_s_mem());
    char bytes[8192];
    SSL_CTX_free(context);
    *ret_out = BIO_new(BIO_s_mem());
    SSL_set_bio(tls, in, *ret_out);
    while (SSL_connect(tls) != 1) {
        for (int n; (n = BIO_read(*ret_out, bytes, sizeof bytes)) > 0;)
            TEST_ASSERT(talk_say(t, bytes, (size_t)n));
        ssize_t n;
        do
            n = recv(t->fd, bytes, sizeof bytes, 0);
        while (n < 0 && errno == EINTR); /* it was stopped meanwhile */
        TEST_ASSERT(BIO_write(in, bytes, (int)n) > 0);
    }
    return tls;
}

/* A connection whose handshake's end, new keys and a request come in one piece, to a server that is stopped meanwhile. New keys are
 * no request, a client may make as many as it likes, and each costs us as much as it. */
static void say_new_keys(struct talk *t, const char *request)
{
    enum { KEYS = 2000 }; /* more than is read at a time, and no more than a socket holds */
    BIO *out;
    talk_begin(t, &server);
    SSL *tls = nearly_shaken(t, &out);
    for (int i = 0; i < KEYS; i++)
        TEST_ASSERT(SSL_key_update(tls, SSL_KEY_UPDATE_NOT_REQUESTED) == 1 && SSL_do_handshake(tls) == 1);
    TEST_ASSERT(SSL_write(tls, request, (int)strlen(request)) > 0);
    int size = BIO_read(out, sent, sizeof sent);
    TEST_ASSERT(size > 40000 && size < 64000);
    kill(server.pid, SIGSTOP);
    TEST_CHECK(talk_say(t, sent, (size_t)size));
    SSL_set0_rbio(tls, BIO_new_socket(t->fd, BIO_NOCLOSE));
    t->tls = tls;
}

static void test_TLS_who_makes_new_keys_lets_the_others_go(void)
{
    struct talk t, other;
    start_tls(plain);
    talk_begin_tls(&other, &server);
    TEST_CHECK(talk_say_text(&other, HELLO) && talk_hear(&other).status == 200);
    say_new_keys(&t, "GET /page HTTP/1.1\r\nHost: a\r\n\r\n");
    TEST_CHECK(talk_say_text(&other, "GET /pages HTTP/1.1\r\nHost: a\r\n\r\n"));
    kill(server.pid, SIGCONT);
    struct heard a = talk_hear(&other);
    TEST_CHECK_(heard_has(&a, "{\"pages\":0}"), "%.*s", (int)a.body_size, a.body);
    TEST_CHECK(talk_hear(&t).status == 200);
    talk_end(&t);
    talk_end(&other);
    stop_tls();
}

static void test_TLS_new_keys_buy_no_time(void)
{
    struct testserver_options o = {.limits = {.idle_ns = 1}};
    struct talk t;
    start_tls(o);
    say_new_keys(&t, HELLO);
    kill(server.pid, SIGCONT);
    TEST_CHECK(talk_hear(&t).status != 200);
    talk_end(&t);
    stop_tls();
}

/* Too many of one address: what isn't TLS is no word on a TLS port. */
static void test_TLS_nothing_is_said_in_the_clear(void)
{
    struct testserver_options o = {.limits = {.peer_max = 1}};
    struct talk t, second;
    char byte;
    start_tls(o);
    talk_begin_tls(&t, &server);
    TEST_CHECK(talk_say_text(&t, HELLO));
    TEST_CHECK(talk_hear(&t).status == 200);
    talk_begin(&second, &server);
    testserver_poll(&(struct pollfd){.fd = second.fd, .events = POLLIN}, 1, TALK_STUCK_MS);
    TEST_CHECK(recv(second.fd, &byte, 1, MSG_DONTWAIT) <= 0 && errno != EAGAIN);
    talk_end(&second);
    talk_end(&t);
    stop_tls();
}

TEST_LIST
= {
    {"H4 escapes in paths leave nothing behind", test_H4_escapes_in_paths_leave_nothing_behind},
    {"H4 bodies that come later leave nothing behind", test_H4_bodies_that_come_later_leave_nothing_behind},
    {"H4 large bodies give their rooms back", test_H4_large_bodies_give_their_rooms_back},
    {"H4 a client that never stops keeps no room", test_H4_a_client_that_never_stops_keeps_no_room},
    {"H1 pipelines behind bodies", test_H1_pipelines_behind_bodies},
    {"H1 a long pipeline lets the others go", test_H1_a_long_pipeline_lets_the_others_go},
    {"H1 an answer goes out while the next one waits", test_H1_an_answer_goes_out_while_the_next_one_waits},
    {"H1 what came while an answer waited is read", test_H1_what_came_while_an_answer_waited_is_read},
    {"H1 who hung up with his request is not waited for",
     test_H1_who_hung_up_with_his_request_is_not_waited_for},
    {"H3 an answer that waited for the server's end is the last one",
     test_H3_an_answer_that_waited_for_the_servers_end_is_the_last_one},
    {"CTL-056 CTL-251 what is wrong with a body is said in the shape of its path",
     test_CTL_056_CTL_251_what_is_wrong_with_a_body_is_said_in_the_shape_of_its_path},
    {"CTL-251 chunks behind their head that are too long",
     test_CTL_251_chunks_behind_their_head_that_are_too_long},
    {"CTL-251 a slow body is told with its ids", test_CTL_251_a_slow_body_is_told_with_its_ids},
    {"H1 an empty line between requests is passed over",
     test_H1_an_empty_line_between_requests_is_passed_over},
    {"H1 what came while the process was stopped is served",
     test_H1_what_came_while_the_process_was_stopped_is_served},
    {"H3 a connection is idle from its last request on",
     test_H3_a_connection_is_idle_from_its_last_request_on},
    {"H3 a head that has begun has its own time", test_H3_a_head_that_has_begun_has_its_own_time},
    {"H3 who has been idle for longest makes room", test_H3_who_has_been_idle_for_longest_makes_room},
    {"H3 who has never asked makes room", test_H3_who_has_never_asked_makes_room},
    {"CTL-251 bytes that are no request are answered with ids",
     test_CTL_251_bytes_that_are_no_request_are_answered_with_ids},
    {"H3 who has closed his side gets the last answer whole",
     test_H3_who_has_closed_his_side_gets_the_last_answer_whole},
    {"who is too slow is counted as cut off", test_who_is_too_slow_is_counted_as_cut_off},
    {"answers without a body", test_answers_without_a_body},
    {"CTL-283 no apology stands in another answer", test_CTL_283_no_apology_stands_in_another_answer},
    {"an answer that broke off early is a refusal", test_an_answer_that_broke_off_early_is_a_refusal},
    {"an answer that broke off does not end as a whole one",
     test_an_answer_that_broke_off_does_not_end_as_a_whole_one},
    {"HTTP/1.0", test_HTTP_1_0},
    {"a slow client that goes on gets all of an answer",
     test_a_slow_client_that_goes_on_gets_all_of_an_answer},
    {"TLS: requests in all sizes", test_TLS_requests_in_all_sizes},
    {"TLS: CTL-283 a crash is answered", test_TLS_CTL_283_a_crash_is_answered},
    {"TLS: a first request is not held back", test_TLS_a_first_request_is_not_held_back},
    {"TLS: refusals end properly", test_TLS_refusals_end_properly},
    {"TLS: a connection that rests ends properly", test_TLS_a_connection_that_rests_ends_properly},
    {"TLS: a handshake that trickles is cut off", test_TLS_a_handshake_that_trickles_is_cut_off},
    {"TLS: who makes new keys lets the others go", test_TLS_who_makes_new_keys_lets_the_others_go},
    {"TLS: new keys buy no time", test_TLS_new_keys_buy_no_time},
    {"TLS: nothing is said in the clear", test_TLS_nothing_is_said_in_the_clear},
    {NULL, NULL},
};
