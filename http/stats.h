/* GET /stats: the state of the product as one JSON object. GET /stats/tree: what was declared beside what lives.
 *
 *     version, environment, now, process   which one this is, what the kernel counts
 *     schedulers                           each of them, as runtime_scheduler
 *     runtime, memory                      all of them together, as runtime_stats
 *     queues                               mailboxes by class of actor, those with most messages first (http/census.h)
 *     pressure                             the level of each component: of a class's mailboxes, also at normal
 *     slos                                 each objective: its target beside what is measured
 *     store                                state, bytes, rows (http/store_figures.h)
 *     fronts                               connections, streams, requests of each listener
 *     domains                              registries, bus, deduper
 *
 * From an actor; waits for some of them, STATS_ANSWER_MS each at most; what doesn't answer is null.
 */
#ifndef COPPICE_HTTP_STATS_H
#define COPPICE_HTTP_STATS_H

#include "http/route.h"

#define STATS_ANSWER_MS 500

void stats_serve(const struct request *q, struct response *r);
void stats_serve_tree(const struct request *q, struct response *r);

#endif
