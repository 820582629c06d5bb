/* The parser on requests as they should be: what it hands out, whole, byte by byte and at the edges of its limits.
 * hostile_test.c has those that are refused, splitter_test.c compares both kinds with a second reader. */
#include "acutest.h"

#include <llhttp.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/feed.h"

/* ---- one request, in pieces of every size ---- */

static struct request seen; /* its views are good while `text` is */
static char copied[FEED_MAX];
static size_t seen_end;

/* What is looked at after the call is copied: views are good during it only. */
static struct span kept(struct span s, size_t *used)
{
    char *at = copied + *used;
    if (!s.bytes)
        return s;
    if (s.size)
        memcpy(at, s.bytes, s.size);
    *used += s.size;
    return span_of(at, s.size);
}

static bool keep(void *context, const struct request *q, size_t end)
{
    size_t used = 0;
    (void)context;
    seen = *q;
    seen_end = end;
    seen.target = kept(q->target, &used);
    seen.body = kept(q->body, &used);
    for (uint16_t i = 0; i < q->fields_count; i++) {
        seen.fields[i].name = kept(q->fields[i].name, &used);
        seen.fields[i].value = kept(q->fields[i].value, &used);
    }
    for (int i = 0; i < HEADER_COUNT; i++)
        seen.known[i] = kept(q->known[i], &used);
    return true;
}

static struct feed feed;

static bool takes_n(const char *text, size_t size)
{
    feed = feed_bytes(text, size, NULL, 0, keep, NULL);
    return feed.requests == 1 && feed.whole;
}

static bool takes(const char *text)
{
    return takes_n(text, strlen(text));
}

static int refuses_n(const char *text, size_t size)
{
    feed = feed_bytes(text, size, NULL, 0, keep, NULL);
    return feed.last == PARSED_REFUSED ? feed.status : 0;
}

static int refuses(const char *text)
{
    return refuses_n(text, strlen(text));
}

static bool is(struct span s, const char *text)
{
    return span_equal(s, span_text(text));
}

/* ---- what it hands out ---- */

static void test_a_request_and_its_views(void)
{
    TEST_CHECK(takes("GET /v1/jobs/a%20b:cancel?x=1&y HTTP/1.1\r\nHost: "
                     "example.org:8080\r\nAccept:*/*\r\nX-A: b c \t\r\n\r\n"));
    TEST_CHECK(seen.method == METHOD_GET && seen.minor == 1 && seen.keep_alive);
    TEST_CHECK(!seen.has_length && !seen.expects_continue && seen.body.size == 0);
    TEST_CHECK(is(seen.target, "/v1/jobs/a%20b:cancel?x=1&y"));
    TEST_CHECK(seen.fields_count == 3);
    TEST_CHECK(is(seen.fields[2].name, "X-A") && is(seen.fields[2].value, "b c"));
    TEST_CHECK(is(seen.known[HEADER_HOST], "example.org:8080") && is(seen.known[HEADER_ACCEPT], "*/*"));
    TEST_CHECK(!seen.known[HEADER_AUTHORIZATION].bytes);
}

static void test_views_point_into_the_bytes_that_were_given(void)
{
    char text[] = "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}";
    struct parser parser;
    struct request q;
    size_t used;
    parser_reset(&parser);
    TEST_CHECK(parser_head(&parser, text, sizeof text - 1, &q, &used) == PARSED_DONE);
    TEST_CHECK(used == sizeof text - 3 && parser.length == 2 && !parser.chunked);
    TEST_CHECK(q.target.bytes == text + 5 && q.known[HEADER_HOST].bytes == strstr(text, "a\r\n"));
}

