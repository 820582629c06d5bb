/* What an actor owns: names, memberships, descriptors, anything with a release function. */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "runtime/blob.h"
#include "runtime/groups.h"
#include "runtime/names.h"
#include "runtime/scheduler.h"

/* ---- names ---- */

actor_pid actor_whereis(const char *name)
{
    struct scheduler *s = scheduler_enter();
    return names_lookup(s->rt->names, name, strlen(name));
}

void actor_each_name(const char *prefix,
                     bool (*visit)(void *context, const char *name, size_t length, actor_pid pid),
                     void *context)
{
    struct scheduler *s = scheduler_enter();
    names_each(s->rt->names, prefix, strlen(prefix), visit, context);
}

/* Record first, so that a registered name is never without an owner. */
enum error resource_name(struct scheduler *s, struct actor *a, const char *name, actor_pid *ret_holder)
{
    size_t size = strlen(name);
    if (size == 0 || size > NAME_BYTES_MAX)
        return ERR_INVALID;
    struct record *r = record_new(s, a, &a->resources, RECORD_NAME);
    if (!r)
        return ERR_MEMORY;
    r->name.blob = blob_create(name, size);
    int e = r->name.blob ? names_register(s->rt->names, name, size, actor_pid_of(a), ret_holder) : -ENOMEM;
    if (e == 0)
        return OK;
    if (r->name.blob)
        blob_unref(r->name.blob);
    record_free(s, a, &a->resources, r);
    return e == -EEXIST ? ERR_ALREADY_REGISTERED : e == -EINVAL ? ERR_INVALID : ERR_LIMIT;
}

enum error actor_register(const char *name, actor_pid pid, actor_pid *ret_holder)
{
    struct scheduler *s = scheduler_enter();
    size_t size = strlen(name);
    if (size == 0 || size > NAME_BYTES_MAX)
        return ERR_INVALID;
    if (scheduler_local(s, pid)) {
        struct actor *a = actor_of(s, pid);
        actor_pid holder = 0;
        enum error e = a ? resource_name(s, a, name, &holder) : ERR_NOPROC;
        if (e == ERR_ALREADY_REGISTERED && ret_holder)
            *ret_holder = holder;
        return e;
    }
    /* Another scheduler's actor: only there can a name be tied to its life. */
    struct worker *w = s->worker;
    struct message *m = message_take(s, SIGNAL_REGISTER, size + 1);
    if (!m)
        return ERR_MEMORY;
    memcpy(m->payload, name, size + 1);
    m->kind = MESSAGE_SIGNAL;
    m->from = actor_pid_of(s->current);
    m->ref = call_ref(s);
    worker_expect(s, WAIT_REPLY, m->ref);
    signal_send(s, pid, m);
    worker_wait(s, DEADLINE_NONE);
    uint32_t code;
    memcpy(&code, w->reply->payload, sizeof code);
    message_give(s, w->reply);
    w->reply = NULL;
    if (code == ERR_ALREADY_REGISTERED && ret_holder)
        *ret_holder = names_lookup(s->rt->names, name, size);
    return (enum error)code;
}

static struct record *find_named(struct scheduler *s, struct actor *a, enum record_kind kind,
                                 const char *name)
{
    size_t size = strlen(name);
    for (struct record *r = record_at(s, a->resources); r; r = record_at(s, r->next))
        if (r->kind == kind && blob_size(r->name.blob) == size &&
            memcmp(blob_bytes(r->name.blob), name, size) == 0)
            return r;
    return NULL;
}

static void name_bury(struct scheduler *s, struct actor *a, struct record *r)
{
    names_unregister(s->rt->names, blob_bytes(r->name.blob), blob_size(r->name.blob), actor_pid_of(a));
    blob_unref(r->name.blob);
    record_free(s, a, &a->resources, r);
}

