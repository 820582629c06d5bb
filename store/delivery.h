/* Deliveries: one event of a job on its way to one receiver, the job's callback or a webhook of its client.
 *
 *     make --> pending --succeed--> delivered --resend--> pending
 *                 |  `--retry--> pending, not before a time
 *                 |--give_up--> failed (dead) --resend--> pending
 *                 `--drop--> dropped: its webhook or its job is gone
 *
 * A row is made in the command that takes the event out of the outbox (delivery_spread), so there is one for each event and receiver.
 * Its id is a UUIDv7 of the event's time and a keyed hash of job, receiver, event and topic: it is the same whoever makes it, and the
 * receiver sees it unchanged in every attempt.
 *
 * Order is kept per job and receiver: only the first unfinished delivery of a chain has an entry in the due index (then not_before_us
 * isn't 0); finishing it gives one to the next. One that is sent again after it had its end, or that comes when later ones are there
 * already (its row was buried in the outbox and revived), or that was refused for the backlog, stands beside the chain: it waits for nobody
 * and holds nobody up. One that can't be read costs itself alone: those behind it go on (store/delivery_astray.h), and it is sent when it
 * can be read again.
 *
 * Entries of the due index stand in lanes, one for each receiving host (by a keyed hash of it): so whoever sends takes each host's in turn,
 * and a host that hangs has only its own deliveries behind it. DELIVERY_PARTITIONS senders share the lanes.
 *
 * Backoff goes by steady time (store_steady_us), as that of jobs does: not_before_us and the due index are of it.
 *
 * What came of an attempt is told by delivery.settle, which names the number of the attempt. It counts only while that is the next
 * one: so the same attempt told twice, or by a sender whose successor was faster, changes nothing. That is the fence.
 *
 * Finished ones go after the time that delivery.settle was given. A client with DELIVERIES_PENDING_MAX on their way gets further ones as
 * failed at once (backlog): they can be sent again, and no job waits for a receiver.
 */
#ifndef COPPICE_STORE_DELIVERY_H
#define COPPICE_STORE_DELIVERY_H

#include "store/due.h"
#include "store/lifecycle.h"
#include "store/webhook.h"

#define DELIVERY_LANES         65536u /* shards of the due queue */
#define DELIVERY_PARTITIONS    16u
#define DELIVERY_LANES_EACH    (DELIVERY_LANES / DELIVERY_PARTITIONS) /* they stand together */
#define DELIVERIES_PENDING_MAX 100000                                 /* of one client */
#define DELIVERY_HOST_MAX      264u /* a name of 253 bytes, ':' and a port */
#define DELIVERY_HISTORY_MAX   8u   /* the newest attempts that are kept */
#define DELIVERY_ATTEMPT_SIZE  16u
#define DELIVERY_GONE_STATUS   410                 /* of an answer: nothing is wanted there any more */
#define DELIVERY_TARGETS_MAX   (WEBHOOKS_MAX + 1u) /* of one event */

/* X(ID, "name", flags). Numbers are stored. */
#define DELIVERY_STATES(X)                \
    X(DELIVERY_PENDING, "pending", 0)     \
    X(DELIVERY_DELIVERED, "delivered", 0) \
    X(DELIVERY_FAILED, "failed", 0)       \
    X(DELIVERY_DROPPED, "dropped", LIFECYCLE_TERMINAL)
enum delivery_state {
#define X(id, name, flags) id,
    DELIVERY_STATES(X)
#undef X
        DELIVERY_STATE_COUNT
};
#define DELIVERY_OUTCOMES(X)       \
    X(DELIVERY_SUCCEED, "succeed") \
    X(DELIVERY_RETRY, "retry")     \
    X(DELIVERY_GIVE_UP, "give_up") \
    X(DELIVERY_DROP, "drop")       \
    X(DELIVERY_RESEND, "resend")
enum delivery_outcome {
#define X(id, name) id,
    DELIVERY_OUTCOMES(X)
#undef X
        DELIVERY_OUTCOME_COUNT
};
extern const struct lifecycle delivery_lifecycle;

