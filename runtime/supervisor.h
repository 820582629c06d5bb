/* Supervisors: actors that start other actors, watch them, and start them again within a declared budget.
 *
 * The arithmetic is OTP's: more than `intensity` restarts within `period` (closed window) ends the supervisor
 * with reason shutdown after its children, in reverse order; that is then its parent's failure to handle.
 * Defaults are OTP's too: one_for_one, 1 restart in 5 s, permanent workers, 5 s to shut down, supervisors
 * without limit. Every spec is checked before the first child starts; a refusal names the child, the field
 * and the value. Administration functions are calls to the supervisor: they block until it answers, and give
 * ERR_NOPROC at once when it isn't there. Limits: SUPERVISOR_CHILDREN_MAX children, ids up to 95 bytes,
 * arguments up to ACTOR_ARGS_MAX bytes.
 */
#ifndef COPPICE_RUNTIME_SUPERVISOR_H
#define COPPICE_RUNTIME_SUPERVISOR_H

#include "runtime/actor.h"

#define STRATEGIES(X)               \
    X(ONE_FOR_ONE, "one_for_one")   \
    X(ONE_FOR_ALL, "one_for_all")   \
    X(REST_FOR_ONE, "rest_for_one") \
    X(DYNAMIC, "dynamic") /* children come and go at run time; one_for_one; no order between them */

enum strategy {
#define X(name, text) name,
    STRATEGIES(X)
#undef X
        STRATEGY_COUNT
};

enum restart_type { RESTART_PERMANENT = 0, RESTART_TRANSIENT, RESTART_TEMPORARY, RESTART_TYPE_COUNT };
enum child_type { CHILD_WORKER = 0, CHILD_SUPERVISOR, CHILD_TYPE_COUNT };
enum auto_shutdown { AUTO_SHUTDOWN_NEVER = 0, AUTO_SHUTDOWN_ANY, AUTO_SHUTDOWN_ALL, AUTO_SHUTDOWN_COUNT };

/* child_spec.shutdown_ms: how long a child may take to end when asked. Other negative values are refused. */
#define SHUTDOWN_DEFAULT  0 /* 5,000 ms; supervisors: without limit */
#define SHUTDOWN_INFINITY (-1)
#define SHUTDOWN_BRUTAL   (-2) /* killed without being asked */
#define SHUTDOWN_AT_ONCE  (-3) /* asked, and killed if not gone within 0 ms */

/* A child that keeps failing at start (in init, or before it has handled one message) is set aside before it
 * spends its supervisor's budget. After retry_ms it is started again, outside the budget; failing again at
 * once it goes back. */
struct quarantine_spec {
    uint32_t failures;  /* 0: off; at most 9. This many ... */
    uint32_t window_ms; /* ... within this time, both ends included; 0: 60,000 */
    uint32_t retry_ms;  /* 0: 60,000 */
};

/* A restart waits for a random time from 0 to a limit (full jitter); the limit doubles with each restart. */
struct backoff_spec {
    uint32_t first_ms; /* the first limit; 0: off, restart at once */
    uint32_t max_ms;   /* the last limit; 0: 60,000 */
    uint32_t reset_ms; /* living this long forgets the past; 0: 60,000 */
};

struct child_spec {
    const char *id;                  /* required, except under a dynamic supervisor */
    const struct actor_class *class; /* required: what starts */
    const void *args;                /* copied, kept for restarts (not for temporary children) */
    size_t args_size;
    const char *name; /* registered name, or NULL */
    enum restart_type restart;
    enum child_type type;
    int64_t shutdown_ms;
    bool significant;
    int scheduler; /* SPAWN_HERE or SPAWN_ON(n) */
    struct backoff_spec backoff;
    struct quarantine_spec quarantine;
};

struct supervisor_spec {
    const char *name; /* for telemetry and, when register_name is set, registered */
    bool register_name;
    enum strategy strategy;
    int32_t intensity; /* intensity and period both 0: 1 restart in 5 s */
    int64_t period_ms;
    enum auto_shutdown auto_shutdown;
    uint32_t max_children;             /* dynamic only; 0: SUPERVISOR_CHILDREN_MAX */
    const struct child_spec *children; /* in start order; none for dynamic */
    size_t children_count;
    /* Dynamic: what each child is. NULL: supervisor_start_child brings a spec. */
    const struct child_spec *template;
    /* Optional: called first, in the supervisor, to fill in the rest. ACTOR_CONTINUE, ACTOR_IGNORE; else
     * bad_return_value. What it fills in is checked as a declared spec is. */
    enum actor_step (*init)(struct supervisor_spec *spec, void *arg);
    void *init_arg; /* borrowed; must outlive the supervisor */
    bool root;      /* its exhaustion is the process's: see runtime.h */
};

#define SUPERVISOR_CHILDREN_MAX  4194304u
#define SUPERVISOR_INTENSITY_MAX 1000000

/* Check without starting. OK, or which rule is broken; the sentence says field, value and what would do. */
enum error supervisor_check(const struct supervisor_spec *spec, char *ret_text, size_t text_size);
enum error supervisor_check_children(const struct child_spec *specs, size_t count,
                                     enum auto_shutdown auto_shutdown, char *ret_text, size_t text_size);

