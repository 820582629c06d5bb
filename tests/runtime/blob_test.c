#include "runtime/blob.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "acutest.h"

#define REGION ((size_t)16 * 1024 * 1024)

static bool holds(const struct blob *blob, unsigned char byte, size_t size)
{
    if (!blob || blob_size(blob) != size || blob_bytes(blob)[size] != 0) {
        return false;
    }
    for (size_t i = 0; i < size; i++) {
        if ((unsigned char)blob_bytes(blob)[i] != byte) {
            return false;
        }
    }
    return true;
}

static struct blob *filled(unsigned char byte, size_t size)
{
    static unsigned char bytes[BLOB_BYTES_MAX + 1];
    memset(bytes, byte, size);
    return blob_create(bytes, size);
}

/* Every size next to the next, so that one byte too many in a class would be seen in a neighbour. */
static void test_MON_10_every_size_arrives_unchanged(void)
{
    enum { SIZES = 700 };
    struct blob *first[SIZES], *second[SIZES];
    TEST_ASSERT(blob_boot(64 * 1024 * 1024) == 0);
    for (size_t i = 0; i < SIZES; i++) {
        size_t size = i < 600 ? i : BLOB_BYTES_MAX - (SIZES - 1 - i) * 650;
        first[i] = filled((unsigned char)i, size);
        second[i] = filled((unsigned char)~i, size);
    }
    for (size_t i = 0; i < SIZES; i++) {
        size_t size = i < 600 ? i : BLOB_BYTES_MAX - (SIZES - 1 - i) * 650;
        TEST_CHECK(holds(first[i], (unsigned char)i, size));
        TEST_CHECK(holds(second[i], (unsigned char)~i, size));
        TEST_MSG("size %zu", size);
        blob_unref(first[i]);
        blob_unref(second[i]);
    }
    TEST_CHECK(blob_count() == 0);
    blob_shutdown();
}

static void test_a_blob_lives_as_long_as_a_reference(void)
{
    struct blob *blob = blob_create("reason", 6);
    TEST_ASSERT(blob != NULL);
    TEST_CHECK(blob_ref(blob) == blob);
    TEST_CHECK(blob_ref(blob) == blob);
    blob_unref(blob);
    blob_unref(blob);
    TEST_CHECK(blob_count() == 1);
    TEST_CHECK(strcmp(blob_bytes(blob), "reason") == 0);
    blob_unref(blob);
    TEST_CHECK(blob_count() == 0);
    TEST_CHECK(blob_ref(NULL) == NULL);
    blob_unref(NULL);
    blob_shutdown();
}

static void test_limits(void)
{
    TEST_CHECK(blob_boot(0) == -EINVAL);
    TEST_CHECK(blob_boot(SIZE_MAX) == -ENOMEM);
    TEST_CHECK(blob_boot(SIZE_MAX / 4) == -ENOMEM);
    TEST_CHECK(blob_boot(REGION) == 0);
    TEST_CHECK(blob_boot(REGION) == -EBUSY);
    TEST_CHECK(filled('x', BLOB_BYTES_MAX + 1) == NULL);
    struct blob *largest = filled('x', BLOB_BYTES_MAX), *empty = blob_create(NULL, 0);
    TEST_CHECK(holds(largest, 'x', BLOB_BYTES_MAX));
    TEST_CHECK(holds(empty, 0, 0));
    blob_unref(largest);
    blob_unref(empty);
    blob_shutdown();
    blob_shutdown(); /* nothing is there any more */
}

static void test_without_boot_there_is_a_default(void)
{
    struct blob *blob = filled('d', 100);
    TEST_CHECK(holds(blob, 'd', 100));
    TEST_CHECK(blob_boot(REGION) == -EBUSY);
    blob_unref(blob);
    blob_shutdown();
}

/* Fills the region with one size; returns how many went in. */
static size_t fill(struct blob **blobs, size_t capacity, size_t size)
{
    size_t count = 0;
    while (count < capacity && (blobs[count] = filled((unsigned char)count, size)) != NULL) {
        count++;
    }
    return count;
}

static bool all_hold(struct blob **blobs, size_t count, size_t size)
{
    for (size_t i = 0; i < count; i++) {
        if (!holds(blobs[i], (unsigned char)i, size)) {
            return false;
        }
    }
    return true;
}

