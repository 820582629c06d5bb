#include "config/commands.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/output.h"
#include "config/people.h"
#include "http/events.h"
#include "runtime/telemetry.h"
#include "store/uuid.h"

enum { NODES_MAX = JSON_TEXT_NODES_MAX, BODY_MAX = 2048, PAGE = 100, WATCH_LEAST = 100000000 /* ns */ };

int command_failed(const struct client *c, int status, const char *why)
{
    if (status == 401)
        fprintf(stderr,
                "coppice: %s: %s; --token-file says where the operator's token is, or --store-dir where the "
                "server's store is\n",
                c->named, why);
    else if (status == 404 &&
             strstr(why, "OPS_404_NO_ROUTE")) /* of a thing that isn't there it would be NOT_FOUND */
        fprintf(stderr, "coppice: %s: %s; is that the operators' listener, of this version?\n", c->named,
                why);
    else if (status) /* also CLIENT_FORBIDDEN */
        fprintf(stderr, "coppice: %s: %s\n", c->named, why);
    else if (strncmp(why, CLIENT_UNHEARD, strlen(CLIENT_UNHEARD)) == 0) /* there is a server */
        fprintf(stderr, "coppice: %s: %s\n", c->named, why);
    else
        fprintf(stderr,
                "coppice: %s: %s; 'coppice serve' starts a server, --operator-listen or --url says where one "
                "is\n",
                c->named, why);
    return status == CLIENT_FORBIDDEN ? EXIT_NOPERM : status ? EXIT_FAILURE : EXIT_UNAVAILABLE;
}

/* The body of the answer into the sink. */
static int call(const struct options *o, const struct client_request *request, struct json_sink *sink)
{
    struct client client;
    char why[1024];
    int status = client_open(&client, o, why, sizeof(why));
    if (status)
        return output_complain(status, "", why);
    status = client_call(&client, request, sink, why, sizeof(why));
    return status / 100 == 2 ? EXIT_SUCCESS : command_failed(&client, status, why);
}

/* EXIT_SUCCESS, or complained of; with `ret_large` one that can't be looked into for its size isn't, and *ret_large is true. */
static int look_into(const struct options *o, const struct client_request *request,
                     struct json_text *ret_json, bool *ret_large)
{
    static char body[COMMAND_ANSWER_MAX];
    static struct json_node nodes[NODES_MAX];
    struct json_sink sink;
    struct json_error error;
    json_sink_init(&sink, body, sizeof(body), NULL, NULL);
    int status = call(o, request, &sink);
    if (status)
        return status;
    *ret_json = (struct json_text){.nodes = nodes, .nodes_max = NODES_MAX};
    const struct json_limits limits = {.elements = 65535, .members = 65535};
    if (sink.status == JSON_OK && json_text_read(ret_json, span_of(body, sink.length), &limits, &error))
        return EXIT_SUCCESS;
    bool large = sink.status != JSON_OK || error.limit;
    if (large && ret_large)
        *ret_large = true;
    else if (large)
        (void)output_complain(EXIT_FAILURE, "", "the answer is larger than what can be looked into");
    else
        (void)output_complain(EXIT_FAILURE, "the answer is not JSON:", error.what);
    return EXIT_FAILURE;
}

int command_ask(const struct options *o, const struct client_request *request, struct json_text *ret_json)
{
    return look_into(o, request, ret_json, NULL);
}

/* ---- in which form ---- */

static bool as_json(const struct options *o)
{
    return o->json || strncmp(o->output, "json", 4) == 0;
}

static void print(const struct options *o, struct json_sink *out, const struct json_text *json)
{
    struct span raw = json_raw_of(json, json_root(json));
    if (as_json(o)) {
        json_sink_bytes(out, raw.bytes, raw.size);
        json_sink_text(out, "\n");
    } else if (strcmp(o->output, "wide") == 0) {
        people_write_wide(out, json, json_root(json));
    } else {
        people_write(out, json, json_root(json));
    }
}

int command_again(const struct options *o, int (*once)(const struct options *o))
{
    int status = once(o);
    uint64_t pause = o->watch > WATCH_LEAST ? o->watch : WATCH_LEAST;
    while (status == 0 && o->watch && output_pause(pause))
        status = once(o);
    return status;
}

/* What passes through, and how it ended. */
struct passing {
    struct json_sink *out;
    char last;
};

