#include "acutest.h"

#include <string.h>

#include "config/examples.h"
#include "config/options.h"

#define ARGUMENTS_MAX 8

static char text[512];
static struct options options;

/* Both lists end with NULL; "coppice" comes by itself. Copies, because argv may be written to; they outlive
 * the parse, because options borrow from them. */
static int parse(const char *const arguments[], const char *const environment[])
{
    static char copies[2 * ARGUMENTS_MAX][128];
    char *argv[ARGUMENTS_MAX + 1] = {0}, *env[ARGUMENTS_MAX + 1] = {0};
    int argc = 0;
    argv[argc++] = strcpy(copies[0], "coppice");
    for (; *arguments; arguments++, argc++)
        argv[argc] = strcpy(copies[argc], *arguments);
    for (size_t i = 0; environment[i]; i++)
        env[i] = strcpy(copies[ARGUMENTS_MAX + i], environment[i]);
    memset(&options, 0, sizeof(options));
    text[0] = 0;
    return options_parse(&options, argc, argv, env, text, sizeof(text));
}

#define ARGS(...)      ((const char *const[]){__VA_ARGS__, NULL})
#define ENV(...)       ((const char *const[]){__VA_ARGS__, NULL})
#define NO_ENVIRONMENT ((const char *const[]){NULL})

#define CHECK_REFUSED(status, arguments, environment, ...)                                       \
    do {                                                                                         \
        const char *parts[] = {__VA_ARGS__};                                                     \
        TEST_CHECK(parse(arguments, environment) == (status));                                   \
        for (size_t part = 0; part < sizeof(parts) / sizeof(*parts); part++)                     \
            TEST_CHECK_(strstr(text, parts[part]) != NULL, "'%s' says '%s'", text, parts[part]); \
    } while (0)

static void test_defaults(void)
{
    TEST_CHECK(parse(ARGS("serve"), NO_ENVIRONMENT) == 0);
    TEST_CHECK(options.command == COMMAND_SERVE);
    TEST_CHECK(options.schedulers == 0);
    TEST_CHECK(strcmp(options.operator_listen, "127.0.0.1:7070") == 0);
    TEST_CHECK(options.slice == 1000000 && options.runaway == 1000000000);
    TEST_CHECK(options.guardian_intensity.restarts == 5 && options.guardian_intensity.period_ns == 60 * S);
    TEST_CHECK(options.preemption && options.containment && !options.guardian);
    TEST_CHECK(options.message_memory == UINT64_C(1) << 30);
    TEST_CHECK(options.deduper_expiry == 600 * S);
    TEST_CHECK(options.log_level == LOG_INFO);
}

static void test_flags_over_environment_over_defaults(void)
{
    TEST_CHECK(parse(ARGS("serve"), ENV("COPPICE_SCHEDULERS=3")) == 0 && options.schedulers == 3);
    TEST_CHECK(parse(ARGS("serve", "--schedulers", "2"), ENV("COPPICE_SCHEDULERS=3")) == 0 &&
               options.schedulers == 2);
    TEST_CHECK(parse(ARGS("serve", "--schedulers=1", "--schedulers=4"), NO_ENVIRONMENT) == 0 &&
               options.schedulers == 4);
    TEST_CHECK(parse(ARGS("serve"),
                     ENV("COPPICE_GUARDIAN_INTENSITY=2/10s", "COPPICE_OPERATOR_LISTEN=unix:/x")) == 0);
    TEST_CHECK(options.guardian_intensity.restarts == 2 && options.guardian_intensity.period_ns == 10 * S);
    TEST_CHECK(strcmp(options.operator_listen, "unix:/x") == 0);
}

static void test_values_of_each_kind(void)
{
    TEST_CHECK(parse(ARGS("serve", "--slice", "250us", "--runaway", "1m30s"), NO_ENVIRONMENT) == 0);
    TEST_CHECK(options.slice == 250000 && options.runaway == 90 * S);
    TEST_CHECK(parse(ARGS("serve", "--message-memory", "64MiB"), NO_ENVIRONMENT) == 0);
    TEST_CHECK(options.message_memory == 64 * MIB);
    TEST_CHECK(parse(ARGS("serve", "--guardian", "--no-preemption", "--containment=off"), NO_ENVIRONMENT) ==
               0);
    TEST_CHECK(options.guardian && !options.preemption && !options.containment);
    TEST_CHECK(parse(ARGS("serve", "--log-level", "debug"), NO_ENVIRONMENT) == 0 &&
               options.log_level == LOG_DEBUG);
    TEST_CHECK(parse(ARGS("serve", "--slice=100us", "--runaway=1h"), NO_ENVIRONMENT) == 0 &&
               options.runaway == 3600 * S);
}

