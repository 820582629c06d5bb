/* The keeper: the actor that looks after the store each second.
 *
 * It ends actors that hold a view for too long, sends retention.sweep when something's time is over, shows the
 * store's figures as gauges, and reads every row once in a while (the scrub), so that damage is found while there is a
 * backup from before it: each value, each row once more by its key, and how many there are, where no commit came
 * between. Damage is told by the event store.damaged and by the gauge of damaged rows; nothing is mended by itself.
 *
 * It looks whether the directory still leads to the file that is open. While it doesn't, because somebody removed or moved it, the store
 * is STORE_LOST: the writer takes nothing, because whoever starts next wouldn't find it, reading goes on, and the log says what can be
 * done. The process stays: it holds the last there is of a file that was removed, and who starts in its place where the directory
 * has gone, too, would begin with an empty store. A file that is put back, the same one, ends it.
 *
 * It waits for nobody for longer than until its next look: a sweep that isn't answered stays open, and a map that is
 * growing is left for the next look. So a view is never older than its limit and two looks, whatever the writer does.
 */
#ifndef COPPICE_STORE_KEEPER_H
#define COPPICE_STORE_KEEPER_H

#include "store/store.h"

#define KEEPER_NAME        "store.keeper"
#define KEEPER_INTERVAL_MS 1000u
#define KEEPER_SWEEPS_MAX  16u /* of retention, each interval */
#define KEEPER_SWEEP_EVERY \
    60u /* intervals, when nothing is due, or was left: the ledger has no due entries; and at the first */
#define KEEPER_STATS_EVERY 10u   /* intervals */
#define KEEPER_SCRUB_ROWS  1024u /* each interval: a million rows in 17 minutes */

extern const struct actor_class keeper_class; /* state: the installed store */

#endif
