#include "acutest.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/histogram.h"
#include "runtime/json.h"
#include "runtime/telemetry.h"

#define MS INT64_C(1000000)
#define S  UINT64_C(1000000000)

static uint64_t now;

static uint64_t clock_read(void *context)
{
    return *(uint64_t *)context;
}

static struct telemetry *telemetry;

static void begin_with(uint32_t shards)
{
    now = 1000 * S;
    telemetry =
        telemetry_create(&(struct telemetry_options){.shards = shards, .now = clock_read, .context = &now});
    TEST_ASSERT(telemetry != NULL);
    telemetry_install(telemetry);
    telemetry_shard_enter(telemetry_shard(telemetry, 0));
}

static void begin(void)
{
    begin_with(1);
}

static void end(void)
{
    telemetry_shard_enter(NULL);
    telemetry_destroy(telemetry);
}

static uint64_t rejected(void)
{
    return telemetry_counter_sum(telemetry, TELEMETRY_TELEMETRY_REJECTED);
}

static bool keep_newest(void *context, const struct telemetry_record *record)
{
    *(struct telemetry_record *)context = *record;
    return true;
}

static struct telemetry_record newest(void)
{
    struct telemetry_record record = {.n = UINT64_MAX};

    telemetry_recent(telemetry, 0, keep_newest, &record);
    return record;
}

static char text_out[131072];

static const char *metrics_as(enum telemetry_format format)
{
    struct json_sink sink;

    json_sink_init(&sink, text_out, sizeof(text_out) - 1, NULL, NULL);
    telemetry_write_metrics(telemetry, &sink, format);
    TEST_ASSERT(json_sink_flush(&sink) == JSON_OK);
    text_out[sink.length] = 0;
    return text_out;
}

static const char *metrics(void)
{
    return metrics_as(TELEMETRY_PROMETHEUS);
}

/* The contract as it is written: name and required dimensions of every event it has. */
static const struct {
    enum telemetry_event event;
    const char *name;
    const char *measurement;
    const char *failure_class;
    const char *dimensions[6];
} contract[] = {
    {TELEMETRY_INGEST_COMPLETED,
     "ingest.completed",
     "ingest_latency_ms",
     NULL,
     {"instance_id", "channel", "outcome"}},
    {TELEMETRY_OUTBOUND_ENQUEUED,
     "outbound.enqueued",
     "outbound_enqueue_ms",
     NULL,
     {"instance_id", "partition", "operation"}},
    {TELEMETRY_OUTBOUND_RESULT,
     "outbound.result",
     "delivery_success_ratio",
     NULL,
     {"channel", "provider_code", "classification"}},
    {TELEMETRY_INSTANCE_CONNECTED,
     "instance.connected",
     "reconnect_mttr_ms",
     NULL,
     {"instance_id", "attempts", "reason"}},
    {TELEMETRY_PRESSURE_TRANSITION,
     "pressure.transition",
     NULL,
     NULL,
     {"component", "partition", "pressure_level"}},
    {TELEMETRY_SUPERVISOR_ESCALATION,
     "supervisor.escalation",
     "cascade_count",
     NULL,
     {"domain", "source_child", "restart_count"}},
    {TELEMETRY_FAILURE_BOOT_CONFIG,
     "failure.boot_config",
     NULL,
     "fatal",
     {"component", "failure_class", "reason", "boot_stage"}},
    {TELEMETRY_FAILURE_ADAPTER_INIT,
     "failure.adapter_init",
     NULL,
     "fatal",
     {"component", "failure_class", "adapter", "reason"}},
    {TELEMETRY_FAILURE_LISTENER_DISCONNECT,
     "failure.listener_disconnect",
     NULL,
     "recoverable",
     {"component", "failure_class", "instance_id", "attempt", "elapsed_ms"}},
    {TELEMETRY_FAILURE_OUTBOUND_PROVIDER,
     "failure.outbound_provider",
     NULL,
     "recoverable",
     {"component", "failure_class", "partition", "attempt", "provider_code"}},
    {TELEMETRY_FAILURE_POISON_MESSAGE,
     "failure.poison_message",
     NULL,
     "degraded",
     {"component", "failure_class", "message_id", "reason", "disposition"}},
    {TELEMETRY_FAILURE_POLICY_TIMEOUT,
     "failure.policy_timeout",
     NULL,
     "degraded",
     {"component", "failure_class", "policy_module", "timeout_ms", "fallback"}},
    {TELEMETRY_FAILURE_RESTART_EXHAUSTED,
     "failure.restart_exhausted",
     NULL,
     "fatal",
     {"component", "failure_class", "restart_count", "window_s", "domain"}},
};

enum { CONTRACT_COUNT = sizeof(contract) / sizeof(*contract) };

static void test_names_and_dimensions_of_the_contract(void)
{
    for (size_t i = 0; i < CONTRACT_COUNT; i++) {
        uint64_t required = telemetry_required(contract[i].event);

        TEST_CASE(contract[i].name);
        TEST_CHECK(strcmp(telemetry_event_name(contract[i].event), contract[i].name) == 0);
        if (contract[i].measurement != NULL)
            TEST_CHECK(strcmp(telemetry_measurement_name(contract[i].event), contract[i].measurement) == 0);
        for (size_t j = 0; contract[i].dimensions[j] != NULL; j++) {
            enum telemetry_dimension d = 0;

            while (d < TELEMETRY_DIMENSION_COUNT &&
                   strcmp(telemetry_dimension_name(d), contract[i].dimensions[j]) != 0)
                d++;
            TEST_ASSERT(d < TELEMETRY_DIMENSION_COUNT);
            TEST_CHECK((required >> d & 1) != 0);
            TEST_MSG("%s is not required", contract[i].dimensions[j]);
            required &= ~(UINT64_C(1) << d);
        }
        TEST_CHECK(required == 0);
    }
}

static const char *valid_value(enum telemetry_event event, enum telemetry_dimension dimension)
{
    if (dimension != DIM_FAILURE_CLASS)
        return "v";
    for (size_t i = 0; i < CONTRACT_COUNT; i++)
        if (contract[i].event == event)
            return contract[i].failure_class;
    return "degraded";
}

/* All required dimensions of an event, `without` left out (TELEMETRY_DIMENSION_COUNT: none) or empty. */
static bool emit_without(enum telemetry_event event, enum telemetry_dimension without, bool empty)
{
    struct telemetry_dim dims[TELEMETRY_DIMS_MAX];
    size_t count = 0;

    for (enum telemetry_dimension d = 0; d < TELEMETRY_DIMENSION_COUNT; d++) {
        if ((telemetry_required(event) >> d & 1) == 0 || (d == without && !empty))
            continue;
        dims[count++] =
            (struct telemetry_dim){.dimension = d, .text = d == without ? "" : valid_value(event, d)};
    }
    return telemetry_emit(event, 1, dims, count);
}

/* Every event of the table, and each of its required dimensions missing or empty in turn. */
static void test_an_event_without_a_required_dimension_is_refused(void)
{
    uint64_t refusals = 0;

    begin();
    for (enum telemetry_event event = 0; event < TELEMETRY_EVENT_COUNT; event++) {
        uint64_t before = telemetry_counter_sum(telemetry, event);

        TEST_CASE(telemetry_event_name(event));
        if (event == TELEMETRY_TELEMETRY_REJECTED)
            continue;
        TEST_CHECK(emit_without(event, TELEMETRY_DIMENSION_COUNT, false));
        for (enum telemetry_dimension d = 0; d < TELEMETRY_DIMENSION_COUNT; d++) {
            if ((telemetry_required(event) >> d & 1) == 0)
                continue;
            TEST_CHECK(!emit_without(event, d, false));
            TEST_CHECK(!emit_without(event, d, true));
            refusals += 2;
        }
        TEST_CHECK(telemetry_counter_sum(telemetry, event) == before + 1);
        TEST_CHECK(rejected() == refusals);
    }
    TEST_CHECK(refusals > 0);
    end();
}

static void test_a_refusal_says_what_and_why(void)
{
    struct telemetry_record record;

    begin();
    TEST_CHECK(!TELEMETRY(ACTOR_EXIT, 1, DIM(CLASS, "room"), DIM(REASON, NULL)));
    record = newest();
    TEST_CHECK(record.event == TELEMETRY_TELEMETRY_REJECTED);
    TEST_CHECK(strcmp(telemetry_record_value(&record, DIM_EVENT), "actor.exit") == 0);
    TEST_CHECK(strcmp(telemetry_record_value(&record, DIM_REASON), "missing reason") == 0);
    TEST_CHECK(telemetry_counter_label(telemetry, TELEMETRY_TELEMETRY_REJECTED, "actor.exit") == 1);
    end();
}

