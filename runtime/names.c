/* How it works.
 *
 * An entry holds one registration: stamp, pid, name. Entries live in one array for ever and are reused, so a
 * reader can always look at one. The stamp makes that safe: it is a version and the length of the name, and
 * changes before and after every change of the entry. A reader that finds the same stamp before and after has
 * read one registration.
 *
 * A bucket is one cache line with seven slots; a slot is 32 bits of the name's hash and the entry's id. A
 * name goes to a free slot of its home bucket or, if there is none, of the next one that has; each full
 * bucket that it passes counts it in "passed". A lookup goes on to the next bucket only while passed is not
 * zero. Removing needs no tombstones, and a name never changes its slot while it is registered. So a lookup
 * that does not find a name has proof that it was free at some instant of the search, and need not try again.
 *
 * The bucket tables double. All of them, to the largest, are reserved at creation, one behind the other.
 * While the next one is being filled, every change goes to both and each writer copies COPY_COUNT entries
 * more, in order of their ids, up to the cursor; lookups use the old one until the new one is complete. A
 * lookup that is still at work in the old one afterwards sees the names of the moment when the new one took
 * over, and the entries tell it which of those are gone.
 *
 * All shared words are atomics. Loads and stores are acquire and release, which costs nothing on x86-64 and
 * little on aarch64; the pairs are named where they matter.
 */
#include "runtime/names.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "runtime/assert.h"
#include "runtime/chains.h"

#define SLOT_COUNT       7
#define BUCKETS_LOG2_MIN 6 /* 64 buckets: one page */
#define FILL_MAX         3 /* names per bucket that make the table double: 7 slots are exceeded by 1 bucket in 84 */
#define COPY_COUNT       16 /* entries that a writer brings over: half a microsecond, or 16 page faults */
#define BATCH_COUNT      64 /* names given back under one lock */
#define WORD_COUNT       6  /* of a name in the entry; as many again in its tail */

STATIC_ASSERT(WORD_COUNT * 2 * sizeof(uint64_t) == NAME_BYTES_MAX, "entry and tail hold the longest name");
STATIC_ASSERT(NAME_BYTES_MAX <= UINT8_MAX, "the length fits into the low byte of the stamp");

struct bucket {
    _Atomic uint64_t slots[SLOT_COUNT]; /* hash >> 32 above, id below; 0: free */
    _Atomic uint64_t passed;            /* names that wanted to be here or before and are behind */
};

struct entry {
    _Atomic uint64_t stamp; /* version << 8 | length; length 0: free or being written */
    _Atomic uint64_t pid;
    _Atomic uint64_t
        name[WORD_COUNT]; /* zeros behind the name. Of a free entry, name[0] is the next free id. */
};

struct tail {
    _Atomic uint64_t name[WORD_COUNT];
};

STATIC_ASSERT(sizeof(struct bucket) == 64, "a bucket is a cache line");
STATIC_ASSERT(sizeof(struct entry) == 64, "an entry is a cache line");

struct names {
    /* For readers: changes only when a table has been outgrown. */
    _Atomic uint32_t buckets_log2; /* of the table in use */
    uint32_t buckets_log2_max;
    uint32_t count_max;
    struct hash_key key;
    struct bucket *buckets;
    struct entry *entries; /* by id, from 1 */
    struct tail *tails;    /* by id */
    size_t mapped_bytes;

    /* For writers, under the mutex; count is also read without it. */
    _Alignas(64) pthread_mutex_t mutex;
    _Atomic size_t count;
    uint32_t id_last;      /* ids above it have never been used */
    uint32_t id_free;      /* the first of the free list, 0: none */
    uint32_t cursor;       /* 0: no copy under way; otherwise ids below it are in the next table as well */
    struct chains holders; /* ids by pid */
};

/* Names as words */

static inline bool length_is_valid(size_t length)
{
    return length - 1 < NAME_BYTES_MAX;
}

/* Word number i of a name, padded with zeros. */
static uint64_t name_word(const char *name, size_t length, size_t i)
{
    uint64_t low, high;
    hash_load16(name + i * 8, length - i * 8 < 8 ? length - i * 8 : 8, &low, &high);
    return low;
}

static _Atomic uint64_t *entry_word(const struct names *names, uint32_t id, size_t i)
{
    return i < WORD_COUNT ? &names->entries[id].name[i] : &names->tails[id].name[i - WORD_COUNT];
}

