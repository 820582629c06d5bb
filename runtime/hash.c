#include "runtime/hash.h"

static inline uint64_t rotate_left(uint64_t word, unsigned count)
{
    return word << count | word >> (64 - count);
}

static inline void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = rotate_left(v[1], 13) ^ v[0];
    v[0] = rotate_left(v[0], 32);
    v[2] += v[3];
    v[3] = rotate_left(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotate_left(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotate_left(v[1], 17) ^ v[2];
    v[2] = rotate_left(v[2], 32);
}

/* The 2 of SipHash-2-4: two rounds for each word of the message. */
static inline void sip_word(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    sip_round(v);
    sip_round(v);
    v[0] ^= word;
}

void hash_sip_start(struct hash_sip *sip, const struct hash_key *key)
{
    *sip = (struct hash_sip){
        .v = {key->k0 ^ 0x736f6d6570736575u, key->k1 ^ 0x646f72616e646f6du, key->k0 ^ 0x6c7967656e657261u,
              key->k1 ^ 0x7465646279746573u},
    };
}

/* At most seven bytes, as many as the word that is being filled has room for. */
static void sip_add_few(struct hash_sip *sip, const unsigned char *bytes, size_t count)
{
    uint64_t low, high;
    hash_load16(bytes, count, &low, &high);
    sip->pending |= low << sip->length % 8 * 8;
    sip->length += count;
    if (sip->length % 8 == 0) {
        sip_word(sip->v, sip->pending);
        sip->pending = 0;
    }
}

void hash_sip_add(struct hash_sip *sip, const void *bytes, size_t length)
{
    const unsigned char *p = bytes;
    size_t room = (8 - sip->length % 8) % 8, first = room < length ? room : length;
    if (length == 0)
        return;
    if (first > 0)
        sip_add_few(sip, p, first);
    for (p += first, length -= first; length >= 8; length -= 8, p += 8) {
        sip_word(sip->v, hash_load64(p));
        sip->length += 8;
    }
    if (length > 0)
        sip_add_few(sip, p, length);
}

uint64_t hash_sip_end(struct hash_sip *sip)
{
    uint64_t *v = sip->v;
    sip_word(v, sip->pending | sip->length << 56);
    v[2] ^= 0xff;
    for (int i = 0; i < 4; i++) {
        sip_round(v);
    }
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

uint64_t hash_sip24(const struct hash_key *key, const void *bytes, size_t length)
{
    struct hash_sip sip;
    hash_sip_start(&sip, key);
    hash_sip_add(&sip, bytes, length);
    return hash_sip_end(&sip);
}

uint32_t hash_partition(const struct hash_key *key, const void *bytes, size_t length, uint32_t count)
{
    ASSERT(count > 0);
    return (uint32_t)(hash_sip24(key, bytes, length) % count);
}

uint32_t hash_partition_pair(const struct hash_key *key, const void *left, size_t left_length,
                             const void *right, size_t right_length, uint32_t count)
{
    struct hash_sip sip;
    ASSERT(count > 0);
    hash_sip_start(&sip, key);
    hash_sip_add(&sip, left, left_length);
    hash_sip_add(&sip, ":", 1);
    hash_sip_add(&sip, right, right_length);
    return (uint32_t)(hash_sip_end(&sip) % count);
}
