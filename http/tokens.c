#include "http/tokens.h"

#include <stdio.h>

#include "http/audits.h"
#include "http/commit.h"
#include "http/front.h"
#include "http/sheet.h"
#include "http/timestamp.h"
#include "store/audit.h"
#include "store/seen_token.h"
#include "store/signing_key.h"
#include "store/token.h"
#include "store/view.h"

enum {
    KEYS_LIST = 3,   /* the number of this list in its tokens */
    ORDER_MS = 10000 /* the keyring's actor waits for the store, too */
};

/* ---- what was asked for ---- */

static struct keyring_order order_of(const struct request *q)
{
    struct span who = q->identity.subject;
    return (struct keyring_order){.who = who.size ? who : span_text("operator"),
                                  .reason = audits_reason(q),
                                  .request_id = span_of(q->trace.request_id, q->trace.request_id_length)};
}

static struct keyring *keyring_of(const struct request *q, struct response *r)
{
    if (!q->front->keyring)
        response_error(r, catalogue_code(r->surface, ERROR_KIND_UNAVAILABLE), "this server has no keys");
    return q->front->keyring;
}

/* An order's error as an answer. */
static void refuse(struct response *r, enum error e, const char *what)
{
    switch (e) {
    case ERR_NOT_FOUND:
        response_error(r, ERROR_OPS_404_NOT_FOUND, "%s isn't there", what);
        break;
    case ERR_EXISTS:
    case ERR_TRANSITION:
    case ERR_CONFLICT:
        response_error(r, ERROR_OPS_409_CONFLICT, "%s: %s", what,
                       e == ERR_EXISTS ? "it was made before" : "its state doesn't allow it any more");
        break;
    case ERR_INVALID:
        response_error(r, ERROR_OPS_400_INVALID, "%s can't be meant", what);
        break;
    default:
        response_error(r, catalogue_code(r->surface, catalogue_failure(e)), "%s", catalogue_sentence(e));
    }
}

/* ---- keys ---- */

static void write_time(struct json *json, const char *name, uint64_t us)
{
    char text[TIMESTAMP_SIZE];
    json_key(json, name);
    if (!us) {
        json_null(json);
        return;
    }
    timestamp_format(us * NS_PER_US, text);
    json_string(json, text);
}

static void write_text(struct json *json, const char *name, struct span text)
{
    json_key(json, name);
    if (text.size)
        json_string_n(json, text.bytes, text.size);
    else
        json_null(json);
}

/* Never what is sealed. */
static void write_key(struct json *json, const struct signing_key *row)
{
    char kid[UUID_TEXT_SIZE];
    uuid_format(&row->id, kid);
    json_object_begin(json);
    JSON_MEMBER(json, "kid", string, kid);
    JSON_MEMBER(json, "state", string, lifecycle_state_name(&signing_key_lifecycle, row->state));
    write_text(json, "algorithm", row->algorithm);
    write_text(json, "environment", row->environment);
    write_time(json, "created_at", row->created_us);
    write_text(json, "created_by", row->created_by);
    write_time(json, "rotated_at", row->rotated_us);
    write_time(json, "expires_at", row->expires_us);
    write_time(json, "ended_at", row->ended_us);
    write_text(json, "ended_by", row->ended_by);
    write_text(json, "ended_for", row->ended_for);
    json_key(json, "jwk");
    json_raw(json, row->public_jwk.bytes, row->public_jwk.size);
    json_object_end(json);
}

static void write_row(struct sheet *s, const struct signing_key *row, struct span key)
{
    struct json *json = sheet_row(s);
    if (!json)
        return;
    write_key(json, row);
    sheet_keep(s, key);
}

