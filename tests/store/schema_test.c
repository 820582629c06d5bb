/* The schema: its lists are sound, stored numbers stay what they were, and what check demands of each table it finds
 * when it isn't so. */
#include "acutest.h"

#include "store/audit.h"
#include "store/counter.h"
#include "store/event.h"
#include "store/job.h"
#include "store/job_bulk.h"
#include "store/ledger.h"
#include "store/meta.h"
#include "store/outbox.h"
#include "store/retention.h"
#include "store/revocation.h"
#include "store/signing_key.h"
#include "tests/store/fresh.h"

#define AT_US UINT64_C(1700000000000000)

/* ---- lists ---- */

static void check_record(const struct record_class *class)
{
    TEST_CASE(class->name);
    TEST_CHECK(class->version >= 1 && class->count > 0 && class->size <= COMMAND_STRUCT_MAX);
    for (uint32_t i = 0; i < class->count; i++) {
        TEST_CHECK(class->fields[i].since >= 1 && class->fields[i].since <= class->version);
        TEST_CHECK(i == 0 || class->fields[i].since >= class->fields[i - 1].since);
        for (uint32_t j = 0; j < i; j++)
            TEST_CHECK(strcmp(class->fields[i].name, class->fields[j].name) != 0);
    }
}

/* Encoded, with every field as long as it may be. */
static size_t greatest_size(const struct record_class *class)
{
    static const uint8_t fixed[] = {
#define X(name, ctype, size) [FIELD_##name] = (size),
        FIELD_TYPES(X)
#undef X
    };
    size_t size = 0;
    for (uint32_t i = 0; i < class->count; i++)
        size += fixed[class->fields[i].type] ? fixed[class->fields[i].type] : 4 + class->fields[i].limit;
    return size;
}

static void check_schema(const struct schema *schema)
{
    TEST_CHECK(schema->tables_count >= TABLE_COUNT && schema->tables_count <= SCHEMA_TABLES_MAX);
    for (uint32_t i = 0; i < schema->tables_count; i++) {
        const struct schema_table *table = &schema->tables[i];
        check_record(table->record);
        TEST_ASSERT(table->name != NULL && table->name[0] && table->check != NULL);
        TEST_CHECK(greatest_size(table->record) + VALUE_HEAD <= VALUE_SIZE_MAX);
        for (uint32_t j = 0; j < i; j++)
            TEST_CHECK(strcmp(table->name, schema->tables[j].name) != 0);
    }
    for (uint32_t i = 0; i < schema->commands_count; i++) {
        const struct command_class *command = schema->commands[i];
        check_record(command->record);
        TEST_CHECK(command->apply && command->code > 0 && command->priority <= COMMAND_HIGH);
        TEST_CHECK(greatest_size(command->record) <= COMMAND_SIZE_MAX);
        TEST_CHECK(schema_command(schema, command->code) == command); /* so no code is there twice */
        TEST_CHECK(schema_command_named(schema, span_text(command->name)) == command);
    }
    TEST_CHECK(schema_command(schema, 0) == NULL && schema_command(schema, UINT16_MAX) == NULL);
    TEST_CHECK(schema_command_named(schema, span_text("outbox")) == NULL);
    TEST_CHECK(schema_command_named(schema, span_of(NULL, 0)) == NULL);
    TEST_CHECK(schema->format >= 1);
    for (uint32_t from = 1; from < schema->format; from++) { /* from each older format one step on */
        uint32_t steps = 0;
        for (uint32_t i = 0; i < schema->migrations_count; i++)
            steps += schema->migrations[i].from == from;
        TEST_CHECK(steps == 1);
    }
}

static void test_schema_lists_are_sound(void)
{
    check_schema(&store_schema);
    check_schema(&parcel_store_schema);
    for (uint32_t i = 0; i < TABLE_COUNT;
         i++) /* whoever adds a domain has the product's tables in their places */
        TEST_CHECK(store_schema.tables[i].record == parcel_store_schema.tables[i].record &&
                   strcmp(store_schema.tables[i].name, parcel_store_schema.tables[i].name) == 0);
    TEST_CHECK(parcel_store_schema.commands_count == store_schema.commands_count + 3);
}

