/* The relay of job events: from the outbox to deliveries; what can't be handed on is buried, and holds nobody up. */
#include "acutest.h"

#include "store/client.h"
#include "store/counter.h"
#include "store/delivery_relay.h"
#include "tests/store/jobs.h"

struct scene {
    struct jobs j;
    struct uuid job;
    uint16_t partition;
    uint64_t fence, rows[2]; /* of the outbox: created, queued */
};

static void open_scene(struct scene *s)
{
    struct answer answer;
    jobs_open(&s->j);
    struct job_submit c = jobs_wish(&s->j, WORK_KIND_SUCCESS_FAST);
    c.callback = span_text("https://a.example/");
    TEST_CHECK(jobs_submit(&s->j, &c, NULL) == OK);
    s->job = c.id;
    struct job job = jobs_look(&s->j, &c.id);
    struct view *view = view_open_outside(s->j.fresh.store, 0);
    TEST_ASSERT(view != NULL);
    s->partition = outbox_partition(&view->txn, &c.id);
    view_close(view);
    s->rows[0] = job.outbox_first;
    s->rows[1] = job.outbox_last;
    struct outbox_claim_command claim = {.partition = s->partition, .holder = 1};
    TEST_CHECK(batch_one(s->j.fresh.store, &outbox_claim_class, s->j.at_us, &claim, &answer) == OK);
    memcpy(&s->fence, answer.bytes, sizeof(s->fence));
}

static struct delivery_relay relay_of(const struct scene *s, const void *rows, uint32_t size)
{
    return (struct delivery_relay){.partition = s->partition,
                                   .fence = s->fence,
                                   .steady_us = s->j.steady_us,
                                   .kept_us = JOBS_DAY_US,
                                   .rows = span_of(rows, size)};
}

static enum error relay(struct scene *s, const struct delivery_relay *c, struct delivery_relayed *ret)
{
    struct answer answer;
    enum error e = batch_one(s->j.fresh.store, &delivery_relay_class, s->j.at_us, c, &answer);
    if (!e && TEST_CHECK(answer.size == sizeof(*ret)))
        memcpy(ret, answer.bytes, sizeof(*ret));
    return e;
}

static void test_relay_hands_on_each_row_once_O1(void)
{
    struct scene s;
    struct delivery_relayed got;
    open_scene(&s);
    struct delivery_relay c = relay_of(&s, s.rows, sizeof(s.rows));
    TEST_CHECK(relay(&s, &c, &got) == OK && got.rows == 2 && got.deliveries == 2 && got.buried == 0);
    TEST_CHECK(jobs_rows(&s.j, TABLE_OUTBOX) == 0 && jobs_rows(&s.j, TABLE_DELIVERIES) == 2);
    TEST_CHECK(relay(&s, &c, &got) == OK && got.rows == 0 && got.deliveries == 0);
    jobs_close(&s.j);
}

static void test_relay_refuses_what_can_be_no_rows(void)
{
    struct scene s;
    struct delivery_relayed got;
    open_scene(&s);
    const uint64_t same[] = {s.rows[0], s.rows[0]}, back[] = {s.rows[1], s.rows[0]}, none[] = {0};
    uint64_t sum = jobs_sum(&s.j);
    struct delivery_relay wrong[] = {relay_of(&s, s.rows, 0),
                                     relay_of(&s, s.rows, 15),
                                     relay_of(&s, same, sizeof(same)),
                                     relay_of(&s, back, sizeof(back)),
                                     relay_of(&s, none, sizeof(none)),
                                     relay_of(&s, s.rows, sizeof(s.rows)),
                                     relay_of(&s, s.rows, sizeof(s.rows))};
    wrong[5].kept_us = UINT64_MAX;
    wrong[6].partition = OUTBOX_PARTITIONS;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        TEST_CHECK_(relay(&s, &wrong[i], &got) == ERR_INVALID, "number %u", (unsigned)i);
    struct delivery_relay late = relay_of(&s, s.rows, sizeof(s.rows));
    late.fence--;
    TEST_CHECK(relay(&s, &late, &got) == ERR_FENCED && jobs_sum(&s.j) == sum);
    jobs_close(&s.j);
}

