/* Spans of jobs, one by one: whose trace they are in, what they are below, and what happens when there is nobody to have them, when
 * nobody wants them sampled, and when they can't be made. */
#include "acutest.h"

#include "actors/job_spans.h"
#include "store/job_submit.h"
#include "tests/support/stage.h"

static const struct uuid client = {{0xc1, [15] = 1}};

static void run(void (*body)(void))
{
    jobs_configure(&jobs_defaults);
    TEST_CHECK(stage_run(&(struct stage){.real = false}, body) == 0);
}

/* ---- who gets them ---- */

static struct got {
    struct job_span span;
    char job[64];
} got[16];
static uint32_t count;

static void take(const struct job_span *span)
{
    EXPECT(count < sizeof(got) / sizeof(*got));
    got[count].span = *span;
    EXPECT(strcmp(span->attributes[0].key, "job_id") == 0);
    snprintf(got[count++].job, sizeof(got[0].job), "%s", span->attributes[0].text);
}

#define SAMPLED   "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
#define UNSAMPLED "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
static const uint8_t trace_id[16] = {0x0a, 0xf7, 0x65, 0x19, 0x16, 0xcd, 0x43, 0xdd,
                                     0x84, 0x48, 0xeb, 0x21, 0x1c, 0x80, 0x31, 0x9c};
static const uint8_t request[8] = {0xb7, 0xad, 0x6b, 0x71, 0x69, 0x20, 0x33, 0x31};

static void submit(uint64_t number, const char *trace)
{
    struct jobs_settings s = jobs_settings();
    struct job_submit c = {.id = stage_id(number),
                           .client = client,
                           .type = JOB_EXECUTE,
                           .kind = WORK_KIND_SUCCESS_FAST,
                           .trace = span_text(trace),
                           .runtime_max_ms = s.runtime_max_ms,
                           .payload_max = s.payload_max,
                           .queue_max = s.queue_max};
    EXPECT(store_submit(&job_submit_class, &c, NULL, 0, NULL, actor_deadline_ms(60000)) == OK);
}

static void note(uint64_t number, enum job_event event, uint16_t attempt, uint64_t us,
                 const struct job_link *link)
{
    count = 0;
    job_spans_note(&(struct job_told){.id = stage_id(number),
                                      .client = client,
                                      .event = (uint8_t)event,
                                      .to = job_state_after((uint8_t)event),
                                      .kind = WORK_KIND_SUCCESS_FAST,
                                      .attempt = attempt,
                                      .waited_us = us,
                                      .ran_us = us,
                                      .link = link});
}

static bool is(uint32_t at, const char *name, const uint8_t parent[8])
{
    return at < count && strcmp(got[at].span.name, name) == 0 &&
           memcmp(got[at].span.trace_id, trace_id, sizeof(trace_id)) == 0 &&
           memcmp(got[at].span.parent_id, parent, 8) == 0 && memcmp(got[at].span.span_id, parent, 8) != 0;
}

static void keep(uint8_t ret[8])
{
    memcpy(ret, got[0].span.span_id, 8);
}

static uint64_t lasted(uint32_t at)
{
    return got[at].span.ended_ns - got[at].span.began_ns;
}

/* ---- the spans of a life ---- */

static void life_body(void)
{
    uint8_t submitted[8], ran[8], retried[8];
    struct job_link link = {.trace_id = {7}, .span_id = {8}};
    (void)stage_writer();
    submit(1, SAMPLED);
    (void)actor_sleep(actor_deadline_ms(5000));
    job_spans_to(take);
    note(1, JOB_CREATE, 1, 0, NULL);
    EXPECT(count == 1 && is(0, "job.submit", request) && lasted(0) == 0);
    keep(submitted);
    note(1, JOB_ENQUEUE, 1, 0, NULL);
    EXPECT(count == 1 && is(0, "job.enqueue", submitted));
    note(1, JOB_ASSIGN, 1, 2000000, NULL);
    EXPECT(count == 1 && is(0, "job.assign", submitted) && lasted(0) == 2 * NS_PER_S);
    note(1, JOB_START, 1, 0, NULL);
    EXPECT(count == 0); /* its span ends when it does */
    note(1, JOB_FAIL, 1, 1000000, NULL);
    EXPECT(count == 2 && is(0, "job.run", submitted) && got[0].span.failed && lasted(0) == NS_PER_S);
    keep(ran);
    EXPECT(is(1, "job.report", ran));
    note(1, JOB_RETRY, 2, 0, &link);
    EXPECT(count == 2 && is(0, "job.retry", submitted) && got[0].span.link == &link);
    keep(retried);
    EXPECT(is(1, "job.enqueue", retried) && !got[1].span.link);
    note(1, JOB_ASSIGN, 2, 0, NULL);
    EXPECT(count == 1 && is(0, "job.assign", retried));
    note(1, JOB_SUCCEED, 2, UINT64_MAX, NULL); /* longer than there was time */
    EXPECT(count == 2 && is(0, "job.run", retried) && !got[0].span.failed && got[0].span.began_ns == 0);
    note(1, JOB_CANCEL, 2, 0, &link);
    EXPECT(count == 2 && is(0, "job.cancel", retried) && got[0].span.link == &link);
    keep(ran);
    EXPECT(is(1, "job.report", ran));
    job_spans_to(NULL);
}

static void test_a_life_JOB_436_JOB_437_JOB_439(void)
{
    run(life_body);
}

/* ---- and who doesn't get them ---- */

static void nothing_body(void)
{
    struct view *views[VIEWS_PER_LANE];
    (void)stage_writer();
    submit(1, SAMPLED);
    submit(2, UNSAMPLED);
    submit(3, "");
    note(1, JOB_CREATE, 1, 0, NULL); /* nobody is there */
    EXPECT(count == 0);
    job_spans_to(take);
    note(2, JOB_CREATE, 1, 0, NULL);
    EXPECT(count == 0);
    note(3, JOB_CREATE, 1, 0, NULL);
    EXPECT(count == 0);
    note(4, JOB_CREATE, 1, 0, NULL); /* no such job */
    EXPECT(count == 0 && job_spans_lost() == 0);
    for (size_t i = 0; i < VIEWS_PER_LANE; i++)
        views[i] = view_open(stage_store);
    note(1, JOB_CREATE, 1, 0, NULL);
    EXPECT(count == 0 && job_spans_lost() == 1);
    for (size_t i = 0; i < VIEWS_PER_LANE; i++)
        view_close(views[i]);
    note(1, JOB_CREATE, 1, 0, NULL);
    EXPECT(count == 1 && job_spans_lost() == 1);
    job_spans_to(NULL);
}

static void test_none_where_none_are_wanted_or_can_be_made(void)
{
    run(nothing_body);
}

TEST_LIST
= {
    {"spans: of a job's life (JOB-436, JOB-437, JOB-439)", test_a_life_JOB_436_JOB_437_JOB_439},
    {"spans: none where none are wanted or can be made", test_none_where_none_are_wanted_or_can_be_made},
    {NULL, NULL},
};
