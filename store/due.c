#include "store/due.h"

#include "store/check.h"
#include "store/counter.h"
#include "store/store.h"

#define KEY_SIZE                            27u /* queue:1 shard:2 due_us:8 id:16 */
#define QUEUE_SIZE                          1u  /* the part that one queue's entries have in common */
#define SHARD_SIZE                          3u  /* the part that one shard's entries have in common */
#define DUE_US_AT                           3u
#define DUE_UUID_AT                         11u

#define due_FIELD(name, TYPE, limit, since) RECORD_FIELD(due, name, TYPE, limit, since)
RECORD_CLASS(due, DUE_FIELDS, 1);

struct key due_key(uint8_t queue, uint16_t shard, uint64_t due_us, const struct uuid *id)
{
    struct key key;
    key.size = 0;
    key_add_u8(&key, queue);
    key_add_u16(&key, shard);
    key_add_u64(&key, due_us);
    key_add_uuid(&key, id);
    return key;
}

/* All of an entry but its row. */
static bool key_read(struct span key, struct due_entry *ret_entry)
{
    const uint8_t *bytes = key.bytes;
    if (key.size != KEY_SIZE)
        return false;
    ret_entry->queue = bytes[0];
    ret_entry->shard = key_u16(bytes + 1);
    ret_entry->due_us = key_u64(bytes + DUE_US_AT);
    memcpy(ret_entry->id.bytes, bytes + DUE_UUID_AT, sizeof(ret_entry->id.bytes));
    return true;
}

static void count(struct txn *txn, uint8_t queue, int64_t delta)
{
    counter_add(txn, COUNTER_DUE, span_of(&queue, sizeof(queue)), delta);
}

void due_set(struct txn *txn, const struct due_entry *entry)
{
    struct key key = due_key(entry->queue, entry->shard, entry->due_us, &entry->id);
    txn_add(txn, TABLE_DUE, key_span(&key), &entry->row);
    count(txn, entry->queue, 1);
    txn_wake(txn, STORE_TOPIC(TOPIC_DUE, entry->queue));
}

enum error due_try_clear(struct txn *txn, uint8_t queue, uint16_t shard, uint64_t due_us,
                         const struct uuid *id)
{
    struct key key = due_key(queue, shard, due_us, id);
    enum error e = txn_try_remove(txn, TABLE_DUE, key_span(&key));
    if (!e)
        count(txn, queue, -1);
    return e;
}

void due_clear(struct txn *txn, uint8_t queue, uint16_t shard, uint64_t due_us, const struct uuid *id)
{
    enum error e = due_try_clear(txn, queue, shard, due_us, id);
    ASSERT(e == OK);
}

void due_move(struct txn *txn, const struct due_entry *entry, uint64_t due_us)
{
    struct key from = due_key(entry->queue, entry->shard, entry->due_us, &entry->id),
               to = due_key(entry->queue, entry->shard, due_us, &entry->id);
    struct due_entry later = *entry;
    struct due there;
    if (txn_read(txn, TABLE_DUE, key_span(&from), &later.row) != OK)
        later.row = (struct due){.kind = 0};
    later.due_us = due_us;
    due_clear(txn, entry->queue, entry->shard, entry->due_us, &entry->id);
    if (txn_read(txn, TABLE_DUE, key_span(&to), &there) == ERR_NOT_FOUND)
        due_set(txn, &later);
}

static struct scan shard_scan(struct txn *txn, uint8_t queue, uint16_t shard)
{
    static const struct uuid first = {{0}};
    struct key from = due_key(queue, shard, 0, &first);
    return txn_scan(txn, TABLE_DUE, key_span(&from), SHARD_SIZE, SCAN_UP);
}

enum error due_scan(struct txn *txn, uint8_t queue, uint16_t shard, uint64_t until_us,
                    struct due_entry *entries, uint32_t most, uint32_t *ret_count)
{
    struct scan scan = shard_scan(txn, queue, shard);
    enum error e = OK, end;
    uint32_t found = 0;
    while (!e && found < most && scan_next(&scan)) {
        struct due_entry entry;
        if (!key_read(scan.key, &entry)) {
            e = ERR_DAMAGED;
        } else if (entry.due_us > until_us) {
            break;
        } else {
            e = scan_read(&scan, &entry.row);
            entries[found] = entry;
            found += e == OK;
        }
    }
    end = scan_end(&scan);
    e = e ? e : end;
    if (!e)
        *ret_count = found;
    return e;
}