static bool pass_on(void *context, const char *bytes, size_t size)
{
    struct passing *p = context;
    p->last = size ? bytes[size - 1] : p->last;
    json_sink_bytes(p->out, bytes, size);
    return p->out->status == JSON_OK;
}

/* As it came, however large it is, and as a whole line. */
static int show_raw(const struct options *o, const struct client_request *request)
{
    static char room[8192];
    struct json_sink out = output_sink(), sink;
    struct passing passing = {.out = &out};
    json_sink_init(&sink, room, sizeof(room), pass_on, &passing);
    int status = call(o, request, &sink);
    if (status)
        return status;
    (void)json_sink_flush(&sink);
    if (passing.last && passing.last != '\n')
        json_sink_text(&out, "\n");
    return output_done(&out);
}

/* As it came, or for people. */
static int show(const struct options *o, const struct client_request *request)
{
    struct json_sink out = output_sink();
    struct json_text json;
    if (as_json(o))
        return show_raw(o, request);
    int status = command_ask(o, request, &json);
    if (status)
        return status;
    print(o, &out, &json);
    return output_done(&out);
}

static int warn_unseen(const struct json_text *json)
{
    const struct json_node *root = json_root(json),
                           *seen = root->kind == JSON_OBJECT ? json_member(json, root, "seen") : NULL;
    if (seen && seen->kind == JSON_FALSE)
        (void)output_complain(
            0, "warning:", "no token of that id has come here so far; is it the one you mean?");
    return EXIT_SUCCESS;
}

/* The same, and then what the answer means for the exit status. */
static int show_and_look(const struct options *o, const struct client_request *request,
                         int (*look)(const struct json_text *answer))
{
    struct json_sink out = output_sink();
    struct json_text json;
    int status = command_ask(o, request, &json);
    if (status)
        return status;
    print(o, &out, &json);
    status = output_done(&out);
    return status || (o->quiet && look == warn_unseen) ? status : look(&json);
}

/* A JSON object of texts: name, value, name, value, ..., NULL. Empty values are left out. */
static bool body_of(char *body, size_t size, ...)
{
    struct json_sink sink;
    struct json json;
    va_list list;
    json_sink_init(&sink, body, size - 1, NULL, NULL);
    json_init(&json, &sink);
    json_object_begin(&json);
    va_start(list, size);
    for (const char *name; (name = va_arg(list, const char *));) {
        const char *value = va_arg(list, const char *);
        if (*value)
            JSON_MEMBER(&json, name, string, value);
    }
    va_end(list);
    json_object_end(&json);
    bool good = json_end(&json) == JSON_OK;
    body[sink.length] = 0;
    return good;
}

bool command_target(char *target, const char *head, const char *argument, const char *tail)
{
    char escaped[CLIENT_TARGET_MAX];
    if (!client_escape(argument, escaped, sizeof(escaped)))
        return false;
    int length = snprintf(target, CLIENT_TARGET_MAX, "%s%s%s", head, escaped, tail);
    return length > 0 && (size_t)length < CLIENT_TARGET_MAX;
}

static int too_long(void)
{
    return output_complain(EXIT_USAGE, "", "an argument is too long to be sent");
}

int command_show(const struct options *o, const char *head, const char *argument, const char *tail)
{
    char target[CLIENT_TARGET_MAX];
    if (!command_target(target, head, argument, tail))
        return too_long();
    return show(o, &(struct client_request){.method = "GET", .target = target});
}

/* Nothing that can't be undone happens without a yes. */
static bool sure(const struct options *o, const char *question, int *ret_status)
{
    if (o->yes)
        return true;
    if (!o->input || !output_interactive()) {
        *ret_status =
            output_complain(EXIT_USAGE, command_name(o->command), "needs --yes where nobody can be asked");
        return false;
    }
    if (output_ask(question))
        return true;
    *ret_status = output_complain(EXIT_FAILURE, "", "nothing was done");
    return false;
}

/* ---- what there is ---- */

static int tree(const struct options *o)
{
    struct json_sink out = output_sink();
    char target[64];
    snprintf(target, sizeof(target), "/stats/tree?children=%llu%s", (unsigned long long)o->children,
             o->json ? "" : "&format=text");
    int status = call(o, &(struct client_request){.method = "GET", .target = target}, &out);
    return status ? status : output_done(&out);
}

int command_tree(const struct options *o)
{
    return command_again(o, tree);
}

