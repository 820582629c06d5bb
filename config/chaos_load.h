/* The steady load of a scenario: processes that submit jobs and ask after them, one request after the other, as clients do.
 *
 * What they see is counted in memory that they share with who has started them; counters are atomic, so that either side may
 * look at any time. A request has exactly one outcome:
 *
 *     good        2xx
 *     refused     429, 503 or 507: told to come again later
 *     failed      any other status
 *     unanswered  no answer: nobody listened, or it was cut off
 *
 * One thread; blocks.
 */
#ifndef COPPICE_CONFIG_CHAOS_LOAD_H
#define COPPICE_CONFIG_CHAOS_LOAD_H

#include <stdatomic.h>
#include <sys/types.h>

#include "config/client.h"

enum { CHAOS_LOADERS = 2, CHAOS_JOBS_MAX = 2000, CHAOS_JOB_ID = 40, CHAOS_STATE = 32 };

/* What a control has one of them do, once: leave a request without an answer, or ask for what isn't there. */
enum chaos_misdeed { MISDEED_NONE, MISDEED_UNANSWERED, MISDEED_FAILED };

struct chaos_load {
    _Atomic uint64_t good, refused, failed, unanswered, slowest_ns;
    _Atomic uint64_t last_bad; /* when the last one that wasn't good was answered (env_real) */
    _Atomic uint64_t
        still_ns; /* the longest that a process which only sleeps a tenth of a second came too late: the machine's doing */
    _Atomic uint32_t streak[CHAOS_LOADERS]; /* good ones since the last that wasn't */
    _Atomic uint32_t jobs;                  /* acknowledged */
    _Atomic uint32_t misdeed;
    _Atomic bool over;
    char first_bad[256]; /* what the first one that wasn't good said */
    char job[CHAOS_JOBS_MAX][CHAOS_JOB_ID];
    pid_t processes[CHAOS_LOADERS + 1]; /* the last one only sleeps */
};

/* `rate` requests a second of all of them together. NULL: no memory or no processes. */
struct chaos_load *chaos_load_start(const struct client *clients, uint64_t rate);
/* They end with the request that they are at. */
void chaos_load_stop(struct chaos_load *load);
void chaos_load_free(struct chaos_load *load);
/* A job that is to be asked after, too; passed over when there are as many as may be. */
void chaos_load_add(struct chaos_load *load, const char id[CHAOS_JOB_ID]);

struct chaos_settled {
    uint32_t succeeded;
    uint32_t lost; /* FAILED, for their runner was lost */
    uint32_t open; /* neither: failed for another reason, not final, or not there at all */
    /* The first of the open ones, else of the lost ones, and what it says; or "". */
    char which[CHAOS_JOB_ID], state[CHAOS_STATE], reason[CHAOS_STATE];
};
/* Each job is asked after until it is final, or the deadline (env_real) is there. */
struct chaos_settled chaos_load_settle(struct chaos_load *load, const struct client *clients,
                                       uint64_t deadline);

#endif
