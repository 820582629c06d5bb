#include "store/sha256.h"

#include <stdatomic.h>
#include <string.h>
#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>
#endif

enum { BLOCK = SHA256_BLOCK, LENGTH_SIZE = 8, WORDS = 8, ROUNDS = 64 };

/* The first 32 bits behind the point of the cube roots of the first 64 primes. */
static const uint32_t constants[ROUNDS] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t word, unsigned by)
{
    return word >> by | word << (32 - by);
}

static uint32_t load(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void store(uint8_t *at, uint32_t word)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(word >> (24 - 8 * i));
}

static void schedule(const uint8_t block[BLOCK], uint32_t w[ROUNDS])
{
    for (int i = 0; i < 16; i++)
        w[i] = load(block + 4 * i);
    for (int i = 16; i < ROUNDS; i++) {
        uint32_t s0 = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3;
        uint32_t s1 = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
}

static void compress_plain(uint32_t state[WORDS], const uint8_t block[BLOCK])
{
    uint32_t w[ROUNDS];
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    schedule(block, w);
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t sum1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25), choice = (e & f) ^ (~e & g);
        uint32_t one = h + sum1 + choice + constants[i] + w[i];
        uint32_t sum0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22), most = (a & b) ^ (a & c) ^ (b & c);
        h = g, g = f, f = e, e = d + one;
        d = c, c = b, b = a, a = one + sum0 + most;
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d;
    state[4] += e, state[5] += f, state[6] += g, state[7] += h;
    explicit_bzero(w, sizeof(w)); /* a secret was in it */
}

typedef void compression(uint32_t state[WORDS], const uint8_t block[BLOCK]);

/* ---- with the processor's own instructions, where there are any: four times as fast ---- */

#ifdef __x86_64__
enum { LEAF = 7, SHA_BIT = 29, ASKED = 1, HAS = 2 };

/* An answer of the processor takes as long as a digest: it is remembered. */
static bool has_instructions(void)
{
    static _Atomic int known;
    int answer = atomic_load_explicit(&known, memory_order_relaxed);
    unsigned a, b = 0, c, d;
    if (answer)
        return answer & HAS;
    answer = ASKED | (__get_cpuid_count(LEAF, 0, &a, &b, &c, &d) && (b >> SHA_BIT & 1) ? HAS : 0);
    atomic_store_explicit(&known, answer, memory_order_relaxed);
    return answer & HAS;
}

/* The instructions want the state as a b e f and c d g h, and do two rounds at once. */
__attribute__((target("sha,sse4.1"))) static void compress_fast(uint32_t state[WORDS],
                                                                const uint8_t block[BLOCK])
{
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    __m128i w[4], dcba = _mm_loadu_si128((const __m128i *)(const void *)state),
                  hgfe = _mm_loadu_si128((const __m128i *)(const void *)(state + 4));
    const __m128i cdab = _mm_shuffle_epi32(dcba, 0xb1), efgh = _mm_shuffle_epi32(hgfe, 0x1b);
    __m128i abef = _mm_alignr_epi8(cdab, efgh, 8), cdgh = _mm_blend_epi16(efgh, cdab, 0xf0);
    const __m128i abef_before = abef, cdgh_before = cdgh;
    for (int i = 0; i < 4; i++)
        w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(const void *)(block + 16 * i)), swap);
#pragma GCC unroll 16
    for (int i = 0; i < ROUNDS / 4; i++) {
        __m128i now = w[i % 4], last = w[(i + 3) % 4];
        __m128i sum = _mm_add_epi32(now, _mm_loadu_si128((const __m128i *)(const void *)(constants + 4 * i)));
        cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
        abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
        __m128i next = _mm_add_epi32(_mm_sha256msg1_epu32(now, w[(i + 1) % 4]),
                                     _mm_alignr_epi8(last, w[(i + 2) % 4], 4));
        w[i % 4] = _mm_sha256msg2_epu32(next, last); /* in vain for the last four */
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
    const __m128i feba = _mm_shuffle_epi32(abef, 0x1b), dchg = _mm_shuffle_epi32(cdgh, 0xb1);
    dcba = _mm_blend_epi16(feba, dchg, 0xf0);
    hgfe = _mm_alignr_epi8(dchg, feba, 8);
    _mm_storeu_si128((__m128i *)(void *)state, dcba);
    _mm_storeu_si128((__m128i *)(void *)(state + 4), hgfe);
}

