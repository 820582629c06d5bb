/* The compiler. A schema met on the way (a property, a part, what a $ref means) is given its place in the block at once and
 * compiled when its turn comes, so nothing here is recursive, and schemas may refer to each other in circles. One circle makes
 * no sense: a schema that asks itself about the same value. It is looked for when all have been compiled.
 *
 * The block is as large as the document could need: each of its nodes is compiled at most once. Most documents need a part of
 * that, and of the room for its nodes, so both are mapped: pages that nobody needs are never there. */
#include "http/schema_rules.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

struct compiler {
    struct schemas *schemas;
    const struct json_text *document;
    char *text; /* for the sentence */
    size_t text_size;
};

/* Always false: the sentence says where and what. */
__attribute__((format(printf, 3, 4))) static bool refuse(struct compiler *c, const struct json_node *where,
                                                         const char *format, ...)
{
    char pointer[256], what[256];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    json_pointer_to(c->document, where, pointer, sizeof pointer);
    snprintf(c->text, c->text_size, "%s: %s", pointer[0] ? pointer : "the document", what);
    return false;
}

static void *take(struct schemas *schemas, size_t size)
{
    void *taken = schemas->free;
    size = (size + 7) & ~(size_t)7;
    ASSERT(size <= (size_t)(schemas->end - schemas->free));
    schemas->free += size;
    return taken;
}

/* A string of the document without escapes; it stays as long as the schemas do. Once for each node, or the block is too small. */
static struct span string_of(struct compiler *c, const struct json_node *node)
{
    struct span text;
    char *room = node->flags & JSON_ESCAPED ? take(c->schemas, node->length) : NULL;
    bool fits = json_string_of(c->document, node, room, node->length, &text);
    ASSERT(fits);
    return text;
}

static bool string_is(struct compiler *c, const struct json_node *node, const char *text)
{
    struct json_text bare;
    struct json_node wanted;
    if (node->kind == JSON_STRING && !(node->flags & JSON_ESCAPED)) { /* nearly all, and each is looked for */
        struct span raw = json_raw_of(c->document, node);
        const char *bytes = (const char *)raw.bytes + 1; /* behind the quote */
        return *bytes == *text && raw.size == strlen(text) + 2 && memcmp(bytes, text, raw.size - 2) == 0;
    }
    json_text_bare(&bare, &wanted, span_text(text));
    return json_same(c->document, node, &bare, &wanted);
}

/* ---- references ---- */

static int hex_of(char c)
{
    return c >= '0' && c <= '9'                     ? c - '0'
           : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                    : -1;
}

/* One part of a pointer without its escapes; false when it has a broken one, or is too long. */
static bool pointer_part(const char *p, const char *end, bool percents, char *room, size_t size)
{
    size_t length = 0;
    for (; p < end; p++) {
        char c = *p;
        if (percents && c == '%') {
            int high = end - p >= 3 ? hex_of(p[1]) : -1, low = high >= 0 ? hex_of(p[2]) : -1;
            if (low < 0)
                return false;
            c = (char)(high << 4 | low);
            p += 2;
        }
        if (c == '~') {
            p++;
            if (p == end || (*p != '0' && *p != '1'))
                return false;
            c = *p == '0' ? '~' : '/';
        }
        if (!c || length + 1 >= size)
            return false;
        room[length++] = c;
    }
    room[length] = 0;
    return true;
}

static const struct json_node *element_at(const struct json_text *json, const struct json_node *array,
                                          const char *index)
{
    const struct json_node *at = json_first(json, array);
    unsigned long wanted;
    char *end;
    if (index[0] < '0' || index[0] > '9' || (index[0] == '0' && index[1]))
        return NULL;
    wanted = strtoul(index, &end, 10);
    if (*end)
        return NULL;
    while (at && wanted--)
        at = json_after(json, array, at);
    return at;
}

