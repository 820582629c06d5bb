/* Strange rows: whole by their checksum, and yet with a key that is none in their table, or with a record of another kind. Whoever comes
 * to one of them says that it is damaged; nothing is written, and the others are as they were. */
#include "acutest.h"

#include "store/client.h"
#include "store/counter.h"
#include "store/due.h"
#include "store/event.h"
#include "store/ledger.h"
#include "store/meta.h"
#include "store/outbox.h"
#include "store/retention.h"
#include "tests/store/fresh.h"

#define AT_US UINT64_C(1700000000000000)
#define QUEUE DUE_JOB_TIME
#define SHARD 3u

/* A record that is shorter than any other. */
#define SCRAP_FIELDS(X) X(one, U8, 0, 1)
RECORD_STRUCT(scrap, SCRAP_FIELDS);
#define scrap_FIELD(name, TYPE, limit, since) RECORD_FIELD(scrap, name, TYPE, limit, since)
RECORD_CLASS(scrap, SCRAP_FIELDS, 1);

struct strange {
    uint32_t table;
    struct key key;
};

static void put(struct fresh *fresh, const struct strange *s)
{
    fresh_crumb(fresh, s->table, s->key);
}

static void take(struct fresh *fresh, const struct strange *s)
{
    fresh_take(fresh, s->table, s->key);
}

static struct view *look(struct fresh *fresh)
{
    struct view *view = view_open_outside(fresh->store, 0);
    TEST_ASSERT(view != NULL);
    return view;
}

/* The key cut off, or continued. */
static struct strange cut(uint32_t table, struct key key, uint32_t size)
{
    struct strange s = {table, key};
    while (s.key.size < size)
        key_add_u8(&s.key, 0xff);
    s.key.size = size;
    return s;
}

/* ---- the due index ---- */

static void check_due(struct fresh *fresh, uint64_t until_us, enum error rows, enum error keys,
                      uint32_t found, enum error first_one)
{
    struct due_entry entries[4], first;
    uint32_t count = 99;
    uint64_t next_us;
    struct view *view = look(fresh);
    TEST_CHECK(due_scan(&view->txn, QUEUE, SHARD, until_us, entries, 4, &count) == rows);
    TEST_CHECK(count == (rows ? 99 : found));
    TEST_CHECK(due_scan_keys(&view->txn, QUEUE, SHARD, until_us, entries, 4, &count) == keys);
    TEST_CHECK(keys || count == found);
    TEST_CHECK(due_first(&view->txn, QUEUE, SHARD, &first) == first_one);
    TEST_CHECK(due_next(&view->txn, QUEUE, SHARD, &next_us) == first_one);
    view_close(view);
}

static void test_due_entry_that_is_none(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    const struct uuid id = fresh_uuid();
    struct key key = due_key(QUEUE, SHARD, 10, &id);
    struct strange other = cut(TABLE_DUE, key, key.size), shorter = cut(TABLE_DUE, key, key.size - 1),
                   longer = cut(TABLE_DUE, key, key.size + 1);
    put(&fresh, &other); /* its key says all that is needed */
    check_due(&fresh, 9, OK, OK, 0, OK);
    check_due(&fresh, 10, ERR_DAMAGED, OK, 1, OK);
    put(&fresh, &longer);
    check_due(&fresh, 10, ERR_DAMAGED, ERR_DAMAGED, 1, OK);
    take(&fresh, &longer);
    take(&fresh, &other);
    put(&fresh, &shorter);
    check_due(&fresh, 9, ERR_DAMAGED, ERR_DAMAGED, 0, ERR_DAMAGED);
    fresh_flip(&fresh, TABLE_DUE, shorter.key); /* its value isn't what was written there, either */
    check_due(&fresh, 9, ERR_DAMAGED, ERR_DAMAGED, 0, ERR_DAMAGED);
    fresh_flip(&fresh, TABLE_DUE, shorter.key);
    take(&fresh, &shorter);
    check_due(&fresh, UINT64_MAX, OK, OK, 0, ERR_NOT_FOUND);
    fresh_close(&fresh);
}

/* ---- events ---- */

static enum error append(struct txn *txn, uint64_t at_us, void *context)
{
    struct event event = {.at_us = at_us, .domain = 9, .name = 1, .from_state = EVENT_NO_STATE};
    uint64_t seq;
    return event_append(txn, context, 0, &event, &seq, NULL);
}

static enum error remove_all(struct txn *txn, uint64_t at_us, void *context)
{
    bool left;
    (void)at_us;
    return event_remove_stream(txn, context, 100, &left);
}

