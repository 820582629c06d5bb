/* What the implementations of the coroutine seam share. Private to the coro*.c files: coro.c holds what does
 * not switch stacks, coro_native.c or coro_libdill.c the three verbs and coro_self.
 */
#ifndef COPPICE_RUNTIME_CORO_IMPL_H
#define COPPICE_RUNTIME_CORO_IMPL_H

#include "runtime/coro.h"
#include "runtime/coro_tools.h"
#include "runtime/stack.h"

enum coro_state {
    CORO_IDLE = 0,
    CORO_PARKED = 0x7061726b,
    CORO_RUNNING = 0x72756e21,
    CORO_REFUSED = 0x72656675, /* ended before its entry ran (libdill only) */
};

/* The controls of floating point: rounding, trapped exceptions, denormals. They stay with the thread; what a
 * coroutine left changed when it ended (a crash in the middle of a computation ends it, too) must not reach
 * the next one. */
#if defined __x86_64__
struct controls {
    unsigned mxcsr;
    unsigned short x87;
};

TOOLS_INLINE void controls_read(struct controls *ret_controls)
{
    __asm__ volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(ret_controls->mxcsr), "=m"(ret_controls->x87));
}

/* Whoever changes the x87 word through <fenv.h> changes MXCSR alike, so one look is enough. Its low six bits
 * are flags. */
TOOLS_INLINE void controls_restore(const struct controls *controls)
{
    unsigned mxcsr = __builtin_ia32_stmxcsr();
    if (__builtin_expect(((mxcsr ^ controls->mxcsr) & ~0x3fu) != 0, 0))
        __asm__ volatile("ldmxcsr %0\n\tfldcw %1" : : "m"(controls->mxcsr), "m"(controls->x87));
}

/* In the middle of a computation: nobody takes down what it has on the x87's stack, and there is room for eight. */
TOOLS_INLINE void controls_reset(const struct controls *controls)
{
    __asm__ volatile("fninit\n\tfldcw %1\n\tldmxcsr %0" : : "m"(controls->mxcsr), "m"(controls->x87));
}
#elif defined __aarch64__
struct controls {
    uint64_t fpcr;
};

TOOLS_INLINE void controls_read(struct controls *ret_controls)
{
    __asm__ volatile("mrs %0, fpcr" : "=r"(ret_controls->fpcr));
}

TOOLS_INLINE void controls_restore(const struct controls *controls)
{
    uint64_t fpcr;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    if (__builtin_expect(fpcr != controls->fpcr, 0))
        __asm__ volatile("msr fpcr, %0" : : "r"(controls->fpcr));
}

TOOLS_INLINE void controls_reset(const struct controls *controls)
{
    controls_restore(controls);
}
#else
struct controls {
    char none;
};

TOOLS_INLINE void controls_read(struct controls *ret_controls)
{
    ret_controls->none = 0;
}

TOOLS_INLINE void controls_restore(const struct controls *controls)
{
    (void)controls;
}

TOOLS_INLINE void controls_reset(const struct controls *controls)
{
    controls_restore(controls);
}
#endif

/* At the top of its own stack: the frames begin right below, on the next cache line. */
struct coro {
    void *sp; /* while parked: nothing below it is live, and the native switch goes on there */
    struct coro_pool *pool;
    coro_entry *entry;
    void *arg;
    uintptr_t low;  /* lowest usable address, above the guard */
    uintptr_t high; /* end of the stack memory, which names the stack to its pool */
    enum coro_state state;
    int channel[2];          /* libdill's: where a parked one receives, where its resumer sends */
    struct coro_tools tools; /* empty unless built for a sanitizer */
} __attribute__((aligned(64)));

struct coro_pool {
    struct stack_pool *stacks;
    size_t in_use;
    size_t high_water;
    struct controls controls; /* as they were when the pool was created */
};

/* Every stack begins at the same place in its page, so the hot lines of all coroutines would share a few sets
 * of the cache. The record and the frames below it are therefore shifted down by 0 to 31 cache lines,
 * differently per stack. */
#define CORO_SHIFT_UNIT ((uintptr_t)64)
#define CORO_SHIFT_BITS 5

/* What the record and its shift take from a stack at most. */
#define CORO_TOP_SIZE (sizeof(struct coro) + (CORO_SHIFT_UNIT << CORO_SHIFT_BITS))

/* Where the record of the stack that ends at `high` lives. */
TOOLS_INLINE struct coro *coro_place(uintptr_t high)
{
    uintptr_t shift = (high >> 12) * UINT64_C(0x9e3779b97f4a7c15) >> (64 - CORO_SHIFT_BITS);
    return (struct coro *)(high - shift * CORO_SHIFT_UNIT - sizeof(struct coro));
}

/* Takes a stack and writes the record of a coroutine that is about to begin; NULL with errno. */
TOOLS_INLINE struct coro *coro_begin(struct coro_pool *pool, coro_entry *entry, void *arg)
{
    uintptr_t high = stack_take(pool->stacks);
    if (__builtin_expect(high == 0, 0))
        return NULL;
    struct coro *coro = coro_place(high);
    coro->pool = pool;
    coro->entry = entry;
    coro->arg = arg;
    coro->low = high - stack_pool_size(pool->stacks);
    coro->high = high;
    coro->state = CORO_RUNNING;
    tools_begin(&coro->tools, coro->low, coro->high);
    pool->in_use++;
    return coro;
}

/* The last thing a coroutine needs done, once nothing of its own runs any more. */
TOOLS_INLINE void coro_end(struct coro *coro)
{
    struct coro_pool *pool = coro->pool;
    coro->state = CORO_IDLE;
    pool->in_use--;
    tools_end(&coro->tools, coro->low, coro->high);
    stack_give(pool->stacks, coro->high);
}

#endif
