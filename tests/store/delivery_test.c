/* Deliveries: one for each event and receiver, in order per job and receiver, settled once, sent again, removed. */
#include "acutest.h"

#include "store/client.h"
#include "store/counter.h"
#include "store/job.h"
#include "store/delivery_astray.h"
#include "store/retention.h"
#include "tests/store/fresh.h"
#include "tests/support/spoil.h"

#define AT_US   UINT64_C(1700000000000000)
#define S_US    UINT64_C(1000000)
#define KEPT_US (7 * 86400 * S_US)
#define TOPIC   1

enum { MANY = 64 };

/* ---- a client with a job ---- */

struct scene {
    struct fresh fresh;
    struct uuid client, job;
    uint64_t now_us;
};

static struct uuid join(struct fresh *fresh)
{
    struct client_create c = {.id = fresh_uuid(), .from = span_text("192.0.2.1")};
    TEST_ASSERT(batch_one(fresh->store, &client_create_class, AT_US, &c, NULL) == OK);
    return c.id;
}

static void open_scene(struct scene *s)
{
    fresh_open(&s->fresh);
    s->client = join(&s->fresh);
    s->job = fresh_uuid();
    s->now_us = AT_US;
}

static struct uuid hook(struct scene *s, const char *url, uint32_t events)
{
    struct webhook_put c = {.client = s->client, .id = fresh_uuid(), .events = events, .url = span_text(url)};
    TEST_ASSERT(batch_one(s->fresh.store, &webhook_put_class, s->now_us, &c, NULL) == OK);
    return c.id;
}

struct spreading {
    struct delivery_source source;
    uint32_t count;
};

static enum error spread_body(struct txn *txn, uint64_t at_us, void *context)
{
    struct spreading *x = context;
    const struct delivery_times times = {.at_us = at_us, .steady_us = at_us, .kept_us = KEPT_US};
    return delivery_spread(txn, &times, &x->source, &x->count);
}

/* An event of a job, to whoever wants it; how many deliveries it becomes. */
static uint32_t spread_of(struct scene *s, const struct uuid *job, uint64_t event, uint8_t bit,
                          const char *callback)
{
    struct spreading x = {.source = {.client = s->client,
                                     .job = *job,
                                     .event = event,
                                     .topic = TOPIC,
                                     .bit = bit,
                                     .event_us = AT_US + event,
                                     .callback = span_text(callback)}};
    TEST_CHECK(fresh_do(&s->fresh, s->now_us, spread_body, &x) == OK);
    return x.count;
}

static uint32_t spread(struct scene *s, uint64_t event, const char *callback)
{
    return spread_of(s, &s->job, event, JOB_ENQUEUE, callback);
}

/* ---- looking ---- */

struct copy {
    struct delivery d; /* its texts are the two below */
    char host[DELIVERY_HOST_MAX + 1];
    uint8_t history[DELIVERY_HISTORY_MAX * DELIVERY_ATTEMPT_SIZE];
};

static void copy_of(const struct delivery *d, struct copy *ret)
{
    memset(ret, 0, sizeof(*ret));
    ret->d = *d;
    if (d->host.size)
        memcpy(ret->host, d->host.bytes, d->host.size);
    if (d->history.size)
        memcpy(ret->history, d->history.bytes, d->history.size);
    ret->d.host.bytes = ret->host;
    ret->d.history.bytes = ret->history;
}

static uint32_t list(struct scene *s, enum delivery_list which, const struct uuid *of, struct copy *copies)
{
    struct view *view = view_open_outside(s->fresh.store, 0);
    struct delivery_scan scan;
    struct delivery d;
    struct key key;
    uint32_t count = 0;
    TEST_ASSERT(view != NULL);
    delivery_scan_begin(&view->txn, which, of, NULL, &scan);
    while (count < MANY && delivery_scan_next(&scan, &d, &key) == OK)
        copy_of(&d, &copies[count++]);
    TEST_CHECK(scan_end(&scan.scan) == OK);
    view_close(view);
    return count;
}

static uint32_t of_job(struct scene *s, struct copy *copies)
{
    return list(s, DELIVERY_LIST_JOB, &s->job, copies);
}

/* Its texts are good until four others were looked at. */
static struct copy look_at(struct scene *s, const struct uuid *id)
{
    static struct copy copies[4];
    static uint32_t next;
    struct view *view = view_open_outside(s->fresh.store, 0);
    struct copy *copy = &copies[next++ % 4];
    struct delivery d;
    TEST_ASSERT(view != NULL);
    TEST_ASSERT(delivery_read(&view->txn, id, &d) == OK);
    copy_of(&d, copy);
    view_close(view);
    return *copy;
}

/* Of the only delivery of an event of the scene's job to this receiver. */
static struct uuid id_of(struct scene *s, const struct uuid *webhook, uint64_t event)
{
    static const struct uuid callback = {{0}};
    struct copy copies[MANY];
    uint32_t count = of_job(s, copies);
    for (uint32_t i = 0; i < count; i++)
        if (copies[i].d.event == event && uuid_equal(&copies[i].d.webhook, webhook ? webhook : &callback))
            return copies[i].d.id;
    TEST_ASSERT_(false, "event %u has no delivery", (unsigned)event);
    return callback;
}

/* Those that may be sent now, of all partitions. */
static uint32_t due(struct scene *s, struct uuid ids[MANY])
{
    struct view *view = view_open_outside(s->fresh.store, 0);
    uint32_t count = 0;
    TEST_ASSERT(view != NULL);
    for (uint16_t p = 0; p < DELIVERY_PARTITIONS; p++) {
        struct due_entry lane, entries[MANY];
        uint32_t next = 0, found;
        while (delivery_next_lane(&view->txn, p, next, &lane) == OK) {
            TEST_CHECK(lane.shard / DELIVERY_LANES_EACH == p);
            TEST_CHECK(due_scan_keys(&view->txn, DUE_DELIVERY, lane.shard, s->now_us, entries, MANY - count,
                                     &found) == OK);
            for (uint32_t i = 0; i < found; i++)
                ids[count++] = entries[i].id;
            next = lane.shard % DELIVERY_LANES_EACH + 1u;
        }
    }
    view_close(view);
    return count;
}

static bool is_due(struct scene *s, const struct uuid *id)
{
    struct uuid ids[MANY];
    uint32_t count = due(s, ids);
    for (uint32_t i = 0; i < count; i++)
        if (uuid_equal(&ids[i], id))
            return true;
    return false;
}

static int64_t counted(struct scene *s, uint8_t state)
{
    return fresh_counter(&s->fresh, COUNTER_DELIVERIES, span_of(&state, 1));
}

/* ---- settling ---- */

static struct delivery_result result(const struct uuid *id, uint32_t attempt, enum delivery_outcome outcome)
{
    return (struct delivery_result){.id = *id,
                                    .attempt = attempt,
                                    .outcome = (uint8_t)outcome,
                                    .error =
                                        outcome == DELIVERY_SUCCEED ? DELIVERY_NO_ERROR : DELIVERY_STATUS,
                                    .status = outcome == DELIVERY_SUCCEED ? 200 : 500,
                                    .began_us = AT_US + attempt,
                                    .took_ms = attempt};
}

static enum error settle_all(struct scene *s, const struct delivery_result *results, uint32_t count,
                             uint8_t *ret_settled)
{
    static uint8_t bytes[DELIVERY_RESULTS_MAX * DELIVERY_RESULT_SIZE];
    struct answer answer;
    for (uint32_t i = 0; i < count; i++)
        TEST_CHECK(record_encode(&delivery_result_record, &results[i], bytes + i * DELIVERY_RESULT_SIZE,
                                 DELIVERY_RESULT_SIZE) == DELIVERY_RESULT_SIZE);
    struct delivery_settle c = {.steady_us = s->now_us,
                                .kept_us = KEPT_US,
                                .disable_after_us = 3600 * S_US,
                                .results = span_of(bytes, count * DELIVERY_RESULT_SIZE)};
    enum error e = batch_one(s->fresh.store, &delivery_settle_class, s->now_us, &c, &answer);
    if (!e && TEST_CHECK(answer.size == count))
        memcpy(ret_settled, answer.bytes, count);
    return e;
}

static uint8_t settle(struct scene *s, const struct delivery_result *r)
{
    uint8_t settled = 99;
    TEST_CHECK(settle_all(s, r, 1, &settled) == OK);
    return settled;
}

static uint8_t tell(struct scene *s, const struct uuid *id, uint32_t attempt, enum delivery_outcome outcome)
{
    struct delivery_result r = result(id, attempt, outcome);
    if (outcome == DELIVERY_RETRY)
        r.not_before_us = s->now_us + S_US;
    return settle(s, &r);
}

static enum error resend_by(struct scene *s, const struct uuid *client, const struct uuid *id)
{
    struct delivery_resend c = {.client = *client, .id = *id, .steady_us = s->now_us};
    return batch_one(s->fresh.store, &delivery_resend_class, s->now_us, &c, NULL);
}

static enum error resend(struct scene *s, const struct uuid *id)
{
    return resend_by(s, &s->client, id);
}

/* ---- making them ---- */

static void test_delivery_for_each_receiver_that_wants_the_event_JOB_080_JOB_184_O1(void)
{
    struct scene s;
    struct copy copies[MANY];
    open_scene(&s);
    struct uuid all = hook(&s, "https://a.example/", WEBHOOK_ALL);
    struct uuid queued = hook(&s, "https://b.example:8443/x", 1u << JOB_ENQUEUE);
    struct uuid failed = hook(&s, "https://c.example/", 1u << JOB_FAIL);
    struct uuid off = hook(&s, "https://d.example/", WEBHOOK_ALL);
    struct webhook_switch turn = {.client = s.client, .id = off, .on = 0};
    TEST_CHECK(batch_one(s.fresh.store, &webhook_switch_class, AT_US, &turn, NULL) == OK);
    TEST_CHECK(spread(&s, 1, "https://e.example/cb?x") == 3);
    TEST_CHECK(of_job(&s, copies) == 3 && counted(&s, DELIVERY_PENDING) == 3);
    for (uint32_t i = 0; i < 3; i++) {
        const struct delivery *d = &copies[i].d;
        bool callback = i == 0; /* without a webhook's id it stands first */
        TEST_CHECK(uuid_equal(&d->client, &s.client) && uuid_equal(&d->job, &s.job) && d->event == 1);
        TEST_CHECK(callback || uuid_equal(&d->webhook, &all) || uuid_equal(&d->webhook, &queued));
        TEST_CHECK(strcmp(copies[i].host, callback                        ? "e.example"
                                          : uuid_equal(&d->webhook, &all) ? "a.example"
                                                                          : "b.example:8443") == 0);
        TEST_CHECK(uuid_version(&d->id) == 7 && uuid_time_ms(&d->id) == (AT_US + 1) / 1000);
        TEST_CHECK(d->state == DELIVERY_PENDING && is_due(&s, &d->id));
    }
    TEST_CHECK(spread(&s, 1, "https://e.example/cb?x") == 0); /* again: the same ids */
    TEST_CHECK(spread_of(&s, &s.job, 2, JOB_FAIL, "") == 2 && of_job(&s, copies) == 5);
    TEST_CHECK(uuid_equal(&copies[4].d.webhook, &failed) || uuid_equal(&copies[3].d.webhook, &failed) ||
               uuid_equal(&copies[2].d.webhook, &failed) || uuid_equal(&copies[1].d.webhook, &failed));
    fresh_close(&s.fresh);
}