/* What an RFC 6901 pointer points to, or NULL. */
static const struct json_node *pointed_to(const struct json_text *json, struct span pointer, bool percents)
{
    const char *p = pointer.bytes, *end = p + pointer.size;
    const struct json_node *at = json_root(json);
    while (at && p < end) {
        const char *part = p + 1;
        char name[JSON_TEXT_KEY_MAX + 1];
        if (*p != '/')
            return NULL;
        for (p = part; p < end && *p != '/';)
            p++;
        if (!pointer_part(part, p, percents, name, sizeof name))
            return NULL;
        at = at->kind == JSON_ARRAY ? element_at(json, at, name) : json_member(json, at, name);
    }
    return at;
}

static const struct json_node *referred_to(struct compiler *c, const struct json_node *reference)
{
    const struct json_node *target;
    struct span text;
    char room[1024]; /* not of the block: a reference may be followed again and again */
    if (reference->kind != JSON_STRING || !json_string_of(c->document, reference, room, sizeof room, &text)) {
        refuse(c, reference, "$ref must be a string, of at most %zu bytes when it has escapes", sizeof room);
        return NULL;
    }
    if (!text.size || *(const char *)text.bytes != '#') {
        refuse(c, reference, "$ref must begin with #: it stays within the document");
        return NULL;
    }
    target = pointed_to(c->document, span_of((const char *)text.bytes + 1, text.size - 1), true);
    if (!target)
        refuse(c, reference, "$ref points to nothing");
    return target;
}

/* ---- places ---- */

static const char *const annotations[] = {"title",    "description", "default",  "example",  "examples",
                                          "$comment", "deprecated",  "readOnly", "writeOnly"};

static bool is_annotation(struct compiler *c, const struct json_node *keyword)
{
    struct span raw = json_raw_of(c->document, keyword);
    for (size_t i = 0; i < sizeof annotations / sizeof *annotations; i++)
        if (string_is(c, keyword, annotations[i]))
            return true;
    return raw.size >= 4 && memcmp(raw.bytes, "\"x-", 3) == 0;
}

/* The $ref of a schema that says nothing else, or NULL. */
static const struct json_node *mere_reference(struct compiler *c, const struct json_node *node)
{
    const struct json_node *reference = json_member(c->document, node, "$ref");
    if (!reference)
        return NULL;
    for (const struct json_node *at = json_first(c->document, node); at;
         at = json_after(c->document, node, at))
        if (at + 1 != reference && !is_annotation(c, at))
            return NULL;
    return reference;
}

/* The schema of a node, perhaps not compiled yet; a mere reference is what it refers to. NULL: refused. */
static const struct schema *schema_of(struct compiler *c, const struct json_node *node)
{
    struct schemas *schemas = c->schemas;
    const struct json_node *reference;
    struct schema *schema;
    for (uint32_t hops = 0; (reference = mere_reference(c, node)); hops++) {
        if (hops == schemas->document.count) {
            refuse(c, node, "refers to itself without end");
            return NULL;
        }
        node = referred_to(c, reference);
        if (!node)
            return NULL;
    }
    uint32_t *place = &schemas->of_node[node - schemas->document.nodes];
    if (*place)
        return &schemas->all[*place - 1];
    if (node->kind != JSON_OBJECT && node->kind != JSON_TRUE && node->kind != JSON_FALSE) {
        refuse(c, node, "a schema must be an object, true or false");
        return NULL;
    }
    schema = &schemas->all[schemas->count++];
    *place = schemas->count;
    *schema = (struct schema){
        .schemas = schemas,
        .node = node,
        .length_max = UINT32_MAX,
        .elements_max = UINT32_MAX,
        .members_max = UINT32_MAX,
    };
    return schema;
}

/* ---- keywords ---- */

