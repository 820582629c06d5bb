/* Batches: one commit for all, refusals that commit nothing, a full map in the middle, and commands that break the rule. */
#include "acutest.h"

#include <stdlib.h>

#include <fcntl.h>
#include <unistd.h>

#include "store/counter.h"
#include "store/page.h"
#include "tests/store/fresh.h"
#include "tests/store/place.h"

enum { COUNT = 64, BODY = 20000 };

static char dir[PLACE_PATH_MAX];

/* ---- a command that does as it is told ---- */

enum { FILL, FILL_AND_READ, REFUSE, WRITE_AND_REFUSE, ANSWER, READ };
#define DEED_FIELDS(X) X(deed, U8, 0, 1) X(number, U64, 0, 1) X(body, BYTES, 32768, 1)
RECORD_STRUCT(deed, DEED_FIELDS);
#define deed_FIELD(name, TYPE, limit, since) RECORD_FIELD(deed, name, TYPE, limit, since)
RECORD_CLASS(deed, DEED_FIELDS, 1);

static _Atomic uint32_t applied;

static enum error apply_deed(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct deed *c = command;
    struct key key;
    struct parcel parcel = {.at_us = at_us, .body = c->body};
    int64_t value;
    applied++;
    key.size = 0;
    key_add_u64(&key, c->number);
    key_add_u64(&key, 0);
    answer_add(answer, &c->number, sizeof(c->number));
    switch (c->deed) {
    case FILL:
    case FILL_AND_READ:
        txn_add(txn, TABLE_PARCELS, key_span(&key), &parcel);
        counter_add(txn, 9400, span_of(NULL, 0), 1);
        txn_wake(txn, 7);
        if (c->deed == FILL)
            return OK;
        return counter_read(txn, 9400, span_of(NULL, 0), &value);
    case WRITE_AND_REFUSE:
        txn_add(txn, TABLE_PARCELS, key_span(&key), &parcel);
        return ERR_CONFLICT;
    case REFUSE:
        return ERR_CONFLICT;
    case READ:
        return txn_read(txn, TABLE_PARCELS, key_span(&key), &parcel);
    default:
        for (uint32_t i = answer->size; i < ANSWER_SIZE_MAX; i += 8)
            answer_add(answer, &c->number, 8);
        counter_add(txn, 9401, span_of(NULL, 0), 1);
        return OK;
    }
}

static const struct command_class deed_class = {
    .name = "deed", .record = &deed_record, .apply = apply_deed, .code = 9400};

static struct batch_item items[BATCH_MAX];
static uint8_t *encoded[BATCH_MAX];

static void item(uint32_t i, uint8_t deed, uint64_t number, uint32_t body_size)
{
    static const char body[32768];
    struct deed c = {.deed = deed, .number = number, .body = span_of(body, body_size)};
    size_t size = record_size(&deed_record, &c);
    free(encoded[i]);
    encoded[i] = malloc(size);
    TEST_CHECK(record_encode(&deed_record, &c, encoded[i], size) == size);
    items[i] = (struct batch_item){.class = &deed_class, .at_us = 1, .bytes = span_of(encoded[i], size)};
}

static bool answered(uint32_t i, enum error e, uint64_t number)
{
    return items[i].answer.error == e && items[i].answer.size >= 8 &&
           memcmp(items[i].answer.bytes, &number, sizeof(number)) == 0;
}

static struct store *open_small(uint64_t map)
{
    struct store *store = NULL;
    char text[512] = "";
    parcel_install();
    if (!dir[0])
        place_make(dir);
    enum error e = store_open(
        &(struct store_options){
            .environment = {.dir = dir, .map = map, .step = 1 << 16, .reserve = 1 << 16, .birth = {1}},
            .schema = &parcel_store_schema},
        &store, text, sizeof(text));
    TEST_ASSERT_(e == OK, "%s", text);
    return store;
}

static uint64_t number_of(struct store *store)
{
    struct view *view = view_open_outside(store, 0);
    uint64_t number = txn_number(&view->txn);
    view_close(view);
    return number;
}

static uint64_t parcels_of(struct store *store)
{
    struct view *view = view_open_outside(store, 0);
    uint64_t rows = txn_rows(&view->txn, TABLE_PARCELS);
    view_close(view);
    return rows;
}

static void close_small(struct store *store)
{
    store_close(store);
    place_remove(dir);
    dir[0] = '\0';
}

/* ---- the tests ---- */

