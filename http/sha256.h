/* SHA-256 (FIPS 180-4) of a few bytes, and the comparison of what must not be guessed byte by byte.
 *
 * For secrets of one or two blocks: the operator's token, API keys. OpenSSL's would have to be loaded first (store/crypto.h). With
 * the instructions that x86 has for it, 64 bytes take 90 ns, else 400. Nothing here allocates or blocks; any thread.
 */
#ifndef COPPICE_HTTP_SHA256_H
#define COPPICE_HTTP_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHA256_SIZE 32u

void sha256_of(const void *bytes, size_t size, uint8_t ret_digest[SHA256_SIZE]);
/* The same without the processor's instructions, for tests. */
void sha256_plainly(const void *bytes, size_t size, uint8_t ret_digest[SHA256_SIZE]);

/* In a time that doesn't depend on where they differ. */
bool secret_equal(const void *a, const void *b, size_t size);

#endif
