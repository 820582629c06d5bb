#define _GNU_SOURCE /* memmem */
#include "http/front.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "http/answer_check.h"
#include "http/api_key_auth.h"
#include "http/body.h"
#include "http/client_quota.h"
#include "http/media.h"
#include "http/metrics.h"
#include "http/nearest.h"
#include "http/operator_token.h"
#include "http/url.h"
#include "runtime/telemetry.h"

enum { FRONTS_MAX = 8, NODES_IN_ARENA = 3500 /* 56,000 bytes; a document of that many values or fewer */ };

/* ---- the process's fronts ---- */

static struct front *fronts[FRONTS_MAX];

void front_install(struct front *front)
{
    int i = 0;
    while (i < FRONTS_MAX && fronts[i] && strcmp(fronts[i]->name, front->name) != 0)
        i++;
    ASSERT(i < FRONTS_MAX);
    fronts[i] = front;
}

void front_remove(const struct front *front)
{
    for (int i = 0; i < FRONTS_MAX; i++)
        if (fronts[i] == front)
            fronts[i] = NULL;
}

void front_allow_scripts(struct front *front, const char *sources)
{
    char list[FRONT_SCRIPT_SRC_MAX + 1];
    ASSERT(strlen(sources) <= FRONT_SCRIPT_SRC_MAX);
    memcpy(list, sources, strlen(sources) + 1);
    for (char *at = list; *at; at++)
        *at = *at == ',' ? ' ' : *at; /* in a header it would begin another policy */
    int length = snprintf(front->csp, sizeof(front->csp),
                          "Content-Security-Policy: default-src 'self'; script-src %s; object-src 'none'; "
                          "base-uri 'none'; form-action 'self'; frame-ancestors %s\r\n",
                          list, front->embeddable ? "'self'" : "'none'");
    ASSERT(length > 0 && (size_t)length < sizeof(front->csp));
    front->csp_length = (uint32_t)length;
}

struct front *front_find(const char *name)
{
    for (int i = 0; i < FRONTS_MAX; i++)
        if (fronts[i] && strcmp(fronts[i]->name, name) == 0)
            return fronts[i];
    return NULL;
}

/* ---- words ---- */

static bool span_is(struct span s, const char *text)
{
    size_t length = strlen(text);
    return s.size == length && memcmp(s.bytes, text, length) == 0;
}

static bool span_is_any_case(struct span s, const char *text)
{
    size_t length = strlen(text);
    return s.size == length && strncasecmp(s.bytes, text, length) == 0;
}

/* Host, without its port, is one of this machine's loopback names. */
static bool host_is_loopback(struct span host)
{
    const char *at = host.bytes;
    if (host.size >= 5 && memcmp(at, "[::1]", 5) == 0)
        return host.size == 5 || at[5] == ':';
    const char *colon = memchr(at, ':', host.size);
    size_t length = colon ? (size_t)(colon - at) : host.size;
    if (length == 9 && strncasecmp(at, "localhost", 9) == 0)
        return true;
    for (size_t i = 0; i < length; i++)
        if ((at[i] < '0' || at[i] > '9') && at[i] != '.')
            return false;
    return length > 4 && memcmp(at, "127.", 4) == 0;
}

/* A browser says where the page is from; our own pages come from the Host they were asked of. */
static bool from_elsewhere(const struct front *front, const struct request *q)
{
    struct span origin = q->known[HEADER_ORIGIN], site = q->known[HEADER_FETCH_SITE],
                host = q->known[HEADER_HOST];
    if (origin.bytes && front->cors_origin && span_is(origin, front->cors_origin))
        return false;
    if (site.bytes && !span_is(site, "same-origin") && !span_is(site, "none"))
        return true;
    if (!origin.bytes)
        return false;
    const char *text = origin.bytes, *slashes = memmem(text, origin.size, "://", 3);
    return !slashes || !span_equal(host, span_of(slashes + 3, origin.size - (size_t)(slashes + 3 - text)));
}

/* The credential of "Authorization: Bearer ..."; without bytes when there is none. */
static struct span bearer(const struct request *q)
{
    struct span value = q->known[HEADER_AUTHORIZATION];
    const char *at = value.bytes;
    if (value.size < 8 || strncasecmp(at, "bearer ", 7) != 0)
        return span_of(NULL, 0);
    uint32_t skip = 7;
    while (skip < value.size && at[skip] == ' ')
        skip++;
    return span_of(at + skip, value.size - skip);
}

/* Three segments between dots: how the one shared path tells a JWT from an API key (AMB-02). */
static bool has_token_form(struct span credential)
{
    uint32_t dots = 0;
    for (uint32_t i = 0; i < credential.size; i++)
        dots += ((const char *)credential.bytes)[i] == '.';
    return dots == 2;
}

