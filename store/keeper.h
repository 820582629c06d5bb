/* The keeper: the actor that looks after the store each second.
 *
 * It ends actors that hold a view for too long, sends retention.sweep when something's time is over, shows the
 * store's figures as gauges, and reads every row once in a while (the scrub), so that damage is found while there is a
 * backup from before it. Damage is told by the event store.damaged and by the gauge of damaged rows; nothing is
 * mended by itself.
 */
#ifndef COPPICE_STORE_KEEPER_H
#define COPPICE_STORE_KEEPER_H

#include "store/store.h"

#define KEEPER_NAME        "store.keeper"
#define KEEPER_INTERVAL_MS 1000u
#define KEEPER_SWEEPS_MAX  16u /* of retention, each interval */
#define KEEPER_SWEEP_EVERY \
    60u /* intervals, when nothing is due: the ledger has no due entries; and at the first */
#define KEEPER_STATS_EVERY 10u   /* intervals */
#define KEEPER_SCRUB_ROWS  1024u /* each interval: a million rows in 17 minutes */

extern const struct actor_class keeper_class; /* state: the installed store */

#endif
