/* The switch by libdill's own means: a coroutine is started in its bundle on our stack memory, parks in a
 * receive on its channel, and is resumed by a send. At any moment at most one coroutine and the thread's own
 * stack can run, so libdill's queue of ready ones decides nothing: whoever waits hands over to the other.
 *
 * libdill allocates where the native switch does not (its table of handles, two per coroutine), reads the
 * clock, and once a second looks at its own poller.
 */
#include "runtime/coro.h"

#include <errno.h>
#include <libdill.h>

#include "runtime/assert.h"
#include "runtime/coro_impl.h"

/* libdill's own frames below coro_park. */
#define PARK_FRAMES 2048

const char coro_kind[] = "libdill";

static _Thread_local struct {
    struct coro *current; /* NULL on the thread's own stack */
    bool bundled;
    int bundle; /* holds all coroutines of this thread */
    struct dill_bundle_storage bundle_memory;
    struct coro_tools tools;
} here;

/* Runs on the new stack. When libdill has no handle left, the entry is not run. */
static dill_coroutine void coro_main(struct coro *coro)
{
    tools_arrive(&here.tools);
    struct dill_chstorage memory;
    int end = CORO_REFUSED;
    if (dill_chmake_mem(&memory, coro->channel) == 0) {
        coro->entry(coro->arg);
        ASSERT(here.current == coro);
        dill_hclose(coro->channel[0]);
        dill_hclose(coro->channel[1]);
        end = CORO_IDLE;
    }
    controls_restore(&coro->pool->controls);
    coro->state = (enum coro_state)end;
    here.current = NULL;
    tools_leave_for_good(&here.tools);
}

/* Back on the thread's own stack: parked, or ended? */
TOOLS_INLINE enum coro_state coro_left(struct coro *coro)
{
    enum coro_state state = coro->state;
    if (state != CORO_PARKED)
        tools_follow(&here.tools);
    tools_return(&here.tools);
    if (state != CORO_PARKED)
        coro_end(coro);
    return state;
}

struct coro *coro_start(struct coro_pool *pool, coro_entry *entry, void *arg)
{
    ASSERT(here.current == NULL);
    if (__builtin_expect(!here.bundled, 0)) {
        here.bundle = dill_bundle_mem(&here.bundle_memory);
        if (here.bundle < 0)
            return NULL;
        here.bundled = true;
    }
    struct coro *coro = coro_begin(pool, entry, arg);
    if (__builtin_expect(coro == NULL, 0))
        return NULL;
    here.current = coro;
    tools_leave(&here.tools, &coro->tools);
    int started =
        dill_bundle_go_mem(here.bundle, coro_main(coro), (void *)coro->low, (uintptr_t)coro - coro->low);
    ASSERT(started == 0);
    switch (coro_left(coro)) {
    case CORO_PARKED:
        return coro;
    case CORO_REFUSED:
        errno = ENOMEM;
        return NULL;
    default:
        return CORO_FINISHED;
    }
}

void coro_park(void)
{
    struct coro *coro = here.current;
    ASSERT(coro != NULL);
    coro->sp = (unsigned char *)__builtin_frame_address(0) - PARK_FRAMES;
    coro->state = CORO_PARKED;
    here.current = NULL;
    tools_leave(&coro->tools, &here.tools);
    char go_on;
    int received = dill_chrecv(coro->channel[0], &go_on, sizeof go_on, -1);
    ASSERT(received == 0);
    tools_return(&coro->tools);
}

bool coro_resume(struct coro *coro)
{
    ASSERT(here.current == NULL);
    ASSERT(coro->state == CORO_PARKED);
    coro->state = CORO_RUNNING;
    here.current = coro;
    tools_leave(&here.tools, &coro->tools);
    int sent = dill_chsend(coro->channel[1], "", 1, -1);
    ASSERT(sent == 0);
    int yielded = dill_yield();
    ASSERT(yielded == 0);
    return coro_left(coro) == CORO_PARKED;
}

struct coro *coro_self(void)
{
    return here.current;
}
