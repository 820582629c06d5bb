#define _GNU_SOURCE
#include "chaos/platter.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ALL = 0xff, MANY_PAGES = 16 };

/* ---- what is durable ---- */

static bool room_for(struct platter *p, uint32_t file, uint64_t size)
{
    struct platter_file *f = &p->files[file];
    if (size > PLATTER_FILE_MAX) {
        p->overflow = true;
        return false;
    }
    if (!f->bytes) {
        f->bytes = mmap(NULL, PLATTER_FILE_MAX, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (f->bytes == MAP_FAILED)
            abort();
    }
    return true;
}

static void touch(struct platter *p, const struct platter_piece *piece)
{
    if (piece->file != p->watched || !p->touched)
        return;
    if (p->touched_count == PLATTER_PENDING_MAX * 2)
        p->overflow = true;
    else
        p->touched[p->touched_count++] = piece->page;
}

static void land(struct platter *p, const struct platter_piece *piece)
{
    struct platter_file *f = &p->files[piece->file];
    if (!piece->bytes) {
        if (room_for(p, piece->file, piece->size))
            f->size = piece->size;
        return;
    }
    if (!room_for(p, piece->file, (piece->page + 1ull) * DISK_PAGE))
        return;
    memcpy(f->bytes + (size_t)piece->page * DISK_PAGE, piece->bytes, DISK_PAGE);
    if (f->size < piece->size)
        f->size = piece->size;
    touch(p, piece);
}

/* Which pieces a sync is about, and what becomes of each. */
enum fate { STAYS, LANDS, LOST };

static enum fate fate_by_sync(const struct platter *p, const struct disk_entry *sync,
                              const struct platter_piece *piece)
{
    if (piece->file != sync->file)
        return STAYS;
    if (sync->of == 0) {
        if (p->kind == PLATTER_NO_DATA_SYNC || (p->kind == PLATTER_NO_FIRST_SYNC && p->opening))
            return STAYS;
        if (sync->outcome != DISK_HALF || !piece->bytes)
            return LANDS;
        struct dice coin = dice_of(sync->value ^ piece->page);
        return dice_below(&coin, 2) ? LANDS : LOST;
    }
    const struct disk_entry *write = &p->log[sync->of - 1];
    if (!piece->bytes || piece->page < write->first || piece->page >= write->first + write->pages ||
        p->kind == PLATTER_NO_META_SYNC)
        return STAYS;
    return sync->outcome == DISK_LOST ? LOST : LANDS;
}

static void step_sync(struct platter *p, const struct disk_entry *sync)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < p->pending_count; i++) {
        enum fate fate = fate_by_sync(p, sync, &p->pending[i]);
        if (fate == LANDS)
            land(p, &p->pending[i]);
        if (fate == STAYS)
            p->pending[kept++] = p->pending[i];
    }
    p->pending_count = kept;
}

void platter_settle(struct platter *p, uint32_t index)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < p->pending_count; i++) {
        if (p->pending[i].entry < index)
            land(p, &p->pending[i]);
        else
            p->pending[kept++] = p->pending[i];
    }
    p->pending_count = kept;
}

/* ---- names ---- */

struct naming {
    struct platter_name *names;
    uint32_t *count;
};

static void name_remove(struct naming n, uint32_t folder, const char *name)
{
    for (uint32_t i = 0; i < *n.count; i++)
        if (n.names[i].folder == folder && strcmp(n.names[i].name, name) == 0) {
            n.names[i] = n.names[--*n.count];
            return;
        }
}

static void name_add(struct naming n, uint32_t folder, const char *name, uint32_t file)
{
    name_remove(n, folder, name);
    if (*n.count == PLATTER_NAMES_MAX)
        abort();
    struct platter_name *added = &n.names[(*n.count)++];
    added->folder = folder;
    added->file = file;
    memcpy(added->name, name, DISK_NAME_MAX);
}

