#include "tests/store/job_model.h"

#include "runtime/assert.h"
#include "store/checksum.h"

#define MS_US 1000u

/* ---- jobs ---- */

struct model_job *model_find(struct model *m, const struct uuid *id)
{
    for (uint32_t i = 0; i < MODEL_JOBS; i++)
        if (m->jobs[i].there && uuid_equal(&m->jobs[i].id, id))
            return &m->jobs[i];
    return NULL;
}

uint32_t model_count(const struct model *m, uint8_t state)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < MODEL_JOBS; i++)
        count += m->jobs[i].there && m->jobs[i].state == state;
    return count;
}

uint32_t model_room(const struct model *m)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < MODEL_JOBS; i++)
        count += !m->jobs[i].there;
    return count;
}

static uint64_t plus(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static void say(struct model_answer *answer, const void *bytes, size_t size)
{
    ASSERT(answer->size + size <= sizeof(answer->bytes));
    memcpy(answer->bytes + answer->size, bytes, size);
    answer->size += (uint32_t)size;
}

/* Each change is one event, later than the one before. */
static void move(struct model_job *job, uint8_t to, uint64_t at_us)
{
    uint64_t ms = at_us / MS_US * MS_US;
    job->updated_us = job->events && ms <= job->updated_us ? job->updated_us + MS_US : ms;
    job->events++;
    job->state = to;
    job->due_us = 0;
}

static bool final(const struct model_job *job)
{
    return job->state == JOB_SUCCEEDED || job->state == JOB_FAILED || job->state == JOB_CANCELED;
}

static bool is_nobody(const struct uuid *id)
{
    static const struct uuid nobody = {{0}};
    return uuid_equal(id, &nobody);
}

static void end(struct model_job *job, uint64_t at_us, uint64_t kept_us, const struct job_finish *said)
{
    struct model_report *report = &job->reports[job->attempt];
    job->lease_us = job->owner = 0;
    job->finished_us = job->updated_us;
    job->retire_us = plus(at_us, kept_us);
    *report = (struct model_report){.there = true,
                                    .outcome = job->state,
                                    .fence = job->fence,
                                    .started_us = job->started_us,
                                    .finished_us = job->finished_us};
    if (said) {
        report->said = *said;
        report->texts = checksum(checksum(0, said->message.bytes, said->message.size), said->result.bytes,
                                 said->result.size);
    }
}

/* ---- submit ---- */

static void say_submitted(struct model_answer *answer, const struct model_job *job, bool made)
{
    struct job_submitted submitted = {
        .id = job->id, .created_us = job->created_us, .state = job->state, .made = made, .kind = job->kind};
    uint8_t bytes[JOB_SUBMITTED_SIZE];
    say(answer, bytes, record_encode(&job_submitted_record, &submitted, bytes, sizeof(bytes)));
}

static bool repeats(struct model *m, const struct job_submit *c, struct model_answer *answer)
{
    for (uint32_t i = 0; i < MODEL_JOBS && c->key.size > 0; i++) {
        struct model_job *job = &m->jobs[i];
        if (!job->there || !uuid_equal(&job->client, &c->client) || strlen(job->key) != c->key.size ||
            memcmp(job->key, c->key.bytes, c->key.size) != 0)
            continue;
        if (job->body != c->digest.bytes[0])
            answer->error = ERR_KEY_REUSED;
        else
            say_submitted(answer, job, false);
        return true;
    }
    return false;
}

static enum error refusal(struct model *m, const struct job_submit *c, uint64_t at_us)
{
    uint32_t queued = model_count(m, JOB_QUEUED);
    if (c->type == JOB_DEFERRED && c->execution_us + 1000000 <= at_us)
        return ERR_INVALID;
    if (model_find(m, &c->id))
        return ERR_EXISTS;
    if (c->execution_us <= at_us && queued >= c->queue_max)
        return ERR_QUEUE_FULL;
    return queued + model_count(m, JOB_ASSIGNED) + model_count(m, JOB_RUNNING) >= c->active_max ? ERR_ACTIVE
                                                                                                : OK;
}

static void submit(struct model *m, const struct job_submit *c, uint64_t at_us, struct model_answer *answer)
{
    struct model_job *job = m->jobs;
    if (repeats(m, c, answer))
        return;
    answer->error = refusal(m, c, at_us);
    if (answer->error)
        return;
    while (job->there)
        job++;
    ASSERT(job < m->jobs + MODEL_JOBS);
    uint64_t created = at_us / MS_US * MS_US;
    m->newest_us = created > m->newest_us ? created : m->newest_us;
    *job = (struct model_job){.there = true,
                              .id = c->id,
                              .client = c->client,
                              .type = c->type,
                              .kind = c->kind,
                              .priority = c->priority,
                              .attempt = 1,
                              .seq = ++m->seq,
                              .created_us = m->newest_us,
                              .body = c->digest.bytes[0]};
    if (c->key.size > 0)
        memcpy(job->key, c->key.bytes, c->key.size);
    move(job, JOB_CREATED, job->created_us);
    job->execution_us = c->execution_us;
    if (c->execution_us > at_us) {
        job->execution_us = (c->execution_us + 999999) / 1000000 * 1000000;
        job->due_us = job->execution_us;
    } else {
        move(job, JOB_QUEUED, job->created_us);
        job->queued_us = job->updated_us;
    }
    say_submitted(answer, job, true);
}

/* ---- leases ---- */

static bool claimable(const struct model_job *job)
{
    return job->there && job->state == JOB_QUEUED && job->due_us == 0;
}

/* How many clients have their turn before this one: 0, and 256 more when theirs is only in the next round. */
static uint32_t turns_before(const struct model *m, const struct uuid *client)
{
    return memcmp(client, &m->last, sizeof(*client)) > 0 ? client->bytes[15] : 256u + client->bytes[15];
}

/* Which of two is next: of whose turn it is, by priority, then in the order of creation. */
static bool goes_before(const struct model *m, bool turns, const struct model_job *a,
                        const struct model_job *b)
{
    if (turns && !uuid_equal(&a->client, &b->client))
        return turns_before(m, &a->client) < turns_before(m, &b->client);
    return a->priority != b->priority ? a->priority > b->priority : a->seq < b->seq;
}

/* The first of those that may be claimed, and that this claim wants. */
static struct model_job *next(struct model *m, const struct job_claim *c)
{
    struct model_job *first = NULL;
    bool outside = c->lane == LANE_OUTSIDE;
    for (uint32_t i = 0; i < MODEL_JOBS; i++) {
        struct model_job *job = &m->jobs[i];
        if (!claimable(job) || outside != (job->kind == WORK_KIND_USER) ||
            (outside && !uuid_equal(&job->client, &c->client)))
            continue;
        if (!first || goes_before(m, m->fair && !outside, job, first))
            first = job;
    }
    return first;
}

/* Those that were queued before get their turn with it; whoever stands there stays there when it goes off. */
static void fairness(struct model *m, const struct job_fairness *c, struct model_answer *answer)
{
    struct job_fairness_set set = {.sorted = 0};
    bool left = false;
    for (uint32_t i = 0; i < MODEL_JOBS; i++) {
        left |= m->jobs[i].turned;
        set.sorted +=
            c->on && claimable(&m->jobs[i]) && m->jobs[i].kind != WORK_KIND_USER && !m->jobs[i].turned;
    }
    if (!c->on && !left)
        m->last = (struct uuid){{0}}; /* nothing of it is left */
    m->fair = c->on;
    say(answer, &set, sizeof(set));
}

/* After each command: where the jobs stand that may be claimed. */
static void place_all(struct model *m)
{
    for (uint32_t i = 0; i < MODEL_JOBS; i++) {
        struct model_job *job = &m->jobs[i];
        job->turned = claimable(job) && job->kind != WORK_KIND_USER && (m->fair || job->turned);
    }
}

static void claim(struct model *m, const struct job_claim *c, uint64_t at_us, struct model_answer *answer)
{
    struct model_job *job;
    answer->error = ERR_NOT_FOUND;
    for (uint32_t i = 0; i < c->most && (job = next(m, c)) != NULL; i++) {
        if (c->running_max && model_count(m, JOB_ASSIGNED) + model_count(m, JOB_RUNNING) >= c->running_max)
            break;
        struct job_claimed claimed = {
            .id = job->id, .client = job->client, .queued_us = job->queued_us, .attempt = job->attempt};
        move(job, JOB_ASSIGNED, at_us > job->queued_us ? at_us : job->queued_us);
        claimed.claimed_us = job->updated_us;
        claimed.running = c->running != 0;
        if (c->running) {
            move(job, JOB_RUNNING, at_us);
            job->started_us = job->updated_us;
        }
        job->fence = claimed.fence = ++m->fence;
        if (m->fair && c->lane == LANE_SERVER)
            m->last = job->client;
        job->owner = c->owner;
        job->progress = 0;
        job->lease_us = job->due_us = claimed.lease_us = plus(c->steady_us, c->lease_us);
        claimed.kind = job->kind;
        say(answer, &claimed, sizeof(claimed));
        answer->error = OK;
    }
}

/* One that a worker outside has from an earlier start is not over soon after this one. */
static uint64_t ends(const struct model_job *job, uint64_t grace_us, uint64_t first_fence)
{
    bool graced = job && job->owner == 0 && job->fence < first_fence;
    return !job ? 0 : graced && job->lease_us < grace_us ? grace_us : job->lease_us;
}

static enum error held(const struct model_job *job, uint64_t fence, uint64_t steady_us, uint64_t end_us)
{
    if (!job)
        return ERR_NOT_FOUND;
    if (job->fence != fence)
        return ERR_FENCED;
    if (job->state == JOB_CANCELED)
        return ERR_CONFLICT;
    if (job->state != JOB_ASSIGNED && job->state != JOB_RUNNING)
        return ERR_FENCED;
    return steady_us >= end_us ? ERR_EXPIRED : OK;
}

static void extend(struct model_job *job, uint64_t until_us)
{
    job->lease_us = until_us > job->lease_us ? until_us : job->lease_us;
}

static void start(struct model *m, const struct job_start *c, uint64_t at_us, struct model_answer *answer)
{
    struct model_job *job = model_find(m, &c->id);
    answer->error = held(job, c->fence, c->steady_us, ends(job, 0, 0));
    if (answer->error)
        return;
    if (job->state == JOB_ASSIGNED) {
        uint64_t due_us = job->due_us;
        move(job, JOB_RUNNING, at_us);
        job->due_us = due_us; /* of the lease, which goes on */
        job->started_us = job->updated_us;
        extend(job, plus(c->steady_us, c->lease_us));
    }
    say(answer, &job->started_us, sizeof(job->started_us));
}

static void heartbeat(struct model *m, const struct job_heartbeat *c, struct model_answer *answer)
{
    struct model_job *job = model_find(m, &c->id);
    if (job && !is_nobody(&c->client) && !uuid_equal(&c->client, &job->client))
        job = NULL;
    answer->error = held(job, c->fence, c->steady_us, ends(job, c->grace_us, c->first_fence));
    if (answer->error)
        return;
    extend(job, plus(c->steady_us, c->lease_us));
    job->lease_us = ends(job, c->grace_us, c->first_fence);
    job->progress = c->progress <= 1000 ? c->progress : job->progress;
    say(answer, &job->lease_us, sizeof(job->lease_us));
}

/* ---- ends ---- */

static void retry(struct model_job *job, uint64_t at_us, uint64_t until_us)
{
    move(job, JOB_QUEUED, at_us);
    job->attempt++;
    job->started_us = job->finished_us = job->retire_us = 0;
    job->failure = JOB_NO_FAILURE;
    job->retryable = 0;
    job->progress = 0;
    job->queued_us = job->updated_us;
    job->due_us = until_us;
}

static bool same_word(const struct model_report *report, const struct job_finish *c)
{
    const struct job_finish *s = &report->said;
    return report->outcome != JOB_CANCELED && s->event == c->event && s->failure == c->failure &&
           s->retryable == c->retryable && s->progress == c->progress && s->outputs == c->outputs &&
           s->outputs_bytes == c->outputs_bytes &&
           report->texts ==
               checksum(checksum(0, c->message.bytes, c->message.size), c->result.bytes, c->result.size);
}

static void say_finished(struct model_answer *answer, const struct model_job *job,
                         const struct model_report *report, uint16_t attempt, uint16_t retry_max, bool made,
                         bool retried)
{
    struct job_finished finished = {.client = job->client,
                                    .started_us = report->started_us,
                                    .finished_us = report->finished_us,
                                    .state = report->outcome,
                                    .made = made,
                                    .kind = job->kind,
                                    .attempt_last = attempt > retry_max,
                                    .attempt = attempt,
                                    .retried = retried};
    say(answer, &finished, sizeof(finished));
}

/* Said before, and counted: answered as it was. */
static enum error again(const struct model_job *job, const struct job_finish *c, struct model_answer *answer)
{
    enum error e = ERR_FENCED;
    for (uint16_t attempt = MODEL_ATTEMPTS; attempt > 0; attempt--) {
        const struct model_report *report = &job->reports[attempt];
        if (!report->there || report->fence != c->fence)
            continue;
        if (report->outcome != JOB_CANCELED && report->said.fence && same_word(report, c)) {
            say_finished(answer, job, report, attempt, c->retry_max, false, report->retried);
            return OK;
        }
        if (report->outcome == JOB_CANCELED)
            e = ERR_CONFLICT;
    }
    return e;
}

static void finish(struct model *m, const struct job_finish *c, uint64_t at_us, struct model_answer *answer)
{
    struct model_job *job = model_find(m, &c->id);
    if (job && !is_nobody(&c->client) && !uuid_equal(&c->client, &job->client))
        job = NULL;
    enum error e = held(job, c->fence, c->steady_us, ends(job, c->grace_us, c->first_fence));
    if (!e && job->state != JOB_RUNNING)
        e = ERR_FENCED;
    if (e == ERR_FENCED || e == ERR_CONFLICT)
        e = again(job, c, answer);
    else if (!e) {
        move(job, c->event == JOB_SUCCEED ? JOB_SUCCEEDED : JOB_FAILED, at_us);
        job->failure = c->failure;
        job->retryable = c->retryable;
        job->progress = c->event == JOB_SUCCEED ? 1000 : c->progress ? c->progress : job->progress;
        end(job, at_us, c->kept_us, c);
        bool goes_on = c->event != JOB_SUCCEED && c->auto_retry && c->retryable &&
                       job->attempt <= c->retry_max && model_count(m, JOB_QUEUED) < c->queue_max;
        job->reports[job->attempt].retried = goes_on;
        say_finished(answer, job, &job->reports[job->attempt], job->attempt, c->retry_max, true, goes_on);
        uint64_t backoff_us = c->backoff_us;
        if (c->base_us)
            backoff_us = job_backoff_us((uint16_t)(job->attempt + 1), c->base_us, c->most_us, c->chance);
        if (goes_on)
            retry(job, at_us, backoff_us ? plus(c->steady_us, backoff_us) : 0);
    }
    answer->error = e;
}

static void lose(struct model_job *job, uint64_t at_us, uint64_t kept_us)
{
    move(job, JOB_FAILED, at_us);
    job->failure = JOB_RUNNER_LOST;
    job->retryable = 1;
    end(job, at_us, kept_us, NULL);
}

/* ---- what clients change ---- */

static void say_changed(struct model_answer *answer, const struct model_job *job, uint8_t from, bool made)
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
    if (from == JOB_ASSIGNED || from == JOB_RUNNING)
        memcpy(changed.worker, "w", 1);
    say(answer, &changed, sizeof(changed));
}

