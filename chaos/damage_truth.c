#define _GNU_SOURCE
#include "chaos/damage_truth.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chaos/dice.h"
#include "store/audit.h"
#include "store/batch.h"
#include "store/image.h"
#include "store/outbox.h"
#include "store/view.h"

enum { ROUNDS = 60 }; /* of parcels, before the earlier copy and again after it */

struct truth truth;
char truth_dir[256];

_Noreturn __attribute__((format(printf, 1, 2))) void truth_give_up(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "damage: ");
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
    exit(2);
}

const char *truth_path(const char *name)
{
    static char path[sizeof(truth_dir) + 32];
    snprintf(path, sizeof(path), "%s/%s", truth_dir, name);
    return path;
}

struct bytes truth_read(const char *path)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) != 0)
        truth_give_up("%s can't be read: %s", path, strerror(errno));
    struct bytes bytes = {.at = malloc((size_t)status.st_size + 1), .size = (size_t)status.st_size};
    if (!bytes.at || pread(fd, bytes.at, bytes.size, 0) != (ssize_t)bytes.size)
        truth_give_up("%s can't be read: %s", path, strerror(errno));
    close(fd);
    return bytes;
}

void truth_write(const char *path, const void *bytes, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, bytes, size) != (ssize_t)size)
        truth_give_up("%s can't be written: %s", path, strerror(errno));
    close(fd);
}

