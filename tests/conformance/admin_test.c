/* Section I: what can be asked of a supervisor, and what it answers. */
#include "acutest.h"
#include "harness.h"

static void api_01(void)
{
    actor_pid sup = ROOMY(WORKER(A));
    struct child_result result;
    EXPECT_ERROR(supervisor_terminate_child(sup, "x", PATIENCE), ERR_NOT_FOUND);
    EXPECT_ERROR(supervisor_delete_child(sup, "x", PATIENCE), ERR_NOT_FOUND);
    EXPECT_ERROR(supervisor_restart_child(sup, "x", &result, PATIENCE), ERR_NOT_FOUND);
    EXPECT_COUNTS(sup, "1,1,0,1");
}

static void api_02(void)
{
    actor_pid sup = ROOMY(WORKER(A));
    for (unsigned i = 0; i < 3; i++)
        EXPECT_OK(supervisor_terminate_child(sup, "a", PATIENCE));
    EXPECT_EQ(world->members[A].gone, 1);
    EXPECT_COUNTS(sup, "1,0,0,1");
}

static void api_03(void)
{
    actor_pid sup = ROOMY(WORKER(A));
    actor_pid a = pid_of(sup, "a");
    order_add(a, 3);
    struct child_result result = {0};
    EXPECT_ERROR(supervisor_restart_child(sup, "a", &result, PATIENCE), ERR_RUNNING);
    EXPECT_ERROR(supervisor_delete_child(sup, "a", PATIENCE), ERR_RUNNING);
    EXPECT(pid_of(sup, "a") == a);
    EXPECT_EQ(ask_sum(a), 3);
    EXPECT_EQ(world->members[A].begun, 1);
}

static void api_04(void)
{
    actor_pid sup = ROOMY(WORKER(A));
    struct child_result result;
    struct child_info info;
    EXPECT_OK(supervisor_terminate_child(sup, "a", PATIENCE));
    EXPECT_OK(supervisor_delete_child(sup, "a", PATIENCE));
    EXPECT_ERROR(supervisor_restart_child(sup, "a", &result, PATIENCE), ERR_NOT_FOUND);
    EXPECT_EQ(children_of(sup, &info, 1), 0);
    EXPECT_COUNTS(sup, "0,0,0,0");
}

static void api_05(void)
{
    actor_pid sup = ROOMY(WORKER(A));
    actor_pid a = pid_of(sup, "a");
    EXPECT_ERROR(supervisor_terminate_pid(sup, a, PATIENCE), ERR_NOT_FOUND);
    settle();
    EXPECT(actor_alive(a) && pid_of(sup, "a") == a);
    EXPECT_EQ(world->members[A].begun, 1);
}

static void api_06(void)
{
    actor_pid sup = ROOMY(WORKER(A));
    EXPECT_OK(supervisor_stop(sup, NORMAL, PATIENCE));
    const actor_pid nobodies[] = {sup, 0};
    uint64_t began = actor_now();
    for (unsigned i = 0; i < 2; i++) {
        actor_pid no = nobodies[i];
        struct child_spec spec = WORKER(B);
        struct child_result result = {0};
        struct child_counts counts;
        struct child_info info;
        struct supervisor_info about;
        size_t stored, total;
        EXPECT_ERROR(supervisor_start_child(no, &spec, &result, PATIENCE), ERR_NOPROC);
        EXPECT_ERROR(supervisor_start_dynamic(no, NULL, 0, NULL, &result, PATIENCE), ERR_NOPROC);
        EXPECT_ERROR(supervisor_terminate_child(no, "a", PATIENCE), ERR_NOPROC);
        EXPECT_ERROR(supervisor_terminate_pid(no, actor_self(), PATIENCE), ERR_NOPROC);
        EXPECT_ERROR(supervisor_restart_child(no, "a", &result, PATIENCE), ERR_NOPROC);
        EXPECT_ERROR(supervisor_delete_child(no, "a", PATIENCE), ERR_NOPROC);
        EXPECT_ERROR(supervisor_resume_child(no, "a", PATIENCE), ERR_NOPROC);
        EXPECT_ERROR(supervisor_which_children(no, 0, &info, 1, &stored, &total, PATIENCE), ERR_NOPROC);
        EXPECT_ERROR(supervisor_which_child(no, "a", &info, PATIENCE), ERR_NOPROC);
        EXPECT_ERROR(supervisor_count_children(no, &counts, PATIENCE), ERR_NOPROC);
        EXPECT_ERROR(supervisor_inspect(no, &about, PATIENCE), ERR_NOPROC);
        EXPECT_ERROR(supervisor_stop(no, NORMAL, PATIENCE), ERR_NOPROC);
    }
    EXPECT(actor_now() == began);
}

