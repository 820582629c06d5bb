#define _GNU_SOURCE
#include "acutest.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "store/checksum.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static uint8_t message[4096];

static void fill(void)
{
    for (size_t i = 0; i < sizeof(message); i++)
        message[i] = (uint8_t)(i * 37 % 251);
}

/* Bytes without a pattern; the same in every run. */
static uint64_t chance(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static void fill_by_chance(uint64_t *state, uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)chance(state);
}

static void flip(uint8_t *bytes, size_t bit)
{
    bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
}

/* Computed by a program of thirty lines in another language, written after the drawing in store/checksum.c. The
 * numbers are in every store that was ever written: they never change. */
static void test_known_answers(void)
{
    static const struct {
        size_t size;
        uint64_t sum;
    } known[] = {
        {0, 0x651fd616c83aeabu},     {1, 0x99a7365775070a46u},    {7, 0xad7a8c2657577f58u},
        {8, 0x2b401bc6ff47e98bu},    {9, 0xf6acee532b358033u},    {15, 0xce3664b6ffbf4a51u},
        {16, 0x43cd1b2737344536u},   {17, 0x0a7ede541edbbab7u},   {31, 0x0a61233510e5bea1u},
        {32, 0x7436ea64f8ea7574u},   {48, 0x0de55715979b506du},   {63, 0xc2b87aeed8282babu},
        {64, 0x42169efd16f298eau},   {65, 0x294d117cc8e57a19u},   {80, 0x507c2f9c85737393u},
        {127, 0x8f5a0d5b135950a0u},  {128, 0x8659a375a74f6a04u},  {255, 0x6386887be135339cu},
        {1024, 0xfaba4acbca62e93bu}, {4096, 0x79fe331475cf4c5eu},
    };
    static const uint8_t zeros[1024];
    fill();
    for (size_t i = 0; i < COUNT(known); i++) {
        uint64_t sum = checksum(0, message, known[i].size);
        TEST_CHECK(sum == known[i].sum);
        TEST_MSG("%zu bytes: %016llx", known[i].size, (unsigned long long)sum);
    }
    TEST_CHECK(checksum(0x0123456789abcdefu, message, 100) == 0xdad649c3f9d37090u);
    TEST_CHECK(checksum(0, zeros, sizeof(zeros)) == 0xdd277012b538cd8fu);
    TEST_CHECK(checksum(checksum(0, "order-1", 7), "accepted", 8) == 0x273535667579ee9du);
    TEST_CHECK(checksum(0, NULL, 0) == known[0].sum);
}

/* One number for all of them: each is the seed of the next. */
static void test_known_answer_of_every_size_to_1100(void)
{
    uint64_t sum = 0;
    fill();
    for (size_t size = 0; size <= 1100; size++)
        sum = checksum(sum, message, size);
    TEST_CHECK(sum == 0x5ee53244e27fdc30u);
    TEST_MSG("%016llx", (unsigned long long)sum);
}

/* The bytes end where readable memory ends and begin at any address; what lies before them doesn't matter. */
static void test_reads_exactly_its_bytes(void)
{
    uint8_t *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    TEST_ASSERT(pages != MAP_FAILED);
    TEST_ASSERT(mprotect(pages + 4096, 4096, PROT_NONE) == 0);
    fill();
    for (size_t size = 0; size <= 300; size++) {
        memset(pages, 0xaa, 4096);
        memcpy(pages + 4096 - size, message, size);
        TEST_CHECK(checksum(7, pages + 4096 - size, size) == checksum(7, message, size));
    }
    munmap(pages, 8192);
}

static void check_every_flip(uint8_t *bytes, size_t size)
{
    uint64_t sound = checksum(1, bytes, size);
    for (size_t bit = 0; bit < 8 * size; bit++) {
        flip(bytes, bit);
        TEST_CHECK(checksum(1, bytes, size) != sound);
        TEST_MSG("%zu bytes, bit %zu", size, bit);
        flip(bytes, bit);
    }
}

