/* The job server under test: `coppice serve` of this build as users run it, except that limits are wide, requests aren't
 * logged, and it listens where there is room. Whoever asks it is one of JOBSERVER_CLIENTS clients, each with a key.
 *
 * A job of a user's own kind has a payload of 1 KiB, which is kept and handed to whoever claims it; a job of a simulated kind
 * has none, and does nothing for no time at all.
 */
#ifndef COPPICE_TESTS_BENCH_JOBSERVER_H
#define COPPICE_TESTS_BENCH_JOBSERVER_H

#include "tests/bench/asker.h"
#include "tests/bench/crowd.h"
#include "tests/bench/daemon.h"
#include "tests/bench/queue.h"

#define JOBSERVER_CLIENTS       16u
#define JOBSERVER_ID_SIZE       40u
#define JOBSERVER_KEY_SIZE      128u
#define JOBSERVER_TEMPLATES_MAX 128u

struct jobserver {
    struct daemon daemon;
    uint16_t operator_port;
    char ids[JOBSERVER_CLIENTS][JOBSERVER_ID_SIZE], keys[JOBSERVER_CLIENTS][JOBSERVER_KEY_SIZE];
};

/* Does this build's program take jobs at all? It is tried. */
bool jobserver_possible(void);
/* workers: internal ones. Its store is in "store" in this folder, and stays. */
void jobserver_begin(struct jobserver *server, const char *folder, uint32_t workers);
/* Until it is ready. */
void jobserver_await(struct jobserver *server);
/* Makes the clients and their keys; once for each store. */
void jobserver_enrol(struct jobserver *server);
/* The value of a series of /metrics; of all that begin so, if there are several. */
double jobserver_metric(const struct jobserver *server, const char *series);

/* A whole request with this key; its size. room: of CROWD_SAY_MAX bytes. */
size_t jobserver_request(const char *key, const char *method, const char *path, const char *body, char *room);

/* ---- submitters ---- */

struct jobserver_submits {
    struct jobserver *server;
    const char *work_kind; /* one of a user's own begins with "x." */
    uint32_t clients;      /* whose jobs they are; 0: those of all, one after the other */
    uint32_t callbacks;    /* jobs call these back, one after the other; 0: none */
    const char *(*callback)(uint32_t number);
    struct queue_counts counts;
    uint64_t answered;
    char last_id[40]; /* of the job that was answered last, and whose it is */
    const char *last_key;
    struct jobserver_template { /* a request but for the digits of its payload; never freed */
        char *bytes;
        size_t size, digits;
    } templates[JOBSERVER_TEMPLATES_MAX];
};

/* Its argument is a struct jobserver_submits. */
extern const struct crowd_talk jobserver_submit_talk;

/* Submits, and internal workers; submits, and workers outside. */
extern const struct queue_class queue_coppice, queue_outside;

#endif
