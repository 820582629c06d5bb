#define _GNU_SOURCE /* memmem */
#include "config/contract_command.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/contract.h"
#include "http/contract_diff.h"
#include "runtime/assert.h"

#define EXIT_USAGE 64

enum { BASE_MAX = 8 << 20, TEXT_MAX = 1024, PATH_MAX_BYTES = 4096 };

/* ---- show ---- */

static void write_span(struct json_sink *sink, struct span text)
{
    json_sink_bytes(sink, text.bytes, text.size);
}

/* `deprecated` is no member of a channel: strict parsers refuse it, and take what begins with x- (AMB-53). */
static void write_strict(struct json_sink *sink, struct span text)
{
    static const char word[] = "deprecated";
    const char *at = text.bytes, *end = at + text.size, *found;
    while ((found = memmem(at, (size_t)(end - at), word, sizeof(word) - 1))) {
        json_sink_bytes(sink, at, (size_t)(found - at));
        json_sink_text(sink, "x-deprecated");
        at = found + sizeof(word) - 1;
    }
    json_sink_bytes(sink, at, (size_t)(end - at));
}

static void write_errors(struct json_sink *sink)
{
    json_sink_text(sink, "code\thttp\tretryable\tretry_class\tmeaning\taction\tsurface\textension\n");
    for (enum error_code code = ERROR_NONE + 1; code < ERROR_CODE_COUNT; code++) {
        const struct catalogue_row *row = catalogue_row(code);
        json_sink_text(sink, row->code);
        json_sink_text(sink, "\t");
        json_sink_uint(sink, (uint64_t)row->status);
        const char *rest[] = {row->retryable ? "true" : "false",
                              row->retry_class,
                              row->title,
                              row->action,
                              surface_name(row->surface),
                              row->extension ? "true" : "false"};
        for (size_t i = 0; i < sizeof(rest) / sizeof(*rest); i++) {
            json_sink_text(sink, "\t");
            json_sink_text(sink, rest[i]);
        }
        json_sink_text(sink, "\n");
    }
}

static void write_errors_json(struct json_sink *sink)
{
    struct json json;
    json_init(&json, sink);
    json_array_begin(&json);
    for (enum error_code code = ERROR_NONE + 1; code < ERROR_CODE_COUNT; code++) {
        const struct catalogue_row *row = catalogue_row(code);
        json_object_begin(&json);
        JSON_MEMBER(&json, "code", string, row->code);
        JSON_MEMBER(&json, "http", int, row->status);
        JSON_MEMBER(&json, "retryable", bool, row->retryable);
        JSON_MEMBER(&json, "retry_class", string, row->retry_class);
        JSON_MEMBER(&json, "meaning", string, row->title);
        JSON_MEMBER(&json, "action", string, row->action);
        JSON_MEMBER(&json, "surface", string, surface_name(row->surface));
        JSON_MEMBER(&json, "extension", bool, row->extension);
        json_object_end(&json);
    }
    json_array_end(&json);
    json_end_line(&json);
}

static void member_span(struct json *json, const char *key, struct span text)
{
    json_key(json, key);
    json_string_n(json, text.bytes, text.size);
}

static void write_events_json(struct json_sink *sink)
{
    struct contract_event row;
    struct json json;
    size_t at = 0;
    json_init(&json, sink);
    json_array_begin(&json);
    while (contract_event_next(contract_events_text(), &at, &row)) {
        json_object_begin(&json);
        member_span(&json, "event_name", row.name);
        member_span(&json, "channel", row.channel);
        member_span(&json, "details", row.details);
        member_span(&json, "requires", row.requires);
        member_span(&json, "fixed", row.fixed);
        json_object_end(&json);
    }
    json_array_end(&json);
    json_end_line(&json);
}

