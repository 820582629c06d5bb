/* Section G: how children are asked to end, in which order, and what the supervisor says about it. */
#include "acutest.h"
#include "harness.h"

#define SLOW(number_, ms, ...) \
    CHILD(number_, &trapper_class, PLAN(.number = (number_), .end_ms = (uint32_t)(ms)), __VA_ARGS__)
#define DEAF(number_, ...) \
    CHILD(number_, &trapper_class, PLAN(.number = (number_), .deaf = true), __VA_ARGS__)
/* A plain process that waits for the exit signal and ends with a reason of its own. */
#define ENDING(number_, why, ...) \
    CHILD(number_, &trapper_class, PLAN(.number = (number_), .last_words = true, .words = (why)), __VA_ARGS__)

static void shut_01(void)
{
    actor_pid sup = ROOMY(TRAPPER(A, .shutdown_ms = 1000), DEAF(B, .shutdown_ms = 1000), WORKER(C));
    uint64_t a = watch(world->members[A].pid), b = watch(world->members[B].pid);
    uint64_t c = watch(world->members[C].pid), s = watch(sup), began = now_ms();
    actor_exit_signal(sup, SHUTDOWN);
    EXPECT_REASON(wait_down(c), SHUTDOWN);
    EXPECT_EQ(now_ms() - began, 0);
    EXPECT_REASON(wait_down(b), KILLED);
    EXPECT_EQ(now_ms() - began, 1000);
    EXPECT_REASON(wait_down(a), SHUTDOWN);
    EXPECT_REASON(wait_down(s), SHUTDOWN);
    EXPECT_EQ(now_ms() - began, 1000);
    EXPECT_EQ(world->members[B].terminated, 0);
    EXPECT_REASON(world->members[A].why, SHUTDOWN);
}

static void shut_02(void)
{
    actor_pid sup = ROOMY(TRAPPER(A, .shutdown_ms = SHUTDOWN_BRUTAL));
    uint64_t a = watch(world->members[A].pid), s = watch(sup);
    actor_exit_signal(sup, SHUTDOWN);
    EXPECT_REASON(wait_down(a), KILLED);
    EXPECT_REASON(wait_down(s), SHUTDOWN);
    EXPECT_EQ(world->members[A].terminated, 0);
    EXPECT_EQ(event_count(ASKED, A), 0);
    EXPECT_EQ(world->members[A].gone, 1);
}

static void shut_03(void)
{
    actor_pid sup =
        ROOMY(SLOW(A, draw(9)), SLOW(B, draw(9)), SLOW(C, draw(9)), SLOW(D, draw(9)), SLOW(E, draw(9)));
    EXPECT_REASON(end_of(sup, SHUTDOWN), SHUTDOWN);
    EXPECT_ORDER(ASKED, "edcba");
    EXPECT_ORDER(GONE, "edcba");
    for (uint32_t i = A; i < E; i++)
        EXPECT(event_find(0, ASKED, i) > event_find(0, GONE, i + 1));
}

static void shut_06(void)
{
    actor_pid sup = ROOMY(WORKER(A), CHILD(B, &trapper_class, PLAN(.number = B, .dying = reason_error(31))));
    EXPECT_EQ(TOLD(SUPERVISOR_SHUTDOWN_ERROR), 0);
    uint64_t b = watch(world->members[B].pid);
    EXPECT_OK(supervisor_terminate_child(sup, "b", PATIENCE));
    EXPECT_REASON(wait_down(b), reason_error(31));
    settle();
    EXPECT_EQ(TOLD(SUPERVISOR_SHUTDOWN_ERROR), 1);
    EXPECT_EQ(world->members[B].begun, 1);
    EXPECT_COUNTS(sup, "2,1,0,2");
    struct child_result result;
    EXPECT_OK(supervisor_restart_child(sup, "b", &result, PATIENCE));
    b = watch(result.pid);
    EXPECT_REASON(end_of(sup, SHUTDOWN), SHUTDOWN);
    EXPECT_REASON(wait_down(b), reason_error(31));
    EXPECT_EQ(world->members[A].gone, 1);
    EXPECT_EQ(world->members[B].begun, 2);
    settle();
    EXPECT_EQ(TOLD(SUPERVISOR_SHUTDOWN_ERROR), 2);
}

static void shut_07(void)
{
    actor_pid sup = ROOMY(TRAPPER(A, .shutdown_ms = SHUTDOWN_BRUTAL), TRAPPER(B, .shutdown_ms = 1000),
                          DEAF(C, .shutdown_ms = 1000));
    uint64_t refs[3], s = watch(sup);
    for (unsigned i = 0; i < 3; i++)
        refs[i] = watch(world->members[i].pid);
    EXPECT_OK(supervisor_stop(sup, NORMAL, PATIENCE));
    EXPECT(!actor_alive(sup));
    EXPECT_REASON(wait_down(s), NORMAL);
    EXPECT_REASON(wait_down(refs[A]), KILLED);
    EXPECT_REASON(wait_down(refs[B]), SHUTDOWN);
    EXPECT_REASON(wait_down(refs[C]), KILLED);
}