static void test_bad_values_name_field_value_and_what_is_right(void)
{
    static const struct {
        const char *flag, *value, *right;
    } cases[] = {
        {"--schedulers", "65", "a whole number from 0 to 64"},
        {"--schedulers", "-1", "a whole number from 0 to 64"},
        {"--schedulers", "two", "a whole number from 0 to 64"},
        {"--schedulers", "2 ", "a whole number from 0 to 64"},
        {"--schedulers", "", "a whole number from 0 to 64"},
        {"--schedulers", "99999999999999999999999", "a whole number from 0 to 64"},
        {"--slice", "5", "a duration from 100us to 1s, such as 1ms"},
        {"--slice", "99us", "a duration from 100us to 1s, such as 1ms"},
        {"--slice", "2s", "a duration from 100us to 1s, such as 1ms"},
        {"--slice", "1ms ", "a duration from 100us to 1s, such as 1ms"},
        {"--slice", "ms", "a duration from 100us to 1s, such as 1ms"},
        {"--slice", "1.5ms", "a duration from 100us to 1s, such as 1ms"},
        {"--slice", "99999999999999999h", "a duration from 100us to 1s, such as 1ms"},
        {"--runaway", "", "a duration from 1ms to 1h, such as 1s"},
        {"--message-memory", "1MB", "a size from 16MiB to 1TiB, such as 1GiB"},
        {"--message-memory", "1MiB", "a size from 16MiB to 1TiB, such as 1GiB"},
        {"--guardian-intensity", "5", "<restarts>/<time>"},
        {"--guardian-intensity", "5/", "<restarts>/<time>"},
        {"--guardian-intensity", "5/60", "<restarts>/<time>"},
        {"--guardian-intensity", "1001/60s", "<restarts>/<time>"},
        {"--guardian-intensity", "5/2h", "<restarts>/<time>"},
        {"--guardian", "perhaps", "true or false"},
        {"--log-level", "loud", "debug, info, warn or error"},
        {"--operator-listen", "", "a text, such as 127.0.0.1:7070"},
    };
    char argument[128], value[64], variable[128], setting[256], named[256];
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        snprintf(argument, sizeof(argument), "%s=%s", cases[i].flag, cases[i].value);
        snprintf(value, sizeof(value), "'%s'", cases[i].value);
        CHECK_REFUSED(EXIT_CONFIG, ARGS("serve", argument), NO_ENVIRONMENT, cases[i].flag, value,
                      cases[i].right);
        snprintf(variable, sizeof(variable), "COPPICE_%s", cases[i].flag + 2);
        for (char *c = variable; *c; c++)
            *c = *c == '-' ? '_' : (char)(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
        snprintf(setting, sizeof(setting), "%s=%s", variable, cases[i].value);
        snprintf(named, sizeof(named), "%s is '%s'", variable, cases[i].value);
        CHECK_REFUSED(EXIT_CONFIG, ARGS("serve"), ENV(setting), named, cases[i].right);
    }
}

/* An option of one call isn't a setting, and isn't told with the code that those have. */
static void test_JOB_454_an_option_of_a_call_is_no_setting(void)
{
    CHECK_REFUSED(EXIT_CONFIG, ARGS("report", "--state=x"), NO_ENVIRONMENT, "--state is 'x'");
    TEST_CHECK(options.call_refused);
    CHECK_REFUSED(EXIT_CONFIG, ARGS("serve", "--slice=7"), NO_ENVIRONMENT, "--slice is '7'");
    TEST_CHECK(!options.call_refused);
    CHECK_REFUSED(EXIT_CONFIG, ARGS("serve"), ENV("COPPICE_SLICE=7"), "COPPICE_SLICE is '7'");
    TEST_CHECK(!options.call_refused);
}

static void test_limits_are_inside(void)
{
    TEST_CHECK(parse(ARGS("serve", "--schedulers=64", "--slice=1s", "--guardian-intensity=0/3600s"),
                     NO_ENVIRONMENT) == 0);
    TEST_CHECK(parse(ARGS("serve", "--actors-max=1024", "--message-memory=16MiB", "--descriptors=64"),
                     NO_ENVIRONMENT) == 0);
}

