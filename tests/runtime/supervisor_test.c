#include "acutest.h"

#include <stdio.h>
#include <string.h>

#include "runtime/sim.h"
#include "runtime/supervisor.h"
#include "runtime/supervisor_calls.h"
#include "runtime/supervisor_children.h"
#include "runtime/supervisor_impl.h"
#include "runtime/telemetry.h"

/* What OTP's table says about supervisors is in tests/conformance. Here is what the table doesn't know:
 * quarantine, backoff, memory, events, limits, and the parts on their own. Each body runs in the root actor
 * of a simulated node. */

/* ---- a node ---- */

static struct sim *sim;
static bool body_done;
static void (*body_now)(void);

static enum actor_step root_init(void *state, const void *args, size_t size)
{
    (void)state, (void)args, (void)size;
    return ACTOR_PROCEED;
}

static enum actor_step root_proceed(void *state)
{
    (void)state;
    body_now();
    body_done = true;
    return ACTOR_STOP;
}

static enum actor_step root_handle(void *state, struct message *m)
{
    (void)state, (void)m;
    return ACTOR_CONTINUE;
}

static const struct actor_class root_class = {.name = "test_root",
                                              .init = root_init,
                                              .proceed = root_proceed,
                                              .handle = root_handle,
                                              .trap_exits = true,
                                              .arena_quota = (size_t)1 << 32,
                                              .runaway_ns = DEADLINE_NONE,
                                              .stack_size = 256 * 1024};

static char log_text[65536];
static size_t log_used;

static void log_line(const char *line, size_t size)
{
    if (log_used + size + 2 < sizeof log_text) {
        memcpy(log_text + log_used, line, size);
        log_used += size;
        log_text[log_used++] = '\n';
        log_text[log_used] = 0;
    }
}

#define WORKERS 8u
static struct {
    uint32_t begun[WORKERS], fails[WORKERS], ignores[WORKERS];
    actor_pid pid[WORKERS];
} seen;

static size_t message_bytes; /* 0: as usual */

static void simulate(uint64_t seed, void (*body)(void))
{
    memset(&seen, 0, sizeof seen);
    body_now = body;
    body_done = false;
    log_used = 0;
    log_text[0] = 0;
    sim = sim_create(&(struct sim_options){.seed = seed,
                                           .schedulers = 1 + (uint32_t)(seed % 3),
                                           .order = (enum sim_order)(seed / 3 % 3),
                                           .runtime = {.log = log_line, .message_bytes_max = message_bytes}});
    TEST_ASSERT(sim != NULL);
    actor_pid root;
    TEST_CHECK(runtime_spawn(sim_runtime(sim), &(struct spawn_options){.class = &root_class}, &root) == OK);
    sim_run(sim, 100000000);
    TEST_CHECK(body_done);
    TEST_MSG("seed %llu, log: %s", (unsigned long long)seed, log_text);
    sim_destroy(sim);
}

static void simulate_many(void (*body)(void))
{
    for (uint64_t seed = 1; seed <= 30; seed++)
        simulate(seed, body);
}

static void settle(void)
{
    actor_sleep(actor_now() + NS_PER_US);
}

static void pass_ms(uint64_t ms)
{
    actor_sleep(actor_deadline_ms(ms));
}

static uint64_t counted(enum telemetry_event event, const char *label)
{
    return telemetry_counter_label(runtime_telemetry(runtime_self()), event, label);
}

/* ---- workers ---- */

enum { ORDER_PING = 1, ORDER_CRASH, ORDER_FAIL, ORDER_END, ORDER_UNLINK, ORDER_LINK };

struct plan {
    uint32_t number;
    bool deaf;        /* doesn't end when asked */
    bool talks;       /* ends with a reason that has a detail */
    uint32_t init_ms; /* init takes this long */
    uint32_t end_ms;  /* terminate takes this long */
};

static enum actor_step worker_init(void *state, const void *args, size_t size)
{
    const struct plan *p = args;
    ASSERT(size >= sizeof *p && p->number < WORKERS);
    memcpy(state, p, sizeof *p);
    seen.begun[p->number]++;
    if (p->init_ms)
        pass_ms(p->init_ms);
    if (seen.ignores[p->number]) {
        seen.ignores[p->number]--;
        return ACTOR_IGNORE;
    }
    if (seen.fails[p->number]) {
        seen.fails[p->number]--;
        actor_refuse(reason_error(7));
    }
    seen.pid[p->number] = actor_self();
    return ACTOR_CONTINUE;
}

static enum actor_step worker_handle(void *state, struct message *m)
{
    (void)state;
    switch (m->type) {
    case ORDER_CRASH:
        actor_exit(reason_of(REASON_CRASH));
    case ORDER_FAIL:
        actor_fail(12, "out of cheese");
    case ORDER_UNLINK:
        actor_unlink(actor_parent());
        return ACTOR_CONTINUE;
    case ORDER_LINK:
        actor_link(*(const actor_pid *)(const void *)m->payload);
        return ACTOR_CONTINUE;
    case ORDER_END:
        return ACTOR_STOP;
    case ORDER_PING:
        actor_reply_bytes(m, ORDER_PING, NULL, 0);
        return ACTOR_CONTINUE;
    case MESSAGE_EXIT:
        return ((struct plan *)state)->deaf ? ACTOR_CONTINUE : ACTOR_STOP;
    default:
        return ACTOR_CONTINUE;
    }
}

static void worker_terminate(void *state, const struct reason *why)
{
    const struct plan *p = state;
    (void)why;
    while (p->deaf)
        actor_sleep(actor_deadline_ms(1000000));
    if (p->end_ms)
        pass_ms(p->end_ms);
    if (p->talks)
        actor_exit(reason_with_detail(reason_of(REASON_SHUTDOWN), "so long", 7));
}

static const struct actor_class worker_class = {
    .name = "worker", .state_size = sizeof(struct plan), .init = worker_init, .handle = worker_handle};
static const struct actor_class trapper_class = {.name = "trapper",
                                                 .state_size = sizeof(struct plan),
                                                 .init = worker_init,
                                                 .handle = worker_handle,
                                                 .terminate = worker_terminate,
                                                 .trap_exits = true};

/* One that traps exits, with further fields of its plan. */
#define TRAPPER(id_, shutdown_ms_, ...)                       \
    ((struct child_spec){.id = (id_),                         \
                         .class = &trapper_class,             \
                         .args = &(struct plan){__VA_ARGS__}, \
                         .args_size = sizeof(struct plan),    \
                         .shutdown_ms = (shutdown_ms_)})
#define WORKER(id_, number_, ...)                                     \
    ((struct child_spec){.id = (id_),                                 \
                         .class = &worker_class,                      \
                         .args = &(struct plan){.number = (number_)}, \
                         .args_size = sizeof(struct plan),            \
                         __VA_ARGS__})

static void ping(actor_pid pid)
{
    TEST_CHECK(actor_call(pid, message_new(ORDER_PING, 0), NULL, DEADLINE_NONE) == OK);
}

static actor_pid start(const struct supervisor_spec *spec)
{
    struct start_result r;
    enum error e = supervisor_start(spec, SPAWN_HERE, &r, DEADLINE_NONE);
    TEST_CHECK(e == OK);
    TEST_MSG("start: %s", error_name(e));
    return r.pid;
}

static struct child_info info_of(actor_pid sup, const char *id)
{
    struct child_info info = {.state = CHILD_STATE_COUNT};
    TEST_CHECK(supervisor_which_child(sup, id, &info, DEADLINE_NONE) == OK);
    return info;
}

static struct supervisor_info inspect(actor_pid sup)
{
    struct supervisor_info info = {.restarts = UINT64_MAX};
    TEST_CHECK(supervisor_inspect(sup, &info, DEADLINE_NONE) == OK);
    return info;
}

static struct child_counts counts(actor_pid sup)
{
    struct child_counts c = {.specs = UINT64_MAX};
    TEST_CHECK(supervisor_count_children(sup, &c, DEADLINE_NONE) == OK);
    return c;
}

static size_t arena_of(actor_pid pid)
{
    struct actor_info info = {0};
    TEST_CHECK(actor_inspect(pid, &info, DEADLINE_NONE) == OK);
    return info.arena_bytes;
}

/* The reason of this pid's EXIT, without detail. */
static struct reason wait_exit(actor_pid pid)
{
    struct reason why = reason_of(REASON_KIND_COUNT);
    for (;;) {
        struct message *m = actor_receive(NULL, NULL, actor_deadline_ms(1000000));
        if (!m)
            return why;
        struct message_exit *x = message_body(m, sizeof *x);
        bool found = m->type == MESSAGE_EXIT && x && x->pid == pid;
        if (found) {
            why = x->reason;
            why.detail = NULL;
        }
        message_free(m);
        if (found)
            return why;
    }
}

static void expect_state(actor_pid sup, const char *id, enum child_state state, int line)
{
    struct child_info info = info_of(sup, id);
    TEST_CHECK_(info.state == state, "line %d: '%s' is %s, not %s", line, id, child_state_name(info.state),
                child_state_name(state));
}
#define EXPECT_STATE(sup, id, state) expect_state(sup, id, state, __LINE__)

/* ---- the table ---- */

static struct child *table_add_id(struct children *t, const char *id, uint32_t number)
{
    struct child_plan *plan =
        children_block(t, sizeof *plan + strlen(id) + 1); /* as plan_new does, for a class that isn't there */
    *plan = (struct child_plan){.id_size = (uint8_t)(strlen(id) + 1), .significant = number % 2};
    memcpy(plan->text, id, strlen(id) + 1);
    struct child *c = child_new(t, plan, true);
    TEST_ASSERT(c != NULL);
    static const unsigned char args[700];
    TEST_CHECK(child_keep_args(t, c, args, number % sizeof args));
    child_hash_id(t, c);
    return c;
}

static struct child *table_add(struct children *t, uint32_t number)
{
    char id[32];
    snprintf(id, sizeof id, "child %u", number);
    return table_add_id(t, id, number);
}

static struct child *table_find(struct children *t, uint32_t number)
{
    char id[32];
    snprintf(id, sizeof id, "child %u", number);
    return child_of_id(t, id);
}

static void table_body(void)
{
    enum { MANY = 3000 };
    static struct children t;
    static uint64_t tags[MANY];
    TEST_CHECK(children_init(&t));
    TEST_CHECK(child_of_tag(&t, 0) == NULL && child_of_tag(&t, UINT64_MAX) == NULL &&
               !child_of_id(&t, "child 0"));
    size_t full = 0;
    for (unsigned round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < MANY; i++)
            tags[i] = child_tag(table_add(&t, i));
        size_t bytes = arena_of(actor_self());
        TEST_CHECK(round == 0 || bytes == full); /* everything is used again */
        full = bytes;
        TEST_CHECK(t.count == MANY);
        uint32_t place = 0;
        for (uint32_t i = t.oldest; i != CHILD_NONE; i = child_at(&t, i)->newer, place++)
            TEST_CHECK(child_tag(child_at(&t, i)) == tags[place]);
        TEST_CHECK(place == MANY);
        for (uint32_t i = 0; i < MANY; i++)
            TEST_CHECK(table_find(&t, i) == child_of_tag(&t, tags[i]) && table_find(&t, i));
        for (uint32_t i = 0; i < MANY; i++) { /* in another order than they came */
            uint32_t which = i * 7 % MANY;
            child_free(&t, table_find(&t, which));
            TEST_CHECK(child_of_tag(&t, tags[which]) == NULL && table_find(&t, which) == NULL);
            if (i == MANY / 2)
                for (uint32_t j = i + 1; j < MANY; j++)
                    TEST_CHECK(table_find(&t, j * 7 % MANY) != NULL);
        }
        TEST_CHECK(t.count == 0 && t.oldest == CHILD_NONE && t.newest == CHILD_NONE &&
                   t.significant_left == 0);
    }
}