/* ---- the plan: what the head alone says ---- */

static const char cross_site_text[] = "a page from elsewhere may not do this",
                  role_text[] = "this role may not do this", no_body_text[] = "this path takes no body",
                  opening_text[] = "the server is starting: its store is being opened";

static void plan_refuse(struct front_plan *plan, enum error_kind kind, const char *detail)
{
    plan->refused = true;
    plan->kind = kind;
    plan->detail = detail;
}

/* Paths of a version that isn't ours are refused in the control contract's shape (CTL-025). */
static bool other_version(struct span path)
{
    const char *at = path.bytes;
    if (path.size < 3 || at[0] != '/' || at[1] != 'v' || at[2] < '0' || at[2] > '9')
        return false;
    uint32_t i = 2;
    while (i < path.size && at[i] >= '0' && at[i] <= '9')
        i++;
    return (i == path.size || at[i] == '/') && !(i == 3 && at[2] == '1');
}

static bool plan_path(struct request *q, struct front_plan *plan)
{
    struct url url;
    char *room = memchr(q->target.bytes, '%', q->target.size) ? actor_alloc(q->target.size) : NULL;
    enum url_result result =
        url_path(q->target, q->method == METHOD_OPTIONS, room, room ? q->target.size : 0, &url);
    if (result != URL_OK) {
        plan_refuse(plan, ERROR_KIND_MALFORMED, url_result_text(result));
        return false;
    }
    if (url.host.bytes && q->known[HEADER_HOST].bytes &&
        (url.host.size != q->known[HEADER_HOST].size ||
         strncasecmp(url.host.bytes, q->known[HEADER_HOST].bytes, url.host.size) != 0)) {
        plan_refuse(plan, ERROR_KIND_MALFORMED, "the request target and Host name different hosts");
        return false;
    }
    q->path = url.path;
    q->query = url.query;
    plan->asterisk = url.asterisk;
    return true;
}

/* How large a body may be: what the route takes, and no more than is taken at all. */
static uint32_t body_allowed(const struct front *front, const struct route *route)
{
    const struct front_limits *limits = atomic_load_explicit(&front->limits, memory_order_acquire);
    uint32_t most = limits && limits->body_max ? limits->body_max : FRONT_BODY_MAX;
    return route->body_max < most ? route->body_max : most;
}

static void plan_route(const struct front *front, struct request *q, struct front_plan *plan)
{
    routes_match(front->routes, q->method, q->path, &plan->match);
    const struct route *route = q->listed = plan->match.route;
    if (route && route->token_twin && has_token_form(bearer(q))) {
        route = plan->match.route = route->token_twin;
        plan->match.operation = plan->match.twin_operation;
        plan->match.surface = route->surface;
    }
    q->route = route;
    memcpy(q->params, plan->match.params, sizeof(q->params));
    plan->body_max = route ? body_allowed(q->front, route) : 0;
    if (route || plan->asterisk || (q->method == METHOD_OPTIONS && plan->match.allowed))
        return;
    if (plan->match.allowed) {
        plan_refuse(plan, ERROR_KIND_METHOD, "this path does not take this method");
        return;
    }
    if (other_version(q->path))
        plan->match.surface = SURFACE_CONTROL;
    plan_refuse(plan, ERROR_KIND_NO_ROUTE, "there is nothing at this path");
}

static inline enum error_code authenticate(struct front *front, struct request *q, bool early,
                                           const char **ret_why);

static bool role_may(const struct request *q)
{
    return !q->route->roles || ((uint32_t)q->identity.role & q->route->roles);
}

/* A body is waited for on behalf of those only who may send it: what is said without it is said in the same order. */
static void plan_body(struct front *front, struct request *q, struct front_plan *plan)
{
    const struct route *route = q->route;
    const char *why = "";
    if (route->changes && q->cross_site) {
        plan_refuse(plan, ERROR_KIND_CROSS_SITE, cross_site_text);
    } else if ((plan->code = authenticate(front, q, true, &why)) != ERROR_NONE) {
        plan->refused = true;
        plan->detail = why;
    } else if (!role_may(q)) {
        plan_refuse(plan, ERROR_KIND_FORBIDDEN, role_text);
    } else if (!route->body_max) {
        plan_refuse(plan, ERROR_KIND_MALFORMED, no_body_text);
    }
}

/* Everything of a request that the parser knows nothing of. */
static void request_clear(struct front *front, struct request *q)
{
    q->front = front;
    q->route = q->listed = NULL;
    q->json = NULL;
    q->prepared = NULL;
    q->path = q->query = span_of(NULL, 0);
    q->cross_site = false;
    memset(&q->identity, 0, offsetof(struct identity, projects));
    q->began_ns = actor_now();
}

