#include "acutest.h"
#include "tests/runtime/node.h"

#include "runtime/scheduler.h"

/* ---- a receiver that writes down what came ---- */

#define CAPACITY  4

#define SET_ALARM 900 /* for the deadline that it holds */

static uint64_t came[64];
static size_t came_count;
static unsigned exits, downs;

static enum actor_step sink_handle(void *state, struct message *m)
{
    (void)state;
    uint64_t *value = message_body(m, sizeof *value);
    if (m->type == NOTE && value && came_count < 64)
        came[came_count++] = *value;
    if (m->type == SET_ALARM && value) {
        actor_timer(*value, NOTE, *value);
        return ACTOR_CONTINUE;
    }
    exits += m->type == MESSAGE_EXIT;
    downs += m->type == MESSAGE_DOWN;
    return doll_handle(state, m);
}

static const struct actor_class refusing = {
    .name = "refusing", .handle = sink_handle, .trap_exits = true, .mailbox_capacity = CAPACITY};
static const struct actor_class dropping = {.name = "dropping",
                                            .handle = sink_handle,
                                            .trap_exits = true,
                                            .mailbox_policy = MAILBOX_DROP_OLDEST,
                                            .mailbox_capacity = CAPACITY};
static const struct actor_class waiting = {.name = "waiting",
                                           .handle = sink_handle,
                                           .trap_exits = true,
                                           .mailbox_policy = MAILBOX_WAIT,
                                           .mailbox_capacity = CAPACITY};

static actor_pid sink(const struct actor_class *class)
{
    came_count = exits = downs = 0;
    actor_pid pid = spawn(class, anywhere());
    settle();
    actor_suspend(pid);
    settle();
    return pid;
}

static void open_up(actor_pid pid)
{
    actor_resume(pid);
    settle();
}

static void gone(actor_pid pid)
{
    actor_kill(pid);
    ended(pid);
}

static enum error put(actor_pid pid, uint64_t value)
{
    return actor_cast(pid, NOTE, &value, sizeof value);
}

static void refuse(void)
{
    actor_pid pid = sink(&refusing);
    for (uint64_t i = 0; i < CAPACITY; i++) {
        TEST_CHECK(put(pid, i) == OK);
        settle();
    }
    TEST_CHECK(put(pid, 99) == ERR_FULL); /* known at once, here or there */
    TEST_CHECK(actor_call(pid, message_new(ASK, 0), NULL, DEADLINE_NONE) == ERR_FULL);
    open_up(pid);
    TEST_CHECK(came_count == CAPACITY && came[0] == 0 && came[CAPACITY - 1] == CAPACITY - 1);
    TEST_CHECK(put(pid, 5) == OK);
    /* Many at once from elsewhere: what slips through meets the same bound. */
    settle();
    came_count = 0;
    actor_suspend(pid);
    settle();
    unsigned accepted = 0;
    for (uint64_t i = 0; i < 20; i++)
        accepted += put(pid, i) == OK;
    settle();
    struct actor_info info;
    TEST_CHECK(actor_inspect(pid, &info, DEADLINE_NONE) == OK && info.mailbox_depth == CAPACITY &&
               accepted >= CAPACITY);
    open_up(pid);
    TEST_CHECK(came_count == CAPACITY && came[CAPACITY - 1] == CAPACITY - 1);
    gone(pid);
}

static void test_refuse(void)
{
    node_sim(refuse);
}

static void drop_oldest(void)
{
    actor_pid pid = sink(&dropping);
    uint64_t ref;
    size_t index;
    TEST_CHECK(actor_request(pid, message_new(ASK, 0), &ref) == OK); /* a call that is dropped is answered */
    for (uint64_t i = 0; i < 10; i++)
        TEST_CHECK(put(pid, i) == OK);
    TEST_CHECK(actor_request_wait(&ref, 1, &index, NULL, DEADLINE_NONE) == ERR_FULL);
    open_up(pid);
    TEST_CHECK(came_count == CAPACITY && came[0] == 6 && came[3] == 9);
    gone(pid);
}

