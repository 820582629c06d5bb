#include "config/options.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "config/nearest.h"
#include "runtime/assert.h"

enum option_kind {
    KIND_COUNT,
    KIND_DURATION,
    KIND_SIZE,
    KIND_FLAG,
    KIND_TEXT,
    KIND_INTENSITY,
    KIND_LEVEL,
};

struct option {
    const char *key;
    enum option_kind kind;
    unsigned commands;
    uint64_t min, max;
    const char *preset, *unit, *prose;
    size_t offset;
};

static const struct option table[] = {
#define X(field_, key_, kind_, commands_, min_, max_, preset_, unit_, prose_) \
    {.key = key_,                                                             \
     .kind = KIND_##kind_,                                                    \
     .commands = commands_,                                                   \
     .min = min_,                                                             \
     .max = max_,                                                             \
     .preset = preset_,                                                       \
     .unit = unit_,                                                           \
     .prose = prose_,                                                         \
     .offset = offsetof(struct options, field_)},
    OPTIONS(X)
#undef X
};

enum { OPTION_COUNT = sizeof(table) / sizeof(*table), NAME_SIZE = 48, VALUE_SHOWN_MAX = 120 };

static const char *const command_names[] = {
#define X(id, name, prose) [COMMAND_##id] = name,
    COMMANDS(X)
#undef X
};

static const char *const command_prose[] = {
#define X(id, name, prose) [COMMAND_##id] = prose,
    COMMANDS(X)
#undef X
};

const char *log_level_name(enum log_level level)
{
    static const char *const names[] = {
#define X(name, text) [name] = text,
        LOG_LEVELS(X)
#undef X
    };
    return names[level];
}

/* What is being parsed, for the refusals. */
struct parse {
    struct options *options;
    char *text;
    size_t text_size;
    int status;
};

__attribute__((format(printf, 3, 4))) static int refuse(struct parse *p, int status, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(p->text, p->text_size, format, list);
    va_end(list);
    p->status = status;
    return status;
}

/* ---- names ---- */

/* operator.listen -> --operator-listen */
static void flag_name(const struct option *o, char name[NAME_SIZE])
{
    snprintf(name, NAME_SIZE, "--%s", o->key);
    for (char *c = name; *c; c++)
        if (*c == '.')
            *c = '-';
}

/* operator.listen -> COPPICE_OPERATOR_LISTEN */
static void variable_name(const struct option *o, char name[NAME_SIZE])
{
    snprintf(name, NAME_SIZE, "COPPICE_%s", o->key);
    for (char *c = name; *c; c++)
        *c = *c == '.' ? '_' : *c >= 'a' && *c <= 'z' ? (char)(*c - 'a' + 'A') : *c;
}

/* ---- values ---- */

struct unit {
    const char *name;
    uint64_t factor;
};

static const struct unit durations[] = {{"ns", 1},     {"us", US},      {"ms", MS}, {"s", S},
                                        {"m", 60 * S}, {"h", 3600 * S}, {NULL, 0}};
static const struct unit sizes[] = {{"B", 1},           {"KiB", 1 << 10},   {"MiB", MIB},
                                    {"GiB", MIB << 10}, {"TiB", MIB << 20}, {NULL, 0}};

static bool digits(const char **text, uint64_t *ret_value)
{
    uint64_t value = 0;
    const char *c = *text;
    if (*c < '0' || *c > '9')
        return false;
    for (; *c >= '0' && *c <= '9'; c++)
        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*c - '0'), &value))
            return false;
    *text = c;
    *ret_value = value;
    return true;
}

/* 1h30m, 250us, 64MiB: numbers with units, added up; the whole text or nothing. */
static bool quantity(const char *text, const struct unit *units, uint64_t *ret_value)
{
    uint64_t sum = 0;
    do {
        uint64_t number;
        if (!digits(&text, &number))
            return false;
        size_t length = strcspn(text, "0123456789");
        const struct unit *u = units;
        while (u->name && (strlen(u->name) != length || memcmp(u->name, text, length) != 0))
            u++;
        if (!u->name || __builtin_mul_overflow(number, u->factor, &number) ||
            __builtin_add_overflow(sum, number, &sum))
            return false;
        text += length;
    } while (*text);
    *ret_value = sum;
    return true;
}

