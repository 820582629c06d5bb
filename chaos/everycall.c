/* everycall: the end of the process at every call by which the store changes a file, for each operation of the API (G6).
 *
 *     everycall POISONED COPPICE [--only WORD] [--dir D]
 *
 * POISONED is chaos/poisoned, which counts these calls, COPPICE the program whose `check` looks at the store. For each operation of the table below, with a
 * client of its own each time: what it needs is made, the n-th call from then on is where the process is killed, before the call and behind it, and
 * the operation is asked for; n = 1, 2, ... until an operation gets by without. After each end the server is started again:
 *
 *     answered      what was answered with success is there
 *     unknown       without an answer it is there wholly or not at all
 *     again         asked for once more it is there, and once, as far as that operation says so (keys, names, states)
 *     sound         `check` finds nothing
 *     reach         each operation has ended the process at least twice, and what had no answer was there at least once, and once wasn't
 *
 * The same for a store that is made, one that is opened, and a server that is stopped: those that start afterwards find everything.
 *
 * Controls, before: an operation whose effect is looked for where it isn't must be told of, and so must a repeat that does it twice.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chaos/host.h"

enum {
    CALLS_MAX = 1000, /* of one operation: more never end */
    LATER_TRIES = 2000,
    LAST_TRIES = 2000,
    SETTLE_US = 5000,
    SETTLE_TRIES = 200,
    TEXT = 1024,
    PAGES_MAX = 100, /* 20 rows each */
};
#define NO_ANSWER UINT32_MAX
#define OPERATOR  "operator" /* before a path of the operators' listener */

/* What there is before. */
enum before {
    BARE,
    NOTHING,
    KEYED,
    JOB,
    CLAIMED,
    FAILED,
    PAUSED,
    PRINCIPAL,
    WEBHOOK,
    WEBHOOK_OFF,
    SCHEDULE,
    SCHEDULE_OFF
};

struct deed {
    const char *name;
    enum before before;
    bool operator; /* the operators' listener */
    const char *method, *path, *body;
    int status;              /* when it is done */
    int again;               /* or this, when it is asked for again; 0: the same */
    bool later;              /* it is done soon after it was answered */
    bool twice;              /* asked for again it is done again */
    bool same;               /* it leaves the text as it was */
    bool gone;               /* it takes one away */
    const char *look, *text; /* once more than before behind it, or once less */
};

#define X_JOB "{\"work_kind\":\"x.echo\",\"payload\":1,\"idempotency_key\":\"k\"}"
#define LEASE "\"job_id\":\"{job}\",\"lease_token\":\"{token}\""
#define HOOK  "{\"url\":\"https://example.com/a\",\"events\":[\"*\"]}"
#define WHY   "\"reason\":\"a drill\""
#define REST  "{\"scope\":\"client\",\"client\":\"{client}\"," WHY "}"
#define WHO   "{\"name\":\"ci-{client}\",\"role\":\"service\",\"projects\":[\"p\"]," WHY "}"
#define PLAN  "{\"cron\":\"0 0 29 2 *\",\"name\":\"nightly\",\"work_kind\":\"SUCCESS_FAST\"}"

