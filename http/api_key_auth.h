/* API keys as clients show them: their form, and whether one is good.
 *
 *     cop_ + 43 digits + 6 digits        "cop_" says what it is to whoever finds it in a file
 *
 * The 43 digits (0-9A-Za-z, base 62) are 256 bits of chance, most significant first; the 6 are the CRC-32 (IEEE) of all
 * that stands before them, so a scanner for leaked secrets knows one of ours, and a mistyped one costs no look at the
 * store. Exactly one text stands for each key.
 *
 * What is kept is SHA-256(salt, 256 bits) with the store's secret as salt: nobody guesses 256 bits, so a slow hash would
 * protect nothing and be a lever against the server. Looked up by that hash, so comparing tells nothing about the key.
 *
 * Verified keys are remembered in a table (API_KEY_SLOTS, by their hash), for API_KEY_BELIEVED_NS after the store was
 * looked at. Revocation beats it: api_key_forget before the answer to whoever revoked, and what somebody else read
 * before the commit can't come in afterwards, because a slot takes a look at the store only when nothing has happened to it
 * since before that look. One second is how long a key is believed whose revoker died between commit and answer.
 */
#ifndef COPPICE_HTTP_API_KEY_AUTH_H
#define COPPICE_HTTP_API_KEY_AUTH_H

#include "http/catalogue.h"
#include "http/identity.h"
#include "runtime/actor.h"
#include "store/api_key.h"

#define API_KEY_PREFIX      "cop_"
#define API_KEY_SECRET_SIZE 32u
#define API_KEY_TEXT_LENGTH (4u + 43u + 6u)
#define API_KEY_TEXT_SIZE   (API_KEY_TEXT_LENGTH + 1)

#define API_KEY_SLOTS       8192u /* 128 bytes each; a key has one place, the later one takes it */
#define API_KEY_BELIEVED_NS NS_PER_S
#define API_KEY_USE_US      (UINT64_C(60) * 1000000) /* last use is written at most that often */

/* Boot: the table, and a hash context for each scheduler. False: no memory. Before anything below is called. */
bool api_keys_start(void);
void api_keys_stop(void); /* after the runtime has gone */

/* ---- the form: pure ---- */

void api_key_write(const uint8_t secret[API_KEY_SECRET_SIZE], char ret_text[API_KEY_TEXT_SIZE]);
bool api_key_parse(struct span text, uint8_t ret_secret[API_KEY_SECRET_SIZE]);

/* ---- by actors ---- */

/* What the store knows it by. */
struct digest api_key_hash(const uint8_t secret[API_KEY_SECRET_SIZE]);

/* ERROR_NONE: *ret_who is the client, in the request's memory. Doesn't wait; looks at the store at most once.
 *   RFA_AUTH_INVALID_CREDENTIALS   empty, not of the form, or nobody's
 *   RFA_AUTH_TOKEN_EXPIRED         its time is over
 *   RFA_AUTH_API_KEY_DISABLED      revoked, rotated or renewed away
 *   RFA_STORAGE_UNAVAILABLE, RFA_STORAGE_DB_ERROR
 * Refused: kind is IDENTITY_NONE, and client and key say whose it was, for the log; all zero: nobody's. */
enum error_code api_key_verify(struct span key, struct identity *ret_who);

/* Of a key that was good when its request came, by a handler that has waited since: ERROR_NONE, or why it isn't any more (as above).
 * One look at the store. Whoever isn't here by a key is who he was. */
enum error_code api_key_still(const struct identity *who);

/* After a commit that ended this key and before anybody is told. Any scheduler. */
void api_key_forget(const struct digest *hash);

/* Writes down when keys were last used: name and row "api_keys" of the topology. Nobody waits for it; without it, or under
 * pressure, uses are not written. */
#define API_KEY_USES_NAME "api_keys"
extern const struct actor_class api_key_uses_class;

#endif
