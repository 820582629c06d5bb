/* The living tree: every supervisor and its children as they are now, beside what was declared.
 *
 * Walks from the root down by asking each supervisor, so it costs a few calls per supervisor and sees one
 * after the other, not one instant. A supervisor that doesn't answer by the deadline (twice, but for a suspended one) is shown as
 * silent, and the walk goes on. As a tree, the newest LIVING_CHILDREN_DEFAULT children of each supervisor (or as many as
 * asked for, up to LIVING_CHILDREN_MAX) are shown, in start order where there is one; how many were left out is
 * said. As a list (living_write_list) and for visitors all are walked, LIVING_VISITS_MAX at most.
 *
 * Runs in the actor that serves the request; memory comes from its arena, 60 KiB per level at most.
 */
#ifndef COPPICE_HTTP_LIVING_H
#define COPPICE_HTTP_LIVING_H

#include "runtime/json.h"
#include "runtime/supervisor.h"

#define LIVING_CHILDREN_DEFAULT 100u
#define LIVING_CHILDREN_MAX     200u /* so that they fit into one message and one piece of an arena */
#define LIVING_DEPTH_MAX        16u
#define LIVING_ANSWER_MS        500 /* for one supervisor or one scheduler to answer */
#define LIVING_VISITS_MAX       20000u
#define LIVING_LIST_DEFAULT     100u
#define LIVING_LIST_MAX         1000u

/* What was declared about a subsystem; made from the topology by whoever starts this floor. Borrowed for
 * ever. */
struct living_row {
    const char *name; /* "rooms"; with "instance:<instance_id>" standing for all of that form */
    const char *owner;
    bool per_key; /* started by its parent as keys come up, not at boot */
    bool supervises;
    const void *declared; /* for living_rows.declare */
    const char *
        needed; /* what would be if it were suspended, which is refused; NULL: nothing that a :resume doesn't end */
};

struct living_rows {
    const char *contract;
    const struct living_row *rows; /* in start order, the root first */
    size_t count;
    void (*declare)(struct json *json, const void *declared); /* all columns of one, as a JSON object */
};

/* The row that declares this name, or NULL. */
const struct living_row *living_row_of(const struct living_rows *rows, const char *name);

/* How much of the tree is shown: of each supervisor the newest `children`, and of those none of the class `without` ("" leaves
 * none out). */
struct living_part {
    size_t children; /* 1..LIVING_CHILDREN_MAX */
    const char *without;
};

/* {"contract":..., "declared":[...], "missing":[names], "tree":{...}} */
void living_write_json(const struct living_rows *rows, struct json *json, struct living_part part);
/* A drawing for people. */
void living_write_text(const struct living_rows *rows, struct json_sink *sink, struct living_part part);
/* For Graphviz: a digraph, one node per actor. */
void living_write_dot(const struct living_rows *rows, struct json_sink *sink, struct living_part part);

/* ---- some of them, as a list ---- */

#define LIVING_ORDERS(X)    \
    X(TREE, "tree")         \
    X(MAILBOX, "mailbox")   \
    X(RESTARTS, "restarts") \
    X(MEMORY, "memory") /* bytes of the arena */

enum living_order {
#define X(id, name) LIVING_BY_##id,
    LIVING_ORDERS(X)
#undef X
        LIVING_ORDER_COUNT
};

struct living_filter {
    const char *name, *class_name, *state; /* "": any. name: a part of it */
    enum living_order order;               /* TREE: as they stand in the tree; else the largest first */
    uint32_t limit;                        /* 1..LIVING_LIST_MAX */
};
/* {"actors":[...],"matched":n,"visited":n,"complete":bool} */
void living_write_list(const struct living_rows *rows, struct json *json, const struct living_filter *filter);
void living_write_list_text(const struct living_rows *rows, struct json_sink *sink,
                            const struct living_filter *filter);

/* ---- all of them, for whoever compares ---- */

struct living_node {
    const char *name; /* as the tree shows it; good during the call */
    const char *class_name;
    const char *registered; /* "" */
    const char *state;
    const char *last_exit; /* "" */
    actor_pid pid;         /* 0: not running now */
    actor_pid supervisor;  /* 0: the root */
    uint64_t place; /* hash of the ids from the root down: stays the same over restarts; 0: it has no id */
    uint64_t restarts;
    uint32_t mailbox_depth;
    size_t arena_bytes;
    int64_t budget_left; /* of its supervisor, of a supervisor its own; -1: unknown */
    enum restart_type restart;
    bool supervises;
    bool dynamic; /* its supervisor is a dynamic one: started at run time, and not started with it */
};
/* Returns false to stop. What it takes from the arena is gone when the walk goes on. */
typedef bool (*living_visitor)(void *context, const struct living_node *node);
/* False: not all were seen. It stopped, there were more than LIVING_VISITS_MAX or more than LIVING_DEPTH_MAX deep, or a supervisor
 * that lives didn't say who stands below it. `inspect`: also ask each actor's scheduler, without
 * which name and class come from its supervisor alone and depth and bytes are 0. */
bool living_visit(const struct living_rows *rows, bool inspect, living_visitor visit, void *context);

/* Who stands at this place now: ids from the root down with '>' between them, "root>store>store.writer". 0: nobody. */
actor_pid living_find(const struct living_rows *rows, const char *path);

/* How many declared rows have no living actor. */
size_t living_missing(const struct living_rows *rows);

#endif
