/* Retention: what is due goes, at its time and with all that belongs to it, a bounded number at a time. */
#include "acutest.h"

#include <stdlib.h>

#include "store/counter.h"
#include "store/event.h"
#include "store/ledger.h"
#include "store/outbox.h"
#include "store/retention.h"
#include "tests/store/fresh.h"
#include "tests/support/spoil.h"

#define DAY_US (UINT64_C(86400) * 1000000)
#define AT_US  UINT64_C(1700000000000000)

struct swept {
    uint32_t removed, more;
};

static struct swept sweep(struct fresh *fresh, uint64_t now_us, uint32_t limit)
{
    struct retention_sweep c = {.limit = limit};
    struct swept swept = {.removed = 99999, .more = 99999};
    struct answer answer;
    TEST_CHECK(batch_one(fresh->store, &retention_sweep_class, now_us, &c, &answer) == OK);
    if (TEST_CHECK(answer.size == sizeof(swept)))
        memcpy(&swept, answer.bytes, sizeof(swept));
    return swept;
}

#define CHECK_SWEPT(SWEEP, REMOVED, MORE)                                                        \
    do {                                                                                         \
        struct swept swept_ = (SWEEP);                                                           \
        TEST_CHECK_(swept_.removed == (REMOVED) && swept_.more == (MORE), "removed %u, more %u", \
                    swept_.removed, swept_.more);                                                \
    } while (0)

static struct view *look(struct fresh *fresh)
{
    struct view *view = view_open_outside(fresh->store, 0);
    TEST_ASSERT(view != NULL);
    return view;
}

static uint64_t rows(struct fresh *fresh, uint32_t table)
{
    struct view *view = look(fresh);
    uint64_t count = txn_rows(&view->txn, table);
    view_close(view);
    return count;
}

static bool there(struct fresh *fresh, const struct uuid *id)
{
    struct view *view = look(fresh);
    struct key key = key_of_uuid(id);
    struct parcel parcel;
    enum error e = txn_read(&view->txn, TABLE_PARCELS, key_span(&key), &parcel);
    view_close(view);
    TEST_CHECK(e == OK || e == ERR_NOT_FOUND);
    return e == OK;
}

static enum error send(struct fresh *fresh, const struct uuid *id, uint64_t due_us)
{
    struct parcel_send c = {.id = *id, .due_us = due_us, .body = span_text("books")};
    return batch_one(fresh->store, &parcel_send_class, AT_US, &c, NULL);
}

static struct uuid send_new(struct fresh *fresh, uint64_t due_us)
{
    struct uuid id = fresh_uuid();
    TEST_CHECK(send(fresh, &id, due_us) == OK);
    return id;
}

/* Many at once, each with an idempotency key. */
static void send_many(struct fresh *fresh, uint32_t count, uint64_t due_us)
{
    static struct batch_item items[BATCH_MAX];
    static uint8_t bytes[BATCH_MAX][256];
    TEST_ASSERT(count <= BATCH_MAX);
    for (uint32_t i = 0; i < count; i++) {
        char key[16];
        snprintf(key, sizeof(key), "key %u", i);
        struct parcel_send c = {
            .id = fresh_uuid(), .due_us = due_us, .scope = span_text("many"), .key = span_text(key)};
        size_t size = record_encode(&parcel_send_record, &c, bytes[i], sizeof(bytes[i]));
        items[i] = (struct batch_item){
            .class = &parcel_send_class, .at_us = AT_US, .bytes = span_of(bytes[i], size)};
    }
    TEST_CHECK(batch_run(fresh->store, items, count) == OK);
    for (uint32_t i = 0; i < count; i++)
        TEST_CHECK(items[i].answer.error == OK);
}

/* ---- what goes, and when ---- */

static void test_retention_nothing_due_writes_nothing(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    send_new(&fresh, AT_US + 10);
    send_new(&fresh, 0); /* kept for ever */
    struct view *view = look(&fresh);
    uint64_t before = txn_number(&view->txn);
    view_close(view);
    CHECK_SWEPT(sweep(&fresh, AT_US + 9, 0), 0, 0);
    view = look(&fresh);
    TEST_CHECK(txn_number(&view->txn) == before);
    view_close(view);
    TEST_CHECK(rows(&fresh, TABLE_PARCELS) == 2);
    fresh_close(&fresh);
}

