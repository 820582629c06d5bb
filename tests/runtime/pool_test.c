#include "runtime/pool.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "acutest.h"

/* What the tests keep in a block: the first word is the pool's while the block is free, the second never is.
 */
struct item {
    uint64_t word;
    uint64_t generation;
    uint64_t value;
    uint64_t check;
};

static struct pool_depot *depot_make(size_t block_size, size_t blocks)
{
    struct pool_depot *d = pool_depot_create(block_size, blocks * ((block_size + 63) / 64 * 64));
    TEST_ASSERT(d != NULL);
    return d;
}

static struct pool_stats stats_of(struct pool_depot *d)
{
    struct pool_stats s;
    pool_depot_stats(d, &s);
    return s;
}

static void test_create_refuses(void)
{
    static const size_t bad[][2] = {
        {0, 4096}, {POOL_BLOCK_MAX + 1, SIZE_MAX}, {SIZE_MAX, SIZE_MAX}, {64, 63}, {65, 127}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        errno = 0;
        TEST_CHECK_(pool_depot_create(bad[i][0], bad[i][1]) == NULL, "row %zu", i);
        TEST_CHECK_(errno == EINVAL, "row %zu", i);
    }
    pool_depot_destroy(NULL);
}

static void test_last_given_first_taken(void)
{
    struct pool_depot *d = depot_make(64, 1000);
    struct pool p;
    pool_init(&p, d);
    char *a = pool_take(&p);
    char *b = pool_take(&p);
    TEST_CHECK(a != NULL && b != NULL && a != b);
    pool_give(&p, a);
    pool_give(&p, b);
    TEST_CHECK(pool_take(&p) == b);
    TEST_CHECK(pool_take(&p) == a);
    pool_give(&p, a);
    pool_give(&p, b);
    pool_fini(&p);
    pool_depot_destroy(d);
}

static int address_order(const void *left, const void *right)
{
    uintptr_t l = *(const uintptr_t *)left;
    uintptr_t r = *(const uintptr_t *)right;
    return (l > r) - (l < r);
}

/* Every size: aligned, whole, apart from each other, and as many as the limit says. */
static void test_blocks_are_whole_and_apart(void)
{
    static const size_t sizes[] = {1, 64, 65, 200, 1024, 4096, POOL_BLOCK_MAX - 1, POOL_BLOCK_MAX};
    enum { COUNT = 300 };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct pool_depot *d = depot_make(sizes[i], COUNT);
        struct pool p;
        uintptr_t blocks[COUNT];
        pool_init(&p, d);
        for (size_t n = 0; n < COUNT; n++) {
            char *block = pool_take(&p);
            TEST_ASSERT(block != NULL);
            memset(block, 0x5a, sizes[i]);
            blocks[n] = (uintptr_t)block;
        }
        TEST_CHECK(pool_take(&p) == NULL);
        for (size_t n = 0; n < COUNT; n++)
            pool_give(&p, (void *)blocks[n]);
        qsort(blocks, COUNT, sizeof(blocks[0]), address_order);
        bool good = blocks[0] % POOL_ALIGN == 0;
        for (size_t n = 1; n < COUNT; n++)
            good = good && blocks[n] % POOL_ALIGN == 0 && blocks[n] - blocks[n - 1] >= sizes[i];
        TEST_CHECK_(good, "size %zu", sizes[i]);
        pool_fini(&p);
        TEST_CHECK(stats_of(d).in_use == 0);
        TEST_CHECK(stats_of(d).carved == COUNT);
        TEST_CHECK(stats_of(d).free == COUNT);
        pool_depot_destroy(d);
    }
}

static void test_limit_gives_null_and_recovers(void)
{
    enum { COUNT = 1000 };
    struct pool_depot *d = depot_make(128, COUNT);
    struct pool p;
    void *blocks[COUNT];
    pool_init(&p, d);
    for (unsigned round = 0; round < 3; round++) {
        for (size_t n = 0; n < COUNT; n++) {
            blocks[n] = pool_take(&p);
            TEST_ASSERT(blocks[n] != NULL);
        }
        TEST_CHECK(pool_take(&p) == NULL);
        TEST_CHECK(pool_take(&p) == NULL);
        TEST_CHECK(stats_of(d).refused == 2 * (round + 1));
        TEST_CHECK(stats_of(d).in_use == COUNT);
        TEST_CHECK(stats_of(d).free == 0);
        pool_give(&p, blocks[0]);
        TEST_CHECK(pool_take(&p) == blocks[0]);
        for (size_t n = 0; n < COUNT; n++)
            pool_give(&p, blocks[n]);
    }
    pool_fini(&p);
    TEST_CHECK(stats_of(d).carved == COUNT);
    TEST_CHECK(stats_of(d).blocks_max == COUNT);
    pool_depot_destroy(d);
}

