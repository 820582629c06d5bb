/* Every allocation, every call of LMDB and every call of the system fails once, in this process or in the child that
 * does the work: while a store is brought forward, recorded, replayed, backed up, restored, checked and exported. What
 * is said is so, what there was is there, and nothing that isn't whole passes for it. */
#include "acutest.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/backup.h"
#include "store/check.h"
#include "store/checksum.h"
#include "store/counter.h"
#include "store/export.h"
#include "store/guest.h"
#include "store/journal.h"
#include "store/view.h"
#include "tests/store/place.h"
#include "tests/support/failing.h"
#include "tests/support/parcel.h"

enum { PARCELS = 12, LANE = 2, CALLS_MAX = 5000, LINES = 1 << 20, MIGRATED = 9300 };

static const char *const kind_names[] = {
#define X(id, name) [id] = name,
    FAILING_KINDS(X)
#undef X
};

static char place[PLACE_PATH_MAX], template[PLACE_PATH_MAX + 16], work[PLACE_PATH_MAX + 16];
static char copy[PLACE_PATH_MAX + 16], journal[PLACE_PATH_MAX + 16], text[1024];
static uint64_t rows, rows_sum; /* of the template */
static struct store *store;

/* ---- stores ---- */

static enum error open_with(const char *dir, const struct schema *schema, const char *record)
{
    struct store_options options = {
        .environment = {.dir = dir, .map = 1 << 20, .step = 64 << 10, .reserve = 4096, .views_max = 16},
        .schema = schema,
        .record = record,
        .ledger_max = 4096,
    };
    memset(options.environment.birth, 7, sizeof(options.environment.birth));
    store = NULL;
    return store_open(&options, &store, text, sizeof(text));
}

static void open_sound(const char *dir, const struct schema *schema)
{
    enum error e = open_with(dir, schema, NULL);
    TEST_ASSERT_(e == OK, "%s: %s", error_name(e), text);
}

static enum error send_one(uint32_t number)
{
    static const uint8_t body[6000];
    char key[16];
    snprintf(key, sizeof(key), "k%u", number);
    struct parcel_send send = {.id.bytes = {1, (uint8_t)number},
                               .scope = span_text("test"),
                               .key = span_text(key),
                               .body = span_of(body, number % 4 ? 100 : sizeof(body))};
    return batch_one(store, &parcel_send_class, 1000 + number, &send, NULL);
}

/* All rows but what each commit changes. */
static uint64_t sum_rows(uint64_t *ret_rows)
{
    uint64_t sum = 0;
    struct key from = {.size = 1};
    struct view *view = view_open_outside(store, LANE);
    TEST_ASSERT(view != NULL);
    *ret_rows = 0;
    for (uint32_t table = 0; table < parcel_store_schema.tables_count; table++) {
        struct scan scan = txn_scan(&view->txn, table, key_span(&from), 0, SCAN_UP);
        for (; scan_next(&scan); ++*ret_rows)
            if (table != TABLE_META)
                sum += checksum(checksum(table, scan.key.bytes, scan.key.size), scan.bytes.bytes,
                                scan.bytes.size);
        TEST_CHECK(scan_end(&scan) == OK);
    }
    view_close(view);
    return sum;
}

static void complain(void *context, const char *finding)
{
    (void)context;
    TEST_CHECK_(false, "rows: %s", finding);
}

/* The open store is sound and is the template's; closes it. */
static void judge_open(const struct schema *schema)
{
    struct check_report report;
    uint64_t count;
    struct view *view = view_open_outside(store, LANE);
    TEST_ASSERT(view != NULL);
    TEST_CHECK(check_rows(&view->txn, schema, complain, NULL, &report) == OK);
    view_close(view);
    TEST_CHECK_(sum_rows(&count) == rows_sum && count == rows, "it has its rows");
    store_close(store);
    store = NULL;
}

static void take_file(const char *name)
{
    size_t size;
    uint8_t *bytes = place_read(place_in(template, name), &size);
    place_write(place_in(work, name), bytes, size);
    free(bytes);
}

