#include "http/actor_view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "http/front.h"

actor_pid actor_view_find(const struct living_rows *rows, const char *target)
{
    actor_pid pid = actor_whereis(target);
    char *end;
    if (!pid && strchr(target, '>'))
        return living_find(rows, target);
    if (pid || *target < '0' || *target > '9')
        return pid;
    errno = 0;
    pid = strtoull(target, &end, 0);
    return *end || errno ? 0 : pid;
}

bool actor_view_target(const struct request *q, struct response *r, char target[ACTOR_VIEW_NAME_MAX])
{
    const struct span given = q->params[0];
    if (given.size >= ACTOR_VIEW_NAME_MAX || memchr(given.bytes, 0, given.size)) {
        response_error(r, ERROR_OPS_400_INVALID, "an actor's name has at most %u bytes, none of them 0",
                       ACTOR_VIEW_NAME_MAX - 1);
        return false;
    }
    memcpy(target, given.bytes, given.size);
    target[given.size] = 0;
    return true;
}

void actor_view_refuse(struct response *r, const char *target, enum error e)
{
    if (e == ERR_NOPROC)
        response_error(
            r, ERROR_OPS_404_NOT_FOUND,
            "there is no actor '%s'; it must be the pid, the registered name or the path of a living one",
            target);
    else
        response_error(r, ERROR_OPS_504_TIMEOUT, "nothing could be learned of '%s'%s%s", target,
                       e == ERR_TIMEOUT ? " in time" : ": ", e == ERR_TIMEOUT ? "" : catalogue_sentence(e));
}

/* And so may be asked what supervisors are asked. */
static bool is_supervisor(actor_pid pid)
{
    struct actor_info info;
    return pid && actor_inspect(pid, &info, actor_deadline_ms(ACTOR_VIEW_ANSWER_MS)) == OK &&
           strcmp(info.class_name, supervisor_class.name) == 0;
}

/* ---- the child that it is ---- */

enum { PAGE = 200 };

static bool search(actor_pid supervisor, actor_pid pid, struct child_info *ret, uint64_t deadline)
{
    struct arena_mark mark = actor_arena_mark();
    struct child_info *infos = actor_alloc(PAGE * sizeof(*infos));
    size_t stored = PAGE, total;
    bool found = false;
    for (size_t first = 0; !found && stored == PAGE && first < ACTOR_VIEW_SEARCH; first += PAGE) {
        if (supervisor_which_children(supervisor, first, infos, PAGE, &stored, &total, deadline) != OK)
            break;
        for (size_t i = 0; i < stored && !found; i++)
            if (infos[i].pid == pid) {
                *ret = infos[i];
                found = true;
            }
    }
    actor_arena_reset(mark);
    return found;
}

bool actor_view_child(const struct actor_info *actor, struct child_info *ret_child, uint64_t deadline)
{
    if (!is_supervisor(actor->parent))
        return false;
    if (actor->name[0] && supervisor_which_child(actor->parent, actor->name, ret_child, deadline) == OK &&
        ret_child->pid == actor->pid)
        return true;
    return search(actor->parent, actor->pid, ret_child, deadline);
}

/* ---- the answer ---- */

static void write_pid(struct json *json, const char *key, actor_pid pid)
{
    json_key(json, key);
    if (pid)
        json_hex_string(json, pid);
    else
        json_null(json);
}

