/* Work kinds: the catalogue as its specification has it, and definitions that anybody can draw again. */
#include "acutest.h"

#include <inttypes.h>

#include "store/work_kind.h"

#define RUNTIME_MS 120000u
#define PPM        1000000u
#define NOW_MS     UINT64_C(1700000000000)
#define DRAWS      1000u

/* The rows of the specification's table, byte for byte: JOB-034..JOB-064. */
#define EXPECTED(X)                                                                                          \
    X(034, SUCCESS_FAST, "SUCCESS_FAST\t1000\tfalse\t4\tSUCCEEDED\t")                                        \
    X(035, SUCCESS_NORMAL, "SUCCESS_NORMAL\t10000\tfalse\t16\tSUCCEEDED\t")                                  \
    X(036, SUCCESS_SLOW, "SUCCESS_SLOW\t90000\tfalse\t32\tSUCCEEDED\t")                                      \
    X(037, FAIL_IMMEDIATE, "FAIL_IMMEDIATE\t500\ttrue\t1\tFAILED\t")                                         \
    X(038, FAIL_AFTER_PROGRESS, "FAIL_AFTER_PROGRESS\t20000\ttrue\t8\tFAILED\t")                             \
    X(039, FAIL_AFTER_RETRYABLE, "FAIL_AFTER_RETRYABLE\t5000\ttrue\t8\tFAILED\tretryable")                   \
    X(040, RUNS_LONG, "RUNS_LONG\t110000\tfalse\t32\tSUCCEEDED\t")                                           \
    X(041, RUNS_OVER_TIMEOUT, "RUNS_OVER_TIMEOUT\tmax_runtime+1000\ttrue\t8\tFAILED\ttimeout")               \
    X(042, CPU_BURST, "CPU_BURST\t8000\tfalse\t4\tSUCCEEDED\t")                                              \
    X(043, MEMORY_SPIKE, "MEMORY_SPIKE\t12000\tfalse\t64\tSUCCEEDED\t")                                      \
    X(044, IO_HEAVY, "IO_HEAVY\t15000\tfalse\t32\tSUCCEEDED\t")                                              \
    X(045, MANY_SMALL_OUTPUTS, "MANY_SMALL_OUTPUTS\t9000\tfalse\t16\tSUCCEEDED\t")                           \
    X(046, LARGE_OUTPUT, "LARGE_OUTPUT\t9000\tfalse\t256\tSUCCEEDED\t")                                      \
    X(047, CANCEL_BEFORE_START,                                                                              \
      "CANCEL_BEFORE_START\t5000\tfalse\t4\tCANCELED\twhen cancel issued in QUEUED")                         \
    X(048, CANCEL_DURING_RUN, "CANCEL_DURING_RUN\t10000\tfalse\t4\tCANCELED\twhen cancel issued in RUNNING") \
    X(049, RETRY_ON_FAIL, "RETRY_ON_FAIL\t3000\ttrue\t4\tFAILED then SUCCEEDED on retry\t")                  \
    X(050, RETRY_LIMIT_REACHED, "RETRY_LIMIT_REACHED\t3000\ttrue\t4\tFAILED after max retries\t")            \
    X(051, DUPLICATE_SUBMIT_SAME_KEY, "DUPLICATE_SUBMIT_SAME_KEY\t2000\tfalse\t4\tSUCCEEDED\tsame job id")   \
    X(052, DUPLICATE_SUBMIT_DIFFERENT_KEY,                                                                   \
      "DUPLICATE_SUBMIT_DIFFERENT_KEY\t2000\tfalse\t4\tSUCCEEDED\tdistinct jobs")                            \
    X(053, WEBHOOK_SUCCESS, "WEBHOOK_SUCCESS\t2000\tfalse\t4\tSUCCEEDED\twebhook delivered")                 \
    X(054, WEBHOOK_TIMEOUT, "WEBHOOK_TIMEOUT\t2000\tfalse\t4\tSUCCEEDED\twebhook retries")                   \
    X(055, WEBHOOK_5XX, "WEBHOOK_5XX\t2000\tfalse\t4\tSUCCEEDED\twebhook retries")                           \
    X(056, WEBHOOK_RETRIES_EXHAUSTED,                                                                        \
      "WEBHOOK_RETRIES_EXHAUSTED\t2000\tfalse\t4\tSUCCEEDED\tdelivery failed")                               \
    X(057, WEBHOOK_SLOW_RECEIVER, "WEBHOOK_SLOW_RECEIVER\t2000\tfalse\t4\tSUCCEEDED\tdelivery delayed")      \
    X(058, SCHEDULED_ON_TIME, "SCHEDULED_ON_TIME\t2000\tfalse\t4\tSUCCEEDED\t")                              \
    X(059, SCHEDULED_LATE_RECOVERY,                                                                          \
      "SCHEDULED_LATE_RECOVERY\t2000\tfalse\t4\tSUCCEEDED\tenqueued after restart")                          \
    X(060, SCHEDULED_FAR_FUTURE, "SCHEDULED_FAR_FUTURE\t2000\tfalse\t4\tSUCCEEDED\t")                        \
    X(061, PAYLOAD_SMALL, "PAYLOAD_SMALL\t2000\tfalse\t1\tSUCCEEDED\t")                                      \
    X(062, PAYLOAD_MEDIUM, "PAYLOAD_MEDIUM\t2000\tfalse\t16\tSUCCEEDED\t")                                   \
    X(063, PAYLOAD_LARGE, "PAYLOAD_LARGE\t2000\tfalse\t256\tSUCCEEDED\t")                                    \
    X(064, PAYLOAD_INVALID, "PAYLOAD_INVALID\t0\tfalse\t0\tREJECTED\tvalidation error")