static void test_delivery_ids_are_the_same_in_every_process_O4(void)
{
    struct scene s;
    open_scene(&s);
    TEST_CHECK(spread(&s, 7, "https://a.example/") == 1);
    struct uuid id = id_of(&s, NULL, 7);
    fresh_reopen(&s.fresh);
    TEST_CHECK(spread(&s, 7, "https://a.example/") == 0);
    struct uuid again = id_of(&s, NULL, 7);
    TEST_CHECK(uuid_equal(&id, &again));
    fresh_close(&s.fresh);
}

static void test_delivery_a_host_has_one_lane(void)
{
    struct scene s;
    open_scene(&s);
    struct uuid jobs[4] = {fresh_uuid(), fresh_uuid(), fresh_uuid(), fresh_uuid()};
    static const char *const urls[] = {"https://a.example/1", "http://A.EXAMPLE?2", "https://a.example/3",
                                       "https://b.example/"};
    uint16_t lanes[4];
    for (int i = 0; i < 4; i++) {
        struct copy copy;
        TEST_CHECK(spread_of(&s, &jobs[i], 1, JOB_CREATE, urls[i]) == 1);
        TEST_CHECK(list(&s, DELIVERY_LIST_JOB, &jobs[i], &copy) == 1);
        lanes[i] = copy.d.lane;
    }
    TEST_CHECK(lanes[0] == lanes[1] && lanes[0] == lanes[2] && lanes[0] != lanes[3]);
    fresh_close(&s.fresh);
}

/* ---- order ---- */

static void test_delivery_order_is_kept_per_job_and_receiver_O3_O6_AMB_J_43(void)
{
    struct scene s;
    struct uuid ids[MANY];
    open_scene(&s);
    struct uuid other = hook(&s, "https://a.example/", WEBHOOK_ALL), job = fresh_uuid();
    for (uint64_t event = 1; event <= 3; event++)
        TEST_CHECK(spread(&s, event, "https://a.example/") == 2);
    TEST_CHECK(spread_of(&s, &job, 1, JOB_ENQUEUE, "https://a.example/") == 2);
    TEST_CHECK(due(&s, ids) == 4); /* the first of each chain */
    struct uuid first = id_of(&s, NULL, 1), second = id_of(&s, NULL, 2), third = id_of(&s, NULL, 3);
    TEST_CHECK(is_due(&s, &first) && !is_due(&s, &second) && !is_due(&s, &third));
    struct uuid to_other = id_of(&s, &other, 1);
    TEST_CHECK(is_due(&s, &to_other));
    TEST_CHECK(tell(&s, &second, 1, DELIVERY_SUCCEED) == DELIVERY_STALE); /* nobody may be faster */
    TEST_CHECK(tell(&s, &first, 1, DELIVERY_SUCCEED) == DELIVERY_SETTLED);
    TEST_CHECK(!is_due(&s, &first) && is_due(&s, &second) && !is_due(&s, &third));
    TEST_CHECK(tell(&s, &second, 1, DELIVERY_RETRY) == DELIVERY_SETTLED);
    TEST_CHECK(!is_due(&s, &second) && !is_due(&s, &third));
    s.now_us += S_US;
    TEST_CHECK(is_due(&s, &second) && !is_due(&s, &third));
    TEST_CHECK(tell(&s, &second, 2, DELIVERY_GIVE_UP) == DELIVERY_SETTLED && is_due(&s, &third));
    TEST_CHECK(spread(&s, 4, "https://a.example/") == 2);
    struct uuid fourth = id_of(&s, NULL, 4);
    TEST_CHECK(!is_due(&s, &fourth) && tell(&s, &third, 1, DELIVERY_SUCCEED) == DELIVERY_SETTLED);
    TEST_CHECK(is_due(&s, &fourth) && tell(&s, &fourth, 1, DELIVERY_SUCCEED) == DELIVERY_SETTLED);
    TEST_CHECK(spread(&s, 5, "https://a.example/") == 2);
    struct uuid fifth = id_of(&s, NULL, 5);
    TEST_CHECK(is_due(&s, &fifth)); /* nobody is in front of it */
    fresh_close(&s.fresh);
}

/* Its row in the outbox was buried and revived: it comes behind its successors. */
static void test_delivery_that_comes_late_O3(void)
{
    struct scene s;
    open_scene(&s);
    TEST_CHECK(spread(&s, 1, "https://a.example/") == 1 && spread(&s, 4, "https://a.example/") == 1);
    struct uuid first = id_of(&s, NULL, 1), fourth = id_of(&s, NULL, 4);
    TEST_CHECK(spread(&s, 2, "https://a.example/") == 1); /* not too late: the fourth waits */
    struct uuid second = id_of(&s, NULL, 2);
    TEST_CHECK(!is_due(&s, &second) && tell(&s, &first, 1, DELIVERY_SUCCEED) == DELIVERY_SETTLED);
    TEST_CHECK(is_due(&s, &second) && !is_due(&s, &fourth));
    TEST_CHECK(tell(&s, &second, 1, DELIVERY_SUCCEED) == DELIVERY_SETTLED && is_due(&s, &fourth));
    TEST_CHECK(spread(&s, 3, "https://a.example/") == 1); /* too late: the fourth may be on its way */
    struct uuid third = id_of(&s, NULL, 3);
    TEST_CHECK(is_due(&s, &third) && is_due(&s, &fourth) && look_at(&s, &third).d.beside == 1);
    TEST_CHECK(spread(&s, 5, "https://a.example/") == 1);
    struct uuid fifth = id_of(&s, NULL, 5);
    TEST_CHECK(!is_due(&s, &fifth));
    TEST_CHECK(tell(&s, &third, 1, DELIVERY_SUCCEED) == DELIVERY_SETTLED && !is_due(&s, &fifth));
    TEST_CHECK(tell(&s, &fourth, 1, DELIVERY_SUCCEED) == DELIVERY_SETTLED && is_due(&s, &fifth));
    fresh_close(&s.fresh);
}

/* ---- what comes of attempts ---- */

static void test_delivery_attempts_are_kept_JOB_326_JOB_411(void)
{
    struct scene s;
    open_scene(&s);
    TEST_CHECK(spread(&s, 1, "https://a.example/") == 1);
    struct uuid id = id_of(&s, NULL, 1);
    for (uint32_t attempt = 1; attempt <= 11; attempt++) {
        struct delivery_result r = result(&id, attempt, DELIVERY_RETRY);
        r.not_before_us = s.now_us + 1;
        r.error = attempt % 2 ? DELIVERY_TIMEOUT : DELIVERY_STATUS;
        TEST_CHECK(settle(&s, &r) == DELIVERY_SETTLED);
    }
    struct copy copy = look_at(&s, &id);
    TEST_CHECK(copy.d.attempts == 11 && copy.d.tries == 11 && copy.d.state == DELIVERY_PENDING);
    TEST_CHECK(copy.d.error == DELIVERY_TIMEOUT && copy.d.not_before_us == s.now_us + 1);
    TEST_CHECK(delivery_attempts_kept(&copy.d) == DELIVERY_HISTORY_MAX);
    for (uint32_t i = 0; i < DELIVERY_HISTORY_MAX; i++) {
        struct delivery_attempt a = delivery_attempt_at(&copy.d, i);
        uint32_t number = 11 - DELIVERY_HISTORY_MAX + 1 + i;
        TEST_CHECK(a.at_us == AT_US + number && a.took_ms == number && a.status == 500);
        TEST_CHECK(a.error == (number % 2 ? DELIVERY_TIMEOUT : DELIVERY_STATUS));
        TEST_CHECK(copy.history[(i + 1) * DELIVERY_ATTEMPT_SIZE - 1] == 0); /* free for what may come */
    }
    TEST_CHECK(strcmp(delivery_error_code(DELIVERY_TIMEOUT), "RFA_DEPENDENCY_TIMEOUT") == 0); /* JOB-359 */
    fresh_reopen(&s.fresh);
    copy = look_at(&s, &id);
    TEST_CHECK(copy.d.attempts == 11 && strcmp(copy.host, "a.example") == 0);
    fresh_close(&s.fresh);
}

/* A server that starts while the wall clock is set back goes on where this was, and doesn't wait for the clock to come there. */
static void test_delivery_notes_the_time_that_it_waits_by_D9_O2(void)
{
    struct scene s;
    open_scene(&s);
    TEST_CHECK(spread(&s, 1, "https://a.example/") == 1);
    TEST_CHECK(fresh_counter(&s.fresh, COUNTER_STEADY, span_of(NULL, 0)) == AT_US);
    struct uuid id = id_of(&s, NULL, 1);
    s.now_us += 3600 * S_US;
    TEST_CHECK(tell(&s, &id, 1, DELIVERY_RETRY) == DELIVERY_SETTLED);
    TEST_CHECK(fresh_counter(&s.fresh, COUNTER_STEADY, span_of(NULL, 0)) == (int64_t)s.now_us);
    s.now_us += 3600 * S_US;
    TEST_CHECK(tell(&s, &id, 2, DELIVERY_GIVE_UP) == DELIVERY_SETTLED && resend(&s, &id) == OK);
    TEST_CHECK(fresh_counter(&s.fresh, COUNTER_STEADY, span_of(NULL, 0)) == (int64_t)s.now_us);
    fresh_close(&s.fresh);
}

static void test_delivery_told_twice_counts_once_O5(void)
{
    struct scene s;
    open_scene(&s);
    TEST_CHECK(spread(&s, 1, "https://a.example/") == 1 && spread(&s, 2, "https://a.example/") == 1);
    struct uuid id = id_of(&s, NULL, 1), unknown = fresh_uuid();
    TEST_CHECK(tell(&s, &id, 1, DELIVERY_RETRY) == DELIVERY_SETTLED);
    TEST_CHECK(tell(&s, &id, 1, DELIVERY_RETRY) == DELIVERY_STALE);
    TEST_CHECK(tell(&s, &id, 1, DELIVERY_SUCCEED) == DELIVERY_STALE); /* of one whose successor was faster */
    TEST_CHECK(tell(&s, &id, 3, DELIVERY_SUCCEED) == DELIVERY_STALE);
    TEST_CHECK(tell(&s, &unknown, 1, DELIVERY_SUCCEED) == DELIVERY_STALE);
    TEST_CHECK(look_at(&s, &id).d.attempts == 1);
    TEST_CHECK(tell(&s, &id, 2, DELIVERY_SUCCEED) == DELIVERY_SETTLED);
    TEST_CHECK(tell(&s, &id, 2, DELIVERY_SUCCEED) == DELIVERY_STALE);
    TEST_CHECK(tell(&s, &id, 3, DELIVERY_GIVE_UP) == DELIVERY_STALE);
    TEST_CHECK(counted(&s, DELIVERY_DELIVERED) == 1 && counted(&s, DELIVERY_PENDING) == 1);
    fresh_close(&s.fresh);
}

static void test_delivery_results_that_cant_be_are_refused(void)
{
    struct scene s;
    uint8_t settled[4];
    open_scene(&s);
    TEST_CHECK(spread(&s, 1, "https://a.example/") == 1);
    struct uuid id = id_of(&s, NULL, 1);
    struct delivery_result good = result(&id, 1, DELIVERY_SUCCEED), bad[2] = {good, good};
    bad[1].outcome = DELIVERY_RESEND;
    TEST_CHECK(settle_all(&s, bad, 2, settled) == ERR_INVALID);
    bad[1] = good;
    bad[1].error = DELIVERY_ERROR_COUNT;
    TEST_CHECK(settle_all(&s, bad, 2, settled) == ERR_INVALID);
    bad[1] = good;
    bad[1].error = DELIVERY_STATUS;
    TEST_CHECK(settle_all(&s, bad, 2, settled) == ERR_INVALID);
    bad[1] = result(&id, 1, DELIVERY_RETRY); /* and no time for it */
    TEST_CHECK(settle_all(&s, bad, 2, settled) == ERR_INVALID);
    bad[1] = good;
    bad[1].not_before_us = 1;
    TEST_CHECK(settle_all(&s, bad, 2, settled) == ERR_INVALID);
    TEST_CHECK(settle_all(&s, bad, 0, settled) == ERR_INVALID);
    struct delivery_settle c = {.results = span_of("x", 1)};
    TEST_CHECK(batch_one(s.fresh.store, &delivery_settle_class, AT_US, &c, NULL) == ERR_INVALID);
    TEST_CHECK(look_at(&s, &id).d.attempts == 0);
    fresh_close(&s.fresh);
}

