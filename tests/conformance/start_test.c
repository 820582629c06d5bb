/* Section B: the order in which children start, and what happens when one doesn't. */
#include "acutest.h"
#include "harness.h"

static enum error try_start(const struct supervisor_spec *spec, struct start_result *ret)
{
    *ret = (struct start_result){0};
    return supervisor_start(keep_spec(spec), anywhere(), ret, PATIENCE);
}

/* Nothing comes to the starter within 100 ms, and nobody is left of the children. */
static void no_trace(void)
{
    pass_ms(100);
    EXPECT(!mail());
    for (unsigned i = 0; i < MEMBERS; i++)
        EXPECT_EQ(world->members[i].begun, world->members[i].gone);
}

static void start_01(void)
{
    START(ONE_FOR_ONE, 1, 5, CHILD(D, &worker_class, PLAN(.number = D, .init_ms = draw(9))),
          CHILD(B, &worker_class, PLAN(.number = B, .init_ms = draw(9))), WORKER(E),
          CHILD(A, &trapper_class, PLAN(.number = A, .init_ms = draw(9))), WORKER(C));
    EXPECT_EQ(world->events_count, 10);
    for (unsigned i = 0; i < 5; i++) {
        uint32_t number = (uint32_t[]){D, B, E, A, C}[i];
        EXPECT_EQ(world->events[2 * i].kind, BEGAN);
        EXPECT_EQ(world->events[2 * i].number, number);
        EXPECT_EQ(world->events[2 * i + 1].kind, READY);
        EXPECT_EQ(world->events[2 * i + 1].number, number);
    }
}

static void start_02(void)
{
    uint64_t began = now_ms();
    START(ONE_FOR_ONE, 1, 5, CHILD(A, &worker_class, PLAN(.number = A, .init_ms = 3000)),
          CHILD(B, &worker_class, PLAN(.number = B, .init_ms = 20000)));
    EXPECT_EQ(now_ms() - began, 23000);
    EXPECT_EQ(world->members[A].ready + world->members[B].ready, 2);
}

static enum actor_step ignoring_init(struct supervisor_spec *spec, void *arg)
{
    (void)spec;
    (void)arg;
    return ACTOR_IGNORE;
}

static enum actor_step garbage_init(struct supervisor_spec *spec, void *arg)
{
    (void)spec;
    (void)arg;
    volatile int junk = 55;
    return (enum actor_step)junk;
}

static enum actor_step crashing_init(struct supervisor_spec *spec, void *arg)
{
    (void)spec;
    actor_exit(*(struct reason *)arg);
}

static void start_03(void)
{
    struct child_spec child = WORKER(A);
    struct start_result result;
    EXPECT_ERROR(try_start(&(struct supervisor_spec){.name = "ignored",
                                                     .register_name = true,
                                                     .children = &child,
                                                     .children_count = 1,
                                                     .init = ignoring_init},
                           &result),
                 ERR_IGNORED);
    EXPECT(!actor_whereis("ignored"));
    EXPECT_EQ(world->events_count, 0);
    no_trace();
}

static void start_04(void)
{
    struct start_result result;
    EXPECT_ERROR(try_start(&(struct supervisor_spec){.init = garbage_init}, &result), ERR_INIT);
    EXPECT_EQ(result.why.kind, REASON_BAD_RETURN);
    no_trace();
}

static void start_05(void)
{
    struct reason why = abnormal();
    struct start_result result;
    EXPECT_ERROR(
        try_start(&(struct supervisor_spec){.init = crashing_init, .init_arg = keep(&why, sizeof why)},
                  &result),
        ERR_INIT);
    EXPECT_REASON(result.why, why);
    no_trace();
}

static void expect_child_failed(const struct reason *why, const char *id, int place)
{
    EXPECT_EQ(why->kind, REASON_CHILD_FAILED);
    EXPECT_EQ(why->code, place);
    size_t size;
    const char *detail = reason_detail(why, &size);
    EXPECT(detail && size >= strlen(id) && !memcmp(detail, id, strlen(id)));
}

