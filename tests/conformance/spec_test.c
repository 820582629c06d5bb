/* Section A: what a child spec and a supervisor's flags may say. */
#include "acutest.h"
#include "harness.h"

/* A number from outside an enum's range; the compiler would see through a plain cast. */
static int junk(int value)
{
    volatile int v = value;
    return v;
}

/* Starting with this list fails with `wanted`, names `word` in its sentence, and starts nobody. */
static void refused(const struct child_spec *specs, size_t count, enum auto_shutdown mode, enum error wanted,
                    const char *word)
{
    char text[256] = "";
    EXPECT_ERROR(supervisor_check_children(specs, count, mode, text, sizeof text), wanted);
    if (!strstr(text, word))
        world_fail(__FILE__, __LINE__, "'%s' doesn't say '%s'", text, word);
    struct start_result result = {0};
    EXPECT_ERROR(supervisor_start(keep_spec(&(struct supervisor_spec){
                                      .children = specs, .children_count = count, .auto_shutdown = mode}),
                                  anywhere(), &result, PATIENCE),
                 wanted);
    reason_drop(&result.why);
    EXPECT_EQ(world->events_count, 0);
    EXPECT(!mail());
}

/* Both ways in: start_child under a running supervisor, which stays as it was; and the list at the start. */
static void refused_child(const struct child_spec *spec, enum error wanted, const char *word)
{
    refused(spec, 1, AUTO_SHUTDOWN_NEVER, wanted, word);
    actor_pid sup = START(ONE_FOR_ONE, 1, 5, WORKER(H));
    struct child_result result = {0};
    EXPECT_ERROR(supervisor_start_child(sup, spec, &result, PATIENCE), wanted);
    settle();
    EXPECT_ORDER(BEGAN, "h");
    EXPECT(actor_alive(sup) && actor_alive(world->members[H].pid));
    struct child_info infos[2];
    EXPECT_EQ(children_of(sup, infos, 2), 1);
    EXPECT(infos[0].pid == world->members[H].pid);
    EXPECT_COUNTS(sup, "1,1,0,1");
    add_child(sup, &WORKER(G)); /* and it goes on to serve */
}

static void spec_01(void)
{
    actor_pid sup = START(ONE_FOR_ONE, 0, 0, WORKER(A));
    struct child_info info = info_of(sup, "a");
    EXPECT_EQ(info.restart, RESTART_PERMANENT);
    EXPECT_EQ(info.shutdown_ms, 5000);
    EXPECT_EQ(info.type, CHILD_WORKER);
    EXPECT_EQ(info.state, CHILD_RUNNING);
    EXPECT(!strcmp(info.id, "a") && !strcmp(info.class_name, worker_class.name));
}

static void spec_02(void)
{
    const struct supervisor_spec empty = {.name = "inner"};
    actor_pid sup = START(ONE_FOR_ONE, 0, 0, SUBTREE("inner", &empty));
    struct child_info info = info_of(sup, "inner");
    EXPECT_EQ(info.shutdown_ms, SHUTDOWN_INFINITY);
    EXPECT_EQ(info.type, CHILD_SUPERVISOR);
    EXPECT_EQ(info.restart, RESTART_PERMANENT);
}

static void spec_03(void)
{
    struct child_spec spec = WORKER(A);
    spec.id = NULL;
    refused_child(&spec, ERR_MISSING_ID, "id");
}

static void spec_04(void)
{
    struct child_spec spec = WORKER(A);
    spec.class = NULL;
    refused_child(&spec, ERR_MISSING_START, "class");
}

/* OTP: a start that isn't {M, F, A}. Here: a class whose handler is NULL can't be started. */
static void spec_05(void)
{
    static const struct actor_class deafmute = {.name = "no_handler"};
    struct child_spec spec = WORKER(B);
    spec.class = &deafmute;
    refused_child(&spec, ERR_INVALID_START, "no_handler");
    events_clear();
    refused((struct child_spec[]){WORKER(A), spec, WORKER(C)}, 3, AUTO_SHUTDOWN_NEVER, ERR_INVALID_START,
            "b");
}

