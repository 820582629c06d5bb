/* Workers and shards over a real store, on the virtual clock: jobs of the catalogue from submit to report. */
#include "acutest.h"

#include <stdio.h>

#include "actors/job_figures.h"
#include "actors/shard.h"
#include "actors/worker.h"
#include "runtime/runtime.h"
#include "runtime/telemetry.h"
#include "store/job_change.h"
#include "store/job_lease.h"
#include "store/job_queue.h"
#include "store/job_submit.h"
#include "tests/support/stage.h"

#define SECOND_US UINT64_C(1000000)

static const struct uuid client = {{0xc1, [15] = 1}};

/* ---- what a front does ---- */

static enum error submit_at(uint64_t number, uint8_t kind, uint64_t execution_us)
{
    struct jobs_settings s = jobs_settings();
    struct job_submit c = {.id = stage_id(number),
                           .client = client,
                           .type = execution_us ? JOB_DEFERRED : JOB_EXECUTE,
                           .kind = kind,
                           .execution_us = execution_us,
                           .runtime_max_ms = s.runtime_max_ms,
                           .payload_max = s.payload_max,
                           .queue_max = s.queue_max};
    return store_submit(&job_submit_class, &c, NULL, 0, NULL, actor_deadline_ms(60000));
}

static void submit(uint64_t number, uint8_t kind)
{
    EXPECT(submit_at(number, kind, 0) == OK);
}

static struct job job_of(uint64_t number)
{
    struct job job = {.state = JOB_STATE_COUNT};
    struct uuid id = stage_id(number);
    struct view *view = view_open(stage_store);
    EXPECT(view != NULL && job_read(&view->txn, &id, &job) == OK);
    view_close(view);
    job.worker = job.stage = span_of("", 0);
    return job;
}

static bool events_are(uint64_t number, const uint8_t *names, uint32_t count)
{
    struct uuid id = stage_id(number);
    struct event event;
    uint64_t last = 0, before = 0;
    struct view *view = view_open(stage_store);
    bool same = event_last(&view->txn, &id, &last) == OK && last == count;
    for (uint32_t i = 0; i < count && same; i++) {
        same = event_read(&view->txn, &id, i + 1, &event) == OK && event.name == names[i] &&
               event.at_us > before;
        before = event.at_us;
    }
    view_close(view);
    return same;
}
static uint8_t event_of(uint64_t number, uint64_t seq)
{
    struct uuid id = stage_id(number);
    struct event event = {.name = JOB_EVENT_COUNT};
    struct view *view = view_open(stage_store);
    EXPECT(event_read(&view->txn, &id, seq, &event) == OK);
    view_close(view);
    return (uint8_t)event.name;
}

/* The number of the worker that has it. */
static uint32_t holder_of(uint64_t number)
{
    struct job job = {.state = JOB_STATE_COUNT};
    struct uuid id = stage_id(number);
    struct view *view = view_open(stage_store);
    EXPECT(job_read(&view->txn, &id, &job) == OK && job.worker.size == sizeof(WORKER_NAME));
    uint32_t holder = (uint32_t)(((const char *)job.worker.bytes)[sizeof(WORKER_NAME) - 1] - '0');
    view_close(view);
    return holder;
}

