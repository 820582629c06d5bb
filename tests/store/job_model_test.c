/* Jobs against a model of them: commands at random, with clocks that leap, workers that come too late and servers that start again;
 * every answer is the model's, every row says what the model says, and what must be true of all of them is (J1 to J8).
 *
 *     JOB_MODEL_OPERATIONS=10000000 JOB_MODEL_SEED=7 make test TEST=job_model     so many, from another seed (G22)
 */
#include "acutest.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "chaos/dice.h"
#include "store/counter.h"
#include "tests/store/fresh.h"
#include "tests/store/job_model.h"

enum {
    OPERATIONS = 300000,
    BATCH = 48,
    COMMAND_MAX = 2048,
    LOOK_EVERY = 100, /* batches */
    CHECK_EVERY = 500,
    RESTART_EVERY = 700,
    SHARDS = 4,
    CLIENTS = 3,
    EVENTS_MOST = 200, /* of one job: retention takes them at once */
    FENCES = 1 << 25
};

#define SECOND_US UINT64_C(1000000)
#define LEASE_US  (30 * SECOND_US)
#define KEPT_US   (90 * SECOND_US)
#define GRID_US   (SECOND_US / 2)
#define RETRY_MAX (MODEL_ATTEMPTS - 1)

struct play {
    struct fresh fresh;
    struct dice dice;
    uint64_t wall_us, steady_us, start, grace_us;
    bool grid; /* time passes in steps of GRID_US, so that it meets deadlines at their very moment */
    uint64_t operations, accepted;
    uint64_t said
        [JOB_EVENT_COUNT]; /* what happened how often: a play in which something never does shows nothing */
    uint64_t last_fence;
    uint32_t count;
    struct batch_item items[BATCH];
    struct model_answer expected[BATCH];
    uint8_t bytes[BATCH][COMMAND_MAX];
    uint64_t ended[FENCES / 64]; /* bit per fence: an end under it was accepted */
    struct model model;
};
static struct play p;

/* ---- commands ---- */

static uint32_t below(uint32_t bound)
{
    return dice_below(&p.dice, bound);
}

static bool chance(uint32_t of_thousand)
{
    return dice_chance(&p.dice, of_thousand);
}

static void put(const struct command_class *class, const void *command)
{
    struct batch_item *item = &p.items[p.count];
    size_t size = record_encode(class->record, command, p.bytes[p.count], COMMAND_MAX);
    TEST_ASSERT(size > 0);
    *item = (struct batch_item){.class = class, .at_us = p.wall_us, .bytes = span_of(p.bytes[p.count], size)};
    model_apply(&p.model, class, command, p.wall_us, &p.expected[p.count]);
    p.count++;
}

static struct uuid some_client(void)
{
    return (struct uuid){{0xc1, [15] = (uint8_t)(1 + below(CLIENTS))}};
}

static struct uuid new_id(void)
{
    struct uuid id;
    uint64_t words[2] = {dice_draw(&p.dice), dice_draw(&p.dice)};
    memcpy(id.bytes, words, sizeof(words));
    id.bytes[15] = (uint8_t)below(SHARDS);
    return id;
}

/* One of them, of this state rather than another. */
static struct model_job *some_job(uint8_t state)
{
    struct model_job *found = NULL;
    uint32_t at = below(MODEL_JOBS);
    for (uint32_t i = 0; i < MODEL_JOBS; i++) {
        struct model_job *job = &p.model.jobs[(at + i) % MODEL_JOBS];
        if (job->there && (!found || job->state == state))
            found = job;
        if (found && found->state == state)
            break;
    }
    return found;
}

static uint64_t some_fence(const struct model_job *job)
{
    switch (below(40)) {
    case 0:
        return job->fence - 1;
    case 1:
        return job->fence + 1;
    case 2:
        return job->reports[1].fence;
    case 3:
        return 0;
    default:
        return job->fence;
    }
}

static struct uuid its_client(const struct model_job *job)
{
    static const struct uuid nobody = {{0}};
    return chance(900) ? job->client : chance(500) ? nobody : some_client();
}

