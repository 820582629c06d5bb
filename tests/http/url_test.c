#include "acutest.h"

#include <stdlib.h>

#include "http/request.h"
#include "http/url.h"

static struct url url;
static char room[256];

static enum url_result parse(const char *target, bool options)
{
    memset(room, 'x', sizeof(room));
    memset(&url, 0xee, sizeof(url));
    return url_path(span_text(target), options, room, sizeof(room), &url);
}

static bool is(struct span span, const char *text)
{
    return text ? span.bytes && span_equal(span, span_text(text)) : !span.bytes;
}

static void test_paths_that_are_meant(void)
{
    static const struct {
        const char *target, *path, *query;
    } rows[] = {
        {"/", "/", NULL},
        {"/v1/jobs", "/v1/jobs", NULL},
        {"/v1/jobs/", "/v1/jobs/", NULL}, /* another path: no route has it */
        {"/v1/jobs?", "/v1/jobs", ""},
        {"/v1/jobs?a=1&b=/?:@", "/v1/jobs", "a=1&b=/?:@"},
        {"/?a", "/", "a"},
        {"/jobs:submit", "/jobs:submit", NULL},
        {"/jobs/7:cancel?x=%3A", "/jobs/7:cancel", "x=%3A"},
        {"/a;b=c/d,e", "/a;b=c/d,e", NULL},
        {"/~a-b_c.d!$&'()*+=@", "/~a-b_c.d!$&'()*+=@", NULL},
        {"/%61%2D%7E", "/a-~", NULL},
        {"/a%20b", "/a b", NULL},
        {"/a+b", "/a+b", NULL}, /* a plus is a space in queries only */
        {"/%C3%A4", "/\xc3\xa4", NULL},
        {"/%c3%a4/%F0%9F%98%80", "/\xc3\xa4/\xf0\x9f\x98\x80", NULL},
        {"/a%3Ab/c", "/a:b/c", NULL}, /* no verb can be there */
        {"/100%25", "/100%", NULL},
        {"/100%25z", "/100%z", NULL},
        {"/...", "/...", NULL},
        {"/.a/a.", "/.a/a.", NULL},
        {"/a?b=[1]{2}|^`\\", "/a", "b=[1]{2}|^`\\"},
        {"/a?%0a=%00", "/a", "%0a=%00"}, /* decoding it is refused */
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        TEST_CASE(rows[i].target);
        TEST_CHECK(parse(rows[i].target, false) == URL_OK);
        TEST_CHECK(is(url.path, rows[i].path));
        TEST_CHECK(is(url.query, rows[i].query));
        TEST_CHECK(!url.host.bytes && !url.asterisk);
    }
}

