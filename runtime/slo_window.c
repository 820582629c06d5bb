#include "runtime/slo_window.h"

#define SLICE_NS (TELEMETRY_SLO_WINDOW_NS / SLO_SLICES_IN_WINDOW)

static void add32(_Atomic uint32_t *cell, uint32_t n)
{
    atomic_store_explicit(cell, atomic_load_explicit(cell, memory_order_relaxed) + n, memory_order_release);
}

static uint32_t get32(const _Atomic uint32_t *cell)
{
    return atomic_load_explicit(cell, memory_order_acquire);
}

/* ---- writing ---- */

static uint32_t slice_bucket(uint64_t ns)
{
    uint64_t us = ns / 1000;
    unsigned power;

    if (us < SLO_EXACT)
        return (uint32_t)us;
    if (us >> SLO_POWER_MAX)
        return SLO_BUCKETS - 1;
    power = 63u - (unsigned)__builtin_clzll(us);
    return SLO_EXACT + (power - 5) * SLO_PER_POWER + (uint32_t)(us >> (power - 4)) - SLO_PER_POWER;
}

static int64_t slice_bucket_high(uint32_t bucket)
{
    uint32_t power, place;
    uint64_t us = bucket;

    if (bucket >= SLO_EXACT) {
        power = (bucket - SLO_EXACT) / SLO_PER_POWER + 5;
        place = (bucket - SLO_EXACT) % SLO_PER_POWER + SLO_PER_POWER;
        us = ((uint64_t)(place + 1) << (power - 4)) - 1;
    }
    return (int64_t)(us * 1000 + 999);
}

static void slice_clear(struct slo_slice *slice, enum slo_kind kind, uint64_t state)
{
    atomic_store_explicit(&slice->state, 0, memory_order_release);
    atomic_store_explicit(&slice->samples, 0, memory_order_release);
    atomic_store_explicit(&slice->above_warn, 0, memory_order_release);
    atomic_store_explicit(&slice->above_critical, 0, memory_order_release);
    atomic_store_explicit(&slice->total, 0, memory_order_release);
    for (uint32_t i = 0; kind == SLO_P95 && i < SLO_BUCKETS; i++)
        atomic_store_explicit(&slice->buckets[i], 0, memory_order_release);
    atomic_store_explicit(&slice->state, state, memory_order_release);
}

void slo_window_record(struct slo_window *window, enum slo_kind kind, struct telemetry_threshold threshold,
                       uint64_t now, int64_t value)
{
    uint64_t number = now / SLICE_NS;
    struct slo_slice *slice = &window->slices[number % SLO_SLICES];

    if (atomic_load_explicit(&slice->state, memory_order_relaxed) != number + 1)
        slice_clear(slice, kind, number + 1);
    add32(&slice->samples, 1);
    if (kind == SLO_P95) {
        add32(&slice->above_warn, value > threshold.warn);
        add32(&slice->above_critical, value > threshold.critical);
        add32(&slice->buckets[slice_bucket((uint64_t)value)], 1);
    } else if (value > 0) {
        add32(&slice->total, value < UINT16_MAX ? (uint32_t)value : UINT16_MAX);
    }
}

/* ---- reading ---- */

static void sum_add_slice(struct slo_sum *sum, const struct slo_slice *slice, enum slo_kind kind)
{
    sum->samples += get32(&slice->samples);
    sum->above_warn += get32(&slice->above_warn);
    sum->above_critical += get32(&slice->above_critical);
    sum->total += get32(&slice->total);
    for (uint32_t i = 0; kind == SLO_P95 && i < SLO_BUCKETS; i++)
        sum->buckets[i] += get32(&slice->buckets[i]);
}

/* A slice can only be cleared meanwhile if the writer's time is two slices ahead of the reader's; what was
 * added from it is then at most one slice's worth, and the next reading is right again. */
void slo_sum_add(struct slo_sum *sum, const struct slo_window *window, enum slo_kind kind, uint64_t now)
{
    uint64_t newest = now / SLICE_NS + 1;

    for (uint32_t i = 0; i < SLO_SLICES; i++) {
        const struct slo_slice *slice = &window->slices[i];
        uint64_t state = atomic_load_explicit(&slice->state, memory_order_acquire);

        if (state != 0 && state <= newest && state + SLO_SLICES_IN_WINDOW > newest)
            sum_add_slice(sum, slice, kind);
    }
}

/* The p95 is above a threshold when fewer than ceil(0.95 n) samples are at or below it. */
static bool p95_above(const struct slo_sum *sum, uint64_t above)
{
    uint64_t rank = (sum->samples * 95 + 99) / 100;

    return sum->samples - above < rank;
}

static int64_t p95_read(const struct slo_sum *sum)
{
    uint64_t rank = (sum->samples * 95 + 99) / 100;
    uint64_t seen = 0;

    for (uint32_t i = 0; i < SLO_BUCKETS; i++) {
        seen += sum->buckets[i];
        if (seen >= rank && seen > 0)
            return slice_bucket_high(i);
    }
    return 0;
}

static void p95_judge(const struct slo_sum *sum, struct telemetry_slo_state *state)
{
    bool warn = p95_above(sum, sum->above_warn);
    bool critical = p95_above(sum, sum->above_critical);

    state->level = critical ? SLO_CRITICAL : warn ? SLO_WARN : SLO_OK;
    state->value = p95_read(sum);
    /* The bucket's highest value may lie across a threshold that the true value does not cross. */
    if (!critical && state->value > state->threshold.critical)
        state->value = state->threshold.critical;
    if (!warn && state->value > state->threshold.warn)
        state->value = state->threshold.warn;
}

static void ratio_judge(const struct slo_sum *sum, struct telemetry_slo_state *state)
{
    uint64_t scaled = sum->total * 1000000;

    state->level = scaled < sum->samples * (uint64_t)state->threshold.critical ? SLO_CRITICAL
                   : scaled < sum->samples * (uint64_t)state->threshold.warn   ? SLO_WARN
                                                                               : SLO_OK;
    state->value = sum->samples > 0 ? (int64_t)(scaled / sum->samples) : 1000000;
}

static void total_judge(const struct slo_sum *sum, struct telemetry_slo_state *state)
{
    state->level = sum->total >= (uint64_t)state->threshold.critical ? SLO_CRITICAL : SLO_OK;
    state->value = (int64_t)sum->total;
}

void slo_sum_judge(const struct slo_sum *sum, enum slo_kind kind, struct telemetry_threshold threshold,
                   struct telemetry_slo_state *ret_state)
{
    struct telemetry_slo_state state = {.threshold = threshold, .samples = sum->samples};

    switch (kind) {
    case SLO_P95:
        p95_judge(sum, &state);
        break;
    case SLO_RATIO:
        ratio_judge(sum, &state);
        break;
    case SLO_TOTAL:
        total_judge(sum, &state);
        break;
    }
    if (kind != SLO_TOTAL && sum->samples < TELEMETRY_SLO_SAMPLES_MIN) {
        state.insufficient = true;
        state.level = SLO_OK;
    }
    *ret_state = state;
}
