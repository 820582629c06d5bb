#include "http/grants.h"

#include "http/api_key_auth.h"
#include "http/control.h"
#include "http/front.h"
#include "http/json_text.h"
#include "http/tokens.h"
#include "runtime/telemetry.h"
#include "store/principal.h"
#include "store/sha256.h"
#include "store/view.h"

enum { ORDER_MS = 10000 /* the keyring's actor waits for the store, too */ };

static const char grant_name[] = "client_credentials";

/* ---- who asks ---- */

/* A principal's row, in the request's memory. */
struct holder {
    struct span name, role, projects, agent_template, tier;
    struct digest hash;
};

static struct span keep(struct span text)
{
    char *copy = actor_alloc(text.size ? text.size : 1);
    if (text.size)
        memcpy(copy, text.bytes, text.size);
    return span_of(copy, text.size);
}

static enum error look_up(struct span name, struct holder *ret)
{
    struct principal row;
    struct view *view = store_here() ? view_open(store_here()) : NULL;
    if (!view)
        return ERR_UNAVAILABLE;
    enum error e = principal_read(&view->txn, name, &row);
    if (!e)
        *ret = (struct holder){.name = name,
                               .role = keep(row.role),
                               .projects = keep(row.projects),
                               .agent_template = keep(row.agent_template),
                               .tier = keep(row.tier),
                               .hash = row.hash};
    view_close(view);
    return e;
}

static bool is_secret_of(const struct holder *holder, struct span text)
{
    uint8_t secret[API_KEY_SECRET_SIZE];
    if (!api_key_parse(text, secret))
        return false;
    struct digest hash = api_key_hash(secret);
    explicit_bzero(secret, sizeof(secret));
    return secret_equal(&hash, &holder->hash, sizeof(hash));
}

/* A name that nobody has and a secret that isn't its own are the same to whoever asks. False: answered. */
static bool know(const struct request *q, struct response *r, struct holder *ret)
{
    enum error e = look_up(control_text(q, "client_id"), ret);
    if (e && e != ERR_NOT_FOUND) {
        response_error(r, ERROR_INFRA_503_DEPENDENCY_DOWN, "whose secret this is could not be found out");
        return false;
    }
    if (!e && is_secret_of(ret, control_text(q, "client_secret")))
        return true;
    TELEMETRY(AUTH_REJECTED, 1, DIM(STAGE, "secret"),
              DIM(REASON, e ? "no such principal" : "another secret"));
    front_refuse_credentials(q, r, ERROR_AUTH_401_INVALID_TOKEN,
                             "client_id and client_secret are not those of a principal");
    return false;
}

/* ---- what is asked for ---- */

/* The next of "a b c" as *ret; false: no more. */
static bool next_name(struct span *list, struct span *ret)
{
    const char *at = list->bytes, *end = at + list->size;
    while (at < end && *at == ' ')
        at++;
    const char *space = at < end ? memchr(at, ' ', (size_t)(end - at)) : NULL;
    const char *stop = space ? space : end;
    *ret = span_of(at, (size_t)(stop - at));
    *list = span_of(stop, (size_t)(end - stop));
    return ret->size > 0;
}

static bool lists(struct span list, struct span name)
{
    struct span each;
    while (next_name(&list, &each))
        if (span_equal(each, name) || span_equal(each, span_text("*")))
            return true;
    return false;
}

/* False: answered. */
static bool take_scope(const struct request *q, struct response *r, const struct holder *holder,
                       struct keyring_claims *claims)
{
    struct span asked = control_text(q, "scope"), name;
    bool part = asked.size > 0;
    if (!part)
        asked = holder->projects;
    while (next_name(&asked, &name)) {
        if (claims->projects_count == IDENTITY_PROJECTS_MAX) {
            (void)control_refuse(r, ERROR_REQ_400_INVALID_SCHEMA, "scope", "must name at most 32 projects");
            return false;
        }
        if (part && !lists(holder->projects, name)) {
            (void)control_refuse(r, ERROR_AUTH_403_SCOPE, "scope",
                                 "has a project that this principal hasn't");
            return false;
        }
        claims->projects[claims->projects_count++] = name;
    }
    return true;
}

static uint64_t lifetime_of(const struct request *q)
{
    const struct json_node *node = json_member(q->json, json_root(q->json), "lifetime_seconds");
    uint64_t seconds = 0;
    if (node)
        (void)json_uint64_of(q->json, node, &seconds); /* a whole number, says the contract */
    return seconds;
}

/* The token that ends. jti empty: none. */
struct replaced {
    struct span jti;
    uint64_t expires_s;
};

/* One of the principal's own, which is still good. False: answered. */
static bool take_replaced(const struct request *q, struct response *r, const struct holder *holder,
                          struct replaced *ret)
{
    struct identity *who = actor_alloc(sizeof(*who));
    struct span token = control_text(q, "replaces");
    const char *why;
    *ret = (struct replaced){.expires_s = 0};
    if (!token.size)
        return true;
    if (keyring_look(q->front->keyring, token, who, &why) == JWT_STAGE_OK &&
        span_equal(who->subject, holder->name) &&
        span_equal(who->issuer, span_text(keyring_issuer(q->front->keyring)))) {
        *ret = (struct replaced){.jti = who->jti, .expires_s = who->expires_s};
        return true;
    }
    (void)control_refuse(r, ERROR_REQ_400_INVALID_SCHEMA, "replaces", "is no good token of this principal's");
    return false;
}

