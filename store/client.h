/* Clients: who may have an API key. A client is an id and when it came; it never changes, its keys are records of
 * their own (store/api_key.h).
 *
 * Anybody may make one, so one that never had a key is removed after CLIENT_UNUSED_US. One that had is kept, also when all
 * of its keys have gone: what it did goes by its id, and an operator can give it a key again. So there may be CLIENTS_MAX
 * of them. The id is all chance (UUIDv4): whoever knows it may fetch the first key.
 */
#ifndef COPPICE_STORE_CLIENT_H
#define COPPICE_STORE_CLIENT_H

#include "store/due.h"

#define CLIENT_UNUSED_US (UINT64_C(86400) * 1000000)
#define CLIENTS_MAX      4194304 /* with what belongs to one for good, 2 rows of about 130 bytes in all: 0.6 GiB */
#define CLIENT_FROM_MAX  64u /* with "client.create/" in front it is a scope of the ledger */

/* Key: id. */
#define CLIENT_FIELDS(X) X(id, UUID, 0, 1) X(created_us, TIME, 0, 1)
RECORD_STRUCT(client, CLIENT_FIELDS);

/* Key: the client's id; there once it has had a key. `active`: the one key that may be good (it can be over its time);
 * all zero: none. `issued`: how many there ever were. */
#define CLIENT_KEYS_FIELDS(X)                                                                          \
    X(active, UUID, 0, 1)                                                                              \
    X(issued, U64, 0, 1)                                                                               \
    X(quota_since_us, TIME, 0, 2) /* store/client_quota.h; 0: there was no request that was counted */ \
    X(quota_used, U64, 0, 2)
RECORD_STRUCT(client_keys, CLIENT_KEYS_FIELDS);

#define CLIENT_CREATE_FIELDS(X)                                                      \
    X(id, UUID, 0, 1)                                                                \
    X(key, TEXT, 255, 1)              /* idempotency, of this caller; empty: none */ \
    X(from, TEXT, CLIENT_FROM_MAX, 1) /* the caller: its address */
RECORD_STRUCT(client_create, CLIENT_CREATE_FIELDS);
/* Code 100; answer: the client's id, 16 bytes; with the same key from the same caller within a day the first one's.
 * ERR_EXISTS: the id is taken; ERR_INVALID: no id; ERR_LIMIT: CLIENTS_MAX, or the ledger is full. */
extern const struct command_class client_create_class;

/* OK, ERR_NOT_FOUND, ERR_DAMAGED, ... */
enum error client_read(struct txn *txn, const struct uuid *id, struct client *ret_client);
/* All zero when the client never had a key. */
enum error client_read_keys(struct txn *txn, const struct uuid *id, struct client_keys *ret_keys);

/* For retention: never had a key, and its day is over. */
enum error client_expire(struct txn *txn, const struct due_entry *entry);
enum error client_find_due(struct txn *txn, const struct due_entry *entry);

#endif