static void test_values_together(void)
{
    CHECK_REFUSED(EXIT_CONFIG, ARGS("serve", "--slice=20ms", "--runaway=10ms"), NO_ENVIRONMENT,
                  "--runaway is 10000us", "slice is 20000us", "must be at least slice");
    TEST_CHECK(parse(ARGS("serve", "--slice=20ms", "--runaway=20ms"), NO_ENVIRONMENT) == 0);
}

static void test_command_lines_that_cannot_be_meant(void)
{
    const char *const none[] = {NULL};
    CHECK_REFUSED(EXIT_USAGE, none, NO_ENVIRONMENT, "command is missing", "coppice serve");
    CHECK_REFUSED(EXIT_USAGE, ARGS("sreve"), NO_ENVIRONMENT, "'sreve'", "did you mean serve?");
    CHECK_REFUSED(EXIT_USAGE, ARGS("dance"), NO_ENVIRONMENT, "'dance'", "coppice help");
    CHECK_REFUSED(EXIT_USAGE, ARGS("serve", "--scheduler", "2"), NO_ENVIRONMENT, "'--scheduler'",
                  "--schedulers?");
    CHECK_REFUSED(EXIT_USAGE, ARGS("serve", "--scheduler=2"), NO_ENVIRONMENT, "'--scheduler'",
                  "--schedulers?");
    CHECK_REFUSED(EXIT_USAGE, ARGS("serve", "--frobnicate"), NO_ENVIRONMENT, "'--frobnicate'",
                  "coppice help serve");
    CHECK_REFUSED(EXIT_USAGE, ARGS("serve", "--schedulers"), NO_ENVIRONMENT, "--schedulers needs a value");
    CHECK_REFUSED(EXIT_USAGE, ARGS("serve", "more"), NO_ENVIRONMENT, "serve takes no argument 'more'");
    CHECK_REFUSED(EXIT_USAGE, ARGS("version", "--slice=1ms"), NO_ENVIRONMENT,
                  "version has no option '--slice'");
    /* A short one is told by the name that was typed. */
    CHECK_REFUSED(EXIT_USAGE, ARGS("tree", "-n"), NO_ENVIRONMENT,
                  "tree has no option '-n'; 'coppice help tree'");
    CHECK_REFUSED(EXIT_USAGE, ARGS("tree", "-n=3"), NO_ENVIRONMENT, "tree has no option '-n'");
    CHECK_REFUSED(EXIT_USAGE, ARGS("version", "-z"), NO_ENVIRONMENT, "version has no option '-z'");
    CHECK_REFUSED(EXIT_USAGE, ARGS("help", "sreve"), NO_ENVIRONMENT, "did you mean serve?");
    CHECK_REFUSED(EXIT_USAGE, ARGS("-V"), NO_ENVIRONMENT,
                  "there is no option '-V'; --version prints the version");
    CHECK_REFUSED(EXIT_USAGE, ARGS("-v"), NO_ENVIRONMENT, "there is no option '-v'; --version");
    CHECK_REFUSED(EXIT_USAGE, ARGS("--verison"), NO_ENVIRONMENT,
                  "there is no option '--verison'; did you mean --version?");
    CHECK_REFUSED(EXIT_USAGE, ARGS("--json", "tree"), NO_ENVIRONMENT,
                  "there is no option '--json' in front of a command");
}

static void test_variables_nearly_known_are_refused_and_others_left_alone(void)
{
    CHECK_REFUSED(EXIT_CONFIG, ARGS("serve"), ENV("COPPICE_SCHEDULER=2"), "COPPICE_SCHEDULER",
                  "COPPICE_SCHEDULERS?");
    TEST_CHECK(
        parse(ARGS("serve"), ENV("COPPICE_SERVICE_HOST=10.0.0.1", "COPPICE_PORT=tcp://10.0.0.1:7070")) == 0);
    TEST_CHECK(parse(ARGS("serve"), ENV("COPPICE=build/coppice", "SCHEDULERS=x")) == 0);
    /* a variable of another command is none of this one's business */
    TEST_CHECK(parse(ARGS("topology"), ENV("COPPICE_SCHEDULERS=x")) == 0);
}

