/* Schedules over HTTP, handler by handler: what a run answers while others run, or remove, the same schedule. */
#define _GNU_SOURCE /* memmem */
#include "acutest.h"

#include <stdio.h>

#include "actors/jobs.h"
#include "http/schedules.h"
#include "store/client.h"
#include "store/job.h"
#include "tests/support/exchange.h"
#include "tests/support/stage.h"

enum { RUNS = 8 };
#define ONE "/v1/schedules/{schedule_id}"

static const struct uuid client = {{0xc0, 1}};
static char schedule[UUID_TEXT_SIZE];

static void run(uint64_t seed, void (*body)(void))
{
    struct stage stage = {.seed = seed};
    struct jobs_settings settings = jobs_defaults;
    jobs_configure(&settings);
    TEST_CHECK(stage_run(&stage, body) == 0);
}

static void ask(struct exchange *x, enum method method, const char *path, const char *body)
{
    exchange_begin(x, exchange_route(schedule_routes, schedule_routes_count, method, path), schedule, body);
    x->q.identity.kind = IDENTITY_CLIENT;
    x->q.identity.client = client;
    exchange_serve(x);
}

static bool says(const struct exchange *x, const char *text)
{
    return memmem(x->r.body, x->r.sink.length, text, strlen(text)) != NULL;
}

static void make_schedule(void)
{
    static struct exchange x;
    const struct client_create create = {.id = client};
    EXPECT(store_submit(&client_create_class, &create, NULL, 0, NULL, DEADLINE_NONE) == OK);
    ask(&x, METHOD_POST, "/v1/schedules",
        "{\"cron\":\"5 5 5 5 *\",\"name\":\"by hand\",\"work_kind\":\"x.a\"}");
    EXPECT(x.r.status == 201);
    snprintf(schedule, sizeof(schedule), "%s", exchange_member(&x, "schedule_id"));
}

static bool is_job(const char *text)
{
    struct uuid id;
    struct job job;
    struct key key;
    if (!uuid_parse(text, strlen(text), &id))
        return false;
    key = key_of_uuid(&id);
    struct view *view = view_open(stage_store);
    enum error e = txn_read(&view->txn, TABLE_JOBS, key_span(&key), &job);
    view_close(view);
    return e == OK;
}

static struct exchange runs[RUNS];
static char jobs[RUNS][UUID_TEXT_SIZE];

static void run_one(void *arg)
{
    size_t i = (uintptr_t)arg;
    ask(&runs[i], METHOD_POST, ONE ":run", "{}");
    snprintf(jobs[i], sizeof(jobs[i]), "%s", exchange_member(&runs[i], "last_job_id"));
}

static struct exchange removal;
static void remove_one(void *arg)
{
    (void)arg;
    ask(&removal, METHOD_DELETE, ONE, NULL);
    EXPECT(removal.r.status == 200);
}

static void begin_runs(actor_pid dolls[RUNS])
{
    for (size_t i = 0; i < RUNS;
         i++) /* on one scheduler: all of them are submitted before the writer has one */
        dolls[i] = stage_doll(SPAWN_ON(0), run_one, (void *)(uintptr_t)i);
}

/* Those that say a job: each one its own, and it is there. */
static size_t end_runs(actor_pid dolls[RUNS])
{
    size_t count = 0;
    for (size_t i = 0; i < RUNS; i++)
        (void)stage_ended(dolls[i]);
    for (size_t i = 0; i < RUNS; i++) {
        bool done = runs[i].r.status == 200;
        EXPECT(done ? is_job(jobs[i]) : runs[i].r.status == 404);
        for (size_t k = 0; done && k < i; k++)
            EXPECT(strcmp(jobs[i], jobs[k]) != 0);
        count += done;
    }
    return count;
}

static void at_once_body(void)
{
    static struct exchange x;
    actor_pid dolls[RUNS];
    (void)stage_writer();
    make_schedule();
    begin_runs(dolls);
    EXPECT(end_runs(dolls) == RUNS);
    ask(&x, METHOD_GET, ONE, NULL);
    EXPECT(x.r.status == 200 && strcmp(exchange_member(&x, "submitted"), "8") == 0);
    for (size_t i = 0; i < RUNS; i++) /* which one it was is in the schedule's history, as well */
        EXPECT(says(&x, jobs[i]) && says(&runs[i], "\"outcome\":\"by_hand\""));
}

static void test_each_run_says_which_job_is_its_own(void)
{
    run(1, at_once_body);
}

static uint64_t jobs_there(void)
{
    struct view *view = view_open(stage_store);
    uint64_t count = txn_rows(&view->txn, TABLE_JOBS);
    view_close(view);
    return count;
}

static size_t told;

/* Some come before it and some behind, as the seed has it. */
static void removed_body(void)
{
    actor_pid dolls[RUNS];
    (void)stage_writer();
    make_schedule();
    begin_runs(dolls);
    actor_pid remover = stage_doll(SPAWN_ON(0), remove_one, NULL);
    size_t done = end_runs(dolls);
    (void)stage_ended(remover);
    EXPECT(done == jobs_there());
    for (size_t i = 0; i < RUNS; i++)
        if (runs[i].r.status == 200)
            EXPECT(strcmp(exchange_member(&runs[i], "schedule_id"), schedule) == 0 &&
                   says(&runs[i], "\"by hand\"") && says(&runs[i], "\"cron\":\"5 5 5 5 *\"") &&
                   says(&runs[i], "\"x.a\""));
    told += done;
}

static void test_a_run_of_a_schedule_that_is_removed_meanwhile_says_its_job(void)
{
    told = 0;
    for (uint64_t seed = 1; seed <= 16; seed++)
        run(seed, removed_body);
    TEST_CHECK(told > 0);
}

TEST_LIST
= {
    {"schedules: each run says which job is its own", test_each_run_says_which_job_is_its_own},
    {"schedules: a run of a schedule that is removed meanwhile says its job",
     test_a_run_of_a_schedule_that_is_removed_meanwhile_says_its_job},
    {NULL, NULL},
};
