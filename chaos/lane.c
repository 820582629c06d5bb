#include "chaos/lane.h"

#include <stdlib.h>

#include "chaos/brief.h"
#include "chaos/tally.h"
#include "chaos/verdict.h"
#include "runtime/hash.h"

enum { BUCKETS = 1 << 16, ROOM = 8 };

static struct lane *buckets[BUCKETS];
static uint32_t lanes;

static struct lane **bucket_of(const struct uuid *job, uint32_t inbox)
{
    struct hash_key key = {inbox, 0};
    return &buckets[hash_sip24(&key, job->bytes, sizeof(job->bytes)) % BUCKETS];
}

static struct lane **place_of(const struct uuid *job, uint32_t inbox)
{
    struct lane **at = bucket_of(job, inbox);
    while (*at && ((*at)->inbox != inbox || !uuid_equal(&(*at)->job, job)))
        at = &(*at)->next;
    return at;
}

struct lane *lane_of(const struct uuid *job, uint32_t inbox)
{
    struct lane **at = place_of(job, inbox);
    if (!*at) {
        struct lane *lane = calloc(1, sizeof(*lane));
        if (!lane)
            exit(2);
        lane->job = *job, lane->inbox = inbox;
        *at = lane;
        lanes++;
    }
    return *at;
}

void lane_drop(const struct uuid *job, uint32_t inbox)
{
    struct lane **at = place_of(job, inbox), *lane = *at;
    if (!lane)
        return;
    *at = lane->next;
    free(lane->deliveries);
    free(lane);
    lanes--;
}

uint32_t lanes_left(void)
{
    return lanes;
}

/* ---- attempts ---- */

static bool spent(const struct delivery *d)
{
    return d->done || d->attempts >= brief.hook_retries + 1;
}

static struct delivery *find(struct lane *lane, const struct uuid *event)
{
    for (uint32_t i = 0; i < lane->count; i++)
        if (uuid_equal(&lane->deliveries[i].event.id, event))
            return &lane->deliveries[i];
    return NULL;
}

static struct delivery *begin(struct lane *lane, const struct event *event, const struct uuid *id)
{
    const struct delivery *last = lane->count ? &lane->deliveries[lane->count - 1] : NULL;
    VERDICT(HOOK_ORDER, !last || spent(last), "%s comes while %s is open, %u attempts old",
            event_name(event->name), last ? event_name(last->event.name) : "", last ? last->attempts : 0);
    VERDICT(HOOK_ORDER, !last || event->at_ms + (event->name == EVENT_EMITTED) > last->event.at_ms,
            "%s comes after %s, and happened before it", event_name(event->name),
            last ? event_name(last->event.name) : "");
    if (lane->count == lane->room) {
        lane->room = lane->room ? lane->room * 2 : ROOM;
        lane->deliveries = realloc(lane->deliveries, lane->room * sizeof(*lane->deliveries));
        if (!lane->deliveries)
            exit(2);
    }
    struct delivery *d = &lane->deliveries[lane->count++];
    *d = (struct delivery){.event = *event, .id = *id};
    return d;
}

void lane_take(struct lane *lane, const struct event *event, const struct uuid *id, uint64_t attempt,
               bool late)
{
    struct delivery *d = find(lane, &event->id);
    const char *name = event_name(event->name);
    char job[UUID_TEXT_SIZE];
    uuid_format(&lane->job, job);
    if (!d) {
        d = begin(lane, event, id);
    } else {
        VERDICT(HOOK_ORDER, d == &lane->deliveries[lane->count - 1], "%s comes again after %s", name,
                event_name(lane->deliveries[lane->count - 1].event.name));
        VERDICT(HOOK_SHAPE, uuid_equal(&d->id, id) && d->event.print == event->print,
                "attempt %llu of %s has another id or content", (unsigned long long)attempt, name);
        if (d->done)
            tally(COUNT_DELIVERIES_AGAIN);
    }
    /* A server that ended between sending and remembering sends the same attempt again, and one whose kept connection was
     * closed can't know whether it was read. */
    if (attempt > d->attempts + 1)
        tally(COUNT_UNSEEN);
    VERDICT(HOOK_ATTEMPTS,
            attempt == d->attempts + 1 || ((brief.restarts || d->silent) && attempt == d->attempts) ||
                (late && attempt > d->attempts),
            "%s of %s: attempt %llu comes after %u, which was %s", name, job, (unsigned long long)attempt,
            d->attempts, d->done ? "answered 2xx" : "not answered 2xx");
    VERDICT(HOOK_ATTEMPTS, attempt <= brief.hook_retries + 1, "%s: attempt %llu of %llu at most", name,
            (unsigned long long)attempt, (unsigned long long)brief.hook_retries + 1);
    d->attempts = (uint32_t)attempt;
}

void lane_answer(const struct uuid *job, uint32_t inbox, const struct uuid *event, int status)
{
    struct lane *lane = *place_of(job, inbox);
    struct delivery *d = lane ? find(lane, event) : NULL;
    if (!d)
        return;
    d->done |= status >= 200 && status < 300;
    d->silent = !status;
    strand_wake_all(&lane->changed);
}

/* ---- in the end ---- */

static bool wanted(const struct event *event, uint32_t events)
{
    return events >> event->name & 1;
}

static uint32_t count_wanted(const struct trail *trail, uint32_t events, bool emitted)
{
    uint32_t count = emitted;
    for (uint32_t i = 0; i < trail->count; i++)
        count += wanted(&trail->events[i], events);
    return count;
}

static uint32_t count_spent(const struct lane *lane)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < lane->count; i++)
        count += spent(&lane->deliveries[i]);
    return count;
}

#define PATIENCE_NS (brief.patience_s * UINT64_C(1000000000))

bool lane_await(struct lane *lane)
{
    while (!count_spent(lane))
        if (!strand_wait(&lane->changed, strand_now() + PATIENCE_NS))
            return false;
    return true;
}

void lane_judge(struct lane *lane, const struct trail *trail, uint32_t events, bool emitted)
{
    uint32_t must = count_wanted(trail, events, emitted), matched = 0;
    while (count_spent(lane) < must && strand_wait(&lane->changed, strand_now() + PATIENCE_NS))
        ;
    for (uint32_t i = 0; i < trail->count; i++) {
        const struct event *event = &trail->events[i];
        if (!wanted(event, events))
            continue;
        const struct delivery *d = find(lane, &event->id);
        VERDICT(HOOK_ALL, d && spent(d), "%s %s", event_name(event->name),
                d ? "was not tried again" : "has not come");
        VERDICT(KEPT, !d || d->event.print == event->print, "%s was delivered otherwise than it is stored",
                event_name(event->name));
        matched += d != NULL;
    }
    for (uint32_t i = 0; i < lane->count; i++)
        if (lane->deliveries[i].event.name == EVENT_EMITTED) {
            VERDICT(HOOK_ALL, emitted, "job.emitted of a job that is no EMIT_EVENT, or did not succeed");
            matched += emitted;
        }
    VERDICT(HOOK_ALL, matched == lane->count && matched == must, "%u events came, %u were asked for",
            lane->count, must);
}
