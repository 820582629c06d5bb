/* Webhooks: the places that a client has its jobs' events sent to.
 *
 * A row says where, and which events: a bit for each name, or all of them. One client's rows stand together, at most WEBHOOKS_MAX,
 * so whoever hands an event on finds its receivers in one scan; a row of webhook_ids leads from an id to the client that it is of.
 *
 *     put --> active --disable--> disabled --enable--> active          removed: from either, for good
 *
 * A disabled one gets nothing, and what happens meanwhile isn't kept for it. It is disabled by its client, by its receiver (410), or
 * because each attempt for a time given by the setting has failed, and WEBHOOK_GIVEN_UP_MIN deliveries have been given up in that
 * time: one to whom little is sent may have had two bad moments, days apart, and nothing in between. The row says since when it has
 * been failing.
 *
 * One may have a secret of its own to be signed with. It isn't kept: it is made of the store's secret, the webhook's id and a number
 * that each rotation raises (webhook_secret); so a copy of these rows signs nothing. For WEBHOOK_OVERLAP_US after a rotation the
 * secret before it signs as well.
 */
#ifndef COPPICE_STORE_WEBHOOK_H
#define COPPICE_STORE_WEBHOOK_H

#include "store/lifecycle.h"
#include "store/txn.h"

#define WEBHOOKS_MAX \
    32u /* of one client, disabled ones included: as many rows are read for each of its events */
#define WEBHOOK_URL_MAX     2048u
#define WEBHOOK_OVERLAP_US  (UINT64_C(86400) * 1000000)
#define WEBHOOK_SECRET_SIZE 32u
#define WEBHOOK_GIVEN_UP_MIN \
    2u /* deliveries, without a success in between, before a webhook can be disabled as failing */

/* What can be subscribed to is enum job_event, a bit each (AMB-J-42). */
#define WEBHOOK_EVENTS_MAX 32u        /* bits that there are */
#define WEBHOOK_ALL        UINT32_MAX /* "*": those that are yet to come, too */
/* The bit of this name; false: there is none. "*" is none. */
bool webhook_event_named(struct span name, uint8_t *ret_bit);

/* X(ID, "name", flags). Numbers are stored. */
#define WEBHOOK_STATES(X)          \
    X(WEBHOOK_ACTIVE, "active", 0) \
    X(WEBHOOK_DISABLED, "disabled", 0)
enum webhook_state {
#define X(id, name, flags) id,
    WEBHOOK_STATES(X)
#undef X
};
#define WEBHOOK_CHANGES(X)        \
    X(WEBHOOK_DISABLE, "disable") \
    X(WEBHOOK_ENABLE, "enable")
enum webhook_change {
#define X(id, name) id,
    WEBHOOK_CHANGES(X)
#undef X
};
extern const struct lifecycle webhook_lifecycle;

/* X(ID, "name"): why it is disabled. Numbers are stored. */
#define WEBHOOK_REASONS(X)                                            \
    X(WEBHOOK_NO_REASON, "")                                          \
    X(WEBHOOK_BY_CLIENT, "client")                                    \
    X(WEBHOOK_GONE, "gone")       /* its receiver has answered 410 */ \
    X(WEBHOOK_FAILING, "failing") /* each attempt, for as long as may be */
enum webhook_reason {
#define X(id, name) id,
    WEBHOOK_REASONS(X)
#undef X
        WEBHOOK_REASON_COUNT
};
const char *webhook_reason_name(uint8_t reason); /* "" for none and unknown ones */

/* Key: client, id. */
#define WEBHOOK_FIELDS(X)                                                                   \
    X(id, UUID, 0, 1)                                                                       \
    X(client, UUID, 0, 1)                                                                   \
    X(created_us, TIME, 0, 1)                                                               \
    X(changed_us, TIME, 0, 1) /* of its state */                                            \
    X(failing_us, TIME, 0, 1) /* of the first failure since a success; 0: none */           \
    X(secret_us, TIME, 0, 1)  /* when its own secret was made */                            \
    X(secret, U32, 0, 1)      /* which of its own secrets is the newest; 0: it has none */  \
    X(events, U32, 0, 1)      /* bits; WEBHOOK_ALL */                                       \
    X(state, U8, 0, 1)                                                                      \
    X(reason, U8, 0, 1)                                                                     \
    X(url, TEXT, WEBHOOK_URL_MAX, 1)                                                        \
    X(failing_steady_us, TIME, 0, 2) /* steady time of failing_us; 0: none, or not known */ \
    X(given_up, U8, 0, 2)            /* deliveries since failing_us, up to WEBHOOK_GIVEN_UP_MIN */
RECORD_STRUCT(webhook, WEBHOOK_FIELDS);

