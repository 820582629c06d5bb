/* The topology: every subsystem of the process, declared as data. Contract ST-OCM-000.
 *
 * One row per subsystem, with the six items of the review gate in every row: owner and supervisor, strategy
 * and intensity, a crash class for each failure mode, partition key and scaling rule, SLO target and
 * thresholds, telemetry events with their dimensions. Boot refuses a table that topology_check refuses,
 * builds the tree from it (config/boot.c) and starts nothing that has no row. The order of the rows is the
 * start order; a row stands below its parent.
 *
 * A row whose name holds a <key> declares what its parent starts per key at run time; boot starts nothing for
 * it, unless the keys are known: with `partitions` it starts so many, numbered from 0. A worker row repeats the strategy and intensity of the supervisor it stands under, and the check
 * compares them.
 *
 * Everything here is constant data and pure functions: nothing blocks or allocates, any thread may call.
 */
#ifndef COPPICE_CONFIG_TOPOLOGY_H
#define COPPICE_CONFIG_TOPOLOGY_H

#include "runtime/json.h"
#include "runtime/supervisor.h"

#define TOPOLOGY_CONTRACT "ST-OCM-000"
#define TOPOLOGY_OPERATORS \
    "front.operators" /* connections of the operator's listener; their limit is an option */
#define TOPOLOGY_CONNECTIONS  "front.connections" /* :<scheduler>: the clients' connections on one scheduler */
#define TOPOLOGY_CLIENTS      "front.clients"     /* whose children are as many as schedulers and addresses */
#define TOPOLOGY_ROWS_MAX     64
#define TOPOLOGY_NAME_MAX     48
#define TOPOLOGY_SECONDS_MAX  86400
#define TOPOLOGY_FAILURES_MAX 6
#define TOPOLOGY_SLOS_MAX     3
#define TOPOLOGY_EVENTS_MAX   4

/* Events are named as in runtime/telemetry_names.h, which also holds the dimensions that each of them
 * requires. */

struct topology_failure {
    const char *mode;
    const char *class; /* one of the three of FAILURE_CLASSES (TOP-071) */
    const char *handling;
    const char *action; /* the supervisor's */
    const char *event;
};

struct topology_slo {
    const char *capability;
    const char *sli;
    const char *metric;
    const char *target;
    const char *thresholds;
    const char *event; /* that feeds it */
};

enum topology_kind {
    TOPOLOGY_SUPERVISOR = 0, /* its children are rows of this table */
    TOPOLOGY_DYNAMIC,        /* its children come and go at run time */
    TOPOLOGY_WORKER,
};

struct topology_row {
    const char *name;
    const char *parent; /* a row above this one; empty for the first row, the root */
    enum topology_kind kind;
    const char *subsystem; /* what it is; for the rows of the seed, its words */
    const char *intent;    /* of the failure domain: what a crash here must not do */

    const char *owner;
    const char *supervisor;

    enum strategy strategy;    /* one_for_one unless justified (TOP-069, TOP-070) */
    const char *justification; /* of another strategy than one_for_one */
    uint32_t max_restarts;
    uint32_t max_seconds;

    const char *partition_key;
    const char *scaling_rule;

    uint32_t
        partitions; /* of a row per key: how many there are; each has its number (u32) as its argument, and is placed by it */
    int scheduler; /* SPAWN_HERE, or where it must run */

    const struct topology_failure *failures[TOPOLOGY_FAILURES_MAX]; /* NULL ends each of these three lists */
    const struct topology_slo *slos[TOPOLOGY_SLOS_MAX];
    const char *events[TOPOLOGY_EVENTS_MAX]; /* its own; those of failures and SLOs come on top */

    /* What boot starts for a worker; options that come from the command line are filled in there. */
    const struct actor_class *class;
    const void *args;
    size_t args_size;
};

extern const struct topology_row topology_rows[];
extern const size_t topology_count;

/* OK, or ERR_INVALID and a sentence that names row, field and value and says what would be right. */
enum error topology_check(const struct topology_row *rows, size_t count, char *ret_text, size_t text_size);

/* NULL when there is none. */
const struct topology_row *topology_find(const struct topology_row *rows, size_t count, const char *name);
/* True for rows that stand for what is started per key. */
bool topology_per_key(const struct topology_row *row);

/* All columns of one row as an object, and the whole table as one document with its contract id. */
void topology_write_row(struct json *json, const struct topology_row *row);
void topology_write_json(struct json *json, const struct topology_row *rows, size_t count);
/* The table as text for people, one line per row. */
void topology_write_text(struct json_sink *sink, const struct topology_row *rows, size_t count);

#endif
