/* The outbox: invariants O1 and O3 to O7, its limits, and random operations against a plain array. */
#include "acutest.h"

#include "store/counter.h"
#include "store/event.h"
#include "store/outbox.h"
#include "tests/store/fresh.h"

#define AT_US UINT64_C(1700000000000000)

/* ---- small steps ---- */

static struct view *look(struct fresh *fresh)
{
    struct view *view = view_open_outside(fresh->store, 0);
    TEST_ASSERT(view != NULL);
    return view;
}

static uint16_t partition_of(struct fresh *fresh, const struct uuid *stream)
{
    struct view *view = look(fresh);
    uint16_t partition = outbox_partition(&view->txn, stream);
    view_close(view);
    return partition;
}

static struct uuid uuid_in(struct fresh *fresh, uint16_t partition)
{
    struct uuid id = fresh_uuid();
    while (partition_of(fresh, &id) != partition)
        id = fresh_uuid();
    return id;
}

static enum error send(struct fresh *fresh, const struct uuid *id)
{
    struct parcel_send c = {.id = *id, .body = span_text("socks")};
    return batch_one(fresh->store, &parcel_send_class, AT_US, &c, NULL);
}

static enum error move(struct fresh *fresh, const struct uuid *id, uint8_t event)
{
    struct parcel_move c = {.id = *id, .event = event};
    return batch_one(fresh->store, &parcel_move_class, AT_US + 1, &c, NULL);
}

static uint64_t claim(struct fresh *fresh, uint16_t partition, uint64_t holder)
{
    struct outbox_claim_command c = {.partition = partition, .holder = holder};
    struct answer answer;
    uint64_t fence = 0;
    TEST_CHECK(batch_one(fresh->store, &outbox_claim_class, AT_US, &c, &answer) == OK);
    if (TEST_CHECK(answer.size == sizeof(fence)))
        memcpy(&fence, answer.bytes, sizeof(fence));
    return fence;
}

static enum error mark(struct fresh *fresh, uint16_t partition, uint64_t seq, uint64_t fence)
{
    struct outbox_mark_command c = {.partition = partition, .seq = seq, .fence = fence};
    return batch_one(fresh->store, &outbox_mark_class, AT_US, &c, NULL);
}

static enum error defer(struct fresh *fresh, uint16_t partition, uint64_t seq, uint64_t fence, uint64_t until)
{
    struct outbox_defer_command c = {
        .partition = partition, .seq = seq, .fence = fence, .not_before_us = until};
    return batch_one(fresh->store, &outbox_defer_class, AT_US, &c, NULL);
}

static enum error bury(struct fresh *fresh, uint16_t partition, uint64_t seq, uint64_t fence)
{
    struct outbox_bury_command c = {
        .partition = partition, .seq = seq, .fence = fence, .reason = span_text("nobody at home")};
    return batch_one(fresh->store, &outbox_bury_class, AT_US + 7, &c, NULL);
}

static enum error revive(struct fresh *fresh, uint16_t partition, uint64_t seq)
{
    struct outbox_revive_command c = {.partition = partition, .seq = seq};
    return batch_one(fresh->store, &outbox_revive_class, AT_US, &c, NULL);
}

static uint32_t rows_of(struct fresh *fresh, uint16_t partition, uint64_t after, struct outbox_row *rows,
                        uint32_t most)
{
    struct view *view = look(fresh);
    uint32_t count = 0;
    TEST_CHECK(outbox_scan(&view->txn, partition, after, rows, most, &count) == OK);
    view_close(view);
    return count;
}

static int64_t counted(struct fresh *fresh, uint16_t counter, uint16_t partition)
{
    const uint8_t label[2] = {(uint8_t)(partition >> 8), (uint8_t)partition};
    return fresh_counter(fresh, counter, span_of(label, sizeof(label)));
}

/* ---- the invariants ---- */

static void test_O1_a_row_is_there_if_and_only_if_its_change_is(void)
{
    struct fresh fresh;
    struct outbox_row rows[4];
    struct event event;
    fresh_open(&fresh);
    struct uuid id = uuid_in(&fresh, 3), other = uuid_in(&fresh, 3);
    TEST_CHECK(send(&fresh, &id) == OK);
    TEST_CHECK(send(&fresh, &id) == ERR_EXISTS);
    TEST_CHECK(move(&fresh, &id, PARCEL_DELIVER) == ERR_TRANSITION);
    TEST_CHECK(move(&fresh, &other, PARCEL_SEND) == ERR_NOT_FOUND);
    fresh_reopen(&fresh);
    TEST_CHECK(rows_of(&fresh, 3, 0, rows, 4) == 1);
    TEST_CHECK(uuid_equal(&rows[0].row.stream, &id) && rows[0].row.event == 1 && rows[0].seq == 1);
    TEST_CHECK(rows[0].row.at_us == AT_US && rows[0].row.topic == PARCEL_TOPIC && rows[0].row.attempts == 0);
    struct view *view = look(&fresh);
    TEST_CHECK(event_read(&view->txn, &id, 1, &event) == OK);
    TEST_CHECK(event_read(&view->txn, &id, 2, &event) == ERR_NOT_FOUND);
    TEST_CHECK(event_read(&view->txn, &other, 1, &event) == ERR_NOT_FOUND);
    view_close(view);
    fresh_close(&fresh);
}

/* In one batch, too: what is refused between two that aren't leaves nothing. */
static void test_O1_in_one_batch(void)
{
    struct fresh fresh;
    struct outbox_row rows[4];
    struct batch_item items[3];
    uint8_t bytes[3][256];
    fresh_open(&fresh);
    const struct uuid a = uuid_in(&fresh, 5), b = uuid_in(&fresh, 5), ids[] = {a, a, b};
    for (size_t i = 0; i < 3; i++) {
        struct parcel_send c = {.id = ids[i], .body = span_text("gloves")};
        size_t size = record_encode(&parcel_send_record, &c, bytes[i], sizeof(bytes[i]));
        items[i] = (struct batch_item){
            .class = &parcel_send_class, .at_us = AT_US, .bytes = span_of(bytes[i], size)};
    }
    TEST_CHECK(batch_run(fresh.store, items, 3) == OK);
    TEST_CHECK(items[0].answer.error == OK && items[1].answer.error == ERR_EXISTS &&
               items[2].answer.error == OK);
    TEST_CHECK(rows_of(&fresh, 5, 0, rows, 4) == 2);
    TEST_CHECK(uuid_equal(&rows[0].row.stream, &a) && uuid_equal(&rows[1].row.stream, &b));
    fresh_close(&fresh);
}