static void test_other_refusals(void)
{
    struct telemetry_dim many[TELEMETRY_DIMS_MAX + 1];

    begin();
    TEST_CHECK(!TELEMETRY(ACTOR_START, 1, DIM(CLASS, "a"), DIM(CLASS, "b")));
    TEST_CHECK(!telemetry_emit(TELEMETRY_EVENT_COUNT, 1, &DIM(CLASS, "a"), 1));
    TEST_CHECK(!telemetry_emit(
        TELEMETRY_ACTOR_START, 1,
        (struct telemetry_dim[]){DIM(CLASS, "a"), {.dimension = TELEMETRY_DIMENSION_COUNT}}, 2));
    TEST_CHECK(!telemetry_emit(TELEMETRY_ACTOR_START, 1, NULL, 0));
    for (int i = 0; i <= TELEMETRY_DIMS_MAX; i++)
        many[i] = (struct telemetry_dim){.dimension = (enum telemetry_dimension)i, .text = "a"};
    TEST_CHECK(!telemetry_emit(TELEMETRY_ACTOR_START, 1, many, TELEMETRY_DIMS_MAX + 1));
    TEST_CHECK(!TELEMETRY(INGEST_COMPLETED, -1, DIM(INSTANCE_ID, "i"), DIM(CHANNEL, "c"), DIM(OUTCOME, "o")));
    TEST_CHECK(!TELEMETRY(OUTBOUND_RESULT, 2, DIM(CHANNEL, "c"), DIM(PROVIDER_CODE, "200"),
                          DIM(CLASSIFICATION, "ok")));
    TEST_CHECK(rejected() == 7);
    TEST_CHECK(telemetry_counter_label(telemetry, TELEMETRY_TELEMETRY_REJECTED, "unknown") == 1);
    TEST_CHECK(telemetry_counter_sum(telemetry, TELEMETRY_ACTOR_START) == 0);
    end();
}

static bool emit_failure(enum telemetry_event event, const char *class)
{
    struct telemetry_dim dims[TELEMETRY_DIMS_MAX];
    size_t count = 0;

    for (enum telemetry_dimension d = 0; d < TELEMETRY_DIMENSION_COUNT; d++)
        if (telemetry_required(event) >> d & 1)
            dims[count++] =
                (struct telemetry_dim){.dimension = d, .text = d == DIM_FAILURE_CLASS ? class : "v"};
    return telemetry_emit(event, 1, dims, count);
}

static void test_three_failure_classes_and_each_failure_has_its_own(void)
{
    static const char *const classes[] = {"fatal", "recoverable", "degraded",
                                          "Fatal", "transient",   "unknown"};

    begin();
    TEST_CHECK(FAILURE_CLASS_COUNT == 3);
    for (enum failure_class i = 0; i < FAILURE_CLASS_COUNT; i++)
        TEST_CHECK(strcmp(failure_class_name(i), classes[i]) == 0);
    for (size_t i = 0; i < CONTRACT_COUNT; i++) {
        if (contract[i].failure_class == NULL)
            continue;
        TEST_CASE(contract[i].name);
        for (size_t j = 0; j < sizeof(classes) / sizeof(*classes); j++)
            TEST_CHECK(emit_failure(contract[i].event, classes[j]) ==
                       (strcmp(classes[j], contract[i].failure_class) == 0));
    }
    /* As an extra dimension of another event: any of the three, and nothing else. */
    TEST_CHECK(TELEMETRY(ACTOR_START, 1, DIM(CLASS, "a"), DIM(FAILURE_CLASS, "recoverable")));
    TEST_CHECK(!TELEMETRY(ACTOR_START, 1, DIM(CLASS, "a"), DIM(FAILURE_CLASS, "bad")));
    end();
}

static void test_values_are_copied_formatted_and_bounded(void)
{
    char text[200] = "room";
    struct telemetry_record record;

    begin();
    TEST_CHECK(TELEMETRY(ACTOR_CRASH, 1, DIM(CLASS, text), DIM_INT(PID, INT64_MIN), DIM(SIGNAL, "SIGSEGV"),
                         DIM_HEX(ADDRESS, UINT64_MAX), DIM(TRACE_ID, "")));
    strcpy(text, "gone");
    record = newest();
    TEST_CHECK(record.event == TELEMETRY_ACTOR_CRASH && record.measurement == 1 && record.time == now);
    TEST_CHECK(record.dims == 4);
    TEST_CHECK(strcmp(telemetry_record_value(&record, DIM_CLASS), "room") == 0);
    TEST_CHECK(strcmp(telemetry_record_value(&record, DIM_PID), "-9223372036854775808") == 0);
    TEST_CHECK(strcmp(telemetry_record_value(&record, DIM_SIGNAL), "SIGSEGV") == 0);
    TEST_CHECK(strcmp(telemetry_record_value(&record, DIM_ADDRESS), "0xffffffffffffffff") == 0);
    TEST_CHECK(telemetry_record_value(&record, DIM_TRACE_ID) == NULL);

    for (size_t length = 1; length < sizeof(text); length++) {
        const char *value;

        memset(text, 'x', length);
        text[length] = 0;
        TEST_CHECK(TELEMETRY(ACTOR_START, 1, DIM(CLASS, text)));
        record = newest();
        value = telemetry_record_value(&record, DIM_CLASS);
        if (length <= TELEMETRY_VALUE_MAX) {
            TEST_CHECK(strcmp(value, text) == 0);
        } else {
            TEST_CHECK(strlen(value) == TELEMETRY_VALUE_MAX);
            TEST_CHECK(strncmp(value, text, TELEMETRY_VALUE_MAX - 3) == 0);
            TEST_CHECK(strcmp(value + TELEMETRY_VALUE_MAX - 3, "...") == 0);
        }
    }
    end();
}

static void test_truncation_does_not_split_a_character(void)
{
    char text[TELEMETRY_VALUE_MAX + 4] = "";
    struct telemetry_record record;

    begin();
    memset(text, 'x', TELEMETRY_VALUE_MAX - 4);
    strcat(text, "\xe2\x82\xac.."); /* the euro sign lies across the cut */
    TEST_CHECK(TELEMETRY(ACTOR_START, 1, DIM(CLASS, text)));
    record = newest();
    memcpy(text + TELEMETRY_VALUE_MAX - 4, "...", 4);
    TEST_CHECK(strcmp(telemetry_record_value(&record, DIM_CLASS), text) == 0);
    end();
}

static void test_eight_values_of_full_length_fit(void)
{
    char text[TELEMETRY_VALUE_MAX + 1];
    struct telemetry_dim dims[TELEMETRY_DIMS_MAX];
    struct telemetry_record record;

    begin();
    memset(text, 'y', TELEMETRY_VALUE_MAX);
    text[TELEMETRY_VALUE_MAX] = 0;
    dims[0] = DIM(CLASS, text);
    for (unsigned i = 1; i < TELEMETRY_DIMS_MAX; i++)
        dims[i] = (struct telemetry_dim){.dimension = DIM_REASON + i - 1, .text = text};
    TEST_CHECK(telemetry_emit(TELEMETRY_ACTOR_START, 1, dims, TELEMETRY_DIMS_MAX));
    record = newest();
    TEST_CHECK(record.dims == TELEMETRY_DIMS_MAX && record.text_length == TELEMETRY_TEXT_MAX);
    for (unsigned i = 0; i < TELEMETRY_DIMS_MAX; i++)
        TEST_CHECK(strcmp(telemetry_record_value(&record, dims[i].dimension), text) == 0);
    end();
}

static void test_counters_by_label(void)
{
    begin_with(2);
    for (int i = 0; i < 5; i++)
        TELEMETRY(ACTOR_START, 1, DIM(CLASS, "room"));
    telemetry_shard_enter(telemetry_shard(telemetry, 1));
    for (int i = 0; i < 3; i++)
        TELEMETRY(ACTOR_START, 1, DIM(CLASS, "room"));
    TELEMETRY(ACTOR_START, 1, DIM(CLASS, "agent"));
    TEST_CHECK(telemetry_counter_sum(telemetry, TELEMETRY_ACTOR_START) == 9);
    TEST_CHECK(telemetry_counter_label(telemetry, TELEMETRY_ACTOR_START, "room") == 8);
    TEST_CHECK(telemetry_counter_label(telemetry, TELEMETRY_ACTOR_START, "agent") == 1);
    TEST_CHECK(telemetry_counter_label(telemetry, TELEMETRY_ACTOR_START, "nobody") == 0);
    TEST_CHECK(telemetry_counter_sum(telemetry, TELEMETRY_ACTOR_EXIT) == 0);
    end();
}

static void test_labels_are_bounded(void)
{
    char text[32];

    begin();
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 1000; i++) {
            snprintf(text, sizeof(text), "class-%d", i);
            TEST_CHECK(TELEMETRY(ACTOR_START, 1, DIM(CLASS, text)));
        }
    }
    TEST_CHECK(telemetry_counter_sum(telemetry, TELEMETRY_ACTOR_START) == 2000);
    TEST_CHECK(telemetry_counter_label(telemetry, TELEMETRY_ACTOR_START, "class-0") == 2);
    TEST_CHECK(telemetry_counter_label(telemetry, TELEMETRY_ACTOR_START, "class-62") == 2);
    TEST_CHECK(telemetry_counter_label(telemetry, TELEMETRY_ACTOR_START, "class-63") == 0);
    TEST_CHECK(telemetry_counter_label(telemetry, TELEMETRY_ACTOR_START, "other") ==
               2000 - 2 * (TELEMETRY_LABELS_MAX - 1));
    end();
}

