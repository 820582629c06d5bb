#include "http/stats.h"

#include <string.h>

#include "actors/bus.h"
#include "actors/deduper.h"
#include "actors/registry.h"
#include "http/census.h"
#include "http/front.h"
#include "http/parameter.h"
#include "http/process.h"
#include "http/store_figures.h"
#include "http/timestamp.h"
#include "runtime/pressure.h"
#include "runtime/runtime.h"
#include "runtime/telemetry.h"

#define DOT_TYPE "text/vnd.graphviz; charset=utf-8"

/* ---- parts of /stats ---- */

static void write_process(struct json *json)
{
    struct process_figures p;
    char started[TIMESTAMP_SIZE];
    process_read(&p);
    timestamp_format(p.started_ms * NS_PER_MS, started);
    json_key(json, "process");
    json_object_begin(json);
    JSON_MEMBER(json, "started", string, started);
    JSON_MEMBER(json, "pid", uint, p.pid);
    json_key(json, "cpu_seconds");
    json_decimal(json, (int64_t)p.cpu_us, 6);
    JSON_MEMBER(json, "resident_bytes", uint, p.resident_bytes);
    JSON_MEMBER(json, "open_fds", uint, p.open_fds);
    json_key(json, "max_fds");
    if (p.max_fds == UINT64_MAX)
        json_null(json);
    else
        json_uint(json, p.max_fds);
    JSON_MEMBER(json, "threads", uint, p.threads);
    json_object_end(json);
}

#define RUNTIME(X)      \
    X(actors)           \
    X(spawned)          \
    X(ended)            \
    X(crashed)          \
    X(messages_handled) \
    X(messages_dropped) \
    X(messages_remote)  \
    X(preemptions)      \
    X(overruns)         \
    X(wakes)            \
    X(polls)            \
    X(turns)            \
    X(timers)           \
    X(records)

#define MEMORY(X)    \
    X(stacks)        \
    X(stacks_in_use) \
    X(message_bytes) \
    X(record_bytes)  \
    X(actor_bytes)

#define SCHEDULER(X)    \
    X(run_queue)        \
    X(actors)           \
    X(parked)           \
    X(messages_handled) \
    X(messages_remote)  \
    X(preemptions)      \
    X(overruns)         \
    X(turns)            \
    X(timers)

static void write_scheduler(struct json *json, uint32_t n)
{
    struct runtime_scheduler s;
    runtime_scheduler(runtime_self(), n, &s);
    json_object_begin(json);
    JSON_MEMBER(json, "scheduler", uint, n);
    JSON_MEMBER(json, "dedicated", bool, s.dedicated);
    json_key(json, "busy_ratio");
    json_decimal(json, s.busy_ppm, 6);
    json_key(json, "busy_seconds");
    json_decimal(json, (int64_t)((s.lived_ns - s.idle_ns) / NS_PER_US), 6);
#define X(name) JSON_MEMBER(json, #name, uint, s.name);
    SCHEDULER(X)
#undef X
    json_object_end(json);
}

static void write_runtime(struct json *json)
{
    struct runtime_stats s;
    runtime_stats(runtime_self(), &s);
    json_key(json, "schedulers");
    json_array_begin(json);
    for (uint32_t i = 0; i < s.schedulers; i++)
        write_scheduler(json, i);
    json_array_end(json);
#define X(name) JSON_MEMBER(json, #name, uint, s.name);
    json_key(json, "runtime");
    json_object_begin(json);
    RUNTIME(X)
    json_object_end(json);
    json_key(json, "memory");
    json_object_begin(json);
    MEMORY(X)
    json_object_end(json);
#undef X
}

static void write_queue(struct json *json, const struct census_row *row)
{
    json_object_begin(json);
    JSON_MEMBER(json, "class", string, row->class_name);
    JSON_MEMBER(json, "actors", uint, row->actors);
    JSON_MEMBER(json, "messages", uint, row->messages);
    JSON_MEMBER(json, "arena_bytes", uint, row->arena_bytes);
    json_key(json, "fullest");
    if (row->fullest) {
        json_object_begin(json);
        JSON_MEMBER(json, "pid", hex_string, row->fullest);
        JSON_MEMBER(json, "depth", uint, row->fullest_depth);
        JSON_MEMBER(json, "capacity", uint, row->fullest_capacity);
        json_object_end(json);
    } else {
        json_null(json);
    }
    json_object_end(json);
}

static void write_queues(struct json *json)
{
    struct census *census = actor_alloc(sizeof(*census));
    const struct census_row *order[CENSUS_CLASSES];
    size_t count = 0;
    census_take(census);
    census_note(census);
    for (const struct census_row *row = census->rows; row->class_name; row++) {
        size_t at = count++;
        for (; at && order[at - 1]->messages < row->messages; at--)
            order[at] = order[at - 1];
        order[at] = row;
    }
    json_key(json, "queues");
    json_object_begin(json);
    json_key(json, "mailboxes");
    json_array_begin(json);
    for (size_t i = 0; i < count; i++)
        write_queue(json, order[i]);
    json_array_end(json);
    JSON_MEMBER(json, "complete", bool, census->complete);
    json_object_end(json);
}

