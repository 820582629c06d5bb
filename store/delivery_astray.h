/* Strays: entries of the due index that lead to no delivery which could be sent by them; and the command delivery.astray, which sees to
 * them, so that a delivery that can't be read costs itself alone.
 *
 *     it can't be read, or isn't there   its entry goes to DELIVERY_ASTRAY_US from now, out of the way of its host's others, and whoever
 *                                        waits for it in its chain has his turn. Should it be mended it is sent then
 *     it isn't to be sent then           the entry goes, and its own is there
 *
 * Of one that can't be read only the id is known, and its chain isn't: whoever asks for the command looks for its place first
 * (delivery_find_places), through the rows that lead to deliveries, some at a time.
 */
#ifndef COPPICE_STORE_DELIVERY_ASTRAY_H
#define COPPICE_STORE_DELIVERY_ASTRAY_H

#include "store/delivery.h"

#define DELIVERY_ASTRAY_US (UINT64_C(600) * 1000000)

/* An entry, and the place of what it names in its chain, once that is known. */
#define DELIVERY_STRAY_FIELDS(X) \
    X(id, UUID, 0, 1)            \
    X(lane, U16, 0, 1)           \
    X(due_us, TIME, 0, 1)        \
    X(placed, U8, 0, 1)          \
    X(job, UUID, 0, 1)           \
    X(webhook, UUID, 0, 1)       \
    X(event, U64, 0, 1)          \
    X(topic, U16, 0, 1)
RECORD_STRUCT(delivery_stray, DELIVERY_STRAY_FIELDS);
extern const struct record_class delivery_stray_record;
#define DELIVERY_STRAY_SIZE (16 + 2 + 8 + 1 + 16 + 16 + 8 + 2)
#define DELIVERY_STRAYS_MAX 32u

/* Looks at up to `most` rows of all chains, from *from on (empty: the first one), and notes the places of those of these deliveries that
 * they lead to. *from: where to go on. ERR_NOT_FOUND: there are no more rows. Another error: there is no way past it. */
enum error delivery_find_places(struct txn *txn, struct key *from, uint32_t most,
                                struct delivery_stray *strays, uint32_t count);

/* strays: encoded one behind the other. */
#define DELIVERY_ASTRAY_FIELDS(X) \
    X(steady_us, TIME, 0, 1)      \
    X(strays, BYTES, DELIVERY_STRAYS_MAX *DELIVERY_STRAY_SIZE, 1)
RECORD_STRUCT(delivery_astray, DELIVERY_ASTRAY_FIELDS);
/* Code 247, of high priority. Answer: a byte for each, enum delivery_astray_found. ERR_INVALID: strays that can't be. */
extern const struct command_class delivery_astray_class;
enum delivery_astray_found {
    DELIVERY_NO_STRAY = 0, /* it isn't there any more, or leads to what is to be sent then */
    DELIVERY_STRAY,        /* it has gone */
    DELIVERY_UNREADABLE,   /* what it leads to can't be read: it was put off */
};

#endif
