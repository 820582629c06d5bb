/* Birth and death of actors, and what one may ask about them. */
#include <stdio.h>
#include <string.h>
#include "runtime/blob.h"
#include "runtime/pressure.h"
#include "runtime/scheduler.h"
#include "runtime/telemetry.h"

/* ---- slots ---- */

static uint32_t pressure_span(const struct actor_class *class)
{
    struct pressure pressure;
    pressure_init(&pressure, class->mailbox_capacity ? class->mailbox_capacity : ACTOR_MAILBOX_DEFAULT);
    return pressure.span;
}

struct class_stats *class_stats_of(struct scheduler *s, const struct actor_class *class)
{
    for (uint32_t i = 0; i < s->classes_used; i++)
        if (s->classes[i].class == class)
            return &s->classes[i];
    if (s->classes_used == CLASSES_MAX)
        return &s->classes[CLASSES_MAX - 1];
    s->classes[s->classes_used].class = class;
    s->classes[s->classes_used].pressure_span = pressure_span(class);
    uint32_t k = s->classes_used;
    __atomic_store_n(&s->classes_used, k + 1, __ATOMIC_RELEASE);
    return &s->classes[k];
}

static struct actor *slot_take(struct scheduler *s)
{
    if (s->slot_free) {
        struct actor *a = &s->actors[s->slot_free];
        s->slot_free = (uint32_t)(uintptr_t)a->run_next;
        return a;
    }
    if (s->slots_used == s->slots_max)
        return NULL;
    struct actor *a = &s->actors[s->slots_used];
    __atomic_store_n(&s->slots_used, s->slots_used + 1, __ATOMIC_RELAXED); /* others walk the slots, too */
    return a;
}

static void slot_give(struct scheduler *s, struct actor *a)
{
    a->run_next = (struct actor *)(uintptr_t)s->slot_free;
    s->slot_free = actor_slot(s, a);
}

static uint32_t state_block(size_t size)
{
    return size <= 64 ? 0 : (uint32_t)(64 - __builtin_clzll(size - 1)) - 6;
}

static bool state_take(struct scheduler *s, struct actor *a)
{
    size_t size = a->class->state_size;
    if (size <= ACTOR_STATE_INLINE) {
        a->state = a->small_state;
        memset(a->small_state, 0, ACTOR_STATE_INLINE);
        return true;
    }
    a->state = pool_take(&s->messages[state_block(size)]);
    if (a->state)
        memset(a->state, 0, size);
    return a->state != NULL;
}

/* ---- birth ---- */

enum error actor_options_check(const struct spawn_options *o)
{
    if (!o || !o->class || !o->class->handle || !o->class->name)
        return ERR_INVALID_START;
    if (o->class->state_size > ACTOR_STATE_MAX || o->class->stack_size > (1u << 20))
        return ERR_INVALID_START;
    if (o->args_size > ACTOR_ARGS_MAX || (o->args_size && !o->args))
        return ERR_BADARG;
    return OK;
}

struct message *actor_birth_message(struct scheduler *s, const struct spawn_options *o)
{
    size_t name = o->name ? strlen(o->name) : 0;
    size_t name_size = o->name ? (name + 8) & ~(size_t)7 : 0;
    if (name > 96)
        return NULL;
    struct message *m = message_take(s, SIGNAL_SPAWN, sizeof(struct spawn_birth) + name_size + o->args_size);
    if (!m)
        return NULL;
    m->kind = MESSAGE_SIGNAL;
    struct spawn_birth *b = (struct spawn_birth *)(void *)m->payload;
    *b = (struct spawn_birth){
        .class = o->class, .args_size = (uint32_t)o->args_size, .name_size = (uint16_t)name_size};
    if (o->name)
        memcpy(b->bytes, o->name, name + 1);
    if (o->args_size)
        memcpy(b->bytes + name_size, o->args, o->args_size);
    return m;
}

