/* The queue of jobs: which one is next, in the order of creation (AMB-J-37).
 *
 * A row for each job that is QUEUED and may be claimed. One that waits for its backoff has no row and keeps its place: the row
 * comes when its time has. Lanes:
 *
 *     LANE_SERVER   lane:1  rank:1  place:8                         the catalogue's kinds, for workers of the server
 *     LANE_OUTSIDE  lane:1  client:16  work:16  rank:1  place:8     kinds x.*, for the client's own workers
 *     LANE_PAUSED_WORK, LANE_PAUSED_CLIENT, LANE_LIMITED
 *                   lane:1  name:16  rank:1  place:8                set aside: the kind or the client is paused, or the
 *                                                                   client has as many running as it may (then those
 *                                                                   for workers of the server alone)
 *     LANE_FAIR     lane:1  client:16  rank:1  place:8              instead of LANE_SERVER while clients take turns
 *                                                                   (store/job_fairness.h); and a second row of the same job:
 *     LANE_ORDER    lane:1  rank:1  place:8                         in the order of creation, whosever it is
 *
 * rank goes by priority, the same for all unless priorities are on; one that an operator wants now has the first, and stands in
 * LANE_SERVER in any case. place is the number of creation. A claim that meets a job which may not run sets it aside, once; so a
 * pause costs nothing to those behind, and what is set aside keeps its place for the way back.
 *
 * Within a command, or a view where it only reads.
 */
#ifndef COPPICE_STORE_JOB_QUEUE_H
#define COPPICE_STORE_JOB_QUEUE_H

#include "store/job.h"

enum job_lane {
    LANE_NONE = 0,
    LANE_SERVER,
    LANE_OUTSIDE,
    LANE_PAUSED_WORK,
    LANE_PAUSED_CLIENT,
    LANE_LIMITED,
    LANE_FAIR,
    LANE_COUNT,
    LANE_ORDER = 32 /* of rows alone: no job says that it stands there */
};

#define JOB_PRIORITY_MAX 9u

/* Key: see above. */
#define JOB_QUEUE_FIELDS(X) X(id, UUID, 0, 1) X(client, UUID, 0, 1) X(work, UUID, 0, 1)
RECORD_STRUCT(job_queue, JOB_QUEUE_FIELDS);

/* Which one goes first, of two in one lane. */
uint8_t job_queue_rank(const struct job *job);
/* Of its row, by the job's lane. */
struct key job_queue_key(const struct job *job);
/* Of its second row, which one in LANE_FAIR has. */
struct key job_queue_order_key(const struct job *job);
/* Into the lane of its kind. Of the server's workers one is woken for each job (actors/worker.h says how it goes on), and so is one of
 * its client's who wait for its kind, or else for any. The job has no row. */
void job_queue_put(struct txn *txn, struct job *job);
/* Takes its row away, if it has one. */
void job_queue_take(struct txn *txn, struct job *job);
/* To another lane, from which nobody claims: nobody is woken. */
void job_queue_move(struct txn *txn, struct job *job, enum job_lane lane);
/* From LANE_SERVER to LANE_FAIR, where it may be claimed as before: nobody is woken. job_write is the caller's. */
void job_queue_sort(struct txn *txn, struct job *job);

/* The next row of a lane, or of what is in it of `name` (and `work`; NULL: of all), behind `behind` (NULL: the first). OK;
 * ERR_NOT_FOUND: there is none; ERR_DAMAGED: it can't be read, and whoever wants goes on behind *ret_key (of size 0: the table
 * itself is damaged there). */
enum error job_queue_next(struct txn *txn, enum job_lane lane, const struct uuid *name,
                          const struct uuid *work, const struct key *behind, struct job_queue *ret_row,
                          struct key *ret_key);
/* Rank and place in one: the smaller comes first. The last bytes of any row's key. */
struct job_turn {
    uint8_t bytes[9];
};
struct job_turn job_queue_turn(const struct key *key);
/* The client's kinds outside that have a row: those behind a point that `number` draws, then from the first one up to it. Whoever looks
 * at some of very many so begins elsewhere with each number, and comes to all of them. Each call gives the next one in `work`, and in
 * `turn` that of its first row, with one look into the index. ERR_NOT_FOUND: each has been there. */
struct job_works {
    struct uuid point, work;
    struct job_turn turn;
    bool again; /* it has begun with the first one */
};
void job_works_begin(struct job_works *works, uint64_t number);
enum error job_works_next(struct txn *txn, const struct uuid *client, struct job_works *works);
#define JOB_WAKE_WORKS_MAX 256u /* so many are looked at for who is to be woken: about 0.1 ms */
/* The client behind `after` (NULL: the first) that has a row in this lane, which is one of those by client; also when the row can't be
 * read. ERR_NOT_FOUND. */
enum error job_queue_next_client(struct txn *txn, enum job_lane lane, const struct uuid *after,
                                 struct uuid *ret_client);
/* Clients that have a row in LANE_FAIR, in the order of their turns: those behind `last`, then from the first one up to it. Begins with
 * `at` as `last`; each call gives the next one in `at`. ERR_NOT_FOUND: each has been there. */
struct job_round {
    struct uuid last, at;
    bool again; /* it has begun with the first one */
};
enum error job_round_next(struct txn *txn, struct job_round *round);
enum error job_queue_any_fair(struct txn *txn, bool *ret_any); /* whether a job is left that has two rows */
/* A client's limit. A claim that knows of one (job_claim.client_max) counts what it claims. A job for the server's workers that is beyond it
 * goes to LANE_LIMITED, where it is in nobody's way. When a counted one leaves ASSIGNED and RUNNING, the first of that lane comes back, and
 * takes its place along as a promise: so as long as the lane isn't empty, one of the client's is counted or promised, whatever becomes
 * of the limit meanwhile. Jobs of the client's own kinds stay in its lanes, where they are in nobody's way but its own: for one that were
 * promised a place there might be no worker. Who waits for them is woken, for the 8 kinds whose first job
 * is the oldest, of JOB_WAKE_WORKS_MAX that are looked at, in that order (the others look now and then). */
void job_queue_admit(struct txn *txn, const struct uuid *client); /* none is fine */
/* A promised job can't be claimed after all: it may be moved, and the next one comes back. job_write is the caller's. */
void job_queue_pass_on(struct txn *txn, struct job *job);
enum error job_queue_counted(struct txn *txn, const struct uuid *client, int64_t *ret_count);

/* How many are set aside in this lane for that kind or client. */
enum error job_queue_aside(struct txn *txn, enum job_lane lane, const struct uuid *name, int64_t *ret_count);
/* How many jobs are before this one in its lane; counts up to `most`. While clients take turns those are the jobs that get theirs
 * before it, should none come and go: as many of each other client as of its own, and one more of those whose turn comes first.
 * Reads no more than `most` rows, and one for each client. Of a job that hasn't been given its turn yet: those in the same plight. */
enum error job_queue_ahead(struct txn *txn, const struct job *job, uint32_t most, uint32_t *ret_count);

#endif
