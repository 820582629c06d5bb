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
/* What has been checked. */
int boot_serve(const struct boot *boot);
/* For guardian_run; `arg` is a struct boot. A server that is started again reads its settings again, as one does that a service manager
 * starts. What the guardian has made of them stays: sockets, and so schedulers. Settings that can't be used are told, and those of the
 * guardian's own start count. */
int boot_serve_guarded(void *arg, bool again);

#endif
