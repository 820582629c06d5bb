#include "runtime/restart_window.h"

#include "runtime/assert.h"

static uint64_t *times_of(struct restart_window *w)
{
    return w->intensity <= RESTART_WINDOW_INLINE ? w->at.times : w->at.ring;
}

/* The closed interval: a grant exactly one period old is still inside. Written so that nothing wraps. */
static bool inside(const struct restart_window *w, uint64_t granted_ns, uint64_t now_ns)
{
    return granted_ns >= now_ns || now_ns - granted_ns <= w->period_ns;
}

size_t restart_window_ring_bytes(uint32_t intensity)
{
    return intensity <= RESTART_WINDOW_INLINE ? 0 : intensity * sizeof(uint64_t);
}

bool restart_window_init(struct restart_window *w, uint32_t intensity, uint64_t period_ns, uint64_t *ring)
{
    if (intensity > RESTART_WINDOW_INTENSITY_MAX || period_ns == 0)
        return false;
    if (ring == NULL && restart_window_ring_bytes(intensity) > 0)
        return false;
    *w = (struct restart_window){.period_ns = period_ns, .intensity = intensity};
    if (restart_window_ring_bytes(intensity) > 0)
        w->at.ring = ring;
    return true;
}

bool restart_window_grant(struct restart_window *w, uint64_t now_ns)
{
    uint64_t *times = times_of(w);

    if (w->intensity == 0)
        return false;
    if (w->count > 0)
        ASSERT(now_ns >= times[(w->next > 0 ? w->next : w->intensity) - 1]);
    if (w->count == w->intensity && inside(w, times[w->next], now_ns))
        return false;
    times[w->next] = now_ns;
    w->next = w->next + 1 < w->intensity ? w->next + 1 : 0;
    if (w->count < w->intensity)
        w->count++;
    return true;
}

/* Times grow from the oldest grant to the newest, so the first one inside the window is found by halving. */
uint32_t restart_window_used(const struct restart_window *w, uint64_t now_ns)
{
    const uint64_t *times = w->intensity <= RESTART_WINDOW_INLINE ? w->at.times : w->at.ring;
    uint32_t oldest = w->count < w->intensity ? 0 : w->next;
    uint32_t outside = 0;
    uint32_t end = w->count;

    while (outside < end) {
        uint32_t middle = outside + (end - outside) / 2;
        uint32_t place = oldest + middle;
        if (place >= w->intensity)
            place -= w->intensity;
        if (inside(w, times[place], now_ns))
            end = middle;
        else
            outside = middle + 1;
    }
    return w->count - outside;
}
