/* Limits: token buckets against a model, waiting Retry-After is always enough, and the control contract's windows through
 * the store. */
#include "acutest.h"

#include <pthread.h>

#include "http/limiter.h"
#include "http/response.h"
#include "tests/support/stage.h"

static struct limiter *limiter;

static void open_with(uint32_t cells)
{
    limiter = limiter_create(&(struct limiter_options){.cells = cells});
    ASSERT(limiter);
}

static void sleep_s(uint64_t seconds)
{
    actor_sleep(actor_now() + seconds * NS_PER_S);
}

static struct limit_result take(enum limit limit, const char *key)
{
    return limiter_take(limiter, limit, span_text(key));
}

static void run(void (*body)(void))
{
    struct stage stage = {.real = false};
    TEST_CHECK(stage_run(&stage, body) == 0);
    limiter_destroy(limiter);
    limiter = NULL;
}

/* ---- token buckets ---- */

static void bucket_body(void)
{
    open_with(0);
    for (uint32_t i = 0; i < 600; i++) {
        struct limit_result result = take(LIMIT_CLIENT, "a");
        EXPECT(result.allowed && result.quota == 600 && result.window_s == 60);
        EXPECT(result.remaining == 599 - i && result.reset_s == (i + 10) / 10);
    }
    struct limit_result refused = take(LIMIT_CLIENT, "a");
    EXPECT(!refused.allowed && refused.remaining == 0 && refused.reset_s == 1);
    EXPECT(take(LIMIT_CLIENT, "b").allowed && take(LIMIT_REGISTER, "a").allowed);
    actor_sleep(actor_now() + 100 * NS_PER_MS - 1); /* one token is back in a tenth of a second */
    EXPECT(!take(LIMIT_CLIENT, "a").allowed);
    actor_sleep(actor_now() + 1);
    EXPECT(take(LIMIT_CLIENT, "a").allowed && !take(LIMIT_CLIENT, "a").allowed);
    sleep_s(60);
    EXPECT(take(LIMIT_CLIENT, "a").remaining == 599);
}

static void test_bucket_gives_its_quota_and_fills_again_JOB_441_AMB_J_65(void)
{
    run(bucket_body);
}

/* 60 a minute, asked at random: never more than quota + what came back, and whoever waits as told passes. */
static void model_body(void)
{
    double tokens[3] = {60, 60, 60};
    static const char *const keys[] = {"x", "y", "z"};
    uint64_t before = actor_now();
    uint32_t refused = 0;
    open_with(0);
    for (uint32_t i = 0; i < 20000; i++) {
        uint32_t who = (uint32_t)(actor_random() % 3);
        uint64_t now = actor_now();
        for (int k = 0; k < 3; k++) {
            tokens[k] += (double)(now - before) / 1e9;
            tokens[k] = tokens[k] < 60 ? tokens[k] : 60;
        }
        before = now;
        struct limit_result result = take(LIMIT_REGISTER, keys[who]);
        if (tokens[who] > 1 + 1e-6)
            EXPECT(result.allowed);
        if (tokens[who] < 1 - 1e-6)
            EXPECT(!result.allowed);
        tokens[who] -= result.allowed;
        refused += !result.allowed;
        if (!result.allowed && actor_random() % 16 == 0) {
            sleep_s(result.reset_s);
            EXPECT(limiter_look(limiter, LIMIT_REGISTER, span_text(keys[who])).allowed);
        } else {
            actor_sleep(now + actor_random() % (500 * NS_PER_MS));
        }
    }
    EXPECT(refused > 1000);
}

static void test_bucket_as_its_model_and_retry_after_is_enough(void)
{
    run(model_body);
}

