#include "store/job_lease.h"

#include "store/checksum.h"
#include "store/counter.h"
#include "store/job_change.h"
#include "store/job_fairness.h"
#include "store/job_pause.h"
#include "store/job_queue.h"
#include "store/job_submit.h"
#include "store/steady.h"
#include "store/store.h"

#define job_claim_FIELD(name, TYPE, limit, since) RECORD_FIELD(job_claim, name, TYPE, limit, since)
RECORD_CLASS(job_claim, JOB_CLAIM_FIELDS, 1);
#define job_start_FIELD(name, TYPE, limit, since) RECORD_FIELD(job_start, name, TYPE, limit, since)
RECORD_CLASS(job_start, JOB_START_FIELDS, 1);
#define job_heartbeat_FIELD(name, TYPE, limit, since) RECORD_FIELD(job_heartbeat, name, TYPE, limit, since)
RECORD_CLASS(job_heartbeat, JOB_HEARTBEAT_FIELDS, 3);
#define job_finish_FIELD(name, TYPE, limit, since) RECORD_FIELD(job_finish, name, TYPE, limit, since)
RECORD_CLASS(job_finish, JOB_FINISH_FIELDS, 3);

STATIC_ASSERT(sizeof(struct job_claimed) * JOB_CLAIM_MAX <= ANSWER_SIZE_MAX, "a claim's answer fits");

static const struct span nothing = {NULL, 0};

/* ---- which one is next ---- */

/* Jobs that this claim passes by: they can't be read, or those who would have to be told of them can't be. They keep their
 * place, and whoever stands behind them comes first. And the clients that it has passed by, none of whose jobs may run now: where
 * they take turns (store/job_fairness.h), it goes on behind this one. */
struct passed {
    enum error why; /* of the first */
    uint32_t count;
    struct key last;
    bool turns_passed;
    struct uuid client;
    struct job_turn turns[JOB_PASSED_MAX];
};

static void pass(struct passed *passed, const struct key *key, enum error why)
{
    ASSERT(passed->count < JOB_PASSED_MAX);
    if (passed->count == 0)
        passed->why = why;
    passed->turns[passed->count++] = job_queue_turn(key);
    passed->last = *key;
}

static bool is_passed(const struct passed *passed, const struct key *key)
{
    struct job_turn turn = job_queue_turn(key);
    for (uint32_t i = 0; i < passed->count; i++)
        if (memcmp(&passed->turns[i], &turn, sizeof(turn)) == 0)
            return true;
    return false;
}

struct candidate {
    struct uuid id;
    struct key key;
    enum error error; /* its row can't be read */
    bool in_turn;     /* of its client, who was served last when it is claimed */
    struct uuid client;
};

/* The first row that isn't passed, of all that is in the lane, or in it of this client (and kind). Ends: of those passed none comes
 * twice. */
static enum error first_in(struct txn *txn, enum job_lane lane, const struct uuid *name,
                           const struct uuid *work, const struct passed *passed, bool go_on,
                           struct candidate *ret)
{
    struct job_queue row = {.id = {{0}}};
    struct key behind;
    enum error e;
    if (go_on)
        behind = passed->last;
    do {
        e = job_queue_next(txn, lane, name, work, go_on ? &behind : NULL, &row, &ret->key);
        if (ret->key.size == 0)
            return e;
        behind = ret->key;
        go_on = true;
    } while (is_passed(passed, &ret->key));
    ret->id = row.id;
    ret->error = e;
    ret->in_turn = false;
    return OK;
}

static bool before(const struct candidate *a, const struct candidate *b)
{
    struct job_turn one = job_queue_turn(&a->key), other = job_queue_turn(&b->key);
    return memcmp(&one, &other, sizeof(one)) < 0;
}

/* The kinds that a claim of all kinds chooses from, each with the turn of its first row; when that has gone, or is passed by, a later one is
 * its first. */
struct kinds {
    bool known;
    uint32_t count;
    struct kind_turn {
        struct uuid work;
        struct job_turn turn;
    } kinds[JOB_CLAIM_WORKS_MAX];
};

