/* Figures of jobs: what is counted and measured of them since the process began, for metrics (spec/jobs.md, 19).
 *
 * Fed by jobs_tell, after each commit. A scheduler adds to cells of its own, without a lock; those beyond JOB_FIGURES_LANES share the
 * last lane. Any thread may read. Memory: three histograms of 30 KiB a lane, of which a page becomes resident when it is used.
 */
#ifndef COPPICE_ACTORS_JOB_FIGURES_H
#define COPPICE_ACTORS_JOB_FIGURES_H

#include "actors/jobs.h"
#include "runtime/histogram.h"

#define JOB_FIGURES_LANES 16u
#define JOB_FIGURES_KINDS (WORK_KINDS_COUNT + 2u) /* by number; the last one: kinds of users */

/* X(ID, "what") */
#define JOB_FIGURES(X)                                                 \
    X(JOB_FIGURE_KEY_NEW, "submits with a key that was new")           \
    X(JOB_FIGURE_KEY_HIT, "submits with a key that was known")         \
    X(JOB_FIGURE_RETRY_SUCCEEDED, "jobs that succeeded after a retry") \
    X(JOB_FIGURE_HEARTBEAT, "heartbeats that were taken")
enum job_figure {
#define X(id, what) id,
    JOB_FIGURES(X)
#undef X
        JOB_FIGURE_COUNT
};

/* X(ID, "what"), in microseconds. */
#define JOB_TIMES(X)                                    \
    X(JOB_TIME_QUEUED, "from QUEUED to the claim")      \
    X(JOB_TIME_ASSIGNED, "from the claim to the start") \
    X(JOB_TIME_EXECUTION, "from the start to the final state")
enum job_time {
#define X(id, what) id,
    JOB_TIMES(X)
#undef X
        JOB_TIME_COUNT
};

void job_figures_note(const struct job_told *told);
void job_figures_add(enum job_figure figure);

uint64_t job_figures_events(uint8_t event);
uint64_t job_figures_count(enum job_figure figure);
/* Jobs of the kind that came to this final state. */
uint64_t job_figures_outcome(uint32_t kind, uint8_t state);
/* Merged from all lanes; the caller's memory. */
void job_figures_time(enum job_time time, struct histogram *ret);

#endif