#define EVENTS(number, ...) \
    events_are((number), (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

/* Events of one instant are a millisecond apart each, so a start may be told for later than it was; no job looks shorter by that. */
static uint64_t seconds_of(const struct job *job)
{
    uint64_t us = job->finished_us - job->started_us;
    EXPECT(us % SECOND_US < 10000);
    return us / SECOND_US;
}

static void until_final(uint64_t number, uint64_t seconds)
{
    uint64_t end = actor_now() + seconds * NS_PER_S;
    while (!job_state_final(job_of(number).state) && actor_now() < end)
        actor_sleep(actor_deadline_ms(10));
    EXPECT(job_state_final(job_of(number).state));
}

/* ---- who serves ---- */

static actor_pid served[JOB_SHARDS + 64];
static uint32_t served_count;

static actor_pid start_one(const struct actor_class *class, const char *prefix, uint32_t number)
{
    char name[32];
    actor_pid pid = 0;
    snprintf(name, sizeof(name), "%s%u", prefix, number);
    struct spawn_options o = {.class = class,
                              .name = name,
                              .args = &number,
                              .args_size = sizeof(number),
                              .scheduler = SPAWN_ON((int)(number % 2))};
    EXPECT(actor_spawn(&o, &pid) == OK);
    served[served_count++] = pid;
    return pid;
}

static actor_pid start_worker(uint32_t number)
{
    return start_one(&worker_class, WORKER_NAME, number);
}

static void serve(uint32_t workers)
{
    served_count = 0;
    stage_writer();
    for (uint32_t i = 0; i < JOB_SHARDS; i++)
        start_one(&shard_class, "scheduler:", i);
    for (uint32_t i = 0; i < workers; i++)
        start_worker(i);
}

static void end_serving(void)
{
    for (uint32_t i = 0; i < served_count; i++)
        stage_kill(served[i]);
}

static uint64_t told_of(enum telemetry_event event)
{
    return telemetry_counter_sum(runtime_telemetry(runtime_self()), event);
}

static void run(void (*body)(void))
{
    for (uint64_t seed = 1; seed <= 5; seed++)
        TEST_CHECK(stage_run(&(struct stage){.seed = seed}, body) == 0);
}

/* ---- the ends that the catalogue promises ---- */

static void success_body(void)
{
    serve(2);
    submit(1, WORK_KIND_SUCCESS_FAST);
    until_final(1, 5);
    struct job job = job_of(1);
    EXPECT(job.state == JOB_SUCCEEDED && job.attempt == 1 && job.progress == 1000);
    EXPECT(EVENTS(1, JOB_CREATE, JOB_ENQUEUE, JOB_ASSIGN, JOB_START, JOB_SUCCEED));
    EXPECT(seconds_of(&job) == 1);
    EXPECT(job.due_us == 0 && job.lease_us == 0 && job.lane == LANE_NONE);
    end_serving();
}

static void test_success(void)
{
    run(success_body);
}

static void long_body(void)
{
    serve(1);
    submit(1, WORK_KIND_RUNS_LONG);
    until_final(1, 130);
    struct job job = job_of(1);
    EXPECT(job.state == JOB_SUCCEEDED);
    EXPECT(seconds_of(&job) == 110);
    EXPECT(told_of(TELEMETRY_WORKER_HEARTBEAT) == 21); /* each five seconds, but for the end */
    submit(2, WORK_KIND_RUNS_OVER_TIMEOUT);
    until_final(2, 130);
    job = job_of(2);
    EXPECT(job.state == JOB_FAILED && job.failure == JOB_TIMEOUT && job.retryable);
    EXPECT(seconds_of(&job) == 120);
    EXPECT(EVENTS(2, JOB_CREATE, JOB_ENQUEUE, JOB_ASSIGN, JOB_START, JOB_TIME_OUT));
    end_serving();
}

static void test_long(void)
{
    run(long_body);
}

static void failure_body(void)
{
    serve(1);
    submit(1, WORK_KIND_FAIL_AFTER_PROGRESS);
    submit(2, WORK_KIND_RETRY_ON_FAIL);
    until_final(2, 60);
    struct job job = job_of(1);
    EXPECT(job.state == JOB_FAILED && job.failure == JOB_SIMULATED_FAILURE && !job.retryable);
    EXPECT(job.progress == 500);
    EXPECT(job_of(2).state == JOB_FAILED && job_of(2).retryable);
    struct job_retry c = {.id = stage_id(2),
                          .client = client,
                          .retry_max = 3,
                          .queue_max = 10,
                          .steady_us = store_steady_us(stage_store),
                          .base_us = SECOND_US,
                          .most_us = 60 * SECOND_US,
                          .chance = UINT32_MAX};
    struct job_changed changed;
    size_t size = 0;
    EXPECT(store_submit(&job_retry_class, &c, &changed, sizeof(changed), &size, DEADLINE_NONE) == OK);
    EXPECT(changed.state == JOB_QUEUED && changed.attempt == 2);
    actor_sleep(actor_deadline_ms(900));
    EXPECT(job_of(2).state == JOB_QUEUED && job_of(2).lane == LANE_NONE); /* not before its backoff */
    until_final(2, 10);
    EXPECT(job_of(2).state == JOB_SUCCEEDED && job_of(2).attempt == 2);
    EXPECT(EVENTS(2, JOB_CREATE, JOB_ENQUEUE, JOB_ASSIGN, JOB_START, JOB_FAIL, JOB_RETRY, JOB_ASSIGN,
                  JOB_START, JOB_SUCCEED));
    end_serving();
}

static void test_failure_and_retry(void)
{
    run(failure_body);
}

/* Each of its transitions is told, also the one that nobody asked for. */
static void automatic_body(void)
{
    struct jobs_settings settings = jobs_defaults;
    settings.retry_auto = true;
    jobs_configure(&settings);
    uint64_t retried = job_figures_events(JOB_RETRY), told = told_of(TELEMETRY_JOB_TRANSITION);
    serve(1);
    submit(2, WORK_KIND_RETRY_ON_FAIL);
    for (int i = 0; i < 600 && job_of(2).state != JOB_SUCCEEDED; i++)
        actor_sleep(actor_deadline_ms(100));
    EXPECT(EVENTS(2, JOB_CREATE, JOB_ENQUEUE, JOB_ASSIGN, JOB_START, JOB_FAIL, JOB_RETRY, JOB_ASSIGN,
                  JOB_START, JOB_SUCCEED));
    actor_sleep(actor_deadline_ms(100));
    EXPECT(job_figures_events(JOB_RETRY) == retried + 1);
    EXPECT(told_of(TELEMETRY_JOB_TRANSITION) == told + 7); /* the first two are the front's to tell */
    EXPECT(stage_logged("\"current_state\":\"FAILED\",\"next_state\":\"QUEUED\",\"attempt\":2") == 1);
    jobs_configure(&jobs_defaults);
    end_serving();
}

static void test_automatic_retries_are_told(void)
{
    run(automatic_body);
}

/* ---- order ---- */

static void order_body(void)
{
    enum { JOBS = 12 };
    uint64_t before = 0;
    serve(1);
    for (uint64_t i = 1; i <= JOBS; i++)
        submit(i, WORK_KIND_FAIL_IMMEDIATE);
    until_final(JOBS, 60);
    for (uint64_t i = 1; i <= JOBS; i++) {
        struct job job = job_of(i);
        EXPECT(job.state == JOB_FAILED &&
               job.started_us > before); /* one at a time, in the order of creation */
        before = job.finished_us;
    }
    end_serving();
}

static void test_order(void)
{
    run(order_body);
}

static void nobody_body(void)
{
    serve(0);
    submit(1, WORK_KIND_SUCCESS_FAST);
    actor_sleep(actor_deadline_ms(60000));
    EXPECT(EVENTS(1, JOB_CREATE, JOB_ENQUEUE));
    start_worker(0);
    until_final(1, 5);
    end_serving();
}

static void test_nobody_works(void)
{
    run(nobody_body);
}

enum { COMMITS_JOBS = 5 };

/* The end of one and the claim of the next are one commit. A start is one of its own, unless the work is so short that its end
 * follows at once: then the start is in the commit of the end. */
static void count_commits(uint64_t speed_ppm, uint64_t wanted)
{
    struct jobs_settings settings = jobs_defaults;
    settings.speed_ppm = speed_ppm;
    jobs_configure(&settings);
    served_count = 0;
    stage_writer();
    for (uint64_t i = 1; i <= COMMITS_JOBS; i++)
        submit(i, WORK_KIND_SUCCESS_FAST);
    uint64_t before = atomic_load(&stage_store->commits);
    uint32_t number = 0;
    struct spawn_options o = {.class = &worker_class,
                              .args = &number,
                              .args_size = sizeof(number),
                              .scheduler =
                                  SPAWN_DEDICATED(0)}; /* the writer's: what is sent in a row arrives so */
    EXPECT(actor_spawn(&o, &served[served_count++]) == OK);
    until_final(COMMITS_JOBS, 20);
    EXPECT(atomic_load(&stage_store->commits) - before == wanted);
    jobs_configure(&jobs_defaults);
    end_serving();
}

static void commits_body(void)
{
    count_commits(1000000, 1 + 2 * COMMITS_JOBS);
}

static void commits_of_short_ones_body(void)
{
    count_commits(UINT64_C(1000000000000), 1 + COMMITS_JOBS);
}

static void test_commits(void)
{
    run(commits_body);
    run(commits_of_short_ones_body);
}

/* Whoever waits has the job in the commit that brought it; then come its start and its end. */
static void idle_commits_body(void)
{
    serve(2);
    actor_sleep(actor_deadline_ms(100));
    uint64_t before = atomic_load(&stage_store->commits);
    submit(1, WORK_KIND_SUCCESS_FAST);
    EXPECT(job_of(1).state == JOB_ASSIGNED && atomic_load(&stage_store->commits) - before == 1);
    until_final(1, 5);
    EXPECT(atomic_load(&stage_store->commits) - before == 3);
    EXPECT(EVENTS(1, JOB_CREATE, JOB_ENQUEUE, JOB_ASSIGN, JOB_START, JOB_SUCCEED));
    end_serving();
}

static void test_idle_commits(void)
{
    run(idle_commits_body);
}

/* ---- who is woken ---- */

enum { IDLE = 12 };

static size_t waiting(void)
{
    return atomic_load(&stage_store->standing);
}

static uint64_t found_nothing(void)
{
    return atomic_load(&stage_store->found_nothing);
}

/* One is taken up for one job, and claims once more when it is done and finds none. */
static void woken_body(void)
{
    serve(IDLE);
    actor_sleep(actor_deadline_ms(100));
    uint64_t before = found_nothing(), refused = atomic_load(&stage_store->refused);
    submit(1, WORK_KIND_FAIL_IMMEDIATE);
    actor_sleep(actor_deadline_ms(700)); /* nobody comes by himself meanwhile */
    EXPECT(job_of(1).state == JOB_FAILED);
    EXPECT(found_nothing() - before == 1);
    EXPECT(atomic_load(&stage_store->refused) == refused);
    end_serving();
}

static void test_one_is_woken(void)
{
    run(woken_body);
}

/* As many as there are jobs, wherever the wake-ups find them; and none waits until somebody comes by himself. */
static void all_woken_body(void)
{
    serve(IDLE);
    for (uint64_t round = 0; round < 20; round++) {
        uint64_t count = 1 + actor_random() % IDLE, first = 1 + round * IDLE;
        while (waiting() < IDLE)
            actor_sleep(actor_deadline_ms(1));
        for (uint64_t i = first; i < first + count; i++) {
            submit(i, WORK_KIND_SUCCESS_FAST);
            if (actor_random() % 2)
                actor_yield();
        }
        actor_sleep(actor_deadline_ms(20));
        for (uint64_t i = first; i < first + count; i++)
            EXPECT(job_of(i).state == JOB_RUNNING);
        until_final(first + count - 1, 5);
    }
    end_serving();
}

static void test_all_are_woken(void)
{
    run(all_woken_body);
}

/* Whoever is woken may die before it claims: the others come by. One that had claimed leaves the job to the end of the lease; one that
 * had started has lost it (JOB-314, JOB-316). */
static void woken_and_killed_body(void)
{
    enum { ROUNDS = 40, WORKERS = 3 };
    bool lefts[ROUNDS + 1];
    serve(WORKERS);
    actor_sleep(actor_deadline_ms(100));
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        uint32_t victim = JOB_SHARDS + (uint32_t)(actor_random() % WORKERS);
        submit(i, WORK_KIND_SUCCESS_FAST);
        for (uint64_t turns = actor_random() % 24; turns > 0; turns--)
            actor_yield();
        stage_kill(served[victim]); /* and isn't started again for now */
        actor_sleep(actor_deadline_ms(1100));
        struct job job = job_of(i);
        bool left = job.state == JOB_ASSIGNED && job.started_us == 0;
        EXPECT(left || (job.started_us > 0 && job.started_us <= job.queued_us + 1100000));
        lefts[i] = left;
        uint32_t count = served_count;
        served[victim] = start_worker(victim - JOB_SHARDS);
        served_count = count;
    }
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        until_final(i, 60);
        struct job job = job_of(i);
        EXPECT(job.state == JOB_SUCCEEDED || (job.state == JOB_FAILED && job.failure == JOB_RUNNER_LOST));
        EXPECT(job.attempt == 1);
        EXPECT(!lefts[i] || event_of(i, 4) == JOB_REQUEUE);
    }
    end_serving();
}

