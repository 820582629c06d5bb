#define _GNU_SOURCE /* MADV_DONTNEED */
#include "http/body.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "http/json_text.h"
#include "runtime/actor.h"

STATIC_ASSERT(BODY_NODES_MAX == JSON_TEXT_NODES_MAX, "the nodes of the largest document fit");

#define SLOT_BYTES (BODY_BYTES_MAX + BODY_NODES_MAX * sizeof(struct json_node))
#define WORDS      (BODIES_MAX / 64)

static struct {
    char *memory;
    _Atomic uint64_t taken[WORDS]; /* a bit per slot */
    struct body bodies[BODIES_MAX];
} pool;

bool bodies_open(void)
{
    if (pool.memory)
        return true;
    void *memory = mmap(NULL, BODIES_MAX * SLOT_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    pool.memory = memory;
    for (uint32_t i = 0; i < BODIES_MAX; i++) {
        char *slot = pool.memory + i * SLOT_BYTES;
        pool.bodies[i] = (struct body){.bytes = slot, .nodes = (void *)(slot + BODY_BYTES_MAX), .slot = i};
    }
    return true;
}

void bodies_close(void)
{
    if (pool.memory)
        (void)munmap(pool.memory, BODIES_MAX * SLOT_BYTES);
    pool.memory = NULL;
}

/* The next one may be small, and the last one's bytes are nobody's business. */
static void wipe(struct body *body)
{
    size_t nodes_size = body->used_nodes * sizeof(struct json_node);
    if (body->used_bytes > BODY_LITTLE || nodes_size > BODY_LITTLE - body->used_bytes) {
        (void)madvise(body->bytes, SLOT_BYTES, MADV_DONTNEED);
        return;
    }
    memset(body->bytes, 0, body->used_bytes);
    memset(body->nodes, 0, nodes_size);
}

static void release(void *arg)
{
    struct body *body = arg;
    wipe(body);
    atomic_fetch_and_explicit(&pool.taken[body->slot / 64], ~(UINT64_C(1) << body->slot % 64),
                              memory_order_release);
}

struct body *body_take(void)
{
    for (uint32_t w = 0; w < WORDS && pool.memory; w++) {
        uint64_t taken = atomic_load_explicit(&pool.taken[w], memory_order_relaxed);
        while (~taken) {
            unsigned bit = (unsigned)__builtin_ctzll(~taken);
            if (!atomic_compare_exchange_weak_explicit(&pool.taken[w], &taken, taken | UINT64_C(1) << bit,
                                                       memory_order_acquire, memory_order_relaxed))
                continue;
            struct body *body = &pool.bodies[w * 64 + bit];
            body_used(body, BODY_BYTES_MAX, BODY_NODES_MAX);
            body->own = actor_own(release, body);
            if (body->own)
                return body;
            release(body);
            return NULL;
        }
    }
    return NULL;
}

void body_used(struct body *body, size_t bytes, size_t nodes)
{
    body->used_bytes = bytes;
    body->used_nodes = nodes;
}

void body_drop(struct body *body)
{
    actor_release(body->own);
}

uint32_t bodies_used(void)
{
    uint32_t used = 0;
    for (uint32_t w = 0; w < WORDS; w++)
        used += (uint32_t)__builtin_popcountll(atomic_load_explicit(&pool.taken[w], memory_order_relaxed));
    return used;
}
