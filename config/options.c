#include "config/options.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "actors/webhook_signature.h"
#include "config/examples.h"
#include "config/file.h"
#include "http/nearest.h"
#include "config/sockets.h"
#include "http/front.h"
#include "http/keyring.h"
#include "runtime/assert.h"
#include "store/job.h"
#include "store/signing_key.h"

#define HOUR (3600 * S)

const struct option option_table[OPTION_COUNT] = {
#define X(field_, key_, kind_, commands_, min_, max_, marks_, preset_, unit_, prose_) \
    {.key = key_,                                                                     \
     .kind = KIND_##kind_,                                                            \
     .marks = marks_,                                                                 \
     .commands = commands_,                                                           \
     .min = min_,                                                                     \
     .max = max_,                                                                     \
     .preset = preset_,                                                               \
     .unit = unit_,                                                                   \
     .prose = prose_,                                                                 \
     .offset = offsetof(struct options, field_)},
    OPTIONS(X)
#undef X
};

enum { VALUE_SHOWN_MAX = 120, WORD_SIZE = 64 };

const struct option_other option_others[OTHER_COUNT] = {
#define X(key_, field, unit_) {.key = key_, .option = &option_table[OPTION_##field], .unit = unit_},
    OTHER_NAMES(X)
#undef X
};

_Static_assert(COMMAND_COUNT <= 64, "the commands of an option are bits of a 64-bit word");

/* What is as good as the name of an option. */
static const struct {
    const char *alias, *flag;
} aliases[] = {{"-n", "--dry-run"}, {"-y", "--yes"},      {"-q", "--quiet"},
               {"-f", "--follow"},  {"--force", "--yes"}, {"--env", "--environment"}};

static const char *const command_names[] = {
#define X(id, name, argument, prose) [COMMAND_##id] = name,
    COMMANDS(X)
#undef X
};

const char *command_name(enum command command)
{
    return command_names[command];
}

const char *command_argument(enum command command)
{
    static const char *const arguments[] = {
#define X(id, name, argument, prose) [COMMAND_##id] = argument,
        COMMANDS(X)
#undef X
    };
    return arguments[command];
}

const char *command_prose(enum command command)
{
    static const char *const lines[] = {
#define X(id, name, argument, prose) [COMMAND_##id] = prose,
        COMMANDS(X)
#undef X
    };
    return lines[command];
}

const char *source_name(enum source_kind kind)
{
    static const char *const names[] = {
#define X(id, name) [SOURCE_##id] = name,
        SOURCES(X)
#undef X
    };
    return names[kind];
}

const char *log_level_name(enum log_level level)
{
    static const char *const names[] = {
#define X(name, text) [name] = text,
        LOG_LEVELS(X)
#undef X
    };
    return names[level];
}

bool log_level_of(const char *name, enum log_level *ret_level)
{
    for (int i = 0; i < LOG_LEVEL_COUNT; i++)
        if (strcmp(name, log_level_name((enum log_level)i)) == 0) {
            *ret_level = (enum log_level)i;
            return true;
        }
    return false;
}

