/* Starting, watching, restarting, giving up. */
#include "runtime/supervisor_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/scheduler.h"
#include "runtime/telemetry.h"

/* The mark of a reason that is a refused spec and not what somebody's init said: supervisor_start looks for
 * it. */
#define SPEC_REFUSED 0x63657073u

/* Virtual, not reserved. For each child its record (104) and its share of the map (4, pages half full: 8),
 * plan and texts (64 + 192 at most, rounded up by a quarter), and 1 KiB for arguments and troubles; and a
 * ring of CHILD_BLOCK_MAX. */
#define ARENA_QUOTA (SUPERVISOR_CHILDREN_MAX * (size_t)(104 + 8 + 320 + 1024) + CHILD_BLOCK_MAX)
STATIC_ASSERT(sizeof(struct child) == 104, "see ARENA_QUOTA");

/* An EXIT and a DOWN of each child, and as many calls as actors may want to make. */
#define MAILBOX_CAPACITY (2 * SUPERVISOR_CHILDREN_MAX + 65536)

#define START_BATCH      256u /* children copied before others get a turn */
#define ORPHAN_MS        5000 /* what a child has to stop, unless its spec says otherwise */

const char *supervisor_label(const struct supervisor *s)
{
    return s->name[0] ? s->name : "unnamed";
}

const char *child_label(const struct child *c)
{
    const char *name = c->name ? c->name : plan_name(c->plan);
    return c->plan->id_size ? c->plan->text : name ? name : c->plan->class->name;
}

/* ---- one child ---- */

static bool is_down_of(const struct message *m, void *arg)
{
    const uint64_t *ref = arg;
    return m->type == MESSAGE_DOWN && ((const struct message_down *)(const void *)m->payload)->ref == *ref;
}

/* The name that is wanted may still be held by an orphan: when a supervisor is killed its children end by the signal of their
 * links, those on other schedulers a moment later, and those that supervise when they have stopped whom they have. Its
 * successor waits for that, ORPHAN_MS at most: refused at once, again and again, it would spend the budget of whoever starts it
 * within a millisecond. True: the holder has gone. */
static bool orphan_ends(actor_pid holder)
{
    struct actor_info info;
    uint64_t deadline = actor_deadline_ms(ORPHAN_MS);
    enum error e = actor_inspect(holder, &info, deadline);
    if (e)
        return e == ERR_NOPROC;
    if (!info.parent || actor_alive(info.parent))
        return false;
    uint64_t ref = actor_monitor(holder, 0);
    struct message *down = ref ? actor_receive(is_down_of, &ref, deadline) : NULL;
    if (down)
        message_free(down);
    else if (ref)
        actor_demonitor(ref);
    return down != NULL;
}

enum error child_start(struct supervisor *s, struct child *c, const void *args, size_t args_size,
                       const char *name, struct start_result *ret)
{
    *ret = (struct start_result){0};
    if (plan_watchful(c->plan) && !child_trouble(&s->children, c))
        return ERR_MEMORY;
    const struct spawn_options o = {.class = c->plan->class,
                                    .args = args,
                                    .args_size = args_size,
                                    .name = name ? name : plan_name(c->plan),
                                    .link = true,
                                    .tag = child_tag(c),
                                    .scheduler = c->plan->scheduler};
    child_become(&s->children, c, CHILD_STARTING);
    enum error e = actor_start(&o, ret, DEADLINE_NONE);
    if (e == ERR_ALREADY_REGISTERED && orphan_ends(ret->pid)) {
        reason_drop(&ret->why);
        e = actor_start(&o, ret, DEADLINE_NONE);
    }
    if (e) {
        child_become(&s->children, c, CHILD_STOPPED);
        return e;
    }
    c->pid = ret->pid;
    if (s->strategy == DYNAMIC) {
        child_unhash(&s->children, c);
        child_hash_pid(&s->children, c);
    }
    if (c->trouble)
        c->trouble->started_at = actor_now();
    child_become(&s->children, c, CHILD_RUNNING);
    return OK;
}

enum error child_start_again(struct supervisor *s, struct child *c, struct start_result *ret)
{
    bool own = c->has_args || !s->template;
    return child_start(s, c, own ? c->args : s->template_args, own ? c->args_size : s->template_args_size,
                       c->name, ret);
}

