#include "tests/support/spoil.h"

#include <string.h>

#include "runtime/assert.h"
#include "store/store.h"
#include "tests/support/parcel.h"

#define SPOIL_FIELDS(X) X(unused, U8, 0, 1)
RECORD_STRUCT(spoil_order, SPOIL_FIELDS);
#define spoil_order_FIELD(name, TYPE, limit, since) RECORD_FIELD(spoil_order, name, TYPE, limit, since)
RECORD_CLASS(spoil_order, SPOIL_FIELDS, 1);

static enum error (*spoiling)(struct txn *txn);

static enum error spoil_apply(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    (void)at_us;
    (void)command;
    (void)answer;
    return spoiling(txn);
}

static const struct command_class spoil_class = {
    .name = "spoil", .record = &spoil_order_record, .apply = spoil_apply, .code = 9999};

#define COMMANDS_COUNT (SCHEMA_COMMANDS_COUNT + 4)
static const struct command_class *commands[COMMANDS_COUNT];

static struct schema made;

const struct schema *spoil_schema(void)
{
    const struct schema *from = &parcel_store_schema;
    ASSERT(from->commands_count + 1 <= COMMANDS_COUNT);
    memcpy(commands, from->commands, from->commands_count * sizeof(*commands));
    commands[from->commands_count] = &spoil_class;
    made = *from;
    made.commands = commands;
    made.commands_count = from->commands_count + 1;
    return &made;
}

enum error spoil(enum error (*how)(struct txn *txn))
{
    const struct spoil_order order = {.unused = 0};
    spoiling = how;
    return store_submit(&spoil_class, &order, NULL, 0, NULL, actor_deadline_ms(60000));
}

static MDB_dbi table_of(struct txn *txn, uint32_t table)
{
    return txn->store->environment.tables[table];
}

void spoil_value(struct txn *txn, uint32_t table, struct span key)
{
    uint8_t bytes[1024];
    MDB_val k = {.mv_size = key.size, .mv_data = (void *)(uintptr_t)key.bytes}, v;
    ASSERT(mdb_get(txn->mdb, table_of(txn, table), &k, &v) == 0 && v.mv_size <= sizeof(bytes));
    memcpy(bytes, v.mv_data, v.mv_size);
    bytes[v.mv_size / 2] ^= 1;
    v.mv_data = bytes;
    ASSERT(mdb_put(txn->mdb, table_of(txn, table), &k, &v, 0) == 0);
    txn->writes++;
}

void spoil_remove(struct txn *txn, uint32_t table, struct span key)
{
    MDB_val k = {.mv_size = key.size, .mv_data = (void *)(uintptr_t)key.bytes};
    ASSERT(mdb_del(txn->mdb, table_of(txn, table), &k, NULL) == 0);
    txn->writes++;
}
