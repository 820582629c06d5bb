/* The native switch: coro_x86_64.S, coro_aarch64.S. */
#include "runtime/coro.h"

#include "runtime/assert.h"
#include "runtime/coro_impl.h"

#if !defined __x86_64__ && !defined __aarch64__
#error "no native switch for this machine: build with CORO=libdill"
#endif

const char coro_kind[] = "native";

static _Thread_local struct {
    struct coro *current; /* NULL on the thread's own stack */
    void *sp;             /* the thread's own stack while a coroutine runs */
    struct coro_tools tools;
} here;

bool coro_switch(void **save, void *load, bool parked);
bool coro_enter(void **save, void *top, struct coro *coro);
void *coro_main(struct coro *coro);

/* Runs on the new stack, called by coro_enter; answers the stack to go back to. It still stands on the stack
 * which coro_end gives back: the thread cannot take that one before it has left it. */
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
    struct coro *coro = coro_begin(pool, entry, arg);
    if (__builtin_expect(coro == NULL, 0))
        return NULL;
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