static void test_O3_O7_order_is_that_of_the_commits_and_not_of_the_ids(void)
{
    struct fresh fresh;
    struct outbox_row rows[9];
    struct uuid sent[9];
    fresh_open(&fresh);
    for (uint32_t i = 0; i < 3; i++) { /* each id is below the one before it */
        do {
            sent[i] = uuid_in(&fresh, 1);
            sent[i].bytes[0] = (uint8_t)(200 - i);
        } while (partition_of(&fresh, &sent[i]) != 1);
        TEST_CHECK(send(&fresh, &sent[i]) == OK);
    }
    for (uint32_t i = 0; i < 3; i++) {
        TEST_CHECK(move(&fresh, &sent[2 - i], PARCEL_SEND) == OK);
        TEST_CHECK(move(&fresh, &sent[2 - i], i == 1 ? PARCEL_LOSE : PARCEL_DELIVER) == OK);
    }
    fresh_reopen(&fresh);
    static const struct {
        uint8_t parcel, event;
    } order[] = {{0, 1}, {1, 1}, {2, 1}, {2, 2}, {2, 3}, {1, 2}, {1, 3}, {0, 2}, {0, 3}};
    TEST_CHECK(rows_of(&fresh, 1, 0, rows, 9) == 9);
    for (uint32_t i = 0; i < 9; i++) {
        TEST_CHECK(rows[i].seq == i + 1 && rows[i].partition == 1);
        TEST_CHECK(uuid_equal(&rows[i].row.stream, &sent[order[i].parcel]) &&
                   rows[i].row.event == order[i].event);
    }
    TEST_CHECK(rows_of(&fresh, 1, 4, rows, 2) == 2 && rows[0].seq == 5 && rows[1].seq == 6);
    TEST_CHECK(rows_of(&fresh, 1, 9, rows, 9) == 0 && rows_of(&fresh, 1, UINT64_MAX, rows, 9) == 0);
    fresh_close(&fresh);
}

static void check_told(struct fresh *fresh, const struct uuid *id, const struct outbox_row *row,
                       const uint8_t *bytes, uint32_t size)
{
    struct view *view = look(fresh);
    struct key key = event_key(&row->row.stream, row->row.event);
    struct span told;
    uint8_t version;
    TEST_CHECK(uuid_equal(&row->row.stream, id) && row->row.event == 1 && row->row.at_us == AT_US &&
               row->row.topic == PARCEL_TOPIC);
    TEST_CHECK(txn_get(&view->txn, TABLE_EVENTS, key_span(&key), &version, &told) == OK);
    TEST_CHECK(span_equal(told, span_of(bytes, size)));
    view_close(view);
}

static void test_O4_each_try_has_the_same_number_and_bytes(void)
{
    struct fresh fresh;
    struct outbox_row row;
    struct span told;
    uint8_t bytes[256], version;
    fresh_open(&fresh);
    struct uuid id = uuid_in(&fresh, 2);
    TEST_CHECK(send(&fresh, &id) == OK);
    struct view *view = look(&fresh);
    struct key key = event_key(&id, 1);
    TEST_ASSERT(txn_get(&view->txn, TABLE_EVENTS, key_span(&key), &version, &told) == OK);
    TEST_ASSERT(told.size <= sizeof(bytes));
    uint32_t size = told.size;
    memcpy(bytes, told.bytes, size);
    view_close(view);
    uint64_t fence = claim(&fresh, 2, 1);
    TEST_CHECK(rows_of(&fresh, 2, 0, &row, 1) == 1);
    check_told(&fresh, &id, &row, bytes, size);
    TEST_CHECK(defer(&fresh, 2, row.seq, fence, AT_US + 50) == OK);
    TEST_CHECK(move(&fresh, &id, PARCEL_SEND) == OK); /* the parcel goes on; what is told of it stays */
    fresh_reopen(&fresh);
    TEST_CHECK(rows_of(&fresh, 2, 0, &row, 1) == 1 && row.seq == 1);
    TEST_CHECK(row.row.attempts == 1 && row.row.not_before_us == AT_US + 50);
    check_told(&fresh, &id, &row, bytes, size);
    TEST_CHECK(bury(&fresh, 2, row.seq, fence) == OK && revive(&fresh, 2, row.seq) == OK);
    fresh_reopen(&fresh);
    TEST_CHECK(rows_of(&fresh, 2, 0, &row, 1) == 1 && row.seq == 1);
    TEST_CHECK(row.row.attempts == 0 && row.row.not_before_us == 0);
    check_told(&fresh, &id, &row, bytes, size);
    fresh_close(&fresh);
}

static void test_O5_only_the_latest_claim_counts(void)
{
    struct fresh fresh;
    struct outbox_row row;
    struct claim kept;
    fresh_open(&fresh);
    struct uuid id = uuid_in(&fresh, 4);
    TEST_CHECK(send(&fresh, &id) == OK);
    TEST_CHECK(mark(&fresh, 4, 1, 0) == ERR_FENCED); /* nobody has claimed it */
    uint64_t first = claim(&fresh, 4, 100), second = claim(&fresh, 4, 200);
    TEST_CHECK(first == 1 && second == 2);
    TEST_CHECK(claim(&fresh, 0, 100) == 1);
    fresh_reopen(&fresh);
    static const uint64_t wrong[] = {0, 1, 3, UINT64_MAX};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        TEST_CHECK(mark(&fresh, 4, 1, wrong[i]) == ERR_FENCED);
        TEST_CHECK(defer(&fresh, 4, 1, wrong[i], AT_US) == ERR_FENCED);
        TEST_CHECK(bury(&fresh, 4, 1, wrong[i]) == ERR_FENCED);
    }
    TEST_CHECK(rows_of(&fresh, 4, 0, &row, 1) == 1 && row.row.attempts == 0);
    struct view *view = look(&fresh);
    const uint8_t key[] = {0, 4};
    TEST_CHECK(txn_read(&view->txn, TABLE_CLAIMS, span_of(key, 2), &kept) == OK);
    TEST_CHECK(kept.fence == 2 && kept.holder == 200 && kept.at_us == AT_US);
    view_close(view);
    TEST_CHECK(defer(&fresh, 4, 1, second, AT_US) == OK && mark(&fresh, 4, 1, second) == OK);
    TEST_CHECK(mark(&fresh, 4, 1, second) == ERR_NOT_FOUND);
    TEST_CHECK(rows_of(&fresh, 4, 0, &row, 1) == 0);
    fresh_close(&fresh);
}

