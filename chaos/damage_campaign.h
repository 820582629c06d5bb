/* The campaign of damage, as one process has it: which image it is at, what came of those before, and what was wrong.
 *
 * In memory that a parent shares with the child that looks: when that dies, the parent knows where it was.
 */
#ifndef COPPICE_CHAOS_DAMAGE_CAMPAIGN_H
#define COPPICE_CHAOS_DAMAGE_CAMPAIGN_H

#include "chaos/damage_image.h"

/* X(ID, name, with whole files, with large ones): what a long campaign comes to */
#define OUTCOMES(X)             \
    X(REFUSED, "refused", 1, 1) \
    X(SERVED, "served", 1, 1)   \
    X(TOLD, "told", 0, 1)       \
    X(HELD, "held", 0, 1)       \
    X(OLDER, "older", 1, 1)     \
    X(DIED, "died", 0, 0)

enum outcome {
#define X(id, name, whole, large) id,
    OUTCOMES(X)
#undef X
        OUTCOME_COUNT
};

struct campaign {
    uint64_t seed, end, current; /* images */
    enum kind kind;              /* of the current one */
    bool wrong, older;           /* in the current one */
    bool control;                /* nobody looks before */
    uint64_t counts[2][KIND_COUNT][OUTCOME_COUNT];
    uint64_t violations; /* images with one */
    uint64_t caught;     /* images of the control with one */
};
extern struct campaign *campaign; /* this process's; in the end the sum */

/* Whether the current image is opened as a large file is. */
bool campaign_large(void);
/* Something is wrong with the current image: counted once for each, and the first SAID_MAX are told of. */
__attribute__((format(printf, 1, 2))) void campaign_violation(const char *format, ...);

#endif
