/* What chaos/traffic judges by, tried on what is right and on what is wrong in one place: a check that can't fail proves
 * nothing. What it says on standard error of the wrong ones is part of it. */
#include "acutest.h"

#include <stdio.h>

#include "chaos/brief.h"
#include "chaos/kind.h"
#include "chaos/lane.h"
#include "chaos/signature.h"
#include "chaos/trail.h"
#include "chaos/verdict.h"
#include "store/work_kind.h"

#define JOB    "0190f5e2-6b1c-7a53-9f6e-2d1f0a7c4b11"
#define EVENT_ "0190f5e2-6b1c-7a53-9f6e-0000000000"

static struct trodden job = {.kind = KIND_FAIL_AFTER_PROGRESS, .created_ms = 1000};
static struct trail trail;

static uint64_t failures_of(const char *events)
{
    uint64_t before = verdict_failures();
    const struct page *page = page_read(0, span_text(events));
    TEST_ASSERT(page && uuid_parse(JOB, 36, &job.job));
    if (trail_read(page, page_root(page), &job, &trail))
        trail_judge_times(&trail, &job);
    return verdict_failures() - before;
}

/* One event; `more`: what its payload has besides the scenario. */
#define E(n, name, prev, next, at, more)                                                                     \
    "{\"event_id\":\"" EVENT_ n "\",\"job_id\":\"" JOB "\",\"event_name\":\"" name "\",\"prev_state\":" prev \
    ",\"next_state\":\"" next "\",\"timestamp\":\"1970-01-01T00:00:" at "Z\",\"payload\":{\"scenario\":"     \
    "\"FAIL_AFTER_PROGRESS\"" more "}}"

#define BEGUN                                                                                            \
    "[" E("01", "job.created", "null", "CREATED", "01.000", "") "," E("02", "job.queued", "\"CREATED\"", \
                                                                      "QUEUED", "01.001", "") ","
#define TO_RUN                                                      \
    E("03", "job.assigned", "\"QUEUED\"", "ASSIGNED", "01.002", "") \
    "," E("04", "job.running", "\"ASSIGNED\"", "RUNNING", "01.003", "") ","
#define FAILURE       ",\"reason\":\"SIMULATED_FAILURE\",\"retryable\":false,\"progress\":0.5"
#define END(at, more) E("05", "job.failed", "\"RUNNING\"", "FAILED", at, more) "]"

static void test_trails_JOB_291(void)
{
    brief.speed = 1;
    TEST_CHECK(failures_of(BEGUN TO_RUN END("21.003", FAILURE)) == 0);
    TEST_CHECK(trail.count == 5 && trail.attempts == 1);
    TEST_CHECK(failures_of(BEGUN TO_RUN END("20.998", FAILURE)) >
               0); /* 5 ms too early, of which 4 may be raised */
    TEST_CHECK(failures_of(BEGUN TO_RUN END("20.999", FAILURE)) == 0);
    TEST_CHECK(failures_of(BEGUN TO_RUN END("25.003", FAILURE)) > 0); /* too late */
    TEST_CHECK(
        failures_of(BEGUN TO_RUN END("21.003", ",\"reason\":\"SIMULATED_FAILURE\",\"retryable\":false")) > 0);
    TEST_CHECK(failures_of(BEGUN TO_RUN END("21.003", FAILURE ",\"final\":true,\"retries_exhausted\":true")) >
               0);
    TEST_CHECK(failures_of(BEGUN TO_RUN END("21.003", ",\"reason\":\"RUNNER_LOST\"")) > 0);
    TEST_CHECK(failures_of(BEGUN END("21.003", FAILURE)) > 0); /* it never ran */
    TEST_CHECK(failures_of(BEGUN TO_RUN TO_RUN END("21.003", FAILURE)) > 0);
    TEST_CHECK(failures_of("[" TO_RUN END("21.003", FAILURE)) > 0);
    TEST_CHECK(failures_of("[]") > 0);
    /* Two events of one instant. */
    TEST_CHECK(failures_of("[" E("01", "job.created", "null", "CREATED", "01.000", "") "," E(
                   "02", "job.queued", "\"CREATED\"", "QUEUED", "01.000", "") "]") > 0);
    /* The name of another change. */
    TEST_CHECK(failures_of("[" E("01", "job.created", "null", "CREATED", "01.000", "") "," E(
                   "02", "job.retried", "\"CREATED\"", "QUEUED", "01.001", "") "]") > 0);
    /* One id for two. */
    TEST_CHECK(failures_of("[" E("01", "job.created", "null", "CREATED", "01.000", "") "," E(
                   "01", "job.queued", "\"CREATED\"", "QUEUED", "01.001", "") "]") > 0);
}

static void test_scheduled_JOB_261(void)
{
    job.execution_ms = 1002;
    TEST_CHECK(failures_of(BEGUN TO_RUN END("21.003", FAILURE)) == 1); /* queued at 1001 */
    job.execution_ms = 1001;
    TEST_CHECK(failures_of(BEGUN TO_RUN END("21.003", FAILURE)) == 0);
    job.execution_ms = 0;
}

/* ---- deliveries ---- */

static struct event event_at(uint64_t at_ms, uint8_t name)
{
    struct event event = {.at_ms = at_ms, .name = name, .print = at_ms};
    memcpy(event.id.bytes, &at_ms, sizeof(at_ms));
    return event;
}

static uint64_t failures_of_take(struct lane *lane, const struct event *event, uint64_t attempt)
{
    uint64_t before = verdict_failures();
    lane_take(lane, event, &event->id, attempt, false);
    return verdict_failures() - before;
}

