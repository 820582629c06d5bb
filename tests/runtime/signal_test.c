#include "acutest.h"
#include "tests/runtime/node.h"

#include "runtime/scheduler.h"

static void gone(actor_pid pid)
{
    actor_kill(pid);
    ended(pid);
}

/* ---- links ---- */

static actor_pid a, b;
static void link_to(void *arg)
{
    TEST_CHECK(actor_link(*(actor_pid *)arg) == OK);
}
static void unlink_from(void *arg)
{
    actor_unlink(*(actor_pid *)arg);
}
static void fail(void *arg)
{
    (void)arg;
    actor_fail(3, "because");
}

static uint32_t links_of(actor_pid pid)
{
    struct actor_info info;
    TEST_CHECK(actor_inspect(pid, &info, DEADLINE_NONE) == OK);
    return info.links;
}

/* Whatever links and unlinks cross each other: in the end both are linked or neither is, and what a last link says holds. */
static void link_races(void)
{
    for (int round = 0; round < 8; round++) {
        a = doll(anywhere());
        b = doll(anywhere());
        for (int i = 0; i < 6; i++) {
            bool first = draw(2);
            tell(first ? a : b, draw(5) < 3 ? link_to : unlink_from, first ? &b : &a);
            if (draw(4) == 0)
                settle();
        }
        settle();
        TEST_CHECK_(links_of(a) == links_of(b), "%u and %u (seed %llu)", links_of(a), links_of(b),
                    (unsigned long long)node_seed);
        uint32_t linked = links_of(a);
        if (draw(2)) { /* links that are made now hold, whatever was before */
            tell(a, link_to, &b);
            settle();
            linked = 1;
            TEST_CHECK_(links_of(a) == 1 && links_of(b) == 1, "seed %llu", (unsigned long long)node_seed);
        }
        uint64_t ref = actor_monitor(b, 0);
        tell(a, fail, NULL);
        settle();
        TEST_CHECK_(actor_alive(b) == !linked, "linked %u, seed %llu", linked, (unsigned long long)node_seed);
        actor_kill(b);
        TEST_CHECK(down(ref).kind == (linked ? REASON_ERROR : REASON_KILLED));
    }
}

static void test_link_races(void)
{
    node_sim(link_races);
}

/* Both ask at once, one takes it back at once: the crossing that leaves half a link when it is taken amiss. */
static void link_and_unlink(void *arg)
{
    link_to(arg);
    unlink_from(arg);
}

static void link_crossing(void)
{
    for (int round = 0; round < 20; round++) {
        a = doll(SPAWN_ON(0));
        b = doll(SPAWN_ON(runtime_schedulers() - 1));
        tell(a, link_and_unlink, &b);
        tell(b, link_to, &a);
        settle();
        TEST_CHECK_(links_of(a) == links_of(b), "%u and %u", links_of(a), links_of(b));
        tell(a, link_to, &b);
        settle();
        TEST_CHECK(links_of(a) == 1 && links_of(b) == 1);
        actor_kill(b);
        settle();
        TEST_CHECK(!actor_alive(a));
        gone(a);
    }
}

static void test_link_crossing(void)
{
    node_sim(link_crossing);
}

/* A dead or dying one is linked to: an EXIT, once. */
static void link_to_the_dead(void)
{
    for (int round = 0; round < 10; round++) {
        actor_pid d = doll(anywhere());
        if (draw(2))
            tell(d, fail, NULL);
        else
            actor_kill(d);
        if (draw(2))
            settle();
        TEST_CHECK(actor_link(d) == OK);
        struct message_exit *x = expect(MESSAGE_EXIT);
        TEST_CHECK(x->pid == d && x->reason.kind != REASON_NORMAL);
        settle();
        TEST_CHECK(!mail());
        /* Unlinked at once: none. */
        d = doll(anywhere());
        actor_kill(d);
        TEST_CHECK(actor_link(d) == OK);
        actor_unlink(d);
        settle();
        TEST_CHECK(!mail());
    }
    TEST_CHECK(actor_link(actor_self()) == OK);
    actor_unlink(actor_self());
    TEST_CHECK(links_of(actor_self()) == 0);
}

static void test_link_to_the_dead(void)
{
    node_sim(link_to_the_dead);
}

/* A ring of linked ones and a kill in it: all end, each EXIT once, with the first reason. */
static unsigned exits;
static enum actor_step counting_handle(void *state, struct message *m)
{
    exits += m->type == MESSAGE_EXIT;
    return doll_handle(state, m);
}
static const struct actor_class counting_class = {
    .name = "counting", .handle = counting_handle, .trap_exits = true};

