/* Four lanes, so that four multiplications are under way at a time. The bytes are words of eight, little-endian;
 * pair j of words goes to lane j mod 4:
 *
 *     bytes   0..7 8..15 | 16..23 24..31 | 32..39 40..47 | 48..55 56..63 | 64..71 72..79 | ...
 *              a     b   |   a      b    |   a      b    |   a      b    |   a      b    |
 *                lane 0  |     lane 1    |     lane 2    |     lane 3    |     lane 0    | ...
 *
 * The last pair is filled up with zeros. Lane i begins as seed ^ secret[4 + i] and takes a pair as
 *
 *     high:low = (a ^ secret[i]) * (b ^ lane)       128 bits
 *     lane     = (lane + low) ^ high
 *
 * so what it holds depends on the order of what it took, and a factor that happens to be zero hides one word,
 * never what came before or after. At the end
 *
 *     sum    = fold(lane[0] * lane[1]) + fold(lane[2] * lane[3]) + size       fold: high ^ low
 *     result = scramble(sum)                                                  one to one
 *
 * The size tells apart what differs only in zeros at its end.
 */
#include "store/checksum.h"

#include "runtime/hash.h"

/* The fraction of pi in hexadecimal: as good as any other words, and nobody chose them. */
#define SECRET_0 0x243f6a8885a308d3u
#define SECRET_1 0x13198a2e03707344u
#define SECRET_2 0xa4093822299f31d0u
#define SECRET_3 0x082efa98ec4e6c89u
#define SECRET_4 0x452821e638d01377u
#define SECRET_5 0xbe5466cf34e90c6cu
#define SECRET_6 0xc0ac29b7c97c50ddu
#define SECRET_7 0x3f84d5b5b5470917u

#define PAIR     16u
#define STRIDE   (4 * PAIR)

static inline uint64_t lane_take(uint64_t lane, uint64_t secret, uint64_t a, uint64_t b)
{
    __extension__ unsigned __int128 product = (unsigned __int128)(a ^ secret) * (b ^ lane);
    return (lane + (uint64_t)product) ^ (uint64_t)(product >> 64);
}

static inline uint64_t lane_take_pair(uint64_t lane, uint64_t secret, const uint8_t *at)
{
    return lane_take(lane, secret, hash_load64(at), hash_load64(at + 8));
}

/* The same for a pair that may be short; `left` is at least 1. */
static inline uint64_t lane_take_last(uint64_t lane, uint64_t secret, const uint8_t *at, size_t left)
{
    uint64_t a, b;
    hash_load16(at, left, &a, &b);
    return lane_take(lane, secret, a, b);
}

/* The end of MurmurHash3: each bit of the sum reaches each bit of the result. */
static inline uint64_t scramble(uint64_t sum)
{
    sum = (sum ^ sum >> 33) * 0xff51afd7ed558ccdu;
    sum = (sum ^ sum >> 33) * 0xc4ceb9fe1a85ec53u;
    return sum ^ sum >> 33;
}

uint64_t checksum(uint64_t seed, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    size_t left = size;
    uint64_t lane_0 = seed ^ SECRET_4;
    uint64_t lane_1 = seed ^ SECRET_5;
    uint64_t lane_2 = seed ^ SECRET_6;
    uint64_t lane_3 = seed ^ SECRET_7;
    for (; left >= STRIDE; left -= STRIDE, at += STRIDE) {
        lane_0 = lane_take_pair(lane_0, SECRET_0, at);
        lane_1 = lane_take_pair(lane_1, SECRET_1, at + PAIR);
        lane_2 = lane_take_pair(lane_2, SECRET_2, at + 2 * PAIR);
        lane_3 = lane_take_pair(lane_3, SECRET_3, at + 3 * PAIR);
    }
    if (left > 0)
        lane_0 = lane_take_last(lane_0, SECRET_0, at, left);
    if (left > PAIR)
        lane_1 = lane_take_last(lane_1, SECRET_1, at + PAIR, left - PAIR);
    if (left > 2 * PAIR)
        lane_2 = lane_take_last(lane_2, SECRET_2, at + 2 * PAIR, left - 2 * PAIR);
    if (left > 3 * PAIR)
        lane_3 = lane_take_last(lane_3, SECRET_3, at + 3 * PAIR, left - 3 * PAIR);
    return scramble(hash_mix(lane_0, lane_1) + hash_mix(lane_2, lane_3) + size);
}
