/* The platter: what is certainly on the disk at one point of a recording, and all that may be there as well.
 *
 * It steps through the log of chaos/disk.h. What was synced is durable; what was written since is pending: when the
 * power goes, of every page in it any version since the last sync may have arrived, in any order, whole or torn
 * between sectors of 512 bytes, and of every name any change since its folder was synced. A choice of these is a
 * crash state; building one in an image costs only the pages in which it differs from the state before.
 *
 * A dishonest platter ignores what a program did to be safe. It is how a campaign proves that it would notice.
 */
#ifndef COPPICE_CHAOS_PLATTER_H
#define COPPICE_CHAOS_PLATTER_H

#include "chaos/dice.h"
#include "chaos/disk.h"

#define PLATTER_PENDING_MAX 65536u
#define PLATTER_NAMES_MAX   256u
#define PLATTER_FILE_MAX    (32ull << 20)

enum platter_kind {
    PLATTER_HONEST,
    PLATTER_NO_DATA_SYNC,  /* syncs of data do nothing */
    PLATTER_NO_META_SYNC,  /* a write through waits for the next sync */
    PLATTER_NO_FIRST_SYNC, /* syncs of data do nothing while a store is being opened */
    PLATTER_KINDS,
};

/* One page of a write, or a new size. */
struct platter_piece {
    uint32_t file, entry, page;
    const uint8_t *bytes; /* NULL: a size */
    uint64_t size;        /* of the file, at least (a write) or exactly */
};

struct platter_name {
    uint32_t folder, file;
    char name[DISK_NAME_MAX];
};

struct platter_file {
    uint8_t *bytes;
    uint64_t size;
    bool folder;
};

struct platter {
    const struct disk_entry *log;
    enum platter_kind kind; /* set by the owner; honest to begin with */
    struct platter_file files[DISK_FILES_MAX];
    uint32_t pending_count, names_count, changes_count;
    struct platter_piece *pending;
    uint32_t watched; /* the file of the image */
    uint32_t touched_count;
    uint32_t *touched; /* its pages in which the image differs */
    bool opening;      /* set by the owner: a store is being opened just now */
    bool overflow;     /* more than the limits: its states say nothing */
    struct platter_name names[PLATTER_NAMES_MAX];
    struct disk_entry changes[PLATTER_NAMES_MAX]; /* of names, that aren't synced */
};

bool platter_create(struct platter *p, const struct disk_entry *log);
void platter_destroy(struct platter *p);
/* Entry `index` has happened, and come to its end. In order. */
void platter_step(struct platter *p, uint32_t index);
/* Whether the log may be emptied (disk_forget), because nothing that is pending has its bytes there. */
bool platter_holds_all(const struct platter *p);
/* All that was entered before `index` is durable by now (a dishonest disk forgets only so much). */
void platter_settle(struct platter *p, uint32_t index);

/* ---- choices: for each pending piece which of its 8 sectors arrived ---- */

struct platter_choice {
    uint8_t sectors[PLATTER_PENDING_MAX];
};
/* The first `count` pieces arrived. */
void platter_prefix(const struct platter *p, uint32_t count, struct platter_choice *ret);
void platter_subset(const struct platter *p, struct dice *dice, struct platter_choice *ret);
void platter_torn(const struct platter *p, struct dice *dice, struct platter_choice *ret);

/* ---- the image of one file, in a file of its own ---- */

struct platter_image {
    int fd;
    uint8_t *map; /* PLATTER_FILE_MAX, shared */
    uint64_t size;
};
/* From here on `image` follows this file; it holds what is durable now. */
bool platter_watch(struct platter *p, uint32_t file, struct platter_image *image);
void platter_build(struct platter *p, const struct platter_choice *choice, struct platter_image *image);

/* ---- everything, as folders and files below `into`, an empty folder ---- */

bool platter_build_tree(struct platter *p, const struct platter_choice *choice, struct dice *dice,
                        const char *into);

#endif