static void test_help_is_asked_for_in_many_ways(void)
{
    TEST_CHECK(parse(ARGS("help"), NO_ENVIRONMENT) == 0 && options.command == COMMAND_HELP && !options.topic);
    TEST_CHECK(parse(ARGS("--help"), NO_ENVIRONMENT) == 0 && options.command == COMMAND_HELP &&
               !options.topic);
    TEST_CHECK(parse(ARGS("-h"), NO_ENVIRONMENT) == 0 && options.command == COMMAND_HELP);
    TEST_CHECK(parse(ARGS("serve", "--help"), ENV("COPPICE_SCHEDULERS=x")) == 0 &&
               options.command == COMMAND_HELP);
    TEST_CHECK(options.topic && strcmp(options.topic, "serve") == 0);
    TEST_CHECK(parse(ARGS("help", "tree"), NO_ENVIRONMENT) == 0 && strcmp(options.topic, "tree") == 0);
    TEST_CHECK(parse(ARGS("--version"), NO_ENVIRONMENT) == 0 && options.command == COMMAND_VERSION);
    TEST_CHECK(parse(ARGS("version", "--json"), NO_ENVIRONMENT) == 0 && options.json);
}

/* Every row of the table, each with its default, its variable and what is right. */
static void test_help_names_every_option(void)
{
    static char page[131072];
    static const char *const topics[] = {
#define X(id, name, argument, prose) name,
        COMMANDS(X)
#undef X
    };
    struct json_sink sink;
    json_sink_init(&sink, page, sizeof(page) - 1, NULL, NULL);
    for (size_t i = 0; i < sizeof(topics) / sizeof(*topics); i++)
        options_write_help(&sink, topics[i]);
    TEST_CHECK(sink.status == JSON_OK);
    page[sink.length] = 0;
#define X(field, key, kind, commands, min, max, marks, preset, unit, prose)         \
    TEST_CHECK_(strstr(page, prose) != NULL, "the help explains %s", key);          \
    TEST_CHECK_(strstr(page, *preset ? "default " preset : "default none") != NULL, \
                "the help names the default of %s", key);
    OPTIONS(X)
#undef X
    TEST_CHECK(strstr(page, "--operator-listen <address>") != NULL);
    TEST_CHECK(strstr(page, "COPPICE_GUARDIAN_INTENSITY") != NULL);
    TEST_CHECK(strstr(page, "coppice backup DIR: ") != NULL && strstr(page, "coppice check: ") != NULL);
}

/* As a shell would cut it. */
static int words_of(char *typed, char *argv[16])
{
    int argc = 0;
    argv[argc++] = "coppice";
    for (char *at = typed; *at && argc < 15;) {
        char end = *at == '\'' ? '\'' : ' ';
        at += end == '\'';
        argv[argc++] = at;
        while (*at && *at != end)
            at++;
        if (*at)
            *at++ = 0;
        while (*at == ' ')
            at++;
    }
    argv[argc] = NULL;
    return argc;
}

static void test_every_command_has_examples_that_can_be_typed(void)
{
    static char page[65536];
    unsigned shown[COMMAND_COUNT] = {0};
    char line[256], why[512], *argv[16], *none[] = {NULL};
    for (size_t i = 0; i < examples_count; i++) {
        struct options o;
        struct json_sink sink;
        snprintf(line, sizeof(line), "%s", examples[i].line);
        int status = options_parse(&o, words_of(line, argv), argv, none, why, sizeof(why));
        TEST_CHECK_(status == 0, "coppice %s: %s", examples[i].line, why);
        TEST_CHECK_(o.command == examples[i].command, "coppice %s", examples[i].line);
        shown[examples[i].command]++;
        json_sink_init(&sink, page, sizeof(page) - 1, NULL, NULL);
        options_write_help(&sink, command_name(examples[i].command));
        TEST_CHECK(sink.status == JSON_OK);
        page[sink.length] = 0;
        const char *at = strstr(page, examples[i].line), *options_at = strstr(page, "\n  --");
        TEST_CHECK_(at && (!options_at || at < options_at), "coppice %s comes first", examples[i].line);
        TEST_CHECK_(strstr(page, examples[i].what) != NULL, "coppice %s is explained", examples[i].line);
    }
    for (int i = 0; i < COMMAND_COUNT; i++)
        TEST_CHECK_(shown[i] > 0, "'%s' has an example", command_name((enum command)i));
}

