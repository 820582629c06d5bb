/* Principals: services and agents that ask for tokens by themselves, with a secret of their own.
 *
 * An operator makes one, with the role and the projects that its tokens may have. Its name is the sub of those tokens. The
 * store has the secret's hash; who lost a secret gets another one, and the one before is good for nothing. One that is
 * removed has no row: that it was there says the audit log, which each of these commands adds to in the same commit.
 *
 * What tokens a principal has is not known here. Another secret, and the end, end all that were issued by then: the
 * revocation of the subject (store/revocation.h) is written in the same commit, so that no death in between leaves the one
 * without the other.
 */
#ifndef COPPICE_STORE_PRINCIPAL_H
#define COPPICE_STORE_PRINCIPAL_H

#include "store/revocation.h"

#define PRINCIPALS_MAX         16384u /* rows; more are refused. At most 5 KiB each: 80 MiB */
#define PRINCIPAL_NAME_MAX     112u   /* a name is who did it in an audit entry: AUDIT_WHO_MAX */
#define PRINCIPAL_ROLE_MAX     32u
#define PRINCIPAL_PROJECTS_MAX 4127u /* 32 names of 128 bytes with spaces between them: 32 * 129 - 1 */
#define PRINCIPAL_TEMPLATE_MAX 64u

/* Key: the name. */
#define PRINCIPAL_FIELDS(X)                                                                             \
    X(name, TEXT, PRINCIPAL_NAME_MAX, 1)                                                                \
    X(hash, DIGEST, 0, 1) /* of the secret */                                                           \
    X(role, TEXT, PRINCIPAL_ROLE_MAX, 1)                                                                \
    X(projects, TEXT, PRINCIPAL_PROJECTS_MAX, 1)       /* with spaces between them; "*": all */         \
    X(agent_template, TEXT, PRINCIPAL_TEMPLATE_MAX, 1) /* of an agent, or empty */                      \
    X(tier, TEXT, 1, 1)                                /* of an agent: A, B, C; empty: not one alone */ \
    X(created_us, TIME, 0, 1)                                                                           \
    X(created_by, TEXT, AUDIT_WHO_MAX, 1)                                                               \
    X(rotated_us, TIME, 0, 1) /* when the secret was made */
RECORD_STRUCT(principal, PRINCIPAL_FIELDS);

/* What is done: a new one (ERR_EXISTS, ERR_LIMIT), or another secret for one that is there (ERR_NOT_FOUND; of the command
 * only hash counts). */
enum principal_verb { PRINCIPAL_CREATE, PRINCIPAL_ROTATE, PRINCIPAL_VERB_COUNT };

/* Code 140; no answer. ERR_INVALID: no such verb, no name, role or projects; and the errors of audit_note and of
 * revocation.put: nothing is written. */
#define PRINCIPAL_PUT_FIELDS(X)                                                                           \
    X(verb, U8, 0, 1)                                                                                     \
    X(name, TEXT, PRINCIPAL_NAME_MAX, 1)                                                                  \
    X(hash, DIGEST, 0, 1)                                                                                 \
    X(role, TEXT, PRINCIPAL_ROLE_MAX, 1)                                                                  \
    X(projects, TEXT, PRINCIPAL_PROJECTS_MAX, 1)                                                          \
    X(agent_template, TEXT, PRINCIPAL_TEMPLATE_MAX, 1)                                                    \
    X(tier, TEXT, 1, 1)                                                                                   \
    X(audit, UUID, 0, 1)                                                                                  \
    X(who, TEXT, AUDIT_WHO_MAX, 1)                                                                        \
    X(reason, TEXT, 512, 1)                                                                               \
    X(request_id, TEXT, 128, 1)                                                                           \
    X(tokens_us, U64, 0, 2)   /* of another secret: how long a token of now may live; 0: none is ended */ \
    X(cut_off_us, TIME, 0, 2) /* as of revocation.put */
RECORD_STRUCT(principal_put, PRINCIPAL_PUT_FIELDS);
extern const struct command_class principal_put_class;

/* Code 141; no answer. ERR_NOT_FOUND, and revocation.put's ERR_LIMIT: nothing is written. Goes on without an audit entry when
 * there is no room for one, as the end of an API key does; and while the disk is full. */
#define PRINCIPAL_REMOVE_FIELDS(X)       \
    X(name, TEXT, PRINCIPAL_NAME_MAX, 1) \
    X(audit, UUID, 0, 1)                 \
    X(who, TEXT, AUDIT_WHO_MAX, 1)       \
    X(reason, TEXT, 512, 1)              \
    X(request_id, TEXT, 128, 1)          \
    X(tokens_us, U64, 0, 2)              \
    X(cut_off_us, TIME, 0, 2)
RECORD_STRUCT(principal_remove, PRINCIPAL_REMOVE_FIELDS);
extern const struct command_class principal_remove_class;

/* By its name; ERR_NOT_FOUND. Its spans borrow from the transaction. */
enum error principal_read(struct txn *txn, struct span name, struct principal *ret_principal);

#endif
