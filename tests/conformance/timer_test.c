/* Section S: timers. */
#include "acutest.h"
#include "harness.h"

#define ORDER_RING (ORDER_FREE + 1)

static struct message *ring(void)
{
    return actor_receive(NULL, NULL, PATIENCE);
}

static uint64_t value_of(struct message *m)
{
    EXPECT(m && m->type == ORDER_RING);
    uint64_t *v = message_body(m, sizeof *v);
    EXPECT(v);
    return *v;
}

static void tmr_01(void)
{
    const uint64_t delays[] = {500, 300, 400, 100, 200, 0};
    uint64_t began = actor_now();
    for (unsigned i = 0; i < 6; i++)
        EXPECT(actor_timer(began + delays[i] * NS_PER_MS, ORDER_RING, delays[i]));
    for (uint64_t wanted = 0; wanted <= 500; wanted += 100) {
        EXPECT_EQ(value_of(ring()), wanted);
        EXPECT(actor_now() == began + wanted * NS_PER_MS);
    }
    EXPECT(!mail());
}

static void tmr_02(void)
{
    uint64_t ref = actor_timer(actor_deadline_ms(1000), ORDER_RING, 1), remaining = 0;
    EXPECT(ref);
    pass_ms(400);
    EXPECT(actor_timer_cancel(ref, &remaining));
    EXPECT_EQ(remaining, 600 * NS_PER_MS);
    pass_ms(2000);
    EXPECT(!mail());
    EXPECT(!actor_timer_cancel(ref, &remaining));
}

/* Waits 1000 ms for whatever comes, and answers what it is asked. */
struct patient {
    uint32_t timeouts;
};

static enum actor_step patient_init(void *state, const void *args, size_t size)
{
    (void)state;
    (void)args;
    (void)size;
    actor_idle_timeout(actor_deadline_ms(1000));
    return ACTOR_CONTINUE;
}

static enum actor_step patient_handle(void *state, struct message *m)
{
    struct patient *p = state;
    if (m->type == MESSAGE_TIMEOUT)
        world->numbers[0] = ++p->timeouts;
    else if (m->kind == MESSAGE_CALL)
        actor_reply_bytes(m, 1, p, sizeof *p);
    else
        actor_idle_timeout(actor_deadline_ms(1000));
    return ACTOR_CONTINUE;
}

static const struct actor_class patient_class = {
    .name = "patient", .state_size = sizeof(struct patient), .init = patient_init, .handle = patient_handle};

static actor_pid patient(void)
{
    struct start_result born;
    EXPECT_OK(actor_start(&(struct spawn_options){.class = &patient_class, .scheduler = anywhere()}, &born,
                          PATIENCE));
    return born.pid;
}

static void tmr_05(void)
{
    actor_pid p = patient();
    struct message *reply = NULL;
    pass_ms(500);
    EXPECT_OK(actor_call(p, message_new(1, 0), &reply, PATIENCE)); /* (a) an ordinary request cancels */
    pass_ms(5000);
    EXPECT_EQ(world->numbers[0], 0);
    p = patient();
    struct actor_info info;
    for (unsigned i = 0; i < 9; i++) {
        pass_ms(100);
        EXPECT_OK(actor_inspect(p, &info, PATIENCE)); /* (b) inspection doesn't */
        EXPECT_EQ(world->numbers[0], 0);
    }
    pass_ms(101);
    EXPECT_EQ(world->numbers[0], 1);
    pass_ms(5000);
    EXPECT_EQ(world->numbers[0], 1);
}

static void tmr_07(void)
{
    uint32_t count = world->full ? 5000 : 50;
    static uint8_t seen[5000];
    memset(seen, 0, sizeof seen);
    uint64_t deadline = actor_deadline_ms(1000);
    for (uint64_t i = 0; i < count; i++)
        EXPECT(actor_timer(deadline, ORDER_RING, i));
    for (uint32_t i = 0; i < count; i++) {
        struct message *m = ring();
        uint64_t v = value_of(m);
        EXPECT(v < count);
        EXPECT_EQ(seen[v]++, 0);
        EXPECT(actor_now() >= deadline && actor_now() - deadline <= 200 * NS_PER_MS);
        message_free(m);
    }
    EXPECT(!mail());
}

/* ---- beyond the table ---- */

/* An actor's timers go with it; who has its place afterwards gets nothing of them. */
static enum actor_step mortal_init(void *state, const void *args, size_t size)
{
    (void)state;
    (void)args;
    (void)size;
    for (uint64_t i = 0; i < 8; i++)
        EXPECT(actor_timer(actor_deadline_ms(100 * i + 100), ORDER_RING, i));
    return ACTOR_CONTINUE;
}

static enum actor_step mortal_handle(void *state, struct message *m)
{
    (void)state;
    (void)m;
    world->numbers[0]++;
    return ACTOR_CONTINUE;
}

