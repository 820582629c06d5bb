/* Bulk actions: what matches is changed, a bounded number at a time, from where it was, until its end or an abort. */
#include "acutest.h"

#include "store/client.h"
#include "store/counter.h"
#include "store/job_bulk.h"
#include "store/job_lease.h"
#include "store/job_queue.h"
#include "store/job_submit.h"
#include "store/retention.h"
#include "store/steady.h"
#include "tests/store/fresh.h"
#include "tests/support/spoil.h"

#define AT_US     UINT64_C(1700000000000000)
#define SECOND_US UINT64_C(1000000)

static const struct uuid nobody = {{0}};
static uint64_t now_us;  /* of steps, by steady time */
static uint64_t back_us; /* by which the wall clock is behind that */

static struct uuid join(struct fresh *fresh)
{
    struct client_create c = {.id = fresh_uuid(), .from = span_text("192.0.2.1")};
    TEST_ASSERT(batch_one(fresh->store, &client_create_class, AT_US, &c, NULL) == OK);
    return c.id;
}

static struct uuid submit_at(struct fresh *fresh, uint64_t at_us, const struct uuid *client, uint8_t kind)
{
    struct job_submit c = {.id = fresh_uuid(),
                           .client = *client,
                           .type = JOB_EXECUTE,
                           .kind = kind,
                           .runtime_max_ms = 120000,
                           .payload_max = 262144,
                           .queue_max = 100000};
    TEST_ASSERT(batch_one(fresh->store, &job_submit_class, at_us, &c, NULL) == OK);
    return c.id;
}

static struct uuid submit(struct fresh *fresh, const struct uuid *client)
{
    return submit_at(fresh, AT_US, client, WORK_KIND_SUCCESS_FAST);
}

/* The next one is claimed, runs, and fails for good or for a retry. */
static void fail_next(struct fresh *fresh)
{
    struct answer answer;
    struct job_claimed claimed;
    struct job_claim c = {.lane = LANE_SERVER,
                          .most = 1,
                          .running = 1,
                          .owner = 1,
                          .steady_us = AT_US,
                          .lease_us = SECOND_US,
                          .worker = span_text("worker:0")};
    TEST_ASSERT(batch_one(fresh->store, &job_claim_class, AT_US, &c, &answer) == OK);
    memcpy(&claimed, answer.bytes, sizeof(claimed));
    struct job_finish f = {.id = claimed.id,
                           .fence = claimed.fence,
                           .event = JOB_FAIL,
                           .failure = JOB_SIMULATED_FAILURE,
                           .steady_us = AT_US,
                           .kept_us = SECOND_US,
                           .retry_max = 3};
    TEST_ASSERT(batch_one(fresh->store, &job_finish_class, AT_US, &f, NULL) == OK);
}

static struct job_bulk bulk_of(const struct uuid *client, uint8_t action, uint8_t states)
{
    return (struct job_bulk){.by_steady = 1,
                             .id = fresh_uuid(),
                             .owner = *client,
                             .client = *client,
                             .action = action,
                             .states = states,
                             .type = BULK_ANY_TYPE,
                             .who = span_text("somebody")};
}

static enum error start(struct fresh *fresh, const struct job_bulk *c)
{
    now_us = AT_US + SECOND_US;
    return batch_one(fresh->store, &job_bulk_class, now_us, c, NULL);
}

/* One step; how many were changed. */
static uint32_t step_with(struct fresh *fresh, uint32_t queue_max)
{
    struct answer answer;
    struct job_bulk_step c = {.by_steady = 1,
                              .wall_us = now_us - back_us,
                              .steady_us = now_us,
                              .kept_us = SECOND_US,
                              .retry_max = 3,
                              .queue_max = queue_max,
                              .base_us = SECOND_US,
                              .most_us = SECOND_US};
    TEST_ASSERT(batch_one(fresh->store, &job_bulk_step_class, c.wall_us, &c, &answer) == OK);
    TEST_CHECK(answer.size % sizeof(struct bulk_changed) == 0);
    return answer.size / (uint32_t)sizeof(struct bulk_changed);
}

static uint32_t step(struct fresh *fresh)
{
    uint32_t changed = step_with(fresh, 100000);
    now_us += BULK_STEP_US;
    return changed;
}

static struct bulk bulk_now(struct fresh *fresh, const struct uuid *id)
{
    struct bulk bulk = {.state = 99};
    struct view *view = view_open_outside(fresh->store, 0);
    TEST_CHECK(bulk_read(&view->txn, id, &bulk) == OK);
    view_close(view);
    return bulk;
}

/* Without its texts. */
static struct job job_of(struct fresh *fresh, const struct uuid *id)
{
    struct job job = {.state = JOB_STATE_COUNT};
    struct view *view = view_open_outside(fresh->store, 0);
    TEST_CHECK(job_read(&view->txn, id, &job) == OK);
    view_close(view);
    job.worker = job.stage = span_of(NULL, 0);
    return job;
}

static uint8_t state_of(struct fresh *fresh, const struct uuid *id)
{
    return job_of(fresh, id).state;
}

/* As a program of version 1 encoded it: without the last field, which is by_steady. */
static enum error of_version_1(struct fresh *fresh, const struct command_class *class, uint64_t at_us,
                               const void *command)
{
    uint8_t bytes[COMMAND_SIZE_MAX];
    size_t size = record_encode(class->record, command, bytes, sizeof(bytes));
    struct batch_item item = {.class = class, .at_us = at_us, .bytes = span_of(bytes, size - 1)};
    TEST_ASSERT(size > 1 && batch_run(fresh->store, &item, 1) == OK);
    return item.answer.error;
}

static void step_of_version_1(struct fresh *fresh, uint64_t wall_us, uint64_t steady_us)
{
    struct job_bulk_step c = {.wall_us = wall_us,
                              .steady_us = steady_us,
                              .kept_us = SECOND_US,
                              .retry_max = 3,
                              .queue_max = 100000};
    TEST_CHECK(of_version_1(fresh, &job_bulk_step_class, wall_us, &c) == OK);
}

#define QUEUED_ONES (1u << JOB_QUEUED)
#define FAILED_ONES (1u << JOB_FAILED)
#define ALL_STATES  ((1u << JOB_STATE_COUNT) - 1)

