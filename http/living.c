#include "http/living.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* One node on the way: what its supervisor says of it, what its scheduler says, and what it says itself when
 * it is a supervisor. */
struct node {
    const struct node *above; /* NULL for the root */
    const char *id;
    uint64_t place;
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
    void (*end)(struct view *v, const struct node *n); /* may be NULL */
    const struct living_rows *rows;
    size_t children;
    const char *without; /* a class whose actors aren't shown; not with `all` */
    bool all;            /* not only the newest `children`, which is then the size of a page */
    bool uninspected;    /* what supervisors say is enough */
    bool stopped;
    bool unseen; /* somebody's children couldn't be had, though it lives */
    uint32_t visited;
    struct json *json;
    struct json_sink *sink;
    uint32_t open; /* text: bit d is set while siblings follow at depth d */
    living_visitor visit;
    void *context;
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

static uint64_t place_of(uint64_t above, const char *id)
{
    uint64_t hash = above ^ UINT64_C(0xcbf29ce484222325);
    for (; *id; id++)
        hash = (hash ^ (unsigned char)*id) * UINT64_C(0x100000001b3);
    return hash ? hash : 1;
}

static bool suspended(actor_pid pid)
{
    struct actor_info info;
    return actor_inspect(pid, &info, actor_deadline_ms(LIVING_ANSWER_MS)) == OK &&
           strcmp(info.status, "SUSPENDED") == 0;
}

/* A machine that stood still looks like a supervisor that doesn't answer: who could is asked once more. */
static bool ask_again(actor_pid pid, enum error e, bool *asked)
{
    bool again = e == ERR_TIMEOUT && !*asked && !suspended(pid);
    *asked = true;
    return again;
}

/* Who has ended meanwhile has no children. */
static bool heard(struct view *v, actor_pid pid, enum error e)
{
    v->unseen |= e != OK && actor_alive(pid);
    return e == OK;
}

static bool inspect(struct view *v, struct node *n)
{
    enum error e;
    bool asked = false;
    do
        e = supervisor_inspect(n->pid, &n->supervisor, actor_deadline_ms(LIVING_ANSWER_MS));
    while (ask_again(n->pid, e, &asked));
    return heard(v, n->pid, e);
}

static void look(struct view *v, struct node *n)
{
    n->row = living_row_of(v->rows, n->id);
    n->place = !n->above                     ? place_of(0, n->id)
               : n->id[0] && n->above->place ? place_of(n->above->place, n->id)
                                             : 0;
    if (!n->pid)
        return;
    if (!v->uninspected)
        n->inspected = actor_inspect(n->pid, &n->actor, actor_deadline_ms(LIVING_ANSWER_MS)) == OK;
    if (n->supervises)
        n->answered = inspect(v, n);
}

STATIC_ASSERT(LIVING_CHILDREN_MAX * sizeof(struct child_info) <= MESSAGE_PAYLOAD_MAX - 1024,
              "an answer is one message");

static size_t leave_out(const char *class_name, struct child_info *infos, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (strcmp(infos[i].class_name, class_name) != 0)
            infos[kept++] = infos[i];
    return kept;
}

/* The children from `first` on, newest first. */
static bool fetch(struct view *v, struct node *n, size_t first, struct child_info *infos)
{
    enum error e;
    bool asked = false;
    do {
        n->shown = 0;
        e = supervisor_which_children(n->pid, first, infos, v->children, &n->shown, &n->total,
                                      actor_deadline_ms(LIVING_ANSWER_MS));
    } while (ask_again(n->pid, e, &asked));
    n->shown = e ? 0 : v->without ? leave_out(v->without, infos, n->shown) : n->shown;
    return heard(v, n->pid, e);
}

static void walk(struct view *v, struct node *n, size_t depth, bool last);

/* Those of one page. They come newest first; those that were started in an order are shown in it. */
static void walk_page(struct view *v, struct node *n, const struct child_info *infos, struct node *child,
                      size_t depth)
{
    for (size_t i = 0; i < n->shown && !v->stopped; i++) {
        const struct child_info *c = &infos[n->supervisor.strategy == DYNAMIC ? i : n->shown - 1 - i];
        memset(child, 0, sizeof(*child));
        child->above = n;
        child->child = c;
        child->pid = c->pid;
        child->supervises = c->type == CHILD_SUPERVISOR;
        child->id = c->id;
        walk(v, child, depth + 1, i + 1 == n->shown);
    }
}

/* A child that ended while it was being looked at appears with what is left of it. */
static void walk(struct view *v, struct node *n, size_t depth, bool last)
{
    struct arena_mark mark = actor_arena_mark();
    struct child_info *infos = NULL;
    struct node *child = NULL;
    look(v, n);
    if (n->answered && depth < LIVING_DEPTH_MAX) {
        infos = actor_alloc(v->children * sizeof(*infos));
        child = actor_alloc(sizeof(*child));
        n->answered = fetch(v, n, 0, infos);
    }
    v->unseen |= n->answered && depth == LIVING_DEPTH_MAX && n->supervisor.children.specs;
    v->begin(v, n, depth, last);
    if (v->all && ++v->visited >= LIVING_VISITS_MAX)
        v->stopped = true;
    if (infos)
        walk_page(v, n, infos, child, depth);
    for (size_t first = n->shown; v->all && infos && !v->stopped && n->shown == v->children;
         first += n->shown)
        if (fetch(v, n, first, infos))
            walk_page(v, n, infos, child, depth);
    if (v->end)
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

void living_write_json(const struct living_rows *rows, struct json *json, struct living_part part)
{
    struct view v = {.begin = json_begin,
                     .end = json_after,
                     .rows = rows,
                     .children = part.children,
                     .without = part.without,
                     .json = json};
    json_object_begin(json);
    JSON_MEMBER(json, "contract", string, rows->contract);
    json_key(json, "declared");
    json_array_begin(json);
    for (size_t i = 0; i < rows->count; i++)
        rows->declare(json, rows->rows[i].declared);
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

void living_write_text(const struct living_rows *rows, struct json_sink *sink, struct living_part part)
{
    struct view v = {
        .begin = text_begin, .rows = rows, .children = part.children, .without = part.without, .sink = sink};
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

/* ---- Graphviz ---- */

static void dot_text(struct json_sink *sink, const char *text)
{
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            json_sink_text(sink, "\\");
        json_sink_bytes(sink, (unsigned char)*text < ' ' ? "?" : text, 1);
    }
}

static void dot_begin(struct view *v, const struct node *n, size_t depth, bool last)
{
    char line[160];
    (void)depth;
    (void)last;
    /* Who is not running now has no pid; the hash of where it stands is as good a name. */
    snprintf(line, sizeof(line), "  \"%llx\" [label=\"", (unsigned long long)(n->pid ? n->pid : n->place));
    json_sink_text(v->sink, line);
    dot_text(v->sink, name_of(n));
    snprintf(line, sizeof(line), "\\n%s, mailbox %u, restarts %llu\"%s%s];\n", state_of(n),
             n->inspected ? n->actor.mailbox_depth : 0,
             (unsigned long long)(n->child ? n->child->restarts : 0), n->supervises ? ", shape=box" : "",
             strcmp(state_of(n), "running") == 0 ? "" : ", color=red");
    json_sink_text(v->sink, line);
    if (!n->above)
        return;
    snprintf(line, sizeof(line), "  \"%llx\" -> \"%llx\";\n", (unsigned long long)n->above->pid,
             (unsigned long long)(n->pid ? n->pid : n->place));
    json_sink_text(v->sink, line);
}

void living_write_dot(const struct living_rows *rows, struct json_sink *sink, struct living_part part)
{
    struct view v = {
        .begin = dot_begin, .rows = rows, .children = part.children, .without = part.without, .sink = sink};
    json_sink_text(sink,
                   "digraph coppice {\n  rankdir=LR;\n  node [shape=ellipse, fontname=\"monospace\"];\n");
    walk_all(&v);
    json_sink_text(sink, "}\n");
}

/* ---- visitors ---- */

static int64_t left_of(const struct supervisor_info *s)
{
    return s->intensity > s->budget_used ? (int64_t)(s->intensity - s->budget_used) : 0;
}

static void visit_begin(struct view *v, const struct node *n, size_t depth, bool last)
{
    const struct node *supervisor = n->supervises ? n : n->above;
    const struct living_node node = {
        .name = name_of(n),
        .class_name = n->child ? n->child->class_name : supervisor_class.name,
        .registered = n->inspected ? n->actor.name : "",
        .state = n->inspected && strcmp(n->actor.status, "SUSPENDED") == 0 ? "suspended" : state_of(n),
        .last_exit = n->child ? n->child->last_reason : "",
        .pid = n->pid,
        .supervisor = n->above ? n->above->pid : 0,
        .place = n->place,
        .restarts = n->child ? n->child->restarts : 0,
        .mailbox_depth = n->inspected ? n->actor.mailbox_depth : 0,
        .arena_bytes = n->inspected ? n->actor.arena_bytes : 0,
        .budget_left = supervisor && supervisor->answered ? left_of(&supervisor->supervisor) : -1,
        .restart = n->child ? n->child->restart : RESTART_PERMANENT,
        .supervises = n->supervises,
        .dynamic = n->above && n->above->answered && n->above->supervisor.strategy == DYNAMIC,
    };
    (void)depth;
    (void)last;
    v->stopped = !v->visit(v->context, &node);
}

bool living_visit(const struct living_rows *rows, bool inspect, living_visitor visit, void *context)
{
    struct view v = {.begin = visit_begin,
                     .rows = rows,
                     .children = LIVING_CHILDREN_MAX,
                     .all = true,
                     .uninspected = !inspect,
                     .visit = visit,
                     .context = context};
    walk_all(&v);
    return !v.stopped && !v.unseen;
}

struct wanted {
    uint64_t place;
    actor_pid pid;
};

static bool find_place(void *context, const struct living_node *n)
{
    struct wanted *w = context;
    if (n->place == w->place)
        w->pid = n->pid;
    return n->place != w->place;
}

actor_pid living_find(const struct living_rows *rows, const char *path)
{
    char id[sizeof(((struct child_info *)NULL)->id)];
    struct wanted wanted = {.place = 0};
    for (const char *at = path;; at++) {
        size_t length = strcspn(at, ">");
        if (length == 0 || length >= sizeof(id))
            return 0;
        memcpy(id, at, length);
        id[length] = 0;
        wanted.place = place_of(wanted.place, id);
        at += length;
        if (!*at)
            break;
    }
    (void)living_visit(rows, false, find_place, &wanted);
    return wanted.pid;
}

/* ---- lists ---- */

struct item {
    char name[96], last_exit[96];
    const char *class_name, *state;
    actor_pid pid, supervisor;
    uint64_t restarts, memory, key; /* key: what the list is ordered by */
    uint32_t mailbox;
    int64_t budget_left;
    bool supervises;
};

enum { LIST_BLOCK = 200, LIST_BLOCKS = (LIVING_LIST_MAX + LIST_BLOCK - 1) / LIST_BLOCK };

struct list {
    const struct living_filter *filter;
    struct item *blocks[LIST_BLOCKS];
    uint16_t *order; /* positions in items, the largest key first; those of one key as they came */
    uint32_t count, matched, visited;
    bool complete;
};

STATIC_ASSERT(LIVING_LIST_MAX <= UINT16_MAX, "positions are 16 bits");
STATIC_ASSERT(LIST_BLOCK * sizeof(struct item) <= 60000, "a block is one piece of an arena");

static struct item *item_at(const struct list *l, uint32_t position)
{
    return &l->blocks[position / LIST_BLOCK][position % LIST_BLOCK];
}

static bool fits(const struct living_filter *f, const struct living_node *n)
{
    return (!f->name[0] || strstr(n->name, f->name)) &&
           (!f->class_name[0] || strcmp(n->class_name, f->class_name) == 0) &&
           (!f->state[0] || strcmp(n->state, f->state) == 0);
}

static uint64_t key_of(enum living_order order, const struct living_node *n)
{
    switch (order) {
    case LIVING_BY_MAILBOX:
        return n->mailbox_depth;
    case LIVING_BY_RESTARTS:
        return n->restarts;
    case LIVING_BY_MEMORY:
        return n->arena_bytes;
    default:
        return 0;
    }
}

static void item_set(struct item *i, const struct living_node *n, uint64_t key)
{
    *i = (struct item){.class_name = n->class_name,
                       .state = n->state,
                       .pid = n->pid,
                       .supervisor = n->supervisor,
                       .restarts = n->restarts,
                       .memory = n->arena_bytes,
                       .key = key,
                       .mailbox = n->mailbox_depth,
                       .budget_left = n->budget_left,
                       .supervises = n->supervises};
    snprintf(i->name, sizeof(i->name), "%s", n->name);
    snprintf(i->last_exit, sizeof(i->last_exit), "%s", n->last_exit);
}

static bool list_take(void *context, const struct living_node *n)
{
    struct list *l = context;
    uint32_t most = l->filter->limit, at;
    uint64_t key = key_of(l->filter->order, n);
    l->visited++;
    if (!fits(l->filter, n))
        return true;
    l->matched++;
    if (l->count == most && item_at(l, l->order[most - 1])->key >= key)
        return true;
    uint16_t place = l->count == most ? l->order[most - 1] : (uint16_t)l->count;
    l->count += l->count < most;
    item_set(item_at(l, place), n, key);
    for (at = l->count - 1; at && item_at(l, l->order[at - 1])->key < key; at--)
        l->order[at] = l->order[at - 1];
    l->order[at] = place;
    return true;
}

static void list_fill(struct list *l, const struct living_rows *rows, const struct living_filter *filter)
{
    *l = (struct list){.filter = filter, .order = actor_alloc(filter->limit * sizeof(*l->order))};
    for (uint32_t i = 0; i * LIST_BLOCK < filter->limit; i++)
        l->blocks[i] = actor_alloc(LIST_BLOCK * sizeof(struct item));
    l->complete = living_visit(rows, true, list_take, l);
}

static void item_write(struct json *j, const struct item *i)
{
    json_object_begin(j);
    JSON_MEMBER(j, "name", string, i->name);
    json_key(j, "pid");
    if (i->pid)
        json_hex_string(j, i->pid);
    else
        json_null(j);
    JSON_MEMBER(j, "type", string, i->supervises ? "supervisor" : "worker");
    JSON_MEMBER(j, "class", string, i->class_name);
    JSON_MEMBER(j, "state", string, i->state);
    JSON_MEMBER(j, "mailbox_depth", uint, i->mailbox);
    JSON_MEMBER(j, "restarts", uint, i->restarts);
    json_key(j, "restart_budget_left");
    if (i->budget_left >= 0)
        json_int(j, i->budget_left);
    else
        json_null(j);
    JSON_MEMBER(j, "memory_bytes", uint, i->memory);
    JSON_MEMBER(j, "last_exit", string, i->last_exit[0] ? i->last_exit : NULL);
    json_key(j, "supervisor");
    if (i->supervisor)
        json_hex_string(j, i->supervisor);
    else
        json_null(j);
    json_object_end(j);
}

void living_write_list(const struct living_rows *rows, struct json *json, const struct living_filter *filter)
{
    struct arena_mark mark = actor_arena_mark();
    struct list l;
    list_fill(&l, rows, filter);
    json_object_begin(json);
    json_key(json, "actors");
    json_array_begin(json);
    for (uint32_t i = 0; i < l.count; i++)
        item_write(json, item_at(&l, l.order[i]));
    json_array_end(json);
    JSON_MEMBER(json, "matched", uint, l.matched);
    JSON_MEMBER(json, "visited", uint, l.visited);
    JSON_MEMBER(json, "complete", bool, l.complete);
    json_object_end(json);
    actor_arena_reset(mark);
}

void living_write_list_text(const struct living_rows *rows, struct json_sink *sink,
                            const struct living_filter *filter)
{
    struct arena_mark mark = actor_arena_mark();
    char line[400];
    struct list l;
    list_fill(&l, rows, filter);
    snprintf(line, sizeof(line), "%-*s %-18s %-11s %7s %8s %10s %11s  %s\n", NAME_COLUMNS, "NAME", "PID",
             "STATE", "MAILBOX", "RESTARTS", "MEMORY", "BUDGET LEFT", "LAST EXIT");
    json_sink_text(sink, line);
    for (uint32_t n = 0; n < l.count; n++) {
        const struct item *i = item_at(&l, l.order[n]);
        char pid[24] = "-", left[24] = "-";
        if (i->pid)
            snprintf(pid, sizeof(pid), "0x%llx", (unsigned long long)i->pid);
        if (i->budget_left >= 0)
            snprintf(left, sizeof(left), "%lld", (long long)i->budget_left);
        snprintf(line, sizeof(line), "%-*s %-18s %-11s %7u %8llu %10llu %11s  %s\n", NAME_COLUMNS, i->name,
                 pid, i->state, i->mailbox, (unsigned long long)i->restarts, (unsigned long long)i->memory,
                 left, i->last_exit);
        json_sink_text(sink, line);
    }
    if (l.matched > l.count || !l.complete) {
        snprintf(line, sizeof(line), "%u of %u that match; %u were looked at%s\n", l.count, l.matched,
                 l.visited, l.complete ? "" : ", which isn't all");
        json_sink_text(sink, line);
    }
    actor_arena_reset(mark);
}
