/* Mailboxes: one bounded queue an actor, with a declared policy for when it is full. */
#include <stdio.h>
#include "runtime/pressure.h"
#include "runtime/scheduler.h"
#include "runtime/telemetry.h"

/* The depth has left its level's bounds: one transition, one event. */
void mailbox_pressure(struct scheduler *s, struct actor *a)
{
    struct pressure p = {.low = a->pressure_low, .span = a->pressure_span, .level = a->pressure};
    char partition[24];
    snprintf(partition, sizeof partition, "0x%llx",
             (unsigned long long)pid_make(s->index, actor_slot(s, a), a->generation));
    pressure_cross(&p, mailbox_depth(a), a->mail_capacity, a->class->name, partition);
    a->pressure_low = p.low;
    a->pressure_span = p.span;
    a->pressure = p.level;
}

void mailbox_dropped(struct scheduler *s, const struct actor *a, const char *why)
{
    COUNT(s, dropped);
    TELEMETRY(MESSAGE_DROPPED, 1, DIM(REASON, why), DIM(CLASS, a ? a->class->name : "none"));
}

static void drop(struct scheduler *s, const struct actor *a, struct message *m)
{
    mailbox_dropped(s, a, "oldest");
    if (m->kind == MESSAGE_CALL)
        signal_reply_error(s, m->from, m->ref, ERR_FULL);
    message_give(s, m);
}

/* The oldest ordinary message makes room; what the runtime itself has to say is never dropped, nor a timer, whose owner may wait for
 * nothing else. */
static bool drop_oldest(struct scheduler *s, struct actor *a)
{
    struct message *previous = NULL;
    for (struct message *m = a->mail_head; m; previous = m, m = m->next)
        if (m->type <= MESSAGE_USER_MAX && m->kind != MESSAGE_ALARM) {
            drop(s, a, mailbox_unlink(s, a, previous));
            return true;
        }
    return false;
}

enum error mailbox_deliver_full(struct scheduler *s, struct actor *a, struct message *m)
{
    if (a->class->mailbox_policy != MAILBOX_DROP_OLDEST || !drop_oldest(s, a))
        return ERR_FULL;
    mailbox_append(s, a, m);
    return OK;
}

/* A place has become free: the sender who has waited longest gets it. */
void mailbox_admit_waiting(struct scheduler *s, struct actor *a)
{
    while (a->waiting && mailbox_depth(a) < a->mail_capacity) {
        struct message *m = a->waiting;
        a->waiting = m->next;
        if (!a->waiting)
            a->flags &= (uint16_t)~ACTOR_AWAITED;
        actor_pid sender = m->from;
        uint64_t ref = m->ref;
        m->ref = 0;
        m->kind = MESSAGE_CAST;
        mailbox_append(s, a, m);
        signal_reply_error(s, sender, ref, OK);
    }
}

void mailbox_admit(struct scheduler *s, struct actor *a, struct message *m)
{
    if (a->class->mailbox_policy == MAILBOX_DROP_OLDEST && mailbox_depth(a) >= a->mail_capacity)
        drop_oldest(s, a); /* there is always room for the newest */
    struct message **link = &a->waiting;
    while (*link)
        link = &(*link)->next;
    m->next = NULL;
    *link = m;
    a->flags |= ACTOR_AWAITED;
    mailbox_admit_waiting(s, a);
}

void mailbox_withdraw(struct scheduler *s, struct actor *a, uint64_t ref)
{
    for (struct message **link = &a->waiting; *link; link = &(*link)->next)
        if ((*link)->ref == ref) {
            struct message *m = *link;
            *link = m->next;
            message_give(s, m);
            break;
        }
    if (!a->waiting)
        a->flags &= (uint16_t)~ACTOR_AWAITED;
}

/* Otherwise the messages of those who gave up, or died, would gather where nobody makes room. */
void mailbox_give_up(struct scheduler *s, actor_pid to, uint64_t ref)
{
    struct message *m = message_take(s, SIGNAL_WITHDRAW, 0);
    if (!m)
        fault_fatal("message memory used up", "a send could not be withdrawn; raise message_bytes_max");
    m->kind = MESSAGE_SIGNAL;
    m->ref = ref;
    signal_send(s, to, m);
}

struct message *mailbox_unlink(struct scheduler *s, struct actor *a, struct message *previous)
{
    struct message *m = previous ? previous->next : a->mail_head;
    if (previous)
        previous->next = m->next;
    else
        a->mail_head = m->next;
    if (a->mail_tail == m)
        a->mail_tail = previous;
    if (a->worker && a->worker->scan == m) /* a parked receive goes on from the one before */
        a->worker->scan = previous;
    m->next = NULL;
    mailbox_depth_set(s, a, mailbox_depth(a) - 1);
    if (__builtin_expect(a->flags & ACTOR_AWAITED, 0))
        mailbox_admit_waiting(s, a);
    return m;
}

void mailbox_bury(struct scheduler *s, struct actor *a, actor_pid who, const struct reason *why)
{
    struct message *chains[] = {a->waiting, a->mail_head};
    a->waiting = a->mail_head = a->mail_tail = NULL;
    mailbox_depth_set(s, a, 0); /* so that nobody takes its level for a living one's */
    for (size_t i = 0; i < 2; i++)
        for (struct message *m = chains[i], *next; m; m = next) {
            next = m->next;
            if (i == 0)
                signal_reply_error(s, m->from, m->ref, ERR_NOPROC);
            else if (m->kind == MESSAGE_CALL)
                signal_reply_down(s, m->from, m->ref, who, why);
            message_give(s, m);
        }
}

