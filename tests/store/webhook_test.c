/* Webhooks: put once, told again with the same key, found by client and by id, switched off and on, removed. */
#include "acutest.h"

#include "store/client.h"
#include "store/counter.h"
#include "store/delivery.h"
#include "store/job.h"
#include "store/ledger.h"
#include "store/sha256.h"
#include "store/store.h"
#include "store/value.h"
#include "store/webhook.h"
#include "tests/store/fresh.h"

#define AT_US   UINT64_C(1700000000000000)
#define HOUR_US (UINT64_C(3600) * 1000000)

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

static struct webhook_put hook_of(const struct uuid *client, const char *url, uint32_t events)
{
    return (struct webhook_put){
        .client = *client, .id = fresh_uuid(), .events = events, .url = span_text(url)};
}

static enum error put(struct fresh *fresh, uint64_t at_us, const struct webhook_put *c,
                      struct webhook_made *ret)
{
    struct answer answer;
    struct webhook_made made = {.created_us = 0};
    enum error e = batch_one(fresh->store, &webhook_put_class, at_us, c, &answer);
    if (!e)
        TEST_CHECK(record_decode(&webhook_made_record, 1, span_of(answer.bytes, answer.size), &made) == OK);
    if (ret)
        *ret = made;
    return e;
}

static enum error drop(struct fresh *fresh, const struct uuid *client, const struct uuid *id)
{
    struct webhook_remove c = {.client = *client, .id = *id};
    return batch_one(fresh->store, &webhook_remove_class, AT_US, &c, NULL);
}

static enum error turn(struct fresh *fresh, uint64_t at_us, const struct uuid *client, const struct uuid *id,
                       uint8_t on)
{
    struct webhook_switch c = {.client = *client, .id = *id, .on = on};
    return batch_one(fresh->store, &webhook_switch_class, at_us, &c, NULL);
}

/* The row without its URL. */
static enum error look_for(struct fresh *fresh, const struct uuid *client, const struct uuid *id,
                           struct webhook *ret)
{
    struct view *view = view_open_outside(fresh->store, 0);
    TEST_ASSERT(view != NULL);
    enum error e = webhook_read(&view->txn, client, id, ret);
    view_close(view);
    ret->url = span_of(NULL, 0);
    return e;
}

static uint32_t listed(struct fresh *fresh, const struct uuid *client, struct webhook webhooks[WEBHOOKS_MAX])
{
    struct view *view = view_open_outside(fresh->store, 0);
    uint32_t count = 0;
    TEST_ASSERT(view != NULL);
    TEST_CHECK(webhook_list(&view->txn, client, webhooks, &count) == OK);
    view_close(view);
    return count;
}

static struct key row_key(const struct webhook_put *c)
{
    struct key key = key_of_uuid(&c->client);
    key_add_uuid(&key, &c->id);
    return key;
}

static int64_t active(struct fresh *fresh, const struct uuid *client)
{
    return fresh_counter(fresh, COUNTER_WEBHOOKS, span_of(client, sizeof(*client)));
}

static void test_webhook_is_kept_as_it_came_JOB_184_JOB_459(void)
{
    struct fresh fresh;
    struct webhook webhook, all[WEBHOOKS_MAX];
    struct webhook_made made;
    fresh_open(&fresh);
    struct uuid client = join(&fresh), other = join(&fresh), owner;
    struct webhook_put c = hook_of(&client, "https://a.example/", 1u << JOB_FAIL);
    TEST_CHECK(put(&fresh, AT_US, &c, &made) == OK);
    TEST_CHECK(uuid_equal(&made.id, &c.id) && made.created_us == AT_US);
    fresh_reopen(&fresh);
    TEST_CHECK(look_for(&fresh, &client, &c.id, &webhook) == OK);
    TEST_CHECK(webhook.events == c.events && webhook.created_us == AT_US && webhook.state == WEBHOOK_ACTIVE);
    TEST_CHECK(listed(&fresh, &client, all) == 1 && listed(&fresh, &other, all) == 0);
    struct view *view = view_open_outside(fresh.store, 0);
    TEST_CHECK(webhook_owner(&view->txn, &c.id, &owner) == OK && uuid_equal(&owner, &client));
    TEST_CHECK(webhook_read(&view->txn, &client, &c.id, &webhook) == OK &&
               span_equal(webhook.url, span_text("https://a.example/")));
    TEST_CHECK(webhook_read(&view->txn, &other, &c.id, &webhook) == ERR_NOT_FOUND);
    view_close(view);
    TEST_CHECK(active(&fresh, &client) == 1 && active(&fresh, &other) == 0);
    fresh_close(&fresh);
}

