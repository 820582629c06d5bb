#include "chaos/digest.h"

#include <lmdb.h>
#include <string.h>

#include "store/checksum.h"
#include "store/schema.h"

enum { FREE_PAGES = 0, NAME_SIZE = 128 };

struct walk {
    MDB_txn *txn;
    uint64_t sum, rows, rows_max;
};

static void add_row(struct walk *w, uint64_t seed, const MDB_val *k, const MDB_val *v)
{
    uint64_t key = checksum(seed, k->mv_data, k->mv_size);
    w->sum += checksum(key, v->mv_data, v->mv_size);
    w->rows++;
}

static int walk_table(struct walk *w, MDB_dbi dbi, uint64_t seed)
{
    MDB_cursor *cursor;
    MDB_val k, v;
    int code = mdb_cursor_open(w->txn, dbi, &cursor);
    if (code)
        return code;
    while ((code = mdb_cursor_get(cursor, &k, &v, MDB_NEXT)) == 0 && w->rows < w->rows_max)
        add_row(w, seed, &k, &v);
    mdb_cursor_close(cursor);
    return code == MDB_NOTFOUND ? 0 : code ? code : MDB_CORRUPTED;
}

/* The table of tables, and each of them. */
static int walk_all(struct walk *w)
{
    MDB_dbi main, dbi;
    MDB_cursor *cursor;
    MDB_val k, v;
    int code = mdb_dbi_open(w->txn, NULL, 0, &main);
    if (!code)
        code = walk_table(w, FREE_PAGES, 1);
    if (!code)
        code = mdb_cursor_open(w->txn, main, &cursor);
    if (code)
        return code;
    while ((code = mdb_cursor_get(cursor, &k, &v, MDB_NEXT)) == 0 && w->rows < w->rows_max) {
        char name[NAME_SIZE];
        if (k.mv_size >= sizeof(name)) {
            code = MDB_CORRUPTED;
            break;
        }
        memcpy(name, k.mv_data, k.mv_size);
        name[k.mv_size] = 0;
        add_row(w, 2, &k, &v);
        code = mdb_dbi_open(w->txn, name, 0, &dbi);
        if (!code)
            code = walk_table(w, dbi, checksum(3, name, k.mv_size));
        if (code)
            break;
    }
    mdb_cursor_close(cursor);
    return code == MDB_NOTFOUND ? 0 : code ? code : MDB_CORRUPTED;
}

const char *digest_of(const char *path, uint64_t rows_max, uint64_t *ret_digest, uint64_t *ret_rows)
{
    MDB_env *env;
    struct walk w = {.rows_max = rows_max};
    int code = mdb_env_create(&env);
    if (code)
        return mdb_strerror(code);
    code = mdb_env_set_maxdbs(env, SCHEMA_TABLES_MAX);
    if (!code)
        code = mdb_env_open(env, path, MDB_RDONLY | MDB_NOLOCK | MDB_NOSUBDIR | MDB_NOTLS, 0600);
    if (!code)
        code = mdb_txn_begin(env, NULL, MDB_RDONLY, &w.txn);
    if (!code) {
        code = walk_all(&w);
        mdb_txn_abort(w.txn);
    }
    mdb_env_close(env);
    if (code)
        return mdb_strerror(code);
    *ret_digest = w.sum;
    *ret_rows = w.rows;
    return NULL;
}