static void test_every_flipped_bit_is_noticed(void)
{
    static uint8_t zeros[1024], ones[1024];
    memset(ones, 0xff, sizeof(ones));
    fill();
    check_every_flip(message, 1024);
    check_every_flip(zeros, 1024);
    check_every_flip(ones, 1024);
    for (size_t size = 1; size <= 80; size++) {
        check_every_flip(message, size);
        check_every_flip(zeros, size);
    }
}

static void test_every_two_flipped_bits_are_noticed(void)
{
    uint8_t bytes[40];
    uint64_t sound;
    fill();
    memcpy(bytes, message, sizeof(bytes));
    sound = checksum(1, bytes, sizeof(bytes));
    for (size_t first = 0; first < 8 * sizeof(bytes); first++) {
        flip(bytes, first);
        for (size_t second = 0; second < first; second++) {
            flip(bytes, second);
            TEST_CHECK(checksum(1, bytes, sizeof(bytes)) != sound);
            flip(bytes, second);
        }
        flip(bytes, first);
    }
}

static void exchange(uint8_t *bytes, size_t first, size_t second, size_t size)
{
    uint8_t kept[1024];
    TEST_ASSERT(size <= sizeof(kept));
    memcpy(kept, bytes + first, size);
    memcpy(bytes + first, bytes + second, size);
    memcpy(bytes + second, kept, size);
}

static void check_every_exchange(size_t size, size_t unit)
{
    uint64_t sound = checksum(1, message, size);
    for (size_t first = 0; first < size; first += unit)
        for (size_t second = 0; second < first; second += unit) {
            if (memcmp(message + first, message + second, unit) == 0)
                continue; /* nothing to notice */
            exchange(message, first, second, unit);
            TEST_CHECK(checksum(1, message, size) != sound);
            TEST_MSG("%zu and %zu, %zu bytes each", first, second, unit);
            exchange(message, first, second, unit);
        }
}

/* Bytes, words, pairs, strides, sectors: the places of any two matter. */
static void test_every_exchange_is_noticed(void)
{
    uint64_t state = 3;
    fill_by_chance(&state, message, sizeof(message));
    check_every_exchange(1024, 1);
    check_every_exchange(1024, 8);
    check_every_exchange(4096, 16);
    check_every_exchange(4096, 64);
    check_every_exchange(4096, 512);
}

static int compare_numbers(const void *left, const void *right)
{
    uint64_t a, b;
    memcpy(&a, left, sizeof(a));
    memcpy(&b, right, sizeof(b));
    return (a > b) - (a < b);
}

static size_t count_equal(uint64_t *numbers, size_t count)
{
    size_t equal = 0;
    qsort(numbers, count, sizeof(*numbers), compare_numbers);
    for (size_t i = 1; i < count; i++)
        equal += numbers[i] == numbers[i - 1];
    return equal;
}

/* Bytes that are all the same give no help in telling sizes apart. */
static void test_the_size_matters(void)
{
    static const uint8_t zeros[4096];
    static uint64_t sums[2 * (sizeof(zeros) + 1)];
    fill();
    for (size_t size = 0; size <= sizeof(zeros); size++) {
        sums[2 * size] = checksum(0, zeros, size);
        sums[2 * size + 1] = checksum(1, zeros, size);
    }
    TEST_CHECK(count_equal(sums, COUNT(sums)) == 0);
    for (size_t size = 0; size < sizeof(message); size++)
        TEST_CHECK(checksum(0, message, size) != checksum(0, message, size + 1));
}

static void test_similar_keys_and_seeds_give_different_sums(void)
{
    enum { NUMBERS = 100000 };
    static uint64_t sums[3 * NUMBERS];
    for (uint64_t i = 0; i < NUMBERS; i++) {
        uint64_t high = i << 40;
        sums[3 * i] = checksum(0, &i, sizeof(i));
        sums[3 * i + 1] = checksum(i + 1, "some value", 10);
        sums[3 * i + 2] = checksum(high + 1, &high, sizeof(high));
    }
    TEST_CHECK(count_equal(sums, COUNT(sums)) == 0);
}