static void shut_10(void)
{
    enum { COUNT = 10 };
    struct child_spec child =
        TRAPPER(A, .shutdown_ms = SHUTDOWN_BRUTAL, .restart = (enum restart_type)draw(3));
    actor_pid sup = start_dynamic(&(struct supervisor_spec){.intensity = 1, .period_ms = 5000}, &child);
    uint64_t refs[COUNT];
    for (unsigned i = 0; i < COUNT; i++) {
        struct plan plan = {.number = i};
        struct child_result result;
        EXPECT_OK(supervisor_start_dynamic(sup, &plan, sizeof plan, NULL, &result, PATIENCE));
        refs[i] = watch(result.pid);
    }
    EXPECT_REASON(end_of(sup, SHUTDOWN), SHUTDOWN);
    for (unsigned i = 0; i < COUNT; i++) {
        EXPECT_REASON(wait_down(refs[i]), KILLED);
        EXPECT_EQ(world->members[i].terminated, 0);
        EXPECT_EQ(world->members[i].begun, 1);
    }
}

static void shut_11(void)
{
    const struct reason ends[] = {NORMAL, SHUTDOWN, shutdown_with(4), reason_error(9)};
    for (int type = 0; type < RESTART_TYPE_COUNT; type++) {
        memset(world->members, 0, sizeof world->members);
        struct child_spec child = TRAPPER(A, .restart = (enum restart_type)type);
        actor_pid sup = start_dynamic(&(struct supervisor_spec){.intensity = 1, .period_ms = 5000}, &child);
        uint64_t refs[4], s = watch(sup), began = now_ms();
        for (unsigned i = 0; i < 4; i++) {
            struct plan plan = {.number = i, .last_words = true, .words = ends[i]};
            struct child_result result;
            EXPECT_OK(supervisor_start_dynamic(sup, &plan, sizeof plan, NULL, &result, PATIENCE));
            refs[i] = watch(result.pid);
        }
        actor_exit_signal(sup, SHUTDOWN);
        for (unsigned i = 0; i < 4; i++)
            EXPECT_REASON(wait_down(refs[i]), ends[i]);
        EXPECT_REASON(wait_down(s), SHUTDOWN);
        EXPECT_EQ(now_ms(), began);
        for (unsigned i = 0; i < 4; i++)
            EXPECT_EQ(world->members[i].begun, 1);
    }
}

static void shut_12(void)
{
    struct child_spec child = TRAPPER(A, .shutdown_ms = 1);
    actor_pid sup = start_dynamic(&(struct supervisor_spec){.intensity = 1, .period_ms = 5000}, &child);
    uint64_t refs[3];
    uint32_t deaf = draw(3);
    for (unsigned i = 0; i < 3; i++) {
        struct plan plan = {.number = i, .deaf = i == deaf};
        struct child_result result;
        EXPECT_OK(supervisor_start_dynamic(sup, &plan, sizeof plan, NULL, &result, PATIENCE));
        refs[i] = watch(result.pid);
    }
    EXPECT_REASON(end_of(sup, SHUTDOWN), SHUTDOWN);
    for (unsigned i = 0; i < 3; i++)
        EXPECT_REASON(wait_down(refs[i]), i == deaf ? KILLED : SHUTDOWN);
}

static void shut_13(void)
{
    actor_pid sup = start_dynamic(&(struct supervisor_spec){.intensity = 1, .period_ms = 5000}, NULL);
    add_child(sup, &SLOW(A, 20000, .shutdown_ms = SHUTDOWN_INFINITY));
    add_child(sup, &TRAPPER(B, .shutdown_ms = SHUTDOWN_BRUTAL));
    uint64_t a = watch(world->members[A].pid), b = watch(world->members[B].pid), began = now_ms();
    EXPECT_REASON(end_of(sup, SHUTDOWN), SHUTDOWN);
    EXPECT_EQ(now_ms() - began, 20000);
    EXPECT_REASON(wait_down(a), SHUTDOWN);
    EXPECT_REASON(wait_down(b), KILLED);
    EXPECT_EQ(world->members[B].terminated, 0);
}

