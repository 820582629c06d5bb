/* D6, L8: what is wrong in a store is found and told, and a sound one has no findings, also beside its server. */
#include "store/check.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "acutest.h"
#include "store/audit.h"
#include "store/counter.h"
#include "store/due.h"
#include "store/event.h"
#include "store/guest.h"
#include "store/image.h"
#include "store/ledger.h"
#include "store/meta.h"
#include "store/outbox.h"
#include "store/page.h"
#include "store/value.h"
#include "store/view.h"
#include "tests/store/place.h"
#include "tests/support/parcel.h"

enum { PARCELS = 60, COMMITS = 1500 };
#define NOW UINT64_C(1800000000000000)

static char dir[PLACE_PATH_MAX];
static uint8_t *sound;
static size_t sound_size;

static struct store *opened(void)
{
    struct store *store = NULL;
    char text[512] = "";
    enum error e = store_open(
        &(struct store_options){.environment = {.dir = dir, .step = 1 << 16, .map = 1 << 26, .reserve = 4096},
                                .schema = &parcel_store_schema},
        &store, text, sizeof(text));
    TEST_ASSERT_(e == OK, "%s: %s", error_name(e), text);
    return store;
}

static struct uuid parcel_id(uint32_t number)
{
    struct uuid id = {.bytes = {[0] = 1, [6] = 0x70, [8] = 0x80}};
    id.bytes[14] = (uint8_t)(number >> 8);
    id.bytes[15] = (uint8_t)number;
    return id;
}

static void send_one(struct store *store, uint32_t number, uint32_t size)
{
    static char body[PARCEL_BODY_MAX];
    char key[32];
    snprintf(key, sizeof(key), "key %u", number);
    memset(body, (int)number, sizeof(body));
    struct parcel_send send = {.id = parcel_id(number),
                               .scope = span_text("test"),
                               .key = number % 2 ? span_text(key) : span_text(""),
                               .due_us = number % 3 ? NOW + number : 0,
                               .body = span_of(body, size)};
    TEST_ASSERT(batch_one(store, &parcel_send_class, NOW, &send, NULL) == OK);
    struct parcel_move move = {.id = send.id, .event = PARCEL_SEND};
    if (number % 4 == 0)
        TEST_ASSERT(batch_one(store, &parcel_move_class, NOW + 1, &move, NULL) == OK);
    struct audit_append append = {.id = parcel_id(5000 + number),
                                  .who = span_text("me"),
                                  .verb = span_text("try"),
                                  .target = span_text("it"),
                                  .details = span_text("{}")};
    if (number % 5 == 0)
        TEST_ASSERT(batch_one(store, &audit_append_class, NOW, &append, NULL) == OK);
}

/* The store as it was made, in its place again. */
static void place_sound(void)
{
    parcel_install();
    if (!sound) {
        place_make(dir);
        struct store *store = opened();
        for (uint32_t i = 0; i < PARCELS; i++)
            send_one(store, i, i % 7 == 0 ? 9000 : 100);
        store_close(store);
        sound = place_read(place_in(dir, "data.mdb"), &sound_size);
    }
    place_write(place_in(dir, "data.mdb"), sound, sound_size);
}

static void end(void)
{
    place_remove(dir);
    free(sound);
    sound = NULL;
}

/* ---- looking ---- */

static char told[1 << 16];

static void tell(void *context, const char *finding)
{
    size_t length = strlen(told);
    (void)context;
    TEST_CHECK(strchr(finding, '\n') == NULL && finding[0]);
    snprintf(told + length, sizeof(told) - length, "%s\n", finding);
}

static struct check_report look_with(const struct schema *schema)
{
    char text[512] = "";
    struct check_report report = {0};
    told[0] = 0;
    enum error e = check_directory(dir, schema, tell, NULL, &report, text, sizeof(text));
    TEST_CHECK_(e == OK, "%s: %s", error_name(e), text);
    TEST_CHECK((report.findings > 0) == (told[0] != 0));
    return report;
}

static struct check_report look(void)
{
    return look_with(&parcel_store_schema);
}