static void draw_submit(void)
{
    static const char *const keys[] = {"a", "b", "c", "d", "e", "f"};
    static const char *const kinds[] = {"x.a", "x.b", "x.c"};
    bool user = chance(300), later = chance(250);
    const struct model_job *there = some_job(JOB_STATE_COUNT);
    struct job_submit c = {.id = there && chance(20) ? there->id : new_id(),
                           .client = some_client(),
                           .type = later         ? JOB_DEFERRED
                                   : chance(100) ? JOB_EMIT_EVENT
                                                 : JOB_EXECUTE,
                           .kind = user ? WORK_KIND_USER : WORK_KIND_SUCCESS_FAST,
                           .priority = chance(100),
                           .runtime_max_ms = 120000,
                           .payload_max = 262144,
                           .queue_max = chance(100) ? below(60) : 1000,
                           .active_max = chance(50) ? 1 + below(90) : 1000};
    if (user)
        c.kind_name = span_text(kinds[below(3)]);
    if (later)
        c.execution_us =
            p.wall_us - 2 * SECOND_US + (chance(500) ? below(120) * GRID_US : below(60000) * UINT64_C(1000));
    if (chance(300)) {
        c.key = span_text(keys[below(6)]);
        c.digest.bytes[0] = chance(200);
    }
    put(&job_submit_class, &c);
}

static void draw_claim(void)
{
    bool outside = chance(350);
    struct job_claim c = {.lane = outside ? LANE_OUTSIDE : LANE_SERVER,
                          .client = some_client(),
                          .most = (uint16_t)(1 + below(4)),
                          .running = outside || chance(400),
                          .owner = outside ? 0 : p.start,
                          .running_max = chance(100) ? 1 + below(40) : 0,
                          .steady_us = p.steady_us,
                          .lease_us =
                              chance(p.steady_us < p.grace_us ? 500 : 50) ? 1 + below(1000000) : LEASE_US,
                          .worker = span_text("w")};
    put(&job_claim_class, &c);
}

static void draw_start(void)
{
    const struct model_job *job = some_job(JOB_ASSIGNED);
    const struct job_start c = {job->id, some_fence(job), p.steady_us, LEASE_US};
    put(&job_start_class, &c);
}

static void draw_heartbeat(void)
{
    const struct model_job *job = some_job(chance(500) ? JOB_RUNNING : JOB_ASSIGNED);
    const struct job_heartbeat c = {.id = job->id,
                                    .client = its_client(job),
                                    .fence = some_fence(job),
                                    .steady_us = p.steady_us,
                                    .lease_us = chance(100) ? SECOND_US : LEASE_US,
                                    .progress = (uint16_t)below(1200),
                                    .stage = span_text("on its way"),
                                    .grace_us = p.grace_us,
                                    .first_fence = p.fresh.store->first_fence};
    put(&job_heartbeat_class, &c);
}

static struct job_finish end_of(const struct model_job *job)
{
    static const char *const messages[] = {"", "it broke", "it broke otherwise"};
    bool good = chance(500);
    return (struct job_finish){.id = job->id,
                               .client = its_client(job),
                               .fence = some_fence(job),
                               .event = good          ? JOB_SUCCEED
                                        : chance(800) ? JOB_FAIL
                                                      : JOB_TIME_OUT,
                               .failure = good ? JOB_NO_FAILURE : JOB_SIMULATED_FAILURE,
                               .retryable = !good && chance(500),
                               .progress = good ? 0 : (uint16_t)below(2),
                               .outputs = below(2),
                               .kept_us = KEPT_US,
                               .retry_max = RETRY_MAX,
                               .queue_max = chance(100) ? below(60) : 1000,
                               .auto_retry = chance(300),
                               .backoff_us = chance(800) ? SECOND_US : 0,
                               .base_us = chance(300) ? SECOND_US : 0,
                               .most_us = 3 * SECOND_US,
                               .chance = chance(500) ? UINT32_MAX : 0,
                               .message = span_text(messages[below(3)]),
                               .result = span_text(chance(500) ? "{}" : "")};
}

