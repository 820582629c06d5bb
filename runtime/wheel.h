/* A timer wheel with exact nanosecond deadlines.
 *
 * The wheel is a pure data structure: it reads no clock and takes no lock. It belongs to one thread (a
 * scheduler) and its caller says what time it is. A timer is a member of whatever has to wait; the wheel
 * never allocates and owns a timer only between wheel_add and the moment it is cancelled or handed out,
 * during which it must not move or be freed.
 *
 * Order. Timers come out strictly by deadline, and equal deadlines in the order in which they were added. A
 * deadline that lies before the wheel's own time (the last timer handed out, or the last `now` at which
 * nothing was due) is moved up to that time, and so is due at once, after those which are due at once
 * already.
 *
 * Shape. The wheel's time and a deadline are numbers of eleven digits in base 64. A timer sits at the level
 * of the highest digit in which its deadline differs from the wheel's time, in the slot named by the
 * deadline's digit there; equal times sit at level 0. So a slot of level 0 is one nanosecond, nothing ever
 * needs sorting, equal deadlines always share a slot, and every timer of a lower level is due before every
 * timer of a higher one: the earliest slot is two ctz away, whatever the distance. When time enters a slot of
 * a higher level, its timers move to the levels below, in order (a cascade); a timer moves at most ten times
 * in its life.
 *
 * Cost. add and cancel are O(1). expire is O(1) and the cascades, which one timer that comes due may pay for
 * many: a slot with n timers is moved in one go. next is O(1) when its answer is known and otherwise looks
 * through one slot.
 *
 * Limits: none on count. Any uint64_t is a deadline. sizeof(struct wheel) is 10.4 KiB, a timer 24 bytes.
 */
#ifndef COPPICE_RUNTIME_WHEEL_H
#define COPPICE_RUNTIME_WHEEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WHEEL_BITS   6
#define WHEEL_FANOUT (1U << WHEEL_BITS)
#define WHEEL_LEVELS 11
/* Ten levels of 64 slots take 60 bits; the four that remain need 16 slots. */
#define WHEEL_SLOTS (10U * WHEEL_FANOUT + 16U)

struct wheel_link {
    struct wheel_link *next, *prev;
};

/* All zero is a timer that is not pending. The deadline may be read by anyone, and is kept after the timer
 * came out. */
struct wheel_timer {
    struct wheel_link link; /* next is NULL unless pending */
    uint64_t deadline;
};

/* Holds pointers into itself: initialise it where it stays. */
struct wheel {
    uint64_t time;    /* no pending deadline is earlier; decides the place of each timer */
    uint64_t bound;   /* no pending deadline is earlier than this either; decides nothing but speed */
    bool bound_exact; /* bound is the earliest deadline itself */
    uint32_t levels;  /* bit per level with a timer */
    size_t count;
    uint64_t slots[WHEEL_LEVELS]; /* bit per slot with a timer */
    struct wheel_link heads[WHEEL_SLOTS];
};

/* Forgets whatever the memory held before; no timer may be pending in it. */
void wheel_init(struct wheel *w, uint64_t now);

/* t must not be pending. O(1). A deadline in the past is due at once; t->deadline then says when that was. */
void wheel_add(struct wheel *w, struct wheel_timer *t, uint64_t deadline);

/* t must be pending in this wheel. O(1). */
void wheel_cancel(struct wheel *w, struct wheel_timer *t);

/* Takes out and returns the timer that is first in order if its deadline is not after now, NULL if there is
 * none. Between two calls the caller may add and cancel as it likes. */
struct wheel_timer *wheel_expire(struct wheel *w, uint64_t now);

/* The earliest deadline, exact; UINT64_MAX when empty. O(1) unless the earliest slot is of a higher level and
 * its first timer was taken since the last call: then that slot is looked through. Meant for a clock that
 * jumps. */
uint64_t wheel_next(struct wheel *w);

static inline bool wheel_pending(const struct wheel_timer *t)
{
    return t->link.next != NULL;
}

static inline size_t wheel_count(const struct wheel *w)
{
    return w->count;
}

/* A time that is not after the earliest deadline, always O(1); UINT64_MAX when empty. After wheel_expire(w,
 * now) answered NULL it lies after now. It is what a thread should sleep until. Where it is too early (the
 * timer was cancelled, or many share the earliest slot and it begins then), wheel_expire answers NULL and
 * moves it on. */
static inline uint64_t wheel_bound(const struct wheel *w)
{
    return w->bound;
}

/* False: nothing is due, no need to call wheel_expire. True: perhaps. One comparison, for every turn of a
 * scheduler. */
static inline bool wheel_due(const struct wheel *w, uint64_t now)
{
    return now >= w->bound;
}

#endif
