/* Seen tokens: which token came with a (issuer, jti) for the first time, until it expires.
 *
 * The same complete token again is its reuse; another one with the same (issuer, jti) is a replay (AMB-16). One commit
 * per token, at its first use, which shares a batch with whatever else is written.
 */
#ifndef COPPICE_STORE_SEEN_TOKEN_H
#define COPPICE_STORE_SEEN_TOKEN_H

#include "store/due.h"

#define SEEN_TOKENS_MAX 4194304u /* rows of about 300 bytes: 1.2 GiB; more are refused */

/* Key: the named id of issuer and jti. */
#define SEEN_TOKEN_FIELDS(X)                                 \
    X(id, UUID, 0, 1)                                        \
    X(issuer, TEXT, 256, 1)                                  \
    X(jti, TEXT, 128, 1)                                     \
    X(digest, DIGEST, 0, 1) /* SHA-256 of the whole token */ \
    X(subject, TEXT, 128, 1)                                 \
    X(session, TEXT, 128, 1)                                 \
    X(first_us, TIME, 0, 1)                                  \
    X(expires_us, TIME, 0, 1)
RECORD_STRUCT(seen_token, SEEN_TOKEN_FIELDS);

/* Code 114. OK: the first use, or the same token again. ERR_CONFLICT: another token has this (issuer, jti), or single_use
 * and it isn't the first use: a replay. ERR_EXPIRED: its time is over; ERR_LIMIT: SEEN_TOKENS_MAX; ERR_INVALID. */
#define SEEN_TOKEN_PUT_FIELDS(X) \
    X(issuer, TEXT, 256, 1)      \
    X(jti, TEXT, 128, 1)         \
    X(digest, DIGEST, 0, 1)      \
    X(subject, TEXT, 128, 1)     \
    X(session, TEXT, 128, 1)     \
    X(expires_us, TIME, 0, 1)    \
    X(single_use, U8, 0, 1)
RECORD_STRUCT(seen_token_put, SEEN_TOKEN_PUT_FIELDS);
extern const struct command_class seen_token_put_class;

/* By readers: its row's key. */
struct uuid seen_token_id(const struct store *store, struct span issuer, struct span jti);

/* For retention. */
enum error seen_token_expire(struct txn *txn, const struct due_entry *entry);
enum error seen_token_find_due(struct txn *txn, const struct due_entry *entry);

#endif
