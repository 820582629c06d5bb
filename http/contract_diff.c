#include "http/contract_diff.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/contract.h"

enum { PAIRS_MAX = 1024, WORD_MAX = 256, POINTER_MAX = 384, HOPS_MAX = 8, DEPTH_MAX = 64 };

struct work {
    const struct json_text *old, *now;
    contract_diff_tell *tell;
    void *context;
    struct contract_diff *result;
    bool events, failed;
    int depth;
    uint32_t pairs_count;
    struct {
        const struct json_node *old, *now;
    } pairs[PAIRS_MAX];
};

__attribute__((format(printf, 4, 5))) static void say(struct work *w, bool breaking,
                                                      const struct json_node *place, const char *format, ...)
{
    char text[1024], pointer[POINTER_MAX] = "";
    va_list list;
    if (place) {
        bool new_one = place >= w->now->nodes && place < w->now->nodes + w->now->count;
        json_pointer_to(new_one ? w->now : w->old, place, pointer, sizeof(pointer));
    }
    int n = snprintf(text, sizeof(text), "%s%s", pointer, *pointer ? " " : "");
    va_start(list, format);
    vsnprintf(text + n, sizeof(text) - (size_t)n, format, list);
    va_end(list);
    breaking ? w->result->breaking++ : w->result->compatible++;
    w->tell(w->context, breaking, text);
}

/* ---- the two documents ---- */

/* A name or a short text as C has it; "" for what is longer than anything in a contract. */
static const char *word(const struct json_text *json, const struct json_node *node, char room[WORD_MAX])
{
    struct span text;
    if (!node || node->kind != JSON_STRING || !json_string_of(json, node, room, WORD_MAX, &text) ||
        text.size >= WORD_MAX)
        return "";
    memmove(room, text.bytes, text.size);
    room[text.size] = 0;
    return room;
}

static const struct json_node *member(const struct json_text *json, const struct json_node *object,
                                      const char *name)
{
    return object && object->kind == JSON_OBJECT ? json_member(json, object, name) : NULL;
}

static const struct json_node *resolve(const struct json_text *json, const struct json_node *node)
{
    for (int hops = 0; node && hops < HOPS_MAX; hops++) {
        char room[WORD_MAX];
        const struct json_node *ref = member(json, node, "$ref");
        if (!ref)
            return node;
        const char *at = word(json, ref, room);
        node = json_root(json);
        for (at += *at == '#'; node && *at == '/';) {
            char name[WORD_MAX];
            size_t n = strcspn(++at, "/");
            snprintf(name, sizeof(name), "%.*s", (int)n, at);
            node = member(json, node, name);
            at += n;
        }
    }
    return node;
}

static bool same(struct work *w, const struct json_node *old, const struct json_node *now)
{
    return (!old && !now) || (old && now && json_same(w->old, old, w->now, now));
}

static bool truth(const struct json_node *node)
{
    return node && node->kind == JSON_TRUE;
}

static bool listed(const struct json_text *json, const struct json_node *list, const char *name)
{
    char room[WORD_MAX];
    if (list && list->kind == JSON_ARRAY)
        for (const struct json_node *n = json_first(json, list); n; n = json_after(json, list, n))
            if (strcmp(word(json, n, room), name) == 0)
                return true;
    return false;
}

/* ---- schemas ---- */

static void compare_schema(struct work *w, const struct json_node *old, const struct json_node *now);

static bool is_prose(const char *keyword)
{
    static const char *const prose[] = {"title",    "description", "default",    "example", "examples",
                                        "readOnly", "writeOnly",   "deprecated", "summary", "$comment"};
    for (size_t i = 0; i < sizeof(prose) / sizeof(*prose); i++)
        if (strcmp(keyword, prose[i]) == 0)
            return true;
    return strncmp(keyword, "x-", 2) == 0;
}

static void compare_required(struct work *w, const struct json_node *old, const struct json_node *now)
{
    char room[WORD_MAX];
    const struct json_node *was = member(w->old, old, "required"), *is = member(w->now, now, "required");
    if (was && was->kind == JSON_ARRAY)
        for (const struct json_node *n = json_first(w->old, was); n; n = json_after(w->old, was, n)) {
            const char *name = word(w->old, n, room);
            if (!listed(w->now, is, name))
                say(w, true, old, "doesn't require '%s' any more", name);
        }
    if (is && is->kind == JSON_ARRAY)
        for (const struct json_node *n = json_first(w->now, is); n; n = json_after(w->now, is, n)) {
            const char *name = word(w->now, n, room);
            if (!listed(w->old, was, name))
                say(w, true, now, "requires '%s' now", name);
        }
}