static void test_table(void)
{
    simulate(1, table_body);
}

/* Two ids of one length and two of different ones, whose hashes are the same. */
static void same_hash_body(void)
{
    static const char *const ids[] = {"a129018", "a146691", "a116757", "bb251043"};
    static struct children t;
    struct child *c[4];
    TEST_CHECK(children_init(&t));
    for (uint32_t i = 0; i < 4; i++)
        c[i] = table_add_id(&t, ids[i], i);
    TEST_CHECK(c[0]->hash == c[1]->hash && c[2]->hash == c[3]->hash);
    for (uint32_t i = 0; i < 4; i++)
        TEST_CHECK(child_of_id(&t, ids[i]) == c[i]);
    child_free(&t, c[1]);
    child_free(&t, c[3]);
    TEST_CHECK(child_of_id(&t, ids[0]) == c[0] && !child_of_id(&t, ids[1]));
    TEST_CHECK(child_of_id(&t, ids[2]) == c[2] && !child_of_id(&t, ids[3]));
}

static void test_same_hash(void)
{
    simulate(1, same_hash_body);
}

static void full_table_body(void)
{
    static struct children t;
    TEST_CHECK(children_init(&t));
    struct child *first = table_add(&t, 0);
    uint32_t used = t.records_used;
    t.records_used = SUPERVISOR_CHILDREN_MAX; /* as if so many had come */
    TEST_CHECK(child_new(&t, first->plan, false) == NULL && t.count == 1 && t.newest == first->index);
    t.records_used = used;
    const struct child *second = child_new(&t, first->plan, false);
    TEST_CHECK(second && second->index == used && t.count == 2);
}

static void test_full_table(void)
{
    simulate(1, full_table_body);
}

static void blocks_body(void)
{
    static struct children t;
    TEST_CHECK(children_init(&t));
    for (size_t size = 1; size <= CHILD_BLOCK_MAX; size += size / 7 + 1) {
        unsigned char *a = children_block(&t, size);
        TEST_ASSERT(a != NULL);
        TEST_CHECK((uintptr_t)a % 16 == 0);
        memset(a, 0x5a, size);
        children_block_free(&t, a, size);
        TEST_CHECK(children_block(&t, size) == a);
    }
}

static void test_blocks(void)
{
    simulate(1, blocks_body);
}

static void counts_body(void)
{
    static struct children t;
    TEST_CHECK(children_init(&t));
    struct child *a = table_add(&t, 1), *b = table_add(&t, 2); /* 1 is significant */
    child_become(&t, a, CHILD_STARTING);
    TEST_CHECK(t.running == 0 && t.significant_left == 1);
    child_become(&t, a, CHILD_RUNNING);
    child_become(&t, b, CHILD_RUNNING);
    TEST_CHECK(t.running == 2 && t.significant_left == 1);
    child_become(&t, a, CHILD_QUARANTINED);
    TEST_CHECK(t.running == 1 && t.significant_left == 1);
    uint64_t tag = child_tag(b);
    child_outdate(b);
    TEST_CHECK(child_of_tag(&t, tag) == NULL && child_of_tag(&t, child_tag(b)) == b);
    child_free(&t, a);
    child_free(&t, b);
    TEST_CHECK(t.running == 0 && t.significant_left == 0);
}

static void test_counts(void)
{
    simulate(1, counts_body);
}

/* ---- quarantine: AMB-T-07 ---- */

#define SHY                                                  \
    {                                                        \
        .failures = 5, .window_ms = 60000, .retry_ms = 60000 \
    }

static void quarantine_body(void)
{
    actor_pid sup = start(&(struct supervisor_spec){
        .name = "rooms",
        .intensity = 20,
        .period_ms = 60000,
        .children = (struct child_spec[]){WORKER("a", 0, .quarantine = SHY), WORKER("b", 1)},
        .children_count = 2});
    for (unsigned i = 0; i < 5; i++) { /* dead before its first message */
        EXPECT_STATE(sup, "a", CHILD_RUNNING);
        actor_kill(seen.pid[0]);
        settle();
    }
    EXPECT_STATE(sup, "a", CHILD_QUARANTINED);
    struct child_info info = info_of(sup, "a");
    TEST_CHECK(info.pid == 0 && info.last_pid == seen.pid[0] && !strcmp(info.last_reason, "killed"));
    TEST_CHECK(seen.begun[0] == 5);
    TEST_CHECK(inspect(sup).budget_used == 4);
    TEST_CHECK(counted(TELEMETRY_SUPERVISOR_QUARANTINE, "rooms") == 1);
    TEST_CHECK(supervisor_delete_child(sup, "a", DEADLINE_NONE) == ERR_QUARANTINED);
    struct child_result r = {0};
    TEST_CHECK(supervisor_start_child(sup, &WORKER("a", 0), &r, DEADLINE_NONE) == ERR_QUARANTINED);
    pass_ms(59999);
    EXPECT_STATE(sup, "a", CHILD_QUARANTINED);
    pass_ms(2);
    EXPECT_STATE(sup, "a", CHILD_RUNNING);
    TEST_CHECK(seen.begun[0] == 6);
    TEST_CHECK(inspect(sup).restarts == 4); /* the way out costs no budget */
    actor_kill(seen.pid[0]);                /* on probation one failure suffices */
    settle();
    EXPECT_STATE(sup, "a", CHILD_QUARANTINED);
    TEST_CHECK(inspect(sup).restarts == 4);
    TEST_CHECK(supervisor_resume_child(sup, "a", DEADLINE_NONE) == OK);
    ping(seen.pid[0]); /* proves itself */
    actor_kill(seen.pid[0]);
    settle();
    EXPECT_STATE(sup, "a", CHILD_RUNNING);
    TEST_CHECK(inspect(sup).restarts == 5);
    TEST_CHECK(seen.begun[1] == 1);
    TEST_CHECK(supervisor_resume_child(sup, "a", DEADLINE_NONE) == ERR_RUNNING);
}

static void test_quarantine(void)
{
    simulate_many(quarantine_body);
}

/* Who has handled a message failed later, not at start. */
static void quarantine_spares_body(void)
{
    actor_pid sup =
        start(&(struct supervisor_spec){.intensity = 100,
                                        .period_ms = 60000,
                                        .children = &WORKER("a", 0, .quarantine = {.failures = 3}),
                                        .children_count = 1});
    for (unsigned i = 0; i < 10; i++) {
        ping(seen.pid[0]);
        actor_kill(seen.pid[0]);
        settle();
        EXPECT_STATE(sup, "a", CHILD_RUNNING);
    }
    for (unsigned i = 0; i < 3; i++) { /* ended by the first message: never got through one */
        EXPECT_STATE(sup, "a", CHILD_RUNNING);
        actor_cast(seen.pid[0], ORDER_CRASH, NULL, 0);
        settle();
    }
    EXPECT_STATE(sup, "a", CHILD_QUARANTINED);
}

static void test_quarantine_spares(void)
{
    simulate_many(quarantine_spares_body);
}

/* Failures that lie further apart than the window are forgotten; the window is closed. */
static void quarantine_window_body(void)
{
    actor_pid sup = start(&(struct supervisor_spec){
        .intensity = 100,
        .period_ms = 60000,
        .children = &WORKER("a", 0, .quarantine = {.failures = 2, .window_ms = 1000, .retry_ms = 500}),
        .children_count = 1});
    for (unsigned i = 0; i < 4; i++) {
        actor_kill(seen.pid[0]);
        settle();
        EXPECT_STATE(sup, "a", CHILD_RUNNING);
        pass_ms(1001);
    }
    actor_kill(seen.pid[0]);
    pass_ms(900);
    EXPECT_STATE(sup, "a", CHILD_RUNNING);
    actor_kill(seen.pid[0]);
    settle();
    EXPECT_STATE(sup, "a", CHILD_QUARANTINED);
    TEST_CHECK(supervisor_terminate_child(sup, "a", DEADLINE_NONE) ==
               OK); /* for good: the timer finds nobody */
    pass_ms(10000);
    EXPECT_STATE(sup, "a", CHILD_STOPPED);
    TEST_CHECK(supervisor_resume_child(sup, "a", DEADLINE_NONE) == ERR_INVALID);
    TEST_CHECK(supervisor_delete_child(sup, "a", DEADLINE_NONE) == OK);
}

static void test_quarantine_window(void)
{
    simulate_many(quarantine_window_body);
}

/* In a group the one set aside is out of it: the others live on, and start without it. */
static void quarantine_group_body(void)
{
    actor_pid sup = start(&(struct supervisor_spec){
        .strategy = ONE_FOR_ALL,
        .intensity = 100,
        .period_ms = 60000,
        .children = (struct child_spec[]){WORKER("a", 0),
                                          WORKER("b", 1, .quarantine = {.failures = 2, .retry_ms = 1000}),
                                          WORKER("c", 2)},
        .children_count = 3});
    seen.fails[1] = 2;
    actor_kill(seen.pid[0]);
    settle();
    EXPECT_STATE(sup, "a", CHILD_RUNNING);
    EXPECT_STATE(sup, "b", CHILD_QUARANTINED);
    EXPECT_STATE(sup, "c", CHILD_RUNNING);
    TEST_CHECK(counted(TELEMETRY_SUPERVISOR_START_ERROR, "unnamed") == 2);
    uint32_t begun = seen.begun[0];
    pass_ms(1001);
    EXPECT_STATE(sup, "b", CHILD_RUNNING);
    TEST_CHECK(seen.begun[0] == begun); /* it joins them, they needn't start again */
}

/* Whoever dies takes the others with him, but not the one that is set aside: that has its own time. */
static void quarantine_stays_body(void)
{
    actor_pid sup = start(&(struct supervisor_spec){
        .strategy = ONE_FOR_ALL,
        .intensity = 100,
        .period_ms = 60000,
        .children = (struct child_spec[]){WORKER("a", 0),
                                          WORKER("b", 1, .quarantine = {.failures = 1, .retry_ms = 1000}),
                                          WORKER("c", 2)},
        .children_count = 3});
    actor_kill(seen.pid[1]);
    settle();
    EXPECT_STATE(sup, "b", CHILD_QUARANTINED);
    pass_ms(500);
    actor_pid a = seen.pid[0];
    actor_kill(seen.pid[2]);
    settle();
    EXPECT_STATE(sup, "a", CHILD_RUNNING);
    EXPECT_STATE(sup, "b", CHILD_QUARANTINED);
    EXPECT_STATE(sup, "c", CHILD_RUNNING);
    TEST_CHECK(!actor_alive(a) && seen.begun[0] == 2 && seen.begun[1] == 1 && seen.begun[2] == 2);
    pass_ms(499);
    EXPECT_STATE(sup, "b", CHILD_QUARANTINED);
    pass_ms(2);
    EXPECT_STATE(sup, "b", CHILD_RUNNING);
    TEST_CHECK(seen.begun[0] == 2 && seen.begun[1] == 2 && seen.begun[2] == 2);
}