/* Refused ones among those that are done: each has its own answer, and one commit. */
static void test_mixed(void)
{
    struct store *store = open_small(16 << 20);
    uint64_t before = number_of(store);
    for (uint32_t i = 0; i < COUNT; i++)
        item(i, i % 3 ? FILL : REFUSE, i, 10);
    TEST_CHECK(batch_run(store, items, COUNT) == OK);
    for (uint32_t i = 0; i < COUNT; i++)
        TEST_CHECK_(answered(i, i % 3 ? OK : ERR_CONFLICT, i), "%u", i);
    TEST_CHECK(number_of(store) == before + 1 && store->commits == 1 && store->commands == COUNT);
    TEST_CHECK(store->refused == (COUNT + 2) / 3 && parcels_of(store) == COUNT - (COUNT + 2) / 3);
    TEST_CHECK(store->txn.wakes[0] == 1 << 7);
    close_small(store);
}

static void test_refusals_commit_nothing(void)
{
    struct store *store = open_small(16 << 20);
    uint64_t before = number_of(store);
    size_t size, size_after;
    uint8_t *bytes = place_read(place_in(dir, "data.mdb"), &size);
    for (uint32_t i = 0; i < COUNT; i++)
        item(i, REFUSE, i, 10);
    for (int round = 0; round < 3; round++)
        TEST_CHECK(batch_run(store, items, COUNT) == OK);
    for (uint32_t i = 0; i < COUNT; i++)
        TEST_CHECK(answered(i, ERR_CONFLICT, i));
    TEST_CHECK(batch_run(store, items, 0) == OK);
    uint8_t *after = place_read(place_in(dir, "data.mdb"), &size_after);
    TEST_CHECK(size == size_after && memcmp(bytes, after, size) == 0);
    TEST_CHECK(number_of(store) == before && store->commits == 0 && store->refused == 3 * COUNT);
    free(bytes);
    free(after);
    close_small(store);
}

/* Whatever the command does after the write that the map had no room for, the batch ends as with a large map. */
static void test_D3_replayed_with_the_same_answers(void)
{
    for (uint8_t deed = FILL; deed <= FILL_AND_READ; deed++) {
        struct store *store = open_small(1 << 20);
        applied = 0;
        for (uint32_t i = 0; i < COUNT; i++)
            item(i, i % 5 ? deed : REFUSE, i, BODY);
        TEST_CHECK(batch_run(store, items, COUNT) == OK);
        for (uint32_t i = 0; i < COUNT; i++)
            TEST_CHECK_(answered(i, i % 5 ? OK : ERR_CONFLICT, i), "%u: %s", i,
                        error_name(items[i].answer.error));
        TEST_CHECK(store->grown >= 1 && applied > COUNT && store->commits == 1);
        TEST_CHECK(store->commands == COUNT && parcels_of(store) == COUNT - (COUNT + 4) / 5);
        struct view *view = view_open_outside(store, 0);
        int64_t value = 0;
        TEST_CHECK(counter_read(&view->txn, 9400, span_of(NULL, 0), &value) == OK);
        TEST_CHECK(value == COUNT - (COUNT + 4) / 5); /* once each */
        view_close(view);
        close_small(store);
    }
}

/* As many as there may be, each with the longest answer. */
static void test_long_answers(void)
{
    struct store *store = open_small(16 << 20);
    for (uint32_t i = 0; i < BATCH_MAX; i++)
        item(i, ANSWER, i * UINT64_C(0x100000001), 0);
    TEST_CHECK(batch_run(store, items, BATCH_MAX) == OK);
    for (uint32_t i = 0; i < BATCH_MAX; i++) {
        bool same = items[i].answer.size == ANSWER_SIZE_MAX;
        for (uint32_t k = 0; same && k < ANSWER_SIZE_MAX; k += 8)
            same = memcmp(items[i].answer.bytes + k, &(uint64_t){i * UINT64_C(0x100000001)}, 8) == 0;
        TEST_CHECK_(same, "%u", i);
    }
    close_small(store);
}

/* Bytes that aren't the command's are refused alone. */
static void test_bad_bytes(void)
{
    struct store *store = open_small(16 << 20);
    for (uint32_t i = 0; i < 4; i++)
        item(i, FILL, i, 10);
    items[1].bytes.size--;
    items[2].bytes = span_of("", 0);
    TEST_CHECK(batch_run(store, items, 4) == OK);
    TEST_CHECK(answered(0, OK, 0) && answered(3, OK, 3) && parcels_of(store) == 2);
    for (uint32_t i = 1; i < 3; i++)
        TEST_CHECK(items[i].answer.error == ERR_INVALID && items[i].answer.size == 0);
    close_small(store);
}

/* ---- what comes meanwhile ---- */

static struct coming {
    uint32_t step, total, body;
    uint8_t deed;
    uint32_t asked;
    uint64_t room, numbers_applied;
} coming;

static size_t come(void *arg, size_t count, uint64_t room)
{
    struct coming *c = arg;
    c->asked++;
    c->room = room;
    c->numbers_applied = applied; /* all that were there have been applied before more is asked for */
    for (uint32_t i = 0; i < c->step && count < c->total; i++, count++)
        item((uint32_t)count, c->deed, count, c->body);
    return count;
}