static void test_event_that_is_none(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    struct uuid stream = fresh_uuid();
    struct strange strange[] = {cut(TABLE_EVENTS, event_key(&stream, 2), 24),
                                cut(TABLE_EVENTS, key_of_uuid(&stream), 17),
                                cut(TABLE_EVENTS, key_of_uuid(&stream), 16)};
    TEST_CHECK(fresh_do(&fresh, AT_US, append, &stream) == OK);
    for (size_t i = 0; i < 3; i++) {
        uint64_t last = 99;
        put(&fresh, &strange[i]);
        struct view *view = look(&fresh);
        enum error e = event_last(&view->txn, &stream, &last);
        TEST_CHECK(strange[i].key.size == 16 ? e == OK && last == 1 : e == ERR_DAMAGED && last == 99);
        view_close(view);
        TEST_CHECK(fresh_do(&fresh, AT_US, append, &stream) ==
                   (strange[i].key.size == 16 ? OK : ERR_DAMAGED));
        if (strange[i].key.size < 24) /* the shortest stands before all */
            TEST_CHECK(fresh_do(&fresh, AT_US, remove_all, &stream) ==
                       (strange[i].key.size == 16 ? OK : ERR_DAMAGED));
        take(&fresh, &strange[i]);
    }
    /* The record is an event's: only its key is no number of one. */
    struct event event = {.at_us = AT_US, .domain = 9, .name = 1};
    struct key last = cut(TABLE_EVENTS, key_of_uuid(&stream), 17).key;
    TEST_CHECK(fresh_do(&fresh, AT_US, append, &stream) == OK);
    fresh_put(&fresh, TABLE_EVENTS, last, &event);
    TEST_CHECK(fresh_do(&fresh, AT_US, append, &stream) == ERR_DAMAGED);
    fresh_take(&fresh, TABLE_EVENTS, last);
    TEST_CHECK(fresh_do(&fresh, AT_US, append, &stream) == OK);
    TEST_CHECK(fresh_do(&fresh, AT_US, remove_all, &stream) == OK);
    fresh_close(&fresh);
}

/* ---- the outbox ---- */

static enum error scan(struct fresh *fresh, uint16_t partition, struct outbox_row rows[4],
                       uint32_t *ret_count)
{
    struct view *view = look(fresh);
    enum error e = outbox_scan(&view->txn, partition, 0, rows, 4, ret_count);
    view_close(view);
    return e;
}

static void put_outbox(struct fresh *fresh, uint64_t seq)
{
    struct outbox row = {.at_us = AT_US, .topic = 7, .event = seq};
    fresh_put(fresh, TABLE_OUTBOX, outbox_key(1, seq), &row);
}

/* One whose key says where it stands is in nobody's way: not those before it, nor those behind it. */
static void test_outbox_row_that_is_none(void)
{
    struct fresh fresh;
    struct outbox_row rows[4];
    uint32_t count = 99;
    fresh_open(&fresh);
    struct strange other = cut(TABLE_OUTBOX, outbox_key(1, 5), 10),
                   strange[] = {cut(TABLE_OUTBOX, outbox_key(1, 5), 11),
                                cut(TABLE_OUTBOX, outbox_key(1, UINT64_MAX), 3)};
    put(&fresh, &other);
    TEST_CHECK(scan(&fresh, 1, rows, &count) == OK && count == 1);
    TEST_CHECK(rows[0].seq == 5 && rows[0].error == ERR_DAMAGED);
    put_outbox(&fresh, 4);
    put_outbox(&fresh, 6);
    fresh_flip(&fresh, TABLE_OUTBOX, other.key);
    TEST_CHECK(scan(&fresh, 1, rows, &count) == OK && count == 3);
    TEST_CHECK(rows[0].seq == 4 && !rows[0].error && rows[0].row.event == 4);
    TEST_CHECK(rows[1].seq == 5 && rows[1].error == ERR_DAMAGED && rows[1].row.event == 0);
    TEST_CHECK(rows[2].seq == 6 && !rows[2].error && rows[2].row.event == 6);
    fresh_flip(&fresh, TABLE_OUTBOX, other.key);
    take(&fresh, &other);
    for (size_t i = 0; i < 2; i++) {
        put(&fresh, &strange[i]);
        TEST_CHECK(scan(&fresh, 1, rows, &count) == ERR_DAMAGED && count == (i == 0 ? 1 : 2));
        take(&fresh, &strange[i]);
    }
    fresh_take(&fresh, TABLE_OUTBOX, outbox_key(1, 4));
    fresh_take(&fresh, TABLE_OUTBOX, outbox_key(1, 6));
    TEST_CHECK(scan(&fresh, 1, rows, &count) == OK && count == 0);
    fresh_close(&fresh);
}

