/* Links, monitors and exit signals: what actors, and so schedulers, tell each other about endings.
 *
 * Both sides of a tie have a record. Each knows the other's reference once it can, so that an ending finds its record in
 * one step however many ties there are. A signal for a record that is gone was overtaken by unlink or demonitor and is
 * dropped: that is what makes DOWN and EXIT exactly-once.
 */
#include <string.h>
#include "runtime/blob.h"
#include "runtime/scheduler.h"

/* Signals must not fail for want of memory: the pools are sized so that running out is the operator's misconfiguration,
 * and going on without a signal would break what everybody relies on. */
static struct message *signal_new(struct scheduler *s, uint32_t type, size_t size)
{
    struct message *m = message_take(s, type, size);
    if (!m)
        fault_fatal("message memory used up", "a signal could not be sent; raise message_bytes_max");
    m->kind = MESSAGE_SIGNAL;
    return m;
}

void signal_send(struct scheduler *s, actor_pid to, struct message *m)
{
    m->to = to;
    if (scheduler_local(s, to))
        signal_handle(s, m);
    else
        scheduler_post(s, to, m);
}

/* ---- answers that the runtime gives ---- */

void signal_reply_error(struct scheduler *s, actor_pid to, uint64_t ref, enum error e)
{
    struct message *m = signal_new(s, REPLY_ERROR, sizeof(uint32_t));
    m->kind = MESSAGE_REPLY;
    m->ref = ref;
    memcpy(m->payload, &(uint32_t){(uint32_t)e}, sizeof(uint32_t));
    m->to = to;
    if (scheduler_local(s, to))
        reply_deliver(s, m);
    else
        scheduler_post(s, to, m);
}

void signal_reply_down(struct scheduler *s, actor_pid to, uint64_t ref, actor_pid who,
                       const struct reason *why)
{
    struct message *m = signal_new(s, MESSAGE_DOWN, sizeof(struct message_down));
    m->kind = MESSAGE_REPLY;
    m->ref = ref;
    m->reasoned = 1;
    *(struct message_down *)(void *)m->payload =
        (struct message_down){.reason = reason_copy(why), .pid = who, .ref = ref};
    m->to = to;
    if (scheduler_local(s, to))
        reply_deliver(s, m);
    else
        scheduler_post(s, to, m);
}

static struct record *tie_find(struct scheduler *s, uint32_t list, actor_pid peer, uint64_t peer_ref)
{
    for (struct record *r = record_at(s, list); r; r = record_at(s, r->next))
        if (r->tie.peer == peer && (!peer_ref || r->tie.peer_ref == peer_ref))
            return r;
    return NULL;
}

/* ---- exit signals ---- */

static void exit_send(struct scheduler *s, actor_pid to, actor_pid from, const struct reason *why,
                      struct signal_exit x)
{
    struct message *m = signal_new(s, SIGNAL_EXIT, sizeof(struct message_exit)); /* see exit_message */
    _Static_assert(sizeof(struct signal_exit) <= sizeof(struct message_exit), "one block serves for both");
    m->from = from;
    m->reasoned = 1;
    x.reason = reason_copy(why);
    *(struct signal_exit *)(void *)m->payload = x;
    signal_send(s, to, m);
}

void signal_exit_send(struct scheduler *s, actor_pid to, actor_pid from, const struct reason *why,
                      bool linked, uint64_t link)
{
    exit_send(s, to, from, why, (struct signal_exit){.link = link, .linked = linked});
}

void actor_doom(struct scheduler *s, struct actor *a, struct message *exit)
{
    if (a->doom) { /* the first one counts */
        message_give(s, exit);
        return;
    }
    a->doom = exit;
    a->flags |= ACTOR_DOOMED;
    if (a->status != ACTOR_READY &&
        a->status != ACTOR_RUNNING) /* also a newcomer that was suspended before its init */
        run_ready_first(s, a);
}

/* The signal's own block becomes the message. */
static void exit_message(struct scheduler *s, struct actor *a, struct message *m, uint64_t tag)
{
    const struct signal_exit x = *(struct signal_exit *)(void *)m->payload;
    m->type = MESSAGE_EXIT;
    m->kind = MESSAGE_CAST;
    *(struct message_exit *)(void *)m->payload =
        (struct message_exit){.reason = x.reason, .pid = m->from, .tag = tag, .at_start = x.at_start};
    mailbox_append(s, a, m);
}