static void test_woken_and_killed(void)
{
    run(woken_and_killed_body);
}

/* Workers outside: who waits for a kind of the client's, and who for any. */
enum { WAITS_FOR_A = 1, WAITS_FOR_ANY, WAITS_FOR_B, PASSES_ON };
static actor_pid listener;

static void wait_outside(void *arg)
{
    char group[STORE_GROUP_SIZE];
    uintptr_t kind = (uintptr_t)arg;
    const char *name = kind == WAITS_FOR_B ? "x.b" : "x.a";
    struct uuid work = job_work_id(stage_store, WORK_KIND_USER, span_text(name));
    uint32_t topic = job_topic_client(&client);
    store_part_group(topic, job_topic_part(&client, kind == WAITS_FOR_ANY ? NULL : &work), group);
    EXPECT(actor_join(group) == OK);
    stage_note(listener, 0);
    struct message *m = actor_receive(NULL, NULL, DEADLINE_NONE);
    EXPECT(m->type == STORE_WAKE && m->size == sizeof(struct store_part));
    EXPECT(actor_leave(group) == OK);
    if (kind == PASSES_ON)
        store_pass_on(m);
    stage_note(listener, kind);
}

static void submit_outside(uint64_t number, const char *name)
{
    struct job_submit c = {.id = stage_id(number),
                           .client = client,
                           .kind = WORK_KIND_USER,
                           .kind_name = span_text(name),
                           .payload = span_text("{}"),
                           .runtime_max_ms = 120000,
                           .payload_max = 262144,
                           .queue_max = 1000};
    EXPECT(store_submit(&job_submit_class, &c, NULL, 0, NULL, DEADLINE_NONE) == OK);
    stage_settle();
}

