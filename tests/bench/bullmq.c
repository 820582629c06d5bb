/* BullMQ, by a Node process (tests/npm/bullmq/drive.mjs) that is told what to do line by line; what is measured as its server
 * is Redis. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tests/bench/bench.h"
#include "tests/bench/queue.h"
#include "tests/bench/redis.h"

#define ANSWER_MS 30000

struct bull {
    struct daemon node;
    char script[4200];
};

static bool begin(struct queue *q, const char *folder)
{
    char node[4096], port[8];
    struct bull *b = calloc(1, sizeof *b);
    if (!b)
        bench_fail("no memory");
    snprintf(b->script, sizeof b->script, "%s/../npm/bullmq/drive.mjs", bench_folder());
    if (access(b->script, R_OK) < 0 || !daemon_finds("node", node, sizeof node) ||
        !redis_begin(&q->daemon, folder)) {
        free(b);
        return false;
    }
    q->own = b;
    b->node = (struct daemon){.folder = folder};
    daemon_await(&q->daemon);
    snprintf(port, sizeof port, "%u", q->daemon.port);
    const char *const argv[] = {node, b->script, port, NULL};
    daemon_begin(&b->node, argv, NULL, true);
    return true;
}

/* The next line that Node says. */
static void hear(struct bull *b, char *ret, size_t size)
{
    size_t used = 0;
    do {
        struct pollfd ready = {.fd = b->node.out, .events = POLLIN};
        ssize_t n = poll(&ready, 1, ANSWER_MS) > 0 ? read(b->node.out, ret + used, size - 1 - used) : -1;
        if (n <= 0)
            bench_fail("BullMQ's process has ended, or says nothing; %s/log may say why", b->node.folder);
        used += (size_t)n;
        ret[used] = 0;
    } while (!strchr(ret, '\n'));
}

static void await(struct queue *q)
{
    char line[256];
    hear(q->own, line, sizeof line);
    if (strcmp(line, "ready\n") != 0)
        bench_fail("BullMQ's process: %s", line);
}

static void run(struct queue *q, const char *verb, uint32_t clients, uint64_t number,
                struct queue_figures *ret)
{
    struct bull *b = q->own;
    char line[256];
    uint64_t cpu = daemon_cpu_ns(&q->daemon);
    int size = snprintf(line, sizeof line, "%s %u %llu\n", verb, clients, (unsigned long long)number);
    if (write(b->node.in, line, (size_t)size) != size)
        bench_fail("BullMQ's process takes nothing: %s", strerror(errno));
    hear(b, line, sizeof line);
    char *at = line;
    double jobs = strtod(at, &at), ns = strtod(at, &at);
    if (jobs < 1 || ns < 1)
        bench_fail("BullMQ's process: %s", line);
    *ret = (struct queue_figures){.rate = jobs * 1e9 / ns,
                                  .cpu_us = (double)(daemon_cpu_ns(&q->daemon) - cpu) / 1e3 / jobs};
    ret->p50_us = strtod(at, &at);
    ret->p99_us = strtod(at, &at);
}

static void submit(struct queue *q, uint32_t clients, uint64_t ns, struct queue_figures *ret)
{
    run(q, "submit", clients, ns / NS_PER_MS, ret);
}

static void through(struct queue *q, uint32_t clients, uint32_t jobs, struct queue_figures *ret)
{
    run(q, "through", clients, jobs, ret);
}

static void end(struct queue *q)
{
    struct bull *b = q->own;
    daemon_kill(&b->node);
    daemon_kill(&q->daemon);
    free(b);
}

const struct queue_class queue_bullmq = {
    .name = "bullmq", .begin = begin, .await = await, .submit = submit, .through = through, .end = end};