/* The largest unit that leaves a whole number. */
static void quantity_text(uint64_t value, const struct unit *units, char *text, size_t size)
{
    const struct unit *best = units;
    for (const struct unit *u = units; u->name; u++)
        if (value && value % u->factor == 0)
            best = u;
    snprintf(text, size, "%llu%s", (unsigned long long)(value / best->factor), best->name);
}

static bool flag_value(const char *text, bool *ret_value)
{
    static const char *const words[] = {"false", "true", "off", "on", "no", "yes", "0", "1"};
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (strcmp(text, words[i]) == 0) {
            *ret_value = i % 2 != 0;
            return true;
        }
    return false;
}

/* 5/60s */
static bool intensity_value(const struct option *o, const char *text, struct intensity *ret_value)
{
    uint64_t restarts, period;
    if (!digits(&text, &restarts) || *text != '/' || !quantity(text + 1, durations, &period))
        return false;
    if (restarts > 1000 || period < o->min * S || period > o->max * S)
        return false;
    *ret_value = (struct intensity){.restarts = (uint32_t)restarts, .period_ns = period};
    return true;
}

static bool level_value(const char *text, enum log_level *ret_value)
{
    for (int i = 0; i < LOG_LEVEL_COUNT; i++)
        if (strcmp(text, log_level_name((enum log_level)i)) == 0) {
            *ret_value = (enum log_level)i;
            return true;
        }
    return false;
}

static bool in_range(const struct option *o, uint64_t value)
{
    return value >= o->min && value <= o->max;
}

/* What would be right, as the end of a sentence that begins "it must be". */
static void right_value(const struct option *o, char *text, size_t size)
{
    char min[32], max[32];
    switch (o->kind) {
    case KIND_COUNT:
        snprintf(text, size, "a whole number from %llu to %llu", (unsigned long long)o->min,
                 (unsigned long long)o->max);
        break;
    case KIND_DURATION:
        quantity_text(o->min, durations, min, sizeof(min));
        quantity_text(o->max, durations, max, sizeof(max));
        snprintf(text, size, "a duration from %s to %s, such as %s", min, max, o->preset);
        break;
    case KIND_SIZE:
        quantity_text(o->min, sizes, min, sizeof(min));
        quantity_text(o->max, sizes, max, sizeof(max));
        snprintf(text, size, "a size from %s to %s, such as %s", min, max, o->preset);
        break;
    case KIND_FLAG:
        snprintf(text, size, "true or false");
        break;
    case KIND_TEXT:
        snprintf(text, size, "a text, such as %s", o->preset);
        break;
    case KIND_INTENSITY:
        snprintf(text, size, "<restarts>/<time> with 0 to 1000 restarts in %llu to %llu seconds, such as %s",
                 (unsigned long long)o->min, (unsigned long long)o->max, o->preset);
        break;
    case KIND_LEVEL:
        snprintf(text, size, "debug, info, warn or error");
        break;
    }
}

static bool take(struct options *options, const struct option *o, const char *value)
{
    void *field = (char *)options + o->offset;
    uint64_t number;
    switch (o->kind) {
    case KIND_COUNT:
        if (!digits(&value, &number) || *value || !in_range(o, number))
            return false;
        *(uint64_t *)field = number;
        return true;
    case KIND_DURATION:
    case KIND_SIZE:
        if (!quantity(value, o->kind == KIND_SIZE ? sizes : durations, &number) || !in_range(o, number))
            return false;
        *(uint64_t *)field = number;
        return true;
    case KIND_FLAG:
        return flag_value(value, field);
    case KIND_TEXT:
        *(const char **)field = value;
        return *value != 0;
    case KIND_INTENSITY:
        return intensity_value(o, value, field);
    case KIND_LEVEL:
        return level_value(value, field);
    }
    return false;
}

/* source: the flag or the variable that brought the value. */
static int set(struct parse *p, const struct option *o, const char *source, const char *value)
{
    char right[160];
    if (take(p->options, o, value))
        return 0;
    right_value(o, right, sizeof(right));
    return refuse(p, EXIT_CONFIG, "%s is '%.*s'; it must be %s", source, VALUE_SHOWN_MAX, value, right);
}

/* ---- command line ---- */

