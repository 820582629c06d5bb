/* Relays: each makes deliveries of what one partition of the outbox tells of jobs (store/delivery_relay.h).
 *
 * It claims the partition by a fence, looks which rows are its own, and hands them to the store in commands of up to
 * DELIVERY_RELAY_ROWS_MAX; whatever comes in between, a row becomes its deliveries exactly once. Rows of others (audit entries) stay
 * where they are: it remembers behind which of them it has been, and begins at the front again when a dead row
 * has been revived, and every RELAY_AGAIN_MS in any case. It sleeps until its partition is written to, and comes by every RELAY_LOOK_MS.
 *
 * It keeps nothing that matters: one that dies is started again, claims the partition anew and goes on.
 */
#ifndef COPPICE_ACTORS_RELAY_H
#define COPPICE_ACTORS_RELAY_H

#include "runtime/actor.h"
#include "store/outbox.h"

#define RELAY_LOOK_MS     2000u
#define RELAY_AGAIN_MS    60000u
#define RELAY_SCAN_MAX    2048u /* rows looked at in one view */
#define RELAY_ROUNDS_MAX  64u   /* commands in a row, before others get their turn */
#define RELAY_TROUBLE_MS  250u  /* after a command that couldn't be done */
#define RELAY_PATIENCE_MS 30000u

extern const struct actor_class relay_class; /* args: its partition, u32 */

#endif