static void outside_body(void)
{
    static const uintptr_t kinds[] = {WAITS_FOR_A, PASSES_ON, WAITS_FOR_A,   WAITS_FOR_A,
                                      WAITS_FOR_B, PASSES_ON, WAITS_FOR_ANY, WAITS_FOR_ANY};
    enum { WAITERS = sizeof(kinds) / sizeof(*kinds) };
    actor_pid pids[WAITERS];
    stage_writer();
    listener = actor_self();
    for (uint32_t i = 0; i < WAITERS; i++) { /* one after the other: who waits for longest is the first */
        pids[i] = stage_doll(SPAWN_ON(0), wait_outside, (void *)kinds[i]);
        EXPECT(stage_noted() == 0);
    }
    submit_outside(1, "x.a");
    EXPECT(stage_noted() == WAITS_FOR_A && !actor_alive(pids[0]) && actor_alive(pids[1])); /* one alone */
    submit_outside(2, "x.a");
    uint64_t one = stage_noted(), other = stage_noted(); /* by way of one who has no use for it */
    EXPECT(one + other == PASSES_ON + WAITS_FOR_A && !actor_alive(pids[2]) && actor_alive(pids[3]));
    submit_outside(3, "x.a");
    EXPECT(stage_noted() == WAITS_FOR_A && actor_alive(pids[5]));
    submit_outside(4, "x.a"); /* the last of those is one who passes on: to whoever takes any */
    one = stage_noted(), other = stage_noted();
    EXPECT(one + other == PASSES_ON + WAITS_FOR_ANY && !actor_alive(pids[6]) && actor_alive(pids[7]));
    submit_outside(5, "x.c");
    EXPECT(stage_noted() == WAITS_FOR_ANY && actor_alive(pids[4])); /* who wants x.b isn't concerned */
    submit_outside(6, "x.c");
    submit_outside(7, "x.b");
    EXPECT(stage_noted() == WAITS_FOR_B);
}

