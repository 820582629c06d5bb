/* What the sanitizers must be told when a program changes stacks. Private to the coro_*.c files. (What
 * valgrind must be told is told once per stack, by stack.c.)
 *
 * ASan wants the bounds of the stack it is about to see, and to know when one has ended; TSan keeps a shadow
 * of each stack
 * ("fiber") and must be switched in step. In an ordinary build all of this is empty.
 *
 * Everything is always inlined: TSan counts the entries and exits of functions per stack, and a function
 * entered on one and left on the other would upset its books.
 */
#ifndef COPPICE_RUNTIME_CORO_TOOLS_H
#define COPPICE_RUNTIME_CORO_TOOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined __SANITIZE_ADDRESS__
#define CORO_ASAN 1
#elif defined __has_feature
#if __has_feature(address_sanitizer)
#define CORO_ASAN 1
#endif
#endif

#if defined __SANITIZE_THREAD__
#define CORO_TSAN 1
#elif defined __has_feature
#if __has_feature(thread_sanitizer)
#define CORO_TSAN 1
#endif
#endif

#ifdef CORO_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#ifdef CORO_TSAN
#include <sanitizer/tsan_interface.h>
#endif

/* Is anything here not empty? */
#if defined CORO_ASAN || defined CORO_TSAN
#define TOOLS_WATCH 1
#else
#define TOOLS_WATCH 0
#endif

#define TOOLS_INLINE static inline __attribute__((always_inline))

/* One for each stack: each coroutine's, and the thread's own. */
struct coro_tools {
#ifdef CORO_ASAN
    void *fake; /* ASan's own frames of this stack while it is left */
    const void *bottom;
    size_t size;
#endif
#ifdef CORO_TSAN
    void *fiber;
#endif
};

/* A coroutine is about to begin on [low, high). */
TOOLS_INLINE void tools_begin(struct coro_tools *tools, uintptr_t low, uintptr_t high)
{
    (void)tools, (void)low, (void)high;
#ifdef CORO_ASAN
    tools->fake = NULL;
    tools->bottom = (const void *)low;
    tools->size = high - low;
#endif
#ifdef CORO_TSAN
    tools->fiber = __tsan_create_fiber(0);
#endif
}

/* It has ended, and the thread's own stack runs again. What its frames poisoned must not outlive them. */
TOOLS_INLINE void tools_end(struct coro_tools *tools, uintptr_t low, uintptr_t high)
{
    (void)tools, (void)low, (void)high;
#ifdef CORO_ASAN
    __asan_unpoison_memory_region((const void *)low, high - low);
#endif
#ifdef CORO_TSAN
    __tsan_destroy_fiber(tools->fiber);
#endif
}

/* Right before the switch from `from` to `to`. */
TOOLS_INLINE void tools_leave(struct coro_tools *from, struct coro_tools *to)
{
    (void)from, (void)to;
#ifdef CORO_ASAN
    __sanitizer_start_switch_fiber(&from->fake, to->bottom, to->size);
#endif
#ifdef CORO_TSAN
    if (from->fiber == NULL)
        from->fiber = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(to->fiber, 0);
#endif
}

/* Right after a switch back to a stack that was left. */
TOOLS_INLINE void tools_return(struct coro_tools *here)
{
    (void)here;
#ifdef CORO_ASAN
    __sanitizer_finish_switch_fiber(here->fake, NULL, NULL);
#endif
}

/* First thing on a new stack: it learns the bounds of the one that started it. */
TOOLS_INLINE void tools_arrive(struct coro_tools *outer)
{
    (void)outer;
#ifdef CORO_ASAN
    __sanitizer_finish_switch_fiber(NULL, &outer->bottom, &outer->size);
#endif
}

/* Last thing on a stack that will not be seen again. */
TOOLS_INLINE void tools_leave_for_good(struct coro_tools *outer)
{
    (void)outer;
#ifdef CORO_ASAN
    __sanitizer_start_switch_fiber(NULL, outer->bottom, outer->size);
#endif
}

/* Right after the switch from a stack that was left for good: TSan follows only here, see above. */
TOOLS_INLINE void tools_follow(struct coro_tools *outer)
{
    (void)outer;
#ifdef CORO_TSAN
    __tsan_switch_to_fiber(outer->fiber, 0);
#endif
}

#endif