static void test_bulk_cancels_a_clients_own_page_by_page_across_a_restart(void)
{
    enum { JOBS = 100 };
    struct fresh fresh;
    struct uuid mine[JOBS];
    fresh_open(&fresh);
    struct uuid client = join(&fresh), other = join(&fresh), foreign = submit(&fresh, &other);
    for (int i = 0; i < JOBS; i++)
        mine[i] = submit(&fresh, &client);
    struct job_bulk c = bulk_of(&client, BULK_CANCEL, ALL_STATES);
    TEST_CHECK(start(&fresh, &c) == OK);
    TEST_CHECK(start(&fresh, &c) == ERR_EXISTS);
    TEST_CHECK(step(&fresh) == BULK_CHANGE_MAX);
    TEST_CHECK(state_of(&fresh, &mine[BULK_CHANGE_MAX - 1]) == JOB_CANCELED);
    TEST_CHECK(state_of(&fresh, &mine[BULK_CHANGE_MAX]) == JOB_QUEUED);
    struct uuid later = submit(&fresh, &client);
    fresh_reopen(&fresh);
    uint32_t changed = BULK_CHANGE_MAX;
    for (int i = 0; i < 10 && bulk_now(&fresh, &c.id).state == BULK_RUNNING; i++)
        changed += step(&fresh);
    struct bulk bulk = bulk_now(&fresh, &c.id);
    TEST_CHECK(changed == JOBS && bulk.state == BULK_DONE && bulk.finished_us > 0);
    TEST_CHECK(bulk.matched == JOBS && bulk.changed == JOBS && bulk.left == 0);
    for (int i = 0; i < JOBS; i++)
        TEST_CHECK(state_of(&fresh, &mine[i]) == JOB_CANCELED);
    TEST_CHECK(state_of(&fresh, &foreign) == JOB_QUEUED);
    TEST_CHECK(state_of(&fresh, &later) == JOB_QUEUED); /* it came after it began */
    TEST_CHECK(step(&fresh) == 0);
    fresh_close(&fresh);
}

/* A journal of version 1: what was due was so by the wall clock, and does what it did, whatever steady time said. */
static void test_bulk_of_version_1_goes_by_the_wall_clock(void)
{
    enum { JOBS = BULK_CHANGE_MAX + 8 };
    const uint64_t ahead_us = 1000 * SECOND_US, later_us = AT_US + BULK_STEP_US;
    struct fresh fresh;
    fresh_open(&fresh);
    struct uuid client = join(&fresh), other = join(&fresh), theirs = submit(&fresh, &other);
    for (int i = 0; i < JOBS; i++)
        submit(&fresh, &client);
    struct job_bulk first = bulk_of(&client, BULK_CANCEL, QUEUED_ONES),
                    second = bulk_of(&other, BULK_CANCEL, QUEUED_ONES);
    TEST_CHECK(of_version_1(&fresh, &job_bulk_class, AT_US, &first) == OK);
    TEST_CHECK(bulk_now(&fresh, &first.id).due_us == AT_US);
    step_of_version_1(&fresh, AT_US - 1, AT_US + ahead_us); /* not yet */
    TEST_CHECK(bulk_now(&fresh, &first.id).changed == 0);
    step_of_version_1(&fresh, AT_US, AT_US - ahead_us);
    TEST_CHECK(bulk_now(&fresh, &first.id).changed == BULK_CHANGE_MAX);
    TEST_CHECK(bulk_now(&fresh, &first.id).due_us == later_us);
    TEST_CHECK(of_version_1(&fresh, &job_bulk_class, later_us + 1, &second) == OK);
    step_of_version_1(&fresh, later_us - 1, AT_US + ahead_us);
    TEST_CHECK(bulk_now(&fresh, &first.id).changed == BULK_CHANGE_MAX);
    step_of_version_1(&fresh, later_us + 1, AT_US + ahead_us); /* who has waited for longer comes first */
    TEST_CHECK(bulk_now(&fresh, &first.id).state == BULK_DONE && state_of(&fresh, &theirs) == JOB_QUEUED);
    step_of_version_1(&fresh, later_us + 1, 1);
    TEST_CHECK(bulk_now(&fresh, &first.id).changed == JOBS && state_of(&fresh, &theirs) == JOB_CANCELED);
    fresh_close(&fresh);
}

static void test_bulk_of_an_operator_goes_by_its_filter(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    struct uuid one = join(&fresh), two = join(&fresh);
    struct uuid slow = submit_at(&fresh, AT_US, &one, WORK_KIND_SUCCESS_SLOW), fast = submit(&fresh, &two);
    struct uuid early = submit_at(&fresh, AT_US + SECOND_US, &two, WORK_KIND_SUCCESS_SLOW);
    struct uuid late = submit_at(&fresh, AT_US + 2 * SECOND_US, &one, WORK_KIND_SUCCESS_SLOW);
    struct job_bulk c = bulk_of(&nobody, BULK_CANCEL, QUEUED_ONES);
    c.work = job_work_id(fresh.store, WORK_KIND_SUCCESS_SLOW, span_text(""));
    c.from_us = AT_US + SECOND_US;
    c.until_us = AT_US + 2 * SECOND_US;
    TEST_CHECK(start(&fresh, &c) == OK && step(&fresh) == 1);
    TEST_CHECK(state_of(&fresh, &early) == JOB_CANCELED && state_of(&fresh, &late) == JOB_QUEUED);
    TEST_CHECK(state_of(&fresh, &slow) == JOB_QUEUED && state_of(&fresh, &fast) == JOB_QUEUED);
    struct job_bulk of_one = bulk_of(&nobody, BULK_CANCEL, QUEUED_ONES);
    of_one.client = one;
    TEST_CHECK(start(&fresh, &of_one) == OK && step(&fresh) == 2);
    TEST_CHECK(state_of(&fresh, &fast) == JOB_QUEUED && state_of(&fresh, &late) == JOB_CANCELED);
    TEST_CHECK(bulk_now(&fresh, &of_one.id).state == BULK_DONE);
    fresh_close(&fresh);
}

