#define _GNU_SOURCE
#include "config/chaos_command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/chaos_client.h"
#include "config/chaos_run.h"
#include "config/commands.h"
#include "config/output.h"

enum { REPORT_MAX = 32768 }; /* of its JSON: CHAOS_FINDINGS_MAX texts are half of it */

/* ---- what there is ---- */

int command_chaos_list(const struct options *o)
{
    struct json_sink sink = output_sink();
    struct json json;
    json_init(&json, &sink);
    if (o->json)
        json_array_begin(&json);
    for (int i = 0; i < SCENARIO_COUNT; i++) {
        struct chaos_script script;
        if (!chaos_script_read((enum chaos_scenario)i, &script))
            return output_complain(EXIT_FAILURE, chaos_scenario_name((enum chaos_scenario)i),
                                   "has no head that can be read");
        if (o->json) {
            json_object_begin(&json);
            JSON_MEMBER(&json, "scenario", string, script.name);
            JSON_MEMBER(&json, "does", string, script.does);
            JSON_MEMBER(&json, "holds", string, script.holds);
            json_object_end(&json);
            continue;
        }
        json_sink_text(&sink, script.name);
        json_sink_text(&sink, "\n  does   ");
        json_sink_text(&sink, script.does);
        json_sink_text(&sink, "\n  holds  ");
        json_sink_text(&sink, script.holds);
        json_sink_text(&sink, "\n");
    }
    if (o->json) {
        json_array_end(&json);
        json_end_line(&json);
    }
    return output_done(&sink);
}

/* ---- what is asked for ---- */

static int refuse(const char *what, const char *text)
{
    return output_complain(EXIT_USAGE, what, text);
}

static bool number_read(const char *text, uint64_t *ret)
{
    char *end;
    errno = 0;
    *ret = strtoull(text, &end, 10);
    return *text >= '0' && *text <= '9' && !*end && !errno && *ret <= INT64_MAX;
}

static bool skipped(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = list; *at; at += strcspn(at, ",") + (at[strcspn(at, ",")] == ','))
        if (strncmp(at, name, length) == 0 && (at[length] == ',' || !at[length]))
            return true;
    return false;
}

/* Each name of the list is a scenario's. */
static bool skip_known(const char *list, char *why, size_t why_size)
{
    for (const char *at = list; *at; at += strcspn(at, ",") + (at[strcspn(at, ",")] == ',')) {
        char name[64];
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(at, ","), at);
        if (chaos_scenario_named(name) == SCENARIO_COUNT) {
            snprintf(why, why_size, "there is no scenario '%.60s'; coppice chaos list has them", name);
            return false;
        }
    }
    return true;
}

static enum chaos_check control_of(const char *name)
{
    for (int i = 0; i < CHECK_COUNT; i++)
        if (strcmp(name, chaos_check_name((enum chaos_check)i)) == 0)
            return (enum chaos_check)i;
    return CHECK_COUNT;
}

/* ---- where ---- */

#define PLAIN_ALONE \
    "which this command can't; --client-url takes a unix: address of http.listen, or one without TLS"

static struct chaos_answer answer;

/* The settings as the server has them; without nodes: it doesn't tell. */
static struct json_text settings;

static void settings_ask(const struct client *operators)
{
    static char bytes[262144], why[512];
    static struct json_node nodes[16384];
    struct json_sink sink;
    struct json_error error;
    settings = (struct json_text){.nodes = nodes, .nodes_max = sizeof(nodes) / sizeof(*nodes)};
    json_sink_init(&sink, bytes, sizeof(bytes), NULL, NULL);
    if (client_call(operators, &(struct client_request){.method = "GET", .target = "/config"}, &sink, why,
                    sizeof(why)) != 200 ||
        !json_text_read(&settings, span_of(bytes, sink.length), NULL, &error))
        settings.count = 0;
}