static void test_O6_nothing_passes_an_unfinished_row(void)
{
    struct fresh fresh;
    struct outbox_row rows[4];
    fresh_open(&fresh);
    struct uuid id[4];
    for (uint32_t i = 0; i < 4; i++) {
        id[i] = uuid_in(&fresh, 6);
        TEST_CHECK(send(&fresh, &id[i]) == OK);
    }
    uint64_t fence = claim(&fresh, 6, 1);
    TEST_CHECK(mark(&fresh, 6, 2, fence) == OK && mark(&fresh, 6, 4, fence) == OK);
    TEST_CHECK(defer(&fresh, 6, 1, fence, UINT64_MAX) == OK);
    fence = claim(&fresh, 6, 2); /* the next one begins with what the last one left */
    TEST_CHECK(rows_of(&fresh, 6, 0, rows, 4) == 2 && rows[0].seq == 1 && rows[1].seq == 3);
    TEST_CHECK(bury(&fresh, 6, 1, fence) == OK && mark(&fresh, 6, 3, fence) == OK);
    TEST_CHECK(rows_of(&fresh, 6, 0, rows, 4) == 0);
    TEST_CHECK(revive(&fresh, 6, 1) == OK);
    struct uuid later = uuid_in(&fresh, 6);
    TEST_CHECK(send(&fresh, &later) == OK); /* numbers aren't given twice, however empty the outbox was */
    TEST_CHECK(rows_of(&fresh, 6, 0, rows, 4) == 2 && rows[0].seq == 1 && rows[1].seq == 5);
    fresh_close(&fresh);
}

/* ---- what becomes of rows ---- */

static void test_outbox_dead_rows_say_why_and_come_back(void)
{
    struct fresh fresh;
    struct dead dead;
    struct outbox_row row;
    fresh_open(&fresh);
    struct uuid id = uuid_in(&fresh, 7);
    TEST_CHECK(send(&fresh, &id) == OK);
    uint64_t fence = claim(&fresh, 7, 1);
    TEST_CHECK(defer(&fresh, 7, 1, fence, AT_US + 1) == OK && defer(&fresh, 7, 1, fence, AT_US + 2) == OK);
    TEST_CHECK(bury(&fresh, 7, 1, fence) == OK);
    TEST_CHECK(bury(&fresh, 7, 1, fence) == ERR_NOT_FOUND && mark(&fresh, 7, 1, fence) == ERR_NOT_FOUND);
    TEST_CHECK(counted(&fresh, COUNTER_OUTBOX, 7) == 0 && counted(&fresh, COUNTER_DEAD, 7) == 1);
    fresh_reopen(&fresh);
    struct view *view = look(&fresh);
    struct key key = outbox_key(7, 1);
    TEST_CHECK(txn_read(&view->txn, TABLE_DEAD, key_span(&key), &dead) == OK);
    TEST_CHECK(dead.at_us == AT_US && dead.buried_us == AT_US + 7 && dead.attempts == 2 &&
               dead.topic == PARCEL_TOPIC && uuid_equal(&dead.stream, &id) && dead.event == 1);
    TEST_CHECK(span_equal(dead.reason, span_text("nobody at home")));
    view_close(view);
    TEST_CHECK(revive(&fresh, 7, 2) == ERR_NOT_FOUND && revive(&fresh, 7, 1) == OK);
    TEST_CHECK(revive(&fresh, 7, 1) == ERR_NOT_FOUND);
    TEST_CHECK(counted(&fresh, COUNTER_OUTBOX, 7) == 1 && counted(&fresh, COUNTER_DEAD, 7) == 0);
    TEST_CHECK(rows_of(&fresh, 7, 0, &row, 1) == 1 && mark(&fresh, 7, 1, fence) == OK);
    fresh_close(&fresh);
}

/* ---- dead rows, by operators ---- */

static void test_outbox_ids_are_written_in_one_way(void)
{
    static const struct {
        uint16_t partition;
        uint64_t seq;
        const char *text;
    } sound[] = {{0, 0, "0-0"}, {3, 17, "3-17"}, {UINT16_MAX, UINT64_MAX, "65535-18446744073709551615"}};
    static const char *const wrong[] = {"",      "-",     "3",      "3-",
                                        "-17",   "03-17", "3-017",  "3-17 ",
                                        "3--17", "3:17",  "3-0x11", "3-18446744073709551616",
                                        "+3-17", "3-+17", "65536-1"};
    uint16_t partition = 0;
    uint64_t seq = 0;
    for (size_t i = 0; i < sizeof(sound) / sizeof(*sound); i++) {
        char text[OUTBOX_ID_SIZE];
        outbox_id_format(sound[i].partition, sound[i].seq, text);
        TEST_CHECK_(strcmp(text, sound[i].text) == 0, "%s", text);
        TEST_CHECK(outbox_id_parse(span_text(text), &partition, &seq) && partition == sound[i].partition &&
                   seq == sound[i].seq);
    }
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        TEST_CHECK_(!outbox_id_parse(span_text(wrong[i]), &partition, &seq), "'%s'", wrong[i]);
}

/* Rows 1 to `each` of two partitions, all dead. */
static void bury_some(struct fresh *fresh, uint16_t first, uint16_t second, uint64_t each)
{
    const uint16_t partitions[] = {first, second};
    for (uint32_t i = 0; i < 2; i++) {
        uint64_t fence = claim(fresh, partitions[i], 1);
        for (uint64_t seq = 1; seq <= each; seq++) {
            struct uuid id = uuid_in(fresh, partitions[i]);
            TEST_CHECK(send(fresh, &id) == OK && bury(fresh, partitions[i], seq, fence) == OK);
        }
    }
}

/* "2-1 2-2! none! ": the ids of those behind `after`, with ! behind one that can't be read. */
static const char *dead_list(struct fresh *fresh, const struct key *after, enum error *ret_error)
{
    static char text[1024];
    struct outbox_dead_scan scan;
    struct outbox_dead found;
    char id[OUTBOX_ID_SIZE];
    size_t used = 0;
    struct view *view = look(fresh);
    text[0] = 0;
    outbox_dead_begin(&view->txn, after, &scan);
    while ((*ret_error = outbox_dead_next(&scan, &found)) == OK) {
        outbox_id_format(found.partition, found.seq, id);
        bool whole =
            found.row.buried_us == AT_US + 7 && span_equal(found.row.reason, span_text("nobody at home"));
        TEST_CHECK(whole == !found.error && (found.error || found.row.topic == PARCEL_TOPIC));
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s ", found.named ? id : "none",
                                 found.error ? "!" : "");
    }
    outbox_dead_end(&scan);
    view_close(view);
    return text;
}

static void lists(struct fresh *fresh, const struct key *after, const char *expected)
{
    enum error e;
    const char *text = dead_list(fresh, after, &e);
    TEST_CHECK_(strcmp(text, expected) == 0 && e == ERR_NOT_FOUND, "'%s', %s", text, error_name(e));
}

