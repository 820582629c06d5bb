/* The judge: whether what is left of a store is what the model says, after a victim has been killed.
 *
 * In a process of its own, so that a store that can't be read ends only that. It takes in what was answered, compares with
 * the model and with each other what the answers were, finds out of each attempt without an answer whether it was done, wholly
 * or not at all, demands all or nothing of a batch, and sends each of those once more. Then ordeal knows what there is for the
 * next cycle.
 */
#ifndef COPPICE_CHAOS_KILL9_JUDGE_H
#define COPPICE_CHAOS_KILL9_JUDGE_H

#include "store/store.h"

/* The store was just opened and its ledger read. last: also every parcel that there ever was, and the look of `coppice check`
 * at the rows. False: ordeal_shared->complaint says why. */
bool judge_store(struct store *store, bool last);

#endif
