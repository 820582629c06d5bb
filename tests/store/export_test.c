/* Exports: each row once, in order, whole lines, over several states, and nothing beyond what can be believed. */
#define _GNU_SOURCE /* memmem */
#include "acutest.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define json_string parson_json_string /* the build calls it so, too: runtime/json.h has one */
#include "parson.h"
#undef json_string
#include "store/audit.h"
#include "store/export.h"
#include "store/page.h"
#include "tests/store/parcels.h"
#include "tests/store/place.h"

static char place[PLACE_PATH_MAX];
static struct parcels parcels;
static char text[512];

/* What was written, as one text. */
static struct {
    char *bytes;
    size_t size, calls, limit; /* limit: of calls that are taken; 0: all */
    void (*between)(void);     /* once, after the first call */
} taken;

static bool take(void *context, const char *bytes, size_t size)
{
    (void)context;
    if (taken.limit > 0 && taken.calls == taken.limit)
        return false;
    taken.bytes = realloc(taken.bytes, taken.size + size + 1);
    TEST_ASSERT(taken.bytes != NULL);
    memcpy(taken.bytes + taken.size, bytes, size);
    taken.size += size;
    taken.bytes[taken.size] = 0;
    if (taken.calls++ == 0 && taken.between)
        taken.between();
    return true;
}

static enum error export(struct export_report *report) {
    static char buffer[1 << 16]; struct guest guest; struct json_sink sink; free(taken.bytes);
    taken.bytes = calloc(1, 1);
    taken.size = taken.calls = 0;
    json_sink_init(&sink, buffer, sizeof(buffer), take, NULL);
    enum error e = guest_open(place_in(place, "a"), &parcel_store_schema, &guest, text, sizeof(text));
    TEST_ASSERT_(e == OK, "%s", text);
    memset(report, 0, sizeof(*report));
    e = export_jsonl(&guest, &sink, report, text, sizeof(text));
    guest_close(&guest);
    return e;
}

/* The line of this number (from 0) as JSON, NULL when there is none or it isn't an object. */
static JSON_Value *next_line(char **at)
{
    char *line = *at, *end = strchr(line, '\n');
    if (!end)
        return NULL;
    *end = 0;
    *at = end + 1;
    return json_parse_string(line);
}

/* Checks that each line is a row with the right members and that keys grow within a table; counts those of a table. */
static uint64_t check_lines(const char *table)
{
    uint64_t count = 0, lines = 0;
    char last_table[64] = "", last_key[2 * KEY_SIZE_MAX + 1] = "";
    for (char *at = taken.bytes; *at; lines++) {
        JSON_Value *value = next_line(&at);
        TEST_ASSERT_(value != NULL, "line %llu", (unsigned long long)lines);
        JSON_Object *row = json_value_get_object(value);
        const char *name = json_object_get_string(row, "table"), *key = json_object_get_string(row, "key");
        TEST_ASSERT(row && json_object_get_count(row) == 4 && name && key && *key);
        TEST_CHECK(json_object_get_object(row, "record") != NULL);
        TEST_CHECK((int)json_object_get_number(row, "version") == 1);
        TEST_CHECK_(strcmp(name, last_table) != 0 || strcmp(key, last_key) > 0, "%s %s after %s", name, key,
                    last_key);
        snprintf(last_table, sizeof(last_table), "%s", name);
        snprintf(last_key, sizeof(last_key), "%s", key);
        count += strcmp(name, table) == 0;
        json_value_free(value);
    }
    return count;
}

static uint64_t rows_of_all_tables(void)
{
    struct guest guest;
    uint64_t rows = 0;
    enum error e = guest_open(place_in(place, "a"), &parcel_store_schema, &guest, text, sizeof(text));
    TEST_ASSERT_(e == OK, "%s", text);
    for (uint32_t i = 0; i < parcel_store_schema.tables_count; i++)
        rows += txn_rows(&guest.txn, i);
    guest_close(&guest);
    return rows;
}

