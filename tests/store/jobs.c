#include "tests/store/jobs.h"

#include <stdio.h>

#define TEST_NO_MAIN
#include "acutest.h"

#include "store/checksum.h"
#include "store/counter.h"
#include "store/nouns.h"

/* ---- the store ---- */

void jobs_open(struct jobs *j)
{
    memset(j, 0, sizeof(*j));
    fresh_open(&j->fresh);
    TEST_ASSERT(store_load(j->fresh.store) == OK);
    j->at_us = j->steady_us = JOBS_AT_US;
    j->start = 1;
    j->lease_us = JOBS_LEASE_US;
    j->kept_us = 30 * JOBS_DAY_US;
    j->base_us = JOBS_SECOND_US;
    j->most_us = 60 * JOBS_SECOND_US;
    j->queue_max = 10000;
    j->active_max = 20000;
    j->retry_max = 3;
    j->client = fresh_uuid();
    j->other = fresh_uuid();
}

void jobs_close(struct jobs *j)
{
    fresh_close(&j->fresh);
}

void jobs_pass(struct jobs *j, uint64_t us)
{
    j->at_us += us;
    j->steady_us += us;
}

static enum error run(struct jobs *j, const struct command_class *class, const void *command,
                      struct answer *answer)
{
    return batch_one(j->fresh.store, class, j->at_us, command, answer);
}

/* ---- commands ---- */

struct job_submit jobs_wish(struct jobs *j, uint8_t kind)
{
    return (struct job_submit){.id = fresh_uuid(),
                               .client = j->client,
                               .kind = kind,
                               .should_fail_ppm = 200000,
                               .runtime_max_ms = 120000,
                               .payload_max = 262144,
                               .queue_max = j->queue_max,
                               .active_max = j->active_max};
}

struct job_submit jobs_wish_user(struct jobs *j, const char *kind_name)
{
    struct job_submit c = jobs_wish(j, WORK_KIND_USER);
    c.kind_name = span_text(kind_name);
    c.payload = span_text("{}");
    return c;
}

struct job_submit jobs_wish_at(struct jobs *j, uint64_t execution_us)
{
    struct job_submit c = jobs_wish(j, WORK_KIND_SCHEDULED_ON_TIME);
    c.type = JOB_DEFERRED;
    c.execution_us = execution_us;
    return c;
}

enum error jobs_submit(struct jobs *j, const struct job_submit *c, struct job_submitted *ret)
{
    struct answer answer;
    struct job_submitted submitted;
    enum error e = run(j, &job_submit_class, c, &answer);
    if (!e)
        TEST_CHECK(record_decode(&job_submitted_record, 1, span_of(answer.bytes, answer.size), &submitted) ==
                   OK);
    if (!e && ret)
        *ret = submitted;
    return e;
}

struct uuid jobs_new(struct jobs *j)
{
    struct job_submit c = jobs_wish(j, WORK_KIND_SUCCESS_FAST);
    TEST_CHECK(jobs_submit(j, &c, NULL) == OK);
    return c.id;
}

struct job_claim jobs_claim_of(struct jobs *j, uint16_t most)
{
    return (struct job_claim){.lane = LANE_SERVER,
                              .most = most,
                              .owner = j->start,
                              .running_max = j->running_max,
                              .steady_us = j->steady_us,
                              .lease_us = j->lease_us,
                              .worker = span_text("worker-1")};
}

enum error jobs_claim(struct jobs *j, const struct job_claim *c, struct job_claimed ret[JOB_CLAIM_MAX],
                      uint32_t *ret_count)
{
    struct answer answer;
    enum error e = run(j, &job_claim_class, c, &answer);
    *ret_count = 0;
    if (e)
        return e;
    TEST_CHECK(answer.size % sizeof(*ret) == 0);
    memcpy(ret, answer.bytes, answer.size);
    *ret_count = (uint32_t)(answer.size / sizeof(*ret));
    return OK;
}

enum error jobs_claim_one(struct jobs *j, struct job_claimed *ret)
{
    struct job_claimed claimed[JOB_CLAIM_MAX];
    struct job_claim c = jobs_claim_of(j, 1);
    uint32_t count;
    enum error e = jobs_claim(j, &c, claimed, &count);
    if (e)
        return e;
    TEST_CHECK(count == 1);
    if (ret)
        *ret = claimed[0];
    return OK;
}