static bool words_match_from(const struct names *names, uint32_t id, const char *name, size_t length,
                             size_t i)
{
    for (; i * 8 < length; i++) {
        if (atomic_load_explicit(entry_word(names, id, i), memory_order_acquire) !=
            name_word(name, length, i)) {
            return false;
        }
    }
    return true;
}

/* The pid of the entry, if it holds this name and was not changed while we looked; otherwise 0. low and high
 * are the first 16 bytes. The acquire loads keep the second look at the stamp behind them; each pairs with
 * the release stores of entry_write, so that whoever sees a new word also sees that the stamp has changed. */
static inline uint64_t entry_match(const struct names *names, uint32_t id, const char *name, size_t length,
                                   uint64_t low, uint64_t high)
{
    struct entry *entry = &names->entries[id];
    uint64_t stamp = atomic_load_explicit(&entry->stamp, memory_order_acquire);
    if ((stamp & UINT8_MAX) != length) {
        return 0;
    }
    if (atomic_load_explicit(&entry->name[0], memory_order_acquire) != low) {
        return 0;
    }
    if (atomic_load_explicit(&entry->name[1], memory_order_acquire) != high) {
        return 0;
    }
    if (length > 16 && !words_match_from(names, id, name, length, 2)) {
        return 0;
    }
    uint64_t pid = atomic_load_explicit(&entry->pid, memory_order_acquire);
    return atomic_load_explicit(&entry->stamp, memory_order_relaxed) == stamp ? pid : 0;
}

static void entry_write(struct names *names, uint32_t id, const char *name, size_t length, uint64_t pid)
{
    struct entry *entry = &names->entries[id];
    uint64_t version = atomic_load_explicit(&entry->stamp, memory_order_relaxed) >> 8;
    atomic_store_explicit(&entry->stamp, (version + 1) << 8, memory_order_relaxed);
    atomic_store_explicit(&entry->pid, pid, memory_order_release);
    /* At least two words, because lookups compare 16 bytes in any case. */
    for (size_t i = 0; i < 2 || i * 8 < length; i++) {
        uint64_t word = i * 8 < length ? name_word(name, length, i) : 0;
        atomic_store_explicit(entry_word(names, id, i), word, memory_order_release);
    }
    atomic_store_explicit(&entry->stamp, (version + 2) << 8 | length, memory_order_release);
}

/* A consistent copy of the entry, for those who walk. Returns its length, 0 when it is free or was changed
 * meanwhile; text has room for NAME_BYTES_MAX bytes. */
static size_t entry_read(const struct names *names, uint32_t id, char *text, uint64_t *ret_pid)
{
    struct entry *entry = &names->entries[id];
    uint64_t stamp = atomic_load_explicit(&entry->stamp, memory_order_acquire);
    size_t length = stamp & UINT8_MAX;
    for (size_t i = 0; i * 8 < length; i++) {
        uint64_t word = atomic_load_explicit(entry_word(names, id, i), memory_order_acquire);
        memcpy(text + i * 8, &word, sizeof(word));
    }
    uint64_t pid = atomic_load_explicit(&entry->pid, memory_order_acquire);
    if (length == 0 || atomic_load_explicit(&entry->stamp, memory_order_relaxed) != stamp) {
        return 0;
    }
    *ret_pid = pid;
    return length;
}

/* Tables */

/* Table 6 comes first, table 7 behind its 64 buckets, and so on. */
static inline struct bucket *table_of(const struct names *names, uint32_t log2)
{
    return names->buckets + ((1u << log2) - (1u << BUCKETS_LOG2_MIN));
}

/* Where a name would like to be in its bucket. Spread by the hash, the first slot looked at is nearly always
 * right. */
static inline uint32_t slot_preferred(uint64_t hash)
{
    return (uint32_t)((hash >> 32) * SLOT_COUNT >> 32);
}

static inline uint32_t slot_next(uint32_t slot)
{
    return slot + 1 < SLOT_COUNT ? slot + 1 : 0;
}

