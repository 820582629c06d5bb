/* Jobs in, and jobs through: beside other durable queues in the same run (tests/bench/queue.h), each unpinned and alone at
 * work while it is measured.
 *
 * submit_64, submit_256: submits answered per second, one after the other from each of so many connections, 1 KiB of payload;
 * p99_64 and the like are their latencies, submit_cpu the server's processor time for each at 256, all threads. The peer of a
 * row is the best of the others in the median; what each of them did has its own line. redis is no peer: see queue.h.
 *
 * e2e: jobs finished per second, from the submit of the first of 20,000 to the end of the last one; 100,000 in a row, in five
 * pieces. e2e_outside: the same, 5,000 at a time, of jobs with a payload that 128 workers outside claim and complete over HTTP.
 * The others get fewer, as many as they do in about half a second. e2e_cpu is the server's processor time for each.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/bench/bench.h"
#include "tests/bench/jobserver.h"
#include "tests/bench/limits.h"

#define SUBMIT_NS    (250 * NS_PER_MS)
#define TURNS        5
#define THROUGH_JOBS 20000u
#define OUTSIDE_JOBS 5000u
#define PEER_FIRST   300u              /* jobs through another queue to begin with; */
#define PEER_NS      (500 * NS_PER_MS) /* then as many as it will do in this time, or a few more */

enum figure { RATE, P50, P99, CPU, FIGURES };

static const struct {
    const struct queue_class *class;
    bool ours, yardstick, submits;
    uint32_t through_clients; /* 0: it isn't measured */
} candidates[] = {
    {&queue_coppice, true, false, true, 256},   {&queue_outside, true, false, false, 256},
    {&queue_rabbitmq, false, true, true, 256},  {&queue_bullmq, false, true, true, 256},
    {&queue_beanstalkd, false, true, true, 64}, {&queue_redis, false, false, true, 0},
};
enum { SERVER, OUTSIDE, CANDIDATES = sizeof candidates / sizeof *candidates }; /* the first two are ours */

static struct queue queues[CANDIDATES];
static bool there[CANDIDATES];
static uint32_t through_jobs[CANDIDATES];

/* ---- what was measured, turn by turn ---- */

struct turns {
    bool in[CANDIDATES]; /* who takes part */
    double values[CANDIDATES][FIGURES][TURNS];
};

static void note(struct turns *t, int who, int turn, const struct queue_figures *f)
{
    double(*values)[TURNS] = t->values[who];
    values[RATE][turn] = f->rate;
    values[P50][turn] = f->p50_us / 1e3;
    values[P99][turn] = f->p99_us / 1e3;
    values[CPU][turn] = f->cpu_us;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const double values[TURNS])
{
    double sorted[TURNS];
    memcpy(sorted, values, sizeof sorted);
    qsort(sorted, TURNS, sizeof *sorted, by_value);
    return sorted[TURNS / 2];
}

/* The yardstick that is best in this figure; -1: none is there. */
static int best_peer(const struct turns *t, enum figure figure)
{
    int best = -1;
    for (int i = 0; i < CANDIDATES; i++) {
        if (!t->in[i] || !candidates[i].yardstick)
            continue;
        double mine = median(t->values[i][figure]), other = best < 0 ? 0 : median(t->values[best][figure]);
        if (best < 0 || (figure == RATE ? mine > other : mine < other))
            best = i;
    }
    return best;
}

static const char *unit_of(enum figure figure)
{
    return figure == RATE ? "jobs/s" : figure == CPU ? "us" : "ms";
}

static enum bench_better better_of(enum figure figure)
{
    return figure == RATE ? BENCH_MORE : BENCH_LESS;
}

/* A line for each of the others. */
static void report_all(const struct turns *t, const char *name, enum figure figure)
{
    char text[64];
    for (int i = 0; i < CANDIDATES; i++) {
        snprintf(text, sizeof text, "%s_%s.peer", name, candidates[i].class->name);
        if (t->in[i] && !candidates[i].ours)
            bench_report(&(struct bench_row){text, unit_of(figure), better_of(figure)}, t->values[i][figure],
                         TURNS);
    }
}