static void test_webhook_same_url_and_events_is_a_conflict_JOB_189_JOB_368(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    struct uuid client = join(&fresh), other = join(&fresh);
    struct webhook_put c = hook_of(&client, "https://a.example/", 3);
    TEST_CHECK(put(&fresh, AT_US, &c, NULL) == OK);
    TEST_CHECK(put(&fresh, AT_US, &c, NULL) == ERR_EXISTS);
    struct webhook_put twin = hook_of(&client, "https://a.example/", 3);
    TEST_CHECK(put(&fresh, AT_US, &twin, NULL) == ERR_CONFLICT);
    struct webhook_put differs = hook_of(&client, "https://a.example/", 1);
    TEST_CHECK(put(&fresh, AT_US, &differs, NULL) == OK);
    differs = hook_of(&client, "https://a.example/b", 3);
    TEST_CHECK(put(&fresh, AT_US, &differs, NULL) == OK);
    differs = hook_of(&other, "https://a.example/", 3);
    TEST_CHECK(put(&fresh, AT_US, &differs, NULL) == OK);
    TEST_CHECK(active(&fresh, &client) == 3 && active(&fresh, &other) == 1);
    TEST_CHECK(drop(&fresh, &client, &c.id) == OK && put(&fresh, AT_US, &twin, NULL) == OK);
    fresh_close(&fresh);
}

static void test_webhook_refusals_write_nothing(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    struct uuid client = join(&fresh), nobody = fresh_uuid();
    struct webhook_put c = hook_of(&nobody, "https://a.example/", 1);
    TEST_CHECK(put(&fresh, AT_US, &c, NULL) == ERR_NOT_FOUND);
    c = hook_of(&client, "https://a.example/", 0);
    TEST_CHECK(put(&fresh, AT_US, &c, NULL) == ERR_INVALID);
    c = hook_of(&client, "", 1);
    TEST_CHECK(put(&fresh, AT_US, &c, NULL) == ERR_INVALID);
    c = hook_of(&client, "https://a.example/", 1);
    c.id = (struct uuid){{0}};
    TEST_CHECK(put(&fresh, AT_US, &c, NULL) == ERR_INVALID);
    TEST_CHECK(active(&fresh, &client) == 0);
    fresh_close(&fresh);
}

static void test_webhook_the_same_key_is_the_same_webhook_JOB_101_JOB_189(void)
{
    struct fresh fresh;
    struct webhook_made first, again;
    fresh_open(&fresh);
    struct uuid client = join(&fresh), other = join(&fresh);
    struct webhook_put c = hook_of(&client, "https://a.example/", 1);
    c.key = span_text("k");
    TEST_CHECK(put(&fresh, AT_US, &c, &first) == OK);
    c.id = fresh_uuid(); /* each try has one of its own */
    TEST_CHECK(put(&fresh, AT_US + 1, &c, &again) == OK);
    TEST_CHECK(uuid_equal(&first.id, &again.id) && again.created_us == AT_US);
    c.digest.bytes[0] = 1;
    TEST_CHECK(put(&fresh, AT_US + 1, &c, NULL) == ERR_KEY_REUSED);
    c = hook_of(&other, "https://a.example/", 1); /* keys are each client's own */
    c.key = span_text("k");
    TEST_CHECK(put(&fresh, AT_US + 1, &c, &again) == OK && !uuid_equal(&first.id, &again.id));
    struct uuid next = client; /* the id beside it */
    next.bytes[15] ^= 1;
    next = join_as(&fresh, next);
    c = hook_of(&next, "https://a.example/", 1);
    c.key = span_text("k");
    TEST_CHECK(put(&fresh, AT_US + 1, &c, &again) == OK && uuid_equal(&again.id, &c.id));
    TEST_CHECK(drop(&fresh, &client, &first.id) == OK); /* what was answered stays answered */
    c = hook_of(&client, "https://a.example/", 1);
    c.key = span_text("k");
    TEST_CHECK(put(&fresh, AT_US + 2, &c, &again) == OK && uuid_equal(&first.id, &again.id));
    TEST_CHECK(active(&fresh, &client) == 0);
    fresh_close(&fresh);
}

