#include "http/principals.h"

#include "http/api_key_auth.h"
#include "http/audits.h"
#include "http/commit.h"
#include "http/front.h"
#include "http/json_text.h"
#include "http/sheet.h"
#include "store/principal.h"
#include "store/token.h"
#include "store/view.h"

enum {
    PRINCIPALS_LIST = 4, /* the number of this list in its tokens */
    ORDER_MS = 10000     /* the keyring's actor waits for the store, too */
};

/* ---- what was asked for ---- */

static bool is_name(struct span name, uint32_t most)
{
    const char *at = name.bytes;
    for (uint32_t i = 0; i < name.size; i++)
        if (!(at[i] >= 'a' && at[i] <= 'z') && !(at[i] >= 'A' && at[i] <= 'Z') &&
            !(at[i] >= '0' && at[i] <= '9') && (!at[i] || !strchr("._:@-", at[i])))
            return false;
    return name.size > 0 && name.size <= most;
}

/* ["a", "b"] as "a b"; without bytes: they can't be meant. */
static struct span take_projects(const struct request *q)
{
    const struct json_node *node = json_member(q->json, json_root(q->json), "projects");
    char *list = actor_alloc(PRINCIPAL_PROJECTS_MAX + 1);
    uint32_t used = 0;
    if (!node || node->kind != JSON_ARRAY || node->count == 0 || node->count > IDENTITY_PROJECTS_MAX)
        return span_of(NULL, 0);
    for (const struct json_node *n = json_first(q->json, node); n; n = json_after(q->json, node, n)) {
        struct span name;
        char room[IDENTITY_SUBJECT_MAX + 1];
        bool text = n->kind == JSON_STRING && json_string_of(q->json, n, room, sizeof(room), &name);
        bool all = text && node->count == 1 && span_equal(name, span_text("*"));
        if (!text || (!all && !is_name(name, IDENTITY_SUBJECT_MAX)))
            return span_of(NULL, 0);
        if (used)
            list[used++] = ' ';
        memcpy(list + used, name.bytes, name.size);
        used += name.size;
    }
    return span_of(list, used);
}
STATIC_ASSERT(IDENTITY_PROJECTS_MAX *(IDENTITY_SUBJECT_MAX + 1) - 1 == PRINCIPAL_PROJECTS_MAX,
              "as many projects as a token has");

static const char *take_new(const struct request *q, struct principal_put *c)
{
    c->name = request_text(q, "name");
    c->role = request_text(q, "role");
    c->projects = take_projects(q);
    c->agent_template = request_text(q, "agent_template");
    c->tier = request_text(q, "tier");
    bool agent = role_of(c->role) == ROLE_AGENT;
    if (!is_name(c->name, PRINCIPAL_NAME_MAX))
        return "name must have 1 to 112 letters, digits, and . _ : @ -";
    if (!role_of(c->role))
        return "role must be one of the roles";
    if (c->projects.size == 0)
        return "projects must be a list of 1 to 32 names, or [\"*\"]";
    if (!agent && (c->agent_template.size || c->tier.size))
        return "agent_template and tier are an agent's";
    if (c->agent_template.size > PRINCIPAL_TEMPLATE_MAX)
        return "agent_template must have at most 64 bytes";
    if (c->tier.size && (c->tier.size > 1 || !strchr("ABC", *(const char *)c->tier.bytes)))
        return "tier must be A, B or C";
    return NULL;
}

static struct keyring_order order_of(const struct request *q)
{
    struct span who = q->identity.subject;
    return (struct keyring_order){.who = who.size && who.size <= AUDIT_WHO_MAX ? who : span_text("operator"),
                                  .reason = audits_reason(q),
                                  .request_id = span_of(q->trace.request_id, q->trace.request_id_length)};
}

static struct uuid new_id(void)
{
    struct uuid_source source;
    uuid_source_init(&source, store_here()->env);
    return uuid_v7(&source);
}

static void refuse(struct response *r, enum error e)
{
    switch (e) {
    case ERR_NOT_FOUND:
        response_error(r, ERROR_OPS_404_NOT_FOUND, "there is no principal of this name");
        break;
    case ERR_EXISTS:
        response_error(r, ERROR_OPS_409_CONFLICT, "there is a principal of this name");
        break;
    case ERR_INVALID:
        response_error(r, ERROR_OPS_400_INVALID, "this principal can't be meant");
        break;
    case ERR_LIMIT:
        response_error(r, ERROR_OPS_409_CONFLICT, "there are as many principals, or revocations, as may be");
        break;
    default:
        response_error(r, catalogue_code(r->surface, catalogue_failure(e)), "%s", catalogue_sentence(e));
    }
}