static void test_one_outside_is_woken(void)
{
    run(outside_body);
}

/* ---- time ---- */

static void deferred_body(void)
{
    serve(2);
    uint64_t at_us = (store_time_us() / SECOND_US + 6) * SECOND_US;
    EXPECT(submit_at(1, WORK_KIND_SCHEDULED_ON_TIME, at_us) == OK);
    while (store_time_us() < at_us - 1000) {
        EXPECT(job_of(1).state == JOB_CREATED);
        actor_sleep(actor_deadline_ms(200) < actor_now() + (at_us - store_time_us()) * NS_PER_US
                        ? actor_deadline_ms(200)
                        : actor_now() + (at_us - 1000 - store_time_us()) * NS_PER_US);
    }
    until_final(1, 5);
    struct job job = job_of(1);
    EXPECT(job.queued_us >= at_us && job.queued_us < at_us + 50000 && job.started_us >= at_us);
    EXPECT(job.state == JOB_SUCCEEDED);
    end_serving();
}

static void test_deferred(void)
{
    run(deferred_body);
}

static void missed_body(void)
{
    served_count = 0;
    stage_writer();
    uint64_t at_us = (store_time_us() / SECOND_US + 5) * SECOND_US;
    EXPECT(submit_at(1, WORK_KIND_SCHEDULED_LATE_RECOVERY, at_us) == OK);
    actor_sleep(actor_deadline_ms(20000)); /* nobody looked */
    EXPECT(job_of(1).state == JOB_CREATED);
    uint64_t began_us = store_time_us();
    for (uint32_t i = 0; i < JOB_SHARDS; i++)
        start_one(&shard_class, "scheduler:", i);
    start_worker(0);
    until_final(1, 5);
    EXPECT(job_of(1).queued_us >= began_us - 1000 && job_of(1).queued_us < began_us + SECOND_US);
    end_serving();
}

static void test_missed(void)
{
    run(missed_body);
}

/* ---- who dies ---- */

static void killed_body(void)
{
    serve(1);
    actor_pid worker = served[--served_count];
    submit(1, WORK_KIND_SUCCESS_SLOW);
    actor_sleep(actor_deadline_ms(12000)); /* two heartbeats */
    EXPECT(job_of(1).state == JOB_RUNNING);
    uint64_t killed_us = store_steady_us(stage_store);
    stage_kill(worker);
    start_worker(1);
    submit(2, WORK_KIND_SUCCESS_FAST);
    until_final(2, 5); /* the others go on */
    EXPECT(job_of(1).state == JOB_RUNNING);
    until_final(1, 40);
    struct job job = job_of(1);
    EXPECT(job.state == JOB_FAILED && job.failure == JOB_RUNNER_LOST && job.retryable && job.attempt == 1);
    EXPECT(job.finished_us <= killed_us + 30 * SECOND_US);
    EXPECT(EVENTS(1, JOB_CREATE, JOB_ENQUEUE, JOB_ASSIGN, JOB_START, JOB_FAIL));
    end_serving();
}

static void test_killed(void)
{
    run(killed_body);
}

/* Started again under its number it says at once what has become of what it was at: nobody else can be (JOB-316). */
static void started_again_body(void)
{
    serve(2);
    actor_pid worker = 0;
    submit(1, WORK_KIND_SUCCESS_SLOW);
    submit(2, WORK_KIND_SUCCESS_SLOW);
    actor_sleep(actor_deadline_ms(12000));
    struct job job = job_of(1), other = job_of(2);
    EXPECT(job.state == JOB_RUNNING && other.state == JOB_RUNNING);
    uint32_t number = holder_of(1);
    worker = served[JOB_SHARDS + number];
    stage_kill(worker);
    uint64_t killed_us = store_steady_us(stage_store);
    served_count--;
    served[JOB_SHARDS + number] = served[served_count];
    submit(3, WORK_KIND_SUCCESS_FAST);
    start_worker(number);
    until_final(3, 5); /* the new one is at work */
    job = job_of(1);
    EXPECT(job.state == JOB_FAILED && job.failure == JOB_RUNNER_LOST && job.retryable && job.attempt == 1);
    EXPECT(job.finished_us < killed_us + SECOND_US);
    EXPECT(EVENTS(1, JOB_CREATE, JOB_ENQUEUE, JOB_ASSIGN, JOB_START, JOB_FAIL));
    until_final(2, 90); /* and who is alive isn't touched */
    EXPECT(job_of(2).state == JOB_SUCCEEDED && job_of(2).fence == other.fence);
    end_serving();
}

static void test_started_again_JOB_316(void)
{
    run(started_again_body);
}

static enum error claim_only(uint64_t owner, uint8_t running)
{
    struct job_claim c = {.lane = LANE_SERVER,
                          .most = 1,
                          .running = running,
                          .owner = owner,
                          .steady_us = store_steady_us(stage_store),
                          .lease_us = 30 * SECOND_US,
                          .worker = span_text("worker:77")};
    return store_submit(&job_claim_class, &c, NULL, 0, NULL, DEADLINE_NONE);
}