/* Or what was said of it before: once more, or not quite. */
static void draw_finish(void)
{
    const struct model_job *job = some_job(chance(700) ? JOB_RUNNING : JOB_FAILED);
    struct job_finish c = end_of(job);
    const struct model_report *report = &job->reports[1 + below(job->attempt)];
    if (report->there && report->said.fence && chance(700)) {
        c = report->said;
        c.outputs ^= chance(200);
    }
    c.steady_us = p.steady_us;
    c.grace_us = p.grace_us;
    c.first_fence = p.fresh.store->first_fence;
    put(&job_finish_class, &c);
}

static void draw_cancel(void)
{
    const struct model_job *job = some_job((uint8_t)below(JOB_STATE_COUNT));
    const struct job_cancel c = {job->id, its_client(job), KEPT_US};
    put(&job_cancel_class, &c);
}

static void draw_retry(void)
{
    const struct model_job *job = some_job(JOB_FAILED);
    const struct job_retry c = {.id = job->id,
                                .client = its_client(job),
                                .retry_max = RETRY_MAX,
                                .queue_max = chance(100) ? below(60) : 1000,
                                .steady_us = p.steady_us,
                                .base_us = chance(900) ? SECOND_US : 0,
                                .most_us = 3 * SECOND_US,
                                .chance = (uint32_t)dice_draw(&p.dice)};
    put(&job_retry_class, &c);
}

static void fire_shard(uint16_t shard, uint16_t most, uint32_t queue_max)
{
    const struct job_fire c = {.shard = shard,
                               .wall_us = p.wall_us + (chance(100) ? below(2000000) : 0),
                               .steady_us = p.steady_us,
                               .grace_us = p.grace_us,
                               .first_fence = p.fresh.store->first_fence,
                               .start = p.start,
                               .queue_max = queue_max,
                               .retry_max = RETRY_MAX,
                               .kept_us = KEPT_US,
                               .most = most,
                               .auto_retry = chance(500),
                               .base_us = chance(900) ? SECOND_US : 0,
                               .most_us = 3 * SECOND_US,
                               .chance = (uint32_t)dice_draw(&p.dice)};
    put(&job_fire_class, &c);
}

static void draw_reap(void)
{
    struct uuid ids[3];
    for (size_t i = 0; i < 3; i++)
        ids[i] = some_job(chance(500) ? JOB_RUNNING : JOB_ASSIGNED)->id;
    ids[1] = chance(500) ? ids[0] : ids[1];
    const struct job_reap c = {.ids = span_of(ids, sizeof(ids)),
                               .steady_us = p.steady_us,
                               .start = p.start,
                               .retry_max = RETRY_MAX,
                               .kept_us = KEPT_US,
                               .auto_retry = chance(500),
                               .queue_max = chance(100) ? below(60) : 1000,
                               .base_us = chance(900) ? SECOND_US : 0,
                               .most_us = 3 * SECOND_US,
                               .chance = (uint32_t)dice_draw(&p.dice)};
    put(&job_reap_class, &c);
}

static void sweep(void)
{
    const struct retention_sweep c = {.limit = 0};
    put(&retention_sweep_class, &c);
}

/* One that has come to very many events goes to its end. */
static bool draw_old(void)
{
    for (uint32_t i = 0; i < MODEL_JOBS; i++) {
        const struct model_job *job = &p.model.jobs[i];
        if (job->there && job->events > EVENTS_MOST && !job_state_final(job->state)) {
            const struct job_cancel c = {job->id, job->client, KEPT_US};
            put(&job_cancel_class, &c);
            return true;
        }
    }
    return false;
}