static void test_webhook_a_client_has_32_at_most(void)
{
    struct fresh fresh;
    struct webhook all[WEBHOOKS_MAX];
    char url[64];
    fresh_open(&fresh);
    struct uuid client = join(&fresh), last = {{0}};
    for (unsigned i = 0; i <= WEBHOOKS_MAX; i++) {
        snprintf(url, sizeof(url), "https://a.example/%u", i);
        struct webhook_put c = hook_of(&client, url, 1);
        TEST_CHECK(put(&fresh, AT_US, &c, NULL) == (i < WEBHOOKS_MAX ? OK : ERR_LIMIT));
        last = i < WEBHOOKS_MAX ? c.id : last;
    }
    TEST_CHECK(listed(&fresh, &client, all) == WEBHOOKS_MAX);
    TEST_CHECK(turn(&fresh, AT_US, &client, &last, 0) == OK); /* it keeps its place */
    struct webhook_put c = hook_of(&client, "https://b.example/", 1);
    TEST_CHECK(put(&fresh, AT_US, &c, NULL) == ERR_LIMIT);
    TEST_CHECK(drop(&fresh, &client, &last) == OK && put(&fresh, AT_US, &c, NULL) == OK);
    fresh_close(&fresh);
}

static void test_webhook_removed_is_gone_JOB_193_JOB_196_JOB_197(void)
{
    struct fresh fresh;
    struct webhook webhook;
    fresh_open(&fresh);
    struct uuid client = join(&fresh), other = join(&fresh), unknown = fresh_uuid();
    struct webhook_put c = hook_of(&client, "https://a.example/", 1);
    TEST_CHECK(put(&fresh, AT_US, &c, NULL) == OK);
    TEST_CHECK(drop(&fresh, &other, &c.id) == ERR_FORBIDDEN &&
               drop(&fresh, &client, &unknown) == ERR_NOT_FOUND);
    TEST_CHECK(look_for(&fresh, &client, &c.id, &webhook) == OK);
    TEST_CHECK(drop(&fresh, &client, &c.id) == OK && drop(&fresh, &client, &c.id) == ERR_NOT_FOUND);
    TEST_CHECK(drop(&fresh, &other, &c.id) == ERR_NOT_FOUND);
    TEST_CHECK(look_for(&fresh, &client, &c.id, &webhook) == ERR_NOT_FOUND && active(&fresh, &client) == 0);
    fresh_close(&fresh);
}

static void test_webhook_is_switched_off_and_on(void)
{
    struct fresh fresh;
    struct webhook webhook;
    fresh_open(&fresh);
    struct uuid client = join(&fresh), other = join(&fresh);
    struct webhook_put c = hook_of(&client, "https://a.example/", 1);
    TEST_CHECK(put(&fresh, AT_US, &c, NULL) == OK);
    TEST_CHECK(turn(&fresh, AT_US + 1, &client, &c.id, 1) == OK);
    TEST_CHECK(look_for(&fresh, &client, &c.id, &webhook) == OK && webhook.changed_us == AT_US);
    TEST_CHECK(turn(&fresh, AT_US + 2, &client, &c.id, 0) == OK && active(&fresh, &client) == 0);
    TEST_CHECK(look_for(&fresh, &client, &c.id, &webhook) == OK);
    TEST_CHECK(webhook.state == WEBHOOK_DISABLED && webhook.reason == WEBHOOK_BY_CLIENT &&
               webhook.changed_us == AT_US + 2);
    TEST_CHECK(turn(&fresh, AT_US + 3, &client, &c.id, 0) == OK);
    TEST_CHECK(look_for(&fresh, &client, &c.id, &webhook) == OK && webhook.changed_us == AT_US + 2);
    fresh_sound(&fresh);
    TEST_CHECK(turn(&fresh, AT_US + 4, &client, &c.id, 1) == OK && active(&fresh, &client) == 1);
    TEST_CHECK(look_for(&fresh, &client, &c.id, &webhook) == OK && webhook.reason == WEBHOOK_NO_REASON);
    TEST_CHECK(turn(&fresh, AT_US, &other, &c.id, 0) == ERR_FORBIDDEN);
    TEST_CHECK(turn(&fresh, AT_US, &client, &other, 0) == ERR_NOT_FOUND);
    TEST_CHECK(turn(&fresh, AT_US, &client, &c.id, 2) == ERR_INVALID);
    TEST_CHECK(turn(&fresh, AT_US + 4, &client, &c.id, 0) == OK && drop(&fresh, &client, &c.id) == OK);
    TEST_CHECK(active(&fresh, &client) == 0);
    fresh_close(&fresh);
}

/* ---- secrets ---- */

static uint32_t rotate(struct fresh *fresh, uint64_t at_us, const struct webhook_put *of)
{
    struct webhook_rotate c = {.client = of->client, .id = of->id};
    struct answer answer;
    uint32_t number = 0;
    TEST_CHECK(batch_one(fresh->store, &webhook_rotate_class, at_us, &c, &answer) == OK);
    TEST_CHECK(answer.size == sizeof(number));
    memcpy(&number, answer.bytes, sizeof(number));
    return number;
}

