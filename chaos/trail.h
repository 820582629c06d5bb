/* Trail: the events that a job has left, read and judged.
 *
 * Timestamps: the server raises the later one of two events of one instant by 1 ms, so that of a job's n-th event (from 0)
 * may be up to n ms ahead of what it tells of. Whoever measures from one of them knows by how much.
 */
#ifndef COPPICE_CHAOS_TRAIL_H
#define COPPICE_CHAOS_TRAIL_H

#include "chaos/page.h"

#define STATES(X) \
    X(CREATED)    \
    X(QUEUED)     \
    X(ASSIGNED)   \
    X(RUNNING)    \
    X(SUCCEEDED)  \
    X(FAILED)     \
    X(CANCELED)

enum state {
#define X(name) STATE_##name,
    STATES(X)
#undef X
        STATE_COUNT,
    STATE_NONE = STATE_COUNT
};

/* X(NAME, "name") */
#define EVENTS(X)                 \
    X(CREATED, "job.created")     \
    X(QUEUED, "job.queued")       \
    X(ASSIGNED, "job.assigned")   \
    X(RUNNING, "job.running")     \
    X(SUCCEEDED, "job.succeeded") \
    X(FAILED, "job.failed")       \
    X(TIMED_OUT, "job.timed_out") \
    X(CANCELED, "job.canceled")   \
    X(RETRIED, "job.retried")     \
    X(REQUEUED, "job.requeued")   \
    X(EMITTED, "job.emitted")

enum event_name {
#define X(id, name) EVENT_##id,
    EVENTS(X)
#undef X
        EVENT_COUNT
};

const char *state_name(int state); /* "null" of STATE_NONE */
int state_of(const char *name);    /* STATE_NONE: there is none */
static inline bool state_final(int state)
{
    return state == STATE_SUCCEEDED || state == STATE_FAILED || state == STATE_CANCELED;
}
const char *event_name(int name);

struct event {
    struct uuid id, job;
    uint64_t print, at_ms; /* print: of all its members */
    uint8_t name, prev, next;
};

/* False: it has not the members of an event. `delivery`: it has those of a delivery besides, which are no part of it. */
bool trail_event_read(const struct page *page, const struct json_node *object, bool delivery,
                      struct event *ret);

enum { TRAIL_MAX = 128 }; /* four attempts are 18 of them */

struct trail {
    uint32_t count, attempts, runners_lost, requeued;
    struct event events[TRAIL_MAX];
};

/* What the job is that left it. */
struct trodden {
    struct uuid job;
    int kind;                          /* of the definition */
    uint64_t created_ms, execution_ms; /* execution 0: at once */
};

/* Reads an array of events, judging shape, sequence, times that increase, and payloads. False: it can't be used. */
bool trail_read(const struct page *page, const struct json_node *array, const struct trodden *job,
                struct trail *ret);
/* Of a final job: nothing too early, nothing too late; notes how long things took. */
void trail_judge_times(const struct trail *trail, const struct trodden *job);
/* The last event with this name; NULL: none. */
const struct event *trail_last(const struct trail *trail, int name);
const struct event *trail_first(const struct trail *trail, int name);

#endif