static void cancel(struct model *m, const struct job_cancel *c, uint64_t at_us, struct model_answer *answer)
{
    struct model_job *job = model_find(m, &c->id);
    answer->error = !job                                                            ? ERR_NOT_FOUND
                    : is_nobody(&c->client) || uuid_equal(&c->client, &job->client) ? OK
                                                                                    : ERR_FORBIDDEN;
    if (answer->error)
        return;
    uint8_t from = job->state;
    bool made = !final(job);
    if (made) {
        move(job, JOB_CANCELED, at_us);
        end(job, at_us, c->kept_us, NULL);
    }
    say_changed(answer, job, from, made);
}

static void retry_one(struct model *m, const struct job_retry *c, uint64_t at_us, struct model_answer *answer)
{
    struct model_job *job = model_find(m, &c->id);
    answer->error = !job                                                            ? ERR_NOT_FOUND
                    : is_nobody(&c->client) || uuid_equal(&c->client, &job->client) ? OK
                                                                                    : ERR_FORBIDDEN;
    if (answer->error)
        return;
    uint8_t from = job->state;
    if (from == JOB_FAILED) {
        answer->error = job->attempt > c->retry_max                  ? ERR_CONFLICT
                        : model_count(m, JOB_QUEUED) >= c->queue_max ? ERR_QUEUE_FULL
                                                                     : OK;
        if (answer->error)
            return;
        uint64_t wait = job_backoff_us((uint16_t)(job->attempt + 1), c->base_us, c->most_us, c->chance);
        retry(job, at_us, wait ? plus(c->steady_us, wait) : 0);
    }
    say_changed(answer, job, from, from == JOB_FAILED);
}

