/* What `coppice check` says of jobs and of what belongs to them: of each contradiction that rows can be in, by its own sentence. */
#include "acutest.h"

#include "store/client.h"
#include "store/counter.h"
#include "store/job_bulk.h"
#include "store/job_pause.h"
#include "store/job_schedule.h"
#include "store/retention.h"
#include "tests/store/jobs.h"

static const struct uuid nobody = {{0}};

/* ---- rows ---- */

static void finds(struct jobs *j, uint32_t table, struct key key, const void *record, const char *part)
{
    TEST_CHECK_(fresh_finds(&j->fresh, table, key, record, part), "check says '%s'", part);
}

static void finds_in_job(struct jobs *j, const struct job *job, const char *part)
{
    finds(j, TABLE_JOBS, key_of_uuid(&job->id), job, part);
}

static enum error set_timer(struct txn *txn, uint64_t at_us, void *context)
{
    (void)at_us;
    due_set(txn, context);
    return OK;
}

static void finds_timer(struct jobs *j, uint8_t queue, uint16_t shard, uint64_t due_us, const struct uuid *id,
                        const char *part)
{
    struct due_entry entry = {.queue = queue, .shard = shard, .due_us = due_us, .id = *id};
    TEST_CHECK_(fresh_would_find(&j->fresh, set_timer, &entry, part), "check says '%s'", part);
}

/* A row that can't be read is told of, and nothing is concluded from it: no other finding holds this part. */
static void tells_of_damage_alone(struct jobs *j, uint32_t table, struct key key, const char *part)
{
    fresh_flip(&j->fresh, table, key);
    TEST_CHECK(fresh_tells(&j->fresh, "damaged"));
    TEST_CHECK_(!fresh_tells(&j->fresh, part), "check says '%s'", part);
    fresh_flip(&j->fresh, table, key);
}

static struct key bytes_key(const void *bytes, uint32_t size)
{
    struct key key = {.size = 0};
    key_add(&key, bytes, size);
    return key;
}

/* ---- the job's row ---- */

static void test_check_knows_what_a_job_in_the_queue_must_be(void)
{
    struct jobs j;
    jobs_open(&j);
    struct uuid id = jobs_new(&j), elsewhere = fresh_uuid();
    const struct job sound = jobs_look(&j, &id);
    struct job job = sound;
    finds(&j, TABLE_JOBS, key_of_uuid(&elsewhere), &job, "stands under another id");
    job.state = JOB_STATE_COUNT;
    finds_in_job(&j, &job, "is in the unknown state 7");
    TEST_CHECK(!fresh_finds(&j.fresh, TABLE_JOBS, key_of_uuid(&id), &job,
                            "stands in lane")); /* nothing more is asked */
    job = sound;
    job.lane = LANE_NONE;
    finds_in_job(&j, &job, "stands in lane 0 of the queue");
    TEST_CHECK(!fresh_finds(&j.fresh, TABLE_JOBS, key_of_uuid(&id), &job, "no row in the queue"));
    job.lane = LANE_COUNT;
    finds_in_job(&j, &job, "stands in lane 7 of the queue");
    job = sound;
    job.events++;
    finds_in_job(&j, &job, "has other events than the 3 that it knows of");
    job.events = 1;
    finds_in_job(&j, &job, "has other events than the 1 that it knows of");
    job.events = 0;
    finds_in_job(&j, &job, "has other events than the 0 that it knows of");
    job = sound;
    job.slot = JOB_SLOT_COUNTED;
    finds_in_job(&j, &job, "holds a place of its client's limit");
    jobs_close(&j);
}

/* Numbers that were given away are never given again: the counters are at least as far. */
static void test_check_knows_how_far_numbers_have_gone_J4(void)
{
    struct jobs j;
    jobs_open(&j);
    struct jobs_held held = jobs_in(&j, JOB_RUNNING);
    struct job job = jobs_look(&j, &held.id);
    const struct {
        uint16_t counter;
        uint64_t least;
    } numbers[] = {
        {COUNTER_JOB_SEQ, job.seq}, {COUNTER_JOB_FENCE, job.fence}, {COUNTER_JOB_NEWEST, job.created_us}};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
        const struct key key = counter_key(numbers[i].counter, span_of(NULL, 0));
        struct counter counter = {.value = (int64_t)numbers[i].least - 1};
        char part[64];
        snprintf(part, sizeof(part), "but %llu was given away", (unsigned long long)numbers[i].least);
        finds(&j, TABLE_COUNTERS, key, counter.value ? &counter : NULL, part);
        counter.value += 2;
        TEST_CHECK(!fresh_finds(&j.fresh, TABLE_COUNTERS, key, &counter, "was given away"));
    }
    jobs_close(&j);
}