static void start_06(void)
{
    world->members[B].fail = UINT32_MAX;
    world->members[B].failure = (enum failure)draw(FAIL_JUNK + 1);
    struct child_spec children[] = {TRAPPER(A), WORKER(B), WORKER(C)};
    struct start_result result;
    EXPECT_ERROR(try_start(
                     &(struct supervisor_spec){
                         .name = "top", .register_name = true, .children = children, .children_count = 3},
                     &result),
                 ERR_INIT);
    expect_child_failed(&result.why, "b", 1);
    EXPECT_ORDER(BEGAN, "ab");
    EXPECT_ORDER(READY, "a");
    EXPECT_EQ(world->members[A].gone, 1);
    EXPECT_EQ(world->members[A].terminated, 1);
    EXPECT_REASON(world->members[A].why, SHUTDOWN);
    EXPECT(!actor_whereis("top"));
    no_trace();
}

static void start_09(void)
{
    actor_pid sup = START(ONE_FOR_ONE, 1, 5, WORKER(A));
    world->members[B].fail = 1;
    world->members[B].failure = FAIL_IGNORE;
    struct child_spec spec = WORKER(B);
    struct child_result result = {.pid = 1};
    EXPECT_OK(supervisor_start_child(sup, &spec, &result, PATIENCE));
    EXPECT_EQ(result.pid, 0);
    EXPECT_COUNTS(sup, "2,1,0,2");
    struct child_info info = info_of(sup, "b");
    EXPECT_EQ(info.pid, 0);
    EXPECT_EQ(info.state, CHILD_STOPPED);
    EXPECT_OK(supervisor_restart_child(sup, "b", &result, PATIENCE));
    EXPECT(result.pid == world->members[B].pid && actor_alive(result.pid));
}

static void start_11(void)
{
    actor_pid sup = start_empty(ONE_FOR_ONE);
    struct child_spec spec = WORKER(A);
    for (int how = FAIL_REFUSE; how <= FAIL_JUNK; how++) {
        world->members[A].fail = 1;
        world->members[A].failure = (enum failure)how;
        struct child_result result = {0};
        EXPECT_ERROR(supervisor_start_child(sup, &spec, &result, PATIENCE), ERR_INIT);
        const int kinds[] = {REASON_ERROR, REASON_ERROR, REASON_CRASH, REASON_BAD_RETURN};
        EXPECT_EQ(result.why.kind, kinds[how]);
        if (result.why.kind == REASON_ERROR)
            EXPECT_EQ(result.why.code, FAIL_CODE);
        struct child_info info;
        EXPECT_EQ(children_of(sup, &info, 1), 0);
        EXPECT_COUNTS(sup, "0,0,0,0");
    }
    add_child(sup, &spec);
    EXPECT_EQ(world->members[A].begun, 5);
}

static void start_12(void)
{
    actor_pid sup = start_empty(ONE_FOR_ONE);
    struct child_spec spec = CHILD(A, &worker_class, PLAN(.number = A, .info = 0xfeedfacecafebeef));
    struct child_result result = {0};
    EXPECT_OK(supervisor_start_child(sup, &spec, &result, PATIENCE));
    EXPECT(result.info == 0xfeedfacecafebeef);
    EXPECT_OK(supervisor_terminate_child(sup, "a", PATIENCE));
    result.info = 0;
    EXPECT_OK(supervisor_restart_child(sup, "a", &result, PATIENCE));
    EXPECT(result.info == 0xfeedfacecafebeef);
    hit(result.pid);
    settle();
    EXPECT_EQ(world->members[A].ready, 3);
    EXPECT(pid_of(sup, "a") == world->members[A].pid && world->members[A].pid != result.pid);
}

static void start_13(void)
{
    actor_pid sup = START(ONE_FOR_ONE, 1, 5, WORKER(A));
    actor_pid a = pid_of(sup, "a");
    struct child_spec spec = WORKER(B);
    const enum failure ways[] = {FAIL_REFUSE, FAIL_EXIT, FAIL_CRASH};
    for (unsigned i = 0; i < 3; i++) {
        world->members[B].fail = 1;
        world->members[B].failure = ways[i];
        struct child_result result = {0};
        EXPECT_ERROR(supervisor_start_child(sup, &spec, &result, PATIENCE), ERR_INIT);
        reason_drop(&result.why);
    }
    settle();
    EXPECT(actor_alive(sup) &&
           actor_alive(a)); /* three failed starts are no restarts: intensity 1 is untouched */
    EXPECT_EQ(world->members[B].begun, 3);
    add_child(sup, &spec);
    EXPECT(!mail());
}

