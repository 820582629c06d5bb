/* What Prefer says, and what of it is heeded (RFC 7240). */
#include "acutest.h"

#include <string.h>

#include "http/prefer.h"
#include "http/response.h"

/* What a request with these two fields, of which the second may be NULL, has applied: "" for nothing. */
static const char *applied(const char *first, const char *second)
{
    static char text[128];
    static struct request q;
    static struct response r;
    memset(&q, 0, sizeof(q));
    memset(&r, 0, offsetof(struct response, headers));
    q.fields[q.fields_count++] = (struct field){span_text("Accept"), span_text("wait=1")};
    q.fields[q.fields_count++] = (struct field){span_text("pReFeR"), span_text(first)};
    if (second)
        q.fields[q.fields_count++] = (struct field){span_text("Prefer"), span_text(second)};
    q.known[HEADER_PREFER] = q.fields[1].value;
    struct prefer prefer = prefer_read(&q);
    prefer_applied(&prefer, &r);
    snprintf(text, sizeof(text), "%.*s", (int)r.headers_length, r.headers);
    return text;
}

static void is(const char *first, const char *second, const char *expected)
{
    char line[128] = "";
    if (expected[0])
        snprintf(line, sizeof(line), "Preference-Applied: %s\r\n", expected);
    const char *got = applied(first, second);
    TEST_CHECK(strcmp(got, line) == 0);
    TEST_MSG("%s and %s: %s", first, second ? second : "nothing", got);
}

static void test_what_is_preferred_is_applied(void)
{
    is("respond-async", NULL, "respond-async");
    is("wait=10", NULL, "wait=10");
    is("wait=0", NULL, "wait=0");
    is("respond-async, wait=10", NULL, "respond-async, wait=10");
    is("wait=10,respond-async", NULL, "respond-async, wait=10");
    is("wait=10", "respond-async", "respond-async, wait=10");
    is("Respond-ASYNC;q=1 , WAIT = \"7\" ; a=b", NULL, "respond-async, wait=7");
    is("\twait=3\t", NULL, "wait=3");
}

static void test_no_more_than_the_bound_is_granted(void)
{
    TEST_CHECK(PREFER_WAIT_MAX_S == 30);
    is("wait=30", NULL, "wait=30");
    is("wait=31", NULL, "wait=30");
    is("wait=4294967297", NULL, "wait=30");
    is("wait=99999999999999999999999999", NULL, "wait=30");
}

static void test_of_two_the_first_counts(void)
{
    is("wait=1, wait=2", NULL, "wait=1");
    is("wait=x, wait=2", NULL, "wait=2");
    is("wait=1", "wait=2", "wait=1");
}

static void test_what_is_not_known_or_not_readable_is_passed_over(void)
{
    static const char *const nothing[] = {
        "",
        ",",
        ";",
        "wait",
        "wait=",
        "wait=\"\"",
        "wait=\"",
        "wait=-1",
        "wait=1.5",
        "wait=1s",
        "wait=\"1",
        "waits=1",
        "wai=1",
        "=1",
        "respond-async-x",
        "handling=lenient",
        "return=minimal; wait=1",
        "a=\"b, wait=1\"",
        "a=\"b\\\", wait=1\"",
        "a=\"respond-async",
        "respond async",
    };
    for (size_t i = 0; i < sizeof(nothing) / sizeof(*nothing); i++)
        is(nothing[i], NULL, "");
    is("a=\"b, c\", wait=4", NULL, "wait=4");
    is("a=\"b\\\", c\", wait=4", NULL, "wait=4");
    is(",, respond-async,,", NULL, "respond-async");
}

static void test_who_prefers_nothing_is_told_of_nothing(void)
{
    static struct request q;
    struct prefer prefer = prefer_read(&q);
    TEST_CHECK(!prefer.waits && !prefer.respond_async);
}

TEST_LIST
= {
    {"what is preferred is applied", test_what_is_preferred_is_applied},
    {"no more than the bound is granted", test_no_more_than_the_bound_is_granted},
    {"of two the first counts", test_of_two_the_first_counts},
    {"what is not known, or not readable, is passed over",
     test_what_is_not_known_or_not_readable_is_passed_over},
    {"who prefers nothing is told of nothing", test_who_prefers_nothing_is_told_of_nothing},
    {NULL, NULL},
};
