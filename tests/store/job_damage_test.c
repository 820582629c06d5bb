/* Jobs among rows that no command leaves: whatever one of them says, or doesn't any more, its own job is stopped by it at most, nothing
 * is half done, and all goes on when it is as it was. */
#include "acutest.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "store/audit.h"
#include "store/client.h"
#include "store/counter.h"
#include "store/job_bulk.h"
#include "store/job_fairness.h"
#include "store/job_pause.h"
#include "store/job_schedule.h"
#include "store/ledger.h"
#include "store/outbox.h"
#include "store/retention.h"
#include "tests/store/jobs.h"

static void begin(struct jobs *j)
{
    if (access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 0); /* it isn't about the disk */
    jobs_open(j);
}

/* ---- rows ---- */

static void put_row(struct jobs *j, uint32_t table, struct key key, const void *record)
{
    fresh_put(&j->fresh, table, key, record);
}

static void take_row(struct jobs *j, uint32_t table, struct key key)
{
    fresh_take(&j->fresh, table, key);
}

/* Once, and it can't be read; again, and it is as it was. */
static void flip(struct jobs *j, uint32_t table, struct key key)
{
    fresh_flip(&j->fresh, table, key);
}

static void flip_count(struct jobs *j, uint8_t state)
{
    flip(j, TABLE_COUNTERS, counter_key(COUNTER_JOBS, span_of(&state, sizeof(state))));
}

static enum error command(struct jobs *j, const struct command_class *class, const void *c)
{
    return batch_one(j->fresh.store, class, j->at_us, c, NULL);
}

/* ---- counters ---- */

static void test_a_count_that_cannot_be_read_admits_nobody(void)
{
    struct jobs j;
    begin(&j);
    jobs_in(&j, JOB_RUNNING);
    jobs_in(&j, JOB_ASSIGNED);
    struct jobs_held failed = jobs_in(&j, JOB_FAILED);
    struct uuid queued = jobs_new(&j);
    struct job_submit c = jobs_wish(&j, WORK_KIND_SUCCESS_FAST), later = jobs_wish_at(&j, j.at_us * 2);
    uint64_t sum = jobs_sum(&j);
    static const uint8_t states[] = {JOB_QUEUED, JOB_ASSIGNED, JOB_RUNNING};
    for (size_t i = 0; i < 3; i++) {
        flip_count(&j, states[i]);
        TEST_CHECK(jobs_submit(&j, &c, NULL) == ERR_DAMAGED && jobs_submit(&j, &later, NULL) == ERR_DAMAGED);
        j.running_max = 100;
        TEST_CHECK(states[i] == JOB_QUEUED || jobs_claim_one(&j, NULL) == ERR_DAMAGED);
        j.running_max = 0;
        flip_count(&j, states[i]);
    }
    flip_count(&j, JOB_QUEUED);
    TEST_CHECK(jobs_retry(&j, &j.client, &failed.id, NULL) == ERR_DAMAGED);
    flip_count(&j, JOB_QUEUED);
    TEST_CHECK(jobs_sum(&j) == sum && jobs_look(&j, &queued).state == JOB_QUEUED);
    TEST_CHECK(jobs_submit(&j, &c, NULL) == OK && jobs_submit(&j, &later, NULL) == OK);
    jobs_close(&j);
}

/* Its row has gone, and with it the last number given: no job gets one that another has. */
static void test_numbers_never_begin_anew(void)
{
    struct jobs j;
    begin(&j);
    struct uuid id = jobs_new(&j);
    const struct counter last = {.value = (int64_t)jobs_look(&j, &id).seq};
    const struct key key = counter_key(COUNTER_JOB_SEQ, span_of(NULL, 0));
    struct job_submit c = jobs_wish(&j, WORK_KIND_SUCCESS_FAST);
    take_row(&j, TABLE_COUNTERS, key);
    uint64_t sum = jobs_sum(&j);
    TEST_CHECK(jobs_submit(&j, &c, NULL) == ERR_DAMAGED && jobs_sum(&j) == sum);
    put_row(&j, TABLE_COUNTERS, key, &last);
    TEST_CHECK(jobs_submit(&j, &c, NULL) == OK && jobs_look(&j, &c.id).seq == (uint64_t)last.value + 1);
    jobs_close(&j);
}

/* The same of leases: whoever has one mustn't be taken for the next one who gets that job. */
static void test_fences_never_begin_anew(void)
{
    struct jobs j;
    begin(&j);
    struct uuid first = jobs_new(&j), second = jobs_new(&j);
    struct job_claimed a, b;
    TEST_CHECK(jobs_claim_one(&j, &a) == OK && uuid_equal(&a.id, &first));
    const struct counter last = {.value = (int64_t)a.fence};
    const struct key key = counter_key(COUNTER_JOB_FENCE, span_of(NULL, 0));
    take_row(&j, TABLE_COUNTERS, key);
    uint64_t sum = jobs_sum(&j);
    TEST_CHECK(jobs_claim_one(&j, &b) == ERR_DAMAGED && jobs_sum(&j) == sum);
    put_row(&j, TABLE_COUNTERS, key, &last);
    TEST_CHECK(jobs_claim_one(&j, &b) == OK && uuid_equal(&b.id, &second) && b.fence == a.fence + 1);
    jobs_close(&j);
}

static enum error add_webhook(struct txn *txn, uint64_t at_us, void *context)
{
    (void)at_us;
    const struct jobs *j = context;
    counter_add(txn, COUNTER_WEBHOOKS, span_of(&j->client, sizeof(j->client)), 1);
    return OK;
}

static enum error remove_webhook(struct txn *txn, uint64_t at_us, void *context)
{
    (void)at_us;
    const struct jobs *j = context;
    counter_add(txn, COUNTER_WEBHOOKS, span_of(&j->client, sizeof(j->client)), -1);
    return OK;
}

/* Whether somebody has to be told isn't known then: so nothing is done that he might have to be told of. */
static void test_when_nobody_knows_who_is_to_be_told_a_job_stays_as_it_is(void)
{
    struct jobs j;
    struct job_fired fired[8];
    begin(&j);
    struct key counter = counter_key(COUNTER_WEBHOOKS, span_of(&j.client, sizeof(j.client)));
    struct jobs_held running = jobs_in(&j, JOB_RUNNING), assigned = jobs_in(&j, JOB_ASSIGNED);
    struct uuid queued = jobs_new(&j);
    struct job_submit timed = jobs_wish_at(&j, j.at_us + JOBS_SECOND_US);
    TEST_CHECK(jobs_submit(&j, &timed, NULL) == OK);
    TEST_CHECK(fresh_do(&j.fresh, j.at_us, add_webhook, &j) == OK);
    uint64_t sum = jobs_sum(&j);
    flip(&j, TABLE_COUNTERS, counter);
    struct job_finish end = jobs_end_of(&j, &running.id, running.fence, JOB_SUCCEED);
    TEST_CHECK(jobs_finish(&j, &end, NULL) == ERR_DAMAGED);
    TEST_CHECK(jobs_begin(&j, &assigned.id, assigned.fence) == ERR_DAMAGED);
    TEST_CHECK(jobs_cancel(&j, &j.client, &queued, NULL) == ERR_DAMAGED);
    TEST_CHECK(jobs_claim_one(&j, NULL) == ERR_DAMAGED);
    flip(&j, TABLE_COUNTERS, counter);
    TEST_CHECK(jobs_sum(&j) == sum);
    flip(&j, TABLE_COUNTERS, counter);
    jobs_pass(&j, JOBS_SECOND_US);
    TEST_CHECK(jobs_fire(&j, fired, 8) == 1 && fired[0].damaged && uuid_equal(&fired[0].id, &timed.id));
    j.start++;
    TEST_CHECK(jobs_reap(&j, &running.id, fired) == OK && fired[0].damaged);
    jobs_pass(&j, JOBS_LEASE_US);
    TEST_CHECK(jobs_fire(&j, fired, 8) == 1 && fired[0].damaged && uuid_equal(&fired[0].id, &assigned.id));
    TEST_CHECK(jobs_look(&j, &running.id).state == JOB_RUNNING &&
               jobs_look(&j, &assigned.id).state == JOB_ASSIGNED &&
               jobs_look(&j, &queued).state == JOB_QUEUED && jobs_look(&j, &timed.id).state == JOB_CREATED);
    flip(&j, TABLE_COUNTERS, counter);
    TEST_CHECK(fresh_do(&j.fresh, j.at_us, remove_webhook, &j) == OK);
    jobs_pass(&j, JOB_SET_BY_US);
    TEST_CHECK(jobs_fire(&j, fired, 8) == 3 && jobs_look(&j, &running.id).state == JOB_FAILED);
    jobs_close(&j);
}

/* ---- logs that know more than the row ---- */

struct stray {
    struct uuid id;
    uint64_t seq;
};

static enum error add_event(struct txn *txn, uint64_t at_us, void *context)
{
    const struct stray *stray = context;
    struct event event = {.at_us = at_us, .domain = JOB_DOMAIN, .name = JOB_CANCEL};
    return event_add(txn, &stray->id, stray->seq, &event);
}

/* So many events behind the newest. */
static struct key know_more(struct jobs *j, const struct uuid *id, uint64_t by)
{
    struct stray stray = {*id, jobs_look(j, id).events + by};
    TEST_CHECK(fresh_do(&j->fresh, j->at_us, add_event, &stray) == OK);
    return event_key(id, stray.seq);
}

static void test_the_first_step_that_the_log_contradicts_is_refused(void)
{
    struct jobs j;
    struct job_fired fired[8];
    begin(&j);
    struct jobs_held assigned = jobs_in(&j, JOB_ASSIGNED), failed = jobs_in(&j, JOB_FAILED);
    struct key first = know_more(&j, &assigned.id, 1), second = know_more(&j, &failed.id, 1);
    uint64_t sum = jobs_sum(&j);
    TEST_CHECK(jobs_begin(&j, &assigned.id, assigned.fence) == ERR_DAMAGED);
    TEST_CHECK(jobs_retry(&j, &j.client, &failed.id, NULL) == ERR_DAMAGED && jobs_sum(&j) == sum);
    jobs_pass(&j, JOBS_LEASE_US);
    TEST_CHECK(jobs_fire(&j, fired, 8) == 1 && fired[0].damaged);
    TEST_CHECK(jobs_look(&j, &assigned.id).state == JOB_ASSIGNED);
    take_row(&j, TABLE_EVENTS, first);
    take_row(&j, TABLE_EVENTS, second);
    TEST_CHECK(jobs_retry(&j, &j.client, &failed.id, NULL) == OK);
    jobs_close(&j);
}

