#include "chaos/trail.h"

#include "chaos/brief.h"
#include "chaos/kind.h"
#include "chaos/tally.h"
#include "chaos/verdict.h"

static const char *const state_names[] = {
#define X(name) [STATE_##name] = #name,
    STATES(X)
#undef X
        [STATE_NONE] = "null",
};
static const char *const event_names[] = {
#define X(id, name) [EVENT_##id] = name,
    EVENTS(X)
#undef X
};

const char *state_name(int state)
{
    return state_names[state];
}

int state_of(const char *name)
{
    int state = 0;
    while (state < STATE_COUNT && strcmp(state_names[state], name) != 0)
        state++;
    return state;
}

const char *event_name(int name)
{
    return event_names[name];
}

static int event_of(const char *name)
{
    int event = 0;
    while (event < EVENT_COUNT && strcmp(event_names[event], name) != 0)
        event++;
    return event;
}

/* ---- one event ---- */

bool trail_event_read(const struct page *page, const struct json_node *object, bool delivery,
                      struct event *ret)
{
    static const char *const of_delivery[] = {"delivery_id", "delivery_attempt", NULL};
    char name[32], prev[16], next[16];
    const struct json_node *before = page_member(page, object, "prev_state");
    if (!page_uuid(page, object, "event_id", &ret->id) || !page_uuid(page, object, "job_id", &ret->job) ||
        !page_text(page, object, "event_name", name, sizeof(name)) ||
        !page_text(page, object, "next_state", next, sizeof(next)) ||
        !page_time(page, object, "timestamp", &ret->at_ms))
        return false;
    bool first = page_is(before, JSON_NULL);
    if (!first && !page_text(page, object, "prev_state", prev, sizeof(prev)))
        return false;
    ret->name = (uint8_t)event_of(name);
    ret->next = (uint8_t)state_of(next);
    ret->prev = first ? STATE_NONE : (uint8_t)state_of(prev);
    ret->print = page_print(page, object, delivery ? of_delivery : NULL);
    return ret->name < EVENT_COUNT && ret->next != STATE_NONE && (first || ret->prev != STATE_NONE);
}

/* The allowed changes, and the event of each (spec/jobs.transitions.tsv, AMB-J-42). */
static bool change_is_allowed(const struct event *event)
{
    static const struct {
        uint8_t name, prev, next;
    } changes[] = {
        {EVENT_CREATED, STATE_NONE, STATE_CREATED},        {EVENT_QUEUED, STATE_CREATED, STATE_QUEUED},
        {EVENT_CANCELED, STATE_CREATED, STATE_CANCELED},   {EVENT_ASSIGNED, STATE_QUEUED, STATE_ASSIGNED},
        {EVENT_CANCELED, STATE_QUEUED, STATE_CANCELED},    {EVENT_RUNNING, STATE_ASSIGNED, STATE_RUNNING},
        {EVENT_REQUEUED, STATE_ASSIGNED, STATE_QUEUED},    {EVENT_CANCELED, STATE_ASSIGNED, STATE_CANCELED},
        {EVENT_SUCCEEDED, STATE_RUNNING, STATE_SUCCEEDED}, {EVENT_FAILED, STATE_RUNNING, STATE_FAILED},
        {EVENT_TIMED_OUT, STATE_RUNNING, STATE_FAILED},    {EVENT_CANCELED, STATE_RUNNING, STATE_CANCELED},
        {EVENT_RETRIED, STATE_FAILED, STATE_QUEUED},
    };
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
        if (changes[i].name == event->name && changes[i].prev == event->prev &&
            changes[i].next == event->next)
            return true;
    return false;
}

/* ---- payloads ---- */

static void judge_failure(const struct page *page, const struct json_node *payload, const struct event *event,
                          const struct trodden *job, struct trail *trail)
{
    const struct kind_row *row = kind_row(job->kind);
    const char *name = row->name;
    char reason[64], code[64];
    bool timed_out = event->name == EVENT_TIMED_OUT, last = trail->attempts == brief.retries + 1;
    (void)page_text(page, payload, "reason", reason, sizeof(reason));
    (void)page_text(page, payload, "reason_code", code, sizeof(code));
    bool lost = strcmp(reason, "RUNNER_LOST") == 0;
    trail->runners_lost += lost;
    VERDICT(PAYLOAD,
            lost ? brief.restarts && !timed_out
                 : strcmp(reason, timed_out ? "TIMEOUT" : "SIMULATED_FAILURE") == 0,
            "%s: %s with the reason '%s'", name, event_name(event->name), reason);
    VERDICT(PAYLOAD, !timed_out || strcmp(code, "RFA_EXEC_TIMEOUT") == 0,
            "%s: job.timed_out has the reason_code '%s'", name, code);
    const struct json_node *retryable = page_member(page, payload, "retryable");
    VERDICT(PAYLOAD,
            !retryable || page_is(retryable, row->retryable || timed_out || lost ? JSON_TRUE : JSON_FALSE),
            "%s: %s says the wrong thing of being retryable", name, reason);
    VERDICT(PAYLOAD,
            page_flag(page, payload, "final") == last &&
                page_flag(page, payload, "retries_exhausted") == last,
            "%s: the failure of attempt %u of %llu must %sbe final", name, trail->attempts,
            (unsigned long long)brief.retries + 1, last ? "" : "not ");
    if (row->progress && !lost) {
        const struct json_node *progress = page_member(page, payload, "progress");
        double share = page_is(progress, JSON_NUMBER) ? json_double_of(&page->json, progress) : -1;
        VERDICT(PAYLOAD, share * 100 == (double)row->progress, "%s fails at %f", name, share);
    }
}

