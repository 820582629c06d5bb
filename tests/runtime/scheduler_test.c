#define _GNU_SOURCE
#include "acutest.h"
#include "tests/runtime/node.h"

#include <pthread.h>
#include <stdlib.h>
#include "runtime/scheduler.h"

/* All of this runs on real schedulers with threads of their own, without a sleep anywhere: whatever gets lost on the way,
 * a message, a wake-up or an answer, leaves somebody waiting for ever. */

#define ROUNDS (SANITIZED ? 2000u : 10000u)

static void gone(actor_pid pid)
{
    uint64_t ref = actor_monitor(pid, 0);
    actor_kill(pid);
    down(ref);
}

/* ---- one message at a time: both sides sleep in between, or are about to ---- */

static void pingpong(void)
{
    actor_pid d = doll(SPAWN_ON(1));
    for (uint64_t i = 0; i < ROUNDS; i++) {
        struct message *m;
        TEST_CHECK(actor_call(d, message_of(ASK, &i, sizeof i), &m, DEADLINE_NONE) == OK);
        TEST_CHECK(*(uint64_t *)m->payload == i);
        message_free(m);
    }
    gone(d);
}

/* The other side is woken by a timer at about the same time as by a message. */
static void timers_and_messages(void)
{
    actor_pid d = doll(SPAWN_ON(1));
    for (uint64_t i = 0; i < ROUNDS / 4; i++) {
        actor_timer(actor_now() + i % 50 * NS_PER_US, NOTE, i);
        TEST_CHECK(actor_call(d, message_new(ASK, 0), NULL, DEADLINE_NONE) == OK);
        TEST_CHECK(*(uint64_t *)expect(NOTE) == i);
        message_release_held(scheduler_current, scheduler_current->current, 0, NULL);
    }
    gone(d);
}

/* ---- who has written to a sleeper, and has more to do ---- */

static _Atomic bool heard;
static enum actor_step sleeper_handle(void *state, struct message *m)
{
    (void)state, (void)m;
    heard = true;
    return ACTOR_CONTINUE;
}
static const struct actor_class sleeper_class = {.name = "sleeper", .handle = sleeper_handle};

static void write_to_a_sleeper(void *arg)
{
    struct scheduler *other = scheduler_current->rt->schedulers[1];
    while (!atomic_load(&other->sleeping))
        sched_yield();
    EXPECT(actor_cast(*(actor_pid *)arg, NOTE, NULL, 0) == OK);
}

/* The next message of the same turn, which isn't over before the first one's effect has been there. */
static void wait_for_what_was_written(void *arg)
{
    (void)arg;
    uint64_t until = actor_clock() + 10 * NS_PER_S;
    actor_guard_begin(); /* as a commit does: nobody else runs here */
    while (!heard && actor_clock() < until)
        sched_yield();
    actor_guard_end();
    EXPECT(heard);
}

static void written_while_there_is_more_to_do(void)
{
    actor_pid sleeper = spawn(&sleeper_class, SPAWN_ON(1)), d = doll(SPAWN_ON(0));
    for (int i = 0; i < 20; i++) {
        heard = false;
        tell(d, write_to_a_sleeper, &sleeper);
        tell(d, wait_for_what_was_written, NULL);
        EXPECT(actor_call(d, message_new(ASK, 0), NULL, DEADLINE_NONE) == OK);
    }
    gone(d);
    gone(sleeper);
}

/* ---- many in flight, both ways ---- */

static actor_pid peers[8];
static _Atomic unsigned long answered, failed;
static void ask_all(void *arg)
{
    (void)arg;
    for (int i = 0; i < 100; i++)
        for (int k = 0; k < 8; k++) {
            enum error e = actor_call(peers[k], message_new(ASK, 50), NULL, actor_deadline_ms(2));
            if (e == OK)
                answered++;
            else if (e != ERR_CALLING_SELF && e != ERR_TIMEOUT &&
                     e != ERR_FULL) /* they wait for each other: timeouts */
                failed++;
        }
    actor_cast(*(actor_pid *)arg, NOTE, "12345678", 8);
}

static void call_both_ways(void)
{
    actor_pid me = actor_self(), servers[8], callers[8];
    answered = 0;
    for (int i = 0; i < 8; i++)
        servers[i] = peers[i] = doll(SPAWN_ON(i % 2));
    for (int i = 0; i < 8; i++)
        tell(callers[i] = doll(SPAWN_ON(i % 2)), ask_all, &me);
    for (int i = 0; i < 8; i++)
        expect(NOTE);
    TEST_CHECK(failed == 0 && answered > 0);
    for (int i = 0; i < 8; i++) {
        gone(callers[i]);
        gone(servers[i]);
    }
}

