#include "actors/job_spans.h"

#include <stdatomic.h>

#include "runtime/hash.h"
#include "store/delivery.h"
#include "store/view.h"

#define SAMPLED 0x01u

static _Atomic(job_span_sink *) sink;
static _Atomic uint64_t lost;

void job_spans_to(job_span_sink *to)
{
    atomic_store_explicit(&sink, to, memory_order_release);
}

uint64_t job_spans_lost(void)
{
    return atomic_load_explicit(&lost, memory_order_relaxed);
}

/* ---- ids ---- */

enum part { SUBMIT = 1, ENQUEUE, ASSIGN, RUN, REPORT, CANCEL, RETRY, NOTIFY, ATTEMPT };

static void id_of(enum part part, const struct uuid *thing, uint32_t number, uint8_t ret[8])
{
    static const struct hash_key key = {UINT64_C(0x636f70706963656a), UINT64_C(0x6f622e7370616e73)};
    uint8_t bytes[sizeof(*thing) + sizeof(number) + 1];
    memcpy(bytes, thing, sizeof(*thing));
    memcpy(bytes + sizeof(*thing), &number, sizeof(number));
    bytes[sizeof(bytes) - 1] = (uint8_t)part;
    uint64_t id = hash_sip24(&key, bytes, sizeof(bytes));
    id += id == 0; /* all zeros is none */
    memcpy(ret, &id, sizeof(id));
}

/* Below what everything of an attempt is. */
static void attempt_id(const struct uuid *job, uint32_t attempt, uint8_t ret[8])
{
    if (attempt > 1)
        id_of(RETRY, job, attempt, ret);
    else
        id_of(SUBMIT, job, 1, ret);
}

/* ---- the trace ---- */

struct origin {
    uint8_t trace_id[16], span_id[8];
};

static bool take_hex(const char *text, uint8_t *ret, size_t count)
{
    for (size_t i = 0; i < 2 * count; i++) {
        char c = text[i];
        unsigned digit = c >= '0' && c <= '9' ? (unsigned)(c - '0') : (unsigned)(c - 'a') + 10;
        if (digit > 15)
            return false;
        ret[i / 2] = (uint8_t)(i % 2 ? ret[i / 2] | digit : digit << 4);
    }
    return true;
}

/* False: there is none, or nobody wants to see it. 00-<trace>-<span>-<flags> */
static bool read_origin(struct txn *txn, const struct uuid *job, struct origin *ret)
{
    struct job_definition d;
    uint8_t flags = 0;
    if (job_read_definition(txn, job, &d) != OK || d.trace.size != 55)
        return false;
    const char *text = d.trace.bytes;
    return take_hex(text + 3, ret->trace_id, sizeof(ret->trace_id)) &&
           take_hex(text + 36, ret->span_id, sizeof(ret->span_id)) && take_hex(text + 53, &flags, 1) &&
           (flags & SAMPLED);
}

static struct view *look(void)
{
    struct view *view = view_open(store_here());
    if (!view)
        atomic_fetch_add_explicit(&lost, 1, memory_order_relaxed);
    return view;
}

static uint64_t before(uint64_t now, uint64_t us)
{
    return us < now / NS_PER_US ? now - us * NS_PER_US : 0;
}

/* ---- jobs ---- */

struct texts {
    char job[UUID_TEXT_SIZE], client[UUID_TEXT_SIZE];
};

static struct job_span span_of_job(const struct job_told *told, const struct origin *origin,
                                   const struct texts *texts, const char *name)
{
    const struct work_kind_row *row = work_kind_row(told->kind);
    struct job_span span = {.name = name,
                            .began_ns = actor_now(),
                            .ended_ns = actor_now(),
                            .attributes = {{"job_id", texts->job, 0},
                                           {"client_id", texts->client, 0},
                                           {"attempt", NULL, told->attempt},
                                           {row ? "scenario" : NULL, row ? row->name : NULL, 0}}};
    memcpy(span.trace_id, origin->trace_id, sizeof(span.trace_id));
    return span;
}

/* What the change is the end of, or all of. */
static const struct step {
    uint8_t event;
    enum part part;
    const char *name;
} steps[] = {
    {JOB_CREATE, SUBMIT, "job.submit"},
    {JOB_RETRY, RETRY, "job.retry"},
    {JOB_RETRY, ENQUEUE, "job.enqueue"},
    {JOB_ENQUEUE, ENQUEUE, "job.enqueue"},
    {JOB_REQUEUE, ENQUEUE, "job.enqueue"},
    {JOB_ASSIGN, ASSIGN, "job.assign"},
    {JOB_SUCCEED, RUN, "job.run"},
    {JOB_SUCCEED, REPORT, "job.report"},
    {JOB_FAIL, RUN, "job.run"},
    {JOB_FAIL, REPORT, "job.report"},
    {JOB_TIME_OUT, RUN, "job.run"},
    {JOB_TIME_OUT, REPORT, "job.report"},
    {JOB_CANCEL, CANCEL, "job.cancel"},
    {JOB_CANCEL, REPORT, "job.report"},
};

static void place(struct job_span *span, const struct step *step, const struct job_told *told,
                  const struct origin *origin)
{
    uint32_t number = step->part == SUBMIT ? 1 : told->attempt;
    id_of(step->part, &told->id, number, span->span_id);
    if (step->part == SUBMIT)
        memcpy(span->parent_id, origin->span_id, sizeof(span->parent_id));
    else if (step->part == RETRY)
        id_of(SUBMIT, &told->id, 1, span->parent_id);
    else if (step->part == REPORT)
        id_of(told->event == JOB_CANCEL ? CANCEL : RUN, &told->id, number, span->parent_id);
    else
        attempt_id(&told->id, told->attempt, span->parent_id);
}

