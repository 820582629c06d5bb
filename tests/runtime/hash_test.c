#include "runtime/hash.h"

#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>

#include "acutest.h"

static const struct hash_key vector_key = {.k0 = 0x0706050403020100u, .k1 = 0x0f0e0d0c0b0a0908u};

/* Key 00 01 .. 0f, message 00 01 .. ; 15 bytes is the vector of the SipHash paper, the others come from
 * OpenSSL. */
static const struct {
    size_t length;
    uint64_t hash;
} vectors[] = {
    {0, 0x726fdb47dd0e0e31u},  {1, 0x74f839c593dc67fdu},   {7, 0xab0200f58b01d137u},
    {8, 0x93f5f5799a932462u},  {9, 0x9e0082df0ba9e4b0u},   {15, 0xa129ca6149be45e5u},
    {16, 0x3f2acc7f57c29bdbu}, {31, 0x32d892fad841c342u},  {63, 0x958a324ceb064572u},
    {64, 0xacd2c40b8502cad8u}, {255, 0xa9c169fec74db21au}, {256, 0x999d0526d2a7bfd7u},
};

static void test_AMB_T_13_siphash_vectors(void)
{
    unsigned char message[256];
    for (size_t i = 0; i < sizeof(message); i++) {
        message[i] = (unsigned char)i;
    }
    for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
        TEST_CASE_("%zu bytes", vectors[i].length);
        TEST_CHECK(hash_sip24(&vector_key, message, vectors[i].length) == vectors[i].hash);
    }
}

static void test_AMB_T_13_pieces_hash_as_the_whole(void)
{
    unsigned char message[40];
    for (size_t i = 0; i < sizeof(message); i++) {
        message[i] = (unsigned char)(i * 37);
    }
    uint64_t whole = hash_sip24(&vector_key, message, sizeof(message));
    for (size_t first = 0; first <= sizeof(message); first++) {
        for (size_t second = first; second <= sizeof(message); second++) {
            struct hash_sip sip;
            hash_sip_start(&sip, &vector_key);
            hash_sip_add(&sip, message, first);
            hash_sip_add(&sip, message + first, second - first);
            hash_sip_add(&sip, message + second, sizeof(message) - second);
            TEST_CHECK(hash_sip_end(&sip) == whole);
            TEST_MSG("cut at %zu and %zu", first, second);
        }
    }
}

static void test_AMB_T_13_separator_is_one_byte(void)
{
    /* Computed by OpenSSL over the joined text: partitions outlive a release, so the number itself is the
     * contract. */
    uint64_t hash = hash_sip24(&vector_key, "instance-7:room-42", 18);
    TEST_CHECK(hash == 0x4a4d42d1468b20abu);
    for (uint32_t count = 1; count < 100; count++) {
        TEST_CHECK(hash_partition_pair(&vector_key, "instance-7", 10, "room-42", 7, count) == hash % count);
        TEST_CHECK(hash_partition(&vector_key, "instance-7:room-42", 18, count) == hash % count);
    }
}

/* Chi-square over 10,000 keys. With 1 in 1,000,000 as the chance to fail for a perfect hash, 3 degrees of
 * freedom allow 30.7, 15 allow 56.5, 63 allow 131. The keys and the key are fixed, so the outcome is too. */
static void check_spread(uint32_t count, double allowed)
{
    unsigned in_partition[64] = {0};
    for (unsigned i = 0; i < 10000; i++) {
        char room[16];
        int length = snprintf(room, sizeof(room), "room-%u", i);
        in_partition[hash_partition_pair(&vector_key, "instance-7", 10, room, (size_t)length, count)]++;
    }
    double expected = 10000.0 / count, sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        sum += (in_partition[i] - expected) * (in_partition[i] - expected) / expected;
    }
    TEST_CHECK(sum < allowed);
    TEST_MSG("%u partitions: %.1f", count, sum);
}

static void test_TOP_141_partitions_are_even(void)
{
    check_spread(4, 30.7);
    check_spread(16, 56.5);
    check_spread(64, 131);
}

static void test_sip_depends_on_the_key(void)
{
    struct hash_key other = vector_key;
    other.k1 ^= 1;
    TEST_CHECK(hash_sip24(&other, "room", 4) != hash_sip24(&vector_key, "room", 4));
}

