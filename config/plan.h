/* The plan: the tree that boot starts, made from the rows of the topology and from what the command line says.
 *
 * One block with every supervisor's spec, every child's arguments and the operator's view of the rows. The running tree
 * borrows from it, so it is destroyed after the runtime. Children stand in the order of their rows; a row per key is left
 * to its parent.
 */
#ifndef COPPICE_CONFIG_PLAN_H
#define COPPICE_CONFIG_PLAN_H

#include "actors/adapters.h"
#include "config/fronts.h"
#include "config/topology.h"

struct plan;

/* Checked rows and options, borrowed. NULL when there is no memory. Its rows are there from now on (plan_rows), and the
 * fronts that are made with them come before plan_finish. */
struct plan *plan_create(const struct options *o, const struct topology_row *rows, size_t count);
const struct living_rows *plan_rows(const struct plan *plan);
/* The listeners: one for each scheduler's share of each address, and a supervisor of connections beside it. */
void plan_finish(struct plan *plan, struct fronts *fronts, const struct sockets *sockets);
/* How the root is spawned; borrows from the plan. */
struct spawn_options plan_root(const struct plan *plan);
void plan_destroy(struct plan *plan); /* accepts NULL */

/* "clock,descriptors": the adapters of these names. False: what is wrong with the setting, as the end of a sentence. */
bool plan_adapters(const char *list, struct adapters_args *ret_args, char *ret_text, size_t text_size);

#endif
