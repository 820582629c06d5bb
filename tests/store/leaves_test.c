/* Large files: what a start leaves for later is looked at before it is read, and all of it before the first write:
 * L7, S6, D6. Trees of three levels; every file here counts as large. */
#include "store/leaves.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "acutest.h"
#include "store/batch.h"
#include "store/image.h"
#include "store/view.h"
#include "tests/store/place.h"
#include "tests/support/stage.h"

/* Three rows fill a leaf: so few make a tree of three levels. */
enum {
    PARCELS = 600,
    BODY = 1100,
    LONG_BODY = 9000,
    PAGE = 4096,
    NODES = 16,
    MIDDLE = PARCELS / 2,
    SOME = 50
};

static char dir[PLACE_PATH_MAX];
static char text[1024];
static uint8_t *sound; /* data.mdb */
static size_t sound_size, used;
static struct store *store;

/* ---- a store ---- */

static enum error open_as(uint64_t whole_max)
{
    struct store_options options = {.environment = {.dir = dir,
                                                    .map = 64 << 20,
                                                    .step = 64 << 10,
                                                    .reserve = 4096,
                                                    .whole_max = whole_max},
                                    .schema = &parcel_store_schema,
                                    .ledger_max = 65536};
    return store_open(&options, &store, text, sizeof(text));
}

static void open_large(void)
{
    enum error e = open_as(1);
    TEST_ASSERT_(e == OK, "%s: %s", error_name(e), text);
}

static struct uuid id_of(uint32_t number)
{
    struct uuid id = {.bytes = {1, 2}};
    memcpy(id.bytes + 12, &(uint32_t){__builtin_bswap32(2 * number)}, 4); /* there is room between two */
    return id;
}

static struct span body_of(uint32_t number)
{
    static uint8_t body[LONG_BODY];
    uint32_t size = number % 50 == 7 ? LONG_BODY : BODY;
    memset(body, (int)number, size);
    return span_of(body, size);
}

static enum error send(uint32_t number)
{
    struct parcel_send command = {.id = id_of(number), .scope = span_text("test"), .body = body_of(number)};
    return batch_one(store, &parcel_send_class, 1000, &command, NULL);
}

static void send_all(void)
{
    static struct batch_item items[PARCELS];
    static uint8_t bytes[PARCELS][LONG_BODY + 200];
    STATIC_ASSERT((int)PARCELS <= (int)BATCH_MAX, "one batch");
    for (uint32_t i = 0; i < PARCELS; i++) {
        struct parcel_send command = {.id = id_of(i), .scope = span_text("test"), .body = body_of(i)};
        size_t size = record_encode(&parcel_send_record, &command, bytes[i], sizeof(bytes[i]));
        items[i] =
            (struct batch_item){.class = &parcel_send_class, .at_us = 1000, .bytes = span_of(bytes[i], size)};
    }
    TEST_ASSERT(batch_run(store, items, PARCELS) == OK);
}

static void begin(void)
{
    struct image_report report;
    MDB_stat stat;
    MDB_txn *txn;
    parcel_install();
    place_make(dir);
    TEST_ASSERT_(open_as(0) == OK, "%s", text);
    send_all();
    TEST_CHECK(send(PARCELS) == OK);
    TEST_ASSERT(mdb_txn_begin(store->environment.mdb, NULL, MDB_RDONLY, &txn) == 0);
    TEST_ASSERT(mdb_stat(txn, store->environment.tables[TABLE_PARCELS], &stat) == 0);
    TEST_CHECK_(stat.ms_depth == 3, "%u levels", stat.ms_depth);
    mdb_txn_abort(txn);
    store_close(store);
    sound = place_read(place_in(dir, "data.mdb"), &sound_size);
    int fd = open(place_in(dir, "data.mdb"), O_RDONLY | O_CLOEXEC);
    TEST_ASSERT(fd >= 0 && image_check(fd, 0, &report, text, sizeof(text)) == OK);
    used = report.pages * PAGE;
    close(fd);
}

