/* Time for actors: sleeping, timers that send, the idle timeout. */
#include <stddef.h>
#include <string.h>
#include "runtime/scheduler.h"

/* The time is told without an actor, too: to what is released when one has ended. */
static struct scheduler *here(void)
{
    ASSERT(scheduler_current);
    return scheduler_current;
}

uint64_t actor_now(void)
{
    return here()->now;
}

uint64_t actor_clock(void)
{
    struct env *env = here()->env;
    return env->now(env);
}

uint64_t actor_wall_now(void)
{
    struct env *env = here()->env;
    return env->wall(env);
}

void actor_random_bytes(void *bytes, size_t size)
{
    struct env *env = scheduler_enter()->env;
    env->random(env, bytes, size);
}

uint64_t actor_random(void)
{
    uint64_t r;
    actor_random_bytes(&r, sizeof r);
    return r;
}

uint64_t actor_deadline_ms(uint64_t ms)
{
    uint64_t now = actor_now();
    uint64_t ns;
    if (__builtin_mul_overflow(ms, NS_PER_MS, &ns) || __builtin_add_overflow(now, ns, &ns))
        return DEADLINE_NONE;
    return ns;
}

enum error actor_sleep(uint64_t deadline)
{
    struct scheduler *s = scheduler_enter();
    if (deadline <= s->now) {
        actor_yield();
        return OK;
    }
    worker_expect(s, WAIT_SLEEP, 0);
    worker_wait(s, deadline);
    return OK;
}

static struct record *timer_new(struct scheduler *s, enum record_kind kind, uint64_t deadline)
{
    struct actor *a = s->current;
    struct record *r = record_new(s, a, &a->resources, kind);
    if (!r)
        return NULL;
    r->timer.alarm.wheel = (struct wheel_timer){0};
    r->timer.alarm.what = ALARM_RECORD;
    if (deadline != DEADLINE_NONE)
        wheel_add(&s->wheel, &r->timer.alarm.wheel, deadline);
    return r;
}

uint64_t actor_timer(uint64_t deadline, uint32_t type, uint64_t value)
{
    struct scheduler *s = scheduler_enter();
    ASSERT(type <= MESSAGE_USER_MAX);
    struct record *r = timer_new(s, RECORD_TIMER, deadline);
    if (!r)
        return 0;
    r->type = type & 0xffffff;
    r->timer.value = value;
    return record_ref(s, r);
}

bool actor_timer_cancel(uint64_t ref, uint64_t *ret_remaining_ns)
{
    struct scheduler *s = scheduler_enter();
    struct record *r = record_of(s, ref);
    if (!r || r->kind != RECORD_TIMER || r->owner != actor_slot(s, s->current))
        return false;
    uint64_t deadline = r->timer.alarm.wheel.deadline;
    if (ret_remaining_ns)
        *ret_remaining_ns = !wheel_pending(&r->timer.alarm.wheel) ? DEADLINE_NONE
                            : deadline > s->now                   ? deadline - s->now
                                                                  : 0;
    timer_bury(s, r);
    return true;
}

void timer_bury(struct scheduler *s, struct record *r)
{
    struct actor *a = &s->actors[r->owner];
    if (wheel_pending(&r->timer.alarm.wheel))
        wheel_cancel(&s->wheel, &r->timer.alarm.wheel);
    if (a->idle == r->index)
        a->idle = 0, a->flags &= (uint16_t)~ACTOR_IDLES;
    record_free(s, a, &a->resources, r);
}

void actor_idle_timeout(uint64_t deadline)
{
    struct scheduler *s = scheduler_enter();
    struct actor *a = s->current;
    timer_idle_cancel(s, a);
    if (deadline == DEADLINE_NONE)
        return;
    struct record *r = timer_new(s, RECORD_IDLE, deadline);
    if (r) {
        a->idle = r->index;
        a->flags |= ACTOR_IDLES;
    }
}

void timer_idle_cancel(struct scheduler *s, struct actor *a)
{
    if (a->idle)
        timer_bury(s, record_at(s, a->idle));
}

/* ---- firing ---- */

static void record_fires(struct scheduler *s, struct record *r)
{
    struct actor *a = &s->actors[r->owner];
    bool idle = r->kind == RECORD_IDLE;
    if (idle && a->mail_head) { /* something has arrived in time, though it hasn't been handled yet */
        timer_bury(s, r);
        return;
    }
    uint32_t type = idle ? MESSAGE_TIMEOUT : r->type ? r->type : MESSAGE_TIMER;
    struct message *m = message_take(s, type,
                                     idle                    ? 0
                                     : type == MESSAGE_TIMER ? sizeof(struct message_timer)
                                                             : sizeof(uint64_t));
    if (!m)
        fault_fatal("message memory used up", "a timer could not fire; raise message_bytes_max");
    if (type == MESSAGE_TIMER)
        *(struct message_timer *)(void *)m->payload =
            (struct message_timer){.ref = record_ref(s, r), .value = r->timer.value};
    else if (!idle)
        memcpy(m->payload, &r->timer.value, sizeof(uint64_t));
    m->kind = MESSAGE_ALARM;   /* of whatever type: the runtime has said it */
    m->from = actor_pid_of(a); /* one's own: who looks at the sender can tell it from what strangers send */
    sim_trace(s, TRACE_TIMER, m->from, type);
    timer_bury(s, r);
    mailbox_append(s, a, m); /* one message a timer: bounded by the records */
}

static void wait_times_out(struct scheduler *s, struct worker *w)
{
    struct actor *a = w->actor;
    ASSERT(w->canary == WORKER_CANARY);
    if (a && a->status == ACTOR_WAITING && !w->fired) {
        sim_trace(s, TRACE_TIMER, actor_pid_of(a), w->wait);
        run_ready(s, a);
    }
}

bool timer_fire_one(struct scheduler *s)
{
    struct wheel_timer *t = wheel_expire(&s->wheel, s->now);
    if (!t)
        return false;
    struct alarm *alarm = (struct alarm *)(void *)((char *)t - offsetof(struct alarm, wheel));
    if (alarm->what == ALARM_WAIT)
        wait_times_out(s, (struct worker *)(void *)((char *)alarm - offsetof(struct worker, alarm)));
    else
        record_fires(s, (struct record *)(void *)((char *)alarm - offsetof(struct record, timer.alarm)));
    return true;
}

void timer_fire_due(struct scheduler *s)
{
    while (wheel_due(&s->wheel, s->now) && timer_fire_one(s))
        ;
}
