/* Values: believed only where they were written, as they were written. */
#include "acutest.h"

#include "store/keys.h"
#include "store/value.h"

#define THING_FIELDS(X) X(number, U64, 0, 1) X(bytes, BYTES, 70000, 1)
RECORD_STRUCT(thing, THING_FIELDS);
#define thing_FIELD(name, TYPE, limit, since) RECORD_FIELD(thing, name, TYPE, limit, since)
RECORD_CLASS(thing, THING_FIELDS, 1);

static uint8_t body[70000], value[VALUE_SIZE_MAX], copy[VALUE_SIZE_MAX];

static struct key key_of(uint64_t number)
{
    struct key key;
    key.size = 0;
    key_add_u64(&key, number);
    return key;
}

static size_t write_thing(uint64_t seed, uint64_t number, uint32_t size)
{
    struct key key = key_of(number);
    struct thing thing = {.number = number, .bytes = span_of(body, size)};
    return value_write(seed, key_span(&key), &thing_record, &thing, value, sizeof(value));
}

static enum error open_as(uint64_t seed, uint64_t number, const uint8_t *bytes, size_t size)
{
    struct key key = key_of(number);
    struct span record = {.size = 77};
    uint8_t version = 99;
    enum error e = value_open(seed, key_span(&key), span_of(bytes, size), &version, &record);
    if (e)
        TEST_CHECK(version == 99 && record.size == 77); /* nothing is handed out */
    else
        TEST_CHECK(version == 1 && record.size == size - VALUE_HEAD && record.bytes == bytes + VALUE_HEAD);
    return e;
}

static void test_back(void)
{
    uint64_t seed = value_seed("things");
    for (size_t i = 0; i < sizeof(body); i++)
        body[i] = (uint8_t)(i * 7);
    for (uint32_t size = 0; size < 300; size++) {
        size_t length = write_thing(seed, size, size);
        TEST_CHECK(length == VALUE_HEAD + 8 + 4 + size && value[0] == 1);
        TEST_CHECK(open_as(seed, size, value, length) == OK);
    }
    TEST_CHECK(write_thing(seed, 1, VALUE_SIZE_MAX - VALUE_HEAD - 12) == VALUE_SIZE_MAX);
    TEST_CHECK(open_as(seed, 1, value, VALUE_SIZE_MAX) == OK);
    TEST_CHECK(write_thing(seed, 1, VALUE_SIZE_MAX - VALUE_HEAD - 11) == 0); /* no room */
    struct key key = key_of(1);
    struct thing thing = {.number = 1};
    for (size_t room = 0; room < VALUE_HEAD + 12; room++)
        TEST_CHECK(value_write(seed, key_span(&key), &thing_record, &thing, value, room) == 0);
}

/* Every single bit, of the head as well. */
static void test_flips(void)
{
    uint64_t seed = value_seed("things");
    static const uint32_t sizes[] = {0, 1, 7, 100, 1000};
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        size_t length = write_thing(seed, 5, sizes[s]), wrong = 0;
        memcpy(copy, value, length);
        for (size_t bit = 0; bit < length * 8; bit++) {
            copy[bit / 8] ^= (uint8_t)(1u << bit % 8);
            wrong += open_as(seed, 5, copy, length) != ERR_DAMAGED;
            copy[bit / 8] = value[bit / 8];
        }
        TEST_CHECK_(wrong == 0, "%zu of %zu bits", wrong, length * 8);
        TEST_CHECK(open_as(seed, 5, copy, length) == OK);
    }
}

static void test_sizes(void)
{
    uint64_t seed = value_seed("things");
    size_t length = write_thing(seed, 5, 100);
    for (size_t size = 0; size < length; size++)
        TEST_CHECK_(open_as(seed, 5, value, size) == ERR_DAMAGED, "%zu", size);
    for (size_t size = length + 1; size < length + 40; size++) {
        memset(value + length, 0, 40);
        TEST_CHECK_(open_as(seed, 5, value, size) == ERR_DAMAGED, "%zu", size);
    }
    static uint8_t large[VALUE_SIZE_MAX + 1];
    TEST_CHECK(open_as(seed, 5, large, sizeof(large)) == ERR_DAMAGED);
    memset(large, 0, sizeof(large));
    for (size_t size = 0; size < 100; size++) /* a page that was never written */
        TEST_CHECK(open_as(seed, 5, large, size) == ERR_DAMAGED);
}

/* A sound value at another place isn't this place's. */
static void test_elsewhere(void)
{
    uint64_t seed = value_seed("things");
    size_t length = write_thing(seed, 5, 100);
    TEST_CHECK(open_as(value_seed("thing"), 5, value, length) == ERR_DAMAGED);
    TEST_CHECK(open_as(value_seed("thingt"), 5, value, length) == ERR_DAMAGED);
    for (uint64_t other = 0; other < 64; other++)
        TEST_CHECK(open_as(seed, UINT64_C(1) << other ^ 5, value, length) == ERR_DAMAGED);
    struct key longer = key_of(5);
    uint8_t version;
    struct span record;
    key_add_u8(&longer, 0);
    TEST_CHECK(value_open(seed, key_span(&longer), span_of(value, length), &version, &record) == ERR_DAMAGED);
    struct span shorter = {.bytes = longer.bytes, .size = 7};
    TEST_CHECK(value_open(seed, shorter, span_of(value, length), &version, &record) == ERR_DAMAGED);
}

TEST_LIST
= {
    {"what was written comes back", test_back},
    {"each flipped bit is noticed", test_flips},
    {"shorter and longer ones are damaged", test_sizes},
    {"another key's, another table's", test_elsewhere},
    {NULL, NULL},
};
