/* Section Q: what arrives, in which order, and what is gone when somebody is said to be dead. */
#include "acutest.h"
#include "harness.h"

#define ORDER_NUMBER (ORDER_FREE + 1) /* uint64_t */
#define ORDER_SEND   (ORDER_FREE + 2) /* struct task: send these numbers */

static uint64_t number_of(struct message *m)
{
    uint64_t *n = message_body(m, sizeof *n);
    EXPECT(n);
    return *n;
}

static struct message *next_message(void)
{
    return actor_receive(NULL, NULL, PATIENCE);
}

/* Sends numbers to somebody, by pid and by name as it likes. */
struct task {
    actor_pid to;
    uint64_t first, count;
    bool then_exit;
};

static enum actor_step sender_handle(void *state, struct message *m)
{
    (void)state;
    struct task *t = message_body(m, sizeof *t);
    EXPECT(t);
    for (uint64_t i = t->first; i < t->first + t->count; i++) {
        struct message *n = message_of(ORDER_NUMBER, &i, sizeof i);
        EXPECT_OK(draw(2) ? actor_send(t->to, n) : actor_send_name("receiver", n));
        if (draw(16) == 0)
            actor_yield();
    }
    if (t->then_exit)
        actor_exit(reason_error(5));
    return ACTOR_CONTINUE;
}

static const struct actor_class sender_class = {.name = "sender", .handle = sender_handle};

static actor_pid sender(void)
{
    actor_pid pid, holder;
    EXPECT_OK(actor_spawn(&(struct spawn_options){.class = &sender_class, .scheduler = anywhere()}, &pid));
    if (!actor_whereis("receiver"))
        EXPECT_OK(actor_register("receiver", actor_self(), &holder));
    return pid;
}

static void ord_01(void)
{
    const struct task task = {.to = actor_self(), .count = 1000};
    actor_cast(sender(), ORDER_SEND, &task, sizeof task);
    for (uint64_t i = 0; i < task.count; i++) {
        struct message *m = next_message();
        EXPECT(m && m->type == ORDER_NUMBER);
        EXPECT_EQ(number_of(m), i);
        message_free(m);
    }
    EXPECT(!mail());
}

static bool is_number(const struct message *m, void *arg)
{
    return m->type == ORDER_NUMBER && *(const uint64_t *)(const void *)m->payload == *(uint64_t *)arg;
}

static void ord_04(void)
{
    const struct task task = {.to = actor_self(), .count = 10};
    uint64_t wanted = 7;
    actor_cast(sender(), ORDER_SEND, &task, sizeof task);
    EXPECT_EQ(number_of(actor_receive(is_number, &wanted, PATIENCE)), 7);
    for (uint64_t i = 0; i < 10; i++)
        if (i != wanted)
            EXPECT_EQ(number_of(next_message()), i);
    EXPECT(!mail());
}

static void ord_05(void)
{
    actor_pid b = spawn_worker(B, &worker_class);
    uint64_t ref = watch(b);
    hit(b);
    wait_down(ref);
    settle();
    static const char bytes[1000];
    struct runtime_stats before, after;
    for (unsigned round = 0; round < 30; round++) {
        for (unsigned i = 0; i < 30; i++)
            EXPECT_OK(actor_cast(b, ORDER_NUMBER, bytes, sizeof bytes));
        settle();
        if (round == 5)
            runtime_stats(runtime_self(), &before); /* the pools are warm */
    }
    runtime_stats(runtime_self(), &after);
    EXPECT_EQ(after.message_bytes, before.message_bytes);
    EXPECT_EQ(after.records, before.records);
    EXPECT(!mail());
}

/* Everything that an actor can have, released before it is said to be dead. */
static void lose(void *arg)
{
    (void)arg;
    world->numbers[0]++;
}

static enum actor_step owner_init(void *state, const void *args, size_t size)
{
    (void)state;
    (void)args;
    (void)size;
    actor_pid holder;
    EXPECT_OK(actor_register("owner:1", actor_self(), &holder));
    EXPECT_OK(actor_register("owner:2", actor_self(), &holder));
    EXPECT_OK(actor_join("owners"));
    for (unsigned i = 0; i < 5; i++)
        EXPECT(actor_timer(actor_deadline_ms(1000), ORDER_NUMBER, i));
    for (unsigned i = 0; i < 3; i++)
        EXPECT(actor_own(lose, NULL));
    EXPECT(actor_monitor(actor_parent(), 0));
    memset(actor_alloc(10000), 1, 10000);
    return ACTOR_CONTINUE;
}

static enum actor_step owner_handle(void *state, struct message *m)
{
    (void)state;
    (void)m;
    actor_exit(abnormal());
}

static const struct actor_class owner_class = {.name = "owner", .init = owner_init, .handle = owner_handle};