/* A sender that would wait is let in at once where the oldest makes room, and the bound holds. */
static void drop_for_waiting(void)
{
    actor_pid pid = sink(&dropping);
    for (uint64_t i = 0; i < 6; i++) {
        TEST_CHECK(put(pid, i) == OK);
        TEST_CHECK(actor_send_wait(pid, message_of(NOTE, &(uint64_t){10 + i}, sizeof i), DEADLINE_NONE) ==
                   OK);
        settle();
        struct actor_info info;
        TEST_CHECK(actor_inspect(pid, &info, DEADLINE_NONE) == OK && info.mailbox_depth <= CAPACITY);
    }
    open_up(pid);
    TEST_CHECK(came_count == CAPACITY && came[CAPACITY - 2] == 5 && came[CAPACITY - 1] == 15);
    gone(pid);
}

/* Whoever works by its timer would never be heard of again. */
static void drop_no_timer(void)
{
    actor_pid pid = spawn(&dropping, anywhere());
    uint64_t first = actor_now() + 1000, second = first + 1000;
    came_count = 0;
    actor_cast(pid, SET_ALARM, &first, sizeof first);
    actor_cast(pid, SET_ALARM, &second, sizeof second);
    settle();
    actor_suspend(pid);
    actor_sleep(second + 1000);
    for (uint64_t i = 0; i < 10; i++)
        TEST_CHECK(put(pid, i) == OK);
    settle();
    open_up(pid);
    TEST_CHECK(came_count == CAPACITY && came[0] == first && came[1] == second && came[2] == 8 &&
               came[3] == 9);
    gone(pid);
}

static void test_drop_no_timer(void)
{
    node_sim(drop_no_timer);
}

static void test_drop_for_waiting(void)
{
    node_sim(drop_for_waiting);
}

static void test_drop_oldest(void)
{
    node_sim(drop_oldest);
}

static actor_pid target;
static void link_and_watch(void *arg)
{
    (void)arg;
    actor_link(target);
    actor_monitor(target, 0);
}

/* Signals and timers come whatever lies in the mailbox, and nothing of theirs is dropped to make room. */
static void signals_at_a_full_mailbox(void)
{
    const struct actor_class *const classes[] = {&refusing, &dropping, &waiting};
    for (size_t c = 0; c < 3; c++) {
        target = doll(anywhere());
        actor_pid pid = spawn(classes[c], anywhere());
        tell(pid, link_and_watch, NULL);
        settle();
        came_count = exits = downs = 0;
        actor_suspend(pid);
        settle();
        for (uint64_t i = 0; i < CAPACITY; i++)
            TEST_CHECK(put(pid, i) == OK);
        gone(target);
        settle();
        for (uint64_t i = 0; i < 2 * CAPACITY; i++)
            put(pid, 10 + i);
        open_up(pid);
        TEST_CHECK(exits == 1 && downs == 1);
        TEST_CHECK(came_count <= CAPACITY + 2 && came_count >= CAPACITY - 2);
        gone(pid);
    }
}

static void test_signals_at_a_full_mailbox(void)
{
    node_sim(signals_at_a_full_mailbox);
}

/* ---- senders that wait ---- */

static enum error results[8];
static unsigned done;
static uint64_t patience;
static void send_waiting(void *arg)
{
    uint64_t value = (uint64_t)(uintptr_t)arg;
    results[value] = ERR_INVALID;
    results[value] = actor_send_wait(target, message_of(NOTE, &value, sizeof value),
                                     patience ? actor_deadline_ms(patience) : DEADLINE_NONE);
    done++;
}

static actor_pid senders[6];
static void send_from_all(void)
{
    done = 0;
    for (uintptr_t i = 0; i < 6; i++) {
        senders[i] = doll(anywhere());
        tell(senders[i], send_waiting, (void *)i);
        settle(); /* one after the other */
    }
}

static void senders_gone(void)
{
    for (int i = 0; i < 6; i++)
        gone(senders[i]);
}

