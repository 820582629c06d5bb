#include "store/environment.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/assert.h"
#include "runtime/env.h"
#include "store/image.h"
#include "store/leaves.h"
#include "store/meta.h"
#include "store/txn.h"

enum {
    MODE_DIR = 0700,
    MODE_FILE = 0600,
    NAME_MAX_BYTES = 255,
    LOCK_TRIES = 2000, /* of half a ms each: 1 s of guests one after the other */
    META_SIZE = 4096,  /* of which LMDB uses the first 152 bytes: one sector */
    READER_SIZE = 64,  /* of LMDB's table */
    READERS_HEAD = 256,
    OWN_READERS = 1,        /* store/fallow.h */
    ZEROS_SIZE = 128 << 10, /* written ahead of slow growth at a time */
    WHOLE_MAX = 64 << 20,   /* looked at wholly by a start: about 30 ms */
};

#define LMDB_FLAGS     MDB_NOTLS
#define LMDB_NEVER     (MDB_WRITEMAP | MDB_MAPASYNC | MDB_NOSYNC | MDB_NOMETASYNC | MDB_NOLOCK)

#define LOCK_FILE      "coppice.lock"
#define DATA_FILE      "data.mdb"
#define READERS_FILE   "lock.mdb"
#define MAKING         "new"
#define LOCK_LINE_SIZE (sizeof(ENVIRONMENT_LOCK_LINE) - 1 + UUID_TEXT_SIZE)    /* with its newline */
#define LOCK_LINE_MAX  (sizeof(ENVIRONMENT_RESTORE_LINE) - 1 + UUID_TEXT_SIZE) /* the longer one */

int environment_exit_status(enum error e)
{
    switch (e) {
#define X(error, status) \
    case error:          \
        return status;
        ENVIRONMENT_ERRORS(X)
#undef X
    default:
        return 70; /* EX_SOFTWARE */
    }
}

/* ---- opening: where it stands, and its sentence ---- */

struct opening {
    struct environment *environment;
    const struct schema *schema;
    char *text;
    size_t text_size;
    bool made_dir, made_lock, made_readers; /* to be taken away again when it is refused in the end */
    bool later;                             /* the file has a commit that only lacks its number */
    bool incomplete;                        /* it has a table less than this program's stores */
};

#define DIR_OF(o) ((o)->environment->dir)

__attribute__((format(printf, 3, 4))) static enum error refuse(struct opening *o, enum error e,
                                                               const char *format, ...)
{
    va_list list;
    int used = snprintf(o->text, o->text_size, "'%s' ", DIR_OF(o));
    if ((size_t)used >= o->text_size)
        return e;
    va_start(list, format);
    vsnprintf(o->text + used, o->text_size - (size_t)used, format, list);
    va_end(list);
    return e;
}

/* A guest wanted to read, and somebody may have made the disk one that is only read. */
static enum error refuse_access(struct opening *o, int code, const char *what)
{
    if (code == EROFS)
        return refuse(o, ERR_NOT_WRITABLE,
                      "is on a disk that can't be written (%s: %s); mount it for writing, or keep the store "
                      "elsewhere",
                      what, strerror(code));
    if (o->environment->options.guest)
        return refuse(o, ERR_NOT_WRITABLE,
                      "can't be read by this user (%s: %s); ask as the server's user, whose it is", what,
                      strerror(code));
    return refuse(o, ERR_NOT_WRITABLE, "can't be written (%s: %s); it must belong to the server's user", what,
                  strerror(code));
}

/* What the system refused, as the error that names it. */
static enum error refuse_system(struct opening *o, int code, const char *what)
{
    switch (txn_error_of(code)) {
    case ERR_NOT_WRITABLE:
        return refuse_access(o, code, what);
    case ERR_NO_SPACE:
        return refuse(o, ERR_NO_SPACE, "is on a disk without room (%s: %s)", what, strerror(code));
    case ERR_MEMORY:
        return refuse(o, ERR_MEMORY, "can't be opened: %s: %s", what, mdb_strerror(code));
    case ERR_DAMAGED:
        return refuse(o, ERR_DAMAGED,
                      "holds a damaged store (%s: %s); 'coppice check' says more, a backup helps", what,
                      mdb_strerror(code));
    default:
        return refuse(o, code == EIO ? ERR_IO : ERR_SYSTEM, "can't be used: %s: %s", what,
                      mdb_strerror(code)); /* knows the system's as well */
    }
}

/* ---- what lies in the directory ---- */

struct lying {
    bool data, lock, making, manifest;
    char stranger[NAME_MAX_BYTES + 1]; /* the first name that isn't ours; empty: none */
};

static bool name_is(const char *name, const char *const *names)
{
    for (; *names; names++)
        if (strcmp(name, *names) == 0)
            return true;
    return false;
}

static enum error look(struct opening *o, struct lying *ret)
{
    static const char *const harmless[] = {".", "..", READERS_FILE, "lost+found", NULL};
    DIR *dir = opendir(DIR_OF(o));
    *ret = (struct lying){0};
    if (!dir)
        return refuse_system(o, errno, "listing it");
    struct dirent *entry;
    for (errno = 0; (entry = readdir(dir)); errno = 0) { /* its end and a failure look alike otherwise */
        if (strcmp(entry->d_name, DATA_FILE) == 0)
            ret->data = true;
        else if (strcmp(entry->d_name, LOCK_FILE) == 0)
            ret->lock = true;
        else if (strcmp(entry->d_name, MAKING) == 0)
            ret->making = true;
        else if (strcmp(entry->d_name, "manifest.json") == 0)
            ret->manifest = true;
        else if (!name_is(entry->d_name, harmless) && !ret->stranger[0])
            snprintf(ret->stranger, sizeof(ret->stranger), "%s", entry->d_name);
    }
    int code = errno;
    closedir(dir);
    return code ? refuse_system(o, code, "listing it") : OK;
}

