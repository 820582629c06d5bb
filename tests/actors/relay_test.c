/* Relays: what the outbox tells of jobs becomes deliveries, exactly once, whatever dies. */
#include "acutest.h"

#include "actors/relay.h"
#include "runtime/telemetry.h"
#include "store/audit.h"
#include "store/counter.h"
#include "store/batch.h"
#include "store/delivery_relay.h"
#include "store/job.h"
#include "tests/actors/hooks.h"
#include "tests/support/spoil.h"

static const struct stage simulated = {.real = false};

static struct hooks_answer never(const struct hooks_call *call)
{
    (void)call;
    return (struct hooks_answer){.after_ms = UINT64_MAX};
}

static int64_t waiting(void)
{
    int64_t rows = 0;
    struct view *view = view_open(stage_store);
    for (uint16_t p = 0; p < OUTBOX_PARTITIONS; p++) {
        struct outbox_row found[64];
        uint32_t count = 0;
        EXPECT(outbox_scan(&view->txn, p, 0, found, 64, &count) == OK);
        for (uint32_t i = 0; i < count; i++)
            rows += delivery_relays(found[i].row.topic);
    }
    view_close(view);
    return rows;
}

static void events_body(void)
{
    struct delivery d;
    hooks_start(&webhooks_defaults, never);
    struct uuid client = hooks_client(), other = hooks_client();
    struct uuid hook = hooks_put(&client, "https://a.example/", 1u << JOB_CANCEL);
    struct uuid job = hooks_job(&client, "https://b.example/");
    struct uuid untold = hooks_job(&other, ""); /* nobody wants to know */
    hooks_settle(100);
    EXPECT(hooks_counted(DELIVERY_PENDING) == 2 && waiting() == 0);
    hooks_cancel(&job);
    hooks_cancel(&untold);
    hooks_settle(100);
    EXPECT(hooks_counted(DELIVERY_PENDING) == 4 && waiting() == 0);
    EXPECT(hooks_delivery(&job, NULL, 1, &d) == OK && hooks_delivery(&job, NULL, 3, &d) == OK);
    EXPECT(hooks_delivery(&job, &hook, 3, &d) == OK && hooks_delivery(&job, &hook, 1, &d) == ERR_NOT_FOUND);
    EXPECT(hooks_delivery(&untold, NULL, 1, &d) == ERR_NOT_FOUND);
}

static void test_events_become_deliveries_JOB_080_JOB_184_O1(void)
{
    TEST_CHECK(stage_run(&simulated, events_body) == 0);
}

/* ---- what dies ---- */

static void restart_body(void)
{
    hooks_start(&webhooks_defaults, never);
    struct uuid client = hooks_client();
    for (int i = 0; i < 30; i++) {
        (void)hooks_job(&client, "https://b.example/");
        if (i % 3 == 0)
            hooks_restart();
        if (i % 7 == 0)
            hooks_settle(3);
    }
    hooks_settle(5000);
    EXPECT(hooks_counted(DELIVERY_PENDING) == 60 && waiting() == 0);
}

static void test_kills_lose_and_double_nothing_O1_O2_W5(void)
{
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct stage stage = {.seed = seed};
        TEST_CHECK_(stage_run(&stage, restart_body) == 0, "seed %u", (unsigned)seed);
    }
}

static void no_writer_body(void)
{
    hooks_start(&webhooks_defaults, never);
    struct uuid client = hooks_client();
    (void)hooks_job(&client, "https://b.example/");
    stage_kill(actor_whereis(WRITER_NAME));
    hooks_settle(3000); /* the relay tries again and again */
    (void)stage_writer();
    hooks_settle(3000);
    EXPECT(hooks_counted(DELIVERY_PENDING) == 2 && waiting() == 0);
}

static void test_without_a_writer_it_waits(void)
{
    TEST_CHECK(stage_run(&simulated, no_writer_body) == 0);
}

/* ---- two at once ---- */

static void two_body(void)
{
    hooks_start(&webhooks_defaults, never);
    struct uuid client = hooks_client();
    for (uint32_t p = 0; p < OUTBOX_PARTITIONS; p++) {
        struct start_result result;
        const struct spawn_options o = {.class = &relay_class, .args = &p, .args_size = sizeof(p)};
        EXPECT(actor_start(&o, &result, actor_deadline_ms(1000)) == OK);
    }
    for (int i = 0; i < 20; i++)
        (void)hooks_job(&client, "https://b.example/");
    hooks_settle(10000);
    EXPECT(hooks_counted(DELIVERY_PENDING) == 40 && waiting() == 0);
}

static void test_two_relays_at_once_O5(void)
{
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct stage stage = {.seed = seed};
        TEST_CHECK_(stage_run(&stage, two_body) == 0, "seed %u", (unsigned)seed);
    }
}

/* ---- rows of others ---- */

#define OTHER_TOPIC 999u

static struct uuid others_id;