static size_t parked(void)
{
    struct scheduler *s = scheduler_current->rt->schedulers[pid_scheduler(target)];
    size_t n = 0;
    for (struct message *m = actor_of(s, target)->waiting; m; m = m->next)
        n++;
    return n;
}

static void wait_in_order(void)
{
    target = sink(&waiting);
    patience = 0;
    send_from_all();
    TEST_CHECK(done == CAPACITY && parked() == 2);
    TEST_CHECK(put(target, 9) == ERR_FULL); /* a plain send doesn't overtake those who wait */
    open_up(target);
    TEST_CHECK(done == 6 && came_count == 6);
    for (uint64_t i = 0; i < 6; i++)
        TEST_CHECK(came[i] == i && results[i] == OK);
    senders_gone();
    gone(target);
}

static void wait_timeout(void)
{
    target = sink(&waiting);
    patience = 10;
    send_from_all();
    TEST_CHECK(parked() == 2);
    actor_sleep(actor_deadline_ms(20));
    TEST_CHECK(done == 6 && results[4] == ERR_TIMEOUT && results[5] == ERR_TIMEOUT);
    TEST_CHECK(parked() == 0); /* what nobody waits for any more is gone, wherever the mailbox is */
    open_up(target);
    TEST_CHECK(came_count == CAPACITY);
    senders_gone();
    gone(target);
}

static void wait_sender_killed(void)
{
    target = sink(&waiting);
    patience = 0;
    send_from_all();
    gone(senders[4]);
    settle();
    TEST_CHECK(parked() == 1);
    open_up(target);
    TEST_CHECK(came_count == 5 && came[4] == 5 && results[5] == OK);
    senders_gone();
    gone(target);
}

static void wait_receiver_dies(void)
{
    target = sink(&waiting);
    patience = 0;
    send_from_all();
    gone(target);
    settle();
    TEST_CHECK(done == 6 && results[4] == ERR_NOPROC && results[5] == ERR_NOPROC);
    tell(senders[0], send_waiting, (void *)0);
    settle();
    TEST_CHECK(results[0] == ERR_NOPROC);
    senders_gone();
}

/* Everything at once: whatever the order, a message whose sender was told OK arrives, one that was told
 * otherwise mostly doesn't, and none arrives twice. */
static void wait_races(void)
{
    target = spawn(&waiting, anywhere());
    came_count = 0;
    done = 0;
    patience = 1;
    actor_suspend(target);
    for (uintptr_t i = 0; i < 6; i++)
        tell(senders[i] = doll(anywhere()), send_waiting, (void *)i);
    actor_sleep(actor_deadline_ms(1)); /* at the very instant of their deadlines */
    actor_resume(target);
    actor_kill(senders[draw(6)]);
    settle();
    actor_sleep(actor_deadline_ms(5));
    TEST_CHECK(parked() == 0);
    unsigned seen[6] = {0};
    for (size_t i = 0; i < came_count; i++)
        seen[came[i]]++;
    for (int i = 0; i < 6; i++)
        TEST_CHECK(seen[i] <= 1 && (results[i] != OK || seen[i] == 1));
    senders_gone();
    gone(target);
}

static void test_waiting(void)
{
    node_sim(wait_in_order);
    node_sim(wait_timeout);
    node_sim(wait_sender_killed);
    node_sim(wait_receiver_dies);
    node_sim(wait_races);
}

static void wait_refused(void)
{
    TEST_CHECK(actor_send_wait(actor_self(), message_new(NOTE, 0), DEADLINE_NONE) == ERR_CALLING_SELF);
    TEST_CHECK(actor_send_wait(actor_self(), NULL, DEADLINE_NONE) == ERR_MEMORY);
    actor_pid pid = doll(anywhere());
    actor_monitor(pid, 0);
    actor_kill(pid);
    struct message *m = actor_receive(NULL, NULL, DEADLINE_NONE);
    TEST_CHECK(m->type == MESSAGE_DOWN);
    target = doll(anywhere());
    TEST_CHECK(actor_send_wait(target, m, DEADLINE_NONE) ==
               ERR_INVALID); /* not a way to send on what the runtime said */
    gone(target);
}

