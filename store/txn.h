/* A transaction: one consistent state of all tables; the writer's can change it.
 *
 * Applying a command, a view of a reader and `coppice check` all look through this. What it hands out (spans)
 * points into the map and is good until the transaction ends, and in the writer's until the next write.
 *
 * Every value is verified at each read (store/value.h): one that isn't what was written there is ERR_DAMAGED, never
 * "not found" and never wrong. Of a large file that was opened a moment ago the pages are, too (store/leaves.h).
 *
 * The first error of a write sticks: later writes do nothing, and the commit becomes an abort (store/batch.h).
 * So apply functions write without checking each step. Writes outside a transaction that writes are bugs.
 * So does what LMDB itself can't read, such as a page that it can't make sense of: it does nothing more in that
 * transaction. Then everything else that is read in it is the same error; a view is opened anew.
 *
 * Belongs to one thread at a time. Never waits; a damaged page under LMDB can end the process (a guarded section).
 */
#ifndef COPPICE_STORE_TXN_H
#define COPPICE_STORE_TXN_H

#include <lmdb.h>

#include "store/keys.h"
#include "store/schema.h"
#include "store/value.h"

struct aside;
struct store;
struct ledger_index;

#define TXN_COUNTERS_MAX 256u /* different counters changed before they are written out */
#define TXN_TOPICS       2048u
#define TXN_KINDS        16u
#define TXN_KIND_MAX     48u /* a longer name is found out each time */
#define TXN_PARTS_MAX    32u /* groups of which some are woken by one commit; of more, all are */

struct txn_counter {
    struct key key;
    int64_t delta, base; /* base: the row's value, once known */
    bool known, present;
};

struct txn_kind {
    uint32_t size; /* of the name; 0: free */
    char name[TXN_KIND_MAX];
    struct uuid id;
};

struct txn {
    MDB_txn *mdb; /* NULL when none is open */
    struct store *store;
    bool writing;
    enum error error; /* of the first write that failed, or read of LMDB's */
    int code;         /* and what LMDB called it */
    uint32_t writes;  /* rows put or deleted by the command being applied */
    MDB_cursor *cursors[SCHEMA_TABLES_MAX];
    MDB_cursor *appenders[SCHEMA_TABLES_MAX]; /* at the last row of a table that only grows; NULL */
    MDB_cursor *places[SCHEMA_TABLES_MAX];    /* the writer's: where it last read or wrote a key; NULL */
    uint64_t scans;                           /* bit per table: one is open */
    uint32_t counters_count;
    uint64_t unsorted; /* bit per table: a new key wasn't the greatest; no more appending there */
    uint64_t bounded;  /* bit per table: no key begins with more than greatest[table] */
    struct beginning {
        uint64_t high, low; /* the first 16 bytes of a key, as a number; a shorter one ends in zeros */
    } greatest[SCHEMA_TABLES_MAX];
    uint64_t wakes[TXN_TOPICS / 64]; /* bit per topic */
    struct txn_few {
        uint32_t topic, count; /* so many of those that stand for this one are taken up */
    } few;
    struct txn_part {
        uint32_t topic, count; /* of this one's watchers so many are woken ... */
        uint64_t part, other;  /* ... who wait for this part of it, or else for that */
    } parts[TXN_PARTS_MAX];
    uint32_t parts_count;
    struct txn_counter *counters; /* TXN_COUNTERS_MAX; only the writer's */
    struct txn_kind *kinds; /* TXN_KINDS that were named lately (store/job_submit.c); only the writer's */
    uint8_t *scratch;       /* where records are encoded; only the writer's */
    struct aside *aside;    /* new rows that aren't in their tables yet (store/aside.h); only the writer's */
};

/* ---- reading: OK, ERR_NOT_FOUND, ERR_DAMAGED, ERR_NEWER, ERR_IO ---- */

enum error txn_get(struct txn *txn, uint32_t table, struct span key, uint8_t *ret_version,
                   struct span *ret_bytes);