/* A fresh block's stable word is zero, and whatever was written there outlives giving and taking, by any way.
 */
static void test_stable_word_is_left_alone(void)
{
    enum { COUNT = 500 };
    struct pool_depot *d = depot_make(sizeof(struct item), COUNT);
    struct pool a, b;
    struct item *items[COUNT];
    pool_init(&a, d);
    pool_init(&b, d);
    for (size_t n = 0; n < COUNT; n++) {
        items[n] = pool_take(&a);
        TEST_ASSERT(items[n] != NULL);
        TEST_CHECK(items[n]->generation == 0);
        items[n]->generation = n + 1;
    }
    for (size_t n = 0; n < COUNT; n++)
        pool_give(n % 3 == 0 ? &a : &b, items[n]);
    for (size_t n = 0; n < COUNT; n++)
        TEST_CHECK(items[n]->generation == n + 1); /* allowed on a free block, also for ASan and valgrind */
    pool_fini(&a);
    for (size_t n = 0; n < COUNT; n++) {
        struct item *item = pool_take(&b);
        TEST_ASSERT(item != NULL);
        TEST_CHECK(item->generation >= 1 && item->generation <= COUNT && items[item->generation - 1] == item);
    }
    pool_fini(&b);
    pool_depot_destroy(d);
}

static void test_memory_is_mapped_as_needed(void)
{
    struct pool_depot *d = depot_make(64, 1000000);
    struct pool p;
    pool_init(&p, d);
    TEST_CHECK(stats_of(d).bytes == 0);
    char *first = pool_take(&p);
    TEST_ASSERT(first != NULL);
    TEST_CHECK(stats_of(d).bytes == 256 * 1024);
    TEST_CHECK(stats_of(d).carved == 1);
    char *second = pool_take(&p);
    TEST_CHECK(second == first + 64);
    for (size_t n = 2; n < 100000; n++)
        TEST_ASSERT(pool_take(&p) != NULL);
    TEST_CHECK(stats_of(d).bytes == (256 + 512 + 1024 + 3 * 2048) * 1024);
    TEST_CHECK(stats_of(d).in_use == 100000);
    pool_fini(&p);
    pool_depot_destroy(d);
}

/* What a pool was handed and never cut is not lost with it. */
static void test_fini_gives_everything_back(void)
{
    enum { COUNT = 100 };
    struct pool_depot *d = depot_make(64, COUNT);
    struct pool a, b;
    pool_init(&a, d);
    pool_init(&b, d);
    void *block = pool_take(&a);
    TEST_CHECK(stats_of(d).carved == 1);
    pool_give(&a, block);
    pool_fini(&a);
    TEST_CHECK(stats_of(d).in_use == 0);
    TEST_CHECK(stats_of(d).free == stats_of(d).carved);
    for (size_t n = 0; n < COUNT; n++)
        TEST_CHECK(pool_take(&b) != NULL);
    TEST_CHECK(pool_take(&b) == NULL);
    pool_fini(&b);
    TEST_CHECK(stats_of(d).in_use == COUNT);
    pool_depot_destroy(d);
}

/* One block more than a magazine, to and fro: the spare takes the swing, the depot is not asked. */
static void test_swing_stays_in_the_pool(void)
{
    struct pool_depot *d = depot_make(64, POOL_BATCH * 8);
    struct pool p;
    void *blocks[POOL_BATCH * 2];
    pool_init(&p, d);
    if (p.watched) { /* under valgrind a pool keeps nothing */
        pool_fini(&p);
        pool_depot_destroy(d);
        return;
    }
    for (size_t n = 0; n < POOL_BATCH * 2; n++)
        blocks[n] = pool_take(&p);
    for (unsigned round = 0; round < 10; round++) {
        for (size_t n = 0; n < POOL_BATCH * 2; n++)
            pool_give(&p, blocks[n]);
        TEST_CHECK(p.spare != NULL && p.room == 0);
        for (size_t n = 0; n < POOL_BATCH * 2; n++)
            blocks[n] = pool_take(&p);
        TEST_CHECK(p.spare == NULL && p.room == POOL_BATCH);
        TEST_CHECK(stats_of(d).carved == POOL_BATCH * 2);
    }
    pool_fini(&p);
    pool_depot_destroy(d);
}

