/* Registries: the index over living actors of one kind, by the names they hold.
 *
 * Rooms, agents and instances register as "room:<id>", "agent:<id>", "instance:<id>" with the runtime. A
 * registry keeps nothing: each answer is read from the runtime's names, so it cannot be out of date and its
 * death loses nothing. One actor is found without it, by actor_whereis; the registry is for whoever wants to
 * know how many there are and which.
 *
 * registry_count and registry_list are calls: they block until the deadline and give ERR_NOPROC when the
 * registry isn't there. Each costs one walk over all names of the process. Names with a '/' behind
 * the prefix are parts of a subtree ("instance:7/server") and don't count.
 */
#ifndef COPPICE_ACTORS_REGISTRY_H
#define COPPICE_ACTORS_REGISTRY_H

#include "runtime/actor.h"

#define REGISTRY_PREFIX_MAX 32
#define REGISTRY_ID_MAX     96
#define REGISTRY_PAGE_MAX   512u /* entries in one answer: 512 * 104 bytes fit into one message */

struct registry_args {
    char prefix[REGISTRY_PREFIX_MAX]; /* with its colon */
};
extern const struct actor_class registry_class;

struct registry_entry {
    actor_pid pid;
    char id[REGISTRY_ID_MAX]; /* the name without the prefix */
};

enum error registry_count(const char *registry, uint64_t *ret_count, uint64_t deadline);
/* The first `count` (at most REGISTRY_PAGE_MAX) ids behind `after` in the order of their bytes ("" begins):
 * the last id of one page asks for the next. *ret_stored below count: there are no more. */
enum error registry_list(const char *registry, const char *after, struct registry_entry *entries,
                         size_t count, size_t *ret_stored, uint64_t deadline);

#endif
