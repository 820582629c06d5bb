/* Commands about jobs, which ask a running server over the operator's listener. Each returns the exit status, as config/commands.h
 * has it. */
#ifndef COPPICE_CONFIG_JOB_COMMANDS_H
#define COPPICE_CONFIG_JOB_COMMANDS_H

#include "config/options.h"

int command_inspect_job(const struct options *o);
/* What never changes of a client (JOB-024); its key is at GET /clients/{client_id}. */
int command_inspect_client(const struct options *o);
int command_inspect_report(const struct options *o);
int command_explain(const struct options *o);
/* All jobs of all clients with what became of them (JOB-003), however many they are: each page is printed when it has come. At the
 * end, on standard error, how many there were in each state. */
int command_report(const struct options *o);

#endif