static void test_outbox_dead_rows_are_listed_by_partition(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    const struct key front = {.size = 0}, middle = outbox_key(2, 2), between = outbox_key(3, 7),
                     last = outbox_key(5, 3);
    lists(&fresh, &front, "");
    bury_some(&fresh, 5, 2, 3);
    lists(&fresh, &front, "2-1 2-2 2-3 5-1 5-2 5-3 ");
    lists(&fresh, &middle, "2-3 5-1 5-2 5-3 ");
    lists(&fresh, &between, "5-1 5-2 5-3 "); /* it has gone meanwhile */
    lists(&fresh, &last, "");
    struct view *view = look(&fresh);
    int64_t rows = 0;
    TEST_CHECK(outbox_dead_count(&view->txn, 5, &rows) == OK && rows == 3);
    TEST_CHECK(outbox_dead_count(&view->txn, 4, &rows) == OK && rows == 0);
    view_close(view);
    fresh_close(&fresh);
}

/* Neither the row where a page ended, nor several side by side, hides those behind. */
static void test_outbox_dead_rows_that_cannot_be_read_are_listed(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    const struct key front = {.size = 0}, first = outbox_key(2, 1), second = outbox_key(2, 2),
                     last = outbox_key(5, 3);
    struct key none = outbox_key(2, 2), short_one = {.size = 0};
    key_add_u8(&none, 0);
    key_add_u8(&short_one, 0);
    bury_some(&fresh, 5, 2, 3);
    fresh_flip(&fresh, TABLE_DEAD, first);
    fresh_flip(&fresh, TABLE_DEAD, second);
    fresh_flip(&fresh, TABLE_DEAD, last);
    lists(&fresh, &front, "2-1! 2-2! 2-3 5-1 5-2 5-3! ");
    lists(&fresh, &first, "2-2! 2-3 5-1 5-2 5-3! ");
    lists(&fresh, &last, "");
    TEST_CHECK(revive(&fresh, 2, 1) == ERR_DAMAGED && revive(&fresh, 2, 3) == OK);
    lists(&fresh, &front, "2-1! 2-2! 5-1 5-2 5-3! ");
    fresh_flip(&fresh, TABLE_DEAD, first);
    fresh_flip(&fresh, TABLE_DEAD, second);
    fresh_flip(&fresh, TABLE_DEAD, last);
    fresh_crumb(&fresh, TABLE_DEAD, none);
    fresh_crumb(&fresh, TABLE_DEAD, short_one);
    lists(&fresh, &front, "none! 2-1 2-2 none! 5-1 5-2 5-3 ");
    fresh_take(&fresh, TABLE_DEAD, none);
    fresh_take(&fresh, TABLE_DEAD, short_one);
    fresh_newer(&fresh, TABLE_DEAD, none);
    lists(&fresh, &front, "2-1 2-2 none! 5-1 5-2 5-3 ");
    fresh_take(&fresh, TABLE_DEAD, none);
    fresh_close(&fresh);
}

/* Of the greatest key there can be, there is no behind. */
static void test_outbox_dead_rows_end_where_no_key_is_behind(void)
{
    struct fresh fresh;
    enum error e;
    const struct key front = {.size = 0};
    struct key greatest = outbox_key(2, 1);
    while (greatest.size < KEY_SIZE_MAX)
        key_add_u8(&greatest, 0);
    fresh_open(&fresh);
    bury_some(&fresh, 5, 2, 1);
    fresh_newer(&fresh, TABLE_DEAD, greatest);
    const char *text = dead_list(&fresh, &front, &e);
    TEST_CHECK_(strcmp(text, "2-1 none! ") == 0 && e == ERR_NEWER, "'%s', %s", text, error_name(e));
    fresh_take(&fresh, TABLE_DEAD, greatest);
    fresh_close(&fresh);
}

static enum error revive_by(struct fresh *fresh, uint64_t seq, const struct uuid *audit)
{
    struct outbox_revive_command c = {.partition = 2,
                                      .seq = seq,
                                      .audit = *audit,
                                      .who = span_text("ana"),
                                      .reason = span_text("it is mended"),
                                      .request_id = span_text("r-1")};
    return batch_one(fresh->store, &outbox_revive_class, AT_US + 9, &c, NULL);
}

static void test_outbox_a_revival_leaves_its_entry_in_the_same_commit(void)
{
    struct fresh fresh;
    struct audit entry;
    struct outbox_row row;
    const struct key front = {.size = 0};
    struct uuid first = fresh_uuid(), second = fresh_uuid();
    fresh_open(&fresh);
    bury_some(&fresh, 5, 2, 3);
    TEST_CHECK(revive_by(&fresh, 4, &first) == ERR_NOT_FOUND); /* of what isn't done there is no entry */
    TEST_CHECK(revive_by(&fresh, 1, &first) == OK);
    struct view *view = look(&fresh);
    TEST_CHECK(txn_rows(&view->txn, TABLE_AUDITS) == 1);
    TEST_CHECK(txn_read(&view->txn, TABLE_AUDITS, span_of(first.bytes, sizeof(first.bytes)), &entry) == OK);
    TEST_CHECK(
        span_equal(entry.who, span_text("ana")) && span_equal(entry.verb, span_text("outbox.revived")) &&
        span_equal(entry.target, span_text("2-1")) && span_equal(entry.reason, span_text("it is mended")) &&
        span_equal(entry.outcome, span_text("done")) && span_equal(entry.request_id, span_text("r-1")) &&
        entry.at_us == AT_US + 9);
    view_close(view);
    TEST_CHECK(rows_of(&fresh, 2, 0, &row, 1) == 1 && row.seq == 1 && row.row.attempts == 0);
    TEST_CHECK(revive_by(&fresh, 2, &first) == ERR_EXISTS); /* the entry is another one's: nothing is done */
    lists(&fresh, &front, "2-2 2-3 5-1 5-2 5-3 ");
    fresh.store->audits_max = 1; /* no room for a note is no reason */
    TEST_CHECK(revive_by(&fresh, 2, &second) == OK);
    lists(&fresh, &front, "2-3 5-1 5-2 5-3 ");
    view = look(&fresh);
    TEST_CHECK(txn_rows(&view->txn, TABLE_AUDITS) == 1);
    view_close(view);
    fresh_close(&fresh);
}

/* As an earlier version wrote it to a journal. */
static void test_outbox_a_revival_of_version_1_names_nobody(void)
{
    struct outbox_revive_command c = {.seq = 0};
    uint8_t bytes[10] = {2, 0, 1};
    struct uuid none = {{0}};
    TEST_CHECK(record_decode(&outbox_revive_command_record, 1, span_of(bytes, sizeof(bytes)), &c) == OK);
    TEST_CHECK(c.partition == 2 && c.seq == 1 && uuid_equal(&c.audit, &none) && c.who.size == 0);
}

