/* Verified tokens, remembered: by the SHA-256 of the whole token, what it said and which keys it was verified with.
 *
 * Fixed memory: sets of four places of 1 KiB. Any scheduler reads and writes; a place's version is odd while it is being
 * written, and a reader that meets a change, or a writer that meets another one, does without: nothing here ever waits.
 * A hit says only that the signature, the claims and the replay rule were looked at when it was put in, and that generation
 * was the one of the keys then. Whether it still counts is the keyring's to decide.
 */
#ifndef COPPICE_HTTP_TOKEN_CACHE_H
#define COPPICE_HTTP_TOKEN_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "http/blocklist.h"
#include "http/identity.h"

#define TOKEN_CACHE_TEXT_MAX 824u /* a token that says more isn't remembered */
#define TOKEN_CACHE_STOPS    4u   /* its jti, its key, its session, its subject */

struct cached_token {
    uint64_t generation;
    uint64_t expires_s, issued_s; /* issued_s: as blocklist_stops wants it */
    struct blocklist_id stops[TOKEN_CACHE_STOPS];
    uint32_t role; /* enum role */
    uint16_t projects_count, text_size;
    uint8_t all_projects;
    uint8_t unused[7];
    /* subject, session, jti, issuer, then the projects: each its length in two bytes, and the text */
    uint8_t text[TOKEN_CACHE_TEXT_MAX];
};

struct token_cache;

struct token_cache *token_cache_create(uint32_t tokens); /* NULL: no memory. Boot */
void token_cache_destroy(struct token_cache *cache);

bool token_cache_find(struct token_cache *cache, const uint8_t digest[32], struct cached_token *ret_token);
void token_cache_put(struct token_cache *cache, const uint8_t digest[32], const struct cached_token *token);

/* False: it doesn't fit. Fills in all that comes from the identity. */
bool cached_token_pack(struct cached_token *token, const struct identity *who);
/* Spans borrow from the token. */
void cached_token_unpack(const struct cached_token *token, struct identity *ret_who);

#endif
