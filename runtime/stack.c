#include "runtime/stack.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/assert.h"

/* valgrind takes any jump of the stack pointer for a very large frame unless both ends are known to it as
 * stacks. */
#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#else
#define RUNNING_ON_VALGRIND                0
#define VALGRIND_STACK_REGISTER(low, high) ((void)(low), (void)(high), 0)
#define VALGRIND_STACK_DEREGISTER(id)      ((void)(id))
#define VALGRIND_DISABLE_ERROR_REPORTING   ((void)0)
#define VALGRIND_ENABLE_ERROR_REPORTING    ((void)0)
#endif

/* Values of the kernel's interface that older libc headers lack. */
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

#define SLAB_COUNT_FIRST 64
#define SLAB_MAX         48 /* doubling from 64: more than any address space holds */
#define MARK_PAGES       64 /* pages looked at by one mincore */

struct slab {
    uintptr_t base;
    size_t count;  /* stacks it has room for */
    size_t carved; /* stacks carved so far; slabs before the last are full */
};

/* idle[0 .. cold) have given their memory back, idle[cold .. idle_count) are warm, the warmest last. */
struct stack_pool {
    uintptr_t *idle;
    size_t idle_count;
    size_t cold;
    size_t size;
    size_t stride; /* guard and stack */
    size_t guard;
    size_t count_max;
    size_t carved;
    unsigned *valgrind_ids; /* one for each carved stack; NULL unless valgrind runs the program */
    size_t slab_count;
    struct slab slabs[SLAB_MAX];
};

enum guard_kind {
    GUARD_UNKNOWN,
    GUARD_MADVISE,
    GUARD_MPROTECT,
};

static atomic_int guard_probed = GUARD_UNKNOWN;
static atomic_long mprotect_guards = 0; /* stacks of the whole process guarded by mprotect */

static size_t page_size(void)
{
    static atomic_size_t known;
    size_t size = atomic_load_explicit(&known, memory_order_relaxed);
    if (size == 0) {
        size = (size_t)sysconf(_SC_PAGESIZE);
        atomic_store_explicit(&known, size, memory_order_relaxed);
    }
    return size;
}

static size_t round_up(size_t size, size_t unit)
{
    return (size + unit - 1) / unit * unit;
}

/* An emulator may answer yes to an advice which it does not know. So the guard is tried as well: reading it
 * ahead must fail. Two threads may probe at once; they find the same. */
static enum guard_kind guard_probe(void)
{
    int known = atomic_load_explicit(&guard_probed, memory_order_relaxed);
    if (known != GUARD_UNKNOWN)
        return (enum guard_kind)known;
    enum guard_kind kind = GUARD_MPROTECT;
    size_t page = page_size();
    void *trial = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (trial != MAP_FAILED) {
        if (madvise(trial, page, MADV_GUARD_INSTALL) == 0 && madvise(trial, page, MADV_POPULATE_READ) != 0)
            kind = GUARD_MADVISE;
        munmap(trial, page);
    }
    atomic_store_explicit(&guard_probed, (int)kind, memory_order_relaxed);
    return kind;
}

static bool guard_install(uintptr_t address, size_t size)
{
    if (guard_probe() == GUARD_MADVISE)
        return madvise((void *)address, size, MADV_GUARD_INSTALL) == 0;
    if (atomic_fetch_add_explicit(&mprotect_guards, 1, memory_order_relaxed) >= STACK_MPROTECT_MAX) {
        atomic_fetch_sub_explicit(&mprotect_guards, 1, memory_order_relaxed);
        errno = ENOSPC;
        return false;
    }
    if (mprotect((void *)address, size, PROT_NONE) == 0)
        return true;
    atomic_fetch_sub_explicit(&mprotect_guards, 1, memory_order_relaxed);
    return false;
}

