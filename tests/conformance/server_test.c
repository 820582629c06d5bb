/* Section R: servers that are asked, and how they begin, end and rest. */
#include "acutest.h"
#include "harness.h"
#include <malloc.h>

/* One server for all of it; what it does is in the type of the message. */
enum {
    ASK_ECHO = ORDER_FREE + 1, /* answers with the payload */
    ASK_SLOWLY,                /* uint64_t: answers after so many ms */
    ASK_CRASH,                 /* struct reason: ends while handling */
    ASK_JUNK,                  /* returns what no handler may */
    ASK_SELF,                  /* calls itself and answers with the error */
    ASK_LATER,                 /* defers */
    ANSWER_ALL,                /* the newest of the deferred first */
    ASK_NOTHING,               /* returns without an answer */
    ASK_TWICE,                 /* answers twice */
    ANSWER,
};

struct server {
    struct actor_from later[8];
    uint64_t numbers[8];
    uint32_t count;
    uint64_t served;
};

static enum actor_step server_handle(void *state, struct message *m)
{
    struct server *s = state;
    enum error e;
    s->served++;
    switch (m->type) {
    case ASK_ECHO:
        actor_reply_bytes(m, ANSWER, m->payload, m->size);
        break;
    case ASK_SLOWLY:
        pass_ms(*(uint64_t *)message_body(m, 8));
        actor_reply_bytes(m, ANSWER, &s->served, sizeof s->served);
        break;
    case ASK_CRASH:
        actor_exit(*(struct reason *)message_body(m, sizeof(struct reason)));
    case ASK_JUNK: {
        volatile int junk = -5;
        return (enum actor_step)junk;
    }
    case ASK_SELF:
        e = actor_call(actor_self(), message_new(ASK_ECHO, 0), NULL, DEADLINE_NONE);
        actor_reply_bytes(m, ANSWER, &e, sizeof e);
        break;
    case ASK_LATER:
        s->numbers[s->count] = *(uint64_t *)message_body(m, 8);
        s->later[s->count++] = actor_defer(m);
        break;
    case ANSWER_ALL:
        while (s->count) {
            s->count--;
            actor_reply_to(s->later[s->count], message_of(ANSWER, &s->numbers[s->count], 8));
        }
        break;
    case ASK_TWICE:
        actor_reply_bytes(m, ANSWER, "one", 4);
        actor_reply_bytes(m, ANSWER, "two", 4);
        break;
    default:
        break;
    }
    return ACTOR_CONTINUE;
}

static void server_terminate(void *state, const struct reason *why)
{
    (void)state;
    world->numbers[0]++;
    world->numbers[1] = why->kind;
}

static const struct actor_class server_class = {.name = "server",
                                                .state_size = sizeof(struct server),
                                                .handle = server_handle,
                                                .terminate = server_terminate};

static actor_pid server(void)
{
    struct start_result born;
    EXPECT_OK(actor_start(&(struct spawn_options){.class = &server_class, .scheduler = anywhere()}, &born,
                          PATIENCE));
    return born.pid;
}

static enum error ask(actor_pid to, uint32_t type, const void *bytes, size_t size, struct message **ret)
{
    *ret = NULL;
    return actor_call(to, message_of(type, bytes, size), ret, PATIENCE);
}

static void expect_echo(actor_pid to)
{
    uint64_t number = draw(1000000);
    struct message *reply;
    EXPECT_OK(ask(to, ASK_ECHO, &number, sizeof number, &reply));
    EXPECT(reply && reply->type == ANSWER);
    EXPECT_EQ(*(uint64_t *)message_body(reply, 8), number);
    message_free(reply);
}

static void expect_down(struct message *reply, actor_pid pid, struct reason why)
{
    struct message_down *d = reply ? message_body(reply, sizeof *d) : NULL;
    EXPECT(d && d->pid == pid);
    EXPECT_REASON(d->reason, why);
}

