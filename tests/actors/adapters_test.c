#include "acutest.h"

#include <stdio.h>
#include <string.h>

#include "actors/adapters.h"
#include "runtime/sim.h"
#include "runtime/supervisor.h"
#include "runtime/telemetry.h"
#include "tests/support/inside.h"

static unsigned inits; /* how often an adapter was tried, over all lives of the actor */

static bool good_init(const struct adapters_args *args, char text[ADAPTER_TEXT_MAX])
{
    (void)args;
    inits++;
    snprintf(text, ADAPTER_TEXT_MAX, "all is well");
    return true;
}

static bool bad_init(const struct adapters_args *args, char text[ADAPTER_TEXT_MAX])
{
    (void)args;
    inits++;
    snprintf(text, ADAPTER_TEXT_MAX, "the other side has gone");
    return false;
}

static const struct adapter good = {"good", "is always ready", good_init};
static const struct adapter bad = {"bad", "is never ready", bad_init};

INSIDE(test_lists_those_that_are_ready)
{
    struct adapters_args args = {.adapters = {&good, &good}};
    struct adapter_state states[ADAPTERS_MAX];
    struct start_result r;
    size_t stored;
    struct spawn_options o = {
        .class = &adapters_class, .name = ADAPTERS_NAME, .args = &args, .args_size = sizeof(args)};
    TEST_CHECK(adapters_list(states, ADAPTERS_MAX, &stored, DEADLINE_NONE) == ERR_NOPROC);
    TEST_CHECK(actor_start(&o, &r, DEADLINE_NONE) == OK);
    TEST_CHECK(adapters_list(states, ADAPTERS_MAX, &stored, DEADLINE_NONE) == OK);
    TEST_CHECK(stored == 2 && strcmp(states[1].name, "good") == 0 &&
               strcmp(states[1].text, "all is well") == 0);
    TEST_CHECK(adapters_list(states, 1, &stored, DEADLINE_NONE) == OK && stored == 1);
}

INSIDE(test_descriptors_are_counted)
{
    struct adapters_args args = {.adapters = {&adapters_known[1]}, .descriptors = 16};
    struct adapter_state states[ADAPTERS_MAX];
    struct start_result r;
    size_t stored;
    struct spawn_options o = {
        .class = &adapters_class, .name = ADAPTERS_NAME, .args = &args, .args_size = sizeof(args)};
    TEST_ASSERT(strcmp(adapters_known[1].name, "descriptors") == 0);
    TEST_CHECK(actor_start(&o, &r, DEADLINE_NONE) == OK);
    TEST_CHECK(adapters_list(states, ADAPTERS_MAX, &stored, DEADLINE_NONE) == OK && stored == 1);
    actor_kill(r.pid);
    inside_settle();
    args.descriptors = UINT64_MAX;
    o.monitor = true;
    TEST_CHECK(actor_start(&o, &r, DEADLINE_NONE) == OK); /* init has passed; the failure comes behind it */
    struct message *m = actor_receive(NULL, NULL, actor_deadline_ms(1000));
    if (!TEST_CHECK(m && m->type == MESSAGE_DOWN))
        return;
    const struct message_down *down = (const void *)m->payload;
    TEST_CHECK(down->reason.kind == REASON_ERROR && down->reason.code == 1);
}

struct found {
    unsigned count;
    bool complete;
};

static bool find_failure(void *context, const struct telemetry_record *record)
{
    struct found *f = context;
    if (record->event != TELEMETRY_FAILURE_ADAPTER_INIT)
        return true;
    f->count++;
    f->complete = strcmp(telemetry_record_value(record, DIM_COMPONENT), "runtime") == 0 &&
                  strcmp(telemetry_record_value(record, DIM_FAILURE_CLASS), "fatal") == 0 &&
                  strcmp(telemetry_record_value(record, DIM_ADAPTER), "bad") == 0 &&
                  strcmp(telemetry_record_value(record, DIM_REASON), "the other side has gone") == 0;
    return true;
}

static void quiet(const char *line, size_t size)
{
    (void)line;
    (void)size;
}

/* Under a root with 3/10s: started once, restarted three times, and the fourth failure ends the process. */
static void test_a_failed_adapter_ends_the_process(void)
{
    static unsigned char storage[SUPERVISOR_ARGS_MAX];
    static const struct adapters_args args = {.adapters = {&good, &bad}};
    const struct child_spec child = {.id = "runtime",
                                     .name = ADAPTERS_NAME,
                                     .class = &adapters_class,
                                     .args = &args,
                                     .args_size = sizeof(args)};
    const struct supervisor_spec root = {.name = "root",
                                         .register_name = true,
                                         .intensity = 3,
                                         .period_ms = 10000,
                                         .children = &child,
                                         .children_count = 1,
                                         .root = true};
    struct sim *s = sim_create(&(struct sim_options){.seed = 1, .runtime.log = quiet});
    struct found found = {0};
    inits = 0;
    size_t size = supervisor_args(&root, storage);
    TEST_CHECK(
        runtime_spawn(sim_runtime(s),
                      &(struct spawn_options){.class = &supervisor_class, .args = storage, .args_size = size},
                      NULL) == OK);
    sim_run(s, 100000);
    TEST_CHECK(sim_exit_status(s) == RUNTIME_EXIT_EXHAUSTED);
    telemetry_recent(runtime_telemetry(sim_runtime(s)), 0, find_failure, &found);
    TEST_CHECK(found.count == 4);
    TEST_CHECK(found.complete);
    TEST_CHECK(inits == 8); /* no adapter is tried twice in one life */
    sim_destroy(s);
}

TEST_LIST
= {
    {"TOP-022 adapters that are ready are listed", test_lists_those_that_are_ready},
    {"TOP-077 descriptors that are missing end the actor, not its start", test_descriptors_are_counted},
    {"TOP-076..TOP-079 a failed adapter ends the process after three restarts",
     test_a_failed_adapter_ends_the_process},
    {NULL, NULL},
};