static void resume_arrives(struct scheduler *s, struct actor *a)
{
    a->flags &= (uint16_t)~ACTOR_HELD_BACK;
    if (a->status == ACTOR_SUSPENDED || (a->status == ACTOR_STARTING && !(a->flags & ACTOR_QUEUED)))
        run_ready(s, a);
}

/* As a message. The parent's is an ending: who is suspended can't come to it, and a supervisor may wait for one that it
 * supervises without limit, so that goes on. */
static void exit_trapped(struct scheduler *s, struct actor *a, struct message *m, uint64_t tag)
{
    bool ends = (a->flags & ACTOR_CHILD) && m->from == a->parent;
    exit_message(s, a, m, tag);
    if (ends && a->flags & ACTOR_HELD_BACK)
        resume_arrives(s, a);
}

static void exit_arrives(struct scheduler *s, struct actor *a, struct message *m)
{
    struct signal_exit *x = (struct signal_exit *)(void *)m->payload;
    uint64_t tag = 0;
    if (x->linked) {
        struct record *r = x->link ? record_of(s, x->link) : tie_find(s, a->links, m->from, 0);
        if (!r || r->kind != RECORD_LINK || r->owner != actor_slot(s, a) || r->tie.peer != m->from) {
            message_give(s, m); /* unlinked meanwhile */
            return;
        }
        tag = r->tie.tag;
        record_free(s, a, &a->links, r);
    }
    bool kill = !x->linked && x->reason.kind == REASON_KILLED;
    if (kill) {
        actor_doom(s, a, m);
        return;
    }
    if (a->flags & ACTOR_TRAPS) {
        exit_trapped(s, a, m, tag);
    } else if (x->reason.kind == REASON_NORMAL && (x->linked || m->from != actor_pid_of(a))) {
        message_give(s, m);
    } else {
        actor_doom(s, a, m);
    }
}

void actor_exit_signal(actor_pid to, struct reason why)
{
    struct scheduler *s = scheduler_enter();
    signal_exit_send(s, to, actor_pid_of(s->current), &why, false, 0);
    reason_drop(&why);
    worker_check_doom(s);
}

void actor_kill(actor_pid to)
{
    actor_exit_signal(to, reason_of(REASON_KILLED));
}

enum error actor_crash(actor_pid to, void (*trap)(void))
{
    struct scheduler *s = scheduler_enter();
    struct reason killed = reason_of(REASON_KILLED);
    ASSERT(fault_in_actor_text((uintptr_t)trap)); /* a trap in the runtime would end the process */
    if (!s->rt->contained)
        return ERR_INVALID;
    exit_send(s, to, actor_pid_of(s->current), &killed, (struct signal_exit){.trap = trap});
    worker_check_doom(s);
    return OK;
}

void actor_trap_exits(bool on)
{
    struct scheduler *s = scheduler_enter();
    if (on)
        s->current->flags |= ACTOR_TRAPS;
    else
        s->current->flags &= (uint16_t)~ACTOR_TRAPS;
}

/* ---- links ---- */

#define LINK_ASKED 1u /* record.type: this side has sent a SIGNAL_LINK for it */

struct record *link_add(struct scheduler *s, struct actor *a, actor_pid peer, uint64_t peer_ref, uint64_t tag)
{
    struct record *r = record_new(s, a, &a->links, RECORD_LINK);
    if (!r)
        return NULL;
    r->tie.peer = peer;
    r->tie.peer_ref = peer_ref;
    r->tie.tag = tag;
    r->tie.name = NULL;
    return r;
}

static void tie_send(struct scheduler *s, uint32_t type, actor_pid to, uint64_t ref, uint64_t peer_ref)
{
    struct message *m = signal_new(s, type, sizeof(struct signal_tie));
    m->from = actor_pid_of(s->current);
    *(struct signal_tie *)(void *)m->payload = (struct signal_tie){.ref = ref, .peer_ref = peer_ref};
    signal_send(s, to, m);
}

