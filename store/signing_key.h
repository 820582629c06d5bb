/* Signing keys of the built-in issuer: the public half as JWK, the private one sealed, and what became of each.
 *
 *     (none) ── rotate ──> active ── rotate ──> retiring ── remove ──> removed
 *                            └───── revoke ─────> revoked <── revoke ──┘ (of retiring)
 *
 * An environment ("dev", "stage", "prod") has at most one active key. The key's id as text is its kid. A key that
 * retires is still published and verified with until expires_us; its private half is gone from the row at once, as it is
 * with every end. Ended keys stay for the forensic window (at least SIGNING_KEY_KEPT_MIN_US) and are removed by
 * retention. Every change but the planned removal leaves an audit entry in the same commit.
 *
 * What the private half is sealed with isn't in the store (http/vault.h): nothing here can open it.
 */
#ifndef COPPICE_STORE_SIGNING_KEY_H
#define COPPICE_STORE_SIGNING_KEY_H

#include "store/audit.h"
#include "store/lifecycle.h"

#define SIGNING_KEY_DAY_US      (UINT64_C(86400) * 1000000)
#define SIGNING_KEY_KEPT_MIN_US (90 * SIGNING_KEY_DAY_US)
#define SIGNING_KEYS_MAX        4096u /* rows, ended ones included: 400 days of 10 a day */

#define SIGNING_KEY_STATES(X)                             \
    X(SIGNING_KEY_ACTIVE, "active", 0)                    \
    X(SIGNING_KEY_RETIRING, "retiring", 0)                \
    X(SIGNING_KEY_REVOKED, "revoked", LIFECYCLE_TERMINAL) \
    X(SIGNING_KEY_REMOVED, "removed", LIFECYCLE_TERMINAL)
enum signing_key_state {
#define X(id, name, flags) id,
    SIGNING_KEY_STATES(X)
#undef X
        SIGNING_KEY_STATE_COUNT
};
#define SIGNING_KEY_EVENTS(X)       \
    X(SIGNING_KEY_ROTATE, "rotate") \
    X(SIGNING_KEY_REVOKE, "revoke") \
    X(SIGNING_KEY_REMOVE, "remove")
enum signing_key_event {
#define X(id, name) id,
    SIGNING_KEY_EVENTS(X)
#undef X
        SIGNING_KEY_EVENT_COUNT
};
extern const struct lifecycle signing_key_lifecycle;

#define SIGNING_KEY_JWK_MAX    1024u
#define SIGNING_KEY_SEALED_MAX 256u
#define SIGNING_KEY_REASON_MAX 512u

#define SIGNING_KEY_FIELDS(X)                                                            \
    X(id, UUID, 0, 1)                                                                    \
    X(state, U8, 0, 1)                                                                   \
    X(algorithm, TEXT, 16, 1)                                                            \
    X(environment, TEXT, 16, 1)                                                          \
    X(created_us, TIME, 0, 1)                                                            \
    X(created_by, TEXT, AUDIT_WHO_MAX, 1)                                                \
    X(rotated_us, TIME, 0, 1) /* when it began to retire */                              \
    X(expires_us, TIME, 0, 1) /* of a retiring one: nothing is verified with it after */ \
    X(ended_us, TIME, 0, 1)   /* revoked or removed */                                   \
    X(ended_by, TEXT, AUDIT_WHO_MAX, 1)                                                  \
    X(ended_for, TEXT, SIGNING_KEY_REASON_MAX, 1)                                        \
    X(kept_until_us, TIME, 0, 1) /* of an ended one: retention takes it then */          \
    X(public_jwk, JSON, SIGNING_KEY_JWK_MAX, 1)                                          \
    X(sealed, BYTES, SIGNING_KEY_SEALED_MAX, 1)
RECORD_STRUCT(signing_key, SIGNING_KEY_FIELDS);

/* A new active key. previous: the active one, which retires; all zero: there is none. first: and never was one (the
 * bootstrap, which is audited as SEV1 key.bootstrapped; else key.rotated). ERR_EXISTS: the id is taken, or first and
 * there are keys of this environment; ERR_CONFLICT: another one is active; ERR_NOT_FOUND, ERR_TRANSITION: previous isn't
 * there, isn't active; ERR_LIMIT: SIGNING_KEYS_MAX; ERR_INVALID. Code 110. */
#define SIGNING_KEY_ROTATE_FIELDS(X)            \
    X(id, UUID, 0, 1)                           \
    X(previous, UUID, 0, 1)                     \
    X(first, U8, 0, 1)                          \
    X(algorithm, TEXT, 16, 1)                   \
    X(environment, TEXT, 16, 1)                 \
    X(public_jwk, JSON, SIGNING_KEY_JWK_MAX, 1) \
    X(sealed, BYTES, SIGNING_KEY_SEALED_MAX, 1) \
    X(overlap_us, U64, 0, 1)                    \
    X(audit, UUID, 0, 1)                        \
    X(who, TEXT, AUDIT_WHO_MAX, 1)              \
    X(reason, TEXT, SIGNING_KEY_REASON_MAX, 1)  \
    X(request_id, TEXT, 128, 1)
RECORD_STRUCT(signing_key_rotate, SIGNING_KEY_ROTATE_FIELDS);
/* The emergency: nothing is verified with it from now on. ERR_NOT_FOUND, ERR_TRANSITION, ERR_LIMIT, ERR_INVALID (kept for
 * less than SIGNING_KEY_KEPT_MIN_US). Audited as SEV1 key.revoked. Code 111. */
#define SIGNING_KEY_REVOKE_FIELDS(X)           \
    X(id, UUID, 0, 1)                          \
    X(kept_us, U64, 0, 1)                      \
    X(audit, UUID, 0, 1)                       \
    X(who, TEXT, AUDIT_WHO_MAX, 1)             \
    X(reason, TEXT, SIGNING_KEY_REASON_MAX, 1) \
    X(request_id, TEXT, 128, 1)
RECORD_STRUCT(signing_key_revoke, SIGNING_KEY_REVOKE_FIELDS);
/* The end of a retiring key at its time. ERR_CONFLICT: before it; the others as above. Code 112. */
#define SIGNING_KEY_REMOVE_FIELDS(X) X(id, UUID, 0, 1) X(kept_us, U64, 0, 1)
RECORD_STRUCT(signing_key_remove, SIGNING_KEY_REMOVE_FIELDS);
extern const struct command_class signing_key_rotate_class, signing_key_revoke_class,
    signing_key_remove_class;

/* For retention. */
enum error signing_key_expire(struct txn *txn, const struct due_entry *entry);
enum error signing_key_find_due(struct txn *txn, const struct due_entry *entry);

#endif