/* ---- what is written ---- */

static void test_every_row_is_a_line(void)
{
    struct export_report report;
    place_make(place);
    parcels_init(&parcels, 3);
    struct store *store = parcels_open(place_in(place, "a"), NULL);
    parcels_run(&parcels, store, 100);
    store_close(store);
    TEST_CHECK(export(&report) == OK);
    TEST_CHECK(report.rows == rows_of_all_tables());
    TEST_CHECK(report.states == 1 + parcel_store_schema.tables_count);
    TEST_CHECK(check_lines("parcels") > 20);
    place_remove(place);
}

static void test_a_record_has_its_members(void)
{
    struct export_report report;
    place_make(place);
    struct store *store = parcels_open(place_in(place, "a"), NULL);
    struct audit_append append = {.id.bytes = {1, 2, 3, 0xab},
                                  .who = span_text("\"me\"\n"),
                                  .verb = span_text("look"),
                                  .details = span_text("{\"a\":[1,2]}")};
    TEST_CHECK(batch_one(store, &audit_append_class, 1700000000123456, &append, NULL) == OK);
    store_close(store);
    TEST_CHECK(export(&report) == OK);
    TEST_CHECK_(
        strstr(taken.bytes,
               "{\"table\":\"audits\",\"key\":\"010203ab000000000000000000000000\",\"version\":1,\"record\":{"
               "\"id\":\"010203ab-0000-0000-0000-000000000000\",\"at\":\"2023-11-14T22:13:20.123456Z\","
               "\"who\":\"\\\"me\\\"\\n\",\"verb\":\"look\"") != NULL,
        "%s", taken.bytes);
    TEST_CHECK(strstr(taken.bytes, "\"details\":{\"a\":[1,2]}}}\n") != NULL);
    place_remove(place);
}

/* ---- over several states ---- */

enum { MANY = 2 * EXPORT_ROWS + 100 };

static void numbered(struct uuid *id, uint32_t number)
{
    memset(id, 0, sizeof(*id));
    for (int i = 0; i < 4; i++)
        id->bytes[i] = (uint8_t)(number >> (24 - 8 * i));
}

static void run_each(struct store *store, const struct command_class *class, uint32_t first, uint32_t last)
{
    static uint8_t bytes[BATCH_MAX][256];
    static struct batch_item items[BATCH_MAX];
    size_t count = 0;
    for (uint32_t number = first; number <= last; number++) {
        struct parcel_send send = {.body = span_text("small")};
        struct parcel_move move = {.event = PARCEL_LOSE};
        struct parcel_drop drop = {.id = {{0}}};
        numbered(class == &parcel_send_class   ? &send.id
                 : class == &parcel_move_class ? &move.id
                                               : &drop.id,
                 number);
        const void *command = class == &parcel_send_class   ? (const void *)&send
                              : class == &parcel_move_class ? (const void *)&move
                                                            : (const void *)&drop;
        size_t size = record_encode(class->record, command, bytes[count], sizeof(bytes[count]));
        items[count] =
            (struct batch_item){.class = class, .at_us = 1000, .bytes = {bytes[count], (uint32_t)size}};
        if (++count == BATCH_MAX || number == last) {
            TEST_CHECK(batch_run(store, items, count) == OK);
            for (size_t i = 0; i < count; i++)
                TEST_CHECK(items[i].answer.error == OK);
            count = 0;
        }
    }
}

static void make_many(void)
{
    place_make(place);
    struct store *store = parcels_open(place_in(place, "a"), NULL);
    run_each(store, &parcel_send_class, 1, MANY);
    store_close(store);
}

static void test_stretches_join_without_a_gap(void)
{
    struct export_report report;
    make_many();
    TEST_CHECK(export(&report) == OK);
    TEST_CHECK(report.rows == rows_of_all_tables());
    TEST_CHECK(check_lines("parcels") == MANY);
    TEST_CHECK(report.states > 6 + parcel_store_schema.tables_count);
    place_remove(place);
}