static void test_delivery_may_end_without_an_attempt(void)
{
    struct scene s;
    open_scene(&s);
    for (uint64_t event = 1; event <= 2; event++)
        TEST_CHECK(spread(&s, event, "https://a.example/") == 1);
    struct uuid first = id_of(&s, NULL, 1), second = id_of(&s, NULL, 2);
    struct delivery_result r = result(&first, 0, DELIVERY_DROP);
    r.error = DELIVERY_REMOVED;
    r.status = 0;
    TEST_CHECK(settle(&s, &r) == DELIVERY_SETTLED);
    struct copy copy = look_at(&s, &first);
    TEST_CHECK(copy.d.state == DELIVERY_DROPPED && copy.d.attempts == 0 && copy.d.error == DELIVERY_REMOVED &&
               copy.d.history.size == 0);
    TEST_CHECK(tell(&s, &second, 1, DELIVERY_RETRY) == DELIVERY_SETTLED);
    r = result(&second, 1, DELIVERY_GIVE_UP);
    r.error = DELIVERY_DISABLED;
    TEST_CHECK(settle(&s, &r) == DELIVERY_SETTLED);
    copy = look_at(&s, &second);
    TEST_CHECK(copy.d.state == DELIVERY_FAILED && copy.d.attempts == 1 && copy.d.error == DELIVERY_DISABLED);
    fresh_close(&s.fresh);
}

static void test_delivery_many_at_once(void)
{
    struct scene s;
    struct delivery_result results[8];
    uint8_t settled[8];
    open_scene(&s);
    for (uint64_t event = 1; event <= 3; event++)
        TEST_CHECK(spread(&s, event, "https://a.example/") == 1);
    struct uuid ids[3] = {id_of(&s, NULL, 1), id_of(&s, NULL, 2), id_of(&s, NULL, 3)};
    results[0] = result(&ids[0], 1, DELIVERY_SUCCEED);
    results[1] = result(&ids[2], 1, DELIVERY_SUCCEED); /* not before the second */
    results[2] = result(&ids[1], 1, DELIVERY_SUCCEED);
    results[3] = result(&ids[2], 1, DELIVERY_SUCCEED);
    TEST_CHECK(settle_all(&s, results, 4, settled) == OK);
    TEST_CHECK(settled[0] == DELIVERY_SETTLED && settled[1] == DELIVERY_STALE &&
               settled[2] == DELIVERY_SETTLED && settled[3] == DELIVERY_SETTLED);
    TEST_CHECK(counted(&s, DELIVERY_DELIVERED) == 3);
    fresh_close(&s.fresh);
}

static void test_delivery_410_disables_the_webhook(void)
{
    struct scene s;
    open_scene(&s);
    struct uuid id = hook(&s, "https://a.example/", WEBHOOK_ALL);
    TEST_CHECK(spread(&s, 1, "https://b.example/") == 2);
    struct uuid to_hook = id_of(&s, &id, 1), callback = id_of(&s, NULL, 1);
    struct delivery_result r = result(&to_hook, 1, DELIVERY_GIVE_UP);
    r.status = DELIVERY_GONE_STATUS;
    TEST_CHECK(settle(&s, &r) == DELIVERY_WEBHOOK_DISABLED);
    r = result(&callback, 1, DELIVERY_GIVE_UP);
    r.status = DELIVERY_GONE_STATUS;
    TEST_CHECK(settle(&s, &r) == DELIVERY_SETTLED); /* there is nothing to disable */
    TEST_CHECK(spread(&s, 2, "") == 0);
    TEST_CHECK(resend(&s, &to_hook) == ERR_CONFLICT);
    struct webhook_switch turn = {.client = s.client, .id = id, .on = 1};
    TEST_CHECK(batch_one(s.fresh.store, &webhook_switch_class, AT_US, &turn, NULL) == OK);
    TEST_CHECK(resend(&s, &to_hook) == OK && spread(&s, 3, "") == 1);
    fresh_close(&s.fresh);
}

static void test_delivery_given_up_and_no_retry_disables_a_failing_webhook(void)
{
    struct scene s;
    open_scene(&s);
    struct uuid id = hook(&s, "https://a.example/", WEBHOOK_ALL);
    for (uint64_t event = 1; event <= 2; event++)
        TEST_CHECK(spread(&s, event, "") == 1);
    struct uuid first = id_of(&s, &id, 1), second = id_of(&s, &id, 2);
    TEST_CHECK(tell(&s, &first, 1, DELIVERY_RETRY) == DELIVERY_SETTLED);
    TEST_CHECK(tell(&s, &first, 2, DELIVERY_GIVE_UP) == DELIVERY_SETTLED);
    s.now_us += 6 * 86400 * S_US;
    TEST_CHECK(tell(&s, &second, 1, DELIVERY_RETRY) == DELIVERY_SETTLED);
    TEST_CHECK(look_at(&s, &second).d.state == DELIVERY_PENDING && look_at(&s, &second).d.not_before_us);
    TEST_CHECK(tell(&s, &second, 2, DELIVERY_GIVE_UP) == DELIVERY_WEBHOOK_DISABLED);
    fresh_close(&s.fresh);
}

/* ---- sending again ---- */

static void test_delivery_is_sent_again(void)
{
    struct scene s;
    struct copy copies[MANY];
    open_scene(&s);
    struct uuid other = join(&s.fresh), unknown = fresh_uuid();
    for (uint64_t event = 1; event <= 3; event++)
        TEST_CHECK(spread(&s, event, "https://a.example/") == 1);
    struct uuid first = id_of(&s, NULL, 1), second = id_of(&s, NULL, 2), third = id_of(&s, NULL, 3);
    TEST_CHECK(resend_by(&s, &other, &first) == ERR_FORBIDDEN && resend(&s, &unknown) == ERR_NOT_FOUND);
    TEST_CHECK(resend(&s, &first) == OK && resend(&s, &third) == OK); /* due already; waits for its turn */
    TEST_CHECK(!is_due(&s, &third) && look_at(&s, &first).d.beside == 0);
    TEST_CHECK(tell(&s, &first, 1, DELIVERY_RETRY) == DELIVERY_SETTLED && !is_due(&s, &first));
    TEST_CHECK(resend(&s, &first) == OK && is_due(&s, &first)); /* not after its backoff, but now */
    TEST_CHECK(tell(&s, &first, 2, DELIVERY_GIVE_UP) == DELIVERY_SETTLED);
    TEST_CHECK(list(&s, DELIVERY_LIST_FAILED, &s.client, copies) == 1 && uuid_equal(&copies[0].d.id, &first));
    TEST_CHECK(resend(&s, &first) == OK && list(&s, DELIVERY_LIST_FAILED, &s.client, copies) == 0);
    struct copy copy = look_at(&s, &first);
    TEST_CHECK(copy.d.state == DELIVERY_PENDING && copy.d.attempts == 2 && copy.d.tries == 0 &&
               copy.d.beside == 1 && copy.d.gone_us == 0 && delivery_attempts_kept(&copy.d) == 2);
    TEST_CHECK(is_due(&s, &first) && is_due(&s, &second)); /* it stands beside its chain */
    fresh_sound(&s.fresh);
    TEST_CHECK(tell(&s, &first, 3, DELIVERY_SUCCEED) == DELIVERY_SETTLED);
    TEST_CHECK(is_due(&s, &second) && !is_due(&s, &third)); /* whose order is untouched */
    TEST_CHECK(resend(&s, &first) == OK &&
               look_at(&s, &first).d.state == DELIVERY_PENDING); /* delivered, too */
    struct delivery_result r = result(&first, 3, DELIVERY_DROP);
    r.error = DELIVERY_REMOVED;
    TEST_CHECK(settle(&s, &r) == DELIVERY_SETTLED && resend(&s, &first) == ERR_TRANSITION);
    fresh_close(&s.fresh);
}

/* Where the webhook has gone nobody would send it; where its row can't be read nobody knows. */
static void test_delivery_is_sent_again_to_a_webhook_that_is_there(void)
{
    struct scene s;
    open_scene(&s);
    struct uuid webhook = hook(&s, "https://a.example/", WEBHOOK_ALL);
    TEST_CHECK(spread(&s, 1, "") == 1);
    struct uuid id = id_of(&s, &webhook, 1);
    s.now_us += S_US;
    TEST_CHECK(tell(&s, &id, 1, DELIVERY_GIVE_UP) == DELIVERY_SETTLED);
    struct copy copy = look_at(&s, &id);
    TEST_CHECK(copy.d.finished_us == s.now_us && copy.d.gone_us == s.now_us + KEPT_US);
    struct key row = key_of_uuid(&s.client);
    key_add_uuid(&row, &webhook);
    fresh_flip(&s.fresh, TABLE_WEBHOOKS, row);
    TEST_CHECK(resend(&s, &id) == ERR_DAMAGED);
    fresh_flip(&s.fresh, TABLE_WEBHOOKS, row);
    TEST_CHECK(resend(&s, &id) == OK && tell(&s, &id, 2, DELIVERY_GIVE_UP) == DELIVERY_SETTLED);
    struct webhook_remove gone = {.client = s.client, .id = webhook};
    TEST_CHECK(batch_one(s.fresh.store, &webhook_remove_class, AT_US, &gone, NULL) == OK);
    TEST_CHECK(resend(&s, &id) == ERR_CONFLICT && look_at(&s, &id).d.state == DELIVERY_FAILED);
    fresh_close(&s.fresh);
}

static void test_delivery_sent_again_holds_nobody_up_O3(void)
{
    struct scene s;
    open_scene(&s);
    TEST_CHECK(spread(&s, 1, "https://a.example/") == 1);
    struct uuid first = id_of(&s, NULL, 1);
    TEST_CHECK(tell(&s, &first, 1, DELIVERY_GIVE_UP) == DELIVERY_SETTLED && resend(&s, &first) == OK);
    TEST_CHECK(spread(&s, 2, "https://a.example/") == 1);
    struct uuid second = id_of(&s, NULL, 2);
    TEST_CHECK(is_due(&s, &second) && is_due(&s, &first));
    fresh_close(&s.fresh);
}

/* ---- limits ---- */

static enum error count_more(struct txn *txn, uint64_t at_us, void *context)
{
    struct scene *s = context;
    uint8_t pending = DELIVERY_PENDING;
    int64_t more = s->now_us == AT_US ? DELIVERIES_PENDING_MAX - 1 : -(DELIVERIES_PENDING_MAX - 1);
    (void)at_us;
    counter_add(txn, COUNTER_DELIVERIES_PENDING, span_of(&s->client, sizeof(s->client)), more);
    counter_add(txn, COUNTER_DELIVERIES, span_of(&pending, 1), more);
    return OK;
}

