#include "acutest.h"

#include <stdlib.h>
#include <string.h>
#include "store/uuid.h"

/* An environment whose clock shows what the test says, and whose chance is one byte after the other: each draw
 * can be recognised. */
static struct scripted {
    struct env env;
    uint64_t wall_ms;
    uint8_t next, step;
    size_t asked, bytes;
} scripted;

static struct scripted *scripted_of(struct env *env)
{
    return (struct scripted *)(void *)env; /* its first member */
}

static uint64_t scripted_wall(struct env *env)
{
    return scripted_of(env)->wall_ms * NS_PER_MS + 999999;
}

static void scripted_random(struct env *env, void *bytes, size_t size)
{
    struct scripted *s = scripted_of(env);
    s->asked++;
    s->bytes += size;
    for (size_t i = 0; i < size; i++, s->next = (uint8_t)(s->next + s->step))
        ((uint8_t *)bytes)[i] = s->next;
}

static struct uuid_source begin(uint64_t wall_ms, uint8_t first, uint8_t step)
{
    struct uuid_source source;
    scripted = (struct scripted){
        .env = {.name = "scripted", .wall = scripted_wall, .random = scripted_random},
        .wall_ms = wall_ms,
        .next = first,
        .step = step,
    };
    uuid_source_init(&source, &scripted.env);
    return source;
}

static int order(const struct uuid *left, const struct uuid *right)
{
    return memcmp(left->bytes, right->bytes, sizeof(left->bytes));
}

static void expect_text(const struct uuid *id, const char *text)
{
    char got[UUID_TEXT_SIZE];
    uuid_format(id, got);
    TEST_CHECK(strcmp(got, text) == 0);
    TEST_MSG("got %s, expected %s", got, text);
}

static void test_text(void)
{
    struct uuid id, again;
    char text[UUID_TEXT_SIZE];
    for (unsigned i = 0; i < 16; i++)
        id.bytes[i] = (uint8_t)(0x11 * i);
    expect_text(&id, "00112233-4455-6677-8899-aabbccddeeff");
    uuid_format(&id, text);
    TEST_CHECK(uuid_parse(text, 36, &again) && uuid_equal(&id, &again));
    TEST_CHECK(uuid_parse("00112233-4455-6677-8899-AaBbCcDdEeFf", 36, &again) && uuid_equal(&id, &again));
    again.bytes[15] ^= 1;
    TEST_CHECK(!uuid_equal(&id, &again));
}

/* Each byte at each place: the only ones that pass are digits, and a dash where it belongs. */
static void test_text_is_refused(void)
{
    static const char sound[] = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f-and more";
    static const char digits[] = "0123456789abcdefABCDEF";
    struct uuid id, untouched;
    memset(&untouched, 0x5a, sizeof(untouched));
    id = untouched;
    for (size_t length = 0; length < sizeof(sound); length++)
        if (length != 36)
            TEST_CHECK(!uuid_parse(sound, length, &id) && uuid_equal(&id, &untouched));
    for (size_t at = 0; at < 36; at++)
        for (int c = 0; c < 256; c++) {
            char text[36];
            bool dash = at == 8 || at == 13 || at == 18 || at == 23;
            bool right = dash ? c == '-' : c != 0 && strchr(digits, c) != NULL;
            memcpy(text, sound, sizeof(text));
            text[at] = (char)c;
            id = untouched;
            TEST_CHECK(uuid_parse(text, sizeof(text), &id) == right);
            TEST_CHECK(uuid_equal(&id, &untouched) != right);
        }
    TEST_CHECK(!uuid_parse("{17f22e2-79b0-7cc3-98c4-dc0c0c07398}", 36, &id));
    TEST_CHECK(!uuid_parse("017f22e279b07cc398c4dc0c0c07398f0000", 36, &id));
}

/* The examples of the RFC's appendix A, and what has no version. */
static void test_rfc9562_examples(void)
{
    static const struct {
        const char *text;
        unsigned version;
        uint64_t ms;
    } examples[] = {
        {"017F22E2-79B0-7CC3-98C4-DC0C0C07398F", 7, 1645557742000},
        {"919108f7-52d1-4320-9bac-f847db4148a8", 4, 0},
        {"C232AB00-9414-11EC-B3C8-9F6BDECED846", 1, 0},
        {"00000000-0000-0000-0000-000000000000", 0, 0},
        {"ffffffff-ffff-ffff-ffff-ffffffffffff", 0, 0}, /* another variant: its digit is no version */
        {"017F22E2-79B0-7CC3-58C4-DC0C0C07398F", 0, 0},
    };
    for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++) {
        struct uuid id;
        TEST_CASE(examples[i].text);
        TEST_ASSERT(uuid_parse(examples[i].text, 36, &id));
        TEST_CHECK(uuid_version(&id) == examples[i].version);
        TEST_CHECK(uuid_time_ms(&id) == examples[i].ms);
    }
}