static void test_outbox_attempts_stop_at_their_greatest_number(void)
{
    struct fresh fresh;
    struct outbox_row row;
    fresh_open(&fresh);
    struct uuid id = uuid_in(&fresh, 0);
    TEST_CHECK(send(&fresh, &id) == OK);
    uint64_t fence = claim(&fresh, 0, 1);
    for (uint32_t done = 0; done < UINT16_MAX + 2u;) { /* many to a batch: there is one row */
        static struct batch_item items[BATCH_MAX];
        struct outbox_defer_command c = {.partition = 0, .seq = 1, .fence = fence, .not_before_us = 1};
        uint8_t bytes[64];
        size_t size = record_encode(&outbox_defer_command_record, &c, bytes, sizeof(bytes)), count = 0;
        for (; count < BATCH_MAX && done < UINT16_MAX + 2u; count++, done++)
            items[count] = (struct batch_item){
                .class = &outbox_defer_class, .at_us = AT_US, .bytes = span_of(bytes, size)};
        TEST_CHECK(batch_run(fresh.store, items, count) == OK && items[0].answer.error == OK);
    }
    TEST_CHECK(rows_of(&fresh, 0, 0, &row, 1) == 1 && row.row.attempts == UINT16_MAX);
    fresh_close(&fresh);
}

static void test_outbox_no_such_partition(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    static const uint16_t partitions[] = {OUTBOX_PARTITIONS, UINT16_MAX};
    for (size_t i = 0; i < 2; i++) {
        uint16_t p = partitions[i];
        struct outbox_claim_command c = {.partition = p, .holder = 1};
        TEST_CHECK(batch_one(fresh.store, &outbox_claim_class, AT_US, &c, NULL) == ERR_INVALID);
        TEST_CHECK(mark(&fresh, p, 1, 1) == ERR_INVALID && defer(&fresh, p, 1, 1, 1) == ERR_INVALID);
        TEST_CHECK(bury(&fresh, p, 1, 1) == ERR_INVALID && revive(&fresh, p, 1) == ERR_INVALID);
    }
    fresh_close(&fresh);
}

static enum error forget(struct txn *txn, uint64_t at_us, void *context)
{
    uint64_t *seq = context;
    (void)at_us;
    return outbox_forget(txn, 1, *seq);
}

/* The parcels below lose their rows this way and keep their events: so check has nothing to say. */
static void test_outbox_forget_takes_a_row_wherever_it_is(void)
{
    struct fresh fresh;
    struct outbox_row row;
    uint64_t seq[] = {1, 2, 3};
    fresh_open(&fresh);
    for (uint32_t i = 0; i < 2; i++) {
        struct uuid id = uuid_in(&fresh, 1);
        TEST_CHECK(send(&fresh, &id) == OK);
    }
    TEST_CHECK(bury(&fresh, 1, 2, claim(&fresh, 1, 1)) == OK);
    for (uint32_t i = 0; i < 3; i++)
        TEST_CHECK(fresh_do(&fresh, AT_US, forget, &seq[i]) == OK);
    TEST_CHECK(rows_of(&fresh, 1, 0, &row, 1) == 0);
    TEST_CHECK(counted(&fresh, COUNTER_OUTBOX, 1) == 0 && counted(&fresh, COUNTER_DEAD, 1) == 0);
    TEST_CHECK(counted(&fresh, COUNTER_OUTBOX_NEXT, 1) == 2);
    fresh_close(&fresh);
}

static struct key key_of_bytes(const void *bytes, uint32_t size)
{
    struct key key = {.size = 0};
    key_add(&key, bytes, size);
    return key;
}

static void test_outbox_keys_that_are_none_are_found(void)
{
    static const uint8_t beyond[] = {0, OUTBOX_PARTITIONS};
    struct fresh fresh;
    struct outbox_row row;
    fresh_open(&fresh);
    struct uuid id = uuid_in(&fresh, 1);
    TEST_CHECK(send(&fresh, &id) == OK && rows_of(&fresh, 1, 0, &row, 1) == 1);
    struct dead dead = {.at_us = AT_US, .stream = id, .event = 1};
    struct claim claim = {.fence = 1}, none = {.fence = 0};
    TEST_CHECK(
        fresh_finds(&fresh, TABLE_OUTBOX, key_of_bytes("short", 5), &row.row, "outbox: a key of 5 bytes"));
    TEST_CHECK(fresh_finds(&fresh, TABLE_DEAD, key_of_bytes("short", 5), &dead, "dead: a key of 5 bytes"));
    TEST_CHECK(fresh_finds(&fresh, TABLE_DEAD, outbox_key(1, 1), &dead, "is among the dead as well"));
    TEST_CHECK(fresh_finds(&fresh, TABLE_OUTBOX, outbox_key(2, 1), &row.row,
                           fresh_about("outbox: row 2/1 of ", &id, " belongs to another partition")));
    row.row.event = 9;
    TEST_CHECK(fresh_finds(&fresh, TABLE_OUTBOX, outbox_key(1, 1), &row.row,
                           fresh_about("row 1/1 names event 9 of ", &id, ", which isn't there")));
    TEST_CHECK(
        fresh_finds(&fresh, TABLE_CLAIMS, key_of_bytes("short", 5), &claim, "a key that is no partition"));
    TEST_CHECK(
        fresh_finds(&fresh, TABLE_CLAIMS, key_of_bytes(beyond, 2), &claim, "a key that is no partition"));
    TEST_CHECK(fresh_finds(&fresh, TABLE_CLAIMS, key_of_bytes("\0\1", 2), &none, "claimed without a fence"));
    TEST_CHECK(!fresh_finds(&fresh, TABLE_CLAIMS, key_of_bytes("\0\1", 2), &claim, "claims"));
    fresh_close(&fresh);
}

static enum error put_and_look(struct txn *txn, uint64_t at_us, void *context)
{
    const struct uuid *id = context;
    const uint32_t topic = STORE_TOPIC(TOPIC_OUTBOX, outbox_partition(txn, id));
    enum outbox_level level;
    uint64_t seq;
    TEST_CHECK(outbox_level(txn, outbox_partition(txn, id), &level) == OK && level == OUTBOX_OPEN);
    outbox_put(txn, at_us, 1, id, 1, &seq);
    TEST_CHECK(seq == 2 && (txn->wakes[topic / 64] >> topic % 64 & 1) == 1);
    return OK;
}

static enum error revive_and_look(struct txn *txn, uint64_t at_us, void *context)
{
    const uint16_t *partition = context;
    const uint32_t topic = STORE_TOPIC(TOPIC_OUTBOX, *partition);
    (void)at_us;
    TEST_CHECK(outbox_revive(txn, *partition, 1) == OK);
    TEST_CHECK((txn->wakes[topic / 64] >> topic % 64 & 1) == 1);
    return OK;
}