static void judge_success(const struct page *page, const struct json_node *payload, const struct trodden *job)
{
    const struct kind_row *row = kind_row(job->kind);
    const struct json_node *outputs = page_member(page, payload, "outputs");
    uint64_t count = 0, bytes = 0;
    VERDICT(PAYLOAD,
            page_number(page, outputs, "count", &count) && page_number(page, outputs, "bytes", &bytes) &&
                count == row->outputs && bytes == row->payload,
            "%s leaves %llu outputs, %llu bytes in all", row->name, (unsigned long long)count,
            (unsigned long long)bytes);
}

static void judge_payload(const struct page *page, const struct json_node *object, const struct event *event,
                          const struct trodden *job, struct trail *trail)
{
    const struct json_node *payload = page_member(page, object, "payload");
    char scenario[64], cause[64];
    uint64_t attempt;
    (void)page_text(page, payload, "scenario", scenario, sizeof(scenario));
    VERDICT(PAYLOAD, strcmp(scenario, kind_name(job->kind)) == 0, "%s: %s has the scenario '%s'",
            kind_name(job->kind), event_name(event->name), scenario);
    if (page_number(page, payload, "attempt", &attempt) && event->name != EVENT_RETRIED)
        VERDICT(PAYLOAD, attempt == trail->attempts, "%s: %s of attempt %u says it is of %llu",
                kind_name(job->kind), event_name(event->name), trail->attempts, (unsigned long long)attempt);
    switch (event->name) {
    case EVENT_FAILED:
    case EVENT_TIMED_OUT:
        judge_failure(page, payload, event, job, trail);
        break;
    case EVENT_SUCCEEDED:
        judge_success(page, payload, job);
        break;
    case EVENT_REQUEUED:
        (void)page_text(page, payload, "cause", cause, sizeof(cause));
        trail->requeued++;
        VERDICT(PAYLOAD, strcmp(cause, "lease_expired") == 0, "job.requeued because of '%s'", cause);
        break;
    default:
        break;
    }
}

/* ---- all of them ---- */

static bool add(const struct page *page, const struct json_node *object, const struct trodden *job,
                struct trail *trail)
{
    struct event *event = &trail->events[trail->count];
    const struct event *before = trail->count ? event - 1 : NULL;
    char id[UUID_TEXT_SIZE];
    uuid_format(&job->job, id);
    if (!VERDICT(EVENT,
                 trail_event_read(page, object, false, event) && uuid_equal(&event->job, &job->job) &&
                     event->name != EVENT_EMITTED,
                 "event %u of %s: %.*s", trail->count, id, object ? (int)object->length : 0,
                 object ? (const char *)page->json.text.bytes + object->at : ""))
        return false;
    VERDICT(SEQUENCE, change_is_allowed(event) && event->prev == (before ? before->next : STATE_NONE),
            "job %s: %s from %s to %s after %s", id, event_name(event->name), state_name(event->prev),
            state_name(event->next), before ? state_name(before->next) : "nothing");
    VERDICT(INCREASING, !before || event->at_ms > before->at_ms, "job %s: %s %lld ms after the last", id,
            event_name(event->name), before ? (long long)(event->at_ms - before->at_ms) : 0);
    for (uint32_t i = 0; i < trail->count; i++)
        VERDICT(EVENT, !uuid_equal(&trail->events[i].id, &event->id), "job %s: an event_id twice", id);
    trail->attempts += event->name == EVENT_RETRIED;
    judge_payload(page, object, event, job, trail);
    trail->count++;
    return true;
}