static void test_a_label_that_is_expected(void)
{
    char text[32];

    begin();
    telemetry_counter_expect(TELEMETRY_ACTOR_CRASH, "room");
    TEST_CHECK(telemetry_counter_sum(telemetry, TELEMETRY_ACTOR_CRASH) == 0);
    TEST_CHECK(strstr(metrics(), "coppice_actor_crashes_total{class=\"room\"} 0\n") != NULL);
    telemetry_counter_expect(TELEMETRY_ACTOR_CRASH, "room"); /* once more changes nothing */
    TELEMETRY(ACTOR_CRASH, 1, DIM(CLASS, "room"), DIM_HEX(PID, 1), DIM_INT(SIGNAL, 11), DIM_HEX(ADDRESS, 0));
    telemetry_counter_expect(TELEMETRY_ACTOR_CRASH, "room");
    TEST_CHECK(telemetry_counter_label(telemetry, TELEMETRY_ACTOR_CRASH, "room") == 1);
    for (int i = 0; i < 1000; i++) {
        snprintf(text, sizeof(text), "class-%d", i);
        telemetry_counter_expect(TELEMETRY_ACTOR_CRASH, text);
    }
    TEST_CHECK(strstr(metrics(), "{class=\"class-61\"} 0\n") != NULL);
    TEST_CHECK(strstr(metrics(), "{class=\"class-62\"}") == NULL); /* bounded: "other" */
    end();
    telemetry_counter_expect(TELEMETRY_ACTOR_CRASH, "room"); /* without telemetry */
}

/* A class may be called "other": it shares the place, nothing is counted twice. */
static void test_a_value_called_other(void)
{
    const char *series;

    begin();
    TELEMETRY(ACTOR_START, 1, DIM(CLASS, "other"));
    TEST_CHECK(telemetry_counter_label(telemetry, TELEMETRY_ACTOR_START, "other") == 1);
    TEST_CHECK(telemetry_counter_sum(telemetry, TELEMETRY_ACTOR_START) == 1);
    series = strstr(metrics(), "coppice_actor_starts_total{");
    TEST_ASSERT(series != NULL);
    TEST_CHECK(strncmp(series, "coppice_actor_starts_total{class=\"other\"} 1\n", 44) == 0);
    TEST_CHECK(strstr(series + 1, "coppice_actor_starts_total{") == NULL);
    end();
}

static struct histogram merged;

static void test_histograms_merge_over_shards(void)
{
    begin_with(2);
    histogram_clear(&merged);
    for (int i = 1; i <= 100; i++) {
        telemetry_shard_enter(telemetry_shard(telemetry, (uint32_t)i % 2));
        TELEMETRY(INGEST_COMPLETED, i, DIM(INSTANCE_ID, "i"), DIM(CHANNEL, "c"), DIM(OUTCOME, "o"));
    }
    TEST_CHECK(telemetry_histogram_merge(telemetry, TELEMETRY_INGEST_COMPLETED, &merged));
    TEST_CHECK(histogram_count(&merged) == 100);
    TEST_CHECK(histogram_percentile(&merged, 9500) == 95);
    TEST_CHECK(!telemetry_histogram_merge(telemetry, TELEMETRY_ACTOR_START, &merged));
    end();
}

struct walk {
    uint64_t measurements[4096];
    uint64_t sequences[4096];
    size_t count, stop_at;
};

static struct walk walk;

static bool walk_step(void *context, const struct telemetry_record *record)
{
    struct walk *w = context;

    w->sequences[w->count] = record->sequence;
    w->measurements[w->count++] = (uint64_t)record->measurement;
    return w->count != w->stop_at;
}

static void emit_number(int64_t number)
{
    TEST_CHECK(TELEMETRY(ACTOR_START, number, DIM(CLASS, "room")));
}

static void test_the_ring_keeps_the_newest(void)
{
    begin();
    for (int64_t i = 0; i < 3 * TELEMETRY_RING_SIZE + 7; i++)
        emit_number(i);
    walk = (struct walk){.count = 0};
    TEST_CHECK(telemetry_recent(telemetry, 0, walk_step, &walk) == TELEMETRY_RING_SIZE);
    for (size_t i = 0; i < walk.count; i++)
        TEST_CHECK(walk.measurements[i] == 2 * TELEMETRY_RING_SIZE + 7 + i);
    end();
}

static void test_records_come_in_global_order(void)
{
    begin_with(3);
    for (int64_t i = 0; i < 300; i++) {
        telemetry_shard_enter(telemetry_shard(telemetry, (uint32_t)(i * 7 % 3)));
        now += (uint64_t)(i % 4 == 0);
        emit_number(i);
    }
    telemetry_shard_enter(NULL);
    emit_number(300);
    walk = (struct walk){.count = 0};
    TEST_CHECK(telemetry_recent(telemetry, 0, walk_step, &walk) == 301);
    for (size_t i = 0; i < walk.count; i++)
        TEST_CHECK(walk.measurements[i] == i && walk.sequences[i] == i + 1);
    end();
}

/* Each scheduler has the time of its own turn: what one keeps after another has the older stamp. */
static void test_nothing_comes_before_what_was_read(void)
{
    uint64_t after = 0;

    begin_with(2);
    for (int64_t i = 0; i < 100; i++) {
        bool late = i % 2 != 0;

        telemetry_shard_enter(telemetry_shard(telemetry, late));
        now = 1000 * S + (uint64_t)i * 1000 - (late ? 5 * (uint64_t)MS : 0);
        emit_number(i);
        walk = (struct walk){.count = 0};
        TEST_CHECK(telemetry_recent(telemetry, after, walk_step, &walk) == 1);
        TEST_CHECK(walk.measurements[0] == (uint64_t)i);
        after = walk.sequences[0];
    }
    end();
}

/* One that is held up while it keeps a record: here in its look at the wall clock. */
static struct held {
    bool armed;
    uint64_t kept;
    size_t visible;
} held;

static uint64_t wall_held(void *context)
{
    uint64_t at = *(uint64_t *)context;

    if (!held.armed)
        return at;
    held.armed = false;
    struct telemetry_shard *slow = telemetry_shard_enter(telemetry_shard(telemetry, 1));
    emit_number(2);
    emit_number(3);
    walk = (struct walk){.count = 0};
    held.kept = telemetry_kept(telemetry);
    held.visible = telemetry_recent(telemetry, 0, walk_step, &walk);
    telemetry_shard_enter(slow);
    return at;
}

static void test_nobody_passes_one_that_is_held_up(void)
{
    now = 1000 * S;
    telemetry = telemetry_create(
        &(struct telemetry_options){.shards = 2, .now = clock_read, .wall = wall_held, .context = &now});
    TEST_ASSERT(telemetry != NULL);
    telemetry_install(telemetry);
    telemetry_shard_enter(telemetry_shard(telemetry, 0));
    emit_number(0);
    now += 10 * S; /* it is asked again */
    held = (struct held){.armed = true};
    emit_number(1);
    TEST_CHECK(!held.armed && held.kept == 1 && held.visible == 1);
    walk = (struct walk){.count = 0};
    TEST_CHECK(telemetry_kept(telemetry) == 4);
    TEST_CHECK(telemetry_recent(telemetry, 1, walk_step, &walk) == 3);
    for (size_t i = 0; i < 3; i++)
        TEST_CHECK(walk.measurements[i] == i + 1);
    end();
}

enum { RACE_WRITERS = 3, RACE_EACH = 200 };

static void *race_write(void *arg)
{
    uint32_t shard = (uint32_t)(uintptr_t)arg;

    telemetry_shard_enter(telemetry_shard(telemetry, shard));
    for (int64_t i = 0; i < RACE_EACH; i++)
        TELEMETRY(ACTOR_START, shard * RACE_EACH + i, DIM(CLASS, "room"));
    telemetry_shard_enter(NULL);
    return NULL;
}

/* Whoever reads along sees each record once, those of one writer in their order, and no number is left out. */
static void test_reading_along_is_exact(void)
{
    uint64_t after = 0, next[RACE_WRITERS] = {0};
    pthread_t threads[RACE_WRITERS];

    begin_with(RACE_WRITERS);
    for (uintptr_t i = 0; i < RACE_WRITERS; i++)
        TEST_ASSERT(pthread_create(&threads[i], NULL, race_write, (void *)i) == 0);
    while (after < RACE_WRITERS * RACE_EACH) {
        walk = (struct walk){.stop_at = 1 + after % 7};
        telemetry_recent(telemetry, after, walk_step, &walk);
        for (size_t i = 0; i < walk.count; i++) {
            uint64_t writer = walk.measurements[i] / RACE_EACH;

            TEST_ASSERT(walk.sequences[i] == ++after);
            TEST_ASSERT(walk.measurements[i] == writer * RACE_EACH + next[writer]++);
        }
    }
    for (uint32_t i = 0; i < RACE_WRITERS; i++)
        pthread_join(threads[i], NULL);
    end();
}