static void test_outbox_revive_wakes_who_relays(void)
{
    struct fresh fresh;
    struct uuid id;
    uint16_t partition = 3;
    fresh_open(&fresh);
    id = uuid_in(&fresh, partition);
    TEST_CHECK(send(&fresh, &id) == OK && bury(&fresh, partition, 1, claim(&fresh, partition, 1)) == OK);
    TEST_CHECK(fresh_do(&fresh, AT_US, revive_and_look, &partition) == OK);
    fresh_close(&fresh);
}

static void test_outbox_put_wakes_who_relays(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    struct uuid id = fresh_uuid();
    TEST_CHECK(send(&fresh, &id) == OK);
    TEST_CHECK(fresh_do(&fresh, AT_US, put_and_look, &id) == OK);
    fresh_close(&fresh);
}

/* ---- partitions ---- */

static void test_outbox_partitions_are_used_evenly_and_for_ever(void)
{
    enum { IDS = 4096 };
    static uint16_t first[IDS];
    uint32_t uses[OUTBOX_PARTITIONS] = {0};
    struct fresh fresh;
    fresh_open(&fresh);
    for (uint32_t i = 0; i < IDS; i++) {
        const struct uuid id = {{(uint8_t)(i >> 8), (uint8_t)i}};
        first[i] = partition_of(&fresh, &id);
        TEST_ASSERT(first[i] < OUTBOX_PARTITIONS);
        uses[first[i]]++;
    }
    for (uint32_t i = 0; i < OUTBOX_PARTITIONS; i++)
        TEST_CHECK(uses[i] > IDS / OUTBOX_PARTITIONS / 2 && uses[i] < IDS / OUTBOX_PARTITIONS * 2);
    fresh_reopen(&fresh);
    for (uint32_t i = 0; i < IDS; i++) {
        const struct uuid id = {{(uint8_t)(i >> 8), (uint8_t)i}};
        TEST_CHECK(first[i] == partition_of(&fresh, &id));
    }
    fresh_close(&fresh);
}

/* ---- limits: the counter says how many rows there are, so a test needn't put a million ---- */

struct pretend {
    uint16_t partition;
    int64_t rows;
};

static enum error pretend(struct txn *txn, uint64_t at_us, void *context)
{
    const struct pretend *p = context;
    const uint8_t label[2] = {0, (uint8_t)p->partition};
    (void)at_us;
    counter_add(txn, COUNTER_OUTBOX, span_of(label, sizeof(label)), p->rows);
    txn->writes++; /* a batch without a row has nothing to commit */
    return OK;
}

static enum outbox_level level_of(struct fresh *fresh, uint16_t partition)
{
    struct view *view = look(fresh);
    enum outbox_level level = OUTBOX_OPEN;
    TEST_CHECK(outbox_level(&view->txn, partition, &level) == OK);
    view_close(view);
    return level;
}

static void test_outbox_levels(void)
{
    TEST_CHECK(outbox_level_of(0) == OUTBOX_OPEN && outbox_level_of(OUTBOX_SOFT - 1) == OUTBOX_OPEN);
    TEST_CHECK(outbox_level_of(OUTBOX_SOFT) == OUTBOX_FULLISH);
    TEST_CHECK(outbox_level_of(OUTBOX_HARD - 1) == OUTBOX_FULLISH);
    TEST_CHECK(outbox_level_of(OUTBOX_HARD) == OUTBOX_FULL && outbox_level_of(INT64_MAX) == OUTBOX_FULL);
}

static void test_outbox_full_refuses_and_goes_on_when_there_is_room(void)
{
    struct fresh fresh;
    struct outbox_row rows[4];
    fresh_open(&fresh);
    struct uuid first = uuid_in(&fresh, 2), second = uuid_in(&fresh, 2), third = uuid_in(&fresh, 2);
    struct uuid elsewhere = uuid_in(&fresh, 3);
    struct pretend most = {.partition = 2, .rows = OUTBOX_HARD - 2};
    TEST_CHECK(send(&fresh, &first) == OK && level_of(&fresh, 2) == OUTBOX_OPEN);
    TEST_CHECK(fresh_do(&fresh, AT_US, pretend, &most) == OK && level_of(&fresh, 2) == OUTBOX_FULLISH);
    TEST_CHECK(send(&fresh, &second) == OK && level_of(&fresh, 2) == OUTBOX_FULL);
    TEST_CHECK(send(&fresh, &third) == ERR_LIMIT && move(&fresh, &first, PARCEL_SEND) == ERR_LIMIT);
    TEST_CHECK(send(&fresh, &elsewhere) == OK && level_of(&fresh, 3) == OUTBOX_OPEN);
    uint64_t fence = claim(&fresh, 2, 1); /* relays are never refused */
    TEST_CHECK(defer(&fresh, 2, 1, fence, AT_US) == OK && bury(&fresh, 2, 1, fence) == OK);
    TEST_CHECK(send(&fresh, &third) == OK && revive(&fresh, 2, 1) == ERR_LIMIT);
    TEST_CHECK(mark(&fresh, 2, 2, fence) == OK && revive(&fresh, 2, 1) == OK);
    most.rows = -most.rows;
    TEST_CHECK(fresh_do(&fresh, AT_US, pretend, &most) == OK);
    TEST_CHECK(rows_of(&fresh, 2, 0, rows, 4) == 2 && rows[0].seq == 1 && rows[1].seq == 3);
    fresh_close(&fresh);
}

/* ---- random operations against a plain array ---- */

enum { STREAMS = 40, ROWS = 3000, BATCHES = 700, BATCH = 6 };

enum fate { WAITING, DEAD, GONE };

struct model_row {
    uint32_t stream;
    uint16_t partition, attempts;
    enum fate fate;
    uint64_t seq, event, at_us, not_before_us;
};

struct model_stream {
    struct uuid id;
    bool living;
    uint8_t state;
    uint16_t partition;
    uint64_t events;
};

static struct model {
    struct model_stream streams[STREAMS];
    struct model_row rows[ROWS]; /* in the order of commits, so in order within a partition */
    uint32_t rows_count;
    uint64_t next[OUTBOX_PARTITIONS], fence[OUTBOX_PARTITIONS];
    uint64_t now_us;
    uint32_t answered[64]; /* by error */
} model;

union command {
    struct parcel_send send;
    struct parcel_move move;
    struct parcel_drop drop;
    struct outbox_claim_command claim;
    struct outbox_mark_command mark;
    struct outbox_defer_command defer;
    struct outbox_bury_command bury;
    struct outbox_revive_command revive;
};

static void model_put(uint32_t stream)
{
    struct model_stream *s = &model.streams[stream];
    model.rows[model.rows_count++] = (struct model_row){.stream = stream,
                                                        .partition = s->partition,
                                                        .seq = ++model.next[s->partition],
                                                        .event = ++s->events,
                                                        .at_us = model.now_us};
}