/* A full region refuses, and room that one size gave back serves another. */
static void test_full_region_refuses_and_sizes_share_it(void)
{
    enum { CAPACITY = 300000 };
    static const size_t sizes[] = {50, 1000, 65536, 20000, 50, 65536, 71};
    struct blob **blobs = calloc(CAPACITY, sizeof(*blobs));
    TEST_ASSERT(blobs != NULL);
    TEST_ASSERT(blob_boot(REGION) == 0);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_t count = fill(blobs, CAPACITY, sizes[i]);
        TEST_CHECK(count < CAPACITY);
        /* Three quarters at least; what other sizes keep is one slab each. */
        TEST_CHECK(count * (sizes[i] + 9) > (REGION - 5 * 256 * 1024) * 3 / 4 * 3 / 4);
        TEST_MSG("%zu of %zu bytes", count, sizes[i]);
        TEST_CHECK(blob_slab_bytes() <= REGION);
        TEST_CHECK(all_hold(blobs, count, sizes[i]));
        for (size_t k = 0; k < count; k++) { /* every other one first, so that no slab goes early */
            blob_unref(blobs[k * 2 < count ? k * 2 : (k - (count + 1) / 2) * 2 + 1]);
        }
        TEST_CHECK(blob_count() == 0);
        TEST_CHECK(blob_slab_bytes() <= (i + 1) * 256 * 1024);
    }
    free(blobs);
    blob_shutdown();
}

static void test_churn_does_not_grow(void)
{
    struct blob *kept = filled('k', 200);
    for (unsigned i = 0; i < 10000; i++) {
        struct blob *blob = filled((unsigned char)i, 200);
        TEST_CHECK(blob != NULL);
        blob_unref(blob);
    }
    TEST_CHECK(blob_slab_bytes() == 256 * 1024);
    TEST_CHECK(holds(kept, 'k', 200));
    blob_unref(kept);
    blob_shutdown();
}

/* Threads exchange blobs through shared places, so that most are freed by another thread than made them. */
enum { THREADS = 4, PLACES = 64, ROUNDS = 50000 };

static struct blob *_Atomic places[PLACES];

struct worker {
    uint64_t state;
    unsigned errors;
};

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static unsigned check_and_drop(struct blob *blob)
{
    if (!blob) {
        return 0;
    }
    unsigned errors = !holds(blob, (unsigned char)blob_size(blob), blob_size(blob));
    blob_unref(blob);
    return errors;
}

static void *work(void *argument)
{
    struct worker *w = argument;
    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned char bytes[1024];
        size_t size = next_random(&w->state) % (sizeof(bytes) + 1);
        memset(bytes, (int)(unsigned char)size, size);
        struct blob *blob = blob_create(bytes, size);
        w->errors += !blob;
        /* One reference into each of two places; what was there is ours then. */
        uint64_t first = next_random(&w->state) % PLACES, second = next_random(&w->state) % PLACES;
        w->errors += check_and_drop(atomic_exchange(&places[first], blob_ref(blob)));
        w->errors += check_and_drop(atomic_exchange(&places[second], blob));
    }
    return NULL;
}

static void test_threads_free_each_others(void)
{
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.state = i};
        TEST_ASSERT(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        TEST_ASSERT(pthread_join(threads[i], NULL) == 0);
        TEST_CHECK(workers[i].errors == 0);
    }
    for (unsigned i = 0; i < PLACES; i++) {
        TEST_CHECK(check_and_drop(places[i]) == 0);
        places[i] = NULL;
    }
    TEST_CHECK(blob_count() == 0);
    blob_shutdown();
}

TEST_LIST
= {
    {"MON-10 every size arrives unchanged", test_MON_10_every_size_arrives_unchanged},
    {"a blob lives as long as a reference", test_a_blob_lives_as_long_as_a_reference},
    {"limits", test_limits},
    {"without boot there is a default", test_without_boot_there_is_a_default},
    {"a full region refuses; sizes share it", test_full_region_refuses_and_sizes_share_it},
    {"churn does not grow", test_churn_does_not_grow},
    {"threads free each other's", test_threads_free_each_others},
    {NULL, NULL},
};
