/* API keys: what a client shows to be let in. A row holds a hash of the key, never the key.
 *
 * The key itself is 256 bits of chance, made and hashed by whoever submits api_key.issue (http/api_key_auth.h); so one
 * plain SHA-256 with the store's secret as salt is enough: there is no dictionary to try, and a hash for passwords,
 * slow on purpose, would be a way to keep the server busy.
 *
 * A client has at most one active key. Issuing another one ends it in the same commit; what is ended stays for
 * kept_us (the audit: who made it, who ended it, when and why), and one whose time is over is treated as ended then.
 * Every change says by which key it was asked for (`caller`); when that one has been ended meanwhile, somebody else was
 * faster and the command is refused with ERR_CONFLICT. So of two simultaneous rotations exactly one succeeds.
 *
 * With `audit` given, a change leaves an audit entry in the same commit, unless there is no room for one, or what it would
 * stand beside is damaged: the key's own row says the same, and a revocation must not wait for that.
 *
 * The ledger keeps of an issued key what may be told again: id and times, never the key.
 */
#ifndef COPPICE_STORE_API_KEY_H
#define COPPICE_STORE_API_KEY_H

#include "store/client.h"

/* Of one client, ended ones included, since those are the audit. Beyond the first a client's own requests are refused with
 * ERR_LIMIT; an operator's aren't before the second, so that whoever has used up his own can be helped. */
#define API_KEYS_KEPT_MAX   1000u
#define API_KEYS_FORCED_MAX 2000u
#define API_KEY_BY_MAX      96u /* "client", "key 0190...", "operator" */

/* X(ID, "name"). Numbers are stored. */
#define API_KEY_ENDS(X)           \
    X(API_KEY_NOT_ENDED, "")      \
    X(API_KEY_REVOKED, "revoked") \
    X(API_KEY_ROTATED, "rotated") \
    X(API_KEY_RENEWED, "renewed")
enum api_key_end {
#define X(id, name) id,
    API_KEY_ENDS(X)
#undef X
        API_KEY_END_COUNT
};
const char *api_key_end_name(uint8_t end); /* "" for none and unknown ones */

/* Key: id. */
#define API_KEY_FIELDS(X)                                       \
    X(id, UUID, 0, 1)                                           \
    X(client, UUID, 0, 1)                                       \
    X(hash, DIGEST, 0, 1)                                       \
    X(created_us, TIME, 0, 1)                                   \
    X(expires_us, TIME, 0, 1)                                   \
    X(ended_us, TIME, 0, 1) /* 0: active */                     \
    X(gone_us, TIME, 0, 1)  /* when the row goes */             \
    X(used_us, TIME, 0, 1)  /* last; to the minute; 0: never */ \
    X(end, U8, 0, 1)        /* enum api_key_end */              \
    X(created_by, TEXT, API_KEY_BY_MAX, 1)                      \
    X(ended_by, TEXT, API_KEY_BY_MAX, 1)
RECORD_STRUCT(api_key, API_KEY_FIELDS);

/* Key: the hash. */
#define API_KEY_HASH_FIELDS(X) X(id, UUID, 0, 1)
RECORD_STRUCT(api_key_hash, API_KEY_HASH_FIELDS);

/* Why a key is issued. */
enum api_key_verb {
    API_KEY_CREATE, /* unless there is an active one: then that is the answer */
    API_KEY_ROTATE, /* whether or not there is an active one */
    API_KEY_RENEW,  /* there must be an active one */
    API_KEY_FORCE,  /* as ROTATE, for operators: needs no caller */
    API_KEY_VERB_COUNT
};

