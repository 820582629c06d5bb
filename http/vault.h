/* The vault: what leaves this process's memory of a private key is sealed, with AES-256-GCM under a master key that isn't
 * in the store.
 *
 *     sealed: version:1 nonce:12 ciphertext tag:16
 *
 * The name (of which key, for which environment) is authenticated with it: a sealed key opens under its own name alone.
 * The master key is a file of 32 bytes (http/secret_file.h), made when it is missing. Whoever has both the file and the
 * store has the keys; a backup of the store alone has nothing.
 */
#ifndef COPPICE_HTTP_VAULT_H
#define COPPICE_HTTP_VAULT_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/env.h"
#include "runtime/error.h"
#include "store/span.h"

#define VAULT_FILE       "master.key" /* in the store's directory, unless a setting says where */
#define VAULT_KEY_SIZE   32u
#define VAULT_NONCE_SIZE 12u
#define VAULT_OVERHEAD   (1u + VAULT_NONCE_SIZE + 16u)

struct vault {
    uint8_t key[VAULT_KEY_SIZE];
};

/* Boot. *ret_made: the file was missing, and has been made. Errors as secret_file's; ERR_FOREIGN: not 32 bytes. */
enum error vault_open(const char *path, struct env *env, struct vault *ret_vault, bool *ret_made,
                      char *ret_text, size_t text_size);
/* Whether there is one that can be used; makes nothing. Errors as vault_open, and ERR_MISSING. */
enum error vault_look(const char *path, char *ret_text, size_t text_size);
void vault_close(struct vault *vault); /* wipes */

/* Writes plain.size + VAULT_OVERHEAD bytes. A nonce is used once: chance of 96 bits. Guarded; any thread. libcrypto must
 * be there to be loaded: who has made a key knows that it is. */
void vault_seal(const struct vault *vault, const uint8_t nonce[VAULT_NONCE_SIZE], struct span name,
                struct span plain, uint8_t *ret_sealed);
/* False: not sealed by this master key under this name, or changed, or not of `size` bytes. */
bool vault_unseal(const struct vault *vault, struct span name, struct span sealed, void *ret_plain,
                  uint32_t size);

#endif
