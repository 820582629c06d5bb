/* Of the keyring, for keyring.c (readers) and keyring_actor.c (the one that changes it) alone. */
#ifndef COPPICE_HTTP_KEYRING_IMPL_H
#define COPPICE_HTTP_KEYRING_IMPL_H

#include <openssl/evp.h>
#include <stdatomic.h>

#include "http/blocklist.h"
#include "http/keyring.h"
#include "http/token_cache.h"
#include "http/vault.h"
#include "runtime/runtime.h"
#include "store/signing_key.h"

struct keyring_entry {
    const char *issuer;  /* borrowed from the options */
    struct jwt_key *key; /* owned by the table */
    uint64_t until_s;    /* nothing is verified with it from then on; UINT64_MAX: as long as it is here */
    bool twice;          /* its issuer has another one of this kid */
};

/* The text of a key set as it came last and was good. */
struct key_set {
    char *text; /* owned; NULL: none yet */
    size_t size;
};
enum { SET_FILE, SET_URL, SET_COUNT };

/* What readers see: immutable. */
struct key_table {
    struct key_table *next;    /* of those that wait for their last reader */
    struct jwt_signer *signer; /* NULL: nothing can be signed */
    uint64_t created_us;       /* the signer's key */
    size_t jwks_size;
    char *jwks; /* {"keys":[...]} of the built-in issuer */
    uint32_t count;
    struct keyring_entry entries[KEYRING_KEYS_MAX];
};

/* Of a scheduler: which table it is reading, set for the time of a guarded section, in which one reader runs at most; and
 * what it hashes tokens with. */
struct key_reader {
    struct key_table *_Atomic table;
    EVP_MD_CTX *hasher;
} __attribute__((aligned(64)));

enum { KEYRING_READERS = RUNTIME_SCHEDULERS_MAX + 1 }; /* the last one is for plain threads: boot, tests */

struct keyring {
    struct keyring_options options;
    struct vault vault;
    const char *issuers[3], *audiences[2];
    struct jwt_policy policy;
    struct token_cache *cache;
    struct blocklist *blocklist;
    _Atomic bool loaded;         /* the store's keys and revocations are known */
    _Atomic bool wanted;         /* a kid that nobody knows came from the sets' issuer */
    _Atomic bool signless;       /* there was a key, and it can't be opened */
    _Atomic uint64_t newest_s;   /* the greatest iat of ours: the clock may have gone back since */
    _Atomic uint64_t generation; /* raised behind each change of the table */
    struct key_table *_Atomic table;
    struct key_reader readers[KEYRING_READERS];
    struct key_table *retired; /* this and what follows: the actor's */
    struct key_set sets[SET_COUNT];
};

/* Between these two, guarded: the table stays. */
struct key_table *keyring_read_begin(struct keyring *keyring);
void keyring_read_end(struct keyring *keyring);

/* By the actor, guarded. Takes the table over. */
void keyring_publish(struct keyring *keyring, struct key_table *table);
/* Frees what nobody reads any more. */
void keyring_reclaim(struct keyring *keyring);
void key_table_free(struct key_table *table);

/* The stops of a token of which these are the words. */
void keyring_stops(const struct keyring *keyring, const struct jwt *jwt,
                   struct blocklist_id ret_stops[TOKEN_CACHE_STOPS]);

#endif
