/* Chains: finds small numbered things (ids 1 to id_count_max of somebody's array) by a hash, for an index
 * that is read and written under its owner's lock.
 *
 * A hash may have many ids: all names of one pid, all groups whose hashes collide. Each id is in one chain at
 * most. The newest comes first. The order depends on the calls alone, not on addresses.
 *
 * The table grows by linear hashing: one chain is split for each id added beyond the size, so no call ever
 * stops to move everything. Adding, removing and finding are constant on average; splitting walks one chain.
 * Heads come in use from the first on, so that only memory in proportion to the largest number of ids is ever
 * touched.
 *
 * Chains own no memory: the caller hands over a zeroed region of chains_bytes() and keeps it while they live.
 * 16 bytes per id: 12 for the link, 4 for a head.
 */
#ifndef COPPICE_RUNTIME_CHAINS_H
#define COPPICE_RUNTIME_CHAINS_H

#include <stddef.h>
#include <stdint.h>

struct chain_link {
    uint32_t next;     /* 0: last of its chain */
    uint32_t previous; /* 0: first of its chain */
    uint32_t hash;
};

struct chains {
    struct chain_link *links; /* by id; borrowed from the caller's region, as heads is */
    uint32_t *heads;
    uint32_t head_count; /* in [1 << level, 2 << level) */
    uint32_t level;
    uint32_t id_count;
    uint32_t id_count_max;
};

size_t chains_bytes(uint32_t id_count_max);
void chains_init(struct chains *chains, void *zeroed, uint32_t id_count_max);

/* id must not be in a chain already. */
void chains_add(struct chains *chains, uint64_t hash, uint32_t id);
/* id must be in a chain. */
void chains_remove(struct chains *chains, uint32_t id);

/* The ids whose hash agrees in its low 32 bits, newest first; 0 after the last. The caller compares the real
 * keys: for (id = chains_first(c, hash); id; id = chains_next(c, id)) */
uint32_t chains_first(const struct chains *chains, uint64_t hash);
uint32_t chains_next(const struct chains *chains, uint32_t id);

#endif
