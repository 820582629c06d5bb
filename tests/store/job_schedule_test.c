/* Schedules: a job at each time, never early, never twice; what is left out is noted with its reason. */
#include "acutest.h"

#include "store/client.h"
#include "store/cron.h"
#include "store/job_change.h"
#include "store/job_lease.h"
#include "store/job_queue.h"
#include "store/job_schedule.h"
#include "tests/store/fresh.h"
#include "tests/support/spoil.h"

#define MINUTE_US UINT64_C(60000000)
#define HOUR_US   (60 * MINUTE_US)
#define AT_US     (UINT64_C(28333333) * MINUTE_US) /* a whole minute: 2023-11-14T22:13:00Z */

static const struct uuid nobody = {{0}};

static struct uuid join_as(struct fresh *fresh, struct uuid id)
{
    struct client_create c = {.id = id, .from = span_text("192.0.2.1")};
    TEST_ASSERT(batch_one(fresh->store, &client_create_class, AT_US, &c, NULL) == OK);
    return id;
}

static struct uuid join(struct fresh *fresh)
{
    return join_as(fresh, fresh_uuid());
}

static struct schedule_put each_minute(const struct uuid *client)
{
    return (struct schedule_put){.id = fresh_uuid(),
                                 .client = *client,
                                 .kind = WORK_KIND_SUCCESS_FAST,
                                 .overlap = OVERLAP_ALLOW,
                                 .grace_us = MINUTE_US / 2,
                                 .name = span_text("each minute"),
                                 .cron = span_text("* * * * *")};
}

static enum error put_at(struct fresh *fresh, uint64_t at_us, const struct schedule_put *c)
{
    return batch_one(fresh->store, &schedule_put_class, at_us, c, NULL);
}

static enum error put(struct fresh *fresh, const struct schedule_put *c)
{
    return put_at(fresh, AT_US, c);
}

/* ---- the same again ---- */

static struct uuid put_keyed(struct fresh *fresh, struct schedule_put *c, uint64_t at_us, uint8_t body,
                             enum error expected)
{
    struct answer answer = {.size = 0};
    struct uuid id = nobody;
    c->id = fresh_uuid();
    c->key = span_text("once");
    memset(&c->digest, body, sizeof(c->digest));
    enum error e = batch_one(fresh->store, &schedule_put_class, at_us, c, &answer);
    TEST_CHECK_(e == expected, "%s, not %s", error_name(e), error_name(expected));
    TEST_CHECK(answer.size == (e ? 0 : sizeof(id)));
    memcpy(&id, answer.bytes, answer.size);
    return id;
}

static uint32_t kept(struct fresh *fresh, const struct uuid *client)
{
    struct uuid ids[SCHEDULES_MAX];
    uint32_t count = 0;
    struct view *view = view_open_outside(fresh->store, 0);
    TEST_ASSERT(view != NULL);
    TEST_CHECK(schedule_list(&view->txn, client, NULL, ids, SCHEDULES_MAX, &count) == OK);
    view_close(view);
    return count;
}

static void test_a_key_makes_one_schedule_a_day(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    struct uuid client = join(&fresh), other = join(&fresh);
    struct schedule_put c = each_minute(&client), theirs = each_minute(&other);
    const uint64_t day = UINT64_C(86400000000);
    struct uuid first = put_keyed(&fresh, &c, AT_US, 1, OK);
    TEST_CHECK(uuid_equal(&first, &c.id));
    struct uuid again = put_keyed(&fresh, &c, AT_US + day - 1, 1, OK);
    TEST_CHECK(uuid_equal(&again, &first) && kept(&fresh, &client) == 1);
    put_keyed(&fresh, &c, AT_US + 1, 2, ERR_KEY_REUSED);
    struct uuid of_other = put_keyed(&fresh, &theirs, AT_US, 2, OK); /* keys are a client's own */
    TEST_CHECK(uuid_equal(&of_other, &theirs.id) && kept(&fresh, &other) == 1);
    struct uuid next = client; /* the id beside it */
    next.bytes[15] ^= 1;
    next = join_as(&fresh, next);
    theirs = each_minute(&next);
    struct uuid of_next = put_keyed(&fresh, &theirs, AT_US, 1, OK);
    TEST_CHECK(uuid_equal(&of_next, &theirs.id) && kept(&fresh, &next) == 1);
    struct uuid later = put_keyed(&fresh, &c, AT_US + day + 1, 2, OK);
    TEST_CHECK(uuid_equal(&later, &c.id) && kept(&fresh, &client) == 2);
    fresh_close(&fresh);
}

/* False: nothing was due. */
static bool fire_with(struct fresh *fresh, uint64_t at_us, uint32_t queue_max, struct schedule_fired *ret)
{
    struct answer answer;
    struct schedule_fire c = {.job = fresh_uuid(),
                              .wall_us = at_us,
                              .kept_us = MINUTE_US,
                              .runtime_max_ms = 120000,
                              .payload_max = 262144,
                              .queue_max = queue_max};
    TEST_ASSERT(batch_one(fresh->store, &schedule_fire_class, at_us, &c, &answer) == OK);
    if (answer.size == 0)
        return false;
    TEST_ASSERT(answer.size == sizeof(*ret));
    memcpy(ret, answer.bytes, sizeof(*ret));
    return true;
}

