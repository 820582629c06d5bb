/* Senders: attempts, their ends, order, and receivers that misbehave, on the virtual clock. */
#include "acutest.h"

#include <stdio.h>
#include <stdlib.h>

#include "runtime/telemetry.h"
#include "store/event.h"
#include "store/job.h"
#include "tests/actors/hooks.h"
#include "tests/support/spoil.h"

static const struct stage simulated = {.real = false};
#define RUN(body) TEST_CHECK(stage_run(&simulated, body) == 0)

#define OK_URL    "https://good.example/hook"
#define NEVER     UINT64_MAX
#define S_NS      NS_PER_S
#define MINUTE_MS 60000u
#define ASTRAY_MS 600000u

static bool to(const struct hooks_call *call, const char *part)
{
    return strstr(call->url, part) != NULL;
}

static struct hooks_answer status(int code)
{
    return (struct hooks_answer){.status = code, .after_ms = 1};
}

/* ---- what is sent ---- */

static void sent_body(void)
{
    struct delivery d;
    char member[96], id[UUID_TEXT_SIZE];
    hooks_start(&webhooks_defaults, NULL);
    struct uuid client = hooks_client(), job = hooks_job(&client, OK_URL);
    hooks_settle(1000);
    EXPECT(hooks_count == 2 && hooks_counted(DELIVERY_DELIVERED) == 2);
    const struct hooks_call *c = &hooks_calls[0];
    EXPECT(strcmp(c->url, OK_URL) == 0 && c->attempt == 1 && !c->any_address && c->timeout_ns == 5 * S_NS);
    EXPECT(strcmp(c->event, "job.created") == 0 && strcmp(hooks_calls[1].event, "job.queued") == 0);
    EXPECT(strstr(c->headers, "Content-Type: application/json\n") &&
           !strstr(c->headers, "webhook-signature"));
    EXPECT(hooks_delivery(&job, NULL, 1, &d) == OK && d.attempts == 1 && d.state == DELIVERY_DELIVERED);
    uuid_format(&d.id, id);
    snprintf(member, sizeof(member), "webhook-id: %s\n", id);
    EXPECT(strstr(c->headers, member) && strcmp(c->delivery, id) == 0);
    EXPECT(strstr(c->headers, "webhook-timestamp: ") != NULL);
    static const char *const members[] = {
        "\"event_id\":\"",  "\"prev_state\":null", "\"next_state\":\"CREATED\"",
        "\"timestamp\":\"", "\"payload\":{",       "\"delivery_attempt\":1}"};
    for (size_t i = 0; i < sizeof(members) / sizeof(*members); i++)
        EXPECT(strstr(c->body, members[i]) != NULL);
    uuid_format(&job, id);
    EXPECT(strcmp(c->job, id) == 0);
}

static void test_what_is_sent_JOB_053_JOB_080_AMB_J_43(void)
{
    RUN(sent_body);
}

/* The base64 of the newest signature of a call is that of this secret. */
static bool signed_by(const struct hooks_call *c, struct span secret)
{
    char text[WEBHOOK_SIGNATURE_SIZE];
    const char *at = strstr(c->headers, "webhook-timestamp: ");
    const struct webhook_message message = {
        .id = span_text(c->delivery),
        .at_s = at ? strtoull(at + strlen("webhook-timestamp: "), NULL, 10) : 0,
        .body = span_text(c->body)};
    webhook_sign(secret, &message, text);
    return strstr(c->headers, text) != NULL;
}

static void signed_body(void)
{
    struct webhooks_settings settings = webhooks_defaults;
    uint8_t first[WEBHOOK_SECRET_SIZE], second[WEBHOOK_SECRET_SIZE];
    struct span common = span_text("common secret");
    settings.secret_size = common.size;
    memcpy(settings.secret, common.bytes, common.size);
    hooks_start(&settings, NULL);
    struct uuid client = hooks_client(), hook = hooks_put(&client, OK_URL, 1u << JOB_CREATE);
    struct webhook_rotate rotate = {.client = client, .id = hook};
    (void)hooks_job(&client, "");
    hooks_settle(1000);
    EXPECT(hooks_count == 1 && signed_by(&hooks_calls[0], common));
    EXPECT(!signed_by(&hooks_calls[0], span_text("another secret")));
    EXPECT(store_submit(&webhook_rotate_class, &rotate, NULL, 0, NULL, actor_deadline_ms(1000)) == OK);
    webhook_secret(stage_store, &hook, 1, first);
    (void)hooks_job(&client, "");
    hooks_settle(1000);
    EXPECT(hooks_count == 2 && signed_by(&hooks_calls[1], span_of(first, sizeof(first))));
    EXPECT(signed_by(&hooks_calls[1], common)); /* both, for a day */
    EXPECT(store_submit(&webhook_rotate_class, &rotate, NULL, 0, NULL, actor_deadline_ms(1000)) == OK);
    webhook_secret(stage_store, &hook, 2, second);
    (void)hooks_job(&client, "");
    hooks_settle(1000);
    EXPECT(signed_by(&hooks_calls[2], span_of(first, sizeof(first))) &&
           signed_by(&hooks_calls[2], span_of(second, sizeof(second))) &&
           !signed_by(&hooks_calls[2], common));
    stage_clock_jump((int64_t)(24 * 3600 - 10) * (int64_t)NS_PER_S);
    (void)hooks_job(&client, "");
    hooks_settle(1000);
    EXPECT(hooks_count == 4 && signed_by(&hooks_calls[3], span_of(first, sizeof(first))) &&
           signed_by(&hooks_calls[3], span_of(second, sizeof(second)))); /* still within the day */
    hooks_settle(10000);
    (void)hooks_job(&client, "");
    hooks_settle(1000);
    EXPECT(hooks_count == 5 && !signed_by(&hooks_calls[4], span_of(first, sizeof(first))) &&
           signed_by(&hooks_calls[4], span_of(second, sizeof(second))));
}

static void test_signatures_of_the_server_and_of_a_webhook_AMB_J_43_W6(void)
{
    RUN(signed_body);
}

/* ---- failures ---- */

static struct hooks_answer second_time(const struct hooks_call *call)
{
    return status(call->attempt >= 2 ? 204 : to(call, "/302") ? 302 : to(call, "/404") ? 404 : 500);
}

static void failures_body(void)
{
    static const char *const urls[] = {"https://a.example/302", "https://b.example/404",
                                       "https://c.example/500"};
    hooks_start(&webhooks_defaults, second_time);
    struct uuid client = hooks_client();
    for (int i = 0; i < 3; i++)
        (void)hooks_job(&client, urls[i]);
    hooks_settle(MINUTE_MS);
    EXPECT(hooks_count == 12 && hooks_counted(DELIVERY_DELIVERED) == 6); /* each event twice */
    for (uint32_t i = 0; i < hooks_count; i++)
        EXPECT(to(&hooks_calls[i], ".example/")); /* and nothing that a redirect led to */
}

static void test_what_isnt_2xx_is_tried_again_JOB_055_JOB_329_W2(void)
{
    RUN(failures_body);
}

