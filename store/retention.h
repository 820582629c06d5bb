/* Retention: things go when their time is over, by a due entry made together with them.
 *
 * A domain that keeps things for a limited time sets a due entry (queue DUE_RETENTION, kind its own number) and
 * gives a function that removes one thing with all that belongs to it. The command retention.sweep, sent by the
 * keeper, removes what is due, a bounded number of rows at a time, and expired rows of the ledger. Due is what is over by the
 * calendar (store/calendar.h): a wall clock that is wrong takes nothing.
 */
#ifndef COPPICE_STORE_RETENTION_H
#define COPPICE_STORE_RETENTION_H

#include "store/due.h"

#define RETENTION_SHARD 0u /* of the queue: one is enough */

/* Removes the thing, not the due entry. OK, or ERR_LIMIT: there is more of it, the entry stays and it is called again
 * by the next sweep. ERR_NOT_FOUND: it has gone before, so the entry goes as well. Anything else: it can't be removed
 * now (it is damaged), and the entry is put off by RETENTION_AGAIN_US so that it isn't in the way of others. */
typedef enum error retention_expire(struct txn *txn, const struct due_entry *entry);
/* For check: OK when the thing is there and the entry is the one that it asked for; ERR_CONFLICT when it isn't. */
typedef enum error retention_find(struct txn *txn, const struct due_entry *entry);

/* X(ID, number, expire, find). Numbers are stored. */
#define RETENTION_KINDS(X)                                                                                   \
    X(RETENTION_AUDIT, 1, audit_expire, audit_find_due) /* 400 days after it was written */                  \
    X(RETENTION_SIGNING_KEY, 11, signing_key_expire,                                                         \
      signing_key_find_due)                                             /* 90 days or more after its end */  \
    X(RETENTION_REVOCATION, 12, revocation_expire, revocation_find_due) /* with the tokens it concerns */    \
    X(RETENTION_SEEN_TOKEN, 13, seen_token_expire, seen_token_find_due) /* with the token */                 \
    X(RETENTION_CLIENT, 21, client_expire, client_find_due)             /* a day, when it never had a key */ \
    X(RETENTION_API_KEY, 22, api_key_expire, api_key_find_due)          /* 90 days after its end */          \
    X(RETENTION_RATE_WINDOW, 23, rate_window_expire, rate_window_find_due) /* a day without use */           \
    X(RETENTION_JOB, 31, job_expire, job_find_due)                /* 30 days after its final state */        \
    X(RETENTION_BULK, 32, bulk_expire, bulk_find_due)             /* a day after its end */                  \
    X(RETENTION_DELIVERY, 40, delivery_expire, delivery_find_due) /* a week after its end */
enum retention_kind {
#define X(id, number, expire, find) id = number,
    RETENTION_KINDS(X)
#undef X
};

/* Domains outside the list (tests) may add one: number >= RETENTION_KIND_OUTSIDE, at most RETENTION_OUTSIDE_MAX of
 * them. Before the store is opened; the same one again changes nothing. */
#define RETENTION_KIND_OUTSIDE 1000u
#define RETENTION_OUTSIDE_MAX  8u
void retention_extend(uint16_t number, retention_expire *expire, retention_find *find);

/* Sets the entry that will take the thing at due_us. */
void retention_set(struct txn *txn, uint16_t kind, uint64_t due_us, const struct uuid *id, uint64_t value);
/* When the thing goes otherwise. An entry that isn't there (it was put off) is left to the sweep. */
void retention_clear(struct txn *txn, uint64_t due_us, const struct uuid *id);

#define RETENTION_ROWS_MAX 256u /* things of one sweep, and as many rows of the ledger */
#define RETENTION_AGAIN_US (UINT64_C(86400) * 1000000)

/* limit: of each of the two; 0, or more than RETENTION_ROWS_MAX: that many. until_us: by the calendar, which notes it then
 * and when (COUNTER_RETAINED); 0, or later than the command: the command's time. */
#define RETENTION_SWEEP_FIELDS(X) X(limit, U32, 0, 1) X(until_us, TIME, 0, 2)
RECORD_STRUCT(retention_sweep, RETENTION_SWEEP_FIELDS);
extern const struct command_class
    retention_sweep_class; /* code 20, cleans up; answer: u32 removed, u32 1 when there may be more */

#endif