static void test_wait_refused(void)
{
    node_sim(wait_refused);
}

/* ---- selective receive ---- */

static bool even(const struct message *m, void *arg)
{
    (*(unsigned *)arg)++;
    return m->type == NOTE && *(const uint64_t *)(const void *)m->payload % 2 == 0;
}
static bool none(const struct message *m, void *arg)
{
    (void)m;
    (void)arg;
    return false;
}

static void selective(void)
{
    unsigned looks = 0;
    for (uint64_t i = 0; i < 10; i++)
        note(actor_self(), i);
    for (uint64_t i = 0; i < 5; i++)
        TEST_CHECK(*(uint64_t *)actor_receive(even, &looks, DEADLINE_NONE)->payload == 2 * i);
    uint64_t began = actor_now();
    TEST_CHECK(actor_receive(even, &looks, actor_deadline_ms(3)) == NULL &&
               actor_now() == began + 3 * NS_PER_MS);
    TEST_CHECK(actor_receive(none, NULL, 0) == NULL);
    for (uint64_t i = 0; i < 5; i++) /* the others, in their order */
        TEST_CHECK(*(uint64_t *)actor_receive(NULL, NULL, DEADLINE_NONE)->payload == 2 * i + 1);
    TEST_CHECK(!mail());
}

static bool wanted_last(const struct message *m, void *arg)
{
    (void)arg;
    return m->type == NOTE && *(const uint64_t *)(const void *)m->payload == 1000;
}
static void receive_last(void *arg)
{
    (void)arg;
    struct message *m = actor_receive(wanted_last, NULL, DEADLINE_NONE);
    TEST_CHECK(m != NULL);
    done++;
}

/* While it is parked in the middle of its mailbox, what it has looked at is dropped underneath it. */
static void deletion_underneath(void)
{
    came_count = 0;
    done = 0;
    target = spawn(&dropping, anywhere());
    tell(target, receive_last, NULL);
    settle();
    for (uint64_t i = 0; i < 20; i++) {
        put(target, i);
        if (draw(2))
            settle();
    }
    put(target, 1000);
    settle();
    TEST_CHECK(done == 1 && came_count == CAPACITY - 1 && came[0] == 17 && came[2] == 19);
    gone(target);
    /* The same by demonitor and unlink of the one who waits: nobody else can do that, so between two
     * receives. */
    target = doll(anywhere());
    uint64_t ref = actor_monitor(target, 0), other = actor_monitor(target, 0);
    actor_link(target);
    note(actor_self(), 1);
    gone(target);
    settle();
    unsigned looks = 0;
    TEST_CHECK(actor_receive(even, &looks, 0) == NULL &&
               looks == 4); /* NOTE, DOWN, DOWN, EXIT in some order */
    actor_demonitor(ref);
    actor_unlink(target);
    looks = 0;
    TEST_CHECK(actor_receive(even, &looks, 0) == NULL && looks == 2);
    actor_demonitor(other);
    TEST_CHECK(*(uint64_t *)actor_receive(NULL, NULL, 0)->payload == 1);
    TEST_CHECK(!mail());
}

static void test_selective(void)
{
    node_sim(selective);
    node_sim(deletion_underneath);
}

/* ---- without waiting ---- */

static void at_once(void)
{
    unsigned looks = 0;
    TEST_CHECK(actor_receive_now(NULL, NULL) == NULL);
    for (uint64_t i = 1; i <= 4; i++)
        note(actor_self(), i);
    settle();
    actor_guard_begin(); /* where waiting would be a bug */
    struct message *m = actor_receive_now(even, &looks);
    TEST_CHECK(m && *(uint64_t *)(void *)m->payload == 2 && looks == 2);
    TEST_CHECK(!actor_listen(actor_now() + NS_PER_S)); /* nobody can run meanwhile */
    for (uint64_t i = 1; i <= 4; i += i == 1 ? 2 : 1) {
        m = actor_receive_now(NULL, NULL);
        TEST_CHECK(m && *(uint64_t *)(void *)m->payload == i);
    }
    TEST_CHECK(actor_receive_now(NULL, NULL) == NULL);
    actor_guard_end();
}