static void start_14(void)
{
    actor_pid sup = START(ONE_FOR_ONE, 1, 5, WORKER(A));
    actor_pid a = pid_of(sup, "a");
    order_add(a, 41);
    struct child_spec spec = WORKER(A, .restart = RESTART_TEMPORARY);
    struct child_result result = {0};
    EXPECT_ERROR(supervisor_start_child(sup, &spec, &result, PATIENCE), ERR_ALREADY_STARTED);
    EXPECT(result.pid == a);
    EXPECT_EQ(ask_sum(a), 41);
    EXPECT_EQ(world->members[A].begun, 1);
    EXPECT_EQ(info_of(sup, "a").restart, RESTART_PERMANENT);
}

static void start_15(void)
{
    actor_pid sup = START(ONE_FOR_ONE, 1, 5, WORKER(A));
    EXPECT_OK(supervisor_terminate_child(sup, "a", PATIENCE));
    struct child_spec spec = WORKER(A);
    struct child_result result = {0};
    EXPECT_ERROR(supervisor_start_child(sup, &spec, &result, PATIENCE), ERR_ALREADY_PRESENT);
    EXPECT_EQ(world->members[A].begun, 1);
    EXPECT_COUNTS(sup, "1,0,0,1");
}

/* ---- beyond the table ---- */

/* A start that fails in the list: those before it end in reverse order. */
static void start_07(void)
{
    world->members[D].fail = 1;
    world->members[D].failure = FAIL_EXIT;
    struct child_spec children[] = {TRAPPER(A), WORKER(B), TRAPPER(C), WORKER(D), WORKER(E)};
    struct start_result result;
    EXPECT_ERROR(try_start(&(struct supervisor_spec){.children = children, .children_count = 5}, &result),
                 ERR_INIT);
    expect_child_failed(&result.why, "d", 3);
    EXPECT_ORDER(BEGAN, "abcd");
    EXPECT_ORDER(GONE, "dcba");
    no_trace();
}

/* A temporary child whose init says ignore leaves no spec; a transient one does. */
static void start_08(void)
{
    actor_pid sup = start_empty(ONE_FOR_ONE);
    world->members[A].fail = world->members[B].fail = 1;
    world->members[A].failure = world->members[B].failure = FAIL_IGNORE;
    struct child_spec a = WORKER(A, .restart = RESTART_TEMPORARY),
                      b = WORKER(B, .restart = RESTART_TRANSIENT);
    struct child_result result;
    EXPECT_OK(supervisor_start_child(sup, &a, &result, PATIENCE));
    EXPECT_EQ(result.pid, 0);
    EXPECT_COUNTS(sup, "0,0,0,0");
    EXPECT_OK(supervisor_start_child(sup, &b, &result, PATIENCE));
    EXPECT_EQ(result.pid, 0);
    EXPECT_COUNTS(sup, "1,0,0,1");
    actor_pid again = add_child(sup, &a);
    EXPECT(again == world->members[A].pid);
}

/* Ignore in the list: permanent and transient keep their place without a pid, temporary ones vanish; others
 * start. */
static void start_10(void)
{
    for (unsigned i = A; i <= C; i++) {
        world->members[i].fail = 1;
        world->members[i].failure = FAIL_IGNORE;
    }
    actor_pid sup = START(ONE_FOR_ONE, 1, 5, WORKER(A), WORKER(B, .restart = RESTART_TRANSIENT),
                          WORKER(C, .restart = RESTART_TEMPORARY), WORKER(D));
    EXPECT_COUNTS(sup, "3,1,0,3");
    EXPECT_EQ(pid_of(sup, "a"), 0);
    EXPECT_EQ(pid_of(sup, "b"), 0);
    struct child_info info;
    EXPECT_ERROR(supervisor_which_child(sup, "c", &info, PATIENCE), ERR_NOT_FOUND);
    settle();
    EXPECT_ORDER(BEGAN, "abcd"); /* nobody tries again */
}