/* How many of its rows were given up for this reason. */
static uint32_t buried_with(struct scene *s, const char *reason)
{
    struct view *view = view_open_outside(s->j.fresh.store, 0);
    uint32_t count = 0;
    TEST_ASSERT(view != NULL);
    for (size_t i = 0; i < sizeof(s->rows) / sizeof(*s->rows); i++) {
        struct key key = outbox_key(s->partition, s->rows[i]);
        struct dead dead;
        count += txn_read(&view->txn, TABLE_DEAD, key_span(&key), &dead) == OK &&
                 span_equal(dead.reason, span_text(reason));
    }
    view_close(view);
    return count;
}

/* Its event is of no name, or can't be read; its definition or the job itself has gone: each row is buried with that reason. */
static void test_relay_buries_what_cannot_be_handed_on(void)
{
    for (int way = 0; way < 4; way++) {
        struct scene s;
        struct delivery_relayed got;
        struct event event;
        struct job_definition definition = {.kind = WORK_KIND_SUCCESS_FAST};
        open_scene(&s);
        struct job job = jobs_look(&s.j, &s.job);
        struct view *view = view_open_outside(s.j.fresh.store, 0);
        TEST_ASSERT(view != NULL);
        TEST_CHECK(event_read(&view->txn, &s.job, 2, &event) == OK);
        view_close(view);
        event.data = span_of(NULL, 0);
        struct event strange = event;
        strange.name = JOB_EVENT_COUNT;
        struct fresh *fresh = &s.j.fresh;
        if (way == 0)
            fresh_put(fresh, TABLE_EVENTS, event_key(&s.job, 2), &strange);
        else if (way == 1)
            fresh_flip(fresh, TABLE_EVENTS, event_key(&s.job, 2));
        else
            fresh_take(fresh, way == 2 ? TABLE_JOB_DEFINITIONS : TABLE_JOBS, key_of_uuid(&s.job));
        struct delivery_relay c = relay_of(&s, s.rows, sizeof(s.rows));
        uint32_t buried = way < 2 ? 1 : 2;
        TEST_CHECK(relay(&s, &c, &got) == OK && got.rows == 2 && got.buried == buried);
        TEST_CHECK(got.deliveries == 2 - buried && jobs_rows(&s.j, TABLE_DEAD) == buried);
        TEST_CHECK(jobs_rows(&s.j, TABLE_OUTBOX) == 0);
        TEST_CHECK(buried_with(&s, error_name(way < 2 ? ERR_DAMAGED : ERR_NOT_FOUND)) == buried);
        if (way == 0)
            fresh_put(fresh, TABLE_EVENTS, event_key(&s.job, 2), &event);
        else if (way == 1)
            fresh_flip(fresh, TABLE_EVENTS, event_key(&s.job, 2));
        else if (way == 2)
            fresh_put(fresh, TABLE_JOB_DEFINITIONS, key_of_uuid(&s.job), &definition);
        else
            fresh_put(fresh, TABLE_JOBS, key_of_uuid(&s.job), &job);
        jobs_close(&s.j);
    }
}

static struct outbox row_of(struct scene *s, uint64_t seq)
{
    struct key key = outbox_key(s->partition, seq);
    struct outbox row = {.topic = 0};
    struct view *view = view_open_outside(s->j.fresh.store, 0);
    TEST_ASSERT(view != NULL);
    TEST_CHECK(txn_read(&view->txn, TABLE_OUTBOX, key_span(&key), &row) == OK);
    view_close(view);
    return row;
}