static void plan_begin(struct front *front, struct request *q, struct front_plan *plan)
{
    plan->refused = plan->asterisk = false;
    plan->code = ERROR_NONE;
    plan->body_max = 0;
    plan->room = NULL;
    memset(&plan->match, 0,
           offsetof(struct route_match, params)); /* these are looked at when there is a route */
    plan->match.surface = routes_surface(front->routes);
    request_clear(front, q);
    trace_begin(&q->trace, q->known[HEADER_TRACEPARENT], q->known[HEADER_TRACESTATE],
                q->known[HEADER_REQUEST_ID]);
}

/* A target that no route may see has an owner all the same: his is the shape in which it is refused (CTL-246). */
static void plan_owner(const struct front *front, const struct request *q, struct front_plan *plan)
{
    plan->match.surface = other_version(q->target) ? SURFACE_CONTROL : routes_owner(front->routes, q->target);
}

void front_plan(struct front *front, struct request *q, bool whole, struct front_plan *plan)
{
    plan_begin(front, q, plan);
    q->cross_site =
        (q->known[HEADER_ORIGIN].bytes || q->known[HEADER_FETCH_SITE].bytes) && from_elsewhere(front, q);
    if (front->loopback_only && q->known[HEADER_HOST].bytes && !host_is_loopback(q->known[HEADER_HOST]))
        plan_refuse(plan, ERROR_KIND_MISDIRECTED, "Host must be localhost or a loopback address here");
    else if (plan_path(q, plan))
        plan_route(front, q, plan);
    else
        plan_owner(front, q, plan);
    if (!plan->refused && front->opening && q->route && !q->route->early)
        plan_refuse(plan, ERROR_KIND_UNAVAILABLE, opening_text);
    if (!plan->refused && !whole && q->route)
        plan_body(front, q, plan);
}

/* The path is for the log alone. */
void front_glimpse(struct front *front, struct request *q, struct front_plan *plan)
{
    plan_begin(front, q, plan);
    if (!q->target.size)
        return;
    plan_owner(front, q, plan);
    if (q->target.size <= FRONT_TARGET_MAX)
        (void)plan_path(q, plan);
}

/* ---- credentials ---- */

static enum error_code kind_code(const struct request *q, enum error_kind kind)
{
    return catalogue_code(q->route ? q->route->surface : SURFACE_PUBLIC, kind);
}

static enum error_code by_token(struct front *front, struct request *q, struct span credential, bool early,
                                const char **ret_why)
{
    const char *why = "";
    if (!front->keyring) {
        *ret_why = "this listener takes no tokens";
        return kind_code(q, ERROR_KIND_BAD_CREDENTIALS);
    }
    enum jwt_stage stage =
        early ? keyring_look(front->keyring, credential, &q->identity, &why)
              : keyring_verify(front->keyring, credential,
                               span_of(q->trace.request_id, q->trace.request_id_length), &q->identity, &why);
    if (stage == JWT_STAGE_OK)
        return ERROR_NONE;
    if (stage == JWT_STAGE_STORE) {
        *ret_why = "whether the token is good could not be found out";
        return kind_code(q, ERROR_KIND_UNAVAILABLE);
    }
    *ret_why = "the token is not valid here";
    return kind_code(q, ERROR_KIND_BAD_CREDENTIALS);
}

static enum error_code by_operator_token(struct front *front, struct request *q, const char **ret_why)
{
    if (front->operator_token_hash && !q->known[HEADER_AUTHORIZATION].bytes) {
        *ret_why = "this listener asks for the operator's token";
        return kind_code(q, ERROR_KIND_NO_CREDENTIALS);
    }
    if (front->operator_token_hash && !operator_token_check(front, q->known[HEADER_AUTHORIZATION])) {
        TELEMETRY(AUTH_REJECTED, 1, DIM(STAGE, "operator"), DIM(REASON, "not the operator's token"));
        *ret_why = "this is not the operator's token";
        return kind_code(q, ERROR_KIND_BAD_CREDENTIALS);
    }
    q->identity.kind = IDENTITY_OPERATOR;
    q->identity.subject = span_text("operator");
    return ERROR_NONE;
}

static enum error_code by_key(struct request *q, struct span credential, const char **ret_why)
{
    enum error_code code = api_key_verify(credential, &q->identity);
    if (code == ERROR_NONE)
        return ERROR_NONE;
    TELEMETRY(AUTH_REJECTED, 1, DIM(STAGE, "key"), DIM(REASON, catalogue_row(code)->code));
    *ret_why = catalogue_row(code)->title;
    return code;
}