static struct hooks_answer always_500(const struct hooks_call *call)
{
    return status(to(call, "bad") ? 500 : 200);
}

static void exhausted_body(void)
{
    struct delivery d;
    uint64_t waited_ns, most_ns = S_NS;
    hooks_start(&webhooks_defaults, always_500);
    struct webhook_figures before = webhooks_figures();
    struct uuid client = hooks_client(), job = hooks_job(&client, "https://bad.example/");
    hooks_settle(MINUTE_MS);
    EXPECT(hooks_calls_of(&job, "job.created") == 6); /* 1 + 5 */
    EXPECT(hooks_delivery(&job, NULL, 1, &d) == OK && d.state == DELIVERY_FAILED && d.attempts == 6 &&
           d.error == DELIVERY_STATUS);
    for (uint32_t i = 1; i < 6;
         i++, most_ns *= 2) { /* backoff from half to all, and twice as long each time */
        waited_ns = hooks_calls[i].at_ns - hooks_calls[i - 1].at_ns;
        EXPECT(hooks_calls[i].attempt == i + 1);
        EXPECT(waited_ns >= most_ns / 2 && waited_ns <= most_ns + 100 * NS_PER_MS);
    }
    EXPECT(strcmp(hooks_calls[6].event, "job.queued") == 0); /* the next event has its turn */
    hooks_settle(2 * MINUTE_MS);
    EXPECT(hooks_count == 12 && hooks_counted(DELIVERY_FAILED) == 2);
    struct webhook_figures after = webhooks_figures();
    EXPECT(after.failed - before.failed == 12 && after.succeeded == before.succeeded &&
           after.given_up - before.given_up == 2);
    EXPECT(stage_logged("\"webhook attempt\"") == 12 && stage_logged("\"url_host\":\"bad.example\"") == 12);
    EXPECT(stage_logged("\"http_status\":500") == 12 && stage_logged("\"attempt\":6,") == 2);
    struct job read;
    struct view *view = view_open(stage_store);
    EXPECT(job_read(&view->txn, &job, &read) == OK &&
           read.state == JOB_QUEUED); /* nothing happened to the job */
    view_close(view);
}

static void test_retries_come_to_an_end_JOB_056_JOB_330_JOB_411_JOB_422_JOB_423_JOB_428_JOB_446(void)
{
    RUN(exhausted_body);
}

static void settings_body(void)
{
    struct webhooks_settings settings = webhooks_defaults;
    settings.retries_max = 2;
    settings.timeout_ms = 700;
    settings.backoff_base_us = 10000000;
    settings.backoff_most_us = 15000000;
    hooks_start(&settings, always_500);
    struct uuid client = hooks_client(), job = hooks_job(&client, "https://bad.example/");
    hooks_settle(MINUTE_MS);
    EXPECT(hooks_calls_of(&job, "job.created") == 3 && hooks_calls[0].timeout_ns == 700 * NS_PER_MS);
    uint64_t waited_ns = hooks_calls[1].at_ns - hooks_calls[0].at_ns;
    EXPECT(waited_ns >= 5 * S_NS && waited_ns <= 11 * S_NS);
    waited_ns = hooks_calls[2].at_ns - hooks_calls[1].at_ns;
    EXPECT(waited_ns >= 7 * S_NS && waited_ns <= 16 * S_NS); /* half of 15 s to all of it */
    settings.retries_max = 0;
    webhooks_configure(&settings); /* a reload */
    struct uuid once = hooks_job(&client, "https://bad.example/");
    hooks_settle(MINUTE_MS);
    EXPECT(hooks_calls_of(&once, NULL) == 2);
    webhooks_configure(&webhooks_defaults);
}

static void test_timeout_and_retries_are_settings_JOB_446_JOB_451(void)
{
    RUN(settings_body);
}

static struct hooks_answer misbehaves(const struct hooks_call *call)
{
    if (call->attempt > 1)
        return status(200);
    if (to(call, "hang"))
        return (struct hooks_answer){.after_ms = NEVER};
    return (struct hooks_answer){.after_ms = 1,
                                 .error = to(call, "closed")    ? ERR_SYSTEM
                                          : to(call, "private") ? ERR_FORBIDDEN
                                                                : ERR_LIMIT};
}

static void misbehaving_body(void)
{
    static const struct {
        const char *url;
        enum delivery_error error;
    } cases[] = {{"https://hang.example/", DELIVERY_TIMEOUT},
                 {"https://closed.example/", DELIVERY_UNREACHABLE},
                 {"https://private.example/", DELIVERY_ADDRESS},
                 {"https://long.example/", DELIVERY_ANSWER}};
    struct uuid jobs[4];
    struct delivery d;
    hooks_start(&webhooks_defaults, misbehaves);
    struct uuid client = hooks_client();
    for (int i = 0; i < 4; i++)
        jobs[i] = hooks_job(&client, cases[i].url);
    hooks_settle(5200); /* the first has hung for 5 s */
    for (int i = 0; i < 4; i++)
        EXPECT(hooks_delivery(&jobs[i], NULL, 1, &d) == OK && d.attempts >= 1);
    EXPECT(stage_logged("\"error\":\"timeout\",\"error_code\":\"RFA_DEPENDENCY_TIMEOUT\"") ==
           1); /* JOB-359 */
    EXPECT(stage_logged("\"error\":\"unreachable\"") == 2 && stage_logged("\"error\":\"address\"") == 2 &&
           stage_logged("\"error\":\"answer\"") == 2);
    hooks_settle(MINUTE_MS); /* who comes back gets it */
    EXPECT(hooks_counted(DELIVERY_DELIVERED) == 8 && hooks_count == 16);
}

static void test_receivers_that_hang_or_are_not_there_JOB_054_JOB_326_JOB_328_JOB_336_JOB_359_W1(void)
{
    RUN(misbehaving_body);
}

static struct hooks_answer busy(const struct hooks_call *call)
{
    struct hooks_answer a = status(call->attempt == 1 ? 429 : 200);
    a.retry_after_s = 30;
    return a;
}

static void retry_after_body(void)
{
    hooks_start(&webhooks_defaults, busy);
    struct uuid client = hooks_client();
    (void)hooks_job(&client, OK_URL);
    hooks_settle(29500);
    EXPECT(hooks_count == 1);
    hooks_settle(2000);
    EXPECT(hooks_count == 3 &&
           hooks_calls[1].at_ns - hooks_calls[0].at_ns >= 30 * S_NS); /* and then the next event */
}

static void test_retry_after_is_obeyed(void)
{
    RUN(retry_after_body);
}

static struct hooks_answer one_is_full(const struct hooks_call *call)
{
    struct hooks_answer a = status(to(call, "full.example") ? 429 : to(call, "broken.example") ? 503 : 200);
    a.retry_after_s = to(call, "full.example") ? 60 : 0;
    return a;
}

static uint32_t calls_to(const char *part)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < hooks_count; i++)
        count += to(&hooks_calls[i], part);
    return count;
}

