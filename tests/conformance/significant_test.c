/* Section J: significant children, and the supervisor that goes with them. */
#include "acutest.h"
#include "harness.h"

#define AUTO(mode, ...)                                 \
    start_supervisor(&(struct supervisor_spec){         \
        .auto_shutdown = (mode),                        \
        .intensity = 10,                                \
        .period_ms = 5000,                              \
        .children = (struct child_spec[]){__VA_ARGS__}, \
        .children_count = sizeof((struct child_spec[]){__VA_ARGS__}) / sizeof(struct child_spec)})

#define SIGNIFICANT_TRANSIENT .restart = RESTART_TRANSIENT, .significant = true
#define SIGNIFICANT_TEMPORARY .restart = RESTART_TEMPORARY, .significant = true

static void sig_01(void)
{
    const struct reason ends[] = {NORMAL, SHUTDOWN, shutdown_with(5)};
    for (unsigned i = 0; i < 3; i++) {
        memset(world->members, 0, sizeof world->members);
        actor_pid sup = AUTO(AUTO_SHUTDOWN_ANY, TRAPPER(A), WORKER(B, SIGNIFICANT_TRANSIENT), TRAPPER(C));
        uint64_t s = watch(sup);
        events_clear();
        order_exit(pid_of(sup, "b"), ends[i]);
        EXPECT_REASON(wait_down(s), SHUTDOWN);
        EXPECT_REASON(wait_exit(sup), SHUTDOWN);
        EXPECT_ORDER(GONE, "bca");
        EXPECT_REASON(world->members[A].why, SHUTDOWN);
        EXPECT_REASON(world->members[C].why, SHUTDOWN);
    }
}

static void sig_03(void)
{
    for (unsigned way = 0; way < 3; way++) {
        actor_pid sup = AUTO(AUTO_SHUTDOWN_ANY, WORKER(A, SIGNIFICANT_TEMPORARY), WORKER(B));
        uint64_t s = watch(sup);
        if (way == 0)
            actor_kill(pid_of(sup, "a"));
        else
            order_exit(pid_of(sup, "a"), way == 1 ? NORMAL : abnormal());
        EXPECT_REASON(wait_down(s), SHUTDOWN);
        EXPECT_EQ(world->members[A].begun, way + 1);
        EXPECT_EQ(world->members[B].gone, way + 1);
    }
}

static void sig_04(void)
{
    actor_pid sup = AUTO(draw(2) ? AUTO_SHUTDOWN_ANY : AUTO_SHUTDOWN_ALL, WORKER(A, SIGNIFICANT_TRANSIENT),
                         WORKER(B, SIGNIFICANT_TEMPORARY), WORKER(C));
    EXPECT_OK(supervisor_terminate_child(sup, "a", PATIENCE));
    EXPECT_OK(supervisor_terminate_child(sup, "b", PATIENCE));
    settle();
    EXPECT(actor_alive(sup));
    EXPECT_COUNTS(sup, "2,1,0,2");
}

static void sig_05(void)
{
    actor_pid sup = AUTO(AUTO_SHUTDOWN_ALL, WORKER(A, SIGNIFICANT_TEMPORARY),
                         WORKER(B, SIGNIFICANT_TRANSIENT), WORKER(C));
    uint64_t s = watch(sup);
    bool first = draw(2);
    order_exit(pid_of(sup, first ? "a" : "b"), NORMAL);
    settle();
    EXPECT(actor_alive(sup));
    EXPECT(pid_of(sup, "c") == world->members[C].pid);
    order_exit(pid_of(sup, first ? "b" : "a"), NORMAL);
    EXPECT_REASON(wait_down(s), SHUTDOWN);
    EXPECT_EQ(world->members[C].gone, 1);
}