/* What stands behind the request line is read again only where it is other bytes. */
static void test_a_head_that_says_what_the_one_before_said(void)
{
    static const struct {
        const char *text;
        bool again; /* its fields are the first one's */
    } heads[] = {
        {"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", true},
        {"POST /bcd?e=f HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", true},
        {"\r\nPOST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", true},
        {"POST /a HTTP/1.0\r\nHost: a\r\nContent-Length: 0\r\n\r\n", false},
        {"PUT /a HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", false},
        {"SEARCH /a HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", false},
        {"POST /a HTTP/1.1\r\nHost: b\r\nContent-Length: 0\r\n\r\n", false},
        {"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n", false},
        {"POST /a HTTP/1.1\r\nHost: a\r\n\r\n", false},
        {"POST a HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", false},
        {"POST /\x80 HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", false},
        {"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r", false},
        {"POST /a HTTP/1.1\nHost: a\r\nContent-Length: 0\r\n\r\n", false},
    };
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        struct parser parser = {0}, alone = {0};
        struct parser_before before = {.fields = NULL};
        struct request q, other;
        size_t used, used_alone = 0;
        TEST_CASE(heads[i].text);
        TEST_CHECK(parser_head_after(&parser, &before, heads[0].text, strlen(heads[0].text), &q, &used) ==
                   PARSED_DONE);
        const void *host = q.known[HEADER_HOST].bytes;
        parser_reset(&parser);
        used = 0;
        enum parsed p = parser_head_after(&parser, &before, heads[i].text, strlen(heads[i].text), &q, &used);
        TEST_CHECK(parser_head(&alone, heads[i].text, strlen(heads[i].text), &other, &used_alone) == p);
        TEST_CHECK(used == used_alone && parser.length == alone.length && parser.chunked == alone.chunked);
        TEST_CHECK(heads[i].again ==
                   (p == PARSED_DONE && q.known[HEADER_HOST].bytes == host && before.fields != NULL));
        TEST_CHECK(p != PARSED_DONE || (span_equal(q.target, other.target) && q.method == other.method &&
                                        q.minor == other.minor && q.has_length == other.has_length &&
                                        span_equal(q.known[HEADER_HOST], other.known[HEADER_HOST])));
        TEST_CHECK(p == PARSED_DONE || !before.fields);
    }
}

static void test_methods(void)
{
    static const struct {
        const char *name;
        enum method method;
    } methods[] = {{"GET", METHOD_GET},          {"HEAD", METHOD_HEAD},
                   {"POST", METHOD_POST},        {"PUT", METHOD_PUT},
                   {"DELETE", METHOD_DELETE},    {"PATCH", METHOD_PATCH},
                   {"TRACE", METHOD_TRACE},      {"OPTIONS", METHOD_OPTIONS},
                   {"PROPFIND", METHOD_UNKNOWN}, {"BREW", METHOD_UNKNOWN},
                   {"get", METHOD_UNKNOWN},      {"PRI", METHOD_UNKNOWN},
                   {"PLAY", METHOD_UNKNOWN},     {"!#$%&'*+-.^_`|~0", METHOD_UNKNOWN}};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        char text[128];
        snprintf(text, sizeof text, "%s / HTTP/1.1\r\nHost: a\r\n\r\n", methods[i].name);
        TEST_CHECK_(takes(text) && seen.method == methods[i].method, "%s", methods[i].name);
    }
}

static void test_forms_of_the_target(void)
{
    TEST_CHECK(takes("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n") && is(seen.target, "*"));
    TEST_CHECK(takes("GET http://a/b HTTP/1.1\r\nHost: a\r\n\r\n") && is(seen.target, "http://a/b"));
    TEST_CHECK(takes("GET HTTPS://a/b HTTP/1.1\r\nHost: a\r\n\r\n"));
    TEST_CHECK(takes("GET / HTTP/1.1\r\nHost: [2001:db8::1]:80\r\n\r\n"));
}

static void test_what_a_host_is(void)
{
    static const char *const good[] = {
        "a",       "a:",          "a:0",
        "a:65535", "a:000080",    "a-b.c_",
        "1.2.3.4", "[::]",        "[::ffff:1.2.3.4]",
        "[::1]:",  "[::1]:65535", "[0000:0000:0000:0000:0000:ffff:192.168.158.190]"}; /* none is longer */
    static const char *const bad[] = {"",
                                      ":",
                                      ":80",
                                      "a:65536",
                                      "a:99999999999999999999",
                                      "a:-1",
                                      "a:+1",
                                      "a:1 ",
                                      "a:80:80",
                                      "a b",
                                      "a/",
                                      "a@b",
                                      "[",
                                      "[]",
                                      "[]:80",
                                      "[::1",
                                      "[::1]a",
                                      "[::1]:x",
                                      "[::1]:65536",
                                      "[1.2.3.4]",
                                      "[:::1]",
                                      "[1::2::3]",
                                      "[12345::]",
                                      "[fe80::1%1]",
                                      "[v1.a]",
                                      "[0000:0000:0000:0000:0000:0000:0000:0000:0000]",
                                      "[0000:0000:0000:0000:0000:ffff:192.168.158.1900]",
                                      "[0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000]"};
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
        TEST_CHECK_(parser_is_host(good[i], strlen(good[i])), "%s", good[i]);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        TEST_CHECK_(!parser_is_host(bad[i], strlen(bad[i])), "%s", bad[i]);
    TEST_CHECK(!parser_is_host("[::1\0]", 6));
    TEST_CHECK(!parser_is_host("[::\0]:1", 7));
}