static int unknown_option(struct parse *p, const char *argument, size_t length)
{
    char names[OPTION_COUNT][NAME_SIZE], word[NAME_SIZE];
    snprintf(word, sizeof(word), "%.*s", (int)(length < NAME_SIZE ? length : NAME_SIZE - 1), argument);
    struct nearest near = {.word = word};
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        if (!(table[i].commands >> p->options->command & 1))
            continue;
        flag_name(&table[i], names[i]);
        nearest_offer(&near, names[i]);
    }
    const char *command = command_names[p->options->command];
    if (near.best)
        return refuse(p, EXIT_USAGE, "%s has no option '%s'; did you mean %s?", command, word, near.best);
    return refuse(p, EXIT_USAGE, "%s has no option '%s'; 'coppice help %s' lists those it has", command, word,
                  command);
}

/* --no-NAME and --NAME for flags; --NAME VALUE and --NAME=VALUE for all. Moves *at over what it took. */
static int parse_option(struct parse *p, int argc, char *const argv[], int *at)
{
    const char *argument = argv[*at];
    size_t length = strcspn(argument, "=");
    char name[NAME_SIZE], negated[NAME_SIZE + 3];
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option *o = &table[i];
        if (!(o->commands >> p->options->command & 1))
            continue;
        flag_name(o, name);
        if (o->kind == KIND_FLAG && !argument[length]) {
            snprintf(negated, sizeof(negated), "--no-%s", name + 2);
            if (strcmp(argument, name) == 0 || strcmp(argument, negated) == 0)
                return set(p, o, name, strcmp(argument, name) == 0 ? "true" : "false");
        }
        if (strlen(name) != length || memcmp(name, argument, length) != 0)
            continue;
        if (argument[length])
            return set(p, o, name, argument + length + 1);
        if (*at + 1 == argc)
            return refuse(p, EXIT_USAGE, "%s needs a value, such as %s %s", name, name, o->preset);
        return set(p, o, name, argv[++*at]);
    }
    return unknown_option(p, argument, length);
}

static int parse_command(struct parse *p, const char *word)
{
    struct nearest near = {.word = word};
    for (int i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(word, command_names[i]) == 0) {
            p->options->command = (enum command)i;
            return 0;
        }
        nearest_offer(&near, command_names[i]);
    }
    if (near.best)
        return refuse(p, EXIT_USAGE, "there is no command '%.*s'; did you mean %s?", VALUE_SHOWN_MAX, word,
                      near.best);
    return refuse(p, EXIT_USAGE, "there is no command '%.*s'; 'coppice help' lists them", VALUE_SHOWN_MAX,
                  word);
}

/* -h and --help anywhere ask for help about the command; --version is the command of that name. */
static bool asks_for_help(const char *argument)
{
    return strcmp(argument, "-h") == 0 || strcmp(argument, "--help") == 0;
}

static int parse_arguments(struct parse *p, int argc, char *const argv[])
{
    struct options *o = p->options;
    if (argc < 2)
        return refuse(p, EXIT_USAGE,
                      "a command is missing; 'coppice serve' starts the server, 'coppice help' says more");
    if (asks_for_help(argv[1]))
        o->command = COMMAND_HELP;
    else if (strcmp(argv[1], "--version") == 0)
        o->command = COMMAND_VERSION;
    else if (parse_command(p, argv[1]) != 0)
        return p->status;
    for (int i = 2; i < argc; i++) {
        if (asks_for_help(argv[i])) {
            o->topic = o->command == COMMAND_HELP ? NULL : command_names[o->command];
            o->command = COMMAND_HELP;
            return 0;
        }
        if (argv[i][0] == '-' && argv[i][1]) {
            if (parse_option(p, argc, argv, &i) != 0)
                return p->status;
        } else if (o->command == COMMAND_HELP && !o->topic) {
            if (parse_command(p, argv[i]) != 0)
                return p->status;
            o->topic = command_names[o->command];
            o->command = COMMAND_HELP;
        } else {
            return refuse(p, EXIT_USAGE, "%s takes no argument '%.*s'", command_names[o->command],
                          VALUE_SHOWN_MAX, argv[i]);
        }
    }
    return 0;
}

/* ---- environment ---- */

/* A variable that no option has is refused when it is nearly one, and left alone otherwise: service discovery
 * puts variables with our prefix into the environment of a service that is called coppice. */
