#include "config/job_commands.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/commands.h"
#include "config/output.h"
#include "config/people.h"
#include "store/job.h"

/* ---- one of them ---- */

static int inspect_job(const struct options *o)
{
    return command_show(o, "/jobs/", o->argument, "/record");
}

int command_inspect_job(const struct options *o)
{
    return command_again(o, inspect_job);
}

static int inspect_report(const struct options *o)
{
    return command_show(o, "/jobs/", o->argument, "/report");
}

int command_inspect_report(const struct options *o)
{
    return command_again(o, inspect_report);
}

static bool as_json(const struct options *o)
{
    return o->json || strncmp(o->output, "json", 4) == 0;
}

/* A member of the answer: 0 and *ret_node, or the exit status. */
static int ask_member(const struct options *o, const char *head, const char *tail, const char *member,
                      struct json_text *json, const struct json_node **ret_node)
{
    char target[CLIENT_TARGET_MAX];
    if (!command_target(target, head, o->argument, tail))
        return output_complain(EXIT_USAGE, "", "an argument is too long to be sent");
    int status = command_ask(o, &(struct client_request){.method = "GET", .target = target}, json);
    if (status)
        return status;
    const struct json_node *root = json_root(json);
    *ret_node = root->kind == JSON_OBJECT ? json_member(json, root, member) : NULL;
    return *ret_node ? 0 : output_complain(EXIT_FAILURE, "the answer lacks", member);
}

static int inspect_client(const struct options *o)
{
    struct json_sink out = output_sink();
    struct json_text json = {.count = 0};
    const struct json_node *client = NULL;
    int status = ask_member(o, "/clients/", "", "client", &json, &client);
    if (status || !client)
        return status;
    if (as_json(o)) {
        struct span raw = json_raw_of(&json, client);
        json_sink_bytes(&out, raw.bytes, raw.size);
        json_sink_text(&out, "\n");
    } else {
        people_write(&out, &json, client);
    }
    return output_done(&out);
}

int command_inspect_client(const struct options *o)
{
    return command_again(o, inspect_client);
}

/* For people the sentence alone. */
static int explain(const struct options *o)
{
    char sentence[2048];
    struct json_sink out = output_sink();
    struct json_text json = {.count = 0};
    const struct json_node *node = NULL;
    if (as_json(o))
        return command_show(o, "/jobs/", o->argument, ":explain");
    int status = ask_member(o, "/jobs/", ":explain", "sentence", &json, &node);
    if (status || !node)
        return status;
    people_text(&json, node, sentence, sizeof(sentence));
    json_sink_text(&out, sentence);
    json_sink_text(&out, "\n");
    return output_done(&out);
}

int command_explain(const struct options *o)
{
    return command_again(o, explain);
}

/* ---- all of them ---- */

#define PAGE 500 /* jobs: some 2 KiB each where they have long callbacks */

static bool page_target(const struct options *o, const char *after, char *text)
{
    char client[128] = "", token[600] = "";
    if (!client_escape(o->client, client, sizeof(client)) || !client_escape(after, token, sizeof(token)))
        return false;
    int length = snprintf(text, CLIENT_TARGET_MAX, "/jobs?limit=%d%s%s%s%s%s%s%s%s", PAGE,
                          *o->state ? "&state=" : "", o->state, *o->outcome ? "&outcome=" : "", o->outcome,
                          *client ? "&client=" : "", client, *token ? "&after=" : "", token);
    return length > 0 && (size_t)length < CLIENT_TARGET_MAX;
}

struct printed {
    const struct options *o;
    struct json_sink out;
    bool began; /* a JSON list has its first element */
    uint64_t jobs, states[JOB_STATE_COUNT];
};

static void cell(struct printed *p, const struct json_text *json, const struct json_node *object,
                 const char *name, int width)
{
    char text[64] = "-", line[80];
    const struct json_node *node =
        object && object->kind == JSON_OBJECT ? json_member(json, object, name) : NULL;
    if (node)
        people_text(json, node, text, sizeof(text));
    snprintf(line, sizeof(line), "%-*s ", width, text);
    json_sink_text(&p->out, line);
}

