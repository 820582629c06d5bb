/* Metrics of webhooks: those that spec/jobs.md names (section 19) without a prefix, and ours. Part of GET /metrics. */
#ifndef COPPICE_HTTP_WEBHOOK_METRICS_H
#define COPPICE_HTTP_WEBHOOK_METRICS_H

#include "http/exposition.h"

void webhook_metrics_write(const struct exposition *t);

#endif