enum error jobs_begin(struct jobs *j, const struct uuid *id, uint64_t fence)
{
    const struct job_start c = {*id, fence, j->steady_us, j->lease_us};
    return run(j, &job_start_class, &c, NULL);
}

enum error jobs_beat(struct jobs *j, const struct uuid *id, uint64_t fence)
{
    const struct job_heartbeat c = {.id = *id,
                                    .fence = fence,
                                    .steady_us = j->steady_us,
                                    .lease_us = j->lease_us,
                                    .progress = UINT16_MAX,
                                    .grace_us = j->grace_us,
                                    .first_fence = j->fresh.store->first_fence};
    return run(j, &job_heartbeat_class, &c, NULL);
}

struct job_finish jobs_end_of(struct jobs *j, const struct uuid *id, uint64_t fence, enum job_event event)
{
    bool good = event == JOB_SUCCEED;
    return (struct job_finish){.id = *id,
                               .fence = fence,
                               .event = (uint8_t)event,
                               .failure = good                    ? JOB_NO_FAILURE
                                          : event == JOB_TIME_OUT ? JOB_TIMEOUT
                                                                  : JOB_SIMULATED_FAILURE,
                               .retryable = !good,
                               .outputs = good,
                               .outputs_bytes = good ? 4096 : 0,
                               .steady_us = j->steady_us,
                               .kept_us = j->kept_us,
                               .retry_max = j->retry_max,
                               .queue_max = j->queue_max,
                               .grace_us = j->grace_us,
                               .first_fence = j->fresh.store->first_fence,
                               .message = span_text(good ? "" : "it broke"),
                               .result = span_text(good ? "{\"ok\":true}" : "")};
}

enum error jobs_finish(struct jobs *j, const struct job_finish *c, struct job_finished *ret)
{
    struct answer answer;
    enum error e = run(j, &job_finish_class, c, &answer);
    if (!e && TEST_CHECK(answer.size == sizeof(*ret)) && ret)
        memcpy(ret, answer.bytes, sizeof(*ret));
    return e;
}

static enum error changed(struct jobs *j, const struct command_class *class, const void *command,
                          struct job_changed *ret)
{
    struct answer answer;
    enum error e = run(j, class, command, &answer);
    if (!e && TEST_CHECK(answer.size == sizeof(*ret)) && ret)
        memcpy(ret, answer.bytes, sizeof(*ret));
    return e;
}

enum error jobs_cancel(struct jobs *j, const struct uuid *client, const struct uuid *id,
                       struct job_changed *ret)
{
    const struct job_cancel c = {*id, *client, j->kept_us};
    return changed(j, &job_cancel_class, &c, ret);
}

enum error jobs_retry(struct jobs *j, const struct uuid *client, const struct uuid *id,
                      struct job_changed *ret)
{
    const struct job_retry c = {.id = *id,
                                .client = *client,
                                .retry_max = j->retry_max,
                                .queue_max = j->queue_max,
                                .steady_us = j->steady_us,
                                .base_us = j->base_us,
                                .most_us = j->most_us,
                                .chance = 1u << 31};
    return changed(j, &job_retry_class, &c, ret);
}

static uint32_t fire_shard(struct jobs *j, uint16_t shard, struct job_fired ret[JOB_FIRE_MAX])
{
    struct answer answer;
    const struct job_fire c = {.shard = shard,
                               .wall_us = j->at_us,
                               .steady_us = j->steady_us,
                               .grace_us = j->grace_us,
                               .first_fence = j->fresh.store->first_fence,
                               .start = j->start,
                               .queue_max = j->queue_max,
                               .retry_max = j->retry_max,
                               .kept_us = j->kept_us,
                               .most = JOB_FIRE_MAX,
                               .auto_retry = j->auto_retry,
                               .base_us = j->base_us,
                               .most_us = j->most_us};
    TEST_CHECK(run(j, &job_fire_class, &c, &answer) == OK);
    memcpy(ret, answer.bytes, answer.size);
    return (uint32_t)(answer.size / sizeof(*ret));
}

uint32_t jobs_fire(struct jobs *j, struct job_fired *ret, uint32_t most)
{
    struct job_fired fired[JOB_FIRE_MAX];
    uint32_t all = 0;
    for (uint16_t shard = 0; shard < JOB_SHARDS; shard++) {
        uint32_t count;
        do {
            count = fire_shard(j, shard, fired);
            for (uint32_t i = 0; i < count; i++, all++)
                if (all < most)
                    ret[all] = fired[i];
        } while (count == JOB_FIRE_MAX);
    }
    return all;
}