static enum error_code by_credential(struct front *front, struct request *q, bool early, const char **ret_why)
{
    struct span credential = bearer(q);
    if (!credential.size) {
        TELEMETRY(AUTH_REJECTED, 1, DIM(STAGE, "missing"), DIM(REASON, "no bearer credential"));
        *ret_why = "an Authorization header with a Bearer credential is needed";
        return kind_code(q, ERROR_KIND_NO_CREDENTIALS);
    }
    return q->route->auth == AUTH_TOKEN ? by_token(front, q, credential, early, ret_why)
                                        : by_key(q, credential, ret_why);
}

/* early: the body hasn't come, and when it has, the whole is asked for again. */
static inline enum error_code authenticate(struct front *front, struct request *q, bool early,
                                           const char **ret_why)
{
    switch (q->route->auth) {
    case AUTH_NONE:
        return ERROR_NONE;
    case AUTH_OPERATOR:
        return by_operator_token(front, q, ret_why);
    case AUTH_OPTIONAL:
        if (!q->known[HEADER_AUTHORIZATION].bytes)
            return ERROR_NONE;
        break;
    default:
        break;
    }
    return by_credential(front, q, early, ret_why);
}

/* ---- limits ---- */

enum per { PER_ADDRESS, PER_CLIENT, PER_SUBJECT, PER_ACTOR, PER_ROUTE };

static struct span limited_by(const struct request *q, enum limit limit)
{
    static const uint8_t per[LIMIT_COUNT] = {
#define X(id, name, requests, window, whose) [LIMIT_##id] = PER_##whose,
        LIMITS(X)
#undef X
    };
    switch ((enum per)per[limit]) {
    case PER_ADDRESS:
        return q->address;
    case PER_CLIENT:
        return span_of(&q->identity.client, sizeof(q->identity.client));
    case PER_SUBJECT:
    case PER_ACTOR:
        return q->identity.subject;
    default: /* both ways to it are one */
        return q->route ? span_text(q->route->alias_of ? q->route->alias_of : q->route->path)
                        : span_of(NULL, 0);
    }
}

/* What the job contract calls a limit of the front (AMB-J-22, JOB-441). */
static void write_limit(struct json *json, void *context)
{
    enum limit limit = *(const enum limit *)context;
    JSON_MEMBER(json, "limit", string, limit == LIMIT_CLIENT ? "requests_per_minute" : "anonymous");
}

static void throttle(struct response *r, enum limit limit, const struct limit_result *result)
{
    char detail[96];
    snprintf(detail, sizeof(detail), "more than %u %s in %u s; again in %u s", result->quota,
             limit == LIMIT_FAILURES || limit == LIMIT_OPERATOR_FAILURES ? "refused credentials" : "requests",
             result->window_s, result->reset_s);
    TELEMETRY(HTTP_THROTTLED, 1, DIM(BUCKET, limit_name(limit)));
    response_error_with(r, catalogue_code(r->surface, ERROR_KIND_THROTTLED), detail,
                        r->surface == SURFACE_JOBS ? write_limit : NULL, &limit);
}

/* What all have left together is told to those only who are refused by it. */
__attribute__((noinline)) static bool counted(const struct front *front, const struct request *q,
                                              struct response *r, enum limit limit)
{
    struct span key = limited_by(q, limit);
    if (key.size == 0)
        return true;
    struct limit_result result = limiter_take(front->limiter, limit, key);
    if (result.quota && (!result.allowed || q->route == NULL || limit != q->route->everybody))
        limiter_write_headers(front->limiter, &result, limit, r);
    if (result.allowed)
        return true;
    throttle(r, limit, &result);
    return false;
}

/* False: answered. */
static inline bool within(const struct front *front, const struct request *q, struct response *r,
                          enum limit limit)
{
    return limit == LIMIT_NONE || !front->limiter || !limiter_counts(front->limiter, limit) ||
           counted(front, q, r, limit);
}

/* ---- bodies ---- */

/* Nothing is decoded: a body is taken as it is. The field may be there more than once. */
static bool is_plain(const struct request *q)
{
    for (uint32_t i = 0; i < q->fields_count; i++)
        if (span_is_any_case(q->fields[i].name, "content-encoding") &&
            !span_is_any_case(q->fields[i].value, "identity"))
            return false;
    return true;
}

/* A schema's refusal is what the contract calls malformed, or invalid. */
static enum error_kind defect_kind(enum surface surface, enum schema_defect_kind defect)
{
    if (defect == DEFECT_MISSING)
        return ERROR_KIND_MISSING_FIELD;
    return surface == SURFACE_JOBS ? ERROR_KIND_MALFORMED : ERROR_KIND_INVALID;
}

/* "/meta/actor_id" is "meta.actor_id" as people write it. */
static void write_field(struct json *json, const char *pointer)
{
    char field[sizeof(((struct schema_defect *)0)->pointer)];
    snprintf(field, sizeof(field), "%s", pointer[0] == '/' ? pointer + 1 : pointer);
    for (char *at = field; *at; at++)
        *at = *at == '/' ? '.' : *at;
    JSON_MEMBER(json, "field", string, field);
}