/* What is written in stores and journals: a number that changes here belongs to another thing there. */
static void test_schema_stored_numbers_are_what_they_were(void)
{
    static const struct {
        uint16_t code;
        const char *name;
        uint8_t priority;
        bool cleanup;
    } commands[] = {
        {10, "outbox.claim", COMMAND_NORMAL, false},
        {11, "outbox.mark", COMMAND_HIGH, true},
        {12, "outbox.defer", COMMAND_HIGH, false},
        {13, "outbox.bury", COMMAND_HIGH, true},
        {14, "outbox.revive", COMMAND_NORMAL, false},
        {20, "retention.sweep", COMMAND_NORMAL, true},
        {30, "audit.append", COMMAND_NORMAL, false},
        {110, "signing_key.rotate", COMMAND_HIGH, false},
        {111, "signing_key.revoke", COMMAND_HIGH, false},
        {112, "signing_key.remove", COMMAND_HIGH, false},
        {113, "revocation.put", COMMAND_HIGH, false},
        {114, "seen_token.put", COMMAND_NORMAL, false},
        {100, "client.create", COMMAND_NORMAL, false},
        {101, "api_key.issue", COMMAND_NORMAL, false},
        {102, "api_key.revoke", COMMAND_HIGH, true},
        {103, "api_key.touch", COMMAND_LOW, false},
        {104, "client.quota_take", COMMAND_NORMAL, false},
        {130, "rate_window.take", COMMAND_NORMAL, false},
        {140, "principal.put", COMMAND_NORMAL, false},
        {141, "principal.remove", COMMAND_HIGH, true},
        {240, "webhook.put", COMMAND_NORMAL, false},
        {241, "webhook.remove", COMMAND_NORMAL, true},
        {242, "webhook.switch", COMMAND_NORMAL, false},
        {243, "webhook.rotate", COMMAND_NORMAL, false},
        {200, "job.submit", COMMAND_NORMAL, false},
        {201, "job.claim", COMMAND_HIGH, false},
        {202, "job.start", COMMAND_HIGH, false},
        {203, "job.heartbeat", COMMAND_HIGH, false},
        {204, "job.finish", COMMAND_HIGH, false},
        {205, "job.cancel", COMMAND_NORMAL, false},
        {206, "job.retry", COMMAND_NORMAL, false},
        {207, "job.fire", COMMAND_HIGH, false},
        {208, "job.reap", COMMAND_HIGH, false},
        {220, "job.pause", COMMAND_HIGH, false},
        {221, "job.resume", COMMAND_HIGH, false},
        {244, "delivery.relay", COMMAND_HIGH, false},
        {245, "delivery.settle", COMMAND_HIGH, true},
        {246, "delivery.resend", COMMAND_NORMAL, false},
        {247, "delivery.astray", COMMAND_HIGH, false},
        {230, "schedule.put", COMMAND_NORMAL, false},
        {231, "schedule.remove", COMMAND_NORMAL, true},
        {232, "schedule.switch", COMMAND_NORMAL, false},
        {233, "schedule.fire", COMMAND_NORMAL, false},
        {234, "schedule.retime", COMMAND_NORMAL, false},
        {224, "job.bulk", COMMAND_NORMAL, false},
        {225, "job.bulk_abort", COMMAND_HIGH, false},
        {226, "job.bulk_step", COMMAND_NORMAL, false},
        {222, "job.unpark", COMMAND_NORMAL, false},
        {223, "job.run", COMMAND_NORMAL, false},
        {227, "job.fairness", COMMAND_NORMAL, false},
        {228, "job.admit", COMMAND_NORMAL, false},
    };
    static const char *const tables[] = {
        "meta",          "audits",      "events",   "ledger",          "due",          "outbox",
        "claims",        "dead",        "counters", "signing_keys",    "revocations",  "seen_tokens",
        "clients",       "client_keys", "api_keys", "api_key_hashes",  "rate_windows", "principals",
        "webhooks",      "webhook_ids", "jobs",     "job_definitions", "job_queue",    "client_jobs",
        "reports",       "pauses",      "fairness", "bulks",           "schedules",    "deliveries",
        "delivery_index"};
    TEST_CHECK(store_schema.commands_count == sizeof(commands) / sizeof(commands[0]));
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        const struct command_class *command = schema_command(&store_schema, commands[i].code);
        TEST_CASE(commands[i].name);
        TEST_ASSERT(command != NULL);
        TEST_CHECK(strcmp(command->name, commands[i].name) == 0 &&
                   command->priority == commands[i].priority && command->cleanup == commands[i].cleanup);
    }
    TEST_CHECK(store_schema.tables_count == sizeof(tables) / sizeof(tables[0]));
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
        TEST_CHECK(strcmp(store_schema.tables[i].name, tables[i]) == 0);
    TEST_CHECK(COUNTER_AUDITS == 2 && COUNTER_OUTBOX == 3 && COUNTER_DEAD == 4 && COUNTER_DUE == 5 &&
               COUNTER_OUTBOX_NEXT == 6 && COUNTER_LEDGER_NEXT == 7 && COUNTER_RETAINED == 8);
    TEST_CHECK(DUE_RETENTION == 1 && DUE_DELIVERY == 10 && RETENTION_DELIVERY == 40 && RETENTION_AUDIT == 1 &&
               RETENTION_SIGNING_KEY == 11 && RETENTION_REVOCATION == 12 && RETENTION_SEEN_TOKEN == 13 &&
               RETENTION_CLIENT == 21 && RETENTION_API_KEY == 22 && RETENTION_RATE_WINDOW == 23);
    TEST_CHECK(COUNTER_CLIENTS == 100 && COUNTER_API_KEYS == 101 && COUNTER_JOBS == 200 &&
               COUNTER_JOB_SEQ == 201 && COUNTER_JOB_NEWEST == 202 && COUNTER_JOB_FENCE == 203 &&
               COUNTER_JOBS_ASIDE == 204 && COUNTER_BULKS == 205 && COUNTER_JOBS_COUNTED == 206 &&
               COUNTER_WEBHOOKS == 210 && COUNTER_DELIVERIES == 211 && COUNTER_DELIVERIES_PENDING == 212);
    TEST_CHECK(DUE_JOB_TIME == 2 && DUE_JOB_LEASE == 3 && DUE_JOB_BACKOFF == 4 && DUE_JOB_PAUSE == 5 &&
               DUE_JOB_BULK == 6 && DUE_SCHEDULE == 7 && RETENTION_BULK == 32 && RETENTION_JOB == 31);
    TEST_CHECK(JOB_DOMAIN == 2 && OUTBOX_JOB == 2 && OUTBOX_JOB_EMITTED == 3);
    TEST_CHECK(JOB_CREATED == 0 && JOB_QUEUED == 1 && JOB_ASSIGNED == 2 && JOB_RUNNING == 3 &&
               JOB_SUCCEEDED == 4 && JOB_FAILED == 5 && JOB_CANCELED == 6);
    TEST_CHECK(JOB_CREATE == 0 && JOB_ENQUEUE == 1 && JOB_ASSIGN == 2 && JOB_START == 3 && JOB_SUCCEED == 4 &&
               JOB_FAIL == 5 && JOB_TIME_OUT == 6 && JOB_CANCEL == 7 && JOB_RETRY == 8 && JOB_REQUEUE == 9);
    TEST_CHECK(REVOCATION_TOKEN == 0 && REVOCATION_KEY == 1 && REVOCATION_SESSION == 2 &&
               REVOCATION_SUBJECT == 3);
    TEST_CHECK(LEDGER_DAY == 0 && LEDGER_WEEK == 1 && LEDGER_QUARTER == 2 && LEDGER_KEPT == 3);
    TEST_CHECK(AUDIT_DOMAIN == 1 && AUDIT_APPENDED == 1 && AUDIT_TOPIC == 1);
}