/* Key: id. */
#define WEBHOOK_ID_FIELDS(X) X(client, UUID, 0, 1)
RECORD_STRUCT(webhook_id, WEBHOOK_ID_FIELDS);

#define WEBHOOK_PUT_FIELDS(X)                                                                  \
    X(client, UUID, 0, 1)                                                                      \
    X(id, UUID, 0, 1) /* version 7 */                                                          \
    X(events, U32, 0, 1)                                                                       \
    X(url, TEXT, WEBHOOK_URL_MAX, 1) /* as actors/callback_url.h lets it through */            \
    X(key, TEXT, 255, 1)             /* idempotency, of this client, for a day; empty: none */ \
    X(digest, DIGEST, 0, 1)          /* of the request, for the ledger */
RECORD_STRUCT(webhook_put, WEBHOOK_PUT_FIELDS);
/* Code 240; answer: a struct webhook_made, encoded: the id that came with it, or that of the request that this one repeats.
 * ERR_NOT_FOUND   no such client
 * ERR_CONFLICT    the client has one with this URL and these events
 * ERR_LIMIT       it has WEBHOOKS_MAX, or the ledger is full
 * ERR_EXISTS      the id is taken
 * ERR_KEY_REUSED, ERR_INVALID */
extern const struct command_class webhook_put_class;
#define WEBHOOK_MADE_FIELDS(X) X(id, UUID, 0, 1) X(created_us, TIME, 0, 1)
RECORD_STRUCT(webhook_made, WEBHOOK_MADE_FIELDS);
#define WEBHOOK_MADE_SIZE (16 + 8)

/* Those below: ERR_NOT_FOUND when there is none of this id, ERR_FORBIDDEN when it is another client's. */

#define WEBHOOK_REMOVE_FIELDS(X) X(client, UUID, 0, 1) X(id, UUID, 0, 1)
RECORD_STRUCT(webhook_remove, WEBHOOK_REMOVE_FIELDS);
extern const struct command_class webhook_remove_class; /* code 241; cleans up */

/* As it is already: OK, and nothing is written. */
#define WEBHOOK_SWITCH_FIELDS(X) \
    X(client, UUID, 0, 1) X(id, UUID, 0, 1) X(on, U8, 0, 1) /* 1: enable, 0: disable */
RECORD_STRUCT(webhook_switch, WEBHOOK_SWITCH_FIELDS);
extern const struct command_class webhook_switch_class; /* code 242 */

/* Its own secret anew, or its first. Answer: which (u32, little-endian). */
#define WEBHOOK_ROTATE_FIELDS(X) X(client, UUID, 0, 1) X(id, UUID, 0, 1)
RECORD_STRUCT(webhook_rotate, WEBHOOK_ROTATE_FIELDS);
extern const struct command_class webhook_rotate_class; /* code 243 */

/* ---- reading ---- */

/* ERR_NOT_FOUND: the client has none of this id. The URL borrows from the transaction. */
enum error webhook_read(struct txn *txn, const struct uuid *client, const struct uuid *id,
                        struct webhook *ret_webhook);
/* Whose it is. */
enum error webhook_owner(struct txn *txn, const struct uuid *id, struct uuid *ret_client);
/* All of a client's, oldest first; their URLs borrow from the transaction. */
enum error webhook_list(struct txn *txn, const struct uuid *client, struct webhook webhooks[WEBHOOKS_MAX],
                        uint32_t *ret_count);
/* The same, past what can't be read: ERR_DAMAGED when there is such a one, and those are given that can be read. Another error: none
 * can be. */
enum error webhook_list_sound(struct txn *txn, const struct uuid *client,
                              struct webhook webhooks[WEBHOOKS_MAX], uint32_t *ret_count);
/* The secret of this number, from 1 on. */
void webhook_secret(const struct store *store, const struct uuid *id, uint32_t number,
                    uint8_t ret_secret[WEBHOOK_SECRET_SIZE]);

/* ---- by whoever sends to them, within a command ---- */

/* What the newest attempt was: writes only when that changes anything. given_up: it was its delivery's last one, and failed; only such
 * a one can disable the webhook as failing. gone: the receiver wants no more. disable_after_us: for how long all attempts may fail, by
 * steady time, which no wall clock that leaps moves; 0: for ever. Returns whether it is disabled by this. One that isn't there: nothing
 * happens. */
struct webhook_attempt {
    const struct uuid *client, *id;
    uint64_t at_us, steady_us, disable_after_us;
    bool delivered, given_up, gone;
};
enum error webhook_attempted(struct txn *txn, const struct webhook_attempt *attempt, bool *ret_disabled);

#endif
