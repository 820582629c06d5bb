#include "http/probe.h"

#include "actors/adapters.h"
#include "actors/bus.h"
#include "actors/worker.h"
#include "http/catalogue.h"
#include "http/timestamp.h"
#include "runtime/runtime.h"
#include "runtime/telemetry.h"
#include "store/outbox.h"
#include "store/store.h"
#include "store/view.h"
#include "store/writer.h"

const char *probe_level_name(enum probe_level level)
{
    switch (level) {
#define X(id, name)  \
    case PROBE_##id: \
        return name;
        PROBE_LEVELS(X)
#undef X
    }
    return "";
}

/* ---- the checks ---- */

static enum probe_level database(const struct store *store)
{
    if (!store || store_state(store) == STORE_FAILED || store_state(store) == STORE_LOST)
        return PROBE_DOWN;
    return store_state(store) == STORE_TIGHT ? PROBE_DEGRADED : PROBE_OK;
}

/* Whether the writer takes commands: one that there isn't (no class has code 0) is refused as soon as it is looked at,
 * without a batch. It waits in the queue as the others do, behind a sync that hangs, too. */
static enum probe_level ask_writer(void)
{
    static const struct writer_command nothing = {.code = 0};
    struct message *reply = NULL, *m = message_of(WRITER_COMMAND, &nothing, sizeof(nothing));
    enum error e =
        m ? actor_call_name(WRITER_NAME, m, &reply, actor_deadline_ms(PROBE_WRITER_MS)) : ERR_MEMORY;
    if (reply)
        message_free(reply);
    return e == ERR_TIMEOUT ? PROBE_DOWN : e == OK ? PROBE_OK : PROBE_DEGRADED;
}

/* One asks at a time, for all listeners: probes are anybody's to send, and the queue is there for commands. Whoever comes
 * meanwhile takes what was answered last, unless the one who asks is overdue himself. */
static enum probe_level writer(void)
{
    static _Atomic uint64_t asking; /* since when; 0: nobody is */
    static _Atomic uint32_t last = PROBE_OK;
    uint64_t now = actor_now(), since = atomic_load(&asking);
    bool mine = (since == 0 || now > since + 2 * PROBE_WRITER_MS * NS_PER_MS) &&
                atomic_compare_exchange_strong(&asking, &since, now ? now : 1);
    if (mine) {
        atomic_store(&last, ask_writer());
        atomic_store(&asking, 0);
    }
    return (enum probe_level)atomic_load(&last);
}

static enum probe_level worse(enum probe_level a, enum probe_level b)
{
    return a > b ? a : b;
}

/* With a full ledger whatever comes with a key is refused; what is over counts, until the keeper has removed it. Entries of the audit
 * log stay for more than a year, and without room for them there are no tokens: so somebody hears of it while an eighth is left. */
static bool table_full(struct store *store)
{
    struct view *view = view_open(store);
    if (!view)
        return false;
    bool full = txn_rows(&view->txn, TABLE_LEDGER) >= store->ledger_max ||
                txn_rows(&view->txn, TABLE_AUDITS) >= store->audits_max - store->audits_max / 8;
    view_close(view);
    return full;
}

static bool outbox_fullish(struct store *store)
{
    bool fullish = false;
    struct view *view = view_open(store);
    if (!view)
        return false;
    for (uint16_t i = 0; i < OUTBOX_PARTITIONS && !fullish; i++) {
        enum outbox_level level;
        fullish = outbox_level(&view->txn, i, &level) == OK && level != OUTBOX_OPEN;
    }
    view_close(view);
    return fullish;
}

static enum probe_level event_bus(struct store *store)
{
    if (!actor_whereis(BUS_NAME) || database(store) == PROBE_DOWN)
        return PROBE_DOWN;
    return outbox_fullish(store) ? PROBE_DEGRADED : PROBE_OK;
}

static enum probe_level adapters(void)
{
    struct adapter_state states[ADAPTERS_MAX];
    size_t count;
    return adapters_list(states, ADAPTERS_MAX, &count, actor_deadline_ms(PROBE_ANSWER_MS)) == OK ? PROBE_OK
                                                                                                 : PROBE_DOWN;
}

static enum probe_level workers(void)
{
    const struct jobs_settings settings = jobs_settings();
    return settings.outside || worker_any(&settings) ? PROBE_OK : PROBE_DOWN;
}

bool probe_started(const struct front *front)
{
    static _Atomic bool started; /* of the process, and once true for ever */
    const char *why;
    if (atomic_load_explicit(&started, memory_order_relaxed))
        return true;
    if (front->opening || !store_here() || living_missing(front->rows) || adapters() != PROBE_OK)
        return false;
    if (front->keyring &&
        !keyring_ready(front->keyring, &why)) /* outside dev: until an operator made a key */
        return false;
    atomic_store_explicit(&started, true, memory_order_relaxed);
    return true;
}

static void look_at_tree(const struct front *front, enum probe_level *checks)
{
    checks[PROBE_CHECK_ACTORS] = living_missing(front->rows) ? PROBE_DOWN : PROBE_OK;
    checks[PROBE_CHECK_ADAPTERS] = adapters();
    checks[PROBE_CHECK_START] = probe_started(front) ? PROBE_OK : PROBE_DOWN;
    checks[PROBE_CHECK_WORKERS] = workers();
    checks[PROBE_CHECK_DRAIN] = atomic_load(&front->draining) ? PROBE_DOWN : PROBE_OK;
}