static void spec_06(void)
{
    struct child_spec spec = WORKER(A, .restart = (enum restart_type)junk(17));
    refused_child(&spec, ERR_INVALID_RESTART, "17");
}

static void spec_07(void)
{
    struct child_spec spec = WORKER(A, .shutdown_ms = -10);
    refused_child(&spec, ERR_INVALID_SHUTDOWN, "-10");
}

static void spec_09(void)
{
    struct child_spec spec = WORKER(A, .type = (enum child_type)junk(9));
    refused_child(&spec, ERR_INVALID_TYPE, "9");
}

static void spec_10(void)
{
    refused((struct child_spec[]){WORKER(A), WORKER(B), WORKER(A)}, 3, AUTO_SHUTDOWN_NEVER, ERR_DUPLICATE_ID,
            "a");
}

static void spec_11(void)
{
    const int64_t shutdowns[] = {SHUTDOWN_AT_ONCE, 1000, SHUTDOWN_INFINITY,
                                 SHUTDOWN_BRUTAL}; /* AT_ONCE: OTP's 0 */
    unsigned count = 0;
    for (int restart = 0; restart < RESTART_TYPE_COUNT; restart++)
        for (int type = 0; type < CHILD_TYPE_COUNT; type++)
            for (unsigned i = 0; i < sizeof shutdowns / sizeof shutdowns[0]; i++, count++) {
                struct child_spec spec = WORKER(A, .restart = (enum restart_type)restart,
                                                .type = (enum child_type)type, .shutdown_ms = shutdowns[i]);
                char text[256];
                EXPECT_OK(supervisor_check_children(&spec, 1, AUTO_SHUTDOWN_NEVER, text, sizeof text));
            }
    EXPECT_EQ(count, 24);
}

/* C knows all fields of a struct. What comes nearest: bytes of fields that don't matter for this child (a
 * quarantine that is off, a backoff that is off) are accepted whatever they say. */
static void spec_12(void)
{
    actor_pid sup =
        START(ONE_FOR_ONE, 1, 5,
              WORKER(A, .quarantine = {.window_ms = 12345, .retry_ms = 1}, .backoff = {.max_ms = 9}));
    EXPECT_COUNTS(sup, "1,1,0,1");
}

static void spec_13(void)
{
    actor_pid sup = START(
        ONE_FOR_ONE, 1, 5,
        CHILD(A, &trapper_class, PLAN(.number = A, .end_ms = 3600 * 1000), .shutdown_ms = SHUTDOWN_INFINITY));
    EXPECT_EQ(info_of(sup, "a").shutdown_ms, SHUTDOWN_INFINITY);
    uint64_t child = watch(pid_of(sup, "a")), began = now_ms();
    EXPECT_REASON(end_of(sup, SHUTDOWN), SHUTDOWN);
    EXPECT_REASON(wait_down(child), SHUTDOWN);
    EXPECT_EQ(now_ms() - began, 3600 * 1000);
}

/* Not a list: no pointer, but a count. */
static void spec_14(void)
{
    char text[256];
    EXPECT_ERROR(supervisor_check_children(NULL, 1, AUTO_SHUTDOWN_NEVER, text, sizeof text), ERR_BADARG);
    refused(NULL, 2, AUTO_SHUTDOWN_NEVER, ERR_BADARG, "children");
    EXPECT_OK(supervisor_check_children(NULL, 0, AUTO_SHUTDOWN_NEVER, text, sizeof text));
}

static void spec_16(void)
{
    refused((struct child_spec[]){WORKER(A), WORKER(B, .shutdown_ms = -77), WORKER(C)}, 3,
            AUTO_SHUTDOWN_NEVER, ERR_INVALID_SHUTDOWN, "-77");
}

/* ---- flags ---- */

