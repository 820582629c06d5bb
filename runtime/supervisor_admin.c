/* What a supervisor answers. */
#include "runtime/supervisor_impl.h"

#include <string.h>

/* The request's own block carries the answer back: every block has room for the small ones. */
static void answer_small(struct message *m, uint32_t type, const void *bytes, size_t size)
{
    ASSERT(size <= MESSAGE_SMALL);
    memcpy(m->payload, bytes, size);
    m->type = type;
    m->size = (uint32_t)size & 0xffffff;
    actor_reply(m, m);
}

void supervisor_answer_error(struct message *m, enum error e)
{
    uint32_t code = (uint32_t)e;
    answer_small(m, ANSWER_ERROR, &code, sizeof code);
}

static void answer_child(struct message *m, enum error e, actor_pid pid, uint64_t info)
{
    answer_small(m, ANSWER_CHILD, &(struct child_answer){.pid = pid, .info = info, .error = (uint32_t)e},
                 sizeof(struct child_answer));
}

/* Takes the reason. */
static void answer_refused(struct message *m, enum error e, struct start_result *r)
{
    struct message *answer = e == ERR_INIT ? message_new(ANSWER_REFUSED, sizeof(struct child_refusal)) : NULL;
    if (!answer) {
        reason_drop(&r->why);
        answer_child(m, e, r->pid, 0);
        return;
    }
    answer->reasoned = 1;
    *(struct child_refusal *)(void *)answer->payload =
        (struct child_refusal){.why = r->why, .pid = r->pid, .error = (uint32_t)e};
    actor_reply(m, answer);
}

/* ---- starting ---- */

/* The answer to a first start: what failed leaves nothing, what ignored stays only where its id is a key. */
static void answer_started(struct supervisor *s, struct message *m, struct child *c, enum error e,
                           struct start_result *r)
{
    if (e == OK) {
        answer_child(m, OK, r->pid, r->info);
        return;
    }
    if (e != ERR_IGNORED || s->strategy == DYNAMIC || c->plan->restart == RESTART_TEMPORARY)
        child_free(&s->children, c);
    if (e != ERR_IGNORED) {
        answer_refused(m, e, r);
        return;
    }
    reason_drop(&r->why);
    answer_child(m, OK, 0, 0);
}

static bool text_is_whole(const unsigned char *text, size_t size)
{
    return size == 0 || (text[size - 1] == 0 && strlen((const char *)text) == size - 1);
}

/* The spec as the caller wrote it, pointing into the message. */
static bool read_spec(const struct message *m, struct child_spec *ret_spec)
{
    const struct start_request *r = (const struct start_request *)(const void *)m->payload;
    if (m->size < sizeof *r || m->size != sizeof *r + r->args_size + r->id_size + r->name_size)
        return false;
    const unsigned char *id = r->bytes + r->args_size, *name = id + r->id_size;
    if (!text_is_whole(id, r->id_size) || !text_is_whole(name, r->name_size))
        return false;
    *ret_spec = (struct child_spec){.id = r->id_size ? (const char *)id : NULL,
                                    .class = r->class,
                                    .args = r->args_size ? r->bytes : NULL,
                                    .args_size = r->args_size,
                                    .name = r->name_size ? (const char *)name : NULL,
                                    .restart = (enum restart_type)r->restart,
                                    .type = (enum child_type)r->type,
                                    .shutdown_ms = r->shutdown_ms,
                                    .significant = r->significant,
                                    .scheduler = r->scheduler,
                                    .backoff = r->backoff,
                                    .quarantine = r->quarantine};
    return true;
}

/* Why an id can't be used for a new child: OK when it is free. */
static enum error id_taken(const struct supervisor *s, const char *id, actor_pid *ret_pid)
{
    const struct child *c = child_of_id(&s->children, id);
    if (!c)
        return OK;
    if (c->state == CHILD_QUARANTINED)
        return ERR_QUARANTINED;
    if (c->state != CHILD_RUNNING)
        return ERR_ALREADY_PRESENT;
    *ret_pid = c->pid;
    return ERR_ALREADY_STARTED;
}

