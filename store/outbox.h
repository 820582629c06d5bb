/* The outbox: what must be told to somebody, committed with the change that caused it.
 *
 * A row names an event by stream and number; whoever relays it reads the event, so it always has the same bytes.
 * Rows stand in commit order within a partition; all rows of one key go to one partition (a keyed hash), so order
 * per key is order within the partition.
 *
 *     put --> waiting --claim--> relayed by one holder --mark--> gone
 *                                       |--defer--> waiting, not before a time, attempts + 1
 *                                       `--bury---> dead, with a reason --revive--> waiting
 *
 * One holder relays a partition at a time: claiming raises the partition's fence, and marks under an older fence
 * are ERR_FENCED. A row is marked after its receiver acknowledged it: so delivery is at least once. The relay
 * doesn't send a row while an earlier one of its key is unfinished.
 *
 * Limits per partition: at OUTBOX_SOFT rows outbox_level says so, and with it /readyz and the operators' figures; nobody is
 * slowed down. At OUTBOX_HARD commands that would put another are refused with ERR_LIMIT.
 */
#ifndef COPPICE_STORE_OUTBOX_H
#define COPPICE_STORE_OUTBOX_H

#include "store/audit.h"

#define OUTBOX_PARTITIONS \
    8u /* each is a tail of the table that a commit rewrites: docs/decisions/0014-ids.md */
#define OUTBOX_SOFT       100000
#define OUTBOX_HARD       1000000
#define OUTBOX_REASON_MAX 256u
#define OUTBOX_ID_SIZE    27u /* "65535-18446744073709551615" and its end */

/* Key: partition, seq. */
#define OUTBOX_FIELDS(X)                                                          \
    X(at_us, TIME, 0, 1)                                                          \
    X(topic, U16, 0, 1) /* a domain's own number of what kind of message it is */ \
    X(attempts, U16, 0, 1)                                                        \
    X(not_before_us, TIME, 0, 1)                                                  \
    X(stream, UUID, 0, 1) /* the key of the order, too */                         \
    X(event, U64, 0, 1)
RECORD_STRUCT(outbox, OUTBOX_FIELDS);

/* Key: partition. */
#define CLAIM_FIELDS(X)                \
    X(fence, U64, 0, 1)                \
    X(holder, U64, 0, 1) /* its pid */ \
    X(at_us, TIME, 0, 1)
RECORD_STRUCT(claim, CLAIM_FIELDS);

/* Key: partition, seq; as it was in the outbox. */
#define DEAD_FIELDS(X)       \
    X(at_us, TIME, 0, 1)     \
    X(topic, U16, 0, 1)      \
    X(attempts, U16, 0, 1)   \
    X(buried_us, TIME, 0, 1) \
    X(stream, UUID, 0, 1)    \
    X(event, U64, 0, 1)      \
    X(reason, TEXT, OUTBOX_REASON_MAX, 1)
RECORD_STRUCT(dead, DEAD_FIELDS);

struct key outbox_key(uint16_t partition, uint64_t seq);
/* Partition and number as operators write them: "3-17". One that is written otherwise is none. */
void outbox_id_format(uint16_t partition, uint64_t seq, char text[OUTBOX_ID_SIZE]);
bool outbox_id_parse(struct span text, uint16_t *ret_partition, uint64_t *ret_seq);
/* By the store's secret: the same in every process and after every restart. */
uint16_t outbox_partition(struct txn *txn, const struct uuid *stream);

enum outbox_level { OUTBOX_OPEN, OUTBOX_FULLISH, OUTBOX_FULL };
enum outbox_level outbox_level_of(int64_t rows);
enum error outbox_level(struct txn *txn, uint16_t partition, enum outbox_level *ret_level);
/* Ask outbox_level first: putting into a full one is a bug. Wakes STORE_TOPIC(TOPIC_OUTBOX, partition). */
void outbox_put(struct txn *txn, uint64_t at_us, uint16_t topic, const struct uuid *stream, uint64_t event,
                uint64_t *ret_seq);

/* Raises the fence; *ret_fence. */
enum error outbox_claim(struct txn *txn, uint16_t partition, uint64_t holder, uint64_t at_us,
                        uint64_t *ret_fence);
/* OK while this fence is the partition's newest, else ERR_FENCED: for a command that does more with rows than mark them. */
enum error outbox_held(struct txn *txn, uint16_t partition, uint64_t fence);
/* OK, ERR_FENCED, ERR_NOT_FOUND (marked before: fine). All of them: ERR_INVALID when there is no such partition. */
enum error outbox_mark(struct txn *txn, uint16_t partition, uint64_t seq, uint64_t fence);
enum error outbox_defer(struct txn *txn, uint16_t partition, uint64_t seq, uint64_t fence,
                        uint64_t not_before_us);
