/* The journal: what was recorded and is replayed gives the same bytes; an end in the middle is ignored, damage is not. */
#include "acutest.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chaos/workload.h"
#include "store/audit.h"
#include "store/check.h"
#include "store/checksum.h"
#include "store/journal.h"
#include "store/retention.h"
#include "store/view.h"
#include "tests/store/parcels.h"
#include "tests/store/place.h"

static char place[PLACE_PATH_MAX];
static struct parcels parcels;
static char text[512];

static enum error replay(const char *file, const char *dir, struct replay_report *report)
{
    memset(report, 0, sizeof(*report));
    snprintf(text, sizeof(text), "-");
    parcel_install();
    return journal_replay(file, dir, &parcel_store_schema, report, text, sizeof(text));
}

#define CHECK_ERROR(found, wanted)                                                                          \
    do {                                                                                                    \
        enum error check_found = (found);                                                                   \
        TEST_CHECK_(check_found == (wanted), "%s, not %s: %s", error_name(check_found), error_name(wanted), \
                    text);                                                                                  \
    } while (0)
#define CHECK_SAYS(word) TEST_CHECK_(strstr(text, (word)) != NULL, "'%s' in: %s", (word), text)

/* Where two files differ first; SIZE_MAX when they don't. */
static size_t difference(const char *a, const char *b)
{
    size_t a_size, b_size, at = 0;
    uint8_t *a_bytes = place_read(a, &a_size), *b_bytes = place_read(b, &b_size);
    while (at < a_size && at < b_size && a_bytes[at] == b_bytes[at])
        at++;
    free(a_bytes);
    free(b_bytes);
    return at == a_size && at == b_size ? SIZE_MAX : at;
}

static void check_same(const char *a, const char *b, uint64_t seed)
{
    size_t at = difference(a, b);
    TEST_CHECK_(at == SIZE_MAX, "seed %llu: %s and %s differ at %#zx", (unsigned long long)seed, a, b, at);
}

/* ---- the same bytes ---- */

static void test_replay_gives_the_same_bytes(void)
{
    struct replay_report report;
    for (uint64_t seed = 1; seed <= 8; seed++) {
        place_make(place);
        struct store *store = parcels_open(place_in(place, "a"), place_in(place, "journal"));
        parcels_init(&parcels, seed);
        parcels_run(&parcels, store, 250);
        uint64_t commit = parcels_commit(store), grown = store->grown;
        store_close(store);
        CHECK_ERROR(replay(place_in(place, "journal"), place_in(place, "b"), &report), OK);
        TEST_CHECK(report.commit == commit);
        TEST_CHECK(report.commands > 1000 && report.refused > 200 && grown > 0 && !report.cut_off);
        /* A batch that wrote nothing is no commit, and isn't recorded. */
        TEST_CHECK(report.commands <= parcels.done + parcels.refused && report.refused <= parcels.refused);
        check_same(place_in(place, "a/data.mdb"), place_in(place, "b/data.mdb"), seed);
        place_remove(place);
    }
}

/* A command as an earlier version of this program encoded it: without the time until which it sweeps. */
static void test_commands_of_an_earlier_version_are_replayed(void)
{
    struct replay_report report;
    struct retention_sweep sweep = {.limit = 8};
    struct audit_append audit = {.id = {{1}}, .who = span_text("tests"), .verb = span_text("parcel.kick")};
    uint8_t bytes[sizeof(sweep)];
    place_make(place);
    struct store *store = parcels_open(place_in(place, "a"), place_in(place, "journal"));
    size_t size = record_encode(&retention_sweep_record, &sweep, bytes, sizeof(bytes));
    struct batch_item item = {.class = &retention_sweep_class,
                              .at_us = (AUDIT_KEPT_DAYS + 1) * UINT64_C(86400000000),
                              .bytes = span_of(bytes, size - sizeof(sweep.until_us))};
    TEST_CHECK(batch_one(store, &audit_append_class, 1, &audit, NULL) == OK);
    TEST_CHECK(batch_run(store, &item, 1) == OK && item.answer.error == OK);
    store_close(store);
    CHECK_ERROR(replay(place_in(place, "journal"), place_in(place, "b"), &report), OK);
    TEST_CHECK(report.commands == 2 && report.refused == 0);
    check_same(place_in(place, "a/data.mdb"), place_in(place, "b/data.mdb"), 0);
    place_remove(place);
}

