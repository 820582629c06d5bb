#include "acutest.h"

#include <string.h>

#include "config/people.h"

static char page[8192];

static const char *people(const char *text)
{
    static struct json_node nodes[512];
    struct json_text json = {.nodes = nodes, .nodes_max = 512};
    struct json_error error = {0};
    struct json_sink sink;
    json_sink_init(&sink, page, sizeof(page) - 1, NULL, NULL);
    TEST_ASSERT_(json_text_read(&json, span_of(text, strlen(text)), NULL, &error), "%s", error.what);
    people_write(&sink, &json, json_root(&json));
    page[sink.length] = 0;
    return page;
}

#define CHECK(text, wanted) TEST_CHECK_(strcmp(people(text), wanted) == 0, "%s is\n%s", text, page)

static void test_values_and_objects(void)
{
    CHECK("7", "7\n");
    CHECK("\"a b\"", "a b\n");
    CHECK("{}", "");
    CHECK("{\"a_key\": 1, \"b\": null, \"longer name\": \"x\", \"e\": \"\"}",
          "a key        1\nb            -\nlonger name  x\ne            -\n");
    CHECK("{\"a\": {\"b\": true, \"c\": {}}, \"d\": 129.95}", "a\n  b  true\n  c  -\nd  129.95\n");
    CHECK("{\"a\": [\"x\", 2, null], \"b\": []}", "a x, 2, -\nb -\n");
    /* what was escaped stays escaped: nothing of it reaches the terminal */
    CHECK("{\"a\": \"x\\u001b[2Jy\\n\"}", "a  x\\u001b[2Jy\\n\n");
}

static void test_lists_of_objects_are_tables(void)
{
    CHECK("[{\"name\": \"a\", \"at_us\": 1}, {\"name\": \"long\", \"at_us\": 22, \"why\": \"x\"}]",
          "NAME  AT US  WHY\na     1      -\nlong  22     x\n");
    CHECK("{\"keys\": [{\"kid\": \"1\", \"jwk\": {\"x\": 1}}, {\"kid\": \"2\", \"jwk\": null}]}",
          "keys\n  KID\n  1\n  2\n");
    CHECK("[{\"n\": \"a\", \"l\": [\"p\", 2]}, {\"n\": \"b\", \"l\": []}]", "N  L\na  p, 2\nb  -\n");
    CHECK("[{\"n\": \"a\", \"l\": [{}]}]", "N\na\n");
    CHECK("[{\"n\": \"\xc3\xa4\xc3\xb6\"}, {\"n\": \"abcd\", \"m\": 1}]",
          "N     M\n\xc3\xa4\xc3\xb6    -\nabcd  1\n"); /* by characters, not by bytes */
}

static void test_long_cells_are_cut_between_characters(void)
{
    char text[512] = "[{\"n\": \"", wanted[512] = "N\n";
    for (int i = 0; i < 61; i++)
        strcat(text, "\xc3\xa4");
    strcat(text, "\"}]");
    for (int i = 0; i < 57; i++)
        strcat(wanted, "\xc3\xa4");
    strcat(wanted, "...\n");
    CHECK(text, wanted);
    struct json_sink sink;
    json_sink_init(&sink, page, sizeof(page) - 1, NULL, NULL);
    static struct json_node nodes[16];
    struct json_text json = {.nodes = nodes, .nodes_max = 16};
    struct json_error error = {0};
    TEST_ASSERT(json_text_read(&json, span_of(text, strlen(text)), NULL, &error));
    people_write_wide(&sink, &json, json_root(&json));
    TEST_CHECK(sink.length == 2 + 2 * 61 + 1 && !memchr(page, '.', sink.length)); /* whole */
}

TEST_LIST
= {
    {"values and objects", test_values_and_objects},
    {"lists of objects are tables", test_lists_of_objects_are_tables},
    {"long cells are cut between characters", test_long_cells_are_cut_between_characters},
    {NULL, NULL},
};
