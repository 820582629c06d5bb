/* Coroutines: the seam between the scheduler and whatever switches stacks.
 *
 * Three verbs: start runs a function on a stack of its own until it first parks, park gives control back,
 * resume lets it go on. The switch is asymmetric: a coroutine is started and resumed only from the thread's
 * own stack (the scheduler's loop) and parks only to there. A coroutine stays on the thread that started it.
 * Nothing here blocks, nothing is shared between threads, and nothing but the first use of a stack makes a
 * system call.
 *
 * Two implementations stand behind it and pass the same tests: a native switch in assembly (coro_native.c),
 * and libdill (coro_libdill.c, `make CORO=libdill`).
 *
 * A switch carries the stack and the registers that the calling convention makes the callee save. errno and
 * the floating-point controls (rounding, trapped exceptions) belong to the thread: who reads errno reads it
 * before it parks, who changes the controls puts them back. When an entry returns they are put back anyway.
 *
 * longjmp within one coroutine's own stack is allowed, also out of a signal handler which runs on an
 * alternate stack: no record here is in flux while a coroutine's own code runs. A jump from one stack to
 * another is not.
 */
#ifndef COPPICE_RUNTIME_CORO_H
#define COPPICE_RUNTIME_CORO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CORO_STACK_SIZE_DEFAULT ((size_t)64 * 1024)

/* One coroutine, from coro_start until its entry returns. It lives at the top of its own stack; the pointer
 * is dead once coro_start answers CORO_FINISHED or coro_resume answers false. */
struct coro;

/* Stacks of one size for one thread. A thread may have several pools; a pool has one thread. */
struct coro_pool;

typedef void coro_entry(void *arg);

/* What coro_start answers when the entry has already returned. Never a coroutine, never NULL. */
extern struct coro coro_finished;
#define CORO_FINISHED (&coro_finished)

/* Boot time; may allocate. stack_size is what the entry may use, rounded up to whole pages; count_max bounds
 * the stacks (and so the coroutines alive at once). No stack is mapped before it is needed. NULL with errno
 * when refused: EINVAL for zero or absurd sizes, ENOMEM. */
struct coro_pool *coro_pool_create(size_t stack_size, size_t count_max);

/* Every coroutine must have finished. Accepts NULL. */
void coro_pool_destroy(struct coro_pool *pool);

/* Gives the memory of idle stacks beyond `keep` back to the system; the warmest are kept. Takes some
 * microseconds for each stack that it empties: whoever has many brings `keep` down in steps. */
void coro_pool_trim(struct coro_pool *pool, size_t keep);

/* Outside a coroutine: takes a stack (the last one that was given back, when there is one) and runs
 * entry(arg) on it until it first parks or returns. Returns the coroutine when it parked, CORO_FINISHED when
 * the entry has returned, and NULL with errno when nothing was run: EAGAIN when count_max is reached, ENOSPC
 * when the process has no guards left (see stack.h), ENOMEM when the system gives no memory. */
struct coro *coro_start(struct coro_pool *pool, coro_entry *entry, void *arg);

/* Inside a coroutine: gives control back to whoever started or resumed it, and returns when it is resumed. */
void coro_park(void);

/* Outside a coroutine: runs a parked one on. True when it parked again; false when its entry returned, and
 * then its stack is back in the pool, still warm. */
bool coro_resume(struct coro *coro);

/* The running coroutine; NULL on the thread's own stack. Async-signal-safe. */
struct coro *coro_self(void);

/* Is this address in the guard below the coroutine's stack? Async-signal-safe. */
bool coro_guard_hit(const struct coro *coro, uintptr_t address);

/* The usable range [low, high) of its stack. Async-signal-safe. */
void coro_stack_bounds(const struct coro *coro, uintptr_t *ret_low, uintptr_t *ret_high);

/* The deepest use of its stack in bytes since the last paint, whoever ran on it: stacks are reused, so paint
 * first when the figure is to be about one coroutine. Looks for the lowest word that is not zero: memory that
 * was set aside but never written does not count. Costs a system call and a look at each touched page from
 * the low end; not for every message. */
size_t coro_stack_high_water(const struct coro *coro);

/* Forgets the old mark: from outside for a parked coroutine, or inside by the running one for itself. */
void coro_stack_paint(struct coro *coro);

/* Inside: puts the floating-point controls back to what they were when the coroutine's pool was created, and
 * empties the x87's stack. For whoever recovers from a fault in the middle of somebody else's computation and
 * then goes on in the same coroutine. */
void coro_controls_reset(void);

/* Which implementation this is: "native" or "libdill". */
extern const char coro_kind[];

struct coro_stats {
    size_t stacks;          /* that exist */
    size_t idle;            /* waiting in the pool */
    size_t in_use;          /* coroutines alive */
    size_t high_water;      /* deepest use seen so far, bytes */
    const char *guard_kind; /* "madvise" or "mprotect" */
};

/* By the pool's thread. The mark is the deepest of what coro_stack_high_water and coro_pool_trim have seen
 * and of the 64 warmest idle stacks now. */
void coro_pool_stats(struct coro_pool *pool, struct coro_stats *ret_stats);

#endif