static void sig_06(void)
{
    for (int mode = 0; mode < AUTO_SHUTDOWN_COUNT; mode++) {
        memset(world->members, 0, sizeof world->members);
        actor_pid sup = AUTO((enum auto_shutdown)mode, WORKER(A, .restart = RESTART_TEMPORARY),
                             WORKER(B, .restart = RESTART_TRANSIENT), WORKER(C));
        hit(pid_of(sup, "b"));
        settle();
        order_exit(pid_of(sup, "b"), draw(2) ? NORMAL : SHUTDOWN);
        switch (draw(3)) {
        case 0:
            actor_kill(pid_of(sup, "a"));
            break;
        case 1:
            order_exit(pid_of(sup, "a"), NORMAL);
            break;
        default:
            order_exit(pid_of(sup, "a"), abnormal());
        }
        hit(pid_of(sup, "c"));
        settle();
        EXPECT(actor_alive(sup));
        EXPECT_COUNTS(sup, "2,1,0,2");
    }
}

static void sig_07(void)
{
    actor_pid sup = ROOMY(WORKER(A));
    struct child_result result;
    EXPECT_ERROR(supervisor_start_child(sup, &WORKER(B, SIGNIFICANT_TEMPORARY), &result, PATIENCE),
                 ERR_BAD_COMBINATION);
    EXPECT_EQ(world->members[B].begun, 0);
    EXPECT_COUNTS(sup, "1,1,0,1");
}

static void sig_08(void)
{
    char text[256] = "";
    for (int mode = 0; mode < AUTO_SHUTDOWN_COUNT; mode++) {
        struct child_spec spec = WORKER(A, .significant = true);
        EXPECT_ERROR(supervisor_check_children(&spec, 1, (enum auto_shutdown)mode, text, sizeof text),
                     ERR_BAD_COMBINATION);
        EXPECT(strstr(text, "significant"));
    }
    actor_pid sup = AUTO(AUTO_SHUTDOWN_ANY, WORKER(B));
    struct child_result result;
    EXPECT_ERROR(supervisor_start_child(sup, &WORKER(A, .significant = true), &result, PATIENCE),
                 ERR_BAD_COMBINATION);
    EXPECT_EQ(world->members[A].begun, 0);
}

static void sig_09(void)
{
    struct child_spec child = WORKER(A, .restart = RESTART_TRANSIENT);
    const enum auto_shutdown modes[] = {AUTO_SHUTDOWN_ANY, AUTO_SHUTDOWN_ALL};
    for (unsigned i = 0; i < 2; i++) {
        struct supervisor_spec spec = {.strategy = DYNAMIC, .auto_shutdown = modes[i], .template = &child};
        struct start_result result = {0};
        EXPECT_ERROR(supervisor_start(keep_spec(&spec), anywhere(), &result, PATIENCE), ERR_BAD_COMBINATION);
        char text[256] = "";
        EXPECT_ERROR(supervisor_check(&spec, text, sizeof text), ERR_BAD_COMBINATION);
    }
    EXPECT(!mail());
}

static void sig_11(void)
{
    for (unsigned significant = 0; significant < 2; significant++) {
        memset(world->members, 0, sizeof world->members);
        struct child_spec leaves[] = {WORKER(A, SIGNIFICANT_TRANSIENT), WORKER(B)};
        const struct supervisor_spec inner = {
            .auto_shutdown = AUTO_SHUTDOWN_ANY, .children = leaves, .children_count = 2};
        actor_pid sup = AUTO(
            AUTO_SHUTDOWN_ANY,
            SUBTREE("inner", &inner, .restart = RESTART_TRANSIENT, .significant = significant), WORKER(C));
        uint64_t s = watch(sup), low = watch(pid_of(sup, "inner"));
        order_exit(world->members[A].pid, NORMAL);
        EXPECT_REASON(wait_down(low), SHUTDOWN);
        settle();
        EXPECT_EQ(world->members[B].gone, 1);
        EXPECT_EQ(world->members[C].gone, significant);
        EXPECT(actor_alive(sup) == !significant);
        if (significant)
            EXPECT_REASON(wait_down(s), SHUTDOWN);
        else
            EXPECT_COUNTS(sup, "2,1,1,1");
    }
}

/* ---- beyond the table ---- */