static void full_body(void)
{
    hooks_start(&webhooks_defaults, one_is_full);
    struct uuid client = hooks_client();
    for (int i = 0; i < 100; i++) {
        (void)hooks_job(&client, "https://full.example/");
        (void)hooks_job(&client, "https://broken.example/");
    }
    hooks_settle(1000);
    (void)hooks_job(&client, OK_URL);
    hooks_settle(1000);
    EXPECT(calls_to("good.example") == 2);
    hooks_settle(MINUTE_MS - 3000);
    EXPECT(calls_to("full.example") >= 1 && calls_to("full.example") <= OUTBOUND_LANE_FIRST);
    /* Without a word how long, it is left alone for a second, and twice as long each time. */
    EXPECT(calls_to("broken.example") >= 5 && calls_to("broken.example") <= 10);
    hooks_settle(4000);
    EXPECT(calls_to("full.example") <= OUTBOUND_LANE_FIRST + 1); /* one asks whether it may go on */
    hooks_receive(NULL);
    hooks_settle(5 * MINUTE_MS);
    EXPECT(hooks_counted(DELIVERY_PENDING) == 0 && hooks_counted(DELIVERY_DELIVERED) == 402);
}

static void test_a_host_that_asks_for_less_gets_less(void)
{
    RUN(full_body);
}

static bool pages_are_long; /* longer than is read of them */

static struct hooks_answer gone(const struct hooks_call *call)
{
    struct hooks_answer a = status(to(call, "gone") ? 410 : 200);
    a.error = pages_are_long && a.status == 410 ? ERR_LIMIT : OK;
    return a;
}

static void gone_body(void)
{
    struct webhook webhook;
    struct delivery d;
    hooks_start(&webhooks_defaults, gone);
    struct uuid client = hooks_client();
    struct uuid hook = hooks_put(&client, "https://gone.example/", WEBHOOK_ALL),
                other = hooks_put(&client, OK_URL, WEBHOOK_ALL);
    struct uuid job = hooks_job(&client, "https://gone.example/callback");
    hooks_settle(1000);
    struct view *view = view_open(stage_store);
    EXPECT(webhook_read(&view->txn, &client, &hook, &webhook) == OK && webhook.state == WEBHOOK_DISABLED &&
           webhook.reason == WEBHOOK_GONE);
    view_close(view);
    EXPECT(hooks_delivery(&job, &hook, 1, &d) == OK && d.state == DELIVERY_FAILED && d.attempts == 1);
    EXPECT(hooks_delivery(&job, &hook, 2, &d) == OK && d.state == DELIVERY_FAILED && d.attempts == 0 &&
           d.error == DELIVERY_DISABLED);
    EXPECT(hooks_delivery(&job, NULL, 2, &d) == OK && d.state == DELIVERY_FAILED && d.attempts == 1);
    EXPECT(hooks_delivery(&job, &other, 2, &d) == OK && d.state == DELIVERY_DELIVERED);
    EXPECT(stage_logged("\"webhook_disabled\":true") == 1);
    hooks_cancel(&job);
    hooks_settle(1000);
    EXPECT(hooks_delivery(&job, &hook, 3, &d) == ERR_NOT_FOUND);
}

static void test_410_ends_it_and_disables_the_webhook(void)
{
    for (int i = 0; i < 2; i++) {
        pages_are_long = i == 1;
        RUN(gone_body);
    }
}

static struct hooks_answer long_pages(const struct hooks_call *call)
{
    struct hooks_answer a = status(call->attempt > 1 ? 200 : to(call, "busy") ? 503 : 200);
    a.error = call->attempt > 1 ? OK : ERR_LIMIT;
    a.retry_after_s = to(call, "busy") ? 30 : 0;
    return a;
}

static void long_pages_body(void)
{
    hooks_start(&webhooks_defaults, long_pages);
    struct uuid client = hooks_client(), job = hooks_job(&client, "https://busy.example/");
    hooks_settle(29500);
    EXPECT(hooks_calls_of(&job, NULL) == 1 && stage_logged("\"http_status\":503,\"error\":\"status\"") == 1);
    (void)hooks_job(&client, OK_URL);
    hooks_settle(500);
    EXPECT(stage_logged("\"http_status\":200,\"error\":\"answer\"") == 1); /* not taken for delivered */
    hooks_settle(MINUTE_MS);
    EXPECT(hooks_counted(DELIVERY_DELIVERED) == 4);
}

static void test_a_page_that_is_too_long_hides_no_status(void)
{
    RUN(long_pages_body);
}

/* ---- what is not sent ---- */

static struct hooks_answer fails(const struct hooks_call *call)
{
    (void)call;
    return status(500);
}

static void removed_body(void)
{
    struct delivery d;
    hooks_start(&webhooks_defaults, fails);
    struct uuid client = hooks_client(), hook = hooks_put(&client, OK_URL, WEBHOOK_ALL);
    struct uuid job = hooks_job(&client, "");
    hooks_settle(200);
    EXPECT(hooks_count == 1 && hooks_remove(&client, &hook) == OK);
    hooks_cancel(&job);
    hooks_settle(MINUTE_MS);
    EXPECT(hooks_count == 1); /* not even those that were on their way */
    EXPECT(hooks_delivery(&job, &hook, 1, &d) == OK && d.state == DELIVERY_DROPPED &&
           d.error == DELIVERY_REMOVED);
    EXPECT(hooks_delivery(&job, &hook, 2, &d) == OK && d.state == DELIVERY_DROPPED && d.attempts == 0);
    EXPECT(hooks_counted(DELIVERY_PENDING) == 0);
}

static void test_a_removed_webhook_gets_nothing_more_JOB_193(void)
{
    RUN(removed_body);
}

static uint32_t spoilt_table;
static struct key spoilt_key;

/* And again: as it was. */
static enum error spoil_it(struct txn *txn)
{
    spoil_value(txn, spoilt_table, key_span(&spoilt_key));
    return OK;
}

static enum error remove_it(struct txn *txn)
{
    spoil_remove(txn, spoilt_table, key_span(&spoilt_key));
    return OK;
}

static uint64_t damage_told(const char *of)
{
    return telemetry_counter_label(runtime_telemetry(runtime_self()), TELEMETRY_STORE_DAMAGED, of);
}

static enum error send_again(const struct uuid *client, const struct uuid *id)
{
    const struct delivery_resend c = {
        .client = *client, .id = *id, .steady_us = store_steady_us(stage_store)};
    return store_submit(&delivery_resend_class, &c, NULL, 0, NULL, actor_deadline_ms(1000));
}