static void test_reading_goes_on_behind_a_position(void)
{
    uint64_t after;

    begin_with(2);
    for (int64_t i = 0; i < 100; i++) {
        telemetry_shard_enter(telemetry_shard(telemetry, (uint32_t)(i / 3 % 2)));
        now += (uint64_t)(i % 5 == 0);
        emit_number(i);
    }
    walk = (struct walk){.count = 0};
    telemetry_recent(telemetry, 0, walk_step, &walk);
    for (size_t stop = 1; stop < 100; stop++) {
        static struct walk rest;

        rest = (struct walk){.count = 0};
        after = walk.sequences[stop - 1];
        TEST_CHECK(telemetry_recent(telemetry, after, walk_step, &rest) == 100 - stop);
        TEST_CHECK(memcmp(rest.measurements, walk.measurements + stop, (100 - stop) * sizeof(uint64_t)) == 0);
    }
    walk = (struct walk){.stop_at = 7};
    TEST_CHECK(telemetry_recent(telemetry, 0, walk_step, &walk) == 7);
    end();
}

struct seen {
    unsigned count;
    enum telemetry_event last;
};

static void see(void *context, const struct telemetry_record *record)
{
    struct seen *seen = context;

    seen->count++;
    seen->last = record->event;
}

static void test_subscribers_get_what_their_filter_names(void)
{
    struct seen all = {0}, starts = {0};
    struct telemetry_filter filter = {{0}};
    int handle;

    begin();
    telemetry_filter_add(&filter, TELEMETRY_ACTOR_START);
    handle = telemetry_subscribe(telemetry, NULL, see, &all);
    TEST_CHECK(telemetry_subscribe(telemetry, &filter, see, &starts) >= 0);
    TELEMETRY(ACTOR_START, 1, DIM(CLASS, "room"));
    TELEMETRY(ACTOR_EXIT, 1, DIM(CLASS, "room"), DIM(REASON, "normal"));
    TEST_CHECK(all.count == 2 && all.last == TELEMETRY_ACTOR_EXIT);
    TEST_CHECK(starts.count == 1 && starts.last == TELEMETRY_ACTOR_START);
    telemetry_unsubscribe(telemetry, handle);
    TELEMETRY(ACTOR_START, 1, DIM(CLASS, "room"));
    TEST_CHECK(all.count == 2 && starts.count == 2);
    TELEMETRY(ACTOR_START, 1);
    TEST_CHECK(starts.count == 2);
    end();
}

static void test_subscribers_are_bounded_and_places_come_back(void)
{
    struct seen seen[TELEMETRY_SUBSCRIBERS_MAX] = {{0}};
    int handles[TELEMETRY_SUBSCRIBERS_MAX];

    begin();
    for (int i = 0; i < TELEMETRY_SUBSCRIBERS_MAX; i++) {
        handles[i] = telemetry_subscribe(telemetry, NULL, see, &seen[i]);
        TEST_CHECK(handles[i] >= 0);
    }
    TEST_CHECK(telemetry_subscribe(telemetry, NULL, see, &seen[0]) == -1);
    telemetry_unsubscribe(telemetry, handles[3]);
    TEST_CHECK(telemetry_subscribe(telemetry, NULL, see, &seen[3]) >= 0);
    TELEMETRY(ACTOR_START, 1, DIM(CLASS, "room"));
    for (int i = 0; i < TELEMETRY_SUBSCRIBERS_MAX; i++)
        TEST_CHECK(seen[i].count == 1);
    end();
}

static void see_and_emit(void *context, const struct telemetry_record *record)
{
    see(context, record);
    TELEMETRY(MESSAGE_UNKNOWN, 1, DIM(CLASS, "subscriber"));
}

static void test_what_a_subscriber_emits_is_not_given_to_subscribers(void)
{
    struct seen seen = {0};

    begin();
    telemetry_subscribe(telemetry, NULL, see_and_emit, &seen);
    TELEMETRY(ACTOR_START, 1, DIM(CLASS, "room"));
    TEST_CHECK(seen.count == 1);
    TEST_CHECK(telemetry_counter_sum(telemetry, TELEMETRY_MESSAGE_UNKNOWN) == 1);
    TEST_CHECK(newest().event == TELEMETRY_MESSAGE_UNKNOWN);
    TELEMETRY(ACTOR_START, 1, DIM(CLASS, "room"));
    TEST_CHECK(seen.count == 2);
    end();
}

static void test_gauges(void)
{
    char text[32];
    _Atomic int64_t *cell;

    begin();
    telemetry_gauge_set(TELEMETRY_GAUGE_ACTORS, "room", 5);
    telemetry_gauge_add(TELEMETRY_GAUGE_ACTORS, "room", -7);
    TEST_CHECK(telemetry_gauge_get(TELEMETRY_GAUGE_ACTORS, "room") == -2);
    TEST_CHECK(telemetry_gauge_get(TELEMETRY_GAUGE_ACTORS, "agent") == 0);
    TEST_CHECK(telemetry_gauge_get(TELEMETRY_GAUGE_MAILBOX_MESSAGES, "room") == 0);
    cell = telemetry_gauge_cell(TELEMETRY_GAUGE_ACTORS, "room");
    TEST_ASSERT(cell != NULL);
    atomic_store(cell, 9);
    for (int i = 0; i < 1000; i++) {
        snprintf(text, sizeof(text), "kind-%d", i);
        telemetry_gauge_add(TELEMETRY_GAUGE_ACTORS, text, 1);
    }
    TEST_CHECK(telemetry_gauge_get(TELEMETRY_GAUGE_ACTORS, "room") == 9);
    /* "other" is one place, "room" and "agent" have theirs. */
    TEST_CHECK(telemetry_gauge_get(TELEMETRY_GAUGE_ACTORS, "other") == 1000 - (TELEMETRY_LABELS_MAX - 3));
    end();
}

static void test_without_telemetry_nothing_happens(void)
{
    TEST_CHECK(!TELEMETRY(ACTOR_START, 1, DIM(CLASS, "room")));
    telemetry_gauge_add(TELEMETRY_GAUGE_ACTORS, "room", 1);
    TEST_CHECK(telemetry_gauge_get(TELEMETRY_GAUGE_ACTORS, "room") == 0);
    telemetry_destroy(NULL);
}

static void test_creation_refuses_what_cannot_be(void)
{
    struct telemetry_options options = {.shards = 0, .now = clock_read, .context = &now};

    TEST_CHECK(telemetry_create(&options) == NULL);
    options.shards = TELEMETRY_SHARDS_MAX + 1;
    TEST_CHECK(telemetry_create(&options) == NULL);
    options.shards = 1;
    options.slo[TELEMETRY_SLO_INGEST_LATENCY] =
        (struct telemetry_threshold){.warn = 75 * MS, .critical = 100 * MS + 1};
    TEST_CHECK(telemetry_create(&options) == NULL);
}

static void ingest(int64_t latency)
{
    TELEMETRY(INGEST_COMPLETED, latency, DIM(INSTANCE_ID, "i"), DIM(CHANNEL, "c"), DIM(OUTCOME, "o"));
}

static struct telemetry_slo_state slo(enum telemetry_slo row)
{
    struct telemetry_slo_state state;

    telemetry_slo_read(telemetry, row, now, &state);
    return state;
}

static void emit_latency(enum telemetry_slo row, int64_t latency)
{
    switch (row) {
    case TELEMETRY_SLO_INGEST_LATENCY:
        ingest(latency);
        break;
    case TELEMETRY_SLO_OUTBOUND_ENQUEUE:
        TELEMETRY(OUTBOUND_ENQUEUED, latency, DIM(INSTANCE_ID, "i"), DIM(PARTITION, "0"),
                  DIM(OPERATION, "send"));
        break;
    default:
        TELEMETRY(INSTANCE_CONNECTED, latency, DIM(INSTANCE_ID, "i"), DIM_INT(ATTEMPTS, 1),
                  DIM(REASON, "timeout"));
        break;
    }
}