static struct model_row *model_row(uint16_t partition, uint64_t seq)
{
    for (uint32_t i = 0; i < model.rows_count; i++)
        if (model.rows[i].partition == partition && model.rows[i].seq == seq)
            return &model.rows[i];
    return NULL;
}

static enum error model_held(uint16_t partition, uint64_t seq, uint64_t fence, struct model_row **ret_row)
{
    if (partition >= OUTBOX_PARTITIONS)
        return ERR_INVALID;
    if (model.fence[partition] == 0 || fence != model.fence[partition])
        return ERR_FENCED;
    *ret_row = model_row(partition, seq);
    return *ret_row && (*ret_row)->fate == WAITING ? OK : ERR_NOT_FOUND;
}

static enum error op_send(struct fresh *fresh, union command *c, const struct command_class **ret_class)
{
    uint32_t i = fresh_below(STREAMS);
    struct model_stream *s = &model.streams[i];
    *ret_class = &parcel_send_class;
    if (!s->living) {
        s->id = fresh_uuid();
        s->partition = partition_of(fresh, &s->id);
    }
    c->send = (struct parcel_send){.id = s->id, .body = span_text("hat")};
    if (s->living)
        return ERR_EXISTS;
    *s = (struct model_stream){.id = s->id, .living = true, .partition = s->partition};
    model_put(i);
    return OK;
}

static enum error op_move(union command *c, const struct command_class **ret_class)
{
    uint32_t i = fresh_below(STREAMS);
    uint8_t event = (uint8_t)fresh_below(PARCEL_EVENT_COUNT);
    struct model_stream *s = &model.streams[i];
    *ret_class = &parcel_move_class;
    c->move = (struct parcel_move){.id = s->id, .event = event};
    if (!s->living)
        return ERR_NOT_FOUND;
    bool held = s->state == PARCEL_HELD, sent = s->state == PARCEL_SENT;
    if (held && event == PARCEL_SEND)
        s->state = PARCEL_SENT;
    else if (sent && event == PARCEL_DELIVER)
        s->state = PARCEL_DELIVERED;
    else if ((held || sent) && event == PARCEL_LOSE)
        s->state = PARCEL_LOST;
    else
        return ERR_TRANSITION;
    model_put(i);
    return OK;
}

static enum error op_drop(union command *c, const struct command_class **ret_class)
{
    uint32_t i = fresh_below(STREAMS);
    struct model_stream *s = &model.streams[i];
    *ret_class = &parcel_drop_class;
    c->drop = (struct parcel_drop){.id = s->id};
    if (!s->living)
        return ERR_NOT_FOUND;
    if (s->state != PARCEL_DELIVERED && s->state != PARCEL_LOST)
        return ERR_CONFLICT;
    s->living = false;
    for (uint32_t r = 0; r < model.rows_count; r++)
        if (model.rows[r].stream == i)
            model.rows[r].fate = GONE;
    return OK;
}

static enum error op_claim(union command *c, const struct command_class **ret_class)
{
    uint16_t p = (uint16_t)fresh_below(OUTBOX_PARTITIONS + 1);
    *ret_class = &outbox_claim_class;
    c->claim = (struct outbox_claim_command){.partition = p, .holder = fresh_random()};
    if (p == OUTBOX_PARTITIONS)
        return ERR_INVALID;
    model.fence[p]++;
    return OK;
}

/* A row that is or was there, mostly, and a fence that is right, mostly. */
static void draw_row(uint16_t *ret_partition, uint64_t *ret_seq, uint64_t *ret_fence)
{
    uint32_t recent = model.rows_count < 60 ? model.rows_count : 60;
    uint16_t partition = (uint16_t)fresh_below(OUTBOX_PARTITIONS + 1);
    uint64_t seq = fresh_below(100);
    if (recent > 0 && fresh_below(20) > 0) {
        const struct model_row *row = &model.rows[model.rows_count - 1 - fresh_below(recent)];
        partition = row->partition;
        seq = row->seq;
    }
    *ret_partition = partition;
    *ret_seq = seq;
    *ret_fence = partition < OUTBOX_PARTITIONS ? model.fence[partition] : 1;
    if (fresh_below(8) == 0)
        *ret_fence += fresh_below(2) ? 1 : UINT64_MAX;
}

static enum error op_row(union command *c, const struct command_class **ret_class)
{
    uint64_t seq, fence;
    uint16_t partition;
    struct model_row *row;
    draw_row(&partition, &seq, &fence);
    enum error e = model_held(partition, seq, fence, &row);
    uint32_t what = fresh_below(4);
    if (what <= 1) {
        *ret_class = &outbox_mark_class;
        c->mark = (struct outbox_mark_command){.partition = partition, .seq = seq, .fence = fence};
        if (!e)
            row->fate = GONE;
    } else if (what == 2) {
        uint64_t until = fresh_random();
        *ret_class = &outbox_defer_class;
        c->defer = (struct outbox_defer_command){
            .partition = partition, .seq = seq, .fence = fence, .not_before_us = until};
        if (!e) {
            row->attempts++;
            row->not_before_us = until;
        }
    } else {
        *ret_class = &outbox_bury_class;
        c->bury = (struct outbox_bury_command){
            .partition = partition, .seq = seq, .fence = fence, .reason = span_text("why not")};
        if (!e)
            row->fate = DEAD;
    }
    return e;
}

static enum error op_revive(union command *c, const struct command_class **ret_class)
{
    uint64_t seq, fence;
    uint16_t partition;
    draw_row(&partition, &seq, &fence);
    for (uint32_t i = 0; i < model.rows_count && fresh_below(2); i++) /* one of the dead, if there are any */
        if (model.rows[i].fate == DEAD) {
            partition = model.rows[i].partition;
            seq = model.rows[i].seq;
        }
    *ret_class = &outbox_revive_class;
    c->revive = (struct outbox_revive_command){.partition = partition, .seq = seq};
    if (partition >= OUTBOX_PARTITIONS)
        return ERR_INVALID;
    struct model_row *row = model_row(partition, seq);
    if (!row || row->fate != DEAD)
        return ERR_NOT_FOUND;
    row->fate = WAITING;
    row->attempts = 0;
    row->not_before_us = 0;
    return OK;
}

static enum error draw(struct fresh *fresh, union command *c, const struct command_class **ret_class)
{
    uint32_t op = fresh_below(100);
    if (op < 22)
        return op_send(fresh, c, ret_class);
    if (op < 42)
        return op_move(c, ret_class);
    if (op < 52)
        return op_drop(c, ret_class);
    if (op < 58)
        return op_claim(c, ret_class);
    return op < 92 ? op_row(c, ret_class) : op_revive(c, ret_class);
}