/* A child that says ignore when it is restarted after a crash stays stopped, and its spec stays. */
static void start_16(void)
{
    actor_pid sup = START(ONE_FOR_ONE, 5, 5, WORKER(A), WORKER(B, .restart = RESTART_TRANSIENT));
    for (unsigned i = A; i <= B; i++) {
        world->members[i].fail = 1;
        world->members[i].failure = FAIL_IGNORE;
        hit(world->members[i].pid);
    }
    settle();
    EXPECT_COUNTS(sup, "2,0,0,2");
    EXPECT_EQ(info_of(sup, "a").state, CHILD_STOPPED);
    struct child_result result;
    EXPECT_OK(supervisor_restart_child(sup, "a", &result, PATIENCE));
    EXPECT(actor_alive(result.pid));
}

/* The starter of a supervisor that ends before its children are through isn't left waiting, and nothing
 * survives. */
static void start_17(void)
{
    struct child_spec children[] = {TRAPPER(A), CHILD(B, &worker_class, PLAN(.number = B, .init_ms = 10000))};
    struct start_result result = {0};
    EXPECT_ERROR(
        supervisor_start(keep_spec(&(struct supervisor_spec){.children = children, .children_count = 2}),
                         anywhere(), &result, actor_deadline_ms(5000)),
        ERR_TIMEOUT);
    pass_ms(60000);
    EXPECT_EQ(world->members[A].begun, world->members[A].gone);
    EXPECT_EQ(world->members[B].begun, world->members[B].gone);
    EXPECT_EQ(world->members[B].ready, 0);
    EXPECT(!mail());
}

/* A registered name that is taken: the start fails and says who holds it. */
static void start_18(void)
{
    struct child_spec none = WORKER(A, .name = "taken");
    actor_pid first = START(ONE_FOR_ONE, 1, 5, none), holder = actor_whereis("taken");
    EXPECT(holder == world->members[A].pid);
    actor_pid sup = start_empty(ONE_FOR_ONE);
    struct child_spec spec = WORKER(B, .name = "taken");
    struct child_result result = {0};
    EXPECT_ERROR(supervisor_start_child(sup, &spec, &result, PATIENCE), ERR_ALREADY_REGISTERED);
    EXPECT(result.pid == holder);
    EXPECT_EQ(world->members[B].begun, 0);
    EXPECT(actor_whereis("taken") == holder && actor_alive(first));
    EXPECT_COUNTS(sup, "0,0,0,0");
}

/* supervisor_start under a name in use: already registered, with the holder, and the holder is untouched. */
static void start_19(void)
{
    struct supervisor_spec spec = {.name = "sup", .register_name = true};
    actor_pid holder = start_supervisor(&spec);
    struct start_result result;
    EXPECT_ERROR(try_start(&spec, &result), ERR_ALREADY_REGISTERED);
    EXPECT(result.pid == holder);
    EXPECT(actor_whereis("sup") == holder);
    EXPECT(!mail() && actor_alive(holder));
}

#define ROWS(X)                \
    X("START-01", start_01, 0) \
    X("START-02", start_02, 0) \
    X("START-03", start_03, 0) \
    X("START-04", start_04, 0) \
    X("START-05", start_05, 0) \
    X("START-06", start_06, 0) \
    X("START-09", start_09, 0) \
    X("START-11", start_11, 0) \
    X("START-12", start_12, 0) \
    X("START-13", start_13, 0) \
    X("START-14", start_14, 0) \
    X("START-15", start_15, 0) \
    X("START-07", start_07, 0) \
    X("START-08", start_08, 0) \
    X("START-10", start_10, 0) \
    X("START-16", start_16, 0) \
    X("START-17", start_17, 0) \
    X("START-18", start_18, 0) \
    X("START-19", start_19, 0)

ROWS_TEST_LIST;