/* Its value; NULL: it can't be known. */
static const struct json_node *setting_of_server(const char *key)
{
    char name[64];
    const struct json_node *list =
        settings.count ? chaos_json_at(&settings, json_root(&settings), "settings", NULL) : NULL;
    for (const struct json_node *e = list && list->kind == JSON_ARRAY ? json_first(&settings, list) : NULL; e;
         e = json_after(&settings, list, e))
        if (chaos_json_text(&settings, chaos_json_at(&settings, e, "key", NULL), name, sizeof(name)) &&
            strcmp(name, key) == 0)
            return chaos_json_at(&settings, e, "value", NULL);
    return NULL;
}

/* Its clients connect by TLS, but for those at unix sockets. */
static bool tls_of_server(void)
{
    char value[4096];
    const struct json_node *certificate = setting_of_server("tls.certificate");
    return certificate && (!chaos_json_text(&settings, certificate, value, sizeof(value)) || *value);
}

/* The first address of http.listen that is spoken to without TLS. False: there is none, or it can't be known, and why. */
static bool listen_of_server(char *url, size_t size, char *why, size_t why_size)
{
    char value[256], *at = value;
    bool tls = tls_of_server();
    snprintf(why, why_size, "where clients connect isn't known; --client-url says it");
    if (!chaos_json_text(&settings, setting_of_server("http.listen"), value, sizeof(value)))
        return false;
    while (tls && *at && strncmp(at, "unix:", 5) != 0)
        at += strcspn(at, ",") + (at[strcspn(at, ",")] == ',');
    if (!*at) {
        snprintf(why, why_size, "clients connect by TLS at %.200s, " PLAIN_ALONE, value);
        return false;
    }
    at[strcspn(at, ",")] = 0;
    bool any = at[0] == '*', local = strncmp(at, "unix:", 5) == 0;
    snprintf(url, size, "%s%s%s", local ? "" : "http://", any ? "127.0.0.1" : "", at + any);
    return strcmp(url + strlen(url) - (strlen(url) > 1 ? 2 : 0), ":0") != 0;
}

/* What a client may ask for without being told to come again, which would be the limit's doing and not the fault's. Two fifths are left for
 * the scripts, and for asking after each job at the end. */
static uint64_t rate_within_limits(uint64_t rate)
{
    char text[32];
    const struct json_node *value = setting_of_server("limits.requests_per_minute");
    uint64_t limit = chaos_json_uint(&settings, value);
    if (!limit && (!chaos_json_text(&settings, value, text, sizeof(text)) || !number_read(text, &limit)))
        return rate;
    uint64_t most = limit / 60 * 3 / 5 ? limit / 60 * 3 / 5 : 1;
    if (rate <= most)
        return rate;
    fprintf(
        stderr,
        "coppice: the load is %llu requests a second instead of %llu: limits.requests_per_minute is %llu\n",
        (unsigned long long)most, (unsigned long long)rate, (unsigned long long)limit);
    return most;
}

/* named: who says the URL. */
static bool clients_open(struct client *ret, const struct options *o, const char *url, const char *named,
                         char *why, size_t why_size)
{
    struct options options = *o;
    options.url = url;
    options.token_file = options.operator_token = "";
    options.store_dir = "/nowhere"; /* the operator's token is none of theirs */
    return client_open_url(ret, &options, named, why, why_size) == 0;
}

#define REASON "\"reason\":\"coppice chaos run\"" /* for the audit log */

/* A client of its own, with a key that the operator gives it. */
static bool key_get(struct chaos_order *order, char *why, size_t why_size)
{
    char path[128];
    int status = chaos_client_ask(
        &order->clients, &(struct client_request){.method = "POST", .target = "/v1/clients"}, &answer);
    if (status / 100 != 2 ||
        !chaos_answer_text(&answer, "client_id", order->client_id, sizeof(order->client_id))) {
        bool tls = !order->clients.address.local_file && tls_of_server();
        snprintf(why, why_size, "%s: no client can be made there: %s%s", order->client_url, answer.why,
                 status ? ""
                 : tls  ? "; the server's clients connect by TLS, " PLAIN_ALONE
                        : "; --client-url says where clients connect");
        return false;
    }
    snprintf(path, sizeof(path), "/clients/%s/keys:issue", order->client_id);
    status = chaos_client_ask(
        &order->operators, &(struct client_request){.method = "POST", .target = path, .body = "{" REASON "}"},
        &answer);
    if (status / 100 == 2 && chaos_answer_text(&answer, "key_id", order->key_id, sizeof(order->key_id)) &&
        chaos_answer_text(&answer, "api_key", order->clients.token, sizeof(order->clients.token)))
        return true;
    snprintf(why, why_size, "no key can be had: %.300s", answer.why);
    return false;
}

