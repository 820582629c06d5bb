/* The chaos verbs: what an operator may do to an actor, and the record of what that did.
 *
 * Kill: the actor ends with reason killed. The answer comes when it has ended and its supervisor has dealt
 * with it, and says who died, who holds its name now, and how long that took.
 */
#ifndef COPPICE_HTTP_CHAOS_H
#define COPPICE_HTTP_CHAOS_H

#include "http/connection.h"

#define CHAOS_ANSWER_MS 5000

/* `target` is a registered name, or a pid as /stats/tree shows it (0x...) or in decimal digits. Blocks. */
void chaos_kill(const char *target, struct response *response);

#endif
