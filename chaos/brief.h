/* Brief: what a run of chaos/traffic is to do, and what it was told about the server.
 *
 * The contract leaves numbers to the server's configuration; those that a check needs are options, with the contract's
 * defaults.
 */
#ifndef COPPICE_CHAOS_BRIEF_H
#define COPPICE_CHAOS_BRIEF_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

/* X(field, "name", preset, most, "ARGUMENT", "prose"): whole numbers */
#define BRIEF_NUMBERS(X)                                                                             \
    X(jobs, "jobs", 400, 100000000, "N", "how many")                                                 \
    X(rate, "rate", 50, 1000000, "N", "jobs submitted each second")                                  \
    X(open, "open", 4096, 16000, "N", "jobs at one time; more are submitted when others have ended") \
    X(clients, "clients", 8, 512, "N", "that submit them, each with a key of its own")               \
    X(seed, "seed", 1, UINT64_MAX, "S", "of all choices")                                            \
    X(rounds, "refusals", 1, 1000, "N", "times through the catalogue of refusals; 0: none")          \
    X(late_ms, "late-ms", 1000, 86400000, "MS", "later than this is too late (contract: 1 s)")       \
    X(patience_s, "patience-s", 60, 86400, "S", "a job that does not change for so long is stuck")   \
    X(ahead_ms, "ahead-ms", 2000, 86400000, "MS", "how far ahead scheduled jobs are due")            \
    X(retries, "retries", 3, 100, "N", "retry.max")                                                  \
    X(retry_base_ms, "retry-base-ms", 1000, 86400000, "MS", "retry.backoff_base_ms")                 \
    X(retry_max_ms, "retry-max-ms", 60000, 86400000, "MS", "retry.backoff_max_ms")                   \
    X(runtime_ms, "runtime-ms", 120000, 86400000, "MS", "limits.max_runtime_ms")                     \
    X(payload_max, "payload-max", 262144, 1u << 30, "BYTES", "limits.max_job_payload_bytes")         \
    X(body_max, "body-max", 1048576, 4u << 20, "BYTES", "limits.max_body_bytes")                     \
    X(fail_ppm, "fail-ppm", 200000, 1000000, "N", "jobs.should_fail_probability in millionths")      \
    X(hook_timeout_ms, "webhook-timeout-ms", 5000, 86400000, "MS", "webhooks.timeout_ms")            \
    X(hook_retries, "webhook-retries", 5, 100, "N", "webhooks.max_retries")                          \
    X(per_minute, "requests-per-minute", 600, 1000000, "N",                                          \
      "limits.requests_per_minute; one client goes beyond it; 0: none does")                         \
    X(anonymous, "anonymous-per-minute", 60, 1000000, "N",                                           \
      "limits.anonymous_requests_per_minute; one address goes beyond it; 0: none does")              \
    X(queue_size, "queue-size", 0, 100000, "N", "limits.max_queue_size: it is filled; 0: it is not") \
    X(active_jobs, "active-jobs", 0, 100000, "N",                                                    \
      "limits.max_active_jobs: there are so many; 0: there are not")

/* X(field, "name", "prose") */
#define BRIEF_FLAGS(X)                                                             \
    X(no_webhooks, "no-webhooks", "the server can't reach this machine")           \
    X(restarts, "restarts", "the server may go away and come back during the run") \
    X(json, "json", "print the report as JSON")

struct brief {
#define X(field, name, preset, most, argument, prose) uint64_t field;
    BRIEF_NUMBERS(X)
#undef X
#define X(field, name, prose) bool field;
    BRIEF_FLAGS(X)
#undef X
    double speed;                        /* jobs.simulation_speed */
    const char *url;                     /* http://HOST[:PORT] */
    const char *only;                    /* kinds with commas between them; NULL: all */
    const char *secret;                  /* of the webhooks' signatures, as whsec_...; NULL: not known */
    struct sockaddr_in server, receiver; /* the receiver's ports are chosen when it is 0 */
    char host[128];                      /* as the Host field names it */
    bool loopback; /* the server is on this machine: callers have addresses of their own */
};

extern struct brief brief;

/* Ends the program with a sentence when they make no sense, or were only asked for. */
void brief_read(int argc, char **argv);

#endif