/* ---- what happens by itself ---- */

/* Of a command that brings a lost one back. */
struct model_again {
    uint64_t steady_us, base_us, most_us;
    uint32_t queue_max, chance;
    uint16_t retry_max;
    bool itself;
};

/* FAILED, and with a retry by itself QUEUED again right away. */
static void lose_and_retry(struct model *m, struct model_job *job, uint64_t at_us, uint64_t kept_us,
                           const struct model_again *again, struct job_fired *fired)
{
    uint16_t next = (uint16_t)(job->attempt + 1);
    uint32_t chance = (uint32_t)checksum(again->chance, &job->id, sizeof(job->id));
    uint64_t wait = job_backoff_us(next, again->base_us, again->most_us, chance);
    fired->event = JOB_FAIL;
    lose(job, at_us, kept_us);
    fired->ran_us = job->finished_us - job->started_us;
    if (!again->itself || job->attempt > again->retry_max || model_count(m, JOB_QUEUED) >= again->queue_max)
        return;
    fired->event = JOB_RETRY;
    retry(job, at_us, wait ? plus(again->steady_us, wait) : 0);
}

static bool in_queue(const struct model_job *job, uint8_t queue)
{
    switch (queue) {
    case DUE_JOB_TIME:
        return job->state == JOB_CREATED;
    case DUE_JOB_BACKOFF:
        return job->state == JOB_QUEUED;
    default:
        return job->state == JOB_ASSIGNED || job->state == JOB_RUNNING;
    }
}

