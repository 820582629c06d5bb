/* Rate windows: how often somebody did something within the last minute, kept through restarts.
 *
 * spec/control.md AMB-28: a sliding window per (actor, bucket). A row holds the times of the requests that were
 * allowed; one that is asked for is allowed when fewer than `quota` of them lie within the window, and refused ones don't
 * count. A time leaves the window when exactly window_us have passed, so waiting wait_us is enough, to the
 * microsecond. When the clock goes back, times that lie ahead count as now: nobody waits for longer than one window.
 *
 * Rare by definition (the largest bucket is 60 a minute), so a commit per request is what it may cost. A row that
 * nobody uses goes after RATE_WINDOW_IDLE_US.
 */
#ifndef COPPICE_STORE_RATE_WINDOW_H
#define COPPICE_STORE_RATE_WINDOW_H

#include "store/due.h"

#define RATE_WINDOW_QUOTA_MAX 256u
#define RATE_WINDOW_ACTOR_MAX 256u
#define RATE_WINDOW_IDLE_US   (UINT64_C(86400) * 1000000)

/* Key: the named id (store/named_id.h) of bucket and actor. */
#define RATE_WINDOW_FIELDS(X)                                                                     \
    X(actor, TEXT, RATE_WINDOW_ACTOR_MAX, 1)                                                      \
    X(bucket, U8, 0, 1)                                                                           \
    X(newest_us, TIME, 0, 1)                                                                      \
    X(sweep_us, TIME, 0, 1)                                      /* when retention looks at it */ \
    X(times, BYTES, RATE_WINDOW_QUOTA_MAX * sizeof(uint64_t), 1) /* oldest first, little-endian */
RECORD_STRUCT(rate_window, RATE_WINDOW_FIELDS);

#define RATE_WINDOW_TAKE_FIELDS(X)           \
    X(actor, TEXT, RATE_WINDOW_ACTOR_MAX, 1) \
    X(bucket, U8, 0, 1)                      \
    X(quota, U32, 0, 1)                      \
    X(window_us, U64, 0, 1)
RECORD_STRUCT(rate_window_take, RATE_WINDOW_TAKE_FIELDS);
/* Code 130; answer: a struct rate_window_taken as it is. ERR_INVALID: no actor, a quota of 0 or above the maximum, a window
 * of 0 or longer than a day. */
extern const struct command_class rate_window_take_class;

struct rate_window_taken {
    uint32_t allowed;   /* 1, or 0 and nothing was counted */
    uint32_t remaining; /* further ones that would be allowed now */
    uint64_t wait_us;   /* refused: until one is allowed; allowed: until the window is empty again */
};

enum error rate_window_expire(struct txn *txn, const struct due_entry *entry);
enum error rate_window_find_due(struct txn *txn, const struct due_entry *entry);

#endif