static int stats(const struct options *o)
{
    return show(o, &(struct client_request){.method = "GET", .target = "/stats"});
}

int command_stats(const struct options *o)
{
    return command_again(o, stats);
}

/* What top shows, as it is at this moment: those with the fullest mailboxes first. */
int command_top_json(const struct options *o)
{
    return show(o, &(struct client_request){.method = "GET", .target = "/stats/tree?top=mailbox&n=100"});
}

/* ---- what happens ---- */

/* Lines of an event stream; what stands behind "data: " is an event, or how many were missed. */
struct follow {
    struct json_sink *out;
    bool json, quiet;
    char line[4096];
    size_t length;
    bool cut; /* the line was longer */
};

static void write_dimensions(struct json_sink *out, const struct json_text *json,
                             const struct json_node *object)
{
    char name[64], value[256];
    if (!object || object->kind != JSON_OBJECT)
        return;
    for (const struct json_node *n = json_first(json, object); n; n = json_after(json, object, n)) {
        people_text(json, n, name, sizeof(name));
        people_text(json, json_value_of(n), value, sizeof(value));
        json_sink_text(out, " ");
        json_sink_text(out, name);
        json_sink_text(out, "=");
        json_sink_text(out, value);
    }
}

static void write_event(struct json_sink *out, const char *bytes, size_t size, bool as_json)
{
    static struct json_node nodes[256];
    struct json_text json = {.nodes = nodes, .nodes_max = sizeof(nodes) / sizeof(*nodes)};
    struct json_error error;
    char name[128] = "-", at[64] = "-";
    if (as_json || !json_text_read(&json, span_of(bytes, size), NULL, &error) ||
        json_root(&json)->kind != JSON_OBJECT) {
        json_sink_bytes(out, bytes, size);
        json_sink_text(out, "\n");
        return;
    }
    const struct json_node *event = json_member(&json, json_root(&json), "event");
    const struct json_node *when = json_member(&json, json_root(&json), "at");
    if (event)
        people_text(&json, event, name, sizeof(name));
    if (when)
        people_text(&json, when, at, sizeof(at));
    json_sink_text(out, at);
    json_sink_text(out, " ");
    json_sink_text(out, name);
    write_dimensions(out, &json, json_member(&json, json_root(&json), "measurement"));
    write_dimensions(out, &json, json_member(&json, json_root(&json), "dimensions"));
    json_sink_text(out, "\n");
}

/* Those that came faster than they were read are in no list any more. */
static void say_missed(uint64_t count)
{
    fprintf(stderr, "coppice: %llu events in between are not kept any more\n", (unsigned long long)count);
}

static void follow_data(const struct follow *f, const char *bytes, size_t size)
{
    static const char missed[] = "{\"missed\":";
    if (size < sizeof(missed) || memcmp(bytes, missed, sizeof(missed) - 1) != 0)
        write_event(f->out, bytes, size, f->json);
    else if (!f->quiet)
        say_missed(strtoull(bytes + sizeof(missed) - 1, NULL, 10)); /* a "}" ends it */
}

static bool follow_bytes(void *context, const char *bytes, size_t length)
{
    struct follow *f = context;
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] == '\n') {
            if (!f->cut && f->length > 6 && memcmp(f->line, "data: ", 6) == 0)
                follow_data(f, f->line + 6, f->length - 6);
            f->length = 0;
            f->cut = false;
        } else if (f->length < sizeof(f->line)) {
            f->line[f->length++] = bytes[i];
        } else {
            f->cut = true;
        }
    }
    return json_sink_flush(f->out) == JSON_OK;
}

enum {
    EVENTS_PAGE = EVENTS_DEFAULT,
    /* As many as can be kept, and what comes meanwhile: a server that makes them faster than they are read isn't followed. */
    EVENTS_PAGES_MAX = 2 * (TELEMETRY_SHARDS_MAX + 1) * TELEMETRY_RING_SIZE / EVENTS_PAGE,
};

/* The wanted ones behind this place; "": all that are kept. limit: "" of a stream, which has none. */
static bool events_target(const struct options *o, const char *limit, const char *since,
                          char target[CLIENT_TARGET_MAX])
{
    char head[128];
    snprintf(head, sizeof(head), "/stats/events?%s%s%s%s", limit, *since ? "&since=" : "", since,
             *o->event ? "&event=" : "");
    return command_target(target, head, o->event, "");
}