static void ord_06(void)
{
    struct runtime_stats before, after;
    for (unsigned life = 0; life < 3; life++) {
        memset(world->numbers, 0, sizeof world->numbers);
        settle();
        runtime_stats(runtime_self(), &before);
        struct start_result born;
        EXPECT_OK(actor_start(&(struct spawn_options){.class = &owner_class, .scheduler = anywhere()}, &born,
                              PATIENCE));
        EXPECT(actor_whereis("owner:2") == born.pid);
        if (draw(2))
            actor_kill(born.pid);
        else
            actor_cast(born.pid, ORDER_FREE, NULL, 0);
        while (actor_alive(born.pid))
            actor_yield();
        EXPECT(!actor_whereis("owner:1") && !actor_whereis("owner:2"));
        EXPECT_EQ(actor_members("owners", NULL, 0), 0);
        EXPECT_EQ(world->numbers[0], 3);
        runtime_stats(runtime_self(), &after);
        EXPECT_EQ(after.timers, before.timers);
        settle();
        runtime_stats(runtime_self(), &after);
        EXPECT_EQ(after.records, before.records);
        EXPECT_EQ(after.actors, before.actors);
    }
    pass_ms(2000);
    EXPECT(!mail());
}

/* ---- beyond the table ---- */

/* Messages come before the signal that was caused after them: EXIT and DOWN are in the same order as the
 * rest. */
static void ord_02(void)
{
    const struct task task = {.to = actor_self(), .count = 50, .then_exit = true};
    actor_pid a = sender();
    bool link = draw(2);
    uint64_t ref = link ? 0 : watch(a);
    if (link)
        EXPECT_OK(actor_link(a));
    actor_cast(a, ORDER_SEND, &task, sizeof task);
    for (uint64_t i = 0; i < 50; i++) {
        struct message *m = next_message();
        EXPECT(m && m->type == ORDER_NUMBER);
        EXPECT_EQ(number_of(m), i);
    }
    struct message *last = next_message();
    EXPECT(last && last->type == (link ? MESSAGE_EXIT : MESSAGE_DOWN));
    if (!link)
        EXPECT(((struct message_down *)(void *)last->payload)->ref == ref);
    EXPECT(!mail());
}

/* Several senders: each one's order is kept, nothing is lost or doubled. */
static void ord_03(void)
{
    enum { SENDERS = 4, EACH = 60 };
    for (uint64_t i = 0; i < SENDERS; i++) {
        const struct task task = {.to = actor_self(), .first = i * 1000, .count = EACH};
        actor_cast(sender(), ORDER_SEND, &task, sizeof task);
    }
    uint64_t next[SENDERS] = {0};
    for (unsigned i = 0; i < SENDERS * EACH; i++) {
        uint64_t n = number_of(next_message());
        EXPECT(n / 1000 < SENDERS);
        EXPECT_EQ(n % 1000, next[n / 1000]++);
    }
    EXPECT(!mail());
}

/* What was sent before a kill may be handled or not; what is sent after it never is. */
static void ord_07(void)
{
    actor_pid b = spawn_worker(B, &worker_class);
    settle();
    order_add(b, 1);
    actor_kill(b);
    order_exit(b, NORMAL);
    uint64_t ref = watch(b);
    struct reason why = wait_down(ref);
    EXPECT(why.kind == REASON_KILLED || why.kind == REASON_NOPROC);
    EXPECT(!actor_alive(b));
}

/* Calls and casts of one sender are in one order. */
static void ord_08(void)
{
    actor_pid b = spawn_worker(B, &worker_class);
    uint64_t sum = 0;
    for (uint64_t i = 1; i < 30; i++) {
        order_add(b, i);
        sum += i;
        if (draw(3) == 0)
            EXPECT_EQ(ask_sum(b), sum);
    }
    EXPECT_EQ(ask_sum(b), sum);
}

/* Selective receive gives up at its deadline and leaves all as it was. */
static void ord_09(void)
{
    const struct task task = {.to = actor_self(), .count = 5};
    uint64_t wanted = 99, began = now_ms();
    actor_cast(sender(), ORDER_SEND, &task, sizeof task);
    EXPECT(!actor_receive(is_number, &wanted, actor_deadline_ms(250)));
    EXPECT_EQ(now_ms() - began, 250);
    for (uint64_t i = 0; i < 5; i++)
        EXPECT_EQ(number_of(next_message()), i);
    EXPECT(!mail());
}

/* A message to an actor that has yet to run its init waits for it. */
static void ord_10(void)
{
    const struct plan plan = {.number = B, .init_ms = 500};
    actor_pid b;
    EXPECT_OK(actor_spawn(
        &(struct spawn_options){
            .class = &worker_class, .args = &plan, .args_size = sizeof plan, .scheduler = anywhere()},
        &b));
    for (uint64_t i = 1; i <= 10; i++)
        order_add(b, i);
    EXPECT_EQ(ask_sum(b), 55);
    EXPECT_EQ(world->members[B].ready, 1);
}

#define ROWS(X)            \
    X("ORD-01", ord_01, 0) \
    X("ORD-04", ord_04, 0) \
    X("ORD-05", ord_05, 0) \
    X("ORD-06", ord_06, 0) \
    X("ORD-02", ord_02, 0) \
    X("ORD-03", ord_03, 0) \
    X("ORD-07", ord_07, 0) \
    X("ORD-08", ord_08, 0) \
    X("ORD-09", ord_09, 0) \
    X("ORD-10", ord_10, 0)

ROWS_TEST_LIST;
