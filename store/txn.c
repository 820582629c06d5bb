#include "store/txn.h"

#include <errno.h>

#include "runtime/actor.h"
#include "runtime/hash.h"
#include "store/aside.h"
#include "store/leaves.h"
#include "store/store.h"

#define TABLE_BIT(table) (UINT64_C(1) << (table))
STATIC_ASSERT(SCHEMA_TABLES_MAX <= 64, "a transaction has words with a bit for each table");

/* Whose new rows wait until somebody looks into the table, or until the commit. */
#define SET_ASIDE \
    (TABLE_BIT(TABLE_JOB_DEFINITIONS) | TABLE_BIT(TABLE_JOB_QUEUE) | TABLE_BIT(TABLE_CLIENT_JOBS))
STATIC_ASSERT(__builtin_popcountll(SET_ASIDE) == ASIDE_TABLES, "there is room for a row of each");

/* ---- LMDB's words in ours ---- */

enum error txn_error_of(int code)
{
    switch (code) {
    case MDB_SUCCESS:
        return OK;
    case MDB_NOTFOUND:
        return ERR_NOT_FOUND;
    case MDB_MAP_FULL:
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return ERR_NO_SPACE;
    case ENOMEM:
    case MDB_READERS_FULL:
    case MDB_TXN_FULL:
        return ERR_MEMORY;
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND:
    case MDB_PAGE_FULL:
    case MDB_CURSOR_FULL:
    case MDB_INVALID:
    case MDB_INCOMPATIBLE:
        return ERR_DAMAGED;
    case MDB_VERSION_MISMATCH:
        return ERR_NEWER;
    case MDB_PANIC:
        return ERR_UNAVAILABLE;
    case EACCES:
    case EPERM:
    case EROFS:
        return ERR_NOT_WRITABLE;
    default:
        return ERR_IO;
    }
}

static const struct schema_table *table_of(const struct txn *txn, uint32_t table)
{
    ASSERT(txn->mdb);
    ASSERT(table < txn->store->schema->tables_count);
    return &txn->store->schema->tables[table];
}

/* The writer holds a guarded section from begin to commit; a view's reads take one each, around LMDB and not around
 * what becomes of the value: a long checksum may be switched out, and a fault in it ends its actor alone. */
static void enter(const struct txn *txn)
{
    if (!txn->writing)
        actor_guard_begin();
}

static void leave(const struct txn *txn)
{
    if (!txn->writing)
        actor_guard_end();
}

static void failed(struct txn *txn, int code)
{
    if (txn->error)
        return;
    txn->code = code;
    txn->error = txn_error_of(code);
}

/* What LMDB says of a read, but for "not there": it does nothing more in this transaction, and a command has perhaps acted
 * upon what it read so far. So all of it goes: no memory, a failing disk, a page of its own that it can't make sense of.
 * That a row isn't there, or its value is damaged, is the command's to answer. */
static enum error read_error(struct txn *txn, int code)
{
    enum error e = txn_error_of(code);
    ASSERT(e != OK);
    if (e != ERR_NOT_FOUND)
        failed(txn, code);
    return e;
}

static MDB_val val_of(struct span span)
{
    ASSERT(span.size > 0);
    return (MDB_val){.mv_size = span.size, .mv_data = (void *)(uintptr_t)span.bytes};
}

/* ---- the greatest key ---- */

static struct beginning beginning_of(struct span key)
{
    uint64_t first, second;
    hash_load16(key.bytes, key.size, &first, &second);
    return (struct beginning){.high = __builtin_bswap64(first), .low = __builtin_bswap64(second)};
}

static bool more(struct beginning a, struct beginning b)
{
    return a.high > b.high || (a.high == b.high && a.low > b.low);
}

static bool rows_aside(const struct txn *txn, uint32_t table)
{
    return txn->writing && txn->aside->tables & TABLE_BIT(table);
}