static bool fire(struct fresh *fresh, uint64_t at_us, struct schedule_fired *ret)
{
    return fire_with(fresh, at_us, 100000, ret);
}

/* Everything that is due: how many were submitted. */
static uint32_t fire_all(struct fresh *fresh, uint64_t at_us)
{
    struct schedule_fired fired;
    uint32_t submitted = 0;
    while (fire(fresh, at_us, &fired))
        submitted += fired.outcome == OUTCOME_SUBMITTED;
    return submitted;
}

static struct schedule look(struct fresh *fresh, const struct uuid *id,
                            struct schedule_entry entries[SCHEDULE_HISTORY_MAX], uint32_t *ret_count)
{
    struct schedule s = {.next_us = 1};
    struct view *view = view_open_outside(fresh->store, 0);
    TEST_CHECK(schedule_read(&view->txn, id, &s) == OK);
    uint32_t count = schedule_history(&s, entries);
    view_close(view);
    if (ret_count)
        *ret_count = count;
    return s;
}

static uint8_t state_of(struct fresh *fresh, const struct uuid *id)
{
    struct job job = {.state = JOB_STATE_COUNT};
    struct view *view = view_open_outside(fresh->store, 0);
    TEST_CHECK(job_read(&view->txn, id, &job) == OK);
    view_close(view);
    return job.state;
}