/* The first step is whole without the second, which is left out. */
static void test_a_second_step_that_the_log_contradicts_is_left_out(void)
{
    struct jobs j;
    struct job_claimed claimed[JOB_CLAIM_MAX];
    struct job_finished finished;
    struct job_fired fired[8];
    uint32_t count;
    begin(&j);
    struct jobs_held failing = jobs_in(&j, JOB_RUNNING), lost = jobs_in(&j, JOB_RUNNING);
    struct uuid queued = jobs_new(&j);
    struct key strays[] = {know_more(&j, &failing.id, 2), know_more(&j, &lost.id, 2),
                           know_more(&j, &queued, 2)};
    struct job_claim c = jobs_claim_of(&j, 1);
    c.running = 1;
    TEST_CHECK(jobs_claim(&j, &c, claimed, &count) == OK && count == 1 && !claimed[0].running);
    TEST_CHECK(jobs_look(&j, &queued).state == JOB_ASSIGNED);
    struct job_finish end = jobs_end_of(&j, &failing.id, failing.fence, JOB_FAIL);
    end.auto_retry = 1;
    TEST_CHECK(jobs_finish(&j, &end, &finished) == OK && !finished.retried);
    TEST_CHECK(jobs_look(&j, &failing.id).state == JOB_FAILED);
    finished.retried = 1; /* and its report says the same to who asks again */
    TEST_CHECK(jobs_finish(&j, &end, &finished) == OK && !finished.made && !finished.retried);
    j.auto_retry = true;
    j.start++;
    TEST_CHECK(jobs_reap(&j, &lost.id, fired) == OK && fired[0].event == JOB_FAIL);
    TEST_CHECK(jobs_look(&j, &lost.id).state == JOB_FAILED);
    for (size_t i = 0; i < 3; i++)
        take_row(&j, TABLE_EVENTS, strays[i]);
    TEST_CHECK(jobs_retry(&j, &j.client, &lost.id, NULL) == OK);
    jobs_close(&j);
}

static void test_a_job_whose_log_is_there_before_it_is_not_made(void)
{
    struct jobs j;
    begin(&j);
    for (uint64_t seq = 1; seq <= 2; seq++) {
        struct job_submit c = jobs_wish(&j, WORK_KIND_SUCCESS_FAST);
        struct stray stray = {c.id, seq};
        TEST_CHECK(fresh_do(&j.fresh, j.at_us, add_event, &stray) == OK);
        uint64_t sum = jobs_sum(&j);
        TEST_CHECK(jobs_submit(&j, &c, NULL) == ERR_DAMAGED && jobs_sum(&j) == sum);
        take_row(&j, TABLE_EVENTS, event_key(&c.id, seq));
        TEST_CHECK(jobs_submit(&j, &c, NULL) == OK);
    }
    jobs_close(&j);
}

/* What an event says beyond the scenario is a few members; so many bytes are none of ours, and left out. */
static void test_an_event_with_too_much_to_say_says_nothing(void)
{
    struct jobs j;
    begin(&j);
    struct uuid id = jobs_new(&j);
    static char data[2000];
    memset(data, 'x', sizeof(data));
    struct event event = {.at_us = j.at_us,
                          .domain = JOB_DOMAIN,
                          .name = JOB_ENQUEUE,
                          .to_state = JOB_QUEUED,
                          .data = span_of(data, 769)};
    put_row(&j, TABLE_EVENTS, event_key(&id, 3), &event);
    const char *payload = jobs_payload(&j, &id, 3);
    TEST_CHECK_(strcmp(payload, "{\"scenario\":\"SUCCESS_FAST\"}") == 0, "%s", payload);
    take_row(&j, TABLE_EVENTS, event_key(&id, 3));
    jobs_close(&j);
}

static enum error fill_outboxes(struct txn *txn, uint64_t at_us, void *context)
{
    const int64_t *delta = context;
    (void)at_us;
    for (uint16_t partition = 0; partition < OUTBOX_PARTITIONS; partition++) {
        struct key label = {.size = 0};
        key_add_u16(&label, partition);
        counter_add(txn, COUNTER_OUTBOX, key_span(&label), *delta);
    }
    return OK;
}

/* The only audit entry there is: of this job, made now. */
static void is_noted(struct jobs *j, const struct uuid *id)
{
    struct view *view = view_open_outside(j->fresh.store, 0);
    const struct key first = {.size = 0};
    char text[UUID_TEXT_SIZE];
    struct audit audit;
    struct uuid own;
    TEST_ASSERT(view != NULL);
    struct scan scan = txn_scan(&view->txn, TABLE_AUDITS, key_span(&first), 0, SCAN_UP);
    TEST_ASSERT(scan_next(&scan) && scan_read(&scan, &audit) == OK && scan.key.size == sizeof(own));
    memcpy(&own, scan.key.bytes, sizeof(own));
    uuid_format(id, text);
    TEST_CHECK(uuid_equal(&own, &audit.id) && uuid_version(&own) == 7 &&
               uuid_time_ms(&own) == j->at_us / 1000);
    TEST_CHECK(span_equal(audit.verb, span_text("job.incomplete")) &&
               span_equal(audit.target, span_text(text)));
    TEST_CHECK(audit.at_us == j->at_us && span_equal(audit.who, span_text("system")));
    TEST_CHECK(!scan_next(&scan) && scan_end(&scan) == OK);
    view_close(view);
}

static void test_a_job_that_lacks_an_event_is_marked_once(void)
{
    struct jobs j;
    struct job_fired fired;
    struct event event;
    begin(&j);
    struct uuid id = jobs_new(&j);
    struct view *view = view_open_outside(j.fresh.store, 0);
    TEST_ASSERT(view != NULL);
    TEST_CHECK(event_read(&view->txn, &id, 1, &event) == OK);
    view_close(view);
    event.data = span_of(NULL, 0);
    TEST_CHECK(jobs_reap(&j, &id, &fired) == OK && fired.event == JOB_EVENT_COUNT && !fired.incomplete);
    take_row(&j, TABLE_EVENTS, event_key(&id, 1));
    int64_t delta = OUTBOX_HARD; /* nobody is told of the mark by it */
    TEST_CHECK(fresh_do(&j.fresh, j.at_us, fill_outboxes, &delta) == OK);
    TEST_CHECK(jobs_reap(&j, &id, &fired) == OK && fired.incomplete && jobs_look(&j, &id).incomplete);
    delta = -delta;
    TEST_CHECK(fresh_do(&j.fresh, j.at_us, fill_outboxes, &delta) == OK);
    is_noted(&j, &id);
    TEST_CHECK(jobs_reap(&j, &id, &fired) == OK && !fired.incomplete && jobs_rows(&j, TABLE_AUDITS) == 1);
    put_row(&j, TABLE_EVENTS, event_key(&id, 1), &event);
    jobs_close(&j);
}

/* Of one that goes on an event is missed; one that has its end needs none. */
static void test_a_final_job_lacks_nothing(void)
{
    struct jobs j;
    begin(&j);
    static const uint8_t states[] = {JOB_RUNNING, JOB_SUCCEEDED};
    for (size_t i = 0; i < 2; i++) {
        struct uuid id = jobs_in(&j, states[i]).id;
        struct job job = jobs_look(&j, &id);
        struct event event;
        struct view *view = view_open_outside(j.fresh.store, 0);
        TEST_ASSERT(view != NULL);
        TEST_CHECK(!job_lacks_event(&view->txn, &job) && event_read(&view->txn, &id, 2, &event) == OK);
        view_close(view);
        event.data = span_of(NULL, 0);
        take_row(&j, TABLE_EVENTS, event_key(&id, 2));
        view = view_open_outside(j.fresh.store, 0);
        TEST_ASSERT(view != NULL);
        TEST_CHECK(job_lacks_event(&view->txn, &job) == (states[i] == JOB_RUNNING));
        view_close(view);
        put_row(&j, TABLE_EVENTS, event_key(&id, 2), &event);
    }
    jobs_close(&j);
}

/* ---- reports ---- */

static void test_a_report_that_cannot_be_read_repeats_nothing(void)
{
    struct jobs j;
    begin(&j);
    struct jobs_held held = jobs_in(&j, JOB_RUNNING);
    struct job_finish end = jobs_end_of(&j, &held.id, held.fence, JOB_SUCCEED);
    TEST_CHECK(jobs_finish(&j, &end, NULL) == OK && jobs_finish(&j, &end, NULL) == OK);
    flip(&j, TABLE_REPORTS, report_key(&held.id, 1));
    TEST_CHECK(jobs_finish(&j, &end, NULL) == ERR_DAMAGED);
    flip(&j, TABLE_REPORTS, report_key(&held.id, 1));
    TEST_CHECK(jobs_finish(&j, &end, NULL) == OK);
    jobs_close(&j);
}

/* ---- keys of submits ---- */

static void test_a_key_whose_job_has_gone_is_damaged(void)
{
    struct jobs j;
    begin(&j);
    struct job_submit c = jobs_wish(&j, WORK_KIND_SUCCESS_FAST);
    c.key = span_text("key");
    TEST_CHECK(jobs_submit(&j, &c, NULL) == OK);
    const struct job job = jobs_look(&j, &c.id);
    take_row(&j, TABLE_JOBS, key_of_uuid(&job.id));
    TEST_CHECK(jobs_submit(&j, &c, NULL) == ERR_DAMAGED);
    put_row(&j, TABLE_JOBS, key_of_uuid(&job.id), &job);
    TEST_CHECK(jobs_submit(&j, &c, NULL) == OK);
    jobs_close(&j);
}

