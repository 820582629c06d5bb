/* Lives: spawn and exit, what an idle actor weighs, and how fast supervisors start, stop and restart.
 *
 * A restart is measured from the kill to the answer of the new one: its init tells the killer its pid, the
 * killer calls it, and the clock is read when the answer is there. Everybody is on one scheduler, except in
 * the row that has 16 supervisors, where each of two schedulers has 8 of them and a killer. */
#include "tests/bench/bench.h"
#include <string.h>
#include "tests/bench/family.h"

enum { GO = 1, DONE };

static actor_pid root;

/* ---- spawn and exit ---- */

#define SPAWNS 50000u
#define BURST  100u /* spawned in a row, before they get their turn */

static uint64_t lived;

static enum actor_step brief_init(void *state, const void *args, size_t size)
{
    (void)state, (void)args, (void)size;
    return ACTOR_PROCEED;
}

static enum actor_step brief_proceed(void *state)
{
    (void)state;
    lived++;
    return ACTOR_STOP;
}

static enum actor_step ignore(void *state, struct message *m)
{
    (void)state, (void)m;
    return ACTOR_CONTINUE;
}

static const struct actor_class brief_class = {
    .name = "brief", .init = brief_init, .proceed = brief_proceed, .handle = ignore};

/* Spawns a burst, and sends itself the message to go on: behind those it has spawned. */
static enum actor_step spawner_handle(void *state, struct message *m)
{
    uint64_t *left = (uint64_t *)(void *)m->payload;
    (void)state;
    if (!*left) {
        actor_cast(root, DONE, NULL, 0);
        return ACTOR_CONTINUE;
    }
    for (uint32_t i = 0; i < BURST; i++)
        bench_spawn(&brief_class, NULL, 0, SPAWN_HERE);
    *left -= BURST;
    actor_send(actor_self(), m);
    return ACTOR_CONTINUE;
}

static const struct actor_class spawner_class = {.name = "spawner", .handle = spawner_handle};

static void spawn_and_exit(void *arg, double *ret)
{
    lived = 0;
    uint64_t started = bench_now();
    actor_cast(*(actor_pid *)arg, GO, &(uint64_t){SPAWNS}, sizeof(uint64_t));
    bench_await(DONE);
    *ret = bench_per_second(SPAWNS, started);
    if (lived != SPAWNS)
        bench_fail("%llu of %u lived", (unsigned long long)lived, SPAWNS);
}

/* ---- idle ---- */

#define IDLERS 1000000u

struct idler {
    uint64_t number, other;
};

static enum actor_step idler_init(void *state, const void *args, size_t size)
{
    struct idler *i = state;
    (void)args, (void)size;
    i->number = ++lived;
    i->other = ~i->number;
    return ACTOR_CONTINUE;
}

static const struct actor_class idler_class = {
    .name = "idler", .state_size = sizeof(struct idler), .init = idler_init, .handle = ignore};

static double idle_bytes;

static void spawn_idlers(void)
{
    lived = 0;
    uint64_t before = bench_resident();
    for (uint32_t i = 0; i < IDLERS; i++) {
        bench_spawn(&idler_class, NULL, 0, SPAWN_HERE);
        if (i % BURST == 0)
            actor_yield();
    }
    actor_yield();
    if (lived != IDLERS)
        bench_fail("%llu of %u lived", (unsigned long long)lived, IDLERS);
    idle_bytes = (double)(bench_resident() - before) / IDLERS;
}

static void weigh(void *arg, double *ret)
{
    (void)arg;
    bench_node(1, spawn_idlers);
    *ret = idle_bytes;
}

/* ---- dynamic children ---- */

#define DYNAMIC_CHILDREN 1000u /* as many as in the rows about restarts */

static const struct actor_class plain_class = {.name = "plain", .handle = ignore};
static const struct child_spec plain_child = {.class = &plain_class};

static void start_and_terminate(void *arg, double *ret)
{
    static actor_pid pids[DYNAMIC_CHILDREN];
    actor_pid sup = *(actor_pid *)arg;
    uint64_t started = bench_now();
    for (uint32_t i = 0; i < DYNAMIC_CHILDREN; i++) {
        struct child_result child;
        enum error e =
            supervisor_start_dynamic(sup, NULL, 0, NULL, &child, actor_deadline_ms(ACTOR_CALL_DEFAULT_MS));
        if (e)
            bench_fail("start of child %u: %s", i, error_name(e));
        pids[i] = child.pid;
    }
    ret[0] = bench_per_second(DYNAMIC_CHILDREN, started);
    started = bench_now();
    for (uint32_t i = 0; i < DYNAMIC_CHILDREN; i++) {
        enum error e = supervisor_terminate_pid(sup, pids[i], actor_deadline_ms(ACTOR_CALL_DEFAULT_MS));
        if (e)
            bench_fail("end of child %u: %s", i, error_name(e));
    }
    ret[1] = bench_per_second(DYNAMIC_CHILDREN, started);
}

static void measure_children(void)
{
    const struct bench_row rows[] = {{"start_child", "children/s", BENCH_MORE},
                                     {"terminate_child", "children/s", BENCH_MORE}};
    if (!bench_wanted(rows[0].name) && !bench_wanted(rows[1].name))
        return;
    const struct supervisor_spec spec = {.name = "dynamic", .strategy = DYNAMIC, .template = &plain_child};
    struct start_result started;
    enum error e = supervisor_start(&spec, SPAWN_HERE, &started, DEADLINE_NONE);
    if (e)
        bench_fail("supervisor_start: %s", error_name(e));
    bench_repeat(rows, 2, start_and_terminate, &started.pid);
    family_stop(started.pid);
}

