#include "http/agent_template.h"

uint32_t agent_template_seconds(const struct agent_template *templates, uint32_t count, struct span id,
                                struct span tier)
{
    uint32_t at = 0, shortest = AGENT_TOKEN_S;
    while (at < count && !span_equal(span_text(templates[at].id), id))
        at++;
    for (uint32_t i = 0; at < count && i < AGENT_TIERS; i++) {
        uint32_t seconds = templates[at].seconds[i] ? templates[at].seconds[i] : AGENT_TOKEN_S;
        if (span_equal(tier, span_of(&"ABC"[i], 1)))
            return seconds;
        shortest = seconds < shortest ? seconds : shortest;
    }
    return shortest;
}
