#include "http/job_metrics.h"

#include <stdio.h>
#include <string.h>

#include "actors/job_figures.h"
#include "http/commit.h"
#include "runtime/actor.h"
#include "runtime/runtime.h"
#include "runtime/telemetry.h"
#include "store/job_submit.h"
#include "store/view.h"

/* ---- counters of events ---- */

static void write_events(const struct exposition *t)
{
    static const struct {
        const char *name, *help;
        uint8_t events[4]; /* JOB_EVENT_COUNT: no more */
    } rows[] = {
        {"jobs_submitted", "Jobs that were accepted.", {JOB_CREATE, JOB_EVENT_COUNT}},
        {"jobs_queued", "Transitions into QUEUED.", {JOB_ENQUEUE, JOB_RETRY, JOB_REQUEUE, JOB_EVENT_COUNT}},
        {"jobs_running", "Transitions into RUNNING.", {JOB_START, JOB_EVENT_COUNT}},
        {"jobs_succeeded", "Transitions into SUCCEEDED.", {JOB_SUCCEED, JOB_EVENT_COUNT}},
        {"jobs_failed", "Transitions into FAILED.", {JOB_FAIL, JOB_TIME_OUT, JOB_EVENT_COUNT}},
        {"jobs_canceled", "Transitions into CANCELED.", {JOB_CANCEL, JOB_EVENT_COUNT}},
        {"job_retries", "Retries of failed jobs.", {JOB_RETRY, JOB_EVENT_COUNT}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        uint64_t sum = 0;
        for (size_t e = 0; e < 4 && rows[i].events[e] != JOB_EVENT_COUNT; e++)
            sum += job_figures_events(rows[i].events[e]);
        exposition_counter(t, rows[i].name, rows[i].help, sum);
    }
}

/* The writer tells of them, by telemetry. */
static uint64_t refused_transitions(void)
{
    const struct telemetry *telemetry = runtime_telemetry(runtime_self());
    return telemetry ? telemetry_counter_sum(telemetry, TELEMETRY_JOB_REFUSED) : 0;
}

static void write_figures(const struct exposition *t)
{
    exposition_counter(t, "job_retries_succeeded", "Jobs that succeeded in a later attempt than the first.",
                       job_figures_count(JOB_FIGURE_RETRY_SUCCEEDED));
    exposition_counter(t, "job_invalid_transitions", "Changes of state that the lifecycle refused.",
                       refused_transitions());
    exposition_counter(t, "idempotency_hits", "Submits that were answered with an earlier one's job.",
                       job_figures_count(JOB_FIGURE_KEY_HIT));
    exposition_counter(t, "idempotency_new", "Submits with a key that was new.",
                       job_figures_count(JOB_FIGURE_KEY_NEW));
    exposition_counter(t, "worker_heartbeats", "Heartbeats of workers that were taken.",
                       job_figures_count(JOB_FIGURE_HEARTBEAT));
}

/* ---- by kind and outcome ---- */

static const char *name_of(uint32_t kind)
{
    const struct work_kind_row *row = work_kind_row((uint8_t)kind);
    return row ? row->name : "x";
}

static void write_scenarios(const struct exposition *t)
{
    char line[192];
    exposition_family(t, "jobs_scenario", "counter", "Jobs that came to a final state, by kind and outcome.");
    for (uint32_t kind = 1; kind < JOB_FIGURES_KINDS; kind++)
        for (unsigned state = JOB_SUCCEEDED; state <= JOB_CANCELED; state++) {
            snprintf(line, sizeof(line), "jobs_scenario_total{work_kind=\"%s\",outcome=\"%s\"} ",
                     name_of(kind), job_outcome_name((uint8_t)state));
            json_sink_text(t->sink, line);
            json_sink_uint(t->sink, job_figures_outcome(kind, (uint8_t)state));
            json_sink_text(t->sink, "\n");
        }
}

/* ---- times ---- */

static void write_times(const struct exposition *t)
{
    static const struct {
        enum job_time time;
        const char *name, *help;
    } rows[] = {
        {JOB_TIME_QUEUED, "job_queue_wait_seconds", "From QUEUED to the claim."},
        {JOB_TIME_ASSIGNED, "job_assigned_wait_seconds", "From the claim to the start."},
        {JOB_TIME_EXECUTION, "job_execution_seconds", "From the start to the final state."},
    };
    struct arena_mark mark = actor_arena_mark();
    struct histogram *merged = actor_alloc(sizeof(*merged));
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        job_figures_time(rows[i].time, merged);
        exposition_histogram(t, rows[i].name, rows[i].help, merged);
    }
    actor_arena_reset(mark);
}

/* ---- what is there now ---- */

static void write_states(const struct exposition *t, const int64_t counts[JOB_STATE_COUNT])
{
    char line[96];
    exposition_gauge(t, "job_queue_depth", "Jobs that are QUEUED.", (uint64_t)counts[JOB_QUEUED]);
    exposition_family(t, "coppice_jobs", "gauge", "Jobs in the store, by state.");
    for (unsigned state = 0; state < JOB_STATE_COUNT; state++) {
        snprintf(line, sizeof(line), "coppice_jobs{state=\"%s\"} ", job_state_name((uint8_t)state));
        json_sink_text(t->sink, line);
        json_sink_int(t->sink, counts[state]);
        json_sink_text(t->sink, "\n");
    }
}

static void write_workers(const struct exposition *t)
{
    const struct store *store = store_here();
    exposition_gauge(t, "workers_available", "Workers that wait for a job.",
                     store ? atomic_load_explicit(&store->standing, memory_order_relaxed) : 0);
}

static void write_now(const struct exposition *t)
{
    int64_t counts[JOB_STATE_COUNT] = {0};
    struct view *view = store_here() ? view_open(store_here()) : NULL;
    enum error e = view ? OK : ERR_UNAVAILABLE;
    for (unsigned state = 0; state < JOB_STATE_COUNT && !e; state++)
        e = job_count(&view->txn, (uint8_t)state, &counts[state]);
    if (view)
        view_close(view);
    if (!e)
        write_states(t, counts);
    write_workers(t);
}

static void write_storage(const struct exposition *t)
{
    struct commit_figures f = commit_figures();
    exposition_family(t, "storage_operations", "counter",
                      "What requests asked the store for: commands, and reads of jobs.");
    exposition_sample(t, "storage_operations_total", "operation", "write", f.commits);
    exposition_sample(t, "storage_operations_total", "operation", "read", f.reads);
    exposition_family(t, "storage_errors", "counter", "Those of them that the store couldn't do.");
    exposition_sample(t, "storage_errors_total", "operation", "write", f.failed);
    exposition_sample(t, "storage_errors_total", "operation", "read", f.reads_failed);
}

void job_metrics_write(const struct exposition *t)
{
    write_events(t);
    write_figures(t);
    write_scenarios(t);
    write_times(t);
    write_now(t);
    write_storage(t);
}
