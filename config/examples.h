/* Examples of command lines: what help shows first, and the EXAMPLES of the manual. One row for each, at least one of every
 * command; each can be typed as it stands once there is such a server, store or id. */
#ifndef COPPICE_CONFIG_EXAMPLES_H
#define COPPICE_CONFIG_EXAMPLES_H

#include "config/options.h"

struct example {
    enum command command;
    const char *line; /* behind "coppice "; words in single quotes are one */
    const char *what; /* what that does */
};
extern const struct example examples[];
extern const size_t examples_count;

#endif
