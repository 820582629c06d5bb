#include "store/named_id.h"

#include "runtime/hash.h"
#include "store/store.h"

static void add(struct hash_sip *sip, struct span part)
{
    hash_sip_add(sip, &part.size, sizeof(part.size));
    hash_sip_add(sip, part.bytes, part.size);
}

/* The halves differ by what stands in front. */
static uint64_t half_of(const struct store *store, uint8_t half, const char *kind, const struct span *parts,
                        size_t count)
{
    struct hash_key key;
    struct hash_sip sip;
    memcpy(&key, store->secret, sizeof(key));
    hash_sip_start(&sip, &key);
    hash_sip_add(&sip, &half, sizeof(half));
    add(&sip, span_text(kind));
    for (size_t i = 0; i < count; i++)
        add(&sip, parts[i]);
    return hash_sip_end(&sip);
}

struct uuid named_id(const struct store *store, const char *kind, const struct span *parts, size_t count)
{
    struct uuid id;
    uint64_t low = half_of(store, 1, kind, parts, count), high = half_of(store, 2, kind, parts, count);
    memcpy(id.bytes, &low, sizeof(low));
    memcpy(id.bytes + sizeof(low), &high, sizeof(high));
    id.bytes[6] = (uint8_t)((id.bytes[6] & 0x0fu) | 0x80u);
    id.bytes[8] = (uint8_t)((id.bytes[8] & 0x3fu) | 0x80u);
    return id;
}
