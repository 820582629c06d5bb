/* Calls: a message with a reference, and the answer that finds its way back by it.
 *
 * A blocked caller is found by the reference it waits for; the answer never passes through a mailbox, so waiting is O(1)
 * however much is queued. Whoever holds an unanswered call when it ends answers it with its reason: the mailbox
 * (mailbox_bury), the running handler (worker.c), and the promises made by actor_defer.
 */
#include <string.h>
#include "runtime/scheduler.h"

/* What a reply means to the caller. Keeps the message in *ret_reply where the header says so. */
static enum error reply_meaning(struct scheduler *s, struct message *m, struct message **ret_reply)
{
    enum error e = OK;
    ASSERT(m);
    if (m->type == REPLY_ERROR) {
        uint32_t code;
        memcpy(&code, m->payload, sizeof code);
        e = (enum error)code;
    } else if (m->type == MESSAGE_DOWN) {
        e = ERR_DOWN;
    }
    if (ret_reply && (e == OK || e == ERR_DOWN)) {
        m->to = 0;
        message_hold(s->current, m);
        *ret_reply = m;
    } else {
        message_give(s, m);
    }
    return e;
}

static enum error call_send(struct scheduler *s, actor_pid to, struct message *m, uint64_t ref)
{
    struct actor *a = s->current;
    message_unhold(a, m);
    message_unanswered(s, m);
    m->kind = MESSAGE_CALL;
    m->from = actor_pid_of(a);
    m->ref = ref;
    return scheduler_transmit(s, to, m);
}

enum error actor_call(actor_pid to, struct message *request, struct message **ret_reply, uint64_t deadline)
{
    struct scheduler *s = scheduler_enter();
    if (!request)
        return ERR_MEMORY;
    struct actor *a = s->current;
    struct worker *w = s->worker;
    if (to == actor_pid_of(a)) {
        message_free(request);
        return ERR_CALLING_SELF;
    }
    uint64_t ref = call_ref(s);
    worker_expect(s, WAIT_REPLY, ref);
    enum error e = call_send(s, to, request, ref);
    if (e)
        return e;
    if (!worker_wait(s, deadline))
        return ERR_TIMEOUT;
    struct message *reply = w->reply;
    w->reply = NULL;
    return reply_meaning(s, reply, ret_reply);
}

enum error actor_call_name(const char *name, struct message *request, struct message **ret_reply,
                           uint64_t deadline)
{
    actor_pid to = actor_whereis(name);
    if (!to) {
        message_free(request);
        return ERR_NOPROC;
    }
    return actor_call(to, request, ret_reply, deadline);
}

/* ---- the answering side ---- */

static void reply_send(struct scheduler *s, actor_pid to, uint64_t ref, struct message *reply)
{
    message_unhold(s->current, reply);
    message_unanswered(s, reply);
    reply->kind = MESSAGE_REPLY;
    reply->from = actor_pid_of(s->current);
    reply->ref = ref;
    reply->to = to;
    if (scheduler_local(s, to))
        reply_deliver(s, reply);
    else
        scheduler_post(s, to, reply);
}

void actor_reply(struct message *call, struct message *reply)
{
    struct scheduler *s = scheduler_enter();
    if (!reply)
        return;
    if (call->kind != MESSAGE_CALL || !call->ref) {
        message_free(reply);
        return;
    }
    uint64_t ref = call->ref;
    call->ref = 0; /* reply may be the same message: the request's own block carries the answer back */
    reply_send(s, call->from, ref, reply);
}

struct actor_from actor_defer(struct message *call)
{
    struct scheduler *s = scheduler_enter();
    struct actor *a = s->current;
    if (call->kind != MESSAGE_CALL || !call->ref)
        return (struct actor_from){0};
    struct record *r = record_new(s, a, &a->resources, RECORD_PROMISE);
    if (!r)
        return (struct actor_from){0};
    r->promise.from = call->from;
    r->promise.ref = call->ref;
    call->ref = 0;
    return (struct actor_from){.ref = record_ref(s, r)};
}

void actor_reply_to(struct actor_from from, struct message *reply)
{
    struct scheduler *s = scheduler_enter();
    struct actor *a = s->current;
    struct record *r = record_of(s, from.ref);
    if (!reply)
        return;
    if (!r || r->kind != RECORD_PROMISE || r->owner != actor_slot(s, a)) {
        message_free(reply);
        return;
    }
    actor_pid to = r->promise.from;
    uint64_t ref = r->promise.ref;
    record_free(s, a, &a->resources, r);
    reply_send(s, to, ref, reply);
}