static bool take_type(struct compiler *c, struct schema *s, const struct json_node *type)
{
    static const struct {
        const char *name;
        unsigned kinds;
    } types[] = {
        {"null", KIND(JSON_NULL)},     {"boolean", KIND(JSON_FALSE) | KIND(JSON_TRUE)},
        {"number", KIND(JSON_NUMBER)}, {"integer", KIND_INTEGER},
        {"string", KIND(JSON_STRING)}, {"array", KIND(JSON_ARRAY)},
        {"object", KIND(JSON_OBJECT)},
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (string_is(c, type, types[i].name)) {
            s->types |= (uint16_t)types[i].kinds;
            return true;
        }
    return refuse(c, type, "this is no type");
}

static bool keyword_type(struct compiler *c, struct schema *s, const struct json_node *value)
{
    if (value->kind != JSON_ARRAY)
        return take_type(c, s, value);
    if (!value->count)
        return refuse(c, value, "a type is missing");
    for (const struct json_node *at = json_first(c->document, value); at;
         at = json_after(c->document, value, at))
        if (!take_type(c, s, at))
            return false;
    return true;
}

static bool keyword_enum(struct compiler *c, struct schema *s, const struct json_node *value)
{
    if (value->kind != JSON_ARRAY || !value->count)
        return refuse(c, value, "must be an array with at least one value");
    s->values = value;
    return true;
}

static bool keyword_const(struct compiler *c, struct schema *s, const struct json_node *value)
{
    (void)c;
    s->constant = value;
    return true;
}

static bool keyword_format(struct compiler *c, struct schema *s, const struct json_node *value)
{
    if (string_is(c, value, "int32") || string_is(c, value, "int64")) {
        s->integer_bits = string_is(c, value, "int32") ? 32 : 64;
        s->bounded = true;
        return true;
    }
    if (value->kind == JSON_STRING)
        s->format = (uint8_t)text_format_named(string_of(c, value));
    if (!s->format)
        return refuse(c, value, "a format that nobody checks here");
    return true;
}

static bool keyword_pattern(struct compiler *c, struct schema *s, const struct json_node *value)
{
    if (value->kind == JSON_STRING)
        s->pattern = (uint8_t)text_pattern_named(string_of(c, value));
    if (!s->pattern)
        return refuse(c, value, "a pattern that nobody checks here (http/schema_text.h)");
    return true;
}

static bool take_bound(struct compiler *c, struct schema *s, const struct json_node *value,
                       enum bound_kind kind)
{
    struct bound *bound = &s->bounds[kind];
    if (value->kind != JSON_NUMBER)
        return refuse(c, value, "must be a number");
    bound->node = value;
    bound->small = json_int64_of(c->document, value, &bound->value);
    s->bounded = true;
    return true;
}

static bool keyword_minimum(struct compiler *c, struct schema *s, const struct json_node *value)
{
    return take_bound(c, s, value, BOUND_MINIMUM);
}

static bool keyword_maximum(struct compiler *c, struct schema *s, const struct json_node *value)
{
    return take_bound(c, s, value, BOUND_MAXIMUM);
}

static bool keyword_exclusive_minimum(struct compiler *c, struct schema *s, const struct json_node *value)
{
    return take_bound(c, s, value, BOUND_ABOVE);
}

static bool keyword_exclusive_maximum(struct compiler *c, struct schema *s, const struct json_node *value)
{
    return take_bound(c, s, value, BOUND_BELOW);
}

static bool keyword_multiple_of(struct compiler *c, struct schema *s, const struct json_node *value)
{
    s->bounded = true;
    if (!json_uint64_of(c->document, value, &s->multiple) || !s->multiple)
        return refuse(c, value, "must be an integer above 0");
    return true;
}

static bool take_count(struct compiler *c, const struct json_node *value, uint32_t *ret_count)
{
    uint64_t count;
    if (!json_uint64_of(c->document, value, &count) || count >= UINT32_MAX)
        return refuse(c, value, "must be an integer from 0 to 4294967294");
    *ret_count = (uint32_t)count;
    return true;
}

static bool keyword_min_length(struct compiler *c, struct schema *s, const struct json_node *value)
{
    return take_count(c, value, &s->length_min);
}

static bool keyword_max_length(struct compiler *c, struct schema *s, const struct json_node *value)
{
    return take_count(c, value, &s->length_max);
}

static bool keyword_min_items(struct compiler *c, struct schema *s, const struct json_node *value)
{
    return take_count(c, value, &s->elements_min);
}

static bool keyword_max_items(struct compiler *c, struct schema *s, const struct json_node *value)
{
    return take_count(c, value, &s->elements_max);
}

static bool keyword_min_properties(struct compiler *c, struct schema *s, const struct json_node *value)
{
    return take_count(c, value, &s->members_min);
}

static bool keyword_max_properties(struct compiler *c, struct schema *s, const struct json_node *value)
{
    return take_count(c, value, &s->members_max);
}

static bool take_flag(struct compiler *c, const struct json_node *value, bool *ret_flag)
{
    if (value->kind != JSON_TRUE && value->kind != JSON_FALSE)
        return refuse(c, value, "must be true or false");
    *ret_flag = value->kind == JSON_TRUE;
    return true;
}

static bool keyword_unique_items(struct compiler *c, struct schema *s, const struct json_node *value)
{
    return take_flag(c, value, &s->unique);
}

static bool keyword_nullable(struct compiler *c, struct schema *s, const struct json_node *value)
{
    return take_flag(c, value, &s->nullable);
}

static bool keyword_items(struct compiler *c, struct schema *s, const struct json_node *value)
{
    s->elements = schema_of(c, value);
    return s->elements != NULL;
}

static struct property *property_named(struct schema *s, struct span name)
{
    struct property *property;
    for (uint16_t i = 0; i < s->properties_count; i++)
        if (span_equal(s->properties[i].name, name))
            return &s->properties[i];
    ASSERT(s->properties_count < s->properties_max);
    property = &s->properties[s->properties_count++];
    property->name = name;
    property->words = name_words_of(name);
    return property;
}

/* Taken before the other keywords: these properties come first. */
static bool take_required(struct compiler *c, struct schema *s, const struct json_node *value)
{
    if (value->kind != JSON_ARRAY || value->count > SCHEMA_REQUIRED_MAX)
        return refuse(c, value, "must be an array of at most %u names", SCHEMA_REQUIRED_MAX);
    for (const struct json_node *at = json_first(c->document, value); at;
         at = json_after(c->document, value, at)) {
        struct property *property;
        if (at->kind != JSON_STRING)
            return refuse(c, at, "must be a name");
        property = property_named(s, string_of(c, at));
        if (property->required)
            return refuse(c, at, "this name was there before");
        property->required = UINT64_C(1) << s->required_count++;
        s->required |= property->required;
    }
    return true;
}

static bool keyword_required(struct compiler *c, struct schema *s, const struct json_node *value)
{
    (void)c;
    (void)s;
    (void)value;
    return true;
}

static bool keyword_properties(struct compiler *c, struct schema *s, const struct json_node *value)
{
    if (value->kind != JSON_OBJECT)
        return refuse(c, value, "must be an object");
    for (const struct json_node *at = json_first(c->document, value); at;
         at = json_after(c->document, value, at)) {
        struct property *property = property_named(s, string_of(c, at));
        property->declared = true;
        property->schema = schema_of(c, at + 1);
        if (!property->schema)
            return false;
    }
    return true;
}

static bool keyword_additional_properties(struct compiler *c, struct schema *s, const struct json_node *value)
{
    if (value->kind == JSON_FALSE)
        s->closed = true;
    else if (value->kind != JSON_TRUE)
        return (s->others = schema_of(c, value)) != NULL;
    return true;
}

static bool take_part(struct compiler *c, struct schema *s, enum part_role role, const struct json_node *node)
{
    const struct schema *schema = schema_of(c, node);
    if (schema)
        s->parts[s->parts_count++] = (struct part){role, schema};
    return schema != NULL;
}

static bool take_parts(struct compiler *c, struct schema *s, enum part_role role,
                       const struct json_node *value)
{
    if (value->kind != JSON_ARRAY || !value->count)
        return refuse(c, value, "must be an array with at least one schema");
    for (const struct json_node *at = json_first(c->document, value); at;
         at = json_after(c->document, value, at))
        if (!take_part(c, s, role, at))
            return false;
    return true;
}

static bool keyword_ref(struct compiler *c, struct schema *s, const struct json_node *value)
{
    const struct json_node *target = referred_to(c, value);
    return target && take_part(c, s, PART_ALL, target);
}

static bool keyword_all_of(struct compiler *c, struct schema *s, const struct json_node *value)
{
    return take_parts(c, s, PART_ALL, value);
}

static bool keyword_any_of(struct compiler *c, struct schema *s, const struct json_node *value)
{
    return take_parts(c, s, PART_ANY, value);
}

static bool keyword_one_of(struct compiler *c, struct schema *s, const struct json_node *value)
{
    return take_parts(c, s, PART_ONE, value);
}

static bool keyword_not(struct compiler *c, struct schema *s, const struct json_node *value)
{
    return take_part(c, s, PART_NOT, value);
}

static bool keyword_if(struct compiler *c, struct schema *s, const struct json_node *value)
{
    return take_part(c, s, PART_IF, value);
}

static bool take_branch(struct compiler *c, struct schema *s, enum part_role role,
                        const struct json_node *value)
{
    if (!json_member(c->document, s->node, "if"))
        return refuse(c, value, "there is no if beside it");
    return take_part(c, s, role, value);
}

static bool keyword_then(struct compiler *c, struct schema *s, const struct json_node *value)
{
    return take_branch(c, s, PART_THEN, value);
}

static bool keyword_else(struct compiler *c, struct schema *s, const struct json_node *value)
{
    return take_branch(c, s, PART_ELSE, value);
}

#define KEYWORDS(X)                                          \
    X("type", keyword_type)                                  \
    X("enum", keyword_enum)                                  \
    X("const", keyword_const)                                \
    X("format", keyword_format)                              \
    X("pattern", keyword_pattern)                            \
    X("minimum", keyword_minimum)                            \
    X("maximum", keyword_maximum)                            \
    X("exclusiveMinimum", keyword_exclusive_minimum)         \
    X("exclusiveMaximum", keyword_exclusive_maximum)         \
    X("multipleOf", keyword_multiple_of)                     \
    X("minLength", keyword_min_length)                       \
    X("maxLength", keyword_max_length)                       \
    X("minItems", keyword_min_items)                         \
    X("maxItems", keyword_max_items)                         \
    X("uniqueItems", keyword_unique_items)                   \
    X("items", keyword_items)                                \
    X("minProperties", keyword_min_properties)               \
    X("maxProperties", keyword_max_properties)               \
    X("required", keyword_required)                          \
    X("properties", keyword_properties)                      \
    X("additionalProperties", keyword_additional_properties) \
    X("nullable", keyword_nullable)                          \
    X("$ref", keyword_ref)                                   \
    X("allOf", keyword_all_of)                               \
    X("anyOf", keyword_any_of)                               \
    X("oneOf", keyword_one_of)                               \
    X("not", keyword_not)                                    \
    X("if", keyword_if)                                      \
    X("then", keyword_then)                                  \
    X("else", keyword_else)

static const struct {
    const char *name;
    bool (*take)(struct compiler *c, struct schema *s, const struct json_node *value);
} keywords[] = {
#define X(name, function) {name, function},
    KEYWORDS(X)
#undef X
};

static bool take_keyword(struct compiler *c, struct schema *s, const struct json_node *keyword)
{
    struct span name;
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
        if (string_is(c, keyword, keywords[i].name))
            return keywords[i].take(c, s, keyword + 1);
    if (is_annotation(c, keyword))
        return true;
    name = json_raw_of(c->document, keyword);
    return refuse(c, s->node, "the keyword %.*s is not known", (int)name.size, (const char *)name.bytes);
}

/* ---- one schema ---- */

static uint32_t children_of(struct compiler *c, const struct json_node *node, const char *keyword)
{
    const struct json_node *value = json_member(c->document, node, keyword);
    return !value ? 0 : value->kind == JSON_ARRAY || value->kind == JSON_OBJECT ? value->count : 1;
}

static bool is_there(struct compiler *c, const struct json_node *node, const char *keyword)
{
    return json_member(c->document, node, keyword) != NULL;
}

static void make_room(struct compiler *c, struct schema *s)
{
    const struct json_node *node = s->node;
    uint32_t properties = children_of(c, node, "properties") + children_of(c, node, "required");
    uint32_t parts = children_of(c, node, "allOf") + children_of(c, node, "anyOf") +
                     children_of(c, node, "oneOf") + is_there(c, node, "$ref") + is_there(c, node, "not") +
                     is_there(c, node, "if") + is_there(c, node, "then") + is_there(c, node, "else");
    s->properties_max = (uint16_t)properties;
    s->properties = take(c->schemas, properties * sizeof *s->properties);
    s->parts = take(c->schemas, parts * sizeof *s->parts);
}

static void index_properties(struct compiler *c, struct schema *s)
{
    uint32_t size = 1;
    if (!s->properties_count)
        return;
    while (size < s->properties_count * 2u)
        size *= 2;
    s->slots = take(c->schemas, size * sizeof *s->slots);
    s->slots_mask = size - 1;
    for (uint16_t i = 0; i < s->properties_count; i++) {
        uint32_t slot =
            (uint32_t)property_hash(s->properties[i].name, s->properties[i].words) & s->slots_mask;
        while (s->slots[slot])
            slot = (slot + 1) & s->slots_mask;
        s->slots[slot] = (uint16_t)(i + 1);
    }
}

/* What all bounds allow for sure. False: there is one that only a comparison can tell. */
static bool note_range(struct schema *s)
{
    s->sure_low = s->integer_bits == 32 ? INT32_MIN : INT64_MIN;
    s->sure_high = s->integer_bits == 32 ? INT32_MAX : INT64_MAX;
    for (unsigned i = 0; i < BOUND_KINDS; i++) {
        const struct bound *bound = &s->bounds[i];
        int64_t value = bound->value;
        if (!bound->node)
            continue;
        if (!bound->small || (i == BOUND_ABOVE && value == INT64_MAX) ||
            (i == BOUND_BELOW && value == INT64_MIN))
            return false;
        value += (i == BOUND_ABOVE) - (i == BOUND_BELOW);
        if ((i == BOUND_MINIMUM || i == BOUND_ABOVE) && value > s->sure_low)
            s->sure_low = value;
        if ((i == BOUND_MAXIMUM || i == BOUND_BELOW) && value < s->sure_high)
            s->sure_high = value;
    }
    return !s->multiple && (!s->integer_bits || s->whole);
}

/* Most values are strings and numbers of which little is asked. */
static void note_quick(struct schema *s)
{
    unsigned numbers = KIND(JSON_NUMBER) | KIND_INTEGER, quick = 0;
    s->whole = (s->types & numbers) == KIND_INTEGER;
    if (s->values || s->constant || s->parts_count)
        return;
    if ((!s->types || s->types & KIND(JSON_STRING)) && !s->format && !s->pattern)
        quick |= KIND(JSON_STRING);
    if ((!s->types || s->types & numbers) && note_range(s))
        quick |= KIND(JSON_NUMBER);
    s->quick = (uint16_t)quick;
}

static bool compile(struct compiler *c, struct schema *s)
{
    const struct json_node *required;
    if (s->node->kind != JSON_OBJECT) {
        s->never = s->node->kind == JSON_FALSE;
        return true;
    }
    make_room(c, s);
    required = json_member(c->document, s->node, "required");
    if (required && !take_required(c, s, required))
        return false;
    for (const struct json_node *at = json_first(c->document, s->node); at;
         at = json_after(c->document, s->node, at))
        if (!take_keyword(c, s, at))
            return false;
    if (s->length_min > s->length_max || s->elements_min > s->elements_max || s->members_min > s->members_max)
        return refuse(c, s->node, "a minimum is above its maximum");
    index_properties(c, s);
    note_quick(s);
    return true;
}

/* ---- all that were met ---- */

static unsigned kinds_of_values(struct compiler *c, const struct schema *s)
{
    unsigned kinds = 0;
    if (s->constant)
        return KIND(s->constant->kind);
    if (!s->values)
        return KINDS_ALL;
    for (const struct json_node *at = json_first(c->document, s->values); at;
         at = json_after(c->document, s->values, at))
        kinds |= KIND(at->kind);
    return kinds;
}

/* Which kinds of values can be valid, when that is known of the parts. */
static uint16_t kinds_of(struct compiler *c, const struct schema *s)
{
    unsigned kinds = s->never ? 0 : s->types ? s->types & KINDS_ALL : KINDS_ALL;
    unsigned any = 0, one = 0;
    bool has_any = false, has_one = false;
    if (s->types & KIND_INTEGER)
        kinds |= KIND(JSON_NUMBER);
    kinds &= kinds_of_values(c, s);
    for (uint16_t i = 0; i < s->parts_count; i++) {
        const struct part *part = &s->parts[i];
        if (part->role == PART_ALL)
            kinds &= part->schema->kinds;
        any |= part->role == PART_ANY ? part->schema->kinds : 0;
        one |= part->role == PART_ONE ? part->schema->kinds : 0;
        has_any |= part->role == PART_ANY;
        has_one |= part->role == PART_ONE;
    }
    kinds &= has_any ? any : KINDS_ALL;
    kinds &= has_one ? one : KINDS_ALL;
    return (uint16_t)(kinds | (s->nullable ? KIND(JSON_NULL) : 0));
}

static struct schema *changeable(struct schemas *schemas, const struct schema *schema)
{
    return &schemas->all[schema - schemas->all];
}

/* Depth first through the parts, back by asked_by. A part that is on the way already closes a circle. */
static bool finish(struct compiler *c, struct schema *first)
{
    struct schema *at = first;
    if (first->finished)
        return true;
    for (;;) {
        at->on_way = true;
        if (at->visited < at->parts_count) {
            struct schema *next = changeable(c->schemas, at->parts[at->visited++].schema);
            if (next->finished)
                continue;
            if (next->on_way)
                return refuse(c, next->node, "asks itself about the same value without end");
            next->asked_by = at;
            at = next;
            continue;
        }
        at->kinds = kinds_of(c, at);
        at->finished = true;
        at->on_way = false;
        if (at == first)
            return true;
        at = at->asked_by;
    }
}

static bool finish_all(struct compiler *c, uint32_t from)
{
    for (uint32_t i = from; i < c->schemas->count; i++)
        if (!finish(c, &c->schemas->all[i]))
            return false;
    return true;
}

const struct schema *schemas_at(struct schemas *schemas, const char *pointer, char *ret_text,
                                size_t text_size)
{
    const struct json_node *node = pointed_to(&schemas->document, span_text(pointer), false);
    if (node)
        return schemas_of_node(schemas, node, ret_text, text_size);
    snprintf(ret_text, text_size, "%s: there is nothing", pointer);
    return NULL;
}

const struct schema *schemas_of_node(struct schemas *schemas, const struct json_node *node, char *ret_text,
                                     size_t text_size)
{
    struct compiler c = {schemas, &schemas->document, ret_text, text_size};
    const struct schema *schema;
    uint32_t from = schemas->done;
    if (schemas->broken) {
        refuse(&c, node, "another schema of this document can't be compiled");
        return NULL;
    }
    schema = schema_of(&c, node);
    schemas->broken = !schema;
    while (!schemas->broken && schemas->done < schemas->count)
        schemas->broken = !compile(&c, &schemas->all[schemas->done++]);
    if (!schemas->broken)
        schemas->broken = schemas->count > from && !finish_all(&c, from);
    return schemas->broken ? NULL : schema;
}

/* ---- the document ---- */

struct block {
    size_t of_node, all, size; /* offsets */
};

static size_t block_add(struct block *block, size_t count, size_t each)
{
    size_t at = block->size;
    block->size += (count * each + 15) & ~(size_t)15;
    return at;
}

/* What the document could need at most: each object and boolean a schema, each member a property, each element a required
 * name or a part, and each of those two slots to four. What is taken in pieces is rounded up to 8 bytes each time. */
static struct block block_for(const struct json_text *document)
{
    struct block block = {0};
    size_t schemas = 0, children = 0;
    for (uint32_t i = 0; i < document->count; i++) {
        const struct json_node *node = &document->nodes[i];
        schemas += node->kind == JSON_OBJECT || node->kind == JSON_TRUE || node->kind == JSON_FALSE;
        children += node->count;
    }
    block_add(&block, 1, sizeof(struct schemas));
    block.of_node = block_add(&block, document->count, sizeof(uint32_t));
    block.all = block_add(&block, schemas, sizeof(struct schema));
    block_add(&block, children, sizeof(struct property) + sizeof(struct part) + 4 * sizeof(uint16_t) + 8);
    block_add(&block, schemas, 3 * 8 + 5 * sizeof(struct part));
    block_add(&block, document->text.size, 2); /* strings with escapes: names, and $ref, format, pattern */
    return block;
}

static void *map(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static struct schemas *schemas_for(const struct json_text *document)
{
    const struct block block = block_for(document);
    char *memory = map(block.size);
    struct schemas *schemas = (struct schemas *)(void *)memory;
    const struct json_node *nodes = document->nodes;
    size_t taken;
    if (!memory)
        return NULL;
    schemas->document = *document;
    schemas->of_node = (uint32_t *)(void *)(memory + block.of_node);
    schemas->all = (struct schema *)(void *)(memory + block.all);
    taken = block.all;
    for (uint32_t i = 0; i < document->count; i++)
        taken += nodes[i].kind == JSON_OBJECT || nodes[i].kind == JSON_TRUE || nodes[i].kind == JSON_FALSE
                     ? sizeof(struct schema)
                     : 0;
    schemas->free = memory + ((taken + 15) & ~(size_t)15);
    schemas->end = memory + block.size;
    schemas->size = block.size;
    return schemas;
}

struct schemas *schemas_create(struct span document, char *ret_text, size_t text_size)
{
    uint32_t most =
        document.size / 2 + 1; /* a value takes two bytes, its comma or bracket included, but the last */
    struct json_text json = {.nodes_max = most < JSON_TEXT_NODES_MAX ? most : JSON_TEXT_NODES_MAX};
    size_t nodes_size = json.nodes_max * sizeof *json.nodes;
    struct schemas *schemas = NULL;
    struct json_error error;
    json.nodes = map(nodes_size);
    if (!json.nodes)
        snprintf(ret_text, text_size, "no memory");
    else if (!json_text_read(&json, document, NULL, &error))
        snprintf(ret_text, text_size, "byte %u: %s", error.at, error.what);
    else if (!(schemas = schemas_for(&json)))
        snprintf(ret_text, text_size, "no memory");
    if (schemas)
        schemas->nodes_size = nodes_size;
    else if (json.nodes)
        munmap(json.nodes, nodes_size);
    return schemas;
}

void schemas_destroy(struct schemas *schemas)
{
    if (!schemas)
        return;
    munmap(schemas->document.nodes, schemas->nodes_size);
    munmap(schemas, schemas->size);
}

const struct json_text *schemas_document(const struct schemas *schemas)
{
    return &schemas->document;
}
