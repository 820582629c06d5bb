#include "acutest.h"

#include <stdio.h>

#include "actors/callback_url.h"
#include "http/schema_text.h"

struct url_case {
    const char *url;
    const char *why; /* a word of the complaint; NULL: it is let through */
};

static void check_all(const struct url_case *cases, size_t count, bool allow_private)
{
    for (size_t i = 0; i < count; i++) {
        const char *why = "";
        bool good = callback_url_check(span_text(cases[i].url), allow_private, &why);
        TEST_CHECK_(good == !cases[i].why, "%s: %s", cases[i].url, why);
        TEST_CHECK_(good || !cases[i].why || strstr(why, cases[i].why), "%s: %s", cases[i].url, why);
    }
}
#define CHECK_ALL(cases, allow_private) check_all(cases, sizeof(cases) / sizeof(*(cases)), allow_private)

static void test_what_is_a_url_JOB_327(void)
{
    static const struct url_case cases[] = {
        {"https://example.com", NULL},
        {"https://example.com/", NULL},
        {"http://example.com:8080/hook?a=b&c=%20d", NULL},
        {"https://EXAMPLE.com/hook", NULL},
        {"https://xn--bcher-kva.example/x", NULL},
        {"https://a_b.example.com/@user", NULL},
        {"https://8.8.8.8:65535/", NULL},
        {"https://[2606:4700::1111]:1/", NULL},
        {"https://1e100.net/", NULL},
        {"https://deadbeef/", NULL},
        {"https://example.com?x", NULL},
        {"https://example.com/%5B%5d?%00=%fF", NULL},
        {"https://example.com/!$&'()*+,;=:@-._~?/?", NULL},
        {"https://[2606:4700::1111]/[", "byte"},
        {"https://example.com/a]b", "byte"},
        {"https://example.com?a[]=1", "byte"},
        {"https://example.com/%", "hexadecimal"},
        {"https://example.com/%4", "hexadecimal"},
        {"https://example.com/%zz", "hexadecimal"},
        {"https://example.com?%4g", "hexadecimal"},
        {"", "begin"},
        {"example.com/hook", "begin"},
        {"ftp://example.com/", "begin"},
        {"file:///etc/passwd", "begin"},
        {"HTTPS://example.com/", "begin"},
        {"http:/example.com/", "begin"},
        {"https://", "no host"},
        {"https:///hook", "no host"},
        {"https://?x", "no host"},
        {"https://:80/", "no host"},
        {"https://example.com/a b", "byte"},
        {"https://example.com/\n", "byte"},
        {"https://example.com\\@evil.example/", "byte"},
        {"https://example.com/\xc3\xbc", "byte"},
        {"https://b\xc3\xbc"
         "cher.example/",
         "byte"},
        {"https://example.com/\"", "byte"},
        {"https://example.com/\x7f", "byte"},
        {"https://example.com/#part", "fragment"},
        {"https://example.com#@evil.example/", "fragment"},
        {"https://user@example.com/", "user"},
        {"https://user:secret@example.com/", "user"},
        {"https://example.com:80:90/", "port"},
        {"https://example.com:/", "port"},
        {"https://example.com:0/", "port"},
        {"https://example.com:65536/", "port"},
        {"https://example.com:4294967376/", "port"},
        {"https://example.com:+80/", "port"},
        {"https://example.com:8x/", "port"},
        {"https://example.com./", "dot"},
        {"https://.example.com/", "empty part"},
        {"https://a..b/", "empty part"},
        {"https://exa%6dple.com/", "no name"},
        {"https://exa,mple.com/", "no name"},
        {"https://[::1/", "told apart"},
        {"https://[2606:4700::1111]x/", "told apart"},
        {"https://[2606:4700::1111%25eth0]/", "brackets"},
        {"https://[example.com]/", "brackets"},
        {"https://[]/", "brackets"},
    };
    CHECK_ALL(cases, false);
    CHECK_ALL(cases, true);
}

/* What is let through is a URI to whoever reads the contract: each byte, at each place, alone and as an escape's digits. */
static void test_what_is_let_through_is_a_uri_JOB_327(void)
{
    static const char *const around[][2] = {{"https://example.com/", ""},   {"https://example.com/a", "b?c"},
                                            {"https://example.com?", "=1"}, {"https://exa", "mple.com/"},
                                            {"https://[::1]/%4", ""},       {"https://example.com/%", "4"},
                                            {"https://example.com:8", ""}};
    uint32_t good = 0, both = 0;
    for (size_t i = 0; i < sizeof(around) / sizeof(*around); i++)
        for (int byte = 0; byte < 256; byte++) {
            char url[64];
            const char *why = "";
            int size = snprintf(url, sizeof(url), "%s%c%s", around[i][0], byte, around[i][1]);
            struct span text = span_of(url, (size_t)size);
            bool let = callback_url_check(text, true, &why);
            good += let;
            both += let && text_is_uri(text);
            TEST_CHECK_(!let || text_is_uri(text), "%s and byte %d", around[i][0], byte);
        }
    TEST_CHECK(good == both && good > 3 * 60);
}

