/* The keyring: keys that tokens are verified with, by issuer and kid; and the built-in issuer's own signing keys.
 *
 * Public keys come from a file (JWKS), from a URL (fetched by actors/fetch, refreshed, kept when the fetch fails) and
 * from the built-in issuer (store/signing_key.h). What readers see is one immutable table, replaced whole; an old one is
 * freed when no scheduler is reading it. Lookups take no lock. A kid that an issuer's sets name twice is nobody's.
 *
 * Tokens that were verified are remembered (a table in memory, by the SHA-256 of the whole token) until they expire or
 * the table of keys is replaced. Revocation beats it: a revoked jti, kid, session or subject is on the blocklist before the
 * answer to the revocation is sent, and the blocklist is looked at first, always.
 *
 * A start reads the keys' rows alone. What OpenSSL makes of them, and OpenSSL itself (store/crypto.h), comes with the first who
 * asks for a key: some 2 ms, once. A key set that is configured is looked at as soon as it is there, because it may be bad.
 *
 * Rotation: an active key older than the cadence is replaced; the old one is verified with for the overlap, and not a
 * second longer, whether the actor runs or not. So it is when a token is of more than a minute later than the clock says, which
 * was ahead then or is behind now: nothing that a replaced key has signed may say that it was issued that much after its end.
 * In dev the first key is made by itself; elsewhere an operator makes it (keyring_rotate with first), and until then keyring_ready is
 * false.
 */
#ifndef COPPICE_HTTP_KEYRING_H
#define COPPICE_HTTP_KEYRING_H

#include "http/agent_template.h"
#include "http/jwt.h"
#include "http/request.h"
#include "http/response.h"
#include "store/revocation.h"

#define KEYRING_NAME       "keys"
#define KEYRING_LIFETIME_S 28800u        /* of a token (CTL-079) */
#define KEYRING_AGENT_S    AGENT_TOKEN_S /* of an agent's (CTL-080) */
#define KEYRING_SKEW_S     120u
/* Of keys.rotation_cadence: more often, and there would be more keys that a token may still be signed with than are kept in mind,
 * and more in a history of 90 days than the store keeps. */
#define KEYRING_CADENCE_MIN_S 3600u
#define KEYRING_KEYS_MAX      128u   /* in the table: own ones first, then those of the sets */
#define KEYRING_OWN_MAX       40u    /* of our own that haven't ended: what fits into a chunk of an arena */
#define KEYRING_SET_BYTES_MAX 60000u /* of a key set's text */
#define KEYRING_TOKEN_MAX     4096u  /* of an issued token's text */
#define KEYRING_TICK_MS       1000u
#define KEYRING_REFRESH_S \
    300u /* of the sets; sooner, but not within KEYRING_AGAIN_S, when a kid isn't known */
#define KEYRING_REVOCATION_S 60u
#define KEYRING_AGAIN_S      30u
#define KEYRING_FETCH_MS     10000u

struct keyring;

struct keyring_options {
    const char *issuer;          /* of the built-in issuer, and accepted */
    const char *audience;        /* accepted, and put into what is issued */
    const char *environment;     /* "dev", "stage", "prod": keys of another one are refused */
    const char *jwks_file;       /* more keys, or NULL */
    const char *jwks_url;        /* more keys, or NULL */
    const char *jwks_issuer;     /* whose keys those two are */
    const char *master_key_file; /* 32 bytes, made 0600 if missing: private keys are sealed with it */
    uint64_t cadence_ns, overlap_ns, history_ns; /* 0: 6 h, 8 h and 2 min, 90 days */
    /* Within which a key that was revoked is invalid everywhere; 0: a minute. Others may keep our key set for as long, and
     * we ask for theirs at least as often (CTL-115). */
    uint64_t revocation_ns;
    const struct agent_template *templates; /* borrowed for the keyring's life */
    uint32_t templates_count;
    bool jti_single_use;
    uint32_t cache;  /* verified tokens remembered; 0: 16384 */
    struct env *env; /* NULL: env_real() */
};
/* Boot. Texts are borrowed for the keyring's life. Refuses, with a sentence: a master key that can't be used, an overlap
 * shorter than a token's life, a cadence under KEYRING_CADENCE_MIN_S, a history under 90 days, a set's issuer that is the built-in one. */
struct keyring *keyring_create(const struct keyring_options *options, char *ret_text, size_t text_size);
/* Whether a file is a key set with a key in it that can be used, as jwks_file must be. False: why not, without the file's name.
 * Reads it, and loads libcrypto. */
bool keyring_set_look(const char *file, char *ret_why, size_t why_size);
void keyring_destroy(struct keyring *keyring); /* accepts NULL; when no actor runs any more */

/* From the connection's actor: the steps in their order. JWT_STAGE_OK: *ret_who is filled, and borrows from the actor's
 * arena, so it is good until the request's end. Else *ret_why is a static text for the log. May wait for the store, the
 * first time a token is seen; JWT_STAGE_STORE: that could not be done, so nobody knows whether it is good (503). Emits
 * auth.rejected for each refusal, auth.signature for each signature looked at. `request_id`: for the audit entry of a
 * replay. */