static void claimed_body(void)
{
    serve(0);
    submit(1, WORK_KIND_SUCCESS_FAST);
    EXPECT(claim_only(stage_store->start, 0) == OK);
    start_worker(0);
    uint64_t claimed_us = job_of(1).updated_us;
    actor_sleep(actor_deadline_ms(29000));
    EXPECT(job_of(1).state == JOB_ASSIGNED);
    until_final(1, 10);
    struct job job = job_of(1);
    EXPECT(job.state == JOB_SUCCEEDED && job.attempt == 1);
    EXPECT(job.queued_us >= claimed_us + 30 * SECOND_US - 5000 &&
           job.queued_us <= claimed_us + 31 * SECOND_US);
    EXPECT(EVENTS(1, JOB_CREATE, JOB_ENQUEUE, JOB_ASSIGN, JOB_REQUEUE, JOB_ASSIGN, JOB_START, JOB_SUCCEED));
    end_serving();
}

static void test_claimed_and_not_started(void)
{
    run(claimed_body);
}

static void earlier_body(void)
{
    served_count = 0;
    stage_writer();
    submit(1, WORK_KIND_SUCCESS_FAST);
    submit(2, WORK_KIND_SUCCESS_FAST);
    EXPECT(claim_only(stage_store->start + 2, 0) == OK); /* of a server that is no more */
    EXPECT(claim_only(stage_store->start + 2, 1) == OK);
    for (uint32_t i = 0; i < JOB_SHARDS; i++)
        start_one(&shard_class, "scheduler:", i);
    start_worker(0);
    until_final(2, 1);
    EXPECT(job_of(2).state == JOB_FAILED && job_of(2).failure == JOB_RUNNER_LOST);
    until_final(1, 5);
    EXPECT(job_of(1).state == JOB_SUCCEEDED && job_of(1).attempt == 1);
    end_serving();
}

static void test_of_an_earlier_start(void)
{
    run(earlier_body);
}

/* Whoever finds out that a runner is lost retries the job as its worker would have: one that was started again, the shard whose lease
 * is over, and the shard that meets an earlier start's. Each of them tells of it. */
static void retried_when_lost_body(void)
{
    struct jobs_settings settings = jobs_defaults;
    settings.retry_auto = true;
    jobs_configure(&settings);
    uint64_t retried = job_figures_events(JOB_RETRY);
    served_count = 0;
    stage_writer();
    submit(1, WORK_KIND_SUCCESS_FAST);
    EXPECT(claim_only(stage_store->start + 2, 1) == OK);
    for (uint32_t i = 0; i < JOB_SHARDS; i++)
        start_one(&shard_class, "scheduler:", i);
    actor_sleep(actor_deadline_ms(100));
    EXPECT(job_of(1).state == JOB_QUEUED && job_of(1).attempt == 2);
    submit(2, WORK_KIND_SUCCESS_FAST);
    EXPECT(claim_only(stage_store->start, 1) == OK); /* by somebody who is heard of no more */
    actor_sleep(actor_deadline_ms(31000));
    EXPECT(job_of(2).attempt == 2);
    submit(3, WORK_KIND_SUCCESS_NORMAL);
    actor_pid worker = start_worker(0);
    served_count--;
    actor_sleep(actor_deadline_ms(5000));
    EXPECT(job_of(3).state == JOB_RUNNING);
    stage_kill(worker);
    start_worker(0);
    for (int i = 0; i < 300 && job_of(3).state != JOB_SUCCEEDED; i++)
        actor_sleep(actor_deadline_ms(100));
    for (uint64_t i = 1; i <= 3; i++)
        EXPECT(job_of(i).state == JOB_SUCCEEDED &&
               EVENTS(i, JOB_CREATE, JOB_ENQUEUE, JOB_ASSIGN, JOB_START, JOB_FAIL, JOB_RETRY, JOB_ASSIGN,
                      JOB_START, JOB_SUCCEED));
    EXPECT(job_figures_events(JOB_RETRY) == retried + 3);
    EXPECT(stage_logged("\"current_state\":\"FAILED\",\"next_state\":\"QUEUED\",\"attempt\":2") == 3);
    jobs_configure(&jobs_defaults);
    end_serving();
}

static void test_retried_when_lost(void)
{
    run(retried_when_lost_body);
}

static uint32_t succeeded;