static void test_bulk_retries_what_failed_and_waits_while_the_queue_is_full(void)
{
    struct fresh fresh;
    struct uuid jobs[5];
    fresh_open(&fresh);
    struct uuid client = join(&fresh);
    for (int i = 0; i < 5; i++)
        jobs[i] = submit(&fresh, &client);
    for (int i = 0; i < 4; i++)
        fail_next(&fresh);
    struct job_bulk c = bulk_of(&client, BULK_RETRY, ALL_STATES);
    TEST_CHECK(start(&fresh, &c) == OK);
    TEST_CHECK(step_with(&fresh, 3) == 2); /* one waits in the queue already */
    struct bulk bulk = bulk_now(&fresh, &c.id);
    TEST_CHECK(bulk.state == BULK_RUNNING && bulk.changed == 2 && bulk.matched == 2 && bulk.left == 0);
    TEST_CHECK(step_with(&fresh, 100) == 0); /* not before its time */
    now_us += BULK_WAIT_US;
    TEST_CHECK(step_with(&fresh, 100) == 2);
    bulk = bulk_now(&fresh, &c.id);
    TEST_CHECK(bulk.state == BULK_DONE && bulk.changed == 4 && bulk.matched == 5 && bulk.left == 1);
    for (int i = 0; i < 5; i++)
        TEST_CHECK(state_of(&fresh, &jobs[i]) == JOB_QUEUED);
    fresh_close(&fresh);
}

static void test_bulk_can_be_aborted_by_its_owner_and_by_operators(void)
{
    enum { JOBS = 2 * BULK_CHANGE_MAX };
    struct fresh fresh;
    struct uuid last;
    fresh_open(&fresh);
    struct uuid client = join(&fresh), other = join(&fresh);
    for (uint32_t i = 0; i < JOBS; i++)
        last = submit(&fresh, &client);
    struct job_bulk c = bulk_of(&client, BULK_CANCEL, QUEUED_ONES);
    TEST_CHECK(start(&fresh, &c) == OK && step(&fresh) == BULK_CHANGE_MAX);
    struct job_bulk_abort abort = {.id = c.id, .owner = other};
    TEST_CHECK(batch_one(fresh.store, &job_bulk_abort_class, now_us, &abort, NULL) == ERR_FORBIDDEN);
    abort.owner = client;
    TEST_CHECK(batch_one(fresh.store, &job_bulk_abort_class, now_us, &abort, NULL) == OK);
    TEST_CHECK(bulk_now(&fresh, &c.id).state == BULK_ABORTED && step(&fresh) == 0);
    TEST_CHECK(state_of(&fresh, &last) == JOB_QUEUED);
    uint64_t ended = bulk_now(&fresh, &c.id).finished_us;
    abort.owner = nobody;
    TEST_CHECK(batch_one(fresh.store, &job_bulk_abort_class, now_us + 5, &abort, NULL) == OK);
    TEST_CHECK(bulk_now(&fresh, &c.id).finished_us == ended);
    abort.id = fresh_uuid();
    TEST_CHECK(batch_one(fresh.store, &job_bulk_abort_class, now_us, &abort, NULL) == ERR_NOT_FOUND);
    fresh_close(&fresh);
}

static void test_bulk_is_kept_a_day_beyond_its_end(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    struct uuid client = join(&fresh);
    struct job_bulk c = bulk_of(&client, BULK_CANCEL, QUEUED_ONES);
    TEST_CHECK(start(&fresh, &c) == OK && step(&fresh) == 0);
    uint64_t end = bulk_now(&fresh, &c.id).finished_us + BULK_KEPT_US;
    struct retention_sweep sweep = {.limit = 0};
    TEST_CHECK(batch_one(fresh.store, &retention_sweep_class, end - 1, &sweep, NULL) == OK);
    TEST_CHECK(bulk_now(&fresh, &c.id).state == BULK_DONE);
    TEST_CHECK(batch_one(fresh.store, &retention_sweep_class, end, &sweep, NULL) == OK);
    struct bulk bulk;
    struct view *view = view_open_outside(fresh.store, 0);
    TEST_CHECK(bulk_read(&view->txn, &c.id, &bulk) == ERR_NOT_FOUND);
    view_close(view);
    fresh_close(&fresh);
}

static void test_bulk_refusals(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    struct uuid client = join(&fresh), other = join(&fresh);
    struct job_bulk c = bulk_of(&client, BULK_ACTION_COUNT, QUEUED_ONES);
    TEST_CHECK(start(&fresh, &c) == ERR_INVALID);
    c = bulk_of(&client, BULK_CANCEL, 0);
    TEST_CHECK(start(&fresh, &c) == ERR_INVALID);
    c = bulk_of(&client, BULK_CANCEL, QUEUED_ONES);
    c.id = nobody;
    TEST_CHECK(start(&fresh, &c) == ERR_INVALID);
    c = bulk_of(&client, BULK_CANCEL, QUEUED_ONES);
    c.type = JOB_TYPE_COUNT;
    TEST_CHECK(start(&fresh, &c) == ERR_INVALID);
    c = bulk_of(&client, BULK_CANCEL, QUEUED_ONES);
    c.client = other; /* another client's jobs */
    TEST_CHECK(start(&fresh, &c) == ERR_INVALID);
    c.client = nobody;
    TEST_CHECK(start(&fresh, &c) == ERR_INVALID);
    for (uint32_t i = 0; i < BULKS_RUNNING_MAX; i++) {
        c = bulk_of(&client, BULK_CANCEL, QUEUED_ONES);
        TEST_CHECK(start(&fresh, &c) == OK);
    }
    c = bulk_of(&client, BULK_CANCEL, QUEUED_ONES);
    TEST_CHECK(start(&fresh, &c) == ERR_LIMIT);
    c = bulk_of(&other, BULK_CANCEL, QUEUED_ONES);
    TEST_CHECK(start(&fresh, &c) == OK);
    for (uint32_t i = 0; i <= BULKS_RUNNING_MAX; i++) /* they take turns: each step ends one */
        TEST_CHECK(step(&fresh) == 0);
    TEST_CHECK(fresh_counter(&fresh, COUNTER_BULKS, span_of(&client, sizeof(client))) == 0);
    TEST_CHECK(start(&fresh, &c) == ERR_EXISTS);
    TEST_CHECK(strcmp(bulk_action_name(BULK_RETRY), "retry") == 0 && !bulk_action_name(BULK_ACTION_COUNT));
    fresh_close(&fresh);
}

struct spoiling {
    uint32_t table;
    struct key key;
};

static enum error spoil_row(struct txn *txn, uint64_t at_us, void *context)
{
    const struct spoiling *x = context;
    (void)at_us;
    spoil_value(txn, x->table, key_span(&x->key));
    txn->writes++;
    return OK;
}

/* So many of this owner. */
struct crowd {
    struct uuid owner;
    uint32_t count;
    uint8_t state, name;
    bool gone;
};

static struct uuid of_crowd(const struct crowd *c, uint32_t i)
{
    return (struct uuid){{c->name, (uint8_t)(i >> 8), (uint8_t)i}};
}

