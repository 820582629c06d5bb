/* Boot: from checked options and the checked topology to a running tree, and back to an exit status.
 *
 * boot_check refuses before anything is started. boot_serve builds the runtime and the root supervisor from
 * the rows of config/topology.c, runs until SIGTERM or SIGINT (a second one ends at once) or until the root's
 * restart budget is spent, and gives the exit status.
 */
#ifndef COPPICE_CONFIG_BOOT_H
#define COPPICE_CONFIG_BOOT_H

#include "config/settings.h"
#include "config/sockets.h"
#include "config/topology.h"

struct boot { /* all of it borrowed */
    const struct settings *settings;
    const struct topology_row *rows;
    size_t rows_count;
    const struct sockets *sockets; /* NULL for boot_check; they stay open */
    int argc;                      /* for reloads */
    char *const *argv;
};

/* Topology, and what the settings rely on outside (config/outside.h); opens nothing. A refusal is a sentence; it is logged as
 * failure.boot_config, too, and nothing has been started or made. */
enum error boot_check(const struct boot *boot, char *ret_text, size_t text_size);
/* What has been checked. `arg` is a struct boot, for guardian_run. */
int boot_serve(void *arg);

#endif
