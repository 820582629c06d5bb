#include "runtime/coro.h"

#include <errno.h>
#include <stdlib.h>

#include "runtime/assert.h"
#include "runtime/coro_impl.h"

#define STATS_LOOK_MAX 64

struct coro coro_finished;

struct coro_pool *coro_pool_create(size_t stack_size, size_t count_max)
{
    if (stack_size == 0 || stack_size > SIZE_MAX / 4) {
        errno = EINVAL;
        return NULL;
    }
    struct stack_pool *stacks = stack_pool_create(stack_size + CORO_TOP_SIZE, count_max);
    if (stacks == NULL)
        return NULL;
    struct coro_pool *pool = malloc(sizeof *pool);
    if (pool == NULL) {
        stack_pool_destroy(stacks);
        errno = ENOMEM;
        return NULL;
    }
    *pool = (struct coro_pool){.stacks = stacks};
    controls_read(&pool->controls);
    return pool;
}

void coro_pool_destroy(struct coro_pool *pool)
{
    if (pool == NULL)
        return;
    ASSERT(pool->in_use == 0);
    stack_pool_destroy(pool->stacks);
    free(pool);
}

bool coro_guard_hit(const struct coro *coro, uintptr_t address)
{
    return address < coro->low && address >= coro->low - stack_pool_guard_size(coro->pool->stacks);
}

void coro_stack_bounds(const struct coro *coro, uintptr_t *ret_low, uintptr_t *ret_high)
{
    *ret_low = coro->low;
    *ret_high = (uintptr_t)coro;
}

void coro_controls_reset(void)
{
    struct coro *coro = coro_self();
    ASSERT(coro != NULL);
    controls_reset(&coro->pool->controls);
}

static size_t depth_note(struct coro_pool *pool, uintptr_t low, uintptr_t top)
{
    size_t depth = top - stack_mark(low, top);
    if (depth > pool->high_water)
        pool->high_water = depth;
    return depth;
}

size_t coro_stack_high_water(const struct coro *coro)
{
    return depth_note(coro->pool, coro->low, (uintptr_t)coro);
}

/* The frames that paint must not touch: those of a parked coroutine begin at its saved stack pointer; inside,
 * this function's own frame and the one that does the work below it. */
#define PAINT_FRAMES 1024

void coro_stack_paint(struct coro *coro)
{
    uintptr_t live = (uintptr_t)coro->sp;
    if (coro == coro_self())
        live = (uintptr_t)__builtin_frame_address(0) - PAINT_FRAMES;
    if (live > coro->low)
        stack_paint(coro->low, live);
}

static void pool_look(struct coro_pool *pool, size_t from, size_t to)
{
    size_t size = stack_pool_size(pool->stacks);
    for (size_t i = from; i < to; i++) {
        uintptr_t high = stack_pool_idle(pool->stacks, i);
        depth_note(pool, high - size, (uintptr_t)coro_place(high));
    }
}

void coro_pool_trim(struct coro_pool *pool, size_t keep)
{
    struct stack_counts counts = stack_pool_counts(pool->stacks);
    pool_look(pool, keep, counts.idle - counts.cold);
    stack_pool_trim(pool->stacks, keep);
}

void coro_pool_stats(struct coro_pool *pool, struct coro_stats *ret_stats)
{
    struct stack_counts counts = stack_pool_counts(pool->stacks);
    size_t warm = counts.idle - counts.cold;
    pool_look(pool, 0, warm < STATS_LOOK_MAX ? warm : STATS_LOOK_MAX);
    *ret_stats = (struct coro_stats){
        .stacks = counts.carved,
        .idle = counts.idle,
        .in_use = pool->in_use,
        .high_water = pool->high_water,
        .guard_kind = counts.guard_kind,
    };
}