static void test_schema_lifecycles_are_sound(void)
{
    static const struct lifecycle *const lifecycles[] = {&parcel_lifecycle, &signing_key_lifecycle,
                                                         &job_lifecycle, &bulk_lifecycle};
    for (size_t i = 0; i < sizeof(lifecycles) / sizeof(lifecycles[0]); i++) {
        char text[256] = "";
        TEST_CHECK_(lifecycle_check(lifecycles[i], text, sizeof(text)), "%s: %s", lifecycles[i]->name, text);
    }
}

static void test_schema_counters_and_queues_have_one_name_each(void)
{
    static const uint16_t counters[] = {
#define X(id, number, name, help) number,
        COUNTERS(X)
#undef X
    };
    static const char *const queues[] = {
#define X(id, number, name, check) [number] = name,
        DUE_QUEUES(X)
#undef X
    };
    for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++) {
        TEST_CHECK(counter_name(counters[i]) != NULL);
        for (size_t j = 0; j < i; j++)
            TEST_CHECK(counters[i] != counters[j] &&
                       strcmp(counter_name(counters[i]), counter_name(counters[j])) != 0);
    }
    TEST_CHECK(sizeof(queues) / sizeof(queues[0]) == DUE_DELIVERY + 1 && queues[0] == NULL);
}

