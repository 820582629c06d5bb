#include "config/completion.h"

#include <stdio.h>
#include <string.h>

#include "config/chaos_scripts.h"
#include "config/output.h"

/* ---- the tables, as shells need them ---- */

static size_t noun_length(const char *name)
{
    const char *space = strchr(name, ' ');
    return space ? (size_t)(space - name) : 0;
}

/* True for the first command of its noun, and for each command of one word. */
static bool first_of_noun(enum command command)
{
    const char *name = command_name(command);
    size_t length = noun_length(name);
    for (int i = 0; length && i < (int)command; i++)
        if (noun_length(command_name((enum command)i)) == length &&
            memcmp(command_name((enum command)i), name, length) == 0)
            return false;
    return true;
}

static void write_word(struct json_sink *sink, const char *name)
{
    size_t length = noun_length(name);
    json_sink_bytes(sink, name, length ? length : strlen(name));
}

static bool is_file(const struct option *o)
{
    return o->kind == KIND_TEXT && (strcmp(o->unit, "file") == 0 || strcmp(o->unit, "directory") == 0);
}

/* What a value can be, with spaces between; false: anything. */
static bool write_values(struct json_sink *sink, const struct option *o)
{
    if (o->kind == KIND_LEVEL)
        json_sink_text(sink, "debug info warn error");
    for (const char *word = o->kind == KIND_CHOICE ? o->unit : ""; *word; word++)
        json_sink_bytes(sink, *word == '|' ? " " : word, 1);
    return o->kind == KIND_LEVEL || o->kind == KIND_CHOICE;
}

/* What the argument of a command can be, with spaces between; false: anything. */
static bool write_arguments(struct json_sink *sink, enum command command)
{
    switch ((int)command) {
    case COMMAND_LOG_LEVEL:
        json_sink_text(sink, "debug info warn error");
        return true;
    case COMMAND_COMPLETION:
        json_sink_text(sink, "bash zsh fish");
        return true;
    case COMMAND_CONTRACT_SHOW:
        json_sink_text(sink, "openapi asyncapi jobs work ops errors events");
        return true;
    case COMMAND_PAUSE:
    case COMMAND_RESUME:
        json_sink_text(sink, "all");
        return true;
    case COMMAND_CHAOS_RUN:
        json_sink_text(sink, "all");
        for (int i = 0; i < SCENARIO_COUNT; i++) {
            json_sink_text(sink, " ");
            json_sink_text(sink, chaos_scenario_name((enum chaos_scenario)i));
        }
        return true;
    case COMMAND_HELP:
        for (int i = 0; i < COMMAND_COUNT; i++)
            if (first_of_noun((enum command)i)) {
                json_sink_text(sink, i ? " " : "");
                write_word(sink, command_name((enum command)i));
            }
        return true;
    default:
        return false;
    }
}

static bool argument_is_file(enum command command)
{
    return command == COMMAND_BACKUP || command == COMMAND_RESTORE || command == COMMAND_REPLAY;
}

static void write_flags(struct json_sink *sink, enum command command)
{
    char name[OPTION_NAME_SIZE];
    json_sink_text(sink, "--help");
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option *o = &option_table[i];
        if (!(o->commands >> command & 1))
            continue;
        option_flag(o, name);
        json_sink_text(sink, " ");
        json_sink_text(sink, name);
        if (o->kind == KIND_FLAG && strcmp(o->preset, "true") == 0) {
            json_sink_text(sink, " --no-");
            json_sink_text(sink, name + 2);
        }
    }
}

/* For single quotes of zsh and fish. */
static void write_quoted(struct json_sink *sink, const char *text, const char *quote)
{
    for (; *text; text++)
        if (*text == '\'')
            json_sink_text(sink, quote);
        else
            json_sink_bytes(sink, text, 1);
}

/* ---- bash ---- */

static void bash_words(struct json_sink *sink, const char *indent, void (*write)(struct json_sink *, size_t),
                       size_t argument)
{
    json_sink_text(sink, indent);
    json_sink_text(sink, "COMPREPLY=($(compgen -W \"");
    write(sink, argument);
    json_sink_text(sink, "\" -- \"$cur\"))\n");
}

