/* Checking. Each schema is asked quietly first: then the first defect ends it, and nothing is written. Only when the value is
 * found wrong, and somebody wants to know why, the same is done again with a result to fill. */
#include "http/schema_rules.h"

#include <stdarg.h>
#include <stdio.h>

enum { ROOM = 4096 /* for a string with escapes that a format, a pattern or the like looks at */ };

struct check {
    const struct json_text *json;
    struct schema_result *result; /* NULL: quiet */
    int64_t steps;                /* left */
    uint32_t depth;
    uint32_t missing; /* how many of the result's defects are DEFECT_MISSING; they stand first */
    bool bare;        /* the value is a parameter's text */
};

static bool check(struct check *c, const struct schema *s, const struct json_node *node);

/* ---- defects ---- */

/* Where to write the next defect, with its kind and the value's pointer; NULL: there are enough. */
static struct schema_defect *defect_place(struct check *c, enum schema_defect_kind kind,
                                          const struct json_node *node)
{
    struct schema_result *r = c->result;
    uint32_t kept = r->count < SCHEMA_DEFECTS_MAX ? r->count : SCHEMA_DEFECTS_MAX;
    uint32_t at = kind == DEFECT_MISSING ? c->missing : kept;
    r->count++;
    if (at == SCHEMA_DEFECTS_MAX)
        return NULL;
    if (kind == DEFECT_MISSING)
        c->missing++;
    if (kept == SCHEMA_DEFECTS_MAX)
        kept--;
    memmove(&r->defects[at + 1], &r->defects[at], (kept - at) * sizeof r->defects[0]);
    r->defects[at].kind = kind;
    json_pointer_to(c->json, node, r->defects[at].pointer, sizeof r->defects[at].pointer);
    return &r->defects[at];
}

/* Always false. */
__attribute__((format(printf, 4, 5), noinline)) static bool
defect(struct check *c, enum schema_defect_kind kind, const struct json_node *node, const char *format, ...)
{
    struct schema_defect *place;
    va_list args;
    if (!c->result || !(place = defect_place(c, kind, node)))
        return false;
    va_start(args, format);
    vsnprintf(place->what, sizeof place->what, format, args);
    va_end(args);
    return false;
}

/* The pointer to a member that isn't there: its object's and its name. */
__attribute__((noinline)) static void defect_missing(struct check *c, const struct json_node *object,
                                                     struct span name)
{
    struct schema_defect *place = defect_place(c, DEFECT_MISSING, object);
    const char *p = name.bytes;
    size_t length;
    if (!place)
        return;
    snprintf(place->what, sizeof place->what, "is required");
    length = strlen(place->pointer);
    if (length + 1 < sizeof place->pointer)
        place->pointer[length++] = '/';
    for (uint32_t i = 0; i < name.size && length + 2 < sizeof place->pointer; i++) {
        bool escaped = p[i] == '~' || p[i] == '/';
        if (escaped)
            place->pointer[length++] = '~';
        place->pointer[length++] = !escaped ? p[i] : p[i] == '~' ? '0' : '1';
    }
    place->pointer[length] = 0;
}

/* ---- words about a schema ---- */

struct words {
    char text[sizeof(((struct schema_defect *)0)->what) - sizeof "must be one of "];
    size_t length;
    bool full;
};

/* Whole or not at all; behind the last that fits come dots. */
static void words_add(struct words *w, const char *before, struct span text)
{
    size_t lead = strlen(before);
    if (w->full || w->length + lead + text.size + sizeof ", ..." > sizeof w->text) {
        if (!w->full)
            memcpy(w->text + w->length, w->length ? ", ..." : "...", w->length ? 6 : 4);
        w->full = true;
        return;
    }
    memcpy(w->text + w->length, before, lead);
    memcpy(w->text + w->length + lead, text.bytes, text.size);
    w->length += lead + text.size;
    w->text[w->length] = 0;
}