/* The key's row says the id that the job got; one that says less was another command's. */
static enum error note_short(struct txn *txn, uint64_t at_us, void *context)
{
    const struct job_submit *c = context;
    char scope[4 + 32 + 1] = "job/";
    for (size_t i = 0; i < sizeof(c->client.bytes); i++)
        snprintf(scope + 4 + 2 * i, 3, "%02x", c->client.bytes[i]);
    ledger_put(txn, LEDGER_DAY, at_us, span_text(scope), c->key, &c->digest, span_text("short"));
    return OK;
}

static void test_a_key_that_says_no_id_is_damaged(void)
{
    struct jobs j;
    begin(&j);
    struct job_submit c = jobs_wish(&j, WORK_KIND_SUCCESS_FAST);
    c.key = span_text("key");
    TEST_CHECK(fresh_do(&j.fresh, j.at_us, note_short, &c) == OK);
    TEST_CHECK(jobs_submit(&j, &c, NULL) == ERR_DAMAGED && jobs_rows(&j, TABLE_JOBS) == 0);
    j.at_us += 2 * JOBS_DAY_US;
    TEST_CHECK(jobs_submit(&j, &c, NULL) == OK);
    jobs_close(&j);
}

/* A full ledger refuses a key, which it would have to keep; of a request's id nothing was promised. */
static void test_a_full_ledger_refuses_keys_alone(void)
{
    struct jobs j;
    struct job_submitted first, second;
    begin(&j);
    j.fresh.ledger_max = 1;
    fresh_reopen(&j.fresh);
    struct job_submit c = jobs_wish(&j, WORK_KIND_SUCCESS_FAST);
    c.key = span_text("key");
    TEST_CHECK(jobs_submit(&j, &c, NULL) == OK && jobs_submit(&j, &c, NULL) == OK);
    c.key = span_text("other");
    c.id = fresh_uuid();
    TEST_CHECK(jobs_submit(&j, &c, NULL) == ERR_LIMIT);
    c.key = span_text("");
    c.repeat = span_text("request");
    TEST_CHECK(jobs_submit(&j, &c, &first) == OK && first.made);
    c.id = fresh_uuid();
    TEST_CHECK(jobs_submit(&j, &c, &second) == OK && second.made && !uuid_equal(&first.id, &second.id));
    TEST_CHECK(jobs_rows(&j, TABLE_LEDGER) == 1);
    struct client_create client = {.id = j.client, .from = span_text("192.0.2.1")};
    struct schedule_put s = {.id = fresh_uuid(),
                             .client = j.client,
                             .kind = WORK_KIND_SUCCESS_FAST,
                             .name = span_text("each minute"),
                             .cron = span_text("* * * * *"),
                             .key = span_text("key")};
    TEST_CHECK(command(&j, &client_create_class, &client) == OK);
    TEST_CHECK(command(&j, &schedule_put_class, &s) == ERR_LIMIT);
    s.key = span_text("");
    TEST_CHECK(command(&j, &schedule_put_class, &s) == OK);
    jobs_close(&j);
}

/* Longer than those whose id is remembered from one job to the next: it has one all the same. */
static void test_a_kind_with_a_long_name_has_one_id(void)
{
    struct jobs j;
    char name[TXN_KIND_MAX + 2] = "x.";
    begin(&j);
    memset(name + 2, 'a', sizeof(name) - 3);
    struct job_submit c = jobs_wish_user(&j, name), more = jobs_wish_user(&j, name);
    TEST_CHECK(c.kind_name.size == TXN_KIND_MAX + 1);
    TEST_CHECK(jobs_submit(&j, &c, NULL) == OK && jobs_submit(&j, &more, NULL) == OK);
    struct uuid work = job_work_id(j.fresh.store, WORK_KIND_USER, c.kind_name);
    struct job one = jobs_look(&j, &c.id), other = jobs_look(&j, &more.id);
    TEST_CHECK(uuid_equal(&one.work, &work) && uuid_equal(&other.work, &work));
    c = jobs_wish(&j, WORK_KIND_NONE); /* of none there is one that is so small, and fails */
    c.payload_max = 0;
    c.should_fail_ppm = 1000000;
    TEST_CHECK(jobs_submit(&j, &c, NULL) == ERR_INVALID);
    jobs_close(&j);
}

/* ---- rows of the queue ---- */

static struct key lane_key(uint8_t lane, const void *more, uint32_t size)
{
    struct key key = {.size = 0};
    key_add_u8(&key, lane);
    key_add(&key, more, size);
    return key;
}

/* Keys that are too short or too long for a place, and rows of jobs that stand elsewhere, or nowhere. */
static void test_a_claim_passes_by_what_is_no_ones_place(void)
{
    struct jobs j;
    static const uint8_t bytes[KEY_SIZE_MAX] = {0};
    begin(&j);
    struct jobs_held running = jobs_in(&j, JOB_RUNNING), waiting = jobs_in(&j, JOB_FAILED);
    TEST_CHECK(jobs_retry(&j, &j.client, &waiting.id, NULL) == OK);
    struct uuid good = jobs_new(&j);
    struct job job = jobs_look(&j, &good), ran = jobs_look(&j, &running.id),
               waits = jobs_look(&j, &waiting.id);
    struct job_queue rows[] = {{.id = fresh_uuid()}, {.id = ran.id}, {.id = waits.id}, {.id = good}};
    ran.lane = waits.lane = LANE_SERVER; /* where they would stand */
    job.place = 0;
    struct key keys[] = {lane_key(LANE_SERVER, bytes, 3), job_queue_key(&ran), job_queue_key(&waits),
                         job_queue_key(&job)};
    for (size_t i = 0; i < 4; i++)
        put_row(&j, TABLE_JOB_QUEUE, keys[i], &rows[i]);
    struct job_claimed claimed;
    TEST_CHECK(jobs_claim_one(&j, &claimed) == OK && uuid_equal(&claimed.id, &good));
    TEST_CHECK(jobs_claim_one(&j, NULL) == ERR_DAMAGED);
    for (size_t i = 0; i < 4; i++)
        take_row(&j, TABLE_JOB_QUEUE, keys[i]);
    TEST_CHECK(jobs_claim_one(&j, NULL) == ERR_NOT_FOUND);
    /* Behind a key of the greatest length nobody can look: it isn't said that there is nothing. */
    put_row(&j, TABLE_JOB_QUEUE, lane_key(LANE_SERVER, bytes, KEY_SIZE_MAX - 1), &rows[0]);
    TEST_CHECK(jobs_claim_one(&j, NULL) == ERR_DAMAGED);
    take_row(&j, TABLE_JOB_QUEUE, lane_key(LANE_SERVER, bytes, KEY_SIZE_MAX - 1));
    jobs_close(&j);
}

/* More of them in front than one claim passes by: it says that they are damaged, not that there is nothing. */
static void test_a_claim_gives_up_behind_very_many_damaged_ones(void)
{
    struct jobs j;
    begin(&j);
    struct uuid ids[JOB_PASSED_MAX + 2];
    for (uint32_t i = 0; i < JOB_PASSED_MAX + 2; i++) {
        ids[i] = jobs_new(&j);
        if (i <= JOB_PASSED_MAX)
            flip(&j, TABLE_JOBS, key_of_uuid(&ids[i]));
    }
    TEST_CHECK(jobs_claim_one(&j, NULL) == ERR_DAMAGED);
    flip(&j, TABLE_JOBS, key_of_uuid(&ids[JOB_PASSED_MAX]));
    struct job_claimed claimed;
    TEST_CHECK(jobs_claim_one(&j, &claimed) == OK && uuid_equal(&claimed.id, &ids[JOB_PASSED_MAX]));
    for (uint32_t i = 0; i < JOB_PASSED_MAX; i++)
        flip(&j, TABLE_JOBS, key_of_uuid(&ids[i]));
    jobs_close(&j);
}

static uint32_t ahead(struct jobs *j, const struct job *job)
{
    uint32_t count = UINT32_MAX;
    struct view *view = view_open_outside(j->fresh.store, 0);
    TEST_ASSERT(view != NULL);
    TEST_CHECK(job_queue_ahead(&view->txn, job, 100, &count) == OK);
    view_close(view);
    return count;
}

static void test_nobody_is_before_one_that_has_no_place(void)
{
    struct jobs j;
    begin(&j);
    struct uuid id = jobs_new(&j);
    const struct job job = jobs_look(&j, &id);
    struct job_queue row = {.id = id, .client = job.client, .work = job.work};
    TEST_CHECK(ahead(&j, &job) == 0);
    take_row(&j, TABLE_JOB_QUEUE, job_queue_key(&job));
    TEST_CHECK(ahead(&j, &job) == 0);
    put_row(&j, TABLE_JOB_QUEUE, job_queue_key(&job), &row);
    jobs_close(&j);
}

/* Rows whose record is another's, and those of a job that stands in the order of creation, but not there. */
static void test_a_claim_by_the_order_of_creation_passes_by_what_is_none(void)
{
    struct jobs j;
    struct job_claimed claimed;
    begin(&j);
    struct uuid id = jobs_new(&j);
    struct job_fairness on = {.on = 1, .most = 100}, off = {.on = 0, .most = 100};
    TEST_CHECK(command(&j, &job_fairness_class, &on) == OK && command(&j, &job_fairness_class, &off) == OK);
    const struct job sound = jobs_look(&j, &id);
    struct job job = sound;
    struct job_queue row = {.id = id, .client = job.client, .work = job.work};
    TEST_CHECK(job.lane == LANE_FAIR && ahead(&j, &job) == 0);
    fresh_flip(&j.fresh, TABLE_FAIRNESS, fairness_key());
    TEST_CHECK(ahead(&j, &job) == 0);
    fresh_flip(&j.fresh, TABLE_FAIRNESS, fairness_key());
    job.place = 0;
    put_row(&j, TABLE_JOB_QUEUE, job_queue_order_key(&job), &row);
    struct key crumb = job_queue_order_key(&sound);
    key_add_u8(&crumb, 0);
    crumb.bytes[crumb.size - 2] = 0;
    fresh_crumb(&j.fresh, TABLE_JOB_QUEUE, crumb);
    TEST_CHECK(jobs_claim_one(&j, &claimed) == OK && uuid_equal(&claimed.id, &id));
    take_row(&j, TABLE_JOB_QUEUE, crumb);
    take_row(&j, TABLE_JOB_QUEUE, job_queue_order_key(&job));
    TEST_CHECK(command(&j, &job_fairness_class, &off) == OK);
    jobs_close(&j);
}

