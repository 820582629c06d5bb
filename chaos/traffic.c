/* traffic: a simulator of the job API's clients, who know nothing of the server but the published contract.
 *
 *     traffic [--url http://HOST:PORT] [--rate N] [--jobs N] [--clients N] [--seed S] [--speed X] [--only KIND,...]
 *             [--json] [--help for the others]
 *
 * Clients are created and get their keys; jobs of all 31 work kinds, and some without a kind, are submitted at the rate.
 * Each has a partner that does what its kind needs (chaos/script.h): cancels it before or during its run, retries it once or
 * up to the limit, submits it again with the same key or another, receives its webhooks in a good, hanging, failing or slow
 * manner, schedules it for in a moment or for next year. Meanwhile the catalogue of refusals is gone through
 * (chaos/refusal.h), and what takes several requests to see (chaos/play.h).
 *
 * Every answer is looked at, and every job from outside: it ends as its kind must, with its report at first sight, its
 * events in an allowed sequence with increasing times, its deliveries in order and complete; in the end the lists hold
 * what was accepted and nothing else (chaos/verdict.h has all checks). The report says how often each check was made, and
 * how long things took. Status 0: nothing was wrong; 1: something was; 2: the run could not be made.
 *
 * One thread. The same seed makes the same choices; how the requests fall among each other is the machines'.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "chaos/brief.h"
#include "chaos/page.h"
#include "chaos/script.h"
#include "chaos/stage.h"
#include "chaos/verdict.h"

enum { SUBSCRIBERS = 2 }; /* callers with a registered webhook: one for all events, one for those of an end */

static struct {
    struct caller *callers;
    struct inbox *hooks[SUBSCRIBERS];
    char hook_ids[SUBSCRIBERS][64];
    int kinds[KIND_SORTS]; /* that are played */
    uint32_t kinds_count;
    uint64_t started, open, rounds;
    struct waiting changed;
    struct dice dice;
    uint64_t began, ended;
} run;

/* ---- which kinds ---- */

static bool named(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, name, length) == 0 && (at[length] == ',' || !at[length]))
            return true;
    return false;
}

static void choose_kinds(void)
{
    for (int i = 0; i < KIND_SORTS; i++) {
        bool hooked = strncmp(kind_name(i), "WEBHOOK_", 8) == 0;
        if ((brief.only ? named(brief.only, i == KIND_DRAWN ? "DRAWN" : kind_name(i)) : true) &&
            !(hooked && brief.no_webhooks))
            run.kinds[run.kinds_count++] = i;
    }
    if (!run.kinds_count) {
        fprintf(stderr, "traffic: --only: '%s' names no kind; they are", brief.only);
        for (int i = 0; i < KIND_COUNT; i++)
            fprintf(stderr, " %s", kind_name(i));
        fprintf(stderr, " DRAWN\n");
        exit(2);
    }
}

/* Each kind once, then any of them. */
static int next_kind(void)
{
    uint64_t number = run.started;
    return run.kinds[number < run.kinds_count ? number : dice_below(&run.dice, run.kinds_count)];
}

/* ---- clients ---- */

static void subscribe(uint32_t which)
{
    static const char *const names[SUBSCRIBERS] = {
        "[\"*\"]", "[\"job.succeeded\",\"job.failed\",\"job.timed_out\",\"job.canceled\"]"};
    static const uint32_t events[SUBSCRIBERS] = {EVENTS_ALL, 1u << EVENT_SUCCEEDED | 1u << EVENT_FAILED |
                                                                 1u << EVENT_TIMED_OUT |
                                                                 1u << EVENT_CANCELED};
    struct letter answer;
    char body[400];
    struct inbox *inbox = inbox_make(MANNER_GOOD, events[which]);
    snprintf(body, sizeof(body), "{\"url\":\"%s\",\"events\":%s}", inbox->url, names[which]);
    const struct call call = {
        .operation = TIME_REGISTER, .method = "POST", .path = "/v1/webhooks", .body = span_text(body)};
    int status = caller_call(&run.callers[which], &call, &answer);
    const struct page *page = status == 201 ? page_read(0, answer_body(&answer)) : NULL;
    if (VERDICT(HOOK_ALL,
                page && page_text(page, page_root(page), "webhook_id", run.hook_ids[which],
                                  sizeof(run.hook_ids[which])),
                "%s: %d %.300s", body, status, answer.body ? answer.body : ""))
        run.hooks[which] = inbox;
    letter_free(&answer);
}

