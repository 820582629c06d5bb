/* Fairness: whether clients take turns at the server's workers, and whose turn it was.
 *
 *     off   jobs are claimed in the order of creation, whosever they are (AMB-J-37); no row here
 *     on    each claim goes to the next client that has a job, in the order of their ids and round again, and takes that client's
 *           first: by priority, then in the order of creation. So of n clients with jobs each gets one claim in n, and a job of a
 *           client that has no other waits for n - 1 claims at most, whatever the others have submitted
 *
 * With it on a job stands in two rows of the queue (store/job_queue.h): of its client, where turns are taken, and in the order of
 * creation, which is all that counts when it is off again. What was queued before it was switched on is given its second row by
 * job.fairness, FAIRNESS_SORT_MAX jobs in one command; until then it comes behind the others. What is left of a time when it was
 * on, after it was switched off, is claimed in the order of creation together with what has come since: both begin with their first,
 * and the smaller is the next one.
 *
 * A claim with it on costs two rows more to find (the next client; round again) and two to write (the second row, and whose turn
 * it was). One that a pause or a limit keeps from a client's jobs goes on to the next client, and sets one of them aside.
 *
 * Who is next is in the store alone: commands read nothing else, so they come to the same when they are applied again. Within a
 * command, or a view where it only reads.
 */
#ifndef COPPICE_STORE_JOB_FAIRNESS_H
#define COPPICE_STORE_JOB_FAIRNESS_H

#include "store/job_queue.h"

#define FAIRNESS_SORT_MAX 256u  /* jobs of one command: four rows each */
#define FAIRNESS_LOOK_MAX 1024u /* and rows that it looks at, damaged ones included */

/* Key: LANE_SERVER, the lane whose jobs it is about. One row, or none. */
#define FAIRNESS_FIELDS(X)                                                                               \
    X(on, U8, 0, 1)     /* 0: off, and there are jobs from when it was on */                             \
    X(last, UUID, 0, 1) /* the client that was served last */                                            \
    X(rank, U8, 0, 1)   /* up to here all that were queued before have been looked at: their turns... */ \
    X(place, U64, 0, 1) /* ... are in the order of these */
RECORD_STRUCT(fairness, FAIRNESS_FIELDS);
struct key fairness_key(void);

/* ERR_NOT_FOUND: it is off, and nothing is left of a time when it was on. */
enum error fairness_read(struct txn *txn, struct fairness *ret);
bool fairness_on(struct txn *txn);
/* A job of this client was claimed in its turn. */
void fairness_served(struct txn *txn, struct fairness *fairness, const struct uuid *client);

/* On (1) or off (0), and a step of what is to be done for it. Nothing to do is no error.
 * ERR_INVALID: neither on nor off, or `most` is 0 */
#define JOB_FAIRNESS_FIELDS(X) X(on, U8, 0, 1) X(most, U16, 0, 1)
RECORD_STRUCT(job_fairness, JOB_FAIRNESS_FIELDS);
extern const struct command_class job_fairness_class; /* code 227; answer: struct job_fairness_set */
struct job_fairness_set {
    uint32_t sorted;  /* jobs that got their second row */
    uint32_t damaged; /* that were passed by */
};
/* Whether that command has something to do; *ret_any. */
enum error fairness_pending(struct txn *txn, bool on, bool *ret_any);

#endif
