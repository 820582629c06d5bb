/* Work kinds: the scenarios that simulated jobs follow, and the definition that a job gets of one (spec/jobs.md, 3 to 5).
 *
 * The catalogue is the table below; there are no other names but those of user-defined kinds, "x." and 1 to WORK_KIND_USER_MAX
 * characters of [a-z0-9._-], which the server never executes: programs outside do. A kind is stored as its number; numbers
 * are never given away twice, 0 is none.
 *
 * A definition comes from the kind that was asked for, or, when none was, is drawn. Anybody can draw it again from the
 * job's `created_at`, in Unix milliseconds, which is the state that SplitMix64 starts from:
 *
 *     state = state + 0x9e3779b97f4a7c15                     (all of it modulo 2^64)
 *     z = state
 *     z = (z xor z >> 30) * 0xbf58476d1ce4e5b9
 *     z = (z xor z >> 27) * 0x94d049bb133111eb
 *     number = z xor z >> 31
 *
 * 1. The first number modulo 1,000,000 is below the probability of failure in millionths (jobs.should_fail_probability
 *    times 1,000,000): the pool is the kinds of the group FAILURE, else those of SUCCESS and SLOW, in the table's order.
 * 2. Kinds with a payload above limits.max_job_payload_bytes are left out.
 * 3. The second number modulo how many are left is the place in the pool, from 0.
 *
 * Pure functions: no state, no clock, nothing allocated; any thread.
 */
#ifndef COPPICE_STORE_WORK_KIND_H
#define COPPICE_STORE_WORK_KIND_H

#include "store/span.h"

#define WORK_KIND_USER_PREFIX "x."
#define WORK_KIND_USER_MAX    64u
#define WORK_KIND_NAME_MAX    (2u + WORK_KIND_USER_MAX) /* bytes of any kind's name */

#define WORK_DURATION_MIN_MS  500u /* of a definition that is drawn */
#define WORK_DURATION_MAX_MS  120000u
#define WORK_DURATION_SLOW_MS 90000u /* from here on a kind is a slow one */
#define WORK_PAYLOAD_MIN      1024u
#define WORK_PAYLOAD_MAX      (256u * 1024u)

#define WORK_OVER_RUNTIME     UINT32_MAX /* a kind's duration: the runtime limit and WORK_OVER_RUNTIME_MS */
#define WORK_OVER_RUNTIME_MS  1000u
#define WORK_ALWAYS           UINT8_MAX

/* Which pool a kind may be drawn from. NAMED: from none, since it needs a partner who cancels, submits again, receives
 * or schedules (AMB-J-03). */
#define WORK_GROUPS(X)    \
    X(NAMED, "named")     \
    X(SUCCESS, "success") \
    X(SLOW, "slow")       \
    X(FAILURE, "failure")

enum work_group {
#define X(id, name) WORK_GROUP_##id,
    WORK_GROUPS(X)
#undef X
        WORK_GROUP_COUNT
};

/* X(number, NAME, duration_ms, how many of its first attempts fail, payload in KB, expected outcome, note, group,
 *   outputs, retryable, progress in percent).
 * outputs: what its success leaves, payload bytes in all. retryable, progress: what its simulated failure says
 * (AMB-J-66); progress 0 is none. */