static void shut_14(void)
{
    struct child_spec leaves[] = {SLOW(B, 4000), SLOW(C, 30000, .shutdown_ms = SHUTDOWN_INFINITY)};
    const struct supervisor_spec inner = {.children = leaves, .children_count = 2};
    actor_pid sup = ROOMY(TRAPPER(A), SUBTREE("inner", &inner), TRAPPER(D));
    actor_pid low = pid_of(sup, "inner");
    uint64_t down = watch(low), began = now_ms();
    EXPECT_REASON(end_of(sup, SHUTDOWN), SHUTDOWN);
    EXPECT_EQ(now_ms() - began, 34000);
    EXPECT_REASON(wait_down(down), SHUTDOWN);
    EXPECT_ORDER(ASKED, "dcba");
    EXPECT_ORDER(GONE, "dcba");
    EXPECT(event_find(0, ASKED, A) > event_find(0, GONE, B));
}

static void shut_16(void)
{
    actor_pid sup = ROOMY(ENDING(A, NORMAL, .restart = RESTART_TRANSIENT),
                          ENDING(B, NORMAL, .restart = RESTART_TEMPORARY), ENDING(C, NORMAL));
    uint64_t c = watch(world->members[C].pid);
    EXPECT_REASON(end_of(sup, SHUTDOWN), SHUTDOWN);
    EXPECT_REASON(wait_down(c), NORMAL);
    settle();
    EXPECT_EQ(TOLD(SUPERVISOR_SHUTDOWN_ERROR), 1);
    EXPECT_EQ(world->members[A].gone + world->members[B].gone + world->members[C].gone, 3);
}

/* ---- beyond the table ---- */

/* A supervisor as a child with a limit: over it, it is killed, and its children don't outlive it. */
static void shut_04(void)
{
    struct child_spec leaves[] = {WORKER(B), SLOW(C, 60000, .shutdown_ms = SHUTDOWN_INFINITY)};
    const struct supervisor_spec inner = {.children = leaves, .children_count = 2};
    actor_pid sup = ROOMY(SUBTREE("inner", &inner, .shutdown_ms = 700));
    uint64_t low = watch(pid_of(sup, "inner")), b = watch(world->members[B].pid), began = now_ms();
    EXPECT_REASON(end_of(sup, SHUTDOWN), SHUTDOWN);
    EXPECT_EQ(now_ms() - began, 700);
    EXPECT_REASON(wait_down(low), KILLED);
    EXPECT_REASON(wait_down(b), KILLED);
}

/* Asked, and killed if not gone at once: OTP's 0. */
static void shut_05(void)
{
    actor_pid sup =
        ROOMY(WORKER(A, .shutdown_ms = SHUTDOWN_AT_ONCE), DEAF(B, .shutdown_ms = SHUTDOWN_AT_ONCE));
    uint64_t a = watch(world->members[A].pid), b = watch(world->members[B].pid), began = now_ms();
    EXPECT_REASON(end_of(sup, SHUTDOWN), SHUTDOWN);
    EXPECT_EQ(now_ms(), began);
    struct reason why = wait_down(a); /* the two race: both ends are right */
    EXPECT(why.kind == REASON_SHUTDOWN || why.kind == REASON_KILLED);
    EXPECT_REASON(wait_down(b), KILLED);
}

/* terminate_child waits for the child's limit; the others don't notice. */
static void shut_08(void)
{
    actor_pid sup = ROOMY(DEAF(A, .shutdown_ms = 300), WORKER(B));
    actor_pid a = pid_of(sup, "a"), b = pid_of(sup, "b");
    uint64_t began = now_ms(), ref = watch(a);
    EXPECT_OK(supervisor_terminate_child(sup, "a", PATIENCE));
    EXPECT(!actor_alive(a));
    EXPECT_EQ(now_ms() - began, 300);
    EXPECT_REASON(wait_down(ref), KILLED);
    EXPECT_EQ(ask_sum(b), 0);
    EXPECT_EQ(world->members[B].begun, 1);
    EXPECT_COUNTS(sup, "2,1,0,2");
}

/* One millisecond inside the limit, one outside. */
static void shut_09(void)
{
    for (unsigned late = 0; late < 2; late++) {
        actor_pid sup = ROOMY(SLOW(A, late ? 1001 : 999, .shutdown_ms = 1000));
        uint64_t a = watch(world->members[A].pid), began = now_ms();
        EXPECT_REASON(end_of(sup, SHUTDOWN), SHUTDOWN);
        EXPECT_REASON(wait_down(a), late ? KILLED : SHUTDOWN);
        EXPECT_EQ(now_ms() - began, late ? 1000 : 999);
        EXPECT_EQ(world->members[A].gone, late + 1);
    }
}

/* A child that has unlinked itself is still ended by its supervisor. */
static enum actor_step loner_init(void *state, const void *args, size_t size)
{
    (void)state;
    (void)args;
    (void)size;
    actor_unlink(actor_parent());
    return ACTOR_CONTINUE;
}

static enum actor_step idle_handle(void *state, struct message *m)
{
    (void)state;
    (void)m;
    return ACTOR_CONTINUE;
}

