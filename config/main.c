/* coppice: the command line. What it does stands in options.h; what the server is, in topology.c. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "config/boot.h"
#include "config/client.h"
#include "config/guardian.h"
#include "config/log.h"
#include "config/topology.h"
#include "http/address.h"

extern char **environ;

#define EXIT_UNAVAILABLE 69

/* ---- standard output: a reader that has gone (coppice tree | head) ends the program quietly ---- */

static bool flush_out(void *context, const char *bytes, size_t length)
{
    (void)context;
    while (length > 0) {
        ssize_t written = write(STDOUT_FILENO, bytes, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return false;
        bytes += written;
        length -= (size_t)written;
    }
    return true;
}

static char out_buffer[8192];

static struct json_sink out(void)
{
    struct json_sink sink;
    json_sink_init(&sink, out_buffer, sizeof(out_buffer), flush_out, NULL);
    return sink;
}

static int done(struct json_sink *sink)
{
    return json_sink_flush(sink) == JSON_OK || errno == EPIPE ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int complain(int status, const char *what, const char *text)
{
    fprintf(stderr, "coppice: %s%s%s\n", what, *what ? " " : "", text);
    return status;
}

/* ---- commands ---- */

static int help(const struct options *o)
{
    struct json_sink sink = out();
    options_write_help(&sink, o->topic);
    return done(&sink);
}

static int version(const struct options *o)
{
    struct json_sink sink = out();
    struct json json;
    if (!o->json) {
        json_sink_text(&sink, "coppice " COPPICE_VERSION "\n");
        return done(&sink);
    }
    json_init(&json, &sink);
    json_object_begin(&json);
    JSON_MEMBER(&json, "version", string, COPPICE_VERSION);
    JSON_MEMBER(&json, "compiler", string, __VERSION__);
    json_object_end(&json);
    json_end_line(&json);
    return done(&sink);
}

static int topology(const struct options *o)
{
    struct json_sink sink = out();
    struct json json;
    char text[512];
    if (topology_check(topology_rows, topology_count, text, sizeof(text)) != OK)
        return complain(EXIT_CONFIG, "", text);
    if (!o->json) {
        topology_write_text(&sink, topology_rows, topology_count);
        return done(&sink);
    }
    json_init(&json, &sink);
    topology_write_json(&json, topology_rows, topology_count);
    json_end_line(&json);
    return done(&sink);
}

static bool operator_address(const struct options *o, struct address *ret_address)
{
    char why[256];
    if (address_parse(o->operator_listen, ret_address, why, sizeof(why)))
        return true;
    complain(0, "--operator-listen is", why);
    return false;
}

static int tree(const struct options *o)
{
    struct json_sink sink = out();
    struct address address;
    char why[256];
    if (!operator_address(o, &address))
        return EXIT_CONFIG;
    int status =
        client_get(&address, o->json ? "/stats/tree" : "/stats/tree?format=text", &sink, why, sizeof(why));
    if (status == 200)
        return EXIT_SUCCESS;
    if (status != 0)
        return complain(EXIT_FAILURE, "the server refused, see above;", "is it a coppice server?");
    fprintf(stderr, "coppice: %s: %s; 'coppice serve' starts a server, --operator-listen says where one is\n",
            o->operator_listen, why);
    return EXIT_UNAVAILABLE;
}

static int serve(const struct options *o)
{
    struct address address;
    char why[512];
    log_open(o->log_level);
    if (!operator_address(o, &address))
        return EXIT_CONFIG;
    struct boot boot = {.options = o, .rows = topology_rows, .rows_count = topology_count, .listening = -1};
    if (boot_check(&boot, why, sizeof(why)) != OK)
        return complain(EXIT_CONFIG, "", why);
    boot.listening = address_listen(&address, why, sizeof(why));
    if (boot.listening < 0) {
        fprintf(stderr, "coppice: --operator-listen is '%s': %s\n", o->operator_listen, why);
        return EXIT_UNAVAILABLE;
    }
    int status =
        o->guardian ? guardian_run(o->guardian_intensity, env_real(), boot_serve, &boot) : boot_serve(&boot);
    address_remove(&address);
    return status;
}

int main(int argc, char *argv[])
{
    static int (*const commands[])(const struct options *o) = {
        [COMMAND_SERVE] = serve,     [COMMAND_TREE] = tree, [COMMAND_TOPOLOGY] = topology,
        [COMMAND_VERSION] = version, [COMMAND_HELP] = help,
    };
    struct options options;
    char why[512];
    int status = options_parse(&options, argc, argv, environ, why, sizeof(why));
    return status ? complain(status, "", why) : commands[options.command](&options);
}