/* Readers keep pages from being used again, so the file differs; what is in it doesn't. LMDB takes the memory of a new
 * page from one it has done with, and writes what is left of that between the offsets and the nodes (lower and upper)
 * and behind a node of odd size (store/image.c draws both): bytes that mean nothing, and depend on how many pages of free
 * pages there were. Where a transaction came to need two of its own new pages no more, it also leaves the address of one
 * in the other. They are made zero here. */
enum {
    PAGE = 4096,
    KIND_AT = 10,
    LOWER_AT = 12,
    UPPER_AT = 14,
    PAGES_AT = 12, /* of a run that holds one value */
    KIND_BRANCH = 1,
    KIND_LEAF = 2,
    KIND_RUN = 4,
    PAGE_HEAD = 16,
    NODE_HEAD = 8,
    NODE_IN_RUN = 1
};

static uint16_t number(const uint8_t *at)
{
    uint16_t value;
    memcpy(&value, at, sizeof(value));
    return value;
}

static void clear_page(uint8_t *page)
{
    uint16_t kind = number(page + KIND_AT), lower = number(page + LOWER_AT), upper = number(page + UPPER_AT);
    TEST_ASSERT((kind == KIND_LEAF || kind == KIND_BRANCH) && lower <= upper && upper <= PAGE);
    memset(page + lower, 0, (size_t)(upper - lower));
    for (const uint8_t *offset = page + PAGE_HEAD; offset < page + lower; offset += 2) {
        uint8_t *node = page + number(offset);
        size_t value = kind != KIND_LEAF                ? 0
                       : number(node + 4) & NODE_IN_RUN ? sizeof(uint64_t)
                                                        : number(node);
        size_t size = NODE_HEAD + (size_t)number(node + 6) + value;
        if (size % 2 != 0)
            node[size] = 0;
    }
}

static void clear_gaps(const char *file)
{
    size_t size;
    uint8_t *bytes = place_read(file, &size);
    TEST_ASSERT(size % PAGE == 0);
    uint32_t pages = 1;
    for (uint8_t *page = bytes + 2 * PAGE; page < bytes + size; page += pages * PAGE, pages = 1)
        if (number(page + KIND_AT) == KIND_RUN)
            memcpy(&pages, page + PAGES_AT, sizeof(pages));
        else
            clear_page(page);
    place_write(file, bytes, size);
    free(bytes);
}

static void copy_compact(const char *dir, const char *to)
{
    char error[256];
    struct environment environment;
    const struct environment_options options = {.dir = dir, .must_exist = true, .guest = true};
    enum error e = environment_open(&options, &parcel_store_schema, &environment, error, sizeof(error));
    TEST_ASSERT_(e == OK, "%s", error);
    TEST_ASSERT(mkdir(to, 0700) == 0);
    TEST_CHECK(mdb_env_copy2(environment.mdb, to, MDB_CP_COMPACT) == 0);
    environment_close(&environment);
    clear_gaps(place_in(to, "data.mdb"));
}

static void test_with_readers_the_compact_copies_are_the_same(void)
{
    struct replay_report report;
    for (uint64_t seed = 11; seed <= 14; seed++) {
        place_make(place);
        struct store *store = parcels_open(place_in(place, "a"), place_in(place, "journal"));
        parcels_init(&parcels, seed);
        parcels.body_max = 300; /* the map doesn't grow: it couldn't under an open view */
        for (uint32_t i = 0; i < 12; i++) {
            struct view *view = view_open_outside(store, i % 8);
            TEST_ASSERT(view != NULL);
            parcels_run(&parcels, store, 5);
            struct view *other = view_open_outside(store, (i + 1) % 8);
            TEST_ASSERT(other != NULL);
            view_close(view);
            parcels_run(&parcels, store, 5);
            view_close(other);
        }
        store_close(store);
        CHECK_ERROR(replay(place_in(place, "journal"), place_in(place, "b"), &report), OK);
        copy_compact(place_in(place, "a"), place_in(place, "ca"));
        copy_compact(place_in(place, "b"), place_in(place, "cb"));
        check_same(place_in(place, "ca/data.mdb"), place_in(place, "cb/data.mdb"), seed);
        TEST_CHECK(difference(place_in(place, "a/data.mdb"), place_in(place, "b/data.mdb")) != SIZE_MAX);
        place_remove(place);
    }
}

