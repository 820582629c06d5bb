/* Kind: the catalogue of work kinds, written down once more from the contract (spec/jobs.work_kinds.tsv, AMB-J-03,
 * AMB-J-66), so that it is not the server's own table that says what the server must do.
 */
#ifndef COPPICE_CHAOS_KIND_H
#define COPPICE_CHAOS_KIND_H

#include <stdbool.h>
#include <stdint.h>

#define KIND_ALWAYS 255u

/* Who takes part in a job of this kind besides the server (chaos/script.h).
 * X(NAME, duration_ms, how many of its first attempts fail, payload in KB, pool, outputs, retryable, progress in percent,
 *   script). Pools: S success, F failure, N by name only. */
#define KINDS(X)                                                                    \
    X(SUCCESS_FAST, 1000, 0, 4, S, 1, false, 0, watch)                              \
    X(SUCCESS_NORMAL, 10000, 0, 16, S, 1, false, 0, watch)                          \
    X(SUCCESS_SLOW, 90000, 0, 32, S, 1, false, 0, watch)                            \
    X(FAIL_IMMEDIATE, 500, KIND_ALWAYS, 1, F, 1, false, 0, watch)                   \
    X(FAIL_AFTER_PROGRESS, 20000, KIND_ALWAYS, 8, F, 1, false, 50, watch)           \
    X(FAIL_AFTER_RETRYABLE, 5000, KIND_ALWAYS, 8, F, 1, true, 0, retry_once)        \
    X(RUNS_LONG, 110000, 0, 32, S, 1, false, 0, watch)                              \
    X(RUNS_OVER_TIMEOUT, 0, KIND_ALWAYS, 8, N, 1, true, 0, watch)                   \
    X(CPU_BURST, 8000, 0, 4, S, 1, false, 0, watch)                                 \
    X(MEMORY_SPIKE, 12000, 0, 64, S, 1, false, 0, watch)                            \
    X(IO_HEAVY, 15000, 0, 32, S, 1, false, 0, watch)                                \
    X(MANY_SMALL_OUTPUTS, 9000, 0, 16, S, 64, false, 0, watch)                      \
    X(LARGE_OUTPUT, 9000, 0, 256, S, 1, false, 0, watch)                            \
    X(CANCEL_BEFORE_START, 5000, 0, 4, N, 1, false, 0, cancel_at_once)              \
    X(CANCEL_DURING_RUN, 10000, 0, 4, N, 1, false, 0, cancel_when_running)          \
    X(RETRY_ON_FAIL, 3000, 1, 4, F, 1, true, 0, retry_once)                         \
    X(RETRY_LIMIT_REACHED, 3000, KIND_ALWAYS, 4, F, 1, true, 0, retry_to_the_limit) \
    X(DUPLICATE_SUBMIT_SAME_KEY, 2000, 0, 4, N, 1, false, 0, submit_twice)          \
    X(DUPLICATE_SUBMIT_DIFFERENT_KEY, 2000, 0, 4, N, 1, false, 0, submit_two)       \
    X(WEBHOOK_SUCCESS, 2000, 0, 4, N, 1, false, 0, receive)                         \
    X(WEBHOOK_TIMEOUT, 2000, 0, 4, N, 1, false, 0, receive_hanging)                 \
    X(WEBHOOK_5XX, 2000, 0, 4, N, 1, false, 0, receive_failing)                     \
    X(WEBHOOK_RETRIES_EXHAUSTED, 2000, 0, 4, N, 1, false, 0, receive_never)         \
    X(WEBHOOK_SLOW_RECEIVER, 2000, 0, 4, N, 1, false, 0, receive_slowly)            \
    X(SCHEDULED_ON_TIME, 2000, 0, 4, N, 1, false, 0, schedule)                      \
    X(SCHEDULED_LATE_RECOVERY, 2000, 0, 4, N, 1, false, 0, schedule)                \
    X(SCHEDULED_FAR_FUTURE, 2000, 0, 4, N, 1, false, 0, schedule_far)               \
    X(PAYLOAD_SMALL, 2000, 0, 1, S, 1, false, 0, watch)                             \
    X(PAYLOAD_MEDIUM, 2000, 0, 16, S, 1, false, 0, watch)                           \
    X(PAYLOAD_LARGE, 2000, 0, 256, S, 1, false, 0, watch)                           \
    X(PAYLOAD_INVALID, 0, 0, 0, N, 1, false, 0, be_refused)

enum kind {
#define X(name, duration, fails, payload, pool, outputs, retryable, progress, script) KIND_##name,
    KINDS(X)
#undef X
        KIND_COUNT,
    KIND_DRAWN = KIND_COUNT, /* a submit without work_kind */
    KIND_SORTS
};

struct kind_row {
    const char *name;
    uint32_t duration_ms, payload, outputs, progress;
    uint8_t fails, pool;
    bool retryable;
};

const struct kind_row *kind_row(int kind);
const char *kind_name(int kind); /* of KIND_DRAWN: "(drawn)" */
int kind_of(const char *name);   /* -1: there is none */
uint32_t kind_duration_ms(int kind);
/* What a submit without work_kind gets at this instant (created_at); -1: nothing is left to draw from. */
int kind_drawn_at(uint64_t created_ms);

#endif
