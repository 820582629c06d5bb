/* The recorded disk: all that a store does to its files, below LMDB, as a log.
 *
 * A program that is linked with -Wl,--wrap for the calls of DISK_CALLS (Makefile) has its own calls and LMDB's go
 * through here. They reach the real file system, and while a recording runs, those below its base folder are entered
 * in the log, too, with the pages as the kernel's cache holds them afterwards. What of it would be on the platter
 * when the power goes is chaos/platter.h's question.
 *
 * Recording also plays the failing disk: a sync that fails (the kernel then forgets which pages were dirty, and
 * half of them never arrive), a write through O_DSYNC that fails though it arrived or because it didn't, and the
 * end of the process, after which none of its calls has an effect.
 *
 * For one thread. Memory: the log is mapped once, DISK_BYTES_MAX at most; a longer recording says it is full.
 */
#ifndef COPPICE_CHAOS_DISK_H
#define COPPICE_CHAOS_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DISK_PAGE        4096u
#define DISK_SECTOR      512u
#define DISK_ENTRIES_MAX (1u << 18)
#define DISK_BYTES_MAX   (512ull << 20)
#define DISK_FILES_MAX   64u
#define DISK_NAME_MAX    32u

enum disk_kind {
    DISK_WRITE,  /* pages of a file */
    DISK_SIZE,   /* a file's new size */
    DISK_SYNC,   /* of a file's data and size, or (of != 0) of the one write that was entered before it */
    DISK_LINK,   /* a name in a folder */
    DISK_UNLINK, /* and its end */
    DISK_RENAME,
    DISK_SYNC_NAMES, /* of a folder */
    DISK_MARK,       /* the program's own: what it was told, what it was promised */
};

enum disk_outcome {
    DISK_DONE,
    DISK_LOST,   /* a write through that failed and didn't arrive */
    DISK_LANDED, /* one that failed and did */
    DISK_HALF,   /* a sync that failed: half of the pages arrived, the others are forgotten */
};

struct disk_entry {
    uint8_t kind, outcome;
    bool through;     /* a write that is its own sync */
    bool made_folder; /* link: of a new folder */
    uint32_t file;
    uint32_t first, pages; /* write */
    uint32_t of;           /* sync: that write's index + 1; 0: of everything */
    uint64_t size;         /* write: where it ends; size: the new one */
    const uint8_t *bytes;  /* write: whole pages */
    uint32_t folder, to_folder;
    char name[DISK_NAME_MAX], to_name[DISK_NAME_MAX];
    uint32_t mark; /* mark: which; write: nonzero when the witness gave a value */
    uint64_t value;
};

struct disk_faults {
    uint32_t sync_fails, through_fails; /* of 1,000 */
    uint32_t room_fails;                /* of 1,000: a file has no room to grow (ENOSPC); what it is stays */
    int code;                           /* what failing calls say; 0: EIO */
    uint32_t times;                     /* after so many failures no more; 0: without end */
    uint32_t dies_after;                /* calls that change anything; 0: it lives */
};

/* What lies below the base already is entered as if it had been made, written and synced. */
bool disk_adopt(const char *base);
/* Empties the log and records what happens below base, an existing folder. */
bool disk_record(const char *base, uint64_t seed);
void disk_stop(void);
/* What lies below the base already is entered as if it had been made, written and synced. */
bool disk_adopt(const char *base);
/* Empties the log and goes on, for one who follows it (chaos/platter.h) and has nothing of it pending. */
void disk_forget(void);
/* Between these two calls go to the system unrecorded. */
void disk_pause(void);
void disk_resume(void);
/* From now on. The next call with dies_after 0 revives the process. */
void disk_fail(struct disk_faults faults);
bool disk_dead(void);
void disk_mark(uint32_t mark, uint64_t value);
/* Called, paused, when a write through O_DSYNC lies in the cache; may set entry->mark and value. */
void disk_witness(void (*witness)(int fd, struct disk_entry *entry));

const struct disk_entry *disk_log(uint32_t *ret_count);
bool disk_full(void);
uint64_t disk_failed_syncs(void);
uint64_t disk_failed_rooms(void);
/* Of any descriptor, since the process began. */
uint64_t disk_closes(void);
/* Called at each sync or write through that fails, with what it says. */
void disk_on_failure(void (*failed)(int code));
/* The file's number in the log; DISK_FILES_MAX: never seen. */
uint32_t disk_file(const char *path);

#endif