static void measure(struct job_span *span, const struct step *step, const struct job_told *told)
{
    if (step->part == ASSIGN)
        span->began_ns = before(span->ended_ns, told->waited_us);
    if (step->part == RUN) {
        span->began_ns = before(span->ended_ns, told->ran_us);
        span->failed = told->to == JOB_FAILED;
    }
    if (step->part == CANCEL || step->part == RETRY)
        span->link = told->link;
}

void job_spans_note(const struct job_told *told)
{
    job_span_sink *to = atomic_load_explicit(&sink, memory_order_acquire);
    struct origin origin;
    struct texts texts;
    struct view *view = to ? look() : NULL;
    if (!view)
        return;
    bool wanted = read_origin(&view->txn, &told->id, &origin);
    view_close(view);
    if (!wanted)
        return;
    uuid_format(&told->id, texts.job);
    uuid_format(&told->client, texts.client);
    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
        if (steps[i].event != told->event)
            continue;
        struct job_span span = span_of_job(told, &origin, &texts, steps[i].name);
        place(&span, &steps[i], told, &origin);
        measure(&span, &steps[i], told);
        to(&span);
    }
}

/* ---- deliveries ---- */

static enum part part_of(uint16_t event)
{
    switch ((enum job_event)event) {
    case JOB_CREATE:
        return SUBMIT;
    case JOB_ENQUEUE:
    case JOB_REQUEUE:
        return ENQUEUE;
    case JOB_ASSIGN:
        return ASSIGN;
    case JOB_START:
        return RUN;
    case JOB_CANCEL:
        return CANCEL;
    case JOB_RETRY:
        return RETRY;
    default:
        return REPORT;
    }
}

/* The span of the change that this delivery tells of. */
static void change_id(struct txn *txn, const struct delivery *d, uint8_t ret[8])
{
    uint32_t attempt = 1;
    enum part part = SUBMIT;
    for (uint64_t i = 1; i <= d->event && d->event <= JOB_SPAN_EVENTS_LOOK; i++) {
        struct event event;
        if (event_read(txn, &d->job, i, &event) != OK)
            continue;
        attempt += event.name == JOB_RETRY;
        part = part_of(event.name);
    }
    id_of(part, &d->job, part == SUBMIT ? 1 : attempt, ret);
}

struct delivered {
    struct origin origin;
    struct uuid job;
    uint64_t at_us;
    uint8_t change[8];
};

static bool read_delivery(const struct uuid *id, struct delivered *ret)
{
    struct delivery d;
    struct view *view = look();
    if (!view)
        return false;
    bool wanted = delivery_read(&view->txn, id, &d) == OK && read_origin(&view->txn, &d.job, &ret->origin);
    if (wanted) {
        ret->job = d.job;
        ret->at_us = d.at_us;
        change_id(&view->txn, &d, ret->change);
    }
    view_close(view);
    return wanted;
}

static void tell_attempt(job_span_sink *to, const struct webhook_told *told, const struct delivered *d,
                         const char *id)
{
    const struct delivery_result *r = told->result;
    struct job_span span = {.name = "webhook.attempt",
                            .outward = true,
                            .failed = r->outcome != DELIVERY_SUCCEED,
                            .began_ns = before(actor_now(), UINT64_C(1000) * r->took_ms),
                            .ended_ns = actor_now(),
                            .attributes = {{"delivery_id", id, 0},
                                           {"server.address", told->host, 0},
                                           {"attempt", NULL, r->attempt},
                                           {"http.response.status_code", NULL, r->status}}};
    memcpy(span.trace_id, d->origin.trace_id, sizeof(span.trace_id));
    id_of(ATTEMPT, &r->id, r->attempt, span.span_id);
    id_of(NOTIFY, &r->id, 0, span.parent_id);
    to(&span);
}

static void tell_notify(job_span_sink *to, const struct webhook_told *told, const struct delivered *d,
                        const char *id)
{
    char job[UUID_TEXT_SIZE];
    uint64_t now_us = store_time_us();
    struct job_span span = {
        .name = "webhook.notify",
        .failed = told->result->outcome != DELIVERY_SUCCEED,
        .began_ns = before(actor_now(), now_us > d->at_us ? now_us - d->at_us : 0),
        .ended_ns = actor_now(),
        .attributes = {{"delivery_id", id, 0}, {"job_id", job, 0}, {"server.address", told->host, 0}}};
    uuid_format(&d->job, job);
    memcpy(span.trace_id, d->origin.trace_id, sizeof(span.trace_id));
    id_of(NOTIFY, &told->result->id, 0, span.span_id);
    memcpy(span.parent_id, d->change, sizeof(span.parent_id));
    to(&span);
}

void job_spans_attempt(const struct webhook_told *told)
{
    job_span_sink *to = atomic_load_explicit(&sink, memory_order_acquire);
    char id[UUID_TEXT_SIZE];
    struct delivered d;
    if (!to || !read_delivery(&told->result->id, &d))
        return;
    uuid_format(&told->result->id, id);
    if (told->made)
        tell_attempt(to, told, &d, id);
    if (told->result->outcome != DELIVERY_RETRY)
        tell_notify(to, told, &d, id);
}