static void test_quarantine_stays(void)
{
    simulate_many(quarantine_stays_body);
}

static void test_quarantine_group(void)
{
    simulate_many(quarantine_group_body);
}

static void quarantine_dynamic_body(void)
{
    actor_pid sup = start(&(struct supervisor_spec){
        .strategy = DYNAMIC,
        .intensity = 100,
        .period_ms = 60000,
        .max_children = 1,
        .template = &WORKER(NULL, 0, .quarantine = {.failures = 1, .retry_ms = 3600000})});
    struct child_result r;
    TEST_CHECK(supervisor_start_dynamic(sup, NULL, 0, NULL, &r, DEADLINE_NONE) == OK);
    actor_pid last = r.pid;
    actor_kill(last);
    settle();
    struct child_counts c = counts(sup);
    TEST_CHECK(c.specs == 1 && c.active == 0 && c.workers == 1);
    TEST_CHECK(supervisor_start_dynamic(sup, NULL, 0, NULL, &r, DEADLINE_NONE) == ERR_MAX_CHILDREN);
    struct child_info info;
    size_t stored, total;
    TEST_CHECK(supervisor_which_children(sup, 0, &info, 1, &stored, &total, DEADLINE_NONE) == OK);
    TEST_CHECK(stored == 1 && total == 1 && info.state == CHILD_QUARANTINED && info.last_pid == last);
    TEST_CHECK(supervisor_resume_pid(sup, last, DEADLINE_NONE) == OK);
    TEST_CHECK(seen.pid[0] != last && counts(sup).active == 1);
    TEST_CHECK(supervisor_resume_pid(sup, last, DEADLINE_NONE) == ERR_NOT_FOUND); /* it has a new pid now */
    TEST_CHECK(supervisor_resume_pid(sup, seen.pid[0], DEADLINE_NONE) == ERR_RUNNING);
    actor_kill(seen.pid[0]);
    settle();
    TEST_CHECK(supervisor_terminate_pid(sup, seen.pid[0], DEADLINE_NONE) == OK); /* by the last pid */
    TEST_CHECK(counts(sup).workers == 0);
}

static void test_quarantine_dynamic(void)
{
    simulate_many(quarantine_dynamic_body);
}

/* ---- backoff ---- */

static void backoff_body(void)
{
    actor_pid sup = start(&(struct supervisor_spec){
        .intensity = 1,
        .period_ms = 1000,
        .children = &WORKER("a", 0, .backoff = {.first_ms = 1000000, .max_ms = 4000000, .reset_ms = 5000}),
        .children_count = 1});
    const uint64_t limits[] = {1000000, 2000000, 4000000, 4000000};
    for (unsigned i = 0; i < 4; i++) {
        actor_kill(seen.pid[0]);
        settle();
        EXPECT_STATE(sup, "a", CHILD_BACKING_OFF);
        struct child_result r = {0};
        TEST_CHECK(supervisor_restart_child(sup, "a", &r, DEADLINE_NONE) == ERR_RESTARTING);
        TEST_CHECK(supervisor_delete_child(sup, "a", DEADLINE_NONE) == ERR_RESTARTING);
        TEST_CHECK(inspect(sup).restarts == i); /* granted when it is due */
        uint32_t begun = seen.begun[0];
        actor_pid dead = seen.pid[0];
        uint64_t waited = 0;
        while (seen.begun[0] == begun && waited <= limits[i])
            pass_ms(1000), waited += 1000;
        TEST_CHECK_(seen.begun[0] == begun + 1, "delay %u within %llu ms", i, (unsigned long long)limits[i]);
        TEST_CHECK(seen.pid[0] != dead && inspect(sup).restarts == i + 1);
    }
    pass_ms(6000); /* lives long enough to be forgiven */
    uint32_t begun = seen.begun[0];
    actor_kill(seen.pid[0]);
    pass_ms(1000001);
    TEST_CHECK(seen.begun[0] == begun + 1);
}

static void test_backoff(void)
{
    simulate_many(backoff_body);
}

/* Twice the limit may be more than the last one, which no delay is longer than. */
static void backoff_last_limit_body(void)
{
    actor_pid sup = start(
        &(struct supervisor_spec){.intensity = 100,
                                  .period_ms = 1000,
                                  .children = &WORKER("a", 0, .backoff = {.first_ms = 300, .max_ms = 400}),
                                  .children_count = 1});
    for (unsigned i = 0; i < 10; i++) {
        actor_kill(seen.pid[0]);
        settle();
        EXPECT_STATE(sup, "a", CHILD_BACKING_OFF);
        pass_ms(400);
        EXPECT_STATE(sup, "a", CHILD_RUNNING);
    }
}

static void test_backoff_last_limit(void)
{
    simulate_many(backoff_last_limit_body);
}

/* A group waits as a whole, and comes back in order. */
static void backoff_group_body(void)
{
    actor_pid sup = start(&(struct supervisor_spec){
        .strategy = REST_FOR_ONE,
        .intensity = 1,
        .period_ms = 1000,
        .children = (struct child_spec[]){WORKER("a", 0), WORKER("b", 1, .backoff = {.first_ms = 60000}),
                                          WORKER("c", 2), WORKER("d", 3, .restart = RESTART_TEMPORARY)},
        .children_count = 4});
    actor_pid c = seen.pid[2];
    actor_kill(seen.pid[1]);
    settle();
    EXPECT_STATE(sup, "a", CHILD_RUNNING);
    EXPECT_STATE(sup, "b", CHILD_BACKING_OFF);
    EXPECT_STATE(sup, "c", CHILD_STOPPED);
    TEST_CHECK(!actor_alive(c));
    TEST_CHECK(counts(sup).specs == 3); /* temporary children aren't started again */
    TEST_CHECK(supervisor_resume_child(sup, "b", DEADLINE_NONE) == OK);
    EXPECT_STATE(sup, "b", CHILD_RUNNING);
    EXPECT_STATE(sup, "c", CHILD_RUNNING);
    TEST_CHECK(seen.begun[0] == 1 && seen.begun[1] == 2 && seen.begun[2] == 2 && seen.begun[3] == 1);
    pass_ms(120000);
    TEST_CHECK(seen.begun[1] == 2); /* the timer was called off */
}

static void test_backoff_group(void)
{
    simulate_many(backoff_group_body);
}

/* ---- starting again by hand ---- */

/* As at its first start: one that isn't needed stays in the list, without a life. */
static void ignored_body(void)
{
    actor_pid sup = start(&(struct supervisor_spec){.children = &WORKER("a", 0), .children_count = 1});
    actor_pid first = seen.pid[0];
    TEST_CHECK(supervisor_terminate_child(sup, "a", DEADLINE_NONE) == OK);
    seen.ignores[0] = 1;
    struct child_result r = {.pid = first};
    TEST_CHECK(supervisor_restart_child(sup, "a", &r, DEADLINE_NONE) == OK && r.pid == 0);
    EXPECT_STATE(sup, "a", CHILD_STOPPED);
    TEST_CHECK(seen.begun[0] == 2 && counts(sup).specs == 1 && counts(sup).active == 0);
    TEST_CHECK(supervisor_restart_child(sup, "a", &r, DEADLINE_NONE) == OK && r.pid == seen.pid[0]);
    EXPECT_STATE(sup, "a", CHILD_RUNNING);
}

static void test_ignored(void)
{
    simulate_many(ignored_body);
}

/* Between a restart that failed and the next attempt. */
static void resume_restarting_body(void)
{
    actor_pid sup = start(&(struct supervisor_spec){
        .intensity = 5, .period_ms = 1000, .children = &TRAPPER("a", 0, .init_ms = 10), .children_count = 1});
    seen.fails[0] = 1;
    actor_kill(seen.pid[0]);
    pass_ms(5); /* its init is at it; the call comes before the next attempt's note */
    TEST_CHECK(seen.begun[0] == 2);
    TEST_CHECK(supervisor_resume_child(sup, "a", DEADLINE_NONE) == ERR_RESTARTING);
    pass_ms(20);
    EXPECT_STATE(sup, "a", CHILD_RUNNING);
    TEST_CHECK(seen.begun[0] == 3 && inspect(sup).restarts == 2);
}

static void test_resume_restarting(void)
{
    simulate_many(resume_restarting_body);
}

/* ---- the budget ---- */

static uint32_t intensity_now;

/* Beyond what fits into the window itself (8), and beyond what an arena gives in one piece (8,184). */
static void intensity_body(void)
{
    actor_pid sup = start(&(struct supervisor_spec){.name = "busy",
                                                    .intensity = (int32_t)intensity_now,
                                                    .period_ms = 3600000,
                                                    .children = &WORKER("a", 0),
                                                    .children_count = 1});
    for (uint32_t i = 0; i < intensity_now; i++) {
        actor_kill(seen.pid[0]);
        settle();
    }
    struct supervisor_info info = inspect(sup);
    TEST_CHECK(info.budget_used == intensity_now && info.restarts == intensity_now);
    TEST_CHECK(seen.begun[0] == intensity_now + 1);
    TEST_CHECK(counted(TELEMETRY_SUPERVISOR_RESTART, "busy") == intensity_now);
    actor_kill(seen.pid[0]);
    struct reason why = wait_exit(sup);
    TEST_CHECK(why.kind == REASON_SHUTDOWN && why.code == 0);
    TEST_CHECK(seen.begun[0] == intensity_now + 1);
    TEST_CHECK(counted(TELEMETRY_SUPERVISOR_ESCALATION, "busy") == 1);
    TEST_CHECK(counted(TELEMETRY_FAILURE_RESTART_EXHAUSTED, "busy") == 1);
}

static void test_intensity(void)
{
    const uint32_t sizes[] = {1, 8, 9, 100, 9000};
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        intensity_now = sizes[i];
        simulate(i, intensity_body);
    }
}

/* AMB-T-05: the root's exhaustion ends the process with status 70, and its last words say what and how often.
 */
static void test_root_exhausted(void)
{
    const struct supervisor_spec spec = {.name = "root",
                                         .intensity = 3,
                                         .period_ms = 10000,
                                         .root = true,
                                         .children = &WORKER("a", 0),
                                         .children_count = 1};
    memset(&seen, 0, sizeof seen);
    log_used = 0;
    sim = sim_create(&(struct sim_options){.seed = 5, .runtime = {.log = log_line}});
    unsigned char storage[SUPERVISOR_ARGS_MAX];
    actor_pid root;
    TEST_CHECK(runtime_spawn(sim_runtime(sim),
                             &(struct spawn_options){.class = &supervisor_class,
                                                     .args = storage,
                                                     .args_size = supervisor_args(&spec, storage)},
                             &root) == OK);
    sim_settle(sim, 100000);
    TEST_CHECK(seen.begun[0] == 1 && sim_exit_status(sim) == -1);
    for (unsigned i = 0; i < 4; i++) {
        TEST_CHECK(seen.begun[0] == i + 1);
        runtime_post(sim_runtime(sim), seen.pid[0], ORDER_FAIL, NULL, 0);
        sim_settle(sim, 100000);
    }
    TEST_CHECK(seen.begun[0] == 4);
    TEST_CHECK(sim_exit_status(sim) == RUNTIME_EXIT_EXHAUSTED);
    sim_destroy(sim);
}

