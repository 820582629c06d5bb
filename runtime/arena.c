/* Arenas: an actor's private memory, in chunks from the scheduler's pool, dropped whole. */
#include <stdalign.h>
#include "runtime/scheduler.h"

#define ARENA_CHUNK 4096u

struct arena_chunk {
    struct arena_chunk *next; /* older */
    size_t size;              /* of the whole block */
    int block;                /* message block class it came from; -1: the chunk pool */
    int unused;
    size_t used;
};

struct arena {
    struct arena_chunk *chunk;
    size_t total; /* bytes of all chunks */
};
_Static_assert(sizeof(struct arena_chunk) <= 48, "leave the chunk to its user");

/* The arena's own record lives at the start of its first chunk. */
static struct arena_chunk *chunk_take(struct scheduler *s, size_t need)
{
    struct arena_chunk *c;
    size_t size = need + sizeof *c + 16;
    if (size <= ARENA_CHUNK) {
        c = pool_take(&s->chunks);
        if (!c)
            return NULL;
        c->size = ARENA_CHUNK;
        c->block = -1;
    } else {
        if (size > MESSAGE_BLOCK_MAX)
            return NULL;
        int block = 64 - __builtin_clzll(size - 1) - 6;
        c = pool_take(&s->messages[block]);
        if (!c)
            return NULL;
        c->size = (size_t)MESSAGE_BLOCK_MIN << block;
        c->block = block;
    }
    c->used = (sizeof *c + 15) & ~(size_t)15;
    c->next = NULL;
    return c;
}

static void chunk_give(struct scheduler *s, struct arena_chunk *c)
{
    pool_give(c->block < 0 ? &s->chunks : &s->messages[c->block], c);
}

static void *arena_alloc(struct scheduler *s, struct actor *a, size_t size)
{
    size_t quota = a->class->arena_quota ? a->class->arena_quota : ACTOR_ARENA_DEFAULT;
    if (size > quota)
        return NULL;
    size = (size + 15) & ~(size_t)15;
    if (!a->arena) {
        struct arena_chunk *c = chunk_take(s, sizeof(struct arena));
        if (!c)
            return NULL;
        struct arena *arena = (struct arena *)(void *)((char *)c + c->used);
        c->used += (sizeof *arena + 15) & ~(size_t)15;
        *arena = (struct arena){.chunk = c, .total = c->size};
        a->arena = arena;
    }
    struct arena *arena = a->arena;
    struct arena_chunk *c = arena->chunk;
    if (c->size - c->used < size) {
        struct arena_chunk *fresh = arena->total + size > quota ? NULL : chunk_take(s, size);
        if (!fresh)
            return NULL;
        fresh->next = c;
        arena->chunk = c = fresh;
        arena->total += fresh->size;
    }
    void *p = (char *)c + c->used;
    c->used += size;
    return p;
}

void *actor_try_alloc(size_t size)
{
    struct scheduler *s = scheduler_enter();
    return arena_alloc(s, s->current, size ? size : 1);
}

void *actor_alloc(size_t size)
{
    struct scheduler *s = scheduler_enter();
    void *p = arena_alloc(s, s->current, size ? size : 1);
    if (!p) {
        reason_drop(&s->worker->ending); /* in terminate there is one already */
        s->worker->ending = reason_of(REASON_QUOTA);
        worker_land(s, LAND_FAULT);
    }
    return p;
}

struct arena_mark actor_arena_mark(void)
{
    struct scheduler *s = scheduler_enter();
    struct arena *arena = s->current->arena;
    if (!arena)
        return (struct arena_mark){0};
    return (struct arena_mark){.chunk = arena->chunk, .used = arena->chunk->used, .total = arena->total};
}

void actor_arena_reset(struct arena_mark mark)
{
    struct scheduler *s = scheduler_enter();
    struct arena *arena = s->current->arena;
    if (!arena)
        return;
    if (!mark.chunk) { /* nothing was there: keep the first chunk, it holds the arena's own record */
        while (arena->chunk->next) {
            struct arena_chunk *c = arena->chunk;
            arena->chunk = c->next;
            arena->total -= c->size;
            chunk_give(s, c);
        }
        arena->chunk->used = (size_t)((char *)(arena + 1) - (char *)arena->chunk + 15) & ~(size_t)15;
        return;
    }
    while (arena->chunk != mark.chunk) {
        struct arena_chunk *c = arena->chunk;
        ASSERT(c->next);
        arena->chunk = c->next;
        arena->total -= c->size;
        chunk_give(s, c);
    }
    ASSERT(mark.used <= arena->chunk->used);
    arena->chunk->used = mark.used;
}

void arena_drop(struct scheduler *s, struct actor *a)
{
    if (!a->arena)
        return;
    for (struct arena_chunk *c = a->arena->chunk, *next; c; c = next) {
        next = c->next;
        chunk_give(s, c);
    }
    a->arena = NULL;
}

size_t arena_bytes(const struct actor *a)
{
    return a->arena ? a->arena->total : 0;
}
