/* Latencies: how often each was seen, in buckets of 1.6 % from 1 us on. */
#ifndef COPPICE_TESTS_BENCH_LATENCIES_H
#define COPPICE_TESTS_BENCH_LATENCIES_H

#include <stdint.h>

#define LATENCIES_LOG2_MIN 10u /* ns; 64 buckets from a power of two to the next */
#define LATENCIES_LOG      6u
#define LATENCIES_BUCKETS  (28u << LATENCIES_LOG)

struct latencies {
    uint64_t seen[LATENCIES_BUCKETS];
};

void latencies_note(struct latencies *latencies, uint64_t ns);
/* us below which this share of them lies. Fails the program when there are none. */
double latencies_us(const struct latencies *latencies, double share);

#endif
