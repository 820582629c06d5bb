/* Pauses: jobs of a kind, of a client, or all of them may not be claimed for a while.
 *
 *     pause --> in force --resume, or until_us--> on the way back --> gone
 *
 * What runs goes on; what is queued waits. With a pause of everything a claim finds nothing and touches no row. A pause of a kind
 * or a client costs a claim what it meets: each such job is set aside once, into a lane of its own (store/job_queue.h), so that
 * those behind it are found at once. When the pause ends, what was set aside comes back to its old place, JOB_UNPARK_MAX jobs in
 * one command; until the last one is back the row stays and says so. A new pause meanwhile takes it up again. A job that is damaged
 * is passed by, up to JOB_UNPARK_PASS_MAX of them in one command; the row says how far it is, so that the next one goes on behind them.
 * When only damaged ones are left, they are looked at again in an hour (JOB_SET_BY_US). So is a pause whose own row is damaged.
 *
 * A job with a mark (job.run) passes every pause and the limit of its client, and goes before the others.
 *
 * Everything happens in commands; the actor that gives job.unpark is woken by the due index (actors/pauser.h).
 */
#ifndef COPPICE_STORE_JOB_PAUSE_H
#define COPPICE_STORE_JOB_PAUSE_H

#include "store/job_queue.h"

#define PAUSES_MAX          1000u /* rows; each claimed job looks two of them up, however many there are */
#define JOB_UNPARK_MAX      256u  /* jobs that one command brings back: three rows and a counter each */
#define JOB_UNPARK_PASS_MAX 256u  /* that it passes by: a lookup of each */
#define PAUSE_LABEL         128u
#define PAUSE_WHO           112u
#define PAUSE_REASON        512u

/* X(ID, "name"). Numbers are stored. */
#define PAUSE_SCOPES(X)   \
    X(PAUSE_ALL, "all")   \
    X(PAUSE_WORK, "kind") \
    X(PAUSE_CLIENT, "client")
enum pause_scope {
#define X(id, name) id,
    PAUSE_SCOPES(X)
#undef X
        PAUSE_SCOPE_COUNT
};
const char *pause_scope_name(uint8_t scope); /* NULL: there is none */

/* Key: scope, name. */
#define PAUSE_FIELDS(X)                                                        \
    X(scope, U8, 0, 1)                                                         \
    X(ending, U8, 0, 1) /* 1: what was set aside comes back */                 \
    X(name, UUID, 0, 1) /* job_work_id, the client, or zero */                 \
    X(since_us, TIME, 0, 1)                                                    \
    X(until_us, TIME, 0, 1)        /* by wall time; 0: until it is resumed */  \
    X(due_us, TIME, 0, 1)          /* its entry in the due index; 0: none */   \
    X(label, TEXT, PAUSE_LABEL, 1) /* the kind's name, or the client's id */   \
    X(who, TEXT, PAUSE_WHO, 1)                                                 \
    X(reason, TEXT, PAUSE_REASON, 1)                                           \
    X(rank, U8, 0, 2) /* on the way back: up to here those left are damaged */ \
    X(place, U64, 0, 2)
RECORD_STRUCT(pause, PAUSE_FIELDS);
struct key pause_key(uint8_t scope, const struct uuid *name);

/* One that is in force already: its reason and end are the new ones, since when it is stays.
 * ERR_INVALID    no such scope, or a time that has passed
 * ERR_NOT_FOUND  no such client
 * ERR_LIMIT      PAUSES_MAX */
#define JOB_PAUSE_FIELDS(X)        \
    X(scope, U8, 0, 1)             \
    X(name, UUID, 0, 1)            \
    X(until_us, TIME, 0, 1)        \
    X(label, TEXT, PAUSE_LABEL, 1) \
    X(who, TEXT, PAUSE_WHO, 1)     \
    X(reason, TEXT, PAUSE_REASON, 1)
RECORD_STRUCT(job_pause, JOB_PAUSE_FIELDS);
extern const struct command_class job_pause_class; /* code 220; answer: since_us, u64 */

/* ERR_NOT_FOUND: it isn't paused. */
#define JOB_RESUME_FIELDS(X) X(scope, U8, 0, 1) X(name, UUID, 0, 1)
RECORD_STRUCT(job_resume, JOB_RESUME_FIELDS);
extern const struct command_class job_resume_class; /* code 221; answer: jobs yet to come back, i64 */

/* What is due: pauses whose time is over end, and up to `most` jobs come back. */
#define JOB_UNPARK_FIELDS(X) X(wall_us, TIME, 0, 1) X(most, U16, 0, 1)
RECORD_STRUCT(job_unpark, JOB_UNPARK_FIELDS);
extern const struct command_class job_unpark_class; /* code 222; answer: struct job_unparked */
struct job_unparked {
    uint32_t came;    /* jobs that are back */
    uint32_t damaged; /* jobs and pauses that were passed by */
};

/* This one now, whatever is paused: it comes before all others of its queue, without waiting for its backoff.
 * ERR_NOT_FOUND  no such job
 * ERR_CONFLICT   it isn't QUEUED */
#define JOB_RUN_FIELDS(X) X(id, UUID, 0, 1)
RECORD_STRUCT(job_run, JOB_RUN_FIELDS);
extern const struct command_class job_run_class; /* code 223 */

/* ---- reading ---- */

/* The pause that keeps this job from being claimed; ERR_NOT_FOUND: none does. Its texts borrow from the transaction. */
enum error pause_find(struct txn *txn, const struct job *job, struct pause *ret_pause);
/* Jobs that are set aside for it so far. */
enum error pause_aside(struct txn *txn, const struct pause *pause, int64_t *ret_count);

/* Of a claim, for each job that it meets: OK: no pause is in its way. ERR_NOT_FOUND: everything is paused. ERR_CONFLICT:
 * it belongs into *ret_lane. */
enum error pause_verdict(struct txn *txn, const struct job *job, enum job_lane *ret_lane);

#define PAUSE_SHARD 0u /* of DUE_JOB_PAUSE: one is enough */
#define PAUSE_AT_ONCE \
    1u /* as the time of the next step of one that is ending: it waits for no clock, however that is set */

#endif