static void test_how_many_are_before_one_while_clients_take_turns(void)
{
    struct jobs j;
    begin(&j);
    struct job_fairness on = {.on = 1, .most = 1}, off = {.on = 0, .most = 100};
    struct job_submit user = jobs_wish_user(&j, "x.free"), second = jobs_wish_user(&j, "x.free");
    jobs_new(&j);
    jobs_new(&j);
    struct uuid last = jobs_new(&j);
    TEST_CHECK(jobs_submit(&j, &user, NULL) == OK && jobs_submit(&j, &second, NULL) == OK);
    TEST_CHECK(command(&j, &job_fairness_class, &on) == OK); /* one has got its turn, two haven't yet */
    struct job later = jobs_look(&j, &last), outside = jobs_look(&j, &second.id);
    TEST_CHECK(later.lane == LANE_SERVER && ahead(&j, &later) == 1);
    TEST_CHECK(outside.lane == LANE_OUTSIDE && ahead(&j, &outside) == 1);
    fresh_flip(&j.fresh, TABLE_FAIRNESS, fairness_key());
    TEST_CHECK(ahead(&j, &later) == 2); /* by the order of creation then */
    fresh_flip(&j.fresh, TABLE_FAIRNESS, fairness_key());
    TEST_CHECK(command(&j, &job_fairness_class, &off) == OK);
    jobs_close(&j);
}

/* Of very many kinds more than a claim passes by have nothing but what can't be read. */
static void test_a_claim_of_very_many_kinds_that_cannot_be_read(void)
{
    enum { KINDS = JOB_PASSED_MAX + 1 };
    struct jobs j;
    struct uuid ids[KINDS];
    struct job_claimed claimed[JOB_CLAIM_MAX];
    uint32_t count;
    char name[16];
    begin(&j);
    for (int i = 0; i < KINDS; i++) {
        snprintf(name, sizeof(name), "x.kind-%d", i);
        struct job_submit c = jobs_wish_user(&j, name);
        TEST_CHECK(jobs_submit(&j, &c, NULL) == OK);
        ids[i] = c.id;
        flip(&j, TABLE_JOBS, key_of_uuid(&ids[i]));
    }
    struct job_claim c = jobs_claim_of(&j, 1);
    c.lane = LANE_OUTSIDE;
    c.client = j.client;
    TEST_CHECK(jobs_claim(&j, &c, claimed, &count) == ERR_DAMAGED);
    for (int i = 0; i < KINDS; i++)
        flip(&j, TABLE_JOBS, key_of_uuid(&ids[i]));
    TEST_CHECK(jobs_claim(&j, &c, claimed, &count) == OK && count == 1);
    jobs_close(&j);
}

/* ---- limits of a client ---- */

/* Rows of others in its lane, and rows that can't be read, are passed by on the way back. */
static void test_a_place_goes_to_the_first_that_can_be_read(void)
{
    struct jobs j;
    struct job_claimed claimed[JOB_CLAIM_MAX];
    uint32_t count;
    struct uuid ids[4];
    begin(&j);
    for (uint32_t i = 0; i < 4; i++)
        ids[i] = jobs_new(&j);
    struct job_claim c = jobs_claim_of(&j, 4);
    c.client_max = 1;
    c.running = 1;
    TEST_CHECK(jobs_claim(&j, &c, claimed, &count) == OK && count == 1);
    struct job second = jobs_look(&j, &ids[1]);
    TEST_CHECK(second.lane == LANE_LIMITED);
    flip(&j, TABLE_JOB_QUEUE, job_queue_key(&second));
    flip(&j, TABLE_JOBS, key_of_uuid(&ids[2]));
    struct job_finish end = jobs_end_of(&j, &ids[0], claimed[0].fence, JOB_SUCCEED);
    TEST_CHECK(jobs_finish(&j, &end, NULL) == OK);
    TEST_CHECK(jobs_look(&j, &ids[3]).lane == LANE_SERVER);
    flip(&j, TABLE_JOB_QUEUE, job_queue_key(&second));
    flip(&j, TABLE_JOBS, key_of_uuid(&ids[2]));
    TEST_CHECK(jobs_look(&j, &ids[1]).lane == LANE_LIMITED && jobs_look(&j, &ids[2]).lane == LANE_LIMITED);
    jobs_close(&j);
}

static void test_a_limit_that_cannot_be_counted_holds_all_back(void)
{
    struct jobs j;
    struct job_claimed claimed[JOB_CLAIM_MAX];
    uint32_t count;
    begin(&j);
    struct key counter = counter_key(COUNTER_JOBS_COUNTED, span_of(&j.client, sizeof(j.client)));
    jobs_new(&j);
    struct uuid second = jobs_new(&j);
    struct job_claim c = jobs_claim_of(&j, 1);
    c.client_max = 2;
    TEST_CHECK(jobs_claim(&j, &c, claimed, &count) == OK && count == 1);
    uint64_t sum = jobs_sum(&j);
    flip(&j, TABLE_COUNTERS, counter);
    TEST_CHECK(jobs_claim(&j, &c, claimed, &count) == ERR_DAMAGED);
    flip(&j, TABLE_COUNTERS, counter);
    TEST_CHECK(jobs_sum(&j) == sum && jobs_claim(&j, &c, claimed, &count) == OK &&
               uuid_equal(&claimed[0].id, &second));
    jobs_close(&j);
}

/* One that was promised a place and is claimed without a limit is counted: so the claim fails when that can't be. */
static void test_a_promise_that_cannot_be_counted_is_kept(void)
{
    struct jobs j;
    struct job_claimed claimed[JOB_CLAIM_MAX];
    uint32_t count;
    begin(&j);
    struct key counter = counter_key(COUNTER_JOBS_COUNTED, span_of(&j.client, sizeof(j.client)));
    struct uuid ids[] = {jobs_new(&j), jobs_new(&j), jobs_new(&j)};
    struct job_claim c = jobs_claim_of(&j, 3);
    c.client_max = 2;
    TEST_CHECK(jobs_claim(&j, &c, claimed, &count) == OK && count == 2);
    TEST_CHECK(jobs_cancel(&j, &j.client, &ids[0], NULL) == OK &&
               jobs_look(&j, &ids[2]).slot == JOB_SLOT_PROMISED);
    c.client_max = 0;
    flip(&j, TABLE_COUNTERS, counter);
    TEST_CHECK(jobs_claim(&j, &c, claimed, &count) == ERR_DAMAGED);
    flip(&j, TABLE_COUNTERS, counter);
    TEST_CHECK(jobs_look(&j, &ids[2]).slot == JOB_SLOT_PROMISED);
    TEST_CHECK(jobs_claim(&j, &c, claimed, &count) == OK && count == 1);
    jobs_close(&j);
}

static enum error admit(struct txn *txn, uint64_t at_us, void *context)
{
    const struct jobs *j = context;
    (void)at_us;
    TEST_CHECK(txn->parts_count == 0);
    job_queue_admit(txn, &j->client);
    TEST_CHECK_(txn->parts_count == 8, "%u are woken", txn->parts_count);
    return OK;
}

/* Who waits for one of the client's own kinds is woken, for eight of them. */
static void test_a_place_wakes_those_outside_for_eight_kinds(void)
{
    struct jobs j;
    char name[16];
    begin(&j);
    for (int i = 0; i < 10; i++) {
        snprintf(name, sizeof(name), "x.kind-%d", i);
        struct job_submit c = jobs_wish_user(&j, name);
        TEST_CHECK(jobs_submit(&j, &c, NULL) == OK);
    }
    TEST_CHECK(fresh_do(&j.fresh, j.at_us, admit, &j) == OK);
    jobs_close(&j);
}

/* Behind so many that can't be read nobody gets the place. */
static void test_a_place_is_looked_for_so_far(void)
{
    enum { DAMAGED = 64 };
    struct jobs j;
    struct job_claimed claimed[JOB_CLAIM_MAX];
    struct uuid ids[DAMAGED + 2];
    uint32_t count;
    begin(&j);
    for (uint32_t i = 0; i < DAMAGED + 2; i++)
        ids[i] = jobs_new(&j);
    struct job_claim c = jobs_claim_of(&j, 2);
    c.client_max = 1;
    TEST_CHECK(jobs_claim(&j, &c, claimed, &count) == OK && count == 1);
    for (uint32_t i = 1; i <= DAMAGED; i++)
        flip(&j, TABLE_JOBS, key_of_uuid(&ids[i]));
    TEST_CHECK(jobs_cancel(&j, &j.client, &ids[0], NULL) == OK);
    TEST_CHECK(jobs_look(&j, &ids[DAMAGED + 1]).lane == LANE_LIMITED);
    for (uint32_t i = 1; i <= DAMAGED; i++)
        flip(&j, TABLE_JOBS, key_of_uuid(&ids[i]));
    jobs_close(&j);
}

/* ---- timers ---- */

struct timer {
    uint8_t queue;
    uint16_t shard;
    uint64_t due_us;
    struct uuid id;
    uint16_t kind;
};

static enum error set_timer(struct txn *txn, uint64_t at_us, void *context)
{
    const struct timer *t = context;
    (void)at_us;
    due_set(txn, &(struct due_entry){.queue = t->queue,
                                     .shard = t->shard,
                                     .due_us = t->due_us,
                                     .id = t->id,
                                     .row = {.kind = t->kind}});
    return OK;
}

static void put_timer(struct jobs *j, struct timer timer)
{
    TEST_CHECK(fresh_do(&j->fresh, j->at_us, set_timer, &timer) == OK);
}

