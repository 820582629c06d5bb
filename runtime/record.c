/* Records: 64-byte entries in one table a scheduler, linked into their owner's lists by number. */
#include "runtime/scheduler.h"

/* Written by one thread, read by any: see runtime_stats. */
static inline void figure(uint32_t *count, int by)
{
    __atomic_store_n(count, *count + (uint32_t)by, __ATOMIC_RELAXED);
}

struct record *record_new(struct scheduler *s, struct actor *owner, uint32_t *list, enum record_kind kind)
{
    uint32_t index = s->record_free;
    if (index) {
        s->record_free = s->records[index].next;
    } else {
        if (s->records_used == s->records_max)
            return NULL;
        index = s->records_used;
        figure(&s->records_used, 1);
    }
    struct record *r = &s->records[index];
    r->index = index;
    r->owner = actor_slot(s, owner);
    r->kind = (uint8_t)kind;
    r->type = 0;
    r->prev = 0;
    r->next = *list;
    if (*list)
        s->records[*list].prev = index;
    *list = index;
    figure(&s->records_living, 1);
    return r;
}

void record_free(struct scheduler *s, struct actor *owner, uint32_t *list, struct record *r)
{
    ASSERT(r->kind != RECORD_FREE);
    ASSERT(r->owner == actor_slot(s, owner));
    if (r->prev)
        s->records[r->prev].next = r->next;
    else
        *list = r->next;
    if (r->next)
        s->records[r->next].prev = r->prev;
    r->kind = RECORD_FREE;
    r->generation++;
    r->next = s->record_free;
    s->record_free = r->index;
    figure(&s->records_living, -1);
}

void record_move(struct scheduler *s, uint32_t *from, uint32_t *to, struct record *r)
{
    if (r->prev)
        s->records[r->prev].next = r->next;
    else
        *from = r->next;
    if (r->next)
        s->records[r->next].prev = r->prev;
    r->prev = 0;
    r->next = *to;
    if (*to)
        s->records[*to].prev = r->index;
    *to = r->index;
}

struct record *record_of(struct scheduler *s, uint64_t ref)
{
    uint32_t index = pid_slot(ref);
    if (!ref || (ref & REF_CALL) || pid_scheduler(ref) != s->index || index >= s->records_used)
        return NULL;
    struct record *r = &s->records[index];
    return r->kind != RECORD_FREE && r->generation == (uint32_t)ref ? r : NULL;
}
