/* Section L: a supervisor's own life. */
#include "acutest.h"
#include "harness.h"

static void life_01(void)
{
    actor_pid sup = ROOMY(TRAPPER(A, .shutdown_ms = SHUTDOWN_BRUTAL), TRAPPER(B), WORKER(C));
    uint64_t refs[3], s = watch(sup);
    for (unsigned i = 0; i < 3; i++)
        refs[i] = watch(world->members[i].pid);
    actor_exit_signal(sup, SHUTDOWN);
    EXPECT_REASON(wait_down(s), SHUTDOWN);
    EXPECT_REASON(wait_exit(sup), SHUTDOWN);
    EXPECT_REASON(wait_down(refs[A]), KILLED);
    EXPECT_REASON(wait_down(refs[B]), SHUTDOWN);
    EXPECT_REASON(wait_down(refs[C]), SHUTDOWN);
    EXPECT_ORDER(GONE, "cba");
    EXPECT(!mail());
}

static void life_04(void)
{
    actor_pid sup = ROOMY(WORKER(A), WORKER(B));
    EXPECT_EQ(TOLD(MESSAGE_UNKNOWN), 0);
    EXPECT_OK(actor_cast(sup, 4711, "foo", 3));
    settle();
    EXPECT_EQ(TOLD(MESSAGE_UNKNOWN), 1);
    EXPECT_COUNTS(sup, "2,2,0,2");
    EXPECT_EQ(world->members[A].begun + world->members[B].begun, 2);
    settle();
    struct actor_info info;
    EXPECT_OK(actor_inspect(sup, &info, PATIENCE));
    EXPECT_EQ(info.mailbox_depth, 0);
}

static void life_06(void)
{
    struct child_spec child = WORKER(A, .name = "worker");
    struct supervisor_spec spec = {
        .name = "sup", .register_name = true, .children = &child, .children_count = 1};
    for (unsigned i = 0; i < 5; i++) {
        actor_pid sup = start_supervisor(&spec);
        EXPECT(actor_whereis("sup") == sup);
        EXPECT(actor_whereis("worker") == world->members[A].pid);
        if (draw(2)) {
            uint64_t ref = watch(sup);
            actor_exit_signal(sup, SHUTDOWN);
            wait_down(ref);
        } else {
            actor_exit_signal(sup, SHUTDOWN);
            wait_exit(sup);
        }
        EXPECT(!actor_whereis("sup") && !actor_whereis("worker"));
    }
    EXPECT_EQ(world->members[A].ready, 5);
}

/* Specs are changed at run time child by child: take the old one out, put the new one in. Whoever isn't named
 * keeps its pid, a refused spec changes nothing, and a new spec is looked at only when somebody starts it. */
static void life_08(void)
{
    actor_pid sup = ROOMY(WORKER(A), WORKER(B), WORKER(C));
    actor_pid a = pid_of(sup, "a"), c = pid_of(sup, "c");
    struct child_result result;
    EXPECT_ERROR(supervisor_start_child(sup, &WORKER(D, .shutdown_ms = -10), &result, PATIENCE),
                 ERR_INVALID_SHUTDOWN);
    EXPECT_COUNTS(sup, "3,3,0,3");
    EXPECT_OK(supervisor_terminate_child(sup, "b", PATIENCE));
    EXPECT_OK(supervisor_delete_child(sup, "b", PATIENCE));
    EXPECT_EQ(info_of(sup, "c").restart, RESTART_PERMANENT);
    actor_pid b = add_child(sup, &WORKER(B, .restart = RESTART_TEMPORARY, .shutdown_ms = 77));
    EXPECT_EQ(info_of(sup, "b").restart, RESTART_TEMPORARY);
    EXPECT_EQ(info_of(sup, "b").shutdown_ms, 77);
    EXPECT(pid_of(sup, "a") == a && pid_of(sup, "c") == c && actor_alive(b));
    hit(b);
    settle();
    EXPECT_COUNTS(sup, "2,2,0,2");
    EXPECT_EQ(world->members[A].begun + world->members[C].begun, 2);
}

/* ---- beyond the table ---- */

/* The parent ends with whatever reason: so does the supervisor, after its children. */
static enum actor_step parent_proceed(void *state)
{
    (void)state;
    world->numbers[0] = ROOMY(TRAPPER(A), WORKER(B));
    world->numbers[1] = 1;
    return ACTOR_CONTINUE;
}

static enum actor_step parent_init(void *state, const void *args, size_t size)
{
    (void)state;
    (void)args;
    (void)size;
    return ACTOR_PROCEED;
}

static enum actor_step parent_handle(void *state, struct message *m)
{
    (void)state;
    if (m->type == ORDER_EXIT)
        actor_exit(*(struct reason *)message_body(m, sizeof(struct reason)));
    return ACTOR_CONTINUE;
}

static const struct actor_class parent_class = {
    .name = "parent", .init = parent_init, .proceed = parent_proceed, .handle = parent_handle};

