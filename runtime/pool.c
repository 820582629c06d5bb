#include "runtime/pool.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#if defined(__has_include)
#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#define POOL_VALGRIND 1
#endif
#endif
#ifndef POOL_VALGRIND
#define POOL_VALGRIND 0
#endif

#include "runtime/assert.h"

#define SLAB_BYTES_FIRST ((size_t)256 * 1024)
#define SLAB_BYTES_MAX   ((size_t)2 * 1024 * 1024)

STATIC_ASSERT(sizeof(struct pool_block) == POOL_KEPT,
              "a free block keeps its list and the stable word readable");
STATIC_ASSERT(offsetof(struct pool_block, stable) == POOL_STABLE, "the stable word is where the header says");
STATIC_ASSERT(POOL_BLOCK_MAX + POOL_ALIGN <= SLAB_BYTES_FIRST, "the first slab holds a block of any size");
STATIC_ASSERT(SLAB_BYTES_MAX % SLAB_BYTES_FIRST == 0, "slabs double up to the largest");

/* At the start of each slab; the blocks follow at POOL_ALIGN. */
struct slab {
    struct slab *next;
    size_t bytes;
};

STATIC_ASSERT(sizeof(struct slab) <= POOL_ALIGN, "a slab's head takes one line");

/* A full magazine in the depot is linked to the next one through its first block, behind the kept bytes. */
struct magazine {
    struct pool_block first;
    struct magazine *next;
} __attribute__((may_alias));

STATIC_ASSERT(sizeof(struct magazine) <= POOL_ALIGN, "the smallest block can head a magazine");

/* What a pool had been handed and not cut when it was finished: blocks that were never in use, and stay untouched but for
 * the first one. */
struct remainder {
    struct pool_block first;
    struct remainder *next;
    char *end;
} __attribute__((may_alias));

STATIC_ASSERT(sizeof(struct remainder) <= POOL_ALIGN, "the smallest block can head a remainder");

/* Everything but the constants is under the mutex. */
struct pool_depot {
    pthread_mutex_t mutex;
    size_t block_size;
    size_t blocks_max;

    struct magazine *full;
    size_t full_count;
    struct pool_block *loose; /* blocks that came one by one */
    size_t loose_count;
    struct remainder *remainders;

    struct slab *slabs; /* the newest first: it is the one being cut */
    char *cut, *cut_end;
    size_t slab_bytes; /* the size of the next one */
    size_t bytes;
    size_t handed_out; /* blocks cut, or in a pool's range to be cut */
    size_t refused;

    struct pool *pools;
};

static void lock(struct pool_depot *d)
{
    int error = pthread_mutex_lock(&d->mutex);
    ASSERT(error == 0);
}

static void unlock(struct pool_depot *d)
{
    int error = pthread_mutex_unlock(&d->mutex);
    ASSERT(error == 0);
}

#if POOL_ASAN
void pool_block_open(struct pool_block *block, size_t block_size)
{
    __asan_unpoison_memory_region((char *)block + POOL_KEPT, block_size - POOL_KEPT);
}

void pool_block_close(struct pool_block *block, size_t block_size)
{
    ASSERT(!__asan_address_is_poisoned((char *)block + POOL_KEPT));
    __asan_poison_memory_region((char *)block + POOL_KEPT, block_size - POOL_KEPT);
}
#endif

static bool valgrind_runs(void)
{
#if POOL_VALGRIND
    return RUNNING_ON_VALGRIND != 0;
#else
    return false;
#endif
}

/* A block's way out of the depot alone, and back: where valgrind is told. */
static void watch_open(struct pool_block *block, size_t block_size)
{
    pool_block_open(block, block_size);
#if POOL_VALGRIND
    VALGRIND_MAKE_MEM_UNDEFINED((char *)block + POOL_KEPT, block_size - POOL_KEPT);
#endif
}

static void watch_close(struct pool_block *block, size_t block_size)
{
    pool_block_close(block, block_size);
#if POOL_VALGRIND
    VALGRIND_MAKE_MEM_NOACCESS((char *)block + POOL_KEPT, block_size - POOL_KEPT);
#endif
}

static void full_push(struct pool_depot *d, struct pool_block *first)
{
    struct magazine *m = (struct magazine *)first;
    pool_block_open(first, d->block_size);
    m->next = d->full;
    pool_block_close(first, d->block_size);
    d->full = m;
    d->full_count++;
}

static struct pool_block *full_pop(struct pool_depot *d)
{
    struct magazine *m = d->full;
    pool_block_open(&m->first, d->block_size);
    d->full = m->next;
    pool_block_close(&m->first, d->block_size);
    d->full_count--;
    return &m->first;
}