static void unsubscribe(uint32_t which)
{
    char path[128];
    snprintf(path, sizeof(path), "/v1/webhooks/%s", run.hook_ids[which]);
    const struct call call = {.operation = TIME_UNREGISTER, .method = "DELETE", .path = path};
    int status = caller_status(&run.callers[which], &call);
    VERDICT(HOOK_ALL, status == 200, "DELETE %s: %d", path, status);
}

static uint32_t subscribers(void)
{
    uint32_t most = brief.clients < SUBSCRIBERS ? (uint32_t)brief.clients : SUBSCRIBERS;
    return brief.no_webhooks ? 0 : most;
}

static void enter_all(void)
{
    run.callers = calloc(brief.clients, sizeof(*run.callers));
    if (!run.callers)
        exit(2);
    for (uint64_t i = 0; i < brief.clients; i++)
        if (!caller_enter(&run.callers[i])) {
            fprintf(stderr, "traffic: %s gives no client and key\n", brief.url);
            exit(2);
        }
    for (uint32_t i = 0; i < subscribers(); i++)
        subscribe(i);
}

/* ---- jobs ---- */

static void play(void *arg)
{
    struct errand *e = arg;
    script_play(e);
    free(e);
    run.open--;
    strand_wake_all(&run.changed);
}

static void start_one(void)
{
    struct errand *e = calloc(1, sizeof(*e));
    if (!e)
        exit(2);
    uint32_t number = dice_below(&run.dice, (uint32_t)brief.clients);
    e->caller = &run.callers[number];
    e->stranger = &run.callers[(number + 1) % brief.clients];
    e->subscribed = number < SUBSCRIBERS ? run.hooks[number] : NULL;
    e->asked = next_kind();
    e->dice = dice_of(dice_draw(&run.dice));
    run.started++, run.open++;
    if (!strand_start(play, e)) {
        fprintf(stderr, "traffic: too many strands\n");
        exit(2);
    }
}

static void submit_all(void)
{
    uint64_t began = strand_now();
    while (run.started < brief.jobs) {
        uint64_t due = brief.rate ? began + run.started * NS_PER_S / brief.rate : 0;
        if (strand_now() < due)
            strand_sleep_until(due);
        if (run.open >= brief.open)
            tally(COUNT_HELD_BACK);
        while (run.open >= brief.open)
            (void)strand_wait(&run.changed, UINT64_MAX);
        start_one();
        if (!brief.rate && run.started % 16 == 0)
            strand_sleep(0); /* let the others have their turn */
    }
}

static void go_round(void *arg)
{
    (void)arg;
    for (uint64_t i = 0; i < brief.rounds; i++)
        stage_round(brief.seed + i);
    run.rounds--;
    strand_wake_all(&run.changed);
}

static void director(void *arg)
{
    (void)arg;
    inbox_listen();
    enter_all();
    run.began = strand_now();
    run.rounds = 1;
    (void)strand_start(go_round, NULL);
    submit_all();
    while (run.open > script_waiting() || run.rounds)
        (void)strand_wait(&run.changed, strand_now() + NS_PER_S);
    script_end();
    while (run.open)
        (void)strand_wait(&run.changed, UINT64_MAX);
    run.ended = strand_now();
    for (uint64_t i = 0; i < brief.clients; i++)
        book_judge_list(&run.callers[i]);
    book_judge_order();
    for (uint32_t i = 0; i < subscribers(); i++)
        if (run.hooks[i])
            unsubscribe(i);
    VERDICT(HOOK_ALL, lanes_left() == 0, "%u deliveries were of jobs that nobody knows", lanes_left());
    for (uint64_t i = 0; i < brief.clients; i++)
        caller_leave(&run.callers[i]);
    inbox_close_all();
}

