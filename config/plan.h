/* The plan: the tree that boot starts, made from the rows of the topology and from what the command line says.
 *
 * One block with every supervisor's spec, every child's arguments and the operator's view of the rows. The running tree
 * borrows from it, so it is destroyed after the runtime. Children stand in the order of their rows; a row per key is left
 * to its parent.
 */
#ifndef COPPICE_CONFIG_PLAN_H
#define COPPICE_CONFIG_PLAN_H

#include "actors/adapters.h"
#include "config/options.h"
#include "config/topology.h"

struct plan;

/* Checked rows and options, borrowed. NULL when there is no memory. */
struct plan *plan_create(const struct options *o, const struct topology_row *rows, size_t count,
                         int listening);
/* How the root is spawned; borrows from the plan. */
struct spawn_options plan_root(const struct plan *plan);
void plan_destroy(struct plan *plan); /* accepts NULL */

/* "clock,descriptors": the adapters of these names. False: a sentence says which name is unknown. */
bool plan_adapters(const char *list, struct adapters_args *ret_args, char *ret_text, size_t text_size);

#endif
