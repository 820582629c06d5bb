#include "acutest.h"

#include <stdlib.h>
#include <string.h>
#include "runtime/assert.h"
#include "store/record.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* One field of each type; the order leaves holes in the struct, and versions 2 and 3 brought some more. */
#define SAMPLE_FIELDS(X)  \
    X(small, U8, 0, 1)    \
    X(medium, U16, 0, 1)  \
    X(flag, U8, 0, 1)     \
    X(large, U32, 0, 1)   \
    X(id, UUID, 0, 1)     \
    X(huge, U64, 0, 1)    \
    X(name, TEXT, 12, 1)  \
    X(change, I64, 0, 1)  \
    X(at, TIME, 0, 1)     \
    X(body, BYTES, 40, 2) \
    X(sum, DIGEST, 0, 2)  \
    X(more, JSON, 30, 3)  \
    X(last, U8, 0, 3)
RECORD_STRUCT(sample, SAMPLE_FIELDS);
#define sample_FIELD(name, TYPE, limit, since) RECORD_FIELD(sample, name, TYPE, limit, since)
RECORD_CLASS(sample, SAMPLE_FIELDS, 3);

/* The size of a version of the sample below. */
enum {
    SIZE_OF_1 = 1 + 2 + 1 + 4 + 16 + 8 + (4 + 6) + 8 + 8,
    SIZE_OF_2 = SIZE_OF_1 + (4 + 3) + 32,
    SIZE_OF_3 = SIZE_OF_2 + (4 + 7) + 1,
};

static struct sample sample_of_all(void)
{
    struct sample s = {
        .small = 0x01,
        .medium = 0x0302,
        .flag = 0x04,
        .large = 0x08070605,
        .huge = 0x1817161514131211,
        .name = span_text("caf\xc3\xa9!"),
        .change = -2,
        .at = 1795007091123456,
        .body = span_of("\x00\xff\x80", 3),
        .more = span_text("{\"a\":1}"),
        .last = 0xee,
    };
    for (uint8_t i = 0; i < 16; i++)
        s.id.bytes[i] = (uint8_t)(0x20 + i);
    for (uint8_t i = 0; i < 32; i++)
        s.sum.bytes[i] = (uint8_t)(0xc0 + i);
    return s;
}

static const uint8_t sample_bytes[] = {
    0x01,                                                                   /* small */
    0x02, 0x03,                                                             /* medium */
    0x04,                                                                   /* flag */
    0x05, 0x06, 0x07, 0x08,                                                 /* large */
    0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27,                         /* id */
    0x28, 0x29, 0x2a, 0x2b, 0x2c, 0x2d, 0x2e, 0x2f,                         /* */
    0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,                         /* huge */
    6,    0,    0,    0,    'c',  'a',  'f',  0xc3, 0xa9, '!',              /* name */
    0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,                         /* change */
    0x00, 0x25, 0x09, 0xa8, 0x8c, 0x60, 0x06, 0x00,                         /* at */
    3,    0,    0,    0,    0x00, 0xff, 0x80,                               /* body */
    0xc0, 0xc1, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7, 0xc8, 0xc9, 0xca, 0xcb, /* sum */
    0xcc, 0xcd, 0xce, 0xcf, 0xd0, 0xd1, 0xd2, 0xd3, 0xd4, 0xd5, 0xd6, 0xd7, /* */
    0xd8, 0xd9, 0xda, 0xdb, 0xdc, 0xdd, 0xde, 0xdf,                         /* */
    7,    0,    0,    0,    '{',  '"',  'a',  '"',  ':',  '1',  '}',        /* more */
    0xee,                                                                   /* last */
};
STATIC_ASSERT(sizeof(sample_bytes) == SIZE_OF_3, "as it is drawn");

static enum error decode(uint8_t version, const void *bytes, size_t size, struct sample *ret_sample)
{
    return record_decode(&sample_record, version, span_of(bytes, size), ret_sample);
}