void probe_look(const struct front *front, struct probe_state *ret_state)
{
    struct store *store = store_here();
    enum probe_level *checks = ret_state->checks;
    enum probe_level written = store ? writer() : PROBE_DOWN;
    checks[PROBE_CHECK_DATABASE] = worse(database(store), written == PROBE_DOWN ? PROBE_DOWN : PROBE_OK);
    if (checks[PROBE_CHECK_DATABASE] == PROBE_OK && table_full(store))
        checks[PROBE_CHECK_DATABASE] = PROBE_DEGRADED;
    checks[PROBE_CHECK_REDIS] =
        worse(checks[PROBE_CHECK_DATABASE] == PROBE_DOWN ? PROBE_DOWN : PROBE_OK, written);
    checks[PROBE_CHECK_EVENT_BUS] = event_bus(store);
    if (front->opening) { /* the tree isn't there yet either, and nothing ends */
        checks[PROBE_CHECK_ACTORS] = checks[PROBE_CHECK_ADAPTERS] = checks[PROBE_CHECK_START] = PROBE_DOWN;
        checks[PROBE_CHECK_WORKERS] = checks[PROBE_CHECK_DRAIN] = PROBE_OK;
    } else {
        look_at_tree(front, checks);
    }
    ret_state->ready = true;
    for (size_t i = 0; i < PROBE_CHECK_COUNT; i++)
        ret_state->ready &= checks[i] != PROBE_DOWN;
}

bool probe_alive(void)
{
    const struct telemetry *telemetry = runtime_telemetry(runtime_self());
    return telemetry_counter_label(telemetry, TELEMETRY_FAILURE_RESTART_EXHAUSTED, "root") == 0;
}

/* ---- the answers ---- */

static void begin(struct response *r, struct json *json, bool good, const char *status)
{
    if (!good)
        response_header(r, "Retry-After", "1");
    response_begin(r, good ? 200 : 503, RESPONSE_JSON);
    json_init(json, &r->sink);
    json_object_begin(json);
    JSON_MEMBER(json, "status", string, status);
}

static void end(struct response *r, struct json *json)
{
    char now[TIMESTAMP_SIZE];
    timestamp_format(actor_wall_now(), now);
    JSON_MEMBER(json, "timestamp", string, now);
    json_object_end(json);
    json_sink_text(&r->sink, "\n");
}

static void serve_alive(const struct request *q, struct response *r)
{
    struct json json;
    bool alive = probe_alive();
    (void)q;
    begin(r, &json, alive, alive ? "ok" : "error");
    end(r, &json);
}

static void serve_started(const struct request *q, struct response *r)
{
    struct json json;
    bool started = probe_started(q->front);
    begin(r, &json, started, started ? "started" : "starting");
    end(r, &json);
}

static bool verbose(const struct request *q)
{
    char room[8];
    bool bad;
    return strcmp(q->front->name, "operator") == 0 && request_query(q, "verbose", room, sizeof(room), &bad);
}

static void serve_ready(const struct request *q, struct response *r)
{
    static const struct {
        const char *name;
        bool contract;
    } checks[PROBE_CHECK_COUNT] = {
#define X(id, name, contract) [PROBE_CHECK_##id] = {name, contract},
        PROBE_CHECKS(X)
#undef X
    };
    struct probe_state state = {.ready = false};
    struct json json;
    bool all = verbose(q);
    probe_look(q->front, &state);
    begin(r, &json, state.ready, state.ready ? "ready" : "not_ready");
    json_key(&json, "checks");
    json_object_begin(&json);
    for (size_t i = 0; i < PROBE_CHECK_COUNT; i++)
        if (all || checks[i].contract)
            JSON_MEMBER(&json, checks[i].name, string, probe_level_name(state.checks[i]));
    if (state.checks[PROBE_CHECK_WORKERS] == PROBE_DOWN) {
        json_key(&json, catalogue_row(ERROR_RFA_EXEC_WORKER_UNAVAILABLE)->code);
        json_string(&json, probe_level_name(PROBE_DOWN));
    }
    json_object_end(&json);
    end(r, &json);
}

const struct route probe_routes[] = {
    {.method = METHOD_GET,
     .path = "/healthz",
     .surface = SURFACE_PUBLIC,
     .quiet = true,
     .early = true,
     .serve = serve_alive},
    {.method = METHOD_GET,
     .path = "/livez",
     .surface = SURFACE_PUBLIC,
     .quiet = true,
     .early = true,
     .serve = serve_alive},
    {.method = METHOD_GET,
     .path = "/readyz",
     .surface = SURFACE_PUBLIC,
     .quiet = true,
     .early = true,
     .serve = serve_ready},
    {.method = METHOD_GET,
     .path = "/startupz",
     .surface = SURFACE_PUBLIC,
     .quiet = true,
     .early = true,
     .serve = serve_started},
};
const size_t probe_routes_count = sizeof(probe_routes) / sizeof(*probe_routes);
