/* Tally: what was done, how often and how long it took. */
#ifndef COPPICE_CHAOS_TALLY_H
#define COPPICE_CHAOS_TALLY_H

#include <stdint.h>
#include <stdio.h>

#include "runtime/json.h"

/* X(ID, "name"): how long, in milliseconds with three decimals. Operations of the contract come first. */
#define TIMES(X)                              \
    X(CREATE_CLIENT, "create client")         \
    X(CREATE_KEY, "create key")               \
    X(RENEW_KEY, "renew key")                 \
    X(REVOKE_KEY, "revoke key")               \
    X(SUBMIT, "submit")                       \
    X(GET, "get job")                         \
    X(REPORT, "get report")                   \
    X(EVENTS, "list events")                  \
    X(CANCEL, "cancel")                       \
    X(RETRY, "retry")                         \
    X(LIST, "list jobs")                      \
    X(REGISTER, "register webhook")           \
    X(UNREGISTER, "unregister webhook")       \
    X(OTHER, "none of these")                 \
    X(QUEUED, "queued to assigned")           \
    X(STARTED, "assigned to running")         \
    X(OVERRUN, "run, beyond its duration")    \
    X(DUE, "scheduled time to queued")        \
    X(DONE, "submitted to seen final")        \
    X(NOTICE, "event to first attempt, good") \
    X(NOTIFIED, "event to delivered, good")

enum time {
#define X(id, name) TIME_##id,
    TIMES(X)
#undef X
        TIME_COUNT
};
enum { OPERATION_COUNT = TIME_OTHER + 1 };

#define COUNTS(X)                                                                     \
    X(SUBMITTED, "jobs accepted")                                                     \
    X(REPEATS, "submits that named a job again")                                      \
    X(HELD_BACK, "submits that came late: too many jobs were open")                   \
    X(LIMITED, "answers 429 that were waited for")                                    \
    X(BUSY, "answers 503 that were waited for")                                       \
    X(AWAY, "requests without an answer, sent again")                                 \
    X(CANCELED_CREATED, "canceled while CREATED")                                     \
    X(CANCELED_QUEUED, "canceled while QUEUED")                                       \
    X(CANCELED_ASSIGNED, "canceled while ASSIGNED")                                   \
    X(CANCELED_RUNNING, "canceled while RUNNING")                                     \
    X(CANCELED_LATE, "cancels that came too late")                                    \
    X(RETRIES, "retries accepted")                                                    \
    X(RUNNERS_LOST, "runs that ended with their runner")                              \
    X(REQUEUED, "assignments that ended with their lease")                            \
    X(EVENTS_SEEN, "events stored")                                                   \
    X(DELIVERIES, "webhook attempts received")                                        \
    X(DELIVERIES_FAILED, "of them failed on purpose")                                 \
    X(UNSEEN, "gaps in the numbers of attempts, at receivers that hang or come late") \
    X(DELIVERIES_AGAIN, "of them after a 2xx for the same (at least once)")

enum count {
#define X(id, name) COUNT_##id,
    COUNTS(X)
#undef X
        COUNT_COUNT
};

void tally_time(enum time time, uint64_t ns);
void tally(enum count count);
uint64_t tally_of(enum count count);
uint64_t tally_times(enum time time); /* how many */
uint64_t tally_requests(void);
const char *time_name(enum time time);

void tally_print(FILE *to);
void tally_json(struct json *json); /* members "times" and "counts" */

#endif