static void draw(void)
{
    uint32_t face = below(100);
    bool some = model_room(&p.model)<MODEL_JOBS, room = model_room(&p.model)> 0;
    if (p.operations % 64 == 0 && draw_old())
        return;
    if (p.operations % 256 == 0) {
        put(&job_fairness_class, &(struct job_fairness){.on = chance(500), .most = MODEL_JOBS});
        return;
    }
    if (!some || (room && face < 20))
        draw_submit();
    else if (face < 34)
        draw_claim();
    else if (face < 45)
        draw_start();
    else if (face < 55)
        draw_heartbeat();
    else if (face < 73)
        draw_finish();
    else if (face < 77)
        draw_cancel();
    else if (face < 85)
        draw_retry();
    else if (face < 95)
        fire_shard((uint16_t)below(SHARDS), chance(300) ? (uint16_t)(1 + below(3)) : JOB_FIRE_MAX,
                   chance(100) ? below(60) : 1000);
    else if (face < 97)
        draw_reap();
    else
        sweep();
}

/* ---- time ---- */

static void pass(void)
{
    uint64_t us = chance(20) ? below(40000000) : chance(300) ? below(2000000) : below(20000);
    if (p.grid)
        us = chance(20) ? below(80) * GRID_US : chance(100) ? below(4) * GRID_US : 0;
    p.wall_us += us;
    p.steady_us += us;
    if (chance(3)) { /* the wall clock leaps; the other one doesn't know */
        p.wall_us -= 120 * SECOND_US;
        p.wall_us += p.grid ? below(480) * GRID_US : below(240000000);
    }
}

/* Nobody knows how much time has passed: steady time begins where the wall clock is. */
static void restart(void)
{
    fresh_reopen(&p.fresh);
    TEST_ASSERT(store_load(p.fresh.store) == OK);
    p.wall_us = p.wall_us / GRID_US * GRID_US + below(200) * GRID_US - 30 * SECOND_US;
    p.steady_us = p.wall_us;
    p.grid = chance(500);
    p.grace_us = p.steady_us + LEASE_US;
    p.start++;
}

/* ---- judging ---- */

/* J3: under one fence at most one end is accepted. */
static void judge_end(uint64_t fence)
{
    TEST_ASSERT(fence < FENCES);
    TEST_CHECK_(!(p.ended[fence / 64] >> fence % 64 & 1), "J3: two ends under fence %llu",
                (unsigned long long)fence);
    p.ended[fence / 64] |= UINT64_C(1) << fence % 64;
    p.accepted++;
}

/* J4: fences only grow, and with them the attempts of one job don't fall. */
static void judge_claims(const struct answer *answer)
{
    struct job_claimed claimed;
    for (uint32_t at = 0; at + sizeof(claimed) <= answer->size; at += sizeof(claimed)) {
        memcpy(&claimed, answer->bytes + at, sizeof(claimed));
        TEST_CHECK_(claimed.fence > p.last_fence, "J4: fence %llu behind %llu",
                    (unsigned long long)claimed.fence, (unsigned long long)p.last_fence);
        TEST_CHECK_(claimed.attempt <= MODEL_ATTEMPTS, "J7: attempt %u", claimed.attempt);
        p.last_fence = claimed.fence;
        p.said[JOB_ASSIGN]++;
    }
}

static void judge_fired(const struct answer *answer)
{
    struct job_fired fired;
    for (uint32_t at = 0; at + sizeof(fired) <= answer->size; at += sizeof(fired)) {
        memcpy(&fired, answer->bytes + at, sizeof(fired));
        TEST_CHECK(!fired.damaged);
        if (fired.event < JOB_EVENT_COUNT)
            p.said[fired.event]++;
    }
}

