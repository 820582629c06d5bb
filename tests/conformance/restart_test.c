/* Sections C to F: who is restarted, how often, what follows when that is too often, and restarts that fail.
 */
#include "acutest.h"
#include "harness.h"
#include <malloc.h>

/* ---- C: restart types and exit reasons ---- */

/* A child of this type ends with this reason under a supervisor that could restart it; true: it was
 * restarted. */
static bool restarted(enum restart_type type, struct reason why, actor_pid *ret_sup)
{
    memset(world->members, 0, sizeof world->members);
    actor_pid sup = ROOMY(WORKER(A, .restart = type));
    actor_pid old = pid_of(sup, "a");
    uint64_t ref = watch(old);
    order_exit(old, why);
    EXPECT_REASON(wait_down(ref), why);
    settle();
    EXPECT(!actor_alive(old));
    EXPECT(actor_alive(sup));
    *ret_sup = sup;
    if (world->members[A].begun == 1)
        return false;
    EXPECT_EQ(world->members[A].begun, 2);
    EXPECT(pid_of(sup, "a") == world->members[A].pid);
    EXPECT(actor_alive(world->members[A].pid) && world->members[A].pid != old);
    EXPECT_COUNTS(sup, "1,1,0,1");
    return true;
}

static void rt_01(void)
{
    actor_pid sup;
    EXPECT(restarted(RESTART_PERMANENT, NORMAL, &sup));
}

static void rt_02(void)
{
    actor_pid sup;
    EXPECT(restarted(RESTART_PERMANENT, SHUTDOWN, &sup));
}

static void rt_03(void)
{
    actor_pid sup;
    EXPECT(restarted(RESTART_PERMANENT, shutdown_with(3), &sup));
}

static void rt_04(void)
{
    actor_pid sup;
    EXPECT(restarted(RESTART_PERMANENT, abnormal(), &sup));
}

/* Not restarted; the spec is kept without a pid; a manual restart works. */
static void kept(actor_pid sup)
{
    EXPECT_COUNTS(sup, "1,0,0,1");
    struct child_info info = info_of(sup, "a");
    EXPECT_EQ(info.pid, 0);
    EXPECT_EQ(info.state, CHILD_STOPPED);
    struct child_result result;
    EXPECT_OK(supervisor_restart_child(sup, "a", &result, PATIENCE));
    EXPECT(actor_alive(result.pid));
    EXPECT_COUNTS(sup, "1,1,0,1");
}

static void rt_05(void)
{
    actor_pid sup;
    EXPECT(!restarted(RESTART_TRANSIENT, NORMAL, &sup));
    kept(sup);
}

static void rt_06(void)
{
    actor_pid sup;
    EXPECT(!restarted(RESTART_TRANSIENT, SHUTDOWN, &sup));
    kept(sup);
}

static void rt_07(void)
{
    actor_pid sup;
    EXPECT(!restarted(RESTART_TRANSIENT, shutdown_with(-9), &sup));
    kept(sup);
}

static void rt_08(void)
{
    actor_pid sup;
    EXPECT(restarted(RESTART_TRANSIENT, abnormal(), &sup));
}

static void rt_10(void)
{
    struct reason reasons[] = {NORMAL, SHUTDOWN, shutdown_with(1), abnormal()};
    for (unsigned i = 0; i < 4; i++) {
        actor_pid sup;
        EXPECT(!restarted(RESTART_TEMPORARY, reasons[i], &sup));
        struct child_info info;
        EXPECT_EQ(children_of(sup, &info, 1), 0);
        EXPECT_COUNTS(sup, "0,0,0,0");
    }
}

static void rt_12(void)
{
    actor_pid sup = ROOMY(WORKER(A));
    actor_pid pids[6] = {pid_of(sup, "a")};
    for (unsigned i = 1; i < 6; i++) {
        hit(pids[i - 1]);
        settle();
        pids[i] = pid_of(sup, "a");
        EXPECT(actor_alive(pids[i]));
        for (unsigned k = 0; k < i; k++)
            EXPECT(pids[k] != pids[i] && !actor_alive(pids[k]));
        EXPECT_EQ(info_of(sup, "a").restarts, i);
    }
}

static void rt_13(void)
{
    actor_pid sup = ROOMY(WORKER(A), WORKER(B));
    actor_pid a = pid_of(sup, "a"), b = pid_of(sup, "b");
    order_add(b, 17);
    hit(a);
    order_add(b, 25);
    settle();
    EXPECT(pid_of(sup, "a") != a);
    EXPECT(pid_of(sup, "b") == b);
    EXPECT_EQ(ask_sum(b), 42);
    EXPECT_EQ(ask_sum(pid_of(sup, "a")), 0);
}

static void rt_14(void)
{
    actor_pid sup = start_empty(ONE_FOR_ONE);
    struct child_spec spec = WORKER(A, .restart = RESTART_TEMPORARY);
    for (unsigned way = 0; way < 4; way++) {
        actor_pid child = add_child(sup, &spec);
        if (way == 0)
            actor_kill(child);
        else if (way == 3)
            EXPECT_OK(supervisor_terminate_child(sup, "a", PATIENCE));
        else
            order_exit(child, way == 1 ? NORMAL : abnormal());
        settle();
        EXPECT(!actor_alive(child));
    }
    add_child(sup, &spec);
    EXPECT_EQ(world->members[A].ready, 5);
}

static enum actor_step bulky_init(void *state, const void *args, size_t size)
{
    (void)state;
    world->numbers[0] += size;
    EXPECT_EQ(((const unsigned char *)args)[size - 1], 7);
    return ACTOR_CONTINUE;
}

static enum actor_step bulky_handle(void *state, struct message *m)
{
    (void)state;
    (void)m;
    return ACTOR_STOP;
}

