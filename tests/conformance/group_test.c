/* Section H: one_for_all and rest_for_one. */
#include "acutest.h"
#include "harness.h"

#define ALL(...)  START(ONE_FOR_ALL, 1000, 3600, __VA_ARGS__)
#define REST(...) START(REST_FOR_ONE, 1000, 3600, __VA_ARGS__)

/* The children that run, in start order, as letters; each with the pid of its latest life. */
static const char *running(actor_pid sup)
{
    static char text[16];
    struct child_info infos[8];
    size_t count = children_of(sup, infos, 8), n = 0;
    for (size_t i = count; i-- > 0;) {
        if (!infos[i].pid)
            continue;
        EXPECT(actor_alive(infos[i].pid));
        EXPECT(infos[i].pid == world->members[infos[i].id[0] - 'a'].pid);
        text[n++] = infos[i].id[0];
    }
    text[n] = 0;
    return text;
}

#define EXPECT_RUNNING(sup, wanted)                                                            \
    do {                                                                                       \
        const char *running_got = running(sup);                                                \
        if (strcmp(running_got, (wanted)))                                                     \
            world_fail(__FILE__, __LINE__, "'%s' run instead of '%s'", running_got, (wanted)); \
    } while (0)

static uint32_t budget_used(actor_pid sup)
{
    struct supervisor_info info;
    EXPECT_OK(supervisor_inspect(sup, &info, PATIENCE));
    return info.budget_used;
}

static void grp_01(void)
{
    actor_pid sup = ALL(WORKER(A), TRAPPER(B));
    actor_pid a = pid_of(sup, "a"), b = pid_of(sup, "b");
    uint64_t ref = watch(b);
    events_clear();
    hit(a);
    EXPECT_REASON(wait_down(ref), SHUTDOWN);
    settle();
    EXPECT(!actor_alive(a) && !actor_alive(b));
    EXPECT_RUNNING(sup, "ab");
    EXPECT(pid_of(sup, "a") != a && pid_of(sup, "b") != b);
    EXPECT_ORDER(GONE, "ab");
    EXPECT_ORDER(BEGAN, "ab");
    EXPECT(event_find(0, BEGAN, A) > event_find(0, GONE, B));
    EXPECT_EQ(budget_used(sup), 1);
}

static void grp_02(void)
{
    actor_pid sup = REST(WORKER(A), WORKER(B), TRAPPER(C));
    actor_pid a = pid_of(sup, "a"), b = pid_of(sup, "b"), c = pid_of(sup, "c");
    uint64_t ref = watch(c);
    order_add(a, 5);
    events_clear();
    hit(b);
    EXPECT_REASON(wait_down(ref), SHUTDOWN);
    settle();
    EXPECT(pid_of(sup, "a") == a && world->members[A].begun == 1);
    EXPECT_EQ(ask_sum(a), 5);
    EXPECT(!actor_alive(b) && !actor_alive(c));
    EXPECT_RUNNING(sup, "abc");
    EXPECT_ORDER(GONE, "bc");
    EXPECT_ORDER(BEGAN, "bc");
    EXPECT(event_find(0, BEGAN, B) > event_find(0, GONE, C));
}

static void grp_07(void)
{
    actor_pid sup = REST(WORKER(A), WORKER(B), TRAPPER(C));
    events_clear();
    hit(pid_of(sup, "a"));
    settle();
    EXPECT_ORDER(GONE, "acb");
    EXPECT_ORDER(BEGAN, "abc");
    EXPECT_RUNNING(sup, "abc");
    EXPECT_EQ(budget_used(sup), 1);
}

/* ---- beyond the table ---- */

/* A temporary bystander ends with the group and isn't started again; before the failed one it stays
 * (rest_for_one). */
static void grp_03(void)
{
    actor_pid all = ALL(WORKER(A), WORKER(B, .restart = RESTART_TEMPORARY), WORKER(C));
    hit(pid_of(all, draw(2) ? "a" : "c"));
    settle();
    EXPECT_RUNNING(all, "ac");
    EXPECT_COUNTS(all, "2,2,0,2");
    EXPECT_EQ(world->members[B].begun, 1);
    actor_pid rest = REST(WORKER(D, .restart = RESTART_TEMPORARY), WORKER(E),
                          WORKER(F, .restart = RESTART_TEMPORARY), WORKER(G));
    hit(pid_of(rest, "e"));
    settle();
    EXPECT_RUNNING(rest, "deg");
    EXPECT_EQ(world->members[D].begun, 1);
    EXPECT_EQ(world->members[F].begun, 1);
}