/* One more, and its entry, so that there is an event that it names. */
static enum error put_other(struct txn *txn)
{
    uint64_t seq;
    outbox_put(txn, store_time_us(), OTHER_TOPIC, &others_id, 1, &seq);
    return OK;
}

static void append_other(uint64_t number)
{
    struct audit_append c = {.id = stage_id(number),
                             .who = span_text("w"),
                             .verb = span_text("actor.kill"),
                             .outcome = span_text("done")};
    others_id = c.id;
    EXPECT(store_submit(&audit_append_class, &c, NULL, 0, NULL, actor_deadline_ms(5000)) == OK);
    EXPECT(spoil(put_other) == OK);
}

static void others_body(void)
{
    hooks_start(&webhooks_defaults, never);
    struct uuid client = hooks_client();
    for (uint64_t i = 0; i < 400; i++) {
        append_other(i);
        if (i % 40 == 0)
            (void)hooks_job(&client, "https://b.example/");
    }
    hooks_settle(5000);
    EXPECT(hooks_counted(DELIVERY_PENDING) == 20 && waiting() == 0);
    int64_t rows = 0, all = 0;
    struct view *view = view_open(stage_store);
    for (uint16_t p = 0; p < OUTBOX_PARTITIONS; p++) {
        uint8_t label[2] = {0, (uint8_t)p};
        EXPECT(counter_read(&view->txn, COUNTER_OUTBOX, span_of(label, 2), &rows) == OK);
        all += rows;
    }
    view_close(view);
    EXPECT(all == 400); /* they stay for whoever they are for */
}

static void test_rows_of_others_stay(void)
{
    const struct stage stage = {.schema = spoil_schema()};
    TEST_CHECK(stage_run(&stage, others_body) == 0);
}

/* ---- a row that can't be handed on ---- */

static enum error lose_definition(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct delivery_resend *c = command; /* of which only the id is looked at */
    (void)at_us;
    (void)answer;
    txn_remove(txn, TABLE_JOB_DEFINITIONS, span_of(c->id.bytes, sizeof(c->id.bytes)));
    return OK;
}

static const struct command_class lose_class = {
    .name = "test.lose", .record = &delivery_resend_record, .apply = lose_definition, .code = 9901};

static uint64_t damage_told(const char *table)
{
    return telemetry_counter_label(runtime_telemetry(runtime_self()), TELEMETRY_STORE_DAMAGED, table);
}

static uint64_t dead_letters_told(void)
{
    return telemetry_counter_label(runtime_telemetry(runtime_self()), TELEMETRY_FAILURE_POISON_MESSAGE,
                                   "dead_letter");
}

static void poison_body(void)
{
    hooks_start(&webhooks_defaults, never);
    uint64_t before = damage_told("dead");
    struct uuid client = hooks_client();
    for (uint32_t p = 0; p < OUTBOX_PARTITIONS; p++)
        actor_suspend(hooks_relay(p));
    struct uuid bad = hooks_job(&client, "https://b.example/"),
                good = hooks_job(&client, "https://b.example/");
    stage_kill(actor_whereis(WRITER_NAME));
    const struct delivery_resend c = {.id = bad};
    EXPECT(batch_one(stage_store, &lose_class, store_time_us(), &c, NULL) == OK);
    (void)stage_writer();
    for (uint32_t p = 0; p < OUTBOX_PARTITIONS; p++)
        actor_resume(hooks_relay(p));
    hooks_settle(5000);
    struct delivery d;
    EXPECT(waiting() == 0 && hooks_delivery(&good, NULL, 2, &d) == OK);
    EXPECT(hooks_delivery(&bad, NULL, 1, &d) == ERR_NOT_FOUND);
    struct view *view = view_open(stage_store);
    EXPECT(txn_rows(&view->txn, TABLE_DEAD) == 2 && damage_told("dead") > before); /* an operator hears */
    EXPECT(dead_letters_told() == 2);
    view_close(view);
}

static void test_a_row_that_cant_be_read_holds_nobody_up_O2(void)
{
    const struct stage stage = {.unsound = true};
    TEST_CHECK(stage_run(&stage, poison_body) == 0);
}

static struct uuid spoilt_job;

/* And again: as it was. */
static enum error spoil_definition(struct txn *txn)
{
    spoil_value(txn, TABLE_JOB_DEFINITIONS, span_of(spoilt_job.bytes, sizeof(spoilt_job.bytes)));
    return OK;
}

static enum error revive(uint16_t partition, uint64_t seq)
{
    const struct outbox_revive_command c = {.partition = partition, .seq = seq};
    return store_submit(&outbox_revive_class, &c, NULL, 0, NULL, actor_deadline_ms(1000));
}

/* The first of the dead rows; how many there are. */
static uint32_t dead_rows(struct outbox_dead *ret_first)
{
    const struct key front = {.size = 0};
    struct outbox_dead_scan scan;
    struct outbox_dead found;
    uint32_t count = 0;
    struct view *view = view_open(stage_store);
    outbox_dead_begin(&view->txn, &front, &scan);
    while (outbox_dead_next(&scan, &found) == OK)
        if (count++ == 0)
            *ret_first = found;
    outbox_dead_end(&scan);
    view_close(view);
    return count;
}