int contract_command_show(const char *what, bool json, bool strict, struct json_sink *sink, char *ret_why,
                          size_t why_size)
{
    static const struct {
        const char *name;
        enum contract contract;
    } documents[] = {{"openapi", CONTRACT_CONTROL},
                     {"asyncapi", CONTRACT_EVENTS},
                     {"jobs", CONTRACT_JOBS},
                     {"work", CONTRACT_WORK},
                     {"ops", CONTRACT_OPS}};
    if (strict && strcmp(what, "asyncapi") != 0) {
        snprintf(ret_why, why_size, "--strict is for asyncapi; %s is as strict as it gets", what);
        return EXIT_USAGE;
    }
    for (size_t i = 0; i < sizeof(documents) / sizeof(*documents); i++)
        if (strcmp(what, documents[i].name) == 0) {
            struct span text =
                json ? contract_json(documents[i].contract) : contract_yaml(documents[i].contract);
            strict ? write_strict(sink, text) : write_span(sink, text);
            return 0;
        }
    if (strcmp(what, "errors") == 0)
        json ? write_errors_json(sink) : write_errors(sink);
    else if (strcmp(what, "events") == 0)
        json ? write_events_json(sink) : write_span(sink, contract_events_text());
    else {
        snprintf(ret_why, why_size,
                 "there is no '%s'; it must be openapi, asyncapi, jobs, work, ops, errors or events", what);
        return EXIT_USAGE;
    }
    return 0;
}

/* ---- check: what it finds goes out line by line ---- */

struct served;
struct report {
    struct json_sink *sink;
    struct json json; /* when wanted: of an array of objects */
    bool as_json;
    uint32_t findings, notes, breaking, compatible, operations, events;
    const struct served *served; /* borrowed */
    uint64_t release;            /* of the ops contract */
};

static void report_line(struct report *r, const char *kind, const char *text)
{
    if (r->as_json) {
        json_object_begin(&r->json);
        JSON_MEMBER(&r->json, "kind", string, kind);
        JSON_MEMBER(&r->json, "text", string, text);
        json_object_end(&r->json);
    } else {
        json_sink_text(r->sink, kind);
        json_sink_text(r->sink, ": ");
        json_sink_text(r->sink, text);
        json_sink_text(r->sink, "\n");
    }
}

static void report_finding(void *context, const char *text)
{
    struct report *r = context;
    r->findings++;
    report_line(r, "finding", text);
}

__attribute__((format(printf, 3, 4))) static void find(contract_finding *tell, void *context,
                                                       const char *format, ...)
{
    char text[TEXT_MAX];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    tell(context, text);
}

/* ---- routes and operations ---- */

static const char *documented_path(const struct route *route)
{
    return route->alias_of ? route->alias_of : route->path;
}

/* Every route once, whoever listens for it. */
struct served {
    size_t count;
    const struct route *routes[2 * ROUTES_MAX];
};

static void served_add(struct served *s, const struct route *route)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->routes[i] == route)
            return;
    ASSERT(s->count < 2 * ROUTES_MAX);
    s->routes[s->count++] = route;
}

static void served_fill(struct served *s, const struct surface_tables *listenings, size_t count)
{
    s->count = 0;
    for (size_t l = 0; l < count; l++)
        for (size_t t = 0; t < listenings[l].count; t++)
            for (size_t i = 0; i < listenings[l].counts[t]; i++)
                served_add(s, &listenings[l].tables[t][i]);
}

static bool is_routed(const struct served *served, const struct contract_operation *o)
{
    for (size_t i = 0; i < served->count; i++) {
        const struct route *route = served->routes[i];
        if (!route->undocumented && strcmp(documented_path(route), o->path) == 0 &&
            strcmp(method_name(route->method), o->method) == 0)
            return true;
    }
    return false;
}

static void check_routes(const struct served *routes, const struct contracts *contracts, struct report *r)
{
    uint32_t served[CONTRACT_COUNT] = {0}, missing[CONTRACT_COUNT] = {0};
    const struct contract_operation *o;
    for (size_t i = 0; i < routes->count; i++) {
        const struct route *route = routes->routes[i];
        if (!route->undocumented &&
            !contracts_operation(contracts, method_name(route->method), documented_path(route)))
            find(report_finding, r, "the route %s %s is in no contract", method_name(route->method),
                 documented_path(route));
    }
    for (size_t i = 0; (o = contracts_each(contracts, i)); i++, r->operations++)
        is_routed(routes, o) ? served[o->contract]++ : missing[o->contract]++;
    for (size_t i = 0; (o = contracts_each(contracts, i)); i++)
        if (served[o->contract] && !is_routed(routes, o))
            find(report_finding, r, "the operation %s (%s %s) of the contract '%s' has no route", o->id,
                 o->method, o->path, contract_name(o->contract));
    for (enum contract c = 0; c < CONTRACT_COUNT; c++)
        if (contract_kind(c) == CONTRACT_OPENAPI && !served[c] && missing[c]) {
            char text[TEXT_MAX];
            snprintf(text, sizeof(text), "no route serves any of the %u operations of the contract '%s'",
                     missing[c], contract_name(c));
            r->notes++;
            report_line(r, "note", text);
        }
}

