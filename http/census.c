#include "http/census.h"

#include <string.h>

#include "runtime/runtime.h"
#include "runtime/telemetry.h"

enum {
    CENSUS_ASK = 1,
    ASKED_MS = 2000, /* a walker that nobody has asked by then ends: who started it was killed meanwhile */
};

static const char others[] = "other";

struct walk {
    struct census census;
    uint32_t scheduler;
};

STATIC_ASSERT(sizeof(struct census) <= 8192, "an answer is one message");

static struct census_row *row_of(struct census *c, const char *class_name)
{
    for (size_t i = 0; i < CENSUS_CLASSES; i++) {
        if (!c->rows[i].class_name)
            c->rows[i].class_name = i + 1 < CENSUS_CLASSES ? class_name : others;
        if (c->rows[i].class_name == others || strcmp(c->rows[i].class_name, class_name) == 0)
            return &c->rows[i];
    }
    return NULL;
}

static void count(struct census *c, const struct actor_info *a)
{
    struct census_row *row = row_of(c, a->class_name);
    row->actors++;
    row->messages += a->mailbox_depth;
    row->arena_bytes += a->arena_bytes;
    if (a->mailbox_depth > row->fullest_depth) {
        row->fullest_depth = a->mailbox_depth;
        row->fullest_capacity = a->mailbox_capacity;
        row->fullest = a->pid;
    }
}

static enum actor_step walker_init(void *state, const void *args, size_t args_size)
{
    struct walk *w = state;
    memcpy(&w->scheduler, args, args_size);
    actor_idle_timeout(actor_deadline_ms(ASKED_MS));
    return ACTOR_CONTINUE;
}

static enum actor_step walker_handle(void *state, struct message *m)
{
    struct walk *w = state;
    actor_pid pids[CENSUS_BATCH];
    uint32_t cursor = 0, visits = 0;
    if (m->type == MESSAGE_TIMEOUT)
        return ACTOR_STOP;
    if (m->type != CENSUS_ASK) {
        actor_unknown(m);
        return ACTOR_CONTINUE;
    }
    do {
        size_t stored = runtime_actors(w->scheduler, &cursor, pids, CENSUS_BATCH);
        struct actor_info info;
        for (size_t i = 0; i < stored; i++)
            if (pids[i] != actor_self() && actor_inspect(pids[i], &info, 0) == OK)
                count(&w->census, &info);
        visits += CENSUS_BATCH;
        actor_yield();
    } while (cursor && visits < CENSUS_VISITS);
    w->census.complete = cursor == 0;
    actor_reply_bytes(m, CENSUS_ASK, &w->census, sizeof(w->census));
    return ACTOR_STOP;
}

static const struct actor_class walker_class = {
    .name = "census",
    .state_size = sizeof(struct walk),
    .init = walker_init,
    .handle = walker_handle,
};

static void add(struct census *to, const struct census *from)
{
    for (const struct census_row *r = from->rows; r->class_name; r++) {
        struct census_row *row = row_of(to, r->class_name);
        row->actors += r->actors;
        row->messages += r->messages;
        row->arena_bytes += r->arena_bytes;
        if (r->fullest_depth > row->fullest_depth) {
            row->fullest_depth = r->fullest_depth;
            row->fullest_capacity = r->fullest_capacity;
            row->fullest = r->fullest;
        }
    }
    to->complete &= from->complete;
}

static bool ask(uint32_t scheduler, struct census *ret)
{
    struct start_result walker;
    struct message *answer = NULL;
    uint64_t deadline = actor_deadline_ms(CENSUS_ANSWER_MS);
    if (actor_start(&(struct spawn_options){.class = &walker_class,
                                            .args = &scheduler,
                                            .args_size = sizeof(scheduler),
                                            .scheduler = SPAWN_ON(scheduler)},
                    &walker, deadline) != OK)
        return false;
    enum error e = actor_call(walker.pid, message_new(CENSUS_ASK, 0), &answer, deadline);
    if (e == OK)
        add(ret, (const struct census *)(const void *)answer->payload);
    else
        actor_kill(walker.pid);
    if (answer)
        message_free(answer);
    return e == OK;
}

void census_take(struct census *ret)
{
    struct runtime_stats stats;
    memset(ret, 0, sizeof(*ret));
    ret->complete = true;
    runtime_stats(runtime_self(), &stats);
    for (uint32_t i = 0; i < stats.schedulers; i++)
        ret->complete &= ask(i, ret);
}

void census_note(const struct census *census)
{
    for (const struct census_row *row = census->rows; row->class_name; row++) {
        telemetry_gauge_set(TELEMETRY_GAUGE_ACTORS, row->class_name, (int64_t)row->actors);
        telemetry_gauge_set(TELEMETRY_GAUGE_MAILBOX_MESSAGES, row->class_name, (int64_t)row->messages);
        telemetry_gauge_set(TELEMETRY_GAUGE_MAILBOX_MAX_MESSAGES, row->class_name, row->fullest_depth);
        telemetry_gauge_add(TELEMETRY_GAUGE_PRESSURE_LEVEL, row->class_name, 0);
        telemetry_counter_expect(TELEMETRY_ACTOR_CRASH, row->class_name);
    }
}