static void write_level(void *context, const char *component, int64_t level)
{
    if (strcmp(component, "other") == 0 && level == 0) /* nobody has been that yet */
        return;
    json_key(context, component);
    json_string(context, pressure_level_name((enum pressure_level)level));
}

static void write_pressure(struct json *json)
{
    json_key(json, "pressure");
    json_object_begin(json);
    telemetry_gauge_each(runtime_telemetry(runtime_self()), TELEMETRY_GAUGE_PRESSURE_LEVEL, write_level,
                         json);
    json_object_end(json);
}

/* In the unit of the objective's name: ms, a ratio, a number. */
static void write_amount(struct json *json, const char *name, const char *key, int64_t amount)
{
    size_t length = strlen(name);
    bool ms = length > 3 && strcmp(name + length - 3, "_ms") == 0;
    bool ratio = length > 6 && strcmp(name + length - 6, "_ratio") == 0;
    json_key(json, key);
    json_decimal(json, amount, ms || ratio ? 6 : 0);
}

static void write_slos(struct json *json)
{
    const struct telemetry *telemetry = runtime_telemetry(runtime_self());
    json_key(json, "slos");
    json_array_begin(json);
    for (enum telemetry_slo i = 0; i < TELEMETRY_SLO_COUNT; i++) {
        struct telemetry_slo_state state;
        const char *name = telemetry_slo_name(i);
        telemetry_slo_read(telemetry, i, actor_now(), &state);
        json_object_begin(json);
        JSON_MEMBER(json, "name", string, name);
        write_amount(json, name, "value", state.value);
        /* The baselines of the contract: where it turns critical, and for what has no warning, that there is none of it. */
        write_amount(json, name, "target", state.threshold.warn ? state.threshold.critical : 0);
        write_amount(json, name, "warn",
                     state.threshold.warn ? state.threshold.warn : state.threshold.critical);
        write_amount(json, name, "critical", state.threshold.critical);
        JSON_MEMBER(json, "level", string, slo_level_name(state.level));
        JSON_MEMBER(json, "samples", uint, state.samples);
        JSON_MEMBER(json, "insufficient", bool, state.insufficient);
        json_object_end(json);
    }
    json_array_end(json);
}

static void write_fronts(struct json *json)
{
    static const char *const names[] = {"client", "operator"};
    json_key(json, "fronts");
    json_object_begin(json);
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        struct front *front = front_find(names[i]);
        if (!front)
            continue;
        json_key(json, names[i]);
        json_object_begin(json);
        JSON_MEMBER(json, "connections", uint, atomic_load(&front->connections));
        JSON_MEMBER(json, "streams", uint, atomic_load(&front->streams));
        JSON_MEMBER(json, "requests", uint, atomic_load(&front->requests));
        JSON_MEMBER(json, "draining", bool, atomic_load(&front->draining));
        json_object_end(json);
    }
    json_object_end(json);
}

static void write_registry(struct json *json, const char *key, const char *registry)
{
    uint64_t count;
    json_key(json, key);
    if (registry_count(registry, &count, actor_deadline_ms(STATS_ANSWER_MS)) == OK)
        json_uint(json, count);
    else
        json_null(json);
}

static void write_domains(struct json *json)
{
    struct bus_figures bus;
    struct deduper_figures deduper;
    json_key(json, "domains");
    json_object_begin(json);
    write_registry(json, "rooms", "registry.rooms");
    write_registry(json, "agents", "registry.agents");
    write_registry(json, "instances", "registry.instances");
    json_key(json, "bus");
    if (bus_inspect(&bus, actor_deadline_ms(STATS_ANSWER_MS)) == OK) {
        json_object_begin(json);
        JSON_MEMBER(json, "published", uint, bus.published);
        JSON_MEMBER(json, "delivered", uint, bus.delivered);
        JSON_MEMBER(json, "missed", uint, bus.missed);
        json_object_end(json);
    } else {
        json_null(json);
    }
    json_key(json, "deduper");
    if (deduper_inspect(&deduper, actor_deadline_ms(STATS_ANSWER_MS)) == OK) {
        json_object_begin(json);
        JSON_MEMBER(json, "asked", uint, deduper.asked);
        JSON_MEMBER(json, "seen", uint, deduper.seen);
        JSON_MEMBER(json, "keys", uint, deduper.keys);
        JSON_MEMBER(json, "window", uint, deduper.window);
        json_object_end(json);
    } else {
        json_null(json);
    }
    json_object_end(json);
}