static void judge_item(const struct batch_item *item)
{
    const struct answer *answer = &item->answer;
    if (item->class == &job_claim_class)
        judge_claims(answer);
    if (item->class == &job_fire_class || item->class == &job_reap_class)
        judge_fired(answer);
    if (item->class == &job_finish_class) {
        struct job_finished finished;
        struct job_finish c;
        memcpy(&finished, answer->bytes, sizeof(finished));
        TEST_CHECK(record_decode(&job_finish_record, job_finish_record.version, item->bytes, &c) == OK);
        if (finished.made)
            judge_end(c.fence);
        p.said[finished.made ? c.event : JOB_EMIT]++; /* said again */
    }
    if (item->class == &job_retry_class || item->class == &job_cancel_class) {
        struct job_changed changed;
        memcpy(&changed, answer->bytes, sizeof(changed));
        p.said[item->class == &job_retry_class ? JOB_RETRY : JOB_CANCEL] += changed.made;
    }
    if (item->class == &job_submit_class)
        p.said[JOB_CREATE]++;
    if (item->class == &job_start_class)
        p.said[JOB_START]++;
}

static bool flush(void)
{
    bool good = TEST_CHECK(batch_run(p.fresh.store, p.items, p.count) == OK);
    for (uint32_t i = 0; good && i < p.count; i++) {
        const struct answer *answer = &p.items[i].answer;
        const struct model_answer *expected = &p.expected[i];
        good =
            TEST_CHECK_(answer->error == expected->error && answer->size == expected->size &&
                            memcmp(answer->bytes, expected->bytes, expected->size) == 0,
                        "operation %llu, %s: %s (%u bytes), not %s (%u)",
                        (unsigned long long)(p.operations - p.count + i), p.items[i].class->name,
                        error_name(answer->error), answer->size, error_name(expected->error), expected->size);
        if (good && answer->error == OK)
            judge_item(&p.items[i]);
    }
    p.count = 0;
    return good;
}

/* J1, J2, J8: every job is there, is what the model says, and has as many events as changes. */
static bool judge_row(struct txn *txn, const struct model_job *m)
{
    struct job job;
    struct event event;
    char id[UUID_TEXT_SIZE];
    uuid_format(&m->id, id);
    if (!TEST_CHECK_(job_read(txn, &m->id, &job) == OK, "J2: job %s is lost", id))
        return false;
    bool queued = job.state == JOB_QUEUED && job.due_us == 0;
    return TEST_CHECK_(job.state == m->state && job.attempt == m->attempt && job.seq == m->seq &&
                           job.type == m->type && job.failure == m->failure &&
                           job.retryable == m->retryable && job.progress == m->progress,
                       "job %s is %s", id, job_state_name(job.state)) &&
           TEST_CHECK_(job.events == m->events && job.updated_us == m->updated_us, "J8: job %s", id) &&
           TEST_CHECK_(job.queued_us == m->queued_us && job.started_us == m->started_us &&
                           job.finished_us == m->finished_us && job.retire_us == m->retire_us &&
                           job.created_us == m->created_us && job.execution_us == m->execution_us,
                       "job %s has other times", id) &&
           TEST_CHECK_(job.fence == m->fence && job.lease_us == m->lease_us && job.owner == m->owner &&
                           job.due_us == m->due_us && (job.lane != LANE_NONE) == queued,
                       "job %s has another lease or timer", id) &&
           TEST_CHECK_(event_read(txn, &m->id, job.events, &event) == OK && event.to_state == job.state &&
                           event.at_us == job.updated_us,
                       "J8: the last event of job %s", id);
}

static bool judge_rows(void)
{
    struct view *view = view_open_outside(p.fresh.store, 0);
    bool good = true;
    uint64_t there = 0;
    TEST_ASSERT(view != NULL);
    for (uint32_t i = 0; i < MODEL_JOBS && good; i++)
        if (p.model.jobs[i].there) {
            there++;
            good = judge_row(&view->txn, &p.model.jobs[i]);
        }
    good = good && TEST_CHECK(txn_rows(&view->txn, TABLE_JOBS) == there);
    view_close(view);
    return good;
}

/* J6: what follows from the rows is what is there, in the due index, the queue and the counters. */
static bool judge_all(void)
{
    char text[FRESH_TEXT];
    uint64_t findings = fresh_findings(&p.fresh, text);
    return TEST_CHECK_(findings == 0, "J6: %llu findings, the first: %s", (unsigned long long)findings, text);
}