static void write_defects(struct json *json, void *context)
{
    const struct schema_result *result = context;
    uint32_t kept = result->count < SCHEMA_DEFECTS_MAX ? result->count : SCHEMA_DEFECTS_MAX;
    write_field(json, result->defects[0].pointer);
    json_key(json, "errors");
    json_array_begin(json);
    for (uint32_t i = 0; i < kept; i++) {
        const struct schema_defect *d = &result->defects[i];
        json_object_begin(json);
        write_field(json, d->pointer);
        JSON_MEMBER(json, "message", string, d->what);
        JSON_MEMBER(json, "pointer", string, d->pointer);
        json_object_end(json);
    }
    json_array_end(json);
}

static bool refuse_defects(struct response *r, struct schema_result *result)
{
    char detail[320];
    enum error_kind kind = defect_kind(r->surface, result->defects[0].kind);
    snprintf(detail, sizeof(detail), "%s %s",
             result->defects[0].pointer[0] ? result->defects[0].pointer : "the body",
             result->defects[0].what);
    response_error_with(r, catalogue_code(r->surface, kind), detail, write_defects, result);
    return false;
}

/* The nodes of the body's JSON: in the arena, or in a room for large bodies, which is the caller's to drop. NULL: there is
 * none left. */
static struct json_text *nodes_for(struct span body, struct body **ret_room)
{
    struct json_text *json = actor_alloc(sizeof(*json));
    uint32_t most =
        body.size / 2 + 2; /* a value and what stands between two of them: no fewer than two bytes */
    struct body *slot = *ret_room = NULL;
    if (most > NODES_IN_ARENA && !(slot = *ret_room = body_take()))
        return NULL;
    *json = (struct json_text){.text = body,
                               .nodes = slot ? slot->nodes : actor_alloc(most * sizeof(struct json_node)),
                               .nodes_max = slot ? BODY_NODES_MAX : most,
                               .seed = actor_random()};
    return json;
}

static bool read_json(struct request *q, struct front_plan *plan, struct response *r)
{
    static const struct json_limits limits = {.depth = 10, .elements = 1000};
    struct json_error error;
    const struct contract_operation *operation = plan->match.operation;
    struct schema_result *result = NULL;
    struct json_text *json = nodes_for(q->body, &plan->room);
    if (!json) {
        response_error(r, catalogue_code(r->surface, ERROR_KIND_OVERLOADED),
                       "too many large requests are being read");
        return false;
    }
    if (!json_text_read(json, q->body, &limits, &error)) {
        response_error(r,
                       catalogue_code(r->surface, error.limit && r->surface == SURFACE_CONTROL
                                                      ? ERROR_KIND_INVALID
                                                      : ERROR_KIND_MALFORMED),
                       "the body is not JSON as it must be: %s, at byte %u", error.what, error.at);
        return false;
    }
    q->json = json;
    if (q->route->precheck && q->route->precheck(q, r) != ERROR_NONE)
        return false;
    if (!operation || !operation->body || schema_check(operation->body, json, json_root(json), NULL))
        return true;
    result = actor_alloc(sizeof(*result));
    schema_check(operation->body, json, json_root(json), result);
    return refuse_defects(r, result);
}

/* False: answered. */
static bool take_body(struct request *q, struct front_plan *plan, struct response *r)
{
    const struct route *route = q->route;
    if (!route->body_max) {
        if (q->body.size)
            response_error(r, catalogue_code(r->surface, ERROR_KIND_MALFORMED), "%s", no_body_text);
        return q->body.size == 0;
    }
    if (q->body.size > body_allowed(q->front, route)) {
        response_error(r, catalogue_code(r->surface, ERROR_KIND_TOO_LARGE),
                       "the body has %u bytes; %u may be sent here", q->body.size,
                       body_allowed(q->front, route));
        return false;
    }
    if (q->body.size == 0) {
        if (!route->body_optional)
            response_error(
                r,
                catalogue_code(r->surface, q->has_length ? ERROR_KIND_MALFORMED : ERROR_KIND_LENGTH_REQUIRED),
                "a JSON body is needed");
        return route->body_optional;
    }
    if (!is_plain(q)) {
        response_header(r, "Accept-Encoding", "identity");
        response_error(r, catalogue_code(r->surface, ERROR_KIND_UNSUPPORTED_TYPE),
                       "Content-Encoding must be identity");
        return false;
    }
    if (!media_is_json(q->known[HEADER_CONTENT_TYPE])) {
        response_header(r, "Accept-Post", "application/json");
        response_error(r, catalogue_code(r->surface, ERROR_KIND_UNSUPPORTED_TYPE),
                       "Content-Type must be application/json, in UTF-8");
        return false;
    }
    return read_json(q, plan, r);
}