static void test_full_magazines_travel(void)
{
    enum { COUNT = POOL_BATCH * 5 };
    struct pool_depot *d = depot_make(64, COUNT);
    struct pool a, b;
    void *blocks[COUNT];
    pool_init(&a, d);
    pool_init(&b, d);
    for (unsigned round = 0; round < 4; round++) {
        for (size_t n = 0; n < COUNT; n++) {
            blocks[n] = pool_take(&a);
            if (blocks[n] == NULL) { /* b still holds what it may hold */
                TEST_CHECK(n >= COUNT - 2 * POOL_BATCH);
                break;
            }
        }
        for (size_t n = 0; n < COUNT && blocks[n] != NULL; n++)
            pool_give(&b, blocks[n]);
        TEST_CHECK(stats_of(d).in_use == 0);
        TEST_CHECK(stats_of(d).free == stats_of(d).carved);
    }
    pool_fini(&a);
    pool_fini(&b);
    TEST_CHECK(stats_of(d).carved == COUNT);
    TEST_CHECK(stats_of(d).free == COUNT);
    pool_depot_destroy(d);
}

/* A ring between one producer and one consumer; here only to carry blocks from thread to thread. */
enum { RING_SIZE = 512 };

struct ring {
    uint64_t head, tail;
    struct item *items[RING_SIZE];
};

static void ring_push(struct ring *r, struct item *item)
{
    while (r->tail - __atomic_load_n(&r->head, __ATOMIC_ACQUIRE) == RING_SIZE)
        sched_yield();
    r->items[r->tail % RING_SIZE] = item;
    __atomic_store_n(&r->tail, r->tail + 1, __ATOMIC_RELEASE);
}

static struct item *ring_pop(struct ring *r)
{
    while (__atomic_load_n(&r->tail, __ATOMIC_ACQUIRE) == r->head)
        sched_yield();
    struct item *item = r->items[r->head % RING_SIZE];
    __atomic_store_n(&r->head, r->head + 1, __ATOMIC_RELEASE);
    return item;
}

enum { TRAVELLERS = 200000 };

struct side {
    struct pool_depot *depot;
    struct ring *ring;
    uint64_t errors;
    uint64_t refused;
};

static void *produce(void *arg)
{
    struct side *side = arg;
    struct pool p;
    pool_init(&p, side->depot);
    for (uint64_t n = 0; n < TRAVELLERS; n++) {
        struct item *item;
        while ((item = pool_take(&p)) == NULL) {
            side->refused++;
            sched_yield();
        }
        *item =
            (struct item){.word = n, .generation = item->generation + 1, .value = n * 3, .check = ~(n * 3)};
        ring_push(side->ring, item);
    }
    pool_fini(&p);
    return NULL;
}

static void *consume(void *arg)
{
    struct side *side = arg;
    struct pool p;
    pool_init(&p, side->depot);
    for (uint64_t n = 0; n < TRAVELLERS; n++) {
        struct item *item = ring_pop(side->ring);
        side->errors += item->word != n || item->value != n * 3 || item->check != ~item->value;
        pool_give(&p, item);
    }
    pool_fini(&p);
    return NULL;
}

/* Two pairs over one depot, with room for the rings and what the pools hold back, so that nobody waits for
 * ever. */
static void test_producers_and_consumers(void)
{
    struct pool_depot *d = depot_make(sizeof(struct item), 2 * RING_SIZE + 4 * 3 * POOL_BATCH);
    struct ring rings[2];
    struct side sides[4];
    pthread_t threads[4];
    memset(rings, 0, sizeof(rings));
    for (size_t i = 0; i < 4; i++) {
        sides[i] = (struct side){.depot = d, .ring = &rings[i / 2]};
        TEST_ASSERT(pthread_create(&threads[i], NULL, i % 2 == 0 ? produce : consume, &sides[i]) == 0);
    }
    for (unsigned i = 0; i < 1000; i++) { /* stats may be taken at any time */
        struct pool_stats s = stats_of(d);
        TEST_CHECK(s.carved <= s.blocks_max && s.in_use <= s.carved);
        sched_yield();
    }
    for (size_t i = 0; i < 4; i++) {
        TEST_CHECK(pthread_join(threads[i], NULL) == 0);
        TEST_CHECK(sides[i].errors == 0);
    }
    struct pool_stats s = stats_of(d);
    TEST_CHECK(s.in_use == 0);
    TEST_CHECK(s.free == s.carved);
    TEST_CHECK(s.carved <= s.blocks_max);

    /* Everything can be taken again, each block once. */
    struct pool p;
    size_t taken = 0;
    pool_init(&p, d);
    for (struct item *item; (item = pool_take(&p)) != NULL; taken++) {
        TEST_CHECK(item->generation < UINT64_C(1) << 32);
        item->generation = UINT64_C(1) << 32;
    }
    TEST_CHECK(taken == s.blocks_max);
    pool_fini(&p);
    pool_depot_destroy(d);
}