static void test_retention_at_its_time_with_all_that_belongs_to_it(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    struct uuid id = send_new(&fresh, AT_US + 10), kept = send_new(&fresh, AT_US + 11);
    struct parcel_move move = {.id = id, .event = PARCEL_SEND};
    TEST_CHECK(batch_one(fresh.store, &parcel_move_class, AT_US, &move, NULL) == OK);
    struct view *view = look(&fresh);
    uint16_t partition = outbox_partition(&view->txn, &id);
    view_close(view);
    struct outbox_claim_command claim = {.partition = partition, .holder = 1};
    TEST_CHECK(batch_one(fresh.store, &outbox_claim_class, AT_US, &claim, NULL) == OK);
    struct outbox_bury_command bury = {.partition = partition, .seq = 1, .fence = 1};
    TEST_CHECK(batch_one(fresh.store, &outbox_bury_class, AT_US, &bury, NULL) == OK);
    fresh_reopen(&fresh); /* nobody ran when its time came */
    TEST_CHECK(there(&fresh, &id));
    CHECK_SWEPT(sweep(&fresh, AT_US + 10, 0), 1, 0);
    TEST_CHECK(!there(&fresh, &id) && there(&fresh, &kept));
    TEST_CHECK(rows(&fresh, TABLE_EVENTS) == 1 && rows(&fresh, TABLE_OUTBOX) == 1 &&
               rows(&fresh, TABLE_DEAD) == 0 && rows(&fresh, TABLE_DUE) == 1);
    fresh_sound(&fresh);
    CHECK_SWEPT(sweep(&fresh, UINT64_MAX, 0), 1, 0);
    fresh_close(&fresh);
}

static void test_retention_dropped_before_its_time(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    struct uuid id = send_new(&fresh, AT_US + 10);
    struct parcel_move move = {.id = id, .event = PARCEL_LOSE};
    struct parcel_drop drop = {.id = id};
    TEST_CHECK(batch_one(fresh.store, &parcel_drop_class, AT_US, &drop, NULL) == ERR_CONFLICT);
    TEST_CHECK(batch_one(fresh.store, &parcel_move_class, AT_US, &move, NULL) == OK);
    TEST_CHECK(batch_one(fresh.store, &parcel_drop_class, AT_US, &drop, NULL) == OK);
    TEST_CHECK(rows(&fresh, TABLE_DUE) == 0);
    CHECK_SWEPT(sweep(&fresh, AT_US + 10, 0), 0, 0);
    fresh_close(&fresh);
}

/* ---- so many at a time ---- */

static void test_retention_is_bounded(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    send_many(&fresh, 600, AT_US + 1);
    uint64_t now_us = AT_US + 1; /* of the ledger nothing is over yet */
    CHECK_SWEPT(sweep(&fresh, now_us, 10), 10, 1);
    CHECK_SWEPT(sweep(&fresh, now_us, RETENTION_ROWS_MAX + 1), RETENTION_ROWS_MAX, 1);
    TEST_CHECK(rows(&fresh, TABLE_PARCELS) == 590 - RETENTION_ROWS_MAX);
    fresh_sound(&fresh);
    CHECK_SWEPT(sweep(&fresh, now_us, 0), RETENTION_ROWS_MAX, 1);
    CHECK_SWEPT(sweep(&fresh, now_us, 0), 590 - 2 * RETENTION_ROWS_MAX, 0);
    CHECK_SWEPT(sweep(&fresh, now_us, 0), 0, 0);
    TEST_CHECK(rows(&fresh, TABLE_PARCELS) == 0 && rows(&fresh, TABLE_LEDGER) == 600);
    fresh_close(&fresh);
}

static void test_retention_of_the_ledger(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    send_many(&fresh, 300, 0);
    CHECK_SWEPT(sweep(&fresh, AT_US + DAY_US - 1, 0), 0, 0);
    CHECK_SWEPT(sweep(&fresh, AT_US + DAY_US, 0), RETENTION_ROWS_MAX, 1);
    TEST_CHECK(rows(&fresh, TABLE_LEDGER) == 300 - RETENTION_ROWS_MAX);
    CHECK_SWEPT(sweep(&fresh, AT_US + DAY_US, 0), 300 - RETENTION_ROWS_MAX, 0);
    TEST_CHECK(rows(&fresh, TABLE_LEDGER) == 0 && rows(&fresh, TABLE_PARCELS) == 300);
    fresh_close(&fresh);
}