static const struct actor_class mortal_class = {
    .name = "mortal", .init = mortal_init, .handle = mortal_handle};

static void tmr_03(void)
{
    struct start_result born;
    struct runtime_stats before, after;
    settle();
    runtime_stats(runtime_self(), &before);
    EXPECT_OK(actor_start(&(struct spawn_options){.class = &mortal_class, .scheduler = anywhere()}, &born,
                          PATIENCE));
    pass_ms(350);
    EXPECT_EQ(world->numbers[0], 3);
    hit(born.pid); /* an order is one message more */
    settle();
    actor_kill(born.pid);
    uint64_t handled = world->numbers[0];
    pass_ms(2000);
    EXPECT_EQ(world->numbers[0], handled);
    settle();
    runtime_stats(runtime_self(), &after);
    EXPECT_EQ(after.timers, before.timers);
    EXPECT_EQ(after.records, before.records);
}

/* Cancelling one that has fired says false, and takes nothing away that came. */
static void tmr_04(void)
{
    uint64_t ref = actor_timer(actor_deadline_ms(10), ORDER_RING, 3), remaining;
    pass_ms(20);
    EXPECT(!actor_timer_cancel(ref, &remaining));
    EXPECT_EQ(value_of(ring()), 3);
    EXPECT(!actor_timer_cancel(0, &remaining));
    EXPECT(!actor_timer_cancel(~0ull, NULL));
    EXPECT(!mail());
}

/* The idle timeout is one at a time: setting it again moves it, and DEADLINE_NONE takes it back. */
static void tmr_06(void)
{
    actor_pid p = patient();
    for (unsigned i = 0; i < 5; i++) {
        pass_ms(900);
        actor_cast(p, 2, NULL, 0); /* handled, and the timeout is set anew */
    }
    pass_ms(900);
    EXPECT_EQ(world->numbers[0], 0);
    pass_ms(200);
    EXPECT_EQ(world->numbers[0], 1);
    actor_idle_timeout(actor_deadline_ms(100));
    actor_idle_timeout(DEADLINE_NONE);
    pass_ms(1000);
    EXPECT(!mail());
}

/* Equal deadlines: in the order in which they were made. Past ones: at once. */
static void tmr_08(void)
{
    uint64_t deadline = actor_deadline_ms(50);
    for (uint64_t i = 0; i < 20; i++)
        EXPECT(actor_timer(deadline, ORDER_RING, i));
    EXPECT(actor_timer(actor_now() - 5 * NS_PER_S, ORDER_RING, 777));
    uint64_t began = actor_now();
    EXPECT_EQ(value_of(ring()), 777);
    EXPECT(actor_now() == began);
    for (uint64_t i = 0; i < 20; i++)
        EXPECT_EQ(value_of(ring()), i);
}

/* Type 0: a message of the runtime with the reference and the value. */
static void tmr_09(void)
{
    uint64_t ref = actor_timer(actor_deadline_ms(1), 0, 31);
    struct message *m = ring();
    EXPECT(m && m->type == MESSAGE_TIMER);
    struct message_timer *t = message_body(m, sizeof *t);
    EXPECT(t);
    EXPECT(t->ref == ref);
    EXPECT_EQ(t->value, 31);
}

/* Sleeping: exactly until the deadline, and not at all when it has passed. */
static void tmr_10(void)
{
    uint64_t began = actor_now();
    actor_sleep(began + 123456789);
    EXPECT(actor_now() == began + 123456789);
    actor_sleep(began);
    EXPECT(actor_now() == began + 123456789);
}

/* The wall clock may jump as it likes: timers live by the other one. */
static void tmr_11(void)
{
    uint64_t began = actor_now();
    EXPECT(actor_timer(actor_deadline_ms(1000), ORDER_RING, 1));
    sim_clock_jump(world->sim, draw(2) ? 3600 * (int64_t)NS_PER_S : -3600 * (int64_t)NS_PER_S);
    pass_ms(500);
    sim_clock_jump(world->sim, -10 * 365 * 86400 * (int64_t)NS_PER_S);
    EXPECT_EQ(value_of(ring()), 1);
    EXPECT(actor_now() == began + NS_PER_S);
}

#define ROWS(X)                   \
    X("TMR-01", tmr_01, 0)        \
    X("TMR-02", tmr_02, 0)        \
    X("TMR-05", tmr_05, 0)        \
    X("TMR-07", tmr_07, ROW_ONCE) \
    X("TMR-03", tmr_03, 0)        \
    X("TMR-04", tmr_04, 0)        \
    X("TMR-06", tmr_06, 0)        \
    X("TMR-08", tmr_08, 0)        \
    X("TMR-09", tmr_09, 0)        \
    X("TMR-10", tmr_10, 0)        \
    X("TMR-11", tmr_11, 0)

ROWS_TEST_LIST;