bool txn_beyond(const struct txn *txn, uint32_t table, struct span key)
{
    return txn->writing && txn->bounded & TABLE_BIT(table) && !rows_aside(txn, table) &&
           more(beginning_of(key), txn->greatest[table]);
}

/* A row has come at the table's end, or anywhere. */
static void came(struct txn *txn, uint32_t table, struct span key, bool appended)
{
    struct beginning beginning = beginning_of(key);
    if (appended) {
        txn->greatest[table] = beginning;
        txn->bounded |= TABLE_BIT(table);
    } else if (more(beginning, txn->greatest[table])) {
        txn->bounded &= ~TABLE_BIT(table);
    }
}

/* ---- appending, and what was set aside ---- */

static void close_cursor(MDB_cursor **cursor)
{
    if (*cursor)
        mdb_cursor_close(*cursor);
    *cursor = NULL;
}

/* Appending with a cursor that stays finds the page without going down from the root. It is kept only as long as nothing
 * else writes into the table: what LMDB's own changes do to cursors of the same table is better not relied on. */
static int append(struct txn *txn, uint32_t table, MDB_val *k, MDB_val *v)
{
    MDB_cursor **cursor = &txn->appenders[table];
    close_cursor(&txn->places[table]);
    int code = *cursor ? 0 : mdb_cursor_open(txn->mdb, txn->store->environment.tables[table], cursor);
    return code ? code : mdb_cursor_put(*cursor, k, v, MDB_APPEND);
}

static void append_no_more(struct txn *txn, uint32_t table)
{
    close_cursor(&txn->appenders[table]);
}

/* Where a key of the table was last read or written: the next one is often in the same page, and LMDB needn't go down from the
 * root. None after another cursor has written into the table, or after a removal, which may have merged that page with another. */
static int place_of(struct txn *txn, uint32_t table, MDB_cursor **ret_cursor)
{
    MDB_cursor **cursor = &txn->places[table];
    int code = *cursor ? 0 : mdb_cursor_open(txn->mdb, txn->store->environment.tables[table], cursor);
    *ret_cursor = *cursor;
    return code;
}

static int read_at(struct txn *txn, uint32_t table, MDB_val *k, MDB_val *v)
{
    MDB_cursor *cursor;
    int code = place_of(txn, table, &cursor);
    return code ? code : mdb_cursor_get(cursor, k, v, MDB_SET);
}

static int put_at(struct txn *txn, uint32_t table, MDB_val *k, MDB_val *v, unsigned flags)
{
    MDB_cursor *cursor;
    int code = place_of(txn, table, &cursor);
    return code ? code : mdb_cursor_put(cursor, k, v, flags);
}

static int compare(struct txn *txn, uint32_t table, struct span a, struct span b)
{
    MDB_val left = val_of(a), right = val_of(b);
    return mdb_cmp(txn->mdb, txn->store->environment.tables[table], &left, &right);
}

/* Rows up to the table's last key, each beside the one before it. Returns the first of the others. */
static const struct aside_row *insert_rows(struct txn *txn, uint32_t table, const struct aside_row *row,
                                           int *ret_code)
{
    MDB_cursor *cursor;
    struct key last = {.size = 0};
    MDB_val k, v;
    *ret_code = mdb_cursor_open(txn->mdb, txn->store->environment.tables[table], &cursor);
    if (*ret_code)
        return row;
    *ret_code = mdb_cursor_get(cursor, &k, &v, MDB_LAST);
    if (*ret_code == MDB_NOTFOUND)
        *ret_code = 0;
    else if (*ret_code == 0 && k.mv_size <= KEY_SIZE_MAX)
        key_add(&last, k.mv_data, (uint32_t)k.mv_size);
    else if (*ret_code == 0)
        *ret_code = MDB_CORRUPTED;
    while (row && *ret_code == 0 && last.size > 0 && compare(txn, table, row->key, key_span(&last)) <= 0) {
        k = val_of(row->key);
        v = val_of(row->value);
        *ret_code = mdb_cursor_put(cursor, &k, &v, MDB_NOOVERWRITE);
        ASSERT(*ret_code != MDB_KEYEXIST);
        row = row->next;
    }
    mdb_cursor_close(cursor);
    return row;
}