static void test_a_timer_of_a_final_job_goes(void)
{
    struct jobs j;
    struct job_fired fired[8];
    begin(&j);
    struct jobs_held held = jobs_in(&j, JOB_SUCCEEDED);
    uint64_t rows = jobs_rows(&j, TABLE_DUE);
    put_timer(&j, (struct timer){DUE_JOB_LEASE, job_shard(DUE_JOB_LEASE, &held.id), j.at_us, held.id, 0});
    TEST_CHECK(jobs_rows(&j, TABLE_DUE) == rows + 1);
    TEST_CHECK(jobs_fire(&j, fired, 8) == 0 && jobs_rows(&j, TABLE_DUE) == rows);
    TEST_CHECK(jobs_reap(&j, &held.id, fired) == OK && fired[0].event == JOB_EVENT_COUNT);
    jobs_close(&j);
}

/* Removal is due by an entry that isn't the job's own: of one that goes on, and of one whose time hasn't come. */
static void test_a_job_goes_by_its_own_time_alone(void)
{
    struct jobs j;
    char text[FRESH_TEXT];
    begin(&j);
    struct jobs_held running = jobs_in(&j, JOB_RUNNING), failed = jobs_in(&j, JOB_FAILED);
    uint64_t rows = jobs_rows(&j, TABLE_DUE);
    put_timer(&j, (struct timer){DUE_RETENTION, RETENTION_SHARD, j.at_us, running.id, RETENTION_JOB});
    put_timer(&j, (struct timer){DUE_RETENTION, RETENTION_SHARD, j.at_us, failed.id, RETENTION_JOB});
    TEST_CHECK(fresh_findings(&j.fresh, text) > 0);
    jobs_sweep(&j);
    TEST_CHECK(jobs_rows(&j, TABLE_DUE) == rows);
    TEST_CHECK(jobs_look(&j, &running.id).state == JOB_RUNNING &&
               jobs_look(&j, &failed.id).state == JOB_FAILED);
    jobs_close(&j);
}

static void test_a_bulk_action_goes_by_its_own_times_alone(void)
{
    struct jobs j;
    struct uuid stranger = fresh_uuid();
    begin(&j);
    struct job_bulk c = {.by_steady = 1,
                         .id = fresh_uuid(),
                         .action = BULK_CANCEL,
                         .states = UINT8_MAX,
                         .type = BULK_ANY_TYPE};
    struct job_bulk_step step = {
        .by_steady = 1, .wall_us = j.at_us, .steady_us = j.steady_us, .queue_max = j.queue_max};
    TEST_CHECK(command(&j, &job_bulk_class, &c) == OK);
    uint64_t rows = jobs_rows(&j, TABLE_DUE);
    put_timer(&j, (struct timer){DUE_RETENTION, RETENTION_SHARD, j.at_us, c.id, RETENTION_BULK});
    put_timer(&j, (struct timer){DUE_RETENTION, RETENTION_SHARD, j.at_us, stranger, RETENTION_BULK});
    put_timer(&j, (struct timer){DUE_JOB_BULK, BULK_SHARD, 0, c.id, 0}); /* not its own */
    put_timer(&j, (struct timer){DUE_JOB_BULK, BULK_SHARD, 0, stranger, 0});
    TEST_CHECK(fresh_tells(&j.fresh, "(kind 32), which isn't there"));
    jobs_sweep(&j);
    TEST_CHECK(command(&j, &job_bulk_step_class, &step) == OK);
    TEST_CHECK(command(&j, &job_bulk_step_class, &step) == OK);
    TEST_CHECK(jobs_rows(&j, TABLE_DUE) == rows && jobs_rows(&j, TABLE_BULKS) == 1);
    TEST_CHECK(command(&j, &job_bulk_step_class, &step) == OK); /* its own: that is its end */
    put_timer(&j, (struct timer){DUE_RETENTION, RETENTION_SHARD, j.at_us, c.id, RETENTION_BULK});
    put_timer(
        &j, (struct timer){DUE_JOB_BULK, BULK_SHARD, 0, c.id, 0}); /* as one that has ended says of itself */
    jobs_sweep(&j);
    TEST_CHECK(command(&j, &job_bulk_step_class, &step) == OK);
    TEST_CHECK(jobs_rows(&j, TABLE_DUE) == rows && jobs_rows(&j, TABLE_BULKS) == 1);
    jobs_close(&j);
}

static void test_a_backoff_ends_whatever_the_clock_says(void)
{
    struct jobs j;
    struct job_fired fired[8];
    begin(&j);
    struct jobs_held held = jobs_in(&j, JOB_FAILED);
    TEST_CHECK(jobs_retry(&j, &j.client, &held.id, NULL) == OK);
    uint64_t queued_us = jobs_look(&j, &held.id).queued_us, at_us = j.at_us;
    jobs_pass(&j, j.most_us);
    j.at_us = JOB_TIME_MAX;
    TEST_CHECK(jobs_fire(&j, fired, 8) == 1);
    j.at_us = at_us;
    struct job job = jobs_look(&j, &held.id);
    TEST_CHECK(job.due_us == 0 && job.lane == LANE_SERVER && job.queued_us == queued_us);
    jobs_close(&j);
}

/* ---- those who have to be told ---- */

static struct uuid told(struct jobs *j)
{
    struct job_submit c = jobs_wish(j, WORK_KIND_SUCCESS_FAST);
    c.callback = span_text("https://a.example/");
    TEST_CHECK(jobs_submit(j, &c, NULL) == OK);
    TEST_CHECK(jobs_cancel(j, &j->client, &c.id, NULL) == OK);
    return c.id;
}

static uint16_t partition_of(struct jobs *j, const struct uuid *id)
{
    struct view *view = view_open_outside(j->fresh.store, 0);
    TEST_ASSERT(view != NULL);
    uint16_t partition = outbox_partition(&view->txn, id);
    view_close(view);
    return partition;
}

struct relay {
    uint16_t partition;
    bool bury; /* else all are marked */
};

static enum error relay_all(struct txn *txn, uint64_t at_us, void *context)
{
    const struct relay *relay = context;
    struct outbox_row rows[64];
    uint64_t fence = 0;
    uint32_t count = 0;
    TEST_CHECK(outbox_claim(txn, relay->partition, 1, at_us, &fence) == OK);
    TEST_CHECK(outbox_scan(txn, relay->partition, 0, rows, 64, &count) == OK);
    for (uint32_t i = 0; i < count; i++)
        TEST_CHECK((relay->bury
                        ? outbox_bury(txn, relay->partition, rows[i].seq, fence, at_us, span_text("410"))
                        : outbox_mark(txn, relay->partition, rows[i].seq, fence)) == OK);
    return OK;
}

enum { MANY = 300 };

static enum error put_many(struct txn *txn, uint64_t at_us, void *context)
{
    const struct relay *relay = context;
    struct uuid stranger = fresh_uuid();
    uint64_t seq;
    while (outbox_partition(txn, &stranger) != relay->partition)
        stranger = fresh_uuid();
    for (uint64_t i = 1; i <= MANY; i++)
        outbox_put(txn, at_us, 9999, &stranger, i, &seq);
    return OK;
}

static enum error forget_many(struct txn *txn, uint64_t at_us, void *context)
{
    const struct relay *relay = context;
    struct outbox_row rows[MANY];
    uint32_t count = 0;
    (void)at_us;
    TEST_CHECK(outbox_scan(txn, relay->partition, 0, rows, MANY, &count) == OK && count == MANY);
    for (uint32_t i = 0; i < count; i++)
        TEST_CHECK(outbox_forget(txn, relay->partition, rows[i].seq) == OK);
    return OK;
}

struct burying {
    uint16_t partition;
    uint64_t seq;
};

static enum error bury_one(struct txn *txn, uint64_t at_us, void *context)
{
    const struct burying *b = context;
    uint64_t fence = 0;
    TEST_CHECK(outbox_claim(txn, b->partition, 1, at_us, &fence) == OK);
    return outbox_bury(txn, b->partition, b->seq, fence, at_us, span_text("410"));
}

/* Whether it is told of isn't known, so it stays; and goes when that is known again. */
static void stays_while_unknown(bool bury)
{
    struct jobs j;
    struct job job;
    begin(&j);
    struct uuid id = told(&j);
    struct relay relay = {partition_of(&j, &id), bury};
    uint64_t first = jobs_look(&j, &id).outbox_first;
    uint32_t table = bury ? TABLE_DEAD : TABLE_OUTBOX;
    if (bury)
        TEST_CHECK(fresh_do(&j.fresh, j.at_us, relay_all, &relay) == OK);
    flip(&j, table, outbox_key(relay.partition, first));
    jobs_pass(&j, 31 * JOBS_DAY_US);
    jobs_sweep(&j);
    TEST_CHECK(jobs_find(&j, &id, &job) == OK);
    flip(&j, table, outbox_key(relay.partition, first));
    if (!bury)
        TEST_CHECK(fresh_do(&j.fresh, j.at_us, relay_all, &relay) == OK);
    jobs_pass(&j, 2 * JOBS_DAY_US);
    jobs_sweep(&j);
    TEST_CHECK(jobs_find(&j, &id, &job) == ERR_NOT_FOUND && jobs_rows(&j, table) == 0);
    jobs_close(&j);
}

static void test_a_job_stays_while_nobody_knows_whether_it_is_told_of(void)
{
    stays_while_unknown(false);
    stays_while_unknown(true);
}