static void refused_flags(const struct supervisor_spec *flags, enum error wanted, const char *word)
{
    char text[256] = "";
    struct supervisor_spec spec = *flags;
    struct child_spec child = WORKER(A);
    if (spec.strategy != DYNAMIC && !spec.children) {
        spec.children = &child;
        spec.children_count = 1;
    }
    EXPECT_ERROR(supervisor_check(&spec, text, sizeof text), wanted);
    if (!strstr(text, word))
        world_fail(__FILE__, __LINE__, "'%s' doesn't say '%s'", text, word);
    struct start_result result = {0};
    EXPECT_ERROR(supervisor_start(keep_spec(&spec), anywhere(), &result, PATIENCE), wanted);
    EXPECT_EQ(world->events_count, 0);
    EXPECT(!mail());
}

static void flag_01(void)
{
    refused_flags(&(struct supervisor_spec){.strategy = (enum strategy)junk(4)}, ERR_INVALID_STRATEGY, "4");
    refused_flags(&(struct supervisor_spec){.strategy = (enum strategy)junk(-1)}, ERR_INVALID_STRATEGY,
                  "strategy");
}

static void flag_02(void)
{
    refused_flags(&(struct supervisor_spec){.intensity = -1, .period_ms = 5000}, ERR_INVALID_INTENSITY, "-1");
    refused_flags(&(struct supervisor_spec){.intensity = SUPERVISOR_INTENSITY_MAX + 1, .period_ms = 5000},
                  ERR_INVALID_INTENSITY, "intensity");
}

/* OTP's defaults are the ones taken, not Elixir's 3 in 5 s. */
static void flag_04(void)
{
    struct child_spec child = WORKER(A);
    actor_pid sup = start_supervisor(&(struct supervisor_spec){.children = &child, .children_count = 1});
    struct supervisor_info info;
    EXPECT_OK(supervisor_inspect(sup, &info, PATIENCE));
    EXPECT_EQ(info.strategy, ONE_FOR_ONE);
    EXPECT_EQ(info.intensity, 1);
    EXPECT_EQ(info.period_ms, 5000);
    uint64_t ref = watch(sup);
    hit(pid_of(sup, "a"));
    settle();
    EXPECT_EQ(world->members[A].ready, 2);
    EXPECT(actor_alive(sup));
    pass_ms(draw(4900));
    hit(pid_of(sup, "a"));
    EXPECT_REASON(wait_down(ref), SHUTDOWN);
    EXPECT_EQ(world->members[A].begun, 2);
    EXPECT_EQ(world->members[A].gone, 2);
}

/* As SPEC-12: flags that mean nothing for this strategy are ignored. */
static void flag_05(void)
{
    struct child_spec child = WORKER(A);
    actor_pid sup = start_supervisor(&(struct supervisor_spec){
        .children = &child, .children_count = 1, .max_children = 0, .init_arg = &child});
    EXPECT_COUNTS(sup, "1,1,0,1");
}

/* Flags of a wrong shape: a list of children for a dynamic supervisor, a template for a static one. */
static void flag_06(void)
{
    struct child_spec child = WORKER(A);
    refused_flags(&(struct supervisor_spec){.strategy = DYNAMIC, .children = &child, .children_count = 1},
                  ERR_INVALID_FLAGS, "children");
    refused_flags(&(struct supervisor_spec){.strategy = ONE_FOR_ONE, .template = &child}, ERR_INVALID_FLAGS,
                  "template");
}

/* ---- beyond the table ---- */

/* The numbers next to the named shutdowns, and the largest. */
static void spec_08(void)
{
    struct child_spec spec = WORKER(A, .shutdown_ms = -4);
    refused_child(&spec, ERR_INVALID_SHUTDOWN, "-4");
    events_clear();
    spec.shutdown_ms = INT64_MIN;
    refused(&spec, 1, AUTO_SHUTDOWN_NEVER, ERR_INVALID_SHUTDOWN, "shutdown");
}

/* A list for auto_shutdown any or all is checked with it; the same list is bad without. */
static void spec_15(void)
{
    char text[256];
    struct child_spec spec = WORKER(A, .restart = RESTART_TRANSIENT, .significant = true);
    EXPECT_OK(supervisor_check_children(&spec, 1, AUTO_SHUTDOWN_ANY, text, sizeof text));
    EXPECT_OK(supervisor_check_children(&spec, 1, AUTO_SHUTDOWN_ALL, text, sizeof text));
    refused(&spec, 1, AUTO_SHUTDOWN_NEVER, ERR_BAD_COMBINATION, "significant");
}

