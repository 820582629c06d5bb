/* Inside the supervisor: its state, and what its parts ask of each other.
 *
 * supervisor.c           starts, watches, restarts, gives up
 * supervisor_stop.c      asks children to end, waits, kills
 * supervisor_admin.c     answers calls
 * supervisor_calls.c     makes them
 * supervisor_spec.c      checks and copies specs
 * supervisor_children.c  keeps the table
 *
 * Everything here runs inside the supervisor's own actor and may block there.
 *
 *   STOPPED      -> STARTING       a first start, restart_child, its group's restart
 *   STARTING     -> RUNNING        init said yes
 *                -> STOPPED        init said ignore; or it failed, and the caller was told
 *   RUNNING      -> STOPPED        ended, and its restart type says: not again (temporary, dynamic:
 * forgotten)
 *                -> STARTING       ended, a restart was granted
 *                -> STOPPING       asked to end: terminate_child, a group's restart, the supervisor's end
 *   STOPPING     -> STOPPED
 *   a failed or dead child that is to be restarted, instead of starting at once:
 *                -> RESTARTING     failed in init: a note to ourselves brings the next attempt, to be granted
 *                -> BACKING_OFF    until its timer brings the next attempt, to be granted; or resume
 *                -> QUARANTINED    until its timer or resume starts it, outside the budget
 *
 * A restart that isn't granted is the supervisor's end.
 */
#ifndef COPPICE_RUNTIME_SUPERVISOR_IMPL_H
#define COPPICE_RUNTIME_SUPERVISOR_IMPL_H

#include "runtime/supervisor_calls.h"
#include "runtime/supervisor_children.h"
#include "runtime/supervisor_spec.h"

struct supervisor {
    struct children children;
    const struct child_plan *template; /* NULL: none */
    const void *template_args;
    uint32_t template_args_size;
    uint32_t max_children;
    uint8_t strategy, auto_shutdown;
    bool root;
    bool ending; /* the children are being stopped for good */
    struct restart_window window;
    uint64_t period_ms;
    uint64_t restarts; /* granted, ever */
    struct {
        uint64_t version; /* of the order list this is good for */
        size_t place;     /* position from the newest ... */
        uint32_t index;   /* ... of this child: where a long list goes on */
    } walk;
    char name[CHILD_TEXT_MAX];
};

static inline bool supervisor_is_group(const struct supervisor *s)
{
    return s->strategy == ONE_FOR_ALL || s->strategy == REST_FOR_ONE;
}

/* ---- supervisor.c ---- */

/* Starts it and waits for its init. Other than OK: it is CHILD_STOPPED, nothing of it is left, ret->why is
 * the caller's. */
enum error child_start(struct supervisor *s, struct child *c, const void *args, size_t args_size,
                       const char *name, struct start_result *ret);
/* The same with what it has kept. */
enum error child_start_again(struct supervisor *s, struct child *c, struct start_result *ret);
/* Its incarnation is over: CHILD_STOPPED, and the reason is remembered. */
void child_ended(struct supervisor *s, struct child *c, const struct reason *why);
/* No retry, backoff or quarantine any more: CHILD_STOPPED. Not for one that runs. */
void child_cancel(struct supervisor *s, struct child *c);
/* Quarantined or backing off: start now. OK, or ERR_INIT and it has been set aside again. */
enum error child_resume(struct supervisor *s, struct child *c);
/* Names for events, never empty. */
const char *supervisor_label(const struct supervisor *s);
const char *child_label(const struct child *c);

/* ---- supervisor_stop.c ---- */

/* Ask, wait, kill; returns when it is gone and CHILD_STOPPED. Only for CHILD_RUNNING. */
void child_stop(struct supervisor *s, struct child *c);
/* `first` and those started after it, the last one first; temporary ones are forgotten, quarantined ones left
 * alone. */
void children_stop_group(struct supervisor *s, uint32_t first);
/* All of them, for good: one after the other in reverse start order; dynamic: all at once. */
void children_stop_all(struct supervisor *s);

/* ---- supervisor_admin.c ---- */

void supervisor_answer(struct supervisor *s, struct message *m); /* a CALL_... */
void supervisor_answer_error(struct message *m, enum error e);

#endif