static struct model_job *first_due(struct model *m, uint8_t queue, uint16_t shard, uint64_t until_us)
{
    struct model_job *first = NULL;
    for (uint32_t i = 0; i < MODEL_JOBS; i++) {
        struct model_job *job = &m->jobs[i];
        if (!job->there || !job->due_us || job->due_us > until_us || job_shard(queue, &job->id) != shard ||
            !in_queue(job, queue))
            continue;
        if (!first || job->due_us < first->due_us ||
            (job->due_us == first->due_us && memcmp(&job->id, &first->id, sizeof(job->id)) < 0))
            first = job;
    }
    return first;
}

static void requeue(struct model_job *job, uint64_t at_us)
{
    move(job, JOB_QUEUED, at_us);
    job->owner = job->lease_us = 0;
    job->progress = 0;
    job->queued_us = job->updated_us;
}

static void fire_one(struct model *m, struct model_job *job, const struct job_fire *c, uint64_t at_us,
                     struct job_fired *fired)
{
    uint64_t until = ends(job, c->grace_us, c->first_fence);
    switch (job->state) {
    case JOB_CREATED:
        if (model_count(m, JOB_QUEUED) >= c->queue_max) {
            fired->postponed = job->due_us == job->execution_us;
            job->due_us = plus(c->wall_us, JOB_FIRE_AGAIN_US);
            return;
        }
        move(job, JOB_QUEUED, at_us > job->execution_us ? at_us : job->execution_us);
        job->queued_us = job->updated_us;
        fired->event = JOB_ENQUEUE;
        return;
    case JOB_QUEUED:
        job->due_us = 0;
        if (at_us > job->queued_us && at_us < JOB_TIME_MAX)
            job->queued_us = at_us;
        return;
    default:
        if (c->steady_us < until) {
            job->lease_us = job->due_us = until;
        } else if (job->state == JOB_ASSIGNED) {
            fired->event = JOB_REQUEUE;
            requeue(job, at_us);
        } else {
            const struct model_again again = {c->steady_us, c->base_us,   c->most_us,   c->queue_max,
                                              c->chance,    c->retry_max, c->auto_retry};
            lose_and_retry(m, job, at_us, c->kept_us, &again, fired);
        }
    }
}