/* Events of a job, and what a worker has it tell; what is of another kind waits for whoever relays that. */
static void test_relay_hands_on_what_is_told_of_jobs_alone(void)
{
    struct scene s;
    struct delivery_relayed got;
    open_scene(&s);
    struct delivery_relay c = relay_of(&s, s.rows, sizeof(s.rows));
    struct outbox row = row_of(&s, s.rows[0]), other = row_of(&s, s.rows[1]);
    row.topic = OUTBOX_JOB_EMITTED;
    other.topic = OUTBOX_JOB_EMITTED + 1;
    fresh_put(&s.j.fresh, TABLE_OUTBOX, outbox_key(s.partition, s.rows[0]), &row);
    fresh_put(&s.j.fresh, TABLE_OUTBOX, outbox_key(s.partition, s.rows[1]), &other);
    TEST_CHECK(relay(&s, &c, &got) == OK && got.rows == 1 && got.deliveries == 1 && got.buried == 0);
    TEST_CHECK(jobs_rows(&s.j, TABLE_OUTBOX) == 1 && row_of(&s, s.rows[1]).topic == other.topic);
    other.topic = OUTBOX_JOB;
    fresh_put(&s.j.fresh, TABLE_OUTBOX, outbox_key(s.partition, s.rows[1]), &other);
    TEST_CHECK(relay(&s, &c, &got) == OK && got.rows == 1 && jobs_rows(&s.j, TABLE_OUTBOX) == 0);
    jobs_close(&s.j);
}

/* A row that can't be read stays where it is, for check to tell of; those behind it are handed on. */
static void test_relay_leaves_a_row_that_cannot_be_read(void)
{
    struct scene s;
    struct delivery_relayed got;
    open_scene(&s);
    fresh_flip(&s.j.fresh, TABLE_OUTBOX, outbox_key(s.partition, s.rows[0]));
    struct delivery_relay c = relay_of(&s, s.rows, sizeof(s.rows));
    TEST_CHECK(relay(&s, &c, &got) == OK && got.rows == 1 && got.deliveries == 1 && got.buried == 0);
    fresh_flip(&s.j.fresh, TABLE_OUTBOX, outbox_key(s.partition, s.rows[0]));
    TEST_CHECK(relay(&s, &c, &got) == OK && got.rows == 1 && got.deliveries == 1);
    jobs_close(&s.j);
}

static struct uuid hook(struct scene *s, uint8_t first, const char *url)
{
    struct webhook_put c = {
        .id = {{first}}, .client = s->j.client, .events = WEBHOOK_ALL, .url = span_text(url)};
    TEST_CHECK(batch_one(s->j.fresh.store, &webhook_put_class, s->j.at_us, &c, NULL) == OK);
    return c.id;
}

static enum error revive_both(struct txn *txn, uint64_t at_us, void *context)
{
    const struct scene *s = context;
    (void)at_us;
    enum error e = outbox_revive(txn, s->partition, s->rows[0]);
    return e ? e : outbox_revive(txn, s->partition, s->rows[1]);
}

/* The webhook that can't be read, one of two on either side of the other: nobody else misses an event for it, and once it can be read, the
 * rows that were buried for it bring it its own. */
static void test_relay_damage_of_one_webhook_is_no_other_receivers_JOB_326(void)
{
    for (uint8_t bad = 1; bad <= 2; bad++) {
        struct scene s;
        struct delivery_relayed got;
        open_scene(&s);
        struct client_create client = {.id = s.j.client};
        (void)batch_one(s.j.fresh.store, &client_create_class, s.j.at_us, &client, NULL);
        struct uuid ids[] = {hook(&s, 1, "https://b.example/"), hook(&s, 2, "https://c.example/")};
        struct key key = key_of_uuid(&s.j.client);
        key_add_uuid(&key, &ids[bad - 1]);
        fresh_flip(&s.j.fresh, TABLE_WEBHOOKS, key);
        struct delivery_relay c = relay_of(&s, s.rows, sizeof(s.rows));
        TEST_CHECK(relay(&s, &c, &got) == OK && got.rows == 2 && got.deliveries == 4 && got.buried == 2);
        TEST_CHECK(jobs_rows(&s.j, TABLE_OUTBOX) == 0 && jobs_rows(&s.j, TABLE_DEAD) == 2);
        fresh_flip(&s.j.fresh, TABLE_WEBHOOKS, key);
        TEST_CHECK(fresh_do(&s.j.fresh, s.j.at_us, revive_both, &s) == OK);
        TEST_CHECK(relay(&s, &c, &got) == OK && got.rows == 2 && got.deliveries == 2 && got.buried == 0);
        TEST_CHECK(jobs_rows(&s.j, TABLE_DELIVERIES) == 6 && jobs_rows(&s.j, TABLE_DEAD) == 0);
        jobs_close(&s.j);
    }
}