static void name_change(struct naming n, const struct disk_entry *entry)
{
    if (entry->kind != DISK_LINK)
        name_remove(n, entry->folder, entry->name);
    if (entry->kind == DISK_LINK)
        name_add(n, entry->folder, entry->name, entry->file);
    if (entry->kind == DISK_RENAME)
        name_add(n, entry->to_folder, entry->to_name, entry->file);
}

static void step_names(struct platter *p, const struct disk_entry *sync)
{
    uint32_t kept = 0;
    struct naming durable = {p->names, &p->names_count};
    for (uint32_t i = 0; i < p->changes_count; i++) {
        const struct disk_entry *entry = &p->changes[i];
        bool here =
            entry->folder == sync->file || (entry->kind == DISK_RENAME && entry->to_folder == sync->file);
        if (here)
            name_change(durable, entry);
        else
            p->changes[kept++] = p->changes[i];
    }
    p->changes_count = kept;
}

/* ---- stepping ---- */

static void pend(struct platter *p, struct platter_piece piece)
{
    if (p->pending_count == PLATTER_PENDING_MAX)
        p->overflow = true;
    else
        p->pending[p->pending_count++] = piece;
}

/* A whole file at once: its memory comes at once, too, instead of a fault for each page. */
static void prepare(struct platter *p, const struct disk_entry *entry)
{
    size_t size = (size_t)entry->pages * DISK_PAGE, at = (size_t)entry->first * DISK_PAGE;
    if (entry->pages >= MANY_PAGES && room_for(p, entry->file, at + size))
        (void)madvise(p->files[entry->file].bytes + at, size, MADV_POPULATE_WRITE);
}

static void step_write(struct platter *p, uint32_t index, const struct disk_entry *entry)
{
    prepare(p, entry);
    for (uint32_t i = 0; i < entry->pages; i++) {
        uint64_t end = (entry->first + i + 1ull) * DISK_PAGE;
        pend(p, (struct platter_piece){.file = entry->file,
                                       .entry = index,
                                       .page = entry->first + i,
                                       .bytes = entry->bytes + (size_t)i * DISK_PAGE,
                                       .size = entry->size < end ? entry->size : end});
    }
}

void platter_step(struct platter *p, uint32_t index)
{
    const struct disk_entry *entry = &p->log[index];
    switch ((enum disk_kind)entry->kind) {
    case DISK_WRITE:
        step_write(p, index, entry);
        break;
    case DISK_SIZE:
        pend(p, (struct platter_piece){.file = entry->file, .entry = index, .size = entry->size});
        break;
    case DISK_SYNC:
        step_sync(p, entry);
        break;
    case DISK_LINK:
    case DISK_UNLINK:
    case DISK_RENAME:
        if (entry->file < DISK_FILES_MAX && entry->made_folder)
            p->files[entry->file].folder = true;
        if (p->changes_count == PLATTER_NAMES_MAX)
            p->overflow = true;
        else
            p->changes[p->changes_count++] = *entry;
        break;
    case DISK_SYNC_NAMES:
        step_names(p, entry);
        break;
    case DISK_MARK:
        break;
    }
}

bool platter_holds_all(const struct platter *p)
{
    for (uint32_t i = 0; i < p->pending_count; i++)
        if (p->pending[i].bytes)
            return false;
    return true;
}

bool platter_create(struct platter *p, const struct disk_entry *log)
{
    memset(p, 0, offsetof(struct platter, names)); /* the counts say how much of the rest is there */
    p->log = log;
    p->watched = DISK_FILES_MAX;
    p->files[0].folder = true;
    p->pending = malloc(PLATTER_PENDING_MAX * sizeof(*p->pending));
    return p->pending != NULL;
}

void platter_destroy(struct platter *p)
{
    for (uint32_t i = 0; i < DISK_FILES_MAX; i++)
        if (p->files[i].bytes)
            munmap(p->files[i].bytes, PLATTER_FILE_MAX);
    free(p->pending);
    free(p->touched);
}