static void test_webhook_secrets_are_each_ones_own_and_come_back(void)
{
    struct fresh fresh;
    struct webhook webhook;
    uint8_t first[WEBHOOK_SECRET_SIZE], second[WEBHOOK_SECRET_SIZE], again[WEBHOOK_SECRET_SIZE];
    fresh_open(&fresh);
    struct uuid client = join(&fresh), other = join(&fresh);
    struct webhook_put c = hook_of(&client, "https://a.example/", 1);
    TEST_CHECK(put(&fresh, AT_US, &c, NULL) == OK);
    TEST_CHECK(look_for(&fresh, &client, &c.id, &webhook) == OK && webhook.secret == 0);
    TEST_CHECK(rotate(&fresh, AT_US + 1, &c) == 1 && rotate(&fresh, AT_US + 2, &c) == 2);
    TEST_CHECK(look_for(&fresh, &client, &c.id, &webhook) == OK && webhook.secret == 2 &&
               webhook.secret_us == AT_US + 2);
    webhook_secret(fresh.store, &c.id, 1, first);
    webhook_secret(fresh.store, &c.id, 2, second);
    TEST_CHECK(memcmp(first, second, sizeof(first)) != 0);
    uint32_t number = 2; /* receivers have it: a later version makes the same one */
    struct hmac hmac;
    hmac_start(&hmac, fresh.store->secret, sizeof(fresh.store->secret));
    hmac_add(&hmac, "coppice webhook secret", sizeof("coppice webhook secret"));
    hmac_add(&hmac, c.id.bytes, sizeof(c.id.bytes));
    hmac_add(&hmac, &number, sizeof(number));
    hmac_end(&hmac, again);
    TEST_CHECK(memcmp(second, again, sizeof(second)) == 0);
    webhook_secret(fresh.store, &other, 1, again);
    TEST_CHECK(memcmp(first, again, sizeof(first)) != 0);
    fresh_reopen(&fresh);
    webhook_secret(fresh.store, &c.id, 1, again);
    TEST_CHECK(memcmp(first, again, sizeof(first)) == 0);
    webhook.url = c.url; /* numbers end some time: none comes a second time */
    webhook.secret = UINT32_MAX;
    fresh_put(&fresh, TABLE_WEBHOOKS, row_key(&c), &webhook);
    struct webhook_rotate last = {.client = client, .id = c.id};
    TEST_CHECK(batch_one(fresh.store, &webhook_rotate_class, AT_US, &last, NULL) == ERR_LIMIT);
    TEST_CHECK(look_for(&fresh, &client, &c.id, &webhook) == OK && webhook.secret == UINT32_MAX);
    struct webhook_rotate foreign = {.client = other, .id = c.id};
    TEST_CHECK(batch_one(fresh.store, &webhook_rotate_class, AT_US, &foreign, NULL) == ERR_FORBIDDEN);
    fresh_close(&fresh);
}

/* ---- what came of attempts ---- */

struct attempted {
    struct webhook_attempt attempt;
    bool disabled;
};

static enum error note_attempt(struct txn *txn, uint64_t at_us, void *context)
{
    struct attempted *a = context;
    a->attempt.at_us = at_us;
    return webhook_attempted(txn, &a->attempt, &a->disabled);
}

static bool told(struct fresh *fresh, uint64_t at_us, uint64_t steady_us, const struct webhook_put *of,
                 enum delivery_outcome outcome, bool gone)
{
    struct attempted a = {.attempt = {.client = &of->client,
                                      .id = &of->id,
                                      .steady_us = steady_us,
                                      .disable_after_us = HOUR_US,
                                      .delivered = outcome == DELIVERY_SUCCEED,
                                      .given_up = outcome == DELIVERY_GIVE_UP,
                                      .gone = gone}};
    TEST_CHECK(fresh_do(fresh, at_us, note_attempt, &a) == OK);
    return a.disabled;
}

/* With a wall clock that is right. */
static bool attempt(struct fresh *fresh, uint64_t at_us, const struct webhook_put *of,
                    enum delivery_outcome outcome)
{
    return told(fresh, at_us, at_us, of, outcome, false);
}