static void call_01(void)
{
    actor_pid s = server();
    expect_echo(s);
    EXPECT(!mail());
    EXPECT_EQ(ACTOR_CALL_DEFAULT_MS, 5000);
}

static void call_02(void)
{
    actor_pid s = server();
    uint64_t slow = 50, began = actor_now();
    struct message *reply = NULL;
    EXPECT_ERROR(actor_call(s, message_of(ASK_SLOWLY, &slow, sizeof slow), &reply, actor_deadline_ms(1)),
                 ERR_TIMEOUT);
    EXPECT(actor_now() == began + NS_PER_MS);
    EXPECT(!reply);
    pass_ms(100);
    EXPECT(!mail()); /* the answer came too late and isn't there */
    expect_echo(s);
}

static void call_04(void)
{
    actor_pid s = server();
    uint64_t ref = watch(s);
    actor_kill(s);
    wait_down(ref);
    struct message *reply;
    uint64_t began = actor_now();
    EXPECT_ERROR(ask(s, ASK_ECHO, NULL, 0, &reply), ERR_NOPROC);
    EXPECT_ERROR(actor_call_name("nobody", message_new(ASK_ECHO, 0), &reply, PATIENCE), ERR_NOPROC);
    EXPECT_ERROR(ask(0, ASK_ECHO, NULL, 0, &reply), ERR_NOPROC);
    EXPECT(actor_now() == began);
    EXPECT(!mail());
}

static void call_05(void)
{
    actor_pid s = server();
    struct reason why = abnormal();
    struct message *reply;
    uint64_t began = actor_now();
    EXPECT_ERROR(ask(s, ASK_CRASH, &why, sizeof why, &reply), ERR_DOWN);
    expect_down(reply, s, why);
    EXPECT(actor_now() == began);
    EXPECT(!mail());
}

static void call_06(void)
{
    struct message *reply;
    EXPECT_OK(ask(server(), ASK_SELF, NULL, 0, &reply));
    EXPECT_EQ(*(enum error *)message_body(reply, sizeof(enum error)), ERR_CALLING_SELF);
    EXPECT_ERROR(ask(actor_self(), ASK_ECHO, NULL, 0, &reply), ERR_CALLING_SELF);
    EXPECT(!mail());
}

static void call_08(void)
{
    actor_pid s = server();
    uint64_t number = 8080, ref;
    EXPECT_OK(actor_request(s, message_of(ASK_LATER, &number, sizeof number), &ref));
    for (unsigned i = 0; i < 5; i++)
        expect_echo(s);
    size_t index;
    struct message *reply = NULL;
    EXPECT_ERROR(actor_request_wait(&ref, 1, &index, &reply, actor_deadline_ms(100)), ERR_TIMEOUT);
    actor_cast(s, ANSWER_ALL, NULL, 0);
    EXPECT_OK(actor_request_wait(&ref, 1, &index, &reply, PATIENCE));
    EXPECT_EQ(index, 0);
    EXPECT_EQ(*(uint64_t *)message_body(reply, 8), 8080);
    expect_echo(s);
}

static void call_11(void)
{
    actor_pid s = server();
    uint64_t refs[3];
    for (uint64_t i = 0; i < 3; i++) {
        uint64_t number = 100 + i;
        EXPECT_OK(actor_request(s, message_of(ASK_LATER, &number, sizeof number), &refs[i]));
    }
    actor_cast(s, ANSWER_ALL, NULL, 0);
    bool seen[3] = {false};
    for (unsigned i = 0; i < 3; i++) {
        size_t index = 9;
        struct message *reply = NULL;
        uint64_t open[3], n = 0, place[3];
        for (uint64_t k = 0; k < 3; k++)
            if (!seen[k]) {
                place[n] = k;
                open[n++] = refs[k];
            }
        EXPECT_OK(actor_request_wait(open, n, &index, &reply, PATIENCE));
        EXPECT(index < n);
        EXPECT_EQ(*(uint64_t *)message_body(reply, 8), 100 + place[index]);
        EXPECT_EQ(place[index], 2 - i); /* the newest was answered first */
        seen[place[index]] = true;
    }
    EXPECT(!mail());
}