static void remember(struct supervisor *s, struct child *c, const struct reason *why)
{
    c->last = *why;
    c->last.detail = NULL; /* a blob in an arena would outlive a killed supervisor; the text doesn't */
    c->has_last = true;
    if (why->detail && child_trouble(&s->children, c))
        reason_format(why, c->trouble->text, sizeof c->trouble->text);
    else if (c->trouble)
        c->trouble->text[0] = 0;
}

void child_ended(struct supervisor *s, struct child *c, const struct reason *why)
{
    child_outdate(c);
    child_become(&s->children, c, CHILD_STOPPED);
    c->condemned = c->killed = c->watched = false;
    if (c->plan->restart != RESTART_TEMPORARY)
        remember(s, c, why);
}

void child_cancel(struct supervisor *s, struct child *c)
{
    ASSERT(c->state != CHILD_RUNNING && c->state != CHILD_STARTING && c->state != CHILD_STOPPING);
    if (c->state == CHILD_STOPPED)
        return;
    if (c->trouble && c->trouble->timer) {
        actor_timer_cancel(c->trouble->timer, NULL);
        c->trouble->timer = 0;
    }
    child_outdate(c);
    child_become(&s->children, c, CHILD_STOPPED);
}

/* ---- quarantine and backoff ---- */

static bool park(struct supervisor *s, struct child *c, enum child_state state, uint64_t delay_ns)
{
    /* delays are 32 bits of ms: 50 days, no overflow */
    c->trouble->timer = actor_timer(actor_now() + delay_ns, NOTE_TIMER, child_tag(c));
    if (!c->trouble->timer)
        return false; /* no records: without a way back nobody is set aside */
    child_become(&s->children, c, state);
    return true;
}

/* One more failure at start: is it one too many? A window that grants failures - 1 says so by refusing. */
static bool failed_too_often(struct child *c)
{
    const struct quarantine_spec *q = &c->plan->quarantine;
    struct child_trouble *t = c->trouble;
    if (t->failures.period_ns == 0) {
        bool few = restart_window_init(&t->failures, q->failures - 1, q->window_ms * NS_PER_MS, NULL);
        ASSERT(few); /* it needs no ring */
    }
    return !restart_window_grant(&t->failures, actor_now()) || t->probation;
}

static bool quarantine(struct supervisor *s, struct child *c, bool at_start)
{
    if (!c->plan->quarantine.failures)
        return false;
    ASSERT(c->trouble); /* since its first start: see child_start */
    if (!at_start) {
        c->trouble->probation = false;
        return false;
    }
    if (!failed_too_often(c) || !park(s, c, CHILD_QUARANTINED, c->plan->quarantine.retry_ms * NS_PER_MS))
        return false;
    c->trouble->probation = true;
    char text[CHILD_TEXT_MAX];
    reason_format(&c->last, text, sizeof text);
    TELEMETRY(SUPERVISOR_QUARANTINE, c->plan->quarantine.failures, DIM(SUPERVISOR, supervisor_label(s)),
              DIM(CHILD, child_label(c)), DIM(FAILURE_CLASS, "degraded"),
              DIM(REASON, c->trouble->text[0] ? c->trouble->text : text));
    return true;
}

static uint64_t backoff_delay(struct child *c, bool lived)
{
    const struct backoff_spec *b = &c->plan->backoff;
    struct child_trouble *t = c->trouble;
    if (lived && actor_now() - t->started_at >= b->reset_ms * NS_PER_MS)
        t->attempts = 0;
    uint64_t limit_ms = b->first_ms;
    for (uint32_t i = 0; i < t->attempts && limit_ms < b->max_ms; i++)
        limit_ms *= 2;
    t->attempts += t->attempts < 32;
    if (limit_ms > b->max_ms)
        limit_ms = b->max_ms;
    return actor_random() % (limit_ms * NS_PER_MS + 1);
}

static uint32_t group_first(const struct supervisor *s, const struct child *c)
{
    return s->strategy == ONE_FOR_ALL ? s->children.oldest : c->index;
}

