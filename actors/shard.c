#include "actors/shard.h"

#include "store/job_fire.h"
#include "store/view.h"

enum { SHARD_LOOK = 1 };

struct shard {
    uint32_t number;
    uint64_t timer, alarm; /* of the next look, and when that is */
    bool inherited;        /* there is nothing left of an earlier start */
    bool
        recovered; /* and no job that lacks an event, up to the one seen last: the first shard looks for all */
    struct uuid seen;
    uint64_t
        grace_us; /* until when no claim ends that a worker outside has from an earlier start: see job_fire */
};

/* ---- what is due, and when the next is ---- */

struct outlook {
    bool due;
    uint64_t next_ns; /* from now */
};

/* One queue; its clock says now_us. */
static enum error look_at(struct txn *txn, uint32_t shard, uint8_t queue, uint64_t now_us, struct outlook *o)
{
    uint64_t at_us = 0;
    enum error e = due_next(txn, queue, (uint16_t)shard, &at_us);
    if (e)
        return e == ERR_NOT_FOUND ? OK : e;
    if (at_us <= now_us) {
        o->due = true;
        return OK;
    }
    uint64_t left_us = at_us - now_us;
    if (left_us < o->next_ns / NS_PER_US)
        o->next_ns = left_us * NS_PER_US;
    return OK;
}

static enum error look_out(const struct shard *s, struct outlook *o)
{
    uint64_t steady_us = store_steady_us(store_here());
    *o = (struct outlook){.next_ns = SHARD_LOOK_MS * NS_PER_MS};
    struct view *view = view_open(store_here());
    if (!view)
        return ERR_UNAVAILABLE;
    enum error e = look_at(&view->txn, s->number, DUE_JOB_LEASE, steady_us, o);
    if (!e)
        e = look_at(&view->txn, s->number, DUE_JOB_BACKOFF, steady_us, o);
    if (!e)
        e = look_at(&view->txn, s->number, DUE_JOB_TIME, store_time_us(), o);
    view_close(view);
    return e;
}

/* ---- what has been done is told ---- */

static void tell_event(const struct job_fired *fired)
{
    bool lost = fired->event == JOB_FAIL || fired->event == JOB_RETRY;
    uint8_t event = lost ? JOB_FAIL : fired->event;
    struct job_told told = {.id = fired->id,
                            .client = fired->client,
                            .event = event,
                            .from = fired->from,
                            .to = job_state_after(event),
                            .kind = fired->kind,
                            .failure = lost ? JOB_RUNNER_LOST : JOB_NO_FAILURE,
                            .attempt = fired->attempt,
                            .ran_us = fired->ran_us};
    jobs_tell(&told);
    if (fired->event == JOB_RETRY)
        jobs_tell_retried(&told);
}

static void tell(const uint8_t *bytes, size_t size)
{
    struct job_fired fired;
    for (size_t at = 0; at + sizeof(fired) <= size; at += sizeof(fired)) {
        memcpy(&fired, bytes + at, sizeof(fired));
        if (fired.postponed)
            jobs_tell_queue_full(&fired.id, &fired.client);
        if (fired.incomplete)
            jobs_tell_incomplete(&fired.id, &fired.client);
        if (fired.event != JOB_EVENT_COUNT)
            tell_event(&fired);
    }
}

static enum error submit(const struct command_class *class, const void *command, size_t *ret_size)
{
    uint8_t answer[ANSWER_SIZE_MAX];
    size_t size = 0;
    enum error e =
        store_submit(class, command, answer, sizeof(answer), &size, actor_deadline_ms(SHARD_PATIENCE_MS));
    if (!e)
        tell(answer, size);
    *ret_size = size;
    return e;
}

