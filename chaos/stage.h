/* Stage: clients of their own for the refusals (chaos/refusal.h) and the plays (chaos/play.h), apart from the traffic: what
 * these have in the end is exactly what was accepted.
 */
#ifndef COPPICE_CHAOS_STAGE_H
#define COPPICE_CHAOS_STAGE_H

#include "chaos/caller.h"
#include "store/uuid.h"

struct stage {
    struct caller client, other;
    char job[UUID_TEXT_SIZE]; /* of the client, far in the future */
    char revoked[200];        /* the field's value with a key that was revoked */
};

/* Everything once; of a strand. */
void stage_round(uint64_t seed);

#endif