/* From the newest, or behind the page before; living: those that haven't ended. */
static enum error read_keys(const struct keyring *keyring, bool living, struct sheet *s)
{
    struct signing_key row;
    struct key start = s->from;
    uint8_t most[16];
    memset(most, 0xff, sizeof(most));
    if (start.size == 0)
        key_add(&start, most, sizeof(most));
    struct view *view = store_here() ? view_open(store_here()) : NULL;
    if (!view)
        return ERR_UNAVAILABLE;
    struct scan scan = txn_scan(&view->txn, TABLE_SIGNING_KEYS, key_span(&start), 0, SCAN_DOWN);
    while (!s->more && scan_next(&scan) && scan_read(&scan, &row) == OK)
        if (!sheet_passed(s, scan.key) &&
            span_equal(row.environment, span_text(keyring_environment(keyring))) &&
            !(living && lifecycle_terminal(&signing_key_lifecycle, row.state)))
            write_row(s, &row, scan.key);
    enum error e = scan_end(&scan);
    view_close(view);
    return e;
}

static void serve_keys(const struct request *q, struct response *r)
{
    struct keyring *keyring = keyring_of(q, r);
    struct keyring_figures figures;
    struct sheet sheet;
    struct json json;
    if (!keyring)
        return;
    sheet_init(&sheet, SHEET_MAX);
    enum error e = read_keys(keyring, true, &sheet);
    if (e) {
        refuse(r, e, "the keys");
        return;
    }
    keyring_figures(keyring, &figures);
    response_begin(r, 200, RESPONSE_JSON);
    json_init(&json, &r->sink);
    json_object_begin(&json);
    JSON_MEMBER(&json, "issuer", string, keyring_issuer(keyring));
    JSON_MEMBER(&json, "environment", string, keyring_environment(keyring));
    JSON_MEMBER(&json, "active_kid", string, figures.active[0] ? figures.active : NULL);
    write_time(&json, "next_rotation_at", figures.next_rotation_us);
    JSON_MEMBER(&json, "cadence_seconds", uint, figures.cadence_s);
    JSON_MEMBER(&json, "overlap_seconds", uint, figures.overlap_s);
    JSON_MEMBER(&json, "revocation_sla_seconds", uint, figures.revocation_s);
    JSON_MEMBER(&json, "key_set_age_seconds", uint, figures.set_age_s);
    JSON_MEMBER(&json, "verified_with", uint, figures.keys);
    JSON_MEMBER(&json, "revocations", uint, figures.revoked);
    sheet_write(&sheet, "keys", &json);
    json_object_end(&json);
}

static void serve_history(const struct request *q, struct response *r)
{
    static const struct sheet_list list = {.name = "keys", .number = KEYS_LIST};
    struct keyring *keyring = keyring_of(q, r);
    struct sheet sheet;
    if (!keyring || !sheet_take(q, r, &list, &sheet))
        return;
    enum error e = read_keys(keyring, false, &sheet);
    if (e)
        refuse(r, e, "the keys");
    else
        sheet_answer(q, r, &list, &sheet);
}

static void serve_jwks(const struct request *q, struct response *r)
{
    struct keyring *keyring = keyring_of(q, r);
    struct keyring_figures figures;
    struct json json;
    if (!keyring)
        return;
    keyring_figures(keyring, &figures);
    response_begin(r, 200, RESPONSE_JSON);
    /* For as long another verifier may not know of a revocation. */
    response_header(r, "Cache-Control", "public, max-age=%llu", (unsigned long long)figures.revocation_s);
    json_init(&json, &r->sink);
    keyring_write_jwks(keyring, &json);
}

/* One key, which was just made. */
static void answer_key(struct response *r, int status, const char *kid)
{
    struct sheet sheet;
    struct signing_key row;
    struct uuid id;
    bool good = uuid_parse(kid, strlen(kid), &id);
    struct key key = key_of_uuid(&id);
    struct view *view = good ? view_open(store_here()) : NULL;
    enum error e = view ? txn_read(&view->txn, TABLE_SIGNING_KEYS, key_span(&key), &row) : ERR_UNAVAILABLE;
    sheet_init(&sheet, 1);
    if (!e)
        write_row(&sheet, &row, key_span(&key));
    if (!e && sheet.count == 0)
        e = ERR_DAMAGED;
    if (view)
        view_close(view);
    if (e) {
        refuse(r, e, "the new key");
        return;
    }
    response_begin(r, status, RESPONSE_JSON);
    if (status == 201)
        response_header(r, "Location", "/keys/%s", kid);
    json_sink_bytes(&r->sink, sheet.bytes, sheet.size);
}

