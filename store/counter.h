/* Counters: numbers kept when things are written, so that nobody ever counts rows to show one.
 *
 * A counter is a number from the list below and a label of its own (a partition, a state, a client's id); adding
 * to it is part of the transaction. Changes of one transaction are summed in memory and written once, before its
 * commit. A counter that is 0 has no row: so what `coppice check` recomputes from the records is the table, byte
 * for byte.
 */
#ifndef COPPICE_STORE_COUNTER_H
#define COPPICE_STORE_COUNTER_H

#include "store/txn.h"

#define COUNTER_LABEL_MAX 64u

/* X(ID, number, "name", "help"). Numbers are stored; domains take blocks of 100. */
#define COUNTERS(X)                                                                                        \
    X(COUNTER_AUDITS, 2, "audits", "audit entries, by verb")                                               \
    X(COUNTER_OUTBOX, 3, "outbox", "rows waiting, by partition (2 bytes)")                                 \
    X(COUNTER_DEAD, 4, "dead", "rows given up, by partition (2 bytes)")                                    \
    X(COUNTER_DUE, 5, "due", "durable timers, by queue (1 byte)")                                          \
    X(COUNTER_OUTBOX_NEXT, 6, "outbox_next", "the last row number given, by partition; never goes back")   \
    X(COUNTER_LEDGER_NEXT, 7, "ledger_next", "the last row number given, by lifetime; never goes back")    \
    X(COUNTER_RETAINED, 8, "retained", "wall time, us, up to which retention has been; never goes back")   \
    X(COUNTER_STEADY, 9, "steady", "steady time, us, up to which it has been; never goes back")            \
    X(COUNTER_LEDGER_PASSED, 10, "ledger_passed", "the row behind which cleaning up goes on, by lifetime") \
    X(COUNTER_CLIENTS, 100, "clients", "clients")                                                          \
    X(COUNTER_API_KEYS, 101, "api_keys", "API keys kept, by client (16 bytes)")                            \
    X(COUNTER_JOBS, 200, "jobs", "jobs, by state (1 byte)")                                                \
    X(COUNTER_JOB_SEQ, 201, "job_seq", "the last number of creation given; never goes back")               \
    X(COUNTER_JOB_NEWEST, 202, "job_newest", "created_at of the newest job, us; never goes back")          \
    X(COUNTER_JOB_FENCE, 203, "job_fence", "the last fence of a claim; never goes back")                   \
    X(COUNTER_JOBS_ASIDE, 204, "jobs_aside",                                                               \
      "jobs that are set aside, by lane (1 byte) and kind or client (16 bytes)")                           \
    X(COUNTER_BULKS, 205, "bulks", "bulk actions that run, by client (16 bytes); all zero: the operators") \
    X(COUNTER_JOBS_COUNTED, 206, "jobs_counted",                                                           \
      "claimed jobs that count for a limit, by client (16 bytes)")                                         \
    X(COUNTER_WEBHOOKS, 210, "webhooks", "webhooks that are active, by client (16 bytes)")                 \
    X(COUNTER_DELIVERIES, 211, "deliveries", "deliveries, by state (1 byte)")                              \
    X(COUNTER_DELIVERIES_PENDING, 212, "deliveries_pending", "deliveries on their way, by client (16 bytes)")

enum counter_id {
#define X(id, number, name, help) id = number,
    COUNTERS(X)
#undef X
};

/* Key: counter, label. */
#define COUNTER_FIELDS(X) X(value, I64, 0, 1)
RECORD_STRUCT(counter, COUNTER_FIELDS);

struct key counter_key(uint16_t counter, struct span label);
/* Counts as a write of the command. An earlier row that is damaged makes the whole transaction fail. */
void counter_add(struct txn *txn, uint16_t counter, struct span label, int64_t delta);
/* The value, what this transaction added included. 0 when there is no row. */
enum error counter_read(struct txn *txn, uint16_t counter, struct span label, int64_t *ret_value);
const char *counter_name(uint16_t counter); /* NULL: not in the list */

/* By the batch, before the commit: the sums go into the table. */
void counter_write_all(struct txn *txn);

#endif