/* The block is closed. */
static void loose_push(struct pool_depot *d, struct pool_block *block)
{
    block->next = d->loose;
    d->loose = block;
    d->loose_count++;
}

static struct pool_block *loose_pop(struct pool_depot *d)
{
    struct pool_block *block = d->loose;
    d->loose = block->next;
    d->loose_count--;
    return block;
}

static bool slab_map(struct pool_depot *d)
{
    size_t bytes = d->slab_bytes;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    /* One block must not make 2 MiB resident in a small process: only the largest slabs may be huge pages.
     * Best effort: a kernel without huge pages refuses. */
    if (bytes < SLAB_BYTES_MAX)
        (void)madvise(memory, bytes, MADV_NOHUGEPAGE);

    struct slab *slab = memory;
    slab->next = d->slabs;
    slab->bytes = bytes;
    d->slabs = slab;
    d->cut = (char *)memory + POOL_ALIGN;
    d->cut_end = d->cut + (bytes - POOL_ALIGN) / d->block_size * d->block_size;
    d->bytes += bytes;
    if (d->slab_bytes < SLAB_BYTES_MAX)
        d->slab_bytes *= 2;
    return true;
}

static void remainder_push(struct pool_depot *d, char *from, char *end)
{
    struct remainder *r = (struct remainder *)(void *)from;
    if (from == end)
        return;
    r->next = d->remainders;
    r->end = end;
    d->remainders = r;
}

static char *remainder_take(struct pool_depot *d, size_t count, char **ret_end)
{
    struct remainder *r = d->remainders;
    char *end = r->end, *from = (char *)r;
    d->remainders = r->next;
    if (count < (size_t)(end - from) / d->block_size) {
        remainder_push(d, from + count * d->block_size, end);
        end = from + count * d->block_size;
    }
    d->handed_out += (size_t)(end - from) / d->block_size;
    *ret_end = end;
    return from;
}

/* A range of up to `count` blocks that were never in use; false when the limit is reached or memory is not to
 * be had. */
static bool range_take(struct pool_depot *d, size_t count, char **ret_from, char **ret_end)
{
    size_t left = d->blocks_max - d->handed_out;
    if (left == 0)
        return false;
    if (d->remainders != NULL) {
        *ret_from = remainder_take(d, count < left ? count : left, ret_end);
        return true;
    }
    if (d->cut == d->cut_end && !slab_map(d))
        return false;

    size_t here = (size_t)(d->cut_end - d->cut) / d->block_size;
    if (count > here)
        count = here;
    if (count > left)
        count = left;
    d->handed_out += count;
    *ret_from = d->cut;
    d->cut += count * d->block_size;
    *ret_end = d->cut;
    return true;
}

static struct pool_block *take_watched(struct pool_depot *d)
{
    struct pool_block *block = NULL;
    char *from, *end;

    if (d->loose != NULL)
        block = loose_pop(d);
    else if (range_take(d, 1, &from, &end))
        block = (struct pool_block *)from;
    if (block != NULL)
        watch_open(block, d->block_size);
    return block;
}

/* The loaded magazine becomes what the depot has: a full magazine, else loose blocks, else nothing but a
 * range to cut. */
static bool refill(struct pool *p, struct pool_depot *d)
{
    struct pool_block *list = NULL;
    uint32_t count = 0;
    char *from, *end;

    if (d->full != NULL) {
        list = full_pop(d);
        count = POOL_BATCH;
    }
    while (count < POOL_BATCH && d->loose != NULL) {
        struct pool_block *block = loose_pop(d);
        block->next = list;
        list = block;
        count++;
    }
    if (count > 0) {
        p->free = list;
        __atomic_store_n(&p->room, POOL_BATCH - count, __ATOMIC_RELAXED);
        return true;
    }
    if (!range_take(d, POOL_BATCH, &from, &end))
        return false;
    __atomic_store_n(&p->cut, from, __ATOMIC_RELAXED);
    p->cut_end = end;
    return true;
}

static struct pool_block *cut_one(struct pool *p)
{
    char *block = p->cut;
    __atomic_store_n(&p->cut, block + p->block_size, __ATOMIC_RELAXED);
    return (struct pool_block *)block;
}

void *pool_take_slow(struct pool *p)
{
    struct pool_depot *d = p->depot;

    if (p->watched) {
        lock(d);
        struct pool_block *block = take_watched(d);
        d->refused += block == NULL;
        unlock(d);
        return block;
    }
    if (p->spare != NULL) {
        p->free = p->spare;
        __atomic_store_n(&p->room, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&p->spare, NULL, __ATOMIC_RELAXED);
        return pool_take(p);
    }
    if (p->cut == p->cut_end) {
        lock(d);
        bool refilled = refill(p, d);
        d->refused += !refilled;
        unlock(d);
        if (!refilled)
            return NULL;
    }
    return p->free != NULL ? pool_take(p) : cut_one(p);
}

