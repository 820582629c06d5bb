#include "store/ledger.h"

#include <sys/mman.h>

#include "runtime/hash.h"
#include "store/counter.h"
#include "store/store.h"

#define ledger_FIELD(name, TYPE, limit, since) RECORD_FIELD(ledger, name, TYPE, limit, since)
RECORD_CLASS(ledger, LEDGER_FIELDS, 1);

static const uint32_t lifetime_seconds[LEDGER_LIFETIME_COUNT] = {
#define X(id, name, seconds) [id] = (seconds),
    LEDGER_LIFETIMES(X)
#undef X
};

/* ---- the index: open addressing, linear probing, deletion by shifting back ---- */

/* The place of a row is its key in one word: the lifetime in the upper 8 bits, the row number below. */
#define ROW_BITS 56
#define KEY_SIZE 9u

STATIC_ASSERT(LEDGER_LIFETIME_COUNT <= 256, "a lifetime has 8 bits");

struct slot {
    uint64_t hash; /* 0: free */
    uint64_t place;
};
STATIC_ASSERT(sizeof(struct slot) == 16, "a slot costs 16 bytes");

struct change {
    struct slot slot;
    bool put; /* or removed */
};

/* A put may replace an expired row, and is two changes then. Untouched pages cost address space only (13 MB). */
#define PUTS_MAX    (BATCH_MAX * LEDGER_PUTS_MAX)
#define CHANGES_MAX (2 * PUTS_MAX + BATCH_MAX * (LEDGER_EXPIRE_MAX + LEDGER_FORGET_MAX))
#define BITS_MIN    13u /* of the number of slots */
STATIC_ASSERT((1u << BITS_MIN) >= 2 * PUTS_MAX, "an empty index has room for a batch");

struct ledger_index {
    struct slot *slots;
    uint64_t mask; /* number of slots - 1 */
    unsigned
        shift; /* a slot's home is the upper bits of its hash: so doubling goes through both tables in order */
    uint64_t rows;
    uint64_t room; /* most rows in this transaction */
    uint64_t rows_max;
    struct hash_key key;
    bool open; /* between begin and its end */
    uint32_t changes_count;
    struct change changes[CHANGES_MAX]; /* of the open transaction, oldest first */
};