/* What was set aside goes into its table. */
static void settle(struct txn *txn, uint32_t table)
{
    const struct aside_row *row = aside_take(txn->aside, table);
    int code = 0;
    if (txn->error)
        return;
    append_no_more(txn, table);
    close_cursor(&txn->places[table]);
    row = insert_rows(txn, table, row, &code);
    for (; row && code == 0; row = row->next) {
        MDB_val k = val_of(row->key), v = val_of(row->value);
        code = append(txn, table, &k, &v);
        ASSERT(code != MDB_KEYEXIST);
        came(txn, table, row->key, true);
    }
    if (code)
        failed(txn, code);
}

static void settle_all(struct txn *txn)
{
    while (txn->aside->tables)
        settle(txn, (uint32_t)__builtin_ctzll(txn->aside->tables));
}

/* Before anybody looks into the table, or changes it. */
static inline void settle_if(struct txn *txn, uint32_t table)
{
    if (rows_aside(txn, table))
        settle(txn, table);
}

/* ---- reading ---- */

/* Of a large file that was opened a moment ago: whether LMDB may go there (store/leaves.h). */
static enum error look(const struct txn *txn, uint32_t table, enum leaves_way way, struct span key)
{
    struct leaves *leaves = txn->store->environment.leaves;
    if (!leaves_pending(leaves))
        return OK;
    enter(txn);
    enum error e = leaves_look(leaves, table, way, key);
    leave(txn);
    return e;
}

enum error txn_get(struct txn *txn, uint32_t table, struct span key, uint8_t *ret_version,
                   struct span *ret_bytes)
{
    table_of(txn, table);
    settle_if(txn, table);
    const struct environment *e = &txn->store->environment;
    MDB_val k = val_of(key), v;
    if (txn->error) /* LMDB reads nothing from here on */
        return txn->error;
    if (txn_beyond(txn, table, key))
        return ERR_NOT_FOUND;
    enum error looked = look(txn, table, LEAVES_AT, key);
    if (looked)
        return looked;
    enter(txn);
    int code = txn->writing ? read_at(txn, table, &k, &v) : mdb_get(txn->mdb, e->tables[table], &k, &v);
    leave(txn);
    if (code == MDB_NOTFOUND && (looked = look(txn, table, LEAVES_AROUND, key)) != OK)
        return looked;
    if (code)
        return read_error(txn, code);
    struct span value = span_of(v.mv_data, v.mv_size);
    span_fetch(value); /* comes in while the key's checksum is made */
    return value_open(e->seeds[table], key, value, ret_version, ret_bytes);
}

enum error txn_read(struct txn *txn, uint32_t table, struct span key, void *ret_record)
{
    uint8_t version;
    struct span bytes;
    enum error e = txn_get(txn, table, key, &version, &bytes);
    return e ? e : record_decode(table_of(txn, table)->record, version, bytes, ret_record);
}

struct scan txn_scan(struct txn *txn, uint32_t table, struct span from, uint32_t prefix,
                     enum scan_direction direction)
{
    struct scan scan; /* `from` is large, and not cleared */
    scan.txn = txn;
    scan.table = table;
    scan.prefix_size = (uint8_t)prefix;
    scan.direction = (uint8_t)direction;
    scan.started = false;
    scan.version = 0;
    scan.key = scan.bytes = (struct span){.size = 0};
    table_of(txn, table);
    ASSERT(prefix <= from.size && from.size <= KEY_SIZE_MAX);
    memcpy(scan.from.bytes, from.bytes, from.size);
    scan.from.size = from.size;
    ASSERT(!(txn->scans & TABLE_BIT(table)));
    settle_if(txn, table);
    txn->scans |= TABLE_BIT(table);
    scan.error = txn->error;
    if (!scan.error && !txn->cursors[table]) {
        enter(txn);
        int code = mdb_cursor_open(txn->mdb, txn->store->environment.tables[table], &txn->cursors[table]);
        leave(txn);
        if (code) {
            txn->cursors[table] = NULL;
            scan.error = read_error(txn, code);
        }
    }
    scan.cursor = txn->cursors[table];
    return scan;
}

