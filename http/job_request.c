#include "http/job_request.h"

#include <stdatomic.h>
#include <stdio.h>

#include "actors/callback_url.h"
#include "actors/jobs.h"
#include "http/idempotency.h"
#include "http/json_text.h"
#include "http/timestamp.h"
#include "store/job_queue.h"
#include "store/ledger.h"
#include "store/store.h"

const char job_request_past[] = "is in the past";

static _Atomic bool private_allowed;

void job_request_configure(const struct job_request_settings *settings)
{
    atomic_store(&private_allowed, settings->allow_private);
}

/* ---- members, by what JSON makes of them ---- */

/* bytes NULL: absent, or null where that is the same. */
struct members {
    struct span type, execution_at, callback, work_kind, key;
    const struct json_node *priority, *payload;
};

enum {
    RULE_NEEDED = 1,
    RULE_NULL = 2,  /* null is as good as absent */
    RULE_NUMBER = 4 /* a number is a text that is wrong, not a type that is */
};
struct rule {
    const char *name;
    size_t offset; /* in struct members */
    unsigned marks;
};

static bool malformed(struct response *r, const char *field, const char *what)
{
    response_error_field(r, ERROR_RFA_REQUEST_MALFORMED, field, what);
    return false;
}

static bool invalid(struct response *r, const char *field, const char *what)
{
    response_error_field(r, ERROR_RFA_JOB_VALIDATION_FAILED, field, what);
    return false;
}

static bool take_text(const struct request *q, struct response *r, const struct rule *rule, struct span *ret)
{
    const struct json_node *node = json_member(q->json, json_root(q->json), rule->name);
    *ret = span_of(NULL, 0);
    if (!node)
        return rule->marks & RULE_NEEDED ? malformed(r, rule->name, "is needed") : true;
    if (node->kind == JSON_NULL && rule->marks & RULE_NULL)
        return true;
    if (node->kind == JSON_NUMBER && rule->marks & RULE_NUMBER) {
        *ret = json_raw_of(q->json, node);
        return true;
    }
    if (node->kind != JSON_STRING)
        return malformed(r, rule->name, "must be a string");
    char *room = node->flags & JSON_ESCAPED ? actor_alloc(node->length) : NULL;
    return json_string_of(q->json, node, room, node->length, ret);
}

static bool take_texts(const struct request *q, struct response *r, const struct rule *rules, size_t count,
                       struct members *ret)
{
    for (size_t i = 0; i < count; i++)
        if (!take_text(q, r, &rules[i], (struct span *)((char *)ret + rules[i].offset)))
            return false;
    if (ret->key.bytes && !idempotency_key_good(ret->key))
        return malformed(r, "idempotency_key", "must have 1 to 255 visible ASCII characters");
    ret->priority = json_member(q->json, json_root(q->json), "priority");
    ret->payload = json_member(q->json, json_root(q->json), "payload");
    return true;
}

/* ---- what they mean ---- */

static bool take_type(struct response *r, struct span name, const struct jobs_settings *s,
                      struct job_submit *c)
{
    for (c->type = 0; c->type < JOB_TYPE_COUNT; c->type++)
        if (span_equal(name, span_text(job_type_name(c->type))))
            return s->types >> c->type & 1 ? true
                                           : invalid(r, "type", "is one that this server doesn't take");
    return invalid(r, "type", "must be EXECUTE, DEFERRED or EMIT_EVENT");
}

/* Whether it is over is asked when it is known that the job isn't there yet: a repeat may come later than the time. */
static bool take_time(struct response *r, struct span text, struct job_submit *c)
{
    if (c->type != JOB_DEFERRED)
        return text.bytes ? invalid(r, "execution_at", "is for DEFERRED jobs only") : true;
    if (!text.bytes)
        return invalid(r, "execution_at", "is needed for a DEFERRED job");
    if (!timestamp_parse(text, &c->execution_us))
        return invalid(
            r, "execution_at",
            "must be an RFC 3339 date and time in UTC that ends in Z, such as 2030-01-01T00:00:00Z");
    return c->execution_us ? true : invalid(r, "execution_at", job_request_past);
}

static bool take_callback(struct response *r, struct span url, struct job_submit *c)
{
    bool allow_private = atomic_load_explicit(&private_allowed, memory_order_relaxed);
    const char *why = "";
    c->callback = url;
    return !url.bytes || callback_url_check(url, allow_private, &why) ? true : invalid(r, "callback", why);
}

static bool take_kind(struct response *r, struct span name, const struct jobs_settings *s,
                      struct job_submit *c)
{
    c->kind = WORK_KIND_NONE;
    if (!name.bytes)
        return true;
    c->kind = work_kind_of(name);
    if (c->kind == WORK_KIND_NONE && name.size >= 2 && memcmp(name.bytes, "x.", 2) == 0)
        return invalid(r, "work_kind", "is one of your own: such jobs go to POST /v1/work:submit");
    if (c->kind == WORK_KIND_NONE)
        return invalid(r, "work_kind", "must be one of the catalogue, which GET /v1/work-kinds shows");
    if (c->kind == WORK_KIND_PAYLOAD_INVALID)
        return invalid(r, "work_kind", "is one whose payload is invalid, and was refused as it should be");
    return work_kind_row(c->kind)->payload_bytes <= s->payload_max
               ? true
               : invalid(r, "work_kind", "has more payload than limits.max_job_payload_bytes allows");
}