enum error jobs_reap(struct jobs *j, const struct uuid *id, struct job_fired *ret)
{
    struct answer answer;
    const struct job_reap c = {.ids = span_of(id, sizeof(*id)),
                               .steady_us = j->steady_us,
                               .start = j->start,
                               .retry_max = j->retry_max,
                               .kept_us = j->kept_us,
                               .auto_retry = j->auto_retry,
                               .queue_max = j->queue_max,
                               .base_us = j->base_us,
                               .most_us = j->most_us};
    enum error e = run(j, &job_reap_class, &c, &answer);
    *ret = (struct job_fired){.event = JOB_EVENT_COUNT};
    if (!e && answer.size == sizeof(*ret))
        memcpy(ret, answer.bytes, sizeof(*ret));
    return e;
}

void jobs_sweep(struct jobs *j)
{
    uint32_t said[2];
    do {
        struct answer answer;
        const struct retention_sweep c = {.limit = 0};
        TEST_ASSERT(run(j, &retention_sweep_class, &c, &answer) == OK);
        memcpy(said, answer.bytes, sizeof(said));
    } while (said[1]);
}

/* The only one in the queue that may be claimed is claimed; others are in the way. */
struct jobs_held jobs_in(struct jobs *j, uint8_t state)
{
    struct jobs_held held = {.fence = 0};
    struct job_claimed claimed;
    if (state == JOB_CREATED) {
        struct job_submit c = jobs_wish_at(j, j->at_us + 3600 * JOBS_SECOND_US);
        TEST_CHECK(jobs_submit(j, &c, NULL) == OK);
        held.id = c.id;
        return held;
    }
    held.id = jobs_new(j);
    if (state == JOB_CANCELED)
        TEST_CHECK(jobs_cancel(j, &j->client, &held.id, NULL) == OK);
    if (state == JOB_QUEUED || state == JOB_CANCELED)
        return held;
    TEST_CHECK(jobs_claim_one(j, &claimed) == OK && uuid_equal(&claimed.id, &held.id));
    held.fence = claimed.fence;
    if (state >= JOB_RUNNING)
        TEST_CHECK(jobs_begin(j, &held.id, held.fence) == OK);
    if (state >= JOB_SUCCEEDED) {
        struct job_finish c =
            jobs_end_of(j, &held.id, held.fence, state == JOB_SUCCEEDED ? JOB_SUCCEED : JOB_FAIL);
        TEST_CHECK(jobs_finish(j, &c, NULL) == OK);
    }
    TEST_CHECK(jobs_look(j, &held.id).state == state);
    return held;
}

/* ---- looking ---- */

enum error jobs_find(struct jobs *j, const struct uuid *id, struct job *ret)
{
    struct view *view = view_open_outside(j->fresh.store, 0);
    TEST_ASSERT(view != NULL);
    enum error e = job_read(&view->txn, id, ret);
    view_close(view);
    ret->worker = ret->stage = span_of(NULL, 0);
    return e;
}

struct job jobs_look(struct jobs *j, const struct uuid *id)
{
    struct job job = {.state = JOB_STATE_COUNT};
    TEST_CHECK(jobs_find(j, id, &job) == OK);
    return job;
}

enum error jobs_report(struct jobs *j, const struct uuid *id, struct report *ret)
{
    struct job job = jobs_look(j, id);
    struct view *view = view_open_outside(j->fresh.store, 0);
    TEST_ASSERT(view != NULL);
    enum error e = job_read_report(&view->txn, &job, ret);
    view_close(view);
    ret->message = ret->result = span_of(NULL, 0);
    return e;
}

int64_t jobs_count(struct jobs *j, uint8_t state)
{
    return fresh_counter(&j->fresh, COUNTER_JOBS, span_of(&state, sizeof(state)));
}

uint64_t jobs_rows(struct jobs *j, uint32_t table)
{
    struct view *view = view_open_outside(j->fresh.store, 0);
    TEST_ASSERT(view != NULL);
    uint64_t rows = txn_rows(&view->txn, table);
    view_close(view);
    return rows;
}