static const struct actor_class bulky_class = {.name = "bulky", .init = bulky_init, .handle = bulky_handle};

/* What the supervisor holds: its arena, and whatever the process got from malloc meanwhile. */
static size_t held_by(actor_pid sup)
{
    settle();
    struct actor_info info;
    EXPECT_OK(actor_inspect(sup, &info, PATIENCE));
    return info.arena_bytes + mallinfo2().uordblks;
}

static void rt_15(void)
{
    enum { SIZE = 50000, COUNT = 40 };
    static unsigned char bulk[SIZE];
    bulk[SIZE - 1] = 7;
    actor_pid sup = start_empty(ONE_FOR_ONE), pids[COUNT];
    struct child_spec spec = {.class = &bulky_class,
                              .args = bulk,
                              .args_size = SIZE,
                              .restart = RESTART_TEMPORARY,
                              .scheduler = anywhere()};
    size_t before = 0;
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < COUNT; i++) {
            char id[8];
            snprintf(id, sizeof id, "%u", i);
            spec.id = id;
            pids[i] = add_child(sup, &spec);
        }
        EXPECT_EQ(world->numbers[0], (round + 1) * SIZE * COUNT);
        size_t alive = held_by(sup);
        if (round == 0)
            before = alive; /* pools have grown to what one round needs */
        EXPECT(alive < before + SIZE);
        for (unsigned i = 0; i < COUNT; i++)
            actor_cast(pids[i], ORDER_FREE, NULL, 0);
        EXPECT(held_by(sup) < before + SIZE);
        EXPECT_COUNTS(sup, "0,0,0,0");
    }
    struct actor_info info;
    EXPECT_OK(actor_inspect(sup, &info, PATIENCE));
    EXPECT(info.arena_bytes < SIZE);
}

struct stack_server {
    char items[4][16];
    uint32_t count;
};

static enum actor_step stack_init(void *state, const void *args, size_t size)
{
    struct stack_server *s = state;
    memcpy(s->items[0], args, size);
    s->count = 1;
    return ACTOR_CONTINUE;
}

static enum actor_step stack_handle(void *state, struct message *m)
{
    struct stack_server *s = state;
    if (!s->count)
        actor_fail(1, "the stack is empty");
    s->count--;
    actor_reply_bytes(m, ORDER_FREE, s->items[s->count], sizeof s->items[0]);
    return ACTOR_CONTINUE;
}

static const struct actor_class stack_class = {
    .name = "stack", .state_size = sizeof(struct stack_server), .init = stack_init, .handle = stack_handle};

static void rt_16(void)
{
    actor_pid sup = ROOMY(
        {.id = "stack", .class = &stack_class, .args = "hello", .args_size = 6, .scheduler = anywhere()});
    for (unsigned life = 0; life < 3; life++) {
        actor_pid server = pid_of(sup, "stack");
        struct message *reply = NULL;
        EXPECT_OK(actor_call(server, message_new(ORDER_FREE, 0), &reply, PATIENCE));
        EXPECT_EQ(reply->size, 16);
        EXPECT(!strcmp((const char *)reply->payload, "hello"));
        EXPECT_ERROR(actor_call(server, message_new(ORDER_FREE, 0), &reply, PATIENCE), ERR_DOWN);
        settle();
    }
}

/* ---- D: restart intensity ---- */

struct vector {
    uint32_t intensity, period_s, count;
    uint32_t crashes_s[8];
    bool ends; /* the last crash ends the supervisor */
};

/* One child crashes at these times; each time is exact, because nobody takes time but the row. */
static void vector_run(const struct vector *v)
{
    memset(world->members, 0, sizeof world->members);
    actor_pid sup = START(ONE_FOR_ONE, (int32_t)v->intensity, v->period_s, WORKER(A));
    uint64_t began = actor_now(), ref = watch(sup);
    for (uint32_t i = 0; i < v->count; i++) {
        actor_sleep(began + v->crashes_s[i] *
                                NS_PER_S); /* at once when that has passed: equal times are 1 us apart */
        bool last = v->ends && i + 1 == v->count;
        hit(world->members[A].pid);
        if (last)
            EXPECT_REASON(wait_down(ref), SHUTDOWN);
        else
            settle();
        EXPECT_EQ(world->members[A].begun, last ? i + 1 : i + 2);
        EXPECT(actor_alive(world->members[A].pid) == !last);
        EXPECT(actor_alive(sup) == !last);
    }
}

#define VECTORS(X)                                                   \
    X("V01", v01, 0, 5, 1, true, 0)                                  \
    X("V02", v02, 1, 5, 2, false, 0, 6)                              \
    X("V04", v04, 2, 10, 3, false, 0, 5, 11)                         \
    X("V06", v06, 2, 10, 3, false, 0, 0, 11)                         \
    X("V08", v08, 3, 5, 6, false, 0, 1, 2, 6, 7, 8)                  \
    X("V11", v11, 1, 1, 4, false, 0, 2, 4, 6)                        \
    X("V13", v13, 5, 60, 6, false, 0, 10, 20, 30, 40, 61)            \
    X("V15", v15, 3, 5, 4, false, 0, 1, 2, 6)                        \
    /* beyond the table: exactly on the edge of the closed window */ \
    X("V03", v03, 1, 5, 2, true, 0, 5)                               \
    X("V05", v05, 2, 10, 3, true, 0, 5, 10)                          \
    X("V07", v07, 2, 10, 3, true, 0, 0, 10)                          \
    X("V09", v09, 3, 5, 4, true, 0, 1, 2, 5)                         \
    X("V10", v10, 3, 5, 4, true, 0, 0, 0, 4)                         \
    X("V12", v12, 1, 1, 2, true, 0, 1)                               \
    X("V14", v14, 5, 60, 6, true, 0, 10, 20, 30, 40, 60)