/* Rows of others wait in front, more than are looked at at one time, while its own were given up. */
static void test_a_job_goes_whatever_waits_before_its_last_row(void)
{
    struct jobs j;
    struct job job;
    begin(&j);
    struct job_submit c = jobs_wish(&j, WORK_KIND_SUCCESS_FAST);
    c.callback = span_text("https://a.example/");
    TEST_CHECK(jobs_submit(&j, &c, NULL) == OK);
    struct relay relay = {partition_of(&j, &c.id), true};
    TEST_CHECK(fresh_do(&j.fresh, j.at_us, relay_all, &relay) == OK);
    TEST_CHECK(fresh_do(&j.fresh, j.at_us, put_many, &relay) == OK);
    uint64_t waiting = jobs_rows(&j, TABLE_OUTBOX);
    TEST_CHECK(jobs_cancel(&j, &j.client, &c.id, NULL) == OK);
    struct burying last = {relay.partition, jobs_look(&j, &c.id).outbox_last};
    TEST_CHECK(fresh_do(&j.fresh, j.at_us, bury_one, &last) == OK && jobs_rows(&j, TABLE_DEAD) == 3);
    jobs_pass(&j, 31 * JOBS_DAY_US);
    jobs_sweep(&j);
    TEST_CHECK(jobs_find(&j, &c.id, &job) == ERR_NOT_FOUND && jobs_rows(&j, TABLE_DEAD) == 0);
    TEST_CHECK(jobs_rows(&j, TABLE_OUTBOX) == waiting);
    TEST_CHECK(fresh_do(&j.fresh, j.at_us, forget_many, &relay) == OK);
    jobs_close(&j);
}

/* A key that isn't one of a row stands among them; it is nobody's. */
static void test_a_job_goes_beside_a_key_that_is_none(void)
{
    struct jobs j;
    struct job job;
    begin(&j);
    struct uuid id = told(&j);
    struct relay relay = {partition_of(&j, &id), true};
    TEST_CHECK(fresh_do(&j.fresh, j.at_us, relay_all, &relay) == OK);
    struct key key = {.size = 0};
    struct dead row = {.at_us = j.at_us, .topic = OUTBOX_JOB, .stream = fresh_uuid()};
    key_add_u16(&key, relay.partition);
    key_add_u8(&key, 1); /* behind all rows */
    put_row(&j, TABLE_DEAD, key, &row);
    jobs_pass(&j, 31 * JOBS_DAY_US);
    jobs_sweep(&j);
    TEST_CHECK(jobs_find(&j, &id, &job) == ERR_NOT_FOUND && jobs_rows(&j, TABLE_DEAD) == 1);
    take_row(&j, TABLE_DEAD, key);
    jobs_close(&j);
}

/* ---- pauses ---- */

static void test_what_does_not_belong_to_a_pause_is_passed_by_when_it_ends(void)
{
    struct jobs j;
    struct answer answer;
    struct job_unparked unparked;
    begin(&j);
    struct uuid queued = jobs_new(&j), paused = jobs_new(&j);
    struct job one = jobs_look(&j, &queued), other = jobs_look(&j, &paused);
    struct job_pause c = {.scope = PAUSE_WORK,
                          .name = one.work,
                          .until_us = j.at_us + JOBS_SECOND_US,
                          .label = span_text("kind"),
                          .who = span_text("operator")};
    TEST_CHECK(command(&j, &job_pause_class, &c) == OK);
    struct job_claim claim = jobs_claim_of(&j, 1);
    TEST_CHECK(command(&j, &job_claim_class, &claim) == OK); /* both are set aside */
    TEST_CHECK(jobs_look(&j, &queued).lane == LANE_PAUSED_WORK);
    struct uuid free = {{0}};
    struct job_submit user = jobs_wish_user(&j, "x.free");
    TEST_CHECK(jobs_submit(&j, &user, NULL) == OK);
    free = user.id;
    one.lane = other.lane = LANE_PAUSED_WORK;
    one.place = 1000;
    other.place = 0; /* before all others */
    struct job_queue wrong_lane = {.id = free, .client = one.client, .work = one.work},
                     wrong_key = {.id = paused, .client = one.client, .work = one.work};
    put_row(&j, TABLE_JOB_QUEUE, job_queue_key(&one), &wrong_lane);
    put_row(&j, TABLE_JOB_QUEUE, job_queue_key(&other), &wrong_key);
    jobs_pass(&j, JOBS_SECOND_US);
    struct job_unpark most = {.wall_us = j.at_us, .most = 0};
    TEST_CHECK(command(&j, &job_unpark_class, &most) == ERR_INVALID);
    most.most = 1;
    TEST_CHECK(batch_one(j.fresh.store, &job_unpark_class, j.at_us, &most, &answer) == OK);
    memcpy(&unparked, answer.bytes, sizeof(unparked));
    TEST_CHECK(unparked.came == 1 && unparked.damaged == 1);
    most.most = 100;
    TEST_CHECK(batch_one(j.fresh.store, &job_unpark_class, j.at_us, &most, &answer) == OK);
    memcpy(&unparked, answer.bytes, sizeof(unparked));
    TEST_CHECK_(unparked.came == 1, "%u came", unparked.came);
    TEST_CHECK(jobs_look(&j, &paused).lane == LANE_SERVER && jobs_look(&j, &free).lane == LANE_OUTSIDE);
    take_row(&j, TABLE_JOB_QUEUE, job_queue_key(&one));
    take_row(&j, TABLE_JOB_QUEUE, job_queue_key(&other));
    jobs_close(&j);
}

/* ---- schedules ---- */

static void join(struct jobs *j)
{
    struct client_create c = {.id = j->client, .from = span_text("192.0.2.1")};
    TEST_CHECK(command(j, &client_create_class, &c) == OK);
}

static struct uuid schedule(struct jobs *j, uint8_t overlap)
{
    struct schedule_put c = {.id = fresh_uuid(),
                             .client = j->client,
                             .kind = WORK_KIND_SUCCESS_FAST,
                             .overlap = overlap,
                             .grace_us = 30 * JOBS_SECOND_US,
                             .name = span_text("each minute"),
                             .cron = span_text("* * * * *")};
    TEST_CHECK(command(j, &schedule_put_class, &c) == OK);
    return c.id;
}

static struct key schedule_key(const struct uuid *id)
{
    struct key key = {.size = 0};
    key_add_u8(&key, 0);
    key_add_uuid(&key, id);
    return key;
}

static struct schedule schedule_now(struct jobs *j, const struct uuid *id)
{
    struct schedule s = {.next_us = 0};
    struct view *view = view_open_outside(j->fresh.store, 0);
    TEST_ASSERT(view != NULL);
    TEST_CHECK(schedule_read(&view->txn, id, &s) == OK);
    view_close(view);
    s.name = s.kind_name = s.payload = s.history = span_of(NULL, 0);
    s.cron = span_text("* * * * *");
    return s;
}

/* What is due now becomes a job of this id. False: nothing is due. */
static bool fire_schedule(struct jobs *j, const struct uuid *job, struct schedule_fired *ret)
{
    struct answer answer;
    struct schedule_fire c = {.job = *job,
                              .wall_us = j->at_us,
                              .kept_us = j->kept_us,
                              .runtime_max_ms = 120000,
                              .payload_max = 262144,
                              .queue_max = j->queue_max};
    TEST_CHECK(batch_one(j->fresh.store, &schedule_fire_class, j->at_us, &c, &answer) == OK);
    if (answer.size == sizeof(*ret))
        memcpy(ret, answer.bytes, sizeof(*ret));
    return answer.size == sizeof(*ret);
}

/* A minute later. */
static struct schedule_fired fire_next(struct jobs *j)
{
    struct schedule_fired fired = {.outcome = OUTCOME_COUNT};
    struct uuid job = fresh_uuid();
    jobs_pass(j, 60 * JOBS_SECOND_US);
    TEST_CHECK(fire_schedule(j, &job, &fired));
    return fired;
}

static const struct uuid nobody = {{0}};

/* One that can't be read overlaps with nothing, and one that can't be cancelled goes on. */
static void test_a_schedule_goes_on_beside_a_job_that_is_damaged(void)
{
    struct jobs j;
    begin(&j);
    join(&j);
    schedule(&j, OVERLAP_CANCEL);
    struct schedule_fired first = fire_next(&j);
    flip(&j, TABLE_JOBS, key_of_uuid(&first.job));
    struct schedule_fired second = fire_next(&j);
    TEST_CHECK(second.outcome == OUTCOME_SUBMITTED && uuid_equal(&second.canceled, &nobody));
    flip(&j, TABLE_JOBS, key_of_uuid(&first.job));
    struct key stray = know_more(&j, &second.job, 1);
    struct schedule_fired third = fire_next(&j);
    TEST_CHECK(third.outcome == OUTCOME_SUBMITTED && uuid_equal(&third.canceled, &nobody));
    TEST_CHECK(jobs_look(&j, &second.job).state == JOB_QUEUED);
    take_row(&j, TABLE_EVENTS, stray);
    struct schedule_fired fourth = fire_next(&j);
    TEST_CHECK(uuid_equal(&fourth.canceled, &third.job) && jobs_look(&j, &third.job).state == JOB_CANCELED);
    jobs_close(&j);
}

struct crowd {
    uint16_t partition;
    int64_t delta;
    struct uuid client;
};

/* As if a webhook wanted all events, and one partition of the outbox were full. */
static enum error crowd(struct txn *txn, uint64_t at_us, void *context)
{
    const struct crowd *c = context;
    struct key label = {.size = 0};
    (void)at_us;
    key_add_u16(&label, c->partition);
    counter_add(txn, COUNTER_OUTBOX, key_span(&label), c->delta * OUTBOX_HARD);
    counter_add(txn, COUNTER_WEBHOOKS, span_of(&c->client, sizeof(c->client)), c->delta);
    return OK;
}

static void test_a_job_of_which_nobody_can_be_told_is_not_cancelled_by_its_schedule(void)
{
    struct jobs j;
    begin(&j);
    join(&j);
    schedule(&j, OVERLAP_CANCEL);
    struct schedule_fired first = fire_next(&j), second = {.outcome = OUTCOME_COUNT};
    struct crowd c = {partition_of(&j, &first.job), 1, j.client};
    TEST_CHECK(fresh_do(&j.fresh, j.at_us, crowd, &c) == OK);
    struct uuid elsewhere = fresh_uuid();
    while (partition_of(&j, &elsewhere) == c.partition)
        elsewhere = fresh_uuid();
    jobs_pass(&j, 60 * JOBS_SECOND_US);
    TEST_CHECK(fire_schedule(&j, &elsewhere, &second) && second.outcome == OUTCOME_SUBMITTED);
    TEST_CHECK(uuid_equal(&second.canceled, &nobody) && jobs_look(&j, &first.job).state == JOB_QUEUED);
    c.delta = -1;
    TEST_CHECK(fresh_do(&j.fresh, j.at_us, crowd, &c) == OK);
    jobs_close(&j);
}