static compression *compress_here(void)
{
    return has_instructions() ? compress_fast : compress_plain;
}
#else
static compression *compress_here(void)
{
    return compress_plain;
}
#endif

/* ---- of pieces ---- */

static void start_with(struct sha256 *sha, compression *compress)
{
    static const uint32_t first[WORDS] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                          0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(sha->state, first, sizeof(first));
    sha->size = 0;
    sha->compress = compress;
}

void sha256_start(struct sha256 *sha)
{
    start_with(sha, compress_here());
}

void sha256_add(struct sha256 *sha, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    size_t held = sha->size % BLOCK;
    sha->size += size;
    if (held && held + size >= BLOCK) {
        memcpy(sha->block + held, at, BLOCK - held);
        sha->compress(sha->state, sha->block);
        at += BLOCK - held;
        size -= BLOCK - held;
        held = 0;
    }
    for (; size >= BLOCK; size -= BLOCK, at += BLOCK)
        sha->compress(sha->state, at);
    if (size)
        memcpy(sha->block + held, at, size);
}

void sha256_end(struct sha256 *sha, uint8_t ret_digest[SHA256_SIZE])
{
    uint8_t tail[2 * BLOCK] = {0};
    size_t rest = sha->size % BLOCK;
    size_t tail_size = rest + 1 + LENGTH_SIZE <= BLOCK ? BLOCK : 2 * BLOCK;
    memcpy(tail, sha->block, rest);
    tail[rest] = 0x80;
    store(tail + tail_size - LENGTH_SIZE, (uint32_t)(sha->size * 8 >> 32));
    store(tail + tail_size - 4, (uint32_t)(sha->size * 8));
    for (size_t i = 0; i < tail_size; i += BLOCK)
        sha->compress(sha->state, tail + i);
    explicit_bzero(tail, sizeof(tail));
    for (size_t i = 0; i < WORDS; i++)
        store(ret_digest + 4 * i, sha->state[i]);
    explicit_bzero(sha, sizeof(*sha));
}

static void digest_with(compression *compress, const void *bytes, size_t size,
                        uint8_t ret_digest[SHA256_SIZE])
{
    struct sha256 sha;
    start_with(&sha, compress);
    sha256_add(&sha, bytes, size);
    sha256_end(&sha, ret_digest);
}

void sha256_plainly(const void *bytes, size_t size, uint8_t ret_digest[SHA256_SIZE])
{
    digest_with(compress_plain, bytes, size, ret_digest);
}

void sha256_of(const void *bytes, size_t size, uint8_t ret_digest[SHA256_SIZE])
{
    digest_with(compress_here(), bytes, size, ret_digest);
}

/* ---- with a key ---- */

static void start_padded(struct sha256 *sha, const uint8_t key[BLOCK], uint8_t pad)
{
    uint8_t block[BLOCK];
    for (size_t i = 0; i < BLOCK; i++)
        block[i] = key[i] ^ pad;
    sha256_start(sha);
    sha256_add(sha, block, BLOCK);
    explicit_bzero(block, sizeof(block));
}

void hmac_start(struct hmac *hmac, const void *key, size_t size)
{
    uint8_t block[BLOCK] = {0};
    if (size > BLOCK)
        sha256_of(key, size, block);
    else if (size)
        memcpy(block, key, size);
    start_padded(&hmac->inner, block, 0x36);
    start_padded(&hmac->outer, block, 0x5c);
    explicit_bzero(block, sizeof(block));
}

void hmac_add(struct hmac *hmac, const void *bytes, size_t size)
{
    sha256_add(&hmac->inner, bytes, size);
}

void hmac_end(struct hmac *hmac, uint8_t ret_digest[SHA256_SIZE])
{
    uint8_t inner[SHA256_SIZE];
    sha256_end(&hmac->inner, inner);
    sha256_add(&hmac->outer, inner, sizeof(inner));
    sha256_end(&hmac->outer, ret_digest);
    explicit_bzero(inner, sizeof(inner));
}

bool secret_equal(const void *a, const void *b, size_t size)
{
    const volatile uint8_t *x = a, *y = b;
    uint8_t differ = 0;
    for (size_t i = 0; i < size; i++)
        differ |= x[i] ^ y[i];
    return differ == 0;
}
