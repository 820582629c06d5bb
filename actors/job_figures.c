#include "actors/job_figures.h"

#include "runtime/actor.h"

struct lane {
    _Alignas(64) _Atomic uint64_t events[JOB_EVENT_COUNT];
    _Atomic uint64_t figures[JOB_FIGURE_COUNT];
    _Atomic uint64_t outcomes[JOB_FIGURES_KINDS][JOB_STATE_COUNT];
    struct histogram times[JOB_TIME_COUNT];
};
static struct lane lanes[JOB_FIGURES_LANES];

static struct lane *mine(void)
{
    uint32_t scheduler = (uint32_t)actor_scheduler();
    return &lanes[scheduler < JOB_FIGURES_LANES ? scheduler : JOB_FIGURES_LANES - 1];
}

static void add(_Atomic uint64_t *to)
{
    atomic_fetch_add_explicit(to, 1, memory_order_relaxed);
}

static uint32_t kind_of(uint8_t kind)
{
    return kind <= WORK_KINDS_COUNT ? kind : JOB_FIGURES_KINDS - 1;
}

void job_figures_note(const struct job_told *told)
{
    struct lane *lane = mine();
    if (told->event < JOB_EVENT_COUNT)
        add(&lane->events[told->event]);
    if (told->event == JOB_ASSIGN)
        histogram_record(&lane->times[JOB_TIME_QUEUED], told->waited_us);
    if (told->event == JOB_START)
        histogram_record(&lane->times[JOB_TIME_ASSIGNED], told->waited_us);
    if (!job_state_final(told->to))
        return;
    add(&lane->outcomes[kind_of(told->kind)][told->to]);
    if (told->from == JOB_RUNNING)
        histogram_record(&lane->times[JOB_TIME_EXECUTION], told->ran_us);
    if (told->to == JOB_SUCCEEDED && told->attempt > 1)
        add(&lane->figures[JOB_FIGURE_RETRY_SUCCEEDED]);
}

void job_figures_add(enum job_figure figure)
{
    add(&mine()->figures[figure]);
}

uint64_t job_figures_events(uint8_t event)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < JOB_FIGURES_LANES; i++)
        sum += atomic_load_explicit(&lanes[i].events[event], memory_order_relaxed);
    return sum;
}

uint64_t job_figures_count(enum job_figure figure)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < JOB_FIGURES_LANES; i++)
        sum += atomic_load_explicit(&lanes[i].figures[figure], memory_order_relaxed);
    return sum;
}

uint64_t job_figures_outcome(uint32_t kind, uint8_t state)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < JOB_FIGURES_LANES; i++)
        sum += atomic_load_explicit(&lanes[i].outcomes[kind][state], memory_order_relaxed);
    return sum;
}

void job_figures_time(enum job_time time, struct histogram *ret)
{
    histogram_clear(ret);
    for (uint32_t i = 0; i < JOB_FIGURES_LANES; i++)
        histogram_merge(ret, &lanes[i].times[time]);
}
