#include "runtime/scheduler.h"

_Static_assert(sizeof(struct message) == MESSAGE_HEAD, "the head leaves 24 bytes of the smallest block");

static uint32_t block_for(size_t size)
{
    size_t bytes = size + MESSAGE_HEAD;
    return bytes <= MESSAGE_BLOCK_MIN ? 0 : (uint32_t)(64 - __builtin_clzll(bytes - 1)) - 6;
}

struct message *message_take(struct scheduler *s, uint32_t type, size_t size)
{
    if (size > MESSAGE_PAYLOAD_MAX)
        return NULL;
    uint32_t block = block_for(size);
    struct message *m = pool_take(&s->messages[block]);
    if (!m)
        return NULL;
    m->next = NULL;
    m->to = 0;
    m->from = 0;
    m->ref = 0;
    m->type = type;
    m->size = (uint32_t)size & 0xffffff;
    m->block = block & 0xf;
    m->kind = MESSAGE_CAST;
    m->reasoned = 0;
    return m;
}

void message_give(struct scheduler *s, struct message *m)
{
    if (m->reasoned)
        reason_drop((struct reason *)(void *)m->payload);
    pool_give(&s->messages[m->block], m);
}

bool message_is_held(const struct actor *a, const struct message *m)
{
    for (const struct message *h = a->held; h; h = h->next)
        if (h == m)
            return true;
    return false;
}

/* A kept message carries the reference of its record in `to`, which is unused while a message is held. */
static struct record *kept_record(struct scheduler *s, const struct actor *a, const struct message *m)
{
    struct record *r = m->to ? record_of(s, m->to) : NULL;
    return r && r->kind == RECORD_KEPT && r->owner == actor_slot(s, a) && r->kept.message == m ? r : NULL;
}

void message_unhold_deep(struct actor *a, struct message *m)
{
    struct scheduler *s = scheduler_current;
    struct record *kept = kept_record(s, a, m);
    if (kept) {
        record_free(s, a, &a->resources, kept);
        m->to = 0;
        return;
    }
    struct message **link = &a->held;
    while (*link && *link != m)
        link = &(*link)->next;
    ASSERT(*link == m); /* not this actor's message: it was sent, freed or answered before */
    *link = m->next;
    m->next = NULL;
}

/* Nobody answers it any more: say so to the caller. */
void message_let_go(struct scheduler *s, actor_pid who, struct message *m, const struct reason *why)
{
    if (__builtin_expect(m->kind == MESSAGE_CALL && m->ref, 0)) {
        if (why)
            signal_reply_down(s, m->from, m->ref, who, why);
        else
            signal_reply_error(s, m->from, m->ref, ERR_UNANSWERED);
    }
    message_give(s, m);
}

void message_release_held(struct scheduler *s, struct actor *a, actor_pid who, const struct reason *why)
{
    while (a->held) {
        struct message *m = a->held;
        a->held = m->next;
        message_let_go(s, who, m, why);
    }
}

struct message *message_new(uint32_t type, size_t size)
{
    struct scheduler *s = scheduler_enter();
    ASSERT(type <= MESSAGE_USER_MAX);
    struct message *m = message_take(s, type, size);
    if (!m)
        return NULL;
    m->from = actor_pid_of(s->current);
    message_hold(s->current, m);
    return m;
}

void message_free(struct message *m)
{
    if (!m)
        return;
    struct scheduler *s = scheduler_enter();
    message_unhold(s->current, m);
    message_let_go(s, 0, m, NULL);
}

bool message_keep(struct message *m)
{
    struct scheduler *s = scheduler_enter();
    struct actor *a = s->current;
    if (kept_record(s, a, m))
        return true;
    ASSERT(message_is_held(a, m));
    struct record *r = record_new(s, a, &a->resources, RECORD_KEPT);
    if (!r)
        return false;
    message_unhold(a, m);
    r->kept.message = m;
    m->to = record_ref(s, r);
    return true;
}