/* ---- versions of paths: /v1/, /v2/ ---- */

#define RELEASES_KEPT \
    2u /* a version goes at the earliest in the second release after the one that deprecates it */

static const struct json_node *info_member(const struct json_text *json, const char *name)
{
    const struct json_node *root = json_root(json);
    const struct json_node *info = root->kind == JSON_OBJECT ? json_member(json, root, "info") : NULL;
    return info && info->kind == JSON_OBJECT ? json_member(json, info, name) : NULL;
}

static const struct json_node *versions_of(const struct json_text *json)
{
    const struct json_node *list = info_member(json, "x-path-versions");
    return list && list->kind == JSON_OBJECT ? list : NULL;
}

/* 0: it isn't there, or no number. */
static uint64_t number_of(const struct json_text *json, const struct json_node *node)
{
    uint64_t number = 0;
    if (node && node->kind == JSON_NUMBER)
        (void)json_uint64_of(json, node, &number);
    return number;
}

/* "v1" of "/v1/jobs"; without bytes: the path has no version. */
static struct span version_in(const char *path)
{
    size_t digits = path[0] == '/' && path[1] == 'v' ? strspn(path + 2, "0123456789") : 0;
    return digits && path[2 + digits] == '/' ? span_of(path + 1, 1 + digits) : span_of(NULL, 0);
}

static bool serves(const char *const *paths, size_t count, struct span version)
{
    for (size_t i = 0; i < count; i++)
        if (span_equal(version_in(paths[i]), version))
            return true;
    return false;
}

/* Of a version that isn't served: was it announced for long enough (CTL-026)? `row` is what `json` says of it. */
static void check_gone(const struct json_text *json, const struct json_node *row, struct span version,
                       uint64_t release, contract_finding *tell, void *context)
{
    const struct json_node *node =
        row->kind == JSON_OBJECT ? json_member(json, row, "deprecated_in_release") : NULL;
    uint64_t deprecated = number_of(json, node), stays = deprecated + RELEASES_KEPT;
    int n = (int)version.size;
    const char *name = version.bytes;
    if (!deprecated)
        find(tell, context, "the path version %.*s is gone, and was never deprecated (CTL-026)", n, name);
    else if (stays > release)
        find(tell, context,
             "the path version %.*s is gone in release %llu; it was deprecated in release %llu, so it stays "
             "until release %llu (CTL-026)",
             n, name, (unsigned long long)release, (unsigned long long)deprecated, (unsigned long long)stays);
}

/* Every version that `json` knows is served, or may have gone; with `now` (the newer document, or NULL) those alone that
 * it doesn't know any more. */
static void check_versions_of(const struct json_text *json, const struct json_text *now, uint64_t release,
                              const char *const *paths, size_t count, contract_finding *tell, void *context)
{
    const struct json_node *list = versions_of(json), *newer = now ? versions_of(now) : NULL;
    for (const struct json_node *n = list ? json_first(json, list) : NULL; n; n = json_after(json, list, n)) {
        char name[32];
        struct span version;
        if (!json_string_of(json, n, name, sizeof(name) - 1, &version))
            continue;
        memmove(name, version.bytes, version.size);
        name[version.size] = 0;
        if (!(newer && json_member(now, newer, name)) && !serves(paths, count, span_text(name)))
            check_gone(json, json_value_of(n), span_text(name), release, tell, context);
    }
}