/* The loaded magazine is full. */
void pool_give_slow(struct pool *p, struct pool_block *block)
{
    struct pool_depot *d = p->depot;

    if (p->watched) {
        lock(d);
        watch_close(block, d->block_size);
        loose_push(d, block);
        unlock(d);
        return;
    }
    if (p->spare != NULL) {
        lock(d);
        full_push(d, p->spare);
        unlock(d);
    }
    __atomic_store_n(&p->spare, p->free, __ATOMIC_RELAXED);
    p->free = NULL;
    __atomic_store_n(&p->room, POOL_BATCH, __ATOMIC_RELAXED);
    pool_give(p, block);
}

void pool_init(struct pool *p, struct pool_depot *d)
{
    *p = (struct pool){.room = POOL_BATCH, .block_size = (uint32_t)d->block_size, .depot = d};
    if (valgrind_runs()) {
        p->watched = true;
        p->room = 0;
    }
    lock(d);
    p->next = d->pools;
    if (p->next != NULL)
        p->next->prev = p;
    d->pools = p;
    unlock(d);
}

void pool_fini(struct pool *p)
{
    struct pool_depot *d = p->depot;

    lock(d);
    if (p->spare != NULL)
        full_push(d, p->spare);
    while (p->free != NULL) {
        struct pool_block *block = p->free;
        p->free = block->next;
        loose_push(d, block);
    }
    d->handed_out -= (size_t)(p->cut_end - p->cut) / d->block_size;
    remainder_push(d, p->cut, p->cut_end);
    if (p->next != NULL)
        p->next->prev = p->prev;
    if (p->prev != NULL)
        p->prev->next = p->next;
    else
        d->pools = p->next;
    unlock(d);
    p->depot = NULL;
}

struct pool_depot *pool_depot_create(size_t block_size, size_t bytes_max)
{
    size_t rounded = (block_size + POOL_ALIGN - 1) / POOL_ALIGN * POOL_ALIGN;
    if (block_size == 0 || block_size > POOL_BLOCK_MAX || bytes_max < rounded) {
        errno = EINVAL;
        return NULL;
    }
    struct pool_depot *d = calloc(1, sizeof(*d));
    if (d == NULL)
        return NULL;
    int error = pthread_mutex_init(&d->mutex, NULL);
    if (error != 0) {
        free(d);
        errno = error;
        return NULL;
    }
    d->block_size = rounded;
    d->blocks_max = bytes_max / rounded;
    d->slab_bytes = SLAB_BYTES_FIRST;
    return d;
}

void pool_depot_destroy(struct pool_depot *d)
{
    if (d == NULL)
        return;
    ASSERT(d->pools == NULL);
    while (d->slabs != NULL) {
        struct slab *slab = d->slabs;
        d->slabs = slab->next;
#if POOL_ASAN
        __asan_unpoison_memory_region(slab, slab->bytes);
#endif
        munmap(slab, slab->bytes);
    }
    pthread_mutex_destroy(&d->mutex);
    free(d);
}

static size_t free_in_pool(const struct pool *p)
{
    size_t loaded = p->watched ? 0 : POOL_BATCH - __atomic_load_n(&p->room, __ATOMIC_RELAXED);
    size_t spare = __atomic_load_n(&p->spare, __ATOMIC_RELAXED) != NULL ? POOL_BATCH : 0;
    return loaded + spare;
}

/* A range is replaced under the lock only; the owner may go on cutting it meanwhile, which moves nothing but
 * cut. */
static size_t uncut_in_pool(const struct pool *p)
{
    return (size_t)(p->cut_end - __atomic_load_n(&p->cut, __ATOMIC_RELAXED)) / p->block_size;
}

void pool_depot_stats(struct pool_depot *d, struct pool_stats *ret_stats)
{
    struct pool_stats s = {.blocks_max = d->blocks_max};

    lock(d);
    s.carved = d->handed_out;
    s.free = d->full_count * POOL_BATCH + d->loose_count;
    for (const struct pool *p = d->pools; p != NULL; p = p->next) {
        s.carved -= uncut_in_pool(p);
        s.free += free_in_pool(p);
    }
    s.in_use = s.carved > s.free ? s.carved - s.free : 0;
    s.bytes = d->bytes;
    s.refused = d->refused;
    unlock(d);
    *ret_stats = s;
}