struct actor *actor_birth(struct scheduler *s, const struct actor_class *class, actor_pid parent,
                          struct message *birth)
{
    struct actor *a = slot_take(s);
    if (!a)
        return NULL;
    __atomic_store_n(&a->class, class, __ATOMIC_RELAXED); /* remote senders look at these two */
    if (!state_take(s, a)) {
        slot_give(s, a);
        return NULL;
    }
    a->mail_head = a->mail_tail = NULL;
    atomic_store_explicit(&a->mail_count, 0, memory_order_relaxed);
    __atomic_store_n(&a->mail_capacity,
                     class->mailbox_capacity ? class->mailbox_capacity : ACTOR_MAILBOX_DEFAULT,
                     __ATOMIC_RELAXED);
    a->status = ACTOR_STARTING;
    a->flags = (uint16_t)((class->trap_exits ? ACTOR_TRAPS : 0) | worker_stack_class(class->stack_size)
                                                                      << ACTOR_STACK_SHIFT);
    a->worker = NULL;
    a->held = NULL;
    a->resources = a->watchers = a->links = a->idle = 0;
    a->arena = NULL;
    a->doom = NULL;
    a->stats =
        s->classes_used && s->classes[s->classes_used - 1].class == class ? &s->classes[s->classes_used - 1]
                                                                          : class_stats_of(s, class);
    bump(&a->stats->spawned, 1);
    a->pressure = PRESSURE_NORMAL;
    a->pressure_low = 0;
    a->pressure_span = a->stats->pressure_span;
    if (__builtin_expect(a->stats->class != class, 0)) /* the shared entry of too many classes */
        a->pressure_span = pressure_span(class);
    a->parent = parent;
    a->birth = birth;
    a->waiting = NULL;
    a->handled = 0;
    s->living++;
    COUNT(s, spawned);
    actor_pid pid = pid_make(s->index, actor_slot(s, a), ++a->generation);
    atomic_store_explicit(&a->pid, pid, memory_order_release);
    sim_trace(s, TRACE_BIRTH, pid, parent);
    run_ready(s, a);
    return a;
}

/* Both ends are here: tie them at once. When it fails nothing of the newcomer is left with the spawner. */
static enum error tie_local(struct scheduler *s, struct actor *a, const struct spawn_options *o,
                            uint64_t *ret_link, uint64_t *ret_monitor)
{
    struct actor *me = s->current;
    struct record *mine = NULL;
    *ret_link = *ret_monitor = 0;
    if (o->link) {
        mine = link_add(s, me, actor_pid_of(a), 0, o->tag);
        struct record *its = mine ? link_add(s, a, actor_pid_of(me), record_ref(s, mine), 0) : NULL;
        if (!its) {
            if (mine)
                record_free(s, me, &me->links, mine);
            return ERR_MEMORY;
        }
        mine->tie.peer_ref = record_ref(s, its);
        a->flags |= ACTOR_CHILD;
        *ret_link = record_ref(s, mine);
    }
    if (o->monitor && !(*ret_monitor = actor_monitor(actor_pid_of(a), o->tag))) {
        if (mine)
            record_free(s, me, &me->links, mine);
        return ERR_MEMORY;
    }
    return OK;
}

static enum error spawn_here(struct scheduler *s, const struct spawn_options *o, uint64_t ref,
                             struct actor **ret_actor, uint64_t *ret_link, uint64_t *ret_monitor)
{
    struct message *birth = NULL;
    if (o->args_size || o->name || ref) {
        birth = actor_birth_message(s, o);
        if (!birth)
            return o->name && strlen(o->name) > 96 ? ERR_INVALID : ERR_MEMORY;
        birth->from = actor_pid_of(s->current);
        birth->ref = ref;
        ((struct spawn_birth *)(void *)birth->payload)->awaited = ref != 0;
    }
    struct actor *a = actor_birth(s, o->class, actor_pid_of(s->current), birth);
    if (!a) {
        if (birth)
            message_give(s, birth);
        return ERR_LIMIT;
    }
    *ret_actor = a;
    enum error e = tie_local(s, a, o, ret_link, ret_monitor);
    if (e)
        actor_kill(actor_pid_of(a));
    return e;
}

/* Ask another scheduler. The starter's records are made first, so that no ending can slip by. */
/* The number of the scheduler that is meant; one that doesn't exist is refused by spawn_check. */
static uint32_t place_of(const struct scheduler *s, const struct spawn_options *o)
{
    const struct runtime_options *r = &s->rt->options;
    if (o->scheduler == SPAWN_HERE)
        return s->index;
    if (o->scheduler > 0)
        return (uint32_t)o->scheduler - 1;
    if (o->scheduler < SPAWN_DEDICATED(RUNTIME_SCHEDULERS_MAX - 1))
        return UINT32_MAX;
    return r->dedicated ? r->schedulers + (uint32_t)(-1 - o->scheduler) : r->schedulers - 1;
}

