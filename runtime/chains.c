#include "runtime/chains.h"

#include "runtime/assert.h"

size_t chains_bytes(uint32_t id_count_max)
{
    return ((size_t)id_count_max + 1) * (sizeof(struct chain_link) + sizeof(uint32_t));
}

void chains_init(struct chains *chains, void *zeroed, uint32_t id_count_max)
{
    ASSERT(id_count_max > 0 && id_count_max < UINT32_MAX / 4);
    struct chain_link *links = zeroed;
    *chains = (struct chains){
        .links = links,
        .heads = (uint32_t *)(links + id_count_max + 1),
        .head_count = 1,
        .id_count_max = id_count_max,
    };
}

static uint32_t *head_of(const struct chains *chains, uint32_t hash)
{
    uint32_t head = hash & ((2u << chains->level) - 1);
    if (head >= chains->head_count) {
        head = hash & ((1u << chains->level) - 1);
    }
    return &chains->heads[head];
}

/* One more head: it takes from the chain that stands in for it so far what belongs to it, in the same order.
 */
static void split(struct chains *chains)
{
    uint32_t head = chains->head_count;
    uint32_t mask = (2u << chains->level) - 1;
    uint32_t id = chains->heads[head - (1u << chains->level)];
    uint32_t last = 0;
    while (id) {
        struct chain_link *link = &chains->links[id];
        uint32_t next = link->next;
        if ((link->hash & mask) == head) {
            chains_remove(chains, id);
            link->previous = last;
            link->next = 0;
            *(last ? &chains->links[last].next : &chains->heads[head]) = id;
            last = id;
            chains->id_count++;
        }
        id = next;
    }
    chains->head_count++;
    if (chains->head_count == 2u << chains->level) {
        chains->level++;
    }
}

void chains_add(struct chains *chains, uint64_t hash, uint32_t id)
{
    ASSERT(id > 0);
    ASSERT(id <= chains->id_count_max);
    if (chains->id_count >= chains->head_count && chains->head_count < chains->id_count_max) {
        split(chains);
    }
    uint32_t *head = head_of(chains, (uint32_t)hash);
    if (*head) {
        chains->links[*head].previous = id;
    }
    chains->links[id] = (struct chain_link){.next = *head, .hash = (uint32_t)hash};
    *head = id;
    chains->id_count++;
}

void chains_remove(struct chains *chains, uint32_t id)
{
    struct chain_link *link = &chains->links[id];
    if (link->next) {
        chains->links[link->next].previous = link->previous;
    }
    if (link->previous) {
        chains->links[link->previous].next = link->next;
    } else {
        uint32_t *head = head_of(chains, link->hash);
        ASSERT(*head == id);
        *head = link->next;
    }
    chains->id_count--;
}

static uint32_t same_hash_from(const struct chains *chains, uint32_t id, uint32_t hash)
{
    while (id && chains->links[id].hash != hash) {
        id = chains->links[id].next;
    }
    return id;
}

uint32_t chains_first(const struct chains *chains, uint64_t hash)
{
    return same_hash_from(chains, *head_of(chains, (uint32_t)hash), (uint32_t)hash);
}

uint32_t chains_next(const struct chains *chains, uint32_t id)
{
    const struct chain_link *link = &chains->links[id];
    return same_hash_from(chains, link->next, link->hash);
}
