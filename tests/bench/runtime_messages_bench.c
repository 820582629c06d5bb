/* Messages: between two actors, across schedulers, as calls, around a ring, many to one, and queued by the
 * million.
 *
 * Handlers pass on the message they received where a program would: a token, a ball. Everything else is a
 * message of its own, taken from the pool and given back. */
#include "tests/bench/bench.h"
#include <string.h>

enum { BALL = 1, ASK, TOKEN, BURST, ITEM, DONE };

static actor_pid root;

/* ---- pingpong: a ball between two players; the server counts the rounds ---- */

struct player {
    actor_pid peer;
    uint64_t rounds; /* left; only the server counts */
};

/* The ball brings the number of rounds with it when it comes from the root. */
static enum actor_step server_handle(void *state, struct message *m)
{
    struct player *p = state;
    if (m->from == root)
        p->rounds = *(uint64_t *)(void *)m->payload;
    else
        p->rounds--;
    if (p->rounds)
        actor_send(p->peer, m);
    else
        actor_cast(root, DONE, NULL, 0);
    return ACTOR_CONTINUE;
}

static enum actor_step returner_handle(void *state, struct message *m)
{
    (void)state;
    actor_send(m->from, m);
    return ACTOR_CONTINUE;
}

static enum actor_step server_init(void *state, const void *args, size_t size)
{
    ASSERT(size == sizeof(actor_pid));
    memcpy(&((struct player *)state)->peer, args, size);
    return ACTOR_CONTINUE;
}

static const struct actor_class server_class = {
    .name = "server", .state_size = sizeof(struct player), .init = server_init, .handle = server_handle};
static const struct actor_class returner_class = {.name = "returner", .handle = returner_handle};

struct match {
    actor_pid server;
    uint64_t rounds; /* of one set */
};

/* Sets until 5 ms are over: across schedulers a round takes from 0.2 us to a time slice of the kernel's. */
static void play(void *arg, double *ret)
{
    struct match *match = arg;
    uint64_t started = bench_now(), rounds = 0;
    do {
        actor_cast(match->server, BALL, &match->rounds, sizeof match->rounds);
        bench_await(DONE);
        rounds += match->rounds;
    } while (bench_now() - started < 5 * NS_PER_MS);
    *ret = bench_per_second(rounds, started);
}

static void play_many(const char *name, uint64_t set, int scheduler)
{
    actor_pid returner = bench_spawn(&returner_class, NULL, 0, scheduler);
    struct match match = {.server = bench_spawn(&server_class, &returner, sizeof returner, SPAWN_HERE),
                          .rounds = set};
    bench_repeat(&(struct bench_row){name, "round_trips/s", BENCH_MORE}, 1, play, &match);
    actor_kill(match.server);
    actor_kill(returner);
}

/* ---- call ---- */

#define CALLS 50000u

static enum actor_step answer(void *state, struct message *m)
{
    (void)state;
    actor_reply_bytes(m, ASK, m->payload, m->size);
    return ACTOR_CONTINUE;
}

static const struct actor_class answer_class = {.name = "answer", .handle = answer};

static void call(void *arg, double *ret)
{
    actor_pid to = *(actor_pid *)arg;
    uint64_t started = bench_now();
    for (uint64_t i = 0; i < CALLS; i++) {
        struct message *reply;
        enum error e =
            actor_call(to, message_of(ASK, &i, sizeof i), &reply, actor_deadline_ms(ACTOR_CALL_DEFAULT_MS));
        if (e || *(uint64_t *)(void *)reply->payload != i)
            bench_fail("call %llu: %s", (unsigned long long)i, error_name(e));
        message_free(reply);
    }
    *ret = bench_per_second(CALLS, started);
}

/* ---- ring ---- */

#define RING      10000u
#define RING_HOPS 200000u

struct link {
    actor_pid next;
};

struct token {
    uint64_t hops; /* left */
};

