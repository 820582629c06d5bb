#include "store/backup_verify.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/backup_look.h"
#include "store/guest.h"

static enum error verify_bytes(struct saying *s, const char *dir, int dir_fd, const struct manifest *manifest)
{
    struct stat stat;
    char hex[BACKUP_SHA256_SIZE];
    int fd = openat(dir_fd, LOOK_DATA_FILE, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return saying_refuse(s, ERR_DAMAGED, "'%s' has lost its " LOOK_DATA_FILE, dir);
    enum error e = OK;
    if (fd < 0 || fstat(fd, &stat) < 0)
        e = saying_refuse_system(s, dir, "read");
    else if (!S_ISREG(stat.st_mode) || (uint64_t)stat.st_size != manifest->bytes)
        e = saying_refuse(s, ERR_DAMAGED,
                          "'%s' is damaged: " LOOK_DATA_FILE " has %lld bytes, the manifest says %llu", dir,
                          (long long)stat.st_size, (unsigned long long)manifest->bytes);
    else if (!look_digest(fd, -1, hex))
        e = saying_refuse_system(s, dir, "read");
    else if (strcmp(hex, manifest->sha256) != 0)
        e = saying_refuse(s, ERR_DAMAGED,
                          "'%s' is damaged: the SHA-256 of " LOOK_DATA_FILE " is %s, the manifest says %s",
                          dir, hex, manifest->sha256);
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
        return saying_refuse(
            s, ERR_DAMAGED,
            "'%s' is damaged: it holds commit %llu of store %s with %llu rows, the manifest says "
            "otherwise",
            dir, (unsigned long long)look.format.commit, identity, (unsigned long long)look.rows);
    return OK;
}

enum error verify_whole(struct saying *s, const char *dir, int dir_fd, const struct schema *schema,
                        struct manifest *ret_manifest)
{
    enum error e = manifest_read(s, dir, dir_fd, ret_manifest);
    if (!e && ret_manifest->format > schema->format)
        e = saying_refuse(s, ERR_NEWER, "'%s' is of format %llu, this program knows up to %u", dir,
                          (unsigned long long)ret_manifest->format, (unsigned)schema->format);
    if (!e)
        e = verify_bytes(s, dir, dir_fd, ret_manifest);
    return e ? e : verify_state(s, dir, schema, ret_manifest);
}

enum error verify_open(struct saying *s, const char *dir, char path[DIRECTORY_PATH_MAX + 1], int *ret_fd)
{
    enum error e = directory_path(dir, path, s->text, s->size);
    if (e)
        return e;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return saying_refuse(s, ERR_MISSING, "'%s' doesn't exist; there is no backup", path);
    if (fd < 0)
        return saying_refuse_system(s, path, "opened");
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
    enum error e = verify_open(&s, dir, path, &fd);
    if (e)
        return e;
    e = verify_whole(&s, path, fd, schema, &manifest);
    close(fd);
    if (!e)
        *ret_report = manifest_report(&manifest);
    return e;
}
