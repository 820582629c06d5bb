/* Bulk actions: cancel or retry every job that a filter matches, as a task in the background.
 *
 *     start --> running --last job seen--> done
 *                  `-----abort----------> aborted          each is kept a day beyond its end, or until its place is needed
 *
 * Each client has BULKS_OWN_MAX places, and so have the operators together, whose places no client can take. Who needs one and has them all, or
 * finds those of all clients taken, loses what has ended first of his own; a client that has nothing there gets the place of what has ended
 * first of all clients. So whoever has fewer than BULKS_RUNNING_MAX running can begin, unless all places of clients are of such as run.
 *
 * The row is the task: what it is to do, how far it is, and what came of it. A step (job.bulk_step, by the actor `queues`) goes on
 * behind the cursor, looks at BULK_LOOK_MAX jobs at most, changes BULK_CHANGE_MAX of them at most, and sets the time of the next step:
 * so a task has a bounded rate, several of them take turns, and a restart goes on where it was. A job that can't be changed now,
 * because whoever has to be told of it can't be, or because the queue is full, is waited for. One whose row is damaged is passed, and
 * counted as matched and left: nobody knows whether it matches, and it is in nobody's way. Steps go by steady time (store/steady.h): a
 * wall clock that is set changes nothing. Rows of an earlier version have wall times, where steady time begins at a start: so they come.
 *
 * It is of the jobs that were there when it began. A client's tasks are of its own jobs; an operator's of everybody's, or of one client.
 */
#ifndef COPPICE_STORE_JOB_BULK_H
#define COPPICE_STORE_JOB_BULK_H

#include "store/job_change.h"

#define BULKS_RUNNING_MAX 4u    /* of one client, or of the operators */
#define BULKS_OWN_MAX     100u  /* rows of one client, or of the operators: more of them than can run */
#define BULKS_CLIENTS_MAX 1000u /* rows of all clients */
#define BULKS_MAX         (BULKS_CLIENTS_MAX + BULKS_OWN_MAX)
#define BULK_LOOK_MAX     512u
#define BULK_CHANGE_MAX   (ANSWER_SIZE_MAX / 128u) /* struct bulk_changed each */
#define BULK_STEP_US      UINT64_C(20000)          /* between two steps: at most 1,600 changes a second */
#define BULK_WAIT_US      UINT64_C(500000)         /* when a job can't be changed now */
#define BULK_KEPT_US      (UINT64_C(86400) * 1000000)
#define BULK_LABEL        66u
#define BULK_WHO          112u
#define BULK_REASON       512u
#define BULK_SHARD        0u
#define BULK_AT_ONCE      1u /* as the time of the next step: the first one's */

/* X(ID, "name"). Numbers are stored. */
#define BULK_ACTIONS(X)      \
    X(BULK_CANCEL, "cancel") \
    X(BULK_RETRY, "retry")
enum bulk_action {
#define X(id, name) id,
    BULK_ACTIONS(X)
#undef X
        BULK_ACTION_COUNT
};
const char *bulk_action_name(uint8_t action); /* NULL: there is none */

#define BULK_STATES(X)                       \
    X(BULK_RUNNING, "running", 0)            \
    X(BULK_DONE, "done", LIFECYCLE_TERMINAL) \
    X(BULK_ABORTED, "aborted", LIFECYCLE_TERMINAL)
enum bulk_state {
#define X(id, name, flags) id,
    BULK_STATES(X)
#undef X
};
#define BULK_EVENTS(X)       \
    X(BULK_FINISH, "finish") \
    X(BULK_ABORT, "abort")
enum bulk_event {
#define X(id, name) id,
    BULK_EVENTS(X)
#undef X
};
extern const struct lifecycle bulk_lifecycle;

#define BULK_ANY_TYPE UINT8_MAX

/* Which jobs: the part that the task and the question share. */
#define BULK_FILTER_FIELDS(X)                                       \
    X(client, UUID, 0, 1)         /* all zero: everybody's */       \
    X(states, U8, 0, 1)           /* bit per enum job_state */      \
    X(type, U8, 0, 1)             /* BULK_ANY_TYPE */               \
    X(work, UUID, 0, 1)           /* job_work_id; all zero: any */  \
    X(from_us, TIME, 0, 1)        /* created then or later */       \
    X(until_us, TIME, 0, 1)       /* created before; 0: any time */ \
    X(label, TEXT, BULK_LABEL, 1) /* the kind's name */

