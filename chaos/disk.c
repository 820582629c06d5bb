#include "chaos/disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "chaos/dice.h"

enum {
    FDS_MAX = 4096,
    NOT_OURS = -1,
    WINDOW_MIN = 16 * DISK_PAGE, /* smaller files are written so rarely that mapping them costs more */
    WINDOW_SIZE = 64 << 20,
};

static struct {
    bool on, full, dead, counting;
    uint32_t paused;
    struct dice dice;
    struct disk_faults faults;
    uint32_t calls_left;
    uint64_t failed_syncs, failed_rooms, closes;
    uint32_t times_left;
    void (*on_failure)(int);
    void (*witness)(int, struct disk_entry *);
    struct disk_entry *log;
    uint32_t count;
    uint8_t *bytes;
    size_t used;
    ino_t files[DISK_FILES_MAX]; /* 0: the file has gone */
    uint32_t files_count;
    int readers[DISK_FILES_MAX]; /* descriptors to read files by that are open for writing only; 0: none */
    uint8_t *windows[DISK_FILES_MAX]; /* a file of some size, mapped; NULL: it isn't */
    uint64_t sizes[DISK_FILES_MAX];   /* of those that are */
    void *adopted[DISK_FILES_MAX];    /* what files had in them before */
    size_t adopted_size[DISK_FILES_MAX];
    int16_t file_of[FDS_MAX];
    bool through[FDS_MAX], folder[FDS_MAX], sought[FDS_MAX];
    off_t offset[FDS_MAX]; /* where the next write goes; the system doesn't know of it yet (sought) */
} disk;

/* ---- the calls as the system has them ---- */

extern int __real_open(const char *path, int flags, ...);
extern int __real_openat(int dir, const char *path, int flags, ...);
extern int __real_close(int fd);
extern ssize_t __real_write(int fd, const void *bytes, size_t size);
extern ssize_t __real_pwrite(int fd, const void *bytes, size_t size, off_t at);
extern ssize_t __real_writev(int fd, const struct iovec *v, int count);
extern ssize_t __real_pwritev(int fd, const struct iovec *v, int count, off_t at);
extern off_t __real_lseek(int fd, off_t at, int whence);
extern ssize_t __real_read(int fd, void *bytes, size_t size);
extern int __real_fdatasync(int fd);
extern int __real_fsync(int fd);
extern int __real_ftruncate(int fd, off_t size);
extern int __real_fallocate(int fd, int mode, off_t at, off_t size);
extern int __real_posix_fallocate(int fd, off_t at, off_t size);
extern int __real_renameat(int from_dir, const char *from, int to_dir, const char *to);
extern int __real_mkdirat(int dir, const char *path, mode_t mode);
extern int __real_unlinkat(int dir, const char *path, int flags);

int __wrap_open(const char *path, int flags, ...);
int __wrap_openat(int dir, const char *path, int flags, ...);
int __wrap_close(int fd);
ssize_t __wrap_write(int fd, const void *bytes, size_t size);
ssize_t __wrap_pwrite(int fd, const void *bytes, size_t size, off_t at);
ssize_t __wrap_writev(int fd, const struct iovec *v, int count);
ssize_t __wrap_pwritev(int fd, const struct iovec *v, int count, off_t at);
off_t __wrap_lseek(int fd, off_t at, int whence);
ssize_t __wrap_read(int fd, void *bytes, size_t size);
int __wrap_fdatasync(int fd);
int __wrap_fsync(int fd);
int __wrap_ftruncate(int fd, off_t size);
int __wrap_fallocate(int fd, int mode, off_t at, off_t size);
int __wrap_posix_fallocate(int fd, off_t at, off_t size);
int __wrap_rename(const char *from, const char *to);
int __wrap_renameat(int from_dir, const char *from, int to_dir, const char *to);
int __wrap_mkdir(const char *path, mode_t mode);
int __wrap_mkdirat(int dir, const char *path, mode_t mode);
int __wrap_unlink(const char *path);
int __wrap_unlinkat(int dir, const char *path, int flags);
int __wrap_rmdir(const char *path);

/* ---- the log ---- */