/* ---- restarts, one at a time ---- */

#define KILLS 1000u

struct killing {
    uint32_t children, kills;
    uint64_t pause_ns; /* between two kills */
};

static void kill_many(void *arg, double *ret)
{
    static uint64_t took[KILLS];
    const struct killing *k = arg;
    for (uint32_t i = 0; i < k->kills; i++) {
        if (k->pause_ns)
            actor_sleep(actor_now() + k->pause_ns);
        took[i] = family_revive((uint32_t)(bench_random() % k->children), actor_kill);
    }
    ret[0] = (double)bench_quantile(took, k->kills, 0.50) / 1e3;
    ret[1] = (double)bench_quantile(took, k->kills, 0.99) / 1e3;
}

static void measure_kills(const char *p50, const char *p99, struct killing k)
{
    const struct bench_row rows[] = {{p50, "us", BENCH_LESS}, {p99, "us", BENCH_LESS}};
    if (!bench_wanted(p50) && !bench_wanted(p99))
        return;
    actor_pid sup = family_start(k.children, actor_self(), SPAWN_HERE, NULL);
    for (uint32_t i = 0; i < k.children; i++)
        family_up();
    bench_repeat(rows, 2, kill_many, &k);
    family_stop(sup);
}

/* ---- sustained restarts: every child is killed as soon as it is up ---- */

#define RESTARTS    20000u /* of each killer */
#define SUPERVISORS 16u
#define FAMILY      64u

struct killer {
    uint64_t left;    /* restarts to see */
    uint32_t resting; /* children that are up and left alone */
    uint32_t children;
    actor_pid alive[SUPERVISORS * FAMILY];
};

static void killer_go(struct killer *k, uint64_t restarts)
{
    uint32_t n = k->resting;
    k->left = restarts;
    k->resting = 0;
    for (uint32_t i = 0; i < n; i++)
        actor_kill(k->alive[i]);
}

static enum actor_step killer_handle(void *state, struct message *m)
{
    struct killer *k = state;
    if (m->type == GO) {
        killer_go(k, *(uint64_t *)(void *)m->payload);
        return ACTOR_CONTINUE;
    }
    if (k->left > k->children) {
        k->left--;
        actor_kill(m->from);
        return ACTOR_CONTINUE;
    }
    if (k->left)
        k->left--;
    k->alive[k->resting++] = m->from;
    if (k->resting == k->children)
        actor_cast(root, DONE, NULL, 0);
    return ACTOR_CONTINUE;
}

static enum actor_step killer_init(void *state, const void *args, size_t size)
{
    ASSERT(size == sizeof(uint32_t));
    memcpy(&((struct killer *)state)->children, args, size);
    return ACTOR_CONTINUE;
}

static const struct actor_class killer_class = {.name = "killer",
                                                .state_size = sizeof(struct killer),
                                                .init = killer_init,
                                                .handle = killer_handle,
                                                .mailbox_capacity = 2 * SUPERVISORS * FAMILY};

struct killers {
    uint32_t count;
    actor_pid pid[2];
};

static void restart_all(void *arg, double *ret)
{
    const struct killers *k = arg;
    uint64_t started = bench_now();
    for (uint32_t i = 0; i < k->count; i++)
        actor_cast(k->pid[i], GO, &(uint64_t){RESTARTS}, sizeof(uint64_t));
    for (uint32_t i = 0; i < k->count; i++)
        bench_await(DONE);
    *ret = bench_per_second((uint64_t)RESTARTS * k->count, started);
}

static void measure_rate(const char *name, uint32_t killers, uint32_t supervisors)
{
    struct killers k = {.count = killers};
    actor_pid sups[SUPERVISORS];
    if (!bench_wanted(name))
        return;
    for (uint32_t i = 0; i < killers; i++)
        k.pid[i] = bench_spawn(&killer_class, &(uint32_t){supervisors / killers * FAMILY}, sizeof(uint32_t),
                               SPAWN_ON(i));
    for (uint32_t i = 0; i < supervisors; i++)
        sups[i] = family_start(FAMILY, k.pid[i % killers], SPAWN_ON(i % killers), NULL);
    for (uint32_t i = 0; i < killers; i++)
        bench_await(DONE);
    bench_repeat(&(struct bench_row){name, "restarts/s", BENCH_MORE}, 1, restart_all, &k);
    for (uint32_t i = 0; i < supervisors; i++)
        family_stop(sups[i]);
}

/* ---- the rows ---- */

static void on_one(void)
{
    root = actor_self();
    actor_pid spawner = bench_spawn(&spawner_class, NULL, 0, SPAWN_HERE);
    bench_repeat(&(struct bench_row){"spawn_exit", "actors/s", BENCH_MORE}, 1, spawn_and_exit, &spawner);
    measure_children();
    measure_kills("restart_p50", "restart_p99", (struct killing){.children = 1000, .kills = KILLS});
    measure_kills("restart_p50_100k", "restart_p99_100k",
                  (struct killing){.children = FAMILY_MAX, .kills = KILLS});
    measure_kills("restart_paced_p50", "restart_paced_p99",
                  (struct killing){.children = 1000, .kills = 200, .pause_ns = NS_PER_MS});
    measure_rate("restart_rate", 1, 1);
}

static void on_two(void)
{
    root = actor_self();
    measure_rate("restart_rate_16x64", 2, SUPERVISORS);
}

int main(void)
{
    bench_begin("runtime", 12);
    bench_node(1, on_one);
    bench_node(2, on_two);
    bench_repeat(&(struct bench_row){"idle_bytes", "bytes", BENCH_LESS}, 1, weigh, NULL);
    return 0;
}