static void compare_properties(struct work *w, const struct json_node *old, const struct json_node *now)
{
    char room[WORD_MAX];
    const struct json_node *was = member(w->old, old, "properties"), *is = member(w->now, now, "properties");
    for (const struct json_node *n = was ? json_first(w->old, was) : NULL; n;
         n = json_after(w->old, was, n)) {
        const char *name = word(w->old, n, room);
        const struct json_node *other = member(w->now, is, name);
        if (other)
            compare_schema(w, json_value_of(n), other);
        else
            say(w, true, old, "has no member '%s' any more", name);
    }
    for (const struct json_node *n = is ? json_first(w->now, is) : NULL; n; n = json_after(w->now, is, n)) {
        const char *name = word(w->now, n, room);
        if (!member(w->old, was, name) && !listed(w->now, member(w->now, now, "required"), name))
            say(w, false, now, "has a new optional member '%s'", name);
    }
}

/* Alternatives by their position; of an event's details there may be more. */
static void compare_alternatives(struct work *w, const char *keyword, const struct json_node *was,
                                 const struct json_node *is)
{
    if (was->kind != JSON_ARRAY || is->kind != JSON_ARRAY || is->count < was->count ||
        (is->count > was->count && !(w->events && strcmp(keyword, "oneOf") == 0))) {
        say(w, true, is, "has other alternatives");
        return;
    }
    const struct json_node *a = json_first(w->old, was), *b = json_first(w->now, is);
    for (; a; a = json_after(w->old, was, a), b = json_after(w->now, is, b))
        compare_schema(w, a, b);
    if (b)
        say(w, false, is, "has a new alternative");
}

static void compare_keyword(struct work *w, const char *keyword, const struct json_node *was,
                            const struct json_node *is)
{
    static const char *const schemas[] = {"items", "additionalProperties", "not", "if", "then", "else"};
    static const char *const lists[] = {"oneOf", "anyOf", "allOf"};
    for (size_t i = 0; i < sizeof(schemas) / sizeof(*schemas); i++)
        if (strcmp(keyword, schemas[i]) == 0 && was->kind == JSON_OBJECT && is->kind == JSON_OBJECT) {
            compare_schema(w, was, is);
            return;
        }
    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++)
        if (strcmp(keyword, lists[i]) == 0) {
            compare_alternatives(w, keyword, was, is);
            return;
        }
    if (!same(w, was, is))
        say(w, true, is, "is another");
}

static void compare_keywords(struct work *w, const struct json_node *old, const struct json_node *now)
{
    char room[WORD_MAX];
    for (const struct json_node *n = json_first(w->old, old); n; n = json_after(w->old, old, n)) {
        const char *keyword = word(w->old, n, room);
        const struct json_node *is = member(w->now, now, keyword);
        if (is_prose(keyword) || strcmp(keyword, "required") == 0 || strcmp(keyword, "properties") == 0)
            continue;
        if (is)
            compare_keyword(w, keyword, json_value_of(n), is);
        else
            say(w, true, old, "has no '%s' any more", keyword);
    }
    for (const struct json_node *n = json_first(w->now, now); n; n = json_after(w->now, now, n)) {
        const char *keyword = word(w->now, n, room);
        if (!is_prose(keyword) && strcmp(keyword, "required") != 0 && strcmp(keyword, "properties") != 0 &&
            !member(w->old, old, keyword))
            say(w, true, now, "has '%s' now", keyword);
    }
}

/* True: this pair is new, and is remembered. */
static bool first_time(struct work *w, const struct json_node *old, const struct json_node *now)
{
    for (uint32_t i = 0; i < w->pairs_count; i++)
        if (w->pairs[i].old == old && w->pairs[i].now == now)
            return false;
    if (w->pairs_count == PAIRS_MAX) {
        w->failed = true;
        return false;
    }
    w->pairs[w->pairs_count].old = old;
    w->pairs[w->pairs_count++].now = now;
    return true;
}

