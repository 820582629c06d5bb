#define _GNU_SOURCE /* renameat2 */
#include "store/backup.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/check.h"
#include "store/crypto.h"
#include "store/directory.h"
#include "store/guest.h"
#include "store/image.h"
#include "store/value.h"

#define DATA_FILE     "data.mdb"
#define READERS_FILE  "lock.mdb"
#define LOCK_FILE     "coppice.lock"
#define MANIFEST_FILE "manifest.json"
#define PARTIAL       ".partial"
#define MAKING        "new"

enum { MODE_DIR = 0700, MODE_FILE = 0600, MANIFEST_SIZE_MAX = 4096, CHUNK = 1 << 20, HEX_SIZE = 65 };

/* Where a sentence goes. */
struct saying {
    char *text;
    size_t size;
};

__attribute__((format(printf, 3, 4))) static enum error refuse(struct saying *s, enum error e,
                                                               const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(s->text, s->size, format, list);
    va_end(list);
    return e;
}

static enum error refuse_system(struct saying *s, const char *path, const char *what)
{
    return directory_refuse(errno, path, what, s->text, s->size);
}

/* ---- the manifest ---- */

/* X(KIND, member, bytes of text) in their order, which is the only one that is read. */
#define MANIFEST_MEMBERS(X)   \
    X(TEXT, kind, 16)         \
    X(NUMBER, manifest, 0)    \
    X(NUMBER, format, 0)      \
    X(TEXT, identity, 37)     \
    X(NUMBER, commit, 0)      \
    X(NUMBER, bytes, 0)       \
    X(NUMBER, rows, 0)        \
    X(TEXT, sha256, HEX_SIZE) \
    X(TEXT, made_at, 32)      \
    X(TEXT, version, 32)

#define MANIFEST_KIND                "coppice backup"
#define MANIFEST_VERSION             1u

#define MEMBER_TEXT(member, bytes)   char member[bytes];
#define MEMBER_NUMBER(member, bytes) uint64_t member;
struct manifest {
#define X(KIND, member, bytes) MEMBER_##KIND(member, bytes)
    MANIFEST_MEMBERS(X)
#undef X
};

#define WRITE_TEXT(json, m, member)   JSON_MEMBER(json, #member, string, (m)->member)
#define WRITE_NUMBER(json, m, member) JSON_MEMBER(json, #member, uint, (m)->member)
static size_t manifest_write(const struct manifest *m, char *bytes, size_t room)
{
    struct json_sink sink;
    struct json json;
    json_sink_init(&sink, bytes, room, NULL, NULL);
    json_init(&json, &sink);
    json_object_begin(&json);
#define X(KIND, member, bytes) WRITE_##KIND(&json, m, member);
    MANIFEST_MEMBERS(X)
#undef X
    json_object_end(&json);
    return json_end_line(&json) == JSON_OK ? sink.length : 0;
}

static void skip_blanks(const char **at)
{
    *at += strspn(*at, " \t\r\n");
}

static bool take(const char **at, char c)
{
    skip_blanks(at);
    if (**at != c)
        return false;
    ++*at;
    return true;
}

static bool take_text(const char **at, char *ret_text, size_t size)
{
    if (!take(at, '"'))
        return false;
    size_t length = strcspn(*at, "\"\\");
    if ((*at)[length] != '"' || length >= size)
        return false;
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)(*at)[i] < 0x20 || (unsigned char)(*at)[i] > 0x7e)
            return false;
    memcpy(ret_text, *at, length);
    ret_text[length] = 0;
    *at += length + 1;
    return true;
}

static bool take_number(const char **at, uint64_t *ret_number)
{
    uint64_t number = 0;
    skip_blanks(at);
    if (**at < '0' || **at > '9' || (**at == '0' && (*at)[1] >= '0' && (*at)[1] <= '9'))
        return false;
    for (; **at >= '0' && **at <= '9'; ++*at)
        if (__builtin_mul_overflow(number, 10u, &number) ||
            __builtin_add_overflow(number, (uint64_t)(**at - '0'), &number))
            return false;
    *ret_number = number;
    return true;
}

static bool take_name(const char **at, const char *name, bool first)
{
    char found[16];
    return (first || take(at, ',')) && take_text(at, found, sizeof(found)) && strcmp(found, name) == 0 &&
           take(at, ':');
}