#define VECTOR_FUNCTION(id, name, intensity_, period_, count_, ends_, ...) \
    static void name(void)                                                 \
    {                                                                      \
        vector_run(&(struct vector){.intensity = intensity_,               \
                                    .period_s = period_,                   \
                                    .count = count_,                       \
                                    .ends = ends_,                         \
                                    .crashes_s = {__VA_ARGS__}});          \
    }
VECTORS(VECTOR_FUNCTION)

static void int_01(void)
{
    actor_pid sup = START(ONE_FOR_ONE, 0, 5, WORKER(A));
    uint64_t ref = watch(sup), when = now_ms();
    hit(world->members[A].pid);
    EXPECT_REASON(wait_down(ref), SHUTDOWN);
    EXPECT_EQ(now_ms(), when);
    EXPECT_EQ(world->members[A].begun, 1);
    EXPECT_REASON(wait_exit(sup), SHUTDOWN);
}

static void int_02(void)
{
    actor_pid sup = START(ONE_FOR_ONE, 2, 3600, WORKER(A), WORKER(B));
    uint64_t ref = watch(sup);
    for (unsigned i = 0; i < 2; i++) {
        hit(world->members[A].pid);
        settle();
        EXPECT_EQ(world->members[A].ready, i + 2);
        pass_ms(draw(1000 * 1000));
    }
    EXPECT(actor_alive(sup));
    hit(world->members[A].pid);
    EXPECT_REASON(wait_down(ref), SHUTDOWN);
    EXPECT_EQ(world->members[A].begun, 3);
    EXPECT_EQ(world->members[B].begun, 1);
    EXPECT_EQ(world->members[B].gone, 1);
}

static void int_04(void)
{
    v04();
}

static void int_06(void)
{
    v08();
}

static void int_08(void)
{
    actor_pid sup = START(ONE_FOR_ONE, 1, 1, WORKER(A));
    for (unsigned i = 0; i < 4; i++) {
        hit(world->members[A].pid);
        pass_ms(2100);
        EXPECT_EQ(world->members[A].ready, i + 2);
        EXPECT(actor_alive(sup));
    }
}

static void int_10(void)
{
    actor_pid sup = START(ONE_FOR_ONE, 2, 3600, WORKER(A), WORKER(B), WORKER(C));
    uint64_t ref = watch(sup);
    uint32_t first = draw(3);
    for (unsigned i = 0; i < 2; i++) {
        hit(world->members[(first + i) % 3].pid);
        settle();
        EXPECT(actor_alive(sup));
    }
    hit(world->members[(first + 2) % 3].pid);
    EXPECT_REASON(wait_down(ref), SHUTDOWN);
    EXPECT_EQ(world->members[A].begun + world->members[B].begun + world->members[C].begun, 5);
}

static void int_12(void)
{
    actor_pid sup = START(ONE_FOR_ALL, 1, 3600, WORKER(A), WORKER(B), WORKER(C), WORKER(D), WORKER(E));
    uint64_t ref = watch(sup);
    hit(world->members[draw(5)].pid);
    settle();
    EXPECT(actor_alive(sup));
    EXPECT_COUNTS(sup, "5,5,0,5");
    for (unsigned i = 0; i < 5; i++)
        EXPECT_EQ(world->members[i].ready, 2);
    struct supervisor_info info;
    EXPECT_OK(supervisor_inspect(sup, &info, PATIENCE));
    EXPECT_EQ(info.budget_used, 1);
    hit(world->members[draw(5)].pid);
    EXPECT_REASON(wait_down(ref), SHUTDOWN);
}

static void int_16(void)
{
    actor_pid sup =
        START(ONE_FOR_ONE, 3, 3600, WORKER(A), CHILD(B, &trapper_class, PLAN(.number = B, .end_ms = 500)));
    uint64_t ref = watch(sup);
    for (unsigned i = 0; i < 4; i++) {
        hit(world->members[A].pid);
        settle();
    }
    EXPECT_REASON(wait_down(ref), SHUTDOWN);
    pass_ms(10000);
    EXPECT_EQ(world->members[A].begun, 4);
    EXPECT_EQ(world->members[B].begun, 1);
}

/* ---- E: escalation ---- */

static void esc_01(void)
{
    actor_pid sup =
        START(ONE_FOR_ONE, 2, 5, WORKER(A), CHILD(B, &trapper_class, PLAN(.number = B, .end_ms = 100)),
              CHILD(C, &trapper_class, PLAN(.number = C, .end_ms = 100)));
    uint64_t b = watch(world->members[B].pid), c = watch(world->members[C].pid), s = watch(sup);
    for (unsigned i = 0; i < 3; i++) {
        hit(world->members[A].pid);
        settle();
    }
    EXPECT_REASON(wait_down(c), SHUTDOWN);
    EXPECT(actor_alive(world->members[B].pid));
    EXPECT_REASON(wait_down(b), SHUTDOWN);
    EXPECT_REASON(wait_down(s), SHUTDOWN);
    EXPECT_EQ(wait_exit(sup).code, 0);
    EXPECT_ORDER(GONE, "aaacb");
    EXPECT(event_find(0, ASKED, B) > event_find(0, GONE, C));
    EXPECT(!actor_alive(sup));
}