/* X(ID, "name", "code of the jobs API or nothing"): what was wrong. Numbers are stored. */
#define DELIVERY_ERRORS(X)                                                                               \
    X(DELIVERY_NO_ERROR, "", "")                                                                         \
    X(DELIVERY_STATUS, "status", "")                         /* an answer that isn't 2xx */              \
    X(DELIVERY_TIMEOUT, "timeout", "RFA_DEPENDENCY_TIMEOUT") /* no whole answer in time */               \
    X(DELIVERY_UNREACHABLE, "unreachable", "")               /* not resolved, not connected, not HTTP */ \
    X(DELIVERY_ADDRESS, "address", "")                       /* one that may not be reached */           \
    X(DELIVERY_ANSWER, "answer", "")                         /* longer than may be */                    \
    X(DELIVERY_URL, "url", "")                               /* one that can't be meant */               \
    X(DELIVERY_DISABLED, "disabled", "")                     /* the webhook is */                        \
    X(DELIVERY_REMOVED, "removed", "")                       /* the webhook was */                       \
    X(DELIVERY_JOB_GONE, "job_gone", "")                     /* the job or its event was removed */      \
    X(DELIVERY_BACKLOG, "backlog", "")                       /* too many of the client's are pending */  \
    X(DELIVERY_TOO_LARGE, "too_large", "")                   /* the event doesn't fit into a request */  \
    X(DELIVERY_STOPPED, "stopped", "")                       /* the sender ended meanwhile */            \
    X(DELIVERY_DAMAGED, "damaged", "")                       /* what it is made of can't be read */
enum delivery_error {
#define X(id, name, code) id,
    DELIVERY_ERRORS(X)
#undef X
        DELIVERY_ERROR_COUNT
};
const char *delivery_error_name(uint8_t error); /* "" for none and unknown ones */
const char *delivery_error_code(uint8_t error); /* "" */

/* Key: id. */
#define DELIVERY_FIELDS(X)                                                        \
    X(id, UUID, 0, 1)                                                             \
    X(client, UUID, 0, 1)                                                         \
    X(job, UUID, 0, 1)                                                            \
    X(webhook, UUID, 0, 1) /* all zero: the job's callback */                     \
    X(event, U64, 0, 1)    /* its number in the job's stream */                   \
    X(topic, U16, 0, 1)    /* as in the outbox */                                 \
    X(lane, U16, 0, 1)     /* by the host */                                      \
    X(state, U8, 0, 1)                                                            \
    X(error, U8, 0, 1)  /* of the newest attempt, or why there is none */         \
    X(beside, U8, 0, 1) /* 1: it stands beside its chain */                       \
    X(tries, U16, 0, 1) /* attempts since it was made or sent again */            \
    X(attempts, U32, 0, 1)                                                        \
    X(at_us, TIME, 0, 1)         /* when it was made */                           \
    X(not_before_us, TIME, 0, 1) /* of its due entry; 0: it has none */           \
    X(finished_us, TIME, 0, 1)                                                    \
    X(gone_us, TIME, 0, 1) /* when the row goes; 0: not before it has finished */ \
    X(host, TEXT, DELIVERY_HOST_MAX, 1)                                           \
    X(history, BYTES, DELIVERY_HISTORY_MAX *DELIVERY_ATTEMPT_SIZE, 1) /* delivery_attempt_at */
RECORD_STRUCT(delivery, DELIVERY_FIELDS);

/* The ways to a delivery other than its id. Key: kind, then
 *     1  job:16 webhook:16 event:8 topic:2    its chain, in the order of the events
 *     2  client:16 id:16                      all of a client's
 *     3  client:16 id:16                      those of them that failed */
#define DELIVERY_INDEX_FIELDS(X) X(id, UUID, 0, 1)
RECORD_STRUCT(delivery_index, DELIVERY_INDEX_FIELDS);

/* ---- making them ---- */

/* An event of a job. */
struct delivery_source {
    struct uuid client, job;
    uint64_t event;
    uint16_t topic;
    uint8_t bit;          /* enum job_event: what it is called */
    uint64_t event_us;    /* when it was: the ids are made of it */
    struct span callback; /* the job's, or an empty one; may borrow from the transaction */
};
struct delivery_times {
    uint64_t at_us, steady_us;
    uint64_t kept_us; /* how long those of a backlog stay */
};
/* A row for the callback and one for each active webhook that wants this event; *ret_count (may be NULL). ERR_DAMAGED: somebody's webhook
 * or delivery can't be read; the others' rows are made, and asked again, it makes those that are missing. Any other error, and damage
 * of what concerns them all (*ret_count isn't set), is said before anything is written. */
enum error delivery_spread(struct txn *txn, const struct delivery_times *times,
                           const struct delivery_source *source, uint32_t *ret_count);

/* ---- sending them ---- */

/* The first entry of the due index in the partition's lanes from `lane` on: its lane is entry.shard. ERR_NOT_FOUND: none. Then
 * due_scan(txn, DUE_DELIVERY, lane, ...) gives those of one lane. `lane` counts from 0 within the partition. */
enum error delivery_next_lane(struct txn *txn, uint16_t partition, uint32_t lane,
                              struct due_entry *ret_entry);
/* Host and port, as they stand in a URL that was checked (actors/callback_url.h); empty when there is none. */
struct span delivery_host(struct span url);