static void test_delivery_a_backlog_fails_at_once_and_holds_no_job_up_JOB_326(void)
{
    struct scene s;
    struct copy copies[MANY];
    open_scene(&s);
    TEST_CHECK(fresh_do(&s.fresh, AT_US, count_more, &s) == OK);
    TEST_CHECK(spread(&s, 1, "https://a.example/") == 1 && spread(&s, 2, "https://a.example/") == 1);
    TEST_CHECK(list(&s, DELIVERY_LIST_FAILED, &s.client, copies) == 1);
    TEST_CHECK(copies[0].d.event == 2 && copies[0].d.error == DELIVERY_BACKLOG && copies[0].d.attempts == 0);
    TEST_CHECK(copies[0].d.finished_us == AT_US && copies[0].d.gone_us == AT_US + KEPT_US);
    TEST_CHECK(resend(&s, &copies[0].d.id) == ERR_LIMIT);
    s.now_us++;
    TEST_CHECK(fresh_do(&s.fresh, AT_US, count_more, &s) == OK);
    TEST_CHECK(resend(&s, &copies[0].d.id) == OK);
    fresh_close(&s.fresh);
}

/* Nobody knows the first one's end yet: the third waits for it, although the second has failed already. */
static void test_delivery_a_backlog_lets_nobody_overtake_O3_AMB_J_43(void)
{
    struct scene s;
    open_scene(&s);
    TEST_CHECK(fresh_do(&s.fresh, AT_US, count_more, &s) == OK);
    TEST_CHECK(spread(&s, 1, "https://a.example/") == 1 && spread(&s, 2, "https://a.example/") == 1);
    s.now_us++; /* others come to their end */
    TEST_CHECK(fresh_do(&s.fresh, AT_US, count_more, &s) == OK);
    TEST_CHECK(spread(&s, 3, "https://a.example/") == 1);
    struct uuid first = id_of(&s, NULL, 1), second = id_of(&s, NULL, 2), third = id_of(&s, NULL, 3);
    TEST_CHECK(look_at(&s, &second).d.error == DELIVERY_BACKLOG);
    TEST_CHECK(is_due(&s, &first) && !is_due(&s, &third));
    fresh_sound(&s.fresh);
    TEST_CHECK(resend(&s, &second) == OK && is_due(&s, &second) && !is_due(&s, &third));
    TEST_CHECK(tell(&s, &second, 1, DELIVERY_SUCCEED) == DELIVERY_SETTLED && !is_due(&s, &third));
    TEST_CHECK(tell(&s, &first, 1, DELIVERY_SUCCEED) == DELIVERY_SETTLED && is_due(&s, &third));
    fresh_close(&s.fresh);
}

/* ---- lists ---- */

static void test_delivery_lists_go_on_where_they_ended(void)
{
    struct scene s;
    struct delivery_scan scan;
    struct delivery d;
    struct key key = {.size = 0};
    open_scene(&s);
    hook(&s, "https://b.example/", WEBHOOK_ALL);
    for (uint64_t event = 1; event <= 5; event++)
        TEST_CHECK(spread(&s, event, "https://a.example/") == 2);
    static const enum delivery_list which[] = {DELIVERY_LIST_ALL, DELIVERY_LIST_JOB};
    for (int w = 0; w < 2; w++) {
        const struct uuid *of = which[w] == DELIVERY_LIST_JOB ? &s.job : &s.client;
        struct copy all[MANY];
        uint32_t count = list(&s, which[w], of, all), seen = 0;
        bool more = true;
        TEST_CHECK(count == 10);
        key.size = 0;
        while (more && seen <= count) {
            struct view *view = view_open_outside(s.fresh.store, 0);
            delivery_scan_begin(&view->txn, which[w], of, key.size ? &key : NULL, &scan);
            for (int i = 0; i < 3 && more; i++) {
                more = delivery_scan_next(&scan, &d, &key) == OK;
                if (more && TEST_CHECK(seen < count))
                    TEST_CHECK(uuid_equal(&d.id, &all[seen++].d.id));
            }
            TEST_CHECK(scan_end(&scan.scan) == OK);
            view_close(view);
        }
        TEST_CHECK(seen == count);
        for (uint32_t i = 1; i < count && which[w] == DELIVERY_LIST_ALL; i++)
            TEST_CHECK(memcmp(&all[i - 1].d.id, &all[i].d.id, sizeof(all[i].d.id)) > 0);
    }
    struct key foreign = key_of_uuid(&s.client); /* of no list: it begins at the beginning */
    struct view *view = view_open_outside(s.fresh.store, 0);
    delivery_scan_begin(&view->txn, DELIVERY_LIST_ALL, &s.client, &foreign, &scan);
    TEST_CHECK(delivery_scan_next(&scan, &d, &key) == OK && uuid_equal(&d.client, &s.client));
    scan_end(&scan.scan);
    struct uuid other = fresh_uuid();
    delivery_scan_begin(&view->txn, DELIVERY_LIST_ALL, &other, NULL, &scan);
    TEST_CHECK(delivery_scan_next(&scan, &d, &key) == ERR_NOT_FOUND);
    scan_end(&scan.scan);
    view_close(view);
    fresh_close(&s.fresh);
}

static void test_delivery_partitions_see_their_own_lanes(void)
{
    struct scene s;
    struct due_entry entry;
    char url[64];
    struct uuid ids[MANY];
    open_scene(&s);
    for (unsigned i = 0; i < 40; i++) {
        struct uuid job = fresh_uuid();
        snprintf(url, sizeof(url), "https://host-%u.example/", i);
        TEST_CHECK(spread_of(&s, &job, 1, JOB_ENQUEUE, url) == 1);
    }
    TEST_CHECK(due(&s, ids) == 40);
    struct view *view = view_open_outside(s.fresh.store, 0);
    TEST_CHECK(delivery_next_lane(&view->txn, DELIVERY_PARTITIONS, 0, &entry) == ERR_INVALID);
    TEST_CHECK(delivery_next_lane(&view->txn, 0, DELIVERY_LANES_EACH, &entry) == ERR_NOT_FOUND);
    view_close(view);
    fresh_close(&s.fresh);
}

static enum error spoil_entry(struct txn *txn, uint64_t at_us, void *context)
{
    const struct delivery *d = context;
    struct key key = due_key(DUE_DELIVERY, d->lane, d->not_before_us, &d->id);
    (void)at_us;
    spoil_value(txn, TABLE_DUE, key_span(&key));
    txn->writes++;
    return OK;
}

/* All that is asked of it stands in its key. */
static void test_delivery_is_sent_whatever_its_due_entry_says_O2(void)
{
    enum { LANES = 40 };
    struct scene s;
    struct uuid ids[MANY], id[LANES];
    char url[64];
    open_scene(&s);
    for (unsigned i = 0; i < LANES; i++) {
        snprintf(url, sizeof(url), "https://host-%u.example/", i);
        TEST_CHECK(spread(&s, i + 1, url) == 1);
        id[i] = id_of(&s, NULL, i + 1);
        TEST_CHECK(tell(&s, &id[i], 1, DELIVERY_RETRY) == DELIVERY_SETTLED || i > 0);
        s.job = fresh_uuid();
    }
    s.now_us += S_US;
    for (unsigned i = 0; i < LANES; i += 7) {
        struct copy copy = look_at(&s, &id[i]);
        TEST_CHECK(fresh_do(&s.fresh, s.now_us, spoil_entry, &copy.d) == OK);
    }
    TEST_CHECK(due(&s, ids) == LANES);
    for (unsigned i = 0; i < LANES; i++)
        TEST_CHECK(tell(&s, &id[i], 2, DELIVERY_SUCCEED) == DELIVERY_SETTLED);
    TEST_CHECK(due(&s, ids) == 0 && counted(&s, DELIVERY_DELIVERED) == LANES);
    fresh_close(&s.fresh);
}

static void test_delivery_host_of_a_url(void)
{
    TEST_CHECK(span_equal(delivery_host(span_text("https://a.example:1/x?y")), span_text("a.example:1")));
    TEST_CHECK(span_equal(delivery_host(span_text("http://[::1]?y")), span_text("[::1]")));
    TEST_CHECK(span_equal(delivery_host(span_text("http://a")), span_text("a")));
    TEST_CHECK(delivery_host(span_text("")).size == 0 && delivery_host(span_text("a.example")).size == 0);
}

/* ---- retention ---- */

static uint32_t sweep(struct scene *s, uint64_t now_us)
{
    struct retention_sweep c = {.limit = 0};
    struct answer answer;
    uint32_t removed = 0;
    TEST_CHECK(batch_one(s->fresh.store, &retention_sweep_class, now_us, &c, &answer) == OK);
    memcpy(&removed, answer.bytes, sizeof(removed));
    return removed;
}

static void test_delivery_finished_ones_go_after_their_time(void)
{
    struct scene s;
    struct copy copies[MANY];
    open_scene(&s);
    for (uint64_t event = 1; event <= 4; event++)
        TEST_CHECK(spread(&s, event, "https://a.example/") == 1);
    struct uuid first = id_of(&s, NULL, 1), second = id_of(&s, NULL, 2), third = id_of(&s, NULL, 3);
    TEST_CHECK(tell(&s, &first, 1, DELIVERY_SUCCEED) == DELIVERY_SETTLED);
    TEST_CHECK(tell(&s, &second, 1, DELIVERY_GIVE_UP) == DELIVERY_SETTLED);
    TEST_CHECK(tell(&s, &third, 1, DELIVERY_GIVE_UP) == DELIVERY_SETTLED && resend(&s, &third) == OK);
    fresh_sound(&s.fresh);
    TEST_CHECK(sweep(&s, AT_US + 86400 * S_US) == 1); /* the client, which never had a key */
    TEST_CHECK(sweep(&s, AT_US + KEPT_US - 1) == 0 && of_job(&s, copies) == 4);
    TEST_CHECK(sweep(&s, AT_US + KEPT_US) == 2 && of_job(&s, copies) == 2); /* the others are on their way */
    TEST_CHECK(list(&s, DELIVERY_LIST_ALL, &s.client, copies) == 2 &&
               list(&s, DELIVERY_LIST_FAILED, &s.client, copies) == 0);
    TEST_CHECK(counted(&s, DELIVERY_DELIVERED) == 0 && counted(&s, DELIVERY_FAILED) == 0 &&
               counted(&s, DELIVERY_PENDING) == 2);
    s.now_us += KEPT_US;
    TEST_CHECK(tell(&s, &third, 2, DELIVERY_SUCCEED) == DELIVERY_SETTLED);
    TEST_CHECK(sweep(&s, AT_US + KEPT_US + 1) == 0 && sweep(&s, AT_US + 2 * KEPT_US) == 1);
    fresh_close(&s.fresh);
}

static void test_delivery_of_a_backlog_goes_after_its_time(void)
{
    struct scene s;
    struct copy copies[MANY];
    open_scene(&s);
    TEST_CHECK(fresh_do(&s.fresh, AT_US, count_more, &s) == OK);
    TEST_CHECK(spread(&s, 1, "https://a.example/") == 1 && spread(&s, 2, "https://a.example/") == 1);
    s.now_us++;
    TEST_CHECK(fresh_do(&s.fresh, AT_US, count_more, &s) == OK);
    TEST_CHECK(sweep(&s, AT_US + KEPT_US - 1) == 1 && of_job(&s, copies) == 2); /* the client has gone */
    TEST_CHECK(sweep(&s, AT_US + KEPT_US) == 1 && of_job(&s, copies) == 1 && copies[0].d.event == 1);
    fresh_close(&s.fresh);
}

/* ---- a long way, by chance, looked at after each part ---- */

struct walked {
    struct uuid jobs[4];
    uint64_t events[4];
    bool swapped[4];
};

