/* Jobs and time: how soon one is done, how late those are that have a time, and how fast others are told.
 *
 * done_p50, done_p99: from the submit of a no-op, with `Prefer: wait`, to the answer that says SUCCEEDED, one every ten milliseconds
 * unless the one before takes longer. done_polled_p50, done_polled_p99: to the first GET that says so; the GETs go back to back, so what
 * one of them takes is in it, and the server has them to answer meanwhile.
 *
 * due_p99: 1,000 deferred jobs with one and the same time (the contract knows whole seconds): from execution_at to the time of
 * their event job.queued; due_early: how many of them were queued before it.
 *
 * webhooks: deliveries per second to one receiver, all events of 1,000 jobs that are no-ops, from the first submit to the last
 * delivery. webhooks_100: the same to 100 receivers, of which only 90 are counted; webhooks_hung.ratio: that rate while the
 * other ten accept connections and never answer, by the rate while they do.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "tests/bench/bench.h"
#include "tests/bench/jobserver.h"
#include "tests/bench/limits.h"
#include "tests/bench/receivers.h"

#define TURNS         5
#define WORKERS       64u
#define DONE_RATE     100u
#define DONE_JOBS     60u
#define DUE_JOBS      1000u
#define DUE_CLIENTS   256u
#define DUE_AHEAD     2200 /* ms from now to their second, at most */
#define DUE_AFTER     200
#define DUE_LATEST    10000
#define HOOK_JOBS     1000u
#define HOOK_EVENTS   5u /* created, queued, assigned, running, succeeded */
#define HOOK_FIRST_NS (3 * NS_PER_S)
#define RECEIVERS     100u
#define SILENT        10u
#define GIVE_UP_NS    (20 * NS_PER_S)

static struct jobserver server;

/* ---- done ---- */

static void expect(const struct asker *a, int status, int wanted)
{
    if (status != wanted)
        bench_fail("status %d instead of %d: %s", status, wanted, a->body);
}

/* How many ms it takes. */
typedef double do_one(struct asker *a);

static const char no_op[] = "{\"type\":\"EXECUTE\",\"work_kind\":\"SUCCESS_FAST\"}";

static double do_waiting(struct asker *a)
{
    char state[32] = "";
    uint64_t began = bench_now();
    a->more = "Prefer: wait=20\r\n";
    expect(a, asker_ask(a, "POST", "/v1/jobs", server.keys[0], no_op), 200);
    if (!asker_member(a, "state", state, sizeof state) || strcmp(state, "SUCCEEDED") != 0)
        bench_fail("it isn't done: %s", a->body);
    return (double)(bench_now() - began) / 1e6;
}

static double do_polling(struct asker *a)
{
    char id[64], path[128], state[32] = "";
    const char *key = server.keys[0];
    uint64_t began = bench_now();
    a->more = NULL;
    expect(a, asker_ask(a, "POST", "/v1/jobs", key, no_op), 202);
    if (!asker_member(a, "job_id", id, sizeof id))
        bench_fail("no job_id: %s", a->body);
    snprintf(path, sizeof path, "/v1/jobs/%s", id);
    while (strcmp(state, "SUCCEEDED") != 0) {
        expect(a, asker_ask(a, "GET", path, key, NULL), 200);
        if (!asker_member(a, "state", state, sizeof state) || bench_now() - began > GIVE_UP_NS)
            bench_fail("it isn't done: %s", a->body);
    }
    return (double)(bench_now() - began) / 1e6;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void sleep_until(uint64_t at)
{
    uint64_t time = bench_now();
    if (time < at)
        usleep((useconds_t)((at - time) / NS_PER_US));
}

static void do_many(struct asker *a, do_one *one, double *ret_p50, double *ret_p99)
{
    double took[DONE_JOBS];
    uint64_t due = bench_now() + NS_PER_MS;
    for (uint32_t i = 0; i < DONE_JOBS; i++, due += NS_PER_S / DONE_RATE) {
        sleep_until(due);
        took[i] = one(a);
    }
    qsort(took, DONE_JOBS, sizeof *took, by_value);
    *ret_p50 = took[DONE_JOBS / 2];
    *ret_p99 = took[DONE_JOBS * 99 / 100];
}

static void measure_done(void)
{
    double p50[2][TURNS], p99[2][TURNS];
    struct asker a = {.more = NULL};
    if (!bench_wanted("done_p50 done_p99 done_polled_p50 done_polled_p99"))
        return;
    asker_open(&a, server.daemon.port);
    for (int i = -1, at = 0; i < TURNS; i++, at = i < 0 ? 0 : i) {
        do_many(&a, do_waiting, &p50[0][at], &p99[0][at]);
        do_many(&a, do_polling, &p50[1][at], &p99[1][at]);
    }
    asker_close(&a);
    bench_report(&(struct bench_row){"done_p50", "ms", BENCH_LESS}, p50[0], TURNS);
    bench_report(&(struct bench_row){"done_p99", "ms", BENCH_LESS}, p99[0], TURNS);
    bench_report(&(struct bench_row){"done_polled_p50", "ms", BENCH_LESS}, p50[1], TURNS);
    bench_report(&(struct bench_row){"done_polled_p99", "ms", BENCH_LESS}, p99[1], TURNS);
}

/* ---- due ---- */

static struct {
    struct queue_counts counts;
    int64_t at_ms; /* since 1970 */
    char ids[DUE_JOBS][40];
    uint32_t asked[DUE_CLIENTS]; /* by each connection */
} due;

static int64_t wall_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static size_t defer(void *arg, uint32_t who, char *room)
{
    char body[256], at[32];
    struct tm tm;
    (void)arg;
    if (!queue_next(&due.counts))
        return 0;
    time_t second = (time_t)(due.at_ms / 1000);
    strftime(at, sizeof at, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&second, &tm));
    snprintf(body, sizeof body,
             "{\"type\":\"DEFERRED\",\"work_kind\":\"SUCCESS_FAST\",\"execution_at\":\"%s\"}", at);
    due.asked[who] = (uint32_t)due.counts.submitted - 1;
    return jobserver_request(server.keys[0], "POST", "/v1/jobs", body, room);
}