/* Known without looking: no row has this key or a greater one, because this transaction appended the last one before it.
 * false says nothing. */
bool txn_beyond(const struct txn *txn, uint32_t table, struct span key);
/* The record of the table's class. */
enum error txn_read(struct txn *txn, uint32_t table, struct span key, void *ret_record);

/* Rows in order of their keys. Opened at `from`; goes on while keys begin with the first `prefix` bytes of it.
 *
 *     struct scan scan = txn_scan(txn, TABLE_DUE, key_span(&from), 3, SCAN_UP);
 *     while (scan_next(&scan))
 *         ... scan.key, scan.bytes, or scan_read(&scan, &record) ...
 *     enum error e = scan_end(&scan);
 *
 * SCAN_UP starts with the first key >= from, SCAN_DOWN with the last key <= from. A damaged row ends the scan
 * with ERR_DAMAGED. In a transaction that writes: one scan per table at a time, and no write between
 * scan_next and the use of what it gave; a write to the table ends the scan. */
enum scan_direction { SCAN_UP, SCAN_DOWN };
struct scan {
    struct txn *txn;
    MDB_cursor *cursor;
    uint32_t table;
    uint8_t prefix_size, started, direction, version;
    struct span key, bytes; /* of the row; bytes without the head */
    struct key from;
    enum error error;
};
struct scan txn_scan(struct txn *txn, uint32_t table, struct span from, uint32_t prefix,
                     enum scan_direction direction);
bool scan_next(struct scan *scan);
enum error scan_read(struct scan *scan, void *ret_record); /* the row's record */
enum error scan_end(struct scan *scan);

uint64_t txn_rows(struct txn *txn, uint32_t table); /* O(1) */
uint64_t txn_number(struct txn *txn); /* LMDB's; the commit stamp of a sound store says the same */

/* ---- writing: errors stick in txn->error ---- */

/* Over whatever is there. */
void txn_write(struct txn *txn, uint32_t table, struct span key, const void *record);
/* A key that must not be there: one that is, is a bug of the caller, who has looked. Keys that grow at the end of
 * their table pack their pages full. Rows of some tables are set aside until somebody looks into the table, or until the
 * commit (docs/decisions/0030-rows-set-aside.md). */
void txn_add(struct txn *txn, uint32_t table, struct span key, const void *record);
/* One that another row says can't be there, by whoever hasn't looked: ERR_EXISTS when it is all the same, and then nothing is
 * written. */
enum error txn_try_add(struct txn *txn, uint32_t table, struct span key, const void *record);
/* A key that must be there; or one that another row says is there: ERR_NOT_FOUND when it isn't, and then nothing is written. */
enum error txn_try_remove(struct txn *txn, uint32_t table, struct span key);
void txn_remove(struct txn *txn, uint32_t table, struct span key);

/* After the commit, whoever watches this topic is woken. */
void txn_wake(struct txn *txn, uint32_t topic);
/* There is one thing more for a command that stands for this topic (store_stand): it is taken up in this transaction. There is
 * one such topic. */
void txn_wake_one(struct txn *txn, uint32_t topic);
/* One more of those who watch this part of it (store_part_group), or else of those who watch that one; neither is 0. */
void txn_wake_part(struct txn *txn, uint32_t topic, uint64_t part, uint64_t other);

/* ---- by whoever owns the transaction ---- */

/* Reading: over a transaction of LMDB's that was begun or renewed. Writing: begins one; OK, or ERR_MEMORY,
 * ERR_UNAVAILABLE with txn->code. */
void txn_open(struct txn *txn, struct store *store, MDB_txn *mdb);
enum error txn_begin(struct txn *txn);
/* txn_commit consumes it whatever happens: OK, or what the first write that failed said (nothing is written then),
 * or ERR_IO with txn->code. */
enum error txn_commit(struct txn *txn);
void txn_abort(struct txn *txn);
void txn_release(struct txn *txn); /* reading: closes scans, keeps LMDB's transaction for its owner */
enum error txn_error_of(int code); /* what LMDB said, as ours */

#endif