static enum error spawn_there(struct scheduler *s, const struct spawn_options *o, uint64_t ref, bool awaited,
                              uint64_t *ret_link, uint64_t *ret_monitor)
{
    struct actor *me = s->current;
    struct message *m = actor_birth_message(s, o);
    if (!m)
        return o->name && strlen(o->name) > 96 ? ERR_INVALID : ERR_MEMORY;
    struct spawn_birth *b = (struct spawn_birth *)(void *)m->payload;
    struct record *link = o->link ? link_add(s, me, 0, 0, o->tag) : NULL;
    struct record *monitor = o->monitor ? record_new(s, me, &me->resources, RECORD_MONITOR) : NULL;
    if ((o->link && !link) || (o->monitor && !monitor)) {
        if (link)
            record_free(s, me, &me->links, link);
        message_give(s, m);
        return ERR_MEMORY;
    }
    if (monitor) {
        monitor->tie.peer = monitor->tie.peer_ref = 0;
        monitor->tie.tag = o->tag;
    }
    b->link_ref = *ret_link = link ? record_ref(s, link) : 0;
    b->monitor_ref = *ret_monitor = monitor ? record_ref(s, monitor) : 0;
    b->awaited = awaited;
    b->placed = true;
    m->from = actor_pid_of(me);
    m->ref = ref;
    signal_send(s, pid_make(place_of(s, o), 0, 0), m);
    return OK;
}

static bool spawns_here(const struct scheduler *s, const struct spawn_options *o)
{
    return place_of(s, o) == s->index;
}

static enum error spawn_check(const struct scheduler *s, const struct spawn_options *o)
{
    enum error e = actor_options_check(o);
    if (!e && place_of(s, o) >= s->rt->schedulers_count)
        e = ERR_INVALID;
    return e;
}

static void wait_for_start(struct scheduler *s, uint64_t ref, bool awaited)
{
    struct worker *w = worker_expect(s, WAIT_START, ref);
    w->start = (struct start_result){0};
    w->start_awaited = awaited;
}

static void drop_tie(struct scheduler *s, uint64_t ref, uint32_t *list)
{
    struct record *r = record_of(s, ref);
    if (r && r->owner == actor_slot(s, s->current))
        record_free(s, s->current, list, r);
}

enum error actor_spawn(const struct spawn_options *o, actor_pid *ret_pid)
{
    struct scheduler *s = scheduler_enter();
    enum error e = spawn_check(s, o);
    if (e)
        return e;
    uint64_t link, monitor;
    if (spawns_here(s, o)) {
        struct actor *a;
        e = spawn_here(s, o, 0, &a, &link, &monitor);
        if (!e && ret_pid)
            *ret_pid = actor_pid_of(a);
        return e;
    }
    struct worker *w = s->worker;
    uint64_t ref = call_ref(s);
    wait_for_start(s, ref, false);
    e = spawn_there(s, o, ref, false, &link, &monitor);
    if (e)
        return e;
    worker_wait(s, DEADLINE_NONE);
    if (w->start.pid && ret_pid)
        *ret_pid = w->start.pid;
    return w->start.pid ? OK : ERR_LIMIT;
}

/* The start failed: nothing of the newcomer reaches the starter any more. */
static void forget_newcomer(struct scheduler *s, uint64_t link, uint64_t monitor)
{
    drop_tie(s, link, &s->current->links);
    drop_tie(s, monitor, &s->current->resources);
}

static enum error start_result(struct scheduler *s, struct start_result *ret, uint64_t link, uint64_t monitor)
{
    struct worker *w = s->worker;
    enum error e = OK;
    if (w->reply) {
        e = (enum error)((struct reply_started *)(void *)w->reply->payload)->error;
        message_give(s, w->reply);
        w->reply = NULL;
    } else if (!w->start.pid) {
        e = ERR_LIMIT;
    }
    w->start.ref = monitor;
    if (e) {
        forget_newcomer(s, link, monitor);
        w->start.ref = 0;
        if (e == ERR_ALREADY_REGISTERED)
            w->start.pid = w->start.info;
        else
            w->start.pid = 0;
    }
    *ret = w->start;
    w->start = (struct start_result){0};
    return e;
}