/* A worker that dies right behind its claim's commit: its job isn't failed, it is queued again when the lease is over, and runs. */
static void dies_behind_its_claim_body(void)
{
    serve(0);
    submit(1, WORK_KIND_SUCCESS_FAST);
    actor_pid worker = start_worker(0);
    served_count--;
    while (job_of(1).state == JOB_QUEUED)
        actor_yield();
    EXPECT(job_of(1).state == JOB_ASSIGNED); /* there is such a moment (JOB-202) */
    uint64_t claimed_us = job_of(1).updated_us;
    stage_kill(worker);
    start_worker(0);
    actor_sleep(actor_deadline_ms(29000));
    struct job left =
        job_of(1); /* failed: the start was on its way already, so it was lost as a started one is */
    EXPECT(left.state == JOB_ASSIGNED || left.state == JOB_FAILED);
    until_final(1, 40);
    struct job job = job_of(1);
    EXPECT(job.attempt == 1);
    if (job.state == JOB_SUCCEEDED)
        EXPECT(
            job.queued_us >= claimed_us + 30 * SECOND_US - 5000 &&
            EVENTS(1, JOB_CREATE, JOB_ENQUEUE, JOB_ASSIGN, JOB_REQUEUE, JOB_ASSIGN, JOB_START, JOB_SUCCEED));
    else
        EXPECT(job.failure == JOB_RUNNER_LOST &&
               EVENTS(1, JOB_CREATE, JOB_ENQUEUE, JOB_ASSIGN, JOB_START, JOB_FAIL));
    end_serving();
    succeeded += job.state == JOB_SUCCEEDED;
}

static void test_dies_behind_its_claim_JOB_202_JOB_282_JOB_314(void)
{
    succeeded = 0;
    run(dies_behind_its_claim_body);
    TEST_CHECK_(succeeded > 0, "%u were queued again", succeeded);
}

static uint32_t unheard;

/* The writer dies before it has heard of the start, which is said again when there is another one: the work takes its time from then. */
static void start_said_again_body(void)
{
    serve(0);
    submit(1, WORK_KIND_SUCCESS_FAST);
    start_worker(0);
    while (job_of(1).state == JOB_QUEUED)
        actor_yield();
    stage_kill(actor_whereis(WRITER_NAME));
    unheard += job_of(1).state == JOB_ASSIGNED; /* else only the answer is */
    actor_sleep(actor_deadline_ms(700));
    stage_writer();
    until_final(1, 60);
    struct job job = job_of(1);
    EXPECT(job.state == JOB_SUCCEEDED && job.finished_us - job.started_us >= SECOND_US);
    end_serving();
}

static void test_start_said_again(void)
{
    unheard = 0;
    run(start_said_again_body);
    TEST_CHECK_(unheard > 0, "%u were said again", unheard);
}

static void cancel(uint64_t number)
{
    struct job_cancel c = {.id = stage_id(number), .client = client, .kept_us = 3600 * SECOND_US};
    struct job_changed changed;
    size_t size = 0;
    EXPECT(store_submit(&job_cancel_class, &c, &changed, sizeof(changed), &size, DEADLINE_NONE) == OK);
    EXPECT(changed.made && changed.state == JOB_CANCELED && strcmp(changed.worker, "worker:0") == 0);
    worker_stop(changed.worker, &c.id);
}

static void cancelled_body(void)
{
    serve(1);
    submit(1, WORK_KIND_CANCEL_DURING_RUN);
    submit(2, WORK_KIND_SUCCESS_FAST);
    actor_sleep(actor_deadline_ms(2000));
    EXPECT(job_of(1).state == JOB_RUNNING && job_of(2).state == JOB_QUEUED);
    cancel(1);
    uint64_t at_us = job_of(1).updated_us;
    until_final(2, 5);
    EXPECT(job_of(2).started_us < at_us + 100000); /* the worker was free at once */
    EXPECT(EVENTS(1, JOB_CREATE, JOB_ENQUEUE, JOB_ASSIGN, JOB_START, JOB_CANCEL));
    end_serving();
}

static void test_cancelled(void)
{
    run(cancelled_body);
}

/* Nobody says so: it is learnt by heartbeat. */
static void cancelled_quietly_body(void)
{
    serve(1);
    submit(1, WORK_KIND_SUCCESS_SLOW);
    submit(2, WORK_KIND_SUCCESS_FAST);
    actor_sleep(actor_deadline_ms(2000));
    struct job_cancel c = {.id = stage_id(1), .client = client, .kept_us = 3600 * SECOND_US};
    EXPECT(store_submit(&job_cancel_class, &c, NULL, 0, NULL, DEADLINE_NONE) == OK);
    until_final(2, 8);
    EXPECT(EVENTS(1, JOB_CREATE, JOB_ENQUEUE, JOB_ASSIGN, JOB_START, JOB_CANCEL));
    end_serving();
}

static void test_cancelled_quietly(void)
{
    run(cancelled_quietly_body);
}

/* A wall clock that leaps ends no lease and no work. */
static void leap_body(void)
{
    serve(1);
    submit(1, WORK_KIND_SUCCESS_NORMAL);
    actor_sleep(actor_deadline_ms(2000));
    stage_clock_jump((int64_t)(3600 * NS_PER_S));
    actor_sleep(actor_deadline_ms(1000));
    stage_clock_jump(-(int64_t)(7200 * NS_PER_S));
    actor_sleep(actor_deadline_ms(6000));
    EXPECT(job_of(1).state == JOB_RUNNING);
    until_final(1, 5);
    EXPECT(job_of(1).state == JOB_SUCCEEDED);
    end_serving();
}

static void test_leap(void)
{
    run(leap_body);
}