static struct job_fired fired_of(const struct model_job *job)
{
    return (struct job_fired){.id = job->id,
                              .client = job->client,
                              .event = JOB_EVENT_COUNT,
                              .from = job->state,
                              .kind = job->kind,
                              .attempt = job->attempt};
}

static void fire(struct model *m, const struct job_fire *c, uint64_t at_us, struct model_answer *answer)
{
    static const uint8_t queues[] = {DUE_JOB_LEASE, DUE_JOB_BACKOFF, DUE_JOB_TIME};
    uint32_t left = c->most;
    for (size_t i = 0; i < sizeof(queues); i++) {
        uint64_t now = queues[i] == DUE_JOB_TIME ? c->wall_us : c->steady_us;
        struct model_job *job;
        while (left > 0 && (job = first_due(m, queues[i], c->shard, now)) != NULL) {
            struct job_fired fired = fired_of(job);
            fire_one(m, job, c, at_us, &fired);
            say(answer, &fired, sizeof(fired));
            left--;
        }
    }
}

static void reap(struct model *m, const struct job_reap *c, uint64_t at_us, struct model_answer *answer)
{
    const struct model_again again = {c->steady_us, c->base_us,   c->most_us,   c->queue_max,
                                      c->chance,    c->retry_max, c->auto_retry};
    for (uint32_t at = 0; at < c->ids.size; at += sizeof(struct uuid)) {
        struct uuid id;
        memcpy(&id, (const uint8_t *)c->ids.bytes + at, sizeof(id));
        struct model_job *job = model_find(m, &id);
        if (!job || (job->state != JOB_ASSIGNED && job->state != JOB_RUNNING) || job->owner == 0 ||
            job->owner == c->start)
            continue;
        struct job_fired fired = fired_of(job);
        if (job->state == JOB_RUNNING) {
            lose_and_retry(m, job, at_us, c->kept_us, &again, &fired);
        } else {
            fired.event = JOB_REQUEUE;
            requeue(job, at_us);
        }
        say(answer, &fired, sizeof(fired));
    }
}