static void compare_schema(struct work *w, const struct json_node *old, const struct json_node *now)
{
    old = resolve(w->old, old);
    now = resolve(w->now, now);
    if (!old && !now)
        return;
    if (!old || !now || old->kind != JSON_OBJECT || now->kind != JSON_OBJECT) {
        if (!same(w, old, now))
            say(w, true, now ? now : old, "is another");
        return;
    }
    if (w->depth == DEPTH_MAX || !first_time(w, old, now)) {
        w->failed |= w->depth == DEPTH_MAX;
        return;
    }
    w->depth++;
    compare_required(w, old, now);
    compare_properties(w, old, now);
    compare_keywords(w, old, now);
    w->depth--;
}

/* Members of two objects by their names; NULL stands for one that isn't there. */
typedef void compare_member(struct work *w, const char *name, const struct json_node *old,
                            const struct json_node *now);

static void compare_members(struct work *w, const struct json_node *old, const struct json_node *now,
                            compare_member *compare)
{
    char room[WORD_MAX];
    bool has_old = old && old->kind == JSON_OBJECT, has_now = now && now->kind == JSON_OBJECT;
    for (const struct json_node *n = has_old ? json_first(w->old, old) : NULL; n;
         n = json_after(w->old, old, n)) {
        const char *name = word(w->old, n, room);
        compare(w, name, json_value_of(n), member(w->now, now, name));
    }
    for (const struct json_node *n = has_now ? json_first(w->now, now) : NULL; n;
         n = json_after(w->now, now, n)) {
        const char *name = word(w->now, n, room);
        if (!member(w->old, old, name))
            compare(w, name, NULL, json_value_of(n));
    }
}

static void compare_named_schema(struct work *w, const char *name, const struct json_node *old,
                                 const struct json_node *now)
{
    if (!now)
        say(w, true, old, "is gone");
    else if (!old)
        say(w, false, now, "is a new schema, '%s'", name);
    else
        compare_schema(w, old, now);
}

/* ---- operations ---- */

static const struct json_node *parameter_named(const struct json_text *json, const struct json_node *item,
                                               const struct json_node *operation, const char *in,
                                               const char *name)
{
    const struct json_node *lists[] = {member(json, item, "parameters"),
                                       member(json, operation, "parameters")};
    for (int i = 0; i < 2; i++)
        for (const struct json_node *n = lists[i] ? json_first(json, lists[i]) : NULL; n;
             n = json_after(json, lists[i], n)) {
            char a[WORD_MAX], b[WORD_MAX];
            const struct json_node *p = resolve(json, n);
            if (strcmp(word(json, member(json, p, "name"), a), name) == 0 &&
                strcmp(word(json, member(json, p, "in"), b), in) == 0)
                return p;
        }
    return NULL;
}

struct operation {
    const struct json_node *item, *node;
};

static void compare_parameters(struct work *w, const struct operation *old, const struct operation *now)
{
    const struct json_node *lists[] = {
        member(w->old, old->item, "parameters"), member(w->old, old->node, "parameters"),
        member(w->now, now->item, "parameters"), member(w->now, now->node, "parameters")};
    for (int i = 0; i < 4; i++) {
        const struct json_text *json = i < 2 ? w->old : w->now;
        for (const struct json_node *n = lists[i] ? json_first(json, lists[i]) : NULL; n;
             n = json_after(json, lists[i], n)) {
            char room[WORD_MAX], place[WORD_MAX];
            const struct json_node *p = resolve(json, n);
            const char *name = word(json, member(json, p, "name"), room);
            const char *in = word(json, member(json, p, "in"), place);
            const struct json_node *other = i < 2 ? parameter_named(w->now, now->item, now->node, in, name)
                                                  : parameter_named(w->old, old->item, old->node, in, name);
            if (i >= 2 && !other)
                say(w, truth(member(json, p, "required")), now->node, "has a new parameter '%s'", name);
            else if (i < 2 && !other)
                say(w, true, old->node, "has no parameter '%s' any more", name);
            else if (i < 2 &&
                     truth(member(w->old, p, "required")) != truth(member(w->now, other, "required")))
                say(w, true, now->node, "has the parameter '%s', but not as %s", name,
                    truth(member(w->old, p, "required")) ? "required" : "optional");
            else if (i < 2)
                compare_schema(w, member(w->old, p, "schema"), member(w->now, other, "schema"));
        }
    }
}

