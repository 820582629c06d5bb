#include "store/job_change.h"

#include <stdio.h>

#include "store/job_queue.h"
#include "store/job_submit.h"
#include "store/retention.h"
#include "store/steady.h"

#define job_cancel_FIELD(name, TYPE, limit, since) RECORD_FIELD(job_cancel, name, TYPE, limit, since)
RECORD_CLASS(job_cancel, JOB_CANCEL_FIELDS, 1);
#define job_retry_FIELD(name, TYPE, limit, since) RECORD_FIELD(job_retry, name, TYPE, limit, since)
RECORD_CLASS(job_retry, JOB_RETRY_FIELDS, 1);

static const struct span nothing = {NULL, 0};

static enum error open_for(struct txn *txn, const struct uuid *id, const struct uuid *client,
                           struct job *ret_job, struct job_texts *texts)
{
    static const struct uuid operator= {{0}};
    enum error e = job_open(txn, id, ret_job, texts);
    if (e)
        return e;
    return uuid_equal(client, &operator) || uuid_equal(client, &ret_job->client) ? OK : ERR_FORBIDDEN;
}

struct job_changed job_changed_of(const struct job *job, uint8_t from, bool made)
{
    struct job_changed changed = {.updated_us = job->updated_us,
                                  .ran_us = from == JOB_RUNNING && job->finished_us > job->started_us
                                                ? job->finished_us - job->started_us
                                                : 0,
                                  .attempt = job->attempt,
                                  .state = job->state,
                                  .from = from,
                                  .made = made,
                                  .kind = job->kind,
                                  .failure = job->failure,
                                  .job_client = job->client};
    if ((from == JOB_ASSIGNED || from == JOB_RUNNING) && job->worker.size > 0)
        memcpy(changed.worker, job->worker.bytes, job->worker.size);
    return changed;
}

static void answer_changed(struct answer *answer, const struct job *job, uint8_t from, bool made)
{
    struct job_changed changed = job_changed_of(job, from, made);
    answer_add(answer, &changed, sizeof(changed));
}

/* ---- cancel ---- */

enum error job_cancel_now(struct txn *txn, struct job *job, uint64_t at_us, uint64_t kept_us)
{
    enum error e = job_move(txn, job, JOB_CANCEL, at_us, nothing);
    if (e)
        return e;
    job->lease_us = 0; /* whoever runs it is told with the next heartbeat, and what it brings is refused */
    job->owner = 0;
    job_end(txn, job, at_us, &(struct job_end){.kept_us = kept_us});
    return OK;
}

static enum error apply_cancel(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct job_cancel *c = command;
    struct job_texts texts;
    struct job job;
    enum error e = open_for(txn, &c->id, &c->client, &job, &texts);
    if (e)
        return e;
    uint8_t from = job.state;
    bool final = job_state_final(from);
    if (!final)
        e = job_tellable(txn, &job);
    if (!e && !final)
        e = job_cancel_now(txn, &job, at_us, c->kept_us);
    if (!e && !final)
        job_write(txn, &job);
    if (!e)
        answer_changed(answer, &job, from, !final);
    return e;
}

const struct command_class job_cancel_class = {
    .name = "job.cancel",
    .record = &job_cancel_record,
    .apply = apply_cancel,
    .code = 205,
};

/* ---- retry ---- */

uint64_t job_backoff_us(uint16_t attempt, uint64_t base_us, uint64_t most_us, uint32_t chance)
{
    uint64_t whole = base_us < most_us ? base_us : most_us;
    for (uint16_t i = 2; i < attempt && whole < most_us; i++)
        whole = whole <= most_us / 2 ? 2 * whole : most_us;
    return whole / 2 + (uint64_t)((unsigned __int128)(whole - whole / 2) * chance >> 32);
}

enum error job_retry_now(struct txn *txn, struct job *job, uint64_t at_us, uint64_t steady_us,
                         uint64_t backoff_us)
{
    char data[32];
    int length = snprintf(data, sizeof(data), "\"attempt\":%u", job->attempt + 1u);
    enum error e = job_move(txn, job, JOB_RETRY, at_us, span_of(data, (size_t)length));
    if (e)
        return e;
    retention_clear(txn, job->retire_us, &job->id);
    job->attempt++;
    job->failure = JOB_NO_FAILURE;
    job->retryable = 0;
    job->progress = 0;
    job->stage = job->worker = nothing;
    job->started_us = job->finished_us = job->retire_us = 0;
    job->queued_us = job->updated_us;
    if (backoff_us > 0)
        job_due_set(txn, job, job_later(steady_us, backoff_us));
    else
        job_queue_put(txn, job);
    steady_note(txn, steady_us);
    return OK;
}

enum error job_retriable(struct txn *txn, const struct job *job, uint16_t retry_max, uint32_t queue_max)
{
    int64_t waiting = 0;
    if (job->attempt > retry_max || job->attempt == UINT16_MAX)
        return ERR_CONFLICT;
    enum error e = job_count(txn, JOB_QUEUED, &waiting);
    if (!e && waiting >= (int64_t)queue_max)
        e = ERR_QUEUE_FULL;
    return e ? e : job_tellable(txn, job);
}

static enum error apply_retry(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct job_retry *c = command;
    struct job_texts texts;
    struct job job;
    enum error e = open_for(txn, &c->id, &c->client, &job, &texts);
    if (e)
        return e;
    uint8_t from = job.state;
    if (from == JOB_FAILED) {
        e = job_retriable(txn, &job, c->retry_max, c->queue_max);
        if (!e)
            e = job_retry_now(txn, &job, at_us, c->steady_us,
                              job_backoff_us((uint16_t)(job.attempt + 1), c->base_us, c->most_us, c->chance));
        if (!e)
            job_write(txn, &job);
    }
    if (!e)
        answer_changed(answer, &job, from, from == JOB_FAILED);
    return e;
}

const struct command_class job_retry_class = {
    .name = "job.retry",
    .record = &job_retry_record,
    .apply = apply_retry,
    .code = 206,
};