static enum error put_crowd(struct txn *txn, uint64_t at_us, void *context)
{
    const struct crowd *c = context;
    for (uint32_t i = 0; i < c->count; i++) {
        struct bulk bulk = {
            .id = of_crowd(c, i), .owner = c->owner, .state = c->state, .finished_us = at_us - i};
        struct key key = key_of_uuid(&bulk.id);
        if (c->gone)
            (void)txn_try_remove(txn, TABLE_BULKS, key_span(&key));
        else
            txn_write(txn, TABLE_BULKS, key_span(&key), &bulk);
    }
    return OK;
}

static void crowd(struct fresh *fresh, struct crowd c)
{
    TEST_CHECK(fresh_do(fresh, AT_US, put_crowd, &c) == OK);
}

static bool is_there(struct fresh *fresh, struct uuid id)
{
    struct bulk bulk;
    struct view *view = view_open_outside(fresh->store, 0);
    enum error e = bulk_read(&view->txn, &id, &bulk);
    view_close(view);
    return e == OK;
}

static uint64_t rows_of_bulks(struct fresh *fresh)
{
    struct view *view = view_open_outside(fresh->store, 0);
    uint64_t rows = txn_rows(&view->txn, TABLE_BULKS);
    view_close(view);
    return rows;
}

/* One that finds nothing, to its end, each later than the one before. */
static enum error start_and_end(struct fresh *fresh, const struct uuid *owner)
{
    struct job_bulk c = bulk_of(owner, BULK_CANCEL, QUEUED_ONES);
    enum error e = batch_one(fresh->store, &job_bulk_class, now_us, &c, NULL);
    if (!e)
        TEST_CHECK(step(fresh) == 0 && bulk_now(fresh, &c.id).state == BULK_DONE);
    return e;
}

static void test_bulk_of_one_client_is_in_nobodys_way(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    struct uuid client = join(&fresh), other = join(&fresh);
    struct job_bulk first = bulk_of(&client, BULK_CANCEL, QUEUED_ONES);
    TEST_CHECK(start(&fresh, &first) == OK && step(&fresh) == 0);
    for (uint32_t i = 0; i < BULKS_OWN_MAX + 5; i++) {
        TEST_CHECK(is_there(&fresh, first.id) == (i < BULKS_OWN_MAX));
        TEST_CHECK(start_and_end(&fresh, &client) == OK);
    }
    TEST_CHECK(rows_of_bulks(&fresh) == BULKS_OWN_MAX);
    for (uint32_t i = 0; i < BULKS_OWN_MAX + 5; i++)
        TEST_CHECK(start_and_end(&fresh, &nobody) == OK);
    TEST_CHECK(start_and_end(&fresh, &other) == OK && rows_of_bulks(&fresh) == 2 * BULKS_OWN_MAX + 1);
    struct retention_sweep sweep = {.limit = 0};
    TEST_CHECK(batch_one(fresh.store, &retention_sweep_class, AT_US + 2 * BULK_KEPT_US, &sweep, NULL) == OK);
    TEST_CHECK(rows_of_bulks(&fresh) == 0); /* and nothing is left of the timers of those that went before */
    fresh_close(&fresh);
}

static void test_bulk_of_very_many_clients_leaves_room(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    struct uuid client = join(&fresh), other = join(&fresh);
    struct crowd many = {{{9}}, BULKS_CLIENTS_MAX - 1, BULK_DONE, 1, false};
    struct job_bulk mine = bulk_of(&client, BULK_CANCEL, QUEUED_ONES);
    TEST_CHECK(start(&fresh, &mine) == OK && step(&fresh) == 0);
    crowd(&fresh, many);
    TEST_CHECK(start_and_end(&fresh, &client) == OK); /* in the place of its own */
    TEST_CHECK(!is_there(&fresh, mine.id) && rows_of_bulks(&fresh) == BULKS_CLIENTS_MAX);
    TEST_CHECK(start_and_end(&fresh, &other) == OK); /* in that of the one that ended first */
    TEST_CHECK(!is_there(&fresh, of_crowd(&many, many.count - 1)) && is_there(&fresh, of_crowd(&many, 0)));
    struct spoiling row = {TABLE_BULKS, {.size = 0}};
    struct uuid torn = of_crowd(&many, 3);
    row.key = key_of_uuid(&torn);
    TEST_CHECK(fresh_do(&fresh, AT_US, spoil_row, &row) == OK); /* it has its place as before */
    struct uuid strange = of_crowd(&many, 4);
    fresh_crumb(&fresh, TABLE_BULKS, key_of_uuid(&strange)); /* and so has what is whole, and says nothing */
    TEST_CHECK(start_and_end(&fresh, &nobody) == OK && rows_of_bulks(&fresh) == BULKS_CLIENTS_MAX + 1);
    TEST_CHECK(start_and_end(&fresh, &other) == OK && rows_of_bulks(&fresh) == BULKS_CLIENTS_MAX + 1);
    TEST_CHECK(fresh_do(&fresh, AT_US, spoil_row, &row) == OK);
    struct crowd operators = {nobody, BULKS_OWN_MAX - 1, BULK_DONE, 2, false};
    crowd(&fresh, operators);
    TEST_CHECK(rows_of_bulks(&fresh) == BULKS_MAX);
    TEST_CHECK(start_and_end(&fresh, &nobody) == OK && start_and_end(&fresh, &client) == OK);
    TEST_CHECK(rows_of_bulks(&fresh) == BULKS_MAX);
    many.gone = operators.gone = true;
    crowd(&fresh, operators);
    crowd(&fresh, many);
    fresh_close(&fresh);
}

static void test_bulk_finds_no_place_where_all_run(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    struct uuid client = join(&fresh);
    struct crowd all = {{{9}}, BULKS_CLIENTS_MAX, BULK_RUNNING, 1, false}; /* as of very many clients */
    crowd(&fresh, all);
    struct job_bulk c = bulk_of(&client, BULK_CANCEL, QUEUED_ONES);
    TEST_CHECK(start(&fresh, &c) == ERR_LIMIT && rows_of_bulks(&fresh) == BULKS_CLIENTS_MAX);
    TEST_CHECK(start_and_end(&fresh, &nobody) == OK); /* operators have their own */
    all.gone = true;
    crowd(&fresh, all);
    TEST_CHECK(start(&fresh, &c) == OK);
    fresh_close(&fresh);
}