/* Nobody is left behind who may submit jobs. A server that doesn't come back can't be told. */
static void key_return(const struct chaos_order *order)
{
    char path[128], body[128];
    snprintf(path, sizeof(path), "/clients/%s/keys:revoke", order->client_id);
    snprintf(body, sizeof(body), "{\"key_id\":\"%s\"," REASON "}", order->key_id);
    (void)chaos_client_ask(&order->operators,
                           &(struct client_request){.method = "POST", .target = path, .body = body}, &answer);
}

static bool order_make(struct chaos_order *order, const struct options *o, char *why, size_t why_size)
{
    static char url[300];
    *order = (struct chaos_order){
        .options = o, .rate = o->rate, .full = o->full, .control = control_of(o->control)};
    if (!number_read(o->seed, &order->seed)) {
        snprintf(why, why_size, "--seed is '%.60s'; it must be a number", o->seed);
        return false;
    }
    if (client_open(&order->operators, o, why, why_size) != 0)
        return false;
    int status = chaos_client_ask(&order->operators,
                                  &(struct client_request){.method = "GET", .target = "/log"}, &answer);
    if (status != 200) {
        snprintf(why, why_size, "%.200s: %.300s%s", order->operators.named, answer.why,
                 status ? "" : "; 'coppice serve' starts a server");
        return false;
    }
    settings_ask(&order->operators);
    snprintf(url, sizeof(url), "%s", o->client_url);
    if (!*url && !listen_of_server(url, sizeof(url), why, why_size))
        return false;
    order->client_url = url;
    if (!clients_open(&order->clients, o, url, *o->client_url ? "--client-url" : "the server's http.listen",
                      why, why_size))
        return false;
    order->clients.timeout_s = order->operators.timeout_s = CHAOS_TIMEOUT_S;
    return true;
}

/* ---- what came of it ---- */

static bool report_json(const struct chaos_report *r, char *room, size_t *ret_size)
{
    struct json_sink sink;
    struct json json;
    json_sink_init(&sink, room, REPORT_MAX - 1, NULL, NULL);
    json_init(&json, &sink);
    chaos_report_write_json(&json, r);
    bool good = json_end(&json) == JSON_OK;
    room[sink.length] = 0;
    *ret_size = sink.length;
    return good;
}

static void keep(const struct chaos_order *order, const char *text)
{
    int status = chaos_client_ask(
        &order->operators,
        &(struct client_request){.method = "POST", .target = "/chaos/reports", .body = text}, &answer);
    if (status / 100 != 2)
        (void)output_complain(0, "the server didn't keep the report:", answer.why);
}

/* DIR/SCENARIO.json and DIR/SCENARIO.txt. False: it couldn't be written. */
static bool write_files(const char *dir, const struct chaos_report *r, const char *text, size_t size)
{
    char path[4200], page[16384];
    struct json_sink sink;
    json_sink_init(&sink, page, sizeof(page), NULL, NULL);
    chaos_report_write_page(&sink, r);
    const struct {
        const char *suffix, *bytes;
        size_t size;
    } files[] = {{"json", text, size}, {"txt", page, sink.length}};
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "%.4000s/%s.%s", dir, r->script->name, files[i].suffix);
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        bool good = fd >= 0 && write(fd, files[i].bytes, files[i].size) == (ssize_t)files[i].size;
        if (fd >= 0)
            close(fd);
        if (!good)
            return false;
    }
    return true;
}