/* The bytes end where readable memory ends, and what lies before them must not matter. */
static void test_fast_reads_exactly_its_bytes(void)
{
    unsigned char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    TEST_ASSERT(pages != MAP_FAILED);
    TEST_ASSERT(mprotect(pages + 4096, 4096, PROT_NONE) == 0);
    for (size_t length = 0; length <= 100; length++) {
        unsigned char copy[200];
        for (size_t i = 0; i < sizeof(copy); i++) {
            copy[i] = (unsigned char)(i + 1);
        }
        unsigned char *end = pages + 4096 - length;
        memset(pages, 0xaa, 4096);
        memcpy(end, copy, length);
        TEST_CHECK(hash_bytes(&vector_key, end, length) == hash_bytes(&vector_key, copy, length));
        TEST_CHECK(hash_sip24(&vector_key, end, length) == hash_sip24(&vector_key, copy, length));

        uint64_t words[2], low, high;
        memset(words, 0, sizeof(words));
        memcpy(words, copy, length < 16 ? length : 16);
        hash_load16(end, length, &low, &high);
        TEST_CHECK(low == words[0]);
        TEST_CHECK(high == words[1]);
        TEST_MSG("length %zu", length);
    }
    TEST_CHECK(munmap(pages, 8192) == 0);
}

/* Every bit of the input moves every bit of the output about every other time. 64 x 4096 trials per position
 * have a standard deviation of 0.1 %; 45 % to 55 % is far outside chance. */
static void test_fast_avalanche(void)
{
    enum { TRIALS = 4096, LENGTH = 24 };
    for (size_t bit = 0; bit < LENGTH * 8; bit++) {
        uint64_t flips = 0;
        for (uint64_t trial = 0; trial < TRIALS; trial++) {
            unsigned char bytes[LENGTH] = "room:";
            memcpy(bytes + 5, &trial, sizeof(trial));
            uint64_t before = hash_bytes(&vector_key, bytes, LENGTH);
            bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
            flips += (uint64_t)__builtin_popcountll(before ^ hash_bytes(&vector_key, bytes, LENGTH));
        }
        TEST_CHECK(flips > TRIALS * 64 * 45 / 100);
        TEST_CHECK(flips < TRIALS * 64 * 55 / 100);
        TEST_MSG("bit %zu: %.3f", bit, (double)flips / (TRIALS * 64));
    }
}

static void test_fast_zeros_of_any_length_differ(void)
{
    static const unsigned char zeros[64];
    for (size_t a = 0; a <= sizeof(zeros); a++) {
        for (size_t b = 0; b < a; b++) {
            TEST_CHECK(hash_bytes(&vector_key, zeros, a) != hash_bytes(&vector_key, zeros, b));
        }
    }
}

/* Tables use the low bits for the bucket and the high ones for the tag: both halves spread names that count
 * up. 65,536 balls into as many bins leave 63.2 % of them hit; the deviation is 0.12 %. */
static void test_fast_spreads_counted_names(void)
{
    static bool low[65536], high[65536];
    unsigned low_hit = 0, high_hit = 0;
    for (unsigned i = 0; i < 65536; i++) {
        char name[16];
        int length = snprintf(name, sizeof(name), "room:%u", i);
        uint64_t hash = hash_bytes(&vector_key, name, (size_t)length);
        low_hit += !low[hash & 65535];
        high_hit += !high[hash >> 48];
        low[hash & 65535] = high[hash >> 48] = true;
    }
    TEST_CHECK(low_hit > 65536 * 62 / 100);
    TEST_CHECK(high_hit > 65536 * 62 / 100);
    TEST_MSG("%u %u", low_hit, high_hit);
}

TEST_LIST
= {
    {"AMB-T-13 SipHash-2-4 gives the published numbers", test_AMB_T_13_siphash_vectors},
    {"AMB-T-13 pieces hash as the whole", test_AMB_T_13_pieces_hash_as_the_whole},
    {"AMB-T-13 the separator is one byte", test_AMB_T_13_separator_is_one_byte},
    {"TOP-141 TOP-145 partitions are even", test_TOP_141_partitions_are_even},
    {"SipHash depends on the key", test_sip_depends_on_the_key},
    {"nothing reads past its bytes", test_fast_reads_exactly_its_bytes},
    {"fast hash: avalanche", test_fast_avalanche},
    {"fast hash: zeros of any length differ", test_fast_zeros_of_any_length_differ},
    {"fast hash: counted names spread", test_fast_spreads_counted_names},
    {NULL, NULL},
};
