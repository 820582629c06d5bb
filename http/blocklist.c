#include "http/blocklist.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "runtime/actor.h"
#include "runtime/hash.h"

enum { PLACES = 2 * BLOCKLIST_MAX, FORGET_STEP = 4096 };
STATIC_ASSERT((PLACES & (PLACES - 1)) == 0, "places are found with a mask");

struct place {
    _Atomic uint64_t low, high; /* both 0: empty */
    _Atomic uint64_t cut_off_s, expires_s;
};

struct blocklist {
    struct hash_key keys[2];
    _Atomic uint32_t version; /* odd: a change goes on */
    _Atomic uint32_t count;
    uint32_t cursor;        /* of blocklist_forget */
    uint64_t earliest_s;    /* nothing expires before; 0: nobody knows */
    uint64_t pass_earliest; /* of what blocklist_forget has passed since it was at the first place */
    struct place places[PLACES];
};

struct blocklist *blocklist_create(const uint8_t secret[32])
{
    struct blocklist *b = calloc(1, sizeof(*b));
    if (b)
        memcpy(b->keys, secret, sizeof(b->keys));
    return b;
}

void blocklist_destroy(struct blocklist *blocklist)
{
    free(blocklist);
}

static uint64_t half_of(const struct hash_key *key, uint8_t kind, struct span issuer, struct span value)
{
    struct hash_sip sip;
    hash_sip_start(&sip, key);
    hash_sip_add(&sip, &kind, sizeof(kind));
    hash_sip_add(&sip, &issuer.size, sizeof(issuer.size));
    hash_sip_add(&sip, issuer.bytes, issuer.size);
    hash_sip_add(&sip, value.bytes, value.size);
    return hash_sip_end(&sip);
}

struct blocklist_id blocklist_id(const struct blocklist *blocklist, enum revocation_kind kind,
                                 struct span issuer, struct span value)
{
    return (struct blocklist_id){.low = half_of(&blocklist->keys[0], (uint8_t)kind, issuer, value),
                                 .high = half_of(&blocklist->keys[1], (uint8_t)kind, issuer, value) | 1};
}

static uint64_t get(const _Atomic uint64_t *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

static void set(_Atomic uint64_t *word, uint64_t value)
{
    atomic_store_explicit(word, value, memory_order_relaxed);
}

static uint32_t home_of(uint64_t low)
{
    return (uint32_t)low & (PLACES - 1);
}

/* Its place, or the empty one where it would be. Half of the places are empty, so there always is one. */
static struct place *place_of(struct blocklist *b, struct blocklist_id id)
{
    for (uint32_t i = home_of(id.low), looked = 0; looked < PLACES; i = (i + 1) & (PLACES - 1), looked++) {
        struct place *place = &b->places[i];
        uint64_t high = get(&place->high);
        if (high == 0 || (high == id.high && get(&place->low) == id.low))
            return place;
    }
    return &b->places[home_of(id.low)]; /* read in the middle of a change: read again */
}

bool blocklist_stops(struct blocklist *b, struct blocklist_id id, uint64_t issued_s)
{
    uint32_t before, after;
    bool stops;
    if (atomic_load_explicit(&b->count, memory_order_acquire) == 0)
        return false;
    do {
        before = atomic_load_explicit(&b->version, memory_order_acquire);
        const struct place *place = place_of(b, id);
        stops = get(&place->high) == id.high && issued_s <= get(&place->cut_off_s);
        atomic_thread_fence(memory_order_acquire);
        after = atomic_load_explicit(&b->version, memory_order_relaxed);
    } while (before != after || (before & 1));
    return stops;
}

uint32_t blocklist_count(const struct blocklist *blocklist)
{
    return atomic_load_explicit(&blocklist->count, memory_order_relaxed);
}

/* ---- changes ---- */

static void change_begin(struct blocklist *b)
{
    actor_guard_begin();
    uint32_t version = atomic_load_explicit(&b->version, memory_order_relaxed);
    atomic_store_explicit(&b->version, version + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
}

static void change_end(struct blocklist *b)
{
    uint32_t version = atomic_load_explicit(&b->version, memory_order_relaxed);
    atomic_store_explicit(&b->version, version + 1, memory_order_release);
    actor_guard_end();
}

static void raise(_Atomic uint64_t *word, uint64_t value)
{
    if (get(word) < value)
        set(word, value);
}

enum error blocklist_put(struct blocklist *b, struct blocklist_id id, uint64_t cut_off_s, uint64_t expires_s)
{
    struct place *place = place_of(b, id);
    bool new = get(&place->high) == 0;
    if (new &&blocklist_count(b) >= BLOCKLIST_MAX)
        return ERR_LIMIT;
    change_begin(b);
    set(&place->low, id.low);
    set(&place->high, id.high);
    raise(&place->cut_off_s, cut_off_s);
    raise(&place->expires_s, expires_s);
    b->earliest_s = expires_s < b->earliest_s ? expires_s : b->earliest_s;
    b->pass_earliest = expires_s < b->pass_earliest ? expires_s : b->pass_earliest;
    if (new)
        atomic_fetch_add_explicit(&b->count, 1, memory_order_release);
    change_end(b); /* guarded until here: whoever is ended in between can't leave a wrong count */
    return OK;
}

static void move(struct place *to, const struct place *from)
{
    set(&to->low, get(&from->low));
    set(&to->high, get(&from->high));
    set(&to->cut_off_s, get(&from->cut_off_s));
    set(&to->expires_s, get(&from->expires_s));
}

/* Those behind it move up, unless they would pass their home; so no search ends too early. */
static void take_out(struct blocklist *b, uint32_t hole)
{
    static const struct place nothing;
    change_begin(b);
    for (uint32_t i = (hole + 1) & (PLACES - 1); get(&b->places[i].high) != 0; i = (i + 1) & (PLACES - 1)) {
        uint32_t home = home_of(get(&b->places[i].low));
        if (((i - home) & (PLACES - 1)) < ((i - hole) & (PLACES - 1)))
            continue;
        move(&b->places[hole], &b->places[i]);
        hole = i;
    }
    move(&b->places[hole], &nothing);
    atomic_fetch_sub_explicit(&b->count, 1, memory_order_release);
    change_end(b);
}

/* Behind the last place comes the first: what was passed since then says when it is worth looking again. */
static void pass_one(struct blocklist *b, uint64_t expires_s)
{
    if (expires_s < b->pass_earliest)
        b->pass_earliest = expires_s;
    b->cursor = (b->cursor + 1) & (PLACES - 1);
    if (b->cursor == 0) {
        b->earliest_s = b->pass_earliest;
        b->pass_earliest = UINT64_MAX;
    }
}

uint32_t blocklist_forget(struct blocklist *b, uint64_t now_s)
{
    uint32_t forgotten = 0;
    if (blocklist_count(b) == 0)
        return 0;
    for (uint32_t step = 0; step < FORGET_STEP && now_s >= b->earliest_s; step++) {
        const struct place *place = &b->places[b->cursor];
        bool taken = get(&place->high) != 0;
        if (taken && get(&place->expires_s) <= now_s) {
            take_out(b, b->cursor); /* another one may stand here now */
            forgotten++;
        } else {
            pass_one(b, taken ? get(&place->expires_s) : UINT64_MAX);
        }
    }
    return forgotten;
}