static void esc_02(void)
{
    struct child_spec inner_children[] = {WORKER(A), WORKER(B)};
    const struct supervisor_spec inner = {
        .children = inner_children, .children_count = 2, .intensity = 1, .period_ms = 5000};
    actor_pid sup = START(ONE_FOR_ONE, 5, 5, SUBTREE("inner", &inner), WORKER(F));
    actor_pid old = pid_of(sup, "inner");
    add_child(old, &WORKER(C));
    add_child(old, &WORKER(D));
    EXPECT_COUNTS(old, "4,4,0,4");
    uint64_t ref = watch(old);
    for (unsigned i = 0; i < 2; i++) {
        hit(world->members[draw(4)].pid);
        settle();
    }
    EXPECT_REASON(wait_down(ref), SHUTDOWN);
    settle();
    actor_pid new = pid_of(sup, "inner");
    EXPECT(new &&new != old);
    EXPECT_COUNTS(new, "2,2,0,2");
    EXPECT(pid_of(new, "a") && pid_of(new, "b"));
    EXPECT(!actor_alive(world->members[C].pid) && !actor_alive(world->members[D].pid));
    EXPECT_EQ(world->members[F].begun, 1);
    EXPECT_COUNTS(sup, "2,2,1,1");
    EXPECT_EQ(info_of(sup, "inner").restarts, 1);
}

/* The root of the node: 70, with its last words; nothing runs on without a tree. */
static void esc_06(void)
{
    static unsigned char storage[SUPERVISOR_ARGS_MAX];
    struct child_spec children[] = {
        {.id = "a",
         .class = &worker_class,
         .args = PLAN(.number = A, .crash_ms = 1000),
         .args_size = sizeof(struct plan)},
        {.id = "b", .class = &trapper_class, .args = PLAN(.number = B), .args_size = sizeof(struct plan)}};
    const struct supervisor_spec *root = keep_spec(&(struct supervisor_spec){.name = "root",
                                                                             .intensity = 2,
                                                                             .period_ms = 10000,
                                                                             .children = children,
                                                                             .children_count = 2,
                                                                             .root = true});
    size_t size = supervisor_args(root, storage);
    world_simulate(&(struct spawn_options){.class = &supervisor_class, .args = storage, .args_size = size});
    EXPECT_EQ(world_drive(), RUNTIME_EXIT_EXHAUSTED);
    EXPECT_EQ(world->members[A].begun, 3);
    EXPECT_EQ(world->members[A].gone, 3);
    EXPECT_EQ(world->members[B].begun, 1);
    EXPECT_EQ(world->members[B].gone, 1);
}

/* ---- F: restarts that fail ---- */

/* A failing start takes 1 ms, so that others get their turn between two attempts. */
#define FAILING(number_, ...) \
    CHILD(number_, &worker_class, PLAN(.number = (number_), .init_ms = 1), __VA_ARGS__)

static void let_fail(uint32_t number, uint32_t times)
{
    world->members[number].fail = times;
    world->members[number].failure = (enum failure)draw(FAIL_JUNK + 1);
}

static void fail_01(void)
{
    actor_pid sup = ROOMY(FAILING(A), WORKER(B));
    actor_pid b = pid_of(sup, "b");
    let_fail(A, UINT32_MAX);
    hit(world->members[A].pid);
    pass_ms(5);
    struct child_info info = info_of(sup, "a");
    EXPECT_EQ(info.state, CHILD_RESTARTING);
    EXPECT_EQ(info.pid, 0);
    uint32_t attempts = world->members[A].begun;
    EXPECT(attempts > 2);
    pass_ms(5);
    EXPECT(world->members[A].begun > attempts);
    EXPECT(pid_of(sup, "b") == b && world->members[B].begun == 1);
    EXPECT_EQ(world->members[A].ready, 1);
    world->members[A].fail = 0;
    pass_ms(5);
    EXPECT_EQ(info_of(sup, "a").state, CHILD_RUNNING);
    EXPECT(pid_of(sup, "b") == b);
}

static void fail_03(void)
{
    actor_pid sup = ROOMY(FAILING(A));
    let_fail(A, UINT32_MAX);
    hit(world->members[A].pid);
    pass_ms(3);
    struct child_spec spec = WORKER(A);
    struct child_result result = {0};
    EXPECT_ERROR(supervisor_restart_child(sup, "a", &result, PATIENCE), ERR_RESTARTING);
    EXPECT_ERROR(supervisor_delete_child(sup, "a", PATIENCE), ERR_RESTARTING);
    EXPECT_ERROR(supervisor_start_child(sup, &spec, &result, PATIENCE), ERR_ALREADY_PRESENT);
    EXPECT_EQ(info_of(sup, "a").state, CHILD_RESTARTING);
}

static void fail_05(void)
{
    struct child_spec children[] = {FAILING(A), WORKER(B)};
    struct supervisor_spec spec = {.name = "looping",
                                   .register_name = true,
                                   .intensity = 100000,
                                   .period_ms = 3600 * 1000,
                                   .children = children,
                                   .children_count = 2};
    actor_pid sup = start_supervisor(&spec);
    let_fail(A, UINT32_MAX);
    hit(world->members[A].pid);
    pass_ms(3 + draw(3));
    uint64_t began = now_ms();
    EXPECT_REASON(end_of(sup, SHUTDOWN), SHUTDOWN);
    EXPECT(now_ms() - began <= 2);
    EXPECT(!actor_whereis("looping"));
    EXPECT_EQ(world->members[B].gone, 1);
    uint32_t attempts = world->members[A].begun;
    pass_ms(100);
    EXPECT_EQ(world->members[A].begun, attempts);
    EXPECT_EQ(world->members[A].gone, attempts);
    world->members[A].fail = 0;
    start_supervisor(&spec);
}

static void fail_09(void)
{
    uint32_t intensity = 2 + draw(5), times = 1 + draw(intensity - 1);
    actor_pid sup = START(ONE_FOR_ONE, (int32_t)intensity, 3600, WORKER(A));
    actor_pid old = pid_of(sup, "a");
    let_fail(A, times);
    hit(old);
    settle();
    EXPECT(actor_alive(sup));
    EXPECT(pid_of(sup, "a") != old);
    EXPECT(actor_alive(pid_of(sup, "a")));
    EXPECT_EQ(world->members[A].begun, times + 2);
    EXPECT_EQ(world->members[A].ready, 2);
}

