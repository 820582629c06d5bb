#define _GNU_SOURCE
#include "tests/store/place.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/assert.h"

/* ---- directories ---- */

void place_make(char path[PLACE_PATH_MAX])
{
    snprintf(path, PLACE_PATH_MAX, "%s/coppice-test-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    ASSERT(mkdtemp(path));
    ASSERT(chmod(path, 0777) == 0);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

void place_remove(const char *path)
{
    (void)nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

const char *place_in(const char *dir, const char *name)
{
    static char paths[4][PLACE_PATH_MAX + NAME_MAX + 2];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
    return path;
}

/* ---- how they look ---- */

static struct {
    char *lines[64];
    size_t count;
    size_t skip;
} look;

static uint64_t hash_of(const char *path)
{
    uint64_t hash = 1469598103934665603u;
    size_t size;
    uint8_t *bytes = place_read(path, &size);
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * 1099511628211u;
    free(bytes);
    return hash;
}

static int look_at(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)type;
    (void)at;
    const char *name = path + look.skip;
    char **line = &look.lines[look.count++];
    ASSERT(look.count <= sizeof(look.lines) / sizeof(look.lines[0]));
    int size;
    if (S_ISREG(st->st_mode))
        size = asprintf(line, "%s mode %o owner %u size %lld changed %lld.%09ld hash %016llx\n", name,
                        st->st_mode, st->st_uid, (long long)st->st_size, (long long)st->st_mtim.tv_sec,
                        st->st_mtim.tv_nsec, access(path, R_OK) == 0 ? (unsigned long long)hash_of(path) : 0);
    else
        size = asprintf(line, "%s mode %o owner %u\n", name, st->st_mode, st->st_uid);
    ASSERT(size > 0);
    return 0;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

char *place_look(const char *path)
{
    look.count = 0;
    look.skip = strlen(path);
    (void)nftw(path, look_at, 16, FTW_PHYS);
    qsort(look.lines, look.count, sizeof(look.lines[0]), by_text);
    size_t size = 1;
    for (size_t i = 0; i < look.count; i++)
        size += strlen(look.lines[i]);
    char *text = calloc(size, 1), *end = text;
    ASSERT(text);
    for (size_t i = 0; i < look.count; i++) {
        end = stpcpy(end, look.lines[i]);
        free(look.lines[i]);
    }
    return text;
}

/* ---- files ---- */

void place_write(const char *path, const void *bytes, size_t size)
{
    FILE *f = fopen(path, "w");
    ASSERT(f);
    ASSERT(fwrite(bytes, 1, size, f) == size);
    ASSERT(fclose(f) == 0);
}

uint8_t *place_read(const char *path, size_t *ret_size)
{
    FILE *f = fopen(path, "r");
    ASSERT(f);
    ASSERT(fseek(f, 0, SEEK_END) == 0);
    size_t size = (size_t)ftell(f);
    rewind(f);
    uint8_t *bytes = malloc(size + 1);
    ASSERT(bytes);
    ASSERT(fread(bytes, 1, size, f) == size);
    fclose(f);
    *ret_size = size;
    return bytes;
}

void place_flip(const char *path, uint64_t offset)
{
    uint8_t byte;
    int fd = open(path, O_RDWR);
    ASSERT(fd >= 0 && pread(fd, &byte, 1, (off_t)offset) == 1);
    byte ^= 0x40;
    ASSERT(pwrite(fd, &byte, 1, (off_t)offset) == 1);
    close(fd);
}

/* ---- disks ---- */

static bool own_mounts(void)
{
    static bool own;
    if (!own && (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)) {
        printf("left out: no mounts of one's own on this machine (%s)\n", strerror(errno));
        return false;
    }
    own = true;
    return true;
}

bool place_mount(const char *path, uint64_t bytes)
{
    char options[64];
    snprintf(options, sizeof(options), "size=%llu,mode=0777", (unsigned long long)bytes);
    if (!own_mounts())
        return false;
    if (mount("none", path, "tmpfs", 0, options) == 0)
        return true;
    printf("left out: no disk can be mounted on this machine (%s)\n", strerror(errno));
    return false;
}

bool place_mount_read_only(const char *path)
{
    if (!own_mounts())
        return false;
    if (mount(path, path, NULL, MS_BIND, NULL) == 0 &&
        mount(path, path, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL) == 0)
        return true;
    printf("left out: nothing can be mounted read-only on this machine (%s)\n", strerror(errno));
    return false;
}

uint64_t place_fill(const char *path)
{
    static const uint8_t page[4096];
    uint64_t bytes = 0;
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    ASSERT(fd >= 0);
    for (ssize_t size; (size = write(fd, page, sizeof(page))) > 0;)
        bytes += (uint64_t)size;
    ASSERT(errno == ENOSPC);
    close(fd);
    return bytes;
}

/* ---- processes ---- */

int place_apart(int (*run)(void *arg), void *arg)
{
    fflush(NULL);
    pid_t pid = fork();
    ASSERT(pid >= 0);
    if (pid == 0) {
        int status = run(arg);
        fflush(NULL);
        _exit(status);
    }
    int status;
    while (waitpid(pid, &status, 0) < 0)
        ASSERT(errno == EINTR);
    return WIFSIGNALED(status) ? -1 - WTERMSIG(status) : WEXITSTATUS(status);
}
