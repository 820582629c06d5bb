/* Events: what telemetry keeps, as a list or as it happens.
 *
 *     GET /stats/events?since=S&limit=N&event=E
 *
 * A client that accepts text/event-stream gets a stream (server-sent events): first what is kept behind `since` or
 * Last-Event-ID (neither: only what happens from now on), then every event as it comes, `id:` its sequence, so that a
 * reconnecting browser goes on where it was; ":" with the id so far each EVENTS_KEEP_ALIVE_MS of silence. Anybody else gets
 * {"events": [...], "missed": N, "next": S}, oldest first. A sequence has its process in it: one of another process or from
 * the future, and a Last-Event-ID that is none, start at the oldest event kept. `event` is a name, or a family as "actor.*".
 *
 * The order is that in which events were kept, and a place in it is exact: who goes on behind one sees what comes then
 * once, whichever scheduler was late with it. Times are those of the schedulers' turns, so neighbours may differ by some
 * milliseconds the other way round.
 *
 * Telemetry keeps a bounded number of events and waits for nobody: a client that is slower misses some, and is told how many
 * (of all names: `missed`, in a stream an event `missed` with {"missed":N}); one that takes nothing for the front's write_ns
 * is cut off. At most streams_max of the front's limits at a time, then 503. An event is seen at most EVENTS_LOOK_MS after
 * it happened.
 */
#ifndef COPPICE_HTTP_EVENTS_H
#define COPPICE_HTTP_EVENTS_H

#include "http/route.h"

#define EVENTS_DEFAULT       1000u
#define EVENTS_MAX           100000u
#define EVENTS_SINCE_SIZE    80 /* as the contract says; sequences of other versions were longer than ours */
#define EVENTS_KEEP_ALIVE_MS 15000
#define EVENTS_LOOK_MS       200

void events_serve(const struct request *q, struct response *r);

#endif
