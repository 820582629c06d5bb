#include "acutest.h"
#include "tests/runtime/node.h"

#include "runtime/scheduler.h"

/* ---- sizes ---- */

static void sizes(void)
{
    const size_t edges[] = {
        0, 1, MESSAGE_SMALL, MESSAGE_SMALL + 1, MESSAGE_PAYLOAD_MAX - 1, MESSAGE_PAYLOAD_MAX};
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
        struct message *m = message_new(1, edges[i]);
        TEST_ASSERT(m != NULL);
        TEST_CHECK(m->size == edges[i] && ((uintptr_t)m->payload & 7) == 0);
        memset(m->payload, 0xa5, edges[i]);
        TEST_CHECK(message_body(m, edges[i]) == m->payload && message_body(m, edges[i] + 1) == NULL);
        message_free(m);
    }
    for (unsigned shift = 6; shift <= 16; shift++) { /* on both sides of each class's border */
        size_t full = ((size_t)1 << shift) - MESSAGE_HEAD;
        struct message *m = message_new(1, full), *over = message_new(1, full + 1);
        TEST_CHECK(m && m->block == shift - 6);
        TEST_CHECK(shift == 16 ? !over : over && over->block == shift - 5);
        message_free(m);
        message_free(over);
    }
    TEST_CHECK(message_new(1, MESSAGE_PAYLOAD_MAX + 1) == NULL);
    TEST_CHECK(message_new(1, SIZE_MAX) == NULL);
    message_free(NULL);
}

static void test_sizes(void)
{
    node_sim(sizes);
}

/* ---- ownership ---- */

static struct message *kept;
static uint64_t seen;

static enum actor_step keeper_handle(void *state, struct message *m)
{
    struct message **mine = state;
    if (m->type == NOTE) {
        message_keep(m);
        *mine = kept = m;
    } else if (m->type == ASK && *mine) { /* some turns later */
        uint64_t *value = message_body(*mine, sizeof *value);
        seen = value ? *value : 0;
        if (m->size)
            actor_send(m->from, *mine);
        else
            message_free(*mine);
        *mine = NULL;
    } else if (m->type == RUN) {
        actor_fail(1, NULL);
    }
    return ACTOR_CONTINUE;
}

static const struct actor_class keeper_class = {
    .name = "keeper", .state_size = sizeof(struct message *), .handle = keeper_handle};

static void kept_ones(void)
{
    actor_pid k = spawn(&keeper_class, anywhere());
    for (uint64_t i = 1; i <= 3; i++) {
        note(k, i);
        actor_cast(k, 9, NULL, 0); /* a turn in between, whose message goes */
        actor_cast(k, ASK, &i, i == 2 ? 0 : 8);
        settle();
        TEST_CHECK(seen == i);
        if (i != 2) /* it came back in its own block */
            TEST_CHECK(*(uint64_t *)expect(NOTE) == i);
    }
    note(k, 4); /* dies with it */
    uint64_t ref = actor_monitor(k, 0);
    tell(k, NULL, NULL);
    TEST_CHECK(down(ref).kind == REASON_ERROR);
    TEST_CHECK(!mail());
}

static void test_kept(void)
{
    node_sim(kept_ones);
}

/* A kept call is neither answered nor forgotten: its caller hears from whoever keeps it, or of its end. */
static enum actor_step hoarder_handle(void *state, struct message *m)
{
    struct message **mine = state;
    if (m->kind == MESSAGE_CALL) {
        EXPECT(message_keep(m) && message_keep(m)); /* twice is once */
        *mine = m;
    } else if (m->type == NOTE && *mine) {
        actor_reply(*mine, message_new(NOTE, 0));
        message_free(*mine);
    }
    return ACTOR_CONTINUE;
}
static const struct actor_class hoarder_class = {
    .name = "hoarder", .state_size = sizeof(struct message *), .handle = hoarder_handle};

