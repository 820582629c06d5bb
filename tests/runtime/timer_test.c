#include "acutest.h"
#include "tests/runtime/node.h"

#include "runtime/scheduler.h"

static uint64_t start;
static uint64_t at(uint64_t ms)
{
    return start + ms * NS_PER_MS;
}

/* ---- firing ---- */

static void in_order(void)
{
    const uint64_t ms[] = {500, 300, 400, 100, 200, 0};
    start = actor_now();
    for (uint64_t i = 0; i < 6; i++)
        TEST_CHECK(actor_timer(at(ms[i]), NOTE, ms[i]) != 0);
    for (uint64_t i = 0; i < 6; i++) {
        struct message *m = actor_receive(NULL, NULL, DEADLINE_NONE);
        TEST_CHECK(m->type == NOTE && *(uint64_t *)m->payload == 100 * i && actor_now() == at(100 * i));
        TEST_CHECK(m->from == actor_self());
    }
    uint64_t ref = actor_timer(at(600), 0, 42); /* type 0: told by its reference */
    struct message_timer *t = expect(MESSAGE_TIMER);
    TEST_CHECK(t->ref == ref && t->value == 42);
    TEST_CHECK(!mail());
}

static void equal_deadlines(void)
{
    start = actor_now();
    for (uint64_t i = 0; i < 5000; i++)
        TEST_CHECK(actor_timer(at(7), NOTE, i) != 0);
    TEST_CHECK(wheel_count(&scheduler_current->wheel) == 5000);
    for (uint64_t i = 0; i < 5000; i++) {
        struct message *m = actor_receive(NULL, NULL, DEADLINE_NONE);
        TEST_CHECK(*(uint64_t *)m->payload == i && actor_now() == at(7));
        message_free(m);
    }
    TEST_CHECK(!mail());
}

static void past_and_never(void)
{
    start = actor_now();
    actor_timer(0, NOTE, 1);
    actor_timer(1, NOTE, 2);
    actor_timer(start, NOTE, 3);
    uint64_t never = actor_timer(DEADLINE_NONE, NOTE, 4), far = actor_timer(DEADLINE_NONE - 1, NOTE, 5);
    for (uint64_t i = 1; i <= 3; i++) {
        struct message *m = actor_receive(NULL, NULL, DEADLINE_NONE);
        TEST_CHECK(*(uint64_t *)m->payload == i && actor_now() == start);
    }
    actor_sleep(at(1ull << 40)); /* some decades */
    TEST_CHECK(!mail());
    uint64_t left = 0;
    TEST_CHECK(actor_timer_cancel(never, &left) && left == DEADLINE_NONE);
    TEST_CHECK(actor_timer_cancel(far, &left) && left == DEADLINE_NONE - 1 - actor_now());
    TEST_CHECK(actor_deadline_ms(UINT64_MAX) == DEADLINE_NONE &&
               actor_deadline_ms(UINT64_MAX / NS_PER_MS) == DEADLINE_NONE);
    TEST_CHECK(actor_sleep(0) == OK && actor_sleep(actor_now()) == OK);
}

static void test_firing(void)
{
    node_sim(in_order);
    node_sim(equal_deadlines);
    node_sim(past_and_never);
}

/* ---- cancelling ---- */

static uint64_t handlers_ref;
static bool cancelled_in_handler;
static void cancel_here(void *arg)
{
    (void)arg;
    uint64_t left = 7;
    cancelled_in_handler = actor_timer_cancel(handlers_ref, &left);
    TEST_CHECK(left == 7); /* written only on success */
}

static void cancel(void)
{
    uint64_t left = 0;
    start = actor_now();
    uint64_t ref = actor_timer(at(10), NOTE, 1);
    actor_sleep(at(3));
    TEST_CHECK(actor_timer_cancel(ref, &left) && left == 7 * NS_PER_MS);
    TEST_CHECK(!actor_timer_cancel(ref, &left) && left == 7 * NS_PER_MS);
    ref = actor_timer(at(10), NOTE, 2);
    actor_sleep(at(10)); /* at the same instant: fired or not, cancel knows which */
    bool before = actor_timer_cancel(ref, NULL);
    settle();
    TEST_CHECK(before != mail());
    ref = actor_timer(at(20), NOTE, 3);
    actor_sleep(at(30));
    TEST_CHECK(!actor_timer_cancel(ref, &left)); /* fired, its message lies in the mailbox */
    TEST_CHECK(*(uint64_t *)expect(NOTE) == 3);
    /* Another actor's timer isn't one's own. */
    handlers_ref = actor_timer(at(40), NOTE, 4);
    actor_pid d = doll(SPAWN_HERE), other = doll(anywhere());
    tell(d, cancel_here, NULL);
    settle();
    TEST_CHECK(!cancelled_in_handler);
    tell(other, cancel_here, NULL);
    settle();
    TEST_CHECK(!cancelled_in_handler);
    TEST_CHECK(*(uint64_t *)expect(NOTE) == 4);
    TEST_CHECK(!actor_timer_cancel(0, NULL) && !actor_timer_cancel(UINT64_MAX, NULL));
    for (int i = 0; i < 200; i++) { /* a used-again record is not the old timer */
        uint64_t old = actor_timer(at(1000), NOTE, 5);
        TEST_CHECK(actor_timer_cancel(old, NULL) && !actor_timer_cancel(old, NULL));
    }
    actor_kill(d);
    actor_kill(other);
    settle();
    TEST_CHECK(!mail());
}

