/* Clients: made once, told again with the same key, and removed after a day unless they had a key. */
#include "acutest.h"

#include "store/api_key.h"
#include "store/counter.h"
#include "store/ledger.h"
#include "store/retention.h"
#include "tests/store/fresh.h"

#define AT_US  UINT64_C(1700000000000000)
#define DAY_US CLIENT_UNUSED_US

static enum error create(struct fresh *fresh, uint64_t at_us, const struct client_create *c, struct uuid *ret)
{
    struct answer answer;
    enum error e = batch_one(fresh->store, &client_create_class, at_us, c, &answer);
    if (!e && TEST_CHECK(answer.size == sizeof(*ret)) && ret)
        memcpy(ret, answer.bytes, sizeof(*ret));
    return e;
}

static struct client_create from(const char *address, const char *key)
{
    return (struct client_create){.id = fresh_uuid(), .key = span_text(key), .from = span_text(address)};
}

static enum error look_for(struct fresh *fresh, const struct uuid *id, struct client *ret)
{
    struct view *view = view_open_outside(fresh->store, 0);
    TEST_ASSERT(view != NULL);
    enum error e = client_read(&view->txn, id, ret);
    view_close(view);
    return e;
}

static int64_t counted(struct fresh *fresh)
{
    return fresh_counter(fresh, COUNTER_CLIENTS, span_of(NULL, 0));
}

static uint32_t sweep(struct fresh *fresh, uint64_t now_us)
{
    struct retention_sweep c = {.limit = 0};
    struct answer answer;
    uint32_t removed = 0;
    TEST_CHECK(batch_one(fresh->store, &retention_sweep_class, now_us, &c, &answer) == OK);
    memcpy(&removed, answer.bytes, sizeof(removed));
    return removed;
}

static enum error give_key(struct fresh *fresh, uint64_t at_us, const struct uuid *client)
{
    struct api_key_issue c = {.client = *client,
                              .id = fresh_uuid(),
                              .window_us = DAY_US,
                              .ttl_us = 90 * DAY_US,
                              .kept_us = 90 * DAY_US};
    memcpy(c.hash.bytes, c.id.bytes, sizeof(c.id.bytes));
    return batch_one(fresh->store, &api_key_issue_class, at_us, &c, NULL);
}

static void test_client_is_kept_as_it_came_JOB_024_JOB_089(void)
{
    struct fresh fresh;
    struct client client;
    struct uuid id;
    fresh_open(&fresh);
    struct client_create c = from("192.0.2.1", "");
    TEST_CHECK(create(&fresh, AT_US, &c, &id) == OK && uuid_equal(&id, &c.id));
    fresh_reopen(&fresh);
    TEST_CHECK(look_for(&fresh, &id, &client) == OK);
    TEST_CHECK(uuid_equal(&client.id, &id) && client.created_us == AT_US && counted(&fresh) == 1);
    fresh_close(&fresh);
}

static void test_client_refusals_write_nothing(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    struct client_create c = from("192.0.2.1", "");
    TEST_CHECK(create(&fresh, AT_US, &c, NULL) == OK);
    TEST_CHECK(create(&fresh, AT_US, &c, NULL) == ERR_EXISTS);
    c.id = (struct uuid){{0}};
    TEST_CHECK(create(&fresh, AT_US, &c, NULL) == ERR_INVALID);
    c = from("192.0.2.1", "");
    TEST_CHECK(create(&fresh, UINT64_MAX, &c, NULL) == ERR_INVALID);
    TEST_CHECK(counted(&fresh) == 1);
    fresh_close(&fresh);
}

static void test_client_with_the_same_key_is_the_same_for_a_day_JOB_101_AMB_J_56(void)
{
    struct fresh fresh;
    struct uuid first, again;
    fresh_open(&fresh);
    struct client_create c = from("192.0.2.1", "k");
    TEST_CHECK(create(&fresh, AT_US, &c, &first) == OK);
    c = from("192.0.2.1", "k"); /* with an id of its own, as each try has */
    TEST_CHECK(create(&fresh, AT_US + DAY_US - 1, &c, &again) == OK && uuid_equal(&first, &again));
    c = from("192.0.2.2", "k"); /* keys are each address's own */
    TEST_CHECK(create(&fresh, AT_US, &c, &again) == OK && !uuid_equal(&first, &again));
    c = from("192.0.2.1", "l");
    TEST_CHECK(create(&fresh, AT_US, &c, &again) == OK && !uuid_equal(&first, &again));
    TEST_CHECK(counted(&fresh) == 3);
    c = from("192.0.2.1", "k");
    TEST_CHECK(create(&fresh, AT_US + DAY_US, &c, &again) == OK && !uuid_equal(&first, &again));
    TEST_CHECK(counted(&fresh) == 4);
    fresh_close(&fresh);
}