static const struct deed deeds[] = {
    {"client", NOTHING, false, "POST", "/v1/clients", "", 201, .twice = true, .same = true,
     .look = "/v1/jobs", .text = "\"items\":[]"},
    {"key", BARE, false, "POST", "/v1/clients/{client}/keys", "", 201, .again = 401, .twice = true,
     .look = "operator/clients/{client}", .text = "\"key_id\""},
    {"submit", NOTHING, false, "POST", "/v1/jobs",
     "{\"type\":\"EXECUTE\",\"work_kind\":\"SUCCESS_FAST\",\"idempotency_key\":\"k\"}", 202,
     .look = "/v1/jobs", .text = "\"job_id\""},
    {"work:submit", NOTHING, false, "POST", "/v1/work:submit", X_JOB, 202, .look = "/v1/jobs",
     .text = "\"job_id\""},
    {"cancel", JOB, false, "POST", "/v1/jobs/{job}/cancel", "", 200, .again = 409, .look = "/v1/jobs/{job}",
     .text = "\"state\":\"CANCELED\""},
    {"retry", FAILED, false, "POST", "/v1/jobs/{job}/retry", "", 200, .again = 409, .look = "/v1/jobs/{job}",
     .text = "\"state\":\"QUEUED\""},
    {"claim", JOB, false, "POST", "/v1/work:claim", "{\"work_kinds\":[\"x.echo\"]}", 200,
     .look = "/v1/jobs/{job}", .text = "\"state\":\"RUNNING\""},
    {"heartbeat", CLAIMED, false, "POST", "/v1/work:heartbeat", "{" LEASE ",\"progress\":0.5}", 200,
     .same = true, .look = "/v1/jobs/{job}", .text = "\"state\":\"RUNNING\""},
    {"complete", CLAIMED, false, "POST", "/v1/work:complete", "{" LEASE ",\"result\":{\"ok\":true}}", 200,
     .look = "/v1/jobs/{job}", .text = "\"state\":\"SUCCEEDED\""},
    {"fail", CLAIMED, false, "POST", "/v1/work:fail", "{" LEASE ",\"retryable\":false,\"message\":\"no\"}",
     200, .look = "/v1/jobs/{job}", .text = "\"state\":\"FAILED\""},
    {"bulk", JOB, false, "POST", "/v1/jobs:bulk",
     "{\"action\":\"cancel\",\"filter\":{\"states\":[\"QUEUED\"]}}", 202, .later = true,
     .look = "/v1/jobs/{job}", .text = "\"state\":\"CANCELED\""},
    {"webhook", NOTHING, false, "POST", "/v1/webhooks", HOOK, 201, .again = 409, .look = "/v1/webhooks",
     .text = "\"webhook_id\""},
    {"webhook:disable", WEBHOOK, false, "POST", "/v1/webhooks/{webhook}:disable", "", 200,
     .look = "/v1/webhooks", .text = "\"state\":\"disabled\""},
    {"webhook:enable", WEBHOOK_OFF, false, "POST", "/v1/webhooks/{webhook}:enable", "", 200,
     .look = "/v1/webhooks", .text = "\"state\":\"active\""},
    {"webhook:rotate", WEBHOOK, false, "POST", "/v1/webhooks/{webhook}:rotate", "", 200, .twice = true,
     .same = true, .look = "/v1/webhooks", .text = "\"state\":\"active\""},
    {"webhook delete", WEBHOOK, false, "DELETE", "/v1/webhooks/{webhook}", "", 200, .again = 404,
     .look = "/v1/webhooks", .text = "\"items\":[]"},
    {"schedule", NOTHING, false, "POST", "/v1/schedules", PLAN, 201, .twice = true, .look = "/v1/schedules",
     .text = "\"schedule_id\""},
    {"schedule:pause", SCHEDULE, false, "POST", "/v1/schedules/{schedule}:pause", "", 200,
     .look = "/v1/schedules", .text = "\"state\":\"paused\""},
    {"schedule:resume", SCHEDULE_OFF, false, "POST", "/v1/schedules/{schedule}:resume", "", 200,
     .look = "/v1/schedules", .text = "\"state\":\"active\""},
    {"schedule:run", SCHEDULE, false, "POST", "/v1/schedules/{schedule}:run", "", 200, .twice = true,
     .look = "/v1/jobs", .text = "\"job_id\""},
    {"schedule delete", SCHEDULE, false, "DELETE", "/v1/schedules/{schedule}", "", 200, .again = 404,
     .look = "/v1/schedules", .text = "\"items\":[]"},
    {"keys:issue", NOTHING, true, "POST", "/clients/{client}/keys:issue", "{" WHY "}", 201, .twice = true,
     .same = true, .look = "operator/clients/{client}", .text = "\"key_id\""},
    {"key renew", NOTHING, false, "POST", "/v1/clients/{client}/keys/renew", "", 200, .again = 403,
     .twice = true, .same = true, .look = "operator/clients/{client}", .text = "\"key_id\""},
    {"keys:revoke", KEYED, true, "POST", "/clients/{client}/keys:revoke", "{\"key_id\":\"{key}\"," WHY "}",
     200, .again = 409, .gone = true, .look = "operator/clients/{client}", .text = "\"key_id\""},
    {"pause", NOTHING, true, "POST", "/jobs:pause", REST, 200, .look = "operator/jobs/pauses?limit=20",
     .text = "\"scope\":\"client\""},
    {"resume", PAUSED, true, "POST", "/jobs:resume", REST, 200, .again = 404, .gone = true,
     .look = "operator/jobs/pauses?limit=20", .text = "\"scope\":\"client\""},
    {"principal", NOTHING, true, "POST", "/principals", WHO, 201, .again = 409,
     .look = "operator/principals?limit=20", .text = "\"role\""},
    {"principal:rotate", PRINCIPAL, true, "POST", "/principals/ci-{client}:rotate", "{" WHY "}", 200,
     .twice = true, .same = true, .look = "operator/principals?limit=20", .text = "\"role\""},
    {"principal:revoke", PRINCIPAL, true, "POST", "/principals/ci-{client}:revoke", "{" WHY "}", 200,
     .again = 404, .gone = true, .look = "operator/principals?limit=20", .text = "\"role\""},
    {"signing key", NOTHING, true, "POST", "/keys:rotate", "{" WHY "}", 201, .twice = true, .same = true,
     .look = "operator/keys", .text = "\"state\":\"active\""},
};
enum { DEEDS = sizeof(deeds) / sizeof(*deeds) };

