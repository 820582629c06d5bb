/* The living tree: every supervisor and its children as they are now, beside what was declared.
 *
 * Walks from the root down by asking each supervisor, so it costs a few calls per supervisor and sees one
 * after the other, not one instant. A supervisor that doesn't answer by the deadline is shown as silent, and
 * the walk goes on. Of each supervisor's children the newest LIVING_CHILDREN_DEFAULT (or as many as asked
 * for, up to LIVING_CHILDREN_MAX) are shown, in start order where there is one; how many were left out is
 * said.
 *
 * Runs in the actor that serves the request; memory comes from its arena, 50 KiB per level at most.
 */
#ifndef COPPICE_HTTP_LIVING_H
#define COPPICE_HTTP_LIVING_H

#include "runtime/json.h"
#include "runtime/supervisor.h"

#define LIVING_CHILDREN_DEFAULT 100u
#define LIVING_CHILDREN_MAX     200u /* so that they fit into one message and one piece of an arena */
#define LIVING_DEPTH_MAX        16u
#define LIVING_ANSWER_MS        500 /* for one supervisor or one scheduler to answer */

/* What was declared about a subsystem; made from the topology by whoever starts this floor. Borrowed for
 * ever. */
struct living_row {
    const char *name; /* "rooms"; with "instance:<instance_id>" standing for all of that form */
    const char *owner;
    bool per_key;         /* started by its parent as keys come up, not at boot */
    const char *declared; /* all columns, as a JSON object */
};

struct living_rows {
    const char *contract;
    const struct living_row *rows; /* in start order, the root first */
    size_t count;
};

/* The row that declares this name, or NULL. */
const struct living_row *living_row_of(const struct living_rows *rows, const char *name);

/* {"contract":..., "declared":[...], "missing":[names], "tree":{...}} */
void living_write_json(const struct living_rows *rows, struct json *json, size_t children);
/* A drawing for people. */
void living_write_text(const struct living_rows *rows, struct json_sink *sink, size_t children);
/* How many declared rows have no living actor. */
size_t living_missing(const struct living_rows *rows);

#endif
