#include "acutest.h"

#include <string.h>

#include "config/boot.h"
#include "config/log.h"
#include "config/plan.h"
#include "runtime/runtime.h"

static struct settings settings;
static struct sockets sockets;
static char text[512];

/* The defaults, on one scheduler, so that one thread does everything and a plain variable can watch it. */
static void set_up(void)
{
    char *argv[] = {"coppice", "serve", "--schedulers=1", NULL}, *environment[] = {NULL};
    TEST_ASSERT_(settings_load(&settings, 3, argv, environment, text, sizeof(text)) == 0, "%s", text);
    log_open(LOG_ERROR);
}

/* ---- refusals: the real table, and one thing missing from one of its rows ---- */

static struct topology_row rows[TOPOLOGY_ROWS_MAX];

static struct topology_row *broken(const char *name)
{
    memcpy(rows, topology_rows, topology_count * sizeof(*rows));
    for (size_t i = 0; i < topology_count; i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    TEST_ASSERT(false);
    return NULL;
}

static void refused(const char *says)
{
    const struct boot boot = {.settings = &settings, .rows = rows, .rows_count = topology_count};
    text[0] = 0;
    TEST_CHECK(boot_check(&boot, text, sizeof(text)) == ERR_INVALID);
    TEST_CHECK_(strstr(text, says) != NULL, "'%s' says '%s'", text, says);
}

static void test_a_row_that_lacks_an_item_does_not_boot(void)
{
    set_up();
    broken("rooms")->owner = "";
    refused("row 22 \"rooms\": owner is empty; it must name the process that owns the subsystem (TOP-160)");
    broken("agents")->supervisor = NULL;
    refused("\"agents\": supervisor is empty");
    broken("outbound")->max_restarts = 0;
    refused("\"outbound\": restart intensity is 0/60s");
    broken("relay")->strategy = REST_FOR_ONE;
    refused("\"relay\": strategy is rest_for_one and justification is empty");
    broken("runtime")->failures[0] = NULL;
    refused("\"runtime\": failures are empty");
    broken("ingest")->partition_key = "";
    refused("\"ingest\": partition_key is empty");
    broken("ingest")->scaling_rule = "";
    refused("\"ingest\": scaling_rule is empty");
    broken("bus")->slos[0] = NULL;
    refused("\"bus\": SLOs are empty");
    broken("front")->events[0] = NULL;
    refused("\"front\": telemetry events are empty");
}

static void test_what_is_whole_passes(void)
{
    const struct boot boot = {.settings = &settings, .rows = topology_rows, .rows_count = topology_count};
    set_up();
    TEST_CHECK(boot_check(&boot, text, sizeof(text)) == OK);
}

static void test_adapters_are_known_by_name(void)
{
    struct adapters_args args = {0};
    TEST_CHECK(plan_adapters("clock,descriptors", &args, text, sizeof(text)));
    TEST_CHECK(strcmp(args.adapters[0]->name, "clock") == 0 &&
               strcmp(args.adapters[1]->name, "descriptors") == 0);
    TEST_CHECK(args.adapters[2] == NULL);
    TEST_CHECK(!plan_adapters("clock,descriptor", &args, text, sizeof(text)));
    TEST_CHECK(strstr(text, "'descriptor'") != NULL && strstr(text, "did you mean descriptors") != NULL);
    TEST_CHECK(!plan_adapters("clock,,descriptors", &args, text, sizeof(text)));
    TEST_CHECK(!plan_adapters(
        "clock,clock,clock,clock,clock,clock,clock,clock,clock,clock,clock,clock,clock,clock,clock,"
        "clock,clock",
        &args, text, sizeof(text)));
    TEST_CHECK(strstr(text, "at most 16") != NULL);
}

/* ---- small trees that tell what happens to them ---- */

static char diary[64]; /* a letter for each start, its capital for each end */

static void note(char c)
{
    size_t length = strlen(diary);
    TEST_ASSERT(length + 1 < sizeof(diary));
    diary[length] = c;
}

static enum actor_step letter_init(void *state, const void *args, size_t args_size)
{
    TEST_ASSERT(args_size == 1);
    memcpy(state, args, 1);
    note(*(char *)state);
    return ACTOR_PROCEED;
}

/* z ends it all, f fails in every life, and x fails in its first life and ends it all in its second. */
static enum actor_step letter_proceed(void *state)
{
    char c = *(char *)state;
    if (c == 'x' && strchr(diary, 'X') == NULL)
        actor_fail(1, "the first life of x");
    if (c == 'z' || c == 'x')
        runtime_stop(runtime_self());
    if (c == 'f')
        actor_fail(1, "f always fails");
    return ACTOR_CONTINUE;
}

static enum actor_step letter_handle(void *state, struct message *m)
{
    (void)state;
    (void)m;
    return ACTOR_CONTINUE;
}

static void letter_terminate(void *state, const struct reason *why)
{
    (void)why;
    note((char)(*(char *)state - 'a' + 'A'));
}

static const struct actor_class letter_class = {
    .name = "letter",
    .state_size = 1,
    .init = letter_init,
    .proceed = letter_proceed,
    .handle = letter_handle,
    .terminate = letter_terminate,
    .trap_exits = true,
    .stack_size = 1 << 20, /* printf of a failed check */
};

static const struct topology_failure failure = {.mode = "It breaks",
                                                .class = "recoverable",
                                                .handling = "Contain.",
                                                .action = "Restart.",
                                                .event = "actor.crash"};
static const struct topology_slo slo = {.capability = "Containment",
                                        .sli = "cascades",
                                        .metric = "cascade_count",
                                        .target = "0",
                                        .thresholds = "critical >= 1",
                                        .event = "supervisor.escalation"};

#define COMMON                                                                                            \
    .subsystem = "A part", .intent = "Nothing else ends.", .owner = "somebody", .supervisor = "somebody", \
    .max_restarts = 2, .max_seconds = 60, .partition_key = "none", .scaling_rule = "One.",                \
    .failures = {&failure}, .slos = {&slo}, .events = {"actor.exit"}
#define SUPERVISOR(name_, parent_)                                            \
    {                                                                         \
        .name = name_, .parent = parent_, .kind = TOPOLOGY_SUPERVISOR, COMMON \
    }
#define LETTER(name_, parent_)                                                                            \
    {                                                                                                     \
        .name = name_, .parent = parent_, .kind = TOPOLOGY_WORKER, .class = &letter_class, .args = name_, \
        .args_size = 1, COMMON                                                                            \
    }

static int serve(const struct topology_row *table, size_t count)
{
    struct boot boot = {.settings = &settings, .rows = table, .rows_count = count, .sockets = &sockets};
    set_up();
    memset(diary, 0, sizeof(diary));
    TEST_CHECK(boot_check(&boot, text, sizeof(text)) == OK);
    TEST_MSG("%s", text);
    return boot_serve(&boot);
}

/* The rows of a supervisor's children need not stand together; they start in the order of the rows all the same. */
static void test_the_tree_starts_in_order_and_stops_in_reverse(void)
{
    static const struct topology_row table[] = {
        SUPERVISOR("root", ""),       LETTER("a", "root"), SUPERVISOR("group", "root"), LETTER("b", "group"),
        SUPERVISOR("inner", "group"), LETTER("d", "root"), LETTER("c", "inner"),        LETTER("z", "root"),
    };
    TEST_CHECK(serve(table, sizeof(table) / sizeof(*table)) == 0);
    TEST_CHECK(strcmp(diary, "abcdzZDCBA") == 0);
    TEST_MSG("%s", diary);
}

static void test_a_row_per_key_is_left_to_its_parent(void)
{
    static const struct topology_row table[] = {
        SUPERVISOR("root", ""),
        {.name = "things", .parent = "root", .kind = TOPOLOGY_DYNAMIC, COMMON},
        LETTER("a:<id>", "things"),
        LETTER("z", "root"),
    };
    TEST_CHECK(serve(table, sizeof(table) / sizeof(*table)) == 0);
    TEST_CHECK(strcmp(diary, "zZ") == 0);
}

static size_t lives(char c)
{
    size_t count = 0;
    for (const char *at = diary; *at; at++)
        count += *at == c;
    return count;
}

/* x fails in its first life, wherever the others are by then, and ends it all in its second. */
static void test_the_strategy_of_the_row_is_that_of_the_supervisor(void)
{
    static struct topology_row table[] = {
        SUPERVISOR("root", ""), SUPERVISOR("group", "root"), LETTER("a", "group"),
        LETTER("x", "group"),   LETTER("b", "group"),        LETTER("c", "root"),
    };
    TEST_CHECK(serve(table, sizeof(table) / sizeof(*table)) == 0);
    TEST_CHECK_(lives('a') == 1 && lives('x') == 2 && lives('b') == 1 && lives('c') == 1, "one_for_one: %s",
                diary);
    table[1].strategy = ONE_FOR_ALL;
    table[1].justification = "They share one thing.";
    TEST_CHECK(serve(table, sizeof(table) / sizeof(*table)) == 0);
    TEST_CHECK_(lives('a') == 2 && lives('x') == 2 && lives('b') == 2 && lives('c') == 1, "one_for_all: %s",
                diary);
    table[1].strategy = REST_FOR_ONE;
    TEST_CHECK(serve(table, sizeof(table) / sizeof(*table)) == 0);
    TEST_CHECK_(lives('a') == 1 && lives('x') == 2 && lives('b') == 2 && lives('c') == 1, "rest_for_one: %s",
                diary);
}

static void test_the_intensity_of_the_row_is_that_of_the_supervisor(void)
{
    static const struct topology_row table[] = {SUPERVISOR("root", ""), LETTER("f", "root")};
    TEST_CHECK(serve(table, sizeof(table) / sizeof(*table)) == RUNTIME_EXIT_EXHAUSTED);
    TEST_CHECK(strcmp(diary, "fFfFfF") == 0); /* one start and two restarts */
    TEST_MSG("%s", diary);
}

TEST_LIST
= {
    {"TOP-160..TOP-166 a row that lacks an item does not boot", test_a_row_that_lacks_an_item_does_not_boot},
    {"what is whole passes", test_what_is_whole_passes},
    {"TOP-073 adapters are known by name", test_adapters_are_known_by_name},
    {"TOP-023 the tree starts in the order of the rows and stops in reverse",
     test_the_tree_starts_in_order_and_stops_in_reverse},
    {"a row per key is left to its parent", test_a_row_per_key_is_left_to_its_parent},
    {"TOP-025 the strategy of the row is that of the supervisor",
     test_the_strategy_of_the_row_is_that_of_the_supervisor},
    {"TOP-026 TOP-068 the intensity of the row is that of the supervisor",
     test_the_intensity_of_the_row_is_that_of_the_supervisor},
    {NULL, NULL},
};