/* To the first row; an empty `from` is the table's end on that side. */
static int scan_start(struct scan *scan, MDB_val *k, MDB_val *v)
{
    bool up = scan->direction == SCAN_UP;
    if (!scan->from.size)
        return mdb_cursor_get(scan->cursor, k, v, up ? MDB_FIRST : MDB_LAST);
    struct span from = key_span(&scan->from);
    *k = val_of(from);
    int code = mdb_cursor_get(scan->cursor, k, v, MDB_SET_RANGE);
    if (up)
        return code;
    if (code == MDB_NOTFOUND)
        return mdb_cursor_get(scan->cursor, k, v, MDB_LAST);
    if (code == 0 && !span_equal(span_of(k->mv_data, k->mv_size), from))
        return mdb_cursor_get(scan->cursor, k, v, MDB_PREV);
    return code;
}

static bool scan_within(const struct scan *scan, const MDB_val *k)
{
    return k->mv_size >= scan->prefix_size && k->mv_size <= KEY_SIZE_MAX &&
           memcmp(k->mv_data, scan->from.bytes, scan->prefix_size) == 0;
}

static enum error scan_look(const struct scan *scan)
{
    enum leaves_way end = scan->direction == SCAN_UP ? LEAVES_FIRST : LEAVES_LAST;
    struct span key = scan->started ? scan->key : key_span(&scan->from);
    enum error e = look(scan->txn, scan->table, key.size ? LEAVES_AROUND : end, key);
    if (!e && !scan->started && scan->direction == SCAN_DOWN) /* there may be no row as great as that */
        e = look(scan->txn, scan->table, end, key);
    return e;
}

static bool scan_step(struct scan *scan)
{
    const struct environment *e = &scan->txn->store->environment;
    MDB_val k = {0}, v = {0};
    scan->error = scan->txn->error ? scan->txn->error : scan_look(scan);
    if (scan->error)
        return false;
    enter(scan->txn);
    int code = scan->started
                   ? mdb_cursor_get(scan->cursor, &k, &v, scan->direction == SCAN_UP ? MDB_NEXT : MDB_PREV)
                   : scan_start(scan, &k, &v);
    leave(scan->txn);
    scan->started = true;
    if (code == MDB_NOTFOUND)
        return false;
    if (code) {
        scan->error = read_error(scan->txn, code);
        return false;
    }
    if (!scan_within(scan, &k))
        return false;
    scan->key = span_of(k.mv_data, k.mv_size);
    scan->error = value_open(e->seeds[scan->table], scan->key, span_of(v.mv_data, v.mv_size), &scan->version,
                             &scan->bytes);
    return scan->error == OK;
}

bool scan_next(struct scan *scan)
{
    return !scan->error && scan_step(scan);
}

enum error scan_read(struct scan *scan, void *ret_record)
{
    const struct record_class *class = table_of(scan->txn, scan->table)->record;
    enum error e = record_decode(class, scan->version, scan->bytes, ret_record);
    if (e && !scan->error)
        scan->error = e;
    return e;
}

enum error scan_end(struct scan *scan)
{
    scan->txn->scans &= ~TABLE_BIT(scan->table);
    return scan->error;
}

uint64_t txn_rows(struct txn *txn, uint32_t table)
{
    MDB_stat stat;
    table_of(txn, table);
    settle_if(txn, table);
    enter(txn);
    int code = mdb_stat(txn->mdb, txn->store->environment.tables[table], &stat);
    leave(txn);
    ASSERT(code == 0);
    return stat.ms_entries;
}

