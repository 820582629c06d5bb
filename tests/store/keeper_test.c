/* The keeper, on the virtual clock: views that are held, retention, the scrub. */
#include "acutest.h"

#include <stdio.h>
#include <unistd.h>

#include "runtime/runtime.h"
#include "runtime/telemetry.h"
#include "store/audit.h"
#include "store/counter.h"
#include "store/due.h"
#include "store/ledger.h"
#include "store/outbox.h"
#include "store/page.h"
#include "store/retention.h"
#include "tests/support/stage.h"

#define DAY_NS (UINT64_C(86400) * NS_PER_S)

/* ---- views that are held for too long ---- */

static actor_pid root;

static uint64_t told_of(enum telemetry_event event)
{
    return telemetry_counter_sum(runtime_telemetry(runtime_self()), event);
}

static void hold(void *arg)
{
    struct view *view = view_open(stage_store);
    EXPECT(view != NULL);
    stage_note(root, 1);
    for (;;) {
        if (arg)
            (void)actor_receive(NULL, NULL, DEADLINE_NONE);
        else
            actor_sleep(DEADLINE_NONE);
    }
}

static void held_views_body(void)
{
    root = actor_self();
    stage_writer();
    stage_keeper();
    uint64_t began = actor_now();
    actor_pid holder = stage_doll(SPAWN_ON(1), hold, NULL), trapper = stage_trapper(SPAWN_ON(0), hold, &root);
    (void)stage_noted();
    (void)stage_noted();
    struct view *young;
    actor_sleep(began + 4900 * NS_PER_MS);
    EXPECT(actor_alive(holder) && actor_alive(trapper) && views_count(stage_store) == 2);
    EXPECT((young = view_open(stage_store)) != NULL);
    struct reason why = stage_ended(holder);
    EXPECT(why.kind == REASON_NOPROC || (why.kind == REASON_ERROR && why.code == ERR_EXPIRED));
    EXPECT(actor_now() <= began + 6100 * NS_PER_MS);
    EXPECT(actor_alive(trapper)); /* it was told, and went on */
    EXPECT(told_of(TELEMETRY_STORE_VIEW_EXPIRED) == 1);
    (void)stage_ended(trapper);
    EXPECT(actor_now() <= began + 7100 * NS_PER_MS);
    EXPECT(views_count(stage_store) == 1);
    view_close(young);
    actor_sleep(actor_now() + 20 * NS_PER_S);
    EXPECT(actor_alive(actor_self()) && actor_whereis(KEEPER_NAME) != 0);
}

static void test_held_views(void)
{
    for (uint64_t seed = 1; seed <= 5; seed++)
        TEST_CHECK(stage_run(&(struct stage){.seed = seed}, held_views_body) == 0);
}

/* S4: also while nobody answers the keeper, who has something to be removed. */
static void held_view_and_no_writer_body(void)
{
    root = actor_self();
    actor_pid writer = stage_writer();
    EXPECT(stage_send(1, 10) == OK);
    uint64_t commands = stage_store->commands;
    actor_suspend(writer);
    stage_keeper(); /* it sweeps at its first look */
    actor_sleep(actor_now() + 3 * NS_PER_S);
    for (int i = 0; i < 3; i++) {
        uint64_t began = actor_now();
        actor_pid holder = stage_doll(SPAWN_ON(1), hold, NULL);
        (void)stage_noted();
        (void)stage_ended(holder);
        EXPECT(actor_now() - began > 5 * NS_PER_S && actor_now() - began <= 6100 * NS_PER_MS);
    }
    actor_sleep(actor_now() + 200 * NS_PER_S);
    actor_resume(writer);
    actor_sleep(actor_now() + 2 * NS_PER_S);
    EXPECT(stage_store->commands == commands + 1); /* it had asked once */
    actor_sleep(actor_now() + 61 * NS_PER_S);
    EXPECT(stage_store->commands == commands + 2); /* and asks again */
    actor_suspend(writer);
    actor_sleep(actor_now() + 61 * NS_PER_S);
    stage_kill(writer); /* who doesn't answer any more */
    stage_writer();
    actor_sleep(actor_now() + 61 * NS_PER_S);
    EXPECT(stage_store->commands >= commands + 3);
}