static void test_client_without_a_key_goes_after_a_day(void)
{
    struct fresh fresh;
    struct client client;
    fresh_open(&fresh);
    struct client_create never = from("192.0.2.1", ""), had = from("192.0.2.1", "");
    TEST_CHECK(create(&fresh, AT_US, &never, NULL) == OK && create(&fresh, AT_US, &had, NULL) == OK);
    TEST_CHECK(give_key(&fresh, AT_US + 1, &had.id) == OK);
    fresh_sound(&fresh);
    TEST_CHECK(sweep(&fresh, AT_US + DAY_US - 1) == 0);
    TEST_CHECK(look_for(&fresh, &never.id, &client) == OK);
    TEST_CHECK(sweep(&fresh, AT_US + DAY_US) == 1);
    TEST_CHECK(look_for(&fresh, &never.id, &client) == ERR_NOT_FOUND);
    TEST_CHECK(look_for(&fresh, &had.id, &client) == OK && counted(&fresh) == 1);
    sweep(&fresh, AT_US + 400 * DAY_US); /* its key has gone long since */
    TEST_CHECK(look_for(&fresh, &had.id, &client) == OK && counted(&fresh) == 1);
    fresh_close(&fresh);
}

/* As if so many more were there. */
static enum error count_more(struct txn *txn, uint64_t at_us, void *context)
{
    (void)at_us;
    counter_add(txn, COUNTER_CLIENTS, span_of(NULL, 0), *(const int64_t *)context);
    return OK;
}

static void test_client_there_is_a_last_one(void)
{
    struct fresh fresh;
    int64_t others = CLIENTS_MAX - 1, none = -others;
    fresh_open(&fresh);
    TEST_CHECK(fresh_do(&fresh, AT_US, count_more, &others) == OK);
    struct client_create c = from("192.0.2.1", "");
    TEST_CHECK(create(&fresh, AT_US, &c, NULL) == OK);
    c = from("192.0.2.1", "");
    TEST_CHECK(create(&fresh, AT_US, &c, NULL) == ERR_LIMIT);
    TEST_CHECK(sweep(&fresh, AT_US + DAY_US) == 1); /* the one that never had a key makes room */
    TEST_CHECK(create(&fresh, AT_US + DAY_US, &c, NULL) == OK);
    TEST_CHECK(fresh_do(&fresh, AT_US, count_more, &none) == OK);
    fresh_close(&fresh);
}

/* Nothing in the tables of retention (JOB-398 to JOB-402) ends a client: its keys go, it stays, an operator gives it another
 * key. */
static void test_client_outlives_its_keys_JOB_024_JOB_402(void)
{
    struct fresh fresh;
    struct client before, after;
    fresh_open(&fresh);
    struct client_create c = from("192.0.2.1", "");
    TEST_CHECK(create(&fresh, AT_US, &c, NULL) == OK && give_key(&fresh, AT_US, &c.id) == OK);
    TEST_CHECK(look_for(&fresh, &c.id, &before) == OK);
    sweep(&fresh, AT_US + 1000 * DAY_US);
    TEST_CHECK(fresh_counter(&fresh, COUNTER_API_KEYS, span_of(&c.id, sizeof(c.id))) == 0);
    TEST_CHECK(look_for(&fresh, &c.id, &after) == OK && memcmp(&before, &after, sizeof(after)) == 0);
    TEST_CHECK(give_key(&fresh, AT_US + 1000 * DAY_US, &c.id) ==
               ERR_TOKEN); /* nobody who only knows the id */
    struct api_key_issue forced = {
        .client = c.id, .id = fresh_uuid(), .verb = API_KEY_FORCE, .ttl_us = DAY_US, .kept_us = DAY_US};
    forced.hash.bytes[0] = 1;
    TEST_CHECK(batch_one(fresh.store, &api_key_issue_class, AT_US + 1000 * DAY_US, &forced, NULL) == OK);
    fresh_close(&fresh);
}

