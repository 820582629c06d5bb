/* Signals: what the process is told from outside, in the order it was told.
 *
 *     SIGTERM, SIGINT   drain: readiness goes, nothing new is accepted, after http.shutdown_delay the runtime is asked
 *                       to stop; a second one ends the process at once
 *     SIGHUP            the settings are read again (config/reload.h)
 *     SIGUSR1           the living tree and the figures of the runtime become lines of the log
 *     SIGPIPE           is ignored
 *
 * A handler writes one byte into a pipe; the actor (row "signals") reads it and does the work. Before the actor has ever
 * lived, and after it has died for good, SIGTERM and SIGINT stop the runtime directly, so that a stop works at every
 * instant between signals_open and signals_close. What comes while the actor is being restarted waits in the pipe, and
 * a drain that had begun goes on.
 */
#ifndef COPPICE_CONFIG_SIGNALS_H
#define COPPICE_CONFIG_SIGNALS_H

#include <stdbool.h>

#include "runtime/actor.h"
#include "runtime/runtime.h"

#define SIGNALS_NAME "signals" /* row of the topology, and registered name */

/* Calls to the actor. RELOAD: the answer is a struct reload_report. */
enum { SIGNALS_RELOAD = 1 };

/* One at a time. `runtime` is borrowed until signals_close. False: no descriptor is left; the handlers stop the runtime
 * all the same. */
bool signals_open(struct runtime *runtime);
bool signals_stopped(void); /* an end was asked for since signals_open */
void signals_close(void);   /* default handlers again */

extern const struct actor_class signals_class; /* takes no arguments */

#endif