static bool has_keyring(const struct request *q, struct response *r)
{
    if (!q->front->keyring)
        response_error(r, ERROR_OPS_503_UNAVAILABLE, "this server issues no tokens");
    return q->front->keyring != NULL;
}

/* ---- what is told ---- */

static void write_text(struct json *json, const char *name, struct span text)
{
    json_key(json, name);
    if (text.size)
        json_string_n(json, text.bytes, text.size);
    else
        json_null(json);
}

static void write_time(struct json *json, const char *name, uint64_t us)
{
    char text[TIME_TEXT_SIZE];
    time_format(us, text);
    JSON_MEMBER(json, name, string, text);
}

static void write_projects(struct json *json, struct span list)
{
    const char *at = list.bytes, *end = at + list.size;
    json_key(json, "projects");
    json_array_begin(json);
    while (at < end) {
        const char *space = memchr(at, ' ', (size_t)(end - at));
        size_t size = (size_t)((space ? space : end) - at);
        json_string_n(json, at, size);
        at += size + 1;
    }
    json_array_end(json);
}

static void write_members(struct json *json, const struct principal *row)
{
    write_text(json, "name", row->name);
    write_text(json, "role", row->role);
    write_projects(json, row->projects);
    write_text(json, "agent_template", row->agent_template);
    write_text(json, "tier", row->tier);
}

/* The one time. */
static void write_secret(struct json *json, struct span name, const char *secret)
{
    write_text(json, "client_id", name);
    JSON_MEMBER(json, "client_secret", string, secret);
}

/* ---- changing ---- */

static enum error put(const struct request *q, struct principal_put *c, char ret_secret[API_KEY_TEXT_SIZE])
{
    const struct keyring_order order = order_of(q);
    uint8_t secret[API_KEY_SECRET_SIZE];
    actor_random_bytes(secret, sizeof(secret));
    c->hash = api_key_hash(secret);
    c->audit = new_id();
    c->who = order.who;
    c->reason = order.reason;
    c->request_id = order.request_id;
    if (c->verb == PRINCIPAL_ROTATE) {
        const struct keyring_end end = keyring_end_of(q->front->keyring);
        c->tokens_us = end.tokens_us;
        c->cut_off_us = end.cut_off_us;
        keyring_expect_end();
    }
    api_key_write(secret, ret_secret);
    explicit_bzero(secret, sizeof(secret));
    return commit_submit(q, &principal_put_class, c, NULL, 0, NULL, actor_deadline_ms(ORDER_MS));
}

/* Whatever was issued up to now, as the commit has it; also when nobody knows whether it was done, or an earlier attempt has done
 * it and could not say so. */
static enum error end_tokens(const struct request *q, struct span name, enum error e)
{
    const struct keyring_order order = order_of(q);
    const bool unsure = e && e != ERR_NOT_FOUND && e != ERR_LIMIT;
    enum error stopped = keyring_stop_subject(&order, name, !e, unsure, actor_deadline_ms(ORDER_MS));
    return stopped && !unsure ? stopped : e;
}

static void serve_create(const struct request *q, struct response *r)
{
    struct principal_put c = {.verb = PRINCIPAL_CREATE};
    char secret[API_KEY_TEXT_SIZE];
    struct json json;
    if (!has_keyring(q, r))
        return;
    const char *why = take_new(q, &c);
    if (why) {
        response_error(r, ERROR_OPS_400_INVALID, "%s", why);
        return;
    }
    enum error e = put(q, &c, secret);
    if (e) {
        refuse(r, e);
        return;
    }
    response_begin(r, 201, RESPONSE_JSON);
    response_header(r, "Location", "/principals/%.*s", (int)c.name.size, (const char *)c.name.bytes);
    json_init(&json, &r->sink);
    json_object_begin(&json);
    write_members(&json, &(struct principal){.name = c.name,
                                             .role = c.role,
                                             .projects = c.projects,
                                             .agent_template = c.agent_template,
                                             .tier = c.tier});
    write_secret(&json, c.name, secret);
    json_object_end(&json);
    explicit_bzero(secret, sizeof(secret));
}

