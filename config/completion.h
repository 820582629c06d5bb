/* Completion of command lines for bash, zsh and fish, generated from the tables of options and commands. */
#ifndef COPPICE_CONFIG_COMPLETION_H
#define COPPICE_CONFIG_COMPLETION_H

#include "config/options.h"

/* False: there is no such shell; `shell` must be bash, zsh or fish. */
bool completion_write(struct json_sink *sink, const char *shell);
int command_completion(const struct options *o);

#endif