static void look_body(void)
{
    open_with(0);
    for (uint32_t i = 0; i < 100; i++)
        EXPECT(limiter_look(limiter, LIMIT_TOKEN, span_text("a")).allowed);
    for (uint32_t i = 0; i < 60; i++)
        EXPECT(take(LIMIT_TOKEN, "a").allowed);
    struct limit_result result = limiter_look(limiter, LIMIT_TOKEN, span_text("a"));
    EXPECT(!result.allowed && result.reset_s == 1); /* 60 a minute: one every second */
    sleep_s(result.reset_s);
    EXPECT(take(LIMIT_TOKEN, "a").allowed);
}

static void test_looking_counts_nothing(void)
{
    run(look_body);
}

static void off_body(void)
{
    open_with(0);
    struct limit_result result = take(LIMIT_ADDRESS, "a");
    EXPECT(result.allowed && result.quota == 0);
    EXPECT(!limiter_counts(limiter, LIMIT_ADDRESS) && limiter_counts(limiter, LIMIT_CLIENT));
    result = take(LIMIT_NONE, "a");
    EXPECT(result.allowed && result.quota == 0);
    limiter_configure(limiter, &(struct limiter_options){.quota = {[LIMIT_ADDRESS] = 2}});
    EXPECT(take(LIMIT_ADDRESS, "a").allowed && take(LIMIT_ADDRESS, "a").allowed);
    EXPECT(limiter_counts(limiter, LIMIT_ADDRESS) && !take(LIMIT_ADDRESS, "a").allowed);
    static const struct limiter_override one = {
        .limit = LIMIT_ADDRESS, .quota = 1, .key_size = 1, .key = "a"};
    limiter_configure(limiter, &(struct limiter_options){.overrides = &one, .overrides_count = 1});
    EXPECT(limiter_counts(limiter, LIMIT_ADDRESS)); /* somebody has one, though others have none */
    limiter_configure(limiter, &(struct limiter_options){.overrides_count = 0});
    EXPECT(!limiter_counts(limiter, LIMIT_ADDRESS));
}

static void test_no_limit_until_there_is_one(void)
{
    run(off_body);
}

static void override_body(void)
{
    static const struct limiter_override overrides[] = {
        {.limit = LIMIT_CLIENT, .quota = 2, .key_size = 1, .key = "a"},
        {.limit = LIMIT_CLIENT, .quota = 0, .key_size = 1, .key = "b"},
    };
    open_with(0);
    limiter_configure(limiter, &(struct limiter_options){.overrides = overrides, .overrides_count = 2});
    EXPECT(take(LIMIT_CLIENT, "a").allowed && take(LIMIT_CLIENT, "a").allowed);
    EXPECT(!take(LIMIT_CLIENT, "a").allowed);
    struct limit_result result = take(LIMIT_CLIENT, "b");
    EXPECT(!result.allowed && result.reset_s == 60);
    EXPECT(take(LIMIT_CLIENT, "c").remaining == 599);
    /* another list takes this one's place, and another that one's, as often as the settings are read again */
    static const struct limiter_override second[] = {
        {.limit = LIMIT_CLIENT, .quota = 3, .key_size = 1, .key = "c"}};
    static const struct limiter_override third[] = {
        {.limit = LIMIT_CLIENT, .quota = 5, .key_size = 1, .key = "c"}};
    limiter_configure(limiter, &(struct limiter_options){.overrides = second, .overrides_count = 1});
    EXPECT(take(LIMIT_CLIENT, "b").quota == 600 && take(LIMIT_CLIENT, "c").quota == 3);
    limiter_configure(limiter, &(struct limiter_options){.overrides = third, .overrides_count = 1});
    EXPECT(take(LIMIT_CLIENT, "c").quota == 5 && take(LIMIT_CLIENT, "d").quota == 600);
    limiter_configure(limiter, &(struct limiter_options){.overrides_count = 0});
    EXPECT(take(LIMIT_CLIENT, "b").allowed && take(LIMIT_CLIENT, "c").quota == 600);
}

static void test_another_quota_for_one_client_JOB_447(void)
{
    run(override_body);
}

