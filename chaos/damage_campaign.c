#include "chaos/damage_campaign.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

enum { SAID_MAX = 10 }; /* violations in words */

struct campaign *campaign;

bool campaign_large(void)
{
    return campaign->current % 2 == 1;
}

__attribute__((format(printf, 1, 2))) void campaign_violation(const char *format, ...)
{
    char text[512];
    va_list args;
    bool first = !campaign->wrong; /* of this image: the others follow from it */
    campaign->wrong = true;
    campaign->caught += first && campaign->control;
    campaign->violations += first && !campaign->control;
    if (!first || campaign->control || campaign->violations > SAID_MAX)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    fprintf(stderr, "damage: %s image: %s (again: --seed %" PRIu64 " --from %" PRIu64 " --images 1)\n",
            image_kind_name(campaign->kind), text, campaign->seed, campaign->current);
}