static void step(struct scene *s, struct walked *w)
{
    uint32_t face = fresh_below(10), j = fresh_below(4);
    struct uuid ids[MANY];
    struct copy copies[MANY];
    s->now_us += fresh_below(2000000);
    if (face < 3) {
        uint64_t event = ++w->events[j]; /* some of them change places with the next one */
        event = w->swapped[j] ? event - 1 : fresh_below(4) == 0 ? event + 1 : event;
        w->swapped[j] = event > w->events[j];
        TEST_CHECK(spread_of(s, &w->jobs[j], event, JOB_ENQUEUE, j % 2 ? "https://a.example/" : "") ==
                   1 + j % 2);
    } else if (face < 9) {
        uint32_t count = due(s, ids);
        if (!count)
            return;
        const struct uuid *id = &ids[fresh_below(count)];
        tell(s, id, look_at(s, id).d.attempts + 1, (enum delivery_outcome)fresh_below(3));
    } else {
        uint32_t count = list(s, DELIVERY_LIST_ALL, &s->client, copies);
        enum error e = count ? resend(s, &copies[fresh_below(count)].d.id) : OK;
        TEST_CHECK(e == OK);
    }
}

static void test_delivery_whatever_happens_nothing_is_stuck_or_overtaken_O2_O3_O6(void)
{
    struct scene s;
    struct walked w = {.events = {0}};
    struct uuid ids[MANY];
    open_scene(&s);
    hook(&s, "https://b.example/", WEBHOOK_ALL);
    for (int i = 0; i < 4; i++)
        w.jobs[i] = fresh_uuid();
    for (int part = 0; part < 40; part++) {
        for (int i = 0; i < 12 && counted(&s, DELIVERY_PENDING) < MANY - 4; i++)
            step(&s, &w);
        fresh_sound(&s.fresh);
        uint32_t count;
        while (part % 4 == 3 &&
               (s.now_us += 10 * S_US, count = due(&s, ids)) > 0) /* all receivers are well */
            for (uint32_t i = 0; i < count; i++)
                TEST_CHECK(tell(&s, &ids[i], look_at(&s, &ids[i]).d.attempts + 1, DELIVERY_SUCCEED) ==
                           DELIVERY_SETTLED);
        TEST_CHECK(part % 4 != 3 || counted(&s, DELIVERY_PENDING) == 0);
    }
    fresh_close(&s.fresh);
}

/* ---- tables, and what check finds ---- */

static void test_delivery_lifecycle(void)
{
    char text[256];
    TEST_CHECK_(lifecycle_check(&delivery_lifecycle, text, sizeof(text)), "%s", text);
    TEST_CHECK(!*delivery_error_name(DELIVERY_ERROR_COUNT) && !*delivery_error_code(DELIVERY_ERROR_COUNT));
    TEST_CHECK(strcmp(delivery_error_name(DELIVERY_BACKLOG), "backlog") == 0);
}

struct spoiling {
    struct delivery d;
    struct key key;
    uint32_t table;
};

static enum error lose(struct txn *txn, uint64_t at_us, void *context)
{
    struct spoiling *x = context;
    (void)at_us;
    txn_remove(txn, x->table, key_span(&x->key));
    return OK;
}

static enum error rewrite(struct txn *txn, uint64_t at_us, void *context)
{
    struct spoiling *x = context;
    (void)at_us;
    txn_write(txn, TABLE_DELIVERIES, key_span(&x->key), &x->d);
    return OK;
}

static struct spoiling spoil_of(const struct copy *copy)
{
    return (struct spoiling){.d = copy->d, .key = key_of_uuid(&copy->d.id), .table = TABLE_DELIVERIES};
}

static void test_delivery_damage_is_found(void)
{
    struct scene s;
    open_scene(&s);
    for (uint64_t event = 1; event <= 2; event++)
        TEST_CHECK(spread(&s, event, "https://a.example/") == 1);
    struct uuid first = id_of(&s, NULL, 1), second = id_of(&s, NULL, 2);
    struct copy head = look_at(&s, &first), tail = look_at(&s, &second);
    struct spoiling x = spoil_of(&head);
    TEST_CHECK(fresh_would_find(&s.fresh, lose, &x, fresh_about("names ", &first, ", which isn't there")));
    TEST_CHECK(
        fresh_would_find(&s.fresh, lose, &x, fresh_about("of delivery ", &first, ", which isn't there")));
    x.key = due_key(DUE_DELIVERY, head.d.lane, head.d.not_before_us, &first);
    x.table = TABLE_DUE;
    TEST_CHECK(
        fresh_would_find(&s.fresh, lose, &x, fresh_about("deliveries: ", &first, " has no due entry")));
    x.table = TABLE_DELIVERY_INDEX;
    x.key.size = 0;
    key_add_u8(&x.key, DELIVERY_LIST_ALL);
    key_add_uuid(&x.key, &s.client);
    key_add_uuid(&x.key, &first);
    TEST_CHECK(fresh_would_find(&s.fresh, lose, &x, "missing in its client's list"));
    x.key.size = 0;
    key_add_u8(&x.key, DELIVERY_LIST_JOB);
    key_add_uuid(&x.key, &s.job);
    key_add_uuid(&x.key, &head.d.webhook);
    key_add_u64(&x.key, 1);
    key_add_u16(&x.key, TOPIC);
    TEST_CHECK(fresh_would_find(&s.fresh, lose, &x,
                                fresh_about("deliveries: ", &first, " is missing in its chain")));
    x = spoil_of(&head);
    x.d.state = 9;
    TEST_CHECK(fresh_would_find(&s.fresh, rewrite, &x, "unknown state 9"));
    TEST_CHECK(!fresh_would_find(&s.fresh, rewrite, &x, "will never be removed")); /* nothing more is asked */
    x.d.state = DELIVERY_FAILED;
    TEST_CHECK(fresh_would_find(&s.fresh, rewrite, &x, "missing in its client's failed ones"));
    TEST_CHECK(fresh_would_find(&s.fresh, rewrite, &x, "will never be removed"));
    TEST_CHECK(fresh_would_find(&s.fresh, rewrite, &x, "is finished and due"));
    x = spoil_of(&head);
    x.d.not_before_us = 0;
    TEST_CHECK(fresh_would_find(&s.fresh, rewrite, &x, "will never be sent"));
    TEST_CHECK(fresh_would_find(&s.fresh, rewrite, &x, "did not ask for"));
    x = spoil_of(&tail);
    x.d.not_before_us = AT_US;
    TEST_CHECK(fresh_would_find(&s.fresh, rewrite, &x, "overtakes"));
    x = spoil_of(&tail);
    x.d.state = DELIVERY_FAILED;
    TEST_CHECK(fresh_would_find(&s.fresh, rewrite, &x, "has overtaken"));
    x = spoil_of(&head);
    x.d.lane++;
    TEST_CHECK(fresh_would_find(&s.fresh, rewrite, &x, "another lane"));
    x = spoil_of(&head);
    x.d.error = 99;
    TEST_CHECK(fresh_would_find(&s.fresh, rewrite, &x, "can't be"));
    x = spoil_of(&head);
    x.d.id.bytes[15] ^= 1;
    TEST_CHECK(fresh_would_find(&s.fresh, rewrite, &x, "under another id"));
    fresh_close(&s.fresh);
}

struct index_row {
    struct key key;
    struct delivery_index row;
};

static enum error put_index(struct txn *txn, uint64_t at_us, void *context)
{
    const struct index_row *x = context;
    (void)at_us;
    txn_write(txn, TABLE_DELIVERY_INDEX, key_span(&x->key), &x->row);
    return OK;
}

static struct index_row index_row_of(uint8_t list, const struct uuid *of, const struct uuid *id)
{
    struct index_row x = {.key = {.size = 0}, .row = {.id = *id}};
    key_add_u8(&x.key, list);
    key_add_uuid(&x.key, of);
    key_add_uuid(&x.key, id);
    return x;
}

static void test_delivery_rows_of_lists_are_known(void)
{
    struct scene s;
    open_scene(&s);
    for (uint64_t event = 1; event <= 2; event++)
        TEST_CHECK(spread(&s, event, "https://a.example/") == 1);
    struct uuid first = id_of(&s, NULL, 1), second = id_of(&s, NULL, 2), stranger = fresh_uuid();
    struct index_row x = index_row_of(DELIVERY_LIST_FAILED, &s.client, &first);
    TEST_CHECK(fresh_would_find(&s.fresh, put_index, &x, "is in its client's failed ones and should not be"));
    x = index_row_of(DELIVERY_LIST_ALL, &s.client, &first);
    x.row.id = second;
    TEST_CHECK(fresh_would_find(&s.fresh, put_index, &x, "in its client's list names another one"));
    TEST_CHECK(fresh_would_find(&s.fresh, put_index, &x, "by another way"));
    x.row.id = stranger;
    TEST_CHECK(fresh_would_find(&s.fresh, put_index, &x, "which isn't there"));
    TEST_CHECK(!fresh_would_find(&s.fresh, put_index, &x, "by another way"));
    x = index_row_of(0, &s.client, &first);
    TEST_CHECK(fresh_would_find(&s.fresh, put_index, &x, "a key of 33 bytes and kind 0"));
    x = index_row_of(DELIVERY_LIST_FAILED + 1, &s.client, &first);
    TEST_CHECK(fresh_would_find(&s.fresh, put_index, &x, "a key of 33 bytes and kind 4"));
    x = index_row_of(DELIVERY_LIST_ALL, &s.client, &first);
    x.key.size--;
    TEST_CHECK(fresh_would_find(&s.fresh, put_index, &x, "a key of 32 bytes and kind 2"));
    TEST_CHECK(!fresh_would_find(&s.fresh, put_index, &x, "by another way"));
    x = index_row_of(DELIVERY_LIST_JOB, &s.job, &first);
    TEST_CHECK(fresh_would_find(&s.fresh, put_index, &x, "a key of 33 bytes and kind 1"));
    fresh_close(&s.fresh);
}

static void test_delivery_whose_attempts_cant_be(void)
{
    struct scene s;
    open_scene(&s);
    TEST_CHECK(spread(&s, 1, "https://a.example/") == 1);
    struct uuid id = id_of(&s, NULL, 1);
    TEST_CHECK(tell(&s, &id, 1, DELIVERY_RETRY) == DELIVERY_SETTLED);
    struct copy copy = look_at(&s, &id);
    struct spoiling x = spoil_of(&copy);
    x.d.history.size--;
    TEST_CHECK(fresh_would_find(&s.fresh, rewrite, &x, "can't be"));
    x = spoil_of(&copy);
    x.d.attempts = 0; /* and one is kept */
    TEST_CHECK(fresh_would_find(&s.fresh, rewrite, &x, "can't be"));
    x = spoil_of(&copy);
    x.d.gone_us = AT_US;
    TEST_CHECK(fresh_would_find(&s.fresh, rewrite, &x, "is pending and will be removed"));
    fresh_close(&s.fresh);
}

/* Of what can't be read nothing is concluded but that it can't. */
static void test_delivery_that_cannot_be_read_is_told_of_once(void)
{
    struct scene s;
    open_scene(&s);
    for (uint64_t event = 1; event <= 2; event++)
        TEST_CHECK(spread(&s, event, "https://a.example/") == 1);
    struct uuid first = id_of(&s, NULL, 1);
    fresh_sound(&s.fresh);
    fresh_flip(&s.fresh, TABLE_DELIVERIES, key_of_uuid(&first));
    TEST_CHECK(fresh_tells(&s.fresh, "damaged"));
    TEST_CHECK(!fresh_tells(&s.fresh, "isn't there"));
    TEST_CHECK(!fresh_tells(&s.fresh, "overtakes"));
    TEST_CHECK(!fresh_tells(&s.fresh, "did not ask for"));
    fresh_flip(&s.fresh, TABLE_DELIVERIES, key_of_uuid(&first));
    fresh_close(&s.fresh);
}

