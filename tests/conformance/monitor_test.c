/* Section O: monitors. */
#include "acutest.h"
#include "harness.h"

/* Not waited for: what happens next races with it, as the rows want it. */
static uint64_t monitor(actor_pid pid)
{
    uint64_t ref = actor_monitor(pid, 0);
    EXPECT(ref);
    return ref;
}

static struct message *down(void)
{
    struct message *m = actor_receive(NULL, NULL, PATIENCE);
    EXPECT(m && m->type == MESSAGE_DOWN);
    EXPECT(message_body(m, sizeof(struct message_down)));
    return m;
}

static void mon_01(void)
{
    struct reason ends[] = {NORMAL, SHUTDOWN, shutdown_with(6), abnormal()};
    for (unsigned i = 0; i < 4; i++) {
        actor_pid b = spawn_worker(B, &worker_class);
        uint64_t ref = actor_monitor(b, 77 + i);
        EXPECT(ref);
        order_exit(b, ends[i]);
        struct message_down *d = (void *)down()->payload;
        EXPECT(d->ref == ref && d->pid == b);
        EXPECT_EQ(d->tag, 77 + i);
        EXPECT_REASON(d->reason, ends[i]);
        EXPECT(!mail());
    }
}

static void mon_02(void)
{
    actor_pid b = spawn_worker(B, &worker_class);
    uint64_t first = monitor(b);
    hit(b);
    wait_down(first);
    uint64_t began = actor_now(), ref = monitor(b);
    struct message_down *d = (void *)down()->payload;
    EXPECT(d->ref == ref && d->pid == b);
    EXPECT_REASON(d->reason, NOPROC);
    EXPECT(actor_now() == began);
    EXPECT(!mail());
}

static void mon_03(void)
{
    actor_pid b = spawn_worker(B, &worker_class);
    uint64_t refs[4];
    for (unsigned i = 0; i < 4; i++) {
        refs[i] = monitor(b);
        for (unsigned k = 0; k < i; k++)
            EXPECT(refs[k] != refs[i]);
    }
    hit(b);
    for (unsigned i = 0; i < 4; i++)
        wait_down(refs[i]);
    EXPECT(!mail());
}

static void mon_04(void)
{
    actor_pid b = spawn_worker(B, &worker_class);
    uint64_t ref = monitor(b), other = monitor(b);
    if (draw(2))
        settle();
    actor_demonitor(ref);
    hit(b);
    wait_down(other);
    EXPECT(!mail());
}

static void mon_07(void)
{
    uint64_t ref = actor_monitor(actor_self(), 1);
    pass_ms(100);
    EXPECT(!mail());
    actor_demonitor(ref);
    EXPECT(!mail());
}

/* A DOWN carries the tag that was given with the name; that is how the name is told. */
static void mon_08(void)
{
    actor_pid b = spawn_worker(B, &worker_class), holder;
    EXPECT_OK(actor_register("name", b, &holder));
    uint64_t ref = actor_monitor_name("name", 4242);
    EXPECT(ref);
    struct reason why = abnormal();
    order_exit(b, why);
    struct message_down *d = (void *)down()->payload;
    EXPECT(d->ref == ref && d->pid == b);
    EXPECT_EQ(d->tag, 4242);
    EXPECT_REASON(d->reason, why);
    uint64_t began = actor_now();
    ref = actor_monitor_name("nobody", 4343);
    EXPECT(ref);
    d = (void *)down()->payload;
    EXPECT(d->ref == ref);
    EXPECT_EQ(d->tag, 4343);
    EXPECT_REASON(d->reason, NOPROC);
    EXPECT(actor_now() == began);
    EXPECT(!mail());
}

static enum actor_step large_handle(void *state, struct message *m)
{
    (void)state;
    actor_exit(reason_with_detail(reason_error(12), m->payload, m->size));
}

static const struct actor_class large_class = {.name = "large", .handle = large_handle};

static void mon_10(void)
{
    enum { SIZE = 60000 };
    static unsigned char bytes[SIZE];
    for (unsigned i = 0; i < SIZE; i++)
        bytes[i] = (unsigned char)(i * 131 + i / 251);
    actor_pid b;
    EXPECT_OK(actor_spawn(&(struct spawn_options){.class = &large_class, .scheduler = anywhere()}, &b));
    uint64_t refs[3];
    for (unsigned i = 0; i < 3; i++)
        refs[i] = monitor(b);
    EXPECT_OK(actor_cast(b, ORDER_FREE, bytes, SIZE));
    for (unsigned i = 0; i < 3; i++) {
        struct reason why = wait_down(refs[i]);
        EXPECT_EQ(why.kind, REASON_ERROR);
        EXPECT_EQ(why.code, 12);
        size_t size;
        const void *detail = reason_detail(&why, &size);
        EXPECT_EQ(size, SIZE);
        EXPECT(detail && !memcmp(detail, bytes, SIZE));
    }
}

static void mon_12(void)
{
    actor_pid b = spawn_worker(B, &worker_class);
    uint64_t ref = monitor(b), other = monitor(b);
    actor_demonitor(0);
    actor_demonitor(~0ull);
    actor_demonitor(ref);
    actor_demonitor(ref);
    hit(b);
    wait_down(other);
    actor_demonitor(other);
    actor_demonitor(ref);
    EXPECT(!mail());
    EXPECT(actor_alive(actor_self()));
}

/* ---- beyond the table ---- */

/* Demonitor takes a DOWN that lies in the mailbox already out of it, and no other. */
static void mon_05(void)
{
    actor_pid b = spawn_worker(B, &worker_class);
    uint64_t refs[3] = {monitor(b), monitor(b), monitor(b)};
    hit(b);
    settle();
    actor_demonitor(refs[1]);
    wait_down(refs[0]);
    wait_down(refs[2]);
    EXPECT(!mail());
}

