/* Names: the process-wide index from a name to the pid that holds it.
 *
 * A name is 1 to NAME_BYTES_MAX bytes without a NUL and is held by at most one pid; a pid may hold many
 * names. The index knows nothing of actors: whether a pid is alive is its caller's business, and so is giving
 * the names of a dying actor back (names_unregister_all) before anybody hears of its death (REG-02).
 *
 * Who may call: any thread, at any time between create and destroy. Lookups take no lock, write nothing,
 * never wait and end after a bounded number of steps, whatever the writers do or wherever one of them was
 * stopped; in the usual case they touch two cache lines. Writers take one mutex for a few hundred
 * nanoseconds.
 *
 * What a lookup answers: the pid that held the name at some instant between its call and its return, or 0
 * when the name was free at some such instant. Never half of one registration and half of another; and
 * whoever has seen a registration or its end by other means (a message, a lock) gets an answer at least as
 * new.
 *
 * Limits: count_max names, chosen at creation, when address space for all of them is reserved (about 200
 * bytes each). Memory is touched as it is first needed and reused ever after; refused registrations take none
 * (REG-09). Resident bytes per name: entry 64, chain 16, buckets 43 to 85 (64 for every 1.5 to 3 names, and
 * as much again for the smaller tables outgrown): 123 to 165, measured 145 for 1,000,000 names; 48 more when
 * it is longer than 48 bytes.
 *
 * Measured on the machine of design/performance.md, names like "room:42", 1,000 to 10,000 of them: 88 to 95
 * million lookups/s on one thread in the order of registration, 60 to 95 in random order; 120 to 190 million
 * on two.
 */
#ifndef COPPICE_RUNTIME_NAMES_H
#define COPPICE_RUNTIME_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/hash.h"

#define NAME_BYTES_MAX  96
#define NAMES_COUNT_MAX (1u << 24)

struct names;

/* NULL when count_max is 0 or above NAMES_COUNT_MAX, or when the memory cannot be reserved. */
struct names *names_create(size_t count_max);

/* The same with a secret key, for names that strangers choose: without it they cannot know which names share
 * a bucket. names_create takes a published key; answers and orders are the same with any key. */
struct names *names_create_keyed(size_t count_max, const struct hash_key *key);

/* Nobody may be using it any more. NULL is accepted. */
void names_destroy(struct names *names);

/* Makes pid the holder of the name, which is copied.
 *   0        done
 *   -EEXIST  somebody holds it, perhaps pid itself; the holder is in *ret_holder (which may be NULL)
 *   -EINVAL  the name is empty, too long or has a NUL in it, or pid is 0
 *   -ENOSPC  count_max names are registered */
int names_register(struct names *names, const char *name, size_t length, uint64_t pid, uint64_t *ret_holder);

/* Frees the name if pid holds it; otherwise changes nothing and returns false. */
bool names_unregister(struct names *names, const char *name, size_t length, uint64_t pid);

/* Frees all names that pid holds, in time proportional to their number, and returns that number. The lock is
 * released after every 64. Another thread must not register names for this pid meanwhile. */
size_t names_unregister_all(struct names *names, uint64_t pid);

/* The holder, or 0 when the name is free (or could not be a name). */
uint64_t names_lookup(const struct names *names, const char *name, size_t length);

/* A name whose hash is known, for those who look one up again and again. The text is borrowed and must
 * outlive the key; the key is good for the index that made it. */
struct name_key {
    const char *name;
    size_t length;
    uint64_t hash;
};

struct name_key names_key(const struct names *names, const char *name, size_t length);
uint64_t names_lookup_key(const struct names *names, const struct name_key *key);

/* How many names are registered. */
size_t names_count(const struct names *names);

/* For operators: calls visit for each name that starts with the prefix (length 0: all), without a lock, until
 * it returns false. A name held all the while is shown exactly once; one that comes or goes meanwhile may be
 * shown or not. The name is a copy, NUL-terminated, good during the call; visit may call anything, this index
 * too. The order depends on the history of registrations alone. */
typedef bool names_visit(void *context, const char *name, size_t length, uint64_t pid);
void names_each(const struct names *names, const char *prefix, size_t prefix_length, names_visit *visit,
                void *context);

#endif
