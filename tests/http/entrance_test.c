#include "acutest.h"

#include "tests/support/operated.h"

#define BROWSER "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n"

static void test_who_asks_is_told_where_to_go(void)
{
    operated_start(&(struct operated_options){.front = "client"});
    TEST_CHECK(operated_get("/") == 200 && operated_has("\"name\":\"Coppice\",\"version\":\"test\""));
    TEST_CHECK(strstr(operated_head, "Content-Type: application/json\r\n") != NULL);
    TEST_CHECK(strstr(operated_head, "Vary: Accept\r\n") != NULL);
    TEST_CHECK(operated_has("\"listener\":\"client\"") && operated_has("\"href\":\"openapi/jobs.json\"") &&
               operated_has("\"href\":\"readyz\""));
    TEST_CHECK(strstr(operated_body, "metrics") == NULL); /* that is no client's */
    TEST_CHECK(operated_ask("GET", "/", "Accept: application/json, text/html\r\n", NULL) == 200 &&
               operated_body[0] == '{');
    TEST_CHECK(operated_ask("GET", "/", "Accept: */*, text/html;q=0\r\n", NULL) == 200 &&
               operated_body[0] == '{');
    TEST_CHECK(operated_ask("GET", "/", "Accept: TEXT/HTML\r\n", NULL) == 200 && operated_body[0] == '<');
    TEST_CHECK(operated_ask("HEAD", "/", "", NULL) == 200 && operated_body[0] == 0);
    TEST_CHECK(strstr(operated_head, "Content-Length: 0\r\n") == NULL);
    TEST_CHECK(operated_post("/", NULL) == 405 && strstr(operated_head, "\nAllow: GET, HEAD, OPTIONS\r\n"));
    TEST_CHECK(operated_get("/nowhere") == 404);
    operated_stop();
}

/* Nothing of the page comes from elsewhere, or does anything. */
static void test_a_browser_gets_a_page(void)
{
    operated_start(&(struct operated_options){.front = "client"});
    TEST_CHECK(operated_ask("GET", "/", BROWSER, NULL) == 200);
    TEST_CHECK(strstr(operated_head, "Content-Type: text/html; charset=utf-8\r\n") != NULL);
    TEST_CHECK(strstr(operated_head, "Content-Security-Policy: default-src ") != NULL);
    TEST_CHECK(operated_has("<title>Coppice test</title>") && operated_has("<a href=\"openapi/jobs.json\">"));
    TEST_CHECK(!strstr(operated_body, "//") && !strstr(operated_body, "<script") &&
               !strstr(operated_body, "style") && !strstr(operated_body, "href=\"/"));
    operated_stop();
}

static void test_operators_are_told_of_what_is_theirs(void)
{
    operated_start(NULL);
    TEST_CHECK(operated_get("/") == 200 && operated_has("\"listener\":\"operator\"") &&
               operated_has("\"href\":\"stats/tree\""));
    TEST_CHECK(operated_ask("GET", "/", BROWSER, NULL) == 200 && operated_has("<code>coppice tree</code>"));
    TEST_CHECK(operated_has("<code>metrics</code>") && !strstr(operated_body, "<a href=\"metrics\">"));
    operated_stop();
}

TEST_LIST
= {
    {"who asks is told where to go", test_who_asks_is_told_where_to_go},
    {"a browser gets a page", test_a_browser_gets_a_page},
    {"operators are told of what is theirs", test_operators_are_told_of_what_is_theirs},
    {NULL, NULL},
};
