/* Quotas of requests: what is granted of them, window by window, whatever happens to the keys of the client. */
#include "acutest.h"

#include "store/api_key.h"
#include "store/client_quota.h"
#include "tests/store/fresh.h"

#define AT_US   UINT64_C(1700000000000000)
#define S_US    UINT64_C(1000000)
#define HOUR_US (3600 * S_US)

static struct uuid client, key;

static enum error apply(struct fresh *fresh, const struct command_class *class, const void *command,
                        uint64_t at_us)
{
    struct answer answer;
    return batch_one(fresh->store, class, at_us, command, &answer);
}

static void issue(struct fresh *fresh, enum api_key_verb verb, uint64_t at_us)
{
    struct api_key_issue c = {.client = client,
                              .id = key = fresh_uuid(),
                              .verb = (uint8_t)verb,
                              .window_us = HOUR_US,
                              .ttl_us = 24 * HOUR_US,
                              .kept_us = 24 * HOUR_US,
                              .audit = fresh_uuid(),
                              .by = span_text("test")};
    c.hash.bytes[0] = c.id.bytes[0];
    c.hash.bytes[1] = c.id.bytes[1];
    TEST_CHECK(apply(fresh, &api_key_issue_class, &c, at_us) == OK);
}

static void begin(struct fresh *fresh)
{
    fresh_open(fresh);
    client = fresh_uuid();
    TEST_CHECK(apply(fresh, &client_create_class, &(struct client_create){.id = client}, AT_US) == OK);
}

static enum error take(struct fresh *fresh, uint64_t quota, uint32_t want, uint64_t at_us,
                       struct client_quota_taken *ret)
{
    struct client_quota_take c = {.client = client, .quota = quota, .window_us = HOUR_US, .want = want};
    struct answer answer;
    enum error e = batch_one(fresh->store, &client_quota_take_class, at_us, &c, &answer);
    if (!e && TEST_CHECK(answer.size == sizeof(*ret)))
        memcpy(ret, answer.bytes, sizeof(*ret));
    return e;
}

#define CHECK_TAKES(quota, want, at_us, granted_, left_, ends)                                  \
    do {                                                                                        \
        struct client_quota_taken t = {.granted = 99};                                          \
        TEST_CHECK(take(&fresh, quota, want, at_us, &t) == OK);                                 \
        TEST_CHECK_(t.granted == (granted_) && t.left == (left_) && t.ends_us == (ends),        \
                    "%u granted, %llu left, until %llu", t.granted, (unsigned long long)t.left, \
                    (unsigned long long)(t.ends_us - AT_US));                                   \
    } while (0)

static void test_quota_of_a_window_and_no_more_JOB_332(void)
{
    struct fresh fresh;
    begin(&fresh);
    issue(&fresh, API_KEY_CREATE, AT_US);
    for (uint32_t i = 0; i < 20; i++)
        CHECK_TAKES(20, 1, AT_US + i * S_US, 1, 19 - i, AT_US + HOUR_US);
    CHECK_TAKES(20, 1, AT_US + 30 * S_US, 0, 0, AT_US + HOUR_US);
    fresh_reopen(&fresh); /* a restart forgets nothing */
    CHECK_TAKES(20, 1, AT_US + HOUR_US - 1, 0, 0, AT_US + HOUR_US);
    CHECK_TAKES(20, 1, AT_US + HOUR_US, 1, 19, AT_US + 2 * HOUR_US);
    /* some at a time, as many as are left */
    CHECK_TAKES(20, 15, AT_US + HOUR_US + 1, 15, 4, AT_US + 2 * HOUR_US);
    CHECK_TAKES(20, 15, AT_US + HOUR_US + 2, 4, 0, AT_US + 2 * HOUR_US);
    /* a reload: more may be taken, or what was taken is more than may be */
    CHECK_TAKES(25, 15, AT_US + HOUR_US + 3, 5, 0, AT_US + 2 * HOUR_US);
    CHECK_TAKES(10, 1, AT_US + HOUR_US + 4, 0, 0, AT_US + 2 * HOUR_US);
    /* a window begins when it is needed, not when the last one is over */
    CHECK_TAKES(20, 1, AT_US + 10 * HOUR_US, 1, 19, AT_US + 11 * HOUR_US);
    /* and a clock that goes back begins another one */
    CHECK_TAKES(20, 1, AT_US + 9 * HOUR_US, 1, 19, AT_US + 10 * HOUR_US);
    fresh_close(&fresh);
}

static void test_quota_stays_when_keys_come_and_go(void)
{
    struct fresh fresh;
    begin(&fresh);
    issue(&fresh, API_KEY_CREATE, AT_US);
    CHECK_TAKES(3, 2, AT_US + 1, 2, 1, AT_US + 1 + HOUR_US);
    issue(&fresh, API_KEY_FORCE, AT_US + 2);
    CHECK_TAKES(3, 2, AT_US + 3, 1, 0, AT_US + 1 + HOUR_US);
    struct api_key_revoke revoke = {
        .client = client, .id = key, .audit = fresh_uuid(), .kept_us = HOUR_US, .by = span_text("test")};
    TEST_CHECK(apply(&fresh, &api_key_revoke_class, &revoke, AT_US + 4) == OK);
    issue(&fresh, API_KEY_FORCE, AT_US + 5);
    CHECK_TAKES(3, 1, AT_US + 6, 0, 0, AT_US + 1 + HOUR_US);
    fresh_close(&fresh);
}

static void test_quota_refuses_what_cannot_be_meant(void)
{
    struct fresh fresh;
    struct client_quota_taken taken;
    begin(&fresh);
    TEST_CHECK(take(&fresh, 1, 1, AT_US, &taken) == ERR_NOT_FOUND); /* it never had a key */
    issue(&fresh, API_KEY_CREATE, AT_US);
    TEST_CHECK(take(&fresh, 0, 1, AT_US, &taken) == ERR_INVALID);
    TEST_CHECK(take(&fresh, 1, 0, AT_US, &taken) == ERR_INVALID);
    TEST_CHECK(take(&fresh, 1, 1, UINT64_MAX, &taken) == ERR_INVALID);
    static const uint64_t windows[] = {0, CLIENT_QUOTA_WINDOW_MAX + 1};
    for (size_t i = 0; i < 2; i++) {
        struct client_quota_take c = {.client = client, .quota = 1, .want = 1, .window_us = windows[i]};
        TEST_CHECK(apply(&fresh, &client_quota_take_class, &c, AT_US) == ERR_INVALID);
    }
    CHECK_TAKES(UINT64_MAX, UINT32_MAX, AT_US, UINT32_MAX, UINT64_MAX - UINT32_MAX, AT_US + HOUR_US);
    fresh_close(&fresh);
}

TEST_LIST
= {
    {"client quota: of a window, and no more (JOB-332)", test_quota_of_a_window_and_no_more_JOB_332},
    {"client quota: stays when keys come and go", test_quota_stays_when_keys_come_and_go},
    {"client quota: refuses what can't be meant", test_quota_refuses_what_cannot_be_meant},
    {NULL, NULL},
};
