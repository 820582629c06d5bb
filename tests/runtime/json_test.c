#include "acutest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/json.h"

/* A document in a buffer, and what became of it. */
static char buffer[4096];
static struct json_sink sink;
static struct json json;

static void begin(void)
{
    json_sink_init(&sink, buffer, sizeof(buffer), NULL, NULL);
    json_init(&json, &sink);
}

static void expect(enum json_status status, const char *text)
{
    enum json_status got = json_end(&json);

    TEST_CHECK(got == status);
    TEST_MSG("status %s", json_status_name(got));
    TEST_CHECK(sink.length == strlen(text) && memcmp(buffer, text, sink.length) == 0);
    TEST_MSG("got %.*s, expected %s", (int)sink.length, buffer, text);
}

static void expect_failure(enum json_status status)
{
    enum json_status got = json_end(&json);

    TEST_CHECK(got == status);
    TEST_MSG("got %s, expected %s", json_status_name(got), json_status_name(status));
}

static void test_members_and_elements(void)
{
    begin();
    json_object_begin(&json);
    JSON_MEMBER(&json, "text", string, "a");
    JSON_MEMBER(&json, "none", string, NULL);
    json_key(&json, "list");
    json_array_begin(&json);
    json_int(&json, -1);
    json_array_begin(&json);
    json_array_end(&json);
    json_object_begin(&json);
    json_object_end(&json);
    json_bool(&json, true);
    json_bool(&json, false);
    json_null(&json);
    json_array_end(&json);
    JSON_MEMBER(&json, "raw", raw, "[1,2]", 5);
    json_object_end(&json);
    expect(JSON_OK, "{\"text\":\"a\",\"none\":null,\"list\":[-1,[],{},true,false,null],\"raw\":[1,2]}");
}

static void test_integers_to_their_limits(void)
{
    begin();
    json_array_begin(&json);
    json_int(&json, INT64_MIN);
    json_int(&json, INT64_MAX);
    json_int(&json, 0);
    json_uint(&json, UINT64_MAX);
    json_uint_string(&json, UINT64_MAX);
    json_hex_string(&json, 0);
    json_hex_string(&json, UINT64_MAX);
    json_array_end(&json);
    expect(JSON_OK,
           "[-9223372036854775808,9223372036854775807,0,18446744073709551615,\"18446744073709551615\","
           "\"0x0\",\"0xffffffffffffffff\"]");
}

static void test_decimals_are_exact(void)
{
    begin();
    json_array_begin(&json);
    json_decimal(&json, 75900000, 6);
    json_decimal(&json, 75000000, 6);
    json_decimal(&json, -5, 1);
    json_decimal(&json, 1, 18);
    json_decimal(&json, 0, 9);
    json_decimal(&json, 12, 0);
    json_decimal(&json, INT64_MIN, 18);
    json_array_end(&json);
    expect(JSON_OK, "[75.9,75,-0.5,0.000000000000000001,0,12,-9.223372036854775808]");
}

static void test_doubles_read_back_as_the_same_number(void)
{
    static const double values[] = {0.1, 1.0 / 3, 129.95, 9007199254740993.0, 5e-324, 1.7976931348623157e308,
                                    -2.5};

    for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
        begin();
        json_double(&json, values[i]);
        TEST_CHECK(json_end(&json) == JSON_OK);
        buffer[sink.length] = 0;
        TEST_CHECK(strtod(buffer, NULL) == values[i]);
        TEST_MSG("%s", buffer);
    }
    begin();
    json_double(&json, 129.95);
    expect(JSON_OK, "129.95");
    begin();
    json_array_begin(&json);
    json_double(&json, INFINITY);
    json_double(&json, (double)NAN);
    json_array_end(&json);
    expect(JSON_OK, "[null,null]");
}

/* No input can end the string, the line, or put a control character on a terminal. */
static void test_strings_are_escaped(void)
{
    static const char text[] = "\" \\ / \b\f\n\r\t \x01\x0b\x1b\x7f \xc2\x85 \xe2\x80\xa8 \xe2\x80\xa9";

    begin();
    json_string(&json, text);
    expect(JSON_OK, "\"\\\" \\\\ / \\b\\f\\n\\r\\t \\u0001\\u000b\\u001b\\u007f \\u0085 \\u2028 \\u2029\"");
    begin();
    json_string_n(&json, "a\0b", 3);
    expect(JSON_OK, "\"a\\u0000b\"");
    begin();
    json_object_begin(&json);
    JSON_MEMBER(&json, "a\"\n", int, 1);
    json_object_end(&json);
    expect(JSON_OK, "{\"a\\\"\\n\":1}");
}