/* ---- llhttp, when it understands something else than the parser: its calls come by here (Makefile) ---- */

static struct {
    void (*differ)(llhttp_t *llhttp);
    uint32_t times; /* that it still does */
    uint32_t calls;
} opinion;

llhttp_errno_t __real_llhttp_execute(llhttp_t *llhttp, const char *bytes, size_t size);
llhttp_errno_t __wrap_llhttp_execute(llhttp_t *llhttp, const char *bytes, size_t size);
llhttp_errno_t __wrap_llhttp_execute(llhttp_t *llhttp, const char *bytes, size_t size)
{
    llhttp_errno_t e = __real_llhttp_execute(llhttp, bytes, size);
    opinion.calls++;
    if (opinion.times > 0) {
        opinion.times--;
        opinion.differ(llhttp);
    }
    return e;
}

static void other_major(llhttp_t *llhttp)
{
    llhttp->http_major = 2;
}

static void other_minor(llhttp_t *llhttp)
{
    llhttp->http_minor ^= 1;
}

static void other_length(llhttp_t *llhttp)
{
    llhttp->content_length++;
}

static void other_coding(llhttp_t *llhttp)
{
    llhttp->flags |= F_CHUNKED;
}

static void other_method(llhttp_t *llhttp)
{
    llhttp->method = HTTP_DELETE;
}

/* What two readers understand in two ways is refused: one of them may stand before us. */
static void test_a_second_opinion_that_differs(void)
{
    static void (*const all[])(llhttp_t *) = {other_major, other_minor, other_length, other_coding};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        opinion.differ = all[i];
        opinion.times = UINT32_MAX;
        TEST_CHECK(!takes("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx"));
        TEST_CHECK(feed.status == 400 && strstr(feed.why, "more than one way"));
        opinion.times = 0;
    }
    TEST_CHECK(takes("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx"));
}

/* Of a head that differs in its first line alone from the one before, that line is read alone; when the two readers differ there, all
 * of it. */
static void test_a_second_opinion_of_the_line_that_differs(void)
{
    static const char first[] = "GET /1 HTTP/1.1\r\nHost: a\r\n\r\n",
                      second[] = "GET /2 HTTP/1.1\r\nHost: a\r\n\r\n";
    static void (*const all[])(llhttp_t *) = {other_major, other_minor, other_method, NULL};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct parser parser;
        struct parser_before before = {.fields = NULL};
        struct request q;
        size_t used;
        parser_reset(&parser);
        TEST_CHECK(parser_head_after(&parser, &before, first, strlen(first), &q, &used) == PARSED_DONE);
        parser_reset(&parser);
        opinion.calls = 0;
        opinion.differ = all[i];
        opinion.times = all[i] != NULL;
        TEST_CHECK(parser_head_after(&parser, &before, second, strlen(second), &q, &used) == PARSED_DONE);
        TEST_CHECK_(opinion.calls == (all[i] ? 2 : 1), "%u readings", opinion.calls);
        TEST_CHECK(q.method == METHOD_GET && is(q.target, "/2") && q.minor == 1 && used == strlen(second));
    }
}