#define READ_TEXT(at, m, member)   take_text(at, (m)->member, sizeof((m)->member))
#define READ_NUMBER(at, m, member) take_number(at, &(m)->member)
static bool manifest_parse(const char *at, struct manifest *m)
{
    bool first = true;
    if (!take(&at, '{'))
        return false;
#define X(KIND, member, bytes)                                           \
    if (!take_name(&at, #member, first) || !READ_##KIND(&at, m, member)) \
        return false;                                                    \
    first = false;
    MANIFEST_MEMBERS(X)
#undef X
    if (!take(&at, '}'))
        return false;
    skip_blanks(&at);
    return *at == 0;
}

static bool manifest_sound(const struct manifest *m)
{
    struct uuid identity;
    return strcmp(m->kind, MANIFEST_KIND) == 0 && uuid_parse(m->identity, strlen(m->identity), &identity) &&
           strlen(m->sha256) == HEX_SIZE - 1 && strspn(m->sha256, "0123456789abcdef") == HEX_SIZE - 1 &&
           m->commit > 0 && m->bytes > 0;
}

static enum error manifest_read(struct saying *s, const char *dir, int dir_fd, struct manifest *ret_manifest)
{
    char bytes[MANIFEST_SIZE_MAX + 1];
    int fd = openat(dir_fd, MANIFEST_FILE, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return refuse(s, ERR_MISSING,
                      "'%s' holds no " MANIFEST_FILE ": it is not a backup, or not a whole one", dir);
    if (fd < 0)
        return refuse_system(s, dir, "verified: " MANIFEST_FILE);
    ssize_t size = pread(fd, bytes, sizeof(bytes), 0);
    close(fd);
    if (size < 0)
        return refuse_system(s, dir, "verified: " MANIFEST_FILE);
    bytes[size < (ssize_t)sizeof(bytes) ? size : 0] = 0;
    memset(ret_manifest, 0, sizeof(*ret_manifest));
    if (strlen(bytes) != (size_t)size || !manifest_parse(bytes, ret_manifest) ||
        !manifest_sound(ret_manifest))
        return refuse(s, ERR_DAMAGED, "'%s' holds a " MANIFEST_FILE " that no backup has", dir);
    if (ret_manifest->manifest > MANIFEST_VERSION)
        return refuse(s, ERR_NEWER, "'%s' is a backup that a newer program made (%s)", dir,
                      ret_manifest->version);
    return OK;
}

/* ---- bytes ---- */

static bool write_all(int fd, const char *bytes, size_t size)
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

/* Reads to the end; to: where it is written as well, or -1. */
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
        if (to >= 0 && !write_all(to, chunk, (size_t)n))
            return false;
        at += n;
    }
}

static bool digest_file(int fd, int to, char ret_hex[HEX_SIZE])
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
    for (unsigned i = 0; good && i < HEX_SIZE / 2; i++)
        snprintf(ret_hex + 2 * i, 3, "%02x", digest[i]);
    return good;
}

/* ---- looking at a copy: nobody else has it, so LMDB's lock file isn't needed, and isn't written ---- */

struct look {
    char dir[DIRECTORY_PATH_MAX + sizeof(PARTIAL)]; /* in */
    const struct schema *schema;
    bool references_too;       /* row by row; else only what each page and value says of itself */
    struct meta_format format; /* out */
    uint64_t rows;
};

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

/* flags: MDB_RDONLY, or 0 to write; what was written is synced by the caller. */
static int map_copy(const char *dir, unsigned flags, MDB_env **ret_env, MDB_txn **ret_txn)
{
    int code = mdb_env_create(ret_env);
    if (!code)
        code = mdb_env_set_maxdbs(*ret_env, SCHEMA_TABLES_MAX);
    if (!code)
        code = mdb_env_open(*ret_env, dir, flags | MDB_NOTLS | MDB_NOLOCK | MDB_NOSYNC, MODE_FILE);
    return code ? code : mdb_txn_begin(*ret_env, NULL, flags, ret_txn);
}

static enum error read_format(struct saying *s, const char *dir, MDB_txn *txn, struct meta_format *ret_format)
{
    MDB_dbi dbi;
    int code = mdb_dbi_open(txn, "meta", 0, &dbi);
    enum error e = code ? ERR_NOT_FOUND : meta_read_format(txn, dbi, ret_format);
    if (e == ERR_NOT_FOUND)
        return refuse(s, ERR_FOREIGN, "'%s' holds an LMDB file that isn't a store of coppice", dir);
    return e ? refuse(s, e, "'%s' holds a store that doesn't say which", dir) : OK;
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
            return refuse(s, ERR_DAMAGED, "'%s' has no table '%s'", look->dir, name);
        store.environment.seeds[i] = value_seed(name);
    }
    txn_open(&txn, &store, mdb);
    enum error e = check_rows(&txn, look->schema, tell, &findings, &report);
    if (e)
        return refuse(s, e, "'%s' can't be checked: %s", look->dir, error_name(e));
    if (report.findings)
        return refuse(s, ERR_DAMAGED, "'%s' has %llu findings, the first: %s", look->dir,
                      (unsigned long long)report.findings, findings.first);
    return OK;
}

