#include "http/store_figures.h"

#include "store/view.h"

void store_figures_read(struct store_figures *ret)
{
    struct store *store = store_here();
    *ret = (struct store_figures){.store = store};
    struct view *view = store ? view_open(store) : NULL;
    if (!view)
        return;
    bool good = true;
    for (uint32_t i = 0; i < store->schema->tables_count && i < SCHEMA_TABLES_MAX; i++)
        ret->rows[i] = txn_rows(&view->txn, i);
    for (uint16_t i = 0; i < OUTBOX_PARTITIONS; i++)
        good &= outbox_level(&view->txn, i, &ret->outbox[i]) == OK &&
                outbox_dead_count(&view->txn, i, &ret->dead[i]) == OK;
    actor_guard_begin();
    good &= environment_stats(&store->environment, view->txn.mdb, &ret->environment) == OK;
    actor_guard_end();
    view_close(view);
    ret->known = good;
}

static void write_known(struct json *json, const struct store_figures *f)
{
    static const char *const levels[] = {
        [OUTBOX_OPEN] = "open", [OUTBOX_FULLISH] = "fullish", [OUTBOX_FULL] = "full"};
    const struct environment_stats *e = &f->environment;
    JSON_MEMBER(json, "map_bytes", uint, e->map);
    JSON_MEMBER(json, "file_bytes", uint, e->file);
    JSON_MEMBER(json, "used_bytes", uint, e->used);
    JSON_MEMBER(json, "free_bytes", uint, e->free);
    JSON_MEMBER(json, "readers", uint, e->readers);
    JSON_MEMBER(json, "oldest_reader_age_txns", uint, e->last_txn - e->oldest_txn);
    json_key(json, "outbox");
    json_array_begin(json);
    for (uint16_t i = 0; i < OUTBOX_PARTITIONS; i++)
        json_string(json, levels[f->outbox[i]]);
    json_array_end(json);
    json_key(json, "outbox_dead");
    json_array_begin(json);
    for (uint16_t i = 0; i < OUTBOX_PARTITIONS; i++)
        json_int(json, f->dead[i]);
    json_array_end(json);
    json_key(json, "rows");
    json_object_begin(json);
    for (uint32_t i = 0; i < f->store->schema->tables_count; i++)
        JSON_MEMBER(json, f->store->schema->tables[i].name, uint, f->rows[i]);
    json_object_end(json);
}

void store_figures_write(const struct store_figures *f, struct json *json)
{
    char identity[UUID_TEXT_SIZE];
    struct store *store = f->store;
    if (!store) {
        json_null(json);
        return;
    }
    uint64_t commits = atomic_load(&store->commits);
    uuid_format(&store->identity, identity);
    json_object_begin(json);
    JSON_MEMBER(json, "identity", string, identity);
    JSON_MEMBER(json, "state", string, store_state_name(store_state(store)));
    JSON_MEMBER(json, "commits", uint, commits);
    JSON_MEMBER(json, "commands", uint, atomic_load(&store->commands));
    JSON_MEMBER(json, "refused", uint, atomic_load(&store->refused));
    JSON_MEMBER(json, "found_nothing", uint, atomic_load(&store->found_nothing));
    JSON_MEMBER(json, "commit_mean_us", uint,
                commits ? atomic_load(&store->commit_ns) / commits / NS_PER_US : 0);
    JSON_MEMBER(json, "views", uint, views_count(store));
    if (f->known)
        write_known(json, f);
    json_object_end(json);
}