static void test_retention_limits_things_and_ledger_rows_each(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    send_many(&fresh, 20, AT_US + 1);
    CHECK_SWEPT(sweep(&fresh, AT_US + DAY_US, 15), 30, 1);
    TEST_CHECK(rows(&fresh, TABLE_LEDGER) == 5 && rows(&fresh, TABLE_PARCELS) == 5);
    CHECK_SWEPT(sweep(&fresh, AT_US + DAY_US, 15), 10, 0);
    fresh_close(&fresh);
}

/* ---- kinds of the test's own: streams of events that go in pieces, and things that are gone already ---- */

enum { KIND_STREAM = 1001, KIND_GONE = 1002, KIND_UNKNOWN = 1003, PIECE = 4 };

static enum error stream_expire(struct txn *txn, const struct due_entry *entry)
{
    bool left;
    enum error e = event_remove_stream(txn, &entry->id, PIECE, &left);
    if (e)
        return e;
    return left ? ERR_LIMIT : OK;
}

static enum error stream_find(struct txn *txn, const struct due_entry *entry)
{
    uint64_t last;
    enum error e = event_last(txn, &entry->id, &last);
    return e ? e : last > 0 ? OK : ERR_NOT_FOUND;
}

static enum error gone_expire(struct txn *txn, const struct due_entry *entry)
{
    (void)txn;
    (void)entry;
    return ERR_NOT_FOUND;
}

struct stream {
    struct uuid id;
    uint64_t due_us;
    uint32_t events;
    uint16_t kind;
};

static enum error make_stream(struct txn *txn, uint64_t at_us, void *context)
{
    const struct stream *stream = context;
    for (uint32_t i = 0; i < stream->events; i++) {
        struct event event = {.at_us = at_us, .domain = 91, .name = 1};
        uint64_t seq;
        TEST_CHECK(event_append(txn, &stream->id, 0, &event, &seq, NULL) == OK && seq == i + 1);
    }
    retention_set(txn, stream->kind, stream->due_us, &stream->id, 0);
    return OK;
}

static void test_retention_continues_what_is_too_much_for_one_sweep(void)
{
    struct fresh fresh;
    struct stream stream = {
        .id = fresh_uuid(), .due_us = AT_US + 1, .events = 2 * PIECE + 2, .kind = KIND_STREAM};
    fresh_open(&fresh);
    retention_extend(KIND_STREAM, stream_expire, stream_find);
    retention_extend(KIND_STREAM, stream_expire, stream_find); /* the same again is fine */
    TEST_CHECK(fresh_do(&fresh, AT_US, make_stream, &stream) == OK);
    struct uuid behind = send_new(&fresh, AT_US + 2), before = send_new(&fresh, AT_US);
    CHECK_SWEPT(sweep(&fresh, AT_US + 2, 0), 1, 1); /* the parcel before it */
    TEST_CHECK(!there(&fresh, &before) && there(&fresh, &behind));
    TEST_CHECK(rows(&fresh, TABLE_EVENTS) == PIECE + 2 + 1 && rows(&fresh, TABLE_DUE) == 2);
    fresh_sound(&fresh);
    fresh_reopen(&fresh);
    CHECK_SWEPT(sweep(&fresh, AT_US + 2, 0), 0, 1);
    TEST_CHECK(rows(&fresh, TABLE_EVENTS) == 2 + 1);
    CHECK_SWEPT(sweep(&fresh, AT_US + 2, 0), 2, 0); /* its end, and who waited behind it */
    TEST_CHECK(rows(&fresh, TABLE_EVENTS) == 0 && rows(&fresh, TABLE_DUE) == 0);
    fresh_close(&fresh);
}

static void test_retention_of_what_is_gone_forgets_it(void)
{
    struct fresh fresh;
    struct stream stream = {.id = fresh_uuid(), .due_us = AT_US + 1, .kind = KIND_GONE};
    char text[FRESH_TEXT];
    fresh_open(&fresh);
    retention_extend(KIND_GONE, gone_expire, gone_expire);
    TEST_CHECK(fresh_do(&fresh, AT_US, make_stream, &stream) == OK);
    TEST_CHECK(fresh_findings(&fresh, text) == 1 && strstr(text, "isn't there") != NULL);
    CHECK_SWEPT(sweep(&fresh, AT_US + 1, 0), 0, 0);
    TEST_CHECK(rows(&fresh, TABLE_DUE) == 0);
    fresh_close(&fresh);
}