static void words_value(struct words *w, const struct json_text *document, const struct json_node *value)
{
    struct span text = json_raw_of(document, value);
    if (value->kind == JSON_STRING && text.size > 2)
        text = span_of((const char *)text.bytes + 1, text.size - 2);
    words_add(w, w->length ? ", " : "", text);
}

/* False: what the schema allows is no list of values. */
static bool words_values(struct words *w, const struct schema *s)
{
    const struct json_text *document = &s->schemas->document;
    if (s->constant)
        words_value(w, document, s->constant);
    else if (s->values)
        for (const struct json_node *at = json_first(document, s->values); at;
             at = json_after(document, s->values, at))
            words_value(w, document, at);
    else
        return false;
    return true;
}

static bool defect_value(struct check *c, const struct schema *s, const struct json_node *node)
{
    struct words words = {0};
    if (!c->result)
        return false;
    words_values(&words, s);
    return defect(c, DEFECT_VALUE, node, s->constant ? "must be %s" : "must be one of %s", words.text);
}

static bool defect_type(struct check *c, unsigned types, const struct json_node *node)
{
    static const struct {
        unsigned kinds;
        const char *name;
    } names[] = {
        {KIND(JSON_OBJECT), "an object"}, {KIND(JSON_ARRAY), "an array"}, {KIND(JSON_STRING), "a string"},
        {KIND(JSON_NUMBER), "a number"},  {KIND_INTEGER, "an integer"},   {KIND(JSON_TRUE), "true or false"},
        {KIND(JSON_NULL), "null"},
    };
    struct words words = {0};
    if (!c->result)
        return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (types & names[i].kinds)
            words_add(&words, words.length ? " or " : "", span_text(names[i].name));
    return defect(c, DEFECT_TYPE, node, "must be %s", words.text);
}

/* ---- numbers ---- */

/* A number as an integer and whether it is more than that; not small: it is another. */
struct small {
    int64_t floor;
    bool more, small;
};

/* Below 0, 0 or above 0. */
static int compare_to(const struct check *c, const struct schema *s, const struct json_node *node,
                      const struct bound *bound, const struct small *n)
{
    if (n->small && bound->small)
        return (n->floor > bound->value) - (n->floor < bound->value) + (n->floor == bound->value && n->more);
    return json_number_compare(c->json, node, &s->schemas->document, bound->node);
}

static bool check_bounds(struct check *c, const struct schema *s, const struct json_node *node)
{
    static const char *const whats[] = {[BOUND_MINIMUM] = "at least",
                                        [BOUND_MAXIMUM] = "at most",
                                        [BOUND_ABOVE] = "above",
                                        [BOUND_BELOW] = "below"};
    struct small n = {.floor = 0};
    n.small = json_floor_of(c->json, node, &n.floor, &n.more);
    if (!n.small) {
        n.more = false;
        n.small = json_int64_of(c->json, node, &n.floor);
    }
    int64_t value = n.floor;
    bool small = n.small && !n.more;
    for (unsigned i = 0; i < BOUND_KINDS; i++) {
        const struct bound *bound = &s->bounds[i];
        struct span raw;
        int order;
        if (!bound->node)
            continue;
        order = compare_to(c, s, node, bound, &n);
        if (i == BOUND_MINIMUM   ? order >= 0
            : i == BOUND_MAXIMUM ? order <= 0
            : i == BOUND_ABOVE   ? order > 0
                                 : order < 0)
            continue;
        raw = json_raw_of(&s->schemas->document, bound->node);
        return defect(c, DEFECT_RANGE, node, "must be %s %.*s", whats[i], (int)raw.size,
                      (const char *)raw.bytes);
    }
    if (s->integer_bits && (!small || (s->integer_bits == 32 && value != (int32_t)value)))
        return defect(c, DEFECT_RANGE, node, "must be an integer of %u bits", s->integer_bits);
    if (s->multiple) {
        uint64_t size = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
        if ((!small && !json_uint64_of(c->json, node, &size)) || size % s->multiple)
            return defect(c, DEFECT_RANGE, node, "must be a multiple of %llu",
                          (unsigned long long)s->multiple);
    }
    return true;
}