static enum error find_kinds(struct txn *txn, const struct uuid *client, uint64_t fence, struct kinds *kinds)
{
    struct job_works works;
    enum error e = OK;
    job_works_begin(&works, fence);
    kinds->count = 0;
    kinds->known = true;
    while (kinds->count < JOB_CLAIM_WORKS_MAX && (e = job_works_next(txn, client, &works)) == OK)
        kinds->kinds[kinds->count++] = (struct kind_turn){.work = works.work, .turn = works.turn};
    return e == ERR_NOT_FOUND || kinds->count > 0 ? OK : e;
}

static struct kind_turn *first_kind(struct kinds *kinds)
{
    struct kind_turn *first = &kinds->kinds[0];
    for (uint32_t i = 1; i < kinds->count; i++)
        if (memcmp(&kinds->kinds[i].turn, &first->turn, sizeof(first->turn)) < 0)
            first = &kinds->kinds[i];
    return first;
}

/* The one that came first of all of them. Ends: a kind's turn only grows, or the kind goes. */
static enum error next_of_kinds(struct txn *txn, const struct job_claim *c, uint64_t fence,
                                const struct passed *passed, struct kinds *kinds, struct candidate *ret)
{
    enum error e = kinds->known ? OK : find_kinds(txn, &c->client, fence, kinds);
    while (!e && kinds->count > 0) {
        struct kind_turn *kind = first_kind(kinds);
        e = first_in(txn, LANE_OUTSIDE, &c->client, &kind->work, passed, false, ret);
        if (e == ERR_NOT_FOUND) {
            *kind = kinds->kinds[--kinds->count];
            e = OK;
            continue;
        }
        struct job_turn turn = job_queue_turn(&ret->key);
        if (e || memcmp(&turn, &kind->turn, sizeof(turn)) <= 0)
            return e;
        kind->turn = turn;
    }
    return e ? e : ERR_NOT_FOUND;
}

/* The better of *best and the first of this kind. */
static enum error consider(struct txn *txn, const struct job_claim *c, const struct uuid *work,
                           const struct passed *passed, struct candidate *best, bool *found)
{
    struct candidate one;
    enum error e = first_in(txn, LANE_OUTSIDE, &c->client, work, passed, false, &one);
    if (e)
        return e == ERR_NOT_FOUND ? OK : e;
    if (!*found || before(&one, best))
        *best = one;
    *found = true;
    return OK;
}

/* Of the client's kinds outside, or those that were named: the one that came first. */
static enum error next_outside(struct txn *txn, const struct job_claim *c, uint64_t fence,
                               const struct passed *passed, struct kinds *kinds, struct candidate *ret)
{
    struct uuid work;
    bool found = false;
    enum error e = OK;
    if (c->works.size == 0)
        return next_of_kinds(txn, c, fence, passed, kinds, ret);
    for (uint32_t at = 0; at + sizeof(work) <= c->works.size && !e; at += sizeof(work)) {
        memcpy(&work, (const uint8_t *)c->works.bytes + at, sizeof(work));
        e = consider(txn, c, &work, passed, ret, &found);
    }
    return e ? e : found ? OK : ERR_NOT_FOUND;
}

/* Of the client whose turn it is; of one that has none but what is passed, the next one's. */
static enum error first_in_turn(struct txn *txn, const struct fairness *f, const struct passed *passed,
                                struct candidate *ret)
{
    struct uuid last = passed->turns_passed ? passed->client : f->last;
    struct job_round round = {.last = last, .at = last};
    enum error e;
    while ((e = job_round_next(txn, &round)) == OK) {
        e = first_in(txn, LANE_FAIR, &round.at, NULL, passed, false, ret);
        if (e == ERR_NOT_FOUND)
            continue; /* as often as jobs are passed, at most */
        ret->in_turn = !e;
        ret->client = round.at;
        return e;
    }
    return e;
}

/* An operator's wish comes first, and what hasn't been given its turn yet last. */
static enum error next_in_turn(struct txn *txn, const struct fairness *f, const struct passed *passed,
                               struct candidate *ret)
{
    struct candidate other;
    enum error e = first_in(txn, LANE_SERVER, NULL, NULL, passed, false, &other);
    bool any = !e;
    if (e && e != ERR_NOT_FOUND)
        return e;
    if (any && job_queue_turn(&other.key).bytes[0] == 0) {
        *ret = other;
        return OK;
    }
    e = first_in_turn(txn, f, passed, ret);
    if (e == ERR_NOT_FOUND && any) {
        *ret = other;
        e = OK;
    }
    return e;
}