/* Refused with this error, and nothing was written. */
static void check_refused(enum error expected, uint8_t version, const void *bytes, size_t size)
{
    struct sample s, untouched;
    enum error got;
    memset(&untouched, 0x5a, sizeof(untouched));
    memcpy(&s, &untouched, sizeof(s));
    got = decode(version, bytes, size, &s);
    TEST_CHECK(got == expected);
    TEST_MSG("%s instead of %s", error_name(got), error_name(expected));
    TEST_CHECK(memcmp(&s, &untouched, sizeof(s)) == 0);
}

/* ---- bytes ---- */

static void test_the_class_describes_the_table(void)
{
    TEST_CHECK(strcmp(sample_record.name, "sample") == 0 && sample_record.count == 13);
    TEST_CHECK(sample_record.size == sizeof(struct sample) && sample_record.version == 3);
    TEST_CHECK(strcmp(sample_record.fields[6].name, "name") == 0);
    TEST_CHECK(sample_record.fields[6].offset == offsetof(struct sample, name));
    TEST_CHECK(sample_record.fields[6].type == FIELD_TEXT && sample_record.fields[6].limit == 12);
    TEST_CHECK(sample_record.fields[12].since == 3);
}

static void test_bytes_as_drawn(void)
{
    struct sample s = sample_of_all();
    uint8_t bytes[SIZE_OF_3];
    TEST_CHECK(record_size(&sample_record, &s) == SIZE_OF_3);
    TEST_CHECK(record_encode(&sample_record, &s, bytes, sizeof(bytes)) == SIZE_OF_3);
    TEST_CHECK(memcmp(bytes, sample_bytes, sizeof(bytes)) == 0);
    TEST_DUMP("got", bytes, sizeof(bytes));
}

/* What the struct has between its members doesn't reach the bytes. */
static void test_holes_of_the_struct_do_not_matter(void)
{
    struct sample all = sample_of_all(), s, other;
    uint8_t bytes[SIZE_OF_3];
    memset(&s, 0, sizeof(s));
    memset(&other, 0x5a, sizeof(other));
#define X(name, TYPE, limit, since) s.name = other.name = all.name;
    SAMPLE_FIELDS(X)
#undef X
    TEST_CHECK(memcmp(&s, &other, sizeof(s)) != 0);
    TEST_CHECK(record_encode(&sample_record, &other, bytes, sizeof(bytes)) == SIZE_OF_3);
    TEST_CHECK(memcmp(bytes, sample_bytes, sizeof(bytes)) == 0);
}

static void test_there_and_back(void)
{
    struct sample s = sample_of_all(), again;
    TEST_CHECK(decode(3, sample_bytes, sizeof(sample_bytes), &again) == OK);
    TEST_CHECK(again.small == s.small && again.medium == s.medium && again.flag == s.flag);
    TEST_CHECK(again.large == s.large && again.huge == s.huge && again.change == s.change);
    TEST_CHECK(again.at == s.at && again.last == s.last && uuid_equal(&again.id, &s.id));
    TEST_CHECK(memcmp(&again.sum, &s.sum, sizeof(s.sum)) == 0);
    TEST_CHECK(span_equal(again.name, s.name) && span_equal(again.body, s.body));
    TEST_CHECK(span_equal(again.more, s.more));
    TEST_CHECK((const uint8_t *)again.name.bytes == sample_bytes + 36); /* borrowed, not copied */
}

/* Equal bytes give equal structs, holes included: they can be compared and hashed as they are. */
static void test_decoding_leaves_nothing_of_what_was_there(void)
{
    struct sample first, second;
    memset(&first, 0x00, sizeof(first));
    memset(&second, 0xff, sizeof(second));
    TEST_CHECK(decode(3, sample_bytes, sizeof(sample_bytes), &first) == OK);
    TEST_CHECK(decode(3, sample_bytes, sizeof(sample_bytes), &second) == OK);
    TEST_CHECK(memcmp(&first, &second, sizeof(first)) == 0);
}

