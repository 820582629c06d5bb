/* Identities: who asks, as authentication found out. Spans borrow from the token or from the verified-token cache, for
 * the request. */
#ifndef COPPICE_HTTP_IDENTITY_H
#define COPPICE_HTTP_IDENTITY_H

#include "store/span.h"
#include "store/uuid.h"

/* X(ID, "name"): roles of the control surface (spec/control.md AMB-22). */
#define ROLES(X)                        \
    X(OWNER, "owner")                   \
    X(INFRA_APPROVER, "infra-approver") \
    X(APPROVER, "approver")             \
    X(OPERATOR, "operator")             \
    X(SUBMITTER, "submitter")           \
    X(VIEWER, "viewer")                 \
    X(SERVICE, "service")               \
    X(AGENT, "agent")

enum role_position {
#define X(id, name) ROLE_POSITION_##id,
    ROLES(X)
#undef X
        ROLE_COUNT
};
enum role {
#define X(id, name) ROLE_##id = 1 << ROLE_POSITION_##id,
    ROLES(X)
#undef X
        ROLE_ANY = (1 << ROLE_COUNT) - 1
};

enum identity_kind {
    IDENTITY_NONE = 0,
    IDENTITY_CLIENT,   /* an API key of a client of the jobs surface */
    IDENTITY_TOKEN,    /* a JWT */
    IDENTITY_OPERATOR, /* the operator's token, or the operator's listener when it asks for none */
};

#define IDENTITY_SUBJECT_MAX  128u
#define IDENTITY_PROJECTS_MAX 32u

struct identity {
    enum identity_kind kind;
    enum role role;      /* of a token; 0: none of ours */
    struct span subject; /* sub of a token; a client's id as text; "operator" */
    struct span session, jti, issuer;
    struct uuid client, key; /* of an API key */
    bool all_projects;       /* "*" */
    uint16_t projects_count;
    struct span projects[IDENTITY_PROJECTS_MAX];
    uint64_t expires_s; /* since 1970; 0: never */
};

const char *role_name(enum role role); /* "" for none */
enum role role_of(struct span name);   /* 0: unknown */
bool identity_may(const struct identity *who, struct span project);

#endif