/* How often each command of the schema was done. */
static uint32_t done[64];

static void run_and_count(struct workload *w, struct store *store, size_t count)
{
    TEST_ASSERT(batch_run(store, w->items, count) == OK);
    for (size_t i = 0; i < count; i++)
        for (uint32_t c = 0; c < store->schema->commands_count; c++)
            done[c] += w->items[i].answer.error == OK && store->schema->commands[c] == w->items[i].class;
}

static void tell_finding(void *context, const char *finding)
{
    (void)context;
    TEST_CHECK_(false, "%s", finding);
}

static void check_sound(const char *dir)
{
    struct check_report report = {.findings = 1};
    CHECK_ERROR(check_directory(dir, &parcel_store_schema, tell_finding, NULL, &report, text, sizeof(text)),
                OK);
    TEST_CHECK(report.findings == 0 && report.rows > 100);
}

/* Nothing that a command does depends on the clock, on chance or on which process does it; and what it leaves is sound. */
static void test_every_command_replays_to_the_same_bytes(void)
{
    struct replay_report report;
    struct workload w;
    memset(done, 0, sizeof(done));
    for (uint64_t seed = 21; seed <= 24; seed++) {
        place_make(place);
        struct store *store = parcels_open(place_in(place, "a"), place_in(place, "journal"));
        TEST_ASSERT(store->schema->commands_count <= sizeof(done) / sizeof(*done));
        TEST_ASSERT(workload_create(&w, seed));
        for (uint32_t i = 0; i < 400; i++) {
            run_and_count(&w, store, workload_draw(&w, store));
            workload_draw_one(&w, store, store->schema->commands[i % store->schema->commands_count]);
            run_and_count(&w, store, 1);
        }
        workload_destroy(&w);
        store_close(store);
        CHECK_ERROR(replay(place_in(place, "journal"), place_in(place, "b"), &report), OK);
        copy_compact(place_in(place, "a"), place_in(place, "ca"));
        copy_compact(place_in(place, "b"), place_in(place, "cb"));
        check_same(place_in(place, "ca/data.mdb"), place_in(place, "cb/data.mdb"), seed);
        check_sound(place_in(place, "a"));
        place_remove(place);
    }
    for (uint32_t c = 0; c < parcel_store_schema.commands_count; c++)
        TEST_CHECK_(done[c] >= 10, "%s was done %u times", parcel_store_schema.commands[c]->name, done[c]);
}

/* ---- the end of the file ---- */

/* A journal of a few small batches in place, and how many bytes it has. */
static uint8_t *small_journal(size_t *ret_size, uint32_t batches)
{
    place_make(place);
    struct store *store = parcels_open(place_in(place, "a"), place_in(place, "journal"));
    parcels_init(&parcels, 5);
    parcels.body_max = 20;
    parcels_run(&parcels, store, batches);
    store_close(store);
    return place_read(place_in(place, "journal"), ret_size);
}

static void test_a_batch_cut_off_at_the_end_is_left_out(void)
{
    struct replay_report report;
    size_t size, before;
    free(small_journal(&before, 2));
    place_remove(place);
    uint8_t *bytes = small_journal(&size, 3);
    TEST_ASSERT(size > before + 40);
    for (size_t cut = before; cut <= size; cut += cut + 20 < before + 60 || size - cut < 20 ? 1 : 11) {
        place_write(place_in(place, "cut"), bytes, cut);
        CHECK_ERROR(replay(place_in(place, "cut"), place_in(place, "b"), &report), OK);
        TEST_CHECK_(report.batches == (cut == size ? 3u : 2u), "%zu of %zu bytes: %llu batches", cut, size,
                    (unsigned long long)report.batches);
        TEST_CHECK(report.cut_off == (cut != before && cut != size));
        place_remove(place_in(place, "b"));
    }
    free(bytes);
    place_remove(place);
}