/* Whether a scan has ended at a row that can't be read but for its key. `last`: the row before. */
static bool ended_at(const struct scan *scan, const struct due_entry *last, struct due_entry *ret_entry)
{
    if (scan->error != ERR_DAMAGED || !key_read(scan->key, ret_entry))
        return false;
    return !last || last->due_us != ret_entry->due_us || !uuid_equal(&last->id, &ret_entry->id);
}

/* From this row on, until one can't be read: OK, and *ret_behind, the key behind that one; ERR_LIMIT: all are found. */
static enum error scan_keys(struct txn *txn, struct span from, uint64_t until_us, struct due_entry *entries,
                            uint32_t most, uint32_t *found, struct key *ret_behind)
{
    struct scan scan = txn_scan(txn, TABLE_DUE, from, SHARD_SIZE, SCAN_UP);
    struct due_entry entry = {.row = {.kind = 0}};
    enum error e = OK;
    bool over = false;
    while (!e && !over && *found < most && scan_next(&scan)) {
        e = key_read(scan.key, &entry) ? OK : ERR_DAMAGED;
        over = !e && entry.due_us > until_us;
        if (!e && !over)
            entries[(*found)++] = entry;
    }
    bool damaged = ended_at(&scan, *found ? &entries[*found - 1] : NULL, &entry);
    enum error end = scan_end(&scan);
    if (damaged && entry.due_us <= until_us) {
        entries[(*found)++] = entry;
        *ret_behind = due_key(entry.queue, entry.shard, entry.due_us, &entry.id);
        key_add_u8(ret_behind, 0);
        return OK;
    }
    e = e || damaged ? e : end;
    return e ? e : ERR_LIMIT;
}

enum error due_scan_keys(struct txn *txn, uint8_t queue, uint16_t shard, uint64_t until_us,
                         struct due_entry *entries, uint32_t most, uint32_t *ret_count)
{
    static const struct uuid first = {{0}};
    struct key from = due_key(queue, shard, 0, &first);
    enum error e = OK;
    *ret_count = 0;
    while (!e && *ret_count < most)
        e = scan_keys(txn, key_span(&from), until_us, entries, most, ret_count, &from);
    return e == ERR_LIMIT ? OK : e;
}

/* The first one of a scan, but for its row. Ends the scan. */
static enum error first_key(struct scan *scan, struct due_entry *ret_entry)
{
    enum error e = ERR_NOT_FOUND;
    *ret_entry = (struct due_entry){.due_us = 0};
    if (scan_next(scan))
        e = key_read(scan->key, ret_entry) ? OK : ERR_DAMAGED;
    bool damaged = ended_at(scan, NULL, ret_entry);
    enum error end = scan_end(scan);
    return damaged ? OK : end ? end : e;
}

enum error due_first(struct txn *txn, uint8_t queue, uint16_t shard, struct due_entry *ret_entry)
{
    static const struct uuid first = {{0}};
    struct key from = due_key(queue, shard, 0, &first);
    struct scan scan = txn_scan(txn, TABLE_DUE, key_span(&from), QUEUE_SIZE, SCAN_UP);
    struct due_entry entry;
    enum error e = first_key(&scan, &entry);
    if (!e)
        *ret_entry = entry;
    return e;
}

enum error due_next(struct txn *txn, uint8_t queue, uint16_t shard, uint64_t *ret_due_us)
{
    struct scan scan = shard_scan(txn, queue, shard);
    struct due_entry entry;
    enum error e = first_key(&scan, &entry);
    if (!e)
        *ret_due_us = entry.due_us;
    return e;
}

void due_check(struct check *check, struct txn *txn, struct span key, const void *value)
{
    const struct due *row = value;
    struct due_entry entry;
    if (!key_read(key, &entry)) {
        check_complain(check, "due: a key of %u bytes", key.size);
        return;
    }
    entry.row = *row;
    check_count(check, COUNTER_DUE, span_of(&entry.queue, sizeof(entry.queue)), 1);
    switch (entry.queue) {
#define X(id, number, name, check_entry) \
    case id:                             \
        check_entry(check, txn, &entry); \
        break;
        DUE_QUEUES(X)
#undef X
    default:
        check_complain(check, "due: an entry in the unknown queue %u", entry.queue);
    }
}