/* ---- parameters ---- */

/* The position of {name} in the route's path, or -1. */
static int param_position(const struct route *route, const char *name)
{
    int position = 0;
    size_t length = strlen(name);
    for (const char *at = strchr(route->path, '{'); at; at = strchr(at + 1, '{'), position++)
        if (strncmp(at + 1, name, length) == 0 && at[1 + length] == '}')
            return position;
    return -1;
}

static bool refuse_parameter(struct response *r, const char *name, const struct schema_defect *defect)
{
    struct schema_result *result = actor_alloc(sizeof(*result));
    memset(result, 0, offsetof(struct schema_result, defects));
    result->count = 1;
    result->defects[0] = *defect;
    snprintf(result->defects[0].pointer, sizeof(result->defects[0].pointer), "/%s", name);
    enum error_kind kind = r->surface == SURFACE_JOBS ? ERROR_KIND_MALFORMED : ERROR_KIND_INVALID;
    char detail[300];
    snprintf(detail, sizeof(detail), "%s %s", name, defect->what);
    response_error_with(r, catalogue_code(r->surface, kind), detail, write_defects, result);
    return false;
}

/* "" when it can't be a name of ours. */
static void parameter_name(struct span sent, char name[NEAREST_LENGTH_MAX + 1])
{
    size_t size = 0;
    if (!url_decode(sent, name, NEAREST_LENGTH_MAX, &size))
        size = 0;
    name[size] = 0;
}

/* Whether the operation has it; else the nearest that it has is offered. */
static bool is_parameter(const struct contract_operation *operation, struct nearest *nearest)
{
    for (uint32_t i = 0; i < operation->parameters_count; i++) {
        if (operation->parameters[i].in != PARAMETER_QUERY)
            continue;
        if (strcmp(operation->parameters[i].name, nearest->word) == 0)
            return true;
        nearest_offer(nearest, operation->parameters[i].name);
    }
    return false;
}

/* An operator who mistypes a filter must not take the whole list for what it filters. Clients of other versions may send more than
 * we know of: there it is passed over. False: answered. */
static bool check_query(const struct request *q, struct response *r,
                        const struct contract_operation *operation)
{
    struct span rest = q->query, sent, value;
    char name[NEAREST_LENGTH_MAX + 1];
    while (url_query_next(&rest, &sent, &value)) {
        struct schema_defect defect = {.what = "is no parameter of this path"};
        struct nearest nearest = {.word = name};
        parameter_name(sent, name);
        if (is_parameter(operation, &nearest))
            continue;
        if (nearest.best)
            snprintf(defect.what, sizeof(defect.what), "is no parameter of this path; '%s' is", nearest.best);
        return refuse_parameter(r, name[0] ? name : "what the query has", &defect);
    }
    return true;
}

/* False: answered. */
static bool check_parameters(const struct request *q, struct response *r,
                             const struct contract_operation *operation)
{
    if (q->query.size && r->surface == SURFACE_OPERATOR && !check_query(q, r, operation))
        return false;
    for (uint32_t i = 0; i < operation->parameters_count; i++) {
        const struct contract_parameter *p = &operation->parameters[i];
        struct schema_defect defect = {.kind = DEFECT_MISSING, .what = "is needed"};
        struct span value = span_of(NULL, 0);
        char room[1024];
        bool bad = false;
        if (p->in == PARAMETER_PATH && r->surface == SURFACE_JOBS && !q->route->body_max)
            continue; /* AMB-J-59: an id that can't be one is an id that isn't there; the handler says so */
        if (p->in == PARAMETER_PATH) {
            int position = param_position(q->route, p->name);
            if (position >= 0)
                value = q->params[position];
        } else if (p->in == PARAMETER_QUERY) {
            const char *text = q->query.size ? request_query(q, p->name, room, sizeof(room), &bad) : NULL;
            if (text)
                value = span_text(text);
        } else {
            value = request_field(q, p->name);
        }
        if (bad)
            snprintf(defect.what, sizeof(defect.what), "is there twice, too long, or badly escaped");
        if (bad || (!value.bytes && p->required))
            return refuse_parameter(r, p->name, &defect);
        if (value.bytes && p->schema && !schema_check_text(p->schema, value, &defect))
            return refuse_parameter(r, p->name, &defect);
    }
    return true;
}

/* ---- answers ---- */

/* `allowed` as routes say it; they say nothing of OPTIONS. */
static void write_allow(struct response *r, uint32_t allowed, bool options)
{
    allowed |= options ? (uint32_t)METHOD_OPTIONS : 0;
    char text[96] = "";
    size_t length = 0;
    for (unsigned bit = 1; bit <= METHOD_OPTIONS; bit <<= 1)
        if (allowed & bit)
            length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%s", length ? ", " : "",
                                       method_name((enum method)bit));
    response_header(r, "Allow", "%s", text);
}

