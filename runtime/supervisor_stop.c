/* How children end when their supervisor wants it: asked with shutdown, waited for, killed.
 *
 * A child may unlink itself, and then its EXIT never comes. So each is watched by a monitor as well: at once
 * when there is no link to be seen, else when it hasn't ended within GLANCE_NS; most end sooner, and a
 * monitor costs a third of the whole. Whichever of EXIT and DOWN comes first is the end, and the other one
 * finds its tag outdated and is dropped.
 *
 * While everything is being stopped for good all that a supervisor understands is taken out of the mailbox,
 * so that no message is looked at twice however many wait; whoever calls then is told that we are going down.
 */
#include "runtime/supervisor_impl.h"

#include "runtime/scheduler.h"
#include "runtime/telemetry.h"

#define STOP_BATCH      256u /* children asked to end before others get a turn */
#define GLANCE_NS       NS_PER_MS
#define LINKS_LOOKED_AT 8u

/* ---- what is said about an end ---- */

/* As OTP reports it: brutal ones are killed, others end with shutdown; whoever isn't permanent may end
 * normally, too. */
static bool end_expected(const struct child *c, const struct reason *why)
{
    bool brutal = c->plan->shutdown_ms == SHUTDOWN_BRUTAL;
    if (brutal && why->kind == REASON_KILLED)
        return true;
    if (!brutal && why->kind == REASON_SHUTDOWN && why->code == 0 && !why->detail)
        return true;
    return c->plan->restart != RESTART_PERMANENT && !reason_abnormal(why);
}

static void report(struct supervisor *s, const struct child *c, const struct reason *why)
{
    char text[CHILD_TEXT_MAX];
    reason_format(why, text, sizeof text);
    TELEMETRY(SUPERVISOR_SHUTDOWN_ERROR, 1, DIM(SUPERVISOR, supervisor_label(s)), DIM(CHILD, child_label(c)),
              DIM(REASON, text));
}

static uint64_t tag_of(const struct message *m)
{
    if (m->type == MESSAGE_EXIT)
        return ((const struct message_exit *)(const void *)m->payload)->tag;
    if (m->type == MESSAGE_DOWN)
        return ((const struct message_down *)(const void *)m->payload)->tag;
    return 0;
}

/* Both begin with the reason and who ended. */
STATIC_ASSERT(offsetof(struct message_exit, reason) == offsetof(struct message_down, reason) &&
                  offsetof(struct message_exit, pid) == offsetof(struct message_down, pid),
              "see take_notice");

/* The child to whose end this belongs; NULL: none's. What has a child's tag by chance, because somebody has passed an EXIT of his own
 * on to us, isn't about the child; and the DOWN of one that lives says that there was no record left for the monitor: then the
 * link must do. */
static struct child *ended_by(struct supervisor *s, const struct message *m)
{
    uint64_t tag = tag_of(m);
    struct child *c = tag ? child_of_tag(&s->children, tag) : NULL;
    if (!c || (c->state != CHILD_RUNNING && c->state != CHILD_STOPPING))
        return NULL;
    const struct message_exit *x = (const struct message_exit *)(const void *)m->payload;
    return c->pid == x->pid && !actor_alive(c->pid) ? c : NULL;
}

static void take_notice(struct supervisor *s, struct message *m)
{
    struct child *c = ended_by(s, m);
    if (c) {
        const struct reason *why = (const struct reason *)(const void *)m->payload;
        if (!end_expected(c, why))
            report(s, c, why);
        child_ended(s, c, why);
    } else if (m->kind == MESSAGE_CALL) {
        supervisor_answer_error(m, ERR_DOWN);
        return;
    }
    message_free(m);
}

/* ---- waiting ---- */

/* While everything ends: those who ask us something are told at once. What isn't for a supervisor stays, and
 * whoever made it a call hears of our end. */
static bool is_about_the_end(const struct message *m, void *arg)
{
    (void)arg;
    return tag_of(m) || (m->type >= SUPERVISOR_CALL_FIRST && m->type <= SUPERVISOR_CALL_LAST);
}

static bool is_about_condemned(const struct message *m, void *arg)
{
    uint64_t tag = tag_of(m);
    if (!tag)
        return false;
    const struct child *c = child_of_tag(arg, tag);
    return !c || c->condemned;
}

/* One message about those who are being stopped. False: the deadline passed. */
static bool await(struct supervisor *s, uint64_t deadline)
{
    struct message *m = s->ending ? actor_receive(is_about_the_end, NULL, deadline)
                                  : actor_receive(is_about_condemned, &s->children, deadline);
    if (m)
        take_notice(s, m);
    return m != NULL;
}