static size_t hear_deferred(void *arg, uint32_t who, const char *bytes, size_t size, uint32_t *ret_done)
{
    static const char member[] = "\"job_id\":\"";
    int status;
    size_t head, whole = asker_answer(bytes, size, &status, &head);
    (void)arg;
    if (!whole)
        return 0;
    const char *id = memmem(bytes + head, whole - head, member, sizeof member - 1);
    if (status != 202 || !id)
        bench_fail("a deferred submit: %.*s", (int)whole, bytes);
    memcpy(due.ids[due.asked[who]], id + sizeof member - 1, 36);
    due.counts.finished++;
    *ret_done = 1;
    return whole;
}

static const struct crowd_talk defer_talk = {"deferred submits", NULL, defer, hear_deferred};

static bool deferring(void *arg)
{
    (void)arg;
    return due.counts.finished < due.counts.jobs;
}

/* The time of the event, in ms since 1970; -1: it hasn't happened. Its timestamp stands behind its name. */
static int64_t event_ms(struct asker *a, const char *id, const char *name)
{
    char path[128], text[64], *rest;
    struct tm tm = {0};
    snprintf(path, sizeof path, "/v1/jobs/%s/events", id);
    expect(a, asker_ask(a, "GET", path, server.keys[0], NULL), 200);
    const char *at = strstr(a->body, name);
    if (!at)
        return -1;
    struct asker behind = {.body = at};
    if (!asker_member(&behind, "timestamp", text, sizeof text) ||
        !(rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm)))
        bench_fail("an event without a time: %s", at);
    return (int64_t)timegm(&tm) * 1000 + (int64_t)(strtod(rest, NULL) * 1000 + 0.5);
}

/* p99 in ms, and how many were early. */
static double lateness(struct asker *a, double *ret_early)
{
    double late[DUE_JOBS];
    *ret_early = 0;
    for (uint32_t i = 0; i < DUE_JOBS; i++) {
        int64_t at;
        while ((at = event_ms(a, due.ids[i], "\"job.queued\"")) < 0) {
            if (wall_ms() - due.at_ms > DUE_LATEST)
                bench_fail("job %s isn't queued %d ms after its time", due.ids[i], DUE_LATEST);
            usleep(1000);
        }
        late[i] = (double)(at - due.at_ms);
        *ret_early += at < due.at_ms;
    }
    qsort(late, DUE_JOBS, sizeof *late, by_value);
    return late[DUE_JOBS * 99 / 100];
}

static void measure_due(void)
{
    struct asker a;
    double early;
    if (!bench_wanted("due_p99") && !bench_wanted("due_early"))
        return;
    due.at_ms = (wall_ms() + DUE_AHEAD) / 1000 * 1000;
    due.counts.jobs = DUE_JOBS;
    struct crowd *crowd = crowd_open(
        &(struct crowd_part){.port = server.daemon.port, .connections = DUE_CLIENTS, .talk = &defer_talk}, 1);
    crowd_run(crowd, 0, deferring, NULL, NULL);
    crowd_close(crowd);
    if (wall_ms() >= due.at_ms)
        bench_fail("%u deferred submits took more than a second", DUE_JOBS);
    usleep((useconds_t)(due.at_ms + DUE_AFTER - wall_ms()) * 1000);
    asker_open(&a, server.daemon.port);
    double p99 = lateness(&a, &early);
    asker_close(&a);
    bench_report(&(struct bench_row){"due_p99", "ms", BENCH_LESS}, &p99, 1);
    bench_report(&(struct bench_row){"due_early", "jobs", BENCH_LESS}, &early, 1);
}