static void test_empty_record(void)
{
    struct sample s, again;
    uint8_t bytes[SIZE_OF_3];
    size_t size;
    memset(&s, 0, sizeof(s));
    size = record_encode(&sample_record, &s, bytes, sizeof(bytes));
    TEST_CHECK(size == SIZE_OF_3 - 6 - 3 - 7);
    for (size_t i = 0; i < size; i++)
        TEST_CHECK(bytes[i] == 0);
    TEST_CHECK(decode(3, bytes, size, &again) == OK);
    TEST_CHECK(again.name.size == 0 && again.body.size == 0 && again.more.size == 0);
}

static void test_too_little_room(void)
{
    struct sample s = sample_of_all();
    for (size_t room = 0; room < SIZE_OF_3; room++) {
        uint8_t *bytes = malloc(room > 0 ? room : 1); /* no more, so that a sanitizer sees the byte behind */
        TEST_ASSERT(bytes != NULL);
        TEST_CHECK(record_encode(&sample_record, &s, bytes, room) == 0);
        free(bytes);
    }
}

/* ---- versions ---- */

static void test_older_bytes_leave_later_fields_zero(void)
{
    struct sample s, all = sample_of_all();
    memset(&s, 0x5a, sizeof(s));
    TEST_CHECK(decode(1, sample_bytes, SIZE_OF_1, &s) == OK);
    TEST_CHECK(s.at == all.at && span_equal(s.name, all.name));
    TEST_CHECK(s.body.size == 0 && s.body.bytes == NULL && s.sum.bytes[31] == 0);
    TEST_CHECK(s.more.size == 0 && s.more.bytes == NULL && s.last == 0);
    memset(&s, 0x5a, sizeof(s));
    TEST_CHECK(decode(2, sample_bytes, SIZE_OF_2, &s) == OK);
    TEST_CHECK(span_equal(s.body, all.body) && s.sum.bytes[31] == 0xdf);
    TEST_CHECK(s.more.size == 0 && s.more.bytes == NULL && s.last == 0);
}

static void test_a_version_has_its_own_length(void)
{
    check_refused(ERR_DAMAGED, 1, sample_bytes, SIZE_OF_2);
    check_refused(ERR_DAMAGED, 1, sample_bytes, SIZE_OF_3);
    check_refused(ERR_DAMAGED, 2, sample_bytes, SIZE_OF_1);
    check_refused(ERR_DAMAGED, 2, sample_bytes, SIZE_OF_3);
    check_refused(ERR_DAMAGED, 3, sample_bytes, SIZE_OF_1);
    check_refused(ERR_DAMAGED, 3, sample_bytes, SIZE_OF_2);
}

static void test_a_newer_version_is_refused_by_name(void)
{
    check_refused(ERR_NEWER, 4, sample_bytes, sizeof(sample_bytes));
    check_refused(ERR_NEWER, 255, NULL, 0);
    check_refused(ERR_DAMAGED, 0, sample_bytes, sizeof(sample_bytes)); /* none was ever written */
    check_refused(ERR_DAMAGED, 0, NULL, 0);
}

/* ---- damage ---- */

static void test_every_cut_is_damage(void)
{
    for (size_t size = 0; size < SIZE_OF_3; size++) {
        uint8_t *bytes = malloc(size > 0 ? size : 1);
        TEST_ASSERT(bytes != NULL);
        memcpy(bytes, sample_bytes, size);
        check_refused(ERR_DAMAGED, 3, bytes, size);
        free(bytes);
    }
    check_refused(ERR_DAMAGED, 3, NULL, 0);
}

static void test_every_excess_is_damage(void)
{
    uint8_t bytes[SIZE_OF_3 + 8] = {0};
    memcpy(bytes, sample_bytes, SIZE_OF_3);
    for (size_t size = SIZE_OF_3 + 1; size <= sizeof(bytes); size++)
        check_refused(ERR_DAMAGED, 3, bytes, size);
}

/* A length that says more than is there, or than the limit allows, up to the largest. */
static void test_lengths_are_not_believed(void)
{
    static const uint32_t lengths[] = {5,      7,          12,         13,         64,
                                       0xffff, 0x7fffffff, 0x80000000, 0xfffffffc, 0xffffffff};
    for (size_t i = 0; i < COUNT(lengths); i++) {
        uint8_t bytes[SIZE_OF_3];
        memcpy(bytes, sample_bytes, sizeof(bytes));
        memcpy(bytes + 32, &lengths[i], 4);
        check_refused(ERR_DAMAGED, 3, bytes, sizeof(bytes));
    }
}