uint64_t txn_number(struct txn *txn)
{
    return mdb_txn_id(txn->mdb);
}

/* ---- writing ---- */

static bool prepare(struct txn *txn, uint32_t table, struct span key, const void *record, MDB_val *ret_value)
{
    const struct schema_table *row = table_of(txn, table);
    ASSERT(txn->writing);
    txn->writes++;
    if (txn->error)
        return false;
    size_t size = value_write(txn->store->environment.seeds[table], key, row->record, record, txn->scratch,
                              VALUE_SIZE_MAX);
    ASSERT(size); /* commands were checked against their limits, and records are made of commands */
    *ret_value = (MDB_val){.mv_size = size, .mv_data = txn->scratch};
    return true;
}

void txn_write(struct txn *txn, uint32_t table, struct span key, const void *record)
{
    MDB_val k = val_of(key), v;
    settle_if(txn, table);
    if (!prepare(txn, table, key, record, &v))
        return;
    append_no_more(txn, table);
    int code = put_at(txn, table, &k, &v, 0);
    if (code)
        failed(txn, code);
    came(txn, table, key, false);
}

/* False: the key is there, and nothing is written. */
static bool put_new(struct txn *txn, uint32_t table, struct span key, MDB_val v)
{
    MDB_val k = val_of(key), data;
    int code = MDB_KEYEXIST;
    bool appended = false;
    data = v;
    if (!(txn->unsorted & TABLE_BIT(table)))
        code = append(txn, table, &k, &data);
    if (code == MDB_KEYEXIST) { /* not the greatest: that is what appending calls it */
        txn->unsorted |= TABLE_BIT(table);
        append_no_more(txn, table);
        code = put_at(txn, table, &k, &v, MDB_NOOVERWRITE);
    } else {
        appended = code == 0;
    }
    if (code == MDB_KEYEXIST)
        return false;
    if (code)
        failed(txn, code);
    came(txn, table, key, appended);
    return true;
}

/* When there is no room any more, what is there goes into its tables first. */
static void add_aside(struct txn *txn, uint32_t table, struct span key, MDB_val v)
{
    struct span value = span_of(v.mv_data, v.mv_size);
    bool small = value.size <= ASIDE_VALUE_MAX;
    if (small && aside_put(txn->aside, table, key, value))
        return;
    if (small)
        settle_all(txn);
    else
        settle_if(txn, table);
    if (small && aside_put(txn->aside, table, key, value))
        return;
    bool added = put_new(txn, table, key, v);
    ASSERT(added);
}

void txn_add(struct txn *txn, uint32_t table, struct span key, const void *record)
{
    MDB_val v;
    if (!prepare(txn, table, key, record, &v))
        return;
    if (SET_ASIDE & TABLE_BIT(table)) {
        add_aside(txn, table, key, v);
        return;
    }
    bool added = put_new(txn, table, key, v);
    ASSERT(added);
}

enum error txn_try_add(struct txn *txn, uint32_t table, struct span key, const void *record)
{
    uint32_t writes = txn->writes;
    MDB_val v;
    settle_if(txn, table);
    if (!prepare(txn, table, key, record, &v) || put_new(txn, table, key, v))
        return OK;
    txn->writes = writes;
    return ERR_EXISTS;
}

enum error txn_try_remove(struct txn *txn, uint32_t table, struct span key)
{
    MDB_val k = val_of(key);
    table_of(txn, table);
    ASSERT(txn->writing);
    settle_if(txn, table);
    txn->writes++;
    if (txn->error)
        return OK;
    append_no_more(txn, table);
    close_cursor(&txn->places[table]);
    int code = mdb_del(txn->mdb, txn->store->environment.tables[table], &k, NULL);
    if (code == MDB_NOTFOUND) {
        txn->writes--;
        return ERR_NOT_FOUND;
    }
    if (code)
        failed(txn, code);
    return OK;
}