/* The document itself: a release, and every version that is served. */
static uint64_t check_versions(const struct json_text *json, const char *const *paths, size_t count,
                               contract_finding *tell, void *context)
{
    const struct json_node *list = versions_of(json);
    uint64_t release = number_of(json, info_member(json, "x-release"));
    if (!release || !list) {
        find(tell, context, "info.x-release or info.x-path-versions is missing (CTL-026)");
        return release;
    }
    for (size_t i = 0; i < count; i++) {
        char name[32];
        struct span version = version_in(paths[i]);
        snprintf(name, sizeof(name), "%.*s", (int)version.size, (const char *)version.bytes);
        if (version.size && !serves(paths, i, version) && !json_member(json, list, name))
            find(tell, context, "the path version %s is served, and info.x-path-versions hasn't it", name);
    }
    check_versions_of(json, NULL, release, paths, count, tell, context);
    return release;
}

static size_t paths_of(const struct served *served, const char *paths[2 * ROUTES_MAX])
{
    for (size_t i = 0; i < served->count; i++)
        paths[i] = served->routes[i]->path;
    return served->count;
}

/* ---- events ---- */

/* X(beginning of event names, class): the registered classes (spec/control.md CTL-418 to CTL-423, AMB-63). Another
 * domain or class is registered here, and nowhere else. */
#define CLASSES(X)                                  \
    X("improvement.review.", "improvement")         \
    X("improvement.input.", "improvement")          \
    X("improvement.analysis.", "improvement")       \
    X("improvement.plan.", "improvement")           \
    X("improvement.change.", "improvement")         \
    X("improvement.report.", "improvement")         \
    X("improvement.incident.", "improvement")       \
    X("improvement.routing.", "improvement")        \
    X("improvement.rollout.", "improvement")        \
    X("documentation.snapshot.", "documentation")   \
    X("documentation.validation.", "documentation") \
    X("documentation.publish.", "documentation")    \
    X("documentation.published", "documentation")   \
    X("budget.", "operations")                      \
    X("security.review.", "operations")             \
    X("drill.", "operations")                       \
    X("operations.killswitch.", "operations")       \
    X("operations.runbook.", "operations")          \
    X("operations.feature_flag.", "operations")     \
    X("hitl.", "operations")                        \
    X("service.shutdown.", "operations")            \
    X("scheduler.leader.", "scheduler")

static bool begins(struct span text, const char *with)
{
    size_t n = strlen(with);
    return text.size >= n && memcmp(text.bytes, with, n) == 0;
}

static const char *class_of(struct span name)
{
#define X(beginning, class)      \
    if (begins(name, beginning)) \
        return class;
    CLASSES(X)
#undef X
    return NULL;
}

/* Whether the document names a member like this at /a/b, where b may be NULL. */
static bool has_name(const struct json_text *json, const char *a, const char *b, struct span name)
{
    char text[256];
    const struct json_node *node = json_member(json, json_root(json), a);
    if (node && b)
        node = json_member(json, node, b);
    snprintf(text, sizeof(text), "%.*s", (int)name.size, (const char *)name.bytes);
    return node && json_member(json, node, text);
}

static void check_event(const struct json_text *json, const struct contract_event *row,
                        contract_finding *tell, void *context)
{
    static const char generic[] = "GenericSystemEventDetails";
    int n = (int)row->name.size;
    const char *name = row->name.bytes, *slash = memchr(row->details.bytes, '/', row->details.size);
    struct span schema = span_of(
        row->details.bytes, slash ? (size_t)(slash - (const char *)row->details.bytes) : row->details.size);
    if (!has_name(json, "channels", NULL, row->channel))
        find(tell, context, "the event %.*s is on the channel '%.*s', which the event contract hasn't", n,
             name, (int)row->channel.size, (const char *)row->channel.bytes);
    if (row->details.size == 0)
        find(tell, context, "the event %.*s has no details schema", n, name);
    else if (!has_name(json, "components", "schemas", schema))
        find(tell, context, "the event %.*s has the details '%.*s', which the event contract hasn't", n, name,
             (int)schema.size, (const char *)schema.bytes);
    if (!span_equal(row->details, span_text(generic)))
        return;
    const char *class = class_of(row->name);
    char wanted[64];
    snprintf(wanted, sizeof(wanted), "event_class=%s", class ? class : "");
    if (!class)
        find(tell, context, "the event %.*s has generic details, and no class is registered for its name", n,
             name);
    else if (!span_equal(row->fixed, span_text(wanted)))
        find(tell, context, "the event %.*s has '%.*s'; registered for its name is '%s'", n, name,
             (int)row->fixed.size, (const char *)row->fixed.bytes, wanted);
}