static void test_a_sound_store_has_no_findings(void)
{
    place_sound();
    struct check_report report = look();
    TEST_CHECK_(report.findings == 0, "%s", told);
    TEST_CHECK(report.rows > 3 * PARCELS && report.pages > 30 && report.commit > PARCELS);
    struct store *store = opened(); /* and the same beside its server */
    struct check_report beside = look();
    TEST_CHECK_(beside.findings == 0 && beside.rows == report.rows, "%s", told);
    send_one(store, 4000, 10);
    beside = look();
    TEST_CHECK_(beside.findings == 0 && beside.rows > report.rows, "%s", told);
    store_close(store);
    end();
}

static void test_a_store_is_sound_at_each_moment_of_its_server(void)
{
    place_sound();
    pid_t server = fork();
    if (server == 0) {
        struct store *store = opened();
        for (uint32_t i = 0; i < COMMITS; i++)
            send_one(store, PARCELS + i, i % 9 == 0 ? 5000 : 50);
        store_close(store);
        _exit(0);
    }
    int status = 1, looks = 0;
    do {
        struct check_report report = look();
        TEST_CHECK_(report.findings == 0, "at commit %llu: %s", (unsigned long long)report.commit, told);
        looks++;
    } while (waitpid(server, &status, WNOHANG) == 0);
    TEST_CHECK(looks > 0 && status == 0);
    TEST_CHECK(look().findings == 0);
    end();
}

/* ---- what no command would do ---- */

#define SPOIL_FIELDS(X) X(unused, U8, 0, 1)
RECORD_STRUCT(spoil, SPOIL_FIELDS);
#define spoil_FIELD(name, TYPE, limit, since) RECORD_FIELD(spoil, name, TYPE, limit, since)
RECORD_CLASS(spoil, SPOIL_FIELDS, 1);

static void (*spoiling)(struct txn *txn);
static enum error spoil_apply(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    (void)at_us;
    (void)command;
    (void)answer;
    spoiling(txn);
    txn->writes++;
    return OK;
}
static const struct command_class spoil_class = {
    .name = "spoil", .record = &spoil_record, .apply = spoil_apply, .code = 9999};

static struct span state_label(uint8_t state)
{
    static uint8_t label;
    label = state;
    return span_of(&label, 1);
}

static void one_too_many(struct txn *txn)
{
    counter_add(txn, COUNTER_PARCELS, state_label(PARCEL_HELD), 1);
}

static void one_of_nothing(struct txn *txn)
{
    counter_add(txn, COUNTER_PARCELS, state_label(77), 5);
}

static void counter_gone(struct txn *txn)
{
    struct key key = counter_key(COUNTER_PARCELS, state_label(PARCEL_HELD));
    txn_remove(txn, TABLE_COUNTERS, key_span(&key));
}

static void counter_zero(struct txn *txn)
{
    struct key key = counter_key(COUNTER_PARCELS, state_label(78));
    txn_write(txn, TABLE_COUNTERS, key_span(&key), &(struct counter){.value = 0});
}

static void number_given_twice(struct txn *txn)
{
    struct uuid id = parcel_id(0);
    uint16_t big = __builtin_bswap16(outbox_partition(txn, &id));
    counter_add(txn, COUNTER_OUTBOX_NEXT, span_of(&big, sizeof(big)), -1);
}

static void event_gone(struct txn *txn)
{
    struct uuid id = parcel_id(3); /* its only one */
    struct key key = event_key(&id, 1);
    txn_remove(txn, TABLE_EVENTS, key_span(&key));
}

static void event_gap(struct txn *txn)
{
    struct uuid id = parcel_id(4); /* of 1 and 2 */
    struct key from = event_key(&id, 2), to = event_key(&id, 3);
    struct event event;
    TEST_ASSERT(event_read(txn, &id, 2, &event) == OK);
    txn_remove(txn, TABLE_EVENTS, key_span(&from));
    event.data = span_text("");
    txn_write(txn, TABLE_EVENTS, key_span(&to), &event);
}

/* Of nobody's: whoever has a stream looks at it, too. */
static void event_beginning_gone(struct txn *txn)
{
    struct uuid id = parcel_id(7777);
    struct event event = {.at_us = NOW, .domain = PARCEL_DOMAIN, .from_state = EVENT_NO_STATE};
    for (uint64_t seq = 3; seq < 6; seq++) {
        struct key key = event_key(&id, seq);
        txn_write(txn, TABLE_EVENTS, key_span(&key), &event);
    }
}