/* ---- a play ---- */

static bool run_batches(uint64_t operations)
{
    bool good = true;
    for (uint64_t batch = 1; good && p.operations < operations; batch++) {
        uint32_t count = 1 + below(BATCH);
        for (uint32_t i = 0; i < count; i++, p.operations++) {
            pass();
            draw();
        }
        good = flush();
        if (good && batch % LOOK_EVERY == 0)
            good = judge_rows();
        if (good && batch % CHECK_EVERY == 0)
            good = judge_all();
        if (good && batch % RESTART_EVERY == 0)
            restart();
    }
    return good;
}

static uint32_t unfinished(void)
{
    uint32_t count = 0;
    for (uint8_t state = JOB_CREATED; state <= JOB_RUNNING; state++)
        count += model_count(&p.model, state);
    return count;
}

/* J6: workers that live bring every job to its end, whatever was held, deferred or waiting. */
static bool come_to_rest(void)
{
    static const uint8_t lanes[] = {LANE_SERVER, LANE_OUTSIDE};
    bool good = true;
    uint32_t rounds = 0;
    for (; good && unfinished() > 0 && rounds < 1000; rounds++) {
        p.wall_us += 10 * SECOND_US;
        p.steady_us += 10 * SECOND_US;
        for (uint16_t shard = 0; shard < SHARDS; shard++)
            fire_shard(shard, JOB_FIRE_MAX, 1000);
        struct job_claim c = {.lane = lanes[rounds % 2],
                              .client = {{0xc1, [15] = (uint8_t)(1 + rounds / 2 % CLIENTS)}},
                              .most = 4,
                              .running = 1,
                              .owner = rounds % 2 ? 0 : p.start,
                              .steady_us = p.steady_us,
                              .lease_us = LEASE_US,
                              .worker = span_text("w")};
        put(&job_claim_class, &c);
        for (uint32_t i = 0; i < MODEL_JOBS && p.count < BATCH; i++) {
            const struct model_job *job = &p.model.jobs[i];
            if (!job->there || job->state != JOB_RUNNING || job->lease_us <= p.steady_us)
                continue;
            struct job_finish end = end_of(job);
            end.fence = job->fence;
            end.client = job->client;
            end.auto_retry = 0;
            end.steady_us = p.steady_us;
            put(&job_finish_class, &end);
        }
        p.operations += p.count;
        good = flush();
    }
    return good && TEST_CHECK_(unfinished() == 0, "J6: %u jobs are stuck", unfinished());
}

static uint64_t number_of(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text && text[0] ? strtoull(text, NULL, 10) : otherwise;
}

static void test_jobs_do_what_the_model_does_J1_J8_G22(void)
{
    uint64_t operations = number_of("JOB_MODEL_OPERATIONS", OPERATIONS);
    if (access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 0); /* it isn't about the disk */
    fresh_open(&p.fresh);
    TEST_ASSERT(store_load(p.fresh.store) == OK);
    p.dice = dice_of(number_of("JOB_MODEL_SEED", 1));
    p.wall_us = p.steady_us = UINT64_C(1700000000000000);
    p.start = 1;
    if (run_batches(operations) && come_to_rest() && judge_rows() && judge_all())
        for (uint32_t event = 0; event < JOB_EVENT_COUNT; event++)
            TEST_CHECK_(p.said[event] >= operations / 10000, "%s: %llu times", job_event_name((uint8_t)event),
                        (unsigned long long)p.said[event]);
    TEST_CHECK(p.accepted > operations / 100);
    fresh_close(&p.fresh);
    if (getenv("JOB_MODEL_OPERATIONS"))
        printf("%llu operations, %llu ends accepted, 0 twice\n", (unsigned long long)p.operations,
               (unsigned long long)p.accepted);
}

TEST_LIST
= {
    {"jobs: against a model, at random (J1..J8, G22, JOB-290, JOB-291, JOB-456)",
     test_jobs_do_what_the_model_does_J1_J8_G22},
    {NULL, NULL},
};