static bool of_first_event(struct scene *s, const struct uuid *webhook, struct uuid *ret_id)
{
    struct view *view = view_open_outside(s->j.fresh.store, 0);
    const struct key from = {.size = 0};
    struct delivery d;
    bool found = false;
    TEST_ASSERT(view != NULL);
    struct scan scan = txn_scan(&view->txn, TABLE_DELIVERIES, key_span(&from), 0, SCAN_UP);
    while (!found && scan_next(&scan) && scan_read(&scan, &d) == OK)
        found = d.event == 1 && uuid_equal(&d.webhook, webhook);
    if (found)
        *ret_id = d.id;
    (void)scan_end(&scan);
    view_close(view);
    return found;
}

/* fresh_put counts nothing. */
static enum error count_row(struct txn *txn, uint64_t at_us, void *context)
{
    const struct scene *s = context;
    struct key label = {.size = 0};
    (void)at_us;
    key_add_u16(&label, s->partition);
    counter_add(txn, COUNTER_OUTBOX, key_span(&label), 1);
    return OK;
}

/* A delivery that can't be read and is to be made again: nothing is written over it, and the other receiver has its own. */
static void test_relay_leaves_a_delivery_that_cannot_be_read(void)
{
    static const struct uuid callback = {{0}};
    struct scene s;
    struct delivery_relayed got;
    struct uuid id;
    open_scene(&s);
    struct client_create client = {.id = s.j.client};
    (void)batch_one(s.j.fresh.store, &client_create_class, s.j.at_us, &client, NULL);
    struct delivery_relay c = relay_of(&s, s.rows, sizeof(s.rows[0]));
    struct outbox row = {.at_us = s.j.at_us, .topic = OUTBOX_JOB, .stream = s.job, .event = 1};
    TEST_CHECK(relay(&s, &c, &got) == OK && got.deliveries == 1 && of_first_event(&s, &callback, &id));
    struct uuid webhook = hook(&s, 1, "https://b.example/"), theirs;
    fresh_flip(&s.j.fresh, TABLE_DELIVERIES, key_of_uuid(&id));
    fresh_put(&s.j.fresh, TABLE_OUTBOX, outbox_key(s.partition, s.rows[0]), &row);
    TEST_CHECK(fresh_do(&s.j.fresh, 1, count_row, &s) == OK); /* it is there again */
    TEST_CHECK(relay(&s, &c, &got) == OK && got.deliveries == 1 && got.buried == 1);
    fresh_flip(&s.j.fresh, TABLE_DELIVERIES, key_of_uuid(&id));
    TEST_CHECK(of_first_event(&s, &webhook, &theirs) && of_first_event(&s, &callback, &id));
    jobs_close(&s.j);
}

TEST_LIST
= {
    {"relay: hands on each row once (O1)", test_relay_hands_on_each_row_once_O1},
    {"relay: refuses what can be no rows", test_relay_refuses_what_can_be_no_rows},
    {"relay: buries what can't be handed on", test_relay_buries_what_cannot_be_handed_on},
    {"relay: hands on what is told of jobs alone", test_relay_hands_on_what_is_told_of_jobs_alone},
    {"relay: leaves a row that can't be read", test_relay_leaves_a_row_that_cannot_be_read},
    {"relay: damage of one webhook is no other receiver's (JOB-326)",
     test_relay_damage_of_one_webhook_is_no_other_receivers_JOB_326},
    {"relay: leaves a delivery that can't be read", test_relay_leaves_a_delivery_that_cannot_be_read},
    {NULL, NULL},
};