static void damaged_webhook_body(void)
{
    struct delivery first, second;
    hooks_start(&webhooks_defaults, fails);
    uint64_t told = damage_told("webhooks");
    struct uuid client = hooks_client(), hook = hooks_put(&client, OK_URL, WEBHOOK_ALL);
    struct uuid job = hooks_job(&client, "");
    hooks_settle(200);
    spoilt_table = TABLE_WEBHOOKS;
    spoilt_key = key_of_uuid(&client);
    key_add_uuid(&spoilt_key, &hook);
    EXPECT(hooks_count == 1 && spoil(spoil_it) == OK);
    hooks_settle(MINUTE_MS);
    EXPECT(hooks_count == 1 && hooks_delivery(&job, &hook, 1, &first) == OK &&
           hooks_delivery(&job, &hook, 2, &second) == OK);
    EXPECT(first.state == DELIVERY_FAILED && first.error == DELIVERY_DAMAGED && first.attempts == 1);
    EXPECT(second.state == DELIVERY_FAILED && second.error == DELIVERY_DAMAGED && second.attempts == 0);
    EXPECT(damage_told("webhooks") == told + 2 && stage_logged("\"error\":\"damaged\"") == 2);
    EXPECT(send_again(&client, &first.id) == ERR_DAMAGED);
    EXPECT(spoil(spoil_it) == OK);
    hooks_receive(NULL);
    EXPECT(send_again(&client, &first.id) == OK && send_again(&client, &second.id) == OK);
    hooks_settle(1000);
    EXPECT(hooks_counted(DELIVERY_DELIVERED) == 2 && hooks_count == 3);
}

static void test_a_webhook_that_cannot_be_read_is_damaged_and_not_removed(void)
{
    const struct stage stage = {.schema = spoil_schema()};
    TEST_CHECK(stage_run(&stage, damaged_webhook_body) == 0);
}

static void damaged_job_body(void)
{
    struct delivery d;
    hooks_start(&webhooks_defaults, fails);
    uint64_t told = damage_told("jobs");
    struct uuid client = hooks_client(), job = hooks_job(&client, OK_URL);
    hooks_settle(200);
    spoilt_table = TABLE_EVENTS;
    spoilt_key = event_key(&job, 1);
    EXPECT(hooks_count == 1 && spoil(spoil_it) == OK);
    hooks_settle(1500);
    EXPECT(hooks_delivery(&job, NULL, 1, &d) == OK && d.state == DELIVERY_FAILED &&
           d.error == DELIVERY_DAMAGED && damage_told("jobs") == told + 1);
    EXPECT(spoil(spoil_it) == OK);
    hooks_receive(NULL);
    EXPECT(send_again(&client, &d.id) == OK);
    hooks_settle(MINUTE_MS);
    EXPECT(hooks_counted(DELIVERY_DELIVERED) == 2);
    EXPECT(spoil(remove_it) == OK && send_again(&client, &d.id) == OK);
    hooks_settle(1000);
    EXPECT(hooks_delivery(&job, NULL, 1, &d) == OK && d.state == DELIVERY_DROPPED &&
           d.error == DELIVERY_JOB_GONE && damage_told("jobs") == told + 1);
}

static void test_a_job_that_cannot_be_read_is_damaged_and_not_gone(void)
{
    const struct stage stage = {.schema = spoil_schema(), .unsound = true};
    TEST_CHECK(stage_run(&stage, damaged_job_body) == 0);
}

static struct hooks_answer slow(const struct hooks_call *call)
{
    (void)call;
    return (struct hooks_answer){.status = 200, .after_ms = 2000};
}

static void removed_in_a_rush_body(void)
{
    uint32_t later = 0;
    hooks_start(&webhooks_defaults, NULL);
    struct uuid client = hooks_client(), hook = hooks_put(&client, OK_URL, WEBHOOK_ALL);
    for (int i = 0; i < 60; i++)
        (void)hooks_job(&client, "");
    hooks_settle(10000); /* it is known to be quick */
    EXPECT(hooks_count == 120);
    hooks_receive(slow);
    for (int i = 0; i < 60; i++)
        (void)hooks_job(&client, "");
    hooks_settle(100);
    EXPECT(hooks_count > 120 && hooks_remove(&client, &hook) == OK);
    uint64_t removed = actor_now();
    hooks_settle(MINUTE_MS);
    for (uint32_t i = 0; i < hooks_count; i++)
        later += hooks_calls[i].at_ns > removed;
    EXPECT(later == 0 && hooks_count == 120 + FETCH_HOST_MAX);
    EXPECT(hooks_counted(DELIVERY_PENDING) == 0);
}

static void test_what_is_ready_for_a_removed_webhook_stays_here_JOB_193(void)
{
    RUN(removed_in_a_rush_body);
}

static void removed_while_all_is_taken_body(void)
{
    char url[64];
    uint32_t arrived = 0, waited = 0;
    hooks_start(&webhooks_defaults, NULL);
    struct uuid client = hooks_client(), other = hooks_client(),
                hook = hooks_put(&client, OK_URL, WEBHOOK_ALL);
    for (int i = 0; i < 200; i++) {
        if (i == 100) {
            hooks_settle(5000); /* all are known to be quick */
            hooks_receive(slow);
        }
        snprintf(url, sizeof(url), "https://other-%d.example/", i % 10);
        (void)hooks_job(&other, url);
    }
    hooks_settle(100);
    uint32_t before = hooks_count;
    (void)hooks_job(&client, "");
    hooks_settle(100);
    EXPECT(hooks_count > before && hooks_remove(&client, &hook) == OK);
    hooks_settle(MINUTE_MS);
    for (uint32_t i = 0; i < hooks_count; i++) {
        waited += to(&hooks_calls[i], OK_URL);
        arrived += to(&hooks_calls[i], OK_URL) && hooks_calls[i].arrived;
    }
    EXPECT(waited == 1 && arrived == 0);
    EXPECT(hooks_counted(DELIVERY_PENDING) == 0 && hooks_counted(DELIVERY_DROPPED) == 2);
}

static void test_what_waits_for_its_turn_is_asked_once_more_JOB_193(void)
{
    RUN(removed_while_all_is_taken_body);
}

static void skipped_body(void)
{
    struct delivery d;
    hooks_start(&webhooks_defaults, NULL);
    struct uuid client = hooks_client(),
                job = hooks_job(&client, "ftp://files.example/"); /* as if it had got in */
    hooks_settle(1000);
    EXPECT(hooks_count == 0 && hooks_delivery(&job, NULL, 1, &d) == OK && d.state == DELIVERY_DROPPED &&
           d.error == DELIVERY_URL);
    EXPECT(stage_logged("\"webhook skipped\"") == 2 && stage_logged("\"error\":\"url\"") == 2);
}

static void test_a_callback_that_became_invalid_is_skipped_JOB_327(void)
{
    RUN(skipped_body);
}

static void private_body(void)
{
    struct webhooks_settings settings = webhooks_defaults;
    struct delivery d;
    hooks_start(&settings, NULL);
    struct uuid client = hooks_client(), job = hooks_job(&client, "http://127.0.0.1:9/");
    hooks_settle(300);
    EXPECT(hooks_count == 0 && hooks_delivery(&job, NULL, 1, &d) == OK && d.state == DELIVERY_PENDING &&
           d.attempts == 1 && d.error == DELIVERY_ADDRESS);
    settings.allow_private = true;
    webhooks_configure(&settings);
    hooks_settle(5000);
    EXPECT(hooks_count == 2 && hooks_calls[0].any_address && hooks_calls[0].attempt == 2);
    webhooks_configure(&webhooks_defaults);
}

static void test_private_addresses_are_failed_attempts_AMB_J_61_W3(void)
{
    RUN(private_body);
}

/* ---- order ---- */