static void test_damage_is_found_at_every_byte(void)
{
    struct replay_report report;
    size_t size;
    uint8_t *bytes = small_journal(&size, 2);
    for (size_t at = 0; at < size; at += at < 160 ? 1 : 7) {
        bytes[at] ^= 0x10;
        place_write(place_in(place, "bad"), bytes, size);
        enum error e = replay(place_in(place, "bad"), place_in(place, "b"), &report);
        TEST_CHECK_(e == (at < 18 ? ERR_INVALID : ERR_DAMAGED), "byte %zu of %zu: %s", at, size,
                    error_name(e));
        TEST_CHECK(strstr(text, "bad'") != NULL);
        bytes[at] ^= 0x10;
        place_remove(place_in(place, "b"));
    }
    free(bytes);
    place_remove(place);
}

/* A batch that is sound by itself, but not behind the one before it. */
static void test_batches_can_not_be_taken_out_or_doubled(void)
{
    struct replay_report report;
    size_t one, two, three;
    free(small_journal(&one, 1));
    place_remove(place);
    free(small_journal(&two, 2));
    place_remove(place);
    uint8_t *bytes = small_journal(&three, 3);
    memmove(bytes + one, bytes + two, three - two);
    place_write(place_in(place, "bad"), bytes, one + three - two);
    CHECK_ERROR(replay(place_in(place, "bad"), place_in(place, "b"), &report), ERR_DAMAGED);
    CHECK_SAYS("1 batches before");
    free(bytes);
    place_remove(place);
}

/* ---- outcomes ---- */

static void test_another_outcome_ends_the_replay(void)
{
    struct replay_report report;
    size_t size;
    place_make(place);
    struct store *store = parcels_open(place_in(place, "a"), place_in(place, "journal"));
    struct parcel_move move = {.event = PARCEL_SEND};
    struct parcel_send send = {.id.bytes[3] = 7};
    uint8_t bytes[2][256];
    struct batch_item items[2] = {
        {.class = &parcel_send_class, .at_us = 1000, .bytes.bytes = bytes[0]},
        {.class = &parcel_move_class, .at_us = 1001, .bytes.bytes = bytes[1]},
    };
    items[0].bytes.size = (uint32_t)record_encode(&parcel_send_record, &send, bytes[0], sizeof(bytes[0]));
    items[1].bytes.size = (uint32_t)record_encode(&parcel_move_record, &move, bytes[1], sizeof(bytes[1]));
    TEST_CHECK(batch_run(store, items, 2) == OK && items[1].answer.error == ERR_NOT_FOUND);
    store_close(store);
    uint8_t *journal = place_read(place_in(place, "journal"), &size);
    CHECK_ERROR(replay(place_in(place, "journal"), place_in(place, "b"), &report), OK);
    TEST_CHECK(report.commands == 2 && report.refused == 1);
    place_remove(place_in(place, "b"));

    /* The second command's "done", and the chain of checksums behind it. */
    size_t head_at = 18 + 32 + 40 + 8, first = head_at + 21, second = first + 15 + items[0].bytes.size;
    uint64_t seed;
    memcpy(&seed, journal + head_at + 13, sizeof(seed));
    journal[second + 10] = 1;
    seed = checksum(checksum(seed, journal + first, 15), journal + first + 15, items[0].bytes.size);
    seed = checksum(checksum(seed, journal + second, 15), journal + second + 15, items[1].bytes.size);
    TEST_ASSERT(second + 15 + items[1].bytes.size + sizeof(seed) == size);
    memcpy(journal + size - sizeof(seed), &seed, sizeof(seed));
    place_write(place_in(place, "other"), journal, size);
    CHECK_ERROR(replay(place_in(place, "other"), place_in(place, "b"), &report), ERR_CONFLICT);
    CHECK_SAYS("parcel.move that was done when it was recorded: now not_found");
    free(journal);
    place_remove(place);
}

