/* The blocklist: what has been revoked, in memory, looked at before anything else is done with a token.
 *
 * Rebuilt from the store's revocations at start (store/revocation.h) and kept up by the one actor that changes it. Readers
 * are many, on any thread, and take no lock: they read again when a change went on meanwhile, which takes the writer
 * nanoseconds (a guarded section, so that it is never interrupted halfway by us). What is looked for is a 128-bit keyed
 * hash, made once per token; two things with one hash would cost a good token its life, once in 2^90 or so.
 *
 * BLOCKLIST_MAX things; 16 MiB of addresses, touched as far as they are used.
 */
#ifndef COPPICE_HTTP_BLOCKLIST_H
#define COPPICE_HTTP_BLOCKLIST_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/error.h"
#include "store/revocation.h"

#define BLOCKLIST_MAX REVOCATIONS_MAX

struct blocklist;

struct blocklist_id {
    uint64_t low, high; /* both 0: nothing */
};

struct blocklist *blocklist_create(const uint8_t secret[32]); /* NULL: no memory. Boot */
void blocklist_destroy(struct blocklist *blocklist);

/* issuer: of a token and a key; empty for sessions and subjects, which are of any. Any thread. */
struct blocklist_id blocklist_id(const struct blocklist *blocklist, enum revocation_kind kind,
                                 struct span issuer, struct span value);
/* Whether a token of this, issued then, is stopped. Any thread. */
bool blocklist_stops(struct blocklist *blocklist, struct blocklist_id id, uint64_t issued_s);
uint32_t blocklist_count(const struct blocklist *blocklist);

/* ---- by the one who changes it ---- */

/* cut_off_s: stops what was issued up to then; UINT64_MAX: all. expires_s: when it may be forgotten, UINT64_MAX: never.
 * The same one again: the later of both. ERR_LIMIT. */
enum error blocklist_put(struct blocklist *blocklist, struct blocklist_id id, uint64_t cut_off_s,
                         uint64_t expires_s);
/* Looks at a few thousand places, going on where it ended the last time, and forgets what has expired. Returns how many. */
uint32_t blocklist_forget(struct blocklist *blocklist, uint64_t now_s);

#endif