static void fail_12(void)
{
    enum { INTENSITY = 30 };
    actor_pid sup = START(ONE_FOR_ONE, INTENSITY, 3600, FAILING(A), WORKER(B));
    uint64_t ref = watch(sup);
    let_fail(A, UINT32_MAX);
    hit(world->members[A].pid);
    for (unsigned i = 0; i < 3; i++) {
        pass_ms(3);
        uint32_t attempts = world->members[A].begun;
        hit(world->members[B].pid);
        pass_ms(2);
        EXPECT_EQ(world->members[B].ready, i + 2);
        EXPECT(world->members[A].begun - attempts <= 3);
    }
    EXPECT_REASON(wait_down(ref), SHUTDOWN);
    EXPECT_EQ(world->members[A].begun - 1 + world->members[B].begun - 1, INTENSITY);
}

/* ---- beyond the table ---- */

/* Ends that lead to no restart cost nothing: a supervisor without any budget survives them. */
static void rt_09(void)
{
    actor_pid sup = START(ONE_FOR_ONE, 0, 5, WORKER(A, .restart = RESTART_TEMPORARY),
                          WORKER(B, .restart = RESTART_TRANSIENT), WORKER(C));
    hit(world->members[A].pid);
    order_exit(world->members[B].pid, draw(2) ? NORMAL : shutdown_with(2));
    settle();
    EXPECT(actor_alive(sup));
    EXPECT_COUNTS(sup, "2,1,0,2");
}

/* Killed and noproc are abnormal to a transient child. */
static void rt_11(void)
{
    actor_pid sup = ROOMY(WORKER(A, .restart = RESTART_TRANSIENT));
    actor_kill(world->members[A].pid);
    settle();
    EXPECT_EQ(world->members[A].ready, 2);
    order_exit(world->members[A].pid, NOPROC);
    settle();
    EXPECT_EQ(world->members[A].ready, 3);
    EXPECT(!strcmp(info_of(sup, "a").last_reason, "noproc"));
}

/* An exit signal from a stranger ends a child as a crash would: the supervisor doesn't care who did it. */
static void rt_17(void)
{
    actor_pid sup = ROOMY(WORKER(A, .restart = RESTART_TRANSIENT));
    actor_exit_signal(world->members[A].pid, reason_error(8));
    settle();
    EXPECT_EQ(world->members[A].ready, 2);
    actor_exit_signal(world->members[A].pid, SHUTDOWN);
    settle();
    EXPECT_EQ(world->members[A].ready, 2);
    EXPECT_COUNTS(sup, "1,0,0,1");
}

/* All children at once: each is restarted once, none twice. */
static void rt_18(void)
{
    actor_pid sup = ROOMY(WORKER(A), WORKER(B), WORKER(C), WORKER(D), WORKER(E));
    for (unsigned i = 0; i < 5; i++)
        hit(world->members[i].pid);
    settle();
    EXPECT_COUNTS(sup, "5,5,0,5");
    for (unsigned i = 0; i < 5; i++)
        EXPECT_EQ(world->members[i].begun, 2);
}

/* A child that is hit again the moment it is back. */
static void rt_19(void)
{
    enum { ROUNDS = 20 };
    actor_pid sup = ROOMY(WORKER(A, .name = "phoenix"));
    for (unsigned i = 0; i < ROUNDS; i++) {
        uint32_t begun = world->members[A].begun;
        hit(world->members[A].pid);
        while (world->members[A].begun == begun)
            settle();
        EXPECT(actor_whereis("phoenix") == world->members[A].pid);
    }
    EXPECT_EQ(world->members[A].begun, ROUNDS + 1);
    EXPECT_EQ(info_of(sup, "a").restarts, ROUNDS);
}

/* Manual restarts and terminations are free. */
static void int_03(void)
{
    actor_pid sup = START(ONE_FOR_ONE, 1, 3600, WORKER(A));
    struct child_result result;
    for (unsigned i = 0; i < 5; i++) {
        EXPECT_OK(supervisor_terminate_child(sup, "a", PATIENCE));
        EXPECT_OK(supervisor_restart_child(sup, "a", &result, PATIENCE));
    }
    struct supervisor_info info;
    EXPECT_OK(supervisor_inspect(sup, &info, PATIENCE));
    EXPECT_EQ(info.budget_used, 0);
    hit(result.pid);
    settle();
    EXPECT(actor_alive(sup));
    EXPECT_EQ(world->members[A].ready, 7);
}

/* The window is closed: a restart exactly one period old still counts, one nanosecond later it doesn't. */
static void int_05(void)
{
    for (unsigned late = 0; late < 2; late++) {
        memset(world->members, 0, sizeof world->members);
        actor_pid sup = START(ONE_FOR_ONE, 1, 5, WORKER(A));
        uint64_t ref = watch(sup), began = actor_now();
        actor_kill(world->members[A].pid);
        actor_sleep(began + 5 * NS_PER_S + late);
        actor_kill(world->members[A].pid);
        settle();
        EXPECT_EQ(world->members[A].begun, 2 + late);
        EXPECT(actor_alive(sup) == (late == 1));
        if (!late)
            EXPECT_REASON(wait_down(ref), SHUTDOWN);
    }
}

/* Each failed attempt counts: the supervisor ends after exactly `intensity` of them. */
static void int_07(void)
{
    uint32_t intensity = 1 + draw(6);
    actor_pid sup = START(ONE_FOR_ONE, (int32_t)intensity, 3600, WORKER(A), WORKER(B));
    uint64_t ref = watch(sup);
    let_fail(A, UINT32_MAX);
    hit(world->members[A].pid);
    EXPECT_REASON(wait_down(ref), SHUTDOWN);
    EXPECT_EQ(world->members[A].begun, 1 + intensity);
    EXPECT_EQ(world->members[A].ready, 1);
    EXPECT_EQ(world->members[B].gone, 1);
}