static void test_check_knows_what_a_claimed_job_must_be(void)
{
    struct jobs j;
    jobs_open(&j);
    struct jobs_held held = jobs_in(&j, JOB_RUNNING);
    const struct job sound = jobs_look(&j, &held.id);
    struct job job = sound;
    job.due_us = 0;
    finds_in_job(&j, &job, "is RUNNING and has no timer");
    job.due_us = sound.due_us + 1;
    finds_in_job(&j, &job, "will never be looked at");
    job = sound;
    job.retire_us = 1;
    finds_in_job(&j, &job, "is RUNNING and has a wrong time to go");
    job = sound;
    job.lane = LANE_SERVER;
    finds_in_job(&j, &job, "stands in lane 1 of the queue");
    job = sound;
    job.slot = JOB_SLOT_PROMISED;
    finds_in_job(&j, &job, "holds a place of its client's limit");
    job.slot = JOB_SLOT_COUNTED; /* a sound one, that nobody counted */
    finds_in_job(&j, &job, "but the rows say 1");
    struct report report = {.outcome = JOB_RUNNING};
    finds(&j, TABLE_REPORTS, report_key(&held.id, 1), &report, "is RUNNING, and there is a report");
    finds(&j, TABLE_REPORTS, report_key(&held.id, 1), &report, "one of a job that was RUNNING");
    report.outcome = JOB_STATE_COUNT;
    finds(&j, TABLE_REPORTS, report_key(&held.id, 1), &report, "one of a job that was in no state");
    jobs_close(&j);
}

static void test_check_knows_what_a_final_job_must_be(void)
{
    struct jobs j;
    jobs_open(&j);
    struct jobs_held held = jobs_in(&j, JOB_FAILED);
    const struct job sound = jobs_look(&j, &held.id);
    struct job job = sound;
    finds(&j, TABLE_REPORTS, report_key(&held.id, 1), NULL, "is FAILED, and there is no report");
    job.due_us = 1;
    finds_in_job(&j, &job, "is FAILED and has a timer");
    job = sound;
    job.retire_us = 0;
    finds_in_job(&j, &job, "is FAILED and has a wrong time to go");
    job.retire_us = sound.retire_us + 1;
    finds_in_job(&j, &job, "will never be removed");
    finds_timer(&j, DUE_JOB_LEASE, job_shard(DUE_JOB_LEASE, &held.id), 1, &held.id,
                "which is FAILED, has a timer that isn't its own");
    jobs_close(&j);
}

/* ---- what belongs to it ---- */

static void test_check_knows_what_belongs_to_a_job(void)
{
    struct jobs j;
    jobs_open(&j);
    struct uuid id = jobs_new(&j), stranger = fresh_uuid();
    const struct job job = jobs_look(&j, &id);
    struct client_job own = {.id = id}, lost = {.id = stranger};
    struct job_definition definition = {.kind = WORK_KIND_SUCCESS_FAST};
    struct report report = {.outcome = JOB_SUCCEEDED};
    finds(&j, TABLE_CLIENT_JOBS, client_job_key(&job.client, job.seq), NULL, "isn't among its client's jobs");
    finds(&j, TABLE_CLIENT_JOBS, client_job_key(&job.client, job.seq + 1), &own, "or another client's");
    finds(&j, TABLE_CLIENT_JOBS, client_job_key(&job.client, job.seq), &lost,
          fresh_about("client_jobs: job ", &stranger, " isn't there, or another"));
    finds(&j, TABLE_JOB_DEFINITIONS, key_of_uuid(&id), NULL, "has no definition");
    finds(&j, TABLE_JOB_DEFINITIONS, key_of_uuid(&stranger), &definition,
          fresh_about("job_definitions: job ", &stranger, " isn't there"));
    finds(&j, TABLE_REPORTS, report_key(&stranger, 1), &report,
          fresh_about("reports: job ", &stranger, " isn't there"));
    finds(&j, TABLE_JOB_DEFINITIONS, bytes_key("short", 5), &definition, "job_definitions: a key of 5 bytes");
    TEST_CHECK(
        !fresh_finds(&j.fresh, TABLE_JOB_DEFINITIONS, bytes_key("short", 5), &definition, "isn't there"));
    tells_of_damage_alone(&j, TABLE_JOBS, key_of_uuid(&id), "another client's");
    jobs_close(&j);
}