static void words_first(struct json_sink *sink, size_t argument)
{
    (void)argument;
    for (int i = 0; i < COMMAND_COUNT; i++)
        if (first_of_noun((enum command)i)) {
            json_sink_text(sink, i ? " " : "");
            write_word(sink, command_name((enum command)i));
        }
}

static void words_verbs(struct json_sink *sink, size_t argument)
{
    const char *noun = command_name((enum command)argument);
    size_t length = noun_length(noun);
    bool first = true;
    for (int i = 0; i < COMMAND_COUNT; i++) {
        const char *name = command_name((enum command)i);
        if (noun_length(name) != length || memcmp(name, noun, length) != 0)
            continue;
        json_sink_text(sink, first ? "" : " ");
        json_sink_text(sink, name + length + 1);
        first = false;
    }
}

static void words_flags(struct json_sink *sink, size_t argument)
{
    write_flags(sink, (enum command)argument);
}

static void words_arguments(struct json_sink *sink, size_t argument)
{
    (void)write_arguments(sink, (enum command)argument);
}

static bool has_words(enum command command)
{
    struct json_sink nothing;
    char room[1024];
    json_sink_init(&nothing, room, sizeof(room), NULL, NULL);
    return write_arguments(&nothing, command);
}

static void words_values(struct json_sink *sink, size_t argument)
{
    (void)write_values(sink, &option_table[argument]);
}

static void bash_nouns(struct json_sink *sink)
{
    for (int i = 0; i < COMMAND_COUNT; i++) {
        if (!noun_length(command_name((enum command)i)) || !first_of_noun((enum command)i))
            continue;
        json_sink_text(sink, "    ");
        write_word(sink, command_name((enum command)i));
        json_sink_text(sink, ")\n        if [ \"$COMP_CWORD\" = 2 ]; then\n");
        bash_words(sink, "            ", words_verbs, (size_t)i);
        json_sink_text(sink, "            return\n        fi\n        command=\"$command ${COMP_WORDS[2]}\"\n"
                             "        ;;\n");
    }
}

static void bash_values(struct json_sink *sink)
{
    char name[OPTION_NAME_SIZE];
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option *o = &option_table[i];
        if (o->kind == KIND_FLAG)
            continue;
        option_flag(o, name);
        json_sink_text(sink, "    ");
        json_sink_text(sink, name);
        json_sink_text(sink, ")\n");
        if (o->kind == KIND_LEVEL || o->kind == KIND_CHOICE)
            bash_words(sink, "        ", words_values, i);
        else if (is_file(o))
            json_sink_text(sink, "        COMPREPLY=($(compgen -f -- \"$cur\"))\n");
        json_sink_text(sink, "        return\n        ;;\n");
    }
}

static void write_bash(struct json_sink *sink)
{
    json_sink_text(sink, "# coppice: completion for bash. eval \"$(coppice completion bash)\"\n"
                         "_coppice()\n{\n"
                         "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
                         "    local command=${COMP_WORDS[1]}\n"
                         "    COMPREPLY=()\n"
                         "    if [ \"$COMP_CWORD\" = 1 ]; then\n");
    bash_words(sink, "        ", words_first, 0);
    json_sink_text(sink, "        return\n    fi\n    case $command in\n");
    bash_nouns(sink);
    json_sink_text(sink, "    esac\n    case $prev in\n");
    bash_values(sink);
    json_sink_text(sink, "    esac\n    case $command in\n");
    for (int i = 0; i < COMMAND_COUNT; i++) {
        const char *name = command_name((enum command)i);
        json_sink_text(sink, "    \"");
        json_sink_text(sink, name);
        json_sink_text(sink, "\")\n");
        if (has_words((enum command)i)) {
            json_sink_text(sink, "        case $cur in\n        -*)\n");
            bash_words(sink, "            ", words_flags, (size_t)i);
            json_sink_text(sink, "            ;;\n        *)\n");
            bash_words(sink, "            ", words_arguments, (size_t)i);
            json_sink_text(sink, "            ;;\n        esac\n");
        } else if (argument_is_file((enum command)i)) {
            json_sink_text(sink, "        case $cur in\n        -*)\n");
            bash_words(sink, "            ", words_flags, (size_t)i);
            json_sink_text(sink,
                           "            ;;\n        *)\n            COMPREPLY=($(compgen -f -- \"$cur\"))\n"
                           "            ;;\n        esac\n");
        } else {
            bash_words(sink, "        ", words_flags, (size_t)i);
        }
        json_sink_text(sink, "        ;;\n");
    }
    json_sink_text(sink, "    esac\n}\ncomplete -o default -F _coppice coppice\n");
}

