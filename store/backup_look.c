#include "store/backup_look.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "store/check.h"
#include "store/crypto.h"
#include "store/image.h"
#include "store/store.h"
#include "store/value.h"

enum { CHUNK = 1 << 20 };

/* ---- bytes ---- */

bool look_write(int fd, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t n = write(fd, bytes, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            errno = n < 0 ? errno : ENOSPC;
            return false;
        }
        bytes += n;
        size -= (size_t)n;
    }
    return true;
}

/* Reads to the end. */
static bool digest_all(EVP_MD_CTX *context, int fd, int to)
{
    static char chunk[CHUNK]; /* as much as a disk likes to read at a time */
    for (off_t at = 0;;) {
        ssize_t n = pread(fd, chunk, sizeof(chunk), at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n == 0;
        if (crypto.EVP_DigestUpdate(context, chunk, (size_t)n) != 1) {
            errno = ENOMEM;
            return false;
        }
        if (to >= 0 && !look_write(to, chunk, (size_t)n))
            return false;
        at += n;
    }
}

bool look_digest(int fd, int to, char ret_hex[BACKUP_SHA256_SIZE])
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    char why[256];
    if (!crypto_load(CRYPTO_FILE, why, sizeof(why))) {
        errno = ELIBACC;
        return false;
    }
    EVP_MD_CTX *context = crypto.EVP_MD_CTX_new();
    bool good = context && crypto.EVP_DigestInit_ex(context, crypto.EVP_sha256(), NULL) == 1;
    if (!good)
        errno = ENOMEM;
    good = good && digest_all(context, fd, to) && crypto.EVP_DigestFinal_ex(context, digest, NULL) == 1;
    crypto.EVP_MD_CTX_free(context);
    for (unsigned i = 0; good && i < BACKUP_SHA256_SIZE / 2; i++)
        snprintf(ret_hex + 2 * i, 3, "%02x", digest[i]);
    return good;
}

/* ---- what it holds ---- */

struct findings {
    uint64_t count;
    char first[256];
};

static void tell(void *context, const char *finding)
{
    struct findings *findings = context;
    if (findings->count++ == 0)
        snprintf(findings->first, sizeof(findings->first), "%s", finding);
}

int look_map(const char *dir, unsigned flags, MDB_env **ret_env, MDB_txn **ret_txn)
{
    int code = mdb_env_create(ret_env);
    if (!code)
        code = mdb_env_set_maxdbs(*ret_env, SCHEMA_TABLES_MAX);
    if (!code)
        code = mdb_env_open(*ret_env, dir, flags | MDB_NOTLS | MDB_NOLOCK | MDB_NOSYNC, LOOK_FILE_MODE);
    return code ? code : mdb_txn_begin(*ret_env, NULL, flags, ret_txn);
}

enum error look_format(struct saying *s, const char *dir, MDB_txn *txn, struct meta_format *ret_format)
{
    MDB_dbi dbi;
    int code = mdb_dbi_open(txn, "meta", 0, &dbi);
    enum error e = code ? ERR_NOT_FOUND : meta_read_format(txn, dbi, ret_format);
    if (e == ERR_NOT_FOUND)
        return saying_refuse(s, ERR_FOREIGN, "'%s' holds an LMDB file that isn't a store of coppice", dir);
    return e ? saying_refuse(s, e, "'%s' holds a store that doesn't say which", dir) : OK;
}

static enum error look_at_references(struct saying *s, const struct look *look, MDB_env *env, MDB_txn *mdb)
{
    struct store store = {.schema = look->schema, .identity = look->format.identity};
    struct findings findings = {.count = 0};
    struct check_report report;
    struct txn txn = {.mdb = NULL};
    memcpy(store.secret, look->format.secret, sizeof(store.secret));
    store.environment.mdb = env;
    for (uint32_t i = 0; i < look->schema->tables_count; i++) {
        const char *name = look->schema->tables[i].name;
        if (mdb_dbi_open(mdb, name, 0, &store.environment.tables[i]) != 0)
            return saying_refuse(s, ERR_DAMAGED, "'%s' has no table '%s'", look->dir, name);
        store.environment.seeds[i] = value_seed(name);
    }
    txn_open(&txn, &store, mdb);
    enum error e = check_rows(&txn, look->schema, tell, &findings, &report);
    if (e)
        return saying_refuse(s, e, "'%s' can't be checked: %s", look->dir, error_name(e));
    if (report.findings)
        return saying_refuse(s, ERR_DAMAGED, "'%s' has %llu findings, the first: %s", look->dir,
                             (unsigned long long)report.findings, findings.first);
    return OK;
}

/* Rows of an older format are checked by the server that brings them
 * forward. */
enum error look_work(void *shared, char *ret_text, size_t text_size)
{
    struct look *look = shared;
    struct saying s = {.text = ret_text, .size = text_size};
    struct image_report image;
    char path[sizeof(look->dir) + sizeof(LOOK_DATA_FILE) + 1], why[256] = "";
    MDB_env *env;
    MDB_txn *txn;
    snprintf(path, sizeof(path), "%s/" LOOK_DATA_FILE, look->dir);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return saying_refuse_system(&s, path, "opened");
    enum error e = image_check(fd, 0, &image, why, sizeof(why));
    if (e)
        return saying_refuse(&s, e, "'%s' can't be believed: %s", path, why);
    int code = look_map(look->dir, MDB_RDONLY, &env, &txn);
    if (code)
        return saying_refuse(&s, txn_error_of(code), "'%s' can't be read: %s", path, mdb_strerror(code));
    e = look_format(&s, look->dir, txn, &look->format);
    if (e)
        return e;
    if (look->format.format > look->schema->format)
        return saying_refuse(&s, ERR_NEWER, "'%s' is of format %u, this program knows up to %u", look->dir,
                             (unsigned)look->format.format, (unsigned)look->schema->format);
    if (look->format.commit != mdb_txn_id(txn))
        return saying_refuse(&s, ERR_DAMAGED, "'%s' says that it is commit %llu, and is %llu", look->dir,
                             (unsigned long long)look->format.commit, (unsigned long long)mdb_txn_id(txn));
    look->rows = image.rows;
    return look->references_too && look->format.format == look->schema->format
               ? look_at_references(&s, look, env, txn)
               : OK;
}

void look_init(struct look *look, const char *dir, const struct schema *schema, bool references_too)
{
    memset(look, 0, sizeof(*look));
    snprintf(look->dir, sizeof(look->dir), "%s", dir);
    look->schema = schema;
    look->references_too = references_too;
}