/* The limit holds when reading, too: bytes that we would not have written are not ours. */
static void test_a_text_above_its_limit_is_damage(void)
{
    uint8_t bytes[SIZE_OF_1 + 7];
    struct sample s;
    for (uint32_t length = 12; length <= 13; length++) {
        memcpy(bytes, sample_bytes, 32);
        memcpy(bytes + 32, &length, 4);
        memset(bytes + 36, 'x', length);
        memset(bytes + 36 + length, 0, 16);
        if (length == 12)
            TEST_CHECK(decode(1, bytes, SIZE_OF_1 + 6, &s) == OK && s.name.size == 12);
        else
            check_refused(ERR_DAMAGED, 1, bytes, SIZE_OF_1 + 7);
    }
}

/* ---- limits ---- */

static void check_field_refused(const struct sample *s, const char *field)
{
    const char *got = record_refused(&sample_record, s);
    uint8_t bytes[256];
    TEST_CHECK(got != NULL && strcmp(got, field) == 0);
    TEST_MSG("got %s, expected %s", got != NULL ? got : "none", field);
    TEST_CHECK(record_size(&sample_record, s) == 0);
    TEST_CHECK(record_encode(&sample_record, s, bytes, sizeof(bytes)) == 0);
}

static void test_limits_to_the_byte(void)
{
    static const char text[] = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz";
    struct sample s = sample_of_all();
    TEST_CHECK(record_refused(&sample_record, &s) == NULL);
    s.name = span_of(text, 12);
    s.body = span_of(text, 40);
    s.more = span_of(text, 30);
    TEST_CHECK(record_refused(&sample_record, &s) == NULL);
    TEST_CHECK(record_size(&sample_record, &s) == SIZE_OF_3 - 6 - 3 - 7 + 12 + 40 + 30);
    s.more = span_of(text, 31);
    check_field_refused(&s, "more");
    s.body = span_of(text, 41); /* the first one is named */
    check_field_refused(&s, "body");
    s.name = span_of(text, 13);
    check_field_refused(&s, "name");
    s.name = (struct span){.bytes = text, .size = UINT32_MAX};
    check_field_refused(&s, "name");
}

/* The same answer from both sides: what is refused before writing is damage when it is read. */
static void check_text(const char *bytes, size_t size, bool sound)
{
    struct sample s = sample_of_all(), again;
    uint8_t encoded[256];
    uint32_t length = (uint32_t)size;
    s.name = span_of(bytes, size);
    TEST_CHECK((record_refused(&sample_record, &s) == NULL) == sound);
    memcpy(encoded, sample_bytes, 32);
    memcpy(encoded + 32, &length, 4);
    memcpy(encoded + 36, bytes, size);
    memset(encoded + 36 + size, 0, 16);
    TEST_CHECK(decode(1, encoded, SIZE_OF_1 - 6 + size, &again) == (sound ? OK : ERR_DAMAGED));
}

static void test_text_is_utf8_without_nul(void)
{
    static const struct {
        const char *bytes;
        size_t size;
        bool sound;
    } texts[] = {
        {"", 0, true},
        {"\x01\x1f\x7f", 3, true},
        {"\0", 1, false},
        {"a\0", 2, false},
        {"\xc3\xa9", 2, true},
        {"\xc3", 1, false},
        {"\xa9", 1, false},
        {"\xc0\x80", 2, false}, /* NUL in two bytes */
        {"\xc1\xbf", 2, false},
        {"\xe2\x82\xac", 3, true},
        {"\xe2\x82", 2, false},
        {"\xed\xa0\x80", 3, false}, /* a surrogate */
        {"\xf0\x9f\x8c\xb1", 4, true},
        {"\xf0\x80\x80\x80", 4, false},
        {"\xf4\x90\x80\x80", 4, false}, /* above U+10FFFF */
        {"\xff", 1, false},
        {"aaaaaaaa\xf0\x9f\x8c\xb1", 12, true}, /* behind eight that are looked at at once */
        {"aaaaaaaaaaa\xc3", 12, false},
        {"aaaaaaaaaaa\x7f", 12, true},
    };
    for (size_t i = 0; i < COUNT(texts); i++) {
        TEST_CASE_("text %zu", i);
        check_text(texts[i].bytes, texts[i].size, texts[i].sound);
    }
}

