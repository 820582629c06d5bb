/* Names: what things are called in an ordeal of kill9: ids, keys and bodies, all of them from who owns a thing and its number.
 *
 * So nothing of a thing needs to be remembered to know what it looks like, and what nobody made is known by its name.
 */
#ifndef COPPICE_CHAOS_KILL9_NAMES_H
#define COPPICE_CHAOS_KILL9_NAMES_H

#include <stdbool.h>

#include "store/record.h"

/* Who owns things: a lane those that only it changes, and the crowd those that all lanes send, with the same key each. */
#define LANES   8u
#define CROWD   LANES
#define OWNERS  (LANES + 1)
#define KEEPER  0u          /* the lane that lets time take its things */
#define RELAY   (LANES - 1) /* marks what the others' commands have put into the outbox */
#define PARCELS 256u        /* of an owner, in one ordeal */
#define STEPS   3u          /* events of a parcel: send, send, deliver */
#define SLOTS   4u          /* API keys of a parcel's client, at one time */

/* Once for each ordeal: another number gives other names. */
void names_begin(uint64_t ordeal);

struct uuid names_parcel(uint32_t owner, uint32_t index);
/* Of the audit entry about a parcel; of a key of its client, and of the audit entry about that key's end. */
struct uuid names_note(uint32_t owner, uint32_t index);
struct uuid names_api_key(uint32_t owner, uint32_t index, uint32_t slot);
struct uuid names_api_key_note(uint32_t owner, uint32_t index, uint32_t slot);
/* Whose parcel has this id, or this audit entry (*ret_slot: SLOTS when it isn't about a key). False: nobody's. */
bool names_find(const struct uuid *id, uint32_t *ret_owner, uint32_t *ret_index);
bool names_find_note(const struct uuid *id, uint32_t *ret_owner, uint32_t *ret_index, uint32_t *ret_slot);

/* Lasts as long as the process. */
struct span names_body(uint32_t owner, uint32_t index, uint32_t size);
/* Of a request about a parcel; those of another variant are others. */
struct digest names_digest(uint32_t owner, uint32_t index, uint32_t variant);
struct digest names_api_key_hash(uint32_t owner, uint32_t index, uint32_t slot);
/* Of an owner in the ledger. */
const char *names_scope(uint32_t owner);
#define NAMES_SIZE 16u
struct span names_token(uint32_t owner, uint32_t index, char text[NAMES_SIZE]);

#endif