/* p95 at, and one nanosecond above, each threshold; "> 75ms" does not hold for 75 ms. */
static void test_latency_levels_are_exact_at_their_thresholds(void)
{
    static const struct {
        enum telemetry_slo row;
        int64_t warn, critical;
    } rows[] = {
        {TELEMETRY_SLO_INGEST_LATENCY, 75 * MS, 100 * MS},
        {TELEMETRY_SLO_OUTBOUND_ENQUEUE, 40 * MS, 50 * MS},
        {TELEMETRY_SLO_RECONNECT_MTTR, 30000 * MS, 60000 * MS},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const struct {
            int64_t latency;
            enum slo_level level;
        } cases[] = {
            {rows[i].warn, SLO_OK},
            {rows[i].warn + 1, SLO_WARN},
            {rows[i].critical, SLO_WARN},
            {rows[i].critical + 1, SLO_CRITICAL},
        };

        TEST_CASE(telemetry_slo_name(rows[i].row));
        for (size_t j = 0; j < 4; j++) {
            struct telemetry_slo_state state;

            begin();
            /* The 95th of 100 is the latency in question; five slow ones do not count, ninety-four fast ones
             * neither. */
            for (int k = 0; k < 100; k++)
                emit_latency(rows[i].row, k < 94 ? 1000 : k == 94 ? cases[j].latency : 1000 * 60000 * MS);
            state = slo(rows[i].row);
            TEST_CHECK(state.level == cases[j].level);
            TEST_MSG("case %zu: %s, value %ld", j, slo_level_name(state.level), (long)state.value);
            TEST_CHECK(!state.insufficient && state.samples == 100);
            TEST_CHECK(state.value >= cases[j].latency &&
                       state.value - cases[j].latency <= cases[j].latency / 15);
            TEST_CHECK((state.value > rows[i].warn) == (cases[j].level >= SLO_WARN));
            TEST_CHECK((state.value > rows[i].critical) == (cases[j].level == SLO_CRITICAL));
            end();
        }
    }
}

static void results(unsigned good, unsigned bad)
{
    for (unsigned i = 0; i < good + bad; i++)
        TELEMETRY(OUTBOUND_RESULT, i < good, DIM(CHANNEL, "http"),
                  DIM_INT(PROVIDER_CODE, i < good ? 200 : 500),
                  DIM(CLASSIFICATION, i < good ? "delivered" : "failed"));
}

/* 3 failures of 1,000 are 99.7 %, which is not below it; 5 are 99.5 %. */
static void test_delivery_ratio_levels(void)
{
    static const struct {
        unsigned failed;
        enum slo_level level;
    } cases[] = {{0, SLO_OK},   {3, SLO_OK},       {4, SLO_WARN},
                 {5, SLO_WARN}, {6, SLO_CRITICAL}, {1000, SLO_CRITICAL}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct telemetry_slo_state state;

        begin();
        results(1000 - cases[i].failed, cases[i].failed);
        state = slo(TELEMETRY_SLO_DELIVERY_SUCCESS);
        TEST_CHECK(state.level == cases[i].level);
        TEST_MSG("%u failed: %s", cases[i].failed, slo_level_name(state.level));
        TEST_CHECK(state.value == 1000000 - 1000 * (int64_t)cases[i].failed);
        now += TELEMETRY_SLO_WINDOW_NS;
        state = slo(TELEMETRY_SLO_DELIVERY_SUCCESS);
        TEST_CHECK(state.level == SLO_OK && state.insufficient && state.samples == 0 &&
                   state.value == 1000000);
        end();
    }
}

/* AMB-T-17: at least 20 samples, else ok and insufficient. */
static void test_too_few_samples_are_insufficient(void)
{
    struct telemetry_slo_state state;

    begin();
    state = slo(TELEMETRY_SLO_INGEST_LATENCY);
    TEST_CHECK(state.level == SLO_OK && state.insufficient && state.samples == 0 && state.value == 0);
    for (int i = 0; i < 19; i++)
        ingest(200 * MS);
    state = slo(TELEMETRY_SLO_INGEST_LATENCY);
    TEST_CHECK(state.level == SLO_OK && state.insufficient && state.samples == 19);
    ingest(200 * MS);
    state = slo(TELEMETRY_SLO_INGEST_LATENCY);
    TEST_CHECK(state.level == SLO_CRITICAL && !state.insufficient && state.samples == 20);
    end();
}

/* A sample counts for at least 290 s and never for 300 s or more, wherever in its ten seconds it fell. */
static void test_the_window_slides(void)
{
    for (uint64_t offset = 0; offset < 10; offset++) {
        begin();
        now += offset * S;
        for (int i = 0; i < 20; i++)
            ingest(200 * MS);
        now += 290 * S;
        TEST_CHECK(slo(TELEMETRY_SLO_INGEST_LATENCY).level == SLO_CRITICAL);
        now += 10 * S;
        TEST_CHECK(slo(TELEMETRY_SLO_INGEST_LATENCY).samples == 0);
        end();
    }
}

/* Old samples leave one by one: the window never holds more than its five minutes, over an hour and over
 * every shard. */
static void test_the_window_over_an_hour(void)
{
    begin_with(2);
    for (int i = 0; i < 3600; i++) {
        telemetry_shard_enter(telemetry_shard(telemetry, (uint32_t)i % 2));
        ingest(1 * MS);
        if (i >= 300) {
            uint64_t samples = slo(TELEMETRY_SLO_INGEST_LATENCY).samples;

            TEST_CHECK(samples > 290 && samples <= 300);
            TEST_MSG("second %d: %lu samples", i, (unsigned long)samples);
        }
        now += S;
    }
    end();
}

/* A shard that was silent for hours and then speaks does not bring its old slices back. */
static void test_old_slices_do_not_come_back(void)
{
    begin();
    for (int i = 0; i < 20; i++)
        ingest(200 * MS);
    now += 320 * S; /* the same place in the ring of slices */
    ingest(1 * MS);
    TEST_CHECK(slo(TELEMETRY_SLO_INGEST_LATENCY).samples == 1);
    now += 100000 * S;
    TEST_CHECK(slo(TELEMETRY_SLO_INGEST_LATENCY).samples == 0);
    end();
}

static void escalation(int64_t cascade)
{
    TELEMETRY(SUPERVISOR_ESCALATION, cascade, DIM(DOMAIN, "rooms"), DIM(SOURCE_CHILD, "room:1"),
              DIM_INT(RESTART_COUNT, 21));
}

static void test_one_cascade_is_critical(void)
{
    begin();
    escalation(0);
    TEST_CHECK(slo(TELEMETRY_SLO_CASCADE_COUNT).level == SLO_OK);
    TEST_CHECK(slo(TELEMETRY_SLO_CASCADE_COUNT).value == 0);
    escalation(1);
    TEST_CHECK(slo(TELEMETRY_SLO_CASCADE_COUNT).level == SLO_CRITICAL);
    TEST_CHECK(!slo(TELEMETRY_SLO_CASCADE_COUNT).insufficient);
    TEST_CHECK(slo(TELEMETRY_SLO_CASCADE_COUNT).value == 1);
    now += TELEMETRY_SLO_WINDOW_NS;
    TEST_CHECK(slo(TELEMETRY_SLO_CASCADE_COUNT).level == SLO_OK);
    end();
}

static bool accepts(enum telemetry_slo row, int64_t warn, int64_t critical)
{
    return telemetry_slo_accepts(row, (struct telemetry_threshold){.warn = warn, .critical = critical});
}

static void test_thresholds_may_be_stricter_never_looser(void)
{
    TEST_CHECK(accepts(TELEMETRY_SLO_INGEST_LATENCY, 75 * MS, 100 * MS));
    TEST_CHECK(accepts(TELEMETRY_SLO_INGEST_LATENCY, 10 * MS, 20 * MS));
    TEST_CHECK(!accepts(TELEMETRY_SLO_INGEST_LATENCY, 76 * MS, 100 * MS));
    TEST_CHECK(!accepts(TELEMETRY_SLO_INGEST_LATENCY, 75 * MS, 101 * MS));
    TEST_CHECK(!accepts(TELEMETRY_SLO_INGEST_LATENCY, 50 * MS, 40 * MS));
    TEST_CHECK(!accepts(TELEMETRY_SLO_INGEST_LATENCY, 0, 100 * MS));
    TEST_CHECK(accepts(TELEMETRY_SLO_DELIVERY_SUCCESS, 999000, 998000));
    TEST_CHECK(!accepts(TELEMETRY_SLO_DELIVERY_SUCCESS, 996999, 995000));
    TEST_CHECK(!accepts(TELEMETRY_SLO_DELIVERY_SUCCESS, 997000, 994999));
    TEST_CHECK(!accepts(TELEMETRY_SLO_DELIVERY_SUCCESS, 1000001, 995000));
    TEST_CHECK(!accepts(TELEMETRY_SLO_DELIVERY_SUCCESS, 997000, 998000));
    TEST_CHECK(accepts(TELEMETRY_SLO_CASCADE_COUNT, 0, 1));
    TEST_CHECK(!accepts(TELEMETRY_SLO_CASCADE_COUNT, 0, 2));
}

static void test_stricter_thresholds_are_in_force(void)
{
    struct telemetry_options options = {.shards = 1, .now = clock_read, .context = &now};

    options.slo[TELEMETRY_SLO_INGEST_LATENCY] =
        (struct telemetry_threshold){.warn = 10 * MS, .critical = 20 * MS};
    telemetry = telemetry_create(&options);
    TEST_ASSERT(telemetry != NULL);
    telemetry_shard_enter(telemetry_shard(telemetry, 0));
    for (int i = 0; i < 20; i++)
        ingest(15 * MS);
    TEST_CHECK(slo(TELEMETRY_SLO_INGEST_LATENCY).level == SLO_WARN);
    end();
}