/* Key: id. */
#define BULK_FIELDS(X)                                                            \
    X(id, UUID, 0, 1)                                                             \
    X(owner, UUID, 0, 1) /* the client whose task it is; all zero: an operator */ \
    X(action, U8, 0, 1)                                                           \
    X(state, U8, 0, 1)                                                            \
    BULK_FILTER_FIELDS(X)                                                         \
    X(created_us, TIME, 0, 1)                                                     \
    X(finished_us, TIME, 0, 1)                                                    \
    X(due_us, TIME, 0, 1)   /* by steady time; 0: it has ended */                 \
    X(last_seq, U64, 0, 1)  /* of the newest job when it began */                 \
    X(after_seq, U64, 0, 1) /* how far it is among a client's jobs */             \
    X(after_id, UUID, 0, 1) /* how far among all */                               \
    X(matched, U64, 0, 1)                                                         \
    X(changed, U64, 0, 1)                                                         \
    X(left, U64, 0, 1) /* matched, and not in a state for this by then */         \
    X(who, TEXT, BULK_WHO, 1)                                                     \
    X(reason, TEXT, BULK_REASON, 1)
RECORD_STRUCT(bulk, BULK_FIELDS);

/* by_steady 1: it goes on by steady time, at once. 0, of version 1: by the wall clock, from its own time on; and who wrote it had made
 * sure that there is a place.
 * ERR_LIMIT: too many are running. ERR_INVALID, ERR_EXISTS. */
#define JOB_BULK_FIELDS(X)          \
    X(id, UUID, 0, 1)               \
    X(owner, UUID, 0, 1)            \
    X(action, U8, 0, 1)             \
    BULK_FILTER_FIELDS(X)           \
    X(who, TEXT, BULK_WHO, 1)       \
    X(reason, TEXT, BULK_REASON, 1) \
    X(by_steady, U8, 0, 2)
RECORD_STRUCT(job_bulk, JOB_BULK_FIELDS);
extern const struct command_class job_bulk_class; /* code 224 */

/* owner all zero: an operator, who may end any. One that has ended is as it is: OK.
 * ERR_NOT_FOUND, ERR_FORBIDDEN */
#define JOB_BULK_ABORT_FIELDS(X) X(id, UUID, 0, 1) X(owner, UUID, 0, 1)
RECORD_STRUCT(job_bulk_abort, JOB_BULK_ABORT_FIELDS);
extern const struct command_class job_bulk_abort_class; /* code 225 */

/* The first task whose time has come goes on; with none nothing happens. by_steady 1: by steady_us; 0, of version 1: by wall_us, which is
 * for nothing else. */
#define JOB_BULK_STEP_FIELDS(X) \
    X(wall_us, TIME, 0, 1)      \
    X(steady_us, TIME, 0, 1)    \
    X(kept_us, U64, 0, 1)       \
    X(retry_max, U16, 0, 1)     \
    X(queue_max, U32, 0, 1)     \
    X(base_us, U64, 0, 1)       \
    X(most_us, U64, 0, 1)       \
    X(chance, U32, 0, 1)        \
    X(by_steady, U8, 0, 2)
RECORD_STRUCT(job_bulk_step, JOB_BULK_STEP_FIELDS);
extern const struct command_class
    job_bulk_step_class; /* code 226; answer: struct bulk_changed, one behind the other */
struct bulk_changed {
    struct uuid id;
    struct job_changed job;
};

/* ---- reading ---- */

/* Its texts borrow from the transaction. */
enum error bulk_read(struct txn *txn, const struct uuid *id, struct bulk *ret_bulk);
/* What a task would find, without changing anything: looks at BULK_LOOK_MAX jobs at most behind the cursor of `bulk`, moves it on, and
 * gives the ids of those that match and could be changed; `matched` and `left` are counted up. Up to `most` ids at a time: a page
 * may end before it has looked at all. *ret_end: there are no more. */
enum error bulk_look(struct txn *txn, struct bulk *bulk, uint16_t retry_max, struct uuid *ids, uint32_t most,
                     uint32_t *ret_count, bool *ret_end);

enum error bulk_expire(struct txn *txn, const struct due_entry *entry);
enum error bulk_find_due(struct txn *txn, const struct due_entry *entry);

#endif
