/* The memory of coroutine stacks: equal in size, guarded, mapped in slabs and kept warm.
 *
 * A stack is named by its high end (it grows down from there); its usable range is [high - size, high). Below
 * that lies a guard of STACK_GUARD_SIZE bytes which faults on any touch:
 *
 *     slab:  | guard | stack 0 | guard | stack 1 | ...            one mapping, carved from the low end as
 * needed
 *
 * The guards are lightweight guard regions (MADV_GUARD_INSTALL, Linux 6.13) where the kernel has them: no
 * mapping is spent. Elsewhere they are PROT_NONE pages, and since each of those costs two mappings of the
 * 65,530 that a process may have by default, the process stops at STACK_MPROTECT_MAX stacks, all pools
 * together.
 *
 * Slabs double in size from 64 stacks, so that a million stacks are 15 mappings and a small process maps
 * little. A mapped slab costs address space only: memory comes with the first touch of a page, and no huge
 * page is ever used.
 *
 * A pool belongs to one thread. Only the count of mprotect guards and the answer of the probe are shared,
 * both atomic.
 */
#ifndef COPPICE_RUNTIME_STACK_H
#define COPPICE_RUNTIME_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A frame may skip a guard smaller than itself without touching it, and the libraries that actors call are
 * not compiled with stack probes: hence several pages, which cost address space and nothing else. */
#define STACK_GUARD_SIZE   ((size_t)16 * 1024)
#define STACK_MPROTECT_MAX 32000

struct stack_pool;

struct stack_counts {
    size_t carved;          /* stacks that exist: idle + taken */
    size_t idle;            /* waiting in the pool */
    size_t cold;            /* of the idle ones, those without memory */
    const char *guard_kind; /* "madvise" or "mprotect" */
};

/* Boot time; maps the bookkeeping (8 bytes per stack, touched as used) but no stack yet. size is rounded up
 * to whole pages. NULL with errno: EINVAL when size or count_max is 0 or their product does not fit the
 * address space, ENOMEM. */
struct stack_pool *stack_pool_create(size_t size, size_t count_max);

/* Unmaps everything; every stack must have been given back. Accepts NULL. */
void stack_pool_destroy(struct stack_pool *pool);

/* Gives the memory of idle stacks beyond the `keep` warmest back to the system (one system call per stack
 * that still has any). The stacks stay carved and guarded, so a later take needs no mapping. */
void stack_pool_trim(struct stack_pool *pool, size_t keep);

/* The address of the high end of a stack: the one given back last (still in the cache), else a new one. 0
 * when count_max is reached, no guard can be had or the system refuses the memory; errno says which (EAGAIN,
 * ENOSPC, ENOMEM). */
uintptr_t stack_take(struct stack_pool *pool);

/* Gives a taken stack back. Its content is kept until it is taken again or trimmed. */
void stack_give(struct stack_pool *pool, uintptr_t high);

/* The i-th warmest idle stack, 0 the next to be taken; i must be below the count of idle ones. */
uintptr_t stack_pool_idle(const struct stack_pool *pool, size_t i);

/* Usable bytes of each stack, and bytes of the guard below it, both in whole pages. Async-signal-safe. */
size_t stack_pool_size(const struct stack_pool *pool);
size_t stack_pool_guard_size(const struct stack_pool *pool);
struct stack_counts stack_pool_counts(const struct stack_pool *pool);

/* Stack marking. An untouched word reads as zero, so "paint" is zero and the depth ever used shows as the
 * lowest word that is not. Pages without memory are skipped, never faulted in. Both are for the range [low,
 * high) of one stack. */

/* The lowest address in [low, high) which was written since the paint, or high. */
uintptr_t stack_mark(uintptr_t low, uintptr_t high);
/* Forgets what lies in [low, high). */
void stack_paint(uintptr_t low, uintptr_t high);

#endif