/* rest_for_one counts one for its group as well. */
static void int_09(void)
{
    actor_pid sup = START(REST_FOR_ONE, 2, 3600, WORKER(A), WORKER(B), WORKER(C), WORKER(D));
    hit(world->members[A].pid);
    settle();
    hit(world->members[A].pid);
    settle();
    EXPECT(actor_alive(sup));
    EXPECT_EQ(world->members[D].ready, 3);
}

/* A budget that is used up comes back with time, one grant at a time. */
static void int_13(void)
{
    actor_pid sup = START(ONE_FOR_ONE, 2, 10, WORKER(A));
    uint64_t began = actor_now();
    const uint32_t crashes[] = {0, 4, 11, 15, 22, 26, 33};
    for (unsigned i = 0; i < sizeof crashes / sizeof crashes[0]; i++) {
        actor_sleep(began + crashes[i] * NS_PER_S);
        hit(world->members[A].pid);
        settle();
        EXPECT(actor_alive(sup));
        struct supervisor_info info;
        EXPECT_OK(supervisor_inspect(sup, &info, PATIENCE));
        EXPECT_EQ(info.budget_used, i == 0 ? 1 : 2);
        EXPECT_EQ(info.restarts, i + 1);
    }
}

/* Another supervisor's restarts are its own. */
static void int_14(void)
{
    actor_pid one = START(ONE_FOR_ONE, 2, 3600, WORKER(A)), two = START(ONE_FOR_ONE, 2, 3600, WORKER(B));
    for (unsigned i = 0; i < 2; i++) {
        hit(world->members[A].pid);
        hit(world->members[B].pid);
        settle();
    }
    EXPECT(actor_alive(one) && actor_alive(two));
}

/* Many restarts in no time, under a budget that allows exactly as many. */
static void int_15(void)
{
    enum { MANY = 100 };
    actor_pid sup = START(ONE_FOR_ONE, MANY, 5, WORKER(A));
    uint64_t ref = watch(sup);
    for (unsigned i = 0; i < MANY; i++) {
        actor_kill(world->members[A].pid);
        settle();
    }
    EXPECT(actor_alive(sup));
    EXPECT_EQ(world->members[A].ready, MANY + 1);
    actor_kill(world->members[A].pid);
    EXPECT_REASON(wait_down(ref), SHUTDOWN);
}

/* Three levels without budget under one that has some: the whole branch is rebuilt once. */
static void esc_03(void)
{
    struct child_spec leaf = WORKER(A);
    const struct supervisor_spec low = {
        .intensity = 0, .period_ms = 5000, .children = &leaf, .children_count = 1};
    struct child_spec low_child = SUBTREE("low", &low);
    const struct supervisor_spec mid = {
        .intensity = 0, .period_ms = 5000, .children = &low_child, .children_count = 1};
    actor_pid top = START(ONE_FOR_ONE, 1, 5, SUBTREE("mid", &mid), WORKER(B));
    actor_pid old = pid_of(top, "mid");
    hit(world->members[A].pid);
    settle();
    EXPECT(actor_alive(top));
    EXPECT(!actor_alive(old));
    EXPECT_EQ(world->members[A].ready, 2);
    EXPECT_EQ(world->members[B].begun, 1);
    actor_pid new = pid_of(top, "mid");
    EXPECT(pid_of(pid_of(new, "low"), "a") == world->members[A].pid);
    uint64_t ref = watch(top);
    hit(world->members[A].pid);
    EXPECT_REASON(wait_down(ref), SHUTDOWN);
    settle();
    EXPECT_EQ(world->members[A].gone, 2);
    EXPECT_EQ(world->members[B].gone, 1);
}

/* A supervisor that gives up ends with shutdown: a transient one isn't restarted by its parent. */
static void esc_04(void)
{
    struct child_spec leaf = WORKER(A);
    const struct supervisor_spec inner = {
        .intensity = 0, .period_ms = 5000, .children = &leaf, .children_count = 1};
    actor_pid sup =
        START(ONE_FOR_ONE, 1, 5, SUBTREE("inner", &inner, .restart = RESTART_TRANSIENT), WORKER(B));
    hit(world->members[A].pid);
    settle();
    EXPECT_COUNTS(sup, "2,1,1,1");
    EXPECT_EQ(pid_of(sup, "inner"), 0);
    EXPECT_EQ(world->members[A].begun, 1);
    struct child_result result;
    EXPECT_OK(supervisor_restart_child(sup, "inner", &result, PATIENCE));
    EXPECT_EQ(world->members[A].ready, 2);
}

/* A killed supervisor takes its children with it, and its parent rebuilds it with them. */
static void esc_05(void)
{
    struct child_spec leaves[] = {WORKER(A), TRAPPER(B)};
    const struct supervisor_spec inner = {
        .intensity = 5, .period_ms = 5000, .children = leaves, .children_count = 2};
    actor_pid sup = START(ONE_FOR_ONE, 1, 5, SUBTREE("inner", &inner), WORKER(C));
    actor_pid old_a = world->members[A].pid, old_b = world->members[B].pid;
    actor_kill(pid_of(sup, "inner"));
    settle();
    EXPECT(!actor_alive(old_a) && !actor_alive(old_b));
    EXPECT_EQ(world->members[A].ready, 2);
    EXPECT_EQ(world->members[B].ready, 2);
    EXPECT_EQ(world->members[C].ready, 1);
    EXPECT_COUNTS(pid_of(sup, "inner"), "2,2,0,2");
}

