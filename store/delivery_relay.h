/* From the outbox to deliveries: the command delivery.relay.
 *
 * The relay of a partition (actors/relay.h) reads which rows of the outbox tell of jobs and names them; the command makes the deliveries
 * of each and takes the row out, in one commit: so an event becomes its deliveries exactly once, whatever dies when. Rows are taken in
 * the order of their numbers, which is commit order.
 *
 * A row that can't be handed on (its job or event is damaged) is buried among the outbox's dead with the reason, so it holds nobody up. So
 * is one that can't be handed on to everybody, because a webhook or delivery is damaged: the others have it, and revived once that is
 * mended it goes to him alone.
 */
#ifndef COPPICE_STORE_DELIVERY_RELAY_H
#define COPPICE_STORE_DELIVERY_RELAY_H

#include "store/delivery.h"
#include "store/outbox.h"

#define DELIVERY_RELAY_ROWS_MAX 32u /* of one command: each becomes up to DELIVERY_TARGETS_MAX deliveries */

/* Whether a row is one of those; the others are somebody else's. */
bool delivery_relays(uint16_t topic);

/* rows: numbers of the outbox, u64 little-endian, increasing. */
#define DELIVERY_RELAY_FIELDS(X)                                 \
    X(partition, U16, 0, 1)                                      \
    X(fence, U64, 0, 1) /* of the claim: outbox_claim */         \
    X(steady_us, TIME, 0, 1)                                     \
    X(kept_us, U64, 0, 1) /* how long those of a backlog stay */ \
    X(rows, BYTES, DELIVERY_RELAY_ROWS_MAX * sizeof(uint64_t), 1)
RECORD_STRUCT(delivery_relay, DELIVERY_RELAY_FIELDS);
/* Code 244, of high priority. Answer: struct delivery_relayed. Rows that have gone are passed over. ERR_FENCED: another relay has claimed
 * the partition. ERR_INVALID: no such partition, or numbers that can't be. */
extern const struct command_class delivery_relay_class;
struct delivery_relayed {
    uint32_t rows; /* taken out of the outbox */
    uint32_t deliveries, buried;
    uint8_t errors
        [DELIVERY_RELAY_ROWS_MAX]; /* of each row, in the order of the command: why it was buried, or OK */
};

#endif
