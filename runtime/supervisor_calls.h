/* What is said to a supervisor and what it answers: types and payloads of its messages.
 *
 * Private to the supervisor: supervisor_calls.c is the caller's side, supervisor.c the other. Texts travel
 * with their NUL. A payload that doesn't fit its type is answered with ERR_INVALID.
 */
#ifndef COPPICE_RUNTIME_SUPERVISOR_CALLS_H
#define COPPICE_RUNTIME_SUPERVISOR_CALLS_H

#include "runtime/supervisor.h"

#define SUPERVISOR_CALL_FIRST 0x00e50000u
enum supervisor_call {
    CALL_START_CHILD = SUPERVISOR_CALL_FIRST, /* struct start_request */
    CALL_START_DYNAMIC,                       /* struct start_dynamic_request */
    CALL_TERMINATE_PID,                       /* an actor_pid */
    CALL_TERMINATE_CHILD,                     /* an id; so are the next ones */
    CALL_RESTART_CHILD,
    CALL_DELETE_CHILD,
    CALL_RESUME_CHILD,
    CALL_WHICH_CHILD,
    CALL_RESUME_PID,     /* an actor_pid */
    CALL_WHICH_CHILDREN, /* struct which_request */
    CALL_COUNT_CHILDREN, /* nothing */
    CALL_INSPECT,        /* nothing */
    SUPERVISOR_CALL_LAST = CALL_INSPECT,
    NOTE_RETRY,      /* to itself: a child's tag */
    NOTE_TIMER,      /* a child's tag: its backoff or quarantine is over */
    ANSWER_ERROR,    /* uint32_t enum error: the answer to anything that failed, or has no more to say */
    ANSWER_CHILD,    /* struct child_answer */
    ANSWER_REFUSED,  /* struct child_refusal, reasoned */
    ANSWER_INFO,     /* struct child_info */
    ANSWER_CHILDREN, /* struct which_answer */
    ANSWER_COUNTS,   /* struct child_counts */
    ANSWER_INSPECT,  /* struct supervisor_info */
};

struct start_request {
    const struct actor_class *class;
    int64_t shutdown_ms;
    int32_t scheduler, restart, type;
    struct backoff_spec backoff;
    struct quarantine_spec quarantine;
    uint32_t args_size;
    uint8_t id_size, name_size; /* with NUL; 0: NULL */
    bool significant;
    _Alignas(8) unsigned char bytes[]; /* args, id, name */
};
STATIC_ASSERT(sizeof(struct start_request) + ACTOR_ARGS_MAX + 97 + 97 <= MESSAGE_PAYLOAD_MAX,
              "a spec is one message");

struct start_dynamic_request {
    uint32_t args_size;
    uint32_t name_size;    /* with NUL; 0: NULL */
    unsigned char bytes[]; /* args, name */
};

struct child_answer {
    actor_pid pid;
    uint64_t info;
    uint32_t error;
};
STATIC_ASSERT(sizeof(struct child_answer) <= MESSAGE_SMALL, "the common answer is one cache line");

struct child_refusal {
    struct reason why;
    actor_pid pid;
    uint32_t error;
};

struct which_request {
    uint64_t first;
    uint32_t count;
};

struct which_answer {
    uint64_t total;
    struct child_info infos[];
};
#define WHICH_MAX ((MESSAGE_PAYLOAD_MAX - sizeof(struct which_answer)) / sizeof(struct child_info))

#endif