#define HAS_LINE(text, line) TEST_CHECK_(strstr((text), "\n" line "\n") != NULL, "%s", line)

static void test_metrics_start_at_zero_with_help_and_type(void)
{
    const char *text;

    begin();
    text = metrics();
    HAS_LINE(text, "# HELP coppice_actor_exits_total Actors ended, for whatever reason.");
    HAS_LINE(text, "# TYPE coppice_actor_exits_total counter");
    HAS_LINE(text, "coppice_actor_exits_total{reason=\"normal\"} 0");
    HAS_LINE(text, "coppice_actor_exits_total{reason=\"other\"} 0");
    HAS_LINE(text, "coppice_actor_crashes_total{class=\"other\"} 0");
    HAS_LINE(text, "coppice_pressure_transitions_total{pressure_level=\"shed\"} 0");
    HAS_LINE(text, "# TYPE coppice_ingest_latency_seconds histogram");
    HAS_LINE(text, "coppice_ingest_latency_seconds_bucket{le=\"+Inf\"} 0");
    HAS_LINE(text, "coppice_ingest_latency_seconds_sum 0");
    HAS_LINE(text, "coppice_slo_level{slo=\"delivery_success_ratio\"} 0");
    HAS_LINE(text, "coppice_slo_insufficient{slo=\"ingest_latency_ms\"} 1");
    HAS_LINE(text, "coppice_slo_ratio{slo=\"delivery_success_ratio\"} 1");
    TEST_CHECK(text[strlen(text) - 1] == '\n');
    end();
}

static void test_metrics_show_what_happened(void)
{
    const char *text;

    begin();
    TELEMETRY(ACTOR_CRASH, 1, DIM(CLASS, "room"), DIM_INT(PID, 7), DIM(SIGNAL, "SIGSEGV"),
              DIM_HEX(ADDRESS, 0));
    TELEMETRY(ACTOR_CRASH, 1, DIM(CLASS, "a\\b\"c\nd\x01\xff\xc3\xa9"), DIM_INT(PID, 7),
              DIM(SIGNAL, "SIGBUS"), DIM_HEX(ADDRESS, 0));
    telemetry_gauge_set(TELEMETRY_GAUGE_ACTORS, "room", -3);
    for (int i = 0; i < 20; i++)
        ingest(80 * MS);
    text = metrics();
    HAS_LINE(text, "coppice_actor_crashes_total{class=\"room\"} 1");
    HAS_LINE(text, "coppice_actor_crashes_total{class=\"a\\\\b\\\"c\\nd\?\?\xc3\xa9\"} 1");
    HAS_LINE(text, "coppice_actors{kind=\"room\"} -3");
    HAS_LINE(text, "coppice_ingest_latency_seconds_bucket{le=\"0.075\"} 0");
    HAS_LINE(text, "coppice_ingest_latency_seconds_bucket{le=\"0.1\"} 20");
    HAS_LINE(text, "coppice_ingest_latency_seconds_bucket{le=\"120\"} 20");
    HAS_LINE(text, "coppice_ingest_latency_seconds_sum 1.6");
    HAS_LINE(text, "coppice_ingest_latency_seconds_count 20");
    HAS_LINE(text, "coppice_slo_level{slo=\"ingest_latency_ms\"} 1");
    HAS_LINE(text, "coppice_slo_samples{slo=\"ingest_latency_ms\"} 20");
    end();
}

/* Each line is a comment or `name{label="value"} number`; each series has its HELP and TYPE before it, once.
 */
static void test_every_metrics_line_is_well_formed(void)
{
    char name[128] = "";

    begin();
    for (const char *line = metrics(); *line != 0; line = strchr(line, '\n') + 1) {
        char found[128], rest[256];

        TEST_ASSERT(strchr(line, '\n') != NULL);
        if (sscanf(line, "# HELP %127s %255[^\n]", found, rest) == 2) {
            snprintf(name, sizeof(name), "%s", found);
            TEST_CHECK(strncmp(name, "coppice_", 8) == 0);
            TEST_CHECK(strstr(name, "_ms") == NULL);
            continue;
        }
        if (sscanf(line, "# TYPE %127s %255[^\n]", found, rest) == 2) {
            size_t length = strlen(found);

            TEST_CHECK(strcmp(found, name) == 0);
            TEST_CHECK((strcmp(rest, "counter") == 0) == (strcmp(found + length - 6, "_total") == 0));
            TEST_MSG("%s", found);
            continue;
        }
        TEST_CHECK(strncmp(line, name, strlen(name)) == 0);
        TEST_MSG("%.100s does not belong to %s", line, name);
        TEST_CHECK(sscanf(line, "%*[^{ ]%255[^\n]", rest) == 1);
        TEST_CHECK(strtod(strrchr(rest, ' ') + 1, NULL) >= 0);
    }
    end();
}

static void test_a_record_as_json(void)
{
    static const char expected[] =
        "{\"at\":\"then\",\"event\":\"ingest.completed\",\"sequence\":\"000000e8d4a51000-1\","
        "\"measurement\":{\"ingest_"
        "latency_ms\":75.9},"
        "\"dimensions\":{\"instance_id\":\"i-1\",\"channel\":\"http\",\"outcome\":\"a \\\"b\\\"\\n\"}}";
    struct telemetry_record record;
    struct json_sink sink;
    struct json json;

    begin();
    TELEMETRY(INGEST_COMPLETED, 75900000, DIM(INSTANCE_ID, "i-1"), DIM(CHANNEL, "http"),
              DIM(OUTCOME, "a \"b\"\n"));
    record = newest();
    json_sink_init(&sink, text_out, sizeof(text_out), NULL, NULL);
    json_init(&json, &sink);
    telemetry_record_write(telemetry, &record, "then", &json);
    TEST_CHECK(json_end(&json) == JSON_OK);
    TEST_CHECK(sink.length == sizeof(expected) - 1 && memcmp(text_out, expected, sink.length) == 0);
    TEST_MSG("%.*s", (int)sink.length, text_out);
    end();
}

enum { THREADS = 3, EMISSIONS = 20000 };

static uint64_t clock_still(void *unused)
{
    (void)unused;
    return 1;
}

static _Atomic unsigned finished;

/* Every record says the same thing three times: a mixture of two shows. */
static void *emit_many(void *shard)
{
    telemetry_shard_enter(shard);
    for (int64_t i = 0; i < EMISSIONS; i++) {
        char text[TELEMETRY_VALUE_MAX + 1];

        memset(text, (int)('a' + i % 26), (size_t)(1 + i % 50));
        text[1 + i % 50] = 0;
        TELEMETRY(ACTOR_EXIT, i, DIM(CLASS, text), DIM(REASON, "normal"), DIM_INT(ATTEMPT, i));
        TELEMETRY(INGEST_COMPLETED, i, DIM(INSTANCE_ID, "i"), DIM(CHANNEL, "c"), DIM(OUTCOME, "o"));
    }
    telemetry_shard_enter(NULL);
    atomic_fetch_add(&finished, 1);
    return NULL;
}

static bool check_whole(void *context, const struct telemetry_record *record)
{
    (void)context;
    if (record->event == TELEMETRY_ACTOR_EXIT) {
        int64_t i = record->measurement;
        const char *text = telemetry_record_value(record, DIM_CLASS);

        TEST_ASSERT(text != NULL && telemetry_record_value(record, DIM_ATTEMPT) != NULL);
        TEST_CHECK(atoll(telemetry_record_value(record, DIM_ATTEMPT)) == i);
        TEST_CHECK(strlen(text) == (size_t)(1 + i % 50));
        TEST_CHECK(strspn(text, (char[]){(char)('a' + i % 26), 0}) == strlen(text));
    }
    return true;
}

/* Writers on their shards, two foreign threads on the shared one, and a reader of everything. Nothing is
 * lost, nothing is torn; data races show under TSan. */
static void test_readers_beside_writers(void)
{
    pthread_t threads[THREADS + 2];
    uint64_t emissions = (THREADS + 2) * EMISSIONS;

    telemetry = telemetry_create(&(struct telemetry_options){.shards = THREADS, .now = clock_still});
    TEST_ASSERT(telemetry != NULL);
    telemetry_install(telemetry);
    atomic_store(&finished, 0);
    for (uint32_t i = 0; i < THREADS + 2; i++)
        TEST_ASSERT(pthread_create(&threads[i], NULL, emit_many,
                                   i < THREADS ? telemetry_shard(telemetry, i) : NULL) == 0);
    while (atomic_load(&finished) < THREADS + 2) {
        struct telemetry_slo_state state;

        telemetry_recent(telemetry, 0, check_whole, NULL);
        telemetry_slo_read(telemetry, TELEMETRY_SLO_INGEST_LATENCY, 1, &state);
        TEST_CHECK(state.samples <= emissions && state.level == SLO_OK);
        metrics();
    }
    for (uint32_t i = 0; i < THREADS + 2; i++)
        pthread_join(threads[i], NULL);
    TEST_CHECK(telemetry_counter_label(telemetry, TELEMETRY_ACTOR_EXIT, "normal") == emissions);
    TEST_CHECK(telemetry_recent(telemetry, 0, check_whole, NULL) == (THREADS + 1) * TELEMETRY_RING_SIZE);
    end();
}