static void call_12(void)
{
    actor_pid s = server();
    uint64_t refs[2], number = 1, began = now_ms();
    size_t index;
    struct message *reply = NULL;
    for (unsigned i = 0; i < 2; i++)
        EXPECT_OK(actor_request(s, message_of(ASK_LATER, &number, sizeof number), &refs[i]));
    EXPECT_ERROR(actor_request_wait(refs, 2, &index, &reply, actor_deadline_ms(100)), ERR_TIMEOUT);
    EXPECT_ERROR(actor_request_wait(refs, 2, &index, &reply, actor_deadline_ms(100)), ERR_TIMEOUT);
    EXPECT_EQ(now_ms() - began, 200);
    actor_request_drop(refs[0]);
    actor_cast(s, ANSWER_ALL, NULL, 0);
    EXPECT_OK(actor_request_wait(&refs[1], 1, &index, &reply, PATIENCE));
    pass_ms(100);
    EXPECT(!mail());
    expect_echo(s);
}

static void call_13(void)
{
    actor_pid s = server();
    struct message *reply;
    EXPECT_ERROR(ask(s, ASK_JUNK, NULL, 0, &reply), ERR_DOWN);
    expect_down(reply, s, reason_of(REASON_BAD_RETURN));
    EXPECT(!actor_alive(s));
}

/* What no handler knows: a worker's default branch lets it go. The runtime's own servers tell telemetry
 * (LIFE-04). */
static void call_14(void)
{
    actor_pid s = server(), sup = start_empty(ONE_FOR_ONE);
    struct runtime_stats before, after;
    settle();
    runtime_stats(runtime_self(), &before);
    for (unsigned i = 0; i < 20; i++)
        EXPECT_OK(actor_cast(s, 5000 + i, "unknown", 7));
    EXPECT_OK(actor_cast(sup, 5000, "unknown", 7));
    settle();
    EXPECT(actor_alive(s) && actor_alive(sup));
    expect_echo(s);
    EXPECT_EQ(TOLD(MESSAGE_UNKNOWN), 1);
    struct actor_info info;
    EXPECT_OK(actor_inspect(s, &info, PATIENCE));
    EXPECT_EQ(info.mailbox_depth, 0);
    runtime_stats(runtime_self(), &after);
    EXPECT_EQ(after.records, before.records);
}

/* ---- beginnings ---- */

static void init_01(void)
{
    /* FAIL_STOP: a start that ends normally before it began; the others as OTP's ignore, error, exit, crash,
     * junk. */
    const struct {
        enum failure how;
        enum error wanted;
        int kind;
    } ways[] = {
        {FAIL_IGNORE, ERR_IGNORED, -1},           {FAIL_STOP, ERR_INIT, REASON_NORMAL},
        {FAIL_REFUSE, ERR_INIT, REASON_ERROR},    {FAIL_EXIT, ERR_INIT, REASON_ERROR},
        {FAIL_JUNK, ERR_INIT, REASON_BAD_RETURN}, {FAIL_CRASH, ERR_INIT, REASON_CRASH},
    };
    struct runtime_stats before, after;
    const struct plan plan = {.number = A};
    for (unsigned way = 0; way < sizeof ways / sizeof ways[0]; way++)
        for (unsigned kind = 0; kind < 3; kind++) {
            settle();
            runtime_stats(runtime_self(), &before);
            for (unsigned i = 0; i < 5; i++) {
                world->members[A].fail = 1;
                world->members[A].failure = ways[way].how;
                struct start_result result = {0};
                EXPECT_ERROR(
                    actor_start(&(struct spawn_options){.class = draw(2) ? &worker_class : &trapper_class,
                                                        .args = &plan,
                                                        .args_size = sizeof plan,
                                                        .name = "novice",
                                                        .link = kind == 1,
                                                        .monitor = kind == 2,
                                                        .scheduler = anywhere()},
                                &result, PATIENCE),
                    ways[way].wanted);
                if (ways[way].kind >= 0)
                    EXPECT_EQ(result.why.kind, ways[way].kind);
                if (result.why.kind == REASON_ERROR)
                    EXPECT_EQ(result.why.code, FAIL_CODE);
                reason_drop(&result.why);
                EXPECT(!actor_whereis("novice"));
                EXPECT_EQ(world->members[A].begun, world->members[A].gone);
                EXPECT_EQ(world->members[A].terminated, 0);
            }
            EXPECT(!mail());
            runtime_stats(runtime_self(), &after);
            EXPECT_EQ(after.actors, before.actors);
            EXPECT_EQ(after.records, before.records);
        }
}

