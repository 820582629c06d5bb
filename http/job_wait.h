/* Waiting for a job's end on behalf of a client that prefers to (http/prefer.h).
 *
 * The connection's actor waits, woken by each commit that adds events to the job's topic; no thread is held, and an actor costs its
 * stack meanwhile. A wake-up that was lost (a writer that was killed, more than STORE_WATCHERS_MAX who wait) is made up for by a
 * look each JOB_WAIT_LOOK_MS.
 */
#ifndef COPPICE_HTTP_JOB_WAIT_H
#define COPPICE_HTTP_JOB_WAIT_H

#include "http/response.h"
#include "store/uuid.h"

#define JOB_WAIT_LOOK_MS 1000u

/* True: the job is final. False: the time is over, the client has gone, the server drains, or the job can't be read. Wakes of the
 * store that come for this actor meanwhile are dropped: not for a handler that waits for others. */
bool job_wait(struct response *r, const struct uuid *id, uint64_t until);

#endif