static void compare_form(struct work *w, const char *type, const struct json_node *old,
                         const struct json_node *now)
{
    if (!now)
        say(w, true, old, "is gone");
    else if (!old)
        say(w, false, now, "is a new type, '%s'", type);
    else
        compare_schema(w, member(w->old, old, "schema"), member(w->now, now, "schema"));
}

static void compare_body(struct work *w, const struct operation *a, const struct operation *b)
{
    const struct json_node *old = resolve(w->old, member(w->old, a->node, "requestBody"));
    const struct json_node *now = resolve(w->now, member(w->now, b->node, "requestBody"));
    if (!old && now)
        say(w, truth(member(w->now, now, "required")), b->node, "takes a body now");
    else if (old && !now)
        say(w, true, a->node, "takes no body any more");
    else if (old && now) {
        if (truth(member(w->old, old, "required")) != truth(member(w->now, now, "required")))
            say(w, true, now, "is required, and the other isn't");
        compare_members(w, member(w->old, old, "content"), member(w->now, now, "content"), compare_form);
    }
}

static void compare_header(struct work *w, const char *name, const struct json_node *old,
                           const struct json_node *now)
{
    old = old ? resolve(w->old, old) : NULL;
    now = now ? resolve(w->now, now) : NULL;
    if (!now)
        say(w, true, old, "is gone");
    else if (!old)
        say(w, false, now, "is a new header, '%s'", name);
    else
        compare_schema(w, member(w->old, old, "schema"), member(w->now, now, "schema"));
}

static void compare_answer(struct work *w, const char *status, const struct json_node *old,
                           const struct json_node *now)
{
    if (!now) {
        say(w, true, old, "is gone");
    } else if (!old) {
        say(w, false, now, "is a new answer, %s", status);
    } else {
        old = resolve(w->old, old);
        now = resolve(w->now, now);
        compare_members(w, member(w->old, old, "content"), member(w->now, now, "content"), compare_form);
        compare_members(w, member(w->old, old, "headers"), member(w->now, now, "headers"), compare_header);
    }
}

static void compare_operation(struct work *w, const struct operation *old, const struct operation *now)
{
    if (!now->node) {
        say(w, true, old->node, "is gone");
    } else if (!old->node) {
        say(w, false, now->node, "is a new operation");
    } else {
        if (!same(w, member(w->old, old->node, "operationId"), member(w->now, now->node, "operationId")))
            say(w, true, now->node, "has another operationId");
        if (!same(w, member(w->old, old->node, "security"), member(w->now, now->node, "security")))
            say(w, true, now->node, "has another security");
        compare_parameters(w, old, now);
        compare_body(w, old, now);
        compare_members(w, member(w->old, old->node, "responses"), member(w->now, now->node, "responses"),
                        compare_answer);
    }
}

static void compare_path(struct work *w, const char *path, const struct json_node *old,
                         const struct json_node *now)
{
    static const char *const methods[] = {"get", "put", "post", "delete", "patch"};
    (void)path;
    for (size_t i = 0; i < sizeof(methods) / sizeof(*methods); i++) {
        struct operation a = {old, member(w->old, old, methods[i])},
                         b = {now, member(w->now, now, methods[i])};
        if (a.node || b.node)
            compare_operation(w, &a, &b);
    }
}

static void compare_scheme(struct work *w, const char *name, const struct json_node *old,
                           const struct json_node *now)
{
    (void)name;
    if (!now || (old && (!same(w, member(w->old, old, "type"), member(w->now, now, "type")) ||
                         !same(w, member(w->old, old, "scheme"), member(w->now, now, "scheme")))))
        say(w, true, now ? now : old, now ? "is another" : "is gone");
}

static void compare_openapi(struct work *w, const struct json_node *old, const struct json_node *now)
{
    const struct json_node *a = member(w->old, old, "servers"), *b = member(w->now, now, "servers");
    a = a ? json_first(w->old, a) : NULL;
    b = b ? json_first(w->now, b) : NULL;
    if (!same(w, member(w->old, a, "url"), member(w->now, b, "url")))
        say(w, true, b, "is another server");
    if (!same(w, member(w->old, old, "security"), member(w->now, now, "security")))
        say(w, true, now, "has another security");
    compare_members(w, member(w->old, old, "paths"), member(w->now, now, "paths"), compare_path);
    compare_members(w, member(w->old, member(w->old, old, "components"), "securitySchemes"),
                    member(w->now, member(w->now, now, "components"), "securitySchemes"), compare_scheme);
}