/* Nor where the counter of those that run is lost: what a client has there is the client's. */
static void test_bulk_of_operators_takes_no_clients_place(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    struct uuid client = join(&fresh);
    struct job_bulk theirs = bulk_of(&client, BULK_CANCEL, QUEUED_ONES);
    TEST_CHECK(start(&fresh, &theirs) == OK && step(&fresh) == 0);
    struct crowd all = {nobody, BULKS_OWN_MAX, BULK_RUNNING, 1, false};
    crowd(&fresh, all);
    TEST_CHECK(start_and_end(&fresh, &nobody) == ERR_LIMIT && is_there(&fresh, theirs.id));
    TEST_CHECK(start_and_end(&fresh, &client) == OK && rows_of_bulks(&fresh) == BULKS_OWN_MAX + 2);
    all.gone = true;
    crowd(&fresh, all);
    fresh_close(&fresh);
}

/* Behind a key as long as any can be nothing is looked for; those before it count. */
static void test_bulk_comes_to_an_end_at_a_key_that_is_none(void)
{
    struct fresh fresh;
    struct key longest = {.size = KEY_SIZE_MAX};
    memset(longest.bytes, 0xff, sizeof(longest.bytes));
    const struct bulk bulk = {.state = BULK_DONE, .finished_us = AT_US};
    fresh_open(&fresh);
    struct uuid client = join(&fresh);
    struct crowd all = {{{9}}, BULKS_CLIENTS_MAX, BULK_RUNNING, 1, false};
    fresh_put(&fresh, TABLE_BULKS, longest, &bulk);
    struct job_bulk first = bulk_of(&client, BULK_CANCEL, QUEUED_ONES);
    TEST_CHECK(start(&fresh, &first) == OK && step(&fresh) == 0);
    crowd(&fresh, all);
    TEST_CHECK(start_and_end(&fresh, &client) == OK && rows_of_bulks(&fresh) == BULKS_CLIENTS_MAX + 2);
    TEST_CHECK(!is_there(&fresh, first.id)); /* it had to go: there are too many */
    all.gone = true;
    crowd(&fresh, all);
    fresh_take(&fresh, TABLE_BULKS, longest);
    fresh_close(&fresh);
}

/* What is left out of a filter is no bound. */
static void test_bulk_of_an_operator_goes_by_one_time_alone(void)
{
    struct fresh fresh;
    struct uuid jobs[3];
    fresh_open(&fresh);
    struct uuid client = join(&fresh);
    for (uint32_t i = 0; i < 3; i++)
        jobs[i] = submit_at(&fresh, AT_US + i * SECOND_US, &client, WORK_KIND_SUCCESS_FAST);
    struct job_bulk before = bulk_of(&nobody, BULK_CANCEL, QUEUED_ONES), from = before;
    before.until_us = AT_US + SECOND_US;
    TEST_CHECK(start(&fresh, &before) == OK && step(&fresh) == 1);
    TEST_CHECK(state_of(&fresh, &jobs[0]) == JOB_CANCELED && state_of(&fresh, &jobs[1]) == JOB_QUEUED);
    from.id = fresh_uuid();
    from.from_us = AT_US + 2 * SECOND_US;
    TEST_CHECK(start(&fresh, &from) == OK && step(&fresh) == 1);
    TEST_CHECK(state_of(&fresh, &jobs[1]) == JOB_QUEUED && state_of(&fresh, &jobs[2]) == JOB_CANCELED);
    fresh_close(&fresh);
}

static void test_bulk_leaves_alone_what_its_filter_does_not_say(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    struct uuid client = join(&fresh), other = join(&fresh);
    struct uuid early = submit_at(&fresh, AT_US, &client, WORK_KIND_SUCCESS_FAST),
                middle = submit_at(&fresh, AT_US + SECOND_US, &client, WORK_KIND_SUCCESS_FAST),
                late = submit_at(&fresh, AT_US + 2 * SECOND_US, &other, WORK_KIND_SUCCESS_FAST);
    struct job_bulk c = bulk_of(&nobody, BULK_CANCEL, QUEUED_ONES);
    c.type = JOB_DEFERRED;
    TEST_CHECK(start(&fresh, &c) == OK);
    struct job_bulk timed = bulk_of(&nobody, BULK_CANCEL, QUEUED_ONES);
    timed.type = JOB_EXECUTE;
    timed.from_us = AT_US + SECOND_US;
    timed.until_us = AT_US + 2 * SECOND_US;
    TEST_CHECK(start(&fresh, &timed) == OK);
    struct uuid newer = submit_at(&fresh, AT_US + SECOND_US, &client, WORK_KIND_SUCCESS_FAST);
    TEST_CHECK(step(&fresh) + step(&fresh) == 1);
    TEST_CHECK(state_of(&fresh, &early) == JOB_QUEUED && state_of(&fresh, &middle) == JOB_CANCELED &&
               state_of(&fresh, &late) == JOB_QUEUED && state_of(&fresh, &newer) == JOB_QUEUED);
    TEST_CHECK(bulk_now(&fresh, &c.id).matched == 0 && bulk_now(&fresh, &timed.id).matched == 1);
    fresh_close(&fresh);
}

/* Not even the first one finds a place in the queue: it is the next step's first again. */
static void test_bulk_stays_where_it_is_while_the_queue_is_full(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    struct uuid client = join(&fresh);
    for (int i = 0; i < 3; i++) {
        submit_at(&fresh, AT_US, &client, WORK_KIND_RETRY_ON_FAIL);
        fail_next(&fresh);
    }
    struct job_bulk c = bulk_of(&client, BULK_RETRY, FAILED_ONES);
    TEST_CHECK(start(&fresh, &c) == OK && step_with(&fresh, 0) == 0);
    struct bulk bulk = bulk_now(&fresh, &c.id);
    TEST_CHECK(bulk.state == BULK_RUNNING && bulk.matched == 0 && bulk.changed == 0 && bulk.left == 0);
    now_us += BULK_WAIT_US;
    TEST_CHECK(step_with(&fresh, 3) == 3);
    bulk = bulk_now(&fresh, &c.id);
    TEST_CHECK(bulk.state == BULK_DONE && bulk.matched == 3 && bulk.changed == 3 && bulk.left == 0);
    fresh_close(&fresh);
}

