#include "store/job_fire.h"

#include "store/audit.h"

#include "store/checksum.h"
#include "store/job_change.h"
#include "store/job_lease.h"
#include "store/job_queue.h"
#include "store/job_submit.h"
#include "store/steady.h"

#define job_fire_FIELD(name, TYPE, limit, since) RECORD_FIELD(job_fire, name, TYPE, limit, since)
RECORD_CLASS(job_fire, JOB_FIRE_FIELDS, 3);
#define job_reap_FIELD(name, TYPE, limit, since) RECORD_FIELD(job_reap, name, TYPE, limit, since)
RECORD_CLASS(job_reap, JOB_REAP_FIELDS, 2);

STATIC_ASSERT(sizeof(struct job_fired) * JOB_FIRE_MAX <= ANSWER_SIZE_MAX, "an answer fits");

#define PAGE_MAX 32u /* entries on the stack at one time */

static const struct span nothing = {NULL, 0};

/* ---- one job ---- */

static void defer_again(struct txn *txn, struct job *job, uint64_t due_us)
{
    job_due_clear(txn, job);
    job_due_set(txn, job, due_us);
}

static bool pressed(struct txn *txn, const struct job *job, enum error *ret)
{
    *ret = job_tellable(txn, job);
    return *ret == ERR_LIMIT;
}

static enum error fire_time(struct txn *txn, struct job *job, uint64_t at_us, const struct job_fire *c,
                            struct job_fired *fired)
{
    int64_t waiting = 0;
    enum error e = job_count(txn, JOB_QUEUED, &waiting);
    if (e)
        return e;
    if (waiting >= (int64_t)c->queue_max || pressed(txn, job, &e)) {
        fired->postponed =
            job->due_us == job->execution_us; /* told of once, and not each time it is tried again */
        defer_again(txn, job, job_later(c->wall_us, JOB_FIRE_AGAIN_US));
        return OK;
    }
    /* Two clocks of one server may differ by a moment; what is told is never early. */
    if (!e)
        e = job_move(txn, job, JOB_ENQUEUE, at_us > job->execution_us ? at_us : job->execution_us, nothing);
    if (e)
        return e;
    fired->event = JOB_ENQUEUE;
    job->queued_us = job->updated_us;
    job_queue_put(txn, job);
    return OK;
}

/* One that was lost, at the same end that its worker would have brought it to (JOB-316). One that can't be retried stays FAILED. */
static bool retry_now(struct txn *txn, struct job *job, uint64_t at_us, const struct job_reap *c)
{
    uint32_t chance = (uint32_t)checksum(c->chance, &job->id, sizeof(job->id));
    uint64_t backoff_us = job_backoff_us((uint16_t)(job->attempt + 1), c->base_us, c->most_us, chance);
    return job_retriable(txn, job, c->retry_max, c->queue_max) == OK &&
           job_retry_now(txn, job, at_us, c->steady_us, backoff_us) == OK;
}

static enum error lose(struct txn *txn, struct job *job, uint64_t at_us, const struct job_reap *c,
                       struct job_fired *fired)
{
    enum error e = job_lose(txn, job, at_us, c->kept_us, c->retry_max);
    fired->event = JOB_FAIL;
    if (e)
        return e;
    fired->ran_us = job->finished_us - job->started_us;
    if (c->auto_retry && retry_now(txn, job, at_us, c))
        fired->event = JOB_RETRY;
    return OK;
}

/* A claim whose worker is gone. */
static enum error lost(struct txn *txn, struct job *job, uint64_t at_us, const struct job_reap *c,
                       struct job_fired *fired)
{
    if (job->state == JOB_RUNNING)
        return lose(txn, job, at_us, c, fired);
    enum error e = job_requeue(txn, job, at_us, c->steady_us, c->start);
    if (e)
        return e;
    fired->event = JOB_REQUEUE;
    job->owner = 0;
    job->lease_us = 0;
    job->worker = job->stage = nothing;
    job->progress = 0;
    job->queued_us = job->updated_us;
    job_queue_put(txn, job);
    return OK;
}