static void test_W3_addresses_that_are_not_public_AMB_J_61(void)
{
    static const struct url_case closed[] = {
        {"http://127.0.0.1/", "may not be reached"},
        {"http://127.8.8.8:9000/", "may not be reached"},
        {"http://0.0.0.0/", "may not be reached"},
        {"http://10.0.0.1/", "may not be reached"},
        {"http://172.16.0.1/", "may not be reached"},
        {"http://192.168.1.1/", "may not be reached"},
        {"http://169.254.169.254/latest/meta-data", "may not be reached"},
        {"http://100.64.0.1/", "may not be reached"},
        {"http://[::1]/", "may not be reached"},
        {"http://[fe80::1]/", "may not be reached"},
        {"http://[fc00::1]/", "may not be reached"},
        {"http://[::ffff:127.0.0.1]/", "may not be reached"},
        {"http://[64:ff9b::a00:1]/", "may not be reached"},
        {"http://localhost:8080/", "may not be reached"},
        {"http://LocalHost/", "may not be reached"},
        {"http://me.localhost/", "may not be reached"},
    };
    static const struct url_case dressed[] = {
        {"http://2130706433/", "four decimal"}, {"http://0x7f000001/", "four decimal"},
        {"http://0x7f.0.0.1/", "four decimal"}, {"http://0177.0.0.1/", "four decimal"},
        {"http://127.1/", "four decimal"},      {"http://127.0.0.0x1/", "four decimal"},
        {"http://256.1.1.1/", "four decimal"},  {"http://1.2.3.4.5/", "four decimal"},
        {"http://example.1/", "four decimal"},  {"http://0x/", "four decimal"},
        {"http://127.0.0.1./", "dot"},
    };
    CHECK_ALL(closed, false);
    CHECK_ALL(dressed, false);
    CHECK_ALL(dressed, true);
    for (size_t i = 0; i < sizeof(closed) / sizeof(*closed); i++) {
        const char *why = "";
        TEST_CHECK_(callback_url_check(span_text(closed[i].url), true, &why), "%s: %s", closed[i].url, why);
    }
}

static void test_how_long_it_may_be(void)
{
    static char url[CALLBACK_URL_MAX + 2] = "https://example.com/";
    const char *why = "";
    size_t start = strlen(url);
    memset(url + start, 'a', CALLBACK_URL_MAX - start);
    TEST_CHECK(callback_url_check(span_text(url), false, &why));
    url[CALLBACK_URL_MAX] = 'a';
    TEST_CHECK(!callback_url_check(span_text(url), false, &why) && strstr(why, "longer"));
    static char host[300] = "https://";
    memset(host + 8, 'a', 64);
    TEST_CHECK(!callback_url_check(span_text(host), false, &why) && strstr(why, "63"));
    for (size_t i = 0; i < 254; i++)
        host[8 + i] = i % 50 == 49 ? '.' : 'a';
    TEST_CHECK(!callback_url_check(span_text(host), false, &why) && strstr(why, "253"));
    host[8 + 253] = 0;
    TEST_CHECK(callback_url_check(span_text(host), false, &why));
}

static void test_the_host_for_logs_JOB_411(void)
{
    struct span host = callback_url_host(span_text("https://example.com:8080/hook?x"));
    TEST_CHECK(span_equal(host, span_text("example.com:8080")));
    TEST_CHECK(span_equal(callback_url_host(span_text("http://[::1]")), span_text("[::1]")));
    TEST_CHECK(callback_url_host(span_text("nonsense")).size == 0);
}

TEST_LIST
= {
    {"what is a URL, and what is not (JOB-327)", test_what_is_a_url_JOB_327},
    {"what is let through is a URI (JOB-327)", test_what_is_let_through_is_a_uri_JOB_327},
    {"W3: addresses that are not public (AMB-J-61)", test_W3_addresses_that_are_not_public_AMB_J_61},
    {"how long it may be", test_how_long_it_may_be},
    {"the host for logs (JOB-411)", test_the_host_for_logs_JOB_411},
    {NULL, NULL},
};