static void test_gathered(void)
{
    for (uint32_t step = 1; step < 8; step += 3) {
        struct store *store = open_small(16 << 20);
        uint64_t before = number_of(store);
        size_t count = 2;
        coming = (struct coming){.step = step, .total = COUNT, .body = 10, .deed = FILL};
        applied = 0;
        item(0, FILL, 0, 10);
        item(1, REFUSE, 1, 10);
        TEST_CHECK(batch_gather(store, items, &count, come, &coming) == OK && count == COUNT);
        TEST_CHECK(coming.asked == (COUNT - 2 + step - 1) / step + 1 && coming.numbers_applied == COUNT);
        for (uint32_t i = 0; i < COUNT; i++)
            TEST_CHECK_(answered(i, i == 1 ? ERR_CONFLICT : OK, i), "%u", i);
        TEST_CHECK(number_of(store) == before + 1 && store->commands == COUNT && store->refused == 1);
        TEST_CHECK(parcels_of(store) == COUNT - 1);
        /* as many bytes as are allocated, with what they make of other pages */
        TEST_CHECK(coming.room > 0 && 3 * coming.room <= store->environment.allocated);
        batch_rest(store);
        close_small(store);
    }
}

/* Up to the most that a batch may have: then nobody is asked any more. */
static void test_gathered_to_the_brim(void)
{
    struct store *store = open_small(16 << 20);
    size_t count = 1;
    coming = (struct coming){.step = 100, .total = BATCH_MAX, .body = 0, .deed = ANSWER};
    item(0, ANSWER, 0, 0);
    TEST_CHECK(batch_gather(store, items, &count, come, &coming) == OK && count == BATCH_MAX);
    TEST_CHECK(coming.asked == (BATCH_MAX - 1 + 99) / 100);
    for (uint32_t i = 0; i < BATCH_MAX; i++)
        TEST_CHECK(answered(i, OK, i));
    close_small(store);
}

/* Refused commands alone commit nothing, also when they come one by one. */
static void test_gathered_refusals(void)
{
    struct store *store = open_small(16 << 20);
    uint64_t before = number_of(store);
    size_t count = 1;
    coming = (struct coming){.step = 1, .total = 9, .deed = REFUSE};
    item(0, REFUSE, 0, 0);
    TEST_CHECK(batch_gather(store, items, &count, come, &coming) == OK && count == 9);
    TEST_CHECK(number_of(store) == before && store->refused == 9);
    close_small(store);
}

/* The map becomes full by what came meanwhile: the batch is applied again as a whole, and nobody is asked again. */
static void test_D3_gathered_into_a_full_map(void)
{
    struct store *store = open_small(1 << 20);
    size_t count = 1;
    coming = (struct coming){.step = 1, .total = COUNT, .body = BODY, .deed = FILL};
    applied = 0;
    item(0, FILL, 0, BODY);
    TEST_CHECK(batch_gather(store, items, &count, come, &coming) == OK && count > 1 && count < COUNT);
    TEST_CHECK(store->grown >= 1 && applied > count && store->commits == 1 && parcels_of(store) == count);
    TEST_CHECK(coming.asked == count - 1);
    for (uint32_t i = 0; i < count; i++)
        TEST_CHECK_(answered(i, OK, i), "%u", i);
    close_small(store);
}

/* A failed store does nothing more, and stays failed. */
static void test_failed(void)
{
    struct store *store = open_small(16 << 20);
    uint64_t before = number_of(store);
    item(0, FILL, 1, 10);
    atomic_store(&store->state, STORE_FAILED);
    TEST_CHECK(batch_run(store, items, 1) == ERR_UNAVAILABLE && number_of(store) == before);
    batch_rest(store);
    TEST_CHECK(store_state(store) == STORE_FAILED);
    close_small(store);
}

/* ---- a page that becomes another while the store is open ---- */

static bool holds_key(const uint8_t *page, uint64_t number)
{
    struct key key = {.size = 0};
    key_add_u64(&key, number);
    key_add_u64(&key, 0);
    for (uint32_t i = 0; i < page_count(page); i++)
        if (span_equal(page_key(page, i), key_span(&key)))
            return true;
    return false;
}