static void test_S4_views_are_ended_while_the_writer_answers_nobody(void)
{
    for (uint64_t seed = 1; seed <= 5; seed++)
        TEST_CHECK(stage_run(&(struct stage){.seed = seed}, held_view_and_no_writer_body) == 0);
}

/* ---- retention ---- */

static uint64_t rows_of(uint32_t table)
{
    struct view *view = view_open(stage_store);
    uint64_t rows = view ? txn_rows(&view->txn, table) : UINT64_MAX;
    if (view)
        view_close(view);
    return rows;
}

static enum error append(uint64_t number, const char *key)
{
    struct audit_append entry = {.id = stage_id(number),
                                 .key = span_text(key),
                                 .who = span_text("somebody"),
                                 .verb = span_text("something"),
                                 .target = span_text("it")};
    return store_submit(&audit_append_class, &entry, NULL, 0, NULL, DEADLINE_NONE);
}

/* The virtual clock jumps: what would be millions of ticks is a few. */
static void later(uint64_t ns)
{
    actor_pid keeper = actor_whereis(KEEPER_NAME);
    stage_kill(keeper);
    actor_sleep(actor_now() + ns);
    stage_keeper();
    actor_sleep(actor_now() + 3 * NS_PER_S);
}

static void retention_body(void)
{
    stage_writer();
    stage_keeper();
    for (uint64_t i = 0; i < 1000; i++)
        EXPECT(append(i, "") == OK);
    actor_sleep(actor_now() + NS_PER_S);                            /* the ones behind are younger */
    EXPECT(append(1000, "key") == OK && append(1001, "key") == OK); /* the same request: one entry */
    uint64_t all = 1001;
    EXPECT(rows_of(TABLE_AUDITS) == all && rows_of(TABLE_DUE) == all && rows_of(TABLE_EVENTS) == all);
    EXPECT(rows_of(TABLE_LEDGER) == 1);
    later(2 * DAY_NS); /* the keys live a day; the keeper looks each minute */
    actor_sleep(actor_now() + 61 * NS_PER_S);
    EXPECT(rows_of(TABLE_LEDGER) == 0 && rows_of(TABLE_AUDITS) == all);
    later((AUDIT_KEPT_DAYS - 3) * DAY_NS);
    EXPECT(rows_of(TABLE_AUDITS) == all); /* a day is left */
    later(2 * DAY_NS);
    EXPECT(rows_of(TABLE_AUDITS) == 0 && rows_of(TABLE_EVENTS) == 0 && rows_of(TABLE_DUE) == 0);
    EXPECT(rows_of(TABLE_OUTBOX) == 0);
    EXPECT(append(1, "") == OK && rows_of(TABLE_AUDITS) == 1);
}

static void test_retention(void)
{
    TEST_CHECK(stage_run(&(struct stage){.seed = 1}, retention_body) == 0);
}

/* More keys than the sweeps of one look remove, and nothing else whose time is over. */
static void many_keys_body(void)
{
    enum { KEYS = 10000, LOOKS = 5 };
    stage_writer();
    stage_keeper();
    for (uint64_t i = 0; i < KEYS; i++) {
        char key[16];
        snprintf(key, sizeof(key), "k%u", (unsigned)i);
        EXPECT(append(i, key) == OK);
    }
    EXPECT(rows_of(TABLE_LEDGER) == KEYS);
    stage_kill(actor_whereis(KEEPER_NAME));
    actor_sleep(actor_now() + 2 * DAY_NS);
    stage_keeper();
    EXPECT(rows_of(TABLE_LEDGER) == KEYS);
    actor_sleep(actor_now() + LOOKS * NS_PER_S + NS_PER_S / 2);
    EXPECT(rows_of(TABLE_LEDGER) == 0 && rows_of(TABLE_AUDITS) == KEYS);
    uint64_t commands = stage_store->commands;
    actor_sleep(actor_now() + 10 * NS_PER_S);
    EXPECT(stage_store->commands == commands); /* and nobody is asked for what isn't there */
}