enum error actor_unregister(const char *name)
{
    struct scheduler *s = scheduler_enter();
    struct record *r = find_named(s, s->current, RECORD_NAME, name);
    if (r) {
        name_bury(s, s->current, r);
        return OK;
    }
    return actor_whereis(name) ? ERR_INVALID : OK; /* somebody else's stays; a free one is fine */
}

/* ---- groups ---- */

enum error actor_join(const char *group)
{
    struct scheduler *s = scheduler_enter();
    struct actor *a = s->current;
    size_t size = strlen(group);
    struct record *r = record_new(s, a, &a->resources, RECORD_GROUP);
    if (!r)
        return ERR_MEMORY;
    r->name.blob = blob_create(group, size);
    int e = r->name.blob ? groups_join(s->rt->groups, group, size, actor_pid_of(a)) : -ENOMEM;
    if (e == 0)
        return OK;
    if (r->name.blob)
        blob_unref(r->name.blob);
    record_free(s, a, &a->resources, r);
    return e == -EINVAL ? ERR_INVALID : e == -ENOMEM ? ERR_MEMORY : ERR_LIMIT;
}

static void group_bury(struct scheduler *s, struct actor *a, struct record *r)
{
    groups_leave(s->rt->groups, blob_bytes(r->name.blob), blob_size(r->name.blob), actor_pid_of(a));
    blob_unref(r->name.blob);
    record_free(s, a, &a->resources, r);
}

enum error actor_leave(const char *group)
{
    struct scheduler *s = scheduler_enter();
    struct record *r = find_named(s, s->current, RECORD_GROUP, group);
    if (!r)
        return ERR_NOT_FOUND;
    group_bury(s, s->current, r);
    return OK;
}

size_t actor_members(const char *group, actor_pid *pids, size_t count)
{
    struct scheduler *s = scheduler_enter();
    return groups_members(s->rt->groups, group, strlen(group), pids, count);
}

/* ---- descriptors ---- */

static struct record *watch_new(struct scheduler *s, int fd, uint32_t events, bool waiting)
{
    struct actor *a = s->current;
    if (!s->poller) {
        errno = ENOSYS;
        return NULL;
    }
    struct record *r = record_new(s, a, &a->resources, RECORD_WATCH);
    if (!r) {
        errno = ENOMEM;
        return NULL;
    }
    r->watch.fd = fd;
    r->watch.events = events;
    r->watch.waiting = waiting;
    r->watch.queued = NULL;
    if (s->env->poller_arm(s->poller, fd, events, waiting, record_ref(s, r)) != 0) {
        int e = errno;
        record_free(s, a, &a->resources, r);
        errno = e;
        return NULL;
    }
    s->watches++;
    return r;
}

static void watch_bury(struct scheduler *s, struct actor *a, struct record *r)
{
    s->env->poller_arm(s->poller, r->watch.fd, 0, false, 0);
    s->watches--;
    record_free(s, a, &a->resources, r);
}

uint64_t actor_watch(int fd, uint32_t events)
{
    struct scheduler *s = scheduler_enter();
    struct record *r = watch_new(s, fd, events, false);
    return r ? record_ref(s, r) : 0;
}

void actor_unwatch(uint64_t ref)
{
    struct scheduler *s = scheduler_enter();
    struct record *r = record_of(s, ref);
    if (r && r->kind == RECORD_WATCH && r->owner == actor_slot(s, s->current))
        watch_bury(s, s->current, r);
}

enum error actor_wait_fd(int fd, uint32_t events, uint64_t deadline)
{
    struct scheduler *s = scheduler_enter();
    worker_expect(s, WAIT_FD, 0);
    struct record *r = watch_new(s, fd, events, true);
    if (!r) {
        s->worker->wait = WAIT_NONE;
        return ERR_SYSTEM;
    }
    uint64_t ref = record_ref(s, r);
    bool ready = worker_wait(s, deadline);
    r = record_of(s, ref);
    if (r)
        watch_bury(s, s->current, r);
    return ready ? OK : ERR_TIMEOUT;
}