static struct key key_in(uint8_t list, const struct copy *copy)
{
    struct key key = {.size = 0};
    key_add_u8(&key, list);
    if (list == DELIVERY_LIST_JOB) {
        key_add_uuid(&key, &copy->d.job);
        key_add_uuid(&key, &copy->d.webhook);
        key_add_u64(&key, copy->d.event);
        key_add_u16(&key, copy->d.topic);
        return key;
    }
    key_add_uuid(&key, &copy->d.client);
    key_add_uuid(&key, &copy->d.id);
    return key;
}

static enum error lose_entry(struct txn *txn, uint64_t at_us, void *context)
{
    const struct delivery *d = context;
    (void)at_us;
    due_clear(txn, DUE_DELIVERY, d->lane, d->not_before_us, &d->id);
    return OK;
}

/* What follows from its row and isn't there any more keeps it from nothing. */
static void test_delivery_goes_on_without_its_entry_or_its_places(void)
{
    struct scene s;
    struct copy copies[MANY];
    open_scene(&s);
    for (uint64_t event = 1; event <= 2; event++)
        TEST_CHECK(spread(&s, event, "https://a.example/") == 1);
    struct uuid id = id_of(&s, NULL, 1);
    TEST_CHECK(tell(&s, &id, 1, DELIVERY_RETRY) == DELIVERY_SETTLED);
    struct copy copy = look_at(&s, &id);
    TEST_CHECK(copy.d.not_before_us > s.now_us); /* it waits for its time */
    TEST_CHECK(fresh_do(&s.fresh, s.now_us, lose_entry, &copy.d) == OK &&
               fresh_tells(&s.fresh, "has no due entry"));
    TEST_CHECK(resend(&s, &id) == OK);
    fresh_sound(&s.fresh);
    copy = look_at(&s, &id);
    TEST_CHECK(fresh_do(&s.fresh, s.now_us, lose_entry, &copy.d) == OK);
    fresh_put(&s.fresh, TABLE_DELIVERY_INDEX, key_in(DELIVERY_LIST_FAILED, &copy),
              &(struct delivery_index){.id = s.job}); /* where it isn't yet, and leads elsewhere */
    TEST_CHECK(tell(&s, &id, 2, DELIVERY_GIVE_UP) == DELIVERY_SETTLED);
    fresh_sound(&s.fresh);
    copy = look_at(&s, &id);
    fresh_take(&s.fresh, TABLE_DELIVERY_INDEX, key_in(DELIVERY_LIST_FAILED, &copy));
    TEST_CHECK(resend(&s, &id) == OK && tell(&s, &id, 3, DELIVERY_GIVE_UP) == DELIVERY_SETTLED);
    fresh_sound(&s.fresh);
    copy = look_at(&s, &id);
    for (uint8_t list = DELIVERY_LIST_JOB; list <= DELIVERY_LIST_FAILED; list++)
        fresh_take(&s.fresh, TABLE_DELIVERY_INDEX, key_in(list, &copy));
    sweep(&s, s.now_us + 2 * KEPT_US);
    TEST_CHECK(of_job(&s, copies) == 1);
    fresh_sound(&s.fresh);
    fresh_close(&s.fresh);
}

/* Rows of lists that lead nowhere, or are of another kind: whoever comes to one hears of it. */
static void test_delivery_lists_say_what_they_cannot_read(void)
{
    struct scene s;
    struct delivery d;
    struct delivery_scan scan;
    struct key got;
    open_scene(&s);
    for (uint64_t event = 1; event <= 2; event++)
        TEST_CHECK(spread(&s, event, "https://a.example/") == 1);
    static const struct uuid last = {{0xff}};
    struct index_row x =
        index_row_of(DELIVERY_LIST_ALL, &s.client, &last); /* in front: the newest come first */
    for (int way = 0; way < 2; way++) {
        if (way == 0)
            fresh_put(&s.fresh, TABLE_DELIVERY_INDEX, x.key, &x.row);
        else
            fresh_crumb(&s.fresh, TABLE_DELIVERY_INDEX, x.key);
        struct view *view = view_open_outside(s.fresh.store, 0);
        TEST_ASSERT(view != NULL);
        delivery_scan_begin(&view->txn, DELIVERY_LIST_ALL, &s.client, NULL, &scan);
        TEST_CHECK(delivery_scan_next(&scan, &d, &got) == ERR_DAMAGED);
        TEST_CHECK(scan_end(&scan.scan) == (way == 0 ? OK : ERR_DAMAGED));
        /* A place in another list says nothing: it begins anew. */
        struct index_row other = index_row_of(DELIVERY_LIST_FAILED, &s.client, &s.client);
        delivery_scan_begin(&view->txn, DELIVERY_LIST_ALL, &s.client, &other.key, &scan);
        TEST_CHECK(delivery_scan_next(&scan, &d, &got) == ERR_DAMAGED);
        (void)scan_end(&scan.scan);
        other.key.size = 5;
        delivery_scan_begin(&view->txn, DELIVERY_LIST_ALL, &s.client, &other.key, &scan);
        TEST_CHECK(delivery_scan_next(&scan, &d, &got) == ERR_DAMAGED);
        (void)scan_end(&scan.scan);
        view_close(view);
    }
    fresh_take(&s.fresh, TABLE_DELIVERY_INDEX, x.key);
    fresh_close(&s.fresh);
}

/* By hand. */
static enum error set_ready(struct txn *txn, uint64_t at_us, void *context)
{
    struct delivery *d = context;
    d->not_before_us = at_us;
    due_set(txn, &(struct due_entry){.queue = DUE_DELIVERY, .shard = d->lane, .due_us = at_us, .id = d->id});
    txn_write(txn, TABLE_DELIVERIES, span_of(d->id.bytes, sizeof(d->id.bytes)), d);
    return OK;
}

static enum error set_entry(struct txn *txn, uint64_t at_us, void *context)
{
    (void)at_us;
    due_set(txn, context);
    return OK;
}

enum loss { ROW_SPOILT, WAY_SPOILT, ROW_LOST, LOSSES };

/* And again with `back`: as it was. */
static void lose_one(struct scene *s, enum loss loss, const struct copy *copy, bool back)
{
    struct key row = key_of_uuid(&copy->d.id);
    if (loss == ROW_LOST)
        fresh_put(&s->fresh, TABLE_DELIVERIES, row, back ? &copy->d : NULL);
    else if (loss == ROW_SPOILT)
        fresh_flip(&s->fresh, TABLE_DELIVERIES, row);
    else
        fresh_flip(&s->fresh, TABLE_DELIVERY_INDEX, key_in(DELIVERY_LIST_JOB, copy));
}

/* The one behind it in the chain can't be read: it stays as it is, the one before comes to its end, and the next one has its turn. */
static void test_delivery_ends_before_one_that_cannot_be_read(void)
{
    for (enum loss loss = 0; loss < LOSSES; loss++) {
        struct scene s;
        open_scene(&s);
        for (uint64_t event = 1; event <= 4; event++)
            TEST_CHECK(spread(&s, event, "https://a.example/") == 1);
        struct uuid first = id_of(&s, NULL, 1), second = id_of(&s, NULL, 2), third = id_of(&s, NULL, 3),
                    fourth = id_of(&s, NULL, 4);
        struct copy copy = look_at(&s, &second);
        lose_one(&s, loss, &copy, false);
        TEST_CHECK(tell(&s, &first, 1, DELIVERY_SUCCEED) == DELIVERY_SETTLED);
        TEST_CHECK(!is_due(&s, &second) && is_due(&s, &third) && !is_due(&s, &fourth));
        TEST_CHECK(!fresh_tells(&s.fresh, "overtakes") && !fresh_tells(&s.fresh, "will never be sent"));
        TEST_CHECK(tell(&s, &third, 1, DELIVERY_SUCCEED) == DELIVERY_SETTLED && is_due(&s, &fourth));
        lose_one(&s, loss, &copy, true);
        copy = look_at(&s, &second);
        TEST_CHECK(copy.d.state == DELIVERY_PENDING && copy.d.not_before_us == 0);
        TEST_CHECK(fresh_tells(&s.fresh, "will never be sent"));
        TEST_CHECK(fresh_do(&s.fresh, s.now_us, set_ready, &copy.d) == OK);
        TEST_CHECK(tell(&s, &second, 1, DELIVERY_SUCCEED) == DELIVERY_SETTLED && is_due(&s, &fourth));
        fresh_close(&s.fresh);
    }
}

/* Nor by what can't be read and has no key of the chain's; but for one behind which there is no key. */
static void test_delivery_ends_before_a_key_that_is_none(void)
{
    static const uint32_t sizes[] = {DELIVERY_KEY_OF_JOB + 1, KEY_SIZE_MAX};
    for (uint32_t i = 0; i < 2; i++) {
        struct scene s;
        open_scene(&s);
        for (uint64_t event = 1; event <= 2; event++)
            TEST_CHECK(spread(&s, event, "https://a.example/") == 1);
        struct uuid first = id_of(&s, NULL, 1), second = id_of(&s, NULL, 2);
        struct copy copy = look_at(&s, &first);
        struct key key = key_in(DELIVERY_LIST_JOB, &copy);
        while (key.size < sizes[i])
            key_add_u8(&key, 0);
        fresh_put(&s.fresh, TABLE_DELIVERY_INDEX, key, &(struct delivery_index){.id = second});
        fresh_flip(&s.fresh, TABLE_DELIVERY_INDEX, key);
        TEST_CHECK(tell(&s, &first, 1, DELIVERY_SUCCEED) == DELIVERY_SETTLED);
        TEST_CHECK(is_due(&s, &second) == (sizes[i] < KEY_SIZE_MAX));
        fresh_take(&s.fresh, TABLE_DELIVERY_INDEX, key);
        copy = look_at(&s, &second);
        if (copy.d.not_before_us == 0)
            TEST_CHECK(fresh_tells(&s.fresh, "will never be sent") &&
                       fresh_do(&s.fresh, s.now_us, set_ready, &copy.d) == OK);
        fresh_close(&s.fresh);
    }
}

/* One that couldn't be read for a while waits before one that may be on its way: who comes in between is late, and waits for neither. */
static void test_delivery_that_comes_late_behind_one_that_waits(void)
{
    struct scene s;
    static const uint64_t events[] = {1, 2, 4};
    open_scene(&s);
    for (uint32_t i = 0; i < 3; i++)
        TEST_CHECK(spread(&s, events[i], "https://a.example/") == 1);
    struct uuid first = id_of(&s, NULL, 1), second = id_of(&s, NULL, 2), fourth = id_of(&s, NULL, 4);
    struct copy copy = look_at(&s, &second);
    lose_one(&s, ROW_SPOILT, &copy, false);
    TEST_CHECK(tell(&s, &first, 1, DELIVERY_SUCCEED) == DELIVERY_SETTLED && is_due(&s, &fourth));
    lose_one(&s, ROW_SPOILT, &copy, true);
    TEST_CHECK(!is_due(&s, &second) && spread(&s, 3, "https://a.example/") == 1);
    struct uuid third = id_of(&s, NULL, 3);
    TEST_CHECK(is_due(&s, &third) && look_at(&s, &third).d.beside == 1);
    TEST_CHECK(tell(&s, &third, 1, DELIVERY_SUCCEED) == DELIVERY_SETTLED);
    copy = look_at(&s, &second);
    TEST_CHECK(fresh_do(&s.fresh, s.now_us, set_ready, &copy.d) == OK);
    TEST_CHECK(tell(&s, &second, 1, DELIVERY_SUCCEED) == DELIVERY_SETTLED && is_due(&s, &fourth));
    fresh_close(&s.fresh);
}