static void kept_calls(void)
{
    actor_pid h = spawn(&hoarder_class, anywhere());
    uint64_t first, second;
    size_t index;
    struct message *reply;
    TEST_CHECK(actor_request(h, message_new(ASK, 0), &first) == OK);
    TEST_CHECK(actor_request_wait(&first, 1, &index, NULL, actor_deadline_ms(1000)) == ERR_TIMEOUT);
    note(h, 1);
    TEST_CHECK(actor_request_wait(&first, 1, &index, &reply, DEADLINE_NONE) == OK && reply->type == NOTE);
    TEST_CHECK(actor_request(h, message_new(ASK, 0), &second) == OK);
    settle();
    actor_kill(h);
    TEST_CHECK(actor_request_wait(&second, 1, &index, &reply, DEADLINE_NONE) == ERR_DOWN);
    TEST_CHECK(!actor_alive(h));
}

static void test_kept_calls(void)
{
    node_sim(kept_calls);
}

/* A chain of forwards: the same block arrives, whatever schedulers it crosses. */
static actor_pid ring[4];
static enum actor_step forward_handle(void *state, struct message *m)
{
    unsigned *at = state;
    (void)message_new(5, 100); /* forgotten: goes with the turn */
    (*at)++;
    uint64_t *left = message_body(m, sizeof *left);
    if (left && (*left)-- > 0)
        actor_send(ring[*left % 4], m);
    else
        actor_send(actor_parent(), m);
    return ACTOR_CONTINUE;
}
static const struct actor_class forward_class = {
    .name = "forward", .state_size = 4, .handle = forward_handle};

static void forwarded(void)
{
    for (int i = 0; i < 4; i++)
        ring[i] = spawn(&forward_class, anywhere());
    note(ring[3], 100);
    expect(NOTE);
    for (int i = 0; i < 4; i++)
        actor_kill(ring[i]);
    for (int i = 0; i < 4; i++)
        ended(ring[i]);
}

static void test_forwarded(void)
{
    node_sim(forwarded);
}

static void to_the_dead(void)
{
    actor_pid d = doll(anywhere());
    actor_kill(d);
    ended(d);
    TEST_CHECK(actor_cast(d, NOTE, "x", 1) == OK);
    TEST_CHECK(actor_cast(0, NOTE, "x", 1) == OK);
    TEST_CHECK(actor_cast(d | 0xffffffull << 32, NOTE, "x", 1) == OK);        /* a slot that isn't there */
    TEST_CHECK(actor_cast(63ull << 56 | 1ull << 32 | 1, NOTE, "x", 1) == OK); /* a scheduler that isn't */
    TEST_CHECK(actor_cast(UINT64_MAX, NOTE, "x", 1) == OK);
    /* Signals and calls to such are answered as by the dead. */
    const actor_pid nobody[] = {
        0, d, 1ull << 32 | 0x7fffffff, d | 0xffffffull << 32, 63ull << 56 | 1ull << 32 | 1, UINT64_MAX};
    for (size_t i = 0; i < sizeof nobody / sizeof *nobody; i++) {
        struct reason why;
        TEST_CHECK(ended(nobody[i]).kind == REASON_NOPROC);
        TEST_CHECK(actor_call(nobody[i], message_new(ASK, 0), NULL, DEADLINE_NONE) == ERR_NOPROC);
        TEST_CHECK(actor_stop(nobody[i], reason_of(REASON_NORMAL), &why, DEADLINE_NONE) == ERR_NOPROC);
        TEST_CHECK(actor_register("name", nobody[i], NULL) == ERR_NOPROC);
        TEST_CHECK(actor_send_wait(nobody[i], message_new(NOTE, 0), DEADLINE_NONE) == ERR_NOPROC);
        TEST_CHECK(actor_link(nobody[i]) == OK);
        struct message_exit *x = expect(MESSAGE_EXIT);
        TEST_CHECK(x->pid == nobody[i] && x->reason.kind == REASON_NOPROC);
        actor_unlink(nobody[i]);
        actor_kill(nobody[i]);
        actor_suspend(nobody[i]);
        TEST_CHECK(!actor_alive(nobody[i]));
        TEST_CHECK(actor_inspect(nobody[i], &(struct actor_info){0}, DEADLINE_NONE) == ERR_NOPROC);
    }
    TEST_CHECK(actor_send_name("nobody", message_of(NOTE, "x", 1)) == OK);
    TEST_CHECK(actor_send(d, NULL) == ERR_MEMORY);
}

static void cast_to_nobody(void *arg)
{
    (void)arg;
    TEST_CHECK(actor_cast(0, NOTE, "x", 1) == OK);
    TEST_CHECK(actor_call(0, message_new(ASK, 0), NULL, DEADLINE_NONE) == ERR_NOPROC);
    TEST_CHECK(actor_cast(1, NOTE, "x", 1) == OK);
    seen++;
}