void truth_clear(void)
{
    static const char *const names[] = {"data.mdb", "coppice.lock", "lock.mdb", "new"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        (void)unlink(truth_path(names[i]));
}

/* ---- making it ---- */

enum error truth_open(uint8_t birth, bool large, struct store **ret_store, char *text, size_t text_size)
{
    const struct store_options options = {
        .environment = {.dir = truth_dir,
                        .birth = {birth},
                        .map = 1 << 25,
                        .step = 1 << 16,
                        .reserve = 4096,
                        .views_max = 64,
                        .whole_max = large},
        .schema = &parcel_store_schema,
        .ledger_max = TRUTH_ROWS_MAX,
    };
    return store_open(&options, ret_store, text, text_size);
}

static struct store *store_make(uint8_t birth)
{
    char text[512];
    struct store *store;
    if (truth_open(birth, false, &store, text, sizeof(text)) != OK)
        truth_give_up("%s", text);
    return store;
}

static struct uuid id_of(uint32_t number)
{
    struct uuid id = {.bytes = {[0] = 1, [6] = 0x70, [8] = 0x80}};
    memcpy(id.bytes + 12, &(uint32_t){__builtin_bswap32(number)}, sizeof(number));
    return id;
}

static void command(struct store *store, const struct command_class *class, const void *bytes)
{
    uint8_t room[ANSWER_SIZE_MAX];
    struct answer answer = {.bytes = room};
    enum error e = batch_one(store, class, TRUTH_AT_US, bytes, &answer);
    if (e)
        truth_give_up("%s: %s", class->name, error_name(e));
}

struct parcel_send truth_send(uint32_t number, char key[32])
{
    static uint8_t body[PARCEL_BODY_MAX];
    struct dice dice = dice_of(number);
    uint32_t size = number % 12 == 0 ? 3000 + dice_below(&dice, 9000) : dice_below(&dice, 400);
    for (uint32_t i = 0; i < size; i++)
        body[i] = (uint8_t)dice_draw(&dice);
    snprintf(key, 32, "request %u", number);
    return (struct parcel_send){.id = id_of(number),
                                .scope = span_text("damage"),
                                .key = span_text(number % 2 ? key : ""),
                                .due_us = number % 3 ? TRUTH_AT_US + number : 0,
                                .body = span_of(body, size)};
}

/* One parcel and what becomes of it. */
static void one_round(struct store *store, uint32_t number)
{
    char key[32];
    struct parcel_send send = truth_send(number, key);
    command(store, &parcel_send_class, &send);
    for (uint32_t i = 0; i < number % 3; i++)
        command(store, &parcel_move_class,
                &(struct parcel_move){.id = send.id, .event = i == 0 ? PARCEL_SEND : PARCEL_DELIVER});
    if (number % 6 == 5)
        command(store, &parcel_drop_class, &(struct parcel_drop){.id = send.id});
    if (number % 5 == 0)
        command(store, &audit_append_class,
                &(struct audit_append){.id = id_of(100000 + number),
                                       .key = span_text(""),
                                       .who = span_text("damage"),
                                       .verb = span_text("parcel.send"),
                                       .target = span_text(key),
                                       .details = span_text("{}")});
    if (number % 7 == 0)
        command(store, &outbox_claim_class,
                &(struct outbox_claim_command){.partition = (uint16_t)(number / 7 % 4), .holder = number});
}

static struct span kept(struct span span)
{
    uint8_t *bytes = malloc(span.size + 1);
    if (!bytes)
        truth_give_up("no memory");
    memcpy(bytes, span.bytes, span.size);
    return span_of(bytes, span.size);
}

static void keep_rows(struct store *store, struct rows *rows)
{
    struct view *view = view_open_outside(store, 0);
    for (uint32_t table = 0; table < parcel_store_schema.tables_count; table++) {
        struct scan scan = txn_scan(&view->txn, table, span_text(""), 0, SCAN_UP);
        while (scan_next(&scan)) {
            if (rows->count == TRUTH_ROWS_MAX)
                truth_give_up("more than %d rows", TRUTH_ROWS_MAX);
            rows->at[rows->count++] =
                (struct row){.table = table, .key = kept(scan.key), .bytes = kept(scan.bytes)};
        }
        if (scan_end(&scan) != OK)
            truth_give_up("the store that was made can't be read");
    }
    view_close(view);
}

static void make_stranger(void)
{
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi dbi;
    MDB_val k = {.mv_size = 4, .mv_data = (char[]){"word"}}, v = k;
    if (mdb_env_create(&env) || mdb_env_set_maxdbs(env, 2) || mdb_env_open(env, truth_dir, 0, 0600) ||
        mdb_txn_begin(env, NULL, 0, &txn) || mdb_dbi_open(txn, "words", MDB_CREATE, &dbi) ||
        mdb_put(txn, dbi, &k, &v, 0) || mdb_txn_commit(txn))
        truth_give_up("LMDB makes no file in %s", truth_dir);
    mdb_env_close(env);
    truth.stranger = truth_read(truth_path("data.mdb"));
    truth_clear();
}

static void make_sibling(void)
{
    struct store *store = store_make(2);
    for (uint32_t i = 0; i < ROUNDS / 4; i++)
        one_round(store, 5000 + i);
    store_close(store);
    truth.sibling = truth_read(truth_path("data.mdb"));
    truth_clear();
}

static uint64_t commit_of(struct store *store)
{
    struct view *view = view_open_outside(store, 0);
    uint64_t commit = txn_number(&view->txn);
    view_close(view);
    return commit;
}

/* ---- a page that may be put back ---- */

enum { PAGE_LEAF = 0x02, NODE_PLAIN = 0, NODES_AT = 16, TURNS_MAX = 4096 };

static uint32_t u16(const uint8_t *at)
{
    return at[0] | (uint32_t)at[1] << 8;
}

/* A leaf's key, as LMDB keeps it: of a node the size of its value, flags, the size of its key, and the key. False: it names a table, or has
 * its value elsewhere. */
static bool key_at(const uint8_t *page, uint32_t i, struct span *ret_key)
{
    const uint8_t *node = page + u16(page + NODES_AT + 2 * (size_t)i);
    *ret_key = span_of(node + 8, u16(node + 6));
    return u16(node + 4) == NODE_PLAIN;
}

static uint32_t keys_of(const uint8_t *page)
{
    return (u16(page + 12) - NODES_AT) / 2;
}

/* Rows of the same keys with other values, and not the number of the commit, which is looked at by itself. */
static bool same_leaf(const uint8_t *before, const uint8_t *after)
{
    if (u16(before + 10) != PAGE_LEAF || u16(after + 10) != PAGE_LEAF || keys_of(before) != keys_of(after) ||
        memcmp(before + NODES_AT, after + NODES_AT, TRUTH_PAGE - NODES_AT) == 0)
        return false;
    for (uint32_t i = 0; i < keys_of(after); i++) {
        struct span was, is;
        if (!key_at(before, i, &was) || !key_at(after, i, &is) || !span_equal(was, is) ||
            span_equal(is, span_text("commit")))
            return false;
    }
    return true;
}

/* Whether one that the last commit has written, so that it is in use, held the same rows in the earlier copy, as they were then. */
static bool may_be_older(const struct bytes *last, const struct bytes *now)
{
    for (size_t at = 2 * TRUTH_PAGE; at < truth.earlier.size && at < last->size; at += TRUTH_PAGE)
        if (memcmp(last->at + at, now->at + at, TRUTH_PAGE) != 0 &&
            same_leaf(truth.earlier.at + at, now->at + at))
            return true;
    return false;
}

/* One more commit; true: it will do. The hardest: one bit less and the newest commit seems to be the one before last. */
static bool turn(struct store *store)
{
    struct bytes last = truth_read(truth_path("data.mdb"));
    command(store, &outbox_claim_class, &(struct outbox_claim_command){.partition = 1, .holder = 1});
    struct bytes now = truth_read(truth_path("data.mdb"));
    bool good = (commit_of(store) & 2) && may_be_older(&last, &now);
    free(last.at);
    free(now.at);
    return good;
}

void truth_make(void)
{
    struct image_report report;
    char text[256];
    parcel_install();
    make_stranger();
    make_sibling();
    struct store *store = store_make(1);
    for (uint32_t i = 0; i < ROUNDS; i++)
        one_round(store, i);
    keep_rows(store, &truth.then);
    store_close(store);
    truth.earlier = truth_read(truth_path("data.mdb"));
    store = store_make(1);
    for (uint32_t i = 0; i < ROUNDS; i++)
        one_round(store, ROUNDS + i);
    uint32_t turns = 0;
    while (!turn(store))
        if (++turns == TURNS_MAX)
            truth_give_up("no page comes to where it was");
    keep_rows(store, &truth.now);
    store_close(store);
    truth.data = truth_read(truth_path("data.mdb"));
    truth.lock = truth_read(truth_path("coppice.lock"));
    int fd = open(truth_path("data.mdb"), O_RDONLY | O_CLOEXEC);
    if (fd < 0 || image_check(fd, 0, &report, text, sizeof(text)) != OK || report.page_size != TRUTH_PAGE ||
        truth.data.size > TRUTH_FILE_MAX || truth.earlier.size > truth.data.size)
        truth_give_up("the store that was made isn't sound: %s", text);
    close(fd);
    truth.used = report.pages * TRUTH_PAGE;
}

/* ---- rows ---- */

static int rows_order(const void *one, const void *other)
{
    const struct row *a = one, *b = other;
    uint32_t least = a->key.size < b->key.size ? a->key.size : b->key.size;
    if (a->table != b->table)
        return a->table < b->table ? -1 : 1;
    int order = memcmp(a->key.bytes, b->key.bytes, least);
    return order != 0 ? order : (a->key.size > b->key.size) - (a->key.size < b->key.size);
}

/* What the row held in this state; NULL: there was none. */
static const struct span *held(const struct rows *rows, uint32_t table, struct span key)
{
    const struct row wanted = {.table = table, .key = key};
    const struct row *row = bsearch(&wanted, rows->at, rows->count, sizeof(wanted), rows_order);
    return row ? &row->bytes : NULL;
}

bool rows_hold(const struct rows *rows, uint32_t table, struct span key, const struct span *bytes)
{
    const struct span *was = held(rows, table, key);
    return bytes && was ? span_equal(*bytes, *was) : !bytes && !was;
}
