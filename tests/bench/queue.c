#include "tests/bench/queue.h"
#include <string.h>
#include "tests/bench/bench.h"

const char *queue_body(uint64_t number)
{
    static char body[QUEUE_BODY];
    static const char digits[] = "0123456789abcdef";
    if (!body[0])
        for (size_t i = 0; i < sizeof body; i++)
            body[i] = (char)('a' + i * 7 % 26);
    for (int i = 0; i < 16; i++)
        body[i] = digits[number >> (60 - 4 * i) & 15];
    return body;
}

bool queue_next(struct queue_counts *counts)
{
    if (counts->jobs && counts->submitted == counts->jobs)
        return false;
    counts->submitted++;
    return true;
}

const struct queue_crowd *queue_crowd(struct queue *q, uint32_t clients, bool works)
{
    for (uint32_t i = 0; i < QUEUE_CROWDS_MAX; i++) {
        struct queue_crowd *c = &q->crowds[i];
        if (c->clients == clients && c->works == works)
            return c;
        if (c->clients > 0)
            continue;
        *c = (struct queue_crowd){.clients = clients, .works = works};
        c->crowd = q->class->open(q, clients, works, &c->counts);
        return c;
    }
    bench_fail("%s: too many crowds", q->class->name);
}

void queue_close(struct queue *q)
{
    for (uint32_t i = 0; i < QUEUE_CROWDS_MAX; i++) {
        crowd_close(q->crowds[i].crowd);
        q->crowds[i] = (struct queue_crowd){0};
    }
}

void queue_submit(struct queue *q, uint32_t clients, uint64_t ns, struct queue_figures *ret)
{
    const struct queue_crowd *c = queue_crowd(q, clients, false);
    struct crowd_result result;
    uint64_t cpu = daemon_cpu_ns(&q->daemon);
    crowd_run(c->crowd, ns, NULL, NULL, &result);
    *ret = (struct queue_figures){.rate = result.rate,
                                  .p50_us = result.p50_us,
                                  .p99_us = result.p99_us,
                                  .cpu_us =
                                      (double)(daemon_cpu_ns(&q->daemon) - cpu) / 1e3 / (double)result.done};
}

static bool unfinished(void *arg)
{
    const struct queue_counts *counts = arg;
    return counts->finished < counts->jobs;
}

void queue_through(struct queue *q, uint32_t clients, uint32_t jobs, struct queue_figures *ret)
{
    const struct queue_crowd *c = queue_crowd(q, clients, true);
    struct queue_counts *counts = c->counts;
    counts->jobs = counts->finished + jobs;
    uint64_t cpu = daemon_cpu_ns(&q->daemon), began = bench_now();
    crowd_run(c->crowd, 0, unfinished, counts, NULL);
    *ret = (struct queue_figures){.rate = bench_per_second(jobs, began),
                                  .cpu_us = (double)(daemon_cpu_ns(&q->daemon) - cpu) / 1e3 / jobs};
}
