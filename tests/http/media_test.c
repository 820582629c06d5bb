/* What a body says it is, and what an answer may be: RFC 9110, 8.3 and 12.5.1, as far as JSON goes. */
#include "acutest.h"

#include <string.h>

#include "http/media.h"

static void test_what_is_JSON(void)
{
    static const char *const yes[] = {"application/json",
                                      "Application/JSON",
                                      "application/json; charset=utf-8",
                                      "application/json;charset=\"UTF-8\"",
                                      "application/json ; charset=Utf-8 ; more=x",
                                      "application/json; more=x",
                                      "application/json;",
                                      " application/json\t; charset=utf-8"};
    static const char *const no[] = {"",
                                     "application/yaml", /* as long as the right one */
                                     "text/json; a=bcd",
                                     "application/jsons",
                                     "application/jso",
                                     "application/json/",
                                     "application/problem+json",
                                     "text/plain",
                                     "*/*",
                                     "application/json; charset=latin1",
                                     "application/json; charset=",
                                     "application/json; charset=utf-16",
                                     "application/json, application/json",
                                     "text/plain; application/json"};
    for (size_t i = 0; i < sizeof(yes) / sizeof(*yes); i++)
        TEST_CHECK_(media_is_json(span_text(yes[i])), "'%s'", yes[i]);
    for (size_t i = 0; i < sizeof(no) / sizeof(*no); i++)
        TEST_CHECK_(!media_is_json(span_text(no[i])), "'%s'", no[i]);
    TEST_CHECK(!media_is_json(span_of(NULL, 0)));
}

/* ---- Accept, in one field or two ---- */

static struct request q;

static const struct request *accepting(const char *first, const char *second)
{
    memset(&q, 0, sizeof(q));
    q.fields[q.fields_count++] = (struct field){span_text("Host"), span_text("application/json")};
    const char *const values[] = {first, second};
    for (size_t i = 0; i < 2; i++) {
        if (!values[i])
            continue;
        q.fields[q.fields_count++] = (struct field){span_text(i ? "ACCEPT" : "Accept"), span_text(values[i])};
        if (!q.known[HEADER_ACCEPT].bytes)
            q.known[HEADER_ACCEPT] = span_text(values[i]);
    }
    return &q;
}

static void test_who_accepts_JSON(void)
{
    static const struct {
        const char *first, *second;
        bool yes;
    } rows[] = {
        {NULL, NULL, true},
        {"", NULL, true},
        {"*/*", NULL, true},
        {"application/json", NULL, true},
        {"APPLICATION/*", NULL, true},
        {"application/problem+json", NULL, true},
        {"text/html, application/json;q=0.9, */*;q=0.8", NULL, true},
        {"application/json;q=0.9", NULL, true},
        {"application/json;q=0.1", NULL, true},
        {"application/json;q=0.001", NULL, true},
        {"application/json ; Q=1", NULL, true},
        {"application/json;q=", NULL, true},
        {"text/html", "application/json", true},
        {"text/html;q=1,\tapplication/json", NULL, true},
        {"text/html", NULL, false},
        {"text/html", "image/png", false},
        {"application/yaml", NULL, false}, /* as long as the right one */
        {"xyz", NULL, false},              /* as long as the widest */
        {"application/json;q=0", NULL, false},
        {"application/json;q=0.000", NULL, false},
        {"application/json; a=b; q=\"0.0\"", NULL, false},
        {"*/*;q=0", NULL, false},
        /* the more exact range decides, wherever it stands */
        {"application/json;q=0, */*", NULL, false},
        {"*/*, application/json;q=0", NULL, false},
        {"*/*;q=0, application/json", NULL, true},
        {"application/json", "*/*;q=0", true},
        {"application/*;q=0, */*", NULL, false},
        {"text/html, application/*;q=0", "application/json;q=0.5", true},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        TEST_CHECK_(media_accepts_json(accepting(rows[i].first, rows[i].second)) == rows[i].yes,
                    "'%s' and '%s'", rows[i].first ? rows[i].first : "nothing",
                    rows[i].second ? rows[i].second : "nothing");
}

static void test_who_asks_for_a_type_by_its_name(void)
{
    static const struct {
        const char *first, *second;
        bool yes;
    } rows[] = {{NULL, NULL, false},
                {"*/*", NULL, false},
                {"text/*", NULL, false},
                {"text/event-stream", NULL, true},
                {"Text/Event-Stream;q=0.9", NULL, true},
                {"text/event-stream;q=0", NULL, false},
                {"text/event-streams", NULL, false},
                {"application/json", "a/b, text/event-stream", true},
                {"a/b;q=1", "text/event-stream;q=0.0", false}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        TEST_CHECK_(media_accepts(accepting(rows[i].first, rows[i].second), "text/event-stream") ==
                        rows[i].yes,
                    "'%s' and '%s'", rows[i].first ? rows[i].first : "nothing",
                    rows[i].second ? rows[i].second : "nothing");
}

TEST_LIST
= {
    {"what is JSON", test_what_is_JSON},
    {"who accepts JSON", test_who_accepts_JSON},
    {"who asks for a type by its name", test_who_asks_for_a_type_by_its_name},
    {NULL, NULL},
};
