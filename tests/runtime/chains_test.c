#include "runtime/chains.h"

#include <stdbool.h>
#include <stdlib.h>

#include "acutest.h"

enum { ID_MAX = 3000 };

struct fixture {
    struct chains chains;
    void *memory;
};

static struct fixture fixture_create(uint32_t id_max)
{
    struct fixture f = {.memory = calloc(1, chains_bytes(id_max))};
    TEST_ASSERT(f.memory != NULL);
    chains_init(&f.chains, f.memory, id_max);
    return f;
}

static void test_empty(void)
{
    struct fixture f = fixture_create(1);
    TEST_CHECK(chains_first(&f.chains, 0) == 0);
    TEST_CHECK(chains_first(&f.chains, UINT64_MAX) == 0);
    chains_add(&f.chains, 77, 1);
    TEST_CHECK(chains_first(&f.chains, 77) == 1);
    TEST_CHECK(chains_next(&f.chains, 1) == 0);
    chains_remove(&f.chains, 1);
    TEST_CHECK(chains_first(&f.chains, 77) == 0);
    free(f.memory);
}

/* The ids of one hash, newest first, whatever was split in between: 7 hashes that agree in their low 8 bits.
 */
static void test_newest_first_over_splits(void)
{
    struct fixture f = fixture_create(ID_MAX);
    for (uint32_t id = 1; id <= ID_MAX; id++) {
        chains_add(&f.chains, (uint64_t)(id % 7) << 8, id);
    }
    for (uint32_t hash = 0; hash < 7; hash++) {
        uint32_t expected = ID_MAX;
        while (expected % 7 != hash) {
            expected--;
        }
        uint32_t count = 0;
        for (uint32_t id = chains_first(&f.chains, hash << 8); id; id = chains_next(&f.chains, id)) {
            TEST_CHECK(id == expected);
            expected -= 7;
            count++;
        }
        TEST_CHECK(count == (ID_MAX + (7 - hash) % 7) / 7);
        TEST_MSG("hash %u: %u", hash, count);
    }
    free(f.memory);
}

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* Against an array that knows who is in and with which hash. */
static void test_random_against_a_model(void)
{
    struct fixture f = fixture_create(ID_MAX);
    static uint32_t hash_of[ID_MAX + 1];
    static bool in[ID_MAX + 1];
    uint64_t state = 1;
    for (int step = 0; step < 200000; step++) {
        uint32_t id = 1 + (uint32_t)(next_random(&state) % ID_MAX);
        if (in[id]) {
            chains_remove(&f.chains, id);
        } else {
            hash_of[id] = (uint32_t)(next_random(&state) % 1000) * 2654435761u;
            chains_add(&f.chains, hash_of[id], id);
        }
        in[id] = !in[id];
    }
    uint32_t expected = 0, found = 0;
    for (uint32_t id = 1; id <= ID_MAX; id++) {
        expected += in[id];
    }
    for (uint32_t i = 0; i < 1000; i++) {
        uint32_t hash = i * 2654435761u;
        for (uint32_t id = chains_first(&f.chains, hash); id; id = chains_next(&f.chains, id)) {
            TEST_CHECK(in[id]);
            TEST_CHECK(hash_of[id] == hash);
            found++;
        }
    }
    TEST_CHECK(found == expected);
    TEST_CHECK(f.chains.id_count == expected);
    free(f.memory);
}

TEST_LIST
= {
    {"empty, one, empty", test_empty},
    {"newest first, over all splits", test_newest_first_over_splits},
    {"random additions and removals against a model", test_random_against_a_model},
    {NULL, NULL},
};