/* A later release's kind, met by this one: kept, and not in the way. */
static void test_retention_of_an_unknown_kind_is_put_off(void)
{
    struct fresh fresh;
    struct stream stream = {.id = fresh_uuid(), .due_us = AT_US + 1, .kind = KIND_UNKNOWN};
    char text[FRESH_TEXT];
    fresh_open(&fresh);
    TEST_CHECK(fresh_do(&fresh, AT_US, make_stream, &stream) == OK);
    struct uuid behind = send_new(&fresh, AT_US + 2);
    CHECK_SWEPT(sweep(&fresh, AT_US + 5, 0), 1, 0);
    TEST_CHECK(!there(&fresh, &behind));
    TEST_CHECK(rows(&fresh, TABLE_DUE) == 1);
    TEST_CHECK(fresh_findings(&fresh, text) == 1 && strstr(text, "unknown kind 1003") != NULL);
    struct view *view = look(&fresh);
    uint64_t due_us = 0;
    TEST_CHECK(due_next(&view->txn, DUE_RETENTION, RETENTION_SHARD, &due_us) == OK);
    TEST_CHECK(due_us == AT_US + 5 + RETENTION_AGAIN_US);
    view_close(view);
    retention_extend(KIND_UNKNOWN, gone_expire, gone_expire); /* the later release is back */
    CHECK_SWEPT(sweep(&fresh, AT_US + 5 + RETENTION_AGAIN_US, 0), 0, 0);
    TEST_CHECK(rows(&fresh, TABLE_DUE) == 0);
    fresh_close(&fresh);
}

/* ---- damage ---- */

static enum error scribble(struct txn *txn, uint64_t at_us, void *context)
{
    MDB_val k = {.mv_size = 16, .mv_data = context}, v = {.mv_size = 5, .mv_data = (char[]){"12345"}};
    (void)at_us;
    TEST_CHECK(mdb_put(txn->mdb, txn->store->environment.tables[TABLE_PARCELS], &k, &v, 0) == 0);
    txn->writes++;
    return OK;
}

struct again {
    struct uuid id;
    struct parcel parcel;
};

static enum error mend(struct txn *txn, uint64_t at_us, void *context)
{
    struct again *again = context;
    struct key key = key_of_uuid(&again->id);
    (void)at_us;
    txn_write(txn, TABLE_PARCELS, key_span(&key), &again->parcel);
    return OK;
}

static void test_retention_passes_over_what_is_damaged_and_tries_again(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    uint64_t row = 1;
    struct again again = {.id = send_new(&fresh, AT_US + 1)};
    struct uuid behind = send_new(&fresh, AT_US + 2);
    TEST_CHECK(fresh_do(&fresh, AT_US, scribble, again.id.bytes) == OK);
    CHECK_SWEPT(sweep(&fresh, AT_US + 5, 0), 1, 0);
    TEST_CHECK(!there(&fresh, &behind) && rows(&fresh, TABLE_PARCELS) == 1 && rows(&fresh, TABLE_DUE) == 1);
    TEST_CHECK(rows(&fresh, TABLE_EVENTS) == 1); /* nothing of it has gone */
    CHECK_SWEPT(sweep(&fresh, AT_US + 5, 0), 0, 0);
    again.parcel = (struct parcel){.at_us = AT_US,
                                   .moved_us = AT_US,
                                   .due_us = AT_US + 5 + RETENTION_AGAIN_US,
                                   .rows = span_of(&row, sizeof(row))};
    TEST_CHECK(fresh_do(&fresh, AT_US, mend, &again) == OK);
    fresh_sound(&fresh);
    CHECK_SWEPT(sweep(&fresh, AT_US + 5 + RETENTION_AGAIN_US - 1, 0), 0, 0);
    CHECK_SWEPT(sweep(&fresh, AT_US + 5 + RETENTION_AGAIN_US, 0), 1, 0);
    TEST_CHECK(rows(&fresh, TABLE_PARCELS) == 0);
    fresh_close(&fresh);
}

static enum error spoil_entry(struct txn *txn, uint64_t at_us, void *context)
{
    const struct key *key = context;
    (void)at_us;
    spoil_value(txn, TABLE_DUE, key_span(key));
    txn->writes++;
    return OK;
}

