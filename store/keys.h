/* Keys: big-endian, so that they sort as they are read.
 *
 *     table       key, from its first byte
 *     meta        name as text                                            format, commit, secret
 *     audits      id:16                                                   UUIDv7: grows at its end
 *     events      stream:16  seq:8                                        one stream stands together, in order
 *     ledger      lifetime:1  row:8                                       oldest first within a lifetime
 *     due         queue:1  shard:2  due_us:8  id:16                       the next one of a shard is its first
 *     outbox      partition:2  seq:8                                      commit order within a partition
 *     claims      partition:2                                             who relays it, by which fence
 *     dead        partition:2  seq:8                                      what could not be delivered
 *     counters    counter:2  label...                                     up to 64 bytes of label
 *     clients     id:16                                                   UUIDv4: all chance
 *     client_keys client:16                                               once it has had a key
 *     api_keys    id:16                                                   UUIDv7
 *     api_key_hashes  hash:32                                             the way from a key to its row
 *     rate_windows    hash:16                                             of bucket and actor
 *     principals  name...                                                 up to 112 bytes
 *     signing_keys  id:16                                                 UUIDv7
 *     revocations   id:16                                                 named id of kind, issuer, value
 *     seen_tokens   id:16                                                 named id of issuer, jti
 *     jobs        id:16                                                   UUIDv7
 *     job_definitions  id:16                                              the same
 *     job_queue   lane:1  what the lane goes by...  rank:1  place:8       store/job_queue.h: the next one is the first
 *     client_jobs client:16  seq:8                                        a client's in their order
 *     reports     id:16  attempt:2                                        of one job together
 *     webhooks    client:16  id:16                                        a client's stand together; UUIDv7
 *     webhook_ids id:16                                                   the way from an id to its client
 *     deliveries  id:16                                                   UUIDv7 of the event's time
 *     delivery_index  kind:1 ...                                          store/delivery.h
 *
 * A part of variable length stands at the end of its key, or carries its length in front; so no key is the
 * beginning of another one's meaning. LMDB takes keys of 1 to 511 bytes; ours have at most KEY_SIZE_MAX.
 *
 * A key is built on the stack and passed by its span. Building never fails: a part that doesn't fit is a bug,
 * because what comes from outside is checked against the fields' limits before.
 */
#ifndef COPPICE_STORE_KEYS_H
#define COPPICE_STORE_KEYS_H

#include "runtime/assert.h"
#include "store/span.h"
#include "store/uuid.h"

#define KEY_SIZE_MAX 128u

struct key {
    uint8_t bytes[KEY_SIZE_MAX];
    uint32_t size;
};

static inline struct span key_span(const struct key *key)
{
    return (struct span){.bytes = key->bytes, .size = key->size};
}

static inline void key_add(struct key *key, const void *bytes, uint32_t size)
{
    ASSERT(size <= KEY_SIZE_MAX - key->size);
    memcpy(key->bytes + key->size, bytes, size);
    key->size += size;
}

static inline void key_add_u8(struct key *key, uint8_t value)
{
    key_add(key, &value, 1);
}

static inline void key_add_u16(struct key *key, uint16_t value)
{
    uint16_t big = __builtin_bswap16(value);
    key_add(key, &big, sizeof(big));
}

static inline void key_add_u64(struct key *key, uint64_t value)
{
    uint64_t big = __builtin_bswap64(value);
    key_add(key, &big, sizeof(big));
}

static inline void key_add_uuid(struct key *key, const struct uuid *id)
{
    key_add(key, id->bytes, sizeof(id->bytes));
}

static inline struct key key_of_uuid(const struct uuid *id)
{
    struct key key;
    key.size = 0;
    key_add_uuid(&key, id);
    return key;
}

/* Reading one back. The caller has seen that the key is long enough. */
static inline uint16_t key_u16(const void *at)
{
    uint16_t big;
    memcpy(&big, at, sizeof(big));
    return __builtin_bswap16(big);
}

static inline uint64_t key_u64(const void *at)
{
    uint64_t big;
    memcpy(&big, at, sizeof(big));
    return __builtin_bswap64(big);
}

#endif
