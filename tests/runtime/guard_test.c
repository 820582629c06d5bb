#include "acutest.h"
#include "tests/runtime/node.h"

#include <stdlib.h>
#include <string.h>
#include "runtime/scheduler.h"

/* What happens to faults, endings and preemption inside a guarded section is in fault_test.c and preempt_test.c. */

static uint32_t depth(void)
{
    return scheduler_current->guard;
}

static void nesting(void)
{
    TEST_CHECK(depth() == 0);
    actor_guard_begin();
    actor_guard_begin();
    TEST_CHECK(depth() == 2);
    actor_cast(actor_self(), NOTE, "x", 1); /* sending is allowed, waiting isn't */
    TEST_CHECK(actor_now() != 0 && message_new(1, 10) != NULL);
    actor_guard_end();
    TEST_CHECK(depth() == 1);
    actor_guard_end();
    TEST_CHECK(depth() == 0);
}

static void *blocks[100];
static void heap(void *arg)
{
    (void)arg;
    for (int i = 0; i < 100; i++) {
        blocks[i] = i % 2 ? calloc(10, (size_t)i) : malloc(1000);
        TEST_CHECK(blocks[i] != NULL && depth() == 0);
        blocks[i] = realloc(blocks[i], 5000);
        TEST_CHECK(blocks[i] != NULL && depth() == 0);
    }
    for (int i = 0; i < 100; i++)
        free(blocks[i]);
    free(NULL);
    TEST_CHECK(depth() == 0);
}

/* The depth is the scheduler's: whoever runs next finds it at zero. */
static void between_actors(void)
{
    for (int i = 0; i < 10; i++) {
        actor_pid pid = doll(anywhere());
        tell(pid, heap, NULL);
        uint64_t ref = actor_monitor(pid, 0);
        settle();
        TEST_CHECK(depth() == 0);
        actor_kill(pid);
        down(ref);
    }
}

static void test_nesting(void)
{
    node_sim(nesting);
    node_sim(between_actors);
}

/* Outside any runtime the wrapped allocator and the guards are plain. */
static void test_outside(void)
{
    TEST_CHECK(scheduler_current == NULL);
    actor_guard_begin();
    actor_guard_end();
    actor_guard_end();
    char *p = realloc(malloc(10), 20);
    TEST_CHECK(p != NULL);
    free(p);
    p = calloc(1, 1);
    TEST_CHECK(p && *p == 0);
    free(p);
}

TEST_LIST
= {
    {"guards nest, and the heap is behind one", test_nesting},
    {"outside any runtime", test_outside},
    {NULL, NULL},
};