#define API_KEY_ISSUE_FIELDS(X)                                                                         \
    X(client, UUID, 0, 1)                                                                               \
    X(id, UUID, 0, 1)                                                                                   \
    X(hash, DIGEST, 0, 1)                                                                               \
    X(verb, U8, 0, 1)                                                                                   \
    X(caller, UUID, 0, 1)   /* the key that asks; all zero: none, good for the first key of a client */ \
    X(window_us, U64, 0, 1) /* for how long after the client's creation that is */                      \
    X(ttl_us, U64, 0, 1)                                                                                \
    X(kept_us, U64, 0, 1)                                                                               \
    X(by, TEXT, API_KEY_BY_MAX, 1)                                                                      \
    X(key, TEXT, 255, 1)    /* idempotency, of this client; empty: none */                              \
    X(digest, DIGEST, 0, 1) /* of the request, for the ledger */                                        \
    X(audit, UUID, 0, 1)    /* of the audit entry; all zero: none */                                    \
    X(request_id, TEXT, 128, 1)                                                                         \
    X(reason, TEXT, 512, 2) /* for that entry */
RECORD_STRUCT(api_key_issue, API_KEY_ISSUE_FIELDS);
/* Code 101; answer: a struct api_key_issued, encoded.
 * ERR_NOT_FOUND   no such client
 * ERR_TOKEN       without a caller, and the client had a key before or its time for the first one is over
 * ERR_EXPIRED     the caller's time is over
 * ERR_CONFLICT    the caller was ended meanwhile, or there is nothing to renew
 * ERR_EXISTS      id or hash are taken
 * ERR_LIMIT       too many keys of this client are kept, or the ledger is full
 * ERR_KEY_REUSED, ERR_INVALID */
extern const struct command_class api_key_issue_class;

/* made: 1: the key that came with the command is now the client's; 0: told again. ended: the hash of the key that
 * was ended by this, all zero: none. */
#define API_KEY_ISSUED_FIELDS(X) \
    X(id, UUID, 0, 1)            \
    X(created_us, TIME, 0, 1)    \
    X(expires_us, TIME, 0, 1)    \
    X(made, U8, 0, 1)            \
    X(ended, DIGEST, 0, 1)
RECORD_STRUCT(api_key_issued, API_KEY_ISSUED_FIELDS);
#define API_KEY_ISSUED_SIZE (16 + 8 + 8 + 1 + 32)

#define API_KEY_REVOKE_FIELDS(X)                                  \
    X(client, UUID, 0, 1)                                         \
    X(id, UUID, 0, 1)                                             \
    X(caller, UUID, 0, 1) /* all zero: an operator */             \
    X(by, TEXT, API_KEY_BY_MAX, 1)                                \
    X(kept_us, U64, 0, 1)                                         \
    X(audit, UUID, 0, 1) /* of the audit entry; all zero: none */ \
    X(request_id, TEXT, 128, 1)                                   \
    X(reason, TEXT, 512, 2) /* for that entry */
RECORD_STRUCT(api_key_revoke, API_KEY_REVOKE_FIELDS);
/* Code 102; answer: the key's hash, 32 bytes. One that was ended before: OK, and nothing is written. ERR_NOT_FOUND: the
 * client has no such key; ERR_CONFLICT, ERR_EXPIRED as above. Cleans up: a key can be revoked while the disk is full. */
extern const struct command_class api_key_revoke_class;

/* Last use: pairs of a key's id and a time (u64, little-endian); keys that have gone are passed over. A later time
 * than the command's is that, and gives way to a command of an earlier one: the clock was ahead. */
#define API_KEY_TOUCHED_MAX     256u
#define API_KEY_TOUCH_SIZE      24u
#define API_KEY_TOUCH_FIELDS(X) X(uses, BYTES, API_KEY_TOUCHED_MAX *API_KEY_TOUCH_SIZE, 1)
RECORD_STRUCT(api_key_touch, API_KEY_TOUCH_FIELDS);
extern const struct command_class api_key_touch_class; /* code 103, of low priority */

/* By its hash; ERR_NOT_FOUND. Its spans borrow from the transaction. */
enum error api_key_find(struct txn *txn, const struct digest *hash, struct api_key *ret_key);
enum error api_key_read(struct txn *txn, const struct uuid *id, struct api_key *ret_key);

enum error api_key_expire(struct txn *txn, const struct due_entry *entry);
enum error api_key_find_due(struct txn *txn, const struct due_entry *entry);

#endif
