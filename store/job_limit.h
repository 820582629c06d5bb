/* A client's limit that has been raised, or taken away: what stands set aside for it (LANE_LIMITED, store/job_queue.h) comes back.
 *
 * As long as a limit stays as it is, whatever leaves ASSIGNED and RUNNING brings the next one back. With a higher one there is room for
 * more, and nobody has left: job.admit goes through the clients that have jobs set aside, and gives one job of each that has room the promise
 * of a place. Whoever claims that one brings the next one back, for as long as there is room (store/job_lease.h), and so on; with
 * no limit, until none is left. So one job of each client is enough, and the command is short however many jobs there are.
 *
 * Given by the actor `queues` (actors/queues.h), which knows of the limit. Within a command, or a view where it only reads.
 */
#ifndef COPPICE_STORE_JOB_LIMIT_H
#define COPPICE_STORE_JOB_LIMIT_H

#include "store/job_queue.h"

#define JOB_ADMIT_CLIENTS_MAX \
    64u /* of one command; of each it looks at as many jobs as job_queue_admit does */

/* Clients behind `after` (all zero: from the first one on); client_max as of job.claim, 0: there is no limit. */
#define JOB_ADMIT_FIELDS(X) X(after, UUID, 0, 1) X(client_max, U32, 0, 1)
RECORD_STRUCT(job_admit, JOB_ADMIT_FIELDS);
extern const struct command_class job_admit_class; /* code 228; answer: struct job_admitted */
struct job_admitted {
    struct uuid after; /* for the next command */
    uint32_t clients;  /* that had room */
    uint32_t more;     /* 1: there may be others behind `after` */
};

/* Whether any job is set aside for a limit. */
enum error limit_any(struct txn *txn, bool *ret_any);

#endif