/* Another process writes while the first stretch of parcels is being written: what it adds and takes away behind the
 * end of the stretch shows, and the row at which the stretch ended being gone is no obstacle. Parcels come last. */
static int change_store(void *arg)
{
    (void)arg;
    struct store *store = parcels_open(place_in(place, "a"), NULL);
    run_each(store, &parcel_move_class, EXPORT_ROWS, EXPORT_ROWS + 1);
    run_each(store, &parcel_drop_class, EXPORT_ROWS, EXPORT_ROWS + 1);
    run_each(store, &parcel_send_class, MANY + 1, MANY + 20);
    store_close(store);
    return 0;
}

static void change_from_outside(void)
{
    TEST_CHECK(place_apart(change_store, NULL) == 0);
}

static bool has_parcel(uint32_t number)
{
    char line[64];
    snprintf(line, sizeof(line), "\"parcels\",\"key\":\"%08x0000", (unsigned)number);
    return strstr(taken.bytes, line) != NULL;
}

static void test_later_stretches_see_later_commits(void)
{
    struct export_report report;
    make_many();
    taken.between = change_from_outside;
    TEST_CHECK(export(&report) == OK);
    taken.between = NULL;
    TEST_CHECK(has_parcel(MANY) && has_parcel(MANY + 1) && has_parcel(MANY + 20));
    TEST_CHECK(has_parcel(EXPORT_ROWS - 1) && has_parcel(EXPORT_ROWS + 2));
    TEST_CHECK(!has_parcel(EXPORT_ROWS + 1));
    check_lines("parcels");
    place_remove(place);
}

/* A guest that looks at a store which its owner enlarges goes on. */
static int enlarge_store(void *arg)
{
    (void)arg;
    struct store *store = parcels_open(place_in(place, "a"), NULL);
    parcels_init(&parcels, 9);
    parcels.body_max = 20000;
    while (store->grown < 3)
        parcels_run(&parcels, store, 20);
    store_close(store);
    return 0;
}

static void test_a_map_that_grows_is_followed(void)
{
    struct guest guest;
    place_make(place);
    store_close(parcels_open(place_in(place, "a"), NULL));
    TEST_CHECK(guest_open(place_in(place, "a"), &parcel_store_schema, &guest, text, sizeof(text)) == OK);
    TEST_CHECK(txn_rows(&guest.txn, TABLE_PARCELS) == 0);
    /* A guest's map is larger than it must be; one as small as the store is what has to be outgrown. */
    mdb_txn_abort(guest.txn.mdb);
    guest.txn.mdb = NULL;
    TEST_CHECK(mdb_env_set_mapsize(guest.store.environment.mdb, 1 << 20) == 0);
    TEST_CHECK(place_apart(enlarge_store, NULL) == 0);
    TEST_CHECK(guest_renew(&guest) == OK);
    TEST_CHECK(guest.store.environment.map >= 8 << 20);
    TEST_CHECK(txn_rows(&guest.txn, TABLE_PARCELS) > 20);
    guest_close(&guest);
    place_remove(place);
}

/* ---- what can't be believed, and nobody to write to ---- */

static void test_a_damaged_row_ends_it_after_whole_lines(void)
{
    struct export_report report;
    const uint8_t key[16] = {0, 0, 0x10, 0x20};
    size_t size;
    unsigned flipped = 0;
    make_many();
    uint8_t *bytes = place_read(place_in(place, "a/data.mdb"), &size);
    for (uint8_t *at = bytes; (at = memmem(at, (size_t)(bytes + size - at), key, sizeof(key))); at++) {
        uint8_t *body = memmem(at, 100, "small", 5);
        if (!body)
            continue; /* another table's; of this one there are copies on pages that are free again */
        place_flip(place_in(place, "a/data.mdb"), (uint64_t)(body - bytes));
        flipped++;
    }
    free(bytes);
    TEST_ASSERT(flipped > 0);
    TEST_CHECK(export(&report) == ERR_DAMAGED);
    TEST_CHECK_(strstr(text, "table parcels, the row after key 0000101f") != NULL, "%s", text);
    TEST_CHECK(check_lines("parcels") == 0x101f);
    place_remove(place);
}

