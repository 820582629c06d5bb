#include "http/identity.h"

#include "runtime/assert.h"

const char *role_name(enum role role)
{
    static const char *const names[ROLE_COUNT] = {
#define X(id, name) [ROLE_POSITION_##id] = name,
        ROLES(X)
#undef X
    };
    for (unsigned i = 0; i < ROLE_COUNT; i++)
        if (role == (enum role)(1u << i))
            return names[i];
    return "";
}

enum role role_of(struct span name)
{
    for (unsigned i = 0; i < ROLE_COUNT; i++) {
        enum role role = (enum role)(1u << i);
        if (span_equal(name, span_text(role_name(role))))
            return role;
    }
    return (enum role)0;
}

bool identity_may(const struct identity *who, struct span project)
{
    if (project.size == 0)
        return false;
    if (who->kind == IDENTITY_OPERATOR)
        return true;
    if (who->kind != IDENTITY_TOKEN)
        return false;
    if (who->all_projects)
        return true;
    ASSERT(who->projects_count <= IDENTITY_PROJECTS_MAX);
    for (uint16_t i = 0; i < who->projects_count; i++)
        if (span_equal(who->projects[i], project))
            return true;
    return false;
}