/* One page; where the next one begins, and how many events this one has. Of the first one nothing was missed: what was
 * before it is just older than what is kept. */
static int events_page(const struct options *o, struct json_sink *out, char since[EVENTS_SINCE_SIZE],
                       uint32_t *ret_count)
{
    struct json_text json;
    char target[CLIENT_TARGET_MAX], limit[24];
    uint64_t missed = 0;
    snprintf(limit, sizeof(limit), "limit=%d", EVENTS_PAGE);
    if (!events_target(o, limit, since, target))
        return too_long();
    int status = command_ask(o, &(struct client_request){.method = "GET", .target = target}, &json);
    if (status)
        return status;
    const struct json_node *root = json_root(&json);
    const struct json_node *list = root->kind == JSON_OBJECT ? json_member(&json, root, "events") : NULL,
                           *next = list ? json_member(&json, root, "next") : NULL,
                           *lost = list ? json_member(&json, root, "missed") : NULL;
    if (*since && lost && json_uint64_of(&json, lost, &missed) && missed > 0 && !o->quiet)
        say_missed(missed);
    *ret_count = 0;
    for (const struct json_node *e = list && list->kind == JSON_ARRAY ? json_first(&json, list) : NULL; e;
         e = json_after(&json, list, e)) {
        struct span raw = json_raw_of(&json, e);
        write_event(out, raw.bytes, raw.size, o->json);
        ++*ret_count;
    }
    if (next && next->kind == JSON_STRING)
        people_text(&json, next, since, EVENTS_SINCE_SIZE);
    else
        *ret_count = 0;
    return 0;
}

static int events_so_far(const struct options *o, struct json_sink *out, char since[EVENTS_SINCE_SIZE])
{
    uint32_t count = EVENTS_PAGE;
    for (int i = 0; count >= EVENTS_PAGE; i++) {
        if (i == EVENTS_PAGES_MAX) {
            if (!o->quiet && !o->follow)
                fprintf(stderr, "coppice: there are more; they come faster than they are read\n");
            break;
        }
        int status = events_page(o, out, since, &count);
        if (status)
            return status;
    }
    return 0;
}

int command_events(const struct options *o)
{
    struct json_sink out = output_sink(), lines;
    struct follow follow = {.out = &out, .json = o->json, .quiet = o->quiet};
    char buffer[4096];
    char since[EVENTS_SINCE_SIZE] = "", target[CLIENT_TARGET_MAX];
    int status = events_so_far(o, &out, since);
    if (status || !o->follow)
        return status ? status : output_done(&out);
    if (!events_target(o, "", since, target))
        return too_long();
    if (json_sink_flush(&out) != JSON_OK)
        return output_done(&out);
    json_sink_init(&lines, buffer, sizeof(buffer), follow_bytes, &follow);
    status = call(o,
                  &(struct client_request){
                      .method = "GET", .target = target, .accept = "text/event-stream", .endless = true},
                  &lines);
    return status ? status : output_done(&out);
}

/* Of a list that comes in pages: where the next one begins, and what has been made of those before. */
struct pages {
    const struct options *o;
    const char *path, *member;
    bool (*wanted)(const struct options *o, const struct json_text *json, const struct json_node *entry);
    char after[600];
    uint32_t size;          /* of a page */
    uint64_t left;          /* of --limit */
    bool begun, some, more; /* some: an entry was there */
    struct json_sink *out;  /* for programs */
    struct json_sink rows;  /* for people */
};

static bool as_lines(const struct options *o)
{
    return strcmp(o->output, "jsonl") == 0 && !o->json;
}

/* One that is larger than what can be looked into is asked for in smaller pieces. */
static int page_ask(struct pages *p, struct json_text *ret_json)
{
    char head[128], target[CLIENT_TARGET_MAX];
    for (;; p->size /= 2) {
        bool large = false;
        snprintf(head, sizeof(head), "%s?limit=%u%s", p->path, p->size, *p->after ? "&after=" : "");
        if (!command_target(target, head, p->after, ""))
            return too_long();
        int status = look_into(p->o, &(struct client_request){.method = "GET", .target = target}, ret_json,
                               p->size > 1 ? &large : NULL);
        if (!large)
            return status;
    }
}

/* An object, or null: a table has no room for it either way, whatever the rows are that it happens to have. */
static bool object_or_null(struct span name)
{
    return span_equal(name, span_text("\"details\""));
}