static enum error fire(const struct shard *s)
{
    struct jobs_settings settings = jobs_settings();
    struct job_fire c = {.shard = (uint16_t)s->number,
                         .wall_us = store_time_us(),
                         .steady_us = store_steady_us(store_here()),
                         .grace_us = s->grace_us,
                         .start = store_here()->start,
                         .queue_max = settings.queue_max,
                         .retry_max = settings.retry_max,
                         .kept_us = settings.kept_us,
                         .most = JOB_FIRE_MAX,
                         .auto_retry = settings.retry_auto,
                         .base_us = settings.backoff_base_us,
                         .most_us = settings.backoff_most_us,
                         .chance = (uint32_t)actor_random(),
                         .first_fence = store_here()->first_fence};
    size_t size = 0;
    return submit(&job_fire_class, &c, &size);
}

/* ---- claims of an earlier start ---- */

/* Some of them; *ret_count 0: there are no more. */
static enum error find_orphans(const struct shard *s, struct uuid *ids, size_t most, size_t *ret_count)
{
    static const struct uuid first = {{0}};
    struct key from = due_key(DUE_JOB_LEASE, (uint16_t)s->number, 0, &first);
    struct view *view = view_open(store_here());
    size_t count = 0;
    enum error e = OK;
    if (!view)
        return ERR_UNAVAILABLE;
    struct scan scan = txn_scan(&view->txn, TABLE_DUE, key_span(&from), 3, SCAN_UP);
    while (!e && count < most && scan_next(&scan)) {
        struct due row;
        e = scan_read(&scan, &row);
        if (e || row.value == 0 || row.value == store_here()->start)
            continue;
        memcpy(&ids[count++], (const uint8_t *)scan.key.bytes + scan.key.size - sizeof(*ids), sizeof(*ids));
    }
    enum error end = scan_end(&scan);
    view_close(view);
    *ret_count = count;
    return e ? e : end;
}

static enum error reap(const struct uuid *ids, size_t count, size_t *ret_size)
{
    struct jobs_settings settings = jobs_settings();
    struct job_reap c = {.ids = span_of(ids, count * sizeof(*ids)),
                         .steady_us = store_steady_us(store_here()),
                         .start = store_here()->start,
                         .retry_max = settings.retry_max,
                         .kept_us = settings.kept_us,
                         .auto_retry = settings.retry_auto,
                         .queue_max = settings.queue_max,
                         .base_us = settings.backoff_base_us,
                         .most_us = settings.backoff_most_us,
                         .chance = (uint32_t)actor_random()};
    return submit(&job_reap_class, &c, ret_size);
}

/* False: not all of them could be ended; the next look tries again. */
static bool end_orphans(const struct shard *s)
{
    struct uuid ids[JOB_FIRE_MAX];
    size_t count = 0, size = 0;
    for (uint32_t round = 0; round < SHARD_ROUNDS_MAX; round++) {
        enum error e = find_orphans(s, ids, JOB_FIRE_MAX, &count);
        if (e == ERR_UNAVAILABLE)
            return false;
        if (e || count == 0) /* what can't be read is in nobody's way: its lease ends by its time */
            return true;
        e = reap(ids, count, &size);
        if (e && e != ERR_DAMAGED)
            return false;
        if (size == 0)
            return true;
    }
    return false;
}

/* ---- halves of changes ---- */

/* Among the next SHARD_RECOVER_ROWS jobs; *ret_end: there are no more behind them. What can't be read is told of by others. */
static enum error find_incomplete(struct shard *s, struct uuid *ids, size_t most, size_t *ret_count,
                                  bool *ret_end)
{
    struct key from = key_of_uuid(&s->seen);
    struct view *view = view_open(store_here());
    uint32_t rows = 0;
    size_t count = 0;
    if (!view)
        return ERR_UNAVAILABLE;
    struct scan scan = txn_scan(&view->txn, TABLE_JOBS, key_span(&from), 0, SCAN_UP);
    while (count < most && rows < SHARD_RECOVER_ROWS && scan_next(&scan)) {
        struct job job;
        rows++;
        if (scan.key.size == sizeof(s->seen))
            memcpy(&s->seen, scan.key.bytes, sizeof(s->seen));
        if (scan_read(&scan, &job) == OK && !job.incomplete && job_lacks_event(&view->txn, &job))
            ids[count++] = job.id;
    }
    enum error e = scan_end(&scan);
    view_close(view);
    *ret_count = count;
    *ret_end = e || (count < most && rows < SHARD_RECOVER_ROWS);
    return OK;
}

