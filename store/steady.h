/* Steady time from one start of the server to the next.
 *
 * Within one run it counts what has elapsed (store_steady_us). At a start it begins with the wall clock, but never before the
 * time that commands have noted: a wall clock that was years ahead and is right again doesn't make leases and backoffs of
 * then last for years. Noted by what sets such deadlines, and once in STEADY_NOTE_US at most; so behind a deadline of a
 * duration D there is nothing longer to wait for than that and D.
 */
#ifndef COPPICE_STORE_STEADY_H
#define COPPICE_STORE_STEADY_H

#include "store/txn.h"

#define STEADY_NOTE_US UINT64_C(1000000)

/* Within a command, among what it writes. */
void steady_note(struct txn *txn, uint64_t steady_us);
/* OK and what is noted; 0: nothing is. */
enum error steady_noted(struct txn *txn, uint64_t *ret_us);

#endif
