/* Blocks of one size, taken and given back in a few instructions, on any thread.
 *
 * A depot holds the memory and is shared; each thread has a pool of its own in front of it. A pool keeps a
 * loaded magazine (a list of up to POOL_BATCH free blocks, the last one given is the first one taken) and at
 * most one full spare; whole magazines go to the depot and come from it under its lock. A block may be given
 * to the pool of another thread than it was taken from: blocks that always travel one way return by the
 * magazine, one lock for POOL_BATCH blocks and not one atomic operation for a single block.
 *
 *     thread A: take <- loaded, spare <-+              +-> loaded, spare <- give :thread B
 *                                       +- full ones <-+
 *                                       |
 *                                       depot: full magazines, loose blocks, slabs
 *
 * Memory is type-stable: slabs are mapped as needed and unmapped by pool_depot_destroy only, so a reader with
 * a stale pointer reads a block of this depot, never a hole and never something else. The first POOL_KEPT
 * bytes of a block have rules of their own for that:
 *
 *     [0, 8)    overwritten while the block is free (the list)
 *     [8, 16)   never written by the pool and zero in a fresh block: the place of a generation, which a
 * reader may look at (atomically) whether the block is free or not [16, ...) undefined after pool_take; in
 * ASan builds and under valgrind any access while the block is free is found
 *
 * What is taken and what is touched: slabs grow from 256 KiB to 2 MiB, cost address space until they are
 * used, and are cut block by block in order of address, so a process that needs ten blocks has touched ten.
 *
 * Limits: block_size up to POOL_BLOCK_MAX, rounded up to whole cache lines and so aligned. bytes_max bounds
 * the blocks that exist (bytes_max / block_size of them). A free block in one pool cannot be taken through
 * another, so the limit may be met while up to 3 * POOL_BATCH - 1 blocks lie in each other pool: loaded,
 * spare, and handed out but not yet cut.
 */
#ifndef COPPICE_RUNTIME_POOL_H
#define COPPICE_RUNTIME_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define POOL_BATCH     64U
#define POOL_ALIGN     64U
#define POOL_BLOCK_MAX (64U * 1024U)
#define POOL_KEPT      16U /* bytes at the start of a free block that are never poisoned */
#define POOL_STABLE    8U  /* offset of the 8 bytes that the pool leaves alone */

#if defined(__SANITIZE_ADDRESS__)
#define POOL_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define POOL_ASAN 1
#endif
#endif
#ifndef POOL_ASAN
#define POOL_ASAN 0
#endif
#if POOL_ASAN
#include <sanitizer/asan_interface.h>
#endif

struct pool_depot;

/* How a free block is seen; the caller's own type may lie over it. */
struct pool_block {
    struct pool_block *next;
    uint64_t stable;
} __attribute__((may_alias));

/* One thread's. Only pool_depot_stats looks at it from elsewhere, so what it reads is stored atomically
 * (relaxed: a plain store); it must not move between init and fini. */
struct pool {
    struct pool_block *free; /* the loaded magazine */
    uint32_t room;           /* blocks that still fit into it: POOL_BATCH less its length; 0 under valgrind */
    bool watched;            /* under valgrind: every take and give goes to the depot, which tells valgrind */
    uint32_t block_size;     /* rounded up */
    struct pool_block *spare; /* a full magazine, or NULL */
    char *cut, *cut_end;      /* handed out by the depot, not yet cut into blocks */
    struct pool_depot *depot; /* borrowed */
    struct pool *next, *prev; /* the depot's list of pools */
};

struct pool_stats {
    size_t blocks_max;
    size_t carved;  /* blocks that exist, free or in use */
    size_t free;    /* of those, in pools and in the depot */
    size_t in_use;  /* the rest; exact when no thread is taking or giving, near otherwise */
    size_t bytes;   /* address space of the slabs; an upper bound of resident memory */
    size_t refused; /* takes that got NULL */
};

/* Boot or rare; may block. NULL with errno: EINVAL when block_size is 0 or above its limit or bytes_max does
 * not hold one block, ENOMEM. Maps no slab yet. */
struct pool_depot *pool_depot_create(size_t block_size, size_t bytes_max);

/* Unmaps every slab, in use or not; every pool must have been finished. Accepts NULL. */
void pool_depot_destroy(struct pool_depot *d);

/* Any thread, any time; takes the lock for a walk over the pools. */
void pool_depot_stats(struct pool_depot *d, struct pool_stats *ret_stats);

void pool_init(struct pool *p, struct pool_depot *d);

/* Gives every free block to the depot. By the pool's thread, or after it ended. Blocks in use stay so and are
 * given back through another pool. */
void pool_fini(struct pool *p);

/* The way through the depot: lock, perhaps mmap. */
void *pool_take_slow(struct pool *p);
void pool_give_slow(struct pool *p, struct pool_block *block);

/* Says to ASan who may touch the block; nothing in other builds. A block given twice is found here. */
#if POOL_ASAN
void pool_block_open(struct pool_block *block, size_t block_size);
void pool_block_close(struct pool_block *block, size_t block_size);
#else
static inline void pool_block_open(struct pool_block *block, size_t block_size)
{
    (void)block;
    (void)block_size;
}

static inline void pool_block_close(struct pool_block *block, size_t block_size)
{
    (void)block;
    (void)block_size;
}
#endif

/* NULL when bytes_max is reached or the system gives no more memory; both pass when blocks come back. */
__attribute__((warn_unused_result)) static inline void *pool_take(struct pool *p)
{
    struct pool_block *block = p->free;
    if (__builtin_expect(block == NULL, 0))
        return pool_take_slow(p);
    p->free = block->next;
    __atomic_store_n(&p->room, p->room + 1, __ATOMIC_RELAXED);
    pool_block_open(block, p->block_size);
    return block;
}

/* The block must have come from a pool of the same depot. */
static inline void pool_give(struct pool *p, void *taken)
{
    struct pool_block *block = taken;
    if (__builtin_expect(p->room == 0, 0)) {
        pool_give_slow(p, block);
        return;
    }
    pool_block_close(block, p->block_size);
    block->next = p->free;
    p->free = block;
    __atomic_store_n(&p->room, p->room - 1, __ATOMIC_RELAXED);
}

#endif