static enum error new_child_refused(const struct supervisor *s, const struct child_spec *spec,
                                    actor_pid *ret_pid)
{
    bool dynamic = s->strategy == DYNAMIC;
    enum error e = spec_check_child(spec, !dynamic, (enum auto_shutdown)s->auto_shutdown, "child", NULL, 0);
    if (!e && !dynamic)
        e = id_taken(s, spec->id, ret_pid);
    if (!e && s->children.count >= s->max_children)
        e = dynamic ? ERR_MAX_CHILDREN : ERR_LIMIT;
    return e;
}

static struct child *child_from_spec(struct supervisor *s, const struct child_spec *spec)
{
    struct child_plan *plan = plan_new(&s->children, spec);
    if (!plan)
        return NULL;
    struct child *c = child_new(&s->children, plan, true);
    if (!c) {
        plan_free(&s->children, plan);
        return NULL;
    }
    if (spec->restart != RESTART_TEMPORARY &&
        !child_keep_args(&s->children, c, spec->args, spec->args_size)) {
        child_free(&s->children, c);
        return NULL;
    }
    if (s->strategy != DYNAMIC)
        child_hash_id(&s->children, c);
    return c;
}

static void start_child(struct supervisor *s, struct message *m)
{
    struct child_spec spec;
    actor_pid pid = 0;
    enum error e = s->template ? ERR_DYNAMIC : read_spec(m, &spec) ? OK : ERR_INVALID;
    if (!e)
        e = new_child_refused(s, &spec, &pid);
    struct child *c = e ? NULL : child_from_spec(s, &spec);
    if (!c) {
        answer_child(m, e ? e : ERR_MEMORY, pid, 0);
        return;
    }
    struct start_result r;
    e = child_start(s, c, spec.args, spec.args_size, NULL, &r);
    answer_started(s, m, c, e, &r);
}

static struct child *child_from_template(struct supervisor *s, const void *args, size_t args_size,
                                         const char *name)
{
    struct child *c = child_new(&s->children, s->template, false);
    if (!c || s->template->restart == RESTART_TEMPORARY)
        return c;
    if (child_keep_args(&s->children, c, args, args_size) && child_keep_name(&s->children, c, name))
        return c;
    child_free(&s->children, c);
    return NULL;
}

static void start_dynamic(struct supervisor *s, struct message *m)
{
    const struct start_dynamic_request *r = (const struct start_dynamic_request *)(const void *)m->payload;
    const unsigned char *name = NULL;
    bool whole = m->size >= sizeof *r && m->size == sizeof *r + (size_t)r->args_size + r->name_size;
    if (whole && r->name_size)
        name = r->bytes + r->args_size;
    if (!s->template || !whole ||
        (name && (r->name_size < 2 || r->name_size > CHILD_TEXT_MAX || !text_is_whole(name, r->name_size)))) {
        answer_child(m, ERR_INVALID, 0, 0);
        return;
    }
    if (s->children.count >= s->max_children) {
        answer_child(m, ERR_MAX_CHILDREN, 0, 0);
        return;
    }
    struct child *c = child_from_template(s, r->bytes, r->args_size, (const char *)name);
    if (!c) {
        answer_child(m, ERR_MEMORY, 0, 0);
        return;
    }
    struct start_result result;
    enum error e = r->args_size ? child_start(s, c, r->bytes, r->args_size, (const char *)name, &result)
                                : child_start(s, c, s->template_args, s->template_args_size,
                                              (const char *)name, &result);
    answer_started(s, m, c, e, &result);
}

/* ---- ending and starting again ---- */

static void terminate(struct supervisor *s, struct child *c)
{
    if (c->state == CHILD_RUNNING)
        child_stop(s, c);
    else
        child_cancel(s, c);
    if (s->strategy == DYNAMIC || c->plan->restart == RESTART_TEMPORARY)
        child_free(&s->children, c);
}

static void terminate_pid(struct supervisor *s, struct message *m, actor_pid pid)
{
    struct child *c = s->strategy == DYNAMIC ? child_of_pid(&s->children, pid) : NULL;
    enum error e = OK;
    if (c)
        terminate(s, c);
    else if (s->strategy != DYNAMIC || !pid || actor_alive(pid))
        e = ERR_NOT_FOUND;
    supervisor_answer_error(m, e);
}

