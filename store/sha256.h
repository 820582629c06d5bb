/* SHA-256 (FIPS 180-4) and HMAC (RFC 2104) of a few bytes, and the comparison of what must not be guessed byte by byte.
 *
 * For secrets of one or two blocks, the operator's token and API keys, and for the signatures of webhooks. OpenSSL's would have to
 * be loaded first (store/crypto.h). With the instructions that x86 has for it, 64 bytes take 90 ns, else 400. Nothing here allocates
 * or blocks; any thread.
 */
#ifndef COPPICE_STORE_SHA256_H
#define COPPICE_STORE_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHA256_SIZE  32u
#define SHA256_BLOCK 64u

void sha256_of(const void *bytes, size_t size, uint8_t ret_digest[SHA256_SIZE]);
/* The same without the processor's instructions, for tests. */
void sha256_plainly(const void *bytes, size_t size, uint8_t ret_digest[SHA256_SIZE]);

/* Of a message that comes in pieces: start, add any number of them, end once. Nothing of it is left behind. */
struct sha256 {
    uint32_t state[8];
    uint64_t size;
    uint8_t block[SHA256_BLOCK]; /* what doesn't fill one yet: its first size % 64 bytes */
    void (*compress)(uint32_t state[8], const uint8_t block[SHA256_BLOCK]);
};
void sha256_start(struct sha256 *sha);
void sha256_add(struct sha256 *sha, const void *bytes, size_t size);
void sha256_end(struct sha256 *sha, uint8_t ret_digest[SHA256_SIZE]);

/* HMAC-SHA256, in the same way; a key may have any length. */
struct hmac {
    struct sha256 inner, outer;
};
void hmac_start(struct hmac *hmac, const void *key, size_t size);
void hmac_add(struct hmac *hmac, const void *bytes, size_t size);
void hmac_end(struct hmac *hmac, uint8_t ret_digest[SHA256_SIZE]);

/* In a time that doesn't depend on where they differ. */
bool secret_equal(const void *a, const void *b, size_t size);

#endif
