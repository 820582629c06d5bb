#include "tests/bench/latencies.h"
#include "tests/bench/bench.h"

#define LOG2_MIN LATENCIES_LOG2_MIN
#define LOG      LATENCIES_LOG

void latencies_note(struct latencies *l, uint64_t ns)
{
    unsigned top = 63u - (unsigned)__builtin_clzll(ns | 1ull << LOG2_MIN);
    uint64_t bucket = ((uint64_t)(top - LOG2_MIN) << LOG) | ((ns >> (top - LOG)) & ((1u << LOG) - 1));
    l->seen[bucket < LATENCIES_BUCKETS ? bucket : LATENCIES_BUCKETS - 1]++;
}

double latencies_us(const struct latencies *l, double share)
{
    uint64_t count = 0, seen = 0;
    for (uint32_t i = 0; i < LATENCIES_BUCKETS; i++)
        count += l->seen[i];
    for (uint32_t i = 0; i < LATENCIES_BUCKETS; i++) {
        seen += l->seen[i];
        if (seen > 0 && (double)seen >= share * (double)count) {
            unsigned top = LOG2_MIN + (i >> LOG);
            return (double)((uint64_t)((1u << LOG) + (i & ((1u << LOG) - 1)) + 1) << (top - LOG)) / 1e3;
        }
    }
    bench_fail("nothing was answered");
}
