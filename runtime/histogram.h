/* Log-linear histograms: any 64-bit value, two significant digits, fixed size, mergeable.
 *
 * Values up to 127 have a bucket each. Above that every power of two is cut into 64 equal buckets, so a
 * bucket is never wider than 1/64 of its lowest value and a value reported as the highest one of its bucket
 * is at most 1.6 % too large, never too small.
 *
 * One thread records into a histogram; any thread may read or merge from it meanwhile and then sees each
 * count either before or after (not all of them as of one instant). Nothing here allocates, blocks or fails.
 * All zeros is an empty histogram.
 */
#ifndef COPPICE_RUNTIME_HISTOGRAM_H
#define COPPICE_RUNTIME_HISTOGRAM_H

#include <stdatomic.h>
#include <stdint.h>

enum {
    HISTOGRAM_EXACT = 128,    /* 0..127 */
    HISTOGRAM_PER_POWER = 64, /* 2^7..2^8 - 1 in 64 buckets, and so on up to 2^63..2^64 - 1 */
    HISTOGRAM_BUCKETS = HISTOGRAM_EXACT + (64 - 7) * HISTOGRAM_PER_POWER, /* 3,776, 8 bytes each */
};

struct histogram {
    _Atomic uint64_t sum; /* stays at UINT64_MAX once it would pass it */
    _Atomic uint64_t max;
    _Atomic uint64_t counts[HISTOGRAM_BUCKETS];
};

void histogram_clear(struct histogram *h);
void histogram_record(struct histogram *h, uint64_t value);
/* Adds what is in `from`; the result is as if all values had been recorded in one. */
void histogram_merge(struct histogram *into, const struct histogram *from);

uint64_t histogram_count(const struct histogram *h);
uint64_t histogram_sum(const struct histogram *h);
uint64_t histogram_max(const struct histogram *h); /* exact */
/* How many values were at most `bound`. Exact when `bound` is the highest value of its bucket, else without
 * those that share its bucket. */
uint64_t histogram_count_to(const struct histogram *h, uint64_t bound);
/* The value at rank ceil(count * parts / 10,000), counted from the smallest: 9,500 is p95, 9,990 is p99.9, 0
 * is the smallest. parts above 10,000 mean 10,000. Empty: 0. The highest value of the bucket, but never above
 * max. */
uint64_t histogram_percentile(const struct histogram *h, uint32_t parts);

/* The bucket of a value and the highest value of a bucket. */
uint32_t histogram_bucket(uint64_t value);
uint64_t histogram_bucket_high(uint32_t bucket);

#endif
