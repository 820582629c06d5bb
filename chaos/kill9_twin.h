/* Twins: ordeals in which every command of the registry is drawn (chaos/workload.h), and what must be there is what another
 * store has, to which nothing ever happens.
 *
 * Applying a command reads nothing but the store, so the same batches give the same rows and the same answers. The victim
 * draws from a seed and notes how many batches it has begun and how many were answered. The judge draws the same from the
 * twin, which has the same rows, and applies it there: each answer must be the same, and what is left of the store must be
 * the twin's rows after the last batch that was answered, or after the one that wasn't, and nothing else.
 */
#ifndef COPPICE_CHAOS_KILL9_TWIN_H
#define COPPICE_CHAOS_KILL9_TWIN_H

#include <stdint.h>

#include "store/store.h"

/* In the victim: up to so many batches, and no more than ORDEAL_BATCHES_MAX. */
void twin_work(struct store *store, uint32_t batches);
/* In the judge, as judge_store. */
bool twin_judge(struct store *store, bool last);
/* How many commands of the registry there are, and how many were accepted at least once. */
void twin_reached(uint32_t *ret_commands, uint32_t *ret_accepted);

#endif