static void test_many_keys_go_at_once(void)
{
    TEST_CHECK(stage_run(&(struct stage){.seed = 1}, many_keys_body) == 0);
}

/* A clock that was ahead has written more rows than one sweep passes by, before one that is over; then only they are there. */
static void many_ahead_body(void)
{
    enum { AHEAD = 3 * LEDGER_PASS_MAX, SWEEPS = AHEAD / LEDGER_PASS_MAX + 1, LOOKS = 3 };
    stage_writer();
    stage_keeper();
    actor_sleep(actor_now() + 2 * NS_PER_S); /* it knows which time it is */
    stage_kill(actor_whereis(KEEPER_NAME));
    stage_clock_jump(30 * (int64_t)DAY_NS);
    for (uint64_t i = 0; i < AHEAD; i++) {
        char key[16];
        snprintf(key, sizeof(key), "k%u", (unsigned)i);
        EXPECT(append(i, key) == OK);
    }
    stage_clock_jump(-30 * (int64_t)DAY_NS);
    EXPECT(append(AHEAD, "behind") == OK && rows_of(TABLE_LEDGER) == AHEAD + 1);
    actor_sleep(actor_now() + 2 * DAY_NS);
    stage_keeper();
    actor_sleep(actor_now() + LOOKS * NS_PER_S + NS_PER_S / 2);
    EXPECT(rows_of(TABLE_LEDGER) == AHEAD);
    uint64_t commands = stage_store->commands;
    actor_sleep(actor_now() + 10 * NS_PER_S);
    EXPECT(stage_store->commands == commands); /* the round is over */
    actor_sleep(actor_now() + KEEPER_SWEEP_EVERY * NS_PER_S);
    EXPECT(stage_store->commands == commands + SWEEPS); /* and so is the one of the minute behind it */
    EXPECT(rows_of(TABLE_LEDGER) == AHEAD);
}

static void test_keys_behind_many_that_are_ahead_go_at_once(void)
{
    TEST_CHECK(stage_run(&(struct stage){.seed = 1}, many_ahead_body) == 0);
}

static uint64_t ledger_after(uint64_t ns)
{
    actor_sleep(actor_now() + ns);
    return rows_of(TABLE_LEDGER);
}

/* The wall clock is two days ahead, and right again: nothing has gone. It stays there: it is believed. */
static void clock_body(void)
{
    stage_writer();
    stage_keeper();
    actor_sleep(actor_now() + 2 * NS_PER_S);
    EXPECT(append(1, "key") == OK && rows_of(TABLE_LEDGER) == 1);
    stage_clock_jump(2 * (int64_t)DAY_NS);
    EXPECT(ledger_after(121 * NS_PER_S) == 1);
    stage_clock_jump(-2 * (int64_t)DAY_NS);
    EXPECT(ledger_after(121 * NS_PER_S) == 1);
    stage_kill(actor_whereis(KEEPER_NAME)); /* as at a start: what the calendar knew is gone */
    stage_store->calendar.open = false;
    stage_clock_jump(2 * (int64_t)DAY_NS);
    stage_keeper();
    EXPECT(ledger_after(121 * NS_PER_S) == 1);
    EXPECT(ledger_after(CALENDAR_TRUST_S * NS_PER_S - 300 * NS_PER_S) == 1);
    EXPECT(ledger_after(CALENDAR_TRUST_S * NS_PER_S + 600 * NS_PER_S) == 0);
}

static void test_a_clock_that_is_ahead_removes_nothing_until_it_is_believed(void)
{
    TEST_CHECK(stage_run(&(struct stage){.seed = 1}, clock_body) == 0);
}

/* ---- the scrub ---- */

/* Rows of the parcels' table become damaged under the store: a bit of each value, by LMDB itself. */
static void damage(uint64_t number)
{
    struct uuid id = stage_id(number);
    MDB_val k = {.mv_size = sizeof(id), .mv_data = id.bytes}, v;
    static char copy[VALUE_SIZE_MAX];
    MDB_txn *txn;
    EXPECT(mdb_txn_begin(stage_store->environment.mdb, NULL, 0, &txn) == 0);
    MDB_dbi dbi = stage_store->environment.tables[TABLE_PARCELS];
    EXPECT(mdb_get(txn, dbi, &k, &v) == 0);
    memcpy(copy, v.mv_data, v.mv_size);
    copy[v.mv_size / 2] ^= 4;
    v.mv_data = copy;
    EXPECT(mdb_put(txn, dbi, &k, &v, 0) == 0 && mdb_txn_commit(txn) == 0);
}