/* ---- what check finds ---- */

static enum error lose_due(struct txn *txn, uint64_t at_us, void *context)
{
    (void)at_us;
    retention_clear(txn, AT_US + CLIENT_UNUSED_US, context);
    return OK;
}

static enum error lose_client(struct txn *txn, uint64_t at_us, void *context)
{
    struct key key = key_of_uuid(context);
    (void)at_us;
    txn_remove(txn, TABLE_CLIENTS, key_span(&key));
    return OK;
}

static enum error move_client(struct txn *txn, uint64_t at_us, void *context)
{
    struct uuid other = {{9}};
    struct key key = key_of_uuid(&other);
    struct client client = {.id = *(struct uuid *)context, .created_us = at_us};
    txn_add(txn, TABLE_CLIENTS, key_span(&key), &client);
    return OK;
}

static void test_client_damage_is_found(void)
{
    struct fresh fresh;
    char text[FRESH_TEXT];
    fresh_open(&fresh);
    struct client_create c = from("192.0.2.1", "");
    TEST_CHECK(create(&fresh, AT_US, &c, NULL) == OK);
    TEST_CHECK(fresh_findings(&fresh, text) == 0);
    TEST_CHECK(fresh_would_find(&fresh, move_client, &c.id, "under another id"));
    TEST_CHECK(fresh_would_find(&fresh, lose_client, &c.id, "which isn't there"));
    TEST_CHECK(
        fresh_would_find(&fresh, lose_due, &c.id,
                         fresh_about("clients: ", &c.id, " never had a key and will never be removed")));
    fresh_close(&fresh);
}

static enum error retire(struct txn *txn, uint64_t at_us, void *context)
{
    retention_set(txn, RETENTION_CLIENT, at_us, context, 0);
    return OK;
}

/* One that has a key stays, whatever an entry says; and so does one of which that can't be read. */
static void test_client_with_a_key_stays_whatever_an_entry_says(void)
{
    struct fresh fresh;
    struct client client;
    char text[FRESH_TEXT];
    fresh_open(&fresh);
    struct client_create c = from("192.0.2.1", "");
    TEST_CHECK(create(&fresh, AT_US, &c, NULL) == OK && give_key(&fresh, AT_US, &c.id) == OK);
    sweep(&fresh, AT_US + CLIENT_UNUSED_US);
    fresh_sound(&fresh);
    uint64_t later_us = AT_US + CLIENT_UNUSED_US;
    TEST_CHECK(fresh_do(&fresh, later_us, retire, &c.id) == OK && fresh_findings(&fresh, text) == 1);
    fresh_flip(&fresh, TABLE_CLIENT_KEYS, key_of_uuid(&c.id));
    TEST_CHECK(sweep(&fresh, later_us) == 0 && look_for(&fresh, &c.id, &client) == OK);
    TEST_CHECK(!fresh_tells(&fresh, "never had a key"));
    fresh_flip(&fresh, TABLE_CLIENT_KEYS, key_of_uuid(&c.id));
    TEST_CHECK(sweep(&fresh, later_us + RETENTION_AGAIN_US) == 0 && look_for(&fresh, &c.id, &client) == OK);
    fresh_sound(&fresh);
    fresh_close(&fresh);
}

TEST_LIST
= {
    {"client: kept as it came (JOB-024, JOB-089)", test_client_is_kept_as_it_came_JOB_024_JOB_089},
    {"client: refusals write nothing", test_client_refusals_write_nothing},
    {"client: the same key gives the same client for a day (JOB-101, AMB-J-56)",
     test_client_with_the_same_key_is_the_same_for_a_day_JOB_101_AMB_J_56},
    {"client: without a key it goes after a day", test_client_without_a_key_goes_after_a_day},
    {"client: there is a last one", test_client_there_is_a_last_one},
    {"client: it outlives its keys (JOB-024, JOB-402)", test_client_outlives_its_keys_JOB_024_JOB_402},
    {"client: damage is found", test_client_damage_is_found},
    {"client: one with a key stays, whatever an entry says",
     test_client_with_a_key_stays_whatever_an_entry_says},
    {NULL, NULL},
};
