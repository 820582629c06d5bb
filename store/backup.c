#define _GNU_SOURCE /* renameat2 */
#include "store/backup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/backup_copy.h"
#include "store/backup_manifest.h"
#include "store/directory.h"
#include "store/guest.h"

/* ---- DIR.partial ---- */

struct partial {
    struct saying *s;
    char to[DIRECTORY_PATH_MAX + 1];
    char path[DIRECTORY_PATH_MAX + sizeof(LOOK_PARTIAL)];
    int fd; /* of the directory, locked: nobody else makes a backup there */
};

static bool absent(int result)
{
    return result == 0 || errno == ENOENT;
}

static bool partial_clear(const struct partial *p)
{
    return absent(unlinkat(p->fd, LOOK_DATA_FILE, 0)) && absent(unlinkat(p->fd, MANIFEST_FILE, 0));
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
        return saying_refuse(p->s, ERR_EXISTS, "'%s' is there already; a backup goes into a new directory",
                             p->to);
    if (errno != ENOENT)
        return saying_refuse_system(p->s, p->to, "made");
    if (mkdir(p->path, LOOK_DIR_MODE) < 0 && errno != EEXIST)
        return saying_refuse_system(p->s, p->path, "made");
    p->fd = open(p->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (p->fd < 0)
        return saying_refuse_system(p->s, p->path, "opened");
    bool missing;
    enum error e = OK;
    bool locked = flock(p->fd, LOCK_EX | LOCK_NB) == 0;
    if (!locked && errno != EWOULDBLOCK)
        e = saying_refuse_system(p->s, p->path, "locked");
    else if (!locked || !partial_ours(p))
        e = saying_refuse(p->s, ERR_IN_USE, "'%s' is being written by another backup", p->path);
    else if (!partial_clear(p))
        e = saying_refuse_system(p->s, p->path, "emptied");
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
    int fd = openat(p->fd, MANIFEST_FILE, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, LOOK_FILE_MODE);
    ASSERT(size > 0);
    if (fd < 0)
        return saying_refuse_system(p->s, p->path, "written");
    bool good = look_write(fd, bytes, size) && fsync(fd) == 0;
    enum error e = good ? OK : saying_refuse_system(p->s, p->path, "written");
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
    return pread(fd, &page_size, sizeof(page_size), COPY_META_PAGE_SIZE_AT) == (ssize_t)sizeof(page_size) &&
           pread(fd, &ret_commits[0], sizeof(uint64_t), COPY_META_COMMIT_AT) == (ssize_t)sizeof(uint64_t) &&
           pread(fd, &ret_commits[1], sizeof(uint64_t), (off_t)page_size + COPY_META_COMMIT_AT) ==
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
    char path[DIRECTORY_PATH_MAX + sizeof(LOOK_DATA_FILE) + 1];
    snprintf(path, sizeof(path), "%s/" LOOK_DATA_FILE, dir);
    *pulse = (struct pulse){.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
}

static void pulse_close(struct pulse *pulse)
{
    if (pulse->fd >= 0)
        close(pulse->fd);
}

/* ---- reading it back ---- */

struct reading {
    char path[DIRECTORY_PATH_MAX + sizeof(LOOK_PARTIAL)]; /* in */
    int dir_fd;
    uint64_t bytes; /* out */
    char sha256[BACKUP_SHA256_SIZE];
};

/* In a child, for its priority. */
static enum error digest_work(void *shared, char *ret_text, size_t text_size)
{
    struct reading *reading = shared;
    struct saying s = {.text = ret_text, .size = text_size};
    struct stat stat;
    guest_last();
    int fd = openat(reading->dir_fd, LOOK_DATA_FILE, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &stat) < 0 || !look_digest(fd, -1, reading->sha256))
        return saying_refuse_system(&s, reading->path, "read back");
    reading->bytes = (uint64_t)stat.st_size;
    return OK;
}

/* So that what is read comes from the disk, and stays in nobody's way afterwards. */
static void forget_copy(const struct partial *p)
{
    int fd = openat(p->fd, LOOK_DATA_FILE, O_RDONLY | O_CLOEXEC);
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
    return e ? e : digest_error ? saying_refuse(p->s, digest_error, "%s", digest_text) : OK;
}

/* ---- making one ---- */

static enum error partial_publish(const struct partial *p)
{
    if (fsync(p->fd) < 0)
        return saying_refuse_system(p->s, p->path, "synced");
    int code = renameat2(AT_FDCWD, p->path, AT_FDCWD, p->to, RENAME_NOREPLACE);
    if (code < 0 && (errno == EINVAL || errno == ENOSYS)) /* a file system that doesn't know how */
        code = rename(p->path, p->to);
    if (code < 0 && errno == EEXIST)
        return saying_refuse(p->s, ERR_EXISTS, "'%s' was made by somebody else meanwhile", p->to);
    if (code < 0)
        return saying_refuse_system(p->s, p->to, "made");
    if (directory_sync_parent(p->to))
        return OK;
    enum error e = saying_refuse_system(p->s, p->to, "kept (syncing its parent)");
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

enum error backup_make(const char *dir, const char *to, const struct schema *schema, uint64_t wall_ns,
                       struct backup_report *ret_report, char *ret_text, size_t text_size)
{
    struct saying s = {.text = ret_text, .size = text_size};
    struct partial p = {.s = &s};
    struct manifest manifest = {.bytes = 0};
    enum error e = directory_path(to, p.to, ret_text, text_size);
    if (e)
        return e;
    snprintf(p.path, sizeof(p.path), "%s" LOOK_PARTIAL, p.to);
    e = partial_make(&p);
    if (e)
        return e;
    e = fill(&p, dir, schema, wall_ns, &manifest);
    if (e) {
        partial_drop(&p);
        return e;
    }
    close(p.fd);
    *ret_report = manifest_report(&manifest);
    return OK;
}
