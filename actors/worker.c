#include "actors/worker.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>

#include "actors/job_figures.h"
#include "runtime/telemetry.h"
#include "store/job_lease.h"
#include "store/job_queue.h"
#include "store/view.h"
#include "store/writer.h"

enum { WORKER_POLL = 1, WORKER_STOP };

STATIC_ASSERT(JOBS_WORKERS_MAX <= STANDING_MAX, "the claim of each worker may stand");

struct worker {
    uint32_t number;
    bool again;           /* one of this number has lived before: it may have left something */
    uint64_t poll;        /* timer */
    uint32_t polls;       /* how many were set: the last one counts */
    uint64_t stood, last; /* the number of the claim that stands, 0: none; and of the last one there was */
    actor_pid writer;     /* where it stands */
    char name[sizeof(WORKER_NAME) + 10];
};

struct task {
    struct job_claimed claimed;
    struct job_definition definition; /* without its texts: they were the view's */
    struct jobs_settings settings;    /* of its beginning */
    uint64_t began_us;                /* by steady time; */
    uint64_t began_at_us;             /* the same instant as the store's clock had it */
    uint64_t start;                   /* its start was asked for, and hasn't been answered; 0: it has */
    bool again;                       /* and had to be said again */
    bool lost;                        /* nobody waits for what comes of it any more */
};

static uint64_t steady(void)
{
    return store_steady_us(store_here());
}