/* One whose cron expression can't be read any more comes to its time, and then never again. */
static void test_a_schedule_without_a_sound_expression_ends(void)
{
    static const uint8_t policies[] = {MISSED_SKIP, MISSED_RUN_ONCE};
    for (size_t i = 0; i < 2; i++) {
        struct jobs j;
        struct schedule_fired fired;
        begin(&j);
        join(&j);
        struct uuid id = schedule(&j, OVERLAP_ALLOW), job = fresh_uuid();
        struct schedule s = schedule_now(&j, &id);
        s.cron = span_text("whenever");
        s.missed = policies[i];
        put_row(&j, TABLE_SCHEDULES, schedule_key(&id), &s);
        jobs_pass(&j, 3600 * JOBS_SECOND_US);
        TEST_CHECK(fire_schedule(&j, &job, &fired));
        TEST_CHECK(fired.outcome == (i ? OUTCOME_SUBMITTED : OUTCOME_MISSED));
        TEST_CHECK(schedule_now(&j, &id).next_us == 0 && jobs_rows(&j, TABLE_DUE) == 1);
        TEST_CHECK(!fire_schedule(&j, &job, &fired));
        jobs_close(&j);
    }
}

static void test_a_timer_that_is_not_its_schedules_goes(void)
{
    struct jobs j;
    struct schedule_fired fired;
    begin(&j);
    join(&j);
    struct uuid id = schedule(&j, OVERLAP_ALLOW), job = fresh_uuid();
    uint64_t rows = jobs_rows(&j, TABLE_DUE);
    put_timer(&j, (struct timer){DUE_SCHEDULE, SCHEDULE_SHARD, j.at_us, id, 0});
    TEST_CHECK(jobs_rows(&j, TABLE_DUE) == rows + 1);
    TEST_CHECK(!fire_schedule(&j, &job, &fired) && jobs_rows(&j, TABLE_DUE) == rows);
    TEST_CHECK(schedule_now(&j, &id).submitted == 0);
    jobs_close(&j);
}

/* It may go, whether or not it still stands among its client's. */
static void test_a_schedule_that_stands_in_no_list_may_go(void)
{
    struct jobs j;
    begin(&j);
    join(&j);
    struct schedule_remove c = {.id = schedule(&j, OVERLAP_ALLOW), .client = j.client};
    struct key key = {.size = 0};
    key_add_u8(&key, 1);
    key_add_uuid(&key, &j.client);
    key_add_uuid(&key, &c.id);
    take_row(&j, TABLE_SCHEDULES, key);
    TEST_CHECK(command(&j, &schedule_remove_class, &c) == OK && jobs_rows(&j, TABLE_SCHEDULES) == 0);
    jobs_close(&j);
}

static void test_a_list_of_schedules_passes_by_a_key_that_is_none(void)
{
    struct jobs j;
    struct uuid ids[SCHEDULES_MAX];
    uint32_t count = 0;
    begin(&j);
    join(&j);
    struct uuid id = schedule(&j, OVERLAP_ALLOW);
    struct key key = {.size = 0};
    key_add_u8(&key, 1);
    key_add_uuid(&key, &j.client);
    key_add_u8(&key, 0);
    put_row(&j, TABLE_SCHEDULES, key, &(struct schedule){.id = fresh_uuid(), .client = j.client});
    struct view *view = view_open_outside(j.fresh.store, 0);
    TEST_ASSERT(view != NULL);
    TEST_CHECK(schedule_list(&view->txn, &j.client, NULL, ids, SCHEDULES_MAX, &count) == OK);
    TEST_CHECK(count == 1 && uuid_equal(&ids[0], &id));
    view_close(view);
    take_row(&j, TABLE_SCHEDULES, key);
    jobs_close(&j);
}

/* ---- attempts ---- */

static void test_no_attempt_comes_behind_the_last_number(void)
{
    struct jobs j;
    begin(&j);
    j.retry_max = UINT16_MAX;
    struct jobs_held held = jobs_in(&j, JOB_FAILED);
    const struct job sound = jobs_look(&j, &held.id);
    struct job job = sound;
    job.attempt = UINT16_MAX;
    put_row(&j, TABLE_JOBS, key_of_uuid(&held.id), &job);
    TEST_CHECK(jobs_retry(&j, &j.client, &held.id, NULL) == ERR_CONFLICT);
    struct job_bulk c = {
        .by_steady = 1, .id = fresh_uuid(), .action = BULK_RETRY, .states = UINT8_MAX, .type = BULK_ANY_TYPE};
    TEST_CHECK(command(&j, &job_bulk_class, &c) == OK);
    struct job_bulk_step step = {.by_steady = 1,
                                 .wall_us = j.at_us,
                                 .steady_us = j.steady_us,
                                 .retry_max = UINT16_MAX,
                                 .queue_max = j.queue_max};
    TEST_CHECK(command(&j, &job_bulk_step_class, &step) == OK && jobs_look(&j, &held.id).state == JOB_FAILED);
    c.id = fresh_uuid();
    step.retry_max = 3;
    TEST_CHECK(command(&j, &job_bulk_class, &c) == OK && command(&j, &job_bulk_step_class, &step) == OK);
    TEST_CHECK(jobs_look(&j, &held.id).state == JOB_FAILED);
    put_row(&j, TABLE_JOBS, key_of_uuid(&held.id), &sound);
    TEST_CHECK(jobs_retry(&j, &j.client, &held.id, NULL) == OK);
    jobs_close(&j);
}

/* ---- turns ---- */

static enum error set_fair(struct jobs *j, uint8_t on, struct job_fairness_set *ret)
{
    struct answer answer;
    struct job_fairness c = {.on = on, .most = 100};
    enum error e = batch_one(j->fresh.store, &job_fairness_class, j->at_us, &c, &answer);
    if (!e)
        memcpy(ret, answer.bytes, sizeof(*ret));
    return e;
}

static void test_rows_of_jobs_that_stand_elsewhere_get_no_turn(void)
{
    struct jobs j;
    struct job_fairness_set set;
    begin(&j);
    struct uuid id = jobs_new(&j);
    struct job_submit user = jobs_wish_user(&j, "x.free");
    TEST_CHECK(jobs_submit(&j, &user, NULL) == OK);
    struct job job = jobs_look(&j, &id);
    struct job_queue rows[] = {{.id = user.id}, {.id = id}};
    struct key keys[2];
    for (size_t i = 0; i < 2; i++) {
        job.place = i ? 0 : 1000; /* behind its own, and before */
        keys[i] = job_queue_key(&job);
        put_row(&j, TABLE_JOB_QUEUE, keys[i], &rows[i]);
    }
    TEST_CHECK(set_fair(&j, 1, &set) == OK && set.sorted == 1 && set.damaged == 2);
    for (size_t i = 0; i < 2; i++)
        take_row(&j, TABLE_JOB_QUEUE, keys[i]);
    TEST_CHECK(jobs_look(&j, &id).lane == LANE_FAIR && jobs_look(&j, &user.id).lane == LANE_OUTSIDE);
    jobs_close(&j);
}

/* So many rows that can't be read are passed by in one step, and the next one goes on behind them. */
static void test_turns_are_given_behind_very_many_damaged_rows(void)
{
    struct jobs j;
    struct job_fairness_set set;
    begin(&j);
    struct uuid id = jobs_new(&j);
    struct job job = jobs_look(&j, &id);
    const uint64_t own = job.place;
    for (job.place = own + 1; job.place <= own + FAIRNESS_LOOK_MAX; job.place++)
        fresh_crumb(&j.fresh, TABLE_JOB_QUEUE, job_queue_key(&job));
    TEST_CHECK(set_fair(&j, 1, &set) == OK && set.sorted == 1 && set.damaged == FAIRNESS_LOOK_MAX - 1);
    TEST_CHECK(set_fair(&j, 1, &set) == OK && set.sorted == 0 && set.damaged == 1);
    for (job.place = own + 1; job.place <= own + FAIRNESS_LOOK_MAX; job.place++)
        take_row(&j, TABLE_JOB_QUEUE, job_queue_key(&job));
    jobs_close(&j);
}

static enum error fairness_asked(struct jobs *j, bool *ret_any)
{
    struct view *view = view_open_outside(j->fresh.store, 0);
    TEST_ASSERT(view != NULL);
    enum error e = fairness_pending(&view->txn, true, ret_any);
    view_close(view);
    return e;
}

/* A row that is damaged is written anew; one of a version that nobody knows yet is left as it is. */
static void test_turns_whose_row_cannot_be_read(void)
{
    struct jobs j;
    struct job_fairness_set set;
    bool any = false;
    begin(&j);
    TEST_CHECK(set_fair(&j, 1, &set) == OK);
    fresh_flip(&j.fresh, TABLE_FAIRNESS, fairness_key());
    TEST_CHECK(fairness_asked(&j, &any) == OK && any);
    fresh_newer(&j.fresh, TABLE_FAIRNESS, fairness_key());
    TEST_CHECK(fairness_asked(&j, &any) == ERR_NEWER && !any);
    take_row(&j, TABLE_FAIRNESS, fairness_key());
    jobs_close(&j);
}

/* ---- nobody can be told now ---- */