static void *churn(void *arg)
{
    struct side *side = arg;
    struct pool p;
    void *held[3 * POOL_BATCH];
    size_t count = 0;
    uint64_t random = (uint64_t)(uintptr_t)side | 1;
    pool_init(&p, side->depot);
    for (unsigned n = 0; n < 100000; n++) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        if ((random >> 40) % 2 == 0 && count < 3 * POOL_BATCH) {
            struct item *item = pool_take(&p);
            if (item == NULL) {
                side->refused++;
                continue;
            }
            item->value = random;
            item->check = (uint64_t)(uintptr_t)item ^ random;
            held[count++] = item;
        } else if (count > 0) {
            struct item *item = held[--count];
            side->errors += item->check != ((uint64_t)(uintptr_t)item ^ item->value);
            pool_give(&p, item);
        }
    }
    while (count > 0)
        pool_give(&p, held[--count]);
    pool_fini(&p);
    return NULL;
}

/* Three threads want up to 192 blocks each and there are 256: the limit is met all the time and nothing is
 * lost. */
static void test_threads_at_the_limit(void)
{
    struct pool_depot *d = depot_make(sizeof(struct item), 256);
    struct side sides[3];
    pthread_t threads[3];
    for (size_t i = 0; i < 3; i++) {
        sides[i] = (struct side){.depot = d};
        TEST_ASSERT(pthread_create(&threads[i], NULL, churn, &sides[i]) == 0);
    }
    uint64_t refused = 0;
    for (size_t i = 0; i < 3; i++) {
        TEST_CHECK(pthread_join(threads[i], NULL) == 0);
        TEST_CHECK(sides[i].errors == 0);
        refused += sides[i].refused;
    }
    struct pool_stats s = stats_of(d);
    TEST_CHECK(s.in_use == 0);
    TEST_CHECK(s.free == s.carved);
    TEST_CHECK(s.carved <= 256);
    TEST_CHECK(s.refused == refused);
    pool_depot_destroy(d);
}

#if POOL_ASAN
/* In a child, since it must die of it. */
static bool dies(void (*deed)(struct pool *p, struct item *given), struct pool *p, struct item *given)
{
    pid_t pid = fork();
    TEST_ASSERT(pid >= 0);
    if (pid == 0) {
        close(STDERR_FILENO);
        deed(p, given);
        _exit(0);
    }
    int status = 0;
    TEST_ASSERT(waitpid(pid, &status, 0) == pid);
    return !(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void write_given(struct pool *p, struct item *given)
{
    (void)p;
    *(volatile uint64_t *)&given->value = 1;
}

static void give_again(struct pool *p, struct item *given)
{
    pool_give(p, given);
}

static void read_generation(struct pool *p, struct item *given)
{
    (void)p;
    (void)__atomic_load_n(&given->generation, __ATOMIC_RELAXED);
}

static void test_asan_finds_use_after_give(void)
{
    struct pool_depot *d = depot_make(sizeof(struct item), 1000);
    struct pool p;
    struct item *items[POOL_BATCH * 4];
    pool_init(&p, d);
    for (size_t n = 0; n < POOL_BATCH * 4; n++)
        items[n] = pool_take(&p);
    for (size_t n = 0; n < POOL_BATCH * 4; n++)
        pool_give(&p, items[n]);
    /* One in the loaded magazine, and the heads of one in the depot and of the spare. */
    static const size_t places[] = {POOL_BATCH * 4 - 1, POOL_BATCH - 1, POOL_BATCH * 3 - 1};
    for (size_t i = 0; i < 3; i++) {
        TEST_CHECK(dies(write_given, &p, items[places[i]]));
        TEST_CHECK(dies(give_again, &p, items[places[i]]));
        TEST_CHECK(!dies(read_generation, &p, items[places[i]]));
    }
    pool_fini(&p);
    TEST_CHECK(dies(write_given, &p, items[0]));
    pool_depot_destroy(d);
}
#endif

TEST_LIST
= {
    {"pool: create refuses", test_create_refuses},
    {"pool: the last block given is the first taken", test_last_given_first_taken},
    {"pool: blocks of every size are whole and apart", test_blocks_are_whole_and_apart},
    {"pool: the limit gives NULL and recovers", test_limit_gives_null_and_recovers},
    {"pool: the stable word is left alone", test_stable_word_is_left_alone},
    {"pool: memory is mapped as needed", test_memory_is_mapped_as_needed},
    {"pool: fini gives everything back", test_fini_gives_everything_back},
    {"pool: a swing around a magazine stays in the pool", test_swing_stays_in_the_pool},
    {"pool: full magazines travel between pools", test_full_magazines_travel},
    {"pool: producers and consumers", test_producers_and_consumers},
    {"pool: threads at the limit", test_threads_at_the_limit},
#if POOL_ASAN
    {"pool: ASan finds use after give, and a second give", test_asan_finds_use_after_give},
#endif
    {NULL, NULL},
};
