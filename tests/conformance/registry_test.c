/* Section N, and a storm over one name. */
#include "acutest.h"
#include "harness.h"
#include <malloc.h>

static void reg_01(void)
{
    actor_pid a = spawn_worker(A, &worker_class), b = spawn_worker(B, &worker_class), holder = 0;
    EXPECT(!actor_whereis("name"));
    EXPECT_OK(actor_register("name", a, &holder));
    EXPECT(actor_whereis("name") == a);
    EXPECT_ERROR(actor_register("name", b, &holder), ERR_ALREADY_REGISTERED);
    EXPECT(holder == a);
    EXPECT(actor_whereis("name") == a);
}

static void reg_02(void)
{
    actor_pid b = spawn_worker(B, &worker_class), holder;
    EXPECT_OK(actor_register("name", b, &holder));
    for (unsigned round = 0; round < 4; round++) {
        bool link = draw(2);
        uint64_t ref = watch(b);
        if (link)
            EXPECT_OK(actor_link(b));
        hit(b);
        if (link)
            wait_exit(b);
        else
            wait_down(ref);
        EXPECT(!actor_whereis("name"));
        EXPECT_OK(actor_register("name", actor_self(), &holder));
        EXPECT(actor_whereis("name") == actor_self());
        EXPECT_OK(actor_unregister("name"));
        b = spawn_worker(B, &worker_class);
        EXPECT_OK(actor_register("name", b, &holder));
    }
}

static void reg_03(void)
{
    actor_pid a = spawn_worker(A, &worker_class), holder;
    uint64_t ref = watch(a);
    hit(a);
    wait_down(ref);
    EXPECT_ERROR(actor_register("name", a, &holder), ERR_NOPROC);
    EXPECT_ERROR(actor_register("name", 0, &holder), ERR_NOPROC);
    EXPECT(!actor_whereis("name"));
}

static void reg_05(void)
{
    actor_pid a = spawn_worker(A, &worker_class), holder;
    EXPECT_OK(actor_register("other", a, &holder));
    EXPECT_OK(actor_unregister("name"));
    EXPECT(!actor_whereis("name") && actor_whereis("other") == a);
}

static void reg_08(void)
{
    actor_pid holder;
    EXPECT_OK(actor_register("one", actor_self(), &holder));
    EXPECT_OK(actor_register("two", actor_self(), &holder));
    EXPECT_OK(actor_unregister("one"));
    EXPECT(!actor_whereis("one"));
    EXPECT(actor_whereis("two") == actor_self());
}

static void reg_09(void)
{
    unsigned count = world->full ? 10000 : 50;
    actor_pid a = spawn_worker(A, &worker_class), holder;
    EXPECT_OK(actor_register("name", a, &holder));
    settle(); /* its init owns something, too */
    EXPECT_ERROR(actor_register("name", actor_self(), &holder), ERR_ALREADY_REGISTERED);
    struct runtime_stats before, after;
    struct actor_info info;
    EXPECT_OK(actor_inspect(a, &info, PATIENCE));
    uint32_t resources = info.resources;
    runtime_stats(runtime_self(), &before);
    size_t heap = mallinfo2().uordblks;
    for (unsigned i = 0; i < count; i++)
        EXPECT_ERROR(actor_register("name", actor_self(), &holder), ERR_ALREADY_REGISTERED);
    EXPECT_EQ(mallinfo2().uordblks, heap);
    runtime_stats(runtime_self(), &after);
    EXPECT_EQ(after.records, before.records);
    EXPECT_EQ(after.record_bytes, before.record_bytes);
    EXPECT_OK(actor_inspect(a, &info, PATIENCE));
    EXPECT_EQ(info.resources, resources);
    EXPECT(!strcmp(info.name, "name"));
}

static void reg_10(void)
{
    actor_pid pids[2], holder;
    const char *names[] = {"a1", "a2", "b1", "b2"};
    for (unsigned i = 0; i < 4; i++) {
        if (i % 2 == 0)
            pids[i / 2] = spawn_worker(i / 2, &worker_class);
        EXPECT_OK(actor_register(names[i], pids[i / 2], &holder));
    }
    hit(pids[0]);
    hit(pids[1]);
    settle();
    struct actor_info info;
    for (unsigned i = 0; i < 4; i++)
        EXPECT(!actor_whereis(names[i]));
    for (unsigned i = 0; i < 2; i++)
        EXPECT_ERROR(actor_inspect(pids[i], &info, PATIENCE), ERR_NOPROC);
    actor_pid next = spawn_worker(A, &worker_class); /* perhaps in the place of one of them */
    EXPECT_OK(actor_inspect(next, &info, PATIENCE));
    EXPECT_EQ(info.name[0], 0);
}

static void reg_12(void)
{
    struct message *reply = NULL;
    uint64_t began = actor_now();
    EXPECT_OK(actor_send_name("nobody", message_of(ORDER_ADD, "12345678", 8)));
    EXPECT_ERROR(actor_call_name("nobody", message_new(ORDER_SUM, 0), &reply, PATIENCE), ERR_NOPROC);
    EXPECT(actor_now() == began);
    EXPECT(!mail());
}

/* One name, taken and lost again and again: by its name, by DOWN and by a new registration it is always the
 * same story. */