void promise_bury(struct scheduler *s, actor_pid who, struct record *r, const struct reason *why)
{
    struct actor *a = &s->actors[r->owner];
    signal_reply_down(s, r->promise.from, r->promise.ref, who, why);
    record_free(s, a, &a->watchers, r);
}

/* ---- open requests ---- */

enum error actor_request(actor_pid to, struct message *request, uint64_t *ret_ref)
{
    struct scheduler *s = scheduler_enter();
    struct actor *a = s->current;
    if (!request)
        return ERR_MEMORY;
    if (to == actor_pid_of(a)) {
        message_free(request);
        return ERR_CALLING_SELF;
    }
    struct record *r = record_new(s, a, &a->resources, RECORD_REQUEST);
    if (!r) {
        message_free(request);
        return ERR_MEMORY;
    }
    r->request.reply = NULL;
    r->request.to = to;
    uint64_t ref = record_ref(s, r);
    enum error e = call_send(s, to, request, ref);
    if (e == ERR_NOPROC) { /* collected like any other answer */
        signal_reply_error(s, actor_pid_of(a), ref, ERR_NOPROC);
    } else if (e) {
        record_free(s, a, &a->resources, r);
        return e;
    }
    *ret_ref = ref;
    return OK;
}

static struct record *request_of(struct scheduler *s, struct actor *a, uint64_t ref)
{
    struct record *r = record_of(s, ref);
    return r && r->kind == RECORD_REQUEST && r->owner == actor_slot(s, a) ? r : NULL;
}

enum error actor_request_wait(const uint64_t *refs, size_t count, size_t *ret_index,
                              struct message **ret_reply, uint64_t deadline)
{
    struct scheduler *s = scheduler_enter();
    struct actor *a = s->current;
    for (;;) {
        size_t open = 0;
        struct record *first = NULL; /* of those answered, the one whose answer came first */
        for (size_t i = 0; i < count; i++) {
            struct record *r = request_of(s, a, refs[i]);
            open += r != NULL;
            if (r && r->request.reply && (!first || r->request.arrived < first->request.arrived)) {
                first = r;
                *ret_index = i;
            }
        }
        if (first) {
            struct message *reply = first->request.reply;
            first->request.reply = NULL;
            record_free(s, a, &a->resources, first);
            return reply_meaning(s, reply, ret_reply);
        }
        if (!open)
            return ERR_INVALID; /* nothing that could ever answer */
        worker_expect(s, WAIT_REQUEST, 0);
        if (!worker_wait(s, deadline))
            return ERR_TIMEOUT;
    }
}

void request_bury(struct scheduler *s, struct record *r)
{
    struct actor *a = &s->actors[r->owner];
    if (r->request.reply)
        message_give(s, r->request.reply);
    record_free(s, a, &a->resources, r);
}

void actor_request_drop(uint64_t ref)
{
    struct scheduler *s = scheduler_enter();
    struct record *r = request_of(s, s->current, ref);
    if (r)
        request_bury(s, r);
}

/* ---- arrival ---- */

static bool waits_for(const struct worker *w, uint64_t ref)
{
    return w && w->wait_ref == ref &&
           (w->wait == WAIT_REPLY || w->wait == WAIT_SEND || w->wait == WAIT_START);
}

static void started_arrives(struct worker *w, struct message *m)
{
    struct reply_started *r = (struct reply_started *)(void *)m->payload;
    struct start_result *start = &w->start;
    start->pid = r->pid;
    start->info = r->info;
    start->why = reason_copy(&r->why);
    w->reply = m;
}

void reply_deliver(struct scheduler *s, struct message *m)
{
    struct actor *a = actor_of(s, m->to);
    if (!a) {
        message_give(s, m);
        return;
    }
    struct worker *w = worker_of(s, a);
    if (waits_for(w, m->ref) && !w->fired) {
        if (m->type == REPLY_STARTED)
            started_arrives(w, m);
        else
            w->reply = m;
        worker_wake(s, a);
        return;
    }
    struct record *r = record_of(s, m->ref);
    if (!r || r->kind != RECORD_REQUEST || r->owner != actor_slot(s, a) || r->request.reply) {
        message_give(s, m); /* too late: nobody waits for it any more */
        return;
    }
    r->request.reply = m;
    r->request.arrived = s->next_ref++;
    if (w && w->wait == WAIT_REQUEST)
        worker_wake(s, a);
}