void resource_ready(struct scheduler *s, uint64_t token, uint32_t events)
{
    struct record *r = record_of(s, token);
    if (!r || r->kind != RECORD_WATCH)
        return;
    struct actor *a = &s->actors[r->owner];
    if (r->watch.waiting) {
        if (a->worker && a->worker->wait == WAIT_FD)
            worker_wake(s, a);
        return;
    }
    if (r->watch.queued) {
        ((struct message_ready *)(void *)r->watch.queued->payload)->events |= events;
        return;
    }
    struct message *m = message_take(s, MESSAGE_READY, sizeof(struct message_ready));
    if (!m)
        fault_fatal("message memory used up",
                    "a descriptor's readiness could not be told; raise message_bytes_max");
    *(struct message_ready *)(void *)m->payload =
        (struct message_ready){.ref = token, .fd = r->watch.fd, .events = events};
    r->watch.queued = m;
    mailbox_append(s, a, m);
}

void resource_ready_taken(struct scheduler *s, const struct message *m)
{
    struct record *r = record_of(s, ((const struct message_ready *)(const void *)m->payload)->ref);
    if (r && r->kind == RECORD_WATCH && r->watch.queued == m)
        r->watch.queued = NULL;
}

/* ---- anything else ---- */

uint64_t actor_own(void (*release)(void *arg), void *arg)
{
    struct scheduler *s = scheduler_enter();
    struct record *r = record_new(s, s->current, &s->current->resources, RECORD_OWN);
    if (!r)
        return 0;
    r->own.release = release;
    r->own.arg = arg;
    return record_ref(s, r);
}

static void close_fd(void *arg)
{
    close((int)(intptr_t)arg);
}

uint64_t actor_own_fd(int fd)
{
    return actor_own(close_fd, (void *)(intptr_t)fd);
}

static struct record *owned(struct scheduler *s, uint64_t ref)
{
    struct record *r = record_of(s, ref);
    return r && r->kind == RECORD_OWN && r->owner == actor_slot(s, s->current) ? r : NULL;
}

static void own_bury(struct scheduler *s, struct actor *a, struct record *r)
{
    void (*release)(void *) = r->own.release;
    void *arg = r->own.arg;
    record_free(s, a, &a->resources, r);
    release(arg);
}

/* Not to be switched out in the middle: who is ended there would leave the rest undone, and nobody knows of it any more. */
void actor_release(uint64_t ref)
{
    struct scheduler *s = scheduler_enter();
    struct record *r = owned(s, ref);
    if (!r)
        return;
    s->matching++;
    own_bury(s, s->current, r);
    s->matching--;
}

void actor_disown(uint64_t ref)
{
    struct scheduler *s = scheduler_enter();
    struct record *r = owned(s, ref);
    if (r)
        record_free(s, s->current, &s->current->resources, r);
}

/* Promises wait for their turn among the watchers: whoever waits for one learns of the end with everybody else. */
void resource_bury(struct scheduler *s, struct actor *a)
{
    while (a->resources) {
        struct record *r = record_at(s, a->resources);
        switch ((enum record_kind)r->kind) {
        case RECORD_TIMER:
        case RECORD_IDLE:
            timer_bury(s, r);
            break;
        case RECORD_MONITOR:
            monitor_bury(s, a, r);
            break;
        case RECORD_NAME:
            name_bury(s, a, r);
            break;
        case RECORD_GROUP:
            group_bury(s, a, r);
            break;
        case RECORD_WATCH:
            watch_bury(s, a, r);
            break;
        case RECORD_OWN:
            own_bury(s, a, r);
            break;
        case RECORD_KEPT: /* it may be a call */
        case RECORD_PROMISE:
            record_move(s, &a->resources, &a->watchers, r);
            break;
        case RECORD_REQUEST:
            request_bury(s, r);
            break;
        case RECORD_FREE:
        case RECORD_WATCHER:
        case RECORD_LINK:
            ASSERT(false); /* in the wrong list */
        }
    }
}