static void take_template(void)
{
    place_remove(work);
    TEST_ASSERT(mkdir(work, 0700) == 0);
    take_file("data.mdb");
    take_file("coppice.lock");
}

static void names_begin(void)
{
    parcel_install();
    place_make(place);
    snprintf(template, sizeof(template), "%s/template", place);
    snprintf(work, sizeof(work), "%s/work", place);
    snprintf(copy, sizeof(copy), "%s/copy", place);
    snprintf(journal, sizeof(journal), "%s/journal", place);
}

/* With a template in it. */
static void begin(void)
{
    names_begin();
    open_sound(template, &parcel_store_schema);
    for (uint32_t i = 0; i < PARCELS; i++)
        TEST_ASSERT(send_one(i) == OK);
    store_close(store);
    open_sound(template, &parcel_store_schema);
    rows_sum = sum_rows(&rows);
    store_close(store);
}

static void end(void)
{
    place_remove(place);
}

/* ---- each call ---- */

struct deed {
    const char *name;
    void (*prepare)(void);
    enum error (*run)(void);
    void (*judge)(enum error e); /* leaves nothing open */
};

static void fail_each(const struct deed *deed)
{
    for (enum failing_kind kind = 0; kind < FAILING_KIND_COUNT; kind++)
        for (uint64_t n = 1;; n++) {
            TEST_ASSERT_(n < CALLS_MAX, "%s makes more calls than one does", deed->name);
            deed->prepare();
            int64_t live = failing_live();
            text[0] = 0;
            failing_begin(kind, n);
            enum error e = deed->run();
            bool hit = failing_end();
            TEST_CASE_("%s: %s, call %u, %s", deed->name, kind_names[kind], (unsigned)n, failing_name());
            TEST_CHECK_(hit || e == OK, "without a failure: %s: %s", error_name(e), text);
            deed->judge(e);
            TEST_CHECK_(failing_live() == live, "%lld allocations are left",
                        (long long)(failing_live() - live));
            if (!hit)
                break;
        }
}

/* ---- brought forward ---- */

static struct schema older, newer;

static enum error run_open(void)
{
    return open_with(work, &parcel_store_schema, NULL);
}

static void judge_opened(enum error e)
{
    TEST_CHECK_(e == OK ? store != NULL : store == NULL && text[0], "%s: '%s'", error_name(e), text);
    if (e)
        open_sound(work, &parcel_store_schema);
    judge_open(&parcel_store_schema);
}

/* A store that an older program made has a table less. */
static void test_S6_every_call_fails_while_a_table_is_added(void)
{
    static const struct deed deed = {"a new table", take_template, run_open, judge_opened};
    older = parcel_store_schema;
    older.tables_count = TABLE_PARCELS; /* the last one */
    names_begin();
    open_sound(template, &older);
    store_close(store);
    take_template();
    open_sound(work, &parcel_store_schema);
    rows_sum = sum_rows(&rows);
    store_close(store);
    fail_each(&deed);
    end();
}

static enum error to_2(struct txn *txn)
{
    counter_add(txn, MIGRATED, span_of(NULL, 0), 32);
    return OK;
}
static const struct schema_migration migrations[] = {{1, to_2}};

static enum error run_migration(void)
{
    return open_with(work, &newer, NULL);
}

/* Once, whether it was said or not. */
static void judge_migrated(enum error e)
{
    int64_t migrated = 0;
    TEST_CHECK_(e == OK ? store != NULL : store == NULL && text[0], "%s: '%s'", error_name(e), text);
    if (e)
        open_sound(work, &newer);
    struct view *view = view_open_outside(store, LANE);
    TEST_ASSERT(view != NULL);
    TEST_CHECK(counter_read(&view->txn, MIGRATED, span_of(NULL, 0), &migrated) == OK && migrated == 32);
    TEST_CHECK(txn_rows(&view->txn, TABLE_PARCELS) == PARCELS);
    view_close(view);
    store_close(store);
}