/* Lists end at what can't be read. */
static struct uuid only_due(struct scene *s)
{
    struct uuid ids[MANY] = {{{0}}};
    TEST_CHECK(due(s, ids) == 1);
    return ids[0];
}

/* One of its chain can't be read: a later event comes all the same, and waits for whom it would wait for without that one. */
static void test_delivery_is_made_beside_one_that_cannot_be_read(void)
{
    for (enum loss loss = 0; loss < LOSSES; loss++) {
        struct scene s;
        open_scene(&s);
        TEST_CHECK(spread(&s, 1, "https://a.example/") == 1 && spread(&s, 2, "https://a.example/") == 1);
        struct uuid first = id_of(&s, NULL, 1), second = id_of(&s, NULL, 2);
        struct copy waiting = look_at(&s, &second);
        lose_one(&s, loss, &waiting, false);
        TEST_CHECK(spread(&s, 4, "https://a.example/") == 1);
        struct uuid due_now = only_due(&s);
        TEST_CHECK(uuid_equal(&due_now, &first)); /* the fourth is behind it */
        TEST_CHECK(tell(&s, &first, 1, DELIVERY_SUCCEED) == DELIVERY_SETTLED);
        struct uuid fourth = only_due(&s);
        TEST_CHECK(tell(&s, &fourth, 1, DELIVERY_SUCCEED) == DELIVERY_SETTLED);
        struct copy last = look_at(&s, &fourth);
        TEST_CHECK(last.d.event == 4);
        lose_one(&s, loss, &last, false);
        TEST_CHECK(spread(&s, 3, "https://a.example/") == 1);
        struct uuid third = only_due(&s); /* it waits for nobody, and doesn't know of a later one */
        TEST_CHECK(!fresh_tells(&s.fresh, "overtakes") && !fresh_tells(&s.fresh, "will never be sent"));
        TEST_CHECK(tell(&s, &third, 1, DELIVERY_SUCCEED) == DELIVERY_SETTLED);
        lose_one(&s, loss, &last, true);
        lose_one(&s, loss, &waiting, true);
        TEST_CHECK(fresh_do(&s.fresh, s.now_us, set_ready, &waiting.d) == OK);
        TEST_CHECK(tell(&s, &second, 1, DELIVERY_SUCCEED) == DELIVERY_SETTLED);
        fresh_close(&s.fresh);
    }
}

/* Who comes next waits for the one before, also when something lies between them that can't be read and has no key of the chain's: a longer
 * one, and a shorter one. */
static void test_delivery_waits_across_a_key_that_is_none(void)
{
    for (uint32_t i = 0; i < 2; i++) {
        struct scene s;
        open_scene(&s);
        TEST_CHECK(spread(&s, 1, "https://a.example/") == 1);
        struct uuid first = id_of(&s, NULL, 1);
        struct copy copy = look_at(&s, &first);
        struct key key = key_in(DELIVERY_LIST_JOB, &copy);
        TEST_ASSERT(key.size == DELIVERY_KEY_OF_JOB);
        if (i == 0) {
            key_add_u8(&key, 0);
        } else {
            key.size -= 2; /* the topic; and the event is the next one */
            key.bytes[key.size - 1]++;
        }
        fresh_put(&s.fresh, TABLE_DELIVERY_INDEX, key, &(struct delivery_index){.id = first});
        fresh_flip(&s.fresh, TABLE_DELIVERY_INDEX, key);
        TEST_CHECK(spread(&s, 2, "https://a.example/") == 1);
        fresh_take(&s.fresh, TABLE_DELIVERY_INDEX, key);
        struct uuid second = id_of(&s, NULL, 2);
        TEST_CHECK(is_due(&s, &first) && !is_due(&s, &second));
        TEST_CHECK(tell(&s, &first, 1, DELIVERY_SUCCEED) == DELIVERY_SETTLED && is_due(&s, &second));
        fresh_close(&s.fresh);
    }
}

/* ---- entries that lead nowhere ---- */

static struct delivery_stray stray_of(const struct copy *copy)
{
    return (struct delivery_stray){.id = copy->d.id, .lane = copy->d.lane, .due_us = copy->d.not_before_us};
}

/* Some rows at a time; how many of them have a place then. */
static uint32_t find_places(struct scene *s, uint32_t most, struct delivery_stray *strays, uint32_t count)
{
    struct view *view = view_open_outside(s->fresh.store, 0);
    struct key from = {.size = 0};
    uint32_t placed = 0, parts = 0;
    enum error e = OK;
    while (!e && parts++ < 1000)
        e = delivery_find_places(&view->txn, &from, most, strays, count);
    TEST_CHECK(e == ERR_NOT_FOUND);
    view_close(view);
    for (uint32_t i = 0; i < count; i++)
        placed += strays[i].placed;
    return placed;
}

static enum error astray(struct scene *s, const struct delivery_stray *strays, uint32_t count,
                         uint8_t *ret_found)
{
    static uint8_t bytes[DELIVERY_STRAYS_MAX * DELIVERY_STRAY_SIZE];
    struct answer answer;
    for (uint32_t i = 0; i < count; i++)
        TEST_CHECK(record_encode(&delivery_stray_record, &strays[i], bytes + i * DELIVERY_STRAY_SIZE,
                                 DELIVERY_STRAY_SIZE) == DELIVERY_STRAY_SIZE);
    const struct delivery_astray c = {.steady_us = s->now_us,
                                      .strays = span_of(bytes, count * DELIVERY_STRAY_SIZE)};
    enum error e = batch_one(s->fresh.store, &delivery_astray_class, s->now_us, &c, &answer);
    if (!e && TEST_CHECK(answer.size == count))
        memcpy(ret_found, answer.bytes, count);
    return e;
}

static uint8_t astray_one(struct scene *s, const struct delivery_stray *stray)
{
    uint8_t found = 99;
    TEST_CHECK(astray(s, stray, 1, &found) == OK);
    return found;
}

/* The first of its chain can't be read: it is put off, and who is behind it has his turn; it is sent when it can be read again. */
static void test_delivery_that_cannot_be_read_lets_the_next_one_pass_O2(void)
{
    for (enum loss loss = 0; loss < LOSSES; loss++) {
        struct scene s;
        open_scene(&s);
        for (uint64_t event = 1; event <= 4; event++)
            TEST_CHECK(spread(&s, event, "https://a.example/") == 1);
        struct uuid first = id_of(&s, NULL, 1), second = id_of(&s, NULL, 2), third = id_of(&s, NULL, 3),
                    fourth = id_of(&s, NULL, 4);
        struct copy copy = look_at(&s, &first), waiting = look_at(&s, &second);
        struct delivery_stray stray = stray_of(&copy);
        if (loss ==
            WAY_SPOILT) { /* of what can be read there is nothing to be done, and of a place that can't be nobody knows */
            lose_one(&s, loss, &copy, false);
            TEST_CHECK(find_places(&s, 100, &stray, 1) == 0);
            TEST_CHECK(astray_one(&s, &stray) == DELIVERY_NO_STRAY && is_due(&s, &first));
            lose_one(&s, loss, &copy, true);
            fresh_close(&s.fresh);
            continue;
        }
        lose_one(&s, loss, &copy, false);
        lose_one(&s, loss, &waiting, false);
        TEST_CHECK(find_places(&s, 1, &stray, 1) == 1 && stray.event == 1 && stray.topic == TOPIC &&
                   uuid_equal(&stray.job, &s.job));
        TEST_CHECK(astray_one(&s, &stray) == DELIVERY_UNREADABLE);
        TEST_CHECK(!is_due(&s, &first) && !is_due(&s, &second) && is_due(&s, &third) && !is_due(&s, &fourth));
        TEST_CHECK(!fresh_tells(&s.fresh, "overtakes") && !fresh_tells(&s.fresh, "will never be sent"));
        TEST_CHECK(fresh_tells(&s.fresh, loss == ROW_LOST ? "isn't there" : "damaged"));
        TEST_CHECK(astray_one(&s, &stray) ==
                   DELIVERY_NO_STRAY); /* told again, by a sender that started anew */
        TEST_CHECK(tell(&s, &third, 1, DELIVERY_SUCCEED) == DELIVERY_SETTLED && is_due(&s, &fourth));
        lose_one(&s, loss, &copy, true);
        lose_one(&s, loss, &waiting, true);
        s.now_us += DELIVERY_ASTRAY_US;
        TEST_CHECK(is_due(&s, &first));
        stray.due_us += DELIVERY_ASTRAY_US;
        TEST_CHECK(astray_one(&s, &stray) == DELIVERY_STRAY && is_due(&s, &first));
        TEST_CHECK(tell(&s, &first, 1, DELIVERY_SUCCEED) == DELIVERY_SETTLED && is_due(&s, &second));
        TEST_CHECK(tell(&s, &second, 1, DELIVERY_SUCCEED) == DELIVERY_SETTLED);
        fresh_close(&s.fresh);
    }
}

/* Who waits for somebody else goes on waiting; and who was told of in vain changes nothing. */
static void test_delivery_passes_nobody_that_can_be_read_O3(void)
{
    struct scene s;
    open_scene(&s);
    for (uint64_t event = 1; event <= 3; event++)
        TEST_CHECK(spread(&s, event, "https://a.example/") == 1);
    struct uuid first = id_of(&s, NULL, 1), second = id_of(&s, NULL, 2), third = id_of(&s, NULL, 3);
    struct copy copy = look_at(&s, &second);
    struct delivery_stray stray = stray_of(&copy);
    stray.due_us = s.now_us;
    const struct due_entry wrong = {
        .queue = DUE_DELIVERY, .shard = copy.d.lane, .due_us = s.now_us, .id = second};
    TEST_CHECK(fresh_do(&s.fresh, s.now_us, set_entry, (void *)(uintptr_t)&wrong) == OK);
    lose_one(&s, ROW_SPOILT, &copy, false);
    TEST_CHECK(find_places(&s, 2, &stray, 1) == 1);
    TEST_CHECK(astray_one(&s, &stray) == DELIVERY_UNREADABLE && is_due(&s, &first) && !is_due(&s, &third));
    lose_one(&s, ROW_SPOILT, &copy, true);
    stray.due_us = s.now_us + DELIVERY_ASTRAY_US;
    TEST_CHECK(astray_one(&s, &stray) == DELIVERY_STRAY &&
               !is_due(&s, &second)); /* it waits, so the entry goes */
    fresh_sound(&s.fresh);
    struct copy head = look_at(&s, &first); /* somebody else's place */
    lose_one(&s, ROW_SPOILT, &head, false);
    struct delivery_stray elsewhere = stray_of(&head);
    TEST_CHECK(find_places(&s, 2, &elsewhere, 1) == 1);
    elsewhere.event = 2;
    TEST_CHECK(astray_one(&s, &elsewhere) == DELIVERY_UNREADABLE && !is_due(&s, &second));
    lose_one(&s, ROW_SPOILT, &head, true);
    elsewhere.due_us = s.now_us + DELIVERY_ASTRAY_US;
    TEST_CHECK(astray_one(&s, &elsewhere) == DELIVERY_STRAY && is_due(&s, &first));
    fresh_close(&s.fresh);
}

