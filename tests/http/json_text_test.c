/* JSON from outside: each kind of unsound text is refused at its byte, each limit holds at its edge, and what was read
 * means what was written. reliability.md 3.4 names the hostile ones. */
#include "acutest.h"

#include <math.h>
#include "http/json_text.h"

#define TEXT_MAX (2u << 20)

static struct json_node nodes[JSON_TEXT_NODES_MAX], more_nodes[JSON_TEXT_NODES_MAX];
static char text[TEXT_MAX];
static size_t text_size;

static void add_bytes(const char *bytes, size_t size)
{
    TEST_ASSERT(text_size + size <= sizeof text);
    memcpy(text + text_size, bytes, size);
    text_size += size;
}

static void add(const char *piece, size_t times)
{
    while (times--)
        add_bytes(piece, strlen(piece));
}

static struct json_error error;

static bool read_into(struct json_text *json, struct json_node *room, struct span from,
                      const struct json_limits *limits)
{
    /* A copy that ends where memory ends for the sanitizers: nothing behind the text is looked at. */
    char *copy = malloc(from.size + !from.size);
    bool sound;
    TEST_ASSERT(copy != NULL);
    if (from.size)
        memcpy(copy, from.bytes, from.size);
    *json = (struct json_text){.nodes = room, .nodes_max = JSON_TEXT_NODES_MAX, .seed = 0x5eed};
    error = (struct json_error){0};
    sound = json_text_read(json, span_of(copy, from.size), limits, &error);
    json->text = from;
    free(copy);
    return sound;
}

static struct json_text read_here(const char *from)
{
    struct json_text json;
    TEST_ASSERT_(read_into(&json, nodes, span_text(from), NULL), "%s: %s at %u", from, error.what, error.at);
    return json;
}

static bool built_is_sound(const struct json_limits *limits)
{
    struct json_text json;
    return read_into(&json, nodes, span_of(text, text_size), limits);
}

/* ---- grammar ---- */

static void sound_texts(void)
{
    static const char *const sound[] = {
        "null",
        "true",
        "false",
        "0",
        "-0",
        "12.5e+3",
        "1E400",
        "-1e-400",
        "9007199254740993",
        "\"\"",
        " \t\r\n[ ]\n",
        "{ }",
        "[1,2 , 3]",
        "{\"a\":1,\"b\":{\"a\":[{}]}}",
        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud83d\\ude00\"",
        "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\x7f\"",
        "\"\xf4\x8f\xbf\xbf \xee\x80\x80 \xed\x9f\xbf \xc2\x80\"",
        "{\"\":0}",
        "[\"\xef\xbb\xbf\"]",
        "1e000000000000001",
        "1e+0000000000000000",
    };
    for (size_t i = 0; i < sizeof sound / sizeof *sound; i++) {
        struct json_text json;
        TEST_CHECK_(read_into(&json, nodes, span_text(sound[i]), NULL), "%s: %s at %u", sound[i], error.what,
                    error.at);
        TEST_CHECK(json_root(&json)->next == json.count);
    }
}