/* ---- channels ---- */

static void compare_message(struct work *w, const char *name, const struct json_node *old,
                            const struct json_node *now)
{
    if (!now)
        say(w, true, old, "is gone");
    else if (!old)
        say(w, false, now, "is a new message, '%s'", name);
    else
        compare_schema(w, member(w->old, resolve(w->old, old), "payload"),
                       member(w->now, resolve(w->now, now), "payload"));
}

static void compare_channel(struct work *w, const char *name, const struct json_node *old,
                            const struct json_node *now)
{
    if (!now) {
        say(w, true, old, "is gone");
    } else if (!old) {
        say(w, false, now, "is a new channel, '%s'", name);
    } else {
        if (!same(w, member(w->old, old, "address"), member(w->now, now, "address")))
            say(w, true, now, "has another address");
        compare_members(w, member(w->old, old, "messages"), member(w->now, now, "messages"), compare_message);
    }
}

/* ---- documents ---- */

static unsigned long major_of(const struct json_text *json)
{
    char room[WORD_MAX];
    return strtoul(word(json, member(json, member(json, json_root(json), "info"), "version"), room), NULL,
                   10);
}

bool contract_diff(const struct json_text *old, const struct json_text *now, contract_diff_tell *tell,
                   void *context, struct contract_diff *ret)
{
    const struct json_node *a = json_root(old), *b = json_root(now);
    char room[WORD_MAX];
    struct work w = {.old = old, .now = now, .tell = tell, .context = context, .result = ret};
    *ret = (struct contract_diff){0};
    w.events = member(now, b, "asyncapi");
    if (!member(old, a, w.events ? "asyncapi" : "openapi") ||
        !member(now, b, w.events ? "asyncapi" : "openapi"))
        return false;
    if (w.events)
        compare_members(&w, member(old, a, "channels"), member(now, b, "channels"), compare_channel);
    else
        compare_openapi(&w, a, b);
    compare_members(&w, member(old, member(old, a, "components"), "schemas"),
                    member(now, member(now, b, "components"), "schemas"), compare_named_schema);
    ret->major_raised = major_of(now) > major_of(old);
    ret->guide = *word(now, member(now, member(now, b, "info"), "x-migration-guide-ref"), room) != 0;
    ret->allowed = ret->breaking == 0 || (ret->major_raised && ret->guide);
    return !w.failed;
}

/* ---- the table of events ---- */

static bool find_event(struct span table, struct span name, struct contract_event *ret_row)
{
    size_t at = 0;
    while (contract_event_next(table, &at, ret_row))
        if (span_equal(ret_row->name, name))
            return true;
    return false;
}

static void say_event(contract_diff_tell *tell, void *context, bool breaking, struct span name,
                      const char *what, struct contract_diff *ret)
{
    char text[256];
    snprintf(text, sizeof(text), "the event %.*s %s", (int)name.size, (const char *)name.bytes, what);
    breaking ? ret->breaking++ : ret->compatible++;
    tell(context, breaking, text);
}

bool contract_diff_events(struct span old, struct span now, contract_diff_tell *tell, void *context,
                          struct contract_diff *ret)
{
    struct contract_event a, b;
    size_t at = 0;
    *ret = (struct contract_diff){0};
    while (contract_event_next(old, &at, &a)) {
        if (!find_event(now, a.name, &b))
            say_event(tell, context, true, a.name, "is gone", ret);
        else if (!span_equal(a.channel, b.channel))
            say_event(tell, context, true, a.name, "is on another channel", ret);
        else if (!span_equal(a.details, b.details) || !span_equal(a.requires, b.requires) ||
                 !span_equal(a.fixed, b.fixed))
            say_event(tell, context, true, a.name, "has other details", ret);
    }
    if (at != old.size)
        return false;
    for (at = 0; contract_event_next(now, &at, &b);)
        if (!find_event(old, b.name, &a))
            say_event(tell, context, false, b.name, "is new", ret);
    ret->allowed = ret->breaking == 0;
    return at == now.size;
}
