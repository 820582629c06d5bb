/* Bringing a backup back: backup_restore of store/backup.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/backup_look.h"
#include "store/backup_verify.h"

#define LOCK_FILE     "coppice.lock"
#define READERS_FILE  "lock.mdb"
#define MAKING        "new"

#define LOCK_LINE_MAX (sizeof(ENVIRONMENT_RESTORE_LINE) + UUID_TEXT_SIZE) /* the longer one of two */

struct restoring {
    struct saying *s;
    char into[DIRECTORY_PATH_MAX + 1];
    char identity[UUID_TEXT_SIZE]; /* of the store that is brought back */
    char sha256[BACKUP_SHA256_SIZE];
    bool made, made_lock; /* the directory; the file in it */
    bool begun;           /* the lock file says that this is a restore */
    bool cut_off;         /* and did so before: an earlier one had been cut off here */
    int fd, lock_fd;      /* -1: the lock isn't ours */
};

/* ---- may it be brought back there? ---- */

/* The first line of the lock file; empty: there is none, or it says nothing. */
static enum error read_line(struct restoring *r, char ret_line[LOCK_LINE_MAX + 1])
{
    char path[DIRECTORY_PATH_MAX + sizeof("/" LOCK_FILE)];
    snprintf(path, sizeof(path), "%s/" LOCK_FILE, r->into);
    ret_line[0] = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR || errno == ELOOP
                   ? OK
                   : saying_refuse_system(r->s, path, "opened");
    ssize_t size = pread(fd, ret_line, LOCK_LINE_MAX, 0);
    enum error e = size < 0 ? saying_refuse_system(r->s, path, "read") : OK;
    close(fd);
    ret_line[size > 0 ? size : 0] = 0;
    return e;
}

/* Into an empty directory, or one in which a restore was cut off: nobody has been told that there is a store. Before the lock said
 * anything at all, there was no data. */
static enum error restoring_look(struct restoring *r, bool *ret_missing)
{
    static const char *const none[] = {NULL}, *const begun[] = {LOCK_FILE, MAKING, NULL},
                             *const restored[] = {LOCK_FILE, MAKING, LOOK_DATA_FILE, READERS_FILE, NULL};
    char line[LOCK_LINE_MAX + 1];
    enum error e = read_line(r, line);
    if (e)
        return e;
    r->cut_off = strncmp(line, ENVIRONMENT_RESTORE_LINE, strlen(ENVIRONMENT_RESTORE_LINE)) == 0;
    return directory_vacant_but(r->into,
                                r->cut_off ? restored
                                : line[0]  ? none
                                           : begun,
                                ret_missing, r->s->text, r->s->size);
}

/* ---- its beginning, and how it is taken back ---- */

/* All that the lock file says. */
static bool restoring_say(struct restoring *r, const char *word)
{
    char line[LOCK_LINE_MAX];
    int size = snprintf(line, sizeof(line), "%s%s\n", word, r->identity);
    errno = ENOSPC; /* a short one says nothing */
    return pwrite(r->lock_fd, line, (size_t)size, 0) == size && ftruncate(r->lock_fd, size) == 0 &&
           fsync(r->lock_fd) == 0;
}

static bool absent(int result)
{
    return result == 0 || errno == ENOENT;
}

/* All but the lock, and what it says is true until that is on the disk. */
static bool restoring_clear(struct restoring *r)
{
    return absent(unlinkat(r->fd, LOOK_DATA_FILE, 0)) && absent(unlinkat(r->fd, READERS_FILE, 0)) &&
           absent(unlinkat(r->fd, MAKING "/" LOOK_DATA_FILE, 0)) &&
           absent(unlinkat(r->fd, MAKING "/" READERS_FILE, 0)) &&
           absent(unlinkat(r->fd, MAKING, AT_REMOVEDIR)) && fsync(r->fd) == 0;
}

/* Whether a data file that lies where a restore was cut off is what this one brings back, or is none. A server says first that it is a
 * store, but those of before this line had a meaning left it as it was: behind it may lie a store that somebody has written to. With the
 * lock nobody changes it. */