bool trail_read(const struct page *page, const struct json_node *array, const struct trodden *job,
                struct trail *ret)
{
    const struct json_text *json = &page->json;
    ret->count = 0, ret->attempts = 1;
    ret->runners_lost = ret->requeued = 0;
    if (!VERDICT(EVENT, page_is(array, JSON_ARRAY) && array->count && array->count <= TRAIL_MAX,
                 "there is no list of 1 to %d events", TRAIL_MAX))
        return false;
    for (const struct json_node *n = json_first(json, array); n; n = json_after(json, array, n))
        if (!add(page, n, job, ret))
            return false;
    VERDICT(SEQUENCE, ret->events[0].at_ms >= job->created_ms, "job.created is %lld ms before created_at",
            (long long)(job->created_ms - ret->events[0].at_ms));
    return true;
}

const struct event *trail_last(const struct trail *trail, int name)
{
    for (uint32_t i = trail->count; i-- > 0;)
        if (trail->events[i].name == name)
            return &trail->events[i];
    return NULL;
}

const struct event *trail_first(const struct trail *trail, int name)
{
    for (uint32_t i = 0; i < trail->count; i++)
        if (trail->events[i].name == name)
            return &trail->events[i];
    return NULL;
}

/* ---- times ---- */

static double between_ms(const struct event *from, const struct event *to)
{
    return (double)(int64_t)(to->at_ms - from->at_ms);
}

static void note(enum time time, double ms)
{
    tally_time(time, ms > 0 ? (uint64_t)(ms * 1e6) : 0);
}

/* From job.running to the end that its work gave it; `raised` is what the first may be ahead. */
static void judge_run(const struct event *from, const struct event *to, uint32_t raised, int kind)
{
    double must =
        (double)(kind == KIND_RUNS_OVER_TIMEOUT ? brief.runtime_ms : kind_duration_ms(kind)) / brief.speed;
    double ran = between_ms(from, to);
    VERDICT(EARLY, ran + raised + 1 >= must, "%s has run %.0f ms instead of %.1f", kind_name(kind), ran,
            must);
    VERDICT(LATE, ran <= must + (double)brief.late_ms, "%s has run %.0f ms instead of %.1f", kind_name(kind),
            ran, must);
    note(TIME_OVERRUN, ran - must);
}

/* From job.retried to job.assigned: random(0.5..1.0) * min(base * 2^(attempt - 2), max). */
static void judge_backoff(const struct event *from, const struct event *to, uint32_t raised, uint32_t attempt)
{
    double window = (double)brief.retry_base_ms;
    for (uint32_t i = 2; i < attempt && window < (double)brief.retry_max_ms; i++)
        window *= 2;
    if (window > (double)brief.retry_max_ms)
        window = (double)brief.retry_max_ms;
    double waited = between_ms(from, to);
    VERDICT(BACKOFF, waited + raised + 1 >= window / 2, "attempt %u is assigned %.0f ms after its retry",
            attempt, waited);
}

/* Scheduled times count in whole seconds, rounded up. */
static void judge_due(const struct event *queued, uint64_t execution_ms)
{
    uint64_t due = (execution_ms + 999) / 1000 * 1000;
    VERDICT(EARLY, queued->at_ms >= execution_ms, "queued %lld ms before its time",
            (long long)(execution_ms - queued->at_ms));
    VERDICT(LATE, brief.restarts || queued->at_ms <= due + brief.late_ms, "queued %lld ms after its time",
            (long long)(queued->at_ms - due));
    note(TIME_DUE, (double)(int64_t)(queued->at_ms - due));
}

void trail_judge_times(const struct trail *trail, const struct trodden *job)
{
    uint32_t attempt = 1;
    for (uint32_t i = 0; i < trail->runners_lost; i++)
        tally(COUNT_RUNNERS_LOST);
    for (uint32_t i = 0; i < trail->requeued; i++)
        tally(COUNT_REQUEUED);
    for (uint32_t i = 0; i < trail->count; i++)
        tally(COUNT_EVENTS_SEEN);
    for (uint32_t i = 1; i < trail->count; i++) {
        const struct event *event = &trail->events[i], *before = event - 1;
        attempt += event->name == EVENT_RETRIED;
        if (event->name == EVENT_QUEUED && job->execution_ms)
            judge_due(event, job->execution_ms);
        else if (event->name == EVENT_ASSIGNED && before->name == EVENT_RETRIED)
            judge_backoff(before, event, i - 1, attempt);
        else if (event->name == EVENT_ASSIGNED)
            note(TIME_QUEUED, between_ms(before, event));
        else if (event->name == EVENT_RUNNING)
            note(TIME_STARTED, between_ms(before, event));
        else if (before->name == EVENT_RUNNING && event->name != EVENT_CANCELED && !trail->runners_lost)
            judge_run(before, event, i - 1, job->kind);
    }
}