static bool check_number(struct check *c, const struct schema *s, const struct json_node *node)
{
    if (s->types & KIND_INTEGER && !(s->types & KIND(JSON_NUMBER))) {
        int64_t value;
        uint64_t size;
        if (!json_integral(c->json, node) || (c->bare && !(node->flags & JSON_INTEGER)))
            return defect_type(c, s->types, node);
        if ((!(node->flags & JSON_INTEGER) || node->length > 18) && !json_int64_of(c->json, node, &value) &&
            !json_uint64_of(c->json, node, &size))
            return defect(c, DEFECT_RANGE, node, "must be an integer of 64 bits");
    }
    if (!json_finite(c->json, node))
        return defect(c, DEFECT_RANGE, node, "is no number that can be held");
    return !s->bounded || check_bounds(c, s, node);
}

/* ---- strings ---- */

static bool check_text(struct check *c, const struct schema *s, const struct json_node *node,
                       struct span text)
{
    if (s->format && !text_has_format(text, s->format))
        return defect(c, DEFECT_FORMAT, node, "%s", text_format_what(s->format));
    if (s->pattern && !text_matches(text, s->pattern))
        return defect(c, DEFECT_FORMAT, node, "%s", text_pattern_what(s->pattern));
    return true;
}

/* Apart from the other: few strings have escapes, and the room is a page of stack. */
__attribute__((noinline)) static bool check_escaped(struct check *c, const struct schema *s,
                                                    const struct json_node *node)
{
    char room[ROOM];
    struct span text;
    if (!json_string_of(c->json, node, room, sizeof room, &text))
        return defect(c, DEFECT_FORMAT, node, "is too long");
    return check_text(c, s, node, text);
}

static bool check_length(struct check *c, const struct schema *s, const struct json_node *node)
{
    uint32_t most = node->flags & JSON_BARE ? node->length : node->length - 2; /* characters there can be */
    uint32_t least = node->flags & JSON_ESCAPED ? most / 12 : most / 4; /* and that there are at least */
    if (most <= s->length_max && least >= s->length_min)
        return true;
    most = json_string_characters(c->json, node);
    if (most < s->length_min)
        return defect(c, DEFECT_RANGE, node, "must have at least %u character%s", s->length_min,
                      s->length_min == 1 ? "" : "s");
    if (most > s->length_max)
        return defect(c, DEFECT_RANGE, node, "must have at most %u character%s", s->length_max,
                      s->length_max == 1 ? "" : "s");
    return true;
}

static bool check_string(struct check *c, const struct schema *s, const struct json_node *node)
{
    struct span text;
    if ((s->length_min || s->length_max != UINT32_MAX) && !check_length(c, s, node))
        return false;
    if (!s->format && !s->pattern)
        return true;
    if (node->flags & JSON_ESCAPED)
        return check_escaped(c, s, node);
    json_string_of(c->json, node, NULL, 0, &text);
    return check_text(c, s, node, text);
}

/* ---- arrays and objects ---- */

/* Of a value within another. False: look closely. */
static inline bool is_quickly_valid(struct check *c, const struct schema *s, const struct json_node *node)
{
    if (!(s->quick >> node->kind & 1) || c->depth == SCHEMA_DEPTH_MAX || c->steps <= 0)
        return false;
    if (node->kind == JSON_STRING) {
        uint32_t most = node->length - 2, least = most / (node->flags & JSON_ESCAPED ? 12 : 4);
        if (most > s->length_max || least < s->length_min)
            return false;
    } else {
        int64_t floor;
        bool more;
        if ((s->whole && !(node->flags & JSON_INTEGER)) || !json_floor_of(c->json, node, &floor, &more) ||
            floor < s->sure_low || floor > s->sure_high || (more && floor == s->sure_high))
            return false;
    }
    c->steps -= 1;
    return true;
}