void txn_remove(struct txn *txn, uint32_t table, struct span key)
{
    enum error e = txn_try_remove(txn, table, key);
    ASSERT(e == OK);
}

void txn_wake(struct txn *txn, uint32_t topic)
{
    ASSERT(topic < TXN_TOPICS);
    txn->wakes[topic / 64] |= UINT64_C(1) << topic % 64;
}

void txn_wake_one(struct txn *txn, uint32_t topic)
{
    ASSERT(topic < TXN_TOPICS && (txn->few.count == 0 || txn->few.topic == topic));
    txn->few = (struct txn_few){.topic = topic, .count = txn->few.count + 1};
}

void txn_wake_part(struct txn *txn, uint32_t topic, uint64_t part, uint64_t other)
{
    ASSERT(topic < TXN_TOPICS && part != 0 && other != 0);
    for (uint32_t i = 0; i < txn->parts_count; i++) {
        struct txn_part *there = &txn->parts[i];
        if (there->topic == topic && there->part == part && there->other == other) {
            there->count++;
            return;
        }
    }
    if (txn->parts_count == TXN_PARTS_MAX)
        txn_wake(txn, topic);
    else
        txn->parts[txn->parts_count++] =
            (struct txn_part){.topic = topic, .count = 1, .part = part, .other = other};
}

static void forget_wakes(struct txn *txn)
{
    memset(txn->wakes, 0, sizeof(txn->wakes));
    txn->few.count = 0;
    txn->parts_count = 0;
}

/* ---- from begin to end ---- */

void txn_open(struct txn *txn, struct store *store, MDB_txn *mdb)
{
    ASSERT(!txn->mdb && mdb);
    txn->mdb = mdb;
    txn->store = store;
    txn->writing = false;
    txn->error = OK;
    txn->scans = 0;
    memset(txn->cursors, 0, sizeof(txn->cursors));
}

enum error txn_begin(struct txn *txn)
{
    MDB_txn *mdb;
    ASSERT(!txn->mdb);
    int code = mdb_txn_begin(txn->store->environment.mdb, NULL, 0, &mdb);
    if (code) {
        txn->code = code;
        return code == ENOMEM ? ERR_MEMORY : ERR_UNAVAILABLE;
    }
    txn_open(txn, txn->store, mdb);
    txn->writing = true;
    txn->code = 0;
    txn->writes = 0;
    txn->unsorted = 0;
    txn->bounded = 0;
    memset(txn->appenders, 0, sizeof(txn->appenders)); /* LMDB has closed them */
    memset(txn->places, 0, sizeof(txn->places));
    txn->counters_count = 0;
    aside_clear(txn->aside);
    forget_wakes(txn);
    return OK;
}

enum error txn_commit(struct txn *txn)
{
    ASSERT(txn->writing && !txn->scans);
    settle_all(txn);
    if (txn->error) {
        enum error e = txn->error;
        txn_abort(txn);
        return e;
    }
    int code = mdb_txn_commit(txn->mdb); /* closes its cursors, too */
    txn->mdb = NULL;
    txn->writing = false;
    txn->code = code;
    if (code)
        forget_wakes(txn);
    return code ? ERR_IO : OK;
}

void txn_abort(struct txn *txn)
{
    ASSERT(txn->writing);
    mdb_txn_abort(txn->mdb);
    txn->mdb = NULL;
    txn->writing = false;
    aside_clear(txn->aside);
    forget_wakes(txn);
    txn->counters_count = 0;
}

void txn_release(struct txn *txn)
{
    ASSERT(!txn->writing);
    for (uint32_t i = 0; i < SCHEMA_TABLES_MAX; i++)
        if (txn->cursors[i])
            mdb_cursor_close(txn->cursors[i]);
    memset(txn->cursors, 0, sizeof(txn->cursors));
    txn->mdb = NULL;
    txn->scans = 0;
}