static void to_nobody_from_elsewhere(void)
{
    actor_pid d = doll(SPAWN_ON(runtime_schedulers() - 1));
    seen = 0;
    tell(d, cast_to_nobody, NULL);
    settle();
    TEST_CHECK(seen == 1);
    actor_kill(d);
    settle();
}

static void test_to_the_dead(void)
{
    node_sim(to_the_dead);
    node_sim(to_nobody_from_elsewhere);
}

/* ---- the pools used up ---- */

static void exhausted(void)
{
    size_t n = 0;
    while (message_new(1, MESSAGE_PAYLOAD_MAX))
        n++;
    TEST_CHECK_(n == 16 * 1024 * 1024 / MESSAGE_BLOCK_MAX, "%zu", n);
    TEST_CHECK(message_new(1, 40000) == NULL);
    TEST_CHECK(message_new(1, 100) != NULL); /* the others are pools of their own */
    message_free(scheduler_current->current->held);
    message_free(scheduler_current->current->held);
    TEST_CHECK(message_new(1, MESSAGE_PAYLOAD_MAX) != NULL);
    TEST_CHECK(message_new(1, MESSAGE_PAYLOAD_MAX) == NULL);
    TEST_CHECK(actor_cast(actor_self(), 1, (char[40000]){0}, 40000) == ERR_MEMORY);
}

static void test_exhausted(void)
{
    node_sim_with(exhausted, &(struct sim_options){.seed = 1, .runtime.message_bytes_max = 16 << 20});
}

/* What the runtime itself has to say must not fail: without memory for it the process ends, and says what to raise. */
static void exhausted_for_signals(void)
{
    while (message_new(1, 0))
        ;
    actor_monitor(0, 0);
}

static void exhausted_child(void)
{
    node_sim_with(exhausted_for_signals,
                  &(struct sim_options){.seed = 1, .runtime.message_bytes_max = 16 << 20});
}

static void test_exhausted_for_signals(void)
{
    struct outcome o = node_child(exhausted_child, NULL);
    TEST_CHECK_(o.exited == 70 && o.lines == 1 && strstr(o.text, "raise message_bytes_max"), "%d: %s",
                o.exited, o.text);
}

/* ---- double use is a bug, and found: the process ends with one line ---- */

static void free_twice(void)
{
    struct message *m = message_new(1, 8);
    message_free(m);
    message_free(m);
}
static void send_twice(void)
{
    actor_pid d = doll(SPAWN_HERE);
    struct message *m = message_new(1, 8);
    actor_send(d, m);
    actor_send(d, m);
}
static void free_sent(void)
{
    struct message *m = message_new(1, 8);
    actor_send(doll(SPAWN_HERE), m);
    message_free(m);
}
static void keep_sent(void)
{
    struct message *m = message_new(1, 8);
    actor_send(doll(SPAWN_HERE), m);
    message_keep(m);
}
static void system_type(void)
{
    message_new(MESSAGE_EXIT, 8);
}

static void in_child(void)
{
    node_sim_with(*(void (**)(void))node_argument, &(struct sim_options){.seed = 1});
}

static void test_double_use(void)
{
    void (*const bodies[])(void) = {free_twice, send_twice, free_sent, keep_sent, system_type};
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        void (*body)(void) = bodies[i];
        struct outcome o = node_child(in_child, &body);
        TEST_CHECK_(o.exited == 70, "%zu: exit status %d, signal %d", i, o.exited, o.signal);
        TEST_CHECK_(strstr(o.text, "assertion failed") && o.lines == 1, "%s", o.text);
    }
}

TEST_LIST
= {
    {"sizes up to the maximum, NULL above", test_sizes},
    {"kept calls", test_kept_calls},
    {"kept across turns, sent later, freed early, gone with the actor", test_kept},
    {"forwarded and forgotten", test_forwarded},
    {"to the dead, to nobody, to pids that can't be", test_to_the_dead},
    {"pool exhaustion gives NULL", test_exhausted},
    {"no memory for a signal", test_exhausted_for_signals},
    {"double use ends the process", test_double_use},
    {NULL, NULL},
};
