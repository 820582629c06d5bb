/* A sight: one look into what is left of a store, and whether a parcel is there as a model says, with all that belongs to it.
 *
 * Rows of the outbox stand where their partition and number say, so they are gathered first (sight_take); whatever else is
 * looked up by its key when it is asked for. One sight at a time in a process.
 */
#ifndef COPPICE_CHAOS_KILL9_SIGHT_H
#define COPPICE_CHAOS_KILL9_SIGHT_H

#include "chaos/kill9_model.h"
#include "store/txn.h"

/* What stands in the outbox, and among the dead, of one event. */
struct sight_row {
    uint32_t count, dead;
    uint16_t attempts, partition;
    uint64_t seq;
};

/* False: it complained of a row that is damaged, or about nothing that an ordeal has. */
bool sight_take(struct txn *txn);
const struct sight_row *sight_row(uint32_t owner, uint32_t index, uint32_t event);

/* Its record, events, rows, due entry, ledger row, token, client, the client's keys and audit entries: all of it as the lane's
 * model has it, no more and no less. False: sight_difference says why. */
bool sight_is(struct txn *txn, uint32_t owner, uint32_t index, const struct lane_model *lane);
/* What of a lane is not with one of its parcels: how far retention has noted that it went. */
bool sight_retained(struct txn *txn, const struct lane_model *lane);
const char *sight_difference(void);

#endif
