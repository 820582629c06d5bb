/* Schedules: a client's jobs that are submitted again and again, by a cron expression (store/cron.h).
 *
 *     put --> active --pause--> paused --resume--> active            removed: from either, for good
 *
 * At each time of the expression the schedule submits a job, in one command with its next time: so no time is lost and none is done
 * twice, whatever dies in between. A time may be left out, and then its last SCHEDULE_HISTORY_MAX say why:
 *
 *     overlap       the job before it hasn't ended: SKIP it; ALLOW both; CANCEL_OLD cancels the one before
 *     missed        it comes more than grace late, because nobody was there: SKIP it; RUN_ONCE for all that were missed; RUN_ALL of the
 *                   last SCHEDULE_CATCH_UP_US, one after the other
 *     full          the queue was full, or as many jobs were active as may be
 *     paused        what comes while it is paused isn't noted, and isn't made up for
 *
 * The next time of each is a wall time. A clock that was ahead and is right again would leave all of them waiting until it has come there
 * once more: schedule.retime, by the actor `queues` at its start and whenever the clock has gone back, brings those forward that have a time
 * before. Of the times in its history that it has submitted a job for a schedule does none a second time, also when it was paused
 * meanwhile: so a clock that goes back by a moment repeats nothing. What was left out, for whatever reason, comes again: a clock that
 * was ahead has missed times which are still to come.
 *
 * Rows: a schedule under its id, and one more under its client, so that a client's stand together.
 */
#ifndef COPPICE_STORE_JOB_SCHEDULE_H
#define COPPICE_STORE_JOB_SCHEDULE_H

#include "store/cron.h"
#include "store/job_change.h"
#include "store/job_submit.h"

#define SCHEDULES_MAX            100u  /* of one client */
#define SCHEDULE_PAYLOAD_MAX     4096u /* less than a job's: it is written with each time that comes */
#define SCHEDULE_NAME_MAX        256u  /* 64 characters */
#define SCHEDULE_HISTORY_MAX     16u
#define SCHEDULE_ENTRY_SIZE      25u /* at_us:8 outcome:1 job:16 */
#define SCHEDULE_CATCH_UP_US     (UINT64_C(86400) * 1000000)
#define SCHEDULE_MISSED_MAX      16u /* that are noted one by one when many are left out at a time */
#define SCHEDULE_SHARD           0u
#define SCHEDULE_RETIME_LOOK_MAX 128u /* rows that one command looks at when the clock was set back ... */
#define SCHEDULE_RETIME_MAX      32u  /* ... and writes */

/* X(ID, "name"). Numbers are stored. */
#define SCHEDULE_OVERLAPS(X)  \
    X(OVERLAP_SKIP, "skip")   \
    X(OVERLAP_ALLOW, "allow") \
    X(OVERLAP_CANCEL, "cancel_old")
enum schedule_overlap {
#define X(id, name) id,
    SCHEDULE_OVERLAPS(X)
#undef X
        OVERLAP_COUNT
};
#define SCHEDULE_MISSES(X)         \
    X(MISSED_SKIP, "skip")         \
    X(MISSED_RUN_ONCE, "run_once") \
    X(MISSED_RUN_ALL, "run_all")
enum schedule_missed {
#define X(id, name) id,
    SCHEDULE_MISSES(X)
#undef X
        MISSED_COUNT
};
#define SCHEDULE_OUTCOMES(X)          \
    X(OUTCOME_SUBMITTED, "submitted") \
    X(OUTCOME_BY_HAND, "by_hand")     \
    X(OUTCOME_OVERLAP, "overlap")     \
    X(OUTCOME_MISSED, "missed")       \
    X(OUTCOME_FULL, "full")           \
    X(OUTCOME_REFUSED, "refused")
enum schedule_outcome {
#define X(id, name) id,
    SCHEDULE_OUTCOMES(X)
#undef X
        OUTCOME_COUNT
};
const char *schedule_overlap_name(uint8_t number); /* NULL: there is none; so the others */
const char *schedule_missed_name(uint8_t number);
const char *schedule_outcome_name(uint8_t number);

/* What a client says of one. */
#define SCHEDULE_WISH_FIELDS(X)                                 \
    X(overlap, U8, 0, 1)                                        \
    X(missed, U8, 0, 1)                                         \
    X(kind, U8, 0, 1) /* WORK_KIND_NONE: drawn with each job */ \
    X(priority, U8, 0, 1)                                       \
    X(grace_us, U64, 0, 1)                                      \
    X(name, TEXT, SCHEDULE_NAME_MAX, 1)                         \
    X(cron, TEXT, CRON_TEXT_MAX, 1)                             \
    X(kind_name, TEXT, WORK_KIND_NAME_MAX, 1)                   \
    X(payload, JSON, SCHEDULE_PAYLOAD_MAX, 1)

