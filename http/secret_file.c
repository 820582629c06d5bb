#include "http/secret_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/directory.h"

static enum error refuse(enum error e, const char *path, const char *what, char *ret_text, size_t text_size)
{
    if (e == ERR_SYSTEM)
        snprintf(ret_text, text_size, "'%s' %s: %s", path, what, strerror(errno));
    else
        snprintf(ret_text, text_size, "'%s' %s", path, what);
    return e;
}

/* A file of the folder in which the service manager gives us secrets (LoadCredential=): it is root's there, and an entry of
 * its ACL, whose mask shows as the group's bits, lets us read it. */
static bool is_credential(const char *path)
{
    const char *folder = getenv("CREDENTIALS_DIRECTORY");
    size_t length = folder ? strlen(folder) : 0;
    return length && strncmp(path, folder, length) == 0 && path[length] == '/' &&
           !strchr(path + length + 1, '/');
}

/* What is wrong with it, or NULL. */
static const char *defect_of(int fd, const char *path)
{
    struct stat stat;
    if (fstat(fd, &stat) || !S_ISREG(stat.st_mode))
        return "is not a file";
    if (is_credential(path) && (stat.st_uid == 0 || stat.st_uid == geteuid()))
        return stat.st_mode & 037 ? "can be read by others; its mode must be 0400 or 0440" : NULL;
    if (stat.st_uid != geteuid())
        return "belongs to another user";
    return stat.st_mode & 077 ? "can be read by others; its mode must be 0600" : NULL;
}

enum error secret_file_read(const char *path, void *bytes, size_t room, size_t *ret_size, char *ret_text,
                            size_t text_size)
{
    char more;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        return refuse(ERR_MISSING, path, "isn't there", ret_text, text_size);
    if (fd < 0)
        return refuse(errno == ELOOP ? ERR_FOREIGN : ERR_SYSTEM, path, "can't be opened", ret_text,
                      text_size);
    const char *defect = defect_of(fd, path);
    ssize_t size = defect ? 0 : read(fd, bytes, room);
    enum error e = defect || size < 0 ? ERR_FOREIGN : OK;
    if (!defect && size == (ssize_t)room && read(fd, &more, 1) == 1)
        defect = "is longer than it can be";
    close(fd);
    if (defect || e)
        return refuse(ERR_FOREIGN, path, defect ? defect : "can't be read", ret_text, text_size);
    *ret_size = (size_t)size;
    return OK;
}

static enum error write_new(const char *name, const void *bytes, size_t size)
{
    if (unlink(name) && errno != ENOENT)
        return ERR_SYSTEM;
    int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return ERR_SYSTEM;
    bool good = write(fd, bytes, size) == (ssize_t)size && fsync(fd) == 0;
    int code = errno;
    close(fd);
    if (good)
        return OK;
    unlink(name);
    errno = code;
    return ERR_SYSTEM;
}

enum error secret_file_write(const char *path, const void *bytes, size_t size, char *ret_text,
                             size_t text_size)
{
    char name[PATH_MAX];
    if (snprintf(name, sizeof(name), "%s.new", path) >= (int)sizeof(name))
        return refuse(ERR_INVALID, path, "is too long a path", ret_text, text_size);
    if (write_new(name, bytes, size) || rename(name, path) || !directory_sync_parent(path))
        return refuse(ERR_SYSTEM, path, "can't be written", ret_text, text_size);
    return OK;
}