static void test_paths_that_are_refused(void)
{
    static const struct {
        const char *target;
        enum url_result result;
    } rows[] = {
        {"", URL_FORM},
        {"v1/jobs", URL_FORM},
        {"*", URL_FORM},
        {"example.org:80", URL_FORM},
        {"ftp://example.org/", URL_FORM},
        {"http:/example.org/", URL_FORM},
        {"http://", URL_FORM},
        {"javascript:alert(1)", URL_FORM},
        {"/a%", URL_ESCAPE},
        {"/a%4", URL_ESCAPE},
        {"/a%4g", URL_ESCAPE},
        {"/a%u0041", URL_ESCAPE},
        {"/a%%41", URL_ESCAPE},
        {"/a?%", URL_ESCAPE},
        {"/a?b=%zz", URL_ESCAPE},
        {"/a%2Fb", URL_SLASH},
        {"/a%2fb", URL_SLASH},
        {"/a%5Cb", URL_SLASH},
        {"/%2e%2e%2f", URL_SLASH},
        {"/a%00", URL_CONTROL},
        {"/a%0d%0aX:%20y", URL_CONTROL},
        {"/a%7F", URL_CONTROL},
        {"/a%1F%FF", URL_CONTROL}, /* what is wrong first is told */
        {"/a%7F%FF", URL_CONTROL},
        {"/a%20%FF", URL_UTF8},
        {"/a%C2%85", URL_CONTROL},
        {"/%C0%AF", URL_UTF8}, /* overlong slash */
        {"/%C0%AE%C0%AE", URL_UTF8},
        {"/%E0%80%AF", URL_UTF8},
        {"/%ED%A0%80", URL_UTF8}, /* a surrogate */
        {"/%F4%90%80%80", URL_UTF8},
        {"/%FF", URL_UTF8},
        {"/%C3", URL_UTF8},
        {"/%C3/%A4", URL_UTF8},
        {"/%2541", URL_TWICE},
        {"/%252e%252e/a", URL_TWICE},
        {"/%25%32%66", URL_TWICE},
        {"/.", URL_DOTS},
        {"/..", URL_DOTS},
        {"/a/./b", URL_DOTS},
        {"/a/../b", URL_DOTS},
        {"/a/..", URL_DOTS},
        {"/../etc/passwd", URL_DOTS},
        {"/a/%2e%2E/b", URL_DOTS},
        {"/a/.%2e", URL_DOTS},
        {"/%2e", URL_DOTS},
        {"//", URL_EMPTY},
        {"//a", URL_EMPTY},
        {"/a//b", URL_EMPTY},
        {"/a//", URL_EMPTY},
        {"/jobs/7%3Acancel", URL_COLON},
        {"/jobs/7%3acancel", URL_COLON},
        {"/jobs%3Asubmit", URL_COLON},
        {"/jobs/7:cancel%3Ax", URL_COLON},
        {"/a b", URL_BYTE},
        {"/a\\b", URL_BYTE},
        {"/a#b", URL_BYTE},
        {"/a?b#c", URL_BYTE},
        {"/a?b c", URL_BYTE},
        {"/a?b\"", URL_BYTE},
        {"/a<b>", URL_BYTE},
        {"/a\x01", URL_BYTE},
        {"/a\x7f", URL_BYTE},
        {"/\xc3\xa4", URL_BYTE},
        {"/a?\xc3\xa4", URL_BYTE},
        {"/a|b", URL_BYTE},
        {"/[a]", URL_BYTE},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        TEST_CASE(rows[i].target);
        enum url_result result = parse(rows[i].target, false);
        TEST_CHECK_(result == rows[i].result, "%s", url_result_text(result));
        TEST_CHECK(url_result_text(result)[0] != 0);
    }
}

static void test_every_byte_is_a_path_s_or_refused(void)
{
    char target[] = "/aXb";
    for (unsigned byte = 0; byte < 256; byte++) {
        target[2] = (char)byte;
        bool allowed = byte > 0x20 && byte < 0x7f && !strchr("\"#%<>[\\]^`{|}", (int)byte);
        enum url_result result = url_path(span_of(target, 4), false, room, sizeof(room), &url);
        TEST_CHECK_((result == URL_OK) == allowed, "%#x", byte);
    }
}