static void test_check_knows_whose_a_timer_is(void)
{
    static const char part[] = "has a timer that isn't its own";
    struct jobs j;
    jobs_open(&j);
    struct jobs_held held = jobs_in(&j, JOB_RUNNING);
    struct job job = jobs_look(&j, &held.id);
    uint16_t shard = job_shard(DUE_JOB_LEASE, &held.id);
    struct uuid stranger = fresh_uuid();
    finds_timer(&j, DUE_JOB_LEASE, shard, 1, &stranger, fresh_about("due: job ", &stranger, " isn't there"));
    finds_timer(&j, DUE_JOB_LEASE, shard, job.due_us + 1, &held.id,
                fresh_about("due: job ", &held.id, ", which is RUNNING, has a timer that isn't its own"));
    finds_timer(&j, DUE_JOB_LEASE, shard + 1, job.due_us, &held.id, part);
    finds_timer(&j, DUE_JOB_TIME, job_shard(DUE_JOB_TIME, &held.id), job.due_us, &held.id, part);
    job.state = JOB_STATE_COUNT;
    finds_in_job(&j, &job, "which is in no state, has a timer that isn't its own");
    tells_of_damage_alone(&j, TABLE_JOBS, key_of_uuid(&held.id), part);
    jobs_close(&j);
}

static void test_check_knows_whose_a_place_in_the_queue_is(void)
{
    struct jobs j;
    jobs_open(&j);
    struct jobs_held running = jobs_in(&j, JOB_RUNNING);
    struct uuid id = jobs_new(&j);
    struct job job = jobs_look(&j, &id), ran = jobs_look(&j, &running.id), moved = job;
    struct job_queue row = {.id = id, .client = job.client, .work = job.work}, strange = row;
    ran.lane = LANE_SERVER;
    struct job_queue of_running = {.id = ran.id, .client = ran.client, .work = ran.work};
    finds(&j, TABLE_JOB_QUEUE, job_queue_key(&ran), &of_running,
          "which is RUNNING, stands where it shouldn't");
    finds(&j, TABLE_JOB_QUEUE, job_queue_order_key(&job), &row, "which is QUEUED, stands where it shouldn't");
    moved.place++;
    finds(&j, TABLE_JOB_QUEUE, job_queue_key(&moved), &row, "which is QUEUED, stands where it shouldn't");
    moved.lane = LANE_LIMITED;
    finds(&j, TABLE_JOB_QUEUE, job_queue_key(&moved), &row, "but the rows say 1");
    strange.client = fresh_uuid();
    finds(&j, TABLE_JOB_QUEUE, job_queue_key(&job), &strange, "of another client or kind than its row");
    strange = row;
    strange.work = fresh_uuid();
    finds(&j, TABLE_JOB_QUEUE, job_queue_key(&job), &strange, "of another client or kind than its row");
    strange.id = fresh_uuid();
    finds(&j, TABLE_JOB_QUEUE, job_queue_key(&job), &strange,
          fresh_about("job_queue: job ", &strange.id, " isn't there"));
    finds(&j, TABLE_JOB_QUEUE, job_queue_key(&job), NULL,
          fresh_about("jobs: ", &id, " has no row in the queue"));
    tells_of_damage_alone(&j, TABLE_JOBS, key_of_uuid(&id), "job_queue: job");
    jobs_close(&j);
}

/* ---- bulk actions ---- */

static struct bulk bulk_of(struct jobs *j)
{
    struct job_bulk c = {.by_steady = 1,
                         .id = fresh_uuid(),
                         .states = UINT8_MAX,
                         .type = BULK_ANY_TYPE,
                         .who = span_text("somebody")};
    struct bulk bulk = {.due_us = 0};
    TEST_CHECK(batch_one(j->fresh.store, &job_bulk_class, j->at_us, &c, NULL) == OK);
    struct view *view = view_open_outside(j->fresh.store, 0);
    TEST_ASSERT(view != NULL);
    TEST_CHECK(bulk_read(&view->txn, &c.id, &bulk) == OK);
    view_close(view);
    bulk.label = bulk.who = bulk.reason = span_of(NULL, 0);
    return bulk;
}

