/* Page tokens: where a list goes on, in a form that a client can carry and can't make.
 *
 * A token is the last key of a page, the list it is of, and a filter's hash, sealed with the store's secret
 * (SipHash, 128 bits by two keys) and written in base64url. Opening one that was changed, is from another store,
 * another list or another filter is ERR_TOKEN. It doesn't expire: a key that has gone is simply passed over.
 */
#ifndef COPPICE_STORE_TOKEN_H
#define COPPICE_STORE_TOKEN_H

#include "store/keys.h"
#include "store/store.h"

#define TOKEN_TEXT_MAX 256u

/* list: a domain's own number of which list this is; filter: of whatever the list depends on. Returns the length. */
size_t token_seal(const struct store *store, uint16_t list, uint64_t filter, struct span key,
                  char text[TOKEN_TEXT_MAX]);
enum error token_open(const struct store *store, uint16_t list, uint64_t filter, const char *text,
                      size_t length, struct key *ret_key);

#endif