/* Start a supervisor linked to the caller; returns when all children have finished their init. ERR_INIT:
 * result->why is failed_to_start_child or what init ended with; spec errors come back as themselves, with the
 * sentence as the detail of result->why. `scheduler` as in spawn_options. The spec is borrowed until the
 * return, or for the supervisor's life when there is a deadline that may cut the start short. */
enum error supervisor_start(const struct supervisor_spec *spec, int scheduler, struct start_result *ret,
                            uint64_t deadline);
/* Arguments for a supervisor_class that is a child of another supervisor, or the root: written to *storage
 * (caller's, at least SUPERVISOR_ARGS_MAX bytes); returns args_size. What the spec points to is borrowed and
 * must outlive it. */
#define SUPERVISOR_ARGS_MAX 512
extern const struct actor_class supervisor_class;
size_t supervisor_args(const struct supervisor_spec *spec, void *storage);

struct child_result {
    /* OK with 0: init said ignore. ERR_ALREADY_STARTED: the running one. ERR_ALREADY_REGISTERED: the holder.
     */
    actor_pid pid;
    uint64_t info;     /* actor_start_info */
    struct reason why; /* ERR_INIT: why; the caller's to drop */
};
/* A spec that is refused comes back as in supervisor_check. ERR_QUARANTINED: the id is there, set aside. A
 * start that fails leaves nothing behind. ERR_MAX_CHILDREN; ERR_DYNAMIC: there is a template. Ids aren't keys
 * under a dynamic supervisor. */
enum error supervisor_start_child(actor_pid sup, const struct child_spec *spec, struct child_result *ret,
                                  uint64_t deadline);
/* Dynamic with a template: one more child with these arguments (instead of the template's, unless args_size
 * is 0). Without a template: ERR_INVALID. */
enum error supervisor_start_dynamic(actor_pid sup, const void *args, size_t args_size, const char *name,
                                    struct child_result *ret, uint64_t deadline);
/* By id: static supervisors only; dynamic: ERR_DYNAMIC. When they return OK the child is dead and its names
 * are free. */
enum error supervisor_terminate_child(actor_pid sup, const char *id, uint64_t deadline);
/* Dynamic only; static: ERR_NOT_FOUND. Also by the last pid of a child that isn't running now. OK for whom is
 * dead already, as in OTP; ERR_NOT_FOUND for a living stranger. */
enum error supervisor_terminate_pid(actor_pid sup, actor_pid child, uint64_t deadline);
enum error supervisor_restart_child(actor_pid sup, const char *id, struct child_result *ret,
                                    uint64_t deadline);
enum error supervisor_delete_child(actor_pid sup, const char *id, uint64_t deadline);
/* Start a quarantined or backing-off child now; not counted as a restart. ERR_RUNNING; ERR_RESTARTING: the
 * next attempt is on its way; ERR_INVALID: stopped for good, see supervisor_restart_child; ERR_INIT: failed,
 * and set aside again. */
enum error supervisor_resume_child(actor_pid sup, const char *id, uint64_t deadline);
/* Dynamic: by its last pid. */
enum error supervisor_resume_pid(actor_pid sup, actor_pid last, uint64_t deadline);

#define CHILD_STATES(X)                                                                  \
    X(CHILD_STOPPED, "stopped")                                                          \
    X(CHILD_STARTING, "starting")                                                        \
    X(CHILD_RUNNING, "running")                                                          \
    X(CHILD_RESTARTING, "restarting") /* a restart failed; the next attempt is posted */ \
    X(CHILD_BACKING_OFF, "backing_off")                                                  \
    X(CHILD_STOPPING, "stopping")                                                        \
    X(CHILD_QUARANTINED, "quarantined")

enum child_state {
#define X(name, text) name,
    CHILD_STATES(X)
#undef X
        CHILD_STATE_COUNT
};

struct child_info {
    char id[96];        /* empty for dynamic children without one */
    actor_pid pid;      /* 0: not running */
    actor_pid last_pid; /* of the last incarnation, running or not; 0: there was none */
    enum child_state state;
    enum child_type type;
    enum restart_type restart;
    int64_t shutdown_ms; /* with the default filled in */
    const char *class_name;
    uint64_t restarts;
    char last_reason[96]; /* of its last death, or empty */
};
/* Newest first. Stores up to `count` from position `first`; *ret_total is how many there are. Long lists come
 * in parts of about 250, between which the supervisor serves others: then it isn't one instant. */
enum error supervisor_which_children(actor_pid sup, size_t first, struct child_info *infos, size_t count,
                                     size_t *ret_stored, size_t *ret_total, uint64_t deadline);
enum error supervisor_which_child(actor_pid sup, const char *id, struct child_info *ret, uint64_t deadline);

struct child_counts {
    uint64_t specs; /* children in whatever state; dynamic with a template: 1 */
    uint64_t active, supervisors, workers;
};
enum error supervisor_count_children(actor_pid sup, struct child_counts *ret, uint64_t deadline);

struct supervisor_info {
    char name[96];
    enum strategy strategy;
    uint32_t intensity;
    uint64_t period_ms;
    uint32_t budget_used; /* granted restarts in the window now */
    uint64_t restarts;    /* ever */
    struct child_counts children;
};
enum error supervisor_inspect(actor_pid sup, struct supervisor_info *ret, uint64_t deadline);
enum error supervisor_stop(actor_pid sup, struct reason why, uint64_t deadline); /* children first; then ok */

const char *strategy_name(enum strategy s);
const char *child_state_name(enum child_state s);

#endif