/* Whoever puts without having asked for the level hears of it all the same: nothing of the command is kept. */
static enum error put_twice(struct txn *txn, uint64_t at_us, void *context)
{
    uint64_t seq = 99;
    const struct uuid *stream = context;
    outbox_put(txn, at_us, 7, stream, 1, &seq);
    TEST_CHECK(seq == 99 && txn->error == ERR_DAMAGED);
    txn->error = ERR_NO_SPACE; /* as if that had failed before */
    outbox_put(txn, at_us, 7, stream, 2, &seq);
    TEST_CHECK(seq == 99 && txn->error == ERR_NO_SPACE);
    return OK;
}

static void test_outbox_whose_numbers_cannot_be_read(void)
{
    struct fresh fresh;
    enum outbox_level level;
    fresh_open(&fresh);
    struct uuid stream = fresh_uuid();
    struct view *view = look(&fresh);
    struct key label = {.size = 0};
    key_add_u16(&label, outbox_partition(&view->txn, &stream));
    view_close(view);
    struct strange strange = {TABLE_COUNTERS, counter_key(COUNTER_OUTBOX_NEXT, key_span(&label))};
    put(&fresh, &strange);
    TEST_CHECK(fresh_do(&fresh, AT_US, put_twice, &stream) == ERR_NO_SPACE);
    view = look(&fresh);
    TEST_CHECK(outbox_level(&view->txn, key_u16(label.bytes), &level) == ERR_DAMAGED);
    TEST_CHECK(txn_rows(&view->txn, TABLE_OUTBOX) == 0);
    view_close(view);
    take(&fresh, &strange);
    fresh_close(&fresh);
}

/* ---- the ledger ---- */

/* Its record is a row's: only the key is wrong. */
struct misplaced {
    struct key key;
    struct ledger row;
};

static enum error put_misplaced(struct txn *txn, uint64_t at_us, void *context)
{
    const struct misplaced *m = context;
    (void)at_us;
    txn_write(txn, TABLE_LEDGER, key_span(&m->key), &m->row);
    return OK;
}

static enum error load(struct fresh *fresh)
{
    struct ledger_index *index;
    struct view *view = look(fresh);
    TEST_ASSERT(ledger_index_create(100, fresh->store->secret, &index) == OK);
    enum error e = ledger_index_load(index, &view->txn);
    view_close(view);
    ledger_index_destroy(index);
    return e;
}

static enum error expire(struct txn *txn, uint64_t at_us, void *context)
{
    uint32_t removed;
    bool more;
    (void)context;
    return ledger_expire(txn, at_us, 100, &removed, &more);
}

static void test_ledger_row_that_is_none(void)
{
    static const uint8_t keys[][9] = {{LEDGER_DAY, 0, 0, 0, 0, 0, 0, 0, 5},
                                      {LEDGER_LIFETIME_COUNT, 0, 0, 0, 0, 0, 0, 0, 5},
                                      {LEDGER_DAY, 0xff}};
    static const uint32_t sizes[] = {8, 9, 9};
    struct fresh fresh;
    fresh_open(&fresh);
    for (size_t i = 0; i < 3; i++) {
        struct misplaced m = {{.size = 0},
                              {.at_us = 1, .expires_us = 2, .scope = span_text("s"), .key = span_text("k")}};
        key_add(&m.key, keys[i], sizes[i]);
        struct strange s = {TABLE_LEDGER, m.key};
        TEST_CHECK(load(&fresh) == OK);
        TEST_CHECK(fresh_do(&fresh, AT_US, put_misplaced, &m) == OK && load(&fresh) == ERR_DAMAGED);
        /* One of no lifetime isn't among those whose time is over. */
        TEST_CHECK(fresh_do(&fresh, AT_US, expire, NULL) == (keys[i][0] == LEDGER_DAY ? ERR_DAMAGED : OK));
        take(&fresh, &s);
    }
    fresh_close(&fresh);
}

/* ---- the sweep ---- */

static enum error sweep(struct fresh *fresh, uint64_t at_us, uint64_t until_us, uint32_t *ret_removed)
{
    struct answer answer;
    const struct retention_sweep c = {.until_us = until_us};
    enum error e = batch_one(fresh->store, &retention_sweep_class, at_us, &c, &answer);
    if (!e)
        memcpy(ret_removed, answer.bytes, sizeof(*ret_removed));
    return e;
}