static struct hooks_answer first_event_hard(const struct hooks_call *call)
{
    if (strcmp(call->event, "job.created") == 0 && to(call, "hard") && call->attempt < 4)
        return status(503);
    return status(200);
}

static void order_body(void)
{
    hooks_start(&webhooks_defaults, first_event_hard);
    struct uuid client = hooks_client();
    struct uuid hard = hooks_job(&client, "https://hard.example/1"),
                easy = hooks_job(&client, "https://hard.example/easy");
    hooks_put(&client, OK_URL, WEBHOOK_ALL);
    (void)easy;
    hooks_cancel(&hard);
    hooks_settle(300);
    EXPECT(hooks_calls_of(&hard, "job.queued") == 0);   /* while the first event has not come through */
    EXPECT(hooks_calls_of(&hard, "job.canceled") == 1); /* to the other receiver */
    hooks_settle(MINUTE_MS);
    uint32_t last = 0;
    static const char *const names[] = {"job.created", "job.queued", "job.canceled"};
    char id[UUID_TEXT_SIZE];
    uuid_format(&hard, id);
    for (uint32_t i = 0; i < hooks_count; i++) {
        if (strcmp(hooks_calls[i].job, id) != 0 || !to(&hooks_calls[i], "hard.example"))
            continue;
        EXPECT(strcmp(hooks_calls[i].event, names[last]) == 0 ||
               (last < 2 && strcmp(hooks_calls[i].event, names[++last]) == 0));
    }
    EXPECT(last == 2 && hooks_counted(DELIVERY_PENDING) == 0);
}

static void test_events_arrive_in_order_per_job_and_receiver_O3_AMB_J_43(void)
{
    RUN(order_body);
}

/* ---- receivers that hang, and all the others ---- */

static struct hooks_answer some_hang(const struct hooks_call *call)
{
    return to(call, "hang") ? (struct hooks_answer){.after_ms = NEVER}
                            : (struct hooks_answer){.status = 200, .after_ms = 20};
}

static void crowd_body(void)
{
    char url[64];
    uint32_t late = 0, good = 0;
    hooks_start(&webhooks_defaults, some_hang);
    struct uuid client = hooks_client();
    for (unsigned i = 0; i < 200; i++) {
        snprintf(url, sizeof(url), "https://hang-%u.example/", i % 40);
        (void)hooks_job(&client, url);
    }
    hooks_settle(20000); /* by now it is known which hosts hang */
    uint64_t since = actor_now();
    for (unsigned i = 0; i < 100; i++) {
        snprintf(url, sizeof(url), "https://good-%u.example/", i % 20);
        (void)hooks_job(&client, url);
    }
    hooks_settle(3000);
    for (uint32_t i = 0; i < hooks_count; i++) {
        good += to(&hooks_calls[i], "good");
        late += to(&hooks_calls[i], "good") && hooks_calls[i].at_ns > since + 2 * S_NS;
    }
    EXPECT(good == 200 && late == 0);
}

static void test_receivers_that_hang_are_in_nobodys_way_JOB_057_W1(void)
{
    RUN(crowd_body);
}

/* Those of a client to its 20 receivers, all of which are new ones the first time: whether all arrived in time. */
static void check_in_time(const struct uuid *client)
{
    char url[64];
    uint32_t late = 0;
    struct uuid jobs[20];
    for (unsigned i = 0; i < 20; i++) {
        snprintf(url, sizeof(url), "https://good-%u.example/", i);
        jobs[i] = hooks_job(client, url);
    }
    hooks_settle(webhooks_defaults.timeout_ms + 1000);
    for (unsigned i = 0; i < 20; i++)
        late += hooks_calls_of(&jobs[i], NULL) != 2;
    EXPECT(late == 0);
}

static void new_crowd_body(void)
{
    char url[64];
    hooks_start(&webhooks_defaults, some_hang);
    struct uuid client = hooks_client(), other = hooks_client();
    for (unsigned i = 0; i < 1000; i++) {
        snprintf(url, sizeof(url), "https://hang-%u.example/", i);
        (void)hooks_job(&client, url);
    }
    check_in_time(&other);
    check_in_time(&other);
    hooks_restart(); /* nobody is known any more */
    check_in_time(&other);
}

static void test_receivers_of_which_nothing_is_known_are_in_nobodys_way_JOB_057_W1(void)
{
    RUN(new_crowd_body);
}

/* ---- what dies, and when ---- */

static struct hooks_answer by_chance(const struct hooks_call *call)
{
    uint64_t chance = actor_random();
    (void)call;
    if (chance % 10 == 0)
        return (struct hooks_answer){.after_ms = NEVER};
    return (struct hooks_answer){.status = chance % 10 < 4 ? 500 : 200, .after_ms = chance >> 32 & 63};
}

/* First calls of each event of a job are in order, and each repeat bears the same id and bytes but for the attempt. */
static void check_history(const struct uuid *job)
{
    static const char *const names[] = {"job.created", "job.queued", "job.canceled"};
    char id[UUID_TEXT_SIZE];
    const struct hooks_call *first[3] = {NULL};
    uint32_t seen = 0;
    uuid_format(job, id);
    for (uint32_t i = 0; i < hooks_count; i++) {
        const struct hooks_call *c = &hooks_calls[i];
        for (uint32_t n = 0; n < 3 && strcmp(c->job, id) == 0; n++) {
            if (strcmp(c->event, names[n]) != 0)
                continue;
            EXPECT(first[n] || n == seen);
            seen += !first[n];
            first[n] = first[n] ? first[n] : c;
            size_t same = (size_t)(strstr(c->body, "\"delivery_attempt\"") - c->body);
            EXPECT(strcmp(first[n]->delivery, c->delivery) == 0 &&
                   strncmp(first[n]->body, c->body, same) == 0);
        }
    }
    EXPECT(seen == 3);
}

static void chaos_body(void)
{
    struct uuid jobs[12];
    struct webhooks_settings settings = webhooks_defaults;
    settings.retries_max = 100; /* so that none is given up */
    hooks_start(&settings, by_chance);
    struct uuid client = hooks_client();
    for (int i = 0; i < 12; i++) {
        jobs[i] = hooks_job(&client, i % 2 ? "https://a.example/" : "https://b.example/");
        hooks_settle(actor_random() % 1500);
        if (i % 2 == 0)
            hooks_restart();
        hooks_cancel(&jobs[i]);
        if (i % 3 == 0) {
            stage_kill(actor_whereis(WRITER_NAME));
            hooks_settle(actor_random() % 500);
            (void)stage_writer();
        }
    }
    hooks_receive(NULL); /* all is well from now on */
    hooks_settle(10 * MINUTE_MS);
    EXPECT(hooks_counted(DELIVERY_PENDING) == 0 && hooks_counted(DELIVERY_DELIVERED) == 36);
    for (int i = 0; i < 12; i++)
        check_history(&jobs[i]);
    webhooks_configure(&webhooks_defaults);
}

static void test_whatever_dies_each_event_arrives_in_order_with_one_id_O2_O3_O4_O5_W5(void)
{
    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct stage stage = {.seed = seed};
        TEST_CHECK_(stage_run(&stage, chaos_body) == 0, "seed %u", (unsigned)seed);
    }
}

