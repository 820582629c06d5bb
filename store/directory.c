#include "store/directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum error directory_refuse(int code, const char *path, const char *what, char *ret_text, size_t text_size)
{
    snprintf(ret_text, text_size, "'%s' can't be %s: %s", path, what, strerror(code));
    switch (code) {
    case EACCES:
    case EPERM:
    case EROFS:
        return ERR_NOT_WRITABLE;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return ERR_NO_SPACE;
    case ENOENT:
        return ERR_MISSING;
    case ENOTDIR:
        return ERR_FOREIGN;
    case EEXIST:
        return ERR_EXISTS;
    case EIO:
        return ERR_IO;
    case ENOMEM:
        return ERR_MEMORY;
    default:
        return ERR_SYSTEM;
    }
}

enum error directory_path(const char *path, char ret_path[DIRECTORY_PATH_MAX + 1], char *ret_text,
                          size_t text_size)
{
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    if (length == 0 || length > DIRECTORY_PATH_MAX) {
        snprintf(ret_text, text_size, "'%.80s' is not a name that a directory can have", path);
        return ERR_INVALID;
    }
    memcpy(ret_path, path, length);
    ret_path[length] = 0;
    return OK;
}

static bool among(const char *name, const char *const *names)
{
    while (*names && strcmp(name, *names) != 0)
        names++;
    return *names != NULL;
}

enum error directory_vacant(const char *path, bool *ret_missing, char *ret_text, size_t text_size)
{
    static const char *const none[] = {NULL};
    return directory_vacant_but(path, none, ret_missing, ret_text, text_size);
}

enum error directory_vacant_but(const char *path, const char *const *names, bool *ret_missing, char *ret_text,
                                size_t text_size)
{
    DIR *dir = opendir(path);
    if (!dir && errno == ENOENT) {
        *ret_missing = true;
        return OK;
    }
    if (!dir)
        return directory_refuse(errno, path, "listed", ret_text, text_size);
    enum error e = OK;
    struct dirent *entry;
    for (errno = 0; !e && (entry = readdir(dir)); errno = 0)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            !among(entry->d_name, names)) {
            snprintf(
                ret_text, text_size,
                "'%s' isn't empty ('%s' is in it); nothing there was touched, name an empty or a new one",
                path, entry->d_name);
            e = ERR_EXISTS;
        }
    int code = e ? 0 : errno; /* its end and a failure look alike otherwise */
    closedir(dir);
    *ret_missing = false;
    return code ? directory_refuse(code, path, "listed", ret_text, text_size) : e;
}

bool directory_sync_parent(const char *path)
{
    char parent[DIRECTORY_PATH_MAX + 2];
    const char *slash = strrchr(path, '/');
    if (!slash)
        snprintf(parent, sizeof(parent), ".");
    else
        snprintf(parent, sizeof(parent), "%.*s", slash == path ? 1 : (int)(slash - path), path);
    int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return false;
    int code = fsync(fd) < 0 ? errno : 0;
    close(fd);
    errno = code;
    return code == 0;
}
