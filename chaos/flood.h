/* Flood: more than the server's limits allow, until it says so: requests of a client, of an address, jobs in the queue, jobs
 * that are active. Cases of the verdict. A limit that the brief doesn't name is left alone.
 */
#ifndef COPPICE_CHAOS_FLOOD_H
#define COPPICE_CHAOS_FLOOD_H

#include "chaos/dice.h"

struct stage;

/* All of them, one after the other; of a strand. */
void flood_all(struct stage *stage, struct dice *dice);

#endif
