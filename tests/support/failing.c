#define _GNU_SOURCE
#include "tests/support/failing.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <lmdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/uio.h>
#include <unistd.h>

/* Of this process and of its children: whoever makes the n-th call has it fail. */
static struct armed {
    bool armed, failed, ends;
    enum failing_kind kind;
    uint64_t left;
    char name[32];
} * failing;
static int64_t live; /* of this process alone */

void failing_begin(enum failing_kind kind, uint64_t n)
{
    if (!failing)
        failing = mmap(NULL, sizeof(*failing), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (failing == MAP_FAILED)
        abort();
    *failing = (struct armed){.armed = true, .kind = kind, .left = n, .name = "nothing"};
}

void failing_begin_ending(enum failing_kind kind, uint64_t n)
{
    failing_begin(kind, n);
    failing->ends = true;
}

bool failing_end(void)
{
    if (failing)
        failing->armed = false;
    return failing && failing->failed;
}

const char *failing_name(void)
{
    return failing ? failing->name : "nothing";
}

int64_t failing_live(void)
{
    return live;
}

static bool fails(enum failing_kind kind, const char *name)
{
    if (!failing || !failing->armed || failing->kind != kind || --failing->left > 0)
        return false;
    failing->armed = false;
    failing->failed = true;
    snprintf(failing->name, sizeof(failing->name), "%s", name);
    if (failing->ends)
        _exit(FAILING_ENDED);
    return true;
}

static struct turn {
    char name[32];
    int code;
    void (*run)(void);
} next;

void failing_next(const char *name, int code)
{
    next = (struct turn){.code = code};
    snprintf(next.name, sizeof(next.name), "%s", name);
}

void failing_before(const char *name, void (*run)(void))
{
    next = (struct turn){.run = run};
    snprintf(next.name, sizeof(next.name), "%s", name);
}

/* With what the call fails that was waited for; 0: it doesn't. */
static int turn_of(const char *name)
{
    struct turn turn = next;
    if (strcmp(turn.name, name) != 0)
        return 0;
    next.name[0] = 0;
    if (turn.run)
        turn.run(); /* may wait for another one */
    return turn.code;
}

static bool fails_with(enum failing_kind kind, const char *name, int code)
{
    int own = turn_of(name);
    if (!own && !fails(kind, name))
        return false;
    errno = own ? own : code;
    return true;
}

/* ---- the heap ---- */

static void *counted(void *p)
{
    live += p != NULL;
    return p;
}

#define HEAP(name, parameters, arguments)            \
    void *failing_##name parameters;                 \
    void *failing_##name parameters                  \
    {                                                \
        if (fails_with(FAILING_HEAP, #name, ENOMEM)) \
            return NULL;                             \
        return counted(name arguments);              \
    }
HEAP(malloc, (size_t size), (size))
HEAP(calloc, (size_t count, size_t size), (count, size))
HEAP(aligned_alloc, (size_t alignment, size_t size), (alignment, size))
HEAP(strdup, (const char *text), (text))

void *failing_realloc(void *old, size_t size);
void *failing_realloc(void *old, size_t size)
{
    if (fails_with(FAILING_HEAP, "realloc", ENOMEM))
        return NULL;
    return old ? realloc(old, size) : counted(malloc(size));
}

int failing_posix_memalign(void **ret, size_t alignment, size_t size);
int failing_posix_memalign(void **ret, size_t alignment, size_t size)
{
    if (fails(FAILING_HEAP, "posix_memalign"))
        return ENOMEM;
    int code = posix_memalign(ret, alignment, size);
    if (!code)
        live++;
    return code;
}

void failing_free(void *p);
void failing_free(void *p)
{
    live -= p != NULL;
    free(p);
}

/* ---- the system ---- */

#define SYSTEM(type, failure, name, parameters, arguments)                        \
    type failing_##name parameters;                                               \
    type failing_##name parameters                                                \
    {                                                                             \
        return fails_with(FAILING_SYSTEM, #name, EIO) ? failure : name arguments; \
    }
/* One that may also find the disk full, or all descriptors taken. */
#define SYSTEM_FULL(type, failure, name, code, parameters, arguments)                           \
    type failing_##name parameters;                                                             \
    type failing_##name parameters                                                              \
    {                                                                                           \
        return fails_with(FAILING_SYSTEM, #name, EIO) || fails_with(FAILING_SPACE, #name, code) \
                   ? failure                                                                    \
                   : name arguments;                                                            \
    }
SYSTEM(ssize_t, -1, pread, (int fd, void *bytes, size_t size, off_t at), (fd, bytes, size, at))
SYSTEM(int, -1, fstat, (int fd, struct stat *ret), (fd, ret))
SYSTEM(int, -1, fstatat, (int dir, const char *path, struct stat *ret, int flags), (dir, path, ret, flags))
SYSTEM(int, -1, lstat, (const char *path, struct stat *ret), (path, ret))
SYSTEM(int, -1, fstatfs, (int fd, struct statfs *ret), (fd, ret))
SYSTEM(off_t, -1, lseek, (int fd, off_t at, int whence), (fd, at, whence))
SYSTEM(int, -1, unlinkat, (int dir, const char *path, int flags), (dir, path, flags))
SYSTEM(int, -1, flock, (int fd, int operation), (fd, operation))
SYSTEM(void *, MAP_FAILED, mmap, (void *at, size_t size, int protection, int flags, int fd, off_t offset),
       (at, size, protection, flags, fd, offset))
SYSTEM_FULL(DIR *, NULL, opendir, EMFILE, (const char *path), (path))
SYSTEM_FULL(ssize_t, -1, pwrite, ENOSPC, (int fd, const void *bytes, size_t size, off_t at),
            (fd, bytes, size, at))
SYSTEM_FULL(ssize_t, -1, write, ENOSPC, (int fd, const void *bytes, size_t size), (fd, bytes, size))
SYSTEM_FULL(ssize_t, -1, writev, ENOSPC, (int fd, const struct iovec *v, int count), (fd, v, count))
SYSTEM_FULL(int, -1, fdatasync, ENOSPC, (int fd), (fd))
SYSTEM_FULL(int, -1, fsync, ENOSPC, (int fd), (fd))
SYSTEM_FULL(int, -1, ftruncate, ENOSPC, (int fd, off_t size), (fd, size))
SYSTEM_FULL(int, -1, mkdir, ENOSPC, (const char *path, mode_t mode), (path, mode))
SYSTEM_FULL(int, -1, mkdirat, ENOSPC, (int dir, const char *path, mode_t mode), (dir, path, mode))
SYSTEM_FULL(int, -1, renameat, ENOSPC, (int from_dir, const char *from, int to_dir, const char *to),
            (from_dir, from, to_dir, to))

/* What an LMDB that was built against an older C library calls for fstat. */
int failing___fxstat(int version, int fd, struct stat *ret);
int failing___fxstat(int version, int fd, struct stat *ret)
{
    (void)version;
    return fails_with(FAILING_SYSTEM, "fstat", EIO) ? -1 : fstat(fd, ret);
}

/* The directory's end and an error look alike, but for errno. */
struct dirent *failing_readdir(DIR *dir);
struct dirent *failing_readdir(DIR *dir)
{
    return fails_with(FAILING_SYSTEM, "readdir", EIO) ? NULL : readdir(dir);
}

int failing_posix_fallocate(int fd, off_t at, off_t size);
int failing_posix_fallocate(int fd, off_t at, off_t size)
{
    int code = turn_of("posix_fallocate");
    if (code)
        return code;
    if (fails(FAILING_SYSTEM, "posix_fallocate"))
        return EIO;
    return fails(FAILING_SPACE, "posix_fallocate") ? ENOSPC : posix_fallocate(fd, at, size);
}

static bool open_fails(const char *name)
{
    return fails_with(FAILING_SYSTEM, name, EIO) || fails_with(FAILING_SPACE, name, EMFILE);
}

int failing_openat(int dir, const char *path, int flags, ...);
int failing_openat(int dir, const char *path, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    mode_t mode = flags & O_CREAT ? va_arg(list, mode_t) : 0;
    va_end(list);
    return open_fails("openat") ? -1 : openat(dir, path, flags, mode);
}

int failing_open(const char *path, int flags, ...);
int failing_open(const char *path, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    mode_t mode = flags & O_CREAT ? va_arg(list, mode_t) : 0;
    va_end(list);
    return open_fails("open") ? -1 : open(path, flags, mode);
}

/* Every use that LMDB makes of it passes a pointer or a number in the place of one. */
int failing_fcntl(int fd, int command, ...);
int failing_fcntl(int fd, int command, ...)
{
    va_list list;
    va_start(list, command);
    void *argument = va_arg(list, void *);
    va_end(list);
    return fails_with(FAILING_SYSTEM, "fcntl", EIO) ? -1 : fcntl(fd, command, argument);
}

/* dlerror has something to say afterwards. */
void *failing_dlopen(const char *file, int mode);
void *failing_dlopen(const char *file, int mode)
{
    return dlopen(fails(FAILING_SYSTEM, "dlopen") ? "/there/is/no/such.so" : file, mode);
}

/* ---- LMDB ---- */

#define LMDB(name, code, code_full, parameters, arguments) \
    int failing_##name parameters;                         \
    int failing_##name parameters                          \
    {                                                      \
        if (fails(FAILING_LMDB, #name))                    \
            return code;                                   \
        if (code_full && fails(FAILING_LMDB_FULL, #name))  \
            return code_full;                              \
        return name arguments;                             \
    }
LMDB(mdb_env_create, ENOMEM, 0, (MDB_env * *env), (env))
LMDB(mdb_env_open, EIO, ENOSPC, (MDB_env * env, const char *path, unsigned flags, mdb_mode_t mode),
     (env, path, flags, mode))
LMDB(mdb_env_set_mapsize, ENOMEM, 0, (MDB_env * env, size_t size), (env, size))
LMDB(mdb_env_sync, EIO, ENOSPC, (MDB_env * env, int force), (env, force))
LMDB(mdb_reader_check, EIO, 0, (MDB_env * env, int *dead), (env, dead))

/* What fails within a transaction leaves it good for nothing but its end, as in LMDB. */
static const MDB_txn *spoilt;

static int spoils(const MDB_txn *txn, int code)
{
    spoilt = txn;
    return code;
}

#define LMDB_WITHIN(name, of, code, code_full, parameters, arguments) \
    int failing_##name parameters;                                    \
    int failing_##name parameters                                     \
    {                                                                 \
        if (spoilt == (of))                                           \
            return MDB_BAD_TXN;                                       \
        if (fails(FAILING_LMDB, #name))                               \
            return spoils(of, code);                                  \
        if (code_full && fails(FAILING_LMDB_FULL, #name))             \
            return spoils(of, code_full);                             \
        return name arguments;                                        \
    }
LMDB_WITHIN(mdb_dbi_open, txn, ENOMEM, MDB_MAP_FULL,
            (MDB_txn * txn, const char *name, unsigned flags, MDB_dbi *dbi), (txn, name, flags, dbi))
LMDB_WITHIN(mdb_get, txn, MDB_PAGE_NOTFOUND, 0, (MDB_txn * txn, MDB_dbi dbi, MDB_val *key, MDB_val *data),
            (txn, dbi, key, data))
LMDB_WITHIN(mdb_put, txn, EIO, MDB_MAP_FULL,
            (MDB_txn * txn, MDB_dbi dbi, MDB_val *key, MDB_val *data, unsigned flags),
            (txn, dbi, key, data, flags))
LMDB_WITHIN(mdb_del, txn, EIO, MDB_MAP_FULL, (MDB_txn * txn, MDB_dbi dbi, MDB_val *key, MDB_val *data),
            (txn, dbi, key, data))
LMDB_WITHIN(mdb_cursor_open, txn, ENOMEM, 0, (MDB_txn * txn, MDB_dbi dbi, MDB_cursor **cursor),
            (txn, dbi, cursor))
LMDB_WITHIN(mdb_cursor_get, mdb_cursor_txn(cursor), MDB_PAGE_NOTFOUND, 0,
            (MDB_cursor * cursor, MDB_val *key, MDB_val *data, MDB_cursor_op operation),
            (cursor, key, data, operation))
LMDB_WITHIN(mdb_cursor_put, mdb_cursor_txn(cursor), EIO, MDB_MAP_FULL,
            (MDB_cursor * cursor, MDB_val *key, MDB_val *data, unsigned flags), (cursor, key, data, flags))
LMDB_WITHIN(mdb_cursor_del, mdb_cursor_txn(cursor), EIO, MDB_MAP_FULL, (MDB_cursor * cursor, unsigned flags),
            (cursor, flags))

/* The next one may lie where the spoilt one lay. */
int failing_mdb_txn_begin(MDB_env *env, MDB_txn *parent, unsigned flags, MDB_txn **txn);
int failing_mdb_txn_begin(MDB_env *env, MDB_txn *parent, unsigned flags, MDB_txn **txn)
{
    if (fails(FAILING_LMDB, "mdb_txn_begin"))
        return ENOMEM;
    int code = mdb_txn_begin(env, parent, flags, txn);
    spoilt = !code && spoilt == *txn ? NULL : spoilt;
    return code;
}

int failing_mdb_txn_renew(MDB_txn *txn);
int failing_mdb_txn_renew(MDB_txn *txn)
{
    if (fails(FAILING_LMDB, "mdb_txn_renew"))
        return MDB_READERS_FULL;
    spoilt = spoilt == txn ? NULL : spoilt;
    return mdb_txn_renew(txn);
}

/* Ends the transaction, whatever it returns. */
int failing_mdb_txn_commit(MDB_txn *txn);
int failing_mdb_txn_commit(MDB_txn *txn)
{
    int code = spoilt == txn                                ? MDB_BAD_TXN
               : fails(FAILING_LMDB, "mdb_txn_commit")      ? EIO
               : fails(FAILING_LMDB_FULL, "mdb_txn_commit") ? ENOSPC
                                                            : 0;
    if (!code)
        return mdb_txn_commit(txn);
    mdb_txn_abort(txn);
    return code;
}