/* Tell the side that tied itself which record it has here, so that untying finds it in one step. */
static void tied_send(struct scheduler *s, const struct message *from, const struct record *r)
{
    uint64_t theirs = ((const struct signal_tie *)(const void *)from->payload)->ref;
    if (scheduler_local(s, from->from)) {
        struct record *other = record_of(s, theirs);
        if (other)
            other->tie.peer_ref = record_ref(s, r);
        return;
    }
    struct message *m = signal_new(s, SIGNAL_TIED, sizeof(struct signal_tie));
    m->from = from->to;
    *(struct signal_tie *)(void *)m->payload =
        (struct signal_tie){.ref = record_ref(s, r), .peer_ref = theirs};
    signal_send(s, from->from, m);
}

static void tied_arrives(struct scheduler *s, struct actor *a, const struct message *m)
{
    const struct signal_tie *t = (const struct signal_tie *)(const void *)m->payload;
    struct record *r = record_of(s, t->peer_ref);
    if (r && (r->kind == RECORD_LINK || r->kind == RECORD_MONITOR) && r->owner == actor_slot(s, a) &&
        r->tie.peer == m->from)
        r->tie.peer_ref = t->ref;
}

enum error actor_link(actor_pid to)
{
    struct scheduler *s = scheduler_enter();
    struct actor *a = s->current;
    if (to == actor_pid_of(a) || tie_find(s, a->links, to, 0))
        return OK;
    struct record *r = link_add(s, a, to, 0, 0);
    if (!r)
        return ERR_MEMORY;
    r->type = LINK_ASKED;
    tie_send(s, SIGNAL_LINK, to, record_ref(s, r), 0);
    worker_check_doom(s);
    return OK;
}

/* A link arrives at the other end: to the dead it is answered with noproc. */
static void link_arrives(struct scheduler *s, struct message *m)
{
    struct signal_tie *t = (struct signal_tie *)(void *)m->payload;
    struct actor *a = actor_of(s, m->to);
    struct reason noproc = reason_of(REASON_NOPROC);
    if (!a) {
        signal_exit_send(s, m->from, m->to, &noproc, true, t->ref);
        return;
    }
    struct record *r = tie_find(s, a->links, m->from, 0);
    if (r) {
        r->tie.peer_ref = t->ref; /* both linked each other at once: one link */
    } else if (!(r = link_add(s, a, m->from, t->ref, 0))) {
        struct reason refused = reason_error((int)ERR_MEMORY); /* it lives, but can't be tied */
        signal_exit_send(s, m->from, m->to, &refused, true, t->ref);
        return;
    }
    tied_send(s, m, r);
}

void actor_unlink(actor_pid to)
{
    struct scheduler *s = scheduler_enter();
    struct actor *a = s->current;
    struct record *r = tie_find(s, a->links, to, 0);
    if (r) {
        uint64_t ref = record_ref(s, r), peer_ref = r->tie.peer_ref;
        record_free(s, a, &a->links, r);
        tie_send(s, SIGNAL_UNLINK, to, ref, peer_ref);
    }
    /* An EXIT that is queued already goes, too. */
    struct message *previous = NULL;
    for (struct message *m = a->mail_head; m;) {
        struct message_exit *x = (struct message_exit *)(void *)m->payload;
        struct message *next = m->next;
        if (m->type == MESSAGE_EXIT && x->pid == to)
            message_give(s, mailbox_unlink(s, a, previous));
        else
            previous = m;
        m = next;
    }
}

static void unlink_arrives(struct scheduler *s, struct actor *a, struct message *m)
{
    struct signal_tie *t = (struct signal_tie *)(void *)m->payload;
    struct record *r = record_of(s, t->peer_ref);
    if (!r || r->kind != RECORD_LINK || r->owner != actor_slot(s, a) || r->tie.peer != m->from)
        r = tie_find(s, a->links, m->from, t->ref);
    if (!r)
        return;
    /* Both had asked, and the other side took its own back before it knew of ours, which is still on its way and will link
     * it again: without this one half of the link would be left. */
    if (r->type == LINK_ASKED && record_ref(s, r) != t->peer_ref)
        r->tie.peer_ref = 0;
    else
        record_free(s, a, &a->links, r);
}

/* ---- monitors ---- */

static void down_message(struct scheduler *s, struct actor *a, struct message *m)
{
    if (a->status == ACTOR_WAITING && a->worker->wait == WAIT_DOWN && a->worker->wait_ref == m->ref) {
        a->worker->reply = m;
        worker_wake(s, a);
    } else {
        mailbox_append(s, a, m);
    }
}