static int parse_variable(struct parse *p, const char *entry)
{
    char names[OPTION_COUNT][NAME_SIZE], word[NAME_SIZE];
    size_t length = strcspn(entry, "=");
    if (!entry[length] || length >= NAME_SIZE)
        return 0;
    snprintf(word, sizeof(word), "%.*s", (int)length, entry);
    struct nearest near = {.word = word + strlen("COPPICE_")};
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        variable_name(&table[i], names[i]);
        if (strcmp(names[i], word) == 0)
            return table[i].commands >> p->options->command & 1 ? set(p, &table[i], word, entry + length + 1)
                                                                : 0;
        nearest_offer(&near, names[i] + strlen("COPPICE_"));
    }
    if (near.best)
        return refuse(p, EXIT_CONFIG, "the variable %s is unknown; did you mean COPPICE_%s?", word,
                      near.best);
    return 0;
}

/* ---- all together ---- */

/* What one row alone cannot see. */
static int check_together(struct parse *p)
{
    const struct options *o = p->options;
    if (o->command == COMMAND_SERVE && o->runaway < o->slice)
        return refuse(p, EXIT_CONFIG,
                      "--runaway is %lluus and --slice is %lluus; --runaway must be at least --slice",
                      (unsigned long long)(o->runaway / US), (unsigned long long)(o->slice / US));
    return 0;
}

int options_parse(struct options *ret_options, int argc, char *const argv[], char *const environment[],
                  char *ret_text, size_t text_size)
{
    struct options options = {0}, ignored = {0};
    struct parse p = {.options = &ignored, .text = ret_text, .text_size = text_size};
    for (size_t i = 0; i < OPTION_COUNT; i++)
        ASSERT(take(&options, &table[i], table[i].preset));
    /* The command decides which variables count, so it is looked for first and everything parsed again on top
     * of them.*/
    ignored = options;
    if (parse_arguments(&p, argc, argv) != 0)
        return p.status;
    options.command = ignored.command;
    options.topic = ignored.topic;
    p.options = &options;
    if (options.command != COMMAND_HELP && options.command != COMMAND_VERSION)
        for (; *environment; environment++)
            if (strncmp(*environment, "COPPICE_", strlen("COPPICE_")) == 0 &&
                parse_variable(&p, *environment) != 0)
                return p.status;
    if (options.command != COMMAND_HELP)
        (void)parse_arguments(&p, argc, argv);
    if (check_together(&p) != 0)
        return p.status;
    *ret_options = options;
    return 0;
}

/* ---- help ---- */

static void write_options(struct json_sink *sink, enum command command)
{
    char line[512], flag[NAME_SIZE], variable[NAME_SIZE], right[160];
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option *o = &table[i];
        if (!(o->commands >> command & 1))
            continue;
        flag_name(o, flag);
        variable_name(o, variable);
        right_value(o, right, sizeof(right));
        snprintf(line, sizeof(line), "\n  %s%s%s%s\n      %s.\n      %s; default %s; %s\n", flag,
                 o->kind == KIND_FLAG ? "" : " <", o->kind == KIND_FLAG ? "" : (*o->unit ? o->unit : "word"),
                 o->kind == KIND_FLAG ? "" : ">", o->prose, right, o->preset, variable);
        json_sink_text(sink, line);
    }
}

static void write_overview(struct json_sink *sink)
{
    char line[160];
    json_sink_text(sink, "coppice serve --operator-listen 127.0.0.1:7070\n"
                         "coppice serve --guardian --schedulers 2\n"
                         "coppice tree\n\n"
                         "Commands:\n");
    for (int i = 0; i < COMMAND_COUNT; i++) {
        snprintf(line, sizeof(line), "  %-10s %s\n", command_names[i], command_prose[i]);
        json_sink_text(sink, line);
    }
    json_sink_text(
        sink,
        "\n'coppice help serve' lists the options of the server. Flags win over variables of the\n"
        "environment, these over the defaults.\n\n"
        "Exit status: 0 after a stop that was asked for; 64 a command line that cannot be meant; 69 the\n"
        "address is taken, or nobody listens there; 70 the restart budget is spent; 78 a value that\n"
        "cannot be used.\n");
}

void options_write_help(struct json_sink *sink, const char *topic)
{
    for (int i = 0; topic && i < COMMAND_COUNT; i++)
        if (strcmp(topic, command_names[i]) == 0) {
            json_sink_text(sink, "coppice ");
            json_sink_text(sink, topic);
            json_sink_text(sink, ": ");
            json_sink_text(sink, command_prose[i]);
            json_sink_text(sink, "\n");
            write_options(sink, (enum command)i);
            return;
        }
    write_overview(sink);
}