enum error actor_start(const struct spawn_options *o, struct start_result *ret, uint64_t deadline)
{
    struct scheduler *s = scheduler_enter();
    *ret = (struct start_result){0};
    enum error e = spawn_check(s, o);
    if (e)
        return e;
    struct worker *w = s->worker;
    uint64_t ref = call_ref(s), link = 0, monitor = 0;
    wait_for_start(s, ref, true);
    if (spawns_here(s, o)) {
        struct actor *a;
        e = spawn_here(s, o, ref, &a, &link, &monitor);
        if (!e)
            w->start.pid = actor_pid_of(a);
    } else {
        e = spawn_there(s, o, ref, true, &link, &monitor);
    }
    if (e)
        return e;
    if (worker_wait(s, deadline))
        return start_result(s, ret, link, monitor);
    struct record *r = record_of(s, link);
    actor_pid newcomer = w->start.pid ? w->start.pid : r ? r->tie.peer : 0;
    forget_newcomer(s, link, monitor);
    if (newcomer) /* not placed yet: actor_spawned kills it when it hears of it */
        actor_kill(newcomer);
    return ERR_TIMEOUT;
}

void actor_start_info(uint64_t info)
{
    struct scheduler *s = scheduler_enter();
    if (s->current->birth)
        ((struct spawn_birth *)(void *)s->current->birth->payload)->info = info;
}

/* ---- the other scheduler's side ---- */

void actor_spawn_remote(struct scheduler *s, struct message *m)
{
    struct spawn_birth *b = (struct spawn_birth *)(void *)m->payload;
    actor_pid starter = m->from;
    struct signal_spawned told = {.link_ref = b->link_ref, .monitor_ref = b->monitor_ref};
    uint64_t ref = m->ref;
    struct actor *a = actor_birth(s, b->class, starter, m);
    if (a) {
        told.pid = actor_pid_of(a);
        if (b->link_ref) {
            struct record *r = link_add(s, a, starter, b->link_ref, 0);
            told.peer_link_ref = r ? record_ref(s, r) : 0;
            a->flags |= ACTOR_CHILD;
        }
        if (b->monitor_ref) {
            struct record *r = record_new(s, a, &a->watchers, RECORD_WATCHER);
            if (r) {
                r->tie.peer = starter;
                r->tie.peer_ref = b->monitor_ref;
                told.peer_watcher_ref = record_ref(s, r);
            }
        }
        if ((b->link_ref && !told.peer_link_ref) ||
            (b->monitor_ref && !told.peer_watcher_ref)) { /* no records left */
            struct reason killed = reason_of(REASON_KILLED);
            signal_exit_send(s, told.pid, starter, &killed, false, 0);
            told.pid = 0;
        }
    } else {
        message_give(s, m);
    }
    if (!starter)
        return;
    struct message *answer = message_take(s, SIGNAL_SPAWNED, sizeof told);
    if (!answer)
        fault_fatal("message memory used up", "a spawn could not be answered; raise message_bytes_max");
    answer->kind = MESSAGE_SIGNAL;
    answer->from = told.pid;
    answer->ref = ref;
    *(struct signal_spawned *)(void *)answer->payload = told;
    signal_send(s, starter, answer);
}

static void kill_orphan(struct scheduler *s, actor_pid pid, actor_pid starter, uint64_t link)
{
    struct reason noproc = reason_of(REASON_NOPROC), killed = reason_of(REASON_KILLED);
    if (link)
        signal_exit_send(s, pid, starter, &noproc, true, link);
    else
        signal_exit_send(s, pid, starter, &killed, false, 0);
}