#define WORK_KINDS(X)                                                                                      \
    X(1, SUCCESS_FAST, 1000, 0, 4, "SUCCEEDED", "", SUCCESS, 1, false, 0)                                  \
    X(2, SUCCESS_NORMAL, 10000, 0, 16, "SUCCEEDED", "", SUCCESS, 1, false, 0)                              \
    X(3, SUCCESS_SLOW, 90000, 0, 32, "SUCCEEDED", "", SLOW, 1, false, 0)                                   \
    X(4, FAIL_IMMEDIATE, 500, WORK_ALWAYS, 1, "FAILED", "", FAILURE, 1, false, 0)                          \
    X(5, FAIL_AFTER_PROGRESS, 20000, WORK_ALWAYS, 8, "FAILED", "", FAILURE, 1, false, 50)                  \
    X(6, FAIL_AFTER_RETRYABLE, 5000, WORK_ALWAYS, 8, "FAILED", "retryable", FAILURE, 1, true, 0)           \
    X(7, RUNS_LONG, 110000, 0, 32, "SUCCEEDED", "", SLOW, 1, false, 0)                                     \
    X(8, RUNS_OVER_TIMEOUT, WORK_OVER_RUNTIME, WORK_ALWAYS, 8, "FAILED", "timeout", NAMED, 1, false, 0)    \
    X(9, CPU_BURST, 8000, 0, 4, "SUCCEEDED", "", SUCCESS, 1, false, 0)                                     \
    X(10, MEMORY_SPIKE, 12000, 0, 64, "SUCCEEDED", "", SUCCESS, 1, false, 0)                               \
    X(11, IO_HEAVY, 15000, 0, 32, "SUCCEEDED", "", SUCCESS, 1, false, 0)                                   \
    X(12, MANY_SMALL_OUTPUTS, 9000, 0, 16, "SUCCEEDED", "", SUCCESS, 64, false, 0)                         \
    X(13, LARGE_OUTPUT, 9000, 0, 256, "SUCCEEDED", "", SUCCESS, 1, false, 0)                               \
    X(14, CANCEL_BEFORE_START, 5000, 0, 4, "CANCELED", "when cancel issued in QUEUED", NAMED, 1, false, 0) \
    X(15, CANCEL_DURING_RUN, 10000, 0, 4, "CANCELED", "when cancel issued in RUNNING", NAMED, 1, false, 0) \
    X(16, RETRY_ON_FAIL, 3000, 1, 4, "FAILED then SUCCEEDED on retry", "", FAILURE, 1, true, 0)            \
    X(17, RETRY_LIMIT_REACHED, 3000, WORK_ALWAYS, 4, "FAILED after max retries", "", FAILURE, 1, true, 0)  \
    X(18, DUPLICATE_SUBMIT_SAME_KEY, 2000, 0, 4, "SUCCEEDED", "same job id", NAMED, 1, false, 0)           \
    X(19, DUPLICATE_SUBMIT_DIFFERENT_KEY, 2000, 0, 4, "SUCCEEDED", "distinct jobs", NAMED, 1, false, 0)    \
    X(20, WEBHOOK_SUCCESS, 2000, 0, 4, "SUCCEEDED", "webhook delivered", NAMED, 1, false, 0)               \
    X(21, WEBHOOK_TIMEOUT, 2000, 0, 4, "SUCCEEDED", "webhook retries", NAMED, 1, false, 0)                 \
    X(22, WEBHOOK_5XX, 2000, 0, 4, "SUCCEEDED", "webhook retries", NAMED, 1, false, 0)                     \
    X(23, WEBHOOK_RETRIES_EXHAUSTED, 2000, 0, 4, "SUCCEEDED", "delivery failed", NAMED, 1, false, 0)       \
    X(24, WEBHOOK_SLOW_RECEIVER, 2000, 0, 4, "SUCCEEDED", "delivery delayed", NAMED, 1, false, 0)          \
    X(25, SCHEDULED_ON_TIME, 2000, 0, 4, "SUCCEEDED", "", NAMED, 1, false, 0)                              \
    X(26, SCHEDULED_LATE_RECOVERY, 2000, 0, 4, "SUCCEEDED", "enqueued after restart", NAMED, 1, false, 0)  \
    X(27, SCHEDULED_FAR_FUTURE, 2000, 0, 4, "SUCCEEDED", "", NAMED, 1, false, 0)                           \
    X(28, PAYLOAD_SMALL, 2000, 0, 1, "SUCCEEDED", "", SUCCESS, 1, false, 0)                                \
    X(29, PAYLOAD_MEDIUM, 2000, 0, 16, "SUCCEEDED", "", SUCCESS, 1, false, 0)                              \
    X(30, PAYLOAD_LARGE, 2000, 0, 256, "SUCCEEDED", "", SUCCESS, 1, false, 0)                              \
    X(31, PAYLOAD_INVALID, 0, 0, 0, "REJECTED", "validation error", NAMED, 1, false, 0)

enum work_kind {
    WORK_KIND_NONE = 0,
#define X(number, name, duration, failing, payload, outcome, note, group, outputs, retryable, progress) \
    WORK_KIND_##name = number,
    WORK_KINDS(X)
#undef X
        WORK_KIND_USER = 255 /* one of "x."; its name stands elsewhere, and it has no row */
};
#define WORK_KINDS_COUNT 31u

struct work_kind_row {
    const char *name, *outcome, *note; /* static */
    uint32_t duration_ms, payload_bytes;
    uint32_t outputs;
    uint8_t kind, failing_attempts, group, progress_percent;
    bool
        retryable; /* of its simulated failure; that of a timeout or a lost runner is retryable in any kind */
};

const struct work_kind_row *work_kind_row(uint8_t kind);     /* NULL: none of the catalogue */
const struct work_kind_row *work_kind_each(size_t position); /* in the catalogue's order; NULL: no more */
/* Exactly as it is written in the catalogue; WORK_KIND_NONE: it isn't there. */
uint8_t work_kind_of(struct span name);
bool work_kind_user(struct span name);      /* a user-defined one */
const char *work_group_name(uint8_t group); /* "success"; NULL: there is none */

/* The simulated work of this attempt (from 1) fails. False of what has no row. */
bool work_kind_fails(uint8_t kind, uint32_t attempt);

#define WORK_DURATION_TEXT_SIZE 24
/* "1000", or "max_runtime+1000". */
void work_kind_duration_text(const struct work_kind_row *row, char text[WORK_DURATION_TEXT_SIZE]);

/* What a job does, decided when it is submitted and never changed. */
struct work_definition {
    uint8_t kind; /* enum work_kind */
    bool should_fail;
    uint32_t duration_ms;
    uint32_t payload_bytes;
};

/* max_runtime_ms: limits.max_runtime_ms, small enough that WORK_OVER_RUNTIME_MS can be added. False: there is no such
 * definition, which is so of PAYLOAD_INVALID on purpose, and of what has no row. That the payload may be above
 * limits.max_job_payload_bytes is the caller's to refuse. */
bool work_definition_of_kind(uint8_t kind, uint32_t max_runtime_ms, struct work_definition *ret);
/* seed_ms: the job's created_at. False: every kind of the pool has more payload than payload_max_bytes. */
bool work_definition_draw(uint64_t seed_ms, uint32_t should_fail_ppm, uint32_t payload_max_bytes,
                          uint32_t max_runtime_ms, struct work_definition *ret);

#endif