static enum actor_step proceeding_init(void *state, const void *args, size_t size)
{
    (void)state;
    (void)args;
    (void)size;
    world->numbers[2] = 1;
    return ACTOR_PROCEED;
}

static enum actor_step proceeding_proceed(void *state)
{
    (void)state;
    EXPECT_EQ(world->numbers[3], 0);
    if (draw(2))
        pass_ms(10);
    world->numbers[2] = 2;
    return ACTOR_CONTINUE;
}

static enum actor_step proceeding_handle(void *state, struct message *m)
{
    (void)state;
    (void)m;
    EXPECT_EQ(world->numbers[2], 2);
    world->numbers[3]++;
    return ACTOR_CONTINUE;
}

static const struct actor_class proceeding_class = {.name = "proceeding",
                                                    .init = proceeding_init,
                                                    .proceed = proceeding_proceed,
                                                    .handle = proceeding_handle};

static void init_02(void)
{
    actor_pid pid;
    const struct spawn_options options = {.class = &proceeding_class, .scheduler = anywhere()};
    EXPECT_OK(actor_spawn(&options, &pid));
    for (unsigned i = 0; i < 10; i++)
        actor_cast(pid, 1, NULL, 0);
    pass_ms(50);
    EXPECT_EQ(world->numbers[3], 10);
}

/* ---- endings ---- */

static void term_01(void)
{
    actor_pid s = server();
    EXPECT_OK(actor_stop(s, NORMAL, NULL, PATIENCE));
    EXPECT(!actor_alive(s));
    EXPECT_EQ(world->numbers[0], 1);
    EXPECT_EQ(world->numbers[1], REASON_NORMAL);
    EXPECT_ERROR(actor_stop(s, NORMAL, NULL, PATIENCE), ERR_NOPROC);
    EXPECT(!mail());
}

static void term_02(void)
{
    const struct plan plan = {.number = A, .dying = shutdown_with(77)};
    struct start_result born;
    EXPECT_OK(actor_start(
        &(struct spawn_options){
            .class = &worker_class, .args = &plan, .args_size = sizeof plan, .scheduler = anywhere()},
        &born, PATIENCE));
    struct reason why = NORMAL;
    EXPECT_OK(actor_stop(born.pid, NORMAL, &why, PATIENCE));
    EXPECT_REASON(why, shutdown_with(77));
    EXPECT(!actor_alive(born.pid));
}

static void term_04(void)
{
    struct reason crash = abnormal(), why = NORMAL;
    const struct plan plan = {.number = A, .dying = crash};
    struct start_result born;
    EXPECT_OK(actor_start(
        &(struct spawn_options){
            .class = &worker_class, .args = &plan, .args_size = sizeof plan, .scheduler = anywhere()},
        &born, PATIENCE));
    uint64_t ref = watch(born.pid);
    EXPECT_OK(actor_stop(born.pid, draw(2) ? NORMAL : SHUTDOWN, &why, PATIENCE));
    EXPECT_REASON(why, crash);
    EXPECT_REASON(wait_down(ref), crash);
    EXPECT_EQ(world->members[A].terminated, 1);
}