static void end(void)
{
    place_remove(dir);
    free(sound);
}

static void place_image(const uint8_t *bytes)
{
    place_write(place_in(dir, "data.mdb"), bytes, sound_size);
}

static bool image_is(const uint8_t *bytes)
{
    size_t size;
    uint8_t *now = place_read(place_in(dir, "data.mdb"), &size);
    bool same = size == sound_size && memcmp(now, bytes, size) == 0;
    free(now);
    return same;
}

/* ---- reading ---- */

static enum error parcel_there(struct txn *txn, uint32_t number)
{
    struct uuid id = id_of(number);
    struct key key = key_of_uuid(&id);
    struct parcel parcel;
    enum error e = txn_read(txn, TABLE_PARCELS, key_span(&key), &parcel);
    return e == OK && !span_equal(parcel.body, body_of(number)) ? ERR_INVALID : e;
}

/* One that was never there, between two that are. */
static enum error parcel_between(struct txn *txn, uint32_t number)
{
    struct uuid id = id_of(number);
    id.bytes[15] |= 1;
    struct key key = key_of_uuid(&id);
    struct parcel parcel;
    return txn_read(txn, TABLE_PARCELS, key_span(&key), &parcel);
}

struct seen {
    uint32_t right, told;
};

static struct seen read_all(void)
{
    struct seen seen = {0};
    struct view *view = view_open_outside(store, 0);
    TEST_ASSERT(view != NULL);
    for (uint32_t i = 0; i <= PARCELS; i++) {
        enum error e = parcel_there(&view->txn, i), none = parcel_between(&view->txn, i);
        seen.right += e == OK;
        seen.told += e == ERR_DAMAGED;
        TEST_CHECK_(e == OK || e == ERR_DAMAGED, "parcel %u: %s", i, error_name(e));
        TEST_CHECK_(none == ERR_NOT_FOUND || none == ERR_DAMAGED, "none at %u: %s", i, error_name(none));
    }
    view_close(view);
    return seen;
}

/* From an end, or some rows from in between: each next row is the next parcel, until the last one or until damage is told. */
static bool scan_from(struct txn *txn, uint32_t from, enum scan_direction direction)
{
    struct uuid id = id_of(from);
    struct key key = key_of_uuid(&id);
    bool up = direction == SCAN_UP, whole = up ? from == 0 : from > PARCELS;
    uint32_t next = up ? from : from > PARCELS ? PARCELS : from, rows = 0;
    uint32_t left = up ? PARCELS + 1 - from : next + 1, most = whole || left < SOME ? left + 1 : SOME;
    struct scan scan = txn_scan(txn, TABLE_PARCELS, whole ? span_text("") : key_span(&key), 0, direction);
    for (; rows < most && scan_next(&scan); next += up ? 1u : -1u, rows++) {
        struct uuid expected = id_of(next);
        TEST_CHECK_(span_equal(scan.key, span_of(expected.bytes, 16)), "row %u from %u", rows, from);
    }
    enum error e = scan_end(&scan);
    TEST_CHECK_(e == OK ? rows == (most < left ? most : left) : e == ERR_DAMAGED, "%u rows from %u: %s", rows,
                from, error_name(e));
    return e == OK;
}

static bool scan_all(void)
{
    static const uint32_t from[] = {0, 1, PARCELS / 9, MIDDLE, PARCELS - 1, PARCELS, PARCELS + 1};
    bool sound_all = true;
    struct view *view = view_open_outside(store, 0);
    for (size_t i = 0; i < sizeof(from) / sizeof(from[0]); i++) {
        sound_all &= from[i] > PARCELS || scan_from(&view->txn, from[i], SCAN_UP);
        sound_all &= scan_from(&view->txn, from[i], SCAN_DOWN);
    }
    view_close(view);
    return sound_all;
}

/* ---- what is sound ---- */

