#include "runtime/wheel.h"

#include <string.h>

#include "runtime/assert.h"

STATIC_ASSERT(sizeof(struct wheel_timer) == 24, "a pending timer costs 24 bytes");
STATIC_ASSERT(sizeof(struct wheel) <= 11 * 1024, "a scheduler holds a wheel by value");
STATIC_ASSERT(offsetof(struct wheel_timer, link) == 0, "a link is cast to its timer");
STATIC_ASSERT((WHEEL_SLOTS - 10U * WHEEL_FANOUT) == 1U << (64 - 10 * WHEEL_BITS), "the slots cover 64 bits");

static struct wheel_timer *timer_of(struct wheel_link *link)
{
    return (struct wheel_timer *)link;
}

static unsigned level_of(const struct wheel *w, uint64_t deadline)
{
    uint64_t differs = (deadline ^ w->time) | 1;
    return (63U - (unsigned)__builtin_clzll(differs)) / WHEEL_BITS;
}

static unsigned digit_of(uint64_t time, unsigned level)
{
    return (unsigned)(time >> (level * WHEEL_BITS)) & (WHEEL_FANOUT - 1);
}

static unsigned shift_above(unsigned level)
{
    return (level + 1) * WHEEL_BITS;
}

/* The first nanosecond of a slot: the wheel's time above the level, the digit at it, zeros below. */
static uint64_t slot_start(const struct wheel *w, unsigned level, unsigned digit)
{
    uint64_t above = level + 1 < WHEEL_LEVELS ? w->time >> shift_above(level) << shift_above(level) : 0;
    return above | (uint64_t)digit << (level * WHEEL_BITS);
}

static void slot_clear(struct wheel *w, unsigned level, unsigned digit)
{
    w->slots[level] &= ~(UINT64_C(1) << digit);
    if (w->slots[level] == 0)
        w->levels &= ~(1U << level);
}

static void place(struct wheel *w, struct wheel_timer *t)
{
    unsigned level = level_of(w, t->deadline);
    unsigned digit = digit_of(t->deadline, level);
    struct wheel_link *head = &w->heads[level * WHEEL_FANOUT + digit];
    struct wheel_link *last = head->prev;

    t->link.next = head;
    t->link.prev = last;
    last->next = &t->link;
    head->prev = &t->link;
    w->slots[level] |= UINT64_C(1) << digit;
    w->levels |= 1U << level;
}

static void take_out(struct wheel *w, struct wheel_timer *t)
{
    struct wheel_link *next = t->link.next;
    struct wheel_link *prev = t->link.prev;

    next->prev = prev;
    prev->next = next;
    t->link.next = NULL;
    __atomic_store_n(&w->count, w->count - 1, __ATOMIC_RELAXED); /* a figure that others read */
    if (next == prev) { /* both are the head: the slot is empty now */
        size_t slot = (size_t)(next - w->heads);
        slot_clear(w, (unsigned)(slot / WHEEL_FANOUT), (unsigned)(slot % WHEEL_FANOUT));
    }
    if (w->count == 0) {
        w->bound = UINT64_MAX;
        w->bound_exact = true;
    } else if (t->deadline == w->bound) {
        w->bound_exact = false;
    }
}

static uint64_t slot_earliest(const struct wheel_link *head)
{
    uint64_t earliest = UINT64_MAX;
    for (struct wheel_link *l = head->next; l != head; l = l->next)
        if (timer_of(l)->deadline < earliest)
            earliest = timer_of(l)->deadline;
    return earliest;
}

/* Time enters a slot of a higher level. All levels below are empty (the earliest slot is of the lowest level
 * in use), so time may go on at once to the slot's earliest deadline, or to now where that is sooner, and
 * moving the timers in the order of the list keeps equal deadlines in order. */
static void cascade(struct wheel *w, unsigned level, unsigned digit, uint64_t now)
{
    struct wheel_link *head = &w->heads[level * WHEEL_FANOUT + digit];
    uint64_t earliest = slot_earliest(head);
    struct wheel_link *l = head->next;

    head->next = head->prev = head;
    slot_clear(w, level, digit);
    w->time = earliest < now ? earliest : now;
    w->bound = earliest;
    w->bound_exact = true;
    while (l != head) {
        struct wheel_link *next = l->next;
        place(w, timer_of(l));
        l = next;
    }
}

/* Nothing is due, and the earliest slot begins at start. Where its timer is alone, its deadline is the better
 * answer: a thread then wakes once for it and not once a level. */
static void bound_raise(struct wheel *w, unsigned level, unsigned digit, uint64_t start)
{
    const struct wheel_link *head = &w->heads[level * WHEEL_FANOUT + digit];
    bool alone = head->next == head->prev;

    if (alone || level == 0) {
        w->bound = timer_of(head->next)->deadline;
        w->bound_exact = true;
    } else if (start > w->bound) {
        w->bound = start;
    }
}

void wheel_init(struct wheel *w, uint64_t now)
{
    w->time = now;
    w->bound = UINT64_MAX;
    w->bound_exact = true;
    w->levels = 0;
    w->count = 0;
    memset(w->slots, 0, sizeof(w->slots));
    for (unsigned i = 0; i < WHEEL_SLOTS; i++)
        w->heads[i].next = w->heads[i].prev = &w->heads[i];
}

void wheel_add(struct wheel *w, struct wheel_timer *t, uint64_t deadline)
{
    ASSERT(!wheel_pending(t));
    t->deadline = deadline > w->time ? deadline : w->time;
    place(w, t);
    __atomic_store_n(&w->count, w->count + 1, __ATOMIC_RELAXED);
    if (t->deadline < w->bound) {
        w->bound = t->deadline;
        w->bound_exact = true;
    }
}

void wheel_cancel(struct wheel *w, struct wheel_timer *t)
{
    ASSERT(wheel_pending(t));
    take_out(w, t);
}

struct wheel_timer *wheel_expire(struct wheel *w, uint64_t now)
{
    while (w->levels != 0) {
        unsigned level = (unsigned)__builtin_ctz(w->levels);
        unsigned digit = (unsigned)__builtin_ctzll(w->slots[level]);
        uint64_t start = slot_start(w, level, digit);

        if (start > now) {
            bound_raise(w, level, digit, start);
            break;
        }
        if (level == 0) {
            struct wheel_timer *t = timer_of(w->heads[digit].next);
            take_out(w, t);
            w->time = start;
            return t;
        }
        cascade(w, level, digit, now);
    }
    if (now > w->time)
        w->time = now;
    return NULL;
}

uint64_t wheel_next(struct wheel *w)
{
    if (!w->bound_exact) {
        unsigned level = (unsigned)__builtin_ctz(w->levels);
        unsigned digit = (unsigned)__builtin_ctzll(w->slots[level]);
        w->bound = slot_earliest(&w->heads[level * WHEEL_FANOUT + digit]);
        w->bound_exact = true;
    }
    return w->bound;
}
