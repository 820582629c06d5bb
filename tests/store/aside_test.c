/* Rows that are set aside: in order, within their room, and for whoever looks the same as if they were in their tables. */
#include "acutest.h"

#include "store/aside.h"
#include "store/job.h"
#include "store/txn.h"
#include "tests/store/fresh.h"

enum { ROWS = 500, KEYS = 4500, DEEDS = 3000, COMMITS = 12 };
STATIC_ASSERT(KEYS > ASIDE_ROWS_MAX, "more new rows in one commit than there is room for");

/* ---- by itself ---- */

static bool put(struct aside *aside, uint32_t table, uint32_t number, uint32_t size)
{
    static const uint8_t bytes[ASIDE_VALUE_MAX + 1];
    uint8_t value[ASIDE_VALUE_MAX + 1];
    struct key key = {.size = 0};
    key_add_u64(&key, number);
    if (number % 3 == 0)
        key_add_u8(&key, 0); /* longer than its like: behind it */
    memcpy(value, bytes, size);
    memcpy(value, &number, sizeof(number));
    return aside_put(aside, table, key_span(&key), span_of(value, size));
}

static uint32_t number_of(const struct aside_row *row)
{
    uint32_t number;
    memcpy(&number, row->value.bytes, sizeof(number));
    return number;
}

static void test_order(void)
{
    struct aside *aside = aside_new();
    TEST_ASSERT(aside != NULL);
    for (uint32_t round = 1; round <= ROWS; round += 13) {
        for (uint32_t i = 0; i < round; i++) {
            TEST_CHECK(put(aside, 3, i * 77 % ROWS, 16)); /* 77 and ROWS have no divisor in common */
            TEST_CHECK(put(aside, 9, ROWS - i, 8));
        }
        TEST_CHECK(aside->tables == (1u << 3 | 1u << 9));
        uint32_t count = 0, before = 0;
        for (const struct aside_row *row = aside_take(aside, 3); row; row = row->next, count++) {
            TEST_CHECK(count == 0 || number_of(row) > before);
            TEST_CHECK(row->value.size == 16 && key_u64(row->key.bytes) == number_of(row));
            before = number_of(row);
        }
        TEST_CHECK(count == round && !aside_take(aside, 3));
        TEST_CHECK(aside->tables == 1u << 9);
        if (round % 2) {
            for (const struct aside_row *row = aside_take(aside, 9); row; row = row->next)
                TEST_CHECK(number_of(row) == ROWS - --count);
            TEST_CHECK(count == 0);
        }
        aside_clear(aside);
        TEST_CHECK(aside->tables == 0 && aside->rows_count == 0 && aside->bytes_count == 0);
    }
    aside_delete(aside);
    aside_delete(NULL);
}

static void test_room(void)
{
    struct aside *aside = aside_new();
    uint32_t count = 0;
    TEST_ASSERT(aside != NULL);
    TEST_CHECK(!put(aside, 1, 1, ASIDE_VALUE_MAX + 1) && aside->tables == 0);
    while (put(aside, count % 5, count, 16))
        count++;
    TEST_CHECK(count == ASIDE_ROWS_MAX);
    aside_clear(aside);
    for (count = 0; put(aside, 1, count, ASIDE_VALUE_MAX); count++)
        ;
    TEST_CHECK(aside->bytes_count <= ASIDE_BYTES);
    TEST_CHECK(ASIDE_BYTES - aside->bytes_count < ASIDE_VALUE_MAX + sizeof(uint64_t) + 1);
    TEST_CHECK(count == aside->rows_count);
    aside_delete(aside);
}

/* ---- in transactions, against an array ---- */

static bool present[KEYS];
static uint64_t values[KEYS];
static uint32_t rows_count;

static struct key key_at(uint32_t n)
{
    static const struct uuid clients[] = {{{3}}, {{1}}, {{2}}};
    return client_job_key(&clients[n % 3], n);
}

static struct client_job row_of(uint64_t value)
{
    struct client_job row = {.id = {{0}}};
    memcpy(row.id.bytes, &value, sizeof(value));
    return row;
}

static void check_one(struct txn *txn, uint32_t n)
{
    struct key key = key_at(n);
    struct client_job row, wanted = row_of(values[n]);
    enum error e = txn_read(txn, TABLE_CLIENT_JOBS, key_span(&key), &row);
    TEST_CHECK_(present[n] ? e == OK && uuid_equal(&row.id, &wanted.id) : e == ERR_NOT_FOUND, "%u: %s", n,
                error_name(e));
    if (txn_beyond(txn, TABLE_CLIENT_JOBS, key_span(&key)))
        TEST_CHECK(!present[n]);
}

/* The next one of the same client, by a scan. */
static void check_next(struct txn *txn, uint32_t n)
{
    uint32_t next = n;
    while (next < KEYS && !present[next])
        next += 3;
    struct key key = key_at(n);
    struct scan scan = txn_scan(txn, TABLE_CLIENT_JOBS, key_span(&key), sizeof(struct uuid), SCAN_UP);
    bool found = scan_next(&scan);
    TEST_CHECK(found == (next < KEYS));
    if (found)
        TEST_CHECK(key_u64((const uint8_t *)scan.key.bytes + sizeof(struct uuid)) == next);
    TEST_CHECK(scan_end(&scan) == OK);
}