/* A group backs off as a whole: it would be the same group when one of its members is missing. */
static bool back_off(struct supervisor *s, struct child *c, bool lived)
{
    if (!c->plan->backoff.first_ms)
        return false;
    ASSERT(c->trouble); /* since its first start */
    uint64_t delay = backoff_delay(c, lived);
    if (supervisor_is_group(s))
        children_stop_group(s, group_first(s, c));
    return park(s, c, CHILD_BACKING_OFF, delay);
}

/* ---- giving up ---- */

/* Children end in terminate, in reverse order; the reason is plain shutdown, and the why is in the events. */
_Noreturn static void give_up(struct supervisor *s, const struct child *c, const struct reason *why)
{
    uint32_t count = restart_window_used(&s->window, actor_now()) + 1;
    int64_t window_s = (int64_t)(s->period_ms / 1000 + (s->period_ms % 1000 != 0));
    TELEMETRY(SUPERVISOR_ESCALATION, runtime_cascade(supervisor_label(s)), DIM(DOMAIN, supervisor_label(s)),
              DIM(SOURCE_CHILD, child_label(c)), DIM_INT(RESTART_COUNT, count));
    TELEMETRY(FAILURE_RESTART_EXHAUSTED, 1, DIM(COMPONENT, "supervisor"), DIM(FAILURE_CLASS, "fatal"),
              DIM_INT(RESTART_COUNT, count), DIM_INT(WINDOW_S, window_s), DIM(DOMAIN, supervisor_label(s)));
    if (s->root)
        runtime_exhausted(supervisor_label(s), count, s->period_ms, why);
    actor_exit(reason_of(REASON_SHUTDOWN));
}

/* ---- restarting ---- */

/* The next attempt comes through the mailbox, so that others are served before it. */
static void retry_later(struct supervisor *s, struct child *c)
{
    uint64_t tag = child_tag(c);
    child_become(&s->children, c, CHILD_RESTARTING);
    if (actor_cast(actor_self(), NOTE_RETRY, &tag, sizeof tag) && !actor_timer(actor_now(), NOTE_RETRY, tag))
        actor_exit(
            reason_of(REASON_QUOTA)); /* neither messages nor records: this node is past helping itself */
}

/* Why a start failed: what init ended with, or what kept it from running. */
static void name_failure(enum error e, struct reason *why)
{
    if (e == ERR_INIT)
        return;
    reason_drop(why);
    *why = reason_with_detail(reason_error((int)e), error_name(e), strlen(error_name(e)));
}

/* Takes the reason: what comes behind it may wait, or end us, and nobody would give its detail back then. */
static void start_failed(struct supervisor *s, struct child *c, struct reason *why)
{
    child_ended(s, c, why);
    char text[CHILD_TEXT_MAX];
    reason_format(why, text, sizeof text);
    TELEMETRY(SUPERVISOR_START_ERROR, 1, DIM(SUPERVISOR, supervisor_label(s)), DIM(CHILD, child_label(c)),
              DIM(REASON, text));
    reason_drop(why);
    if (!quarantine(s, c, true) && !back_off(s, c, false))
        retry_later(s, c);
}

static void restarted(struct supervisor *s, struct child *c)
{
    c->restarts++;
    TELEMETRY(SUPERVISOR_RESTART, 1, DIM(SUPERVISOR, supervisor_label(s)), DIM(CHILD, child_label(c)),
              DIM(REASON, reason_name((enum reason_kind)c->last.kind)), DIM_INT(RESTART_COUNT, c->restarts));
}

/* False: it failed, and what comes next has been arranged. */
static bool start_again(struct supervisor *s, struct child *c)
{
    struct start_result r;
    ASSERT(c->plan->restart != RESTART_TEMPORARY); /* such a one is forgotten at its end */
    enum error e = child_start_again(s, c, &r);
    if (e == OK)
        restarted(s, c);
    else if (e != ERR_IGNORED)
        name_failure(e, &r.why), start_failed(s, c, &r.why);
    else if (s->strategy == DYNAMIC)
        child_free(&s->children, c);
    reason_drop(&r.why);
    return e == OK || e == ERR_IGNORED;
}

/* All that are stopped, the first one first. A failure ends the walk, unless it is quarantined and so out of
 * the group. */
