/* Routes: one table per surface, one row per operation.
 *
 * A path is literal segments, {param} segments, and a :verb at the very end of the last one. Routes are compiled once at
 * boot into a tree; of a literal segment and a {param} the literal wins. A {param} matches one non-empty segment without
 * ':'. What is matched is the decoded path, and what is authorised is the route that matched: the same object.
 */
#ifndef COPPICE_HTTP_ROUTE_H
#define COPPICE_HTTP_ROUTE_H

#include "http/catalogue.h"
#include "http/limiter.h"
#include "http/request.h"
#include "http/response.h"

struct schema;
struct contract_operation;

enum authentication {
    AUTH_NONE = 0,
    AUTH_KEY,      /* an API key */
    AUTH_TOKEN,    /* a JWT */
    AUTH_OPERATOR, /* the operator's token, unless the listener is a unix socket or says it needs none */
    AUTH_OPTIONAL, /* an API key if one is given (the first key of a client has none to show) */
};

typedef void route_handler(const struct request *q, struct response *r);

struct route {
    enum method method; /* GET takes HEAD as well */
    const char *path;   /* "/v1/clients/{client_id}/keys", "/jobs/{job_id}:cancel" */
    enum surface surface;
    enum authentication auth;
    uint32_t roles;   /* of a token: ROLE_..., 0: any */
    enum limit limit; /* its bucket; LIMIT_NONE */
    enum limit
        anonymous; /* the bucket instead, where credentials may be left out, of who has left them out */
    enum limit everybody; /* one more, of ROUTE: of all who ask for it together; LIMIT_NONE */
    uint32_t body_max;    /* 0: takes no body */
    bool body_optional;
    bool changes;       /* refused when a browser sends it on behalf of another site */
    bool quiet;         /* not in the access log at info */
    bool early;         /* served while the store is being opened */
    bool colons;        /* its {param} may hold ':'; the verb is behind the last one */
    bool undocumented;  /* in no contract: `contract check` leaves it out */
    const char *action; /* what the access log calls it; NULL: nothing (JOB-406) */
    /* Looks at the body between its JSON and its schema; ERROR_NONE, or what it has answered. What it has read it may leave in
     * q->prepared. May be NULL. */
    enum error_code (*precheck)(struct request *q, struct response *r);
    /* The route instead, of the same method, when the credential has a token's form: GET /v1/jobs/{job_id} alone (AMB-02). */
    const struct route *token_twin;
    route_handler *serve;
    const char
        *alias_of; /* the contract's path, when this is another way to it ("/v1/dlq/items" of "/dlq/items") */
};

#define ROUTE_SEGMENTS_MAX 12u
#define ROUTES_MAX         256u

struct routes; /* compiled; immutable */

/* NULL when two rows are the same or a path can't be meant; the sentence names it. Allocates, at boot. */
struct routes *routes_create(const struct route *const *tables, const size_t *counts, size_t tables_count,
                             char *ret_text, size_t text_size);
void routes_destroy(struct routes *routes);

struct route_match {
    const struct route *route;                       /* NULL: none of this path and method */
    const struct contract_operation *operation;      /* NULL: undocumented */
    const struct contract_operation *twin_operation; /* of route->token_twin */
    uint32_t allowed;                                /* methods that the path takes, 0: no such path */
    enum surface surface;                            /* who owns the path, for the shape of a refusal */
    struct span params[REQUEST_PARAMS_MAX];
};
void routes_match(const struct routes *routes, enum method method, struct span path, struct route_match *ret);
/* Whose shape the answer to an unknown path has. */
enum surface routes_surface(const struct routes *routes);
/* Who owns a target that can't be routed, as far as its segments say so: for the shape of its refusal, and for nothing else. What
 * is escaped is read where it can be. */
enum surface routes_owner(const struct routes *routes, struct span target);
/* In the order of the tables: for contract check, docs and completion. */
size_t routes_count(const struct routes *routes);
const struct route *routes_at(const struct routes *routes, size_t position);
/* Called once at boot for every route that has one. */
void routes_bind(struct routes *routes, const struct route *route,
                 const struct contract_operation *operation);

#endif
