/* One actor: what its scheduler says of it, and what its supervisor says. GET /stats/actors/{pid}.
 *
 * The actor itself needn't be responsive: neither question goes to it. Under a dynamic supervisor it is looked for among
 * the newest ACTOR_VIEW_SEARCH children; further down `child` is null.
 */
#ifndef COPPICE_HTTP_ACTOR_VIEW_H
#define COPPICE_HTTP_ACTOR_VIEW_H

#include "http/route.h"
#include "http/living.h"

#define ACTOR_VIEW_ANSWER_MS 1000
#define ACTOR_VIEW_SEARCH    2000u
#define ACTOR_VIEW_NAME_MAX  256u /* bytes of a target, its 0 included */

/* A registered name, a pid as /stats/tree shows it (0x...) or in decimal digits, or a path of the tree (living_find); a name
 * wins over a number or a path that somebody is called by. 0: nobody. */
actor_pid actor_view_find(const struct living_rows *rows, const char *target);
/* The target in the path. A name that holds a '/' can't be there: such an actor is named by its pid. False: refused. */
bool actor_view_target(const struct request *q, struct response *r, char target[ACTOR_VIEW_NAME_MAX]);
/* The answer when nobody of this name could be asked: ERR_NOPROC there is nobody, else nothing was said in time. */
void actor_view_refuse(struct response *r, const char *target, enum error e);
/* What its supervisor says of it; false: it has none, none that answers, or it wasn't found there. From an actor; waits. */
bool actor_view_child(const struct actor_info *actor, struct child_info *ret_child, uint64_t deadline);

void actor_view_serve(const struct request *q, struct response *r);

#endif