static enum actor_step link_handle(void *state, struct message *m)
{
    struct link *l = state;
    if (m->type == BALL) { /* who comes after it */
        memcpy(&l->next, m->payload, sizeof l->next);
        return ACTOR_CONTINUE;
    }
    struct token *t = (struct token *)(void *)m->payload;
    if (--t->hops)
        actor_send(l->next, m);
    else
        actor_cast(root, DONE, NULL, 0);
    return ACTOR_CONTINUE;
}

static const struct actor_class link_class = {
    .name = "link", .state_size = sizeof(struct link), .handle = link_handle};

static actor_pid ring[RING];

static void run_ring(void *arg, double *ret)
{
    uint32_t tokens = *(uint32_t *)arg;
    struct token token = {.hops = RING_HOPS / tokens};
    uint64_t started = bench_now();
    for (uint32_t i = 0; i < tokens; i++)
        actor_cast(ring[(size_t)i * RING / tokens], TOKEN, &token, sizeof token);
    for (uint32_t i = 0; i < tokens; i++)
        bench_await(DONE);
    *ret = bench_per_second(RING_HOPS, started);
}

static void measure_ring(void)
{
    for (size_t i = 0; i < RING; i++)
        ring[i] = bench_spawn(&link_class, NULL, 0, SPAWN_HERE);
    for (size_t i = 0; i < RING; i++)
        actor_cast(ring[i], BALL, &ring[(i + 1) % RING], sizeof *ring);
    bench_repeat(&(struct bench_row){"ring", "hops/s", BENCH_MORE}, 1, run_ring, &(uint32_t){1});
    bench_repeat(&(struct bench_row){"ring_100", "hops/s", BENCH_MORE}, 1, run_ring, &(uint32_t){100});
    for (size_t i = 0; i < RING; i++)
        actor_kill(ring[i]);
}

/* ---- many to one: 100 senders over both schedulers, as many messages each ---- */

#define SENDERS 100u
#define ITEMS   2000u /* of each sender: well within its slice */

struct sink {
    uint64_t missing;
};

static enum actor_step sink_handle(void *state, struct message *m)
{
    struct sink *k = state;
    if (m->type == BURST)
        memcpy(&k->missing, m->payload, sizeof k->missing);
    else if (--k->missing == 0)
        actor_cast(root, DONE, NULL, 0);
    return ACTOR_CONTINUE;
}

/* Room for everything anybody sends here at once: a bound all the same. */
static const struct actor_class sink_class = {
    .name = "sink", .state_size = sizeof(struct sink), .handle = sink_handle, .mailbox_capacity = 1000001};

static enum actor_step sender_handle(void *state, struct message *m)
{
    actor_pid to;
    (void)state;
    memcpy(&to, m->payload, sizeof to);
    for (uint64_t i = 0; i < ITEMS; i++) {
        enum error e = actor_cast(to, ITEM, &i, sizeof i);
        if (e)
            bench_fail("item %llu: %s", (unsigned long long)i, error_name(e));
    }
    return ACTOR_CONTINUE;
}

static const struct actor_class sender_class = {.name = "sender", .handle = sender_handle};

struct crowd {
    actor_pid sink, senders[SENDERS];
};

static void fan_in(void *arg, double *ret)
{
    struct crowd *c = arg;
    actor_cast(c->sink, BURST, &(uint64_t){(uint64_t)SENDERS * ITEMS}, sizeof(uint64_t));
    uint64_t started = bench_now();
    for (size_t i = 0; i < SENDERS; i++)
        actor_cast(c->senders[i], BURST, &c->sink, sizeof c->sink);
    bench_await(DONE);
    *ret = bench_per_second((uint64_t)SENDERS * ITEMS, started);
}

static void measure_fan_in(void)
{
    struct crowd c = {.sink = bench_spawn(&sink_class, NULL, 0, SPAWN_HERE)};
    for (size_t i = 0; i < SENDERS; i++)
        c.senders[i] = bench_spawn(&sender_class, NULL, 0, SPAWN_ON(i % 2));
    bench_repeat(&(struct bench_row){"fanin", "messages/s", BENCH_MORE}, 1, fan_in, &c);
}