void stats_serve(const struct request *q, struct response *r)
{
    struct store_figures *store = actor_alloc(sizeof(*store));
    char now[TIMESTAMP_SIZE];
    struct json json;
    store_figures_read(store);
    timestamp_format(actor_wall_now(), now);
    response_begin(r, 200, RESPONSE_JSON);
    json_init(&json, &r->sink);
    json_object_begin(&json);
    JSON_MEMBER(&json, "version", string, q->front->version);
    JSON_MEMBER(&json, "environment", string, q->front->environment);
    JSON_MEMBER(&json, "now", string, now);
    write_process(&json);
    write_runtime(&json);
    write_queues(&json);
    write_pressure(&json);
    write_slos(&json);
    json_key(&json, "store");
    store_figures_write(store, &json);
    write_fronts(&json);
    write_domains(&json);
    json_object_end(&json);
    json_sink_text(&r->sink, "\n");
}

/* ---- the tree ---- */

enum format { FORMAT_JSON, FORMAT_TEXT, FORMAT_DOT };

struct tree_query {
    size_t format, order, state;
    uint64_t children, limit;
    bool filtered;
    char name[96], class_name[64], without[64];
};

/* As living.h says them of an actor; the first one is said of none. */
#define TREE_STATES(X) X(ANY, "any") CHILD_STATES(X) X(SUSPENDED, "suspended") X(SILENT, "silent")
static const char *const states[] = {
#define X(id, name) name,
    TREE_STATES(X)
#undef X
};
enum { STATES = sizeof(states) / sizeof(*states) };

/* What can't be meant together; NULL: it can. */
static const char *tree_contradiction(const struct tree_query *t, uint64_t n, uint64_t limit)
{
    if (n && limit)
        return "n and limit say the same: how many are shown of a list";
    if (t->filtered && t->children)
        return "children is of a tree: of a list n or limit say how many are shown";
    if (t->filtered && t->without[0])
        return "without is of a tree: a list is of those that name, class or state say";
    if (t->filtered && t->format == FORMAT_DOT)
        return "a drawing is of the whole tree: name, class, state, limit and top are for json and text";
    return NULL;
}

static bool tree_query_read(const struct request *q, struct response *r, struct tree_query *t)
{
    static const char *const formats[] = {"json", "text", "dot"};
    static const char *const orders[] = {
#define X(id, name) name,
        LIVING_ORDERS(X)
#undef X
    };
    uint64_t n, limit;
    if (!parameter_word(q, r, "format", formats, 3, &t->format) ||
        !parameter_word(q, r, "top", orders, LIVING_ORDER_COUNT, &t->order) ||
        !parameter_number(q, r, "children", 0, LIVING_CHILDREN_MAX, &t->children) ||
        !parameter_text(q, r, "without", t->without, sizeof(t->without)) ||
        !parameter_number(q, r, "n", 0, LIVING_LIST_MAX, &n) ||
        !parameter_number(q, r, "limit", 0, LIVING_LIST_MAX, &limit) ||
        !parameter_text(q, r, "name", t->name, sizeof(t->name)) ||
        !parameter_text(q, r, "class", t->class_name, sizeof(t->class_name)) ||
        !parameter_word(q, r, "state", states, STATES, &t->state))
        return false;
    t->filtered = t->order || n || limit || t->name[0] || t->class_name[0] || t->state;
    t->limit = n ? n : limit ? limit : t->order ? 10 : LIVING_LIST_DEFAULT;
    const char *why = tree_contradiction(t, n, limit);
    if (why) {
        response_error(r, ERROR_OPS_400_INVALID, "%s", why);
        return false;
    }
    if (!t->children)
        t->children = LIVING_CHILDREN_DEFAULT;
    return true;
}

void stats_serve_tree(const struct request *q, struct response *r)
{
    static const char *const types[] = {RESPONSE_JSON, RESPONSE_TEXT, DOT_TYPE};
    const struct living_rows *rows = q->front->rows;
    struct tree_query t;
    struct json json;
    if (!tree_query_read(q, r, &t))
        return;
    const struct living_filter filter = {.name = t.name,
                                         .class_name = t.class_name,
                                         .state = t.state ? states[t.state] : "",
                                         .order = (enum living_order)t.order,
                                         .limit = (uint32_t)t.limit};
    const struct living_part part = {.children = t.children, .without = t.without};
    response_begin(r, 200, types[t.format]);
    json_init(&json, &r->sink);
    if (t.format == FORMAT_DOT)
        living_write_dot(rows, &r->sink, part);
    else if (t.format == FORMAT_TEXT && t.filtered)
        living_write_list_text(rows, &r->sink, &filter);
    else if (t.format == FORMAT_TEXT)
        living_write_text(rows, &r->sink, part);
    else if (t.filtered)
        living_write_list(rows, &json, &filter);
    else
        living_write_json(rows, &json, part);
    if (t.format == FORMAT_JSON)
        json_sink_text(&r->sink, "\n");
}