static enum error reach_dir(struct opening *o)
{
    struct stat stat;
    const struct environment_options *options = &o->environment->options;
    if (lstat(DIR_OF(o), &stat) < 0) {
        if (errno != ENOENT)
            return refuse_system(o, errno, "looking at it");
        if (options->must_exist || options->guest)
            return refuse(o, ERR_MISSING, "doesn't exist; 'coppice serve' makes a store");
        o->made_dir = mkdir(DIR_OF(o), MODE_DIR) == 0;
        if (!o->made_dir && errno != EEXIST) /* somebody else may be quicker */
            return refuse_system(o, errno, "making it");
    }
    o->environment->dir_fd = open(DIR_OF(o), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (o->environment->dir_fd >= 0)
        return OK;
    if (errno == ENOTDIR)
        return refuse(o, ERR_FOREIGN, "is a file; a store needs a directory of its own");
    return refuse_system(o, errno, "opening it");
}

/* ---- the lock ---- */

/* What the lock file says: empty before there is a store. */
static bool lock_names_a_store(int fd, char line[LOCK_LINE_MAX + 1])
{
    ssize_t size = pread(fd, line, LOCK_LINE_MAX, 0);
    line[size > 0 ? size : 0] = 0;
    return size > 0;
}

/* A store that is being brought back, or was when the restore was cut off. */
static bool names_a_restore(const char *line)
{
    return strncmp(line, ENVIRONMENT_RESTORE_LINE, sizeof(ENVIRONMENT_RESTORE_LINE) - 1) == 0;
}

static bool open_lock(struct opening *o)
{
    struct environment *e = o->environment;
    e->lock_fd = openat(e->dir_fd, LOCK_FILE, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, MODE_FILE);
    o->made_lock = e->lock_fd >= 0;
    if (e->lock_fd < 0 && errno == EEXIST)
        e->lock_fd = openat(e->dir_fd, LOCK_FILE, O_RDWR | O_CREAT | O_CLOEXEC, MODE_FILE);
    return e->lock_fd >= 0;
}

/* Whoever made the file and then no store takes it away again: the one we have locked may have no name any more. */
static bool lock_is_there(const struct environment *e)
{
    struct stat held, named;
    return fstat(e->lock_fd, &held) == 0 && fstatat(e->dir_fd, LOCK_FILE, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

/* Guests hold the lock shared while they look, which is over in a moment; an owner holds it alone. */
static bool only_guests(const struct environment *e)
{
    if (flock(e->lock_fd, LOCK_SH | LOCK_NB) < 0)
        return false;
    (void)flock(e->lock_fd, LOCK_UN);
    return true;
}

static enum error take_lock(struct opening *o)
{
    struct environment *e = o->environment;
    for (int i = 0; i < LOCK_TRIES; i++) {
        if (e->lock_fd < 0 && !open_lock(o))
            return refuse_system(o, errno, LOCK_FILE);
        if (flock(e->lock_fd, LOCK_EX | LOCK_NB) == 0) {
            if (lock_is_there(e))
                return OK;
            close(e->lock_fd);
            e->lock_fd = -1;
        } else if (errno != EWOULDBLOCK) {
            return refuse_system(o, errno, "locking it");
        } else if (!only_guests(e)) {
            break;
        }
        env_thread_sleep(env_real()->now(env_real()) + NS_PER_MS / 2);
    }
    return refuse(o, ERR_IN_USE, "is in use: a server has it open; stop that one first");
}

static enum error write_lock_line(struct opening *o, const struct uuid *identity)
{
    char line[LOCK_LINE_MAX + 1], text[UUID_TEXT_SIZE];
    int fd = o->environment->lock_fd;
    if (lock_names_a_store(fd, line) && !names_a_restore(line))
        return OK;
    uuid_format(identity, text);
    snprintf(line, sizeof(line), ENVIRONMENT_LOCK_LINE "%s\n", text);
    errno = ENOSPC; /* a short one says nothing */
    if (pwrite(fd, line, LOCK_LINE_SIZE, 0) != (ssize_t)LOCK_LINE_SIZE ||
        ftruncate(fd, (off_t)LOCK_LINE_SIZE) < 0 || fsync(fd) < 0)
        return refuse_system(o, errno, LOCK_FILE);
    return OK;
}

/* ---- LMDB ---- */

static int lmdb_open(struct environment *e, const char *dir, unsigned flags)
{
    int code = mdb_env_create(&e->mdb);
    if (code)
        return code;
    code = mdb_env_set_maxdbs(e->mdb, SCHEMA_TABLES_MAX);
    ASSERT(code == 0); /* it is not open yet, and there is one */
    code = mdb_env_set_maxreaders(e->mdb, e->options.views_max + OWN_READERS);
    ASSERT(code == 0);
    code = mdb_env_set_mapsize(e->mdb, e->map);
    if (!code)
        code = mdb_env_open(e->mdb, dir, flags, MODE_FILE);
    if (code) {
        mdb_env_close(e->mdb);
        e->mdb = NULL;
    }
    return code;
}

static void lmdb_close(struct environment *e)
{
    if (e->mdb)
        mdb_env_close(e->mdb);
    e->mdb = NULL;
}

/* The handles of all tables; those that aren't there yet are made if `create`. */
static int open_tables(struct environment *e, const struct schema *schema, MDB_txn *txn, bool create)
{
    for (uint32_t i = 0; i < schema->tables_count; i++) {
        int code = mdb_dbi_open(txn, schema->tables[i].name, create ? MDB_CREATE : 0, &e->tables[i]);
        if (code)
            return code;
        e->seeds[i] = value_seed(schema->tables[i].name);
        if (e->leaves)
            leaves_bind(e->leaves, i, schema->tables[i].name);
    }
    return 0;
}

/* ---- is it ours, and can it be believed? Asked before anything is touched. ---- */

/* A data file from elsewhere in the place of ours. A line that names nothing says nothing. */
static bool lock_names_another(const struct opening *o, const struct uuid *identity)
{
    char line[LOCK_LINE_MAX + 1];
    struct uuid named;
    size_t head = sizeof(ENVIRONMENT_LOCK_LINE) - 1;
    int fd = o->environment->lock_fd;
    return fd >= 0 && lock_names_a_store(fd, line) && strlen(line) >= head + UUID_TEXT_SIZE - 1 &&
           memcmp(line, ENVIRONMENT_LOCK_LINE, head) == 0 &&
           uuid_parse(line + head, UUID_TEXT_SIZE - 1, &named) && !uuid_equal(&named, identity);
}

static enum error refuse_newer(struct opening *o, uint32_t format)
{
    return refuse(o, ERR_NEWER,
                  "holds a store of format %u, this program knows up to %u: a newer one wrote it",
                  (unsigned)format, (unsigned)o->schema->format);
}

static enum error probe_format(struct opening *o, MDB_txn *txn)
{
    struct meta_format format;
    MDB_dbi dbi;
    int code = mdb_dbi_open(txn, "meta", 0, &dbi);
    if (code == MDB_NOTFOUND || code == MDB_INCOMPATIBLE)
        return refuse(o, ERR_FOREIGN, "holds an LMDB file that isn't a store of coppice; it was not touched");
    if (code)
        return refuse_system(o, code, DATA_FILE);
    enum error e = meta_read_format(txn, dbi, &format);
    if (e == ERR_NOT_FOUND)
        return refuse(o, ERR_FOREIGN, "holds an LMDB file that isn't a store of coppice; it was not touched");
    if (e)
        return refuse(o, ERR_DAMAGED, "holds a store whose format can't be read; 'coppice check' says more");
    if (format.format > o->schema->format)
        return refuse_newer(o, format.format);
    if (lock_names_another(o, &format.identity))
        return refuse(o, ERR_FOREIGN,
                      "holds the " DATA_FILE " of another store than " LOCK_FILE " names; remove " LOCK_FILE
                      " if that is meant");
    if (format.commit != mdb_txn_id(txn))
        return refuse(
            o, ERR_DAMAGED,
            "holds a store that says it is at commit %llu, but was left at %llu: the newest state is gone",
            (unsigned long long)mdb_txn_id(txn), (unsigned long long)format.commit);
    o->environment->format = format;
    return OK;
}

/* Read only and without LMDB's lock file: a refused directory stays as it was. */
static enum error probe_rows(struct opening *o)
{
    struct environment probe = {.options = o->environment->options, .map = o->environment->map};
    MDB_txn *txn;
    int code = lmdb_open(&probe, DIR_OF(o), MDB_RDONLY | MDB_NOTLS | MDB_NOLOCK);
    if (code)
        return refuse_system(o, code, DATA_FILE);
    code = mdb_txn_begin(probe.mdb, NULL, MDB_RDONLY, &txn);
    enum error e = code ? refuse_system(o, code, DATA_FILE) : probe_format(o, txn);
    o->incomplete = !e && open_tables(&probe, o->schema, txn, false) == MDB_NOTFOUND;
    if (!code)
        mdb_txn_abort(txn);
    lmdb_close(&probe);
    return e;
}

/* named: our lock file says that there is a store. */
static enum error probe_image(struct opening *o, int fd, uint64_t whole_max, bool named)
{
    struct environment *environment = o->environment;
    struct image_report report = {0};
    char why[256] = "";
    leaves_destroy(environment->leaves); /* those of a look before this one */
    environment->leaves = NULL;
    enum error e = image_look(fd, whole_max, &environment->leaves, &report, why, sizeof(why));
    if (e == ERR_FOREIGN)
        return refuse(o, e, "holds a " DATA_FILE " that isn't LMDB's: %s; it was not touched", why);
    if (e == ERR_DAMAGED && !named)
        return refuse(o, ERR_FOREIGN,
                      "holds a " DATA_FILE
                      " that isn't a store of coppice, or a damaged one: %s; it was not touched",
                      why);
    if (e == ERR_DAMAGED)
        return refuse(o, e, "holds a damaged store: %s; it was not touched, a backup helps", why);
    if (!e && report.other == IMAGE_OTHER_UNSURE)
        return refuse(
            o, ERR_DAMAGED,
            "holds a damaged store: the newest commit may be lost, one of its two meta pages can't be "
            "believed; it was not touched, a backup helps");
    if (e)
        return refuse(o, e, "can't be read: %s", why);
    o->later = report.other == IMAGE_OTHER_LATER;
    return o->later && report.later_format > o->schema->format ? refuse_newer(o, report.later_format) : OK;
}

/* The commit that only lacks its number gets it, once everything else about the directory is in order. */
static enum error probe_later(struct opening *o, int fd)
{
    char why[256] = "";
    if (!o->later || o->environment->lock_fd < 0)
        return OK;
    enum error e = image_finish(fd, why, sizeof(why));
    return e ? refuse(o, e, "can't be read: %s", why) : probe_rows(o);
}

static enum error probe(struct opening *o)
{
    struct stat stat;
    char line[LOCK_LINE_MAX + 1];
    bool named = o->environment->lock_fd >= 0 && lock_names_a_store(o->environment->lock_fd, line);
    enum error e = OK;
    if (fstatat(o->environment->dir_fd, DATA_FILE, &stat, 0) < 0)
        return refuse_system(o, errno, DATA_FILE);
    if (!S_ISREG(stat.st_mode))
        return refuse(o, ERR_FOREIGN, "holds a " DATA_FILE " that isn't a file");
    int fd = openat(o->environment->dir_fd, DATA_FILE, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return refuse_system(o, errno, DATA_FILE);
    if (stat.st_size == 0)
        e = refuse(o, ERR_DAMAGED, "holds an empty " DATA_FILE ": a store was here; a backup helps");
    else
        e = probe_image(o, fd, o->environment->options.whole_max, named);
    if (!e)
        e = probe_rows(o);
    if (!e && o->incomplete && o->environment->leaves) /* its tables are made at once: that is a write */
        e = probe_image(o, fd, UINT64_MAX, named);
    if (!e)
        e = probe_later(o, fd);
    close(fd);
    return e;
}

/* ---- blocks ---- */

/* Blocks for [from, to) of the file; its size grows with them. */
static int allocate_blocks(int fd, uint64_t from, uint64_t to)
{
    int code;
    do
        code = posix_fallocate(fd, (off_t)from, (off_t)(to - from));
    while (code == EINTR);
    return code;
}

/* LMDB maps its table of readers and writes through the map: without blocks behind it, a full disk is SIGBUS. It takes
 * the number of readers from the file's size. */
static int allocate_readers(const struct environment *e, const char *name, bool *ret_made)
{
    uint64_t size = (((uint64_t)e->options.views_max + OWN_READERS) * READER_SIZE + READERS_HEAD + 4095) &
                    ~UINT64_C(4095);
    int fd = openat(e->dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, MODE_FILE);
    *ret_made = fd >= 0;
    if (fd < 0 && errno == EEXIST)
        fd = openat(e->dir_fd, name, O_RDWR | O_CLOEXEC);
    int code = fd < 0 ? errno : allocate_blocks(fd, 0, size);
    if (fd >= 0)
        close(fd);
    return code;
}

/* ---- making one ---- */

static bool absent(int result)
{
    return result == 0 || errno == ENOENT;
}

/* Whatever an interrupted making left. Nothing in it was ever acknowledged. */
static enum error clear_making(struct opening *o)
{
    int dir = o->environment->dir_fd;
    if (absent(unlinkat(dir, MAKING "/" DATA_FILE, 0)) && absent(unlinkat(dir, MAKING "/" READERS_FILE, 0)) &&
        absent(unlinkat(dir, MAKING, AT_REMOVEDIR)))
        return OK;
    return refuse_system(o, errno, "removing " MAKING);
}

static int lmdb_begin_life(struct opening *o)
{
    struct environment *e = o->environment;
    MDB_txn *txn;
    mdb_filehandle_t fd;
    int code = mdb_txn_begin(e->mdb, NULL, 0, &txn);
    if (code)
        return code;
    code = open_tables(e, o->schema, txn, true);
    if (!code)
        code = meta_write_birth(txn, e->tables[TABLE_META], o->schema->format, e->options.birth);
    if (code) {
        mdb_txn_abort(txn);
        return code;
    }
    code = mdb_txn_commit(txn);
    if (!code)
        code = mdb_env_get_fd(e->mdb, &fd);
    if (!code)
        code = allocate_blocks(fd, 0, e->options.step);
    return code ? code : fsync(fd) < 0 ? errno : 0;
}

static enum error make(struct opening *o)
{
    struct environment *e = o->environment;
    char path[sizeof(e->dir) + sizeof(MAKING) + 1];
    snprintf(path, sizeof(path), "%s/" MAKING, e->dir);
    enum error error = clear_making(o);
    if (error)
        return error;
    if (mkdirat(e->dir_fd, MAKING, MODE_DIR) < 0)
        return refuse_system(o, errno, "making " MAKING);
    bool made;
    int code = allocate_readers(e, MAKING "/" READERS_FILE, &made);
    if (!code)
        code = lmdb_open(e, path, LMDB_FLAGS);
    if (!code)
        code = lmdb_begin_life(o);
    lmdb_close(e);
    if (!code && renameat(e->dir_fd, MAKING "/" DATA_FILE, e->dir_fd, DATA_FILE) < 0)
        code = errno;
    if (!code && fsync(e->dir_fd) < 0)
        code = errno;
    if (code) {
        refuse_system(o, code, "making a store");
        int dir = e->dir_fd; /* clear_making would write a sentence of its own */
        (void)unlinkat(dir, MAKING "/" DATA_FILE, 0);
        (void)unlinkat(dir, MAKING "/" READERS_FILE, 0);
        (void)unlinkat(dir, MAKING, AT_REMOVEDIR);
        return txn_error_of(code) == ERR_IO && code != EIO ? ERR_SYSTEM : txn_error_of(code);
    }
    return clear_making(o);
}

/* The names, too, must outlive a power cut: those that an earlier process made and didn't live to sync. */
static enum error sync_names(struct opening *o)
{
    int parent = openat(o->environment->dir_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (parent < 0 || fsync(parent) < 0 || fsync(o->environment->dir_fd) < 0) {
        int code = errno;
        if (parent >= 0)
            close(parent);
        return refuse_system(o, code, "syncing the directory");
    }
    close(parent);
    return OK;
}

/* ---- what a large file's start hasn't looked at ---- */

enum error environment_believe(struct environment *e, void (*rest)(void *arg), void *arg, char *ret_text,
                               size_t text_size)
{
    struct image_report report;
    if (!leaves_pending(e->leaves))
        return OK;
    if (!e->image && (e->image = image_create()) == NULL) {
        snprintf(ret_text, text_size, "no memory to look at all of it");
        return ERR_MEMORY;
    }
    enum error error = image_check_slowly(e->image, e->data_fd, rest, arg, &report, ret_text, text_size);
    if (!error)
        leaves_done(e->leaves);
    return error;
}

/* ---- opening what is there ---- */

static enum error measure(struct opening *o)
{
    struct environment *e = o->environment;
    struct stat stat;
    mdb_filehandle_t fd;
    MDB_stat pages;
    int code = mdb_env_get_fd(e->mdb, &fd);
    ASSERT(code == 0); /* neither fails of one that is open */
    code = mdb_env_stat(e->mdb, &pages);
    ASSERT(code == 0);
    if (fstat(fd, &stat) < 0)
        return refuse_system(o, errno, DATA_FILE);
    e->data_fd = fd;
    e->page_size = pages.ms_psize;
    e->allocated = (uint64_t)stat.st_size;
    return OK;
}

/* Tables that an older program didn't know. */
static int make_tables(struct opening *o)
{
    struct environment *e = o->environment;
    MDB_txn *txn;
    int code = mdb_txn_begin(e->mdb, NULL, 0, &txn);
    if (code)
        return code;
    code = open_tables(e, o->schema, txn, true);
    if (!code)
        code = meta_write_stamp(txn, e->tables[TABLE_META]);
    if (!code)
        return mdb_txn_commit(txn);
    mdb_txn_abort(txn);
    return code;
}

static enum error open_handles(struct opening *o)
{
    struct environment *e = o->environment;
    MDB_txn *txn;
    int code = mdb_txn_begin(e->mdb, NULL, MDB_RDONLY, &txn);
    if (code)
        return refuse_system(o, code, DATA_FILE);
    code = open_tables(e, o->schema, txn, false);
    if (!code)
        code = mdb_txn_commit(txn);
    else
        mdb_txn_abort(txn);
    if (code == MDB_NOTFOUND && !e->options.guest) {
        ASSERT(!e->leaves); /* see probe: that is a write */
        code = make_tables(o);
    }
    if (code == MDB_NOTFOUND)
        return refuse(o, ERR_DAMAGED,
                      "has a table less than this program's stores: damage, or an older program made it and "
                      "no server of "
                      "this version has opened it yet");
    return code ? refuse_system(o, code, DATA_FILE) : OK;
}

static uint64_t map_for(const struct environment *e, uint64_t size)
{
    uint64_t map = e->options.map;
    while (map < size)
        map *= 2;
    return map;
}

/* A sync that failed leaves pages that the kernel takes for written, and the next one says that all is well. For
 * the pages of a transaction that failed it doesn't matter which bytes they have. The two meta pages decide what the
 * store is: they are written again as this process sees them, so that the sync that follows is about them. */
static int rewrite_metas(struct environment *e)
{
    uint8_t meta[META_SIZE];
    mdb_filehandle_t fd;
    MDB_stat stat;
    int code = mdb_env_get_fd(e->mdb, &fd);
    ASSERT(code == 0);
    code = mdb_env_stat(e->mdb, &stat);
    ASSERT(code == 0);
    for (off_t i = 0; !code && i < 2; i++) {
        off_t at = i * (off_t)stat.ms_psize;
        errno = EIO; /* a short one says nothing */
        if (pread(fd, meta, sizeof(meta), at) != (ssize_t)sizeof(meta) ||
            pwrite(fd, meta, sizeof(meta), at) != (ssize_t)sizeof(meta))
            code = errno;
    }
    return code;
}

static enum error open_data(struct opening *o)
{
    struct environment *e = o->environment;
    struct stat stat;
    unsigned flags = 0;
    if (fstatat(e->dir_fd, DATA_FILE, &stat, 0) == 0)
        e->map = map_for(e, (uint64_t)stat.st_size);
    int code = e->options.guest ? 0 : allocate_readers(e, READERS_FILE, &o->made_readers);
    if (!code)
        code = lmdb_open(e, e->dir, LMDB_FLAGS | (e->options.guest ? MDB_RDONLY : 0));
    if (code)
        return refuse_system(o, code, DATA_FILE);
    code = mdb_env_get_flags(e->mdb, &flags);
    ASSERT(code == 0 && !(flags & LMDB_NEVER));
    if (!e->options.guest && ((code = rewrite_metas(e)) != 0 || (code = mdb_env_sync(e->mdb, 1)) != 0))
        return refuse(o, ERR_IO, "can't be synced (%s): what an earlier process wrote may not be on the disk",
                      mdb_strerror(code));
    enum error error = measure(o);
    return error ? error : open_handles(o);
}

static enum error read_format(struct environment *e, struct meta_format *ret_format)
{
    MDB_txn *txn;
    int code = mdb_txn_begin(e->mdb, NULL, MDB_RDONLY, &txn);
    if (code)
        return txn_error_of(code);
    enum error error = meta_read_format(txn, e->tables[TABLE_META], ret_format);
    mdb_txn_abort(txn);
    return error;
}

static enum error refuse_lost(struct opening *o, const char *line)
{
    if (names_a_restore(line))
        return refuse(o, ERR_DAMAGED,
                      "holds a restore that was cut off (" LOCK_FILE
                      " says '%.*s') and no store; run 'coppice restore' again",
                      (int)strcspn(line, "\n"), line);
    return refuse(o, ERR_DAMAGED,
                  "has lost its " DATA_FILE ": " LOCK_FILE " says that there was %.*s; a backup helps",
                  (int)strcspn(line, "\n"), line);
}

static enum error refuse_strangers(struct opening *o, const struct lying *lying)
{
    return refuse(o, ERR_FOREIGN,
                  "holds other things ('%s') and no store; a store needs a directory of its own",
                  lying->stranger);
}

/* What shows at the first look. */
static enum error refuse_lying(struct opening *o, const struct lying *lying)
{
    if (!lying->data && !lying->lock && lying->stranger[0])
        return refuse_strangers(o, lying);
    if (lying->data && lying->manifest &&
        !lying->lock) /* a server would write to it, and it would verify no more */
        return refuse(o, ERR_FOREIGN, "is a backup; 'coppice restore' makes a store of it");
    return OK;
}

static enum error open_owned(struct opening *o)
{
    struct environment *e = o->environment;
    struct lying lying;
    char line[LOCK_LINE_MAX + 1];
    enum error error = look(o, &lying);
    if (error || (error = refuse_lying(o, &lying)) != OK)
        return error;
    if (!lying.data && !lying.lock && e->options.must_exist)
        return refuse(o, ERR_MISSING, "holds no store; 'coppice serve' makes one");
    if (lying.data && !lying.lock &&
        (error = probe(o)) != OK) /* perhaps not ours: before our lock lies there */
        return error;
    if ((error = take_lock(o)) != OK || (error = look(o, &lying)) != OK)
        return error;
    if (lying.data && (error = probe(o)) != OK)
        return error;
    if (!lying.data && lock_names_a_store(e->lock_fd, line))
        return refuse_lost(o, line); /* a server's token and key may lie there still: they aren't strangers */
    if (!lying.data && lying.stranger[0])
        return refuse_strangers(o, &lying);
    if (!lying.data && e->options.must_exist)
        return refuse(o, ERR_MISSING, "holds no store; 'coppice serve' makes one");
    if (!lying.data && (error = make(o)) != OK)
        return error;
    if (lying.data && lying.making && (error = clear_making(o)) != OK)
        return error;
    if ((error = sync_names(o)) != OK || (error = open_data(o)) != OK)
        return error;
    error = read_format(e, &e->format);
    return error ? refuse(o, error, "holds a store that doesn't say which")
                 : write_lock_line(o, &e->format.identity);
}

/* A guest's own look, over a snapshot that the writer leaves alone. */
static enum error check_format(struct opening *o)
{
    MDB_txn *txn;
    int code = mdb_txn_begin(o->environment->mdb, NULL, MDB_RDONLY, &txn);
    if (code)
        return refuse_system(o, code, DATA_FILE);
    enum error e = probe_format(o, txn);
    mdb_txn_abort(txn);
    return e;
}

/* When nobody has it open, it can be looked at without touching anything. The owner's lock is borrowed meanwhile: a
 * server that starts in this moment tries again. */
static enum error probe_unowned(struct opening *o, const struct lying *lying)
{
    if (!lying->lock)
        return probe_rows(o);
    int fd = openat(o->environment->dir_fd, LOCK_FILE, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return refuse_system(o, errno, LOCK_FILE);
    enum error e = flock(fd, LOCK_SH | LOCK_NB) == 0 ? probe_rows(o) : OK;
    close(fd);
    return e;
}

/* A guest doesn't hold the lock file, if there is any. */
static bool guest_named(const struct opening *o, char line[LOCK_LINE_MAX + 1])
{
    int fd = openat(o->environment->dir_fd, LOCK_FILE, O_RDONLY | O_CLOEXEC);
    bool named = fd >= 0 && lock_names_a_store(fd, line);
    if (fd >= 0)
        close(fd);
    return named;
}

/* A store that is made in this moment has its data before its lock file names it. */
static enum error refuse_no_data(struct opening *o)
{
    struct lying lying;
    char line[LOCK_LINE_MAX + 1];
    bool named = guest_named(o, line);
    enum error error = look(o, &lying);
    if (error)
        return error;
    return named && !lying.data ? refuse_lost(o, line) : refuse(o, ERR_MISSING, "holds no store");
}

/* A file in whose rows there is no store may be one whose pages lead to none any more. An owner has looked at them before; a guest
 * reads them all only now, and the sentence that stands already counts when they are sound. */
static enum error judge_foreign(struct opening *o, int fd)
{
    char line[LOCK_LINE_MAX + 1];
    enum error e = probe_image(o, fd, UINT64_MAX, guest_named(o, line));
    return e ? e : ERR_FOREIGN;
}

static enum error open_seen(struct opening *o, const struct lying *lying, int fd)
{
    struct image_report report;
    char why[256] = "";
    enum error error = image_peek(fd, &report, why, sizeof(why));
    if (error)
        return refuse(o, error, "holds no store that could be read: %s", why);
    if ((error = probe_unowned(o, lying)) == OK && (error = open_data(o)) == OK)
        error = check_format(o);
    return error == ERR_FOREIGN ? judge_foreign(o, fd) : error;
}

static enum error open_guest(struct opening *o)
{
    struct lying lying;
    enum error error = look(o, &lying);
    if (error)
        return error;
    if (!lying.data)
        return refuse_no_data(o);
    int fd = openat(o->environment->dir_fd, DATA_FILE, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return refuse_system(o, errno, DATA_FILE);
    error = open_seen(o, &lying, fd);
    close(fd);
    return error;
}

/* ---- the whole ---- */

static enum error check_options(struct opening *o)
{
    struct environment_options *e = &o->environment->options;
    e->map = e->map ? e->map : UINT64_C(1) << 30;
    e->map_max = e->map_max ? e->map_max : UINT64_C(256) << 30;
    e->step = e->step ? e->step : UINT64_C(32) << 20;
    e->reserve = e->reserve ? e->reserve : UINT64_C(16) << 20;
    e->views_max = e->views_max ? e->views_max : 1024;
    e->whole_max = e->whole_max ? e->whole_max : WHOLE_MAX;
    if (e->step < 65536 || e->map < e->step || e->map_max < e->map || e->step % 4096 || e->map % 4096 ||
        e->map_max % 4096)
        return refuse(
            o, ERR_INVALID,
            "can't be opened with a map of %llu to %llu bytes and steps of %llu; steps are at least 65536, "
            "and step <= map <= map.max, all multiples of 4096",
            (unsigned long long)e->map, (unsigned long long)e->map_max, (unsigned long long)e->step);
    o->environment->map = e->map;
    return OK;
}

/* What was made for nothing goes again, but not from under somebody who has it by now; while it is locked nobody opens a
 * store there. */
static void take_away(const struct opening *o, enum error e)
{
    int dir = o->environment->dir_fd;
    if (e == ERR_IN_USE)
        return;
    lmdb_close(o->environment);
    if (o->made_readers)
        (void)unlinkat(dir, READERS_FILE, 0);
    if (o->made_lock)
        (void)unlinkat(dir, LOCK_FILE, 0);
}

enum error environment_open(const struct environment_options *options, const struct schema *schema,
                            struct environment *ret_environment, char *ret_text, size_t text_size)
{
    struct opening o = {
        .environment = ret_environment, .schema = schema, .text = ret_text, .text_size = text_size};
    struct environment *e = ret_environment;
    *e = (struct environment){.options = *options, .lock_fd = -1, .dir_fd = -1, .process = getpid()};
    ASSERT(schema->tables_count >= TABLE_COUNT && schema->tables_count <= SCHEMA_TABLES_MAX);
    int length = snprintf(e->dir, sizeof(e->dir), "%s", options->dir);
    if (length <= 0 || (size_t)length > sizeof(e->dir) - 64)
        return refuse(&o, ERR_INVALID, "is not a name that a directory can have");
    enum error error = check_options(&o);
    if (!error)
        error = reach_dir(&o);
    if (!error)
        error = options->guest ? open_guest(&o) : open_owned(&o);
    if (error) {
        take_away(&o, error);
        environment_close(e);
        if (o.made_dir && error != ERR_IN_USE)
            (void)rmdir(e->dir);
    }
    return error;
}

void environment_close(struct environment *e)
{
    lmdb_close(e);
    leaves_destroy(e->leaves);
    image_destroy(e->image);
    e->leaves = NULL;
    e->image = NULL;
    if (e->lock_fd >= 0)
        close(e->lock_fd); /* and with it the lock */
    if (e->dir_fd >= 0)
        close(e->dir_fd);
    e->lock_fd = e->dir_fd = -1;
}

enum error environment_suits(const char *dir, char *ret_text, size_t text_size)
{
    struct environment e = {.lock_fd = -1, .dir_fd = -1};
    struct opening o = {.environment = &e, .text = ret_text, .text_size = text_size};
    struct lying lying;
    snprintf(e.dir, sizeof(e.dir), "%s", dir);
    enum error error = look(&o, &lying);
    return error ? error : refuse_lying(&o, &lying);
}

bool environment_claimed(const char *dir)
{
    char path[4096 + sizeof("/" LOCK_FILE)];
    int length = snprintf(path, sizeof(path), "%s/" LOCK_FILE, dir);
    return (size_t)length < sizeof(path) && access(path, F_OK) == 0;
}

bool environment_there(const struct environment *e)
{
    char path[sizeof(e->dir) + sizeof("/" DATA_FILE)];
    struct stat held, named;
    snprintf(path, sizeof(path), "%s/" DATA_FILE, e->dir);
    if (fstatat(AT_FDCWD, path, &named, 0) < 0)
        return errno != ENOENT && errno != ENOTDIR;
    return fstat(e->data_fd, &held) < 0 || (held.st_ino == named.st_ino && held.st_dev == named.st_dev);
}

enum error environment_identity(struct environment *e, struct uuid *ret_identity)
{
    struct meta_format format;
    enum error error = read_format(e, &format);
    if (!error)
        *ret_identity = format.identity;
    return error;
}

/* ---- space ---- */

uint64_t environment_used(const struct environment *e)
{
    MDB_envinfo info;
    mdb_env_info(e->mdb, &info);
    return ((uint64_t)info.me_last_pgno + 1) * e->page_size;
}

/* A block that was only reserved makes the sync after its first write slower by half: the file system notes that it
 * holds something now. So zeros go ahead of slow growth, where a single commit is what somebody waits for; fast growth
 * shares that cost among many commands and is left alone. */
static void write_ahead(struct environment *e, uint64_t used)
{
    static const char zeros[ZEROS_SIZE];
    if (used == e->used) /* nothing has changed since the last look */
        return;
    uint64_t grown = used - e->used, from = e->zeroed > used ? e->zeroed : used;
    e->used = used;
    if (grown > ZEROS_SIZE / 2 || from >= used + ZEROS_SIZE || from + ZEROS_SIZE > e->allocated)
        return;
    if (pwrite(e->data_fd, zeros, ZEROS_SIZE, (off_t)from) == (ssize_t)ZEROS_SIZE)
        e->zeroed = from + ZEROS_SIZE;
}

enum error environment_allocate(struct environment *e, uint64_t bytes)
{
    ASSERT(getpid() == e->process); /* a fork has the descriptors, and no business with them */
    uint64_t used = environment_used(e), ahead = bytes > e->options.step / 2 ? bytes : e->options.step / 2;
    write_ahead(e, used);
    if (used > e->allocated) /* a commit larger than all that */
        __atomic_store_n(&e->allocated, used, __ATOMIC_RELAXED);
    if (e->allocated - used >= ahead) {
        __atomic_store_n(&e->tight, false, __ATOMIC_RELAXED);
        return OK;
    }
    uint64_t to = e->allocated + (ahead + e->options.step - 1) / e->options.step * e->options.step;
    if (to > e->options.map_max)
        to = e->options.map_max;
    int code = to > e->allocated ? allocate_blocks(e->data_fd, e->allocated, to) : ENOSPC;
    if (!code && fdatasync(e->data_fd) < 0)
        code = errno;
    __atomic_store_n(&e->tight, code != 0, __ATOMIC_RELAXED);
    if (!code) {
        __atomic_store_n(&e->allocated, to, __ATOMIC_RELAXED);
        return OK;
    }
    return txn_error_of(code) == ERR_NO_SPACE ? ERR_NO_SPACE : ERR_IO;
}

uint64_t environment_ahead(const struct environment *e)
{
    uint64_t used = environment_used(e);
    return e->allocated > used ? e->allocated - used : 0;
}

bool environment_limit_due(const struct environment *e)
{
    return e->tight != e->limited;
}

enum error environment_limit(struct environment *e)
{
    int code = mdb_env_set_mapsize(e->mdb, e->tight ? e->allocated : e->map);
    if (code)
        return txn_error_of(code);
    e->limited = e->tight;
    return OK;
}

bool environment_can_grow(const struct environment *e)
{
    return !e->tight && (e->limited || e->map < e->options.map_max);
}

enum error environment_grow(struct environment *e)
{
    ASSERT(getpid() == e->process);
    if (e->limited)
        return ERR_NO_SPACE;
    uint64_t map = e->map * 2 > e->options.map_max ? e->options.map_max : e->map * 2;
    if (map == e->map)
        return ERR_NO_SPACE;
    int code = mdb_env_set_mapsize(e->mdb, map);
    if (code)
        return txn_error_of(code);
    e->map = map;
    return OK;
}

/* Pages in LMDB's list of free ones: table 0, each value a count and that many page numbers. */
uint64_t environment_free(const struct environment *e, MDB_txn *txn)
{
    MDB_cursor *cursor;
    MDB_val k, v;
    uint64_t pages = 0;
    if (mdb_cursor_open(txn, 0, &cursor) == 0) {
        while (mdb_cursor_get(cursor, &k, &v, MDB_NEXT) == 0) {
            size_t count;
            memcpy(&count, v.mv_data, sizeof(count));
            pages += count;
        }
        mdb_cursor_close(cursor);
    }
    return pages * e->page_size;
}

static uint64_t free_bytes_now(struct environment *e)
{
    MDB_txn *txn;
    if (mdb_txn_begin(e->mdb, NULL, MDB_RDONLY, &txn))
        return 0;
    uint64_t bytes = environment_free(e, txn);
    mdb_txn_abort(txn);
    return bytes;
}

bool environment_roomy(struct environment *e, uint64_t bytes)
{
    if (!e->tight)
        return true;
    uint64_t need = e->options.reserve + bytes, room = environment_ahead(e);
    return e->limited && (room >= need || room + free_bytes_now(e) >= need);
}

/* ---- for operators ---- */

struct oldest {
    uint64_t txn;
    uint64_t own; /* the writer's own reader, which is passed over, once; 0: there is none */
};

/* A line of mdb_reader_list: pid, thread and the number of its transaction, or '-'. */
static int reader_read(const char *line, void *context)
{
    struct oldest *oldest = context;
    const char *last = strrchr(line, ' ');
    char *end;
    ASSERT(last);
    unsigned long long number = strtoull(last + 1, &end, 10);
    if (end == last + 1)
        return 0;
    if (number == oldest->own)
        oldest->own = 0;
    else if (number < oldest->txn)
        oldest->txn = number;
    return 0;
}

enum error environment_stats(struct environment *e, MDB_txn *txn, struct environment_stats *ret)
{
    struct oldest oldest = {UINT64_MAX, __atomic_load_n(&e->fallow_txn, __ATOMIC_RELAXED)};
    MDB_envinfo info;
    struct stat stat;
    int dead;
    ASSERT(getpid() == e->process);
    if (!e->options.guest)
        (void)mdb_reader_check(e->mdb, &dead); /* views of processes that were killed */
    mdb_env_info(e->mdb, &info);
    if (fstat(e->data_fd, &stat) < 0)
        return ERR_IO;
    (void)mdb_reader_list(e->mdb, reader_read, &oldest);
    *ret = (struct environment_stats){
        .map = info.me_mapsize,
        .file = (uint64_t)stat.st_size,
        .allocated = __atomic_load_n(&e->allocated, __ATOMIC_RELAXED),
        .used = ((uint64_t)info.me_last_pgno + 1) * e->page_size,
        .free = environment_free(e, txn),
        .last_txn = info.me_last_txnid,
        .oldest_txn = oldest.txn < info.me_last_txnid ? oldest.txn : info.me_last_txnid,
        .readers = info.me_numreaders,
        .readers_max = info.me_maxreaders,
        .tight = __atomic_load_n(&e->tight, __ATOMIC_RELAXED),
    };
    return OK;
}