/* Every byte at every place of a text that is otherwise plain. */
static void test_each_byte_of_a_text(void)
{
    for (size_t at = 0; at < 12; at++)
        for (unsigned byte = 0; byte < 256; byte++) {
            char text[12];
            memset(text, 'a', sizeof(text));
            text[at] = (char)byte;
            check_text(text, sizeof(text), byte > 0 && byte < 0x80);
        }
}

static void test_bytes_may_be_anything(void)
{
    static const char anything[] = "\0\xff\xc3\n";
    struct sample s = sample_of_all();
    s.body = span_of(anything, 4);
    TEST_CHECK(record_refused(&sample_record, &s) == NULL);
}

/* ---- JSON ---- */

static char document[4096];
static struct json_sink sink;
static struct json json;

static void check_members(const struct record_class *class, const void *record, const char *expected)
{
    json_sink_init(&sink, document, sizeof(document), NULL, NULL);
    json_init(&json, &sink);
    json_object_begin(&json);
    record_write_json(class, record, &json);
    json_object_end(&json);
    TEST_CHECK(json_end(&json) == JSON_OK);
    TEST_CHECK(sink.length == strlen(expected) && memcmp(document, expected, sink.length) == 0);
    TEST_MSG("got      %.*s\nexpected %s", (int)sink.length, document, expected);
}

static void test_json_of_every_type(void)
{
    struct sample s = sample_of_all();
    check_members(&sample_record, &s,
                  "{\"small\":1,\"medium\":770,\"flag\":4,\"large\":134678021,"
                  "\"id\":\"20212223-2425-2627-2829-2a2b2c2d2e2f\",\"huge\":\"1735880461161533969\","
                  "\"name\":\"caf\xc3\xa9!\",\"change\":-2,\"at\":\"2026-11-18T13:04:51.123456Z\","
                  "\"body\":\"AP+A\","
                  "\"sum\":\"c0c1c2c3c4c5c6c7c8c9cacbcccdcecfd0d1d2d3d4d5d6d7d8d9dadbdcdddedf\","
                  "\"more\":{\"a\":1},\"last\":238}");
}

static void test_json_of_nothing(void)
{
    struct sample s;
    memset(&s, 0, sizeof(s));
    check_members(&sample_record, &s,
                  "{\"small\":0,\"medium\":0,\"flag\":0,\"large\":0,\"id\":null,\"huge\":0,\"name\":\"\","
                  "\"change\":0,\"at\":null,\"body\":\"\","
                  "\"sum\":\"0000000000000000000000000000000000000000000000000000000000000000\","
                  "\"more\":null,\"last\":0}");
}

/* The caller adds members of its own, before and behind. */
static void test_json_members_among_others(void)
{
    struct sample s = sample_of_all();
    json_sink_init(&sink, document, sizeof(document), NULL, NULL);
    json_init(&json, &sink);
    json_object_begin(&json);
    JSON_MEMBER(&json, "table", string, "samples");
    record_write_json(&sample_record, &s, &json);
    JSON_MEMBER(&json, "end", bool, true);
    json_object_end(&json);
    TEST_CHECK(json_end(&json) == JSON_OK);
    document[sink.length] = 0;
    TEST_CHECK(strncmp(document, "{\"table\":\"samples\",\"small\":1,", 29) == 0);
    TEST_CHECK(strstr(document, ",\"last\":238,\"end\":true}") != NULL);
}