/* A thread that doesn't run for a second, because somebody else has its processor, answers nobody meanwhile: not each time. */
static void calls_both_ways(void)
{
    int runs = 0;
    do
        call_both_ways();
    while (++runs < 3 && answered <= 5000);
    if (!SANITIZED)
        TEST_CHECK_(answered > 5000, "%lu", (unsigned long)answered);
}

/* ---- order: each sender's messages arrive as they were sent, all of them ---- */

static uint64_t next_of[4];
static _Atomic bool disordered;
static _Atomic uint64_t arrived;
static enum actor_step order_handle(void *state, struct message *m)
{
    (void)state;
    uint64_t *v = message_body(m, 2 * sizeof *v);
    if (m->type == NOTE && v) {
        disordered |= v[1] != next_of[v[0]]++;
        arrived++;
    }
    return doll_handle(state, m);
}
static const struct actor_class order_class = {
    .name = "order", .handle = order_handle, .mailbox_capacity = 1 << 20};

static void send_many(void *arg)
{
    uint64_t v[2] = {(uint64_t)(uintptr_t)arg, 0};
    for (; v[1] < ROUNDS; v[1]++)
        EXPECT(actor_cast(peers[0], NOTE, v, sizeof v) == OK);
}

static void order(void)
{
    actor_pid senders[4];
    peers[0] = spawn(&order_class, SPAWN_ON(1));
    for (int i = 0; i < 4; i++)
        tell(senders[i] = doll(SPAWN_ON(i % 2)), send_many, (void *)(intptr_t)i);
    for (int i = 0; i < 4; i++)
        TEST_CHECK(actor_call(senders[i], message_new(ASK, 0), NULL, DEADLINE_NONE) == OK);
    TEST_CHECK(actor_call(peers[0], message_new(ASK, 0), NULL, DEADLINE_NONE) == OK);
    while (arrived < 4ull * ROUNDS)
        actor_yield();
    TEST_CHECK(!disordered);
    for (int i = 0; i < 4; i++)
        gone(senders[i]);
    gone(peers[0]);
}

/* ---- from foreign threads ---- */

#define POSTERS 3
static void *post(void *arg)
{
    uint64_t v[2] = {(uint64_t)(uintptr_t)arg, 0};
    for (; v[1] < ROUNDS; v[1]++)
        EXPECT(runtime_post(node_runtime, peers[v[0] % 2], NOTE, v, sizeof v) == OK);
    return NULL;
}

static pthread_t posters[POSTERS];
static void posted(void)
{
    memset(next_of, 0, sizeof next_of);
    arrived = 0;
    disordered = false;
    peers[0] = spawn(&order_class, SPAWN_ON(0)); /* posters 0 and 2; order is per sender */
    peers[1] = spawn(&order_class, SPAWN_ON(1));
    for (uintptr_t i = 0; i < POSTERS; i++)
        TEST_CHECK(pthread_create(&posters[i], NULL, post, (void *)i) == 0);
    while (arrived < (uint64_t)POSTERS * ROUNDS)
        actor_sleep(actor_now() + 100 * NS_PER_US);
    for (int i = 0; i < POSTERS; i++)
        pthread_join(posters[i], NULL);
    TEST_CHECK(!disordered);
    struct runtime *rt = runtime_self();
    TEST_CHECK(runtime_post(rt, 0, NOTE, "x", 1) == ERR_INVALID);
    TEST_CHECK(runtime_post(rt, 63ull << 56 | 1, NOTE, "x", 1) == ERR_INVALID);
    TEST_CHECK(runtime_post(rt, peers[0], MESSAGE_EXIT, "x", 1) == ERR_INVALID);
    TEST_CHECK(runtime_post(rt, peers[0], NOTE, "x", MESSAGE_PAYLOAD_MAX + 1) == ERR_INVALID);
    TEST_CHECK(runtime_post(rt, peers[0] | 0xffffffull << 32, NOTE, "x", 1) ==
               OK); /* a slot that isn't there: dropped */
    gone(peers[0]);
    TEST_CHECK(runtime_post(rt, peers[0], NOTE, NULL, 0) == OK);
    gone(peers[1]);
}

/* ---- kill storms ---- */

