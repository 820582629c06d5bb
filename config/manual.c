#include "config/manual.h"

#include <stdio.h>
#include <string.h>

#include "config/acl.h"
#include "config/examples.h"
#include "config/output.h"
#include "http/surface.h"

enum { PAGE_NAME_SIZE = 64 };

/* ---- roff ---- */

/* Nothing of the text is taken for a request or an escape; hyphens are those that can be copied. */
static void text(struct json_sink *sink, const char *words)
{
    bool begins = true;
    for (; *words; words++) {
        if (begins && (*words == '.' || *words == '\''))
            json_sink_text(sink, "\\&");
        if (*words == '\\')
            json_sink_text(sink, "\\e");
        else if (*words == '-')
            json_sink_text(sink, "\\-");
        else
            json_sink_bytes(sink, words, 1);
        begins = *words == '\n';
    }
}

static void line(struct json_sink *sink, const char *words)
{
    text(sink, words);
    json_sink_text(sink, "\n");
}

static void heading(struct json_sink *sink, const char *name)
{
    json_sink_text(sink, ".SH ");
    json_sink_text(sink, name);
    json_sink_text(sink, "\n");
}

static void title(struct json_sink *sink, const char *name, char section, const char *what)
{
    static const char *const books[] = {['1' - '1'] = "User Commands",
                                        ['5' - '1'] = "File Formats",
                                        ['7' - '1'] = "Conventions",
                                        ['8' - '1'] = "System Administration"};
    const char number[] = {section, 0};
    json_sink_text(sink, ".TH \"");
    for (const char *c = name; *c; c++) {
        char upper = *c >= 'a' && *c <= 'z' ? (char)(*c - 'a' + 'A') : *c;
        json_sink_bytes(sink, &upper, 1);
    }
    json_sink_text(sink, "\" ");
    json_sink_text(sink, number);
    json_sink_text(sink, " \"\" \"coppice " COPPICE_VERSION "\" \"");
    json_sink_text(sink, books[section - '1']);
    json_sink_text(sink, "\"\n");
    heading(sink, "NAME");
    text(sink, name);
    json_sink_text(sink, " \\- ");
    line(sink, what);
}

static void bold(struct json_sink *sink, const char *words)
{
    json_sink_text(sink, "\\fB");
    text(sink, words);
    json_sink_text(sink, "\\fR");
}

/* A term, and what it means in the lines that follow. */
static void term(struct json_sink *sink, const char *words, const char *argument)
{
    json_sink_text(sink, ".TP\n");
    bold(sink, words);
    if (*argument) {
        json_sink_text(sink, " \\fI");
        text(sink, argument);
        json_sink_text(sink, "\\fR");
    }
    json_sink_text(sink, "\n");
}

static void explained(struct json_sink *sink, const char *words, const char *argument, const char *meaning)
{
    term(sink, words, argument);
    line(sink, meaning);
}

static void example_lines(struct json_sink *sink, const char *const *lines)
{
    heading(sink, "EXAMPLES");
    json_sink_text(sink, ".nf\n");
    for (; *lines; lines++)
        line(sink, *lines);
    json_sink_text(sink, ".fi\n");
}

/* ---- what several pages say ---- */

static void exit_statuses(struct json_sink *sink)
{
    static const char *const rows[][2] = {
        {"0", "it is done; of a server: the stop that was asked for"},
        {"1", "it failed, or the server refused"},
        {"64", "the command line cannot be meant"},
        {"65", "what was stored is damaged"},
        {"66", "there is no store"},
        {"69", "the address is taken, or nobody listens there"},
        {"70", "the restart budget is spent"},
        {"71", "the system refused"},
        {"73", "the directory holds something else"},
        {"74", "the disk failed or is full, or standard output takes no more"},
        {"75", "somebody else has the store"},
        {"77", "no permission"},
        {"78", "a value that cannot be used, or a store of a later release"},
    };
    heading(sink, "EXIT STATUS");
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        explained(sink, rows[i][0], "", rows[i][1]);
}

static void option_lines(struct json_sink *sink, const struct option *o, const char *name)
{
    char right[160], variable[OPTION_NAME_SIZE], words[512];
    option_right(o, right, sizeof(right));
    option_variable(o, variable);
    term(sink, name, o->kind == KIND_FLAG ? "" : *o->unit ? o->unit : "word");
    snprintf(words, sizeof(words), "%s.", o->prose);
    line(sink, words);
    snprintf(words, sizeof(words), "It must be %s; by default it is %s.%s%s", right,
             *o->preset ? o->preset : "nothing",
             o->marks & MARK_CALL ? "" : " Variable: ", o->marks & MARK_CALL ? "" : variable);
    line(sink, words);
}