static void test_S6_every_call_fails_while_a_format_is_brought_forward(void)
{
    static const struct deed deed = {"a migration", take_template, run_migration, judge_migrated};
    newer = parcel_store_schema;
    newer.format = 2;
    newer.migrations = migrations;
    newer.migrations_count = 1;
    begin();
    fail_each(&deed);
    end();
}

/* ---- recorded ---- */

static void prepare_journal(void)
{
    place_remove(journal);
    place_remove(work);
}

/* Three batches in a store that is recorded from its making. */
static enum error run_recorded(void)
{
    enum error e = open_with(work, &parcel_store_schema, journal);
    for (uint32_t i = 0; !e && i < 3; i++)
        e = send_one(i);
    return e;
}

/* What was answered is in the journal; or the store has failed, or would say that something isn't there. */
static void judge_recorded(enum error e)
{
    struct replay_report report;
    uint64_t here = 0, there = 0;
    if (e) {
        TEST_CHECK_(text[0] || (store && (e == ERR_UNAVAILABLE ||
                                          (e == ERR_IO) == (store_state(store) == STORE_FAILED))),
                    "%s: %s", error_name(e), store ? store->failure : "");
        store_close(store);
        return;
    }
    uint64_t sum = sum_rows(&here);
    store_close(store);
    place_remove(copy);
    e = journal_replay(journal, copy, &parcel_store_schema, &report, text, sizeof(text));
    TEST_CHECK_(e == OK && !report.cut_off, "%s: %s", error_name(e), text);
    open_sound(copy, &parcel_store_schema);
    TEST_CHECK(sum_rows(&there) == sum && there == here);
    store_close(store);
}

static void test_S1_every_call_fails_while_a_store_is_recorded(void)
{
    static const struct deed deed = {"a journal", prepare_journal, run_recorded, judge_recorded};
    begin();
    fail_each(&deed);
    end();
}

static void prepare_replay(void)
{
    place_remove(work);
}

static enum error run_replay(void)
{
    struct replay_report report;
    return journal_replay(journal, work, &parcel_store_schema, &report, text, sizeof(text));
}

static void judge_replayed(enum error e)
{
    uint64_t count;
    TEST_CHECK_(e == OK || text[0], "%s", error_name(e));
    if (e)
        return;
    open_sound(work, &parcel_store_schema);
    TEST_CHECK(sum_rows(&count) == rows_sum && count == rows);
    store_close(store);
}

static void test_S2_every_call_fails_while_a_journal_is_replayed(void)
{
    static const struct deed deed = {"a replay", prepare_replay, run_replay, judge_replayed};
    names_begin();
    TEST_ASSERT(run_recorded() == OK);
    rows_sum = sum_rows(&rows);
    store_close(store);
    fail_each(&deed);
    end();
}

/* ---- looked after ---- */

static struct backup_report backed_up;

static void prepare_backup(void)
{
    char partial[PLACE_PATH_MAX + 32];
    snprintf(partial, sizeof(partial), "%s.partial", copy);
    place_remove(copy);
    place_remove(partial);
}

static enum error run_backup(void)
{
    return backup_make(template, copy, &parcel_store_schema, 1, &backed_up, text, sizeof(text));
}

/* A directory with its name is a whole backup; a failure leaves none. */
static void judge_backup(enum error e)
{
    TEST_CHECK_(e == OK ? access(copy, F_OK) == 0 : access(copy, F_OK) != 0 && text[0], "%s: '%s'",
                error_name(e), text);
    if (e)
        return;
    e = backup_verify(copy, &parcel_store_schema, &backed_up, text, sizeof(text));
    TEST_CHECK_(e == OK && backed_up.rows == rows, "%s: %s", error_name(e), text);
}

static void test_S2_every_call_fails_while_a_backup_is_made(void)
{
    static const struct deed deed = {"a backup", prepare_backup, run_backup, judge_backup};
    begin();
    fail_each(&deed);
    end();
}