/* Refused for lack of room: elsewhere there may be some. */
static void test_what_depends_on_the_disk_is_not_recorded(void)
{
    struct replay_report report;
    place_make(place);
    struct store *store = parcels_open(place_in(place, "a"), NULL);
    struct journal *journal;
    struct parcel_send send = {.id.bytes[3] = 7};
    uint8_t bytes[256];
    struct batch_item items[3];
    for (uint8_t i = 0; i < 3; i++)
        items[i] = (struct batch_item){
            .class = &parcel_send_class,
            .at_us = 1000,
            .bytes = {bytes, (uint32_t)record_encode(&parcel_send_record, &send, bytes, sizeof(bytes))}};
    items[0].answer.error = ERR_NO_SPACE;
    items[2].answer.error = ERR_LIMIT;
    TEST_ASSERT(journal_create(place_in(place, "journal"), store, &journal) == OK);
    TEST_CHECK(journal_write(journal, items, 3) == OK);
    TEST_CHECK(journal_write(journal, items, 1) == OK); /* nothing of it */
    journal_close(journal);
    store_close(store);
    CHECK_ERROR(replay(place_in(place, "journal"), place_in(place, "b"), &report), OK);
    TEST_CHECK(report.batches == 1 && report.commands == 1 && report.refused == 0 && !report.cut_off);
    place_remove(place);
}

/* ---- files and directories ---- */

static void test_files_that_are_no_journals(void)
{
    struct replay_report report;
    place_make(place);
    CHECK_ERROR(replay(place_in(place, "none"), place_in(place, "b"), &report), ERR_MISSING);
    place_write(place_in(place, "empty"), "", 0);
    CHECK_ERROR(replay(place_in(place, "empty"), place_in(place, "b"), &report), ERR_INVALID);
    place_write(place_in(place, "text"), "#!/bin/sh\necho hello, this is quite another file\n", 49);
    CHECK_ERROR(replay(place_in(place, "text"), place_in(place, "b"), &report), ERR_INVALID);
    CHECK_SAYS("isn't a journal");
    CHECK_ERROR(replay(place, place_in(place, "b"), &report), ERR_INVALID);
    char *look = place_look(place_in(place, "b"));
    TEST_CHECK(strcmp(look, "") == 0);
    free(look);
    place_remove(place);
}

static void test_a_directory_with_something_in_it_stays_as_it_is(void)
{
    struct replay_report report;
    size_t size;
    free(small_journal(&size, 2));
    char *before = place_look(place_in(place, "a"));
    CHECK_ERROR(replay(place_in(place, "journal"), place_in(place, "a"), &report), ERR_EXISTS);
    CHECK_SAYS("isn't empty");
    char *after = place_look(place_in(place, "a"));
    TEST_CHECK(strcmp(before, after) == 0);
    free(before);
    free(after);
    place_remove(place);
}

static void test_each_run_has_a_file_and_only_the_first_can_be_replayed(void)
{
    struct replay_report report;
    struct stat stat_of;
    size_t size;
    uint8_t *first = small_journal(&size, 2);
    struct store *store = parcels_open(place_in(place, "a"), place_in(place, "journal"));
    parcels_run(&parcels, store, 2);
    store_close(store);
    size_t size_now;
    uint8_t *now = place_read(place_in(place, "journal"), &size_now);
    TEST_CHECK(size == size_now && memcmp(first, now, size) == 0);
    TEST_CHECK(stat(place_in(place, "journal.2"), &stat_of) == 0 && (stat_of.st_mode & 0777) == 0600);
    CHECK_ERROR(replay(place_in(place, "journal"), place_in(place, "b"), &report), OK);
    CHECK_ERROR(replay(place_in(place, "journal.2"), place_in(place, "c"), &report), ERR_INVALID);
    CHECK_SAYS("begins after commit 3");
    free(first);
    free(now);
    place_remove(place);
}

