/* Workers over a store that somebody has damaged: a job whose definition is gone, or isn't what it was. */
#include "acutest.h"

#include "actors/shard.h"
#include "actors/worker.h"
#include "store/audit.h"
#include "store/check.h"
#include "store/counter.h"
#include "store/job_submit.h"
#include "tests/support/spoil.h"
#include "tests/support/stage.h"

static const struct uuid client = {{0xc1, [15] = 1}};
static struct uuid the_job;

static void run(void (*body)(void))
{
    struct stage stage = {.schema = spoil_schema(), .unsound = true};
    jobs_configure(&jobs_defaults);
    TEST_CHECK(stage_run(&stage, body) == 0);
}

static void submit(void)
{
    struct jobs_settings s = jobs_settings();
    struct job_submit c = {.id = stage_id(1),
                           .client = client,
                           .type = JOB_EXECUTE,
                           .kind = WORK_KIND_SUCCESS_FAST,
                           .runtime_max_ms = s.runtime_max_ms,
                           .payload_max = s.payload_max,
                           .queue_max = s.queue_max};
    the_job = c.id;
    EXPECT(store_submit(&job_submit_class, &c, NULL, 0, NULL, actor_deadline_ms(60000)) == OK);
}

static struct job job_now(void)
{
    struct job job = {.state = JOB_STATE_COUNT};
    struct view *view = view_open(stage_store);
    EXPECT(view != NULL && job_read(&view->txn, &the_job, &job) == OK);
    view_close(view);
    job.worker = job.stage = span_of("", 0);
    return job;
}

/* One worker; the job's end is waited for, on the virtual clock. */
static struct job worked(void)
{
    uint32_t number = 0;
    actor_pid pid = 0;
    struct spawn_options o = {
        .class = &worker_class, .name = WORKER_NAME "0", .args = &number, .args_size = sizeof(number)};
    EXPECT(actor_spawn(&o, &pid) == OK);
    uint64_t end = actor_now() + 60 * NS_PER_S;
    while (!job_state_final(job_now().state) && actor_now() < end)
        (void)actor_sleep(actor_deadline_ms(10));
    stage_kill(pid);
    return job_now();
}

/* Each change has its event, in this order: created, queued, assigned, running, failed. */
static bool events_are_sound(void)
{
    static const uint8_t names[] = {JOB_CREATE, JOB_ENQUEUE, JOB_ASSIGN, JOB_START, JOB_FAIL};
    struct event event;
    uint64_t last = 0;
    struct view *view = view_open(stage_store);
    bool same = event_last(&view->txn, &the_job, &last) == OK && last == sizeof(names);
    for (uint32_t i = 0; same && i < sizeof(names); i++)
        same = event_read(&view->txn, &the_job, i + 1, &event) == OK && event.name == names[i];
    view_close(view);
    return same;
}

/* ---- no definition ---- */

static enum error lose_definition(struct txn *txn)
{
    struct key key = key_of_uuid(&the_job);
    spoil_remove(txn, TABLE_JOB_DEFINITIONS, key_span(&key));
    return OK;
}

static void missing_body(void)
{
    (void)stage_writer();
    submit();
    EXPECT(spoil(lose_definition) == OK);
    struct job job = worked();
    EXPECT(job.state == JOB_FAILED && job.failure == JOB_DEFINITION_MISSING && !job.retryable);
    EXPECT(events_are_sound());
    EXPECT(job.finished_us - job.started_us < 100000); /* nothing was done: the kind takes a second */
    EXPECT(strcmp(job_failure_reason(job.failure), "DEFINITION_MISSING") == 0);
}

static void test_definition_missing_JOB_317(void)
{
    run(missing_body);
}

/* ---- another size ---- */

static enum error change_size(struct txn *txn)
{
    struct key key = key_of_uuid(&the_job);
    struct job_definition d;
    enum error e = job_read_definition(txn, &the_job, &d);
    EXPECT(e == OK && d.payload_size == 4096);
    d.payload_size++;
    d.kind_name = d.callback = d.trace = d.request_id = d.payload = span_of("", 0);
    txn_write(txn, TABLE_JOB_DEFINITIONS, key_span(&key), &d);
    return e;
}

static void output_body(void)
{
    (void)stage_writer();
    submit();
    EXPECT(spoil(change_size) == OK);
    struct job job = worked();
    EXPECT(job.state == JOB_FAILED && job.failure == JOB_OUTPUT_INVALID && !job.retryable);
    EXPECT(events_are_sound() && job.finished_us - job.started_us >= 990000);
    EXPECT(strcmp(job_failure_reason(job.failure), "OUTPUT_INVALID") == 0);
}

static void test_output_of_another_size_JOB_320(void)
{
    run(output_body);
}

/* ---- an end that can't be written ---- */

static const uint8_t succeeded = JOB_SUCCEEDED;

static enum error count_one(struct txn *txn)
{
    counter_add(txn, COUNTER_JOBS, span_of(&succeeded, 1), 1);
    return OK;
}

/* The number of jobs that are SUCCEEDED can't be read: there can't be one more. */
static enum error spoil_count(struct txn *txn)
{
    struct key key = counter_key(COUNTER_JOBS, span_of(&succeeded, 1));
    spoil_value(txn, TABLE_COUNTERS, key_span(&key));
    return OK;
}

