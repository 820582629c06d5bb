/* Schedules over HTTP: a client's jobs that are submitted again and again (store/job_schedule.h).
 *
 *     POST   /v1/schedules                                       {cron, work_kind, ...}
 *     GET    /v1/schedules                                       the client's, oldest first
 *     GET    /v1/schedules/{schedule_id}                         with its next times, and what became of the last ones
 *     DELETE /v1/schedules/{schedule_id}
 *     POST   /v1/schedules/{schedule_id}:run, :pause, :resume
 *
 * Handlers run in the connection's actor and wait for the store.
 */
#ifndef COPPICE_HTTP_SCHEDULES_H
#define COPPICE_HTTP_SCHEDULES_H

#include "http/route.h"

#define SCHEDULES_BODY_MAX   16384u
#define SCHEDULES_NEXT_SHOWN 5u
#define SCHEDULES_GRACE_US   (UINT64_C(60) * 1000000) /* when nothing is said */

extern const struct route schedule_routes[];
extern const size_t schedule_routes_count;

#endif
