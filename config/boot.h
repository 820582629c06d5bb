/* Boot: from checked options and the checked topology to a running tree, and back to an exit status.
 *
 * boot_check refuses before anything is started. boot_serve builds the runtime and the root supervisor from
 * the rows of config/topology.c, runs until SIGTERM or SIGINT (a second one ends at once) or until the root's
 * restart budget is spent, and gives the exit status.
 */
#ifndef COPPICE_CONFIG_BOOT_H
#define COPPICE_CONFIG_BOOT_H

#include "config/options.h"
#include "runtime/error.h"

/* Topology and what no single option can see. A refusal is a sentence; it is logged as failure.boot_config,
 * too. */
enum error boot_check(const struct options *o, char *ret_text, size_t text_size);

struct boot {
    const struct options *options; /* checked; borrowed */
    int listening;                 /* the operator's socket; stays open */
};
/* For guardian_run: `arg` is a struct boot. */
int boot_serve(void *arg);

#endif