/* In a child, whose end releases everything. Rows of an older format are checked by the server that brings them
 * forward. */
static enum error look_work(void *shared, char *ret_text, size_t text_size)
{
    struct look *look = shared;
    struct saying s = {.text = ret_text, .size = text_size};
    struct image_report image;
    char path[sizeof(look->dir) + sizeof(DATA_FILE) + 1], why[256] = "";
    MDB_env *env;
    MDB_txn *txn;
    snprintf(path, sizeof(path), "%s/" DATA_FILE, look->dir);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return refuse_system(&s, path, "opened");
    enum error e = image_check(fd, 0, &image, why, sizeof(why));
    if (e)
        return refuse(&s, e, "'%s' can't be believed: %s", path, why);
    int code = map_copy(look->dir, MDB_RDONLY, &env, &txn);
    if (code)
        return refuse(&s, txn_error_of(code), "'%s' can't be read: %s", path, mdb_strerror(code));
    e = read_format(&s, look->dir, txn, &look->format);
    if (e)
        return e;
    if (look->format.format > look->schema->format)
        return refuse(&s, ERR_NEWER, "'%s' is of format %u, this program knows up to %u", look->dir,
                      (unsigned)look->format.format, (unsigned)look->schema->format);
    if (look->format.commit != mdb_txn_id(txn))
        return refuse(&s, ERR_DAMAGED, "'%s' says that it is commit %llu, and is %llu", look->dir,
                      (unsigned long long)look->format.commit, (unsigned long long)mdb_txn_id(txn));
    look->rows = image.rows;
    return look->references_too && look->format.format == look->schema->format
               ? look_at_references(&s, look, env, txn)
               : OK;
}

#define LOOK_WHAT "the check of the copy"

static void look_init(struct look *look, const char *dir, const struct schema *schema, bool references_too)
{
    memset(look, 0, sizeof(*look));
    snprintf(look->dir, sizeof(look->dir), "%s", dir);
    look->schema = schema;
    look->references_too = references_too;
}

/* ---- copying ---- */

struct copy {
    char dir[DIRECTORY_PATH_MAX + 1]; /* in */
    char partial[DIRECTORY_PATH_MAX + sizeof(PARTIAL)];
    const struct schema *schema;
};

/* A copy is never larger than what it is copied from. LMDB, led in circles by a damaged file, would fill the disk. */
static void bound_file_size(uint64_t source)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) < 0)
        return;
    rlim_t most = (rlim_t)source * 2 + (64u << 20); /* twice: the source may grow meanwhile */
    if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur > most)
        limit.rlim_cur = most;
    (void)setrlimit(RLIMIT_FSIZE, &limit);
    (void)signal(SIGXFSZ, SIG_IGN);
}

/* LMDB numbers a compact copy's only commit 1. Ours says in a row which commit it is, and a store that was restored
 * goes on counting there. So the copy is numbered: in the meta page that the number belongs into, and, as if it were
 * the commit before, in the other; that one would else be of an empty store. It gets a number two before the right one,
 * and LMDB itself makes the last two steps, by writing the row as it is: so both meta pages are ones that LMDB could
 * have left.
 *
 *     page number:8 @0   last commit:8 @144   both in memory order
 */
enum { META_NUMBER_AT = 0, META_COMMIT_AT = 144, META_PAGE_SIZE_AT = 40, META_READ = 152 };

static bool number_commit(int fd, uint64_t commit)
{
    char page[META_READ];
    uint32_t page_size;
    if (pread(fd, page, sizeof(page), 0) != (ssize_t)sizeof(page))
        return false;
    memcpy(&page_size, page + META_PAGE_SIZE_AT, sizeof(page_size));
    if (pread(fd, page, sizeof(page), page_size) != (ssize_t)sizeof(page))
        return false;
    for (uint64_t number = commit - 1; number <= commit; number++) {
        uint64_t slot = number & 1;
        memcpy(page + META_NUMBER_AT, &slot, sizeof(slot));
        memcpy(page + META_COMMIT_AT, &number, sizeof(number));
        if (pwrite(fd, page, sizeof(page), (off_t)(slot * page_size)) != (ssize_t)sizeof(page))
            return false;
    }
    return true;
}

static int copy_once(MDB_env *env, int fd)
{
    if (ftruncate(fd, 0) < 0 || lseek(fd, 0, SEEK_SET) < 0)
        return errno;
    return mdb_env_copyfd2(env, fd, MDB_CP_COMPACT);
}

/* Past the page cache: it takes half the work, and leaves no heap of dirty pages that the server's next sync waits
 * behind. LMDB writes whole pages from aligned memory; a file system or a disk that wants it otherwise says EINVAL. */
