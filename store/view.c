#include "store/view.h"

#include <sys/mman.h>

#include "runtime/runtime.h"

/* ---- lanes: one per scheduler, so nobody shares a cache line or a transaction ---- */

struct lane {
    uint32_t idle_count;
    MDB_txn *idle[VIEWS_PER_LANE]; /* reset, to be renewed */
    struct view views[VIEWS_PER_LANE];
} __attribute__((aligned(64)));

/* Beside each other: who looks at all of them, as writer and keeper do, touches no memory of lanes that nobody uses. */
struct lane_open {
    _Atomic uint32_t count; /* of views; written by the lane's thread, read by the writer and the keeper */
} __attribute__((aligned(64)));

struct views {
    _Atomic uint32_t stopped; /* the map is about to grow: open none */
    uint64_t stop_ref;        /* of the writer's ownership of that */
    struct lane_open open[VIEW_LANES];
    struct lane lanes[VIEW_LANES];
};

enum error views_create(struct store *store)
{
    void *memory =
        mmap(NULL, sizeof(struct views), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return ERR_MEMORY;
    store->views = memory; /* zeros, and no memory yet for lanes that nobody uses */
    return OK;
}

void views_destroy(struct store *store)
{
    if (!store->views)
        return;
    for (uint32_t i = 0; i < VIEW_LANES; i++) {
        struct lane *lane = &store->views->lanes[i];
        ASSERT(!atomic_load(&store->views->open[i].count));
        while (lane->idle_count)
            mdb_txn_abort(lane->idle[--lane->idle_count]);
    }
    int error = munmap(store->views, sizeof(*store->views));
    ASSERT(error == 0);
    store->views = NULL;
}

/* What follows up to the end of closing runs guarded: an actor that is switched out halfway would let another one of its
 * scheduler into the same lane, and one that is killed halfway would leave a view that nobody owns. */

/* ---- opening ---- */

static MDB_txn *lane_txn(struct store *store, struct lane *lane)
{
    MDB_txn *mdb = NULL;
    if (lane->idle_count) {
        mdb = lane->idle[--lane->idle_count];
        if (mdb_txn_renew(mdb) == 0)
            return mdb;
        mdb_txn_abort(mdb);
    }
    return mdb_txn_begin(store->environment.mdb, NULL, MDB_RDONLY, &mdb) ? NULL : mdb;
}

static struct view *lane_free_view(struct lane *lane)
{
    for (uint32_t i = 0; i < VIEWS_PER_LANE; i++)
        if (!lane->views[i].opened_at)
            return &lane->views[i];
    return NULL;
}

/* The count is up before `stopped` is looked at, and the writer sets `stopped` before it looks at the counts: one of
 * the two sees the other. */
static bool lane_enter(struct views *views, uint32_t number)
{
    struct lane_open *open = &views->open[number];
    atomic_store(&open->count, atomic_load_explicit(&open->count, memory_order_relaxed) + 1);
    if (!atomic_load(&views->stopped))
        return true;
    atomic_store(&open->count, atomic_load_explicit(&open->count, memory_order_relaxed) - 1);
    return false;
}

static void lane_leave(struct views *views, uint32_t number)
{
    struct lane_open *open = &views->open[number];
    atomic_store_explicit(&open->count, atomic_load_explicit(&open->count, memory_order_relaxed) - 1,
                          memory_order_release);
}

enum opened {
    OPENED,
    OPENED_NONE, /* too many are, or LMDB refuses */
    OPENED_LATER /* the map is growing */
};

static enum opened open_in(struct store *store, uint32_t number, uint64_t now, struct view **ret_view)
{
    struct lane *lane = &store->views->lanes[number];
    struct view *view = lane_free_view(lane);
    if (!view)
        return OPENED_NONE;
    if (!lane_enter(store->views, number))
        return OPENED_LATER;
    MDB_txn *mdb = lane_txn(store, lane);
    if (!mdb) {
        lane_leave(store->views, number);
        return OPENED_NONE;
    }
    txn_open(&view->txn, store, mdb);
    view->lane = (uint16_t)number;
    __atomic_store_n(&view->owner, 0, __ATOMIC_RELAXED); /* the keeper looks at it from another thread */
    view->ref = 0;
    __atomic_store_n(&view->opened_at, now, __ATOMIC_RELAXED);
    *ret_view = view;
    return OPENED;
}

/* ---- closing ---- */

static void release(void *arg)
{
    struct view *view = arg;
    struct views *views = view->txn.store->views;
    struct lane *lane = &views->lanes[view->lane];
    MDB_txn *mdb = view->txn.mdb;
    actor_guard_begin();
    txn_release(&view->txn);
    mdb_txn_reset(mdb);
    actor_guard_end();
    lane->idle[lane->idle_count++] = mdb;
    __atomic_store_n(&view->owner, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&view->opened_at, 0, __ATOMIC_RELAXED);
    lane_leave(views, view->lane);
}

void view_close(struct view *view)
{
    actor_guard_begin();
    if (view->ref)
        actor_release(view->ref);
    else
        release(view);
    actor_guard_end();
}

/* ---- for actors and for threads ---- */

static enum opened open_owned(struct store *store, struct view **ret_view)
{
    struct view *view = NULL;
    enum opened opened = open_in(store, (uint32_t)actor_scheduler_of(actor_self()), actor_now(), &view);
    if (opened != OPENED)
        return opened;
    __atomic_store_n(&view->owner, actor_self(), __ATOMIC_RELAXED);
    view->ref = actor_own(release, view);
    if (!view->ref) {
        release(view);
        return OPENED_NONE;
    }
    *ret_view = view;
    return OPENED;
}

static enum opened open_guarded(struct store *store, struct view **ret_view)
{
    actor_guard_begin();
    enum opened opened = open_owned(store, ret_view);
    actor_guard_end();
    return opened;
}

struct view *view_try(struct store *store)
{
    struct view *view = NULL;
    (void)open_guarded(store, &view);
    return view;
}

struct view *view_open(struct store *store)
{
    struct view *view = NULL;
    if (!actor_inside())
        return view_open_outside(store, 0);
    for (uint32_t i = 0; i < VIEW_OPEN_TRIES; i++) {
        if (open_guarded(store, &view) != OPENED_LATER)
            return view;
        actor_sleep(actor_deadline_ms(1));
    }
    return NULL;
}

struct view *view_open_outside(struct store *store, uint32_t lane)
{
    struct view *view = NULL;
    ASSERT(RUNTIME_SCHEDULERS_MAX + lane < VIEW_LANES);
    for (uint32_t i = 0; i < VIEW_OPEN_TRIES; i++) {
        uint64_t now = store->env->now(store->env);
        if (open_in(store, RUNTIME_SCHEDULERS_MAX + lane, now, &view) != OPENED_LATER)
            return view;
        env_thread_sleep(now + NS_PER_MS);
    }
    return NULL;
}

/* ---- by the keeper and the writer ---- */

uint32_t views_count(const struct store *store)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < VIEW_LANES; i++)
        count += atomic_load(&store->views->open[i].count);
    return count;
}