static void start_group(struct supervisor *s, uint32_t first)
{
    for (uint32_t i = first, next; i != CHILD_NONE; i = next) {
        struct child *c = child_at(&s->children, i);
        next = c->newer;
        if (c->state == CHILD_STOPPED && !start_again(s, c) && c->state != CHILD_QUARANTINED)
            return;
    }
}

/* False: c's start failed. */
static bool restart_by_strategy(struct supervisor *s, struct child *c)
{
    if (!supervisor_is_group(s))
        return start_again(s, c);
    children_stop_group(s, group_first(s, c));
    start_group(s, group_first(s, c));
    return c->state == CHILD_RUNNING ||
           c->state == CHILD_STOPPED; /* it was restarted, so it isn't temporary: c lives */
}

static void restart(struct supervisor *s, struct child *c, const struct reason *why)
{
    if (!restart_window_grant(&s->window, actor_now()))
        give_up(s, c, why);
    s->restarts++;
    restart_by_strategy(s, c);
}

enum error child_resume(struct supervisor *s, struct child *c)
{
    bool alone = c->state == CHILD_QUARANTINED; /* it is out of its group until it has started */
    child_cancel(s, c);
    return (alone ? start_again(s, c) : restart_by_strategy(s, c)) ? OK : ERR_INIT;
}

/* ---- deaths ---- */

static bool is_to_restart(const struct child *c, const struct reason *why)
{
    return c->plan->restart == RESTART_PERMANENT ||
           (c->plan->restart == RESTART_TRANSIENT && reason_abnormal(why));
}

/* A significant child has ended by itself: is that the end of us all? */
static bool is_to_shut_down(const struct supervisor *s)
{
    ASSERT(s->auto_shutdown != AUTO_SHUTDOWN_NEVER); /* then no child may be significant */
    return s->auto_shutdown == AUTO_SHUTDOWN_ANY || s->children.significant_left == 0;
}

static void died(struct supervisor *s, struct child *c, const struct reason *why, bool at_start)
{
    child_ended(s, c, why);
    if (is_to_restart(c, why)) {
        if (!quarantine(s, c, at_start) && !back_off(s, c, true))
            restart(s, c, why);
        return;
    }
    bool significant = c->plan->significant;
    if (s->strategy == DYNAMIC || c->plan->restart == RESTART_TEMPORARY)
        child_free(&s->children, c);
    if (significant && is_to_shut_down(s))
        actor_exit(reason_of(REASON_SHUTDOWN));
}

static void on_exit_of(struct supervisor *s, const struct message_exit *x)
{
    struct child *c = x->tag ? child_of_tag(&s->children, x->tag) : NULL;
    if (!c || c->pid != x->pid) /* an earlier life's, or somebody has passed an EXIT of his own on to us */
        return;
    ASSERT(c->state == CHILD_RUNNING); /* every other state begins with a new tag */
    died(s, c, &x->reason, x->at_start);
}

static void on_note(struct supervisor *s, const struct message *m)
{
    uint64_t tag;
    if (m->from != actor_self())
        return;
    ASSERT(m->size == sizeof tag);
    memcpy(&tag, m->payload, sizeof tag);
    struct child *c = child_of_tag(&s->children, tag);
    if (!c)
        return;
    if (m->type == NOTE_TIMER)
        c->trouble->timer = 0;
    if (c->state == CHILD_QUARANTINED) {
        child_resume(s, c);
        return;
    }
    ASSERT(c->state == CHILD_RESTARTING || c->state == CHILD_BACKING_OFF);
    restart(s, c, &c->last);
}

static enum actor_step supervisor_handle(void *state, struct message *m)
{
    struct supervisor *s = state;
    switch (m->type) {
    case MESSAGE_EXIT: /* the parent's never gets here: the runtime ends us for it */
        on_exit_of(s, (const struct message_exit *)(const void *)m->payload);
        return ACTOR_CONTINUE;
    case MESSAGE_DOWN: /* of one whose EXIT came first */
        return ACTOR_CONTINUE;
    case NOTE_RETRY:
    case NOTE_TIMER:
        on_note(s, m);
        return ACTOR_CONTINUE;
    default:
        break;
    }
    if (m->type >= SUPERVISOR_CALL_FIRST && m->type <= SUPERVISOR_CALL_LAST)
        supervisor_answer(s, m);
    else
        actor_unknown(m);
    return ACTOR_CONTINUE;
}

