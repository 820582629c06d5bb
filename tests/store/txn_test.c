/* Transactions: reading, scans in both directions, writes whose errors stick, what damage says. */
#include "acutest.h"

#include <errno.h>

#include "store/counter.h"
#include "tests/store/fresh.h"

enum { ROWS = 200 };

/* Rows of the counters' table under keys of the test's own: a group and a number. */
static struct key row_key(uint8_t group, uint64_t number)
{
    struct key key;
    key.size = 0;
    key_add_u16(&key, 9500);
    key_add_u8(&key, group);
    key_add_u64(&key, number);
    return key;
}

static enum error fill(struct txn *txn, uint64_t at_us, void *context)
{
    (void)at_us;
    (void)context;
    for (uint8_t group = 1; group < 4; group++)
        for (uint64_t i = 0; i < ROWS; i++) {
            uint64_t number = i * 77 % ROWS * 2; /* even numbers, in no order */
            struct key key = row_key(group, number);
            txn_add(txn, TABLE_COUNTERS, key_span(&key), &(struct counter){.value = (int64_t)number + 1});
        }
    return OK;
}

static enum error empty(struct txn *txn, uint64_t at_us, void *context)
{
    (void)at_us;
    (void)context;
    for (uint8_t group = 1; group < 4; group++)
        for (uint64_t i = 0; i < ROWS; i++) {
            struct key key = row_key(group, i * 2);
            txn_remove(txn, TABLE_COUNTERS, key_span(&key));
        }
    return OK;
}

/* The numbers of a scan of group 2 from `from`, against what an array would give. */
static void check_scan(struct txn *txn, uint64_t from, enum scan_direction direction)
{
    struct key key = row_key(2, from);
    struct counter row;
    bool up = direction == SCAN_UP;
    int64_t expected = up ? (int64_t)(from + from % 2) : (int64_t)(from - from % 2);
    if (!up && from > 2 * (ROWS - 1))
        expected = 2 * (ROWS - 1);
    struct scan scan = txn_scan(txn, TABLE_COUNTERS, key_span(&key), 3, direction);
    while (scan_next(&scan)) {
        TEST_CHECK(scan.key.size == 11 && key_u64((const uint8_t *)scan.key.bytes + 3) == (uint64_t)expected);
        TEST_CHECK(scan_read(&scan, &row) == OK && row.value == expected + 1);
        expected += up ? 2 : -2;
    }
    TEST_CHECK(scan_end(&scan) == OK);
    TEST_CHECK_(expected == (up ? (from >= 2 * ROWS ? (int64_t)(from + from % 2) : 2 * ROWS) : -2), "%lld",
                (long long)expected);
}

static void test_scans(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    TEST_CHECK(fresh_do(&fresh, 1, fill, NULL) == OK);
    struct view *view = view_open_outside(fresh.store, 0);
    for (uint64_t from = 0; from < 2 * ROWS + 4; from++) {
        check_scan(&view->txn, from, SCAN_UP);
        check_scan(&view->txn, from, SCAN_DOWN);
    }
    for (int down = 0; down < 2; down++) { /* a table with nothing in it; and all of one */
        struct key start;
        uint64_t rows = 0;
        start.size = 0;
        struct scan none = txn_scan(&view->txn, TABLE_EVENTS, key_span(&start), 0, (enum scan_direction)down);
        struct scan all =
            txn_scan(&view->txn, TABLE_COUNTERS, key_span(&start), 0, (enum scan_direction)down);
        while (scan_next(&all))
            rows++;
        TEST_CHECK(!scan_next(&none) && scan_end(&none) == OK && scan_end(&all) == OK);
        TEST_CHECK(rows == txn_rows(&view->txn, TABLE_COUNTERS) && rows == 3 * ROWS);
    }
    view_close(view);
    TEST_CHECK(fresh_do(&fresh, 1, empty, NULL) == OK);
    fresh_close(&fresh);
}

/* ---- appending among everything else ---- */