static void prepare_restore(void)
{
    place_remove(work);
}

static enum error run_restore(void)
{
    return backup_restore(copy, work, &parcel_store_schema, &backed_up, text, sizeof(text));
}

static void judge_restore(enum error e)
{
    TEST_CHECK_(e == OK ? access(work, F_OK) == 0 : access(work, F_OK) != 0 && text[0], "%s: '%s'",
                error_name(e), text);
    if (e)
        return;
    open_sound(work, &parcel_store_schema);
    judge_open(&parcel_store_schema);
}

static void test_S2_every_call_fails_while_a_backup_is_restored(void)
{
    static const struct deed deed = {"a restore", prepare_restore, run_restore, judge_restore};
    begin();
    TEST_ASSERT(run_backup() == OK);
    fail_each(&deed);
    end();
}

/* A restore that ends at the n-th call of the system. Whether it came so far. */
static bool cut_off_restore(uint64_t n)
{
    int status;
    prepare_restore();
    failing_begin_ending(FAILING_SYSTEM, n);
    pid_t child = fork();
    if (child == 0)
        _exit(run_restore() == OK ? 0 : 1);
    TEST_ASSERT(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
    bool hit = failing_end();
    TEST_CHECK_(WEXITSTATUS(status) == 0 || hit, "it ends with %d", WEXITSTATUS(status));
    return hit;
}

/* Something of it lies there, and isn't just the file that is locked. */
static bool restore_has_begun(void)
{
    struct stat st;
    return access(place_in(work, "new"), F_OK) == 0 || access(place_in(work, "data.mdb"), F_OK) == 0 ||
           (stat(place_in(work, "coppice.lock"), &st) == 0 && st.st_size > 0);
}

/* All that was left to do was to sync its name. */
static bool restore_is_named(void)
{
    size_t size = 0;
    bool there = access(place_in(work, "coppice.lock"), F_OK) == 0;
    uint8_t *line = there ? place_read(place_in(work, "coppice.lock"), &size) : NULL;
    bool named = size > sizeof(ENVIRONMENT_LOCK_LINE) &&
                 memcmp(line, ENVIRONMENT_LOCK_LINE, sizeof(ENVIRONMENT_LOCK_LINE) - 1) == 0;
    free(line);
    return named;
}

/* Either it is the whole store, or nobody opens it; counts the latter. */
static void judge_cut_off(uint32_t *refused)
{
    bool whole = access(place_in(work, "data.mdb"), F_OK) == 0;
    enum error e = open_with(work, &parcel_store_schema, NULL);
    TEST_CHECK_(whole ? e == OK : e == ERR_DAMAGED && strstr(text, "run 'coppice restore' again"), "%s: %s",
                error_name(e), text);
    *refused += !whole;
    if (!e) {
        judge_open(&parcel_store_schema);
        open_sound(work, &parcel_store_schema); /* and once more, as any other */
        judge_open(&parcel_store_schema);
        TEST_CHECK(run_restore() == ERR_EXISTS);
    }
}

static void test_S2_a_restore_that_is_cut_off_anywhere_is_no_empty_store(void)
{
    uint32_t refused = 0, begun = 0;
    begin();
    TEST_ASSERT(run_backup() == OK);
    for (uint64_t n = 1; cut_off_restore(n); n++) {
        TEST_ASSERT(n < CALLS_MAX);
        TEST_CASE_("cut off at call %u, %s", (unsigned)n, failing_name());
        if (restore_has_begun()) {
            begun++;
            judge_cut_off(&refused);
        }
        (void)cut_off_restore(n);
        bool named = restore_is_named();
        enum error e = run_restore();
        TEST_CHECK_(e == (named ? ERR_EXISTS : OK), "again: %s: %s", error_name(e), text);
        open_sound(work, &parcel_store_schema);
        judge_open(&parcel_store_schema);
    }
    TEST_CHECK_(refused >= 5 && begun - refused >= 3, "%u of %u refused", (unsigned)refused, (unsigned)begun);
    end();
}

static void prepare_nothing(void)
{
}

static enum error run_verify(void)
{
    return backup_verify(copy, &parcel_store_schema, &backed_up, text, sizeof(text));
}

static void judge_verify(enum error e)
{
    TEST_CHECK_(e == OK ? backed_up.rows == rows : text[0] != 0, "%s: '%s'", error_name(e), text);
}

static void test_S2_every_call_fails_while_a_backup_is_verified(void)
{
    static const struct deed deed = {"a verification", prepare_nothing, run_verify, judge_verify};
    begin();
    TEST_ASSERT(run_backup() == OK);
    fail_each(&deed);
    TEST_CHECK(run_verify() == OK);
    end();
}

static struct check_report checked;

static void told(void *context, const char *finding)
{
    (void)context;
    TEST_CHECK(finding[0] != 0);
}

static enum error run_check(void)
{
    checked = (struct check_report){.rows = 0};
    return check_directory(template, &parcel_store_schema, told, NULL, &checked, text, sizeof(text));
}

/* A sound store isn't called sound by who could not look at all of it. */
static void judge_check(enum error e)
{
    TEST_CHECK_(e == OK ? checked.findings > 0 || checked.rows == rows : text[0] != 0, "%s: '%s', %llu rows",
                error_name(e), text, (unsigned long long)checked.rows);
}

static void test_S6_every_call_fails_while_a_store_is_checked(void)
{
    static const struct deed deed = {"a check", prepare_nothing, run_check, judge_check};
    begin();
    fail_each(&deed);
    TEST_CHECK(run_check() == OK && checked.findings == 0 && checked.rows == rows);
    end();
}

static struct export_report exported;

static enum error run_export(void)
{
    static char lines[LINES];
    struct json_sink sink;
    struct guest guest;
    exported = (struct export_report){.rows = 0};
    enum error e = guest_open(template, &parcel_store_schema, &guest, text, sizeof(text));
    if (e)
        return e;
    json_sink_init(&sink, lines, sizeof(lines), NULL, NULL);
    e = export_jsonl(&guest, &sink, &exported, text, sizeof(text));
    guest_close(&guest);
    return e;
}

static void judge_export(enum error e)
{
    TEST_CHECK_(e == OK ? exported.rows == rows : text[0] != 0, "%s: '%s', %llu rows", error_name(e), text,
                (unsigned long long)exported.rows);
}

static void test_S6_every_call_fails_while_a_store_is_exported(void)
{
    static const struct deed deed = {"an export", prepare_nothing, run_export, judge_export};
    begin();
    fail_each(&deed);
    end();
}

TEST_LIST
= {{"S6_every_call_fails_while_a_table_is_added", test_S6_every_call_fails_while_a_table_is_added},
   {"S6_every_call_fails_while_a_format_is_brought_forward",
    test_S6_every_call_fails_while_a_format_is_brought_forward},
   {"S1_every_call_fails_while_a_store_is_recorded", test_S1_every_call_fails_while_a_store_is_recorded},
   {"S2_every_call_fails_while_a_journal_is_replayed", test_S2_every_call_fails_while_a_journal_is_replayed},
   {"S2_every_call_fails_while_a_backup_is_made", test_S2_every_call_fails_while_a_backup_is_made},
   {"S2_every_call_fails_while_a_backup_is_restored", test_S2_every_call_fails_while_a_backup_is_restored},
   {"S2_a_restore_that_is_cut_off_anywhere_is_no_empty_store",
    test_S2_a_restore_that_is_cut_off_anywhere_is_no_empty_store},
   {"S2_every_call_fails_while_a_backup_is_verified", test_S2_every_call_fails_while_a_backup_is_verified},
   {"S6_every_call_fails_while_a_store_is_checked", test_S6_every_call_fails_while_a_store_is_checked},
   {"S6_every_call_fails_while_a_store_is_exported", test_S6_every_call_fails_while_a_store_is_exported},
   {NULL, NULL}};
