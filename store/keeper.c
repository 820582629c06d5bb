#include "store/keeper.h"

#include <stdio.h>

#include "runtime/json.h"
#include "runtime/runtime.h"
#include "runtime/telemetry.h"
#include "store/counter.h"
#include "store/retention.h"
#include "store/view.h"

enum { KEEPER_TICK = 1 };

struct keeper {
    struct store *store;
    uint64_t ticks, next; /* when the next one comes */
    uint64_t sweep;       /* the request that isn't answered yet; 0: none */
    uint32_t sweeps;      /* in a row */
    bool more;            /* the last one has left more to do */
    uint32_t table;       /* where the scrub goes on ... */
    struct key key;       /* ... behind this one; empty: at its beginning */
    uint64_t rows, state; /* so many behind us, of the state with this number; 0: of several */
    uint32_t damaged, shown[SCHEMA_TABLES_MAX]; /* rows of this table so far, and what the gauges say */
};

static void tick_next(struct keeper *k)
{
    k->next = actor_deadline_ms(KEEPER_INTERVAL_MS);
    actor_timer(k->next, KEEPER_TICK, 0);
}

static enum actor_step keeper_init(void *state, const void *args, size_t args_size)
{
    struct keeper *k = state;
    (void)args;
    (void)args_size;
    k->store = store_here();
    if (!k->store)
        actor_refuse(reason_error(ERR_UNAVAILABLE));
    tick_next(k);
    return ACTOR_CONTINUE;
}

/* ---- retention ---- */

static enum error calendar_begin(struct keeper *k, uint64_t elapsed_us, uint64_t wall_us)
{
    static const struct span no_label = {NULL, 0};
    int64_t noted = 0;
    struct view *view = view_try(k->store);
    if (!view)
        return ERR_UNAVAILABLE;
    enum error e = counter_read(&view->txn, COUNTER_RETAINED, no_label, &noted);
    view_close(view);
    if (!e)
        calendar_open(&k->store->calendar, elapsed_us, wall_us, noted > 0 ? (uint64_t)noted : 0);
    return e;
}

/* False: nobody knows which time it is, so nothing is over. */
static bool look_at_calendar(struct keeper *k)
{
    struct env *env = k->store->env;
    uint64_t elapsed_us = env->elapsed(env) / NS_PER_US, wall_us = env->wall(env) / NS_PER_US;
    if (!k->store->calendar.open && calendar_begin(k, elapsed_us, wall_us) != OK)
        return false;
    atomic_store_explicit(&k->store->retained_us, calendar_time(&k->store->calendar, elapsed_us, wall_us),
                          memory_order_relaxed);
    return true;
}

static bool something_due(struct keeper *k)
{
    uint64_t due_us = 0;
    struct view *view = view_try(k->store);
    if (!view)
        return false;
    enum error e = due_next(&view->txn, DUE_RETENTION, 0, &due_us);
    view_close(view);
    return e == OK && due_us <= store_retained_us(k->store);
}

static void sweep_ask(struct keeper *k)
{
    struct retention_sweep command = {.limit = RETENTION_ROWS_MAX, .until_us = store_retained_us(k->store)};
    if (store_ask(&retention_sweep_class, &command, &k->sweep) != OK)
        k->sweep = 0;
}

/* Whether the one that was asked for is over. Waits until the next tick at most: views that are too old are looked for then,
 * whoever doesn't answer. */
static bool sweep_over(struct keeper *k)
{
    uint32_t answer[2] = {0}; /* removed, more */
    size_t size = 0;
    enum error e = store_hear(k->sweep, answer, sizeof(answer), &size, k->next);
    if (e == ERR_TIMEOUT)
        return false;
    k->sweep = 0;
    k->more = e == OK && size == sizeof(answer) && answer[1];
    return true;
}