/* It has long been further on; and it doesn't wait for the next time that it begins at the front anyway. */
static void revived_body(void)
{
    struct delivery d;
    struct outbox_dead dead = {.seq = 0};
    hooks_start(&webhooks_defaults, never);
    struct uuid client = hooks_client();
    spoilt_job = hooks_job(&client, "https://b.example/");
    hooks_settle(100);
    EXPECT(spoil(spoil_definition) == OK);
    hooks_cancel(&spoilt_job);
    for (int i = 0; i < 60; i++) /* some of them in the same partition, behind it */
        (void)hooks_job(&client, "https://b.example/");
    hooks_settle(100);
    EXPECT(dead_rows(&dead) == 1 && waiting() == 0);
    const uint16_t partition = dead.partition;
    const uint64_t seq = dead.seq, buried_us = dead.row.buried_us;
    EXPECT(revive(partition, seq) == OK);
    hooks_settle(100); /* too early: it is the same row again, with no attempts */
    EXPECT(dead_rows(&dead) == 1 && waiting() == 0 && dead.partition == partition && dead.seq == seq);
    EXPECT(dead.row.buried_us > buried_us && dead.row.attempts == 0);
    EXPECT(spoil(spoil_definition) == OK && revive(partition, seq) == OK);
    hooks_settle(100);
    EXPECT(dead_rows(&dead) == 0 && waiting() == 0);
    EXPECT(hooks_delivery(&spoilt_job, NULL, 3, &d) == OK);
}

static void test_a_row_that_was_revived_is_handed_on_at_once(void)
{
    const struct stage stage = {.schema = spoil_schema()};
    TEST_CHECK(stage_run(&stage, revived_body) == 0);
}

static uint16_t spoilt_partition;

/* The first row of that partition, and again: as it was. */
static enum error spoil_first(struct txn *txn)
{
    struct outbox_row row;
    uint32_t count = 0;
    EXPECT(outbox_scan(txn, spoilt_partition, 0, &row, 1, &count) == OK && count == 1);
    struct key key = outbox_key(spoilt_partition, row.seq);
    spoil_value(txn, TABLE_OUTBOX, key_span(&key));
    return OK;
}

static void spoilt_body(void)
{
    struct delivery d;
    hooks_start(&webhooks_defaults, never);
    uint64_t before = damage_told("outbox");
    struct uuid client = hooks_client();
    for (uint32_t p = 0; p < OUTBOX_PARTITIONS; p++)
        actor_suspend(hooks_relay(p));
    struct uuid job = hooks_job(&client, "https://b.example/");
    hooks_cancel(&job);
    struct view *view = view_open(stage_store);
    spoilt_partition = outbox_partition(&view->txn, &job);
    view_close(view);
    EXPECT(spoil(spoil_first) == OK);
    for (uint32_t p = 0; p < OUTBOX_PARTITIONS; p++)
        actor_resume(hooks_relay(p));
    hooks_settle(100);
    EXPECT(hooks_delivery(&job, NULL, 1, &d) == ERR_NOT_FOUND);
    EXPECT(hooks_delivery(&job, NULL, 2, &d) == OK && hooks_delivery(&job, NULL, 3, &d) == OK);
    hooks_settle(3 * RELAY_AGAIN_MS); /* it begins at the front again and again, and tells of it once */
    EXPECT(damage_told("outbox") == before + 1);
    EXPECT(spoil(spoil_first) == OK); /* it can be read again */
    hooks_settle(2 * RELAY_AGAIN_MS);
    EXPECT(hooks_delivery(&job, NULL, 1, &d) == OK && waiting() == 0);
}

static void test_a_damaged_row_of_the_outbox_holds_nobody_up_O2(void)
{
    const struct stage stage = {.schema = spoil_schema()};
    TEST_CHECK(stage_run(&stage, spoilt_body) == 0);
}

TEST_LIST
= {
    {"events become deliveries (JOB-080, JOB-184, O1)", test_events_become_deliveries_JOB_080_JOB_184_O1},
    {"kills lose and double nothing (O1, O2, W5)", test_kills_lose_and_double_nothing_O1_O2_W5},
    {"without a writer it waits", test_without_a_writer_it_waits},
    {"two relays at once (O5)", test_two_relays_at_once_O5},
    {"rows of others stay", test_rows_of_others_stay},
    {"a row that can't be read holds nobody up (O2, TOP-089)",
     test_a_row_that_cant_be_read_holds_nobody_up_O2},
    {"a row that was revived is handed on at once", test_a_row_that_was_revived_is_handed_on_at_once},
    {"a damaged row of the outbox holds nobody up (O2)", test_a_damaged_row_of_the_outbox_holds_nobody_up_O2},
    {NULL, NULL},
};
