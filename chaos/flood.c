#include "chaos/flood.h"

#include <stdlib.h>
#include <string.h>

#include "chaos/brief.h"
#include "chaos/page.h"
#include "chaos/play.h"
#include "chaos/problem.h"
#include "chaos/stage.h"
#include "chaos/verdict.h"

enum { STREAMS = 8 }; /* that flow at one time */

/* What a refusal says of the limit. */
static void read_limit(const struct letter *answer, char room[40])
{
    const struct page *page = page_read(0, answer_body(answer));
    room[0] = 0;
    if (page)
        (void)page_text(page, page_root(page), "limit", room, 40);
}

/* ---- requests ---- */

struct flood {
    struct caller *caller;
    const struct call *call;
    uint64_t left;
    uint32_t running, served, limited, other;
    char limit[40];
    struct waiting done;
};

static void stream(void *arg)
{
    struct flood *flood = arg;
    while (flood->left && !flood->limited) {
        struct letter answer;
        flood->left--;
        int status = caller_call(flood->caller, flood->call, &answer);
        if (status == 429)
            read_limit(&answer, flood->limit);
        flood->limited += status == 429;
        flood->other += status != 429 && (status < 200 || status >= 300);
        flood->served += status >= 200 && status < 300;
        letter_free(&answer);
    }
    if (--flood->running == 0)
        strand_wake_all(&flood->done);
}

/* As many as fit, and then one that doesn't. The limit comes back within a minute, so twice as many are enough for whoever
 * asks faster than that. `used`: what the caller has had of it before. */
static void flood_requests(const char *name, struct caller *caller, const struct call *call, uint64_t limit,
                           const char *limit_name, uint64_t used)
{
    struct flood flood = {.caller = caller, .call = call, .left = limit * 2 + 16};
    for (uint32_t i = 0; i < STREAMS; i++)
        flood.running += strand_start(stream, &flood);
    while (flood.running && strand_wait(&flood.done, UINT64_MAX))
        ;
    VERDICT_CASE(name,
                 flood.limited && !flood.other && flood.served + used >= limit &&
                     strcmp(flood.limit, limit_name) == 0,
                 "%u were served, %u limited as '%s', %u neither, of a limit of %llu", flood.served,
                 flood.limited, flood.limit, flood.other, (unsigned long long)limit);
}

static bool has_no_jobs(struct caller *caller)
{
    struct letter answer;
    const struct call call = {.operation = TIME_LIST, .method = "GET", .path = "/v1/jobs"};
    int status = caller_call(caller, &call, &answer);
    const struct page *page = status == 200 ? page_read(0, answer_body(&answer)) : NULL;
    const struct json_node *items = page ? page_member(page, page_root(page), "items") : NULL;
    bool none = page_is(items, JSON_ARRAY) && items->count == 0;
    letter_free(&answer);
    return none;
}

static void flood_client(void)
{
    static const char body[] = "{\"type\":\"EXECUTE\",\"work_kind\":\"SUCCESS_FAST\"}";
    const struct call call = {
        .operation = TIME_LIST, .method = "GET", .path = "/v1/jobs?limit=1", .as_it_is = true};
    const struct call submit = {.operation = TIME_SUBMIT,
                                .method = "POST",
                                .path = "/v1/jobs",
                                .as_it_is = true,
                                .body = span_text(body)};
    struct caller caller;
    if (!caller_enter(&caller))
        return;
    flood_requests("JOB-331 JOB-345 JOB-441 beyond the limit of a client", &caller, &call, brief.per_minute,
                   "requests_per_minute", 1);
    if (caller_status(&caller, &submit) == 429)
        VERDICT_CASE("JOB-331 JOB-144 a submit beyond the limit", has_no_jobs(&caller), "it was stored");
    caller_leave(&caller);
}

static void flood_address(void)
{
    const struct call call = {
        .operation = TIME_CREATE_CLIENT, .method = "POST", .path = "/v1/clients", .as_it_is = true};
    struct caller caller;
    caller_init(&caller);
    flood_requests("JOB-345 beyond the limit of an address", &caller, &call, brief.anonymous, "anonymous", 0);
    caller_leave(&caller);
}