static void spawn_and_kill(void)
{
    static actor_pid crowd[64];
    static uint64_t refs[64];
    for (unsigned round = 0; round < ROUNDS / 200; round++) {
        for (int i = 0; i < 64; i++) {
            struct start_result r = {0};
            struct spawn_options o = {.class = i % 3 ? &doll_class : &trapper_class,
                                      .monitor = i % 4 == 0,
                                      .scheduler = SPAWN_ON(i % 2)};
            if (i % 4 == 0) {
                TEST_CHECK(actor_start(&o, &r, DEADLINE_NONE) == OK);
                crowd[i] = r.pid;
                refs[i] = r.ref;
            } else {
                TEST_CHECK(actor_spawn(&o, &crowd[i]) == OK);
                refs[i] = actor_monitor(crowd[i], 0);
            }
        }
        for (int i = 0; i < 64; i++) { /* one way or another */
            if (i % 5 == 0)
                actor_exit_signal(crowd[i], reason_with_detail(reason_error(5), "detail", 6));
            else if (i % 5 == 1)
                note(crowd[i], 1);
            actor_kill(crowd[(i * 7) % 64]);
        }
        for (int i = 0; i < 64; i++)
            down(refs[i]); /* each exactly once: ... */
        message_release_held(scheduler_current, scheduler_current->current, 0, NULL);
        TEST_CHECK(!mail()); /* ... and nothing besides */
        for (int i = 0; i < 64; i++)
            TEST_CHECK(!actor_alive(crowd[i]));
    }
}

/* ---- figures, asked for by others while everybody works ---- */

static _Atomic bool over;
static void *watch(void *arg)
{
    struct runtime_stats stats;
    (void)arg;
    while (!over) {
        runtime_stats(node_runtime, &stats);
        EXPECT(stats.schedulers == 2);
    }
    return NULL;
}

static void figures(void)
{
    pthread_t thread;
    over = false;
    TEST_CHECK(pthread_create(&thread, NULL, watch, NULL) == 0);
    for (unsigned round = 0; round < 100; round++) {
        actor_pid pids[16];
        uint32_t cursor = 0;
        for (int i = 0; i < 16; i++)
            pids[i] = doll(SPAWN_ON(i % 2));
        actor_pid seen[10];
        do {
            size_t n = runtime_actors(1, &cursor, seen, 10);
            TEST_CHECK(n <= 10);
        } while (cursor);
        struct actor_info info;
        for (int i = 0; i < 16; i++) {
            actor_timer(actor_deadline_ms(1000), NOTE, 1);
            TEST_CHECK(actor_inspect(pids[i], &info, DEADLINE_NONE) == OK && info.pid == pids[i]);
            gone(pids[i]);
            TEST_CHECK(actor_inspect(pids[i], &info, DEADLINE_NONE) == ERR_NOPROC);
        }
    }
    over = true;
    pthread_join(thread, NULL);
}

/* ---- figures of one scheduler ---- */

static struct runtime_scheduler of(uint32_t n)
{
    struct runtime_scheduler figures;
    runtime_scheduler(node_runtime, n, &figures);
    return figures;
}

static unsigned waiting;
static void park(void *arg)
{
    (void)arg;
    waiting++;
    expect(NOTE);
}

static void ready_and_parked(void)
{
    actor_pid pids[5];
    struct runtime_scheduler before = of(0), other = of(1), now;
    TEST_CHECK(!before.dedicated && !other.dedicated && other.actors == 0);
    for (int i = 0; i < 5; i++)
        pids[i] = doll(SPAWN_HERE);
    actor_yield();
    actor_guard_begin(); /* they could run, and can't */
    for (int i = 0; i < 5; i++)
        tell(pids[i], park, NULL);
    now = of(0);
    actor_guard_end();
    TEST_CHECK_(now.run_queue == before.run_queue + 5, "%llu", (unsigned long long)now.run_queue);
    while (waiting < 5)
        actor_yield();
    actor_yield(); /* the last one waits, too */
    now = of(0);
    TEST_CHECK_(now.parked == before.parked + 5, "%llu", (unsigned long long)now.parked);
    TEST_CHECK(now.run_queue == before.run_queue);
    TEST_CHECK(now.actors == before.actors + 5);
    actor_pid far = doll(SPAWN_ON(1));
    TEST_CHECK(actor_call(far, message_new(ASK, 0), NULL, DEADLINE_NONE) == OK);
    TEST_CHECK(of(1).actors == 1 && of(1).messages_remote >= 1);
    TEST_CHECK(of(0).messages_remote > before.messages_remote);
    gone(far);
    for (int i = 0; i < 5; i++)
        gone(pids[i]);
}

/* Who works doesn't let it sleep; who waits does. */
static void work_and_sleep(void)
{
    struct runtime_scheduler first = of(0), last;
    do
        last = of(0);
    while (last.lived_ns - first.lived_ns < 5 * NS_PER_MS);
    TEST_CHECK(last.idle_ns == first.idle_ns);
    do {
        actor_sleep(actor_deadline_ms(1));
        last = of(0);
    } while (last.idle_ns == first.idle_ns);
    TEST_CHECK(last.idle_ns - first.idle_ns < last.lived_ns - first.lived_ns);
    TEST_CHECK(last.busy_ppm > 0 && last.busy_ppm <= 1000000);
    TEST_CHECK(last.turns > first.turns);
}

