/* coppice: the command line. What it does stands in options.h; what the server is, in topology.c. */

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/acl.h"
#include "config/boot.h"
#include "config/certificate.h"
#include "config/chaos_command.h"
#include "config/commands.h"
#include "config/job_commands.h"
#include "config/completion.h"
#include "config/contract_command.h"
#include "config/data.h"
#include "config/guardian.h"
#include "config/log.h"
#include "config/manual.h"
#include "config/notify.h"
#include "config/output.h"
#include "config/outside.h"
#include "config/routes.h"
#include "config/settings.h"
#include "config/sim_command.h"
#include "config/sockets.h"
#include "config/top.h"
#include "config/topology.h"
#include "http/catalogue.h"
#include "http/surface.h"
#include "http/tls.h"
#include "http/work_kinds.h"

extern char **environ;

static struct settings settings;
static int arguments_count;
static char **arguments;

/* ---- the program itself ---- */

static int help(const struct options *o)
{
    struct json_sink sink = output_sink();
    options_write_help(&sink, o->topic);
    return output_done(&sink);
}

static int version(const struct options *o)
{
    struct json_sink sink = output_sink();
    struct json json;
    if (!o->json) {
        json_sink_text(&sink, "coppice " COPPICE_VERSION "\n");
        return output_done(&sink);
    }
    json_init(&json, &sink);
    json_object_begin(&json);
    JSON_MEMBER(&json, "version", string, COPPICE_VERSION);
    JSON_MEMBER(&json, "compiler", string, __VERSION__);
    json_object_end(&json);
    json_end_line(&json);
    return output_done(&sink);
}

static int topology(const struct options *o)
{
    struct json_sink sink = output_sink();
    struct json json;
    char text[512];
    if (topology_check(topology_rows, topology_count, text, sizeof(text)) != OK)
        return output_complain(EXIT_CONFIG, "", text);
    if (!o->json) {
        topology_write_text(&sink, topology_rows, topology_count);
        return output_done(&sink);
    }
    json_init(&json, &sink);
    topology_write_json(&json, topology_rows, topology_count);
    json_end_line(&json);
    return output_done(&sink);
}

static int serve(const struct options *o)
{
    static struct sockets sockets;
    char why[512];
    struct boot boot = {.settings = &settings,
                        .rows = topology_rows,
                        .rows_count = topology_count,
                        .sockets = &sockets,
                        .argc = arguments_count,
                        .argv = arguments};
    log_open(o->log_level);
    log_set_text(strcmp(o->log_format, "text") == 0);
    log_set_journal(getenv("JOURNAL_STREAM"));
    if (boot_check(&boot, why, sizeof(why)) != OK)
        return output_refuse_settings(why);
    int status =
        sockets_open(&sockets, o->http_listen, o->operator_listen, (uint32_t)o->schedulers, why, sizeof(why));
    if (status)
        return status == EXIT_CONFIG ? output_refuse_settings(why) : output_complain(status, "", why);
    if (!outside_sockets(o, &sockets, why, sizeof(why))) {
        sockets_close(&sockets);
        return output_refuse_settings(why);
    }
    notify_open();
    status = o->guardian ? guardian_run(o->guardian_intensity, env_real(), boot_serve_guarded, &boot)
                         : boot_serve(&boot);
    notify_close();
    sockets_close(&sockets);
    return status;
}

/* ---- settings ---- */

/* JOB-360, JOB-454: settings that can't be used have a code of their own; an option of one call is none of them. */
static int refused(int status, int argc, char *const argv[], const char *why)
{
    bool check = argc > 2 && strcmp(argv[1], "config") == 0 && strcmp(argv[2], "check") == 0, as_json = false;
    struct json_sink sink = output_sink();
    struct json json;
    if (status != EXIT_CONFIG || settings.options.call_refused)
        return output_complain(status, "", why);
    for (int i = 3; i < argc; i++)
        as_json |= strcmp(argv[i], "--json") == 0;
    (void)output_refuse_settings(why);
    if (!check || !as_json)
        return status;
    json_init(&json, &sink);
    json_object_begin(&json);
    JSON_MEMBER(&json, "valid", bool, false);
    JSON_MEMBER(&json, "code", string, catalogue_row(ERROR_RFA_CONFIG_INVALID)->code);
    JSON_MEMBER(&json, "detail", string, why);
    json_object_end(&json);
    json_end_line(&json);
    (void)output_done(&sink);
    return status;
}

static void warn(void *context, const char *sentence)
{
    (void)context;
    fprintf(stderr, "coppice: warning: %s\n", sentence);
}