void actor_spawned(struct scheduler *s, struct message *m)
{
    struct signal_spawned *told = (struct signal_spawned *)(void *)m->payload;
    struct actor *a = actor_of(s, m->to);
    struct record *link = a ? record_of(s, told->link_ref) : NULL;
    struct record *monitor = a ? record_of(s, told->monitor_ref) : NULL;
    struct worker *w = a ? worker_of(s, a) : NULL;
    bool expected = w && w->wait == WAIT_START && w->wait_ref == m->ref;
    if (!a) {
        if (told->pid && told->link_ref)
            kill_orphan(s, told->pid, m->to, told->peer_link_ref);
        if (told->pid && told->monitor_ref) /* nobody watches any more */
            signal_demonitor(s, told->pid, m->to, told->monitor_ref, told->peer_watcher_ref);
    } else if (!expected) {
        if (told->pid) /* the starter gave up */
            kill_orphan(s, told->pid, m->to, 0);
    } else {
        if (link) {
            link->tie.peer = told->pid;
            link->tie.peer_ref = told->peer_link_ref;
            if (!told->pid)
                record_free(s, a, &a->links, link);
        }
        if (monitor) {
            monitor->tie.peer = told->pid;
            monitor->tie.peer_ref = told->peer_watcher_ref;
            if (!told->pid)
                record_free(s, a, &a->resources, monitor);
        }
        w->start.pid = told->pid;
        if (!told->pid || !w->start_awaited)
            worker_wake(s, a);
    }
    message_give(s, m);
}

/* Init has come to an end: tell who waits, and forget what init was given. */
void actor_born(struct scheduler *s, struct actor *a, enum error e, const struct reason *why, uint64_t info)
{
    struct message *birth = a->birth;
    a->birth = NULL;
    if (!birth)
        return;
    struct spawn_birth *b = (struct spawn_birth *)(void *)birth->payload;
    if (b->awaited) {
        struct message *m = message_take(s, REPLY_STARTED, sizeof(struct reply_started));
        if (!m)
            fault_fatal("message memory used up", "a start could not be answered; raise message_bytes_max");
        m->kind = MESSAGE_REPLY;
        m->reasoned = 1;
        m->ref = birth->ref;
        m->to = birth->from;
        *(struct reply_started *)(void *)m->payload = (struct reply_started){
            .why = why ? reason_copy(why) : reason_of(REASON_NORMAL),
            .pid = actor_pid_of(a),
            .info = info,
            .error = (uint32_t)e,
        };
        if (e) { /* the answer says it all: no EXIT and no DOWN besides */
            for (struct record *r = record_at(s, a->links), *next; r; r = next) {
                next = record_at(s, r->next);
                if (r->tie.peer == birth->from)
                    record_free(s, a, &a->links, r);
            }
            for (struct record *r = record_at(s, a->watchers), *next; r; r = next) {
                next = record_at(s, r->next);
                /* Promises are among them, and are still to be answered. */
                if (r->kind == RECORD_WATCHER && r->tie.peer == birth->from)
                    record_free(s, a, &a->watchers, r);
            }
        }
        if (scheduler_local(s, m->to))
            reply_deliver(s, m);
        else
            scheduler_post(s, m->to, m);
    }
    message_give(s, birth);
}

/* ---- death ---- */

static void report(struct scheduler *s, struct actor *a, const struct reason *why)
{
    bool trap = why->kind == REASON_CRASH || why->kind == REASON_OVERRUN || why->kind == REASON_QUOTA;
    if (!reason_abnormal(why) ||
        (!(a->flags & ACTOR_BORN) && !trap)) /* a refused start is its starter's to tell */
        return;
    char text[REASON_TEXT_MAX];
    actor_pid pid = actor_pid_of(a);
    if (trap) {
        COUNT(s, crashed);
        bump(&a->stats->crashed, 1);
    }
    reason_format(why, text, sizeof text);
    if (why->kind == REASON_CRASH)
        TELEMETRY(ACTOR_CRASH, 1, DIM(CLASS, a->class->name), DIM_HEX(PID, pid), DIM_INT(SIGNAL, why->signal),
                  DIM_HEX(ADDRESS, why->address), DIM(REASON, text));
    TELEMETRY(ACTOR_EXIT, 1, DIM(CLASS, a->class->name), DIM(REASON, reason_name(why->kind)),
              DIM_HEX(PID, pid));
    /* One crash report an abnormal ending, except for kills, which somebody asked for. */
    if (why->kind != REASON_KILLED && why->kind != REASON_NOPROC)
        runtime_crash_report(s, a, text);
}