static int tell(const struct chaos_order *order, const struct chaos_report *r)
{
    static char text[REPORT_MAX];
    struct json_sink out = output_sink();
    size_t size;
    const struct options *o = order->options;
    if (!report_json(r, text, &size))
        return output_complain(EXIT_FAILURE, r->script->name, "the report is too long");
    if (o->json) {
        json_sink_bytes(&out, text, size);
        json_sink_text(&out, "\n");
    } else {
        chaos_report_write_page(&out, r);
    }
    int status = output_done(&out);
    if (order->control == CHECK_COUNT)
        keep(order, text);
    if (*o->report_dir && !write_files(o->report_dir, r, text, size))
        return output_complain(EXIT_FAILURE, o->report_dir, strerror(errno));
    return status;
}

/* ---- running ---- */

static int verdict(const struct chaos_order *order, const struct chaos_report *r)
{
    if (order->control == CHECK_COUNT)
        return r->outcome == OUTCOME_HELD ? EXIT_SUCCESS : EXIT_FAILURE;
    if (chaos_report_denied(r, order->control))
        return EXIT_SUCCESS;
    return output_complain(EXIT_FAILURE, chaos_check_name(order->control), "has not noticed its control");
}

static int run_one(const struct chaos_order *order, enum chaos_scenario which)
{
    static struct chaos_report report;
    struct chaos_script script;
    char why[1024];
    if (!chaos_script_read(which, &script))
        return output_complain(EXIT_FAILURE, chaos_scenario_name(which), "has no head that can be read");
    if (!chaos_run(order, &script, &report, why, sizeof(why)))
        return output_complain(EXIT_FAILURE, script.name, why);
    int status = tell(order, &report);
    return status ? status : verdict(order, &report);
}

static int run_all(const struct chaos_order *order)
{
    uint32_t good = 0, bad = 0;
    char line[64];
    for (int i = 0; i < SCENARIO_COUNT; i++) {
        if (skipped(order->options->skip, chaos_scenario_name((enum chaos_scenario)i)))
            continue;
        if (run_one(order, (enum chaos_scenario)i) == EXIT_SUCCESS)
            good++;
        else
            bad++;
    }
    struct json_sink out = output_sink();
    snprintf(line, sizeof(line), "%u passed, %u failed\n", good, bad);
    if (order->options->json)
        fputs(line, stderr);
    else
        json_sink_text(&out, line);
    int written = output_done(&out);
    return written ? written : bad ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Before anything is done to the server: its reports couldn't be kept. */
static bool report_dir_good(const char *dir, char *why, size_t why_size)
{
    if (!*dir || ((mkdir(dir, 0777) == 0 || errno == EEXIST) && access(dir, W_OK | X_OK) == 0))
        return true;
    snprintf(why, why_size, "--report-dir is '%.900s': %s", dir, strerror(errno));
    return false;
}

static bool agreed(const struct options *o, const struct client *operators)
{
    char question[512];
    snprintf(question, sizeof(question), "Do '%s' to the server at %.200s?", o->argument, operators->named);
    return o->yes || output_ask(question);
}

int command_chaos_run(const struct options *o)
{
    static struct chaos_order order;
    char why[1024];
    bool all = strcmp(o->argument, "all") == 0;
    enum chaos_scenario which = chaos_scenario_named(o->argument);
    if (!all && which == SCENARIO_COUNT) {
        snprintf(why, sizeof(why), "there is no scenario '%.60s'; coppice chaos list has them", o->argument);
        return refuse("chaos run:", why);
    }
    if (!skip_known(o->skip, why, sizeof(why)) || !order_make(&order, o, why, sizeof(why)))
        return refuse("chaos run:", why);
    if (!o->yes && (!o->input || !output_interactive()))
        return refuse("chaos run", "needs --yes where nobody can be asked");
    if (!agreed(o, &order.operators))
        return EXIT_FAILURE;
    if (!report_dir_good(o->report_dir, why, sizeof(why)))
        return output_complain(EXIT_FAILURE, "", why);
    if (!key_get(&order, why, sizeof(why)))
        return refuse("chaos run:", why);
    order.rate = rate_within_limits(order.rate);
    int status = all ? run_all(&order) : run_one(&order, which);
    key_return(&order);
    return status;
}