/* ---- looking ---- */

static void which_body(void)
{
    enum { MANY = 700 };
    static struct child_info infos[MANY + 10];
    actor_pid sup = start(&(struct supervisor_spec){.strategy = ONE_FOR_ONE});
    char id[16];
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(id, sizeof id, "%u", i);
        struct child_result r;
        TEST_CHECK(supervisor_start_child(sup, &WORKER(id, 0), &r, DEADLINE_NONE) == OK);
    }
    size_t stored = 0, total = 0;
    TEST_CHECK(supervisor_which_children(sup, 0, infos, MANY + 10, &stored, &total, DEADLINE_NONE) == OK);
    TEST_CHECK(stored == MANY && total == MANY && MANY > 2 * WHICH_MAX);
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(id, sizeof id, "%u", MANY - 1 - i);
        TEST_CHECK(!strcmp(infos[i].id, id) && infos[i].state == CHILD_RUNNING);
    }
    TEST_CHECK(supervisor_which_children(sup, 650, infos, 10, &stored, &total, DEADLINE_NONE) == OK);
    TEST_CHECK(stored == 10 && total == MANY && !strcmp(infos[0].id, "49"));
    TEST_CHECK(supervisor_terminate_child(sup, "48", DEADLINE_NONE) == OK);
    TEST_CHECK(supervisor_delete_child(sup, "48", DEADLINE_NONE) == OK);
    TEST_CHECK(supervisor_which_children(sup, 650, infos, 100, &stored, &total, DEADLINE_NONE) == OK);
    TEST_CHECK(stored == 49 && total == MANY - 1 && !strcmp(infos[0].id, "49") && !strcmp(infos[1].id, "47"));
    TEST_CHECK(supervisor_which_children(sup, MANY, infos, 10, &stored, &total, DEADLINE_NONE) == OK);
    TEST_CHECK(stored == 0 && total == MANY - 1);
    TEST_CHECK(supervisor_which_children(sup, 0, NULL, 0, &stored, &total, DEADLINE_NONE) == OK);
    TEST_CHECK(stored == 0 && total == MANY - 1);
}

/* Who asks by himself for more than one message can hold. */
static void which_too_many_body(void)
{
    enum { MANY = 300 };
    actor_pid sup = start(&(struct supervisor_spec){.strategy = DYNAMIC, .template = &WORKER(NULL, 0)});
    for (unsigned i = 0; i < MANY; i++)
        TEST_CHECK(supervisor_start_dynamic(sup, NULL, 0, NULL, NULL, DEADLINE_NONE) == OK);
    struct which_request r = {.count = UINT32_MAX};
    struct message *m;
    TEST_ASSERT(actor_call(sup, message_of(CALL_WHICH_CHILDREN, &r, sizeof r), &m, DEADLINE_NONE) == OK);
    const struct which_answer *a = (const struct which_answer *)(const void *)m->payload;
    TEST_CHECK(m->type == ANSWER_CHILDREN && WHICH_MAX < MANY && a->total == MANY);
    TEST_CHECK(m->size == sizeof *a + WHICH_MAX * sizeof(struct child_info));
    TEST_CHECK(a->infos[0].pid == seen.pid[0] && actor_alive(a->infos[WHICH_MAX - 1].pid));
    message_free(m);
}

static void test_which_too_many(void)
{
    simulate(3, which_too_many_body);
}

static void test_which(void)
{
    simulate(3, which_body);
}

static void reasons_body(void)
{
    actor_pid sup = start(&(struct supervisor_spec){
        .intensity = 9, .period_ms = 1000, .children = &WORKER("a", 0), .children_count = 1});
    TEST_CHECK(!info_of(sup, "a").last_reason[0]);
    actor_cast(seen.pid[0], ORDER_FAIL, NULL, 0);
    settle();
    TEST_CHECK(!strcmp(info_of(sup, "a").last_reason, "error(12): out of cheese"));
    TEST_MSG("%s", info_of(sup, "a").last_reason);
    actor_kill(seen.pid[0]);
    settle();
    struct child_info info = info_of(sup, "a");
    TEST_CHECK(!strcmp(info.last_reason, "killed") && info.restarts == 2);
}

static void test_reasons(void)
{
    simulate_many(reasons_body);
}

/* ---- memory ---- */

static void args_body(void)
{
    static struct {
        struct plan plan;
        unsigned char bytes[50000];
    } big;
    actor_pid sup = start(&(struct supervisor_spec){.strategy = ONE_FOR_ONE});
    size_t before = arena_of(sup);
    struct child_result r;
    for (unsigned i = 0; i < 20; i++) {
        char id[16];
        snprintf(id, sizeof id, "%u", i);
        TEST_CHECK(supervisor_start_child(sup,
                                          &(struct child_spec){.id = id,
                                                               .class = &worker_class,
                                                               .args = &big,
                                                               .args_size = sizeof big,
                                                               .restart = RESTART_TEMPORARY},
                                          &r, DEADLINE_NONE) == OK);
    }
    TEST_CHECK(arena_of(sup) - before < sizeof big); /* RT-15: not one of the twenty */
    TEST_CHECK(
        supervisor_start_child(
            sup,
            &(struct child_spec){.id = "kept", .class = &worker_class, .args = &big, .args_size = sizeof big},
            &r, DEADLINE_NONE) == OK);
    TEST_CHECK(arena_of(sup) - before >= sizeof big);
    size_t after = arena_of(sup);
    for (unsigned i = 0; i < 50; i++) {
        TEST_CHECK(supervisor_terminate_child(sup, "kept", DEADLINE_NONE) == OK);
        TEST_CHECK(supervisor_delete_child(sup, "kept", DEADLINE_NONE) == OK);
        TEST_CHECK(supervisor_start_child(
                       sup,
                       &(struct child_spec){
                           .id = "kept", .class = &worker_class, .args = &big, .args_size = sizeof big},
                       &r, DEADLINE_NONE) == OK);
    }
    TEST_CHECK(arena_of(sup) == after);
}

static void test_args(void)
{
    simulate(2, args_body);
}

static void churn_body(void)
{
    actor_pid sup = start(&(struct supervisor_spec){.strategy = DYNAMIC, .template = &WORKER(NULL, 0)});
    size_t after = 0;
    for (unsigned i = 0; i < 2000; i++) {
        struct child_result r = {0};
        TEST_CHECK(supervisor_start_dynamic(sup, &(struct plan){.number = i % WORKERS}, sizeof(struct plan),
                                            "worker", &r, DEADLINE_NONE) == OK);
        TEST_CHECK(actor_whereis("worker") == r.pid);
        TEST_CHECK(supervisor_terminate_pid(sup, r.pid, DEADLINE_NONE) == OK);
        TEST_CHECK(!actor_alive(r.pid) && !actor_whereis("worker"));
        if (i == 10)
            after = arena_of(sup);
    }
    TEST_CHECK(arena_of(sup) == after);
    TEST_CHECK(counts(sup).workers == 0);
}

static void test_churn(void)
{
    simulate(4, churn_body);
}

/* ---- ending ---- */

/* OTP's naughty child: unlinked, it is still asked, waited for and gone when the call returns. */
static void unlinked_body(void)
{
    actor_pid sup = start(&(struct supervisor_spec){.children = &WORKER("a", 0), .children_count = 1});
    actor_cast(seen.pid[0], ORDER_UNLINK, NULL, 0);
    ping(seen.pid[0]);
    TEST_CHECK(supervisor_terminate_child(sup, "a", DEADLINE_NONE) == OK);
    TEST_CHECK(!actor_alive(seen.pid[0]));
    struct child_result r;
    TEST_CHECK(supervisor_restart_child(sup, "a", &r, DEADLINE_NONE) == OK);
    actor_cast(seen.pid[0], ORDER_UNLINK, NULL, 0);
    ping(seen.pid[0]);
    TEST_CHECK(supervisor_stop(sup, reason_of(REASON_NORMAL), DEADLINE_NONE) == OK);
    TEST_CHECK(!actor_alive(seen.pid[0]));
}

static void test_unlinked(void)
{
    simulate_many(unlinked_body);
}

/* Dynamic children are asked all at once: the whole takes as long as the slowest, and each has its own
 * deadline. */
static void parallel_body(void)
{
    actor_pid sup = start(&(struct supervisor_spec){.name = "many", .strategy = DYNAMIC});
    const int64_t shutdowns[] = {100, 3000, 2000, SHUTDOWN_AT_ONCE, SHUTDOWN_BRUTAL, 500};
    TEST_CHECK(supervisor_start_child(sup, &WORKER(NULL, 6), NULL, DEADLINE_NONE) ==
               OK); /* ends when it is asked */
    actor_pid pids[6];
    uint64_t refs[6];
    for (unsigned i = 0; i < 6; i++) {
        struct child_result r = {0};
        struct child_spec spec = {.class = &trapper_class,
                                  .args = &(struct plan){.number = i, .deaf = true},
                                  .args_size = sizeof(struct plan),
                                  .shutdown_ms = shutdowns[i]};
        TEST_CHECK(supervisor_start_child(sup, &spec, &r, DEADLINE_NONE) == OK);
        pids[i] = r.pid;
        refs[i] = actor_monitor(r.pid, i);
    }
    uint64_t began = actor_now();
    actor_exit_signal(sup, reason_of(REASON_SHUTDOWN));
    for (unsigned n = 0; n < 6; n++) {
        struct message *m = actor_receive(NULL, NULL, actor_deadline_ms(100000));
        struct message_down *d = m ? message_body(m, sizeof *d) : NULL;
        TEST_ASSERT(d && m->type == MESSAGE_DOWN);
        unsigned i = (unsigned)d->tag;
        uint64_t expected = shutdowns[i] < 0 ? 0 : (uint64_t)shutdowns[i];
        TEST_CHECK(refs[i] == d->ref && pids[i] == d->pid && d->reason.kind == REASON_KILLED);
        TEST_CHECK((actor_now() - began) / NS_PER_MS == expected);
        TEST_MSG("child %u after %llu ms", i, (unsigned long long)((actor_now() - began) / NS_PER_MS));
        message_free(m);
    }
    TEST_CHECK(wait_exit(sup).kind == REASON_SHUTDOWN);
    TEST_CHECK(counted(TELEMETRY_SUPERVISOR_SHUTDOWN_ERROR, "many") ==
               5); /* the brutal one was to be killed */
}

static void test_parallel(void)
{
    simulate_many(parallel_body);
}

/* What comes of a child between the order to end and its turn is told as it was: brutal is only who was killed, and a shutdown
 * with a detail is none. */
