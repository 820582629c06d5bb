/* An attempt: one command that a lane of kill9 tries, and what it heard.
 *
 * It lies in memory that the process which is killed shares with those that look afterwards: it is written there before
 * the store is asked, and its answer before anything follows from it. The same attempt always makes the same request.
 */
#ifndef COPPICE_CHAOS_KILL9_ATTEMPT_H
#define COPPICE_CHAOS_KILL9_ATTEMPT_H

#include "chaos/kill9_names.h"
#include "store/api_key.h"
#include "store/audit.h"
#include "store/outbox.h"
#include "store/retention.h"
#include "store/seen_token.h"
#include "tests/support/parcel.h"

/* Each is about one parcel, or about what has its number; but for claim, which is about a partition, and sweep, which is
 * about all that the keeper owns. */
#define ATTEMPTS_KINDS(X)                                                         \
    X(SEND, "send")                                                               \
    X(MOVE, "move")                                                               \
    X(DROP, "drop")                                                               \
    X(CLAIM, "claim")                                                             \
    X(MARK, "mark")                                                               \
    X(DEFER, "defer")                                                             \
    X(BURY, "bury")                                                               \
    X(USE, "use")       /* of a token: its first use is written, then a replay */ \
    X(ENROL, "enrol")   /* of a client: once */                                   \
    X(NOTE, "note")     /* an audit entry about it: once */                       \
    X(ISSUE, "issue")   /* a key of its client, in any of the ways there are */   \
    X(REVOKE, "revoke") /* a key of its client */                                 \
    X(TOUCH, "touch")   /* all keys of its client were used */                    \
    X(SWEEP, "sweep")   /* by retention: the keeper's parcels and keys that are over */
enum attempt_kind {
#define X(id, name) id,
    ATTEMPTS_KINDS(X)
#undef X
};
const char *attempt_kind_name(uint8_t kind);

enum attempt_stage { UNMADE, MADE, ANSWERED };

#define ATTEMPT_ANSWER_MAX API_KEY_ISSUED_SIZE

struct attempt {
    uint8_t kind, event; /* event: of a move, or which row of a parcel is marked (0..STEPS-1) */
    uint8_t owner;       /* whose parcel: a lane, or CROWD */
    uint8_t variant;     /* of the request, for the digest */
    uint16_t parcel, partition;
    uint32_t size, key; /* key 0: without one */
    uint32_t batch;     /* 0: nobody knows which */
    uint32_t limit;     /* of a sweep */
    bool stale;         /* under an older fence */
    bool spent;         /* a key whose time is over when it is made */
    bool fleeting;      /* what ends now goes with the next sweep, not after 90 days */
    bool noted;         /* with an audit entry */
    uint8_t slot, verb; /* of a key */
    uint8_t caller;     /* 1 and the slot of the key that asks; 0: none */
    uint64_t seq, fence;
    uint64_t due_us; /* of a parcel; until when a sweep goes; by when a key was used */
    uint64_t at_us;  /* 0: nobody knows; the writer's clock is its own */

    _Atomic uint8_t stage; /* enum attempt_stage */
    uint8_t error;
    uint8_t answer_size;
    uint8_t answer[ATTEMPT_ANSWER_MAX];
};

/* What it asks of the store; `command` borrows from the rest. */
struct request {
    const struct command_class *class;
    char key[NAMES_SIZE];
    uint8_t uses[SLOTS * API_KEY_TOUCH_SIZE];
    union {
        struct parcel_send send;
        struct parcel_move move;
        struct parcel_drop drop;
        struct outbox_claim_command claim;
        struct outbox_mark_command mark;
        struct outbox_defer_command defer;
        struct outbox_bury_command bury;
        struct seen_token_put use;
        struct client_create enrol;
        struct audit_append note;
        struct api_key_issue issue;
        struct api_key_revoke revoke;
        struct api_key_touch touch;
        struct retention_sweep sweep;
    } command;
};
void attempt_request(const struct attempt *a, struct request *ret_request);

#define ATTEMPT_TOKEN_EXPIRES_US UINT64_C(4000000000000000)
#define ATTEMPT_KEY_TTL_US       (UINT64_C(365) * 86400 * 1000000)
#define ATTEMPT_KEY_KEPT_US      (UINT64_C(90) * 86400 * 1000000)

/* Text of the key of an issue in the ledger, and the scope it stands in. */
struct span attempt_issue_key(uint32_t slot, char text[NAMES_SIZE]);
#define ATTEMPT_SCOPE_SIZE 64u
struct span attempt_issue_scope(const struct uuid *client, char text[ATTEMPT_SCOPE_SIZE]);

/* It has no answer, or one that says that nobody knows. */
bool attempt_open(const struct attempt *a);
/* About a row of the outbox. */
bool attempt_on_row(const struct attempt *a);
/* Refusals that say nothing about the command: the store had no room for it. */
bool attempt_turned_away(enum error e);
/* Nobody knows whether it was done. */
bool attempt_open_ended(enum error e);

#endif