#define LONG_STRING "a_time_whose_name_is_longer_than_anything_that_we_would_call_one_us"
#define TIMES_FIELDS(X)       \
    X(at_us, TIME, 0, 1)      \
    X(expires_us, TIME, 0, 1) \
    X(moment, TIME, 0, 1)     \
    X(_us, TIME, 0, 1)        \
    X(a_time_whose_name_is_longer_than_anything_that_we_would_call_one_us, TIME, 0, 1)
RECORD_STRUCT(times, TIMES_FIELDS);
#define times_FIELD(name, TYPE, limit, since) RECORD_FIELD(times, name, TYPE, limit, since)
RECORD_CLASS(times, TIMES_FIELDS, 1);

/* What isn't called a time in microseconds keeps its name. */
static void test_json_names_of_times(void)
{
    struct times t = {.moment = 0};
    STATIC_ASSERT(sizeof(LONG_STRING) > 64, "there is no room for it");
    check_members(&times_record, &t,
                  "{\"at\":null,\"expires_at\":null,\"moment\":null,\"_us\":null,\"" LONG_STRING "\":null}");
}

#define PAIR_FIELDS(X) X(count, U64, 0, 1) X(change, I64, 0, 1)
RECORD_STRUCT(pair, PAIR_FIELDS);
#define pair_FIELD(name, TYPE, limit, since) RECORD_FIELD(pair, name, TYPE, limit, since)
RECORD_CLASS(pair, PAIR_FIELDS, 1);

/* Readers that keep numbers as doubles are exact up to 2^53. */
static void test_json_of_large_numbers(void)
{
    static const struct {
        struct pair pair;
        const char *text;
    } rows[] = {
        {{9007199254740992u, 9007199254740992}, "{\"count\":9007199254740992,\"change\":9007199254740992}"},
        {{9007199254740993u, 9007199254740993},
         "{\"count\":\"9007199254740993\",\"change\":\"9007199254740993\"}"},
        {{0, -9007199254740992}, "{\"count\":0,\"change\":-9007199254740992}"},
        {{1, -9007199254740993}, "{\"count\":1,\"change\":\"-9007199254740993\"}"},
        {{UINT64_MAX, INT64_MIN}, "{\"count\":\"18446744073709551615\",\"change\":\"-9223372036854775808\"}"},
        {{UINT64_MAX, INT64_MAX}, "{\"count\":\"18446744073709551615\",\"change\":\"9223372036854775807\"}"},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        check_members(&pair_record, &rows[i].pair, rows[i].text);
}

#define LOAD_FIELDS(X) X(body, BYTES, 1024, 1) X(more, JSON, 1024, 1)
RECORD_STRUCT(load, LOAD_FIELDS);
#define load_FIELD(name, TYPE, limit, since) RECORD_FIELD(load, name, TYPE, limit, since)
RECORD_CLASS(load, LOAD_FIELDS, 1);

static void check_load(struct span body, struct span more, const char *expected)
{
    struct load load = {.body = body, .more = more};
    check_members(&load_record, &load, expected);
}

/* The vectors of RFC 4648 (10), and the two digits that other alphabets have differently. */
static void test_json_of_bytes(void)
{
    struct span none = {.size = 0};
    check_load(span_text(""), none, "{\"body\":\"\",\"more\":null}");
    check_load(span_text("f"), none, "{\"body\":\"Zg==\",\"more\":null}");
    check_load(span_text("fo"), none, "{\"body\":\"Zm8=\",\"more\":null}");
    check_load(span_text("foo"), none, "{\"body\":\"Zm9v\",\"more\":null}");
    check_load(span_text("foob"), none, "{\"body\":\"Zm9vYg==\",\"more\":null}");
    check_load(span_text("fooba"), none, "{\"body\":\"Zm9vYmE=\",\"more\":null}");
    check_load(span_text("foobar"), none, "{\"body\":\"Zm9vYmFy\",\"more\":null}");
    check_load(span_of("\xfb\xff\xff", 3), none, "{\"body\":\"+///\",\"more\":null}");
}

static unsigned base64_value(char digit)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *found = strchr(digits, digit);
    TEST_ASSERT(digit != 0 && found != NULL);
    return (unsigned)(found - digits);
}