static bool take_user_kind(struct response *r, struct span name, struct job_submit *c)
{
    c->kind = WORK_KIND_USER;
    c->kind_name = name;
    return work_kind_user(name)
               ? true
               : invalid(r, "work_kind", "must be x. and 1 to 64 characters of a-z, 0-9, '.', '_' and '-'");
}

static bool take_payload(const struct request *q, struct response *r, const struct json_node *node,
                         const struct jobs_settings *s, struct job_submit *c)
{
    char what[96];
    uint32_t most = s->payload_max < JOB_PAYLOAD_MAX ? s->payload_max : JOB_PAYLOAD_MAX;
    if (node)
        c->payload = json_raw_of(q->json, node);
    if (c->payload.size <= most)
        return true;
    snprintf(what, sizeof(what), "has %u bytes; %u may be sent here", c->payload.size, most);
    return invalid(r, "payload", what);
}

static bool take_priority(const struct request *q, struct response *r, const struct json_node *node,
                          struct job_submit *c)
{
    uint64_t value;
    if (!node)
        return true;
    if (node->kind != JSON_NUMBER || !json_integral(q->json, node))
        return malformed(r, "priority", "must be a whole number");
    if (!json_uint64_of(q->json, node, &value) || value > JOB_PRIORITY_MAX)
        return invalid(r, "priority", "must be from 0 to 9");
    c->priority = (uint8_t)value;
    return true;
}

/* ---- what the request says beside its body ---- */

/* Of the client's own making: ours are never sent twice. */
static struct span repeat_of(const struct request *q)
{
    struct span id = span_of(q->trace.request_id, q->trace.request_id_length);
    return span_equal(q->known[HEADER_REQUEST_ID], id) ? id : span_of(NULL, 0);
}

/* False: answered. */
static bool take_request(const struct request *q, struct response *r, struct span key,
                         const struct jobs_settings *s, struct job_submit *c)
{
    char *trace = actor_alloc(TRACE_PARENT_TEXT + 1);
    c->key = key;
    if (!key.bytes && !idempotency_take_key(q, r, &c->key))
        return false;
    trace_write_parent(&q->trace, trace);
    c->client = q->identity.client;
    c->trace = span_of(trace, TRACE_PARENT_TEXT);
    c->request_id = span_of(q->trace.request_id, q->trace.request_id_length);
    c->repeat = repeat_of(q);
    if (c->key.size > 0 || c->repeat.size > 0)
        c->digest = idempotency_digest(q, "idempotency_key");
    c->should_fail_ppm = s->should_fail_ppm;
    c->runtime_max_ms = s->runtime_max_ms;
    c->payload_max = s->payload_max;
    c->queue_max = s->queue_max;
    c->active_max = s->active_queues ? 0 : s->active_max;
    return true;
}

/* ---- prechecks ---- */

static struct job_submit *begin(void)
{
    struct job_submit *c = actor_alloc(sizeof(*c));
    memset(c, 0, sizeof(*c));
    return c;
}

static bool read_job(const struct request *q, struct response *r, struct job_submit *c)
{
    static const struct rule rules[] = {
        {"type", offsetof(struct members, type), RULE_NEEDED},
        {"execution_at", offsetof(struct members, execution_at), RULE_NULL | RULE_NUMBER},
        {"callback", offsetof(struct members, callback), RULE_NULL},
        {"work_kind", offsetof(struct members, work_kind), 0},
        {"idempotency_key", offsetof(struct members, key), 0},
    };
    const struct jobs_settings s = jobs_settings();
    struct members m;
    return take_texts(q, r, rules, sizeof(rules) / sizeof(*rules), &m) && take_type(r, m.type, &s, c) &&
           take_time(r, m.execution_at, c) && take_callback(r, m.callback, c) &&
           take_kind(r, m.work_kind, &s, c) && (!s.priorities || take_priority(q, r, m.priority, c)) &&
           take_request(q, r, m.key, &s, c);
}

static bool read_work(const struct request *q, struct response *r, struct job_submit *c)
{
    static const struct rule rules[] = {
        {"work_kind", offsetof(struct members, work_kind), RULE_NEEDED},
        {"execution_at", offsetof(struct members, execution_at), RULE_NULL | RULE_NUMBER},
        {"callback", offsetof(struct members, callback), RULE_NULL},
        {"idempotency_key", offsetof(struct members, key), 0},
    };
    const struct jobs_settings s = jobs_settings();
    struct members m;
    if (!take_texts(q, r, rules, sizeof(rules) / sizeof(*rules), &m) || !take_user_kind(r, m.work_kind, c))
        return false;
    c->type = m.execution_at.bytes ? JOB_DEFERRED : JOB_EXECUTE;
    if (m.priority && !s.priorities)
        return invalid(r, "priority", "isn't taken by this server: jobs.priorities is off");
    return take_type(r, span_text(job_type_name(c->type)), &s, c) && take_time(r, m.execution_at, c) &&
           take_callback(r, m.callback, c) && take_payload(q, r, m.payload, &s, c) &&
           take_priority(q, r, m.priority, c) && take_request(q, r, m.key, &s, c);
}

static enum error_code precheck(struct request *q, struct response *r,
                                bool (*read)(const struct request *, struct response *, struct job_submit *))
{
    if (json_root(q->json)->kind != JSON_OBJECT)
        return ERROR_NONE;
    struct job_submit *c = begin();
    if (!read(q, r, c))
        return r->error;
    q->prepared = c;
    return ERROR_NONE;
}

enum error_code job_request_precheck(struct request *q, struct response *r)
{
    return precheck(q, r, read_job);
}

enum error_code job_request_work_precheck(struct request *q, struct response *r)
{
    return precheck(q, r, read_work);
}