/* By hand: the figures of another thread, as one finds them. */
static void test_share(void)
{
    static struct scheduler s; /* large */
    atomic_store(&s.share_ppm, SHARE_UNKNOWN);
    atomic_store(&s.share_at, 1000);
    atomic_store(&s.idle, 400 << 1);
    TEST_CHECK(scheduler_idle_ns(&s, 3000) == 400 && scheduler_busy_ppm(&s, 2000) == 600000);
    atomic_store(&s.idle, (400ull - 2000) << 1 | 1); /* it sleeps since 2000 */
    TEST_CHECK(scheduler_idle_ns(&s, 2000) == 400 && scheduler_idle_ns(&s, 2500) == 900);
    TEST_CHECK(scheduler_busy_ppm(&s, 3000) == 300000);
    /* what the last window said, as long as the next one may still be filling */
    atomic_store(&s.share_ppm, 250000);
    atomic_store(&s.share_idle, 400);
    atomic_store(&s.share_at, 2000);
    TEST_CHECK(scheduler_busy_ppm(&s, 2000 + 2 * SHARE_NS - 1) == 250000);
    TEST_CHECK(scheduler_busy_ppm(&s, 2000 + 2 * SHARE_NS) == 0); /* it has slept ever since */
    atomic_store(&s.idle, (400 + SHARE_NS / 2) << 1);
    TEST_CHECK(scheduler_busy_ppm(&s, 2000 + 2 * SHARE_NS) == 750000);
    TEST_CHECK(scheduler_busy_ppm(&s, 1999) == 250000); /* a clock that was read before */
    /* a look between its two stores */
    atomic_store(&s.idle, (400 + 3 * SHARE_NS) << 1);
    TEST_CHECK(scheduler_busy_ppm(&s, 2000 + 2 * SHARE_NS) == 0);
}

/* ---- no stack to be had ---- */

static unsigned finished_waits;
static void wait_for_note(void *arg)
{
    (void)arg;
    expect(NOTE); /* with a stack of its own meanwhile */
    finished_waits++;
}

/* Whoever finds no stack waits for its turn until somebody gives one back; those that have one go on. */
static void few_stacks(void)
{
    struct scheduler *s = scheduler_current;
    actor_pid pids[20];
    finished_waits = 0;
    coro_pool_destroy(s->stacks[0]); /* nobody has used it yet */
    s->stacks[0] = coro_pool_create((64 << 10) + STACK_RESERVE, 4);
    for (int i = 0; i < 20; i++)
        tell(pids[i] = doll(SPAWN_HERE), wait_for_note, NULL);
    for (int i = 0; i < 50; i++)
        actor_yield();
    struct coro_stats stats;
    coro_pool_stats(s->stacks[0], &stats);
    TEST_CHECK(stats.in_use == 4 && finished_waits == 0);
    for (int i = 0; i < 20; i++) /* the last ones first */
        note(pids[19 - i], 1);
    for (int i = 0; i < 20; i++)
        TEST_CHECK(actor_call(pids[i], message_new(ASK, 0), NULL, DEADLINE_NONE) == OK);
    TEST_CHECK(finished_waits == 20);
    for (int i = 0; i < 20; i++)
        gone(pids[i]);
}

static void test_few_stacks(void)
{
    TEST_CHECK(node_real(1, few_stacks) == 0);
}

static void run(void (*body)(void))
{
    TEST_CHECK(node_real(2, body) == 0);
}

static void test_written_while_there_is_more_to_do(void)
{
    run(written_while_there_is_more_to_do);
}
static void test_pingpong(void)
{
    run(pingpong);
}
static void test_timers_and_messages(void)
{
    run(timers_and_messages);
}
static void test_calls(void)
{
    run(calls_both_ways);
}
static void test_order(void)
{
    run(order);
}
static void test_posted(void)
{
    run(posted);
}
static void test_kill_storms(void)
{
    run(spawn_and_kill);
}
static void test_figures(void)
{
    run(figures);
}
static void test_ready_and_parked(void)
{
    run(ready_and_parked);
}
static void test_work_and_sleep(void)
{
    run(work_and_sleep);
}

TEST_LIST
= {
    {"no wake-up is lost between two schedulers", test_pingpong},
    {"nor between a timer and a message", test_timers_and_messages},
    {"who was written to doesn't wait for the writer's next message", test_written_while_there_is_more_to_do},
    {"calls both ways", test_calls},
    {"order per sender", test_order},
    {"messages of foreign threads", test_posted},
    {"kill storms", test_kill_storms},
    {"figures read by others", test_figures},
    {"who is ready and who is parked, by scheduler", test_ready_and_parked},
    {"a scheduler's time is work or sleep", test_work_and_sleep},
    {"the share that is work", test_share},
    {"no stack to be had", test_few_stacks},
    {NULL, NULL},
};