/* Key: 0, id. And of the other row: 1, client, id; it has id and client alone. */
#define SCHEDULE_FIELDS(X)                                                       \
    X(id, UUID, 0, 1)                                                            \
    X(client, UUID, 0, 1)                                                        \
    X(paused, U8, 0, 1)                                                          \
    X(created_us, TIME, 0, 1)                                                    \
    X(next_us, TIME, 0, 1) /* its entry in the due index; 0: never, or paused */ \
    X(last_us, TIME, 0, 1) /* when it last submitted one */                      \
    X(last_job, UUID, 0, 1)                                                      \
    X(submitted, U64, 0, 1)                                                      \
    X(skipped, U64, 0, 1)                                                        \
    SCHEDULE_WISH_FIELDS(X)                                                      \
    X(history, BYTES, SCHEDULE_HISTORY_MAX *SCHEDULE_ENTRY_SIZE, 1) /* newest first */
RECORD_STRUCT(schedule, SCHEDULE_FIELDS);

struct schedule_entry {
    uint64_t at_us;
    uint8_t outcome;
    struct uuid job; /* all zero: none */
};
uint32_t schedule_history(const struct schedule *schedule,
                          struct schedule_entry entries[SCHEDULE_HISTORY_MAX]);

/* Answer: the id that came with it, or that of the request that this one repeats.
 * ERR_INVALID     the expression, or what is to be submitted, can't be meant
 * ERR_EXISTS      the id is taken
 * ERR_LIMIT       SCHEDULES_MAX, or the ledger is full
 * ERR_NOT_FOUND   no such client
 * ERR_KEY_REUSED */
#define SCHEDULE_PUT_FIELDS(X)                                                        \
    X(id, UUID, 0, 1)                                                                 \
    X(client, UUID, 0, 1)                                                             \
    SCHEDULE_WISH_FIELDS(X)                                                           \
    X(key, TEXT, 255, 2)    /* idempotency, of this client, for a day; empty: none */ \
    X(digest, DIGEST, 0, 2) /* of the request, for the ledger */
RECORD_STRUCT(schedule_put, SCHEDULE_PUT_FIELDS);
extern const struct command_class schedule_put_class; /* code 230 */

/* Those below: ERR_NOT_FOUND when there is none of this id, ERR_FORBIDDEN when it is another client's. */

#define SCHEDULE_REMOVE_FIELDS(X) X(id, UUID, 0, 1) X(client, UUID, 0, 1)
RECORD_STRUCT(schedule_remove, SCHEDULE_REMOVE_FIELDS);
extern const struct command_class schedule_remove_class; /* code 231; cleans up */

/* As it is already: OK, and nothing is written. */
#define SCHEDULE_SWITCH_FIELDS(X) X(id, UUID, 0, 1) X(client, UUID, 0, 1) X(paused, U8, 0, 1)
RECORD_STRUCT(schedule_switch, SCHEDULE_SWITCH_FIELDS);
extern const struct command_class schedule_switch_class; /* code 232 */

/* A job now, whatever its state and its policies say; or (id all zero) what is due: the first one whose time has come, by wall_us. The
 * limits are those of a submit. A run by hand is refused as a submit is (ERR_QUEUE_FULL, ERR_ACTIVE, ERR_LIMIT). */
#define SCHEDULE_FIRE_FIELDS(X)                            \
    X(id, UUID, 0, 1)                                      \
    X(client, UUID, 0, 1)                                  \
    X(job, UUID, 0, 1) /* the id that the job gets, new */ \
    X(wall_us, TIME, 0, 1)                                 \
    X(kept_us, U64, 0, 1)                                  \
    X(should_fail_ppm, U32, 0, 1)                          \
    X(runtime_max_ms, U32, 0, 1)                           \
    X(payload_max, U32, 0, 1)                              \
    X(queue_max, U32, 0, 1)                                \
    X(active_max, U32, 0, 1)
RECORD_STRUCT(schedule_fire, SCHEDULE_FIRE_FIELDS);
extern const struct command_class
    schedule_fire_class; /* code 233; answer: a struct schedule_fired, if anything was due */
struct schedule_fired {
    struct uuid schedule, client, job, canceled; /* all zero: none */
    uint8_t outcome, kind, unused[6];
    uint64_t at_us;         /* of the job, as the schedule's last_us has it; 0: none */
    struct job_changed old; /* of the one that was canceled */
};

/* Schedules behind `after` (all zero: from the first one on) whose next time by wall_us is before the one that they have get that one. */
#define SCHEDULE_RETIME_FIELDS(X) X(after, UUID, 0, 1) X(wall_us, TIME, 0, 1)
RECORD_STRUCT(schedule_retime, SCHEDULE_RETIME_FIELDS);
extern const struct command_class schedule_retime_class; /* code 234; answer: struct schedule_retimed */
struct schedule_retimed {
    struct uuid after; /* for the next command */
    uint32_t changed, damaged;
    uint32_t more, unused; /* more 1: there may be others behind `after` */
};

/* ---- reading; texts borrow from the transaction ---- */

enum error schedule_read(struct txn *txn, const struct uuid *id, struct schedule *ret_schedule);
/* Ids of a client's, from the one behind `after` on (NULL: the first). */
enum error schedule_list(struct txn *txn, const struct uuid *client, const struct uuid *after,
                         struct uuid *ids, uint32_t most, uint32_t *ret_count);

#endif
