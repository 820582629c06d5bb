#include "acutest.h"

#include <stdlib.h>

#include "tests/runtime/node.h"
#include "tests/runtime/sim_program.h"

#include "runtime/scheduler.h"

/* ---- one seed, one run ---- */

static void test_same_seed(void)
{
    const enum sim_order orders[] = {SIM_RANDOM, SIM_FIFO, SIM_PRIORITY};
    for (size_t o = 0; o < 3; o++)
        for (uint64_t seed = 1; seed <= 20; seed++) {
            uint32_t schedulers = 1 + (uint32_t)seed % 3;
            uint64_t hash = sim_program_hash(seed, orders[o], schedulers);
            TEST_CHECK(hash != 0 && hash == sim_program_hash(seed, orders[o], schedulers));
        }
}

static void test_other_seed(void)
{
    uint64_t hashes[100];
    unsigned equal = 0;
    for (uint64_t i = 0; i < 100; i++) {
        hashes[i] = sim_program_hash(i + 1, SIM_RANDOM, 2);
        for (uint64_t k = 0; k < i; k++)
            equal += hashes[k] == hashes[i];
    }
    TEST_CHECK_(equal == 0, "%u of 4950 pairs", equal);
}

/* Lines that tests/sim_hash.sh compares between compilers, of SIM_HASHES seeds (30). */
static void test_hashes(void)
{
    const char *text = getenv("SIM_HASHES");
    uint64_t count = text ? strtoull(text, NULL, 10) : 30;
    for (uint64_t seed = 1; seed <= count; seed++) {
        uint64_t hash = sim_program_hash(seed, (enum sim_order)(seed % 3), 1 + (uint32_t)seed % 3);
        TEST_CHECK(hash != 0);
        printf("\nhash %llu %016llx\n", (unsigned long long)seed, (unsigned long long)hash);
    }
}

/* ---- time ---- */

static void jumps(void)
{
    uint64_t start = actor_now();
    TEST_CHECK(start == 3600 * NS_PER_S && sim_now(the_sim) == start);
    const uint64_t steps[] = {1, 63, 64, 65, 4095, 4096, NS_PER_MS - 1, NS_PER_S * 86400 * 365};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        uint64_t before = actor_now();
        actor_sleep(before + steps[i]);
        TEST_CHECK(actor_now() == before + steps[i] && sim_now(the_sim) == actor_now());
    }
    uint64_t wall = actor_wall_now();
    actor_sleep(actor_now() + 12345);
    TEST_CHECK(actor_wall_now() == wall + 12345);
}

static uint64_t fired_at[3];
static enum actor_step timed_handle(void *state, struct message *m)
{
    (void)state;
    fired_at[*(uint64_t *)(void *)m->payload] = actor_now();
    return ACTOR_CONTINUE;
}
static enum actor_step timed_init(void *state, const void *args, size_t args_size)
{
    (void)state;
    (void)args;
    (void)args_size;
    for (uint64_t i = 0; i < 3; i++)
        actor_timer(actor_now() + (i + 1) * 1000, 1, i);
    return ACTOR_CONTINUE;
}
static const struct actor_class timed_class = {.name = "timed", .init = timed_init, .handle = timed_handle};

static void test_time(void)
{
    for (uint32_t schedulers = 1; schedulers <= 3; schedulers++)
        node_sim_with(jumps, &(struct sim_options){.seed = schedulers, .schedulers = schedulers});
    struct sim *s = sim_create(&(struct sim_options){.seed = 1, .start_ns = 1000000});
    TEST_CHECK(sim_now(s) == 1000000 && !sim_step(s));
    runtime_spawn(sim_runtime(s), &(struct spawn_options){.class = &timed_class}, NULL);
    TEST_CHECK(sim_settle(s, 100) == 1 && sim_now(s) == 1000000); /* init has run, time stands */
    sim_run_until(s, 1002500, 1000);
    TEST_CHECK(sim_now(s) == 1002500 && fired_at[0] == 1001000 && fired_at[1] == 1002000 && fired_at[2] == 0);
    sim_run_until(s, 1003000, 1000); /* due at the very end */
    TEST_CHECK(fired_at[2] == 1003000 && sim_now(s) == 1003000);
    TEST_CHECK(sim_run(s, 1000) == 0 && sim_exit_status(s) == -1); /* it lives, and there is nothing to do */
    runtime_stop(sim_runtime(s));
    sim_run(s, 1000);
    TEST_CHECK(sim_exit_status(s) == 0);
    TEST_CHECK(!sim_step(s));
    sim_destroy(s);
    sim_destroy(NULL);
}