/* Words chosen so that one factor of the last product of each lane is zero, for whoever knows the secrets. The
 * other word of that pair is hidden, as store/checksum.c says; nothing else may be. A lane that were replaced by
 * its product would forget all its earlier words here. */
static void test_a_zero_factor_hides_one_word(void)
{
    static const uint64_t secrets[4] = {0x243f6a8885a308d3u, 0x13198a2e03707344u, 0xa4093822299f31d0u,
                                        0x082efa98ec4e6c89u};
    uint8_t bytes[320];
    size_t hidden = 0;
    uint64_t sound, state = 5;
    fill_by_chance(&state, bytes, sizeof(bytes));
    for (size_t lane = 0; lane < 4; lane++)
        memcpy(bytes + 256 + 16 * lane, &secrets[lane], 8);
    sound = checksum(1, bytes, sizeof(bytes));
    for (size_t bit = 0; bit < 8 * sizeof(bytes); bit++) {
        bool hides = bit / 8 >= 256 && bit / 8 % 16 >= 8;
        flip(bytes, bit);
        hidden += checksum(1, bytes, sizeof(bytes)) == sound;
        TEST_CHECK(hides || checksum(1, bytes, sizeof(bytes)) != sound);
        flip(bytes, bit);
    }
    TEST_CHECK(hidden == 4 * 64); /* else this was no test */
}

/* Each bit of the input (and of the seed) turns each bit of the sum half of the time. For n tries the count of
 * one cell strays from n/2 by 7 times sqrt(n)/2 once in 4 * 10^11; there are 64 cells a bit. */
static void check_avalanche(size_t size, unsigned tries, double allowed)
{
    static unsigned turned[64];
    static uint8_t bytes[1024];
    uint64_t state = size;
    for (size_t bit = 0; bit < 8 * size + 64; bit++) {
        memset(turned, 0, sizeof(turned));
        for (unsigned i = 0; i < tries; i++) {
            uint64_t before, after, seed = chance(&state);
            fill_by_chance(&state, bytes, size < 64 ? size : 64);
            before = checksum(seed, bytes, size);
            if (bit < 8 * size) {
                flip(bytes, bit);
                after = checksum(seed, bytes, size);
                flip(bytes, bit);
            } else {
                after = checksum(seed ^ UINT64_C(1) << (bit - 8 * size), bytes, size);
            }
            for (unsigned k = 0; k < 64; k++)
                turned[k] += (unsigned)((before ^ after) >> k & 1);
        }
        for (unsigned k = 0; k < 64; k++) {
            TEST_CHECK(turned[k] > tries / 2.0 - allowed && turned[k] < tries / 2.0 + allowed);
            TEST_MSG("%zu bytes, bit %zu turned bit %u of the sum %u times of %u", size, bit, k, turned[k],
                     tries);
        }
    }
}

static void test_avalanche(void)
{
    check_avalanche(1, 1024, 7 * 16);
    check_avalanche(11, 1024, 7 * 16);
    check_avalanche(16, 1024, 7 * 16);
    check_avalanche(64, 256, 7 * 8);
    check_avalanche(100, 256, 7 * 8);
    check_avalanche(1024, 64, 7 * 4);
}

TEST_LIST
= {
    {"known answers", test_known_answers},
    {"known answer of every size to 1100", test_known_answer_of_every_size_to_1100},
    {"reads exactly its bytes", test_reads_exactly_its_bytes},
    {"every flipped bit is noticed", test_every_flipped_bit_is_noticed},
    {"every two flipped bits are noticed", test_every_two_flipped_bits_are_noticed},
    {"every exchange is noticed", test_every_exchange_is_noticed},
    {"the size matters", test_the_size_matters},
    {"similar keys and seeds give different sums", test_similar_keys_and_seeds_give_different_sums},
    {"a zero factor hides one word", test_a_zero_factor_hides_one_word},
    {"avalanche", test_avalanche},
    {NULL, NULL},
};