static void ring(void)
{
    actor_pid pids[10], witness = spawn(&counting_class, anywhere());
    exits = 0;
    for (int i = 0; i < 10; i++)
        pids[i] = doll(anywhere());
    for (int i = 0; i < 10; i++) {
        tell(pids[i], link_to, &pids[(i + 1) % 10]);
        tell(witness, link_to, &pids[i]);
        tell(pids[i], link_to, &witness);
    }
    settle();
    uint64_t refs[10];
    for (int i = 0; i < 10; i++)
        refs[i] = actor_monitor(pids[i], 0);
    tell(pids[draw(10)], fail, NULL);
    for (int i = 0; i < 10; i++)
        TEST_CHECK(down(refs[i]).kind == REASON_ERROR);
    settle();
    TEST_CHECK(exits == 10 && actor_alive(witness) && links_of(witness) == 0);
    gone(witness);
    TEST_CHECK(!mail());
}

static void test_ring(void)
{
    node_sim(ring);
}

/* ---- monitors ---- */

/* Whoever ties itself to an actor elsewhere learns of the record there: untying many is not a walk over all. */
static void ties_know_each_other(void)
{
    actor_pid d = doll(anywhere());
    uint64_t ref = actor_monitor(d, 0);
    TEST_CHECK(actor_link(d) == OK);
    settle();
    const struct scheduler *s = scheduler_current, *there = s->rt->schedulers[pid_scheduler(d)];
    const struct record *mine = &s->records[pid_slot(ref)], *link = &s->records[s->current->links];
    TEST_CHECK(mine->kind == RECORD_MONITOR &&
               there->records[pid_slot(mine->tie.peer_ref)].tie.peer_ref == ref);
    TEST_CHECK(link->kind == RECORD_LINK && link->tie.peer == d &&
               there->records[pid_slot(link->tie.peer_ref)].tie.peer == actor_self());
    actor_unlink(d);
    actor_demonitor(ref);
    settle();
    TEST_CHECK(there->actors[pid_slot(d)].links == 0 && there->actors[pid_slot(d)].watchers == 0);
    actor_kill(d);
}

static void test_ties_know_each_other(void)
{
    node_sim(ties_know_each_other);
}

/* Demonitor and death at the same time: one DOWN or none, and none after demonitor has returned. */
static void monitor_races(void)
{
    for (int round = 0; round < 10; round++) {
        actor_pid d = doll(anywhere());
        uint64_t refs[5];
        for (int i = 0; i < 5; i++)
            refs[i] = actor_monitor(d, (uint64_t)i);
        if (draw(2))
            tell(d, fail, NULL);
        else
            actor_kill(d);
        if (draw(2))
            actor_yield();
        actor_demonitor(refs[1]);
        if (draw(2))
            settle();
        actor_demonitor(refs[3]);
        actor_demonitor(refs[3]);
        unsigned seen[5] = {0};
        settle();
        for (struct message *m; (m = actor_receive(NULL, NULL, 0));) {
            struct message_down *x = message_body(m, sizeof *x);
            TEST_CHECK(m->type == MESSAGE_DOWN && x && x->pid == d && x->ref == refs[x->tag]);
            if (x)
                seen[x->tag]++;
        }
        TEST_CHECK(seen[0] == 1 && seen[1] == 0 && seen[2] == 1 && seen[3] == 0 && seen[4] == 1);
    }
    uint64_t own = actor_monitor(actor_self(), 0); /* nobody sees his own end */
    TEST_CHECK(own != 0);
    actor_demonitor(own);
    actor_demonitor(0);
    actor_demonitor(UINT64_MAX);
    actor_demonitor(12345678);
}

static void test_monitor_races(void)
{
    node_sim(monitor_races);
}

/* The watcher ends first: its monitors are forgotten at the other side. */
static void watch_all(void *arg)
{
    for (int i = 0; i < 20; i++)
        TEST_CHECK(actor_monitor(*(actor_pid *)arg, 0) != 0);
}

static void watchers_end(void)
{
    struct actor_info info;
    a = doll(anywhere());
    b = doll(anywhere());
    tell(b, watch_all, &a);
    settle();
    TEST_CHECK(actor_inspect(a, &info, DEADLINE_NONE) == OK && info.watchers == 20);
    TEST_CHECK(actor_inspect(b, &info, DEADLINE_NONE) == OK && info.monitors == 20);
    gone(b);
    settle();
    TEST_CHECK(actor_inspect(a, &info, DEADLINE_NONE) == OK && info.watchers == 0);
    gone(a);
}

static void test_watchers_end(void)
{
    node_sim(watchers_end);
}

/* ---- order between two actors, signals included ---- */

static uint64_t last;
static bool disordered;
static enum actor_step order_handle(void *state, struct message *m)
{
    uint64_t *value = message_body(m, sizeof *value);
    if (m->type == NOTE && value) {
        disordered |= *value != last + 1;
        last = *value;
    }
    return doll_handle(state, m);
}
static const struct actor_class order_class = {
    .name = "order", .handle = order_handle, .mailbox_capacity = 1000};