static void finds_in_bulk(struct jobs *j, const struct bulk *bulk, const char *part)
{
    finds(j, TABLE_BULKS, key_of_uuid(&bulk->id), bulk, part);
}

static void test_check_knows_what_a_bulk_action_must_be(void)
{
    static const char part[] = "isn't there or has another one";
    struct jobs j;
    jobs_open(&j);
    const struct bulk sound = bulk_of(&j);
    struct bulk bulk = sound;
    struct uuid stranger = fresh_uuid();
    finds(&j, TABLE_BULKS, key_of_uuid(&stranger), &bulk, "stands under another id");
    bulk.due_us = 0;
    finds_in_bulk(&j, &bulk, fresh_about("bulks: ", &bulk.id, " is running and has a wrong timer"));
    bulk.due_us = sound.due_us + 1;
    finds_in_bulk(&j, &bulk, "will never go on");
    finds_in_bulk(&j, &bulk, part);
    bulk = sound;
    bulk.finished_us = 1;
    finds_in_bulk(&j, &bulk, "is running and has a wrong timer");
    bulk.state = BULK_DONE;
    finds_in_bulk(&j, &bulk, "is done and has a wrong timer");
    bulk.state = 9;
    finds_in_bulk(&j, &bulk, "is in the unknown state 9");
    TEST_CHECK(!fresh_finds(&j.fresh, TABLE_BULKS, key_of_uuid(&bulk.id), &bulk, "wrong timer"));
    bulk = sound;
    bulk.changed = 1;
    finds_in_bulk(&j, &bulk, "has done more than it found");
    finds_timer(&j, DUE_JOB_BULK, BULK_SHARD, 1, &stranger,
                fresh_about("bulk action ", &stranger, ", which isn't there"));
    tells_of_damage_alone(&j, TABLE_BULKS, key_of_uuid(&sound.id), part);
    jobs_close(&j);
}

/* ---- pauses ---- */

static void test_check_knows_what_a_pause_must_be(void)
{
    static const char part[] = "a timer of a pause that isn't there, or has another one";
    struct jobs j;
    jobs_open(&j);
    struct job_pause c = {.scope = PAUSE_ALL,
                          .until_us = j.at_us + JOBS_SECOND_US,
                          .label = span_text("all"),
                          .who = span_text("operator")};
    TEST_CHECK(batch_one(j.fresh.store, &job_pause_class, j.at_us, &c, NULL) == OK);
    const struct pause sound = {
        .since_us = j.at_us, .until_us = c.until_us, .due_us = c.until_us, .label = c.label};
    struct pause pause = sound;
    struct uuid stranger = fresh_uuid();
    finds(&j, TABLE_PAUSES, pause_key(PAUSE_WORK, &stranger), &pause,
          "one of 'all' stands under another key");
    pause.scope = PAUSE_SCOPE_COUNT;
    finds(&j, TABLE_PAUSES, pause_key(PAUSE_SCOPE_COUNT, &nobody), &pause,
          "one of 'all' stands under another key");
    pause = sound;
    pause.due_us = 0;
    finds(&j, TABLE_PAUSES, pause_key(PAUSE_ALL, &nobody), &pause, "that of 'all' has a wrong timer");
    pause.until_us = 0;
    pause.ending = 1;
    finds(&j, TABLE_PAUSES, pause_key(PAUSE_ALL, &nobody), &pause, "that of 'all' has a wrong timer");
    pause = sound;
    pause.due_us++;
    finds(&j, TABLE_PAUSES, pause_key(PAUSE_ALL, &nobody), &pause, "that of 'all' will never end");
    finds(&j, TABLE_PAUSES, pause_key(PAUSE_ALL, &nobody), &pause, part);
    finds_timer(&j, DUE_JOB_PAUSE, PAUSE_SHARD, 1, &stranger, part);
    tells_of_damage_alone(&j, TABLE_PAUSES, pause_key(PAUSE_ALL, &nobody), part);
    jobs_close(&j);
}

