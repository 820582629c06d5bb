#include "config/chaos_tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/chaos_client.h"
#include "config/topology.h"
#include "http/living.h"

enum { ANSWER_MAX = 4 << 20, DEPTH_MAX = 16 };

static char bytes[ANSWER_MAX];
static struct json_node nodes[JSON_TEXT_NODES_MAX];

/* The answer stands until the next call. */
static bool get(const struct client *c, const char *target, struct span *ret_body, char *why, size_t why_size)
{
    struct json_sink sink;
    json_sink_init(&sink, bytes, sizeof(bytes), NULL, NULL);
    int status =
        client_call(c, &(struct client_request){.method = "GET", .target = target}, &sink, why, why_size);
    if (status != 200 || sink.status != JSON_OK)
        return false;
    *ret_body = span_of(bytes, sink.length);
    return true;
}

static bool get_json(const struct client *c, const char *target, struct json_text *json, char *why,
                     size_t why_size)
{
    struct span body;
    struct json_error error;
    const struct json_limits limits = {.elements = 65535, .members = 65535};
    *json = (struct json_text){.nodes = nodes, .nodes_max = JSON_TEXT_NODES_MAX};
    if (!get(c, target, &body, why, why_size))
        return false;
    if (json_text_read(json, body, &limits, &error))
        return true;
    snprintf(why, why_size, "the answer is no JSON: %s", error.what);
    return false;
}

/* Connections come and go with their clients: they aren't asked for. */
static const char target[] = "/stats/tree?without=connection&children=";

static bool of_connections(const char *name)
{
    return strcmp(name, TOPOLOGY_OPERATORS) == 0 ||
           strncmp(name, TOPOLOGY_CONNECTIONS ":", strlen(TOPOLOGY_CONNECTIONS ":")) == 0;
}

static void unseen(struct chaos_tree *tree, const char *name, bool crowded)
{
    if (tree->unseen[0])
        return;
    snprintf(tree->unseen, sizeof(tree->unseen), "%s", name);
    tree->crowded = crowded;
}

static bool silent(const struct json_text *json, const struct json_node *node)
{
    char state[24] = "";
    (void)chaos_json_text(json, chaos_json_at(json, node, "state", NULL), state, sizeof(state));
    return strcmp(state, "silent") == 0;
}

static uint32_t hidden(const struct json_text *json, const struct json_node *node, const char *name)
{
    const struct json_node *supervisor = chaos_json_at(json, node, "supervisor", NULL);
    return of_connections(name)
               ? 0
               : (uint32_t)chaos_json_uint(json, chaos_json_at(json, supervisor, "children_left_out", NULL));
}

/* Who stands in this place; NULL: there is no room for it, or it has no name. */
static struct chaos_place *place_new(struct chaos_tree *tree, const struct json_text *json,
                                     const struct json_node *node, const char *above)
{
    if (tree->count == CHAOS_PLACES_MAX) {
        unseen(tree, above, true);
        return NULL;
    }
    struct chaos_place *p = &tree->places[tree->count];
    *p = (struct chaos_place){.supervises = false};
    if (!chaos_json_text(json, chaos_json_at(json, node, "name", NULL), p->name, sizeof(p->name)))
        return NULL;
    (void)chaos_json_text(json, chaos_json_at(json, node, "pid", NULL), p->pid, sizeof(p->pid));
    (void)chaos_json_text(json, chaos_json_at(json, node, "class", NULL), p->class, sizeof(p->class));
    char path[CHAOS_PATH_MAX]; /* apart: what is above lies in the tree, too */
    snprintf(path, sizeof(path), "%s%s%s", above, *above ? ">" : "", p->name);
    memcpy(p->path, path, sizeof(path));
    return p;
}

static void keep(struct chaos_tree *tree, const struct chaos_place *p)
{
    tree->empty += !p->pid[0];
    tree->count++;
}

static void take(struct chaos_tree *tree, const struct json_text *json, const struct json_node *node,
                 const char *above, int depth)
{
    const struct json_node *supervisor = chaos_json_at(json, node, "supervisor", NULL),
                           *budget = supervisor ? chaos_json_at(json, supervisor, "budget", NULL) : NULL,
                           *children = chaos_json_at(json, node, "children", NULL);
    if (depth == DEPTH_MAX) {
        unseen(tree, above, true);
        return;
    }
    struct chaos_place *p = place_new(tree, json, node, above);
    if (!p)
        return;
    p->supervises = supervisor != NULL;
    p->used = (uint32_t)chaos_json_uint(json, chaos_json_at(json, budget, "used", NULL));
    p->restarts = (uint32_t)chaos_json_uint(json, chaos_json_at(json, budget, "restarts", NULL));
    p->period_ms = (uint32_t)chaos_json_uint(json, chaos_json_at(json, budget, "period_ms", NULL));
    p->hidden = hidden(json, node, p->name);
    if (silent(json, node))
        unseen(tree, p->name, false);
    keep(tree, p);
    if (!children || children->kind != JSON_ARRAY)
        return;
    for (const struct json_node *child = json_first(json, children); child;
         child = json_after(json, children, child))
        take(tree, json, child, p->path, depth + 1);
}

static bool is_below(const char *path, const char *above)
{
    size_t length = strlen(above);
    return strncmp(path, above, length) == 0 && path[length] == '>';
}

