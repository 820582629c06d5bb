#include "actors/queues.h"

#include "actors/worker.h"
#include "runtime/telemetry.h"
#include "store/job_bulk.h"
#include "store/job_fairness.h"
#include "store/job_limit.h"
#include "store/job_pause.h"
#include "store/job_schedule.h"
#include "store/view.h"

enum { QUEUES_LOOK = 1 };

/* A client's limit as it was dealt with last, and what is left to do for it. */
struct limit {
    bool known; /* otherwise nobody has looked since the start, and it may have been another one before */
    uint32_t client_max;
    uint32_t walks;    /* through the clients, which are left */
    uint64_t at;       /* when the next one begins */
    struct uuid after; /* how far it is */
};

/* The wall clock when it was looked at last, and how far it is with the schedules since that went back. */
struct clock {
    bool known; /* otherwise nobody has looked since the start, and it may have been ahead before */
    bool behind;
    int64_t ahead_us; /* of steady time */
    struct uuid after;
};

struct queues {
    uint64_t timer, alarm; /* of the next look, and when that is */
    struct limit limit;
    struct clock clock;
};

struct schedule_fire queues_fire(void)
{
    const struct jobs_settings s = jobs_settings();
    struct uuid_source source;
    uuid_source_init(&source, store_here()->env);
    return (struct schedule_fire){.job = uuid_v7(&source),
                                  .wall_us = store_time_us(),
                                  .kept_us = s.kept_us,
                                  .should_fail_ppm = s.should_fail_ppm,
                                  .runtime_max_ms = s.runtime_max_ms,
                                  .payload_max = s.payload_max,
                                  .queue_max = s.queue_max,
                                  .active_max = s.active_queues ? 0 : s.active_max};
}

/* ---- what is done when it is due ---- */

static enum error submit(const struct command_class *class, const void *command, void *ret, size_t room,
                         size_t *ret_size)
{
    return store_submit(class, command, ret, room, ret_size, actor_deadline_ms(QUEUES_PATIENCE_MS));
}

static enum error unpark(void)
{
    struct job_unpark c = {.wall_us = store_time_us(), .most = JOB_UNPARK_MAX};
    struct job_unparked unparked = {.came = 0};
    size_t size = 0;
    enum error e = submit(&job_unpark_class, &c, &unparked, sizeof(unparked), &size);
    if (!e && unparked.damaged > 0)
        TELEMETRY(STORE_DAMAGED, unparked.damaged, DIM(COMPONENT, "queues"), DIM(REASON, "jobs"));
    return e;
}

/* And who runs it stops: otherwise it would learn of a cancel with its next heartbeat. */
static void tell_changed(const struct uuid *id, const struct job_changed *job)
{
    worker_stop(job->worker, id);
    jobs_tell(&(struct job_told){.id = *id,
                                 .client = job->job_client,
                                 .event = job->state == JOB_CANCELED ? JOB_CANCEL : JOB_RETRY,
                                 .from = job->from,
                                 .to = job->state,
                                 .kind = job->kind,
                                 .attempt = job->attempt,
                                 .ran_us = job->ran_us});
}

static void tell_bulk(const uint8_t *bytes, size_t size)
{
    struct bulk_changed changed;
    for (size_t at = 0; at + sizeof(changed) <= size; at += sizeof(changed)) {
        memcpy(&changed, bytes + at, sizeof(changed));
        tell_changed(&changed.id, &changed.job);
    }
}

static enum error step_bulk(void)
{
    const struct jobs_settings s = jobs_settings();
    struct job_bulk_step c = {.wall_us = store_time_us(),
                              .steady_us = store_steady_us(store_here()),
                              .kept_us = s.kept_us,
                              .retry_max = s.retry_max,
                              .queue_max = s.queue_max,
                              .base_us = s.backoff_base_us,
                              .most_us = s.backoff_most_us,
                              .chance = (uint32_t)actor_random(),
                              .by_steady = 1};
    uint8_t answer[ANSWER_SIZE_MAX];
    size_t size = 0;
    enum error e = submit(&job_bulk_step_class, &c, answer, sizeof(answer), &size);
    if (!e)
        tell_bulk(answer, size);
    return e;
}

void queues_tell_fired(const struct schedule_fired *f)
{
    static const struct uuid nobody = {{0}};
    struct job_told told = {
        .id = f->job, .client = f->client, .event = JOB_CREATE, .kind = f->kind, .attempt = 1};
    if (!uuid_equal(&f->job, &nobody)) {
        jobs_tell(&told);
        told.event = JOB_ENQUEUE;
        told.to = JOB_QUEUED;
        jobs_tell(&told);
    }
    if (!uuid_equal(&f->canceled, &nobody))
        tell_changed(&f->canceled, &f->old);
}