/* Some of them; the next look goes on, and after an error tries these again. */
static enum error recover(struct shard *s)
{
    struct uuid ids[JOB_FIRE_MAX], before = s->seen;
    size_t count = 0, size = 0;
    bool end = false;
    if (s->number != 0) {
        s->recovered = true;
        return OK;
    }
    enum error e = find_incomplete(s, ids, JOB_FIRE_MAX, &count, &end);
    s->recovered = !e && end && count == 0;
    if (e || count == 0)
        return e;
    e = reap(ids, count, &size);
    if (e && e != ERR_DAMAGED && e != ERR_NOT_FOUND) {
        s->seen = before;
        return e;
    }
    s->recovered = end;
    return OK;
}

/* ---- the actor ---- */

static void sleep_until(struct shard *s, uint64_t deadline)
{
    if (s->timer)
        (void)actor_timer_cancel(s->timer, NULL);
    s->alarm = deadline;
    s->timer = actor_timer(deadline, SHARD_LOOK, deadline);
}

static void look(struct shard *s)
{
    struct outlook o = {.due = false};
    if (!s->inherited)
        s->inherited = end_orphans(s);
    enum error e = s->inherited ? OK : ERR_UNAVAILABLE;
    if (!e && !s->recovered)
        e = recover(s);
    for (uint32_t round = 0; !e && round < SHARD_ROUNDS_MAX; round++) {
        e = look_out(s, &o);
        if (e || !o.due)
            break;
        e = fire(s);
    }
    if (!s->recovered && o.next_ns > SHARD_REST_MS * NS_PER_MS)
        o.next_ns = SHARD_REST_MS * NS_PER_MS;
    if (e)
        sleep_until(s, actor_deadline_ms(SHARD_AGAIN_MS));
    else
        sleep_until(s, o.due ? actor_now() : actor_now() + o.next_ns);
}

static enum actor_step shard_init(void *state, const void *args, size_t args_size)
{
    struct shard *s = state;
    char group[STORE_GROUP_SIZE];
    ASSERT(args_size == sizeof(s->number));
    memcpy(&s->number, args, sizeof(s->number));
    if (!store_here())
        actor_refuse(reason_error(ERR_UNAVAILABLE));
    store_group(JOB_TOPIC_SHARD(s->number), group);
    if (actor_join(group) != OK || actor_join(JOBS_CLOCK_GROUP) != OK)
        actor_refuse(reason_error(ERR_LIMIT));
    s->grace_us = jobs_grace_us();
    sleep_until(s, actor_now()); /* not here: the tree must not wait for the disk */
    return ACTOR_CONTINUE;
}

static enum actor_step shard_handle(void *state, struct message *m)
{
    struct shard *s = state;
    const uint64_t *alarm;
    switch (m->type) {
    case SHARD_LOOK:
        alarm = message_body(m, sizeof(*alarm));
        if (!alarm || *alarm != s->alarm)
            break; /* one that was set before it was set anew */
        s->timer = 0;
        look(s);
        break;
    case STORE_WAKE:
    case JOBS_CLOCK:
        sleep_until(s, actor_now()); /* many at once are one look */
        break;
    default:
        actor_unknown(m);
    }
    return ACTOR_CONTINUE;
}

const struct actor_class shard_class = {
    .name = "shard",
    .state_size = sizeof(struct shard),
    .init = shard_init,
    .handle = shard_handle,
    .mailbox_capacity = 64,
    .mailbox_policy = MAILBOX_DROP_OLDEST,
};