static void test_a_sink_that_takes_no_more_ends_it(void)
{
    struct export_report report;
    make_many();
    taken.limit = 3;
    TEST_CHECK(export(&report) == ERR_IO);
    taken.limit = 0;
    TEST_CHECK(taken.calls == 3 && strstr(text, "can't be written") != NULL);
    place_remove(place);
}

/* ---- apart ---- */

static enum error die(void *shared, char *ret_text, size_t text_size)
{
    (void)ret_text;
    (void)text_size;
    int how = *(int *)shared;
    *(int *)shared = 99;
    if (how > 0) {
        if (how != SIGKILL)
            signal(how, SIG_DFL); /* not a sanitizer's */
        kill(getpid(), how);
    }
    _exit(3);
}

static enum error answer(void *shared, char *ret_text, size_t text_size)
{
    int wanted = *(int *)shared;
    *(int *)shared = 7;
    snprintf(ret_text, text_size, "said so");
    return wanted ? ERR_NEWER : OK;
}

static void test_what_ends_a_child(void)
{
    int shared = 0;
    TEST_CHECK(guest_apart(answer, "it", &shared, sizeof(shared), text, sizeof(text)) == OK && shared == 7);
    TEST_CHECK(guest_apart(answer, "it", &shared, sizeof(shared), text, sizeof(text)) == ERR_NEWER);
    TEST_CHECK(strcmp(text, "said so") == 0);
    shared = SIGBUS;
    TEST_CHECK(guest_apart(die, "it", &shared, sizeof(shared), text, sizeof(text)) == ERR_DAMAGED);
    TEST_CHECK(shared == SIGBUS && strstr(text, "it died of what it read") != NULL);
    shared = SIGKILL;
    TEST_CHECK(guest_apart(die, "it", &shared, sizeof(shared), text, sizeof(text)) == ERR_SYSTEM);
    TEST_CHECK(strcmp(text, "it was ended by signal 9") == 0);
    shared = 0;
    TEST_CHECK(guest_apart(die, "it", &shared, sizeof(shared), text, sizeof(text)) == ERR_DAMAGED);
}

static enum error go_last(void *shared, char *ret_text, size_t text_size)
{
    (void)ret_text, (void)text_size;
    guest_last();
    *(int *)shared = sched_getscheduler(0);
    return OK;
}

static void test_two_children_at_a_time(void)
{
    int one = 1, two = 0;
    struct guest_child first, second;
    TEST_CHECK(guest_start(answer, "one", &one, sizeof(one), &first, text, sizeof(text)) == OK);
    TEST_CHECK(guest_start(go_last, "two", &two, sizeof(two), &second, text, sizeof(text)) == OK);
    TEST_CHECK(one == 1 && two == 0);
    TEST_CHECK(guest_await(&second, text, sizeof(text)) == OK && two == SCHED_IDLE);
    TEST_CHECK(guest_await(&first, text, sizeof(text)) == ERR_NEWER && one == 7);
    TEST_CHECK(strcmp(text, "said so") == 0 && sched_getscheduler(0) == SCHED_OTHER);
}

struct paced {
    _Atomic bool *stop; /* shared with the child */
    pid_t child;
    unsigned asked, rests;
    bool busy;
};

static bool seen_busy(void *arg)
{
    struct paced *paced = arg;
    siginfo_t info = {.si_pid = 0};
    if (waitid(P_PID, (id_t)paced->child, &info, WCONTINUED | WNOHANG) == 0 && info.si_pid == paced->child)
        paced->rests++;
    if (paced->busy ? paced->rests >= 2 : ++paced->asked == 6) /* a busy machine may miss a rest */
        *paced->stop = true;
    return paced->busy;
}