/* ---- zsh ---- */

static void zsh_described(struct json_sink *sink, const char *name, size_t name_length, const char *prose)
{
    json_sink_text(sink, " '");
    json_sink_bytes(sink, name, name_length);
    json_sink_text(sink, ":");
    write_quoted(sink, prose, "'\\''");
    json_sink_text(sink, "'");
}

static void zsh_flags(struct json_sink *sink, enum command command)
{
    char name[OPTION_NAME_SIZE];
    json_sink_text(sink, "        _arguments");
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option *o = &option_table[i];
        if (!(o->commands >> command & 1))
            continue;
        option_flag(o, name);
        json_sink_text(sink, " \\\n            '");
        json_sink_text(sink, name);
        json_sink_text(sink, o->kind == KIND_FLAG ? "[" : "=[");
        for (const char *c = o->prose; *c; c++)
            if (*c == '\'')
                json_sink_text(sink, "'\\''");
            else if (*c == '[' || *c == ']' || *c == ':')
                json_sink_bytes(sink, (const char[]){'\\', *c}, 2);
            else
                json_sink_bytes(sink, c, 1);
        json_sink_text(sink, "]");
        if (o->kind == KIND_LEVEL || o->kind == KIND_CHOICE) {
            json_sink_text(sink, ":value:(");
            (void)write_values(sink, o);
            json_sink_text(sink, ")");
        } else if (is_file(o)) {
            json_sink_text(sink, ":file:_files");
        } else if (o->kind != KIND_FLAG) {
            json_sink_text(sink, ":value:");
        }
        json_sink_text(sink, "'");
    }
    if (has_words(command)) {
        json_sink_text(sink, " \\\n            '*:what:(");
        (void)write_arguments(sink, command);
        json_sink_text(sink, ")'\n");
    } else {
        json_sink_text(sink, argument_is_file(command) ? " \\\n            '*:file:_files'\n" : "\n");
    }
}

static void write_zsh(struct json_sink *sink)
{
    json_sink_text(sink, "#compdef coppice\n# coppice: completion for zsh. A file _coppice in $fpath, or: "
                         "source <(coppice completion zsh)\n"
                         "_coppice() {\n    local command=$words[2]\n    local -a known\n"
                         "    if (( CURRENT == 2 )); then\n        known=(");
    for (int i = 0; i < COMMAND_COUNT; i++) {
        const char *name = command_name((enum command)i);
        size_t length = noun_length(name);
        if (first_of_noun((enum command)i))
            zsh_described(sink, name, length ? length : strlen(name),
                          length ? "..." : command_prose((enum command)i));
    }
    json_sink_text(sink,
                   ")\n        _describe command known\n        return\n    fi\n    case $command in\n");
    for (int i = 0; i < COMMAND_COUNT; i++) {
        const char *noun = command_name((enum command)i);
        size_t length = noun_length(noun);
        if (!length || !first_of_noun((enum command)i))
            continue;
        json_sink_text(sink, "    ");
        write_word(sink, noun);
        json_sink_text(sink, ")\n        if (( CURRENT == 3 )); then\n            known=(");
        for (int k = i; k < COMMAND_COUNT; k++) {
            const char *name = command_name((enum command)k);
            if (noun_length(name) == length && memcmp(name, noun, length) == 0)
                zsh_described(sink, name + length + 1, strlen(name + length + 1),
                              command_prose((enum command)k));
        }
        json_sink_text(sink, ")\n            _describe command known\n            return\n        fi\n"
                             "        command=\"$command $words[3]\"\n        ;;\n");
    }
    json_sink_text(sink, "    esac\n    case $command in\n");
    for (int i = 0; i < COMMAND_COUNT; i++) {
        json_sink_text(sink, "    '");
        json_sink_text(sink, command_name((enum command)i));
        json_sink_text(sink, "')\n");
        zsh_flags(sink, (enum command)i);
        json_sink_text(sink, "        ;;\n");
    }
    json_sink_text(sink, "    esac\n}\nif [ \"$funcstack[1]\" = _coppice ]; then\n    _coppice \"$@\"\nelse\n"
                         "    compdef _coppice coppice\nfi\n");
}