/* Of those that can be read: one that has come to its end has none, and one that is to be sent has its own. */
static void test_delivery_entries_that_are_not_its_own_go(void)
{
    struct scene s;
    open_scene(&s);
    TEST_CHECK(spread(&s, 1, "https://a.example/") == 1);
    struct uuid first = id_of(&s, NULL, 1);
    struct copy copy = look_at(&s, &first);
    struct delivery_stray stray = stray_of(&copy);
    TEST_CHECK(astray_one(&s, &stray) == DELIVERY_NO_STRAY && is_due(&s, &first));
    const struct due_entry others[] = {
        {.queue = DUE_DELIVERY, .shard = copy.d.lane, .due_us = s.now_us + 5, .id = first},
        {.queue = DUE_DELIVERY, .shard = (uint16_t)(copy.d.lane ^ 1u), .due_us = s.now_us, .id = first}};
    for (uint32_t i = 0; i < 2; i++) {
        TEST_CHECK(fresh_do(&s.fresh, s.now_us, set_entry, (void *)(uintptr_t)&others[i]) == OK);
        TEST_CHECK(fresh_tells(&s.fresh, "did not ask for"));
        stray.lane = others[i].shard;
        stray.due_us = others[i].due_us;
        TEST_CHECK(astray_one(&s, &stray) == DELIVERY_STRAY && is_due(&s, &first));
        fresh_sound(&s.fresh);
    }
    TEST_CHECK(tell(&s, &first, 1, DELIVERY_SUCCEED) == DELIVERY_SETTLED);
    TEST_CHECK(fresh_do(&s.fresh, s.now_us, set_entry, (void *)(uintptr_t)&others[0]) == OK);
    stray.lane = others[0].shard;
    stray.due_us = others[0].due_us;
    TEST_CHECK(astray_one(&s, &stray) == DELIVERY_STRAY);
    TEST_CHECK(astray_one(&s, &stray) == DELIVERY_NO_STRAY);
    fresh_close(&s.fresh);
}

/* Neither rows nor keys that can't be read end the search, however it is divided; and several are found at once. */
static void test_delivery_places_are_found_past_what_cannot_be_read(void)
{
    enum { EVENTS = 6 };
    struct scene s;
    struct delivery_stray strays[EVENTS];
    struct key longer;
    open_scene(&s);
    TEST_CHECK(find_places(&s, 1, strays, 0) == 0);
    (void)hook(&s, "https://b.example/", WEBHOOK_ALL);
    for (uint64_t event = 1; event <= EVENTS; event++)
        TEST_CHECK(spread(&s, event, "https://a.example/") == 2);
    struct uuid ids[EVENTS];
    for (uint32_t i = 0; i < EVENTS; i++)
        ids[i] = id_of(&s, NULL, i + 1);
    struct copy copies[] = {look_at(&s, &ids[1]), look_at(&s, &ids[2]), look_at(&s, &ids[3])};
    lose_one(&s, WAY_SPOILT, &copies[0], false);
    lose_one(&s, WAY_SPOILT, &copies[1], false);
    longer = key_in(DELIVERY_LIST_JOB, &copies[2]);
    key_add_u8(&longer, 7);
    fresh_crumb(&s.fresh, TABLE_DELIVERY_INDEX, longer);
    for (uint32_t most = 1; most <= 8; most += 7) {
        for (uint32_t i = 0; i < EVENTS; i++)
            strays[i] = (struct delivery_stray){.id = ids[i]};
        TEST_CHECK(find_places(&s, most, strays, EVENTS) == EVENTS - 2);
        for (uint32_t i = 0; i < EVENTS; i++)
            TEST_CHECK(i == 1 || i == 2 ? !strays[i].placed : strays[i].event == i + 1);
    }
    fresh_take(&s.fresh, TABLE_DELIVERY_INDEX, longer);
    lose_one(&s, WAY_SPOILT, &copies[0], true);
    lose_one(&s, WAY_SPOILT, &copies[1], true);
    fresh_close(&s.fresh);
}

static void test_delivery_strays_that_cant_be_are_refused(void)
{
    static const uint8_t bytes[DELIVERY_STRAY_SIZE + 1] = {0};
    struct scene s;
    open_scene(&s);
    for (uint32_t size = 0; size <= DELIVERY_STRAY_SIZE + 1; size += size ? 1 : DELIVERY_STRAY_SIZE - 1) {
        const struct delivery_astray c = {.steady_us = s.now_us, .strays = span_of(bytes, size)};
        TEST_CHECK(batch_one(s.fresh.store, &delivery_astray_class, s.now_us, &c, NULL) ==
                   (size == DELIVERY_STRAY_SIZE ? OK : ERR_INVALID));
    }
    fresh_close(&s.fresh);
}

static void test_delivery_to_a_receiver_without_a_host(void)
{
    struct scene s;
    open_scene(&s);
    TEST_CHECK(spread(&s, 1, "mailto:a@example.org") == 1);
    struct uuid id = id_of(&s, NULL, 1);
    TEST_CHECK(look_at(&s, &id).d.host.size == 0);
    TEST_CHECK(tell(&s, &id, 1, DELIVERY_GIVE_UP) == DELIVERY_SETTLED);
    TEST_CHECK(look_at(&s, &id).d.host.size == 0 && look_at(&s, &id).d.attempts == 1);
    fresh_close(&s.fresh);
}

static enum error retire(struct txn *txn, uint64_t at_us, void *context)
{
    retention_set(txn, RETENTION_DELIVERY, at_us, context, 0);
    return OK;
}

/* An entry that isn't its own removes nothing, and goes. */
static void test_delivery_goes_by_its_own_time_alone(void)
{
    struct scene s;
    struct copy copies[MANY];
    char text[FRESH_TEXT];
    open_scene(&s);
    TEST_CHECK(spread(&s, 1, "https://a.example/") == 1);
    struct uuid id = id_of(&s, NULL, 1), stranger = fresh_uuid();
    TEST_CHECK(fresh_do(&s.fresh, s.now_us, retire, &id) == OK &&
               fresh_do(&s.fresh, s.now_us, retire, &stranger) == OK);
    TEST_CHECK(fresh_findings(&s.fresh, text) == 2);
    TEST_CHECK(sweep(&s, s.now_us) == 0 && of_job(&s, copies) == 1);
    fresh_sound(&s.fresh);
    fresh_close(&s.fresh);
}

static enum error spread_too_late(struct txn *txn, uint64_t at_us, void *context)
{
    struct spreading *x = context;
    const struct delivery_times times = {
        .at_us = UINT64_MAX - KEPT_US + 1, .steady_us = at_us, .kept_us = KEPT_US};
    return delivery_spread(txn, &times, &x->source, &x->count);
}

static void test_delivery_beyond_all_time_is_refused(void)
{
    struct scene s;
    open_scene(&s);
    struct spreading x = {.source = {.client = s.client,
                                     .job = s.job,
                                     .event = 1,
                                     .topic = TOPIC,
                                     .callback = span_text("https://a.example/")}};
    TEST_CHECK(fresh_do(&s.fresh, s.now_us, spread_too_late, &x) == ERR_INVALID);
    TEST_CHECK(counted(&s, DELIVERY_PENDING) == 0);
    fresh_close(&s.fresh);
}

TEST_LIST
= {
    {"delivery: for each receiver that wants the event (JOB-080, JOB-184, O1)",
     test_delivery_for_each_receiver_that_wants_the_event_JOB_080_JOB_184_O1},
    {"delivery: ids are the same in every process (O4)", test_delivery_ids_are_the_same_in_every_process_O4},
    {"delivery: a host has one lane", test_delivery_a_host_has_one_lane},
    {"delivery: order is kept per job and receiver (O3, O6, AMB-J-43)",
     test_delivery_order_is_kept_per_job_and_receiver_O3_O6_AMB_J_43},
    {"delivery: that comes late (O3)", test_delivery_that_comes_late_O3},
    {"delivery: attempts are kept (JOB-326, JOB-411)", test_delivery_attempts_are_kept_JOB_326_JOB_411},
    {"delivery: notes the time that it waits by (D9, O2)",
     test_delivery_notes_the_time_that_it_waits_by_D9_O2},
    {"delivery: told twice counts once (O5)", test_delivery_told_twice_counts_once_O5},
    {"delivery: results that can't be are refused", test_delivery_results_that_cant_be_are_refused},
    {"delivery: may end without an attempt", test_delivery_may_end_without_an_attempt},
    {"delivery: many at once", test_delivery_many_at_once},
    {"delivery: 410 disables the webhook", test_delivery_410_disables_the_webhook},
    {"delivery: one that is given up, and no retry, disables a failing webhook",
     test_delivery_given_up_and_no_retry_disables_a_failing_webhook},
    {"delivery: is sent again", test_delivery_is_sent_again},
    {"delivery: is sent again to a webhook that is there",
     test_delivery_is_sent_again_to_a_webhook_that_is_there},
    {"delivery: sent again holds nobody up (O3)", test_delivery_sent_again_holds_nobody_up_O3},
    {"delivery: a backlog fails at once and holds no job up (JOB-326)",
     test_delivery_a_backlog_fails_at_once_and_holds_no_job_up_JOB_326},
    {"delivery: a backlog lets nobody overtake (O3, AMB-J-43)",
     test_delivery_a_backlog_lets_nobody_overtake_O3_AMB_J_43},
    {"delivery: lists go on where they ended", test_delivery_lists_go_on_where_they_ended},
    {"delivery: partitions see their own lanes", test_delivery_partitions_see_their_own_lanes},
    {"delivery: is sent whatever its due entry says (O2)",
     test_delivery_is_sent_whatever_its_due_entry_says_O2},
    {"delivery: host of a URL", test_delivery_host_of_a_url},
    {"delivery: finished ones go after their time", test_delivery_finished_ones_go_after_their_time},
    {"delivery: one of a backlog goes after its time", test_delivery_of_a_backlog_goes_after_its_time},
    {"delivery: whatever happens, nothing is stuck or overtaken (O2, O3, O6)",
     test_delivery_whatever_happens_nothing_is_stuck_or_overtaken_O2_O3_O6},
    {"delivery: lifecycle", test_delivery_lifecycle},
    {"delivery: damage is found", test_delivery_damage_is_found},
    {"delivery: rows of lists are known", test_delivery_rows_of_lists_are_known},
    {"delivery: attempts that can't be are found", test_delivery_whose_attempts_cant_be},
    {"delivery: one that can't be read is told of once", test_delivery_that_cannot_be_read_is_told_of_once},
    {"delivery: goes on without its entry or its places",
     test_delivery_goes_on_without_its_entry_or_its_places},
    {"delivery: lists say what they can't read", test_delivery_lists_say_what_they_cannot_read},
    {"delivery: ends before one that can't be read", test_delivery_ends_before_one_that_cannot_be_read},
    {"delivery: ends before a key that is none", test_delivery_ends_before_a_key_that_is_none},
    {"delivery: that comes late behind one that waits", test_delivery_that_comes_late_behind_one_that_waits},
    {"delivery: is made beside one that can't be read", test_delivery_is_made_beside_one_that_cannot_be_read},
    {"delivery: waits across a key that is none", test_delivery_waits_across_a_key_that_is_none},
    {"delivery: that can't be read lets the next one pass (O2)",
     test_delivery_that_cannot_be_read_lets_the_next_one_pass_O2},
    {"delivery: passes nobody that can be read (O3)", test_delivery_passes_nobody_that_can_be_read_O3},
    {"delivery: entries that are not its own go", test_delivery_entries_that_are_not_its_own_go},
    {"delivery: places are found past what can't be read",
     test_delivery_places_are_found_past_what_cannot_be_read},
    {"delivery: strays that can't be are refused", test_delivery_strays_that_cant_be_are_refused},
    {"delivery: to a receiver without a host", test_delivery_to_a_receiver_without_a_host},
    {"delivery: goes by its own time alone", test_delivery_goes_by_its_own_time_alone},
    {"delivery: beyond all time is refused", test_delivery_beyond_all_time_is_refused},
    {NULL, NULL},
};