/* A value that somebody else wrote means the same, on one line that no terminal obeys. */
static void test_foreign_values_are_tamed(void)
{
    static const char text[] =
        "{\n\t\"a\xc2\x9b\":\r[\"\\u001b\x7f\xc3\xa9\xc2\x80\xc2\xa0\", \"\xe2\x80\xa8\"]}";

    begin();
    json_array_begin(&json);
    json_foreign(&json, text, sizeof(text) - 1);
    json_foreign(&json, "7", 1);
    json_array_end(&json);
    expect(JSON_OK, "[{  \"a\\u009b\": [\"\\u001b\\u007f\xc3\xa9\\u0080\xc2\xa0\", \"\\u2028\"]},7]");
}

static void test_valid_utf8_is_kept(void)
{
    static const char text[] =
        "\xc3\xa9 \xe2\x82\xac \xed\x9f\xbf \xef\xbf\xbf \xf0\x9f\x8c\xb1 \xf4\x8f\xbf\xbf";
    char quoted[64];

    snprintf(quoted, sizeof(quoted), "\"%s\"", text);
    begin();
    json_string(&json, text);
    expect(JSON_OK, quoted);
}

static void test_invalid_utf8_becomes_the_replacement_character(void)
{
#define R "\xef\xbf\xbd"
    static const struct {
        const char *name, *in, *out;
    } cases[] = {
        {"lone continuation", "\x80", R},
        {"never a lead byte", "\xff", R},
        {"overlong in two bytes", "\xc0\xaf", R R},
        {"overlong in three bytes", "\xe0\x80\xaf", R R R},
        {"overlong in four bytes", "\xf0\x80\x80\xaf", R R R R},
        {"surrogate", "\xed\xa0\x80", R R R},
        {"above U+10FFFF", "\xf4\x90\x80\x80", R R R R},
        {"cut at the end", "ab\xe2\x82", "ab" R R},
        {"cut by a quote", "\xe2\x82\"", R R "\\\""},
        {"text goes on", "\xc3(", R "("},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char quoted[64];

        TEST_CASE(cases[i].name);
        snprintf(quoted, sizeof(quoted), "\"%s\"", cases[i].out);
        begin();
        json_string(&json, cases[i].in);
        expect(JSON_OK, quoted);
    }
#undef R
}

/* What one character alone becomes it becomes at every place of a longer text. */
static void test_each_byte_at_each_place(void)
{
    for (unsigned byte = 0; byte < 256; byte++) {
        char alone[16], text[18], expected[64];
        size_t length;

        begin();
        text[0] = (char)byte;
        json_string_n(&json, text, 1);
        length = sink.length - 2;
        memcpy(alone, buffer + 1, length);
        for (size_t size = 1; size <= sizeof(text); size++)
            for (size_t at = 0; at < size; at++) {
                memset(text, 'a', size);
                text[at] = (char)byte;
                snprintf(expected, sizeof(expected), "\"%.*s%.*s%.*s\"", (int)at, "aaaaaaaaaaaaaaaaaa",
                         (int)length, alone, (int)(size - at - 1), "aaaaaaaaaaaaaaaaaa");
                begin();
                json_string_n(&json, text, size);
                expect(JSON_OK, expected);
            }
    }
}

static void test_nesting_is_bounded(void)
{
    begin();
    for (int i = 0; i < JSON_DEPTH_MAX; i++)
        json_array_begin(&json);
    for (int i = 0; i < JSON_DEPTH_MAX; i++)
        json_array_end(&json);
    expect_failure(JSON_OK);

    begin();
    for (int i = 0; i <= JSON_DEPTH_MAX; i++)
        json_array_begin(&json);
    expect_failure(JSON_DEPTH);
}

static void misuse_value_without_key(void)
{
    json_object_begin(&json);
    json_int(&json, 1);
}

static void misuse_key_in_array(void)
{
    json_array_begin(&json);
    json_key(&json, "a");
}

static void misuse_key_after_key(void)
{
    json_object_begin(&json);
    json_key(&json, "a");
    json_key(&json, "b");
}

static void misuse_end_after_key(void)
{
    json_object_begin(&json);
    json_key(&json, "a");
    json_object_end(&json);
}

static void misuse_wrong_end(void)
{
    json_object_begin(&json);
    json_array_end(&json);
}

static void misuse_end_of_nothing(void)
{
    json_array_end(&json);
}

static void misuse_second_value(void)
{
    json_int(&json, 1);
    json_int(&json, 2);
}

static void misuse_open_at_the_end(void)
{
    json_array_begin(&json);
}

static void misuse_nothing_at_all(void)
{
}

static void test_misuse_is_reported(void)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {
        {"value without key", misuse_value_without_key},
        {"key in array", misuse_key_in_array},
        {"key after key", misuse_key_after_key},
        {"end after key", misuse_end_after_key},
        {"wrong end", misuse_wrong_end},
        {"end of nothing", misuse_end_of_nothing},
        {"second value", misuse_second_value},
        {"open at the end", misuse_open_at_the_end},
        {"nothing at all", misuse_nothing_at_all},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        TEST_CASE(cases[i].name);
        begin();
        cases[i].run();
        expect_failure(JSON_MISUSE);
    }
}