struct stack_pool *stack_pool_create(size_t size, size_t count_max)
{
    size_t page = page_size();
    size_t guard = round_up(STACK_GUARD_SIZE, page);
    size_t all;
    if (size == 0 || size > SIZE_MAX / 4 || count_max == 0 ||
        __builtin_mul_overflow(round_up(size, page) + guard, count_max, &all) || all > SIZE_MAX / 2) {
        errno = EINVAL;
        return NULL;
    }
    struct stack_pool *pool = calloc(1, sizeof *pool);
    if (pool == NULL)
        return NULL;
    pool->size = round_up(size, page);
    pool->guard = guard;
    pool->stride = pool->guard + pool->size;
    pool->count_max = count_max;
    void *idle = mmap(NULL, count_max * sizeof *pool->idle, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (idle == MAP_FAILED) {
        free(pool);
        errno = ENOMEM;
        return NULL;
    }
    pool->idle = idle;
    if (RUNNING_ON_VALGRIND)
        pool->valgrind_ids = calloc(count_max, sizeof *pool->valgrind_ids);
    return pool;
}

void stack_pool_destroy(struct stack_pool *pool)
{
    if (pool == NULL)
        return;
    ASSERT(pool->idle_count == pool->carved);
    for (size_t i = 0; pool->valgrind_ids != NULL && i < pool->carved; i++)
        VALGRIND_STACK_DEREGISTER(pool->valgrind_ids[i]);
    free(pool->valgrind_ids);
    for (size_t i = 0; i < pool->slab_count; i++)
        munmap((void *)pool->slabs[i].base, pool->slabs[i].count * pool->stride);
    if (guard_probe() == GUARD_MPROTECT)
        atomic_fetch_sub_explicit(&mprotect_guards, (long)pool->carved, memory_order_relaxed);
    munmap(pool->idle, pool->count_max * sizeof *pool->idle);
    free(pool);
}

/* A new slab, twice the last one; a system short of address space (or strict about overcommit) may still have
 * room for a smaller one. */
static bool slab_add(struct stack_pool *pool)
{
    if (pool->slab_count == SLAB_MAX) {
        errno = ENOMEM;
        return false;
    }
    size_t count = pool->slab_count == 0 ? SLAB_COUNT_FIRST : pool->slabs[pool->slab_count - 1].count * 2;
    if (count > pool->count_max - pool->carved)
        count = pool->count_max - pool->carved;
    for (; count > 0; count /= 2) {
        void *base = mmap(NULL, count * pool->stride, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
        if (base == MAP_FAILED)
            continue;
        /* A huge page would make 2 MiB resident for one touched stack. Kernels without them refuse the
         * advice. */
        (void)madvise(base, count * pool->stride, MADV_NOHUGEPAGE);
        pool->slabs[pool->slab_count++] = (struct slab){.base = (uintptr_t)base, .count = count};
        return true;
    }
    errno = ENOMEM;
    return false;
}

static __attribute__((noinline)) uintptr_t stack_carve(struct stack_pool *pool)
{
    if (pool->carved == pool->count_max) {
        errno = EAGAIN;
        return 0;
    }
    struct slab *slab = pool->slab_count == 0 ? NULL : &pool->slabs[pool->slab_count - 1];
    if (slab == NULL || slab->carved == slab->count) {
        if (!slab_add(pool))
            return 0;
        slab = &pool->slabs[pool->slab_count - 1];
    }
    uintptr_t base = slab->base + slab->carved * pool->stride;
    if (!guard_install(base, pool->guard))
        return 0;
    if (pool->valgrind_ids != NULL)
        pool->valgrind_ids[pool->carved] =
            (unsigned)VALGRIND_STACK_REGISTER(base + pool->guard, base + pool->stride);
    slab->carved++;
    pool->carved++;
    return base + pool->stride;
}

uintptr_t stack_take(struct stack_pool *pool)
{
    if (__builtin_expect(pool->idle_count == 0, 0))
        return stack_carve(pool);
    uintptr_t high = pool->idle[--pool->idle_count];
    if (pool->cold > pool->idle_count)
        pool->cold = pool->idle_count;
    return high;
}

void stack_give(struct stack_pool *pool, uintptr_t high)
{
    ASSERT(pool->idle_count < pool->carved);
    pool->idle[pool->idle_count++] = high;
}

void stack_pool_trim(struct stack_pool *pool, size_t keep)
{
    for (; pool->cold + keep < pool->idle_count; pool->cold++)
        (void)madvise((void *)(pool->idle[pool->cold] - pool->size), pool->size, MADV_DONTNEED);
}

uintptr_t stack_pool_idle(const struct stack_pool *pool, size_t i)
{
    ASSERT(i < pool->idle_count);
    return pool->idle[pool->idle_count - 1 - i];
}

size_t stack_pool_size(const struct stack_pool *pool)
{
    return pool->size;
}

size_t stack_pool_guard_size(const struct stack_pool *pool)
{
    return pool->guard;
}

struct stack_counts stack_pool_counts(const struct stack_pool *pool)
{
    return (struct stack_counts){
        .carved = pool->carved,
        .idle = pool->idle_count,
        .cold = pool->cold,
        .guard_kind = guard_probe() == GUARD_MADVISE ? "madvise" : "mprotect",
    };
}

/* Reads and writes words that belong to frames of other functions, live or dead: no sanitizer may judge that.
 */
#define UNJUDGED __attribute__((noinline, no_sanitize("address", "thread", "undefined")))

/* The lowest word in [low, high) that is not zero, or high. */
static UNJUDGED uintptr_t words_mark(uintptr_t low, uintptr_t high)
{
    for (; low < high; low += sizeof(uintptr_t))
        if (*(volatile const uintptr_t *)low != 0)
            return low;
    return high;
}

static uintptr_t range_mark(uintptr_t low, uintptr_t high)
{
    size_t page = page_size();
    unsigned char resident[MARK_PAGES];
    for (uintptr_t at = low / page * page; at < high; at += MARK_PAGES * page) {
        size_t size = round_up(high - at, page);
        if (size > MARK_PAGES * page)
            size = MARK_PAGES * page;
        bool known = mincore((void *)at, size, resident) == 0;
        for (size_t i = 0; i < size / page; i++) {
            if (known && (resident[i] & 1) == 0)
                continue;
            uintptr_t from = at + i * page;
            uintptr_t to = from + page < high ? from + page : high;
            if (from < low)
                from = low;
            uintptr_t mark = words_mark(from, to);
            if (mark < to)
                return mark;
        }
    }
    return high;
}

static UNJUDGED void words_clear(uintptr_t low, uintptr_t high)
{
    for (; low < high; low += sizeof(uintptr_t))
        *(volatile uintptr_t *)low = 0;
}

uintptr_t stack_mark(uintptr_t low, uintptr_t high)
{
    VALGRIND_DISABLE_ERROR_REPORTING;
    uintptr_t mark = range_mark(low, high);
    VALGRIND_ENABLE_ERROR_REPORTING;
    return mark;
}

void stack_paint(uintptr_t low, uintptr_t high)
{
    VALGRIND_DISABLE_ERROR_REPORTING;
    words_clear(range_mark(low, high), high);
    VALGRIND_ENABLE_ERROR_REPORTING;
}
