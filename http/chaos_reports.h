/* Chaos reports: what came of scenarios that were run against this server, kept beside its store.
 *
 *     POST /chaos/reports        a report of `coppice chaos run`: the schema ChaosReport of the ops contract
 *     GET  /stats/chaos          the newest first, without what each of them found in detail
 *     GET  /stats/chaos/{report} one of them, whole
 *
 * A report is a file of the directory chaos in the data directory, of a size that one request's body has. There are
 * CHAOS_REPORTS_MAX places; report N takes place N modulo that, so that the oldest goes. A file gets its name when it is
 * whole, and isn't synced: a power cut may cost the newest reports, and nothing else. They are no part of a backup.
 *
 * Called by the connection's actor on the operators' listener. Reading and writing these files is done at once and takes as
 * long as the file system takes for CHAOS_REPORTS_MAX heads, or for one body, in its cache; numbers are given away by an
 * atomic counter, so connections on several schedulers don't meet in one file.
 */
#ifndef COPPICE_HTTP_CHAOS_REPORTS_H
#define COPPICE_HTTP_CHAOS_REPORTS_H

#include "http/route.h"

#define CHAOS_REPORTS_MAX      64u
#define CHAOS_REPORTS_BODY_MAX 32768u
#define CHAOS_REPORTS_DIR      "chaos"

void chaos_reports_serve_add(const struct request *q, struct response *r);
void chaos_reports_serve_list(const struct request *q, struct response *r);
void chaos_reports_serve_one(const struct request *q, struct response *r);

#endif
