#include "http/metrics.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "http/actor_view.h"
#include "http/body.h"
#include "http/census.h"
#include "http/exposition.h"
#include "http/front.h"
#include "http/job_metrics.h"
#include "http/jwt.h"
#include "http/media.h"
#include "http/process.h"
#include "http/store_figures.h"
#include "http/tls.h"
#include "http/webhook_metrics.h"
#include "runtime/runtime.h"
#include "store/view.h"

/* ---- requests by route ---- */

/* Upper bounds in ns: those that every dashboard of http_request_duration_seconds knows. */
static const uint64_t bounds[] = {
    5000000,   10000000,  25000000,   50000000,   75000000,   100000000,  250000000,
    500000000, 750000000, 1000000000, 2500000000, 5000000000, 7500000000, 10000000000,
};
enum { BOUNDS = sizeof(bounds) / sizeof(*bounds), CLASSES = 5 };
static const char *const classes[CLASSES] = {"1xx", "2xx", "3xx", "4xx", "5xx"};

/* Statuses that are counted by themselves, the commonest first; of the others only the class is known. */
static const uint16_t statuses[] = {200, 202, 201, 429, 401, 404, 400, 403, 409, 503, 304,
                                    405, 406, 408, 412, 413, 415, 422, 431, 500, 501, 504};
enum { STATUSES = sizeof(statuses) / sizeof(*statuses), CODES = STATUSES + CLASSES };

struct cell {
    _Alignas(64) _Atomic uint64_t buckets[BOUNDS + 1]; /* not cumulative; the last one: longer than all */
    _Atomic uint64_t sum_ns;
    _Atomic uint64_t codes[CODES]; /* by place in statuses, then by class */
};

/* A route's place is found by its address and stays. Place 0 is for requests that had no route. */
static const struct route *_Atomic places[METRICS_ROUTES];
static struct cell cells[METRICS_ROUTES][METRICS_LANES];

