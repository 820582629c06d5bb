/* The runtime's error codes: one list gives number, name and text.
 *
 * Functions that can fail in an expected way return enum error; 0 is success. A bug is an assertion instead, and what
 * ends an actor is a struct reason (runtime/reason.h).
 */
#ifndef COPPICE_RUNTIME_ERROR_H
#define COPPICE_RUNTIME_ERROR_H

#define ERRORS(X)                                                                                         \
    X(OK, "ok")                                                                                           \
    X(ERR_TIMEOUT, "timeout")                                                                             \
    X(ERR_NOPROC, "noproc")         /* no such actor, or no such name */                                  \
    X(ERR_DOWN, "down")             /* the other side ended before it answered */                         \
    X(ERR_FULL, "mailbox_full")     /* refused by the mailbox's policy */                                 \
    X(ERR_UNANSWERED, "unanswered") /* the callee's handler returned without an answer */                 \
    X(ERR_CALLING_SELF, "calling_self")                                                                   \
    X(ERR_MEMORY, "no_memory") /* a declared pool or table is used up */                                  \
    X(ERR_LIMIT, "limit")      /* a declared limit is reached */                                          \
    X(ERR_INVALID, "invalid")  /* an argument that can't be meant */                                      \
    X(ERR_IGNORED, "ignore")   /* init said: not needed here */                                           \
    X(ERR_INIT, "init_failed") /* init ended with a reason */                                             \
    X(ERR_ALREADY_REGISTERED, "already_registered")                                                       \
    X(ERR_ALREADY_STARTED, "already_started") /* supervisor: the child runs */                            \
    X(ERR_ALREADY_PRESENT, "already_present") /* supervisor: the id is there, the child doesn't run */    \
    X(ERR_NOT_FOUND, "not_found")                                                                         \
    X(ERR_RUNNING, "running")                                                                             \
    X(ERR_RESTARTING, "restarting")                                                                       \
    X(ERR_QUARANTINED, "quarantined")                                                                     \
    X(ERR_MAX_CHILDREN, "max_children")                                                                   \
    X(ERR_DYNAMIC, "simple_one_for_one") /* not meant for a dynamic supervisor with a template */         \
    X(ERR_MISSING_ID, "missing_id")                                                                       \
    X(ERR_MISSING_START, "missing_start")                                                                 \
    X(ERR_INVALID_START, "invalid_mfa")                                                                   \
    X(ERR_INVALID_RESTART, "invalid_restart_type")                                                        \
    X(ERR_INVALID_SHUTDOWN, "invalid_shutdown")                                                           \
    X(ERR_INVALID_TYPE, "invalid_child_type")                                                             \
    X(ERR_INVALID_STRATEGY, "invalid_strategy")                                                           \
    X(ERR_INVALID_INTENSITY, "invalid_intensity")                                                         \
    X(ERR_INVALID_PERIOD, "invalid_period")                                                               \
    X(ERR_INVALID_FLAGS, "invalid_flags")                                                                 \
    X(ERR_DUPLICATE_ID, "duplicate_child_name")                                                           \
    X(ERR_BAD_COMBINATION, "bad_combination")                                                             \
    X(ERR_BADARG, "badarg")                                                                               \
    X(ERR_SYSTEM, "system")           /* the operating system refused; errno says why */                  \
    X(ERR_EXISTS, "exists")           /* what should be new is there already */                           \
    X(ERR_CONFLICT, "conflict")       /* what is there isn't what was expected */                         \
    X(ERR_TRANSITION, "transition")   /* the lifecycle has no such edge */                                \
    X(ERR_KEY_REUSED, "key_reused")   /* an idempotency key came with another request */                  \
    X(ERR_FENCED, "fenced")           /* a later claim has taken over */                                  \
    X(ERR_EXPIRED, "expired")         /* its time is over */                                              \
    X(ERR_TOKEN, "token")             /* not a token of ours, or not for this */                          \
    X(ERR_SHED, "overloaded")         /* refused because of pressure; again later */                      \
    X(ERR_DAMAGED, "damaged")         /* what was stored can't be believed */                             \
    X(ERR_NO_SPACE, "no_space")       /* disk or map is full; what frees space is still taken */          \
    X(ERR_UNAVAILABLE, "unavailable") /* the store has failed or isn't there; nothing was done */         \
    X(ERR_IO, "io")                   /* the disk failed; what was asked may or may not have been done */ \
    X(ERR_IN_USE, "in_use")           /* another process, or this one, has the directory */               \
    X(ERR_FOREIGN, "foreign")         /* a directory or a file that isn't ours */                         \
    X(ERR_NOT_WRITABLE, "not_writable")                                                                   \
    X(ERR_NEWER, "newer_format")     /* written by a later release */                                     \
    X(ERR_MISSING, "missing")        /* there is no store where one must be */                            \
    X(ERR_FORBIDDEN, "forbidden")    /* not from here, or not to there */                                 \
    X(ERR_QUEUE_FULL, "queue_full")  /* as many jobs are queued as may be */                              \
    X(ERR_ACTIVE, "too_many_active") /* as many jobs are active as may be */

enum error {
#define X(name, text) name,
    ERRORS(X)
#undef X
};

/* Never NULL; an unknown number gives "unknown_error". */
const char *error_name(enum error e);

#endif