/* A temporary child supervisor that gives up is forgotten. */
static void esc_07(void)
{
    struct child_spec leaf = WORKER(A);
    const struct supervisor_spec inner = {
        .intensity = 0, .period_ms = 5000, .children = &leaf, .children_count = 1};
    actor_pid sup = START(ONE_FOR_ONE, 0, 5, SUBTREE("inner", &inner, .restart = RESTART_TEMPORARY));
    hit(world->members[A].pid);
    settle();
    EXPECT(actor_alive(sup));
    EXPECT_COUNTS(sup, "0,0,0,0");
}

/* A root that is stopped by request isn't exhausted: status 0. */
static void esc_08(void)
{
    static unsigned char storage[SUPERVISOR_ARGS_MAX];
    struct child_spec child = {
        .id = "a", .class = &trapper_class, .args = PLAN(.number = A), .args_size = sizeof(struct plan)};
    const struct supervisor_spec *root = keep_spec(
        &(struct supervisor_spec){.name = "root", .children = &child, .children_count = 1, .root = true});
    size_t size = supervisor_args(root, storage);
    world_simulate(&(struct spawn_options){.class = &supervisor_class, .args = storage, .args_size = size});
    sim_settle(world->sim, 10000);
    EXPECT_EQ(sim_exit_status(world->sim), -1);
    EXPECT_EQ(world->members[A].ready, 1);
    runtime_stop(sim_runtime(world->sim));
    EXPECT_EQ(world_drive(), 0);
    EXPECT_EQ(world->members[A].gone, 1);
    EXPECT_REASON(world->members[A].why, SHUTDOWN);
}

/* A transient child whose restart fails goes on being restarted: the failed start is no end of its own. */
static void fail_02(void)
{
    actor_pid sup = ROOMY(WORKER(A, .restart = RESTART_TRANSIENT));
    let_fail(A, 3);
    hit(world->members[A].pid);
    settle();
    EXPECT_COUNTS(sup, "1,1,0,1");
    EXPECT_EQ(world->members[A].begun, 5);
}

/* terminate_child ends a restart loop; then the child is stopped, and may be deleted or restarted. */
static void fail_04(void)
{
    actor_pid sup = ROOMY(FAILING(A));
    let_fail(A, UINT32_MAX);
    hit(world->members[A].pid);
    pass_ms(3);
    EXPECT_OK(supervisor_terminate_child(sup, "a", PATIENCE));
    uint32_t attempts = world->members[A].begun;
    EXPECT_EQ(info_of(sup, "a").state, CHILD_STOPPED);
    pass_ms(50);
    EXPECT_EQ(world->members[A].begun, attempts);
    struct child_result result = {0};
    EXPECT_ERROR(supervisor_restart_child(sup, "a", &result, PATIENCE), ERR_INIT);
    reason_drop(&result.why);
    pass_ms(50);
    EXPECT_EQ(world->members[A].begun, attempts + 1); /* a manual start that fails isn't repeated */
    world->members[A].fail = 0;
    EXPECT_OK(supervisor_restart_child(sup, "a", &result, PATIENCE));
    EXPECT_OK(supervisor_terminate_child(sup, "a", PATIENCE));
    EXPECT_OK(supervisor_delete_child(sup, "a", PATIENCE));
    EXPECT_COUNTS(sup, "0,0,0,0");
}

/* A restarting child counts as a worker, not as active. */
static void fail_08(void)
{
    actor_pid sup = ROOMY(FAILING(A), WORKER(B));
    let_fail(A, UINT32_MAX);
    hit(world->members[A].pid);
    pass_ms(3);
    EXPECT_COUNTS(sup, "2,1,0,2");
    struct child_info infos[2];
    EXPECT_EQ(children_of(sup, infos, 2), 2);
    EXPECT(!strcmp(infos[1].id, "a") && infos[1].pid == 0);
    EXPECT_EQ(infos[1].state, CHILD_RESTARTING);
    world->members[A].fail = 0;
    pass_ms(5);
    EXPECT_COUNTS(sup, "2,2,0,2");
}

/* The backoff of a child spec: restarts wait, the supervisor serves meanwhile, the others are untouched. */
static void fail_13(void)
{
    actor_pid sup =
        ROOMY(WORKER(A, .backoff = {.first_ms = 100, .max_ms = 400, .reset_ms = 60000}), WORKER(B));
    for (unsigned i = 0; i < 5; i++) {
        uint32_t begun = world->members[A].begun;
        uint64_t limit = i < 2 ? 100u << i : 400;
        hit(world->members[A].pid);
        settle();
        EXPECT_EQ(info_of(sup, "a").state, CHILD_BACKING_OFF); /* 0 ns has no chance to be drawn */
        EXPECT_COUNTS(sup, "2,1,0,2");
        pass_ms(limit + 1);
        EXPECT_EQ(world->members[A].begun, begun + 1);
    }
    EXPECT_EQ(world->members[B].begun, 1);
}

/* resume_child ends a backoff at once. */
static void fail_14(void)
{
    actor_pid sup = ROOMY(WORKER(A, .backoff = {.first_ms = 60000, .max_ms = 60000}));
    hit(world->members[A].pid);
    settle();
    EXPECT_EQ(info_of(sup, "a").state, CHILD_BACKING_OFF);
    EXPECT_OK(supervisor_resume_child(sup, "a", PATIENCE));
    settle();
    EXPECT_EQ(info_of(sup, "a").state, CHILD_RUNNING);
    pass_ms(120000);
    EXPECT_EQ(world->members[A].ready, 2);
    EXPECT_ERROR(supervisor_resume_child(sup, "x", PATIENCE), ERR_NOT_FOUND);
}

/* A child that keeps failing at start is set aside before it spends its supervisor's budget; later it is
 * tried again. */
