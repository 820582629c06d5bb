/* Notifications to the service manager: sd_notify's protocol, datagrams to the socket that NOTIFY_SOCKET names (a path, or
 * an abstract address that begins with '@').
 *
 * notify_open is called at boot and takes the variables out of the environment, so that no child inherits them.
 * notify_send never blocks and is lost when nobody listens; any thread, also before the runtime runs.
 *
 * The actor (row "notify", the last one of the topology: when it starts, everything else has) calls what notify_on_ready
 * was given, the first time it lives, and says READY=1, each time; and while
 * WATCHDOG_USEC asks for it, WATCHDOG=1 twice within that time. It does so only when every scheduler has made progress
 * since the last time: on each of them an actor of its own (class "pulse", linked to it) counts. A scheduler that stands
 * still keeps the watchdog from being fed, and the service manager starts the process again. The dedicated schedulers
 * are left out: they stand still on purpose, while the disk syncs.
 */
#ifndef COPPICE_CONFIG_NOTIFY_H
#define COPPICE_CONFIG_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/actor.h"

#define NOTIFY_TEXT_MAX 256u

/* From the process's environment. False: there is nobody to notify, and everything below does nothing. A NOTIFY_SOCKET
 * that can't be meant is as good as none. */
bool notify_open(void);
void notify_close(void);
/* How often WATCHDOG=1 must come, in ns; 0: not asked for, or of another process (WATCHDOG_PID). */
uint64_t notify_watchdog_ns(void);

/* "READY=1\nSTATUS=serving", up to NOTIFY_TEXT_MAX bytes. */
__attribute__((format(printf, 1, 2))) void notify_send(const char *format, ...);
/* RELOADING=1 with the monotonic time that the protocol wants; READY=1 ends it. */
void notify_reloading(void);

/* For boot, before the runtime runs: `call` is called once, in the actor, when everything has started. NULL: nobody. */
void notify_on_ready(void (*call)(const void *context), const void *context);

extern const struct actor_class notify_class; /* takes no arguments */

#endif
