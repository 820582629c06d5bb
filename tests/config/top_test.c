#include "acutest.h"

#include <string.h>

#include "config/top.h"
#include "runtime/env.h"

static struct top top;
static char page[16384];

#define NODE(name, pid, more) \
    "{\"name\":\"" name "\",\"pid\":\"" pid "\",\"class\":\"c\",\"state\":\"running\"," more "}"
#define FIGURES(mail, handled, restarts, bytes)                                                          \
    "\"mailbox\":{\"depth\":" #mail ",\"capacity\":10},\"handled\":" #handled ",\"restarts\":" #restarts \
    ",\"arena_bytes\":" #bytes

static void take(const char *text, uint64_t now_ns)
{
    static struct json_node nodes[512];
    struct json_text json = {.nodes = nodes, .nodes_max = 512};
    struct json_error error = {0};
    TEST_ASSERT_(json_text_read(&json, span_of(text, strlen(text)), NULL, &error), "%s", error.what);
    TEST_ASSERT(top_take(&top, &json, now_ns));
}

static void set_up(void)
{
    memset(&top, 0, sizeof(top));
    memcpy(top.where, "here", 5);
    take("{\"tree\":" NODE(
             "root", "0x1",
             FIGURES(0, 0, 0, 10) ",\"children\":[" NODE("a", "0x2", FIGURES(5, 100, 1, 20000)) "," NODE(
                 "b", "0x3", FIGURES(1, 50, 7, 4) ",\"last_exit\":\"killed\"") "]") "}",
         NS_PER_S);
}

static const char *drawn(size_t columns, size_t lines, bool terminal)
{
    struct json_sink sink;
    json_sink_init(&sink, page, sizeof(page) - 1, NULL, NULL);
    top_draw(&top, &sink, columns, lines, terminal);
    TEST_CHECK(sink.status == JSON_OK);
    page[sink.length] = 0;
    return page;
}

/* The names of the rows, as they stand below each other. */
static const char *names(void)
{
    static char found[256];
    found[0] = 0;
    drawn(80, 24, false);
    const char *line = page;
    for (int i = 0; (line = strchr(line, '\n')) && *++line; i++)
        if (i >= 2)
            strncat(strcat(found, found[0] ? " " : ""), line + 2, strcspn(line + 2, " "));
    return found;
}

static void test_rows_and_rates(void)
{
    set_up();
    TEST_CHECK(top.count == 3 && strcmp(top.rows[1].name, "a") == 0 && top.rows[1].mailbox == 5);
    TEST_CHECK(top.rows[0].supervisor && !top.rows[1].supervisor && top.rows[1].rate == 0);
    take("{\"tree\":" NODE(
             "root", "0x1",
             FIGURES(0, 0, 0, 10) ",\"children\":[" NODE("a", "0x2", FIGURES(0, 300, 1, 20)) "," NODE(
                 "b", "0x4", FIGURES(0, 50, 8, 4)) "]") "}",
         3 * NS_PER_S);
    TEST_CHECK(top.rows[1].rate == 100); /* 200 in two seconds */
    TEST_CHECK(top.rows[2].rate == 0);   /* a new actor: not what the one before it has done */
    static struct json_node node[8];
    struct json_text json = {.nodes = node, .nodes_max = 8};
    struct json_error error;
    TEST_CHECK(json_text_read(&json, span_of("{\"x\":1}", 7), NULL, &error) && !top_take(&top, &json, 1));
    TEST_CHECK(json_text_read(&json, span_of("[]", 2), NULL, &error) && !top_take(&top, &json, 1));
}

static void test_eighty_columns_are_enough(void)
{
    set_up();
    drawn(80, 24, false);
    TEST_CHECK_(strncmp(page, "coppice here: 3 actors, 6 messages waiting, 0/s handled, 8 restarts\n", 67) ==
                    0,
                "%s", page);
    for (const char *line = page; *line; line += strcspn(line, "\n") + 1)
        TEST_CHECK_(strcspn(line, "\n") <= 80, "%.100s", line);
    TEST_CHECK(strstr(page, "MEMORY") && strstr(page, "19K") && strchr(page, '\033') == NULL);
    TEST_CHECK(strstr(drawn(120, 24, false), "killed") != NULL);
    drawn(20, 5, true); /* a small one takes what fits */
    size_t count = 0;
    for (const char *line = page; (line = strstr(line, "\r\n")); line++)
        count++;
    TEST_CHECK(count == 5);
}

static void test_colours_are_left_out_when_nobody_wants_them(void)
{
    set_up();
    TEST_CHECK(strstr(drawn(80, 24, true), "\033[7m") == NULL && strstr(page, "\033[K") != NULL);
    TEST_CHECK(strstr(page, "\r\n> ") != NULL); /* the chosen one is marked without them */
    top.color = true;
    TEST_CHECK(strstr(drawn(80, 24, true), "\033[7m") != NULL);
    TEST_CHECK(strchr(drawn(80, 24, false), '\033') == NULL);
}