static void echo(void *arg)
{
    actor_pid to = *(actor_pid *)arg;
    for (uint64_t i = 0; i < 1000; i++) {
        uint64_t value = *(uint64_t *)expect(NOTE);
        note(to, value + 1);
    }
}

/* Two schedulers: this one listens inside a guarded section, and what it sent has gone out before. A kill waits. */
static void listening(void)
{
    actor_pid here = actor_self(), other = doll(SPAWN_ON(1));
    uint64_t value = 0;
    tell(other, echo, &here);
    for (int i = 0; i < 1000; i++) {
        note(other, value);
        actor_guard_begin();
        struct message *m;
        while (!(m = actor_receive_now(NULL, NULL)))
            (void)actor_listen(actor_now() + NS_PER_S);
        EXPECT(*(uint64_t *)(void *)m->payload == value + 1);
        value = *(uint64_t *)(void *)m->payload;
        message_free(m);
        actor_guard_end();
    }
    EXPECT(value == 1000);
    EXPECT(!actor_listen(0));
}

static void kill_it(void *arg)
{
    actor_pid to = *(actor_pid *)arg;
    note(to, 1);
    actor_kill(to);
    note(to, 2);
}

static _Atomic int heard_before, heard_behind;
static void deaf(void *arg)
{
    actor_pid here = actor_self();
    (void)arg;
    tell(doll(SPAWN_ON(1)), kill_it, &here);
    actor_guard_begin();
    while (actor_listen(actor_now() + 10 * NS_PER_S))
        ;
    heard_before = actor_receive_now(NULL, NULL) != NULL;
    heard_behind = actor_receive_now(NULL, NULL) != NULL;
    actor_guard_end();
    actor_sleep(DEADLINE_NONE);
}

/* What came before a signal is there, what came behind it is not, and the signal ends nobody inside. */
static void listening_and_killed(void)
{
    actor_pid other = doll(SPAWN_ON(0));
    heard_before = heard_behind = -1;
    tell(other, deaf, NULL);
    EXPECT(ended(other).kind == REASON_KILLED);
    EXPECT(heard_before == 1 && heard_behind == 0);
}

static void test_at_once(void)
{
    node_sim(at_once);
    TEST_CHECK(node_real(2, listening) == 0);
    TEST_CHECK(node_real(2, listening_and_killed) == 0);
}

static void receive_once(void *arg)
{
    (void)arg;
    struct message *m = actor_receive(NULL, NULL, actor_deadline_ms(10));
    if (m)
        done += m->type == NOTE ? 1 : 100;
}

/* A stop that lies in the mailbox is for the runtime: a receive in the middle of a handler doesn't take it
 * away. */
static void stop_is_not_received(void)
{
    done = 0;
    target = doll(anywhere());
    tell(target, receive_once, NULL);
    settle();
    TEST_CHECK(actor_stop(target, reason_of(REASON_SHUTDOWN), NULL, actor_deadline_ms(100)) == OK);
    TEST_CHECK(done == 0);
    TEST_CHECK(!mail());
}

static void test_stop_is_not_received(void)
{
    node_sim(stop_is_not_received);
}

/* ---- suspended ---- */

static void suspend_self(void *arg)
{
    (void)arg;
    actor_suspend(actor_self());
}

