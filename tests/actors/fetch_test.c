/* Fetches from an origin in this process, over real sockets. */
#include "acutest.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "actors/curl.h"
#include "actors/fetch.h"
#include "tests/support/origin.h"
#include "tests/support/real.h"

static uint16_t port;
static char room[FETCH_BODY_MAX];
static struct fetch_answer got;

/* gzip of a million zeros */
static const unsigned char bomb[] = {
    0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xed, 0xc1, 0x01, 0x0d,
    0x00, 0x00, 0x00, 0xc2, 0xa0, 0xf7, 0x4f, 0x6d, 0x0e, 0x37, 0xa0, 0x00, 0x00, 0x00,
};

static bool fill(const struct origin_request *q, size_t size)
{
    char bytes[4096];
    memset(bytes, 'x', sizeof(bytes));
    for (size_t sent = 0; sent < size; sent += sizeof(bytes))
        if (!origin_write(q, bytes, size - sent < sizeof(bytes) ? size - sent : sizeof(bytes)))
            return false;
    return true;
}

static bool serve_echo(const struct origin_request *q)
{
    char head[128];
    size_t head_size = (size_t)(q->body - q->head);
    snprintf(head, sizeof(head), "HTTP/1.1 201 Created\r\nContent-Length: %zu\r\n\r\n",
             head_size + q->body_size);
    return origin_text(q, head) && origin_write(q, q->head, head_size) &&
           origin_write(q, q->body, q->body_size);
}

static bool serve_bomb(const struct origin_request *q)
{
    char head[128];
    snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %zu\r\n\r\n",
             sizeof(bomb));
    return origin_text(q, head) && origin_write(q, bomb, sizeof(bomb));
}

static bool serve_headers(const struct origin_request *q)
{
    bool good = origin_text(q, "HTTP/1.1 200 OK\r\n");
    for (unsigned i = 0; good && i < 2000; i++)
        good = origin_text(q, "X-More: of the same\r\n");
    return good && origin_text(q, "Content-Length: 0\r\n\r\n");
}

static atomic_uint left; /* requests that were left without an answer, and the one that wasn't */