static void test_webhook_says_since_when_it_fails_and_is_disabled_in_the_end(void)
{
    struct fresh fresh;
    struct webhook webhook;
    fresh_open(&fresh);
    struct uuid client = join(&fresh);
    struct webhook_put c = hook_of(&client, "https://a.example/", 1);
    TEST_CHECK(put(&fresh, AT_US, &c, NULL) == OK);
    TEST_CHECK(!attempt(&fresh, AT_US, &c, DELIVERY_SUCCEED));
    TEST_CHECK(!attempt(&fresh, AT_US + 1, &c, DELIVERY_GIVE_UP) &&
               !attempt(&fresh, AT_US + 2, &c, DELIVERY_GIVE_UP));
    TEST_CHECK(look_for(&fresh, &client, &c.id, &webhook) == OK && webhook.failing_us == AT_US + 1 &&
               webhook.given_up == 2);
    TEST_CHECK(!attempt(&fresh, AT_US + 3, &c, DELIVERY_SUCCEED));
    TEST_CHECK(look_for(&fresh, &client, &c.id, &webhook) == OK && webhook.failing_us == 0 &&
               webhook.failing_steady_us == 0 && webhook.given_up == 0);
    TEST_CHECK(!attempt(&fresh, AT_US + 4, &c, DELIVERY_RETRY));
    TEST_CHECK(!attempt(&fresh, AT_US + 5, &c, DELIVERY_GIVE_UP));
    TEST_CHECK(!attempt(&fresh, AT_US + 4 + HOUR_US - 1, &c, DELIVERY_GIVE_UP) &&
               active(&fresh, &client) == 1);
    TEST_CHECK(!attempt(&fresh, AT_US + 4 + HOUR_US, &c, DELIVERY_RETRY) && active(&fresh, &client) == 1);
    TEST_CHECK(attempt(&fresh, AT_US + 4 + HOUR_US, &c, DELIVERY_GIVE_UP) && active(&fresh, &client) == 0);
    TEST_CHECK(look_for(&fresh, &client, &c.id, &webhook) == OK && webhook.reason == WEBHOOK_FAILING &&
               webhook.failing_us == AT_US + 4);
    TEST_CHECK(!attempt(&fresh, AT_US + 5 + HOUR_US, &c, DELIVERY_GIVE_UP));
    TEST_CHECK(turn(&fresh, AT_US + 6 + HOUR_US, &client, &c.id, 1) == OK); /* with its whole time again */
    TEST_CHECK(!attempt(&fresh, AT_US + 7 + HOUR_US, &c, DELIVERY_GIVE_UP) &&
               !attempt(&fresh, AT_US + 8 + HOUR_US, &c, DELIVERY_GIVE_UP) && active(&fresh, &client) == 1);
    fresh_close(&fresh);
}

/* A bad moment, days in which nothing was to be sent, and another one. */
static void test_webhook_with_few_events_is_not_disabled_by_two_bad_moments(void)
{
    struct fresh fresh;
    struct webhook webhook;
    fresh_open(&fresh);
    struct uuid client = join(&fresh);
    struct webhook_put c = hook_of(&client, "https://a.example/", 1);
    TEST_CHECK(put(&fresh, AT_US, &c, NULL) == OK);
    for (uint64_t i = 0; i < 5; i++)
        TEST_CHECK(!attempt(&fresh, AT_US + i, &c, DELIVERY_RETRY));
    TEST_CHECK(!attempt(&fresh, AT_US + 5, &c, DELIVERY_GIVE_UP));
    uint64_t later_us = AT_US + 6 * 24 * HOUR_US;
    TEST_CHECK(!attempt(&fresh, later_us, &c, DELIVERY_RETRY) && active(&fresh, &client) == 1);
    TEST_CHECK(look_for(&fresh, &client, &c.id, &webhook) == OK && webhook.failing_us == AT_US);
    TEST_CHECK(!attempt(&fresh, later_us + 1, &c, DELIVERY_SUCCEED)); /* the retry */
    TEST_CHECK(look_for(&fresh, &client, &c.id, &webhook) == OK && webhook.failing_us == 0);
    TEST_CHECK(!attempt(&fresh, later_us + 2, &c, DELIVERY_RETRY)); /* none is left of what was given up */
    TEST_CHECK(!attempt(&fresh, later_us + 3 * HOUR_US, &c, DELIVERY_GIVE_UP) &&
               active(&fresh, &client) == 1);
    TEST_CHECK(attempt(&fresh, later_us + 4 * HOUR_US, &c, DELIVERY_GIVE_UP) && active(&fresh, &client) == 0);
    fresh_close(&fresh);
}

static void test_webhook_is_not_disabled_by_a_clock_that_leaps(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    struct uuid client = join(&fresh);
    struct webhook_put c = hook_of(&client, "https://a.example/", 1);
    uint64_t ahead_us = AT_US + 6 * 24 * HOUR_US;
    TEST_CHECK(put(&fresh, AT_US, &c, NULL) == OK);
    TEST_CHECK(!told(&fresh, AT_US, AT_US, &c, DELIVERY_GIVE_UP, false));
    TEST_CHECK(!told(&fresh, ahead_us, AT_US + 1, &c, DELIVERY_GIVE_UP, false));
    TEST_CHECK(!told(&fresh, ahead_us, AT_US + HOUR_US - 1, &c, DELIVERY_GIVE_UP, false));
    TEST_CHECK(active(&fresh, &client) == 1);
    TEST_CHECK(told(&fresh, 1, AT_US + HOUR_US, &c, DELIVERY_GIVE_UP, false)); /* nor kept by one */
    fresh_close(&fresh);
}

