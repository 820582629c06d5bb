/* Parcels at random: a workload over a store, the same for the same seed. */
#ifndef COPPICE_TESTS_STORE_PARCELS_H
#define COPPICE_TESTS_STORE_PARCELS_H

#include "store/batch.h"
#include "store/outbox.h"
#include "tests/support/parcel.h"

enum { PARCELS_IDS = 64, PARCELS_BATCH_MAX = 12, PARCELS_BYTES = 1 << 17 };

struct parcels {
    uint64_t state; /* of the generator */
    uint64_t at_us;
    struct uuid ids[PARCELS_IDS];
    uint64_t fences[OUTBOX_PARTITIONS];
    uint64_t done, refused;
    uint32_t body_max;
    size_t used;
    uint8_t bytes[PARCELS_BYTES];
    struct batch_item items[PARCELS_BATCH_MAX];
};

void parcels_init(struct parcels *p, uint64_t seed);
uint64_t parcels_random(struct parcels *p, uint64_t below);
/* So many batches of parcel, outbox, audit and retention commands; some of each are refused. Every batch is committed
 * when it returns. */
void parcels_run(struct parcels *p, struct store *store, uint32_t batches);

/* The test's store in dir, with a small map and small steps; fails the test when it can't be opened. record: NULL. */
struct store *parcels_open(const char *dir, const char *record);
uint64_t parcels_commit(struct store *store); /* the newest */

#endif
