/* Audit entries: who did what to the server, when, why and how it ended. Kept AUDIT_KEPT_DAYS.
 *
 * Appended by the one command audit.append, together with an event in the entry's stream. Nobody is told of one: whoever wants
 * to know looks (AMB-62), so there is no row in the outbox, where it would be in the way of those that somebody takes out. An
 * earlier version put one for each, and the sweep takes those away. The same request with the same idempotency key is answered
 * again and adds nothing for a day; the key is the caller's own (who), and id and request_id may differ: they are new with each try.
 */
#ifndef COPPICE_STORE_AUDIT_H
#define COPPICE_STORE_AUDIT_H

#include "store/due.h"

#define AUDIT_KEPT_DAYS 400u
#define AUDIT_KEPT_US   (AUDIT_KEPT_DAYS * UINT64_C(86400) * 1000000)
#define AUDITS_MAX      8000000u /* rows; with their events and timers about 4 GiB */
#define AUDIT_WHO_MAX   112u     /* with "audit.append/" in front it is a scope of the ledger */

/* Its event: the stream is the entry's own, the only event says that it is there. Nothing in an entry ever changes,
 * so whoever is told reads the entry. */
#define AUDIT_DOMAIN   1u
#define AUDIT_APPENDED 1u /* the event's name */
#define AUDIT_TOPIC    1u /* of the outbox row that an earlier version put */

#define AUDIT_FIELDS(X)                           \
    X(id, UUID, 0, 1)                             \
    X(at_us, TIME, 0, 1)                          \
    X(who, TEXT, AUDIT_WHO_MAX, 1)                \
    X(verb, TEXT, 64, 1)    /* "actor.kill" */    \
    X(target, TEXT, 256, 1) /* its name or pid */ \
    X(reason, TEXT, 512, 1)                       \
    X(outcome, TEXT, 64, 1)                       \
    X(request_id, TEXT, 128, 1)                   \
    X(details, JSON, 16384, 1)
RECORD_STRUCT(audit, AUDIT_FIELDS);

#define AUDIT_APPEND_FIELDS(X)                          \
    X(id, UUID, 0, 1)                                   \
    X(key, TEXT, 255, 1) /* idempotency; empty: none */ \
    X(who, TEXT, AUDIT_WHO_MAX, 1)                      \
    X(verb, TEXT, 64, 1)                                \
    X(target, TEXT, 256, 1)                             \
    X(reason, TEXT, 512, 1)                             \
    X(outcome, TEXT, 64, 1)                             \
    X(request_id, TEXT, 128, 1)                         \
    X(details, JSON, 16384, 1)
RECORD_STRUCT(audit_append, AUDIT_APPEND_FIELDS);
/* Code 30; answer: the entry's id, 16 bytes. ERR_EXISTS: the id is taken; ERR_INVALID: no id or no verb; ERR_KEY_REUSED;
 * ERR_LIMIT: there are store->audits_max, or the ledger is full. */
extern const struct command_class audit_append_class;
/* Within another command: the entry with its event, in the same commit. Refuses as above and has written nothing then; c->key isn't
 * looked at. What was read before is gone when it returns OK. */
enum error audit_note(struct txn *txn, uint64_t at_us, const struct audit_append *c);
/* The same, by what must not be refused for want of a note of it, such as taking from somebody what he has: OK without one as well
 * when there are so many, or what it would stand beside is damaged. */
enum error audit_note_if_possible(struct txn *txn, uint64_t at_us, const struct audit_append *c);

/* For retention: the entry's time is over. The outbox row of an earlier version goes with it, if it is still there. */
enum error audit_expire(struct txn *txn, const struct due_entry *entry);
enum error audit_find_due(struct txn *txn, const struct due_entry *entry);
/* For the sweep: looks at the first `limit` rows of each partition of the outbox, and takes away those of an earlier version; *ret_more:
 * there may be more of them. What can't be read is left, for check to tell of. */
void audit_clear_outbox(struct txn *txn, uint32_t limit, bool *ret_more);

#endif