struct document {
    struct json_text json;
    char *text; /* owned, or NULL */
};

static void document_close(struct document *d)
{
    free(d->json.nodes);
    free(d->text);
    *d = (struct document){0};
}

/* False, and why. */
static bool document_read(struct document *ret, struct span text, const char *name, char *why,
                          size_t why_size)
{
    struct json_error error;
    struct json_limits limits = {0};
    ret->json.nodes_max = JSON_TEXT_NODES_MAX;
    ret->json.nodes = calloc(JSON_TEXT_NODES_MAX, sizeof(*ret->json.nodes));
    if (!ret->json.nodes) {
        snprintf(why, why_size, "there is no memory for %s", name);
        return false;
    }
    if (json_text_read(&ret->json, text, &limits, &error))
        return true;
    snprintf(why, why_size,
             "%s is no JSON document: at byte %u, %s (of a YAML document, its JSON form is meant)", name,
             error.at, error.what);
    return false;
}

/* Channels that are only another name of one have no events of their own. */
static bool is_alias(const struct json_text *json, const struct json_node *channel)
{
    const struct json_node *deprecated = json_member(json, channel, "deprecated");
    return deprecated && deprecated->kind == JSON_TRUE;
}

static bool on_channel(struct span table, struct span channel)
{
    struct contract_event row;
    size_t at = 0;
    while (contract_event_next(table, &at, &row))
        if (span_equal(row.channel, channel))
            return true;
    return false;
}

static bool named_before(struct span table, size_t end, struct span name)
{
    struct contract_event row;
    size_t at = 0;
    while (at < end && contract_event_next(table, &at, &row) && at < end)
        if (span_equal(row.name, name))
            return true;
    return false;
}

void contract_command_check_events(struct span table, contract_finding *tell, void *context)
{
    struct document d = {0};
    struct contract_event row;
    char why[TEXT_MAX], room[256];
    struct span text;
    size_t at = 0;
    if (!document_read(&d, contract_json(CONTRACT_EVENTS), "the event contract", why, sizeof(why))) {
        tell(context, why);
        document_close(&d);
        return;
    }
    while (contract_event_next(table, &at, &row)) {
        check_event(&d.json, &row, tell, context);
        if (named_before(table, at, row.name))
            find(tell, context, "the event %.*s is there twice", (int)row.name.size,
                 (const char *)row.name.bytes);
    }
    if (at != table.size)
        find(tell, context, "the table of events has no row at byte %zu", at);
    const struct json_node *channels = json_member(&d.json, json_root(&d.json), "channels");
    for (const struct json_node *n = channels ? json_first(&d.json, channels) : NULL; n;
         n = json_after(&d.json, channels, n))
        if (!is_alias(&d.json, json_value_of(n)) && json_string_of(&d.json, n, room, sizeof(room), &text) &&
            !on_channel(table, text))
            find(tell, context, "no event is on the channel %.*s", (int)text.size, (const char *)text.bytes);
    document_close(&d);
}

static void check_events(const struct contracts *contracts, struct report *r)
{
    struct contract_event row;
    size_t at = 0;
    contract_command_check_events(contract_events_text(), report_finding, r);
    while (contract_event_next(contract_events_text(), &at, &row)) {
        char name[256];
        snprintf(name, sizeof(name), "%.*s", (int)row.name.size, (const char *)row.name.bytes);
        if (!contracts_event(contracts, name))
            find(report_finding, r, "the event %s is bound to no details", name);
        r->events++;
    }
}

/* ---- errors ---- */

static const struct catalogue_row *row_named(struct span code)
{
    for (enum error_code c = ERROR_NONE + 1; c < ERROR_CODE_COUNT; c++)
        if (span_equal(span_text(catalogue_row(c)->code), code))
            return catalogue_row(c);
    return NULL;
}

/* What the document, which is not ours, does not list: codes of the work contract's operations, and what the front says of a request
 * that never comes to an operation. */