/* ---- schedules ---- */

static struct key schedule_key(uint8_t kind, const struct uuid *first, const struct uuid *second)
{
    struct key key = {.size = 0};
    key_add_u8(&key, kind);
    key_add_uuid(&key, first);
    if (second)
        key_add_uuid(&key, second);
    return key;
}

static struct schedule schedule_of(struct jobs *j)
{
    struct client_create client = {.id = j->client, .from = span_text("192.0.2.1")};
    struct schedule_put c = {.id = fresh_uuid(),
                             .client = j->client,
                             .kind = WORK_KIND_SUCCESS_FAST,
                             .name = span_text("each minute"),
                             .cron = span_text("* * * * *")};
    struct schedule s = {.next_us = 0};
    TEST_CHECK(batch_one(j->fresh.store, &client_create_class, j->at_us, &client, NULL) == OK);
    TEST_CHECK(batch_one(j->fresh.store, &schedule_put_class, j->at_us, &c, NULL) == OK);
    struct view *view = view_open_outside(j->fresh.store, 0);
    TEST_ASSERT(view != NULL);
    TEST_CHECK(schedule_read(&view->txn, &c.id, &s) == OK);
    view_close(view);
    s.name = s.kind_name = s.payload = s.history = span_of(NULL, 0);
    s.cron = c.cron;
    return s;
}

static void test_check_knows_what_a_schedule_must_be(void)
{
    static const char part[] = "which isn't there or has another one";
    struct jobs j;
    jobs_open(&j);
    const struct schedule sound = schedule_of(&j);
    const struct schedule way = {.id = sound.id, .client = sound.client};
    const struct uuid stranger = fresh_uuid();
    const struct key row = schedule_key(0, &sound.id, NULL),
                     of_client = schedule_key(1, &sound.client, &sound.id);
    struct schedule s = sound, other = way;
    finds(&j, TABLE_SCHEDULES, schedule_key(0, &stranger, NULL), &s, "stands under another id");
    finds(&j, TABLE_SCHEDULES, of_client, NULL, "isn't among its client's");
    finds(&j, TABLE_SCHEDULES, schedule_key(1, &stranger, &sound.id), &way, "stands under another client");
    other.client = stranger;
    finds(&j, TABLE_SCHEDULES, schedule_key(1, &stranger, &sound.id), &other, "of this client isn't there");
    finds(&j, TABLE_SCHEDULES, row, NULL, "of this client isn't there");
    finds(&j, TABLE_SCHEDULES, row, NULL,
          fresh_about("timer of the schedule ", &sound.id, ", which isn't there"));
    s.paused = 1;
    finds(&j, TABLE_SCHEDULES, row, &s, fresh_about("schedules: ", &sound.id, " is paused and has a timer"));
    s = sound;
    s.next_us++;
    finds(&j, TABLE_SCHEDULES, row, &s, "will never be looked at");
    finds(&j, TABLE_SCHEDULES, row, &s, part);
    s = sound;
    s.history = span_text("half");
    finds(&j, TABLE_SCHEDULES, row, &s, "has half an entry in its history");
    tells_of_damage_alone(&j, TABLE_SCHEDULES, row, part);
    tells_of_damage_alone(&j, TABLE_SCHEDULES, row, "of this client isn't there");
    jobs_close(&j);
}

TEST_LIST
= {
    {"check: knows what a job in the queue must be", test_check_knows_what_a_job_in_the_queue_must_be},
    {"check: knows how far numbers have gone (J4)", test_check_knows_how_far_numbers_have_gone_J4},
    {"check: knows what a claimed job must be", test_check_knows_what_a_claimed_job_must_be},
    {"check: knows what a final job must be", test_check_knows_what_a_final_job_must_be},
    {"check: knows what belongs to a job", test_check_knows_what_belongs_to_a_job},
    {"check: knows whose a timer is", test_check_knows_whose_a_timer_is},
    {"check: knows whose a place in the queue is", test_check_knows_whose_a_place_in_the_queue_is},
    {"check: knows what a bulk action must be", test_check_knows_what_a_bulk_action_must_be},
    {"check: knows what a pause must be", test_check_knows_what_a_pause_must_be},
    {"check: knows what a schedule must be", test_check_knows_what_a_schedule_must_be},
    {NULL, NULL},
};