static void table_insert(struct names *names, uint32_t log2, uint64_t hash, uint32_t id)
{
    struct bucket *table = table_of(names, log2);
    uint32_t mask = (1u << log2) - 1;
    for (uint32_t home = (uint32_t)hash & mask;; home = (home + 1) & mask) {
        struct bucket *bucket = &table[home];
        uint32_t slot = slot_preferred(hash);
        for (int i = 0; i < SLOT_COUNT; i++, slot = slot_next(slot)) {
            if (atomic_load_explicit(&bucket->slots[slot], memory_order_relaxed) == 0) {
                uint64_t value = (hash >> 32) << 32 | id;
                atomic_store_explicit(&bucket->slots[slot], value, memory_order_release);
                return;
            }
        }
        atomic_fetch_add_explicit(&bucket->passed, 1, memory_order_release);
    }
}

static bool bucket_remove(struct bucket *bucket, uint64_t hash, uint32_t id)
{
    uint64_t value = (hash >> 32) << 32 | id;
    uint32_t slot = slot_preferred(hash);
    for (int i = 0; i < SLOT_COUNT; i++, slot = slot_next(slot)) {
        if (atomic_load_explicit(&bucket->slots[slot], memory_order_relaxed) == value) {
            atomic_store_explicit(&bucket->slots[slot], 0, memory_order_release);
            return true;
        }
    }
    return false;
}

static void table_remove(struct names *names, uint32_t log2, uint64_t hash, uint32_t id)
{
    struct bucket *table = table_of(names, log2);
    uint32_t mask = (1u << log2) - 1;
    for (uint32_t home = (uint32_t)hash & mask; !bucket_remove(&table[home], hash, id);
         home = (home + 1) & mask) {
        uint64_t passed = atomic_fetch_sub_explicit(&table[home].passed, 1, memory_order_release);
        ASSERT(passed > 0);
    }
}

/* What every search does, with or without the lock. *ret_id is the entry when the pid is not 0. */
static inline uint64_t table_find(const struct names *names, const struct name_key *key, uint32_t *ret_id)
{
    uint64_t low, high;
    hash_load16(key->name, key->length, &low, &high);
    uint32_t log2 = atomic_load_explicit(&names->buckets_log2, memory_order_acquire);
    struct bucket *table = table_of(names, log2);
    uint32_t mask = (1u << log2) - 1;
    uint32_t home = (uint32_t)key->hash & mask;
    /* A home is seen once at most: passed can change meanwhile, but a search is not to run in circles. */
    for (uint32_t left = mask + 1; left > 0; left--, home = (home + 1) & mask) {
        struct bucket *bucket = &table[home];
        uint32_t slot = slot_preferred(key->hash);
        for (int i = 0; i < SLOT_COUNT; i++, slot = slot_next(slot)) {
            uint64_t value = atomic_load_explicit(&bucket->slots[slot], memory_order_acquire);
            if (value >> 32 != key->hash >> 32 || (uint32_t)value == 0) {
                continue;
            }
            uint64_t pid = entry_match(names, (uint32_t)value, key->name, key->length, low, high);
            if (pid != 0) {
                *ret_id = (uint32_t)value;
                return pid;
            }
        }
        if (atomic_load_explicit(&bucket->passed, memory_order_acquire) == 0) {
            return 0;
        }
    }
    return 0;
}

/* Growth */

static uint32_t log2_in_use(const struct names *names)
{
    return atomic_load_explicit(&names->buckets_log2, memory_order_relaxed);
}

static void growth_copy(struct names *names, uint32_t log2, uint32_t id)
{
    char text[NAME_BYTES_MAX];
    uint64_t pid;
    size_t length = entry_read(names, id, text, &pid);
    if (length > 0) {
        table_insert(names, log2, hash_bytes(&names->key, text, length), id);
    }
}

/* A writer's share of the growth, after its own change. */
static void growth_step(struct names *names)
{
    uint32_t log2 = log2_in_use(names);
    if (names->cursor == 0) {
        size_t count = atomic_load_explicit(&names->count, memory_order_relaxed);
        if (count <= (size_t)FILL_MAX << log2 || log2 == names->buckets_log2_max) {
            return;
        }
        names->cursor = 1;
    }
    for (int i = 0; i < COPY_COUNT && names->cursor <= names->id_last; i++) {
        growth_copy(names, log2 + 1, names->cursor++);
    }
    if (names->cursor > names->id_last) {
        names->cursor = 0;
        atomic_store_explicit(&names->buckets_log2, log2 + 1, memory_order_release);
    }
}

/* Changes, under the mutex */