/* Of a file that is wrong somewhere; and what counts instead, which may not be what is meant. */
static void warn_damage(const struct settings *s)
{
    const struct options *o = &s->options;
    bool data = FOR_DATA >> o->command & 1, url = *o->url;
    enum option_position at = data ? OPTION_store_dir : url ? OPTION_url : OPTION_operator_listen;
    fprintf(stderr,
            "coppice: warning: going on with the %s %s (%s), without what is wrong in the settings: %s\n",
            data ? "store in" : "server at",
            data  ? o->store_dir
            : url ? o->url
                  : o->operator_listen,
            source_name(o->sources[at].kind), s->damage);
}

/* A server starts with a certificate that is out of its time; that is refused before a release, and else warned about. */
static bool certificates_good(const struct options *o, char *why, size_t why_size)
{
    struct tls_context *tls;
    char late[512];
    if (!*o->tls_certificate)
        return true;
    tls = tls_context_create(o->tls_certificate, o->tls_key, *o->tls_client_ca ? o->tls_client_ca : NULL, why,
                             why_size);
    if (!tls)
        return false;
    bool in_time = certificate_in_time(tls_context_validity(tls), o->tls_certificate, late, sizeof(late));
    tls_context_release(tls);
    if (!in_time && o->release)
        snprintf(why, why_size, "%s", late);
    else if (!in_time)
        warn(NULL, late);
    return in_time || !o->release;
}

static int config_check(const struct options *o)
{
    struct json_sink sink = output_sink();
    struct json json;
    char why[512];
    struct boot boot = {.settings = &settings, .rows = topology_rows, .rows_count = topology_count};
    log_open(LOG_ERROR);
    if (boot_check(&boot, why, sizeof(why)) != OK || !certificates_good(o, why, sizeof(why)) ||
        !outside_store(o, why, sizeof(why)))
        return refused(EXIT_CONFIG, arguments_count, arguments, why);
    int status = sockets_look(o->http_listen, o->operator_listen, warn, NULL, why, sizeof(why));
    if (status)
        return refused(status, arguments_count, arguments, why);
    options_warn(o, warn, NULL);
    if (o->json) {
        json_init(&json, &sink);
        json_object_begin(&json);
        JSON_MEMBER(&json, "valid", bool, true);
        JSON_MEMBER(&json, "environment", string, o->environment);
        if (o->print_catalogue) {
            json_key(&json, "work_kinds");
            work_kinds_write_json(&json);
        }
        json_object_end(&json);
        json_end_line(&json);
    } else if (o->print_catalogue) {
        work_kinds_write_table(&sink);
    } else {
        json_sink_text(&sink, "the settings can be used\n");
    }
    return output_done(&sink);
}

static int config_show(const struct options *o)
{
    struct json_sink sink = output_sink();
    struct json json;
    enum source_kind source = SOURCE_COUNT;
    for (int i = 0; i < SOURCE_COUNT; i++)
        if (strcmp(o->source, source_name((enum source_kind)i)) == 0)
            source = (enum source_kind)i;
    if (o->json) {
        json_init(&json, &sink);
        settings_write_json(&json, o, &settings.file, &settings.file, source);
        json_end_line(&json);
    } else {
        settings_write_text(&sink, o, &settings.file, source);
    }
    return output_done(&sink);
}

static int config_schema(const struct options *o)
{
    struct json_sink sink = output_sink();
    struct json json;
    (void)o;
    json_init(&json, &sink);
    settings_write_schema(&json);
    json_end_line(&json);
    return output_done(&sink);
}

static int contract_show(const struct options *o)
{
    struct json_sink sink = output_sink();
    char why[512] = "";
    int status = contract_command_show(o->argument, o->json, o->strict, &sink, why, sizeof(why));
    return status ? output_complain(status, "", why) : output_done(&sink);
}

static int contract_check(const struct options *o)
{
    struct surface_tables listenings[LISTENING_COUNT];
    struct json_sink sink = output_sink();
    char why[512] = "";
    for (int i = 0; i < LISTENING_COUNT; i++)
        listenings[i] = surface_tables((enum listening)i);
    int status = contract_command_check(listenings, LISTENING_COUNT, *o->base ? o->base : NULL, o->json,
                                        &sink, why, sizeof(why));
    if (status == EXIT_USAGE) /* nothing was compared: what there is of a report is none */
        return output_complain(status, "", why);
    int written = output_done(&sink);
    if (*why)
        output_complain(status, "", why);
    return status ? status : written;
}

