#define _GNU_SOURCE
#include "chaos/script.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "chaos/brief.h"
#include "chaos/verdict.h"

#define YEAR_MS (UINT64_C(365) * 86400 * 1000)

static struct {
    struct waiting end;
    uint32_t count;
    bool ended;
} far;

static bool lucky(struct errand *e, uint32_t percent)
{
    return dice_chance(&e->dice, percent * 10);
}

/* ---- what scripts share ---- */

/* How a job ends when nobody interferes. */
static int natural_end(const struct errand *e)
{
    return e->kind >= 0 && e->attempt <= kind_row(e->kind)->fails ? STATE_FAILED : STATE_SUCCEEDED;
}

static bool runner_was_lost(const struct errand *e)
{
    return brief.restarts && e->state == STATE_FAILED && strcmp(e->failure, "RUNNER_LOST") == 0;
}

/* Until it ends by its own work: a runner that was lost with its server is not the job's. */
static bool finish(struct errand *e)
{
    while (errand_await(e, false))
        if (!runner_was_lost(e) || e->attempt > brief.retries || !errand_retry(e))
            return true;
    return false;
}

static void judge_end(const struct errand *e, bool canceled)
{
    int must = canceled ? STATE_CANCELED : natural_end(e);
    VERDICT(ENDS, e->state == must || runner_was_lost(e), "%s (%s) ended %s at attempt %llu", e->id,
            kind_name(e->kind < 0 ? KIND_DRAWN : e->kind), state_name(e->state),
            (unsigned long long)e->attempt);
}

static void finish_and_judge(struct errand *e)
{
    if (!finish(e))
        return;
    judge_end(e, false);
    errand_judge(e);
}

static uint64_t wall_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
}

static void be_scheduled(struct errand *e, uint64_t ahead_ms)
{
    e->type = TYPE_DEFERRED;
    e->execution_ms = wall_ms() + ahead_ms;
    if (lucky(e, 50))
        e->execution_ms -= e->execution_ms % 1000;
}

static void be_received(struct errand *e, enum manner manner)
{
    if (!brief.no_webhooks)
        e->callback = inbox_make(manner, EVENTS_ALL);
}

static void need_key(struct errand *e)
{
    if (!e->key[0])
        caller_unique(e->key, sizeof(e->key), "job");
}

/* ---- the scripts ---- */

static void watch(struct errand *e)
{
    if (errand_submit(e))
        finish_and_judge(e);
}

static void be_refused(struct errand *e)
{
    errand_be_refused(e);
}

static void after_cancel(struct errand *e, int state)
{
    if (state == STATE_NONE || !errand_look(e))
        return;
    judge_end(e, state == STATE_CANCELED);
    errand_judge(e);
}

static void cancel_at_once(struct errand *e)
{
    if (errand_submit(e))
        after_cancel(e, errand_cancel(e));
}

static void cancel_when_running(struct errand *e)
{
    if (errand_submit(e) && errand_await(e, true))
        after_cancel(e, errand_cancel(e));
}

static void retry_once(struct errand *e)
{
    if (!errand_submit(e) || !finish(e))
        return;
    judge_end(e, false);
    if (e->state == STATE_FAILED && e->attempt <= brief.retries && errand_retry(e))
        errand_judge_unreported(e);
    finish_and_judge(e);
}

static void retry_to_the_limit(struct errand *e)
{
    if (!errand_submit(e))
        return;
    while (finish(e)) {
        judge_end(e, false);
        if (e->state != STATE_FAILED || !errand_retry(e)) {
            /* What was refused has changed nothing. */
            if (errand_look(e))
                VERDICT(EXHAUSTED, e->state == STATE_FAILED && e->attempt == brief.retries + 1,
                        "%s is %s at attempt %llu", e->id, state_name(e->state),
                        (unsigned long long)e->attempt);
            errand_judge(e);
            return;
        }
    }
}

static void submit_twice(struct errand *e)
{
    need_key(e);
    if (!errand_submit(e))
        return;
    errand_submit_again(e);
    errand_submit_otherwise(e);
    finish_and_judge(e);
    errand_submit_again(e);
}

static void submit_two(struct errand *e)
{
    struct errand *other = malloc(sizeof(*other));
    if (!other)
        exit(2);
    need_key(e);
    *other = *e;
    other->key[0] = 0;
    need_key(other);
    other->dice = dice_of(dice_draw(&e->dice));
    if (e->callback)
        be_received(other, e->callback->manner);
    if (errand_submit(e) && errand_submit(other)) {
        finish_and_judge(e);
        finish_and_judge(other);
    }
    errand_end(other);
    free(other);
}

static void receive_as(struct errand *e, enum manner manner)
{
    be_received(e, manner);
    watch(e);
}

static void receive(struct errand *e)
{
    receive_as(e, MANNER_GOOD);
}

static void receive_hanging(struct errand *e)
{
    receive_as(e, MANNER_HANGING);
}

static void receive_failing(struct errand *e)
{
    receive_as(e, MANNER_FAILING);
}

static void receive_never(struct errand *e)
{
    receive_as(e, MANNER_NEVER);
}

static void receive_slowly(struct errand *e)
{
    receive_as(e, MANNER_SLOW);
}

static void schedule(struct errand *e)
{
    be_scheduled(e, brief.ahead_ms);
    if (!errand_submit(e))
        return;
    if (lucky(e, 20))
        errand_judge_unreported(e);
    finish_and_judge(e);
}

/* It stays where it is until the run ends; then it is canceled. */
static void schedule_far(struct errand *e)
{
    be_scheduled(e, YEAR_MS);
    if (!errand_submit(e))
        return;
    errand_judge_unreported(e);
    if (!far.ended) {
        far.count++;
        (void)strand_wait(&far.end, UINT64_MAX);
        far.count--;
    }
    if (!errand_look(e))
        return;
    VERDICT(ENDS, e->state == STATE_CREATED, "%s is %s a year before its time", e->id, state_name(e->state));
    int state = errand_cancel(e);
    VERDICT(ENDS, state == STATE_CANCELED, "%s is %s after its cancel", e->id, state_name(state));
    if (errand_look(e))
        errand_judge(e);
}

void script_end(void)
{
    far.ended = true;
    strand_wake_all(&far.end);
}

uint32_t script_waiting(void)
{
    return far.count;
}

/* ---- the play ---- */

static void (*const scripts[KIND_SORTS])(struct errand *e) = {
#define X(name, duration, fails, kb, pool, outputs, retryable, progress, script) [KIND_##name] = script,
    KINDS(X)
#undef X
        [KIND_DRAWN] = watch,
};

/* What any job may have besides what its kind needs. */
static void vary(struct errand *e)
{
    if (brief.restarts || lucky(e, 60))
        need_key(e);
    e->key_in_body = lucky(e, 50);
    e->type = lucky(e, 10) ? TYPE_EMIT_EVENT : TYPE_EXECUTE;
    if (lucky(e, 25))
        be_received(e, MANNER_GOOD);
}

void script_play(struct errand *e)
{
    vary(e);
    scripts[e->asked](e);
    errand_end(e);
}
