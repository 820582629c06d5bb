/* The environment: one data directory, its files, its lock, and LMDB's map over it.
 *
 *     DIR/coppice.lock   held exclusively by the one process (and the one opener in it) that may write;
 *                        says in one line whose store it is, once there is one
 *     DIR/data.mdb       LMDB 0.9; Debian's mdb_stat, mdb_dump and mdb_copy read it. A copy by mdb_copy is a store; one
 *                        by mdb_copy -c is refused as damaged: it is numbered 1, its stamp says a later commit
 *     DIR/lock.mdb       LMDB's table of readers
 *     DIR/new/           a store in the making, or being restored; only until it is renamed
 *
 * A directory that doesn't exist is made, an empty one is used. A store comes into being in DIR/new, complete
 * and synced, and is then renamed; so whatever happens, there is no half-made one, and a missing or empty
 * data.mdb beside a lock that names a store is damage and never a reason to start empty. A directory with other
 * things in it is refused and not touched. A restore (store/backup.h) says in the lock file, before anything else, what
 * it brings back: a directory in which it was cut off is refused for as long as there is no data.mdb.
 *
 * The store's own flags are MDB_NOTLS and nothing else: no WRITEMAP, NOSYNC, NOMETASYNC, MAPASYNC, NOLOCK, ever. After
 * opening, and before the first write, everything is synced by force: what a failed sync of an earlier process
 * left in the kernel's hands is then on the disk, or we stay down.
 *
 * Space. The file is allocated ahead of its use in steps, so that a commit seldom has to make it grow, and a
 * full disk is met between commits. `reserve` bytes of what is allocated are for commands that clean up; the
 * others get ERR_NO_SPACE before they touch it. The map grows between transactions by doubling, up to map_max.
 *
 * Functions that touch the disk block; only the writer calls them, at boot and between transactions.
 */
#ifndef COPPICE_STORE_ENVIRONMENT_H
#define COPPICE_STORE_ENVIRONMENT_H

#include <lmdb.h>
#include <stdatomic.h>

#include "runtime/error.h"
#include "store/meta.h"
#include "store/schema.h"

struct environment_options {
    const char *dir;
    uint64_t map;     /* bytes of address space to begin with; 0: 1 GiB */
    uint64_t map_max; /* the store never grows beyond; 0: 256 GiB */
    uint64_t step;    /* the file is allocated in steps of this; 0: 32 MiB; at least 64 KiB */
    uint64_t reserve; /* of what is allocated, for clean-up; 0: 16 MiB */
    uint64_t
        whole_max; /* bytes in use up to which opening looks at all of them; 0: 64 MiB (store/leaves.h) */
    uint32_t views_max; /* open at one time in all processes; 0: 1,024 */
    bool must_exist;    /* ERR_MISSING instead of making one */
    uint8_t birth[32];  /* chance for a new store: identity and secret */
    bool guest;         /* read only, beside a living server or none; no lock of ours, nothing is written */
};

struct leaves;
struct image;

struct environment {
    MDB_env *mdb;
    struct leaves *leaves; /* of a large file: what opening hasn't looked at; else NULL */
    struct image *image;   /* with which the rest is looked at; NULL until then */
    MDB_dbi tables[SCHEMA_TABLES_MAX];
    uint64_t seeds[SCHEMA_TABLES_MAX]; /* of their values' checksums */
    char dir[4096];
    struct environment_options options;
    struct meta_format format; /* what the store said of itself when it was opened */
    int lock_fd, dir_fd;
    int data_fd; /* LMDB's own descriptor */
    int process; /* the opener; a fork has no business here */
    uint32_t page_size;
    uint64_t map; /* bytes mapped */
    uint64_t
        allocated; /* bytes of the file that have blocks on the disk; written by the writer, shown by the keeper */
    uint64_t
        zeroed;    /* up to here the blocks were written, too; a first write into others costs a sync more */
    uint64_t used; /* at the last look */
    uint64_t
        fallow_txn; /* which commit the writer's own reader sees (store/fallow.h), 0: none; written and shown as `allocated` */
    bool limited; /* the map ends with the file */
    bool
        tight; /* the last allocation failed: the disk is full, or map_max is reached; written and shown as that */
};

/* Whether a store may be in this directory, which is there, by the names in it alone: ERR_FOREIGN when they are somebody else's, or a
 * backup's. environment_open looks further. */
enum error environment_suits(const char *dir, char *ret_text, size_t text_size);