static enum error work_on(void *shared, char *ret_text, size_t text_size)
{
    (void)ret_text, (void)text_size;
    while (!**(_Atomic bool **)shared)
        ;
    return OK;
}

static void test_a_child_rests_while_somebody_is_busy(void)
{
    _Atomic bool *stop = mmap(NULL, sizeof(*stop), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    TEST_ASSERT(stop != MAP_FAILED);
    for (int busy = 0; busy < 2; busy++) {
        struct guest_child child;
        *stop = false;
        TEST_ASSERT(guest_start(work_on, "it", &stop, sizeof(stop), &child, text, sizeof(text)) == OK);
        struct paced paced = {.stop = stop, .child = child.pid, .busy = busy};
        guest_pace(&child, 1, seen_busy, &paced);
        TEST_CHECK_(busy ? paced.rests >= 2 : paced.rests == 0, "%u rests", paced.rests);
        TEST_CHECK(guest_await(&child, text, sizeof(text)) == OK);
    }
    munmap(stop, sizeof(*stop));
}

/* A leaf that has lost a row looks like one that never had it: the table's record knows better. */
static void test_D6_a_row_that_is_lost_is_told_and_nothing_is_written(void)
{
    enum { PAGE = 4096 };
    struct export_report report;
    size_t size;
    unsigned told = 0;
    place_make(place);
    parcels_init(&parcels, 3);
    struct store *store = parcels_open(place_in(place, "a"), NULL);
    parcels_run(&parcels, store, 100);
    store_close(store);
    uint8_t *bytes = place_read(place_in(place_in(place, "a"), "data.mdb"), &size);
    for (size_t at = 2 * PAGE; at < size; at += PAGE) {
        uint16_t lower;
        memcpy(&lower, bytes + at + 12, sizeof(lower));
        if (page_head(bytes + at).kind != PAGE_LEAF ||
            page_wrong(bytes + at, PAGE, at / PAGE, PAGE_OF_ROWS, true) || page_count(bytes + at) < 3)
            continue;
        lower -= 2;
        memcpy(bytes + at + 12, &lower, sizeof(lower));
        place_write(place_in(place_in(place, "a"), "data.mdb"), bytes, size);
        struct guest guest;
        enum error e = guest_open(place_in(place, "a"), &parcel_store_schema, &guest, text, sizeof(text));
        if (e == OK) { /* it finds what says which store this is */
            guest_close(&guest);
            e = export(&report);
            TEST_CHECK_(e == OK || (e == ERR_DAMAGED && taken.size == 0 && strstr(text, "page")), "%s: %s",
                        error_name(e), text); /* what was free may be anything */
            told += e == ERR_DAMAGED;
        }
        lower += 2;
        memcpy(bytes + at + 12, &lower, sizeof(lower));
    }
    TEST_CHECK_(told > 5, "%u times", told);
    free(bytes);
    place_remove(place);
}

TEST_LIST
= {
    {"every_row_is_a_line", test_every_row_is_a_line},
    {"a_record_has_its_members", test_a_record_has_its_members},
    {"stretches_join_without_a_gap", test_stretches_join_without_a_gap},
    {"later_stretches_see_later_commits", test_later_stretches_see_later_commits},
    {"a_map_that_grows_is_followed", test_a_map_that_grows_is_followed},
    {"a_damaged_row_ends_it_after_whole_lines", test_a_damaged_row_ends_it_after_whole_lines},
    {"D6_a_row_that_is_lost_is_told_and_nothing_is_written",
     test_D6_a_row_that_is_lost_is_told_and_nothing_is_written},
    {"a_sink_that_takes_no_more_ends_it", test_a_sink_that_takes_no_more_ends_it},
    {"what_ends_a_child", test_what_ends_a_child},
    {"two_children_at_a_time", test_two_children_at_a_time},
    {"a_child_rests_while_somebody_is_busy", test_a_child_rests_while_somebody_is_busy},
    {NULL, NULL},
};