static void other_ends_body(void)
{
    actor_pid sup = start(&(struct supervisor_spec){
        .name = "ends",
        .children = (struct child_spec[]){WORKER("crashes", 0, .shutdown_ms = SHUTDOWN_BRUTAL),
                                          WORKER("stops", 1, .shutdown_ms = SHUTDOWN_BRUTAL,
                                                 .restart = RESTART_TRANSIENT),
                                          TRAPPER("slow", 0, .number = 2, .end_ms = 1000)},
        .children_count = 3});
    actor_exit_signal(sup, reason_of(REASON_SHUTDOWN));
    pass_ms(10);
    actor_cast(seen.pid[0], ORDER_CRASH, NULL, 0);
    actor_cast(seen.pid[1], ORDER_END, NULL, 0);
    TEST_CHECK(wait_exit(sup).kind == REASON_SHUTDOWN);
    TEST_CHECK(counted(TELEMETRY_SUPERVISOR_SHUTDOWN_ERROR, "ends") == 1);
    TEST_MSG("%s", log_text);
    sup = start(&(struct supervisor_spec){
        .name = "talks", .children = &TRAPPER("a", 0, .talks = true), .children_count = 1});
    TEST_CHECK(supervisor_terminate_child(sup, "a", DEADLINE_NONE) == OK);
    TEST_CHECK(counted(TELEMETRY_SUPERVISOR_SHUTDOWN_ERROR, "talks") == 1);
    TEST_CHECK(!strcmp(info_of(sup, "a").last_reason, "shutdown: so long"));
    TEST_MSG("%s", info_of(sup, "a").last_reason);
}

static void test_other_ends(void)
{
    simulate_many(other_ends_body);
}

/* So many ms that their ns don't fit, and so many that the end of them doesn't: without limit. */
static void endless_deadlines_body(void)
{
    static const int64_t limits[] = {36893488147420, 18446744073709};
    const uint64_t hours_ms = 10 * 3600 * 1000;
    for (unsigned i = 0; i < 2; i++) {
        actor_pid sup = start(
            &(struct supervisor_spec){.name = "endless",
                                      .children = &TRAPPER("a", limits[i], .end_ms = (uint32_t)hours_ms),
                                      .children_count = 1});
        uint64_t began = actor_now();
        TEST_CHECK(supervisor_terminate_child(sup, "a", DEADLINE_NONE) == OK);
        TEST_CHECK(actor_now() - began >= hours_ms * NS_PER_MS);
        TEST_CHECK(counted(TELEMETRY_SUPERVISOR_SHUTDOWN_ERROR, "endless") == 0);
    }
}

static void test_endless_deadlines(void)
{
    simulate_many(endless_deadlines_body);
}

/* The clock goes on while nobody runs: a child's time is up before the kill of another one has got through. */
static void late_kills_body(void)
{
    actor_pid sup = start(&(struct supervisor_spec){.name = "late", .strategy = DYNAMIC});
    actor_pid pids[8];
    for (uint32_t i = 0; i < 8; i++) {
        struct child_spec spec = TRAPPER(NULL, i ? (int64_t)i : SHUTDOWN_AT_ONCE, .number = i, .deaf = true);
        struct child_result r = {0};
        spec.scheduler = SPAWN_ON(i % runtime_schedulers());
        TEST_CHECK(supervisor_start_child(sup, &spec, &r, DEADLINE_NONE) == OK);
        pids[i] = r.pid;
    }
    actor_exit_signal(sup, reason_of(REASON_SHUTDOWN));
    for (unsigned i = 0; i < 40; i++) {
        sim_clock_advance(sim, NS_PER_MS);
        actor_yield();
    }
    TEST_CHECK(wait_exit(sup).kind == REASON_SHUTDOWN);
    for (uint32_t i = 0; i < 8; i++)
        TEST_CHECK(!actor_alive(pids[i]));
    TEST_CHECK(counted(TELEMETRY_SUPERVISOR_SHUTDOWN_ERROR, "late") == 8); /* each one is told of once */
}

static void test_late_kills(void)
{
    simulate_many(late_kills_body);
}

/* Who calls while everything ends hears so at once, and not when the slowest child is gone. */
static void refused_while_ending_body(void)
{
    actor_pid sup = start(
        &(struct supervisor_spec){.children = &(struct child_spec){.id = "slow",
                                                                   .class = &trapper_class,
                                                                   .args = &(struct plan){.end_ms = 4000},
                                                                   .args_size = sizeof(struct plan)},
                                  .children_count = 1});
    uint64_t began = actor_now();
    actor_exit_signal(sup, reason_of(REASON_SHUTDOWN));
    pass_ms(10);
    struct child_counts c;
    struct child_result r = {0};
    TEST_CHECK(supervisor_count_children(sup, &c, DEADLINE_NONE) == ERR_DOWN);
    TEST_CHECK(supervisor_start_child(sup, &WORKER("late", 1), &r, DEADLINE_NONE) == ERR_DOWN);
    TEST_CHECK(actor_now() - began < 20 * NS_PER_MS && seen.begun[1] == 0);
    struct message *reply = NULL; /* what no supervisor understands is refused by its end */
    TEST_CHECK(actor_call(sup, message_new(4711, 0), &reply, DEADLINE_NONE) == ERR_DOWN);
    TEST_CHECK(actor_now() - began >= 4000 * NS_PER_MS);
    TEST_CHECK(wait_exit(sup).kind == REASON_SHUTDOWN);
    TEST_CHECK(actor_now() - began >= 4000 * NS_PER_MS);
    TEST_CHECK(supervisor_count_children(sup, &c, DEADLINE_NONE) == ERR_NOPROC);
}

static void test_refused_while_ending(void)
{
    simulate_many(refused_while_ending_body);
}

/* Deaths of others while one is being stopped are neither lost nor mistaken for its own. */
static void deaths_meanwhile_body(void)
{
    struct child_spec slow = {.id = "slow",
                              .class = &trapper_class,
                              .args = &(struct plan){.number = 2, .end_ms = 1000},
                              .args_size = sizeof(struct plan)};
    actor_pid sup = start(&(struct supervisor_spec){
        .intensity = 9,
        .period_ms = 60000,
        .children = (struct child_spec[]){WORKER("a", 0), WORKER("b", 1, .restart = RESTART_TEMPORARY), slow},
        .children_count = 3});
    uint64_t ref;
    TEST_CHECK(actor_request(sup, message_of(CALL_TERMINATE_CHILD, "slow", 5), &ref) == OK);
    pass_ms(10);
    actor_kill(seen.pid[0]);
    actor_kill(seen.pid[1]);
    pass_ms(10);
    TEST_CHECK(seen.begun[0] == 1);
    size_t which;
    struct message *reply;
    TEST_CHECK(actor_request_wait(&ref, 1, &which, &reply, DEADLINE_NONE) == OK);
    settle();
    TEST_CHECK(seen.begun[0] == 2 && seen.begun[1] == 1);
    struct child_counts c = counts(sup);
    TEST_CHECK(c.specs == 2 && c.active == 1);
}

static void test_deaths_meanwhile(void)
{
    simulate_many(deaths_meanwhile_body);
}

static void storm_body(void)
{
    enum { MANY = 2000 };
    static actor_pid pids[MANY];
    actor_pid sup = start(&(struct supervisor_spec){
        .strategy = DYNAMIC, .template = &WORKER(NULL, 0, .restart = RESTART_TEMPORARY)});
    for (unsigned i = 0; i < MANY; i++) {
        struct child_result r = {0};
        TEST_CHECK(supervisor_start_dynamic(sup, NULL, 0, NULL, &r, DEADLINE_NONE) == OK);
        pids[i] = r.pid;
    }
    TEST_CHECK(counts(sup).active == MANY);
    for (unsigned i = 0; i < MANY; i++)
        actor_kill(pids[i]);
    TEST_CHECK(supervisor_terminate_pid(sup, pids[7], DEADLINE_NONE) == OK); /* in the middle of it */
    settle();
    struct child_counts c = counts(sup);
    TEST_CHECK(c.specs == 1 && c.active == 0 && c.workers == 0);
    for (unsigned i = 0; i < MANY; i++)
        TEST_CHECK(supervisor_start_dynamic(sup, NULL, 0, NULL, NULL, DEADLINE_NONE) == OK);
    TEST_CHECK(supervisor_stop(sup, reason_of(REASON_NORMAL), DEADLINE_NONE) == OK);
}

static void test_storm(void)
{
    simulate(6, storm_body);
    simulate(7, storm_body);
}

/* ---- what strangers send ---- */

static void strangers_body(void)
{
    actor_pid sup = start(&(struct supervisor_spec){
        .intensity = 1, .period_ms = 60000, .children = &WORKER("a", 0), .children_count = 1});
    struct message *reply = NULL;
    TEST_CHECK(actor_call(sup, message_new(4711, 0), &reply, DEADLINE_NONE) == ERR_UNANSWERED);
    TEST_CHECK(actor_cast(sup, 4712, NULL, 0) == OK);
    settle();
    TEST_CHECK(counted(TELEMETRY_MESSAGE_UNKNOWN, "supervisor") == 2);
    for (uint32_t type = SUPERVISOR_CALL_FIRST; type <= SUPERVISOR_CALL_LAST; type++)
        for (size_t size = 0; size < 300; size += 7) { /* nothing of this is what it should be */
            struct message *m = message_new(type, size);
            memset(m->payload, 0xff, size);
            if (type == CALL_COUNT_CHILDREN || type == CALL_INSPECT)
                actor_send(sup, m); /* these have nothing to be wrong; nobody waits for the answer */
            else
                TEST_CHECK(actor_call(sup, m, &reply, DEADLINE_NONE) == OK);
        }
    uint64_t tag = (uint64_t)1 << 32; /* the tag of "a": a stranger's note is nobody's */
    for (unsigned i = 0; i < 5; i++) {
        actor_cast(sup, NOTE_RETRY, &tag, sizeof tag);
        actor_cast(sup, NOTE_TIMER, &tag, sizeof tag);
        actor_exit_signal(sup, reason_of(REASON_ERROR)); /* the parent's own: but see below */
        break;
    }
    TEST_CHECK(wait_exit(sup).kind == REASON_ERROR); /* a signal from the parent is the parent's end */
    TEST_CHECK(seen.begun[0] == 1 && !actor_alive(seen.pid[0]));
}

static void test_strangers(void)
{
    simulate_many(strangers_body);
}

/* An EXIT, or a DOWN, of somebody else with the tag of this child, passed on to the supervisor. */
static void pass_on_an_end(actor_pid sup, uint64_t tag, bool down)
{
    actor_pid other;
    TEST_CHECK(actor_spawn(&(struct spawn_options){.class = &trapper_class,
                                                   .args = &(struct plan){.number = 7},
                                                   .args_size = sizeof(struct plan),
                                                   .link = !down,
                                                   .monitor = down,
                                                   .tag = tag},
                           &other) == OK);
    actor_kill(other);
    struct message *m = actor_receive(NULL, NULL, DEADLINE_NONE);
    TEST_CHECK(m->type == (down ? MESSAGE_DOWN : MESSAGE_EXIT));
    actor_send(sup, m);
    settle();
}

