#include "http/exposition.h"

#include <stdio.h>
#include <string.h>

void exposition_family(const struct exposition *t, const char *name, const char *type, const char *help)
{
    bool counter = strcmp(type, "counter") == 0, info = strcmp(type, "info") == 0;
    const char *suffix = t->open ? "" : counter ? "_total" : info ? "_info" : "";
    const char *shown = t->open ? type : info ? "gauge" : type;
    if (t->open && strcmp(type, "untyped") == 0)
        shown = "unknown";
    json_sink_text(t->sink, "# HELP ");
    json_sink_text(t->sink, name);
    json_sink_text(t->sink, suffix);
    json_sink_text(t->sink, " ");
    json_sink_text(t->sink, help);
    json_sink_text(t->sink, "\n# TYPE ");
    json_sink_text(t->sink, name);
    json_sink_text(t->sink, suffix);
    json_sink_text(t->sink, " ");
    json_sink_text(t->sink, shown);
    json_sink_text(t->sink, "\n");
}

void exposition_series(const struct exposition *t, const char *name, const char *label, const char *value)
{
    json_sink_text(t->sink, name);
    if (label) {
        json_sink_text(t->sink, "{");
        json_sink_text(t->sink, label);
        json_sink_text(t->sink, "=\"");
        json_sink_text(t->sink, value);
        json_sink_text(t->sink, "\"}");
    }
    json_sink_text(t->sink, " ");
}

void exposition_sample(const struct exposition *t, const char *name, const char *label, const char *value,
                       uint64_t number)
{
    exposition_series(t, name, label, value);
    json_sink_uint(t->sink, number);
    json_sink_text(t->sink, "\n");
}

void exposition_decimal(const struct exposition *t, const char *name, const char *label, const char *value,
                        int64_t number, unsigned scale)
{
    exposition_series(t, name, label, value);
    json_sink_decimal(t->sink, number, scale);
    json_sink_text(t->sink, "\n");
}

void exposition_gauge(const struct exposition *t, const char *name, const char *help, uint64_t number)
{
    exposition_family(t, name, "gauge", help);
    exposition_sample(t, name, NULL, NULL, number);
}

void exposition_counter(const struct exposition *t, const char *name, const char *help, uint64_t number)
{
    char total[128];
    snprintf(total, sizeof(total), "%s_total", name);
    exposition_family(t, name, "counter", help);
    exposition_sample(t, total, NULL, NULL, number);
}

/* In microseconds: those of the requests' durations, and some for what takes minutes. */
static const uint64_t bounds_us[] = {
    1000,    5000,    10000,   25000,    50000,    100000,   250000,   500000,    1000000,
    2500000, 5000000, 7500000, 10000000, 20000000, 30000000, 60000000, 120000000,
};
enum { BOUNDS = sizeof(bounds_us) / sizeof(*bounds_us) };

static void write_quantiles(const struct exposition *t, const char *name, const struct histogram *h)
{
    static const struct {
        const char *label;
        uint32_t parts;
    } quantiles[] = {{"0.95", 9500}, {"0.99", 9900}};
    char of[128];
    snprintf(of, sizeof(of), "%.*s_quantile_seconds", (int)(strlen(name) - strlen("_seconds")), name);
    exposition_family(t, of, "summary", "Of the values since the process began.");
    for (size_t i = 0; i < sizeof(quantiles) / sizeof(*quantiles); i++)
        exposition_decimal(t, of, "quantile", quantiles[i].label,
                           (int64_t)histogram_percentile(h, quantiles[i].parts), 6);
}

void exposition_histogram(const struct exposition *t, const char *name, const char *help,
                          const struct histogram *h)
{
    char series[128], bound[32];
    uint64_t count = histogram_count(h);
    exposition_family(t, name, "histogram", help);
    snprintf(series, sizeof(series), "%s_bucket", name);
    for (size_t i = 0; i < BOUNDS; i++) {
        struct json_sink sink;
        uint64_t below = histogram_count_to(h, bounds_us[i]);
        json_sink_init(&sink, bound, sizeof(bound) - 1, NULL, NULL);
        json_sink_decimal(&sink, (int64_t)bounds_us[i], 6);
        bound[sink.length] = 0;
        exposition_sample(t, series, "le", bound, below < count ? below : count);
    }
    exposition_sample(t, series, "le", "+Inf", count);
    snprintf(series, sizeof(series), "%s_sum", name);
    exposition_decimal(t, series, NULL, NULL, (int64_t)histogram_sum(h), 6);
    snprintf(series, sizeof(series), "%s_count", name);
    exposition_sample(t, series, NULL, NULL, count);
    write_quantiles(t, name, h);
}