enum error outbox_bury(struct txn *txn, uint16_t partition, uint64_t seq, uint64_t fence, uint64_t at_us,
                       struct span reason);
/* A dead row back into the outbox, to where it stood, with no attempts: so a row has one number for its life, and
 * relays, who are woken, look again from the beginning. ERR_NOT_FOUND, ERR_LIMIT (the partition is full), ERR_DAMAGED (the row is, and
 * stays where it is). */
enum error outbox_revive(struct txn *txn, uint16_t partition, uint64_t seq);
/* By whoever removes a stream, before its events: takes the row away wherever it is, waiting or dead. Gone is fine. */
enum error outbox_forget(struct txn *txn, uint16_t partition, uint64_t seq);

struct outbox_row {
    uint16_t partition;
    uint64_t seq;
    enum error error; /* the row can't be read: `row` is empty */
    struct outbox row;
};
/* Up to `most` rows after `after`, in order. One that can't be read is found all the same, by its key, and those behind it are. An
 * error, such as a key that is none, ends the scan: *ret_count rows stand before it. */
enum error outbox_scan(struct txn *txn, uint16_t partition, uint64_t after, struct outbox_row *rows,
                       uint32_t most, uint32_t *ret_count);

/* Dead rows one after the other, by partition and in each as they stood in the outbox. One that can't be read is found all the same, and
 * those behind it are.
 *
 *     outbox_dead_begin(txn, &after, &scan);
 *     while ((e = outbox_dead_next(&scan, &found)) == OK)
 *         ... found, until the next one ...
 *     outbox_dead_end(&scan);
 */
struct outbox_dead {
    struct span key; /* borrowed from the transaction */
    bool named;      /* the key is one; else partition and seq are 0 */
    uint16_t partition;
    uint64_t seq;
    enum error error; /* the row can't be read: `row` is empty */
    struct dead row;  /* its reason borrows, too */
};
struct outbox_dead_scan {
    struct scan scan;
    struct key after;
};
/* after: the key of the one at which a list ended, which isn't told again; or an empty one. */
void outbox_dead_begin(struct txn *txn, const struct key *after, struct outbox_dead_scan *ret);
/* ERR_NOT_FOUND: no more. Another error: there is no way past it. */
enum error outbox_dead_next(struct outbox_dead_scan *s, struct outbox_dead *ret);
void outbox_dead_end(struct outbox_dead_scan *s);
/* How many of a partition. */
enum error outbox_dead_count(struct txn *txn, uint16_t partition, int64_t *ret_rows);

/* The commands by which relays do this (OUTBOX_CLAIM answers the fence as 8 bytes, little-endian). */
#define OUTBOX_CLAIM_FIELDS(X) X(partition, U16, 0, 1) X(holder, U64, 0, 1)
RECORD_STRUCT(outbox_claim_command, OUTBOX_CLAIM_FIELDS);
#define OUTBOX_MARK_FIELDS(X) X(partition, U16, 0, 1) X(seq, U64, 0, 1) X(fence, U64, 0, 1)
RECORD_STRUCT(outbox_mark_command, OUTBOX_MARK_FIELDS);
#define OUTBOX_DEFER_FIELDS(X) \
    X(partition, U16, 0, 1) X(seq, U64, 0, 1) X(fence, U64, 0, 1) X(not_before_us, TIME, 0, 1)
RECORD_STRUCT(outbox_defer_command, OUTBOX_DEFER_FIELDS);
#define OUTBOX_BURY_FIELDS(X) \
    X(partition, U16, 0, 1) X(seq, U64, 0, 1) X(fence, U64, 0, 1) X(reason, TEXT, OUTBOX_REASON_MAX, 1)
RECORD_STRUCT(outbox_bury_command, OUTBOX_BURY_FIELDS);
/* By an operator: `audit` is the id of the entry that is written in the same commit, unless there is no room for one. All zero: nobody
 * is to be named. */
#define OUTBOX_REVIVE_FIELDS(X)    \
    X(partition, U16, 0, 1)        \
    X(seq, U64, 0, 1)              \
    X(audit, UUID, 0, 2)           \
    X(who, TEXT, AUDIT_WHO_MAX, 2) \
    X(reason, TEXT, 512, 2)        \
    X(request_id, TEXT, 128, 2)
RECORD_STRUCT(outbox_revive_command, OUTBOX_REVIVE_FIELDS);
extern const struct command_class outbox_claim_class, outbox_mark_class, outbox_defer_class,
    outbox_bury_class,
    outbox_revive_class; /* codes 10..14; mark, bury and defer are of high priority, mark and bury clean up */

#endif
