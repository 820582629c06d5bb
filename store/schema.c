#include "store/schema.h"

#include "store/nouns.h"
#include "store/check.h"
#include "store/store.h"

/* 1 to 2: leases are in JOB_LEASE_SHARDS of the shards, no more in all. */
#define SCHEMA_FORMAT 2u
static const struct schema_migration migrations[] = {{1, job_lease_gather}};
STATIC_ASSERT(sizeof(migrations) / sizeof(migrations[0]) + 1 == SCHEMA_FORMAT, "each format has its step");

static const struct schema_table tables[] = {TABLES(SCHEMA_TABLE_ROW)};
static const struct command_class *const commands[] = {SCHEMA_COMMANDS(SCHEMA_COMMAND_ROW)};

STATIC_ASSERT(sizeof(tables) / sizeof(tables[0]) == TABLE_COUNT, "every table has its row");
STATIC_ASSERT((int)TABLE_COUNT <= (int)SCHEMA_TABLES_MAX, "LMDB has room for their names");

const struct schema store_schema = {
    .tables = tables,
    .tables_count = TABLE_COUNT,
    .commands = commands,
    .commands_count = SCHEMA_COMMANDS_COUNT,
    .format = SCHEMA_FORMAT,
    .migrations_count = sizeof(migrations) / sizeof(migrations[0]),
    .migrations = migrations,
};

const struct command_class *schema_command(const struct schema *schema, uint16_t code)
{
    for (uint32_t i = 0; i < schema->commands_count; i++)
        if (schema->commands[i]->code == code)
            return schema->commands[i];
    return NULL;
}

const struct command_class *schema_command_named(const struct schema *schema, struct span name)
{
    for (uint32_t i = 0; i < schema->commands_count; i++)
        if (span_equal(span_text(schema->commands[i]->name), name))
            return schema->commands[i];
    return NULL;
}

/* ---- what must be true of the rows that no command of ours writes by itself ---- */

void meta_check(struct check *check, struct txn *txn, struct span key, const void *value)
{
    const struct meta *meta = value;
    (void)txn;
    if (meta->value.size == 0)
        check_complain(check, "meta: '%.*s' is empty", (int)key.size, (const char *)key.bytes);
}

#define EVENT_KEY_SIZE 24u
#define DUE_KEY_SIZE   27u

/* The newest event of the stream before seq; 0: seq is its first. LMDB is asked directly, because whoever checks may
 * be in the middle of this very table. */
static uint64_t event_before(struct txn *txn, struct span key)
{
    MDB_val k = {.mv_size = key.size, .mv_data = (void *)(uintptr_t)key.bytes}, v;
    MDB_cursor *cursor;
    uint64_t seq = 0;
    if (mdb_cursor_open(txn->mdb, txn->store->environment.tables[TABLE_EVENTS], &cursor) != 0)
        return 0;
    if (mdb_cursor_get(cursor, &k, &v, MDB_SET) == 0 && mdb_cursor_get(cursor, &k, &v, MDB_PREV) == 0 &&
        k.mv_size == EVENT_KEY_SIZE && memcmp(k.mv_data, key.bytes, 16) == 0)
        seq = key_u64((const uint8_t *)k.mv_data + 16);
    mdb_cursor_close(cursor);
    return seq;
}

/* A long stream goes in several sweeps, from its first event on. Retention goes on with it: it is the first of its queue, or
 * behind others whose time is over as well. */
static bool being_removed(struct txn *txn, const struct uuid *stream)
{
    int64_t retained = 0;
    bool found = false, over = true;
    struct key from = {.size = 0};
    (void)counter_read(txn, COUNTER_RETAINED, span_of(NULL, 0), &retained);
    key_add_u8(&from, DUE_RETENTION);
    key_add_u16(&from, RETENTION_SHARD);
    struct scan scan = txn_scan(txn, TABLE_DUE, key_span(&from), from.size, SCAN_UP);
    for (uint32_t i = 0; i < RETENTION_ROWS_MAX && over && !found && scan_next(&scan); i++) {
        const uint8_t *key = scan.key.bytes;
        over = scan.key.size == DUE_KEY_SIZE &&
               (i == 0 || key_u64(key + 3) <= (uint64_t)retained + CALENDAR_NOTE_US);
        found = over && memcmp(key + 11, stream->bytes, sizeof(stream->bytes)) == 0;
    }
    (void)scan_end(&scan);
    return found;
}