enum { KEYS = 4000, DEEDS = 20000 };
static bool present[KEYS];
static int64_t values[KEYS];
static uint64_t dice;

static uint32_t roll(uint32_t sides)
{
    dice = dice * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(dice >> 33) % sides;
}

static uint32_t greatest(void)
{
    uint32_t n = KEYS;
    while (n > 0 && !present[n - 1])
        n--;
    return n; /* one behind the last */
}

static void deed(struct txn *txn)
{
    uint32_t n = roll(KEYS), what = roll(10);
    if (what < 5 && greatest() < KEYS) /* mostly in order, with gaps */
        n = greatest() + (roll(50) == 0 && greatest() + 20 < KEYS ? roll(20) : 0);
    struct key key = row_key(4, n);
    struct counter row = {.value = (int64_t)roll(1000)};
    if (what < 8) {
        if (present[n])
            txn_write(txn, TABLE_COUNTERS, key_span(&key), &row);
        else
            txn_add(txn, TABLE_COUNTERS, key_span(&key), &row);
        present[n] = true;
        values[n] = row.value;
    } else if (present[n]) {
        txn_remove(txn, TABLE_COUNTERS, key_span(&key));
        present[n] = false;
    }
}

static void compare_with_model(struct txn *txn, uint32_t n)
{
    struct key key = row_key(4, n);
    struct counter row;
    enum error e = txn_read(txn, TABLE_COUNTERS, key_span(&key), &row);
    TEST_CHECK_(present[n] ? e == OK && row.value == values[n] : e == ERR_NOT_FOUND, "%u: %s", n,
                error_name(e));
    if (txn_beyond(txn, TABLE_COUNTERS, key_span(&key)))
        TEST_CHECK_(n >= greatest(), "%u of %u", n, greatest());
}

static enum error many_deeds(struct txn *txn, uint64_t at_us, void *context)
{
    (void)at_us;
    (void)context;
    for (int i = 0; i < DEEDS; i++) {
        deed(txn);
        compare_with_model(txn, roll(KEYS));
        compare_with_model(txn, greatest() < KEYS ? greatest() : KEYS - 1);
    }
    return OK;
}

static enum error remove_all(struct txn *txn, uint64_t at_us, void *context)
{
    (void)at_us;
    (void)context;
    for (uint32_t n = 0; n < KEYS; n++) {
        struct key key = row_key(4, n);
        if (present[n])
            txn_remove(txn, TABLE_COUNTERS, key_span(&key));
    }
    return OK;
}

/* What the transaction knows of the greatest key, and its cursors that append, against an array. */
static void test_appending(void)
{
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct fresh fresh;
        dice = seed;
        memset(present, 0, sizeof(present));
        fresh_open(&fresh);
        for (int commits = 0; commits < 3; commits++)
            TEST_CHECK(fresh_do(&fresh, 1, many_deeds, NULL) == OK);
        struct view *view = view_open_outside(fresh.store, 0);
        for (uint32_t n = 0; n < KEYS; n++)
            compare_with_model(&view->txn, n);
        view_close(view);
        TEST_CHECK(fresh_do(&fresh, 1, remove_all, NULL) == OK);
        fresh_close(&fresh);
    }
}

static enum error look_beyond(struct txn *txn, uint64_t at_us, void *context)
{
    struct key five = row_key(5, 5), six = row_key(5, 6), nine = row_key(5, 9), group = row_key(6, 0);
    struct counter row = {.value = 1};
    (void)at_us;
    (void)context;
    TEST_CHECK(!txn_beyond(txn, TABLE_COUNTERS, key_span(&group))); /* nothing appended yet: nothing known */
    txn_add(txn, TABLE_COUNTERS, key_span(&five), &row);
    TEST_CHECK(!txn_beyond(txn, TABLE_COUNTERS, key_span(&five)));
    TEST_CHECK(txn_beyond(txn, TABLE_COUNTERS, key_span(&six)));
    TEST_CHECK(txn_beyond(txn, TABLE_COUNTERS, key_span(&group)));
    TEST_CHECK(txn_read(txn, TABLE_COUNTERS, key_span(&six), &row) == ERR_NOT_FOUND);
    txn_write(txn, TABLE_COUNTERS, key_span(&nine), &row); /* behind it, by another way */
    TEST_CHECK(!txn_beyond(txn, TABLE_COUNTERS, key_span(&six)));
    TEST_CHECK(txn_read(txn, TABLE_COUNTERS, key_span(&nine), &row) == OK);
    txn_remove(txn, TABLE_COUNTERS, key_span(&five));
    txn_remove(txn, TABLE_COUNTERS, key_span(&nine));
    return OK;
}