static void unsound_texts(void)
{
#define CONTROL "a control character in a string"
#define VALUE   "a value is missing"
#define ESCAPE  "this is no escape"
#define HALF    "half of a surrogate pair"
#define UTF8    "this is not UTF-8"
#define NUMBER  "this is no number"
#define BEHIND  "something stands behind the value"
#define NAME    "a member's name is missing"
#define COMMA   "a comma or the container's end is missing"
#define EARLY   "the text ends too early"
#define TWICE   "a member of this name was there before"
#define STRING  "the string does not end"
    static const struct {
        const char *text;
        uint32_t at;
        const char *what;
    } unsound[] = {
        {"", 0, VALUE},
        {" ", 1, VALUE},
        {"\xef\xbb\xbf{}", 0, "a byte order mark"},
        {"\xfe\xff", 0, VALUE},
        {"{} {}", 3, BEHIND},
        {"1 2", 2, BEHIND},
        {"null\v", 4, BEHIND},
        {"nul", 0, VALUE},
        {"nulL", 0, VALUE},
        {"tru", 0, VALUE},
        {"fals", 0, VALUE},
        {"True", 0, VALUE},
        {"NaN", 0, VALUE},
        {"Infinity", 0, VALUE},
        {"+1", 0, VALUE},
        {".5", 0, VALUE},
        {"-", 1, NUMBER},
        {"-a", 1, NUMBER},
        {"01", 1, BEHIND},
        {"-01", 2, BEHIND},
        {"1.", 2, NUMBER},
        {"1.e1", 2, NUMBER},
        {"1e", 2, NUMBER},
        {"1e+", 3, NUMBER},
        {"1e1.0", 3, BEHIND},
        {"0x10", 1, BEHIND},
        {"1_000", 1, BEHIND},
        {"[", 1, VALUE},
        {"[1", 2, EARLY},
        {"[1,]", 3, VALUE},
        {"[,1]", 1, VALUE},
        {"[1 2]", 3, COMMA},
        {"[1}", 2, COMMA},
        {"]", 0, VALUE},
        {"{", 1, NAME},
        {"{1:2}", 1, NAME},
        {"{'a':2}", 1, NAME},
        {"{a:2}", 1, NAME},
        {"{\"a\"}", 4, "a colon is missing"},
        {"{\"a\"", 4, "a colon is missing"},
        {"{\"a\":}", 5, VALUE},
        {"{\"a\":1", 6, EARLY},
        {"{\"a\":1,}", 7, NAME},
        {"{\"a\":1]", 6, COMMA},
        {"{\"a\" 1}", 5, "a colon is missing"},
        {"[1] // a", 4, BEHIND},
        {"[/**/1]", 1, VALUE},
        {"\"", 1, STRING},
        {"\"abcdefghijklmnop", 17, STRING},
        {"\"abc\\\"", 6, STRING},
        {"\"\\", 1, ESCAPE},
        {"\"\\x41\"", 1, ESCAPE},
        {"\"\\a\"", 1, ESCAPE},
        {"\"\\u12\"", 1, ESCAPE},
        {"\"\\u123", 1, ESCAPE},
        {"\"\\u12g4\"", 1, ESCAPE},
        {"\"\\U0041\"", 1, ESCAPE},
        {"\"\\u0000\"", 1, "an escaped NUL"},
        {"\"a\\u0000b\"", 2, "an escaped NUL"},
        {"{\"a\\u0000\":1}", 3, "an escaped NUL"},
        {"\"\\ud800\"", 1, HALF},
        {"\"\\udc00\"", 1, HALF},
        {"\"\\ud800\\ud800\"", 1, HALF},
        {"\"\\ud800x\\udc00\"", 1, HALF},
        {"\"\\ud800\\u0041\"", 1, HALF},
        {"\"\\ud800\\ue000\"", 1, HALF},
        {"\"\\ud800\\x0123 \"", 1, HALF},
        {"\"\\ud800\\n\"", 1, HALF},
        {"\"\\ud800\\udc0", 1, HALF},
        {"\"\x80\"", 1, UTF8},
        {"\"\xc0\x80\"", 1, UTF8},
        {"\"\xc1\xbf\"", 1, UTF8},
        {"\"\xe0\x80\xaf\"", 1, UTF8},
        {"\"\xed\xa0\x80\"", 1, UTF8},
        {"\"\xf0\x80\x80\xaf\"", 1, UTF8},
        {"\"\xf4\x90\x80\x80\"", 1, UTF8},
        {"\"\xf5\x80\x80\x80\"", 1, UTF8},
        {"\"\xff\"", 1, UTF8},
        {"\"\xc3", 1, UTF8},
        {"\"\xe2\x82\"", 1, UTF8},
        {"\"0123456789abcd\xe2\x82\xac\xff\"", 18, UTF8},
        {"\"\n\"", 1, CONTROL},
        {"\"\x1f\"", 1, CONTROL},
        {"\"01234567\t\"", 9, CONTROL},
        {"{\"a\":1,\"a\":2}", 7, TWICE},
        {"{\"a\":1,\"b\":2,\"a\":1}", 13, TWICE},
        {"{\"a\":1,\"\\u0061\":2}", 7, TWICE},
        {"{\"\\u0061b\":1,\"a\\u0062\":2}", 13, TWICE},
        {"{\"\\/\":1,\"/\":2}", 8, TWICE},
        {"{\"\\u00e9\":1,\"\xc3\xa9\":2}", 12, TWICE},
        {"{\"\":1,\"\":2}", 6, TWICE},
        {"[{\"x\":{\"a\":{},\"a\":[]}}]", 14, TWICE},
        {"{\"1\":0,\"2\":0,\"3\":0,\"4\":0,\"5\":0,\"6\":0,\"7\":0,\"8\":0,\"9\":0,\"\\u0033\":0}", 55,
         TWICE},
    };
    for (size_t i = 0; i < sizeof unsound / sizeof *unsound; i++) {
        struct json_text json;
        bool sound = read_into(&json, nodes, span_text(unsound[i].text), NULL);
        TEST_CHECK_(!sound, "%s", unsound[i].text);
        if (!sound)
            TEST_CHECK_(error.at == unsound[i].at && strcmp(error.what, unsound[i].what) == 0 && !error.limit,
                        "%s: %s at %u", unsound[i].text, error.what, error.at);
    }
}