static void set(uint32_t n, bool is, uint64_t value)
{
    rows_count += (uint32_t)is - (uint32_t)present[n];
    present[n] = is;
    values[n] = value;
}

static void change(struct txn *txn, uint32_t n, uint32_t how)
{
    struct key key = key_at(n);
    struct client_job row = row_of(fresh_random());
    uint64_t value;
    memcpy(&value, row.id.bytes, sizeof(value));
    if (how == 0) {
        TEST_CHECK(txn_try_remove(txn, TABLE_CLIENT_JOBS, key_span(&key)) ==
                   (present[n] ? OK : ERR_NOT_FOUND));
        set(n, false, 0);
    } else if (how == 1) {
        txn_write(txn, TABLE_CLIENT_JOBS, key_span(&key), &row);
        set(n, true, value);
    } else if (how == 2) {
        TEST_CHECK(txn_try_add(txn, TABLE_CLIENT_JOBS, key_span(&key), &row) ==
                   (present[n] ? ERR_EXISTS : OK));
        if (!present[n])
            set(n, true, value);
    } else if (!present[n]) {
        txn_add(txn, TABLE_CLIENT_JOBS, key_span(&key), &row);
        set(n, true, value);
    }
}

/* context: of how many deeds one is no txn_add. */
static enum error deeds(struct txn *txn, uint64_t at_us, void *context)
{
    uint32_t odd = *(const uint32_t *)context;
    (void)at_us;
    for (uint32_t i = 0; i < DEEDS; i++) {
        bool looks = fresh_below(odd) == 0;
        change(txn, fresh_below(KEYS), looks ? fresh_below(3) : 3);
        if (!looks)
            continue;
        check_one(txn, fresh_below(KEYS));
        check_next(txn, fresh_below(KEYS));
        TEST_CHECK(txn_rows(txn, TABLE_CLIENT_JOBS) == rows_count);
    }
    return OK;
}

static enum error add_all(struct txn *txn, uint64_t at_us, void *context)
{
    (void)at_us;
    (void)context;
    for (uint32_t n = 0; n < KEYS; n++)
        change(txn, n * 7 % KEYS, 3); /* 7 and KEYS have no divisor in common */
    return OK;
}

static enum error remove_all(struct txn *txn, uint64_t at_us, void *context)
{
    (void)at_us;
    (void)context;
    for (uint32_t n = 0; n < KEYS; n++)
        change(txn, n, 0);
    return OK;
}

static void check_all(struct fresh *fresh)
{
    struct view *view = view_open_outside(fresh->store, 0);
    for (uint32_t n = 0; n < KEYS; n++)
        check_one(&view->txn, n);
    TEST_CHECK(txn_rows(&view->txn, TABLE_CLIENT_JOBS) == rows_count);
    view_close(view);
}

static void test_as_if_in_their_tables(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    for (uint32_t i = 0; i < COMMITS; i++) {
        uint32_t odd = i % 3 == 0 ? 3 : i % 3 == 1 ? 40 : UINT32_MAX;
        TEST_CHECK(fresh_do(&fresh, 1, deeds, &odd) == OK);
        check_all(&fresh);
        if (i % 4 == 3) {
            TEST_CHECK(fresh_do(&fresh, 1, add_all, NULL) == OK);
            check_all(&fresh);
            TEST_CHECK(fresh_do(&fresh, 1, remove_all, NULL) == OK);
            check_all(&fresh);
        }
    }
    fresh_close(&fresh);
}

/* What was set aside goes with the transaction: taken back, or failed, or failed on its way into the table. */
static void test_taken_back(void)
{
    struct fresh fresh;
    struct key one = key_at(0), two = key_at(1);
    struct client_job row = row_of(1);
    fresh_open(&fresh);
    struct txn *txn = &fresh.store->txn;
    for (int how = 0; how < 2; how++) {
        TEST_CHECK(txn_begin(txn) == OK);
        txn_add(txn, TABLE_CLIENT_JOBS, key_span(&one), &row);
        TEST_CHECK(txn->aside->rows_count == 1 && txn->writes == 1);
        if (how == 0) {
            txn_abort(txn);
        } else {
            txn->error = ERR_NO_SPACE;
            txn_add(txn, TABLE_CLIENT_JOBS, key_span(&two), &row);
            TEST_CHECK(txn->aside->rows_count == 1);
            TEST_CHECK(txn_read(txn, TABLE_CLIENT_JOBS, key_span(&one), &row) == ERR_NO_SPACE);
            TEST_CHECK(txn_commit(txn) == ERR_NO_SPACE);
        }
        TEST_CHECK(txn->aside->tables == 0);
        TEST_CHECK(txn_begin(txn) == OK);
        TEST_CHECK(txn_read(txn, TABLE_CLIENT_JOBS, key_span(&one), &row) == ERR_NOT_FOUND);
        txn_abort(txn);
    }
    fresh_close(&fresh);
}

TEST_LIST
= {
    {"in the order of their keys, each table by itself", test_order},
    {"no more than there is room for", test_room},
    {"as if they were in their tables, against an array", test_as_if_in_their_tables},
    {"gone with a transaction that is taken back or fails", test_taken_back},
    {NULL, NULL},
};