static void fail_next(uint32_t number, uint32_t times)
{
    world->members[number].fail = times;
    world->members[number].failure = (enum failure)draw(FAIL_JUNK + 1);
}

/* one_for_all: another child fails when the group is restarted. It is tried again until all run. */
static void grp_04(void)
{
    actor_pid sup = ALL(WORKER(A), WORKER(B), WORKER(C));
    fail_next(B, 1 + draw(3));
    uint32_t failures = world->members[B].fail;
    hit(pid_of(sup, "c"));
    settle();
    EXPECT_RUNNING(sup, "abc");
    EXPECT_EQ(budget_used(sup), failures + 1);
    EXPECT_EQ(world->members[A].gone, world->members[A].begun - 1);
    EXPECT_EQ(world->members[B].begun, failures + 2);
    EXPECT_EQ(world->members[C].begun, 2);
}

/* rest_for_one: the next attempt begins at the child that failed; those before it stay. */
static void grp_05(void)
{
    actor_pid sup = REST(WORKER(A), WORKER(B), WORKER(C), WORKER(D));
    fail_next(C, 2);
    hit(pid_of(sup, "b"));
    settle();
    EXPECT_RUNNING(sup, "abcd");
    EXPECT_EQ(world->members[A].begun, 1);
    EXPECT_EQ(world->members[B].begun, 2);
    EXPECT_EQ(world->members[C].begun, 4);
    EXPECT_EQ(world->members[D].begun, 2);
}

/* Ends that call for no restart leave the group alone. */
static void grp_06(void)
{
    enum strategy strategy = draw(2) ? ONE_FOR_ALL : REST_FOR_ONE;
    actor_pid sup = START(strategy, 5, 5, WORKER(A, .restart = RESTART_TRANSIENT), WORKER(B),
                          WORKER(C, .restart = RESTART_TEMPORARY), WORKER(D));
    order_exit(pid_of(sup, "a"), draw(2) ? NORMAL : shutdown_with(1));
    hit(pid_of(sup, "c"));
    settle();
    EXPECT_RUNNING(sup, "bd");
    EXPECT_COUNTS(sup, "3,2,0,3");
    EXPECT_EQ(world->members[B].begun + world->members[D].begun, 2);
    EXPECT_EQ(budget_used(sup), 0);
}

/* A child that was stopped by hand, or had ended normally, starts again with its group. */
static void grp_08(void)
{
    actor_pid sup = ALL(WORKER(A), WORKER(B), WORKER(C, .restart = RESTART_TRANSIENT));
    EXPECT_OK(supervisor_terminate_child(sup, "b", PATIENCE));
    order_exit(pid_of(sup, "c"), NORMAL);
    settle();
    EXPECT_RUNNING(sup, "a");
    hit(pid_of(sup, "a"));
    settle();
    EXPECT_RUNNING(sup, "abc");
}

/* The group ends in reverse start order, one at a time, and starts in order. */
static void grp_09(void)
{
    struct child_spec children[5];
    for (uint32_t i = 0; i < 5; i++)
        children[i] = CHILD(i, &trapper_class, PLAN(.number = i, .end_ms = draw(9), .init_ms = draw(9)));
    actor_pid sup = start_supervisor(&(struct supervisor_spec){.strategy = ONE_FOR_ALL,
                                                               .intensity = 1,
                                                               .period_ms = 5000,
                                                               .children = children,
                                                               .children_count = 5});
    events_clear();
    actor_kill(pid_of(sup, "c"));
    pass_ms(200);
    EXPECT_ORDER(GONE, "cedba");
    EXPECT_ORDER(BEGAN, "abcde");
    EXPECT(event_find(0, ASKED, D) > event_find(0, GONE, E));
    EXPECT(event_find(0, ASKED, B) > event_find(0, GONE, D));
    EXPECT(event_find(0, ASKED, A) > event_find(0, GONE, B));
    EXPECT(event_find(0, BEGAN, A) > event_find(0, GONE, A));
    EXPECT_RUNNING(sup, "abcde");
}