/* After a write that failed the file ends with the last whole batch, and nothing more is written. */
static int write_into_a_limit(void *arg)
{
    struct journal *journal;
    struct parcel_send send = {.id.bytes[3] = 7};
    uint8_t bytes[256];
    struct batch_item item = {.class = &parcel_send_class, .at_us = 1000, .bytes.bytes = bytes};
    struct stat whole, cut;
    const char *file = arg;
    struct store *store = parcels_open(place_in(place, "a"), NULL);
    item.bytes.size = (uint32_t)record_encode(&parcel_send_record, &send, bytes, sizeof(bytes));
    if (journal_create(file, store, &journal) != OK || journal_write(journal, &item, 1) != OK ||
        stat(file, &whole) != 0)
        return 1;
    const struct rlimit limit = {(rlim_t)whole.st_size + 30, RLIM_INFINITY},
                        none = {RLIM_INFINITY, RLIM_INFINITY};
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0 || journal_write(journal, &item, 1) != ERR_NO_SPACE ||
        stat(file, &cut) != 0 || cut.st_size != whole.st_size)
        return 2;
    if (setrlimit(RLIMIT_FSIZE, &none) != 0 || journal_write(journal, &item, 1) != ERR_NO_SPACE ||
        stat(file, &cut) != 0 || cut.st_size != whole.st_size)
        return 3;
    journal_close(journal);
    store_close(store);
    return 0;
}

static void test_a_write_that_fails_leaves_whole_batches(void)
{
    struct replay_report report;
    char file[PLACE_PATH_MAX + 16];
    place_make(place);
    snprintf(file, sizeof(file), "%s/journal", place);
    int status = place_apart(write_into_a_limit, file);
    TEST_CHECK_(status == 0, "status %d", status);
    CHECK_ERROR(replay(file, place_in(place, "b"), &report), OK);
    TEST_CHECK(report.batches == 1 && !report.cut_off);
    place_remove(place);
}

/* A full disk is called one, and the store ends with it. */
static int record_on_a_small_disk(void *arg)
{
    const char *disk = arg;
    if (mkdir(disk, 0700) != 0 || !place_mount(disk, 64 << 10))
        return 77;
    struct store *store = parcels_open(place_in(place, "a"), place_in(disk, "journal"));
    place_fill(place_in(disk, "rest"));
    for (uint64_t at_us = 1; store_state(store) != STORE_FAILED; at_us++) {
        struct parcel_send send = {.id.bytes = {(uint8_t)at_us, (uint8_t)(at_us >> 8), 1}};
        enum error e = batch_one(store, &parcel_send_class, at_us, &send, NULL);
        if (e != (store_state(store) == STORE_FAILED ? ERR_IO : OK) || at_us > 1000)
            return 1;
    }
    bool said = strstr(store->failure, "writing the journal failed: No space left on device") != NULL;
    if (!said)
        printf("%s\n", store->failure);
    store_close(store);
    return said ? 0 : 2;
}

static void test_a_full_disk_is_named(void)
{
    char disk[PLACE_PATH_MAX + 16];
    place_make(place);
    snprintf(disk, sizeof(disk), "%s/disk", place);
    int status = place_apart(record_on_a_small_disk, disk);
    TEST_CHECK_(status == 0 || status == 77, "status %d", status);
    place_remove(place);
}

TEST_LIST
= {
    {"replay_gives_the_same_bytes", test_replay_gives_the_same_bytes},
    {"every_command_replays_to_the_same_bytes", test_every_command_replays_to_the_same_bytes},
    {"commands_of_an_earlier_version_are_replayed", test_commands_of_an_earlier_version_are_replayed},
    {"with_readers_the_compact_copies_are_the_same", test_with_readers_the_compact_copies_are_the_same},
    {"a_batch_cut_off_at_the_end_is_left_out", test_a_batch_cut_off_at_the_end_is_left_out},
    {"damage_is_found_at_every_byte", test_damage_is_found_at_every_byte},
    {"batches_can_not_be_taken_out_or_doubled", test_batches_can_not_be_taken_out_or_doubled},
    {"another_outcome_ends_the_replay", test_another_outcome_ends_the_replay},
    {"what_depends_on_the_disk_is_not_recorded", test_what_depends_on_the_disk_is_not_recorded},
    {"files_that_are_no_journals", test_files_that_are_no_journals},
    {"a_directory_with_something_in_it_stays_as_it_is", test_a_directory_with_something_in_it_stays_as_it_is},
    {"each_run_has_a_file_and_only_the_first_can_be_replayed",
     test_each_run_has_a_file_and_only_the_first_can_be_replayed},
    {"a_write_that_fails_leaves_whole_batches", test_a_write_that_fails_leaves_whole_batches},
    {"a_full_disk_is_named", test_a_full_disk_is_named},
    {NULL, NULL},
};
