/* The commands over a data directory: check, stat, backup, restore, export, replay.
 *
 * Each prints what was asked for into the sink and returns the status to leave with: 0, or with a sentence in ret_why
 * that of the error (store/environment.h), 65 for findings of a check and for a backup or a journal that isn't one,
 * 73 for a directory that is in the way. They look at a store as guests, beside its server or when none runs; restore
 * and replay make one. What believes a file that may be damaged does so in a child process.
 */
#ifndef COPPICE_CONFIG_DATA_H
#define COPPICE_CONFIG_DATA_H

#include "config/options.h"

typedef int data_command(const struct options *o, struct json_sink *sink, char *ret_why, size_t why_size);

data_command data_check; /* findings go to standard error, one line each */
data_command data_stat;
data_command data_backup;
data_command data_restore;
data_command data_export;
data_command data_replay;

#endif
