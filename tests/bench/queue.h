/* A queue under test: ours or another durable one, measured in the same way.
 *
 * Durable: what is answered is on the disk, synced. A job is 1 KiB. A client is a connection that submits one job and waits
 * for its answer before the next one; BullMQ's are promises of one Node process on one connection, as it is used.
 *
 *     coppice      POST /v1/work:submit, a job for workers outside; through it, POST /v1/jobs and workers of the server
 *     outside      POST /v1/work:submit, and workers outside: /v1/work:claim and :complete
 *     beanstalkd   -f0; put, then reserve and delete
 *     rabbitmq     a quorum queue; publisher confirms, then consumers that acknowledge
 *     bullmq       on Redis with appendfsync always; add, then a Worker
 *     redis        the same Redis by itself: LPUSH, then BRPOPLPUSH and LREM. No states, no attempts, no ids: a list, and no
 *                  yardstick, but what a disk and a protocol leave to one that is nothing else
 *
 * There is one queue of a class at a time.
 */
#ifndef COPPICE_TESTS_BENCH_QUEUE_H
#define COPPICE_TESTS_BENCH_QUEUE_H

#include "tests/bench/crowd.h"
#include "tests/bench/daemon.h"

#define QUEUE_BODY       1024u /* bytes of a job */
#define QUEUE_CROWDS_MAX 4u

struct queue_figures {
    double rate; /* jobs/s */
    double p50_us, p99_us;
    double cpu_us; /* of the server, per job */
};

/* What a crowd has done so far. */
struct queue_counts {
    uint64_t submitted, finished;
    uint64_t jobs; /* that are to be submitted in all; 0: any number */
};

struct queue_crowd {
    uint32_t clients; /* 0: none */
    bool works;
    struct crowd *crowd;
    struct queue_counts *counts;
};

struct queue {
    const struct queue_class *class;
    struct daemon daemon;
    void *own;
    struct queue_crowd crowds[QUEUE_CROWDS_MAX]; /* they stay for the next turn */
};

struct queue_class {
    const char *name;
    /* False: it isn't installed. */
    bool (*begin)(struct queue *queue, const char *folder);
    void (*await)(struct queue *queue); /* until it is ready */
    /* For so long. */
    void (*submit)(struct queue *queue, uint32_t clients, uint64_t ns, struct queue_figures *ret);
    /* From the submit of the first of so many jobs to the end of the last one; of the figures, no latencies. */
    void (*through)(struct queue *queue, uint32_t clients, uint32_t jobs, struct queue_figures *ret);
    void (*end)(struct queue *queue);
    /* For queue_submit and queue_through: a crowd of submitters, and of workers if it works, and what it counts with. */
    struct crowd *(*open)(struct queue *queue, uint32_t clients, bool works,
                          struct queue_counts **ret_counts);
};

extern const struct queue_class queue_beanstalkd, queue_rabbitmq, queue_bullmq, queue_redis;

/* ---- for the classes ---- */

/* A crowd that is there, or a new one. */
const struct queue_crowd *queue_crowd(struct queue *queue, uint32_t clients, bool works);
void queue_close(struct queue *queue); /* all crowds */
/* Submit and through of classes that have crowds. */
void queue_submit(struct queue *queue, uint32_t clients, uint64_t ns, struct queue_figures *ret);
void queue_through(struct queue *queue, uint32_t clients, uint32_t jobs, struct queue_figures *ret);
/* A submitter asks this before each job; false: no more in this run. */
bool queue_next(struct queue_counts *counts);
/* 1 KiB of letters, the first sixteen of which are this number's: no two bodies are the same. Good until the next call. */
const char *queue_body(uint64_t number);

#endif