/* It begins by a clock that is an hour ahead, which then is set right, while it waits for the queue. */
static void test_bulk_goes_on_when_the_clock_is_set_back(void)
{
    struct fresh fresh;
    uint64_t noted = 0;
    fresh_open(&fresh);
    struct uuid client = join(&fresh);
    submit_at(&fresh, AT_US, &client, WORK_KIND_RETRY_ON_FAIL);
    fail_next(&fresh);
    struct job_bulk c = bulk_of(&client, BULK_RETRY, FAILED_ONES),
                    later = bulk_of(&client, BULK_RETRY, FAILED_ONES);
    TEST_CHECK(start(&fresh, &c) == OK && step_with(&fresh, 0) == 0);
    back_us = UINT64_C(3600) * SECOND_US;
    now_us += BULK_WAIT_US;
    TEST_CHECK(step_with(&fresh, 100) == 1 && bulk_now(&fresh, &c.id).state == BULK_DONE);
    struct view *view = view_open_outside(fresh.store, 0);
    TEST_CHECK(steady_noted(&view->txn, &noted) == OK); /* a start begins there, not an hour before */
    view_close(view);
    TEST_CHECK_(noted + STEADY_NOTE_US >= now_us, "%llu", (unsigned long long)noted);
    /* Begun by the wall clock of before, and looked at first by that of now, right after a start. */
    TEST_CHECK(batch_one(fresh.store, &job_bulk_class, now_us + back_us, &later, NULL) == OK);
    fresh_reopen(&fresh);
    TEST_CHECK(step_with(&fresh, 100) == 0 && bulk_now(&fresh, &later.id).state == BULK_DONE);
    back_us = 0;
    fresh_close(&fresh);
}

/* More than are looked at in one step, and of those few that match. */
static void test_bulk_comes_through_very_many_that_do_not_match(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    struct uuid client = join(&fresh);
    for (uint32_t i = 0; i < BULK_LOOK_MAX + 8; i++)
        submit(&fresh, &client);
    for (int all = 0; all < 2; all++) {
        struct job_bulk c = bulk_of(all ? &nobody : &client, BULK_CANCEL, FAILED_ONES);
        TEST_CHECK(start(&fresh, &c) == OK && step(&fresh) == 0);
        struct bulk bulk = bulk_now(&fresh, &c.id); /* how far it is, its client is told */
        TEST_CHECK(bulk.state == BULK_RUNNING);
        TEST_CHECK(bulk.after_seq == (all ? job_of(&fresh, &bulk.after_id).seq : BULK_LOOK_MAX));
        TEST_CHECK(step(&fresh) == 0 && bulk_now(&fresh, &c.id).state == BULK_DONE);
        TEST_CHECK(fresh_counter(&fresh, COUNTER_STEADY, span_of(NULL, 0)) >
                   (int64_t)AT_US); /* a start goes on there */
    }
    struct job_bulk c = bulk_of(&nobody, BULK_CANCEL, QUEUED_ONES); /* these all do */
    TEST_CHECK(start(&fresh, &c) == OK && step(&fresh) == BULK_CHANGE_MAX);
    TEST_CHECK(bulk_now(&fresh, &c.id).changed == BULK_CHANGE_MAX);
    fresh_close(&fresh);
}

static void test_bulk_look_changes_nothing_and_finds_the_same(void)
{
    struct fresh fresh;
    struct uuid ids[BULK_CHANGE_MAX], jobs[3];
    uint32_t count = 0;
    bool end = false;
    fresh_open(&fresh);
    struct uuid client = join(&fresh);
    for (int i = 0; i < 3; i++)
        jobs[i] = submit(&fresh, &client);
    fail_next(&fresh);
    struct bulk bulk = {.action = BULK_CANCEL,
                        .client = client,
                        .states = ALL_STATES,
                        .type = BULK_ANY_TYPE,
                        .last_seq = UINT64_MAX};
    struct view *view = view_open_outside(fresh.store, 0);
    TEST_CHECK(bulk_look(&view->txn, &bulk, 3, ids, BULK_CHANGE_MAX, &count, &end) == OK);
    view_close(view);
    TEST_CHECK(count == 2 && end && bulk.matched == 3 && bulk.left == 1);
    TEST_CHECK(uuid_equal(&ids[0], &jobs[1]) && uuid_equal(&ids[1], &jobs[2]));
    TEST_CHECK(state_of(&fresh, &jobs[1]) == JOB_QUEUED);
    fresh_close(&fresh);
}

/* One step, one chance: their backoffs lie between a half and all of it all the same, each somewhere else. */
static void test_bulk_retries_dont_come_back_together_JOB_272_AMB_J_35(void)
{
    enum { JOBS = 8 };
    struct fresh fresh;
    struct uuid ids[JOBS];
    uint64_t due[JOBS];
    fresh_open(&fresh);
    struct uuid client = join(&fresh);
    for (uint32_t i = 0; i < JOBS; i++)
        ids[i] = submit_at(&fresh, AT_US, &client, WORK_KIND_RETRY_ON_FAIL);
    for (uint32_t i = 0; i < JOBS; i++)
        fail_next(&fresh);
    struct job_bulk c = bulk_of(&client, BULK_RETRY, FAILED_ONES);
    TEST_CHECK(start(&fresh, &c) == OK && step(&fresh) == JOBS);
    for (uint32_t i = 0; i < JOBS; i++) {
        struct job job;
        struct view *view = view_open_outside(fresh.store, 0);
        TEST_CHECK(job_read(&view->txn, &ids[i], &job) == OK);
        view_close(view);
        due[i] = job.due_us - (now_us - BULK_STEP_US);
        TEST_CHECK(due[i] >= SECOND_US / 2 && due[i] <= SECOND_US);
        for (uint32_t k = 0; k < i; k++)
            TEST_CHECK(due[k] != due[i]);
    }
    fresh_close(&fresh);
}

/* A timer that is damaged is as good as before; that of an action which is comes again later, and others go on. */
static void test_bulk_damage_of_one_stops_no_other(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    struct uuid clients[3];
    struct job_bulk c[3];
    for (uint32_t i = 0; i < 3; i++) {
        clients[i] = join(&fresh);
        submit(&fresh, &clients[i]);
        c[i] = bulk_of(&clients[i], BULK_CANCEL, QUEUED_ONES);
        TEST_CHECK(start(&fresh, &c[i]) == OK);
    }
    struct spoiling timer = {TABLE_DUE,
                             due_key(DUE_JOB_BULK, BULK_SHARD, bulk_now(&fresh, &c[0].id).due_us, &c[0].id)},
                    row = {TABLE_BULKS, key_of_uuid(&c[1].id)};
    TEST_CHECK(fresh_do(&fresh, AT_US, spoil_row, &timer) == OK &&
               fresh_do(&fresh, AT_US, spoil_row, &row) == OK);
    uint32_t changed = 0;
    for (uint32_t i = 0; i < 12; i++)
        changed += step(&fresh);
    TEST_CHECK_(changed == 2, "%u were changed", changed);
    TEST_CHECK(bulk_now(&fresh, &c[0].id).state == BULK_DONE &&
               bulk_now(&fresh, &c[2].id).state == BULK_DONE);
    TEST_CHECK(fresh_do(&fresh, AT_US, spoil_row, &row) == OK); /* as it was */
    struct job_bulk_abort abort = {.id = c[1].id, .owner = clients[1]};
    TEST_CHECK(batch_one(fresh.store, &job_bulk_abort_class, now_us, &abort, NULL) == OK);
    now_us += UINT64_C(7200) * SECOND_US;
    TEST_CHECK(step(&fresh) == 0); /* and nothing is left of its timer */
    fresh_close(&fresh);
}