static enum error forget_entry(struct txn *txn, uint64_t at_us, void *context)
{
    const struct stream *stream = context;
    (void)at_us;
    return due_try_clear(txn, DUE_RETENTION, RETENTION_SHARD, stream->due_us, &stream->id);
}

/* What it was about is found by its id; one that is nothing's is in nobody's way. */
static void test_retention_of_entries_that_are_damaged_goes_on(void)
{
    struct fresh fresh;
    struct stream nothing = {.id = fresh_uuid(), .due_us = AT_US, .kind = KIND_GONE};
    fresh_open(&fresh);
    TEST_CHECK(fresh_do(&fresh, AT_US, make_stream, &nothing) == OK);
    struct uuid first = send_new(&fresh, AT_US + 1), second = send_new(&fresh, AT_US + 2);
    struct key entry = due_key(DUE_RETENTION, RETENTION_SHARD, AT_US + 1, &first),
               other = due_key(DUE_RETENTION, RETENTION_SHARD, AT_US, &nothing.id);
    TEST_CHECK(fresh_do(&fresh, AT_US, spoil_entry, &entry) == OK &&
               fresh_do(&fresh, AT_US, spoil_entry, &other) == OK);
    CHECK_SWEPT(sweep(&fresh, AT_US + 5, 0), 2, 0);
    TEST_CHECK(!there(&fresh, &first) && !there(&fresh, &second) && rows(&fresh, TABLE_DUE) == 1);
    nothing.due_us = AT_US + 5 + RETENTION_AGAIN_US;
    TEST_CHECK(fresh_do(&fresh, AT_US, forget_entry, &nothing) == OK);
    fresh_close(&fresh);
}

/* More damaged things than a sweep handles don't keep the sound one behind them for ever. */
static void test_retention_of_many_damaged_things_ends(void)
{
    enum { DAMAGED = RETENTION_ROWS_MAX + 10 };
    struct fresh fresh;
    fresh_open(&fresh);
    for (uint32_t i = 0; i < DAMAGED; i++) {
        struct stream stream = {.id = fresh_uuid(), .due_us = AT_US + 1, .kind = KIND_GONE + 7};
        TEST_CHECK(fresh_do(&fresh, AT_US, make_stream, &stream) == OK);
    }
    struct uuid behind = send_new(&fresh, AT_US + 2);
    CHECK_SWEPT(sweep(&fresh, AT_US + 5, 0), 0, 1);
    CHECK_SWEPT(sweep(&fresh, AT_US + 5, 0), 1, 0);
    TEST_CHECK(!there(&fresh, &behind));
    TEST_CHECK(rows(&fresh, TABLE_DUE) == DAMAGED);
    retention_extend(KIND_GONE + 7, gone_expire, gone_expire);
    CHECK_SWEPT(sweep(&fresh, AT_US + 5 + RETENTION_AGAIN_US, 0), 0, 1);
    CHECK_SWEPT(sweep(&fresh, AT_US + 5 + RETENTION_AGAIN_US, 0), 0, 0);
    TEST_CHECK(rows(&fresh, TABLE_DUE) == 0);
    fresh_close(&fresh);
}

/* At the end of all time there is no later. */
static void test_retention_put_off_at_the_end_of_time(void)
{
    struct fresh fresh;
    struct stream stream = {.id = fresh_uuid(), .due_us = UINT64_MAX, .kind = KIND_GONE + 8};
    struct stream twin = {.id = stream.id, .due_us = 5, .kind = KIND_GONE + 8};
    fresh_open(&fresh);
    TEST_CHECK(fresh_do(&fresh, AT_US, make_stream, &stream) == OK);
    TEST_CHECK(fresh_do(&fresh, AT_US, make_stream, &twin) == OK);
    CHECK_SWEPT(sweep(&fresh, UINT64_MAX, 2), 0, 1); /* the twin is put off onto it, and is one with it */
    TEST_CHECK(rows(&fresh, TABLE_DUE) == 1);
    retention_extend(KIND_GONE + 8, gone_expire, gone_expire);
    CHECK_SWEPT(sweep(&fresh, UINT64_MAX, 0), 0, 0);
    TEST_CHECK(rows(&fresh, TABLE_DUE) == 0);
    fresh_close(&fresh);
}

/* ---- random operations against a plain array ---- */

enum { THINGS = 120, STEPS = 500, SPAN_US = 60 };

struct thing {
    struct uuid id;
    uint64_t due_us; /* 0: never */
};