/* The chance is 01 02 03 04 for the count, little-endian and below 2^25 (0x0030201), then 05 to 0a. */
static void test_v7_byte_for_byte(void)
{
    struct uuid_source source = begin(0x017f22e279b0, 1, 1);
    struct uuid id = uuid_v7(&source);
    expect_text(&id, "017f22e2-79b0-700c-8201-05060708090a");
    id = uuid_v7(&source);
    expect_text(&id, "017f22e2-79b0-700c-8202-0b0c0d0e0f10");
    TEST_CHECK(uuid_version(&id) == 7 && uuid_time_ms(&id) == 0x017f22e279b0);
    scripted.wall_ms++;
    id = uuid_v7(&source);
    expect_text(&id, "017f22e2-79b1-704c-9211-15161718191a");
}

static void test_v4_byte_for_byte(void)
{
    struct uuid_source source = begin(0, 0xf0, 1);
    struct uuid id = uuid_v4(&source);
    expect_text(&id, "f0f1f2f3-f4f5-46f7-b8f9-fafbfcfdfeff");
    id = uuid_v4(&source);
    expect_text(&id, "00010203-0405-4607-8809-0a0b0c0d0e0f");
    TEST_CHECK(uuid_version(&id) == 4 && uuid_time_ms(&id) == 0);
}

/* All ones is the most that chance can say: the count starts at 2^25 - 1, and the marks stay. */
static void test_v7_of_extreme_chance(void)
{
    struct uuid_source source = begin(UINT64_C(1000), 0xff, 0);
    struct uuid id = uuid_v7(&source);
    expect_text(&id, "00000000-03e8-77ff-bfff-ffffffffffff");
    id = uuid_v7(&source);
    expect_text(&id, "00000000-03e8-7800-8000-ffffffffffff");
    source = begin(1000, 0, 0);
    id = uuid_v7(&source);
    expect_text(&id, "00000000-03e8-7000-8000-000000000000");
    id = uuid_v4(&source);
    expect_text(&id, "00000000-0000-4000-8000-000000000000");
}

/* The clock stands, creeps, jumps ahead and falls back by an hour; at its start it is 1970. */
static void test_v7_goes_up_whatever_the_clock_does(void)
{
    static const int64_t moves[] = {0, 0, 1, 0, -1, 5, -3600000, 0, 0, 3600000, 2, -7, 0, 1000};
    struct uuid_source source = begin(0, 3, 7);
    struct uuid last = uuid_v7(&source);
    uint64_t newest = 0;
    for (size_t i = 0; i < 200000; i++) {
        int64_t wall = (int64_t)scripted.wall_ms + moves[i % (sizeof(moves) / sizeof(moves[0]))];
        struct uuid id;
        scripted.wall_ms = wall > 0 ? (uint64_t)wall : 0;
        newest = scripted.wall_ms > newest ? scripted.wall_ms : newest;
        id = uuid_v7(&source);
        TEST_CHECK(order(&id, &last) > 0);
        TEST_CHECK(uuid_version(&id) == 7 && uuid_time_ms(&id) == newest);
        last = id;
    }
    TEST_CHECK(newest > 1000000);
}

/* Even when the chance of each id is less than that of the one before: the count decides. */
static void test_v7_goes_up_when_chance_goes_down(void)
{
    struct uuid_source source = begin(1000, 0xff, 0xff);
    struct uuid last = uuid_v7(&source);
    for (size_t i = 0; i < 1000; i++) {
        struct uuid id = uuid_v7(&source);
        TEST_CHECK(order(&id, &last) > 0);
        last = id;
    }
}

/* From 2^26 - 3: two more fit into the millisecond, then it runs ahead by one until the clock has passed it. */
static void test_v7_when_the_count_is_used_up(void)
{
    struct uuid_source source = begin(1000, 0, 0);
    struct uuid last = uuid_v7(&source);
    static const uint64_t expected[] = {1000, 1000, 1001, 1001};
    source.count = (1u << 26) - 3;
    for (size_t i = 0; i < 4; i++) {
        struct uuid id = uuid_v7(&source);
        TEST_CHECK(uuid_time_ms(&id) == expected[i] && order(&id, &last) > 0);
        TEST_CHECK(source.count == (i < 2 ? (1u << 26) - 2 + i : i - 2));
        last = id;
    }
    scripted.wall_ms = 1001; /* no new start: it is the millisecond that ran ahead */
    struct uuid id = uuid_v7(&source);
    TEST_CHECK(uuid_time_ms(&id) == 1001 && source.count == 2 && order(&id, &last) > 0);
    scripted.wall_ms = 1002;
    last = id;
    id = uuid_v7(&source);
    TEST_CHECK(uuid_time_ms(&id) == 1002 && source.count == 0 && order(&id, &last) > 0);
}