static bool recording(void)
{
    return disk.on && disk.paused == 0;
}

static struct disk_entry *enter(enum disk_kind kind, uint32_t file)
{
    static struct disk_entry nowhere;
    if (disk.count == DISK_ENTRIES_MAX) {
        disk.full = true;
        return &nowhere;
    }
    struct disk_entry *entry = &disk.log[disk.count++];
    *entry = (struct disk_entry){.kind = (uint8_t)kind, .file = file};
    return entry;
}

static uint32_t file_number(ino_t inode)
{
    for (uint32_t i = 0; i < disk.files_count; i++)
        if (disk.files[i] == inode)
            return i;
    return DISK_FILES_MAX;
}

static uint32_t file_new(ino_t inode)
{
    uint32_t known = file_number(inode);
    if (known != DISK_FILES_MAX)
        return known;
    if (disk.files_count == DISK_FILES_MAX) {
        disk.full = true;
        return DISK_FILES_MAX - 1;
    }
    disk.files[disk.files_count] = inode;
    return disk.files_count++;
}

static void close_window(uint32_t file)
{
    if (disk.windows[file])
        (void)munmap(disk.windows[file], WINDOW_SIZE);
    disk.windows[file] = NULL;
}

static void close_readers(void)
{
    for (uint32_t i = 0; i < DISK_FILES_MAX; i++) {
        if (disk.readers[i])
            __real_close(disk.readers[i]);
        close_window(i);
    }
    memset(disk.readers, 0, sizeof(disk.readers));
}