/* More keys than cells: whoever was not remembered starts anew; nobody is refused for another one's requests. */
static void crowd_body(void)
{
    char key[16];
    open_with(8);
    for (uint32_t i = 0; i < 5000; i++) {
        snprintf(key, sizeof(key), "%u", i);
        EXPECT(take(LIMIT_REGISTER, key).allowed);
    }
}

static void test_more_keys_than_cells(void)
{
    run(crowd_body);
}

/* Two cells of one set in use, and one that has been idle for long: it is the one that goes. */
static void idle_body(void)
{
    char key[16];
    open_with(4);
    for (uint32_t i = 0; i < 60; i++)
        EXPECT(take(LIMIT_REGISTER, "busy").allowed);
    for (uint32_t i = 0; i < 100; i++) {
        snprintf(key, sizeof(key), "%u", i);
        EXPECT(take(LIMIT_REGISTER, key).allowed);
    }
    EXPECT(!take(LIMIT_REGISTER, "busy").allowed);
}

static void test_whoever_owes_most_is_remembered(void)
{
    run(idle_body);
}

/* ---- all threads at once ---- */

enum { THREADS = 4, EACH = 500 };
static _Atomic uint32_t allowed_count, ended_count;

static void hammer(void *arg)
{
    (void)arg;
    for (uint32_t i = 0; i < EACH; i++)
        if (take(LIMIT_CLIENT, "shared").allowed)
            atomic_fetch_add(&allowed_count, 1);
    atomic_fetch_add(&ended_count, 1);
}

static void threads_body(void)
{
    actor_pid pids[THREADS];
    open_with(0);
    limiter_configure(
        limiter, &(struct limiter_options){.quota = {[LIMIT_CLIENT] = 60}}); /* one a second comes back */
    atomic_store(&allowed_count, 0);
    atomic_store(&ended_count, 0);
    uint64_t began = actor_now();
    for (int i = 0; i < THREADS; i++)
        pids[i] = stage_doll(i % 2, hammer, NULL);
    for (int i = 0; i < THREADS; i++)
        (void)stage_ended(pids[i]);
    uint64_t back = (actor_now() - began) / NS_PER_S + 1;
    EXPECT(atomic_load(&ended_count) == THREADS);
    EXPECT(atomic_load(&allowed_count) >= 60 && atomic_load(&allowed_count) <= 60 + back);
}

static void test_threads_share_a_bucket_exactly(void)
{
    struct stage stage = {.real = true};
    TEST_CHECK(stage_run(&stage, threads_body) == 0);
    limiter_destroy(limiter);
    limiter = NULL;
}

/* ---- windows ---- */

static void window_body(void)
{
    static const struct {
        enum limit limit;
        uint32_t quota;
    } windows[] = {{LIMIT_DLQ_LIST, 60},
                   {LIMIT_DLQ_REPROCESS, 20},
                   {LIMIT_DLQ_BULK, 5},
                   {LIMIT_DECISION, 10},
                   {LIMIT_SUBMIT, 20}};
    open_with(0);
    (void)stage_writer();
    for (size_t w = 0; w < sizeof(windows) / sizeof(windows[0]); w++) {
        uint64_t began = actor_now();
        for (uint32_t i = 0; i < windows[w].quota; i++) {
            struct limit_result result = take(windows[w].limit, "actor-1");
            EXPECT(result.allowed && result.quota == windows[w].quota && result.window_s == 60);
            EXPECT(result.remaining == windows[w].quota - 1 - i && result.reset_s == 60);
            actor_sleep(actor_now() + 100 * NS_PER_MS);
        }
        struct limit_result refused = take(windows[w].limit, "actor-1");
        EXPECT(!refused.allowed && refused.remaining == 0 && refused.reset_s >= 1 && refused.reset_s <= 60);
        EXPECT(take(windows[w].limit, "actor-2").allowed); /* another actor is unaffected: CTL-160 */
        sleep_s(refused.reset_s - 1);
        EXPECT(actor_now() - began > 60 * NS_PER_S || !take(windows[w].limit, "actor-1").allowed);
        sleep_s(1);
        EXPECT(take(windows[w].limit, "actor-1").allowed); /* CTL-162 */
    }
}

