/* The due index: durable timers, the next one of each shard first.
 *
 * A row says: at this time, look at this thing. Who handles a queue scans its shards up to now (due_scan), and
 * clears or moves each row in the same command that handles it; so a timer is never lost and never early, and one
 * missed while nobody ran is found at once.
 */
#ifndef COPPICE_STORE_DUE_H
#define COPPICE_STORE_DUE_H

#include "store/txn.h"

struct due_entry;

/* X(ID, number, "name", check): check looks at one entry for `coppice check`. Numbers are stored. */
#define DUE_QUEUES(X)                                                                              \
    X(DUE_RETENTION, 1, "retention", retention_check_due)                                          \
    X(DUE_JOB_TIME, 2, "job_time", job_check_due)       /* deferred jobs; wall time */             \
    X(DUE_JOB_LEASE, 3, "job_lease", job_check_due)     /* claimed jobs; steady time */            \
    X(DUE_JOB_BACKOFF, 4, "job_backoff", job_check_due) /* retried jobs that wait; steady time */  \
    X(DUE_JOB_PAUSE, 5, "job_pause", pause_check_due)   /* pauses that end; wall time */           \
    X(DUE_JOB_BULK, 6, "job_bulk", bulk_check_due)      /* bulk actions that go on; steady time */ \
    X(DUE_SCHEDULE, 7, "schedule", schedule_check_due)  /* schedules; wall time */                 \
    X(DUE_DELIVERY, 10, "delivery", delivery_check_due)
enum due_queue {
#define X(id, number, name, check) id = number,
    DUE_QUEUES(X)
#undef X
};
#define X(id, number, name, check_entry) \
    void check_entry(struct check *check, struct txn *txn, const struct due_entry *entry);
DUE_QUEUES(X)
#undef X

/* Key: queue, shard, due_us, id. */
#define DUE_FIELDS(X)                                            \
    X(kind, U16, 0, 1)  /* the queue's own: what the id names */ \
    X(value, U64, 0, 1) /* and anything it wants back, such as a fence */
RECORD_STRUCT(due, DUE_FIELDS);

struct due_entry {
    uint8_t queue;
    uint16_t shard;
    uint64_t due_us;
    struct uuid id;
    struct due row;
};

struct key due_key(uint8_t queue, uint16_t shard, uint64_t due_us, const struct uuid *id);
/* One that isn't there: the same thing at the same time twice is a bug. Wakes STORE_TOPIC(TOPIC_DUE, queue). */
void due_set(struct txn *txn, const struct due_entry *entry);
/* One that was set; it must be there. Or one that a row of its owner says was: ERR_NOT_FOUND when it isn't there any more. */
enum error due_try_clear(struct txn *txn, uint8_t queue, uint16_t shard, uint64_t due_us,
                         const struct uuid *id);
void due_clear(struct txn *txn, uint8_t queue, uint16_t shard, uint64_t due_us, const struct uuid *id);
/* One that is there goes to another time, for who can't do now what it is for, so that it isn't in the way of others. Its row stays as it is;
 * one that can't be read is written anew, without what it said. One that stands there already is enough. */
void due_move(struct txn *txn, const struct due_entry *entry, uint64_t due_us);
/* Up to `most` entries due at until_us or before, oldest first. Returns OK and *ret_count. */
enum error due_scan(struct txn *txn, uint8_t queue, uint16_t shard, uint64_t until_us,
                    struct due_entry *entries, uint32_t most, uint32_t *ret_count);
/* The same without the entries' rows: whoever needs only what the key says isn't stopped by a row that is damaged. */
enum error due_scan_keys(struct txn *txn, uint8_t queue, uint16_t shard, uint64_t until_us,
                         struct due_entry *entries, uint32_t most, uint32_t *ret_count);
/* The first entry of the shards from this one on, by its key; ERR_NOT_FOUND: there is none. */
enum error due_first(struct txn *txn, uint8_t queue, uint16_t shard, struct due_entry *ret_entry);
/* When the next one of the shard is due, by its key; ERR_NOT_FOUND: none is. */
enum error due_next(struct txn *txn, uint8_t queue, uint16_t shard, uint64_t *ret_due_us);

#endif