static void suspension(void)
{
    struct actor_info info;
    target = spawn(&refusing, anywhere());
    came_count = 0;
    settle();
    tell(target, suspend_self, NULL);
    put(target, 1);
    put(target, 2);
    settle();
    TEST_CHECK(came_count == 0);
    TEST_CHECK(actor_inspect(target, &info, DEADLINE_NONE) == OK && info.mailbox_depth == 2);
    TEST_CHECK(strcmp(info.status, "SUSPENDED") == 0);
    open_up(target);
    TEST_CHECK(came_count == 2);
    /* Suspended before its init has run: it waits; killed, it dies all the same. */
    for (int kill = 0; kill < 2; kill++) {
        struct spawn_options o = {.class = &refusing, .scheduler = SPAWN_ON(pid_scheduler(actor_self()))};
        actor_pid pid;
        TEST_CHECK(actor_spawn(&o, &pid) == OK);
        actor_suspend(pid);
        settle();
        TEST_CHECK(actor_inspect(pid, &info, DEADLINE_NONE) == OK && strcmp(info.status, "STARTING") == 0);
        if (kill) {
            actor_kill(pid);
            settle();
            TEST_CHECK(!actor_alive(pid));
        } else {
            actor_resume(pid);
            settle();
            TEST_CHECK(actor_inspect(pid, &info, DEADLINE_NONE) == OK && strcmp(info.status, "IDLE") == 0);
            gone(pid);
        }
    }
    gone(target);
}

static void test_suspension(void)
{
    node_sim(suspension);
}

/* ---- what nobody knows ---- */

static enum actor_step puzzled_handle(void *state, struct message *m)
{
    (void)state;
    actor_unknown(m);
    return ACTOR_CONTINUE;
}

static const struct actor_class puzzled = {
    .name = "puzzled", .handle = puzzled_handle, .mailbox_capacity = 1024};
static const struct actor_class lost = {.name = "lost", .handle = puzzled_handle, .mailbox_capacity = 1024};

static void flood(actor_pid pid, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        TEST_CHECK(actor_cast(pid, 999, NULL, 0) == OK);
    settle();
}

#define UNKNOWN "\"msg\":\"unknown message dropped\""

static void tell_of_unknown(void)
{
    size_t lines = node_logged(UNKNOWN), counted = node_logged("\"left_out\":");
    size_t with_600 = node_logged("\"left_out\":600}"), of_lost = node_logged("\"class\":\"lost\"");
    actor_pid one = spawn(&puzzled, 0), other = spawn(&lost, 0);
    flood(one, 500);
    TEST_CHECK(node_logged(UNKNOWN) == lines + 1 && node_logged("\"left_out\":") == counted);
    actor_sleep(actor_now() + NS_PER_S / 2);
    flood(one, 101);
    TEST_CHECK(node_logged(UNKNOWN) == lines + 1);
    flood(other, 1); /* another class has its own line */
    TEST_CHECK(node_logged(UNKNOWN) == lines + 2 && node_logged("\"class\":\"lost\"") == of_lost + 1);
    actor_sleep(actor_now() + NS_PER_S);
    flood(one, 1);
    TEST_CHECK(node_logged(UNKNOWN) == lines + 3 && node_logged("\"left_out\":600}") == with_600 + 1);
    actor_sleep(actor_now() + NS_PER_S);
    flood(one, 1);
    TEST_CHECK(node_logged(UNKNOWN) == lines + 4 && node_logged("\"left_out\":") == counted + 1);
    gone(one);
    gone(other);
}

static void test_a_flood_of_unknown_messages_is_a_line_a_second(void)
{
    node_sim(tell_of_unknown);
}

TEST_LIST
= {
    {"a full mailbox refuses, here and there", test_refuse},
    {"the oldest makes room", test_drop_oldest},
    {"a timer that has fired makes no room", test_drop_no_timer},
    {"the oldest makes room for one who would wait", test_drop_for_waiting},
    {"signals are never dropped", test_signals_at_a_full_mailbox},
    {"senders wait: order, timeout, death of either side", test_waiting},
    {"senders that can't wait", test_wait_refused},
    {"selective receive, with deletion underneath", test_selective},
    {"a stop is not received by a handler", test_stop_is_not_received},
    {"suspended: by itself, before init, killed", test_suspension},
    {"receiving at once, and listening", test_at_once},
    {"a flood of unknown messages is a line a second, with how many were left out",
     test_a_flood_of_unknown_messages_is_a_line_a_second},
    {NULL, NULL},
};
