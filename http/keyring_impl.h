/* Of the keyring, for keyring.c (readers), keyring_actor.c (the one that changes it) and key_table.c (what it makes) alone. */
#ifndef COPPICE_HTTP_KEYRING_IMPL_H
#define COPPICE_HTTP_KEYRING_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "http/blocklist.h"
#include "http/keyring.h"
#include "http/token_cache.h"
#include "http/vault.h"
#include "runtime/runtime.h"
#include "store/crypto.h"
#include "store/signing_key.h"

struct keyring_entry {
    const char *issuer;  /* borrowed from the options */
    struct jwt_key *key; /* owned by the table */
    uint64_t until_s;    /* nothing is verified with it from then on; UINT64_MAX: as long as it is here */
    uint64_t issued_s;   /* nothing that says that it was issued later; UINT64_MAX: whatever it says */
    bool twice;          /* its issuer has another one of this kid */
};

/* The text of a key set as it came last and was one: an object with an array of keys, of which there may be none. */
struct key_set {
    char *text; /* owned; NULL: none yet */
    size_t size;
    uint64_t at_ns; /* when it came, or was found to be the same, by the scheduler's clock */
};
enum { SET_FILE, SET_URL, SET_COUNT };

enum {
    KEYRING_SET_NODES = 3500, /* of a set's JSON, likewise: 200 keys */
};

/* After which every token that was issued before has expired by itself. */
#define KEYRING_TOKENS_S ((uint64_t)KEYRING_LIFETIME_S + KEYRING_SKEW_S + 1)

/* By which a token of ours may be ahead of the clock (first_second in keyring.c). One that is of later still was issued while the
 * clock was ahead, or the clock is behind: from then on what it says can't be held against a cut-off. So another key takes over, and
 * of those before it nothing is taken that says that it was issued later than that. */
#define KEYRING_AHEAD_S (KEYRING_SKEW_S / 2)

STATIC_ASSERT(KEYRING_TOKENS_S / KEYRING_CADENCE_MIN_S + 2 < KEYRING_OWN_MAX,
              "a key is there for as long as its tokens, and there is room for rotations by hand");
STATIC_ASSERT(SIGNING_KEY_KEPT_MIN_US / 1000000 / KEYRING_CADENCE_MIN_S < SIGNING_KEYS_MAX * 3 / 4,
              "a history has its keys");

/* One of ours that hasn't ended, as the store has it. */
struct own_key {
    struct uuid id;
    uint8_t state;
    uint64_t created_us, expires_us;
    uint64_t
        issued_s; /* the last second that a token which it has signed may say; UINT64_MAX: it is the active one */
};
/* And what keys are made of. */
struct own_row {
    struct own_key own;
    char kid[UUID_TEXT_SIZE];
    uint32_t jwk_size, sealed_size;
    char jwk[SIGNING_KEY_JWK_MAX];
    uint8_t sealed[SIGNING_KEY_SEALED_MAX];
};

/* What readers see: immutable, once it has been opened. That makes keys of the rows, for which libcrypto is needed: it is done
 * by the first one who reads, unless it is there already. */
struct key_table {
    struct key_table *next; /* of those that wait for their last reader */
    _Atomic bool opened;
    uint32_t rows_count; /* of ours, owned, until it is opened */
    struct own_row *rows;
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
    pthread_mutex_t lock;  /* of whoever loads libcrypto or opens a table */
    _Atomic bool prepared; /* libcrypto is there, and the readers' hashers */
    struct vault vault;
    bool vault_made; /* at this start: what is in the store was sealed by another one */
    const char *issuers[3], *audiences[2];
    struct jwt_policy policy;
    struct token_cache *cache;
    struct blocklist *blocklist;
    _Atomic bool loaded;        /* the store's keys and revocations are known */
    _Atomic bool wanted;        /* a kid that nobody knows came from the sets' issuer */
    _Atomic bool signless;      /* there was a key, and it can't be opened */
    _Atomic uint64_t set_at_ns; /* when another issuer's keys last came: of the set that is older; 0: never */
    _Atomic uint64_t newest_s;  /* the greatest iat of ours, or later: the clock may have gone back since */
    _Atomic uint64_t generation; /* raised behind each change of the table */
    struct key_table *_Atomic table;
    struct key_reader readers[KEYRING_READERS];
    struct key_table *retired; /* this and what follows: the actor's */
    struct key_set sets[SET_COUNT];
};

/* From the first token on: libcrypto, and what hashes tokens with it. False: it can't be loaded, and a sentence.
 * Any thread. */
bool keyring_prepare(struct keyring *keyring, char *ret_why, size_t why_size);

/* Between these two, guarded: the table stays. It has been opened, unless libcrypto can't be loaded. */
struct key_table *keyring_read_begin(struct keyring *keyring);
void keyring_read_end(struct keyring *keyring);

/* Of a subject's tokens that are ended now: none that was issued is of a later second, but for those of a clock that was ahead, which
 * the next tick ends. Not further ahead than first_second can give. */
uint64_t keyring_cut_off_s(const struct keyring *keyring);

/* By the actor, guarded. Takes the table over. */
void keyring_publish(struct keyring *keyring, struct key_table *table);
/* Frees what nobody reads any more. */
void keyring_reclaim(struct keyring *keyring);

/* http/key_table.c, guarded. A table of rows, with the keys of the sets behind them, is published unless there is no memory. It
 * is opened at once when that costs little, or when something is waiting to be found out. `nodes`: KEYRING_SET_NODES. */
bool key_table_make(struct keyring *k, const struct own_row *rows, uint32_t count, struct json_node *nodes);
void key_table_open(struct keyring *k, struct key_table *table); /* no effect without libcrypto */
void key_table_free(struct key_table *table);
/* Adds what can be used to the table, *ret_good keys; *ret_why: why the last one that can't, can't. False: it is no key set. One
 * without keys is: its issuer has withdrawn them all. */
bool key_table_add_set(struct key_table *table, const char *issuer, struct span text, struct json_node *nodes,
                       uint32_t *ret_good, char *ret_why, size_t why_size);
/* A file of keys, of KEYRING_SET_BYTES_MAX bytes at most; guarded, in an actor. False: errno. */
bool key_set_read(const char *path, char *text, size_t *ret_size, struct timespec *ret_modified);
/* What the secret of one of our keys is sealed under. */
struct span keyring_sealed_name(char name[128], const struct keyring *k, const char *kid);

/* The stops of a token of which these are the words. */
void keyring_stops(const struct keyring *keyring, const struct jwt *jwt,
                   struct blocklist_id ret_stops[TOKEN_CACHE_STOPS]);

#endif