static struct key ledger_key_of(uint8_t lifetime, uint64_t number)
{
    struct key key = {.size = 0};
    key_add_u8(&key, lifetime);
    key_add_u64(&key, number);
    return key;
}

/* The first row again, with other times, as another one. */
static void ledger_copy(struct txn *txn, uint8_t lifetime, uint64_t number, uint64_t at_us,
                        uint64_t expires_us)
{
    static uint8_t scope[LEDGER_SCOPE_MAX], name[LEDGER_KEY_MAX], answer[ANSWER_SIZE_MAX];
    struct key from = ledger_key_of(LEDGER_DAY, 1), to = ledger_key_of(lifetime, number);
    struct ledger row;
    TEST_ASSERT(txn_read(txn, TABLE_LEDGER, key_span(&from), &row) == OK);
    row.scope = span_of(memcpy(scope, row.scope.bytes, row.scope.size), row.scope.size);
    row.key = span_of(memcpy(name, row.key.bytes, row.key.size), row.key.size);
    row.answer = span_of(memcpy(answer, row.answer.bytes, row.answer.size), row.answer.size);
    row.at_us = at_us ? at_us : row.at_us;
    row.expires_us = expires_us ? expires_us : row.expires_us;
    txn_write(txn, TABLE_LEDGER, key_span(&to), &row);
}

static void ledger_twice(struct txn *txn)
{
    uint8_t week = LEDGER_WEEK;
    counter_add(txn, COUNTER_LEDGER_NEXT, span_of(&week, 1), 9);
    ledger_copy(txn, LEDGER_WEEK, 9, NOW,
                NOW + UINT64_C(7 * 86400) * 1000000); /* rows may be missing before it */
}

static void ledger_ends_early(struct txn *txn)
{
    ledger_copy(txn, LEDGER_DAY, 1, NOW, NOW + 5);
}

static void ledger_ends_late(struct txn *txn)
{
    ledger_copy(txn, LEDGER_DAY, 1, NOW, UINT64_MAX);
}

static void ledger_row_0(struct txn *txn)
{
    struct key first = ledger_key_of(LEDGER_DAY, 1);
    ledger_copy(txn, LEDGER_DAY, 0, 0, 0);
    txn_remove(txn, TABLE_LEDGER, key_span(&first));
}

static void ledger_not_given_away(struct txn *txn)
{
    ledger_copy(txn, LEDGER_KEPT, 3, NOW, UINT64_MAX);
    struct key first = ledger_key_of(LEDGER_DAY, 1);
    txn_remove(txn, TABLE_LEDGER, key_span(&first));
}

static void due_for_nobody(struct txn *txn)
{
    struct due_entry entry = {
        .queue = DUE_RETENTION, .due_us = NOW, .id = parcel_id(9999), .row = {.kind = PARCEL_RETENTION_KIND}};
    due_set(txn, &entry);
}

static void raw_put(struct txn *txn, uint32_t table, struct span key, void *bytes, size_t size)
{
    MDB_val k = {.mv_size = key.size, .mv_data = (void *)(uintptr_t)key.bytes};
    MDB_val v = {.mv_size = size, .mv_data = bytes};
    TEST_ASSERT(mdb_put(txn->mdb, txn->store->environment.tables[table], &k, &v, 0) == 0);
}

static void value_damaged(struct txn *txn)
{
    struct uuid id = parcel_id(6);
    struct key key = key_of_uuid(&id);
    uint8_t bytes[300];
    MDB_val k = {.mv_size = key.size, .mv_data = key.bytes}, v;
    TEST_ASSERT(mdb_get(txn->mdb, txn->store->environment.tables[TABLE_PARCELS], &k, &v) == 0);
    TEST_ASSERT(v.mv_size <= sizeof(bytes));
    memcpy(bytes, v.mv_data, v.mv_size);
    bytes[v.mv_size / 2] ^= 1;
    raw_put(txn, TABLE_PARCELS, key_span(&key), bytes, v.mv_size);
}