static int64_t damaged_rows(const char *table)
{
    return telemetry_gauge_get(TELEMETRY_GAUGE_STORE_DAMAGED_ROWS, table);
}

static void scrub_body(void)
{
    stage_writer();
    for (uint64_t i = 0; i < 3000; i++)
        EXPECT(stage_send(i, 10) == OK);
    stage_kill(actor_whereis(WRITER_NAME)); /* LMDB has one writer */
    stage_keeper();
    actor_sleep(actor_now() + 60 * NS_PER_S); /* several times through everything */
    EXPECT(damaged_rows("parcels") == 0 && told_of(TELEMETRY_STORE_DAMAGED) == 0);
    damage(0);
    damage(1500);
    damage(1501);
    damage(2999);
    actor_sleep(actor_now() + 60 * NS_PER_S);
    EXPECT(damaged_rows("parcels") == 4);
    EXPECT(damaged_rows("events") == 0 && damaged_rows("audits") == 0);
    uint64_t told = told_of(TELEMETRY_STORE_DAMAGED);
    EXPECT(told >= 4);
    EXPECT(stage_find(1500) == ERR_DAMAGED && stage_find(1499) == OK && stage_find(1502) == OK);
    actor_sleep(actor_now() + 120 * NS_PER_S); /* told again by each pass, counted once */
    EXPECT(damaged_rows("parcels") == 4 && told_of(TELEMETRY_STORE_DAMAGED) > told);
    damage(0); /* the bit is right again */
    damage(1501);
    actor_sleep(actor_now() + 120 * NS_PER_S);
    EXPECT(damaged_rows("parcels") == 2);
    damage(1500);
    damage(2999);
    actor_sleep(actor_now() + 120 * NS_PER_S);
    EXPECT(damaged_rows("parcels") == 0);
}

static void test_scrub(void)
{
    TEST_CHECK(stage_run(&(struct stage){.seed = 1, .unsound = true}, scrub_body) == 0);
}

enum { PAGE = 4096, FEW = 20 };

/* The leaf of all parcels, as it lies in the file; or what it is to be from now on. */
static void parcels_page(uint8_t page[PAGE], off_t *at, bool put)
{
    int fd = stage_store->environment.data_fd;
    struct uuid first = stage_id(0);
    for (*at = put ? *at : 2 * PAGE; !put && pread(fd, page, PAGE, *at) == PAGE; *at += PAGE)
        if (page_head(page).kind == PAGE_LEAF && page_count(page) == FEW &&
            !page_wrong(page, PAGE, (uint64_t)*at / PAGE, PAGE_OF_ROWS, true) &&
            span_equal(page_key(page, 0), span_of(first.bytes, 16)))
            return;
    EXPECT(put && pwrite(fd, page, PAGE, *at) == PAGE);
}

/* What no checksum of a value shows: a key that its page doesn't lead to, a row less than there should be. */
static void scrub_pages_body(void)
{
    uint8_t page[PAGE], sound[PAGE];
    uint16_t offsets[FEW], lower;
    off_t at = 0;
    stage_writer();
    for (uint64_t i = 0; i < FEW; i++)
        EXPECT(stage_send(i, 10) == OK);
    stage_keeper();
    actor_sleep(actor_now() + 60 * NS_PER_S);
    EXPECT(damaged_rows("parcels") == 0);
    parcels_page(page, &at, false);
    memcpy(sound, page, PAGE);
    memcpy(offsets, page + PAGE_HEAD, sizeof(offsets));
    offsets[3] ^= offsets[FEW - 3], offsets[FEW - 3] ^= offsets[3], offsets[3] ^= offsets[FEW - 3];
    memcpy(page + PAGE_HEAD, offsets, sizeof(offsets));
    parcels_page(page, &at, true);
    actor_sleep(actor_now() + 60 * NS_PER_S);
    EXPECT(damaged_rows("parcels") > 0);
    parcels_page(sound, &at, true);
    actor_sleep(actor_now() + 60 * NS_PER_S);
    EXPECT(damaged_rows("parcels") == 0);
    memcpy(page, sound, PAGE);
    memcpy(&lower, page + 12, sizeof(lower));
    lower -= 2; /* the last one isn't there any more */
    memcpy(page + 12, &lower, sizeof(lower));
    parcels_page(page, &at, true);
    actor_sleep(actor_now() + 60 * NS_PER_S);
    EXPECT(damaged_rows("parcels") == 1);
    EXPECT(damaged_rows("events") == 0 && damaged_rows("meta") == 0);
    parcels_page(sound, &at, true);
}