/* ---- the store ---- */

static int over_data(const struct options *o, data_command *command)
{
    struct json_sink sink = output_sink();
    char why[1024] = "";
    int status = command(o, &sink, why, sizeof(why));
    int written = output_done(&sink);
    if (*why)
        output_complain(status, "", why);
    return status ? status : written;
}

/* static int check(const struct options *o), and so on */
#define DATA_COMMAND(name)                   \
    static int name(const struct options *o) \
    {                                        \
        return over_data(o, data_##name);    \
    }
DATA_COMMAND(check)
DATA_COMMAND(stat)
DATA_COMMAND(backup)
DATA_COMMAND(restore)
DATA_COMMAND(export)
DATA_COMMAND(replay)

int main(int argc, char *argv[])
{
    static int (*const commands[COMMAND_COUNT])(const struct options *o) = {
        [COMMAND_SERVE] = serve,
        [COMMAND_TREE] = command_tree,
        [COMMAND_TOP] = command_top,
        [COMMAND_STATS] = command_stats,
        [COMMAND_EVENTS] = command_events,
        [COMMAND_KILL] = command_kill,
        [COMMAND_CHAOS_LIST] = command_chaos_list,
        [COMMAND_CHAOS_RUN] = command_chaos_run,
        [COMMAND_SIM] = command_sim,
        [COMMAND_RELOAD] = command_reload,
        [COMMAND_LOG_LEVEL] = command_log_level,
        [COMMAND_CLOCK_ADVANCE] = command_clock_advance,
        [COMMAND_KEYS_LIST] = command_keys_list,
        [COMMAND_KEYS_ROTATE] = command_keys_rotate,
        [COMMAND_KEYS_REVOKE] = command_keys_revoke,
        [COMMAND_KEYS_BOOTSTRAP] = command_keys_bootstrap,
        [COMMAND_KEYS_HISTORY] = command_keys_history,
        [COMMAND_KEYS_ISSUE] = command_keys_issue,
        [COMMAND_TOKEN_ISSUE] = command_token_issue,
        [COMMAND_TOKEN_REVOKE] = command_token_revoke,
        [COMMAND_PAUSE] = command_pause,
        [COMMAND_RESUME] = command_resume,
        [COMMAND_PAUSES] = command_pauses,
        [COMMAND_OUTBOX_DEAD] = command_outbox_dead,
        [COMMAND_OUTBOX_REVIVE] = command_outbox_revive,
        [COMMAND_REPORT] = command_report,
        [COMMAND_EXPLAIN] = command_explain,
        [COMMAND_INSPECT_JOB] = command_inspect_job,
        [COMMAND_INSPECT_CLIENT] = command_inspect_client,
        [COMMAND_INSPECT_REPORT] = command_inspect_report,
        [COMMAND_PRINCIPAL_LIST] = command_principal_list,
        [COMMAND_PRINCIPAL_CREATE] = command_principal_create,
        [COMMAND_PRINCIPAL_ROTATE] = command_principal_rotate,
        [COMMAND_PRINCIPAL_REVOKE] = command_principal_revoke,
        [COMMAND_CONFIG_CHECK] = config_check,
        [COMMAND_CONFIG_SHOW] = config_show,
        [COMMAND_CONFIG_SCHEMA] = config_schema,
        [COMMAND_CONTRACT_CHECK] = contract_check,
        [COMMAND_CONTRACT_SHOW] = contract_show,
        [COMMAND_ACL] = command_acl,
        [COMMAND_AUDIT_LIST] = command_audit_list,
        [COMMAND_TOPOLOGY] = topology,
        [COMMAND_CHECK] = check,
        [COMMAND_STAT] = stat,
        [COMMAND_BACKUP] = backup,
        [COMMAND_RESTORE] = restore,
        [COMMAND_EXPORT] = export,
        [COMMAND_REPLAY] = replay,
        [COMMAND_COMPLETION] = command_completion,
        [COMMAND_MANUAL] = command_manual,
        [COMMAND_VERSION] = version,
        [COMMAND_HELP] = help,
    };
    char why[1024];
    arguments_count = argc;
    arguments = argv;
    output_open();
    surface_add(LISTENING_OPERATOR, config_routes, config_routes_count);
    int status = settings_load(&settings, argc, argv, environ, why, sizeof(why));
    if (status)
        return refused(status, argc, argv, why);
    if (settings.damage[0])
        warn_damage(&settings);
    return commands[settings.options.command](&settings.options);
}
