/* Jobs for tests: a store, two clocks and two clients of their own, and every command of the domain in one line.
 *
 * Wall and steady time stand still unless a test moves them; leases, limits and what is kept are fields that a test may set.
 */
#ifndef COPPICE_TESTS_STORE_JOBS_H
#define COPPICE_TESTS_STORE_JOBS_H

#include "store/job_change.h"
#include "store/job_fire.h"
#include "store/job_lease.h"
#include "store/job_queue.h"
#include "store/job_submit.h"
#include "tests/store/fresh.h"

#define JOBS_AT_US     UINT64_C(1700000000000000) /* a full second */
#define JOBS_SECOND_US UINT64_C(1000000)
#define JOBS_DAY_US    (86400 * JOBS_SECOND_US)
#define JOBS_LEASE_US  (30 * JOBS_SECOND_US)

struct jobs {
    struct fresh fresh;
    uint64_t at_us, steady_us, start;
    uint64_t lease_us, kept_us, base_us, most_us, grace_us;
    uint32_t queue_max, active_max, running_max;
    uint16_t retry_max;
    bool auto_retry; /* of what is lost */
    struct uuid client, other;
};

void jobs_open(struct jobs *j);
void jobs_close(struct jobs *j);             /* all rows must be sound */
void jobs_pass(struct jobs *j, uint64_t us); /* on both clocks */

/* ---- commands; ret may be NULL ---- */

struct job_submit jobs_wish(struct jobs *j, uint8_t kind); /* EXECUTE, by the client, under a new id */
struct job_submit jobs_wish_user(struct jobs *j, const char *kind_name);
struct job_submit jobs_wish_at(struct jobs *j, uint64_t execution_us);
enum error jobs_submit(struct jobs *j, const struct job_submit *c, struct job_submitted *ret);
struct uuid jobs_new(struct jobs *j); /* QUEUED */
struct job_claim jobs_claim_of(struct jobs *j, uint16_t most);
enum error jobs_claim(struct jobs *j, const struct job_claim *c, struct job_claimed ret[JOB_CLAIM_MAX],
                      uint32_t *ret_count);
enum error jobs_claim_one(struct jobs *j, struct job_claimed *ret);
enum error jobs_begin(struct jobs *j, const struct uuid *id, uint64_t fence);
enum error jobs_beat(struct jobs *j, const struct uuid *id, uint64_t fence);
struct job_finish jobs_end_of(struct jobs *j, const struct uuid *id, uint64_t fence, enum job_event event);
enum error jobs_finish(struct jobs *j, const struct job_finish *c, struct job_finished *ret);
enum error jobs_cancel(struct jobs *j, const struct uuid *client, const struct uuid *id,
                       struct job_changed *ret);
enum error jobs_retry(struct jobs *j, const struct uuid *client, const struct uuid *id,
                      struct job_changed *ret);
/* Of all shards, until nothing is due: how many there were, of which `most` are in ret. */
uint32_t jobs_fire(struct jobs *j, struct job_fired *ret, uint32_t most);
enum error jobs_reap(struct jobs *j, const struct uuid *id, struct job_fired *ret);
void jobs_sweep(struct jobs *j);

/* A new job in this state. FAILED: retryable, of its first attempt. */
struct jobs_held {
    struct uuid id;
    uint64_t fence;
};
struct jobs_held jobs_in(struct jobs *j, uint8_t state);

/* ---- looking ---- */

enum error jobs_find(struct jobs *j, const struct uuid *id, struct job *ret); /* without its texts */
struct job jobs_look(struct jobs *j, const struct uuid *id);
enum error jobs_report(struct jobs *j, const struct uuid *id, struct report *ret); /* likewise */
int64_t jobs_count(struct jobs *j, uint8_t state);
uint64_t jobs_rows(struct jobs *j, uint32_t table); /* how many */
uint64_t jobs_sum(struct jobs *j);                  /* all rows of all tables as one number */

/* The names of a job's events, without "job.", one space between. Looks at what must be true of any log: each begins where the
 * one before ended, and its edge is in the table or the exception; numbers have no gap, times are whole milliseconds and grow,
 * no two ids are equal, and the row agrees with the last one. */
#define JOBS_STORY 1024
const char *jobs_story(struct jobs *j, const struct uuid *id);
#define JOBS_STORY_IS(j, id, text) \
    TEST_CHECK_(strcmp(jobs_story(j, id), text) == 0, "%s, not %s", jobs_story(j, id), text)
/* The payload of event number `seq`, as clients see it. */
const char *jobs_payload(struct jobs *j, const struct uuid *id, uint64_t seq);

#endif
