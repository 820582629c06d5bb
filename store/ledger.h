/* The ledger: idempotency. (scope, key) names a request; the ledger knows what was asked and what was answered.
 *
 * A command looks first: ledger_find gives the stored answer of the same request (a repeat: answer it, write
 * nothing), ERR_KEY_REUSED when the key came with another request, ERR_NOT_FOUND when it is new or its time is
 * over; then it writes, and ledger_put is part of what it writes.
 *
 * On disk rows stand in the order in which they came, by lifetime: keys of clients are random, and a table keyed
 * by them would touch a page per row. The way from (scope, key) to the row is an index in memory, 64 bits of a
 * keyed hash to a row number, made from the rows at start. It says nothing that the rows don't say: a hit is
 * checked against the row, and what an aborted transaction put is taken out again (docs/decisions).
 *
 * Lifetimes are few, so within one the oldest row expires first and cleaning up is reading from the front, past rows
 * that a clock wrote which was ahead. A row is over at expires_us, not after it. One (scope, key) has at most one row: when its time is over and it comes
 * again before it was cleaned up, the new row takes its place.
 *
 * Memory of the index: 16 bytes a slot, and at least two slots a row, doubling as rows come; so up to 32 bytes,
 * just after doubling 64, for each row, and half as much again while it doubles (at 4,194,304 rows: 128 MiB). All
 * of it belongs to the writer's thread.
 */
#ifndef COPPICE_STORE_LEDGER_H
#define COPPICE_STORE_LEDGER_H

#include "store/txn.h"

#define LEDGER_SCOPE_MAX  128u
#define LEDGER_KEY_MAX    255u

#define LEDGER_PUTS_MAX   4u   /* by one command */
#define LEDGER_EXPIRE_MAX 256u /* rows of one ledger_expire; a command calls it once */
#define LEDGER_FORGET_MAX 256u /* by one command */
#define LEDGER_AHEAD_US \
    UINT64_C(3600000000) /* a clock that was ahead by no more delays those behind by no more */
#define LEDGER_PASS_MAX \
    1024u /* rows of a clock that was ahead by more that one ledger_expire passes by, of each lifetime: 1 ms or so */

/* X(ID, "name", seconds). Numbers are stored. */
#define LEDGER_LIFETIMES(X)               \
    X(LEDGER_DAY, "day", 86400)           \
    X(LEDGER_WEEK, "week", 604800)        \
    X(LEDGER_QUARTER, "quarter", 7776000) \
    X(LEDGER_KEPT, "kept", 0) /* as long as what it stands for: ledger_forget */
enum ledger_lifetime {
#define X(id, name, seconds) id,
    LEDGER_LIFETIMES(X)
#undef X
        LEDGER_LIFETIME_COUNT
};

/* Key: lifetime, row. */
#define LEDGER_FIELDS(X)                         \
    X(at_us, TIME, 0, 1)                         \
    X(expires_us, TIME, 0, 1)                    \
    X(scope, TEXT, LEDGER_SCOPE_MAX, 1)          \
    X(key, TEXT, LEDGER_KEY_MAX, 1)              \
    X(digest, DIGEST, 0, 1) /* of the request */ \
    X(answer, BYTES, ANSWER_SIZE_MAX, 1)
RECORD_STRUCT(ledger, LEDGER_FIELDS);

/* This one will be asked for in a moment: its place in the index is fetched. */
void ledger_expect(const struct txn *txn, struct span scope, struct span key);
enum error ledger_find(struct txn *txn, uint64_t now_us, struct span scope, struct span key,
                       const struct digest *digest, struct ledger *ret_row);
/* Whether one more row may be put. False (store_options.ledger_max is reached, or there was no memory for a larger
 * index): the command refuses with ERR_LIMIT, before it writes anything. */
bool ledger_room(struct txn *txn);
/* Whether three quarters of the room aren't used yet. What a command may note and may leave out goes by this one, so that
 * notes that nobody asked for never take the place of keys that somebody did. */
bool ledger_room_spare(struct txn *txn);
/* Must follow a ledger_find that said ERR_NOT_FOUND and a ledger_room that said true; anything else is a bug.
 * Written rows get at_us, and expires_us by the lifetime. The row's number; 0 when the transaction has failed. */
uint64_t ledger_put(struct txn *txn, enum ledger_lifetime lifetime, uint64_t now_us, struct span scope,
                    struct span key, const struct digest *digest, struct span answer);
/* When a row of this lifetime that was put then is over. */
uint64_t ledger_expiry(uint64_t now_us, enum ledger_lifetime lifetime);
/* Takes a row away before its time; one that has gone is fine. */
void ledger_forget(struct txn *txn, enum ledger_lifetime lifetime, uint64_t row);
/* Removes rows whose time is over, at most `limit` and LEDGER_EXPIRE_MAX; *ret_removed. Rows that a clock wrote which was ahead
 * hold up nobody: they are passed by, and where there are more than LEDGER_PASS_MAX the next call goes on behind them: *ret_more,
 * until one has come to the end. A damaged row is ERR_DAMAGED once nothing else can be removed before it. */
enum error ledger_expire(struct txn *txn, uint64_t now_us, uint32_t limit, uint32_t *ret_removed,
                         bool *ret_more);

/* ---- the index ---- */

struct ledger_index;
/* By store_load: empty, then one ledger_index_load over a transaction; one that failed leaves an index that can
 * only be destroyed. ERR_MEMORY; load also ERR_DAMAGED, ERR_NEWER, ERR_IO. More rows than rows_max (it was lowered)
 * are loaded all the same. */
enum error ledger_index_create(uint32_t rows_max, const uint8_t secret[16], struct ledger_index **ret_index);
void ledger_index_destroy(struct ledger_index *index);
enum error ledger_index_load(struct ledger_index *index, struct txn *txn);
/* By the batch, around each transaction: what it put and removed counts, or is undone. Beginning makes room for
 * BATCH_MAX commands, so nothing is mapped, and nothing can fail, in between. */
void ledger_index_begin(struct ledger_index *index);
void ledger_index_commit(struct ledger_index *index);
void ledger_index_abort(struct ledger_index *index);
uint64_t ledger_index_rows(const struct ledger_index *index);
/* Where (scope, key) belongs: the upper bits are its slot, however many slots there are. For tests, which need keys
 * that get in each other's way. */
uint64_t ledger_index_hash(const struct ledger_index *index, struct span scope, struct span key);

#endif