static uint64_t later_of(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* ---- commands ---- */

/* Nothing was done, or nobody knows: the same again is the right thing. */
static bool passing(enum error e)
{
    switch (e) {
    case ERR_TIMEOUT:
    case ERR_DOWN:
    case ERR_NOPROC:
    case ERR_FULL:
    case ERR_SHED:
    case ERR_UNANSWERED:
    case ERR_MEMORY:
    case ERR_NO_SPACE:
    case ERR_UNAVAILABLE:
    case ERR_LIMIT:
        return true;
    default:
        return false;
    }
}

static enum error submit(const struct command_class *class, const void *command, void *ret, size_t size)
{
    size_t got = 0;
    enum error e = store_submit(class, command, ret, size, &got, actor_deadline_ms(WORKER_PATIENCE_MS));
    return !e && got != size ? ERR_UNANSWERED : e;
}

/* What a claim of this worker says. */
static struct job_claim wish(const struct worker *w, const struct jobs_settings *s)
{
    return (struct job_claim){.lane = LANE_SERVER,
                              .most = 1,
                              .owner = store_here()->start,
                              .running_max = s->active_queues ? s->active_max : 0,
                              .client_max = s->client_running_max,
                              .steady_us = steady(),
                              .lease_us = s->lease_us,
                              .worker = span_text(w->name)};
}

/* What was asked is forgotten when its answer doesn't come in time: it may be done or will be. */
static enum error hear(uint64_t ref, void *ret, size_t size)
{
    size_t got = 0;
    enum error e = store_hear(ref, ret, size, &got, actor_deadline_ms(WORKER_PATIENCE_MS));
    if (e == ERR_TIMEOUT)
        actor_request_drop(ref);
    return !e && got != size ? ERR_UNANSWERED : e;
}

static enum error heartbeat(const struct task *t, uint16_t progress)
{
    uint64_t until = 0;
    struct job_heartbeat c = {.id = t->claimed.id,
                              .fence = t->claimed.fence,
                              .steady_us = steady(),
                              .lease_us = t->settings.lease_us,
                              .progress = progress};
    enum error e = submit(&job_heartbeat_class, &c, &until, sizeof(until));
    if (!e) {
        job_figures_add(JOB_FIGURE_HEARTBEAT);
        TELEMETRY(WORKER_HEARTBEAT, 1, DIM(CLASS, "worker"));
    }
    return e;
}

static void tell(const struct task *t, uint8_t event, uint8_t from, uint8_t to, uint8_t failure,
                 uint64_t waited_us, uint64_t ran_us)
{
    jobs_tell(&(struct job_told){.id = t->claimed.id,
                                 .client = t->claimed.client,
                                 .event = event,
                                 .from = from,
                                 .to = to,
                                 .kind = t->claimed.kind,
                                 .failure = failure,
                                 .attempt = t->claimed.attempt,
                                 .waited_us = waited_us,
                                 .ran_us = ran_us});
}

/* ---- its start ---- */

static struct job_start start_of(const struct task *t)
{
    return (struct job_start){.id = t->claimed.id,
                              .fence = t->claimed.fence,
                              .steady_us = steady(),
                              .lease_us = t->settings.lease_us};
}

static void note_begin(struct task *t)
{
    t->began_us = steady();
    t->began_at_us = store_time_us();
}

/* What comes of it is heard later: `begun`. The job starts when that is said; its work is counted from behind it, so that no job runs
 * shorter than it should because its worker was switched out in between, or had to say it again. */
static enum error begin(struct task *t)
{
    struct job_start c = start_of(t);
    enum error e = store_ask(&job_start_class, &c, &t->start);
    note_begin(t);
    return e;
}

/* Said again for as long as nobody knows whether it was done: ends with the lease. */
static enum error begin_again(struct task *t, uint64_t *ret_started_us)
{
    enum error e;
    t->again = true;
    do {
        (void)actor_sleep(actor_deadline_ms(WORKER_AGAIN_MS));
        struct job_start c = start_of(t);
        e = submit(&job_start_class, &c, ret_started_us, sizeof(*ret_started_us));
    } while (passing(e));
    note_begin(t);
    return e;
}

/* Events of one millisecond are told a millisecond apart each, so that a start may be told for some milliseconds later than it was; what
 * is then told of the job's time must not be less than its work takes. A start that is far ahead is of a clock that was set back. */
static uint64_t told_ahead_us(const struct task *t, uint64_t started_us)
{
    uint64_t ahead_us = later_of(started_us, t->began_at_us);
    return ahead_us <= WORKER_AHEAD_US ? ahead_us : 0;
}

/* OK: the job is RUNNING. Asked for a second time it has nothing to say. */
static enum error begun(struct task *t)
{
    uint64_t started_us = 0;
    if (!t->start)
        return OK;
    enum error e = hear(t->start, &started_us, sizeof(started_us));
    t->start = 0;
    if (passing(e))
        e = begin_again(t, &started_us);
    if (e)
        return e;
    t->began_us += told_ahead_us(t, started_us);
    tell(t, JOB_START, JOB_ASSIGNED, JOB_RUNNING, JOB_NO_FAILURE, later_of(started_us, t->claimed.claimed_us),
         0);
    return OK;
}

/* ---- the claim ---- */

static void rest(struct worker *w, uint64_t ns)
{
    if (w->poll)
        (void)actor_timer_cancel(w->poll, NULL);
    w->poll = actor_timer(actor_now() + ns, WORKER_POLL, ++w->polls);
}

/* From here on the next job is his: it comes as STORE_GIVEN. Where one stands already, it is said anew, by the settings of now. */
static void stand(struct worker *w)
{
    struct jobs_settings s = jobs_settings();
    struct job_claim c = wish(w, &s);
    bool again = w->stood && w->writer == actor_whereis(WRITER_NAME);
    uint64_t number = again ? w->stood : ++w->last;
    enum error e = store_stand(&job_claim_class, &c, number, again, &w->writer);
    w->stood = e ? 0 : number;
    if (e)
        rest(w, WORKER_AGAIN_MS * NS_PER_MS);
    else if (!w->poll)
        rest(w, s.poll_us * NS_PER_US);
}

/* ---- the work ---- */

/* How long it takes here; *ret_too_long: it would take longer than it may. */
static uint64_t duration_us(const struct task *t, bool *ret_too_long)
{
    uint64_t ms = t->definition.duration_ms;
    *ret_too_long = ms > t->settings.runtime_max_ms;
    if (*ret_too_long)
        ms = t->settings.runtime_max_ms;
    return (uint64_t)((unsigned __int128)ms * 1000 * 1000000 / t->settings.speed_ppm);
}

/* All but his timer's: what is of no use now mustn't fill the mailbox for the job that comes then. */
static bool of_interest(const struct message *m, void *arg)
{
    (void)arg;
    return m->type == JOBS_CLOCK || m->type == STORE_WAKE || m->type == WORKER_STOP;
}

static bool is_stop(const struct task *t, const struct message *m)
{
    return m->type == WORKER_STOP && m->size == sizeof(t->claimed.id) &&
           memcmp(m->payload, &t->claimed.id, sizeof(t->claimed.id)) == 0;
}

/* Until that much steady time has come, the clock has moved, or somebody said that it may stop. */
static void wait_until(struct task *t, uint64_t until_us)
{
    uint64_t now_us = steady();
    if (now_us >= until_us)
        return;
    struct message *m = actor_receive(of_interest, NULL, actor_now() + (until_us - now_us) * NS_PER_US);
    if (!m)
        return;
    t->lost = is_stop(t, m);
    message_free(m);
}

static void work(struct task *t, uint64_t takes_us)
{
    uint64_t end_us = t->began_us + takes_us, beat_us = t->began_us + t->settings.heartbeat_us;
    for (uint64_t now_us = steady(); !t->lost && now_us < end_us; now_us = steady()) {
        if (now_us >= beat_us) {
            enum error e = heartbeat(t, (uint16_t)((now_us - t->began_us) * 1000 / takes_us));
            t->lost = e && !passing(e);
            beat_us = now_us + (e ? WORKER_AGAIN_MS * 1000 : t->settings.heartbeat_us);
        } else {
            wait_until(t, beat_us < end_us ? beat_us : end_us);
        }
    }
}

/* What it came to. `e`: what reading the definition said. */
static void judge(const struct task *t, enum error e, bool too_long, struct job_finish *c)
{
    const struct work_kind_row *row = work_kind_row(t->claimed.kind);
    c->event = JOB_FAIL;
    if (t->claimed.incomplete) {
        c->failure = JOB_RECOVERY_INCOMPLETE;
    } else if (e || !row) {
        c->failure = JOB_DEFINITION_MISSING;
    } else if (too_long) {
        c->event = JOB_TIME_OUT;
        c->failure = JOB_TIMEOUT;
    } else if (work_kind_fails(t->claimed.kind, t->claimed.attempt)) {
        c->failure = JOB_SIMULATED_FAILURE;
        c->retryable = row->retryable;
        c->progress = (uint16_t)(row->progress_percent * 10u);
    } else if (row->payload_bytes != t->definition.payload_size) {
        c->failure = JOB_OUTPUT_INVALID; /* what it has made isn't what was to be made */
    } else {
        c->event = JOB_SUCCEED;
        c->outputs = row->outputs;
        c->outputs_bytes = t->definition.payload_size;
    }
    if (job_failure_retryable(c->failure))
        c->retryable = 1;
}

static enum error finish(struct job_finish *c, struct job_finished *ret)
{
    enum error e;
    do {
        c->steady_us = steady();
        e = submit(&job_finish_class, c, ret, sizeof(*ret));
        if (passing(e))
            (void)actor_sleep(actor_deadline_ms(WORKER_AGAIN_MS));
    } while (passing(e)); /* ends with the lease */
    return e;
}

/* The end of this job, and right behind it the claim of the next one, so that one commit has both, and that of the start, if it isn't
 * there yet. Should the end have to be said again, because it or the start wasn't heard, the next one waits for that. */
static enum error finish_and_stand(struct worker *w, struct task *t, struct job_finish *c,
                                   struct job_finished *ret)
{
    uint64_t end = 0;
    c->steady_us = steady();
    enum error e = store_ask(&job_finish_class, c, &end);
    stand(w);
    enum error begins = begun(t);
    if (!e)
        e = hear(end, ret, sizeof(*ret));
    if (!begins && (passing(e) || t->again))
        e = finish(c, ret);
    return e;
}

/* The store can't write this end: it isn't that somebody else has the job, or that the end has to be said again. */
static bool unwritable(enum error e)
{
    return e && !passing(e) && e != ERR_FENCED && e != ERR_EXPIRED && e != ERR_CONFLICT && e != ERR_NOT_FOUND;
}

/* What damage hinders is refused along with all that shares its commit, so one refusal says nothing of this job yet. After a few the job
 * ends otherwise, with a report that says no more than that (JOB-319). What can't be written either the end of the lease does. */
static enum error finish_without_report(struct job_finish *c, struct job_finished *ret, enum error e)
{
    for (uint32_t tries = 0; unwritable(e) && tries < WORKER_REPORT_TRIES; tries++) {
        (void)actor_sleep(actor_deadline_ms(WORKER_AGAIN_MS));
        e = finish(c, ret);
    }
    if (!unwritable(e))
        return e;
    c->event = JOB_FAIL;
    c->failure = JOB_REPORT_FAILED;
    c->retryable = job_failure_retryable(JOB_REPORT_FAILED);
    c->progress = 0;
    c->outputs = 0;
    c->outputs_bytes = 0;
    return finish(c, ret);
}

static enum error read_definition(struct task *t)
{
    struct view *view = view_open(store_here());
    if (!view)
        return ERR_UNAVAILABLE;
    enum error e = job_read_definition(&view->txn, &t->claimed.id, &t->definition);
    view_close(view);
    return e;
}

static enum error definition(struct task *t)
{
    enum error e;
    while ((e = read_definition(t)) ==
           ERR_UNAVAILABLE) /* all views are open: of a scheduler's, each for microseconds */
        (void)actor_sleep(actor_deadline_ms(1));
    return e;
}

static void run(struct worker *w, struct task *t)
{
    struct job_finished finished;
    struct job_finish c = {.id = t->claimed.id,
                           .fence = t->claimed.fence,
                           .kept_us = t->settings.kept_us,
                           .retry_max = t->settings.retry_max,
                           .queue_max = t->settings.queue_max,
                           .auto_retry = t->settings.retry_auto};
    bool too_long = false;
    enum error e = t->claimed.incomplete ? ERR_DAMAGED : definition(t);
    uint64_t takes_us = e ? 0 : duration_us(t, &too_long);
    t->lost = begin(t) != OK; /* nobody can be asked: the end of its lease brings it back */
    if (!t->lost && takes_us >= WORKER_SHORT_US)
        t->lost = begun(t) != OK;
    if (!t->lost && takes_us >= WORKER_SHORT_US)
        work(t, takes_us);
    if (t->lost && t->start)
        actor_request_drop(t->start);
    if (t->lost) {
        stand(w);
        return;
    }
    judge(t, e, too_long, &c);
    c.backoff_us = jobs_backoff_us(t->claimed.attempt, &t->settings);
    e = finish_and_stand(w, t, &c, &finished);
    if (unwritable(e))
        e = finish_without_report(&c, &finished, e);
    if (e)
        return;
    tell(t, c.event, JOB_RUNNING, job_state_after(c.event), c.failure, 0,
         later_of(finished.finished_us, finished.started_us));
    if (finished.retried)
        jobs_tell_retried(&(struct job_told){.id = t->claimed.id,
                                             .client = t->claimed.client,
                                             .kind = t->claimed.kind,
                                             .attempt = t->claimed.attempt});
}

static void take(struct worker *w, struct task *t)
{
    tell(t, JOB_ASSIGN, JOB_QUEUED, JOB_ASSIGNED, JOB_NO_FAILURE,
         later_of(t->claimed.claimed_us, t->claimed.queued_us), 0);
    run(w, t);
}

/* What has become of a claim. Without a job: some were set aside, and there may be one behind them. ERR_NOT_FOUND: it was given before,
 * and is heard of here for the second time, or was lost on its way, and then the end of its lease brings the job back. */
static void given(struct worker *w, const struct message *m)
{
    struct store_given head;
    struct task t = {.settings = jobs_settings()};
    ASSERT(m->size >= sizeof(head));
    memcpy(&head, m->payload, sizeof(head));
    size_t size = m->size - sizeof(head);
    if (head.error == ERR_NOT_FOUND && head.number != w->stood)
        return;
    if (head.number == w->stood)
        w->stood = 0;
    if (head.error) {
        rest(w, WORKER_AGAIN_MS * NS_PER_MS);
    } else if (size != sizeof(t.claimed)) {
        stand(w);
    } else {
        memcpy(&t.claimed, m->payload + sizeof(head), size);
        take(w, &t);
    }
}

/* ---- the actor ---- */

static bool is_given(const struct message *m, void *arg)
{
    (void)arg;
    return m->type == STORE_GIVEN;
}

/* What an old writer has given him comes first: with a new one he stands anew. */
static void look(struct worker *w)
{
    struct message *m = actor_receive_now(is_given, NULL);
    if (m)
        given(w, m);
    else
        stand(w);
}

/* ---- what one of the same name has left ---- */

/* Only whether it is worth looking: what there is stands in the store. */
static atomic_bool lived[JOBS_WORKERS_MAX];

static bool is_left(struct txn *txn, const struct worker *w, const struct scan *scan, struct job *ret)
{
    struct uuid id;
    memcpy(&id, (const uint8_t *)scan->key.bytes + scan->key.size - sizeof(id), sizeof(id));
    return job_read(txn, &id, ret) == OK && ret->state == JOB_RUNNING && ret->owner == store_here()->start &&
           span_equal(ret->worker, span_text(w->name));
}

/* Its texts are the view's, and not to be used. */
static bool find_left(const struct worker *w, struct job *ret)
{
    struct view *view = view_open(store_here());
    struct key from = {.size = 0};
    struct due row;
    bool found = false;
    if (!view)
        return false;
    key_add_u8(&from, DUE_JOB_LEASE);
    struct scan scan = txn_scan(&view->txn, TABLE_DUE, key_span(&from), from.size, SCAN_UP);
    for (uint32_t i = 0; i < WORKER_LEFT_MAX && !found && scan_next(&scan); i++)
        found = scan_read(&scan, &row) == OK && row.value == store_here()->start &&
                is_left(&view->txn, w, &scan, ret);
    (void)scan_end(&scan);
    view_close(view);
    return found;
}

/* Fenced: what the dead one had said before counts, and so does the end of its lease. */
static void end_left(const struct worker *w)
{
    struct job job;
    struct job_finished finished;
    struct jobs_settings settings = jobs_settings();
    if (!find_left(w, &job))
        return;
    struct job_finish c = {.id = job.id,
                           .fence = job.fence,
                           .event = JOB_FAIL,
                           .failure = JOB_RUNNER_LOST,
                           .retryable = 1,
                           .kept_us = settings.kept_us,
                           .retry_max = settings.retry_max,
                           .auto_retry = settings.retry_auto,
                           .queue_max = settings.queue_max,
                           .backoff_us = jobs_backoff_us(job.attempt, &settings)};
    if (finish(&c, &finished) != OK)
        return;
    struct job_told told = {.id = job.id,
                            .client = finished.client,
                            .event = JOB_FAIL,
                            .from = JOB_RUNNING,
                            .to = JOB_FAILED,
                            .kind = finished.kind,
                            .failure = JOB_RUNNER_LOST,
                            .attempt = finished.attempt,
                            .ran_us = later_of(finished.finished_us, finished.started_us)};
    jobs_tell(&told);
    if (finished.retried)
        jobs_tell_retried(&told);
}

static enum actor_step worker_init(void *state, const void *args, size_t args_size)
{
    struct worker *w = state;
    char group[STORE_GROUP_SIZE];
    ASSERT(args_size == sizeof(w->number));
    memcpy(&w->number, args, sizeof(w->number));
    snprintf(w->name, sizeof(w->name), WORKER_NAME "%u", w->number);
    w->again = w->number < JOBS_WORKERS_MAX && atomic_exchange(&lived[w->number], true);
    if (!store_here())
        actor_refuse(reason_error(ERR_UNAVAILABLE));
    store_group(JOB_TOPIC_QUEUE, group);
    if (actor_join(JOBS_CLOCK_GROUP) != OK || actor_join(group) != OK)
        actor_refuse(reason_error(ERR_LIMIT));
    rest(w, 0);
    return ACTOR_CONTINUE;
}

static enum actor_step worker_handle(void *state, struct message *m)
{
    struct worker *w = state;
    const uint64_t *polled;
    switch (m->type) {
    case WORKER_POLL:
        polled = message_body(m, sizeof(*polled));
        if (!polled || *polled != w->polls)
            break; /* it went off before another one was set: with two of them there would be two for ever */
        w->poll = 0;
        if (w->again)
            end_left(w);
        w->again = false;
        look(w);
        break;
    case STORE_WAKE: /* by a new writer, with whom nothing stands; or jobs_claim_anew */
        look(w);
        break;
    case STORE_GIVEN:
        given(w, m);
        break;
    case WORKER_STOP: /* of a job that has come to its end */
    case JOBS_CLOCK:
        break;
    default:
        actor_unknown(m);
    }
    return ACTOR_CONTINUE;
}

bool worker_any(const struct jobs_settings *settings)
{
    char name[sizeof(WORKER_NAME) + 10];
    for (uint32_t i = 0; i < settings->workers * settings->concurrency; i++) {
        snprintf(name, sizeof(name), WORKER_NAME "%" PRIu32, i);
        if (actor_whereis(name))
            return true;
    }
    return false;
}

void worker_stop(const char *worker, const struct uuid *job)
{
    if (strncmp(worker, WORKER_NAME, strlen(WORKER_NAME)) != 0)
        return;
    struct message *m = message_of(WORKER_STOP, job, sizeof(*job));
    if (m)
        (void)actor_send_name(worker, m);
}

const struct actor_class worker_class = {
    .name = "worker",
    .state_size = sizeof(struct worker),
    .init = worker_init,
    .handle = worker_handle,
    .mailbox_capacity = 64,
    .mailbox_policy = MAILBOX_REFUSE, /* of what it holds a job that was given mustn't go */
};
