#include "tests/store/fresh.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define TEST_NO_MAIN
#include "acutest.h"

#include "store/counter.h"
#include "tests/support/spoil.h"

/* ---- opening ---- */

static void open_it(struct fresh *fresh)
{
    char text[FRESH_TEXT] = "";
    struct store_options options = {
        .environment = {.dir = fresh->dir, .map = 64u << 20, .step = 1u << 20, .reserve = 1u << 20},
        .schema = fresh->schema,
        .ledger_max = fresh->ledger_max,
    };
    for (size_t i = 0; i < sizeof(options.environment.birth); i++)
        options.environment.birth[i] = (uint8_t)(i + 1);
    enum error e = store_open(&options, &fresh->store, text, sizeof(text));
    TEST_ASSERT_(e == OK, "%s: %s", error_name(e), text);
}

void fresh_open(struct fresh *fresh)
{
    const char *tmp = getenv("TMPDIR");
    parcel_install();
    snprintf(fresh->dir, sizeof(fresh->dir), "%s/coppice-test-XXXXXX", tmp && tmp[0] ? tmp : "/tmp");
    TEST_ASSERT(mkdtemp(fresh->dir) != NULL);
    fresh->schema = &parcel_store_schema;
    fresh->ledger_max = 0;
    open_it(fresh);
}

void fresh_reopen(struct fresh *fresh)
{
    store_close(fresh->store);
    open_it(fresh);
}

static void remove_file(const char *dir, const char *name)
{
    char path[300];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    unlink(path);
}

void fresh_close(struct fresh *fresh)
{
    fresh_sound(fresh);
    store_close(fresh->store);
    fresh->store = NULL;
    remove_file(fresh->dir, "data.mdb");
    remove_file(fresh->dir, "lock.mdb");
    remove_file(fresh->dir, "coppice.lock");
    TEST_CHECK_(rmdir(fresh->dir) == 0, "%s is left", fresh->dir);
}

/* ---- within a transaction ---- */

static fresh_body *body_now;
static void *context_now;

static enum error apply_body(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    (void)command;
    (void)answer;
    return body_now(txn, at_us, context_now);
}

#define NOTHING_FIELDS(X) X(nothing, U8, 0, 1)
RECORD_STRUCT(nothing, NOTHING_FIELDS);
#define nothing_FIELD(name, TYPE, limit, since) RECORD_FIELD(nothing, name, TYPE, limit, since)
RECORD_CLASS(nothing, NOTHING_FIELDS, 1);

static const struct command_class body_class = {
    .name = "test.body",
    .record = &nothing_record,
    .apply = apply_body,
    .code = 9900,
};

enum error fresh_do(struct fresh *fresh, uint64_t at_us, fresh_body *body, void *context)
{
    struct nothing nothing = {0};
    body_now = body;
    context_now = context;
    return batch_one(fresh->store, &body_class, at_us, &nothing, NULL);
}

/* ---- looking ---- */

struct heard {
    char *text;
    const char *part;
    uint64_t count;
    bool found;
};

static void hear(void *context, const char *finding)
{
    struct heard *heard = context;
    if (heard->count++ == 0)
        snprintf(heard->text, FRESH_TEXT, "%s", finding);
    heard->found |= heard->part && strstr(finding, heard->part);
}

uint64_t fresh_findings(struct fresh *fresh, char ret_text[FRESH_TEXT])
{
    struct view *view = view_open_outside(fresh->store, 0);
    struct heard heard = {.text = ret_text};
    struct check_report report = {0};
    ret_text[0] = '\0';
    TEST_ASSERT(view != NULL);
    enum error e = check_rows(&view->txn, fresh->schema, hear, &heard, &report);
    view_close(view);
    TEST_CHECK_(e == OK, "%s", error_name(e));
    return report.findings;
}

struct trial {
    const struct schema *schema;
    fresh_body *body;
    void *context;
    struct heard heard;
};

/* Looks at what it has done before anybody commits it, and then says that a write failed. */
static enum error try_it(struct txn *txn, uint64_t at_us, void *context)
{
    struct trial *trial = context;
    struct check_report report;
    TEST_CHECK(trial->body(txn, at_us, trial->context) == OK && txn->error == OK);
    counter_write_all(txn);
    TEST_CHECK(check_rows(txn, trial->schema, hear, &trial->heard, &report) == OK);
    txn->writes++;
    txn->error = ERR_MEMORY;
    return OK;
}

bool fresh_would_find(struct fresh *fresh, fresh_body *body, void *context, const char *part)
{
    char text[FRESH_TEXT];
    struct trial trial = {
        .schema = fresh->schema, .body = body, .context = context, .heard = {.text = text, .part = part}};
    TEST_CHECK(fresh_do(fresh, 1, try_it, &trial) == ERR_MEMORY);
    return trial.heard.found;
}

/* ---- one row ---- */

struct row {
    uint32_t table;
    struct key key;
    const void *record;
};