static bool check_count(struct check *c, const struct json_node *node, uint32_t min, uint32_t max,
                        const char *what)
{
    if (node->count < min)
        return defect(c, DEFECT_RANGE, node, "must have at least %u %s%s", min, what, min == 1 ? "" : "s");
    if (node->count > max)
        return defect(c, DEFECT_RANGE, node, "must have at most %u %s%s", max, what, max == 1 ? "" : "s");
    return true;
}

static bool check_array(struct check *c, const struct schema *s, const struct json_node *node)
{
    bool valid = check_count(c, node, s->elements_min, s->elements_max, "element");
    if (s->elements)
        for (const struct json_node *at = json_first(c->json, node); at && (valid || c->result);
             at = json_after(c->json, node, at))
            valid &= is_quickly_valid(c, s->elements, at) || check(c, s->elements, at);
    if (s->unique && (valid || c->result)) {
        c->steps -= node->next - (uint32_t)(node - c->json->nodes);
        if (!json_unique(c->json, node))
            valid = defect(c, DEFECT_VALUE, node, "must not hold the same twice");
    }
    return valid;
}

__attribute__((noinline)) static const struct property *
property_elsewhere(const struct schema *s, struct span name, struct name_words words, uint32_t *next)
{
    uint32_t slot = (uint32_t)property_hash(name, words) & s->slots_mask;
    for (; s->slots[slot]; slot = (slot + 1) & s->slots_mask) {
        const struct property *property = &s->properties[s->slots[slot] - 1];
        if (property_is(property, name, words)) {
            *next = s->slots[slot];
            return property;
        }
    }
    return NULL;
}

/* *next: where to look first, and then behind what was found: most members come in the order in which they are declared. */
static inline __attribute__((always_inline)) const struct property *
property_named(const struct schema *s, struct span name, uint32_t *next)
{
    struct name_words words = name_words_of(name);
    if (*next < s->properties_count && property_is(&s->properties[*next], name, words))
        return &s->properties[(*next)++];
    return property_elsewhere(s, name, words, next);
}

__attribute__((noinline)) static const struct property *
property_escaped(const struct check *c, const struct schema *s, const struct json_node *name, uint32_t *next)
{
    char room[JSON_TEXT_KEY_MAX];
    struct span text;
    json_string_of(c->json, name, room, sizeof room, &text);
    return property_named(s, text, next);
}

/* The property of this name, or NULL, in a schema that has any. */
static inline __attribute__((always_inline)) const struct property *
property_of(const struct check *c, const struct schema *s, const struct json_node *name, uint32_t *next)
{
    struct span raw = json_raw_of(c->json, name);
    if (name->flags & JSON_ESCAPED)
        return property_escaped(c, s, name, next);
    return property_named(s, span_of((const char *)raw.bytes + 1, raw.size - 2), next);
}

static void missing_members(struct check *c, const struct schema *s, const struct json_node *node)
{
    uint64_t seen = 0;
    uint32_t next = 0;
    for (const struct json_node *at = json_first(c->json, node); at; at = json_after(c->json, node, at)) {
        const struct property *property = property_of(c, s, at, &next);
        seen |= property ? property->required : 0;
    }
    for (uint16_t i = 0; i < s->required_count; i++)
        if (s->required & ~seen & s->properties[i].required)
            defect_missing(c, node, s->properties[i].name);
}

static bool check_object(struct check *c, const struct schema *s, const struct json_node *node)
{
    uint64_t seen = 0;
    uint32_t next = 0;
    bool valid;
    if (c->result && s->required)
        missing_members(c, s, node); /* before the defects of members */
    valid = check_count(c, node, s->members_min, s->members_max, "member");
    if (!s->properties_count && !s->closed && !s->others)
        return valid;
    for (const struct json_node *at = json_first(c->json, node); at && (valid || c->result);
         at = json_after(c->json, node, at)) {
        const struct property *property = s->slots ? property_of(c, s, at, &next) : NULL;
        const struct schema *schema = s->others;
        if (property) {
            seen |= property->required;
            schema = property->declared ? property->schema : schema;
        }
        if ((!property || !property->declared) && s->closed)
            valid = defect(c, DEFECT_UNKNOWN, at, "is not known here");
        else if (schema)
            valid &= is_quickly_valid(c, schema, at + 1) || check(c, schema, at + 1);
    }
    return valid && seen == s->required;
}