static void record_of_another_kind(struct txn *txn)
{
    struct uuid id = parcel_id(6);
    struct key key = key_of_uuid(&id);
    uint8_t bytes[64];
    size_t size = value_write(value_seed("parcels"), key_span(&key), &counter_record,
                              &(struct counter){.value = 1}, bytes, sizeof(bytes));
    raw_put(txn, TABLE_PARCELS, key_span(&key), bytes, size);
}

static void key_too_long(struct txn *txn)
{
    uint8_t key[KEY_SIZE_MAX + 1] = {1}, bytes[64];
    size_t size = value_write(value_seed("parcels"), span_of(key, sizeof(key)), &counter_record,
                              &(struct counter){.value = 1}, bytes, sizeof(bytes));
    raw_put(txn, TABLE_PARCELS, span_of(key, sizeof(key)), bytes, size);
}

static const struct {
    const char *name;
    void (*spoil)(struct txn *txn);
    const char *finding;
    uint64_t findings;
} spoilings[] = {
    {"a counter one too high", one_too_many, "but the rows say", 1},
    {"a counter of nothing", one_of_nothing, "is 5, but the rows say 0", 1},
    {"a counter without its row", counter_gone, "is 0, but the rows say", 1},
    {"a counter with a row for 0", counter_zero, "although it is 0", 1},
    {"a number that would be given twice", number_given_twice, "was given away", 1},
    {"an event that is gone", event_gone, "parcels: ", 2}, /* and an outbox row names it */
    {"a gap in a stream", event_gap, "has a gap before event 3", 3},
    {"a stream whose beginning is gone", event_beginning_gone, "begins with event 3", 1},
    {"a scope and key twice", ledger_twice,
     "row 9 of lifetime 1 has the scope and key of row 1 of lifetime 0", 1},
    {"a ledger row that ends too early", ledger_ends_early, "another time than its lifetime says", 1},
    {"a ledger row that never ends", ledger_ends_late, "another time than its lifetime says", 1},
    {"a ledger row without a number", ledger_row_0, "0 isn't the number of a row", 1},
    {"a ledger row that was never given away", ledger_not_given_away, "but 3 was given away", 1},
    {"a due entry for nothing", due_for_nobody, "which isn't there", 1},
    {"a damaged value", value_damaged, "its checksum is wrong", 0},
    {"a value that is another record", record_of_another_kind, "can't be read: damaged", 0},
    {"a key longer than keys are", key_too_long, "a key of 129 bytes", 1},
};

static void test_each_kind_of_wrong_row_is_told(void)
{
    for (size_t i = 0; i < sizeof(spoilings) / sizeof(spoilings[0]); i++) {
        TEST_CASE(spoilings[i].name);
        place_sound();
        struct store *store = opened();
        spoiling = spoilings[i].spoil;
        TEST_CHECK(batch_one(store, &spoil_class, NOW, &(struct spoil){0}, NULL) == OK);
        store_close(store);
        struct check_report report = look();
        TEST_CHECK_(strstr(told, spoilings[i].finding) != NULL, "told: %s", told);
        TEST_CHECK_(spoilings[i].findings == 0 ? report.findings > 0
                                               : report.findings == spoilings[i].findings,
                    "%llu findings: %s", (unsigned long long)report.findings, told);
    }
    end();
}

static void test_a_lost_commit_is_told(void)
{
    place_sound();
    struct store *store = opened();
    MDB_txn *txn;
    MDB_val k = {.mv_size = 1, .mv_data = dir}, v = {.mv_size = 1, .mv_data = dir};
    TEST_ASSERT(mdb_txn_begin(store->environment.mdb, NULL, 0, &txn) == 0);
    TEST_ASSERT(mdb_put(txn, store->environment.tables[TABLE_CLAIMS], &k, &v, 0) == 0);
    TEST_ASSERT(mdb_del(txn, store->environment.tables[TABLE_CLAIMS], &k, NULL) == 0);
    TEST_ASSERT(mdb_txn_commit(txn) == 0); /* one that leaves no stamp */
    look();
    TEST_CHECK_(strstr(told, "was left at") != NULL, "told: %s", told);
    struct check_report report;
    struct view *view = view_open_outside(store, 0);
    told[0] = 0;
    TEST_CHECK(check_rows(&view->txn, &parcel_store_schema, tell, NULL, &report) == OK);
    TEST_CHECK_(report.findings == 1 && strstr(told, "but the store was left at") != NULL, "told: %s", told);
    view_close(view);
    store_close(store);
    end();
}

