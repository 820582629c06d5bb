/* coppice chaos list, coppice chaos run SCENARIO|all. The exit status of a run: 0 what must hold held; 1 it did not, or could not be
 * tried there; 64 what was asked for can't be meant, or there is no server; with --control 0 when the check has noticed. */
#ifndef COPPICE_CONFIG_CHAOS_COMMAND_H
#define COPPICE_CONFIG_CHAOS_COMMAND_H

#include "config/options.h"

int command_chaos_list(const struct options *o);
int command_chaos_run(const struct options *o);

#endif
