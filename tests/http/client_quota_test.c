/* Quotas of requests as the front asks for them: how few commits that takes, and that nobody gets more. */
#define _GNU_SOURCE /* memmem */
#include "acutest.h"

#include "http/client_quota.h"
#include "store/api_key.h"
#include "store/client_quota.h"
#include "tests/support/exchange.h"
#include "tests/support/stage.h"

#define HOUR_US UINT64_C(3600000000)

static const struct route route = {.method = METHOD_GET, .path = "/v1/jobs", .surface = SURFACE_JOBS};
static struct uuid client;

static void enrol(uint8_t number)
{
    struct api_key_issue c = {
        .verb = API_KEY_CREATE, .window_us = HOUR_US, .ttl_us = HOUR_US, .by = span_text("test")};
    memset(&client, number, sizeof(client));
    c.client = client;
    memset(&c.id, number + 100, sizeof(c.id));
    memset(&c.hash, number, sizeof(c.hash));
    struct client_create create = {.id = client};
    EXPECT(store_submit(&client_create_class, &create, NULL, 0, NULL, DEADLINE_NONE) == OK);
    EXPECT(store_submit(&api_key_issue_class, &c, NULL, 0, NULL, DEADLINE_NONE) == OK);
}

/* The Retry-After of a refused one, or 0. */
static unsigned refused(void)
{
    static struct exchange x;
    unsigned wait = 0;
    exchange_begin(&x, &route, NULL, NULL);
    x.q.identity.kind = IDENTITY_CLIENT;
    x.q.identity.client = client;
    if (client_quota_take(&x.q, &x.r))
        return 0;
    EXPECT(x.r.status == 429 && x.r.error == ERROR_RFA_REQUEST_RATE_LIMITED);
    EXPECT(memmem(x.r.body, x.r.sink.length, "\"limit\":\"quota\"", 15) != NULL);
    const char *at = memmem(x.r.headers, x.r.headers_length, "Retry-After: ", 13);
    EXPECT(at && sscanf(at, "Retry-After: %u", &wait) == 1 && wait > 0);
    return wait;
}

static uint32_t passed(uint32_t tries)
{
    uint32_t count = 0;
    while (tries--)
        count += refused() == 0;
    return count;
}

static uint64_t commands(void)
{
    return atomic_load(&stage_store->commands);
}

static void run(void (*body)(void))
{
    struct stage stage = {.real = false};
    TEST_CHECK(stage_run(&stage, body) == 0);
    client_quota_configure(&(struct client_quota_settings){.requests = 0});
}

static void few_body(void)
{
    (void)stage_writer();
    enrol(1);
    uint64_t before = commands();
    EXPECT(passed(100) == 100 && commands() == before); /* off */
    client_quota_configure(&(struct client_quota_settings){.requests = 20, .window_us = HOUR_US});
    EXPECT(passed(20) == 20 && commands() == before + 20);
    EXPECT(refused() == 3600 && refused() == 3600);
    EXPECT(commands() == before + 20); /* that it is used up was said with the last one */
    (void)actor_sleep(actor_now() + 1800 * NS_PER_S);
    EXPECT(refused() >= 1799 && refused() <= 1801 && commands() == before + 20);
    client_quota_configure(
        &(struct client_quota_settings){.requests = 22, .window_us = HOUR_US}); /* a reload */
    EXPECT(passed(5) == 2);
    (void)actor_sleep(actor_now() + 1800 * NS_PER_S);
    EXPECT(passed(30) == 22);
}

static void test_few_are_counted_one_by_one_JOB_332(void)
{
    run(few_body);
}

static void ahead_body(void)
{
    const int64_t day_ns = (int64_t)(24 * 3600 * NS_PER_S);
    (void)stage_writer();
    enrol(60);
    client_quota_configure(&(struct client_quota_settings){.requests = 5, .window_us = HOUR_US});
    stage_clock_jump(day_ns);
    EXPECT(passed(6) == 5 && refused() == 3600);
    stage_clock_jump(-day_ns); /* right again: another window */
    EXPECT(passed(6) == 5 && refused() == 3600);
    (void)actor_sleep(actor_now() + 3600 * NS_PER_S);
    EXPECT(passed(6) == 5);
}

static void test_JOB_332_a_clock_that_was_ahead_refuses_nobody_for_longer(void)
{
    run(ahead_body);
}

static uint32_t elsewhere;
static void other_doll(void *arg)
{
    elsewhere = passed((uint32_t)(uintptr_t)arg);
}

static void many_body(void)
{
    (void)stage_writer();
    enrol(2);
    client_quota_configure(&(struct client_quota_settings){.requests = 102400, .window_us = HOUR_US});
    uint64_t before = commands();
    EXPECT(passed(1000) == 1000 && commands() == before + 10); /* a hundred at a time */
    EXPECT(passed(101350) == 101350);
    /* what another scheduler takes is of the same quota: fifty are left here, and that is all */
    (void)stage_ended(stage_doll(SPAWN_ON(1), other_doll, (void *)(uintptr_t)60));
    EXPECT(elsewhere == 0 && passed(60) == 50 && refused() > 0);
}

static void test_many_are_taken_some_at_a_time(void)
{
    run(many_body);
}

static void others_body(void)
{
    (void)stage_writer();
    client_quota_configure(&(struct client_quota_settings){.requests = 3, .window_us = HOUR_US});
    for (uint8_t i = 3; i < 23; i++) { /* each has its own, also those of one set that fall out of it */
        enrol(i);
        EXPECT(passed(4) == 3);
    }
    memset(&client, 3, sizeof(client));
    EXPECT(passed(4) == 0);
}

static void test_each_client_has_its_own(void)
{
    run(others_body);
}

static void no_store_body(void)
{
    memset(&client, 50, sizeof(client));
    client_quota_configure(&(struct client_quota_settings){.requests = 1, .window_us = HOUR_US});
    EXPECT(passed(5) == 5);
}

static void test_without_a_writer_all_pass(void)
{
    run(no_store_body);
}

TEST_LIST
= {
    {"client quota: few are counted one by one (JOB-332)", test_few_are_counted_one_by_one_JOB_332},
    {"client quota: JOB-332 a clock that was ahead refuses nobody for longer",
     test_JOB_332_a_clock_that_was_ahead_refuses_nobody_for_longer},
    {"client quota: many are taken some at a time", test_many_are_taken_some_at_a_time},
    {"client quota: each client has its own", test_each_client_has_its_own},
    {"client quota: without a writer all pass", test_without_a_writer_all_pass},
    {NULL, NULL},
};
