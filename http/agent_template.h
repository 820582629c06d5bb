/* Templates of agents: how long a token of an agent of this template may live, by the tier of risk that it works at. */
#ifndef COPPICE_HTTP_AGENT_TEMPLATE_H
#define COPPICE_HTTP_AGENT_TEMPLATE_H

#include "store/span.h"

#define AGENT_TOKEN_S       14400u /* of any agent's token (CTL-080) */
#define AGENT_TEMPLATE_MAX  64u    /* bytes of its name */
#define AGENT_TEMPLATES_MAX 256u
#define AGENT_TIERS         3u /* A, B, C */

/* agent_templates.ID.max_token_seconds.TIER (CTL-081) */
struct agent_template {
    char id[AGENT_TEMPLATE_MAX + 1];
    uint32_t seconds[AGENT_TIERS]; /* 0: AGENT_TOKEN_S */
};

/* Of an agent of this template and tier ("A", "B", "C"; anything else: the shortest of the three). A template that isn't in
 * the list has no limit of its own. */
uint32_t agent_template_seconds(const struct agent_template *templates, uint32_t count, struct span id,
                                struct span tier);

#endif