/* Several of a group crash at once: one restart of the group, and no restart of the restarted. */
static void grp_10(void)
{
    actor_pid sup = ALL(WORKER(A), WORKER(B), WORKER(C));
    for (uint32_t i = A; i <= C; i++)
        hit(world->members[i].pid);
    settle();
    EXPECT_RUNNING(sup, "abc");
    EXPECT_EQ(budget_used(sup), 1);
    for (uint32_t i = A; i <= C; i++)
        EXPECT_EQ(world->members[i].begun, 2);
}

/* Over the budget: those that still run end in reverse order, and nobody starts. */
static void grp_11(void)
{
    enum strategy strategy = draw(2) ? ONE_FOR_ALL : REST_FOR_ONE;
    actor_pid sup = START(strategy, 1, 5, TRAPPER(A), TRAPPER(B), TRAPPER(C));
    uint64_t ref = watch(sup);
    hit(pid_of(sup, "b"));
    settle();
    EXPECT_RUNNING(sup, "abc");
    events_clear();
    hit(pid_of(sup, "b"));
    EXPECT_REASON(wait_down(ref), SHUTDOWN);
    EXPECT_ORDER(GONE, "bca");
    EXPECT_ORDER(BEGAN, "");
}

/* Children added at run time belong to the group, after the others. */
static void grp_12(void)
{
    actor_pid sup = REST(WORKER(A), WORKER(B));
    add_child(sup, &WORKER(C));
    add_child(sup, &WORKER(D, .restart = RESTART_TRANSIENT));
    events_clear();
    hit(pid_of(sup, "b"));
    settle();
    EXPECT_ORDER(GONE, "bdc");
    EXPECT_ORDER(BEGAN, "bcd");
    EXPECT_EQ(world->members[A].begun, 1);
    EXPECT_RUNNING(sup, "abcd");
}

/* While a group's restart fails, the child that failed is shown as restarting; terminate_child lets it be. */
static void grp_13(void)
{
    actor_pid sup = ALL(WORKER(A), CHILD(B, &worker_class, PLAN(.number = B, .init_ms = 1)), WORKER(C));
    world->members[B].fail = UINT32_MAX;
    world->members[B].failure = FAIL_EXIT;
    hit(pid_of(sup, "c"));
    pass_ms(5);
    EXPECT_EQ(info_of(sup, "b").state, CHILD_RESTARTING);
    EXPECT_EQ(pid_of(sup, "c"), 0);
    EXPECT_REASON(end_of(sup, SHUTDOWN), SHUTDOWN);
    for (uint32_t i = A; i <= C; i++)
        EXPECT_EQ(world->members[i].gone, world->members[i].begun);
}

/* terminate_child and restart_child concern one child only, whatever the strategy. */
static void grp_14(void)
{
    actor_pid sup = START(draw(2) ? ONE_FOR_ALL : REST_FOR_ONE, 1, 5, WORKER(A), WORKER(B), WORKER(C));
    struct child_result result;
    EXPECT_OK(supervisor_terminate_child(sup, "a", PATIENCE));
    EXPECT_RUNNING(sup, "bc");
    EXPECT_OK(supervisor_restart_child(sup, "a", &result, PATIENCE));
    EXPECT_RUNNING(sup, "abc");
    EXPECT_EQ(world->members[B].begun + world->members[C].begun, 2);
    EXPECT_EQ(budget_used(sup), 0);
}

#define ROWS(X)            \
    X("GRP-01", grp_01, 0) \
    X("GRP-02", grp_02, 0) \
    X("GRP-07", grp_07, 0) \
    X("GRP-03", grp_03, 0) \
    X("GRP-04", grp_04, 0) \
    X("GRP-05", grp_05, 0) \
    X("GRP-06", grp_06, 0) \
    X("GRP-08", grp_08, 0) \
    X("GRP-09", grp_09, 0) \
    X("GRP-10", grp_10, 0) \
    X("GRP-11", grp_11, 0) \
    X("GRP-12", grp_12, 0) \
    X("GRP-13", grp_13, 0) \
    X("GRP-14", grp_14, 0)

ROWS_TEST_LIST;
