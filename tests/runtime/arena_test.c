#include "acutest.h"
#include "tests/runtime/node.h"

#include "runtime/scheduler.h"

static void alignment(void)
{
    for (size_t size = 0; size < 5000; size += 7) {
        unsigned char *p = actor_try_alloc(size);
        TEST_ASSERT(p != NULL);
        TEST_CHECK(((uintptr_t)p & 15) == 0);
        memset(p, 0xee, size);
        if (scheduler_current->current->arena && size % 70 == 0)
            actor_arena_reset((struct arena_mark){0});
    }
    unsigned char *largest = actor_try_alloc(65536 - 64);
    TEST_CHECK(largest != NULL);
    memset(largest, 1, 65536 - 64);
    TEST_CHECK(actor_try_alloc(65536) == NULL); /* in one piece there is no more */
    TEST_CHECK(actor_try_alloc(SIZE_MAX) == NULL);
    TEST_CHECK(actor_try_alloc(SIZE_MAX - 8) == NULL);
    TEST_CHECK(actor_try_alloc(ACTOR_ARENA_DEFAULT + 1) == NULL);
    TEST_CHECK(actor_alloc(1) != actor_alloc(0));
}

static void test_alignment(void)
{
    node_sim_with(alignment, &(struct sim_options){.seed = 1});
}

/* ---- quota ---- */

static size_t pieces;
static unsigned terminated;
static void take_all(void *arg)
{
    size_t size = (size_t)(uintptr_t)arg;
    for (pieces = 0;; pieces++)
        memset(actor_alloc(size), 1, size);
}
static void try_all(void *arg)
{
    size_t size = (size_t)(uintptr_t)arg;
    for (pieces = 0; actor_try_alloc(size); pieces++)
        ;
}
static void terminate(void *state, const struct reason *why)
{
    (void)state;
    (void)why;
    terminated++;
}
static const struct actor_class small_class = {
    .name = "small", .handle = doll_handle, .terminate = terminate, .arena_quota = 64 << 10};

static void quota(void)
{
    const size_t sizes[] = {16, 100, 1000, 4000, 5000, 20000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        terminated = 0;
        actor_pid d = spawn(&small_class, anywhere()), bystander = spawn(&small_class, anywhere());
        struct actor_info info;
        tell(d, try_all, (void *)(uintptr_t)sizes[i]);
        settle();
        size_t tried = pieces;
        size_t most = (64 << 10) + 4096; /* the last chunk may reach beyond the quota */
        TEST_CHECK_(tried * sizes[i] <= most && tried >= 1, "%zu pieces of %zu", tried, sizes[i]);
        TEST_CHECK(actor_inspect(d, &info, DEADLINE_NONE) == OK && info.arena_bytes >= tried * sizes[i]);
        uint64_t ref = actor_monitor(d, 0);
        tell(d, take_all, (void *)(uintptr_t)sizes[i]);
        TEST_CHECK(down(ref).kind == REASON_QUOTA && pieces == 0);
        TEST_CHECK(terminated == 0); /* as after a crash */
        TEST_CHECK(actor_alive(bystander));
        actor_kill(bystander);
        settle();
    }
}

static void test_quota(void)
{
    node_sim(quota);
}

/* ---- mark and reset ---- */

static void marks(void *arg)
{
    (void)arg;
    struct arena_mark none = actor_arena_mark();
    TEST_CHECK(none.chunk == NULL);
    char *first = actor_alloc(100);
    strcpy(first, "first");
    struct arena_mark mark = actor_arena_mark();
    char *again = actor_alloc(50);
    for (int i = 0; i < 20; i++)
        memset(actor_alloc(3000), i, 3000);
    struct arena_mark inner = actor_arena_mark();
    memset(actor_alloc(30000), 1, 30000);
    actor_arena_reset(inner);
    TEST_CHECK(actor_arena_mark().total == inner.total);
    actor_arena_reset(mark);
    TEST_CHECK(strcmp(first, "first") == 0 && actor_alloc(50) == again);
    TEST_CHECK(actor_arena_mark().total == mark.total);
    for (int i = 0; i < 1000; i++) { /* a loop that resets stays where it is */
        struct arena_mark here = actor_arena_mark();
        memset(actor_alloc(20000), i, 20000);
        actor_arena_reset(here);
    }
    actor_arena_reset(none);
    TEST_CHECK(actor_alloc(100) == first);
    actor_arena_reset(actor_arena_mark());
}

static void mark_and_reset(void)
{
    actor_pid d = doll(anywhere());
    tell(d, marks, NULL);
    settle();
    TEST_CHECK(actor_alive(d));
    actor_kill(d);
    settle();
}

static void test_mark_and_reset(void)
{
    node_sim(mark_and_reset);
}

/* A reset to a mark that is gone itself is a bug, and found. */
static void stale_mark(void)
{
    actor_alloc(10);
    struct arena_mark early = actor_arena_mark();
    actor_alloc(4000);
    struct arena_mark late = actor_arena_mark();
    actor_arena_reset(early);
    actor_arena_reset(late);
}
static void in_child(void)
{
    node_sim_with(stale_mark, &(struct sim_options){.seed = 1});
}
static void test_stale_mark(void)
{
    struct outcome o = node_child(in_child, NULL);
    TEST_CHECK_(o.exited == 70 && o.lines == 1 && strstr(o.text, "assertion failed"), "%d %d %s", o.exited,
                o.signal, o.text);
}

TEST_LIST
= {
    {"aligned, up to the largest piece, refused beyond", test_alignment},
    {"the quota ends the actor alone", test_quota},
    {"mark and reset", test_mark_and_reset},
    {"a stale mark is found", test_stale_mark},
    {NULL, NULL},
};