static void report_body(void)
{
    struct report report = {.outcome = JOB_STATE_COUNT};
    (void)stage_writer();
    submit();
    EXPECT(spoil(count_one) == OK && spoil(spoil_count) == OK);
    struct job job = worked();
    EXPECT(job.state == JOB_FAILED && job.failure == JOB_REPORT_FAILED && !job.retryable);
    EXPECT(events_are_sound());
    EXPECT(strcmp(job_failure_reason(job.failure), "REPORT_GENERATION_FAILED") == 0);
    struct key key = report_key(&the_job, 1);
    struct view *view = view_open(stage_store);
    EXPECT(txn_read(&view->txn, TABLE_REPORTS, key_span(&key), &report) == OK);
    EXPECT(report.outcome == JOB_FAILED && report.failure == JOB_REPORT_FAILED && report.result.size == 0);
    view_close(view);
}

static void test_a_report_that_cannot_be_made_JOB_319(void)
{
    run(report_body);
}

/* It was refused along with somebody else's, and can be written when it is said again. */
static void heal(void *arg)
{
    (void)arg;
    while (job_now().state != JOB_RUNNING)
        (void)actor_sleep(actor_deadline_ms(10));
    (void)actor_sleep(actor_deadline_ms(1000 + WORKER_AGAIN_MS + WORKER_AGAIN_MS / 2));
    EXPECT(spoil(spoil_count) == OK);
}

static void passing_body(void)
{
    (void)stage_writer();
    submit();
    EXPECT(spoil(count_one) == OK && spoil(spoil_count) == OK);
    (void)stage_doll(0, heal, NULL);
    struct job job = worked();
    EXPECT(job.state == JOB_SUCCEEDED && job.failure == JOB_NO_FAILURE);
}

static void test_one_refusal_is_not_the_jobs(void)
{
    run(passing_body);
}

/* ---- half of a change ---- */

static enum error lose_event(struct txn *txn)
{
    struct key key = event_key(&the_job, 2);
    spoil_remove(txn, TABLE_EVENTS, key_span(&key));
    return OK;
}

static uint64_t audits(const char *verb)
{
    static const struct uuid first = {{0}};
    struct key from = key_of_uuid(&first);
    struct audit row;
    uint64_t count = 0;
    struct view *view = view_open(stage_store);
    struct scan scan = txn_scan(&view->txn, TABLE_AUDITS, key_span(&from), 0, SCAN_UP);
    while (scan_next(&scan))
        count += scan_read(&scan, &row) == OK && span_equal(row.verb, span_text(verb));
    EXPECT(scan_end(&scan) == OK);
    view_close(view);
    return count;
}

static void count_finding(void *context, const char *finding)
{
    uint64_t *count = context;
    *count += strstr(finding, "has other events than the 2 that it knows of") != NULL;
}

/* As `coppice check` looks at it. */
static uint64_t checked(void)
{
    struct check_report report;
    uint64_t count = 0;
    struct view *view = view_open(stage_store);
    EXPECT(check_rows(&view->txn, stage_store->schema, count_finding, &count, &report) == OK);
    view_close(view);
    return count;
}

static actor_pid start_shard(void)
{
    uint32_t number = 0;
    actor_pid pid = 0;
    struct spawn_options o = {
        .class = &shard_class, .name = "scheduler:0", .args = &number, .args_size = sizeof(number)};
    EXPECT(actor_spawn(&o, &pid) == OK);
    (void)actor_sleep(actor_deadline_ms(1000));
    return pid;
}

/* Found when the shards start, marked, told of, recorded once; a worker brings it to its end by changes that are allowed. */
static void incomplete_body(void)
{
    (void)stage_writer();
    submit();
    stage_kill(start_shard());
    EXPECT(!job_now().incomplete && audits("job.incomplete") == 0);
    EXPECT(spoil(lose_event) == OK && checked() == 1);
    stage_kill(start_shard());
    EXPECT(job_now().incomplete && job_now().state == JOB_QUEUED && audits("job.incomplete") == 1);
    EXPECT(stage_logged("a job is incomplete") == 1 && stage_logged("RECOVERY_INCOMPLETE") == 1);
    stage_kill(start_shard());
    EXPECT(audits("job.incomplete") == 1);
    struct job job = worked();
    EXPECT(job.state == JOB_FAILED && job.failure == JOB_RECOVERY_INCOMPLETE && !job.retryable);
    EXPECT(job.events == 5 && job.finished_us - job.started_us < 100000);
}

static void test_a_job_that_lacks_an_event_JOB_309_AMB_J_12(void)
{
    run(incomplete_body);
}

TEST_LIST
= {
    {"worker: definition missing (JOB-317)", test_definition_missing_JOB_317},
    {"worker: output of another size (JOB-320)", test_output_of_another_size_JOB_320},
    {"worker: a report that can't be made (JOB-319)", test_a_report_that_cannot_be_made_JOB_319},
    {"worker: one refusal isn't the job's", test_one_refusal_is_not_the_jobs},
    {"worker: a job that lacks an event (JOB-309, AMB-J-12)",
     test_a_job_that_lacks_an_event_JOB_309_AMB_J_12},
    {NULL, NULL},
};