static void down_send(struct scheduler *s, actor_pid to, actor_pid who, uint64_t ref,
                      const struct reason *why, bool gone)
{
    struct message *m = signal_new(s, SIGNAL_DOWN, sizeof(struct message_down));
    m->from = who;
    m->ref = ref;
    m->reasoned = 1;
    *(struct message_down *)(void *)m->payload =
        (struct message_down){.reason = reason_copy(why), .pid = who, .ref = ref, .gone = gone};
    signal_send(s, to, m);
}

static void down_arrives(struct scheduler *s, struct actor *a, struct message *m)
{
    struct record *r = record_of(s, m->ref);
    if (!r || r->kind != RECORD_MONITOR || r->owner != actor_slot(s, a)) {
        message_give(s, m); /* demonitored meanwhile */
        return;
    }
    struct message_down *d = (struct message_down *)(void *)m->payload;
    d->tag = r->tie.tag;
    record_free(s, a, &a->resources, r);
    m->type = MESSAGE_DOWN;
    m->kind = MESSAGE_CAST;
    down_message(s, a, m);
}

uint64_t actor_monitor(actor_pid to, uint64_t tag)
{
    struct scheduler *s = scheduler_enter();
    struct actor *a = s->current;
    struct record *r = record_new(s, a, &a->resources, RECORD_MONITOR);
    if (!r)
        return 0;
    r->tie.peer = to;
    r->tie.peer_ref = 0;
    r->tie.tag = tag;
    r->tie.name = NULL;
    uint64_t ref = record_ref(s, r);
    if (to != actor_pid_of(a)) /* nobody lives to see his own end */
        tie_send(s, SIGNAL_MONITOR, to, ref, 0);
    return ref;
}

uint64_t actor_monitor_name(const char *name, uint64_t tag)
{
    return actor_monitor(actor_whereis(name), tag);
}

static void monitor_arrives(struct scheduler *s, struct message *m)
{
    struct signal_tie *t = (struct signal_tie *)(void *)m->payload;
    struct actor *a = actor_of(s, m->to);
    struct record *r = a ? record_new(s, a, &a->watchers, RECORD_WATCHER) : NULL;
    if (!r) { /* it has ended; or it lives, but can't be watched for want of records */
        struct reason why = a ? reason_error((int)ERR_MEMORY) : reason_of(REASON_NOPROC);
        down_send(s, m->from, m->to, t->ref, &why, !a);
        return;
    }
    r->tie.peer = m->from;
    r->tie.peer_ref = t->ref;
    r->tie.tag = 0;
    r->tie.name = NULL;
    tied_send(s, m, r);
}

void signal_demonitor(struct scheduler *s, actor_pid to, actor_pid from, uint64_t ref, uint64_t peer_ref)
{
    struct message *m = signal_new(s, SIGNAL_DEMONITOR, sizeof(struct signal_tie));
    m->from = from;
    *(struct signal_tie *)(void *)m->payload = (struct signal_tie){.ref = ref, .peer_ref = peer_ref};
    signal_send(s, to, m);
}

static void monitor_withdraw(struct scheduler *s, struct actor *a, struct record *r)
{
    if (r->tie.peer && r->tie.peer != actor_pid_of(a))
        signal_demonitor(s, r->tie.peer, actor_pid_of(a), record_ref(s, r), r->tie.peer_ref);
}

void actor_demonitor(uint64_t ref)
{
    struct scheduler *s = scheduler_enter();
    struct actor *a = s->current;
    struct record *r = record_of(s, ref);
    if (r && r->kind == RECORD_MONITOR && r->owner == actor_slot(s, a)) {
        monitor_withdraw(s, a, r);
        record_free(s, a, &a->resources, r);
        return;
    }
    struct message *previous = NULL;
    for (struct message *m = a->mail_head; m; previous = m, m = m->next)
        if (m->type == MESSAGE_DOWN && m->ref == ref) {
            message_give(s, mailbox_unlink(s, a, previous));
            return;
        }
}

static void demonitor_arrives(struct scheduler *s, struct actor *a, struct message *m)
{
    struct signal_tie *t = (struct signal_tie *)(void *)m->payload;
    struct record *r = record_of(s, t->peer_ref);
    if (!r || r->kind != RECORD_WATCHER || r->owner != actor_slot(s, a) || r->tie.peer_ref != t->ref)
        r = tie_find(s, a->watchers, m->from, t->ref);
    if (r)
        record_free(s, a, &a->watchers, r);
}