static enum error fire_schedule(void)
{
    struct schedule_fire c = queues_fire();
    struct schedule_fired fired;
    size_t size = 0;
    enum error e = submit(&schedule_fire_class, &c, &fired, sizeof(fired), &size);
    if (!e && size == sizeof(fired))
        queues_tell_fired(&fired);
    return e;
}

/* All of them have one shard. */
static const struct chore {
    uint8_t queue;
    bool steady; /* it goes by steady time, and not by the wall clock */
    uint16_t shard;
    enum error (*step)(void);
} chores[] = {
    {DUE_JOB_PAUSE, false, PAUSE_SHARD, unpark},
    {DUE_JOB_BULK, true, BULK_SHARD, step_bulk},
    {DUE_SCHEDULE, false, SCHEDULE_SHARD, fire_schedule},
};
#define CHORES (sizeof(chores) / sizeof(*chores))

static enum error set_fairness(void)
{
    struct job_fairness c = {.on = jobs_settings().fair, .most = FAIRNESS_SORT_MAX};
    struct job_fairness_set set = {.sorted = 0};
    size_t size = 0;
    enum error e = submit(&job_fairness_class, &c, &set, sizeof(set), &size);
    if (!e && set.damaged > 0)
        TELEMETRY(STORE_DAMAGED, set.damaged, DIM(COMPONENT, "queues"), DIM(REASON, "jobs"));
    return e;
}

/* ---- a limit that is another one ---- */

/* Claims that stand in the writer have the one before until they are said anew, and may set aside again what has come back: so there is
 * a second walk. */
static void note_limit(struct limit *l)
{
    uint32_t client_max = jobs_settings().client_running_max;
    if (l->known && client_max == l->client_max)
        return;
    jobs_claim_anew();
    *l = (struct limit){
        .known = true, .client_max = client_max, .walks = QUEUES_LIMIT_WALKS, .at = actor_now()};
}

static void end_walk(struct limit *l)
{
    static const struct uuid first = {{0}};
    l->after = first;
    l->walks--;
    l->at = actor_deadline_ms(QUEUES_LOOK_MS);
}

static enum error admit(struct limit *l)
{
    struct job_admit c = {.after = l->after, .client_max = l->client_max};
    struct job_admitted admitted = {.more = 0};
    size_t size = 0;
    enum error e = submit(&job_admit_class, &c, &admitted, sizeof(admitted), &size);
    if (e)
        return e;
    l->after = admitted.after;
    if (!admitted.more)
        end_walk(l);
    return OK;
}

/* ---- a clock that has gone back ---- */

static void note_clock(struct clock *c)
{
    static const struct uuid first = {{0}};
    int64_t ahead_us = (int64_t)(store_time_us() - store_steady_us(store_here()));
    if (!c->known || ahead_us < c->ahead_us - (int64_t)QUEUES_CLOCK_BACK_US) {
        c->behind = true;
        c->after = first;
    }
    c->known = true;
    c->ahead_us = ahead_us;
}

static enum error retime(struct clock *clock)
{
    struct schedule_retime c = {.after = clock->after, .wall_us = store_time_us()};
    struct schedule_retimed retimed = {.more = 0};
    size_t size = 0;
    enum error e = submit(&schedule_retime_class, &c, &retimed, sizeof(retimed), &size);
    if (e)
        return e;
    clock->after = retimed.after;
    clock->behind = retimed.more != 0;
    if (retimed.damaged > 0)
        TELEMETRY(STORE_DAMAGED, retimed.damaged, DIM(COMPONENT, "queues"), DIM(REASON, "schedules"));
    return OK;
}

/* ---- what is due, and when the next is ---- */

struct outlook {
    bool due[CHORES];
    bool unfair;      /* turns aren't taken as they should be */
    bool limited;     /* jobs are set aside for a limit that was another one */
    bool behind;      /* schedules may wait for what was a later time */
    uint64_t next_ns; /* from now */
};

/* A walk that would find nobody is over. */
static enum error look_at_limit(struct txn *txn, struct limit *l, struct outlook *o)
{
    enum error e = OK;
    if (l->walks > 0 && l->at <= actor_now()) {
        e = limit_any(txn, &o->limited);
        if (!e && !o->limited)
            end_walk(l);
    }
    uint64_t now = actor_now();
    if (l->walks > 0 && !o->limited && l->at - now < o->next_ns)
        o->next_ns = l->at - now;
    return e;
}