void actor_bury(struct scheduler *s, struct actor *a, struct reason why)
{
    actor_pid pid = actor_pid_of(a);
    ASSERT(pid && !(a->flags & ACTOR_QUEUED));
    sim_trace(s, TRACE_DEATH, pid, why.kind);
    if (__builtin_expect(why.kind != REASON_NORMAL, 0))
        report(s, a, &why);
    a->flags |= ACTOR_DYING;
    if (a->resources)
        resource_bury(s, a);
    arena_drop(s, a);
    if (a->state != a->small_state)
        pool_give(&s->messages[state_block(a->class->state_size)], a->state);
    bump(&a->stats->ended, 1);
    bump(&a->stats->handled, a->handled);
    s->living--;
    COUNT(s, ended);
    atomic_store_explicit(&a->pid, 0,
                          memory_order_release); /* everything of it is released: now others may know */
    if (a->mail_head || a->waiting)
        mailbox_bury(s, a, pid, &why);
    if (a->held)
        message_release_held(s, a, pid, &why);
    if (a->birth) {
        struct spawn_birth *b = (struct spawn_birth *)(void *)a->birth->payload;
        actor_born(s, a, b->error ? (enum error)b->error : ERR_INIT, &why, b->error ? b->info : 0);
    }
    if (a->links || a->watchers)
        link_bury(s, a, pid, &why);
    if (a->doom)
        message_give(s, a->doom);
    bool root = a->flags & ACTOR_ROOT;
    a->flags = 0;
    slot_give(s, a);
    if (root)
        runtime_root_ended(s->rt, s, &why);
    reason_drop(&why);
}

static _Noreturn void end_now(struct reason why, enum landing how)
{
    struct scheduler *s = scheduler_enter();
    reason_drop(&s->worker->ending);
    s->worker->ending = why;
    worker_land(s, how);
}

void actor_exit(struct reason why)
{
    end_now(why, LAND_EXIT);
}

void actor_refuse(struct reason why)
{
    end_now(why, LAND_REFUSE);
}

void actor_fail(int code, const char *text)
{
    struct reason why = reason_error(code);
    if (text)
        why = reason_with_detail(why, text, strlen(text));
    end_now(why, LAND_EXIT);
}

enum error actor_stop(actor_pid to, struct reason why, struct reason *ret_why, uint64_t deadline)
{
    struct scheduler *s = scheduler_enter();
    if (to == actor_pid_of(s->current)) {
        reason_drop(&why);
        return ERR_CALLING_SELF;
    }
    struct message *m = message_take(s, MESSAGE_STOP, sizeof(struct reason));
    if (!m) {
        reason_drop(&why);
        return ERR_MEMORY;
    }
    m->reasoned = 1;
    *(struct reason *)(void *)m->payload = why;
    uint64_t ref = actor_monitor(to, 0);
    if (!ref) {
        message_give(s, m);
        return ERR_MEMORY;
    }
    m->from = actor_pid_of(s->current);
    scheduler_transmit(s, to, m);
    struct message *down = actor_receive_down(s, ref, deadline);
    if (!down) {
        actor_demonitor(ref);
        return ERR_TIMEOUT;
    }
    struct message_down *d = (struct message_down *)(void *)down->payload;
    enum error e = d->gone ? ERR_NOPROC : OK;
    if (ret_why && !e)
        *ret_why = reason_copy(&d->reason);
    message_give(s, down);
    return e;
}

/* ---- looking ---- */

int actor_scheduler(void)
{
    ASSERT(scheduler_current);
    return (int)scheduler_current->index;
}

actor_pid actor_self(void)
{
    return actor_pid_of(scheduler_enter()->current);
}

actor_pid actor_parent(void)
{
    return scheduler_enter()->current->parent;
}

int actor_scheduler_of(actor_pid pid)
{
    return (int)pid_scheduler(pid);
}

bool actor_alive(actor_pid pid)
{
    struct scheduler *s = scheduler_enter();
    if (!pid || pid_scheduler(pid) >= s->rt->schedulers_count)
        return false;
    const struct scheduler *there = s->rt->schedulers[pid_scheduler(pid)];
    return pid_slot(pid) < there->slots_max &&
           atomic_load_explicit(&there->actors[pid_slot(pid)].pid, memory_order_acquire) == pid;
}

