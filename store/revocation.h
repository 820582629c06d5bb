/* Revocations: tokens that aren't taken any more, by their jti, their kid, their session or their subject.
 *
 * Of a subject those tokens are meant that were issued up to the revocation; of a jti, a kid and a session all. A row is
 * kept until the tokens it concerns have expired by themselves, which the caller says; one of a foreign key is kept for
 * ever. The same thing again moves the row on, and never shortens it. An audit entry comes with each.
 */
#ifndef COPPICE_STORE_REVOCATION_H
#define COPPICE_STORE_REVOCATION_H

#include "store/audit.h"

#define REVOCATIONS_MAX       262144u /* rows; more are refused. In memory each takes 32 bytes, twice */
#define REVOCATION_ISSUER_MAX 256u
#define REVOCATION_VALUE_MAX  128u

/* X(ID, "name"). Numbers are stored. */
#define REVOCATION_KINDS(X)          \
    X(REVOCATION_TOKEN, "token")     \
    X(REVOCATION_KEY, "key")         \
    X(REVOCATION_SESSION, "session") \
    X(REVOCATION_SUBJECT, "subject")
enum revocation_kind {
#define X(id, name) id,
    REVOCATION_KINDS(X)
#undef X
        REVOCATION_KIND_COUNT
};
const char *revocation_kind_name(uint8_t kind); /* NULL: there is none */

/* Key: the named id of kind, issuer and value. */
#define REVOCATION_FIELDS(X)                                                          \
    X(id, UUID, 0, 1)                                                                 \
    X(kind, U8, 0, 1)                                                                 \
    X(issuer, TEXT, REVOCATION_ISSUER_MAX, 1) /* empty: of any */                     \
    X(value, TEXT, REVOCATION_VALUE_MAX, 1)                                           \
    X(revoked_us, TIME, 0, 1) /* the cut-off: later tokens of the subject are good */ \
    X(expires_us, TIME, 0, 1) /* 0: never */                                          \
    X(who, TEXT, AUDIT_WHO_MAX, 1)                                                    \
    X(reason, TEXT, 512, 1)
RECORD_STRUCT(revocation, REVOCATION_FIELDS);

/* Code 113; answer: the id, 16 bytes. ERR_INVALID: no such kind, no value, over already; ERR_LIMIT: REVOCATIONS_MAX. */
#define REVOCATION_PUT_FIELDS(X)                                       \
    X(kind, U8, 0, 1)                                                  \
    X(issuer, TEXT, REVOCATION_ISSUER_MAX, 1)                          \
    X(value, TEXT, REVOCATION_VALUE_MAX, 1)                            \
    X(expires_us, TIME, 0, 1)                                          \
    X(cut_off_us, TIME, 0, 1) /* no earlier than this, and than now */ \
    X(audit, UUID, 0, 1)                                               \
    X(who, TEXT, AUDIT_WHO_MAX, 1)                                     \
    X(reason, TEXT, 512, 1)                                            \
    X(request_id, TEXT, 128, 1)
RECORD_STRUCT(revocation_put, REVOCATION_PUT_FIELDS);
extern const struct command_class revocation_put_class;

/* Within another command, which says so in the audit log by itself: the plan reads alone and refuses as above; keeping it
 * writes, whatever has been written in between. Its spans borrow from the command. */
struct revocation_plan {
    struct revocation row;
    uint64_t
        before_us; /* when the row that is there would have expired; 0: there is none, or it never does */
};
enum error revocation_plan(struct txn *txn, uint64_t at_us, const struct revocation_put *c,
                           struct revocation_plan *ret_plan);
void revocation_keep(struct txn *txn, const struct revocation_plan *plan);

/* ERR_NOT_FOUND. Its spans borrow from the transaction. */
enum error revocation_read(struct txn *txn, enum revocation_kind kind, struct span issuer, struct span value,
                           struct revocation *ret_revocation);

/* For retention. */
enum error revocation_expire(struct txn *txn, const struct due_entry *entry);
enum error revocation_find_due(struct txn *txn, const struct due_entry *entry);

#endif