/* ---- trouble of our own ---- */

static bool shed;

static struct hooks_answer sheds(const struct hooks_call *call)
{
    (void)call;
    return shed ? (struct hooks_answer){.error = ERR_SHED, .after_ms = 1} : status(200);
}

static void shed_body(void)
{
    struct delivery d;
    shed = true;
    hooks_start(&webhooks_defaults, sheds);
    struct uuid client = hooks_client(), job = hooks_job(&client, OK_URL);
    hooks_settle(10500);
    EXPECT(hooks_count >= 8 && hooks_count <= 11); /* once a second */
    EXPECT(hooks_delivery(&job, NULL, 1, &d) == OK && d.attempts == 0 && d.state == DELIVERY_PENDING);
    shed = false;
    hooks_settle(3000);
    EXPECT(hooks_delivery(&job, NULL, 2, &d) == OK && d.state == DELIVERY_DELIVERED && d.attempts == 1);
}

static void test_trouble_of_our_own_is_no_attempt(void)
{
    RUN(shed_body);
}

static bool away;

static struct hooks_answer without_libcurl(const struct hooks_call *call)
{
    (void)call;
    return away ? (struct hooks_answer){.error = ERR_UNAVAILABLE, .after_ms = 1} : status(200);
}

static void without_libcurl_body(void)
{
    away = true;
    hooks_start(&webhooks_defaults, without_libcurl);
    struct uuid client = hooks_client();
    for (int round = 1; round <= 2; round++, away = true) {
        (void)hooks_job(&client, OK_URL);
        hooks_settle(10000);
        EXPECT(
            stage_logged("\"level\":\"warn\",\"logger\":\"webhooks\",\"msg\":\"no webhook can be sent\"") ==
            (uint32_t)round);
        EXPECT(stage_logged("\"err\":\"no libcurl here\"") == (uint32_t)round);
        EXPECT(stage_logged("webhooks are sent again") == (uint32_t)round - 1);
        away = false;
        hooks_settle(10000);
        EXPECT(stage_logged("webhooks are sent again") == (uint32_t)round);
    }
    EXPECT(hooks_counted(DELIVERY_DELIVERED) == 4 && stage_logged("\"webhook attempt\"") == 4);
}

static void test_when_nothing_can_be_sent_it_is_said_once(void)
{
    RUN(without_libcurl_body);
}

static uint32_t asked;

/* In place of fetch: says nothing, or ends itself when it is asked. */
static enum actor_step mute_handle(void *state, struct message *m)
{
    const bool *ends = state;
    (void)m;
    asked++;
    if (*ends)
        actor_fail(ERR_SYSTEM, "a request that it can't bear");
    return ACTOR_CONTINUE;
}

static enum actor_step mute_init(void *state, const void *args, size_t args_size)
{
    memcpy(state, args, args_size);
    return ACTOR_CONTINUE;
}

static const struct actor_class mute_class = {
    .name = "mute", .state_size = sizeof(bool), .init = mute_init, .handle = mute_handle};

static actor_pid mute_start(bool ends)
{
    struct start_result result = {.pid = 0};
    const struct spawn_options o = {
        .class = &mute_class, .args = &ends, .args_size = sizeof(ends), .name = FETCH_NAME};
    EXPECT(actor_start(&o, &result, actor_deadline_ms(1000)) == OK);
    return result.pid;
}

static void fetch_dies_body(void)
{
    struct delivery d;
    hooks_start(&webhooks_defaults, NULL);
    hooks_fetch = true;
    hooks_restart();
    asked = 0;
    actor_pid fetch = mute_start(false);
    struct uuid client = hooks_client(), job = hooks_job(&client, OK_URL);
    for (uint32_t times = 1; times <= 10; times++) { /* more often than it would be tried */
        hooks_settle(1500);
        EXPECT(asked == times);
        stage_kill(fetch);
        fetch = mute_start(false);
    }
    EXPECT(hooks_delivery(&job, NULL, 1, &d) == OK && d.attempts == 0 && d.state == DELIVERY_PENDING);
    hooks_settle(1500);
    stage_kill(fetch);
    asked = 0;
    for (uint32_t times = 1; times <= 6; times++) {
        (void)mute_start(true);
        hooks_settle(MINUTE_MS); /* it ends itself */
        EXPECT(asked == times && hooks_delivery(&job, NULL, 1, &d) == OK && d.attempts == times);
    }
    EXPECT(d.state == DELIVERY_FAILED && d.error == DELIVERY_STOPPED);
}

static void test_an_end_of_fetch_is_no_attempt_but_a_crash_is(void)
{
    RUN(fetch_dies_body);
}

static uint64_t hangs_from, hangs_until;

static struct hooks_answer hangs_for_a_while(const struct hooks_call *call)
{
    bool hangs = to(call, "shared") && call->at_ns >= hangs_from && call->at_ns < hangs_until;
    return hangs ? (struct hooks_answer){.after_ms = NEVER} : status(200);
}

/* The attempts of a job's two events, and those that arrived. */
static void check_attempts(const struct uuid *job)
{
    struct delivery d;
    char id[UUID_TEXT_SIZE];
    uint32_t attempts = 0, arrived = 0;
    uuid_format(job, id);
    for (uint64_t event = 1; event <= 2; event++) {
        EXPECT(hooks_delivery(job, NULL, event, &d) == OK && d.state == DELIVERY_DELIVERED);
        attempts += d.attempts;
    }
    for (uint32_t i = 0; i < hooks_count; i++)
        arrived += strcmp(hooks_calls[i].job, id) == 0 && hooks_calls[i].arrived;
    EXPECT(attempts == arrived);
}

/* So many receivers answer so quickly that each is asked as much as it may be at once, and then hang as long as `hang_ns`: those that
 * wait for their turn behind them were no attempts, and get all the time they may take when it comes. */
static void crowded(uint64_t hang_ns, uint32_t hosts, uint32_t failures)
{
    enum { JOBS = 180 };
    struct uuid jobs[JOBS];
    char url[64];
    hangs_from = hangs_until = 0;
    hooks_start(&webhooks_defaults, hangs_for_a_while);
    struct uuid client = hooks_client();
    for (uint32_t i = 0; i < JOBS; i++) {
        if (i == JOBS / 2) {
            hooks_settle(2000);
            EXPECT(hooks_counted(DELIVERY_DELIVERED) == JOBS);
            hangs_from = actor_now();
            hangs_until = hangs_from + hang_ns;
        }
        snprintf(url, sizeof(url), "https://shared-%u.example/", i % hosts);
        jobs[i] = hooks_job(&client, url);
    }
    uint64_t failed = webhooks_figures().failed;
    hooks_settle(100);
    uint32_t late = 0;
    for (uint32_t i = 0; i < 400 && hosts == 1; i++) { /* nobody else is kept from being sent */
        snprintf(url, sizeof(url), "https://other-%u.example/", i % 80); /* some for each sender */
        struct uuid job = hooks_job(&client, url);
        hooks_settle(30);
        late += hooks_calls_of(&job, NULL) == 0;
    }
    EXPECT(late == 0);
    hooks_settle(MINUTE_MS);
    EXPECT(!failures || webhooks_figures().failed - failed == failures);
    for (uint32_t i = 0; i < JOBS; i++)
        check_attempts(&jobs[i]);
}