static const char *status_name(uint8_t status)
{
    static const char *const names[] = {
#define X(name) [ACTOR_##name] = #name,
        ACTOR_STATUSES(X)
#undef X
    };
    return names[status];
}

static void info_fill(struct scheduler *s, struct actor *a, struct actor_info *i)
{
    memset(i, 0, sizeof *i);
    i->pid = actor_pid_of(a);
    i->parent = a->parent;
    i->class_name = a->class->name;
    bool held = (a->flags & ACTOR_HELD_BACK) && (a->status == ACTOR_IDLE || a->status == ACTOR_READY);
    i->status = status_name(held ? ACTOR_SUSPENDED : a->status); /* it notices when it would run next */
    i->waiting_for = a->worker ? wait_name(a->worker->wait) : "";
    i->mailbox_depth = atomic_load_explicit(&a->mail_count, memory_order_relaxed);
    i->mailbox_capacity = a->mail_capacity;
    i->handled = a->handled;
    i->arena_bytes = arena_bytes(a);
    i->stack_high_water = a->stats->stack_high_water;
    for (struct record *r = record_at(s, a->links); r; r = record_at(s, r->next))
        i->links++;
    for (struct record *r = record_at(s, a->watchers); r; r = record_at(s, r->next))
        i->watchers++;
    for (struct record *r = record_at(s, a->resources); r; r = record_at(s, r->next)) {
        i->resources++;
        i->monitors += r->kind == RECORD_MONITOR;
        if (r->kind ==
            RECORD_NAME) { /* the list is newest first: the last one seen is the first registered */
            size_t n = blob_size(r->name.blob);
            n = n < sizeof i->name ? n : sizeof i->name - 1;
            memcpy(i->name, blob_bytes(r->name.blob), n);
            i->name[n] = 0;
        }
    }
}

void actor_inspected(struct scheduler *s, struct actor *a, struct message *m)
{
    struct message *reply = message_take(s, REPLY_INFO, sizeof(struct actor_info));
    if (!reply)
        return;
    info_fill(s, a, (struct actor_info *)(void *)reply->payload);
    reply->kind = MESSAGE_REPLY;
    reply->ref = m->ref;
    reply->to = m->from;
    if (scheduler_local(s, reply->to))
        reply_deliver(s, reply);
    else
        scheduler_post(s, reply->to, reply);
}

enum error actor_inspect(actor_pid pid, struct actor_info *ret_info, uint64_t deadline)
{
    struct scheduler *s = scheduler_enter();
    if (!pid || pid_scheduler(pid) >= s->rt->schedulers_count)
        return ERR_NOPROC;
    if (scheduler_local(s, pid)) {
        struct actor *a = actor_of(s, pid);
        if (!a)
            return ERR_NOPROC;
        info_fill(s, a, ret_info);
        return OK;
    }
    struct worker *w = s->worker;
    struct message *m = message_take(s, SIGNAL_INSPECT, 0);
    if (!m)
        return ERR_MEMORY;
    m->kind = MESSAGE_SIGNAL;
    m->from = actor_pid_of(s->current);
    m->ref = call_ref(s);
    worker_expect(s, WAIT_REPLY, m->ref);
    signal_send(s, pid, m);
    if (!worker_wait(s, deadline))
        return ERR_TIMEOUT;
    struct message *reply = w->reply;
    w->reply = NULL;
    enum error e = reply->type == REPLY_INFO ? OK : ERR_NOPROC;
    if (!e)
        memcpy(ret_info, reply->payload, sizeof *ret_info);
    message_give(s, reply);
    return e;
}

size_t runtime_actors(uint32_t scheduler, uint32_t *cursor, actor_pid *pids, size_t count)
{
    struct scheduler *s = scheduler_enter();
    if (scheduler >= s->rt->schedulers_count) {
        *cursor = 0;
        return 0;
    }
    const struct scheduler *there = s->rt->schedulers[scheduler];
    uint32_t end = __atomic_load_n(&there->slots_used, __ATOMIC_RELAXED), i = *cursor ? *cursor : 1;
    size_t n = 0;
    for (; i < end && n < count; i++) {
        actor_pid pid = atomic_load_explicit(&there->actors[i].pid, memory_order_acquire);
        if (pid)
            pids[n++] = pid;
    }
    *cursor = i < end ? i : 0;
    return n;
}