static void test_L7_a_large_file_is_read_at_once_and_written_after_a_look_at_all_of_it(void)
{
    begin();
    open_large();
    TEST_CHECK(leaves_pending(store->environment.leaves));
    struct seen seen = read_all();
    TEST_CHECK(seen.right == PARCELS + 1 && seen.told == 0);
    TEST_CHECK(scan_all());
    TEST_CHECK(leaves_pending(store->environment.leaves));
    TEST_CHECK(send(PARCELS + 1) == OK);
    TEST_CHECK(!leaves_pending(store->environment.leaves));
    seen = read_all();
    TEST_CHECK(seen.right == PARCELS + 1);
    store_close(store);
    TEST_ASSERT(open_as(0) == OK);
    TEST_CHECK(!leaves_pending(store->environment.leaves)); /* 1 MB: all of it was looked at */
    store_close(store);
    end();
}

static jmp_buf out;
static unsigned rests;

static void leave(void *arg)
{
    rests++;
    if (arg && rests == *(const unsigned *)arg)
        longjmp(out, 1);
}

/* As a writer that is killed does; whoever comes next begins anew, and nothing is left of the first. */
static void test_a_look_that_is_given_up_is_begun_anew(void)
{
    begin();
    open_large();
    struct environment *e = &store->environment;
    for (unsigned at = 1; at < 4; at++) {
        rests = 0;
        if (setjmp(out) == 0) {
            TEST_CHECK(environment_believe(e, leave, &at, text, sizeof(text)) == OK);
            TEST_CHECK_(false, "it came to its end");
        }
        TEST_CHECK(leaves_pending(e->leaves));
    }
    rests = 0;
    TEST_CHECK(environment_believe(e, leave, NULL, text, sizeof(text)) == OK && rests > 3);
    TEST_CHECK(!leaves_pending(e->leaves));
    TEST_CHECK(environment_believe(e, leave, NULL, text, sizeof(text)) == OK);
    store_close(store);
    end();
}

/* ---- what isn't ---- */

static uint32_t refused, told, held, served;

/* Whatever is done to the file: refused at the start, or nothing that is read is wrong or missing, and when all is not
 * as it was written nothing is written either. */
static void judge(const uint8_t *bytes)
{
    place_image(bytes);
    enum error e = open_as(1);
    if (e) {
        TEST_CHECK_(e == ERR_DAMAGED, "%s: %s", error_name(e), text);
        TEST_CHECK(image_is(bytes));
        refused++;
        return;
    }
    struct seen seen = read_all();
    bool scanned = scan_all();
    enum error sent = send(PARCELS + 1);
    if (sent == OK) {
        TEST_CHECK(seen.right == PARCELS + 1 && scanned);
        served++;
    } else {
        TEST_CHECK_(sent == ERR_DAMAGED, "%s", error_name(sent));
        TEST_CHECK_(store->failure[0] != 0, "it says why");
        TEST_CHECK(image_is(bytes));
        struct seen again = read_all();
        TEST_CHECK(again.right == seen.right && again.told == seen.told);
        told += seen.told > 0;
        held += seen.told == 0;
    }
    store_close(store);
}

static void test_D6_S6_a_page_that_is_gone_is_told_and_nothing_is_written(void)
{
    begin();
    uint8_t *bytes = malloc(sound_size);
    refused = told = held = served = 0;
    for (size_t at = 2 * PAGE; at < used; at += 3 * PAGE) {
        TEST_CASE_("page %zu", at / PAGE);
        memcpy(bytes, sound, sound_size);
        memset(bytes + at, 0, PAGE);
        judge(bytes);
    }
    TEST_CHECK_(told > 30 && refused > 0 && served > 0, "refused %u, told %u, held %u, served %u", refused,
                told, held, served);
    free(bytes);
    end();
}

static enum error open_newer(struct environment *ret_environment)
{
    static struct schema_table tables[SCHEMA_TABLES_MAX];
    static struct schema newer;
    struct environment_options o = {
        .dir = dir, .map = 64 << 20, .step = 64 << 10, .reserve = 4096, .whole_max = 1};
    newer = parcel_store_schema;
    TEST_ASSERT(newer.tables_count < SCHEMA_TABLES_MAX);
    memcpy(tables, newer.tables, newer.tables_count * sizeof(tables[0]));
    tables[newer.tables_count] = tables[0];
    tables[newer.tables_count++].name = "another";
    newer.tables = tables;
    return environment_open(&o, &newer, ret_environment, text, sizeof(text));
}