/* ---- parts ---- */

static bool quietly(struct check *c, const struct schema *s, const struct json_node *node)
{
    struct schema_result *result = c->result;
    bool valid;
    c->result = NULL;
    valid = check(c, s, node);
    c->result = result;
    return valid;
}

/* None of the alternatives is met: what to say. The one that the value's kind leaves says it itself; of lists of values the
 * lists are put together. */
__attribute__((noinline)) static void defect_alternatives(struct check *c, const struct part *parts,
                                                          uint32_t count, const struct json_node *node)
{
    const struct schema *candidate = NULL;
    struct words words = {0};
    uint32_t candidates = 0;
    bool listed = true;
    unsigned kinds = 0;
    for (uint32_t i = 0; i < count; i++) {
        kinds |= parts[i].schema->kinds;
        if (!(parts[i].schema->kinds & KIND(node->kind)))
            continue;
        candidate = parts[i].schema;
        candidates++;
        listed &= words_values(&words, candidate);
    }
    if (candidates == 1)
        check(c, candidate, node);
    else if (candidates == 0 && kinds)
        defect_type(c, kinds, node);
    else if (listed && candidates)
        defect(c, DEFECT_VALUE, node, "must be one of %s", words.text);
    else
        defect(c, DEFECT_VALUE, node, "matches none of the alternatives");
}

static bool check_alternatives(struct check *c, const struct part *parts, uint32_t count,
                               const struct json_node *node)
{
    uint32_t met = 0, enough = parts->role == PART_ANY ? 1 : 2;
    for (uint32_t i = 0; i < count && met < enough; i++)
        met += parts[i].schema->kinds & KIND(node->kind) && quietly(c, parts[i].schema, node);
    if (met == 1)
        return true;
    if (met > 1)
        return defect(c, DEFECT_VALUE, node, "matches more than one of the alternatives");
    if (c->result)
        defect_alternatives(c, parts, count, node);
    return false;
}

static bool check_branch(struct check *c, const struct schema *s, const struct json_node *node,
                         const struct schema *condition)
{
    enum part_role wanted = quietly(c, condition, node) ? PART_THEN : PART_ELSE;
    for (uint16_t i = 0; i < s->parts_count; i++)
        if (s->parts[i].role == wanted)
            return check(c, s->parts[i].schema, node);
    return true;
}

static bool check_parts(struct check *c, const struct schema *s, const struct json_node *node)
{
    bool valid = true;
    for (uint32_t i = 0, next; i < s->parts_count && (valid || c->result); i = next) {
        const struct part *part = &s->parts[i];
        next = i + 1;
        switch (part->role) {
        case PART_ALL:
            valid &= check(c, part->schema, node);
            break;
        case PART_ANY:
        case PART_ONE:
            while (next < s->parts_count && s->parts[next].role == part->role)
                next++;
            valid &= check_alternatives(c, part, next - i, node);
            break;
        case PART_NOT:
            if (quietly(c, part->schema, node))
                valid = defect(c, DEFECT_VALUE, node, "is not allowed");
            break;
        case PART_IF:
            valid &= check_branch(c, s, node, part->schema);
            break;
        case PART_THEN:
        case PART_ELSE:
            break;
        }
    }
    return valid;
}

/* ---- one value ---- */