static void rotate(const struct request *q, struct response *r, bool first)
{
    const struct keyring_order order = order_of(q);
    char kid[UUID_TEXT_SIZE];
    if (!keyring_of(q, r))
        return;
    enum error e = keyring_rotate(&order, first, kid, actor_deadline_ms(ORDER_MS));
    if (e == ERR_LIMIT)
        response_error(r, ERROR_OPS_409_CONFLICT,
                       "as many keys are kept as may be: the oldest must end before there is another one");
    else if (e)
        refuse(r, e, first ? "the first key" : "a key that could be rotated");
    else
        answer_key(r, 201, kid);
}

static void serve_bootstrap(const struct request *q, struct response *r)
{
    rotate(q, r, true);
}

static void serve_rotate(const struct request *q, struct response *r)
{
    rotate(q, r, false);
}

static void serve_revoke_key(const struct request *q, struct response *r)
{
    struct keyring *keyring = keyring_of(q, r);
    const struct keyring_order order = order_of(q);
    struct keyring_figures figures;
    struct json json;
    if (!keyring)
        return;
    enum error e = keyring_revoke_key(&order, q->params[0], actor_deadline_ms(ORDER_MS));
    if (e) {
        refuse(r, e, "a key of this kid");
        return;
    }
    keyring_figures(keyring, &figures);
    response_begin(r, 200, RESPONSE_JSON);
    json_init(&json, &r->sink);
    json_object_begin(&json);
    write_text(&json, "kid", q->params[0]);
    JSON_MEMBER(&json, "state", string, "revoked");
    JSON_MEMBER(&json, "active_kid", string, figures.active[0] ? figures.active : NULL);
    json_object_end(&json);
}

/* ---- tokens ---- */

/* "projects": an array of texts, or one text. False: something else, or too many. */
static bool take_projects(const struct request *q, struct keyring_claims *claims)
{
    const struct json_node *root = json_root(q->json), *node = json_member(q->json, root, "projects");
    if (!node)
        return true;
    if (node->kind == JSON_STRING) {
        claims->projects[0] = request_text(q, "projects");
        claims->projects_count = 1;
        return true;
    }
    if (node->kind != JSON_ARRAY || node->count > IDENTITY_PROJECTS_MAX)
        return false;
    for (const struct json_node *child = json_first(q->json, node); child;
         child = json_after(q->json, node, child))
        if (child->kind != JSON_STRING ||
            !json_string_of(q->json, child, actor_alloc(child->length), child->length,
                            &claims->projects[claims->projects_count++]))
            return false;
    return true;
}

static const char *take_claims(const struct request *q, struct keyring_claims *claims)
{
    const struct json_node *root = q->json ? json_root(q->json) : NULL;
    if (!root || root->kind != JSON_OBJECT)
        return "the body must be a JSON object";
    claims->subject = request_text(q, "subject");
    claims->role = request_text(q, "role");
    claims->session = request_text(q, "session_id");
    claims->audience = request_text(q, "audience");
    if (!take_projects(q, claims))
        return "projects must be a list of up to 32 texts";
    const struct json_node *lifetime = json_member(q->json, root, "lifetime_seconds");
    if (lifetime &&
        (lifetime->kind != JSON_NUMBER || !json_uint64_of(q->json, lifetime, &claims->lifetime_s)))
        return "lifetime_seconds must be a whole number";
    return NULL;
}

enum error token_note_issue(const struct request *q, struct span who, const struct keyring_claims *claims,
                            const struct keyring_token *token)
{
    struct uuid_source source;
    struct json_sink sink;
    struct json json;
    char details[2048];
    json_sink_init(&sink, details, sizeof(details), NULL, NULL);
    json_init(&json, &sink);
    json_object_begin(&json);
    write_text(&json, "subject", claims->subject);
    write_text(&json, "role", claims->role);
    JSON_MEMBER(&json, "kid", string, token->kid);
    JSON_MEMBER(&json, "projects", uint, claims->projects_count);
    write_time(&json, "expires_at", token->expires_s * 1000000);
    json_object_end(&json);
    bool fits = json_end(&json) == JSON_OK;
    uuid_source_init(&source, store_here()->env);
    const struct audit_append entry = {
        .id = uuid_v7(&source),
        .who = span_of(who.bytes, who.size < AUDIT_WHO_MAX ? who.size : AUDIT_WHO_MAX),
        .verb = span_text("token.issued"),
        .target = span_text(token->jti),
        .reason = audits_reason(q),
        .outcome = span_text("done"),
        .request_id = span_of(q->trace.request_id, q->trace.request_id_length),
        .details = span_of(details, fits ? sink.length : 0)};
    return commit_submit(q, &audit_append_class, &entry, NULL, 0, NULL, actor_deadline_ms(ORDER_MS));
}