/* The row is the parent: its exit signal is what a linked child gets when its parent ends. Whoever was
 * spawned without a link has no parent in this sense: the same signal is a message to it. */
static void term_05(void)
{
    struct reason why = draw(3) ? abnormal() : draw(2) ? SHUTDOWN : shutdown_with(5);
    const struct plan plan = {.number = A};
    actor_pid child, stranger = spawn_worker(B, &trapper_class);
    EXPECT_OK(actor_spawn(&(struct spawn_options){.class = &trapper_class,
                                                  .args = &plan,
                                                  .args_size = sizeof plan,
                                                  .link = true,
                                                  .scheduler = anywhere()},
                          &child));
    EXPECT_OK(actor_link(stranger));
    uint64_t ref = watch(child);
    actor_exit_signal(child, why);
    actor_exit_signal(stranger, why);
    EXPECT_REASON(wait_down(ref), why);
    EXPECT_EQ(world->members[A].terminated, 1);
    EXPECT_EQ(world->members[A].exits, 0);
    EXPECT_REASON(world->members[A].why, why);
    settle();
    EXPECT(actor_alive(stranger));
    EXPECT_EQ(world->members[B].exits, 1);
    EXPECT_REASON(world->members[B].exit_why, why);
}

static void term_07(void)
{
    actor_pid a = spawn_worker(A, draw(2) ? &trapper_class : &worker_class);
    uint64_t ref = watch(a);
    settle();
    actor_kill(a);
    EXPECT_REASON(wait_down(ref), KILLED);
    EXPECT_EQ(world->members[A].terminated, 0);
    EXPECT_EQ(world->members[A].gone, 1);
}

static void term_08(void)
{
    const struct reason quiet[] = {NORMAL, SHUTDOWN, shutdown_with(3)};
    for (unsigned i = 0; i < 3; i++) {
        order_exit(spawn_worker(A, &worker_class), quiet[i]);
        settle();
        EXPECT_EQ(world->log_size, 0);
    }
    struct reason why = abnormal();
    actor_pid a = spawn_worker(B, &worker_class);
    order_add(a, 0x1122334455667788);
    order_exit(a, why);
    settle();
    EXPECT_EQ(logged("{"), 1);
    EXPECT_EQ(logged(worker_class.name), 1);
    EXPECT_EQ(logged("\"last_message_type\":1"), 1); /* ORDER_EXIT */
    EXPECT_EQ(logged("\"state\":\""), 1);
    EXPECT_EQ(logged(reason_name((enum reason_kind)why.kind)), 1);
}

/* ---- rest ---- */

static void hib_01(void)
{
    actor_pid servers[20];
    for (unsigned i = 0; i < 20; i++) {
        servers[i] = spawn_worker(A, &worker_class);
        order_add(servers[i], i);
    }
    pass_ms(60000);
    struct runtime_stats stats;
    runtime_stats(runtime_self(), &stats);
    EXPECT_EQ(stats.stacks_in_use, 1); /* ours */
    struct actor_info info;
    EXPECT_OK(actor_inspect(servers[7], &info, PATIENCE));
    EXPECT(!strcmp(info.status, "IDLE"));
    for (unsigned i = 0; i < 20; i++)
        EXPECT_EQ(ask_sum(servers[i]), i);
}

static void hib_02(void)
{
    uint64_t rounds = world->full ? 10000 : 100;
    actor_pid a = spawn_worker(A, &worker_class), b = spawn_worker(B, &worker_class);
    for (uint64_t i = 0; i < rounds; i++) {
        order_add(i % 2 ? a : b, 1);
        for (uint32_t k = draw(4); k; k--)
            actor_yield();
        if (i % 16 == 0)
            settle();
    }
    settle();
    EXPECT_EQ(ask_sum(a) + ask_sum(b), rounds);
    for (uint64_t i = 0; i < rounds / 10; i++)
        EXPECT_EQ(ask_sum(i % 2 ? a : b), rounds / 2);
}