static void names_lock(struct names *names)
{
    int error = pthread_mutex_lock(&names->mutex);
    ASSERT(error == 0);
}

static void names_unlock(struct names *names)
{
    int error = pthread_mutex_unlock(&names->mutex);
    ASSERT(error == 0);
}

static uint32_t id_take(struct names *names)
{
    uint32_t id = names->id_free;
    if (id == 0) {
        ASSERT(names->id_last < names->count_max);
        return ++names->id_last;
    }
    names->id_free = (uint32_t)atomic_load_explicit(&names->entries[id].name[0], memory_order_relaxed);
    return id;
}

static void id_give(struct names *names, uint32_t id)
{
    struct entry *entry = &names->entries[id];
    uint64_t version = atomic_load_explicit(&entry->stamp, memory_order_relaxed) >> 8;
    atomic_store_explicit(&entry->stamp, (version + 1) << 8, memory_order_release);
    atomic_store_explicit(&entry->name[0], names->id_free, memory_order_release);
    names->id_free = id;
}

static void count_add(struct names *names, size_t change)
{
    size_t count = atomic_load_explicit(&names->count, memory_order_relaxed);
    atomic_store_explicit(&names->count, count + change, memory_order_relaxed);
}

static void insert(struct names *names, const struct name_key *key, uint64_t pid)
{
    uint32_t id = id_take(names);
    uint32_t log2 = log2_in_use(names);
    entry_write(names, id, key->name, key->length, pid);
    table_insert(names, log2, key->hash, id);
    if (id < names->cursor) {
        table_insert(names, log2 + 1, key->hash, id);
    }
    chains_add(&names->holders, hash_number(&names->key, pid), id);
    count_add(names, 1);
    growth_step(names);
}

/* The slots go before the entry: a reader who still has the id is told by the stamp. */
static void erase(struct names *names, uint64_t hash, uint32_t id)
{
    uint32_t log2 = log2_in_use(names);
    table_remove(names, log2, hash, id);
    if (id < names->cursor) {
        table_remove(names, log2 + 1, hash, id);
    }
    chains_remove(&names->holders, id);
    id_give(names, id);
    count_add(names, (size_t)-1);
    growth_step(names);
}

static int register_locked(struct names *names, const struct name_key *key, uint64_t pid,
                           uint64_t *ret_holder)
{
    uint32_t id;
    uint64_t holder = table_find(names, key, &id);
    if (holder != 0) {
        if (ret_holder) {
            *ret_holder = holder;
        }
        return -EEXIST;
    }
    if (names_count(names) == names->count_max) {
        return -ENOSPC;
    }
    insert(names, key, pid);
    return 0;
}

int names_register(struct names *names, const char *name, size_t length, uint64_t pid, uint64_t *ret_holder)
{
    if (!length_is_valid(length) || memchr(name, 0, length) || pid == 0) {
        return -EINVAL;
    }
    struct name_key key = names_key(names, name, length);
    names_lock(names);
    int error = register_locked(names, &key, pid, ret_holder);
    names_unlock(names);
    return error;
}

bool names_unregister(struct names *names, const char *name, size_t length, uint64_t pid)
{
    if (!length_is_valid(length) || pid == 0) {
        return false;
    }
    struct name_key key = names_key(names, name, length);
    uint32_t id;
    names_lock(names);
    bool held = table_find(names, &key, &id) == pid;
    if (held) {
        erase(names, key.hash, id);
    }
    names_unlock(names);
    return held;
}

/* The newest entry of this pid, 0 when there is none. */
static uint32_t held_by(const struct names *names, uint64_t pid)
{
    uint32_t id = chains_first(&names->holders, hash_number(&names->key, pid));
    while (id && atomic_load_explicit(&names->entries[id].pid, memory_order_relaxed) != pid) {
        id = chains_next(&names->holders, id);
    }
    return id;
}

static bool erase_one_of(struct names *names, uint64_t pid)
{
    char text[NAME_BYTES_MAX];
    uint64_t holder;
    uint32_t id = held_by(names, pid);
    if (id == 0) {
        return false;
    }
    size_t length = entry_read(names, id, text, &holder);
    ASSERT(length > 0);
    erase(names, hash_bytes(&names->key, text, length), id);
    return true;
}