static bool cors_matches(const struct front *front, const struct request *q)
{
    return front->cors_origin && q->known[HEADER_ORIGIN].bytes &&
           span_is(q->known[HEADER_ORIGIN], front->cors_origin);
}

static void write_cors(const struct front *front, const struct request *q, struct response *r)
{
    if (!front->cors_origin)
        return;
    response_header(r, "Vary", "Origin");
    if (!cors_matches(front, q))
        return;
    response_header(r, "Access-Control-Allow-Origin", "%s", front->cors_origin);
    response_header(r, "Access-Control-Allow-Credentials", "true");
    const char *prefix = front->limiter ? limiter_prefix(front->limiter) : NULL;
    char older[96] = "";
    if (prefix)
        snprintf(older, sizeof(older), ", %sLimit, %sRemaining, %sReset", prefix, prefix, prefix);
    response_header(r, "Access-Control-Expose-Headers",
                    "X-Request-Id, traceparent, RateLimit, RateLimit-Policy%s, Retry-After, Location, Link, "
                    "ETag, Idempotent-Replayed, Preference-Applied",
                    older);
}

static void serve_options(const struct front *front, const struct request *q, const struct front_plan *plan,
                          struct response *r)
{
    bool asterisk = plan->asterisk;
    bool preflight = cors_matches(front, q) && q->known[HEADER_ACCESS_CONTROL_REQUEST_METHOD].bytes;
    bool taken = preflight || r->surface != SURFACE_CONTROL; /* AMB-05 */
    write_allow(r, asterisk ? METHOD_GET | METHOD_HEAD | METHOD_POST | METHOD_DELETE : plan->match.allowed,
                taken);
    if (!taken) {
        response_error(r, ERROR_REQ_405_METHOD_NOT_ALLOWED, "this path does not take this method");
        return;
    }
    if (preflight) {
        response_header(r, "Access-Control-Allow-Methods",
                        plan->match.allowed & METHOD_DELETE ? "GET, POST, DELETE" : "GET, POST");
        response_header(r, "Access-Control-Allow-Headers",
                        "Authorization, Content-Type, Idempotency-Key, Prefer, X-Request-Id, traceparent");
        response_header(r, "Access-Control-Max-Age", "3600");
    }
    response_begin(r, 200, NULL); /* JOB-373: nobody answers 204 */
}

/* Whatever was answered, by a handler or before it came to one. */
static void check_answer(const struct front *front, const struct request *q,
                         const struct contract_operation *operation, struct response *r)
{
    char why[ANSWER_CHECK_WHY], text[ANSWER_CHECK_WHY + 128];
    if (!answer_check(front->contracts, r->beyond ? NULL : operation, r, why)) {
        snprintf(text, sizeof(text), "the answer %d of %s %s", r->status,
                 q->route ? q->route->path : "no route", why);
        actor_fail(ERR_INVALID, text);
    }
    if (r->kept)
        body_drop(r->kept);
    r->checked = false;
}

static void observe(const struct front *front, const struct request *q, const struct response *r)
{
    static const char *const classes[] = {"1xx", "2xx", "3xx", "4xx", "5xx"};
    /* The scheduler's clock stands still for a turn: began_ns is when the bytes had come, and the end is asked for. */
    uint64_t now = actor_clock(), took = now > q->began_ns ? now - q->began_ns : 0;
    const char *class = classes[r->status / 100 - 1], *path = q->route ? q->route->path : "unmatched";
    const char *method = method_name(q->method);
    if (!telemetry_count(TELEMETRY_HTTP_REQUEST, (int64_t)took, (uint32_t)r->status / 100 - 1))
        TELEMETRY(HTTP_REQUEST, (int64_t)took, DIM(ROUTE, path), DIM(METHOD, method), DIM(STATUS, class));
    metrics_request(q->listed, r->status, took);
    if (trace_exporting())
        trace_record(&(struct trace_span){.trace = &q->trace,
                                          .kind = TRACE_SERVER,
                                          .status = r->status >= 500 ? TRACE_ERROR : TRACE_UNSET,
                                          .method = method,
                                          .name = path,
                                          .began_ns = q->began_ns,
                                          .ended_ns = now,
                                          .attributes = {{"http.request.method", method, 0},
                                                         {"http.response.status_code", NULL, r->status},
                                                         {"http.route", path, 0}}});
    if (front->log)
        front->log(q, r, took);
}

/* ---- one request ---- */

/* Who shows credentials that are refused again and again has to wait; not who asks while we can't look at them. */
static void refuse_credentials(const struct front *front, const struct request *q, struct response *r,
                               enum error_code code, const char *why)
{
    if (catalogue_row(code)->status >= 500 || within(front, q, r, front->refusals))
        response_error(r, code, "%s", why);
}