static void test_windows_of_the_control_contract_CTL_155_to_CTL_163(void)
{
    run(window_body);
}

/* A new process: nothing in memory, everything in the store. And what was refused costs the store nothing. */
static void restart_body(void)
{
    open_with(0);
    (void)stage_writer();
    for (uint32_t i = 0; i < 5; i++)
        EXPECT(take(LIMIT_DLQ_BULK, "a").allowed);
    limiter_destroy(limiter);
    open_with(0);
    sleep_s(10);
    struct limit_result refused = take(LIMIT_DLQ_BULK, "a");
    EXPECT(!refused.allowed && refused.reset_s == 50);
    uint64_t commands = atomic_load(&stage_store->commands);
    for (uint32_t i = 0; i < 100; i++) {
        refused = take(LIMIT_DLQ_BULK, "a");
        EXPECT(!refused.allowed && refused.remaining == 0 && refused.reset_s == 50);
    }
    EXPECT(atomic_load(&stage_store->commands) == commands);
    sleep_s(49); /* what is left of the wait is told, however often one asks */
    refused = take(LIMIT_DLQ_BULK, "a");
    EXPECT(!refused.allowed && refused.reset_s == 1);
    sleep_s(1);
    EXPECT(take(LIMIT_DLQ_BULK, "a").allowed);
}

static void test_windows_survive_a_restart_and_refusals_are_free_AMB_28(void)
{
    run(restart_body);
}

static void stand_in_body(void)
{
    open_with(0); /* no writer */
    for (uint32_t i = 0; i < 5; i++)
        EXPECT(take(LIMIT_DLQ_BULK, "a").allowed);
    EXPECT(!take(LIMIT_DLQ_BULK, "a").allowed);
    EXPECT(take(LIMIT_DLQ_BULK, "b").allowed);
}

static void test_without_the_store_a_bucket_stands_in(void)
{
    run(stand_in_body);
}

/* ---- what is said about it ---- */

static void check_headers(const struct limit_result *result, enum limit limit, const char *expected)
{
    static struct response r;
    r = (struct response){.headers_length = 0};
    limiter_write_headers(limiter, result, limit, &r);
    TEST_CHECK_(r.headers_length == strlen(expected) && memcmp(r.headers, expected, r.headers_length) == 0,
                "%.*s", (int)r.headers_length, r.headers);
}

static void test_headers(void)
{
    limiter = limiter_create(&(struct limiter_options){.cells = 4});
    TEST_ASSERT(limiter != NULL);
    check_headers(
        &(struct limit_result){.allowed = true, .quota = 20, .window_s = 60, .remaining = 19, .reset_s = 60},
        LIMIT_SUBMIT, "RateLimit-Policy: \"submit\";q=20;w=60\r\nRateLimit: \"submit\";r=19;t=60\r\n");
    check_headers(
        &(struct limit_result){.quota = 600, .window_s = 60, .reset_s = 7}, LIMIT_CLIENT,
        "RateLimit-Policy: \"client\";q=600;w=60\r\nRateLimit: \"client\";r=0;t=7\r\nRetry-After: 7\r\n");
    check_headers(&(struct limit_result){.allowed = true, .window_s = 60}, LIMIT_ADDRESS, "");
    TEST_CHECK(strcmp(limit_name(LIMIT_DLQ_BULK), "dlq_bulk") == 0 &&
               strcmp(limit_name(LIMIT_COUNT), "unknown") == 0);
    limiter_destroy(limiter);
}

static void check_triple(const struct response *r, const char *expected)
{
    char written[LIMITER_TRIPLE_MAX];
    uint32_t size = limiter_write_triple(&r->limited, written);
    TEST_CHECK_(size == strlen(expected) && memcmp(written, expected, size) == 0, "%.*s", (int)size, written);
}