static struct thing things[THINGS];
static uint32_t things_count;

static int by_due(const void *a, const void *b)
{
    const struct thing *x = a, *y = b;
    if (x->due_us != y->due_us)
        return x->due_us < y->due_us ? -1 : 1;
    return memcmp(&x->id, &y->id, sizeof(x->id));
}

static uint32_t model_sweep(uint64_t now_us, uint32_t limit, uint32_t *ret_more)
{
    uint32_t kept = 0, removed = 0;
    qsort(things, things_count, sizeof(things[0]), by_due);
    for (uint32_t i = 0; i < things_count; i++) {
        bool goes = things[i].due_us > 0 && things[i].due_us <= now_us && removed < limit;
        removed += goes;
        if (!goes)
            things[kept++] = things[i];
    }
    things_count = kept;
    *ret_more = removed == limit;
    return removed;
}

static void model_drop(struct fresh *fresh, uint32_t i)
{
    struct parcel_move move = {.id = things[i].id, .event = PARCEL_LOSE};
    struct parcel_drop drop = {.id = things[i].id};
    TEST_CHECK(batch_one(fresh->store, &parcel_move_class, AT_US, &move, NULL) == OK);
    TEST_CHECK(batch_one(fresh->store, &parcel_drop_class, AT_US, &drop, NULL) == OK);
    things[i] = things[--things_count];
}

static void compare(struct fresh *fresh)
{
    uint8_t queue = DUE_RETENTION;
    int64_t due = 0;
    for (uint32_t i = 0; i < things_count; i++) {
        TEST_CHECK(there(fresh, &things[i].id));
        due += things[i].due_us > 0;
    }
    TEST_CHECK(rows(fresh, TABLE_PARCELS) == things_count);
    TEST_CHECK(fresh_counter(fresh, COUNTER_DUE, span_of(&queue, 1)) == due);
}

static void test_retention_random_against_an_array(void)
{
    struct fresh fresh;
    uint64_t now_us = AT_US;
    uint32_t all = 0;
    fresh_open(&fresh);
    for (uint32_t i = 0; i < STEPS; i++) {
        uint32_t op = fresh_below(100);
        if (op < 70 && things_count < THINGS) {
            uint64_t due_us = fresh_below(8) ? now_us + fresh_below(SPAN_US) : 0;
            things[things_count++] = (struct thing){.id = send_new(&fresh, due_us), .due_us = due_us};
        } else if (op < 80 && things_count > 0) {
            model_drop(&fresh, fresh_below(things_count));
        } else {
            uint32_t limit = 1 + fresh_below(12), more;
            now_us += fresh_below(15);
            uint32_t removed = model_sweep(now_us, limit, &more);
            CHECK_SWEPT(sweep(&fresh, now_us, limit), removed, more);
            all += removed;
        }
        if (i % 20 == 0)
            compare(&fresh);
        if (i % 100 == 99)
            fresh_reopen(&fresh);
    }
    compare(&fresh);
    TEST_CHECK(all > 100);
    fresh_close(&fresh);
}

TEST_LIST
= {
    {"retention: nothing due writes nothing", test_retention_nothing_due_writes_nothing},
    {"retention: at its time, with all that belongs to it",
     test_retention_at_its_time_with_all_that_belongs_to_it},
    {"retention: dropped before its time", test_retention_dropped_before_its_time},
    {"retention: bounded", test_retention_is_bounded},
    {"retention: of the ledger", test_retention_of_the_ledger},
    {"retention: things and ledger rows, each limited", test_retention_limits_things_and_ledger_rows_each},
    {"retention: continues what is too much for one sweep",
     test_retention_continues_what_is_too_much_for_one_sweep},
    {"retention: of what is gone forgets it", test_retention_of_what_is_gone_forgets_it},
    {"retention: of an unknown kind is put off", test_retention_of_an_unknown_kind_is_put_off},
    {"retention: passes over what is damaged, and tries again",
     test_retention_passes_over_what_is_damaged_and_tries_again},
    {"retention: of many damaged things ends", test_retention_of_many_damaged_things_ends},
    {"retention: of entries that are damaged goes on", test_retention_of_entries_that_are_damaged_goes_on},
    {"retention: put off at the end of time", test_retention_put_off_at_the_end_of_time},
    {"retention: random operations against an array", test_retention_random_against_an_array},
    {NULL, NULL},
};