/* ---- a store with a row of every kind, spoilt in one way at a time ---- */

struct spoilt {
    struct uuid parcel, audit; /* the parcel was sent and delivered: three events and rows */
    uint16_t partition;        /* of the parcel; its second row is dead, its first is gone */
};

static void append_audit(struct fresh *fresh, const struct uuid *id)
{
    struct audit_append c = {
        .id = *id, .key = span_text("k"), .who = span_text("w"), .verb = span_text("actor.kill")};
    TEST_CHECK(batch_one(fresh->store, &audit_append_class, AT_US, &c, NULL) == OK);
}

static void fill(struct fresh *fresh, struct spoilt *s)
{
    struct parcel_send send = {.id = s->parcel, .due_us = AT_US + 100};
    struct parcel_move move = {.id = s->parcel, .event = PARCEL_SEND};
    TEST_CHECK(batch_one(fresh->store, &parcel_send_class, AT_US, &send, NULL) == OK);
    TEST_CHECK(batch_one(fresh->store, &parcel_move_class, AT_US + 1, &move, NULL) == OK);
    move.event = PARCEL_DELIVER;
    TEST_CHECK(batch_one(fresh->store, &parcel_move_class, AT_US + 2, &move, NULL) == OK);
    struct view *view = view_open_outside(fresh->store, 0);
    TEST_ASSERT(view != NULL);
    s->partition = outbox_partition(&view->txn, &s->parcel);
    view_close(view);
    struct outbox_claim_command claim = {.partition = s->partition, .holder = 1};
    struct outbox_mark_command mark = {.partition = s->partition, .seq = 1, .fence = 1};
    struct outbox_bury_command bury = {.partition = s->partition, .seq = 2, .fence = 1};
    TEST_CHECK(batch_one(fresh->store, &outbox_claim_class, AT_US, &claim, NULL) == OK);
    TEST_CHECK(batch_one(fresh->store, &outbox_mark_class, AT_US, &mark, NULL) == OK);
    TEST_CHECK(batch_one(fresh->store, &outbox_bury_class, AT_US, &bury, NULL) == OK);
    append_audit(fresh, &s->audit);
}

static void put(struct txn *txn, uint32_t table, const struct key *key, const void *record)
{
    txn_write(txn, table, key_span(key), record);
}

static struct key key_bytes(const void *bytes, uint32_t size)
{
    struct key key = {.size = 0};
    key_add(&key, bytes, size);
    return key;
}

static const uint8_t zeros[KEY_SIZE_MAX];