static void ordered(void)
{
    actor_pid pid = spawn(&order_class, anywhere());
    last = 0;
    disordered = false;
    uint64_t n = 1 + draw(100);
    for (uint64_t i = 1; i <= n; i++)
        note(pid, i);
    uint64_t ref = actor_monitor(pid, 0);
    struct message *m;
    TEST_CHECK(actor_call(pid, message_new(ASK, 0), &m, DEADLINE_NONE) == OK);
    TEST_CHECK(last == n && !disordered); /* the call came after all of them */
    actor_exit_signal(pid, reason_error(4));
    TEST_CHECK(down(ref).kind == REASON_ERROR);
    TEST_CHECK(!mail());
}

static void test_ordered(void)
{
    node_sim(ordered);
}

/* ---- stop ---- */

static unsigned terminated;
static enum actor_step stoppable_handle(void *state, struct message *m)
{
    if (m->type == NOTE)
        actor_sleep(actor_deadline_ms(10));
    return doll_handle(state, m);
}
static void stoppable_terminate(void *state, const struct reason *why)
{
    (void)state;
    terminated += why->kind == REASON_SHUTDOWN;
    if (why->code == 9)
        actor_sleep(DEADLINE_NONE);
    if (why->code == 8)
        actor_exit(reason_with_detail(reason_error(8), "worse", 5));
    if (why->code == 7)
        *(volatile int *)actor_alloc(100) = (int)(uintptr_t)actor_alloc(10 << 20); /* over its quota */
}
static const struct actor_class stoppable_class = {
    .name = "stoppable", .handle = stoppable_handle, .terminate = stoppable_terminate};

static void stopping(void)
{
    struct reason why;
    terminated = 0;
    actor_pid pid = spawn(&stoppable_class, anywhere());
    note(pid, 0);
    uint64_t began = actor_now();
    TEST_CHECK(actor_stop(pid, reason_of(REASON_SHUTDOWN), &why, DEADLINE_NONE) == OK);
    TEST_CHECK(terminated == 1 && why.kind == REASON_SHUTDOWN && actor_now() == began + 10 * NS_PER_MS);
    TEST_CHECK(actor_stop(pid, reason_of(REASON_SHUTDOWN), &why, DEADLINE_NONE) == ERR_NOPROC);
    TEST_CHECK(actor_stop(actor_self(), reason_of(REASON_SHUTDOWN), &why, DEADLINE_NONE) == ERR_CALLING_SELF);
    const struct {
        int code;
        enum reason_kind kind;
    } ends[] = {{8, REASON_ERROR}, {7, REASON_QUOTA}};
    for (size_t i = 0; i < 2; i++) {
        pid = spawn(&stoppable_class, anywhere());
        struct reason with =
            reason_with_detail((struct reason){.kind = REASON_SHUTDOWN, .code = ends[i].code}, "detail", 6);
        TEST_CHECK(actor_stop(pid, with, &why, DEADLINE_NONE) == OK);
        TEST_CHECK_(why.kind == ends[i].kind, "%d", why.kind);
        reason_drop(&why);
    }
    /* Stuck in terminate: the deadline, then the kill. */
    pid = spawn(&stoppable_class, anywhere());
    TEST_CHECK(actor_stop(pid, (struct reason){.kind = REASON_SHUTDOWN, .code = 9}, &why,
                          actor_deadline_ms(5)) == ERR_TIMEOUT);
    TEST_CHECK(actor_stop(pid, reason_of(REASON_NORMAL), &why, actor_now()) == ERR_TIMEOUT);
    uint64_t ref = actor_monitor(pid, 0);
    actor_kill(pid);
    TEST_CHECK(down(ref).kind == REASON_KILLED);
    settle();
    TEST_CHECK(!mail()); /* no DOWN of the stops that gave up */
}

static void test_stopping(void)
{
    node_sim(stopping);
}

TEST_LIST
= {
    {"LNK: links and unlinks in every order leave both linked or neither", test_link_races},
    {"LNK: asked by both, taken back by one", test_link_crossing},
    {"LNK: to the dead and the dying", test_link_to_the_dead},
    {"LNK: EXIT exactly once around a ring", test_ring},
    {"ties know each other's records, here and elsewhere", test_ties_know_each_other},
    {"MON-04: DOWN exactly once, and none after demonitor", test_monitor_races},
    {"MON: the watcher ends first", test_watchers_end},
    {"order per sender and receiver, signals included", test_ordered},
    {"stop: reasons, deadlines, the dead, oneself", test_stopping},
    {NULL, NULL},
};