/* Lists and objects in it only say that they are: what people are shown is a table, which has no room for them. */
static void add_row(struct json_sink *rows, const struct json_text *json, const struct json_node *entry)
{
    char separator = '{';
    for (const struct json_node *n = json_first(json, entry); n; n = json_after(json, entry, n)) {
        const struct json_node *value = json_value_of(n);
        struct span name = json_raw_of(json, n), raw = json_raw_of(json, value);
        json_sink_bytes(rows, &separator, 1);
        json_sink_bytes(rows, (const char *)name.bytes, name.size);
        json_sink_text(rows, ":");
        if (people_cell(json, value) && !object_or_null(name))
            json_sink_bytes(rows, (const char *)raw.bytes, raw.size);
        else
            json_sink_text(rows, "{}");
        separator = ',';
    }
    json_sink_text(rows, separator == '{' ? "{}" : "}");
}

static void page_add(struct pages *p, const struct json_text *json, const struct json_node *entry)
{
    struct span raw = json_raw_of(json, entry);
    if (as_lines(p->o)) {
        json_sink_bytes(p->out, raw.bytes, raw.size);
        json_sink_text(p->out, "\n");
    } else if (as_json(p->o)) {
        json_sink_text(p->out, p->some ? "," : "");
        json_sink_bytes(p->out, raw.bytes, raw.size);
    } else {
        json_sink_text(&p->rows, p->some ? "," : "");
        add_row(&p->rows, json, entry);
    }
    p->some = true;
}

static void page_take(struct pages *p, const struct json_text *json)
{
    const struct json_node *root = json_root(json);
    const struct json_node *list = root->kind == JSON_OBJECT ? json_member(json, root, p->member) : NULL,
                           *next = root->kind == JSON_OBJECT ? json_member(json, root, "next") : NULL;
    const struct json_node *e = list && list->kind == JSON_ARRAY ? json_first(json, list) : NULL;
    for (; e && p->left > 0; e = json_after(json, list, e)) {
        if (e->kind != JSON_OBJECT || (p->wanted && !p->wanted(p->o, json, e)))
            continue;
        page_add(p, json, e);
        p->left--;
    }
    p->more = next && next->kind == JSON_STRING;
    if (p->more)
        people_text(json, next, p->after, sizeof(p->after));
    p->more |= e != NULL && p->left == 0;
}

static int print_rows(struct pages *p)
{
    static struct json_node nodes[NODES_MAX];
    struct json_text json = {.nodes = nodes, .nodes_max = NODES_MAX};
    struct json_error error;
    const struct json_limits limits = {.elements = 65535, .members = 65535};
    json_sink_text(&p->rows, "]");
    if (!p->some) {
        json_sink_text(p->out, strcmp(p->member, "pauses") == 0 ? "nothing is paused\n" : "there are none\n");
        return EXIT_SUCCESS;
    }
    if (p->rows.status != JSON_OK ||
        !json_text_read(&json, span_of(p->rows.buffer, p->rows.length), &limits, &error))
        return output_complain(
            EXIT_FAILURE, "",
            "that is more than a table can hold; --limit makes it less, --output jsonl has all");
    print(p->o, p->out, &json);
    return EXIT_SUCCESS;
}

/* Not before something was answered: a failure is no empty list. */
static void pages_begin(struct pages *p)
{
    if (p->begun)
        return;
    json_sink_text(p->out, "{\"");
    json_sink_text(p->out, p->member);
    json_sink_text(p->out, "\":[");
    p->begun = true;
}

/* Entries of a list that comes in pages: as many as --limit, those that `wanted` takes. For programs they go out as they come,
 * however many there are; a table's columns are as wide as their widest cell, so it is made of all of them. */