static uint32_t place_of(const struct route *route)
{
    if (!route)
        return 0;
    uint32_t at = (uint32_t)(((uintptr_t)route >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 40);
    for (uint32_t tries = 0; tries < METRICS_ROUTES; tries++, at++) {
        uint32_t place = at % METRICS_ROUTES;
        if (place == 0)
            continue;
        const struct route *there = atomic_load_explicit(&places[place], memory_order_relaxed);
        if (there == route || (!there && atomic_compare_exchange_strong(&places[place], &there, route)) ||
            there == route)
            return place;
    }
    return 0;
}

/* alone: nobody else adds to it meanwhile. */
static void add(_Atomic uint64_t *to, uint64_t n, bool alone)
{
    if (alone)
        atomic_store_explicit(to, atomic_load_explicit(to, memory_order_relaxed) + n, memory_order_relaxed);
    else
        atomic_fetch_add_explicit(to, n, memory_order_relaxed);
}

static uint32_t code_of(int status)
{
    uint32_t at = 0;
    while (at < STATUSES && statuses[at] != status)
        at++;
    return at < STATUSES ? at : STATUSES + (uint32_t)(status / 100 - 1);
}

void metrics_request(const struct route *route, int status, uint64_t took_ns)
{
    uint32_t scheduler = (uint32_t)actor_scheduler(), bucket = 0;
    bool alone = scheduler < METRICS_LANES - 1;
    struct cell *cell = &cells[place_of(route)][alone ? scheduler : METRICS_LANES - 1];
    while (bucket < BOUNDS && took_ns > bounds[bucket])
        bucket++;
    actor_guard_begin(); /* no other actor of this scheduler comes in between */
    add(&cell->buckets[bucket], 1, alone);
    add(&cell->sum_ns, took_ns, alone);
    if (status >= 100 && status < 600)
        add(&cell->codes[code_of(status)], 1, alone);
    actor_guard_end();
}

static const char *const fronts[] = {"client", "operator"};

/* So that the series of all routes are there before their first request. */
static void note_routes(void)
{
    for (size_t i = 0; i < sizeof(fronts) / sizeof(*fronts); i++) {
        const struct front *front = front_find(fronts[i]);
        for (size_t j = 0; front && j < routes_count(front->routes); j++)
            (void)place_of(routes_at(front->routes, j));
    }
}

static void note_supervisor(const char *name)
{
    telemetry_counter_expect(TELEMETRY_SUPERVISOR_ESCALATION, name);
    telemetry_counter_expect(TELEMETRY_FAILURE_RESTART_EXHAUSTED, name);
}

/* Of a row per key, whose supervisors are numbered from 0. */
static void note_numbered(const char *row)
{
    char name[TELEMETRY_VALUE_MAX + 1];
    for (uint32_t n = 0; n < TELEMETRY_LABELS_MAX; n++) {
        snprintf(name, sizeof(name), "%.*s%u", (int)strcspn(row, "<"), row, n);
        if (!actor_whereis(name))
            return;
        note_supervisor(name);
    }
}

/* So that what an alert waits for is there, with 0, before its first time. */
static void note_supervisors(const struct living_rows *rows)
{
    for (size_t i = 0; i < rows->count; i++)
        if (rows->rows[i].supervises && rows->rows[i].per_key)
            note_numbered(rows->rows[i].name);
        else if (rows->rows[i].supervises)
            note_supervisor(rows->rows[i].name);
}

static void note_tables(void)
{
    const struct store *store = store_here();
    for (uint32_t i = 0; store && i < store->schema->tables_count; i++)
        telemetry_counter_expect(TELEMETRY_STORE_DAMAGED, store->schema->tables[i].name);
}

struct sums {
    uint64_t buckets[BOUNDS + 1], count, sum_ns, codes[CODES], classes[CLASSES];
};

static void sums_read(uint32_t place, struct sums *ret)
{
    *ret = (struct sums){.count = 0};
    for (uint32_t lane = 0; lane < METRICS_LANES; lane++) {
        struct cell *cell = &cells[place][lane];
        for (uint32_t i = 0; i <= BOUNDS; i++)
            ret->buckets[i] += atomic_load_explicit(&cell->buckets[i], memory_order_relaxed);
        for (uint32_t i = 0; i < CODES; i++) {
            uint64_t n = atomic_load_explicit(&cell->codes[i], memory_order_relaxed);
            ret->codes[i] += n;
            ret->classes[i < STATUSES ? statuses[i] / 100u - 1 : i - STATUSES] += n;
        }
        ret->sum_ns += atomic_load_explicit(&cell->sum_ns, memory_order_relaxed);
    }
    for (uint32_t i = 0; i <= BOUNDS; i++)
        ret->count += ret->buckets[i];
}

static const struct route *route_in(uint32_t place)
{
    return atomic_load_explicit(&places[place], memory_order_relaxed);
}

uint64_t metrics_version_requests(void)
{
    uint64_t count = 0;
    for (uint32_t place = 1; place < METRICS_ROUTES; place++) {
        const struct route *route = route_in(place);
        struct sums sums;
        if (!route || (route->surface != SURFACE_CONTROL && strncmp(route->path, "/v1/", 4) != 0))
            continue;
        sums_read(place, &sums);
        count += sums.count;
    }
    return count;
}

/* ---- what there is of it ---- */

static void write_build(const struct exposition *t, const char *version)
{
    char compiler[64];
#ifdef __clang__
    snprintf(compiler, sizeof(compiler), "clang %d.%d", __clang_major__, __clang_minor__);
#else
    snprintf(compiler, sizeof(compiler), "gcc %d.%d", __GNUC__, __GNUC_MINOR__);
#endif
    exposition_family(t, "coppice_build", "info", "Which build this is.");
    json_sink_text(t->sink, "coppice_build_info{version=\"");
    json_sink_text(t->sink, version);
    json_sink_text(t->sink, "\",compiler=\"");
    json_sink_text(t->sink, compiler);
    json_sink_text(t->sink, "\"} 1\n");
}

static void write_process(const struct exposition *t)
{
    struct process_figures p;
    process_read(&p);
    exposition_family(t, "process_cpu_seconds", "counter", "CPU time, user and system.");
    exposition_decimal(t, "process_cpu_seconds_total", NULL, NULL, (int64_t)p.cpu_us, 6);
    exposition_gauge(t, "process_resident_memory_bytes", "Resident memory.", p.resident_bytes);
    exposition_gauge(t, "process_virtual_memory_bytes", "Address space; most of it is never touched.",
                     p.virtual_bytes);
    exposition_gauge(t, "process_open_fds", "Open descriptors.", p.open_fds);
    exposition_family(t, "process_max_fds", "gauge", "Descriptors that may be open.");
    exposition_series(t, "process_max_fds", NULL, NULL);
    if (p.max_fds == UINT64_MAX)
        json_sink_text(t->sink, "+Inf");
    else
        json_sink_uint(t->sink, p.max_fds);
    json_sink_text(t->sink, "\n");
    exposition_gauge(t, "process_threads", "Threads.", p.threads);
    exposition_family(t, "process_start_time_seconds", "gauge", "When the process began, since 1970.");
    exposition_decimal(t, "process_start_time_seconds", NULL, NULL, (int64_t)p.started_ms, 3);
}

/* X(field of runtime_stats, "name", type, "help") */
#define RUNTIME(X)                                                                                      \
    X(schedulers, "schedulers", gauge, "Scheduler threads, dedicated ones included.")                   \
    X(actors, "living_actors", gauge, "Living actors of all kinds.")                                    \
    X(spawned, "actors_spawned", counter, "Actors that were started.")                                  \
    X(ended, "actors_ended", counter, "Actors that ended, for whatever reason.")                        \
    X(crashed, "actors_crashed", counter, "Actors that trapped and were contained.")                    \
    X(messages_handled, "messages_handled", counter, "Messages that were handled.")                     \
    X(messages_dropped, "messages_dropped", counter, "Messages that were dropped.")                     \
    X(messages_remote, "messages_remote", counter, "Messages that went from one scheduler to another.") \
    X(preemptions, "preemptions", counter, "Handlers switched out at the end of their slice.")          \
    X(overruns, "overruns", counter, "Handlers ended at their runaway budget.")                         \
    X(wakes, "wakes", counter, "Schedulers woken by another thread.")                                   \
    X(polls, "polls", counter, "Looks for ready descriptors.")                                          \
    X(turns, "turns", counter, "Turns of the schedulers' main loops.")                                  \
    X(stacks, "stacks", gauge, "Coroutine stacks, in use or kept.")                                     \
    X(stacks_in_use, "stacks_in_use", gauge, "Coroutine stacks in use.")                                \
    X(message_bytes, "message_memory_bytes", gauge, "Memory of messages and arenas.")                   \
    X(record_bytes, "record_memory_bytes", gauge, "Memory of names, links, monitors and timers.")       \
    X(actor_bytes, "actor_memory_bytes", gauge, "Memory of actors.")                                    \
    X(timers, "timers", gauge, "Armed timers.")                                                         \
    X(records, "records", gauge, "Names, links, monitors, timers and open requests.")

static void write_runtime(const struct exposition *t)
{
    struct runtime_stats s;
    runtime_stats(runtime_self(), &s);
#define X(field, name, type, help)                                                                           \
    exposition_family(t, "coppice_runtime_" name, #type, help);                                              \
    exposition_sample(                                                                                       \
        t, strcmp(#type, "counter") == 0 ? "coppice_runtime_" name "_total" : "coppice_runtime_" name, NULL, \
        NULL, s.field);
    RUNTIME(X)
#undef X
}

/* Of each scheduler. */
static const struct {
    const char *name, *help;
    size_t field;
} scheduler_gauges[] = {
    {"coppice_runtime_scheduler_run_queue", "Actors that could run and wait for their turn.",
     offsetof(struct runtime_scheduler, run_queue)},
    {"coppice_runtime_scheduler_actors", "Living actors.", offsetof(struct runtime_scheduler, actors)},
    {"coppice_runtime_scheduler_parked", "Actors in the middle of a handler that waits.",
     offsetof(struct runtime_scheduler, parked)},
};

static void write_schedulers(const struct exposition *t)
{
    struct runtime_stats all;
    struct runtime_scheduler *figures = actor_alloc(RUNTIME_SCHEDULERS_MAX * sizeof(*figures));
    char numbers[RUNTIME_SCHEDULERS_MAX][11];
    runtime_stats(runtime_self(), &all);
    for (uint32_t n = 0; n < all.schedulers; n++) {
        runtime_scheduler(runtime_self(), n, &figures[n]);
        snprintf(numbers[n], sizeof(numbers[n]), "%u", n);
    }
    for (size_t i = 0; i < sizeof(scheduler_gauges) / sizeof(*scheduler_gauges); i++) {
        exposition_family(t, scheduler_gauges[i].name, "gauge", scheduler_gauges[i].help);
        for (uint32_t n = 0; n < all.schedulers; n++) {
            uint64_t value;
            memcpy(&value, (const char *)&figures[n] + scheduler_gauges[i].field, sizeof(value));
            exposition_sample(t, scheduler_gauges[i].name, "scheduler", numbers[n], value);
        }
    }
    exposition_family(t, "coppice_runtime_scheduler_busy_seconds", "counter",
                      "How long each scheduler didn't sleep: one second a second is all it can.");
    for (uint32_t n = 0; n < all.schedulers; n++)
        exposition_decimal(t, "coppice_runtime_scheduler_busy_seconds_total", "scheduler", numbers[n],
                           (int64_t)((figures[n].lived_ns - figures[n].idle_ns) / NS_PER_US), 6);
}

/* Into the gauges that telemetry writes. */
static void note_mailboxes(void)
{
    struct census *census = actor_alloc(sizeof(*census));
    census_take(census);
    census_note(census);
}

/* Workers aren't asked who they are: the store's, whose scheduler is its own, waits for the disk. */
static void write_budgets(const struct exposition *t, const struct living_rows *rows)
{
    const char *name = "coppice_supervisor_restart_budget_used_ratio";
    exposition_family(t, name, "gauge",
                      "Restarts in the window now, as a part of those that may be; one more than 1 ends it.");
    for (size_t i = 0; i < rows->count; i++) {
        struct supervisor_info info;
        bool asked = rows->rows[i].supervises && !rows->rows[i].per_key;
        actor_pid pid = asked ? actor_whereis(rows->rows[i].name) : 0;
        if (!pid || supervisor_inspect(pid, &info, actor_deadline_ms(ACTOR_VIEW_ANSWER_MS)) != OK)
            continue;
        int64_t ppm = info.intensity     ? (int64_t)info.budget_used * 1000000 / info.intensity
                      : info.budget_used ? 1000000
                                         : 0;
        exposition_decimal(t, name, "supervisor", rows->rows[i].name, ppm, 6);
    }
}

static void write_store(const struct exposition *t)
{
    struct store_figures *f = actor_alloc(sizeof(*f));
    const char *up = "coppice_store_up";
    store_figures_read(f);
    exposition_gauge(t, up, "1 while the store takes ordinary commands.",
                     f->store && store_state(f->store) == STORE_OPEN);
    if (!f->known)
        return;
    exposition_gauge(t, "coppice_lmdb_map_size_bytes", "Address space of the map.", f->environment.map);
    exposition_gauge(t, "coppice_lmdb_file_bytes", "Size of the data file.", f->environment.file);
    exposition_gauge(t, "coppice_lmdb_used_bytes", "Up to the last page in use.", f->environment.used);
    exposition_gauge(t, "coppice_lmdb_free_bytes", "Free pages below that.", f->environment.free);
    exposition_gauge(t, "coppice_lmdb_readers", "Slots of the table of readers in use.",
                     f->environment.readers);
    exposition_gauge(t, "coppice_lmdb_readers_max", "Slots that there are.", f->environment.readers_max);
    exposition_gauge(t, "coppice_lmdb_oldest_reader_age_txns",
                     "Commits since the state that the oldest reader sees.",
                     f->environment.last_txn - f->environment.oldest_txn);
    exposition_gauge(t, "coppice_store_views", "Open views.", views_count(f->store));
}

static void write_certificate(const struct exposition *t)
{
    struct tls_validity validity;
    exposition_family(
        t, "coppice_tls_certificate_expiry_seconds", "gauge",
        "Until the clients' listeners' certificate expires; below 0: since then. Absent without TLS.");
    if (!tls_validity_here(&validity))
        return;
    json_sink_text(t->sink, "coppice_tls_certificate_expiry_seconds ");
    json_sink_int(t->sink, validity.until_s - (int64_t)(actor_wall_now() / NS_PER_S));
    json_sink_text(t->sink, "\n");
}

static void write_fronts(const struct exposition *t)
{
    exposition_family(t, "coppice_http_connections_open", "gauge", "Open connections.");
    for (size_t i = 0; i < 2; i++) {
        struct front *front = front_find(fronts[i]);
        if (front)
            exposition_sample(t, "coppice_http_connections_open", "listener", fronts[i],
                              atomic_load(&front->connections));
    }
    exposition_family(t, "coppice_http_streams_open", "gauge", "Open event streams.");
    for (size_t i = 0; i < 2; i++) {
        struct front *front = front_find(fronts[i]);
        if (front)
            exposition_sample(t, "coppice_http_streams_open", "listener", fronts[i],
                              atomic_load(&front->streams));
    }
    write_certificate(t);
    exposition_gauge(t, "coppice_http_bodies", "Large request bodies in memory.", bodies_used());
}

static void write_keys(const struct exposition *t)
{
    const struct front *front = front_find("client");
    struct keyring_figures figures = {.keys = 0};
    if (front && front->keyring)
        keyring_figures(front->keyring, &figures);
    exposition_gauge(t, "coppice_auth_keys", "Keys that tokens are verified with.", figures.keys);
    exposition_gauge(t, "coppice_auth_revocations", "Tokens, keys, sessions and subjects that are refused.",
                     figures.revoked);
    exposition_gauge(t, "coppice_auth_key_set_age_seconds",
                     "Since another issuer's keys last came; 0 when there is none.", figures.set_age_s);
    exposition_gauge(t, "coppice_auth_revocation_sla_seconds",
                     "What that should stay below, or keys that were revoked there are still taken.",
                     figures.revocation_s);
}

static void histogram(const struct exposition *t, const char *method, const char *path, const struct sums *s)
{
    const char *name = "http_request_duration_seconds";
    char labels[256];
    uint64_t count = 0;
    for (uint32_t i = 0; i <= BOUNDS; i++) {
        count += s->buckets[i];
        snprintf(labels, sizeof(labels), "%s_bucket{method=\"%s\",route=\"%s\",le=\"", name, method, path);
        json_sink_text(t->sink, labels);
        if (i < BOUNDS)
            json_sink_decimal(t->sink, (int64_t)bounds[i], 9);
        else
            json_sink_text(t->sink, "+Inf");
        json_sink_text(t->sink, "\"} ");
        json_sink_uint(t->sink, count);
        json_sink_text(t->sink, "\n");
    }
    snprintf(labels, sizeof(labels), "%s_sum{method=\"%s\",route=\"%s\"} ", name, method, path);
    json_sink_text(t->sink, labels);
    json_sink_decimal(t->sink, (int64_t)s->sum_ns, 9);
    snprintf(labels, sizeof(labels), "\n%s_count{method=\"%s\",route=\"%s\"} ", name, method, path);
    json_sink_text(t->sink, labels);
    json_sink_uint(t->sink, count);
    json_sink_text(t->sink, "\n");
}

static void write_durations(const struct exposition *t)
{
    struct sums sums;
    exposition_family(
        t, "http_request_duration_seconds", "histogram",
        "From when the request had come to the end of its answer, waits that it asked for included.");
    for (uint32_t place = 0; place < METRICS_ROUTES; place++) {
        const struct route *route = route_in(place);
        if (!route && place)
            continue;
        sums_read(place, &sums);
        histogram(t, route ? method_name(route->method) : "", route ? route->path : "", &sums);
    }
}

static void write_answers(const struct exposition *t)
{
    struct sums sums;
    char line[256];
    exposition_family(t, "coppice_http_answers", "counter",
                      "Answers, by route and class of status; no route: an empty one.");
    for (uint32_t place = 0; place < METRICS_ROUTES; place++) {
        const struct route *route = route_in(place);
        if (!route && place)
            continue;
        sums_read(place, &sums);
        for (uint32_t i = 1; i < CLASSES; i++) {
            snprintf(line, sizeof(line),
                     "coppice_http_answers_total{method=\"%s\",route=\"%s\",code=\"%s\"} ",
                     route ? method_name(route->method) : "", route ? route->path : "", classes[i]);
            json_sink_text(t->sink, line);
            json_sink_uint(t->sink, sums.classes[i]);
            json_sink_text(t->sink, "\n");
        }
    }
}

/* Those that there were: each route has few of the statuses. */
static void write_requests(const struct exposition *t)
{
    struct sums sums;
    char line[256], status[8];
    exposition_family(t, "http_requests", "counter", "Requests that were answered, by endpoint and status.");
    for (uint32_t place = 0; place < METRICS_ROUTES; place++) {
        const struct route *route = route_in(place);
        if (!route && place)
            continue;
        sums_read(place, &sums);
        for (uint32_t i = 0; i < CODES; i++) {
            if (!sums.codes[i] && (i || place))
                continue;
            snprintf(status, sizeof(status), i < STATUSES ? "%u" : "%uxx",
                     i < STATUSES ? statuses[i] : i - STATUSES + 1u);
            snprintf(line, sizeof(line), "http_requests_total{endpoint=\"%s\",method=\"%s\",status=\"%s\"} ",
                     route ? route->path : "", route ? method_name(route->method) : "", status);
            json_sink_text(t->sink, line);
            json_sink_uint(t->sink, sums.codes[i]);
            json_sink_text(t->sink, "\n");
        }
    }
}

/* Of all routes together, as well as the buckets know: the value lies between two bounds, and is taken to be where it would be
 * if those between them were spread evenly. */
static uint64_t quantile(const struct sums *all, uint32_t parts)
{
    uint64_t rank = (all->count * parts + 9999) / 10000, below = 0;
    for (uint32_t i = 0; i < BOUNDS; i++) {
        uint64_t low = i ? bounds[i - 1] : 0;
        if (all->buckets[i] && below + all->buckets[i] >= rank)
            return low + (bounds[i] - low) * (rank - below) / all->buckets[i];
        below += all->buckets[i];
    }
    return all->count ? bounds[BOUNDS - 1] : 0;
}

static void write_quantiles(const struct exposition *t)
{
    struct sums one, all = {.count = 0};
    for (uint32_t place = 0; place < METRICS_ROUTES; place++) {
        if (!route_in(place) && place)
            continue;
        sums_read(place, &one);
        all.count += one.count;
        for (uint32_t i = 0; i <= BOUNDS; i++)
            all.buckets[i] += one.buckets[i];
    }
    exposition_family(t, "http_request_duration_quantile_seconds", "summary",
                      "Of all requests since the process began.");
    exposition_decimal(t, "http_request_duration_quantile_seconds", "quantile", "0.95",
                       (int64_t)quantile(&all, 9500), 9);
    exposition_decimal(t, "http_request_duration_quantile_seconds", "quantile", "0.99",
                       (int64_t)quantile(&all, 9900), 9);
}

/* Named by the contract (CTL-028), as no counter may be called: so it has no type. */
static void write_routing(const struct exposition *t)
{
    exposition_family(t, "routing_decision_count", "untyped",
                      "Requests that were routed, by version of the contract.");
    exposition_sample(t, "routing_decision_count", "version", "v1", metrics_version_requests());
}

/* By the name that the contract has for it (CTL-089, CTL-093). */
static void write_rejections(const struct exposition *t)
{
    static const char *const stages[] = {
#define X(id, name) name,
        JWT_STAGES(X)
#undef X
    };
    const struct telemetry *telemetry = runtime_telemetry(runtime_self());
    exposition_family(t, "auth_rejections", "counter", "Tokens that were refused, by the check they failed.");
    for (size_t i = 0; i < sizeof(stages) / sizeof(*stages); i++)
        exposition_sample(t, "auth_rejections_total", "stage", stages[i],
                          telemetry_counter_label(telemetry, TELEMETRY_AUTH_REJECTED, stages[i]));
}

void metrics_serve(const struct request *q, struct response *r)
{
    struct exposition t = {.sink = &r->sink, .open = media_accepts(q, "application/openmetrics-text")};
    note_routes();
    note_supervisors(q->front->rows);
    note_tables();
    note_mailboxes();
    response_begin(r, 200, t.open ? METRICS_OPENMETRICS : METRICS_PROMETHEUS);
    write_build(&t, q->front->version);
    write_process(&t);
    write_runtime(&t);
    write_schedulers(&t);
    write_budgets(&t, q->front->rows);
    write_store(&t);
    write_fronts(&t);
    write_keys(&t);
    write_durations(&t);
    write_answers(&t);
    write_requests(&t);
    write_quantiles(&t);
    write_routing(&t);
    write_rejections(&t);
    job_metrics_write(&t);
    webhook_metrics_write(&t);
    telemetry_write_metrics(runtime_telemetry(runtime_self()), t.sink,
                            t.open ? TELEMETRY_OPENMETRICS : TELEMETRY_PROMETHEUS);
    if (t.open)
        json_sink_text(t.sink, "# EOF\n");
}