/* Reads the text back bit by bit; every size around and across the pieces in which it is written. */
static void test_json_of_many_bytes(void)
{
    uint8_t bytes[1024];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(i * 89 + (i >> 3));
    for (size_t size = 0; size <= sizeof(bytes); size++) {
        struct load load = {.body = span_of(bytes, size)};
        const char *text = document + 9; /* {"body":" */
        json_sink_init(&sink, document, sizeof(document), NULL, NULL);
        json_init(&json, &sink);
        json_object_begin(&json);
        record_write_json(&load_record, &load, &json);
        json_object_end(&json);
        TEST_CHECK(json_end(&json) == JSON_OK);
        TEST_ASSERT(sink.length == 9 + (size + 2) / 3 * 4 + strlen("\",\"more\":null}"));
        for (size_t i = 0; i < size; i++) {
            unsigned pair = base64_value(text[i * 8 / 6]) << 6;
            if ((size_t)(i * 8 / 6 + 1) < (size * 8 + 5) / 6)
                pair |= base64_value(text[i * 8 / 6 + 1]);
            TEST_CHECK((uint8_t)(pair >> (4 - i * 8 % 6)) == bytes[i]);
        }
    }
}

/* Stored as it came; shown in one line, because one document is one line. */
static void test_json_within_json(void)
{
    struct span none = {.size = 0};
    check_load(none, span_text("null"), "{\"body\":\"\",\"more\":null}");
    check_load(none, span_text("[1,2,\"\xc3\xa9\"]"), "{\"body\":\"\",\"more\":[1,2,\"\xc3\xa9\"]}");
    check_load(none, span_text("{\r\n\t\"a\": 1\n}"), "{\"body\":\"\",\"more\":{   \"a\": 1 }}");
    check_load(none, span_text("\n\n7\n"), "{\"body\":\"\",\"more\":  7 }");
    check_load(none, span_text("\"\xc2\x9b\x7f\""), "{\"body\":\"\",\"more\":\"\\u009b\\u007f\"}");
}

struct collected {
    char text[4096];
    size_t length;
};

static bool collect(void *context, const char *bytes, size_t length)
{
    struct collected *all = context;
    TEST_ASSERT(length <= sizeof(all->text) - all->length);
    memcpy(all->text + all->length, bytes, length);
    all->length += length;
    return true;
}

/* Through a buffer of any size the same document; without a way on, one error and no half of it beyond the room. */
static void test_json_through_small_buffers(void)
{
    struct sample s = sample_of_all();
    static struct collected whole, pieces;
    for (size_t capacity = 4000; capacity > 0; capacity -= capacity > 40 ? 990 : 1) {
        char buffer[4000];
        pieces.length = 0;
        json_sink_init(&sink, buffer, capacity, collect, &pieces);
        json_init(&json, &sink);
        json_object_begin(&json);
        record_write_json(&sample_record, &s, &json);
        json_object_end(&json);
        TEST_CHECK(json_end(&json) == JSON_OK);
        if (capacity == 4000)
            whole = pieces;
        TEST_CHECK(pieces.length == whole.length && memcmp(pieces.text, whole.text, whole.length) == 0);
    }
    TEST_CHECK(whole.length > 250);
    json_sink_init(&sink, document, whole.length - 1, NULL, NULL);
    json_init(&json, &sink);
    json_object_begin(&json);
    record_write_json(&sample_record, &s, &json);
    json_object_end(&json);
    TEST_CHECK(json_end(&json) == JSON_FULL);
}

/* ---- time ---- */

static void check_time(uint64_t us, const char *expected)
{
    char text[TIME_TEXT_SIZE];
    memset(text, 'x', sizeof(text));
    time_format(us, text);
    TEST_CHECK(memcmp(text, expected, TIME_TEXT_SIZE) == 0);
    TEST_MSG("got %.28s, expected %s", text, expected);
}