static void test_findings_beyond_the_limit_are_counted(void)
{
    place_sound();
    struct store *store = opened();
    MDB_txn *txn;
    TEST_ASSERT(mdb_txn_begin(store->environment.mdb, NULL, 0, &txn) == 0);
    for (uint32_t i = 0; i < CHECK_TOLD_MAX + 50; i++) {
        char bytes[16] = "not a value";
        MDB_val k = {.mv_size = sizeof(i), .mv_data = &i}, v = {.mv_size = sizeof(bytes), .mv_data = bytes};
        TEST_ASSERT(mdb_put(txn, store->environment.tables[TABLE_CLAIMS], &k, &v, 0) == 0);
    }
    TEST_ASSERT(meta_write_stamp(txn, store->environment.tables[TABLE_META]) == 0);
    TEST_ASSERT(mdb_txn_commit(txn) == 0);
    store_close(store);
    struct check_report report = look();
    size_t lines = 0;
    for (const char *c = told; *c; c++)
        lines += *c == '\n';
    TEST_CHECK_(report.findings == CHECK_TOLD_MAX + 50, "%llu", (unsigned long long)report.findings);
    TEST_CHECK(lines <= CHECK_TOLD_MAX && lines > 100); /* as many as this test has room for */
    end();
}

/* ---- what can't be looked into ---- */

/* Each that is in use, and no other. */
static void test_D6_pages_that_are_wrong_are_a_finding(void)
{
    enum { PAGE = 4096 };
    struct image_report image = {0};
    char text[512] = "";
    place_sound();
    int fd = open(place_in(dir, "data.mdb"), O_RDONLY | O_CLOEXEC);
    TEST_ASSERT(fd >= 0 && image_check(fd, 0, &image, text, sizeof(text)) == OK);
    close(fd);
    uint8_t *bytes = malloc(sound_size);
    uint64_t found = 0;
    for (size_t at = 0; at < image.pages * PAGE; at += PAGE) {
        memcpy(bytes, sound, sound_size);
        for (size_t i = at; i < at + PAGE; i++)
            bytes[i] = (uint8_t)~bytes[i];
        place_write(place_in(dir, "data.mdb"), bytes, sound_size);
        struct check_report report = {0};
        told[0] = 0;
        enum error e = check_directory(dir, &parcel_store_schema, tell, NULL, &report, text, sizeof(text));
        TEST_CHECK_(e == OK, "page %zu: %s: %s", at / PAGE, error_name(e), text);
        found += report.findings > 0;
    }
    TEST_CHECK_(found == image.reached + 2, "%llu of %llu", (unsigned long long)found,
                (unsigned long long)image.reached + 2);
    free(bytes);
    end();
}

static bool leads_to_meta(const uint8_t *page)
{
    static const char *const keys[] = {"meta", "format"}; /* of the tree of tables, and of meta's own */
    bool leads = false;
    for (uint32_t i = 0; page_head(page).kind == PAGE_LEAF && i < page_count(page); i++)
        for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++)
            leads |= span_equal(page_key(page, i), span_text(keys[k]));
    return leads;
}

static enum error guest_looks(void *shared, char *ret_text, size_t text_size)
{
    struct guest guest;
    (void)shared;
    enum error e = guest_open(dir, &parcel_store_schema, &guest, ret_text, text_size);
    if (!e)
        guest_close(&guest);
    return e;
}