static bool beyond_jobs(enum error_code code)
{
    if (code == ERROR_RFA_WEBHOOK_DELIVERY_NOT_FOUND || code == ERROR_RFA_WEBHOOK_DELIVERY_CONFLICT)
        return true;
    static const enum error_kind kinds[] = {ERROR_KIND_REQUEST_TIMEOUT, ERROR_KIND_TARGET_TOO_LONG,
                                            ERROR_KIND_EXPECTATION, ERROR_KIND_HEADER_TOO_LARGE};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (code == catalogue_code(SURFACE_JOBS, kinds[i]))
            return true;
    return false;
}

/* The job contract lists its codes: those, and no others but beyond_jobs, are the catalogue's of its surface. */
static void check_job_codes(const struct contracts *contracts, struct report *r)
{
    const struct json_text *json = schemas_document(contracts_schemas(contracts, CONTRACT_JOBS));
    static const char *const path[] = {"components", "schemas", "ErrorCode", "enum"};
    const struct json_node *list = json_root(json);
    uint32_t ours = 0, theirs = 0;
    for (size_t i = 0; list && i < sizeof(path) / sizeof(*path); i++)
        list = json_member(json, list, path[i]);
    for (const struct json_node *n = list ? json_first(json, list) : NULL; n; n = json_after(json, list, n)) {
        char room[128];
        struct span code;
        const struct catalogue_row *row =
            json_string_of(json, n, room, sizeof(room), &code) ? row_named(code) : NULL;
        theirs++;
        if (!row || row->surface != SURFACE_JOBS)
            find(report_finding, r, "the job contract has %.*s, and the catalogue hasn't", (int)n->length,
                 (const char *)json->text.bytes + n->at);
    }
    for (enum error_code c = ERROR_NONE + 1; c < ERROR_CODE_COUNT; c++)
        ours += catalogue_row(c)->surface == SURFACE_JOBS && !beyond_jobs(c);
    if (ours != theirs)
        find(report_finding, r, "the job contract has %u codes, and the catalogue %u of them", theirs, ours);
}

static void check_errors(const struct contracts *contracts, struct report *r)
{
    for (enum error_code c = ERROR_NONE + 1; c < ERROR_CODE_COUNT; c++) {
        const struct catalogue_row *row = catalogue_row(c);
        if (row->status < 400 || row->status > 599 || !*row->title)
            find(report_finding, r, "the error %s has the status %d and the title '%s'", row->code,
                 row->status, row->title);
    }
    for (enum surface s = 0; s < SURFACE_COUNT; s++)
        for (enum error_kind k = 0; k < ERROR_KIND_COUNT; k++)
            if (surface_shape(catalogue_row(catalogue_code(s, k))->surface) != surface_shape(s))
                find(report_finding, r, "the surface %s answers %s, which is of another shape",
                     surface_name(s), catalogue_row(catalogue_code(s, k))->code);
    check_job_codes(contracts, r);
}

/* ---- schemas of the control surface and of its events are told once (CTL-312) ---- */

static void check_schemas(const struct contracts *contracts, struct report *r)
{
    const struct json_text *a = schemas_document(contracts_schemas(contracts, CONTRACT_CONTROL));
    const struct json_text *b = schemas_document(contracts_schemas(contracts, CONTRACT_EVENTS));
    const struct json_node *list = json_member(a, json_root(a), "components");
    list = list ? json_member(a, list, "schemas") : NULL;
    for (const struct json_node *n = list ? json_first(a, list) : NULL; n; n = json_after(a, list, n)) {
        char room[256];
        struct span name;
        if (json_string_of(a, n, room, sizeof(room), &name) && has_name(b, "components", "schemas", name))
            find(report_finding, r, "the schema %.*s is in two contracts", (int)name.size,
                 (const char *)name.bytes);
    }
}

/* ---- the base ---- */

static void report_difference(void *context, bool breaking, const char *what)
{
    struct report *r = context;
    breaking ? r->breaking++ : r->compatible++;
    report_line(r, breaking ? "breaking" : "compatible", what);
}

enum reading { READ, READ_ABSENT, READ_FAILED };