static struct work_definition definition_of(uint8_t kind, uint32_t runtime_ms)
{
    struct work_definition d = {0};
    TEST_CHECK(work_definition_of_kind(kind, runtime_ms, &d));
    return d;
}

static struct work_definition drawn(uint64_t ms, uint32_t ppm)
{
    struct work_definition d = {0};
    TEST_CHECK(work_definition_draw(ms, ppm, WORK_PAYLOAD_MAX, RUNTIME_MS, &d));
    return d;
}

/* ---- the catalogue ---- */

static void row_is(const char *name, uint8_t number, const char *expected)
{
    char line[256], duration[WORK_DURATION_TEXT_SIZE];
    struct work_definition d;
    uint8_t kind = work_kind_of(span_text(name));
    TEST_CHECK(kind == number);
    const struct work_kind_row *row = work_kind_row(kind);
    TEST_ASSERT(row != NULL);
    work_kind_duration_text(row, duration);
    snprintf(line, sizeof(line), "%s\t%s\t%s\t%" PRIu32 "\t%s\t%s", row->name, duration,
             row->failing_attempts ? "true" : "false", row->payload_bytes / 1024, row->outcome, row->note);
    TEST_CHECK(strcmp(line, expected) == 0);
    TEST_MSG("the row is %s", line);
    if (row->payload_bytes % 1024 != 0 || !work_definition_of_kind(kind, RUNTIME_MS, &d)) {
        TEST_CHECK(kind == WORK_KIND_PAYLOAD_INVALID);
        return;
    }
    TEST_CHECK(d.kind == kind && d.payload_bytes == row->payload_bytes);
    TEST_CHECK(d.should_fail == (strstr(line, "\ttrue\t") != NULL));
    TEST_CHECK(d.duration_ms == (kind == WORK_KIND_RUNS_OVER_TIMEOUT ? RUNTIME_MS + 1000 : row->duration_ms));
}

#define X(id, name, expected)                                       \
    static void test_JOB_##id##_##name(void)                        \
    {                                                               \
        row_is(#name, 1##id - 1033, expected); /* in their order */ \
    }
EXPECTED(X)
#undef X

static void test_catalogue_has_these_31_and_no_other_JOB_065(void)
{
    static const char *const none[] = {
        "",       "SUCCESS",      "success_fast", "SUCCESS_FAST ", "SUCCESS_FASTE", "REJECTED",
        "x.mine", "SUCCESS-FAST", "NONE",         "USER",          "PAYLOAD_\0"};
    size_t count = 0;
    uint64_t seen = 0;
    for (const struct work_kind_row *row; (row = work_kind_each(count)) != NULL; count++) {
        TEST_CHECK(work_kind_row(row->kind) == row && row->kind == count + 1);
        TEST_CHECK(strlen(row->name) <= WORK_KIND_NAME_MAX && !work_kind_user(span_text(row->name)));
        seen |= UINT64_C(1) << work_kind_of(span_text(row->name));
    }
    TEST_CHECK(count == 31 && count == WORK_KINDS_COUNT && seen == 0xfffffffe);
    for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++)
        TEST_CHECK(work_kind_of(span_text(none[i])) == WORK_KIND_NONE);
    TEST_CHECK(work_kind_of(span_of("SUCCESS_FAST", 13)) == WORK_KIND_NONE); /* with its 0 */
    for (unsigned kind = 0; kind <= UINT8_MAX; kind++)
        TEST_CHECK((work_kind_row((uint8_t)kind) != NULL) == (kind >= 1 && kind <= 31));
}