bool disk_record(const char *base, uint64_t seed)
{
    struct stat stat;
    close_readers();
    if (!disk.log) {
        disk.log = mmap(NULL, DISK_ENTRIES_MAX * sizeof(*disk.log), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        disk.bytes = mmap(NULL, DISK_BYTES_MAX, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (disk.log == MAP_FAILED || disk.bytes == MAP_FAILED)
            return false;
    }
    if (lstat(base, &stat) < 0)
        return false;
    disk.dice = dice_of(seed);
    disk.count = 0;
    disk.used = 0;
    disk.files_count = 0;
    disk.failed_syncs = disk.failed_rooms = 0;
    disk.full = false;
    disk.paused = 0;
    memset(disk.file_of, 0xff, sizeof(disk.file_of));
    file_new(stat.st_ino); /* the base is file 0 */
    disk_fail((struct disk_faults){0});
    disk.on = true;
    return true;
}

void disk_stop(void)
{
    disk.on = false;
    disk_fail((struct disk_faults){0});
    close_readers();
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* Its bytes stay where they are, until the log is emptied. */
static bool adopt_bytes(int fd, uint32_t file, size_t size)
{
    void *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
    if (bytes == MAP_FAILED)
        return false;
    struct disk_entry *entry = enter(DISK_WRITE, file);
    entry->pages = (uint32_t)((size + DISK_PAGE - 1) / DISK_PAGE);
    entry->size = size;
    entry->bytes = disk.adopted[file] = bytes;
    disk.adopted_size[file] = size;
    return true;
}

static bool adopt_file(const char *path, uint32_t file)
{
    struct stat found;
    int fd = __real_open(path, O_RDONLY | O_CLOEXEC);
    bool good = fd >= 0 && fstat(fd, &found) == 0 &&
                (found.st_size == 0 || adopt_bytes(fd, file, (size_t)found.st_size));
    if (fd >= 0)
        __real_close(fd);
    enter(DISK_SYNC, file);
    return good;
}

static bool adopt_folder(const char *path, uint32_t folder);

static bool adopt_one(const char *path, uint32_t folder, const char *name)
{
    struct stat found;
    if (strlen(name) >= DISK_NAME_MAX || lstat(path, &found) < 0)
        return false;
    uint32_t file = file_new(found.st_ino);
    struct disk_entry *entry = enter(DISK_LINK, file);
    entry->folder = folder;
    entry->made_folder = S_ISDIR(found.st_mode);
    memcpy(entry->name, name, strlen(name) + 1);
    return S_ISDIR(found.st_mode) ? adopt_folder(path, file) : adopt_file(path, file);
}

/* In the order of names: what is recorded mustn't depend on a hash of the file system. */
static bool adopt_folder(const char *path, uint32_t folder)
{
    struct dirent **entries;
    int count = scandir(path, &entries, NULL, by_name);
    bool good = count >= 0;
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        char below[PATH_MAX];
        bool itself = strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
        if (good && !itself)
            good = (size_t)snprintf(below, sizeof(below), "%s/%s", path, name) < sizeof(below) &&
                   adopt_one(below, folder, name);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    enter(DISK_SYNC_NAMES, folder);
    return good;
}

bool disk_adopt(const char *base)
{
    return adopt_folder(base, 0) && !disk.full;
}

void disk_forget(void)
{
    for (uint32_t i = 0; i < disk.files_count; i++)
        if (disk.adopted[i]) {
            (void)munmap(disk.adopted[i], disk.adopted_size[i]);
            disk.adopted[i] = NULL;
        }
    disk.count = 0;
    disk.used = 0;
}

void disk_pause(void)
{
    disk.paused++;
}

void disk_resume(void)
{
    disk.paused--;
}

void disk_fail(struct disk_faults faults)
{
    disk.faults = faults;
    disk.dead = false;
    disk.counting = faults.dies_after > 0;
    disk.calls_left = faults.dies_after;
    disk.times_left = faults.times;
}

bool disk_dead(void)
{
    return disk.dead;
}

void disk_mark(uint32_t mark, uint64_t value)
{
    struct disk_entry *entry = enter(DISK_MARK, 0);
    entry->mark = mark;
    entry->value = value;
}

void disk_witness(void (*witness)(int fd, struct disk_entry *entry))
{
    disk.witness = witness;
}

const struct disk_entry *disk_log(uint32_t *ret_count)
{
    *ret_count = disk.count;
    return disk.log;
}

bool disk_full(void)
{
    return disk.full;
}

uint64_t disk_failed_syncs(void)
{
    return disk.failed_syncs;
}

uint64_t disk_failed_rooms(void)
{
    return disk.failed_rooms;
}

uint64_t disk_closes(void)
{
    return disk.closes;
}

void disk_on_failure(void (*failed)(int code))
{
    disk.on_failure = failed;
}

uint32_t disk_file(const char *path)
{
    struct stat found;
    return stat(path, &found) < 0 ? DISK_FILES_MAX : file_number(found.st_ino);
}

/* ---- the end of the process, and failing ---- */

/* Counts a call that changes something; true when the process is dead by now. */
static bool dead(void)
{
    if (!recording())
        return false;
    if (disk.counting && !disk.dead && disk.calls_left-- == 0)
        disk.dead = true;
    if (disk.dead)
        errno = EIO;
    return disk.dead;
}

static bool strikes(uint32_t of_thousand)
{
    if (of_thousand == 0 || (disk.faults.times && disk.times_left == 0) ||
        dice_below(&disk.dice, 1000) >= of_thousand)
        return false;
    disk.times_left -= disk.faults.times > 0;
    return true;
}

static int failing_code(void)
{
    return disk.faults.code ? disk.faults.code : EIO;
}

static void note_failure(void)
{
    disk.failed_syncs++;
    if (disk.on_failure)
        disk.on_failure(failing_code());
}

/* Growing a file of ours fails for want of room. */
static bool has_no_room(int file)
{
    if (file == NOT_OURS || !strikes(disk.faults.room_fails))
        return false;
    disk.failed_rooms++;
    errno = ENOSPC;
    return true;
}

/* ---- descriptors and names ---- */

static int file_at(int fd)
{
    return recording() && fd >= 0 && fd < FDS_MAX ? disk.file_of[fd] : NOT_OURS;
}

/* The folder that holds this name, as a number of ours, and the name in it. */
static bool place(int dir, const char *path, uint32_t *ret_folder, char name[DISK_NAME_MAX])
{
    struct stat found;
    char folder[PATH_MAX] = ".";
    const char *last = strrchr(path, '/');
    if (last && last != path)
        snprintf(folder, sizeof(folder), "%.*s", (int)(last - path), path);
    const char *part = last ? last + 1 : path;
    if (strlen(part) >= DISK_NAME_MAX || fstatat(dir, folder, &found, 0) < 0)
        return false;
    memcpy(name, part, strlen(part) + 1);
    *ret_folder = file_number(found.st_ino);
    return *ret_folder != DISK_FILES_MAX;
}

static bool exists(int dir, const char *path, ino_t *ret_inode)
{
    struct stat found;
    if (fstatat(dir, path, &found, AT_SYMLINK_NOFOLLOW) < 0)
        return false;
    *ret_inode = found.st_ino;
    return true;
}

static struct disk_entry *enter_name(enum disk_kind kind, uint32_t file, uint32_t folder, const char *name)
{
    struct disk_entry *entry = enter(kind, file);
    entry->folder = folder;
    memcpy(entry->name, name, DISK_NAME_MAX);
    return entry;
}

/* An opened file is ours when its name lies in a folder of ours. */
static void opened(int fd, int dir, const char *path, int flags, bool made)
{
    struct stat found;
    uint32_t folder;
    char name[DISK_NAME_MAX];
    if (fd < 0 || fd >= FDS_MAX || fstat(fd, &found) < 0)
        return;
    disk.file_of[fd] = NOT_OURS;
    disk.sought[fd] = false;
    if (made && place(dir, path, &folder, name)) {
        uint32_t file = file_new(found.st_ino);
        disk.file_of[fd] = (int16_t)file;
        enter_name(DISK_LINK, file, folder, name);
    } else if (file_number(found.st_ino) != DISK_FILES_MAX) {
        disk.file_of[fd] = (int16_t)file_number(found.st_ino);
    }
    disk.through[fd] = (flags & O_DSYNC) != 0;
    disk.folder[fd] = S_ISDIR(found.st_mode);
}

static int open_recorded(int dir, const char *path, int flags, mode_t mode)
{
    ino_t inode;
    if (!recording())
        return __real_openat(dir, path, flags, mode);
    bool made = (flags & O_CREAT) && !exists(dir, path, &inode);
    if (made && dead())
        return -1;
    int fd = __real_openat(dir, path, flags, mode);
    int code = errno;
    opened(fd, dir, path, flags, made);
    errno = code;
    return fd;
}

int __wrap_open(const char *path, int flags, ...)
{
    mode_t mode = 0;
    if (flags & O_CREAT) {
        va_list list;
        va_start(list, flags);
        mode = va_arg(list, mode_t);
        va_end(list);
    }
    return open_recorded(AT_FDCWD, path, flags, mode);
}

int __wrap_openat(int dir, const char *path, int flags, ...)
{
    mode_t mode = 0;
    if (flags & O_CREAT) {
        va_list list;
        va_start(list, flags);
        mode = va_arg(list, mode_t);
        va_end(list);
    }
    return open_recorded(dir, path, flags, mode);
}

int __wrap_close(int fd)
{
    if (fd >= 0 && fd < FDS_MAX) {
        disk.file_of[fd] = NOT_OURS;
        disk.sought[fd] = false;
    }
    disk.closes++;
    return __real_close(fd);
}

int __wrap_mkdirat(int dir, const char *path, mode_t mode)
{
    uint32_t folder;
    char name[DISK_NAME_MAX];
    ino_t inode;
    bool ours = recording() && place(dir, path, &folder, name);
    if (ours && dead())
        return -1;
    int code = __real_mkdirat(dir, path, mode);
    if (ours && code == 0 && exists(dir, path, &inode))
        enter_name(DISK_LINK, file_new(inode), folder, name)->made_folder = true;
    return code;
}

int __wrap_mkdir(const char *path, mode_t mode)
{
    return __wrap_mkdirat(AT_FDCWD, path, mode);
}

int __wrap_unlinkat(int dir, const char *path, int flags)
{
    uint32_t folder, file = DISK_FILES_MAX;
    char name[DISK_NAME_MAX];
    ino_t inode;
    bool ours = recording() && place(dir, path, &folder, name) && exists(dir, path, &inode);
    if (ours && dead())
        return -1;
    if (ours)
        file = file_number(inode);
    int code = __real_unlinkat(dir, path, flags);
    if (ours && code == 0) {
        enter_name(DISK_UNLINK, file, folder, name);
        if (file != DISK_FILES_MAX) {
            disk.files[file] = 0; /* the number of its inode may come back for another one */
            close_window(file);
        }
    }
    return code;
}

int __wrap_unlink(const char *path)
{
    return __wrap_unlinkat(AT_FDCWD, path, 0);
}

int __wrap_rmdir(const char *path)
{
    return __wrap_unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}

int __wrap_renameat(int from_dir, const char *from, int to_dir, const char *to)
{
    struct disk_entry names;
    ino_t inode;
    bool ours = recording() && place(from_dir, from, &names.folder, names.name) &&
                place(to_dir, to, &names.to_folder, names.to_name) && exists(from_dir, from, &inode);
    if (ours && dead())
        return -1;
    int code = __real_renameat(from_dir, from, to_dir, to);
    if (ours && code == 0) {
        struct disk_entry *entry = enter_name(DISK_RENAME, file_number(inode), names.folder, names.name);
        entry->to_folder = names.to_folder;
        memcpy(entry->to_name, names.to_name, DISK_NAME_MAX);
    }
    return code;
}

int __wrap_rename(const char *from, const char *to)
{
    return __wrap_renameat(AT_FDCWD, from, AT_FDCWD, to);
}

/* ---- writing ---- */

/* What a call writes: for one piece and for many. */
struct pieces {
    const struct iovec *v;
    int count;
};

static int reader_of(int fd, uint32_t file)
{
    char name[64];
    if (!disk.readers[file]) {
        snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
        disk.readers[file] = __real_open(name, O_RDONLY | O_CLOEXEC);
    }
    return disk.readers[file];
}

/* By the descriptor itself, or by another one when it is for writing only. */
static bool read_back(int fd, uint32_t file, uint8_t *bytes, size_t size, uint64_t at)
{
    if (disk.windows[file] && at + size <= disk.sizes[file]) {
        memcpy(bytes, disk.windows[file] + at, size);
        return true;
    }
    if (!disk.readers[file] && pread(fd, bytes, size, (off_t)at) >= 0)
        return true;
    return pread(reader_of(fd, file), bytes, size, (off_t)at) >= 0;
}

/* Whole pages are in the cache as they were given. */
static void gather(uint8_t *bytes, size_t size, const struct pieces *pieces)
{
    for (int i = 0; i < pieces->count && size > 0; i++) {
        size_t some = pieces->v[i].iov_len < size ? pieces->v[i].iov_len : size;
        memcpy(bytes, pieces->v[i].iov_base, some);
        bytes += some;
        size -= some;
    }
}

/* ---- the window: a file's pages in the cache, which are reached without the system ---- */

static uint8_t *window_open(int fd, uint32_t file)
{
    char name[64];
    struct stat found;
    if (fstat(fd, &found) < 0 || found.st_size < WINDOW_MIN)
        return NULL;
    snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
    int own = __real_open(name, O_RDWR | O_CLOEXEC); /* theirs may be for writing only */
    void *at = own < 0 ? MAP_FAILED : mmap(NULL, WINDOW_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, own, 0);
    if (own >= 0)
        __real_close(own);
    if (at == MAP_FAILED)
        return NULL;
    disk.sizes[file] = (uint64_t)found.st_size;
    (void)madvise(at, (size_t)found.st_size, MADV_POPULATE_WRITE);
    return disk.windows[file] = at;
}

/* A write within the file, which changes no more than bytes in the cache. False: it has to be the system's. */
static bool write_within(int fd, int file, uint64_t at, const struct pieces *pieces, ssize_t *ret_size)
{
    size_t size = 0;
    if (file == NOT_OURS || (!disk.windows[file] && !window_open(fd, (uint32_t)file)))
        return false;
    for (int i = 0; i < pieces->count; i++)
        size += pieces->v[i].iov_len;
    if (at + size > disk.sizes[file] || at + size > WINDOW_SIZE)
        return false;
    gather(disk.windows[file] + at, size, pieces);
    *ret_size = (ssize_t)size;
    return true;
}

static void note_size(int fd, int file)
{
    struct stat now;
    if (file != NOT_OURS && disk.windows[file] && fstat(fd, &now) == 0)
        disk.sizes[file] = (uint64_t)now.st_size;
}

static ssize_t write_at(int fd, int file, const struct pieces *pieces, uint64_t at)
{
    ssize_t size;
    if (write_within(fd, file, at, pieces, &size))
        return size;
    size = __real_pwritev(fd, pieces->v, pieces->count, (off_t)at);
    note_size(fd, file);
    return size;
}

/* The pages that a write touched, as they are in the cache now. */
static struct disk_entry *enter_write(int fd, uint32_t file, uint64_t at, uint64_t size,
                                      const struct pieces *pieces)
{
    uint64_t first = at / DISK_PAGE, pages = (at + size + DISK_PAGE - 1) / DISK_PAGE - first;
    size_t room = pages * DISK_PAGE;
    if (room > DISK_BYTES_MAX - disk.used) {
        disk.full = true;
        return NULL;
    }
    if (at % DISK_PAGE == 0 && size == room)
        gather(disk.bytes + disk.used, room, pieces);
    else if (!read_back(fd, file, disk.bytes + disk.used, room, first * DISK_PAGE))
        abort();
    struct disk_entry *entry = enter(DISK_WRITE, file);
    entry->first = (uint32_t)first;
    entry->pages = (uint32_t)pages;
    entry->size = at + size;
    entry->bytes = disk.bytes + disk.used;
    disk.used += room;
    return entry;
}

/* A write that came through or failed. Returns what the caller is told. */
static ssize_t written(int fd, int file, uint64_t at, ssize_t size, struct pieces pieces)
{
    if (file == NOT_OURS || size <= 0)
        return size;
    int code = errno;
    struct disk_entry *entry = enter_write(fd, (uint32_t)file, at, (uint64_t)size, &pieces);
    if (!entry || !disk.through[fd]) {
        errno = code;
        return size;
    }
    entry->through = true;
    uint32_t index = disk.count;
    if (disk.witness) {
        disk_pause();
        disk.witness(fd, entry);
        disk_resume();
    }
    bool fails = strikes(disk.faults.through_fails);
    struct disk_entry *sync = enter(DISK_SYNC, (uint32_t)file);
    sync->of = index;
    if (fails) {
        sync->outcome = dice_below(&disk.dice, 2) ? DISK_LANDED : DISK_LOST;
        note_failure();
    }
    errno = fails ? failing_code() : code;
    return fails ? -1 : size;
}

static struct iovec one_piece(const void *bytes, size_t size)
{
    return (struct iovec){.iov_base = (void *)(uintptr_t)bytes, .iov_len = size};
}

/* Where a file of ours is written next. */
static off_t offset_of(int fd)
{
    return disk.sought[fd] ? disk.offset[fd] : __real_lseek(fd, 0, SEEK_CUR);
}

/* The system hears of it when it has to know. */
static void seek_now(int fd)
{
    if (fd < 0 || fd >= FDS_MAX || !disk.sought[fd])
        return;
    disk.sought[fd] = false;
    (void)__real_lseek(fd, disk.offset[fd], SEEK_SET);
}

off_t __wrap_lseek(int fd, off_t at, int whence)
{
    if (file_at(fd) == NOT_OURS || whence != SEEK_SET || at < 0) {
        seek_now(fd);
        return __real_lseek(fd, at, whence);
    }
    disk.sought[fd] = true;
    return disk.offset[fd] = at;
}

ssize_t __wrap_read(int fd, void *bytes, size_t size)
{
    seek_now(fd);
    return __real_read(fd, bytes, size);
}

static ssize_t write_pieces_at(int fd, struct pieces pieces, off_t at)
{
    int file = file_at(fd);
    if (file != NOT_OURS && dead())
        return -1;
    return written(fd, file, (uint64_t)at, write_at(fd, file, &pieces, (uint64_t)at), pieces);
}

/* At the file's own place, which goes on by what is written. */
static ssize_t write_pieces(int fd, struct pieces pieces)
{
    if (file_at(fd) != NOT_OURS && dead())
        return -1;
    off_t at = offset_of(fd);
    ssize_t size = write_at(fd, file_at(fd), &pieces, (uint64_t)at);
    disk.sought[fd] = true;
    disk.offset[fd] = at + (size > 0 ? size : 0);
    return written(fd, file_at(fd), (uint64_t)at, size, pieces);
}

ssize_t __wrap_pwrite(int fd, const void *bytes, size_t size, off_t at)
{
    struct iovec piece = one_piece(bytes, size);
    return file_at(fd) == NOT_OURS ? __real_pwrite(fd, bytes, size, at)
                                   : write_pieces_at(fd, (struct pieces){&piece, 1}, at);
}

ssize_t __wrap_write(int fd, const void *bytes, size_t size)
{
    struct iovec piece = one_piece(bytes, size);
    if (file_at(fd) != NOT_OURS)
        return write_pieces(fd, (struct pieces){&piece, 1});
    seek_now(fd);
    return __real_write(fd, bytes, size);
}

ssize_t __wrap_writev(int fd, const struct iovec *v, int count)
{
    if (file_at(fd) != NOT_OURS)
        return write_pieces(fd, (struct pieces){v, count});
    seek_now(fd);
    return __real_writev(fd, v, count);
}

ssize_t __wrap_pwritev(int fd, const struct iovec *v, int count, off_t at)
{
    return file_at(fd) == NOT_OURS ? __real_pwritev(fd, v, count, at)
                                   : write_pieces_at(fd, (struct pieces){v, count}, at);
}

static void enter_size(int fd, int file, off_t before)
{
    struct stat now;
    if (file == NOT_OURS || fstat(fd, &now) < 0)
        return;
    disk.sizes[file] = (uint64_t)now.st_size;
    if (now.st_size != before)
        enter(DISK_SIZE, (uint32_t)file)->size = (uint64_t)now.st_size;
}

static off_t size_of(int fd)
{
    struct stat now;
    return fstat(fd, &now) == 0 ? now.st_size : 0;
}

int __wrap_ftruncate(int fd, off_t size)
{
    int file = file_at(fd);
    if (file != NOT_OURS && dead())
        return -1;
    off_t before = size_of(fd);
    if (size > before && has_no_room(file))
        return -1;
    int code = __real_ftruncate(fd, size);
    enter_size(fd, file, before);
    return code;
}

int __wrap_fallocate(int fd, int mode, off_t at, off_t size)
{
    int file = file_at(fd);
    if (file != NOT_OURS && dead())
        return -1;
    off_t before = size_of(fd);
    if (mode == 0 && has_no_room(file))
        return -1;
    int code = __real_fallocate(fd, mode, at, size);
    enter_size(fd, file, before);
    return code;
}

int __wrap_posix_fallocate(int fd, off_t at, off_t size)
{
    int file = file_at(fd);
    if (file != NOT_OURS && dead())
        return EIO;
    off_t before = size_of(fd);
    if (has_no_room(file))
        return ENOSPC;
    int code = __real_posix_fallocate(fd, at, size);
    enter_size(fd, file, before);
    return code;
}

/* ---- syncing ---- */

static int synced(int fd, int file)
{
    if (disk.folder[fd]) {
        enter(DISK_SYNC_NAMES, (uint32_t)file);
        return 0;
    }
    bool fails = strikes(disk.faults.sync_fails);
    struct disk_entry *entry = enter(DISK_SYNC, (uint32_t)file);
    if (!fails)
        return 0;
    entry->outcome = DISK_HALF;
    entry->value = dice_draw(&disk.dice);
    note_failure();
    errno = failing_code();
    return -1;
}

int __wrap_fdatasync(int fd)
{
    int file = file_at(fd);
    if (file == NOT_OURS)
        return recording() ? 0 : __real_fdatasync(fd);
    return dead() ? -1 : synced(fd, file);
}

int __wrap_fsync(int fd)
{
    int file = file_at(fd);
    if (file == NOT_OURS)
        return recording() ? 0 : __real_fsync(fd);
    return dead() ? -1 : synced(fd, file);
}