static void run_batch(struct fresh *fresh)
{
    struct batch_item items[BATCH];
    enum error expected[BATCH];
    uint8_t bytes[BATCH][512];
    size_t count = 1 + fresh_below(BATCH);
    model.now_us++;
    for (size_t i = 0; i < count; i++) {
        const struct command_class *class;
        union command command;
        expected[i] = draw(fresh, &command, &class);
        size_t size = record_encode(class->record, &command, bytes[i], sizeof(bytes[i]));
        TEST_ASSERT(size > 0);
        items[i] =
            (struct batch_item){.class = class, .at_us = model.now_us, .bytes = span_of(bytes[i], size)};
    }
    TEST_CHECK(batch_run(fresh->store, items, count) == OK);
    for (size_t i = 0; i < count; i++) {
        TEST_CHECK_(items[i].answer.error == expected[i], "%s: %s instead of %s", items[i].class->name,
                    error_name(items[i].answer.error), error_name(expected[i]));
        model.answered[expected[i]]++;
    }
}

static bool row_same(const struct outbox_row *row, const struct model_row *expected)
{
    return row->seq == expected->seq && row->row.event == expected->event &&
           row->row.at_us == expected->at_us && row->row.attempts == expected->attempts &&
           row->row.not_before_us == expected->not_before_us &&
           uuid_equal(&row->row.stream, &model.streams[expected->stream].id);
}

/* The rows of a partition, read in pages, against those of the array. */
static void compare_partition(struct fresh *fresh, uint16_t partition)
{
    struct outbox_row rows[7];
    uint32_t count = 0, at = 0;
    int64_t waiting = 0, dead = 0;
    uint64_t after = 0;
    for (uint32_t i = 0; i < model.rows_count; i++) {
        if (model.rows[i].partition != partition)
            continue;
        dead += model.rows[i].fate == DEAD;
        if (model.rows[i].fate != WAITING)
            continue;
        if (at == count) {
            count = rows_of(fresh, partition, after, rows, 7);
            at = 0;
        }
        if (!TEST_CHECK(at < count && row_same(&rows[at], &model.rows[i])))
            return;
        after = rows[at++].seq;
        waiting++;
    }
    TEST_CHECK(at == count && rows_of(fresh, partition, after, rows, 7) == 0);
    TEST_CHECK(counted(fresh, COUNTER_OUTBOX, partition) == waiting);
    TEST_CHECK(counted(fresh, COUNTER_DEAD, partition) == dead);
    TEST_CHECK(counted(fresh, COUNTER_OUTBOX_NEXT, partition) == (int64_t)model.next[partition]);
}

static void compare_dead(struct fresh *fresh)
{
    struct view *view = look(fresh);
    uint64_t dead_rows = 0;
    for (uint32_t i = 0; i < model.rows_count; i++) {
        const struct model_row *row = &model.rows[i];
        struct key key = outbox_key(row->partition, row->seq);
        struct dead dead;
        enum error e = txn_read(&view->txn, TABLE_DEAD, key_span(&key), &dead);
        TEST_CHECK(e == (row->fate == DEAD ? OK : ERR_NOT_FOUND));
        TEST_CHECK(e || (dead.event == row->event && dead.attempts == row->attempts));
        dead_rows += row->fate == DEAD;
    }
    TEST_CHECK(txn_rows(&view->txn, TABLE_DEAD) == dead_rows);
    view_close(view);
}

static void compare(struct fresh *fresh)
{
    for (uint16_t partition = 0; partition < OUTBOX_PARTITIONS; partition++)
        compare_partition(fresh, partition);
    compare_dead(fresh);
    fresh_sound(fresh);
}

static void test_outbox_random_against_an_array(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    model.now_us = AT_US;
    for (uint32_t i = 0; i < BATCHES && model.rows_count < ROWS - BATCH; i++) {
        run_batch(&fresh);
        if (i % 25 == 0)
            compare(&fresh);
        if (i % 90 == 89)
            fresh_reopen(&fresh);
    }
    compare(&fresh);
    static const enum error met[] = {OK,           ERR_EXISTS, ERR_NOT_FOUND, ERR_TRANSITION,
                                     ERR_CONFLICT, ERR_FENCED, ERR_INVALID};
    for (size_t i = 0; i < sizeof(met) / sizeof(met[0]); i++) /* else this would show nothing */
        TEST_CHECK_(model.answered[met[i]] > 5, "%s: %u times", error_name(met[i]), model.answered[met[i]]);
    fresh_close(&fresh);
}

TEST_LIST
= {
    {"O1: a row is there if and only if its change is", test_O1_a_row_is_there_if_and_only_if_its_change_is},
    {"O1: in one batch", test_O1_in_one_batch},
    {"O3, O7: the order of commits, not of ids", test_O3_O7_order_is_that_of_the_commits_and_not_of_the_ids},
    {"O4: each try has the same number and bytes", test_O4_each_try_has_the_same_number_and_bytes},
    {"O5: only the latest claim counts", test_O5_only_the_latest_claim_counts},
    {"O6: nothing passes an unfinished row", test_O6_nothing_passes_an_unfinished_row},
    {"outbox: dead rows say why and come back", test_outbox_dead_rows_say_why_and_come_back},
    {"outbox: ids are written in one way", test_outbox_ids_are_written_in_one_way},
    {"outbox: dead rows are listed by partition", test_outbox_dead_rows_are_listed_by_partition},
    {"outbox: dead rows that can't be read are listed", test_outbox_dead_rows_that_cannot_be_read_are_listed},
    {"outbox: dead rows end where no key is behind", test_outbox_dead_rows_end_where_no_key_is_behind},
    {"outbox: a revival leaves its entry in the same commit",
     test_outbox_a_revival_leaves_its_entry_in_the_same_commit},
    {"outbox: a revival of version 1 names nobody", test_outbox_a_revival_of_version_1_names_nobody},
    {"outbox: attempts stop at their greatest number", test_outbox_attempts_stop_at_their_greatest_number},
    {"outbox: no such partition", test_outbox_no_such_partition},
    {"outbox: forgetting takes a row wherever it is", test_outbox_forget_takes_a_row_wherever_it_is},
    {"outbox: keys that are none are found", test_outbox_keys_that_are_none_are_found},
    {"outbox: putting wakes who relays", test_outbox_put_wakes_who_relays},
    {"outbox: reviving wakes who relays", test_outbox_revive_wakes_who_relays},
    {"outbox: partitions are used evenly and for ever", test_outbox_partitions_are_used_evenly_and_for_ever},
    {"outbox: levels", test_outbox_levels},
    {"outbox: full refuses, and goes on when there is room",
     test_outbox_full_refuses_and_goes_on_when_there_is_room},
    {"outbox: random operations against an array", test_outbox_random_against_an_array},
    {NULL, NULL},
};