/* 256 bytes are 16 ids of version 4; or one start of a count and 42 times 6. */
static void test_chance_comes_in_blocks(void)
{
    struct uuid_source source = begin(1000, 0, 1);
    TEST_CHECK(scripted.asked == 0);
    for (size_t i = 1; i <= 160; i++) {
        uuid_v4(&source);
        TEST_CHECK(scripted.asked == (i + 15) / 16 && scripted.bytes == 256 * scripted.asked);
    }
    source = begin(1000, 0, 1);
    for (size_t i = 0; i < 42; i++)
        uuid_v7(&source);
    TEST_CHECK(scripted.asked == 1);
    uuid_v7(&source);
    TEST_CHECK(scripted.asked == 2);
}

/* Marks the bytes of chance in an id; none was marked before. Those beside the marks of version 4 don't show. */
static void mark_used(bool used[256], const struct uuid *id, size_t from)
{
    for (size_t i = from; i < sizeof(id->bytes); i++) {
        if (from == 0 && (i == 6 || i == 8))
            continue;
        TEST_CHECK(!used[id->bytes[i]]);
        used[id->bytes[i]] = true;
    }
}

/* Both versions share a block, in which each byte is there once. What is left at its end and too short for an id
 * is dropped: 3 * 16 + 4 + 33 * 6 leaves 6 of 256, and an id of version 4 begins a new block. */
static void test_no_chance_is_used_twice(void)
{
    struct uuid_source source = begin(1000, 0, 1);
    bool used[256] = {false};
    struct uuid id;
    for (size_t i = 0; i < 3; i++) {
        id = uuid_v4(&source);
        mark_used(used, &id, 0);
    }
    for (size_t i = 0; i < 33; i++) {
        id = uuid_v7(&source);
        mark_used(used, &id, 10);
    }
    TEST_CHECK(scripted.asked == 1);
    id = uuid_v4(&source);
    TEST_CHECK(scripted.asked == 2);
    expect_text(&id, "00010203-0405-4607-8809-0a0b0c0d0e0f");
}

static void test_the_same_seed_gives_the_same_ids(void)
{
    struct uuid ids[2][100];
    for (size_t run = 0; run < 2; run++) {
        struct uuid_source source = begin(1000, 17, 3);
        for (size_t i = 0; i < 100; i++) {
            scripted.wall_ms += i % 3 == 0;
            ids[run][i] = i % 2 == 0 ? uuid_v7(&source) : uuid_v4(&source);
        }
    }
    TEST_CHECK(memcmp(ids[0], ids[1], sizeof(ids[0])) == 0);
}

static int compare_ids(const void *left, const void *right)
{
    return order(left, right);
}

static void test_on_this_machine(void)
{
    enum { IDS = 20000 };
    static struct uuid ids[IDS];
    static struct uuid_source sources[2];
    size_t equal = 0;
    for (size_t i = 0; i < 2; i++)
        uuid_source_init(&sources[i], env_real());
    uint64_t before_ms = env_real()->wall(env_real()) / NS_PER_MS;
    for (size_t i = 0; i < IDS / 2; i++) {
        ids[i] = uuid_v7(&sources[0]);
        TEST_CHECK(i == 0 || order(&ids[i], &ids[i - 1]) > 0);
    }
    TEST_CHECK(uuid_time_ms(&ids[0]) >= before_ms);
    for (size_t i = IDS / 2; i < IDS; i++)
        ids[i] = i % 2 == 0 ? uuid_v7(&sources[1]) : uuid_v4(&sources[1]);
    qsort(ids, IDS, sizeof(ids[0]), compare_ids);
    for (size_t i = 1; i < IDS; i++)
        equal += uuid_equal(&ids[i], &ids[i - 1]);
    TEST_CHECK(equal == 0);
}

TEST_LIST
= {
    {"text, there and back", test_text},
    {"text is refused", test_text_is_refused},
    {"examples of RFC 9562", test_rfc9562_examples},
    {"version 7 byte for byte", test_v7_byte_for_byte},
    {"version 4 byte for byte", test_v4_byte_for_byte},
    {"version 7 of extreme chance", test_v7_of_extreme_chance},
    {"version 7 goes up whatever the clock does", test_v7_goes_up_whatever_the_clock_does},
    {"version 7 goes up when chance goes down", test_v7_goes_up_when_chance_goes_down},
    {"version 7 when the count is used up", test_v7_when_the_count_is_used_up},
    {"chance comes in blocks", test_chance_comes_in_blocks},
    {"no chance is used twice", test_no_chance_is_used_twice},
    {"the same seed gives the same ids", test_the_same_seed_gives_the_same_ids},
    {"on this machine", test_on_this_machine},
    {NULL, NULL},
};