static int pages(const struct options *o, const char *path, const char *member,
                 bool (*wanted)(const struct options *o, const struct json_text *json,
                                const struct json_node *entry))
{
    static char rows[COMMAND_ANSWER_MAX];
    struct json_sink out = output_sink();
    struct pages p = {.o = o,
                      .path = path,
                      .member = member,
                      .wanted = wanted,
                      .size = PAGE,
                      .left = o->limit,
                      .more = true,
                      .out = &out};
    bool whole = as_json(o) && !as_lines(o);
    int status = 0;
    json_sink_init(&p.rows, rows, sizeof(rows), NULL, NULL);
    json_sink_text(&p.rows, "[");
    while (!status && p.more && p.left > 0) {
        struct json_text json = {.nodes = NULL};
        status = page_ask(&p, &json);
        if (!status && whole)
            pages_begin(&p);
        if (!status)
            page_take(&p, &json);
    }
    if (!status && whole) {
        pages_begin(&p);
        json_sink_text(&out, p.more ? "],\"more\":true}\n" : "],\"more\":false}\n");
    } else if (!status && !as_lines(o)) {
        status = print_rows(&p);
    }
    if (!status && p.more && !o->quiet)
        fprintf(stderr, "coppice: there may be more; --limit says how many are printed\n");
    int written = output_done(&out);
    return status ? status : written;
}

/* Entries that say nothing about it are INFO. */
static bool is_severe(const struct options *o, const struct json_text *json, const struct json_node *entry)
{
    const struct json_node *details = json_member(json, entry, "details"), *severity = NULL;
    char text[16] = "INFO";
    if (details && details->kind == JSON_OBJECT)
        severity = json_member(json, details, "severity");
    if (severity)
        people_text(json, severity, text, sizeof(text));
    return !*o->severity || strcmp(text, o->severity) == 0;
}

static int audit_list(const struct options *o)
{
    return pages(o, "/stats/audits", "audits", is_severe);
}

int command_audit_list(const struct options *o)
{
    return command_again(o, audit_list);
}

/* ---- what is done ---- */

/* What was not contained, or of which nobody can tell, is no success. */
static int contained(const struct json_text *json)
{
    static const char *const bad[] = {"asked", "ends_process", "not_recovered"};
    const struct json_node *root = json_root(json),
                           *outcome = root->kind == JSON_OBJECT ? json_member(json, root, "outcome") : NULL;
    char text[32] = "";
    if (outcome)
        people_text(json, outcome, text, sizeof(text));
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        if (strcmp(text, bad[i]) == 0)
            return output_complain(EXIT_FAILURE, "kill: the outcome is", bad[i]);
    return EXIT_SUCCESS;
}

static int kill_with(const struct options *o, bool dry)
{
    char target[CLIENT_TARGET_MAX], body[BODY_MAX], reason[BODY_MAX / 2];
    struct json_sink sink;
    struct json json;
    if (!command_target(target, "/chaos/actors/", o->argument, ":kill"))
        return too_long();
    snprintf(reason, sizeof(reason), "%s", o->reason);
    json_sink_init(&sink, body, sizeof(body) - 1, NULL, NULL);
    json_init(&json, &sink);
    json_object_begin(&json);
    if (*reason)
        JSON_MEMBER(&json, "reason", string, reason);
    JSON_MEMBER(&json, "dry_run", bool, dry);
    json_object_end(&json);
    if (json_end(&json) != JSON_OK)
        return too_long();
    body[sink.length] = 0;
    return show_and_look(o, &(struct client_request){.method = "POST", .target = target, .body = body},
                         contained);
}

int command_kill(const struct options *o)
{
    char question[CLIENT_TARGET_MAX];
    int status;
    if (o->dry_run)
        return kill_with(o, true);
    if (!*o->reason)
        return output_complain(EXIT_USAGE, "kill",
                               "needs --reason, for the audit log; --dry-run shows what would be hit");
    if (!o->yes && o->input && output_interactive() && (status = kill_with(o, true)) != 0)
        return status;
    snprintf(question, sizeof(question), "End %.900s?", o->argument);
    return sure(o, question, &status) ? kill_with(o, false) : status;
}

static int change_and_look(const struct options *o, const char *target,
                           int (*look)(const struct json_text *answer))
{
    char body[BODY_MAX];
    if (!body_of(body, sizeof(body), "reason", o->reason, (const char *)NULL))
        return too_long();
    const struct client_request request = {.method = "POST", .target = target, .body = body};
    return look ? show_and_look(o, &request, look) : show(o, &request);
}

static int change(const struct options *o, const char *target)
{
    return change_and_look(o, target, NULL);
}

int command_reload(const struct options *o)
{
    return change(o, "/config:reload");
}

int command_log_level(const struct options *o)
{
    char body[BODY_MAX];
    if (!body_of(body, sizeof(body), "level", o->argument, "reason", o->reason, (const char *)NULL))
        return too_long();
    return show(o, &(struct client_request){.method = "POST", .target = "/log:level", .body = body});
}