static void test_cancel(void)
{
    node_sim(cancel);
}

static void many_timers(void *arg)
{
    (void)arg;
    for (uint64_t i = 0; i < 100; i++)
        actor_timer(actor_deadline_ms(i), NOTE, i);
    actor_idle_timeout(actor_deadline_ms(50));
}

static void gone_with_the_actor(void)
{
    actor_pid d = doll(anywhere());
    tell(d, many_timers, NULL);
    actor_sleep(actor_deadline_ms(30));
    struct scheduler *s = runtime_self()->schedulers[pid_scheduler(d)];
    TEST_CHECK(wheel_count(&s->wheel) > 60);
    actor_kill(d);
    settle();
    TEST_CHECK(wheel_count(&s->wheel) == 0);
}

static void test_gone_with_the_actor(void)
{
    node_sim(gone_with_the_actor);
}

/* ---- the idle timeout ---- */

static unsigned timeouts, notes;
static uint64_t timed_out_at, order_of[8], order_count;
static enum actor_step idle_handle(void *state, struct message *m)
{
    if (m->type == MESSAGE_TIMEOUT) {
        timeouts++;
        timed_out_at = actor_now();
        TEST_CHECK(m->size == 0);
    }
    notes += m->type == NOTE;
    if (order_count < 8)
        order_of[order_count++] = m->type;
    return doll_handle(state, m);
}
static const struct actor_class idle_class = {.name = "idle", .handle = idle_handle};

static void idle_10(void *arg)
{
    (void)arg;
    actor_idle_timeout(actor_deadline_ms(10));
}
static void idle_never(void *arg)
{
    idle_10(arg);
    actor_idle_timeout(DEADLINE_NONE);
}
static void idle_twice(void *arg)
{
    idle_10(arg);
    actor_idle_timeout(actor_deadline_ms(20));
}
static void idle_past(void *arg)
{
    (void)arg;
    actor_idle_timeout(1);
}

static void idle(void)
{
    struct actor_info info;
    actor_pid d = spawn(&idle_class, anywhere());
    timeouts = notes = 0;
    start = actor_now();
    tell(d, idle_10, NULL); /* (b): looked at, linked, watched: it still fires */
    actor_sleep(at(5));
    TEST_CHECK(actor_inspect(d, &info, DEADLINE_NONE) == OK);
    actor_demonitor(actor_monitor(d, 0));
    actor_sleep(at(30));
    TEST_CHECK(timeouts == 1 && timed_out_at == at(10));
    start = actor_now();
    tell(d, idle_10, NULL); /* (a): an ordinary message cancels it */
    actor_sleep(at(5));
    note(d, 1);
    actor_sleep(at(50));
    TEST_CHECK(timeouts == 1 && notes == 1);
    start = actor_now();
    tell(d, idle_twice, NULL); /* the last one counts */
    actor_sleep(at(50));
    TEST_CHECK(timeouts == 2 && timed_out_at == at(20));
    tell(d, idle_never, NULL);
    actor_sleep(at(100));
    TEST_CHECK(timeouts == 2);
    start = actor_now();
    tell(d, idle_past, NULL);
    settle();
    TEST_CHECK(timeouts == 3 && timed_out_at == start);
    tell(d, idle_past, NULL); /* at once, but not before what lies there already */
    note(d, 2);
    actor_kill(d);
    settle();
}

static void arrived_in_time(void)
{
    actor_pid d = spawn(&idle_class, anywhere());
    timeouts = notes = 0;
    start = actor_now();
    tell(d, idle_10, NULL);
    actor_sleep(at(5));
    actor_suspend(d);
    note(d, 1); /* arrives in time, is handled late */
    actor_sleep(at(20));
    actor_resume(d);
    actor_sleep(at(50));
    TEST_CHECK(notes == 1 && timeouts == 0);
    actor_kill(d);
    settle();
}

static void test_idle(void)
{
    node_sim(idle);
    node_sim(arrived_in_time);
}

/* ---- waiting ---- */

static void waits(void)
{
    start = actor_now();
    TEST_CHECK(actor_sleep(at(5)) == OK && actor_now() == at(5));
    TEST_CHECK(actor_receive(NULL, NULL, at(8)) == NULL && actor_now() == at(8));
    TEST_CHECK(actor_receive(NULL, NULL, at(2)) == NULL && actor_now() == at(8));
    uint64_t wall = actor_wall_now();
    sim_clock_jump(the_sim, -3600ll * 1000000000);
    TEST_CHECK(actor_wall_now() == wall - 3600 * NS_PER_S && actor_now() == at(8)); /* only the wall's */
    actor_sleep(at(9));
    TEST_CHECK(actor_now() == at(9));
    uint64_t a = actor_random(), b = actor_random();
    TEST_CHECK(a != b);
}

static void test_waits(void)
{
    node_sim(waits);
}

TEST_LIST
= {
    {"TMR-01 TMR-07: in order, many at once, past and never", test_firing},
    {"TMR-02: cancelled in time, too late, by others", test_cancel},
    {"timers go with their actor", test_gone_with_the_actor},
    {"TMR-05: the idle timeout", test_idle},
    {"waiting ends at its instant", test_waits},
    {NULL, NULL},
};
