/* Load: a store with its writer on a dedicated scheduler, and submitters that keep it busy.
 *
 * A submitter is an actor on the ordinary scheduler that sends parcels (tests/support/parcel.h: 1 KiB of body, an
 * idempotency key, no due time), the next one when the last one was answered. All ids come from one source, so they
 * grow in the order in which they are sent.
 *
 * For plain threads: each load has a runtime of its own, made and destroyed here.
 */
#ifndef COPPICE_TESTS_BENCH_LOAD_H
#define COPPICE_TESTS_BENCH_LOAD_H

#include "store/store.h"

#define LOAD_SUBMITTERS_MAX 256u

/* With parcel's schema. */
struct store *load_open(const char *folder);
/* The i-th parcel of those that were written at once; less than 0, as far as -2^24, is possible. */
struct uuid load_id(uint64_t i);
/* Parcels from .. from + count - 1, in batches of `group`, without a writer. */
void load_write(struct store *store, uint64_t from, uint64_t count, uint32_t group);

struct load {
    double rate; /* answered commands/s */
    double p50_us, p99_us;
    double cpu_us;        /* of the writer's thread, per command */
    double sync_cpu_us;   /* and what of that was the kernel's part of flushing */
    double group;         /* commands of a commit */
    double commit_bytes;  /* written by a commit, the meta page included */
    double commit_writes; /* calls of the system, the meta page's included */
    double commit_syncs;
};

/* From when all submitters are running and warm until going() is false; it is asked every few milliseconds. */
void load_run(struct store *store, uint32_t submitters, bool (*going)(void *arg), void *arg,
              struct load *ret_load);
/* The same for so long. */
void load_run_for(struct store *store, uint32_t submitters, uint64_t ns, struct load *ret_load);

#endif