static struct campaign {
    struct host host;
    const char *coppice;
    char client[64], key[64], job[64], token[64], webhook[64], schedule[64];
    uint64_t violations, ends, starts;
    uint64_t there, not_there; /* without an answer */
    bool aloud;
} c;

static const char *const options[] = {"--schedulers", "2", "--workers-count", "0", NULL};

static void complain(const struct deed *d, uint64_t n, const char *what)
{
    if (c.violations++ < 20 && c.aloud)
        printf("violation: %s, call %" PRIu64 ": %s; the last answer was %.200s\n", d->name, n, what,
               c.host.answer);
}

/* ---- one request ---- */

static void fill(const char *text, char *ret, size_t size)
{
    const struct {
        const char *name, *value;
    } words[] = {{"{client}", c.client}, {"{key}", c.key},         {"{job}", c.job},
                 {"{token}", c.token},   {"{webhook}", c.webhook}, {"{schedule}", c.schedule}};
    size_t used = 0;
    while (*text && used + 1 < size) {
        bool found = false;
        for (size_t i = 0; i < sizeof(words) / sizeof(*words) && !found; i++)
            if (strncmp(text, words[i].name, strlen(words[i].name)) == 0) {
                used += (size_t)snprintf(ret + used, size - used, "%s", words[i].value);
                text += strlen(words[i].name);
                found = true;
            }
        if (!found)
            ret[used++] = *text++;
    }
    ret[used < size ? used : size - 1] = 0;
}

static int ask(bool operator, const char * method, const char *path, const char *body)
{
    char filled_path[TEXT], filled_body[TEXT];
    fill(path, filled_path, sizeof(filled_path));
    fill(body, filled_body, sizeof(filled_body));
    return operator? host_ask_operator(&c.host, method, filled_path, filled_body)
                   : host_ask(&c.host, method, filled_path, "", filled_body);
}

static int do_it(const struct deed *d)
{
    return ask(d->operator, d->method, d->path, d->body);
}

static void need(bool done, const char *what)
{
    if (done)
        return;
    printf("%s: %.300s\n", what, c.host.answer);
    host_give_up("that isn't to be had");
}

/* Of an operators' list, which holds what all operations before this one have left: is there another page? */
static bool turn_page(const struct deed *d, char *path, size_t size)
{
    char next[TEXT / 2];
    bool more = host_field(&c.host, "next", next, sizeof(next));
    if (more)
        snprintf(path, size, "%s&after=%s", d->look + strlen(OPERATOR), next);
    return more;
}