static void crowded_body(void)
{
    crowded(5 * S_NS, 1, FETCH_HOST_MAX);
}

static void crowded_out_body(void)
{
    crowded(5 * S_NS, 10, FETCH_TIMED_MAX);
}

static void longer_crowded_body(void)
{
    crowded(10 * S_NS, 10, 0);
}

static void test_one_host_that_hangs_takes_its_share_JOB_329_JOB_330(void)
{
    RUN(crowded_body);
}

static void test_one_that_waits_behind_others_has_all_its_time_JOB_329_JOB_330(void)
{
    RUN(crowded_out_body);
}

static void test_one_that_waits_in_vain_is_no_attempt_JOB_329_JOB_330(void)
{
    RUN(longer_crowded_body);
}

static void jump_body(void)
{
    hooks_start(&webhooks_defaults, second_time);
    struct uuid client = hooks_client();
    (void)hooks_job(&client, OK_URL);
    hooks_settle(100);
    EXPECT(hooks_count == 1);
    stage_clock_jump(
        -(int64_t)(3650 * UINT64_C(86400) * S_NS)); /* ten years back, in the middle of a backoff */
    hooks_settle(2000);
    EXPECT(hooks_count >= 2);
    stage_clock_jump((int64_t)(7300 * UINT64_C(86400) * S_NS));
    hooks_settle(5000);
    EXPECT(hooks_counted(DELIVERY_DELIVERED) == 2 && hooks_count == 4);
}

static void test_a_clock_that_leaps_changes_no_backoff_W5(void)
{
    RUN(jump_body);
}

enum { SPOILT_MAX = 40 };
static struct uuid spoilt[SPOILT_MAX];
static uint32_t spoilt_count;

/* And again: as it was. */
static enum error spoil_deliveries(struct txn *txn)
{
    for (uint32_t i = 0; i < spoilt_count; i++)
        spoil_value(txn, TABLE_DELIVERIES, span_of(spoilt[i].bytes, sizeof(spoilt[i].bytes)));
    return OK;
}

static void each_outbound(void (*act)(actor_pid pid))
{
    for (uint32_t p = 0; p < DELIVERY_PARTITIONS; p++)
        act(hooks_outbound(p));
}

/* The first delivery of each job can't be read from now on. */
static void spoil_first_of(const struct uuid *jobs, uint32_t count)
{
    struct delivery d;
    spoilt_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        EXPECT(hooks_delivery(&jobs[i], NULL, 1, &d) == OK);
        spoilt[spoilt_count++] = d.id;
    }
    EXPECT(spoil(spoil_deliveries) == OK);
}

/* Neither the receiver's other ones wait for it, nor those behind it in its chain. */
static void unreadable_body(void)
{
    hooks_start(&webhooks_defaults, NULL);
    uint64_t told = damage_told("deliveries");
    each_outbound(actor_suspend);
    struct uuid client = hooks_client(), first = hooks_job(&client, OK_URL);
    hooks_settle(1000);
    struct uuid second = hooks_job(&client, OK_URL);
    hooks_settle(1000);
    spoil_first_of(&first, 1);
    each_outbound(actor_resume);
    hooks_settle(5000);
    EXPECT(hooks_calls_of(&first, "job.created") == 0 && hooks_calls_of(&first, "job.queued") == 1 &&
           hooks_calls_of(&second, NULL) == 2);
    hooks_cancel(&first);
    hooks_settle(5000);
    EXPECT(hooks_calls_of(&first, "job.canceled") == 1);
    hooks_settle(3 * ASTRAY_MS); /* an operator hears of it once */
    EXPECT(damage_told("deliveries") == told + 1 && hooks_calls_of(&first, NULL) == 2);
    EXPECT(telemetry_counter_label(runtime_telemetry(runtime_self()), TELEMETRY_FAILURE_POISON_MESSAGE,
                                   "put_off") == 1);
    EXPECT(spoil(spoil_deliveries) == OK); /* it can be read again */
    hooks_settle(2 * ASTRAY_MS);
    EXPECT(hooks_calls_of(&first, "job.created") == 1 && hooks_counted(DELIVERY_DELIVERED) == 5);
}

static void test_one_that_cant_be_read_holds_its_receiver_up_for_nobody(void)
{
    const struct stage stage = {.schema = spoil_schema()};
    TEST_CHECK(stage_run(&stage, unreadable_body) == 0);
}

/* What couldn't be done for want of the store is done when it is back. */
static void unreadable_meanwhile_body(void)
{
    hooks_start(&webhooks_defaults, NULL);
    uint64_t told = damage_told("deliveries");
    each_outbound(actor_suspend);
    struct uuid client = hooks_client(), first = hooks_job(&client, OK_URL);
    hooks_settle(1000);
    spoil_first_of(&first, 1);
    stage_kill(actor_whereis(WRITER_NAME));
    each_outbound(actor_resume);
    hooks_settle(10000);
    EXPECT(hooks_count == 0 && damage_told("deliveries") == told);
    (void)stage_writer();
    hooks_settle(5000);
    EXPECT(hooks_calls_of(&first, "job.queued") == 1 && damage_told("deliveries") == told + 1);
    hooks_restart(); /* whoever comes knows nothing of it */
    hooks_settle(2 * ASTRAY_MS);
    EXPECT(hooks_count == 1 && damage_told("deliveries") == told + 2);
    EXPECT(spoil(spoil_deliveries) == OK);
    hooks_settle(2 * ASTRAY_MS);
    EXPECT(hooks_counted(DELIVERY_DELIVERED) == 2);
}

static void test_one_that_cant_be_read_while_the_store_is_away(void)
{
    const struct stage stage = {.schema = spoil_schema()};
    TEST_CHECK(stage_run(&stage, unreadable_meanwhile_body) == 0);
}

/* More of them at the front of a host's than are passed at a time. */
static void many_unreadable_body(void)
{
    struct uuid jobs[SPOILT_MAX];
    hooks_start(&webhooks_defaults, NULL);
    uint64_t told = damage_told("deliveries");
    each_outbound(actor_suspend);
    struct uuid client = hooks_client();
    for (uint32_t i = 0; i < SPOILT_MAX; i++)
        jobs[i] = hooks_job(&client, OK_URL);
    hooks_settle(1000);
    struct uuid last = hooks_job(&client, OK_URL);
    hooks_settle(1000);
    spoil_first_of(jobs, SPOILT_MAX);
    each_outbound(actor_resume);
    hooks_settle(MINUTE_MS);
    EXPECT(hooks_calls_of(&last, NULL) == 2 && hooks_calls_of(NULL, "job.queued") == SPOILT_MAX + 1 &&
           hooks_calls_of(NULL, "job.created") == 1);
    EXPECT(damage_told("deliveries") == told + SPOILT_MAX);
    EXPECT(spoil(spoil_deliveries) == OK);
    hooks_settle(2 * ASTRAY_MS);
    EXPECT(hooks_counted(DELIVERY_DELIVERED) == 2 * (SPOILT_MAX + 1));
}