/* Each byte at each place among eight and more, alone in a string: sound, or refused there. */
static void every_byte_at_every_place(void)
{
    for (unsigned byte = 0; byte < 256; byte++)
        for (unsigned place = 1; place < 50; place++) {
            struct json_text json;
            bool sound, wanted = byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
            char around[52];
            memset(around, 'x', sizeof around);
            around[0] = around[51] = '"';
            around[place] = (char)byte;
            sound = read_into(&json, nodes, span_of(around, sizeof around), NULL);
            if (byte == '"')
                TEST_CHECK_(!sound && error.at == place + 1, "quote at %u: %u", place, error.at);
            else
                TEST_CHECK_(sound == wanted && (sound || error.at == place), "%02x at %u: %u", byte, place,
                            error.at);
        }
}

static void nul_bytes(void)
{
    struct json_text json;
    TEST_CHECK(!read_into(&json, nodes, span_of("1\0", 2), NULL) && error.at == 1);
    TEST_CHECK(!read_into(&json, nodes, span_of("\"\0\"", 3), NULL) && error.at == 1);
    TEST_CHECK(!read_into(&json, nodes, span_of("\0", 1), NULL) && error.at == 0);
    json = (struct json_text){.nodes = nodes, .nodes_max = 1};
    TEST_CHECK(!json_text_read(&json, span_of(NULL, 0), NULL, &error) && error.at == 0);
}

/* Whatever of a sound text comes too little is refused. */
static void every_beginning_is_refused(void)
{
    static const char whole[] =
        "{\"a\":[1.5e3,true,null,false,{\"\\u00e9\\ud83d\\ude00\":\"\xe2\x82\xac\"}],\"b\":-0}";
    struct json_text json;
    TEST_CHECK(read_into(&json, nodes, span_text(whole), NULL));
    for (size_t size = 0; size < sizeof whole - 1; size++)
        TEST_CHECK_(!read_into(&json, nodes, span_of(whole, size), NULL), "%zu bytes", size);
}

/* ---- limits ---- */

static void check_limit(bool within, const char *what)
{
    if (within)
        TEST_CHECK_(built_is_sound(NULL), "%s", error.what);
    else
        TEST_CHECK_(!built_is_sound(NULL) && error.limit && strcmp(error.what, what) == 0, "%s, not %s",
                    error.what, what);
    text_size = 0;
}

static void depth_limit(void)
{
    for (size_t depth = JSON_TEXT_DEPTH_MAX; depth <= JSON_TEXT_DEPTH_MAX + 1; depth++) {
        text_size = 0;
        add("[", depth);
        add("]", depth);
        check_limit(depth <= JSON_TEXT_DEPTH_MAX, "nested too deep");
        add("{\"a\":", depth - 1);
        add("{}", 1);
        add("}", depth - 1);
        check_limit(depth <= JSON_TEXT_DEPTH_MAX, "nested too deep");
    }
    add("[", 1000000);
    check_limit(false, "nested too deep");
    add("[1,2,3]", 1);
    TEST_CHECK(built_is_sound(&(struct json_limits){.depth = 1}));
    text_size = 0;
    add("[1,[],3]", 1);
    TEST_CHECK(!built_is_sound(&(struct json_limits){.depth = 1}) && error.at == 3 && error.limit);
    text_size = 0;
}

static void count_limits(void)
{
    text_size = 0;
    for (size_t count = JSON_TEXT_ELEMENTS_MAX; count <= JSON_TEXT_ELEMENTS_MAX + 1; count++) {
        add("[0", 1);
        add(",0", count - 1);
        add("]", 1);
        check_limit(count <= JSON_TEXT_ELEMENTS_MAX, "an array of too many elements");
    }
    for (size_t count = JSON_TEXT_MEMBERS_MAX; count <= JSON_TEXT_MEMBERS_MAX + 1; count++) {
        for (size_t i = 0; i < count; i++) {
            char member[32];
            snprintf(member, sizeof member, "%c\"%zu\":0", i ? ',' : '{', i);
            add(member, 1);
        }
        add("}", 1);
        check_limit(count <= JSON_TEXT_MEMBERS_MAX, "an object of too many members");
    }
    /* 1 + 66 arrays of 991 and their elements, and one more. */
    for (size_t more = 0; more <= 1; more++) {
        add("[", 1);
        for (size_t i = 0; i < 66; i++) {
            add("[0", 1);
            add(",0", 990);
            add("],", 1);
        }
        add("[0", 1);
        add(",0", JSON_TEXT_NODES_MAX - 2 - 66 * 992 - 1 + more);
        add("]]", 1);
        check_limit(!more, "too many values");
    }
    add("[0,{\"a\":0}]", 1);
    for (uint32_t count = 1; count < 5; count++)
        TEST_CHECK_(!built_is_sound(&(struct json_limits){.nodes = count}) && error.limit, "%u", count);
    TEST_CHECK(built_is_sound(&(struct json_limits){.nodes = 5}));
    TEST_CHECK(!built_is_sound(&(struct json_limits){.elements = 1}) && error.limit);
    text_size = 0;
}