/* What the newest of its children is; "": none was seen. */
static const char *class_below(const struct chaos_tree *tree, uint32_t at)
{
    bool seen = at + 1 < tree->count && is_below(tree->places[at + 1].path, tree->places[at].path);
    return seen ? tree->places[at + 1].class : "";
}

/* One of the list that stands below that place, and hasn't been seen in the tree. */
static void take_hidden(struct chaos_tree *tree, const struct json_text *json, const struct json_node *item,
                        struct chaos_place *above)
{
    char supervisor[24] = "";
    (void)chaos_json_text(json, chaos_json_at(json, item, "supervisor", NULL), supervisor,
                          sizeof(supervisor));
    if (!above->hidden || strcmp(supervisor, above->pid) != 0)
        return;
    struct chaos_place *p = place_new(tree, json, item, above->path);
    if (!p || chaos_tree_find(tree, p->path))
        return;
    keep(tree, p);
    above->hidden--;
}

/* A tree shows the newest of many children: the others come from a list of their class. What stands below them isn't in it; nobody
 * has that many supervisors below it. */
static bool look_hidden(struct chaos_tree *tree, const struct client *operator, uint32_t at, char *why,
                        size_t why_size)
{
    struct chaos_place *above = &tree->places[at];
    struct json_text json;
    char list[64 + CHAOS_PLACE_NAME];
    snprintf(list, sizeof(list), "/stats/tree?class=%s&limit=%u", class_below(tree, at), LIVING_LIST_MAX);
    if (!*class_below(tree, at)) {
        unseen(tree, above->name, false);
        return true;
    }
    if (!get_json(operator, list, &json, why, why_size))
        return false;
    const struct json_node *root = json_root(&json), *actors = chaos_json_at(&json, root, "actors", NULL);
    bool listed = actors && actors->kind == JSON_ARRAY;
    for (const struct json_node *item = listed ? json_first(&json, actors) : NULL; item;
         item = json_after(&json, actors, item))
        take_hidden(tree, &json, item, above);
    if (above->hidden)
        unseen(tree, above->name,
               chaos_json_uint(&json, chaos_json_at(&json, root, "matched", NULL)) > LIVING_LIST_MAX);
    return true;
}

static uint64_t sum_of(struct span text, const char *name)
{
    uint64_t sum = 0;
    size_t length = strlen(name);
    for (const char *at = text.bytes, *end = at + text.size; at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t line = (size_t)((stop ? stop : end) - at);
        if (line > length && memcmp(at, name, length) == 0) {
            size_t digits = line;
            while (digits && at[digits - 1] != ' ')
                digits--;
            sum += strtoull(at + digits, NULL, 10);
        }
        at += line + 1;
    }
    return sum;
}

bool chaos_tree_look(struct chaos_tree *ret, const struct client *operator, char * why, size_t why_size)
{
    static struct chaos_tree tree;
    struct json_text json;
    struct span metrics;
    char tree_target[64];
    tree = (struct chaos_tree){.count = 0};
    snprintf(tree_target, sizeof(tree_target), "%s%u", target, LIVING_CHILDREN_MAX);
    if (!get_json(operator, tree_target, &json, why, why_size))
        return false;
    const struct json_node *root = chaos_json_at(&json, json_root(&json), "tree", NULL),
                           *missing = chaos_json_at(&json, json_root(&json), "missing", NULL);
    if (root && root->kind == JSON_OBJECT)
        take(&tree, &json, root, "", 0);
    tree.empty += missing ? missing->count : 0;
    for (uint32_t i = 0, count = tree.count; i < count; i++)
        if (tree.places[i].hidden && !look_hidden(&tree, operator, i, why, why_size))
            return false;
    if (!get_json(operator, "/stats", &json, why, why_size))
        return false;
    root = json_root(&json);
    tree.pid = chaos_json_uint(&json, chaos_json_at(&json, root, "process", "pid"));
    tree.open_fds = chaos_json_uint(&json, chaos_json_at(&json, root, "process", "open_fds"));
    tree.resident_bytes = chaos_json_uint(&json, chaos_json_at(&json, root, "process", "resident_bytes"));
    (void)chaos_json_text(&json, chaos_json_at(&json, root, "process", "started"), tree.started,
                          sizeof(tree.started));
    if (!get(operator, "/metrics", &metrics, why, why_size))
        return false;
    tree.restarts = sum_of(metrics, "coppice_actor_restarts_total");
    *ret = tree;
    return true;
}

const struct chaos_place *chaos_tree_find(const struct chaos_tree *tree, const char *path)
{
    for (uint32_t i = 0; i < tree->count; i++)
        if (strcmp(tree->places[i].path, path) == 0)
            return &tree->places[i];
    return NULL;
}

uint32_t chaos_tree_expect(struct chaos_tree *before, const char *who, bool below)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < before->count; i++) {
        struct chaos_place *p = &before->places[i];
        if (strcmp(p->name, who) != 0 && strcmp(p->path, who) != 0)
            continue;
        p->expected = true;
        found++;
        for (uint32_t j = i + 1; below && j < before->count; j++)
            if (is_below(before->places[j].path, p->path)) {
                before->places[j].expected = true;
                found++;
            }
    }
    return found;
}
