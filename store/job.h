/* Jobs: one unit of work, from its submit to its report. Contract: seed 001, spec/jobs.md.
 *
 *                    +--------- cancel ----------+-----------+--------------+
 *                    |            |              |           |              |
 *     submit --> CREATED --> QUEUED --claim--> ASSIGNED --> RUNNING --> SUCCEEDED
 *                              ^  ^               |           |-------> FAILED
 *                              |  `- lease over --'           `-------> CANCELED
 *                              `------------- retry ------------------- FAILED
 *
 * What changes of a job is a small row of its own (`job`), what never changes is another (`job_definition`), written once.
 * Everything that follows from a change stands in the same commit: the event, the place in the queue, the durable timer, the
 * report, the counters, the outbox row. So there is no moment in which two of them disagree, and `coppice check` can compute
 * each of them again.
 *
 * Two clocks. What a client asked for by the calendar (execution_at) goes by wall time. Leases and backoff go by steady time
 * (store_steady_us): it starts at wall time when the store is opened and then only counts what has elapsed, so that a wall clock
 * that leaps ends nobody's lease.
 *
 * Everything here belongs to the writer's transaction, or to a view where it only reads. Nothing blocks.
 */
#ifndef COPPICE_STORE_JOB_H
#define COPPICE_STORE_JOB_H

#include "store/due.h"
#include "store/event.h"
#include "store/lifecycle.h"
#include "store/work_kind.h"

struct store;

#define JOB_SHARDS       64u /* of the due index: at least as many as scheduler threads may be */
#define JOB_LEASE_SHARDS 4u  /* those that have the leases: fewer pages to write for a commit */
#define JOB_CALLBACK_MAX 2048u
#define JOB_PAYLOAD_MAX  32768u /* of a user's kind, as JSON */
#define JOB_RESULT_MAX   16384u
#define JOB_WORKER_MAX   64u
#define JOB_STAGE_MAX    128u
#define JOB_MESSAGE_MAX  512u
#define JOB_ATTEMPTS_MAX 1000u /* the most that retry.max may allow */
#define JOB_TIME_MAX \
    UINT64_C(253402300799999000) /* later than the year 9999 is nothing, whatever a clock says */

/* X(ID, "name", final). Numbers are stored. FAILED can be left by a retry alone (AMB-J-10). */
#define JOB_STATES(X)                   \
    X(JOB_CREATED, "CREATED", false)    \
    X(JOB_QUEUED, "QUEUED", false)      \
    X(JOB_ASSIGNED, "ASSIGNED", false)  \
    X(JOB_RUNNING, "RUNNING", false)    \
    X(JOB_SUCCEEDED, "SUCCEEDED", true) \
    X(JOB_FAILED, "FAILED", true)       \
    X(JOB_CANCELED, "CANCELED", true)
enum job_state {
#define X(id, name, final) id,
    JOB_STATES(X)
#undef X
        JOB_STATE_COUNT
};

/* X(ID, "verb", "event"). Numbers are stored. CREATE and REQUEUE are no edges of the table: the one begins a job, the other is
 * the lease reaper's exception (AMB-J-11). */
#define JOB_EVENTS(X)                            \
    X(JOB_CREATE, "create", "job.created")       \
    X(JOB_ENQUEUE, "enqueue", "job.queued")      \
    X(JOB_ASSIGN, "assign", "job.assigned")      \
    X(JOB_START, "start", "job.running")         \
    X(JOB_SUCCEED, "succeed", "job.succeeded")   \
    X(JOB_FAIL, "fail", "job.failed")            \
    X(JOB_TIME_OUT, "time_out", "job.timed_out") \
    X(JOB_CANCEL, "cancel", "job.canceled")      \
    X(JOB_RETRY, "retry", "job.retried")         \
    X(JOB_REQUEUE, "requeue", "job.requeued")    \
    X(JOB_EMIT, "emit", "job.emitted") /* a notification, never stored as an event (AMB-J-01) */
enum job_event {
#define X(id, verb, name) id,
    JOB_EVENTS(X)
#undef X
        JOB_EVENT_COUNT
};

/* X(ID, "name"). Numbers are stored. */
#define JOB_TYPES(X)            \
    X(JOB_EXECUTE, "EXECUTE")   \
    X(JOB_DEFERRED, "DEFERRED") \
    X(JOB_EMIT_EVENT, "EMIT_EVENT")
enum job_type {
#define X(id, name) id,
    JOB_TYPES(X)
#undef X
        JOB_TYPE_COUNT
};