/* ---- choices ---- */

void platter_prefix(const struct platter *p, uint32_t count, struct platter_choice *ret)
{
    for (uint32_t i = 0; i < p->pending_count; i++)
        ret->sectors[i] = i < count ? ALL : 0;
}

void platter_subset(const struct platter *p, struct dice *dice, struct platter_choice *ret)
{
    uint32_t dense = 1 + dice_below(dice, 7);
    for (uint32_t i = 0; i < p->pending_count; i++)
        ret->sectors[i] = dice_below(dice, 8) < dense ? ALL : 0;
}

/* Nothing, everything, a beginning, or any sectors. */
static uint8_t tear(struct dice *dice, uint32_t dense)
{
    uint32_t how = dice_below(dice, 8);
    if (how == 0)
        return (uint8_t)dice_draw(dice);
    if (how > dense)
        return 0;
    return (uint8_t)(ALL >> dice_below(dice, 9));
}

void platter_torn(const struct platter *p, struct dice *dice, struct platter_choice *ret)
{
    uint32_t dense = 1 + dice_below(dice, 7);
    for (uint32_t i = 0; i < p->pending_count; i++)
        ret->sectors[i] = tear(dice, dense);
}

/* ---- the image ---- */

bool platter_watch(struct platter *p, uint32_t file, struct platter_image *image)
{
    p->watched = file;
    p->touched_count = 0;
    free(p->touched);
    p->touched = malloc(2 * PLATTER_PENDING_MAX * sizeof(*p->touched));
    if (!p->touched || !room_for(p, file, 0) || ftruncate(image->fd, 0) < 0)
        return false;
    image->size = p->files[file].size;
    if (ftruncate(image->fd, (off_t)image->size) < 0)
        return false;
    memcpy(image->map, p->files[file].bytes, image->size);
    return true;
}

static void image_size(struct platter_image *image, uint64_t size)
{
    if (image->size != size && ftruncate(image->fd, (off_t)size) < 0)
        abort();
    image->size = size;
}

static void image_page(const struct platter *p, struct platter_image *image, uint32_t page)
{
    const uint8_t *bytes = p->files[p->watched].bytes;
    uint64_t at = (uint64_t)page * DISK_PAGE;
    if (at < image->size) /* a page that the file's end cuts is whole in memory */
        memcpy(image->map + at, bytes + at, DISK_PAGE);
}

static void image_sectors(struct platter_image *image, const struct platter_piece *piece, uint8_t sectors)
{
    uint8_t *to = image->map + (size_t)piece->page * DISK_PAGE;
    if (sectors == ALL) {
        memcpy(to, piece->bytes, DISK_PAGE);
        return;
    }
    for (uint32_t s = 0; s < DISK_PAGE / DISK_SECTOR; s++)
        if (sectors >> s & 1)
            memcpy(to + s * DISK_SECTOR, piece->bytes + s * DISK_SECTOR, DISK_SECTOR);
}

static uint64_t chosen_size(const struct platter *p, uint32_t file, const struct platter_choice *choice)
{
    uint64_t size = p->files[file].size;
    for (uint32_t i = 0; i < p->pending_count; i++) {
        const struct platter_piece *piece = &p->pending[i];
        if (piece->file == file && choice->sectors[i] && (!piece->bytes || piece->size > size))
            size = piece->size;
    }
    return size;
}

