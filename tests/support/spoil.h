/* What no command would do: a test changes the store behind everybody's back, through the real writer.
 *
 * A stage with spoil_schema() has one command more, which calls a function of the test within its transaction. What the rows were
 * can be put back, or the stage says that it is unsound.
 */
#ifndef COPPICE_TESTS_SUPPORT_SPOIL_H
#define COPPICE_TESTS_SUPPORT_SPOIL_H

#include "store/txn.h"

const struct schema *spoil_schema(void); /* the parcels', and the command */

/* From an actor: waits for the commit. */
enum error spoil(enum error (*how)(struct txn *txn));
/* Within it: one byte in the middle of that row's value is another one; again, and it is as it was. */
void spoil_value(struct txn *txn, uint32_t table, struct span key);
void spoil_remove(struct txn *txn, uint32_t table, struct span key);

#endif