/* Closes the connection the first time, and answers the second time. */
static bool serve_leave(const struct origin_request *q)
{
    char body[2] = {0};
    if (q->body_size == 1)
        body[0] = q->body[0];
    if (++left == 1 || body[0] != 'b')
        return false;
    return origin_text(q, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
}

static bool serve(const struct origin_request *q)
{
    if (origin_path(q, "/leave"))
        return serve_leave(q);
    if (origin_path(q, "/ok"))
        return origin_text(q, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
    if (origin_path(q, "/chunked"))
        return origin_text(
            q, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n");
    if (origin_path(q, "/echo"))
        return serve_echo(q);
    if (origin_path(q, "/empty"))
        return origin_text(q, "HTTP/1.1 204 No Content\r\n\r\n");
    if (origin_path(q, "/busy"))
        return origin_text(q, "HTTP/1.1 503 Busy\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n");
    if (origin_path(q, "/away"))
        return origin_text(q, "HTTP/1.1 302 Found\r\nLocation: /ok\r\nContent-Length: 0\r\n\r\n");
    if (origin_path(q, "/bomb"))
        return serve_bomb(q);
    if (origin_path(q, "/long"))
        return origin_text(q, "HTTP/1.1 200 OK\r\nContent-Length: 50000\r\n\r\n") && fill(q, 50000);
    if (origin_path(q, "/longer"))
        return origin_text(q, "HTTP/1.1 200 OK\r\nContent-Length: 90000\r\n\r\n") && fill(q, 90000);
    if (origin_path(q, "/gone"))
        return origin_text(q, "HTTP/1.1 410 Gone\r\nRetry-After: 7\r\nContent-Length: 20000\r\n\r\n") &&
               fill(q, 20000);
    if (origin_path(q, "/gone-in-chunks"))
        return origin_text(q, "HTTP/1.1 410 Gone\r\nRetry-After: 7\r\n\r\n") && fill(q, 20000) && false;
    if (origin_path(q, "/endless"))
        return origin_text(q, "HTTP/1.1 200 OK\r\n\r\n") && fill(q, SIZE_MAX / 2);
    if (origin_path(q, "/headers"))
        return serve_headers(q);
    if (origin_path(q, "/garbage"))
        return origin_text(q, "NOPE\r\n\r\n") && false;
    if (origin_path(q, "/short"))
        return origin_text(q, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf") && false;
    if (origin_path(q, "/slow")) /* a body that begins and doesn't go on */
        (void)origin_text(q, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
    if (origin_path(q, "/gate8"))
        origin_gate(FETCH_HOST_MAX);
    if (origin_path(q, "/gate9"))
        origin_gate(FETCH_HOST_MAX + 1);
    if (origin_path(q, "/gate64"))
        origin_gate(FETCH_MAX);
    if (strncmp(q->path, "/gate", 5) == 0)
        return origin_text(q, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    origin_until_closed(q); /* "/hang" */
    return false;
}

/* ---- in the body ---- */

static actor_pid start(void)
{
    struct start_result result = {0};
    const struct spawn_options o = {.class = &fetch_class, .name = FETCH_NAME, .scheduler = SPAWN_ON(1)};
    EXPECT(actor_start(&o, &result, DEADLINE_NONE) == OK);
    return result.pid;
}

static const char *url_of(const char *path)
{
    static char url[256];
    snprintf(url, sizeof(url), "http://127.0.0.1:%u%s", port, path);
    return url;
}

/* The others go on meanwhile. */
static void until_requests(uint32_t count)
{
    while (origin_counts().requests < count)
        actor_yield();
}

static void until_closed(void)
{
    while (origin_counts().open > 0)
        actor_yield();
}

static enum error get_from(const char *url, uint32_t answer_max, uint64_t deadline)
{
    const struct fetch_request request = {
        .method = "GET", .url = url, .answer_max = answer_max, .any_address = true};
    memset(room, 0, sizeof(room));
    return fetch(&request, &got, room, sizeof(room), deadline);
}

static enum error get(const char *path)
{
    return get_from(url_of(path), FETCH_BODY_MAX, DEADLINE_NONE);
}

static void with_origin(void (*test)(void))
{
    port = origin_start(serve);
    test();
    origin_stop();
}

/* ORIGIN(name) { ... }: a body with an origin and a fetch actor, which is gone at the end. */
#define ORIGIN(name)                \
    static void name##_inner(void); \
    REAL(name##_real)               \
    {                               \
        actor_pid pid = start();    \
        name##_inner();             \
        actor_kill(pid);            \
    }                               \
    static void name(void)          \
    {                               \
        with_origin(name##_real);   \
    }                               \
    static void name##_inner(void)

ORIGIN(test_an_answer_comes_whole)
{
    EXPECT(get("/ok") == OK && got.status == 200 && got.size == 5 && memcmp(room, "hello", 5) == 0);
    EXPECT(get("/chunked") == OK && got.status == 200 && got.size == 5 && memcmp(room, "hello", 5) == 0);
    EXPECT(get("/empty") == OK && got.status == 204 && got.size == 0);
    EXPECT(get("/long") == OK && got.size == 50000 && room[49999] == 'x');
    EXPECT(got.error == OK && got.retry_after_s == 0);
}

ORIGIN(test_a_request_goes_out_as_asked)
{
    static char body[50000];
    memset(body, 'b', sizeof(body));
    const struct fetch_request request = {.method = "POST",
                                          .url = url_of("/echo"),
                                          .headers = "Content-Type: application/json\nX-One: two: three\n",
                                          .body = body,
                                          .body_size = sizeof(body),
                                          .answer_max = FETCH_BODY_MAX,
                                          .any_address = true};
    EXPECT(fetch(&request, &got, room, sizeof(room), DEADLINE_NONE) == OK && got.status == 201);
    EXPECT(got.size > sizeof(body));
    room[got.size - sizeof(body) - 1] = 0; /* the head */
    EXPECT(strncmp(room, "POST /echo HTTP/1.1\r\n", 21) == 0);
    EXPECT(strstr(room, "Content-Type: application/json\r\n") && strstr(room, "X-One: two: three\r\n"));
    EXPECT(strstr(room, "Content-Length: 50000\r\n") && !strstr(room, "Expect") &&
           !strstr(room, "Accept-Encoding"));
    EXPECT(memcmp(room + got.size - sizeof(body), body, sizeof(body)) == 0);
}

ORIGIN(test_other_methods_and_no_body)
{
    struct fetch_request request = {
        .method = "DELETE", .url = url_of("/echo"), .answer_max = FETCH_BODY_MAX, .any_address = true};
    EXPECT(fetch(&request, &got, room, sizeof(room), DEADLINE_NONE) == OK &&
           strncmp(room, "DELETE /echo ", 13) == 0);
    request.method = "POST";
    EXPECT(fetch(&request, &got, room, sizeof(room), DEADLINE_NONE) == OK);
    room[got.size] = 0;
    EXPECT(strncmp(room, "POST /echo ", 11) == 0 && strstr(room, "Content-Length: 0\r\n"));
    request.method = "HEAD";
    request.url = url_of("/empty");
    EXPECT(fetch(&request, &got, room, sizeof(room), DEADLINE_NONE) == OK && got.status == 204);
}

ORIGIN(test_a_redirect_is_not_followed)
{
    EXPECT(get("/away") == OK && got.status == 302);
    EXPECT(origin_counts().requests == 1);
}

ORIGIN(test_a_retry_after_is_told)
{
    EXPECT(get("/busy") == OK && got.status == 503 && got.retry_after_s == 7);
}

ORIGIN(test_nothing_is_decompressed)
{
    EXPECT(get("/bomb") == OK && got.size == sizeof(bomb) && memcmp(room, bomb, sizeof(bomb)) == 0);
}

ORIGIN(test_an_answer_longer_than_asked_for_has_failed)
{
    EXPECT(get_from(url_of("/ok"), 5, DEADLINE_NONE) == OK && got.size == 5);
    EXPECT(get_from(url_of("/ok"), 4, DEADLINE_NONE) == ERR_LIMIT && got.status == 200 && got.size == 0);
    EXPECT(get_from(url_of("/chunked"), 4, DEADLINE_NONE) == ERR_LIMIT && got.why[0]);
    EXPECT(get("/longer") == ERR_LIMIT);
    EXPECT(get("/endless") == ERR_LIMIT);
    EXPECT(get("/headers") == ERR_LIMIT && strcmp(got.why, "too many headers") == 0);
    EXPECT(get("/ok") == OK); /* and the next one is well */
}

ORIGIN(test_of_an_answer_that_is_too_long_its_head_is_told)
{
    static const char *const paths[] = {"/gone", "/gone-in-chunks"};
    for (int i = 0; i < 2; i++) {
        EXPECT(get_from(url_of(paths[i]), 16000, DEADLINE_NONE) == ERR_LIMIT && got.size == 0);
        EXPECT(got.status == 410 && got.retry_after_s == 7);
    }
}

ORIGIN(test_broken_answers_have_failed)
{
    EXPECT(get("/garbage") == ERR_SYSTEM && got.why[0]);
    EXPECT(get("/short") == ERR_SYSTEM && got.why[0] && got.size == 0);
}

ORIGIN(test_a_deadline_is_of_the_whole)
{
    uint64_t deadline = actor_deadline_ms(30);
    EXPECT(get_from(url_of("/slow"), FETCH_BODY_MAX, deadline) == ERR_TIMEOUT && actor_now() >= deadline);
    deadline = actor_deadline_ms(30);
    EXPECT(get_from(url_of("/hang"), FETCH_BODY_MAX, deadline) == ERR_TIMEOUT && actor_now() >= deadline);
    EXPECT(get_from(url_of("/ok"), FETCH_BODY_MAX, 0) == ERR_TIMEOUT); /* passed already */
    until_closed();                                                    /* what was given up was closed */
    EXPECT(get("/ok") == OK);
}

ORIGIN(test_nobody_listens)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    char url[64];
    EXPECT(bind(fd, (struct sockaddr *)(void *)&address, size) == 0);
    EXPECT(getsockname(fd, (struct sockaddr *)(void *)&address, &size) == 0);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/", ntohs(address.sin_port));
    EXPECT(get_from(url, 100, DEADLINE_NONE) == ERR_SYSTEM && got.why[0] && got.status == 0);
    close(fd);
}

/* ---- addresses ---- */

ORIGIN(test_W3_closed_addresses_are_not_connected_to)
{
    static const char *const hosts[] = {
        "127.0.0.1",       "127.1",         "2130706433",
        "0x7f000001",      "017700000001",  "0",
        "0.0.0.0",         "localhost",     "LOCALHOST",
        "[::1]",           "[::]",          "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]",
        "[fe80::1]",       "[fc00::1]",     "10.0.0.1",
        "172.16.0.1",      "192.168.0.1",   "169.254.169.254",
        "100.64.0.1",      "224.0.0.1",     "255.255.255.255",
    };
    for (size_t i = 0; i < sizeof(hosts) / sizeof(*hosts); i++) {
        char url[128];
        snprintf(url, sizeof(url), "http://%s:%u/ok", hosts[i], port);
        const struct fetch_request request = {.method = "GET", .url = url, .answer_max = 100};
        enum error e = fetch(&request, &got, room, sizeof(room), DEADLINE_NONE);
        EXPECT(e == ERR_FORBIDDEN);
        if (e != ERR_FORBIDDEN)
            printf("%s: %s, %s\n", url, error_name(e), got.why);
    }
    char url[128]; /* a name with the root's dot is the same name, or none */
    snprintf(url, sizeof(url), "http://localhost.:%u/ok", port);
    const struct fetch_request request = {.method = "GET", .url = url, .answer_max = 100};
    enum error e = fetch(&request, &got, room, sizeof(room), DEADLINE_NONE);
    EXPECT(e == ERR_FORBIDDEN || e == ERR_SYSTEM);
    EXPECT(origin_counts().connections == 0);
}

ORIGIN(test_W3_a_connection_that_is_there_is_no_way_round)
{
    const struct fetch_request request = {.method = "GET", .url = url_of("/ok"), .answer_max = 100};
    EXPECT(get("/ok") == OK && get("/ok") == OK);
    EXPECT(origin_counts().connections == 1); /* kept, and used again */
    EXPECT(fetch(&request, &got, room, sizeof(room), DEADLINE_NONE) == ERR_FORBIDDEN);
    EXPECT(origin_counts().requests == 2);
}

ORIGIN(test_W3_urls_that_are_refused)
{
    static const char *const urls[] = {
        "ftp://example.org/", "file:///etc/passwd", "gopher://127.0.0.1/", "http://", "http:///a", "x",
    };
    for (size_t i = 0; i < sizeof(urls) / sizeof(*urls); i++)
        EXPECT(get_from(urls[i], 100, DEADLINE_NONE) == ERR_INVALID || got.error == ERR_SYSTEM);
    EXPECT(get_from("ftp://example.org/", 100, DEADLINE_NONE) == ERR_INVALID);
    EXPECT(get_from("http://user:secret@127.0.0.1/", 100, DEADLINE_NONE) == ERR_INVALID);
    EXPECT(get_from("http://127.0.0.1/a b", 100, DEADLINE_NONE) == ERR_INVALID);
    EXPECT(get_from("http://127.0.0.1/\r\nX: y", 100, DEADLINE_NONE) == ERR_INVALID);
    EXPECT(get_from("", 100, DEADLINE_NONE) == ERR_INVALID);
    EXPECT(get_from("http://nowhere.invalid/", 100, DEADLINE_NONE) == ERR_SYSTEM);
    EXPECT(origin_counts().connections == 0);
}

/* ---- what can't be asked for ---- */

ORIGIN(test_requests_that_cannot_be_meant)
{
    static char large[FETCH_REQUEST_MAX];
    static char long_url[FETCH_URL_MAX + 1], long_headers[FETCH_HEADERS_MAX + 1];
    memset(long_url, 'a', FETCH_URL_MAX);
    memcpy(long_url, "http://a/", 9);
    memset(long_headers, 'b', FETCH_HEADERS_MAX);
    long_headers[1] = ':';
    long_headers[FETCH_HEADERS_MAX - 1] = '\n';
    const struct fetch_request good = {
        .method = "GET", .url = url_of("/ok"), .answer_max = 100, .any_address = true};
    struct fetch_request bad[] = {good, good, good, good, good, good, good, good, good, good};
    bad[0].method = "get";
    bad[1].method = "";
    bad[2].method = "GET /ok HTTP/1.1\r\nX:";
    bad[3].url = long_url;
    bad[4].headers = long_headers;
    bad[5].headers = "no line end: x";
    bad[6].headers = "no colon\n";
    bad[7].headers = "X: a\r\nY: b\n";
    bad[8].body = large;
    bad[8].body_size = sizeof(large);
    bad[9].answer_max = FETCH_BODY_MAX + 1;
    static char room_enough[FETCH_BODY_MAX + 1];
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        EXPECT(fetch(&bad[i], &got, room_enough, sizeof(room_enough), DEADLINE_NONE) == ERR_INVALID &&
               got.why[0]);
    EXPECT(fetch(&good, &got, room, sizeof(room), DEADLINE_NONE) == OK);
    EXPECT(origin_counts().requests == 1);
}

/* ---- many at once ---- */

static bool is_done(const struct message *m, void *arg)
{
    (void)arg;
    return m->type == FETCH_DONE;
}

static void begin(const char *url, uint64_t deadline)
{
    const struct fetch_request request = {
        .method = "GET", .url = url, .answer_max = 100, .any_address = true};
    uint64_t ref;
    EXPECT(fetch_begin(&request, &ref, deadline) == OK);
}

/* The next that is done. */
static struct fetch_answer done(void)
{
    struct fetch_answer a;
    struct message *m = actor_receive(is_done, NULL, DEADLINE_NONE);
    memcpy(&a, m->payload, sizeof(a));
    EXPECT(m->size == sizeof(a) + a.size);
    message_free(m);
    return a;
}

ORIGIN(test_one_host_gets_its_share_and_no_more)
{
    for (uint32_t i = 0; i < 3 * FETCH_HOST_MAX; i++)
        begin(url_of("/gate8"), DEADLINE_NONE); /* each passes with seven others */
    for (uint32_t i = 0; i < 3 * FETCH_HOST_MAX; i++)
        EXPECT(done().status == 200);
    EXPECT(origin_counts().at_gate_max == FETCH_HOST_MAX);
    EXPECT(origin_counts().connections == FETCH_HOST_MAX); /* used three times each */
}

ORIGIN(test_many_hosts_together_get_no_more_than_there_is)
{
    uint32_t hosts = 2 * FETCH_MAX / FETCH_HOST_MAX;
    for (uint32_t i = 0; i < 2 * FETCH_MAX; i++) {
        char url[64];
        snprintf(url, sizeof(url), "http://127.0.0.%u:%u/gate64", 1 + i % hosts, port);
        begin(url, DEADLINE_NONE);
    }
    for (uint32_t i = 0; i < 2 * FETCH_MAX; i++)
        EXPECT(done().status == 200);
    EXPECT(origin_counts().at_gate_max == FETCH_MAX);
}

ORIGIN(test_a_host_that_hangs_does_not_stop_the_others)
{
    for (uint32_t i = 0; i < FETCH_HOST_MAX + 5; i++)
        begin(url_of("/hang"), DEADLINE_NONE);
    until_requests(FETCH_HOST_MAX);
    char url[64];
    snprintf(url, sizeof(url), "http://127.0.0.2:%u/ok", port);
    EXPECT(get_from(url, 100, DEADLINE_NONE) == OK && got.status == 200);
}

ORIGIN(test_who_waits_too_long_is_told)
{
    for (uint32_t i = 0; i < FETCH_HOST_MAX; i++)
        begin(url_of("/hang"), DEADLINE_NONE);
    until_requests(FETCH_HOST_MAX);
    begin(url_of("/ok"), actor_deadline_ms(10));
    begin(url_of("/ok"), 0);
    struct fetch_answer a = done(), b = done();
    EXPECT(a.error == ERR_SHED && b.error == ERR_SHED && a.ref != b.ref);
    EXPECT(strcmp(a.why, "its turn did not come by the deadline") == 0);
}

static void begin_at(const char *url, uint64_t deadline, uint64_t time_ns)
{
    const struct fetch_request request = {
        .method = "GET", .url = url, .answer_max = 100, .any_address = true, .time_ns = time_ns};
    uint64_t ref;
    EXPECT(fetch_begin(&request, &ref, deadline) == OK);
}

/* Webhooks have times of their own, keys and traces don't. */
ORIGIN(test_many_that_hang_do_not_stop_the_servers_own)
{
    char url[64];
    for (uint32_t i = 0; i < 4 * FETCH_MAX; i++) {
        snprintf(url, sizeof(url), "http://127.0.0.%u:%u/hang", 2 + i / FETCH_HOST_MAX, port);
        begin_at(url, DEADLINE_NONE, 600 * NS_PER_S);
    }
    until_requests(FETCH_TIMED_MAX);
    EXPECT(get("/ok") == OK && got.status == 200 && origin_counts().requests == FETCH_TIMED_MAX + 1);
}

static bool is_first(const void *about)
{
    return *(const uint8_t *)about == 1;
}

ORIGIN(test_what_is_not_wanted_any_more_is_not_sent)
{
    struct fetch_request request = {.method = "GET",
                                    .url = url_of("/ok"),
                                    .answer_max = 100,
                                    .any_address = true,
                                    .wanted = is_first,
                                    .about = {2}};
    EXPECT(fetch(&request, &got, room, sizeof(room), DEADLINE_NONE) == ERR_IGNORED && got.turn == 0);
    EXPECT(origin_counts().requests == 0);
    request.about[0] = 1;
    EXPECT(fetch(&request, &got, room, sizeof(room), DEADLINE_NONE) == OK && got.status == 200);
}

static enum error post_leave(const char *url)
{
    const struct fetch_request request = {
        .method = "POST", .url = url, .body = "b", .body_size = 1, .answer_max = 100, .any_address = true};
    left = 0;
    return fetch(&request, &got, room, sizeof(room), DEADLINE_NONE);
}

/* What the head of actors/fetch.h says of connections that are kept. */
ORIGIN(test_a_kept_connection_that_is_closed_is_no_failure)
{
    char url[64];
    EXPECT(get("/ok") == OK && origin_counts().connections == 1);
    EXPECT(post_leave(url_of("/leave")) == OK && got.status == 200 && left == 2);
    EXPECT(origin_counts().connections == 2 && origin_counts().requests == 3);
    snprintf(url, sizeof(url), "http://127.0.0.2:%u/leave", port);
    EXPECT(post_leave(url) == ERR_SYSTEM && left == 1); /* a new one: it may have been read */
}

static void begin_for(const char *path, uint64_t deadline, uint64_t time_ns)
{
    begin_at(url_of(path), deadline, time_ns);
}

ORIGIN(test_time_runs_from_ones_turn_on)
{
    char url[64];
    for (uint32_t i = 0; i < FETCH_HOST_MAX; i++)
        begin(url_of("/gate9"), DEADLINE_NONE);
    until_requests(FETCH_HOST_MAX);
    begin_for("/ok", DEADLINE_NONE, 600 * NS_PER_S);
    begin_for("/hang", actor_deadline_ms(600000), 1); /* less than it must wait */
    begin_for("/ok", actor_deadline_ms(10), 600 * NS_PER_S);
    struct fetch_answer a = done();
    EXPECT(a.error == ERR_SHED && a.turn == 0);
    uint64_t opened = actor_now();
    snprintf(url, sizeof(url), "http://127.0.0.2:%u/gate9", port);
    begin(url, DEADLINE_NONE);
    uint32_t before = 0, after = 0, late = 0;
    for (uint32_t i = 0; i < FETCH_HOST_MAX + 3; i++) {
        a = done();
        EXPECT(a.turn != 0);
        before += a.status == 200 && a.turn < opened;
        after += a.status == 200 && a.turn >= opened;
        late += a.error == ERR_TIMEOUT && a.turn >= opened;
    }
    EXPECT(before == FETCH_HOST_MAX && after == 2 && late == 1);
}

ORIGIN(test_a_full_queue_refuses)
{
    for (uint32_t i = 0; i < FETCH_HOST_MAX + FETCH_QUEUE_MAX; i++)
        begin(url_of("/hang"), DEADLINE_NONE);
    EXPECT(get("/ok") == ERR_SHED);
}

/* ---- endings ---- */

static uint32_t descriptors(void)
{
    uint32_t count = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

static bool is_down(const struct message *m, void *arg)
{
    (void)arg;
    return m->type == MESSAGE_DOWN;
}

/* Waits for the end of the one that is monitored. */
static bool gone(void)
{
    struct message *m = actor_receive(is_down, NULL, DEADLINE_NONE);
    uint8_t kind = ((const struct message_down *)(const void *)m->payload)->reason.kind;
    message_free(m);
    return kind == REASON_KILLED || kind == REASON_NORMAL;
}

/* A resolver's thread is left alone, and what comes after is well. */
ORIGIN(test_a_kill_while_a_name_is_resolved)
{
    begin("http://nowhere.invalid/", DEADLINE_NONE);
    begin("http://nowhere.invalid/", 0);
    EXPECT(done().error == ERR_TIMEOUT);
    actor_pid pid = actor_whereis(FETCH_NAME);
    uint64_t ref = actor_monitor(pid, 0);
    actor_kill(pid);
    EXPECT(ref && gone());
    EXPECT(start() != 0 && get("/ok") == OK);
    actor_kill(actor_whereis(FETCH_NAME));
}

REAL(test_a_kill_in_the_middle_leaves_nothing_real)
{
    uint32_t before = 0;
    for (uint32_t round = 0; round < 3; round++) {
        actor_pid pid = start();
        uint32_t requests = origin_counts().requests;
        for (uint32_t i = 0; i < 2 * FETCH_HOST_MAX; i++)
            begin(url_of(i % 2 ? "/hang" : "/slow"), DEADLINE_NONE);
        until_requests(requests + FETCH_HOST_MAX);
        uint64_t ref = actor_monitor(pid, 0);
        actor_kill(pid);
        EXPECT(ref && gone());
        until_closed();
        if (round == 1)
            before = descriptors();
    }
    EXPECT(descriptors() == before);
    EXPECT(get("/ok") == ERR_NOPROC);
    const struct fetch_request request = {.method = "GET", .url = url_of("/ok"), .answer_max = 100};
    uint64_t ref;
    EXPECT(fetch_begin(&request, &ref, DEADLINE_NONE) == ERR_NOPROC);
}

static void test_a_kill_in_the_middle_leaves_nothing(void)
{
    with_origin(test_a_kill_in_the_middle_leaves_nothing_real);
}

static enum actor_step asker_init(void *state, const void *args, size_t size)
{
    (void)state;
    (void)args;
    (void)size;
    return ACTOR_PROCEED;
}

static enum actor_step asker_proceed(void *state)
{
    (void)state;
    EXPECT(get("/hang") == ERR_DOWN);
    return ACTOR_STOP;
}

static enum actor_step asker_handle(void *state, struct message *m)
{
    (void)state;
    (void)m;
    return ACTOR_CONTINUE;
}

static const struct actor_class asker_class = {.name = "asker",
                                               .init = asker_init,
                                               .proceed = asker_proceed,
                                               .handle = asker_handle,
                                               .stack_size = 256u << 10};

ORIGIN(test_who_waits_learns_of_the_end)
{
    actor_pid asker;
    EXPECT(actor_spawn(&(struct spawn_options){.class = &asker_class}, &asker) == OK);
    uint64_t ref = actor_monitor(asker, 0);
    until_requests(1);
    actor_kill(actor_whereis(FETCH_NAME));
    EXPECT(ref && gone());
}

static bool libcurl_in_memory(void)
{
    return dlopen(CURL_FILE, RTLD_LAZY | RTLD_NOLOAD) != NULL;
}

ORIGIN(test_libcurl_is_loaded_by_the_first_fetch)
{
    EXPECT(!libcurl_in_memory());
    EXPECT(get("/ok") == OK && got.status == 200);
    EXPECT(libcurl_in_memory());
}

REAL(test_without_libcurl_a_fetch_is_answered)
{
    static const char library[] = "libnothere.so.4";
    struct start_result result = {0};
    EXPECT(actor_start(
               &(struct spawn_options){
                   .class = &fetch_class, .name = FETCH_NAME, .args = library, .args_size = sizeof(library)},
               &result, DEADLINE_NONE) == OK);
    for (int i = 0; i < 3; i++) {
        EXPECT(get_from("http://127.0.0.1:1/", 100, DEADLINE_NONE) == ERR_UNAVAILABLE);
        EXPECT(got.error == ERR_UNAVAILABLE && got.status == 0 &&
               strncmp(got.why, "libcurl can't be loaded: libnothere.so.4", 40) == 0);
    }
    EXPECT(actor_whereis(FETCH_NAME) == result.pid);
    actor_kill(result.pid);
}

/* ---- TLS: a receiver that makes new keys, which any client of ours may have ---- */

enum { KEYS = 500 };
static char authority[] = "/tmp/coppice-fetch-XXXXXX";
static int listening;
static atomic_uint acts; /* how often libcurl was told that something has happened */
static struct curl real;

static SSL_CTX *make_identity(void)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *x = X509_new();
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    FILE *file = fdopen(mkstemp(authority), "w");
    ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
    X509_gmtime_adj(X509_getm_notBefore(x), -3600);
    X509_gmtime_adj(X509_getm_notAfter(x), 3600);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC,
                               (const unsigned char *)"127.0.0.1", -1, -1, 0);
    X509_set_issuer_name(x, X509_get_subject_name(x));
    X509_set_pubkey(x, key);
    TEST_ASSERT(X509_sign(x, key, EVP_sha256()) > 0 && file && PEM_write_X509(file, x) &&
                SSL_CTX_use_certificate(context, x) == 1 && SSL_CTX_use_PrivateKey(context, key) == 1);
    fclose(file);
    X509_free(x);
    EVP_PKEY_free(key);
    return context;
}

/* One request is answered: with new keys in front, in one piece. */
static void *answer_with_keys(void *context)
{
    static const char text[] = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    int fd = accept(listening, NULL, NULL);
    SSL *tls = SSL_new(context);
    BIO *out = BIO_new(BIO_s_mem());
    char *bytes, heard[4096];
    SSL_set_fd(tls, fd);
    bool good = SSL_accept(tls) == 1 && SSL_read(tls, heard, sizeof(heard)) > 0;
    SSL_set0_wbio(tls, out);
    for (int i = 0; good && i < KEYS; i++)
        good = SSL_key_update(tls, SSL_KEY_UPDATE_NOT_REQUESTED) == 1 && SSL_do_handshake(tls) == 1;
    good = good && SSL_write(tls, text, sizeof(text) - 1) > 0;
    long size = BIO_get_mem_data(out, &bytes);
    EXPECT(good && send(fd, bytes, (size_t)size, MSG_NOSIGNAL) == size);
    (void)!recv(fd, heard, sizeof(heard), 0); /* until the client closes */
    SSL_free(tls);
    close(fd);
    return NULL;
}

static CURL *init_trusting(void)
{
    CURL *easy = real.easy_init();
    real.easy_setopt(easy, CURLOPT_CAINFO, authority);
    return easy;
}

static CURLMcode act_counted(CURLM *multi, curl_socket_t fd, int mask, int *running)
{
    acts++;
    return real.multi_socket_action(multi, fd, mask, running);
}

REAL(test_TLS_others_go_between_new_keys_real)
{
    char url[64], why[200];
    actor_pid pid = start();
    EXPECT(curl_load(CURL_FILE, why, sizeof(why)));
    real = curl;
    curl.easy_init = init_trusting;
    curl.multi_socket_action = act_counted;
    snprintf(url, sizeof(url), "https://127.0.0.1:%u/", port);
    EXPECT(get_from(url, 100, DEADLINE_NONE) == OK && got.status == 200 && memcmp(room, "hello", 5) == 0);
    EXPECT(acts > KEYS || !curl.ssl_ctx_ctrl);
    actor_kill(pid);
}

/* Each act is a message: others have their turns, and deadlines come, between any two. */
static void test_TLS_others_go_between_new_keys(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    SSL_CTX *context = make_identity();
    pthread_t thread;
    listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    TEST_ASSERT(bind(listening, (struct sockaddr *)&address, size) == 0 && listen(listening, 1) == 0 &&
                getsockname(listening, (struct sockaddr *)&address, &size) == 0);
    port = ntohs(address.sin_port);
    TEST_ASSERT(pthread_create(&thread, NULL, answer_with_keys, context) == 0);
    test_TLS_others_go_between_new_keys_real();
    pthread_join(thread, NULL);
    SSL_CTX_free(context);
    close(listening);
    unlink(authority);
}

TEST_LIST
= {
    {"an answer comes whole", test_an_answer_comes_whole},
    {"a request goes out as asked", test_a_request_goes_out_as_asked},
    {"other methods, and no body", test_other_methods_and_no_body},
    {"a redirect is not followed", test_a_redirect_is_not_followed},
    {"a Retry-After is told", test_a_retry_after_is_told},
    {"nothing is decompressed", test_nothing_is_decompressed},
    {"an answer longer than asked for has failed", test_an_answer_longer_than_asked_for_has_failed},
    {"of an answer that is too long its head is told", test_of_an_answer_that_is_too_long_its_head_is_told},
    {"broken answers have failed", test_broken_answers_have_failed},
    {"a deadline is of the whole", test_a_deadline_is_of_the_whole},
    {"nobody listens", test_nobody_listens},
    {"W3: closed addresses are not connected to", test_W3_closed_addresses_are_not_connected_to},
    {"W3: a connection that is there is no way round", test_W3_a_connection_that_is_there_is_no_way_round},
    {"W3: URLs that are refused", test_W3_urls_that_are_refused},
    {"requests that cannot be meant", test_requests_that_cannot_be_meant},
    {"one host gets its share and no more", test_one_host_gets_its_share_and_no_more},
    {"many hosts together get no more than there is", test_many_hosts_together_get_no_more_than_there_is},
    {"a host that hangs does not stop the others", test_a_host_that_hangs_does_not_stop_the_others},
    {"what is not wanted any more is not sent", test_what_is_not_wanted_any_more_is_not_sent},
    {"many that hang do not stop the server's own", test_many_that_hang_do_not_stop_the_servers_own},
    {"a kept connection that is closed is no failure", test_a_kept_connection_that_is_closed_is_no_failure},
    {"who waits too long is told", test_who_waits_too_long_is_told},
    {"time runs from one's turn on", test_time_runs_from_ones_turn_on},
    {"a full queue refuses", test_a_full_queue_refuses},
    {"a kill in the middle leaves nothing", test_a_kill_in_the_middle_leaves_nothing},
    {"a kill while a name is resolved", test_a_kill_while_a_name_is_resolved},
    {"who waits learns of the end", test_who_waits_learns_of_the_end},
    {"TLS: others go between new keys", test_TLS_others_go_between_new_keys},
    {"libcurl is loaded by the first fetch", test_libcurl_is_loaded_by_the_first_fetch},
    {"without libcurl a fetch is answered", test_without_libcurl_a_fetch_is_answered},
    {NULL, NULL},
};