static void test_sweep_beside_what_is_none(void)
{
    struct fresh fresh;
    uint32_t removed = 99;
    fresh_open(&fresh);
    const struct uuid id = fresh_uuid();
    struct key key = due_key(DUE_RETENTION, RETENTION_SHARD, AT_US, &id);
    struct strange due = cut(TABLE_DUE, key, key.size - 1),
                   ledger = {.table = TABLE_LEDGER, .key = {.size = 0}};
    key_add_u8(&ledger.key, LEDGER_DAY);
    put(&fresh, &due);
    TEST_CHECK(sweep(&fresh, AT_US, 0, &removed) == ERR_DAMAGED && removed == 99);
    take(&fresh, &due);
    put(&fresh, &ledger);
    TEST_CHECK(sweep(&fresh, AT_US, 0, &removed) == ERR_DAMAGED && removed == 99);
    /* What can go goes all the same. */
    struct client_create c = {.id = fresh_uuid(), .from = span_text("192.0.2.1")};
    TEST_CHECK(batch_one(fresh.store, &client_create_class, AT_US, &c, NULL) == OK);
    TEST_CHECK(sweep(&fresh, AT_US + CLIENT_UNUSED_US, 0, &removed) == OK && removed == 1);
    take(&fresh, &ledger);
    TEST_CHECK(sweep(&fresh, AT_US, 0, &removed) == OK && removed == 0);
    fresh_close(&fresh);
}

/* Where it has been up to is noted, unless that can't be read, or is no time that can be noted. */
static void test_sweep_that_cannot_be_noted(void)
{
    struct fresh fresh;
    uint32_t removed = 99;
    const struct span no_label = {NULL, 0};
    fresh_open(&fresh);
    struct strange counter = {TABLE_COUNTERS, counter_key(COUNTER_RETAINED, no_label)};
    put(&fresh, &counter);
    TEST_CHECK(sweep(&fresh, AT_US, AT_US, &removed) == OK && removed == 0);
    take(&fresh, &counter);
    TEST_CHECK(sweep(&fresh, UINT64_MAX - 1, UINT64_MAX - 2, &removed) == OK);
    TEST_CHECK(fresh_counter(&fresh, COUNTER_RETAINED, no_label) == 0);
    TEST_CHECK(sweep(&fresh, AT_US, AT_US, &removed) == OK);
    TEST_CHECK(fresh_counter(&fresh, COUNTER_RETAINED, no_label) == (int64_t)AT_US);
    fresh_close(&fresh);
}

/* ---- what the store says of itself ---- */

/* A row of one byte's value, of another kind, or with a bit that isn't its own. */
static void spoil_meta(struct txn *txn, const char *name, unsigned way)
{
    const struct scrap scrap = {.one = 1};
    const struct meta meta = {.value = span_text("x")};
    struct span key = span_text(name);
    uint8_t bytes[64];
    MDB_dbi dbi = txn->store->environment.tables[TABLE_META];
    size_t size = way == 0 ? value_write(value_seed("meta"), key, &scrap_record, &scrap, bytes, sizeof(bytes))
                           : value_write(value_seed("meta"), key, &meta_record, &meta, bytes, sizeof(bytes));
    bytes[size - 1] ^= way == 2;
    MDB_val k = {key.size, (void *)(uintptr_t)key.bytes}, v = {size, bytes};
    TEST_ASSERT(size > 0 && mdb_put(txn->mdb, dbi, &k, &v, 0) == 0);
}

static enum error read_meta(struct txn *txn, uint64_t at_us, void *context)
{
    static const char *const names[] = {"format", "secret"};
    const unsigned *which = context;
    struct meta_format format;
    MDB_dbi dbi = txn->store->environment.tables[TABLE_META];
    (void)at_us;
    TEST_CHECK(meta_read_format(txn->mdb, dbi, &format) == OK);
    spoil_meta(txn, names[*which % 2], *which / 2);
    TEST_CHECK(meta_read_format(txn->mdb, dbi, &format) == ERR_DAMAGED);
    txn->writes++;
    txn->error = ERR_MEMORY; /* taken back */
    return OK;
}

static void test_meta_row_that_is_none(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    for (unsigned which = 0; which < 6; which++)
        TEST_CHECK(fresh_do(&fresh, AT_US, read_meta, &which) == ERR_MEMORY);
    fresh_reopen(&fresh);
    fresh_close(&fresh);
}

TEST_LIST
= {
    {"strange rows: a due entry that is none", test_due_entry_that_is_none},
    {"strange rows: an event that is none", test_event_that_is_none},
    {"strange rows: a row of the outbox that is none", test_outbox_row_that_is_none},
    {"strange rows: an outbox whose numbers can't be read", test_outbox_whose_numbers_cannot_be_read},
    {"strange rows: a row of the ledger that is none", test_ledger_row_that_is_none},
    {"strange rows: a sweep beside what is none", test_sweep_beside_what_is_none},
    {"strange rows: a sweep that can't be noted", test_sweep_that_cannot_be_noted},
    {"strange rows: what the store says of itself", test_meta_row_that_is_none},
    {NULL, NULL},
};