/* However it ends short of being killed, its children end first, as their specs say. */
static void supervisor_terminate(void *state, const struct reason *why)
{
    (void)why;
    children_stop_all(state);
}

/* ---- beginning ---- */

static struct reason refusal(enum error e, const char *text)
{
    struct reason r = reason_error((int)e);
    r.address = SPEC_REFUSED;
    return reason_with_detail(r, text, strlen(text));
}

static uint64_t *ring_for(uint32_t intensity)
{
    size_t size = restart_window_ring_bytes(intensity);
    if (size <= CHILD_BLOCK_MAX)
        return size ? actor_try_alloc(size) : NULL;
    uint64_t *ring =
        malloc(size); /* up to 8 MB, in one piece: more than an arena has; touched as it is used */
    if (ring && !actor_own(free, ring)) {
        free(ring);
        ring = NULL;
    }
    return ring;
}

static bool prepare_window(struct supervisor *s, const struct supervisor_spec *spec)
{
    bool standard = spec->intensity == 0 && spec->period_ms == 0;
    uint32_t intensity = standard ? INTENSITY_DEFAULT : (uint32_t)spec->intensity;
    uint64_t ns;
    s->period_ms = standard ? PERIOD_DEFAULT_MS : (uint64_t)spec->period_ms;
    if (__builtin_mul_overflow(s->period_ms, NS_PER_MS, &ns))
        ns = UINT64_MAX;
    uint64_t *ring = ring_for(intensity);
    if (!ring && restart_window_ring_bytes(intensity))
        return false;
    bool sound = restart_window_init(&s->window, intensity, ns, ring);
    ASSERT(sound); /* the spec was checked */
    return true;
}

static bool prepare_template(struct supervisor *s, const struct child_spec *spec)
{
    if (!spec)
        return true;
    s->template = plan_new(&s->children, spec);
    if (!s->template)
        return false;
    if (!spec->args_size)
        return true;
    void *args = actor_try_alloc(spec->args_size);
    if (!args)
        return false;
    memcpy(args, spec->args, spec->args_size);
    s->template_args = args;
    s->template_args_size = (uint32_t)spec->args_size;
    return true;
}

static bool prepare(struct supervisor *s, const struct supervisor_spec *spec)
{
    s->strategy = (uint8_t)spec->strategy;
    s->auto_shutdown = (uint8_t)spec->auto_shutdown;
    s->max_children =
        spec->strategy == DYNAMIC && spec->max_children ? spec->max_children : SUPERVISOR_CHILDREN_MAX;
    s->root = spec->root;
    if (spec->name)
        memcpy(s->name, spec->name, strlen(spec->name) + 1);
    return children_init(&s->children) && prepare_window(s, spec) && prepare_template(s, spec->template);
}

/* Everything is copied before anything starts: the specs are borrowed. Temporary children's arguments aren't
 * kept. */
static bool copy_children(struct supervisor *s, const struct supervisor_spec *spec)
{
    for (size_t i = 0; i < spec->children_count; i++) {
        const struct child_spec *cs = &spec->children[i];
        struct child_plan *plan = plan_new(&s->children, cs);
        struct child *c = plan ? child_new(&s->children, plan, true) : NULL;
        if (!c ||
            (cs->restart != RESTART_TEMPORARY && !child_keep_args(&s->children, c, cs->args, cs->args_size)))
            return false;
        child_hash_id(&s->children, c);
        if (i % START_BATCH == START_BATCH - 1)
            actor_yield();
    }
    return true;
}

_Noreturn static void start_refused(struct supervisor *s, struct child *c, size_t place, enum error e,
                                    struct reason why)
{
    struct reason r = {.kind = REASON_CHILD_FAILED, .code = (int32_t)place};
    char text[2 * REASON_TEXT_MAX];
    name_failure(e, &why);
    int used = snprintf(text, sizeof text, "%s: ", plan_id(c->plan));
    used += (int)reason_format(&why, text + used, sizeof text - (size_t)used);
    reason_drop(&why);
    children_stop_all(s); /* waits: whoever is killed meanwhile holds no detail */
    actor_refuse(reason_with_detail(r, text, (size_t)used));
}

