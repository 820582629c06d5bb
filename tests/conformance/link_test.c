/* Section P: links and exit signals. */
#include "acutest.h"
#include "harness.h"

/* A and B, linked, of these classes; each watched by the row. */
struct pair {
    actor_pid a, b;
    uint64_t a_ref, b_ref;
};

static struct pair linked(const struct actor_class *a_class, const struct actor_class *b_class)
{
    struct pair p = {.a = spawn_worker(A, a_class), .b = spawn_worker(B, b_class)};
    p.a_ref = watch(p.a);
    p.b_ref = watch(p.b);
    order_pid(p.a, ORDER_LINK, p.b);
    settle();
    return p;
}

static void lnk_01(void)
{
    struct reason why = abnormal();
    struct pair p = linked(&worker_class, &worker_class);
    bool back = draw(2); /* links have no direction */
    order_exit(back ? p.a : p.b, why);
    EXPECT_REASON(wait_down(p.a_ref), why);
    EXPECT_REASON(wait_down(p.b_ref), why);
    EXPECT(!mail());
}

static void lnk_02(void)
{
    struct pair p = linked(&worker_class, &worker_class);
    order_exit(p.b, NORMAL);
    EXPECT_REASON(wait_down(p.b_ref), NORMAL);
    settle();
    EXPECT(actor_alive(p.a));
    EXPECT_EQ(ask_sum(p.a), 0);
}

static void lnk_03(void)
{
    struct reason ends[] = {NORMAL, SHUTDOWN, shutdown_with(2), abnormal()};
    for (unsigned i = 0; i < 4; i++) {
        struct pair p = linked(&trapper_class, &worker_class);
        order_exit(p.b, ends[i]);
        settle();
        EXPECT(actor_alive(p.a));
        EXPECT_EQ(world->members[A].exits, i + 1);
        EXPECT(world->members[A].exit_of == p.b);
        EXPECT_REASON(world->members[A].exit_why, ends[i]);
    }
}

static void lnk_06(void)
{
    struct pair p = linked(&trapper_class, &worker_class);
    order_pid(draw(2) ? p.a : p.b, ORDER_LINK, draw(2) ? p.b : p.a);
    order_pid(p.a, ORDER_LINK, p.b);
    settle();
    hit(p.b);
    settle();
    EXPECT_EQ(world->members[A].exits, 1);
    EXPECT(actor_alive(p.a));
}

/* The answer taken here: an EXIT message. */
static void lnk_09(void)
{
    actor_pid b = spawn_worker(B, &worker_class);
    uint64_t ref = watch(b), began;
    hit(b);
    wait_down(ref);
    began = actor_now();
    EXPECT_OK(actor_link(b));
    EXPECT_REASON(wait_exit(b), NOPROC);
    EXPECT(actor_now() == began);
    EXPECT(!mail());
}

static void lnk_10(void)
{
    actor_pid b = spawn_worker(B, &worker_class);
    actor_exit_signal(b, NORMAL);
    settle();
    EXPECT(actor_alive(b));
    EXPECT_EQ(ask_sum(b), 0);
}

static void lnk_11(void)
{
    actor_pid b = spawn_worker(B, &worker_class);
    uint64_t ref = watch(b);
    order_signal(b, b, NORMAL);
    EXPECT_REASON(wait_down(ref), NORMAL);
}

static void lnk_12(void)
{
    actor_pid a = spawn_worker(A, &worker_class), b = spawn_worker(B, &worker_class);
    uint64_t ref = watch(b);
    order_signal(a, b, reason_error(1));
    order_signal(a, b, reason_error(2));
    EXPECT_REASON(wait_down(ref), reason_error(1));
    b = spawn_worker(B, &worker_class);
    ref = watch(b);
    actor_exit_signal(b, reason_error(3));
    actor_exit_signal(b, draw(2) ? KILLED : reason_error(4));
    EXPECT_REASON(wait_down(ref), reason_error(3));
}

static void lnk_13(void)
{
    EXPECT_OK(actor_link(actor_self()));
    actor_pid a = spawn_worker(A, &worker_class);
    uint64_t ref = watch(a);
    order_pid(a, ORDER_LINK, a);
    settle();
    struct actor_info info;
    EXPECT_OK(actor_inspect(a, &info, PATIENCE));
    EXPECT_EQ(info.links, 0);
    order_exit(a, reason_error(3));
    EXPECT_REASON(wait_down(ref), reason_error(3));
    EXPECT(!mail());
}

/* ---- beyond the table ---- */

/* After unlink nothing comes, whoever asked for it. */
static void lnk_04(void)
{
    struct pair p = linked(draw(2) ? &trapper_class : &worker_class, &worker_class);
    bool by_b = draw(2);
    order_pid(by_b ? p.b : p.a, ORDER_UNLINK, by_b ? p.a : p.b);
    settle();
    hit(p.b);
    settle();
    EXPECT(actor_alive(p.a));
    EXPECT_EQ(world->members[A].exits, 0);
}

/* Unlink takes an EXIT that lies in the mailbox already out of it. */
static void lnk_05(void)
{
    actor_pid b = spawn_worker(B, &worker_class), c = spawn_worker(C, &worker_class);
    EXPECT_OK(actor_link(b));
    EXPECT_OK(actor_link(c));
    hit(b);
    hit(c);
    settle();
    actor_unlink(b);
    wait_exit(c);
    EXPECT(!mail());
}