static bool key(int key_)
{
    enum top_view view = TOP_VIEW_TABLE;
    return top_key(&top, &view, key_);
}

static void test_sorting(void)
{
    set_up();
    TEST_CHECK_(strcmp(names(), "a b root") == 0, "%s", names());
    key('s');
    key('s');
    TEST_CHECK_(top.order == TOP_BY_RESTARTS && strcmp(names(), "b a root") == 0, "%s", names());
    key('s');
    TEST_CHECK_(top.order == TOP_BY_MEMORY && strcmp(names(), "a root b") == 0, "%s", names());
    key('s');
    TEST_CHECK_(top.order == TOP_BY_NAME && strcmp(names(), "a b root") == 0, "%s", names());
    key('s');
    TEST_CHECK_(top.order == TOP_BY_TREE && strcmp(names(), "root a b") == 0, "%s", names());
    key('s');
    TEST_CHECK(top.order == TOP_BY_MAILBOX);
}

static void test_the_filter(void)
{
    set_up();
    for (const char *c = "/roQ"; *c; c++)
        TEST_CHECK(key(*c)); /* while it is typed, a letter is a letter */
    TEST_CHECK(top.typing && strcmp(top.filter, "roQ") == 0);
    key(TOP_KEY_BACKSPACE);
    TEST_CHECK_(strcmp(names(), "root") == 0, "%s", names());
    key(TOP_KEY_ENTER);
    TEST_CHECK(!top.typing && strcmp(names(), "root") == 0);
    key(TOP_KEY_ESCAPE);
    TEST_CHECK(top.filter[0] == 0 && strcmp(names(), "a b root") == 0);
    key('/');
    for (int i = 0; i < 100; i++)
        key('x');
    TEST_CHECK(strlen(top.filter) == TOP_FILTER_MAX - 1);
    TEST_CHECK(strcmp(names(), "") == 0 && key(TOP_KEY_ENTER));
    TEST_CHECK(key(TOP_KEY_DOWN) && key(TOP_KEY_UP) && key(TOP_KEY_ENTER));
}

static void test_the_chosen_one_stays_chosen(void)
{
    set_up();
    drawn(80, 24, true);
    key(TOP_KEY_DOWN);
    drawn(80, 24, true);
    TEST_CHECK(strstr(page, "\r\n> b ") != NULL);
    take("{\"tree\":" NODE(
             "root", "0x1",
             FIGURES(0, 0, 0, 10) ",\"children\":[" NODE("b", "0x3", FIGURES(9, 50, 7, 4)) "," NODE(
                 "a", "0x2", FIGURES(5, 100, 1, 20000)) "]") "}",
         2 * NS_PER_S);
    TEST_CHECK_(strstr(drawn(80, 24, true), "\r\n> b ") != NULL, "%s", page);
    for (int i = 0; i < 5; i++)
        key(TOP_KEY_DOWN);
    TEST_CHECK(top.chosen == 2);
    for (int i = 0; i < 5; i++)
        key(TOP_KEY_UP);
    TEST_CHECK(top.chosen == 0);
}

static void test_keys_of_each_view(void)
{
    enum top_view view = TOP_VIEW_TABLE;
    set_up();
    drawn(80, 24, true);
    TEST_CHECK(top_key(&top, &view, '?') && view == TOP_VIEW_HELP);
    TEST_CHECK(top_key(&top, &view, 's') && view == TOP_VIEW_HELP && top.order == TOP_BY_MAILBOX);
    TEST_CHECK(top_key(&top, &view, 'q') && view == TOP_VIEW_TABLE);
    TEST_CHECK(top_key(&top, &view, TOP_KEY_ENTER) && view == TOP_VIEW_ACTOR);
    TEST_CHECK(top_key(&top, &view, TOP_KEY_ESCAPE) && view == TOP_VIEW_TABLE);
    TEST_CHECK(top_key(&top, &view, ' ') && top.paused);
    TEST_CHECK(strstr(drawn(80, 24, true), "stopped") != NULL);
    TEST_CHECK(top_key(&top, &view, ' ') && !top.paused);
    TEST_CHECK(!top_key(&top, &view, 'q'));
}

TEST_LIST
= {
    {"rows and rates", test_rows_and_rates},
    {"eighty columns are enough", test_eighty_columns_are_enough},
    {"colours are left out when nobody wants them", test_colours_are_left_out_when_nobody_wants_them},
    {"sorting", test_sorting},
    {"the filter", test_the_filter},
    {"the chosen one stays chosen", test_the_chosen_one_stays_chosen},
    {"keys of each view", test_keys_of_each_view},
    {NULL, NULL},
};