/* What only a damaged disk does to one of a client's jobs. */
enum { DAMAGED_ROW, DAMAGED_PATH, PATH_TO_NOWHERE, BULK_DAMAGES };

struct damaging {
    struct uuid client, job;
    uint64_t seq;
    int how;
    bool undo;
};

static enum error damage_job(struct txn *txn, uint64_t at_us, void *context)
{
    static const struct uuid nowhere = {{7}};
    const struct damaging *x = context;
    struct key row = key_of_uuid(&x->job), path = client_job_key(&x->client, x->seq);
    (void)at_us;
    if (x->how == DAMAGED_ROW)
        spoil_value(txn, TABLE_JOBS, key_span(&row)); /* the second time it is as it was */
    else if (x->how == DAMAGED_PATH)
        spoil_value(txn, TABLE_CLIENT_JOBS, key_span(&path));
    else
        txn_write(txn, TABLE_CLIENT_JOBS, key_span(&path),
                  &(struct client_job){.id = x->undo ? x->job : nowhere});
    txn->writes++;
    return OK;
}

static void pass_damage(bool all, int damage, uint32_t which)
{
    enum { JOBS = 5 };
    struct fresh fresh;
    struct uuid jobs[JOBS], ids[BULK_CHANGE_MAX];
    uint32_t changed = 0, steps = 0, count = 0;
    bool end = false;
    fresh_open(&fresh);
    struct uuid client = join(&fresh);
    for (uint32_t i = 0; i < JOBS; i++)
        jobs[i] = submit(&fresh, &client);
    struct damaging x = {.client = client, .job = jobs[which], .seq = which + 1, .how = damage};
    TEST_CHECK(fresh_do(&fresh, AT_US, damage_job, &x) == OK);
    struct job_bulk c = bulk_of(all ? &nobody : &client, BULK_CANCEL, QUEUED_ONES);
    TEST_CHECK(start(&fresh, &c) == OK);
    struct bulk bulk = bulk_now(&fresh, &c.id);
    struct view *view = view_open_outside(fresh.store, 0);
    TEST_CHECK(bulk_look(&view->txn, &bulk, 3, ids, BULK_CHANGE_MAX, &count, &end) == OK);
    TEST_CHECK(end && count == JOBS - 1 && bulk.matched == JOBS && bulk.left == 1);
    view_close(view);
    for (; steps < 3 && bulk_now(&fresh, &c.id).state == BULK_RUNNING; steps++)
        changed += step(&fresh);
    bulk = bulk_now(&fresh, &c.id);
    TEST_CHECK_(bulk.state == BULK_DONE && changed == JOBS - 1, "all %d, damage %d of %u: %u changed", all,
                damage, which, changed);
    TEST_CHECK(bulk.matched == JOBS && bulk.changed == JOBS - 1 && bulk.left == 1);
    x.undo = true;
    TEST_CHECK(fresh_do(&fresh, AT_US, damage_job, &x) == OK);
    fresh_close(&fresh);
}

/* The same, in front of one that has to wait for room in the queue: it is passed for good. */
static void test_bulk_waits_behind_a_job_that_contradicts_itself(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    struct uuid client = join(&fresh), jobs[2];
    for (int i = 0; i < 2; i++) {
        jobs[i] = submit_at(&fresh, AT_US, &client, WORK_KIND_RETRY_ON_FAIL);
        fail_next(&fresh);
    }
    struct job job = job_of(&fresh, &jobs[0]);
    const struct job sound = job;
    job.due_us = 1; /* of one that has its end */
    fresh_put(&fresh, TABLE_JOBS, key_of_uuid(&jobs[0]), &job);
    struct job_bulk c = bulk_of(&client, BULK_RETRY, FAILED_ONES);
    TEST_CHECK(start(&fresh, &c) == OK && step_with(&fresh, 0) == 0);
    struct bulk bulk = bulk_now(&fresh, &c.id);
    TEST_CHECK(bulk.state == BULK_RUNNING && bulk.matched == 1 && bulk.changed == 0 && bulk.left == 1);
    now_us += BULK_WAIT_US;
    TEST_CHECK(step_with(&fresh, 100) == 1);
    bulk = bulk_now(&fresh, &c.id);
    TEST_CHECK(bulk.state == BULK_DONE && bulk.matched == 2 && bulk.changed == 1 && bulk.left == 1);
    fresh_put(&fresh, TABLE_JOBS, key_of_uuid(&jobs[0]), &sound);
    fresh_close(&fresh);
}

/* Through everybody's jobs by id: none is left out because another had to wait. */
static void test_bulk_of_an_operator_goes_on_where_it_had_to_wait(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    struct uuid client = join(&fresh), jobs[3];
    for (int i = 0; i < 3; i++) {
        jobs[i] = submit_at(&fresh, AT_US, &client, WORK_KIND_RETRY_ON_FAIL);
        fail_next(&fresh);
    }
    struct job_bulk c = bulk_of(&nobody, BULK_RETRY, FAILED_ONES);
    TEST_CHECK(start(&fresh, &c) == OK && step_with(&fresh, 0) == 0);
    now_us += BULK_WAIT_US;
    TEST_CHECK(step_with(&fresh, 1) == 1 && bulk_now(&fresh, &c.id).state == BULK_RUNNING);
    now_us += BULK_WAIT_US;
    TEST_CHECK(step_with(&fresh, 100) == 2);
    struct bulk bulk = bulk_now(&fresh, &c.id);
    TEST_CHECK(bulk.state == BULK_DONE && bulk.matched == 3 && bulk.changed == 3 && bulk.left == 0);
    for (int i = 0; i < 3; i++)
        TEST_CHECK(state_of(&fresh, &jobs[i]) == JOB_QUEUED);
    fresh_close(&fresh);
}