static void test_beyond(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    TEST_CHECK(fresh_do(&fresh, 1, look_beyond, NULL) == OK);
    fresh_close(&fresh);
}

/* ---- writes ---- */

static enum error overwrite(struct txn *txn, uint64_t at_us, void *context)
{
    struct key key = row_key(1, 1);
    struct counter row;
    (void)context;
    TEST_CHECK(txn_read(txn, TABLE_COUNTERS, key_span(&key), &row) == (at_us == 1 ? ERR_NOT_FOUND : OK));
    for (int64_t i = 1; i < 5; i++) {
        txn_write(txn, TABLE_COUNTERS, key_span(&key), &(struct counter){.value = i});
        TEST_CHECK(txn_read(txn, TABLE_COUNTERS, key_span(&key), &row) == OK && row.value == i);
    }
    TEST_CHECK(txn->writes == 4);
    if (at_us == 2)
        txn_remove(txn, TABLE_COUNTERS, key_span(&key));
    return OK;
}

static void test_overwritten(void)
{
    struct fresh fresh;
    struct key key = row_key(1, 1);
    struct counter row;
    fresh_open(&fresh);
    for (uint64_t at = 1; at <= 2; at++) {
        TEST_CHECK(fresh_do(&fresh, at, overwrite, NULL) == OK);
        struct view *view = view_open_outside(fresh.store, 0);
        TEST_CHECK(txn_read(&view->txn, TABLE_COUNTERS, key_span(&key), &row) ==
                   (at == 1 ? OK : ERR_NOT_FOUND));
        TEST_CHECK(at == 2 || row.value == 4);
        view_close(view);
    }
    fresh_close(&fresh);
}

/* The first error sticks: what follows does nothing, reads say it, and the commit is an abort. */
static void test_errors_stick(void)
{
    struct fresh fresh;
    struct key one = row_key(1, 1), two = row_key(1, 2);
    struct counter row = {.value = 5};
    fresh_open(&fresh);
    struct txn *txn = &fresh.store->txn;
    TEST_CHECK(txn_begin(txn) == OK);
    uint64_t number = txn_number(txn);
    txn_write(txn, TABLE_COUNTERS, key_span(&one), &row);
    struct scan scan = txn_scan(txn, TABLE_COUNTERS, key_span(&one), 3, SCAN_UP);
    TEST_CHECK(scan_next(&scan) && scan_end(&scan) == OK);
    txn->error = ERR_NO_SPACE;
    txn->code = MDB_MAP_FULL;
    txn_write(txn, TABLE_COUNTERS, key_span(&two), &row);
    txn_add(txn, TABLE_COUNTERS, key_span(&two), &row);
    txn_remove(txn, TABLE_COUNTERS, key_span(&two)); /* isn't there, and nobody looks */
    txn_wake(txn, 9);
    TEST_CHECK(txn->writes == 4 && txn->code == MDB_MAP_FULL);
    TEST_CHECK(txn_read(txn, TABLE_COUNTERS, key_span(&one), &row) == ERR_NO_SPACE);
    scan = txn_scan(txn, TABLE_COUNTERS, key_span(&one), 3, SCAN_UP);
    TEST_CHECK(!scan_next(&scan) && scan_end(&scan) == ERR_NO_SPACE);
    TEST_CHECK(txn_commit(txn) == ERR_NO_SPACE && txn->mdb == NULL && txn->wakes[0] == 0);
    TEST_CHECK(txn_begin(txn) == OK); /* and the next one is as new */
    TEST_CHECK(txn_number(txn) == number && txn->error == OK && txn->writes == 0);
    TEST_CHECK(txn_read(txn, TABLE_COUNTERS, key_span(&one), &row) == ERR_NOT_FOUND);
    txn_abort(txn);
    fresh_close(&fresh);
}