/* ---- every order of a tiny case ---- */

static char order[16];
static size_t order_count;
static enum actor_step letter_handle(void *state, struct message *m)
{
    (void)state;
    order[order_count++] = *(char *)m->payload;
    return ACTOR_CONTINUE;
}
static const struct actor_class letter_class = {.name = "letter", .handle = letter_handle};

static void letters(void)
{
    actor_pid pids[3];
    for (int i = 0; i < 3; i++)
        pids[i] = spawn(&letter_class, SPAWN_HERE);
    settle(); /* born, in some order */
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < (i == 0 ? 2 : 1); k++)
            actor_cast(pids[i], 1, &"aAbc"[i == 0 ? k : i + 1], 1);
    settle();
}

/* The next script: the last choice that has a sibling goes on by one, what came after it is cut off. */
static size_t next_script(const struct sim_choice *choices, size_t count, uint8_t *script)
{
    while (count && choices[count - 1].taken + 1u >= choices[count - 1].of)
        count--;
    for (size_t i = 0; i < count; i++)
        script[i] = choices[i].taken;
    if (count)
        script[count - 1]++;
    return count;
}

static uint8_t script[1000];
static struct sim_choice taken[1000];
static size_t taken_count;

static void remember(void)
{
    letters();
    const struct sim_choice *c = sim_choices(the_sim, &taken_count);
    TEST_ASSERT(taken_count < 1000);
    memcpy(taken, c, taken_count * sizeof *c);
}

static void test_enumeration(void)
{
    char seen[64][5];
    size_t orders = 0, runs = 0, count = 0;
    do {
        order_count = 0;
        memset(order, 0, sizeof order);
        node_sim_with(remember,
                      &(struct sim_options){.order = SIM_SCRIPT, .choices = script, .choices_count = count});
        TEST_CHECK(order_count == 4 &&
                   strchr(order, 'a') < strchr(order, 'A')); /* order per pair always holds */
        size_t i = 0;
        while (i < orders && strcmp(seen[i], order) != 0)
            i++;
        if (i == orders && orders < 64)
            memcpy(seen[orders++], order, 5);
        runs++;
    } while ((count = next_script(taken, taken_count, script)) && runs < 100000);
    /* Four letters, of which a comes before A: 4! / 2. */
    TEST_CHECK_(orders == 12, "%zu orders in %zu runs", orders, runs);
    TEST_CHECK(count == 0);
}

/* ---- the test's own draws don't disturb the run ---- */

static void test_draws(void)
{
    struct sim *a = sim_create(&(struct sim_options){.seed = 9}), *b;
    uint64_t first = sim_random(a), hash = sim_trace_hash(a);
    TEST_CHECK(first != sim_random(a) && sim_trace_hash(a) == hash);
    sim_destroy(a);
    b = sim_create(&(struct sim_options){.seed = 9});
    TEST_CHECK(sim_random(b) == first);
    sim_destroy(b);
    TEST_CHECK(sim_create(&(struct sim_options){.schedulers = 65}) == NULL);
}

TEST_LIST
= {
    {"the same seed, the same run", test_same_seed},
    {"another seed, another run", test_other_seed},
    {"hashes", test_hashes},
    {"time jumps exactly", test_time},
    {"scripts enumerate every order", test_enumeration},
    {"draws of the test", test_draws},
    {NULL, NULL},
};
