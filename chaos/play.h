/* Play: what takes several requests to see: the life of keys, races, storms, webhooks that come and go, limits (chaos/flood.h).
 *
 * Cases of the verdict, as the refusals are.
 */
#ifndef COPPICE_CHAOS_PLAY_H
#define COPPICE_CHAOS_PLAY_H

#include "chaos/errand.h"

struct stage;

/* All of them once; of a strand. */
void play_all(struct stage *stage, struct dice *dice);

/* A job of the stage's client, not yet submitted; allocated. */
struct errand *play_errand(struct stage *stage, int kind, struct dice *dice);
void play_schedule(struct errand *e, uint64_t ahead_ms);

#endif
