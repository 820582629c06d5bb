/* The chaos verbs: what an operator may do to an actor, what that would do, and the record of what it did.
 *
 *     POST /chaos/actors/{target}:kill      it ends with reason killed
 *     POST /chaos/actors/{target}:crash     it traps: a real SIGSEGV on its own stack, contained as any other; or, as `how` says,
 *                                           it aborts, divides by zero, loops, recurses or takes memory without end
 *     POST /chaos/actors/{target}:suspend   it handles nothing until resumed; its mailbox goes on filling.
 *                                           409 for those whom a stop, or the request to resume them, needs
 *     POST /chaos/actors/{target}:resume
 *     POST /chaos/actors/{target}:flood     it gets so many `messages` of a type that nobody knows, without a pause
 *     {"reason": "game day 12", "dry_run": false}
 *
 * A dry run changes nothing and answers the predicted blast radius: who would end, by the restart strategies and budgets
 * from the target's supervisor upwards. The real thing needs a reason, and answers the containment record: the same
 * prediction, who really ended, who stands in their places now, how many were untouched, how long that took, and what it
 * cost of the restart budget. It is answered when everybody who is to come back has, or after CHAOS_WAIT_MS. Temporary
 * actors that came to their own end meanwhile, connections whose clients left above all, didn't die of it: they are
 * counted apart (`ended_meanwhile`). One that ended badly is among the dead, unexpected.
 *
 * Where nobody would be left to answer, there is no afterwards to tell of: an ending that takes this connection along
 * ("asked"), or the process ("ends_process"), is answered 202 with the prediction, complete false and nothing counted. It
 * happens when the answer is sent and the connection closed, after CHAOS_WAIT_MS at the latest.
 *
 * Each leaves an audit entry with the record as its details: afterwards, and in these cases, as with a suspension of the
 * store's writer, before.
 *
 * Limits: of the tree CHAOS_SEEN_MAX actors are compared (`complete` says whether those were all), CHAOS_SHOWN_MAX of
 * a list are written out. Links between actors are counted and not predicted: who is at their other end, and whether it
 * traps exits, nobody but the two know.
 */
#ifndef COPPICE_HTTP_CHAOS_VERBS_H
#define COPPICE_HTTP_CHAOS_VERBS_H

#include "http/route.h"

#define CHAOS_WAIT_MS    5000
#define CHAOS_SEEN_MAX   16384u /* 2 MiB of the 4 that a connection may have */
#define CHAOS_SHOWN_MAX  30u
#define CHAOS_FLOOD_MAX  100000u
#define CHAOS_FLOOD_TYPE 0x00effff1u /* of its messages: at the end of the numbers, where no noun has any */

void chaos_serve_kill(const struct request *q, struct response *r);
void chaos_serve_crash(const struct request *q, struct response *r);
void chaos_serve_suspend(const struct request *q, struct response *r);
void chaos_serve_resume(const struct request *q, struct response *r);
void chaos_serve_flood(const struct request *q, struct response *r);

#endif