int command_clock_advance(const struct options *o)
{
    char body[BODY_MAX];
    if (!body_of(body, sizeof(body), "by", o->argument, "reason", o->reason, (const char *)NULL))
        return too_long();
    return show(o, &(struct client_request){.method = "POST", .target = "/clock:advance", .body = body});
}

/* ---- the queue of jobs ---- */

/* What the argument means: all, a client's id, or else the name of a kind. */
static int queue_change(const struct options *o, const char *target, const char *until)
{
    char body[BODY_MAX];
    struct uuid id;
    bool all = strcmp(o->argument, "all") == 0, client = uuid_parse(o->argument, strlen(o->argument), &id);
    if (!body_of(body, sizeof(body), "scope",
                 all      ? "all"
                 : client ? "client"
                          : "kind",
                 "kind", all || client ? "" : o->argument, "client", client ? o->argument : "", "until",
                 until, "reason", o->reason, (const char *)NULL))
        return too_long();
    return show(o, &(struct client_request){.method = "POST", .target = target, .body = body});
}

int command_pause(const struct options *o)
{
    return queue_change(o, "/jobs:pause", o->until);
}

int command_resume(const struct options *o)
{
    return queue_change(o, "/jobs:resume", "");
}

static int pause_list(const struct options *o)
{
    return pages(o, "/jobs/pauses", "pauses", NULL);
}

int command_pauses(const struct options *o)
{
    return command_again(o, pause_list);
}

/* ---- the outbox ---- */

static int outbox_dead(const struct options *o)
{
    return pages(o, "/outbox/dead", "dead", NULL);
}

int command_outbox_dead(const struct options *o)
{
    return command_again(o, outbox_dead);
}

int command_outbox_revive(const struct options *o)
{
    char target[CLIENT_TARGET_MAX];
    if (!command_target(target, "/outbox/dead/", o->argument, ":revive"))
        return too_long();
    return change(o, target);
}

/* ---- keys and tokens ---- */

static int keys_list(const struct options *o)
{
    return show(o, &(struct client_request){.method = "GET", .target = "/keys"});
}

int command_keys_list(const struct options *o)
{
    return command_again(o, keys_list);
}

static int keys_history(const struct options *o)
{
    return pages(o, "/keys/history", "keys", NULL);
}

int command_keys_history(const struct options *o)
{
    return command_again(o, keys_history);
}

int command_keys_rotate(const struct options *o)
{
    return change(o, "/keys:rotate");
}

int command_keys_bootstrap(const struct options *o)
{
    return change(o, "/keys:bootstrap");
}

/* kind: what is declared invalid. */
static bool sure_of_end(const struct options *o, const char *kind, int *ret_status)
{
    char question[CLIENT_TARGET_MAX + 64];
    snprintf(question, sizeof(question), "Declare the %s %.900s invalid for ever?", kind, o->argument);
    return sure(o, question, ret_status);
}

/* Of another issuer's keys the kid is what that issuer likes, and a path can't hold all of it (http/url.h). */
static bool path_holds(const char *kid)
{
    for (const char *at = kid; *at; at++)
        if (strchr("/\\%", *at) || (unsigned char)*at < ' ' || *at == 0x7f)
            return false;
    return strcmp(kid, ".") != 0 && strcmp(kid, "..") != 0;
}

int command_keys_revoke(const struct options *o)
{
    char target[CLIENT_TARGET_MAX], body[BODY_MAX];
    bool named = path_holds(o->argument);
    int status;
    if (!command_target(target, "/keys/", o->argument, ":revoke") ||
        !body_of(body, sizeof(body), "kid", named ? "" : o->argument, "reason", o->reason,
                 (const char *)NULL))
        return too_long();
    if (!sure_of_end(o, "key", &status))
        return status;
    return show(o, &(struct client_request){
                       .method = "POST", .target = named ? target : "/tokens:revoke", .body = body});
}

/* An id that nobody has is revoked as any other. That looks like success, and may be a slip of the hand. */
int command_token_revoke(const struct options *o)
{
    char target[CLIENT_TARGET_MAX];
    int status;
    if (!command_target(target, "/tokens/", o->argument, ":revoke"))
        return too_long();
    return sure_of_end(o, "token", &status) ? change_and_look(o, target, warn_unseen) : status;
}