static void test_catalogue_says_what_simulated_work_leaves_AMB_J_66(void)
{
    const struct work_kind_row *row;
    for (size_t i = 0; (row = work_kind_each(i)) != NULL; i++) {
        bool many = row->kind == WORK_KIND_MANY_SMALL_OUTPUTS;
        TEST_CHECK(row->outputs == (many ? 64 : 1));
        TEST_CHECK(!many || row->payload_bytes / row->outputs == 256);
        TEST_CHECK(row->progress_percent == (row->kind == WORK_KIND_FAIL_AFTER_PROGRESS ? 50 : 0));
        TEST_CHECK(row->retryable ==
                   (row->kind == WORK_KIND_FAIL_AFTER_RETRYABLE || row->kind == WORK_KIND_RETRY_ON_FAIL ||
                    row->kind == WORK_KIND_RETRY_LIMIT_REACHED));
    }
}

static void test_work_fails_on_every_attempt_or_the_first_only_AMB_J_66(void)
{
    for (unsigned kind = 0; kind <= UINT8_MAX; kind++) {
        const struct work_kind_row *row = work_kind_row((uint8_t)kind);
        bool first = kind == WORK_KIND_RETRY_ON_FAIL;
        bool always = row && row->failing_attempts && !first;
        TEST_CHECK(work_kind_fails((uint8_t)kind, 1) == (always || first));
        for (uint32_t attempt = 2; attempt < 600; attempt++)
            TEST_CHECK(work_kind_fails((uint8_t)kind, attempt) == always);
        TEST_CHECK(work_kind_fails((uint8_t)kind, UINT32_MAX) == always);
    }
}

static void test_user_kinds_have_a_prefix_and_64_characters_at_most(void)
{
    char name[2 + 66] = "x.";
    static const char *const good[] = {"x.a", "x.resize-image_2.v1", "x.-", "x..", "x.x.x", "x.0"};
    static const char *const bad[] = {"",    "x",     "x.",    "X.a",        "x.A",   "y.a", ".a",
                                      "x a", "x.a b", "x.a/b", "x.\xc3\xa9", "x.a\n", "xa",  "x,a"};
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
        TEST_CHECK(work_kind_user(span_text(good[i])) && work_kind_of(span_text(good[i])) == WORK_KIND_NONE);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        TEST_CHECK(!work_kind_user(span_text(bad[i])));
    memset(name + 2, 'z', 65);
    TEST_CHECK(work_kind_user(span_of(name, 66)) && !work_kind_user(span_of(name, 67)));
    TEST_CHECK(!work_kind_user(span_of("x.a", 4)) && !work_kind_user(span_of(NULL, 0)));
}

static void test_groups_have_names(void)
{
    TEST_CHECK(strcmp(work_group_name(WORK_GROUP_NAMED), "named") == 0);
    TEST_CHECK(strcmp(work_group_name(WORK_GROUP_SLOW), "slow") == 0);
    TEST_CHECK(work_group_name(WORK_GROUP_COUNT) == NULL);
}

/* ---- definitions ---- */

static void test_definition_over_the_runtime_limit_follows_it_JOB_041(void)
{
    static const uint32_t limits[] = {1, 5000, RUNTIME_MS, UINT32_MAX - 1000};
    for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
        TEST_CHECK(definition_of(WORK_KIND_RUNS_OVER_TIMEOUT, limits[i]).duration_ms == limits[i] + 1000);
        TEST_CHECK(definition_of(WORK_KIND_RUNS_LONG, limits[i]).duration_ms == 110000);
    }
}