static void test_however_many_cant_be_read_their_host_gets_the_others(void)
{
    const struct stage stage = {.schema = spoil_schema()};
    TEST_CHECK(stage_run(&stage, many_unreadable_body) == 0);
}

static void no_store_body(void)
{
    hooks_start(&webhooks_defaults, NULL);
    struct uuid client = hooks_client(), job = hooks_job(&client, OK_URL);
    while (hooks_count == 0)
        actor_yield();
    stage_kill(actor_whereis(WRITER_NAME)); /* sent, and nobody can say so */
    hooks_settle(5000);
    EXPECT(hooks_count == 1); /* it is not sent again meanwhile */
    (void)stage_writer();
    hooks_settle(5000);
    EXPECT(hooks_counted(DELIVERY_DELIVERED) == 2 && hooks_calls_of(&job, "job.created") == 1);
}

static void test_a_store_that_is_away_holds_results_and_repeats_nothing(void)
{
    RUN(no_store_body);
}

/* ---- sent again ---- */

static void resend_body(void)
{
    struct delivery d;
    hooks_start(&webhooks_defaults, always_500);
    struct uuid client = hooks_client(), job = hooks_job(&client, "https://bad.example/");
    hooks_settle(5 * MINUTE_MS);
    EXPECT(hooks_counted(DELIVERY_FAILED) == 2 && hooks_count == 12);
    hooks_receive(NULL); /* it has been mended */
    EXPECT(hooks_delivery(&job, NULL, 1, &d) == OK);
    const struct delivery_resend c = {
        .client = client, .id = d.id, .steady_us = store_steady_us(stage_store)};
    EXPECT(store_submit(&delivery_resend_class, &c, NULL, 0, NULL, actor_deadline_ms(1000)) == OK);
    hooks_settle(500);
    EXPECT(hooks_count == 13 && hooks_calls[12].attempt == 7 &&
           strcmp(hooks_calls[12].delivery, hooks_calls[0].delivery) == 0);
    EXPECT(hooks_delivery(&job, NULL, 1, &d) == OK && d.state == DELIVERY_DELIVERED);
}

static void test_a_dead_one_is_sent_again_with_its_id_O4(void)
{
    RUN(resend_body);
}

TEST_LIST
= {
    {"what is sent (JOB-053, JOB-080, AMB-J-43)", test_what_is_sent_JOB_053_JOB_080_AMB_J_43},
    {"signatures of the server and of a webhook (AMB-J-43, W6)",
     test_signatures_of_the_server_and_of_a_webhook_AMB_J_43_W6},
    {"what isn't 2xx is tried again (JOB-055, JOB-329, W2)",
     test_what_isnt_2xx_is_tried_again_JOB_055_JOB_329_W2},
    {"retries come to an end (JOB-056, JOB-330, JOB-411, JOB-422, JOB-423, JOB-428, JOB-446)",
     test_retries_come_to_an_end_JOB_056_JOB_330_JOB_411_JOB_422_JOB_423_JOB_428_JOB_446},
    {"timeout and retries are settings (JOB-446, JOB-451)",
     test_timeout_and_retries_are_settings_JOB_446_JOB_451},
    {"receivers that hang or are not there (JOB-054, JOB-326, JOB-328, JOB-336, JOB-359, W1)",
     test_receivers_that_hang_or_are_not_there_JOB_054_JOB_326_JOB_328_JOB_336_JOB_359_W1},
    {"Retry-After is obeyed", test_retry_after_is_obeyed},
    {"a host that asks for less gets less", test_a_host_that_asks_for_less_gets_less},
    {"410 ends it, and disables the webhook", test_410_ends_it_and_disables_the_webhook},
    {"a page that is too long hides no status", test_a_page_that_is_too_long_hides_no_status},
    {"a removed webhook gets nothing more (JOB-193)", test_a_removed_webhook_gets_nothing_more_JOB_193},
    {"a webhook that can't be read is damaged, and not removed",
     test_a_webhook_that_cannot_be_read_is_damaged_and_not_removed},
    {"a job that can't be read is damaged, and not gone",
     test_a_job_that_cannot_be_read_is_damaged_and_not_gone},
    {"what is ready for a removed webhook stays here (JOB-193)",
     test_what_is_ready_for_a_removed_webhook_stays_here_JOB_193},
    {"what waits for its turn is asked once more (JOB-193)",
     test_what_waits_for_its_turn_is_asked_once_more_JOB_193},
    {"a callback that became invalid is skipped (JOB-327)",
     test_a_callback_that_became_invalid_is_skipped_JOB_327},
    {"private addresses are failed attempts (AMB-J-61, W3)",
     test_private_addresses_are_failed_attempts_AMB_J_61_W3},
    {"events arrive in order per job and receiver (O3, AMB-J-43)",
     test_events_arrive_in_order_per_job_and_receiver_O3_AMB_J_43},
    {"receivers that hang are in nobody's way (JOB-057, W1)",
     test_receivers_that_hang_are_in_nobodys_way_JOB_057_W1},
    {"receivers of which nothing is known are in nobody's way (JOB-057, W1)",
     test_receivers_of_which_nothing_is_known_are_in_nobodys_way_JOB_057_W1},
    {"whatever dies, each event arrives, in order, with one id (O2, O3, O4, O5, W5)",
     test_whatever_dies_each_event_arrives_in_order_with_one_id_O2_O3_O4_O5_W5},
    {"trouble of our own is no attempt", test_trouble_of_our_own_is_no_attempt},
    {"when nothing can be sent it is said once", test_when_nothing_can_be_sent_it_is_said_once},
    {"an end of fetch is no attempt, but a crash is", test_an_end_of_fetch_is_no_attempt_but_a_crash_is},
    {"one host that hangs takes its share (JOB-329, JOB-330)",
     test_one_host_that_hangs_takes_its_share_JOB_329_JOB_330},
    {"one that waits behind others has all its time (JOB-329, JOB-330)",
     test_one_that_waits_behind_others_has_all_its_time_JOB_329_JOB_330},
    {"one that waits in vain is no attempt (JOB-329, JOB-330)",
     test_one_that_waits_in_vain_is_no_attempt_JOB_329_JOB_330},
    {"a clock that leaps changes no backoff (W5)", test_a_clock_that_leaps_changes_no_backoff_W5},
    {"one that can't be read holds its receiver up for nobody",
     test_one_that_cant_be_read_holds_its_receiver_up_for_nobody},
    {"one that can't be read while the store is away", test_one_that_cant_be_read_while_the_store_is_away},
    {"however many can't be read, their host gets the others",
     test_however_many_cant_be_read_their_host_gets_the_others},
    {"a store that is away holds results and repeats nothing",
     test_a_store_that_is_away_holds_results_and_repeats_nothing},
    {"a dead one is sent again with its id (O4)", test_a_dead_one_is_sent_again_with_its_id_O4},
    {NULL, NULL},
};