/* An id has 1 to 95 bytes. */
static void spec_17(void)
{
    static char id[97];
    memset(id, 'x', 96);
    struct child_spec spec = WORKER(A);
    spec.id = id;
    char text[256];
    EXPECT_ERROR(supervisor_check_children(&spec, 1, AUTO_SHUTDOWN_NEVER, text, sizeof text), ERR_LIMIT);
    id[95] = 0;
    actor_pid sup = START(ONE_FOR_ONE, 1, 5, spec);
    EXPECT(pid_of(sup, id) == world->members[A].pid);
    spec.id = "";
    EXPECT_ERROR(supervisor_check_children(&spec, 1, AUTO_SHUTDOWN_NEVER, text, sizeof text), ERR_MISSING_ID);
}

/* Arguments are copied: what the caller does with its own afterwards doesn't reach a restarted child. */
static void spec_18(void)
{
    struct plan plan = {.number = A, .info = 1};
    struct child_spec spec = CHILD(A, &worker_class, &plan);
    actor_pid sup = start_empty(ONE_FOR_ONE);
    struct child_result result;
    EXPECT_OK(supervisor_start_child(sup, &spec, &result, PATIENCE));
    plan.number = B;
    hit(result.pid);
    settle();
    EXPECT_EQ(world->members[A].ready, 2);
    EXPECT_EQ(world->members[B].begun, 0);
}

static void flag_03(void)
{
    refused_flags(&(struct supervisor_spec){.intensity = 1, .period_ms = -1}, ERR_INVALID_PERIOD, "-1");
    refused_flags(&(struct supervisor_spec){.intensity = 1, .period_ms = 0}, ERR_INVALID_PERIOD, "period");
}

static void flag_07(void)
{
    refused_flags(&(struct supervisor_spec){.auto_shutdown = (enum auto_shutdown)junk(3)}, ERR_INVALID_FLAGS,
                  "auto_shutdown");
}

/* What init fills in is checked as what was declared is. */
static enum actor_step bad_intensity(struct supervisor_spec *spec, void *arg)
{
    (void)arg;
    spec->intensity = -7;
    return ACTOR_CONTINUE;
}

static void flag_08(void)
{
    struct child_spec child = WORKER(A);
    struct start_result result = {0};
    EXPECT_ERROR(supervisor_start(keep_spec(&(struct supervisor_spec){
                                      .children = &child, .children_count = 1, .init = bad_intensity}),
                                  anywhere(), &result, PATIENCE),
                 ERR_INVALID_INTENSITY);
    EXPECT_EQ(world->events_count, 0);
    EXPECT(!mail());
}

#define ROWS(X)              \
    X("SPEC-01", spec_01, 0) \
    X("SPEC-02", spec_02, 0) \
    X("SPEC-03", spec_03, 0) \
    X("SPEC-04", spec_04, 0) \
    X("SPEC-05", spec_05, 0) \
    X("SPEC-06", spec_06, 0) \
    X("SPEC-07", spec_07, 0) \
    X("SPEC-09", spec_09, 0) \
    X("SPEC-10", spec_10, 0) \
    X("SPEC-11", spec_11, 0) \
    X("SPEC-12", spec_12, 0) \
    X("SPEC-13", spec_13, 0) \
    X("SPEC-14", spec_14, 0) \
    X("SPEC-16", spec_16, 0) \
    X("FLAG-01", flag_01, 0) \
    X("FLAG-02", flag_02, 0) \
    X("FLAG-04", flag_04, 0) \
    X("FLAG-05", flag_05, 0) \
    X("FLAG-06", flag_06, 0) \
    X("SPEC-08", spec_08, 0) \
    X("SPEC-15", spec_15, 0) \
    X("SPEC-17", spec_17, 0) \
    X("SPEC-18", spec_18, 0) \
    X("FLAG-03", flag_03, 0) \
    X("FLAG-07", flag_07, 0) \
    X("FLAG-08", flag_08, 0)

ROWS_TEST_LIST;