static enum error look_out(struct queues *q, struct outlook *o)
{
    struct view *view = view_open(store_here());
    enum error e = OK;
    *o = (struct outlook){.next_ns = QUEUES_LOOK_MS * NS_PER_MS};
    if (!view)
        return ERR_UNAVAILABLE;
    uint64_t wall_us = store_time_us(), steady_us = store_steady_us(store_here()), at_us;
    for (size_t i = 0; i < CHORES && !e; i++) {
        uint64_t now_us = chores[i].steady ? steady_us : wall_us;
        e = due_next(&view->txn, chores[i].queue, chores[i].shard, &at_us);
        if (e == ERR_NOT_FOUND) {
            e = OK;
            continue;
        }
        o->due[i] = !e && at_us <= now_us;
        if (!e && !o->due[i] && at_us - now_us < o->next_ns / NS_PER_US)
            o->next_ns = (at_us - now_us) * NS_PER_US;
    }
    if (!e)
        e = fairness_pending(&view->txn, jobs_settings().fair, &o->unfair);
    if (!e)
        e = look_at_limit(&view->txn, &q->limit, o);
    q->clock.behind = q->clock.behind && txn_rows(&view->txn, TABLE_SCHEDULES) > 0;
    o->behind = q->clock.behind;
    view_close(view);
    return e;
}

/* ---- the actor ---- */

static void sleep_until(struct queues *q, uint64_t deadline)
{
    if (q->timer)
        (void)actor_timer_cancel(q->timer, NULL);
    q->alarm = deadline;
    q->timer = actor_timer(deadline, QUEUES_LOOK, deadline);
}

/* One that can't be done is in nobody's way. */
static enum error first_of(enum error first, enum error e)
{
    return first ? first : e;
}

static enum error work_off(struct queues *q, const struct outlook *o, bool *ret_any)
{
    enum error first = o->behind ? retime(&q->clock) : OK;
    if (o->unfair)
        first = first_of(first, set_fairness());
    if (o->limited)
        first = first_of(first, admit(&q->limit));
    *ret_any = o->behind || o->unfair || o->limited;
    for (size_t i = 0; i < CHORES; i++) {
        enum error e = o->due[i] ? chores[i].step() : OK;
        *ret_any |= o->due[i];
        first = first_of(first, e);
    }
    return first;
}

static void look(struct queues *q)
{
    struct outlook o;
    bool any = true;
    enum error e = OK;
    note_limit(&q->limit);
    note_clock(&q->clock);
    for (uint32_t round = 0; !e && any && round < QUEUES_ROUNDS_MAX; round++) {
        e = look_out(q, &o);
        if (!e)
            e = work_off(q, &o, &any);
    }
    if (e)
        sleep_until(q, actor_deadline_ms(QUEUES_AGAIN_MS));
    else
        sleep_until(q, any ? actor_now() : actor_now() + o.next_ns);
}

static enum actor_step queues_init(void *state, const void *args, size_t args_size)
{
    struct queues *q = state;
    char group[STORE_GROUP_SIZE];
    (void)args;
    (void)args_size;
    if (!store_here())
        actor_refuse(reason_error(ERR_UNAVAILABLE));
    for (size_t i = 0; i < CHORES; i++) {
        store_group(STORE_TOPIC(TOPIC_DUE, chores[i].queue), group);
        if (actor_join(group) != OK)
            actor_refuse(reason_error(ERR_LIMIT));
    }
    if (actor_join(JOBS_CLOCK_GROUP) != OK)
        actor_refuse(reason_error(ERR_LIMIT));
    sleep_until(q, actor_now()); /* not here: the tree must not wait for the disk */
    return ACTOR_CONTINUE;
}

static enum actor_step queues_handle(void *state, struct message *m)
{
    struct queues *q = state;
    const uint64_t *alarm;
    switch (m->type) {
    case QUEUES_LOOK:
        alarm = message_body(m, sizeof(*alarm));
        if (!alarm || *alarm != q->alarm)
            break; /* one that was set before it was set anew */
        q->timer = 0;
        look(q);
        break;
    case STORE_WAKE:
    case JOBS_CLOCK:
        sleep_until(q, actor_now()); /* many at once are one look */
        break;
    default:
        actor_unknown(m);
    }
    return ACTOR_CONTINUE;
}

const struct actor_class queues_class = {
    .name = "queues",
    .state_size = sizeof(struct queues),
    .init = queues_init,
    .handle = queues_handle,
    .mailbox_capacity = 64,
    .mailbox_policy = MAILBOX_DROP_OLDEST,
};