/* Who traps exits is told once a look, and killed when that didn't help. */
static void end_owner(actor_pid owner, bool told)
{
    static const char text[] = "held a view of the store for too long";
    if (told)
        actor_kill(owner);
    else
        actor_exit_signal(owner, reason_with_detail(reason_error(ERR_EXPIRED), text, sizeof(text) - 1));
}

uint32_t views_enforce_age(struct store *store)
{
    uint64_t now = actor_now();
    uint32_t ended = 0;
    for (uint32_t i = 0; i < RUNTIME_SCHEDULERS_MAX; i++)
        for (uint32_t k = 0; k < VIEWS_PER_LANE && atomic_load(&store->views->open[i].count); k++) {
            struct view *view = &store->views->lanes[i].views[k];
            uint64_t opened = __atomic_load_n(&view->opened_at, __ATOMIC_RELAXED);
            actor_pid owner = __atomic_load_n(&view->owner, __ATOMIC_RELAXED);
            if (!opened || !owner || now < opened || now - opened <= store->view_age_ns ||
                opened != __atomic_load_n(&view->opened_at, __ATOMIC_ACQUIRE)) /* somebody else's by now */
                continue;
            end_owner(owner, now - opened > store->view_age_ns + VIEWS_LOOK_NS);
            ended++;
        }
    return ended;
}

static uint64_t now_of(struct store *store)
{
    return actor_inside() ? actor_now() : store->env->now(store->env);
}

static void stop_release(void *arg)
{
    struct views *views = arg;
    views->stop_ref = 0;
    atomic_store(&views->stopped, 0);
}

/* A writer that is killed while it waits lets everybody in again. */
static bool stop_begin(struct views *views)
{
    actor_guard_begin();
    if (actor_inside() && (views->stop_ref = actor_own(stop_release, views)) == 0) {
        actor_guard_end();
        return false;
    }
    atomic_store(&views->stopped, 1);
    actor_guard_end();
    return true;
}

/* The other side of lane_enter. Views are short. Who keeps one is ended from here: the keeper may be waiting for the
 * writer, or for a view. */
bool views_stop(struct store *store, uint64_t wait_ns)
{
    uint64_t began = now_of(store), look = began + store->view_age_ns;
    if (!stop_begin(store->views))
        return false;
    while (views_count(store)) {
        uint64_t now = now_of(store);
        if (now >= began + wait_ns) {
            views_go_on(store);
            return false;
        }
        if (!actor_inside()) {
            env_thread_sleep(now + NS_PER_MS / 10);
            continue;
        }
        if (now > look) {
            (void)views_enforce_age(store);
            look = now + VIEWS_LOOK_NS;
        }
        actor_sleep(now + NS_PER_MS / 10);
    }
    return true;
}

void views_go_on(struct store *store)
{
    actor_guard_begin();
    if (store->views->stop_ref)
        actor_release(store->views->stop_ref);
    else
        atomic_store(&store->views->stopped, 0);
    actor_guard_end();
}
