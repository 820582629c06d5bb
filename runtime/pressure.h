/* Pressure: how full a bounded queue is, as one of four levels, and what each level does to those who use it.
 *
 *     level      entered   left     effect
 *     normal                        none
 *     warn       0.70      0.65     visible: gauges and transition events
 *     degraded   0.85      0.80     low priority is deferred, deadlines are cut to one half
 *     shed       0.95      0.90     low and normal priority are refused, deadlines are cut to one quarter
 *
 * A level is entered when the occupancy ratio reaches the first number, and left downwards when it has come
 * down to the second, 0.05 below. A jump over several levels is one transition. Ratios are compared in
 * integers: depth * 100 against percent * capacity.
 *
 * A pressure belongs to the one who owns the queue: no locks, 12 bytes, so that every mailbox can have one.
 * The check for each push and pop is pressure_note: one comparison as long as the depth stays within the
 * level's bounds. Reported transitions are telemetry (pressure.transition and the pressure gauges); nothing
 * here blocks or allocates.
 */
#ifndef COPPICE_RUNTIME_PRESSURE_H
#define COPPICE_RUNTIME_PRESSURE_H

#include <stdbool.h>
#include <stdint.h>

#define PRESSURE_LEVELS(X)  \
    X(NORMAL, "normal")     \
    X(WARN, "warn")         \
    X(DEGRADED, "degraded") \
    X(SHED, "shed")

enum pressure_level {
#define X(id, name) PRESSURE_##id,
    PRESSURE_LEVELS(X)
#undef X
        PRESSURE_LEVEL_COUNT
};

/* Probes and calls of operators are PRIORITY_HIGH, always. */
enum pressure_priority { PRIORITY_LOW, PRIORITY_NORMAL, PRIORITY_HIGH, PRIORITY_COUNT };

enum pressure_verdict {
    PRESSURE_ADMIT,
    PRESSURE_DEFER,  /* keep it, let others go first */
    PRESSURE_REFUSE, /* say so to whoever sent it: 503 with Retry-After at the front */
};

/* All zeros is not a pressure; use pressure_init. */
struct pressure {
    uint32_t low; /* the level holds for depths low .. low + span - 1 */
    uint32_t span;
    uint8_t level; /* enum pressure_level */
};

struct pressure_transition {
    enum pressure_level from, to;
    uint32_t depth, capacity;
};

/* Level normal, for a queue of this capacity (at least 1) which is empty. */
void pressure_init(struct pressure *pressure, uint32_t capacity);

/* Whether this depth leaves the level. */
static inline bool pressure_crossed(const struct pressure *pressure, uint32_t depth)
{
    return depth - pressure->low >= pressure->span;
}

/* The level for this depth; true when it changed, with *ret_transition written. `capacity` (at least 1) may
 * differ from the one before. Emits nothing. */
bool pressure_update(struct pressure *pressure, uint32_t depth, uint32_t capacity,
                     struct pressure_transition *ret_transition);

/* Tells telemetry of one transition: the event and the component's gauges. `component` is one of few (they
 * are labels); `partition` names the queue within it. Strings are borrowed for the call. */
void pressure_report(const struct pressure_transition *transition, const char *component,
                     const char *partition);

/* Update and report. What pressure_note calls; directly where the capacity changed. */
void pressure_cross(struct pressure *pressure, uint32_t depth, uint32_t capacity, const char *component,
                    const char *partition);

/* For every push and pop. Exactly one pressure.transition for each change of the level. A queue that goes
 * away is noted as empty first, so that nobody takes its level for a living one. */
static inline void pressure_note(struct pressure *pressure, uint32_t depth, uint32_t capacity,
                                 const char *component, const char *partition)
{
    if (__builtin_expect(pressure_crossed(pressure, depth), 0))
        pressure_cross(pressure, depth, capacity, component, partition);
}

enum pressure_verdict pressure_admits(enum pressure_level level, enum pressure_priority priority);
/* Percent of the usual time that a deadline may take at this level: 100, 100, 50, 25. */
uint32_t pressure_deadline_scale(enum pressure_level level);
const char *pressure_level_name(enum pressure_level level);

#endif