/* A table has a key of its own size: another one is found in each. */
static void short_key(struct txn *txn, uint32_t table, const void *record)
{
    struct key key = key_bytes(zeros, 1);
    put(txn, table, &key, record);
}

static void meta_empty(struct txn *txn, const struct spoilt *s)
{
    struct key key = key_bytes("nothing", 7);
    (void)s;
    put(txn, TABLE_META, &key, &(struct meta){.value = {0}});
}

static void audit_elsewhere(struct txn *txn, const struct spoilt *s)
{
    struct key key = key_of_uuid(&s->parcel);
    put(txn, TABLE_AUDITS, &key,
        &(struct audit){.id = s->audit, .at_us = AT_US, .verb = span_text("actor.kill")});
}

static void audit_for_ever(struct txn *txn, const struct spoilt *s)
{
    retention_clear(txn, AT_US + AUDIT_KEPT_US, &s->audit);
}

static void audit_without_event(struct txn *txn, const struct spoilt *s)
{
    struct key key = event_key(&s->audit, 1);
    txn_remove(txn, TABLE_EVENTS, key_span(&key));
}

static void event_gap(struct txn *txn, const struct spoilt *s)
{
    struct key key = event_key(&s->parcel, 2);
    txn_remove(txn, TABLE_EVENTS, key_span(&key));
}

static void event_zero(struct txn *txn, const struct spoilt *s)
{
    struct key key = event_key(&s->parcel, 0);
    put(txn, TABLE_EVENTS, &key, &(struct event){.at_us = AT_US});
}

static void event_late(struct txn *txn, const struct spoilt *s)
{
    struct key key = event_key(&s->parcel, 2);
    put(txn, TABLE_EVENTS, &key, &(struct event){.at_us = AT_US + 3});
}

static void event_short(struct txn *txn, const struct spoilt *s)
{
    (void)s;
    short_key(txn, TABLE_EVENTS, &(struct event){.at_us = 1});
}

static void ledger_row(struct txn *txn, uint8_t lifetime, uint64_t row, uint64_t expires_us)
{
    struct key key = {.size = 0};
    key_add_u8(&key, lifetime);
    key_add_u64(&key, row);
    put(txn, TABLE_LEDGER, &key, &(struct ledger){.at_us = AT_US, .expires_us = expires_us});
}

static void ledger_beyond(struct txn *txn, const struct spoilt *s)
{
    (void)s;
    ledger_row(txn, LEDGER_DAY, 99, AT_US + 1);
}

static void ledger_lifetime(struct txn *txn, const struct spoilt *s)
{
    (void)s;
    ledger_row(txn, LEDGER_LIFETIME_COUNT, 1, AT_US + 1);
}

static void ledger_over_before(struct txn *txn, const struct spoilt *s)
{
    (void)s;
    ledger_row(txn, LEDGER_DAY, 1, AT_US - 1);
}

static void ledger_short(struct txn *txn, const struct spoilt *s)
{
    (void)s;
    short_key(txn, TABLE_LEDGER, &(struct ledger){.at_us = 1, .expires_us = 2});
}

static void due_queue(struct txn *txn, const struct spoilt *s)
{
    struct key key = due_key(99, 0, AT_US, &s->parcel);
    put(txn, TABLE_DUE, &key, &(struct due){.kind = 1});
}

static void due_kind(struct txn *txn, const struct spoilt *s)
{
    struct key key = due_key(DUE_RETENTION, 0, AT_US, &s->parcel);
    put(txn, TABLE_DUE, &key, &(struct due){.kind = 777});
}

static void due_of_nothing(struct txn *txn, const struct spoilt *s)
{
    struct key key = due_key(DUE_RETENTION, 0, AT_US, &s->parcel);
    put(txn, TABLE_DUE, &key, &(struct due){.kind = RETENTION_AUDIT});
}

static void due_at_another_time(struct txn *txn, const struct spoilt *s)
{
    retention_set(txn, RETENTION_AUDIT, AT_US + AUDIT_KEPT_US + 1, &s->audit, 1);
}