static void other_line(struct json_sink *sink, const struct option *o)
{
    const struct option_other *other = option_other_of(o);
    char right[160], words[512];
    if (!other)
        return;
    option_other_right(other, right, sizeof(right));
    snprintf(words, sizeof(words), "Also as %s, %s.", other->key, right);
    line(sink, words);
}

static void files(struct json_sink *sink)
{
    heading(sink, "FILES");
    explained(sink, "/etc/coppice/coppice.json", "", "the settings; see coppice.json(5)");
    explained(sink, "/etc/coppice/conf.d/*.json", "", "more of them, read in the order of their names");
    explained(sink, "$XDG_CONFIG_HOME/coppice/coppice.json", "", "the same for a user who isn't root");
    explained(sink, "STORE/operator.token", "", "the operator's token, made at the first start");
}

static void see_also(struct json_sink *sink)
{
    heading(sink, "SEE ALSO");
    line(sink, "coppice(1), coppice.json(5), coppice-api(7), coppice(8)");
}

/* ---- coppice.1 and the commands ---- */

static void page_of_command(enum command command, char name[PAGE_NAME_SIZE])
{
    snprintf(name, PAGE_NAME_SIZE, "coppice-%s", command_name(command));
    for (char *c = name; *c; c++)
        if (*c == ' ')
            *c = '-';
}

static void write_program(struct json_sink *sink)
{
    static const char *const shown[] = {"coppice serve --store-dir /var/lib/coppice",
                                        "coppice config check --env prod --release",
                                        "coppice tree",
                                        "coppice kill deduper --reason 'game day' --dry-run",
                                        "coppice backup /backup/monday",
                                        "eval \"$(coppice completion bash)\"",
                                        NULL};
    title(sink, "coppice", '1', "a server of actors that survive each other's crashes");
    heading(sink, "SYNOPSIS");
    bold(sink, "coppice");
    line(sink, " COMMAND [OPTION...] [ARGUMENT]");
    heading(sink, "DESCRIPTION");
    line(sink,
         "One program: the server, and what looks after it. Commands that ask a running server find it by "
         "--operator-listen or --url, and show it the operator's token. What is data goes to standard "
         "output, everything else to standard error; --json prints what programs can read.");
    heading(sink, "COMMANDS");
    for (int i = 0; i < COMMAND_COUNT; i++)
        explained(sink, command_name((enum command)i), command_argument((enum command)i),
                  command_prose((enum command)i));
    heading(sink, "OPTIONS");
    line(sink, "Each command has its own; coppice help COMMAND and its page list them. -h and --help ask for "
               "help anywhere, -- ends the options.");
    exit_statuses(sink);
    heading(sink, "ENVIRONMENT");
    line(sink,
         "Each setting has a variable, COPPICE_ and its key in capitals: COPPICE_STORE_DIR is store.dir. "
         "Flags win over variables, these over the file, this over the defaults.");
    explained(sink, "NO_COLOR", "", "no colours, whatever the terminal");
    explained(sink, "TERM", "", "dumb: no colours");
    explained(sink, "OTEL_EXPORTER_OTLP_ENDPOINT", "", "where spans are sent; and the variables beside it");
    explained(sink, "NOTIFY_SOCKET, WATCHDOG_USEC, LISTEN_FDS, JOURNAL_STREAM", "",
              "the service manager's; see coppice(8)");
    files(sink);
    heading(sink, "SIGNALS");
    line(sink, "See coppice(8).");
    example_lines(sink, shown);
    see_also(sink);
}

static void write_command_page(struct json_sink *sink, enum command command)
{
    char name[PAGE_NAME_SIZE], flag[OPTION_NAME_SIZE];
    page_of_command(command, name);
    title(sink, name, '1', command_prose(command));
    heading(sink, "SYNOPSIS");
    bold(sink, "coppice ");
    bold(sink, command_name(command));
    json_sink_text(sink, " [OPTION...] ");
    line(sink, command_argument(command));
    heading(sink, "DESCRIPTION");
    text(sink, command_prose(command));
    json_sink_text(sink, ".\n");
    heading(sink, "OPTIONS");
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (option_table[i].commands >> command & 1) {
            option_flag(&option_table[i], flag);
            option_lines(sink, &option_table[i], flag);
        }
    explained(sink, "-h, --help", "", "print this in short");
    exit_statuses(sink);
    heading(sink, "EXAMPLES");
    for (size_t i = 0; i < examples_count; i++)
        if (examples[i].command == command) {
            char words[256];
            snprintf(words, sizeof(words), "coppice %s", examples[i].line);
            explained(sink, words, "", examples[i].what);
        }
    see_also(sink);
}

/* ---- coppice.json.5 ---- */

