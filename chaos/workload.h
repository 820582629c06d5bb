/* Workload: batches of the product's own commands, drawn from a seed.
 *
 * Parcels are sent, moved and dropped; relays claim partitions, mark, defer, bury and revive rows; entries are
 * audited; clients come and have keys; jobs are submitted, claimed, finished and cancelled; signing keys, tokens and webhooks come and
 * go; retention sweeps; time passes, sometimes a day at once. What a command is about is looked up in the store,
 * so the workload knows nothing and can't be wrong after a batch whose end nobody knows.
 */
#ifndef COPPICE_CHAOS_WORKLOAD_H
#define COPPICE_CHAOS_WORKLOAD_H

#include "chaos/dice.h"
#include "store/batch.h"

#define WORKLOAD_BATCH_MAX 48u

struct workload {
    struct dice dice;
    uint64_t at_us;
    uint32_t parcels_most; /* above it more is dropped than sent */
    uint32_t body_most;
    size_t used;
    uint8_t *bytes; /* of the commands of one batch */
    struct batch_item items[WORKLOAD_BATCH_MAX];
};

bool workload_create(struct workload *w, uint64_t seed);
void workload_destroy(struct workload *w);
/* 1 to WORKLOAD_BATCH_MAX commands in w->items; returns how many. */
size_t workload_draw(struct workload *w, struct store *store);
/* By its parts (chaos/workload_jobs.h): some new id; a key of the table that is there, mostly; the command's bytes become the
 * item. */
struct uuid workload_uuid(struct workload *w);
struct uuid workload_id(struct workload *w, struct txn *txn, uint32_t table);
void workload_encode(struct workload *w, struct batch_item *item, const struct command_class *class,
                     const void *command);
/* One command of a class of the schema, in w->items[0]. */
void workload_draw_one(struct workload *w, struct store *store, const struct command_class *class);

#endif
