#define _GNU_SOURCE /* memrchr */
#include "http/contract.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/assert.h"
#include "runtime/json.h"
#include "store/checksum.h"

/* ---- the documents, taken in by the assembler; the Makefile knows that this file depends on them ---- */

/* Two symbols of this file alone: contract_NAME and contract_NAME_end. */
#define EMBED(name, file)                                                      \
    __asm__(".pushsection .rodata\n"                                           \
            ".balign 16\n"                                                     \
            "contract_" #name ":\n"                                            \
            ".incbin \"" file "\"\n"                                           \
            "contract_" #name "_end:\n"                                        \
            ".byte 0\n"                                                        \
            ".popsection\n");                                                  \
    extern const char contract_##name[] __attribute__((visibility("hidden"))); \
    extern const char contract_##name##_end[] __attribute__((visibility("hidden")));

#define X(id, name, file, kind)                     \
    EMBED(id##_yaml, "docs/contract/" file ".yaml") \
    EMBED(id##_json, "docs/contract/generated/" file ".json")
CONTRACTS(X)
#undef X
EMBED(events_tsv, "docs/contract/control.events.tsv")

static struct span between(const char *begin, const char *end)
{
    return span_of(begin, (size_t)(end - begin));
}

struct span contract_events_text(void)
{
    return between(contract_events_tsv, contract_events_tsv_end);
}

static const struct {
    const char *name;
    enum contract_kind kind;
    const char *yaml, *yaml_end, *json, *json_end;
} documents[CONTRACT_COUNT] = {
#define X(id, text, file, form)                              \
    [CONTRACT_##id] = {.name = (text),                       \
                       .kind = CONTRACT_##form,              \
                       .yaml = contract_##id##_yaml,         \
                       .yaml_end = contract_##id##_yaml_end, \
                       .json = contract_##id##_json,         \
                       .json_end = contract_##id##_json_end},
    CONTRACTS(X)
#undef X
};

struct span contract_yaml(enum contract contract)
{
    ASSERT(contract < CONTRACT_COUNT);
    return between(documents[contract].yaml, documents[contract].yaml_end);
}

struct span contract_json(enum contract contract)
{
    ASSERT(contract < CONTRACT_COUNT);
    return between(documents[contract].json, documents[contract].json_end);
}

const char *contract_name(enum contract contract)
{
    ASSERT(contract < CONTRACT_COUNT);
    return documents[contract].name;
}

enum contract_kind contract_kind(enum contract contract)
{
    ASSERT(contract < CONTRACT_COUNT);
    return documents[contract].kind;
}

/* Written once, at boot. */
enum { ETAG_DIGITS = 16, ETAG_SIZE = ETAG_DIGITS + 3 };
static char etags[CONTRACT_COUNT][ETAG_SIZE];

static void etag_make(struct span bytes, char etag[ETAG_SIZE])
{
    snprintf(etag, ETAG_SIZE, "\"%016" PRIx64 "\"", checksum(0, bytes.bytes, bytes.size));
}

const char *contract_etag(enum contract contract)
{
    ASSERT(contract < CONTRACT_COUNT && etags[contract][0]);
    return etags[contract];
}

/* ---- the table of events ---- */

bool contract_event_next(struct span table, size_t *at, struct contract_event *ret_row)
{
    static const char heading[] = "event_name\tchannel\tdetails\trequires\tfixed\n";
    const char *text = table.bytes;
    size_t begin = *at, columns = 0;
    struct span column[5];
    if (begin == 0) {
        begin = sizeof(heading) - 1;
        if (table.size < begin || memcmp(text, heading, begin) != 0) {
            *at = table.size + 1;
            return false;
        }
    }
    if (begin == table.size) {
        *at = begin;
        return false;
    }
    const char *end = memchr(text + begin, '\n', table.size - begin);
    size_t stop = end ? (size_t)(end - text) : table.size;
    for (size_t i = begin; columns < 5; columns++) {
        const char *tab = memchr(text + i, '\t', stop - i);
        size_t edge = tab ? (size_t)(tab - text) : stop;
        column[columns] = span_of(text + i, edge - i);
        i = edge + 1;
        if (!tab) {
            columns++;
            break;
        }
    }
    if (!end || columns != 5 || column[0].size == 0 ||
        (const char *)column[4].bytes + column[4].size != text + stop)
        return false;
    *at = stop + 1;
    *ret_row = (struct contract_event){.name = column[0],
                                       .channel = column[1],
                                       .details = column[2],
                                       .requires = column[3],
                                       .fixed = column[4]};
    return true;
}

/* ---- everything compiled ---- */

enum { TEXT_MAX = 32768, POINTER_MAX = 512, WORD_MAX = 256 };

struct bound_event {
    const char *name;
    const struct schema *details;
};

struct contracts {
    struct schemas *schemas[CONTRACT_COUNT];
    char *events_json; /* the event contract with the details of each event by its name */
    const struct schema *refusals[SURFACE_COUNT];
    size_t operations_count, events_count, text_used;
    struct contract_operation operations[CONTRACT_OPERATIONS_MAX];
    struct bound_event events[CONTRACT_EVENTS_MAX]; /* by name */
    char text[TEXT_MAX];                            /* of operations and events */
};

/* What is being compiled, and where to say why it can't be. */
struct work {
    struct contracts *all;
    enum contract contract;
    const struct json_text *json;
    char base[WORD_MAX]; /* what is in front of all paths: "/v1", or nothing */
    char *text;
    size_t text_size;
};

__attribute__((format(printf, 3, 4))) static bool refuse(struct work *w, const struct json_node *node,
                                                         const char *format, ...)
{
    char place[POINTER_MAX] = "", why[512];
    va_list list;
    if (node)
        json_pointer_to(w->json, node, place, sizeof(place));
    va_start(list, format);
    vsnprintf(why, sizeof(why), format, list);
    va_end(list);
    snprintf(w->text, w->text_size, "the contract '%s'%s%s %s", contract_name(w->contract),
             *place ? ", at " : "", place, why);
    return false;
}

/* A copy of the parts, one after the other, that lives as long as the contracts. NULL: no room, and it was said. */
static const char *keep(struct work *w, struct span first, struct span second)
{
    struct contracts *all = w->all;
    char *to = all->text + all->text_used;
    size_t size = (size_t)first.size + second.size + 1;
    if (size > TEXT_MAX - all->text_used) {
        refuse(w, NULL, "has more than %d bytes of names", (int)TEXT_MAX);
        return NULL;
    }
    if (first.size)
        memcpy(to, first.bytes, first.size);
    if (second.size)
        memcpy(to + first.size, second.bytes, second.size);
    to[size - 1] = 0;
    all->text_used += size;
    return to;
}

static const char *keep_string(struct work *w, const struct json_node *node)
{
    char room[WORD_MAX];
    struct span text;
    if (!node || node->kind != JSON_STRING || !json_string_of(w->json, node, room, sizeof(room), &text)) {
        refuse(w, node, "has no text where there must be some, or one beyond %d bytes", (int)WORD_MAX);
        return NULL;
    }
    return keep(w, text, span_of("", 0));
}

static bool is_text(struct work *w, const struct json_node *node, const char *text)
{
    char room[WORD_MAX];
    struct span value;
    return node && node->kind == JSON_STRING && json_string_of(w->json, node, room, sizeof(room), &value) &&
           span_equal(value, span_text(text));
}

static bool is_true(const struct json_node *node)
{
    return node && node->kind == JSON_TRUE;
}

/* The node at an RFC 6901 pointer whose names have no escapes but ~0 and ~1. */
static const struct json_node *node_at(const struct json_text *json, const char *pointer)
{
    const struct json_node *node = json_root(json);
    while (node && *pointer == '/') {
        char name[WORD_MAX];
        size_t n = 0;
        for (pointer++; *pointer && *pointer != '/' && n < sizeof(name) - 1; pointer++) {
            name[n++] = *pointer == '~' ? pointer[1] == '1' ? '/' : '~' : *pointer;
            pointer += *pointer == '~' && pointer[1];
        }
        name[n] = 0;
        node = node->kind == JSON_OBJECT ? json_member(json, node, name) : NULL;
    }
    return *pointer ? NULL : node;
}

/* Through $ref, to what is meant; NULL, and it was said. */
static const struct json_node *resolve(struct work *w, const struct json_node *node)
{
    const struct json_node *ref;
    for (int hops = 0; node->kind == JSON_OBJECT && (ref = json_member(w->json, node, "$ref")); hops++) {
        char room[POINTER_MAX];
        struct span text;
        if (hops == 8 || ref->kind != JSON_STRING ||
            !json_string_of(w->json, ref, room, sizeof(room) - 1, &text) || text.size < 2 ||
            text.size >= sizeof(room) || memcmp(text.bytes, "#/", 2) != 0) {
            refuse(w, node, "refers to what isn't in the document");
            return NULL;
        }
        memmove(room, text.bytes, text.size);
        room[text.size] = 0;
        const struct json_node *target = node_at(w->json, room + 1);
        if (!target) {
            refuse(w, node, "refers to '%s', which isn't in the document", room);
            return NULL;
        }
        node = target;
    }
    return node;
}

/* The schema that stands at this node. NULL, and it was said. */
static const struct schema *schema_of(struct work *w, const struct json_node *node)
{
    char why[384];
    const struct schema *schema = schemas_of_node(w->all->schemas[w->contract], node, why, sizeof(why));
    if (!schema)
        refuse(w, NULL, "can't be enforced: %s", why);
    return schema;
}

/* The same for the member "schema"; one without any is no schema. */
static bool schema_in(struct work *w, const struct json_node *node, const struct schema **ret_schema)
{
    const struct json_node *schema = node->kind == JSON_OBJECT ? json_member(w->json, node, "schema") : NULL;
    *ret_schema = NULL;
    return !schema || (*ret_schema = schema_of(w, schema));
}

static bool add_parameters(struct work *w, const struct json_node *list, struct contract_operation *o)
{
    for (const struct json_node *p = list ? json_first(w->json, list) : NULL; p;
         p = json_after(w->json, list, p)) {
        const struct json_node *node = resolve(w, p), *in;
        struct contract_parameter *parameter = &o->parameters[o->parameters_count];
        if (!node)
            return false;
        if (o->parameters_count == CONTRACT_PARAMETERS_MAX)
            return refuse(w, p, "has more than %u parameters", CONTRACT_PARAMETERS_MAX);
        in = json_member(w->json, node, "in");
        if (is_text(w, in, "path"))
            parameter->in = PARAMETER_PATH;
        else if (is_text(w, in, "query"))
            parameter->in = PARAMETER_QUERY;
        else if (is_text(w, in, "header"))
            parameter->in = PARAMETER_HEADER;
        else
            return refuse(w, node, "is a parameter in neither path, query nor header");
        parameter->required = is_true(json_member(w->json, node, "required"));
        parameter->name = keep_string(w, json_member(w->json, node, "name"));
        if (!parameter->name || !schema_in(w, node, &parameter->schema))
            return false;
        if (!parameter->schema)
            return refuse(w, node, "is a parameter without a schema");
        for (uint32_t i = 0; i < o->parameters_count; i++)
            if (o->parameters[i].in == parameter->in && strcmp(o->parameters[i].name, parameter->name) == 0)
                return refuse(w, node, "is a parameter that was there before");
        o->parameters_count++;
    }
    return true;
}

static bool add_body(struct work *w, const struct json_node *body, struct contract_operation *o)
{
    if (!body)
        return true;
    const struct json_node *node = resolve(w, body), *content;
    if (!node)
        return false;
    content = json_member(w->json, node, "content");
    const struct json_node *form = content ? json_member(w->json, content, "application/json") : NULL;
    if (!form || content->count != 1)
        return refuse(w, node, "is a body of another type than application/json");
    if (!schema_in(w, form, &o->body))
        return false;
    if (!o->body)
        return refuse(w, node, "is a body without a schema");
    o->body_required = is_true(json_member(w->json, node, "required"));
    return true;
}

static bool add_answer(struct work *w, const struct json_node *place, struct contract_operation *o,
                       uint16_t status, const struct json_node *type, const struct json_node *form)
{
    if (o->answers_count == CONTRACT_ANSWERS_MAX)
        return refuse(w, place, "has more than %u answers", CONTRACT_ANSWERS_MAX);
    o->answers[o->answers_count].status = status;
    if (type && !(o->answers[o->answers_count].type = keep_string(w, type)))
        return false;
    if (form && !schema_in(w, form, &o->answers[o->answers_count].schema))
        return false;
    o->answers_count++;
    return true;
}

/* "200" to "599", or "default"; -1 for others. */
static int status_of(struct work *w, const struct json_node *name)
{
    char room[8];
    struct span text;
    if (is_text(w, name, "default"))
        return 0;
    if (!json_string_of(w->json, name, room, sizeof(room), &text) || text.size != 3)
        return -1;
    const char *digits = text.bytes;
    for (int i = 0; i < 3; i++)
        if (digits[i] < (i ? '0' : '2') || digits[i] > (i ? '9' : '5'))
            return -1;
    return (digits[0] - '0') * 100 + (digits[1] - '0') * 10 + (digits[2] - '0');
}

static bool add_answers(struct work *w, const struct json_node *responses, struct contract_operation *o)
{
    if (!responses || responses->kind != JSON_OBJECT)
        return true;
    for (const struct json_node *name = json_first(w->json, responses); name;
         name = json_after(w->json, responses, name)) {
        const struct json_node *node = resolve(w, json_value_of(name)), *content;
        int status = status_of(w, name);
        if (!node)
            return false;
        if (status < 0)
            return refuse(w, node, "is the answer of no status");
        content = json_member(w->json, node, "content");
        if (!content || content->count == 0) {
            if (!add_answer(w, node, o, (uint16_t)status, NULL, NULL))
                return false;
            continue;
        }
        for (const struct json_node *type = json_first(w->json, content); type;
             type = json_after(w->json, content, type))
            if (!add_answer(w, node, o, (uint16_t)status, type, json_value_of(type)))
                return false;
    }
    return true;
}

static bool add_operation(struct work *w, const char *method, const struct json_node *path_name,
                          const struct json_node *node)
{
    const struct json_node *item = json_value_of(path_name);
    char room[WORD_MAX];
    struct span path;
    if (w->all->operations_count == CONTRACT_OPERATIONS_MAX)
        return refuse(w, node, "is one operation more than %u", CONTRACT_OPERATIONS_MAX);
    struct contract_operation *o = &w->all->operations[w->all->operations_count];
    *o = (struct contract_operation){.contract = w->contract, .method = method};
    if (!json_string_of(w->json, path_name, room, sizeof(room), &path))
        return refuse(w, path_name, "is a path of more than %d bytes", (int)WORD_MAX);
    o->path = keep(w, span_text(w->base), path);
    o->id = keep_string(w, json_member(w->json, node, "operationId"));
    if (!o->path || !o->id || !add_parameters(w, json_member(w->json, item, "parameters"), o) ||
        !add_parameters(w, json_member(w->json, node, "parameters"), o) ||
        !add_body(w, json_member(w->json, node, "requestBody"), o) ||
        !add_answers(w, json_member(w->json, node, "responses"), o))
        return false;
    if (contracts_operation(w->all, method, o->path))
        return refuse(w, node, "is %s %s, which another document has", method, o->path);
    w->all->operations_count++;
    return true;
}

static bool add_paths(struct work *w)
{
    static const struct {
        const char *member, *method;
    } methods[] = {
        {"get", "GET"}, {"put", "PUT"}, {"post", "POST"}, {"delete", "DELETE"}, {"patch", "PATCH"},
    };
    const struct json_node *paths = json_member(w->json, json_root(w->json), "paths");
    if (!paths || paths->kind != JSON_OBJECT)
        return refuse(w, NULL, "has no paths");
    for (const struct json_node *name = json_first(w->json, paths); name;
         name = json_after(w->json, paths, name)) {
        const struct json_node *item = json_value_of(name), *node;
        if (item->kind != JSON_OBJECT)
            return refuse(w, item, "is no path item");
        for (size_t i = 0; i < sizeof(methods) / sizeof(*methods); i++)
            if ((node = json_member(w->json, item, methods[i].member)) &&
                !add_operation(w, methods[i].method, name, node))
                return false;
    }
    return true;
}

/* Every schema that has a name, used or not. */
static bool compile_named(struct work *w, const char *pointer)
{
    const struct json_node *list = node_at(w->json, pointer);
    if (!list || list->kind != JSON_OBJECT)
        return refuse(w, NULL, "has nothing at %s", pointer);
    for (const struct json_node *name = json_first(w->json, list); name;
         name = json_after(w->json, list, name))
        if (!schema_of(w, json_value_of(name)))
            return false;
    return true;
}

/* The path of the first server, "/v1"; of a whole URL or of "/": nothing. */
static bool find_base(struct work *w)
{
    char *room = w->base;
    const size_t size = sizeof(w->base);
    const struct json_node *servers = json_member(w->json, json_root(w->json), "servers"), *first, *url;
    struct span text = span_of("", 0);
    first = servers && servers->kind == JSON_ARRAY ? json_first(w->json, servers) : NULL;
    url = first && first->kind == JSON_OBJECT ? json_member(w->json, first, "url") : NULL;
    if (url && (url->kind != JSON_STRING || !json_string_of(w->json, url, room, size - 1, &text) ||
                text.size > size - 1))
        return refuse(w, url, "is no URL");
    const char *bytes = text.bytes;
    if (text.size < 2 || bytes[0] != '/')
        text.size = 0;
    if (text.size)
        memmove(room, text.bytes, text.size);
    room[text.size] = 0;
    return true;
}

static bool read_document(struct work *w, struct span text)
{
    char why[384];
    w->all->schemas[w->contract] = schemas_create(text, why, sizeof(why));
    if (!w->all->schemas[w->contract])
        return refuse(w, NULL, "can't be read: %s", why);
    w->json = schemas_document(w->all->schemas[w->contract]);
    return true;
}

/* ---- events: the document goes on with a schema for each name ---- */

static void write_fixed(struct json *json, struct span fixed, bool names_only)
{
    const char *at = fixed.bytes, *end = at + fixed.size;
    while (at < end) {
        const char *comma = memchr(at, ',', (size_t)(end - at)), *stop = comma ? comma : end;
        const char *equals = memchr(at, '=', (size_t)(stop - at));
        ASSERT(equals); /* the table is ours */
        char name[64];
        snprintf(name, sizeof(name), "%.*s", (int)(equals - at), at);
        if (names_only) {
            json_string(json, name);
        } else {
            json_key(json, name);
            json_object_begin(json);
            json_key(json, "const");
            json_string_n(json, equals + 1, (size_t)(stop - equals - 1));
            json_object_end(json);
        }
        at = stop + (comma != NULL);
    }
}

static void write_required(struct json *json, struct span names)
{
    const char *at = names.bytes, *end = at + names.size;
    while (at < end) {
        const char *comma = memchr(at, ',', (size_t)(end - at)), *stop = comma ? comma : end;
        json_string_n(json, at, (size_t)(stop - at));
        at = stop + (comma != NULL);
    }
}

static void write_details(struct json *json, const struct contract_event *row)
{
    char text[192];
    snprintf(text, sizeof(text), "%.*s", (int)row->name.size, (const char *)row->name.bytes);
    json_key(json, text);
    json_object_begin(json);
    json_key(json, "allOf");
    json_array_begin(json);
    json_object_begin(json);
    snprintf(text, sizeof(text), "#/components/schemas/%.*s", (int)row->details.size,
             (const char *)row->details.bytes);
    JSON_MEMBER(json, "$ref", string, text);
    json_object_end(json);
    json_object_begin(json);
    JSON_MEMBER(json, "type", string, "object");
    json_key(json, "required");
    json_array_begin(json);
    write_required(json, row->requires);
    write_fixed(json, row->fixed, true);
    json_array_end(json);
    json_key(json, "properties");
    json_object_begin(json);
    write_fixed(json, row->fixed, false);
    json_object_end(json);
    json_object_end(json);
    json_array_end(json);
    json_object_end(json);
}

static bool write_events(struct work *w, struct json_sink *sink)
{
    struct span table = contract_events_text(), document = contract_json(CONTRACT_EVENTS);
    struct contract_event row;
    struct json json;
    size_t at = 0;
    const char *bytes = document.bytes, *end = memrchr(bytes, '}', document.size);
    if (!end)
        return refuse(w, NULL, "is no object");
    json_sink_bytes(sink, bytes, (size_t)(end - bytes));
    json_sink_text(sink, ",\"x-details\":");
    json_init(&json, sink);
    json_object_begin(&json);
    while (contract_event_next(table, &at, &row)) {
        if (row.details.size == 0)
            return refuse(w, NULL, "binds no details to the event %.*s", (int)row.name.size,
                          (const char *)row.name.bytes);
        write_details(&json, &row);
    }
    if (at != table.size)
        return refuse(w, NULL, "has a table of events whose byte %zu begins no row", at);
    json_object_end(&json);
    if (json_end(&json) != JSON_OK)
        return refuse(w, NULL, "has more events than there is room for");
    json_sink_text(sink, "}");
    return sink->status == JSON_OK || refuse(w, NULL, "has more events than there is room for");
}

static int by_name(const void *a, const void *b)
{
    const struct bound_event *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static bool bind_events(struct work *w)
{
    struct contracts *all = w->all;
    const struct json_node *list = node_at(w->json, "/x-details");
    if (!list)
        return refuse(w, NULL, "has no events");
    for (const struct json_node *name = json_first(w->json, list); name;
         name = json_after(w->json, list, name)) {
        struct bound_event *event = &all->events[all->events_count];
        if (all->events_count == CONTRACT_EVENTS_MAX)
            return refuse(w, name, "is one event more than %u", CONTRACT_EVENTS_MAX);
        event->name = keep_string(w, name);
        event->details = schema_of(w, json_value_of(name));
        if (!event->name || !event->details)
            return false;
        all->events_count++;
    }
    qsort(all->events, all->events_count, sizeof(*all->events), by_name);
    return true;
}

/* As large as the document, and a line of JSON for each event. */
enum { EVENT_LINE_MAX = 512 };

static bool compile_events(struct work *w)
{
    size_t room = contract_json(CONTRACT_EVENTS).size + (size_t)CONTRACT_EVENTS_MAX * EVENT_LINE_MAX;
    struct json_sink sink;
    w->all->events_json = malloc(room);
    if (!w->all->events_json)
        return refuse(w, NULL, "has no memory");
    json_sink_init(&sink, w->all->events_json, room, NULL, NULL);
    return write_events(w, &sink) && read_document(w, span_of(w->all->events_json, sink.length)) &&
           compile_named(w, "/components/schemas") && bind_events(w);
}

static bool compile_operations(struct work *w)
{
    return read_document(w, contract_json(w->contract)) && find_base(w) && add_paths(w) &&
           compile_named(w, "/components/schemas");
}

/* The error shapes are in our own document, but that of the job contract, whose codes are its own. */
static bool find_refusals(struct contracts *all, char *ret_text, size_t text_size)
{
    static const struct {
        enum contract contract;
        const char *pointer;
    } places[SURFACE_COUNT] = {
        [SURFACE_PUBLIC] = {CONTRACT_OPS, "/components/schemas/Problem"},
        [SURFACE_OPERATOR] = {CONTRACT_OPS, "/components/schemas/Problem"},
        [SURFACE_CONTROL] = {CONTRACT_OPS, "/components/schemas/ControlError"},
        [SURFACE_JOBS] = {CONTRACT_JOBS, "/components/schemas/Problem"},
    };
    for (enum surface s = 0; s < SURFACE_COUNT; s++)
        if (!(all->refusals[s] =
                  schemas_at(all->schemas[places[s].contract], places[s].pointer, ret_text, text_size)))
            return false;
    return true;
}

struct contracts *contracts_create(char *ret_text, size_t text_size)
{
    struct contracts *all = calloc(1, sizeof(*all));
    if (!all) {
        snprintf(ret_text, text_size, "there is no memory for the contracts");
        return NULL;
    }
    for (enum contract c = 0; c < CONTRACT_COUNT; c++) {
        struct work w = {.all = all, .contract = c, .text = ret_text, .text_size = text_size};
        bool good = contract_kind(c) == CONTRACT_OPENAPI ? compile_operations(&w) : compile_events(&w);
        etag_make(contract_json(c), etags[c]);
        if (!good) {
            contracts_destroy(all);
            return NULL;
        }
    }
    if (!find_refusals(all, ret_text, text_size)) {
        contracts_destroy(all);
        return NULL;
    }
    return all;
}

void contracts_destroy(struct contracts *contracts)
{
    if (!contracts)
        return;
    for (enum contract c = 0; c < CONTRACT_COUNT; c++)
        if (contracts->schemas[c])
            schemas_destroy(contracts->schemas[c]);
    free(contracts->events_json);
    free(contracts);
}

const struct schemas *contracts_schemas(const struct contracts *contracts, enum contract contract)
{
    ASSERT(contract < CONTRACT_COUNT);
    return contracts->schemas[contract];
}

const struct contract_operation *contracts_operation(const struct contracts *contracts, const char *method,
                                                     const char *path)
{
    for (size_t i = 0; i < contracts->operations_count; i++)
        if (strcmp(contracts->operations[i].path, path) == 0 &&
            strcmp(contracts->operations[i].method, method) == 0)
            return &contracts->operations[i];
    return NULL;
}

const struct contract_operation *contracts_each(const struct contracts *contracts, size_t position)
{
    return position < contracts->operations_count ? &contracts->operations[position] : NULL;
}

const struct schema *contracts_refusal(const struct contracts *contracts, enum surface surface)
{
    ASSERT(surface < SURFACE_COUNT);
    return contracts->refusals[surface];
}

static int to_name(const void *name, const void *event)
{
    return strcmp(name, ((const struct bound_event *)event)->name);
}

const struct schema *contracts_event(const struct contracts *contracts, const char *event_name)
{
    const struct bound_event *event =
        bsearch(event_name, contracts->events, contracts->events_count, sizeof(*contracts->events), to_name);
    return event ? event->details : NULL;
}