/* ---- a million queued ---- */

#define QUEUED 1000000u

static bool all_queued;

/* As the sink, but nothing may reach it before all of it is queued. */
static enum actor_step drain_handle(void *state, struct message *m)
{
    if (m->type == ITEM && !all_queued)
        bench_fail("the mailbox was drained before it was full");
    return sink_handle(state, m);
}

static const struct actor_class drain_class = {.name = "drain",
                                               .state_size = sizeof(struct sink),
                                               .handle = drain_handle,
                                               .mailbox_capacity = QUEUED + 1};

static enum actor_step filler_handle(void *state, struct message *m)
{
    actor_pid to;
    (void)state;
    memcpy(&to, m->payload, sizeof to);
    for (uint64_t i = 0; i < QUEUED; i++)
        if (actor_cast(to, ITEM, &i, sizeof i))
            bench_fail("the mailbox is full after %llu", (unsigned long long)i);
    all_queued = true;
    actor_resume(to);
    return ACTOR_CONTINUE;
}

static const struct actor_class filler_class = {
    .name = "filler", .handle = filler_handle, .runaway_ns = DEADLINE_NONE};

/* The drain is held back until everything is queued. */
static void fill_and_drain(void *arg, double *ret)
{
    actor_pid *pair = arg; /* filler, drain */
    all_queued = false;
    actor_suspend(pair[1]);
    actor_cast(pair[1], BURST, &(uint64_t){QUEUED}, sizeof(uint64_t));
    uint64_t started = bench_now();
    actor_cast(pair[0], BURST, &pair[1], sizeof pair[1]);
    bench_await(DONE);
    *ret = bench_per_second(QUEUED, started);
}

static void measure_mailbox(void)
{
    actor_pid pair[2] = {bench_spawn(&filler_class, NULL, 0, SPAWN_HERE),
                         bench_spawn(&drain_class, NULL, 0, SPAWN_HERE)};
    bench_repeat(&(struct bench_row){"mailbox", "messages/s", BENCH_MORE}, 1, fill_and_drain, pair);
}

/* Each time in a runtime of its own, whose memory nobody has touched yet; the sink is held back meanwhile. */
static double queued_bytes;

static void queue_many(void)
{
    root = actor_self();
    actor_pid sink = bench_spawn(&sink_class, NULL, 0, SPAWN_HERE);
    actor_cast(sink, BURST, &(uint64_t){QUEUED}, sizeof(uint64_t));
    actor_yield();
    actor_suspend(sink);
    actor_yield();
    uint64_t before = bench_resident();
    for (uint64_t i = 0; i < QUEUED; i++)
        if (actor_cast(sink, ITEM, &i, sizeof i))
            bench_fail("the mailbox is full after %llu", (unsigned long long)i);
    queued_bytes = (double)(bench_resident() - before) / QUEUED;
    actor_resume(sink);
    bench_await(DONE);
}

static void weigh(void *arg, double *ret)
{
    (void)arg;
    bench_node(1, queue_many);
    *ret = queued_bytes;
}

/* ---- the rows ---- */

static void on_one(void)
{
    root = actor_self();
    play_many("pingpong", 20000, SPAWN_HERE);
    actor_pid callee = bench_spawn(&answer_class, NULL, 0, SPAWN_HERE);
    bench_repeat(&(struct bench_row){"call", "round_trips/s", BENCH_MORE}, 1, call, &callee);
    measure_ring();
    measure_mailbox();
}

static void on_two(void)
{
    root = actor_self();
    play_many("pingpong_cross", 100, SPAWN_ON(1));
    measure_fan_in();
}

int main(void)
{
    bench_begin("runtime", 10);
    bench_node(1, on_one);
    bench_node(2, on_two);
    bench_repeat(&(struct bench_row){"message_bytes", "bytes", BENCH_LESS}, 1, weigh, NULL);
    return 0;
}