static void hib_03(void)
{
    actor_pid a = spawn_worker(A, &worker_class);
    struct runtime_stats before, after;
    size_t heap = 0;
    for (unsigned i = 0; i < 100; i++) {
        pass_ms(1000);
        order_add(a, 1);
        settle();
        if (i == 10) {
            runtime_stats(runtime_self(), &before);
            heap = mallinfo2().uordblks;
        }
    }
    EXPECT_EQ(mallinfo2().uordblks, heap);
    runtime_stats(runtime_self(), &after);
    EXPECT_EQ(after.message_bytes, before.message_bytes);
    EXPECT_EQ(after.actor_bytes, before.actor_bytes);
    EXPECT_EQ(after.record_bytes, before.record_bytes);
    EXPECT_EQ(after.stacks, before.stacks);
    EXPECT_EQ(after.stacks_in_use, before.stacks_in_use);
    EXPECT_EQ(ask_sum(a), 100);
}

/* ---- beyond the table ---- */

/* A handler that returns without an answer: the caller is told at once. */
static void call_03(void)
{
    actor_pid s = server();
    struct message *reply;
    uint64_t began = actor_now();
    EXPECT_ERROR(ask(s, ASK_NOTHING, NULL, 0, &reply), ERR_UNANSWERED);
    EXPECT(actor_now() == began);
    expect_echo(s);
}

/* A second answer is dropped. */
static void call_07(void)
{
    actor_pid s = server();
    struct message *reply;
    EXPECT_OK(ask(s, ASK_TWICE, NULL, 0, &reply));
    EXPECT(!memcmp(reply->payload, "one", 4));
    EXPECT(!mail());
    expect_echo(s);
}

/* A server that ends while calls wait, or with a deferred one: every caller is told why. */
static void call_09(void)
{
    actor_pid s = server();
    uint64_t refs[4], number = 3;
    for (unsigned i = 0; i < 4; i++)
        EXPECT_OK(
            actor_request(s, message_of(i < 2 ? ASK_LATER : ASK_ECHO, &number, sizeof number), &refs[i]));
    EXPECT_OK(actor_request(s, message_of(ASK_LATER, &number, sizeof number), &refs[3]));
    settle();
    struct reason why = abnormal();
    actor_cast(s, ASK_CRASH, &why, sizeof why);
    for (unsigned i = 0; i < 4; i++) {
        size_t index;
        struct message *reply = NULL;
        enum error e = actor_request_wait(&refs[i], 1, &index, &reply, PATIENCE);
        if (i == 2)
            EXPECT_EQ(e, OK);
        else {
            EXPECT_ERROR(e, ERR_DOWN);
            expect_down(reply, s, why);
        }
    }
}

/* Two that call each other: both wait, both get their deadline, neither hangs. */
static enum actor_step caller_handle(void *state, struct message *m)
{
    (void)state;
    if (m->kind == MESSAGE_CALL)
        return ACTOR_CONTINUE;
    actor_pid other = *(actor_pid *)message_body(m, sizeof other);
    enum error e = actor_call(other, message_new(ASK_ECHO, 0), NULL, actor_deadline_ms(100));
    world->numbers[4 + (e == ERR_TIMEOUT)]++;
    return ACTOR_CONTINUE;
}

static const struct actor_class caller_class = {.name = "caller", .handle = caller_handle};

static void call_10(void)
{
    actor_pid pids[2];
    for (unsigned i = 0; i < 2; i++)
        EXPECT_OK(
            actor_spawn(&(struct spawn_options){.class = &caller_class, .scheduler = anywhere()}, &pids[i]));
    for (unsigned i = 0; i < 2; i++)
        actor_cast(pids[i], 1, &pids[1 - i], sizeof pids[0]);
    pass_ms(1000);
    EXPECT_EQ(world->numbers[4] + world->numbers[5], 2);
    EXPECT(world->numbers[5] >= 1 || world->numbers[4] == 2);
    EXPECT(actor_alive(pids[0]) && actor_alive(pids[1]));
}

