#include "http/new_id.h"

#include "runtime/runtime.h"
#include "store/store.h"

struct generator {
    _Alignas(64) uint64_t start; /* of the store that it gives ids for; 0: not begun */
    struct uuid_source source;
};

static struct generator generators[RUNTIME_SCHEDULERS_MAX];

/* Chance is drawn for many at a time, because asking for it takes longer than all the rest. A clock that goes back begins anew:
 * otherwise ids would bear the later time for as long, and a simulation begun again would go on where the first had ended. */
struct uuid new_id(void)
{
    const struct store *store = store_here();
    struct generator *g = &generators[actor_scheduler()];
    struct uuid id;
    actor_guard_begin(); /* two actors of a scheduler never draw the same */
    if (g->start != store->start || actor_wall_now() / NS_PER_MS < g->source.last_ms) {
        uuid_source_init(&g->source, store->env);
        g->start = store->start;
    }
    id = uuid_v7(&g->source);
    actor_guard_end();
    return id;
}