static void api_08(void)
{
    actor_pid sup = ROOMY(WORKER(A), WORKER(B));
    struct child_info infos[3];
    EXPECT_EQ(children_of(sup, infos, 3), 2);
    EXPECT(!strcmp(infos[0].id, "b") && infos[0].pid == world->members[B].pid);
    EXPECT(!strcmp(infos[1].id, "a") && infos[1].pid == world->members[A].pid);
    for (unsigned i = 0; i < 2; i++) {
        EXPECT_EQ(infos[i].type, CHILD_WORKER);
        EXPECT_EQ(infos[i].state, CHILD_RUNNING);
    }
}

static void api_09(void)
{
    actor_pid sup = ROOMY(WORKER(A), WORKER(B));
    EXPECT_OK(supervisor_terminate_child(sup, "a", PATIENCE));
    struct child_info info = {.pid = 1};
    EXPECT_OK(supervisor_which_child(sup, "a", &info, PATIENCE));
    EXPECT_EQ(info.pid, 0);
    EXPECT_OK(supervisor_which_child(sup, "b", &info, PATIENCE));
    EXPECT(info.pid == world->members[B].pid);
    EXPECT_ERROR(supervisor_which_child(sup, "x", &info, PATIENCE), ERR_NOT_FOUND);
}

static void api_10(void)
{
    actor_pid sup = ROOMY(WORKER(A, .restart = RESTART_TEMPORARY));
    EXPECT_OK(supervisor_terminate_child(sup, "a", PATIENCE));
    EXPECT_ERROR(supervisor_delete_child(sup, "a", PATIENCE), ERR_NOT_FOUND);
    EXPECT_COUNTS(sup, "0,0,0,0");
}

static void cnt_01(void)
{
    const struct supervisor_spec inner = {.name = "inner"};
    actor_pid sup = ROOMY(WORKER(A), SUBTREE("s1", &inner), WORKER(B, .restart = RESTART_TRANSIENT),
                          SUBTREE("s2", &inner), WORKER(C, .restart = RESTART_TEMPORARY));
    EXPECT_COUNTS(sup, "5,5,2,3");
    order_exit(pid_of(sup, "b"), NORMAL);
    settle();
    EXPECT_COUNTS(sup, "5,4,2,3");
    EXPECT_OK(supervisor_terminate_child(sup, "s1", PATIENCE));
    EXPECT_COUNTS(sup, "5,3,2,3");
    EXPECT_OK(supervisor_terminate_child(sup, "a", PATIENCE));
    EXPECT_COUNTS(sup, "5,2,2,3");
    hit(pid_of(sup, "c"));
    settle();
    EXPECT_COUNTS(sup, "4,1,2,2");
    EXPECT_OK(supervisor_delete_child(sup, "s1", PATIENCE));
    EXPECT_COUNTS(sup, "3,1,1,2");
    struct child_result result;
    EXPECT_OK(supervisor_restart_child(sup, "a", &result, PATIENCE));
    EXPECT_COUNTS(sup, "3,2,1,2");
}

static void cnt_02(void)
{
    static actor_pid pids[2000];
    unsigned half = world->full ? 1000 : 5;
    struct plan plan = {.number = A};
    struct child_spec child = WORKER(A, .restart = RESTART_TEMPORARY);
    actor_pid sup = start_dynamic(&(struct supervisor_spec){.intensity = 1, .period_ms = 5000}, &child);
    char wanted[64];
    EXPECT_COUNTS(sup, "1,0,0,0");
    for (unsigned i = 0; i < 2 * half; i++) {
        struct child_result result;
        EXPECT_OK(supervisor_start_dynamic(sup, &plan, sizeof plan, NULL, &result, PATIENCE));
        pids[i] = result.pid;
        if (i + 1 == half || i + 1 == 2 * half) {
            snprintf(wanted, sizeof wanted, "1,%u,0,%u", i + 1, i + 1);
            EXPECT_COUNTS(sup, wanted);
        }
    }
    for (unsigned i = 0; i < 2 * half; i++)
        actor_kill(pids[i]);
    settle();
    EXPECT_COUNTS(sup, "1,0,0,0");
    EXPECT_EQ(world->members[A].gone, 2 * half);
}

