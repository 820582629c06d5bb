/* Guarded sections, and the shared heap behind one: actor code that calls malloc all the same does it guarded, so that
 * a fault inside the allocator is never mistaken for one of the actor's own (links with -Wl,--wrap=malloc,...). */
#include <stdlib.h>
#include "runtime/scheduler.h"

void actor_guard_begin(void)
{
    struct scheduler *s = scheduler_current;
    if (s)
        __atomic_store_n(&s->guard, s->guard + 1, __ATOMIC_RELAXED); /* the monitor looks at it, too */
}

void actor_guard_end(void)
{
    struct scheduler *s = scheduler_current;
    if (s) {
        ASSERT(s->guard > 0);
        __atomic_store_n(&s->guard, s->guard - 1, __ATOMIC_RELAXED);
        __asm__ volatile("" ::: "memory");
    }
}

extern void *__real_malloc(size_t size);
extern void *__real_calloc(size_t count, size_t size);
extern void *__real_realloc(void *p, size_t size);
extern void __real_free(void *p);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void __wrap_free(void *p);

void *__wrap_malloc(size_t size)
{
    actor_guard_begin();
    void *p = __real_malloc(size);
    actor_guard_end();
    return p;
}

void *__wrap_calloc(size_t count, size_t size)
{
    actor_guard_begin();
    void *p = __real_calloc(count, size);
    actor_guard_end();
    return p;
}

void *__wrap_realloc(void *old, size_t size)
{
    actor_guard_begin();
    void *p = __real_realloc(old, size);
    actor_guard_end();
    return p;
}

void __wrap_free(void *p)
{
    actor_guard_begin();
    __real_free(p);
    actor_guard_end();
}