/* In the order of creation, part of which is left of a time when clients took turns. */
static enum error next_of_both(struct txn *txn, const struct passed *passed, struct candidate *ret)
{
    struct candidate other;
    enum error e = first_in(txn, LANE_SERVER, NULL, NULL, passed, false, ret);
    if (e && e != ERR_NOT_FOUND)
        return e;
    enum error more = first_in(txn, LANE_ORDER, NULL, NULL, passed, false, &other);
    if (!more && (e || before(&other, ret)))
        *ret = other;
    return e && more ? more : more && more != ERR_NOT_FOUND ? more : OK;
}

/* Of all clients: what is passed stands together, at the front. */
static enum error next_inside(struct txn *txn, const struct passed *passed, struct fairness *ret_fairness,
                              struct candidate *ret)
{
    enum error e = fairness_read(txn, ret_fairness);
    if (e == ERR_NOT_FOUND)
        return first_in(txn, LANE_SERVER, NULL, NULL, passed, passed->count > 0, ret);
    return !e && ret_fairness->on ? next_in_turn(txn, ret_fairness, passed, ret)
                                  : next_of_both(txn, passed, ret);
}

static enum error room_for(struct txn *txn, const struct job_claim *c)
{
    int64_t assigned = 0, running = 0;
    enum error e = OK;
    if (!c->running_max)
        return OK;
    e = job_count(txn, JOB_ASSIGNED, &assigned);
    if (!e)
        e = job_count(txn, JOB_RUNNING, &running);
    return e ? e : assigned + running < (int64_t)c->running_max ? OK : ERR_NOT_FOUND;
}

/* ---- claim ---- */

/* Fences never begin anew: while somebody has a lease, the row of the last one has gone (J4). */
static enum error next_fence(struct txn *txn, uint64_t *ret_fence)
{
    int64_t last = 0, assigned = 0, running = 0;
    enum error e = counter_read(txn, COUNTER_JOB_FENCE, nothing, &last);
    if (!e && last == 0 && (e = job_count(txn, JOB_ASSIGNED, &assigned)) == OK &&
        (e = job_count(txn, JOB_RUNNING, &running)) == OK && assigned + running > 0)
        e = ERR_DAMAGED;
    *ret_fence = (uint64_t)last + 1;
    return e;
}

/* Off it costs nothing, unless the job came back from a limit that was on. */
static void count(struct txn *txn, struct job *job, const struct job_claim *c)
{
    int64_t counted = 0;
    if (!c->client_max && job->slot != JOB_SLOT_PROMISED)
        return;
    job->slot = JOB_SLOT_COUNTED;
    counter_add(txn, COUNTER_JOBS_COUNTED, span_of(&job->client, sizeof(job->client)), 1);
    if (job_queue_counted(txn, &job->client, &counted) == OK && (!c->client_max || counted < c->client_max))
        job_queue_admit(txn, &job->client); /* the limit is a higher one now */
}

static void lease(struct txn *txn, struct job *job, const struct job_claim *c)
{
    count(txn, job, c);
    counter_add(txn, COUNTER_JOB_FENCE, nothing, 1);
    steady_note(txn, c->steady_us);
    job->owner = c->owner;
    job->worker = c->worker;
    job->progress = 0;
    job->stage = nothing;
    job->lease_us = job_later(c->steady_us, c->lease_us);
    job_due_set(txn, job, job->lease_us);
}

/* As pause_verdict, and its client's limit. */
static enum error verdict(struct txn *txn, const struct job_claim *c, const struct job *job,
                          enum job_lane *ret_lane)
{
    int64_t counted = 0;
    enum error e = pause_verdict(txn, job, ret_lane);
    if (e || !c->client_max || job->pass)
        return e;
    e = job_queue_counted(txn, &job->client, &counted);
    if (e || counted < (int64_t)c->client_max)
        return e;
    *ret_lane = LANE_LIMITED;
    return ERR_CONFLICT;
}

