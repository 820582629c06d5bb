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
 *
 * A start waits for its store, which may take longer than the service manager's patience (TimeoutStartSec=). The waiter (a
 * child of config/porch.h) says so at once and again every NOTIFY_WAIT_NS: STATUS= with how long it has been, and
 * EXTEND_TIMEOUT_USEC=, by which the manager waits for so long more; WATCHDOG=1 as well, when that is asked for. It asks for
 * NOTIFY_WAIT_MAX_NS and no longer: an opening that hasn't ended by then is the manager's to end. Being an actor, it is silent
 * when its scheduler stands still.
 */
#ifndef COPPICE_CONFIG_NOTIFY_H
#define COPPICE_CONFIG_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/actor.h"
#include "runtime/env.h"

#define NOTIFY_TEXT_MAX 256u

/* Each says that the next will come: three of them may be lost or late. */
#define NOTIFY_WAIT_NS   (5 * NS_PER_S)
#define NOTIFY_EXTEND_NS (4 * NOTIFY_WAIT_NS)
/* The default store.map.max, 256 GiB, read whole at 100 MB/s takes 46 minutes. */
#define NOTIFY_WAIT_MAX_NS (3600 * NS_PER_S)

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

extern const struct actor_class notify_class;        /* takes no arguments */
extern const struct actor_class notify_waiter_class; /* the same */

#endif
