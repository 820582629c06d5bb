#include "http/peers.h"

#include <netinet/in.h>
#include <stdatomic.h>
#include <string.h>

#include "runtime/assert.h"

enum { SET = 8, COUNT_BITS = 24 };
#define COUNT_MASK ((UINT64_C(1) << COUNT_BITS) - 1)

static _Atomic uint64_t words[PEERS_MAX]; /* tag << 24 | connections; 0: free */

uint32_t peers_key(const struct sockaddr_storage *address, uint8_t ret_key[8])
{
    if (address->ss_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)address;
        memcpy(ret_key, &in->sin_addr, 4);
        return 4;
    }
    if (address->ss_family != AF_INET6)
        return 0;
    const struct sockaddr_in6 *in6 = (const void *)address;
    if (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr)) {
        memcpy(ret_key, &in6->sin6_addr.s6_addr[12], 4);
        return 4;
    }
    memcpy(ret_key, &in6->sin6_addr, 8);
    return 8;
}

/* Spread well enough; whoever has many addresses can fill a set, and is then uncounted, not others refused. */
static uint64_t spread(const uint8_t *key, uint32_t size)
{
    uint64_t word = size;
    memcpy(&word, key, size);
    word = (word ^ word >> 32) * UINT64_C(0x9e3779b97f4a7c15);
    return word ^ word >> 29;
}

/* One more at this place, while it is still this address's (or free, for `take`). */
static bool count_up(uint32_t place, uint64_t tag, uint32_t max, bool take, bool *ret_full)
{
    uint64_t word = atomic_load_explicit(&words[place], memory_order_relaxed);
    for (;;) {
        if (word ? word >> COUNT_BITS != tag : !take)
            return false;
        if ((max && (word & COUNT_MASK) >= max) || (word & COUNT_MASK) == COUNT_MASK) {
            *ret_full = true;
            return false;
        }
        uint64_t next = word ? word + 1 : tag << COUNT_BITS | 1;
        if (atomic_compare_exchange_weak_explicit(&words[place], &word, next, memory_order_relaxed,
                                                  memory_order_relaxed))
            return true;
    }
}

bool peers_enter(const struct sockaddr_storage *address, uint32_t max, uint32_t *ret_place)
{
    uint8_t key[8] = {0};
    uint32_t size = peers_key(address, key);
    *ret_place = PEER_NONE;
    if (size == 0)
        return true;
    uint64_t hash = spread(key, size), tag = hash >> COUNT_BITS | 1;
    uint32_t first = (uint32_t)hash % (PEERS_MAX / SET) * SET;
    bool full = false;
    for (unsigned round = 0; round < 2 && !full; round++) /* its own place, else a free one */
        for (uint32_t i = 0; i < SET && !full; i++)
            if (count_up(first + i, tag, max, round == 1, &full)) {
                *ret_place = first + i;
                return true;
            }
    return !full;
}

void peers_leave(uint32_t place)
{
    if (place == PEER_NONE)
        return;
    uint64_t word = atomic_load_explicit(&words[place], memory_order_relaxed), next;
    do {
        ASSERT(word & COUNT_MASK);
        next = (word & COUNT_MASK) == 1 ? 0 : word - 1;
    } while (!atomic_compare_exchange_weak_explicit(&words[place], &word, next, memory_order_relaxed,
                                                    memory_order_relaxed));
}