/* ---- damage ---- */

/* A byte of one value is another one: reading it, and a scan that comes by, say so; its neighbours are sound. */
static void test_damage(void)
{
    struct fresh fresh;
    struct counter row;
    struct key key = row_key(2, 100), start = row_key(2, 0);
    MDB_val k = {.mv_size = key.size, .mv_data = key.bytes}, v;
    uint8_t copy[64];
    MDB_txn *mdb;
    fresh_open(&fresh);
    TEST_CHECK(fresh_do(&fresh, 1, fill, NULL) == OK);
    MDB_dbi dbi = fresh.store->environment.tables[TABLE_COUNTERS];
    for (int round = 0; round < 2; round++) { /* broken, and mended */
        TEST_CHECK(mdb_txn_begin(fresh.store->environment.mdb, NULL, 0, &mdb) == 0);
        TEST_CHECK(mdb_get(mdb, dbi, &k, &v) == 0 && v.mv_size < sizeof(copy));
        memcpy(copy, v.mv_data, v.mv_size);
        copy[v.mv_size - 1] ^= 1;
        v.mv_data = copy;
        TEST_CHECK(mdb_put(mdb, dbi, &k, &v, 0) == 0 && mdb_txn_commit(mdb) == 0);
        if (round == 1)
            break;
        struct view *view = view_open_outside(fresh.store, 0);
        uint64_t rows = 0;
        TEST_CHECK(txn_read(&view->txn, TABLE_COUNTERS, key_span(&key), &row) == ERR_DAMAGED);
        struct scan scan = txn_scan(&view->txn, TABLE_COUNTERS, key_span(&start), 3, SCAN_UP);
        while (scan_next(&scan))
            rows++;
        TEST_CHECK(rows == 50 && span_equal(scan.key, key_span(&key))); /* it says which */
        TEST_CHECK(!scan_next(&scan) && scan_end(&scan) == ERR_DAMAGED);
        struct key next = row_key(2, 102);
        TEST_CHECK(txn_read(&view->txn, TABLE_COUNTERS, key_span(&next), &row) == OK && row.value == 103);
        view_close(view);
    }
    TEST_CHECK(fresh_do(&fresh, 1, empty, NULL) == OK);
    fresh_close(&fresh);
}

/* Added and removed by whoever believes another row; and taken back, so that nothing is left. */
static enum error try_both(struct txn *txn, uint64_t at_us, void *context)
{
    struct key key = row_key(1, 7), last = row_key(9, 1);
    struct counter row;
    (void)at_us;
    (void)context;
    TEST_CHECK(txn_try_remove(txn, TABLE_COUNTERS, key_span(&key)) == ERR_NOT_FOUND && txn->writes == 0);
    for (int round = 0; round < 2; round++) { /* at the end of the table, and within it */
        TEST_CHECK(txn_try_add(txn, TABLE_COUNTERS, key_span(&last), &(struct counter){.value = 5}) == OK);
        uint32_t writes = txn->writes;
        TEST_CHECK(txn_try_add(txn, TABLE_COUNTERS, key_span(&last), &(struct counter){.value = 6}) ==
                   ERR_EXISTS);
        TEST_CHECK(txn->writes == writes && txn->error == OK);
        TEST_CHECK(txn_read(txn, TABLE_COUNTERS, key_span(&last), &row) == OK && row.value == 5);
        TEST_CHECK(txn_try_remove(txn, TABLE_COUNTERS, key_span(&last)) == OK && txn->writes == writes + 1);
        TEST_CHECK(txn_read(txn, TABLE_COUNTERS, key_span(&last), &row) == ERR_NOT_FOUND);
        last = row_key(1, 7);
    }
    return OK;
}