/* X(ID, "reason", "code", retryable). Numbers are stored; retryable informs only (AMB-J-66). */
#define JOB_FAILURES(X)                                                              \
    X(JOB_NO_FAILURE, "", "", false)                                                 \
    X(JOB_SIMULATED_FAILURE, "SIMULATED_FAILURE", "RFA_INTERNAL", false)             \
    X(JOB_TIMEOUT, "TIMEOUT", "RFA_EXEC_TIMEOUT", true)                              \
    X(JOB_RUNNER_LOST, "RUNNER_LOST", "RFA_EXEC_WORKER_UNAVAILABLE", true)           \
    X(JOB_DEFINITION_MISSING, "DEFINITION_MISSING", "RFA_INTERNAL", false)           \
    X(JOB_REPORT_FAILED, "REPORT_GENERATION_FAILED", "RFA_INTERNAL", false)          \
    X(JOB_OUTPUT_INVALID, "OUTPUT_INVALID", "RFA_INTERNAL", false)                   \
    X(JOB_RECOVERY_INCOMPLETE, "RECOVERY_INCOMPLETE", "RFA_STORAGE_DB_ERROR", false) \
    X(JOB_WORKER_FAILURE, "WORKER_FAILURE", "RFA_INTERNAL", false) /* a worker outside said so */
enum job_failure {
#define X(id, name, code, retryable) id,
    JOB_FAILURES(X)
#undef X
        JOB_FAILURE_COUNT
};

/* Of the limit of jobs that a client may have running at a time (store/job_queue.h). Numbers are stored. */
enum job_slot {
    JOB_NO_SLOT = 0,  /* nobody counts it: there is no limit, or it hasn't come to it */
    JOB_SLOT_COUNTED, /* ASSIGNED or RUNNING, and one of those that the client may have */
    JOB_SLOT_PROMISED /* QUEUED: it was set aside, and came back when another left */
};

/* Key: id. Times are whole milliseconds. */
#define JOB_FIELDS(X)                                                                          \
    X(id, UUID, 0, 1)                                                                          \
    X(client, UUID, 0, 1)                                                                      \
    X(seq, U64, 0, 1) /* its place in the order of creation */                                 \
    X(type, U8, 0, 1)                                                                          \
    X(state, U8, 0, 1)                                                                         \
    X(kind, U8, 0, 1)   /* enum work_kind; WORK_KIND_USER: the definition has its name */      \
    X(work, UUID, 0, 1) /* the kind as an id, for queues and pauses: job_work_id */            \
    X(priority, U8, 0, 1)                                                                      \
    X(told, U8, 0, 1) /* it has a callback */                                                  \
    X(incomplete, U8, 0, 1)                                                                    \
    X(failure, U8, 0, 1)                                                                       \
    X(retryable, U8, 0, 1)                                                                     \
    X(lane, U8, 0, 1) /* of its row in the queue (store/job_queue.h); 0: there is none */      \
    X(pass, U8, 0, 1) /* an operator wants it claimed now, whatever is paused */               \
    X(slot, U8, 0, 1) /* enum job_slot: of its client's limit */                               \
    X(attempt, U16, 0, 1)                                                                      \
    X(events, U32, 0, 1) /* how many it has */                                                 \
    X(place, U64, 0, 1)  /* in the queue: by seq */                                            \
    X(outbox_first, U64, 0,                                                                    \
      1) /* rows of the outbox that tell of it, the first and the newest; 0: there was none */ \
    X(outbox_last, U64, 0, 1)                                                                  \
    X(created_us, TIME, 0, 1)                                                                  \
    X(execution_us, TIME, 0, 1) /* by the calendar; 0: instant */                              \
    X(updated_us, TIME, 0, 1)   /* of the newest event */                                      \
    X(queued_us, TIME, 0, 1)    /* since when it is QUEUED and its backoff over, or was */     \
    X(due_us, TIME, 0, 1)       /* its entry in the due index: deferral, backoff or lease */   \
    X(started_us, TIME, 0, 1)                                                                  \
    X(finished_us, TIME, 0, 1)                                                                 \
    X(retire_us, TIME, 0, 1) /* when retention takes it; 0: not final */                       \
    X(fence, U64, 0, 1)      /* of the newest claim; none older counts */                      \
    X(lease_us, TIME, 0, 1)  /* until when, by steady time */                                  \
    X(owner, U64, 0, 1)      /* which start of the server; 0: a worker outside, or nobody */   \
    X(ledger, U64, 0, 1)     /* row of its idempotency key + 1; 0: none */                     \
    X(progress, U16, 0, 1)   /* in thousandths */                                              \
    X(worker, TEXT, JOB_WORKER_MAX, 1)                                                         \
    X(stage, TEXT, JOB_STAGE_MAX, 1)