void front_refuse_credentials(const struct request *q, struct response *r, enum error_code code,
                              const char *why)
{
    if (q->front)
        refuse_credentials(q->front, q, r, code, why);
    else
        response_error(r, code, "%s", why);
}

static void refuse_plan(struct front *front, const struct request *q, const struct front_plan *plan,
                        struct response *r)
{
    if (plan->code) {
        refuse_credentials(front, q, r, plan->code, plan->detail);
        return;
    }
    if (plan->kind == ERROR_KIND_METHOD)
        write_allow(r, plan->match.allowed, r->surface != SURFACE_CONTROL);
    response_error(r, catalogue_code(r->surface, plan->kind), "%s", plan->detail);
}

/* Credentials, role, rate: false when answered. */
static bool admit(struct front *front, struct request *q, struct response *r)
{
    const char *why = "";
    const struct route *route = q->route;
    enum error_code code = authenticate(front, q, false, &why);
    if (code != ERROR_NONE) {
        refuse_credentials(front, q, r, code, why);
        return false;
    }
    if (!role_may(q)) {
        response_error(r, catalogue_code(r->surface, ERROR_KIND_FORBIDDEN), "%s", role_text);
        return false;
    }
    bool anonymous = route->anonymous != LIMIT_NONE && q->identity.kind == IDENTITY_NONE;
    return within(front, q, r, anonymous ? route->anonymous : route->limit) &&
           within(front, q, r, route->everybody) && client_quota_take(q, r);
}

static void serve(struct front *front, struct request *q, struct front_plan *plan, struct response *r)
{
    const struct contract_operation *operation = plan->match.operation;
    write_cors(front, q, r);
    if (!within(front, q, r, front->per_address))
        return;
    if (plan->refused) {
        refuse_plan(front, q, plan, r);
        return;
    }
    if (!q->route) {
        serve_options(front, q, plan, r);
        return;
    }
    if (q->route->changes && q->cross_site) {
        response_error(r, catalogue_code(r->surface, ERROR_KIND_CROSS_SITE), "%s", cross_site_text);
        return;
    }
    if (!admit(front, q, r))
        return;
    if (r->surface == SURFACE_JOBS && !media_accepts_json(q)) {
        response_error(r, ERROR_RFA_REQUEST_NOT_ACCEPTABLE, "the answer is application/json");
        return;
    }
    if ((operation && !check_parameters(q, r, operation)) || !take_body(q, plan, r))
        return;
    r->headers_ours = r->headers_length;
    q->route->serve(q, r);
    ASSERT(r->status != 0);
    response_instead(r);
}

bool front_serve(struct front *front, struct request *q, struct front_plan *plan, struct response *r)
{
    atomic_fetch_add_explicit(&front->requests, 1, memory_order_relaxed);
    r->surface = plan->match.surface;
    r->checked = front->check_answers;
    serve(front, q, plan, r);
    if (front->check_answers)
        check_answer(front, q, plan->match.operation, r);
    bool keep = response_end(r);
    observe(front, q, r);
    if (plan->room)
        body_drop(plan->room);
    return keep;
}

void front_crashed(struct front *front, struct request *q, struct response *r)
{
    r->error = catalogue_code(r->surface, ERROR_KIND_INTERNAL);
    r->status = catalogue_row(r->error)->status;
    observe(front, q, r);
}

void front_refuse(struct front *front, struct request *q, const struct front_plan *plan, struct response *r,
                  enum error_kind kind, const char *why)
{
    r->surface = plan->match.surface;
    atomic_fetch_add_explicit(&front->requests, 1, memory_order_relaxed);
    response_error(r, catalogue_code(r->surface, kind), "%s", why);
    TELEMETRY(HTTP_REFUSED, 1, DIM(REASON, catalogue_row(r->error)->code));
    if (front->check_answers)
        check_answer(front, q, plan->match.operation, r);
    response_end(r);
    observe(front, q, r);
}

size_t front_turn_away(struct front *front, struct span address, bool own, char text[RESPONSE_LAST_MAX])
{
    const struct span nothing = {NULL, 0};
    struct request q;
    struct response r;
    memset(&q, 0, offsetof(struct request, fields));
    memset(&r, 0, offsetof(struct response, headers));
    q.method = METHOD_UNKNOWN;
    q.address = address;
    request_clear(front, &q);
    trace_begin(&q.trace, nothing, nothing, nothing);
    r.request = &q;
    r.surface = routes_surface(front->routes);
    r.error = catalogue_code(r.surface, ERROR_KIND_OVERLOADED);
    size_t size = response_turn_away(&r, front, own, text);
    if (front->log)
        front->log(&q, &r, 0);
    return size;
}