static void test_what_nobody_can_be_told_of_waits(void)
{
    struct jobs j;
    struct job_fired fired;
    begin(&j);
    struct jobs_held running = jobs_in(&j, JOB_RUNNING);
    struct crowd c = {partition_of(&j, &running.id), 1, j.client};
    TEST_CHECK(fresh_do(&j.fresh, j.at_us, crowd, &c) == OK);
    struct job_bulk bulk = {.by_steady = 1,
                            .id = fresh_uuid(),
                            .action = BULK_CANCEL,
                            .states = UINT8_MAX,
                            .type = BULK_ANY_TYPE};
    struct job_bulk_step step = {
        .by_steady = 1, .wall_us = j.at_us, .steady_us = j.steady_us, .queue_max = j.queue_max};
    TEST_CHECK(command(&j, &job_bulk_class, &bulk) == OK && command(&j, &job_bulk_step_class, &step) == OK);
    j.start++;
    TEST_CHECK(jobs_reap(&j, &running.id, &fired) == ERR_LIMIT);
    TEST_CHECK(jobs_look(&j, &running.id).state == JOB_RUNNING);
    c.delta = -1;
    TEST_CHECK(fresh_do(&j.fresh, j.at_us, crowd, &c) == OK);
    TEST_CHECK(jobs_reap(&j, &running.id, &fired) == OK && fired.event == JOB_FAIL);
    jobs_close(&j);
}

/* ---- records of another kind ---- */

static void test_a_bulk_action_passes_a_row_that_cannot_be_read(void)
{
    for (int own = 0; own < 2; own++) {
        struct jobs j;
        begin(&j);
        struct uuid id = jobs_new(&j), last = {{0xff}};
        struct job_bulk c = {.by_steady = 1,
                             .id = fresh_uuid(),
                             .owner = own ? j.client : nobody,
                             .client = own ? j.client : nobody,
                             .action = BULK_CANCEL,
                             .states = UINT8_MAX,
                             .type = BULK_ANY_TYPE};
        struct key key = own ? client_job_key(&j.client, 1000) : key_of_uuid(&last);
        uint32_t table = own ? TABLE_CLIENT_JOBS : TABLE_JOBS;
        struct job_bulk_step step = {
            .by_steady = 1, .wall_us = j.at_us, .steady_us = j.steady_us, .kept_us = j.kept_us};
        TEST_CHECK(command(&j, &job_bulk_class, &c) == OK);
        fresh_crumb(&j.fresh, table, key);
        TEST_CHECK(command(&j, &job_bulk_step_class, &step) == OK);
        TEST_CHECK(jobs_look(&j, &id).state == JOB_CANCELED);
        take_row(&j, table, key);
        TEST_CHECK(fresh_counter(&j.fresh, COUNTER_BULKS, span_of(&c.owner, sizeof(c.owner))) == 0);
        jobs_close(&j);
    }
}

/* A row among a client's jobs that leads to somebody else's: that one isn't touched. */
static void test_a_bulk_action_leaves_anothers_job_alone(void)
{
    struct jobs j;
    begin(&j);
    struct job_submit theirs = jobs_wish(&j, WORK_KIND_SUCCESS_FAST);
    theirs.client = j.other;
    TEST_CHECK(jobs_submit(&j, &theirs, NULL) == OK);
    struct uuid own = jobs_new(&j);
    struct key key = client_job_key(&j.client, 1000);
    put_row(&j, TABLE_CLIENT_JOBS, key, &(struct client_job){.id = theirs.id});
    struct job_bulk c = {.by_steady = 1,
                         .id = fresh_uuid(),
                         .owner = j.client,
                         .client = j.client,
                         .action = BULK_CANCEL,
                         .states = UINT8_MAX,
                         .type = BULK_ANY_TYPE};
    struct job_bulk_step step = {
        .by_steady = 1, .wall_us = j.at_us, .steady_us = j.steady_us, .kept_us = j.kept_us};
    TEST_CHECK(command(&j, &job_bulk_class, &c) == OK && command(&j, &job_bulk_step_class, &step) == OK);
    TEST_CHECK(jobs_look(&j, &own).state == JOB_CANCELED && jobs_look(&j, &theirs.id).state == JOB_QUEUED);
    take_row(&j, TABLE_CLIENT_JOBS, key);
    jobs_close(&j);
}

static void test_a_job_stays_beside_an_outbox_row_of_another_kind(void)
{
    struct jobs j;
    struct job job;
    begin(&j);
    struct uuid id = told(&j);
    struct relay relay = {partition_of(&j, &id), false};
    struct key first = outbox_key(relay.partition, jobs_look(&j, &id).outbox_first);
    TEST_CHECK(fresh_do(&j.fresh, j.at_us, relay_all, &relay) == OK);
    fresh_crumb(&j.fresh, TABLE_OUTBOX, first);
    jobs_pass(&j, 31 * JOBS_DAY_US);
    jobs_sweep(&j);
    TEST_CHECK(jobs_find(&j, &id, &job) == OK);
    take_row(&j, TABLE_OUTBOX, first);
    jobs_pass(&j, 2 * JOBS_DAY_US);
    jobs_sweep(&j);
    TEST_CHECK(jobs_find(&j, &id, &job) == ERR_NOT_FOUND);
    jobs_close(&j);
}

TEST_LIST
= {
    {"damage: a count that can't be read admits nobody", test_a_count_that_cannot_be_read_admits_nobody},
    {"damage: numbers never begin anew", test_numbers_never_begin_anew},
    {"damage: fences never begin anew (J4)", test_fences_never_begin_anew},
    {"damage: when nobody knows who is to be told a job stays as it is",
     test_when_nobody_knows_who_is_to_be_told_a_job_stays_as_it_is},
    {"damage: the first step that the log contradicts is refused",
     test_the_first_step_that_the_log_contradicts_is_refused},
    {"damage: a second step that the log contradicts is left out",
     test_a_second_step_that_the_log_contradicts_is_left_out},
    {"damage: a job whose log is there before it isn't made",
     test_a_job_whose_log_is_there_before_it_is_not_made},
    {"damage: an event with too much to say says nothing", test_an_event_with_too_much_to_say_says_nothing},
    {"damage: a report that can't be read repeats nothing",
     test_a_report_that_cannot_be_read_repeats_nothing},
    {"damage: a key whose job has gone is damaged", test_a_key_whose_job_has_gone_is_damaged},
    {"damage: a claim passes by what is no one's place", test_a_claim_passes_by_what_is_no_ones_place},
    {"damage: a claim gives up behind very many damaged ones",
     test_a_claim_gives_up_behind_very_many_damaged_ones},
    {"damage: nobody is before one that has no place", test_nobody_is_before_one_that_has_no_place},
    {"damage: a place goes to the first that can be read", test_a_place_goes_to_the_first_that_can_be_read},
    {"damage: a limit that can't be counted holds all back",
     test_a_limit_that_cannot_be_counted_holds_all_back},
    {"damage: a job that lacks an event is marked once", test_a_job_that_lacks_an_event_is_marked_once},
    {"damage: a final job lacks nothing", test_a_final_job_lacks_nothing},
    {"damage: a key that says no id is damaged", test_a_key_that_says_no_id_is_damaged},
    {"damage: a full ledger refuses keys alone", test_a_full_ledger_refuses_keys_alone},
    {"damage: a kind with a long name has one id", test_a_kind_with_a_long_name_has_one_id},
    {"damage: a claim by the order of creation passes by what is none",
     test_a_claim_by_the_order_of_creation_passes_by_what_is_none},
    {"damage: a promise that can't be counted is kept", test_a_promise_that_cannot_be_counted_is_kept},
    {"damage: a place wakes those outside for eight kinds", test_a_place_wakes_those_outside_for_eight_kinds},
    {"damage: a place is looked for so far", test_a_place_is_looked_for_so_far},
    {"damage: a bulk action goes by its own times alone", test_a_bulk_action_goes_by_its_own_times_alone},
    {"damage: a job goes whatever waits before its last row",
     test_a_job_goes_whatever_waits_before_its_last_row},
    {"damage: a timer of a final job goes", test_a_timer_of_a_final_job_goes},
    {"damage: a job goes by its own time alone", test_a_job_goes_by_its_own_time_alone},
    {"damage: a backoff ends whatever the clock says", test_a_backoff_ends_whatever_the_clock_says},
    {"damage: a job stays while nobody knows whether it is told of",
     test_a_job_stays_while_nobody_knows_whether_it_is_told_of},
    {"damage: a job goes beside a key that is none", test_a_job_goes_beside_a_key_that_is_none},
    {"damage: what doesn't belong to a pause is passed by when it ends",
     test_what_does_not_belong_to_a_pause_is_passed_by_when_it_ends},
    {"damage: a schedule goes on beside a job that is damaged",
     test_a_schedule_goes_on_beside_a_job_that_is_damaged},
    {"damage: a job of which nobody can be told isn't cancelled by its schedule",
     test_a_job_of_which_nobody_can_be_told_is_not_cancelled_by_its_schedule},
    {"damage: a schedule without a sound expression ends", test_a_schedule_without_a_sound_expression_ends},
    {"damage: a timer that isn't its schedule's goes", test_a_timer_that_is_not_its_schedules_goes},
    {"damage: a schedule that stands in no list may go", test_a_schedule_that_stands_in_no_list_may_go},
    {"damage: a list of schedules passes by a key that is none",
     test_a_list_of_schedules_passes_by_a_key_that_is_none},
    {"damage: no attempt comes behind the last number", test_no_attempt_comes_behind_the_last_number},
    {"damage: turns are given behind very many damaged rows",
     test_turns_are_given_behind_very_many_damaged_rows},
    {"damage: turns whose row can't be read", test_turns_whose_row_cannot_be_read},
    {"damage: what nobody can be told of waits", test_what_nobody_can_be_told_of_waits},
    {"damage: a bulk action passes a row that can't be read",
     test_a_bulk_action_passes_a_row_that_cannot_be_read},
    {"damage: a job stays beside an outbox row of another kind",
     test_a_job_stays_beside_an_outbox_row_of_another_kind},
    {"damage: how many are before one while clients take turns",
     test_how_many_are_before_one_while_clients_take_turns},
    {"damage: a claim of very many kinds that can't be read",
     test_a_claim_of_very_many_kinds_that_cannot_be_read},
    {"damage: a bulk action leaves another's job alone", test_a_bulk_action_leaves_anothers_job_alone},
    {"damage: rows of jobs that stand elsewhere get no turn",
     test_rows_of_jobs_that_stand_elsewhere_get_no_turn},
    {NULL, NULL},
};