static void fail_15(void)
{
    actor_pid sup =
        START(ONE_FOR_ONE, 5, 3600,
              WORKER(A, .quarantine = {.failures = 3, .window_ms = 10000, .retry_ms = 30000}), WORKER(B));
    let_fail(A, UINT32_MAX);
    hit(world->members[A].pid);
    settle();
    EXPECT(actor_alive(sup));
    EXPECT_EQ(info_of(sup, "a").state, CHILD_QUARANTINED);
    uint32_t attempts = world->members[A].begun;
    EXPECT(attempts <= 5);
    struct child_result result = {0};
    EXPECT_ERROR(supervisor_restart_child(sup, "a", &result, PATIENCE), ERR_QUARANTINED);
    pass_ms(29000);
    EXPECT_EQ(world->members[A].begun, attempts);
    EXPECT(pid_of(sup, "b") && world->members[B].begun == 1);
    world->members[A].fail = 0;
    pass_ms(2000);
    EXPECT_EQ(info_of(sup, "a").state, CHILD_RUNNING);
    EXPECT_EQ(world->members[A].begun, attempts + 1);
}

/* Quarantine is for those who fail at start: whoever has served before it crashed is restarted as ever. */
static void fail_16(void)
{
    actor_pid sup = ROOMY(WORKER(A, .quarantine = {.failures = 3, .window_ms = 10000, .retry_ms = 30000}));
    for (unsigned i = 0; i < 8; i++) {
        order_add(world->members[A].pid, 1);
        settle();
        hit(world->members[A].pid);
        settle();
        EXPECT_EQ(info_of(sup, "a").state, CHILD_RUNNING);
    }
    for (unsigned i = 0; i < 3; i++) {
        EXPECT_EQ(info_of(sup, "a").state, CHILD_RUNNING);
        hit(world->members[A].pid); /* its first message is its last */
        settle();
    }
    EXPECT_EQ(info_of(sup, "a").state, CHILD_QUARANTINED);
    EXPECT_EQ(TOLD(SUPERVISOR_QUARANTINE), 1);
    EXPECT_OK(supervisor_resume_child(sup, "a", PATIENCE));
    EXPECT_EQ(info_of(sup, "a").state, CHILD_RUNNING);
}

/* Failures further apart than the window don't add up. */
static void fail_17(void)
{
    actor_pid sup = ROOMY(WORKER(A, .quarantine = {.failures = 2, .window_ms = 1000, .retry_ms = 30000}));
    for (unsigned i = 0; i < 5; i++) {
        hit(world->members[A].pid);
        pass_ms(1500);
        EXPECT_EQ(info_of(sup, "a").state, CHILD_RUNNING);
    }
    EXPECT_EQ(world->members[A].ready, 6);
}

#define ROWS(X)                      \
    X("RT-01", rt_01, 0)             \
    X("RT-02", rt_02, 0)             \
    X("RT-03", rt_03, 0)             \
    X("RT-04", rt_04, 0)             \
    X("RT-05", rt_05, 0)             \
    X("RT-06", rt_06, 0)             \
    X("RT-07", rt_07, 0)             \
    X("RT-08", rt_08, 0)             \
    X("RT-10", rt_10, 0)             \
    X("RT-12", rt_12, 0)             \
    X("RT-13", rt_13, 0)             \
    X("RT-14", rt_14, 0)             \
    X("RT-15", rt_15, 0)             \
    X("RT-16", rt_16, 0)             \
    X("INT-01", int_01, 0)           \
    X("INT-02", int_02, 0)           \
    X("INT-04", int_04, 0)           \
    X("INT-06", int_06, 0)           \
    X("INT-08", int_08, 0)           \
    X("INT-10", int_10, 0)           \
    X("INT-12", int_12, 0)           \
    X("INT-16", int_16, 0)           \
    X("ESC-01", esc_01, 0)           \
    X("ESC-02", esc_02, 0)           \
    X("ESC-06", esc_06, ROW_OUTSIDE) \
    X("FAIL-01", fail_01, 0)         \
    X("FAIL-03", fail_03, 0)         \
    X("FAIL-05", fail_05, 0)         \
    X("FAIL-09", fail_09, 0)         \
    X("FAIL-12", fail_12, 0)         \
    X("RT-09", rt_09, 0)             \
    X("RT-11", rt_11, 0)             \
    X("RT-17", rt_17, 0)             \
    X("RT-18", rt_18, 0)             \
    X("RT-19", rt_19, 0)             \
    X("INT-03", int_03, 0)           \
    X("INT-05", int_05, 0)           \
    X("INT-07", int_07, 0)           \
    X("INT-09", int_09, 0)           \
    X("INT-13", int_13, 0)           \
    X("INT-14", int_14, 0)           \
    X("INT-15", int_15, 0)           \
    X("ESC-03", esc_03, 0)           \
    X("ESC-04", esc_04, 0)           \
    X("ESC-05", esc_05, 0)           \
    X("ESC-07", esc_07, 0)           \
    X("ESC-08", esc_08, ROW_OUTSIDE) \
    X("FAIL-02", fail_02, 0)         \
    X("FAIL-04", fail_04, 0)         \
    X("FAIL-08", fail_08, 0)         \
    X("FAIL-13", fail_13, 0)         \
    X("FAIL-14", fail_14, 0)         \
    X("FAIL-15", fail_15, 0)         \
    X("FAIL-16", fail_16, 0)         \
    X("FAIL-17", fail_17, 0)

#define VECTOR_TEST(id, name, ...)  ROW_TEST(id, name, 0)
#define VECTOR_ENTRY(id, name, ...) ROW_ENTRY(id, name, 0)

ROWS(ROW_TEST)
VECTORS(VECTOR_TEST)
struct acutest_test_; /* ends the list of rows for tools that read declarations by their semicolons */

TEST_LIST
= {ROWS(ROW_ENTRY) VECTORS(VECTOR_ENTRY){NULL, NULL}};