int command_keys_issue(const struct options *o)
{
    char target[CLIENT_TARGET_MAX], body[BODY_MAX];
    if (!*o->client)
        return output_complain(EXIT_USAGE, "keys issue", "needs --client, whose key it is to be");
    if (!command_target(target, "/clients/", o->client, "/keys:issue") ||
        !body_of(body, sizeof(body), "reason", o->reason, (const char *)NULL))
        return too_long();
    return show(o, &(struct client_request){.method = "POST", .target = target, .body = body});
}

/* "projects": the texts between commas. */
static void write_projects(struct json *json, const char *list)
{
    json_key(json, "projects");
    json_array_begin(json);
    for (const char *at = list; *at;) {
        size_t length = strcspn(at, ",");
        json_string_n(json, at, length);
        at += length + (at[length] == ',');
    }
    json_array_end(json);
}

int command_token_issue(const struct options *o)
{
    char body[BODY_MAX];
    struct json_sink sink, out = output_sink();
    struct json json;
    struct json_text answer;
    if (!*o->subject || !*o->role)
        return output_complain(EXIT_USAGE, "token issue", "needs --subject and --role");
    json_sink_init(&sink, body, sizeof(body) - 1, NULL, NULL);
    json_init(&json, &sink);
    json_object_begin(&json);
    JSON_MEMBER(&json, "subject", string, o->subject);
    JSON_MEMBER(&json, "role", string, o->role);
    write_projects(&json, o->projects);
    JSON_MEMBER(&json, "lifetime_seconds", uint, o->lifetime / S);
    if (*o->replaces)
        JSON_MEMBER(&json, "replaces", string, o->replaces);
    if (*o->reason)
        JSON_MEMBER(&json, "reason", string, o->reason);
    json_object_end(&json);
    if (json_end(&json) != JSON_OK)
        return too_long();
    body[sink.length] = 0;
    const struct client_request request = {.method = "POST", .target = "/tokens", .body = body};
    if (o->json)
        return show(o, &request);
    int status = command_ask(o, &request, &answer);
    if (status)
        return status;
    /* The token alone, so that it can be put into a variable. */
    static char token[16384];
    const struct json_node *text =
        json_root(&answer)->kind == JSON_OBJECT ? json_member(&answer, json_root(&answer), "token") : NULL;
    if (!text || text->kind != JSON_STRING)
        return output_complain(EXIT_FAILURE, "", "the answer holds no token");
    people_text(&answer, text, token, sizeof(token));
    json_sink_text(&out, token);
    json_sink_text(&out, "\n");
    return output_done(&out);
}

/* ---- principals ---- */

static int principal_list(const struct options *o)
{
    return pages(o, "/principals", "principals", NULL);
}

int command_principal_list(const struct options *o)
{
    return command_again(o, principal_list);
}

static void write_given(struct json *json, const char *name, const char *value)
{
    if (*value)
        JSON_MEMBER(json, name, string, value);
}

int command_principal_create(const struct options *o)
{
    char body[BODY_MAX];
    struct json_sink sink;
    struct json json;
    if (!*o->role)
        return output_complain(EXIT_USAGE, "principal create", "needs --role");
    json_sink_init(&sink, body, sizeof(body) - 1, NULL, NULL);
    json_init(&json, &sink);
    json_object_begin(&json);
    JSON_MEMBER(&json, "name", string, o->argument);
    JSON_MEMBER(&json, "role", string, o->role);
    write_projects(&json, o->projects);
    write_given(&json, "agent_template", o->agent_template);
    write_given(&json, "tier", o->tier);
    write_given(&json, "reason", o->reason);
    json_object_end(&json);
    if (json_end(&json) != JSON_OK)
        return too_long();
    body[sink.length] = 0;
    return show(o, &(struct client_request){.method = "POST", .target = "/principals", .body = body});
}

static int end_principal(const struct options *o, const char *verb, const char *what)
{
    char target[CLIENT_TARGET_MAX], question[CLIENT_TARGET_MAX + 64];
    int status;
    if (!command_target(target, "/principals/", o->argument, verb))
        return too_long();
    snprintf(question, sizeof(question), "End %s of %.900s?", what, o->argument);
    return sure(o, question, &status) ? change(o, target) : status;
}

int command_principal_rotate(const struct options *o)
{
    return end_principal(o, ":rotate", "the secret and all tokens");
}

int command_principal_revoke(const struct options *o)
{
    return end_principal(o, ":revoke", "the secret and all tokens");
}