/* A row of the queue says less than the job's own. */
static bool stands_there(const struct job *job, const struct key *key)
{
    if (job->state != JOB_QUEUED || job->lane == LANE_NONE)
        return false;
    struct key wanted = job_queue_key(job), second = job_queue_order_key(job);
    return span_equal(key_span(key), key_span(&wanted)) ||
           (job->lane == LANE_FAIR && span_equal(key_span(key), key_span(&second)));
}

/* Whether it may run. ERR_NOT_FOUND: none may; ERR_CONFLICT: it has been set aside, where it belongs. */
static enum error may_run(struct txn *txn, const struct job_claim *c, struct job *job, uint32_t *aside,
                          struct passed *passed)
{
    enum job_lane lane = LANE_NONE;
    enum error e = verdict(txn, c, job, &lane);
    if (e != ERR_CONFLICT)
        return e;
    if (*aside == 0 || (lane == LANE_LIMITED && c->lane == LANE_OUTSIDE)) /* as all others of its client */
        return ERR_NOT_FOUND;
    --*aside;
    if (lane != LANE_PAUSED_WORK) { /* as all others of the client: those come to it in later rounds */
        passed->turns_passed = true;
        passed->client = job->client;
    }
    if (lane == LANE_LIMITED)
        job->slot = JOB_NO_SLOT; /* others are counted, and bring it back */
    else
        job_queue_pass_on(txn, job);
    job_queue_move(txn, job, lane);
    job_write(txn, job);
    return ERR_CONFLICT;
}