/* Whether the directory still leads to the data file that is open here. False: that one was removed or moved away, or another lies in its
 * place, so a process that starts later doesn't find what this one commits. What can't be looked at counts as there. */
bool environment_there(const struct environment *environment);

/* Whether a store is or was going to be in this directory: our lock file lies there. */
bool environment_claimed(const char *dir);

/* What the lock file says once there is a store: this, its identity and a newline. */
#define ENVIRONMENT_LOCK_LINE "coppice store "
/* And while one is being restored. Once data.mdb is there, it is complete. */
#define ENVIRONMENT_RESTORE_LINE "coppice restore "

/* How opening fails, each with the exit status of a program that can do nothing else. */
#define ENVIRONMENT_ERRORS(X)                  \
    X(ERR_IN_USE, 75)       /* EX_TEMPFAIL */  \
    X(ERR_FOREIGN, 73)      /* EX_CANTCREAT */ \
    X(ERR_NOT_WRITABLE, 77) /* EX_NOPERM */    \
    X(ERR_NO_SPACE, 74)     /* EX_IOERR */     \
    X(ERR_NEWER, 78)        /* EX_CONFIG */    \
    X(ERR_DAMAGED, 65)      /* EX_DATAERR */   \
    X(ERR_MISSING, 66)      /* EX_NOINPUT */   \
    X(ERR_IO, 74)           /* EX_IOERR */     \
    X(ERR_MEMORY, 71)       /* EX_OSERR */     \
    X(ERR_SYSTEM, 71)
int environment_exit_status(enum error e);

/* Opens, makes or refuses; the sentence says which directory, what is wrong and what would help. A refused
 * directory is as it was. */
enum error environment_open(const struct environment_options *options, const struct schema *schema,
                            struct environment *ret_environment, char *ret_text, size_t text_size);
void environment_close(struct environment *environment);
/* Before the first write: looks at all that opening a large file has left out (store/leaves.h), in the file's order of
 * trees; 1 GiB takes half a second when it is in memory. Between each few pages it calls `rest` (may be NULL), in which
 * other actors may run and the caller may even end: then whoever comes next begins anew. OK, at once when there is nothing
 * left; ERR_DAMAGED and a sentence: nothing may be written, what is read is still looked at each time; ERR_IO, ERR_MEMORY. */
enum error environment_believe(struct environment *environment, void (*rest)(void *arg), void *arg,
                               char *ret_text, size_t text_size);
/* Which store this is: chosen when it was made, kept by its backups. */
enum error environment_identity(struct environment *environment, struct uuid *ret_identity);

/* ---- between transactions, by the writer ---- */

/* Makes sure that so many bytes, and half a step at least, are allocated beyond what is used: by steps, and at no cost
 * when they are. ERR_NO_SPACE when the disk is full (tight is set; asked again next time), ERR_IO. */
enum error environment_allocate(struct environment *environment, uint64_t bytes);
/* Bytes of the file up to its last page in use. */
uint64_t environment_used(const struct environment *environment);
/* Bytes in LMDB's list of free pages, as this transaction sees it; reads all of it. */
uint64_t environment_free(const struct environment *environment, MDB_txn *txn);
/* Bytes that are allocated beyond what is used. */
uint64_t environment_ahead(const struct environment *environment);
/* When tight, the map ends where the allocated file does, so that a full disk is a full map and LMDB never writes into
 * nowhere; otherwise it is as large as it was. No transaction may be open in this process. */
bool environment_limit_due(const struct environment *environment);
enum error environment_limit(struct environment *environment);
/* Whether the map can be larger than it is: the disk has room, and it is limited still or not at map_max. */
bool environment_can_grow(const struct environment *environment);
/* Doubles the map. No transaction may be open in this process. ERR_NO_SPACE when it is limited, or at map_max. */
enum error environment_grow(struct environment *environment);
/* Whether ordinary commands that bring so many bytes may write: then what is free of the allocated file stays more
 * than the reserve. Walks the list of free pages when it is tight, and only then. */
bool environment_roomy(struct environment *environment, uint64_t bytes);

struct environment_stats {
    uint64_t map, file, allocated, used; /* bytes; used: up to the last page in use */
    uint64_t free;                       /* bytes of free pages below that */
    uint64_t last_txn;
    uint64_t oldest_txn; /* that a reader still looks at; last_txn when none does */
    uint32_t readers, readers_max;
    bool tight;
};
/* As of this reading transaction (a view's keeps the map from growing meanwhile). */
enum error environment_stats(struct environment *environment, MDB_txn *txn,
                             struct environment_stats *ret_stats);

#endif