/* Tags are whoever's: a message that the runtime has written, too, is believed only of the child that it is about. */
static void passed_on_body(void)
{
    actor_pid sup = start(&(struct supervisor_spec){
        .intensity = 9,
        .period_ms = 60000,
        .children = (struct child_spec[]){WORKER("a", 0), WORKER("b", 1),
                                          TRAPPER("c", 0, .number = 2, .end_ms = 1000)},
        .children_count = 3});
    uint64_t tags[] = {(uint64_t)1 << 32 | 0, (uint64_t)1 << 32 | 1};
    actor_pid a = seen.pid[0];
    pass_on_an_end(sup, tags[0], false);
    pass_on_an_end(sup, tags[0], true);
    TEST_CHECK(info_of(sup, "a").pid == a && actor_alive(a) && inspect(sup).restarts == 0);
    /* b has stopped for good: no tag of it tells of a life */
    TEST_CHECK(supervisor_terminate_child(sup, "b", DEADLINE_NONE) == OK);
    uint64_t last = actor_monitor(seen.pid[1], ((uint64_t)2 << 32) + 1);
    struct message *down = actor_receive(NULL, NULL, DEADLINE_NONE);
    TEST_CHECK(last && down->type == MESSAGE_DOWN && down->ref == last);
    actor_exit_signal(sup, reason_of(REASON_SHUTDOWN));
    pass_ms(10);
    pass_on_an_end(sup, tags[0], false);
    pass_on_an_end(sup, tags[0], true);
    actor_send(sup, down);
    TEST_CHECK(actor_alive(a)); /* its turn comes behind c's */
    TEST_CHECK(wait_exit(sup).kind == REASON_SHUTDOWN);
    TEST_CHECK(!actor_alive(a) && counted(TELEMETRY_SUPERVISOR_SHUTDOWN_ERROR, "unnamed") == 0);
}

static void test_passed_on(void)
{
    simulate_many(passed_on_body);
}

/* ---- nested ---- */

static void nested_body(void)
{
    static struct plan plan = {.number = 0};
    static struct child_spec leaf = {
        .id = "leaf", .class = &worker_class, .args = &plan, .args_size = sizeof plan};
    static struct supervisor_spec inner = {.name = "inner",
                                           .register_name = true,
                                           .intensity = 1,
                                           .period_ms = 1000,
                                           .children = &leaf,
                                           .children_count = 1};
    unsigned char storage[SUPERVISOR_ARGS_MAX];
    size_t size = supervisor_args(&inner, storage);
    actor_pid sup =
        start(&(struct supervisor_spec){.name = "outer",
                                        .intensity = 3,
                                        .period_ms = 10000,
                                        .children = &(struct child_spec){.id = "inner",
                                                                         .class = &supervisor_class,
                                                                         .args = storage,
                                                                         .args_size = size,
                                                                         .type = CHILD_SUPERVISOR},
                                        .children_count = 1});
    actor_pid first = actor_whereis("inner");
    TEST_CHECK(first && first == info_of(sup, "inner").pid &&
               info_of(sup, "inner").shutdown_ms == SHUTDOWN_INFINITY);
    actor_kill(seen.pid[0]);
    settle();
    TEST_CHECK(actor_whereis("inner") == first && seen.begun[0] == 2);
    actor_kill(seen.pid[0]); /* one too many: AMB-T-04, a domain's end is one restart of its parent */
    settle();
    TEST_CHECK(actor_whereis("inner") && actor_whereis("inner") != first && seen.begun[0] == 3);
    TEST_CHECK(inspect(sup).budget_used == 1);
    TEST_CHECK(counted(TELEMETRY_SUPERVISOR_ESCALATION, "inner") == 1);
    TEST_CHECK(counted(TELEMETRY_SUPERVISOR_RESTART, "outer") == 1);
    TEST_CHECK(!strcmp(info_of(sup, "inner").last_reason, "shutdown"));
    struct child_result r = {0};
    struct child_spec wrong = {
        .id = "wrong", .class = &supervisor_class, .args = storage, .args_size = size - 1};
    TEST_CHECK(supervisor_start_child(sup, &wrong, &r, DEADLINE_NONE) == ERR_INIT &&
               r.why.kind == REASON_ERROR);
    reason_drop(&r.why);
}

static void test_nested(void)
{
    simulate_many(nested_body);
}

/* ---- cascades: other domains that end in the same incident ---- */

static void break_domain(actor_pid sup)
{
    actor_pid child = info_of(sup, "child").pid;
    actor_kill(child);
    TEST_CHECK(wait_exit(sup).kind == REASON_SHUTDOWN);
}

static enum slo_level cascade_level(int64_t *ret_sum)
{
    struct telemetry_slo_state state;
    telemetry_slo_read(runtime_telemetry(runtime_self()), TELEMETRY_SLO_CASCADE_COUNT, actor_now(), &state);
    *ret_sum = state.value;
    return state.level;
}

static void cascade_body(void)
{
    static struct plan plans[4] = {{.number = 0}, {.number = 1}, {.number = 2}, {.number = 3}};
    static const char *const names[] = {"first", "second", "third", "first"};
    actor_pid sups[4];
    for (int i = 0; i < 4; i++) {
        struct child_spec child = {
            .id = "child", .class = &worker_class, .args = &plans[i], .args_size = sizeof plans[i]};
        sups[i] = start(&(struct supervisor_spec){
            .name = names[i], .intensity = 0, .period_ms = 1000, .children = &child, .children_count = 1});
    }
    int64_t sum;
    break_domain(sups[0]);
    TEST_CHECK(cascade_level(&sum) == SLO_OK && sum == 0); /* one domain alone is no cascade */
    pass_ms(9999);
    break_domain(sups[1]); /* a second one within the incident's 10 s is */
    TEST_CHECK(cascade_level(&sum) == SLO_CRITICAL && sum == 1);
    pass_ms(10001);
    break_domain(sups[2]); /* and this is another incident */
    TEST_CHECK(cascade_level(&sum) == SLO_CRITICAL && sum == 1);
    pass_ms(10001);
    break_domain(sups[3]);
    TEST_CHECK(cascade_level(&sum) == SLO_CRITICAL && sum == 1);
    pass_ms(300001); /* the window of the level has passed */
    TEST_CHECK(cascade_level(&sum) == SLO_OK && sum == 0);
}

static void test_cascade(void)
{
    simulate_many(cascade_body);
}

static void names_body(void)
{
    for (int s = 0; s < STRATEGY_COUNT; s++)
        TEST_CHECK(strategy_name((enum strategy)s)[0]);
    TEST_CHECK(!strcmp(strategy_name(REST_FOR_ONE), "rest_for_one") &&
               !strcmp(strategy_name((enum strategy)77), "unknown"));
    TEST_CHECK(!strcmp(child_state_name(CHILD_BACKING_OFF), "backing_off"));
    TEST_CHECK(!strcmp(child_state_name((enum child_state)77), "unknown"));
    struct start_result r;
    TEST_CHECK(supervisor_start(NULL, SPAWN_HERE, &r, DEADLINE_NONE) == ERR_INVALID_FLAGS);
    reason_drop(&r.why);
    TEST_CHECK(supervisor_start(&(struct supervisor_spec){.children = (struct child_spec[]){WORKER("x", 0),
                                                                                            WORKER("x", 1)},
                                                          .children_count = 2},
                                SPAWN_HERE, &r, DEADLINE_NONE) == ERR_DUPLICATE_ID);
    char text[REASON_TEXT_MAX];
    reason_format(&r.why, text, sizeof text);
    TEST_CHECK(strstr(text, "children[1]") && strstr(text, "'x'"));
    reason_drop(&r.why);
}

static void test_names(void)
{
    simulate(1, names_body);
}

/* ---- refusals ---- */

static void expect_refused(enum error got, enum error wanted, const char *text, const char *word)
{
    TEST_CHECK(got == wanted && strstr(text, word));
    TEST_MSG("%s instead of %s, with '%s' in '%s'", error_name(got), error_name(wanted), word, text);
}

/* The sentence names the child, the field, the value. Which error comes is the conformance table's business.
 */
static void test_sentences(void)
{
    static char long_text[200];
    memset(long_text, 'x', sizeof long_text - 1);
    static const struct actor_class nameless = {.handle = worker_handle};
    static const struct actor_class huge = {
        .name = "huge", .handle = worker_handle, .state_size = ACTOR_STATE_MAX + 1};
    const struct {
        struct child_spec spec;
        enum error error;
        const char *word;
    } children[] = {
        {{.id = "a", .class = &nameless}, ERR_INVALID_START, "name"},
        {{.id = "a", .class = &huge}, ERR_INVALID_START, "65537"},
        {{.id = "a", .class = &worker_class, .name = ""}, ERR_INVALID, "name"},
        {{.id = "a", .class = &worker_class, .name = long_text}, ERR_INVALID, "95"},
        {{.id = long_text, .class = &worker_class}, ERR_LIMIT, "id"},
        {{.id = "a", .class = &worker_class, .args = long_text, .args_size = ACTOR_ARGS_MAX + 1},
         ERR_BADARG,
         "65001"},
        {{.id = "a", .class = &worker_class, .args_size = 4}, ERR_BADARG, "args is NULL"},
        {{.id = "a", .class = &worker_class, .scheduler = -1000}, ERR_INVALID, "-1"},
        {{.id = "a", .class = &worker_class, .scheduler = SPAWN_ON(RUNTIME_SCHEDULERS_MAX)},
         ERR_INVALID,
         "scheduler"},
        {{.id = "a", .class = &worker_class, .backoff = {.first_ms = 60001}}, ERR_BAD_COMBINATION, "60001"},
        {{.id = "a", .class = &worker_class, .backoff = {.first_ms = 6, .max_ms = 5}},
         ERR_BAD_COMBINATION,
         "first_ms"},
        {{.id = "a", .class = &worker_class, .quarantine = {.failures = 10}},
         ERR_LIMIT,
         "quarantine.failures is 10"},
    };
    char text[300];
    for (size_t i = 0; i < sizeof children / sizeof children[0]; i++) {
        struct child_spec pair[] = {WORKER("first", 0), children[i].spec};
        enum error e = supervisor_check_children(pair, 2, AUTO_SHUTDOWN_NEVER, text, sizeof text);
        expect_refused(e, children[i].error, text, children[i].word);
        expect_refused(e, children[i].error, text, "children[1]");
        TEST_CHECK(supervisor_check_children(pair, 2, AUTO_SHUTDOWN_NEVER, NULL, 0) == e);
        char tiny[4] = "#";
        TEST_CHECK(supervisor_check_children(pair, 2, AUTO_SHUTDOWN_NEVER, tiny, 0) == e && tiny[0] == '#');
        TEST_CHECK(supervisor_check_children(pair, 2, AUTO_SHUTDOWN_NEVER, tiny, sizeof tiny) == e &&
                   !tiny[3]);
        struct supervisor_spec dynamic = {.strategy = DYNAMIC, .template = &children[i].spec};
        expect_refused(supervisor_check(&dynamic, text, sizeof text), children[i].error, text, "template");
    }
    const struct {
        struct supervisor_spec spec;
        enum error error;
        const char *word;
    } flags[] = {
        {{.name = long_text}, ERR_INVALID_FLAGS, "name"},
        {{.register_name = true}, ERR_INVALID_FLAGS, "register_name"},
        {{.register_name = true, .name = ""}, ERR_INVALID_FLAGS, "register_name"},
        {{.strategy = DYNAMIC, .children_count = 1}, ERR_INVALID_FLAGS, "children are given"},
        {{.strategy = DYNAMIC, .max_children = SUPERVISOR_CHILDREN_MAX + 1}, ERR_INVALID_FLAGS, "4194305"},
        {{.children = &WORKER("a", 0), .children_count = (size_t)SUPERVISOR_CHILDREN_MAX + 1},
         ERR_LIMIT,
         "4194305"},
    };
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        expect_refused(supervisor_check(&flags[i].spec, text, sizeof text), flags[i].error, text,
                       flags[i].word);
}