/* As rows were before they said how many were given up. */
#define BEFORE_FIELDS(X)      \
    X(id, UUID, 0, 1)         \
    X(client, UUID, 0, 1)     \
    X(created_us, TIME, 0, 1) \
    X(changed_us, TIME, 0, 1) \
    X(failing_us, TIME, 0, 1) \
    X(secret_us, TIME, 0, 1)  \
    X(secret, U32, 0, 1)      \
    X(events, U32, 0, 1)      \
    X(state, U8, 0, 1)        \
    X(reason, U8, 0, 1)       \
    X(url, TEXT, WEBHOOK_URL_MAX, 1)
RECORD_STRUCT(before, BEFORE_FIELDS);
#define before_FIELD(name, TYPE, limit, since) RECORD_FIELD(before, name, TYPE, limit, since)
RECORD_CLASS(before, BEFORE_FIELDS, 1);

static enum error put_before(struct txn *txn, uint64_t at_us, void *context)
{
    const struct webhook_put *c = context;
    const struct before row = {.id = c->id,
                               .client = c->client,
                               .created_us = at_us,
                               .changed_us = at_us,
                               .failing_us = at_us,
                               .events = c->events,
                               .url = c->url};
    uint8_t bytes[256];
    struct key key = row_key(c);
    size_t size =
        value_write(value_seed("webhooks"), key_span(&key), &before_record, &row, bytes, sizeof(bytes));
    MDB_val k = {key.size, key.bytes}, v = {size, bytes};
    TEST_ASSERT(size > 0 &&
                mdb_put(txn->mdb, txn->store->environment.tables[TABLE_WEBHOOKS], &k, &v, 0) == 0);
    txn->writes++;
    return OK;
}

static void test_webhook_of_an_earlier_version_counts_from_its_next_failure_on(void)
{
    struct fresh fresh;
    struct webhook webhook;
    fresh_open(&fresh);
    struct uuid client = join(&fresh);
    struct webhook_put c = hook_of(&client, "https://a.example/", 1);
    TEST_CHECK(put(&fresh, AT_US, &c, NULL) == OK);
    TEST_CHECK(fresh_do(&fresh, AT_US, put_before, &c) == OK);
    fresh_reopen(&fresh);
    TEST_CHECK(look_for(&fresh, &client, &c.id, &webhook) == OK && webhook.failing_us == AT_US &&
               webhook.failing_steady_us == 0 && webhook.given_up == 0 && webhook.events == c.events);
    uint64_t later_us = AT_US + 9 * HOUR_US;
    TEST_CHECK(!attempt(&fresh, later_us, &c, DELIVERY_GIVE_UP) &&
               !attempt(&fresh, later_us + 1, &c, DELIVERY_GIVE_UP));
    TEST_CHECK(look_for(&fresh, &client, &c.id, &webhook) == OK && webhook.failing_us == AT_US &&
               webhook.failing_steady_us == later_us && webhook.given_up == WEBHOOK_GIVEN_UP_MIN);
    TEST_CHECK(attempt(&fresh, later_us + HOUR_US, &c, DELIVERY_GIVE_UP));
    fresh_close(&fresh);
}

static void test_webhook_410_disables_at_once(void)
{
    struct fresh fresh;
    struct webhook webhook;
    fresh_open(&fresh);
    struct uuid client = join(&fresh);
    struct webhook_put c = hook_of(&client, "https://a.example/", 1);
    TEST_CHECK(put(&fresh, AT_US, &c, NULL) == OK);
    TEST_CHECK(told(&fresh, AT_US, AT_US, &c, DELIVERY_GIVE_UP, true));
    TEST_CHECK(look_for(&fresh, &client, &c.id, &webhook) == OK && webhook.reason == WEBHOOK_GONE);
    TEST_CHECK(drop(&fresh, &client, &c.id) == OK && !told(&fresh, AT_US, AT_US, &c, DELIVERY_GIVE_UP, true));
    fresh_close(&fresh);
}

/* ---- names and tables ---- */

static void test_webhook_names_and_lifecycle(void)
{
    char text[256];
    uint8_t bit = 99;
    TEST_CHECK_(lifecycle_check(&webhook_lifecycle, text, sizeof(text)), "%s", text);
    TEST_CHECK(webhook_event_named(span_text("job.created"), &bit) && bit == JOB_CREATE);
    TEST_CHECK(webhook_event_named(span_text("job.emitted"), &bit) && bit == JOB_EMIT);
    TEST_CHECK(webhook_event_named(span_text("job.timed_out"), &bit) && bit == 6);
    TEST_CHECK(!webhook_event_named(span_text("*"), &bit) && !webhook_event_named(span_text(""), &bit) &&
               !webhook_event_named(span_text("job.create"), &bit));
    TEST_CHECK(strcmp(webhook_reason_name(WEBHOOK_GONE), "gone") == 0 &&
               !*webhook_reason_name(WEBHOOK_REASON_COUNT));
}