static void test_L7_the_scrub_finds_rows_that_are_lost(void)
{
    TEST_CHECK(stage_run(&(struct stage){.seed = 1}, scrub_pages_body) == 0);
}

/* ---- a file that is taken away ---- */

static void look_again(void)
{
    actor_sleep(actor_now() + 3 * NS_PER_S);
}

static const char *in_stage(const char *name)
{
    static char path[sizeof(stage_dir) + 32];
    snprintf(path, sizeof(path), "%s/%s", stage_dir, name);
    return path;
}

static void move(const char *from, const char *to)
{
    char source[sizeof(stage_dir) + 32];
    snprintf(source, sizeof(source), "%s", in_stage(from));
    EXPECT(rename(source, in_stage(to)) == 0);
}

static void expect_lost(uint64_t changes)
{
    EXPECT(store_state(stage_store) == STORE_LOST && told_of(TELEMETRY_STORE_STATE) == changes);
    EXPECT(stage_logged("was removed from its directory") == (changes + 1) / 2 && stage_logged("/proc/") > 0);
}

/* Nobody who starts later would find what is committed now; until the process ends it has all there is. */
static void taken_away_body(void)
{
    stage_writer();
    stage_keeper();
    EXPECT(stage_send(1, 10) == OK);
    look_again();
    EXPECT(store_state(stage_store) == STORE_OPEN && told_of(TELEMETRY_STORE_STATE) == 0);
    move("data.mdb", "elsewhere");
    look_again();
    expect_lost(1);
    EXPECT(stage_send(2, 10) == ERR_UNAVAILABLE && stage_find(2) == ERR_NOT_FOUND && stage_find(1) == OK);
    look_again(); /* told once */
    expect_lost(1);
    EXPECT(fclose(fopen(in_stage("data.mdb"), "w")) == 0); /* another one */
    look_again();
    expect_lost(1);
    move("elsewhere", "data.mdb");
    look_again();
    EXPECT(store_state(stage_store) == STORE_OPEN && told_of(TELEMETRY_STORE_STATE) == 2);
    EXPECT(stage_send(2, 10) == OK && stage_find(2) == OK);
    move("data.mdb", "elsewhere");
    look_again();
    expect_lost(3);
    move("elsewhere", "data.mdb");
}

static void test_a_file_that_is_taken_away_takes_no_changes_until_it_is_back(void)
{
    TEST_CHECK(stage_run(&(struct stage){.seed = 1}, taken_away_body) == 0);
}

/* A store that has failed ends; it isn't open again because its file is where it was. */
static void taken_away_and_failed_body(void)
{
    stage_keeper();
    atomic_store(&stage_store->state, STORE_FAILED);
    look_again();
    EXPECT(store_state(stage_store) == STORE_FAILED);
    move("data.mdb", "elsewhere");
    look_again();
    EXPECT(store_state(stage_store) == STORE_FAILED && !stage_logged("was removed from its directory"));
    move("elsewhere", "data.mdb");
}

static void test_a_failed_store_stays_failed_wherever_its_file_is(void)
{
    TEST_CHECK(stage_run(&(struct stage){.seed = 1}, taken_away_and_failed_body) == 0);
}

/* ---- figures, and being there at all ---- */

