/* One page of an operator's list: where it ends, and where the next one goes on. Over HTTP: tests/http/control_test.c and others. */
#include "acutest.h"

#include <stdio.h>
#include <string.h>

#include "http/sheet.h"

static char room[SHEET_BYTES], texts[SHEET_BYTES + 1];

static void begin(struct sheet *s, uint64_t limit)
{
    *s = (struct sheet){.limit = limit, .bytes = room};
}

/* A row of so many letters. */
static void add(struct sheet *s, uint8_t key, size_t letters)
{
    struct json *json = sheet_row(s);
    memset(texts, 'a', letters);
    if (!json)
        return;
    json_string_n(json, texts, letters);
    sheet_keep(s, span_of(&key, 1));
}

static bool reads(const struct sheet *s, const char *text)
{
    char bytes[256];
    struct json_sink sink;
    struct json json;
    json_sink_init(&sink, bytes, sizeof(bytes), NULL, NULL);
    json_init(&json, &sink);
    json_object_begin(&json);
    sheet_write(s, "rows", &json);
    json_object_end(&json);
    TEST_CHECK(json_end(&json) == JSON_OK);
    bool same = sink.length == strlen(text) && memcmp(bytes, text, sink.length) == 0;
    TEST_CHECK_(same, "%.*s, not %s", (int)sink.length, bytes, text);
    return same;
}

static bool ended_with(const struct sheet *s, uint8_t key)
{
    return span_equal(key_span(&s->last), span_of(&key, 1));
}

static void test_a_sheet_ends_with_its_limit(void)
{
    struct sheet s;
    begin(&s, 2);
    reads(&s, "{\"rows\":[]}");
    add(&s, 1, 1);
    TEST_CHECK(!s.more && s.count == 1);
    add(&s, 2, 2);
    TEST_CHECK(!s.more && s.count == 2); /* there may be no other */
    add(&s, 3, 3);
    TEST_CHECK(s.more && s.count == 2 && ended_with(&s, 2));
    add(&s, 4, 1);
    TEST_CHECK(s.more && s.count == 2 && ended_with(&s, 2));
    reads(&s, "{\"rows\":[\"a\",\"aa\"]}");
}

/* Whatever doesn't fit is for the next page, whole, and so is what comes behind it, though it would fit. */
static void test_a_sheet_ends_with_its_bytes(void)
{
    struct sheet s;
    for (size_t over = 0; over <= 3; over++) { /* quotes and comma: 5 bytes beside the letters */
        begin(&s, 100);
        add(&s, 1, 1);
        size_t most = SHEET_BYTES - s.size - 3;
        add(&s, 2, most + over);
        TEST_CHECK_(s.count == (over ? 1u : 2u) && s.more == (over > 0), "%zu too many", over);
        TEST_CHECK(s.size <= SHEET_BYTES && ended_with(&s, over ? 1 : 2));
        add(&s, 3, 1);
        TEST_CHECK(s.more && ended_with(&s, over ? 1 : 2));
    }
    reads(&s, "{\"rows\":[\"a\"]}");
    TEST_CHECK(s.count == 1);
}

static void test_where_the_page_before_ended_is_passed_over(void)
{
    struct sheet s;
    uint8_t key = 7, other = 8;
    begin(&s, 1);
    TEST_CHECK(!sheet_passed(&s, span_of(&key, 1)));
    key_add(&s.from, &key, 1);
    TEST_CHECK(sheet_passed(&s, span_of(&key, 1)) && !sheet_passed(&s, span_of(&other, 1)));
}

TEST_LIST
= {
    {"a sheet ends with its limit", test_a_sheet_ends_with_its_limit},
    {"a sheet ends with its bytes", test_a_sheet_ends_with_its_bytes},
    {"where the page before ended is passed over", test_where_the_page_before_ended_is_passed_over},
    {NULL, NULL},
};