static int copy_direct(MDB_env *env, int fd)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_DIRECT) < 0)
        return copy_once(env, fd);
    int code = copy_once(env, fd);
    if (fcntl(fd, F_SETFL, flags) < 0)
        return errno;
    return code == EINVAL ? copy_once(env, fd) : code;
}

static int copy_state(struct guest *guest, int fd)
{
    int code = MDB_MAP_RESIZED;
    for (unsigned i = 0; i < GUEST_TRIES && code == MDB_MAP_RESIZED; i++) {
        if (i > 0 && guest_renew(guest) != OK)
            break;
        code = copy_direct(guest->store.environment.mdb, fd);
    }
    return code;
}

static enum error read_copy(struct saying *s, const char *dir, struct meta_format *ret_format)
{
    MDB_env *env;
    MDB_txn *txn;
    int code = map_copy(dir, MDB_RDONLY, &env, &txn);
    if (code)
        return refuse(s, txn_error_of(code), "the copy in '%s' can't be read: %s", dir, mdb_strerror(code));
    enum error e = read_format(s, dir, txn, ret_format);
    mdb_txn_abort(txn);
    mdb_env_close(env);
    return e;
}

static int step(const char *dir, uint64_t commit)
{
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi dbi;
    int code = map_copy(dir, 0, &env, &txn);
    if (!code)
        code = mdb_txn_id(txn) == commit ? mdb_dbi_open(txn, "meta", 0, &dbi) : MDB_CORRUPTED;
    if (!code)
        code = meta_write_stamp(txn, dbi);
    if (!code)
        code = mdb_txn_commit(txn);
    if (!code)
        mdb_env_close(env); /* else the child's end closes it */
    return code;
}

static enum error number_copy(struct saying *s, const struct copy *copy, int fd)
{
    struct meta_format format = {.commit = 0};
    enum error e = read_copy(s, copy->partial, &format);
    if (e)
        return e;
    if (format.commit == 0)
        return refuse(s, ERR_DAMAGED, "'%s' says that it is at commit 0", copy->dir);
    if (format.commit > 3 && !number_commit(fd, format.commit - 2))
        return refuse_system(s, copy->partial, "written");
    int code = format.commit > 2 ? step(copy->partial, format.commit - 1) : 0;
    if (!code && format.commit > 1)
        code = step(copy->partial, format.commit);
    if (code)
        return refuse(s, txn_error_of(code), "the copy in '%s' can't be completed: %s", copy->partial,
                      mdb_strerror(code));
    return fsync(fd) < 0 ? refuse_system(s, copy->partial, "synced") : OK;
}

/* In a child. */
static enum error copy_work(void *shared, char *ret_text, size_t text_size)
{
    struct copy *copy = shared;
    struct saying s = {.text = ret_text, .size = text_size};
    struct guest guest;
    struct stat stat;
    char path[sizeof(copy->partial) + sizeof(DATA_FILE) + 1];
    enum error e = guest_open(copy->dir, copy->schema, &guest, ret_text, text_size);
    if (e)
        return e;
    snprintf(path, sizeof(path), "%s/" DATA_FILE, copy->partial);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, MODE_FILE);
    if (fd < 0 || fstat(guest.store.environment.data_fd, &stat) < 0)
        return refuse_system(&s, path, "made");
    bound_file_size((uint64_t)stat.st_size);
    int code = copy_state(&guest, fd);
    guest_close(&guest);
    if (code == MDB_INCOMPATIBLE)
        return refuse(
            &s, ERR_DAMAGED,
            "'%s' has pages that are neither used nor free, and LMDB copies no such store; stop the "
            "server and copy its files",
            copy->dir);
    if (code ==
        EFAULT) /* what a page refers to lies behind the end of the file: nothing that could be written */
        return refuse(&s, ERR_DAMAGED, "'%s' refers to pages that its file doesn't have", copy->dir);
    if (code)
        return refuse(&s, txn_error_of(code), "'%s' can't be copied to '%s': %s", copy->dir, copy->partial,
                      code < 0 ? mdb_strerror(code) : strerror(code));
    return number_copy(&s, copy, fd);
}

/* ---- DIR.partial ---- */

struct partial {
    struct saying *s;
    char to[DIRECTORY_PATH_MAX + 1];
    char path[DIRECTORY_PATH_MAX + sizeof(PARTIAL)];
    int fd; /* of the directory, locked: nobody else makes a backup there */
};

static bool absent(int result)
{
    return result == 0 || errno == ENOENT;
}

static bool partial_clear(const struct partial *p)
{
    return absent(unlinkat(p->fd, DATA_FILE, 0)) && absent(unlinkat(p->fd, MANIFEST_FILE, 0));
}

static void partial_drop(const struct partial *p)
{
    if (partial_clear(p))
        (void)rmdir(p->path);
    close(p->fd);
}