static enum reading read_file(const char *path, char **ret_text, size_t *ret_size, char *why, size_t why_size)
{
    FILE *file = fopen(path, "re");
    if (!file && (errno == ENOENT || errno == ENOTDIR))
        return READ_ABSENT;
    char *text = file ? malloc(BASE_MAX + 1) : NULL;
    size_t size = text ? fread(text, 1, BASE_MAX + 1, file) : 0;
    bool good = text && !ferror(file);
    int error = errno;
    if (file)
        fclose(file);
    if (!good || size > BASE_MAX) {
        snprintf(why, why_size, "%s: %s", path, good ? "is larger than any contract" : strerror(error));
        free(text);
        return READ_FAILED;
    }
    *ret_text = text;
    *ret_size = size;
    return READ;
}

static bool same_title(const struct json_text *a, const struct json_text *b)
{
    const struct json_node *x = json_member(a, json_root(a), "info"),
                           *y = json_member(b, json_root(b), "info");
    x = x && x->kind == JSON_OBJECT ? json_member(a, x, "title") : NULL;
    y = y && y->kind == JSON_OBJECT ? json_member(b, y, "title") : NULL;
    return x && y && json_same(a, x, b, y);
}

static void report_verdict(struct report *r, const struct contract_diff *diff, const char *name)
{
    if (!diff->allowed)
        find(report_finding, r,
             "the contract '%s' has %u breaking difference%s from its base; that needs a higher major "
             "version (%s) "
             "and info.x-migration-guide-ref (%s)",
             name, diff->breaking, diff->breaking == 1 ? "" : "s",
             diff->major_raised ? "it has" : "it has not", diff->guide ? "it has" : "it has not");
}

/* A document and the older one of the same title. False: it is none of ours, and why. */
static bool compare_document(const struct contracts *contracts, struct document *old, const char *path,
                             struct report *r, struct contract_diff *ret_events, char *why, size_t why_size)
{
    struct contract_diff diff;
    for (enum contract c = 0; c < CONTRACT_COUNT; c++) {
        const struct json_text *now = schemas_document(contracts_schemas(contracts, c));
        if (json_root(&old->json)->kind != JSON_OBJECT || !same_title(&old->json, now))
            continue;
        if (!contract_diff(&old->json, now, report_difference, r, &diff)) {
            snprintf(why, why_size, "%s: is not a document of the same kind, or too large to be compared",
                     path);
            return false;
        }
        report_verdict(r, &diff, contract_name(c));
        if (c == CONTRACT_OPS) {
            const char *paths[2 * ROUTES_MAX];
            size_t count = paths_of(r->served, paths);
            check_versions_of(&old->json, now, r->release, paths, count, report_finding, r);
        }
        if (c == CONTRACT_EVENTS)
            *ret_events = diff;
        return true;
    }
    snprintf(why, why_size, "%s: has the title of none of the contracts", path);
    return false;
}

static enum reading compare_file(const struct contracts *contracts, const char *path, struct report *r,
                                 struct contract_diff *events, char *why, size_t why_size)
{
    struct document old = {0};
    size_t size = 0;
    enum reading reading = read_file(path, &old.text, &size, why, why_size);
    if (reading == READ && (!document_read(&old, span_of(old.text, size), path, why, why_size) ||
                            !compare_document(contracts, &old, path, r, events, why, why_size)))
        reading = READ_FAILED;
    document_close(&old);
    return reading;
}

static enum reading compare_table(const char *path, struct report *r, const struct contract_diff *events,
                                  char *why, size_t why_size)
{
    struct contract_diff diff;
    char *text = NULL;
    size_t size = 0;
    enum reading reading = read_file(path, &text, &size, why, why_size);
    if (reading == READ) {
        if (contract_diff_events(span_of(text, size), contract_events_text(), report_difference, r, &diff)) {
            diff.major_raised = events->major_raised;
            diff.guide = events->guide;
            diff.allowed |= diff.major_raised && diff.guide;
            report_verdict(r, &diff, "events");
        } else {
            snprintf(why, why_size, "%s: is no table of events", path);
            reading = READ_FAILED;
        }
    }
    free(text);
    return reading;
}