static void test_whether_it_stays(void)
{
    static const struct {
        const char *version, *fields;
        bool stays;
    } rows[] = {
        {"1.1", "", true},
        {"1.1", "Connection: close\r\n", false},
        {"1.1", "Connection: Close\r\n", false},
        {"1.1", "Connection: keep-alive, close\r\n", false},
        {"1.1", "Connection: keep-alive\r\nConnection: close\r\n", false},
        {"1.1", "Connection: closed\r\n", true},
        {"1.1", "Connection: te,x\r\n", true},
        {"1.1", "Connection: te,\t close\t\r\n", false},
        {"1.1", "Connection: te ,close\t,\r\n", false},
        {"1.1", "Connection: , ,\t\r\n", true},
        {"1.1", "Connection: Upgrade\r\nUpgrade: h2c\r\n", true},
        {"1.0", "", false},
        {"1.0", "Connection: keep-alive\r\n", true},
        {"1.0", "Connection: te, Keep-Alive \r\n", true},
        {"1.0", "Connection: keep-alive, close\r\n", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[256];
        snprintf(text, sizeof text, "GET / HTTP/%s\r\nHost: a\r\n%s\r\n", rows[i].version, rows[i].fields);
        TEST_CHECK_(takes(text) && seen.keep_alive == rows[i].stays, "%s %s", rows[i].version,
                    rows[i].fields);
    }
}

static void test_http10_needs_no_host(void)
{
    TEST_CHECK(takes("GET / HTTP/1.0\r\n\r\n") && seen.minor == 0 && !seen.known[HEADER_HOST].bytes);
}

static void test_one_empty_line_is_forgiven(void)
{
    const char *two = "\r\nGET /1 HTTP/1.1\r\nHost: a\r\n\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n";
    feed = feed_bytes(two, strlen(two), NULL, 0, keep, NULL);
    TEST_CHECK(feed.requests == 2 && feed.whole && is(seen.target, "/2"));
    for (size_t cut = 1; cut < strlen(two); cut++) {
        feed = feed_bytes(two, strlen(two), &cut, 1, keep, NULL);
        TEST_CHECK_(feed.requests == 2 && feed.whole, "in two pieces, at %zu", cut);
    }
}

static void test_an_empty_line_is_no_request_that_has_begun(void)
{
    struct parser parser;
    struct request q;
    size_t used;
    parser_reset(&parser);
    TEST_CHECK(parser_head(&parser, "", 0, &q, &used) == PARSED_MORE);
    TEST_CHECK(!parser_empty_line(&parser, "\r", 1) && !parser_empty_line(&parser, "\n\n", 2) &&
               !parser_empty_line(&parser, "\rG", 2) && !parser_empty_line(&parser, "\r\nG", 3));
    TEST_CHECK(parser_empty_line(&parser, "\r\n", 2));
    parser.empty_lines = PARSER_EMPTY_LINES;
    TEST_CHECK(!parser_empty_line(&parser, "\r\n", 2));
    TEST_CHECK(parser_head(&parser, "\r", 1, &q, &used) == PARSED_REFUSED && parser.status == 400);
}

static void test_expectations(void)
{
    TEST_CHECK(takes("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 1\r\n\r\nx"));
    TEST_CHECK(seen.expects_continue);
    TEST_CHECK(takes("GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n") && !seen.expects_continue);
    TEST_CHECK(takes("POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx"));
    TEST_CHECK(!seen.expects_continue);
    TEST_CHECK(takes("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 0\r\n\r\n"));
    TEST_CHECK(!seen.expects_continue);
    TEST_CHECK(takes(
        "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"));
    TEST_CHECK(seen.expects_continue);
}

static void test_lengths(void)
{
    TEST_CHECK(takes("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n") && seen.has_length);
    TEST_CHECK(takes("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 00003 \r\n\r\nabc") &&
               is(seen.body, "abc"));
    TEST_CHECK(takes("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc") && is(seen.body, "abc"));
    struct parser parser;
    struct request q;
    size_t used;
    const char *largest = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9223372036854775807\r\n\r\n";
    parser_reset(&parser);
    TEST_CHECK(parser_head(&parser, largest, strlen(largest), &q, &used) == PARSED_DONE);
    TEST_CHECK(parser.length == INT64_MAX);
}

/* ---- chunks ---- */

#define CHUNKED "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"

static void test_chunks(void)
{
    TEST_CHECK(takes(CHUNKED "0\r\n\r\n") && seen.has_length && seen.body.size == 0);
    TEST_CHECK(takes(CHUNKED "3\r\nabc\r\n0\r\n\r\n") && is(seen.body, "abc"));
    TEST_CHECK(takes(CHUNKED "0000000000000003;a=\"b;c\"\r\nabc\r\n1;\r\nd\r\n00;x\r\n\r\n") &&
               is(seen.body, "abcd"));
    TEST_CHECK(takes(CHUNKED "4\r\n\r\n\r\n\r\n0\r\nA: b\r\nC:\r\n\r\n") && is(seen.body, "\r\n\r\n"));
    TEST_CHECK(seen.fields_count == 2); /* trailers are dropped */
}

static void test_chunks_in_two_pieces_at_every_point(void)
{
    static const char text[] = CHUNKED "5;a=b\r\nhello\r\n001\r\n \r\n5\r\nworld\r\n0\r\nT: v\r\n\r\n";
    for (size_t cut = 0; cut < sizeof text - 1; cut++) {
        feed = feed_bytes(text, sizeof text - 1, &cut, 1, keep, NULL);
        TEST_CHECK_(feed.requests == 1 && is(seen.body, "hello world"), "cut at %zu", cut);
        TEST_CHECK_(seen_end == sizeof text - 1, "cut at %zu", cut);
    }
}

static void test_nothing_is_taken_before_it_is_whole(void)
{
    static const char text[] = CHUNKED "5\r\nhello\r\n0\r\n\r\n";
    for (size_t size = 0; size < sizeof text - 1; size++) {
        feed = feed_bytes(text, size, NULL, 0, keep, NULL);
        TEST_CHECK_(feed.requests == 0 && feed.last == PARSED_MORE, "%zu bytes", size);
    }
}

/* What stands behind a request belongs to the next one. */
static void test_requests_end_where_they_end(void)
{
    static const char two[] =
        "POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 39\r\n\r\nGET /smuggled HTTP/1.1\r\n"
        "Host: abcde\r\n\r\nPOST /2 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        "2\r\n{}\r\n0\r\n\r\nGET /3 HTTP/1.1\r\nHost: a\r\n\r\n";
    feed = feed_bytes(two, sizeof two - 1, NULL, 0, keep, NULL);
    TEST_CHECK(feed.requests == 3 && feed.whole && is(seen.target, "/3"));
}

/* ---- limits, to the byte ---- */

static char text[FEED_MAX];

static size_t filled(const char *begin, size_t count, const char *end)
{
    size_t before = strlen(begin), behind = strlen(end);
    memcpy(text, begin, before);
    memset(text + before, 'a', count);
    memcpy(text + before + count, end, behind);
    return before + count + behind;
}

static void test_a_target_has_8192_bytes(void)
{
    size_t size = filled("GET /", PARSER_TARGET_MAX - 1, " HTTP/1.1\r\nHost: a\r\n\r\n");
    TEST_CHECK(takes_n(text, size) && seen.target.size == PARSER_TARGET_MAX);
    size = filled("GET /", PARSER_TARGET_MAX, " HTTP/1.1\r\nHost: a\r\n\r\n");
    TEST_CHECK(refuses_n(text, size) == 414);
}

static void test_a_head_has_32768_bytes(void)
{
    const char *begin = "GET / HTTP/1.1\r\nHost: a\r\nA: ", *end = "\r\n\r\n";
    size_t around = strlen(begin) + strlen(end);
    size_t size = filled(begin, PARSER_HEAD_MAX - around, end);
    TEST_CHECK(size == PARSER_HEAD_MAX && takes_n(text, size));
    size = filled(begin, PARSER_HEAD_MAX - around + 1, end);
    TEST_CHECK(refuses_n(text, size) == 431);
}

static void test_a_head_has_100_fields(void)
{
    for (unsigned more = 0; more < 2; more++) {
        size_t size = (size_t)sprintf(text, "GET / HTTP/1.1\r\nHost: a\r\n");
        for (unsigned i = 1; i < REQUEST_FIELDS_MAX + more; i++)
            size += (size_t)sprintf(text + size, "A%u: b\r\n", i);
        size += (size_t)sprintf(text + size, "\r\n");
        if (more)
            TEST_CHECK(refuses_n(text, size) == 431);
        else
            TEST_CHECK(takes_n(text, size) && seen.fields_count == REQUEST_FIELDS_MAX);
    }
}

static void test_a_chunks_line_has_256_bytes(void)
{
    size_t size = filled(CHUNKED "1;", PARSER_CHUNK_LINE_MAX - 3, "\r\nx\r\n0\r\n\r\n");
    TEST_CHECK(takes_n(text, size) && is(seen.body, "x"));
    size = filled(CHUNKED "1;", PARSER_CHUNK_LINE_MAX - 2, "\r\nx\r\n0\r\n\r\n");
    TEST_CHECK(refuses_n(text, size) == 400);
}

static void test_trailers_have_8192_bytes(void)
{
    const char *end = "\r\n\r\n";
    size_t size = filled(CHUNKED "0\r\nA: ", PARSER_TRAILERS_MAX - 3 - strlen(end) + 1,
                         end) /* the last LF ends them */;
    TEST_CHECK(takes_n(text, size));
    size = filled(CHUNKED "0\r\nA: ", PARSER_TRAILERS_MAX - 3 - strlen(end) + 2, end);
    TEST_CHECK(refuses_n(text, size) == 431);
}

/* A head that can't become a request is told so at once, not when its end has come. */
static void test_what_is_hopeless_is_told_at_once(void)
{
    TEST_CHECK(refuses_n("\x16\x03\x01", 3) == 400);
    TEST_CHECK(refuses_n("\n", 1) == 400);
    TEST_CHECK(refuses_n(" ", 1) == 400);
    TEST_CHECK(refuses_n("GET / HTTP/1.1\n", 15) == 400);
    TEST_CHECK(refuses_n("GET / HTTP/1.1\r\nHost: a\nB", 25) == 400);
    TEST_CHECK(refuses_n("GET / HTTP/1.1\rH", 16) == 400);
    TEST_CHECK(refuses_n("\r\n\r\n", 4) == 400);
    size_t size = filled("GET /", 2 * PARSER_TARGET_MAX, "");
    TEST_CHECK(refuses_n(text, size) == 414);
    size = filled("GET / HTTP/1.1\r\nA: ", PARSER_HEAD_MAX, "");
    TEST_CHECK(refuses_n(text, size) == 431);
}

/* What was read before is of no use where the line makes the head too long, has no form for its method, or follows a method that nobody
 * knows. */
static void test_what_was_read_before_is_no_use(void)
{
    static char first[PARSER_HEAD_MAX + 64], second[PARSER_HEAD_MAX + 64];
    static const struct {
        const char *before, *line;
        int status; /* 0: it is read */
    } rows[] = {
        {"GET / HTTP/1.1\r\n", "GET /longer HTTP/1.1\r\n", 431},
        {"GET /long HTTP/1.1\r\n", "GET * HTTP/1.1\r\n", 400},
        {"BREW /pot HTTP/1.1\r\n", "GET /pot HTTP/1.1\r\n", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct parser parser = {0};
        struct parser_before before = {.fields = NULL};
        struct request q;
        size_t used, line = strlen(rows[i].before), fields = PARSER_HEAD_MAX - line;
        memcpy(first, rows[i].before, line);
        memcpy(first + line, "Host: a\r\nB: ", 12);
        memset(first + line + 12, 'b', fields - 16);
        memcpy(first + PARSER_HEAD_MAX - 4, "\r\n\r\n", 4);
        TEST_CHECK(parser_head_after(&parser, &before, first, PARSER_HEAD_MAX, &q, &used) == PARSED_DONE);
        size_t other = strlen(rows[i].line);
        memcpy(second, rows[i].line, other);
        memcpy(second + other, first + line, fields);
        parser_reset(&parser);
        enum parsed p = parser_head_after(&parser, &before, second, other + fields, &q, &used);
        TEST_CHECK(p == (rows[i].status ? PARSED_REFUSED : PARSED_DONE) && parser.status == rows[i].status);
        TEST_CHECK(p != PARSED_DONE || (q.method == METHOD_GET && is(q.target, "/pot")));
        TEST_MSG("%s", rows[i].line);
    }
}

static void test_targets_that_must_be_escaped(void)
{
    /* among the first eight bytes, which are looked at in one go, and behind them */
    TEST_CHECK(refuses("GET /ab\x80jklmnop HTTP/1.1\r\nHost: a\r\n\r\n") == 400);
    TEST_CHECK(refuses("GET /ab\x7fjklmnop HTTP/1.1\r\nHost: a\r\n\r\n") == 400);
    TEST_CHECK(refuses("GET /ab\tjklmnop HTTP/1.1\r\nHost: a\r\n\r\n") == 400);
    TEST_CHECK(refuses("GET /abcdefgh\x80jkl HTTP/1.1\r\nHost: a\r\n\r\n") == 400);
    TEST_CHECK(refuses("GET /abcdefgh\tjkl HTTP/1.1\r\nHost: a\r\n\r\n") == 400);
}

/* Fields that resemble those that decide about the head, or are known, and are none of them. */
static void test_fields_that_resemble_others(void)
{
    TEST_CHECK(takes(
        "GET / HTTP/1.1\r\nHost: a\r\ncontent-langth: 5\r\ntransfer-encodinx: gzip\r\nconnectiom: close\r\n"
        "expext: 1\r\naccess-control-Xequest-method: PUT\r\n\r\n"));
    TEST_CHECK(!seen.has_length && seen.keep_alive && !seen.expects_continue && seen.fields_count == 6);
    TEST_CHECK(!seen.known[HEADER_ACCESS_CONTROL_REQUEST_METHOD].bytes);
    TEST_CHECK(takes("OPTIONS / HTTP/1.1\r\nHost: a\r\nACCESS-control-request-METHOD: PUT\r\n\r\n"));
    TEST_CHECK(is(seen.known[HEADER_ACCESS_CONTROL_REQUEST_METHOD], "PUT"));
    size_t size = filled("GET / HTTP/1.1\r\nHost: a\r\n", 128, ": b\r\n\r\n"); /* a name longer than any */
    TEST_CHECK(takes_n(text, size) && seen.fields_count == 2 && seen.fields[1].name.size == 128);
}

static void test_fields_that_are_there_twice(void)
{
    TEST_CHECK(takes("GET / HTTP/1.1\r\nHost: a\r\nAccept: b\r\naccept: c\r\n\r\n"));
    TEST_CHECK(is(seen.known[HEADER_ACCEPT], "b") && seen.fields_count == 3);
    TEST_CHECK(refuses("GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n") == 400);
    TEST_CHECK(refuses("GET / HTTP/1.1\r\nHost: a\r\nOrigin: a\r\nOrigin: a\r\n\r\n") == 400);
}

TEST_LIST
= {
    {"a request and its views", test_a_request_and_its_views},
    {"a head that says what the one before said", test_a_head_that_says_what_the_one_before_said},
    {"views point into the bytes that were given", test_views_point_into_the_bytes_that_were_given},
    {"methods", test_methods},
    {"forms of the target", test_forms_of_the_target},
    {"whether it stays", test_whether_it_stays},
    {"what a Host is", test_what_a_host_is},
    {"a second opinion that differs", test_a_second_opinion_that_differs},
    {"a second opinion of the line that differs", test_a_second_opinion_of_the_line_that_differs},
    {"HTTP/1.0 needs no Host", test_http10_needs_no_host},
    {"one empty line is forgiven", test_one_empty_line_is_forgiven},
    {"an empty line is no request that has begun", test_an_empty_line_is_no_request_that_has_begun},
    {"expectations", test_expectations},
    {"lengths", test_lengths},
    {"chunks", test_chunks},
    {"chunks in two pieces at every point", test_chunks_in_two_pieces_at_every_point},
    {"nothing is taken before it is whole", test_nothing_is_taken_before_it_is_whole},
    {"H2 requests end where they end", test_requests_end_where_they_end},
    {"a target has 8192 bytes", test_a_target_has_8192_bytes},
    {"a head has 32768 bytes", test_a_head_has_32768_bytes},
    {"a head has 100 fields", test_a_head_has_100_fields},
    {"a chunk's line has 256 bytes", test_a_chunks_line_has_256_bytes},
    {"trailers have 8192 bytes", test_trailers_have_8192_bytes},
    {"what is hopeless is told at once", test_what_is_hopeless_is_told_at_once},
    {"what was read before is no use", test_what_was_read_before_is_no_use},
    {"targets that must be escaped", test_targets_that_must_be_escaped},
    {"fields that resemble others", test_fields_that_resemble_others},
    {"fields that are there twice", test_fields_that_are_there_twice},
    {NULL, NULL},
};