/* The first row of the parcel's partition. */
static void bury_one(uint64_t number)
{
    struct uuid id = stage_id(number);
    uint64_t fence = 0;
    size_t size = 0;
    struct view *view = view_open(stage_store);
    uint16_t partition = outbox_partition(&view->txn, &id);
    view_close(view);
    const struct outbox_claim_command claim = {.partition = partition, .holder = 1};
    EXPECT(store_submit(&outbox_claim_class, &claim, &fence, sizeof(fence), &size, DEADLINE_NONE) == OK);
    const struct outbox_bury_command bury = {
        .partition = partition, .seq = 1, .fence = fence, .reason = span_text("nobody at home")};
    EXPECT(store_submit(&outbox_bury_class, &bury, NULL, 0, NULL, DEADLINE_NONE) == OK);
}

static void figures_body(void)
{
    stage_writer();
    stage_keeper();
    for (uint64_t i = 0; i < 7; i++)
        EXPECT(stage_send(i, 10) == OK);
    bury_one(3);
    actor_sleep(actor_now() + 15 * NS_PER_S);
    EXPECT(telemetry_gauge_get(TELEMETRY_GAUGE_STORE_ROWS, "parcels") == 7);
    EXPECT(telemetry_gauge_get(TELEMETRY_GAUGE_DEAD_LETTERS, "outbox") == 1);
    EXPECT(telemetry_gauge_get(TELEMETRY_GAUGE_STORE_BYTES, "map") == 64 << 20);
    EXPECT(telemetry_gauge_get(TELEMETRY_GAUGE_STORE_BYTES, "used") > 0);
    EXPECT(telemetry_gauge_get(TELEMETRY_GAUGE_STORE_READERS, "views") == 0);
    struct view *view = view_open(stage_store);
    actor_sleep(actor_now() + 2 * NS_PER_S);
    EXPECT(telemetry_gauge_get(TELEMETRY_GAUGE_STORE_READERS, "views") == 1);
    view_close(view);
}

static void test_figures(void)
{
    TEST_CHECK(stage_run(&(struct stage){.seed = 1}, figures_body) == 0);
}

static void alone_body(void)
{
    struct start_result result;
    stage_keeper(); /* no writer: it goes on without */
    actor_sleep(actor_now() + 100 * NS_PER_S);
    EXPECT(actor_whereis(KEEPER_NAME) != 0);
    EXPECT(actor_cast(actor_whereis(KEEPER_NAME), 99, NULL, 0) == OK);
    stage_kill(actor_whereis(KEEPER_NAME));
    store_install(NULL);
    EXPECT(actor_start(&(struct spawn_options){.class = &keeper_class}, &result, DEADLINE_NONE) == ERR_INIT);
    EXPECT(result.why.kind == REASON_ERROR && result.why.code == ERR_UNAVAILABLE);
    store_install(stage_store);
}

static void test_alone(void)
{
    TEST_CHECK(stage_run(&(struct stage){.seed = 1}, alone_body) == 0);
}

TEST_LIST
= {
    {"who holds a view for too long is told, then killed", test_held_views},
    {"S4_views_are_ended_while_the_writer_answers_nobody",
     test_S4_views_are_ended_while_the_writer_answers_nobody},
    {"retention: a day for keys, 400 for audit entries", test_retention},
    {"retention: more keys than one look removes", test_many_keys_go_at_once},
    {"retention: keys behind many that are ahead", test_keys_behind_many_that_are_ahead_go_at_once},
    {"retention: a clock that is ahead removes nothing until it is believed",
     test_a_clock_that_is_ahead_removes_nothing_until_it_is_believed},
    {"the scrub finds damaged rows, says so and goes on", test_scrub},
    {"L7_the_scrub_finds_rows_that_are_lost", test_L7_the_scrub_finds_rows_that_are_lost},
    {"a file that is taken away takes no changes until it is back",
     test_a_file_that_is_taken_away_takes_no_changes_until_it_is_back},
    {"a failed store stays failed, wherever its file is",
     test_a_failed_store_stays_failed_wherever_its_file_is},
    {"the store's figures are gauges", test_figures},
    {"without a writer, without a store", test_alone},
    {NULL, NULL},
};