/* There is room for one bucket: the one that stops the client first. */
static void test_three_fields_for_older_clients(void)
{
    static struct response r;
    struct limiter_options options = {.cells = 4};
    struct limit_result result = {
        .allowed = true, .quota = 100, .window_s = 60, .remaining = 9, .reset_s = 5};
    limiter = limiter_create(&options);
    TEST_ASSERT(limiter != NULL);
    limiter_write_headers(limiter, &result, LIMIT_CLIENT, &r);
    check_triple(&r, "");
    options.style = limiter_style("triple");
    limiter_configure(limiter, &options);
    limiter_write_headers(limiter, &result, LIMIT_CLIENT, &r);
    check_triple(&r, "RateLimit-Limit: 100\r\nRateLimit-Remaining: 9\r\nRateLimit-Reset: 5\r\n");
    result.remaining = 10; /* more is left of it */
    limiter_write_headers(limiter, &result, LIMIT_ADDRESS, &r);
    check_triple(&r, "RateLimit-Limit: 100\r\nRateLimit-Remaining: 9\r\nRateLimit-Reset: 5\r\n");
    result = (struct limit_result){.quota = 20, .window_s = 60, .reset_s = 7}; /* refused */
    limiter_write_headers(limiter, &result, LIMIT_SUBMIT, &r);
    check_triple(&r, "RateLimit-Limit: 20\r\nRateLimit-Remaining: 0\r\nRateLimit-Reset: 7\r\n");
    result.quota = 0; /* no limit */
    limiter_write_headers(limiter, &result, LIMIT_DECISION, &r);
    check_triple(&r, "RateLimit-Limit: 20\r\nRateLimit-Remaining: 0\r\nRateLimit-Reset: 7\r\n");
    options.style = limiter_style("x-triple");
    limiter_configure(limiter, &options);
    memset(&r, 0, sizeof(r));
    result = (struct limit_result){.quota = UINT32_MAX, .window_s = 60, .reset_s = UINT32_MAX};
    limiter_write_headers(limiter, &result, LIMIT_SUBMIT, &r);
    check_triple(
        &r, "X-RateLimit-Limit: 4294967295\r\nX-RateLimit-Remaining: 0\r\nX-RateLimit-Reset: 4294967295\r\n");
    TEST_CHECK(limiter_style("draft") == LIMITER_STYLE_DRAFT && limiter_style("") == LIMITER_STYLE_DRAFT);
    limiter_destroy(limiter);
}

TEST_LIST
= {
    {"limiter: a bucket gives its quota and fills again (JOB-441, AMB-J-65)",
     test_bucket_gives_its_quota_and_fills_again_JOB_441_AMB_J_65},
    {"limiter: as its model, and Retry-After is enough", test_bucket_as_its_model_and_retry_after_is_enough},
    {"limiter: looking counts nothing", test_looking_counts_nothing},
    {"limiter: no limit until there is one", test_no_limit_until_there_is_one},
    {"limiter: another quota for one client (JOB-447)", test_another_quota_for_one_client_JOB_447},
    {"limiter: more keys than cells", test_more_keys_than_cells},
    {"limiter: whoever owes most is remembered", test_whoever_owes_most_is_remembered},
    {"limiter: threads share a bucket exactly", test_threads_share_a_bucket_exactly},
    {"limiter: windows of the control contract (CTL-155 to CTL-163)",
     test_windows_of_the_control_contract_CTL_155_to_CTL_163},
    {"limiter: windows survive a restart, refusals are free (AMB-28)",
     test_windows_survive_a_restart_and_refusals_are_free_AMB_28},
    {"limiter: without the store a bucket stands in", test_without_the_store_a_bucket_stands_in},
    {"limiter: headers", test_headers},
    {"limiter: three fields for older clients", test_three_fields_for_older_clients},
    {NULL, NULL},
};