/* ---- webhooks ---- */

static const char *url_of(uint32_t number)
{
    static char url[64];
    receivers_url(number, url, sizeof url);
    return url;
}

struct hooks {
    struct jobserver_submits submits;
    struct crowd *crowd;
    uint32_t counted; /* receivers */
};

static bool submitting(void *arg)
{
    const struct jobserver_submits *m = arg;
    return m->answered < m->counts.jobs;
}

static double deliver(struct hooks *h)
{
    uint64_t last, before = receivers_count(&last), began = bench_now();
    uint64_t wanted = before + (uint64_t)HOOK_JOBS * HOOK_EVENTS * h->counted / h->submits.callbacks;
    h->submits.counts.jobs += HOOK_JOBS;
    crowd_run(h->crowd, 0, submitting, &h->submits, NULL);
    while (receivers_count(&last) < wanted) {
        if (bench_now() - began > GIVE_UP_NS)
            bench_fail("%llu of %llu deliveries in %llu s",
                       (unsigned long long)(receivers_count(&last) - before),
                       (unsigned long long)(wanted - before), (unsigned long long)(GIVE_UP_NS / NS_PER_S));
        usleep(500);
    }
    return (double)(wanted - before) * 1e9 / (double)(last - began);
}

static void deliver_all(uint32_t receivers, uint32_t silent, uint32_t counted, double rates[TURNS])
{
    struct hooks *h = calloc(1, sizeof *h);
    if (!h)
        bench_fail("no memory");
    receivers_begin(receivers, silent);
    *h = (struct hooks){.submits = {.server = &server,
                                    .work_kind = "SUCCESS_FAST",
                                    .callbacks = receivers,
                                    .callback = url_of},
                        .counted = counted};
    h->crowd = crowd_open(&(struct crowd_part){.port = server.daemon.port,
                                               .connections = 64,
                                               .talk = &jobserver_submit_talk,
                                               .arg = &h->submits},
                          1);
    for (int i = -1; i < TURNS; i++)
        rates[i < 0 ? 0 : i] = deliver(h);
    crowd_close(h->crowd);
    receivers_end();
    free(h);
}

/* Does this server tell anybody at all? */
static bool tells(void)
{
    struct asker a;
    char body[256];
    uint64_t last, until = bench_now() + HOOK_FIRST_NS;
    receivers_begin(1, 0);
    snprintf(body, sizeof body, "{\"type\":\"EXECUTE\",\"work_kind\":\"SUCCESS_FAST\",\"callback\":\"%s\"}",
             url_of(0));
    asker_open(&a, server.daemon.port);
    expect(&a, asker_ask(&a, "POST", "/v1/jobs", server.keys[0], body), 202);
    asker_close(&a);
    while (receivers_count(&last) < HOOK_EVENTS && bench_now() < until)
        usleep(1000);
    bool told = receivers_count(&last) == HOOK_EVENTS;
    receivers_end();
    if (!told)
        fprintf(stderr, "jobs: this program has no webhooks yet\n");
    return told;
}

static void measure_webhooks(void)
{
    double one[TURNS], all[TURNS], some[TURNS], ratio[TURNS];
    if (!bench_wanted("webhooks") && !bench_wanted("webhooks_100") && !bench_wanted("webhooks_hung"))
        return;
    if (!tells())
        return;
    deliver_all(1, 0, 1, one);
    deliver_all(RECEIVERS, 0, RECEIVERS, all);
    deliver_all(RECEIVERS, SILENT, RECEIVERS - SILENT, some);
    for (int i = 0; i < TURNS; i++)
        ratio[i] = some[i] / (all[i] * (RECEIVERS - SILENT) / RECEIVERS);
    bench_report(&(struct bench_row){"webhooks", "deliveries/s", BENCH_MORE}, one, TURNS);
    bench_report(&(struct bench_row){"webhooks_100", "deliveries/s", BENCH_MORE}, all, TURNS);
    bench_report(&(struct bench_row){"webhooks_hung", "deliveries/s", BENCH_MORE}, some, TURNS);
    bench_report(&(struct bench_row){"webhooks_hung.ratio", "x", BENCH_MORE}, ratio, TURNS);
}

int main(void)
{
    bench_begin("jobs", 20);
    if (!jobserver_possible()) {
        fprintf(stderr, "jobs: this program has no jobs yet\n");
        return 0;
    }
    const char *folder = limits_folder("time");
    jobserver_begin(&server, folder, WORKERS);
    jobserver_await(&server);
    jobserver_enrol(&server);
    measure_done();
    measure_due();
    measure_webhooks();
    daemon_kill(&server.daemon); /* it would go on to deliver for a while */
    limits_remove(folder);
    return 0;
}