RECORD_STRUCT(job, JOB_FIELDS);

/* Key: id. */
#define JOB_DEFINITION_FIELDS(X)                          \
    X(kind, U8, 0, 1)                                     \
    X(should_fail, U8, 0, 1)                              \
    X(duration_ms, U32, 0, 1)                             \
    X(payload_size, U32, 0, 1)                            \
    X(kind_name, TEXT, WORK_KIND_NAME_MAX, 1)             \
    X(callback, TEXT, JOB_CALLBACK_MAX, 1)                \
    X(trace, TEXT, 55, 1) /* traceparent of the submit */ \
    X(request_id, TEXT, 128, 1)                           \
    X(payload, JSON, JOB_PAYLOAD_MAX, 1)
RECORD_STRUCT(job_definition, JOB_DEFINITION_FIELDS);

/* Key: id, attempt. What one attempt came to; never changed (AMB-J-17). */
#define REPORT_FIELDS(X)                                                   \
    X(outcome, U8, 0, 1) /* the final state */                             \
    X(failure, U8, 0, 1)                                                   \
    X(retryable, U8, 0, 1)                                                 \
    X(events, U32, 0, 1) /* how many there were: the report is of these */ \
    X(started_us, TIME, 0, 1)                                              \
    X(finished_us, TIME, 0, 1)                                             \
    X(fence, U64, 0, 1)                                                    \
    X(digest, DIGEST, 0, 1) /* of what the worker said */                  \
    X(message, TEXT, JOB_MESSAGE_MAX, 1)                                   \
    X(result, JSON, JOB_RESULT_MAX, 1)                                     \
    X(retried, U8, 0, 2) /* by itself, right away */
RECORD_STRUCT(report, REPORT_FIELDS);
#define REPORT_KNOWS_RETRIED 2u /* the version from which on it does */
struct key report_key(const struct uuid *id, uint16_t attempt);

/* Key: client, seq. A client's jobs in their order. */
#define CLIENT_JOB_FIELDS(X) X(id, UUID, 0, 1)
RECORD_STRUCT(client_job, CLIENT_JOB_FIELDS);
struct key client_job_key(const struct uuid *client, uint64_t seq);

extern const struct lifecycle job_lifecycle; /* states as enum job_state, events as enum job_event */

const char *job_state_name(uint8_t state);
const char *job_outcome_name(uint8_t state); /* "SUCCESS", ...; NULL: not final */
bool job_state_final(uint8_t state);
uint8_t job_state_after(uint8_t event);    /* to which state it leads, from wherever it may come */
const char *job_event_name(uint8_t event); /* "job.queued" */
const char *job_type_name(uint8_t type);
const char *job_failure_reason(uint8_t failure);
const char *job_failure_code(uint8_t failure);
bool job_failure_retryable(uint8_t failure);

/* A duration from then on, for ever at most. */
static inline uint64_t job_later(uint64_t us, uint64_t by_us)
{
    return us < UINT64_MAX - by_us ? us + by_us : UINT64_MAX;
}

/* In which shard of the due index its entry is, in this queue. */
static inline uint16_t job_shard(uint8_t queue, const struct uuid *id)
{
    uint8_t chance = id->bytes[sizeof(id->bytes) - 1]; /* of a UUIDv7 */
    return queue == DUE_JOB_LEASE ? chance % JOB_LEASE_SHARDS : chance % JOB_SHARDS;
}

/* ---- reading: OK, ERR_NOT_FOUND, ERR_DAMAGED, ... ---- */

/* Its texts borrow from the transaction. Whoever is going to write takes job_open, which copies them, and gives ERR_DAMAGED of a
 * row that contradicts itself: what is written later relies on it. */
enum error job_read(struct txn *txn, const struct uuid *id, struct job *ret_job);
struct job_texts {
    char worker[JOB_WORKER_MAX], stage[JOB_STAGE_MAX];
};
enum error job_open(struct txn *txn, const struct uuid *id, struct job *ret_job, struct job_texts *ret_texts);
enum error job_read_definition(struct txn *txn, const struct uuid *id, struct job_definition *ret_definition);
/* Of the newest final attempt; ERR_NOT_FOUND while the job isn't final. */
enum error job_read_report(struct txn *txn, const struct job *job, struct report *ret_report);
/* Whether it isn't final and lacks one of its events, of which the first JOB_EVENTS_LOOKED and the newest are looked for: half of a
 * change, which no commit leaves, so the store was damaged (AMB-J-12). */