static _Atomic int inside, inside_max;

/* Called while the shard is being written: gives others every chance to come in as well. */
static uint64_t clock_crowded(void *unused)
{
    int others = atomic_fetch_add(&inside, 1);

    (void)unused;
    if (others > atomic_load(&inside_max))
        atomic_store(&inside_max, others);
    for (int i = 0; i < 3; i++)
        sched_yield();
    atomic_fetch_sub(&inside, 1);
    return 1;
}

static void *emit_some(void *unused)
{
    (void)unused;
    for (int i = 0; i < 200; i++)
        TELEMETRY(ACTOR_START, 1, DIM(CLASS, "room"));
    return NULL;
}

static void test_foreign_threads_write_the_shared_shard_one_at_a_time(void)
{
    pthread_t threads[4];

    telemetry = telemetry_create(&(struct telemetry_options){.shards = 1, .now = clock_crowded});
    TEST_ASSERT(telemetry != NULL);
    telemetry_install(telemetry);
    for (int i = 0; i < 4; i++)
        TEST_ASSERT(pthread_create(&threads[i], NULL, emit_some, NULL) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    TEST_CHECK(atomic_load(&inside_max) == 0);
    TEST_CHECK(telemetry_counter_sum(telemetry, TELEMETRY_ACTOR_START) == 800);
    end();
}

static bool check_first_few(void *context, const struct telemetry_record *record)
{
    return check_whole(context, record) && record->n % 4 != 0;
}

/* The oldest records are those which the writer overwrites next. */
static void test_the_oldest_records_are_whole_while_they_are_overwritten(void)
{
    pthread_t thread;

    telemetry = telemetry_create(&(struct telemetry_options){.shards = 1, .now = clock_still});
    TEST_ASSERT(telemetry != NULL);
    for (int i = 0; i < 5; i++) {
        atomic_store(&finished, 0);
        TEST_ASSERT(pthread_create(&thread, NULL, emit_many, telemetry_shard(telemetry, 0)) == 0);
        while (atomic_load(&finished) == 0)
            telemetry_recent(telemetry, 0, check_first_few, NULL);
        pthread_join(thread, NULL);
    }
    telemetry_destroy(telemetry);
}

/* Overwrites the whole ring when it has seen the first record. */
static bool overwrite(void *context, const struct telemetry_record *record)
{
    uint64_t *last = context;

    if (*last == UINT64_MAX)
        for (int64_t i = 0; i < TELEMETRY_RING_SIZE; i++)
            emit_number(1000000);
    TEST_CHECK(record->measurement != 1000000);
    *last = record->n;
    return true;
}

static void test_what_is_overwritten_during_the_walk_is_left_out(void)
{
    uint64_t last = UINT64_MAX;

    begin();
    for (int64_t i = 0; i < 10; i++)
        emit_number(i);
    TEST_CHECK(telemetry_recent(telemetry, 0, overwrite, &last) == 1);
    TEST_CHECK(last == 0);
    end();
}

struct guest {
    _Atomic unsigned calls;
    _Atomic bool staying, asked_to_leave, unsubscribed, left_in_time;
    int handle;
};

/* The first call stays inside until it is asked to leave. */
static void visit_guest(void *context, const struct telemetry_record *record)
{
    struct guest *guest = context;

    (void)record;
    if (atomic_fetch_add(&guest->calls, 1) > 0)
        return;
    atomic_store(&guest->staying, true);
    while (!atomic_load(&guest->asked_to_leave))
        sched_yield();
    atomic_store(&guest->left_in_time, !atomic_load(&guest->unsubscribed));
}

static void *emit_one(void *unused)
{
    (void)unused;
    TELEMETRY(ACTOR_START, 1, DIM(CLASS, "room"));
    return NULL;
}

static void *unsubscribe(void *context)
{
    struct guest *guest = context;

    telemetry_unsubscribe(telemetry, guest->handle);
    atomic_store(&guest->unsubscribed, true);
    return NULL;
}

/* telemetry_unsubscribe returns when the call in progress on another thread is over, and no call follows. */
static void test_unsubscribe_waits_for_a_call_in_progress(void)
{
    struct guest guest = {0};
    pthread_t caller, leaver;
    unsigned calls;

    begin();
    guest.handle = telemetry_subscribe(telemetry, NULL, visit_guest, &guest);
    TEST_ASSERT(pthread_create(&caller, NULL, emit_one, NULL) == 0);
    while (!atomic_load(&guest.staying))
        sched_yield();
    TEST_ASSERT(pthread_create(&leaver, NULL, unsubscribe, &guest) == 0);
    do { /* until the subscription has no effect any more */
        calls = atomic_load(&guest.calls);
        TELEMETRY(ACTOR_START, 1, DIM(CLASS, "room"));
    } while (atomic_load(&guest.calls) > calls);
    for (int i = 0; i < 1000; i++) /* the other thread had every chance to return too early */
        sched_yield();
    atomic_store(&guest.asked_to_leave, true);
    pthread_join(caller, NULL);
    pthread_join(leaver, NULL);
    TEST_CHECK(atomic_load(&guest.left_in_time));
    TEST_CHECK(atomic_load(&guest.unsubscribed));
    end();
}

/* What comes with each request is counted and shown to subscribers, and pushes nothing out of the ring. */
static void count_call(void *context, const struct telemetry_record *record)
{
    TEST_CHECK(record->event == TELEMETRY_HTTP_REQUEST);
    TEST_CHECK(record->wall == now && record->time == now);
    ++*(int *)context;
}

static void test_the_frequent_are_not_kept(void)
{
    struct telemetry_record record;
    int calls = 0;

    begin();
    TEST_CHECK(TELEMETRY(ACTOR_START, 1, DIM(CLASS, "room")));
    int handle = telemetry_subscribe(telemetry, NULL, count_call, &calls);
    for (int i = 0; i < 2 * TELEMETRY_RING_SIZE; i++) {
        now += 1000;
        TEST_CHECK(TELEMETRY(HTTP_REQUEST, 1000, DIM(STATUS, "2xx"), DIM(ROUTE, "/healthz")));
    }
    telemetry_unsubscribe(telemetry, handle);
    record = newest();
    TEST_CHECK(record.event == TELEMETRY_ACTOR_START);
    TEST_CHECK(calls == 2 * TELEMETRY_RING_SIZE);
    TEST_CHECK(telemetry_counter_label(telemetry, TELEMETRY_HTTP_REQUEST, "2xx") == 2 * TELEMETRY_RING_SIZE);
    TEST_CHECK(telemetry_counter_label(telemetry, TELEMETRY_HTTP_REQUEST, "5xx") == 0);
    end();
}

/* Also one that nobody subscribes to, and of which nothing but its label counts. */
static void test_the_frequent_are_checked(void)
{
    char longest[TELEMETRY_VALUE_MAX + 1], longer[TELEMETRY_VALUE_MAX + 2], cut[TELEMETRY_VALUE_MAX + 1];

    begin();
    TEST_CHECK(!TELEMETRY(HTTP_REQUEST, -1, DIM(STATUS, "2xx")));
    TEST_CHECK(!TELEMETRY(HTTP_REQUEST, 1000, DIM(ROUTE, "/healthz")));
    TEST_CHECK(!TELEMETRY(HTTP_REQUEST, 1000, DIM(STATUS, "")));
    TEST_CHECK(!TELEMETRY(HTTP_REQUEST, 1000, DIM(STATUS, "2xx"), DIM(STATUS, "2xx")));
    TEST_CHECK(!TELEMETRY(HTTP_REQUEST, 1000, DIM(STATUS, "2xx"), DIM(FAILURE_CLASS, "none")));
    TEST_CHECK(telemetry_counter_sum(telemetry, TELEMETRY_HTTP_REQUEST) == 0);
    TEST_CHECK(telemetry_counter_sum(telemetry, TELEMETRY_TELEMETRY_REJECTED) == 5);
    TEST_CHECK(TELEMETRY(HTTP_REQUEST, 1000, DIM(STATUS, "2xx"), DIM(ROUTE, NULL)));
    TEST_CHECK(TELEMETRY(HTTP_REQUEST, 1000, DIM(STATUS, "2xx"), DIM_INT(METHOD, 1)));
    TEST_CHECK(telemetry_counter_label(telemetry, TELEMETRY_HTTP_REQUEST, "2xx") == 2);
    memset(longer, 'x', sizeof(longer));
    longer[TELEMETRY_VALUE_MAX + 1] = 0;
    memcpy(longest, longer + 1, sizeof(longest));
    memcpy(cut, longest, sizeof(cut));
    memcpy(cut + TELEMETRY_VALUE_MAX - 3, "...", 3);
    TEST_CHECK(TELEMETRY(HTTP_REQUEST, 1000, DIM(STATUS, longest)));
    TEST_CHECK(TELEMETRY(HTTP_REQUEST, 1000, DIM(STATUS, longer)));
    TEST_CHECK(telemetry_counter_label(telemetry, TELEMETRY_HTTP_REQUEST, longest) == 1);
    TEST_CHECK(telemetry_counter_label(telemetry, TELEMETRY_HTTP_REQUEST, cut) == 1);
    end();
}

/* By its place among the labels of the row: the same as the event, as long as nobody wants to see it. */
static void test_the_frequent_are_counted_by_their_place(void)
{
    static const char *const labels[] = {"1xx", "2xx", "3xx", "4xx", "5xx"};
    struct seen seen = {.count = 0};

    TEST_CHECK(!telemetry_count(TELEMETRY_HTTP_REQUEST, 1000, 1)); /* without telemetry */
    begin();
    for (uint32_t place = 0; place < 5; place++) {
        TEST_CHECK(telemetry_count(TELEMETRY_HTTP_REQUEST, 1000, place));
        TEST_CHECK(telemetry_counter_label(telemetry, TELEMETRY_HTTP_REQUEST, labels[place]) == 1);
    }
    TEST_CHECK(!telemetry_count(TELEMETRY_HTTP_REQUEST, 1000, 5) &&
               !telemetry_count(TELEMETRY_HTTP_REQUEST, 1000, UINT32_MAX));
    TEST_CHECK(!telemetry_count(TELEMETRY_HTTP_REQUEST, -1, 1));
    TEST_CHECK(!telemetry_count(TELEMETRY_ACTOR_START, 1, 0)); /* one that is kept */
    int id = telemetry_subscribe(telemetry, NULL, see, &seen);
    TEST_CHECK(!telemetry_count(TELEMETRY_HTTP_REQUEST, 1000, 1));
    telemetry_unsubscribe(telemetry, id);
    TEST_CHECK(telemetry_count(TELEMETRY_HTTP_REQUEST, 1000, 1));
    TEST_CHECK(telemetry_counter_sum(telemetry, TELEMETRY_HTTP_REQUEST) == 6);
    end();
}

static void note_gauge(void *context, const char *label, int64_t value)
{
    char *text = context;
    sprintf(text + strlen(text), "%s=%lld ", label, (long long)value);
}

static void test_gauges_one_by_one(void)
{
    char text[256] = "";

    begin();
    telemetry_gauge_set(TELEMETRY_GAUGE_ACTORS, "room", 5);
    telemetry_gauge_set(TELEMETRY_GAUGE_ACTORS, "agent", -1);
    telemetry_gauge_each(telemetry, TELEMETRY_GAUGE_ACTORS, note_gauge, text);
    TEST_CHECK_(strcmp(text, "other=0 room=5 agent=-1 ") == 0, "%s", text);
    end();
}

static void test_kept_says_whether_there_is_more(void)
{
    begin();
    uint64_t before = telemetry_kept(telemetry);
    TEST_CHECK(TELEMETRY(HTTP_REQUEST, 1000, DIM(STATUS, "2xx")));
    TEST_CHECK(telemetry_kept(telemetry) == before);
    TEST_CHECK(TELEMETRY(ACTOR_START, 1, DIM(CLASS, "room")));
    TEST_CHECK(telemetry_kept(telemetry) == before + 1);
    end();
}

/* OpenMetrics calls a counter's family without the _total of its samples; Prometheus 0.0.4 with it. */
static void test_openmetrics_families(void)
{
    begin();
    const char *text = metrics_as(TELEMETRY_OPENMETRICS);
    TEST_CHECK(strstr(text, "\n# TYPE coppice_actor_starts counter\n") != NULL);
    TEST_CHECK(strstr(text, "_total counter\n") == NULL);
    TEST_CHECK(strstr(text, "\ncoppice_http_requests_total{status=\"5xx\"} 0\n") != NULL);
    TEST_CHECK(strstr(text, "\n# TYPE coppice_store_commit_seconds histogram\n") != NULL);
    text = metrics();
    TEST_CHECK(strstr(text, "\n# TYPE coppice_actor_starts_total counter\n") != NULL);
    TEST_CHECK(strstr(text, "\n# TYPE coppice_actor_starts counter\n") == NULL);
    end();
}

TEST_LIST
= {
    {"TOP-075 TOP-079 TOP-083 TOP-087 TOP-091 TOP-095 TOP-099 TOP-108 TOP-111 TOP-114 TOP-117 TOP-120 "
     "TOP-123 "
     "names and dimensions of the contract",
     test_names_and_dimensions_of_the_contract},
    {"TOP-165 an event without a required dimension is refused",
     test_an_event_without_a_required_dimension_is_refused},
    {"TOP-165 a refusal says what and why", test_a_refusal_says_what_and_why},
    {"other refusals", test_other_refusals},
    {"TOP-071 TOP-072 TOP-076 TOP-080 TOP-084 TOP-088 TOP-092 TOP-096 three failure classes, each failure "
     "has its own",
     test_three_failure_classes_and_each_failure_has_its_own},
    {"values are copied, formatted and bounded", test_values_are_copied_formatted_and_bounded},
    {"truncation does not split a character", test_truncation_does_not_split_a_character},
    {"eight values of full length fit", test_eight_values_of_full_length_fit},
    {"counters by label", test_counters_by_label},
    {"labels are bounded", test_labels_are_bounded},
    {"a label that is expected has its series before its first event", test_a_label_that_is_expected},
    {"a value called other", test_a_value_called_other},
    {"histograms merge over shards", test_histograms_merge_over_shards},
    {"the ring keeps the newest", test_the_ring_keeps_the_newest},
    {"records come in global order", test_records_come_in_global_order},
    {"nothing comes before what was read", test_nothing_comes_before_what_was_read},
    {"nobody passes one that is held up", test_nobody_passes_one_that_is_held_up},
    {"reading along is exact", test_reading_along_is_exact},
    {"reading goes on behind a position", test_reading_goes_on_behind_a_position},
    {"subscribers get what their filter names", test_subscribers_get_what_their_filter_names},
    {"subscribers are bounded and places come back", test_subscribers_are_bounded_and_places_come_back},
    {"what a subscriber emits is not given to subscribers",
     test_what_a_subscriber_emits_is_not_given_to_subscribers},
    {"gauges", test_gauges},
    {"without telemetry nothing happens", test_without_telemetry_nothing_happens},
    {"creation refuses what cannot be", test_creation_refuses_what_cannot_be},
    {"TOP-107 TOP-110 TOP-116 latency levels are exact at their thresholds",
     test_latency_levels_are_exact_at_their_thresholds},
    {"TOP-112 TOP-113 delivery ratio levels", test_delivery_ratio_levels},
    {"AMB-T-17 too few samples are insufficient", test_too_few_samples_are_insufficient},
    {"AMB-T-17 the window slides", test_the_window_slides},
    {"AMB-T-17 the window over an hour", test_the_window_over_an_hour},
    {"old slices do not come back", test_old_slices_do_not_come_back},
    {"TOP-122 one cascade is critical", test_one_cascade_is_critical},
    {"TOP-105 thresholds may be stricter, never looser", test_thresholds_may_be_stricter_never_looser},
    {"TOP-105 stricter thresholds are in force", test_stricter_thresholds_are_in_force},
    {"metrics start at zero with HELP and TYPE", test_metrics_start_at_zero_with_help_and_type},
    {"TOP-104 metrics show what happened", test_metrics_show_what_happened},
    {"every metrics line is well formed", test_every_metrics_line_is_well_formed},
    {"a record as JSON", test_a_record_as_json},
    {"readers beside writers", test_readers_beside_writers},
    {"foreign threads write the shared shard one at a time",
     test_foreign_threads_write_the_shared_shard_one_at_a_time},
    {"the oldest records are whole while they are overwritten",
     test_the_oldest_records_are_whole_while_they_are_overwritten},
    {"what is overwritten during the walk is left out", test_what_is_overwritten_during_the_walk_is_left_out},
    {"unsubscribe waits for a call in progress", test_unsubscribe_waits_for_a_call_in_progress},
    {"frequent events are counted and not kept", test_the_frequent_are_not_kept},
    {"the frequent are checked", test_the_frequent_are_checked},
    {"the frequent are counted by their place", test_the_frequent_are_counted_by_their_place},
    {"gauges one by one", test_gauges_one_by_one},
    {"what is kept says whether there is more", test_kept_says_whether_there_is_more},
    {"OpenMetrics families have no _total", test_openmetrics_families},
    {NULL, NULL},
};