/* A list longer than what is compared on the stack, and than what is copied in one go. */
static void long_list_body(void)
{
    enum { MANY = 1300 };
    static struct child_spec specs[MANY];
    static char ids[MANY][16];
    static const struct plan plan;
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(ids[i], sizeof ids[i], "%u", i);
        specs[i] = (struct child_spec){
            .id = ids[i], .class = &worker_class, .args = &plan, .args_size = sizeof plan};
    }
    struct supervisor_spec spec = {
        .children = specs, .children_count = MANY, .period_ms = INT64_MAX, .intensity = 1};
    actor_pid sup = start(&spec);
    struct child_counts c = counts(sup);
    TEST_CHECK(c.specs == MANY && c.active == MANY);
    TEST_CHECK(inspect(sup).period_ms == INT64_MAX);
    TEST_CHECK(supervisor_stop(sup, reason_of(REASON_NORMAL), DEADLINE_NONE) == OK);
    snprintf(ids[MANY - 1], sizeof ids[0], "%u", 700);
    char text[300] = "";
    expect_refused(supervisor_check(&spec, text, sizeof text), ERR_DUPLICATE_ID, text, "children[1299]");
}

static void test_long_list(void)
{
    simulate(1, long_list_body);
}

/* A name that somebody else holds: in the list, at a restart, and for the supervisor itself. */
static void names_taken_body(void)
{
    TEST_CHECK(actor_register("mine", actor_self(), NULL) == OK);
    struct start_result r;
    struct supervisor_spec spec = {.children =
                                       (struct child_spec[]){WORKER("a", 0), WORKER("b", 1, .name = "mine")},
                                   .children_count = 2};
    TEST_CHECK(supervisor_start(&spec, SPAWN_HERE, &r, DEADLINE_NONE) == ERR_INIT &&
               r.why.kind == REASON_CHILD_FAILED);
    char text[REASON_TEXT_MAX];
    reason_format(&r.why, text, sizeof text);
    TEST_CHECK(strstr(text, "b: ") && strstr(text, "already_registered"));
    TEST_MSG("%s", text);
    reason_drop(&r.why);
    TEST_CHECK(!actor_alive(seen.pid[0]));
    TEST_CHECK(supervisor_start(&spec, SPAWN_HERE, NULL, DEADLINE_NONE) ==
               ERR_INIT); /* nobody wants to know why */

    actor_pid sup = start(&(struct supervisor_spec){
        .children = &WORKER("a", 0, .name = "theirs", .backoff = {.first_ms = 60000}), .children_count = 1});
    struct child_result c = {0};
    TEST_CHECK(supervisor_start_child(sup, &WORKER("b", 1, .name = "mine"), &c, DEADLINE_NONE) ==
               ERR_ALREADY_REGISTERED);
    TEST_CHECK(c.pid == actor_self() && counts(sup).specs == 1);
    actor_kill(seen.pid[0]);
    settle();
    TEST_CHECK(actor_register("theirs", actor_self(), NULL) == OK);
    TEST_CHECK(supervisor_resume_child(sup, "a", DEADLINE_NONE) == ERR_INIT);
    TEST_CHECK(strstr(info_of(sup, "a").last_reason, "already_registered") != NULL);
    TEST_CHECK(counted(TELEMETRY_SUPERVISOR_START_ERROR, "unnamed") == 1);
    EXPECT_STATE(sup, "a", CHILD_BACKING_OFF);
    TEST_CHECK(actor_unregister("theirs") == OK);
    TEST_CHECK(supervisor_resume_child(sup, "a", DEADLINE_NONE) == OK);
    TEST_CHECK(actor_whereis("theirs") == seen.pid[0]);

    unsigned char storage[SUPERVISOR_ARGS_MAX];
    struct supervisor_spec inner = {.name = "mine", .register_name = true};
    struct child_spec child = {.id = "inner",
                               .class = &supervisor_class,
                               .args = storage,
                               .args_size = supervisor_args(&inner, storage)};
    TEST_CHECK(supervisor_start_child(sup, &child, &c, DEADLINE_NONE) == ERR_INIT);
    TEST_CHECK(c.why.kind == REASON_ERROR && c.why.code == ERR_ALREADY_REGISTERED);
    reason_drop(&c.why);
    TEST_CHECK(supervisor_start(&inner, SPAWN_HERE, &r, DEADLINE_NONE) == ERR_ALREADY_REGISTERED);
    TEST_CHECK(r.pid == actor_self());
    reason_drop(&r.why);
}

static void test_names_taken(void)
{
    simulate_many(names_taken_body);
}

/* A killed supervisor leaves orphans, which end a while later and hold their names until then. Its successor waits for them: that is one
 * restart, and not as many as fit into the while. */
static void orphans_body(void)
{
    static struct plan held = {.number = 0, .end_ms = 100}, slow = {.number = 1, .end_ms = 300};
    static struct child_spec leaf = {
        .id = "slow", .class = &trapper_class, .args = &slow, .args_size = sizeof slow};
    static struct supervisor_spec deep = {
        .name = "deep", .register_name = true, .children = &leaf, .children_count = 1};
    static unsigned char deep_args[SUPERVISOR_ARGS_MAX], inner_args[SUPERVISOR_ARGS_MAX];
    struct child_spec two[] = {
        {.id = "held", .name = "held", .class = &trapper_class, .args = &held, .args_size = sizeof held},
        {.id = "deep",
         .class = &supervisor_class,
         .args = deep_args,
         .args_size = supervisor_args(&deep, deep_args),
         .type = CHILD_SUPERVISOR}};
    struct supervisor_spec inner = {
        .name = "inner", .register_name = true, .children = two, .children_count = 2};
    actor_pid sup = start(&(struct supervisor_spec){
        .name = "outer",
        .intensity = 1,
        .period_ms = 10000,
        .children = &(struct child_spec){.id = "inner",
                                         .class = &supervisor_class,
                                         .args = inner_args,
                                         .args_size = supervisor_args(&inner, inner_args),
                                         .type = CHILD_SUPERVISOR},
        .children_count = 1});
    actor_pid first = actor_whereis("inner"), old = seen.pid[1];
    actor_kill(first);
    pass_ms(50);
    TEST_CHECK(actor_whereis("held") != 0 && actor_alive(old)); /* they are at it */
    pass_ms(1000);
    TEST_CHECK(actor_whereis("inner") && actor_whereis("inner") != first);
    TEST_CHECK(actor_whereis("held") == seen.pid[0] && actor_whereis("deep"));
    TEST_CHECK(seen.begun[0] == 2 && seen.begun[1] == 2 && !actor_alive(old));
    TEST_CHECK(inspect(sup).budget_used == 1);
}

static void test_orphans(void)
{
    simulate_many(orphans_body);
}

/* A supervisor with a child that is called "held" is killed: an orphan has that name. */
static actor_pid orphan(uint32_t number, bool deaf)
{
    struct child_spec held = TRAPPER("held", 0, .number = number, .deaf = deaf, .end_ms = 100);
    held.name = "held";
    actor_pid sup = start(&(struct supervisor_spec){.children = &held, .children_count = 1});
    actor_kill(sup);
    TEST_CHECK(wait_exit(sup).kind == REASON_KILLED);
    TEST_CHECK(actor_whereis("held") == seen.pid[number]);
    return seen.pid[number];
}

/* Who waits for an orphan's end takes no other message for it: neither a call nor what has come of another end. That one is a child
 * of which both EXIT and DOWN come, because it has more links than are looked at. */
static void orphan_among_others_body(void)
{
    actor_pid sup = start(&(struct supervisor_spec){.children = &WORKER("b", 1), .children_count = 1});
    for (unsigned i = 0; i < 9; i++) {
        actor_pid friend;
        const struct spawn_options o = {
            .class = &trapper_class, .args = &(struct plan){.number = 3}, .args_size = sizeof(struct plan)};
        TEST_CHECK(actor_spawn(&o, &friend) == OK);
        settle();
        actor_cast(seen.pid[1], ORDER_LINK, &friend, sizeof friend);
    }
    ping(seen.pid[1]);
    actor_pid old = orphan(0, false);
    const struct start_request r = {
        .class = &worker_class, .args_size = sizeof(struct plan), .id_size = 2, .name_size = 5};
    uint64_t refs[3], began = actor_now();
    struct message *start_c = message_new(CALL_START_CHILD, sizeof r + sizeof(struct plan) + 7);
    TEST_ASSERT(start_c != NULL);
    memset(start_c->payload, 0, start_c->size);
    memcpy(start_c->payload, &r, offsetof(struct start_request, bytes));
    unsigned char *bytes = ((struct start_request *)(void *)start_c->payload)->bytes;
    memcpy(bytes, &(struct plan){.number = 2}, sizeof(struct plan));
    memcpy(bytes + sizeof(struct plan), "c\0held", 7);
    TEST_CHECK(actor_request(sup, message_of(CALL_TERMINATE_CHILD, "b", 2), &refs[0]) == OK);
    TEST_CHECK(actor_request(sup, start_c, &refs[1]) == OK);
    TEST_CHECK(actor_request(sup, message_new(CALL_COUNT_CHILDREN, 0), &refs[2]) == OK);
    for (size_t n = 0, which; n < 3; n++) {
        struct message *m;
        TEST_CHECK(actor_request_wait(refs + n, 3 - n, &which, &m, DEADLINE_NONE) == OK && which == 0);
        if (n == 1)
            TEST_CHECK(((struct child_answer *)(void *)m->payload)->error == OK);
        message_free(m);
    }
    TEST_CHECK(!actor_alive(old) && actor_whereis("held") == seen.pid[2]);
    TEST_CHECK(actor_now() - began >= 90 * NS_PER_MS);
    TEST_CHECK(counts(sup).specs == 2 && counts(sup).active == 1);
}

static void test_orphan_among_others(void)
{
    simulate_many(orphan_among_others_body);
}

/* It is waited for, but not for ever. */
static void lasting_orphan_body(void)
{
    actor_pid old = orphan(0, true);
    actor_pid sup = start(&(struct supervisor_spec){.strategy = ONE_FOR_ONE});
    uint64_t began = actor_now();
    struct child_result r = {0};
    TEST_CHECK(supervisor_start_child(sup, &WORKER("a", 1, .name = "held"), &r, DEADLINE_NONE) ==
               ERR_ALREADY_REGISTERED);
    TEST_CHECK(r.pid == old && actor_alive(old) && counts(sup).specs == 0);
    TEST_CHECK((actor_now() - began) / NS_PER_MS == 5000);
    struct actor_info info;
    TEST_CHECK(actor_inspect(sup, &info, DEADLINE_NONE) == OK && info.monitors == 0); /* it looks no longer */
    actor_kill(old);
    settle();
    TEST_CHECK(supervisor_start_child(sup, &WORKER("a", 1, .name = "held"), &r, DEADLINE_NONE) == OK);
    TEST_CHECK(actor_whereis("held") == r.pid);
}