static enum error fire_lease(struct txn *txn, struct job *job, uint64_t at_us, const struct job_fire *c,
                             struct job_fired *fired)
{
    uint64_t until = job_lease_end(job, c->grace_us, c->first_fence);
    enum error e = OK;
    steady_note(txn, c->steady_us);
    if (c->steady_us < until) {
        job->lease_us = until;
        defer_again(txn, job, until);
        return OK;
    }
    if (pressed(txn, job, &e)) {
        defer_again(txn, job, job_later(c->steady_us, JOB_FIRE_AGAIN_US));
        return OK;
    }
    const struct job_reap reap = {.steady_us = c->steady_us,
                                  .start = c->start,
                                  .retry_max = c->retry_max,
                                  .kept_us = c->kept_us,
                                  .auto_retry = c->auto_retry,
                                  .queue_max = c->queue_max,
                                  .base_us = c->base_us,
                                  .most_us = c->most_us,
                                  .chance = c->chance};
    return e ? e : lost(txn, job, at_us, &reap, fired);
}

static enum error fire_job(struct txn *txn, const struct due_entry *entry, struct job *job, uint64_t at_us,
                           const struct job_fire *c, struct job_fired *fired)
{
    switch (entry->queue) {
    case DUE_JOB_TIME:
        return fire_time(txn, job, at_us, c, fired);
    case DUE_JOB_BACKOFF:
        job_due_clear(txn, job);
        job_queue_put(txn, job);
        if (at_us > job->queued_us && at_us < JOB_TIME_MAX)
            job->queued_us = at_us;
        return OK;
    default:
        return fire_lease(txn, job, at_us, c, fired);
    }
}

/* ---- what is damaged ---- */

static bool its_own(const struct job *job, const struct due_entry *entry)
{
    enum due_queue queue;
    return job_due_queue(job->state, &queue) && (uint8_t)queue == entry->queue &&
           job->due_us == entry->due_us;
}

/* Into the future, without the job, which can't be read: its row and this entry don't agree from here on. */
static void set_by(struct txn *txn, const struct due_entry *entry, uint64_t now_us)
{
    due_move(txn, entry, job_later(now_us, JOB_SET_BY_US));
}

/* The entry, whatever it says beyond its key. A job that can't be read or changed is set by; an entry that isn't its job's goes.
 * An error means that the whole transaction fails. */
static enum error fire(struct txn *txn, const struct due_entry *entry, uint64_t at_us,
                       const struct job_fire *c, struct answer *answer)
{
    struct job_texts texts;
    struct job job;
    uint64_t now = entry->queue == DUE_JOB_TIME ? c->wall_us : c->steady_us;
    struct job_fired fired = {.id = entry->id, .event = JOB_EVENT_COUNT};
    enum error e = job_open(txn, &entry->id, &job, &texts);
    if (e == ERR_NOT_FOUND || (!e && !its_own(&job, entry))) {
        due_clear(txn, entry->queue, entry->shard, entry->due_us, &entry->id);
        return txn->error;
    }
    bool readable = !e;
    if (readable) {
        fired.client = job.client;
        fired.from = job.state;
        fired.kind = job.kind;
        fired.attempt = job.attempt;
        e = fire_job(txn, entry, &job, at_us, c, &fired);
    }
    if (txn->error)
        return txn->error;
    if (e) {
        fired.damaged = 1;
        fired.event = JOB_EVENT_COUNT;
    }
    if (e && readable)
        defer_again(txn, &job, job_later(now, JOB_SET_BY_US));
    else if (e)
        set_by(txn, entry, now);
    if (readable)
        job_write(txn, &job);
    answer_add(answer, &fired, sizeof(fired));
    return txn->error;
}

/* ---- a shard ---- */

/* Whoever was handled has left the front, or stands behind `until`: so each page begins there. */
static enum error fire_queue(struct txn *txn, uint8_t queue, uint64_t until_us, uint64_t at_us,
                             const struct job_fire *c, uint32_t *left, struct answer *answer)
{
    struct due_entry entries[PAGE_MAX];
    uint32_t count = 1;
    while (count > 0 && *left > 0) {
        uint32_t page = *left < PAGE_MAX ? *left : PAGE_MAX;
        enum error e = due_scan_keys(txn, queue, c->shard, until_us, entries, page, &count);
        for (uint32_t i = 0; i < count && !e; i++) {
            e = fire(txn, &entries[i], at_us, c, answer);
            *left -= e == OK;
        }
        if (e)
            return e;
    }
    return OK;
}