/* How often the text stands there; NO_ANSWER. */
static uint32_t look(const struct deed *d)
{
    bool operator= strncmp(d->look, OPERATOR, strlen(OPERATOR)) == 0;
    char path[TEXT];
    uint32_t count = 0, pages = 0;
    snprintf(path, sizeof(path), "%s", d->look + (operator? strlen(OPERATOR) : 0));
    do {
        int status = ask(operator, "GET", path, "");
        if (status == 0)
            return NO_ANSWER;
        need(status == 200 && pages++ < PAGES_MAX, d->look);
        for (const char *at = c.host.answer; (at = strstr(at, d->text)) != NULL; at++)
            count++;
    } while (operator&& turn_page(d, path, sizeof(path)));
    return count;
}

/* What must stand there after it. */
static uint32_t behind_it(const struct deed *d, uint32_t before)
{
    return d->same ? before : d->gone ? before - 1 : before + 1;
}

static void make_job(void)
{
    need(ask(false, "POST", "/v1/work:submit", X_JOB) == 202 &&
             host_field(&c.host, "job_id", c.job, sizeof(c.job)),
         "a job");
}

static void claim_job(void)
{
    make_job();
    need(ask(false, "POST", "/v1/work:claim", "{\"work_kinds\":[\"x.echo\"]}") == 200 &&
             host_field(&c.host, "lease_token", c.token, sizeof(c.token)),
         "a lease");
}

static void prepare(enum before before)
{
    host_enrol(&c.host);
    if (before == BARE) {
        c.host.key[0] = 0;
        need(ask(false, "POST", "/v1/clients", "") == 201 &&
                 host_field(&c.host, "client_id", c.host.client, sizeof(c.host.client)),
             "a client");
    }
    snprintf(c.client, sizeof(c.client), "%s", c.host.client);
    if (before == KEYED)
        need(ask(true, "GET", "/clients/{client}", "") == 200 &&
                 host_field(&c.host, "key_id", c.key, sizeof(c.key)),
             "its key");
    if (before == PAUSED)
        need(ask(true, "POST", "/jobs:pause", REST) == 200, "a pause");
    if (before == PRINCIPAL)
        need(ask(true, "POST", "/principals", WHO) == 201, "a principal");
    if (before == JOB)
        make_job();
    if (before == CLAIMED || before == FAILED)
        claim_job();
    if (before == FAILED)
        need(ask(false, "POST", "/v1/work:fail", "{" LEASE ",\"retryable\":false,\"message\":\"no\"}") == 200,
             "a failed job");
    if (before == WEBHOOK || before == WEBHOOK_OFF)
        need(ask(false, "POST", "/v1/webhooks", HOOK) == 201 &&
                 host_field(&c.host, "webhook_id", c.webhook, sizeof(c.webhook)),
             "a webhook");
    if (before == WEBHOOK_OFF)
        need(ask(false, "POST", "/v1/webhooks/{webhook}:disable", "") == 200, "a webhook that rests");
    if (before == SCHEDULE || before == SCHEDULE_OFF)
        need(ask(false, "POST", "/v1/schedules", PLAN) == 201 &&
                 host_field(&c.host, "schedule_id", c.schedule, sizeof(c.schedule)),
             "a schedule");
    if (before == SCHEDULE_OFF)
        need(ask(false, "POST", "/v1/schedules/{schedule}:pause", "") == 200, "a schedule that rests");
}

/* ---- one end ---- */

static void start(void)
{
    atomic_store(&c.host.board->end_at, 0);
    host_start(&c.host, options);
    c.starts++;
}

static bool await(const struct deed *d, uint32_t count)
{
    for (uint32_t i = 0; i < (d->later ? LATER_TRIES : 1); i++) {
        uint32_t now = look(d);
        if (now == count || now == NO_ANSWER)
            return now == count;
        host_rest_us(5000);
    }
    return false;
}

/* In the server that was started again. */
static void judge(const struct deed *d, uint64_t n, int status, uint32_t before)
{
    uint32_t after = behind_it(d, before);
    if (status && !await(d, after))
        complain(d, n, "it was answered, and isn't there");
    uint32_t now = look(d);
    if (now != before && now != after)
        complain(d, n, "it is there in part");
    c.there += !status && !d->same && now == after;
    c.not_there += !status && !d->same && now == before;
    status = do_it(d);
    if (status != d->status && (!d->again || status != d->again))
        complain(d, n, "it is refused when it is asked for again");
    if (d->twice && !d->same && now == after && status == d->status)
        after++;
    if (!await(d, after))
        complain(d, n, "it isn't there once when it was asked for again");
}