static void test_lasting_orphan(void)
{
    simulate_many(lasting_orphan_body);
}

/* ---- room ---- */

/* A supervisor with a list, for which two children are as many as 4,194,304 are for others. */
static enum actor_step narrow_init(void *state, const void *args, size_t size)
{
    enum actor_step step = supervisor_class.init(state, args, size);
    ((struct supervisor *)state)->max_children = 2;
    return step;
}

static void full_list_body(void)
{
    struct actor_class narrow = supervisor_class;
    narrow.init = narrow_init;
    struct supervisor_spec spec = {.children = &WORKER("a", 0), .children_count = 1};
    struct start_result r;
    TEST_CHECK(actor_start(&(struct spawn_options){.class = &narrow, .args = &spec, .args_size = sizeof spec},
                           &r, DEADLINE_NONE) == OK);
    struct child_result c = {0};
    TEST_CHECK(supervisor_start_child(r.pid, &WORKER("b", 1), &c, DEADLINE_NONE) == OK);
    TEST_CHECK(supervisor_start_child(r.pid, &WORKER("c", 2), &c, DEADLINE_NONE) == ERR_LIMIT);
    TEST_CHECK(counts(r.pid).specs == 2 && seen.begun[2] == 0);
    TEST_CHECK(supervisor_terminate_child(r.pid, "b", DEADLINE_NONE) == OK);
    TEST_CHECK(supervisor_delete_child(r.pid, "b", DEADLINE_NONE) == OK);
    TEST_CHECK(supervisor_start_child(r.pid, &WORKER("c", 2), &c, DEADLINE_NONE) == OK);
    TEST_CHECK(supervisor_stop(r.pid, reason_of(REASON_NORMAL), DEADLINE_NONE) == OK);
}

static void test_full_list(void)
{
    simulate(1, full_list_body);
}

/* An id that is empty is none: events go by the name of the class. */
static void empty_id_body(void)
{
    actor_pid sup = start(
        &(struct supervisor_spec){.name = "loose", .strategy = DYNAMIC, .intensity = 9, .period_ms = 1000});
    TEST_CHECK(supervisor_start_child(sup, &WORKER("", 0), NULL, DEADLINE_NONE) == OK);
    actor_kill(seen.pid[0]);
    settle();
    TEST_CHECK(seen.begun[0] == 2 && counted(TELEMETRY_SUPERVISOR_RESTART, "loose") == 1);
}

static void test_empty_id(void)
{
    simulate_many(empty_id_body);
}

/* Used-up memory is an answer, and what is given back can be used again. */
static void memory_body(void)
{
    static struct {
        struct plan plan;
        unsigned char bytes[60000];
    } big;
    actor_pid sup = start(&(struct supervisor_spec){.strategy = ONE_FOR_ONE});
    actor_pid dynamic = start(&(struct supervisor_spec){.strategy = DYNAMIC, .template = &WORKER(NULL, 0)});
    char id[16];
    unsigned started = 0;
    for (enum error e = OK; e == OK; started++) {
        snprintf(id, sizeof id, "%u", started);
        struct child_spec spec = {.id = id, .class = &worker_class, .args = &big, .args_size = sizeof big};
        struct child_result r = {0};
        e = supervisor_start_child(sup, &spec, &r, DEADLINE_NONE);
        TEST_ASSERT(started < 100000);
        TEST_CHECK(e == OK || e == ERR_MEMORY);
    }
    started--;
    struct child_counts c = counts(sup);
    TEST_CHECK(started > 5 && c.specs == started && c.active == started);
    TEST_MSG("%u started", started);
    struct child_result r = {0};
    while (message_new(ORDER_PING, sizeof big)) /* held until this test ends */
        ;
    /* This request fits, what the supervisor would keep of it doesn't. */
    struct child_spec less = {.id = "less", .class = &worker_class, .args = &big, .args_size = 20000};
    TEST_CHECK(supervisor_start_child(sup, &less, &r, DEADLINE_NONE) == ERR_MEMORY);
    TEST_CHECK(counts(sup).specs == started);
    TEST_CHECK(supervisor_start_dynamic(dynamic, &big, 20000, NULL, &r, DEADLINE_NONE) == ERR_MEMORY);
    TEST_CHECK(counts(dynamic).workers == 0);
    TEST_CHECK(supervisor_start_dynamic(dynamic, &big, sizeof big.plan, NULL, &r, DEADLINE_NONE) == OK);
    TEST_CHECK(supervisor_terminate_child(sup, "3", DEADLINE_NONE) == OK);
    TEST_CHECK(supervisor_delete_child(sup, "3", DEADLINE_NONE) == OK);
    struct child_spec again = {.id = "again", .class = &worker_class, .args = &big, .args_size = 50};
    TEST_CHECK(supervisor_start_child(sup, &again, &r, DEADLINE_NONE) == OK);
}

static void test_memory(void)
{
    message_bytes = 16u << 20; /* the least there may be */
    simulate(1, memory_body);
    message_bytes = 0;
}

/* A supervisor that is killed answers nobody; who waits for it hears `down`. */
static actor_pid asked;
static enum error answered;

static enum actor_step asker_proceed(void *state)
{
    (void)state;
    struct child_counts c;
    answered = supervisor_count_children(asked, &c, DEADLINE_NONE);
    return ACTOR_STOP;
}

static const struct actor_class asker_class = {
    .name = "asker", .init = root_init, .proceed = asker_proceed, .handle = root_handle};

static void killed_body(void)
{
    actor_pid sup = start(
        &(struct supervisor_spec){.children = &(struct child_spec){.id = "slow",
                                                                   .class = &trapper_class,
                                                                   .args = &(struct plan){.end_ms = 4000},
                                                                   .args_size = sizeof(struct plan)},
                                  .children_count = 1});
    uint64_t ref;
    TEST_CHECK(actor_request(sup, message_of(CALL_TERMINATE_CHILD, "slow", 5), &ref) == OK);
    asked = sup;
    answered = OK;
    actor_pid asker;
    TEST_CHECK(actor_spawn(&(struct spawn_options){.class = &asker_class}, &asker) == OK);
    pass_ms(10);
    actor_kill(sup);
    TEST_CHECK(wait_exit(sup).kind == REASON_KILLED);
    settle();
    TEST_CHECK(answered == ERR_DOWN && !actor_alive(asker));
    pass_ms(5000);
    TEST_CHECK(!actor_alive(seen.pid[0])); /* its link told it */
}

static void test_killed(void)
{
    simulate_many(killed_body);
}

/* Asked to end by its parent, a suspended one ends as any other: nobody waits for it without limit. */
static void suspended_body(void)
{
    static struct plan plan = {.number = 0, .end_ms = 100};
    struct child_spec leaf = {.id = "leaf", .class = &trapper_class, .args = &plan, .args_size = sizeof plan};
    struct supervisor_spec inner = {.name = "inner", .children = &leaf, .children_count = 1};
    unsigned char args[SUPERVISOR_ARGS_MAX];
    actor_pid sup = start(
        &(struct supervisor_spec){.children = &(struct child_spec){.id = "inner",
                                                                   .class = &supervisor_class,
                                                                   .args = args,
                                                                   .args_size = supervisor_args(&inner, args),
                                                                   .type = CHILD_SUPERVISOR},
                                  .children_count = 1});
    actor_pid leaf_pid = seen.pid[0], inner_pid = info_of(sup, "inner").pid;
    actor_suspend(inner_pid);
    actor_suspend(leaf_pid);
    TEST_CHECK(actor_cast(inner_pid, 999, "", 0) == OK);
    settle();
    struct actor_info info;
    TEST_CHECK(actor_inspect(inner_pid, &info, DEADLINE_NONE) == OK && !strcmp(info.status, "SUSPENDED"));
    uint64_t asked_at = actor_now();
    TEST_CHECK(supervisor_stop(sup, reason_of(REASON_SHUTDOWN), actor_deadline_ms(60000)) == OK);
    TEST_CHECK(!actor_alive(inner_pid) && !actor_alive(leaf_pid));
    TEST_CHECK(actor_now() - asked_at < NS_PER_S); /* asked, not killed at a deadline */
}

static void test_suspended(void)
{
    simulate_many(suspended_body);
}

TEST_LIST
= {{"table: ids, order, tags, memory used again", test_table},
   {"table: ids whose hashes are the same", test_same_hash},
   {"table: as many as there may be", test_full_table},
   {"table: blocks of every size", test_blocks},
   {"table: counts follow the states", test_counts},
   {"AMB-T-07 quarantine before the budget is spent, probation, resume", test_quarantine},
   {"AMB-T-07 who has handled a message didn't fail at start", test_quarantine_spares},
   {"AMB-T-07 the quarantine's window", test_quarantine_window},
   {"AMB-T-07 quarantine in a group", test_quarantine_group},
   {"AMB-T-07 a group's restart leaves the one that is set aside alone", test_quarantine_stays},
   {"AMB-T-07 quarantine under a dynamic supervisor", test_quarantine_dynamic},
   {"backoff: limits, reset, budget when due", test_backoff},
   {"backoff: no delay is longer than the last limit", test_backoff_last_limit},
   {"backoff of a group", test_backoff_group},
   {"a child that is started again and says it isn't needed", test_ignored},
   {"resuming a child whose restart has failed", test_resume_restarting},
   {"INT-02 AMB-T-01 intensities of every size, escalation events", test_intensity},
   {"ESC-06 AMB-T-05 the root's exhaustion is the process's", test_root_exhausted},
   {"API-08 long lists in parts", test_which},
   {"API-08 who asks for more than a message holds", test_which_too_many},
   {"last reasons", test_reasons},
   {"RT-15 arguments of temporary children aren't kept", test_args},
   {"memory is the same after 2,000 children", test_churn},
   {"terminating a child that unlinked itself", test_unlinked},
   {"SHUT-12 SHUT-13 dynamic children end in parallel", test_parallel},
   {"ends that weren't asked for are reported", test_other_ends},
   {"deadlines beyond the end of time", test_endless_deadlines},
   {"kills that get through late", test_late_kills},
   {"callers are refused while everything ends", test_refused_while_ending},
   {"deaths while another child is being stopped", test_deaths_meanwhile},
   {"STORM-01 2,000 deaths at once", test_storm},
   {"LIFE-04 what strangers send", test_strangers},
   {"LIFE-04 ends that strangers pass on", test_passed_on},
   {"AMB-T-04 supervisors in supervisors", test_nested},
   {"TOP-121 TOP-122 TOP-123 AMB-T-21 a second domain in one incident is a cascade", test_cascade},
   {"names and refusals", test_names},
   {"refusals name the child, the field and the value", test_sentences},
   {"a list of 1,300 children", test_long_list},
   {"names that others hold", test_names_taken},
   {"orphans of a killed supervisor hold their names for a while", test_orphans},
   {"who waits for an orphan takes no other message for its end", test_orphan_among_others},
   {"an orphan that doesn't end is waited for 5 s", test_lasting_orphan},
   {"a list with as many children as there may be", test_full_list},
   {"an empty id is none", test_empty_id},
   {"memory used up is an answer", test_memory},
   {"callers of a killed supervisor", test_killed},
   {"suspended children are asked to end, too", test_suspended},
   {NULL, NULL}};