static const struct actor_class loner_class = {.name = "loner", .init = loner_init, .handle = idle_handle};

static void shut_15(void)
{
    actor_pid sup = ROOMY({.id = "a", .class = &loner_class, .scheduler = anywhere()},
                          {.id = "b", .class = &loner_class});
    actor_pid a = pid_of(sup, "a"), b = pid_of(sup, "b");
    EXPECT_OK(supervisor_terminate_child(sup, "a", PATIENCE));
    EXPECT(!actor_alive(a));
    uint64_t ref = watch(b);
    EXPECT_REASON(end_of(sup, SHUTDOWN), SHUTDOWN);
    EXPECT_EQ(wait_down(ref).kind, REASON_SHUTDOWN);
    EXPECT(!actor_alive(b));
}

/* Children that die by themselves in the moment of the shutdown: no restart, no hang, each gone once. */
static void shut_17(void)
{
    actor_pid sup = ROOMY(WORKER(A), TRAPPER(B), WORKER(C), TRAPPER(D));
    uint64_t ref = watch(sup);
    hit(world->members[draw(4)].pid);
    actor_exit_signal(sup, SHUTDOWN);
    hit(world->members[draw(4)].pid);
    EXPECT_REASON(wait_down(ref), SHUTDOWN);
    for (unsigned i = 0; i < 4; i++)
        EXPECT_EQ(world->members[i].gone, world->members[i].begun);
}

/* A restart that is under way is given up when the shutdown comes: the newcomer doesn't survive. */
static void shut_18(void)
{
    actor_pid sup = ROOMY(CHILD(A, &worker_class, PLAN(.number = A, .init_ms = 1000)), WORKER(B));
    hit(world->members[A].pid);
    pass_ms(500);
    EXPECT_EQ(world->members[A].begun, 2);
    EXPECT_REASON(end_of(sup, SHUTDOWN), SHUTDOWN);
    pass_ms(10000);
    EXPECT_EQ(world->members[A].gone, 2);
    EXPECT_EQ(world->members[B].gone, 1);
    EXPECT_EQ(world->members[A].begun, 2);
}

/* stop with a reason of the caller's choice: children go first, with shutdown; the supervisor ends with the
 * reason. */
static void shut_19(void)
{
    actor_pid sup = ROOMY(SLOW(A, 50));
    uint64_t a = watch(world->members[A].pid), s = watch(sup);
    EXPECT_OK(supervisor_stop(sup, shutdown_with(12), PATIENCE));
    EXPECT_REASON(wait_down(a), SHUTDOWN);
    EXPECT_REASON(wait_down(s), shutdown_with(12));
    EXPECT_ERROR(supervisor_stop(sup, NORMAL, PATIENCE), ERR_NOPROC);
}

/* A dynamic supervisor asks all its children at once: the slowest one decides how long it takes. */
static void shut_20(void)
{
    struct child_spec child = TRAPPER(A, .shutdown_ms = SHUTDOWN_INFINITY);
    actor_pid sup = start_dynamic(&(struct supervisor_spec){.intensity = 1, .period_ms = 5000}, &child);
    for (unsigned i = 0; i < 6; i++) {
        struct plan plan = {.number = i, .end_ms = 100 * (i + 1)};
        struct child_result result;
        EXPECT_OK(supervisor_start_dynamic(sup, &plan, sizeof plan, NULL, &result, PATIENCE));
    }
    uint64_t began = now_ms();
    EXPECT_REASON(end_of(sup, SHUTDOWN), SHUTDOWN);
    EXPECT_EQ(now_ms() - began, 600);
    for (unsigned i = 0; i < 6; i++)
        EXPECT_EQ(world->members[i].gone, 1);
}

#define ROWS(X)              \
    X("SHUT-01", shut_01, 0) \
    X("SHUT-02", shut_02, 0) \
    X("SHUT-03", shut_03, 0) \
    X("SHUT-06", shut_06, 0) \
    X("SHUT-07", shut_07, 0) \
    X("SHUT-10", shut_10, 0) \
    X("SHUT-11", shut_11, 0) \
    X("SHUT-12", shut_12, 0) \
    X("SHUT-13", shut_13, 0) \
    X("SHUT-14", shut_14, 0) \
    X("SHUT-16", shut_16, 0) \
    X("SHUT-04", shut_04, 0) \
    X("SHUT-05", shut_05, 0) \
    X("SHUT-08", shut_08, 0) \
    X("SHUT-09", shut_09, 0) \
    X("SHUT-15", shut_15, 0) \
    X("SHUT-17", shut_17, 0) \
    X("SHUT-18", shut_18, 0) \
    X("SHUT-19", shut_19, 0) \
    X("SHUT-20", shut_20, 0)

ROWS_TEST_LIST;
