/* Auditor: looks at the store from within, between two steps of the world, and holds it against what patrons know.
 *
 * Rows: all that `coppice check` demands, so each derived row, index and counter is computed again (J6, J8, S2). Orders: each job that
 * was acknowledged is there, in no lesser state than was seen, and at rest there is none besides them (I1, J2).
 */
#ifndef COPPICE_CHAOS_AUDITOR_H
#define COPPICE_CHAOS_AUDITOR_H

#include "store/store.h"

void auditor_rows(struct store *store, const char *when);
void auditor_orders(struct store *store, bool at_rest);
/* Deliveries that have no end yet. */
uint32_t auditor_pending(struct store *store);

#endif