/* docs/contract of an older release, or the folder of its generated files. */
static bool compare_folder(const struct contracts *contracts, const char *folder, struct report *r, char *why,
                           size_t why_size)
{
    static const char *const names[] = {
#define X(id, name, file, kind) file ".json", "generated/" file ".json",
        CONTRACTS(X)
#undef X
    };
    struct contract_diff events = {0};
    char path[PATH_MAX_BYTES];
    uint32_t found = 0;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        enum reading reading = compare_file(contracts, path, r, &events, why, why_size);
        if (reading == READ_FAILED)
            return false;
        found += reading == READ;
    }
    if (!found) {
        snprintf(why, why_size, "%s: has neither %s nor %s", folder, names[0], names[1]);
        return false;
    }
    snprintf(path, sizeof(path), "%s/control.events.tsv", folder);
    return compare_table(path, r, &events, why, why_size) != READ_FAILED;
}

static bool compare_base(const struct contracts *contracts, const char *base, struct report *r, char *why,
                         size_t why_size)
{
    struct contract_diff events = {0};
    FILE *folder = fopen(base, "re");
    char one;
    bool is_folder = folder && fread(&one, 1, 1, folder) == 0 && errno == EISDIR;
    if (folder)
        fclose(folder);
    if (is_folder)
        return compare_folder(contracts, base, r, why, why_size);
    enum reading reading = compare_file(contracts, base, r, &events, why, why_size);
    if (reading == READ_ABSENT)
        snprintf(why, why_size, "%s: there is no such file", base);
    return reading == READ;
}

static void report_begin(struct report *r)
{
    if (!r->as_json)
        return;
    json_init(&r->json, r->sink);
    json_object_begin(&r->json);
    json_key(&r->json, "lines");
    json_array_begin(&r->json);
}

static void report_end(struct report *r)
{
    if (r->as_json) {
        json_array_end(&r->json);
        JSON_MEMBER(&r->json, "operations", uint, r->operations);
        JSON_MEMBER(&r->json, "events", uint, r->events);
        JSON_MEMBER(&r->json, "errors", uint, ERROR_CODE_COUNT - 1);
        JSON_MEMBER(&r->json, "breaking", uint, r->breaking);
        JSON_MEMBER(&r->json, "compatible", uint, r->compatible);
        JSON_MEMBER(&r->json, "findings", uint, r->findings);
        json_object_end(&r->json);
        json_end_line(&r->json);
        return;
    }
    char text[256];
    snprintf(
        text, sizeof(text),
        "%d contracts, %u operations, %u events, %d errors; since the base %u breaking and %u compatible "
        "differences; %u findings\n",
        CONTRACT_COUNT, r->operations, r->events, ERROR_CODE_COUNT - 1, r->breaking, r->compatible,
        r->findings);
    json_sink_text(r->sink, text);
}

int contract_command_check(const struct surface_tables *listenings, size_t count, const char *base, bool json,
                           struct json_sink *sink, char *ret_why, size_t why_size)
{
    struct report r = {.sink = sink, .as_json = json};
    struct served served;
    struct contracts *contracts = contracts_create(ret_why, why_size);
    if (!contracts)
        return 1;
    report_begin(&r);
    served_fill(&served, listenings, count);
    check_routes(&served, contracts, &r);
    const char *paths[2 * ROUTES_MAX];
    size_t paths_count = paths_of(&served, paths);
    r.served = &served;
    r.release = check_versions(schemas_document(contracts_schemas(contracts, CONTRACT_OPS)), paths,
                               paths_count, report_finding, &r);
    check_events(contracts, &r);
    check_errors(contracts, &r);
    check_schemas(contracts, &r);
    bool compared = !base || compare_base(contracts, base, &r, ret_why, why_size);
    if (compared)
        report_end(&r);
    contracts_destroy(contracts);
    return !compared ? EXIT_USAGE : r.findings > 0;
}

void contract_command_check_versions(struct span document, struct span base, const char *const *paths,
                                     size_t count, contract_finding *tell, void *context)
{
    struct document now = {0}, old = {0};
    char why[TEXT_MAX];
    if (!document_read(&now, document, "the contract", why, sizeof(why)) ||
        (base.size && !document_read(&old, base, "the base", why, sizeof(why)))) {
        tell(context, why);
    } else {
        uint64_t release = check_versions(&now.json, paths, count, tell, context);
        if (base.size)
            check_versions_of(&old.json, &now.json, release, paths, count, tell, context);
    }
    document_close(&now);
    document_close(&old);
}
