/* Auditor: looks at the store from within, between two steps of the world, and holds it against what patrons know.
 *
 * Rows: all that `coppice check` demands, so each derived row, index and counter is computed again (J6, J8, S2). Orders: each job that
 * was acknowledged is there, in no lesser state than was seen, and at rest there is none besides them (I1, J2); and whoever has ordered
 * it was told of its end (O1, O2).
 */
#ifndef COPPICE_CHAOS_AUDITOR_H
#define COPPICE_CHAOS_AUDITOR_H

#include "chaos/dice.h"
#include "store/store.h"

void auditor_rows(struct store *store, const char *when);
void auditor_orders(struct store *store, bool at_rest);
/* Turns one bit of the row of one of the jobs over, on the disk, and reads it: it is damaged, and neither lost nor another one (S6). The
 * last thing to be done with a store. */
void auditor_damage(struct store *store, const char *data_file, struct dice *dice);
/* Deliveries that have no end yet. */
uint32_t auditor_pending(struct store *store);

#endif