static void start_children(struct supervisor *s, const struct supervisor_spec *spec)
{
    uint32_t at = s->children.oldest, next;
    for (size_t i = 0; at != CHILD_NONE; i++, at = next) {
        const struct child_spec *cs = &spec->children[i];
        struct child *c = child_at(&s->children, at);
        next = c->newer;
        struct start_result r;
        enum error e = child_start(s, c, cs->args, cs->args_size, NULL, &r);
        if (e && e != ERR_IGNORED)
            start_refused(s, c, i, e, r.why);
        reason_drop(&r.why);
        if (e == ERR_IGNORED && cs->restart == RESTART_TEMPORARY)
            child_free(&s->children, c);
    }
}

static enum error take_name(const struct supervisor_spec *spec)
{
    if (!spec->register_name || actor_whereis(spec->name) == actor_self())
        return OK;
    actor_pid holder = 0;
    enum error e = actor_register(spec->name, actor_self(), &holder);
    if (e == ERR_ALREADY_REGISTERED && orphan_ends(holder))
        e = actor_register(spec->name, actor_self(), &holder);
    return e;
}

static enum actor_step supervisor_init(void *state, const void *args, size_t args_size)
{
    struct supervisor *s = state;
    struct supervisor_spec spec;
    char text[SPEC_TEXT_MAX] = "";
    if (args_size != sizeof spec)
        actor_refuse(refusal(ERR_BADARG, "supervisor: args aren't those of supervisor_args"));
    memcpy(&spec, args, sizeof spec);
    if (spec.init) {
        enum actor_step step = spec.init(&spec, spec.init_arg);
        if (step == ACTOR_IGNORE)
            return ACTOR_IGNORE;
        if (step != ACTOR_CONTINUE)
            actor_refuse(reason_of(REASON_BAD_RETURN));
    }
    enum error e = supervisor_check(&spec, text, sizeof text);
    if (e)
        actor_refuse(refusal(e, text));
    if (!prepare(s, &spec) || !copy_children(s, &spec))
        actor_refuse(refusal(ERR_MEMORY, "supervisor: no memory for its children"));
    e = take_name(&spec);
    if (e)
        actor_refuse(refusal(e, "supervisor: name is taken"));
    start_children(s, &spec);
    return ACTOR_CONTINUE;
}

const struct actor_class supervisor_class = {
    .name = "supervisor",
    .state_size = sizeof(struct supervisor),
    .init = supervisor_init,
    .handle = supervisor_handle,
    .terminate = supervisor_terminate,
    .trap_exits = true,
    .mailbox_capacity = MAILBOX_CAPACITY,
    .arena_quota = ARENA_QUOTA,
};
STATIC_ASSERT(sizeof(struct supervisor) <= ACTOR_STATE_MAX, "the state fits");

/* ---- from outside ---- */

size_t supervisor_args(const struct supervisor_spec *spec, void *storage)
{
    STATIC_ASSERT(sizeof *spec <= SUPERVISOR_ARGS_MAX, "the storage holds a spec");
    memcpy(storage, spec, sizeof *spec);
    return sizeof *spec;
}

enum error supervisor_start(const struct supervisor_spec *spec, int scheduler, struct start_result *ret,
                            uint64_t deadline)
{
    char text[SPEC_TEXT_MAX] = "";
    struct start_result r = {0};
    enum error e = spec && spec->init ? OK : supervisor_check(spec, text, sizeof text);
    if (e) {
        r.why = reason_with_detail(reason_error((int)e), text, strlen(text));
    } else {
        ASSERT(spec); /* without one it was refused */
        e = actor_start(&(struct spawn_options){.class = &supervisor_class,
                                                .args = spec,
                                                .args_size = sizeof *spec,
                                                .name = spec->register_name ? spec->name : NULL,
                                                .link = true,
                                                .scheduler = scheduler},
                        &r, deadline);
        if (e == ERR_INIT && r.why.kind == REASON_ERROR && r.why.address == SPEC_REFUSED) {
            e = (enum error)r.why.code;
            r.why.address = 0;
        }
    }
    if (ret)
        *ret = r;
    else
        reason_drop(&r.why);
    return e;
}