static uint64_t deadline_of(const struct child *c, uint64_t now)
{
    int64_t ms = c->plan->shutdown_ms;
    uint64_t ns, deadline;
    if (ms == SHUTDOWN_AT_ONCE)
        return now;
    if (ms < 0 || __builtin_mul_overflow((uint64_t)ms, NS_PER_MS, &ns) ||
        __builtin_add_overflow(now, ns, &deadline))
        return DEADLINE_NONE;
    return deadline;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Whether a child on our own scheduler still has its link to us, as far as a short look tells. */
static bool is_linked(const struct child *c)
{
    const struct scheduler *s = scheduler_current;
    const struct actor *a = scheduler_local(s, c->pid) ? actor_of(s, c->pid) : NULL;
    const struct record *r = a ? record_at(s, a->links) : NULL;
    for (unsigned n = 0; r && n < LINKS_LOOKED_AT; n++, r = record_at(s, r->next))
        if (r->tie.peer == actor_pid_of(s->current))
            return true;
    return false;
}

static void watch(struct child *c)
{
    c->watched = true;
    actor_monitor(c->pid, child_tag(c)); /* 0 when records are used up */
}

static void ask(struct supervisor *s, struct child *c)
{
    c->condemned = true;
    child_become(&s->children, c, CHILD_STOPPING);
    if (!is_linked(c))
        watch(c);
    if (c->plan->shutdown_ms == SHUTDOWN_BRUTAL)
        actor_kill(c->pid);
    else
        actor_exit_signal(c->pid, reason_of(REASON_SHUTDOWN));
}

void child_stop(struct supervisor *s, struct child *c)
{
    ASSERT(c->state == CHILD_RUNNING);
    ask(s, c);
    if (!c->watched)
        actor_yield(); /* whoever doesn't trap exits is gone after this, and no alarm needs to be set */
    uint64_t deadline = deadline_of(c, actor_now()), glance = actor_now() + GLANCE_NS;
    while (c->state == CHILD_STOPPING) {
        if (await(s, c->watched ? deadline : earlier(deadline, glance)))
            continue;
        if (!c->watched)
            watch(c);
        if (deadline <= actor_now()) {
            actor_kill(c->pid);
            deadline = DEADLINE_NONE;
        }
    }
    ASSERT(c->state == CHILD_STOPPED);
}

/* ---- groups ---- */

static void condemn_group(struct supervisor *s, uint32_t first)
{
    for (uint32_t i = first; i != CHILD_NONE; i = child_at(&s->children, i)->newer)
        child_at(&s->children, i)->condemned = child_at(&s->children, i)->state == CHILD_RUNNING;
}

void children_stop_group(struct supervisor *s, uint32_t first)
{
    condemn_group(s, first);
    for (uint32_t i = s->children.newest, next, past = child_at(&s->children, first)->older; i != past;
         i = next) {
        struct child *c = child_at(&s->children, i);
        next = c->older;
        if (c->state == CHILD_QUARANTINED)
            continue;
        if (c->state == CHILD_RUNNING)
            child_stop(s, c);
        else
            child_cancel(s, c);
        if (c->plan->restart == RESTART_TEMPORARY)
            child_free(&s->children, c);
    }
}

/* ---- everything ---- */

static void stop_in_order(struct supervisor *s)
{
    for (uint32_t i = s->children.newest; i != CHILD_NONE; i = child_at(&s->children, i)->older)
        if (child_at(&s->children, i)->state == CHILD_RUNNING)
            child_stop(s, child_at(&s->children, i));
}

static void ask_all(struct supervisor *s)
{
    uint32_t asked = 0;
    for (uint32_t i = s->children.newest; i != CHILD_NONE; i = child_at(&s->children, i)->older) {
        if (child_at(&s->children, i)->state != CHILD_RUNNING)
            continue;
        ask(s, child_at(&s->children, i));
        if (++asked % STOP_BATCH == 0)
            actor_yield();
    }
}

/* Kills whose time is up, watches who isn't watched yet, and returns when to look again. A walk over all, so
 * one after a glance and one for each different deadline that is reached: one in all when there is a
 * template. */
static uint64_t hasten(struct supervisor *s, uint64_t asked_at, uint64_t now)
{
    uint64_t next = DEADLINE_NONE;
    for (uint32_t i = s->children.newest; i != CHILD_NONE; i = child_at(&s->children, i)->older) {
        struct child *c = child_at(&s->children, i);
        if (c->state != CHILD_STOPPING)
            continue;
        uint64_t deadline = deadline_of(c, asked_at);
        if (!c->watched && now >= asked_at + GLANCE_NS)
            watch(c);
        if (deadline <= now && !c->killed) {
            c->killed = true;
            actor_kill(c->pid);
        }
        if (!c->killed)
            next = earlier(next, deadline);
        if (!c->watched)
            next = earlier(next, asked_at + GLANCE_NS);
    }
    return next;
}

static bool any_left(const struct supervisor *s, uint32_t *at)
{
    while (*at != CHILD_NONE && child_at(&s->children, *at)->state != CHILD_STOPPING)
        *at = child_at(&s->children, *at)->older;
    return *at != CHILD_NONE;
}

static void stop_at_once(struct supervisor *s)
{
    ask_all(s);
    uint64_t asked_at = actor_now(), next = asked_at;
    /* Whom the walk has passed is gone: as a whole it is one over the list. */
    for (uint32_t at = s->children.newest; any_left(s, &at);)
        if (!await(s, next))
            next = hasten(s, asked_at, actor_now());
}

void children_stop_all(struct supervisor *s)
{
    s->ending = true;
    if (s->strategy == DYNAMIC)
        stop_at_once(s);
    else
        stop_in_order(s);
}