/* The actor's own monitors go with its resources (see resource.c); here is what others learn of its end. */
void link_bury(struct scheduler *s, struct actor *a, actor_pid pid, const struct reason *why)
{
    while (a->links) {
        struct record *r = record_at(s, a->links);
        actor_pid peer = r->tie.peer;
        uint64_t peer_ref = r->tie.peer_ref;
        record_free(s, a, &a->links, r);
        if (!peer)
            continue; /* a remote spawn that hasn't answered: actor_spawned deals with it */
        exit_send(s, peer, pid, why,
                  (struct signal_exit){.link = peer_ref, .linked = true, .at_start = a->handled == 0});
    }
    while (a->watchers) {
        struct record *r = record_at(s, a->watchers);
        if (r->kind == RECORD_KEPT) {
            message_let_go(s, pid, r->kept.message, why);
            record_free(s, a, &a->watchers, r);
            continue;
        }
        if (r->kind == RECORD_PROMISE) {
            promise_bury(s, pid, r, why);
            continue;
        }
        actor_pid peer = r->tie.peer;
        uint64_t ref = r->tie.peer_ref;
        record_free(s, a, &a->watchers, r);
        down_send(s, peer, pid, ref, why, false);
    }
}

void monitor_bury(struct scheduler *s, struct actor *a, struct record *r)
{
    monitor_withdraw(s, a, r);
    record_free(s, a, &a->resources, r);
}

/* ---- suspension ---- */

void actor_suspend(actor_pid pid)
{
    struct scheduler *s = scheduler_enter();
    signal_send(s, pid, signal_new(s, SIGNAL_SUSPEND, 0));
}

void actor_resume(actor_pid pid)
{
    struct scheduler *s = scheduler_enter();
    signal_send(s, pid, signal_new(s, SIGNAL_RESUME, 0));
}

/* ---- arrival ---- */

static void for_the_dead(struct scheduler *s, struct message *m)
{
    if (m->type == SIGNAL_INSPECT || m->type == SIGNAL_REGISTER || m->type <= MESSAGE_USER_MAX)
        signal_reply_error(s, m->from, m->ref, ERR_NOPROC);
    message_give(s, m);
}

void signal_handle(struct scheduler *s, struct message *m)
{
    sim_trace(s, TRACE_SIGNAL, m->to, m->type);
    switch (m->type) { /* those that mean something without a living receiver */
    case SIGNAL_LINK:
        link_arrives(s, m);
        message_give(s, m);
        return;
    case SIGNAL_MONITOR:
        monitor_arrives(s, m);
        message_give(s, m);
        return;
    case SIGNAL_SPAWN:
        actor_spawn_remote(s, m);
        return;
    case SIGNAL_SPAWNED:
        actor_spawned(s, m);
        return;
    default:
        break;
    }
    struct actor *a = actor_of(s, m->to);
    if (!a) {
        for_the_dead(s, m);
        return;
    }
    switch (m->type) {
    case SIGNAL_EXIT:
        exit_arrives(s, a, m);
        return;
    case SIGNAL_DOWN:
        down_arrives(s, a, m);
        return;
    case SIGNAL_UNLINK:
        unlink_arrives(s, a, m);
        break;
    case SIGNAL_DEMONITOR:
        demonitor_arrives(s, a, m);
        break;
    case SIGNAL_TIED:
        tied_arrives(s, a, m);
        break;
    case SIGNAL_SUSPEND:
        a->flags |= ACTOR_HELD_BACK;
        break;
    case SIGNAL_RESUME:
        resume_arrives(s, a);
        break;
    case SIGNAL_REGISTER: {
        actor_pid holder;
        signal_reply_error(s, m->from, m->ref, resource_name(s, a, (char *)m->payload, &holder));
        break;
    }
    case SIGNAL_INSPECT:
        actor_inspected(s, a, m);
        break;
    case SIGNAL_WITHDRAW:
        mailbox_withdraw(s, a, m->ref);
        break;
    default: /* an ordinary message whose sender waits until it is accepted */
        ASSERT(m->type <= MESSAGE_USER_MAX);
        mailbox_admit(s, a, m);
        return;
    }
    message_give(s, m);
}