static void head(struct printed *p)
{
    char line[256];
    snprintf(line, sizeof(line), "%-36s %-36s %-10s %-30s %-9s %-8s %-3s %-24s %-24s %s\n", "JOB", "CLIENT",
             "TYPE", "KIND", "STATE", "OUTCOME", "TRY", "CREATED", "UPDATED", "REASON");
    json_sink_text(&p->out, line);
}

static void line(struct printed *p, const struct json_text *json, const struct json_node *job)
{
    cell(p, json, job, "job_id", 36);
    cell(p, json, job, "client_id", 36);
    cell(p, json, job, "type", 10);
    cell(p, json, json_member(json, job, "definition"), "work_kind", 30);
    cell(p, json, job, "state", 9);
    cell(p, json, job, "outcome", 8);
    cell(p, json, job, "attempt", 3);
    cell(p, json, job, "created_at", 24);
    cell(p, json, job, "updated_at", 24);
    cell(p, json, json_member(json, job, "failure"), "reason", 0);
    json_sink_text(&p->out, "\n");
}

static void count(struct printed *p, const struct json_text *json, const struct json_node *job)
{
    char state[32] = "";
    const struct json_node *node = json_member(json, job, "state");
    if (node)
        people_text(json, node, state, sizeof(state));
    for (unsigned i = 0; i < JOB_STATE_COUNT; i++)
        p->states[i] += strcmp(state, job_state_name((uint8_t)i)) == 0;
    p->jobs++;
}

static void print_job(struct printed *p, const struct json_text *json, const struct json_node *job)
{
    struct span raw = json_raw_of(json, job);
    bool lines = strcmp(p->o->output, "jsonl") == 0 && !p->o->json;
    count(p, json, job);
    if (!as_json(p->o)) {
        line(p, json, job);
        return;
    }
    if (!lines && p->began)
        json_sink_text(&p->out, ",");
    json_sink_bytes(&p->out, raw.bytes, raw.size);
    if (lines)
        json_sink_text(&p->out, "\n");
    p->began = true;
}

/* One page: 0, or the exit status; `after` becomes where the next one goes on, or "". */
static int print_page(struct printed *p, char *after, size_t size)
{
    char target[CLIENT_TARGET_MAX];
    struct json_text json;
    if (!page_target(p->o, after, target))
        return output_complain(EXIT_USAGE, "", "an argument is too long to be sent");
    int status = command_ask(p->o, &(struct client_request){.method = "GET", .target = target}, &json);
    if (status)
        return status;
    const struct json_node *root = json_root(&json), *jobs = NULL, *next = NULL;
    if (root->kind == JSON_OBJECT) {
        jobs = json_member(&json, root, "jobs");
        next = json_member(&json, root, "next");
    }
    if (!jobs || jobs->kind != JSON_ARRAY)
        return output_complain(EXIT_FAILURE, "", "the answer holds no jobs");
    for (const struct json_node *job = json_first(&json, jobs); job; job = json_after(&json, jobs, job))
        print_job(p, &json, job);
    after[0] = 0;
    if (next && next->kind == JSON_STRING)
        people_text(&json, next, after, size);
    return json_sink_flush(&p->out) == JSON_OK ? 0 : output_done(&p->out);
}

static void tell(const struct printed *p)
{
    const char *before = ": ";
    fprintf(stderr, "coppice: %" PRIu64 " %s", p->jobs, p->jobs == 1 ? "job" : "jobs");
    for (unsigned i = 0; i < JOB_STATE_COUNT; i++) {
        if (!p->states[i])
            continue;
        fprintf(stderr, "%s%" PRIu64 " %s", before, p->states[i], job_state_name((uint8_t)i));
        before = ", ";
    }
    fprintf(stderr, "\n");
}

static int report(const struct options *o)
{
    struct printed p = {.o = o, .out = output_sink()};
    bool list = as_json(o) && (o->json || strcmp(o->output, "jsonl") != 0);
    char after[600] = "";
    int status;
    if (list)
        json_sink_text(&p.out, "{\"jobs\":[");
    else if (!as_json(o))
        head(&p);
    do
        status = print_page(&p, after, sizeof(after));
    while (status == 0 && after[0]);
    if (status)
        return status;
    if (list)
        json_sink_text(&p.out, "]}\n");
    status = output_done(&p.out);
    if (status == 0 && !o->quiet)
        tell(&p);
    return status;
}

int command_report(const struct options *o)
{
    return command_again(o, report);
}
