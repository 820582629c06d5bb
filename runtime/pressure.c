#include "runtime/pressure.h"

#include "runtime/assert.h"
#include "runtime/telemetry.h"

/* The whole machine: from any level, the depth alone decides which one is next, by these bounds in percent.
 */
static const struct level_row {
    uint32_t enter; /* at or above */
    uint32_t leave; /* downwards, at or below */
    enum pressure_verdict verdicts[PRIORITY_COUNT];
    uint32_t deadline_scale;
    enum telemetry_gauge gauge; /* of queues at this level; not for normal */
} levels[PRESSURE_LEVEL_COUNT] = {
    [PRESSURE_NORMAL] =
        {
            .verdicts = {[PRIORITY_LOW] = PRESSURE_ADMIT,
                         [PRIORITY_NORMAL] = PRESSURE_ADMIT,
                         [PRIORITY_HIGH] = PRESSURE_ADMIT},
            .deadline_scale = 100,
        },
    [PRESSURE_WARN] =
        {
            .enter = 70,
            .leave = 65,
            .verdicts = {[PRIORITY_LOW] = PRESSURE_ADMIT,
                         [PRIORITY_NORMAL] = PRESSURE_ADMIT,
                         [PRIORITY_HIGH] = PRESSURE_ADMIT},
            .deadline_scale = 100,
            .gauge = TELEMETRY_GAUGE_PRESSURE_WARN,
        },
    [PRESSURE_DEGRADED] =
        {
            .enter = 85,
            .leave = 80,
            .verdicts = {[PRIORITY_LOW] = PRESSURE_DEFER,
                         [PRIORITY_NORMAL] = PRESSURE_ADMIT,
                         [PRIORITY_HIGH] = PRESSURE_ADMIT},
            .deadline_scale = 50,
            .gauge = TELEMETRY_GAUGE_PRESSURE_DEGRADED,
        },
    [PRESSURE_SHED] =
        {
            .enter = 95,
            .leave = 90,
            .verdicts = {[PRIORITY_LOW] = PRESSURE_REFUSE,
                         [PRIORITY_NORMAL] = PRESSURE_REFUSE,
                         [PRIORITY_HIGH] = PRESSURE_ADMIT},
            .deadline_scale = 25,
            .gauge = TELEMETRY_GAUGE_PRESSURE_SHED,
        },
};

static const char *const level_names[PRESSURE_LEVEL_COUNT] = {
#define X(id, name) [PRESSURE_##id] = name,
    PRESSURE_LEVELS(X)
#undef X
};

static enum pressure_level level_next(enum pressure_level level, uint32_t depth, uint32_t capacity)
{
    uint64_t scaled = (uint64_t)depth * 100;

    for (enum pressure_level next = PRESSURE_SHED; next > level; next--)
        if (scaled >= (uint64_t)levels[next].enter * capacity)
            return next;
    for (enum pressure_level next = level; next > PRESSURE_NORMAL; next--)
        if (scaled > (uint64_t)levels[next].leave * capacity)
            return next;
    return PRESSURE_NORMAL;
}

/* The depths at which level_next stays where it is. */
static void bounds_set(struct pressure *pressure, uint32_t capacity)
{
    uint32_t level = pressure->level;
    uint64_t low = 0, end = UINT32_MAX;

    if (level > PRESSURE_NORMAL)
        low = (uint64_t)levels[level].leave * capacity / 100 + 1;
    if (level < PRESSURE_SHED)
        end = ((uint64_t)levels[level + 1].enter * capacity + 99) / 100;
    pressure->low = (uint32_t)low;
    pressure->span = (uint32_t)(end - low);
}

void pressure_init(struct pressure *pressure, uint32_t capacity)
{
    ASSERT(capacity > 0);
    *pressure = (struct pressure){.level = PRESSURE_NORMAL};
    bounds_set(pressure, capacity);
}

bool pressure_update(struct pressure *pressure, uint32_t depth, uint32_t capacity,
                     struct pressure_transition *ret_transition)
{
    enum pressure_level from = pressure->level;
    enum pressure_level to = level_next(from, depth, capacity);

    ASSERT(capacity > 0);
    pressure->level = (uint8_t)to;
    bounds_set(pressure, capacity);
    if (from == to)
        return false;
    *ret_transition =
        (struct pressure_transition){.from = from, .to = to, .depth = depth, .capacity = capacity};
    return true;
}

static enum pressure_level component_level(const char *component)
{
    for (enum pressure_level level = PRESSURE_SHED; level > PRESSURE_NORMAL; level--)
        if (telemetry_gauge_get(levels[level].gauge, component) > 0)
            return level;
    return PRESSURE_NORMAL;
}

/* Queues of one component move on several threads at once. Whoever stores a level looks again afterwards, so
 * the last one to store has seen every count that was changed before. */
static void component_level_store(const char *component)
{
    enum pressure_level level;

    do {
        level = component_level(component);
        telemetry_gauge_set(TELEMETRY_GAUGE_PRESSURE_LEVEL, component, level);
    } while (component_level(component) != level);
}

void pressure_report(const struct pressure_transition *transition, const char *component,
                     const char *partition)
{
    int64_t ratio = (int64_t)((uint64_t)transition->depth * 1000000 / transition->capacity);

    TELEMETRY(PRESSURE_TRANSITION, ratio, DIM(COMPONENT, component), DIM(PARTITION, partition),
              DIM(PRESSURE_LEVEL, level_names[transition->to]));
    if (transition->from > PRESSURE_NORMAL)
        telemetry_gauge_add(levels[transition->from].gauge, component, -1);
    if (transition->to > PRESSURE_NORMAL)
        telemetry_gauge_add(levels[transition->to].gauge, component, 1);
    component_level_store(component);
}

void pressure_cross(struct pressure *pressure, uint32_t depth, uint32_t capacity, const char *component,
                    const char *partition)
{
    struct pressure_transition transition;

    if (pressure_update(pressure, depth, capacity, &transition))
        pressure_report(&transition, component, partition);
}

enum pressure_verdict pressure_admits(enum pressure_level level, enum pressure_priority priority)
{
    ASSERT(level < PRESSURE_LEVEL_COUNT);
    ASSERT(priority < PRIORITY_COUNT);
    return levels[level].verdicts[priority];
}

uint32_t pressure_deadline_scale(enum pressure_level level)
{
    ASSERT(level < PRESSURE_LEVEL_COUNT);
    return levels[level].deadline_scale;
}

const char *pressure_level_name(enum pressure_level level)
{
    return level < PRESSURE_LEVEL_COUNT ? level_names[level] : "unknown";
}