static bool is_listed(struct check *c, const struct schema *s, const struct json_node *node)
{
    const struct json_text *document = &s->schemas->document;
    if (s->constant && !json_same(document, s->constant, c->json, node))
        return false;
    if (!s->values)
        return true;
    for (const struct json_node *at = json_first(document, s->values); at;
         at = json_after(document, s->values, at))
        if (json_same(document, at, c->json, node))
            return true;
    return false;
}

static bool check_kind(struct check *c, const struct schema *s, const struct json_node *node)
{
    switch ((enum json_kind)node->kind) {
    case JSON_NUMBER:
        return check_number(c, s, node);
    case JSON_STRING:
        return check_string(c, s, node);
    case JSON_ARRAY:
        return check_array(c, s, node);
    case JSON_OBJECT:
        return check_object(c, s, node);
    case JSON_NULL:
    case JSON_FALSE:
    case JSON_TRUE:
        break;
    }
    return true;
}

static bool has_type(const struct schema *s, const struct json_node *node)
{
    unsigned kind = KIND(node->kind) | (node->kind == JSON_NUMBER ? KIND_INTEGER : 0);
    return !s->types || s->types & kind;
}

static bool check(struct check *c, const struct schema *s, const struct json_node *node)
{
    bool valid = true;
    if (s->never)
        return defect(c, DEFECT_VALUE, node, "is not allowed");
    if (s->nullable && node->kind == JSON_NULL)
        return true;
    if (!has_type(s, node))
        return defect_type(c, s->types, node);
    c->steps -= 1 + node->count;
    if (c->depth == SCHEMA_DEPTH_MAX)
        c->steps = -1; /* for good: who asked must not take it for an answer, as `not` would */
    if (c->steps < 0)
        return false;
    c->depth++;
    if ((s->values || s->constant) && !is_listed(c, s, node))
        valid = defect_value(c, s, node);
    else
        valid = check_kind(c, s, node);
    if (s->parts_count && (valid || c->result))
        valid &= check_parts(c, s, node);
    c->depth--;
    return valid && c->steps >= 0;
}

static bool check_whole(const struct schema *schema, const struct json_text *json,
                        const struct json_node *node, bool bare, struct schema_result *ret)
{
    struct check c = {.json = json, .steps = SCHEMA_STEPS_MAX, .bare = bare};
    bool valid = check(&c, schema, node);
    if (!ret)
        return valid;
    ret->valid = valid;
    ret->count = 0;
    if (valid)
        return true;
    c = (struct check){.json = json, .steps = SCHEMA_STEPS_MAX, .bare = bare, .result = ret};
    check(&c, schema, node);
    if (c.steps < 0 && !ret->count)
        defect(&c, DEFECT_RANGE, node, "is too much to check");
    ASSERT(ret->count);
    return false;
}

bool schema_check(const struct schema *schema, const struct json_text *json, const struct json_node *node,
                  struct schema_result *ret)
{
    return check_whole(schema, json, node, false, ret);
}

/* ---- parameters ---- */

/* The text as a number or truth value when the schema may want one, else as a string. */
static void text_as(const struct schema *schema, struct span text, struct json_text *ret_json,
                    struct json_node *ret_node)
{
    struct json_text json = {.nodes = ret_node, .nodes_max = 1};
    struct json_error error;
    if (schema->kinds & (KIND(JSON_NUMBER) | KIND(JSON_TRUE) | KIND(JSON_FALSE)) &&
        json_text_read(&json, text, NULL, &error) && ret_node->length == text.size &&
        ret_node->kind != JSON_STRING && ret_node->kind != JSON_NULL && schema->kinds & KIND(ret_node->kind))
        *ret_json = json;
    else
        json_text_bare(ret_json, ret_node, text);
}

bool schema_check_text(const struct schema *schema, struct span text, struct schema_defect *ret_defect)
{
    struct json_text json;
    struct json_node node = {0};
    struct schema_result result;
    text_as(schema, text, &json, &node);
    if (check_whole(schema, &json, &node, true, NULL))
        return true;
    check_whole(schema, &json, &node, true, &result);
    *ret_defect = result.defects[0];
    return false;
}