static void restart_child(struct supervisor *s, struct message *m, struct child *c)
{
    static const enum error refused[CHILD_STATE_COUNT] = {
        [CHILD_STARTING] = ERR_RESTARTING,   [CHILD_RUNNING] = ERR_RUNNING,
        [CHILD_RESTARTING] = ERR_RESTARTING, [CHILD_BACKING_OFF] = ERR_RESTARTING,
        [CHILD_STOPPING] = ERR_RUNNING,      [CHILD_QUARANTINED] = ERR_QUARANTINED,
    };
    if (refused[c->state]) {
        answer_child(m, refused[c->state], c->state == CHILD_RUNNING ? c->pid : 0, 0);
        return;
    }
    struct start_result r;
    enum error e = child_start_again(s, c, &r);
    if (e == OK || e == ERR_IGNORED) {
        reason_drop(&r.why);
        answer_child(m, OK, r.pid, r.info);
    } else {
        answer_refused(m, e, &r);
    }
}

static enum error delete_child(struct supervisor *s, struct child *c)
{
    switch ((enum child_state)c->state) {
    case CHILD_STOPPED:
        child_free(&s->children, c);
        return OK;
    case CHILD_RESTARTING:
    case CHILD_BACKING_OFF:
        return ERR_RESTARTING;
    case CHILD_QUARANTINED:
        return ERR_QUARANTINED;
    default:
        return ERR_RUNNING;
    }
}

static enum error resume(struct supervisor *s, struct child *c)
{
    switch ((enum child_state)c->state) {
    case CHILD_QUARANTINED:
    case CHILD_BACKING_OFF:
        return child_resume(s, c);
    case CHILD_RESTARTING:
        return ERR_RESTARTING;
    case CHILD_STOPPED:
        return ERR_INVALID;
    default:
        return ERR_RUNNING;
    }
}

static void resume_pid(struct supervisor *s, struct message *m, actor_pid pid)
{
    struct child *c = s->strategy == DYNAMIC ? child_of_pid(&s->children, pid) : NULL;
    supervisor_answer_error(m, c ? resume(s, c) : ERR_NOT_FOUND);
}

/* ---- looking ---- */

static void describe(const struct child *c, struct child_info *ret)
{
    bool runs = c->state == CHILD_RUNNING;
    *ret = (struct child_info){.pid = runs ? c->pid : 0,
                               .last_pid = c->pid,
                               .state = (enum child_state)c->state,
                               .type = (enum child_type)c->plan->type,
                               .restart = (enum restart_type)c->plan->restart,
                               .shutdown_ms = c->plan->shutdown_ms,
                               .class_name = c->plan->class->name,
                               .restarts = c->restarts};
    if (c->has_plan) /* a template's id is nobody's */
        memcpy(ret->id, c->plan->text, c->plan->id_size);
    if (c->trouble && c->trouble->text[0])
        memcpy(ret->last_reason, c->trouble->text, sizeof ret->last_reason);
    else if (c->has_last)
        reason_format(&c->last, ret->last_reason, sizeof ret->last_reason);
}
STATIC_ASSERT(sizeof((struct child_info *)0)->last_reason == CHILD_TEXT_MAX, "a text fits");

static void which_child(struct message *m, const struct child *c)
{
    struct message *answer = message_new(ANSWER_INFO, sizeof(struct child_info));
    if (!answer) {
        supervisor_answer_error(m, ERR_MEMORY);
        return;
    }
    describe(c, (struct child_info *)(void *)answer->payload);
    actor_reply(m, answer);
}

/* The child at this position from the newest. Where the last answer ended the next one begins, without a
 * walk, as long as nobody has come or gone. */
static uint32_t child_at_place(struct supervisor *s, size_t place)
{
    bool known = s->walk.version == s->children.version && s->walk.place <= place;
    size_t at = known ? s->walk.place : 0;
    uint32_t i = known ? s->walk.index : s->children.newest;
    for (; at < place && i != CHILD_NONE; at++)
        i = child_at(&s->children, i)->older;
    return i;
}

