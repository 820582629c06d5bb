/* Signals: what the process is told from outside, in the order it was told.
 *
 *     SIGTERM, SIGINT   drain: readiness goes, nothing new is accepted, after http.shutdown_delay the runtime is asked
 *                       to stop; a second one ends the process at once
 *     SIGHUP            the settings are read again (config/reload.h)
 *     SIGUSR1           the living tree and the figures of the runtime become lines of the log
 *     SIGPIPE           is ignored
 *
 * A handler writes one byte into a pipe, which is there from signals_open on; the actor (row "signals") reads it and does the work. What
 * comes before it lives, or while it is being restarted, waits in the pipe: SIGHUP and SIGUSR1 aren't lost while the store is being
 * opened. SIGTERM and SIGINT end the process as they do without a handler until there is a runtime to stop; before the actor has
 * lived there they stop the runtime directly; and between two runtimes the next one is told. A drain that was asked for, or had
 * begun, goes on with the actor's successor.
 */
#ifndef COPPICE_CONFIG_SIGNALS_H
#define COPPICE_CONFIG_SIGNALS_H

#include <stdbool.h>

#include "http/audits.h"
#include "runtime/actor.h"
#include "runtime/runtime.h"

#define SIGNALS_NAME    "signals" /* row of the topology, and registered name */
#define SIGNALS_WHO_MAX 112u      /* of an audit entry (store/audit.h) */

/* Calls to the actor. RELOAD: the answer is a struct reload_report; the request's body is a struct signals_reload, or nothing. */
enum { SIGNALS_RELOAD = 1 };

/* Who asks. The audit entry is the actor's business, so that there is one, with what came of it, also when nobody waits any more. */
struct signals_reload {
    uint64_t audit_until; /* how long its writing is waited for; it may be over */
    uint32_t who_size, request_id_size, reason_size;
    char who[SIGNALS_WHO_MAX], request_id[TRACE_REQUEST_MAX], reason[AUDITS_REASON_MAX];
};
void signals_reload_fill(struct signals_reload *ret, const struct request *q, uint64_t audit_until);

/* Before the first runtime, for all of them until signals_close. False: no descriptor is left; SIGHUP and SIGUSR1 do nothing then, and SIGTERM and
 * SIGINT stop the runtime all the same. */
bool signals_open(void);
/* Who is stopped from now on, at once when that was asked for since the last one; borrowed until the next call. NULL: nobody. */
void signals_serve(struct runtime *runtime);
bool signals_stopped(void); /* an end was asked for since signals_open */
/* SIGTERM and SIGINT end the process again; SIGHUP and SIGUSR1, which nobody can do anything about any more, are ignored. */
void signals_close(void);

extern const struct actor_class signals_class; /* takes no arguments */

#endif