/* ---- beyond the table ---- */

/* restart_child: the same spec, the same place in the order, no budget spent. */
static void api_07(void)
{
    actor_pid sup = ROOMY(WORKER(A), WORKER(B), WORKER(C));
    EXPECT_OK(supervisor_terminate_child(sup, "a", PATIENCE));
    struct child_result result;
    EXPECT_OK(supervisor_restart_child(sup, "a", &result, PATIENCE));
    struct child_info infos[3];
    EXPECT_EQ(children_of(sup, infos, 3), 3);
    EXPECT(!strcmp(infos[2].id, "a") && infos[2].pid == result.pid);
    events_clear();
    EXPECT_REASON(end_of(sup, SHUTDOWN), SHUTDOWN);
    EXPECT_ORDER(GONE, "cba");
}

/* The dead one is gone when terminate_child returns, its name is free, and nobody restarts it. */
static void api_11(void)
{
    actor_pid sup = ROOMY(WORKER(A, .name = "worker"));
    actor_pid a = pid_of(sup, "a");
    EXPECT_OK(supervisor_terminate_child(sup, "a", PATIENCE));
    EXPECT(!actor_alive(a));
    EXPECT(!actor_whereis("worker"));
    pass_ms(10000);
    EXPECT_EQ(world->members[A].begun, 1);
    struct child_result result;
    EXPECT_OK(supervisor_restart_child(sup, "a", &result, PATIENCE));
    EXPECT(actor_whereis("worker") == result.pid);
}

/* terminate_child of a child that is dying by itself at that moment: ok, and it isn't started again. */
static void api_12(void)
{
    actor_pid sup = ROOMY(WORKER(A), WORKER(B));
    actor_pid a = pid_of(sup, "a");
    hit(a);
    EXPECT_OK(supervisor_terminate_child(sup, "a", PATIENCE));
    settle();
    EXPECT(!actor_alive(a));
    EXPECT_EQ(pid_of(sup, "a"), 0);
    EXPECT_EQ(world->members[A].gone, world->members[A].begun);
    EXPECT_COUNTS(sup, "2,1,0,2");
}

/* which_children page by page, newest first. */
static void api_13(void)
{
    actor_pid sup = ROOMY(WORKER(A), WORKER(B), WORKER(C), WORKER(D), WORKER(E));
    char seen[8] = "";
    size_t n = 0;
    for (size_t first = 0;; first += 2) {
        struct child_info infos[2];
        size_t stored, total;
        EXPECT_OK(supervisor_which_children(sup, first, infos, 2, &stored, &total, PATIENCE));
        EXPECT_EQ(total, 5);
        if (!stored)
            break;
        for (size_t i = 0; i < stored; i++)
            seen[n++] = infos[i].id[0];
    }
    EXPECT(!strcmp(seen, "edcba"));
}

/* A child's record: how often it was restarted and why it died last. */
static void api_14(void)
{
    actor_pid sup = ROOMY(WORKER(A));
    EXPECT_EQ(info_of(sup, "a").restarts, 0);
    EXPECT_EQ(info_of(sup, "a").last_reason[0], 0);
    order_exit(pid_of(sup, "a"), reason_of(REASON_OVERRUN));
    settle();
    EXPECT_EQ(info_of(sup, "a").restarts, 1);
    EXPECT(!strcmp(info_of(sup, "a").last_reason, "overrun"));
    actor_kill(pid_of(sup, "a"));
    settle();
    EXPECT_EQ(info_of(sup, "a").restarts, 2);
    EXPECT(!strcmp(info_of(sup, "a").last_reason, "killed"));
}

/* A call whose caller has given up is still done, once. */
static void api_15(void)
{
    actor_pid sup = ROOMY(CHILD(A, &trapper_class, PLAN(.number = A, .end_ms = 100)));
    EXPECT_ERROR(supervisor_terminate_child(sup, "a", actor_deadline_ms(10)), ERR_TIMEOUT);
    pass_ms(200);
    EXPECT_EQ(world->members[A].gone, 1);
    EXPECT_EQ(pid_of(sup, "a"), 0);
    EXPECT(!mail());
}

