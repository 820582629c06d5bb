/* beanstalkd with its write-ahead log, synced after each command. A worker says `delete` and the next `reserve` at once. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "tests/bench/bench.h"
#include "tests/bench/queue.h"

#define WORKERS 16u

struct tube {
    const char *name;
    struct queue_counts counts;
    uint64_t reserved[WORKERS]; /* by each worker; 0: none */
};

static bool begin(struct queue *q, const char *folder)
{
    char path[4096], port[8];
    if (!daemon_finds("beanstalkd", path, sizeof path))
        return false;
    q->daemon = (struct daemon){.folder = folder, .port = daemon_free_port()};
    snprintf(port, sizeof port, "%u", q->daemon.port);
    const char *const argv[] = {path, "-l", "127.0.0.1", "-p", port, "-b", folder, "-f0", NULL};
    daemon_begin(&q->daemon, argv, NULL, false);
    return true;
}

static void await(struct queue *q)
{
    daemon_await(&q->daemon);
}

/* ---- the protocol ---- */

/* A line that has come whole; its size with the end, 0: it hasn't. */
static size_t line_size(const char *bytes, size_t size)
{
    const char *end = memchr(bytes, '\n', size);
    return end ? (size_t)(end - bytes) + 1 : 0;
}

static bool begins(const char *bytes, size_t size, const char *word)
{
    size_t n = strlen(word);
    return size >= n && memcmp(bytes, word, n) == 0;
}

static void command(int fd, const char *line, const char *answer)
{
    char text[128];
    if (send(fd, line, strlen(line), MSG_NOSIGNAL) < 0)
        bench_fail("beanstalkd takes nothing");
    ssize_t n = recv(fd, text, sizeof text, 0);
    if (n < 0 || !begins(text, (size_t)n, answer))
        bench_fail("beanstalkd: %.*s", (int)(n < 0 ? 0 : n), text);
}

static void greet_submitter(void *arg, uint32_t who, int fd)
{
    const struct tube *tube = arg;
    char line[64];
    (void)who;
    snprintf(line, sizeof line, "use %s\r\n", tube->name);
    command(fd, line, "USING");
}

static size_t put(void *arg, uint32_t who, char *room)
{
    struct tube *tube = arg;
    (void)who;
    if (!queue_next(&tube->counts))
        return 0;
    int n = snprintf(room, CROWD_SAY_MAX, "put 0 0 60 %u\r\n%.*s\r\n", QUEUE_BODY, (int)QUEUE_BODY,
                     queue_body(tube->counts.submitted));
    return (size_t)n;
}

static size_t hear_inserted(void *arg, uint32_t who, const char *bytes, size_t size, uint32_t *ret_done)
{
    size_t line = line_size(bytes, size);
    (void)arg, (void)who;
    if (line && !begins(bytes, line, "INSERTED "))
        bench_fail("beanstalkd: %.*s", (int)line, bytes);
    *ret_done = line > 0;
    return line;
}

static const struct crowd_talk submit_talk = {"beanstalkd", greet_submitter, put, hear_inserted};

static void greet_worker(void *arg, uint32_t who, int fd)
{
    const struct tube *tube = arg;
    char line[64];
    (void)who;
    snprintf(line, sizeof line, "watch %s\r\n", tube->name);
    command(fd, line, "WATCHING 2");
    command(fd, "ignore default\r\n", "WATCHING 1");
}

static size_t next_job(void *arg, uint32_t who, char *room)
{
    struct tube *tube = arg;
    uint64_t id = tube->reserved[who];
    int n = id ? snprintf(room, CROWD_SAY_MAX, "delete %llu\r\nreserve\r\n", (unsigned long long)id)
               : snprintf(room, CROWD_SAY_MAX, "reserve\r\n");
    tube->reserved[who] = 0;
    return (size_t)n;
}

static size_t hear_job(void *arg, uint32_t who, const char *bytes, size_t size, uint32_t *ret_done)
{
    struct tube *tube = arg;
    size_t line = line_size(bytes, size);
    char *end;
    if (!line)
        return 0;
    if (begins(bytes, line, "DELETED")) {
        tube->counts.finished++;
        return line;
    }
    if (!begins(bytes, line, "RESERVED "))
        bench_fail("beanstalkd: %.*s", (int)line, bytes);
    uint64_t id = strtoull(bytes + 9, &end, 10);
    size_t whole = line + strtoull(end, NULL, 10) + 2;
    if (size < whole)
        return 0;
    tube->reserved[who] = id;
    *ret_done = 1;
    return whole;
}

static const struct crowd_talk worker_talk = {"beanstalkd's worker", greet_worker, next_job, hear_job};

/* ---- as a queue ---- */

static struct crowd *open_crowd(struct queue *q, uint32_t clients, bool works,
                                struct queue_counts **ret_counts)
{
    static struct tube tubes[2] = {{.name = "submits"}, {.name = "through"}};
    const struct crowd_part parts[] = {
        {.port = q->daemon.port, .connections = clients, .talk = &submit_talk, .arg = &tubes[works]},
        {.port = q->daemon.port,
         .connections = WORKERS,
         .talk = &worker_talk,
         .arg = &tubes[1],
         .patient = true}};
    *ret_counts = &tubes[works].counts;
    return crowd_open(parts, works ? 2 : 1);
}

static void end(struct queue *q)
{
    queue_close(q);
    daemon_kill(&q->daemon);
}

const struct queue_class queue_beanstalkd = {.name = "beanstalkd",
                                             .begin = begin,
                                             .await = await,
                                             .submit = queue_submit,
                                             .through = queue_through,
                                             .end = end,
                                             .open = open_crowd};
