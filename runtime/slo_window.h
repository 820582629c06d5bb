/* Windows: what came of one objective in the last five minutes, in slices of ten seconds.
 *
 * A window has one writer, the thread of its shard, which never waits; a reader adds up the windows of all shards and judges
 * their sum. Readers may be any thread at any time and need no second look: the slice that is being cleared is always too old
 * for a reader whose time is right. Nothing is allocated; a window of zeros is an empty one.
 */
#ifndef COPPICE_RUNTIME_SLO_WINDOW_H
#define COPPICE_RUNTIME_SLO_WINDOW_H

#include <stdatomic.h>
#include <stdint.h>

#include "runtime/telemetry.h"

/* What is judged of the samples: their 95th percentile, how many of them are successes, their sum. */
enum slo_kind { SLO_P95, SLO_RATIO, SLO_TOTAL };

enum {
    /* Slices of a window: 30 make five minutes; two more, so that the one being cleared is never in a window. */
    SLO_SLICES = 32,
    SLO_SLICES_IN_WINDOW = 30,
    /* Latencies within a slice, in microseconds: 0..31 exactly, then 16 buckets for each power of two up to 2^30. */
    SLO_EXACT = 32,
    SLO_PER_POWER = 16,
    SLO_POWER_MAX = 30,
    SLO_BUCKETS = SLO_EXACT + (SLO_POWER_MAX - 5) * SLO_PER_POWER,
};

struct slo_slice {
    _Atomic uint64_t state; /* 1 + number of the ten seconds it counts; 0: being cleared, or never used */
    _Atomic uint32_t samples;
    _Atomic uint32_t above_warn;           /* P95 only */
    _Atomic uint32_t above_critical;       /* P95 only */
    _Atomic uint32_t total;                /* RATIO: successes; TOTAL: the sum */
    _Atomic uint32_t buckets[SLO_BUCKETS]; /* P95 only */
};

struct slo_window {
    struct slo_slice slices[SLO_SLICES];
};

/* By the window's thread. `threshold` is the same at every call. */
void slo_window_record(struct slo_window *window, enum slo_kind kind, struct telemetry_threshold threshold,
                       uint64_t now, int64_t value);

struct slo_sum {
    uint64_t samples, above_warn, above_critical, total;
    uint32_t buckets[SLO_BUCKETS];
};

/* The five minutes that end at `now`. */
void slo_sum_add(struct slo_sum *sum, const struct slo_window *window, enum slo_kind kind, uint64_t now);
void slo_sum_judge(const struct slo_sum *sum, enum slo_kind kind, struct telemetry_threshold threshold,
                   struct telemetry_slo_state *ret_state);

#endif