/* ---- what check finds ---- */

static enum error lose_id(struct txn *txn, uint64_t at_us, void *context)
{
    (void)at_us;
    txn_remove(txn, TABLE_WEBHOOK_IDS, span_of(context, 16));
    return OK;
}

static enum error lose_row(struct txn *txn, uint64_t at_us, void *context)
{
    const struct webhook_put *c = context;
    struct key key = key_of_uuid(&c->client);
    (void)at_us;
    key_add_uuid(&key, &c->id);
    txn_remove(txn, TABLE_WEBHOOKS, key_span(&key));
    return OK;
}

static enum error spoil_row(struct txn *txn, uint64_t at_us, void *context)
{
    const struct webhook_put *c = context;
    struct key key = key_of_uuid(&c->client);
    (void)at_us;
    key_add_uuid(&key, &c->id);
    txn_write(txn, TABLE_WEBHOOKS, key_span(&key),
              &(struct webhook){.id = c->client, .client = c->client, .state = 7, .reason = WEBHOOK_GONE});
    return OK;
}

static void test_webhook_damage_is_found(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    struct uuid client = join(&fresh);
    struct webhook_put c = hook_of(&client, "https://a.example/", 1);
    TEST_CHECK(put(&fresh, AT_US, &c, NULL) == OK);
    TEST_CHECK(
        fresh_would_find(&fresh, lose_id, &c.id, fresh_about("webhooks: nothing leads to ", &c.id, "")));
    TEST_CHECK(
        fresh_would_find(&fresh, lose_row, &c, fresh_about("webhook_ids: ", &c.id, " leads to no webhook")));
    TEST_CHECK(fresh_would_find(&fresh, lose_row, &c, "counter"));
    TEST_CHECK(fresh_would_find(&fresh, spoil_row, &c, "unknown state 7"));
    TEST_CHECK(fresh_would_find(&fresh, spoil_row, &c, "under another id"));
    TEST_CHECK(fresh_would_find(&fresh, spoil_row, &c, "wants no events"));
    fresh_close(&fresh);
}

static void test_webhook_further_damage_is_found(void)
{
    struct fresh fresh;
    struct webhook webhook;
    fresh_open(&fresh);
    struct uuid client = join(&fresh);
    struct webhook_put c = hook_of(&client, "https://a.example/", 1);
    TEST_CHECK(put(&fresh, AT_US, &c, NULL) == OK);
    TEST_CHECK(look_for(&fresh, &client, &c.id, &webhook) == OK);
    webhook.url = c.url;
    webhook.reason = WEBHOOK_GONE;
    TEST_CHECK(fresh_finds(&fresh, TABLE_WEBHOOKS, row_key(&c), &webhook, "is in state 0 for reason"));
    webhook.state = WEBHOOK_DISABLED;
    webhook.reason = WEBHOOK_REASON_COUNT;
    TEST_CHECK(fresh_finds(&fresh, TABLE_WEBHOOKS, row_key(&c), &webhook, "is in state 1 for reason"));
    struct key key = {.size = 0};
    key_add(&key, "short", 5);
    TEST_CHECK(fresh_finds(&fresh, TABLE_WEBHOOK_IDS, key, &(struct webhook_id){.client = client},
                           "webhook_ids: a key of 5 bytes"));
    TEST_CHECK(
        !fresh_finds(&fresh, TABLE_WEBHOOK_IDS, key, &(struct webhook_id){.client = client}, "leads to"));
    fresh_close(&fresh);
}

/* Its id leads to a row that has gone: nobody is told that there is no such webhook. */
static void test_webhook_whose_row_has_gone_is_damaged_JOB_197(void)
{
    struct fresh fresh;
    struct webhook webhook;
    fresh_open(&fresh);
    struct uuid client = join(&fresh);
    struct webhook_put c = hook_of(&client, "https://a.example/", 1);
    struct webhook_rotate rotate = {.client = client, .id = c.id};
    TEST_CHECK(put(&fresh, AT_US, &c, NULL) == OK && look_for(&fresh, &client, &c.id, &webhook) == OK);
    webhook.url = c.url;
    fresh_take(&fresh, TABLE_WEBHOOKS, row_key(&c));
    TEST_CHECK(drop(&fresh, &client, &c.id) == ERR_DAMAGED);
    TEST_CHECK(turn(&fresh, AT_US, &client, &c.id, 0) == ERR_DAMAGED);
    TEST_CHECK(batch_one(fresh.store, &webhook_rotate_class, AT_US, &rotate, NULL) == ERR_DAMAGED);
    fresh_put(&fresh, TABLE_WEBHOOKS, row_key(&c), &webhook);
    TEST_CHECK(drop(&fresh, &client, &c.id) == OK);
    fresh_close(&fresh);
}