static enum error apply_fire(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct job_fire *c = command;
    uint32_t left = c->most < JOB_FIRE_MAX ? c->most : JOB_FIRE_MAX;
    if (c->shard >= JOB_SHARDS || c->most == 0)
        return ERR_INVALID;
    enum error leases = fire_queue(txn, DUE_JOB_LEASE, c->steady_us, at_us, c, &left, answer);
    enum error backoffs = fire_queue(txn, DUE_JOB_BACKOFF, c->steady_us, at_us, c, &left, answer);
    enum error times = fire_queue(txn, DUE_JOB_TIME, c->wall_us, at_us, c, &left, answer);
    if (txn->writes > 0) /* what one queue has done is kept, whatever is wrong with another */
        return OK;
    return leases ? leases : backoffs ? backoffs : times;
}

const struct command_class job_fire_class = {
    .name = "job.fire",
    .record = &job_fire_record,
    .apply = apply_fire,
    .code = 207,
    .priority = COMMAND_HIGH,
};

/* ---- claims of an earlier start ---- */

/* Within the commit's own millisecond, behind all that chance has drawn for other entries. */
static struct uuid record_id(const struct uuid *job, uint64_t at_us)
{
    struct uuid id = *job;
    uint64_t ms = at_us / 1000;
    for (int i = 6; i-- > 0; ms >>= 8)
        id.bytes[i] = (uint8_t)ms;
    id.bytes[6] = 0x7f;
    return id;
}

/* Half of a change: its row stays as it is, but for the mark, and somebody is told. */
static enum error mark(struct txn *txn, struct job *job, uint64_t at_us, struct answer *answer)
{
    char id[UUID_TEXT_SIZE];
    struct job_fired fired = {.id = job->id,
                              .client = job->client,
                              .event = JOB_EVENT_COUNT,
                              .from = job->state,
                              .kind = job->kind,
                              .attempt = job->attempt,
                              .incomplete = 1};
    if (job_state_final(job->state) || job->incomplete || !job_lacks_event(txn, job))
        return ERR_NOT_FOUND;
    uuid_format(&job->id, id);
    enum error e =
        audit_note_if_possible(txn, at_us,
                               &(struct audit_append){.id = record_id(&job->id, at_us),
                                                      .who = span_text("system"),
                                                      .verb = span_text("job.incomplete"),
                                                      .target = span_text(id),
                                                      .reason = span_text("an event of it is missing"),
                                                      .outcome = span_text("marked, to be failed")});
    if (e)
        return e;
    job->incomplete = 1;
    job_write(txn, job);
    answer_add(answer, &fired, sizeof(fired));
    return OK;
}

static enum error reap(struct txn *txn, const struct uuid *id, uint64_t at_us, const struct job_reap *c,
                       struct answer *answer)
{
    struct job_texts texts;
    struct job job;
    enum error e = job_open(txn, id, &job, &texts);
    if (e)
        return e;
    bool leased = job.state == JOB_ASSIGNED || job.state == JOB_RUNNING;
    if (!leased || job.owner == 0 || job.owner == c->start)
        return mark(txn, &job, at_us, answer); /* it has moved on, or was never claimed */
    struct job_fired fired = {.id = job.id,
                              .client = job.client,
                              .event = JOB_EVENT_COUNT,
                              .from = job.state,
                              .kind = job.kind,
                              .attempt = job.attempt};
    e = job_tellable(txn, &job);
    if (!e)
        e = lost(txn, &job, at_us, c, &fired);
    if (e == ERR_LIMIT || txn->error)
        return e;
    if (e) { /* nobody's from here on: it isn't found among these again, but by its timer */
        fired.damaged = 1;
        fired.event = JOB_EVENT_COUNT;
        job.owner = 0;
        defer_again(txn, &job, job_later(c->steady_us, JOB_SET_BY_US));
    }
    job_write(txn, &job);
    answer_add(answer, &fired, sizeof(fired));
    return OK;
}

static enum error apply_reap(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct job_reap *c = command;
    struct uuid id;
    enum error first = OK;
    for (uint32_t at = 0; at + sizeof(id) <= c->ids.size; at += sizeof(id)) {
        memcpy(&id, (const uint8_t *)c->ids.bytes + at, sizeof(id));
        enum error e = reap(txn, &id, at_us, c, answer);
        if (e && e != ERR_NOT_FOUND && !first)
            first = e;
    }
    return txn->writes > 0 ? OK : first;
}

const struct command_class job_reap_class = {
    .name = "job.reap",
    .record = &job_reap_record,
    .apply = apply_reap,
    .code = 208,
    .priority = COMMAND_HIGH,
};
