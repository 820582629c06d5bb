/* The guardian: a parent process that starts the server again when it ends abnormally.
 *
 * For machines without a service manager. The server runs in a child; SIGTERM and SIGINT are passed on to it,
 * as are SIGHUP and SIGUSR1, and when it ends after one of the first two, the guardian ends with its status. Otherwise: 0 is an end that was asked for.
 * What would only come again is final, and the guardian ends with it: 64 and 78 (the command line, the
 * configuration, a newer store), 65, 66, 73 and 77 (a data directory that is damaged, missing, not ours, or that
 * may not be written); 71 and 78 only of the first server, because the others read their settings again, and the
 * system may have more to give. Anything else, signals included, is a reason to start it again, at once, as long as
 * the restart intensity allows. More than that gives one JSON line and status 70. When the system has no room for
 * another process just then, that counts as one more end, and is tried again a second later. When the guardian itself is
 * killed, the kernel tells the child to stop.
 *
 * What the guardian opened before (the listening socket) is inherited by each child, so clients wait in its
 * backlog instead of being refused while a server is being started again.
 */
#ifndef COPPICE_CONFIG_GUARDIAN_H
#define COPPICE_CONFIG_GUARDIAN_H

#include "config/options.h"
#include "runtime/env.h"

/* Single-threaded still. serve is called in each child, whose exit status it returns; again: there was one before, and the settings may
 * be others by now. Returns the guardian's. */
int guardian_run(struct intensity intensity, struct env *env, int (*serve)(void *arg, bool again), void *arg);

#endif
