/* Metrics of jobs, under the names that spec/jobs.md has for them (section 19), without a prefix. Part of GET /metrics. */
#ifndef COPPICE_HTTP_JOB_METRICS_H
#define COPPICE_HTTP_JOB_METRICS_H

#include "http/exposition.h"

void job_metrics_write(const struct exposition *t);

#endif
