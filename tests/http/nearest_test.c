#include "acutest.h"

#include <string.h>

#include "http/nearest.h"

static void test_distance(void)
{
    static const struct {
        const char *a, *b;
        size_t distance;
    } cases[] = {
        {"", "", 0},
        {"", "abc", 3},
        {"abc", "", 3},
        {"serve", "serve", 0},
        {"serve", "server", 1},
        {"serve", "sreve", 1},
        {"serve", "serbe", 1},
        {"serve", "erve", 1},
        {"ca", "abc", 3},
        {"kitten", "sitting", 3},
        {"abcd", "badc", 2},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        TEST_CHECK_(nearest_distance(cases[i].a, cases[i].b) == cases[i].distance, "%s to %s is %zu",
                    cases[i].a, cases[i].b, nearest_distance(cases[i].a, cases[i].b));
}

static void test_long_words_match_themselves_only(void)
{
    char a[NEAREST_LENGTH_MAX + 2], b[NEAREST_LENGTH_MAX + 2];
    memset(a, 'x', sizeof(a) - 1);
    a[sizeof(a) - 1] = 0;
    memcpy(b, a, sizeof(b));
    TEST_CHECK(nearest_distance(a, b) == 0);
    b[3] = 'y';
    TEST_CHECK(nearest_distance(a, b) > NEAREST_LENGTH_MAX);
}

static const char *best(const char *word)
{
    struct nearest n = {.word = word};
    nearest_offer(&n, "serve");
    nearest_offer(&n, "tree");
    nearest_offer(&n, "topology");
    return n.best ? n.best : "";
}

static void test_best_is_the_nearest_within_a_third(void)
{
    TEST_CHECK(strcmp(best("srve"), "serve") == 0);
    TEST_CHECK(strcmp(best("tre"), "tree") == 0);
    TEST_CHECK(strcmp(best("toplogi"), "topology") == 0);
    TEST_CHECK(strcmp(best("topology"), "topology") == 0);
    TEST_CHECK(strcmp(best("frobnicate"), "") == 0);
    TEST_CHECK(strcmp(best("xx"), "") == 0);
}

TEST_LIST
= {
    {"distance", test_distance},
    {"long words match themselves only", test_long_words_match_themselves_only},
    {"the best is the nearest within a third of the word", test_best_is_the_nearest_within_a_third},
    {NULL, NULL},
};
