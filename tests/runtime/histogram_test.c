#include "acutest.h"

#include <pthread.h>
#include <stdlib.h>

#include "runtime/histogram.h"

static struct histogram h, other, all;

static void clear(void)
{
    histogram_clear(&h);
    histogram_clear(&other);
    histogram_clear(&all);
}

/* A fixed generator (splitmix64): the same values in every run. */
static uint64_t state;

static uint64_t next_value(void)
{
    uint64_t z = (state += 0x9e3779b97f4a7c15u);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static void test_buckets_cover_every_value_once(void)
{
    TEST_CHECK(histogram_bucket(0) == 0);
    TEST_CHECK(histogram_bucket(UINT64_MAX) == HISTOGRAM_BUCKETS - 1);
    TEST_CHECK(histogram_bucket_high(HISTOGRAM_BUCKETS - 1) == UINT64_MAX);
    for (uint32_t i = 0; i + 1 < HISTOGRAM_BUCKETS; i++) {
        uint64_t high = histogram_bucket_high(i);

        TEST_CHECK(histogram_bucket(high) == i);
        TEST_CHECK(histogram_bucket(high + 1) == i + 1);
        TEST_MSG("bucket %u", i);
    }
}

static void test_a_bucket_is_at_most_one_64th_wide(void)
{
    for (uint32_t i = 1; i < HISTOGRAM_BUCKETS; i++) {
        uint64_t low = histogram_bucket_high(i - 1) + 1;

        TEST_CHECK((histogram_bucket_high(i) - low) <= low / 64);
        TEST_MSG("bucket %u", i);
    }
}

static void test_empty(void)
{
    clear();
    TEST_CHECK(histogram_count(&h) == 0);
    TEST_CHECK(histogram_percentile(&h, 9500) == 0);
    TEST_CHECK(histogram_max(&h) == 0);
    TEST_CHECK(histogram_count_to(&h, UINT64_MAX) == 0);
}

static void test_small_values_are_exact(void)
{
    clear();
    for (uint64_t v = 1; v <= 100; v++)
        histogram_record(&h, v);
    TEST_CHECK(histogram_count(&h) == 100);
    TEST_CHECK(histogram_sum(&h) == 5050);
    TEST_CHECK(histogram_percentile(&h, 0) == 1);
    TEST_CHECK(histogram_percentile(&h, 5000) == 50);
    TEST_CHECK(histogram_percentile(&h, 9500) == 95);
    TEST_CHECK(histogram_percentile(&h, 9501) == 96);
    TEST_CHECK(histogram_percentile(&h, 9999) == 100);
    TEST_CHECK(histogram_percentile(&h, 10000) == 100);
    TEST_CHECK(histogram_percentile(&h, UINT32_MAX) == 100);
    TEST_CHECK(histogram_count_to(&h, 0) == 0);
    TEST_CHECK(histogram_count_to(&h, 75) == 75);
}

/* Against the sorted values: never below the true percentile, at most 1/64 above it. */
static void test_percentiles_over_all_magnitudes(void)
{
    enum { COUNT = 10000 };
    static uint64_t values[COUNT];
    static const uint32_t parts[] = {1, 100, 2500, 5000, 9000, 9500, 9900, 9990, 10000};

    clear();
    state = 1;
    for (size_t i = 0; i < COUNT; i++) {
        values[i] = next_value() >> (next_value() & 63);
        histogram_record(&h, values[i]);
    }
    qsort(values, COUNT, sizeof(*values), compare);
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
        uint64_t truth = values[((uint64_t)COUNT * parts[i] + 9999) / 10000 - 1];
        uint64_t got = histogram_percentile(&h, parts[i]);

        TEST_CHECK(got >= truth && got - truth <= truth / 64);
        TEST_MSG("parts %u: %lu, true %lu", parts[i], got, truth);
    }
    TEST_CHECK(histogram_max(&h) == values[COUNT - 1]);
}

static void test_never_reports_above_the_maximum(void)
{
    clear();
    histogram_record(&h, 1000001);
    TEST_CHECK(histogram_percentile(&h, 9500) == 1000001);
}

static void test_limits(void)
{
    clear();
    histogram_record(&h, UINT64_MAX);
    histogram_record(&h, (UINT64_C(1) << 63) - 1);
    histogram_record(&h, 0);
    TEST_CHECK(histogram_count(&h) == 3);
    TEST_CHECK(histogram_max(&h) == UINT64_MAX);
    TEST_CHECK(histogram_sum(&h) == UINT64_MAX);
    TEST_CHECK(histogram_percentile(&h, 10000) == UINT64_MAX);
    TEST_CHECK(histogram_percentile(&h, 5000) == (UINT64_C(1) << 63) - 1);
}

static void test_merged_is_the_same_as_recorded_in_one(void)
{
    clear();
    state = 2;
    for (int i = 0; i < 1000; i++) {
        uint64_t value = next_value() >> (next_value() & 63) >> 12; /* the sum of 1,000 fits */

        histogram_record(i % 3 ? &h : &other, value);
        histogram_record(&all, value);
    }
    histogram_merge(&h, &other);
    for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++)
        TEST_CHECK(atomic_load(&h.counts[i]) == atomic_load(&all.counts[i]));
    TEST_CHECK(histogram_sum(&h) == histogram_sum(&all));
    TEST_CHECK(histogram_max(&h) == histogram_max(&all));
}

static void *record_many(void *unused)
{
    (void)unused;
    for (uint64_t i = 0; i < 100000; i++)
        histogram_record(&h, i);
    return NULL;
}

/* A reader beside the recorder: counts only rise, and nothing is lost at the end. Data races show under TSan.
 */
static void test_read_while_another_thread_records(void)
{
    pthread_t thread;
    uint64_t seen = 0;

    clear();
    TEST_ASSERT(pthread_create(&thread, NULL, record_many, NULL) == 0);
    while (seen < 100000) {
        uint64_t now = histogram_count(&h);

        TEST_ASSERT(now >= seen);
        TEST_ASSERT(histogram_percentile(&h, 9500) < 100000);
        seen = now;
    }
    pthread_join(thread, NULL);
    TEST_CHECK(histogram_count(&h) == 100000);
}

TEST_LIST
= {
    {"buckets_cover_every_value_once", test_buckets_cover_every_value_once},
    {"a_bucket_is_at_most_one_64th_wide", test_a_bucket_is_at_most_one_64th_wide},
    {"empty", test_empty},
    {"small_values_are_exact", test_small_values_are_exact},
    {"percentiles_over_all_magnitudes", test_percentiles_over_all_magnitudes},
    {"never_reports_above_the_maximum", test_never_reports_above_the_maximum},
    {"limits", test_limits},
    {"merged_is_the_same_as_recorded_in_one", test_merged_is_the_same_as_recorded_in_one},
    {"read_while_another_thread_records", test_read_while_another_thread_records},
    {NULL, NULL},
};
