/* The log: one JSON object per line on standard error, or words for people.
 *
 *     {"ts":"2026-01-31T23:59:59.123Z","level":"info","logger":"boot","msg":"started","pid":12}
 *     2026-01-31T23:59:59.123Z INFO  boot: started pid=12
 *
 * Lines below the level are left out; the level may change at any time. What is written by an actor says which ("actor").
 * Values of members whose names are those of secrets (log_secret) become ***, wherever the line comes from, and so does
 * what follows "Bearer ". When standard error is the journal's socket (JOURNAL_STREAM), each line begins with its
 * priority, <3> to <7>.
 *
 * A reader that doesn't read never stops the service: when standard error takes nothing more, lines are dropped and
 * counted, and the next line that passes says how many. Pipes, terminals and sockets are never waited for; where the
 * system doesn't let a descriptor be opened again for that, two threads that write at the instant it fills up may both
 * wait for its reader. Any thread; inside actors 16 KiB of stack.
 */
#ifndef COPPICE_CONFIG_LOG_H
#define COPPICE_CONFIG_LOG_H

#include "config/options.h"
#include "runtime/telemetry.h"

/* What a pipe takes in one piece; longer lines lose their fields, not their form. */
#define LOG_LINE_MAX 4096

struct log_field {
    const char *name;
    const char *text; /* NULL: the number counts; log_null: nothing is known, and the line says null */
    int64_t number;
};
extern const char log_null[];

/* From now on at this level, to what standard error is now. Again after standard error became something else. */
void log_open(enum log_level level);
enum log_level log_level_here(void);
/* Telemetry that matters at the new level follows. Any thread but not a subscriber of telemetry. */
void log_set_level(enum log_level level);
void log_set_text(bool text); /* words for people instead of JSON */
/* JOURNAL_STREAM as the environment has it ("8:12345"), or NULL. Lines get their priority when it is standard error. */
void log_set_journal(const char *stream);

void log_write(enum log_level level, const char *logger, const char *message, const struct log_field *fields,
               size_t count);
#define LOG(level, logger, message, ...)                                             \
    log_write((level), (logger), (message), (const struct log_field[]){__VA_ARGS__}, \
              sizeof((const struct log_field[]){__VA_ARGS__}) / sizeof(struct log_field))

/* A line made elsewhere, one JSON object without its newline: runtime_options.log. The time is added, the logger
 * ("runtime") when there is none, and its level counts when it has one. */
void log_line(const char *line, size_t size);
/* Whether a line of this level would be kept: runtime_options.logs. */
bool log_wants(const char *level);
/* From now on telemetry events that matter at the level are lines, too. Before the runtime runs. */
void log_follow(struct telemetry *telemetry);

/* Whether a member of this name holds a secret: password, secret, token, authorization, api_key, ... */
bool log_secret(const char *name, size_t length);
uint64_t log_dropped(void); /* lines that nobody was told about yet */

#endif
