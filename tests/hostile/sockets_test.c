/* Hostile clients over real sockets, against the product's listeners, connections and front (tests/support/testserver.h).
 *
 * H1 one answer per request, in order; H2 no byte of a body is read as a request; H3 after an ambiguous request the
 * connection is closed; H4 memory per connection is bounded; H5 what is authorised is what was routed.
 */
#define _GNU_SOURCE /* memmem */
#include "acutest.h"

#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/connection.h"
#include "runtime/env.h"
#include "tests/hostile/rows.h"
#include "tests/support/pipeline.h"
#include "tests/support/sanitized.h"
#include "tests/support/splitter.h"
#include "tests/support/testserver.h"

#define STUCK_MS    TESTSERVER_STUCK_MS
#define ANSWERS_MAX (8u << 20)
#define PIPELINES   (SANITIZED ? 1000u : 20000u)

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

static void serve_number(const struct request *q, struct response *r)
{
    struct json json;
    response_begin(r, 200, RESPONSE_JSON);
    json_init(&json, &r->sink);
    json_object_begin(&json);
    json_key(&json, "number");
    json_string_n(&json, q->params[0].bytes, q->params[0].size);
    json_object_end(&json);
}

static void serve_echo(const struct request *q, struct response *r)
{
    struct json json;
    response_begin(r, 200, RESPONSE_JSON);
    json_init(&json, &r->sink);
    json_object_begin(&json);
    JSON_MEMBER(&json, "bytes", uint, q->body.size);
    json_object_end(&json);
}

static void serve_large(const struct request *q, struct response *r)
{
    static const char line[] =
        "a line of an answer that is longer than any socket's buffer, again and again\n";
    (void)q;
    response_begin(r, 200, RESPONSE_TEXT);
    for (int i = 0; i < 200000; i++)
        json_sink_text(&r->sink, line);
}

/* Somebody's handler has a bug. It is meant, and not the sanitizers' business. */
__attribute__((no_sanitize("undefined", "address", "thread"))) static void
serve_crash(const struct request *q, struct response *r)
{
    static int *volatile nothing;
    response_begin(r, 200, RESPONSE_JSON);
    *nothing = q->minor;
}

static const struct route routes[] = {
    {.method = METHOD_GET,
     .path = "/crash",
     .surface = SURFACE_PUBLIC,
     .undocumented = true,
     .serve = serve_crash},
    {.method = METHOD_GET,
     .path = "/hello",
     .surface = SURFACE_PUBLIC,
     .undocumented = true,
     .serve = serve_hello},
    {.method = METHOD_GET,
     .path = "/number/{n}",
     .surface = SURFACE_PUBLIC,
     .undocumented = true,
     .serve = serve_number},
    {.method = METHOD_GET,
     .path = "/large",
     .surface = SURFACE_PUBLIC,
     .undocumented = true,
     .serve = serve_large},
    {.method = METHOD_POST,
     .path = "/echo",
     .surface = SURFACE_PUBLIC,
     .undocumented = true,
     .body_max = 65536,
     .serve = serve_echo},
    {.method = METHOD_GET,
     .path = "/secret",
     .surface = SURFACE_PUBLIC,
     .auth = AUTH_KEY,
     .undocumented = true,
     .serve = serve_hello},
};
static const struct testserver_options plain = {.routes = routes,
                                                .routes_count = sizeof routes / sizeof *routes};

static struct testserver server;