static void test_lanes_JOB_184(void)
{
    struct event created = event_at(1, EVENT_CREATED), queued = event_at(2, EVENT_QUEUED), other = created;
    struct lane *lane = lane_of(&job.job, 1);
    TEST_CHECK(lane_of(&job.job, 1) == lane && lane_of(&job.job, 2) != lane && lanes_left() == 2);
    TEST_CHECK(failures_of_take(lane, &created, 1) == 0);
    TEST_CHECK(failures_of_take(lane, &queued, 1) == 1); /* while the first is open */
    lane_drop(&job.job, 1);
    lane = lane_of(&job.job, 1);
    TEST_CHECK(failures_of_take(lane, &created, 1) == 0);
    lane_answer(&job.job, 1, &created.id, 500);
    TEST_CHECK(failures_of_take(lane, &created, 3) == 1); /* the second is missing */
    other.print++;
    TEST_CHECK(failures_of_take(lane, &other, 4) == 1); /* it isn't the same */
    lane_answer(&job.job, 1, &created.id, 200);
    TEST_CHECK(failures_of_take(lane, &queued, 1) == 0);
    lane_answer(&job.job, 1, &queued.id, 202);
    TEST_CHECK(failures_of_take(lane, &created, 5) == 1); /* after a later one */
    TEST_CHECK(failures_of_take(lane, &queued, brief.hook_retries + 2) ==
               2); /* beyond the limit, and out of turn */
    lane_drop(&job.job, 1);
    lane_drop(&job.job, 2);
    TEST_CHECK(lanes_left() == 0);
}

/* ---- what it knows without asking ---- */

static void test_signature_JOB_184(void)
{
    static const char secret[] = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
                      id[] = "msg_p5jXN8AQM9LWM0D4loKWxJek";
    struct span body = span_text("{\"test\": 2432232314}");
    static const char good[] = "v1a,x v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
    TEST_CHECK(signature_good(secret, id, "1614265330", body, good));
    TEST_CHECK(!signature_good(secret, id, "1614265331", body, good));
    TEST_CHECK(!signature_good(secret, "msg", "1614265330", body, good));
    TEST_CHECK(!signature_good(secret, id, "1614265330", span_text("{}"), good));
    TEST_CHECK(!signature_good(secret, id, "1614265330", body, ""));
}

static void test_drawn_kinds_JOB_026(void)
{
    struct work_definition definition;
    for (uint64_t ms = 1790000000000; ms < 1790000100000; ms++) {
        TEST_ASSERT(work_definition_draw(ms, (uint32_t)brief.fail_ppm, (uint32_t)brief.payload_max,
                                         (uint32_t)brief.runtime_ms, &definition));
        int kind = kind_drawn_at(ms);
        TEST_ASSERT(kind >= 0 && strcmp(kind_name(kind), work_kind_row(definition.kind)->name) == 0);
        TEST_ASSERT(kind_duration_ms(kind) == definition.duration_ms &&
                    kind_row(kind)->payload == definition.payload_bytes);
    }
}

static void test_catalogue_JOB_065(void)
{
    TEST_CHECK(KIND_COUNT == WORK_KINDS_COUNT);
    for (size_t i = 0; work_kind_each(i); i++) {
        const struct work_kind_row *row = work_kind_each(i);
        int kind = kind_of(row->name);
        TEST_CHECK_(kind == (int)i, "%s", row->name);
        TEST_CHECK(kind_row(kind)->payload == row->payload_bytes && kind_row(kind)->outputs == row->outputs &&
                   kind_row(kind)->progress == row->progress_percent);
    }
}

static void test_times_JOB_259(void)
{
    uint64_t ms;
    TEST_CHECK(time_parse("1970-01-01T00:00:00Z", &ms) && ms == 0);
    TEST_CHECK(time_parse("2026-11-19T02:18:41.213Z", &ms) && ms == 1795054721213);
    TEST_CHECK(time_parse("2024-02-29T23:59:59.5Z", &ms) && ms == 1709251199500);
    TEST_CHECK(time_parse("2000-03-01T00:00:00.000999Z", &ms) && ms == 951868800000);
    static const char *const wrong[] = {"2026-11-19T02:18:41",  "2026-11-19T02:18:41+00:00",
                                        "2026-11-19 02:18:41Z", "2026-13-19T02:18:41Z",
                                        "2026-1-19T02:18:41Z",  "",
                                        "2026-11-19T24:00:00Z"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        TEST_CHECK_(!time_parse(wrong[i], &ms), "%s", wrong[i]);
}

static void test_prints_JOB_017(void)
{
    static const char *const except[] = {"c", NULL};
    const struct page *one = page_read(0, span_text("{\"a\":1,\"b\":[1,2],\"c\":3}"));
    const struct page *two = page_read(1, span_text("{\"b\":[1,2],\"a\":1}"));
    TEST_CHECK(page_print(one, page_root(one), except) == page_print(two, page_root(two), NULL));
    TEST_CHECK(page_print(one, page_root(one), NULL) != page_print(two, page_root(two), NULL));
    two = page_read(1, span_text("{\"b\":[2,1],\"a\":1}"));
    TEST_CHECK(page_print(one, page_root(one), except) != page_print(two, page_root(two), NULL));
    TEST_CHECK(!page_read(1, span_text("{\"b\":")));
}

TEST_LIST
= {{"trails_JOB_291", test_trails_JOB_291},
   {"scheduled_JOB_261", test_scheduled_JOB_261},
   {"lanes_JOB_184", test_lanes_JOB_184},
   {"signature_JOB_184", test_signature_JOB_184},
   {"drawn_kinds_JOB_026", test_drawn_kinds_JOB_026},
   {"catalogue_JOB_065", test_catalogue_JOB_065},
   {"times_JOB_259", test_times_JOB_259},
   {"prints_JOB_017", test_prints_JOB_017},
   {NULL, NULL}};