static void write_settings(struct json_sink *sink)
{
    static const char *const shown[] = {
        "// what this machine is for",
        "{",
        "  \"environment\": \"prod\",",
        "  \"store\": { \"dir\": \"/var/lib/coppice\" },",
        "  \"http.listen\": [\"127.0.0.1:8080\", \"unix:/run/coppice/client.sock\"],",
        "  \"log.level\": \"warn\"",
        "}",
        NULL};
    title(sink, "coppice.json", '5', "settings of coppice");
    heading(sink, "DESCRIPTION");
    line(sink,
         "One JSON object with comments (// and /* */). A key is written with dots, in nested objects, or "
         "both. Numbers stand for counts, true and false for flags, texts for everything else; where a "
         "setting may be several texts with commas between them, so is a list of texts. An unknown key, a "
         "key that stands there twice, and "
         "a value that can't be used are refused with the line, and nothing is started. Durations are "
         "numbers with ns, us, ms, s, m, h or d (1h30m), sizes with B, KiB, MiB, GiB or TiB.");
    json_sink_text(sink, ".PP\n");
    line(sink,
         "Flags win over variables of the environment, these over the file, the files of conf.d over the one "
         "beside them, all of them over the defaults. coppice config show says what counts, and where it "
         "comes from; coppice config check says whether it can be used; coppice config schema prints the "
         "JSON Schema. A reload (SIGHUP) applies the settings of which it is said, the next start the "
         "others.");
    heading(sink, "SETTINGS");
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option *o = &option_table[i];
        if (!option_is_setting(o))
            continue;
        option_lines(sink, o, o->key);
        other_line(sink, o);
        if (o->marks & MARK_RELOAD)
            line(sink, "Applied by a reload.");
    }
    for (size_t i = 0; i < FAMILY_COUNT; i++) {
        const struct option_family_row *row = &option_families[i];
        char words[256];
        snprintf(words, sizeof(words), "%s. In the file only. It must be a whole number from %llu to %llu.%s",
                 row->prose, (unsigned long long)row->min, (unsigned long long)row->max,
                 row->marks & MARK_RELOAD ? " Applied by a reload." : "");
        explained(sink, row->key, row->unit, words);
    }
    example_lines(sink, shown);
    files(sink);
    see_also(sink);
}

/* The same as a table for docs/. */
static void write_markdown(struct json_sink *sink)
{
    json_sink_text(sink, "| setting | default | what it is | applied by |\n|---|---|---|---|\n");
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option *o = &option_table[i];
        char right[160], words[1024];
        if (!option_is_setting(o))
            continue;
        option_right(o, right, sizeof(right));
        snprintf(words, sizeof(words), "| `%s` | %s%s%s | %s: %s | %s |\n", o->key, *o->preset ? "`" : "",
                 *o->preset ? o->preset : "none", *o->preset ? "`" : "", o->prose, right,
                 o->marks & MARK_RELOAD   ? "reload"
                 : o->marks & MARK_CLIENT ? "each command"
                                          : "start");
        for (const char *c = words, *end = words + strlen(words); c < end; c++)
            if (*c == '|' && c > words && c[-1] != ' ' && c[1] != ' ') /* between the words of a choice */
                json_sink_text(sink, "\\|");
            else
                json_sink_bytes(sink, c, 1);
    }
}

/* ---- coppice-api.7 ---- */

static const char *auth_words(const struct route *route)
{
    switch (route->auth) {
    case AUTH_NONE:
        return "no credentials";
    case AUTH_KEY:
        return "an API key";
    case AUTH_TOKEN:
        return "a token (JWT)";
    case AUTH_OPERATOR:
        return "the operator's token";
    case AUTH_OPTIONAL:
        return "an API key, if there is one";
    }
    return "";
}

static void write_routes(struct json_sink *sink, enum listening listening)
{
    struct surface_tables tables = surface_tables(listening);
    for (size_t t = 0; t < tables.count; t++)
        for (size_t i = 0; i < tables.counts[t]; i++) {
            const struct route *route = &tables.tables[t][i];
            char words[160], limits[ACL_LIMITS_SIZE];
            term(sink, method_name(route->method), route->path);
            acl_limits(route, limits);
            snprintf(words, sizeof(words), "Surface %s; needs %s%s%s.", surface_name(route->surface),
                     auth_words(route), route->limit == LIMIT_NONE ? "" : "; limit ",
                     route->limit == LIMIT_NONE ? "" : limits);
            line(sink, words);
        }
}