static void test_tries(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    TEST_CHECK(fresh_do(&fresh, 1, fill, NULL) == OK);
    TEST_CHECK(fresh_do(&fresh, 1, try_both, NULL) == OK);
    TEST_CHECK(fresh_do(&fresh, 1, empty, NULL) == OK);
    fresh_close(&fresh);
}

static bool woken(const struct txn *txn, uint32_t topic)
{
    return txn->wakes[topic / 64] >> topic % 64 & 1;
}

/* One more for a group that is there, or a group more; of more groups than there is room for all are woken. */
static enum error wake_parts(struct txn *txn, uint64_t at_us, void *context)
{
    enum { TOPIC = 700, OTHER = 701 };
    (void)at_us;
    (void)context;
    TEST_CHECK(txn->parts_count == 0);
    txn_wake_part(txn, TOPIC, 1, 1);
    txn_wake_part(txn, TOPIC, 1, 1);
    TEST_CHECK(txn->parts_count == 1 && txn->parts[0].count == 2);
    txn_wake_part(txn, TOPIC, 1, 2);
    txn_wake_part(txn, TOPIC, 2, 1);
    txn_wake_part(txn, OTHER, 1, 1);
    TEST_CHECK(txn->parts_count == 4);
    for (uint64_t part = 10; txn->parts_count < TXN_PARTS_MAX; part++)
        txn_wake_part(txn, TOPIC, part, 1);
    TEST_CHECK(!woken(txn, TOPIC));
    txn_wake_part(txn, OTHER, 1, 1); /* it is there */
    TEST_CHECK(!woken(txn, OTHER) && txn->parts[3].count == 2);
    txn_wake_part(txn, TOPIC, 1000, 1);
    TEST_CHECK(txn->parts_count == TXN_PARTS_MAX && woken(txn, TOPIC) && !woken(txn, OTHER));
    return OK;
}

static void test_wakes_of_parts(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    TEST_CHECK(fresh_do(&fresh, 1, wake_parts, NULL) == OK);
    fresh_close(&fresh);
}

static void test_words(void)
{
    TEST_CHECK(txn_error_of(0) == OK && txn_error_of(MDB_NOTFOUND) == ERR_NOT_FOUND);
    TEST_CHECK(txn_error_of(MDB_MAP_FULL) == ERR_NO_SPACE && txn_error_of(ENOSPC) == ERR_NO_SPACE &&
               txn_error_of(EDQUOT) == ERR_NO_SPACE);
    TEST_CHECK(txn_error_of(ENOMEM) == ERR_MEMORY && txn_error_of(MDB_READERS_FULL) == ERR_MEMORY);
    TEST_CHECK(txn_error_of(MDB_CORRUPTED) == ERR_DAMAGED && txn_error_of(MDB_INVALID) == ERR_DAMAGED);
    TEST_CHECK(txn_error_of(EIO) == ERR_IO && txn_error_of(MDB_BAD_TXN) == ERR_IO &&
               txn_error_of(12345) == ERR_IO);
    TEST_CHECK(txn_error_of(EROFS) == ERR_NOT_WRITABLE && txn_error_of(MDB_PANIC) == ERR_UNAVAILABLE);
}

TEST_LIST
= {
    {"scans from everywhere, up and down", test_scans},
    {"appending among writes and removals, against an array", test_appending},
    {"what lies beyond the greatest key", test_beyond},
    {"written over, and read in the same transaction", test_overwritten},
    {"the first error of a write sticks", test_errors_stick},
    {"a damaged row says so, and its neighbours are sound", test_damage},
    {"keys that another row says are there, or aren't", test_tries},
    {"parts of a topic are woken each by itself, as far as there is room", test_wakes_of_parts},
    {"LMDB's words in ours", test_words},
    {NULL, NULL},
};