static void life_02(void)
{
    const struct reason ends[] = {NORMAL, SHUTDOWN, shutdown_with(3), reason_error(4), KILLED};
    struct reason why = ends[draw(5)];
    actor_pid parent;
    EXPECT_OK(actor_spawn(&(struct spawn_options){.class = &parent_class, .scheduler = anywhere()}, &parent));
    while (!world->numbers[1])
        settle();
    actor_pid sup = world->numbers[0];
    uint64_t ref = watch(sup);
    if (why.kind == REASON_KILLED)
        actor_kill(parent);
    else
        order_exit(parent, why);
    EXPECT_REASON(wait_down(ref), why);
    EXPECT_EQ(world->members[A].gone, 1);
    EXPECT_EQ(world->members[B].gone, 1);
    EXPECT_REASON(world->members[A].why, SHUTDOWN);
}

/* An exit signal from a stranger doesn't end a supervisor: it traps exits. Killed does. */
static enum actor_step stranger_init(void *state, const void *args, size_t size)
{
    (void)state;
    actor_pid to;
    EXPECT_EQ(size, sizeof to);
    memcpy(&to, args, size);
    actor_exit_signal(to, world->numbers[2] ? KILLED : reason_error(3));
    if (!world->numbers[2])
        EXPECT_OK(actor_link(to));
    return ACTOR_CONTINUE;
}

static const struct actor_class stranger_class = {
    .name = "stranger", .init = stranger_init, .handle = parent_handle};

static void life_03(void)
{
    actor_pid sup = ROOMY(WORKER(A)), stranger;
    const struct spawn_options options = {
        .class = &stranger_class, .args = &sup, .args_size = sizeof sup, .scheduler = anywhere()};
    EXPECT_OK(actor_spawn(&options, &stranger));
    settle();
    EXPECT(actor_alive(sup) && actor_alive(stranger));
    order_exit(stranger, reason_error(5)); /* linked: its end is no child's end */
    settle();
    EXPECT(actor_alive(sup));
    EXPECT_COUNTS(sup, "1,1,0,1");
    world->numbers[2] = 1;
    EXPECT_OK(actor_spawn(&options, &stranger));
    EXPECT_REASON(wait_exit(sup), KILLED);
}

/* A call that isn't meant for a supervisor is answered with an error, and does no harm. */
static void life_05(void)
{
    actor_pid sup = ROOMY(WORKER(A));
    struct message *reply = NULL;
    EXPECT_ERROR(actor_call(sup, message_of(4711, "what", 4), &reply, PATIENCE), ERR_UNANSWERED);
    EXPECT(actor_alive(sup));
    EXPECT_COUNTS(sup, "1,1,0,1");
}

/* A crowd of unexpected messages of any size and of the runtime's own types. */
static void life_07(void)
{
    actor_pid sup = ROOMY(WORKER(A), WORKER(B));
    static const char bytes[3000];
    for (unsigned i = 0; i < 50; i++)
        actor_cast(sup, draw(2) ? 1 + draw(200) : MESSAGE_USER_MAX - draw(200), bytes, draw(sizeof bytes));
    settle();
    EXPECT_COUNTS(sup, "2,2,0,2");
    EXPECT_EQ(world->members[A].begun + world->members[B].begun, 2);
}

/* A named supervisor is reached by its name, and under its new pid after a restart. */
static void life_09(void)
{
    struct child_spec leaf = WORKER(A);
    const struct supervisor_spec inner = {.name = "inner",
                                          .register_name = true,
                                          .intensity = 1,
                                          .period_ms = 5000,
                                          .children = &leaf,
                                          .children_count = 1};
    actor_pid sup = ROOMY(SUBTREE("inner", &inner));
    actor_pid old = actor_whereis("inner");
    EXPECT(old && old == pid_of(sup, "inner"));
    actor_kill(old);
    settle();
    actor_pid new = actor_whereis("inner");
    EXPECT(new &&new != old &&new == pid_of(sup, "inner"));
    EXPECT_COUNTS(new, "1,1,0,1");
}

/* The init of a supervisor decides what it supervises. */
static enum actor_step filling_init(struct supervisor_spec *spec, void *arg)
{
    spec->strategy = ONE_FOR_ALL;
    spec->intensity = 3;
    spec->period_ms = 7000;
    spec->children = arg;
    spec->children_count = 2;
    return ACTOR_CONTINUE;
}

static void life_10(void)
{
    struct child_spec children[] = {WORKER(A), WORKER(B)};
    actor_pid sup = start_supervisor(
        &(struct supervisor_spec){.init = filling_init, .init_arg = keep(children, sizeof children)});
    struct supervisor_info info;
    EXPECT_OK(supervisor_inspect(sup, &info, PATIENCE));
    EXPECT_EQ(info.strategy, ONE_FOR_ALL);
    EXPECT_EQ(info.intensity, 3);
    EXPECT_EQ(info.period_ms, 7000);
    hit(pid_of(sup, "b"));
    settle();
    EXPECT_EQ(world->members[A].ready, 2);
}

#define ROWS(X)              \
    X("LIFE-01", life_01, 0) \
    X("LIFE-04", life_04, 0) \
    X("LIFE-06", life_06, 0) \
    X("LIFE-08", life_08, 0) \
    X("LIFE-02", life_02, 0) \
    X("LIFE-03", life_03, 0) \
    X("LIFE-05", life_05, 0) \
    X("LIFE-07", life_07, 0) \
    X("LIFE-09", life_09, 0) \
    X("LIFE-10", life_10, 0)

ROWS_TEST_LIST;