/* ---- the token ---- */

/* The entry is written, what it replaces ends, and it is still the principal's to have: false, when answered. */
static bool settle(const struct request *q, struct response *r, const struct holder *holder,
                   const struct keyring_claims *claims, const struct keyring_token *token,
                   const struct replaced *replaced)
{
    const struct keyring_order order = {.who = holder->name,
                                        .reason = span_text("replaced"),
                                        .request_id =
                                            span_of(q->trace.request_id, q->trace.request_id_length)};
    struct holder now;
    enum error e = token_note_issue(q, holder->name, claims, token);
    if (!e && replaced->jti.size) /* it isn't over while the order is on its way */
        e = keyring_revoke(&order, REVOCATION_TOKEN, span_of(NULL, 0), replaced->jti,
                           replaced->expires_s + KEYRING_SKEW_S, actor_deadline_ms(ORDER_MS));
    if (!e)
        e = look_up(holder->name, &now);
    if (!e && secret_equal(&now.hash, &holder->hash, sizeof(now.hash)))
        return true;
    if (e && e != ERR_NOT_FOUND)
        response_error(r, ERROR_INFRA_503_DEPENDENCY_DOWN, "the token's audit entry could not be written");
    else
        response_error(r, ERROR_AUTH_401_INVALID_TOKEN, "the principal was changed meanwhile");
    return false;
}

static void answer(struct response *r, const struct keyring_claims *claims, const struct keyring_token *token,
                   uint64_t now_s)
{
    char scope[PRINCIPAL_PROJECTS_MAX + 1];
    size_t used = 0;
    struct json json;
    for (uint32_t i = 0; i < claims->projects_count; i++) {
        if (used)
            scope[used++] = ' ';
        memcpy(scope + used, claims->projects[i].bytes, claims->projects[i].size);
        used += claims->projects[i].size;
    }
    response_begin(r, 200, RESPONSE_JSON);
    json_init(&json, &r->sink);
    json_object_begin(&json);
    json_key(&json, "access_token");
    json_string_n(&json, token->text, token->length);
    JSON_MEMBER(&json, "token_type", string, "Bearer");
    JSON_MEMBER(&json, "expires_in", uint, token->expires_s - now_s);
    json_key(&json, "scope");
    json_string_n(&json, scope, used);
    json_object_end(&json);
}

static void serve_token(const struct request *q, struct response *r)
{
    struct keyring *keyring = q->front->keyring;
    struct keyring_claims *claims = actor_alloc(sizeof(*claims));
    struct keyring_token *token = actor_alloc(sizeof(*token));
    struct holder holder;
    struct replaced replaced;
    bool unavailable = false;
    if (!keyring) {
        response_error(r, ERROR_INFRA_503_DEPENDENCY_DOWN, "this server issues no tokens");
        return;
    }
    if (!know(q, r, &holder))
        return;
    *claims = (struct keyring_claims){.subject = holder.name,
                                      .role = holder.role,
                                      .agent_template = holder.agent_template,
                                      .tier = holder.tier,
                                      .lifetime_s = lifetime_of(q)};
    if (!take_scope(q, r, &holder, claims) || !take_replaced(q, r, &holder, &replaced))
        return;
    if (claims->lifetime_s > keyring_longest_s(keyring, claims)) {
        (void)control_refuse(r, ERROR_REQ_400_INVALID_SCHEMA, "lifetime_seconds",
                             "is longer than a token of this role, or of this agent's template, may live");
        return;
    }
    uint64_t now_s = actor_wall_now() / NS_PER_S;
    const char *why = keyring_issue(keyring, claims, token, &unavailable);
    if (why && unavailable)
        response_error(r, ERROR_INFRA_503_DEPENDENCY_DOWN, "%s", why);
    else if (why)
        (void)control_refuse(r, ERROR_REQ_400_INVALID_SCHEMA, "scope", "is more than fits a token");
    else if (settle(q, r, &holder, claims, token, &replaced))
        answer(r, claims, token, now_s);
}

/* Before the schema, which would only say that it is another value. */
static enum error_code check_grant(struct request *q, struct response *r)
{
    const struct json_node *root = json_root(q->json);
    const struct json_node *node =
        root->kind == JSON_OBJECT ? json_member(q->json, root, "grant_type") : NULL;
    if (!node || node->kind != JSON_STRING)
        return ERROR_NONE;
    struct span grant = control_text(q, "grant_type");
    if (span_equal(grant, span_text(grant_name)))
        return ERROR_NONE;
    return control_refuse(
        r, ERROR_REQ_400_INVALID_SCHEMA, "grant_type",
        span_equal(grant, span_text("password"))
            ? "must be client_credentials: there are no users here who could have a password"
            : "must be client_credentials");
}

const struct route grant_routes[] = {
    {.method = METHOD_POST,
     .path = "/v1/auth/token",
     .surface = SURFACE_CONTROL,
     .auth = AUTH_NONE,
     .limit = LIMIT_TOKEN,
     .everybody = LIMIT_TOKEN_ALL,
     .body_max = GRANTS_BODY_MAX,
     .changes = true,
     .precheck = check_grant,
     .serve = serve_token},
};
const size_t grant_routes_count = sizeof(grant_routes) / sizeof(*grant_routes);