/* A table that a newer program adds is a write: all of the file is looked at first, however large it is. */
static void test_L7_a_table_is_added_after_a_look_at_all_of_it(void)
{
    struct environment e;
    uint32_t seen = 0;
    begin();
    uint8_t *bytes = malloc(sound_size);
    for (size_t at = 2 * PAGE; at < used && seen < 3; at += 3 * PAGE) {
        memcpy(bytes, sound, sound_size);
        memset(bytes + at, 0, PAGE);
        place_image(bytes);
        if (open_as(1) != OK)
            continue;
        uint32_t lost = read_all().told;
        store_close(store);
        if (lost == 0)
            continue;
        TEST_CASE_("page %zu", at / PAGE);
        place_image(bytes);
        TEST_CHECK(open_newer(&e) == ERR_DAMAGED);
        TEST_CHECK(image_is(bytes));
        seen++;
    }
    TEST_CHECK(seen == 3);
    TEST_CASE("sound");
    place_image(sound);
    TEST_ASSERT_(open_newer(&e) == OK, "%s", text);
    TEST_CHECK(!e.leaves);
    environment_close(&e);
    TEST_ASSERT_(open_newer(&e) == OK, "%s", text);
    TEST_CHECK(leaves_pending(e.leaves)); /* the next time nothing is to be added */
    environment_close(&e);
    free(bytes);
    end();
}

static uint16_t number16(const uint8_t *at)
{
    uint16_t number;
    memcpy(&number, at, sizeof(number));
    return number;
}

/* A key of a branch leads to the wrong leaf, whose own keys don't show it; those of its neighbour do. */
static void test_D6_a_key_of_a_branch_is_told(void)
{
    begin();
    uint8_t *bytes = malloc(sound_size);
    refused = told = held = served = 0;
    for (size_t at = 2 * PAGE; at < used; at += PAGE) {
        const uint8_t *page = sound + at;
        uint32_t nodes = (number16(page + 12) - PAGE_HEAD) / 2u;
        if (number16(page + 10) != PAGE_BRANCH || page_head(page).number != at / PAGE)
            continue;
        for (uint32_t i = 1; i < nodes; i += 1 + nodes / NODES) {
            uint16_t node = number16(page + PAGE_HEAD + 2 * i);
            TEST_CASE_("page %zu, node %u", at / PAGE, i);
            memcpy(bytes, sound, sound_size);
            bytes[at + node + 8 + 15] ^= (uint8_t)(1u << i % 8); /* the key's last byte, where it has 16 */
            judge(bytes);
        }
    }
    TEST_CHECK_(told > 10 && refused + told + held + served > 40, "refused %u, told %u, held %u, served %u",
                refused, told, held, served);
    free(bytes);
    end();
}