static void test_schedule_submits_at_each_time_and_never_early(void)
{
    struct fresh fresh;
    struct schedule_fired fired;
    struct schedule_entry entries[SCHEDULE_HISTORY_MAX];
    uint32_t count = 0;
    fresh_open(&fresh);
    struct uuid client = join(&fresh);
    struct schedule_put c = each_minute(&client);
    TEST_CHECK(put(&fresh, &c) == OK);
    TEST_CHECK(put(&fresh, &c) == ERR_EXISTS);
    TEST_CHECK(!fire(&fresh, AT_US + MINUTE_US - 1, &fired));
    TEST_CHECK(fire(&fresh, AT_US + MINUTE_US, &fired) && fired.outcome == OUTCOME_SUBMITTED);
    TEST_CHECK(state_of(&fresh, &fired.job) == JOB_QUEUED && fired.kind == WORK_KIND_SUCCESS_FAST);
    TEST_CHECK(uuid_equal(&fired.schedule, &c.id) && uuid_equal(&fired.client, &client));
    TEST_CHECK(!fire(&fresh, AT_US + MINUTE_US, &fired)); /* not twice */
    fresh_reopen(&fresh);
    for (uint32_t i = 2; i <= 20; i++)
        TEST_CHECK(fire_all(&fresh, AT_US + i * MINUTE_US) == 1);
    struct schedule s = look(&fresh, &c.id, entries, &count);
    TEST_CHECK(s.submitted == 20 && s.skipped == 0 && s.next_us == AT_US + 21 * MINUTE_US);
    TEST_CHECK(count == SCHEDULE_HISTORY_MAX && entries[0].at_us == AT_US + 20 * MINUTE_US);
    TEST_CHECK(uuid_equal(&entries[0].job, &s.last_job) && entries[15].at_us == AT_US + 5 * MINUTE_US);
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

static struct key row_of(const struct uuid *id)
{
    struct key key = {.size = 0};
    key_add_u8(&key, 0); /* the row of its own */
    key_add_uuid(&key, id);
    return key;
}

#define DAY_US (UINT64_C(1440) * MINUTE_US)

static struct schedule_retimed retime_behind(struct fresh *fresh, uint64_t wall_us, const struct uuid *after)
{
    struct answer answer;
    struct schedule_retimed retimed = {.more = 2};
    struct schedule_retime c = {.after = *after, .wall_us = wall_us};
    TEST_ASSERT(batch_one(fresh->store, &schedule_retime_class, wall_us, &c, &answer) == OK);
    if (TEST_CHECK(answer.size == sizeof(retimed)))
        memcpy(&retimed, answer.bytes, sizeof(retimed));
    return retimed;
}

/* All of them: how many were brought forward. */
static uint32_t retime(struct fresh *fresh, uint64_t wall_us)
{
    struct schedule_retimed retimed = {.after = nobody};
    uint32_t changed = 0;
    do {
        retimed = retime_behind(fresh, wall_us, &retimed.after);
        TEST_CHECK(retimed.damaged == 0);
        changed += retimed.changed;
    } while (retimed.more);
    return changed;
}

static uint64_t next_of(struct fresh *fresh, const struct uuid *id)
{
    struct schedule_entry entries[SCHEDULE_HISTORY_MAX];
    return look(fresh, id, entries, NULL).next_us;
}

/* Made while the clock was a month ahead; then it is right. */
static void test_schedule_made_by_a_clock_that_was_ahead(void)
{
    struct fresh fresh;
    struct schedule_fired fired;
    fresh_open(&fresh);
    struct uuid client = join(&fresh);
    struct schedule_put c = each_minute(&client), paused = each_minute(&client),
                        yearly = each_minute(&client);
    yearly.cron = span_text("0 0 1 11 *"); /* the next one is the same, whichever clock is right */
    TEST_CHECK(put_at(&fresh, AT_US + 30 * DAY_US, &c) == OK && put(&fresh, &yearly) == OK);
    TEST_CHECK(put_at(&fresh, AT_US + 30 * DAY_US, &paused) == OK);
    struct schedule_switch off = {.id = paused.id, .client = client, .paused = 1};
    TEST_CHECK(batch_one(fresh.store, &schedule_switch_class, AT_US, &off, NULL) == OK);
    uint64_t of_year = next_of(&fresh, &yearly.id);
    fresh_reopen(&fresh);
    TEST_CHECK(!fire(&fresh, AT_US + MINUTE_US, &fired));
    TEST_CHECK(retime(&fresh, AT_US) == 1 && next_of(&fresh, &c.id) == AT_US + MINUTE_US);
    TEST_CHECK(next_of(&fresh, &yearly.id) == of_year && next_of(&fresh, &paused.id) == 0);
    TEST_CHECK(fire_all(&fresh, AT_US + MINUTE_US) == 1 && fire_all(&fresh, AT_US + 2 * MINUTE_US) == 1);
    TEST_CHECK(retime(&fresh, AT_US + 2 * MINUTE_US) == 0);
    fresh_close(&fresh);
}

/* What it has done it doesn't do again when the clock comes to it again. */
static void test_schedule_does_no_time_twice_when_the_clock_goes_back(void)
{
    struct fresh fresh;
    struct schedule_fired fired;
    fresh_open(&fresh);
    struct uuid client = join(&fresh);
    struct schedule_put c = each_minute(&client);
    TEST_CHECK(put(&fresh, &c) == OK);
    for (uint32_t i = 1; i <= 3; i++)
        TEST_CHECK(fire_all(&fresh, AT_US + i * MINUTE_US) == 1);
    TEST_CHECK(retime(&fresh, AT_US) == 0 && next_of(&fresh, &c.id) == AT_US + 4 * MINUTE_US);
    TEST_CHECK(retime(&fresh, AT_US - 2 * MINUTE_US) == 1 && next_of(&fresh, &c.id) == AT_US - MINUTE_US);
    TEST_CHECK(fire_all(&fresh, AT_US) == 1); /* the one before came too late, and is made up for by none */
    TEST_CHECK(next_of(&fresh, &c.id) == AT_US + 4 * MINUTE_US && !fire(&fresh, AT_US, &fired));
    fresh_close(&fresh);
}

/* As far as its history goes, and no further. */
static void test_schedule_does_none_of_its_last_times_twice(void)
{
    struct fresh fresh;
    const uint64_t last_us = AT_US + SCHEDULE_HISTORY_MAX * MINUTE_US;
    fresh_open(&fresh);
    struct uuid client = join(&fresh);
    struct schedule_put c = each_minute(&client);
    TEST_CHECK(put(&fresh, &c) == OK);
    for (uint32_t i = 1; i <= SCHEDULE_HISTORY_MAX; i++)
        TEST_CHECK(fire_all(&fresh, AT_US + i * MINUTE_US) == 1);
    TEST_CHECK(retime(&fresh, AT_US) == 0 && next_of(&fresh, &c.id) == last_us + MINUTE_US);
    TEST_CHECK(fire_all(&fresh, last_us) == 0 && fire_all(&fresh, last_us + MINUTE_US) == 1);
    TEST_CHECK(retime(&fresh, AT_US) == 1 && next_of(&fresh, &c.id) == AT_US + MINUTE_US);
    fresh_close(&fresh);
}

/* A first of February that is a Monday comes in 2027, and then in 2038, which is beyond what is looked at from 2028 on: what it waits for
 * stays, or it would never come. */
static void test_schedule_that_finds_no_earlier_time_keeps_its_own(void)
{
    const uint64_t of_2028 = AT_US + 1509 * DAY_US, of_2035 = AT_US + 4066 * DAY_US;
    struct fresh fresh;
    struct cron cron;
    char text[64];
    fresh_open(&fresh);
    struct uuid client = join(&fresh);
    struct schedule_put c = each_minute(&client);
    c.cron = span_text("0 0 */31 2 MON");
    TEST_ASSERT(cron_parse(c.cron, &cron, text, sizeof(text)) && cron_next_us(&cron, of_2028) == 0);
    TEST_CHECK(put_at(&fresh, of_2035, &c) == OK);
    uint64_t next = next_of(&fresh, &c.id);
    TEST_CHECK(next > of_2035 && retime(&fresh, of_2028) == 0 && next_of(&fresh, &c.id) == next);
    TEST_CHECK(fire_all(&fresh, next - 1) == 0 && fire_all(&fresh, next) == 1);
    fresh_close(&fresh);
}

/* A clock that is ahead leaves out times to come, by each policy and for each reason: right again, it comes to them. */
static void test_schedule_does_what_a_clock_that_was_ahead_has_left_out(void)
{
    struct fresh fresh;
    struct schedule_fired fired;
    struct schedule_entry entries[SCHEDULE_HISTORY_MAX];
    fresh_open(&fresh);
    struct uuid client = join(&fresh);
    struct schedule_put hourly = each_minute(&client), full = each_minute(&client),
                        overlaps = each_minute(&client);
    hourly.cron = span_text("13 * * * *");
    hourly.missed = MISSED_SKIP;
    hourly.grace_us = MINUTE_US;
    TEST_CHECK(put(&fresh, &hourly) == OK);
    TEST_CHECK(fire_all(&fresh, AT_US + 5 * HOUR_US + 2 * MINUTE_US) == 0);
    struct schedule s = look(&fresh, &hourly.id, entries, NULL);
    TEST_CHECK(s.skipped == 5 && s.next_us == AT_US + 6 * HOUR_US);
    TEST_CHECK(retime(&fresh, AT_US) == 1 && next_of(&fresh, &hourly.id) == AT_US + HOUR_US);
    for (uint32_t i = 1; i <= 7; i++)
        TEST_CHECK(fire_all(&fresh, AT_US + i * HOUR_US) == 1);
    s = look(&fresh, &hourly.id, entries, NULL);
    TEST_CHECK(s.submitted == 7 && s.skipped == 5 && s.next_us == AT_US + 8 * HOUR_US);
    struct schedule_remove gone = {.id = hourly.id, .client = client};
    TEST_CHECK(batch_one(fresh.store, &schedule_remove_class, AT_US, &gone, NULL) == OK);
    TEST_CHECK(put(&fresh, &full) == OK && fire_with(&fresh, AT_US + MINUTE_US, 0, &fired));
    TEST_CHECK(fired.outcome == OUTCOME_FULL && retime(&fresh, AT_US) == 1);
    TEST_CHECK(fire_all(&fresh, AT_US + MINUTE_US) == 1 && retime(&fresh, AT_US) == 0);
    gone.id = full.id;
    TEST_CHECK(batch_one(fresh.store, &schedule_remove_class, AT_US, &gone, NULL) == OK);
    overlaps.overlap = OVERLAP_SKIP;
    TEST_CHECK(put(&fresh, &overlaps) == OK && fire(&fresh, AT_US + MINUTE_US, &fired));
    TEST_CHECK(fire_all(&fresh, AT_US + 2 * MINUTE_US) == 0 && retime(&fresh, AT_US) == 1);
    TEST_CHECK(next_of(&fresh, &overlaps.id) == AT_US + 2 * MINUTE_US); /* there is a job of the first one */
    struct job_cancel cancel = {.id = fired.job, .kept_us = MINUTE_US};
    TEST_CHECK(batch_one(fresh.store, &job_cancel_class, AT_US, &cancel, NULL) == OK);
    TEST_CHECK(fire_all(&fresh, AT_US + 2 * MINUTE_US) == 1);
    fresh_close(&fresh);
}

/* Off and on again after a clock that was set back: as without. */
static void test_schedule_does_no_time_twice_when_it_was_paused(void)
{
    struct fresh fresh;
    struct schedule_fired fired;
    fresh_open(&fresh);
    struct uuid client = join(&fresh);
    struct schedule_put c = each_minute(&client);
    struct schedule_switch change = {.id = c.id, .client = client, .paused = 1};
    TEST_CHECK(put(&fresh, &c) == OK);
    for (uint32_t i = 1; i <= 3; i++)
        TEST_CHECK(fire_all(&fresh, AT_US + i * MINUTE_US) == 1);
    TEST_CHECK(retime(&fresh, AT_US) == 0);
    TEST_CHECK(batch_one(fresh.store, &schedule_switch_class, AT_US, &change, NULL) == OK);
    change.paused = 0;
    TEST_CHECK(batch_one(fresh.store, &schedule_switch_class, AT_US, &change, NULL) == OK);
    TEST_CHECK(next_of(&fresh, &c.id) == AT_US + 4 * MINUTE_US);
    TEST_CHECK(!fire(&fresh, AT_US + 3 * MINUTE_US, &fired) && fire_all(&fresh, AT_US + 4 * MINUTE_US) == 1);
    fresh_close(&fresh);
}

/* More than one command looks at and writes, of several clients; one of them is damaged. */
static void test_schedule_retimes_very_many_and_passes_by_what_is_damaged(void)
{
    enum { MANY = SCHEDULE_RETIME_LOOK_MAX + SCHEDULE_RETIME_MAX + 3 };
    struct fresh fresh;
    struct schedule_retimed retimed;
    struct schedule_put c;
    fresh_open(&fresh);
    for (uint32_t i = 0, left = 0; i < MANY; i++, left--) {
        static struct uuid client;
        if (left == 0) {
            client = join(&fresh);
            left = SCHEDULES_MAX;
        }
        c = each_minute(&client);
        TEST_ASSERT(put_at(&fresh, AT_US + 30 * DAY_US, &c) == OK);
    }
    struct spoiling row = {TABLE_SCHEDULES, row_of(&c.id)};
    TEST_CHECK(fresh_do(&fresh, AT_US, spoil_row, &row) == OK);
    retimed = retime_behind(&fresh, AT_US, &nobody);
    TEST_CHECK(retimed.changed == SCHEDULE_RETIME_MAX && retimed.more == 1);
    uint32_t changed = retimed.changed, damaged = retimed.damaged;
    while (retimed.more) {
        retimed = retime_behind(&fresh, AT_US, &retimed.after);
        changed += retimed.changed;
        damaged += retimed.damaged;
    }
    TEST_CHECK(changed == MANY - 1 && damaged == 1);
    retimed = retime_behind(&fresh, AT_US, &nobody); /* nothing to write: so many are looked at */
    TEST_CHECK(retimed.changed == 0 && retimed.more == 1);
    TEST_CHECK(retime_behind(&fresh, AT_US, &retimed.after).more == 0);
    TEST_CHECK(fresh_do(&fresh, AT_US, spoil_row, &row) == OK);
    TEST_CHECK(retime(&fresh, AT_US) == 1 && next_of(&fresh, &c.id) == AT_US + MINUTE_US);
    fresh_close(&fresh);
}

static void test_schedule_overlap_policies(void)
{
    struct fresh fresh;
    struct schedule_fired first, second;
    struct schedule_entry entries[SCHEDULE_HISTORY_MAX];
    fresh_open(&fresh);
    struct uuid client = join(&fresh);
    struct schedule_put c = each_minute(&client);
    c.overlap = OVERLAP_SKIP;
    TEST_CHECK(put(&fresh, &c) == OK && fire(&fresh, AT_US + MINUTE_US, &first));
    TEST_CHECK(fire(&fresh, AT_US + 2 * MINUTE_US, &second) && second.outcome == OUTCOME_OVERLAP);
    TEST_CHECK(uuid_equal(&second.job, &nobody) && state_of(&fresh, &first.job) == JOB_QUEUED);
    struct schedule s = look(&fresh, &c.id, entries, NULL);
    TEST_CHECK(entries[0].outcome == OUTCOME_OVERLAP && entries[1].outcome == OUTCOME_SUBMITTED);
    TEST_CHECK(s.submitted == 1 && s.skipped == 1);
    struct job_cancel cancel = {.id = first.job, .kept_us = MINUTE_US};
    TEST_CHECK(batch_one(fresh.store, &job_cancel_class, AT_US + 2 * MINUTE_US, &cancel, NULL) == OK);
    TEST_CHECK(fire(&fresh, AT_US + 3 * MINUTE_US, &second) && second.outcome == OUTCOME_SUBMITTED);
    struct schedule_remove gone = {.id = c.id, .client = client};
    TEST_CHECK(batch_one(fresh.store, &schedule_remove_class, AT_US, &gone, NULL) == OK);
    c = each_minute(&client);
    c.overlap = OVERLAP_CANCEL;
    TEST_CHECK(put(&fresh, &c) == OK && fire(&fresh, AT_US + MINUTE_US, &first));
    TEST_CHECK(fire(&fresh, AT_US + 2 * MINUTE_US, &second) && second.outcome == OUTCOME_SUBMITTED);
    TEST_CHECK(uuid_equal(&second.canceled, &first.job) && second.old.from == JOB_QUEUED);
    TEST_CHECK(state_of(&fresh, &first.job) == JOB_CANCELED && state_of(&fresh, &second.job) == JOB_QUEUED);
    fresh_close(&fresh);
}

/* Who runs it is told to stop, and for how long it has run counts: both are in the answer (JOB-421, AMB-J-33). */
static void test_schedule_cancels_a_running_one(void)
{
    struct fresh fresh;
    struct schedule_fired first, second;
    fresh_open(&fresh);
    struct uuid client = join(&fresh);
    struct schedule_put c = each_minute(&client);
    c.overlap = OVERLAP_CANCEL;
    TEST_CHECK(put(&fresh, &c) == OK && fire(&fresh, AT_US + MINUTE_US, &first));
    struct job_claim claim = {.lane = LANE_SERVER,
                              .most = 1,
                              .running = 1,
                              .owner = 1,
                              .lease_us = MINUTE_US,
                              .worker = span_text("worker:7")};
    TEST_CHECK(batch_one(fresh.store, &job_claim_class, AT_US + MINUTE_US + 1000000, &claim, NULL) == OK);
    TEST_CHECK(state_of(&fresh, &first.job) == JOB_RUNNING);
    TEST_CHECK(fire(&fresh, AT_US + 2 * MINUTE_US, &second) && uuid_equal(&second.canceled, &first.job));
    TEST_CHECK(second.old.from == JOB_RUNNING && second.old.state == JOB_CANCELED && second.old.attempt == 1);
    TEST_CHECK(second.old.made && second.old.kind == WORK_KIND_SUCCESS_FAST);
    TEST_CHECK(strcmp(second.old.worker, "worker:7") == 0 && uuid_equal(&second.old.job_client, &client));
    TEST_CHECK(second.old.ran_us > MINUTE_US / 2 && second.old.ran_us <= MINUTE_US - 1000000);
    fresh_close(&fresh);
}

static void test_schedule_missed_policies(void)
{
    struct fresh fresh;
    struct schedule_entry entries[SCHEDULE_HISTORY_MAX];
    struct schedule s;
    uint32_t count = 0;
    uint64_t back = AT_US + 10 * MINUTE_US + MINUTE_US / 4; /* the tenth time is within its grace */
    fresh_open(&fresh);
    struct uuid client = join(&fresh);
    struct schedule_put skip = each_minute(&client), once = each_minute(&client), all = each_minute(&client);
    skip.missed = MISSED_SKIP;
    once.missed = MISSED_RUN_ONCE;
    all.missed = MISSED_RUN_ALL;
    TEST_CHECK(put(&fresh, &skip) == OK && fire_all(&fresh, back) == 1);
    s = look(&fresh, &skip.id, entries, &count);
    TEST_CHECK(s.submitted == 1 && s.skipped == 9 && count == 10 && s.last_us == AT_US + 10 * MINUTE_US);
    TEST_CHECK(entries[0].outcome == OUTCOME_SUBMITTED && entries[1].outcome == OUTCOME_MISSED &&
               entries[1].at_us == AT_US + 9 * MINUTE_US);
    TEST_CHECK(put(&fresh, &once) == OK && fire_all(&fresh, back) == 1);
    s = look(&fresh, &once.id, entries, &count);
    TEST_CHECK(s.submitted == 1 && s.next_us == AT_US + 11 * MINUTE_US);
    TEST_CHECK(put(&fresh, &all) == OK && fire_all(&fresh, back) == 10);
    TEST_CHECK(look(&fresh, &all.id, entries, &count).next_us == AT_US + 11 * MINUTE_US);
    fresh_close(&fresh);
}

static void test_schedule_catches_up_a_day_and_no_more(void)
{
    struct fresh fresh;
    struct schedule_entry entries[SCHEDULE_HISTORY_MAX];
    struct schedule_fired fired;
    fresh_open(&fresh);
    struct uuid client = join(&fresh);
    struct schedule_put c = each_minute(&client);
    c.missed = MISSED_RUN_ALL;
    c.cron = span_text("0 * * * *");
    TEST_CHECK(put(&fresh, &c) == OK);
    uint64_t back = AT_US + 300 * 1440 * MINUTE_US;
    TEST_CHECK(fire_all(&fresh, back) == 24);
    struct schedule s = look(&fresh, &c.id, entries, NULL);
    TEST_CHECK(s.submitted == 24 && s.skipped == SCHEDULE_MISSED_MAX && s.next_us > back);
    struct schedule_put exact = each_minute(&client); /* late by a day exactly: none is left out */
    exact.missed = MISSED_RUN_ALL;
    exact.cron = c.cron;
    TEST_CHECK(put(&fresh, &exact) == OK);
    uint64_t first_us = next_of(&fresh, &exact.id);
    TEST_CHECK(fire_with(&fresh, first_us + SCHEDULE_CATCH_UP_US, 100000, &fired) &&
               fired.outcome == OUTCOME_SUBMITTED && fired.at_us == first_us);
    fresh_close(&fresh);
}

static void test_schedule_full_queue_is_noted_and_it_goes_on(void)
{
    struct fresh fresh;
    struct schedule_fired fired;
    fresh_open(&fresh);
    struct uuid client = join(&fresh);
    struct schedule_put c = each_minute(&client);
    TEST_CHECK(put(&fresh, &c) == OK);
    TEST_CHECK(fire_with(&fresh, AT_US + MINUTE_US, 0, &fired) && fired.outcome == OUTCOME_FULL);
    TEST_CHECK(!fire(&fresh, AT_US + MINUTE_US, &fired));
    TEST_CHECK(fire(&fresh, AT_US + 2 * MINUTE_US, &fired) && fired.outcome == OUTCOME_SUBMITTED);
    fresh_close(&fresh);
}

static void test_schedule_pause_resume_and_run_by_hand(void)
{
    struct fresh fresh;
    struct answer answer;
    struct schedule_fired fired;
    struct schedule_entry entries[SCHEDULE_HISTORY_MAX];
    fresh_open(&fresh);
    struct uuid client = join(&fresh), other = join(&fresh);
    struct schedule_put c = each_minute(&client);
    TEST_CHECK(put(&fresh, &c) == OK);
    struct schedule_switch change = {.id = c.id, .client = client, .paused = 1};
    TEST_CHECK(batch_one(fresh.store, &schedule_switch_class, AT_US, &change, NULL) == OK);
    TEST_CHECK(batch_one(fresh.store, &schedule_switch_class, AT_US, &change, NULL) == OK);
    TEST_CHECK(!fire(&fresh, AT_US + 5 * MINUTE_US, &fired));
    struct schedule_fire now = {.id = c.id,
                                .client = client,
                                .job = fresh_uuid(),
                                .wall_us = AT_US,
                                .runtime_max_ms = 120000,
                                .payload_max = 262144,
                                .queue_max = 1};
    TEST_CHECK(batch_one(fresh.store, &schedule_fire_class, AT_US, &now, &answer) == OK);
    TEST_CHECK(state_of(&fresh, &now.job) == JOB_QUEUED);
    struct schedule s = look(&fresh, &c.id, entries, NULL);
    TEST_CHECK(entries[0].outcome == OUTCOME_BY_HAND && entries[0].at_us == AT_US && s.next_us == 0);
    TEST_CHECK(s.last_us == AT_US && uuid_equal(&s.last_job, &now.job) && s.submitted == 1);
    now.job = fresh_uuid();
    TEST_CHECK(batch_one(fresh.store, &schedule_fire_class, AT_US, &now, &answer) == ERR_QUEUE_FULL);
    now.client = change.client = other;
    TEST_CHECK(batch_one(fresh.store, &schedule_fire_class, AT_US, &now, &answer) == ERR_FORBIDDEN);
    TEST_CHECK(batch_one(fresh.store, &schedule_switch_class, AT_US, &change, NULL) == ERR_FORBIDDEN);
    change = (struct schedule_switch){.id = c.id, .client = client};
    TEST_CHECK(batch_one(fresh.store, &schedule_switch_class, AT_US + 5 * MINUTE_US, &change, NULL) == OK);
    TEST_CHECK(look(&fresh, &c.id, entries, NULL).next_us ==
               AT_US + 6 * MINUTE_US); /* nothing is made up for */
    fresh_close(&fresh);
}

static void test_schedule_refusals_and_lists(void)
{
    struct fresh fresh;
    struct uuid ids[SCHEDULES_MAX];
    uint32_t count = 0;
    fresh_open(&fresh);
    struct uuid client = join(&fresh), other = join(&fresh), stranger = fresh_uuid();
    struct schedule_put c = each_minute(&client);
    c.cron = span_text("61 * * * *");
    TEST_CHECK(put(&fresh, &c) == ERR_INVALID);
    c = each_minute(&client);
    c.kind = WORK_KIND_USER;
    c.kind_name = span_text("mail");
    TEST_CHECK(put(&fresh, &c) == ERR_INVALID);
    c = each_minute(&client);
    c.id = nobody;
    TEST_CHECK(put(&fresh, &c) == ERR_INVALID);
    c = each_minute(&client);
    c.overlap = OVERLAP_COUNT;
    TEST_CHECK(put(&fresh, &c) == ERR_INVALID);
    c = each_minute(&client);
    c.missed = MISSED_COUNT;
    TEST_CHECK(put(&fresh, &c) == ERR_INVALID);
    c = each_minute(&client);
    c.kind = WORK_KINDS_COUNT + 1;
    TEST_CHECK(put(&fresh, &c) == ERR_INVALID);
    c = each_minute(&client);
    c.priority = JOB_PRIORITY_MAX + 1;
    TEST_CHECK(put(&fresh, &c) == ERR_INVALID);
    c = each_minute(&stranger);
    TEST_CHECK(put(&fresh, &c) == ERR_NOT_FOUND);
    c = each_minute(&other);
    c.kind = WORK_KIND_NONE; /* drawn with each job */
    TEST_CHECK(put(&fresh, &c) == OK && put(&fresh, &c) == ERR_EXISTS);
    struct schedule_remove gone = {.id = c.id, .client = other};
    TEST_CHECK(batch_one(fresh.store, &schedule_remove_class, AT_US, &gone, NULL) == OK);
    struct schedule_put never = each_minute(&other);
    never.cron = span_text("0 0 30 2 *");
    TEST_CHECK(put(&fresh, &never) == OK);
    for (uint32_t i = 0; i < SCHEDULES_MAX; i++) {
        c = each_minute(&client);
        TEST_ASSERT(put(&fresh, &c) == OK);
    }
    c = each_minute(&client);
    TEST_CHECK(put(&fresh, &c) == ERR_LIMIT);
    struct view *view = view_open_outside(fresh.store, 0);
    TEST_CHECK(schedule_list(&view->txn, &client, NULL, ids, SCHEDULES_MAX, &count) == OK);
    TEST_CHECK(count == SCHEDULES_MAX);
    TEST_CHECK(schedule_list(&view->txn, &client, &ids[98], ids, SCHEDULES_MAX, &count) == OK && count == 1);
    TEST_CHECK(schedule_list(&view->txn, &other, NULL, ids, SCHEDULES_MAX, &count) == OK && count == 1);
    view_close(view);
    fresh_close(&fresh);
}

static enum error set_timer(struct txn *txn, uint64_t at_us, void *context)
{
    due_set(txn, &(struct due_entry){.queue = DUE_SCHEDULE,
                                     .shard = SCHEDULE_SHARD,
                                     .due_us = at_us,
                                     .id = *(const struct uuid *)context});
    return OK;
}

static uint32_t fire_often(struct fresh *fresh, uint64_t at_us)
{
    struct schedule_fired fired;
    uint32_t submitted = 0;
    for (uint32_t i = 0; i < 8; i++)
        submitted += fire(fresh, at_us, &fired) && fired.outcome == OUTCOME_SUBMITTED;
    return submitted;
}

/* A timer that is damaged is as good as before; that of a schedule which is comes again later, and one that is nobody's goes. */
static void test_schedule_damage_of_one_stops_no_other(void)
{
    struct fresh fresh;
    struct schedule_fired fired;
    fresh_open(&fresh);
    struct uuid client = join(&fresh), stranger = fresh_uuid();
    struct schedule_put c[3];
    TEST_CHECK(fresh_do(&fresh, AT_US, set_timer, &stranger) == OK);
    for (uint32_t i = 0; i < 3; i++) {
        c[i] = each_minute(&client);
        TEST_CHECK(put(&fresh, &c[i]) == OK);
    }
    struct spoiling row = {TABLE_SCHEDULES, row_of(&c[1].id)},
                    timer = {TABLE_DUE, due_key(DUE_SCHEDULE, SCHEDULE_SHARD, AT_US + MINUTE_US, &c[0].id)};
    TEST_CHECK(fresh_do(&fresh, AT_US, spoil_row, &timer) == OK &&
               fresh_do(&fresh, AT_US, spoil_row, &row) == OK);
    TEST_CHECK(fire_often(&fresh, AT_US + MINUTE_US) == 2 && fire_often(&fresh, AT_US + 2 * MINUTE_US) == 2);
    TEST_CHECK(fresh_do(&fresh, AT_US, spoil_row, &row) == OK); /* as it was */
    for (uint32_t i = 0; i < 3; i++) {
        struct schedule_remove gone = {.id = c[i].id, .client = client};
        TEST_CHECK(batch_one(fresh.store, &schedule_remove_class, AT_US, &gone, NULL) == OK);
    }
    TEST_CHECK(!fire(&fresh, AT_US + 100 * MINUTE_US, &fired));
    fresh_close(&fresh);
}

static void test_schedule_numbers_have_names(void)
{
    TEST_CHECK(strcmp(schedule_overlap_name(OVERLAP_CANCEL), "cancel_old") == 0);
    TEST_CHECK(strcmp(schedule_missed_name(MISSED_RUN_ALL), "run_all") == 0);
    TEST_CHECK(strcmp(schedule_outcome_name(OUTCOME_REFUSED), "refused") == 0);
    TEST_CHECK(!schedule_overlap_name(OVERLAP_COUNT) && !schedule_missed_name(MISSED_COUNT) &&
               !schedule_outcome_name(OUTCOME_COUNT));
}

TEST_LIST
= {
    {"schedule submits at each time, never early", test_schedule_submits_at_each_time_and_never_early},
    {"schedule: a key makes one a day", test_a_key_makes_one_schedule_a_day},
    {"schedule made by a clock that was ahead", test_schedule_made_by_a_clock_that_was_ahead},
    {"schedule does no time twice when the clock goes back",
     test_schedule_does_no_time_twice_when_the_clock_goes_back},
    {"schedule does none of its last times twice", test_schedule_does_none_of_its_last_times_twice},
    {"schedule that finds no earlier time keeps its own",
     test_schedule_that_finds_no_earlier_time_keeps_its_own},
    {"schedule does what a clock that was ahead has left out",
     test_schedule_does_what_a_clock_that_was_ahead_has_left_out},
    {"schedule does no time twice when it was paused", test_schedule_does_no_time_twice_when_it_was_paused},
    {"schedule: very many are retimed, and what is damaged is passed by",
     test_schedule_retimes_very_many_and_passes_by_what_is_damaged},
    {"schedule: overlap policies", test_schedule_overlap_policies},
    {"schedule: one that runs is canceled, and its worker can be told (JOB-421, AMB-J-33)",
     test_schedule_cancels_a_running_one},
    {"schedule: missed policies", test_schedule_missed_policies},
    {"schedule catches up a day and no more", test_schedule_catches_up_a_day_and_no_more},
    {"schedule: a full queue is noted, and it goes on", test_schedule_full_queue_is_noted_and_it_goes_on},
    {"schedule: pause, resume, run by hand", test_schedule_pause_resume_and_run_by_hand},
    {"schedule: refusals and lists", test_schedule_refusals_and_lists},
    {"schedule: numbers have names", test_schedule_numbers_have_names},
    {"schedule: damage of one stops no other", test_schedule_damage_of_one_stops_no_other},
    {NULL, NULL},
};