/* A name that moves while it is called: the call reaches the one who had it. */
static void call_15(void)
{
    actor_pid s = server(), holder;
    EXPECT_OK(actor_register("service", s, &holder));
    struct message *reply = NULL;
    uint64_t number = 5;
    EXPECT_OK(actor_call_name("service", message_of(ASK_ECHO, &number, sizeof number), &reply, PATIENCE));
    EXPECT_EQ(*(uint64_t *)message_body(reply, 8), 5);
    uint64_t ref = watch(s);
    actor_kill(s);
    wait_down(ref);
    EXPECT_ERROR(actor_call_name("service", message_new(ASK_ECHO, 0), &reply, PATIENCE), ERR_NOPROC);
    EXPECT_OK(actor_register("service", server(), &holder));
    EXPECT_OK(actor_call_name("service", message_of(ASK_ECHO, &number, sizeof number), &reply, PATIENCE));
}

/* Many callers of one server: each gets its own answer. */
static enum actor_step client_handle(void *state, struct message *m)
{
    (void)state;
    expect_echo(*(actor_pid *)message_body(m, sizeof(actor_pid)));
    world->numbers[6]++;
    return ACTOR_CONTINUE;
}

static const struct actor_class client_class = {.name = "client", .handle = client_handle};

static void call_16(void)
{
    actor_pid s = server(), client;
    for (unsigned i = 0; i < 12; i++) {
        EXPECT_OK(
            actor_spawn(&(struct spawn_options){.class = &client_class, .scheduler = anywhere()}, &client));
        for (unsigned k = 0; k < 4; k++)
            actor_cast(client, 1, &s, sizeof s);
    }
    settle();
    EXPECT_EQ(world->numbers[6], 48);
}

/* A start whose deadline passes: the newcomer is killed, whatever it was doing, and nothing comes of it
 * later. */
static void init_03(void)
{
    const struct plan plan = {.number = A, .init_ms = 10000};
    struct start_result result = {0};
    EXPECT_ERROR(actor_start(&(struct spawn_options){.class = &trapper_class,
                                                     .args = &plan,
                                                     .args_size = sizeof plan,
                                                     .name = "slow",
                                                     .link = draw(2),
                                                     .monitor = draw(2),
                                                     .scheduler = anywhere()},
                             &result, actor_deadline_ms(100)),
                 ERR_TIMEOUT);
    settle();
    EXPECT(!actor_whereis("slow"));
    EXPECT_EQ(world->members[A].gone, 1);
    EXPECT_EQ(world->members[A].ready, 0);
    pass_ms(20000);
    EXPECT(!mail());
}

/* The continuation may end the actor, too. */
static void init_04(void)
{
    const struct plan plan = {.number = A, .crash_ms = 5};
    struct start_result born;
    EXPECT_OK(actor_start(&(struct spawn_options){.class = &worker_class,
                                                  .args = &plan,
                                                  .args_size = sizeof plan,
                                                  .monitor = true,
                                                  .scheduler = anywhere()},
                          &born, PATIENCE));
    EXPECT_EQ(wait_down(born.ref).kind, REASON_CRASH);
}

/* stop waits for what is in the mailbox before it: those are still served. */
static void term_03(void)
{
    actor_pid a = spawn_worker(A, &worker_class), b = spawn_worker(B, &worker_class);
    for (uint64_t i = 0; i < 10; i++)
        order_pid(a, ORDER_UNLINK, b);
    uint64_t ref;
    EXPECT_OK(actor_request(a, message_new(ORDER_SUM, 0), &ref));
    struct reason why;
    EXPECT_OK(actor_stop(a, shutdown_with(2), &why, PATIENCE));
    EXPECT_REASON(why, shutdown_with(2));
    size_t index;
    EXPECT_OK(actor_request_wait(&ref, 1, &index, NULL, PATIENCE));
    EXPECT_EQ(world->members[A].terminated, 1);
}