void event_check(struct check *check, struct txn *txn, struct span key, const void *value)
{
    const struct event *event = value;
    char stream[UUID_TEXT_SIZE];
    struct event before;
    struct uuid id;
    uint64_t seq;
    if (key.size != EVENT_KEY_SIZE) {
        check_complain(check, "events: a key of %u bytes", key.size);
        return;
    }
    memcpy(id.bytes, key.bytes, sizeof(id.bytes));
    seq = key_u64((const uint8_t *)key.bytes + 16);
    uuid_format(&id, stream);
    if (seq == 0)
        check_complain(check, "events: %s has an event 0", stream);
    if (seq <= 1)
        return;
    switch (event_read(txn, &id, seq - 1, &before)) {
    case OK:
        if (before.at_us > event->at_us)
            check_complain(check, "events: %s: event %llu is older than the one before it", stream,
                           (unsigned long long)seq);
        break;
    case ERR_NOT_FOUND:
        if (event_before(txn, key) != 0)
            check_complain(check, "events: %s has a gap before event %llu", stream, (unsigned long long)seq);
        else if (!being_removed(txn, &id))
            check_complain(check, "events: %s begins with event %llu", stream, (unsigned long long)seq);
        break;
    default: /* damaged: the row itself is complained about when its turn comes */
        break;
    }
}

#define LEDGER_ROW_BITS 56u

/* At most one row has a scope and key. Rows may stand in another order than the one in which they expire: their times are
 * those of commands, and clocks go back. */
static void ledger_check_name(struct check *check, struct txn *txn, uint8_t lifetime, uint64_t number,
                              const struct ledger *row)
{
    uint8_t name[1 + LEDGER_SCOPE_MAX + LEDGER_KEY_MAX];
    struct ledger other;
    struct key other_key = {.size = 0};
    name[0] = (uint8_t)row->scope.size;
    memcpy(name + 1, row->scope.bytes, row->scope.size);
    memcpy(name + 1 + row->scope.size, row->key.bytes, row->key.size);
    uint64_t earlier = check_named(check, name, 1 + row->scope.size + row->key.size,
                                   (uint64_t)lifetime << LEDGER_ROW_BITS | number);
    if (!earlier)
        return;
    key_add_u8(&other_key, (uint8_t)(earlier >> LEDGER_ROW_BITS));
    key_add_u64(&other_key, earlier & ((UINT64_C(1) << LEDGER_ROW_BITS) - 1));
    if (txn_read(txn, TABLE_LEDGER, key_span(&other_key), &other) == OK &&
        span_equal(other.scope, row->scope) && span_equal(other.key, row->key))
        check_complain(check,
                       "ledger: row %llu of lifetime %u has the scope and key of row %llu of lifetime %u",
                       (unsigned long long)number, lifetime,
                       (unsigned long long)(earlier & ((UINT64_C(1) << LEDGER_ROW_BITS) - 1)),
                       (unsigned)(earlier >> LEDGER_ROW_BITS));
}

void ledger_check(struct check *check, struct txn *txn, struct span key, const void *value)
{
    const struct ledger *row = value;
    if (key.size != 9) {
        check_complain(check, "ledger: a key of %u bytes", key.size);
        return;
    }
    uint8_t lifetime = *(const uint8_t *)key.bytes;
    uint64_t number = key_u64((const uint8_t *)key.bytes + 1);
    if (number == 0 || number >> LEDGER_ROW_BITS) {
        check_complain(check, "ledger: %llu isn't the number of a row", (unsigned long long)number);
        return;
    }
    if (lifetime >= LEDGER_LIFETIME_COUNT)
        check_complain(check, "ledger: row %llu has the unknown lifetime %u", (unsigned long long)number,
                       lifetime);
    else if (row->expires_us != ledger_expiry(row->at_us, (enum ledger_lifetime)lifetime))
        check_complain(check, "ledger: row %llu of lifetime %u ends at another time than its lifetime says",
                       (unsigned long long)number, lifetime);
    ledger_check_name(check, txn, lifetime, number, row);
    check_count_least(check, COUNTER_LEDGER_NEXT, span_of(&lifetime, sizeof(lifetime)), (int64_t)number);
}

void counter_check(struct check *check, struct txn *txn, struct span key, const void *value)
{
    const struct counter *counter = value;
    (void)txn;
    if (key.size < 2 || key.size > 2 + COUNTER_LABEL_MAX)
        check_complain(check, "counters: a key of %u bytes", key.size);
    else if (counter->value == 0)
        check_complain(check, "counters: counter %u has a row although it is 0", key_u16(key.bytes));
}