/* Zeros each leaf in the file that has the parcel, also those that were it once; or puts them back. */
static void hurt_leaves_of(uint64_t number, bool back)
{
    static const uint8_t zeros[4096];
    static uint8_t kept[64][4096];
    static off_t at[64];
    static size_t count;
    uint8_t page[4096];
    int fd = open(place_in(dir, "data.mdb"), O_RDWR | O_CLOEXEC);
    TEST_ASSERT(fd >= 0);
    for (size_t i = 0; back && i < count; i++)
        TEST_CHECK(pwrite(fd, kept[i], sizeof(page), at[i]) == sizeof(page));
    count = back ? 0 : count;
    for (off_t i = 2; !back && pread(fd, page, sizeof(page), i * 4096) == sizeof(page); i++)
        if (page_head(page).kind == PAGE_LEAF && count < 64 &&
            !page_wrong(page, sizeof(page), (uint64_t)i, PAGE_OF_ROWS, true) && holds_key(page, number)) {
            memcpy(kept[count], page, sizeof(page));
            at[count++] = i * 4096;
            TEST_CHECK(pwrite(fd, zeros, sizeof(zeros), i * 4096) == sizeof(zeros));
        }
    TEST_CHECK(back || count > 0);
    close(fd);
}

static enum error parcel_of(struct txn *txn, uint64_t number)
{
    struct key key = {.size = 0};
    struct parcel parcel;
    key_add_u64(&key, number);
    key_add_u64(&key, 0);
    return txn_read(txn, TABLE_PARCELS, key_span(&key), &parcel);
}

/* LMDB does nothing more in a transaction that met it: so the batch is refused, as damaged, and the next one is another. */
static void test_L7_a_page_damaged_under_lmdb_is_damage_and_the_store_goes_on(void)
{
    struct store *store = open_small(16 << 20);
    for (uint32_t i = 0; i < 60; i++)
        item(i, FILL, i, 500);
    TEST_CHECK(batch_run(store, items, 60) == OK);
    uint64_t before = number_of(store);
    hurt_leaves_of(10, false);
    item(0, READ, 10, 0);
    item(1, FILL, 1000, 500);
    item(2, READ, 50, 0);
    enum error e = batch_run(store, items, 3);
    TEST_CHECK_(e == ERR_DAMAGED, "%s: %s", error_name(e), store->failure);
    TEST_CHECK(store_state(store) == STORE_OPEN && number_of(store) == before);
    item(0, FILL, 10, 500); /* and when it is met by a write */
    TEST_CHECK(batch_run(store, items, 2) == ERR_DAMAGED);
    TEST_CHECK(store_state(store) == STORE_OPEN && number_of(store) == before);
    struct view *view = view_open_outside(store, 0);
    TEST_CHECK(parcel_of(&view->txn, 50) == OK);
    TEST_CHECK(parcel_of(&view->txn, 10) == ERR_DAMAGED);
    TEST_CHECK(parcel_of(&view->txn, 50) == ERR_DAMAGED); /* nothing is read through it any more */
    view_close(view);
    view = view_open_outside(store, 0);
    TEST_CHECK(parcel_of(&view->txn, 50) == OK);
    view_close(view);
    item(0, FILL, 1001, 500);
    item(1, READ, 50, 0);
    TEST_CHECK(batch_run(store, items, 2) == OK && answered(0, OK, 1001) && answered(1, OK, 50));
    hurt_leaves_of(10, true);
    item(0, READ, 10, 0);
    TEST_CHECK(batch_run(store, items, 1) == OK && answered(0, OK, 10));
    close_small(store);
}

/* Writing and then refusing is a bug, and the process says so before it commits. */
static int broken(void *arg)
{
    struct store *store = open_small(16 << 20);
    item(0, *(uint8_t *)arg, 1, 10);
    (void)batch_run(store, items, 1);
    close_small(store);
    return 0;
}

static void test_refused_after_writing(void)
{
    uint8_t deed = REFUSE;
    place_make(dir);
    TEST_CHECK(place_apart(broken, &deed) == 0);
    place_make(strcpy(dir, ""));
    deed = WRITE_AND_REFUSE;
    int status = place_apart(broken, &deed);
    TEST_CHECK_(status != 0, "%d", status);
    place_remove(dir);
}

TEST_LIST
= {
    {"refusals among successes: one commit, each its answer", test_mixed},
    {"refusals alone commit nothing", test_refusals_commit_nothing},
    {"D3 a full map: the same answers, applied once", test_D3_replayed_with_the_same_answers},
    {"a thousand answers of the greatest size", test_long_answers},
    {"bytes that aren't a command's are refused alone", test_bad_bytes},
    {"commands that come while others are applied: one commit, each its answer", test_gathered},
    {"as many as a batch may have", test_gathered_to_the_brim},
    {"refusals that come one by one commit nothing", test_gathered_refusals},
    {"D3 a map that those who come fill up", test_D3_gathered_into_a_full_map},
    {"a failed store does nothing more, and stays failed", test_failed},
    {"L7_a_page_damaged_under_lmdb_is_damage_and_the_store_goes_on",
     test_L7_a_page_damaged_under_lmdb_is_damage_and_the_store_goes_on},
    {"a command that writes and then refuses ends the process", test_refused_after_writing},
    {NULL, NULL},
};