/* ---- what actors call ---- */

/* A call that is sent on unanswered: whoever gets it answers it. */
static enum error call_pass_on(struct scheduler *s, actor_pid to, struct message *m)
{
    actor_pid caller = m->from;
    uint64_t ref = m->ref;
    enum error e = scheduler_transmit(s, to, m);
    if (e)
        signal_reply_error(s, caller, ref, e);
    return OK;
}

enum error actor_send(actor_pid to, struct message *m)
{
    struct scheduler *s = scheduler_enter();
    if (!m)
        return ERR_MEMORY;
    message_unhold(s->current, m);
    if (__builtin_expect(m->kind == MESSAGE_CALL && m->ref, 0))
        return call_pass_on(s, to, m);
    m->kind = MESSAGE_CAST;
    m->ref = 0;
    m->from = actor_pid_of(s->current);
    struct actor *a;
    if (scheduler_local(s, to) && (a = actor_of(s, to)) && mailbox_depth(a) < a->mail_capacity) {
        mailbox_append(s, a, m);
        return OK;
    }
    enum error e = scheduler_transmit(s, to, m);
    return e == ERR_NOPROC ? OK : e;
}

enum error actor_send_name(const char *name, struct message *m)
{
    actor_pid to = actor_whereis(name);
    if (to)
        return actor_send(to, m);
    message_free(m);
    return OK;
}

enum error actor_send_wait(actor_pid to, struct message *m, uint64_t deadline)
{
    struct scheduler *s = scheduler_enter();
    struct worker *w = s->worker;
    if (!m)
        return ERR_MEMORY;
    if (to == actor_pid_of(s->current) ||
        m->type > MESSAGE_USER_MAX) { /* what the runtime says is not sent on this way */
        enum error e = m->type > MESSAGE_USER_MAX ? ERR_INVALID : ERR_CALLING_SELF;
        message_free(m);
        return e;
    }
    message_unhold(s->current, m);
    message_unanswered(s, m);
    m->kind = MESSAGE_SIGNAL;
    m->from = actor_pid_of(s->current);
    uint64_t ref = call_ref(s);
    m->ref = ref;
    worker_expect(s, WAIT_SEND, ref)->wait_on = to;
    signal_send(s, to, m);
    if (!worker_wait(
            s, deadline)) { /* when the mailbox is on another scheduler it may be accepted at this moment */
        mailbox_give_up(s, to, ref);
        return ERR_TIMEOUT;
    }
    uint32_t code;
    ASSERT(w->reply);
    __builtin_memcpy(&code, w->reply->payload, sizeof code);
    message_give(s, w->reply);
    w->reply = NULL;
    return (enum error)code;
}

bool actor_inside(void)
{
    return scheduler_current && scheduler_current->current;
}

uint32_t actor_pressure(void)
{
    return scheduler_enter()->current->pressure;
}

static bool wanted(struct scheduler *s, const struct message *m, message_match *match, void *arg)
{
    s->matching++; /* it looks at the mailbox from inside the runtime */
    bool yes = m->type != MESSAGE_STOP && (!match || match(m, arg)); /* a stop waits for the handler's end */
    s->matching--;
    return yes;
}

static struct message *take_out(struct scheduler *s, struct actor *a, struct message *previous)
{
    struct message *m = mailbox_unlink(s, a, previous);
    if (m->type == MESSAGE_READY)
        resource_ready_taken(s, m);
    m->to = 0;
    message_hold(a, m);
    return m;
}

struct message *actor_receive(message_match *match, void *arg, uint64_t deadline)
{
    struct scheduler *s = scheduler_enter();
    struct actor *a = s->current;
    struct worker *w = s->worker;
    w->scan = NULL;
    for (;;) {
        struct message *m = w->scan ? w->scan->next : a->mail_head;
        if (m && wanted(s, m, match, arg)) {
            take_out(s, a, w->scan);
            w->scan = NULL;
            return m;
        }
        if (m) {
            w->scan = m;
            continue;
        }
        worker_expect(s, WAIT_RECEIVE, 0);
        if (!worker_wait(s, deadline)) {
            w->scan = NULL;
            return NULL;
        }
    }
}

struct message *actor_receive_now(message_match *match, void *arg)
{
    struct scheduler *s = scheduler_enter();
    struct actor *a = s->current;
    struct message *previous = NULL;
    for (struct message *m = a->mail_head; m; previous = m, m = m->next)
        if (wanted(s, m, match, arg))
            return take_out(s, a, previous);
    return NULL;
}

struct message *actor_receive_down(struct scheduler *s, uint64_t ref, uint64_t deadline)
{
    struct actor *a = s->current;
    struct worker *w = s->worker;
    struct message *previous = NULL;
    for (struct message *m = a->mail_head; m; previous = m, m = m->next) /* it may have come already */
        if (m->type == MESSAGE_DOWN && m->ref == ref)
            return mailbox_unlink(s, a, previous);
    worker_expect(s, WAIT_DOWN, ref);
    worker_wait(s, deadline);
    struct message *m = w->reply;
    w->reply = NULL;
    return m;
}

void actor_unknown(const struct message *m)
{
    struct scheduler *s = scheduler_enter();
    TELEMETRY(MESSAGE_UNKNOWN, 1, DIM(CLASS, s->current->class->name));
    runtime_unknown_message(s, m);
}