/* A significant transient child that crashes is restarted; that is no end of its own. */
static void sig_02(void)
{
    actor_pid sup =
        AUTO(draw(2) ? AUTO_SHUTDOWN_ANY : AUTO_SHUTDOWN_ALL, WORKER(A, SIGNIFICANT_TRANSIENT), WORKER(B));
    for (unsigned i = 0; i < 3; i++) {
        hit(pid_of(sup, "a"));
        settle();
    }
    EXPECT(actor_alive(sup));
    EXPECT_EQ(world->members[A].ready, 4);
    EXPECT_COUNTS(sup, "2,2,0,2");
}

/* all: one stopped by hand doesn't trigger, but isn't waited for either. */
static void sig_10(void)
{
    actor_pid sup = AUTO(AUTO_SHUTDOWN_ALL, WORKER(A, SIGNIFICANT_TRANSIENT),
                         WORKER(B, SIGNIFICANT_TRANSIENT), WORKER(C));
    uint64_t s = watch(sup);
    EXPECT_OK(supervisor_terminate_child(sup, "a", PATIENCE));
    settle();
    EXPECT(actor_alive(sup));
    order_exit(pid_of(sup, "b"), NORMAL);
    EXPECT_REASON(wait_down(s), SHUTDOWN);
}

/* all: a significant child that was added at run time is waited for as well. */
static void sig_12(void)
{
    actor_pid sup = AUTO(AUTO_SHUTDOWN_ALL, WORKER(A, SIGNIFICANT_TEMPORARY));
    uint64_t s = watch(sup);
    actor_pid b = add_child(sup, &WORKER(B, SIGNIFICANT_TEMPORARY));
    order_exit(pid_of(sup, "a"), NORMAL);
    settle();
    EXPECT(actor_alive(sup));
    order_exit(b, NORMAL);
    EXPECT_REASON(wait_down(s), SHUTDOWN);
}

/* A supervisor that shut itself down ended with shutdown: its permanent place in the parent is filled again.
 */
static void sig_13(void)
{
    struct child_spec leaf = WORKER(A, SIGNIFICANT_TRANSIENT);
    const struct supervisor_spec inner = {
        .auto_shutdown = AUTO_SHUTDOWN_ANY, .children = &leaf, .children_count = 1};
    actor_pid sup = ROOMY(SUBTREE("inner", &inner));
    actor_pid old = pid_of(sup, "inner");
    order_exit(world->members[A].pid, NORMAL);
    settle();
    EXPECT(pid_of(sup, "inner") != old && pid_of(sup, "inner"));
    EXPECT_EQ(world->members[A].ready, 2);
}

/* Significant under one_for_all: the group goes down with the supervisor, nobody is restarted. */
static void sig_14(void)
{
    struct child_spec children[] = {TRAPPER(A), WORKER(B, SIGNIFICANT_TEMPORARY), TRAPPER(C)};
    actor_pid sup = start_supervisor(&(struct supervisor_spec){.strategy = ONE_FOR_ALL,
                                                               .auto_shutdown = AUTO_SHUTDOWN_ANY,
                                                               .intensity = 5,
                                                               .period_ms = 5000,
                                                               .children = children,
                                                               .children_count = 3});
    uint64_t s = watch(sup);
    events_clear();
    hit(pid_of(sup, "b"));
    EXPECT_REASON(wait_down(s), SHUTDOWN);
    EXPECT_ORDER(GONE, "bca");
    EXPECT_ORDER(BEGAN, "");
}

#define ROWS(X)            \
    X("SIG-01", sig_01, 0) \
    X("SIG-03", sig_03, 0) \
    X("SIG-04", sig_04, 0) \
    X("SIG-05", sig_05, 0) \
    X("SIG-06", sig_06, 0) \
    X("SIG-07", sig_07, 0) \
    X("SIG-08", sig_08, 0) \
    X("SIG-09", sig_09, 0) \
    X("SIG-11", sig_11, 0) \
    X("SIG-02", sig_02, 0) \
    X("SIG-10", sig_10, 0) \
    X("SIG-12", sig_12, 0) \
    X("SIG-13", sig_13, 0) \
    X("SIG-14", sig_14, 0)

ROWS_TEST_LIST;
