/* Restart intensity as OTP counts it: may a supervisor restart once more?
 *
 * The rule. A request at time `now` is granted if and only if the granted restarts with a time in the closed
 * interval [now - period, now], this one included, number at most `intensity`. A refused request is not
 * recorded. So intensity 0 grants nothing, and a restart exactly one period old still counts.
 *
 * Grant times only grow, so the question is one about a single time: is the grant that lies `intensity`
 * grants back outside the window? The window keeps the last `intensity` grant times in a ring and looks at
 * the oldest, and granting is O(1) whatever the numbers (OTP walks over the restarts of the period).
 *
 * The window reads no clock and belongs to one thread, its supervisor's. It owns nothing: a ring, where one
 * is needed, is the caller's, must outlive the window and be freed by the caller.
 *
 * Limits: intensity at most RESTART_WINDOW_INTENSITY_MAX, 1,000,000, a ring of 8 MB; up to
 * RESTART_WINDOW_INLINE, 8, the times are kept in the struct itself. The period is 1 ns to UINT64_MAX ns.
 */
#ifndef COPPICE_RUNTIME_RESTART_WINDOW_H
#define COPPICE_RUNTIME_RESTART_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RESTART_WINDOW_INLINE        8U
#define RESTART_WINDOW_INTENSITY_MAX 1000000U

/* Holds no pointer into itself, so it may be moved; the ring stays where it is. */
struct restart_window {
    uint64_t period_ns;
    uint32_t intensity;
    uint32_t count; /* grants recorded, at most intensity; all of them lie in the ring */
    uint32_t next;  /* where the next grant goes: the oldest one once count == intensity */
    union {
        uint64_t times[RESTART_WINDOW_INLINE];
        uint64_t *ring;
    } at;
};

/* Bytes of ring that the caller has to bring for this intensity: 0 up to RESTART_WINDOW_INLINE, else 8 each.
 */
size_t restart_window_ring_bytes(uint32_t intensity);

/* The ring's content does not matter; it is not looked at where restart_window_ring_bytes is 0. False, and
 * the window is not to be used, when the intensity is above its limit, the period is 0, or a ring is needed
 * and missing. */
__attribute__((warn_unused_result)) bool restart_window_init(struct restart_window *w, uint32_t intensity,
                                                             uint64_t period_ns, uint64_t *ring);

/* Grants and records one restart, or refuses it and leaves the window as it was. now_ns never goes back
 * between two granted requests. O(1). A refusal is the supervisor's end (INT-01, INT-16). */
__attribute__((warn_unused_result)) bool restart_window_grant(struct restart_window *w, uint64_t now_ns);

/* For the operator's view: how much of the budget is spent at now_ns, 0 to intensity. O(log intensity). */
uint32_t restart_window_used(const struct restart_window *w, uint64_t now_ns);

static inline uint32_t restart_window_intensity(const struct restart_window *w)
{
    return w->intensity;
}

#endif