/* What is being parsed, for the refusals. */
struct parse {
    struct options *options;
    char *text;
    size_t text_size;
    int status;
    char place[OPTION_PLACE_SIZE];
    bool call_refused; /* in the end options' */
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

static bool taken_by(const struct option *o, enum command command)
{
    return o->commands >> command & 1;
}

/* ---- names ---- */

static void flag_of(const char *key, char name[OPTION_NAME_SIZE])
{
    snprintf(name, OPTION_NAME_SIZE, "--%s", key);
    for (char *c = name; *c; c++)
        if (*c == '.' || *c == '_')
            *c = '-';
}

static void variable_of(const char *key, char name[OPTION_NAME_SIZE])
{
    snprintf(name, OPTION_NAME_SIZE, "COPPICE_%s", key);
    for (char *c = name; *c; c++)
        *c = *c == '.' ? '_' : *c >= 'a' && *c <= 'z' ? (char)(*c - 'a' + 'A') : *c;
}

void option_flag(const struct option *o, char name[OPTION_NAME_SIZE])
{
    flag_of(o->key, name);
}

void option_variable(const struct option *o, char name[OPTION_NAME_SIZE])
{
    variable_of(o->key, name);
}

const struct option_other *option_other_of(const struct option *o)
{
    for (size_t i = 0; i < OTHER_COUNT; i++)
        if (option_others[i].option == o)
            return &option_others[i];
    return NULL;
}

void option_place(enum option_position position, const struct options *options, char text[OPTION_PLACE_SIZE])
{
    const struct option *o = &option_table[position];
    const struct source *source = &options->sources[position];
    char name[OPTION_NAME_SIZE];
    if (source->kind == SOURCE_FILE) {
        snprintf(text, OPTION_PLACE_SIZE, "%s:%u: %s", source->file, source->line, o->key);
        return;
    }
    if (source->kind == SOURCE_ENVIRONMENT)
        option_variable(o, name);
    else
        option_flag(o, name);
    snprintf(text, OPTION_PLACE_SIZE, "%s", name);
}

bool option_is_setting(const struct option *o)
{
    return !(o->marks & MARK_CALL) && o != &option_table[OPTION_config];
}

/* ---- values ---- */

struct unit {
    const char *name;
    uint64_t factor;
};

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

/* 0.25, in millionths: all six places may be there, none must. */
static bool decimal_value(const char *text, uint64_t *ret_value)
{
    uint64_t whole, part = 0, unit = WHOLE;
    if (!digits(&text, &whole) || __builtin_mul_overflow(whole, WHOLE, &whole))
        return false;
    if (*text == '.' && text[1]) {
        for (text++; *text >= '0' && *text <= '9' && unit > 1; text++) {
            unit /= 10;
            part += (uint64_t)(*text - '0') * unit;
        }
    }
    *ret_value = whole + part;
    return *text == 0;
}

/* With at least one place, as it is written in JSON. */
static void decimal_text(uint64_t value, char *text, size_t size)
{
    snprintf(text, size, "%llu.%06llu", (unsigned long long)(value / WHOLE),
             (unsigned long long)(value % WHOLE));
    size_t length = strlen(text);
    while (length > 2 && text[length - 1] == '0' && text[length - 2] != '.')
        text[--length] = 0;
}

static const struct unit durations[] = {{"ns", 1},     {"us", US},  {"ms", MS}, {"s", S},
                                        {"m", 60 * S}, {"h", HOUR}, {"d", DAY}, {NULL, 0}};
static const struct unit sizes[] = {{"B", 1},           {"KiB", 1 << 10},   {"MiB", MIB},
                                    {"GiB", MIB << 10}, {"TiB", MIB << 20}, {NULL, 0}};

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

bool option_duration(const char *text, uint64_t *ret_ns)
{
    return quantity(text, durations, ret_ns);
}

/* 8h2m: what remains goes on in smaller units. */
static void duration_text(uint64_t value, char *text, size_t size)
{
    size_t used = 0;
    if (value == 0)
        snprintf(text, size, "0s");
    for (const struct unit *u = &durations[sizeof(durations) / sizeof(*durations) - 2]; value; u--)
        if (value >= u->factor) {
            int n = snprintf(text + used, size - used, "%llu%s", (unsigned long long)(value / u->factor),
                             u->name);
            used += n > 0 ? (size_t)n : 0;
            if (used >= size)
                return;
            value %= u->factor;
        }
}

/* The largest unit that leaves a whole number. */
static void size_text(uint64_t value, char *text, size_t size)
{
    const struct unit *best = sizes;
    for (const struct unit *u = sizes; u->name; u++)
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

/* One of "dev|stage|prod": the value is kept as it was given. */
static bool choice_value(const struct option *o, const char *text, const char **ret_value)
{
    size_t length = strlen(text);
    for (const char *word = o->unit; *word;) {
        size_t size = strcspn(word, "|");
        if (size == length && memcmp(word, text, size) == 0) {
            *ret_value = text;
            return true;
        }
        word += size + (word[size] == '|');
    }
    *ret_value = text;
    return length == 0 && !*o->preset;
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

static bool in_range(const struct option *o, uint64_t value)
{
    return value >= o->min && value <= o->max;
}

/* "dev|stage|prod" -> "dev, stage or prod" */
static void choice_text(const char *words, char *text, size_t size)
{
    const char *last = strrchr(words, '|');
    size_t used = 0;
    for (; *words && used + 5 < size; words++) {
        const char *between = words == last ? " or " : ", ";
        if (*words != '|') {
            text[used++] = *words;
            continue;
        }
        memcpy(text + used, between, strlen(between));
        used += strlen(between);
    }
    text[used] = 0;
}

/* Of a duration: what it is by itself, unless that is none, which shows nobody how one is written. */
static const char *example_of(const struct option *o)
{
    return strcmp(o->preset, "0s") == 0 && o->max >= 2 * S ? "2s" : o->preset;
}

void option_right(const struct option *o, char *text, size_t size)
{
    char min[64], max[64];
    switch (o->kind) {
    case KIND_COUNT:
        snprintf(text, size, "a whole number from %llu to %llu", (unsigned long long)o->min,
                 (unsigned long long)o->max);
        break;
    case KIND_DECIMAL:
        decimal_text(o->min, min, sizeof(min));
        decimal_text(o->max, max, sizeof(max));
        snprintf(text, size, "a number from %s to %s, such as %s", min, max, o->preset);
        break;
    case KIND_DURATION:
        duration_text(o->min, min, sizeof(min));
        duration_text(o->max, max, sizeof(max));
        snprintf(text, size, "a duration from %s to %s, such as %s", min, max, example_of(o));
        break;
    case KIND_SIZE:
        size_text(o->min, min, sizeof(min));
        size_text(o->max, max, sizeof(max));
        snprintf(text, size, "a size from %s to %s, such as %s", min, max, o->preset);
        break;
    case KIND_FLAG:
        snprintf(text, size, "true or false");
        break;
    case KIND_TEXT:
        snprintf(text, size, *o->preset ? "a text, such as %s" : "a text", o->preset);
        break;
    case KIND_CHOICE:
        choice_text(o->unit, text, size);
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

static const void *field_of(const struct option *o, const struct options *options)
{
    return (const char *)options + o->offset;
}

void option_show(const struct option *o, const struct options *options, char text[OPTION_VALUE_SIZE])
{
    const void *field = field_of(o, options);
    const char *words = o->kind == KIND_TEXT || o->kind == KIND_CHOICE ? *(const char *const *)field : "";
    char period[64];
    switch (o->kind) {
    case KIND_COUNT:
        snprintf(text, OPTION_VALUE_SIZE, "%llu", (unsigned long long)*(const uint64_t *)field);
        break;
    case KIND_DECIMAL:
        decimal_text(*(const uint64_t *)field, text, OPTION_VALUE_SIZE);
        break;
    case KIND_DURATION:
        duration_text(*(const uint64_t *)field, text, OPTION_VALUE_SIZE);
        break;
    case KIND_SIZE:
        size_text(*(const uint64_t *)field, text, OPTION_VALUE_SIZE);
        break;
    case KIND_FLAG:
        snprintf(text, OPTION_VALUE_SIZE, "%s", *(const bool *)field ? "true" : "false");
        break;
    case KIND_TEXT:
    case KIND_CHOICE:
        snprintf(text, OPTION_VALUE_SIZE, "%s", o->marks & MARK_SECRET && *words ? "***" : words);
        break;
    case KIND_INTENSITY: {
        const struct intensity *i = field;
        duration_text(i->period_ns, period, sizeof(period));
        snprintf(text, OPTION_VALUE_SIZE, "%u/%s", i->restarts, period);
        break;
    }
    case KIND_LEVEL:
        snprintf(text, OPTION_VALUE_SIZE, "%s", log_level_name(*(const enum log_level *)field));
        break;
    }
}

bool option_same(const struct option *o, const struct options *a, const struct options *b)
{
    const void *x = field_of(o, a), *y = field_of(o, b);
    switch (o->kind) {
    case KIND_COUNT:
    case KIND_DECIMAL:
    case KIND_DURATION:
    case KIND_SIZE:
        return *(const uint64_t *)x == *(const uint64_t *)y;
    case KIND_FLAG:
        return *(const bool *)x == *(const bool *)y;
    case KIND_TEXT:
    case KIND_CHOICE:
        return strcmp(*(const char *const *)x, *(const char *const *)y) == 0;
    case KIND_INTENSITY: {
        const struct intensity *i = x, *j = y;
        return i->restarts == j->restarts && i->period_ns == j->period_ns;
    }
    case KIND_LEVEL:
        return *(const enum log_level *)x == *(const enum log_level *)y;
    }
    return false;
}

void option_copy(const struct option *o, struct options *to, const struct options *from)
{
    static const size_t sizes_of[] = {
#define X(name, type) [KIND_##name] = sizeof(type),
        OPTION_KINDS(X)
#undef X
    };
    memcpy((char *)to + o->offset, field_of(o, from), sizes_of[o->kind]);
    to->sources[o - option_table] = from->sources[o - option_table];
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
    case KIND_DECIMAL:
        if (!decimal_value(value, &number) || !in_range(o, number))
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
        return *value || !*o->preset; /* one that is nothing by default may be nothing */
    case KIND_CHOICE:
        return choice_value(o, value, field);
    case KIND_INTENSITY:
        return intensity_value(o, value, field);
    case KIND_LEVEL:
        return log_level_of(value, field);
    }
    return false;
}

/* name: the flag, the variable or the place in the file that brought the value. */
static int set(struct parse *p, const struct option *o, const char *name, const char *value,
               struct source source)
{
    char right[160];
    if (take(p->options, o, value)) {
        p->options->sources[o - option_table] = source;
        return 0;
    }
    option_right(o, right, sizeof(right));
    p->call_refused = o->marks & MARK_CALL;
    if (o->marks & MARK_SECRET)
        return refuse(p, EXIT_CONFIG, "%s must be %s", name, right);
    return refuse(p, EXIT_CONFIG, "%s is '%.*s'; it must be %s", name, VALUE_SHOWN_MAX, value, right);
}

/* ---- the names that a specification has for them ---- */

void option_other_right(const struct option_other *other, char *text, size_t size)
{
    uint64_t unit = other->unit, least = other->option->min;
    unsigned long long first = least / unit + (least % unit != 0);
    snprintf(text, size, "a whole number from %llu to %llu", first,
             (unsigned long long)(other->option->max / unit));
}

static int set_other(struct parse *p, const struct option_other *other, const char *name, const char *value,
                     struct source source)
{
    const struct option *o = other->option;
    const char *end = value;
    uint64_t number;
    char right[160];
    if (digits(&end, &number) && !*end && !__builtin_mul_overflow(number, other->unit, &number) &&
        in_range(o, number)) {
        *(uint64_t *)((char *)p->options + o->offset) = number;
        p->options->sources[o - option_table] = source;
        return 0;
    }
    option_other_right(other, right, sizeof(right));
    return refuse(p, EXIT_CONFIG, "%s is '%.*s'; it must be %s", name, VALUE_SHOWN_MAX, value, right);
}

/* The one whose flag, variable or key this is. */
static const struct option_other *other_named(const char *name, size_t length,
                                              void (*form)(const char *key, char name[OPTION_NAME_SIZE]))
{
    char other[OPTION_NAME_SIZE];
    for (size_t i = 0; i < OTHER_COUNT; i++) {
        form(option_others[i].key, other);
        if (strlen(other) == length && memcmp(other, name, length) == 0)
            return &option_others[i];
    }
    return NULL;
}

/* ---- command line ---- */

static const struct source from_flag = {.kind = SOURCE_FLAG};

static int unknown_option(struct parse *p, const char *argument, size_t length)
{
    char names[OPTION_COUNT][OPTION_NAME_SIZE], word[OPTION_NAME_SIZE];
    snprintf(word, sizeof(word), "%.*s", (int)(length < sizeof(word) ? length : sizeof(word) - 1), argument);
    struct nearest near = {.word = word};
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        if (!taken_by(&option_table[i], p->options->command))
            continue;
        option_flag(&option_table[i], names[i]);
        nearest_offer(&near, names[i]);
    }
    const char *command = command_names[p->options->command];
    if (near.best)
        return refuse(p, EXIT_USAGE, "%s has no option '%s'; did you mean %s?", command, word, near.best);
    return refuse(p, EXIT_USAGE, "%s has no option '%s'; 'coppice help %s' lists those it has", command, word,
                  command);
}

/* Most options aren't it, and their names needn't be made to see that. */
static bool may_be(const struct option *o, const char *argument)
{
    return strncmp(argument, "--", 2) == 0 &&
           (argument[2] == o->key[0] || strncmp(argument, "--no-", strlen("--no-")) == 0);
}

/* --no-NAME and --NAME for flags; --NAME VALUE and --NAME=VALUE for all. Moves *at over what it took. */
static int parse_option(struct parse *p, int argc, char *const argv[], int *at)
{
    const char *argument = argv[*at], *value;
    char name[OPTION_NAME_SIZE], negated[OPTION_NAME_SIZE + 3];
    const size_t typed = strcspn(argument, "=");
    size_t length = typed;
    value = argument[length] ? argument + length + 1 : NULL;
    for (size_t i = 0; i < sizeof(aliases) / sizeof(*aliases); i++)
        if (strlen(aliases[i].alias) == typed && memcmp(aliases[i].alias, argv[*at], typed) == 0) {
            argument = aliases[i].flag;
            length = strlen(argument);
        }
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option *o = &option_table[i];
        if (!taken_by(o, p->options->command) || !may_be(o, argument))
            continue;
        option_flag(o, name);
        if (o->kind == KIND_FLAG && !value) {
            snprintf(negated, sizeof(negated), "--no-%s", name + 2);
            if (strcmp(argument, name) == 0 || strcmp(argument, negated) == 0)
                return set(p, o, name, strcmp(argument, name) == 0 ? "true" : "false", from_flag);
        }
        if (strlen(name) != length || memcmp(name, argument, length) != 0)
            continue;
        if (value)
            return set(p, o, name, value, from_flag);
        if (*at + 1 == argc)
            return refuse(p, EXIT_USAGE, "%s needs a value, such as %s %s", name, name,
                          *o->preset ? o->preset : o->unit);
        return set(p, o, name, argv[++*at], from_flag);
    }
    const struct option_other *other = other_named(argument, length, flag_of);
    if (!other || !taken_by(other->option, p->options->command))
        return unknown_option(p, argv[*at], typed); /* by the name that was typed */
    flag_of(other->key, name);
    if (!value && *at + 1 == argc)
        return refuse(p, EXIT_USAGE, "%s needs a value, a whole number", name);
    return set_other(p, other, name, value ? value : argv[++*at], from_flag);
}

/* The first word of a name of two; 0 when it has one. */
static size_t noun_length(const char *name)
{
    const char *space = strchr(name, ' ');
    return space ? (size_t)(space - name) : 0;
}

static bool is_noun(const char *word)
{
    for (int i = 0; i < COMMAND_COUNT; i++) {
        size_t length = noun_length(command_names[i]);
        if (length && strlen(word) == length && memcmp(word, command_names[i], length) == 0)
            return true;
    }
    return false;
}

static int unknown_verb(struct parse *p, const char *noun, const char *verb)
{
    struct nearest near = {.word = verb ? verb : ""};
    char verbs[160] = "";
    size_t used = 0;
    for (int i = 0; i < COMMAND_COUNT; i++) {
        size_t length = noun_length(command_names[i]);
        if (!length || strlen(noun) != length || memcmp(noun, command_names[i], length) != 0)
            continue;
        nearest_offer(&near, command_names[i] + length + 1);
        int n = snprintf(verbs + used, sizeof(verbs) - used, "%s%s", used ? ", " : "",
                         command_names[i] + length + 1);
        used += n > 0 ? (size_t)n : 0;
    }
    if (verb && near.best)
        return refuse(p, EXIT_USAGE, "%s has no '%.*s'; did you mean %s %s?", noun, VALUE_SHOWN_MAX, verb,
                      noun, near.best);
    if (verb)
        return refuse(p, EXIT_USAGE, "%s has no '%.*s'; it has %s", noun, VALUE_SHOWN_MAX, verb, verbs);
    return refuse(p, EXIT_USAGE, "%s is not enough; say what about them: %s", noun, verbs);
}

/* One word, or two of them: moves *at behind what it took. */
static int parse_command(struct parse *p, int argc, char *const argv[], int *at)
{
    const char *word = argv[*at], *verb = *at + 1 < argc ? argv[*at + 1] : NULL;
    struct nearest near = {.word = word};
    char nouns[COMMAND_COUNT][32];
    for (int i = 0; i < COMMAND_COUNT; i++) {
        size_t length = noun_length(command_names[i]);
        if (length) {
            snprintf(nouns[i], sizeof(nouns[i]), "%.*s", (int)length, command_names[i]);
            nearest_offer(&near, nouns[i]);
            if (!verb || strcmp(word, nouns[i]) != 0 || strcmp(verb, command_names[i] + length + 1) != 0)
                continue;
        } else {
            nearest_offer(&near, command_names[i]);
            if (strcmp(word, command_names[i]) != 0)
                continue;
        }
        p->options->command = (enum command)i;
        *at += length ? 2 : 1;
        return 0;
    }
    if (is_noun(word))
        return unknown_verb(p, word, verb && *verb != '-' ? verb : NULL);
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

static int parse_argument(struct parse *p, const char *value)
{
    struct options *o = p->options;
    const char *command = command_names[o->command], *argument = command_argument(o->command);
    if (!*argument)
        return refuse(p, EXIT_USAGE, "%s takes no argument '%.*s'", command, VALUE_SHOWN_MAX, value);
    if (o->argument)
        return refuse(p, EXIT_USAGE, "%s takes one %s; '%.*s' is one too many", command, argument,
                      VALUE_SHOWN_MAX, value);
    if (!*value)
        return refuse(p, EXIT_USAGE, "%s of %s is empty", argument, command);
    o->argument = value;
    return 0;
}

/* coppice help [COMMAND], where a noun alone is enough. */
static int parse_topic(struct parse *p, int argc, char *const argv[], int at)
{
    struct options *o = p->options;
    if (at < argc && asks_for_help(argv[at]))
        at++;
    if (at < argc && is_noun(argv[at]) && (at + 1 == argc || asks_for_help(argv[at + 1]))) {
        o->topic = argv[at];
        at = argc;
    } else if (at < argc) {
        if (parse_command(p, argc, argv, &at) != 0)
            return p->status;
        o->topic = command_names[o->command];
    }
    o->command = COMMAND_HELP;
    return at < argc ? refuse(p, EXIT_USAGE, "help takes one command; '%.*s' is one too many",
                              VALUE_SHOWN_MAX, argv[at])
                     : 0;
}

static int parse_rest(struct parse *p, int argc, char *const argv[], int at)
{
    struct options *o = p->options;
    bool ended = false; /* by --: what follows is no option */
    for (; at < argc; at++) {
        if (!ended && asks_for_help(argv[at])) {
            o->topic = command_names[o->command];
            o->command = COMMAND_HELP;
            return 0;
        }
        if (!ended && strcmp(argv[at], "--") == 0) {
            ended = true;
        } else if (!ended && argv[at][0] == '-' && argv[at][1]) {
            if (parse_option(p, argc, argv, &at) != 0)
                return p->status;
        } else if (parse_argument(p, argv[at]) != 0) {
            return p->status;
        }
    }
    const char *argument = command_argument(o->command);
    if (*argument && !o->argument)
        return refuse(p, EXIT_USAGE, "%s needs an argument: coppice %s %s", command_names[o->command],
                      command_names[o->command], argument);
    return 0;
}

/* An option where a command should stand. */
static int refuse_first(struct parse *p, const char *word)
{
    struct nearest near = {.word = word};
    if (strcmp(word, "-V") == 0 || strcmp(word, "-v") == 0)
        return refuse(p, EXIT_USAGE, "there is no option '%s'; --version prints the version", word);
    nearest_offer(&near, "--version");
    nearest_offer(&near, "--help");
    if (near.best)
        return refuse(p, EXIT_USAGE, "there is no option '%.*s'; did you mean %s?", VALUE_SHOWN_MAX, word,
                      near.best);
    return refuse(p, EXIT_USAGE,
                  "there is no option '%.*s' in front of a command; 'coppice help' lists those",
                  VALUE_SHOWN_MAX, word);
}

static int parse_arguments(struct parse *p, int argc, char *const argv[])
{
    struct options *o = p->options;
    int at = 1;
    o->argument = o->topic = NULL;
    if (argc < 2)
        return refuse(p, EXIT_USAGE,
                      "a command is missing; 'coppice serve' starts the server, 'coppice help' says more");
    if (asks_for_help(argv[1]))
        return parse_topic(p, argc, argv, 2);
    if (strcmp(argv[1], "--version") == 0) {
        o->command = COMMAND_VERSION;
        at = 2;
    } else if (is_noun(argv[1]) && argc > 2 && asks_for_help(argv[2])) {
        return parse_topic(p, argc, argv, 1);
    } else if (argv[1][0] == '-') {
        return refuse_first(p, argv[1]);
    } else if (parse_command(p, argc, argv, &at) != 0) {
        return p->status;
    }
    return o->command == COMMAND_HELP ? parse_topic(p, argc, argv, at) : parse_rest(p, argc, argv, at);
}

/* ---- environment ---- */

/* A variable that no option has is refused when it is nearly one, and left alone otherwise: service discovery
 * puts variables with our prefix into the environment of a service that is called coppice. */
static int parse_variable(struct parse *p, const char *entry)
{
    char names[OPTION_COUNT][OPTION_NAME_SIZE], word[OPTION_NAME_SIZE];
    size_t length = strcspn(entry, "=");
    if (!entry[length] || length >= sizeof(word))
        return 0;
    snprintf(word, sizeof(word), "%.*s", (int)length, entry);
    struct nearest near = {.word = word + strlen("COPPICE_")};
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option *o = &option_table[i];
        if (o->marks & MARK_CALL)
            continue;
        option_variable(o, names[i]);
        if (strcmp(names[i], word) == 0)
            return taken_by(o, p->options->command)
                       ? set(p, o, word, entry + length + 1, (struct source){.kind = SOURCE_ENVIRONMENT})
                       : 0;
        nearest_offer(&near, names[i] + strlen("COPPICE_"));
    }
    const struct option_other *other = other_named(word, length, variable_of);
    if (other)
        return taken_by(other->option, p->options->command)
                   ? set_other(p, other, word, entry + length + 1,
                               (struct source){.kind = SOURCE_ENVIRONMENT})
                   : 0;
    if (near.best)
        return refuse(p, EXIT_CONFIG, "the variable %s is unknown; did you mean COPPICE_%s?", word,
                      near.best);
    return 0;
}

/* ---- file ---- */

static enum file_kind kind_in_file(const struct option *o)
{
    return o->kind == KIND_COUNT || o->kind == KIND_DECIMAL ? FILE_NUMBER
           : o->kind == KIND_FLAG                           ? FILE_FLAG
                                                            : FILE_TEXT;
}

/* In one file a setting stands by one of its names. */
static int given_twice(struct parse *p, const struct option *o, const struct file_entry *e)
{
    const struct source *before = &p->options->sources[o - option_table];
    if (before->kind == SOURCE_FILE && before->file == e->path)
        return refuse(p, EXIT_CONFIG, "%s:%u: %s was given in line %u already, by its other name", e->path,
                      e->line, e->key, before->line);
    return 0;
}

static int parse_other(struct parse *p, const struct file_entry *e, const struct option_other *other)
{
    char name[FILE_KEY_MAX + 640], right[160];
    if (!taken_by(other->option, p->options->command))
        return 0;
    if (given_twice(p, other->option, e) != 0)
        return p->status;
    snprintf(name, sizeof(name), "%s:%u: %s", e->path, e->line, e->key);
    if (e->kind == FILE_NUMBER)
        return set_other(p, other, name, e->value,
                         (struct source){.kind = SOURCE_FILE, .file = e->path, .line = e->line});
    option_other_right(other, right, sizeof(right));
    return refuse(p, EXIT_CONFIG, "%s is %s; it must be %s", name, file_kind_name(e->kind), right);
}

const struct option_family_row option_families[FAMILY_COUNT] = {
#define X(id, key_, min_, max_, marks_, unit_, prose_) \
    [FAMILY_##id] = {.key = key_, .unit = unit_, .prose = prose_, .min = min_, .max = max_, .marks = marks_},
    FAMILIES(X)
#undef X
};

static bool is_word(struct span name)
{
    const char *at = name.bytes;
    for (uint32_t i = 0; i < name.size; i++)
        if (!(at[i] >= 'a' && at[i] <= 'z') && !(at[i] >= 'A' && at[i] <= 'Z') &&
            !(at[i] >= '0' && at[i] <= '9') && at[i] != '-' && at[i] != '_')
            return false;
    return name.size > 0 && name.size <= FAMILY_NAME_MAX;
}

static bool is_name(struct span what, struct span name)
{
    struct uuid id;
    if (span_equal(what, span_text("CLIENT")))
        return uuid_parse(name.bytes, name.size, &id);
    if (span_equal(what, span_text("TIER")))
        return name.size == 1 && strchr("ABC", *(const char *)name.bytes);
    return is_word(name);
}

/* Part by part: as it stands there, or a name where the form has one. */
static bool named_as(const char *form, const char *key, struct span names[FAMILY_NAMES_MAX])
{
    for (uint32_t count = 0;; form++, key++) {
        struct span what = span_of(form, strcspn(form, ".")), part = span_of(key, strcspn(key, "."));
        bool name = *form >= 'A' && *form <= 'Z';
        if (name ? !is_name(what, part) : !span_equal(what, part))
            return false;
        if (name)
            names[count++] = part;
        form += what.size;
        key += part.size;
        if (!*form || !*key)
            return !*form && !*key;
    }
}

bool option_named(const char *key, struct option_named *ret)
{
    for (int i = 0; i < FAMILY_COUNT; i++)
        if (named_as(option_families[i].key, key, ret->names)) {
            ret->family = (enum option_family)i;
            return true;
        }
    return false;
}

/* What a name in a key must be, by the word that stands for it in the family's form. */
static const char *name_right(struct span what)
{
    STATIC_ASSERT(FAMILY_NAME_MAX == 64, "as it is said here");
    if (span_equal(what, span_text("CLIENT")))
        return "a client's id, a UUID";
    if (span_equal(what, span_text("TIER")))
        return "A, B or C";
    return "1 to 64 letters, digits, - and _";
}

/* The part of the key that keeps it from being one of this family, when nothing else does. */
static bool misnamed(const char *form, const char *key, struct span *ret_part, const char **ret_right)
{
    *ret_right = NULL;
    for (;; form++, key++) {
        struct span what = span_of(form, strcspn(form, ".")), part = span_of(key, strcspn(key, "."));
        if (*form >= 'A' && *form <= 'Z') {
            if (!*ret_right && !is_name(what, part)) {
                *ret_part = part;
                *ret_right = name_right(what);
            }
        } else if (!span_equal(what, part)) {
            return false;
        }
        form += what.size;
        key += part.size;
        if (!*form || !*key)
            return *ret_right && !*form && !*key;
    }
}

static int unknown_key(struct parse *p, const struct file_entry *e)
{
    struct span part;
    const char *right;
    for (int i = 0; i < FAMILY_COUNT; i++)
        if (misnamed(option_families[i].key, e->key, &part, &right))
            return refuse(p, EXIT_CONFIG, "%s:%u: %s: '%.*s' must be %s", e->path, e->line, e->key,
                          (int)part.size, (const char *)part.bytes, right);
    struct nearest near = {.word = e->key};
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (option_is_setting(&option_table[i]))
            nearest_offer(&near, option_table[i].key);
    if (near.best)
        return refuse(p, EXIT_CONFIG, "%s:%u: there is no setting '%s'; did you mean %s?", e->path, e->line,
                      e->key, near.best);
    return refuse(p, EXIT_CONFIG, "%s:%u: there is no setting '%s'; 'coppice config show' lists them",
                  e->path, e->line, e->key);
}

static int parse_named(struct parse *p, const struct file_entry *e, const struct option_family_row *row)
{
    const char *value = e->value;
    uint64_t number;
    if (e->kind == FILE_NUMBER && digits(&value, &number) && !*value && number >= row->min &&
        number <= row->max)
        return 0;
    return refuse(p, EXIT_CONFIG, "%s:%u: %s is '%.*s'; it must be a whole number from %llu to %llu", e->path,
                  e->line, e->key, VALUE_SHOWN_MAX, e->value, (unsigned long long)row->min,
                  (unsigned long long)row->max);
}

static int parse_entry(struct parse *p, const struct file_entry *e)
{
    char name[FILE_KEY_MAX + 640], right[160];
    struct option_named named;
    if (option_named(e->key, &named))
        return parse_named(p, e, &option_families[named.family]);
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option *o = &option_table[i];
        if (!option_is_setting(o) || strcmp(o->key, e->key) != 0)
            continue;
        if (!taken_by(o, p->options->command))
            return 0;
        if (given_twice(p, o, e) != 0)
            return p->status;
        snprintf(name, sizeof(name), "%s:%u: %s", e->path, e->line, e->key);
        if (kind_in_file(o) == e->kind || (e->kind == FILE_LIST && o->marks & MARK_LIST))
            return set(p, o, name, e->value,
                       (struct source){.kind = SOURCE_FILE, .file = e->path, .line = e->line});
        option_right(o, right, sizeof(right));
        const char *kind = file_kind_name(kind_in_file(o));
        bool said = strncmp(right, kind, strlen(kind)) == 0;
        return refuse(p, EXIT_CONFIG, "%s is %s; it must be %s%s%s", name, file_kind_name(e->kind),
                      said ? "" : kind, said ? "" : ": ", right);
    }
    for (size_t i = 0; i < OTHER_COUNT; i++)
        if (strcmp(option_others[i].key, e->key) == 0)
            return parse_other(p, e, &option_others[i]);
    return unknown_key(p, e);
}

/* ---- what one row alone cannot see ---- */

/* "%s is ...; it must be ...": the place of a setting, its value, and what would be right. The others are named by their keys.
 */
static const char *place(struct parse *p, enum option_position position)
{
    option_place(position, p->options, p->place);
    return p->place;
}

static int check_runtime(struct parse *p)
{
    const struct options *o = p->options;
    if (o->runaway < o->slice)
        return refuse(p, EXIT_CONFIG, "%s is %lluus and slice is %lluus; runaway must be at least slice",
                      place(p, OPTION_runaway), (unsigned long long)(o->runaway / US),
                      (unsigned long long)(o->slice / US));
    if (o->store_map_max < o->store_map)
        return refuse(p, EXIT_CONFIG,
                      "%s is %lluB and store.map is %lluB; store.map.max must be at least store.map",
                      place(p, OPTION_store_map_max), (unsigned long long)o->store_map_max,
                      (unsigned long long)o->store_map);
    if (o->clock_offset && strcmp(o->environment, "dev") != 0)
        return refuse(p, EXIT_CONFIG, "%s is for dev; environment is %s, where time is what it is",
                      place(p, OPTION_clock_offset), o->environment);
    return 0;
}

static int check_tls(struct parse *p)
{
    const struct options *o = p->options;
    if (!*o->tls_certificate != !*o->tls_key)
        return refuse(p, EXIT_CONFIG,
                      "%s stands alone; tls.certificate and tls.key go together, and %s is missing",
                      place(p, *o->tls_key ? OPTION_tls_key : OPTION_tls_certificate),
                      *o->tls_key ? "tls.certificate" : "tls.key");
    if (*o->tls_client_ca && !*o->tls_certificate)
        return refuse(p, EXIT_CONFIG, "%s needs tls.certificate and tls.key", place(p, OPTION_tls_client_ca));
    return 0;
}

bool options_plain_allowed(const struct options *o, const char *name, const char *where, char *ret_text,
                           size_t text_size)
{
    if (strcmp(o->environment, "dev") == 0 || *o->tls_certificate || o->tls_terminated_by_proxy)
        return true;
    snprintf(ret_text, text_size,
             "%s is '%.*s', which other machines reach, without TLS; in %s it needs tls.certificate and "
             "tls.key, or tls.terminated_by_proxy when a trusted proxy does that (CTL-068)",
             name, VALUE_SHOWN_MAX, where, o->environment);
    return false;
}

static bool listened_twice(const struct socket_address clients[], size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < i; k++)
            if (sockets_meet(&clients[i].address, &clients[k].address))
                return true;
    return false;
}

static bool meets_operators(const struct socket_address clients[], size_t count,
                            const struct address *operators)
{
    for (size_t i = 0; i < count; i++)
        if (sockets_meet(&clients[i].address, operators))
            return true;
    return false;
}

static int check_listen(struct parse *p)
{
    const struct options *o = p->options;
    struct socket_address addresses[SOCKETS_ADDRESSES_MAX];
    struct address address;
    char why[256];
    size_t count;
    if (!address_parse(o->operator_listen, &address, why, sizeof(why)))
        return refuse(p, EXIT_CONFIG, "%s is %s", place(p, OPTION_operator_listen), why);
    if (!sockets_parse(o->http_listen, addresses, &count, why, sizeof(why)))
        return refuse(p, EXIT_CONFIG, "%s is %s", place(p, OPTION_http_listen), why);
    if (listened_twice(addresses, count))
        return refuse(p, EXIT_CONFIG, "%s is '%.*s', which has one address twice; it can be listened at once",
                      place(p, OPTION_http_listen), VALUE_SHOWN_MAX, o->http_listen);
    if (meets_operators(addresses, count, &address))
        return refuse(p, EXIT_CONFIG,
                      "%s is '%.*s' and operator.listen is '%.*s'; one address can be listened at once",
                      place(p, OPTION_http_listen), VALUE_SHOWN_MAX, o->http_listen, VALUE_SHOWN_MAX,
                      o->operator_listen);
    for (size_t i = 0; i < count; i++)
        if (addresses[i].exposed &&
            !options_plain_allowed(o, place(p, OPTION_http_listen), o->http_listen, p->text, p->text_size))
            return p->status = EXIT_CONFIG;
    return 0;
}

/* A scheme, the longest name that there can be, and a port: answers have room for that. */
enum { ORIGIN_MAX = 8 + 253 + 6 };

/* https://app.example.com:8443 and nothing behind it */
static bool is_origin(const char *text, size_t length)
{
    static const char *const schemes[] = {"https://", "http://"};
    if (length > ORIGIN_MAX)
        return false;
    for (size_t i = 0; i < sizeof(schemes) / sizeof(*schemes); i++) {
        size_t scheme = strlen(schemes[i]);
        if (length <= scheme || memcmp(text, schemes[i], scheme) != 0)
            continue;
        for (size_t c = scheme; c < length; c++)
            if (!((text[c] >= 'a' && text[c] <= 'z') || (text[c] >= '0' && text[c] <= '9') ||
                  strchr(".-:[]", text[c])))
                return false;
        return true;
    }
    return false;
}

/* The next of "a, b c" as *ret_length bytes; NULL: no more. */
static const char *next_word(const char *list, size_t *ret_length)
{
    list += strspn(list, ", ");
    *ret_length = strcspn(list, ", ");
    return *ret_length ? list : NULL;
}

static bool lists(const char *list, const char *word, size_t length)
{
    size_t size;
    for (const char *w = next_word(list, &size); w; w = next_word(w + size, &size))
        if (size == length && memcmp(w, word, length) == 0)
            return true;
    return false;
}

/* What RFC 9116 takes as a contact, in one line. */
static bool is_contact(const char *text)
{
    static const char *const schemes[] = {"mailto:", "https://", "tel:"};
    bool good = *text == 0;
    for (size_t i = 0; i < sizeof(schemes) / sizeof(*schemes); i++)
        good |= strncmp(text, schemes[i], strlen(schemes[i])) == 0 && text[strlen(schemes[i])];
    for (; *text; text++)
        good &= (unsigned char)*text > ' ' && (unsigned char)*text < 0x7f;
    return good;
}

/* CTL-149 and CTL-151: what the headers of answers may allow. */
static int check_headers(struct parse *p)
{
    const struct options *o = p->options;
    size_t length;
    if (*o->http_cors_origin && !is_origin(o->http_cors_origin, strlen(o->http_cors_origin)))
        return refuse(
            p, EXIT_CONFIG,
            "%s is '%.*s'; it must be one origin, such as https://app.example.com, of at most %d bytes",
            place(p, OPTION_http_cors_origin), VALUE_SHOWN_MAX, o->http_cors_origin, ORIGIN_MAX);
    if (!is_contact(o->security_contact))
        return refuse(p, EXIT_CONFIG,
                      "%s is '%.*s'; it must be a URI, such as mailto:security@example.com or "
                      "https://example.com/security",
                      place(p, OPTION_security_contact), VALUE_SHOWN_MAX, o->security_contact);
    const char *cdns = o->http_csp_approved_cdns;
    for (const char *w = next_word(cdns, &length); w; w = next_word(w + length, &length))
        if (!is_origin(w, length) || memcmp(w, "https:", 6) != 0)
            return refuse(p, EXIT_CONFIG,
                          "%s names '%.*s'; it must be origins, such as https://cdn.example.com (CTL-149)",
                          place(p, OPTION_http_csp_approved_cdns), (int)length, w);
    const char *sources = o->http_csp_script_src;
    for (const char *w = next_word(sources, &length); w; w = next_word(w + length, &length)) {
        bool self = length == 6 && memcmp(w, "'self'", 6) == 0;
        if (!self && !lists(cdns, w, length))
            return refuse(p, EXIT_CONFIG,
                          "%s names %.*s; it must be 'self' and origins that http.csp.approved_cdns lists; "
                          "'unsafe-inline' and 'unsafe-eval' are never allowed (CTL-149)",
                          place(p, OPTION_http_csp_script_src), (int)length, w);
    }
    if (strlen(sources) > FRONT_SCRIPT_SRC_MAX)
        return refuse(p, EXIT_CONFIG, "%s has more than %u bytes", place(p, OPTION_http_csp_script_src),
                      FRONT_SCRIPT_SRC_MAX);
    if (strcmp(o->http_frame_options, "SAMEORIGIN") == 0 && !*o->frame_embedding_approved_use_case)
        return refuse(p, EXIT_CONFIG,
                      "%s is SAMEORIGIN; that needs frame_embedding.approved_use_case to say what it was "
                      "approved for (CTL-151)",
                      place(p, OPTION_http_frame_options));
    return 0;
}

/* CTL-083: an agent's token must last for as long as its longest job. */
static int check_budgets(struct parse *p)
{
    char value[64];
    duration_text(p->options->timeouts_tier_c_total, value, sizeof(value));
    if (p->options->timeouts_tier_c_total > AGENT_TOKEN_S * S)
        return refuse(p, EXIT_CONFIG,
                      "%s is %s; it must be at most 4h, the longest life of an agent's token (CTL-083)",
                      place(p, OPTION_timeouts_tier_c_total), value);
    return 0;
}

#define TOKEN_LIFETIME_MAX (8 * HOUR) /* CTL-079 */

/* CTL-106 to CTL-108. */
static uint64_t cadence_max(const struct options *o)
{
    return strcmp(o->environment, "prod") == 0    ? 7 * DAY
           : strcmp(o->environment, "stage") == 0 ? 14 * DAY
                                                  : 30 * DAY;
}

/* An eighth of those that may be at a time, and a quarter of those that are kept, are for rotations by hand: with more by themselves
 * the next one would fail some day, and not when the settings were made. */
#define KEYS_VALID_MAX (KEYRING_OWN_MAX - KEYRING_OWN_MAX / 8)
#define KEYS_KEPT_MAX  (SIGNING_KEYS_MAX - SIGNING_KEYS_MAX / 4)

static int check_key_counts(struct parse *p)
{
    const struct options *o = p->options;
    char value[64], right[64];
    uint64_t valid = o->keys_overlap / o->keys_rotation_cadence + 2; /* the active one, and a part of one */
    uint64_t kept = valid + o->keys_history / o->keys_rotation_cadence;
    duration_text(o->keys_rotation_cadence, right, sizeof(right));
    duration_text(o->keys_overlap, value, sizeof(value));
    if (valid > KEYS_VALID_MAX)
        return refuse(p, EXIT_CONFIG,
                      "%s is %s and keys.rotation_cadence is %s; that makes %llu valid keys at a time, of at "
                      "most %u",
                      place(p, OPTION_keys_overlap), value, right, (unsigned long long)valid, KEYS_VALID_MAX);
    duration_text(o->keys_history, value, sizeof(value));
    if (kept > KEYS_KEPT_MAX)
        return refuse(p, EXIT_CONFIG,
                      "%s is %s and keys.rotation_cadence is %s; that makes %llu keys that are kept, of at "
                      "most %u",
                      place(p, OPTION_keys_history), value, right, (unsigned long long)kept, KEYS_KEPT_MAX);
    return 0;
}

static int check_keys(struct parse *p)
{
    const struct options *o = p->options;
    char value[64], right[64];
    duration_text(o->keys_rotation_cadence, value, sizeof(value));
    duration_text(cadence_max(o), right, sizeof(right));
    if (o->keys_rotation_cadence > cadence_max(o))
        return refuse(p, EXIT_CONFIG, "%s is %s; in %s it must be at most %s (CTL-106, CTL-107, CTL-108)",
                      place(p, OPTION_keys_rotation_cadence), value, o->environment, right);
    if (o->auth_strict_rotation && o->keys_rotation_cadence >= TOKEN_LIFETIME_MAX)
        return refuse(p, EXIT_CONFIG,
                      "%s is %s; with auth.strict_rotation it must be below 8h, the longest life of a token "
                      "(CTL-085)",
                      place(p, OPTION_keys_rotation_cadence), value);
    duration_text(o->keys_overlap, value, sizeof(value));
    if (o->keys_overlap < TOKEN_LIFETIME_MAX)
        return refuse(p, EXIT_CONFIG,
                      "%s is %s; it must be at least 8h, so that no token outlives the key that it was "
                      "signed with (CTL-085)",
                      place(p, OPTION_keys_overlap), value);
    return check_key_counts(p);
}

static int check_issuers(struct parse *p)
{
    const struct options *o = p->options;
    bool more = *o->auth_jwks_file || *o->auth_jwks_url;
    if (more && !*o->auth_jwks_issuer)
        return refuse(p, EXIT_CONFIG, "%s needs auth.jwks.issuer, which must say whose keys they are",
                      place(p, *o->auth_jwks_file ? OPTION_auth_jwks_file : OPTION_auth_jwks_url));
    if (more && strcmp(o->auth_jwks_issuer, o->auth_issuer) == 0)
        return refuse(p, EXIT_CONFIG,
                      "%s is '%.*s', which is the built-in issuer's name; another issuer's "
                      "keys must not speak for it",
                      place(p, OPTION_auth_jwks_issuer), VALUE_SHOWN_MAX, o->auth_issuer);
    bool https = strncmp(o->auth_jwks_url, "https://", 8) == 0;
    bool http = strncmp(o->auth_jwks_url, "http://", 7) == 0 && strcmp(o->environment, "dev") == 0;
    if (*o->auth_jwks_url && !https && !http)
        return refuse(p, EXIT_CONFIG, "%s must begin with https:// (in dev http:// is good enough)",
                      place(p, OPTION_auth_jwks_url));
    return 0;
}

/* "2026-11-18" */
static bool is_date(const char *text)
{
    static const char form[] = "0000-00-00";
    for (size_t i = 0; i < sizeof(form); i++)
        if (form[i] == '0' ? text[i] < '0' || text[i] > '9' : text[i] != form[i])
            return false;
    int month = (text[5] - '0') * 10 + text[6] - '0', day = (text[8] - '0') * 10 + text[9] - '0';
    return month >= 1 && month <= 12 && day >= 1 && day <= 31;
}

static int check_rehearsal(struct parse *p)
{
    const char *day = p->options->keys_bootstrap_rehearsed;
    if (*day && !is_date(day))
        return refuse(p, EXIT_CONFIG, "%s is '%.*s'; it must be a day, such as 2026-11-18",
                      place(p, OPTION_keys_bootstrap_rehearsed), VALUE_SHOWN_MAX, day);
    return 0;
}

/* CTL-115: in a release these three are somebody's decision. */
static int check_release(struct parse *p)
{
    static const enum option_position needed[] = {OPTION_keys_rotation_cadence, OPTION_keys_overlap,
                                                  OPTION_keys_revocation_sla};
    char missing[160] = "";
    size_t used = 0;
    for (size_t i = 0; i < sizeof(needed) / sizeof(*needed); i++)
        if (p->options->sources[needed[i]].kind == SOURCE_DEFAULT) {
            int n = snprintf(missing + used, sizeof(missing) - used, "%s%s", used ? ", " : "",
                             option_table[needed[i]].key);
            used += n > 0 ? (size_t)n : 0;
        }
    if (used)
        return refuse(p, EXIT_CONFIG, "a release must set %s; defaults don't count here (CTL-115)", missing);
    if (strcmp(p->options->environment, "prod") == 0 && !*p->options->keys_bootstrap_rehearsed)
        return refuse(p, EXIT_CONFIG,
                      "a release to prod must say in keys.bootstrap_rehearsed on which day the making of the "
                      "first signing key was rehearsed, as runbook RB-015 has it (CTL-120)");
    return 0;
}

static bool is_job_type(const char *word, size_t length)
{
    for (unsigned type = 0; type < JOB_TYPE_COUNT; type++) {
        const char *name = job_type_name((uint8_t)type);
        if (strlen(name) == length && memcmp(name, word, length) == 0)
            return true;
    }
    return false;
}

#define SLOTS_MAX 4000u /* jobs that run at a time: an actor each (JOBS_SLOTS_MAX) */

static int check_jobs(struct parse *p)
{
    const struct options *o = p->options;
    char value[64], right[64];
    size_t length, count = 0;
    for (const char *w = next_word(o->jobs_allowed_types, &length); w; w = next_word(w + length, &length)) {
        count++;
        if (!is_job_type(w, length))
            return refuse(p, EXIT_CONFIG, "%s names '%.*s'; it must be of EXECUTE, DEFERRED and EMIT_EVENT",
                          place(p, OPTION_jobs_allowed_types), (int)length, w);
    }
    if (count == 0)
        return refuse(p, EXIT_CONFIG, "%s names no type; it must be of EXECUTE, DEFERRED and EMIT_EVENT",
                      place(p, OPTION_jobs_allowed_types));
    duration_text(o->workers_heartbeat_interval, value, sizeof(value));
    duration_text(o->workers_lease_timeout, right, sizeof(right));
    if (o->workers_heartbeat_interval >= o->workers_lease_timeout)
        return refuse(
            p, EXIT_CONFIG,
            "%s is %s and workers.lease_timeout is %s; a heartbeat must come before the lease is over",
            place(p, OPTION_workers_heartbeat_interval), value, right);
    if (o->workers_count * o->workers_max_concurrency > SLOTS_MAX)
        return refuse(p, EXIT_CONFIG,
                      "%s is %llu and workers.count is %llu; together they must be at most %u jobs at a time",
                      place(p, OPTION_workers_max_concurrency),
                      (unsigned long long)o->workers_max_concurrency, (unsigned long long)o->workers_count,
                      SLOTS_MAX);
    return 0;
}

static int check_webhooks(struct parse *p)
{
    const char *secret = p->options->webhooks_signing_secret;
    uint8_t bytes[WEBHOOK_SECRET_BYTES_MAX];
    uint32_t size = 0;
    bool sound = !*secret || webhook_secret_read(span_text(secret), bytes, &size);
    explicit_bzero(bytes, sizeof(bytes));
    if (!sound)
        return refuse(
            p, EXIT_CONFIG,
            "%s can't be used; it must be whsec_ and the base64 of 24 to 64 bytes, or any other text of at "
            "most %u bytes",
            place(p, OPTION_webhooks_signing_secret), WEBHOOK_SECRET_BYTES_MAX);
    return 0;
}

static int check_together(struct parse *p)
{
    static int (*const checks[])(struct parse * p) = {
        check_runtime, check_tls,       check_listen,  check_headers, check_budgets,
        check_keys,    check_rehearsal, check_issuers, check_jobs,    check_webhooks};
    const struct options *o = p->options;
    if (FOR_SERVER >> o->command & 1)
        for (size_t i = 0; i < sizeof(checks) / sizeof(*checks); i++)
            if (checks[i](p) != 0)
                return p->status;
    if (o->command == COMMAND_CONFIG_CHECK && o->release)
        return check_release(p);
    if (o->command == COMMAND_EXPORT && !o->jsonl)
        return refuse(p, EXIT_USAGE, "export needs to be told the form: coppice export --jsonl");
    return 0;
}

void options_warn(const struct options *o, void (*each)(void *context, const char *sentence), void *context)
{
    char cadence[64], sentence[256];
    duration_text(o->keys_rotation_cadence, cadence, sizeof(cadence));
    snprintf(sentence, sizeof(sentence),
             "keys.rotation_cadence is %s; below 8h, the longest life of a token, would be better (CTL-085)",
             cadence);
    if (o->keys_rotation_cadence >= TOKEN_LIFETIME_MAX)
        each(context, sentence);
    if (o->clock_offset)
        each(context, "clock.offset is set: this server's clock is ahead");
    if (strcmp(o->environment, "dev") == 0 && !*o->tls_certificate && !o->tls_terminated_by_proxy) {
        struct socket_address addresses[SOCKETS_ADDRESSES_MAX];
        size_t count = 0;
        if (sockets_parse(o->http_listen, addresses, &count, sentence, sizeof(sentence)))
            for (size_t i = 0; i < count; i++)
                if (addresses[i].exposed) {
                    each(context, "http.listen is reached by other machines, without TLS (CTL-068)");
                    break;
                }
    }
}

/* ---- all together ---- */

/* Entry by entry; where a complaint is wanted instead of a refusal, what can't be used is left out, and the first of it told. */
static int parse_file(struct parse *p, const struct file *file, char *complaint, size_t complaint_size)
{
    for (uint32_t i = 0; i < file->count; i++) {
        if (parse_entry(p, &file->entries[i]) == 0)
            continue;
        if (!complaint)
            return p->status;
        if (!*complaint)
            snprintf(complaint, complaint_size, "%s", p->text);
        p->status = 0;
    }
    return 0;
}

static int parse_all(const struct file *file, struct options *ret_options, int argc, char *const argv[],
                     char *const environment[], char *ret_text, size_t text_size, char *complaint,
                     size_t complaint_size, bool check)
{
    struct options options = {0}, ignored = {0};
    struct parse p = {.options = &ignored, .text = ret_text, .text_size = text_size};
    for (size_t i = 0; i < OPTION_COUNT; i++)
        ASSERT(take(&options, &option_table[i], option_table[i].preset));
    /* The command decides which settings count, so it is looked for first and everything parsed again on top
     * of them.*/
    ignored = options;
    int status = parse_arguments(&p, argc, argv);
    ret_options->call_refused = p.call_refused;
    if (status != 0)
        return status;
    options.command = ignored.command;
    options.topic = ignored.topic;
    p.options = &options;
    if (file && parse_file(&p, file, complaint, complaint_size) != 0)
        return p.status;
    if (options.command != COMMAND_HELP && options.command != COMMAND_VERSION)
        for (; *environment; environment++)
            if (strncmp(*environment, "COPPICE_", strlen("COPPICE_")) == 0 &&
                parse_variable(&p, *environment) != 0)
                return p.status;
    if (options.command != COMMAND_HELP)
        (void)parse_arguments(&p, argc, argv);
    if (check && check_together(&p) != 0)
        return p.status;
    *ret_options = options;
    return 0;
}

int options_parse(struct options *ret_options, int argc, char *const argv[], char *const environment[],
                  char *ret_text, size_t text_size)
{
    return parse_all(NULL, ret_options, argc, argv, environment, ret_text, text_size, NULL, 0, true);
}

int options_parse_with(const struct file *file, struct options *ret_options, int argc, char *const argv[],
                       char *const environment[], char *ret_text, size_t text_size)
{
    return parse_all(file, ret_options, argc, argv, environment, ret_text, text_size, NULL, 0, true);
}

int options_parse_forgiving(const struct file *file, struct options *ret_options, int argc,
                            char *const argv[], char *const environment[], char *ret_text, size_t text_size,
                            char *complaint, size_t complaint_size)
{
    return parse_all(file, ret_options, argc, argv, environment, ret_text, text_size, complaint,
                     complaint_size, true);
}

int options_peek(struct options *ret_options, int argc, char *const argv[], char *const environment[],
                 char *ret_text, size_t text_size)
{
    return parse_all(NULL, ret_options, argc, argv, environment, ret_text, text_size, NULL, 0, false);
}

/* ---- help ---- */

static void write_options(struct json_sink *sink, enum command command)
{
    char line[768], flag[OPTION_NAME_SIZE], variable[OPTION_NAME_SIZE], right[160];
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option *o = &option_table[i];
        if (!taken_by(o, command))
            continue;
        option_flag(o, flag);
        option_variable(o, variable);
        option_right(o, right, sizeof(right));
        bool call = o->marks & MARK_CALL;
        snprintf(line, sizeof(line), "\n  %s%s%s%s\n      %s.\n      %s; default %s%s%s\n", flag,
                 o->kind == KIND_FLAG ? "" : " <", o->kind == KIND_FLAG ? "" : (*o->unit ? o->unit : "word"),
                 o->kind == KIND_FLAG ? "" : ">", o->prose, right, *o->preset ? o->preset : "none",
                 call ? "" : "; ", call ? "" : variable);
        json_sink_text(sink, line);
    }
}

