#define _GNU_SOURCE /* O_DIRECT */
#include "store/backup_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/guest.h"

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
enum {
    META_NUMBER_AT = 0,
    META_COMMIT_AT = COPY_META_COMMIT_AT,
    META_PAGE_SIZE_AT = COPY_META_PAGE_SIZE_AT,
    META_READ = 152
};

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
    int code = look_map(dir, MDB_RDONLY, &env, &txn);
    if (code)
        return saying_refuse(s, txn_error_of(code), "the copy in '%s' can't be read: %s", dir,
                             mdb_strerror(code));
    enum error e = look_format(s, dir, txn, ret_format);
    mdb_txn_abort(txn);
    mdb_env_close(env);
    return e;
}

static int step(const char *dir, uint64_t commit)
{
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi dbi;
    int code = look_map(dir, 0, &env, &txn);
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
        return saying_refuse(s, ERR_DAMAGED, "'%s' says that it is at commit 0", copy->dir);
    if (format.commit > 3 && !number_commit(fd, format.commit - 2))
        return saying_refuse_system(s, copy->partial, "written");
    int code = format.commit > 2 ? step(copy->partial, format.commit - 1) : 0;
    if (!code && format.commit > 1)
        code = step(copy->partial, format.commit);
    if (code)
        return saying_refuse(s, txn_error_of(code), "the copy in '%s' can't be completed: %s", copy->partial,
                             mdb_strerror(code));
    return fsync(fd) < 0 ? saying_refuse_system(s, copy->partial, "synced") : OK;
}

enum error copy_work(void *shared, char *ret_text, size_t text_size)
{
    struct copy *copy = shared;
    struct saying s = {.text = ret_text, .size = text_size};
    struct guest guest;
    struct stat stat;
    char path[sizeof(copy->partial) + sizeof(LOOK_DATA_FILE) + 1];
    enum error e = guest_open(copy->dir, copy->schema, &guest, ret_text, text_size);
    if (e)
        return e;
    snprintf(path, sizeof(path), "%s/" LOOK_DATA_FILE, copy->partial);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, LOOK_FILE_MODE);
    if (fd < 0 || fstat(guest.store.environment.data_fd, &stat) < 0)
        return saying_refuse_system(&s, path, "made");
    bound_file_size((uint64_t)stat.st_size);
    int code = copy_state(&guest, fd);
    guest_close(&guest);
    if (code == MDB_INCOMPATIBLE)
        return saying_refuse(
            &s, ERR_DAMAGED,
            "'%s' has pages that are neither used nor free, and LMDB copies no such store; stop the "
            "server and copy its files",
            copy->dir);
    if (code ==
        EFAULT) /* what a page refers to lies behind the end of the file: nothing that could be written */
        return saying_refuse(&s, ERR_DAMAGED, "'%s' refers to pages that its file doesn't have", copy->dir);
    if (code)
        return saying_refuse(&s, txn_error_of(code), "'%s' can't be copied to '%s': %s", copy->dir,
                             copy->partial, code < 0 ? mdb_strerror(code) : strerror(code));
    return number_copy(&s, copy, fd);
}