static void write_actor(struct json *j, const struct actor_info *a)
{
    write_pid(j, "pid", a->pid);
    JSON_MEMBER(j, "name", string, a->name[0] ? a->name : NULL);
    JSON_MEMBER(j, "class", string, a->class_name);
    write_pid(j, "parent", a->parent);
    JSON_MEMBER(j, "scheduler", int, actor_scheduler_of(a->pid));
    JSON_MEMBER(j, "status", string, a->status);
    JSON_MEMBER(j, "waiting_for", string, a->waiting_for[0] ? a->waiting_for : NULL);
    json_key(j, "mailbox");
    json_object_begin(j);
    JSON_MEMBER(j, "depth", uint, a->mailbox_depth);
    JSON_MEMBER(j, "capacity", uint, a->mailbox_capacity);
    json_object_end(j);
    JSON_MEMBER(j, "handled", uint, a->handled);
    JSON_MEMBER(j, "links", uint, a->links);
    JSON_MEMBER(j, "monitors", uint, a->monitors);
    JSON_MEMBER(j, "watchers", uint, a->watchers);
    JSON_MEMBER(j, "resources", uint, a->resources);
    JSON_MEMBER(j, "arena_bytes", uint, a->arena_bytes);
    JSON_MEMBER(j, "stack_high_water_bytes", uint, a->stack_high_water);
}

static void write_child(struct json *j, const struct child_info *c, actor_pid supervisor)
{
    static const char *const restarts[RESTART_TYPE_COUNT] = {"permanent", "transient", "temporary"};
    json_object_begin(j);
    write_pid(j, "supervisor", supervisor);
    JSON_MEMBER(j, "id", string, c->id[0] ? c->id : NULL);
    JSON_MEMBER(j, "state", string, child_state_name(c->state));
    JSON_MEMBER(j, "type", string, c->type == CHILD_SUPERVISOR ? "supervisor" : "worker");
    JSON_MEMBER(j, "restart", string, restarts[c->restart]);
    JSON_MEMBER(j, "shutdown_ms", int, c->shutdown_ms);
    JSON_MEMBER(j, "restarts", uint, c->restarts);
    JSON_MEMBER(j, "last_exit", string, c->last_reason[0] ? c->last_reason : NULL);
    json_object_end(j);
}

static void write_supervisor(struct json *j, const struct supervisor_info *s)
{
    json_object_begin(j);
    JSON_MEMBER(j, "strategy", string, strategy_name(s->strategy));
    JSON_MEMBER(j, "children", uint, s->children.specs);
    JSON_MEMBER(j, "active", uint, s->children.active);
    JSON_MEMBER(j, "restarts_granted", uint, s->restarts);
    json_key(j, "budget");
    json_object_begin(j);
    JSON_MEMBER(j, "restarts", uint, s->intensity);
    JSON_MEMBER(j, "period_ms", uint, s->period_ms);
    JSON_MEMBER(j, "used", uint, s->budget_used);
    JSON_MEMBER(j, "left", uint, s->intensity > s->budget_used ? s->intensity - s->budget_used : 0);
    json_object_end(j);
    json_object_end(j);
}

void actor_view_serve(const struct request *q, struct response *r)
{
    char target[ACTOR_VIEW_NAME_MAX];
    struct actor_info actor;
    struct child_info child;
    struct supervisor_info supervisor;
    struct json json;
    if (!actor_view_target(q, r, target))
        return;
    uint64_t deadline = actor_deadline_ms(ACTOR_VIEW_ANSWER_MS);
    actor_pid pid = actor_view_find(q->front->rows, target);
    enum error e = pid ? actor_inspect(pid, &actor, deadline) : ERR_NOPROC;
    if (e != OK) {
        actor_view_refuse(r, target, e);
        return;
    }
    bool is_child = actor_view_child(&actor, &child, deadline);
    bool supervises = strcmp(actor.class_name, supervisor_class.name) == 0 &&
                      supervisor_inspect(pid, &supervisor, deadline) == OK;
    response_begin(r, 200, RESPONSE_JSON);
    json_init(&json, &r->sink);
    json_object_begin(&json);
    write_actor(&json, &actor);
    json_key(&json, "child");
    if (is_child)
        write_child(&json, &child, actor.parent);
    else
        json_null(&json);
    json_key(&json, "supervisor");
    if (supervises)
        write_supervisor(&json, &supervisor);
    else
        json_null(&json);
    json_object_end(&json);
    json_sink_text(&r->sink, "\n");
}