/* A store in which what says so can't be found is damaged, and nobody else's. */
static void test_D6_a_store_whose_tables_are_lost_is_damaged_and_not_foreign(void)
{
    enum { PAGE = 4096, LOWER = 12 };
    static const uint8_t empty[] = {PAGE_HEAD, 0};
    char text[512] = "";
    size_t found = 0;
    place_sound();
    uint8_t *bytes = malloc(sound_size), unused = 0;
    for (size_t at = 2 * PAGE; at + PAGE <= sound_size; at += PAGE) {
        if (!leads_to_meta(sound + at))
            continue;
        memcpy(bytes, sound, sound_size);
        memcpy(bytes + at + LOWER, empty, sizeof(empty));
        place_write(place_in(dir, "data.mdb"), bytes, sound_size);
        struct check_report report = look();
        enum error e = guest_apart(guest_looks, "a guest", &unused, 1, text, sizeof(text));
        found += report.findings > 0;
        TEST_CHECK_(e == (report.findings ? ERR_DAMAGED : OK), "page %zu: %s: %s", at / PAGE, error_name(e),
                    text);
        TEST_CHECK_(!e || strstr(text, "holds a damaged store: page ") != NULL, "%s", text);
        TEST_CHECK_(report.findings <= 1 && !strstr(told, "isn't a store"), "page %zu: %s", at / PAGE, told);
    }
    TEST_CHECK_(found == 2, "%zu", found);
    free(bytes);
    end();
}

static void die(struct check *check, struct txn *txn, struct span key, const void *record)
{
    (void)txn;
    (void)record;
    check_complain(check, "a last word about a key of %u bytes", key.size);
    raise(SIGSEGV);
}

static void test_L8_the_death_of_the_checking_child_is_a_finding(void)
{
    struct schema_table tables[SCHEMA_TABLES_MAX];
    struct schema schema = parcel_store_schema;
    place_sound();
    memcpy(tables, schema.tables, schema.tables_count * sizeof(*tables));
    tables[TABLE_EVENTS].check = die;
    schema.tables = tables;
    struct check_report report = look_with(&schema);
    TEST_CHECK(report.findings == 2 && strstr(told, "a last word") && strstr(told, "signal 11"));
    end();
}

static void test_what_is_no_store_is_refused(void)
{
    char text[512] = "";
    struct check_report report = {.rows = 7};
    place_make(dir);
    const struct schema *schema = &parcel_store_schema;
    TEST_CHECK(check_directory(dir, schema, tell, NULL, &report, text, sizeof(text)) == ERR_MISSING);
    TEST_CHECK(text[0] != 0);
    place_write(place_in(dir, "data.mdb"), "something else", 14);
    TEST_CHECK(check_directory(dir, schema, tell, NULL, &report, text, sizeof(text)) == ERR_FOREIGN);
    TEST_CHECK(check_directory(place_in(dir, "none"), schema, tell, NULL, &report, text, sizeof(text)) ==
               ERR_MISSING);
    TEST_CHECK(report.rows == 7);
    place_remove(dir);
}

static void test_rows_of_an_older_format_are_not_judged(void)
{
    char text[512] = "";
    struct check_report report = {.rows = 7};
    struct schema newer = parcel_store_schema;
    newer.format++;
    place_sound();
    TEST_CHECK(check_directory(dir, &newer, tell, NULL, &report, text, sizeof(text)) == ERR_UNAVAILABLE);
    TEST_CHECK_(strstr(text, "rows are of format 1, and are brought to format 2 when a server opens it") !=
                    NULL,
                "%s", text);
    TEST_CHECK(report.rows == 7);
    end();
}

TEST_LIST
= {
    {"a_sound_store_has_no_findings", test_a_sound_store_has_no_findings},
    {"a_store_is_sound_at_each_moment_of_its_server", test_a_store_is_sound_at_each_moment_of_its_server},
    {"each_kind_of_wrong_row_is_told", test_each_kind_of_wrong_row_is_told},
    {"a_lost_commit_is_told", test_a_lost_commit_is_told},
    {"findings_beyond_the_limit_are_counted", test_findings_beyond_the_limit_are_counted},
    {"D6_pages_that_are_wrong_are_a_finding", test_D6_pages_that_are_wrong_are_a_finding},
    {"D6_a_store_whose_tables_are_lost_is_damaged_and_not_foreign",
     test_D6_a_store_whose_tables_are_lost_is_damaged_and_not_foreign},
    {"L8_the_death_of_the_checking_child_is_a_finding", test_L8_the_death_of_the_checking_child_is_a_finding},
    {"what_is_no_store_is_refused", test_what_is_no_store_is_refused},
    {"rows_of_an_older_format_are_not_judged", test_rows_of_an_older_format_are_not_judged},
    {NULL, NULL},
};