/* What came of some of them, in any order. Results are encoded one behind the other, DELIVERY_RESULT_SIZE bytes each.
 * attempt: the number of the attempt that this is about, from 1 on; or, with DELIVERY_DROP and DELIVERY_GIVE_UP, that of the newest one
 * when none was made. */
#define DELIVERY_RESULT_FIELDS(X)                          \
    X(id, UUID, 0, 1)                                      \
    X(attempt, U32, 0, 1)                                  \
    X(outcome, U8, 0, 1)                                   \
    X(error, U8, 0, 1)                                     \
    X(status, U16, 0, 1) /* of the answer; 0: none */      \
    X(began_us, TIME, 0, 1)                                \
    X(not_before_us, TIME, 0, 1) /* of the next attempt */ \
    X(took_ms, U32, 0, 1)
RECORD_STRUCT(delivery_result, DELIVERY_RESULT_FIELDS);
#define DELIVERY_RESULT_SIZE (16 + 4 + 1 + 1 + 2 + 8 + 8 + 4)
#define DELIVERY_RESULTS_MAX 128u

#define DELIVERY_SETTLE_FIELDS(X)                                    \
    X(steady_us, TIME, 0, 1)                                         \
                                                                     \
    X(kept_us, U64, 0, 1)          /* how long finished ones stay */ \
    X(disable_after_us, U64, 0, 1) /* store/webhook.h */             \
    X(results, BYTES, DELIVERY_RESULTS_MAX *DELIVERY_RESULT_SIZE, 1)
RECORD_STRUCT(delivery_settle, DELIVERY_SETTLE_FIELDS);
/* Code 245, of high priority, cleans up. Answer: a byte for each result, enum delivery_settled. ERR_INVALID: results that can't be. */
extern const struct command_class delivery_settle_class;
enum delivery_settled {
    DELIVERY_STALE = 0, /* it changed nothing: told before, or no such delivery */
    DELIVERY_SETTLED,
    DELIVERY_WEBHOOK_DISABLED, /* settled, and with it the webhook is disabled */
};

/* One that can't be read stands at this place of a chain (id, job, webhook, event and topic are looked at): who comes next behind it has
 * his turn, if he waits for nobody else. Nothing is done when somebody else stands there. */
void delivery_pass(struct txn *txn, uint64_t steady_us, const struct delivery *at);

/* By the client. One that has had its end begins anew, with all its tries; one that waits for its time is due now; one that waits for
 * an earlier event goes on waiting. ERR_NOT_FOUND, ERR_FORBIDDEN (another client's), ERR_TRANSITION (dropped), ERR_CONFLICT (its webhook
 * isn't active), ERR_LIMIT (DELIVERIES_PENDING_MAX). */
#define DELIVERY_RESEND_FIELDS(X) X(client, UUID, 0, 1) X(id, UUID, 0, 1) X(steady_us, TIME, 0, 1)
RECORD_STRUCT(delivery_resend, DELIVERY_RESEND_FIELDS);
extern const struct command_class delivery_resend_class; /* code 246 */

/* ---- reading ---- */

/* Its texts borrow from the transaction. */
enum error delivery_read(struct txn *txn, const struct uuid *id, struct delivery *ret_delivery);
struct delivery_attempt {
    uint64_t at_us;
    uint32_t took_ms;
    uint16_t status;
    uint8_t error;
};
uint32_t delivery_attempts_kept(const struct delivery *delivery);
/* position: 0 is the oldest one kept. */
struct delivery_attempt delivery_attempt_at(const struct delivery *delivery, uint32_t position);

/* Lists. A key says where a list goes on: that of the row at which the one before ended, which isn't told again. */
enum delivery_list {
    DELIVERY_LIST_ALL = 2, /* of a client, newest first */
    DELIVERY_LIST_FAILED = 3,
    DELIVERY_LIST_JOB = 1 /* of a job, by receiver, in order of events */
};
#define DELIVERY_KEY_OF_CLIENT 33u /* bytes of such a key */
#define DELIVERY_KEY_OF_JOB    43u
struct delivery_scan {
    struct scan scan;
    struct key after;
};
/* of: the client, or the job. after: NULL, or of an earlier delivery_scan_next. Ends with scan_end(&s->scan). */
void delivery_scan_begin(struct txn *txn, enum delivery_list list, const struct uuid *of,
                         const struct key *after, struct delivery_scan *ret);
/* ERR_NOT_FOUND: no more. *ret_key: where to go on behind this one. */
enum error delivery_scan_next(struct delivery_scan *s, struct delivery *ret_delivery, struct key *ret_key);

/* ---- retention ---- */

enum error delivery_expire(struct txn *txn, const struct due_entry *entry);
enum error delivery_find_due(struct txn *txn, const struct due_entry *entry);

#endif