/* One of ours, the best peer's, and our ratio to it turn by turn. */
static void report(const struct turns *t, int who, const char *name, enum figure figure)
{
    const char *unit = unit_of(figure);
    enum bench_better better = better_of(figure);
    char text[64];
    int best = best_peer(t, figure);
    double ratio[TURNS];
    if (!t->in[who] && who != SERVER)
        return;
    if (t->in[who])
        bench_report(&(struct bench_row){name, unit, better}, t->values[who][figure], TURNS);
    if (best >= 0) {
        snprintf(text, sizeof text, "%s.peer", name);
        bench_report(&(struct bench_row){text, unit, better}, t->values[best][figure], TURNS);
    }
    if (t->in[who] && best >= 0) {
        for (int i = 0; i < TURNS; i++)
            ratio[i] = t->values[who][figure][i] / t->values[best][figure][i];
        snprintf(text, sizeof text, "%s.ratio", name);
        bench_report(&(struct bench_row){text, "x", better}, ratio, TURNS);
    }
}

/* ---- measuring ---- */

typedef void measurement(int who, struct queue_figures *ret);

static uint32_t clients;

static void submit(int who, struct queue_figures *ret)
{
    candidates[who].class->submit(&queues[who], clients, SUBMIT_NS, ret);
}

static void go_through(int who, struct queue_figures *ret)
{
    candidates[who].class->through(&queues[who], candidates[who].through_clients, through_jobs[who], ret);
    if (!candidates[who].ours && through_jobs[who] == PEER_FIRST)
        through_jobs[who] = 1 + PEER_FIRST / 2 + (uint32_t)(ret->rate * PEER_NS / NS_PER_S);
}

/* Turn by turn, so that what the machine does meanwhile hits all of them; the first one warms up. */
static void measure_all(struct turns *t, measurement *measure)
{
    struct queue_figures f;
    for (int turn = -1; turn < TURNS; turn++)
        for (int i = 0; i < CANDIDATES; i++) {
            if (!t->in[i])
                continue;
            measure(i, &f);
            if (turn >= 0)
                note(t, i, turn, &f);
        }
}

static void measure_submits(uint32_t count)
{
    static struct turns t;
    char name[3][32];
    snprintf(name[0], sizeof name[0], "submit_%u", count);
    snprintf(name[1], sizeof name[1], "submit_p50_%u", count);
    snprintf(name[2], sizeof name[2], "submit_p99_%u", count);
    if (!bench_wanted(name[0]) && !bench_wanted(name[2]) && !bench_wanted("submit_cpu"))
        return;
    clients = count;
    for (int i = 0; i < CANDIDATES; i++)
        t.in[i] = there[i] && candidates[i].submits;
    measure_all(&t, submit);
    report(&t, SERVER, name[0], RATE);
    report_all(&t, name[0], RATE);
    report(&t, SERVER, name[1], P50);
    report(&t, SERVER, name[2], P99);
    if (count != 256)
        return;
    report(&t, SERVER, "submit_cpu", CPU);
    report_all(&t, "submit_cpu", CPU);
}

static void measure_through(void)
{
    static struct turns t;
    if (!bench_wanted("e2e") && !bench_wanted("e2e_cpu"))
        return;
    for (int i = 0; i < CANDIDATES; i++) {
        t.in[i] = there[i] && candidates[i].through_clients > 0;
        through_jobs[i] = i == SERVER ? THROUGH_JOBS : i == OUTSIDE ? OUTSIDE_JOBS : PEER_FIRST;
    }
    measure_all(&t, go_through);
    report(&t, SERVER, "e2e", RATE);
    report_all(&t, "e2e", RATE);
    report(&t, SERVER, "e2e_cpu", CPU);
    report_all(&t, "e2e_cpu", CPU);
    report(&t, OUTSIDE, "e2e_outside", RATE);
    report(&t, OUTSIDE, "e2e_outside_cpu", CPU);
}

/* Those that take long to start first; they are waited for later. */
static void begin_all(const char *folders[CANDIDATES])
{
    bool possible = jobserver_possible();
    for (int i = CANDIDATES - 1; i >= 0; i--) {
        const struct queue_class *class = candidates[i].class;
        folders[i] = limits_folder(class->name);
        queues[i] = (struct queue){.class = class};
        there[i] = (possible || !candidates[i].ours) && class->begin(&queues[i], folders[i]);
        if (!there[i])
            fprintf(stderr, "jobs: %s is not here: %s\n", class->name,
                    candidates[i].ours ? "this program doesn't do that yet" : "`.ci/deps bench` brings it");
    }
    for (int i = 0; i < CANDIDATES; i++)
        if (there[i])
            candidates[i].class->await(&queues[i]);
}

int main(void)
{
    const char *folders[CANDIDATES];
    bench_begin("jobs", 40);
    begin_all(folders);
    measure_submits(64);
    measure_submits(256);
    measure_through();
    for (int i = 0; i < CANDIDATES; i++) {
        if (there[i])
            candidates[i].class->end(&queues[i]);
        limits_remove(folders[i]);
    }
    return 0;
}