/* ---- jobs ---- */

struct fill {
    struct stage *stage;
    struct dice *dice;
    const char *name, *code, *limit;
    int status;
    uint64_t left, accepted;
    uint32_t running;
    bool full;
    struct waiting done;
};

/* One more job, of a kind that stays for long; NULL: there is no room. */
static struct errand *add(struct fill *fill, struct caller *caller)
{
    static const char body[] = "{\"type\":\"EXECUTE\",\"work_kind\":\"RUNS_LONG\"}";
    const struct call call = {.operation = TIME_SUBMIT,
                              .method = "POST",
                              .path = "/v1/jobs",
                              .as_it_is = true,
                              .body = span_text(body)};
    struct letter answer;
    char code[PROBLEM_CODE_SIZE], limit[40];
    struct errand *e = play_errand(fill->stage, KIND_RUNS_LONG, fill->dice);
    e->caller = caller;
    int status = caller_call(caller, &call, &answer);
    bool taken = status == 202 && errand_adopt(e, &answer);
    if (taken) {
        fill->accepted++;
    } else {
        problem_code(&answer, code);
        read_limit(&answer, limit);
        VERDICT_CASE(fill->name,
                     status == fill->status && strcmp(code, fill->code) == 0 &&
                         strcmp(limit, fill->limit) == 0,
                     "%d %s '%s'", status, code, limit);
        fill->full = true;
        free(e);
    }
    letter_free(&answer);
    return taken ? e : NULL;
}

/* Fills up its share, waits for the others, and takes it back. */
static void pour(void *arg)
{
    struct fill *fill = arg;
    struct caller caller;
    bool entered = caller_enter(&caller);
    uint64_t room = fill->left / STREAMS, count = 0;
    struct errand **mine = calloc(room, sizeof(struct errand *)), *e;
    if (!mine)
        exit(2);
    while (entered && !fill->full && count < room && (e = add(fill, &caller)))
        mine[count++] = e;
    for (uint64_t i = 0; i < count; i++) {
        if (errand_cancel(mine[i]) != STATE_NONE && errand_look(mine[i]))
            errand_judge(mine[i]);
        errand_end(mine[i]);
        free(mine[i]);
    }
    free(mine);
    if (entered) /* what was refused isn't there */
        book_judge_list(&caller);
    caller_leave(&caller);
    if (--fill->running == 0)
        strand_wake_all(&fill->done);
}

static void flood_jobs(struct stage *stage, struct dice *dice, struct fill fill, uint64_t limit)
{
    fill.stage = stage, fill.dice = dice, fill.left = limit * 2 + STREAMS;
    for (uint32_t i = 0; i < STREAMS; i++)
        fill.running += strand_start(pour, &fill);
    while (fill.running && strand_wait(&fill.done, UINT64_MAX))
        ;
    VERDICT_CASE(fill.name, fill.full, "%llu jobs were taken, and the limit is %llu",
                 (unsigned long long)fill.accepted, (unsigned long long)limit);
}

void flood_all(struct stage *stage, struct dice *dice)
{
    if (brief.per_minute)
        flood_client();
    if (brief.anonymous && brief.loopback)
        flood_address();
    if (brief.queue_size)
        flood_jobs(stage, dice,
                   (struct fill){.name = "JOB-312 JOB-334 JOB-353 JOB-443 beyond the queue",
                                 .status = 503,
                                 .code = "RFA_EXEC_QUEUE_FULL",
                                 .limit = "max_queue_size"},
                   brief.queue_size);
    if (brief.active_jobs)
        flood_jobs(stage, dice,
                   (struct fill){.name = "JOB-333 JOB-442 beyond the active jobs",
                                 .status = 429,
                                 .code = "RFA_REQUEST_RATE_LIMITED",
                                 .limit = "max_active_jobs"},
                   brief.active_jobs);
}