void platter_build(struct platter *p, const struct platter_choice *choice, struct platter_image *image)
{
    uint64_t durable = p->files[p->watched].size, before = image->size;
    if (before < durable)
        image_size(image, durable);
    for (uint32_t i = 0; i < p->touched_count; i++)
        image_page(p, image, p->touched[i]);
    for (uint64_t at = before; at < durable; at += DISK_PAGE)
        image_page(p, image, (uint32_t)(at / DISK_PAGE));
    p->touched_count = 0;
    uint64_t size = chosen_size(p, p->watched, choice);
    image_size(image, size);
    for (uint32_t i = 0; i < p->pending_count; i++) {
        const struct platter_piece *piece = &p->pending[i];
        if (piece->file != p->watched || !choice->sectors[i] || !piece->bytes ||
            (uint64_t)piece->page * DISK_PAGE >= size)
            continue;
        image_sectors(image, piece, choice->sectors[i]);
        touch(p, piece);
    }
}

/* ---- the tree ---- */

/* The sectors that arrived, one run after the other. */
static bool write_sectors(int fd, const struct platter_piece *piece, uint8_t sectors)
{
    uint64_t at = (uint64_t)piece->page * DISK_PAGE;
    if (sectors == ALL)
        return pwrite(fd, piece->bytes, DISK_PAGE, (off_t)at) == DISK_PAGE;
    for (uint32_t s = 0; s < DISK_PAGE / DISK_SECTOR; s++)
        if ((sectors >> s & 1) && pwrite(fd, piece->bytes + s * DISK_SECTOR, DISK_SECTOR,
                                         (off_t)(at + s * DISK_SECTOR)) != DISK_SECTOR)
            return false;
    return true;
}

static bool write_pieces(const struct platter *p, const struct platter_choice *choice, uint32_t file,
                         uint64_t size, int fd)
{
    for (uint32_t i = 0; i < p->pending_count; i++) {
        const struct platter_piece *piece = &p->pending[i];
        if (piece->file == file && piece->bytes && (uint64_t)piece->page * DISK_PAGE < size &&
            !write_sectors(fd, piece, choice->sectors[i]))
            return false;
    }
    return true;
}

static bool write_file(struct platter *p, const struct platter_choice *choice, uint32_t file,
                       const char *path)
{
    const struct platter_file *f = &p->files[file];
    uint64_t size = chosen_size(p, file, choice), durable = f->size < size ? f->size : size;
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool good = fd >= 0 && (!f->bytes || pwrite(fd, f->bytes, durable, 0) == (ssize_t)durable) &&
                write_pieces(p, choice, file, size, fd) && ftruncate(fd, (off_t)size) == 0;
    return fd >= 0 && close(fd) == 0 && good;
}

static bool write_folder(struct platter *p, const struct platter_choice *choice, struct naming n,
                         uint32_t folder, const char *path)
{
    char below[PATH_MAX];
    for (uint32_t i = 0; i < *n.count; i++) {
        const struct platter_name *name = &n.names[i];
        if (name->folder != folder || name->file >= DISK_FILES_MAX)
            continue;
        if ((size_t)snprintf(below, sizeof(below), "%s/%s", path, name->name) >= sizeof(below))
            return false;
        if (p->files[name->file].folder
                ? mkdir(below, 0700) < 0 || !write_folder(p, choice, n, name->file, below)
                : !write_file(p, choice, name->file, below))
            return false;
    }
    return true;
}

/* Of the changes of names a beginning, or any of them: a journal keeps their order, POSIX doesn't ask for it. */
bool platter_build_tree(struct platter *p, const struct platter_choice *choice, struct dice *dice,
                        const char *into)
{
    struct platter_name *names = malloc(sizeof(p->names));
    uint32_t count = p->names_count;
    if (!names)
        return false;
    memcpy(names, p->names, sizeof(p->names));
    bool ordered = dice_below(dice, 2);
    uint32_t cut = dice_below(dice, p->changes_count + 1);
    for (uint32_t i = 0; i < p->changes_count; i++)
        if (ordered ? i < cut : dice_below(dice, 2))
            name_change((struct naming){names, &count}, &p->changes[i]);
    bool good = write_folder(p, choice, (struct naming){names, &count}, 0, into);
    free(names);
    return good;
}