static void start(struct testserver_options o)
{
    o.routes = plain.routes;
    o.routes_count = plain.routes_count;
    testserver_start(&o, &server);
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

/* The server has served to its end, and no actor has crashed in it. */
static void stop(void)
{
    stop_after(0);
}

/* ---- a client ---- */

static char heard[ANSWERS_MAX];
static size_t heard_size;

static int open_one(void)
{
    struct timeval time = {.tv_sec = STUCK_MS / 1000};
    int on = 1, fd = testserver_connect(&server);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

/* False: the other side takes no more. */
static bool say(int fd, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t n = send(fd, bytes, size, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        bytes += n;
        size -= (size_t)n;
    }
    return true;
}

static bool say_text(int fd, const char *text)
{
    return say(fd, text, strlen(text));
}

/* An answer, or its beginning; 0: the end. */
static ssize_t hear(int fd)
{
    ssize_t n;
    do
        n = recv(fd, heard, sizeof heard - 1, 0);
    while (n < 0 && errno == EINTR); /* it was stopped meanwhile */
    heard[n > 0 ? n : 0] = 0;
    return n;
}

/* What has come without waiting for it; or the end of it, 0. */
static ssize_t hear_now(int fd)
{
    ssize_t n;
    do
        n = recv(fd, heard, sizeof heard, MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    return n;
}

/* Up to the end. False: no end came, or a reset. */
static bool hear_all(int fd)
{
    heard_size = 0;
    for (;;) {
        ssize_t n = recv(fd, heard + heard_size, sizeof heard - 1 - heard_size, 0);
        if (n < 0 && errno == EINTR)
            continue;
        heard[heard_size + (n > 0 ? (size_t)n : 0)] = 0;
        if (n <= 0)
            return n == 0;
        heard_size += (size_t)n;
        TEST_ASSERT(heard_size < sizeof heard - 1);
    }
}

struct reply {
    int status;
    bool close;
    const char *body;
    size_t body_size;
};

static const char *field(const char *head, size_t size, const char *name)
{
    for (const char *at = head; (at = memmem(at, (size_t)(head + size - at), "\r\n", 2)); at += 2)
        if (strncasecmp(at + 2, name, strlen(name)) == 0 && at[2 + strlen(name)] == ':')
            return at + 2 + strlen(name) + 1 + (at[3 + strlen(name)] == ' ');
    return NULL;
}

/* The answer at *at, strictly read; false: there is none. 100 (Continue) is passed over. */
static bool next_answer(size_t *at, struct reply *ret)
{
    const char *head = heard + *at, *end = memmem(head, heard_size - *at, "\r\n\r\n", 4);
    if (!end || strncmp(head, "HTTP/1.1 ", 9) != 0)
        return false;
    size_t size = (size_t)(end - head) + 2;
    const char *length = field(head, size, "content-length"), *connection = field(head, size, "connection");
    ret->status = atoi(head + 9);
    ret->close = connection && strncasecmp(connection, "close", 5) == 0;
    ret->body = end + 4;
    ret->body_size = length ? strtoul(length, NULL, 10) : 0;
    *at += size + 2;
    if (ret->status == 100)
        return next_answer(at, ret);
    if (ret->body_size > heard_size - *at)
        return false;
    *at += ret->body_size;
    return true;
}

/* ---- the table ---- */

static char sent[1u << 17];

static size_t make(const struct row *row)
{
    const size_t filler = strlen(ROWS_FILLER);
    size_t size = 0;
    for (size_t i = 0; i < row->size; i++)
        if (row->fill && i + filler <= row->size && memcmp(row->bytes + i, ROWS_FILLER, filler) == 0) {
            memset(sent + size, 'a', row->fill);
            size += row->fill;
            i += filler - 1;
        } else {
            sent[size++] = row->bytes[i];
        }
    memcpy(sent + size, ROWS_NEXT, strlen(ROWS_NEXT));
    return size + strlen(ROWS_NEXT);
}

static bool is_refused(const struct row *row)
{
    struct reply a;
    size_t at = 0;
    for (uint32_t i = 0; i < row->before; i++)
        if (!TEST_CHECK_(next_answer(&at, &a) && a.status == 200, "%s: what stands before is answered",
                         row->name))
            return false;
    if (!TEST_CHECK_(next_answer(&at, &a), "%s: there is an answer", row->name))
        return false;
    TEST_CHECK_(a.status == row->status || (row->also && a.status == row->also), "%s: %d, not %d", row->name,
                a.status, row->status);
    if (row->level == ROW_FRONT)
        return TEST_CHECK_(at == heard_size || (next_answer(&at, &a) && a.status == 200 && at == heard_size),
                           "%s: then only what stands behind", row->name);
    TEST_CHECK_(a.close, "%s: the answer says close", row->name);
    return TEST_CHECK_(at == heard_size, "%s: no second answer: %.200s", row->name, heard + at);
}

static void send_row(const struct row *row, size_t piece)
{
    size_t size = make(row);
    int fd = open_one();
    bool open = true;
    for (size_t at = 0; at < size && open; at += piece)
        open = say(fd, sent + at, size - at < piece ? size - at : piece);
    if (row->level == ROW_FRONT)
        shutdown(fd, SHUT_WR);
    bool ended = hear_all(fd);
    /* Whoever goes on sending behind a refusal may see a reset at the end, but only behind the answer. */
    TEST_CHECK_(ended || (!open && heard_size > 0), "%s: the connection is closed: %s", row->name,
                strerror(errno));
    is_refused(row);
    close(fd);
}

static void test_H2_H3_hostile_rows_in_one_piece(void)
{
    start(plain);
    for (size_t i = 0; i < ROWS_COUNT; i++)
        send_row(&rows[i], sizeof sent);
    stop();
}

static void test_H2_H3_hostile_rows_in_many_pieces(void)
{
    start((struct testserver_options){.schedulers = 2});
    for (size_t i = 0; i < ROWS_COUNT; i++)
        send_row(&rows[i], rows[i].fill ? 1000 : 7);
    stop();
}

/* ---- pipelines ---- */

static void test_H1_answers_come_in_the_order_of_the_requests(void)
{
    enum { COUNT = 2000 };
    struct reply a;
    size_t size = 0, at = 0;
    start(plain);
    int fd = open_one();
    for (int i = 0; i < COUNT; i++)
        size +=
            (size_t)snprintf(sent + size, sizeof sent - size, "GET /number/%d HTTP/1.1\r\nHost: a\r\n%s\r\n",
                             i, i + 1 == COUNT ? "Connection: close\r\n" : "");
    TEST_ASSERT(size < sizeof sent - 1);
    TEST_CHECK(say(fd, sent, size));
    TEST_CHECK(hear_all(fd));
    for (int i = 0; i < COUNT; i++) {
        char body[64];
        int length = snprintf(body, sizeof body, "{\"number\":\"%d\"}", i);
        TEST_ASSERT_(next_answer(&at, &a) && a.status == 200, "answer %d", i);
        TEST_CHECK_(a.body_size >= (size_t)length && memcmp(a.body, body, (size_t)length) == 0,
                    "answer %d is %.*s", i, (int)a.body_size, a.body);
        TEST_CHECK(a.close == (i + 1 == COUNT));
    }
    TEST_CHECK(at == heard_size);
    close(fd);
    stop();
}

/* HEAD has no body behind its head, whatever it says. */
static bool next_answer_to(struct span method, size_t *at, struct reply *ret)
{
    if (!span_equal(method, span_text("HEAD")))
        return next_answer(at, ret);
    const char *end = memmem(heard + *at, heard_size - *at, "\r\n\r\n", 4);
    size_t whole = heard_size;
    if (!end)
        return false;
    heard_size = (size_t)(end - heard) + 4;
    const char *length = field(heard + *at, heard_size - *at, "content-length");
    if (length)
        *(char *)(uintptr_t)length = 'x'; /* strtoul finds none */
    bool is = next_answer(at, ret);
    heard_size = whole;
    return is;
}

/* The server may look at a head when it is whole, and nobody is told of one that never is. */
static bool head_goes_on(const struct pipeline *p, size_t read)
{
    size_t skip = p->size - read >= 2 && memcmp(p->bytes + read, "\r\n", 2) == 0 ? 2 : 0;
    return !memmem(p->bytes + read + skip, p->size - read - skip, "\r\n\r\n", 4);
}

/* Of the refused request there is the head of an answer to HEAD, and nothing more. */
static bool head_is_last(const struct pipeline *p, size_t read, size_t at)
{
    const char *end = memmem(heard + at, heard_size - at, "\r\n\r\n", 4);
    size_t skip = p->size - read >= 2 && memcmp(p->bytes + read, "\r\n", 2) == 0 ? 2 : 0;
    return end && end + 4 == heard + heard_size && p->size - read - skip > 5 &&
           memcmp(p->bytes + read + skip, "HEAD ", 5) == 0;
}

/* As many answers as there are requests; one more for what is refused; fewer only behind an answer that says close. */
static void check_pipeline(const struct pipeline *p, unsigned long long seed, bool ended)
{
    static struct split_request split;
    struct reply a = {.close = false};
    size_t at = 0, read = 0, used = 0;
    TEST_CHECK_(ended, "pipeline %llu: it comes to an end", seed);
    for (;;) {
        enum split s =
            read < p->size ? split_request(p->bytes + read, p->size - read, &split, &used) : SPLIT_MORE;
        if (a.close || s == SPLIT_MORE || (s == SPLIT_REFUSED && at == heard_size && head_goes_on(p, read)))
            break;
        struct span method = s == SPLIT_DONE ? split.method : span_text("GET");
        if (s == SPLIT_REFUSED && head_is_last(p, read, at))
            method = span_text("HEAD"); /* refused for what its head says, or for the body behind it */
        if (!TEST_CHECK_(next_answer_to(method, &at, &a), "pipeline %llu: an answer at %zu of %zu", seed, at,
                         heard_size))
            return;
        if (s == SPLIT_REFUSED)
            TEST_CHECK_(a.close && a.status >= 400, "pipeline %llu: %s is refused: %d", seed, split.why,
                        a.status);
        read += used;
    }
    /* A head that isn't whole may be refused early, for what can't become a request. */
    bool rest = read < p->size && !a.close && at < heard_size;
    if (rest)
        rest = next_answer(&at, &a) && a.close && a.status >= 400;
    TEST_CHECK_(at == heard_size, "pipeline %llu: no answer without a request: %.100s", seed, heard + at);
}

static void test_H1_H2_H3_random_pipelines(void)
{
    static struct pipeline p;
    start((struct testserver_options){.schedulers = 2});
    for (uint64_t seed = 1; seed <= PIPELINES; seed++) {
        int fd = open_one();
        bool open = true;
        pipeline_make(&p, seed);
        for (size_t at = 0; at < p.size && open;) {
            size_t n = 1 + pipeline_random(&p, 400);
            n = n < p.size - at ? n : p.size - at;
            open = say(fd, p.bytes + at, n);
            at += n;
        }
        shutdown(fd, SHUT_WR);
        bool ended = hear_all(fd) || !open || errno == ECONNRESET;
        check_pipeline(&p, (unsigned long long)seed, ended);
        close(fd);
    }
    stop();
}

/* A connection that never lets the server come to rest isn't taken for an endless loop. */
static void test_H1_a_flood_of_requests_is_served(void)
{
    enum { COUNT = SANITIZED ? 20000 : 1000000 };
    static const char one[] = "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n";
    struct testserver_options o = plain;
    size_t answers = 0, size = 0;
    o.runaway_ns = 500 * NS_PER_MS; /* of a processor, which a thousandth of the requests takes */
    start(o);
    int fd = open_one();
    while (size + sizeof one < sizeof sent) {
        memcpy(sent + size, one, sizeof one - 1);
        size += sizeof one - 1;
    }
    size_t of_these = size / (sizeof one - 1), said = 0, at = 0;
    while (answers < COUNT) {
        struct pollfd p = {.fd = fd, .events = POLLIN | (said < COUNT ? POLLOUT : 0)};
        TEST_ASSERT(testserver_poll(&p, 1, STUCK_MS) == 1);
        if (p.revents & POLLOUT) {
            ssize_t n = send(fd, sent + at, size - at, MSG_DONTWAIT | MSG_NOSIGNAL);
            if (n > 0 && (at += (size_t)n) == size)
                at = 0, said += of_these;
        }
        if (p.revents & (POLLIN | POLLHUP)) {
            ssize_t n = hear_now(fd);
            TEST_ASSERT_(n > 0, "behind %zu answers the connection ended: %s", answers,
                         n ? strerror(errno) : "in order");
            for (const char *found = heard;
                 (found = memmem(found, (size_t)(heard + n - found), "HTTP/1.1 200", 12)); found++)
                answers++;
        }
    }
    close(fd);
    stop();
}

/* ---- slow ones ---- */

static int status_of(int fd)
{
    struct reply a;
    size_t at = 0;
    bool ended = hear_all(fd);
    close(fd);
    return !ended                                                ? -1
           : heard_size == 0                                     ? 0
           : next_answer(&at, &a) && at == heard_size && a.close ? a.status
                                                                 : -2;
}

/* All limits but the one that is given are out of reach. */
static struct testserver_options with_one_limit(struct front_limits limits)
{
#define OUT_OF_REACH(name) limits.name = limits.name ? limits.name : 100000 * NS_PER_S
    OUT_OF_REACH(idle_ns);
    OUT_OF_REACH(head_ns);
    OUT_OF_REACH(write_ns);
    OUT_OF_REACH(body_grace_ns);
#undef OUT_OF_REACH
    return (struct testserver_options){.limits = limits};
}

static void test_slow_clients_are_cut_off(void)
{
    static const struct {
        const char *said, *what;
        struct front_limits limits; /* the one that is over; the others last for longer than the test */
        int status;
    } cases[] = {
        {"", "who says nothing is told nothing", {.idle_ns = TESTSERVER_LONG}, 0},
        {"G", "a letter", {.head_ns = TESTSERVER_LONG}, 408},
        {"GET /hello HTTP/1.1\r\nHost: a\r\nA: b",
         "a head that isn't whole",
         {.head_ns = TESTSERVER_LONG},
         408},
        {"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{}",
         "a body that isn't whole",
         {.body_grace_ns = TESTSERVER_LONG, .body_rate = 1u << 20},
         408},
        {("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
          "Transfer-Encoding: chunked\r\n\r\n5\r\n{"),
         "chunks that aren't whole",
         {.body_grace_ns = TESTSERVER_LONG, .body_rate = 1u << 20},
         408},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        start(with_one_limit(cases[i].limits));
        int fd = open_one();
        TEST_CHECK(say_text(fd, cases[i].said));
        testserver_outwait(&server, fd);
        int status = status_of(fd);
        TEST_CHECK_(status == cases[i].status, "%s: %d", cases[i].what, status);
        stop();
    }
}

/* A letter every now and then buys no time: neither in a head nor in a body nor behind the last answer. */
static void test_trickling_buys_no_time(void)
{
    static const char *const begins[] = {
        "GET /hello HTTP/1.1\r\nHost: a\r\nA: ",
        "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 60000\r\n\r\n",
        ("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: "
         "chunked\r\n\r\nea60\r\n"),
        "no request\r\n\r\n",
    };
    start((struct testserver_options){.limits = {.body_rate = 1u << 20}});
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
        int fd = open_one();
        bool open = say_text(fd, begins[i]);
        for (int waited = 0; open && waited < STUCK_MS; waited += 10) {
            struct pollfd p = {.fd = fd};
            open = say(fd, "a", 1) && testserver_poll(&p, 1, 10) == 0;
            testserver_advance(&server, TESTSERVER_LONG / 8);
        }
        TEST_CHECK_(!open, "'%.20s...' is cut off", begins[i]);
        close(fd);
    }
    stop();
}

static void test_a_client_that_takes_nothing_is_cut_off(void)
{
    struct testserver_options o = with_one_limit((struct front_limits){.write_ns = TESTSERVER_LONG});
    o.connections = 1;
    start(o);
    int fd = open_one();
    TEST_CHECK(say_text(fd, "GET /large HTTP/1.1\r\nHost: a\r\n\r\n"));
    TEST_CHECK(hear(fd) > 0); /* so that it is in the midst of it, and no idle one who makes room */
    /* There is one place: when somebody else is served, it is free. */
    for (int status = 503; status == 503;) {
        int other = open_one();
        TEST_CHECK(say_text(other, "GET /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
        status = status_of(other);
        TEST_CHECK_(status == 503 || status == 200, "%d", status);
        testserver_advance(&server, TESTSERVER_LONG / 8);
    }
    close(fd);
    stop();
}

/* ---- limits ---- */

static void test_a_connection_has_so_many_requests(void)
{
    struct testserver_options o = {.limits = {.requests_max = 3}};
    struct reply a = {.close = false};
    size_t at = 0;
    start(o);
    int fd = open_one();
    for (int i = 0; i < 5; i++)
        TEST_CHECK(say_text(fd, ROWS_GOOD));
    TEST_CHECK(hear_all(fd));
    for (int i = 1; i <= 3; i++)
        TEST_CHECK(next_answer(&at, &a) && a.status == 200 && a.close == (i == 3));
    TEST_CHECK(at == heard_size);
    close(fd);
    stop();
}

static void test_an_address_has_so_many_connections(void)
{
    struct testserver_options o = {.limits = {.peer_max = 3}};
    struct reply a;
    int fds[3];
    start(o);
    for (int i = 0; i < 3; i++) {
        fds[i] = open_one();
        TEST_CHECK(say_text(fds[i], ROWS_GOOD));
        TEST_CHECK(hear(fds[i]) > 0);
    }
    int fd = open_one();
    size_t at = 0;
    TEST_CHECK(hear_all(fd));
    TEST_CHECK(next_answer(&at, &a) && a.status == 503 && a.close);
    close(fd);
    close(fds[0]);
    for (int status = 503; status == 503;) { /* until it has seen that one end */
        fd = open_one();
        (void)say_text(fd, "GET /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        status = hear_all(fd) && (at = 0, next_answer(&at, &a)) ? a.status : 503;
        close(fd);
    }
    close(fds[1]);
    close(fds[2]);
    stop();
}

static void expect_post(const char *fields, const char *body, size_t size, int status)
{
    char head[512];
    int fd = open_one();
    snprintf(
        head, sizeof head,
        "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nConnection: close\r\n%s\r\n",
        fields);
    (void)(say_text(fd, head) && say(fd, body, size));
    (void)hear_all(fd);
    close(fd);
    struct reply a = {.status = 0};
    size_t at = 0;
    TEST_CHECK_(next_answer(&at, &a) && a.status == status, "%s: %d, not %d", fields, a.status, status);
    TEST_CHECK(at == heard_size);
}

static void test_bodies_end_at_their_limit(void)
{
    static char body[70000];
    static char chunked[80000];
    memset(body, ' ', sizeof body);
    memcpy(body, "{}", 2);
    start(plain);
    expect_post("Content-Length: 65536\r\n", body, 65536, 200);
    expect_post("Content-Length: 65537\r\n", body, 65537, 413);
    expect_post("Content-Length: 9223372036854775807\r\n", body, 100, 413);
    int n = snprintf(chunked, sizeof chunked, "10000\r\n%.65536s\r\n0\r\n\r\n", body);
    expect_post("Transfer-Encoding: chunked\r\n", chunked, (size_t)n, 200);
    n = snprintf(chunked, sizeof chunked, "10001\r\n%.65537s\r\n0\r\n\r\n", body);
    expect_post("Transfer-Encoding: chunked\r\n", chunked, (size_t)n, 413);
    n = snprintf(chunked, sizeof chunked, "7fffffffffffffff\r\n%.69000s", body);
    expect_post("Transfer-Encoding: chunked\r\n", chunked, (size_t)n, 413);
    stop();
}

/* ---- H4 ---- */

static size_t descriptors_of_server(void)
{
    char path[64];
    size_t count = 0;
    snprintf(path, sizeof path, "/proc/%d/fd", server.pid);
    DIR *dir = opendir(path);
    TEST_ASSERT(dir != NULL);
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

/* Until it has seen all go that are more than these; `last` is a connection to it. */
static void await_descriptors(int last, size_t count)
{
    while (descriptors_of_server() > count) {
        TEST_CHECK(say_text(last, ROWS_GOOD) && hear(last) > 0);
        TEST_ASSERT(testserver_runs(&server));
    }
}

static void test_H4_memory_of_unfinished_requests_is_bounded_and_comes_back(void)
{
    enum { COUNT = 300, HEAD = 30000 };
    static int fds[COUNT];
    start(plain);
    int last = open_one();
    TEST_CHECK(say_text(last, ROWS_GOOD) && hear(last) > 0);
    size_t descriptors = descriptors_of_server();
    memset(sent, 'a', HEAD);
    memcpy(sent, "GET /hello HTTP/1.1\r\nHost: a\r\nA: ", 33);
    for (int round = 0; round < 2; round++) {
        uint64_t before = testserver_resident(&server);
        for (int i = 0; i < COUNT; i++) {
            fds[i] = open_one();
            TEST_CHECK(say(fds[i], sent, HEAD));
        }
        for (int i = 0; i < COUNT; i++) /* their ends say that all of it was read */
            TEST_CHECK(say_text(fds[i], "\r\n\r\n") && hear(fds[i]) > 0);
        uint64_t after = testserver_resident(&server);
        /* A head of 32 KiB, twice while it grows, and what an actor has; in the second round it is there already. */
        uint64_t most = round == 0 ? (uint64_t)COUNT * 160 * 1024 : (uint64_t)COUNT * 8 * 1024;
        if (!SANITIZED)
            TEST_CHECK_(after - before <= most || after < before, "round %d: %llu bytes each", round,
                        (unsigned long long)(after - before) / COUNT);
        for (int i = 0; i < COUNT; i++)
            close(fds[i]);
        await_descriptors(last, descriptors); /* those of this round would count in the next one */
    }
    close(last);
    stop();
}

/* ---- H5 ---- */

static void test_H5_no_spelling_of_a_path_gets_around_its_authorisation(void)
{
    static const char *const targets[] = {
        "/secret",
        "/secret?",
        "/secret?a=b",
        "/%73ecret",
        "/%73%65%63%72%65%74",
        "/secret/",
        "//secret",
        "/./secret",
        "/hello/../secret",
        "/hello/%2e%2e/secret",
        "/secret%2f",
        "/secret%00",
        "/secret;a=b",
        "/SECRET",
        "/secret%20",
        "/secret#",
        "/secret%23",
        "/secret%3f",
        "http://a/secret",
        "http://a/%73ecret",
        "http://a//secret",
        "/hello%2f..%2fsecret",
        "/hello/..;/secret",
        "/hello\\..\\secret",
        "/secret.json",
        "/secret:get",
        "/secret%3Aget",
        "/%2573ecret",
        ("/\xef\xbd\x93"
         "ecret"),
        "/secre%74%",
    };
    static const char *const methods[] = {"GET", "HEAD",   "OPTIONS", "POST",
                                          "PUT", "DELETE", "PATCH",   "TRACE"};
    start(plain);
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        for (size_t k = 0; k < sizeof methods / sizeof *methods; k++) {
            char request[256];
            int fd = open_one();
            snprintf(request, sizeof request, "%s %s HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
                     methods[k], targets[i]);
            TEST_CHECK(say_text(fd, request));
            TEST_CHECK(hear_all(fd));
            close(fd);
            int status = heard_size > 12 ? atoi(heard + 9) : 0;
            bool options = k == 2 && status == 200; /* what may be asked, and nothing more */
            TEST_CHECK_((status >= 400 && status < 500) || options, "%s %s: %d", methods[k], targets[i],
                        status);
            TEST_CHECK_(!memmem(heard, heard_size, "world", 5), "%s %s", methods[k], targets[i]);
        }
    stop();
}

/* ---- descriptors ---- */

static void test_D8_without_descriptors_it_says_so_and_comes_back_by_itself(void)
{
    enum { COUNT = 300 };
    struct testserver_options o = {.descriptors = 100};
    static int fds[COUNT];
    int served = 0, refused = 0, open = 0;
    start(o);
    fds[0] = open_one();
    TEST_CHECK(say_text(fds[0], ROWS_GOOD) && hear(fds[0]) > 0); /* it runs */
    kill(server.pid,
         SIGSTOP); /* so that it finds all of them at once: who has been idle for a while makes room */
    for (int i = 1; i < COUNT; i++) {
        fds[i] = open_one();
        (void)say_text(fds[i], ROWS_GOOD);
    }
    kill(server.pid, SIGCONT);
    for (int i = 1; i < COUNT; i++) {
        bool said = hear(fds[i]) > 12;
        served += said && memcmp(heard + 9, "200", 3) == 0;
        refused += said && memcmp(heard + 9, "503", 3) == 0;
    }
    TEST_CHECK_(served > 20, "%d are served", served);
    TEST_CHECK_(refused > 0, "%d are told to come back", refused);
    TEST_CHECK_(served + refused == COUNT - 1, "%d and %d have an answer", served, refused);
    for (int i = 0; i < COUNT; i++)
        open += hear_now(fds[i]) < 0 && errno == EAGAIN;
    TEST_CHECK_(open > 20 && open < 100, "%d are open", open);
    uint64_t cpu = testserver_cpu_ns(&server), began = env_real()->now(env_real());
    (void)testserver_poll(NULL, 0, 500); /* what is measured: that nothing spins meanwhile */
    uint64_t spent = testserver_cpu_ns(&server) - cpu, took = env_real()->now(env_real()) - began;
    if (!SANITIZED)
        TEST_CHECK_(spent < took / 4, "%llu of %llu ns", (unsigned long long)spent, (unsigned long long)took);
    for (int i = 0; i < COUNT; i++)
        close(fds[i]);
    for (int status = 0; status != 200;) {
        int fd = open_one();
        (void)say_text(fd, "GET /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        status = hear_all(fd) ? atoi(heard + 9) : 0;
        close(fd);
    }
    stop();
}

static void test_D8_who_has_been_idle_for_longest_makes_room(void)
{
    struct testserver_options o = {.connections = 3};
    int fds[3], fd = -1;
    start(o);
    for (int i = 0; i < 3; i++) {
        fds[i] = open_one();
        TEST_CHECK(say_text(fds[i], ROWS_GOOD) && hear(fds[i]) > 0);
    }
    testserver_advance(&server, 2 * CONNECTION_SHED_MS * NS_PER_MS);
    for (int status = 503; status != 200;) {
        TEST_CHECK(say_text(fds[1], ROWS_GOOD) && hear(fds[1]) > 0); /* not idle for long */
        fd = open_one();
        (void)say_text(fd, ROWS_GOOD);
        status = hear(fd) > 0 ? atoi(heard + 9) : 0;
        if (status != 200)
            close(fd);
    }
    TEST_CHECK_(hear(fds[0]) == 0, "the first one is closed, in order");
    TEST_CHECK(hear_now(fds[1]) < 0 && errno == EAGAIN);
    close(fd);
    for (int i = 0; i < 3; i++)
        close(fds[i]);
    stop();
}

/* Come and go, with a reset, at every point of a request. */
static void test_D8_churn_leaves_nothing_behind(void)
{
    enum { COUNT = SANITIZED ? 500 : 5000 };
    static const char whole[] = "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
                                "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n" ROWS_GOOD;
    struct linger reset = {.l_onoff = 1};
    start(plain); /* one listener: whoever was served knows that it has taken its spare descriptors */
    int last = open_one();
    TEST_CHECK(say_text(last, ROWS_GOOD) && hear(last) > 0);
    size_t before = descriptors_of_server();
    for (int i = 0; i < COUNT; i++) {
        int fd = open_one();
        (void)say(fd, whole, (size_t)i % sizeof whole);
        if (i % 3)
            setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        close(fd);
    }
    await_descriptors(last, before);
    close(last);
    stop();
}

/* A handler that faults costs its own connection, and nobody else anything: the others are idle or halfway. */
static void test_A1_a_handlers_crash_is_its_connections_end(void)
{
    enum { COUNT = 20, CRASHES = 10 };
    struct reply a;
    int fds[COUNT];
    start(plain);
    for (int i = 0; i < COUNT; i++) {
        fds[i] = open_one();
        TEST_CHECK(say_text(fds[i], i % 2 ? "GET /hello HTTP/1.1\r\nHos" : ROWS_GOOD));
        TEST_CHECK(i % 2 || hear(fds[i]) > 0);
    }
    for (int i = 0; i < CRASHES; i++) {
        int fd = open_one();
        TEST_CHECK(say_text(fd, ROWS_GOOD) && hear(fd) > 0); /* it was idle, too */
        TEST_CHECK(say_text(fd, "GET /crash HTTP/1.1\r\nHost: a\r\n\r\n"));
        size_t at = 0;
        TEST_CHECK(hear_all(fd) && next_answer(&at, &a) && a.status == 500 && at == heard_size);
        close(fd);
    }
    for (int i = 0; i < COUNT; i++) {
        size_t at = 0;
        TEST_CHECK(say_text(fds[i], i % 2 ? "t: a\r\nConnection: close\r\n\r\n"
                                          : "GET /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
        TEST_CHECK(hear_all(fds[i]));
        TEST_CHECK(next_answer(&at, &a) && a.status == 200 && at == heard_size);
        close(fds[i]);
    }
    stop_after(CRASHES);
}

TEST_LIST
= {
    {"H2 H3 hostile rows in one piece", test_H2_H3_hostile_rows_in_one_piece},
    {"H2 H3 hostile rows in many pieces", test_H2_H3_hostile_rows_in_many_pieces},
    {"H1 answers come in the order of the requests", test_H1_answers_come_in_the_order_of_the_requests},
    {"H1 H2 H3 random pipelines", test_H1_H2_H3_random_pipelines},
    {"H1 a flood of requests is served", test_H1_a_flood_of_requests_is_served},
    {"slow clients are cut off", test_slow_clients_are_cut_off},
    {"trickling buys no time", test_trickling_buys_no_time},
    {"a client that takes nothing is cut off", test_a_client_that_takes_nothing_is_cut_off},
    {"a connection has so many requests", test_a_connection_has_so_many_requests},
    {"an address has so many connections", test_an_address_has_so_many_connections},
    {"bodies end at their limit", test_bodies_end_at_their_limit},
    {"H4 memory of unfinished requests is bounded and comes back",
     test_H4_memory_of_unfinished_requests_is_bounded_and_comes_back},
    {"H5 no spelling of a path gets around its authorisation",
     test_H5_no_spelling_of_a_path_gets_around_its_authorisation},
    {"D8 without descriptors it says so and comes back by itself",
     test_D8_without_descriptors_it_says_so_and_comes_back_by_itself},
    {"D8 who has been idle for longest makes room", test_D8_who_has_been_idle_for_longest_makes_room},
    {"D8 churn leaves nothing behind", test_D8_churn_leaves_nothing_behind},
    {"A1 a handler's crash is its connection's end", test_A1_a_handlers_crash_is_its_connections_end},
    {NULL, NULL},
};