static void length_limits(void)
{
    text_size = 0;
    for (size_t length = JSON_TEXT_KEY_MAX; length <= JSON_TEXT_KEY_MAX + 1; length++) {
        add("{\"", 1);
        add("k", length);
        add("\":0}", 1);
        check_limit(length <= JSON_TEXT_KEY_MAX, "a member's name is too long");
    }
    add("{\"", 1);
    add("k", 1u << 20);
    add("\":0}", 1);
    check_limit(false, "a member's name is too long");
    add("\"", 1);
    add("s", 1u << 20);
    add("\"", 1);
    check_limit(true, "");
    for (size_t length = JSON_TEXT_NUMBER_MAX; length <= JSON_TEXT_NUMBER_MAX + 1; length++) {
        add("9", length);
        check_limit(length <= JSON_TEXT_NUMBER_MAX, "a number of too many digits");
    }
    add("1e-000000000000000123456789", 1);
    check_limit(true, "");
    add("1E+1234567890", 1);
    check_limit(false, "a number of too many digits");
    add("{\"abc\":0}", 1);
    TEST_CHECK(built_is_sound(&(struct json_limits){.key = 3}));
    TEST_CHECK(!built_is_sound(&(struct json_limits){.key = 2}) && error.limit && error.at == 1);
    text_size = 0;
}

/* Limits of a call can't be wider than the hard ones. */
static void limits_are_never_wider(void)
{
    text_size = 0;
    add("[", JSON_TEXT_DEPTH_MAX + 1);
    add("]", JSON_TEXT_DEPTH_MAX + 1);
    TEST_CHECK(!built_is_sound(&(struct json_limits){.depth = 1000}) && error.limit);
    text_size = 0;
}

/* ---- what was read ---- */

static void nodes_of_a_text(void)
{
    static const char from[] = " {\"a\" : [1, \"x\\n\", {}], \"b\":null} ";
    static const struct json_node wanted[] = {
        {.at = 1, .length = 32, .next = 8, .count = 2, .kind = JSON_OBJECT},
        {.at = 2, .length = 3, .next = 2, .kind = JSON_STRING},
        {.at = 8, .length = 14, .next = 6, .count = 3, .kind = JSON_ARRAY},
        {.at = 9, .length = 1, .next = 4, .kind = JSON_NUMBER, .flags = JSON_INTEGER},
        {.at = 12, .length = 5, .next = 5, .kind = JSON_STRING, .flags = JSON_ESCAPED},
        {.at = 19, .length = 2, .next = 6, .kind = JSON_OBJECT},
        {.at = 24, .length = 3, .next = 7, .kind = JSON_STRING},
        {.at = 28, .length = 4, .next = 8, .kind = JSON_NULL},
    };
    struct json_text json = read_here(from);
    TEST_CHECK(json.count == 8);
    for (uint32_t i = 0; i < 8; i++) {
        const struct json_node *n = &json.nodes[i], *w = &wanted[i];
        TEST_CHECK_(n->at == w->at && n->length == w->length && n->next == w->next && n->count == w->count &&
                        n->kind == w->kind && n->flags == w->flags,
                    "%u: at %u length %u next %u count %u kind %u flags %u", i, n->at, n->length, n->next,
                    n->count, n->kind, n->flags);
    }
}

static void walking(void)
{
    struct json_text json = read_here("{\"a\":[[],[1,2],3],\"\\u0062\":{\"c\":4},\"d\":5}");
    const struct json_node *root = json_root(&json), *a = json_member(&json, root, "a"), *child;
    unsigned seen = 0;
    TEST_ASSERT(a && a->kind == JSON_ARRAY);
    for (child = json_first(&json, a); child; child = json_after(&json, a, child))
        seen = seen * 10 + child->kind;
    TEST_CHECK(seen == JSON_ARRAY * 100 + JSON_ARRAY * 10 + JSON_NUMBER);
    seen = 0;
    for (child = json_first(&json, root); child; child = json_after(&json, root, child))
        seen = seen * 10 + json_value_of(child)->kind;
    TEST_CHECK(seen == JSON_ARRAY * 100 + JSON_OBJECT * 10 + JSON_NUMBER);
    TEST_CHECK(json_member(&json, root, "b") && json_member(&json, root, "b")->kind == JSON_OBJECT);
    TEST_CHECK(json_member(&json, root, "d") == &json.nodes[json.count - 1]);
    TEST_CHECK(!json_member(&json, root, "c") && !json_member(&json, root, "") &&
               !json_member(&json, a, "a"));
    TEST_CHECK(!json_first(&json, json_first(&json, a)));
    TEST_CHECK(span_equal(json_raw_of(&json, a), span_text("[[],[1,2],3]")));
}

