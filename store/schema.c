#include "store/schema.h"

#include "store/nouns.h"
#include "store/check.h"
#include "store/store.h"

#define SCHEMA_FORMAT 1u

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
    case ERR_NOT_FOUND: /* a stream may begin later than at 1 while it is being removed, but has no gaps */
        if (event_before(txn, key) != 0)
            check_complain(check, "events: %s has a gap before event %llu", stream, (unsigned long long)seq);
        break;
    default: /* damaged: the row itself is complained about when its turn comes */
        break;
    }
}

void ledger_check(struct check *check, struct txn *txn, struct span key, const void *value)
{
    const struct ledger *row = value;
    (void)txn;
    if (key.size != 9) {
        check_complain(check, "ledger: a key of %u bytes", key.size);
        return;
    }
    uint8_t lifetime = *(const uint8_t *)key.bytes;
    uint64_t number = key_u64((const uint8_t *)key.bytes + 1);
    if (lifetime >= LEDGER_LIFETIME_COUNT)
        check_complain(check, "ledger: row %llu has the unknown lifetime %u", (unsigned long long)number,
                       lifetime);
    if (row->expires_us < row->at_us)
        check_complain(check, "ledger: row %llu of lifetime %u ends before it begins",
                       (unsigned long long)number, lifetime);
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