uint64_t jobs_sum(struct jobs *j)
{
    struct view *view = view_open_outside(j->fresh.store, 0);
    const struct key from = {.size = 0};
    uint64_t sum = 0;
    TEST_ASSERT(view != NULL);
    for (uint32_t table = TABLE_META + 1; table < j->fresh.schema->tables_count; table++) {
        struct scan scan = txn_scan(&view->txn, table, key_span(&from), 0, SCAN_UP);
        while (scan_next(&scan))
            sum +=
                checksum(checksum(table, scan.key.bytes, scan.key.size), scan.bytes.bytes, scan.bytes.size);
        TEST_CHECK(scan_end(&scan) == OK);
    }
    view_close(view);
    return sum;
}

/* ---- the log ---- */

static void judge_edge(struct txn *txn, const struct event *event, uint64_t seq)
{
    static const char cause[] = "\"cause\":\"lease_expired\"";
    (void)txn;
    uint8_t to = JOB_STATE_COUNT;
    TEST_CHECK(event->from_state != event->to_state);
    if (seq == 1) { /* JOB-208 */
        TEST_CHECK(event->name == JOB_CREATE && event->from_state == EVENT_NO_STATE &&
                   event->to_state == JOB_CREATED);
    } else if (event->name == JOB_REQUEUE) {
        TEST_CHECK(event->from_state == JOB_ASSIGNED && event->to_state == JOB_QUEUED);
        TEST_CHECK(span_equal(event->data, span_text(cause)));
    } else {
        TEST_CHECK(lifecycle_next(&job_lifecycle, event->from_state, (uint8_t)event->name, &to) == OK);
        TEST_CHECK(to == event->to_state);
    }
}

static void judge(struct txn *txn, const struct job *job, uint64_t seq, const struct event *event,
                  const struct event *before)
{
    struct uuid id = job_event_id(txn->store, &job->id, seq);
    struct uuid earlier = job_event_id(txn->store, &job->id, seq - 1);
    judge_edge(txn, event, seq);
    TEST_CHECK(event->domain == JOB_DOMAIN && event->at_us % 1000 == 0);
    TEST_CHECK(!uuid_equal(&id, &earlier));
    if (seq > 1)
        TEST_CHECK(event->at_us > before->at_us && event->from_state == before->to_state);
    if (seq == job->events)
        TEST_CHECK(job->updated_us == event->at_us && job->state == event->to_state);
}

const char *jobs_story(struct jobs *j, const struct uuid *id)
{
    static char text[JOBS_STORY];
    struct view *view = view_open_outside(j->fresh.store, 0);
    struct event event, before = {.at_us = 0};
    struct job job = {.events = 0};
    size_t length = 0;
    TEST_ASSERT(view != NULL);
    TEST_CHECK(job_read(&view->txn, id, &job) == OK);
    text[0] = '\0';
    for (uint64_t seq = 1; seq <= job.events; seq++) {
        if (!TEST_CHECK(event_read(&view->txn, id, seq, &event) == OK))
            break;
        judge(&view->txn, &job, seq, &event, &before);
        before = event;
        length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%s", seq > 1 ? " " : "",
                                   job_event_name((uint8_t)event.name) + strlen("job."));
        TEST_ASSERT(length < sizeof(text));
    }
    TEST_CHECK(event_read(&view->txn, id, (uint64_t)job.events + 1, &event) == ERR_NOT_FOUND);
    view_close(view);
    return text;
}

const char *jobs_payload(struct jobs *j, const struct uuid *id, uint64_t seq)
{
    static char text[2048];
    struct view *view = view_open_outside(j->fresh.store, 0);
    struct job_definition definition;
    struct event event;
    struct job job;
    struct json_sink sink;
    struct json json;
    TEST_ASSERT(view != NULL);
    TEST_ASSERT(job_read(&view->txn, id, &job) == OK);
    TEST_ASSERT(job_read_definition(&view->txn, id, &definition) == OK);
    TEST_ASSERT(event_read(&view->txn, id, seq, &event) == OK);
    json_sink_init(&sink, text, sizeof(text) - 1, NULL, NULL);
    json_init(&json, &sink);
    json_object_begin(&json);
    job_event_write_json(&json, j->fresh.store, &job, job_kind_name(job.kind, definition.kind_name), seq,
                         &event);
    json_object_end(&json);
    TEST_CHECK(sink.status == JSON_OK);
    text[sink.length] = '\0';
    view_close(view);
    char *payload = strstr(text, "\"payload\":");
    TEST_ASSERT(payload != NULL);
    text[sink.length - 1] = '\0'; /* the event's own brace */
    return payload + strlen("\"payload\":");
}