/* Through a chain the first reason reaches everybody; behind one that traps it ends. */
static void lnk_07(void)
{
    actor_pid pids[5];
    uint64_t refs[5];
    for (uint32_t i = 0; i < 5; i++) {
        pids[i] = spawn_worker(i, i == 3 ? &trapper_class : &worker_class);
        refs[i] = watch(pids[i]);
        if (i)
            order_pid(pids[i], ORDER_LINK, pids[i - 1]);
    }
    settle();
    order_exit(pids[0], reason_error(44));
    for (unsigned i = 0; i < 3; i++)
        EXPECT_REASON(wait_down(refs[i]), reason_error(44));
    settle();
    EXPECT(actor_alive(pids[3]) && actor_alive(pids[4]));
    EXPECT_EQ(world->members[3].exits, 1);
    EXPECT(world->members[3].exit_of == pids[2]);
    EXPECT_REASON(world->members[3].exit_why, reason_error(44));
}

/* Killed can't be trapped; those who are linked to the killed one get killed as a plain reason, which can. */
static void lnk_08(void)
{
    struct pair p = linked(&trapper_class, &trapper_class);
    actor_kill(p.b);
    EXPECT_REASON(wait_down(p.b_ref), KILLED);
    settle();
    EXPECT(actor_alive(p.a));
    EXPECT_EQ(world->members[A].exits, 1);
    EXPECT_REASON(world->members[A].exit_why, KILLED);
    EXPECT_EQ(world->members[B].terminated, 0);
    EXPECT_EQ(world->members[B].exits, 0);
}

/* Who doesn't trap and links to the dead ends with noproc. */
static void lnk_14(void)
{
    actor_pid a = spawn_worker(A, &worker_class), b = spawn_worker(B, &worker_class);
    uint64_t a_ref = watch(a), b_ref = watch(b);
    order_exit(b, NORMAL);
    wait_down(b_ref);
    order_pid(a, ORDER_LINK, b);
    EXPECT_REASON(wait_down(a_ref), NOPROC);
}

/* A signal of somebody who isn't linked comes to one that traps as a message as well, normal included. */
static void lnk_15(void)
{
    actor_pid a = spawn_worker(A, &worker_class), b = spawn_worker(B, &trapper_class);
    order_signal(a, b, NORMAL);
    settle();
    EXPECT_EQ(world->members[B].exits, 1);
    EXPECT(world->members[B].exit_of == a);
    EXPECT_REASON(world->members[B].exit_why, NORMAL);
    order_signal(a, b, reason_error(7));
    settle();
    EXPECT_EQ(world->members[B].exits, 2);
    EXPECT_REASON(world->members[B].exit_why, reason_error(7));
    EXPECT(actor_alive(b));
}

/* Two who kill each other in the same moment: both end, nothing is left over. */
static void lnk_16(void)
{
    struct pair p = linked(&worker_class, &worker_class);
    order_exit(p.a, reason_error(1));
    order_exit(p.b, reason_error(2));
    struct reason a = wait_down(p.a_ref), b = wait_down(p.b_ref);
    EXPECT(a.kind == REASON_ERROR && b.kind == REASON_ERROR);
    EXPECT(a.code == 1 || b.code == 2); /* at least one was the first */
    EXPECT(!mail());
}

/* A link made at the spawn misses nothing, however short the life; its tag comes back. */
static void lnk_17(void)
{
    world->members[B].fail = 1;
    world->members[B].failure = FAIL_EXIT;
    const struct plan plan = {.number = B};
    actor_pid b;
    EXPECT_OK(actor_spawn(&(struct spawn_options){.class = &worker_class,
                                                  .args = &plan,
                                                  .args_size = sizeof plan,
                                                  .link = true,
                                                  .tag = 5,
                                                  .scheduler = anywhere()},
                          &b));
    struct message *m = actor_receive(NULL, NULL, PATIENCE);
    EXPECT(m && m->type == MESSAGE_EXIT);
    struct message_exit *x = message_body(m, sizeof *x);
    EXPECT(x && x->pid == b);
    EXPECT_EQ(x->tag, 5);
    EXPECT_REASON(x->reason, reason_error(FAIL_CODE));
    EXPECT(!mail());
}

/* Killing while blocked in a call, a sleep or a receive: the end comes at once. */
static void lnk_18(void)
{
    actor_pid b = spawn_worker(B, draw(2) ? &worker_class : &trapper_class);
    uint64_t ref = watch(b), began = now_ms();
    order_hang(b);
    pass_ms(10);
    actor_kill(b);
    EXPECT_REASON(wait_down(ref), KILLED);
    EXPECT_EQ(now_ms() - began, 10);
    EXPECT_EQ(world->members[B].gone, 1);
}

#define ROWS(X)            \
    X("LNK-01", lnk_01, 0) \
    X("LNK-02", lnk_02, 0) \
    X("LNK-03", lnk_03, 0) \
    X("LNK-06", lnk_06, 0) \
    X("LNK-09", lnk_09, 0) \
    X("LNK-10", lnk_10, 0) \
    X("LNK-11", lnk_11, 0) \
    X("LNK-12", lnk_12, 0) \
    X("LNK-13", lnk_13, 0) \
    X("LNK-04", lnk_04, 0) \
    X("LNK-05", lnk_05, 0) \
    X("LNK-07", lnk_07, 0) \
    X("LNK-08", lnk_08, 0) \
    X("LNK-14", lnk_14, 0) \
    X("LNK-15", lnk_15, 0) \
    X("LNK-16", lnk_16, 0) \
    X("LNK-17", lnk_17, 0) \
    X("LNK-18", lnk_18, 0)

ROWS_TEST_LIST;
