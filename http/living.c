#include "http/living.h"

#include <stdio.h>
#include <string.h>

/* One node on the way: what its supervisor says of it, what its scheduler says, and what it says itself when
 * it is a supervisor. */
struct node {
    const char *id;
    const struct child_info *child; /* NULL for the root */
    const struct living_row *row;
    actor_pid pid;
    bool inspected, supervises, answered;
    struct actor_info actor;
    struct supervisor_info supervisor;
    size_t shown, total; /* children */
};

/* A way to show nodes. `last`: no sibling follows. Children come between begin and end. */
struct view {
    void (*begin)(struct view *v, const struct node *n, size_t depth, bool last);
    void (*end)(struct view *v, const struct node *n);
    const struct living_rows *rows;
    size_t children;
    struct json *json;
    struct json_sink *sink;
    uint32_t open; /* text: bit d is set while siblings follow at depth d */
};

const struct living_row *living_row_of(const struct living_rows *rows, const char *name)
{
    for (size_t i = 0; i < rows->count; i++) {
        const char *declared = rows->rows[i].name, *key = strchr(declared, '<');
        if (!key) {
            if (strcmp(declared, name) == 0)
                return &rows->rows[i];
            continue;
        }
        const char *rest = strchr(key, '>') + 1;
        size_t before = (size_t)(key - declared), behind = strlen(rest), length = strlen(name);
        if (length > before + behind && memcmp(name, declared, before) == 0 &&
            memcmp(name + length - behind, rest, behind) == 0 &&
            !memchr(name + before, '/', length - before - behind))
            return &rows->rows[i];
    }
    return NULL;
}

/* ---- walking ---- */

static void look(const struct view *v, struct node *n)
{
    n->row = living_row_of(v->rows, n->id);
    if (!n->pid)
        return;
    n->inspected = actor_inspect(n->pid, &n->actor, actor_deadline_ms(LIVING_ANSWER_MS)) == OK;
    if (n->supervises)
        n->answered = supervisor_inspect(n->pid, &n->supervisor, actor_deadline_ms(LIVING_ANSWER_MS)) == OK;
}

STATIC_ASSERT(LIVING_CHILDREN_MAX * sizeof(struct child_info) <= MESSAGE_PAYLOAD_MAX - 1024,
              "an answer is one message");

static void fetch(const struct view *v, struct node *n, struct child_info *infos)
{
    if (supervisor_which_children(n->pid, 0, infos, v->children, &n->shown, &n->total,
                                  actor_deadline_ms(LIVING_ANSWER_MS)) != OK)
        n->answered = false;
}

/* A child that ended while it was being looked at appears with what is left of it. */
static void walk(struct view *v, struct node *n, size_t depth, bool last)
{
    struct arena_mark mark = actor_arena_mark();
    struct child_info *infos = NULL;
    look(v, n);
    if (n->answered && depth < LIVING_DEPTH_MAX) {
        infos = actor_alloc(v->children * sizeof(*infos));
        fetch(v, n, infos);
    }
    v->begin(v, n, depth, last);
    size_t shown = infos ? n->shown : 0;
    for (size_t i = 0; i < shown; i++) {
        /* They come newest first; those that were started in an order are shown in it. */
        const struct child_info *c = &infos[n->supervisor.strategy == DYNAMIC ? i : shown - 1 - i];
        struct node *child = memset(actor_alloc(sizeof(*child)), 0, sizeof(*child));
        child->child = c;
        child->pid = c->pid;
        child->supervises = c->type == CHILD_SUPERVISOR;
        struct arena_mark below = actor_arena_mark();
        child->id = c->id;
        walk(v, child, depth + 1, i + 1 == shown);
        actor_arena_reset(below);
    }
    v->end(v, n);
    actor_arena_reset(mark);
}

static void walk_all(struct view *v)
{
    struct node *root = memset(actor_alloc(sizeof(*root)), 0, sizeof(*root));
    root->id = v->rows->rows[0].name;
    root->pid = actor_whereis(root->id);
    root->supervises = true;
    walk(v, root, 0, true);
}