static enum error put_row(struct txn *txn, uint64_t at_us, void *context)
{
    const struct row *row = context;
    (void)at_us;
    if (row->record)
        txn_write(txn, row->table, key_span(&row->key), row->record);
    else
        txn_remove(txn, row->table, key_span(&row->key));
    return OK;
}

static enum error flip_row(struct txn *txn, uint64_t at_us, void *context)
{
    const struct row *row = context;
    (void)at_us;
    spoil_value(txn, row->table, key_span(&row->key));
    return OK;
}

/* A record that is shorter than any other, and one of a version that nobody has. */
#define CRUMB_FIELDS(X) X(one, U8, 0, 1)
RECORD_STRUCT(crumb, CRUMB_FIELDS);
#define crumb_FIELD(name, TYPE, limit, since) RECORD_FIELD(crumb, name, TYPE, limit, since)
RECORD_CLASS(crumb, CRUMB_FIELDS, 1);
#define NEWER_FIELDS(X) X(one, U8, 0, 200)
RECORD_STRUCT(newer, NEWER_FIELDS);
#define newer_FIELD(name, TYPE, limit, since) RECORD_FIELD(newer, name, TYPE, limit, since)
RECORD_CLASS(newer, NEWER_FIELDS, 200);

static enum error put_other(struct txn *txn, uint64_t at_us, void *context)
{
    const struct row *row = context;
    const struct crumb crumb = {.one = 1};
    const struct newer newer = {.one = 1};
    const bool later = row->record != NULL;
    uint8_t bytes[32];
    (void)at_us;
    size_t size = value_write(txn->store->environment.seeds[row->table], key_span(&row->key),
                              later ? &newer_record : &crumb_record, later ? (const void *)&newer : &crumb,
                              bytes, sizeof(bytes));
    MDB_val k = {row->key.size, (void *)(uintptr_t)row->key.bytes}, v = {size, bytes};
    TEST_ASSERT(size > 0 && mdb_put(txn->mdb, txn->store->environment.tables[row->table], &k, &v, 0) == 0);
    txn->writes++;
    return OK;
}

static enum error do_nothing(struct txn *txn, uint64_t at_us, void *context)
{
    (void)txn;
    (void)at_us;
    (void)context;
    return OK;
}

void fresh_put(struct fresh *fresh, uint32_t table, struct key key, const void *record)
{
    struct row row = {table, key, record};
    TEST_CHECK(fresh_do(fresh, 1, put_row, &row) == OK);
}

void fresh_take(struct fresh *fresh, uint32_t table, struct key key)
{
    fresh_put(fresh, table, key, NULL);
}

void fresh_flip(struct fresh *fresh, uint32_t table, struct key key)
{
    struct row row = {table, key, NULL};
    TEST_CHECK(fresh_do(fresh, 1, flip_row, &row) == OK);
}

void fresh_crumb(struct fresh *fresh, uint32_t table, struct key key)
{
    struct row row = {table, key, NULL};
    TEST_CHECK(fresh_do(fresh, 1, put_other, &row) == OK);
}

void fresh_newer(struct fresh *fresh, uint32_t table, struct key key)
{
    struct row row = {table, key, fresh};
    TEST_CHECK(fresh_do(fresh, 1, put_other, &row) == OK);
}

bool fresh_finds(struct fresh *fresh, uint32_t table, struct key key, const void *record, const char *part)
{
    struct row row = {table, key, record};
    return fresh_would_find(fresh, put_row, &row, part);
}

bool fresh_tells(struct fresh *fresh, const char *part)
{
    return fresh_would_find(fresh, do_nothing, NULL, part);
}

const char *fresh_about(const char *before, const struct uuid *id, const char *after)
{
    static char part[FRESH_TEXT];
    char text[UUID_TEXT_SIZE];
    uuid_format(id, text);
    snprintf(part, sizeof(part), "%s%s%s", before, text, after);
    return part;
}

void fresh_sound(struct fresh *fresh)
{
    char text[FRESH_TEXT];
    uint64_t findings = fresh_findings(fresh, text);
    TEST_CHECK_(findings == 0, "%llu findings, the first: %s", (unsigned long long)findings, text);
}

int64_t fresh_counter(struct fresh *fresh, uint16_t counter, struct span label)
{
    struct view *view = view_open_outside(fresh->store, 0);
    int64_t value = -1;
    TEST_ASSERT(view != NULL);
    TEST_CHECK(counter_read(&view->txn, counter, label, &value) == OK);
    view_close(view);
    return value;
}

/* ---- chance ---- */

static uint64_t chance = 0x9e3779b97f4a7c15u;

uint64_t fresh_random(void)
{
    chance ^= chance << 13;
    chance ^= chance >> 7;
    chance ^= chance << 17;
    return chance * 0x2545f4914f6cdd1du;
}

uint32_t fresh_below(uint32_t bound)
{
    return (uint32_t)((fresh_random() >> 32) * bound >> 32);
}

struct uuid fresh_uuid(void)
{
    struct uuid id;
    uint64_t words[2] = {fresh_random(), fresh_random()};
    memcpy(id.bytes, words, sizeof(id.bytes));
    return id;
}
