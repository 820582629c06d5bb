#include "chaos/tally.h"

#include "runtime/histogram.h"

static struct histogram times[TIME_COUNT]; /* in microseconds */
static uint64_t counts[COUNT_COUNT];

static const char *const time_names[] = {
#define X(id, name) [TIME_##id] = name,
    TIMES(X)
#undef X
};
static const char *const count_names[] = {
#define X(id, name) [COUNT_##id] = name,
    COUNTS(X)
#undef X
};

const char *time_name(enum time time)
{
    return time_names[time];
}

void tally_time(enum time time, uint64_t ns)
{
    histogram_record(&times[time], ns / 1000);
}

void tally(enum count count)
{
    counts[count]++;
}

uint64_t tally_of(enum count count)
{
    return counts[count];
}

uint64_t tally_times(enum time time)
{
    return histogram_count(&times[time]);
}

uint64_t tally_requests(void)
{
    uint64_t all = 0;
    for (int i = 0; i < OPERATION_COUNT; i++)
        all += histogram_count(&times[i]);
    return all;
}

/* ---- printed ---- */

static double ms_at(enum time time, uint32_t parts)
{
    return (double)histogram_percentile(&times[time], parts) / 1000;
}

void tally_print(FILE *to)
{
    fprintf(to, "\n%-28s %9s %10s %10s %10s\n", "ms", "count", "p50", "p99", "max");
    for (int i = 0; i < TIME_COUNT; i++)
        if (histogram_count(&times[i]))
            fprintf(to, "%-28s %9llu %10.3f %10.3f %10.3f\n", time_names[i],
                    (unsigned long long)histogram_count(&times[i]), ms_at((enum time)i, 5000),
                    ms_at((enum time)i, 9900), (double)histogram_max(&times[i]) / 1000);
    fprintf(to, "\n");
    for (int i = 0; i < COUNT_COUNT; i++)
        if (counts[i])
            fprintf(to, "%9llu  %s\n", (unsigned long long)counts[i], count_names[i]);
}

void tally_json(struct json *json)
{
    json_key(json, "times");
    json_array_begin(json);
    for (int i = 0; i < TIME_COUNT; i++) {
        if (!histogram_count(&times[i]))
            continue;
        json_object_begin(json);
        JSON_MEMBER(json, "name", string, time_names[i]);
        JSON_MEMBER(json, "count", uint, histogram_count(&times[i]));
        JSON_MEMBER(json, "p50_ms", double, ms_at((enum time)i, 5000));
        JSON_MEMBER(json, "p99_ms", double, ms_at((enum time)i, 9900));
        JSON_MEMBER(json, "max_ms", double, (double)histogram_max(&times[i]) / 1000);
        json_object_end(json);
    }
    json_array_end(json);
    json_key(json, "counts");
    json_object_begin(json);
    for (int i = 0; i < COUNT_COUNT; i++)
        JSON_MEMBER(json, count_names[i], uint, counts[i]);
    json_object_end(json);
}