size_t names_unregister_all(struct names *names, uint64_t pid)
{
    size_t count = 0;
    bool more = true;
    while (more) {
        names_lock(names);
        for (int i = 0; i < BATCH_COUNT && more; i++) {
            more = erase_one_of(names, pid);
            count += more;
        }
        names_unlock(names);
    }
    return count;
}

/* Readers */

struct name_key names_key(const struct names *names, const char *name, size_t length)
{
    return (struct name_key){.name = name, .length = length, .hash = hash_bytes(&names->key, name, length)};
}

uint64_t names_lookup_key(const struct names *names, const struct name_key *key)
{
    uint32_t id;
    return length_is_valid(key->length) ? table_find(names, key, &id) : 0;
}

uint64_t names_lookup(const struct names *names, const char *name, size_t length)
{
    if (!length_is_valid(length)) {
        return 0;
    }
    uint32_t id;
    struct name_key key = {.name = name, .length = length, .hash = hash_bytes(&names->key, name, length)};
    return table_find(names, &key, &id);
}

size_t names_count(const struct names *names)
{
    return atomic_load_explicit(&names->count, memory_order_relaxed);
}

void names_each(const struct names *names, const char *prefix, size_t prefix_length, names_visit *visit,
                void *context)
{
    char text[NAME_BYTES_MAX + 1];
    uint64_t pid;
    for (uint32_t id = 1; id <= names->count_max; id++) {
        if (atomic_load_explicit(&names->entries[id].stamp, memory_order_relaxed) == 0) {
            return; /* never used, and ids are used in order */
        }
        size_t length = entry_read(names, id, text, &pid);
        if (length == 0 || length < prefix_length || memcmp(text, prefix, prefix_length) != 0) {
            continue;
        }
        text[length] = 0;
        if (!visit(context, text, length, pid)) {
            return;
        }
    }
}

/* Life */

static uint32_t log2_for(size_t count_max)
{
    uint32_t log2 = BUCKETS_LOG2_MIN;
    while ((size_t)FILL_MAX << log2 < count_max) {
        log2++;
    }
    return log2;
}

static size_t page_round(size_t bytes)
{
    return (bytes + 4095) & ~(size_t)4095;
}

struct names *names_create_keyed(size_t count_max, const struct hash_key *key)
{
    if (count_max == 0 || count_max > NAMES_COUNT_MAX) {
        return NULL;
    }
    uint32_t log2_max = log2_for(count_max);
    size_t bucket_count = ((size_t)2 << log2_max) - ((size_t)1 << BUCKETS_LOG2_MIN);
    size_t head_bytes = page_round(sizeof(struct names));
    size_t bucket_bytes = page_round(bucket_count * sizeof(struct bucket));
    size_t entry_bytes = page_round((count_max + 1) * sizeof(struct entry));
    size_t tail_bytes = page_round((count_max + 1) * sizeof(struct tail));
    size_t chain_bytes = page_round(chains_bytes((uint32_t)count_max));
    size_t mapped_bytes = head_bytes + bucket_bytes + entry_bytes + tail_bytes + chain_bytes;

    void *base =
        mmap(NULL, mapped_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) {
        return NULL;
    }
    /* A name is to cost its bytes, not a huge page in each array. Where the kernel has none, this fails. */
    (void)madvise(base, mapped_bytes, MADV_NOHUGEPAGE);
    unsigned char *at = base;
    struct names *names = base;
    names->buckets = (void *)(at += head_bytes);
    names->entries = (void *)(at += bucket_bytes);
    names->tails = (void *)(at += entry_bytes);
    chains_init(&names->holders, at += tail_bytes, (uint32_t)count_max);
    names->mapped_bytes = mapped_bytes;
    names->buckets_log2_max = log2_max;
    names->count_max = (uint32_t)count_max;
    names->key = *key;
    atomic_init(&names->buckets_log2, BUCKETS_LOG2_MIN);
    int error = pthread_mutex_init(&names->mutex, NULL);
    ASSERT(error == 0);
    return names;
}

struct names *names_create(size_t count_max)
{
    static const struct hash_key published = {.k0 = 0x243f6a8885a308d3u, .k1 = 0x13198a2e03707344u};
    return names_create_keyed(count_max, &published);
}

void names_destroy(struct names *names)
{
    if (!names) {
        return;
    }
    int error = pthread_mutex_destroy(&names->mutex);
    ASSERT(error == 0);
    error = munmap(names, names->mapped_bytes);
    ASSERT(error == 0);
}
