/* What is read of a head that was refused, or hasn't come to its end. */
#include "acutest.h"

#include <stdio.h>
#include <string.h>

#include "http/parser.h"

static struct request q;

static void glimpse_n(const char *text, size_t size)
{
    memset(&q, 0, sizeof q);
    parser_glimpse(text, size, &q);
}

static void glimpse(const char *text)
{
    glimpse_n(text, strlen(text));
}

static bool is(struct span s, const char *text)
{
    return span_equal(s, span_text(text));
}

static bool nothing(void)
{
    static const struct request none;
    return memcmp(&q, &none, sizeof q) == 0;
}

static void test_methods(void)
{
    static const struct {
        const char *name;
        enum method method;
    } methods[] = {{"GET", METHOD_GET},         {"HEAD", METHOD_HEAD},       {"POST", METHOD_POST},
                   {"PUT", METHOD_PUT},         {"DELETE", METHOD_DELETE},   {"PATCH", METHOD_PATCH},
                   {"OPTIONS", METHOD_OPTIONS}, {"CONNECT", METHOD_CONNECT}, {"TRACE", METHOD_TRACE},
                   {"UNKNOWN", METHOD_UNKNOWN}, {"get", METHOD_UNKNOWN},     {"BREW", METHOD_UNKNOWN}};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        char text[64];
        snprintf(text, sizeof text, "%s /a?b FTP\r\n", methods[i].name);
        glimpse(text);
        TEST_CHECK_(q.method == methods[i].method && is(q.target, "/a?b"), "%s", methods[i].name);
    }
}

static void test_targets(void)
{
    glimpse("\r\nGET /a\x80 HTTP/1.1\r\n");
    TEST_CHECK(q.method == METHOD_GET && is(q.target, "/a"));
    glimpse("\nGET / HTTP/1.1\r\n"); /* this one isn't forgiven */
    TEST_CHECK(nothing());
    glimpse("\r GET / HTTP/1.1\r\n");
    TEST_CHECK(nothing());
    glimpse("");
    TEST_CHECK(nothing());
    glimpse("\r\n");
    TEST_CHECK(nothing());
    glimpse(" / HTTP/1.1\r\n");
    TEST_CHECK(nothing());
    glimpse("GET");
    TEST_CHECK(nothing());
    glimpse("GET\t/ HTTP/1.1\r\n");
    TEST_CHECK(nothing());
    glimpse("GET /who/knows"); /* how it goes on */
    TEST_CHECK(nothing());
    static char text[PARSER_TARGET_MAX + 64] = "GET ";
    memset(text + 4, 'a', PARSER_TARGET_MAX);
    glimpse_n(text, 4 + PARSER_TARGET_MAX);
    TEST_CHECK(nothing());
    memset(text + 4, 'a', PARSER_TARGET_MAX + 1); /* too long, however it goes on */
    glimpse_n(text, 4 + PARSER_TARGET_MAX + 1);
    TEST_CHECK(q.method == METHOD_GET && q.target.size == PARSER_TARGET_MAX + 1);
}

static void test_ids(void)
{
    glimpse("GET / HTTP/9\r\nX-Request-Id: \t a b\t \r\ntraceparent:00-1\r\nTraceState:\r\nHost: "
            "h\r\n\r\nX-Request-Id: c");
    TEST_CHECK(is(q.known[HEADER_REQUEST_ID], "a b") && is(q.known[HEADER_TRACEPARENT], "00-1"));
    TEST_CHECK(q.known[HEADER_TRACESTATE].bytes && q.known[HEADER_TRACESTATE].size == 0);
    TEST_CHECK(!q.known[HEADER_HOST].bytes); /* it is no id */
}

/* Which of two is meant nobody knows, and of three neither. */
static void test_an_id_that_is_there_twice(void)
{
    glimpse("GET / HTTP/9\r\nX-Request-Id: a\r\nX-Request-Id: b\r\ntraceparent: c\r\n");
    TEST_CHECK(!q.known[HEADER_REQUEST_ID].bytes && is(q.known[HEADER_TRACEPARENT], "c"));
    glimpse("GET / HTTP/9\r\nX-Request-Id: a\r\nX-Request-Id: b\r\nX-Request-Id: c\r\n");
    TEST_CHECK(!q.known[HEADER_REQUEST_ID].bytes);
}

static void test_lines_that_say_nothing(void)
{
    static const char *const lines[] = {
        "X-Request-Id\r\n",        "X-Request-Id a\r\n",   ": a\r\n",
        "X-Request-Id: a\x01\r\n", " X-Request-Id: a\r\n", "X-Request-Ix: a\r\n",
        "X-Request-Idd: a\r\n"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char text[128];
        snprintf(text, sizeof text, "GET / HTTP/9\r\n%straceparent: b\r\n", lines[i]);
        glimpse(text);
        TEST_CHECK_(!q.known[HEADER_REQUEST_ID].bytes && is(q.known[HEADER_TRACEPARENT], "b"), "%s",
                    lines[i]);
    }
}

/* Behind a line that doesn't end as it must nobody knows where the next one begins. */
static void test_where_lines_end(void)
{
    glimpse("GET / HTTP/9\r\nA: b\nX-Request-Id: a\r\n");
    TEST_CHECK(!q.known[HEADER_REQUEST_ID].bytes && q.method == METHOD_GET);
    glimpse("GET / HTTP/9\r\nX-Request-Id: a");
    TEST_CHECK(!q.known[HEADER_REQUEST_ID].bytes && q.method == METHOD_GET);
    glimpse("GET / HTTP/9\nX-Request-Id: a\r\n");
    TEST_CHECK(!q.known[HEADER_REQUEST_ID].bytes && q.method == METHOD_GET);
}

TEST_LIST
= {{"methods", test_methods},
   {"targets", test_targets},
   {"ids", test_ids},
   {"an id that is there twice", test_an_id_that_is_there_twice},
   {"lines that say nothing", test_lines_that_say_nothing},
   {"where lines end", test_where_lines_end},
   {NULL, NULL}};
