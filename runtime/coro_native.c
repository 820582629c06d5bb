#include "runtime/coro.h"

#include <errno.h>
#include <stdlib.h>

#include "runtime/assert.h"
#include "runtime/coro_tools.h"
#include "runtime/stack.h"

/* Every stack begins at the same place in its page, so the hot lines of all coroutines would share a few sets
 * of the cache. The record and the frames below it are therefore shifted down by 0 to 31 cache lines,
 * differently per stack. */
#define CACHE_LINE     ((uintptr_t)64)
#define COLOUR_MASK    ((uintptr_t)31)

#define STATS_LOOK_MAX 64

enum coro_state {
    CORO_IDLE = 0,
    CORO_PARKED = 0x7061726b,
    CORO_RUNNING = 0x72756e21,
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
#else
#error "no native switch for this machine: build with CORO=libdill"
#endif

/* At the top of its own stack: the frames begin right below, on the next cache line. */
struct coro {
    void *sp; /* where it parked */
    struct coro_pool *pool;
    coro_entry *entry;
    void *arg;
    uintptr_t low;  /* lowest usable address, above the guard */
    uintptr_t high; /* end of the stack memory, which names the stack to its pool */
    enum coro_state state;
    struct coro_tools tools; /* empty unless built for a sanitizer */
} __attribute__((aligned(64)));

#define TOP_SIZE (sizeof(struct coro) + COLOUR_MASK * CACHE_LINE)

struct coro_pool {
    struct stack_pool *stacks;
    size_t in_use;
    size_t high_water;
    struct controls controls; /* as they were when the pool was created */
};

struct coro coro_finished;

static _Thread_local struct {
    struct coro *current; /* NULL on the thread's own stack */
    void *sp;             /* the thread's own stack while a coroutine runs */
    struct coro_tools tools;
} here;

/* coro_x86_64.S, coro_aarch64.S */
bool coro_switch(void **save, void *load, bool parked);
bool coro_enter(void **save, void *top, struct coro *coro);
void *coro_main(struct coro *coro);

struct coro_pool *coro_pool_create(size_t stack_size, size_t count_max)
{
    if (stack_size == 0 || stack_size > SIZE_MAX / 4) {
        errno = EINVAL;
        return NULL;
    }
    struct stack_pool *stacks = stack_pool_create(stack_size + TOP_SIZE, count_max);
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

static struct coro *coro_place(uintptr_t high)
{
    uintptr_t colour = (high >> 12) * UINT64_C(0x9e3779b97f4a7c15) >> 59;
    return (struct coro *)(high - colour * CACHE_LINE - sizeof(struct coro));
}

/* The last thing a coroutine needs done, once nothing of its own runs any more. It may still stand on the
 * stack which it gives back here: the thread cannot take that one before it has left it. */
TOOLS_INLINE void coro_end(struct coro *coro)
{
    struct coro_pool *pool = coro->pool;
    coro->state = CORO_IDLE;
    pool->in_use--;
    tools_end(&coro->tools, coro->low, coro->high);
    stack_give(pool->stacks, coro->high);
}

/* Runs on the new stack, called by coro_enter; answers the stack to go back to. */
__attribute__((used)) void *coro_main(struct coro *coro)
{
    tools_arrive(&here.tools);
    coro->entry(coro->arg);
    ASSERT(here.current == coro);
    controls_restore(&coro->pool->controls);
    here.current = NULL;
    if (!TOOLS_WATCH)
        coro_end(coro);
    tools_leave_for_good(&here.tools);
    return here.sp;
}

/* Back on the thread's own stack. Watching tools want to be told here of a stack that has ended. */
TOOLS_INLINE void coro_left(struct coro *coro, bool parked)
{
    if (!parked)
        tools_follow(&here.tools);
    tools_return(&here.tools);
    if (TOOLS_WATCH && !parked)
        coro_end(coro);
}

struct coro *coro_start(struct coro_pool *pool, coro_entry *entry, void *arg)
{
    ASSERT(here.current == NULL);
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
    here.current = coro;
    tools_leave(&here.tools, &coro->tools);
    bool parked = coro_enter(&here.sp, coro, coro);
    coro_left(coro, parked);
    return parked ? coro : CORO_FINISHED;
}

/* Both ways of a switch do all their work before it, so that the call of coro_switch is the last thing here
 * and becomes a jump: it goes back to the caller directly. A return of our own would be predicted wrong each
 * time, since the processor expects returns in the order of the calls. That is half the cost of a switch. */

void coro_park(void)
{
    struct coro *coro = here.current;
    ASSERT(coro != NULL);
    coro->state = CORO_PARKED;
    here.current = NULL;
#if TOOLS_WATCH
    tools_leave(&coro->tools, &here.tools);
    coro_switch(&coro->sp, here.sp, true);
    tools_return(&coro->tools);
#else
    coro_switch(&coro->sp, here.sp, true);
#endif
}

bool coro_resume(struct coro *coro)
{
    ASSERT(here.current == NULL);
    ASSERT(coro->state == CORO_PARKED);
    coro->state = CORO_RUNNING;
    here.current = coro;
#if TOOLS_WATCH
    tools_leave(&here.tools, &coro->tools);
    bool parked = coro_switch(&here.sp, coro->sp, true);
    coro_left(coro, parked);
    return parked;
#else
    return coro_switch(&here.sp, coro->sp, true);
#endif
}

struct coro *coro_self(void)
{
    return here.current;
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
    if (coro == here.current)
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