static void write_api(struct json_sink *sink)
{
    title(sink, "coppice-api", '7', "the HTTP interface of coppice");
    heading(sink, "DESCRIPTION");
    line(
        sink,
        "Clients and operators have a listener each (http.listen, operator.listen). The contracts are served "
        "at /openapi and printed by coppice contract show; what is written there is what requests are "
        "checked by. Errors of the control surface come in its envelope, all others as problem details "
        "(RFC 9457); each has a code of the list below, a request id and a trace id.");
    heading(sink, "CLIENTS");
    write_routes(sink, LISTENING_CLIENT);
    heading(sink, "OPERATORS");
    write_routes(sink, LISTENING_OPERATOR);
    heading(sink, "ERRORS");
    for (int i = ERROR_NONE + 1; i < ERROR_CODE_COUNT; i++) {
        const struct catalogue_row *row = catalogue_row((enum error_code)i);
        char words[768];
        snprintf(words, sizeof(words), "%d, %s. %s %s", row->status,
                 row->retryable ? "may be tried again" : "not to be tried again", row->title, row->action);
        explained(sink, row->code, "", words);
    }
    see_also(sink);
}

/* ---- coppice.8 ---- */

static void write_running(struct json_sink *sink)
{
    static const char *const shown[] = {"systemctl reload coppice", "journalctl -u coppice -o cat -f",
                                        "coppice top", "coppice log level debug", NULL};
    title(sink, "coppice", '8', "running the server");
    heading(sink, "SYNOPSIS");
    bold(sink, "coppice serve");
    json_sink_text(sink, " [OPTION...]\n");
    heading(sink, "DESCRIPTION");
    line(sink,
         "The server stays in the foreground and writes its log to standard error, one JSON object per line "
         "(log.format: text for people). It keeps everything in one directory (store.dir), which one server "
         "has at a time. A reader of the log that doesn't read never stops it: lines are dropped, counted, "
         "and the next line says how many.");
    heading(sink, "SIGNALS");
    explained(sink, "SIGTERM, SIGINT", "",
              "readiness goes, nothing new is accepted, requests end (http.shutdown_delay, http.drain), the "
              "process "
              "ends with 0. A second one ends it at once.");
    explained(
        sink, "SIGHUP", "",
        "the settings and certificates are read again, all or nothing; the log says what was applied, what "
        "needs a restart, or why everything stays as it was.");
    explained(sink, "SIGUSR1", "", "the living tree and the figures of the runtime go to the log.");
    heading(sink, "SERVICE MANAGER");
    line(sink,
         "With Type=notify the server says READY=1, RELOADING=1, STOPPING=1 and what it does. While it opens "
         "a store that takes its time, EXTEND_TIMEOUT_USEC= asks for more than TimeoutStartSec=, again and "
         "again for an hour at most. With WatchdogSec= "
         "it says WATCHDOG=1 as long as every scheduler makes progress, and only then. Descriptors of socket "
         "units are taken over: FileDescriptorName= is client or operator. Without a service manager "
         "--guardian starts the server again when it ends abnormally.");
    exit_statuses(sink);
    json_sink_text(sink, ".PP\n");
    line(sink, "RestartPreventExitStatus= should name 64, 65, 66, 73, 77 and 78: the next start would say "
               "the same.");
    files(sink);
    example_lines(sink, shown);
    see_also(sink);
}

/* ---- all of them ---- */

static const struct {
    const char *name;
    void (*write)(struct json_sink *sink);
} pages[] = {{"coppice.1", write_program},
             {"coppice.json.5", write_settings},
             {"coppice-api.7", write_api},
             {"coppice.8", write_running}};

bool manual_write(struct json_sink *sink, const char *page)
{
    char name[PAGE_NAME_SIZE];
    if (strcmp(page, "settings.md") == 0) {
        write_markdown(sink);
        return true;
    }
    for (size_t i = 0; i < sizeof(pages) / sizeof(*pages); i++)
        if (strcmp(pages[i].name, page) == 0) {
            pages[i].write(sink);
            return true;
        }
    for (int i = 0; i < COMMAND_COUNT; i++) {
        page_of_command((enum command)i, name);
        size_t length = strlen(name);
        if (strncmp(page, name, length) == 0 && strcmp(page + length, ".1") == 0) {
            write_command_page(sink, (enum command)i);
            return true;
        }
    }
    return false;
}

void manual_list(struct json_sink *sink)
{
    char name[PAGE_NAME_SIZE];
    for (size_t i = 0; i < sizeof(pages) / sizeof(*pages); i++) {
        json_sink_text(sink, pages[i].name);
        json_sink_text(sink, "\n");
    }
    for (int i = 0; i < COMMAND_COUNT; i++) {
        page_of_command((enum command)i, name);
        json_sink_text(sink, name);
        json_sink_text(sink, ".1\n");
    }
}

int command_manual(const struct options *o)
{
    struct json_sink sink = output_sink();
    if (strcmp(o->argument, "list") == 0)
        manual_list(&sink);
    else if (!manual_write(&sink, o->argument))
        return output_complain(EXIT_USAGE, "manual",
                               "has no such page; 'coppice manual list' prints their names");
    return output_done(&sink);
}