/* ---- fish ---- */

static void fish_condition(struct json_sink *sink, const char *name)
{
    size_t length = noun_length(name);
    json_sink_text(sink, "complete -c coppice -n '__fish_seen_subcommand_from ");
    write_word(sink, name);
    if (length) {
        json_sink_text(sink, "; and __fish_seen_subcommand_from ");
        json_sink_text(sink, name + length + 1);
    }
    json_sink_text(sink, "'");
}

static void fish_option(struct json_sink *sink, const char *command, const struct option *o)
{
    char name[OPTION_NAME_SIZE];
    option_flag(o, name);
    fish_condition(sink, command);
    json_sink_text(sink, " -l ");
    json_sink_text(sink, name + 2);
    if (o->kind == KIND_LEVEL || o->kind == KIND_CHOICE) {
        json_sink_text(sink, " -x -a '");
        (void)write_values(sink, o);
        json_sink_text(sink, "'");
    } else if (o->kind != KIND_FLAG) {
        json_sink_text(sink, is_file(o) ? " -r -F" : " -x");
    }
    json_sink_text(sink, " -d '");
    write_quoted(sink, o->prose, "\\'");
    json_sink_text(sink, "'\n");
}

static void write_fish(struct json_sink *sink)
{
    json_sink_text(sink, "# coppice: completion for fish. coppice completion fish | source\n");
    for (int i = 0; i < COMMAND_COUNT; i++) {
        const char *name = command_name((enum command)i);
        size_t length = noun_length(name);
        if (first_of_noun((enum command)i)) {
            json_sink_text(sink, "complete -c coppice -f -n __fish_use_subcommand -a ");
            write_word(sink, name);
            json_sink_text(sink, " -d '");
            write_quoted(sink, length ? "..." : command_prose((enum command)i), "\\'");
            json_sink_text(sink, "'\n");
        }
        if (length) {
            json_sink_text(sink, "complete -c coppice -f -n '__fish_seen_subcommand_from ");
            write_word(sink, name);
            json_sink_text(sink, "; and not __fish_seen_subcommand_from ");
            words_verbs(sink, (size_t)i);
            json_sink_text(sink, "' -a ");
            json_sink_text(sink, name + length + 1);
            json_sink_text(sink, " -d '");
            write_quoted(sink, command_prose((enum command)i), "\\'");
            json_sink_text(sink, "'\n");
        }
        if (has_words((enum command)i)) {
            fish_condition(sink, name);
            json_sink_text(sink, " -f -a '");
            (void)write_arguments(sink, (enum command)i);
            json_sink_text(sink, "'\n");
        } else if (!argument_is_file((enum command)i)) {
            fish_condition(sink, name);
            json_sink_text(sink, " -f\n");
        }
        for (size_t k = 0; k < OPTION_COUNT; k++)
            if (option_table[k].commands >> i & 1)
                fish_option(sink, name, &option_table[k]);
    }
}

bool completion_write(struct json_sink *sink, const char *shell)
{
    if (strcmp(shell, "bash") == 0)
        write_bash(sink);
    else if (strcmp(shell, "zsh") == 0)
        write_zsh(sink);
    else if (strcmp(shell, "fish") == 0)
        write_fish(sink);
    else
        return false;
    return true;
}

int command_completion(const struct options *o)
{
    struct json_sink sink = output_sink();
    if (!completion_write(&sink, o->argument))
        return output_complain(EXIT_USAGE, "completion", "is for bash, zsh or fish");
    return output_done(&sink);
}