static void which_children(struct supervisor *s, struct message *m)
{
    const struct which_request *r = message_body(m, sizeof *r);
    size_t total = s->children.count, count = r && r->first < total ? total - r->first : 0;
    if (r && count > r->count)
        count = r->count;
    if (count > WHICH_MAX)
        count = WHICH_MAX;
    struct message *answer =
        message_new(ANSWER_CHILDREN, sizeof(struct which_answer) + count * sizeof(struct child_info));
    if (!r || !answer) {
        supervisor_answer_error(m, r ? ERR_MEMORY : ERR_INVALID);
        return;
    }
    struct which_answer *a = (struct which_answer *)(void *)answer->payload;
    a->total = total;
    uint32_t at = child_at_place(s, r->first);
    for (size_t i = 0; i < count; i++) {
        const struct child *c = child_at(&s->children, at);
        describe(c, &a->infos[i]);
        at = c->older;
    }
    s->walk.version = s->children.version;
    s->walk.place = r->first + count;
    s->walk.index = at;
    actor_reply(m, answer);
}

static struct child_counts counts_of(const struct supervisor *s)
{
    return (struct child_counts){.specs = s->template ? 1 : s->children.count,
                                 .active = s->children.running,
                                 .supervisors = s->children.supervisors,
                                 .workers = s->children.count - s->children.supervisors};
}

static void count_children(const struct supervisor *s, struct message *m)
{
    struct child_counts counts = counts_of(s);
    actor_reply_bytes(m, ANSWER_COUNTS, &counts, sizeof counts);
}

static void inspect(const struct supervisor *s, struct message *m)
{
    struct supervisor_info info = {.strategy = (enum strategy)s->strategy,
                                   .intensity = restart_window_intensity(&s->window),
                                   .period_ms = s->period_ms,
                                   .budget_used = restart_window_used(&s->window, actor_now()),
                                   .restarts = s->restarts,
                                   .children = counts_of(s)};
    memcpy(info.name, s->name, sizeof info.name);
    actor_reply_bytes(m, ANSWER_INSPECT, &info, sizeof info);
}
STATIC_ASSERT(sizeof((struct supervisor_info *)0)->name == CHILD_TEXT_MAX, "a name fits");

/* ---- the list ---- */

static void answer_by_id(struct supervisor *s, struct message *m)
{
    struct child *c = NULL;
    enum error e = OK;
    if (s->strategy == DYNAMIC)
        e = ERR_DYNAMIC;
    else if (!m->size || !text_is_whole(m->payload, m->size))
        e = ERR_INVALID;
    else if (!(c = child_of_id(&s->children, (const char *)m->payload)))
        e = ERR_NOT_FOUND;
    if (e) {
        supervisor_answer_error(m, e);
        return;
    }
    switch (m->type) {
    case CALL_TERMINATE_CHILD:
        terminate(s, c);
        supervisor_answer_error(m, OK);
        return;
    case CALL_RESTART_CHILD:
        restart_child(s, m, c);
        return;
    case CALL_DELETE_CHILD:
        supervisor_answer_error(m, delete_child(s, c));
        return;
    case CALL_RESUME_CHILD:
        supervisor_answer_error(m, resume(s, c));
        return;
    default:
        which_child(m, c);
        return;
    }
}

void supervisor_answer(struct supervisor *s, struct message *m)
{
    actor_pid pid = 0;
    switch (m->type) {
    case CALL_START_CHILD:
        start_child(s, m);
        return;
    case CALL_START_DYNAMIC:
        start_dynamic(s, m);
        return;
    case CALL_TERMINATE_PID:
    case CALL_RESUME_PID:
        if (m->size == sizeof pid)
            memcpy(&pid, m->payload, sizeof pid);
        if (m->type == CALL_TERMINATE_PID)
            terminate_pid(s, m, pid);
        else
            resume_pid(s, m, pid);
        return;
    case CALL_WHICH_CHILDREN:
        which_children(s, m);
        return;
    case CALL_COUNT_CHILDREN:
        count_children(s, m);
        return;
    case CALL_INSPECT:
        inspect(s, m);
        return;
    default:
        answer_by_id(s, m);
        return;
    }
}