static void sweep(struct model *m, uint64_t at_us, struct model_answer *answer)
{
    uint32_t said[2] = {0, 0};
    for (uint32_t i = 0; i < MODEL_JOBS; i++) {
        struct model_job *job = &m->jobs[i];
        if (!job->there || !final(job) || job->retire_us > at_us)
            continue;
        job->there = false;
        said[0]++;
    }
    say(answer, said, sizeof(said));
}

void model_apply(struct model *m, const struct command_class *class, const void *command, uint64_t at_us,
                 struct model_answer *ret)
{
    ret->error = OK;
    ret->size = 0;
    if (class == &job_submit_class)
        submit(m, command, at_us, ret);
    else if (class == &job_claim_class)
        claim(m, command, at_us, ret);
    else if (class == &job_start_class)
        start(m, command, at_us, ret);
    else if (class == &job_heartbeat_class)
        heartbeat(m, command, ret);
    else if (class == &job_finish_class)
        finish(m, command, at_us, ret);
    else if (class == &job_cancel_class)
        cancel(m, command, at_us, ret);
    else if (class == &job_retry_class)
        retry_one(m, command, at_us, ret);
    else if (class == &job_fire_class)
        fire(m, command, at_us, ret);
    else if (class == &job_reap_class)
        reap(m, command, at_us, ret);
    else if (class == &job_fairness_class)
        fairness(m, command, ret);
    else
        sweep(m, at_us, ret);
    place_all(m);
}