static void storm_04(void)
{
    const uint32_t full = SANITIZED ? 50000 : 1000000;
    for (uint32_t i = 0, rounds = world->full ? full : 60; i < rounds; i++) {
        const struct plan plan = {.number = A};
        struct start_result born;
        EXPECT_OK(actor_start(&(struct spawn_options){.class = &worker_class,
                                                      .args = &plan,
                                                      .args_size = sizeof plan,
                                                      .name = "phoenix",
                                                      .monitor = true,
                                                      .scheduler = anywhere()},
                              &born, PATIENCE));
        EXPECT(actor_whereis("phoenix") == born.pid);
        actor_kill(born.pid);
        struct message *m = actor_receive(NULL, NULL, PATIENCE);
        EXPECT(m && m->type == MESSAGE_DOWN);
        EXPECT(((struct message_down *)(void *)m->payload)->ref == born.ref);
        EXPECT(((struct message_down *)(void *)m->payload)->reason.kind == REASON_KILLED);
        message_free(m);
        EXPECT(!actor_whereis("phoenix"));
    }
    EXPECT(!mail());
}

/* ---- beyond the table ---- */

/* A name given at spawn is held before init runs; taken, the start fails and nothing of the newcomer was run.
 */
static void reg_04(void)
{
    const struct plan plan = {.number = A};
    struct spawn_options options = {.class = &worker_class,
                                    .args = &plan,
                                    .args_size = sizeof plan,
                                    .name = "name",
                                    .link = true,
                                    .monitor = true,
                                    .scheduler = anywhere()};
    struct start_result first, second = {0};
    EXPECT_OK(actor_start(&options, &first, PATIENCE));
    EXPECT(actor_whereis("name") == first.pid);
    options.scheduler = anywhere();
    EXPECT_ERROR(actor_start(&options, &second, PATIENCE), ERR_ALREADY_REGISTERED);
    EXPECT(second.pid == first.pid);
    EXPECT_EQ(world->members[A].begun, 1);
    EXPECT(!mail());
}

/* Somebody else's name can't be unregistered. */
static void reg_06(void)
{
    actor_pid a = spawn_worker(A, &worker_class), holder;
    EXPECT_OK(actor_register("name", a, &holder));
    actor_unregister("name");
    EXPECT(actor_whereis("name") == a);
}

/* The same actor again: already registered, with itself as the holder. */
static void reg_07(void)
{
    actor_pid holder = 0;
    EXPECT_OK(actor_register("name", actor_self(), &holder));
    EXPECT_ERROR(actor_register("name", actor_self(), &holder), ERR_ALREADY_REGISTERED);
    EXPECT(holder == actor_self());
}

/* A message by name reaches whoever has it when it is sent. */
static void reg_11(void)
{
    actor_pid a = spawn_worker(A, &worker_class), b = spawn_worker(B, &worker_class), holder;
    const uint64_t one = 1;
    EXPECT_OK(actor_register("name", a, &holder));
    EXPECT_OK(actor_send_name("name", message_of(ORDER_ADD, &one, sizeof one)));
    uint64_t ref = watch(a);
    order_exit(a, NORMAL);
    wait_down(ref);
    EXPECT_OK(actor_send_name("name", message_of(ORDER_ADD, &one, sizeof one)));
    EXPECT_OK(actor_register("name", b, &holder));
    EXPECT_OK(actor_send_name("name", message_of(ORDER_ADD, &one, sizeof one)));
    EXPECT_EQ(ask_sum(b), 1);
}

/* Process groups: joined and left by hand, left by dying, before anybody learns of the death. */
static enum actor_step joiner_init(void *state, const void *args, size_t size)
{
    (void)state;
    (void)args;
    (void)size;
    EXPECT_OK(actor_join("room"));
    return ACTOR_CONTINUE;
}

static enum actor_step joiner_handle(void *state, struct message *m)
{
    (void)state;
    if (m->type == ORDER_FREE)
        EXPECT_OK(actor_leave("room"));
    else if (m->type == ORDER_EXIT)
        return ACTOR_STOP;
    return ACTOR_CONTINUE;
}

static const struct actor_class joiner_class = {
    .name = "joiner", .init = joiner_init, .handle = joiner_handle};

static void reg_13(void)
{
    actor_pid pids[3], members[4];
    EXPECT_EQ(actor_members("room", members, 4), 0);
    for (unsigned i = 0; i < 3; i++) {
        struct start_result born;
        EXPECT_OK(actor_start(&(struct spawn_options){.class = &joiner_class, .scheduler = anywhere()}, &born,
                              PATIENCE));
        pids[i] = born.pid;
    }
    EXPECT_EQ(actor_members("room", members, 4), 3);
    uint64_t ref = watch(pids[0]);
    if (draw(2))
        actor_kill(pids[0]);
    else
        actor_cast(pids[0], ORDER_EXIT, NULL, 0);
    wait_down(ref);
    EXPECT_EQ(actor_members("room", members, 4), 2);
    actor_cast(pids[1], ORDER_FREE, NULL, 0);
    settle();
    EXPECT_EQ(actor_members("room", members, 4), 1);
    EXPECT(members[0] == pids[2]);
    EXPECT(actor_alive(pids[1]));
}

#define ROWS(X)                       \
    X("REG-01", reg_01, 0)            \
    X("REG-02", reg_02, 0)            \
    X("REG-03", reg_03, 0)            \
    X("REG-05", reg_05, 0)            \
    X("REG-08", reg_08, 0)            \
    X("REG-09", reg_09, ROW_ONCE)     \
    X("REG-10", reg_10, 0)            \
    X("REG-12", reg_12, 0)            \
    X("STORM-04", storm_04, ROW_ONCE) \
    X("REG-04", reg_04, 0)            \
    X("REG-06", reg_06, 0)            \
    X("REG-07", reg_07, 0)            \
    X("REG-11", reg_11, 0)            \
    X("REG-13", reg_13, 0)

ROWS_TEST_LIST;
