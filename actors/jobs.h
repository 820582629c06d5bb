/* Jobs: the settings of the domain, and what its actors, the front and the composition root say to each other.
 *
 * The domain's actors are workers (actors/worker.h), which run the catalogue's simulated kinds, and shards (actors/shard.h), which
 * do what is due. All they know stands in the store; settings may change while they run, and each of them looks at the newest
 * ones when it begins with something new.
 */
#ifndef COPPICE_ACTORS_JOBS_H
#define COPPICE_ACTORS_JOBS_H

#include "store/job.h"

#define JOBS_WORKERS_MAX 4096u /* slots times concurrency */

struct jobs_settings {
    /* workers */
    uint32_t workers; /* workers.count: slots */
    uint32_t
        concurrency;   /* workers.max_concurrency: jobs of one slot at a time; each has an actor of its own */
    bool outside;      /* workers.outside: nobody is missed when there are none */
    uint64_t poll_us;  /* workers.poll_interval_ms */
    uint64_t lease_us; /* workers.lease_timeout_ms */
    uint64_t heartbeat_us; /* workers.heartbeat_interval_ms */
    uint64_t speed_ppm; /* jobs.simulation_speed in millionths: divides the simulated waiting, nothing else */
    /* definitions */
    uint32_t should_fail_ppm; /* jobs.should_fail_probability in millionths */
    uint32_t runtime_max_ms;  /* limits.max_runtime_ms */
    uint32_t payload_max;     /* limits.max_job_payload_bytes */
    uint8_t types;            /* jobs.allowed_types: bit per enum job_type */
    bool priorities;          /* jobs.priorities */
    bool fair;                /* jobs.fairness is clients: they take turns (store/job_fairness.h) */
    /* limits */
    uint32_t queue_max;          /* limits.max_queue_size */
    uint32_t active_max;         /* limits.max_active_jobs */
    bool active_queues;          /* limits.active_jobs_policy is queue: accepted, and claims are held back */
    uint32_t client_running_max; /* jobs.client_concurrency; 0: none */
    /* retries */
    uint16_t retry_max;       /* retry.max */
    bool retry_auto;          /* retry.auto */
    uint64_t backoff_base_us; /* retry.backoff_base_ms */
    uint64_t backoff_most_us; /* retry.backoff_max_ms */
    uint64_t kept_us;         /* retention.jobs_days */
};

/* As the specification has them in brackets. */
extern const struct jobs_settings jobs_defaults;
/* Boot and reload; one thread at a time. Takes effect with the next job. */
void jobs_configure(const struct jobs_settings *settings);
/* Any thread; the caller's copy. */
struct jobs_settings jobs_settings(void);

/* Of the retry that follows attempt `attempt`, from half to all of it by chance. From an actor. */
uint64_t jobs_backoff_us(uint16_t attempt, const struct jobs_settings *settings);

/* Until when, by steady time, no claim ends that a worker outside has from an earlier start: it may have been told nothing while the
 * server was down (J5). */
uint64_t jobs_grace_us(void);

/* Time has been moved (a clock that is tried out): whoever waits for wall or steady time looks again. */
#define JOBS_CLOCK_GROUP "jobs.clock"
#define JOBS_CLOCK       0x00efff20u
void jobs_clock_moved(void);
/* What a claim says by the settings is another thing now: workers that wait for jobs say theirs anew. */
void jobs_claim_anew(void);

/* ---- for telemetry: what happened to a job, after its commit. From an actor. ---- */

/* A span of another trace (http/trace.h), by its ids. */
struct job_link {
    uint8_t trace_id[16], span_id[8];
};

struct job_told {
    struct uuid id, client;
    uint8_t event, from, to;
    uint8_t kind;
    uint8_t failure;
    uint16_t attempt;
    uint64_t waited_us;          /* JOB_ASSIGN: in the queue; JOB_START: ASSIGNED */
    uint64_t ran_us;             /* final events: since it started */
    struct span kind_name;       /* of a user's kind */
    const struct job_link *link; /* the request that asked for it, when it isn't the submit's; or NULL */
};
/* Counts it, measures it, records its spans (actors/job_spans.h), and writes a line to the log (JOB-409). */
void jobs_tell(const struct job_told *told);
/* It has failed, as was told, and was retried by itself in the same commit. */
void jobs_tell_retried(const struct job_told *told);
/* A job that lacks one of its events, and was marked: whoever claims it brings it to FAILED (AMB-J-12). */
void jobs_tell_incomplete(const struct uuid *id, const struct uuid *client);
/* A deferred job whose time has come, and for which there is no room: it stays where it is (AMB-J-14). */
void jobs_tell_queue_full(const struct uuid *id, const struct uuid *client);

#endif