enum jwt_stage keyring_verify(struct keyring *keyring, struct span token, struct span request_id,
                              struct identity *ret_who, const char **ret_why);

/* The same without counting as the token's use, and without a look at whether it is a replay: for deciding whether a body
 * is waited for. Who lets somebody in asks keyring_verify as well. */
enum jwt_stage keyring_look(struct keyring *keyring, struct span token, struct identity *ret_who,
                            const char **ret_why);

/* {"keys": [...]}: public parameters only. From an actor. */
void keyring_write_jwks(struct keyring *keyring, struct json *json);

/* Whether tokens can be verified, and issued. False: *ret_why is a static sentence. */
bool keyring_ready(struct keyring *keyring, const char **ret_why);

/* ---- by the keyring's actor on behalf of an operator. All of them wait; errors are store_submit's. ---- */

struct keyring_order {
    struct span who, reason, request_id; /* for the audit entry; cut off where an entry ends */
};
/* A new key now. first: the bootstrap: ERR_EXISTS when there ever was one. Else ERR_NOT_FOUND when there never was one. ERR_LIMIT:
 * one more, and tokens that are good couldn't be verified; or the store keeps no more.
 * *ret_kid: the new one. */
enum error keyring_rotate(const struct keyring_order *order, bool first, char ret_kid[UUID_TEXT_SIZE],
                          uint64_t deadline);
/* A key of the built-in issuer, or one of a set, is invalid from now on, with all that it signed. Another one takes the
 * active one's place at once. ERR_NOT_FOUND: nobody has this kid; ERR_TRANSITION: it has ended. A key of ours and one of a
 * set that have the same kid are both revoked. In force as well when nobody knows what the store did (ERR_TIMEOUT, ...). */
enum error keyring_revoke_key(const struct keyring_order *order, struct span kid, uint64_t deadline);
/* A token (issuer empty: the built-in one; expires_s: of the token, 0 when it isn't known), a session or a subject. In
 * force in this process even when the answer is an error of the store's; stored for good when it is OK. A key: as above, but of
 * this issuer alone unless that is empty. */
enum error keyring_revoke(const struct keyring_order *order, enum revocation_kind kind, struct span issuer,
                          struct span value, uint64_t expires_s, uint64_t deadline);

/* For a command that ends a subject's tokens in its own commit (store/principal.h): how long one of now may live, and up to
 * when they are issued. */
struct keyring_end {
    uint64_t tokens_us, cut_off_us;
};
struct keyring_end keyring_end_of(const struct keyring *keyring);
/* Before it is submitted: what the store has counts within seconds, also when whoever submits it dies before it can say so. */
void keyring_expect_end(void);
/* Behind that commit: what the store has of this subject counts, when the answer is OK; nothing, if it has nothing.
 * done: by this command; then a token of a later second than it knew of is revoked, too. unsure: nobody knows what the store did; it is
 * looked at again for a minute. So it is after any other answer. */
enum error keyring_stop_subject(const struct keyring_order *order, struct span subject, bool done,
                                bool unsure, uint64_t deadline);

/* ---- the built-in issuer ---- */

struct keyring_claims {
    struct span subject, role;
    struct span session;  /* empty: a new one */
    struct span audience; /* empty: the keyring's */
    uint32_t projects_count;
    struct span projects[IDENTITY_PROJECTS_MAX];
    uint64_t lifetime_s;              /* 0: an hour, or as long as it may be when that is shorter */
    struct span agent_template, tier; /* of an agent, when it has them */
};
struct keyring_token {
    char jti[UUID_TEXT_SIZE], kid[UUID_TEXT_SIZE];
    char session[IDENTITY_SUBJECT_MAX + 1];
    uint64_t expires_s;
    size_t length;
    char text[KEYRING_TOKEN_MAX];
};
/* How long a token of this role, template and tier may live. */
uint64_t keyring_longest_s(const struct keyring *keyring, const struct keyring_claims *claims);
/* From an actor; doesn't wait. NULL: done; else a static sentence: what is wrong with the claims (ret_unavailable false), or
 * that there is no key to sign with. */
const char *keyring_issue(struct keyring *keyring, const struct keyring_claims *claims,
                          struct keyring_token *ret_token, bool *ret_unavailable);

struct keyring_figures {
    uint32_t keys, revoked; /* in the table; on the blocklist */
    char active[UUID_TEXT_SIZE];
    uint64_t next_rotation_us; /* 0: no active key */
    uint64_t cadence_s, overlap_s, revocation_s;
    uint64_t set_age_s; /* since another issuer's keys last came; 0 when there is none */
};
void keyring_figures(struct keyring *keyring, struct keyring_figures *ret_figures);
const char *keyring_environment(const struct keyring *keyring);
const char *keyring_issuer(const struct keyring *keyring);

/* The actor that loads and rotates keys, fetches key sets and forgets what has expired; row "keys" of the topology. Start
 * it behind the store's writer. What it knows survives it. */
struct keyring_args {
    struct keyring *keyring;
};
extern const struct actor_class keyring_class;

#endif