static void retain(struct keeper *k)
{
    bool known = look_at_calendar(k);
    if (!k->sweep) {
        if (!known || (!k->more && k->ticks % KEEPER_SWEEP_EVERY != 1 && !something_due(k)))
            return;
        k->sweeps = 0;
        sweep_ask(k);
    }
    while (k->sweep && sweep_over(k))
        if (k->more && ++k->sweeps < KEEPER_SWEEPS_MAX)
            sweep_ask(k);
}

/* ---- gauges ---- */

static void show_environment(const struct environment_stats *s)
{
    telemetry_gauge_set(TELEMETRY_GAUGE_STORE_BYTES, "map", (int64_t)s->map);
    telemetry_gauge_set(TELEMETRY_GAUGE_STORE_BYTES, "file", (int64_t)s->file);
    telemetry_gauge_set(TELEMETRY_GAUGE_STORE_BYTES, "used", (int64_t)s->used);
    telemetry_gauge_set(TELEMETRY_GAUGE_STORE_BYTES, "free", (int64_t)s->free);
    telemetry_gauge_set(TELEMETRY_GAUGE_STORE_READERS, "slots", (int64_t)s->readers);
}

static void show(struct keeper *k)
{
    struct environment_stats stats;
    telemetry_gauge_set(TELEMETRY_GAUGE_STORE_READERS, "views", views_count(k->store));
    if (k->ticks % KEEPER_STATS_EVERY != 1)
        return;
    struct view *view = view_try(k->store);
    if (!view)
        return;
    for (uint32_t i = 0; i < k->store->schema->tables_count; i++)
        telemetry_gauge_set(TELEMETRY_GAUGE_STORE_ROWS, k->store->schema->tables[i].name,
                            (int64_t)txn_rows(&view->txn, i));
    telemetry_gauge_set(TELEMETRY_GAUGE_DEAD_LETTERS, "outbox", (int64_t)txn_rows(&view->txn, TABLE_DEAD));
    actor_guard_begin();
    enum error e = environment_stats(&k->store->environment, view->txn.mdb, &stats);
    actor_guard_end();
    view_close(view);
    if (!e)
        show_environment(&stats);
}

/* ---- the scrub ---- */

static void scrub_show(struct keeper *k)
{
    telemetry_gauge_set(TELEMETRY_GAUGE_STORE_DAMAGED_ROWS, k->store->schema->tables[k->table].name,
                        (int64_t)k->damaged);
    k->shown[k->table] = k->damaged;
}

static void scrub_damaged(struct keeper *k)
{
    TELEMETRY(STORE_DAMAGED, 1, DIM(COMPONENT, "store"),
              DIM(REASON, k->store->schema->tables[k->table].name));
    k->damaged++;
    if (k->damaged > k->shown[k->table])
        scrub_show(k);
}

static void scrub_next_table(struct keeper *k)
{
    scrub_show(k);
    k->table = (k->table + 1) % k->store->schema->tables_count;
    k->key.size = 0;
    k->rows = 0;
    k->damaged = 0;
}

/* Behind the last row seen: the smallest key after it. */
static void scrub_behind(struct keeper *k, struct span key)
{
    k->key.size = 0;
    key_add(&k->key, key.bytes, key.size);
    if (k->key.size < KEY_SIZE_MAX)
        key_add_u8(&k->key, 0);
}

/* LMDB's inner pages have no checksums: a row that is there and isn't found shows that one of them is damaged. */
static bool found_by_key(struct txn *txn, uint32_t table, const struct scan *scan)
{
    struct span found;
    uint8_t version;
    return txn_get(txn, table, scan->key, &version, &found) == OK && found.bytes == scan->bytes.bytes;
}