static void document_write(struct json *to)
{
    json_object_begin(to);
    JSON_MEMBER(to, "name", string, "caf\xc3\xa9 \n");
    JSON_MEMBER(to, "count", uint, 12345);
    json_key(to, "list");
    json_array_begin(to);
    json_decimal(to, 12345, 2);
    json_hex_string(to, 0xbeef);
    json_array_end(to);
    json_object_end(to);
}

static const char document[] = "{\"name\":\"caf\xc3\xa9 \\n\",\"count\":12345,\"list\":[123.45,\"0xbeef\"]}";

/* One byte less than the document needs: JSON_FULL, and never a byte behind the buffer. */
static void test_a_full_buffer_ends_the_document(void)
{
    size_t needed = sizeof(document) - 1;

    for (size_t capacity = 1; capacity <= needed; capacity++) {
        memset(buffer, '#', sizeof(buffer));
        json_sink_init(&sink, buffer, capacity, NULL, NULL);
        json_init(&json, &sink);
        document_write(&json);
        TEST_CHECK(json_end(&json) == (capacity < needed ? JSON_FULL : JSON_OK));
        TEST_CHECK(buffer[capacity] == '#');
        TEST_CHECK(sink.length <= capacity && memcmp(buffer, document, sink.length) == 0);
    }
}

struct collected {
    char text[256];
    size_t length;
    unsigned calls;
    unsigned calls_allowed;
};

static bool collect(void *context, const char *bytes, size_t length)
{
    struct collected *collected = context;

    if (collected->calls == collected->calls_allowed)
        return false;
    collected->calls++;
    TEST_CHECK(length > 0);
    memcpy(collected->text + collected->length, bytes, length);
    collected->length += length;
    return true;
}

static void test_any_buffer_size_streams_the_same_bytes(void)
{
    for (size_t capacity = 1; capacity <= sizeof(document); capacity++) {
        struct collected collected = {.calls_allowed = 1000};

        json_sink_init(&sink, buffer, capacity, collect, &collected);
        json_init(&json, &sink);
        document_write(&json);
        TEST_CHECK(json_end(&json) == JSON_OK);
        TEST_CHECK(collected.length == sizeof(document) - 1);
        TEST_CHECK(memcmp(collected.text, document, collected.length) == 0);
    }
}

/* A reader that went away at any point: nothing more is handed to it, and the status says so. */
static void test_a_failed_flush_sticks(void)
{
    for (unsigned allowed = 0; allowed < 5; allowed++) {
        struct collected collected = {.calls_allowed = allowed};

        json_sink_init(&sink, buffer, 8, collect, &collected);
        json_init(&json, &sink);
        document_write(&json);
        TEST_CHECK(json_end(&json) == JSON_FLUSH);
        TEST_CHECK(collected.calls == allowed);
        TEST_CHECK(collected.length == allowed * 8);
    }
}

static void test_lines_follow_each_other(void)
{
    begin();
    json_int(&json, 1);
    TEST_CHECK(json_end_line(&json) == JSON_OK);
    json_array_begin(&json);
    json_array_end(&json);
    TEST_CHECK(json_end_line(&json) == JSON_OK);
    TEST_CHECK(sink.length == 5 && memcmp(buffer, "1\n[]\n", 5) == 0);
    TEST_CHECK(json_end_line(&json) == JSON_MISUSE);
}

TEST_LIST
= {
    {"members_and_elements", test_members_and_elements},
    {"integers_to_their_limits", test_integers_to_their_limits},
    {"decimals_are_exact", test_decimals_are_exact},
    {"doubles_read_back_as_the_same_number", test_doubles_read_back_as_the_same_number},
    {"strings_are_escaped", test_strings_are_escaped},
    {"foreign_values_are_tamed", test_foreign_values_are_tamed},
    {"valid_utf8_is_kept", test_valid_utf8_is_kept},
    {"invalid_utf8_becomes_the_replacement_character", test_invalid_utf8_becomes_the_replacement_character},
    {"each_byte_at_each_place", test_each_byte_at_each_place},
    {"nesting_is_bounded", test_nesting_is_bounded},
    {"misuse_is_reported", test_misuse_is_reported},
    {"a_full_buffer_ends_the_document", test_a_full_buffer_ends_the_document},
    {"any_buffer_size_streams_the_same_bytes", test_any_buffer_size_streams_the_same_bytes},
    {"a_failed_flush_sticks", test_a_failed_flush_sticks},
    {"lines_follow_each_other", test_lines_follow_each_other},
    {NULL, NULL},
};