/* A row that can't be read, or has a key that is none, hides no others: the list says so. */
static void test_webhook_lists_say_what_they_cannot_read(void)
{
    struct fresh fresh;
    struct webhook webhooks[WEBHOOKS_MAX], webhook;
    uint32_t count = 99;
    fresh_open(&fresh);
    struct uuid client = join(&fresh);
    struct webhook_put c = hook_of(&client, "https://a.example/", 1),
                       more = hook_of(&client, "https://b.example/", 1);
    TEST_CHECK(put(&fresh, AT_US, &c, NULL) == OK && look_for(&fresh, &client, &c.id, &webhook) == OK);
    webhook.url = c.url;
    struct key shorter = row_key(&c);
    shorter.size--;
    for (int i = 0; i < 2; i++) {
        if (i)
            fresh_put(&fresh, TABLE_WEBHOOKS, shorter, &webhook);
        else
            fresh_flip(&fresh, TABLE_WEBHOOKS, row_key(&c));
        struct view *view = view_open_outside(fresh.store, 0);
        TEST_ASSERT(view != NULL);
        TEST_CHECK(webhook_list(&view->txn, &client, webhooks, &count) == ERR_DAMAGED && count == 99);
        uint32_t sound = 99;
        TEST_CHECK(webhook_list_sound(&view->txn, &client, webhooks, &sound) == ERR_DAMAGED &&
                   sound == (uint32_t)i && (!i || uuid_equal(&webhooks[0].id, &c.id)));
        view_close(view);
        TEST_CHECK(put(&fresh, AT_US, &more, NULL) == ERR_DAMAGED);
        if (i)
            fresh_take(&fresh, TABLE_WEBHOOKS, shorter);
        else
            fresh_flip(&fresh, TABLE_WEBHOOKS, row_key(&c));
    }
    TEST_CHECK(put(&fresh, AT_US, &more, NULL) == OK && put(&fresh, AT_US, &more, NULL) == ERR_EXISTS);
    fresh_close(&fresh);
}

TEST_LIST
= {
    {"webhook: is kept as it came (JOB-184, JOB-459)", test_webhook_is_kept_as_it_came_JOB_184_JOB_459},
    {"webhook: same URL and events is a conflict (JOB-189, JOB-368)",
     test_webhook_same_url_and_events_is_a_conflict_JOB_189_JOB_368},
    {"webhook: refusals write nothing", test_webhook_refusals_write_nothing},
    {"webhook: the same key is the same webhook (JOB-101, JOB-189)",
     test_webhook_the_same_key_is_the_same_webhook_JOB_101_JOB_189},
    {"webhook: a client has 32 at most", test_webhook_a_client_has_32_at_most},
    {"webhook: removed is gone (JOB-193, JOB-196, JOB-197)",
     test_webhook_removed_is_gone_JOB_193_JOB_196_JOB_197},
    {"webhook: is switched off and on", test_webhook_is_switched_off_and_on},
    {"webhook: secrets are each one's own and come back",
     test_webhook_secrets_are_each_ones_own_and_come_back},
    {"webhook: says since when it fails, and is disabled in the end",
     test_webhook_says_since_when_it_fails_and_is_disabled_in_the_end},
    {"webhook: with few events it is not disabled by two bad moments, days apart",
     test_webhook_with_few_events_is_not_disabled_by_two_bad_moments},
    {"webhook: is not disabled by a clock that leaps", test_webhook_is_not_disabled_by_a_clock_that_leaps},
    {"webhook: one of an earlier version counts from its next failure on",
     test_webhook_of_an_earlier_version_counts_from_its_next_failure_on},
    {"webhook: 410 disables at once", test_webhook_410_disables_at_once},
    {"webhook: names and lifecycle", test_webhook_names_and_lifecycle},
    {"webhook: damage is found", test_webhook_damage_is_found},
    {"webhook: further damage is found", test_webhook_further_damage_is_found},
    {"webhook: one whose row has gone is damaged (JOB-197)",
     test_webhook_whose_row_has_gone_is_damaged_JOB_197},
    {"webhook: lists say what they can't read", test_webhook_lists_say_what_they_cannot_read},
    {NULL, NULL},
};