static void test_times(void)
{
    check_time(0, "1970-01-01T00:00:00.000000Z");
    check_time(1, "1970-01-01T00:00:00.000001Z");
    check_time(999999, "1970-01-01T00:00:00.999999Z");
    check_time(1000000, "1970-01-01T00:00:01.000000Z");
    check_time(86399999999, "1970-01-01T23:59:59.999999Z");
    check_time(86400000000, "1970-01-02T00:00:00.000000Z");
    check_time(951782400000000, "2000-02-29T00:00:00.000000Z");
    check_time(1645557742000000, "2022-02-22T19:22:22.000000Z");
    check_time(4107542399000000, "2100-02-28T23:59:59.000000Z");
    check_time(4107542400000000, "2100-03-01T00:00:00.000000Z");
    check_time(253402300799999999, "9999-12-31T23:59:59.999999Z");
    check_time(253402300800000000, "9999-12-31T23:59:59.999999Z");
    check_time(UINT64_MAX, "9999-12-31T23:59:59.999999Z");
}

static unsigned days_of_month(unsigned year, unsigned month)
{
    static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return month == 2 && leap ? 29 : days[month - 1];
}

/* Counted day by day through eight thousand years. */
static void test_every_day_from_1970_to_9999(void)
{
    uint64_t day = 0;
    unsigned wrong = 0;
    for (unsigned year = 1970; year <= 9999; year++)
        for (unsigned month = 1; month <= 12; month++)
            for (unsigned date = 1; date <= days_of_month(year, month); date++, day++) {
                char text[TIME_TEXT_SIZE];
                time_format((day * 86400 + 86399) * 1000000, text);
                wrong += (unsigned)(text[0] - '0') * 1000 + (unsigned)(text[1] - '0') * 100 +
                                 (unsigned)(text[2] - '0') * 10 + (unsigned)(text[3] - '0') !=
                             year ||
                         (unsigned)(text[5] - '0') * 10 + (unsigned)(text[6] - '0') != month ||
                         (unsigned)(text[8] - '0') * 10 + (unsigned)(text[9] - '0') != date ||
                         strcmp(text + 10, "T23:59:59.000000Z") != 0;
            }
    TEST_CHECK(day == 2932897 && wrong == 0);
    TEST_MSG("%u of %llu", wrong, (unsigned long long)day);
}

TEST_LIST
= {
    {"the class describes the table", test_the_class_describes_the_table},
    {"bytes as drawn", test_bytes_as_drawn},
    {"holes of the struct don't matter", test_holes_of_the_struct_do_not_matter},
    {"there and back", test_there_and_back},
    {"decoding leaves nothing of what was there", test_decoding_leaves_nothing_of_what_was_there},
    {"an empty record", test_empty_record},
    {"too little room", test_too_little_room},
    {"older bytes leave later fields zero", test_older_bytes_leave_later_fields_zero},
    {"a version has its own length", test_a_version_has_its_own_length},
    {"a newer version is refused by name", test_a_newer_version_is_refused_by_name},
    {"every cut is damage", test_every_cut_is_damage},
    {"every excess is damage", test_every_excess_is_damage},
    {"lengths are not believed", test_lengths_are_not_believed},
    {"a text above its limit is damage", test_a_text_above_its_limit_is_damage},
    {"limits to the byte", test_limits_to_the_byte},
    {"text is UTF-8 without NUL", test_text_is_utf8_without_nul},
    {"each byte of a text", test_each_byte_of_a_text},
    {"bytes may be anything", test_bytes_may_be_anything},
    {"JSON of every type", test_json_of_every_type},
    {"JSON of nothing", test_json_of_nothing},
    {"JSON members among others", test_json_members_among_others},
    {"json: names of times", test_json_names_of_times},
    {"JSON of large numbers", test_json_of_large_numbers},
    {"JSON of bytes", test_json_of_bytes},
    {"JSON of many bytes", test_json_of_many_bytes},
    {"JSON within JSON", test_json_within_json},
    {"JSON through small buffers", test_json_through_small_buffers},
    {"times", test_times},
    {"every day from 1970 to 9999", test_every_day_from_1970_to_9999},
    {NULL, NULL},
};
