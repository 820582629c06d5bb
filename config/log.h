/* The log: one JSON object per line on standard error.
 *
 * Lines below the level are left out. A reader that doesn't read never stops the service: when standard error
 * takes nothing more, lines are dropped and counted, and the next line that passes says how many. Any thread;
 * two threads that write at the instant the pipe fills up may both wait for its reader, which is the one case
 * that is left.
 */
#ifndef COPPICE_CONFIG_LOG_H
#define COPPICE_CONFIG_LOG_H

#include "config/options.h"
#include "runtime/telemetry.h"

#define LOG_LINE_MAX \
    4096 /* what a pipe takes in one piece; longer lines lose their fields, not their form \
                           */

struct log_field {
    const char *name;
    const char *text; /* NULL: the number counts */
    int64_t number;
};

void log_open(enum log_level level);
void log_write(enum log_level level, const char *logger, const char *message, const struct log_field *fields,
               size_t count);
#define LOG(level, logger, message, ...)                                             \
    log_write((level), (logger), (message), (const struct log_field[]){__VA_ARGS__}, \
              sizeof((const struct log_field[]){__VA_ARGS__}) / sizeof(struct log_field))

/* The runtime's own lines, one JSON object without its newline: runtime_options.log. The time is added. */
void log_line(const char *line, size_t size);
/* From now on telemetry events that matter at this level are lines, too. Before the runtime runs. */
void log_follow(struct telemetry *telemetry);

#endif
