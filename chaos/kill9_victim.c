#include "chaos/kill9_victim.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "chaos/kill9_submitter.h"
#include "chaos/kill9_twin.h"
#include "runtime/actor.h"
#include "runtime/runtime.h"
#include "store/batch.h"
#include "store/writer.h"

#define BATCHES_MAX 1000000u

/* ---- by batches of its own ---- */

static struct batch_item items[LANES];
static uint8_t encoded[LANES][COMMAND_SIZE_MAX];

static size_t batch_fill(struct dice *dice, uint32_t batch, struct attempt **attempts, uint32_t *lanes)
{
    size_t count = 0;
    for (uint32_t n = 0; n < LANES; n++) {
        if (n >= ordeal.lanes_busy && (n != RELAY || ordeal.control))
            continue;
        if (dice_below(dice, 3) == 0)
            continue;
        ordeal.clock_us += 1 + dice_below(dice, ordeal.actors ? 2 : 50); /* the writer's clock comes behind */
        struct attempt *a = submitter_try(n, ordeal.clock_us, batch);
        if (!a)
            continue;
        struct request r;
        attempt_request(a, &r);
        size_t size = record_encode(r.class->record, &r.command, encoded[count], COMMAND_SIZE_MAX);
        ASSERT(size || r.class->record->count == 0);
        items[count] =
            (struct batch_item){.class = r.class, .at_us = a->at_us, .bytes = span_of(encoded[count], size)};
        attempts[count] = a;
        lanes[count++] = n;
    }
    return count;
}

/* What the store would answer, before it was asked. */
static void answer_early(struct attempt **attempts, const uint32_t *lanes, size_t count)
{
    static struct lane_model scratch;
    for (size_t i = 0; i < count; i++) {
        scratch = ordeal.lane[attempts[i]->owner];
        struct model_answer answer = model_apply(&scratch, attempts[i]);
        submitter_answered(lanes[i], attempts[i], answer.error, answer.bytes, answer.size);
    }
}

/* One commit that should be two: whoever is told, is told after both. */
static enum error run_halves(struct store *store, size_t count)
{
    static uint8_t kept[LANES][ATTEMPT_ANSWER_MAX];
    size_t half = count / 2;
    enum error e = half ? batch_run(store, items, half) : OK;
    for (size_t i = 0; i < half && e == OK; i++) {
        memcpy(kept[i], items[i].answer.bytes, items[i].answer.size);
        items[i].answer.bytes = kept[i];
    }
    return e ? e : batch_run(store, items + half, count - half);
}

static void load_batches(struct store *store, uint32_t batches)
{
    struct dice dice = {.state = dice_draw(&ordeal.lane[0].dice)};
    for (uint32_t batch = 1; batch <= batches; batch++) {
        struct attempt *attempts[LANES];
        uint32_t lanes[LANES];
        size_t count = batch_fill(&dice, batch, attempts, lanes);
        if (count == 0)
            continue;
        if (ordeal.control == CONTROL_EARLY)
            answer_early(attempts, lanes, count);
        enum error all =
            ordeal.control == CONTROL_HALF ? run_halves(store, count) : batch_run(store, items, count);
        for (size_t i = 0; i < count && ordeal.control != CONTROL_EARLY; i++) {
            const struct answer *answer = &items[i].answer;
            submitter_answered(lanes[i], attempts[i], all == OK ? answer->error : all, answer->bytes,
                               answer->size);
            if (lanes[i] == RELAY && attempts[i]->kind == CLAIM && all == OK) {
                struct view *view = view_open_outside(store, 1);
                submitter_look(view);
                if (view)
                    view_close(view);
            }
        }
        if (all == ERR_IO)
            return;
    }
}

/* ---- by actors ---- */

static enum actor_step submitter_init(void *state, const void *args, size_t size)
{
    memcpy(state, args, size);
    return ACTOR_PROCEED;
}

static enum actor_step submitter_proceed(void *state)
{
    uint32_t number = *(uint32_t *)state;
    for (;;) {
        struct attempt *a = submitter_try(number, 0, 0);
        if (!a)
            return ACTOR_CONTINUE;
        struct request r;
        attempt_request(a, &r);
        uint8_t bytes[ATTEMPT_ANSWER_MAX];
        size_t size = 0;
        enum error e = store_submit(r.class, &r.command, bytes, sizeof(bytes), &size, DEADLINE_NONE);
        submitter_answered(number, a, e, bytes, size);
        if (attempt_open_ended(e))
            return ACTOR_CONTINUE; /* what is true of its parcels nobody knows before the verifier has looked */
        if (a->kind == CLAIM && e == OK) {
            struct view *view = view_open(store_here());
            submitter_look(view);
            if (view)
                view_close(view);
        }
    }
}

static enum actor_step ignore(void *state, struct message *m)
{
    (void)state;
    (void)m;
    return ACTOR_CONTINUE;
}

static const struct actor_class submitter_class = {
    .name = "submitter",
    .state_size = sizeof(uint32_t),
    .init = submitter_init,
    .proceed = submitter_proceed,
    .handle = ignore,
    .stack_size = 1 << 18,
};

static enum actor_step root_init(void *state, const void *args, size_t size)
{
    (void)state;
    (void)args;
    (void)size;
    return ACTOR_PROCEED;
}

static enum actor_step root_proceed(void *state)
{
    (void)state;
    struct start_result writer;
    if (actor_start(&(struct spawn_options){.class = &writer_class,
                                            .name = WRITER_NAME,
                                            .link = true,
                                            .scheduler = SPAWN_ON(runtime_dedicated(0))},
                    &writer, DEADLINE_NONE) != OK)
        return ACTOR_STOP;
    for (uint32_t n = 0; n < LANES; n++)
        if ((n < ordeal.lanes_busy || n == RELAY) &&
            actor_spawn(
                &(struct spawn_options){.class = &submitter_class, .args = &n, .args_size = sizeof(n)},
                NULL) != OK)
            return ACTOR_STOP;
    return ACTOR_CONTINUE;
}

static const struct actor_class root_class = {
    .name = "kill9", .init = root_init, .proceed = root_proceed, .handle = ignore};

static void load_actors(struct store *store)
{
    char text[256];
    struct runtime *rt =
        runtime_create(&(struct runtime_options){.schedulers = 1, .dedicated = 1}, text, sizeof(text));
    if (!rt) {
        fprintf(stderr, "kill9: %s\n", text);
        _exit(4);
    }
    store_install(store);
    if (runtime_spawn(rt, &(struct spawn_options){.class = &root_class}, NULL) != OK)
        _exit(5);
    _exit(100 + runtime_run(rt)); /* it ends only by being killed */
}

/* Until the parent kills it. closing: it makes some batches, then closes the store and ends. */
_Noreturn void victim_work(bool closing)
{
    char text[512];
    struct store *store;
    ordeal_tell(ORDEAL_OPENS);
    enum error e = store_open(&ordeal.options, &store, text, sizeof(text));
    if (e != OK) {
        snprintf(ordeal_shared->complaint, sizeof(ordeal_shared->complaint), "opening under load: %s: %.400s",
                 error_name(e), text);
        _exit(2);
    }
    uint32_t batches = closing ? 1 + dice_below(&ordeal.lane[1].dice, 40) : BATCHES_MAX;
    if (ordeal.actors && !closing)
        load_actors(store);
    if (ordeal.twin)
        twin_work(store, batches);
    else
        load_batches(store, batches);
    if (!closing)
        for (;;)
            pause(); /* every lane has made enough */
    ordeal_tell(ORDEAL_CLOSES);
    store_close(store);
    _exit(0);
}