/* What an actor has sent before it died comes before the DOWN. */
static enum actor_step chatty_handle(void *state, struct message *m)
{
    (void)state;
    for (uint64_t i = 0; i < 20; i++)
        actor_cast(m->from, ORDER_FREE + 1, &i, sizeof i);
    actor_exit(reason_error(2));
}

static const struct actor_class chatty_class = {.name = "chatty", .handle = chatty_handle};

static void mon_06(void)
{
    actor_pid b;
    EXPECT_OK(actor_spawn(&(struct spawn_options){.class = &chatty_class, .scheduler = anywhere()}, &b));
    uint64_t ref = monitor(b);
    actor_cast(b, ORDER_FREE, NULL, 0);
    for (uint64_t i = 0; i < 20; i++) {
        struct message *m = actor_receive(NULL, NULL, PATIENCE);
        EXPECT(m && m->type == ORDER_FREE + 1);
        EXPECT_EQ(*(uint64_t *)message_body(m, 8), i);
    }
    struct message_down *d = (void *)down()->payload;
    EXPECT(d->ref == ref);
    EXPECT_REASON(d->reason, reason_error(2));
    EXPECT(!mail());
}

/* Monitors go with the watcher: the watched keeps no trace of it. */
static enum actor_step watcher_init(void *state, const void *args, size_t size)
{
    (void)state;
    actor_pid b;
    EXPECT_EQ(size, sizeof b);
    memcpy(&b, args, size);
    for (unsigned i = 0; i < 5; i++)
        EXPECT(actor_monitor(b, 0));
    return ACTOR_CONTINUE;
}

static enum actor_step watcher_handle(void *state, struct message *m)
{
    (void)state;
    (void)m;
    return ACTOR_STOP;
}

static const struct actor_class watcher_class = {
    .name = "watcher", .init = watcher_init, .handle = watcher_handle};

static void mon_09(void)
{
    actor_pid b = spawn_worker(B, &worker_class), watcher;
    struct actor_info info;
    EXPECT_OK(actor_spawn(
        &(struct spawn_options){
            .class = &watcher_class, .args = &b, .args_size = sizeof b, .scheduler = anywhere()},
        &watcher));
    settle();
    EXPECT_OK(actor_inspect(b, &info, PATIENCE));
    EXPECT_EQ(info.watchers, 5);
    EXPECT_OK(actor_inspect(watcher, &info, PATIENCE));
    EXPECT_EQ(info.monitors, 5);
    if (draw(2))
        actor_kill(watcher);
    else
        actor_cast(watcher, ORDER_FREE, NULL, 0);
    settle();
    EXPECT_OK(actor_inspect(b, &info, PATIENCE));
    EXPECT_EQ(info.watchers, 0);
    hit(b);
    EXPECT(!mail());
}

/* A monitor made with the spawn misses nothing, however short the life. */
static void mon_11(void)
{
    for (unsigned i = 0; i < 5; i++) {
        world->members[B].fail = 1;
        world->members[B].failure = FAIL_EXIT;
        const struct plan plan = {.number = B};
        actor_pid b;
        EXPECT_OK(actor_spawn(&(struct spawn_options){.class = &worker_class,
                                                      .args = &plan,
                                                      .args_size = sizeof plan,
                                                      .monitor = true,
                                                      .tag = 99,
                                                      .scheduler = anywhere()},
                              &b));
        struct message_down *d = (void *)down()->payload;
        EXPECT(d->pid == b);
        EXPECT_EQ(d->tag, 99);
        EXPECT_REASON(d->reason, reason_error(FAIL_CODE));
    }
    EXPECT(!mail());
}

/* Many watchers and many watched: each pair gets its one DOWN. */
static void mon_13(void)
{
    actor_pid pids[12];
    uint64_t refs[12][3];
    for (uint32_t i = 0; i < 12; i++) {
        pids[i] = spawn_worker(i, &worker_class);
        for (unsigned k = 0; k < 3; k++)
            refs[i][k] = monitor(pids[i]);
    }
    for (uint32_t i = 0; i < 12; i++)
        hit(pids[i]);
    for (uint32_t i = 0; i < 12; i++)
        for (unsigned k = 0; k < 3; k++)
            wait_down(refs[11 - i][k]);
    EXPECT(!mail());
}

/* Monitor, demonitor and death in a race: never a DOWN after demonitor, always one without it. */
static void mon_14(void)
{
    for (unsigned i = 0; i < 10; i++) {
        actor_pid b = spawn_worker(B, &worker_class);
        hit(b);
        uint64_t ref = monitor(b), kept = monitor(b);
        for (uint32_t k = draw(5); k; k--)
            actor_yield();
        actor_demonitor(ref);
        struct message_down *d = (void *)down()->payload;
        EXPECT(d->ref == kept);
    }
    EXPECT(!mail());
}

#define ROWS(X)            \
    X("MON-01", mon_01, 0) \
    X("MON-02", mon_02, 0) \
    X("MON-03", mon_03, 0) \
    X("MON-04", mon_04, 0) \
    X("MON-07", mon_07, 0) \
    X("MON-08", mon_08, 0) \
    X("MON-10", mon_10, 0) \
    X("MON-12", mon_12, 0) \
    X("MON-05", mon_05, 0) \
    X("MON-06", mon_06, 0) \
    X("MON-09", mon_09, 0) \
    X("MON-11", mon_11, 0) \
    X("MON-13", mon_13, 0) \
    X("MON-14", mon_14, 0)

ROWS_TEST_LIST;