static void serve_rotate(const struct request *q, struct response *r)
{
    struct principal_put c = {.verb = PRINCIPAL_ROTATE, .name = q->params[0]};
    char secret[API_KEY_TEXT_SIZE];
    struct json json;
    if (!has_keyring(q, r))
        return;
    enum error e = ERR_NOT_FOUND;
    if (c.name.size <= PRINCIPAL_NAME_MAX)
        e = end_tokens(q, c.name, put(q, &c, secret));
    if (e) {
        refuse(r, e);
        return;
    }
    response_begin(r, 200, RESPONSE_JSON);
    json_init(&json, &r->sink);
    json_object_begin(&json);
    write_text(&json, "name", c.name);
    write_secret(&json, c.name, secret);
    json_object_end(&json);
    explicit_bzero(secret, sizeof(secret));
}

static enum error take_away(const struct request *q, struct span name)
{
    const struct keyring_order order = order_of(q);
    const struct keyring_end end = keyring_end_of(q->front->keyring);
    const struct principal_remove c = {.name = name,
                                       .audit = new_id(),
                                       .who = order.who,
                                       .reason = order.reason,
                                       .request_id = order.request_id,
                                       .tokens_us = end.tokens_us,
                                       .cut_off_us = end.cut_off_us};
    keyring_expect_end();
    return commit_submit(q, &principal_remove_class, &c, NULL, 0, NULL, actor_deadline_ms(ORDER_MS));
}

static void serve_revoke(const struct request *q, struct response *r)
{
    struct span name = q->params[0];
    enum error e = ERR_NOT_FOUND;
    struct json json;
    if (!has_keyring(q, r))
        return;
    if (name.size <= PRINCIPAL_NAME_MAX)
        e = end_tokens(q, name, take_away(q, name));
    if (e) {
        refuse(r, e);
        return;
    }
    response_begin(r, 200, RESPONSE_JSON);
    json_init(&json, &r->sink);
    json_object_begin(&json);
    write_text(&json, "name", name);
    JSON_MEMBER(&json, "revoked", bool, true);
    json_object_end(&json);
}

/* ---- the list ---- */

static void write_row(struct sheet *s, const struct principal *row, struct span key)
{
    struct json *json = sheet_row(s);
    if (!json)
        return;
    json_object_begin(json);
    write_members(json, row);
    write_time(json, "created_at", row->created_us);
    write_text(json, "created_by", row->created_by);
    write_time(json, "secret_from", row->rotated_us);
    json_object_end(json);
    sheet_keep(s, key);
}

static enum error read_rows(struct sheet *s)
{
    struct principal row;
    struct key first = s->from;
    if (first.size == 0)
        key_add_u8(&first, 0); /* before any name */
    struct view *view = view_open(store_here());
    if (!view)
        return ERR_UNAVAILABLE;
    struct scan scan = txn_scan(&view->txn, TABLE_PRINCIPALS, key_span(&first), 0, SCAN_UP);
    while (!s->more && scan_next(&scan) && scan_read(&scan, &row) == OK)
        if (!sheet_passed(s, scan.key))
            write_row(s, &row, scan.key);
    enum error e = scan_end(&scan);
    view_close(view);
    return e;
}

static void serve_list(const struct request *q, struct response *r)
{
    static const struct sheet_list list = {.name = "principals", .number = PRINCIPALS_LIST};
    sheet_serve(q, r, &list, read_rows, refuse);
}

/* ---- the table ---- */

#define CHANGE(path_, optional, serve_)                                                                  \
    {                                                                                                    \
        .method = METHOD_POST, .path = path_, .surface = SURFACE_OPERATOR, .auth = AUTH_OPERATOR,        \
        .body_max = PRINCIPALS_BODY_MAX, .body_optional = optional, .changes = true, .colons = optional, \
        .serve = serve_                                                                                  \
    }

const struct route principal_routes[] = {
    {.method = METHOD_GET,
     .path = "/principals",
     .surface = SURFACE_OPERATOR,
     .auth = AUTH_OPERATOR,
     .serve = serve_list},
    CHANGE("/principals", false, serve_create),
    CHANGE("/principals/{name}:rotate", true, serve_rotate),
    CHANGE("/principals/{name}:revoke", true, serve_revoke),
};
const size_t principal_routes_count = sizeof(principal_routes) / sizeof(*principal_routes);