/* Several callers at once: each is answered, the work is done once. */
static enum actor_step caller_init(void *state, const void *args, size_t size)
{
    (void)state;
    actor_pid sup;
    EXPECT_EQ(size, sizeof sup);
    memcpy(&sup, args, size);
    struct child_spec spec = WORKER(A);
    struct child_result result = {0};
    enum error e = supervisor_start_child(sup, &spec, &result, PATIENCE);
    EXPECT(e == OK || e == ERR_ALREADY_STARTED);
    EXPECT(result.pid == world->members[A].pid);
    world->numbers[e == OK]++;
    return ACTOR_IGNORE;
}

static enum actor_step caller_handle(void *state, struct message *m)
{
    (void)state;
    (void)m;
    return ACTOR_CONTINUE;
}

static const struct actor_class caller_class = {
    .name = "caller", .init = caller_init, .handle = caller_handle};

static void api_16(void)
{
    actor_pid sup = start_empty(ONE_FOR_ONE), pid;
    for (unsigned i = 0; i < 4; i++)
        EXPECT_OK(actor_spawn(
            &(struct spawn_options){
                .class = &caller_class, .args = &sup, .args_size = sizeof sup, .scheduler = anywhere()},
            &pid));
    settle();
    EXPECT_EQ(world->numbers[1], 1);
    EXPECT_EQ(world->numbers[0], 3);
    EXPECT_EQ(world->members[A].begun, 1);
}

/* A supervisor that stops itself in the middle of a call: the caller is told at once. */
static void api_17(void)
{
    actor_pid sup = ROOMY(CHILD(A, &trapper_class, PLAN(.number = A, .end_ms = 100)));
    actor_exit_signal(sup, SHUTDOWN);
    struct child_counts counts;
    uint64_t began = now_ms();
    enum error e = supervisor_count_children(sup, &counts, PATIENCE);
    EXPECT(e == ERR_DOWN || e == ERR_NOPROC || e == OK); /* the call may have come first */
    EXPECT(now_ms() - began <= 100);
    wait_exit(sup);
    EXPECT_ERROR(supervisor_count_children(sup, &counts, PATIENCE), ERR_NOPROC);
}

/* inspect tells what was declared. */
static void cnt_03(void)
{
    struct child_spec child = WORKER(A);
    actor_pid sup = start_supervisor(&(struct supervisor_spec){.name = "declared",
                                                               .strategy = REST_FOR_ONE,
                                                               .intensity = 7,
                                                               .period_ms = 12345,
                                                               .children = &child,
                                                               .children_count = 1});
    struct supervisor_info info;
    EXPECT_OK(supervisor_inspect(sup, &info, PATIENCE));
    EXPECT(!strcmp(info.name, "declared"));
    EXPECT_EQ(info.strategy, REST_FOR_ONE);
    EXPECT_EQ(info.intensity, 7);
    EXPECT_EQ(info.period_ms, 12345);
    EXPECT_EQ(info.budget_used, 0);
    EXPECT_EQ(info.restarts, 0);
    EXPECT_EQ(info.children.specs, 1);
    EXPECT_EQ(info.children.active, 1);
}

#define ROWS(X)                   \
    X("API-01", api_01, 0)        \
    X("API-02", api_02, 0)        \
    X("API-03", api_03, 0)        \
    X("API-04", api_04, 0)        \
    X("API-05", api_05, 0)        \
    X("API-06", api_06, 0)        \
    X("API-08", api_08, 0)        \
    X("API-09", api_09, 0)        \
    X("API-10", api_10, 0)        \
    X("CNT-01", cnt_01, 0)        \
    X("CNT-02", cnt_02, ROW_ONCE) \
    X("API-07", api_07, 0)        \
    X("API-11", api_11, 0)        \
    X("API-12", api_12, 0)        \
    X("API-13", api_13, 0)        \
    X("API-14", api_14, 0)        \
    X("API-15", api_15, 0)        \
    X("API-16", api_16, 0)        \
    X("API-17", api_17, 0)        \
    X("CNT-03", cnt_03, 0)

ROWS_TEST_LIST;