/* It is ours when we hold its lock and it still has its name. */
static bool partial_ours(const struct partial *p)
{
    struct stat held, named;
    return fstat(p->fd, &held) == 0 && lstat(p->path, &named) == 0 && held.st_ino == named.st_ino &&
           held.st_dev == named.st_dev;
}

static enum error partial_make(struct partial *p)
{
    struct stat stat;
    if (lstat(p->to, &stat) == 0)
        return refuse(p->s, ERR_EXISTS, "'%s' is there already; a backup goes into a new directory", p->to);
    if (errno != ENOENT)
        return refuse_system(p->s, p->to, "made");
    if (mkdir(p->path, MODE_DIR) < 0 && errno != EEXIST)
        return refuse_system(p->s, p->path, "made");
    p->fd = open(p->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (p->fd < 0)
        return refuse_system(p->s, p->path, "opened");
    bool missing;
    enum error e = OK;
    bool locked = flock(p->fd, LOCK_EX | LOCK_NB) == 0;
    if (!locked && errno != EWOULDBLOCK)
        e = refuse_system(p->s, p->path, "locked");
    else if (!locked || !partial_ours(p))
        e = refuse(p->s, ERR_IN_USE, "'%s' is being written by another backup", p->path);
    else if (!partial_clear(p))
        e = refuse_system(p->s, p->path, "emptied");
    else
        e = directory_vacant(p->path, &missing, p->s->text, p->s->size);
    if (e)
        close(p->fd);
    return e;
}

static enum error write_manifest(const struct partial *p, const struct manifest *manifest)
{
    char bytes[MANIFEST_SIZE_MAX];
    size_t size = manifest_write(manifest, bytes, sizeof(bytes));
    int fd = openat(p->fd, MANIFEST_FILE, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, MODE_FILE);
    ASSERT(size > 0);
    if (fd < 0)
        return refuse_system(p->s, p->path, "written");
    bool good = write_all(fd, bytes, size) && fsync(fd) == 0;
    enum error e = good ? OK : refuse_system(p->s, p->path, "written");
    close(fd);
    return e;
}

/* ---- beside a server ---- */

/* The commits of the store that is copied. */
struct pulse {
    int fd; /* -1: it can't be seen */
    uint64_t commit;
};

static bool commits_now(int fd, uint64_t ret_commits[2])
{
    uint32_t page_size = 0;
    return pread(fd, &page_size, sizeof(page_size), META_PAGE_SIZE_AT) == (ssize_t)sizeof(page_size) &&
           pread(fd, &ret_commits[0], sizeof(uint64_t), META_COMMIT_AT) == (ssize_t)sizeof(uint64_t) &&
           pread(fd, &ret_commits[1], sizeof(uint64_t), (off_t)page_size + META_COMMIT_AT) ==
               (ssize_t)sizeof(uint64_t);
}

static bool has_committed(void *arg)
{
    struct pulse *pulse = arg;
    uint64_t commits[2];
    if (pulse->fd < 0 || !commits_now(pulse->fd, commits))
        return false;
    uint64_t newest = commits[0] > commits[1] ? commits[0] : commits[1];
    bool moved = newest != pulse->commit;
    pulse->commit = newest;
    return moved;
}

static void pulse_open(struct pulse *pulse, const char *dir)
{
    char path[DIRECTORY_PATH_MAX + sizeof(DATA_FILE) + 1];
    snprintf(path, sizeof(path), "%s/" DATA_FILE, dir);
    *pulse = (struct pulse){.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
}

static void pulse_close(struct pulse *pulse)
{
    if (pulse->fd >= 0)
        close(pulse->fd);
}

/* ---- reading it back ---- */

struct reading {
    char path[DIRECTORY_PATH_MAX + sizeof(PARTIAL)]; /* in */
    int dir_fd;
    uint64_t bytes; /* out */
    char sha256[HEX_SIZE];
};

/* In a child, for its priority. */
static enum error digest_work(void *shared, char *ret_text, size_t text_size)
{
    struct reading *reading = shared;
    struct saying s = {.text = ret_text, .size = text_size};
    struct stat stat;
    guest_last();
    int fd = openat(reading->dir_fd, DATA_FILE, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &stat) < 0 || !digest_file(fd, -1, reading->sha256))
        return refuse_system(&s, reading->path, "read back");
    reading->bytes = (uint64_t)stat.st_size;
    return OK;
}

/* So that what is read comes from the disk, and stays in nobody's way afterwards. */
static void forget_copy(const struct partial *p)
{
    int fd = openat(p->fd, DATA_FILE, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
}

/* Whoever restores doesn't want to wait; whoever makes a backup may. */
static enum error look_last(void *shared, char *ret_text, size_t text_size)
{
    guest_last();
    return look_work(shared, ret_text, text_size);
}

/* Both at a time: what one has read, the other finds in memory. */
static enum error read_back(const struct partial *p, struct look *look, struct reading *reading,
                            struct pulse *pulse)
{
    struct guest_child children[2];
    char *text = p->s->text;
    size_t size = p->s->size;
    forget_copy(p);
    enum error e = guest_start(digest_work, "the digest of the copy", reading, sizeof(*reading), &children[0],
                               text, size);
    if (e)
        return e;
    e = guest_start(look_last, LOOK_WHAT, look, sizeof(*look), &children[1], text, size);
    guest_pace(children, e ? 1 : 2, has_committed, pulse);
    if (!e)
        e = guest_await(&children[1], text, size);
    char digest_text[512] = "";
    enum error digest_error = guest_await(&children[0], digest_text, sizeof(digest_text));
    forget_copy(p);
    return e ? e : digest_error ? refuse(p->s, digest_error, "%s", digest_text) : OK;
}

/* ---- making one ---- */

static enum error partial_publish(const struct partial *p)
{
    if (fsync(p->fd) < 0)
        return refuse_system(p->s, p->path, "synced");
    int code = renameat2(AT_FDCWD, p->path, AT_FDCWD, p->to, RENAME_NOREPLACE);
    if (code < 0 && (errno == EINVAL || errno == ENOSYS)) /* a file system that doesn't know how */
        code = rename(p->path, p->to);
    if (code < 0 && errno == EEXIST)
        return refuse(p->s, ERR_EXISTS, "'%s' was made by somebody else meanwhile", p->to);
    if (code < 0)
        return refuse_system(p->s, p->to, "made");
    if (directory_sync_parent(p->to))
        return OK;
    enum error e = refuse_system(p->s, p->to, "kept (syncing its parent)");
    (void)rename(p->to, p->path); /* a failure leaves no DIR */
    return e;
}

static enum error make_copy(const struct partial *p, struct copy *copy, struct pulse *pulse)
{
    struct guest_child child;
    enum error e = guest_start(copy_work, "the copy", copy, sizeof(*copy), &child, p->s->text, p->s->size);
    if (e)
        return e;
    guest_pace(&child, 1, has_committed, pulse);
    return guest_await(&child, p->s->text, p->s->size);
}

static enum error fill(const struct partial *p, const char *dir, const struct schema *schema,
                       uint64_t wall_ns, struct manifest *manifest)
{
    struct copy copy = {.schema = schema};
    struct reading reading = {.dir_fd = p->fd};
    struct look look;
    struct pulse pulse;
    char made_at[TIME_TEXT_SIZE];
    enum error e = directory_path(dir, copy.dir, p->s->text, p->s->size);
    if (e)
        return e;
    snprintf(copy.partial, sizeof(copy.partial), "%s", p->path);
    pulse_open(&pulse, copy.dir);
    e = make_copy(p, &copy, &pulse);
    look_init(&look, p->path, schema, false);
    snprintf(reading.path, sizeof(reading.path), "%s", p->path);
    if (!e)
        e = read_back(p, &look, &reading, &pulse);
    pulse_close(&pulse);
    if (e)
        return e;
    snprintf(manifest->kind, sizeof(manifest->kind), MANIFEST_KIND);
    snprintf(manifest->version, sizeof(manifest->version), COPPICE_VERSION);
    time_format(wall_ns / NS_PER_US, made_at);
    snprintf(manifest->made_at, sizeof(manifest->made_at), "%s", made_at);
    uuid_format(&look.format.identity, manifest->identity);
    manifest->manifest = MANIFEST_VERSION;
    manifest->format = look.format.format;
    manifest->commit = look.format.commit;
    manifest->rows = look.rows;
    manifest->bytes = reading.bytes;
    memcpy(manifest->sha256, reading.sha256, sizeof(manifest->sha256));
    e = write_manifest(p, manifest);
    return e ? e : partial_publish(p);
}

static struct backup_report report_of(const struct manifest *manifest)
{
    struct backup_report report = {
        .bytes = manifest->bytes, .commit = manifest->commit, .rows = manifest->rows};
    memcpy(report.sha256, manifest->sha256, sizeof(report.sha256));
    return report;
}

enum error backup_make(const char *dir, const char *to, const struct schema *schema, uint64_t wall_ns,
                       struct backup_report *ret_report, char *ret_text, size_t text_size)
{
    struct saying s = {.text = ret_text, .size = text_size};
    struct partial p = {.s = &s};
    struct manifest manifest = {.bytes = 0};
    enum error e = directory_path(to, p.to, ret_text, text_size);
    if (e)
        return e;
    snprintf(p.path, sizeof(p.path), "%s" PARTIAL, p.to);
    e = partial_make(&p);
    if (e)
        return e;
    e = fill(&p, dir, schema, wall_ns, &manifest);
    if (e) {
        partial_drop(&p);
        return e;
    }
    close(p.fd);
    *ret_report = report_of(&manifest);
    return OK;
}

/* ---- verifying ---- */

static enum error verify_bytes(struct saying *s, const char *dir, int dir_fd, const struct manifest *manifest)
{
    struct stat stat;
    char hex[HEX_SIZE];
    int fd = openat(dir_fd, DATA_FILE, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return refuse(s, ERR_DAMAGED, "'%s' has lost its " DATA_FILE, dir);
    enum error e = OK;
    if (fd < 0 || fstat(fd, &stat) < 0)
        e = refuse_system(s, dir, "read");
    else if (!S_ISREG(stat.st_mode) || (uint64_t)stat.st_size != manifest->bytes)
        e = refuse(s, ERR_DAMAGED, "'%s' is damaged: " DATA_FILE " has %lld bytes, the manifest says %llu",
                   dir, (long long)stat.st_size, (unsigned long long)manifest->bytes);
    else if (!digest_file(fd, -1, hex))
        e = refuse_system(s, dir, "read");
    else if (strcmp(hex, manifest->sha256) != 0)
        e = refuse(s, ERR_DAMAGED,
                   "'%s' is damaged: the SHA-256 of " DATA_FILE " is %s, the manifest says %s", dir, hex,
                   manifest->sha256);
    if (fd >= 0)
        close(fd);
    return e;
}

static enum error verify_state(struct saying *s, const char *dir, const struct schema *schema,
                               const struct manifest *manifest)
{
    struct look look;
    char identity[UUID_TEXT_SIZE];
    look_init(&look, dir, schema, true);
    enum error e = guest_apart(look_work, LOOK_WHAT, &look, sizeof(look), s->text, s->size);
    if (e)
        return e;
    uuid_format(&look.format.identity, identity);
    if (strcmp(identity, manifest->identity) != 0 || look.format.commit != manifest->commit ||
        look.format.format != manifest->format || look.rows != manifest->rows)
        return refuse(s, ERR_DAMAGED,
                      "'%s' is damaged: it holds commit %llu of store %s with %llu rows, the manifest says "
                      "otherwise",
                      dir, (unsigned long long)look.format.commit, identity, (unsigned long long)look.rows);
    return OK;
}

static enum error verify(struct saying *s, const char *dir, int dir_fd, const struct schema *schema,
                         struct manifest *ret_manifest)
{
    enum error e = manifest_read(s, dir, dir_fd, ret_manifest);
    if (!e && ret_manifest->format > schema->format)
        e = refuse(s, ERR_NEWER, "'%s' is of format %llu, this program knows up to %u", dir,
                   (unsigned long long)ret_manifest->format, (unsigned)schema->format);
    if (!e)
        e = verify_bytes(s, dir, dir_fd, ret_manifest);
    return e ? e : verify_state(s, dir, schema, ret_manifest);
}

static enum error open_backup(struct saying *s, const char *dir, char path[DIRECTORY_PATH_MAX + 1],
                              int *ret_fd)
{
    enum error e = directory_path(dir, path, s->text, s->size);
    if (e)
        return e;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return refuse(s, ERR_MISSING, "'%s' doesn't exist; there is no backup", path);
    if (fd < 0)
        return refuse_system(s, path, "opened");
    *ret_fd = fd;
    return OK;
}

enum error backup_verify(const char *dir, const struct schema *schema, struct backup_report *ret_report,
                         char *ret_text, size_t text_size)
{
    struct saying s = {.text = ret_text, .size = text_size};
    struct manifest manifest = {.bytes = 0};
    char path[DIRECTORY_PATH_MAX + 1];
    int fd = -1;
    enum error e = open_backup(&s, dir, path, &fd);
    if (e)
        return e;
    e = verify(&s, path, fd, schema, &manifest);
    close(fd);
    if (!e)
        *ret_report = report_of(&manifest);
    return e;
}

/* ---- bringing back ---- */

struct restoring {
    struct saying *s;
    char into[DIRECTORY_PATH_MAX + 1];
    bool made, making; /* the directory; its "new" */
    int fd, lock_fd;   /* -1: the lock isn't ours */
};

/* The lock of a store that isn't there yet keeps a server from making one meanwhile. */
static enum error restoring_begin(struct restoring *r)
{
    bool missing;
    enum error e = directory_vacant(r->into, &missing, r->s->text, r->s->size);
    if (e)
        return e;
    if (missing && mkdir(r->into, MODE_DIR) < 0)
        return refuse_system(r->s, r->into, "made");
    r->made = missing;
    r->fd = open(r->into, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (r->fd < 0)
        return refuse_system(r->s, r->into, "opened");
    r->lock_fd = openat(r->fd, LOCK_FILE, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, MODE_FILE);
    if (r->lock_fd < 0 && errno != EEXIST)
        return refuse_system(r->s, r->into, "written");
    if (r->lock_fd >= 0 && flock(r->lock_fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK)
            return refuse_system(r->s, r->into, "locked");
        close(r->lock_fd);
        r->lock_fd = -1;
    }
    if (r->lock_fd < 0)
        return refuse(r->s, ERR_IN_USE, "'%s' is in use: somebody else makes a store there", r->into);
    if (mkdirat(r->fd, MAKING, MODE_DIR) < 0)
        return refuse_system(r->s, r->into, "written");
    r->making = true;
    return OK;
}

/* As it was. */
static void restoring_undo(struct restoring *r)
{
    if (r->lock_fd >= 0)
        (void)!ftruncate(r->lock_fd, 0); /* it names no store any more, whatever becomes of the rest */
    if (r->making) {
        (void)unlinkat(r->fd, MAKING "/" DATA_FILE, 0);
        (void)unlinkat(r->fd, MAKING, AT_REMOVEDIR);
        (void)unlinkat(r->fd, DATA_FILE, 0);
    }
    if (r->lock_fd >= 0)
        (void)unlinkat(r->fd, LOCK_FILE, 0);
    if (r->made)
        (void)rmdir(r->into);
}

/* The bytes that are written are the bytes that were verified: they are hashed on their way. */
static enum error restoring_copy(struct restoring *r, int from_dir, const struct manifest *manifest)
{
    char hex[HEX_SIZE] = "";
    int from = openat(from_dir, DATA_FILE, O_RDONLY | O_CLOEXEC);
    int to = openat(r->fd, MAKING "/" DATA_FILE, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, MODE_FILE);
    enum error e = OK;
    if (from < 0 || to < 0 || !digest_file(from, to, hex) || fsync(to) < 0)
        e = refuse_system(r->s, r->into, "written");
    else if (strcmp(hex, manifest->sha256) != 0)
        e = refuse(r->s, ERR_DAMAGED, "the backup was changed while it was brought back");
    if (from >= 0)
        close(from);
    if (to >= 0)
        close(to);
    return e;
}

/* The lock file says whose store it is, as the first start would make it say: from then on a data file that is gone is
 * damage. So the store itself is kept before. */
static bool restoring_name(struct restoring *r, const char *identity)
{
    int size = dprintf(r->lock_fd, ENVIRONMENT_LOCK_LINE "%s\n", identity);
    return size == (int)(strlen(ENVIRONMENT_LOCK_LINE) + strlen(identity) + 1) && fsync(r->lock_fd) == 0;
}

static enum error restoring_publish(struct restoring *r, const struct manifest *manifest)
{
    if (renameat(r->fd, MAKING "/" DATA_FILE, r->fd, DATA_FILE) < 0 ||
        unlinkat(r->fd, MAKING, AT_REMOVEDIR) < 0 || fsync(r->fd) < 0 ||
        (r->made && !directory_sync_parent(r->into)) || !restoring_name(r, manifest->identity))
        return refuse_system(r->s, r->into, "kept");
    return OK;
}

static enum error bring_back(struct restoring *r, const char *dir, int dir_fd, const struct schema *schema,
                             struct manifest *ret_manifest)
{
    bool missing;
    enum error e = directory_vacant(r->into, &missing, r->s->text, r->s->size);
    if (!e)
        e = verify(r->s, dir, dir_fd, schema, ret_manifest);
    if (e)
        return e;
    e = restoring_begin(r);
    if (!e)
        e = restoring_copy(r, dir_fd, ret_manifest);
    if (!e)
        e = restoring_publish(r, ret_manifest);
    if (e)
        restoring_undo(r);
    if (r->lock_fd >= 0)
        close(r->lock_fd);
    if (r->fd >= 0)
        close(r->fd);
    return e;
}

enum error backup_restore(const char *dir, const char *into, const struct schema *schema,
                          struct backup_report *ret_report, char *ret_text, size_t text_size)
{
    struct saying s = {.text = ret_text, .size = text_size};
    struct restoring r = {.s = &s, .fd = -1, .lock_fd = -1};
    struct manifest manifest = {.bytes = 0};
    char path[DIRECTORY_PATH_MAX + 1];
    int fd = -1;
    enum error e = directory_path(into, r.into, ret_text, text_size);
    if (!e)
        e = open_backup(&s, dir, path, &fd);
    if (e)
        return e;
    e = bring_back(&r, path, fd, schema, &manifest);
    close(fd);
    if (!e)
        *ret_report = report_of(&manifest);
    return e;
}