/* Rows behind the last one; whether there are more. *ret_wrong: how many can't be believed. */
static bool scrub_rows(struct keeper *k, struct txn *txn, uint32_t *ret_wrong)
{
    const void *last = NULL;
    uint32_t rows = 0, lost = 0;
    struct scan scan = txn_scan(txn, k->table, key_span(&k->key), 0, SCAN_UP);
    while (rows < KEEPER_SCRUB_ROWS && scan_next(&scan)) {
        rows++;
        last = scan.key.bytes;
        lost += !found_by_key(txn, k->table, &scan);
        scrub_behind(k, scan.key);
    }
    bool damaged = scan.error != OK, row = damaged && scan.key.bytes != last;
    if (row) /* and not LMDB's pages, behind which nobody finds a next one */
        scrub_behind(k, scan.key);
    (void)scan_end(&scan);
    k->rows += rows + row;
    *ret_wrong = lost + damaged;
    return damaged ? row : rows == KEEPER_SCRUB_ROWS;
}

/* How many rows there should be is known of one state; so in a table that takes several looks it is compared when nothing
 * was committed meanwhile. */
static bool scrub_count_wrong(const struct keeper *k, struct txn *txn)
{
    return k->state && !k->damaged && k->rows != txn_rows(txn, k->table);
}

static void scrub(struct keeper *k)
{
    struct view *view = view_try(k->store);
    uint32_t wrong;
    if (!view)
        return;
    uint64_t state = txn_number(&view->txn);
    k->state = k->rows == 0 || k->state == state ? state : 0;
    bool more = scrub_rows(k, &view->txn, &wrong);
    wrong += !more && wrong == 0 && scrub_count_wrong(k, &view->txn);
    view_close(view);
    while (wrong-- > 0)
        scrub_damaged(k);
    if (!more)
        scrub_next_table(k);
}

/* ---- whether the file is there ---- */

/* What to do is said to people; that the state has changed is an event. */
static void tell_lost(const struct environment *e)
{
    char line[sizeof(e->dir) + 1024], kept[64];
    struct json_sink sink;
    struct json json;
    snprintf(kept, sizeof(kept), "/proc/%d/fd/%d", e->process, e->data_fd);
    json_sink_init(&sink, line, sizeof(line), NULL, NULL);
    json_init(&json, &sink);
    json_object_begin(&json);
    JSON_MEMBER(&json, "level", string, "error");
    JSON_MEMBER(&json, "logger", string, "store");
    JSON_MEMBER(
        &json, "msg", string,
        "the data.mdb that this server has open was removed from its directory, moved or replaced; no "
        "change is taken until the same file is back. Until this process ends, a copy of what `kept` names, "
        "as data.mdb in a new directory, is the store");
    JSON_MEMBER(&json, "dir", string, e->dir);
    JSON_MEMBER(&json, "kept", string, kept);
    json_object_end(&json);
    if (json_end(&json) == JSON_OK)
        runtime_log(runtime_self(), line, sink.length);
}

static void look_for_file(struct keeper *k)
{
    struct store *store = k->store;
    const struct environment *e = &store->environment;
    uint32_t before = store_state(store);
    bool there = environment_there(e);
    uint32_t after = there ? STORE_OPEN : STORE_LOST; /* the next batch says whether it is tight */
    if (before == STORE_FAILED || there == (before != STORE_LOST) ||
        !atomic_compare_exchange_strong(&store->state, &before, after)) /* then at the next look */
        return;
    store_tell_state(store);
    if (!there)
        tell_lost(e);
}

/* ---- each second ---- */

static enum actor_step keeper_handle(void *state, struct message *m)
{
    struct keeper *k = state;
    if (m->type != KEEPER_TICK) {
        actor_unknown(m);
        return ACTOR_CONTINUE;
    }
    tick_next(k);
    k->ticks++;
    if (views_enforce_age(k->store))
        TELEMETRY(STORE_VIEW_EXPIRED, 1, DIM(COMPONENT, "store"));
    look_for_file(k);
    show(k);
    scrub(k);
    retain(k);
    return ACTOR_CONTINUE;
}

const struct actor_class keeper_class = {
    .name = "store.keeper",
    .state_size = sizeof(struct keeper),
    .init = keeper_init,
    .handle = keeper_handle,
    .stack_size = 256 * 1024,
};
