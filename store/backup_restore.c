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

#define LOCK_FILE "coppice.lock"
#define MAKING    "new"

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
    if (missing && mkdir(r->into, LOOK_DIR_MODE) < 0)
        return saying_refuse_system(r->s, r->into, "made");
    r->made = missing;
    r->fd = open(r->into, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (r->fd < 0)
        return saying_refuse_system(r->s, r->into, "opened");
    r->lock_fd = openat(r->fd, LOCK_FILE, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, LOOK_FILE_MODE);
    if (r->lock_fd < 0 && errno != EEXIST)
        return saying_refuse_system(r->s, r->into, "written");
    if (r->lock_fd >= 0 && flock(r->lock_fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK)
            return saying_refuse_system(r->s, r->into, "locked");
        close(r->lock_fd);
        r->lock_fd = -1;
    }
    if (r->lock_fd < 0)
        return saying_refuse(r->s, ERR_IN_USE, "'%s' is in use: somebody else makes a store there", r->into);
    if (mkdirat(r->fd, MAKING, LOOK_DIR_MODE) < 0)
        return saying_refuse_system(r->s, r->into, "written");
    r->making = true;
    return OK;
}

/* As it was. */
static void restoring_undo(struct restoring *r)
{
    if (r->lock_fd >= 0)
        (void)!ftruncate(r->lock_fd, 0); /* it names no store any more, whatever becomes of the rest */
    if (r->making) {
        (void)unlinkat(r->fd, MAKING "/" LOOK_DATA_FILE, 0);
        (void)unlinkat(r->fd, MAKING, AT_REMOVEDIR);
        (void)unlinkat(r->fd, LOOK_DATA_FILE, 0);
    }
    if (r->lock_fd >= 0)
        (void)unlinkat(r->fd, LOCK_FILE, 0);
    if (r->made)
        (void)rmdir(r->into);
}

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
static bool restoring_name(struct restoring *r, const char *identity)
{
    int size = dprintf(r->lock_fd, ENVIRONMENT_LOCK_LINE "%s\n", identity);
    return size == (int)(strlen(ENVIRONMENT_LOCK_LINE) + strlen(identity) + 1) && fsync(r->lock_fd) == 0;
}

static enum error restoring_publish(struct restoring *r, const struct manifest *manifest)
{
    if (renameat(r->fd, MAKING "/" LOOK_DATA_FILE, r->fd, LOOK_DATA_FILE) < 0 ||
        unlinkat(r->fd, MAKING, AT_REMOVEDIR) < 0 || fsync(r->fd) < 0 ||
        (r->made && !directory_sync_parent(r->into)) || !restoring_name(r, manifest->identity))
        return saying_refuse_system(r->s, r->into, "kept");
    return OK;
}

static enum error bring_back(struct restoring *r, const char *dir, int dir_fd, const struct schema *schema,
                             struct manifest *ret_manifest)
{
    bool missing;
    enum error e = directory_vacant(r->into, &missing, r->s->text, r->s->size);
    if (!e)
        e = verify_whole(r->s, dir, dir_fd, schema, ret_manifest);
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
        e = verify_open(&s, dir, path, &fd);
    if (e)
        return e;
    e = bring_back(&r, path, fd, schema, &manifest);
    close(fd);
    if (!e)
        *ret_report = manifest_report(&manifest);
    return e;
}