static void test_absolute_urls_name_their_host(void)
{
    static const struct {
        const char *target, *host, *path, *query;
    } rows[] = {
        {"http://example.org/a", "example.org", "/a", NULL},
        {"HTTPS://Example.org:8080/a?b", "Example.org:8080", "/a", "b"},
        {"http://[::1]:80/", "[::1]:80", "/", NULL},
        {"http://example.org", "example.org", "/", NULL},
        {"http://example.org?q=1", "example.org", "/", "q=1"},
        {"http://example.org/%61", "example.org", "/a", NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        TEST_CASE(rows[i].target);
        TEST_CHECK(parse(rows[i].target, false) == URL_OK);
        TEST_CHECK(is(url.host, rows[i].host));
        TEST_CHECK(is(url.path, rows[i].path));
        TEST_CHECK(is(url.query, rows[i].query));
        TEST_CHECK(!url.asterisk);
    }
    TEST_CHECK(parse("http://user@example.org/", false) == URL_AUTHORITY);
    TEST_CHECK(parse("http:///a", false) == URL_AUTHORITY);
    TEST_CHECK(parse("http://a%41/", false) == URL_AUTHORITY);
    TEST_CHECK(parse("http://a:65535/", false) == URL_OK);
    TEST_CHECK(parse("http://a:65536/", false) == URL_AUTHORITY);
    TEST_CHECK(parse("http://[1::2::3]/", false) == URL_AUTHORITY);
    TEST_CHECK(parse("http://:80/", false) == URL_AUTHORITY);
    TEST_CHECK(parse("http://a\\b/", false) == URL_AUTHORITY);
    TEST_CHECK(parse("http://a/../b", false) == URL_DOTS);
    TEST_CHECK(parse("http://a/b/%2f", false) == URL_SLASH);
    TEST_CHECK(parse("http://a?b#c", false) == URL_BYTE);
    TEST_CHECK(parse("http://a//", false) == URL_EMPTY);
}

static void test_the_asterisk_is_for_options_alone(void)
{
    TEST_CHECK(parse("*", true) == URL_OK && url.asterisk && is(url.path, "/"));
    TEST_CHECK(parse("http://example.org", true) == URL_OK && url.asterisk && is(url.host, "example.org"));
    TEST_CHECK(parse("http://example.org/", true) == URL_OK && !url.asterisk);
    TEST_CHECK(parse("http://example.org", false) == URL_OK && !url.asterisk);
    TEST_CHECK(parse("http://example.org?a=1", true) == URL_OK && !url.asterisk && is(url.path, "/"));
    TEST_CHECK(parse("*/", true) == URL_FORM);
    TEST_CHECK(parse("**", true) == URL_FORM);
}

static void test_a_plain_path_is_borrowed_and_an_escaped_one_fits_its_room(void)
{
    const char *plain = "/v1/jobs", *escaped = "/v1/%6aobs";
    TEST_CHECK(url_path(span_text(plain), false, NULL, 0, &url) == URL_OK && url.path.bytes == plain);
    TEST_CHECK(url_path(span_text(escaped), false, room, strlen(escaped), &url) == URL_OK);
    TEST_CHECK(url.path.bytes == room && is(url.path, "/v1/jobs"));
    TEST_CHECK(url_path(span_text(escaped), false, room, strlen(escaped) - 1, &url) == URL_LONG);
}

static void test_the_result_is_written_on_success_only(void)
{
    unsigned char bytes[sizeof(struct url)];
    memset(&url, 0x5a, sizeof(url));
    TEST_CHECK(url_path(span_text("/a%2fb?c"), false, room, sizeof(room), &url) == URL_SLASH);
    memcpy(bytes, &url, sizeof(url));
    for (size_t i = 0; i < sizeof(bytes); i++)
        TEST_CHECK(bytes[i] == 0x5a);
}

static void test_queries_come_apart_piece_by_piece(void)
{
    static const char *const want[][2] = {{"a", "1"}, {"b", ""}, {"c", ""}, {"", "x"}, {"d", "e=f"}};
    struct span query = span_text("a=1&&b=&c&=x&d=e=f&"), name, value;
    for (size_t i = 0; i < 5; i++) {
        TEST_ASSERT(url_query_next(&query, &name, &value));
        TEST_CHECK(is(name, want[i][0]) && is(value, want[i][1]));
    }
    TEST_CHECK(!url_query_next(&query, &name, &value));
    query = span_of(NULL, 0);
    TEST_CHECK(!url_query_next(&query, &name, &value));
}

static bool decodes(const char *text, const char *want)
{
    char small[16];
    size_t size = 99;
    bool good = url_decode(span_text(text), small, sizeof(small), &size);
    return want ? good && size == strlen(want) && memcmp(small, want, size) == 0 : !good && size == 99;
}

static void test_values_of_queries_are_decoded_once(void)
{
    TEST_CHECK(decodes("", ""));
    TEST_CHECK(decodes("a+b%2Bc", "a b+c"));
    TEST_CHECK(decodes("%2541", "%41")); /* once */
    TEST_CHECK(decodes("%2F%3a", "/:"));
    TEST_CHECK(decodes("%C3%A4", "\xc3\xa4"));
    TEST_CHECK(decodes("0123456789abcdef", "0123456789abcdef"));
    TEST_CHECK(decodes("0123456789abcdefg", NULL));
    TEST_CHECK(decodes("%", NULL));
    TEST_CHECK(decodes("%4", NULL));
    TEST_CHECK(decodes("%00", NULL));
    TEST_CHECK(decodes("%0a", NULL));
    TEST_CHECK(decodes("%7f", NULL));
    TEST_CHECK(decodes("\x7f", NULL));
    TEST_CHECK(decodes("%C2%9F", NULL));
    TEST_CHECK(decodes("%C2%A0", "\xc2\xa0")); /* the first one behind the controls */
    TEST_CHECK(decodes("%C0%80", NULL));
    TEST_CHECK(decodes("%FF", NULL));
}

static void test_elsewhere_a_plus_is_a_plus(void)
{
    char small[16];
    size_t size = 99;
    TEST_CHECK(url_unescape(span_text("a+b%20c%2B"), small, sizeof(small), &size));
    TEST_CHECK(size == 6 && memcmp(small, "a+b c+", 6) == 0);
    TEST_CHECK(!url_unescape(span_text("%0a"), small, sizeof(small), &size));
    TEST_CHECK(!url_unescape(span_text("12345678901234567"), small, sizeof(small), &size));
}

static void test_a_request_s_query_parameters(void)
{
    struct request *q = calloc(1, sizeof(*q));
    char small[8];
    bool bad = true;
    TEST_ASSERT(q != NULL);
    TEST_CHECK(!request_query(q, "a", small, sizeof(small), &bad) && !bad);
    q->query = span_text("a=1&b%5f=2+3&c=%zz&d=1&d=2&e=12345678&f");
    const char *value = request_query(q, "a", small, sizeof(small), &bad);
    TEST_CHECK(value && strcmp(value, "1") == 0 && !bad);
    value = request_query(q, "b_", small, sizeof(small), &bad);
    TEST_CHECK(value && strcmp(value, "2 3") == 0 && !bad);
    TEST_CHECK(!request_query(q, "c", small, sizeof(small), &bad) && bad);
    TEST_CHECK(!request_query(q, "d", small, sizeof(small), &bad) && bad);
    TEST_CHECK(!request_query(q, "e", small, sizeof(small), &bad) && bad);
    value = request_query(q, "f", small, sizeof(small), &bad);
    TEST_CHECK(value && value[0] == 0 && !bad);
    TEST_CHECK(!request_query(q, "A", small, sizeof(small), &bad) && !bad);
    free(q);
}

static void test_a_request_s_fields(void)
{
    struct request *q = calloc(1, sizeof(*q));
    TEST_ASSERT(q != NULL);
    q->fields[q->fields_count++] = (struct field){span_text("X-Hub"), span_text("one")};
    q->fields[q->fields_count++] = (struct field){span_text("x-hub"), span_text("two")};
    TEST_CHECK(is(request_field(q, "x-hUb"), "one"));
    TEST_CHECK(!request_field(q, "x-hu").bytes);
    TEST_CHECK(!request_field(q, "x-hubs").bytes);
    free(q);
}

static void test_methods_have_names(void)
{
    TEST_CHECK(strcmp(method_name(METHOD_GET), "GET") == 0);
    TEST_CHECK(strcmp(method_name(METHOD_UNKNOWN), "UNKNOWN") == 0);
    TEST_CHECK(strcmp(method_name((enum method)0), "") == 0);
}

TEST_LIST
= {
    {"paths that are meant", test_paths_that_are_meant},
    {"paths that are refused", test_paths_that_are_refused},
    {"every byte is a path's or refused", test_every_byte_is_a_path_s_or_refused},
    {"absolute URLs name their host", test_absolute_urls_name_their_host},
    {"the asterisk is for OPTIONS alone", test_the_asterisk_is_for_options_alone},
    {"a plain path is borrowed, an escaped one fits its room",
     test_a_plain_path_is_borrowed_and_an_escaped_one_fits_its_room},
    {"the result is written on success only", test_the_result_is_written_on_success_only},
    {"queries come apart piece by piece", test_queries_come_apart_piece_by_piece},
    {"values of queries are decoded once", test_values_of_queries_are_decoded_once},
    {"elsewhere a plus is a plus", test_elsewhere_a_plus_is_a_plus},
    {"a request's query parameters", test_a_request_s_query_parameters},
    {"a request's fields", test_a_request_s_fields},
    {"methods have names", test_methods_have_names},
    {NULL, NULL},
};
