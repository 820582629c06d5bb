/* Redis with appendfsync always, and a list: what a queue on it could do at most. */
#define _GNU_SOURCE
#include "tests/bench/redis.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/bench/bench.h"
#include "tests/bench/queue.h"

#define WORKERS 16u

struct list {
    const char *name; /* of six letters */
    struct queue_counts counts;
    bool taken[WORKERS]; /* a worker has a job */
    char job[WORKERS][QUEUE_BODY];
};

bool redis_begin(struct daemon *daemon, const char *folder)
{
    char path[4096], port[8];
    if (!daemon_finds("redis-server", path, sizeof path))
        return false;
    *daemon = (struct daemon){.folder = folder, .port = daemon_free_port()};
    snprintf(port, sizeof port, "%u", daemon->port);
    const char *const argv[] = {path,         "--bind",
                                "127.0.0.1",  "--port",
                                port,         "--save",
                                "",           "--dir",
                                folder,       "--appendonly",
                                "yes",        "--appendfsync",
                                "always",     "--daemonize",
                                "no",         "--auto-aof-rewrite-percentage",
                                "0",          "--maxmemory-policy",
                                "noeviction", NULL};
    daemon_begin(daemon, argv, NULL, false);
    return true;
}

static bool begin(struct queue *q, const char *folder)
{
    return redis_begin(&q->daemon, folder);
}

static void await(struct queue *q)
{
    daemon_await(&q->daemon);
}

/* ---- the protocol ---- */

static size_t push(void *arg, uint32_t who, char *room)
{
    struct list *list = arg;
    (void)who;
    if (!queue_next(&list->counts))
        return 0;
    int n = snprintf(room, CROWD_SAY_MAX, "*3\r\n$5\r\nLPUSH\r\n$6\r\n%s\r\n$%u\r\n%.*s\r\n", list->name,
                     QUEUE_BODY, (int)QUEUE_BODY, queue_body(list->counts.submitted));
    return (size_t)n;
}

static size_t line_size(const char *bytes, size_t size)
{
    const char *end = memchr(bytes, '\n', size);
    return end ? (size_t)(end - bytes) + 1 : 0;
}

static size_t hear_length(void *arg, uint32_t who, const char *bytes, size_t size, uint32_t *ret_done)
{
    size_t line = line_size(bytes, size);
    (void)arg, (void)who;
    if (line && bytes[0] != ':')
        bench_fail("redis: %.*s", (int)line, bytes);
    *ret_done = line > 0;
    return line;
}

static const struct crowd_talk submit_talk = {"redis", NULL, push, hear_length};

static size_t next_job(void *arg, uint32_t who, char *room)
{
    struct list *list = arg;
    int n = 0;
    if (list->taken[who])
        n = snprintf(room, CROWD_SAY_MAX, "*4\r\n$4\r\nLREM\r\n$5\r\ntaken\r\n$1\r\n1\r\n$%u\r\n%.*s\r\n",
                     QUEUE_BODY, (int)QUEUE_BODY, list->job[who]);
    n += snprintf(room + n, CROWD_SAY_MAX - (size_t)n,
                  "*4\r\n$10\r\nBRPOPLPUSH\r\n$6\r\n%s\r\n$5\r\ntaken\r\n$1\r\n0\r\n", list->name);
    list->taken[who] = false;
    return (size_t)n;
}

static size_t hear_job(void *arg, uint32_t who, const char *bytes, size_t size, uint32_t *ret_done)
{
    struct list *list = arg;
    size_t line = line_size(bytes, size), whole = line + QUEUE_BODY + 2;
    if (!line)
        return 0;
    if (bytes[0] == ':') {
        list->counts.finished++;
        return line;
    }
    if (bytes[0] != '$')
        bench_fail("redis: %.*s", (int)line, bytes);
    if (size < whole)
        return 0;
    memcpy(list->job[who], bytes + line, QUEUE_BODY);
    list->taken[who] = true;
    *ret_done = 1;
    return whole;
}

static const struct crowd_talk worker_talk = {"redis' worker", NULL, next_job, hear_job};

/* ---- as a queue ---- */

static struct crowd *open_crowd(struct queue *q, uint32_t clients, bool works,
                                struct queue_counts **ret_counts)
{
    static struct list lists[2] = {{.name = "submit"}, {.name = "throug"}};
    const struct crowd_part parts[] = {
        {.port = q->daemon.port, .connections = clients, .talk = &submit_talk, .arg = &lists[works]},
        {.port = q->daemon.port,
         .connections = WORKERS,
         .talk = &worker_talk,
         .arg = &lists[1],
         .patient = true}};
    *ret_counts = &lists[works].counts;
    return crowd_open(parts, works ? 2 : 1);
}

static void end(struct queue *q)
{
    queue_close(q);
    daemon_kill(&q->daemon);
}

const struct queue_class queue_redis = {.name = "redis",
                                        .begin = begin,
                                        .await = await,
                                        .submit = queue_submit,
                                        .through = queue_through,
                                        .end = end,
                                        .open = open_crowd};
