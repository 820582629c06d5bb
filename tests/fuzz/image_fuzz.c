/* Data files: whatever the bytes are, looking at them ends with a report or a sentence; and a file that is called sound is one
 * that LMDB reads from end to end as the report says, and can be written to. */
#include <fcntl.h>
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "runtime/assert.h"
#include "store/image.h"
#include "store/schema.h"
#include "tests/fuzz/bytes.h"

enum { MAP = 1 << 22, TABLES = SCHEMA_TABLES_MAX };

static char dir[64], file[96];

static void remove_dir(void)
{
    char lock[96];
    snprintf(lock, sizeof lock, "%s/lock.mdb", dir);
    unlink(lock);
    unlink(file);
    rmdir(dir);
}

static void make_dir(void)
{
    snprintf(dir, sizeof dir, "%s/image-fuzz-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    ASSERT(mkdtemp(dir));
    snprintf(file, sizeof file, "%s/data.mdb", dir);
    atexit(remove_dir);
}

/* The rows of all tables; each must be found by its key. One of them is written over. */
static uint64_t walk_table(MDB_txn *txn, MDB_dbi dbi)
{
    MDB_cursor *cursor;
    MDB_val k, v, found;
    uint64_t rows = 0;
    ASSERT(mdb_cursor_open(txn, dbi, &cursor) == 0);
    int code;
    while ((code = mdb_cursor_get(cursor, &k, &v, MDB_NEXT)) == 0) {
        ASSERT(mdb_get(txn, dbi, &k, &found) == 0 && found.mv_data == v.mv_data);
        rows++;
    }
    ASSERT(code == MDB_NOTFOUND);
    mdb_cursor_close(cursor);
    MDB_val key = {.mv_size = 3, .mv_data = (char[]){"new"}},
            value = {.mv_size = 5, .mv_data = (char[]){"value"}};
    ASSERT(mdb_put(txn, dbi, &key, &value, 0) == 0);
    return rows;
}

static uint64_t walk_tables(MDB_txn *txn)
{
    MDB_dbi tables, dbi;
    MDB_cursor *cursor;
    MDB_val k, v;
    char names[TABLES][512];
    uint64_t rows = 0;
    unsigned count = 0;
    ASSERT(mdb_dbi_open(txn, NULL, 0, &tables) == 0);
    ASSERT(mdb_cursor_open(txn, tables, &cursor) == 0);
    while (mdb_cursor_get(cursor, &k, &v, MDB_NEXT) == 0) {
        ASSERT(count < TABLES && k.mv_size < sizeof names[0]);
        memcpy(names[count], k.mv_data, k.mv_size);
        names[count++][k.mv_size] = 0;
    }
    mdb_cursor_close(cursor);
    for (unsigned i = 0; i < count; i++) {
        ASSERT(mdb_dbi_open(txn, names[i], 0, &dbi) == 0);
        rows += walk_table(txn, dbi);
    }
    return rows;
}

static void check_with_lmdb(const struct image_report *report)
{
    MDB_env *env;
    MDB_txn *txn;
    ASSERT(mdb_env_create(&env) == 0);
    ASSERT(mdb_env_set_maxdbs(env, TABLES) == 0);
    ASSERT(mdb_env_set_mapsize(env, MAP + (report->pages + 64) * report->page_size) == 0);
    ASSERT(mdb_env_open(env, dir, MDB_NOLOCK | MDB_NOSYNC, 0600) == 0);
    ASSERT(mdb_txn_begin(env, NULL, 0, &txn) == 0);
    ASSERT(mdb_txn_id(txn) == report->txn + 1);
    ASSERT(walk_tables(txn) == report->rows);
    ASSERT(mdb_txn_commit(txn) == 0);
    mdb_env_close(env);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct image_report report = {0};
    char why[256] = "";
    if (!dir[0])
        make_dir();
    int fd = open(file, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ASSERT(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    struct image_report peeked;
    enum error peek = image_peek(fd, &peeked, why, sizeof why);
    enum error e = image_check(fd, 0, &report, why, sizeof why);
    ASSERT(e == OK || e == ERR_DAMAGED || e == ERR_FOREIGN);
    ASSERT(e == OK || why[0]);
    ASSERT(e != OK || peek == OK);
    close(fd);
    if (e == OK && report.txn < UINT64_MAX / 2)
        check_with_lmdb(&report);
    return 0;
}