static uint64_t later_of(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* A claim that has waited for the writer may be older than the end of the job's backoff, which has overtaken it: the job is assigned
 * no earlier than that. */
static enum error take(struct txn *txn, uint64_t at_us, const struct job_claim *c,
                       const struct candidate *one, uint64_t fence, uint32_t *aside, struct passed *passed,
                       struct answer *answer)
{
    struct job_texts texts;
    struct job job;
    enum error e = job_open(txn, &one->id, &job, &texts);
    if (e == ERR_NOT_FOUND || (!e && !stands_there(&job, &one->key)))
        return ERR_DAMAGED;
    if (!e)
        e = may_run(txn, c, &job, aside, passed);
    if (!e)
        e = job_tellable(txn, &job);
    if (!e)
        e = job_move(txn, &job, JOB_ASSIGN, later_of(at_us, job.queued_us), nothing);
    if (e)
        return e;
    job.fence = fence;
    struct job_claimed claimed = {.id = job.id,
                                  .client = job.client,
                                  .fence = job.fence,
                                  .queued_us = job.queued_us,
                                  .claimed_us = job.updated_us,
                                  .attempt = job.attempt,
                                  .kind = job.kind,
                                  .incomplete = job.incomplete};
    /* One that can't start stays ASSIGNED, and goes back when its lease is over. */
    if (c->running && job_move(txn, &job, JOB_START, at_us, nothing) == OK) {
        job.started_us = job.updated_us;
        claimed.running = 1;
    }
    lease(txn, &job, c);
    job_write(txn, &job);
    claimed.lease_us = job.lease_us;
    answer_add(answer, &claimed, sizeof(claimed));
    return OK;
}

/* The next one that may run; ERR_NOT_FOUND: there is none. Ends: whoever doesn't come along is set aside or passed by. */
static enum error claim_one(struct txn *txn, uint64_t at_us, const struct job_claim *c, uint32_t *aside,
                            struct passed *passed, struct kinds *kinds, struct answer *answer)
{
    struct fairness fairness;
    struct candidate one;
    uint64_t fence;
    enum error e = next_fence(txn, &fence);
    while (!e) {
        e = c->lane == LANE_OUTSIDE ? next_outside(txn, c, fence, passed, kinds, &one)
                                    : next_inside(txn, passed, &fairness, &one);
        if (e)
            break;
        e = one.error ? one.error : take(txn, at_us, c, &one, fence, aside, passed, answer);
        if (!e && one.in_turn)
            fairness_served(txn, &fairness, &one.client);
        if (!e)
            return OK;
        if (e == ERR_NOT_FOUND || txn->error || (e != ERR_CONFLICT && passed->count == JOB_PASSED_MAX))
            break;
        if (e != ERR_CONFLICT)
            pass(passed, &one.key, e);
        e = OK;
    }
    return e == ERR_NOT_FOUND && passed->count > 0 ? passed->why : e;
}

static enum error apply_claim(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct job_claim *c = command;
    struct passed passed;
    struct kinds kinds;
    uint32_t most = c->most < JOB_CLAIM_MAX ? c->most : JOB_CLAIM_MAX, claimed = 0;
    uint32_t aside = JOB_SET_ASIDE_MAX;
    enum error e = c->lane == LANE_SERVER || c->lane == LANE_OUTSIDE ? OK : ERR_INVALID;
    if (!e && (most == 0 || c->lease_us == 0))
        e = ERR_INVALID;
    passed.count = 0; /* the rest is large, and not cleared */
    kinds.known = false;
    while (!e && claimed < most) {
        passed.turns_passed = false;
        e = room_for(txn, c);
        if (!e)
            e = claim_one(txn, at_us, c, &aside, &passed, &kinds, answer);
        claimed += e == OK;
    }
    return claimed > 0 || aside < JOB_SET_ASIDE_MAX ? OK : e; /* those that were set aside stay so */
}

static void renew_claim(void *command, uint64_t steady_us)
{
    ((struct job_claim *)command)->steady_us = steady_us;
}

const struct command_class job_claim_class = {
    .name = "job.claim",
    .record = &job_claim_record,
    .apply = apply_claim,
    .renew = renew_claim,
    .topic = JOB_TOPIC_QUEUE,
    .code = 201,
    .priority = COMMAND_HIGH, /* what is in the queue must get out of it */
};

/* ---- who says it ---- */

static bool of_client(const struct job *job, const struct uuid *client)
{
    static const struct uuid anybody = {{0}};
    return uuid_equal(client, &anybody) || uuid_equal(client, &job->client);
}

uint64_t job_lease_end(const struct job *job, uint64_t grace_us, uint64_t first_fence)
{
    bool graced = job->owner == 0 && (first_fence == 0 || job->fence < first_fence);
    return graced && job->lease_us < grace_us ? grace_us : job->lease_us;
}

/* Whether this fence still counts, when its lease ends at end_us. */
static enum error held(const struct job *job, uint64_t fence, uint64_t steady_us, uint64_t end_us)
{
    if (job->fence != fence)
        return ERR_FENCED;
    if (job->state == JOB_CANCELED)
        return ERR_CONFLICT;
    if (job->state != JOB_ASSIGNED && job->state != JOB_RUNNING)
        return ERR_FENCED;
    return steady_us < end_us ? OK : ERR_EXPIRED;
}

/* The entry of the due index stays where it is; whoever comes to it finds that there is more time (store/job_fire.h). */
static void extend(struct txn *txn, struct job *job, uint64_t steady_us, uint64_t lease_us)
{
    uint64_t until = job_later(steady_us, lease_us);
    if (until > job->lease_us)
        job->lease_us = until;
    steady_note(txn, steady_us);
}

/* ---- start ---- */

static enum error apply_start(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct job_start *c = command;
    struct job_texts texts;
    struct job job;
    enum error e = job_open(txn, &c->id, &job, &texts);
    if (!e)
        e = held(&job, c->fence, c->steady_us, job.lease_us);
    if (!e && job.state == JOB_ASSIGNED)
        e = job_tellable(txn, &job);
    if (e)
        return e;
    if (job.state == JOB_ASSIGNED) {
        e = job_move(txn, &job, JOB_START, at_us, nothing);
        if (e)
            return e;
        job.started_us = job.updated_us;
        extend(txn, &job, c->steady_us, c->lease_us);
        job_write(txn, &job);
    }
    answer_add(answer, &job.started_us, sizeof(job.started_us));
    return OK;
}

const struct command_class job_start_class = {
    .name = "job.start",
    .record = &job_start_record,
    .apply = apply_start,
    .code = 202,
    .priority = COMMAND_HIGH,
};

/* ---- heartbeat ---- */

static enum error apply_heartbeat(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct job_heartbeat *c = command;
    struct job_texts texts;
    struct job job;
    (void)at_us;
    enum error e = job_open(txn, &c->id, &job, &texts);
    if (!e && !of_client(&job, &c->client))
        e = ERR_NOT_FOUND;
    if (!e)
        e = held(&job, c->fence, c->steady_us, job_lease_end(&job, c->grace_us, c->first_fence));
    if (e)
        return e;
    extend(txn, &job, c->steady_us, c->lease_us);
    job.lease_us = job_lease_end(&job, c->grace_us, c->first_fence); /* what it is told is true */
    if (c->progress <= 1000)
        job.progress = c->progress;
    if (c->stage.size > 0)
        job.stage = c->stage;
    job_write(txn, &job);
    answer_add(answer, &job.lease_us, sizeof(job.lease_us));
    return OK;
}

const struct command_class job_heartbeat_class = {
    .name = "job.heartbeat",
    .record = &job_heartbeat_record,
    .apply = apply_heartbeat,
    .code = 203,
    .priority = COMMAND_HIGH,
};

/* ---- finish ---- */

#define DATA_MAX 700u /* the widest: every member below, and a message of 512 bytes is the report's */

struct ending {
    enum job_event event;
    uint8_t failure;
    bool retryable, last;
    uint16_t progress;
    uint32_t outputs;
    uint64_t outputs_bytes;
};

/* Members of the event's payload, without braces. */
static struct span ending_data(const struct ending *end, char text[DATA_MAX])
{
    struct json_sink sink;
    struct json json;
    json_sink_init(&sink, text, DATA_MAX, NULL, NULL);
    json_init(&json, &sink);
    json_object_begin(&json);
    if (end->event == JOB_SUCCEED) {
        json_key(&json, "outputs");
        json_object_begin(&json);
        JSON_MEMBER(&json, "count", uint, end->outputs);
        JSON_MEMBER(&json, "bytes", uint, end->outputs_bytes);
        json_object_end(&json);
    } else {
        JSON_MEMBER(&json, "reason", string, job_failure_reason(end->failure));
        JSON_MEMBER(&json, "reason_code", string, job_failure_code(end->failure));
        JSON_MEMBER(&json, "retryable", bool, end->retryable);
        if (end->progress > 0) {
            json_key(&json, "progress");
            json_decimal(&json, end->progress, 3);
        }
        if (end->last) {
            JSON_MEMBER(&json, "final", bool, true);
            JSON_MEMBER(&json, "retries_exhausted", bool, true);
        }
    }
    json_object_end(&json);
    ASSERT(sink.status == JSON_OK && sink.length >= 2);
    return span_of(text + 1, sink.length - 2);
}

/* The edge to the final state and all that goes with it, but for the row. */
static enum error conclude(struct txn *txn, struct job *job, uint64_t at_us, const struct ending *end,
                           const struct job_end *report)
{
    char text[DATA_MAX];
    enum error e = job_move(txn, job, end->event, at_us, ending_data(end, text));
    if (e)
        return e;
    job->failure = end->failure;
    job->retryable = end->retryable;
    if (end->event == JOB_SUCCEED)
        job->progress = 1000;
    else if (end->progress > 0)
        job->progress = end->progress;
    job->lease_us = 0;
    job->owner = 0;
    job_end(txn, job, at_us, report);
    return OK;
}

static bool last_attempt(const struct job *job, uint16_t retry_max)
{
    return job->attempt > retry_max; /* retries so far: attempt - 1 (AMB-J-34) */
}

enum error job_lose(struct txn *txn, struct job *job, uint64_t at_us, uint64_t kept_us, uint16_t retry_max)
{
    struct ending end = {.event = JOB_FAIL,
                         .failure = JOB_RUNNER_LOST,
                         .retryable = true,
                         .last = last_attempt(job, retry_max)};
    return conclude(txn, job, at_us, &end, &(struct job_end){.kept_us = kept_us});
}

/* What a worker said, for telling a repeat from another word. Not a secret: a mistake is found, not an attack. */
static struct digest said(const struct job_finish *c)
{
    struct digest digest = {{0}};
    const uint64_t numbers[] = {c->event,    c->failure, c->retryable,
                                c->progress, c->outputs, c->outputs_bytes};
    const uint64_t words[] = {checksum(1, numbers, sizeof(numbers)),
                              checksum(2, c->message.bytes, c->message.size),
                              checksum(3, c->result.bytes, c->result.size)};
    memcpy(digest.bytes, words, sizeof(words));
    digest.bytes[sizeof(digest.bytes) - 1] = 1; /* of what nobody has said all of it is zero */
    return digest;
}

static enum error read_report(struct txn *txn, struct key key, struct report *ret, bool *ret_knows)
{
    struct span bytes;
    uint8_t version;
    enum error e = txn_get(txn, TABLE_REPORTS, key_span(&key), &version, &bytes);
    *ret_knows = !e && version >= REPORT_KNOWS_RETRIED;
    return e ? e : record_decode(&report_record, version, bytes, ret);
}

/* Of a report that doesn't know whether the job was queued again by itself: it has been, if that was wanted, and if it is at a later
 * attempt. An attempt that succeeded has no later one. */
static bool went_on(const struct job *job, const struct job_finish *c, uint32_t attempt)
{
    return c->auto_retry && c->retryable && job->attempt > attempt;
}

/* The same word again, after it was taken: OK, and answered as it was, whatever has become of the job since. Fences never fall
 * from an attempt to the next one, so it isn't among those before the first smaller one. */
static enum error repeated(struct txn *txn, const struct job *job, const struct job_finish *c,
                           struct job_finished *ret)
{
    struct digest digest = said(c);
    enum error refusal = ERR_FENCED;
    for (uint32_t attempt = job->attempt; attempt > 0; attempt--) {
        struct key key = report_key(&job->id, (uint16_t)attempt);
        struct report report;
        bool knows;
        enum error e = read_report(txn, key, &report, &knows);
        if (e == ERR_NOT_FOUND) /* this one isn't over */
            continue;
        if (e || report.fence < c->fence)
            return e ? e : refusal;
        if (report.fence > c->fence)
            continue;
        if (memcmp(&report.digest, &digest, sizeof(digest)) == 0) {
            *ret = (struct job_finished){.client = job->client,
                                         .started_us = report.started_us,
                                         .finished_us = report.finished_us,
                                         .state = report.outcome,
                                         .kind = job->kind,
                                         .attempt_last = attempt > c->retry_max,
                                         .attempt = (uint16_t)attempt,
                                         .retried = knows ? report.retried : went_on(job, c, attempt)};
            return OK;
        }
        if (report.outcome == JOB_CANCELED)
            refusal = ERR_CONFLICT;
    }
    return refusal;
}

/* Whether it is queued again by itself. One that can't be retried stays FAILED. */
static bool goes_on(struct txn *txn, const struct job *job, const struct job_finish *c)
{
    return c->event != JOB_SUCCEED && c->auto_retry && c->retryable &&
           job_retriable(txn, job, c->retry_max, c->queue_max) == OK;
}

static enum error retry_now(struct txn *txn, struct job *job, uint64_t at_us, const struct job_finish *c)
{
    uint64_t backoff_us = c->backoff_us;
    if (c->base_us)
        backoff_us = job_backoff_us((uint16_t)(job->attempt + 1), c->base_us, c->most_us, c->chance);
    return job_retry_now(txn, job, at_us, c->steady_us, backoff_us);
}

/* The event of that retry could not be written: the job stays FAILED, and its report says so. */
static void report_stays(struct txn *txn, const struct job *job)
{
    struct key key = report_key(&job->id, job->attempt);
    struct report report;
    if (txn_read(txn, TABLE_REPORTS, key_span(&key), &report) != OK)
        return;
    report.retried = 0;
    txn_write(txn, TABLE_REPORTS, key_span(&key), &report);
}

static enum error finish(struct txn *txn, struct job *job, uint64_t at_us, const struct job_finish *c,
                         struct answer *answer)
{
    bool bad = c->event != JOB_SUCCEED, last = bad && last_attempt(job, c->retry_max);
    struct ending end = {.event = c->event,
                         .failure = c->failure,
                         .retryable = c->retryable,
                         .last = last,
                         .progress = c->progress,
                         .outputs = c->outputs,
                         .outputs_bytes = c->outputs_bytes};
    struct job_end report = {.digest = said(c),
                             .message = c->message,
                             .result = c->result,
                             .kept_us = c->kept_us,
                             .retried = goes_on(txn, job, c)};
    enum error e = conclude(txn, job, at_us, &end, &report);
    if (e)
        return e;
    struct job_finished finished = {.client = job->client,
                                    .started_us = job->started_us,
                                    .finished_us = job->finished_us,
                                    .state = job->state,
                                    .made = 1,
                                    .kind = job->kind,
                                    .attempt_last = last_attempt(job, c->retry_max),
                                    .attempt = job->attempt,
                                    .retried = report.retried};
    if (report.retried && retry_now(txn, job, at_us, c) != OK) {
        finished.retried = 0;
        report_stays(txn, job);
    }
    answer_add(answer, &finished, sizeof(finished));
    job_write(txn, job);
    return OK;
}

static enum error apply_finish(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct job_finish *c = command;
    struct job_texts texts;
    struct job job;
    if ((c->event != JOB_SUCCEED && c->event != JOB_FAIL && c->event != JOB_TIME_OUT) ||
        c->failure >= JOB_FAILURE_COUNT || (c->event == JOB_SUCCEED) != (c->failure == JOB_NO_FAILURE))
        return ERR_INVALID;
    enum error e = job_open(txn, &c->id, &job, &texts);
    if (!e && !of_client(&job, &c->client))
        e = ERR_NOT_FOUND;
    if (e)
        return e;
    e = held(&job, c->fence, c->steady_us, job_lease_end(&job, c->grace_us, c->first_fence));
    if (!e && job.state != JOB_RUNNING)
        e = ERR_FENCED;
    if (e == ERR_FENCED || e == ERR_CONFLICT) {
        struct job_finished finished;
        e = repeated(txn, &job, c, &finished);
        if (!e)
            answer_add(answer, &finished, sizeof(finished));
        return e;
    }
    if (!e)
        e = job_tellable(txn, &job);
    return e ? e : finish(txn, &job, at_us, c, answer);
}

const struct command_class job_finish_class = {
    .name = "job.finish",
    .record = &job_finish_record,
    .apply = apply_finish,
    .code = 204,
    .priority = COMMAND_HIGH,
};

/* ---- stores of format 1 ---- */

/* A job that can't be read may still have it: whoever fires it goes by the entry's key alone. */
static void gather(struct txn *txn, const struct due_entry *entry)
{
    struct due_entry now = *entry;
    struct due found;
    struct job job;
    enum error e = job_read(txn, &entry->id, &job);
    now.shard = job_shard(DUE_JOB_LEASE, &entry->id);
    now.row = (struct due){.kind = e ? 0 : job.state, .value = e ? 0 : job.owner};
    due_clear(txn, entry->queue, entry->shard, entry->due_us, &entry->id);
    bool its_own = !e && (job.state == JOB_ASSIGNED || job.state == JOB_RUNNING) && job.due_us == now.due_us;
    struct key key = due_key(now.queue, now.shard, now.due_us, &now.id);
    if ((its_own || (e && e != ERR_NOT_FOUND)) &&
        txn_read(txn, TABLE_DUE, key_span(&key), &found) == ERR_NOT_FOUND)
        due_set(txn, &now);
}

enum error job_lease_gather(struct txn *txn)
{
    enum { PAGE = 32 };
    struct due_entry entries[PAGE];
    for (uint16_t shard = JOB_LEASE_SHARDS; shard < JOB_SHARDS; shard++) {
        uint32_t count = PAGE;
        while (count == PAGE && !txn->error) { /* every one of a page leaves the front */
            enum error e = due_scan_keys(txn, DUE_JOB_LEASE, shard, UINT64_MAX, entries, PAGE, &count);
            if (e)
                return e;
            for (uint32_t i = 0; i < count && !txn->error; i++)
                gather(txn, &entries[i]);
        }
    }
    return txn->error;
}