static void answer_token(struct response *r, const struct keyring_token *token)
{
    struct json json;
    response_begin(r, 201, RESPONSE_JSON);
    response_header(r, "Location", "/tokens/%s", token->jti);
    response_header(r, "Cache-Control", "no-store");
    json_init(&json, &r->sink);
    json_object_begin(&json);
    json_key(&json, "token");
    json_string_n(&json, token->text, token->length);
    JSON_MEMBER(&json, "token_type", string, "Bearer");
    JSON_MEMBER(&json, "kid", string, token->kid);
    JSON_MEMBER(&json, "jti", string, token->jti);
    JSON_MEMBER(&json, "session_id", string, token->session);
    write_time(&json, "expires_at", token->expires_s * 1000000);
    json_object_end(&json);
}

/* The old one of a rotated credential ends before the new one is told (CTL-084). */
static enum error end_replaced(const struct request *q)
{
    const struct keyring_order order = order_of(q);
    const struct span ours = {NULL, 0};
    struct span jti = request_text(q, "replaces");
    return jti.size ? keyring_revoke(&order, REVOCATION_TOKEN, ours, jti, 0, actor_deadline_ms(ORDER_MS))
                    : OK;
}

static void serve_issue(const struct request *q, struct response *r)
{
    struct keyring *keyring = keyring_of(q, r);
    struct keyring_claims *claims = actor_alloc(sizeof(*claims));
    struct keyring_token *token = actor_alloc(sizeof(*token));
    bool unavailable = false;
    if (!keyring)
        return;
    *claims = (struct keyring_claims){.projects_count = 0};
    const char *why = take_claims(q, claims);
    if (!why)
        why = keyring_issue(keyring, claims, token, &unavailable);
    if (why) {
        response_error(r, unavailable ? ERROR_OPS_503_UNAVAILABLE : ERROR_OPS_400_INVALID, "%s", why);
        return;
    }
    enum error e = end_replaced(q);
    if (!e)
        e = token_note_issue(q, order_of(q).who, claims, token);
    if (e)
        refuse(r, e, "the token");
    else
        answer_token(r, token);
}

/* ---- revoking ---- */

struct target {
    enum revocation_kind kind;
    struct span issuer, value;
    uint64_t expires_s;
};

/* A whole token says itself which one it is; whether it is a good one doesn't matter. */
static const char *take_token(const struct request *q, struct target *ret)
{
    struct jwt *jwt = actor_alloc(sizeof(*jwt));
    const char *why = jwt_read(request_text(q, "token"), jwt);
    if (why)
        return why;
    if (jwt->jti.size == 0 || jwt->issuer.size == 0)
        return "it has no jti, or no iss";
    *ret = (struct target){.kind = REVOCATION_TOKEN, .issuer = jwt->issuer, .value = jwt->jti};
    return NULL;
}

static const char *take_target(const struct request *q, struct target *ret)
{
    static const struct {
        const char *name;
        enum revocation_kind kind;
    } members[] = {{"jti", REVOCATION_TOKEN},
                   {"kid", REVOCATION_KEY},
                   {"session_id", REVOCATION_SESSION},
                   {"subject", REVOCATION_SUBJECT}};
    const struct span issuer = request_text(q, "issuer");
    uint32_t count = 0;
    if (request_text(q, "token").size) {
        const char *why = take_token(q, ret);
        if (why)
            return why;
        count++;
    }
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        struct span value = request_text(q, members[i].name);
        if (!value.size)
            continue;
        *ret = (struct target){.kind = members[i].kind, .issuer = issuer, .value = value};
        count++;
    }
    if (count != 1)
        return "one of token, jti, kid, session_id and subject must be given";
    if (issuer.size && !request_text(q, "jti").size && !request_text(q, "kid").size)
        return "issuer is that of a jti or a kid, and neither is given";
    return NULL;
}