/* One that doesn't come back to its mailbox isn't stopped in time; the caller gets its deadline. */
static void term_06(void)
{
    actor_pid a = spawn_worker(A, &worker_class);
    order_hang(a);
    EXPECT_ERROR(actor_stop(a, NORMAL, NULL, actor_deadline_ms(300)), ERR_TIMEOUT);
    EXPECT(actor_alive(a));
    actor_kill(a);
    EXPECT(!mail());
}

/* A terminate that takes long is waited for by who stops; a kill doesn't wait for it. */
static void term_09(void)
{
    const struct plan plan = {.number = A, .end_ms = 5000};
    struct start_result born;
    struct spawn_options options = {
        .class = &worker_class, .args = &plan, .args_size = sizeof plan, .scheduler = anywhere()};
    EXPECT_OK(actor_start(&options, &born, PATIENCE));
    uint64_t began = now_ms();
    EXPECT_OK(actor_stop(born.pid, NORMAL, NULL, PATIENCE));
    EXPECT_EQ(now_ms() - began, 5000);
    EXPECT_OK(actor_start(&options, &born, PATIENCE));
    uint64_t ref = watch(born.pid);
    began = now_ms();
    EXPECT_ERROR(actor_stop(born.pid, NORMAL, NULL, actor_deadline_ms(100)), ERR_TIMEOUT);
    actor_kill(born.pid);
    EXPECT_REASON(wait_down(ref), KILLED);
    EXPECT_EQ(now_ms() - began, 100);
}

/* Suspended: nothing is handled, the mailbox fills, inspection passes; resumed, all is handled in order. */
static void hib_04(void)
{
    actor_pid a = spawn_worker(A, &worker_class);
    settle();
    actor_suspend(a);
    for (unsigned i = 0; i < 10; i++)
        order_add(a, 1);
    pass_ms(1000);
    struct actor_info info;
    EXPECT_OK(actor_inspect(a, &info, PATIENCE));
    EXPECT_EQ(info.mailbox_depth, 10);
    EXPECT(!strcmp(info.status, "SUSPENDED"));
    actor_resume(a);
    EXPECT_EQ(ask_sum(a), 10);
}

#define ROWS(X)                   \
    X("CALL-01", call_01, 0)      \
    X("CALL-02", call_02, 0)      \
    X("CALL-04", call_04, 0)      \
    X("CALL-05", call_05, 0)      \
    X("CALL-06", call_06, 0)      \
    X("CALL-08", call_08, 0)      \
    X("CALL-11", call_11, 0)      \
    X("CALL-12", call_12, 0)      \
    X("CALL-13", call_13, 0)      \
    X("CALL-14", call_14, 0)      \
    X("INIT-01", init_01, 0)      \
    X("INIT-02", init_02, 0)      \
    X("TERM-01", term_01, 0)      \
    X("TERM-02", term_02, 0)      \
    X("TERM-04", term_04, 0)      \
    X("TERM-05", term_05, 0)      \
    X("TERM-07", term_07, 0)      \
    X("TERM-08", term_08, 0)      \
    X("HIB-01", hib_01, 0)        \
    X("HIB-02", hib_02, ROW_ONCE) \
    X("HIB-03", hib_03, 0)        \
    X("CALL-03", call_03, 0)      \
    X("CALL-07", call_07, 0)      \
    X("CALL-09", call_09, 0)      \
    X("CALL-10", call_10, 0)      \
    X("CALL-15", call_15, 0)      \
    X("CALL-16", call_16, 0)      \
    X("INIT-03", init_03, 0)      \
    X("INIT-04", init_04, 0)      \
    X("TERM-03", term_03, 0)      \
    X("TERM-06", term_06, 0)      \
    X("TERM-09", term_09, 0)      \
    X("HIB-04", hib_04, 0)

ROWS_TEST_LIST;
