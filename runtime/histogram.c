#include "runtime/histogram.h"

#include "runtime/assert.h"

/* Written by one thread, so a load and a store do; a locked addition would cost ten times as much. */
static void add(_Atomic uint64_t *cell, uint64_t n)
{
    atomic_store_explicit(cell, atomic_load_explicit(cell, memory_order_relaxed) + n, memory_order_relaxed);
}

static uint64_t get(const _Atomic uint64_t *cell)
{
    return atomic_load_explicit(cell, memory_order_relaxed);
}

static void add_to_sum(struct histogram *h, uint64_t n)
{
    uint64_t sum;

    if (__builtin_add_overflow(get(&h->sum), n, &sum))
        sum = UINT64_MAX;
    atomic_store_explicit(&h->sum, sum, memory_order_relaxed);
}

static void raise_max(struct histogram *h, uint64_t value)
{
    if (value > get(&h->max))
        atomic_store_explicit(&h->max, value, memory_order_relaxed);
}

uint32_t histogram_bucket(uint64_t value)
{
    unsigned power;

    if (value < HISTOGRAM_EXACT)
        return (uint32_t)value;
    power = 63u - (unsigned)__builtin_clzll(value);
    /* The seven highest bits are 64..127: the place within the power of two. */
    return HISTOGRAM_EXACT + (power - 7) * HISTOGRAM_PER_POWER + (uint32_t)(value >> (power - 6)) -
           HISTOGRAM_PER_POWER;
}

uint64_t histogram_bucket_high(uint32_t bucket)
{
    uint32_t power, place;

    ASSERT(bucket < HISTOGRAM_BUCKETS);
    if (bucket < HISTOGRAM_EXACT)
        return bucket;
    power = (bucket - HISTOGRAM_EXACT) / HISTOGRAM_PER_POWER + 7;
    place = (bucket - HISTOGRAM_EXACT) % HISTOGRAM_PER_POWER + HISTOGRAM_PER_POWER;
    return ((uint64_t)place << (power - 6)) + ((UINT64_C(1) << (power - 6)) - 1);
}

void histogram_clear(struct histogram *h)
{
    atomic_store_explicit(&h->sum, 0, memory_order_relaxed);
    atomic_store_explicit(&h->max, 0, memory_order_relaxed);
    for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++)
        atomic_store_explicit(&h->counts[i], 0, memory_order_relaxed);
}

void histogram_record(struct histogram *h, uint64_t value)
{
    add(&h->counts[histogram_bucket(value)], 1);
    add_to_sum(h, value);
    raise_max(h, value);
}

void histogram_merge(struct histogram *into, const struct histogram *from)
{
    for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        uint64_t n = get(&from->counts[i]);

        if (n > 0)
            add(&into->counts[i], n);
    }
    add_to_sum(into, get(&from->sum));
    raise_max(into, get(&from->max));
}

uint64_t histogram_count(const struct histogram *h)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++)
        count += get(&h->counts[i]);
    return count;
}

uint64_t histogram_sum(const struct histogram *h)
{
    return get(&h->sum);
}

uint64_t histogram_max(const struct histogram *h)
{
    return get(&h->max);
}

uint64_t histogram_count_to(const struct histogram *h, uint64_t bound)
{
    uint32_t end = histogram_bucket(bound);
    uint64_t count = 0;

    if (histogram_bucket_high(end) == bound)
        end++;
    for (uint32_t i = 0; i < end; i++)
        count += get(&h->counts[i]);
    return count;
}

uint64_t histogram_percentile(const struct histogram *h, uint32_t parts)
{
    uint64_t count = histogram_count(h);
    uint64_t max = get(&h->max);
    uint64_t rank, seen = 0;

    if (count == 0)
        return 0;
    if (parts > 10000)
        parts = 10000;
    rank = (uint64_t)(((unsigned __int128)count * parts + 9999) / 10000);
    if (rank == 0)
        rank = 1;
    for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += get(&h->counts[i]);
        if (seen >= rank)
            return histogram_bucket_high(i) < max ? histogram_bucket_high(i) : max;
    }
    return max;
}