/* What was asked for before may still be written: a key's last use, what a job's end leaves. */
static void settle(void)
{
    uint64_t before = UINT64_MAX, now = atomic_load(&c.host.board->calls);
    for (uint32_t i = 0; i < SETTLE_TRIES && now != before; i++) {
        before = now;
        host_rest_us(SETTLE_US);
        now = atomic_load(&c.host.board->calls);
    }
}

/* False: it came to its end without this call. */
static bool end_at(const struct deed *d, uint64_t n, uint64_t behind)
{
    struct board *b = c.host.board;
    int ended;
    prepare(d->before);
    uint32_t before = look(d);
    settle();
    atomic_store(&b->end_behind, behind);
    atomic_store(&b->end_at, atomic_load(&b->calls) + n);
    int status = do_it(d);
    if (status && status != d->status)
        complain(d, n, "it isn't answered as it should be");
    if (status && atomic_load(&b->calls) < atomic_load(&b->end_at) &&
        (!d->later || await(d, behind_it(d, before))) && atomic_exchange(&b->end_at, 0) != BOARD_ENDS)
        return false;
    if (!host_ended(&c.host, HOST_WAIT_MS, &ended) || !WIFSIGNALED(ended) || WTERMSIG(ended) != SIGKILL)
        complain(d, n, "the process didn't end at that call");
    c.ends++;
    host_end(&c.host, SIGKILL);
    start();
    judge(d, n, status, before);
    return true;
}

/* How many calls it took. */
static uint64_t end_at_each(const struct deed *d, uint64_t behind)
{
    uint64_t n = 1;
    while (n <= CALLS_MAX && end_at(d, n, behind))
        n++;
    return n;
}

/* That differs from time to time, and once it may have been few: the one behind which it is there is looked for among twice as many. */
static void end_at_some(const struct deed *d, uint64_t last, uint32_t try)
{
    (void)end_at(d, 1 + try % (2 * last), 1);
}

static void run(const struct deed *d)
{
    uint64_t ends = c.ends;
    c.there = c.not_there = 0;
    start();
    uint64_t last = 1;
    for (uint64_t behind = 0; behind < 2; behind++)
        last = end_at_each(d, behind);
    bool seen = !d->same && !d->later; /* what is done later isn't there yet when it is looked for */
    for (uint32_t i = 0; i < LAST_TRIES && seen && !c.there; i++)
        end_at_some(d, last, i);
    host_end(&c.host, SIGKILL);
    if (c.ends < ends + 2)
        complain(d, 0, "it never ended the process");
    if ((seen && !c.there) || (!d->same && !c.not_there))
        complain(d, 0, "of those that weren't answered none was there, or each");
    if (!host_sound(&c.host, c.coppice))
        complain(d, 0, "check finds something");
    printf("%-16s %4" PRIu64 " ends, without an answer it was there %" PRIu64 " times and not %" PRIu64 "\n",
           d->name, c.ends - ends, c.there, c.not_there);
}

/* ---- starts and stops ---- */

static const struct deed making = {.name = "a store is made"}, opening = {.name = "a store is opened"},
                         stopping = {.name = "a server stops"};

/* A job that was there before, or none yet. */
static void begin_again(const struct deed *d, uint64_t n)
{
    start();
    if (c.job[0] && ask(false, "GET", "/v1/jobs/{job}", "") != 200)
        complain(d, n, "what was there isn't any more");
    prepare(JOB);
    host_end(&c.host, SIGKILL);
    if (!host_sound(&c.host, c.coppice))
        complain(d, n, "check finds something");
}

