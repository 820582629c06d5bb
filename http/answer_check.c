#include "http/answer_check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "http/json_text.h"

struct check {
    const struct contracts *contracts;
    const struct contract_operation *operation;
    struct response *r;
    const struct json_text *json; /* NULL: no body, or one that isn't looked at */
    char *why;
};

__attribute__((format(printf, 2, 3))) static bool wrong(struct check *c, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(c->why, ANSWER_CHECK_WHY, format, list);
    va_end(list);
    return false;
}

/* ---- the body ---- */

void answer_check_keep(struct response *r, const char *bytes, size_t size)
{
    if (r->streaming || !r->type || !strstr(r->type, "json"))
        return;
    if (!r->kept)
        r->kept = body_take();
    if (!r->kept || size > ANSWER_CHECK_MAX - r->kept_size) {
        r->checked = false;
        return;
    }
    memcpy(r->kept->bytes + r->kept_size, bytes, size);
    r->kept_size += (uint32_t)size;
}

/* What has gone out and what is still here, as one. False: it can't be looked at. */
static bool whole(struct response *r, struct span *ret_body)
{
    *ret_body = span_of(r->body, r->sink.length);
    if (!r->kept)
        return true;
    answer_check_keep(r, r->body, r->sink.length);
    *ret_body = span_of(r->kept->bytes, r->kept_size);
    return r->checked;
}

static bool read_body(struct check *c)
{
    struct json_error error;
    struct span body;
    struct response *r = c->r;
    if (!r->type || !strstr(r->type, "json") || !whole(r, &body))
        return true;
    if (!r->kept && !(r->kept = body_take())) /* for its nodes */
        return true;
    struct json_text *json = actor_alloc(sizeof(*json));
    *json = (struct json_text){.nodes = r->kept->nodes, .nodes_max = BODY_NODES_MAX, .seed = actor_random()};
    if (!json_text_read(json, body, NULL,
                        &error)) /* more than is read of a request is no fault of an answer */
        return error.limit || wrong(c, "is not JSON: %s, at byte %u", error.what, error.at);
    body_used(r->kept, r->kept_size, json->count);
    c->json = json;
    return true;
}

static bool fits(struct check *c, const struct schema *schema)
{
    struct schema_result *result = actor_alloc(sizeof(*result));
    if (!schema || !c->json || schema_check(schema, c->json, json_root(c->json), result))
        return true;
    return wrong(c, "is not what its contract says: %s %s", result->defects[0].pointer,
                 result->defects[0].what);
}

/* ---- what is declared ---- */

static bool same_type(const char *declared, const char *sent)
{
    if (!declared || !sent)
        return declared == sent;
    size_t length = strcspn(declared, ";");
    return length == strcspn(sent, ";") && memcmp(declared, sent, length) == 0;
}

static bool declares(const struct contract_operation *o, int status)
{
    for (uint32_t i = 0; o && i < o->answers_count; i++)
        if (o->answers[i].status == status)
            return true;
    return false;
}

/* `status`: as it is declared, 0 for the default. */
static bool as_declared(struct check *c, int status)
{
    for (uint32_t i = 0; i < c->operation->answers_count; i++)
        if (c->operation->answers[i].status == status && same_type(c->operation->answers[i].type, c->r->type))
            return fits(c, c->operation->answers[i].schema);
    return wrong(c, "has a type that its contract doesn't have: %s", c->r->type ? c->r->type : "none");
}

/* The member that says the status again. */
static bool says_status(struct check *c)
{
    int64_t status = 0;
    const struct json_node *node = json_root(c->json);
    bool envelope = surface_shape(c->r->surface) == SHAPE_ENVELOPE;
    if (envelope)
        node = json_member(c->json, node, "error");
    node = json_member(c->json, node, envelope ? "http_status" : "status");
    return json_int64_of(c->json, node, &status) && status == c->r->status;
}

/* A row of our own: the contracts' lists of codes don't have it, its shape is theirs. */
static bool is_ours(const struct response *r)
{
    return r->error != ERROR_NONE && catalogue_row(r->error)->extension;
}

static bool shaped(struct check *c)
{
    bool envelope = surface_shape(c->r->surface) == SHAPE_ENVELOPE;
    if (c->r->error == ERROR_NONE) /* a probe, which says so in its own words */
        return true;
    if (!same_type(envelope ? RESPONSE_JSON : "application/problem+json", c->r->type))
        return wrong(c, "is a refusal of another type: %s", c->r->type ? c->r->type : "none");
    if (!c->contracts || !c->json)
        return true;
    enum surface surface = !envelope && is_ours(c->r) ? SURFACE_OPERATOR : c->r->surface;
    if (!fits(c, contracts_refusal(c->contracts, surface)))
        return false;
    return says_status(c) || wrong(c, "is a refusal that says another status");
}

bool answer_check(const struct contracts *contracts, const struct contract_operation *operation,
                  struct response *r, char why[ANSWER_CHECK_WHY])
{
    struct check c = {.contracts = contracts, .operation = operation, .r = r, .why = why};
    if (r->failed)
        return true;
    if (!read_body(&c))
        return false;
    if (r->status == 201 && !response_has_header(r, "Location"))
        return wrong(&c, "doesn't say where what it made is");
    if (r->status < 300 && operation)
        return declares(operation, r->status) ? as_declared(&c, r->status)
                                              : wrong(&c, "is one that its contract doesn't have");
    if (r->status < 400)
        return true;
    if (!shaped(&c))
        return false;
    if (is_ours(r))
        return true;
    if (declares(operation, r->status))
        return as_declared(&c, r->status);
    return !declares(operation, 0) || as_declared(&c, 0);
}
