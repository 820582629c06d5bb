/* Exposition: Prometheus' text format 0.0.4, or OpenMetrics, written family by family into a sink (http/metrics.h).
 *
 * Labels are our own words (routes, names of rows, tables and kinds), which hold nothing that needs an escape.
 */
#ifndef COPPICE_HTTP_EXPOSITION_H
#define COPPICE_HTTP_EXPOSITION_H

#include "runtime/histogram.h"
#include "runtime/json.h"

struct exposition {
    struct json_sink *sink; /* borrowed */
    bool open;              /* OpenMetrics */
};

/* `name` of a counter is without its _total, of an info without _info. */
void exposition_family(const struct exposition *t, const char *name, const char *type, const char *help);
/* label NULL: none. */
void exposition_series(const struct exposition *t, const char *name, const char *label, const char *value);
void exposition_sample(const struct exposition *t, const char *name, const char *label, const char *value,
                       uint64_t number);
void exposition_decimal(const struct exposition *t, const char *name, const char *label, const char *value,
                        int64_t number, unsigned scale);
void exposition_gauge(const struct exposition *t, const char *name, const char *help, uint64_t number);
/* A counter of one series; `name` without its _total. */
void exposition_counter(const struct exposition *t, const char *name, const char *help, uint64_t number);
/* A family of buckets (bounds as of http_request_duration_seconds) from values in microseconds, named NAME, and a summary with
 * the 0.95 and 0.99 quantiles, named as NAME with _quantile_seconds instead of _seconds. */
void exposition_histogram(const struct exposition *t, const char *name, const char *help,
                          const struct histogram *h);

#endif