static void due_short(struct txn *txn, const struct spoilt *s)
{
    (void)s;
    short_key(txn, TABLE_DUE, &(struct due){.kind = 1});
}

static void outbox_elsewhere(struct txn *txn, const struct spoilt *s)
{
    struct key key = outbox_key((uint16_t)((s->partition + 1u) % OUTBOX_PARTITIONS), 1);
    put(txn, TABLE_OUTBOX, &key, &(struct outbox){.stream = s->parcel, .event = 1});
}

static void outbox_beyond(struct txn *txn, const struct spoilt *s)
{
    struct key key = outbox_key(s->partition, 99);
    put(txn, TABLE_OUTBOX, &key, &(struct outbox){.stream = s->parcel, .event = 1});
}

static void outbox_of_nothing(struct txn *txn, const struct spoilt *s)
{
    struct key key = outbox_key(s->partition, 3);
    put(txn, TABLE_OUTBOX, &key, &(struct outbox){.stream = s->parcel, .event = 4});
}

static void outbox_and_dead(struct txn *txn, const struct spoilt *s)
{
    struct key key = outbox_key(s->partition, 2);
    put(txn, TABLE_OUTBOX, &key, &(struct outbox){.stream = s->parcel, .event = 2});
}

static void outbox_short(struct txn *txn, const struct spoilt *s)
{
    (void)s;
    short_key(txn, TABLE_OUTBOX, &(struct outbox){.event = 1});
}

static void dead_of_nothing(struct txn *txn, const struct spoilt *s)
{
    struct key key = outbox_key(s->partition, 2);
    put(txn, TABLE_DEAD, &key, &(struct dead){.stream = s->parcel, .event = 4});
}

static void dead_uncounted(struct txn *txn, const struct spoilt *s)
{
    struct key key = outbox_key(s->partition, 1);
    put(txn, TABLE_DEAD, &key, &(struct dead){.stream = s->parcel, .event = 1});
}

static void claim_partition(struct txn *txn, const struct spoilt *s)
{
    const uint8_t partition[] = {0, OUTBOX_PARTITIONS};
    struct key key = key_bytes(partition, 2);
    (void)s;
    put(txn, TABLE_CLAIMS, &key, &(struct claim){.fence = 1});
}

static void claim_short(struct txn *txn, const struct spoilt *s)
{
    struct key key = key_bytes("x", 1);
    (void)s;
    put(txn, TABLE_CLAIMS, &key, &(struct claim){.fence = 1});
}

static void claim_without_fence(struct txn *txn, const struct spoilt *s)
{
    const uint8_t partition[] = {0, (uint8_t)s->partition};
    struct key key = key_bytes(partition, 2);
    put(txn, TABLE_CLAIMS, &key, &(struct claim){.fence = 0});
}

static void counter_off_by_one(struct txn *txn, const struct spoilt *s)
{
    (void)s;
    counter_add(txn, COUNTER_AUDITS, span_text("actor.kill"), 1);
    txn->writes++;
}

static void counter_of_nothing(struct txn *txn, const struct spoilt *s)
{
    (void)s;
    counter_add(txn, COUNTER_AUDITS, span_text("actor.stop"), 1);
    txn->writes++;
}

static void counter_missing(struct txn *txn, const struct spoilt *s)
{
    struct key key = counter_key(COUNTER_AUDITS, span_text("actor.kill"));
    (void)s;
    txn_remove(txn, TABLE_COUNTERS, key_span(&key));
}

static void counter_zero(struct txn *txn, const struct spoilt *s)
{
    struct key key = counter_key(COUNTER_AUDITS, span_text("actor.stop"));
    (void)s;
    put(txn, TABLE_COUNTERS, &key, &(struct counter){.value = 0});
}

static void counter_went_back(struct txn *txn, const struct spoilt *s)
{
    const uint8_t partition[] = {0, (uint8_t)s->partition};
    counter_add(txn, COUNTER_OUTBOX_NEXT, span_of(partition, 2), -1);
    txn->writes++;
}