/* Everybody dies again and again; each job comes to exactly one end for each attempt, and none is lost. */
static void storm_body(void)
{
    enum { JOBS = 40, WORKERS = 4, KILLS = 60 };
    serve(WORKERS);
    for (uint64_t i = 1; i <= JOBS; i++)
        submit(i, i % 2 ? WORK_KIND_SUCCESS_FAST : WORK_KIND_FAIL_IMMEDIATE);
    for (uint32_t i = 0; i < KILLS; i++) {
        uint32_t victim = (uint32_t)(actor_random() % (JOB_SHARDS + WORKERS));
        stage_kill(served[victim]);
        uint32_t count = served_count;
        if (victim < JOB_SHARDS)
            served[victim] = start_one(&shard_class, "scheduler:", victim);
        else
            served[victim] = start_worker(victim - JOB_SHARDS);
        served_count = count;
        actor_sleep(actor_deadline_ms(actor_random() % 700));
    }
    for (uint64_t i = 1; i <= JOBS; i++) {
        until_final(i, 120);
        struct job job = job_of(i);
        bool lost = job.state == JOB_FAILED && job.failure == JOB_RUNNER_LOST;
        EXPECT(lost || job.state == (i % 2 ? JOB_SUCCEEDED : JOB_FAILED));
        EXPECT(job.attempt == 1);
    }
    end_serving();
}

/* What it is given is lost where its mailbox is full: the job comes back with its lease, and it works on. */
static void flooded_body(void)
{
    serve(1);
    actor_pid worker = served[JOB_SHARDS];
    actor_sleep(actor_deadline_ms(2000)); /* its claim stands */
    actor_suspend(worker);
    stage_settle();
    for (int i = 0; i < 100 && actor_cast(worker, 4242, NULL, 0) == OK; i++)
        stage_settle();
    EXPECT(actor_cast(worker, 4242, NULL, 0) == ERR_FULL);
    submit(1, WORK_KIND_SUCCESS_FAST);
    stage_settle();
    EXPECT(job_of(1).state == JOB_ASSIGNED);
    actor_resume(worker);
    submit(2, WORK_KIND_SUCCESS_FAST);
    until_final(2, 10);
    EXPECT(job_of(2).state == JOB_SUCCEEDED);
    until_final(1, 60);
    EXPECT(job_of(1).state == JOB_SUCCEEDED && job_of(1).attempt == 1);
    end_serving();
}

static void test_flooded(void)
{
    run(flooded_body);
}

static void test_storm(void)
{
    run(storm_body);
}

TEST_LIST
= {
    {"JOB-034, JOB-066, JOB-203, JOB-211, JOB-219, JOB-227, JOB-235: a job succeeds", test_success},
    {"JOB-040, JOB-041, JOB-283, JOB-288, JOB-318, JOB-335: heartbeats, and an end to what runs too long",
     test_long},
    {"JOB-038, JOB-049, JOB-268..JOB-274, AMB-J-35: failures, and a retry not before its backoff",
     test_failure_and_retry},
    {"JOB-409, JOB-414, JOB-432, JOB-437: retries that nobody asked for are told",
     test_automatic_retries_are_told},
    {"JOB-316, AMB-J-35, AMB-J-38: a job whose runner is lost is retried by itself, and told of",
     test_retried_when_lost},
    {"JOB-277, JOB-278, JOB-280, JOB-284: one worker, in the order of creation", test_order},
    {"JOB-201, JOB-279, JOB-313: without workers it stays queued", test_nobody_works},
    {"JOB-278: one after the other, and a commit for each", test_commits},
    {"JOB-278: one commit for a job and the claim of a worker who waits", test_idle_commits},
    {"JOB-279: a job wakes one of those who wait", test_one_is_woken},
    {"JOB-279: and many wake as many", test_all_are_woken},
    {"J2: woken, and killed before it claims", test_woken_and_killed},
    {"JOB-058, JOB-072, JOB-261, JOB-262, JOB-266: never early, and on time", test_deferred},
    {"JOB-059, JOB-264, JOB-265: what was missed is done at once", test_missed},
    {"JOB-316, AMB-J-38: a runner that is killed", test_killed},
    {"JOB-202, JOB-281, JOB-282, JOB-287, JOB-314: claimed and not started", test_claimed_and_not_started},
    {"JOB-316, AMB-J-38: claims of an earlier start", test_of_an_earlier_start},
    {"JOB-034, JOB-261: a start that is said again, and never early", test_start_said_again},
    {"JOB-048, JOB-237, AMB-J-33: cancelled, and free at once", test_cancelled},
    {"AMB-J-33: cancelled, and learnt by heartbeat", test_cancelled_quietly},
    {"D9: a wall clock that leaps", test_leap},
    {"J2, J3, J6, J7: kills at random", test_storm},
    {"A8: a job that meets a full mailbox", test_flooded},
    {"one of those outside is woken, who waits for that kind", test_one_outside_is_woken},
    {"JOB-316: a runner that is started again", test_started_again_JOB_316},
    {"JOB-202, JOB-282, JOB-314: dies right behind its claim",
     test_dies_behind_its_claim_JOB_202_JOB_282_JOB_314},
    {NULL, NULL},
};
