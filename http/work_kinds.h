/* The catalogue of work kinds, shown: GET /v1/work-kinds (docs/contract/work.openapi.yaml), and what the command line prints
 * of it. The rows are those of store/work_kind.h. */
#ifndef COPPICE_HTTP_WORK_KINDS_H
#define COPPICE_HTTP_WORK_KINDS_H

#include "http/route.h"

/* Boot and reload; any thread. max_runtime_ms: limits.max_runtime_ms, which the duration of RUNS_OVER_TIMEOUT follows from;
 * 120000 when it wasn't configured. */
void work_kinds_configure(uint32_t max_runtime_ms);

/* An array with an object per kind. */
void work_kinds_write_json(struct json *json);
/* Tab-separated, with a line of headings: byte for byte the specification's jobs.work_kinds.tsv (JOB-065). */
void work_kinds_write_table(struct json_sink *sink);

extern const struct route work_kind_routes[];
extern const size_t work_kind_routes_count;

#endif