static void strings(void)
{
    static const struct {
        const char *written, *meant;
        uint32_t characters;
    } cases[] = {
        {"\"\"", "", 0},
        {"\"plain\"", "plain", 5},
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t", 8},
        {"\"a\\u00e9\\u20ac\\ud83d\\ude00z\"", "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z", 5},
        {"\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 3},
        {"\"\xc3\xa9\\u007f\\u0080\\u07ff\\u0800\\uffff\\ud800\\udc00\\udbff\\udfff\"",
         "\xc3\xa9\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", 8},
        {"\"\\u00C9\\u00c9\"", "\xc3\x89\xc3\x89", 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct json_text json = read_here(cases[i].written);
        struct span got = {0}, meant = span_text(cases[i].meant);
        char room[64];
        TEST_CHECK_(json_string_of(&json, json_root(&json), room, sizeof room, &got) &&
                        span_equal(got, meant),
                    "%s", cases[i].written);
        TEST_CHECK(json_string_characters(&json, json_root(&json)) == cases[i].characters);
        if (json_root(&json)->flags & JSON_ESCAPED)
            for (uint32_t size = 0; size <= meant.size; size++)
                TEST_CHECK_(json_string_of(&json, json_root(&json), room, size, &got) == (size == meant.size),
                            "%s in %u", cases[i].written, size);
        else
            TEST_CHECK(json_string_of(&json, json_root(&json), NULL, 9, &got) && got.bytes != room);
    }
}

static void bare_text(void)
{
    struct json_text json, other = read_here("\"a\\u0062\"");
    struct json_node node;
    struct span got;
    json_text_bare(&json, &node, span_text("ab"));
    TEST_CHECK(json_string_of(&json, &node, NULL, 0, &got) && span_equal(got, span_text("ab")));
    TEST_CHECK(json_string_characters(&json, &node) == 2 &&
               json_same(&json, &node, &other, json_root(&other)));
}

static void integers(void)
{
    static const struct {
        const char *written;
        bool integral, fits_int, fits_uint;
        int64_t value;
        uint64_t size;
    } cases[] = {
        {"0", true, true, true, 0, 0},
        {"-0", true, true, true, 0, 0},
        {"-0.0e5", true, true, true, 0, 0},
        {"1", true, true, true, 1, 1},
        {"-1", true, true, false, -1, 0},
        {"1.0", true, true, true, 1, 1},
        {"10e-1", true, true, true, 1, 1},
        {"1.5e1", true, true, true, 15, 15},
        {"0.001e3", true, true, true, 1, 1},
        {"1200.00e-2", true, true, true, 12, 12},
        {"9007199254740993", true, true, true, 9007199254740993, 9007199254740993},
        {"9223372036854775807", true, true, true, INT64_MAX, INT64_MAX},
        {"9223372036854775808", true, false, true, 0, (uint64_t)INT64_MAX + 1},
        {"-9223372036854775808", true, true, false, INT64_MIN, 0},
        {"-9223372036854775809", true, false, false, 0, 0},
        {"18446744073709551615", true, false, true, 0, UINT64_MAX},
        {"18446744073709551616", true, false, false, 0, 0},
        {"99999999999999999999", true, false, false, 0, 0},
        {"1e19", true, false, true, 0, 10000000000000000000u},
        {"1e20", true, false, false, 0, 0},
        {"1e400", true, false, false, 0, 0},
        {"1e-1", false, false, false, 0, 0},
        {"1.5", false, false, false, 0, 0},
        {"1e-400", false, false, false, 0, 0},
        {"0.10", false, false, false, 0, 0},
        {"\"1\"", false, false, false, 0, 0},
        {"true", false, false, false, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct json_text json = read_here(cases[i].written);
        int64_t value = 0;
        uint64_t size = 0;
        TEST_CASE(cases[i].written);
        TEST_CHECK(json_integral(&json, json_root(&json)) == cases[i].integral);
        TEST_CHECK(json_int64_of(&json, json_root(&json), &value) == cases[i].fits_int &&
                   value == cases[i].value);
        TEST_CHECK(json_uint64_of(&json, json_root(&json), &size) == cases[i].fits_uint &&
                   size == cases[i].size);
    }
}

static void floors(void)
{
    static const struct {
        const char *written;
        bool known, more;
        int64_t floor;
    } cases[] = {
        {"0", true, false, 0},
        {"-0", true, false, 0},
        {"-0.000", true, false, 0},
        {"17", true, false, 17},
        {"17.00", true, false, 17},
        {"17.03", true, true, 17},
        {"0.00000000000000001", true, true, 0},
        {"-17", true, false, -17},
        {"-17.0", true, false, -17},
        {"-17.03", true, true, -18},
        {"-0.5", true, true, -1},
        {"9223372036854775807", true, false, INT64_MAX},
        {"9223372036854775808", false, false, 0},
        {"-999999999999999999", true, false, -999999999999999999},
        {"-9999999999999999.5", true, true, -10000000000000000},
        {"12345678901234567890", false, false, 0},
        {"1e1", false, false, 0},
        {"1.5E0", false, false, 0},
        {"\"1\"", false, false, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct json_text json = read_here(cases[i].written);
        int64_t floor = 0;
        bool more = false, known = json_floor_of(&json, json_root(&json), &floor, &more);
        TEST_CASE(cases[i].written);
        TEST_CHECK(known == cases[i].known);
        TEST_CHECK(!known || (floor == cases[i].floor && more == cases[i].more));
    }
}

static double double_of(const char *written)
{
    struct json_text json = read_here(written);
    return json_double_of(&json, json_root(&json));
}

static void doubles(void)
{
    TEST_CHECK(double_of("129.95") == 129.95 && double_of("-12.5e-1") == -1.25);
    TEST_CHECK(double_of("0.1") == 0.1 && double_of("1e22") == 1e22 &&
               double_of("123456789012345678") == 123456789012345678.0);
    TEST_CHECK(isinf(double_of("1e400")) && double_of("-1e400") < 0 && isinf(double_of("-1e400")));
    TEST_CHECK(double_of("1e-400") == 0 && signbit(double_of("-0")) &&
               double_of("9007199254740993") == 9007199254740992.0);
    text_size = 0;
    add("9", JSON_TEXT_NUMBER_MAX);
    text[text_size] = 0;
    TEST_CHECK(double_of(text) == 1e256);
    text_size = 0;
}

static void numbers_are_compared_exactly(void)
{
    static const char *const rising[] = {
        "-1e400",
        "-1e399",
        "-10",
        "-9.5",
        "-9.05",
        "-1",
        "-0.5",
        "-1e-400",
        "0",
        "1e-400",
        "0.05",
        "0.5",
        "0.55",
        "1",
        "1.00001",
        "9",
        "9.99",
        "10",
        "9007199254740992",
        "9007199254740993",
        "1e399",
        "1e400",
    };
    static const char *const equal[][2] = {
        {"0", "-0"},     {"0", "0.0e9"},        {"1", "1.0"},    {"100", "1e2"},
        {"0.5", "5E-1"}, {"-12.30", "-123e-1"}, {"10.0", "1e1"},
    };
    size_t count = sizeof rising / sizeof *rising;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < count; j++) {
            struct json_text a = {.nodes = nodes, .nodes_max = 1}, b = {.nodes = more_nodes, .nodes_max = 1};
            int order, wanted = i < j ? -1 : i > j;
            TEST_ASSERT(json_text_read(&a, span_text(rising[i]), NULL, &error) &&
                        json_text_read(&b, span_text(rising[j]), NULL, &error));
            order = json_number_compare(&a, nodes, &b, more_nodes);
            TEST_CHECK_((order > 0) - (order < 0) == wanted, "%s and %s: %d", rising[i], rising[j], order);
        }
    for (size_t i = 0; i < sizeof equal / sizeof *equal; i++) {
        struct json_text a, b;
        TEST_ASSERT(read_into(&a, nodes, span_text(equal[i][0]), NULL) &&
                    read_into(&b, more_nodes, span_text(equal[i][1]), NULL));
        TEST_CHECK_(json_number_compare(&a, nodes, &b, more_nodes) == 0, "%s and %s", equal[i][0],
                    equal[i][1]);
    }
}

static void sameness(void)
{
    static const struct {
        const char *a, *b;
        bool same;
    } cases[] = {
        {"null", "null", true},
        {"null", "false", false},
        {"0", "\"0\"", false},
        {"1", "1e0", true},
        {"1", "1.1", false},
        {"10", "1e+1", true},
        {"1e-1", "1e+1", false},
        {"12", "0.12E+0002", true},
        {"\"a\"", "\"\\u0061\"", true},
        {"\"a\"", "\"\\u0062\"", false},
        {"\"\\u20ac\"", "\"\xe2\x82\xac\"", true},
        {"\"ab\"", "\"a\\u0062c\"", false},
        {"[1,2]", "[1,2]", true},
        {"[1,2]", "[2,1]", false},
        {"[1]", "[1,1]", false},
        {"[[],{}]", "[[],{}]", true},
        {"[[],{}]", "[{},[]]", false},
        {"{\"a\":1,\"b\":[2]}", "{ \"\\u0062\":[2.0], \"a\":1 }", true},
        {"{\"a\":1,\"b\":2}", "{\"a\":1,\"c\":2}", false},
        {"{\"a\":1,\"b\":2}", "{\"a\":2,\"b\":1}", false},
        {"{\"a\":1}", "{\"a\":1,\"b\":1}", false},
        {"{\"a\":1,\"b\":1,\"c\":1}", "{\"c\":1,\"b\":1,\"a\":1}", true},
        {"{}", "{}", true},
        {"{}", "[]", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct json_text a, b;
        TEST_ASSERT(read_into(&a, nodes, span_text(cases[i].a), NULL) &&
                    read_into(&b, more_nodes, span_text(cases[i].b), NULL));
        TEST_CHECK_(json_same(&a, nodes, &b, more_nodes) == cases[i].same, "%s and %s", cases[i].a,
                    cases[i].b);
        TEST_CHECK_(json_same(&b, more_nodes, &a, nodes) == cases[i].same, "%s and %s", cases[i].b,
                    cases[i].a);
        /* What two are as elements is what they are alone. */
        text_size = 0;
        add("[", 1);
        add(cases[i].a, 1);
        add(",", 1);
        add(cases[i].b, 1);
        add("]", 1);
        TEST_ASSERT(read_into(&a, nodes, span_of(text, text_size), NULL));
        TEST_CHECK_(json_unique(&a, nodes) == !cases[i].same, "%s", text);
    }
}

static void uniqueness_of_many(void)
{
    struct json_text json;
    for (unsigned twice = 0; twice <= 1; twice++) {
        text_size = 0;
        for (unsigned i = 0; i < JSON_TEXT_ELEMENTS_MAX; i++) {
            char element[64];
            snprintf(element, sizeof element, "%c{\"n\":%u,\"s\":\"\\u00%02x\"}", i ? ',' : '[',
                     twice && i == JSON_TEXT_ELEMENTS_MAX - 1 ? 7 : i,
                     twice && i == JSON_TEXT_ELEMENTS_MAX - 1 ? 39 : i % 64 + 32);
            add(element, 1);
        }
        add("]", 1);
        TEST_ASSERT_(read_into(&json, nodes, span_of(text, text_size), NULL), "%s", error.what);
        TEST_CHECK(json_unique(&json, nodes) == !twice);
    }
    /* Long strings that end the same way or don't, one with escapes in its last piece. */
    text_size = 0;
    add("[\"", 1);
    add("0123456789", 20);
    add("x\",\"", 1);
    add("\\u003012345678\\u0039", 20);
    add("x\"]", 1);
    TEST_ASSERT(read_into(&json, nodes, span_of(text, text_size), NULL));
    TEST_CHECK(!json_unique(&json, nodes));
    text[text_size - 3] = 'y';
    TEST_ASSERT(read_into(&json, nodes, span_of(text, text_size), NULL));
    TEST_CHECK(json_unique(&json, nodes));
    text_size = 0;
}

/* An object of `count` names of which the one at `twice` is the one at `first` again, or none is; each has an object of its own with
 * the same names between. */
static bool names_are_taken(unsigned count, unsigned first, unsigned twice, bool escaped)
{
    char name[16];
    text_size = 0;
    for (unsigned i = 0; i < count; i++) {
        unsigned which = i == twice ? first : i;
        if (escaped && i == twice)
            snprintf(name, sizeof name, "\\u006e%u", which);
        else
            snprintf(name, sizeof name, "n%u", which);
        add(i ? ",\"" : "{\"", 1);
        add(name, 1);
        add("\":{\"n0\":[{}],\"n1\":{\"n0\":0}}", 1);
    }
    add("}", 1);
    return built_is_sound(NULL);
}

static void a_name_twice_at_every_place(void)
{
    for (unsigned count = 2; count < 24; count++) {
        TEST_CHECK_(names_are_taken(count, 0, count, false), "%u names", count);
        for (unsigned first = 0; first < count; first++)
            for (unsigned twice = first + 1; twice < count; twice++)
                TEST_CHECK_(!names_are_taken(count, first, twice, false) &&
                                !names_are_taken(count, first, twice, true),
                            "of %u names %u is %u", count, twice, first);
    }
}

/* Of another depth, or of another object at the same one, they are others. */
static void names_of_different_objects(void)
{
    struct json_text json;
    static const char *const sound[] = {"[{\"a\":1},{\"a\":1}]", "{\"a\":{\"a\":{\"a\":1}}}",
                                        "{\"a\":{\"b\":1,\"\\u0063\":2},\"b\":{\"a\":1}}",
                                        "[{\"ab\":1,\"a_b\":2},{\"x\":[{\"x\":{}}]}]", "{\"\":1,\"a\":2}"};
    static const char *const unsound[] = {"{\"\":1,\"\":2}", "{\"a\":{\"b\":1},\"a\":2}",
                                          "[{\"a\":[{}]},{\"a\":1,\"\\u0061\":2}]",
                                          "{\"\\u0061\":1,\"a\":2}"};
    for (size_t i = 0; i < sizeof sound / sizeof *sound; i++)
        TEST_CHECK_(read_into(&json, nodes, span_text(sound[i]), NULL), "%s", sound[i]);
    for (size_t i = 0; i < sizeof unsound / sizeof *unsound; i++)
        TEST_CHECK_(!read_into(&json, nodes, span_text(unsound[i]), NULL), "%s", unsound[i]);
}

/* CTL: 1000 names that an unkeyed hash would put into one slot, none of them twice, then one of them. */
static void names_of_equal_hash(void)
{
    for (unsigned twice = 0; twice <= 1; twice++) {
        text_size = 0;
        for (unsigned i = 0; i < JSON_TEXT_MEMBERS_MAX; i++) {
            char name[64] = "", member[80];
            /* "Aa" and "BB" are the same to the hash that many parsers use. */
            for (unsigned bit = 0; bit < 10; bit++)
                strcat(name, i >> bit & 1 ? "Aa" : "BB");
            snprintf(member, sizeof member, "%c\"%s\":0", i ? ',' : '{', name);
            if (twice && i == JSON_TEXT_MEMBERS_MAX - 1)
                snprintf(member, sizeof member, ",\"%s\":0", "AaBBBBBBBBBBBBBB\\u0042B\\u0042B");
            add(member, 1);
        }
        add("}", 1);
        TEST_CHECK(built_is_sound(NULL) == !twice);
        if (twice)
            TEST_CHECK(strcmp(error.what, TWICE) == 0 && text[error.at] == '"');
    }
    text_size = 0;
}

static void pointers(void)
{
    struct json_text json = read_here("{\"a\":[0,{\"x/y~z\":[[],[7]]}],\"\\u00e9\":{\"\":1}}");
    const struct json_node *root = json_root(&json);
    const struct json_node *a = json_member(&json, root, "a"), *last = json_member(&json, root, "\xc3\xa9");
    const struct json_node *inner = json_member(&json, json_first(&json, a) + 1, "x/y~z");
    char room[64];
#define POINTER(node, size) (json_pointer_to(&json, (node), room, (size)), room)
    TEST_CHECK(strcmp(POINTER(root, sizeof room), "") == 0);
    TEST_CHECK(strcmp(POINTER(a, sizeof room), "/a") == 0);
    TEST_CHECK(strcmp(POINTER(a - 1, sizeof room), "/a") == 0); /* of the name */
    TEST_CHECK(strcmp(POINTER(a + 1, sizeof room), "/a/0") == 0);
    TEST_ASSERT(inner != NULL);
    TEST_CHECK(strcmp(POINTER(inner, sizeof room), "/a/1/x~1y~0z") == 0);
    TEST_CHECK(strcmp(POINTER(inner + 3, sizeof room), "/a/1/x~1y~0z/1/0") == 0);
    TEST_CHECK(strcmp(POINTER(last, sizeof room), "/\xc3\xa9") == 0);
    TEST_CHECK(strcmp(POINTER(last + 2, sizeof room), "/\xc3\xa9/") == 0);
    TEST_CHECK(strcmp(POINTER(last, 3), "/") == 0); /* no half of a character */
    TEST_CHECK(strcmp(POINTER(inner + 3, 8), "/a/1/x") == 0);
    TEST_CHECK(strcmp(POINTER(inner, 1), "") == 0);
    json = read_here("[0,0,0,0,0,0,0,0,0,0,0,[1]]");
    TEST_CHECK(strcmp(POINTER(&json.nodes[13], sizeof room), "/11/0") == 0);
}

TEST_LIST
= {
    {"sound texts are read", sound_texts},
    {"unsound texts are refused at their byte", unsound_texts},
    {"every byte at every place of a string", every_byte_at_every_place},
    {"NUL bytes are refused", nul_bytes},
    {"every beginning of a text is refused", every_beginning_is_refused},
    {"the limit of depth", depth_limit},
    {"the limits of counts (CTL-058)", count_limits},
    {"the limits of lengths", length_limits},
    {"limits of a call are never wider than the hard ones", limits_are_never_wider},
    {"the nodes of a text", nodes_of_a_text},
    {"walking and members", walking},
    {"strings without their escapes", strings},
    {"bare text is a string", bare_text},
    {"integers are exact", integers},
    {"floors of numbers", floors},
    {"doubles are the nearest ones", doubles},
    {"numbers are compared exactly", numbers_are_compared_exactly},
    {"sameness", sameness},
    {"uniqueness of many", uniqueness_of_many},
    {"a name twice at every place", a_name_twice_at_every_place},
    {"names of different objects", names_of_different_objects},
    {"names of equal hash", names_of_equal_hash},
    {"pointers", pointers},
    {NULL, NULL},
};