/* Dynamic children need no id; then they are called by their name, else by their class. */
static const char *name_of(const struct node *n)
{
    if (n->id[0])
        return n->id;
    if (n->inspected && n->actor.name[0])
        return n->actor.name;
    return n->child->class_name;
}

static const char *state_of(const struct node *n)
{
    if (n->supervises && n->pid && !n->answered)
        return "silent";
    if (n->child)
        return child_state_name(n->child->state);
    return n->pid ? child_state_name(CHILD_RUNNING) : child_state_name(CHILD_STOPPED);
}

/* Dynamic is one_for_one whose children come and go. */
static const char *strategy_of(const struct node *n)
{
    return strategy_name(n->supervisor.strategy == DYNAMIC ? ONE_FOR_ONE : n->supervisor.strategy);
}

/* ---- JSON ---- */

static void json_supervisor(struct json *j, const struct node *n)
{
    const struct supervisor_info *s = &n->supervisor;
    json_key(j, "supervisor");
    json_object_begin(j);
    JSON_MEMBER(j, "strategy", string, strategy_of(n));
    JSON_MEMBER(j, "dynamic", bool, s->strategy == DYNAMIC);
    json_key(j, "budget");
    json_object_begin(j);
    JSON_MEMBER(j, "restarts", uint, s->intensity);
    JSON_MEMBER(j, "period_ms", uint, s->period_ms);
    JSON_MEMBER(j, "used", uint, s->budget_used);
    JSON_MEMBER(j, "left", uint, s->intensity > s->budget_used ? s->intensity - s->budget_used : 0);
    json_object_end(j);
    JSON_MEMBER(j, "restarts_granted", uint, s->restarts);
    JSON_MEMBER(j, "children", uint, n->total);
    JSON_MEMBER(j, "children_left_out", uint, n->total > n->shown ? n->total - n->shown : 0);
    json_object_end(j);
}

static void json_actor(struct json *j, const struct actor_info *a)
{
    JSON_MEMBER(j, "registered", string, a->name[0] ? a->name : NULL);
    JSON_MEMBER(j, "status", string, a->status);
    JSON_MEMBER(j, "waiting_for", string, a->waiting_for[0] ? a->waiting_for : NULL);
    json_key(j, "mailbox");
    json_object_begin(j);
    JSON_MEMBER(j, "depth", uint, a->mailbox_depth);
    JSON_MEMBER(j, "capacity", uint, a->mailbox_capacity);
    json_object_end(j);
    JSON_MEMBER(j, "handled", uint, a->handled);
    JSON_MEMBER(j, "arena_bytes", uint, a->arena_bytes);
    JSON_MEMBER(j, "scheduler", int, actor_scheduler_of(a->pid));
}

static void json_begin(struct view *v, const struct node *n, size_t depth, bool last)
{
    struct json *j = v->json;
    (void)depth;
    (void)last;
    json_object_begin(j);
    JSON_MEMBER(j, "name", string, name_of(n));
    json_key(j, "pid");
    if (n->pid)
        json_hex_string(j, n->pid);
    else
        json_null(j);
    JSON_MEMBER(j, "type", string, n->supervises ? "supervisor" : "worker");
    JSON_MEMBER(j, "class", string, n->child ? n->child->class_name : supervisor_class.name);
    JSON_MEMBER(j, "state", string, state_of(n));
    JSON_MEMBER(j, "row", string, n->row ? n->row->name : NULL);
    JSON_MEMBER(j, "owner", string, n->row ? n->row->owner : NULL);
    JSON_MEMBER(j, "restarts", uint, n->child ? n->child->restarts : 0);
    JSON_MEMBER(j, "last_exit", string, n->child && n->child->last_reason[0] ? n->child->last_reason : NULL);
    if (n->inspected)
        json_actor(j, &n->actor);
    if (n->answered)
        json_supervisor(j, n);
    if (n->supervises) {
        json_key(j, "children");
        json_array_begin(j);
    }
}

static void json_after(struct view *v, const struct node *n)
{
    if (n->supervises)
        json_array_end(v->json);
    json_object_end(v->json);
}

static bool missing(const struct living_row *row)
{
    return !row->per_key && actor_whereis(row->name) == 0;
}

