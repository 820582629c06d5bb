#include "chaos/damage_look.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "store/batch.h"
#include "store/check.h"
#include "store/image.h"
#include "store/value.h"
#include "store/view.h"

static bool same_file(const char *name, const void *bytes, size_t size)
{
    static uint8_t buffer[TRUTH_FILE_MAX + 1];
    int fd = open(truth_path(name), O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = pread(fd, buffer, sizeof(buffer), 0);
    close(fd);
    return n == (ssize_t)size && memcmp(buffer, bytes, size) == 0;
}

static uint32_t names_in_dir(void)
{
    uint32_t count = 0;
    DIR *listing = opendir(truth_dir);
    if (!listing)
        return 0;
    for (struct dirent *entry; (entry = readdir(listing));)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(listing);
    return count;
}

static void judge_refusal(const struct image *image, enum error e, const char *text)
{
    if (!text[0] || !strstr(text, truth_dir))
        campaign_violation("refused (%s) without a sentence that names the directory: '%s'", error_name(e),
                           text);
    if (e != ERR_DAMAGED && e != ERR_FOREIGN && e != ERR_NEWER)
        campaign_violation("refused for another reason: %s: %s", error_name(e), text);
    if (!image->data_gone && !same_file("data.mdb", image->data, image->size))
        campaign_violation("a refusal changed the data file: %s", text);
    if (!image->lock_gone && !same_file("coppice.lock", truth.lock.at, truth.lock.size))
        campaign_violation("a refusal changed the lock file: %s", text);
    if (names_in_dir() != (uint32_t)!image->data_gone + !image->lock_gone)
        campaign_violation("a refusal left something behind: %s", text);
}

/* NULL: it isn't there. */
static void judge_row(uint32_t table, struct span key, const struct span *bytes)
{
    /* An empty table that lost its name is made again when the store opens: that is a commit of its own. */
    bool stamp = table == TABLE_META && bytes && span_equal(key, span_text("commit"));
    if (rows_hold(&truth.now, table, key, bytes) || stamp) /* go_on compares it with the commit's number */
        return;
    if (campaign->kind == KIND_stale && rows_hold(&truth.then, table, key, bytes))
        campaign->older = true;
    else
        campaign_violation("a row of %s is %s", parcel_store_schema.tables[table].name,
                           bytes ? "wrong" : "not found");
}

static bool read_row(struct txn *txn, const struct row *row)
{
    struct span bytes;
    uint8_t version;
    enum error e = txn_get(txn, row->table, row->key, &version, &bytes);
    if (e == OK && span_equal(bytes, row->bytes))
        return true;
    if (e == OK || e == ERR_NOT_FOUND)
        judge_row(row->table, row->key, e == OK ? &bytes : NULL);
    else if (e != ERR_DAMAGED)
        campaign_violation("a row of %s: %s", parcel_store_schema.tables[row->table].name, error_name(e));
    return e != ERR_DAMAGED;
}

/* Of the table, or of a later one. */
static uint32_t first_row(uint32_t table)
{
    uint32_t i = 0;
    while (i < truth.now.count && truth.now.at[i].table < table)
        i++;
    return i;
}

/* From end to end: nothing besides, nothing missing. */
static void read_table(struct txn *txn, uint32_t table)
{
    uint32_t first = first_row(table), rows = first_row(table + 1) - first, count = 0;
    struct scan scan = txn_scan(txn, table, span_text(""), 0, SCAN_UP);
    for (; scan_next(&scan); count++) {
        const struct row *row = count < rows ? &truth.now.at[first + count] : NULL;
        if (!row || !span_equal(scan.key, row->key) || !span_equal(scan.bytes, row->bytes))
            judge_row(table, scan.key, &scan.bytes);
    }
    enum error e = scan_end(&scan);
    if (e != OK && e != ERR_DAMAGED)
        campaign_violation("a scan of %s: %s", parcel_store_schema.tables[table].name, error_name(e));
    else if (e == OK && count != rows && !campaign->older)
        campaign_violation("a scan of %s shows %u rows", parcel_store_schema.tables[table].name, count);
}

static void complain(void *context, const char *finding)
{
    (void)context;
    campaign_violation("after another command: %s", finding);
}

static enum error one_more(struct store *store)
{
    char key[32];
    struct parcel_send send = truth_send(9001, key);
    return batch_one(store, &parcel_send_class, TRUTH_AT_US, &send, NULL);
}

/* What looked sound must be so for whoever writes to it, too. */
static void go_on(struct store *store)
{
    char text[256];
    struct check_report report;
    struct image_report image;
    struct view *view = view_open_outside(store, 0);
    enum error e = check_rows(&view->txn, &parcel_store_schema, complain, NULL, &report);
    view_close(view);
    if (e)
        campaign_violation("it can't be checked: %s", error_name(e));
    e = image_check(store->environment.data_fd, 0, &image, text, sizeof(text));
    if (e)
        campaign_violation("after another command the file isn't sound: %s", text);
}

static uint32_t read_all(struct txn *txn)
{
    uint32_t readable = 0;
    for (uint32_t i = 0; i < truth.now.count; i++)
        readable += read_row(txn, &truth.now.at[i]);
    for (uint32_t table = 0; table < parcel_store_schema.tables_count; table++)
        read_table(txn, table);
    return readable;
}

static uint32_t view_all(struct store *store)
{
    struct view *view = view_open_outside(store, 0);
    uint32_t readable = read_all(&view->txn);
    view_close(view);
    return readable;
}

/* Refused, and neither the file nor what it shows is another now. */
static void judge_refused_command(const struct image *image, struct store *store, enum error e,
                                  uint32_t readable)
{
    if (e != ERR_DAMAGED)
        campaign_violation("with %u of %u rows it %s", readable, truth.now.count,
                           e ? error_name(e) : "takes a command");
    else if (!same_file("data.mdb", image->data, image->size))
        campaign_violation("a refused command changed the data file");
    else if (view_all(store) != readable)
        campaign_violation("after a refused command it shows something else");
}

static enum outcome judge_served(const struct image *image, struct store *store)
{
    uint32_t readable = view_all(store);
    if (campaign->wrong)
        return SERVED;
    enum error e = campaign->older ? ERR_DAMAGED : one_more(store);
    if (campaign->older)
        return OLDER;
    if (readable == truth.now.count && e == OK) {
        go_on(store);
        return SERVED;
    }
    judge_refused_command(image, store, e, readable);
    return readable < truth.now.count ? TOLD : HELD;
}

enum outcome look_served(const struct image *image)
{
    char text[512] = "";
    struct store *store = NULL;
    enum error e = truth_open(3, campaign_large(), &store, text, sizeof(text));
    if (e) {
        judge_refusal(image, e, text);
        return REFUSED;
    }
    enum outcome outcome = judge_served(image, store);
    store_close(store);
    return outcome;
}

enum outcome look_blindly(void)
{
    struct store store = {.schema = &parcel_store_schema};
    struct txn txn = {.mdb = NULL};
    MDB_env *env = NULL;
    MDB_txn *mdb = NULL;
    int code = mdb_env_create(&env);
    if (!code)
        code = mdb_env_set_maxdbs(env, SCHEMA_TABLES_MAX);
    if (!code)
        code = mdb_env_open(env, truth_dir, MDB_RDONLY | MDB_NOTLS | MDB_NOLOCK, 0600);
    if (!code)
        code = mdb_txn_begin(env, NULL, MDB_RDONLY, &mdb);
    for (uint32_t i = 0; !code && i < parcel_store_schema.tables_count; i++) {
        code = mdb_dbi_open(mdb, parcel_store_schema.tables[i].name, 0, &store.environment.tables[i]);
        store.environment.seeds[i] = value_seed(parcel_store_schema.tables[i].name);
    }
    if (!code) {
        txn_open(&txn, &store, mdb);
        (void)read_all(&txn);
        txn_release(&txn);
    }
    if (mdb)
        mdb_txn_abort(mdb);
    if (env)
        mdb_env_close(env);
    return code ? REFUSED : SERVED;
}