/* First, so that they are seen without scrolling. */
static void write_examples(struct json_sink *sink, enum command command)
{
    char line[256];
    json_sink_text(sink, "\n");
    for (size_t i = 0; i < examples_count; i++)
        if (examples[i].command == command) {
            snprintf(line, sizeof(line), "  coppice %s\n      %s\n", examples[i].line, examples[i].what);
            json_sink_text(sink, line);
        }
}

static int command_words(enum command command, char name[64])
{
    return snprintf(name, 64, "%s%s%s", command_names[command], *command_argument(command) ? " " : "",
                    command_argument(command));
}

/* All in one column, as wide as the longest. */
static void write_command(struct json_sink *sink, enum command command)
{
    char line[192], name[64];
    int widest = 0;
    for (int i = 0; i < COMMAND_COUNT; i++) {
        int width = command_words((enum command)i, name);
        widest = width > widest ? width : widest;
    }
    command_words(command, name);
    snprintf(line, sizeof(line), "  %-*s  %s\n", widest, name, command_prose(command));
    json_sink_text(sink, line);
}

static void write_overview(struct json_sink *sink)
{
    json_sink_text(sink, "coppice serve --operator-listen 127.0.0.1:7070\n"
                         "coppice serve --guardian --schedulers 2\n"
                         "coppice config check --env prod\n"
                         "coppice tree\n"
                         "coppice backup monday\n\n"
                         "Commands:\n");
    for (int i = 0; i < COMMAND_COUNT; i++)
        write_command(sink, (enum command)i);
    json_sink_text(
        sink,
        "\n'coppice help serve' lists the options of the server. Flags win over variables of the\n"
        "environment, these over the file of settings, this over the defaults.\n\n"
        "Exit status: 0 after a stop that was asked for; 1 a failure; 64 a command line that cannot be\n"
        "meant; 65 what was stored is damaged; 66 there is no store; 69 the address is taken, or nobody\n"
        "listens there; 70 the restart budget is spent; 71 the system refused; 73 the directory holds\n"
        "something else; 74 the disk failed or is full, or standard output takes no more; 75 somebody\n"
        "else has the store; 77 no permission; 78 a value that cannot be used, or a store of a later\n"
        "release.\n");
}

void options_write_help(struct json_sink *sink, const char *topic)
{
    for (int i = 0; topic && i < COMMAND_COUNT; i++)
        if (strcmp(topic, command_names[i]) == 0) {
            const char *argument = command_argument((enum command)i);
            json_sink_text(sink, "coppice ");
            json_sink_text(sink, topic);
            json_sink_text(sink, *argument ? " " : "");
            json_sink_text(sink, argument);
            json_sink_text(sink, ": ");
            json_sink_text(sink, command_prose((enum command)i));
            json_sink_text(sink, "\n");
            write_examples(sink, (enum command)i);
            write_options(sink, (enum command)i);
            return;
        }
    if (!topic) {
        write_overview(sink);
        return;
    }
    for (int i = 0; i < COMMAND_COUNT; i++) {
        size_t length = noun_length(command_names[i]);
        if (length && strlen(topic) == length && memcmp(topic, command_names[i], length) == 0)
            write_command(sink, (enum command)i);
    }
}