size_t living_missing(const struct living_rows *rows)
{
    size_t count = 0;
    for (size_t i = 0; i < rows->count; i++)
        count += missing(&rows->rows[i]);
    return count;
}

void living_write_json(const struct living_rows *rows, struct json *json, size_t children)
{
    struct view v = {
        .begin = json_begin, .end = json_after, .rows = rows, .children = children, .json = json};
    json_object_begin(json);
    JSON_MEMBER(json, "contract", string, rows->contract);
    json_key(json, "declared");
    json_array_begin(json);
    for (size_t i = 0; i < rows->count; i++)
        json_raw(json, rows->rows[i].declared, strlen(rows->rows[i].declared));
    json_array_end(json);
    json_key(json, "missing");
    json_array_begin(json);
    for (size_t i = 0; i < rows->count; i++)
        if (missing(&rows->rows[i]))
            json_string(json, rows->rows[i].name);
    json_array_end(json);
    json_key(json, "tree");
    walk_all(&v);
    json_object_end(json);
}

/* ---- text ---- */

enum { NAME_COLUMNS = 32 };

/* The branches left of a node, then its name, filled up with spaces. */
static void text_name(struct view *v, const struct node *n, size_t depth, bool last)
{
    char text[NAME_COLUMNS + 96];
    int fill = NAME_COLUMNS - 3 * (int)depth;
    for (size_t d = 1; d < depth; d++)
        json_sink_text(v->sink, v->open >> d & 1 ? "│  " : "   ");
    if (depth)
        json_sink_text(v->sink, last ? "└─ " : "├─ ");
    snprintf(text, sizeof(text), "%-*s", fill > 0 ? fill : 0, name_of(n));
    json_sink_text(v->sink, text);
    v->open = last ? v->open & ~(1u << depth) : v->open | 1u << depth;
}

static void text_begin(struct view *v, const struct node *n, size_t depth, bool last)
{
    char pid[24] = "-", mailbox[12] = "-", budget[56] = "", children[64] = "", line[320];
    text_name(v, n, depth, last);
    if (n->pid)
        snprintf(pid, sizeof(pid), "0x%llx", (unsigned long long)n->pid);
    if (n->inspected)
        snprintf(mailbox, sizeof(mailbox), "%u", n->actor.mailbox_depth);
    if (n->answered)
        snprintf(budget, sizeof(budget), "%u of %u/%llus", n->supervisor.budget_used, n->supervisor.intensity,
                 (unsigned long long)(n->supervisor.period_ms / 1000));
    if (n->answered && n->total > n->shown)
        snprintf(children, sizeof(children), "%zu, %zu not shown", n->total, n->total - n->shown);
    else if (n->answered)
        snprintf(children, sizeof(children), "%zu", n->total);
    snprintf(line, sizeof(line), " %-18s %-11s %7s %8llu  %-11s %-10s %s", pid, state_of(n), mailbox,
             (unsigned long long)(n->child ? n->child->restarts : 0), budget, children,
             n->child ? n->child->last_reason : "");
    size_t length = strlen(line);
    while (line[length - 1] == ' ')
        length--;
    json_sink_bytes(v->sink, line, length);
    json_sink_text(v->sink, "\n");
}

static void text_end(struct view *v, const struct node *n)
{
    (void)v;
    (void)n;
}

void living_write_text(const struct living_rows *rows, struct json_sink *sink, size_t children)
{
    struct view v = {.begin = text_begin, .end = text_end, .rows = rows, .children = children, .sink = sink};
    char line[160];
    snprintf(line, sizeof(line), "%-*s %-18s %-11s %7s %8s  %-11s %-10s %s\n", NAME_COLUMNS, "NAME", "PID",
             "STATE", "MAILBOX", "RESTARTS", "BUDGET USED", "CHILDREN", "LAST EXIT");
    json_sink_text(sink, line);
    walk_all(&v);
    for (size_t i = 0; i < rows->count; i++)
        if (missing(&rows->rows[i])) {
            json_sink_text(sink, "missing: ");
            json_sink_text(sink, rows->rows[i].name);
            json_sink_text(sink, "\n");
        }
}