static struct slot *slots_map(unsigned bits)
{
    void *memory = mmap(NULL, sizeof(struct slot) << bits, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    (void)madvise(memory, sizeof(struct slot) << bits, MADV_HUGEPAGE); /* a lookup is one miss, not two */
    return memory;
}

static void unmap(void *memory, size_t size)
{
    int error = munmap(memory, size);
    ASSERT(error == 0);
}

static void slot_insert(struct ledger_index *index, struct slot slot)
{
    uint64_t at = slot.hash >> index->shift;
    while (index->slots[at].hash)
        at = (at + 1) & index->mask;
    index->slots[at] = slot;
    index->rows++;
}

/* Whoever stands behind the hole and not before its own home may move into it. */
static void hole_close(struct ledger_index *index, uint64_t hole)
{
    struct slot *slots = index->slots;
    uint64_t mask = index->mask;
    for (uint64_t at = (hole + 1) & mask; slots[at].hash; at = (at + 1) & mask) {
        uint64_t from_home = (at - (slots[at].hash >> index->shift)) & mask;
        if (from_home >= ((at - hole) & mask)) {
            slots[hole] = slots[at];
            hole = at;
        }
    }
    slots[hole] = (struct slot){.hash = 0};
}

static void slot_remove(struct ledger_index *index, struct slot slot)
{
    uint64_t at = slot.hash >> index->shift;
    while (index->slots[at].place != slot.place) {
        ASSERT(index->slots[at].hash); /* every row has its slot, and no two have one place */
        at = (at + 1) & index->mask;
    }
    hole_close(index, at);
    index->rows--;
}

/* Slots for so many rows, at most half of them used. False: no memory, and all is as before. */
static bool grow(struct ledger_index *index, uint64_t rows)
{
    struct slot *before = index->slots;
    uint64_t count = index->mask + 1;
    unsigned bits = 64 - index->shift;
    while (rows > UINT64_C(1) << (bits - 1))
        bits++;
    if (bits == 64 - index->shift)
        return true;
    struct slot *slots = slots_map(bits);
    if (!slots)
        return false;
    index->slots = slots;
    index->mask = (UINT64_C(1) << bits) - 1;
    index->shift = 64 - bits;
    index->rows = 0;
    for (uint64_t i = 0; i < count; i++)
        if (before[i].hash)
            slot_insert(index, before[i]);
    unmap(before, count * sizeof(*before));
    return true;
}

static void change(struct ledger_index *index, struct slot slot, bool put)
{
    ASSERT(index->open && index->changes_count < CHANGES_MAX);
    index->changes[index->changes_count++] = (struct change){.slot = slot, .put = put};
    if (put)
        slot_insert(index, slot);
    else
        slot_remove(index, slot);
}

enum error ledger_index_create(uint32_t rows_max, const uint8_t secret[16], struct ledger_index **ret_index)
{
    struct slot *slots = slots_map(BITS_MIN);
    struct ledger_index *index;
    ASSERT(rows_max > 0);
    if (!slots)
        return ERR_MEMORY;
    index = mmap(NULL, sizeof(*index), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                 -1, 0);
    if (index == MAP_FAILED) {
        unmap(slots, sizeof(*slots) << BITS_MIN);
        return ERR_MEMORY;
    }
    index->slots = slots;
    index->mask = (UINT64_C(1) << BITS_MIN) - 1;
    index->shift = 64 - BITS_MIN;
    index->rows_max = rows_max;
    index->key = (struct hash_key){.k0 = hash_load64(secret), .k1 = hash_load64(secret + 8)};
    *ret_index = index;
    return OK;
}

void ledger_index_destroy(struct ledger_index *index)
{
    if (!index)
        return;
    unmap(index->slots, (index->mask + 1) * sizeof(*index->slots));
    unmap(index, sizeof(*index));
}

void ledger_index_begin(struct ledger_index *index)
{
    ASSERT(!index->open);
    uint64_t wanted = index->rows + PUTS_MAX < index->rows_max ? index->rows + PUTS_MAX : index->rows_max;
    /* Without memory the slots that are there must do; a quarter of them stays free, so that probing ends. */
    grow(index, wanted);
    uint64_t room = (index->mask + 1) / 4 * 3;
    index->room = room < index->rows_max ? room : index->rows_max;
    index->changes_count = 0;
    index->open = true;
}

void ledger_index_commit(struct ledger_index *index)
{
    ASSERT(index->open);
    index->open = false;
}

void ledger_index_abort(struct ledger_index *index)
{
    ASSERT(index->open);
    index->open = false;
    while (index->changes_count > 0) {
        struct change *last = &index->changes[--index->changes_count];
        if (last->put)
            slot_remove(index, last->slot);
        else
            slot_insert(index, last->slot);
    }
}

uint64_t ledger_index_rows(const struct ledger_index *index)
{
    return index->rows;
}

/* ---- rows ---- */

/* The scope's hash and its length are the key for the key's: so ("a", "bc") isn't ("ab", "c"). */
uint64_t ledger_index_hash(const struct ledger_index *index, struct span scope, struct span key)
{
    struct hash_key second = {.k0 = index->key.k0 ^ hash_bytes(&index->key, scope.bytes, scope.size),
                              .k1 = index->key.k1 + scope.size};
    uint64_t hash = hash_bytes(&second, key.bytes, key.size);
    return hash | 1; /* 0 is a free slot */
}

static struct key key_of(uint64_t place)
{
    struct key key;
    key.size = 0;
    key_add_u8(&key, (uint8_t)(place >> ROW_BITS));
    key_add_u64(&key, place & ((UINT64_C(1) << ROW_BITS) - 1));
    return key;
}

/* False: not a key of this table. */
static bool place_of(struct span key, uint64_t *ret_place)
{
    const uint8_t *at = key.bytes;
    if (key.size != KEY_SIZE || at[0] >= LEDGER_LIFETIME_COUNT || key_u64(at + 1) >> ROW_BITS)
        return false;
    *ret_place = (uint64_t)at[0] << ROW_BITS | key_u64(at + 1);
    return true;
}

/* The row of (scope, key), whether or not its time is over. A slot with the same hash may be another's. */
static enum error row_of(struct txn *txn, struct span scope, struct span key, struct slot *ret_slot,
                         struct ledger *ret_row)
{
    const struct ledger_index *index = txn->store->ledger;
    uint64_t hash = ledger_index_hash(index, scope, key);
    for (uint64_t at = hash >> index->shift; index->slots[at].hash; at = (at + 1) & index->mask) {
        struct ledger row;
        if (index->slots[at].hash != hash)
            continue;
        struct key row_key = key_of(index->slots[at].place);
        enum error e = txn_read(txn, TABLE_LEDGER, key_span(&row_key), &row);
        if (e)
            return e == ERR_NOT_FOUND ? ERR_DAMAGED : e; /* the index knows of it: it must be there */
        if (span_equal(row.scope, scope) && span_equal(row.key, key)) {
            *ret_slot = index->slots[at];
            *ret_row = row;
            return OK;
        }
    }
    *ret_slot = (struct slot){.hash = hash};
    return ERR_NOT_FOUND;
}

void ledger_expect(const struct txn *txn, struct span scope, struct span key)
{
    const struct ledger_index *index = txn->store->ledger;
    __builtin_prefetch(&index->slots[ledger_index_hash(index, scope, key) >> index->shift], 1);
}

enum error ledger_find(struct txn *txn, uint64_t now_us, struct span scope, struct span key,
                       const struct digest *digest, struct ledger *ret_row)
{
    struct slot slot;
    struct ledger row;
    enum error e = row_of(txn, scope, key, &slot, &row);
    if (e)
        return e;
    if (now_us >= row.expires_us)
        return ERR_NOT_FOUND;
    if (memcmp(row.digest.bytes, digest->bytes, sizeof(digest->bytes)) != 0)
        return ERR_KEY_REUSED;
    *ret_row = row;
    return OK;
}

bool ledger_room(struct txn *txn)
{
    return txn->store->ledger->rows < txn->store->ledger->room;
}

bool ledger_room_spare(struct txn *txn)
{
    return txn->store->ledger->rows < txn->store->ledger->room / 4 * 3;
}

static void failed(struct txn *txn, enum error e)
{
    if (!txn->error)
        txn->error = e;
}

static void row_remove(struct txn *txn, struct slot slot)
{
    struct key key = key_of(slot.place);
    txn_remove(txn, TABLE_LEDGER, key_span(&key));
    change(txn->store->ledger, slot, false);
}

static enum error place_next(struct txn *txn, enum ledger_lifetime lifetime, uint64_t *ret_place)
{
    uint8_t label = (uint8_t)lifetime;
    int64_t last;
    enum error e = counter_read(txn, COUNTER_LEDGER_NEXT, span_of(&label, 1), &last);
    if (e)
        return e;
    ASSERT(last >= 0 && last < (INT64_C(1) << ROW_BITS) - 1);
    counter_add(txn, COUNTER_LEDGER_NEXT, span_of(&label, 1), 1);
    *ret_place = (uint64_t)label << ROW_BITS | (uint64_t)(last + 1);
    return OK;
}

uint64_t ledger_expiry(uint64_t now_us, enum ledger_lifetime lifetime)
{
    uint64_t at_us;
    if (lifetime == LEDGER_KEPT)
        return UINT64_MAX;
    return __builtin_add_overflow(now_us, lifetime_seconds[lifetime] * UINT64_C(1000000), &at_us) ? UINT64_MAX
                                                                                                  : at_us;
}

uint64_t ledger_put(struct txn *txn, enum ledger_lifetime lifetime, uint64_t now_us, struct span scope,
                    struct span key, const struct digest *digest, struct span answer)
{
    struct slot slot;
    struct ledger before;
    uint64_t place;
    ASSERT(txn->writing && (unsigned)lifetime < LEDGER_LIFETIME_COUNT);
    if (txn->error)
        return 0;
    ASSERT(ledger_room(txn));
    enum error e = row_of(txn, scope, key, &slot, &before);
    if (e == OK) {
        ASSERT(now_us >= before.expires_us);
        row_remove(txn, slot);
    } else if (e != ERR_NOT_FOUND) {
        failed(txn, e);
        return 0;
    }
    e = place_next(txn, lifetime, &place);
    if (e) {
        failed(txn, e);
        return 0;
    }
    struct key row_key = key_of(place);
    struct ledger row = {.at_us = now_us,
                         .expires_us = ledger_expiry(now_us, lifetime),
                         .scope = scope,
                         .key = key,
                         .digest = *digest,
                         .answer = answer};
    txn_add(txn, TABLE_LEDGER, key_span(&row_key), &row);
    change(txn->store->ledger, (struct slot){.hash = slot.hash, .place = place}, true);
    return place & ((UINT64_C(1) << ROW_BITS) - 1);
}

void ledger_forget(struct txn *txn, enum ledger_lifetime lifetime, uint64_t row)
{
    struct slot slot = {.place = (uint64_t)lifetime << ROW_BITS | row};
    struct key key = key_of(slot.place);
    struct ledger there;
    if (txn->error || txn_read(txn, TABLE_LEDGER, key_span(&key), &there) != OK)
        return;
    slot.hash = ledger_index_hash(txn->store->ledger, there.scope, there.key);
    row_remove(txn, slot);
}

/* ---- from the front ---- */

static enum error slot_of(struct scan *scan, const struct ledger_index *index, struct slot *ret_slot,
                          struct ledger *ret_row)
{
    enum error e = scan_read(scan, ret_row);
    if (e)
        return e;
    if (!place_of(scan->key, &ret_slot->place))
        return ERR_DAMAGED;
    ret_slot->hash = ledger_index_hash(index, ret_row->scope, ret_row->key);
    return OK;
}

/* Written by a clock that was ahead: it isn't over for longer than a row lives that is written now. */
static bool is_ahead(const struct ledger *row, uint8_t lifetime, uint64_t now_us)
{
    uint64_t latest = ledger_expiry(now_us, (enum ledger_lifetime)lifetime);
    return row->expires_us > latest && row->expires_us - latest > LEDGER_AHEAD_US;
}

/* What a look through one lifetime finds. */
struct over {
    struct slot *slots; /* of rows whose time is over */
    uint32_t room, count;
    int64_t behind; /* where the next look begins: behind this row; 0: at the front */
};

/* From where the last look ended to the first row that isn't over, or until there is no room; rows that are ahead are passed by, so
 * many at a time. */
static enum error expired(struct txn *txn, uint8_t lifetime, uint64_t now_us, struct over *over)
{
    struct key from = key_of((uint64_t)lifetime << ROW_BITS | (uint64_t)(over->behind + 1));
    from.size = over->behind ? from.size : 1; /* at the front may stand what is no row */
    uint32_t passed = 0;
    enum error e = OK;
    struct scan scan = txn_scan(txn, TABLE_LEDGER, key_span(&from), 1, SCAN_UP);
    while (over->count < over->room && passed < LEDGER_PASS_MAX) {
        struct slot *slot = &over->slots[over->count];
        struct ledger row;
        bool there = scan_next(&scan);
        e = there ? slot_of(&scan, txn->store->ledger, slot, &row) : OK;
        bool is_over = there && !e && now_us >= row.expires_us;
        if (!is_over && (!there || e || !is_ahead(&row, lifetime, now_us))) {
            over->behind = 0;
            break;
        }
        over->count += is_over;
        passed += !is_over;
        if (!is_over)
            over->behind = (int64_t)(slot->place & ((UINT64_C(1) << ROW_BITS) - 1));
    }
    enum error ended = scan_end(&scan);
    return e ? e : ended;
}

/* Where the last look through each lifetime ended; below 0: that can't be read, or is no row, and nothing is noted there. */
static enum error read_behind(struct txn *txn, int64_t behind[LEDGER_LIFETIME_COUNT])
{
    enum error first = OK;
    for (unsigned i = 0; i < LEDGER_LIFETIME_COUNT; i++) {
        const uint8_t lifetime = (uint8_t)i;
        enum error e = counter_read(txn, COUNTER_LEDGER_PASSED, span_of(&lifetime, 1), &behind[lifetime]);
        if (e)
            behind[lifetime] = -1;
        first = first ? first : e;
    }
    return first;
}

/* One call of ledger_expire. */
struct expiring {
    uint64_t now_us;
    struct slot slots[LEDGER_EXPIRE_MAX];
    uint32_t room, removed;
    bool more;
    enum error error; /* the first one */
};

/* What the look left is noted, so that rows that are ahead, however many, use up no more than one look each. Whether it found nothing
 * wrong. */
static bool expire_one(struct txn *txn, struct expiring *x, uint8_t lifetime, int64_t before, bool note)
{
    struct over over = {.slots = x->slots, .room = x->room - x->removed, .behind = before};
    enum error e = expired(txn, lifetime, x->now_us, &over);
    for (uint32_t i = 0; i < over.count; i++)
        row_remove(txn, over.slots[i]);
    x->removed += over.count;
    if (e) {
        x->error = x->error ? x->error : e;
    } else if (note) {
        if (over.behind != before)
            counter_add(txn, COUNTER_LEDGER_PASSED, span_of(&lifetime, 1), over.behind - before);
        x->more = x->more || over.behind != 0;
    }
    return !e;
}

/* A round goes through all lifetimes, each of them once: who is at the front while others are on their way looks there, and waits with
 * going further for the next round. So it ends, however many rows of however many lifetimes are ahead. */
enum error ledger_expire(struct txn *txn, uint64_t now_us, uint32_t limit, uint32_t *ret_removed,
                         bool *ret_more)
{
    struct expiring x = {.now_us = now_us, .room = limit < LEDGER_EXPIRE_MAX ? limit : LEDGER_EXPIRE_MAX};
    int64_t behind[LEDGER_LIFETIME_COUNT];
    uint32_t writes = txn->writes;
    bool on_the_way = false;
    enum error unreadable = read_behind(txn, behind);
    for (unsigned lifetime = 0; lifetime < LEDGER_LIFETIME_COUNT; lifetime++)
        if (behind[lifetime] > 0)
            on_the_way |= expire_one(txn, &x, (uint8_t)lifetime, behind[lifetime], true);
    for (unsigned lifetime = 0; lifetime < LEDGER_LIFETIME_COUNT; lifetime++)
        if (behind[lifetime] <= 0)
            (void)expire_one(txn, &x, (uint8_t)lifetime, 0, !on_the_way && behind[lifetime] == 0);
    enum error first = x.error ? x.error : unreadable;
    if (first && txn->writes == writes)
        return first;
    *ret_removed = x.removed;
    *ret_more = x.more;
    return OK;
}

enum error ledger_index_load(struct ledger_index *index, struct txn *txn)
{
    enum error e = OK;
    ASSERT(!index->open && index->rows == 0);
    struct key start;
    start.size = 0;
    struct scan scan = txn_scan(txn, TABLE_LEDGER, key_span(&start), 0, SCAN_UP);
    while (!e && scan_next(&scan)) {
        struct slot slot;
        struct ledger row;
        e = slot_of(&scan, index, &slot, &row);
        if (!e && !grow(index, index->rows + 1))
            e = ERR_MEMORY;
        if (!e)
            slot_insert(index, slot);
    }
    enum error ended = scan_end(&scan);
    return e ? e : ended;
}