static void counter_short(struct txn *txn, const struct spoilt *s)
{
    (void)s;
    short_key(txn, TABLE_COUNTERS, &(struct counter){.value = 1});
}

static const struct {
    const char *finding;
    void (*spoil)(struct txn *txn, const struct spoilt *s);
} spoils[] = {
    {"meta: 'nothing' is empty", meta_empty},
    {"stands under another id", audit_elsewhere},
    {"will never be removed", audit_for_ever},
    {"has no event", audit_without_event},
    {"has a gap before event 3", event_gap},
    {"has an event 0", event_zero},
    {"event 3 is older than the one before it", event_late},
    {"events: a key of 1 bytes", event_short},
    {"99 was given away", ledger_beyond},
    {"unknown lifetime 4", ledger_lifetime},
    {"another time than its lifetime says", ledger_over_before},
    {"ledger: a key of 1 bytes", ledger_short},
    {"unknown queue 99", due_queue},
    {"unknown kind 777", due_kind},
    {"(kind 1), which isn't there", due_of_nothing},
    {"wants to be removed at another time", due_at_another_time},
    {"due: a key of 1 bytes", due_short},
    {"belongs to another partition", outbox_elsewhere},
    {"99 was given away", outbox_beyond},
    {"/3 names event 4 of", outbox_of_nothing},
    {"is among the dead as well", outbox_and_dead},
    {"outbox: a key of 1 bytes", outbox_short},
    {"/2 names event 4 of", dead_of_nothing},
    {"but the rows say 2", dead_uncounted},
    {"a key that is no partition", claim_partition},
    {"a key that is no partition", claim_short},
    {"was claimed without a fence", claim_without_fence},
    {"is 2, but the rows say 1", counter_off_by_one},
    {"is 1, but the rows say 0", counter_of_nothing},
    {"is 0, but the rows say 1", counter_missing},
    {"has a row although it is 0", counter_zero},
    {" was given away", counter_went_back},
    {"counters: a key of 1 bytes", counter_short},
};

struct spoiling {
    size_t which;
    struct spoilt store;
};

static enum error spoil(struct txn *txn, uint64_t at_us, void *context)
{
    const struct spoiling *spoiling = context;
    (void)at_us;
    spoils[spoiling->which].spoil(txn, &spoiling->store);
    return OK;
}

/* Both things in one partition: so its last row, the audit's, is there when its numbers go back. */
static struct spoilt names(struct fresh *fresh)
{
    struct spoilt s = {.parcel = fresh_uuid()};
    struct view *view = view_open_outside(fresh->store, 0);
    TEST_ASSERT(view != NULL);
    do
        s.audit = fresh_uuid();
    while (outbox_partition(&view->txn, &s.audit) != outbox_partition(&view->txn, &s.parcel));
    view_close(view);
    return s;
}

static void test_schema_check_finds_what_is_wrong_in_each_table(void)
{
    struct fresh fresh;
    struct spoiling spoiling = {.which = 0};
    fresh_open(&fresh);
    spoiling.store = names(&fresh);
    fill(&fresh, &spoiling.store);
    for (; spoiling.which < sizeof(spoils) / sizeof(spoils[0]); spoiling.which++) {
        TEST_CASE(spoils[spoiling.which].finding);
        TEST_CHECK(fresh_would_find(&fresh, spoil, &spoiling, spoils[spoiling.which].finding));
    }
    TEST_CASE("nothing of that was kept");
    fresh_close(&fresh);
}

TEST_LIST
= {
    {"schema: lists are sound", test_schema_lists_are_sound},
    {"schema: stored numbers are what they were", test_schema_stored_numbers_are_what_they_were},
    {"schema: lifecycles are sound", test_schema_lifecycles_are_sound},
    {"schema: counters and queues have one name each", test_schema_counters_and_queues_have_one_name_each},
    {"schema: check finds what is wrong in each table", test_schema_check_finds_what_is_wrong_in_each_table},
    {NULL, NULL},
};
