/* Options: what the command line and the environment may say, each in one row.
 *
 * A row makes the flag (--operator-listen), the variable (COPPICE_OPERATOR_LISTEN), the field of struct
 * options, the parser, the checks and the help. Flags win over the environment, the environment over the
 * defaults. Whatever is not fully understood is refused with a sentence that names the option, the value and
 * what would be right, and the exit status to leave with: 64 for a command line that cannot be meant, 78 for
 * a value that cannot be used.
 *
 * Called once by main before anything else exists. Strings are borrowed from argv and the environment.
 */
#ifndef COPPICE_CONFIG_OPTIONS_H
#define COPPICE_CONFIG_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/json.h"

#define EXIT_USAGE  64
#define EXIT_CONFIG 78

#define LOG_LEVELS(X)     \
    X(LOG_DEBUG, "debug") \
    X(LOG_INFO, "info")   \
    X(LOG_WARN, "warn")   \
    X(LOG_ERROR, "error")

enum log_level {
#define X(name, text) name,
    LOG_LEVELS(X)
#undef X
        LOG_LEVEL_COUNT
};

struct intensity {
    uint32_t restarts;
    uint64_t period_ns;
};

/* What a command takes is a bit in the commands column of an option. */
#define COMMANDS(X)                                                        \
    X(SERVE, "serve", "start the server; it runs until SIGTERM or SIGINT") \
    X(TREE, "tree", "draw the living tree of a running server")            \
    X(TOPOLOGY, "topology", "print the declared topology")                 \
    X(VERSION, "version", "print the version")                             \
    X(HELP, "help", "print this, or the options of one command")

enum command {
#define X(id, name, prose) COMMAND_##id,
    COMMANDS(X)
#undef X
        COMMAND_COUNT
};

/* How a kind of value is kept, and what its limits are counted in: counts in ones, durations in ns, sizes in
 * bytes, the period of an intensity in seconds; limits of the others say nothing. */
#define OPTION_KIND_COUNT     uint64_t
#define OPTION_KIND_DURATION  uint64_t
#define OPTION_KIND_SIZE      uint64_t
#define OPTION_KIND_FLAG      bool
#define OPTION_KIND_TEXT      const char *
#define OPTION_KIND_INTENSITY struct intensity
#define OPTION_KIND_LEVEL     enum log_level

#define FOR(command)          (1u << COMMAND_##command)
#define US                    UINT64_C(1000)
#define MS                    UINT64_C(1000000)
#define S                     UINT64_C(1000000000)
#define MIB                   (UINT64_C(1) << 20)

/* X(field, "key", kind, commands, min, max, "default", "unit", "prose") */
#define OPTIONS(X)                                                                                           \
    X(schedulers, "schedulers", COUNT, FOR(SERVE), 0, 64, "0", "threads",                                    \
      "scheduler threads; 0: one for each CPU this process may use")                                         \
    X(operator_listen, "operator.listen", TEXT, FOR(SERVE) | FOR(TREE), 0, 0, "127.0.0.1:7070", "address",   \
      "where operators connect: a loopback address and port (0: any free one), or unix:PATH")                \
    X(operator_connections, "operator.connections", COUNT, FOR(SERVE), 1, 4096, "256", "connections",        \
      "operators connected at a time; one more is answered 503")                                             \
    X(operator_idle, "operator.idle", DURATION, FOR(SERVE), 1 * S, 3600 * S, "30s", "time",                  \
      "how long an operator's connection may say nothing, and a request may take to arrive")                 \
    X(guardian, "guardian", FLAG, FOR(SERVE), 0, 0, "false", "",                                             \
      "watch over the server process and start it again when it ends abnormally")                            \
    X(guardian_intensity, "guardian.intensity", INTENSITY, FOR(SERVE), 1, 3600, "5/60s", "restarts/seconds", \
      "how often the guardian starts the server again before it gives up with status 70")                    \
    X(slice, "slice", DURATION, FOR(SERVE), 100 * US, 1 * S, "1ms", "time",                                  \
      "a handler computing longer is switched out")                                                          \
    X(runaway, "runaway", DURATION, FOR(SERVE), 1 * MS, 3600 * S, "1s", "time",                              \
      "a handler computing longer is ended; at least the slice")                                             \
    X(preemption, "preemption", FLAG, FOR(SERVE), 0, 0, "true", "",                                          \
      "switch out handlers that compute too long; off for debuggers")                                        \
    X(containment, "containment", FLAG, FOR(SERVE), 0, 0, "true", "",                                        \
      "a fault in an actor ends that actor only; off: it ends the process, with a core if enabled")          \
    X(actors_max, "actors.max", COUNT, FOR(SERVE), 1024, 16777214, "4194304", "actors",                      \
      "living actors per scheduler")                                                                         \
    X(message_memory, "message.memory", SIZE, FOR(SERVE), 16 * MIB, 1048576 * MIB, "1GiB", "bytes",          \
      "of memory for messages, for each of the 11 sizes of them and for arenas")                             \
    X(adapters, "adapters", TEXT, FOR(SERVE), 0, 0, "clock,descriptors", "names",                            \
      "adapters that must be ready before the server is; clock, descriptors")                                \
    X(descriptors, "descriptors", COUNT, FOR(SERVE), 64, 1048576, "1024", "descriptors",                     \
      "file descriptors that the adapter of that name makes sure of")                                        \
    X(deduper_window, "deduper.window", COUNT, FOR(SERVE), 64, 4194304, "65536", "keys",                     \
      "message keys remembered; a new one beyond that pushes the oldest out")                                \
    X(deduper_expiry, "deduper.expiry", DURATION, FOR(SERVE), 1 * S, 604800 * S, "10m", "time",              \
      "how long a message key is remembered")                                                                \
    X(log_level, "log.level", LEVEL, FOR(SERVE), 0, 0, "info", "",                                           \
      "the least important lines that are written: debug, info, warn, error")                                \
    X(json, "json", FLAG, FOR(TREE) | FOR(TOPOLOGY) | FOR(VERSION), 0, 0, "false", "", "print JSON")

struct options {
#define X(field, key, kind, ...) OPTION_KIND_##kind field;
    OPTIONS(X)
#undef X
    enum command command;
    const char *topic; /* of help: a command's name or NULL */
};

/* 0, or the exit status to leave with and why. `environment` is NULL-terminated, as environ. */
int options_parse(struct options *ret_options, int argc, char *const argv[], char *const environment[],
                  char *ret_text, size_t text_size);

/* What the command of this name does and takes; the overview of all when topic is NULL. */
void options_write_help(struct json_sink *sink, const char *topic);

const char *log_level_name(enum log_level level);

#endif