/* ---- the report ---- */

static double seconds(void)
{
    return (double)(run.ended - run.began) / 1e9;
}

static void print_kinds(void)
{
    static const int finals[] = {STATE_SUCCEEDED, STATE_FAILED, STATE_CANCELED};
    printf("\n%-32s %8s %10s %8s %9s\n", "kind", "jobs", "succeeded", "failed", "canceled");
    for (int i = 0; i < KIND_SORTS; i++)
        if (book_count_of(i, -1)) {
            printf("%-32s %8llu", kind_name(i), (unsigned long long)book_count_of(i, -1));
            for (int f = 0; f < 3; f++)
                printf(" %*llu",
                       f == 0   ? 10
                       : f == 1 ? 8
                                : 9,
                       (unsigned long long)book_count_of(i, finals[f]));
            printf("\n");
        }
}

static void print_report(void)
{
    printf("%llu jobs in %.2f s, %llu requests, %llu deliveries; seed %llu\n",
           (unsigned long long)book_count(), seconds(), (unsigned long long)tally_requests(),
           (unsigned long long)tally_of(COUNT_DELIVERIES), (unsigned long long)brief.seed);
    print_kinds();
    verdict_print(stdout);
    tally_print(stdout);
    printf("\n%llu checks passed, %llu failed\n", (unsigned long long)verdict_passes(),
           (unsigned long long)verdict_failures());
}

static bool to_stdout(void *context, const char *bytes, size_t length)
{
    (void)context;
    return fwrite(bytes, 1, length, stdout) == length;
}

static void kinds_json(struct json *json)
{
    json_key(json, "kinds");
    json_array_begin(json);
    for (int i = 0; i < KIND_SORTS; i++) {
        json_object_begin(json);
        JSON_MEMBER(json, "kind", string, kind_name(i));
        JSON_MEMBER(json, "jobs", uint, book_count_of(i, -1));
        JSON_MEMBER(json, "succeeded", uint, book_count_of(i, STATE_SUCCEEDED));
        JSON_MEMBER(json, "failed", uint, book_count_of(i, STATE_FAILED));
        JSON_MEMBER(json, "canceled", uint, book_count_of(i, STATE_CANCELED));
        json_object_end(json);
    }
    json_array_end(json);
}

static void print_json(void)
{
    char buffer[4096];
    struct json_sink sink;
    struct json json;
    json_sink_init(&sink, buffer, sizeof(buffer), to_stdout, NULL);
    json_init(&json, &sink);
    json_object_begin(&json);
    JSON_MEMBER(&json, "url", string, brief.url);
    JSON_MEMBER(&json, "seed", uint, brief.seed);
    JSON_MEMBER(&json, "jobs", uint, book_count());
    JSON_MEMBER(&json, "seconds", double, seconds());
    JSON_MEMBER(&json, "requests", uint, tally_requests());
    JSON_MEMBER(&json, "passed", uint, verdict_passes());
    JSON_MEMBER(&json, "failed", uint, verdict_failures());
    kinds_json(&json);
    verdict_json(&json);
    tally_json(&json);
    json_object_end(&json);
    (void)json_end_line(&json);
}

int main(int argc, char **argv)
{
    struct rlimit files;
    brief_read(argc, argv);
    choose_kinds();
    signal(SIGPIPE, SIG_IGN);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max; /* a connection takes one, at either end */
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
    run.dice = dice_of(brief.seed);
    strands_open();
    (void)strand_start(director, NULL);
    strands_run();
    if (brief.json)
        print_json();
    else
        print_report();
    return verdict_failures() ? 1 : 0;
}