#define JOB_EVENTS_LOOKED 8u
bool job_lacks_event(struct txn *txn, const struct job *job);
/* The name of its kind: of the catalogue, or the definition's. */
struct span job_kind_name(uint8_t kind, struct span user_name);
struct uuid job_work_id(const struct store *store, uint8_t kind, struct span user_name);

/* With milliseconds: 2026-11-18T13:04:51.123Z. */
void job_time_format(uint64_t us, char text[TIME_TEXT_SIZE]);
struct uuid job_event_id(const struct store *store, const struct uuid *job, uint64_t seq);
/* The members of the event object, without its braces. */
void job_event_write_json(struct json *json, const struct store *store, const struct job *job,
                          struct span kind_name, uint64_t seq, const struct event *event);
/* The same of job.emitted, which is told when this event (job.succeeded) is. */
void job_emitted_write_json(struct json *json, const struct store *store, const struct job *job,
                            struct span kind_name, uint64_t seq, const struct event *event);

/* ---- changing, within a command ---- */

#define JOB_DOMAIN         2u /* of events */
#define OUTBOX_JOB         2u /* topics: an event of a job */
#define OUTBOX_JOB_EMITTED 3u

/* ERR_LIMIT: those who would have to be told can't be told of another event now. To be asked before anything is written. */
enum error job_tellable(struct txn *txn, const struct job *job);
/* The edge, its event (data: members of its payload beyond the scenario, as JSON without braces), counters and outbox; and what
 * belonged to the state before goes: the row in the queue, the timer. ERR_TRANSITION: the table has no such edge; ERR_DAMAGED: the
 * log has an event that the row doesn't know of. When it fails it has written nothing, so it comes first among what a command
 * writes; the row itself is written by job_write, once, at the end. */
enum error job_move(struct txn *txn, struct job *job, enum job_event event, uint64_t at_us, struct span data);
/* A second step of the same command: failing, it fails the transaction. */
enum error job_move_on(struct txn *txn, struct job *job, enum job_event event, uint64_t at_us,
                       struct span data);
/* The first event; `job` is complete but for its state, events and updated_us. */
enum error job_begin(struct txn *txn, struct job *job, uint64_t at_us);
/* The exception: an ASSIGNED job whose lease is over, or whose owner is of an earlier start. Else ERR_TRANSITION. */
enum error job_requeue(struct txn *txn, struct job *job, uint64_t at_us, uint64_t steady_us, uint64_t start);
void job_write(struct txn *txn, const struct job *job);

/* What a final state leaves: report, retention. After job_move, before job_write. It is kept from at_us on, the command's own time: a
 * job's times may be ahead of it, for as long as a clock was ahead once (AMB-J-37, AMB-J-41). */
struct job_end {
    struct digest digest;
    struct span message, result;
    uint64_t kept_us;
    bool retried; /* it is QUEUED again by this very command */
};
void job_end(struct txn *txn, struct job *job, uint64_t at_us, const struct job_end *end);

/* Durable timers: of each job at most one, in the queue of the due index that its state says; false: it says none. */
bool job_due_queue(uint8_t state, enum due_queue *ret_queue);
void job_due_set(struct txn *txn, struct job *job, uint64_t due_us);
void job_due_clear(struct txn *txn, struct job *job); /* none is fine */

/* Topics of the jobs: a shard has something new in its due index; the queue of a lane has. */
#define JOB_TOPIC_SHARD(shard) STORE_TOPIC(TOPIC_JOBS, (shard))
#define JOB_TOPIC_QUEUE        STORE_TOPIC(TOPIC_JOBS, 64)
#define JOB_TOPIC_CLIENTS      64u
uint32_t job_topic_client(const struct uuid *client); /* jobs for workers outside: one of so many topics */
/* Of that topic: this client's jobs of this kind (job_work_id), or (NULL) of any. */
uint64_t job_topic_part(const struct uuid *client, const struct uuid *work);

enum error job_expire(struct txn *txn, const struct due_entry *entry);
enum error job_find_due(struct txn *txn, const struct due_entry *entry);

#endif