static void run_starts(const struct deed *d, const char *parent)
{
    struct board *b;
    uint64_t ends = c.ends;
    bool reached = true;
    c.job[0] = 0;
    for (uint64_t n = 1; n <= 2 * CALLS_MAX && reached; n++) {
        if (d == &making) {
            const char *program = c.host.program;
            host_remove(&c.host);
            host_begin(&c.host, program, parent);
            c.job[0] = 0;
        }
        b = c.host.board;
        atomic_store(&b->calls, 0);
        atomic_store(&b->end_behind, (n - 1) % 2);
        atomic_store(&b->end_at, (n + 1) / 2);
        reached = !host_starts(&c.host, options);
        if (!reached && d == &stopping) {
            atomic_store(&b->end_at, atomic_load(&b->calls) + (n + 1) / 2);
            host_end(&c.host, SIGTERM);
            reached = atomic_load(&b->end_at) == BOARD_ENDS;
        } else if (!reached) {
            host_end(&c.host, SIGKILL);
        }
        c.ends += reached;
        begin_again(d, n);
    }
    if (c.ends < ends + 2)
        complain(d, 0, "it never ended the process");
    printf("%-16s %4" PRIu64 " ends\n", d->name, c.ends - ends);
}

/* ---- controls ---- */

static bool told_of(struct deed d)
{
    uint64_t before = c.violations;
    c.aloud = false;
    start();
    uint64_t last = end_at_each(&d, 1);
    for (uint32_t i = 0; i < LAST_TRIES && c.violations == before; i++)
        end_at_some(&d, last, i);
    host_end(&c.host, SIGKILL);
    c.aloud = true;
    bool told = c.violations > before;
    c.violations = before;
    c.ends = 0;
    return told;
}

static const struct deed *deed_of(const char *name)
{
    for (uint32_t i = 0; i < DEEDS; i++)
        if (strcmp(deeds[i].name, name) == 0)
            return &deeds[i];
    host_give_up(name);
}

/* A job that nobody asked for is looked for; and a schedule that is made twice counts as one that may not be. */
static uint32_t controls(void)
{
    struct deed elsewhere = *deed_of("submit"), doubled = *deed_of("schedule");
    elsewhere.text = "\"state\":\"CANCELED\"";
    doubled.twice = false;
    bool missed = told_of(elsewhere), counted = told_of(doubled);
    printf("control: what isn't there is missed: %s\n", missed ? "yes" : "NO");
    printf("control: what is there twice is told of: %s\n", counted ? "yes" : "NO");
    return (uint32_t)!missed + (uint32_t)!counted;
}

int main(int argc, char **argv)
{
    const char *dir = NULL, *only = "";
    for (int i = 3; i < argc; i++) {
        if (strcmp(argv[i], "--dir") == 0 && i + 1 < argc)
            dir = argv[++i];
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
            only = argv[++i];
        else
            return fprintf(stderr, "everycall: there is no option %s\n", argv[i]), 64;
    }
    if (argc < 3 || access(argv[1], X_OK) != 0 || access(argv[2], X_OK) != 0)
        return fprintf(stderr, "usage: everycall POISONED COPPICE [--only WORD] [--dir D]\n"), 64;
    setvbuf(stdout, NULL, _IOLBF, 0);
    c.coppice = argv[2];
    host_begin(&c.host, argv[1], dir);
    uint32_t missed = controls(), operations = 0;
    for (uint32_t i = 0; i < DEEDS; i++)
        if (strstr(deeds[i].name, only)) {
            run(&deeds[i]);
            operations++;
        }
    const struct deed *const others[] = {&opening, &stopping, &making};
    for (uint32_t i = 0; i < 3; i++)
        if (strstr(others[i]->name, only)) {
            run_starts(others[i], dir);
            operations++;
        }
    if (operations == 0)
        return fprintf(stderr, "everycall: no operation's name holds \"%s\"\n", only), 64;
    if (c.violations + missed)
        printf("the store and the log are in %s\n", c.host.dir);
    else
        host_remove(&c.host);
    printf("%u operations, the process ended at %" PRIu64 " calls: %" PRIu64 " of %" PRIu64
           " left anything wrong\n",
           operations, c.ends, c.violations, c.ends);
    printf("%u passed, %u failed\n", c.violations + missed ? 0u : 1u, c.violations + missed ? 1u : 0u);
    return c.violations + missed ? 1 : 0;
}
