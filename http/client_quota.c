#include "http/client_quota.h"

#include <stdatomic.h>

#include "http/commit.h"
#include "runtime/runtime.h"
#include "store/client_quota.h"

static _Atomic uint64_t quota_requests, quota_window_us;

void client_quota_configure(const struct client_quota_settings *settings)
{
    atomic_store(&quota_window_us, settings->window_us);
    atomic_store(&quota_requests, settings->requests);
}

/* ---- what was taken ---- */

struct cell {
    struct uuid client;
    uint64_t ends_us; /* 0: nobody's */
    uint64_t quota;   /* that it was taken of: another one asks anew */
    uint32_t left;
    bool spent; /* nothing more is to be had before it ends */
};

#define SETS (QUOTA_CELLS / QUOTA_WAYS)
struct remembered {
    _Alignas(64) struct cell sets[SETS][QUOTA_WAYS];
};
static struct remembered
    tables[RUNTIME_SCHEDULERS_MAX]; /* 3 MiB of addresses, touched as far as they are used */

static struct cell *set_of(const struct uuid *client)
{
    uint32_t number;
    memcpy(&number, client->bytes, sizeof(number)); /* of a UUIDv4: all chance */
    return tables[actor_scheduler()].sets[number % SETS];
}

static struct cell *find(const struct uuid *client)
{
    struct cell *set = set_of(client);
    for (uint32_t i = 0; i < QUOTA_WAYS; i++)
        if (set[i].ends_us && uuid_equal(&set[i].client, client))
            return &set[i];
    return NULL;
}

/* In the place of whoever would lose least. */
static struct cell *claim(const struct uuid *client)
{
    struct cell *set = set_of(client), *cell = find(client), *least = &set[0];
    if (cell)
        return cell;
    for (uint32_t i = 0; i < QUOTA_WAYS; i++) {
        if (!set[i].ends_us)
            return &set[i];
        if (set[i].left < least->left)
            least = &set[i];
    }
    return least;
}

enum verdict { PASSES, REFUSED, UNKNOWN };

/* A window that ends later than one of now could was begun while the clock was ahead: the store says what counts. */
static bool runs(const struct cell *cell, uint64_t now_us, uint64_t window_us)
{
    return now_us < cell->ends_us && cell->ends_us - now_us <= window_us;
}

/* Guarded: two actors of a scheduler must not count the same one down. */
static enum verdict look(const struct uuid *client, uint64_t quota, uint64_t now_us, uint64_t window_us,
                         uint64_t *ret_ends_us)
{
    enum verdict verdict = UNKNOWN;
    actor_guard_begin();
    struct cell *cell = find(client);
    if (cell && cell->quota == quota && runs(cell, now_us, window_us)) {
        *ret_ends_us = cell->ends_us;
        verdict = cell->left ? PASSES : cell->spent ? REFUSED : UNKNOWN;
        cell->left -= verdict == PASSES;
    }
    actor_guard_end();
    return verdict;
}

static void keep(const struct uuid *client, uint64_t quota, const struct client_quota_taken *taken)
{
    actor_guard_begin();
    struct cell *cell = claim(client);
    bool same = cell->ends_us == taken->ends_us && cell->quota == quota && uuid_equal(&cell->client, client);
    uint32_t before = same ? cell->left : 0; /* another request took some meanwhile */
    *cell = (struct cell){.client = *client,
                          .ends_us = taken->ends_us,
                          .quota = quota,
                          .left = before + (taken->granted ? taken->granted - 1 : 0),
                          .spent = taken->left == 0};
    actor_guard_end();
}

/* ---- by the front ---- */

static void write_limit(struct json *json, void *context)
{
    (void)context;
    JSON_MEMBER(json, "limit", string, "quota");
}

static bool refuse(struct response *r, uint64_t now_us, uint64_t ends_us)
{
    uint64_t wait_us = ends_us > now_us ? ends_us - now_us : 0, wait_s = (wait_us + 999999) / 1000000;
    response_header(r, "Retry-After", "%llu", (unsigned long long)(wait_s ? wait_s : 1));
    response_error_with(r, ERROR_RFA_REQUEST_RATE_LIMITED, "the client's quota of requests is used up",
                        write_limit, NULL);
    return false;
}

__attribute__((noinline)) static bool take(const struct request *q, struct response *r, uint64_t quota)
{
    uint64_t ends_us = 0;
    const struct uuid *client = &q->identity.client;
    struct client_quota_taken taken;
    size_t size = 0;
    uint64_t now_us = store_time_us(), part = quota / QUOTA_PARTS,
             window_us = atomic_load_explicit(&quota_window_us, memory_order_relaxed);
    enum verdict verdict = look(client, quota, now_us, window_us, &ends_us);
    if (verdict != UNKNOWN)
        return verdict == PASSES ? true : refuse(r, now_us, ends_us);
    struct client_quota_take c = {.client = *client,
                                  .quota = quota,
                                  .window_us = window_us,
                                  .want = part < 1            ? 1
                                          : part < QUOTA_MOST ? (uint32_t)part
                                                              : QUOTA_MOST};
    enum error e =
        commit_submit(q, &client_quota_take_class, &c, &taken, sizeof(taken), &size, commit_deadline(q));
    if (e || size != sizeof(taken))
        return true;
    keep(client, quota, &taken);
    return taken.granted ? true : refuse(r, now_us, taken.ends_us);
}

bool client_quota_take(const struct request *q, struct response *r)
{
    uint64_t quota = atomic_load_explicit(&quota_requests, memory_order_relaxed);
    return !quota || q->identity.kind != IDENTITY_CLIENT || take(q, r, quota);
}