static void test_arguments_of_commands(void)
{
    TEST_CHECK(parse(ARGS("backup", "there", "--store-dir", "here"), NO_ENVIRONMENT) == 0);
    TEST_CHECK(options.command == COMMAND_BACKUP && !options.verify);
    TEST_CHECK(strcmp(options.argument, "there") == 0 && strcmp(options.store_dir, "here") == 0);
    TEST_CHECK(parse(ARGS("backup", "--verify", "there"), ENV("COPPICE_STORE_DIR=other")) == 0);
    TEST_CHECK(options.verify && strcmp(options.argument, "there") == 0 &&
               strcmp(options.store_dir, "other") == 0);
    TEST_CHECK(parse(ARGS("check"), NO_ENVIRONMENT) == 0 && !options.argument);
    TEST_CHECK(parse(ARGS("backup", "--help"), NO_ENVIRONMENT) == 0 && options.command == COMMAND_HELP);
    CHECK_REFUSED(EXIT_USAGE, ARGS("backup"), NO_ENVIRONMENT, "needs an argument", "coppice backup DIR");
    CHECK_REFUSED(EXIT_USAGE, ARGS("replay", "--json"), NO_ENVIRONMENT, "coppice replay JOURNAL");
    CHECK_REFUSED(EXIT_USAGE, ARGS("restore", "a", "b"), NO_ENVIRONMENT, "one DIR", "'b' is one too many");
    CHECK_REFUSED(EXIT_USAGE, ARGS("restore", ""), NO_ENVIRONMENT, "DIR of restore is empty");
    CHECK_REFUSED(EXIT_USAGE, ARGS("check", "x"), NO_ENVIRONMENT, "check takes no argument 'x'");
    CHECK_REFUSED(EXIT_USAGE, ARGS("export"), NO_ENVIRONMENT, "coppice export --jsonl");
    TEST_CHECK(parse(ARGS("export", "--jsonl"), NO_ENVIRONMENT) == 0);
}

static void test_a_text_that_is_nothing_by_default_may_be_nothing(void)
{
    TEST_CHECK(parse(ARGS("serve", "--store-record="), NO_ENVIRONMENT) == 0 && *options.store_record == 0);
    TEST_CHECK(parse(ARGS("serve", "--store-record", "x"), NO_ENVIRONMENT) == 0 && *options.store_record);
    CHECK_REFUSED(EXIT_CONFIG, ARGS("serve", "--store-dir="), NO_ENVIRONMENT, "--store-dir is ''");
    CHECK_REFUSED(EXIT_USAGE, ARGS("serve", "--store-record"), NO_ENVIRONMENT, "such as --store-record file");
    CHECK_REFUSED(EXIT_CONFIG, ARGS("serve", "--store-map-max", "1MiB"), NO_ENVIRONMENT,
                  "--store-map-max is 1048576B", "at least store.map");
}

/* One column, which no name reaches into. */
static void test_the_overview_is_aligned(void)
{
    static char page[16384];
    struct json_sink sink;
    size_t column = 0;
    json_sink_init(&sink, page, sizeof(page) - 1, NULL, NULL);
    options_write_help(&sink, NULL);
    TEST_CHECK(sink.status == JSON_OK);
    page[sink.length] = 0;
    for (int i = 0; i < COMMAND_COUNT; i++) {
        const char *prose = strstr(page, command_prose((enum command)i)), *line = prose;
        TEST_ASSERT(prose && prose - page > 2);
        TEST_CHECK_(prose[-1] == ' ' && prose[-2] == ' ', "%s", command_name((enum command)i));
        while (line > page && line[-1] != '\n')
            line--;
        column = column ? column : (size_t)(prose - line);
        TEST_CHECK_((size_t)(prose - line) == column, "%s", command_name((enum command)i));
    }
}

TEST_LIST
= {
    {"the overview is aligned", test_the_overview_is_aligned},
    {"defaults", test_defaults},
    {"flags over environment over defaults", test_flags_over_environment_over_defaults},
    {"values of each kind", test_values_of_each_kind},
    {"bad values: field, value and what is right", test_bad_values_name_field_value_and_what_is_right},
    {"JOB-454 an option of a call is no setting", test_JOB_454_an_option_of_a_call_is_no_setting},
    {"limits are inside", test_limits_are_inside},
    {"values together", test_values_together},
    {"command lines that cannot be meant", test_command_lines_that_cannot_be_meant},
    {"variables nearly known are refused, others left alone",
     test_variables_nearly_known_are_refused_and_others_left_alone},
    {"help is asked for in many ways", test_help_is_asked_for_in_many_ways},
    {"help names every option", test_help_names_every_option},
    {"every command has examples that can be typed", test_every_command_has_examples_that_can_be_typed},
    {"arguments of commands", test_arguments_of_commands},
    {"a text that is nothing by default may be nothing",
     test_a_text_that_is_nothing_by_default_may_be_nothing},
    {NULL, NULL},
};
