/* The yardsticks of the store: what this disk does by itself, and what plain LMDB does with the same rows.
 *
 * The rows are those of one parcel.send (tests/support/parcel.h) with a body of 1 KiB, an idempotency key and no due
 * time. Plain LMDB writes four of them: the record, its event, its outbox row and its ledger row, in their full size,
 * heads included, under keys of the same size that grow in the same places. Each is written in the cheapest way that
 * LMDB knows: a cursor per table, MDB_APPEND where keys grow at the end, values that are ready in memory. It looks
 * nothing up, computes no checksum and keeps no counters; those are ours to pay. Its file is allocated ahead in the
 * same steps as the store's, and its flags are the store's.
 *
 * Everything here blocks, and belongs to one thread.
 */
#ifndef COPPICE_TESTS_BENCH_LIMITS_H
#define COPPICE_TESTS_BENCH_LIMITS_H

#include <lmdb.h>
#include <stdint.h>
#include "store/outbox.h"
#include "store/txn.h"

/* X(ID, "name", bytes of the key, bytes of the value with its head) */
#define LIMITS_BODY  1024u
#define LIMITS_SCOPE 16u /* bytes of the scope and the key of idempotency */
#define LIMITS_KEY   36u
#define LIMITS_ROWS(X)                                                             \
    X(RECORD, "parcels", 16, VALUE_HEAD + 1 + 8 + 8 + 8 + 4 + 8 + 4 + LIMITS_BODY) \
    X(EVENT, "events", 24, VALUE_HEAD + 8 + 1 + 2 + 1 + 1 + 4)                     \
    X(OUTBOX, "outbox", 10, VALUE_HEAD + 8 + 2 + 2 + 8 + 16 + 8)                   \
    X(LEDGER, "ledger", 9, VALUE_HEAD + 8 + 8 + 4 + LIMITS_SCOPE + 4 + LIMITS_KEY + 32 + 4 + 17)

enum limits_row {
#define X(id, name, key, value) LIMITS_##id,
    LIMITS_ROWS(X)
#undef X
        LIMITS_ROW_COUNT
};

/* A folder of this build, on a disk, empty: where the files that are measured lie. A build folder in memory has no
 * disk to measure, and ends the program; so does another benchmark of this build that has folders here: two at a time
 * measure each other. The string is good for ever. */
const char *limits_folder(const char *name);
/* Removes it with what is in it. */
void limits_remove(const char *folder);

/* ---- the disk ---- */

struct limits_syncs {
    uint64_t p50_ns, p99_ns;
};
/* Overwrites this many bytes in so many pieces of equal size, and syncs once; as often as fits into the time.
 * One piece follows the last one; more are spread over the file in whole pages, as the pages of a commit are. */
struct limits_syncs limits_sync(const char *folder, size_t bytes, uint32_t pieces, uint64_t for_ns);
/* A new file of this size, written from its beginning to its end and synced: bytes/s. */
double limits_write(const char *folder, uint64_t bytes);

/* ---- plain LMDB ---- */

struct limits;
struct limits *limits_open(const char *folder);
void limits_close(struct limits *limits);
/* One commit of `group` commands. */
void limits_commit(struct limits *limits, uint32_t group);

/* Values of a table by mdb_get, at random, in one long transaction: reads/s. key(i) is the i-th of `keys`, and each is
 * there. look: at one byte of each cache line of the value, as the least that reading it can be. */
typedef struct uuid limits_key(uint64_t i);
double limits_read(MDB_env *env, MDB_dbi dbi, limits_key *key, uint64_t keys, uint64_t count, bool look);

#endif