static void test_definition_is_refused_of_what_is_none_JOB_064_AMB_J_09(void)
{
    struct work_definition d = {.kind = 77, .duration_ms = 1};
    TEST_CHECK(!work_definition_of_kind(WORK_KIND_PAYLOAD_INVALID, RUNTIME_MS, &d));
    TEST_CHECK(!work_definition_of_kind(WORK_KIND_NONE, RUNTIME_MS, &d));
    TEST_CHECK(!work_definition_of_kind(WORK_KIND_USER, RUNTIME_MS, &d));
    TEST_CHECK(!work_definition_of_kind(32, RUNTIME_MS, &d));
    TEST_CHECK(d.kind == 77 && d.duration_ms == 1);
}

/* Made by another program from what the header says; the first number for 0 is a published one. */
static void test_draw_can_be_made_again_by_anybody_JOB_026_AMB_J_03(void)
{
    static const struct {
        uint64_t ms;
        uint32_t first; /* the first number modulo 1,000,000 */
        uint8_t success, failure;
    } known[] = {
        {0, 607535, WORK_KIND_SUCCESS_FAST, WORK_KIND_FAIL_IMMEDIATE}, /* 0xe220a8397b1dcdaf */
        {NOW_MS, 423875, WORK_KIND_SUCCESS_NORMAL, WORK_KIND_FAIL_IMMEDIATE},
        {NOW_MS + 1, 734958, WORK_KIND_IO_HEAVY, WORK_KIND_FAIL_AFTER_RETRYABLE},
        {NOW_MS + 2, 808633, WORK_KIND_SUCCESS_FAST, WORK_KIND_RETRY_ON_FAIL},
        {NOW_MS + 3, 333371, WORK_KIND_PAYLOAD_MEDIUM, WORK_KIND_RETRY_ON_FAIL},
        {1785000000123, 934834, WORK_KIND_RUNS_LONG, WORK_KIND_FAIL_AFTER_RETRYABLE},
        {253402300799999, 42869, WORK_KIND_IO_HEAVY, WORK_KIND_FAIL_AFTER_RETRYABLE},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
        TEST_CHECK(drawn(known[i].ms, known[i].first).kind == known[i].success);
        TEST_CHECK(drawn(known[i].ms, known[i].first + 1).kind == known[i].failure);
        struct work_definition a = drawn(known[i].ms, 200000), b = drawn(known[i].ms, 200000);
        struct work_definition named = definition_of(a.kind, RUNTIME_MS);
        TEST_CHECK(a.kind == b.kind && a.should_fail == b.should_fail);
        TEST_CHECK(a.duration_ms == b.duration_ms && a.payload_bytes == b.payload_bytes);
        TEST_CHECK(a.duration_ms == named.duration_ms && a.payload_bytes == named.payload_bytes &&
                   a.should_fail == named.should_fail); /* JOB-029 */
    }
}

static void test_draw_stays_within_its_bounds_JOB_068_JOB_070_JOB_075(void)
{
    for (uint32_t i = 0; i < DRAWS; i++) {
        struct work_definition d = drawn(NOW_MS + i, PPM / 2);
        TEST_CHECK(d.duration_ms >= 500 && d.duration_ms <= 120000);
        TEST_CHECK(d.payload_bytes >= 1024 && d.payload_bytes <= 262144);
    }
}

static uint32_t failing(uint32_t ppm)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < DRAWS; i++)
        count += drawn(NOW_MS + i, ppm).should_fail;
    return count;
}

static void test_draw_fails_as_often_as_it_should_JOB_069_JOB_076_AMB_J_04(void)
{
    TEST_CHECK(failing(0) == 0);
    TEST_CHECK(failing(PPM / 2) == 538); /* of these thousand; counted by another program */
    TEST_CHECK(failing(PPM) == DRAWS);
}