/* Whether a token of that id has come here. One that was issued and not used yet has not. */
static bool seen(const struct keyring *keyring, const struct target *target)
{
    struct store *store = store_here();
    struct view *view = store ? view_open(store) : NULL;
    struct seen_token row;
    if (!view)
        return false;
    struct span issuer = target->issuer.size ? target->issuer : span_text(keyring_issuer(keyring));
    struct uuid id = seen_token_id(store, issuer, target->value);
    struct key key = key_of_uuid(&id);
    enum error e = txn_read(&view->txn, TABLE_SEEN_TOKENS, key_span(&key), &row);
    view_close(view);
    return e == OK;
}

static void revoke_target(const struct request *q, struct response *r, const struct target *target)
{
    const struct keyring_order order = order_of(q);
    struct json json;
    enum error e = keyring_revoke(&order, target->kind, target->issuer, target->value, target->expires_s,
                                  actor_deadline_ms(ORDER_MS));
    if (e) {
        refuse(r, e, "what is to be revoked");
        return;
    }
    response_begin(r, 200, RESPONSE_JSON);
    json_init(&json, &r->sink);
    json_object_begin(&json);
    JSON_MEMBER(&json, "revoked", string, revocation_kind_name((uint8_t)target->kind));
    write_text(&json, "value", target->value);
    if (target->kind == REVOCATION_TOKEN)
        JSON_MEMBER(&json, "seen", bool, seen(q->front->keyring, target));
    json_object_end(&json);
}

static void serve_revoke(const struct request *q, struct response *r)
{
    struct target target = {.kind = REVOCATION_TOKEN};
    if (!keyring_of(q, r))
        return;
    const char *why = take_target(q, &target);
    if (why)
        response_error(r, ERROR_OPS_400_INVALID, "%s", why);
    else
        revoke_target(q, r, &target);
}

static void serve_revoke_jti(const struct request *q, struct response *r)
{
    const struct target target = {.kind = REVOCATION_TOKEN, .value = q->params[0]};
    if (keyring_of(q, r))
        revoke_target(q, r, &target);
}

/* ---- the tables ---- */

const struct route jwks_routes[] = {
    {.method = METHOD_GET,
     .path = "/.well-known/jwks.json",
     .surface = SURFACE_PUBLIC,
     .quiet = true,
     .serve = serve_jwks},
};
const size_t jwks_routes_count = sizeof(jwks_routes) / sizeof(*jwks_routes);

#define SEEN(path_, serve_)                                                                      \
    {                                                                                            \
        .method = METHOD_GET, .path = path_, .surface = SURFACE_OPERATOR, .auth = AUTH_OPERATOR, \
        .serve = serve_                                                                          \
    }
#define CHANGE(path_, serve_, ...)                                                                \
    {                                                                                             \
        .method = METHOD_POST, .path = path_, .surface = SURFACE_OPERATOR, .auth = AUTH_OPERATOR, \
        .body_max = TOKENS_BODY_MAX, .changes = true, .serve = serve_, __VA_ARGS__                \
    }

const struct route token_routes[] = {
    SEEN("/keys", serve_keys),
    SEEN("/keys/history", serve_history),
    CHANGE("/keys:bootstrap", serve_bootstrap, .body_optional = true),
    CHANGE("/keys:rotate", serve_rotate, .body_optional = true),
    CHANGE("/keys/{kid}:revoke", serve_revoke_key, .body_optional = true, .colons = true),
    CHANGE("/tokens:issue", serve_issue, .body_optional = false),
    CHANGE("/tokens", serve_issue, .alias_of = "/tokens:issue"),
    CHANGE("/tokens:revoke", serve_revoke, .body_optional = false),
    CHANGE("/tokens/{jti}:revoke", serve_revoke_jti, .body_optional = true, .colons = true),
};
const size_t token_routes_count = sizeof(token_routes) / sizeof(*token_routes);
