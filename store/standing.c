#include "store/standing.h"

STATIC_ASSERT(sizeof(struct stand) == 208, "what the header says of its room");
STATIC_ASSERT(STANDING_MAX % STANDING_PAGE == 0, "pages are whole");

void standing_init(struct standing *s)
{
    *s = (struct standing){.page = NULL};
    s->ends.next = s->ends.previous = &s->ends;
}

static struct stand *unused(struct standing *s)
{
    uint32_t at = s->used % STANDING_PAGE;
    if (s->used == STANDING_MAX)
        return NULL;
    if (at == 0) {
        struct stand *page = actor_try_alloc(STANDING_PAGE * sizeof(*page));
        if (!page)
            return NULL;
        s->page = page;
    }
    s->used++;
    return &s->page[at];
}

struct stand *standing_new(struct standing *s)
{
    if (!s->free && s->used == STANDING_MAX)
        standing_tidy(s, STANDING_MAX);
    struct stand *stand = s->free;
    if (stand)
        s->free = stand->next;
    else
        stand = unused(s);
    if (stand)
        stand->stands = false;
    return stand;
}

void standing_free(struct standing *s, struct stand *stand)
{
    ASSERT(!stand->stands);
    stand->next = s->free;
    s->free = stand;
}

void standing_put(struct standing *s, struct stand *stand)
{
    ASSERT(!stand->stands);
    stand->stands = true;
    stand->previous = &s->ends;
    stand->next = s->ends.next;
    stand->next->previous = stand;
    s->ends.next = stand;
    s->count++;
}

static struct stand *leave(struct standing *s, struct stand *stand)
{
    ASSERT(stand->stands);
    stand->next->previous = stand->previous;
    stand->previous->next = stand->next;
    stand->stands = false;
    s->count--;
    return stand;
}

struct stand *standing_take(struct standing *s)
{
    while (s->count > 0) {
        struct stand *stand = leave(s, s->ends.next);
        if (actor_alive(stand->who))
            return stand;
        standing_free(s, stand);
    }
    return NULL;
}

struct stand *standing_find(struct standing *s, actor_pid who, uint64_t number)
{
    for (struct stand *stand = s->ends.next; stand != &s->ends; stand = stand->next)
        if (stand->who == who && stand->number == number)
            return leave(s, stand);
    return NULL;
}

void standing_tidy(struct standing *s, uint32_t most)
{
    struct stand *stand = s->ends.previous;
    for (uint32_t looked = 0; looked < most && stand != &s->ends; looked++) {
        struct stand *newer = stand->previous;
        if (!actor_alive(stand->who))
            standing_free(s, leave(s, stand));
        stand = newer;
    }
}
