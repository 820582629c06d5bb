/* The deduper: has this message of this instance been seen before?
 *
 * A bounded window of keys (instance_id, external message id). The first who asks for a key hears "new",
 * everybody else "seen" until the key expires, counted from the first time. When the window is full the
 * oldest key is pushed out, and that is counted: a window that pushes out unexpired keys is too small. Keys
 * are kept as 128 bits of keyed hash; a new key is taken for a seen one with a chance of 2^-112
 * (2^16 keys in the default window, 2^128 hashes).
 *
 * A kill forgets the window, so a message seen before the kill passes once more; what must never happen twice
 * is decided by the store behind it. Cost: 40 bytes a key, mapped at start and touched as the window fills.
 */
#ifndef COPPICE_ACTORS_DEDUPER_H
#define COPPICE_ACTORS_DEDUPER_H

#include "runtime/actor.h"

#define DEDUPER_ID_MAX     255u /* bytes of either id, at least 1 */
#define DEDUPER_WINDOW_MAX 4194304u
#define DEDUPER_NAME       "deduper"

struct deduper_args {
    uint32_t window;    /* keys, 1..DEDUPER_WINDOW_MAX; 0: 65,536 */
    uint64_t expiry_ns; /* 0: 10 minutes */
};
extern const struct actor_class deduper_class; /* with struct deduper_args, or none for the defaults */

/* ERR_INVALID: an id is empty or too long. Otherwise as actor_call. */
enum error deduper_seen(const char *instance_id, const char *message_id, bool *ret_seen, uint64_t deadline);

struct deduper_figures {
    uint64_t asked, seen, expired, pushed_out;
    uint32_t keys, window;
};
enum error deduper_inspect(struct deduper_figures *ret_figures, uint64_t deadline);

#endif