static enum error restoring_loses_nothing(struct restoring *r)
{
    char hex[BACKUP_SHA256_SIZE] = "";
    int fd = openat(r->fd, LOOK_DATA_FILE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        return OK;
    enum error e = OK;
    if (fd < 0 || !look_digest(fd, -1, hex))
        e = saying_refuse_system(r->s, r->into, "read");
    else if (strcmp(hex, r->sha256) != 0)
        e = saying_refuse(r->s, ERR_EXISTS,
                          "'%s' holds a store that an earlier restore has brought back, and that isn't what "
                          "this backup holds, or isn't any more; restore into another directory, or move "
                          "its " LOOK_DATA_FILE " away if nobody needs it",
                          r->into);
    if (fd >= 0)
        close(fd);
    return e;
}

/* Whoever made the file and then no store takes it away again: the one we have locked may have no name any more. */
static bool named_still(const struct stat *held, const struct stat *named)
{
    return held->st_ino == named->st_ino && held->st_dev == named->st_dev;
}

/* The lock of a store that isn't there yet keeps a server from making one meanwhile. */
static enum error restoring_lock(struct restoring *r)
{
    struct stat held, named = {.st_ino = 0};
    r->lock_fd = openat(r->fd, LOCK_FILE, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, LOOK_FILE_MODE);
    r->made_lock = r->lock_fd >= 0;
    if (r->lock_fd < 0 && errno == EEXIST)
        r->lock_fd = openat(r->fd, LOCK_FILE, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (r->lock_fd < 0)
        return saying_refuse_system(r->s, r->into, "written");
    bool taken = flock(r->lock_fd, LOCK_EX | LOCK_NB) == 0;
    if (!taken && errno != EWOULDBLOCK)
        return saying_refuse_system(r->s, r->into, "locked");
    if (fstat(r->lock_fd, &held) < 0 || !absent(fstatat(r->fd, LOCK_FILE, &named, AT_SYMLINK_NOFOLLOW)))
        return saying_refuse_system(r->s, r->into, "locked");
    if (taken && named_still(&held, &named))
        return OK;
    close(r->lock_fd);
    r->lock_fd = -1;
    return saying_refuse(r->s, ERR_IN_USE, "'%s' is in use: somebody else makes a store there", r->into);
}

/* From here on nobody makes a store of it but a restore, whatever becomes of this one: the lock file says so, and its name is on the disk,
 * before anything is beside it. */
static enum error restoring_begin(struct restoring *r)
{
    bool missing;
    enum error e = restoring_look(r, &missing);
    if (e)
        return e;
    if (missing && mkdir(r->into, LOOK_DIR_MODE) < 0)
        return saying_refuse_system(r->s, r->into, "made");
    r->made = missing;
    r->fd = open(r->into, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (r->fd < 0)
        return saying_refuse_system(r->s, r->into, "opened");
    e = restoring_lock(r);
    if (!e) /* with the lock nobody changes it */
        e = restoring_look(r, &missing);
    if (!e && r->cut_off)
        e = restoring_loses_nothing(r);
    if (e)
        return e;
    r->begun = true;
    if (!restoring_clear(r) || !restoring_say(r, ENVIRONMENT_RESTORE_LINE) || fsync(r->fd) < 0 ||
        (r->made && !directory_sync_parent(r->into)) || mkdirat(r->fd, MAKING, LOOK_DIR_MODE) < 0)
        return saying_refuse_system(r->s, r->into, "written");
    return OK;
}

/* As it was; but for what a restore before this one left, of which only the lock stays, to say so. */
static void restoring_undo(struct restoring *r)
{
    if (r->begun) {
        /* It names no store any more, whatever becomes of the rest. */
        if (!restoring_say(r, ENVIRONMENT_RESTORE_LINE))
            (void)!ftruncate(r->lock_fd, 0);
        (void)restoring_clear(r);
    }
    if (r->lock_fd >= 0 && !r->cut_off && (r->begun || r->made_lock))
        (void)unlinkat(r->fd, LOCK_FILE, 0);
    if (r->made)
        (void)rmdir(r->into);
}

/* ---- the copy ---- */

/* The bytes that are written are the bytes that were verified: they are hashed on their way. */
static enum error restoring_copy(struct restoring *r, int from_dir, const struct manifest *manifest)
{
    char hex[BACKUP_SHA256_SIZE] = "";
    int from = openat(from_dir, LOOK_DATA_FILE, O_RDONLY | O_CLOEXEC);
    int to =
        openat(r->fd, MAKING "/" LOOK_DATA_FILE, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, LOOK_FILE_MODE);
    enum error e = OK;
    if (from < 0 || to < 0 || !look_digest(from, to, hex) || fsync(to) < 0)
        e = saying_refuse_system(r->s, r->into, "written");
    else if (strcmp(hex, manifest->sha256) != 0)
        e = saying_refuse(r->s, ERR_DAMAGED, "the backup was changed while it was brought back");
    if (from >= 0)
        close(from);
    if (to >= 0)
        close(to);
    return e;
}

/* The lock file says whose store it is, as the first start would make it say: from then on a data file that is gone is
 * damage. So the store itself is kept before. */
static enum error restoring_publish(struct restoring *r)
{
    if (renameat(r->fd, MAKING "/" LOOK_DATA_FILE, r->fd, LOOK_DATA_FILE) < 0 ||
        unlinkat(r->fd, MAKING, AT_REMOVEDIR) < 0 || fsync(r->fd) < 0 ||
        (r->made && !directory_sync_parent(r->into)) || !restoring_say(r, ENVIRONMENT_LOCK_LINE))
        return saying_refuse_system(r->s, r->into, "kept");
    return OK;
}

static enum error bring_back(struct restoring *r, const char *dir, int dir_fd, const struct schema *schema,
                             struct manifest *ret_manifest)
{
    bool missing;
    enum error e = restoring_look(r, &missing);
    if (!e)
        e = verify_whole(r->s, dir, dir_fd, schema, ret_manifest);
    if (e)
        return e;
    snprintf(r->identity, sizeof(r->identity), "%s", ret_manifest->identity);
    snprintf(r->sha256, sizeof(r->sha256), "%s", ret_manifest->sha256);
    e = restoring_begin(r);
    if (!e)
        e = restoring_copy(r, dir_fd, ret_manifest);
    if (!e)
        e = restoring_publish(r);
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
        e = verify_open(&s, dir, path, &fd);
    if (e)
        return e;
    e = bring_back(&r, path, fd, schema, &manifest);
    close(fd);
    if (!e)
        *ret_report = manifest_report(&manifest);
    return e;
}