enum { VERY_MANY = BULK_LOOK_MAX + 8 };

static enum error flip_all(struct txn *txn, uint64_t at_us, void *context)
{
    const struct uuid *jobs = context;
    (void)at_us;
    for (uint32_t i = 0; i < VERY_MANY; i++) {
        struct key key = key_of_uuid(&jobs[i]);
        spoil_value(txn, TABLE_JOBS, key_span(&key));
    }
    txn->writes++;
    return OK;
}

/* What is passed is looked at as well: a step has its end, however many there are. */
static void test_bulk_looks_at_so_many_that_can_not_be_read(void)
{
    static struct uuid jobs[VERY_MANY];
    struct fresh fresh;
    fresh_open(&fresh);
    struct uuid client = join(&fresh);
    for (uint32_t i = 0; i < VERY_MANY; i++)
        jobs[i] = submit(&fresh, &client);
    TEST_CHECK(fresh_do(&fresh, AT_US, flip_all, jobs) == OK);
    for (int all = 0; all < 2; all++) {
        struct job_bulk c = bulk_of(all ? &nobody : &client, BULK_CANCEL, QUEUED_ONES);
        TEST_CHECK(start(&fresh, &c) == OK && step(&fresh) == 0);
        struct bulk bulk = bulk_now(&fresh, &c.id);
        TEST_CHECK(bulk.state == BULK_RUNNING && bulk.left == BULK_LOOK_MAX);
        TEST_CHECK(step(&fresh) == 0);
        bulk = bulk_now(&fresh, &c.id);
        TEST_CHECK(bulk.state == BULK_DONE && bulk.matched == VERY_MANY && bulk.left == VERY_MANY);
    }
    TEST_CHECK(fresh_do(&fresh, AT_US, flip_all, jobs) == OK);
    fresh_close(&fresh);
}

/* First, in the middle or last: those on both sides of it are changed, and it is told of as left. */
static void test_bulk_passes_a_job_that_can_not_be_read(void)
{
    for (uint32_t which = 0; which < 5; which += 2) {
        pass_damage(true, DAMAGED_ROW, which);
        for (int damage = 0; damage < BULK_DAMAGES; damage++)
            pass_damage(false, damage, which);
    }
}

/* It can be read, and is among those that were found; what it says of itself can't be, so it stays and is left. */
static void test_bulk_leaves_a_job_that_contradicts_itself(void)
{
    for (int all = 0; all < 2; all++) {
        struct fresh fresh;
        fresh_open(&fresh);
        struct uuid client = join(&fresh), first = submit(&fresh, &client), second = submit(&fresh, &client);
        struct job job = job_of(&fresh, &first);
        const struct job sound = job;
        job.due_us = 1; /* of one that may be claimed */
        fresh_put(&fresh, TABLE_JOBS, key_of_uuid(&first), &job);
        struct job_bulk c = bulk_of(all ? &nobody : &client, BULK_CANCEL, QUEUED_ONES);
        TEST_CHECK(start(&fresh, &c) == OK && step(&fresh) == 1);
        struct bulk bulk = bulk_now(&fresh, &c.id);
        TEST_CHECK(bulk.state == BULK_DONE && bulk.matched == 2 && bulk.changed == 1 && bulk.left == 1);
        TEST_CHECK(state_of(&fresh, &first) == JOB_QUEUED && state_of(&fresh, &second) == JOB_CANCELED);
        fresh_put(&fresh, TABLE_JOBS, key_of_uuid(&first), &sound);
        fresh_close(&fresh);
    }
}

TEST_LIST
= {
    {"bulk cancels a client's own, page by page, across a restart",
     test_bulk_cancels_a_clients_own_page_by_page_across_a_restart},
    {"bulk of version 1 goes by the wall clock", test_bulk_of_version_1_goes_by_the_wall_clock},
    {"bulk of an operator goes by its filter", test_bulk_of_an_operator_goes_by_its_filter},
    {"bulk retries what failed, and waits while the queue is full",
     test_bulk_retries_what_failed_and_waits_while_the_queue_is_full},
    {"bulk can be aborted by its owner and by operators",
     test_bulk_can_be_aborted_by_its_owner_and_by_operators},
    {"bulk is kept a day beyond its end", test_bulk_is_kept_a_day_beyond_its_end},
    {"bulk: refusals", test_bulk_refusals},
    {"bulk: those of one client are in nobody's way", test_bulk_of_one_client_is_in_nobodys_way},
    {"bulk: those of very many clients leave room", test_bulk_of_very_many_clients_leaves_room},
    {"bulk: no place where all run", test_bulk_finds_no_place_where_all_run},
    {"bulk: those of operators take no client's place", test_bulk_of_operators_takes_no_clients_place},
    {"bulk: comes to an end at a key that is none", test_bulk_comes_to_an_end_at_a_key_that_is_none},
    {"bulk of an operator goes by one time alone", test_bulk_of_an_operator_goes_by_one_time_alone},
    {"bulk: leaves alone what its filter doesn't say", test_bulk_leaves_alone_what_its_filter_does_not_say},
    {"bulk: stays where it is while the queue is full", test_bulk_stays_where_it_is_while_the_queue_is_full},
    {"bulk goes on when the clock is set back", test_bulk_goes_on_when_the_clock_is_set_back},
    {"bulk: comes through very many that don't match", test_bulk_comes_through_very_many_that_do_not_match},
    {"bulk passes a job that can't be read, and changes those behind it",
     test_bulk_passes_a_job_that_can_not_be_read},
    {"bulk waits behind a job that contradicts itself", test_bulk_waits_behind_a_job_that_contradicts_itself},
    {"bulk of an operator goes on where it had to wait",
     test_bulk_of_an_operator_goes_on_where_it_had_to_wait},
    {"bulk looks at so many that can't be read", test_bulk_looks_at_so_many_that_can_not_be_read},
    {"bulk leaves a job that contradicts itself", test_bulk_leaves_a_job_that_contradicts_itself},
    {"bulk: a look changes nothing and finds the same", test_bulk_look_changes_nothing_and_finds_the_same},
    {"bulk: retries don't come back together (JOB-272, AMB-J-35)",
     test_bulk_retries_dont_come_back_together_JOB_272_AMB_J_35},
    {"bulk: damage of one stops no other", test_bulk_damage_of_one_stops_no_other},
    {NULL, NULL},
};