static void test_draw_covers_each_group_and_its_whole_pool_JOB_071_JOB_077(void)
{
    static const char *const pools[] = {
        "SUCCESS_FAST SUCCESS_NORMAL SUCCESS_SLOW RUNS_LONG CPU_BURST MEMORY_SPIKE IO_HEAVY "
        "MANY_SMALL_OUTPUTS "
        "LARGE_OUTPUT PAYLOAD_SMALL PAYLOAD_MEDIUM PAYLOAD_LARGE ",
        "FAIL_IMMEDIATE FAIL_AFTER_PROGRESS FAIL_AFTER_RETRYABLE RETRY_ON_FAIL RETRY_LIMIT_REACHED "};
    for (uint32_t fail = 0; fail < 2; fail++) {
        uint64_t seen = 0;
        char names[512] = "";
        for (uint32_t i = 0; i < DRAWS; i++)
            seen |= UINT64_C(1) << drawn(NOW_MS + i, fail * PPM).kind;
        for (size_t i = 0; i < WORK_KINDS_COUNT; i++) {
            const struct work_kind_row *row = work_kind_each(i);
            bool slow = row->duration_ms >= WORK_DURATION_SLOW_MS;
            if (!(seen & UINT64_C(1) << row->kind))
                continue;
            TEST_CHECK(row->group == (fail   ? WORK_GROUP_FAILURE
                                      : slow ? WORK_GROUP_SLOW
                                             : WORK_GROUP_SUCCESS));
            snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s ", row->name);
        }
        TEST_CHECK(strcmp(names, pools[fail]) == 0);
        TEST_MSG("drawn: %s", names);
    }
}

static void test_draw_leaves_out_what_is_too_large_AMB_J_13(void)
{
    struct work_definition d = {.kind = 77};
    for (uint32_t i = 0; i < DRAWS; i++)
        for (uint32_t max = 1024; max <= 262144; max *= 4) {
            TEST_CHECK(work_definition_draw(NOW_MS + i, 0, max, RUNTIME_MS, &d) && d.payload_bytes <= max);
            TEST_CHECK(work_definition_draw(NOW_MS + i, PPM, max, RUNTIME_MS, &d) && d.payload_bytes <= max);
        }
    TEST_CHECK(work_definition_draw(NOW_MS, 0, 16384, RUNTIME_MS, &d));
    TEST_CHECK(d.kind == WORK_KIND_SUCCESS_NORMAL);
    TEST_CHECK(work_definition_draw(NOW_MS + 3, 0, 16384, RUNTIME_MS, &d));
    TEST_CHECK(d.kind == WORK_KIND_PAYLOAD_SMALL); /* place 10 of 12 would be PAYLOAD_MEDIUM */
    d.kind = 77;
    TEST_CHECK(!work_definition_draw(NOW_MS, 0, 1023, RUNTIME_MS, &d));
    TEST_CHECK(!work_definition_draw(NOW_MS, PPM, 1023, RUNTIME_MS, &d) && d.kind == 77);
}

TEST_LIST
= {
#define X(id, name, expected) {"work kind: " #name " (JOB-" #id ")", test_JOB_##id##_##name},
    EXPECTED(X)
#undef X
        {"work kind: these 31 and no other (JOB-065)", test_catalogue_has_these_31_and_no_other_JOB_065},
    {"work kind: what simulated work leaves (AMB-J-66)",
     test_catalogue_says_what_simulated_work_leaves_AMB_J_66},
    {"work kind: fails on every attempt, or the first only (AMB-J-66)",
     test_work_fails_on_every_attempt_or_the_first_only_AMB_J_66},
    {"work kind: user-defined ones", test_user_kinds_have_a_prefix_and_64_characters_at_most},
    {"work kind: groups have names", test_groups_have_names},
    {"definition: over the runtime limit (JOB-041)",
     test_definition_over_the_runtime_limit_follows_it_JOB_041},
    {"definition: none of what is none (JOB-064, AMB-J-09)",
     test_definition_is_refused_of_what_is_none_JOB_064_AMB_J_09},
    {"definition: can be drawn again by anybody (JOB-026, JOB-029, AMB-J-03)",
     test_draw_can_be_made_again_by_anybody_JOB_026_AMB_J_03},
    {"definition: drawn within bounds (JOB-068, JOB-070, JOB-075)",
     test_draw_stays_within_its_bounds_JOB_068_JOB_070_JOB_075},
    {"definition: fails as often as it should (JOB-069, JOB-076, AMB-J-04)",
     test_draw_fails_as_often_as_it_should_JOB_069_JOB_076_AMB_J_04},
    {"definition: draws cover each group (JOB-071, JOB-077)",
     test_draw_covers_each_group_and_its_whole_pool_JOB_071_JOB_077},
    {"definition: too large a payload is left out (AMB-J-13)",
     test_draw_leaves_out_what_is_too_large_AMB_J_13},
    {NULL, NULL},
};
