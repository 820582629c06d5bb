/* Hash functions: one that other machines and later versions must reproduce, one that only has to be fast.
 *
 * SipHash-2-4 places things: partition = hash mod count, with a key that lives in the store for as long as
 * the data does (AMB-T-13). The same key and bytes give the same number on every machine and in every
 * release.
 *
 * hash_bytes indexes tables in memory: about 2 ns for a short name. Its values must never be stored, sent or
 * shown: the function may change from one release to the next. With a secret key a stranger who chooses the
 * bytes cannot choose the bucket; with a public one he can.
 *
 * Nothing here allocates, blocks or keeps state; any thread may call it.
 */
#ifndef COPPICE_RUNTIME_HASH_H
#define COPPICE_RUNTIME_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "runtime/assert.h"

STATIC_ASSERT(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "words are read from memory as they stand");

/* 128 bits of key. For SipHash the words are the 16 key bytes read in little-endian order. */
struct hash_key {
    uint64_t k0;
    uint64_t k1;
};

/* SipHash-2-4, 64 bits */

/* A hash in the making, for a message that comes in pieces: start, add any number of pieces, end once. */
struct hash_sip {
    uint64_t v[4];
    uint64_t pending; /* the low (length % 8) bytes wait for the rest of their word */
    uint64_t length;
};

void hash_sip_start(struct hash_sip *sip, const struct hash_key *key);
void hash_sip_add(struct hash_sip *sip, const void *bytes, size_t length);
uint64_t hash_sip_end(struct hash_sip *sip);

/* The three above in one call. */
uint64_t hash_sip24(const struct hash_key *key, const void *bytes, size_t length);

/* Partition of a key: SipHash-2-4 mod count. count is at least 1. */
uint32_t hash_partition(const struct hash_key *key, const void *bytes, size_t length, uint32_t count);

/* Partition of hash(left <> ":" <> right); the separator is one byte. The pair ("a:b", "c") is the pair ("a",
 * "b:c"): who cannot live with that keeps colons out of the left part. */
uint32_t hash_partition_pair(const struct hash_key *key, const void *left, size_t left_length,
                             const void *right, size_t right_length, uint32_t count);

/* The fast one */

/* High and low half of the 128-bit product, folded together. */
static inline uint64_t hash_mix(uint64_t a, uint64_t b)
{
    __extension__ unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t hash_load64(const void *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof(word));
    return word;
}

static inline uint32_t hash_load32(const void *bytes)
{
    uint32_t word;
    memcpy(&word, bytes, sizeof(word));
    return word;
}

/* The first 16 bytes, or all when there are fewer, as two words padded with zeros. Never reads past the end.
 */
static inline void hash_load16(const void *bytes, size_t length, uint64_t *ret_low, uint64_t *ret_high)
{
    const unsigned char *p = bytes;
    if (length >= 16) {
        *ret_low = hash_load64(p);
        *ret_high = hash_load64(p + 8);
    } else if (length >= 8) {
        /* The last eight bytes, shifted so that those already in the low word fall out. Half the shift twice,
         * because a shift by 64 (length 8) is not defined. */
        unsigned half = (unsigned)(16 - length) * 4;
        *ret_low = hash_load64(p);
        *ret_high = hash_load64(p + length - 8) >> half >> half;
    } else if (length >= 4) {
        /* Two reads that overlap put the same bytes in the same place. */
        *ret_low = hash_load32(p) | (uint64_t)hash_load32(p + length - 4) << ((length - 4) * 8);
        *ret_high = 0;
    } else if (length > 0) {
        size_t middle = length / 2;
        *ret_low = p[0] | (uint64_t)p[middle] << (middle * 8) | (uint64_t)p[length - 1] << ((length - 1) * 8);
        *ret_high = 0;
    } else {
        *ret_low = 0;
        *ret_high = 0;
    }
}

/* The last step of hash_bytes: at most 16 bytes as two words, and the state of what came before (k1 when
 * nothing did). Both factors are masked by the key, so that no input known beforehand makes the product zero.
 */
static inline uint64_t hash_end16(const struct hash_key *key, uint64_t low, uint64_t high, uint64_t state,
                                  size_t length)
{
    return hash_mix(hash_mix(low ^ key->k0, high ^ state) ^ length, 0x9e3779b97f4a7c15u);
}

/* 64-bit hash of any bytes for a table in memory. */
static inline uint64_t hash_bytes(const struct hash_key *key, const void *bytes, size_t length)
{
    const unsigned char *p = bytes;
    uint64_t low, high, state = key->k1;
    size_t rest = length;
    for (; rest > 16; rest -= 16, p += 16) {
        state = hash_mix(hash_load64(p) ^ key->k0, hash_load64(p + 8) ^ state) ^ key->k1;
    }
    hash_load16(p, rest, &low, &high);
    return hash_end16(key, low, high, state, length);
}

/* The same for a number such as a pid. */
static inline uint64_t hash_number(const struct hash_key *key, uint64_t number)
{
    return hash_end16(key, number, 0, key->k1, sizeof(number));
}

#endif
