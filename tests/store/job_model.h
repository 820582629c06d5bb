/* A model of jobs on plain arrays: what every command must answer, and what the job's row must say afterwards.
 *
 * Written from the specification's rules and not from the store's code: no table, no index, no timer; whoever is next, due or
 * over is found by looking at all jobs. Each function takes the command that the store gets, changes the model and says the
 * answer, byte for byte.
 *
 * Not in it: those who have to be told, pauses, limits of one client.
 */
#ifndef COPPICE_TESTS_STORE_JOB_MODEL_H
#define COPPICE_TESTS_STORE_JOB_MODEL_H

#include "store/job_change.h"
#include "store/job_fairness.h"
#include "store/job_fire.h"
#include "store/job_lease.h"
#include "store/job_queue.h"
#include "store/job_submit.h"
#include "store/retention.h"

enum { MODEL_JOBS = 192, MODEL_ATTEMPTS = 4, MODEL_KEY_SIZE = 8 };

struct model_report {
    bool there;
    uint8_t outcome;
    uint64_t fence, started_us, finished_us;
    struct job_finish said; /* its texts are the test's own; fence 0: nobody said anything */
    uint64_t texts;
    bool retried;
};

struct model_job {
    bool there;
    bool turned; /* it may be claimed, and stands where clients take turns */
    struct uuid id, client;
    uint8_t type, state, kind, priority, failure, retryable;
    uint16_t attempt, progress;
    uint32_t events;
    uint64_t seq, created_us, execution_us, updated_us, queued_us, started_us, finished_us, retire_us;
    uint64_t fence, lease_us, owner;
    uint64_t due_us; /* of its timer; 0: it has none. A QUEUED one without may be claimed */
    char key[MODEL_KEY_SIZE];
    uint8_t body; /* of the request that had the key */
    struct model_report reports[MODEL_ATTEMPTS + 1];
};

struct model {
    struct model_job jobs[MODEL_JOBS];
    uint64_t seq, newest_us, fence;
    bool fair;        /* clients take turns */
    struct uuid last; /* who was served last in its turn */
};

struct model_answer {
    enum error error;
    uint32_t size;
    uint8_t bytes[ANSWER_SIZE_MAX];
};

struct model_job *model_find(struct model *m, const struct uuid *id); /* NULL: there is none */
uint32_t model_count(const struct model *m, uint8_t state);
uint32_t model_room(const struct model *m); /* jobs that it can still take */

/* One of the commands of jobs, or retention.sweep; its struct. */
void model_apply(struct model *m, const struct command_class *class, const void *command, uint64_t at_us,
                 struct model_answer *ret);

#endif