/* One bit of the number makes the newest commit look like the one before the last: the lists of free pages tell. */
static void test_D6_S1_the_newest_commit_is_not_lost_to_a_bit_of_its_number(void)
{
    begin();
    uint8_t *bytes = malloc(sound_size);
    uint64_t numbers[2];
    memcpy(bytes, sound, sound_size);
    for (size_t slot = 0; slot < 2; slot++)
        memcpy(&numbers[slot], sound + slot * PAGE + 144, sizeof(numbers[slot]));
    size_t slot = numbers[1] > numbers[0];
    uint64_t older = numbers[slot] - 2;
    memcpy(bytes + slot * PAGE + 144, &older, sizeof(older));
    place_image(bytes);
    static const char other[] = "coppice store 00000000-1111-4222-8333-444444444444\n";
    size_t line_size;
    uint8_t *line = place_read(place_in(dir, "coppice.lock"), &line_size);
    place_write(place_in(dir, "coppice.lock"), other, sizeof(other) - 1);
    TEST_CHECK_(open_as(1) == ERR_FOREIGN && image_is(bytes), "whoever refuses doesn't mend: %s", text);
    TEST_CHECK_(open_as(0) == ERR_FOREIGN && image_is(bytes), "whoever refuses doesn't mend: %s", text);
    place_write(place_in(dir, "coppice.lock"), line, line_size);
    free(line);
    open_large();
    struct seen seen = read_all();
    TEST_CHECK_(seen.right == PARCELS + 1, "the last one is there as well");
    TEST_CHECK(image_is(sound));
    store_close(store);
    memset(bytes + slot * PAGE + 16 + 24 + 48 + 40, 0x55, 4); /* and its root of tables */
    place_image(bytes);
    TEST_CHECK_(open_as(1) == ERR_DAMAGED, "nobody knows what was there");
    TEST_CHECK(image_is(bytes));
    free(bytes);
    end();
}

/* ---- in a server ---- */

static enum error read_one(uint32_t number)
{
    struct view *view = view_open(stage_store);
    enum error e = view ? parcel_there(&view->txn, number) : ERR_UNAVAILABLE;
    if (view)
        view_close(view);
    return e;
}

static void look_body(void)
{
    const struct leaves *leaves = stage_store->environment.leaves;
    EXPECT(leaves_pending(leaves) && read_one(MIDDLE / 3) == OK);
    stage_kill(stage_writer());
    stage_writer();
    EXPECT(stage_send(1, 10) == OK);
    EXPECT(!leaves_pending(leaves) && read_one(MIDDLE / 3) == OK);
}

static void hurt_body(void)
{
    EXPECT(read_one(0) == OK);
    stage_writer();
    actor_sleep(DEADLINE_NONE); /* it ends under us */
}

static void test_S6_a_server_looks_at_all_before_it_writes_and_ends_when_it_is_damaged(void)
{
    begin();
    struct stage stage = {.seed = 1, .schedulers = 1, .dir = dir, .whole_max = 1, .unsound = true};
    TEST_CHECK(stage_run(&stage, look_body) == 0);
    place_image(sound);
    struct uuid id = id_of(MIDDLE);
    for (size_t at = 2 * PAGE; at < used; at += PAGE) /* in whatever leaf it lies, and lay */
        for (size_t i = 0; page_head(sound + at).kind == PAGE_LEAF && i < PAGE - 16; i += 2)
            if (memcmp(sound + at + i, id.bytes, 16) == 0)
                sound[at + i + 40] ^= 1;
    place_image(sound);
    TEST_CHECK(stage_run(&stage, hurt_body) == 65);
    TEST_CHECK(stage_logged("the store can't be believed: page ") == 1);
    TEST_CHECK(image_is(sound));
    end();
}

TEST_LIST
= {{"L7_a_large_file_is_read_at_once_and_written_after_a_look_at_all_of_it",
    test_L7_a_large_file_is_read_at_once_and_written_after_a_look_at_all_of_it},
   {"a_look_that_is_given_up_is_begun_anew", test_a_look_that_is_given_up_is_begun_anew},
   {"D6_S6_a_page_that_is_gone_is_told_and_nothing_is_written",
    test_D6_S6_a_page_that_is_gone_is_told_and_nothing_is_written},
   {"D6_a_key_of_a_branch_is_told", test_D6_a_key_of_a_branch_is_told},
   {"L7_a_table_is_added_after_a_look_at_all_of_it", test_L7_a_table_is_added_after_a_look_at_all_of_it},
   {"D6_S1_the_newest_commit_is_not_lost_to_a_bit_of_its_number",
    test_D6_S1_the_newest_commit_is_not_lost_to_a_bit_of_its_number},
   {"S6_a_server_looks_at_all_before_it_writes_and_ends_when_it_is_damaged",
    test_S6_a_server_looks_at_all_before_it_writes_and_ends_when_it_is_damaged},
   {NULL, NULL}};
